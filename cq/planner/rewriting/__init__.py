"""Rewrites of the logical plan; the reference and Spark never see them."""
