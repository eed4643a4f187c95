"""Running a compiled query: the engines behind one protocol, stepping, and the comparison of results."""
