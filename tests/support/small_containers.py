"""Containers that begin as small as they can be, so that a few rows make them grow, move and resolve what they defer.

Random rows are few: with the sizes of a run most of their tables never grow, and code that goes on with the address of
a table that has grown passes every test. Only interpreted natives see these sizes: they are constants of compiled ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from cq.runtime.containers import (
    deferred,
    heap,
    intervals,
    lists,
    log,
    multimap,
    multimap_saving,
    panes,
    records,
    slides,
    strings,
    tables,
    waiting,
)

SIZES = (
    (deferred, "CHUNK_BYTES", 64),
    (heap, "FIRST_ITEMS", 1),
    (intervals, "FIRST_DUE", 1),
    (lists, "FIRST_ROOM_BYTES", 16),
    (log, "CHUNK_BYTES", 64),
    (log, "FIRST_NUMBERS", 1),
    (multimap, "FIRST_ROWS", 1),
    (multimap_saving, "DEFER_FROM_ROWS", 3),
    (panes, "FIRST_PANES", 1),
    (records, "FIRST_RECORDS", 1),
    (slides, "FIRST_SUMS", 1),
    (strings, "ARENA_FIRST_BYTES", 16),
    (strings, "COMPACT_FROM_BYTES", 64),
    (tables, "FIRST_LOG_SLOTS", 2),
    (waiting, "FIRST_RECORDS", 1),
)


@contextmanager
def small_containers() -> Iterator[None]:
    """Within it, containers of interpreted natives are made small."""
    with ExitStack() as stack:
        for module, name, size in SIZES:
            assert isinstance(getattr(module, name), int), f"{module.__name__} has no size {name}"
            stack.enter_context(patch.object(module, name, size))
        yield
