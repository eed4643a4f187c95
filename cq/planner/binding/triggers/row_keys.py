"""Which row of a keyed table a WHERE in a trigger names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from cq.errors import CompileError, Span, compile_error
from cq.grammar import inline
from cq.lang.expressions import Call, Case, Cast, Column, Expr, Literal, can_fail, columns_of, conjunction, conjuncts
from cq.lang.types import DOUBLE, INTEGER_BITS, DataType, Kind, common_type
from cq.planner.plan.transactions import KeyedTable
from cq.records import dataclass

BY_KEY = "the row that a trigger reads or writes is named by its key"
DOUBLE_BITS = 53  # integers that a DOUBLE can tell apart


Several: TypeAlias = Callable[[str, str, str], Sequence[str]]
"""(a table; a condition that lists keys of it; an UNNEST and a WHERE that compares a key with its elements) -> how a
statement names several rows, for people."""


def of_update(table: str, listed: str, elements: str) -> Sequence[str]:
    """For an UPDATE."""
    return f"several rows: {listed}", f"or of an array: UPDATE {table} SET … FROM {elements}"


def of_delete(table: str, listed: str, elements: str) -> Sequence[str]:
    """For a DELETE."""
    return f"several rows: {listed}", f"or of an array: DELETE FROM {table} USING {elements}"


def of_select(table: str, listed: str, elements: str) -> Sequence[str]:
    """For a SELECT that is a statement."""
    return f"several rows: {listed}", f"or of an array: SELECT SUM(x) FROM {table}, {elements}"


def of_value(table: str, listed: str, elements: str) -> Sequence[str]:
    """For a value aggregated from rows."""
    return (f"several rows: (SELECT SUM(x) FROM {table}, {elements})",)


def of_exists(table: str, listed: str, elements: str) -> Sequence[str]:
    """For EXISTS."""
    count = f"(SELECT COUNT(*) FROM {table}, {elements}) > 0"
    return f"one of several rows: {listed}", f"or of an array, in place of EXISTS: {count}"


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A condition equates a column with a value. is_all: it says nothing more, so the row with the value meets it."""

    column: int
    value: Expr
    is_all: bool


def keyed(
    table: KeyedTable, start: int, condition: Expr | None, span: Span, several: Several
) -> tuple[tuple[Expr, ...], Expr | None]:
    """The key given by a condition, and the rest of the condition. CQ0411 if it gives none.

    A key whose computation can fail is computed only if all conditions on the event alone are TRUE.  start: of the row
    in the frame.  several: how to name several rows there.
    """
    found: dict[int, Expr] = {}
    rest: list[Expr] = []
    own = range(start, start + 1 + len(table.fields))
    parts = conjuncts(condition) if condition is not None else ()
    for named, said in _key_values(parts, own):
        if named is not None and named.column - start - 1 in {*table.key} - {*found}:
            found[named.column - start - 1] = named.value
            rest += () if named.is_all else said
        else:
            rest += said
    if len(found) < len(table.key):
        missing = [c for c in table.key if c not in found]
        for part in parts:
            other = _compared_with(part, start + 1 + missing[0], own)
            if other is not None:
                raise _not_of_the_event(table, missing[0], other - start - 1, part.span)
        raise no_key(table, span, several, missing, _other_type(parts, start + 1 + missing[0]))
    guards = [p for p in rest if all(c < start for c in columns_of(p))]
    return tuple(_guarded(found[c], guards) for c in table.key), conjunction(rest) if rest else None


def _guarded(key: Expr, guards: Sequence[Expr]) -> Expr:
    """The key, or NULL, the key of no row, where these conditions are not TRUE and computing it could fail."""
    if not guards or not can_fail(key):
        return key
    return Case(key.type, True, ((conjunction(guards), key),), Literal(key.type, True, None), span=key.span)


def _key_values(parts: Sequence[Expr], own: range) -> Iterator[tuple[KeyValue | None, Sequence[Expr]]]:
    """The parts of a condition, each with the column that it equates with a value; two for a DECIMAL compared with an
    integer."""
    rest = list(reversed(parts))
    while rest:
        part = rest.pop()
        whole = _whole_number(part, rest[-1], own) if rest else None
        if whole is not None:
            yield whole, (part, rest.pop())
        else:
            yield _key_value(part, own), (part,)


def _whole_number(below: Expr, above: Expr, own: range) -> KeyValue | None:
    """The condition that a column is a whole number, if these two are value = floor(column) and value =
    ceil(column)."""
    match below, above:
        case Call(function=first, args=(value, low)), Call(function=second, args=(same, high)):
            column = _rounded(low, "floor")
            if column is None or column.index not in own or columns_of(value) & set(own):
                return None
            if first.name == second.name == "=" and value == same and column == _rounded(high, "ceil"):
                return KeyValue(column.index, _narrowed(value, column), is_all=value.type.is_integer)
    return None


def _rounded(side: Expr, name: str) -> Column | None:
    """The column that one side of a comparison rounds with this function."""
    match side.arg if isinstance(side, Cast) else side:
        case Call(function=function, args=(Column() as column,)) if function.name == name:
            return column
    return None


def _key_value(part: Expr, own: range) -> KeyValue | None:
    """The column among these that a condition equates with a value not computed from them; None if there is none.

    If the value has a wider type, the key is its TRY_CAST: NULL, the key of no row, if it does not fit. A rounded value
    names a row that the condition, which is also tested, rejects.
    """
    if not isinstance(part, Call) or part.function.name != "=":
        return None
    for side, value in (part.args, part.args[::-1]):
        if columns_of(value) & set(own):
            continue
        if isinstance(side, Column) and side.index in own:
            return KeyValue(side.index, value, is_all=True)
        column = _widened(side)
        if column is not None and column.index in own and _is_one_to_one(column.type, side.type):
            return KeyValue(column.index, _narrowed(value, column), is_all=side.type.is_integer)
    return None


def _narrowed(value: Expr, column: Column) -> Expr:
    """The value converted for the column; NULL, the key of no row, if it does not fit."""
    return Cast(column.type, True, value, True, span=value.span)


def _other_type(parts: Sequence[Expr], column: int) -> tuple[Column, Expr] | None:
    """The column and the value of another type with which a condition equates it: that names no single row."""
    for part in parts:
        if not isinstance(part, Call) or part.function.name != "=":
            continue
        for side, value in (part.args, part.args[::-1]):
            own = _widened(side)
            if own is not None and own.index == column and column not in columns_of(value):
                return own, value
    return None


def _compared_with(part: Expr, column: int, own: range) -> int | None:
    """The column of the same row that a condition equates with this column."""
    if not isinstance(part, Call) or part.function.name != "=":
        return None
    sides = [s.index for s in (a if isinstance(a, Column) else _widened(a) for a in part.args) if s is not None]
    if len(sides) < 2 or column not in sides or not {*sides} <= {*own}:
        return None
    return sides[0] if sides[1] == column else sides[1]


def _not_of_the_event(table: KeyedTable, key: int, other: int, span: Span) -> CompileError:
    """CQ0411 for a condition that compares two columns of the table's row, or one with itself."""
    name, meant = (table.fields[c].name for c in (key, other))
    cause = f'no value is given for {name}, the key of "{table.name}": both sides are columns of the table'
    way = f"write new.column for a column of the event: WHERE {inline.name(name)} = new.{inline.name(meant)}"
    return compile_error("CQ0411", cause, span, label=BY_KEY, help=way)


def no_key(
    table: KeyedTable,
    span: Span,
    several: Several,
    missing: Sequence[int] | None = None,
    other: tuple[Column, Expr] | None = None,
) -> CompileError:
    """CQ0411: a WHERE does not name a row. several: how to name several.  missing: columns of the key without a value.
    other: the first of them, and the value of another type given for it."""
    missing = table.key if missing is None else missing
    names = [table.fields[c].name for c in missing]
    if other is None:
        cause = f'no value is given for {" and ".join(names)}, the key of "{table.name}"'
        verb, word = ("write", "WHERE") if len(missing) == len(table.key) else ("add", "AND")
        named = f"{word} {inline.name(names[0])}"
        more = several(inline.name(table.name), f"{named} IN (new.a, new.b)", _by_elements(table, missing[0]))
        ways = (f"{verb} {named} = new.column", *more)
        return compile_error("CQ0411", cause, span, label=BY_KEY, help=ways)
    compared, value = other
    cause = f'{names[0]}, the key of "{table.name}", is {compared.type}'
    shown = f"new.{inline.name(value.name)}" if isinstance(value, Column) else "…"
    return compile_error(
        "CQ0411",
        f"{cause}, but a value of type {value.type} may equal several keys",
        span,
        label=BY_KEY,
        help=f"write {inline.name(names[0])} = TRY_CAST({shown} AS {compared.type})",
    )


def each_element(table: KeyedTable) -> str:
    """How to write a DELETE of rows that elements name as a statement for each of them."""
    by = _by_elements(table, table.key[0])
    return f"write a statement for each element: DELETE FROM {inline.name(table.name)} USING {by}"


def each_key(table: KeyedTable) -> str:
    """How to write a statement on several rows as one for each of them."""
    key = inline.name(table.fields[table.key[0]].name)
    return f"write a statement for each key: WHERE {key} = new.a, and the next one WHERE {key} = new.b"


def _by_elements(table: KeyedTable, column: int) -> str:
    """An UNNEST, and a WHERE that compares a column of the key with its elements."""
    own = f"{inline.name(table.name)}.{inline.name(table.fields[column].name)}"
    return f"UNNEST(new.keys) AS u(k) WHERE {own} = u.k{' AND …' if len(table.key) > 1 else ''}"


def _widened(side: Expr) -> Column | None:
    """The column that one side of a comparison converts to the type of the other side."""
    return side.arg if isinstance(side, Cast) and not side.try_ and isinstance(side.arg, Column) else None


def _is_one_to_one(narrow: DataType, wide: DataType) -> bool:
    """Whether conversion to a wider type keeps distinct values distinct."""
    if common_type(narrow, wide) != wide or Kind.ARRAY in {narrow.kind, wide.kind} or wide.kind is Kind.TIMESTAMP_LTZ:
        return False
    return wide != DOUBLE or INTEGER_BITS.get(narrow.kind, DOUBLE_BITS + 1) <= DOUBLE_BITS
