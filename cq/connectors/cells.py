"""Strict scanners: convert the text of one cell to a value of its column's type, or say why that is impossible.

They accept what pyarrow's CSV converters accept and give the same value (tests/connectors/test_connectors_csv.py
compares them on random text), so it does not matter which of the two reads a row. Two exceptions: pyarrow takes 0x1F
for an integer, and it rejects UTC offsets with seconds, such as +00:53:28, so blocks that contain one are read by these
scanners. Python's int() and float() see text only after it has passed a pattern.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cq.lang.calendar import days_from_civil, days_in_month
from cq.lang.types import INT64_MAX, INT64_MIN, DataType, Kind, integer_range
from cq.lang.value_text import read_span
from cq.lang.zones import zone_of

NOT_UTF8 = "it is not UTF-8"

Value = Any  # as cq.lang.types.DataType describes
MAX_NUMBER_CHARS = 400  # the most digits of a number (`cq limits`)


class UnreadableText(Exception):
    """The text is not a value of the type; the message says why if the text alone does not show it."""


LOSES_ZEROS = "as a number it would lose its zeros"
_INTEGER = re.compile(rb"-?[0-9]+\Z")
_FLOAT = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(rb"(?i:([+-]?)(?:(inf(?:inity)?)|nan(?:\([a-z0-9_]*\))?))\Z")
_DECIMAL = re.compile(rb"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,9}))?\Z")
_DATE = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z")
_TIMESTAMP = re.compile(
    rb"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
    rb"(?: ?(?:(Z|z|UTC)|([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?))?)?\Z"
)
_TIME = re.compile(rb"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{0,9}))?)?\Z")
_SPACE = b" \t"
TRUE_TEXTS, FALSE_TEXTS = ("true", "TRUE", "True"), ("false", "FALSE", "False")
_BOOLEANS = {t.encode(): True for t in TRUE_TEXTS} | {t.encode(): False for t in FALSE_TEXTS}


def scanner(type_: DataType, guessed: bool = False) -> Callable[[bytes], Value]:
    """Return the reader of cells of this type, which raises UnreadableText.  guessed: nobody declared that digits are
    numbers."""
    match type_.kind:
        case Kind.BOOLEAN:
            return _boolean
        case Kind.TINYINT | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            low, high = integer_range(type_)
            return lambda text: _integer(text, low, high, guessed)
        case Kind.DOUBLE:
            return _guessed_double if guessed else _double
        case Kind.REAL:
            return _real
        case Kind.DECIMAL:
            return lambda text: _decimal(text, type_.precision, type_.scale)
        case Kind.VARCHAR:
            return _varchar
        case Kind.BINARY:
            return _binary
        case Kind.DATE:
            return lambda text: _date(text.strip(_SPACE))
        case Kind.TIME:
            return _time
        case Kind.TIMESTAMP:
            return _timestamp
        case Kind.TIMESTAMP_LTZ:
            return lambda text: _instant(text, type_.zone)
        case Kind.INTERVAL:
            return _interval
        case _:
            raise AssertionError(f"no text form of {type_}")


def is_one(text: bytes, type_: DataType) -> bool:
    """Whether the text of a cell in an undeclared column is a value of this type."""
    try:
        scanner(type_, guessed=True)(text)
    except UnreadableText:
        return False
    return True


def _boolean(text: bytes) -> bool:
    value = _BOOLEANS.get(text)
    if value is None:
        raise UnreadableText("write true or false")
    return value


def _integer(text: bytes, low: int, high: int, guessed: bool) -> int:
    if guessed and text[:1] == b"0" and text[1:2].isdigit():
        raise UnreadableText(LOSES_ZEROS)
    text = text.strip(_SPACE)
    if not _INTEGER.match(text):
        raise UnreadableText
    digits = text.lstrip(b"-").lstrip(b"0")
    if len(digits) > 19:
        raise UnreadableText(f"it is not between {low} and {high}")
    value = int(digits or b"0") * (-1 if text.startswith(b"-") else 1)
    if not low <= value <= high:
        raise UnreadableText(f"it is not between {low} and {high}")
    return value


def _double(text: bytes) -> float:
    text = text.strip(_SPACE)
    if _FLOAT.match(text):
        return float(text)
    special = _NOT_FINITE.match(text)
    if special is None:
        raise UnreadableText
    if special[2] is None:
        return float("nan")
    return float("-inf") if special[1] == b"-" else float("inf")


def _guessed_double(text: bytes) -> float:
    if text[:1] == b"0" and len(text) > 1 and text.isdigit():
        raise UnreadableText(LOSES_ZEROS)
    return _double(text)


def _real(text: bytes) -> float:
    import numpy as np

    value = _double(text)
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if value in (float(near), 0.0) or not math.isfinite(value):
        return float(near)
    return _nearest_real(Fraction(Decimal(text.strip(_SPACE).decode())), near)


def _nearest_real(exact: Fraction, near: Any) -> float:
    """The REAL nearest to `exact`: going through a DOUBLE may miss it by one when `exact` lies on a tie."""
    import numpy as np

    with np.errstate(over="ignore"):
        candidates = [near, *(np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf))]

    def distance(candidate: Any) -> tuple[Fraction, int]:
        value = float(candidate)
        stands_for = Fraction(value) if abs(value) != float("inf") else Fraction(2) ** 128 * (1 if value > 0 else -1)
        return abs(stands_for - exact), int(candidate.view(np.int32)) & 1  # ties go to even

    return float(min(candidates, key=distance))


def _decimal(text: bytes, precision: int, scale: int) -> int:
    match = _DECIMAL.match(text.strip(_SPACE))
    if match is None or len(text) > MAX_NUMBER_CHARS:
        raise UnreadableText
    sign, whole, fraction, only_fraction, exponent = match.groups()
    fraction = fraction or only_fraction or b""
    digits = ((whole or b"") + fraction).lstrip(b"0")
    shift = int(exponent or b"0") - len(fraction) + scale
    if not digits:
        return 0
    if shift < 0:
        if digits[shift:].strip(b"0") or -shift > len(digits):
            raise UnreadableText(f"it has more than {scale} digits after the point")
        digits = digits[:shift]
    if len(digits) + max(shift, 0) > precision:
        raise UnreadableText(f"it has more than {precision - scale} digits before the point")
    unscaled: int = int(digits or b"0") * 10 ** max(shift, 0)
    return -unscaled if sign == b"-" else unscaled


def _varchar(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableText(NOT_UTF8) from None


def _binary(text: bytes) -> bytes:
    try:
        return binascii.unhexlify(text)
    except ValueError:
        raise UnreadableText("write two hexadecimal digits for each byte, as 0AFF") from None


def _date(text: bytes) -> int:
    match = _DATE.match(text)
    if match is None:
        raise UnreadableText("write it as 2024-01-31")
    year, month, day = (int(g) for g in match.groups())
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        raise UnreadableText("there is no such day")
    return days_from_civil(year, month, day)


def _time(text: bytes) -> int:
    match = _TIME.match(text.strip(_SPACE))
    if match is None:
        raise UnreadableText("write it as 10:20:30.5")
    hour, minute, second = (int(g or b"0") for g in match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise UnreadableText("there is no such time of day")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((match[4] or b"")[:6].ljust(6, b"0"))


def _timestamp(text: bytes) -> int:
    """Microseconds since 1970; a time with a zone becomes its UTC value, as in Arrow and Parquet sources."""
    match = _TIMESTAMP.match(text)
    if match is None:
        raise UnreadableText("write it as 2024-01-31 10:20:30.5")
    days = _date(match[1])
    hour, minute, second = (int(g or b"0") for g in match.groups()[1:4])
    zone_hours, zone_minutes, zone_seconds = (int(g or b"0") for g in match.groups()[7:])
    if hour > 23 or max(minute, second, zone_minutes, zone_seconds) > 59 or zone_hours > 23:
        raise UnreadableText("there is no such time of day")
    micros = int((match[5] or b"")[:6].ljust(6, b"0"))
    ahead = ((zone_hours * 60 + zone_minutes) * 60 + zone_seconds) * (-1 if match[7] == b"-" else 1)
    return (((days * 24 + hour) * 60 + minute) * 60 + second - ahead) * 1_000_000 + micros


def names_a_zone(text: bytes) -> bool:
    """Whether the text is a time with a zone."""
    match = _TIMESTAMP.match(text)
    return match is not None and bool(match[6] or match[7])


def _instant(text: bytes, zone: str) -> int:
    """Microseconds since 1970 in UTC; a time without a zone is in this one."""
    time = _timestamp(text)
    if names_a_zone(text):
        return time
    instant = time - zone_of(zone).offset_of(time)
    if not INT64_MIN <= instant <= INT64_MAX:
        raise UnreadableText("the time in UTC is beyond 64 bits of microseconds")
    return instant


def _interval(text: bytes) -> int:
    try:
        micros = read_span(text.decode("ascii"))
    except UnicodeDecodeError:
        micros = None
    if micros is None:
        raise UnreadableText("write it as 00:02:00, or 1 02:03:04.5 with days")
    return micros
