"""The engine: building a Pipeline's structures, workers, scheduling, metrics, snapshots."""
