"""Linear Road's stream generated natively: the rows of `cq/workloads/linear_road/stream.py`, about twenty times as
fast.

Native code drives the roads and writes the columns. Python plans incidents and gives vehicles their names, with the
same code as the definition: both are a few steps for every minute of traffic.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa

from cq.runtime.base.interpret import GENERATORS
from cq.runtime.base.kernel import library_with
from cq.runtime.generators import reports as r
from cq.runtime.generators import traffic as t
from cq.runtime.generators.kept_memory import KeptMemory
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.draws import MASK, NORMAL_BITS, Ints, normal_table
from cq.workloads.linear_road.incidents import ACCIDENT, FOREVER, Incident, plan
from cq.workloads.linear_road.profiles import PROFILES, REPORT_S, SLOT_S, Profile
from cq.workloads.linear_road.stream import SCHEMA, Simulation
from cq.workloads.linear_road.traffic import (
    BLOCK_S,
    NOISE_SHARE,
    NewVehicles,
    desired_table,
    entry_table,
    trip_table,
)

# Rows in one allocation of columns, from which batches are cut: the rest is copied, at most a sixth.
HELD_ROWS = 3 * GENERATED_ROWS
_FIRST_ROOM = 256
_NOTHING = pa.py_buffer(bytes(GENERATED_ROWS * 8))  # of a column of queries that nobody reads
_MILLION = 1_000_000


class Road:
    """One direction: its words, and the memory they lead to, which grows between blocks."""

    def __init__(self, profile: Profile, seed: int, number: int) -> None:
        self._profile, self._seed, self.number = profile, seed, number
        self.words = np.zeros(t.ROAD_WORDS, np.int64)
        self._kept: dict[int, np.ndarray] = {}
        trips = profile.trip_segments
        fixed = {
            t.ROAD_SEED: seed, t.ROAD_STREAM: number, t.ROAD_SEGMENTS: profile.segments,
            t.ROAD_RATE_FIRST: _bits(profile.rate_first), t.ROAD_RATE_LAST: _bits(profile.rate_last),
            t.ROAD_DURATION_S: profile.duration_s, t.ROAD_FREE_MILLI: _bits(profile.free_mph * 1000.0),
            t.ROAD_CROWD: _bits(3.0 * profile.half_density), t.ROAD_SQUARED: int(profile.power_halves == 4),
            t.ROAD_FLOOR_MPH: profile.floor_mph,
        }  # fmt: skip
        for word, value in fixed.items():
            self.words[word] = value
        self._keep(t.ROAD_ENTRIES, entry_table(profile))
        if trips is not None:
            self._keep(t.ROAD_TRIPS, trip_table(trips, profile.segments))
        self._keep(t.ROAD_DESIRED, desired_table(profile))
        self._keep(t.ROAD_NOISE, normal_table(_MILLION, NOISE_SHARE * _MILLION).astype(np.int32))
        assert len(self._kept[t.ROAD_NOISE]) == len(self._kept[t.ROAD_DESIRED]) == 1 << NORMAL_BITS
        self._keep(t.ROAD_VEHICLES, np.zeros(profile.segments, np.int64))
        self._keep(t.ROAD_CAPACITY, np.ones(profile.segments, np.float64))
        self._keep(t.ROAD_LIMITS, np.zeros(profile.segments, np.int64))
        self._counts = self._keep(t.ROAD_COUNTS, np.zeros(REPORT_S, np.int64))
        self._keep(t.ROAD_NEW_COUNTS, np.zeros(BLOCK_S, np.int64))
        self._keep(t.ROAD_EDGES, np.zeros(BLOCK_S + 1, np.int64))
        self._buckets = np.zeros((REPORT_S, t.BUCKET_COLUMNS, 0), np.int64)
        self._new = np.zeros((t.NEW_COLUMNS, 0), np.int64)
        self._incidents = np.zeros((0, t.INCIDENT_WORDS), np.int64)
        self.reports = 0
        self._reserve_draws(BLOCK_S)
        self._functions = tuple(
            library_with(GENERATORS).function(name) for name in ("road_expect", "road_arrive", "road_drive")
        )
        self.address = self.words.ctypes.data

    def _keep(self, word: int, memory: np.ndarray) -> np.ndarray:
        """Point the word to this memory, and keep it alive."""
        self._kept[word] = memory
        self.words[word] = memory.ctypes.data
        return memory

    def _reserve_draws(self, count: int) -> None:
        room = self._kept.get(t.ROAD_DRAWS)
        if room is None or len(room) < count + 6:
            self._keep(t.ROAD_DRAWS, np.zeros(2 * count + 6, np.int64))

    def arrive(self, block: int) -> NewVehicles:
        """The vehicles that enter in this block, in memory that the next block overwrites."""
        expect, arrive, _ = self._functions
        count = expect(self.address, block)
        if self._new.shape[1] < count or not block:
            self._new = self._keep(t.ROAD_NEW, np.zeros((t.NEW_COLUMNS, max(2 * count, _FIRST_ROOM)), np.int64))
            self.words[t.ROAD_NEW_ROOM] = self._new.shape[1]
        self._reserve_draws(count)
        arrive(self.address, block, count)
        return NewVehicles(
            *(self._new[n, :count] for n in (t.NEW_TIME, t.NEW_X, t.NEW_EXIT, t.NEW_DESIRED, t.NEW_SPEED))
        )

    def drive(self, block: int, vids: Ints) -> None:
        """Let the block pass; the vehicles of `arrive` enter under these names."""
        start = block * BLOCK_S
        if start % SLOT_S == 0:
            self._plan(plan(self._profile, self._seed, self.number // 2, self.number % 2, start // SLOT_S))
        self._new[t.NEW_VID, : len(vids)] = vids
        most = int(self._counts.max()) + len(vids)
        if self._buckets.shape[2] < most:
            larger = np.zeros((REPORT_S, t.BUCKET_COLUMNS, 2 * most), np.int64)
            larger[:, :, : self._buckets.shape[2]] = self._buckets
            self._buckets = self._keep(t.ROAD_BUCKETS, larger)
            self.words[t.ROAD_ROOM] = larger.shape[2]
        self._reserve_draws(most)
        reports = 2 * (int(self._counts.sum()) + len(vids))
        if self.words[t.ROAD_REPORT_ROOM] < reports:
            self._keep(t.ROAD_REPORTS, np.zeros((t.REPORT_COLUMNS, 2 * reports), np.int64))
            self.words[t.ROAD_REPORT_ROOM] = 2 * reports
        self.reports = self._functions[2](self.address, block)

    @property
    def most_at_once(self) -> int:
        """The most reports in one second of the last block."""
        return self._buckets.shape[2] + self._new.shape[1]

    def _plan(self, incidents: list[Incident]) -> None:
        """Add these incidents after the existing ones."""
        planned = int(self.words[t.ROAD_PLANNED])
        if planned + len(incidents) > len(self._incidents):
            larger = np.zeros((2 * (planned + len(incidents)), t.INCIDENT_WORDS), np.int64)
            larger[:planned] = self._incidents[:planned]
            self._incidents = self._keep(t.ROAD_INCIDENTS, larger)
            opened = np.zeros(len(larger), np.int64)
            still = int(self.words[t.ROAD_OPEN_COUNT])
            if still:
                opened[:still] = self._kept[t.ROAD_OPEN][:still]
            self._keep(t.ROAD_OPEN, opened)
        for incident in incidents:
            lanes = [*incident.lanes, *(0,) * (t.MOST_LANES - len(incident.lanes))]
            self._incidents[planned] = [
                incident.start_s, incident.x, incident.segment, int(incident.kind == ACCIDENT), len(incident.lanes),
                *lanes, incident.complete, incident.hold_s, 0, FOREVER,
            ]  # fmt: skip
            planned += 1
        self.words[t.ROAD_PLANNED] = planned


class Stream:
    """All roads, and the batch that is being filled."""

    def __init__(
        self, profile: Profile, seed: int, expressways: float, queries: float, read: Collection[str] | None = None
    ) -> None:
        self._unread = set() if read is None else {SCHEMA.names[n] for n in range(r.QID, r.DAY + 1)} - {*read}
        self._names = Simulation(profile, seed, expressways, queries)
        self._roads = [Road(profile, seed, d.stream) for d in self._names.directions]
        self._words = np.zeros(r.STREAM_WORDS, np.int64)
        self._addresses = np.array([road.address for road in self._roads], np.int64)
        self._columns = np.zeros(len(SCHEMA), np.int64)
        self._exits = np.zeros((0, r.EXIT_WORDS), np.int64)
        self._order = np.zeros((2, 0), np.int64)
        self._memory = KeptMemory()
        self._buffers: list[pa.Buffer] = []
        self._room = self._taken = 0  # rows of the buffers; rows handed out of them
        for word, value in {
            r.STREAM_SEED: seed, r.STREAM_ROADS: self._addresses.ctypes.data, r.STREAM_ROAD_COUNT: len(self._roads),
            r.STREAM_QUERIES: _bits(queries), r.STREAM_SEGMENTS: profile.segments, r.STREAM_XWAYS: self._names.xways,
            r.STREAM_ROAD_FT: profile.road_ft, r.STREAM_NEXT_QID: 1, r.STREAM_COLUMNS: self._columns.ctypes.data,
        }.items():  # fmt: skip
            self._words[word] = value
        self._write = library_with(GENERATORS).function("stream_write")

    def batches(self, duration_s: int | None) -> Iterator[pa.RecordBatch]:
        """The rows in batches of GENERATED_ROWS, the last one shorter; without end when duration_s is None."""
        block = 0
        while duration_s is None or block * BLOCK_S < duration_s:
            start = block * BLOCK_S
            arriving = [road.arrive(block) for road in self._roads]
            for road, vids in zip(self._roads, self._names.names(block, arriving), strict=True):
                road.drive(block, vids)
            self._make_room(2 * sum(road.reports for road in self._roads))
            self._write(self._words.ctypes.data, start, min(BLOCK_S, (duration_s or start + BLOCK_S) - start))
            for vid, time, xway, drawn in self._exits[: self._words[r.STREAM_EXIT_COUNT]].tolist():
                self._names.comes_back(vid, time, xway, drawn & MASK)
            yield from self._whole_batches()
            block += 1
        if left := int(self._words[r.STREAM_AT]) - self._taken:
            yield self._cut(left)

    def _make_room(self, rows: int) -> None:
        """Make room in the columns for this many more rows; those not handed out yet move to the beginning."""
        if len(self._exits) < rows:
            self._exits = np.zeros((2 * rows, r.EXIT_WORDS), np.int64)
            self._words[r.STREAM_EXITS] = self._exits.ctypes.data
        most = max(road.most_at_once for road in self._roads)
        if self._order.shape[1] < most:
            self._order = np.zeros((2, 2 * most), np.int64)
            self._words[r.STREAM_ORDER], self._words[r.STREAM_ASIDE] = (part.ctypes.data for part in self._order)
        at = int(self._words[r.STREAM_AT])
        if at + rows <= self._room:
            return
        left, before = at - self._taken, self._buffers
        self._room = max(HELD_ROWS, left) + rows
        size = self._room * 8
        self._buffers = [_NOTHING if name in self._unread else self._memory.buffer(size) for name in SCHEMA.names]
        for n, buffer in enumerate(self._buffers):
            self._columns[n] = 0 if buffer is _NOTHING else buffer.address
            if left and buffer is not _NOTHING:
                ctypes.memmove(buffer.address, before[n].address + self._taken * 8, left * 8)
        self._words[r.STREAM_AT], self._taken = left, 0

    def _whole_batches(self) -> Iterator[pa.RecordBatch]:
        while int(self._words[r.STREAM_AT]) - self._taken >= GENERATED_ROWS:
            yield self._cut(GENERATED_ROWS)

    def _cut(self, rows: int) -> pa.RecordBatch:
        """The next rows, by reference."""
        arrays = [
            pa.Array.from_buffers(
                field.type, rows, [None, buffer], null_count=0, offset=0 if buffer is _NOTHING else self._taken
            )
            for field, buffer in zip(SCHEMA, self._buffers, strict=True)
        ]
        self._taken += rows
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def generate(
    profile: str | Profile,
    seed: int = 1,
    expressways: float = 1.0,
    duration_s: int | None = None,
    rows: int | None = None,
    queries: float = 0.01,
    read: Collection[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of `cq.workloads.linear_road.generate`. read: columns that are read; others may have any values."""
    traffic = PROFILES[profile] if isinstance(profile, str) else profile
    if duration_s is None and rows is None:
        duration_s = traffic.duration_s
    stream = Stream(traffic, seed, expressways, queries, read)
    return _first(stream.batches(duration_s), math.inf if rows is None else rows)


def _first(batches: Iterator[pa.RecordBatch], rows: float) -> Iterator[pa.RecordBatch]:
    """The first rows of the batches."""
    while rows > 0 and (batch := next(batches, None)) is not None:
        yield batch if batch.num_rows <= rows else batch.slice(0, int(rows))
        rows -= batch.num_rows


def _bits(value: float) -> int:
    """A double as a word."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])
