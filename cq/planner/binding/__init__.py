"""From syntax trees to a logical plan: names, types, scopes and lint."""
