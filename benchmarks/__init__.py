"""What produces every number in docs/benchmarks.md; see README.md. Run it as `python -m benchmarks`."""
