"""The registry of aggregate functions: one entry each.

An aggregate is a fold: `zero`, `add` a row's values, `merge` two partial results (left before right), `result`. Rows
whose argument is NULL are skipped, `add` never sees NULL. COUNT(*) has no argument. The entries are in
`cq/aggregate_library.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cq.functions import Refusal, Signature, SignatureRule
from cq.types import DataType

State = Any  # an immutable Python value


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """One aggregate function.

    rule: which arguments it takes; ask `signature`, or `resolve` for the reason as well.
    zero: the state of no rows.  add(signature, state, *values) -> state.  merge(signature, left, right) -> state.
    empty(state): whether no row was added, in which case the result is NULL unless `never_null`.
    result(signature, state) -> value; raises `cq.functions.Failure` when it does not fit its type.
    exact_merge(signature): whether merge(add…, add…) equals adding one by one in any order, so that partial tables of
    several workers may be merged.
    remove(signature, state, *values): undoes `add` wherever `exact_merge`; None where nothing can (MIN, MAX).
    idempotent: adding a value again changes nothing, so DISTINCT does not either.
    native: the kernel form in cq/codegen/aggregates.py.
    spark: text with {0} for the argument (`1` for COUNT(*)) and {1} behind every aggregate for an OVER clause, or a
    function of the signature and these two texts.
    examples: `sum over 1, 2, null = 3`; `over nothing` for no rows.
    """

    name: str
    shape: str
    rule: SignatureRule
    zero: State
    add: Callable[..., State]
    merge: Callable[[Signature, State, State], State]
    empty: Callable[[State], bool]
    result: Callable[[Signature, State], Any]
    exact_merge: Callable[[Signature], bool]
    doc: str
    spark: str | Callable[[Signature, str, str], str]
    native: str
    remove: Callable[..., State] | None = None
    never_null: bool = False
    idempotent: bool = False
    fails: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def registry_key(self) -> str:
        """What plan hashes see: the name stands for the entry."""
        return f"agg:{self.name}"

    def signature(self, types: Sequence[DataType]) -> Signature | None:
        """What it makes of arguments of these types; None when it does not take them."""
        found = self.rule(tuple(types), (None,) * len(types))
        return found if isinstance(found, Signature) else None

    def value(self, signature: Signature, state: State) -> Any:
        """The result of a state: NULL when nothing was added, unless it is never NULL."""
        return None if self.empty(state) and not self.never_null else self.result(signature, state)

    def spark_text(self, signature: Signature, argument: str, over: str = "") -> str:
        """The call in Spark SQL, around the text of its argument: `1` for COUNT(*); COUNT takes `DISTINCT x` too.

        over: an OVER clause that makes it a window function, with a space before it.
        """
        return self.spark(signature, argument, over) if callable(self.spark) else self.spark.format(argument, over)


AGGREGATES: dict[str, Aggregate] = {}
ALIASES: dict[str, str] = {}  # another accepted spelling -> the name of the entry


def lookup(name: str) -> Aggregate | None:
    """The entry for a name as written in SQL, already lower case; None when there is none."""
    _load()
    return AGGREGATES.get(ALIASES.get(name, name))


def all_aggregates() -> dict[str, Aggregate]:
    """Every entry by name."""
    _load()
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


def register(entry: Aggregate, *aliases: str) -> Aggregate:
    """Add an entry and its other spellings; a name is taken once."""
    for name in (entry.name, *aliases):
        assert name not in AGGREGATES and name not in ALIASES, f"two aggregates named {name}"
    AGGREGATES[entry.name] = entry
    ALIASES.update(dict.fromkeys(aliases, entry.name))
    return entry


def _load() -> None:
    from cq import aggregate_library

    assert aggregate_library.LOADED
