"""Sinks: formats, targets and the terminal."""
