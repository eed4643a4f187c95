"""Errors for expressions that cannot be bound: types that do not go together, unsupported forms."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import NOWHERE, CompileError, Label, compile_error
from cq.grammar import ast, inline
from cq.grammar.inline import string
from cq.grammar.intervals import read_summands
from cq.grammar.printer import print_expr
from cq.lang.casts import castable
from cq.lang.expressions import Column, Expr, Literal
from cq.lang.functions import Refusal
from cq.lang.types import BIGINT, BINARY, INTERVAL, NULL, VARCHAR, DataType, Kind, common_type
from cq.lang.value_text import read_hexadecimal, write_decimal
from cq.planner.binding.literals import bind_interval, is_numeric_text

LONGEST_SHOWN = 30  # characters of an operand that a help line repeats
ARITHMETIC_WORDS = {
    "+": "add {0} and {1}",
    "-": "subtract {1} from {0}",
    "*": "multiply {0} by {1}",
    "/": "divide {0} by {1}",
    "%": "take {0} modulo {1}",
    "||": "concatenate {0} and {1}",
}


def refused(node: ast.Node) -> CompileError:
    return compile_error("CQ0501", f"{type(node).__name__} is not supported yet", node.span)


def condition_help(node: ast.Expr, type_: DataType) -> str:
    """Guess what was meant by an expression that is not a condition."""
    if isinstance(node, ast.StringLiteral | ast.NumberLiteral):
        return "repeat the comparison: x = 'a' OR x = 'b', or write x IN ('a', 'b')"
    if isinstance(node, ast.Binary):
        return ""
    return "compare it, for example x <> 0" if type_.is_numeric else "compare it with a value"


def apart(code: str, message: str, left: Expr, right: Expr, *help: str) -> CompileError:
    """An error about two values, each marked with its type."""
    other = Label(right.span, str(right.type))
    return compile_error(code, message, left.span, label=str(left.type), labels=(other,), help=help)


def cannot_compare(left: Expr, right: Expr, written: Sequence[ast.Node]) -> CompileError:
    """written: what these are in the text, where they stand there alone."""
    help = _element_help(left, right, written) or meeting_help(left, right, written)
    return apart("CQ0301", f"cannot compare {left.type} with {right.type}", left, right, help)


def _element_help(left: Expr, right: Expr, written: Sequence[ast.Node]) -> str:
    """How an array is searched for a value that is compared with it."""
    for items, value in ((left, right), (right, left)):
        element = items.type.element
        if items.type.kind is Kind.ARRAY and element is not None and common_type(element, value.type) is not None:
            arguments = f"{_shown(items, written, 'items')}, {_shown(value, written)}"
            return f"to find it among the elements, write ARRAY_CONTAINS({arguments})"
    return ""


def _shown(value: Expr, written: Sequence[ast.Node], else_: str = "x") -> str:
    """The value as it is written, if that is known and short; else its name, or `else_`."""
    texts = [print_expr(n) for n in written if isinstance(n, ast.Expr) and n.span == value.span]
    if texts:
        return texts[0] if len(texts[0]) <= LONGEST_SHOWN else else_
    if isinstance(value, Literal) and value.type == VARCHAR and value.value is not None:
        return string(value.value)
    return inline.name(value.name) if isinstance(value, Column) else else_


def too_wide(refusal: Refusal, left: Expr, right: Expr) -> CompileError:
    numbers = [e for e in (left, right) if isinstance(e, Literal) and e.type.kind is Kind.DECIMAL]
    doubles = [f"write {write_decimal(e.value, e.type.scale)}e0, which is a DOUBLE" for e in numbers[:1] if e.value]
    return apart(refusal.code, refusal.message, left, right, *doubles, refusal.help)


def cannot_combine(op: str, left: Expr, right: Expr, written: Sequence[ast.Node]) -> CompileError:
    """written: as of `cannot_compare`."""
    words = ARITHMETIC_WORDS[op].format(left.type, right.type)
    help = _combining_help(op, left, right, written)
    return apart("CQ0301", f"cannot {words}", left, right, help)


def meeting_help(a: Expr, b: Expr, written: Sequence[ast.Node] = ()) -> str:
    """How two types that do not go together are brought together. written: as of `cannot_compare`."""
    for text, other in ((a, b), (b, a)):
        if text.type == VARCHAR and other.type == BINARY:
            return _binary_help(text, written)
        if text.type == VARCHAR and other.type.is_numeric:
            given = next((n for n in written if isinstance(n, ast.Parameter) and n.span == text.span), None)
            if given is not None:
                return f"write CAST({print_expr(given)} AS {other.type})"
            if isinstance(text, Literal) and text.value is not None and is_numeric_text(text.value):
                return f"write {text.value.strip()} without quotes, or CAST('{text.value}' AS {other.type})"
            if isinstance(text, Literal) and text.value is not None:
                compared = f"CAST({_shown(other, written)} AS VARCHAR)"
                return f"{string(text.value)} is not a number: write a number, or compare as text: {compared}"
            return f"CAST the text to {other.type}, or TRY_CAST it to get NULL for text that is not a number"
        if text.type == VARCHAR and other.type.kind in {Kind.INTERVAL, Kind.INTERVAL_MONTH}:
            return _interval_help(text, written)
        if text.type == VARCHAR and other.type.kind in {Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ}:
            return f"CAST the text to {other.type}"
        if text.type.kind is Kind.INTERVAL and other.type.is_integer:
            return "write the number as an interval, such as INTERVAL '5' SECOND"
        if text.type.is_timestamp and other.type.is_numeric:
            if isinstance(text, Column) and not isinstance(other, Literal):
                return f"compare its seconds since 1970: EPOCH({_shown(text, written)})"
            return "write the time as TIMESTAMP '2024-01-31 10:00:00'"
    if a.type.kind is Kind.ARRAY and b.type.kind is Kind.ARRAY:
        return "arrays have no order: compare their elements, a[1] < b[1], or CARDINALITY(a) with another"
    if Kind.ARRAY in {a.type.kind, b.type.kind} and VARCHAR in {a.type, b.type}:
        return _type_cast_help(a.type if a.type.kind is Kind.ARRAY else b.type, VARCHAR)
    if {a.type.kind, b.type.kind} == {Kind.INTERVAL, Kind.INTERVAL_MONTH}:
        return "a month has no fixed length: compare months with months, or days with days, as INTERVAL '30' DAY"
    if a.type.is_numeric and b.type.is_numeric:
        return "together they need a DECIMAL of more than 38 digits: CAST one of them to DOUBLE, or to fewer digits"
    for value, other in ((a, b), (b, a)):
        if value.type == BINARY and castable(VARCHAR, other.type):
            return f"go through its text: CAST(CAST({_shown(value, written)} AS VARCHAR) AS {other.type})"
    targets = [t for s, t in ((b.type, a.type), (a.type, b.type)) if s != t and castable(s, t)]
    return f"CAST one of them to the type of the other: {' or '.join(map(str, targets))}" if targets else ""


def alike_help(values: Sequence[Expr], written: Sequence[ast.Node] = ()) -> str:
    """How values become ones of one type where some are text, which holds them all: those of CASE, for example. ""
    where none is text, or where all text holds constants of the other type. written: as of `cannot_compare`."""
    texts = [v for v in values if v.type == VARCHAR]
    others = [v for v in values if v.type not in {VARCHAR, NULL}]
    if BINARY in [v.type for v in others]:  # whose bytes may not be text
        return ""
    if all(_reads_as(text, others[0].type) for text in texts) or not all(castable(v.type, VARCHAR) for v in others):
        return ""
    casts = dict.fromkeys(f"CAST({_shown(v, written)} AS VARCHAR)" for v in others)
    return f"write {' and '.join(casts)}" if len(casts) <= 2 else f"CAST each to VARCHAR, as {next(iter(casts))}"


def _reads_as(text: Expr, type_: DataType) -> bool:
    """Whether a text is a constant that holds a number or an interval, where one is needed."""
    if not (isinstance(text, Literal) and text.value is not None):
        return False
    return is_numeric_text(text.value) if type_.is_numeric else type_ == INTERVAL and _is_interval(text.value)


def _binary_help(text: Expr, written: Sequence[ast.Node]) -> str:
    """How text becomes a BINARY."""
    shown = _shown(text, written)
    if not isinstance(text, Literal) or text.value is None:
        return f"write CAST({shown} AS BINARY), or UNHEX({shown}) if the text is hexadecimal digits"
    own = f"CAST({string(text.value)} AS BINARY)"
    digits = text.value if read_hexadecimal(text.value) else ""
    return f"write X'{digits}', or for the bytes of the text {own}" if digits else f"write {own}"


def _is_interval(text: str) -> bool:
    try:
        bind_interval(ast.IntervalLiteral(read_summands(text, NOWHERE)))
    except CompileError:
        return False
    return True


def _interval_help(text: Expr, written: Sequence[ast.Node]) -> str:
    """How text becomes an interval. A comparison of intervals as text would compare how they are written."""
    if isinstance(text, Literal) and text.value is not None:
        found = _is_interval(text.value)
        return f"write INTERVAL {string(text.value)}" if found else "write an interval, such as INTERVAL '00:10:00'"
    shown = _shown(text, written)
    return f"for text as 00:02:00, write DATE '1970-01-01' + CAST({shown} AS TIME) - CAST('1970-01-01' AS TIMESTAMP)"


def _combining_help(op: str, a: Expr, b: Expr, written: Sequence[ast.Node]) -> str:
    kinds = {a.type.kind, b.type.kind}
    if op == "+" and a.type == VARCHAR and b.type == VARCHAR:
        return "use || to concatenate text"
    times = {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ, Kind.TIME, Kind.DATE}
    if op in "+-" and kinds & times and (a.type.is_numeric or b.type.is_numeric):
        if a.type.kind is Kind.DATE and b.type == BIGINT:
            return "CAST the days to INTEGER"
        return f"{'add' if op == '+' else 'subtract'} an interval: ts {op} INTERVAL '5' SECOND"
    if op == "*" and Kind.INTERVAL in kinds and (a.type.is_numeric or b.type.is_numeric):
        number = b if a.type.kind is Kind.INTERVAL else a
        name = inline.name(number.name) if isinstance(number, Column) else "n"
        whole, finer = (f"CAST(ROUND({n}) AS BIGINT) * INTERVAL '1'" for n in (name, f"{name} * 60"))
        return f"multiply an integer: {whole} MINUTE, or, to the second, {finer} SECOND"
    if op == "/" and kinds == {Kind.INTERVAL}:
        return "divide numbers: (UNIX_MICROS(b) - UNIX_MICROS(a)) / 60000000 is a distance of times in minutes"
    if Kind.TIME in kinds and kinds & {Kind.TIMESTAMP, Kind.INTERVAL_MONTH}:
        return "a time of day goes with a date, DATE '2024-01-31' + t, and with intervals of days or less"
    if op == "||" and Kind.ARRAY in kinds:
        return "|| joins two texts or two arrays: items || [x], or ARRAY_TO_STRING(items, ',') || text"
    if op == "||" and Kind.BINARY in kinds:
        ways = "HEX(x) is the text of its digits, CAST(x AS VARCHAR) that of its bytes"
        return f"|| joins two texts, or two BINARY values: {ways}"
    if op == "||":
        return "CAST the other operand to VARCHAR"
    if a.type == VARCHAR and b.type == VARCHAR:
        texts = [print_expr(n) for n in written if isinstance(n, ast.Expr) and n.span in {a.span, b.span}]
        left, right = texts if len(texts) == 2 and max(map(len, texts)) <= LONGEST_SHOWN else ("a", "b")
        return f"CAST both to numbers: CAST({left} AS DOUBLE) {op} CAST({right} AS DOUBLE)"
    texts = [e.value for e in (a, b) if isinstance(e, Literal) and e.type == VARCHAR and e.value is not None]
    if (a.type.is_numeric or b.type.is_numeric) and texts and not is_numeric_text(texts[0]):
        return f"{string(texts[0])} is not a number: write a number"
    return meeting_help(a, b, written) if {VARCHAR, BINARY} & {a.type, b.type} else ""


def json_array_help(name: str) -> str:
    """How arrays of objects in JSON text become rows."""
    return f"if it is JSON, take the elements of the array: UNNEST(JSON_ARRAY_ELEMENTS({name})) AS u(i), i ->> 'field'"


def cast_help(source: Expr, target: DataType) -> str | tuple[str, ...]:
    if source.type == VARCHAR and target.kind is Kind.ARRAY:
        name = inline.name(source.name) if isinstance(source, Column) else "text"
        split = f"split it, and cast the pieces: CAST(SPLIT({name}, ',') AS {target})"
        return (split, json_array_help(name)) if isinstance(source, Column) else split
    return _type_cast_help(source.type, target)


def _type_cast_help(source: DataType, target: DataType) -> str:
    if source.kind is Kind.ARRAY:
        return "write ARRAY_TO_STRING(items, ','), or take an element: items[1]"
    if BINARY in {source, target} and castable(VARCHAR, target):
        return f"go through its text: CAST(CAST(x AS VARCHAR) AS {target})"
    if source.is_timestamp and target.is_numeric:
        return "use a part of it, EXTRACT(HOUR FROM ts), or count from 1970: UNIX_SECONDS(ts), UNIX_MICROS(ts)"
    if source.kind is Kind.TIME and target.kind in {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ, Kind.DATE}:
        return "put it on a date: DATE '2024-01-31' + t"
    if source.kind is Kind.TIME and target.is_numeric:
        return "use a part of it, EXTRACT(HOUR FROM t), or its length: UNIX_MICROS(DATE '1970-01-01' + t)"
    if source.kind is Kind.DATE and target.is_numeric:
        return "use a part of it, EXTRACT(DAY FROM d), or count days from 1970: UNIX_SECONDS(d) / 86400"
    if source.kind is Kind.INTERVAL and target.is_numeric:
        return "subtract the times as numbers: UNIX_MICROS(a) - UNIX_MICROS(b)"
    if target.kind is Kind.TIMESTAMP and source.is_numeric:
        return "add it to a time: TIMESTAMP '1970-01-01' + n * INTERVAL '1' SECOND"
    if target.kind is Kind.DATE and source.is_numeric:
        return "add days, an INTEGER, to a date: DATE '1970-01-01' + n"
    if target.kind is Kind.INTERVAL and source == VARCHAR:
        return "for text as 00:02:00, write DATE '1970-01-01' + CAST(x AS TIME) - CAST('1970-01-01' AS TIMESTAMP)"
    if target.kind is Kind.INTERVAL and source.is_numeric:
        return f"multiply an integer: {'x' if source.is_integer else 'CAST(ROUND(x) AS BIGINT)'} * INTERVAL '1' SECOND"
    return ""
