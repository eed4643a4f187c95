"""Arrow IPC sources."""
