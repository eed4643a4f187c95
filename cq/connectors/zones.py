"""Convert whole columns between UTC and the local times of a zone, through buffers like cq/lang/arrow_buffers.py."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.lang.arrow_buffers import valid
from cq.lang.types import INT64_MAX, INT64_MIN
from cq.lang.zones import CYCLE_END_US, CYCLE_START_US, CYCLE_US, zone_of


def moved_to_utc(local: pa.Array, zone: str) -> pa.Array:
    """The instants of the local times in a zone, microseconds in both; ArrowInvalid when one is out of range."""
    table = zone_of(zone)
    made, fits = moved(local, -_distances(_counts(local), table.local, table.offsets))
    if not fits:
        raise pa.ArrowInvalid("the time in UTC is beyond 64 bits of microseconds")
    return made


def offsets_at(instants: pa.Array, zone: str) -> NDArray[np.int64]:
    """A zone's UTC offset at each instant; for NULL, any offset it has."""
    table = zone_of(zone)
    return _distances(_counts(instants), table.utc, table.offsets)


def moved(column: pa.Array, by: NDArray[np.int64]) -> tuple[pa.Array, bool]:
    """Each time, in microseconds, shifted by this much, NULL where the column is; and whether all of them fit in 64
    bits."""
    times = _counts(column)
    beyond = ((by > 0) & (times > INT64_MAX - np.maximum(by, 0))) | ((by < 0) & (times < INT64_MIN - np.minimum(by, 0)))
    values = np.zeros(column.offset + len(times), np.int64)
    values[column.offset :] = times + by
    buffers = [column.buffers()[0], pa.py_buffer(values)]
    made = pa.Array.from_buffers(pa.timestamp("us"), len(column), buffers, column.null_count, column.offset)
    return made, not (beyond & valid(column)).any()


def _counts(column: pa.Array) -> NDArray[np.int64]:
    """The counts in a column of timestamps; anything under NULL."""
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column)]


def _distances(times: NDArray[np.int64], changes: tuple[int, ...], offsets: tuple[int, ...]) -> NDArray[np.int64]:
    """The UTC offsets, looked up as by `Zone.offset_at` and `offset_of`."""
    late = times >= CYCLE_END_US
    if late.any():
        times = np.where(late, CYCLE_START_US + (times - CYCLE_START_US) % CYCLE_US, times)
    return np.array(offsets, np.int64)[np.searchsorted(np.array(changes, np.int64), times, "right")]
