"""A stage graph as a `Pipeline`: the source of every stage, its state, its constants. No numba."""
