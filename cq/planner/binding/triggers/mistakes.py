"""Errors for a trigger that names something other than a table, or too many rows of one."""

from __future__ import annotations

from collections.abc import Iterable

from cq.errors import NOWHERE, TOLD, CompileError, Diagnostic, Span, compile_error, did_you_mean
from cq.grammar import ast, inline
from cq.grammar.printer import print_expr
from cq.lang.casts import castable
from cq.lang.schema import Field
from cq.lang.types import VARCHAR
from cq.planner.binding.conversion import settled
from cq.planner.binding.expressions import ExprBinder
from cq.planner.binding.triggers.several_keys import Key
from cq.planner.plan.transactions import KeyedTable
from cq.records import replace

REASON = "reason"  # the column of rejected events that holds the reason
MOST_ROWS = 32  # accesses of one table in one trigger: any two may be the same row, which is tested for every event


def no_keyed_table(name: str, span: Span, tables: Iterable[str]) -> CompileError:
    """CQ0201 for an unknown name."""
    way = did_you_mean(name, tables) or f"declare it: {_declared(name)}"
    cause = f'there is no table "{name}" with a primary key'
    return compile_error("CQ0201", cause, span, label="no such table", help=way)


def sink_without_a_key(name: str, span: Span) -> CompileError:
    """CQ0502 for a sink whose rows a trigger would read or change."""
    cause = f'"{name}" is a sink, but triggers read and write only rows of tables with a primary key'
    way = f"keep the rows in a table, too: {_declared(inline.name(name + '_rows'))}"
    return compile_error("CQ0502", cause, span, label="no keyed table", help=way)


def sink_without_columns(name: str, span: Span) -> CompileError:
    """CQ0502 for a sink whose columns are not declared."""
    own = inline.name(name)
    way = f"declare them: CREATE SINK {own} (column TYPE, …) WITH (…)"
    return compile_error("CQ0502", f'the columns of sink "{name}" are not declared', span, help=way)


def second_insert(name: str, span: Span) -> CompileError:
    """CQ0502 if both a query and a trigger write into a sink."""
    own = inline.name(name)
    way = f"insert into a stream in the trigger: INSERT INTO {own} SELECT … UNION ALL SELECT … FROM stream"
    cause = f'a query and a trigger write into "{name}", which is not supported yet'
    return compile_error("CQ0502", cause, span, help=way)


def in_a_circle(name: str, span: Span, node: ast.CreateTrigger, filled: bool = True) -> CompileError:
    """CQ0502 for a stream whose rows lead to the events of the trigger that inserts them. filled: whether others fill
    it."""
    cause = f'rows of "{name}" lead to the events of trigger "{node.name}", so it cannot insert more of them'
    both = f"SELECT … FROM {inline.name(name)} UNION ALL SELECT … FROM {inline.name(name + '_2')}"
    source = "" if filled else f"name what else gives rows to {inline.name(name)} in WITH (…), "
    way = f"{source}insert into a stream of its own, and read both: {both}"
    return compile_error("CQ0502", cause, span, help=way)


def not_filled_yet(name: str, span: Span, more: str = "") -> CompileError:
    """CQ0502 for a stream that is read before the trigger that fills it. more: added to the help."""
    way = f"move the CREATE TRIGGER that inserts into {inline.name(name)} up, before this statement{more}"
    return compile_error("CQ0502", f'no trigger above inserts rows into "{name}"', span, help=way)


def filled_too_late(name: str, span: Span) -> CompileError:
    """CQ0502 for a trigger that inserts rows into a stream that an earlier statement reads."""
    cause = f'a trigger that inserts rows into "{name}" must be defined before what reads it'
    return compile_error("CQ0502", cause, span, help="move its CREATE TRIGGER up, before that")


def not_to_be_filled(name: str, span: Span) -> CompileError:
    """CQ0502 for INSERT INTO a stream or view whose rows come from elsewhere."""
    cause = f'rows of "{name}" come from elsewhere; triggers insert only into tables, sinks, and streams without WITH'
    own, other = inline.name(name), inline.name(f"{name}_2")
    ways = (
        f"insert into a stream of its own: CREATE STREAM {other} (column TYPE, …)",
        f"and read both: SELECT … FROM {own} UNION ALL SELECT … FROM {other}",
    )
    return compile_error("CQ0502", cause, span, help=ways)


def without_a_key(name: str, span: Span, node: ast.CreateTrigger, is_made: bool, changed: bool) -> CompileError:
    """CQ0502 for a stream or view. is_made: by a trigger, so it cannot be a table instead.  changed: whether it is more
    than just read."""
    ways = [] if name == node.relation or is_made else [f"make it a table with a key: {_declared(name)}"]
    if changed:
        instead = f"give the changed row by a SELECT, and read it: SELECT … FROM {inline.name(node.name)}"
        ways += [f"or {instead}" if ways else instead]
    elif name == node.relation:
        ways = ["write new.column, without FROM: that is the row which fires the trigger"]
    elif is_made:
        ways = [f"keep its rows in a table, and read that: {_declared(f'{name}_rows')}"]
    cause = f'"{name}" is a stream or view, but triggers read and write only rows of tables with a primary key'
    return compile_error("CQ0502", cause, span, label="no keyed table", help=ways)


def too_many(but: str, span: Span, told: bool = False) -> CompileError:
    """CQ0103: a trigger names more rows of a table than it may. but: their number.  told: about an earlier row."""
    cause = f"a trigger can name at most {MOST_ROWS} rows of a table, but {but}"
    way = "give every key an event of its own: a stream with a row for each"
    return CompileError(Diagnostic("CQ0103", cause, span, help=(way,), severity=TOLD if told else "error"))


def of_text_keys(error: CompileError, key: Key, table: KeyedTable, where: ast.Expr, binder: ExprBinder) -> CompileError:
    """The error of a WHERE, with the fix that names a row if a text key is compared with another type."""
    apart = {d.span for d in error.diagnostics if d.code == "CQ0301"}
    texts = {f.name for f in table.fields if f.type == VARCHAR}
    ways = {}
    for name, value, part in key.values(where):
        if name in texts and part.left.span in apart and castable(settled(binder.bind(value)).type, VARCHAR):
            ways[part.left.span] = (f"write {inline.name(name)} = CAST({print_expr(value)} AS VARCHAR)",)
    return CompileError(*(replace(d, help=ways.get(d.span, d.help)) for d in error.diagnostics))


def left_out(node: ast.Insert, name: str, field: Field) -> CompileError:
    """CQ0306 for an INSERT that leaves out a column that cannot be NULL."""
    ways = [f"give it a value: INSERT INTO {inline.name(name)} {inline.names([*node.columns, field.name])} …"]
    if node.conflict is not None and node.conflict.assignments:
        ways.append(f"or, to change only rows that are there, write UPDATE {inline.name(name)} SET … WHERE …")
    what = f"it leaves out {name}.{field.name}, which cannot be NULL"
    cause = f"this INSERT would reject every event that gets here: {what}"
    place = node.target_span if node.target_span != NOWHERE else node.span
    return compile_error("CQ0306", cause, place, label=f"no value for {field.name}", help=ways)


def key_changed(table: str, column: str, span: Span) -> CompileError:
    """CQ0502 for SET of a column of the key."""
    own = inline.name(table)
    way = f"insert the row under its new key, INSERT INTO {own} SELECT … FROM {own} WHERE …, then DELETE the old one"
    return compile_error("CQ0502", f"{column} is part of the key, which cannot change", span, help=way)


def two_reasons(trigger: str, stream: str, span: Span) -> CompileError:
    """CQ0409 for the rejections of a trigger whose events have a column with the name of the one added to them."""
    cause = f'rejections of "{trigger}" add a column {REASON}, but its events already have one'
    columns = f"SELECT * EXCLUDE ({REASON}), {REASON} AS event_{REASON} FROM {inline.name(stream)}"
    way = f"rename theirs: CREATE VIEW events AS {columns}, and define the trigger on events"
    return compile_error("CQ0409", cause, span, help=way)


def always_null(name: str, field: Field, span: Span) -> CompileError:
    """CQ0306 for NULL as the value of a column that cannot be NULL."""
    cause = f"this would reject every event that gets here: {name}.{field.name} cannot be NULL"
    return compile_error("CQ0306", cause, span, label="NULL", help=f"write a {field.type}")


def _declared(name: str) -> str:
    return f"CREATE TABLE {inline.name(name)} (k BIGINT PRIMARY KEY, …)"
