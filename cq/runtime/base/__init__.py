"""Native functions: the ops they are written in, their compilation, linking, loading and interpretation."""
