"""session: not in kernels yet."""

from __future__ import annotations

from cq.codegen.flow import refuses

refuses("session", "the native engine does not run SESSION windows yet")
