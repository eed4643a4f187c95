"""filter, late_rows, project, union, rows_of: operators that keep nothing."""

from __future__ import annotations

from functools import partial

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, computed, consumes
from cq.codegen.values import Row, Scope, Val, is_true
from cq.codegen.writer import expr
from cq.lang.expressions import And, Call, Column, Expr, IsNull, Literal, walk
from cq.lang.types import Physical
from cq.planner.operators import Filter, Project, UnionAll
from cq.planner.physical.crossing_rows import RowsOf
from cq.planner.plan.node import LogicalNode


@consumes("filter", copies_text=False)
def consume_filter(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Downstream code runs if the predicate is TRUE.

    If the only work left is to write a row of cheap columns, it is always written, and counted if the predicate holds:
    near one half this is twice as fast as a branch the processor has to guess (docs/benchmarks.md).
    """
    assert isinstance(node, Filter)
    scope = flow.scope
    passes = is_true(emit(scope, row, node.predicate))
    row = _without_nulls(scope, row, len(node.schema), _never_null(node.predicate))
    if flow.roomy and flow.keep is None and scope.guard is None and _only_writes(flow, node):
        flow.keep = scope.guard = scope.let(passes, "keep")
        flow.deliver(node, row)
        flow.keep = scope.guard = None
        return
    with scope.when(passes):
        flow.deliver(node, row)


@consumes("late_rows", copies_text=False)
def consume_late_rows(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A row of a source comes with its lateness."""
    assert flow.late is not None, "a row of a source without its lateness"
    with flow.scope.when(expr("L != 0", L=flow.late)):
        flow.deliver(node, row)


def _never_null(predicate: Expr) -> set[int]:
    """Columns that are not NULL where the predicate is TRUE."""
    match predicate:
        case And(args=args):
            return {column for arg in args for column in _never_null(arg)}
        case Call(function=f, args=(IsNull(arg=Column(index=index)),)) if f.native == "not":
            return {index}
        case Call(function=f, args=args) if f.compares is not None:
            plain = [arg for arg in args if isinstance(arg, Column) or _is_harmless(arg)]
            return {x.index for arg in plain for x in walk(arg) if isinstance(x, Column)}
    return set()


def _without_nulls(scope: Scope, row: Row, width: int, columns: set[int]) -> Row:
    """The row as seen after a predicate: columns whose NULLs it rejects are not NULL."""

    def column(index: int) -> Val:
        value = row.column(index)
        return Val(value.type, value.parts, key=value.key) if index in columns else value

    return Row(scope, [partial(column, i) for i in range(width)], row.given) if columns else row


# kernel forms that may safely be computed for a row that is dropped
_HARMLESS = {
    "add",
    "subtract",
    "multiply",
    "negate",
    "abs",
    "not",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
}


def _only_writes(flow: Flow, node: LogicalNode) -> bool:
    """Whether everything downstream is projections of harmless, fixed-width columns into ports."""
    if any(f.type.physical is Physical.BYTES for f in node.schema.fields) and flow.stage.outputs.get(id(node)):
        return False
    for reader, _ in flow.stage.readers.get(id(node), ()):
        if not isinstance(reader, Project) or not all(_is_harmless(e) for e in reader.exprs):
            return False
        if not _only_writes(flow, reader):
            return False
    return True


def _is_harmless(e: Expr) -> bool:
    return e.type.physical is not Physical.BYTES and all(
        isinstance(x, Column | Literal) or (isinstance(x, Call) and x.function.native in _HARMLESS) for x in walk(e)
    )


@consumes("project", copies_text=False)
def consume_project(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Columns are computed where they are first needed; those that can fail, here and in order."""
    assert isinstance(node, Project)
    flow.deliver(node, computed(flow, node.exprs, row))


@consumes("union", copies_text=False)
def consume_union(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A row of any branch is passed on unchanged."""
    assert isinstance(node, UnionAll)
    flow.deliver(node, row)


@consumes("rows_of", copies_text=False)
def consume_rows_of(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A row of this operator is passed on unchanged. Its non-NULL columns may be NULL in rows of other operators."""
    assert isinstance(node, RowsOf)
    indices = dict(zip(range(len(node.schema)), node.indices, strict=True))
    own = {i for i, f in enumerate(node.schema.fields) if not f.nullable}
    moved = Row(flow.scope, [partial(row.column, indices[i]) for i in indices])
    with flow.scope.when(is_true(emit(flow.scope, row, node.condition))):
        flow.deliver(node, _without_nulls(flow.scope, moved, len(indices), own))
