"""User-defined aggregates: a fold whose state is a tuple of numbers, with each row's values added by position.

Without a value (no row, or NULLs only) the result is NULL, and `result` is not called. States are not merged: nothing
defines how.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from cq.lang.aggregates.registry import AggregateFunction, Keeps
from cq.lang.functions.registry import Signature
from cq.lang.functions.signatures import fixed
from cq.lang.functions.user import USER_FAILURES, PassedType, UserFunction
from cq.records import dataclass, field

FORM = "user_aggregate"  # the kernel form


class UserFold:
    """`zero`, a tuple; `add(state, *values)`, which returns the next one; `result(state)`. Queries call it by
    `name`."""

    def __init__(
        self,
        name: str,
        doc: str,
        zero: tuple[tuple[PassedType, ...], tuple[Any, ...]],
        add: Callable[..., Any],
        result: Callable[..., Any],
        parameters: tuple[PassedType, ...],
        returns: PassedType,
    ) -> None:
        fields, self.zero = zero
        self.name, self.parameters, self.returns = name, parameters, returns
        self.parts = (name, doc, zero, add, result, parameters, returns)
        self.add = UserFunction(add, f"{name}.add", (*fields, *parameters), returns, len(fields), moves=True)
        self.result = UserFunction(result, f"{name}.result", fields, returns, len(fields))
        shown = f"{self.zero!r}{self.add.identity}{self.result.identity}"
        self.identity = hashlib.sha256(shown.encode()).hexdigest()
        self.entry = UserAggregate(
            name=name,
            shape=f"{name}({', '.join(str(p.type) for p in parameters)})",
            rule=fixed(*(p.type for p in parameters), returns=returns.type),
            zero=None,
            add=self._added,
            merge=_no_merge,
            empty=lambda state: state is None,
            result=lambda _, state: self.result.compute(*state),
            exact_merge=lambda _: False,
            doc=inspect.cleandoc(doc),
            spark="",
            native=FORM,
            may_be_null=returns.optional,
            keeps=Keeps.OBJECT,
            fails=USER_FAILURES,
            made_of=self,
        )

    def __repr__(self) -> str:
        return f"<cq aggregate {self.entry.shape} -> {self.returns}>"

    @property
    def spark_name(self) -> str:
        """Its name in a Spark session: a function over an array of structs, those of the rows in order."""
        return f"cq_{self.name}_{self.identity[:12]}"

    def _added(self, _: Signature, state: tuple[Any, ...] | None, *values: Any) -> Any:
        return self.add.compute(*(self.zero if state is None else state), *values)

    def folded(self, rows: Sequence[Sequence[Any]]) -> Any:
        """The result over the values of rows, in this order."""
        if not rows:
            return None
        state: Any = self.zero
        for row in rows:
            state = self.add.compute(*state, *row)
        return self.result.compute(*state)


def _no_merge(_: Signature, left: Any, right: Any) -> Any:
    raise AssertionError("states of a user's aggregate are not merged")


@dataclass(frozen=True, slots=True, eq=False)
class UserAggregate(AggregateFunction):
    """The entry of a user-defined aggregate."""

    made_of: UserFold = field(kw_only=True)

    @property
    def registry_key(self) -> str:
        """Stored state identifies the aggregate by what it does, as far as its source shows."""
        return f"agg:{self.name}:{self.made_of.identity}"

    def packs(self, signature: Signature) -> bool:
        """Always true: rows are ordered as structs."""
        return True

    def spark_text(
        self, signature: Signature, argument: str, over: str = "", position: str = "", options: Sequence[Any] = ()
    ) -> str:
        """The fold over the array of all rows by position; with OVER they come in order."""
        if not position:
            return f"{self.made_of.spark_name}(collect_list({argument}){over})"
        placed = f"case when {argument} is not null then struct({position} as p, {argument} as v) end"
        return f"{self.made_of.spark_name}(transform(array_sort(collect_list({placed}){over}), x -> x.v))"
