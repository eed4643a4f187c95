"""What records keep of rows for aggregates that recompute a frame row by row: the arguments, computed once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from cq.codegen.expressions.emit import emit
from cq.codegen.expressions.user import is_user_call
from cq.codegen.state.accumulators import Accumulator, Entry
from cq.codegen.state.aggregates import Accumulators
from cq.codegen.state.hash_tables import EntryField, lay_out, load_fields, store_field, store_nulls, string_words
from cq.codegen.values import Row, Scope, Val, any_null, is_true
from cq.codegen.writer import expr
from cq.lang.expressions import Expr, walk
from cq.lang.types import BIGINT
from cq.records import dataclass
from cq.runtime.layout.words import Word

Once = Callable[[Accumulator, Val, Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class KeptArguments:
    """The arguments that accumulators share. flag: the word that is 1 if the row is counted; -1: it always is."""

    args: tuple[Expr, ...]
    filter: Expr | None
    keeps_null: bool
    fields: tuple[EntryField, ...]
    flag: int
    accumulators: tuple[Accumulator, ...]

    def write(self, scope: Scope, e: Entry, row: Row) -> None:
        """Keep the arguments of a row in the record, whose words are 0."""
        if self.filter is None:
            self._write(scope, e, row)
        else:
            with scope.when(is_true(emit(scope, row, self.filter))):
                self._write(scope, e, row)

    def _write(self, scope: Scope, e: Entry, row: Row) -> None:
        values = [emit(scope, row, a) for a in self.args]
        null = None if self.keeps_null else any_null(values)
        if null is None:
            self._put(scope, e, values)
        else:
            with scope.when(expr("not N", N=null)):
                self._put(scope, e, [Val(v.type, v.parts) for v in values])

    def _put(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        for f, value in zip(self.fields, values, strict=True):
            store_field(scope, f, e.address, e.table, value)
        store_nulls(scope, self.fields, e.address, values)
        if self.flag >= 0:
            scope.writer.code("st_i64(E, W, 1)", E=e.address, W=self.flag)

    def count(self, scope: Scope, found: Entry, kept: Entry, arrival: ast.expr, once: Once) -> None:
        """Add the kept arguments to the accumulators of another table's entry. once: as in `Accumulators.add`."""
        if self.flag < 0:
            self._count(scope, found, kept, arrival, once)
        else:
            with scope.when(expr("ld_i64(E, W) != 0", E=kept.address, W=self.flag)):
                self._count(scope, found, kept, arrival, once)

    def _count(self, scope: Scope, found: Entry, kept: Entry, arrival: ast.expr, once: Once) -> None:
        values = load_fields(scope, self.fields, kept.address, kept.table)
        for accumulator in self.accumulators:
            placed = [Val(BIGINT, (arrival,))] if accumulator.by_position else []
            with scope.block():
                if accumulator.distinct:
                    once(accumulator, values[0], lambda accumulator=accumulator: accumulator.add(scope, found, values))  # type: ignore[misc]
                else:
                    accumulator.add(scope, found, [*placed, *values])


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The arguments of all accumulators, and the first word after them."""

    of: tuple[KeptArguments, ...]
    next_word: int

    @staticmethod
    def lay_out(accumulators: Accumulators, first_word: int) -> KeptValues:
        shared: dict[tuple[tuple[Expr, ...], Expr | None, bool], list[Accumulator]] = {}
        for accumulator in accumulators.all:
            shared.setdefault((accumulator.args, accumulator.filter, accumulator.keeps_null), []).append(accumulator)
        made: list[KeptArguments] = []
        word = first_word
        for number, ((args, condition, keeps_null), mine) in enumerate(shared.items()):
            flag = -1
            if condition is not None or (not keeps_null and any(a.nullable for a in args)):
                flag, word = Word(word, f"FRAMED_COUNTS{number}"), word + 1
            columns = [(a.type, a.nullable and keeps_null) for a in args]
            fields, word = lay_out(columns, word, f"FRAMED_ARGUMENT{number}_")
            made.append(KeptArguments(args, condition, keeps_null, fields, flag, tuple(mine)))
        return KeptValues(tuple(made), word)

    @property
    def strings(self) -> tuple[int, ...]:
        return tuple(w for kept in self.of for w in string_words(kept.fields))

    def write(self, scope: Scope, e: Entry, row: Row) -> None:
        """Keep in the record what the accumulators need of a row."""
        for kept in self.of:
            if kept.filter is None:
                for arg in kept.args:
                    if any(map(is_user_call, walk(arg))):
                        emit(scope, row, arg)  # once for all: it may call Python
            with scope.block():
                kept.write(scope, e, row)

    def count(self, scope: Scope, found: Entry, record: Entry, arrival: ast.expr, once: Once) -> None:
        """Add a record's kept values to every accumulator. arrival: greater for a later row."""
        for kept in self.of:
            with scope.block():
                kept.count(scope, found, record, arrival, once)
