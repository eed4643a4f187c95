"""Functions that are short for other expressions: choices about NULL and NaN, casts, sums and differences of times.

The expressions they stand for already have a meaning, a kernel form and a Spark text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from cq.entries import enter
from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.grammar.intervals import read_unit
from cq.lang.expressions import Coalesce, Expr, IsNull, Literal
from cq.lang.functions.time_formats import BadPattern, java_pattern, minutes_for_months, template_pattern
from cq.lang.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    INTERVAL_MONTH,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    DataType,
    Kind,
)
from cq.planner.binding.conversion import convert, settled
from cq.planner.binding.literals import UNIT_MONTHS, UNIT_US
from cq.planner.binding.scope import Relation, of_relation


class ShorthandBinder(Protocol):
    """What short forms need of the binder of expressions."""

    @property
    def relation(self) -> Relation: ...
    def positional(self, node: ast.Call, least: int) -> list[Expr]: ...
    def exactly(self, node: ast.Call, count: int) -> list[Expr]: ...
    def aligned(self, values: Sequence[Expr], what: str) -> list[Expr]: ...
    def conditional(
        self, conditions: Sequence[Expr], values: Sequence[Expr], span: Span, written: Sequence[ast.Node] = ()
    ) -> Expr: ...
    def not_distinct(self, left: Expr, right: Expr, span: Span) -> Expr: ...
    def compare(self, op: str, left: Expr, right: Expr, span: Span) -> Expr: ...
    def bind_cast(self, arg: Expr, type_: DataType, span: Span, safe: bool = False) -> Expr: ...
    def call(
        self, name: str, args: Sequence[Expr], span: Span, nodes: Sequence[ast.Node], name_span: Span | None = None
    ) -> Expr: ...


Shorthand = Callable[[ShorthandBinder, ast.Call], Expr]

SHORTHANDS: dict[str, Shorthand] = {}
CASTS = {
    "boolean": BOOLEAN, "tinyint": TINYINT, "smallint": SMALLINT, "int": INTEGER, "bigint": BIGINT, "float": REAL,
    "double": DOUBLE, "string": VARCHAR, "binary": BINARY, "date": DATE, "timestamp": TIMESTAMP,
}  # fmt: skip


def shorthand(*names: str) -> Callable[[Shorthand], Shorthand]:
    """Register the function that binds the calls of these names."""

    def register(function: Shorthand) -> Shorthand:
        for name in names:
            enter(SHORTHANDS, name, function, "short form", [] if function.__doc__ else ["has no docstring"])
        return function

    return register


def short_form(name: str) -> Shorthand | None:
    """The function that binds the calls of a name; None when it is not a short form."""
    return SHORTHANDS.get(name)


# -- NULL and NaN -----------------------------------------------------------------------------------------------------


@shorthand("nvl2")
def _nvl2(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """NVL2(x, y, z): y if x is not NULL, else z."""
    x, y, z = binder.exactly(node, 3)
    return binder.conditional([_is_null(x)], [z, y], node.span, node.args)


@shorthand("zeroifnull")
def _zeroifnull(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ZEROIFNULL(x): COALESCE(x, 0)."""
    (x,) = binder.exactly(node, 1)
    value, zero = binder.aligned([x, Literal(INTEGER, False, 0, span=x.span)], "the argument of ZEROIFNULL and 0")
    return Coalesce(value.type, False, (value, zero), span=node.span)


@shorthand("nullifzero")
def _nullifzero(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """NULLIFZERO(x): NULLIF(x, 0)."""
    (x,) = binder.exactly(node, 1)
    zero = binder.compare("=", x, Literal(INTEGER, False, 0, span=x.span), node.span)
    return binder.conditional([zero], [Literal(x.type, True, None), x], node.span)


@shorthand("nanvl")
def _nanvl(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """NANVL(x, y): y if x is NaN, else x."""
    x, y = binder.exactly(node, 2)
    nan = binder.call("isnan", [x], node.span, node.args)
    return binder.conditional([nan], [y, convert(x, DOUBLE)], node.span)


@shorthand("isnull")
def _isnull(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ISNULL(x): x IS NULL."""
    (x,) = binder.exactly(node, 1)
    return _is_null(x)


@shorthand("isnotnull")
def _isnotnull(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ISNOTNULL(x): x IS NOT NULL."""
    (x,) = binder.exactly(node, 1)
    return binder.call("not", [_is_null(x)], node.span, node.args)


def _is_null(x: Expr) -> IsNull:
    return IsNull(BOOLEAN, False, settled(x), span=x.span)


# -- casts ------------------------------------------------------------------------------------------------------------


@shorthand(*CASTS)
def _cast(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """STRING(x): CAST(x AS VARCHAR); likewise for other types."""
    (x,) = binder.exactly(node, 1)
    return binder.bind_cast(x, CASTS[node.name], node.span)


@shorthand("to_timestamp", "try_to_timestamp")
def _to_timestamp(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TO_TIMESTAMP(text): CAST(text AS TIMESTAMP); for a number, TIMESTAMP_SECONDS. With a pattern, a function."""
    args = binder.positional(node, 1)
    if len(args) == 1 and args[0].type.is_integer:
        return binder.call("timestamp_seconds", args, node.span, node.args, node.name_span)
    return _read(binder, node, node.name, _in_java(node, args))


@shorthand("to_date", "try_to_date")
def _to_date(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TO_DATE(text [, pattern]): the day of TO_TIMESTAMP."""
    args = binder.positional(node, 1)
    name = node.name.replace("date", "timestamp")
    if len(args) == 1:
        return binder.bind_cast(args[0], DATE, node.span, safe=name.startswith("try"))
    return binder.bind_cast(_read(binder, node, name, _in_java(node, args)), DATE, node.span)


@shorthand("to_char")
def _to_char(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TO_CHAR(x, 'YYYY-MM-DD HH24:MI:SS'): DATE_FORMAT with a pattern of PostgreSQL, or one of DATE_FORMAT."""
    args = _in_java(node, binder.exactly(node, 2))
    return binder.call("date_format", args, node.span, node.args, node.name_span)


def _in_java(node: ast.Call, args: list[Expr]) -> list[Expr]:
    """The arguments, of which the second may be a template as in `TO_CHAR`. CQ0302 where its minutes are not
    minutes."""
    if len(args) != 2 or not isinstance(args[1], Literal) or not isinstance(args[1].value, str):
        return args
    pattern = args[1]
    letters = template_pattern(pattern.value)
    if letters is None and node.name == "to_char" and minutes_for_months(pattern.value):
        raise compile_error(
            "CQ0302", f"in the pattern '{pattern.value}' mm is the minute", pattern.span,
            help="the month is MM: write yyyy-MM-dd, or YYYY-MM-DD",
        )  # fmt: skip
    return args if letters is None else [args[0], Literal(VARCHAR, False, letters, span=pattern.span)]


@shorthand("strptime", "try_strptime")
def _strptime(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """STRPTIME(text, '%Y-%m-%d'): TO_TIMESTAMP with a % pattern."""
    name = "try_to_timestamp" if node.name.startswith("try") else "to_timestamp"
    return binder.call(name, _translated(binder, node), node.span, node.args, node.name_span)


@shorthand("strftime")
def _strftime(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """STRFTIME(x, '%Y-%m-%d'): DATE_FORMAT with a % pattern."""
    return binder.call("date_format", _translated(binder, node), node.span, node.args, node.name_span)


@shorthand("from_unixtime")
def _from_unixtime(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """FROM_UNIXTIME(seconds [, pattern]): DATE_FORMAT of the time `seconds` seconds after 1970."""
    seconds, *pattern = binder.positional(node, 1)
    time = binder.call("timestamp_seconds", [seconds], node.span, node.args[:1])
    given = pattern or [Literal(VARCHAR, False, "yyyy-MM-dd HH:mm:ss", span=node.span)]
    return binder.call("date_format", [time, *given], node.span, node.args, node.name_span)


@shorthand("unix_timestamp", "to_unix_timestamp")
def _unix_timestamp(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """UNIX_TIMESTAMP(time), UNIX_TIMESTAMP(text [, pattern]): UNIX_SECONDS of the time, or of TO_TIMESTAMP."""
    args = binder.positional(node, 1)
    time = _read(binder, node, "to_timestamp", args) if args[0].type.kind is Kind.VARCHAR else args[0]
    others = args[1:] if time is args[0] else []
    return binder.call("unix_seconds", [time, *others], node.span, node.args, node.name_span)


def _read(binder: ShorthandBinder, node: ast.Call, name: str, args: Sequence[Expr]) -> Expr:
    if len(args) == 1:
        return binder.bind_cast(args[0], TIMESTAMP, node.span, safe=name.startswith("try"))
    return binder.call(name, args, node.span, node.args, node.name_span)


def _translated(binder: ShorthandBinder, node: ast.Call) -> list[Expr]:
    """A value and a % pattern, translated to Java's letters."""
    value, pattern = binder.exactly(node, 2)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise compile_error(
            "CQ0302", f"{node.name.upper()} needs a literal pattern", pattern.span,
            help=f"write {node.name.upper()}(x, '%Y-%m-%d %H:%M:%S')",
        )  # fmt: skip
    try:
        letters = java_pattern(pattern.value)
    except BadPattern as bad:
        raise compile_error(
            "CQ0302", f"in the pattern '{pattern.value}' {bad}", pattern.span,
            help="fields: %Y %y %m %d %j %a %A %b %B %H %I %p %M %S %f %g %F %T %%, and %-m for no zero in front",
        ) from None  # fmt: skip
    return [value, Literal(VARCHAR, False, letters, span=pattern.span)]


# -- patterns ---------------------------------------------------------------------------------------------------------


@shorthand("regexp_like", "regexp_matches", "regexp_contains", "rlike", "regexp", "regexp_count")
def _regexp(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """REGEXP_LIKE(x, pattern, 'i'): REGEXP_LIKE(x, '(?i)pattern')."""
    args = binder.positional(node, 2)
    return binder.call(node.name, _flagged(node, args, 2, "ims"), node.span, node.args, node.name_span)


@shorthand("regexp_replace")
def _regexp_replace(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """REGEXP_REPLACE(x, pattern, text, 'gi'): the flags in the pattern; g is the default."""
    args = binder.positional(node, 3)
    return binder.call(node.name, _flagged(node, args, 3, "gims"), node.span, node.args, node.name_span)


@shorthand("regexp_full_match")
def _regexp_full_match(binder: ShorthandBinder, node: ast.Call) -> Expr:
    r"""REGEXP_FULL_MATCH(x, pattern): REGEXP_LIKE(x, '\A(?:pattern)\z')."""
    text, pattern, *flags = binder.positional(node, 2)
    whole = _changed(pattern, r"\A(?:{})\z")
    args = _flagged(node, [text, whole, *flags], 2, "ims")
    return binder.call("regexp_like", args, node.span, node.args, node.name_span)


@shorthand("regexp_substr")
def _regexp_substr(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """REGEXP_SUBSTR(x, pattern): NULLIF(REGEXP_EXTRACT(x, pattern, 0), '')."""
    args = [*binder.exactly(node, 2), Literal(INTEGER, False, 0, span=node.span)]
    part = binder.call("regexp_extract", args, node.span, [*node.args, node], node.name_span)
    empty = binder.compare("=", part, Literal(VARCHAR, False, "", span=node.span), node.span)
    return binder.conditional([empty], [Literal(VARCHAR, True, None), part], node.span)


def _flagged(node: ast.Call, args: list[Expr], place: int, letters: str) -> list[Expr]:
    """The arguments with the flags at `place`, which must be among these letters, put at the start of the pattern."""
    if len(args) <= place:
        return args
    flags = args[place]
    known = isinstance(flags, Literal) and isinstance(flags.value, str) and set(flags.value) <= set(letters)
    if not known or len(args) > place + 1:
        raise compile_error(
            "CQ0302", f"{node.name.upper()} takes flags out of {', '.join(letters)}, as one literal", flags.span,
            help="i: letters in any case; s: . takes line feeds; m: ^ and $ at every line"
            + ("; g is the default: every match is replaced" if "g" in letters else ""),
        )  # fmt: skip
    assert isinstance(flags, Literal)
    inner = "".join(sorted(set(flags.value) - {"g"}))
    return [args[0], _changed(args[1], f"(?{inner}){{}}") if inner else args[1], *args[2:place]]


def _changed(pattern: Expr, form: str) -> Expr:
    """The pattern, if it is a literal, with this change."""
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return pattern
    return Literal(VARCHAR, False, form.replace("{}", pattern.value), span=pattern.span)


# -- times by unit ----------------------------------------------------------------------------------------------------


@shorthand("timestampadd", "dateadd", "date_add")
def _timestampadd(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """DATEADD(unit, count, time): time + count * INTERVAL '1' unit, a TIMESTAMP or TIMESTAMP_LTZ."""
    if len(node.args) == 2 and node.name == "date_add":
        return _moved(binder, node)
    unit, (count, time) = _unit(node), _rest(binder, node)
    months = unit in UNIT_MONTHS
    one = Literal(INTERVAL_MONTH, False, UNIT_MONTHS[unit]) if months else Literal(INTERVAL, False, UNIT_US[unit])
    length = binder.call("*", [count, one], node.span, node.args)
    if not time.type.is_timestamp:
        time = binder.bind_cast(time, TIMESTAMP, time.span)
    return binder.call("+", [time, length], node.span, node.args)


@shorthand("date_sub")
def _moved(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """DATE_ADD(time, INTERVAL …) and DATE_SUB: + and -; with a number of days, functions."""
    time, length = binder.exactly(node, 2)
    name = ("+" if node.name == "date_add" else "-") if length.type.is_interval else node.name
    return binder.call(name, [time, length], node.span, node.args, node.name_span)


@shorthand("timestampdiff", "datediff", "date_diff")
def _timestampdiff(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TIMESTAMPDIFF(unit, start, end): the whole units between them. DATEDIFF(end, start): the days."""
    if len(node.args) == 2 and node.name != "timestampdiff":
        days = [binder.bind_cast(d, DATE, d.span) for d in binder.exactly(node, 2)]
        return binder.call("datediff", days, node.span, node.args, node.name_span)
    unit = _unit(node)
    exact = (
        UNIT_US.get(unit, UNIT_US["DAY"]) < UNIT_US["DAY"]
    )  # days and longer units are counted by the local times of instants
    start, end = (
        t if exact and t.type.is_timestamp else binder.bind_cast(t, TIMESTAMP, t.span) for t in _rest(binder, node)
    )
    if unit in UNIT_MONTHS:
        apart, size = binder.call("timestampdiff_month", [start, end], node.span, node.args[1:]), UNIT_MONTHS[unit]
    else:
        micros = [binder.call("unix_micros", [t], node.span, node.args[1:]) for t in (end, start)]
        apart, size = binder.call("-", micros, node.span, node.args[1:]), UNIT_US[unit]
    return binder.call("/", [apart, Literal(BIGINT, False, size)], node.span, node.args)


def _unit(node: ast.Call) -> str:
    """The unit that a call starts with, as a word or a string."""
    if len(node.args) != 3:
        raise _needs_unit(node)
    match node.args[0]:
        case ast.ColumnRef(name=word, qualifier=None, span=span) | ast.StringLiteral(value=word, span=span):
            return read_unit(word, span)
    raise _needs_unit(node)


def _needs_unit(node: ast.Call) -> CompileError:
    name = node.name.upper()
    rest = "a, b" if "DIFF" in name else "1, ts"
    return compile_error(
        "CQ0302", f"{name} takes a unit and two values", node.span, help=f"write {name}(DAY, {rest})"
    )  # fmt: skip


def _rest(binder: ShorthandBinder, node: ast.Call) -> list[Expr]:
    """The two arguments after the unit. The name of a relation stands for its event time, as in Azure's joins."""
    rest = tuple(of_relation(a, binder.relation) for a in node.args[1:])
    values = ast.Call(node.name, rest, span=node.span, name_span=node.name_span)
    return binder.exactly(values, 2)
