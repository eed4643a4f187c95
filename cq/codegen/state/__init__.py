"""State in generated code: hash tables, aggregates, waiting rows."""
