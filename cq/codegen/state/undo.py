"""What entries of keyed tables held before elements of arrays changed them: records that live for the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from cq.codegen.state.hash_tables import EntryField, TableLocals, null_words, outlives
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.errors import NOWHERE
from cq.lang.types import Physical
from cq.records import dataclass
from cq.runtime.layout.abi import ErrorCode

ENTRY, FIRST = range(2)  # words of a record; then the columns, of a text where it is and its length


@dataclass(frozen=True, slots=True)
class Undo:
    """The records of one loop over arrays and one table, one behind the other. No entry may move before `put_back`.

    fields: that the loop may change.  times: how often, at most, for an element.  first, end: locals, where the records
    begin and end; equal where there are none.
    """

    scope: Scope
    table: TableLocals
    fields: Sequence[EntryField]
    times: int
    first: str
    end: str

    @classmethod
    def of(cls, scope: Scope, table: TableLocals, fields: Sequence[EntryField], times: int) -> Undo:
        """With locals of its own, for a step that has changed nothing yet."""
        first, end = (scope.writer.let(ast.Constant(0), hint) for hint in ("undo", "undo_end"))
        return cls(scope, table, fields, times, first, end)

    @property
    def _nulls(self) -> int:
        """Where in a record the null words are."""
        return FIRST + sum(map(_words, self.fields))

    @property
    def _bytes(self) -> int:
        return 8 * (self._nulls + len(null_words(self.fields)))

    def begin(self, elements: ast.expr) -> None:
        """There is room for the records of so many elements. It is asked for once: for each record that took an eighth
        of Grep and Sum's time."""
        scope = self.scope
        scope.writer.set(self.first, expr("step_bytes(state, N * SIZE)", N=elements, SIZE=self.times * self._bytes))
        with scope.when(expr("F == 0", F=self.first)):
            scope.fail(ErrorCode.NO_MEMORY, "rows of a table", NOWHERE)
        scope.writer.set(self.end, expr("F + 0", F=self.first))

    def keep(self, entry: str) -> None:
        """Note what the fields of an entry hold."""
        scope, code, record = self.scope, self.scope.writer.code, self.end
        code("st_i64(R, W, E)", R=record, W=ENTRY, E=entry)
        for f, at in _places(self.fields):
            if f.type.physical is Physical.BYTES:
                length = scope.let(expr("string_length(E, W)", E=entry, W=f.word), "length")
                address = scope.let(expr("string_address(T, E, W)", T=self.table.table, E=entry, W=f.word), "text")
                for n, part in enumerate(outlives(scope, Val(f.type, (address, length))).parts):
                    code("st_i64(R, W, V)", R=record, W=at + n, V=part)
            else:
                for n in range(f.words):
                    code("st_i64(R, W, ld_i64(E, F))", R=record, W=at + n, E=entry, F=f.at(n))
        for n, word in enumerate(null_words(self.fields), self._nulls):
            code("st_i64(R, W, ld_i64(E, F))", R=record, W=n, E=entry, F=word)
        scope.writer.set(self.end, expr("R + SIZE", R=record, SIZE=self._bytes))

    def put_back(self) -> None:
        """Every entry holds what it held before, the last change undone first."""
        scope, code, record = self.scope, self.scope.writer.code, self.end
        with scope.writer.while_(expr("R != F", R=record, F=self.first)), scope.block():
            scope.writer.set(record, expr("R - SIZE", R=record, SIZE=self._bytes))
            entry = scope.let(expr("ld_i64(R, W)", R=record, W=ENTRY), "entry")
            for f, at in _places(self.fields):
                first = expr("ld_i64(R, W)", R=record, W=at)
                if f.type.physical is Physical.BYTES:
                    stored = expr(
                        "string_store(T, E, F, A, ld_i64(R, W)) == 0",
                        T=self.table.table, E=entry, F=f.word, A=first, R=record, W=at + 1,
                    )  # fmt: skip
                    with scope.when(stored):
                        scope.fail(ErrorCode.NO_MEMORY, "text in state", NOWHERE)
                else:
                    for n in range(f.words):
                        code("st_i64(E, F, V)", E=entry, F=f.at(n), V=expr("ld_i64(R, W)", R=record, W=at + n))
            for n, word in enumerate(null_words(self.fields), self._nulls):
                code("st_i64(E, F, ld_i64(R, W))", E=entry, F=word, R=record, W=n)


def _words(f: EntryField) -> int:
    return 2 if f.type.physical is Physical.BYTES else f.words


def _places(fields: Sequence[EntryField]) -> Iterator[tuple[EntryField, int]]:
    """The columns, and where they begin in a record."""
    at = FIRST
    for f in fields:
        yield f, at
        at += _words(f)
