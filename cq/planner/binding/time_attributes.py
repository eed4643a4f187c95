"""Find the event time that a query names, or say why the column is none and how to declare one."""

from __future__ import annotations

import shlex

from cq.errors import CompileError, Span, amount, compile_error
from cq.grammar import ast
from cq.grammar.inline import name as column_name
from cq.grammar.inline import string
from cq.lang.event_time import ProposedTime, free_name, seconds, watermark_text
from cq.lang.expressions import Column
from cq.lang.schema import TimeAttribute
from cq.lang.types import DataType, Kind
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.scope import Relation
from cq.planner.operators import Join, LateRows, Scan, SemiJoin
from cq.planner.operators.joined import UntimedJoin
from cq.planner.plan.node import topological
from cq.planner.plan.source import SourceDef
from cq.records import replace


def named_time(node: ast.Node | None) -> str | None:
    """The column that a DESCRIPTOR or a column names as the time of a window, if it is one."""
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
    expr = replace(binder, clause=Clause("a window")).bind(ref)
    found = relation.node.schema.time_of(expr.index) if isinstance(expr, Column) else None
    if found is None:
        type_ = expr.type if isinstance(expr, Column) else None
        raise no_event_time(relation, ref.name, node.span, expr.type.is_timestamp, type_=type_)
    return found


def no_event_time(
    relation: Relation, name: str, span: Span, is_time: bool, what: str = "a window", type_: DataType | None = None
) -> CompileError:
    """Why a column is not the event time of its relation, and what to do. type_: of the column, where that is known."""
    times = [relation.node.schema.names[t.column] for t in relation.node.schema.times]
    if times:
        return compile_error(
            "CQ0402",
            f'"{name}" is not the event time of {relation.title}',
            span,
            help=f"its event time is {' or '.join(times)}",
        )
    sources = [n.source for n in topological([relation.node]) if isinstance(n, Scan)]
    missing = next((s for s in sources if s.event_time is None), None)
    joins = [n for n in topological([relation.node]) if isinstance(n, UntimedJoin)]
    lost = bool(joins) and any(s.event_time is not None for s in sources)  # a join has given them up
    if missing is not None and not lost:
        column = name if is_time else "ts"
        return compile_error(
            "CQ0401",
            f'{what} needs a watermark, but stream "{missing.name}" declares none',
            span,
            label="not an event time",
            help=(_declaring_time(missing, column, name, type_), _beside_declaring(missing, name, type_)),
        )
    if any(isinstance(n, LateRows) for n in topological([relation.node])):
        cause = f"late rows have no event time: what {what} would give them to is closed"
        way = f"their time is a value like any other: GROUP BY DATE_TRUNC('minute', {name})"
        return compile_error("CQ0402", cause, span, help=way)
    joined = any(isinstance(n, Join) for n in joins)
    asked = any(isinstance(n, SemiJoin) or not n.left_keys for n in joins)
    return compile_error(
        "CQ0402",
        f"{relation.title} no longer has an event time",
        span,
        help=(
            f'make "{missing.name}" a table with a key, and look its rows up: CREATE TABLE {missing.name} '
            f"(… PRIMARY KEY, …) WITH (…); … JOIN {missing.name} FOR SYSTEM_TIME AS OF {name} ON …"
            if joined and missing is not None
            else "",
            "a join keeps the times of its sides where ON limits how far apart they are: "
            "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"
            if joined and missing is None
            else "",
            "what a sub-query lets pass has no event time: compute this in a derived table, and test its rows outside"
            if asked
            else "",
            "select the time column unchanged in the inner query (for windows: window_end or window_time)",
        ),
    )


def _declaring_time(source: SourceDef, column: str, meant: str, type_: DataType | None) -> str:
    """How to give a stream an event time. One that the text does not declare is declared first, without columns.

    meant: the column that was named; where a time can be computed of its type, that is how.
    """
    looked = source.proposed is not None and source.proposed.expression
    delay_us = source.proposed.seen.delay_us if source.proposed is not None and looked else 5_000_000
    mark = watermark_text(column, delay_us)
    at, of_type = "at", None if type_ is not None and type_.is_timestamp else type_
    computed = None if of_type is None else computed_time(source, column_name(meant), of_type)
    if source.inferred and computed is not None:
        at = free_name(f.name for f in source.fields)
        mark = f"{at} AS {computed}, {watermark_text(at, delay_us)}"
    options = dict(source.options)
    path, connector = options.get("path"), options.get("connector", "memory")
    if not source.inferred or (path is None and connector not in {"stdin", "memory"}):
        return f"add to CREATE STREAM {source.name}: {mark}"
    whence = f" WITH (path = {string(path)})" if path is not None else " WITH (connector = 'stdin')"
    by = f" by {at}" if computed is not None else ""
    given = path is None and connector == "memory"  # from Python, which the text need not say
    return f"CREATE STREAM {source.name} ({mark}){'' if given else whence}; then read FROM {source.name}{by}"


def _beside_declaring(source: SourceDef, meant: str, type_: DataType | None) -> str:
    """What the rows say of the time; where nobody looked, the unit of a number, and what tells their delay."""
    if source.proposed is not None:
        return _seen(source.proposed, column_name(meant))
    if type_ is not None and type_.is_integer:
        column = column_name(meant)
        return f"if {column} counts milliseconds, its time is TIMESTAMP_MILLIS({column})"
    path = source.option("path")
    if path and source.bounded:
        return f"cq schema {shlex.quote(path)} prints it with the delay that its rows need"
    if source.inferred and source.option("connector") == "memory":
        return "5 seconds are an example: say how late rows may come"
    return "cq schema FILE prints the CREATE STREAM of a file"


def _seen(time: ProposedTime, column: str) -> str:
    if not time.expression:
        return f"the values of {column} are times in no form that is known: say how they are written, or counted"
    seen = time.seen
    without = f"; {amount(seen.without, 'row')} without one: on_error = 'skip' leaves them out" if seen.without else ""
    if not seen.delay_us:
        return f"{seen} are in this order{without}"
    return f"the delay is that of {seen}: some are as late as {seconds(seen.delay_us)} s{without}"


def computed_time(source: SourceDef, column: str, type_: DataType) -> str | None:
    """The expression that makes a TIMESTAMP of a column of another type: as its rows say, or else most probably; None
    where there is none."""
    if source.proposed is not None and source.proposed.expression:
        return source.proposed.expression
    if type_.is_integer:
        return f"TIMESTAMP '1970-01-01' + {column} * INTERVAL '1' SECOND"
    if source.proposed is not None and type_.kind is Kind.VARCHAR:
        return f"TO_TIMESTAMP({column}, 'dd.MM.yyyy HH:mm')"
    return f"CAST({column} AS TIMESTAMP)" if type_.kind in {Kind.VARCHAR, Kind.DATE} else None
