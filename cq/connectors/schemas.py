"""Arrow schemas as columns of SQL."""

from __future__ import annotations

import pyarrow as pa

from cq.connectors.mixed import is_mixed, unheld
from cq.connectors.nested import flat_schema
from cq.lang.schema import Field, Unheld
from cq.lang.types import VARCHAR, from_arrow

Columns = tuple[Field | Unheld, ...]


def columns_of(schema: pa.Schema) -> Columns:
    """The columns of an Arrow schema as SQL columns, including the fields of its structs."""
    return tuple(_held(f) or unheld(f) for f in flat_schema(schema))


def _held(column: pa.Field) -> Field | None:
    if is_mixed(column):
        return None
    type_ = VARCHAR if pa.types.is_null(column.type) else from_arrow(column.type)
    return Field(column.name, type_, column.nullable) if type_ is not None else None
