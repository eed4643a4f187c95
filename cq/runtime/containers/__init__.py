"""State containers: tables, panes, waiting rows, and the memory they lie in."""
