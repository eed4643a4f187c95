"""Prefetch the entries that transactions of later events will name while the current one runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.codegen.flow import Flow
from cq.codegen.prefetch import prefetch, prefetch_array, prefetch_elements
from cq.codegen.state.hash_tables import Keys, TableLocals
from cq.lang.expressions import Column, Expr, columns_of
from cq.planner.operators import Trigger
from cq.planner.plan.transactions import Access, Each, Read, every, frame_starts

Tables = Sequence[tuple[Keys, TableLocals]]


def fetch_ahead(flow: Flow, node: Trigger, tables: Tables) -> None:
    """Write prefetches for all accesses whose keys are columns of the event, or elements of its arrays, and for these
    arrays and those looped over together with them."""
    for access in node.accesses:
        if isinstance(access, Access) and _of_event(node, access.key):
            prefetch(flow, node.input, *tables[access.table], access.key)
    eaches = [s for p in node.programs for s in every(p.steps) if isinstance(s, Each)]
    for array in dict.fromkeys(a for each in eaches for a in each.arrays if _of_event(node, (a,))):
        prefetch_array(flow, node.input, array)
    for table, key, lists in dict.fromkeys(k for each in eaches for k in _keys(node, each)):
        prefetch_elements(flow, node.input, *tables[table], key, lists)


def _keys(node: Trigger, each: Each) -> Iterator[tuple[int, tuple[Expr, ...], tuple[bool, ...]]]:
    """The tables and keys of accesses that use an element of these arrays, with or without columns of the event: the
    arrays stand for their elements, and flags beside the key mark them."""
    first = frame_starts(node.width, node.tables, node.accesses)[each.local]
    arrays = dict(enumerate(each.arrays, first))
    for number in sorted({s.access for s in every(each.steps) if isinstance(s, Read)}):
        access = node.access(number)
        lists = tuple(isinstance(k, Column) and k.index in arrays for k in access.key)
        key = tuple(arrays.get(k.index, k) if isinstance(k, Column) else k for k in access.key)
        if any(lists) and _of_event(node, key):
            yield access.table, key, lists


def _of_event(node: Trigger, exprs: Sequence[Expr]) -> bool:
    return all(c < node.width for c in columns_of(*exprs))
