"""Values of parameters: `:name` as a constant. A value given as text on the command line takes the type of its use."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.hints import face
from cq.lang.expressions import Expr, Literal
from cq.lang.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    TIME,
    TIMESTAMP,
    VARCHAR,
    DataType,
    instant,
    integer_range,
)
from cq.lang.value_text import read_hexadecimal
from cq.lang.zones import zone_of_session
from cq.planner.binding.literals import EPOCH, bind_number, integer_literal

MAX_NUMBER_CHARACTERS = 40  # characters of a parameter that may be a number
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,38}")
_WORDS = {"true": True, "false": False, "null": None}


class Untyped(str):
    """The text of `--var name=text`: its type comes from what it is compared with, else from its form."""


ParameterValue = (
    bool
    | int
    | float
    | Decimal
    | str
    | bytes
    | datetime.datetime
    | datetime.date
    | datetime.time
    | datetime.timedelta
    | None
)


def bind_parameter(name: str, value: ParameterValue, span: Span) -> Literal:
    """The constant a parameter stands for."""
    match value:
        case Untyped():
            return bind_parameter(name, as_written(value), span)
        case None:
            return Literal(NULL, True, None, span=span)
        case bool():
            return Literal(BOOLEAN, False, value, span=span)
        case int():
            return integer_literal(value, span)
        case float():
            return Literal(DOUBLE, False, value, span=span)
        case Decimal() if value.is_finite():
            text = format(abs(value), "f")
            return bind_number(text if "." in text else text + ".", span, negative=value < 0)
        case str() if any("\ud800" <= c <= "\udfff" for c in value):
            raise compile_error("CQ0105", f'the parameter "{name}" is not valid Unicode', span, help="pass it in UTF-8")
        case str():
            return Literal(VARCHAR, False, value, span=span)
        case bytes():
            return Literal(BINARY, False, value, span=span)
        case datetime.datetime() if value.tzinfo is None:
            us = (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
            return Literal(TIMESTAMP, False, us, span=span)
        case datetime.datetime():
            since = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
            return Literal(instant(zone_of_session()), False, since // datetime.timedelta(microseconds=1), span=span)
        case datetime.time() if value.tzinfo is None:
            since = datetime.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
            us = since // datetime.timedelta(microseconds=1) + value.microsecond
            return Literal(TIME, False, us, span=span)
        case datetime.timedelta():
            return Literal(INTERVAL, False, value // datetime.timedelta(microseconds=1), span=span)
        case datetime.date() if not isinstance(value, datetime.datetime):
            return Literal(DATE, False, value.toordinal() - EPOCH, span=span)
        case _ if type(value).__module__ == "numpy" and hasattr(value, "item"):
            return bind_parameter(name, value.item(), span)
        case list() | tuple() | set() | frozenset():
            raise compile_error(
                "CQ0206",
                f'the parameter "{name}" has several values, and a parameter is one',
                span,
                help=_several(name),
            )
        case _:
            raise compile_error(
                "CQ0206",
                f'the parameter "{name}" has a value of type {type(value).__name__}, which has no SQL type',
                span,
                help="pass a number, text, bytes, date, time without zone, datetime or timedelta",
            )


def as_written(text: str) -> bool | int | float | Decimal | str | None:
    """A number, true, false or null if it looks like one, else the text itself: 00501 and +49 are text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > MAX_NUMBER_CHARACTERS or not _NUMBER.fullmatch(text):
        return str(text)
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def bind_beside(name: str, value: Untyped, other: DataType, span: Span) -> Literal:
    """The constant for a place beside a value of another type. CQ0206 for text that is not a value of that type."""
    if value.lower() == "null":
        return bind_parameter(name, None, span)
    if other == VARCHAR:
        return bind_parameter(name, str(value), span)
    if other == BINARY:
        content = read_hexadecimal(value)
        if content is None:
            raise _unfit(name, value, other, span)
        return Literal(BINARY, False, content, span=span)
    if other.is_numeric and _WHOLE.fullmatch(value):
        return integer_literal(int(value), span)
    written = bind_parameter(name, value, span)
    if (other.is_numeric and not written.type.is_numeric) or (other == BOOLEAN and written.type != BOOLEAN):
        raise _unfit(name, value, other, span)
    return written


def _unfit(name: str, value: str, other: DataType, span: Span) -> CompileError:
    cause = f"the parameter \"{name}\" is '{value}', and is compared with {other}"
    example = "true" if other == BOOLEAN else "0AFF" if other == BINARY else "1"
    way = f"set another value: {face().setting(name, example)}"
    help = (way, f"a parameter is one value; {_several(name)}") if "," in value else (way,)
    return compile_error("CQ0206", cause, span, label=f"no {other}", help=help)


def _several(name: str) -> str:
    return f"for several, give one text, '1,2', and write x = ANY(CAST(SPLIT(:{name}, ',') AS BIGINT[]))"


def demand_equal(node: ast.Expr, given: Mapping[str, ParameterValue], other: Expr) -> None:
    """CQ0206 for a parameter that can equal no value of an integer column: whatever the rows, none would pass."""
    if not isinstance(node, ast.Parameter) or isinstance(other, Literal) or not other.type.is_integer:
        return
    value = given.get(node.name)
    if isinstance(value, bool) or not isinstance(value, Untyped | int | float | Decimal):
        return
    try:
        number = Decimal(value)
    except InvalidOperation:
        return  # a text that is not a number has been refused
    least, greatest = integer_range(other.type)
    if number.is_finite() and number == number.to_integral_value() and least <= number <= greatest:
        return
    cause = f'the parameter "{node.name}" is {value}, and no {other.type} equals it'
    raise compile_error("CQ0206", cause, node.span, help=f"set another value: {face().setting(node.name, '1')}")
