"""The physical plan: which operators run together, on how many workers, by which key."""
