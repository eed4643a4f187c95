"""Pipelines with kernels written by hand to the contract of cq/runtime/layout/abi.py, for tests of the engine.

passthrough  (k, v, t) -> the rows with v >= 0, late ones too
running      (k, v, t) -> (k, running count of k): a trivial table of KEYS words in the state
repeat       each row v times: returns MORE often
strict       the rows, and an error at the first v < 0
windows      per CLOSE one row (watermark, rows on time since the last one); nothing else
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from cq.runtime.layout.abi import COLUMN_WORDS, STATE_FIRST_FREE, Storage
from cq.runtime.layout.pipeline import (
    ColumnSpec,
    EventTime,
    Grid,
    Lanes,
    Pipeline,
    PortSpec,
    Site,
    Slot,
    SourceSpec,
    StageSpec,
    TableShape,
)
from cq.ways import Way

KEYS = 64
INPUT = (
    ColumnSpec("k", Storage.I64, False),
    ColumnSpec("v", Storage.I64, False),
    ColumnSpec("t", Storage.I64, False),
)
PAIR = (ColumnSpec("a", Storage.I64, False), ColumnSpec("b", Storage.I64, False))

_WALK = """
def kernel(state, batch, out, constants):
    count = ld_i64(batch, 2)
    at = ld_i64(state, 0)
    while at < count:
        segment = ld_i64(batch, 1) + at * 48
        kind = ld_i64(segment, 0)
        if kind < 2:
            place = ld_i64(segment, 2)
            first = ROW_AT
            if ld_i64(state, 1) > 0:
                place = ld_i64(state, 1) - 1
            hi = ld_i64(segment, 3)
            table = ld_i64(ld_i64(batch, 3), ld_i64(segment, 1))
            while place < hi:
                if ld_i64(out, 0) >= ld_i64(out, 1):
                    st_i64(state, 0, at)
                    st_i64(state, 1, place + 1)
                    return 1
                row = ROW_AT
                k = ld_i64(ld_i64(table, 0), row)
                v = ld_i64(ld_i64(table, SECOND_COLUMN), row)
                serial = ld_i64(segment, 4) + row - first
                status = each(state, out, k, v, kind, serial, ld_i64(segment, 1), row)
                if status != 0:
                    st_i64(state, 0, at)
                    st_i64(state, 1, place + 1)
                    return status
                place += 1
            st_i64(state, 1, 0)
        else:
            event(state, out, kind, ld_i64(segment, 4), ld_i64(segment, 5))
        at += 1
    st_i64(state, 0, 0)
    return 0


def emit_at(out, a, b, serial, instant, arrival):
    row = ld_i64(out, 0)
    if row >= ld_i64(out, 2):
        port_grow(out, 0)
    columns = ld_i64(out, 3)
    st_i64(ld_i64(columns, 0), row, a)
    st_i64(ld_i64(columns, 6), row, b)
    if ld_i64(out, 8) != 0:
        position = ld_i64(out, 8) + row * 40
        st_i64(position, 0, serial)
        st_i64(position, 1, instant)
        st_i64(position, 2, 0)
        st_i64(position, 3, 0)
        st_i64(position, 4, arrival)
    st_i64(out, 0, row + 1)
    return 0


def emit(out, a, b, serial):
    return emit_at(out, a, b, serial, 9223372036854775807, 0)


def lanes(batch, port, lo, hi, out, constants):
    table = ld_i64(ld_i64(batch, 3), port)
    for row in range(lo, hi):
        st_u32(out, row - lo, hash_word(ld_i64(ld_i64(table, 0), row)))
    return 1

"""
_FORWARD = """
def event(state, out, kind, serial, watermark):
    if ld_i64(out, 5) != 0:
        port_segment(out, 0, 0, 0)
        port_segment(out, 0, kind, watermark)
    return 0

"""
_QUIET = """
def event(state, out, kind, serial, watermark):
    return 0

"""
_EACH = "def each(state, out, k, v, kind, serial, port, row):\n"
_BODIES = {
    "passthrough": "    if v >= 0:\n        emit(out, k, v, serial)\n    return 0\n",
    "running": f"""    place = {STATE_FIRST_FREE} + k % {KEYS}
    st_i64(state, place, ld_i64(state, place) + 1)
    emit(out, k, ld_i64(state, place), serial)
    return 0
""",
    "repeat": f"""    done = ld_i64(state, {STATE_FIRST_FREE})
    while done < v:
        if ld_i64(out, 0) >= ld_i64(out, 1):
            st_i64(state, {STATE_FIRST_FREE}, done)
            return 1
        emit(out, k, done, serial)
        done += 1
    st_i64(state, {STATE_FIRST_FREE}, 0)
    return 0
""",
    "strict": """    if v < 0:
        st_i64(state, 2, 1)
        st_i64(state, 3, 0)
        st_i64(state, 4, port)
        st_i64(state, 5, row)
        st_i64(state, 6, serial)
        return 2
    emit(out, k, v, serial)
    return 0
""",
    "brittle": """    if k == 7:
        st_i64(state, 2, 2)
        st_i64(state, 4, port)
        st_i64(state, 5, row)
        st_i64(state, 6, serial)
        return 2
    emit(out, k, v, serial)
    return 0
""",
    "keeps": f"""    table_insert(ld_i64(state, {STATE_FIRST_FREE}), hash_word(serial), serial)
    return 0
""",
    "keeps_and_passes": f"""    table_insert(ld_i64(state, {STATE_FIRST_FREE}), hash_word(serial), serial)
    if kind == 0:
        emit(out, k, v, serial)
    return 0
""",
    "groups": f"""    if kind == 0:
        place = {STATE_FIRST_FREE} + k * 2
        if ld_i64(state, place) == 0:
            st_i64(state, place + 1, serial)
        st_i64(state, place, ld_i64(state, place) + 1)
    return 0
""",
    "windows": f"""    if kind == 0:
        st_i64(state, {STATE_FIRST_FREE}, ld_i64(state, {STATE_FIRST_FREE}) + 1)
    return 0
""",
}
_WINDOW_EVENT = f"""
def event(state, out, kind, serial, watermark):
    if kind == 2:
        emit(out, watermark, ld_i64(state, {STATE_FIRST_FREE}), serial)
        st_i64(state, {STATE_FIRST_FREE}, 0)
    return 0

"""
_GROUPS_EVENT = f"""
def event(state, out, kind, serial, watermark):
    if kind != 2:
        return 0
    while True:
        best = -1
        for k in range(8):
            place = {STATE_FIRST_FREE} + k * 2
            if ld_i64(state, place) > 0:
                if best < 0 or ld_i64(state, place + 1) < ld_i64(state, {STATE_FIRST_FREE} + best * 2 + 1):
                    best = k
        if best < 0:
            return 0
        place = {STATE_FIRST_FREE} + best * 2
        emit_at(out, best, ld_i64(state, place), serial, watermark, ld_i64(state, place + 1))
        st_i64(state, place, 0)

"""
_EVENTS = {"windows": _WINDOW_EVENT, "groups": _GROUPS_EVENT}
_SIGNATURES = (
    ("kernel", "i64(i64, i64, i64, i64)"),
    ("emit", "i64(i64, i64, i64, i64)"),
    ("emit_at", "i64(i64, i64, i64, i64, i64, i64)"),
    ("lanes", "i64(i64, i64, i64, i64, i64, i64)"),
    ("event", "i64(i64, i64, i64, i64, i64)"),
    ("each", "i64(i64, i64, i64, i64, i64, i64, i64, i64)"),
)


PLAIN: dict[str, Any] = {
    "constants": b"",
    "sites": (),
    "user_calls": (),
    "lanes": None,
    "by_key": "",
    "chains": None,
    "sharing": None,
    "complete": 0,
    "time_entries": (),
    "passes_watermarks": False,
    "groups": (),
    "moving": None,
    "counters": (),
    "rejections": (),
}


def plain_stage(**said: Any) -> StageSpec:
    """A stage with the given fields, and none of the optional ones."""
    return StageSpec(**(PLAIN | said))


def plain_pipeline(sources: Iterable[SourceSpec], stages: Iterable[StageSpec], **said: Any) -> Pipeline:
    """A pipeline that announces no times and may keep every worker busy, except for the given fields."""
    times: dict[str, Any] = {"grids": (), "watermarks": False, "mixed": False, "workers": None, "pairs_all": False}
    return Pipeline(sources=tuple(sources), stages=tuple(stages), **(times | said))


def stage(name: str, way: Way = Way.LOOP, *, last: bool = True, limit: int | None = None) -> StageSpec:
    """A stage with one of the kernels above. last: its rows go to the sink, without segments."""
    event = _EVENTS.get(name, _QUIET if last else _FORWARD)
    words = {"repeat": 1, "windows": 1, "running": KEYS, "groups": 16}.get(name, 0)
    lanes = way is Way.LANES
    walk = _WALK.replace("ROW_AT", "ld_i32(ld_i64(batch, 4), place)" if lanes else "place")
    walk = walk.replace("SECOND_COLUMN", str(int(COLUMN_WORDS)))
    slots = tuple(Slot(f"w{n}", STATE_FIRST_FREE + n) for n in range(words))
    if name.startswith("keeps"):
        slots, words = (Slot("entries", STATE_FIRST_FREE, "table", shapes=(TableShape(4, 1),)),), 1
    return plain_stage(
        name=name,
        way=way,
        module=walk + event + _EACH + _BODIES[name],
        functions=_SIGNATURES,
        entry="kernel",
        slots=slots,
        state_words=STATE_FIRST_FREE + words,
        ports=(PortSpec("out", PAIR, limit),),
        sites=(Site("v is negative", 1, 1, 1, 2),),
        lanes=Lanes(entry="lanes", count=4, branches=1, turns=1) if lanes else None,
    )


def source(name: str = "s", delay_us: int = 0, timed: bool = True) -> SourceSpec:
    """A source of rows (k, v, t) with event time t."""
    return SourceSpec(name, INPUT, EventTime(2) if timed else None, delay_us)


def pipeline(
    *stages: StageSpec, sources: int = 1, grid_us: int = 0, delay_us: int = 0, watermarks: bool = False
) -> Pipeline:
    """Sources of rows (k, v, t) into a chain of stages."""
    grids = (Grid(grid_us),) if grid_us else ()
    return plain_pipeline(
        (source(f"s{n}", delay_us) for n in range(sources)), stages, grids=grids, watermarks=watermarks
    )


def batch(rows: Sequence[tuple[int, ...]]) -> pa.RecordBatch:
    """Rows (k, v, t), or the columns of them that a pipeline reads, as a record batch."""
    columns = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, list("kvt")[: len(columns)])


def pairs(batches: Sequence[pa.RecordBatch]) -> list[tuple[int, int]]:
    """The rows (a, b) of result batches."""
    return [(a, b) for x in batches for a, b in zip(x["a"].to_pylist(), x["b"].to_pylist(), strict=True)]
