"""Admission for Spark: what the reference does row by row on admission, computed for whole sources with numpy.

Every source row gets its serial `_s`, the watermark after it `_w`, and whether it was late `_late`; rows without an
event time are dropped. A part of the plan is the set of nodes that share sources, directly or not: it has its own
serials and watermark.

Serials: the sources of a part are merged by (running maximum of the event time, position of the source, row number); a
source without a WATERMARK has no event time and goes before all that have one. Late: the event time is below the
watermark that its own source had before the row. Watermark: the minimum over the sources that have not ended of running
maximum - delay; a source ends right after its last row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from cq.lang.types import INT64_MAX, INT64_MIN, TIMESTAMP, DataType, Kind
from cq.planner.plan import logical
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, rows_may_wait
from cq.planner.plan.source import SourceDef, sources_of
from cq.records import dataclass
from cq.spark.position import LATE, LATE_FAILS, ON_TIME

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

BEFORE_ALL: Final = INT64_MIN  # stands for a watermark before all times


@dataclass(frozen=True, slots=True)
class Part:
    """Connected nodes, and their sources by position."""

    nodes: tuple[LogicalNode, ...]
    sources: tuple[SourceDef, ...]

    @property
    def waits(self) -> bool:
        """Whether a row that is not late can come before the watermark has reached its time."""
        return rows_may_wait(self.nodes)


@dataclass(frozen=True, slots=True)
class Admission:
    """One source's accepted rows: their indices in its table, and the columns `_s`, `_w` and `_late` for each."""

    rows: np.ndarray[Any, Any]
    serial: np.ndarray[Any, Any]
    watermark: np.ndarray[Any, Any]
    late: np.ndarray[Any, Any]


def parts(plan: LogicalPlan) -> tuple[Part, ...]:
    """The parts of a plan that share no source."""
    return tuple(Part(members, sources_of(members)) for members in logical.parts(plan))


def admit(sources: Sequence[SourceDef], times: Mapping[str, pa.Array | int]) -> dict[str, Admission]:
    """The accepted rows of every source of one part.

    sources: by position.  times: for each by name the event times of its rows in microseconds, in order, as an int64
    array; for a source without a WATERMARK its number of rows.
    """
    import numpy as np

    lanes = [_lane(s, times[s.name]) for s in sources]
    rank = np.concatenate([np.full(len(x.rows), x.timed, np.int8) for x in lanes])
    greatest = np.concatenate([x.greatest for x in lanes])
    position = np.repeat(np.arange(len(lanes)), [len(x.rows) for x in lanes])
    order = np.lexsort((np.arange(len(position)), position, greatest, rank))
    serial = np.empty(len(order), np.int64)
    serial[order] = np.arange(len(order))
    starts = np.cumsum([0, *(len(x.rows) for x in lanes)])
    serials = [serial[a:b] for a, b in pairwise(starts)]
    watermark = _watermark(lanes, serials, len(order))
    return {
        s.name: Admission(lane.rows, own, watermark[own], _lateness(s, lane))
        for s, lane, own in zip(sources, lanes, serials, strict=True)
    }


def _lateness(source: SourceDef, lane: _Lane) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.where(lane.late, LATE_FAILS if source.strict else LATE, ON_TIME).astype(np.int8)


@dataclass(frozen=True, slots=True)
class _Lane:
    rows: np.ndarray[Any, Any]
    timed: bool
    greatest: np.ndarray[Any, Any]
    own: np.ndarray[Any, Any]  # the source's own watermark after each row
    late: np.ndarray[Any, Any]


def _lane(source: SourceDef, times: pa.Array | int) -> _Lane:
    import numpy as np

    if isinstance(times, int):
        before = np.full(times, BEFORE_ALL, np.int64)
        return _Lane(np.arange(times), False, before, before, np.zeros(times, bool))
    there = np.asarray(times.is_valid())
    time = np.asarray(times.drop_null(), dtype=np.int64)
    greatest = np.maximum.accumulate(time) if len(time) else time
    least = INT64_MIN + source.delay_us
    own = np.where(greatest < least, INT64_MIN, greatest - source.delay_us) if source.delay_us else greatest
    late = np.zeros(len(time), bool)
    late[1:] = time[1:] < own[:-1]
    return _Lane(np.flatnonzero(there), True, greatest, own, late)


def _watermark(lanes: Sequence[_Lane], serials: Sequence[np.ndarray[Any, Any]], rows: int) -> np.ndarray[Any, Any]:
    """The watermark after each row of the merged sequence."""
    import numpy as np

    merged = np.full(rows, INT64_MAX if any(x.timed for x in lanes) else BEFORE_ALL, np.int64)
    for lane, serial in zip(lanes, serials, strict=True):
        if not lane.timed:
            continue
        held = np.full(rows, BEFORE_ALL if len(serial) else INT64_MAX, np.int64)
        held[serial] = lane.own
        if len(serial):
            held[serial[-1] + 1 :] = INT64_MAX
        merged = np.minimum(merged, np.maximum.accumulate(held))
    return np.maximum.accumulate(merged) if rows else merged


def stored_type(type_: DataType) -> pa.DataType:
    """The Arrow type of a column of this type in a view: intervals and times of day cross to Spark as integers, and
    instants as their UTC TIMESTAMP."""
    import pyarrow as pa

    from cq.lang.types import to_arrow

    if type_.element is not None:
        return pa.list_(stored_type(type_.element))
    if type_.kind is Kind.TIMESTAMP_LTZ:
        return to_arrow(TIMESTAMP)
    return pa.int64() if type_.kind in {Kind.INTERVAL, Kind.TIME} else to_arrow(type_)


def from_view(column: str, type_: DataType) -> str:
    """A column of a view as Spark's type for it."""
    match type_.kind:
        case Kind.INTERVAL:
            return f"timestamp_micros({column}) - timestamp_micros(0L)"
        case Kind.INTERVAL_MONTH:
            return f"make_ym_interval(0, {column})"
        case _:
            return column


def to_result(column: str, type_: DataType) -> str:
    """A column of a result in a type that crosses back to Arrow."""
    return f"cast({column} as INT)" if type_.kind is Kind.INTERVAL_MONTH else column
