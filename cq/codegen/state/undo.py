"""What entries of keyed tables held before a transaction changed them: a chain of records that live for the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from cq.codegen.state.hash_tables import Field, TableLocals, null_words, outlives
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.errors import NOWHERE
from cq.lang.types import Physical
from cq.records import dataclass, field
from cq.runtime.layout.abi import ErrorCode

OLDER, KIND, ENTRY, FIRST = range(4)  # words of a record; then the columns, of a text where it is and its length
CHUNK_BYTES = 1024  # of room that is asked for at once: asking for each record took an eighth of Grep and Sum's time


@dataclass(frozen=True, slots=True)
class Undo:
    """latest: a local that holds the last record, 0 where there is none.  room, end: of what is free for the next.

    kinds: of records by number, the table and the fields that are kept.
    """

    scope: Scope
    latest: str
    room: str
    end: str
    kinds: list[tuple[TableLocals, Sequence[Field]]] = field(default_factory=list)

    @classmethod
    def of(cls, scope: Scope) -> Undo:
        """With locals of its own, for a step that has changed nothing yet."""
        latest, room, end = (scope.writer.let(ast.Constant(0), hint) for hint in ("undo", "room", "end"))
        return cls(scope, latest, room, end)

    def keep(self, table: TableLocals, fields: Sequence[Field], entry: str) -> None:
        """Note what these fields of an entry of a table hold. No entry may move before `put_back`."""
        scope, code = self.scope, self.scope.writer.code
        nulls = FIRST + sum(map(_words, fields))
        size = nulls + len(null_words(fields))
        record = self._record(8 * size)
        number = len(self.kinds)
        self.kinds.append((table, fields))
        for word, value in ((OLDER, expr("L", L=self.latest)), (KIND, number), (ENTRY, expr("E", E=entry))):
            code("st_i64(R, W, V)", R=record, W=word, V=value)
        for f, at in _places(fields):
            if f.type.physical is Physical.BYTES:
                length = scope.let(expr("string_length(E, W)", E=entry, W=f.word), "length")
                address = scope.let(expr("string_address(T, E, W)", T=table.table, E=entry, W=f.word), "text")
                for n, part in enumerate(outlives(scope, Val(f.type, (address, length))).parts):
                    code("st_i64(R, W, V)", R=record, W=at + n, V=part)
            else:
                for n in range(f.words):
                    code("st_i64(R, W, ld_i64(E, F))", R=record, W=at + n, E=entry, F=f.at(n))
        for n, word in enumerate(null_words(fields), nulls):
            code("st_i64(R, W, ld_i64(E, F))", R=record, W=n, E=entry, F=word)
        scope.writer.set(self.latest, record)

    def _record(self, size: int) -> ast.expr:
        """Room for so many bytes."""
        scope, writer = self.scope, self.scope.writer
        with scope.when(expr("wsub(E, R) < SIZE", E=self.end, R=self.room, SIZE=size)):
            chunk = max(CHUNK_BYTES, size)
            writer.set(self.room, expr("step_bytes(state, SIZE)", SIZE=chunk))
            with scope.when(expr("R == 0", R=self.room)):
                scope.fail(ErrorCode.NO_MEMORY, "rows of a table", NOWHERE)
            writer.set(self.end, expr("R + SIZE", R=self.room, SIZE=chunk))
        record = scope.let(expr("R + 0", R=self.room), "record")
        writer.set(self.room, expr("R + SIZE", R=self.room, SIZE=size))
        return record

    def put_back(self) -> None:
        """Every entry holds what it held before, the last change undone first."""
        scope, code = self.scope, self.scope.writer.code
        with scope.writer.while_(expr("L != 0", L=self.latest)), scope.block():
            entry = scope.let(expr("ld_i64(L, W)", L=self.latest, W=ENTRY), "entry")
            for number, (table, fields) in enumerate(self.kinds):
                with scope.when(expr("ld_i64(L, W) == N", L=self.latest, W=KIND, N=number)):
                    for f, at in _places(fields):
                        first = expr("ld_i64(L, W)", L=self.latest, W=at)
                        if f.type.physical is Physical.BYTES:
                            stored = expr(
                                "string_store(T, E, F, A, ld_i64(L, W)) == 0",
                                T=table.table, E=entry, F=f.word, A=first, L=self.latest, W=at + 1,
                            )  # fmt: skip
                            with scope.when(stored):
                                scope.fail(ErrorCode.NO_MEMORY, "text in state", NOWHERE)
                        else:
                            for n in range(f.words):
                                old = expr("ld_i64(L, W)", L=self.latest, W=at + n)
                                code("st_i64(E, F, V)", E=entry, F=f.at(n), V=old)
                    nulls = FIRST + sum(map(_words, fields))
                    for n, word in enumerate(null_words(fields), nulls):
                        code("st_i64(E, F, ld_i64(L, W))", E=entry, F=word, L=self.latest, W=n)
            scope.writer.set(self.latest, expr("ld_i64(L, W)", L=self.latest, W=OLDER))


def _words(f: Field) -> int:
    return 2 if f.type.physical is Physical.BYTES else f.words


def _places(fields: Sequence[Field]) -> Iterator[tuple[Field, int]]:
    """The columns, and where they begin in a record."""
    at = FIRST
    for f in fields:
        yield f, at
        at += _words(f)
