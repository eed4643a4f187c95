"""Linear Road: the traffic generator, its history, and the serial oracle that knows the right answers."""

from cq.workloads.linear_road.stream import COLUMNS, SCHEMA, generate

__all__ = ["COLUMNS", "SCHEMA", "generate"]
