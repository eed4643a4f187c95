"""Relations side by side in FROM: joins by keys, by time, of the latest row, and what is wrong with others."""
