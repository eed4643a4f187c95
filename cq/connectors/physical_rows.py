"""Rows of physical values (`cq.lang.types.DataType`) from canonical Arrow batches, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cq.lang import arrow_buffers
from cq.lang.schema import Field
from cq.lang.types import WORD_DIGITS, DataType, Kind, to_arrow


def rows_of(batch: pa.RecordBatch, types: Sequence[DataType]) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch as tuples of physical values."""
    columns = [values_of(column, type_) for column, type_ in zip(batch.columns, types, strict=True)]
    if not columns:
        return iter([()] * batch.num_rows)
    return zip(*columns, strict=True)


def values_of(column: pa.Array, type_: DataType) -> list[Any]:
    """The physical values of a column."""
    match type_.kind:
        case Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ | Kind.INTERVAL:
            values: list[Any] = column.cast(pa.int64()).to_pylist()
        case Kind.DATE:
            values = column.cast(pa.int32()).to_pylist()
        case Kind.DECIMAL:
            values = _unscaled(column)
        case Kind.ARRAY:
            assert type_.element is not None
            flat = values_of(column.values, type_.element)
            ends = column.offsets.to_pylist()
            lists = zip(ends, ends[1:], column.is_valid().to_pylist(), strict=False)
            values = [tuple(flat[a:b]) if valid else None for a, b, valid in lists]
        case _:
            values = column.to_pylist()
    return values


def _unscaled(column: pa.Array) -> list[Any]:
    """DECIMAL values as integers; up to 18 digits the low words suffice, since the high ones only repeat the sign."""
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    unscaled: list[Any] = words[::2].tolist()
    if column.type.precision > WORD_DIGITS:
        unscaled = [high << 64 | low % 2**64 for low, high in zip(unscaled, words[1::2].tolist(), strict=True)]
    if not column.null_count:
        return unscaled
    return [w if valid else None for w, valid in zip(unscaled, column.is_valid().to_pylist(), strict=True)]


def batch_of(rows: Sequence[Sequence[Any]], fields: Sequence[Field]) -> pa.RecordBatch:
    """Rows of physical values as a batch with the Arrow types of their columns."""
    schema = pa.schema([pa.field(f.name, to_arrow(f.type), f.nullable) for f in fields])
    if not fields:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), len(rows), [None]))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    arrays = [array_of(list(values), f.type) for values, f in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def array_of(values: list[Any], type_: DataType) -> pa.Array:
    """Physical values as an array of the column's Arrow type."""
    arrow = to_arrow(type_)
    match type_.kind:
        case Kind.NULL:
            return pa.nulls(len(values))
        case Kind.BOOLEAN:
            return arrow_buffers.boolean_array(values)
        case Kind.VARCHAR:
            return arrow_buffers.text_array(values)
        case Kind.BINARY:
            return arrow_buffers.binary_array(values)
        case Kind.DECIMAL:
            return arrow_buffers.decimal_array(arrow, values)
        case Kind.ARRAY:
            assert type_.element is not None
            flat = array_of([x for v in values if v is not None for x in v], type_.element)
            sizes = np.array([0 if v is None else len(v) for v in values], np.int64)
            return arrow_buffers.list_array(flat, sizes, arrow_buffers.missing_in(values))
        case _:
            return arrow_buffers.number_array(arrow, values)
