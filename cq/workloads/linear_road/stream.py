"""The Linear Road stream: all directions merged by time, vehicles that come back, and the queries in between.

Directions are simulated separately and only meet here, one block of a minute at a time, so memory is bounded by the
vehicles on the road. Whatever is cut off by `duration_s` or `rows` is a prefix: asking for less changes nothing before
the cut.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from cq.lang.arrow_buffers import from_numpy, numbers, of_type
from cq.records import dataclass, field
from cq.workloads.batches import regroup
from cq.workloads.draws import Bits, Floats, Ints, mix, mix_columns
from cq.workloads.linear_road.history import DAYS, FIRST_VID, daily_xways
from cq.workloads.linear_road.profiles import EXIT_LANE, PROFILES, SEGMENT_FT, Profile
from cq.workloads.linear_road.traffic import BLOCK_S, Direction, NewVehicles, arrivals

COLUMNS = (
    "type", "time", "vid", "spd", "xway", "lane", "dir", "seg", "pos", "qid", "s_init", "s_end", "dow", "tod", "day",
)  # fmt: skip
SCHEMA = pa.schema(
    [pa.field(name, pa.int64(), nullable=False) for name in COLUMNS]
    + [pa.field("ts", pa.timestamp("us"), nullable=False)]
)

REENTRY_SHARE = 0.1
_REENTRY_FIRST_S, _REENTRY_LAST_S = 61, 1061

# First word of every hash: its purpose.
HASH_OF_REENTRY, HASH_OF_QUERY, HASH_OF_QUERY_FIELDS = 11, 12, 13
HIT_SHARE = 0.9  # of the queries about a day that ask for the expressway the vehicle used
MICROS = 1_000_000


def generate(
    profile: str | Profile,
    seed: int = 1,
    expressways: float = 1.0,
    duration_s: int | None = None,
    rows: int | None = None,
    queries: float = 0.01,
) -> Iterator[pa.RecordBatch]:
    """Position reports and queries of SCHEMA in order of time, as record batches.

    expressways: L in steps of 0.5; a half is the eastbound direction of the last expressway.  duration_s: simulated
    seconds, default the profile's; with `rows` alone the traffic continues at its last rate until there are enough.
    rows: stop after this many.  queries: share of the position reports that come with a query.

    Within a second: reports by (xway, dir, vid), then queries in the order of their reports. QIDs count from 1.
    """
    traffic = PROFILES[profile] if isinstance(profile, str) else profile
    if duration_s is None and rows is None:
        duration_s = traffic.duration_s
    return regroup(Simulation(traffic, seed, expressways, queries).blocks(duration_s), rows)


@dataclass(slots=True)
class Simulation:
    """All directions in step. `blocks` may be taken once; `directions` then holds what happened."""

    profile: Profile
    seed: int
    expressways: float
    queries: float = 0.01
    directions: list[Direction] = field(init=False)
    _returning: list[tuple[int, int, int, int]] = field(init=False, default_factory=list)
    _apart: dict[int, Sequence[int]] = field(init=False, default_factory=dict)
    _next_vid: int = field(init=False, default=FIRST_VID)
    _next_qid: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        streams = range(round(2 * self.expressways))
        self.directions = [Direction(self.profile, self.seed, s // 2, s % 2) for s in streams]

    @property
    def xways(self) -> int:
        """Number of expressway ids; a half counts as one."""
        return math.ceil(self.expressways)

    def blocks(self, duration_s: int | None) -> Iterator[pa.RecordBatch]:
        """One record batch per minute of traffic, without end when duration_s is None."""
        block = 0
        while duration_s is None or block * BLOCK_S < duration_s:
            batch = self._block(block)
            if duration_s is not None and duration_s < (block + 1) * BLOCK_S:
                keep = np.searchsorted(numbers(batch.column(1)), duration_s)
                batch = batch.slice(0, int(keep))
            yield batch
            block += 1

    def _block(self, block: int) -> pa.RecordBatch:
        new = [arrivals(self.profile, self.seed, d.stream, block) for d in self.directions]
        names = self.names(block, new)
        moved = [d.advance(block, a, v) for d, a, v in zip(self.directions, new, names, strict=True)]
        stream = np.repeat(np.arange(len(moved), dtype=np.int64), [len(r.time) for r in moved])
        time, vid, speed, lane = (
            np.concatenate([getattr(r, name) for r in moved]) for name in ("time", "vid", "speed", "lane")
        )
        pos = np.concatenate([d.position(r.x) for d, r in zip(self.directions, moved, strict=True)])
        order = np.lexsort((vid, stream, time))
        reports = {
            "time": time[order], "vid": vid[order], "spd": speed[order], "lane": lane[order], "pos": pos[order],
            "xway": stream[order] >> 1, "dir": stream[order] & 1,
        }  # fmt: skip
        reports["seg"] = reports["pos"] // SEGMENT_FT
        self._remember_exits(reports)
        return self._interleave(reports, self._ask(reports["time"], reports["vid"]))

    def names(self, block: int, new: list[NewVehicles]) -> list[Ints]:
        """VIDs of the arriving vehicles by direction: dense by (time, direction, order), returning ones renamed."""
        start = block * BLOCK_S
        counts = np.stack([np.bincount(a.time - start, minlength=BLOCK_S) for a in new], axis=1).ravel()
        ends = np.cumsum(counts)
        firsts = (ends - counts + self._next_vid).reshape(BLOCK_S, len(new))
        names = []
        for i, a in enumerate(new):
            second = a.time - start
            in_second = np.arange(len(second), dtype=np.int64) - np.searchsorted(second, second)
            names.append(firsts[second, i] + in_second)
        self._next_vid += int(ends[-1])
        self._return_vehicles(start + BLOCK_S, new, names)
        return names

    def _remember_exits(self, reports: dict[str, Ints]) -> None:
        """Choose which of the vehicles leaving in this block come back, where, and from when on."""
        out = np.flatnonzero(reports["lane"] == EXIT_LANE)
        chosen = mix_columns(HASH_OF_REENTRY, self.seed, reports["vid"][out], reports["time"][out])
        out = out[_fraction(chosen) < REENTRY_SHARE]
        for i in out.tolist():
            vid, time, xway = (int(reports[c][i]) for c in ("vid", "time", "xway"))
            self.comes_back(vid, time, xway, mix(HASH_OF_REENTRY, self.seed, vid, time, 1))

    def comes_back(self, vid: int, time: int, xway: int, drawn: int) -> None:
        """Schedule the return of a vehicle that leaves this expressway now; `drawn`, 64 bits, decides when and
        where."""
        others = self._others(xway)
        # The delay leaves half of the range for finding a vehicle.
        earliest = time + _REENTRY_FIRST_S + (drawn >> 32) % (_REENTRY_LAST_S - _REENTRY_FIRST_S - 400)
        self._returning.append((earliest, vid, others[drawn % len(others)], time + _REENTRY_LAST_S))

    def _others(self, xway: int) -> Sequence[int]:
        """The directions of other expressways when there are any, else all."""
        if xway not in self._apart:
            elsewhere = [n for n, d in enumerate(self.directions) if d.xway != xway]
            self._apart[xway] = elsewhere or range(len(self.directions))
        return self._apart[xway]

    def _return_vehicles(self, end: int, new: list[NewVehicles], names: list[Ints]) -> None:
        """Give arriving vehicles the names of those returning before second `end`; each gets the first free one."""
        due = sorted(r for r in self._returning if r[0] < end)
        if not due:
            return
        waiting = [r for r in self._returning if r[0] >= end]
        times = [a.time.tolist() for a in new]
        taken: list[set[int]] = [set() for _ in new]
        for earliest, vid, target, latest in due:
            n = bisect_left(times[target], earliest)
            while n in taken[target]:
                n += 1
            if n == len(times[target]):
                waiting.append((end, vid, target, latest))
            elif times[target][n] <= latest:
                taken[target].add(n)
                names[target][n] = vid
        self._returning = [r for r in waiting if r[0] <= r[3]]

    def _ask(self, time: Ints, vid: Ints) -> dict[str, Ints]:
        """The queries that accompany the reports, in report order; -1 marks unused fields as in the input format."""
        chosen = mix_columns(HASH_OF_QUERY, self.seed, vid, time)
        at = np.flatnonzero(_fraction(chosen) < self.queries)
        n = len(at)
        time, vid = time[at], vid[at]
        percent = (chosen[at] & np.uint64(0xFFFF)).view(np.int64) * 100 >> 16
        kind = np.where(percent < 50, 2, np.where(percent < 60, 3, 4))

        def field_of(number: int, size: int, only: int) -> Ints:
            """Uniform 0 … size−1 for queries of type `only`, -1 for the others."""
            value = (mix_columns(HASH_OF_QUERY_FIELDS + number, self.seed, vid, time) >> np.uint64(33)).view(np.int64)
            return np.where(kind == only, value * size >> 31, -1)

        day = 1 + field_of(0, DAYS, 3)
        segments = self.profile.segments
        qid = self._next_qid + np.arange(n, dtype=np.int64)
        self._next_qid += n
        return {
            "type": kind, "time": time, "vid": vid, "qid": qid, "day": np.where(kind == 3, day, -1),
            "xway": np.where(kind == 3, self._asked_xway(vid, day, time), field_of(1, self.xways, 4)),
            "s_init": field_of(2, segments, 4), "s_end": field_of(3, segments, 4),
            "dow": np.where(kind == 4, 1 + field_of(4, 7, 4), -1),
            "tod": np.where(kind == 4, 1 + field_of(5, 1440, 4), -1),
        }  # fmt: skip

    def _asked_xway(self, vid: Ints, day: Ints, time: Ints) -> Ints:
        """Nine times in ten the expressway of the vehicle's toll on that day, else another one: a miss."""
        used = daily_xways(self.seed, vid, day, self.xways)
        hash_ = mix_columns(HASH_OF_QUERY_FIELDS + 6, self.seed, vid, time)
        step = 1 + ((hash_ & np.uint64(0xFFFF)) % np.uint64(max(1, self.xways - 1))).view(np.int64)
        # With one expressway the only other one is number 1, which has no tolls.
        missed = (used + step) % max(2, self.xways)
        return np.where(_fraction(hash_) < HIT_SHARE, used, missed)

    def _interleave(self, reports: dict[str, Ints], asked: dict[str, Ints]) -> pa.RecordBatch:
        """Reports, and after those of the same second its queries."""
        n_reports, n = len(reports["time"]), len(reports["time"]) + len(asked["time"])
        place = np.arange(n_reports, dtype=np.int64) + np.searchsorted(asked["time"], reports["time"], side="left")
        asked_place = np.arange(n - n_reports) + np.searchsorted(reports["time"], asked["time"], side="right")
        columns = {}
        for name in COLUMNS:
            column = np.full(n, -1 if name != "type" else 0, dtype=np.int64)
            if name in reports:
                column[place] = reports[name]
            if name in asked:
                column[asked_place] = asked[name]
            columns[name] = column
        arrays = [from_numpy(c) for c in columns.values()]
        arrays.append(of_type(pa.timestamp("us"), columns["time"] * MICROS))
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _fraction(hashes: Bits) -> Floats:
    """Hashes as doubles in [0, 1)."""
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
