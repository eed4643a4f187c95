"""The serial oracle: the right answers of Linear Road, one row at a time, in plain Python.

Rows are tuples of the fifteen fields of `COLUMNS`, non-decreasing in time (`rows_of` makes them from batches). Answers
leave out the emission time, which is a measurement. Where the public validator and the definitions differ, a comment at
the line names the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

import pyarrow as pa

from cq.records import dataclass, field
from cq.workloads.linear_road.history import expenditure, travel_time
from cq.workloads.linear_road.profiles import EXIT_LANE

Row = tuple[int, ...]
LavMode = Literal["report", "mean"]
AccidentTail = Literal["clear", "minute"]

ZONE_SEGMENTS = 5  # the accident's segment and the four upstream of it
STOP_REPORTS = 4
REENTRY_GAP_S = 60
_LAV_MINUTES = 5
_NO_END = 1 << 60


class Toll(NamedTuple):
    """Type 0: the toll announced to a vehicle that crosses into a segment."""

    vid: int
    time: int
    lav: int
    toll: int


class Alert(NamedTuple):
    """Type 1: an accident in `seg`, reported to a vehicle on its way there."""

    time: int
    xway: int
    seg: int
    dir: int
    vid: int


class Balance(NamedTuple):
    """Type 2: tolls charged to the vehicle up to and including `time`."""

    time: int
    qid: int
    balance: int


class Expenditure(NamedTuple):
    """Type 3: what the vehicle paid on a past day on one expressway."""

    time: int
    qid: int
    total: int


class Travel(NamedTuple):
    """Type 4: estimated seconds and toll of a journey."""

    qid: int
    seconds: int
    toll: int


Answer = Toll | Alert | Balance | Expenditure | Travel


class Accident(NamedTuple):
    """A detected accident; cleared is None while it lasts."""

    xway: int
    dir: int
    seg: int
    detected: int
    cleared: int | None


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of a generated stream, without the event time, which repeats `time`."""
    for batch in batches:
        yield from zip(*(batch.column(i).to_numpy().tolist() for i in range(15)), strict=True)


def toll_of(cars: int, lav: int) -> int:
    """The toll of a segment with so many cars in the last minute at that average speed; 0 at 50 cars or at 40 mph."""
    return 2 * (cars - 50) ** 2 if cars > 50 and lav < 40 else 0


@dataclass(slots=True)
class _Minute:
    """One segment in one minute: sum of speeds and number of reports, for all and, as [sum, reports], for every
    vehicle."""

    speeds: int = 0
    reports: int = 0
    vehicles: dict[int, list[int]] = field(default_factory=dict)

    def add(self, vid: int, speed: int) -> None:
        self.speeds += speed
        self.reports += 1
        seen = self.vehicles.setdefault(vid, [0, 0])
        seen[0] += speed
        seen[1] += 1


class _Statistics:
    """The last six minutes of every segment of one direction."""

    def __init__(self) -> None:
        self._minutes: dict[int, dict[int, _Minute]] = {}

    def add(self, minute: int, seg: int, vid: int, speed: int) -> None:
        if minute not in self._minutes:
            for old in [m for m in self._minutes if m < minute - _LAV_MINUTES]:
                del self._minutes[old]
            self._minutes[minute] = {}
        self._minutes[minute].setdefault(seg, _Minute()).add(vid, speed)

    def cars(self, minute: int, seg: int) -> int:
        """Distinct vehicles of that minute."""
        seen = self._minutes.get(minute, {}).get(seg)
        return len(seen.vehicles) if seen else 0

    def lav(self, minute: int, seg: int, mode: LavMode) -> int:
        """Latest average velocity at `minute`: over the five minutes before it, rounded half up, 0 without reports."""
        past = [self._minutes.get(m, {}).get(seg) for m in range(minute - _LAV_MINUTES, minute)]
        seen = [p for p in past if p]
        if not seen:
            return 0
        if mode == "mean":
            means = [sum((Fraction(s, n) for s, n in p.vehicles.values()), Fraction(0)) / len(p.vehicles) for p in seen]
            mean = sum(means, Fraction(0)) / len(means)
            return _half_up(mean.numerator, mean.denominator)
        return _half_up(sum(p.speeds for p in seen), sum(p.reports for p in seen))


def _half_up(numerator: int, denominator: int) -> int:
    """The quotient of two non-negative integers, rounded half up."""
    return (2 * numerator + denominator) // (2 * denominator)


@dataclass(slots=True)
class _Car:
    """What is known about a vehicle on its trip. -1 stands for "no report yet"."""

    time: int = -1
    lane: int = -1
    seg: int = -1
    pos: int = -1
    run: int = 0  # reports in a row from this lane and position
    pending: int = 0  # announced toll, charged at the next crossing


@dataclass(slots=True)
class _Open:
    """An accident: who caused it, and from when to when it is known, in minutes."""

    accident: Accident
    vehicles: frozenset[int]
    first_minute: int
    last_minute: int = _NO_END


class _Road:
    """One direction of one expressway."""

    def __init__(self, oracle: Oracle, xway: int, direction: int) -> None:
        self._oracle, self._xway, self._dir = oracle, xway, direction
        self._statistics = _Statistics()
        self._cars: dict[int, _Car] = {}
        self._stopped: dict[tuple[int, int], set[int]] = {}
        self._live: dict[int, _Open] = {}  # by segment
        self._in_force: dict[int, list[_Open]] = {}  # by segment, cleared ones too until their last minute is over

    def report(self, time: int, vid: int, speed: int, lane: int, seg: int, pos: int) -> Iterator[Answer]:
        """Take one position report; yields its alert and toll."""
        minute = time // 60 + 1
        car = self._cars.get(vid)
        if car is not None and lane == 0 and time > car.time + REENTRY_GAP_S:
            if (lane, pos) != (car.lane, car.pos):
                self._drive_on(car, vid, time)
            car = None
        if car is None:
            car = self._cars[vid] = _Car()
        if car.lane == EXIT_LANE and lane != 0:
            return
        if (lane, pos) == (car.lane, car.pos):
            car.run += 1
            if car.run == STOP_REPORTS:
                self._stop(lane, pos, seg, vid, time)
        else:
            self._drive_on(car, vid, time)
            car.run = 1
            if seg != car.seg:
                yield from self._cross(car, time, minute, vid, lane, seg)
        car.time, car.lane, car.seg, car.pos = time, lane, seg, pos
        self._statistics.add(minute, seg, vid, speed)

    def _cross(self, car: _Car, time: int, minute: int, vid: int, lane: int, seg: int) -> Iterator[Answer]:
        """The vehicle is new in `seg`: announce the toll unless it leaves, charge the toll announced before."""
        toll = 0
        if lane != EXIT_LANE:
            lav = self._statistics.lav(minute, seg, self._oracle.lav_mode)
            toll = toll_of(self._statistics.cars(minute - 1, seg), lav)
            accident = self._nearest(minute, seg) if self._oracle.accidents_count else None
            if accident is not None:
                toll = 0
                yield Alert(time, self._xway, accident, self._dir, vid)
            yield Toll(vid, time, lav, toll)
        if car.pending:
            self._oracle.charge(vid, car.pending)
        car.pending = toll

    def _stop(self, lane: int, pos: int, seg: int, vid: int, time: int) -> None:
        """The vehicle has stopped; the second one at a spot makes an accident, a third changes nothing."""
        here = self._stopped.setdefault((lane, pos), set())
        if vid in here or len(here) == 2:
            return
        here.add(vid)
        if len(here) == 2 and seg not in self._live:
            found = _Open(Accident(self._xway, self._dir, seg, time, None), frozenset(here), time // 60 + 2)
            self._live[seg] = found
            self._in_force.setdefault(seg, []).append(found)
            self._oracle.detected.append(found)

    def _drive_on(self, car: _Car, vid: int, time: int) -> None:
        """The vehicle is seen at another place: it is no longer stopped, and its accident is cleared."""
        here = self._stopped.get((car.lane, car.pos))
        if here is not None:
            here.discard(vid)
            if not here:
                del self._stopped[car.lane, car.pos]
        live = self._live.get(car.seg)
        if live is not None and vid in live.vehicles:
            live.accident = live.accident._replace(cleared=time)
            live.last_minute = time // 60 + (2 if self._oracle.acc_tail == "minute" else 1)
            del self._live[car.seg]

    def _nearest(self, minute: int, seg: int) -> int | None:
        """Segment of the nearest accident in force in the zone ahead of `seg`."""
        step = 1 - 2 * self._dir
        for ahead in range(seg, seg + step * ZONE_SEGMENTS, step):
            known = self._in_force.get(ahead)
            if known:
                known[:] = [a for a in known if a.last_minute >= minute]
                if any(a.first_minute <= minute for a in known):
                    return ahead
        return None


class Oracle:
    """Answers a Linear Road stream.

    seed, expressways: those of the generated stream, for the historical queries.
    lav_mode: "report" averages all reports of five minutes, "mean" averages vehicles, then minutes.
    acc_tail: "clear" keeps an accident in force to the minute in which it is cleared, "minute" for one more.
    accidents: False ignores accidents: no alerts, and no toll is suppressed.
    """

    def __init__(
        self,
        *,
        seed: int = 1,
        expressways: float = 1.0,
        lav_mode: LavMode = "report",
        acc_tail: AccidentTail = "clear",
        accidents: bool = True,
    ) -> None:
        self.seed, self.xways = seed, max(1, ceil(expressways))
        self.lav_mode, self.acc_tail, self.accidents_count = lav_mode, acc_tail, accidents
        self.detected: list[_Open] = []
        self.balances: dict[int, int] = {}
        self._roads: dict[tuple[int, int], _Road] = {}

    @property
    def accidents(self) -> list[Accident]:
        """Every accident seen so far, in order of detection."""
        return [d.accident for d in self.detected]

    def charge(self, vid: int, toll: int) -> None:
        """Add an announced toll to the vehicle's account."""
        self.balances[vid] = self.balances.get(vid, 0) + toll

    def answers(self, rows: Iterable[Row]) -> Iterator[Answer]:
        """All answers, in order of time; the queries of a second are answered after all its reports."""
        second = -1
        queries: list[Row] = []
        for row in rows:
            kind, time, vid, speed, xway, lane, direction, seg, pos = row[:9]
            assert time >= second, "rows are not in order of time"
            if time != second:
                yield from map(self._answer, queries)
                queries, second = [], time
            if kind:
                queries.append(row)
                continue
            road = self._roads.get((xway, direction))
            if road is None:
                road = self._roads[xway, direction] = _Road(self, xway, direction)
            yield from road.report(time, vid, speed, lane, seg, pos)
        yield from map(self._answer, queries)

    def _answer(self, row: Row) -> Answer:
        kind, time, vid, _, xway, _, _, _, _, qid, s_init, s_end, dow, tod, day = row
        match kind:
            case 2:
                return Balance(time, qid, self.balances.get(vid, 0))
            case 3:
                return Expenditure(time, qid, expenditure(self.seed, vid, day, xway, self.xways))
        assert kind == 4, f"no query has type {kind}"
        return Travel(qid, *travel_time(self.seed, xway, s_init, s_end, dow, tod))


def tolls_without_accidents(rows: Iterable[Row]) -> list[Toll]:
    """The toll notifications of a road on which accidents go unnoticed; trips and exits as in the full benchmark."""
    return [a for a in Oracle(accidents=False).answers(r for r in rows if r[0] == 0) if isinstance(a, Toll)]


def simple_tolls(rows: Iterable[Row]) -> list[Toll]:
    """The toll notifications under rules a plain query can state, one per notification, in the order of the reports.

    Of the position reports (type 0), all of them, whatever the lane and however long ago the last one was:
    a report is a crossing when it is the first of its (xway, dir, vid) or its seg differs from the previous one's;
    a crossing whose lane is not 4 is a notification. With m = time div 60 and the key (xway, dir, seg) of the report:
    cars = COUNT(DISTINCT vid) of the key's reports in minute m-1; lav = SUM(spd)/COUNT(*) of the key's reports in
    minutes m-5 … m-1, rounded half up, 0 when there are none; toll = 2*(cars-50)^2 if cars > 50 and lav < 40, else 0.

    It differs from the full rules in that a vehicle coming back into the segment it was last seen in does not cross,
    and that reports after an exit count.
    """
    out: list[Toll] = []
    last_seg: dict[tuple[int, int, int], int] = {}
    statistics: dict[tuple[int, int], _Statistics] = {}
    for kind, time, vid, speed, xway, lane, direction, seg, *_ in rows:
        if kind != 0:
            continue
        minute = time // 60
        here = statistics.setdefault((xway, direction), _Statistics())
        if last_seg.get((xway, direction, vid)) != seg and lane != EXIT_LANE:
            lav = here.lav(minute, seg, "report")
            out.append(Toll(vid, time, lav, toll_of(here.cars(minute - 1, seg), lav)))
        last_seg[xway, direction, vid] = seg
        here.add(minute, seg, vid, speed)
    return out
