"""From syntax trees to a logical plan, its rewriting, and its fusion into stages. Nothing here measures or runs."""
