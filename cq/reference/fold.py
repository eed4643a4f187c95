"""An aggregate call as a fold over rows: FILTER, NULL arguments and DISTINCT on top of the registry's entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cq.lang.functions import Failure
from cq.planner.plan.calls import AggregateCall
from cq.reference.evaluate import Row, evaluator, keys_of


class Fold:
    """States are immutable, so that the state of a pane can be merged into several windows."""

    def __init__(self, call: AggregateCall) -> None:
        self.call = call
        self.function = call.function
        self.signature = call.signature
        self.zero: Any = self.function.zero
        self._filter = evaluator(call.filter) if call.filter is not None else None
        self._arguments = [evaluator(a) for a in call.args]

    def add(self, state: Any, row: Row, arrival: int = 0) -> Any:
        """The state with one more row. arrival: greater for a later row; 0 if rows only come in order."""
        values = self.values(row)
        return state if values is None else self.count(state, values, arrival)

    def values(self, row: Row) -> Row | None:
        """The values of a row that the state sees; None for a row that it skips."""
        if self._filter is not None and not self._filter(row):
            return None
        values = tuple([a(row) for a in self._arguments])
        return None if None in values and not self.function.keeps_null else values

    def count(self, state: Any, values: Row, arrival: int = 0) -> Any:
        """The state with the values of one more row."""
        placed = (arrival,) if self.function.by_position else ()
        try:
            return self.function.add(self.signature, state, *placed, *values)
        except Failure as failure:
            failure.span = self.call.span
            raise

    def merge(self, left: Any, right: Any) -> Any:
        """The state of the rows of both, those of `left` first."""
        return self.function.merge(self.signature, left, right)

    def value(self, state: Any) -> Any:
        """The result; a failure carries the call's span."""
        try:
            return self.function.value(self.signature, state, self.call.options)
        except Failure as failure:
            failure.span = self.call.span
            raise


class DistinctFold(Fold):
    """Each distinct argument once, in the order of first arrival. The state is an immutable dictionary."""

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self.zero = ()
        self._key = keys_of(call.args)

    def values(self, row: Row) -> Row | None:
        if self._filter is not None and not self._filter(row):
            return None
        key = self._key(row)
        return None if None in key else key

    def count(self, state: Any, values: Row, arrival: int = 0) -> Any:
        return state if values in state else Seen(state, values)

    def merge(self, left: Any, right: Any) -> Any:
        for key in right:
            if key not in left:
                left = Seen(left, key)
        return left

    def value(self, state: Any) -> Any:
        folded = self.function.zero
        for key in state:
            folded = self.function.add(self.signature, folded, *key)
        return super().value(folded)


class Seen:
    """A set in order of arrival that grows by sharing: each version sees its own first `size` entries of one list."""

    __slots__ = ("_entries", "_index", "_size")

    _entries: list[Row]
    _index: dict[Row, int]
    _size: int

    def __init__(self, before: Iterable[Row], key: Row) -> None:
        if isinstance(before, Seen) and before._size == len(before._entries):
            self._entries, self._index = before._entries, before._index
        else:  # empty, or another version has already grown: a separate copy
            self._entries = list(before)
            self._index = {k: i for i, k in enumerate(self._entries)}
        self._index[key] = len(self._entries)
        self._entries.append(key)
        self._size = len(self._entries)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and self._index.get(key, self._size) < self._size

    def __iter__(self) -> Iterator[Row]:
        return iter(self._entries[: self._size])


def fold(call: AggregateCall) -> Fold:
    """The fold of a call."""
    return DistinctFold(call) if call.distinct else Fold(call)
