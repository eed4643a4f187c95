"""The meaning of a query: the bound plan, row by row, in plain Python."""
