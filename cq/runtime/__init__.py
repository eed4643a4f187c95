"""The native engine: runs a `Job` over record batches. It knows no SQL and no plan."""
