"""What to say where a trigger names a table that is none, or too many rows of one."""

from __future__ import annotations

from collections.abc import Iterable

from cq.errors import CompileError, Span, compile_error, did_you_mean
from cq.grammar import ast, inline

MOST_ROWS = 32  # of one table in one trigger: any two may be the same, which is tested for every event


def no_keyed_table(name: str, span: Span, tables: Iterable[str]) -> CompileError:
    """CQ0201 for a name that nothing has."""
    way = did_you_mean(name, tables) or f"declare it: {_declared(name)}"
    cause = f'there is no table "{name}" with a primary key'
    return compile_error("CQ0201", cause, span, label="no such table", help=way)


def no_sink_of_a_trigger(name: str, span: Span, trigger: str) -> CompileError:
    """CQ0501 for a sink: the rows of the trigger can be written into it."""
    own = inline.name(trigger)
    way = f"SELECT the row in the trigger, and write INSERT INTO {inline.name(name)} SELECT … FROM {own}"
    cause = f'writing into "{name}" from a trigger is not supported yet'
    return compile_error("CQ0501", cause, span, label="no keyed table", help=way)


def without_a_key(name: str, span: Span, node: ast.CreateTrigger, is_made: bool) -> CompileError:
    """CQ0502 for a stream or view. is_made: by a trigger, so that it cannot be a table instead."""
    written = f"SELECT rows that are to be written, and read them: SELECT … FROM {inline.name(node.name)}"
    if name == node.relation:
        ways: tuple[str, ...] = (written, "or, to read the row that fires the trigger, write new.column")
    else:
        ways = (written,) if is_made else (f"make it a table with a key: {_declared(name)}", f"or {written}")
    cause = f'"{name}" is a stream or view, and a trigger writes and reads rows of tables with a primary key'
    return compile_error("CQ0502", cause, span, label="no keyed table", help=ways)


def too_many(named: str, span: Span) -> CompileError:
    """CQ0103: a trigger names more rows of a table than it may."""
    cause = f"a trigger names at most {MOST_ROWS} rows of a table, and this names {named}"
    way = "give every key an event of its own: a stream with a row for each"
    return compile_error("CQ0103", cause, span, help=way)


def _declared(name: str) -> str:
    return f"CREATE TABLE {inline.name(name)} (k BIGINT PRIMARY KEY, …)"
