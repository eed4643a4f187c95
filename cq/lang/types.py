"""SQL types: what a column may hold, and how its values look in Python, in Arrow and in a kernel.

One physical value per SQL value, the same everywhere: the reference interpreter computes on exactly the values that
kernels hold.

One physical value per SQL value, the same everywhere: the reference interpreter computes on exactly what kernels hold.
"""

from __future__ import annotations

import ctypes
from enum import Enum
from typing import TYPE_CHECKING, Any

from cq.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DECIMAL_DIGITS = 38  # of a DECIMAL: what 128 bits can hold
WORD_DIGITS = 18  # a DECIMAL of up to this many digits is one 64-bit word
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NAN_BITS = 0x7FF8000000000000  # of the single NaN in keys, hashes and results


class Kind(Enum):
    """The family of a type."""

    NULL = "NULL"  # the type of a bare NULL, until a context gives it one
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    REAL = "REAL"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"  # bytes, not text
    DATE = "DATE"
    TIME = "TIME"  # of a day, without a zone
    TIMESTAMP = "TIMESTAMP"  # of a calendar and a clock, without a zone
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"  # an instant, shown in a zone
    INTERVAL = "INTERVAL"  # days to microseconds
    INTERVAL_MONTH = "INTERVAL MONTH"  # years and months: no fixed length
    ARRAY = "ARRAY"


class Physical(Enum):
    """How a kernel holds a value: one word, two words (low, high), one double, or (pointer, length): the bytes of a
    text or of a BINARY, or of an array as cq/runtime/values/arrays.py lays it out."""

    I64 = "i64"
    I128 = "i128"
    F64 = "f64"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class DataType:
    """A SQL type. Python values: BOOLEAN bool; integers int; REAL, DOUBLE float (REAL rounded to 32 bits);
    DECIMAL int, the unscaled value; VARCHAR str; BINARY bytes; DATE int, days since 1970-01-01; TIME int, microseconds
    since midnight; TIMESTAMP int, microseconds since 1970-01-01 without a zone; TIMESTAMP_LTZ int, microseconds since
    1970-01-01 in UTC; INTERVAL int, microseconds; INTERVAL_MONTH int, months; ARRAY tuple; NULL None.

    zone: of a TIMESTAMP_LTZ, in which its values are written, and read where the text names none.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: DataType | None = None
    zone: str = ""

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind is Kind.ARRAY:
            return f"{self.element} ARRAY"
        return str(self.kind.value)

    @property
    def physical(self) -> Physical:
        match self.kind:
            case Kind.REAL | Kind.DOUBLE:
                return Physical.F64
            case Kind.DECIMAL if self.precision > WORD_DIGITS:
                return Physical.I128
            case Kind.VARCHAR | Kind.BINARY | Kind.ARRAY:
                return Physical.BYTES
            case _:
                return Physical.I64

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_BITS

    @property
    def is_float(self) -> bool:
        return self.kind in {Kind.REAL, Kind.DOUBLE}

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.kind is Kind.DECIMAL

    @property
    def is_timestamp(self) -> bool:
        """Whether its values are microseconds since 1970, local or in UTC: the types of event times."""
        return self.kind in {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ}

    @property
    def is_interval(self) -> bool:
        return self.kind in {Kind.INTERVAL, Kind.INTERVAL_MONTH}


# the types that an array may hold
ELEMENTS = frozenset(Kind) - {Kind.NULL, Kind.INTERVAL, Kind.INTERVAL_MONTH, Kind.ARRAY}
INTEGER_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
# decimal digits that hold every value of an integer type, as Spark counts them
INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 20}

NULL = DataType(Kind.NULL)
BOOLEAN = DataType(Kind.BOOLEAN)
TINYINT = DataType(Kind.TINYINT)
SMALLINT = DataType(Kind.SMALLINT)
INTEGER = DataType(Kind.INTEGER)
BIGINT = DataType(Kind.BIGINT)
REAL = DataType(Kind.REAL)
DOUBLE = DataType(Kind.DOUBLE)
VARCHAR = DataType(Kind.VARCHAR)
BINARY = DataType(Kind.BINARY)
DATE = DataType(Kind.DATE)
TIME = DataType(Kind.TIME)
TIMESTAMP = DataType(Kind.TIMESTAMP)
UTC_INSTANT = DataType(Kind.TIMESTAMP_LTZ, zone="UTC")
INTERVAL = DataType(Kind.INTERVAL)
INTERVAL_MONTH = DataType(Kind.INTERVAL_MONTH)


def decimal(precision: int, scale: int) -> DataType:
    """DECIMAL(precision, scale); both must already be in range."""
    assert 1 <= precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision, f"DECIMAL({precision},{scale})"
    return DataType(Kind.DECIMAL, precision, scale)


def array(element: DataType) -> DataType:
    """An array of `element`, which in queries must be one of ELEMENTS; of NULL for the empty one, until a context gives
    it a type."""
    return DataType(Kind.ARRAY, element=element)


def instant(zone: str) -> DataType:
    """TIMESTAMP_LTZ shown in a zone, which must be one of `cq.lang.zones`."""
    return DataType(Kind.TIMESTAMP_LTZ, zone=zone)


def content_of(value: str | bytes) -> bytes:
    """The bytes of a VARCHAR or a BINARY, as kernels hold them."""
    return value.encode() if isinstance(value, str) else value


def some_value(type_: DataType) -> bool | int | float | str | bytes | tuple[()]:
    """A value of this type, for a place beside a flag that says it does not count."""
    match type_.physical:
        case Physical.F64:
            return 0.0
        case Physical.BYTES:
            return () if type_.kind is Kind.ARRAY else with_content(type_, b"")
        case _:
            return False if type_.kind is Kind.BOOLEAN else 0


def with_content(type_: DataType, content: bytes) -> str | bytes:
    """The VARCHAR or BINARY with these bytes."""
    return content if type_.kind is Kind.BINARY else content.decode(errors="replace")


def integer_range(type_: DataType) -> tuple[int, int]:
    """The smallest and largest value of an integer type."""
    half = 1 << (INTEGER_BITS[type_.kind] - 1)
    return -half, half - 1


def round_to_real(value: float) -> float:
    """The nearest REAL (32 bits), as the double that holds it; infinity beyond their range."""
    return ctypes.c_float(value).value


def common_type(a: DataType, b: DataType) -> DataType | None:
    """The type both convert to implicitly: the wider number, or the same type; None when there is none.

    Integers widen; integer and DECIMAL give a DECIMAL that holds both (None when it needs more than 38 digits);
    anything numeric with REAL or DOUBLE gives DOUBLE (REAL with REAL stays REAL). DATE and TIMESTAMP become
    TIMESTAMP_LTZ beside one, in its zone. NULL takes the other's type.
    """
    if a == b or b.kind is Kind.NULL:
        return a
    if a.kind is Kind.NULL:
        return b
    if a.is_integer and b.is_integer:
        return a if INTEGER_BITS[a.kind] >= INTEGER_BITS[b.kind] else b
    if a.is_numeric and b.is_numeric:
        return DOUBLE if a.is_float or b.is_float else _common_decimal(a, b)
    if {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if Kind.TIMESTAMP_LTZ in {a.kind, b.kind}:
        ours, other = (a, b) if a.kind is Kind.TIMESTAMP_LTZ else (b, a)
        return ours if other.kind in {Kind.DATE, Kind.TIMESTAMP} else None
    if a.kind is Kind.ARRAY and b.kind is Kind.ARRAY:
        assert a.element and b.element
        element = common_type(a.element, b.element)
        return array(element) if element and element.kind in ELEMENTS | {Kind.NULL} else None
    return None


def as_decimal_digits(type_: DataType) -> tuple[int, int]:
    """(precision, scale) of the DECIMAL that holds every value of an integer or DECIMAL type."""
    return (INTEGER_DIGITS[type_.kind], 0) if type_.is_integer else (type_.precision, type_.scale)


def _common_decimal(a: DataType, b: DataType) -> DataType | None:
    (p1, s1), (p2, s2) = as_decimal_digits(a), as_decimal_digits(b)
    scale = max(s1, s2)
    precision = max(p1 - s1, p2 - s2) + scale
    return decimal(precision, scale) if precision <= MAX_DECIMAL_DIGITS else None


def to_arrow(type_: DataType) -> pa.DataType:
    """The Arrow type results and inputs of this type have. INTERVAL is duration[us]; INTERVAL_MONTH is int32 months."""
    import pyarrow as pa

    match type_.kind:
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.ARRAY:
            assert type_.element is not None
            return pa.list_(to_arrow(type_.element))
        case Kind.TIMESTAMP_LTZ:
            return pa.timestamp("us", type_.zone)
        case kind:
            plain: dict[Kind, Any] = {
                Kind.NULL: pa.null(),
                Kind.BOOLEAN: pa.bool_(),
                Kind.TINYINT: pa.int8(),
                Kind.SMALLINT: pa.int16(),
                Kind.INTEGER: pa.int32(),
                Kind.BIGINT: pa.int64(),
                Kind.REAL: pa.float32(),
                Kind.DOUBLE: pa.float64(),
                Kind.VARCHAR: pa.string(),
                Kind.BINARY: pa.binary(),
                Kind.DATE: pa.date32(),
                Kind.TIME: pa.time64("us"),
                Kind.TIMESTAMP: pa.timestamp("us"),
                Kind.INTERVAL: pa.duration("us"),
                Kind.INTERVAL_MONTH: pa.int32(),
            }
            return plain[kind]


def from_arrow(type_: pa.DataType) -> DataType | None:
    """The SQL type as which a column of this Arrow type is read; None if there is none.

    Unsigned integers take the next wider signed type (uint64: BIGINT, checked on reading); a decimal of more than 38
    digits the 38 with its scale, checked too; every timestamp becomes microseconds; one with a zone is an instant,
    which can be shown in any zone; dictionaries become their values.
    """
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_dictionary(type_):
        return from_arrow(type_.value_type)
    if t.is_decimal(type_):
        fits = 0 <= type_.scale <= min(type_.precision, MAX_DECIMAL_DIGITS)
        return decimal(min(type_.precision, MAX_DECIMAL_DIGITS), type_.scale) if fits else None
    if t.is_timestamp(type_):
        return TIMESTAMP if type_.tz is None else UTC_INSTANT
    if t.is_date(type_):
        return DATE
    if t.is_time(type_):
        return TIME
    if t.is_duration(type_):
        return INTERVAL
    if t.is_fixed_size_binary(type_):
        return BINARY
    if t.is_list(type_) or t.is_large_list(type_):
        element = from_arrow(type_.value_type)
        return array(element) if element and element.kind in ELEMENTS else None
    names = {
        "bool": BOOLEAN,
        "int8": TINYINT,
        "int16": SMALLINT,
        "int32": INTEGER,
        "int64": BIGINT,
        "uint8": SMALLINT,
        "uint16": INTEGER,
        "uint32": BIGINT,
        "uint64": BIGINT,
        "halffloat": REAL,
        "float": REAL,
        "double": DOUBLE,
        "string": VARCHAR,
        "large_string": VARCHAR,
        "string_view": VARCHAR,
        "binary": BINARY,
        "large_binary": BINARY,
        "binary_view": BINARY,
    }
    return names.get(str(pa.lib.ensure_type(type_)))
