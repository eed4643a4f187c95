"""The registry of aggregate functions: one entry each.

An aggregate is a fold: `zero`, `add` a row's values, `merge` two partial results (left before right), `result`. Rows
whose argument is NULL are skipped, `add` never sees NULL. COUNT(*) has no argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cq.functions import Signature, SignatureRule

State = Any  # an immutable Python value


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """One aggregate function.

    signature: argument types as written -> parameter and result types.
    zero: the state of no rows.  add(signature, state, *values) -> state.  merge(signature, left, right) -> state.
    empty(state): whether no row was added, in which case the result is NULL unless `never_null`.
    result(signature, state) -> value; raises `cq.functions.Failure` when it does not fit its type.
    remove(signature, state, *values): undoes `add` exactly; None where it cannot (DOUBLE sums, MIN, MAX).
    exact_merge(signature): whether merge(add…, add…) equals adding one by one in any order, so that partial tables of
    several workers may be merged.  native: the kernel form in cq/codegen/operators/aggregates.py.
    spark: text with {0} for the argument (`{0}` is `1` for COUNT(*)).
    """

    name: str
    shape: str
    signature: SignatureRule
    zero: State
    add: Callable[..., State]
    merge: Callable[[Signature, State, State], State]
    empty: Callable[[State], bool]
    result: Callable[[Signature, State], Any]
    exact_merge: Callable[[Signature], bool]
    doc: str
    spark: str
    native: str
    remove: Callable[..., State] | None = None
    never_null: bool = False
    fails: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def registry_key(self) -> str:
        """What plan hashes see: the name stands for the entry."""
        return f"agg:{self.name}"


AGGREGATES: dict[str, Aggregate] = {}


def lookup(name: str) -> Aggregate | None:
    """The entry for a name as written in SQL, already lower case; None when there is none."""
    return AGGREGATES.get(name)
