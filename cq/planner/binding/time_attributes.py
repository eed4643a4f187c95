"""Find the event time that a query names, or explain why the column is not one and how to declare one."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Sequence

from cq.errors import CompileError, Span, amount, compile_error
from cq.grammar import ast
from cq.grammar.inline import name as column_name
from cq.grammar.inline import string
from cq.lang.event_time import ProposedTime, free_name, seconds, watermark_text
from cq.lang.expressions import Cast, Column
from cq.lang.schema import Field, TimeAttribute
from cq.lang.types import DATE, DataType, Kind
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.scope import Relation
from cq.planner.operators import Aggregate, Join, LateRows, Project, Scan, SemiJoin, Sort
from cq.planner.operators.joined import UntimedJoin, apart
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.source import SourceDef
from cq.records import replace

EXAMPLE_DELAY_US = 5_000_000  # of a watermark that is proposed where nobody has looked at the rows
WINDOW = "a window"  # what needs an event time, for people
_NO_TIME = "compute one where the stream is declared, CREATE STREAM {} (at AS expression, WATERMARK FOR at, …)"


def named_time(node: ast.Node | None) -> str | None:
    """The column that a DESCRIPTOR or a column names as the time of a window, if there is one."""
    match node:
        case ast.Descriptor(columns=(name,)) | ast.ColumnRef(name, None, ()):
            return name
        case _:
            return None


def time_attribute(node: ast.Node | None, relation: Relation, binder: ExprBinder) -> TimeAttribute:
    """The time attribute a DESCRIPTOR or a column names. CQ0401 without any watermark, CQ0402 for another column."""
    if isinstance(node, ast.Descriptor):
        if len(node.columns) != 1:
            raise compile_error("CQ0403", "a window has one time column", node.span, help="name one: DESCRIPTOR(ts)")
        ref: ast.Node = ast.ColumnRef(node.columns[0], span=node.span)
    else:
        ref = node  # type: ignore[assignment]
    assert node is not None, "a window whose time is not named"
    if not isinstance(ref, ast.ColumnRef):
        raise compile_error(
            "CQ0402",
            "the time of a window must be a column",
            node.span,
            help="compute it in CREATE STREAM: ts AS expression, WATERMARK FOR ts",
        )
    expr = replace(binder, clause=Clause(WINDOW)).bind(ref)
    found = relation.node.schema.time_of(expr.index) if isinstance(expr, Column) else None
    if found is None:
        raise no_event_time(relation, ref.name, expr.index if isinstance(expr, Column) else None, node.span)
    return found


def _shown(name: str) -> str:
    return f'"{name}"' if name else "this expression"


def no_event_time(relation: Relation, name: str, index: int | None, span: Span, what: str = WINDOW) -> CompileError:
    """Why a column is not the event time of its relation, and what to do.

    name: empty for an expression.  index: of the column in the relation's node; None for an expression, or if nothing
    is named.
    """
    time = _unambiguous(relation, name or "ts", index)
    if relation.node.schema.times:
        return _another_time(relation, name, time, span, what)
    name = name or "ts"
    sources = [n.source for n in topological([relation.node]) if isinstance(n, Scan)]
    missing = next((s for s in sources if s.event_time is None), None)
    joins = [n for n in topological([relation.node]) if isinstance(n, UntimedJoin)]
    lost = bool(joins) and any(s.event_time is not None for s in sources)  # a join has dropped them
    if missing is not None and not lost:
        meant = _field_of(relation.node, index, missing)
        return compile_error(
            "CQ0401",
            f'{what} needs a watermark, but stream "{missing.name}" declares none',
            span,
            label="not an event time",
            help=_declaring_time(missing, meant, same=meant is not None and meant.name == name),
        )
    if any(isinstance(n, LateRows) for n in topological([relation.node])):
        cause = f"late rows have no event time: they come too late for {what}"
        way = f"use their time as an ordinary value: GROUP BY DATE_TRUNC('minute', {column_name(name)})"
        return compile_error("CQ0402", cause, span, help=way)
    if relation.by_triggers:
        way = f"let all triggers that fill it insert the event time of their events as {column_name(name)}, unchanged"
        return compile_error("CQ0402", f"{relation.title} has no event time", span, help=way)
    joined = any(isinstance(n, Join) for n in joins)
    asked = any(isinstance(n, SemiJoin) or not n.left_keys for n in joins)
    limit = apart(*joins[0].inputs) if missing is None and joins else ""
    return compile_error(
        "CQ0402",
        f"{relation.title} no longer has an event time",
        span,
        help=(
            f'make "{missing.name}" a table with a key, and look its rows up: CREATE TABLE {column_name(missing.name)} '
            f"(… PRIMARY KEY, …) WITH (…); … JOIN {column_name(missing.name)} "
            f"FOR SYSTEM_TIME AS OF {time} ON …"
            if joined and missing is not None
            else "",
            "a join keeps the times of its sides where ON limits how far apart they are: "
            f"name both sides a and b, and add AND {limit}"
            if joined and limit
            else "",
            "rows filtered by a sub-query have no event time: compute this in a derived table, and test its rows "
            "outside"
            if asked
            else "",
            f"or, in the sub-query, name both sides a and b, and limit how far apart the times are: AND {limit}"
            if limit and any(isinstance(n, SemiJoin) for n in joins)
            else "",
            _cast_of_a_time(relation.node, sources) or _without_its_time(relation.node, time, what),
        ),
    )


def _another_time(relation: Relation, name: str, time: str, span: Span, what: str) -> CompileError:
    """CQ0402 for a column beside the event time. time: how a query names it."""
    times = [relation.node.schema.names[t.column] for t in relation.node.schema.times]
    return compile_error(
        "CQ0402",
        f"{_shown(name)} is not the event time of {relation.title}",
        span,
        help=(
            f"its event time is {' or '.join(map(column_name, times))}",
            f"or group by it as an ordinary value: GROUP BY DATE_TRUNC('minute', {time})"
            if what == WINDOW and name and relation.node.bounded
            else "",
        ),
    )


def _unambiguous(relation: Relation, name: str, index: int | None) -> str:
    """A column as a query names it: with its qualifier where several columns have its name."""
    alike = [c for c in relation.columns if c.name == name]
    meant = [c.qualifier for c in alike if isinstance(c.expr, Column) and c.expr.index == index]
    return (
        f"{column_name(meant[0])}.{column_name(name)}" if len(alike) > 1 and meant and meant[0] else column_name(name)
    )


def _without_its_time(node: LogicalNode, time: str, what: str) -> str:
    """Why the rows of a node have no event time although rows below it have one, and the nearest form that works."""
    lost = _giving_up(node)
    match lost:
        case Sort():
            why = "ORDER BY or OVER (ORDER BY …) emits these rows at the end of the input, without an event time"
            form = "join the rows first, and sort or rank the result"
        case Aggregate():
            why = "GROUP BY without a window emits these rows at the end of the input, without an event time"
            form = (
                "aggregate the rows of one time with OVER: MAX(x) OVER "
                f"(PARTITION BY k ORDER BY {time} RANGE BETWEEN CURRENT ROW AND CURRENT ROW)"
            )
        case UntimedJoin():
            why, form = "rows of this join have no event time", ""
        case _:
            return "select the time column unchanged in the inner query (for windows: window_end or window_time)"
    if what == WINDOW:
        form = f"group by the time as an ordinary value: GROUP BY DATE_TRUNC('minute', {time})" if node.bounded else ""
    return f"{why}; {form}" if form else ""


def _giving_up(node: LogicalNode) -> LogicalNode | None:
    """The operator nearest to a node without an event time that has none although an input of it has one."""
    todo = deque([node])
    while todo:
        found = todo.popleft()
        if any(i.schema.times for i in found.inputs):
            return found
        todo.extend(found.inputs)
    return None


def _cast_of_a_time(node: LogicalNode, sources: Sequence[SourceDef]) -> str:
    """How to convert an event time that a query below casts, as UNION ALL does if its sides have two types; "" if none
    does."""
    for below in topological([node]):
        for expr in below.exprs if isinstance(below, Project) else ():
            if not (isinstance(expr, Cast) and expr.type.is_timestamp and isinstance(expr.arg, Column)):
                continue
            fields = ((s, _field_of(below.inputs[0], expr.arg.index, s)) for s in sources if s.event_time is not None)
            for source, f in fields:
                if f is not None:
                    made = column_name(f"{f.name}_time")
                    return (
                        f"its time is made of {f.name} by a CAST, which UNION ALL of two types is, too: convert it in "
                        f"CREATE STREAM {column_name(source.name)} instead: {made} AS CAST({column_name(f.name)} AS "
                        f"{expr.type}), WATERMARK FOR {made}"
                    )
    return ""


def first_time(relation: Relation) -> tuple[str, int | None]:
    """The first TIMESTAMP column of a relation and its index: probably its event time."""
    times = ((f.name, index) for index, f in enumerate(relation.node.schema.fields) if f.type.is_timestamp)
    return next(times, ("ts", None))


def _field_of(node: LogicalNode, index: int | None, source: SourceDef) -> Field | None:
    """The source column that a column of a node passes through unchanged, if any."""
    if index is None:
        return None
    if node.source is not None:
        return node.source.fields[index] if node.source is source and index < len(source.fields) else None
    shown = node.schema.fields[index]
    for port, below in node.pull(Column(shown.type, shown.nullable, index, shown.name)) or ():
        if isinstance(below, Column) and (found := _field_of(node.inputs[port], below.index, source)) is not None:
            return found
    return None


def _declaring_time(source: SourceDef, meant: Field | None, same: bool) -> tuple[str, ...]:
    """How to give a stream an event time. An undeclared stream is declared first, without columns.

    meant: the column of the source that was named; if it cannot be a time, another column is proposed.
    same: whether the query and the source use the same name.
    """
    stream, seen = column_name(source.name), source.proposed
    marked = _marked(source, meant, seen) if meant is not None else None
    if marked is None:
        times = [f for f in source.fields if f.type.is_timestamp]
        meant = next(iter([*times, *(f for f in source.fields if f.type == DATE)]), None)
        same, seen = False, None  # the findings are about the column that was named
        marked = _marked(source, meant, None) if meant is not None else None
    if marked is None or meant is None:
        return (f"no column of {source.name} is a time: " + _NO_TIME.format(stream),)
    mark, by = marked
    options = dict(source.options)
    path, connector = options.get("path"), options.get("connector", "memory")
    beside = _beside_declaring(source, meant, seen)
    if not source.inferred or (path is None and connector not in {"stdin", "memory"}):
        return f"add to CREATE STREAM {stream}: {mark}", beside
    whence = f" WITH (path = {string(path)})" if path is not None else " WITH (connector = 'stdin')"
    given = path is None and connector == "memory"  # from Python, where the text need not declare it
    read = f"; then read FROM {stream}" + (f" by {by}" if by != column_name(meant.name) or not same else "")
    return f"CREATE STREAM {stream} ({mark}){'' if given else whence}{read}", beside


def _marked(source: SourceDef, meant: Field, seen: ProposedTime | None) -> tuple[str, str] | None:
    """The WATERMARK of a column, computed first if it is not a TIMESTAMP, and the name of the time; None if it cannot
    become a time. seen: what the rows show, if somebody has looked."""
    delay_us = seen.seen.delay_us if seen is not None and seen.expression else EXAMPLE_DELAY_US
    if meant.type.is_timestamp:
        at = column_name(meant.name)
        return watermark_text(at, delay_us), at
    computed = computed_time(seen, column_name(meant.name), meant.type)
    if computed is None:
        return None
    at = free_name(f.name for f in source.fields)
    return f"{at} AS {computed}, {watermark_text(at, delay_us)}", at


def _beside_declaring(source: SourceDef, meant: Field, seen: ProposedTime | None) -> str:
    """What the rows show of the time; if nobody looked, the unit of a number, and the command that measures the
    delay."""
    column = column_name(meant.name)
    if seen is not None:
        return _seen(seen, column)
    if meant.type.is_integer:
        return f"if {column} counts milliseconds, its time is TIMESTAMP_MILLIS({column})"
    path = source.option("path")
    if path and source.bounded:
        return f"cq schema {shlex.quote(path)} prints it with the delay that its rows need"
    if source.inferred and source.option("connector") == "memory":
        return "5 seconds is an example: choose how late rows may be"
    return "cq schema FILE prints the CREATE STREAM of a file"


def _seen(time: ProposedTime, column: str) -> str:
    if not time.seen.rows:
        return f"no row shows the time format of {column}; specify its pattern or unit"
    if time.seen.rows == time.seen.without:
        return f"{column} has no value in {time.seen}; specify the pattern or unit of its times"
    if not time.expression:
        return f"cannot recognise the time format of {column}; specify its pattern or unit"
    seen, also = time.seen, f"; the pattern {string(time.also)} fits as well" if time.also else ""
    without = f"; {amount(seen.without, 'row')} without one: on_error = 'skip' leaves them out" if seen.without else ""
    if not seen.delay_us:
        return f"{seen} are in this order{also}{without}"
    return f"the delay is that of {seen}: some are as late as {seconds(seen.delay_us)} s{also}{without}"


def computed_time(seen: ProposedTime | None, column: str, type_: DataType) -> str | None:
    """The expression that converts a column of another type to a TIMESTAMP: as its rows suggest, else the most likely;
    None if there is none."""
    if seen is not None and seen.expression:
        return seen.expression
    if type_.is_integer:
        return f"TIMESTAMP '1970-01-01' + {column} * INTERVAL '1' SECOND"
    if seen is not None and type_.kind is Kind.VARCHAR:
        return f"TO_TIMESTAMP({column}, 'dd.MM.yyyy HH:mm')"
    return f"CAST({column} AS TIMESTAMP)" if type_.kind in {Kind.VARCHAR, Kind.DATE} else None
