"""Scalar expressions as statements of a kernel."""
