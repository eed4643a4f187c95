"""The generator connector: a workload of cq/workloads as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from cq.connectors.arrow_file import arrow_pieces
from cq.connectors.options import SOURCE_OPTIONS
from cq.connectors.protocol import Piece
from cq.connectors.rules import Rules

_OURS = frozenset(SOURCE_OPTIONS["generator"]) - {"rows"}


def generate(options: Mapping[str, str]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and batches of the workload a WITH clause asks for; its parameters are options too.

    Without `rows` a stream goes on for good: a default would end what the plan takes for endless.
    """
    from cq.workloads import workload_named
    from cq.workloads.registry import MAX_ROWS

    workload = workload_named(options.get("workload", ""))
    parameters = {k: v for k, v in options.items() if k not in _OURS and k != "connector"}
    count = workload.parameters.get("rows")
    if count is not None and count.default is not None:
        parameters.setdefault("rows", str(MAX_ROWS))
    return workload.schema, workload.generate(**parameters)


def read_generator(options: Mapping[str, str], name: str, rules: Rules) -> Iterator[Piece]:
    """The rows of a workload as pieces."""
    schema, batches = generate(options)
    return arrow_pieces(schema, batches, f"<{name}>", rules)
