"""What a query means: the bound plan, row by row, in plain Python."""
