"""The generator connector: a workload of cq/workloads as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from cq.connectors.arrow.source import arrow_pieces
from cq.connectors.options import SOURCE_OPTIONS
from cq.connectors.protocol import Piece
from cq.connectors.rules import Rules

if TYPE_CHECKING:
    from cq.workloads.registry import Build

Twins = Callable[[str], "Build | None"]  # the faster way to make a workload's rows, by its name, where there is one

_OURS = frozenset(SOURCE_OPTIONS["generator"]) - {"rows"}


def generate(options: Mapping[str, str], twins: Twins | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and batches of the workload a WITH clause asks for; its parameters are options too.

    Without `rows` a stream goes on for good, or as far as its workload does: a default would end what the plan takes
    for endless.
    """
    from cq.workloads import workload_named

    workload = workload_named(options.get("workload", ""))
    parameters = {k: v for k, v in options.items() if k not in _OURS and k != "connector"}
    count = workload.parameters.get("rows")
    if count is not None and count.default is not None:
        parameters.setdefault("rows", str(count.high))
    twin = None if twins is None else twins(workload.name)
    return workload.schema, workload.generate_by(twin or workload.build, parameters)


def read_generator(options: Mapping[str, str], name: str, rules: Rules, twins: Twins | None = None) -> Iterator[Piece]:
    """The rows of a workload as pieces."""
    schema, batches = generate(options, twins)
    return arrow_pieces(schema, batches, f"<{name}>", rules)
