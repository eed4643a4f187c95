"""Trigger: the serial loop over events, each program a transaction that leaves all of its writes or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from cq.errors import Span
from cq.lang.functions import Failure
from cq.planner.operators import Trigger
from cq.planner.plan.transactions import (
    FAILURES,
    Access,
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    KeyedTable,
    Read,
    Reject,
    Set,
    Step,
    Update,
    frame_starts,
)
from cq.reference.evaluate import Row, evaluator, keys_of, rows_of
from cq.reference.operator import Clock, RowOperator, nulls, runs


class Rejected(Exception):
    """The event leaves no trace; the message is the reason."""


class Transaction:
    """One program processing one event: its frame, what it wrote by table and key (None: no row), what it emits."""

    def __init__(self, frame: list[Any], width: int) -> None:
        self.frame: Any = frame + [None] * (width - len(frame))  # a list, which expressions read like a row
        self.writes: dict[tuple[int, Row], Row | None] = {}
        self.emitted: list[Row] = []


Run = Callable[[Transaction], None]


@runs("trigger")
class TriggerRows(RowOperator):
    """The tables as dictionaries from key to row."""

    def __init__(self, node: Trigger, clock: Clock) -> None:
        super().__init__(node, clock)
        self._node = node
        self._width = len(node.frame)
        self._starts = frame_starts(node.width, node.tables, node.accesses)
        self._tables: list[dict[Row, Row]] = [_initial(t) for t in node.tables]
        self._conditions = {t.name: [evaluator(c.expr) for c in t.conditions] for t in node.tables}
        self._keys = [keys_of(a.key if isinstance(a, Access) else ()) for a in node.accesses]
        self._made = sum(len(p.outputs) for p in node.programs)
        self._whens = [None if p.when is None else evaluator(p.when) for p in node.programs]
        self._steps = [self._all(p.steps) for p in node.programs]

    def on_row(self, port: int, row: Row) -> None:
        before = 0
        for number, program in enumerate(self._node.programs):
            for which, reason, made in self._transact(number, row):
                beside = (*nulls(before), *made, *nulls(self._made - before - len(made)))
                self.out.append((*row, which, reason, *beside))
            before += len(program.outputs)
        if self._node.contents:
            self.out.clear()

    def _transact(self, number: int, row: Row) -> list[tuple[int, str | None, Row]]:
        """(which, reason, columns) of the rows of the program for the event."""
        transaction = Transaction(list(row), self._width)
        when = self._whens[number]
        try:
            if when is not None and not when(transaction.frame):
                return []
            self._steps[number](transaction)
        except Failure as failure:
            if self._node.programs[number].strict:
                raise
            return self._refuse(number, FAILURES[failure.code])
        except Rejected as rejected:
            if self._node.programs[number].strict:
                raise _refused(rejected, self._node.programs[number].span) from None
            return self._refuse(number, str(rejected))
        for (table, key), written in transaction.writes.items():
            if written is None:
                self._tables[table].pop(key, None)
            else:
                self._tables[table][key] = written
        return [(2 * number, None, made) for made in transaction.emitted]

    def _refuse(self, number: int, reason: str) -> list[tuple[int, str | None, Row]]:
        """The rows of a program for an event that it rejects, which is counted."""
        name = self._node.programs[number].name
        self.rejected_events[name] = self.rejected_events.get(name, 0) + 1
        return [(2 * number + 1, reason, ())]

    @property
    def tables(self) -> Sequence[KeyedTable]:
        """The tables, by their numbers."""
        return self._node.tables

    def rows_of(self, number: int) -> list[Row]:
        """The current rows of a table of the operator, in order of creation."""
        return [*self._tables[number].values()]

    def on_end(self) -> None:
        if not self._node.contents:
            return
        before, width = 0, len(self._node.schema) - 1
        for number, (table, rows) in enumerate(zip(self._node.tables, self._tables, strict=True)):
            for kept in rows.values():
                self.out.append((number, *nulls(before), *kept, *nulls(width - before - len(kept))))
            before += len(table.fields)

    # -- steps

    def _all(self, steps: Sequence[Step]) -> Run:
        runs = [self._one(s) for s in steps]

        def run(transaction: Transaction) -> None:
            for each in runs:
                each(transaction)

        return run

    def _one(self, step: Step) -> Run:
        match step:
            case Read():
                return lambda t: self._read(step.access, t)
            case Update():
                return self._update(step)
            case Insert():
                return self._insert(step)
            case Delete():
                return self._delete(step)
            case Choose():
                met, then, otherwise = evaluator(step.condition), self._all(step.then), self._all(step.otherwise)
                return lambda t: then(t) if met(t.frame) else otherwise(t)
            case Set():
                return self._set(step)
            case Each():
                return self._each(step)
            case Reject():
                return _reject(step)
            case Emit():
                return _emit(step)

    def _read(self, access: int, transaction: Transaction) -> None:
        number = self._node.access(access).table
        key = self._keys[access](transaction.frame)
        start = self._starts[access]
        kept = transaction.writes[number, key] if (number, key) in transaction.writes else self._tables[number].get(key)
        table = self._node.tables[number]
        values = nulls(len(table.fields)) if kept is None or None in key else kept
        transaction.frame[start : start + 1 + len(values)] = [values is kept, *values]

    def _update(self, step: Update) -> Run:
        start, table = self._place(step.access)
        met = evaluator(step.condition) if step.condition is not None else None
        values = rows_of(step.values)

        def run(t: Transaction) -> None:
            if not t.frame[start] or (met is not None and not met(t.frame)):
                return
            new = t.frame[start + 1 : start + 1 + len(table.fields)]
            for column, value in zip(step.columns, values(t.frame), strict=True):
                new[column] = value
            self._demand(table, new)
            self._write(step.access, t, new)

        return run

    def _insert(self, step: Insert) -> Run:
        start, table = self._place(step.access)
        values = rows_of(step.values)
        conflict = self._all(step.conflict) if step.conflict is not None else None

        def run(t: Transaction) -> None:
            new = list(values(t.frame))
            self._demand(table, new)
            if not t.frame[start]:
                self._write(step.access, t, new)
            elif conflict is None:
                raise Rejected(table.duplicate())
            else:
                conflict(t)

        return run

    def _delete(self, step: Delete) -> Run:
        start, table = self._place(step.access)
        met = evaluator(step.condition) if step.condition is not None else None

        def run(t: Transaction) -> None:
            if t.frame[start] and (met is None or met(t.frame)):
                t.writes[self._node.access(step.access).table, self._key(step.access, t)] = None
                t.frame[start : start + 1 + len(table.fields)] = [False, *nulls(len(table.fields))]

        return run

    def _set(self, step: Set) -> Run:
        value, place = evaluator(step.value), self._starts[step.local]

        def run(t: Transaction) -> None:
            t.frame[place] = value(t.frame)

        return run

    def _each(self, step: Each) -> Run:
        arrays, inside, place = [evaluator(a) for a in step.arrays], self._all(step.steps), self._starts[step.local]

        def run(t: Transaction) -> None:
            for number, elements in enumerate(zip_longest(*(a(t.frame) or () for a in arrays)), 1):
                new = (*elements, number) if step.numbered else elements
                t.frame[place : place + len(new)] = new
                inside(t)

        return run

    def _place(self, access: int) -> tuple[int, KeyedTable]:
        return self._starts[access], self._node.tables[self._node.access(access).table]

    def _key(self, access: int, transaction: Transaction) -> Row:
        return self._keys[access](transaction.frame)

    def _write(self, access: int, transaction: Transaction, new: list[Any]) -> None:
        """Write the row of the access."""
        start = self._starts[access]
        transaction.writes[self._node.access(access).table, self._key(access, transaction)] = tuple(new)
        transaction.frame[start : start + 1 + len(new)] = [True, *new]

    def _demand(self, table: KeyedTable, new: list[Any]) -> None:
        """Reject the event if the row is not allowed in the table."""
        for column, (field, value) in enumerate(zip(table.fields, new, strict=True)):
            if value is None and not field.nullable:
                raise Rejected(table.missing(column))
        for condition, met in zip(table.conditions, self._conditions[table.name], strict=True):
            if met(tuple(new)) is False:
                raise Rejected(table.broken(condition))


def replayed(node: Trigger, events: Iterable[Row], rejected: list[tuple[str, int]]) -> Iterator[tuple[int | None, Row]]:
    """The trigger's rows of these events, in order: each with the number of its event, or None at the end of input.

    rejected: receives, at the end, each program's name and how many events it has rejected.
    """
    loop = TriggerRows(node, Clock())
    for number, event in enumerate(events):
        loop.on_row(0, event)
        yield from ((number, row) for row in loop.out)
        loop.out.clear()
    loop.on_end()
    rejected.extend(loop.rejected_events.items())
    yield from ((None, row) for row in loop.out)


def _initial(table: KeyedTable) -> dict[Row, Row]:
    return {tuple(row[c] for c in table.key): row for row in table.rows}


def _refused(rejected: Rejected, span: Span) -> Failure:
    failure = Failure("CQ0711", str(rejected))
    failure.span = span
    return failure


def _reject(step: Reject) -> Run:
    reason = evaluator(step.reason)

    def run(t: Transaction) -> None:
        raise Rejected(reason(t.frame) or "")

    return run


def _emit(step: Emit) -> Run:
    met = evaluator(step.condition) if step.condition is not None else None
    values = rows_of(step.values)

    def run(t: Transaction) -> None:
        if met is None or met(t.frame):
            t.emitted.append(tuple(values(t.frame)))

    return run
