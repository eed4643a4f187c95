"""Aggregate functions: look-ups over all registered entries. Entries are described in `registry`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from cq.lang.aggregates import bits, collected, library, pairs, positions, shapes, sketches, statistics
from cq.lang.aggregates.registry import AGGREGATES, ALIASES, AggregateFunction, register
from cq.lang.functions.registry import Refusal, Signature
from cq.lang.types import DataType

__all__ = [
    "AGGREGATES", "ALIASES", "AggregateFunction", "all_aggregates", "bits", "collected", "given", "library", "lookup",
    "pairs", "positions", "register", "resolve", "shapes", "sketches", "statistics",
]  # fmt: skip


_GIVEN: ContextVar[Mapping[str, AggregateFunction]] = ContextVar("given", default=MappingProxyType({}))


@contextmanager
def given(entries: Iterable[AggregateFunction]) -> Iterator[None]:
    """Inside, in this thread, names also find these entries, as with `cq.lang.functions.given`."""
    token = _GIVEN.set({e.name: e for e in entries})
    try:
        yield
    finally:
        _GIVEN.reset(token)


def lookup(name: str) -> AggregateFunction | None:
    """The entry for a name as written in SQL, already lower case; None when there is none."""
    return AGGREGATES.get(ALIASES.get(name, name)) or _GIVEN.get().get(name)


def all_aggregates() -> dict[str, AggregateFunction]:
    """Every entry by name."""
    return AGGREGATES


def resolve(name: str, types: Sequence[DataType]) -> tuple[AggregateFunction, Signature] | Refusal:
    """The entry and signature for a name and its argument types, or why there is none."""
    entry = lookup(name)
    if entry is None:
        return Refusal("CQ0205", f"unknown aggregate {name}")
    found = entry.rule(tuple(types), (None,) * len(types))
    if isinstance(found, Signature):
        return entry, found
    given = ", ".join(map(str, types))
    return found or Refusal("CQ0302", f"{name.upper()} does not take ({given})", f"usage: {entry.shape}")
