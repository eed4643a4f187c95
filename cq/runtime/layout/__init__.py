"""What crosses the border between compiler and engine: the Pipeline and the binary layout of its structures."""
