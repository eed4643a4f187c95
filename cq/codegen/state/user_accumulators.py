"""The state of a user's aggregate: a word for each field of its tuple."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar

from cq.codegen.expressions.user import user_values
from cq.codegen.state.accumulators import Accumulator, Entry
from cq.codegen.values import Scope, Val, value_words
from cq.codegen.writer import expr
from cq.errors import NOWHERE, Span
from cq.lang.aggregates.user import UserFold
from cq.lang.types import Kind
from cq.records import dataclass
from cq.runtime.layout.words import Word


@dataclass(slots=True)
class UserState(Accumulator):
    """The fields of the state, in order; a new entry has the fold's zero. span: of the call."""

    fold: UserFold | None = None
    span: Span = NOWHERE
    names: ClassVar[tuple[str, ...]] = ("STATE",)

    @property
    def key(self) -> tuple[object, ...]:
        return (UserState, self.fold, self.args, self.filter, self.distinct)

    @property
    def words(self) -> int:
        assert self.fold is not None
        return len(self.fold.zero)

    def start(self, scope: Scope, e: Entry) -> None:
        assert self.fold is not None
        for n, value in enumerate(self.fold.zero):
            (bits,) = struct.unpack("<q", struct.pack("<d" if isinstance(value, float) else "<q", value))
            if bits:
                scope.writer.code("st_i64(E, W, V)", E=e.address, W=self._field(n), V=bits)

    def fields(self, scope: Scope, e: Entry) -> list[Val]:
        """The state."""
        assert self.fold is not None
        found = []
        for n, slot in enumerate(self.fold.result.parameters):
            load = "ld_f64(E, W)" if slot.type.is_float else "ld_i64(E, W)"
            load += " != 0" if slot.type.kind is Kind.BOOLEAN else ""
            found.append(Val(slot.type, (scope.let(expr(load, E=e.address, W=self._field(n)), "field"),)))
        return found

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        assert self.fold is not None
        made = user_values(scope, self.fold.add, [*self.fields(scope, e), *values], self.span)
        for n, value in enumerate(made):
            (word,) = value_words(value)
            scope.writer.code("st_i64(E, W, V)", E=e.address, W=self._field(n), V=word)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        raise AssertionError("states of a user's aggregate in panes that are merged")

    def _field(self, n: int) -> Word:
        return Word(self.word + n, f"{self.owner}_FIELD{self.number}_{n}")
