"""What crosses the border between compiler and engine: the Job and the binary layout of its structures."""
