"""Former contents of keyed table entries that elements of arrays have changed: records that live for the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from cq.codegen.state.hash_tables import EntryField, TableLocals, null_words, outlives
from cq.codegen.state.keyed_rows import KeyedLayout, delete_row
from cq.codegen.values import Scope, Val, kept_parts, value_words
from cq.codegen.writer import expr
from cq.errors import NOWHERE
from cq.lang.types import Physical
from cq.records import dataclass
from cq.runtime.layout.abi import ErrorCode

# words of a record; after them the key, if it has one, and the columns, for a text its place and length
ENTRY, FIRST = range(2)
GONE = 0  # in place of an entry: it did not exist


@dataclass(frozen=True, slots=True)
class Undo:
    """The records of one loop over arrays and one table, one after the other.

    fields: those that the loop may change.  times: how often, at most, per element.  first, end: locals, where the
    records begin and end; equal if there are none.  by_key: entries are made and deleted before `put_back`, so that
    they move: a record has the key of its row. Otherwise it has the address.
    """

    scope: Scope
    table: TableLocals
    layout: KeyedLayout
    fields: Sequence[EntryField]
    times: int
    by_key: bool
    first: str
    end: str

    @classmethod
    def of(
        cls,
        scope: Scope,
        table: TableLocals,
        layout: KeyedLayout,
        fields: Sequence[EntryField],
        times: int,
        by_key: bool,
    ) -> Undo:
        """With locals of its own, for a step that has changed nothing yet."""
        first, end = (scope.writer.let(ast.Constant(0), hint) for hint in ("undo", "undo_end"))
        return cls(scope, table, layout, fields, times, by_key, first, end)

    @property
    def _columns(self) -> int:
        """Where in a record the columns begin."""
        return FIRST + sum(map(_words, self.layout.keys.fields)) * self.by_key

    @property
    def _nulls(self) -> int:
        """Where in a record the null words are."""
        return self._columns + sum(map(_words, self.fields))

    @property
    def _bytes(self) -> int:
        return 8 * (self._nulls + len(null_words(self.fields)))

    def begin(self, elements: ast.expr) -> None:
        """Reserve room for the records of this many elements, all at once: checking for each record took an eighth of
        Grep and Sum's time."""
        scope = self.scope
        scope.writer.set(self.first, expr("step_bytes(state, N * SIZE)", N=elements, SIZE=self.times * self._bytes))
        with scope.when(expr("F == 0", F=self.first)):
            scope.fail(ErrorCode.NO_MEMORY, "rows of a table", NOWHERE)
        scope.writer.set(self.end, expr("F + 0", F=self.first))

    def keep(self, entry: str, key: Sequence[Val]) -> None:
        """Note the fields of the entry with this key, or that it does not exist."""
        scope, code, record = self.scope, self.scope.writer.code, self.end
        code("st_i64(R, W, E)", R=record, W=ENTRY, E=entry)
        if self.by_key:
            for (_, at), part in zip(_places(self.layout.keys.fields, FIRST), key, strict=True):
                for n, word in enumerate(value_words(part)):
                    code("st_i64(R, W, V)", R=record, W=at + n, V=word)
            with scope.when(expr("E != GONE", E=entry, GONE=GONE)):
                self._keep_fields(entry)
        else:
            self._keep_fields(entry)
        scope.writer.set(self.end, expr("R + SIZE", R=record, SIZE=self._bytes))

    def _keep_fields(self, entry: str) -> None:
        scope, code, record = self.scope, self.scope.writer.code, self.end
        for f, at in _places(self.fields, self._columns):
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

    def put_back(self) -> None:
        """Restore every entry, the last change undone first; delete entries that were made."""
        scope, record = self.scope, self.end
        with scope.writer.while_(expr("R != F", R=record, F=self.first)), scope.block():
            scope.writer.set(record, expr("R - SIZE", R=record, SIZE=self._bytes))
            entry = scope.let(expr("ld_i64(R, W)", R=record, W=ENTRY), "entry")
            if not self.by_key:
                self._put_fields(entry)
            else:
                places = _places(self.layout.keys.fields, FIRST)
                at = ast.Name(record, ast.Load())
                key = [Val(f.type, tuple(scope.let(p, "key") for p in kept_parts(at, w, f.type))) for f, w in places]
                with scope.when(expr("E == GONE", E=entry, GONE=GONE)):
                    delete_row(scope, self.table, self.layout, key)
                with scope.otherwise():
                    self._put_fields(self.layout.keys.probe(self.table, key, ast.Constant(0), lambda _: None))

    def _put_fields(self, entry: ast.expr) -> None:
        scope, code, record = self.scope, self.scope.writer.code, self.end
        for f, at in _places(self.fields, self._columns):
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


def _places(fields: Sequence[EntryField], first: int) -> Iterator[tuple[EntryField, int]]:
    """The columns, and their places in a record, from a word on."""
    for f in fields:
        yield f, first
        first += _words(f)
