"""Syntax trees to a logical plan, its rewriting, and the stages it is fused into. Nothing here measures or runs."""
