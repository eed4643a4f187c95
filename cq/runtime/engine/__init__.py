"""The engine: building a Job's structures, workers, scheduling, metrics, snapshots."""
