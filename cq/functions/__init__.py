"""The registry of scalar functions and operators: one entry each, in one place.

An entry says everything: which argument types it takes and what it returns, what it does to NULL, its plain Python body
(the meaning, and what kernels compile for BOOLEAN, integer and DOUBLE values), the name of its kernel form where the
body cannot be compiled (strings, decimals, bodies that can fail), its Spark SQL text, and examples, which are the
documentation and the test on all three backends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cq.types import DataType


@dataclass(frozen=True, slots=True)
class Signature:
    """Argument types after implicit conversion, and the type of the result."""

    params: tuple[DataType, ...]
    returns: DataType


SignatureRule = Callable[[tuple[DataType, ...]], Signature | None]
"""Argument types as written -> the signature they resolve to; None when the function does not take them."""


class Failure(Exception):
    """A body has no result for these values: a data error with this code at the row's place."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """One scalar function.

    name: as written in SQL, lower case; operators by their sign (`+`, `=`, `||`).  shape: its arguments for people.
    body: called with non-null values of `Signature.params`, or, when `handles_null`, with None for NULL; with
    `typed` the first argument is the Signature. Raises `Failure` with one of `fails`.
    native: the kernel form in cq/codegen; empty when the body itself is compiled.
    may_be_null: whether the result can be NULL for non-null arguments.
    spark: text with {0}, {1}, … for the arguments; None when `spark_unsupported` says why there is none.
    examples: `expression = value` in SQL text, e.g. "abs(-3) = 3".
    """

    name: str
    shape: str
    signature: SignatureRule
    body: Callable[..., object]
    doc: str
    spark: str | Callable[[Signature, tuple[str, ...]], str]
    native: str = ""
    typed: bool = False
    handles_null: bool = False
    may_be_null: bool = False
    never_null: bool = False
    fails: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def registry_key(self) -> str:
        """What plan hashes see: the name stands for the entry."""
        return f"fn:{self.name}"


SCALARS: dict[str, Scalar] = {}
ALIASES: dict[str, str] = {}  # another accepted spelling -> the name of the entry


def lookup(name: str) -> Scalar | None:
    """The entry for a name as written in SQL (already lower case), following aliases; None when there is none."""
    _load()
    return SCALARS.get(ALIASES.get(name, name))


def all_scalars() -> dict[str, Scalar]:
    """Every entry by name."""
    _load()
    return SCALARS


def register(entry: Scalar, *aliases: str) -> Scalar:
    """Add an entry and its other spellings; a name is taken once."""
    for name in (entry.name, *aliases):
        assert name not in SCALARS and name not in ALIASES, f"two functions named {name}"
    SCALARS[entry.name] = entry
    ALIASES.update(dict.fromkeys(aliases, entry.name))
    return entry


def _load() -> None:
    if not SCALARS:
        from cq.functions import library

        assert library.LOADED
