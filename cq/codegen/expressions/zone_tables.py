"""Zones in kernels: their tables among the constants of a stage, in the form cq/runtime/values/zones.py reads."""

from __future__ import annotations

import ast
import struct
from functools import lru_cache

from cq.codegen.expressions.constants import constant_table
from cq.codegen.values import Scope
from cq.lang.zones import zone_of


def zone_by_instant(scope: Scope, name: str) -> ast.expr:
    """The table that gives the distance from UTC at an instant."""
    return _placed(scope, name, by_local_time=False)


def zone_by_local(scope: Scope, name: str) -> ast.expr:
    """The table that gives the distance from UTC at a local time."""
    return _placed(scope, name, by_local_time=True)


def _placed(scope: Scope, name: str, by_local_time: bool) -> ast.expr:
    return constant_table(scope, f"zone {by_local_time} {name}", zone_table(name, by_local_time))


@lru_cache(maxsize=64)
def zone_table(name: str, by_local_time: bool) -> bytes:
    """The words of a zone."""
    zone = zone_of(name)
    words = (len(zone.offsets) - 1, *(zone.local if by_local_time else zone.utc), *zone.offsets)
    return struct.pack(f"<{len(words)}q", *words)
