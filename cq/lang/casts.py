"""CAST: converts a value from one type to another, for every pair of types.

`caster(source, target)` returns the conversion function for values that are not NULL; it raises `Failure` with CQ0707
for values without a counterpart (TRY_CAST makes those NULL). In short:
    to integers         range checked; DOUBLE and DECIMAL lose their fraction; text is an optional sign and digits
    to DECIMAL          rounded half up; a DOUBLE counts by its shortest text; too many digits fail
    to DOUBLE, REAL     the nearest; never fails but for text
    to BOOLEAN          numbers: is it not 0 (NaN is not); text: t true y yes 1, f false n no 0
    to VARCHAR          Spark's text: `1.0E21`, `2024-02-29 10:00:00.5`, `true`
    DATE <-> TIMESTAMP  midnight; the day
    TIMESTAMP to TIME   the time of the day
    TIMESTAMP_LTZ       to and from TIMESTAMP, DATE, TIME and text by the local time in its zone; text may name a zone
    TIME <-> INTERVAL   the time since midnight; the remainder without whole days
    BINARY and VARCHAR  the text's UTF-8 bytes, and back; bytes that are not UTF-8 fail
    array to array      each element; TRY_CAST makes those without a counterpart NULL
    text to times `cq.lang.value_text`; surrounding white space is ignored
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cq.lang import value_text
from cq.lang.calendar import DAY_US
from cq.lang.expressions import format_literal
from cq.lang.functions import Failure
from cq.lang.types import (
    BINARY,
    DATE,
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
    REAL,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    integer_range,
    round_to_real,
)
from cq.lang.zones import zone_of

Caster = Callable[[Any], Any]

_TO_TIME_AND_BACK = {
    (Kind.TIMESTAMP, Kind.TIME), (Kind.TIMESTAMP_LTZ, Kind.TIME),
    (Kind.TIME, Kind.INTERVAL), (Kind.INTERVAL, Kind.TIME),
}  # fmt: skip


def castable(source: DataType, target: DataType) -> bool:
    """Whether CAST goes from one type to the other at all; individual values may still fail."""
    if source == target or Kind.NULL in {source.kind, target.kind}:
        return True
    if source.element is not None and target.element is not None:
        return castable(source.element, target.element)
    if Kind.ARRAY in {source.kind, target.kind}:
        return False
    if Kind.BINARY in {source.kind, target.kind}:
        return {source.kind, target.kind} == {Kind.BINARY, Kind.VARCHAR}
    plain, times = {Kind.BOOLEAN}, {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ}
    if target.kind is Kind.VARCHAR:
        return True
    if source.kind is Kind.VARCHAR:
        return target.is_numeric or target.kind in plain | times | {Kind.TIME}
    if (source.kind, target.kind) in _TO_TIME_AND_BACK:
        return True
    if source.kind in times or target.kind in times:
        return source.kind in times and target.kind in times
    return all(t.is_numeric or t.kind in plain for t in (source, target))


def caster(source: DataType, target: DataType, soft: bool = False) -> Caster:
    """The conversion of non-null values from `source` to `target`. soft: elements without a counterpart become NULL."""
    assert castable(source, target), f"no cast from {source} to {target}"
    if source == target or source.kind is Kind.NULL:
        return lambda value: value
    if source.element is not None and target.element is not None:
        return _to_array(caster(source.element, target.element), soft)
    if source.kind is Kind.BINARY:
        return _decoded
    if target.kind is Kind.BINARY:
        return str.encode
    if target.kind is Kind.VARCHAR:
        return writer(source)
    if source.kind is Kind.VARCHAR:
        return reader(target)
    if source.kind is Kind.TIMESTAMP_LTZ:
        return _from_instant(source, target)
    if target.kind is Kind.TIMESTAMP_LTZ:
        return _to_instant(source, target)
    if target.is_integer:
        return _to_integer(source, target)
    if target.is_float:
        return _to_float(source, target)
    match target.kind:
        case Kind.DECIMAL:
            return _to_decimal(source, target)
        case Kind.BOOLEAN:
            return lambda value: value != 0
        case Kind.DATE:
            return lambda value: value // DAY_US
        case Kind.TIME:
            return lambda value: value % DAY_US
        case Kind.INTERVAL:
            return lambda value: value
        case _:
            return _date_to_timestamp


def _to_array(convert: Caster, soft: bool) -> Caster:
    def element(value: Any) -> Any:
        try:
            return None if value is None else convert(value)
        except Failure:
            if soft:
                return None
            raise

    return lambda value: tuple(map(element, value))


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise refuse(content, BINARY, VARCHAR) from None


def refuse(value: Any, source: DataType, target: DataType) -> Failure:
    """The failure of one value."""
    return Failure("CQ0707", cannot_cast(shown(value, source), target))


def cannot_cast(value: str, target: DataType) -> str:
    """The message about a value that cannot be cast."""
    return f"cannot cast {value} to {target}"


def shown(value: Any, source: DataType) -> str:
    """A value as messages show it; long ones are cut."""
    if source.kind is Kind.BINARY:
        return f"X{value_text.quoted(value.hex().upper())}"
    text: str = writer(source)(value)
    return value_text.quoted(text) if source.kind is Kind.VARCHAR else value_text.shortened(text)


def writer(source: DataType) -> Caster:
    """The text of a value, as in Spark's CAST to STRING."""
    match source.kind:
        case Kind.BOOLEAN:
            return lambda value: "true" if value else "false"
        case Kind.DOUBLE:
            return value_text.write_double
        case Kind.REAL:
            return value_text.write_real
        case Kind.DECIMAL:
            return lambda value: value_text.write_decimal(value, source.scale)
        case Kind.DATE:
            return value_text.write_date
        case Kind.TIME:
            return value_text.write_time
        case Kind.TIMESTAMP:
            return value_text.write_timestamp
        case Kind.TIMESTAMP_LTZ:
            return lambda value: value_text.write_instant(value, source.zone)
        case Kind.INTERVAL:
            return value_text.write_interval
        case Kind.INTERVAL_MONTH:
            return value_text.write_months
        case Kind.VARCHAR:
            return lambda value: value
        case Kind.ARRAY | Kind.BINARY | Kind.NULL:
            return lambda value: format_literal(value, source)
        case _:
            return str


def reader(target: DataType) -> Caster:
    """The value of a text."""
    read = _reader(target)

    def convert(text: str) -> Any:
        value = read(text)
        if value is None:
            raise refuse(text, DataType(Kind.VARCHAR), target)
        return value

    return convert


def _reader(target: DataType) -> Callable[[str], Any]:
    if target.is_integer:
        low, high = integer_range(target)

        def integer(text: str) -> int | None:
            value = value_text.read_integer(text)
            return value if value is not None and low <= value <= high else None

        return integer
    match target.kind:
        case Kind.DOUBLE:
            return value_text.read_double
        case Kind.REAL:
            return lambda text: None if (value := value_text.read_double(text)) is None else round_to_real(value)
        case Kind.DECIMAL:
            return lambda text: value_text.read_decimal(text, target.precision, target.scale)
        case Kind.BOOLEAN:
            return value_text.read_boolean
        case Kind.DATE:
            return value_text.read_date
        case Kind.TIME:
            return value_text.read_time
        case Kind.TIMESTAMP_LTZ:
            return lambda text: value_text.read_instant(text, target.zone)
        case _:
            assert target.kind is Kind.TIMESTAMP
            return value_text.read_timestamp


def _to_integer(source: DataType, target: DataType) -> Caster:
    low, high = integer_range(target)

    def convert(value: Any) -> int:
        if source.is_float:
            if not math.isfinite(value):
                raise refuse(value, source, target)
            whole: int = math.trunc(value)
        elif source.kind is Kind.DECIMAL:
            whole = int(abs(value) // 10**source.scale * (-1 if value < 0 else 1))
        else:
            whole = int(value)  # an integer or a BOOLEAN
        if not low <= whole <= high:
            raise refuse(value, source, target)
        return whole

    return convert


def _to_float(source: DataType, target: DataType) -> Caster:
    if source.kind is Kind.DECIMAL:
        unit = 10**source.scale
        exact: Caster = lambda value: value / unit  # noqa: E731 - integers divide with one rounding
    else:
        exact = float  # an integer, a BOOLEAN or a float: never text
    return exact if target == DOUBLE else lambda value: round_to_real(exact(value))


def _to_decimal(source: DataType, target: DataType) -> Caster:
    bound = 10**target.precision

    def convert(value: Any) -> int:
        unscaled: int | None
        if source.is_float:
            text = value_text.write_real(value) if source == REAL else repr(value)
            unscaled = value_text.read_decimal(text, target.precision, target.scale) if math.isfinite(value) else None
        else:
            shift = target.scale - (source.scale if source.kind is Kind.DECIMAL else 0)
            unscaled = int(value) * 10**shift if shift >= 0 else _half_up(value, 10**-shift)
        if unscaled is None or abs(unscaled) >= bound:
            raise refuse(value, source, target)
        return int(unscaled)

    return convert


def _half_up(value: int, unit: int) -> int:
    rounded = (2 * abs(value) + unit) // (2 * unit)
    return -rounded if value < 0 else rounded


def _from_instant(source: DataType, target: DataType) -> Caster:
    """Through the local time; converting to another zone leaves the instant unchanged."""
    if target.kind is Kind.TIMESTAMP_LTZ:
        return lambda value: value
    offset_at = zone_of(source.zone).offset_at
    from_local = caster(TIMESTAMP, target)

    def convert(value: int) -> Any:
        local = value + offset_at(value)
        if not INT64_MIN <= local <= INT64_MAX:
            raise refuse(value, source, target)
        return from_local(local)

    return convert


def _to_instant(source: DataType, target: DataType) -> Caster:
    offset_of = zone_of(target.zone).offset_of
    to_local = caster(source, TIMESTAMP)

    def convert(value: Any) -> int:
        local = to_local(value)
        time: int = local - offset_of(local)
        if not INT64_MIN <= time <= INT64_MAX:
            raise refuse(value, source, target)
        return time

    return convert


def _date_to_timestamp(days: int) -> int:
    time = days * DAY_US
    if not INT64_MIN <= time <= INT64_MAX:
        raise refuse(days, DATE, TIMESTAMP)
    return time


# `expression = value` in SQL text, as in the function registry: the documentation and the test of everything above
EXAMPLES = (
    "CAST(300 AS TINYINT) = error CQ0707",
    "CAST(-128 AS TINYINT) = -128",
    "CAST(2.9 AS INTEGER) = 2",
    "CAST(-2.9e0 AS INTEGER) = -2",
    "CAST(1e10 AS INTEGER) = error CQ0707",
    "CAST(CAST('NaN' AS DOUBLE) AS BIGINT) = error CQ0707",
    "CAST(' 12 ' AS INTEGER) = 12",
    "CAST('12.5' AS INTEGER) = error CQ0707",
    "CAST('1_000' AS BIGINT) = error CQ0707",
    "CAST('' AS BIGINT) = error CQ0707",
    "CAST('+7' AS SMALLINT) = 7",
    "CAST(true AS INTEGER) = 1",
    "TRY_CAST('x' AS BIGINT) = null",
    "CAST(null AS BIGINT) = null",
    "CAST('1e3' AS DOUBLE) = 1000e0",
    "CAST('1f' AS DOUBLE) = 1e0",
    "CAST('0x10' AS DOUBLE) = error CQ0707",
    "CAST('-Infinity' AS DOUBLE) < 0 = true",
    "CAST(16777217 AS REAL) = 16777216e0",
    "CAST(1.25 AS DECIMAL(3,1)) = 1.3",
    "CAST(-1.25 AS DECIMAL(3,1)) = -1.3",
    "CAST(2.675e0 AS DECIMAL(5,2)) = 2.68",
    "CAST(1000 AS DECIMAL(3,0)) = error CQ0707",
    "CAST('12.345' AS DECIMAL(5,2)) = 12.35",
    "CAST('1e2' AS DECIMAL(5,2)) = 100.00",
    "CAST('12,5' AS DECIMAL(5,2)) = error CQ0707",
    "CAST('yes' AS BOOLEAN) = true",
    "CAST('oui' AS BOOLEAN) = error CQ0707",
    "CAST(0 AS BOOLEAN) = false",
    "CAST('2024-02-29' AS DATE) = DATE '2024-02-29'",
    "CAST('2023-02-29' AS DATE) = error CQ0707",
    "CAST('2024-02-29 23:59:59' AS DATE) = DATE '2024-02-29'",
    "CAST('2024-02-29 23:59:60' AS DATE) = error CQ0707",
    "CAST('2024-02-29T10:00:00.1234567Z' AS TIMESTAMP) = TIMESTAMP '2024-02-29 10:00:00.123456'",
    "CAST('2024-02-29 10:00:00+02:00' AS TIMESTAMP) = error CQ0707",
    "CAST('2024-02-29 24:00:00' AS TIMESTAMP) = error CQ0707",
    "CAST(TIMESTAMP '1969-12-31 23:59:59' AS DATE) = DATE '1969-12-31'",
    "CAST(DATE '2024-02-29' AS TIMESTAMP) = TIMESTAMP '2024-02-29 00:00:00'",
    "CAST('7:5' AS TIME) = TIME '07:05:00'",
    "CAST(' 23:59:59.1234567 ' AS TIME) = TIME '23:59:59.123456'",
    "CAST('24:00:00' AS TIME) = error CQ0707",
    "CAST('2024-02-29 10:00:00' AS TIME) = error CQ0707",
    "TRY_CAST('' AS TIME) = null",
    "CAST('2024-02-29 10:00:00+02:00' AS TIMESTAMP_LTZ) = TIMESTAMP_LTZ '2024-02-29 08:00:00'",
    "CAST('2024-02-29 10:00:00.5 -0530' AS TIMESTAMP_LTZ) = TIMESTAMP_LTZ '2024-02-29 15:30:00.5Z'",
    "CAST('2024-02-29 10:00:00+24' AS TIMESTAMP_LTZ) = error CQ0707",
    "CAST(TIMESTAMP_LTZ '2024-02-29 10:00:00+02' AS VARCHAR) = '2024-02-29 08:00:00+00:00'",
    "CAST(TIMESTAMP_LTZ '2024-02-29 01:00:00+02' AS DATE) = DATE '2024-02-28'",
    "CAST(TIMESTAMP_LTZ '2024-02-29 01:00:00+02' AS TIME) = TIME '23:00:00'",
    "CAST(TIMESTAMP '2024-02-29 10:00:00' AS TIMESTAMP_LTZ) = TIMESTAMP_LTZ '2024-02-29 10:00:00Z'",
    "CAST(DATE '2024-02-29' AS TIMESTAMP_LTZ) = TIMESTAMP_LTZ '2024-02-29 00:00:00Z'",
    "CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS TIME) = TIME '23:59:59.5'",
    "CAST(TIME '10:30:00' AS INTERVAL) = INTERVAL '630' MINUTE",
    "CAST(INTERVAL '-1' SECOND AS TIME) = TIME '23:59:59'",
    "CAST(TIME '10:00:00.50' AS VARCHAR) = '10:00:00.5'",
    "CAST('ñ' AS BINARY) = X'C3B1'",
    "CAST(X'C3B1' AS VARCHAR) = 'ñ'",
    "CAST(X'' AS VARCHAR) = ''",
    "CAST(X'00FF' AS VARCHAR) = error CQ0707",
    "TRY_CAST(X'EDA080' AS VARCHAR) = null",
    "CAST(100e0 AS VARCHAR) = '100.0'",
    "CAST(1e21 AS VARCHAR) = '1.0E21'",
    "CAST(12345678.9e0 AS VARCHAR) = '1.23456789E7'",
    "CAST(0.001e0 AS VARCHAR) = '0.001'",
    "CAST(0.0001e0 AS VARCHAR) = '1.0E-4'",
    "CAST(1.50 AS VARCHAR) = '1.50'",
    "CAST(true AS VARCHAR) = 'true'",
    "CAST(TIMESTAMP '2024-02-29 10:00:00.5' AS VARCHAR) = '2024-02-29 10:00:00.5'",
    "CAST(DATE '0001-01-01' AS VARCHAR) = '0001-01-01'",
)
