"""Look-ups in keyed tables: `s JOIN t FOR SYSTEM_TIME AS OF s.ts ON t.key = s.k`, a program that reads and emits.

A row finds what all transactions before it, and those of its own event, have left: position decides, as everywhere.

A row finds what all transactions before it, and those of its own event, have left: position decides, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from cq.errors import Span, compile_error
from cq.grammar import ast, inline
from cq.lang.expressions import Case, Column, Expr, Literal, conjunction, conjuncts, transform
from cq.lang.types import BOOLEAN
from cq.planner.binding.built_expressions import column, columns
from cq.planner.binding.joins.mistakes import condition_span, refused_look_up
from cq.planner.binding.joins.sides import by_common_names, condition, equated, joined_relation, side_by_side
from cq.planner.binding.joins.temporal import time_as_of
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Relation, renamed, with_nulls
from cq.planner.binding.tables import table_relation
from cq.planner.binding.triggers.body import BoundTrigger
from cq.planner.operators import Filter, Project
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import Access, Emit, KeyedTable, Program, Read
from cq.records import replace

Ask: TypeAlias = Callable[[BoundTrigger, int], LogicalNode]
"""(look-up, columns of the rows that look up) -> those rows, each with the row of the table that it finds."""


def look_up(
    node: ast.Join,
    left: Relation,
    table: KeyedTable,
    ask: Ask,
    parameters: Mapping[str, ParameterValue],
    before: BoundTrigger | None,
) -> Relation | None:
    """`left [LEFT] JOIN table FOR SYSTEM_TIME AS OF left.ts ON …`.

    before: the look-up that produced the rows of the left side, if its table shares triggers with this one: then both
    rows are read at once. None if that needs a computed key.
    """
    if node.kind not in {"INNER", "LEFT"} or node.asof:
        raise refused_look_up(node)
    named = node.right
    assert isinstance(named, ast.TableRef) and named.as_of is not None, "no look-up"
    time_as_of(left, named.as_of, parameters)
    left = _as_events(left)
    right = with_nulls(table_relation(table.name, table.fields))
    if named.alias is not None:
        right = renamed(right, named.alias, named.columns, named.span)
    if node.natural:
        node = by_common_names(node, left, right)
    width = len(left.node.schema)
    parts = conjuncts(condition(node, side_by_side(left, right, width), left, right, parameters))
    keys, rest = _keys(parts, table, width, condition_span(node))
    outer = node.kind == "LEFT"
    if before is None:
        rows = ask(_program(left, table, keys, outer, named), width)
    elif all(isinstance(k, Column) for k in keys):
        own = width - len(before.program.outputs)
        rows = ask(_also(before, own, table, [k for k in keys if isinstance(k, Column)], outer), own)
    else:
        return None
    if rest and outer:
        rows = _only_where(rows, conjunction(rest), width, node.span)
    elif rest:
        rows = Filter(rows, conjunction(rest), span=node.span)
    return joined_relation(rows, node, left, right)


def _as_events(left: Relation) -> Relation:
    """The relation as its rows leave the operator, which merges the events of several streams: there all columns except
    the event time may be NULL, even those that are never NULL in this stream.
    """
    schema = left.node.schema

    def loose(e: Expr) -> Expr:
        return replace(e, nullable=True) if isinstance(e, Column) and schema.time_of(e.index) is None else e

    columns = (replace(c, expr=transform(c.expr, loose)) for c in left.columns)
    return replace(left, columns=tuple(columns))


def _keys(parts: Sequence[Expr], table: KeyedTable, width: int, span: Span) -> tuple[tuple[Expr, ...], list[Expr]]:
    """The values of the key, over the left side, and the other conditions. CQ0408 if ON does not give the key."""
    found: dict[int, Expr] = {}
    rest = []
    for part in parts:
        pair = equated(part, width)
        at = pair[1].index - width if pair is not None and isinstance(pair[1], Column) else -1
        if pair is not None and at in table.key and at not in found:
            found[at] = pair[0]
        else:
            rest.append(part)
    missing = [table.fields[c] for c in table.key if c not in found]
    if missing:
        wanted = " and ".join(f.name for f in missing)
        raise compile_error(
            "CQ0408",
            f'"{table.name}" has one row for each key, but ON does not compare {wanted} with a value of its type',
            span,
            help=(
                f"write {inline.name(table.name)}.{inline.name(missing[0].name)} = s.column",
                f"or CAST(s.column AS {missing[0].type}), where it has another type",
            ),
        )
    return tuple(found[c] for c in table.key), rest


def _program(
    left: Relation, table: KeyedTable, keys: tuple[Expr, ...], outer: bool, named: ast.TableRef
) -> BoundTrigger:
    """The program that reads the row and emits it; computed keys are columns of the stream."""
    stream = left.node
    computed = [k for k in keys if not isinstance(k, Column)]
    if computed:
        names = (*stream.schema.names, *(f"key {n}" for n, _ in enumerate(computed)))
        stream = Project(stream, (*columns(stream), *computed), names, span=named.span)
    width = len(stream.schema)
    place = iter(range(width - len(computed), width))
    key = tuple(k if isinstance(k, Column) else column(stream, next(place)) for k in keys)
    values = tuple(Column(f.type, True, width + 1 + n, f.name) for n, f in enumerate(table.fields))
    found = None if outer else Column(BOOLEAN, False, width, "found")
    program = Program(f"look-up in {table.name}", None, (Read(0), Emit(values, found)), table.fields)
    access = Access(0, tuple(replace(k, nullable=True) for k in key))
    return BoundTrigger(program, (access,), (table.name,), stream, left.title, named.span)


def _also(before: BoundTrigger, width: int, table: KeyedTable, keys: Sequence[Column], outer: bool) -> BoundTrigger:
    """Read the row of a further table, beside those that a look-up finds for rows with this many columns."""
    *reads, emit = before.program.steps
    assert isinstance(emit, Emit), "a look-up emits what it has found"
    number, outputs = len(before.accesses), before.program.outputs
    start = len(before.stream.schema) + number + len(outputs)
    key = tuple(replace(k, nullable=True) if k.index < width else emit.values[k.index - width] for k in keys)
    values = (*emit.values, *(Column(f.type, True, start + 1 + n, f.name) for n, f in enumerate(table.fields)))
    met = () if emit.condition is None else (emit.condition,)
    met = met if outer else (*met, Column(BOOLEAN, False, start, "found"))
    steps = (*reads, Read(number), Emit(values, conjunction(met) if met else None))
    program = Program(f"{before.program.name} and {table.name}", None, steps, (*outputs, *table.fields))
    tables = before.tables if table.name in before.tables else (*before.tables, table.name)
    accesses = (*before.accesses, Access(tables.index(table.name), key))
    return replace(before, program=program, accesses=accesses, tables=tables)


def _only_where(rows: LogicalNode, met: Expr, width: int, span: Span) -> LogicalNode:
    """The rows, with their columns from one on NULL unless the condition is TRUE."""
    exprs: list[Expr] = []
    for c, f in enumerate(rows.schema.fields):
        value = column(rows, c)
        nothing = Literal(f.type, True, None)
        exprs.append(value if c < width else Case(f.type, True, ((met, value),), nothing, span=span))
    return Project(rows, tuple(exprs), rows.schema.names, span=span)
