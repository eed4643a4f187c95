"""The logical plan: nodes, identity, traits and the verifier."""
