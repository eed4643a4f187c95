"""What follows an operator at the end of all inputs, written once: a function that takes its rows on.

Every function that emits at the end has the code of all that its rows reach. In a chain of joins each of them reaches
all later joins, so the code would grow with the square of their number: two `x IN (SELECT …)` in a CASE took 10 s of
CPU to compile, and take 2.5. So where several of these functions reach the rows of an operator with state, and more
state follows, they call one function with the row. Functions that take the rows of sources do not: a call costs more
there than a match.
"""

from __future__ import annotations

import ast
from collections import Counter

from cq.codegen.flow import PASSED_ARGUMENTS, Event, function, reached, row_of
from cq.codegen.ports import Position
from cq.codegen.row_words import value_of, word_names
from cq.codegen.stage_draft import StageDraft
from cq.codegen.writer import expr
from cq.planner.plan.node import LogicalNode
from cq.runtime.layout import abi

SEVERAL = 2  # functions that emit at the end and reach an operator, from which its rows are passed on


def passing_nodes(stage: StageDraft) -> frozenset[int]:
    """The ids of the operators whose rows are passed on."""
    emitting = [n for n in stage.plan.nodes() if n.emits_at_end and id(n) not in stage.gathered]
    times = Counter(id(found) for node in emitting for found in reached(stage, node))
    return frozenset(
        id(n) for n in stage.plan.nodes() if n.keeps_state and times[id(n)] >= SEVERAL and _state_follows(stage, n)
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
    serial, turn, arrival = (ast.Name(n, ast.Load()) for n in ("serial", "turn", "arrival"))
    never = ast.Constant(abi.NEVER)
    event = Event(serial, Position(serial, never, turn, ast.Constant(0), arrival), ast.Constant(abi.ERROR), expr("-1"),
                  instant=never)  # fmt: skip
    arguments = (*PASSED_ARGUMENTS, *(name for column in columns for name in column))
    with function(stage, name, arguments, node, event) as flow:
        values = [value_of(flow.scope, f, names) for f, names in zip(fields, columns, strict=True)]
        flow.passing = node
        flow.deliver(node, row_of(flow.scope, values))
        flow.leave(ast.Constant(abi.DONE))
