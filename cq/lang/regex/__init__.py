"""Regular expressions: one syntax, the meaning in plain Python, and the automaton that kernels run."""
