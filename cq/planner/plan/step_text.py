"""Transactions in words: what each step of a trigger does, one line each, close to the SQL it comes from.

A row is named after its table, and numbered if a table has several of them; `new` is the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.errors import printable
from cq.lang.expressions import Expr, format_expr
from cq.lang.schema import Field
from cq.planner.plan.transactions import (
    Access,
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    KeyedTable,
    Local,
    Program,
    Read,
    Reject,
    Set,
    Step,
    Update,
)
from cq.records import dataclass

INDENT = "  "


@dataclass(frozen=True, slots=True)
class StepText:
    """Writes programs over one frame. called: the name of each access and local, by number.  names: columns of the
    frame."""

    tables: tuple[KeyedTable, ...]
    accesses: tuple[Access | Local, ...]
    called: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def over(
        cls, event: Sequence[Field], tables: tuple[KeyedTable, ...], accesses: tuple[Access | Local, ...]
    ) -> StepText:
        """A writer for the frame of these."""
        called = tuple(_called(accesses, tables))
        names = [f"new.{f.name}" for f in event]
        for name, access in zip(called, accesses, strict=True):
            if isinstance(access, Local):
                names.append(name)
            else:
                names += [f"EXISTS {name}", *(f"{name}.{f.name}" for f in tables[access.table].fields)]
        return cls(tables, accesses, called, tuple(names))

    def program(self, program: Program) -> tuple[str, ...]:
        """A line for the program, followed by one for each of its steps."""
        when = "" if program.when is None else f" when {self._text(program.when)}"
        strict = " (a rejection ends the run)" if program.strict else ""
        lines = (f"{program.name}{when}{strict}", *self._below(program.steps, program.outputs))
        return tuple(map(printable, lines))

    def _below(self, steps: Sequence[Step], outputs: Sequence[Field]) -> Iterator[str]:
        for step in steps:
            for line in self._lines(step, outputs):
                yield INDENT + line

    def _lines(self, step: Step, outputs: Sequence[Field]) -> Iterator[str]:
        match step:
            case Read(access=n):
                yield f"read {self._row(n)}"
            case Update(access=n, columns=columns, values=values, condition=condition):
                fields = self._table(n).fields
                sets = self._assigned([fields[c].name for c in columns], values)
                yield f"update {self.called[n]} set {sets}{self._where(condition)}"
            case Insert(access=n, values=values, conflict=conflict):
                sets = self._assigned([f.name for f in self._table(n).fields], values)
                yield f"insert {self.called[n]} with {sets}"
                if conflict is not None:
                    yield "on conflict" if conflict else "on conflict do nothing"
                    yield from self._below(conflict, outputs)
            case Delete(access=n, condition=condition):
                yield f"delete {self.called[n]}{self._where(condition)}"
            case Choose(condition=condition, then=then, otherwise=otherwise):
                yield f"if {self._text(condition)}"
                yield from self._below(then, outputs)
                if otherwise:
                    yield "else"
                    yield from self._below(otherwise, outputs)
            case Set(local=n, value=value):
                yield f"set {self.called[n]} = {self._text(value)}"
            case Each(arrays=arrays, steps=inside, numbered=numbered):
                locals = ", ".join(self.called[n] for n in step.locals)
                place = " with ordinality" if numbered else ""
                yield f"for each {locals} in {', '.join(map(self._text, arrays))}{place}"
                yield from self._below(inside, outputs)
            case Reject(reason=reason):
                yield f"reject {self._text(reason)}"
            case Emit(values=values, condition=condition):
                emitted = self._assigned([f.name for f in outputs], values)
                yield f"emit {emitted or 'the event'}{self._where(condition)}"

    def _table(self, access: int) -> KeyedTable:
        found = self.accesses[access]
        assert isinstance(found, Access), f"{access} is a local"
        return self.tables[found.table]

    def _row(self, number: int) -> str:
        """`account[new.payer] as account_1`."""
        access, table = self.accesses[number], self._table(number)
        assert isinstance(access, Access)
        row = f"{table.name}[{', '.join(map(self._text, access.key))}]"
        return row if self.called[number] == table.name else f"{row} as {self.called[number]}"

    def _assigned(self, names: Sequence[str], values: Sequence[Expr]) -> str:
        return ", ".join(f"{n} = {self._text(v)}" for n, v in zip(names, values, strict=True))

    def _where(self, condition: Expr | None) -> str:
        return "" if condition is None else f" where {self._text(condition)}"

    def _text(self, expr: Expr) -> str:
        return format_expr(expr, self.names)


def _called(accesses: Sequence[Access | Local], tables: Sequence[KeyedTable]) -> Iterator[str]:
    """The name of each access and local."""
    kinds = ["local" if isinstance(a, Local) else tables[a.table].name for a in accesses]
    for n, (access, kind) in enumerate(zip(accesses, kinds, strict=True)):
        alone = isinstance(access, Access) and kinds.count(kind) == 1
        yield kind if alone else f"{kind}_{kinds[: n + 1].count(kind)}"
