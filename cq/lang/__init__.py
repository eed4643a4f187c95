"""The vocabulary of SQL that every layer shares: types, schemas, expressions, casts, functions, aggregates."""
