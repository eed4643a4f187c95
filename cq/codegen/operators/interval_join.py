"""interval_join: not in kernels yet."""

from __future__ import annotations

from cq.codegen.flow import refuses

refuses("interval_join", "the native engine does not run joins of two streams yet")
