"""A stage graph as a `Job`: the source of every stage, its state, its constants. No numba."""
