"""The generator connector: a workload of cq/workloads as a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from cq.connectors.access import FileAccess
from cq.connectors.arrow.source import arrow_pieces
from cq.connectors.conversion import match_columns
from cq.connectors.natives import Twins
from cq.connectors.protocol import Piece
from cq.connectors.registry import SOURCES
from cq.connectors.requests import Opened, SourceRequest
from cq.connectors.rules import Rules
from cq.connectors.schemas import Columns, columns_of

if TYPE_CHECKING:
    from cq.workloads.registry import Workload

_OURS = frozenset(SOURCES["generator"].options) - {"rows"}


def generate(
    options: Mapping[str, str], twins: Twins | None = None, read: Collection[str] | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and batches of the workload a WITH clause asks for; its parameters are options too.

    read: the workload's columns that are read, by default all; others may have any values.

    Without `rows` a stream runs forever, or as long as its workload: a default would end a stream that the plan takes
    for endless.
    """
    workload = _workload(options)
    parameters = {k: v for k, v in options.items() if k not in _OURS and k != "connector"}
    count = workload.parameters.get("rows")
    if count is not None and count.default is not None:
        parameters.setdefault("rows", str(count.high))
    twin = None if twins is None else twins(workload.name, read)
    return workload.schema, workload.generate_by(twin or workload.build, parameters)


def _workload(options: Mapping[str, str]) -> Workload:
    from cq.workloads import workload_named

    return workload_named(options.get("workload", ""))


def _read(name: str, schema: pa.Schema, rules: Rules) -> list[str]:
    """The workload's columns that are delivered or whose values are checked: those converted, and the event time."""
    matched = match_columns(name, schema, rules.fields, rules.codes)
    return [
        schema.names[at]
        for at, c in matched
        if c.column in rules.wanted or c.convert is not None or rules.is_time(c.column)
    ]


def columns_of_workload(options: Mapping[str, str], access: FileAccess, stream: str) -> Columns:
    """The columns of the workload named in the options."""
    return columns_of(generate(options)[0])


def open_generator(asked: SourceRequest) -> Opened:
    """The rows of a workload."""
    name = f"<{asked.stream}>"
    read = _read(name, _workload(asked.options).schema, asked.rules)
    schema, batches = generate(asked.options, asked.natives.twins, read)
    pieces = arrow_pieces(schema, batches, name, asked.rules)
    if "rows" not in asked.options:
        return Opened(pieces, None, asked.rules.nothing())
    rows = int(asked.options["rows"])
    counted = CountedPieces(pieces, rows)
    return Opened(counted, counted, asked.rules.nothing(), rows)


class CountedPieces:
    """Pieces whose total number of rows is known."""

    def __init__(self, pieces: Iterator[Piece], total: int) -> None:
        self._pieces, self._total = pieces, total
        self._rows = 0

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        piece = next(self._pieces)
        self._rows += piece.batch.num_rows
        return piece

    def share_done(self) -> float | None:
        return min(1.0, self._rows / self._total) if self._total else None

    def stop(self) -> None:
        """Nothing to do: nothing waits."""

    def close(self) -> None:
        """Nothing to do: nothing is open."""
