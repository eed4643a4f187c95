"""Values in native code: text, numerals, doubles, 128-bit integers, times, hashes."""
