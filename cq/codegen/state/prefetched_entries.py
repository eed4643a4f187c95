"""Prefetching the entry of a key: into the cache while earlier rows are computed, if its table has outgrown one.

A table with an index takes two steps: the slot of the index for a key far ahead, and, for one that is needed sooner,
the entry to which its slot, which was fetched before, points.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from cq.codegen.state.hash_tables import Keys, TableLocals, coded_key
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.runtime.containers.table_words import FETCH_INDEX, FETCH_SLOT, spread_stride

LINE_BYTES = 64  # of the cache: what one prefetch brings
MOST_FETCHED_BYTES = 256  # of an entry: later words are fetched when they are read

Values = Callable[[], Sequence[Val]]
"""Writes the key values of a later row."""


def prefetch_entry(keys: Keys, t: TableLocals, values: Values, sooner: Values | None, changed: bool = False) -> None:
    """Write a prefetch of the entry that these key values will need soon.

    sooner: those of a row that is nearer, if they are known.  changed: the entry will be changed, and other workers
    have had the table before.
    """
    scope = t.scope
    if keys.has_short_hash:
        # A hash this short is written for each kind of table, so that a row tests the kind only once.
        with scope.when(t.fetches(FETCH_SLOT)):
            _fetch_slot(t, _slot(keys, t, values()), changed)
        with scope.otherwise(), scope.when(t.fetches(FETCH_INDEX)):
            _fetch_index(keys, t, _slot(keys, t, values()), sooner, changed)
        return
    with scope.when(t.is_large()):
        ahead = values()
        coded = coded_key(ahead)
        if coded is None:
            _fetch_hashed(keys, t, ahead, sooner, changed)
            return
        with scope.when(expr("D != 0", D=coded.dictionary)):
            known = expr("table_recall(T, D, C)", T=t.table, D=coded.dictionary, C=coded.code)
            _fetch_lines(scope, scope.let(known, "known"), t.entry_bytes, changed)
        with scope.otherwise():
            _fetch_hashed(keys, t, ahead, sooner, changed)


def prefetch_numbered(keys: Keys, t: TableLocals, values: Sequence[Val], changed: bool = False) -> None:
    """Write a prefetch of the entry to which the slot of these key values points, in a table with an index."""
    scope = t.scope
    item = scope.let(expr("ld_i64(I, S)", I=t.index, S=_slot(keys, t, values)), "item")
    _fetch_lines(scope, scope.let(t.numbered(item), "at"), t.entry_bytes, changed)


def _fetch_hashed(keys: Keys, t: TableLocals, ahead: Sequence[Val], sooner: Values | None, changed: bool) -> None:
    slot = _slot(keys, t, ahead)
    with t.scope.when(t.fetches(FETCH_SLOT)):
        _fetch_slot(t, slot, changed)
    with t.scope.otherwise():
        _fetch_index(keys, t, slot, sooner, changed)


def _slot(keys: Keys, t: TableLocals, values: Sequence[Val]) -> ast.expr:
    """The slot at which the search for these key values begins."""
    return t.scope.let(expr("shr_u(H, S)", H=keys.hash(t.scope, values), S=t.shift), "slot")


def _fetch_slot(t: TableLocals, slot: ast.expr, changed: bool) -> None:
    at = t.scope.let(t.in_slot(slot), "at")
    fetched = min(spread_stride(t.entry_bytes), MOST_FETCHED_BYTES)
    _fetch_at(t.scope, at, range(0, fetched, LINE_BYTES), changed)


def _fetch_index(keys: Keys, t: TableLocals, slot: ast.expr, sooner: Values | None, changed: bool) -> None:
    t.scope.writer.code("prefetch(I + S * 8)", I=t.index, S=slot)
    if sooner is not None:
        prefetch_numbered(keys, t, sooner(), changed)


def _fetch_lines(scope: Scope, entry: ast.expr, entry_bytes: int, changed: bool) -> None:
    """Fetch the cache lines of an entry, wherever in a line it begins."""
    fetched = min(entry_bytes, MOST_FETCHED_BYTES)
    _fetch_at(scope, entry, dict.fromkeys([*range(0, fetched, LINE_BYTES), fetched - 8]), changed)


def _fetch_at(scope: Scope, entry: ast.expr, places: Iterable[int], changed: bool) -> None:
    fetch = "prefetch_to_write(A)" if changed else "prefetch(A)"
    for place in places:
        scope.writer.code(fetch, A=expr("A + N", A=entry, N=place) if place else entry)
