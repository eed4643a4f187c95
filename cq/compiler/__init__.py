"""From query text to a Pipeline: the passes of the compiler as one visible list."""
