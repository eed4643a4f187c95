"""Undeclared streams, narrowed to what the query needs: columns it does not use are neither read nor checked.

Their position is kept: engines that take whole rows find NULL there.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import pyarrow as pa

from cq.connectors.protocol import DeclaredStream
from cq.connectors.registry import SOURCES, option
from cq.lang.expressions import Expr, remap
from cq.lang.schema import Field
from cq.lang.types import to_arrow
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A stream with some of its columns. indices: the positions of these in the whole stream."""

    name: str
    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...]
    event_time: Expr | None
    indices: tuple[int, ...]
    inferred: bool = True
    rows: None = None

    def wanted(self, wanted: Sequence[int]) -> tuple[int, ...]:
        """The columns among `wanted`, positions in the whole stream, that it has, as positions here."""
        return tuple(self.indices.index(column) for column in wanted if column in self.indices)


def narrowed(stream: DeclaredStream, used: AbstractSet[int]) -> Narrowed | None:
    """The stream with the columns that are used; None for one that has to be read whole: its columns were declared, all
    of them are used, or leaving one out would change which name or number identifies another."""
    options = dict(stream.options)
    narrows = stream.rows is None and SOURCES[options.get("connector", "file")].narrows
    if not stream.inferred or not narrows or len(used) == len(stream.fields):
        return None
    if option(options, "header") == "false" or len({f.name.lower() for f in stream.fields}) < len(stream.fields):
        return None
    indices = tuple(sorted(used))
    time = stream.event_time
    moved = None if time is None else remap(time, {old: new for new, old in enumerate(indices)})
    return Narrowed(stream.name, tuple(stream.fields[i] for i in indices), stream.options, moved, indices)


def spread(
    batch: pa.RecordBatch, fields: Sequence[Field], wanted: Sequence[int], read: Sequence[int]
) -> pa.RecordBatch:
    """The wanted columns of the whole stream: those that were read, taken from the batch, and NULLs for the others."""
    if set(wanted) <= set(read):
        return batch
    there, rows = iter(batch.columns), batch.num_rows
    columns = [next(there) if i in read else pa.nulls(rows, to_arrow(fields[i].type)) for i in wanted]
    return pa.RecordBatch.from_arrays(columns, [fields[i].name for i in wanted])
