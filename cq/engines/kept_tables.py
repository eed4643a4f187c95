"""The tables of triggers while a query runs: which exist, and how their rows are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cq.connectors.compute import sort_indices
from cq.lang.arrow_buffers import number_array
from cq.planner.operators import Trigger
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import KeyedTable
from cq.records import dataclass


class Satisfied(Exception):
    """Every output has reached its row limit: how many more events were read is not defined."""


@dataclass(frozen=True, slots=True)
class TableAfter:
    """The rows of a table after an event. events: how many rows of each stream had been processed by then."""

    rows: pa.Table
    events: Mapping[str, int]


def tables_of(nodes: Sequence[LogicalNode]) -> Iterator[tuple[Trigger, int, KeyedTable]]:
    """Each table of a plan's triggers, with its operator and its number there. A table may be in several operators."""
    for node in nodes:
        if isinstance(node, Trigger):
            yield from ((node, number, table) for number, table in enumerate(node.tables))


def by_key(rows: pa.Table, table: KeyedTable) -> pa.Table:
    """The rows in the order of the table's key. Arrays are ordered, too, so the order does not depend on arrival."""
    key = [rows.column(c) for c in table.key]
    names = [str(n) for n in range(len(key))]
    ranked = pa.table([_ranks(k) if pa.types.is_list(k.type) else k for k in key], names)
    return rows.take(sort_indices(ranked, names))


def _ranks(lists: pa.ChunkedArray) -> pa.Array:
    """The rank of each list among all: compared element by element, NULL before all others."""

    def place(values: list[Any]) -> list[tuple[Any, ...]]:
        return [() if v is None else (v,) for v in values]  # none is NaN: no key holds floating-point numbers

    found = lists.to_pylist()
    ranks = {repr(values): rank for rank, values in enumerate(sorted(found, key=place))}
    return number_array(pa.int64(), [ranks[repr(values)] for values in found])
