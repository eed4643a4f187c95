"""Transactions by every scheme: rates, latencies, and what affects them (`python -m benchmarks.transactions`)."""
