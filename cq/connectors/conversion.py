"""The conversions from the Arrow types of a self-describing input to the declared types.

A conversion changes no value: a value without an exact counterpart in the declared type is a bad row. Exceptions, all
in docs/language.md: times are cut to microseconds (downwards); as a TIMESTAMP, a timestamp with a zone becomes its UTC
value; as a TIMESTAMP_LTZ, one without a zone is read in the zone of the query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from cq.connectors import compute as pc
from cq.connectors.dictionary_codes import coded
from cq.connectors.protocol import ColumnNames
from cq.connectors.rules import Convert, TypedColumn
from cq.connectors.zones import moved_to_utc
from cq.errors import DataError, Diagnostic, did_you_mean
from cq.grammar import inline
from cq.lang.arrow_buffers import from_numpy, list_array, numbers, valid
from cq.lang.calendar import DAY_US
from cq.lang.schema import Field
from cq.lang.types import DataType, Kind, from_arrow, to_arrow

# the types that a source of integers, by bits, may be declared as without checking the values
_WIDER = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 9, "uint16": 17, "uint32": 33, "uint64": 65}
MOST_DIGITS = 20  # of an integer of 64 bits
_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}


def match_columns(
    name: str, schema: pa.Schema, fields: Sequence[Field], codes: bool = False
) -> list[tuple[int, TypedColumn]]:
    """For each declared column: its position in the input and its conversion. CQ0603 when it cannot be converted.

    codes: whether texts may stay dictionary codes.
    """
    there = ColumnNames(schema.names)
    out = []
    for i, field in enumerate(fields):
        at = there.find(field.name)
        if at is None or schema.names.count(schema.names[at]) > 1:
            cause = f"{name} has {'no column' if at is None else 'several columns'} {field.name!r}"
            guess = did_you_mean(field.name, schema.names) if at is None else ""
            listing = "its columns: " + (", ".join(schema.names[:50]) or "none")
            raise DataError(_misfit(cause, guess, listing))
        arrow = schema.field(at).type
        convert, fits = conversion(arrow, field.type, codes)
        if not fits:
            read_as = from_arrow(arrow)
            cause = f"column {field.name} of {name} is {read_as or arrow} and is declared {field.type}"
            raise DataError(_misfit(cause, _other_declaration(field, read_as)))
        out.append((at, TypedColumn(i, convert)))
    return out


def _other_declaration(field: Field, read_as: DataType | None) -> str:
    if read_as is None:
        return "remove the column, or convert it when writing the file"
    if read_as.kind is not Kind.VARCHAR:
        return f"declare it {read_as}"
    name, value = inline.name(field.name), inline.name(f"{field.name}_value")
    pieces = f"SPLIT({name}, ',')" if field.type.kind is Kind.ARRAY else name
    return f"declare the text and convert it: {name} VARCHAR, {value} AS CAST({pieces} AS {field.type})"


def _misfit(cause: str, *help: str) -> Diagnostic:
    return Diagnostic("CQ0603", cause, help=tuple(h for h in help if h))


def sound(array: pa.Array) -> pa.Array:
    """The array; as bytes where its text is not UTF-8, so that the conversion finds the bad rows.

    ArrowInvalid when its lengths, positions or numbers are invalid.
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        plain = _bytes_for_text(array.type)
        if plain == array.type:
            raise
        array = array.view(plain)
        array.validate(full=True)
    return array


def _bytes_for_text(type_: pa.DataType) -> pa.DataType:
    """The type with the same layout that makes no promise about its text."""
    if t.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _bytes_for_text(type_.value_type), type_.ordered)
    if t.is_list(type_) or t.is_large_list(type_):
        of = type_.value_field.with_type(_bytes_for_text(type_.value_type))
        return pa.list_(of) if t.is_list(type_) else pa.large_list(of)
    return {"string": pa.binary(), "large_string": pa.large_binary()}.get(str(type_), type_)


def never_fails(arrow: pa.DataType, type_: DataType) -> bool:
    """Whether every value of the input type has a counterpart in the declared type, so that no value has to be
    checked."""
    if arrow == to_arrow(type_):
        return type_.kind is not Kind.TIME
    bits = _WIDER.get(str(arrow))
    return bits is not None and type_.is_integer and bits <= _BITS[type_.kind]


def conversion(arrow: pa.DataType, type_: DataType, codes: bool = False) -> tuple[Convert | None, bool]:
    """(the function that converts a column, whether it can be converted at all); the function is None when none is
    needed.

    codes: whether texts may stay dictionary codes.
    """
    target = to_arrow(type_)
    if t.is_time(arrow) and type_.kind is Kind.TIME:
        return _time_of_day, True
    if arrow == target:
        return None, True
    if t.is_dictionary(arrow):
        inner, fits = conversion(arrow.value_type, type_)
        decode = _then(_decoded, inner)
        return (_coded_or(decode) if codes and type_.kind is Kind.VARCHAR else decode), fits
    kind = type_.kind
    if kind is Kind.ARRAY and (t.is_list(arrow) or t.is_large_list(arrow)):
        assert type_.element is not None
        inner, fits = conversion(arrow.value_type, type_.element)
        return _elementwise(inner, target), fits
    if t.is_timestamp(arrow) and type_.is_timestamp:
        return timestamps_as(type_), True
    if t.is_duration(arrow) and kind is Kind.INTERVAL:
        return lambda a: _floored(a, pa.duration("us")), True
    if t.is_integer(arrow) and kind is Kind.DECIMAL:
        every = pa.decimal256(MOST_DIGITS + type_.scale, type_.scale)  # Arrow needs a type that holds every integer
        return lambda a: a.cast(every).cast(target), True
    fits = (
        t.is_null(arrow)
        or (t.is_integer(arrow) and type_.is_integer)
        or (t.is_integer(arrow) and kind is Kind.DOUBLE)  # integers beyond 2**53 that are no DOUBLE are refused
        or (t.is_integer(arrow) and arrow.bit_width <= 16 and kind is Kind.REAL)
        or (t.is_floating(arrow) and kind is Kind.DOUBLE)
        or (t.is_float16(arrow) and kind is Kind.REAL)
        or (t.is_decimal(arrow) and (kind is Kind.DECIMAL or type_.is_integer))
        or (kind is Kind.BINARY and _is_bytes(arrow))
        or (kind is Kind.VARCHAR and (t.is_large_string(arrow) or _is_bytes(arrow) or str(arrow) == "string_view"))
        or (t.is_date(arrow) and kind is Kind.DATE)
    )
    return (lambda a: a.cast(target)), fits


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(
        t.is_binary(arrow) or t.is_large_binary(arrow) or t.is_fixed_size_binary(arrow) or t.is_binary_view(arrow)
    )


def _decoded(array: pa.Array) -> pa.Array:
    if not t.is_dictionary(array.type):
        return array
    if str(array.type.value_type) == "string_view":  # Arrow cannot take from this type
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.string()))
    return array.dictionary_decode()


def _coded_or(decode: Convert) -> Convert:
    """Keep texts as codes where that pays."""

    def convert(array: pa.Array) -> pa.Array:
        found = coded(array) if t.is_dictionary(array.type) else None
        return decode(array) if found is None else found

    return convert


def _then(first: Convert, second: Convert | None) -> Convert:
    return first if second is None else lambda a: second(first(a))


def _elementwise(convert: Convert | None, target: pa.DataType) -> Convert:
    """Lists whose elements are converted as columns of their type are."""
    if convert is None:
        return lambda a: a.cast(target)

    def run(lists: pa.Array) -> pa.Array:
        lengths, there = lists.value_lengths(), valid(lists)
        return list_array(convert(lists.flatten()), np.where(there, numbers(lengths), 0), ~there)

    return run


def microseconds(array: pa.Array) -> pa.Array:
    """Timestamps of any unit and zone as TIMESTAMP."""
    return _floored(array, pa.timestamp("us"))


def timestamps_as(type_: DataType) -> Convert:
    """The function that converts timestamps of any unit and zone to TIMESTAMP or TIMESTAMP_LTZ."""
    if type_.kind is Kind.TIMESTAMP:
        return microseconds
    return lambda a: _instants(a, type_)


def _instants(array: pa.Array, type_: DataType) -> pa.Array:
    """The instants; times without a zone are read in the zone of the type. ArrowInvalid when one is out of range."""
    counts = microseconds(array)
    if array.type.tz is None:
        counts = moved_to_utc(counts, type_.zone)
    return counts.cast(pa.int64()).cast(to_arrow(type_))


def _time_of_day(array: pa.Array) -> pa.Array:
    """Times of day of any unit as TIME; ArrowInvalid for one past the end of the day, which files may contain."""
    counts = array.cast(pa.int32()).cast(pa.int64()) if t.is_time32(array.type) else array.cast(pa.int64())
    micros = _floored(counts.cast(pa.duration(array.type.unit)), pa.duration("us")).cast(pa.int64())
    extremes = pc.min_max(micros).as_py()
    if micros.null_count < len(micros) and not 0 <= extremes["min"] <= extremes["max"] < DAY_US:
        raise pa.ArrowInvalid("a time of day is less than a day")
    return micros.cast(pa.time64("us"))


def _floored(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Times of any unit in microseconds, cut downwards; ArrowInvalid when one is out of range."""
    unit = array.type.unit
    if unit != "ns":
        stripped = array.cast(pa.int64()).cast(pa.timestamp(unit) if t.is_timestamp(target) else pa.duration(unit))
        return stripped.cast(target)
    return from_numpy(np.floor_divide(numbers(array, 0), 1_000), ~valid(array)).cast(target)
