"""Types and constants: what `DECIMAL(12,2)`, `1.50`, `DATE '2024-01-31'` and `INTERVAL '1' MINUTE` mean."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction

from cq.errors import Span, compile_error, did_you_mean
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.functions.arrays import no_element
from cq.lang.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    ELEMENTS,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    INTERVAL,
    INTERVAL_MONTH,
    MAX_DECIMAL_DIGITS,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TINYINT,
    UTC_INSTANT,
    VARCHAR,
    DataType,
    Kind,
    array,
    decimal,
    instant,
    integer_range,
)
from cq.lang.value_text import read_date, read_instant, read_time, read_timestamp
from cq.lang.zones import zone_of_session

TYPE_NAMES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT2": SMALLINT,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "INT4": INTEGER,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "INT8": BIGINT,
    "REAL": REAL,
    "FLOAT": REAL,
    "FLOAT4": REAL,
    "DOUBLE": DOUBLE,
    "FLOAT8": DOUBLE,
    "VARCHAR": VARCHAR,
    "STRING": VARCHAR,
    "TEXT": VARCHAR,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "BYTES": BINARY,
    "BLOB": BINARY,
    "BYTEA": BINARY,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
    "DATETIME": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP,
    "TIMESTAMP_LTZ": UTC_INSTANT,
    "TIMESTAMPTZ": UTC_INSTANT,
    "INTERVAL": INTERVAL,
}
DECIMAL_NAMES = {"DECIMAL", "NUMERIC", "DEC"}
DEFAULT_DECIMAL = (10, 0)  # the meaning of a bare DECIMAL, as in Spark
NOT_BUILT = {
    "CHAR": "use VARCHAR",
    "CHARACTER": "use VARCHAR",
    "MAP": "use one column for each key",
    "JSON": "use VARCHAR, or one column for each field",
    "UUID": "use VARCHAR",
    "HUGEINT": "use DECIMAL(38,0)",
}
# Types of other systems and the types that hold their values.
ELSEWHERE = {
    **dict.fromkeys(["INT64", "SIGNED", "SERIAL8", "BIGSERIAL", "UINTEGER", "UINT32"], "BIGINT"),
    **dict.fromkeys(["INT32", "MEDIUMINT", "SERIAL", "USMALLINT", "UINT16"], "INT"),
    **dict.fromkeys(["INT16", "SHORT", "UTINYINT"], "SMALLINT"),
    "BYTE": "TINYINT",
    **dict.fromkeys(["UBIGINT", "UINT64", "UNSIGNED", "NUMBER", "MONEY", "BIGNUMERIC"], "BIGINT or DECIMAL(18, 2)"),
    "FLOAT64": "DOUBLE",
    "FLOAT32": "REAL",
    **dict.fromkeys(["NVARCHAR", "VARCHAR2", "NCHAR", "BPCHAR", "NAME", "ENUM", "JSONB", "VARIANT"], "VARCHAR"),
    **dict.fromkeys(["DATETIME2", "SMALLDATETIME", "TIMESTAMP_MS", "TIMESTAMP_S"], "TIMESTAMP"),
    **dict.fromkeys(["ROW", "STRUCT"], "its fields, as ROW(a BIGINT, b VARCHAR)"),
}
# their (n) is accepted and has no effect
WITHOUT_LENGTH = {"VARCHAR", "VARBINARY", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMPTZ", "DATETIME", "FLOAT"}
MICROSECONDS = 6

UNIT_US = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
UNIT_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
DAYS_A_YEAR, DAYS_A_MONTH = 365, 30

TIME_FORMS = {
    Kind.DATE: "2024-01-31",
    Kind.TIME: "10:20:30",
    Kind.TIMESTAMP: "2024-01-31 10:20:30",
    Kind.TIMESTAMP_LTZ: "2024-01-31 10:20:30+00:00",
}

EPOCH = datetime.date(1970, 1, 1).toordinal()
_AMOUNT = re.compile(r"-?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def bind_type(type_: ast.TypeName) -> DataType:
    """The type that a type name means. CQ0304 for a DECIMAL over 38 digits, CQ0501 for an unsupported type."""
    if isinstance(type_, ast.ArrayType):
        if isinstance(type_.element, ast.RowType):
            field = type_.element.fields[0].name
            raise compile_error(
                "CQ0501",
                "arrays of rows of fields are not supported",
                type_.span,
                help=f"declare it VARCHAR ARRAY, and read its elements as JSON: UNNEST(items) AS u(i), i ->> '{field}'",
            )
        element = bind_type(type_.element)
        if element.kind not in ELEMENTS:
            refusal = no_element(element)
            raise compile_error(refusal.code, refusal.message, type_.span, help=refusal.help)
        return array(element)
    if isinstance(type_, ast.RowType):
        raise compile_error(
            "CQ0501",
            "only a column of a stream may be a row of fields",
            type_.span,
            help="convert its fields one by one: CAST(s.a AS BIGINT)",
        )
    name = type_.name
    if name in DECIMAL_NAMES:
        return _decimal_type(type_)
    if name in NOT_BUILT:
        raise compile_error("CQ0501", f"the type {name} is not supported yet", type_.span, help=NOT_BUILT[name])
    known = TYPE_NAMES.get(name)
    if known is None:
        raise compile_error(
            "CQ0501",
            f'there is no type "{name}"',
            type_.span,
            help=(
                f"write {ELSEWHERE[name]}"
                if name in ELSEWHERE
                else did_you_mean(name.lower(), map(str.lower, TYPE_NAMES)),
                f"types: {', '.join(str(t) for t in dict.fromkeys(TYPE_NAMES.values()))}, DECIMAL",
            ),
        )
    if type_.params and name not in WITHOUT_LENGTH:
        raise compile_error("CQ0501", f"{name} takes no length", type_.span, help=f"write {name}")
    if (known == TIME or known.is_timestamp) and type_.params and type_.params[0] > MICROSECONDS:
        raise compile_error(
            "CQ0501",
            f"a {known} has a precision of microseconds",
            type_.span,
            help=f"write {known}(6); further digits are cut off when values are read",
        )
    return in_session(known)


def in_session(type_: DataType) -> DataType:
    """The type in the zone of the query being bound, if the type has a zone."""
    if type_.element is not None:
        return array(in_session(type_.element))
    return instant(zone_of_session()) if type_.kind is Kind.TIMESTAMP_LTZ else type_


def _decimal_type(type_: ast.SimpleType) -> DataType:
    precision, scale = (*type_.params, 0)[:2] if type_.params else DEFAULT_DECIMAL
    if len(type_.params) > 2 or precision < 1 or scale > precision:
        raise compile_error(
            "CQ0304",
            f"DECIMAL({', '.join(map(str, type_.params))}) is impossible",
            type_.span,
            help="write DECIMAL(digits, digits after the point), such as DECIMAL(12,2)",
        )
    if precision > MAX_DECIMAL_DIGITS:
        raise compile_error(
            "CQ0304",
            f"DECIMAL({precision},{scale}) needs {precision} digits, but a DECIMAL has at most {MAX_DECIMAL_DIGITS}",
            type_.span,
            label=f"{precision} digits",
            help=f"write DECIMAL({MAX_DECIMAL_DIGITS},{min(scale, MAX_DECIMAL_DIGITS)}), or DOUBLE",
        )
    return decimal(precision, scale)


def bind_number(text: str, span: Span, negative: bool = False) -> Literal:
    """A number as written: INTEGER, BIGINT or DECIMAL by size, DECIMAL with a point, DOUBLE with an exponent."""
    sign = -1 if negative else 1
    if "e" in text.lower():
        value = float(text) * sign
        if value in (float("inf"), float("-inf")):
            raise compile_error("CQ0104", f"{text} is larger than any DOUBLE", span)
        return Literal(DOUBLE, False, value, span=span)
    if "." in text:
        whole, _, fraction = text.partition(".")
        digits = (whole + fraction).lstrip("0")
        return _decimal_literal(
            text, sign * int(digits or "0"), max(len(digits), len(fraction), 1), len(fraction), span
        )
    return integer_literal(sign * int(text), span)


def _decimal_literal(text: str, unscaled: int, precision: int, scale: int, span: Span) -> Literal:
    """A DECIMAL constant. CQ0304 when it has too many digits."""
    if precision > MAX_DECIMAL_DIGITS:
        raise compile_error(
            "CQ0304",
            f"{text} has {precision} digits, but a DECIMAL has at most {MAX_DECIMAL_DIGITS}",
            span,
            help=f"write fewer digits, or {text}e0 for a DOUBLE",
        )
    return Literal(decimal(precision, scale), False, unscaled, span=span)


def integer_literal(value: int, span: Span) -> Literal:
    """INTEGER when it fits, else BIGINT, else DECIMAL, as in Spark."""
    if not INT64_MIN <= value <= INT64_MAX:
        return _decimal_literal(str(value), value, len(str(abs(value))), 0, span)
    low, high = integer_range(INTEGER)
    return Literal(INTEGER if low <= value <= high else BIGINT, False, value, span=span)


def bind_typed(node: ast.TypedLiteral) -> Literal:
    """`DATE '…'`, `TIME '…'`, `TIMESTAMP '…'` and `TIMESTAMP_LTZ '…'`."""
    type_ = in_session(TYPE_NAMES[node.kind])
    value = read_constant(node.text, type_)
    if value is None:
        raise compile_error(
            "CQ0104",
            f"'{node.text}' is not a {type_}",
            node.span,
            help=_time_help(node.text) if type_ == TIMESTAMP else f"write {type_} '{TIME_FORMS[type_.kind]}'",
        )
    return Literal(type_, False, value, span=node.span)


def read_constant(text: str, type_: DataType) -> int | None:
    """The DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ that a constant spells; a date with a time of day is not a DATE."""
    if type_ == DATE:
        return read_date(text, clock=False)
    if type_.kind is Kind.TIMESTAMP_LTZ:
        return read_instant(text, type_.zone)
    return read_time(text) if type_ == TIME else read_timestamp(text)


def _time_help(text: str) -> str:
    if re.search(r":\d\d(\.\d+)?\s*([+-]\d\d(:?\d\d)?|[A-Za-z_/]+)$", text):
        return "TIMESTAMP has no zone: write TIMESTAMP_LTZ '2024-01-31 10:20:30+00:00', or the time without one"
    return "write TIMESTAMP '2024-01-31 10:20:30.000'"


def bind_interval(node: ast.IntervalLiteral) -> Literal:
    """An interval constant: microseconds, or months when its units are YEAR, QUARTER or MONTH."""
    months = [p for p in node.parts if p.unit in UNIT_MONTHS]
    if months and len(months) < len(node.parts):
        raise compile_error(
            "CQ0501",
            "an interval of both months and days or smaller units is not supported yet",
            node.span,
            help="write two intervals, and add one after the other",
        )
    total = sum((_amount(p, node.span) * (UNIT_MONTHS if months else UNIT_US)[p.unit] for p in node.parts), Fraction(0))
    if total.denominator != 1:
        raise compile_error(
            "CQ0104",
            "the interval is not a whole number of " + ("months" if months else "microseconds"),
            node.span,
            help="write it with a smaller unit" if months else "the smallest unit of time is the microsecond",
        )
    limit = integer_range(INTEGER)[1] if months else INT64_MAX
    if abs(total) > limit:
        raise compile_error("CQ0104", "the interval is too long for 64 bits of microseconds", node.span)
    return Literal(INTERVAL_MONTH if months else INTERVAL, False, int(total), span=node.span)


def _amount(part: ast.IntervalPart, span: Span) -> Fraction:
    amount = part.amount.strip()
    if _AMOUNT.fullmatch(amount) is None:
        raise compile_error(
            "CQ0104",
            f"'{part.amount}' is not an amount of {part.unit}",
            span,
            help=f"write INTERVAL '10' {part.unit}",
        )
    return Fraction(amount)


def in_days(months: Expr) -> str:
    """An interval in days about as long as an INTERVAL of months; of one month if that is not a constant."""
    count = months.value if isinstance(months, Literal) and months.value else 1
    years, rest = divmod(abs(count), UNIT_MONTHS["YEAR"])
    return f"INTERVAL '{years * DAYS_A_YEAR + rest * DAYS_A_MONTH}' DAY"


def is_numeric_text(text: str) -> bool:
    """Whether a string holds a number, so that it was perhaps meant to be one."""
    return _NUMBER.fullmatch(text.strip()) is not None
