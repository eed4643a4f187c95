"""Joins in FROM: by keys, by time, with the latest row, and the errors for others."""
