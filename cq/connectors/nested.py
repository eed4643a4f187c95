"""Arrow structs as columns: each field is one, named by its path, such as `user.id`.

A struct that is NULL is a row whose fields are NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as t

from cq.lang.schema import Field

MAX_DEPTH = 100  # nesting of structs; deeper ones are columns of no SQL type (`cq limits`)


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with the fields of structs as columns."""
    return pa.schema([leaf for column in schema for leaf in _leaves(column, "", True)])


def _leaves(column: pa.Field, path: str, nullable: bool, depth: int = 0) -> list[pa.Field]:
    name = f"{path}{column.name}"
    may_be_null = column.nullable or (depth > 0 and nullable)
    if not _opens(column.type, depth):
        return [pa.field(name, column.type, may_be_null, column.metadata)]
    return [leaf for inner in column.type.fields for leaf in _leaves(inner, f"{name}.", may_be_null, depth + 1)]


def _opens(type_: pa.DataType, depth: int) -> bool:
    return bool(t.is_struct(type_)) and type_.num_fields > 0 and depth < MAX_DEPTH


def tops_of(fields: Sequence[Field]) -> set[str]:
    """The names, in lower case, of the top-level columns that may be, or contain, the fields of a flat schema."""
    paths = [f.name.lower().split(".") for f in fields]
    return {".".join(path[:end]) for path in paths for end in range(1, len(path) + 1)}


def flat_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the columns of `flat_schema`. ArrowInvalid when the lengths in a struct are invalid."""
    if not any(t.is_struct(type_) for type_ in batch.schema.types):
        return batch
    arrays = [leaf for column in batch.columns for leaf in _columns(column)]
    return pa.RecordBatch.from_arrays(arrays, schema=flat_schema(batch.schema))


def _columns(column: pa.Array, depth: int = 0) -> list[pa.Array]:
    if not _opens(column.type, depth):
        return [column]
    column.validate()
    return [leaf for inner in column.flatten() for leaf in _columns(inner, depth + 1)]


def flat_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a mapping that holds the values inside nested mappings by their paths, besides the mappings
    themselves."""
    flat, todo = dict(row), [(str(name), value, 1) for name, value in row.items() if isinstance(value, Mapping)]
    for path, inside, depth in todo:
        for name, value in inside.items():
            flat.setdefault(f"{path}.{name}", value)
            if isinstance(value, Mapping) and depth < MAX_DEPTH:
                todo.append((f"{path}.{name}", value, depth + 1))
    return flat
