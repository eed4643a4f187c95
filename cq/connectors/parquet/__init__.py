"""Parquet sources."""
