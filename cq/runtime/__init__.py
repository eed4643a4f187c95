"""The native engine: runs a `Pipeline` over record batches. It knows no SQL and no plan."""
