"""One direction of one expressway: vehicles come, drive, stop, leave, and report every 30 seconds.

Works in travel coordinates: x is the distance from the upstream end of the road. One step is one second; it moves the
thirtieth of the fleet whose report is due, as one vector operation. Vehicles whose (enter time mod 30) is equal stay
together in a bucket, in the order in which they came.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cq.records import dataclass
from cq.workloads.draws import (
    Floats,
    Ints,
    below,
    cumulative,
    normal_index,
    normal_table,
    philox,
    poisson,
    raw,
    unit,
)
from cq.workloads.linear_road.incidents import ACCIDENT, FOREVER, Incident, plan
from cq.workloads.linear_road.profiles import (
    EXIT_LANE,
    EXIT_OFFSET_FT,
    FT_PER_MPH,
    REPORT_S,
    SEGMENT_FT,
    SLOT_S,
    TOP_MPH,
    Profile,
)

# Seconds simulated between two looks at the other directions. A vehicle re-enters at least 61 s after it left, so all
# vehicles that may re-enter within a block have left before it.
BLOCK_S = 60

_ARRIVALS, _MOVES = 0, 1
_MILLI = 1000
_MILLION = 1_000_000
NOISE_SHARE = 0.06
_LANE_CHANGE = int(0.15 * (1 << 16))

# Rows of a bucket: one column per vehicle.
_X, _EXIT, _DESIRED, _LANE, _VID, _HELD = range(6)


@dataclass(frozen=True, slots=True)
class NewVehicles:
    """The vehicles that enter one direction during one block, in order of time."""

    time: Ints
    x: Ints
    exit_x: Ints
    desired: Ints  # milli-mph
    speed: Ints  # mph, of the first report


@dataclass(frozen=True, slots=True)
class Reports:
    """Position reports of one direction during one block: by time, old vehicles before new ones."""

    time: Ints
    vid: Ints
    speed: Ints
    lane: Ints
    x: Ints


def arrivals(profile: Profile, seed: int, stream: int, block: int) -> NewVehicles:
    """Who enters in block `block` of direction `stream` (2*xway + dir); independent of everything else."""
    bits = philox(seed, stream, _ARRIVALS, block)
    seconds = range(block * BLOCK_S, (block + 1) * BLOCK_S)
    counts = [poisson(_rate(profile, t), u) for t, u in zip(seconds, unit(raw(bits, BLOCK_S)).tolist(), strict=True)]
    time = np.repeat(np.arange(seconds.start, seconds.stop, dtype=np.int64), counts)
    n = len(time)
    entry = _pick(entry_table(profile), raw(bits, n))
    last = profile.segments - 1
    draw = raw(bits, n)
    if profile.trip_segments is None:
        exit_segment = entry + ((draw >> 32) * (last - entry + 1) >> 31)
    else:
        exit_segment = np.minimum(entry + _pick(trip_table(profile.trip_segments, profile.segments), draw), last)
    draw = raw(bits, n)
    desired = np.clip(desired_table(profile)[normal_index(draw)], 25_000, 95_000)
    x = entry * SEGMENT_FT + 320 + below(draw, 281)
    exit_x = exit_segment * SEGMENT_FT + EXIT_OFFSET_FT
    return NewVehicles(time, x, exit_x, desired, 16 + below(raw(bits, n), 21))


def _rate(profile: Profile, t: int) -> float:
    return profile.rate_first + (profile.rate_last - profile.rate_first) * min(1.0, t / profile.duration_s)


def _pick(table: Floats, draws: Ints) -> Ints:
    return np.searchsorted(table, unit(draws), side="right").astype(np.int64)


def desired_table(profile: Profile) -> Ints:
    """Quantiles of the speed drivers wish for, milli-mph, before it is clipped."""
    return normal_table(profile.desired_mph * _MILLI, 8.0 * _MILLI)


@lru_cache(maxsize=8)
def entry_table(profile: Profile) -> Floats:
    """Shares of the entry segments."""
    if profile.hot_spot is None:
        return cumulative([1.0] * profile.segments)
    middle, width = profile.hot_spot
    return cumulative([1.0 + 0.8 * math.exp(-(((s - middle) / width) ** 2)) for s in range(profile.segments)])


@lru_cache(maxsize=8)
def trip_table(mean: int, longest: int) -> Floats:
    """Shares of trip lengths 1, 2, … of a geometric distribution, cut at the length of the road."""
    leave = 1.0 / mean
    return cumulative([leave * (1.0 - leave) ** g for g in range(longest - 1)] + [(1.0 - leave) ** (longest - 1)])


class Direction:
    """The state of one direction; `advance` moves it by one block."""

    def __init__(self, profile: Profile, seed: int, xway: int, direction: int) -> None:
        """An empty road at second 0."""
        self.profile, self.seed, self.xway, self.direction = profile, seed, xway, direction
        self.stream = 2 * xway + direction
        self.incidents: list[Incident] = []
        self._waiting: list[Incident] = []  # not started
        self._open: list[tuple[int, Incident]] = []  # (number, incident) not yet released
        self._release_s = np.zeros(1, dtype=np.int64)  # by number; 0 stands for "not held"
        self._buckets = [np.zeros((6, 0), dtype=np.int64) for _ in range(REPORT_S)]
        self._vehicles = np.zeros(profile.segments, dtype=np.int64)
        self._capacity = np.ones(profile.segments, dtype=np.float64)
        self._noise = normal_table(_MILLION, NOISE_SHARE * _MILLION)

    @property
    def vehicles(self) -> int:
        """Vehicles on the road now."""
        return sum(b.shape[1] for b in self._buckets)

    def position(self, x: Ints) -> Ints:
        """Feet from the west end."""
        return x if self.direction == 0 else self.profile.road_ft - 1 - x

    def advance(self, block: int, new: NewVehicles, vids: Ints) -> Reports:
        """Drive through the next block with `new` entering under the names `vids`; returns its reports."""
        start = block * BLOCK_S
        if start % SLOT_S == 0:
            self._plan_slot(start // SLOT_S)
        bits = philox(self.seed, self.stream, _MOVES, block)
        entering = np.stack([new.x, new.exit_x, new.desired, np.zeros_like(vids), vids, np.zeros_like(vids)])
        edges = np.searchsorted(new.time, np.arange(start, start + BLOCK_S + 1)).tolist()
        times: list[int] = []
        pieces: list[tuple[Ints, Ints, Ints, Ints]] = []
        for second in range(BLOCK_S):
            t = start + second
            bucket = self._buckets[t % REPORT_S]
            self._open_and_close(t)
            if bucket.shape[1]:
                piece, bucket = self._move(t, bucket, raw(bits, bucket.shape[1]))
                pieces.append(piece)
                times.append(t)
            first, last = edges[second], edges[second + 1]
            if first < last:
                came = entering[:, first:last]
                pieces.append((came[_VID], new.speed[first:last], came[_LANE], came[_X]))
                times.append(t)
                self._vehicles += self._per_segment(came[_X])
                bucket = np.concatenate((bucket, came), axis=1)
            self._buckets[t % REPORT_S] = bucket
        if not pieces:
            none = np.zeros(0, dtype=np.int64)
            return Reports(none, none, none, none, none)
        vid, speed, lane, x = (np.concatenate([p[i] for p in pieces]) for i in range(4))
        return Reports(np.repeat(np.array(times, dtype=np.int64), [len(p[0]) for p in pieces]), vid, speed, lane, x)

    def _per_segment(self, x: Ints) -> NDArray[np.int64]:
        return np.bincount(x // SEGMENT_FT, minlength=self.profile.segments)

    def _limits(self) -> Ints:
        """Speed the density allows, milli-mph by segment; only operations that are exact on every processor."""
        p = self.profile
        crowd = self._vehicles / (3.0 * p.half_density * self._capacity)
        powered = crowd * crowd if p.power_halves == 4 else crowd * np.sqrt(crowd)
        return ((p.free_mph * _MILLI) / (1.0 + powered)).astype(np.int64)

    def _move(self, t: int, bucket: Ints, draws: Ints) -> tuple[tuple[Ints, Ints, Ints, Ints], Ints]:
        """Move one bucket; returns its reports (vid, speed, lane, x) and the bucket without those who left."""
        x, exit_x, lane = bucket[_X], bucket[_EXIT], bucket[_LANE]
        wish = np.minimum(bucket[_DESIRED], self._limits()[x // SEGMENT_FT]) * self._noise[normal_index(draws)]
        speed = np.clip((wish + 500_000_000) // 1_000_000_000, self.profile.floor_mph, TOP_MPH)
        redraw = (((draws >> 16) & 0xFFFF) < _LANE_CHANGE) | (lane == 0)
        lane = np.where(redraw, 1 + below(draws, 3), lane)
        reached = x + speed * FT_PER_MPH
        held = self._held(t, bucket)
        if held is not None:
            speed, reached = np.where(held, 0, speed), np.where(held, x, reached)
            lane = np.where(held, bucket[_LANE], lane)
        for number, incident in self._open:
            if incident.held < len(incident.lanes):
                self._stop_at(t, number, incident, bucket, speed, lane, reached)
        left = reached >= exit_x
        self._vehicles -= self._per_segment(x)
        if left.any():
            reached, lane = np.where(left, exit_x, reached), np.where(left, EXIT_LANE, lane)
            bucket[_X], bucket[_LANE] = reached, lane
            report = (bucket[_VID], speed, lane, reached)
            bucket = bucket[:, ~left]
            self._vehicles += self._per_segment(bucket[_X])
            return report, bucket
        self._vehicles += self._per_segment(reached)
        bucket[_X], bucket[_LANE] = reached, lane
        return (bucket[_VID], speed, lane, reached), bucket

    def _held(self, t: int, bucket: Ints) -> NDArray[np.bool_] | None:
        """Which vehicles of the bucket are held at an incident at t, None when none can be; frees those released."""
        if not self._open and not bucket[_HELD].any():
            return None
        held: NDArray[np.bool_] = self._release_s[bucket[_HELD]] > t
        bucket[_HELD] *= held
        return held

    def _stop_at(
        self, t: int, number: int, incident: Incident, bucket: Ints, speed: Ints, lane: Ints, reached: Ints
    ) -> None:
        """Hold the first vehicles whose move passes the incident's place, as many as it still takes."""
        passing = (bucket[_X] < incident.x) & (reached >= incident.x) & (bucket[_EXIT] > incident.x)
        for i in np.flatnonzero(passing)[: len(incident.lanes) - incident.held].tolist():
            speed[i], reached[i], lane[i] = 0, incident.x, incident.lanes[incident.held]
            bucket[_HELD, i] = number
            incident.held += 1
            if incident.held == incident.complete:
                incident.release_s = t + incident.hold_s
                self._release_s[number] = incident.release_s

    def _plan_slot(self, slot: int) -> None:
        self._waiting += plan(self.profile, self.seed, self.xway, self.direction, slot)

    def _open_and_close(self, t: int) -> None:
        """Let the incidents of second t begin, and those released by now end."""
        while self._waiting and self._waiting[0].start_s <= t:
            incident = self._waiting.pop(0)
            self.incidents.append(incident)
            self._open.append((len(self.incidents), incident))
            self._release_s = np.append(self._release_s, FOREVER)
            if incident.kind == ACCIDENT:
                self._capacity[incident.segment] = 0.5
        if any(i.release_s <= t for _, i in self._open):
            for _, incident in self._open:
                if incident.release_s <= t and incident.kind == ACCIDENT:
                    self._capacity[incident.segment] = 1.0
            self._open = [(n, i) for n, i in self._open if i.release_s > t]
