"""Transactions by every scheme: rates, latencies, and what changes them (`python -m benchmarks.transactions`)."""
