"""Scalar functions: look-ups over all registered entries. Entries are described in `registry`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from cq.entries import refuse
from cq.lang.functions import library
from cq.lang.functions.registry import (
    ALIASES,
    COUNTS_OF_TIMES,
    EPOCH_UNITS,
    EXTRACT_PARTS,
    OVERLOADS,
    SCALARS,
    TRUNC_UNITS,
    Compares,
    Constants,
    Failure,
    Refusal,
    Scalar,
    Signature,
    SignatureRule,
    register,
    scalar,
)
from cq.lang.types import DataType

__all__ = [
    "ALIASES",
    "COUNTS_OF_TIMES",
    "EPOCH_UNITS",
    "EXTRACT_PARTS",
    "OVERLOADS",
    "SCALARS",
    "TRUNC_UNITS",
    "Compares",
    "Constants",
    "Failure",
    "Refusal",
    "Scalar",
    "Signature",
    "SignatureRule",
    "all_names",
    "all_scalars",
    "extract_parts",
    "given",
    "library",
    "lookup",
    "register",
    "resolve",
    "scalar",
    "trunc_units",
]


def unknown(names: Iterable[str]) -> Iterator[str]:
    """The names without an entry."""
    yield from (
        f"there is no {name}, which an overload, a part or a unit names" for name in names if name not in SCALARS
    )


_OTHERS = [other for others in OVERLOADS.values() for other in others]
refuse(
    "functions",
    unknown([*OVERLOADS, *_OTHERS, *EXTRACT_PARTS.values(), *TRUNC_UNITS.values(), *EPOCH_UNITS, *COUNTS_OF_TIMES]),
)


def extract_parts() -> dict[str, str]:
    """EXTRACT_PARTS once all entries are registered."""
    return EXTRACT_PARTS


def trunc_units() -> dict[str, str]:
    """TRUNC_UNITS once all entries are registered."""
    return TRUNC_UNITS


_GIVEN: ContextVar[Mapping[str, Scalar]] = ContextVar("given", default=MappingProxyType({}))


@contextmanager
def given(entries: Iterable[Scalar]) -> Iterator[None]:
    """Inside, in this thread, names also find these entries: a query is bound with the functions its user passed."""
    token = _GIVEN.set({e.name: e for e in entries})
    try:
        yield
    finally:
        _GIVEN.reset(token)


def lookup(name: str) -> Scalar | None:
    """The entry for a name as written in SQL (already lower case), following aliases; None when there is none."""
    return SCALARS.get(ALIASES.get(name, name)) or _GIVEN.get().get(name)


def all_scalars() -> dict[str, Scalar]:
    """Every entry by name."""
    return SCALARS


def all_names() -> set[str]:
    """Every accepted spelling: what "did you mean" searches."""
    return {*SCALARS, *ALIASES, *_GIVEN.get()}


def resolve(name: str, types: Sequence[DataType], constants: Sequence[Any] = ()) -> tuple[Scalar, Signature] | Refusal:
    """The entry and signature for a name and its argument types, or why there is none.

    constants: for each argument its value if it is a literal, else None; may be omitted, but then an integer literal
    beside a DECIMAL has the width of its type, and ROUND of a DECIMAL is refused. The caller converts each argument to
    its parameter type (a Cast where they differ; a NULL literal takes the type).
    """
    entry = lookup(name)
    if entry is None:
        return Refusal("CQ0205", f"unknown function {name}")
    values = tuple(constants) if constants else (None,) * len(types)
    refusal: Refusal | None = None
    for candidate in (entry, *(SCALARS[other] for other in OVERLOADS.get(entry.name, ()))):
        found = candidate.rule(tuple(types), values)
        if isinstance(found, Signature):
            return candidate, found
        refusal = refusal or found
    return refusal or _not_taken(name, entry, types)


def _not_taken(name: str, entry: Scalar, types: Sequence[DataType]) -> Refusal:
    shown = [str(t) for t in types]
    if not name.isidentifier() and len(shown) == 2:
        return Refusal("CQ0301", f"{name} does not take {shown[0]} and {shown[1]}", f"usage: {entry.shape}")
    given = f"({', '.join(shown)})"
    return Refusal("CQ0302", f"{name.upper()} does not take {given}", f"usage: {entry.shape}")
