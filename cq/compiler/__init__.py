"""From query text to a Job: the passes of the compiler as one visible list."""
