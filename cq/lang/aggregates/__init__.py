"""Aggregate functions: look-ups over all registered entries. What an entry says is in `registry`."""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.aggregates import bits, collected, library, pairs, positions, shapes, sketches, statistics
from cq.lang.aggregates.registry import AGGREGATES, ALIASES, Aggregate, register
from cq.lang.functions.registry import Refusal, Signature
from cq.lang.types import DataType

__all__ = [
    "AGGREGATES", "ALIASES", "Aggregate", "all_aggregates", "bits", "collected", "library", "lookup", "pairs",
    "positions", "register", "resolve", "shapes", "sketches", "statistics",
]  # fmt: skip


def lookup(name: str) -> Aggregate | None:
    """The entry for a name as written in SQL, already lower case; None when there is none."""
    return AGGREGATES.get(ALIASES.get(name, name))


def all_aggregates() -> dict[str, Aggregate]:
    """Every entry by name."""
    return AGGREGATES


def resolve(name: str, types: Sequence[DataType]) -> tuple[Aggregate, Signature] | Refusal:
    """The entry and signature for a name and its argument types, or why there is none."""
    entry = lookup(name)
    if entry is None:
        return Refusal("CQ0205", f"unknown aggregate {name}")
    found = entry.rule(tuple(types), (None,) * len(types))
    if isinstance(found, Signature):
        return entry, found
    given = ", ".join(map(str, types))
    return found or Refusal("CQ0302", f"{name.upper()} does not take ({given})", f"it is {entry.shape}")
