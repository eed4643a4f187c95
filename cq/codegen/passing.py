"""What follows an operator, written once: a function that takes its rows on.

A function that takes or makes rows has the code of all that they reach. In a chain of joins each of them reaches all
later joins, so the code would grow with the square of their number: two `x IN (SELECT …)` in a CASE took 10 s of
CPU to compile, and take 2.5 since. So where several of these functions reach the rows of an operator with state, and
more state follows, they call one function with the row.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

from cq.codegen.flow import PASS_ROW, PASSED_ARGUMENTS, Event, function, passed_row_arguments, reached, row_of
from cq.codegen.ports import Position
from cq.codegen.row_words import value_of, word_names
from cq.codegen.stage_draft import StageDraft
from cq.codegen.writer import expr
from cq.planner.plan.node import LogicalNode
from cq.runtime.layout import abi

# From how many functions an operator's rows are reached before they are passed on. A call takes longer than a match in
# a join of two sources, and is made for each row: functions of sources call one only from the third on. At the end it
# is made for each group or unmatched row, once: the shorter code is worth it from the second on.
LEAST_FUNCTIONS_AT_END = 2
LEAST_SOURCES = 3


def passing_at_end(stage: StageDraft) -> frozenset[int]:
    """The ids of the operators whose rows are passed on at the end."""
    emitting = [n for n in stage.plan.nodes() if n.emits_at_end and id(n) not in stage.gathered]
    return _reached_by(stage, emitting, LEAST_FUNCTIONS_AT_END)


def passing_rows(stage: StageDraft) -> frozenset[int]:
    """The ids of the operators whose rows are passed on when the row of a source makes them."""
    if stage.lanes or stage.gathered:  # of which code that knows the branch or the instant takes the rows
        return frozenset()
    return _reached_by(stage, stage.leaves, LEAST_SOURCES)


def _reached_by(stage: StageDraft, origins: Iterable[LogicalNode], least: int) -> frozenset[int]:
    """The operators with state, and state behind them, that rows of so many origins reach."""
    times = Counter(id(found) for node in origins for found in reached(stage, node))
    return frozenset(
        id(n) for n in stage.plan.nodes() if n.keeps_state and times[id(n)] >= least and _state_follows(stage, n)
    )


def _state_follows(stage: StageDraft, node: LogicalNode) -> bool:
    """Whether an operator with state takes its rows, at once or after others without."""
    readers = (reader for at in reached(stage, node) for reader, _ in stage.readers.get(id(at), ()))
    return any(reader.keeps_state for reader in readers)


def write_passing(stage: StageDraft) -> None:
    """Write the functions that were called, and those that these call."""
    written: set[str] = set()
    while left := stage.passed.keys() - written:
        name = min(left)
        _write(stage, name, stage.passed[name])
        written.add(name)


def _write(stage: StageDraft, name: str, node: LogicalNode) -> None:
    fields = node.schema.fields
    columns = [word_names(f, f"c{i}") for i, f in enumerate(fields)]
    of_row = name.startswith(PASS_ROW)
    first = passed_row_arguments(stage) if of_row else PASSED_ARGUMENTS
    arguments = (*first, *(word for column in columns for word in column))
    with function(stage, name, arguments, node, _event(of_row)) as flow:
        values = [value_of(flow.scope, f, names) for f, names in zip(fields, columns, strict=True)]
        flow.passing, flow.has_batch = node, of_row
        flow.deliver(node, row_of(flow.scope, values))
        flow.leave(ast.Constant(abi.DONE))


def _event(of_row: bool) -> Event:
    """The event of a row that was passed: of a source's row, or of the end."""
    serial, turn, arrival, row, port, late = (
        ast.Name(n, ast.Load()) for n in ("serial", "turn", "arrival", "row", "port", "late")
    )
    never = ast.Constant(abi.NEVER)
    position = Position(serial, never, turn, ast.Constant(0), arrival)
    if of_row:
        return Event(serial, position, ast.Constant(abi.ERROR), row, port, late)
    return Event(serial, position, ast.Constant(abi.ERROR), expr("-1"), instant=never)
