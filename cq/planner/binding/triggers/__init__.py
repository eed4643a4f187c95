"""CREATE TRIGGER: the steps of its body, what it emits and changes, and what queries read from it."""
