"""One direction of an expressway, natively; `cq/workloads/linear_road/traffic.py` defines it with numpy.

A road is an array of words, and the caller owns the memory of all its tables; a bucket keeps the vehicles whose report
is due in the same second of each half minute, one row of words for each of the columns X … HELD.

Sharing: none; one thread drives a road.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    f64_div,
    f64_exp,
    f64_sqrt,
    f64_to_i64,
    i64_to_f64,
    ld_f64,
    ld_i32,
    ld_i64,
    pick,
    prefetch,
    sdiv,
    st_f64,
    st_i64,
)
from cq.runtime.generators.draws import below_high, fill_draws, picked, unit_of
from cq.runtime.layout.words import Struct
from cq.workloads.linear_road.profiles import EXIT_LANE, EXIT_OFFSET_FT, FT_PER_MPH, REPORT_S, SEGMENT_FT, TOP_MPH
from cq.workloads.linear_road.traffic import BLOCK_S

# -- a road: parameters of its profile, then tables, then its state --------------------------------------------------
_road = Struct("ROAD")
ROAD_SEED = _road.word()
ROAD_STREAM = _road.word()  # 2 * expressway + direction
ROAD_SEGMENTS = _road.word()
ROAD_RATE_FIRST = _road.word()  # double: vehicles a second
ROAD_RATE_LAST = _road.word()  # double
ROAD_DURATION_S = _road.word()
ROAD_FREE_MILLI = _road.word()  # double: speed of the free road
ROAD_CROWD = _road.word()  # double: vehicles of a segment at half density
ROAD_SQUARED = _road.word()  # 1: the speed law has the exponent 2, else 1.5
ROAD_FLOOR_MPH = _road.word()
ROAD_ENTRIES = _road.word()  # -> double[segments]: where vehicles enter
ROAD_TRIPS = _road.word()  # -> double[segments]: how far they drive; 0: all distances are equally likely
ROAD_DESIRED = _road.word()  # -> i64[2^16]: quantiles of the desired speed
ROAD_NOISE = _road.word()  # -> i32[2^16]: quantiles of the driving noise, millionths
ROAD_VEHICLES = _road.word()  # -> i64[segments]: vehicles now
ROAD_CAPACITY = _road.word()  # -> double[segments]
ROAD_LIMITS = _road.word()  # -> i64[segments]: room
ROAD_DRAWS = _road.word()  # -> room for the draws of one bucket, or of one column of the arrivals
ROAD_BUCKETS = _road.word()  # -> i64[REPORT_S][BUCKET_COLUMNS][ROAD_ROOM]
ROAD_ROOM = _road.word()
ROAD_COUNTS = _road.word()  # -> i64[REPORT_S]: vehicles in each bucket
ROAD_NEW = _road.word()  # -> i64[NEW_COLUMNS][ROAD_NEW_ROOM]: the vehicles that enter in this block
ROAD_NEW_ROOM = _road.word()
ROAD_NEW_COUNTS = _road.word()  # -> i64[BLOCK_S]: how many enter in each second
ROAD_REPORTS = _road.word()  # -> i64[REPORT_COLUMNS][ROAD_REPORT_ROOM]
ROAD_REPORT_ROOM = _road.word()
ROAD_EDGES = _road.word()  # -> i64[BLOCK_S + 1]: where the reports of each second begin
ROAD_INCIDENTS = _road.word()  # -> incidents, in the order in which they begin
ROAD_PLANNED = _road.word()  # number of incidents
ROAD_BEGUN = _road.word()  # incidents that have begun
ROAD_OPEN = _road.word()  # -> i64[]: numbers, from 1, of those begun and not released
ROAD_OPEN_COUNT = _road.word()
ROAD_DRAWN = _road.word()  # draws of this block that moves have used
ROAD_WORDS = _road.size()

_bucket = Struct("BUCKET")
BUCKET_X = _bucket.word()
BUCKET_EXIT = _bucket.word()
BUCKET_DESIRED = _bucket.word()
BUCKET_LANE = _bucket.word()
BUCKET_VID = _bucket.word()
BUCKET_HELD = _bucket.word()  # number of the incident that holds it, or 0
BUCKET_COLUMNS = _bucket.size()

_new = Struct("NEW")
NEW_TIME = _new.word()
NEW_X = _new.word()
NEW_EXIT = _new.word()
NEW_DESIRED = _new.word()
NEW_SPEED = _new.word()
NEW_VID = _new.word()
NEW_COLUMNS = _new.size()

_report = Struct("REPORT")
REPORT_VID = _report.word()
REPORT_SPEED = _report.word()
REPORT_LANE = _report.word()
REPORT_X = _report.word()
REPORT_COLUMNS = _report.size()

MOST_LANES = 3

_incident = Struct("INCIDENT")
INCIDENT_START_S = _incident.word()
INCIDENT_X = _incident.word()
INCIDENT_SEGMENT = _incident.word()
INCIDENT_NARROWS = _incident.word()  # 1: an accident, which halves the capacity of its segment
INCIDENT_LANES = _incident.word()  # vehicles it takes
INCIDENT_LANE = _incident.words(MOST_LANES)  # the lane of each
INCIDENT_COMPLETE = _incident.word()
INCIDENT_HOLD_S = _incident.word()
INCIDENT_HELD = _incident.word()
INCIDENT_RELEASE_S = _incident.word()
INCIDENT_WORDS = _incident.size()

ARRIVALS_PURPOSE, MOVES_PURPOSE = 0, 1
_MILLI_MILLION = 1_000_000_000
_HALF_UNIT = 500_000_000
_LANE_CHANGE = int(0.15 * (1 << 16))
_SLOWEST_WISH, _FASTEST_WISH = 25_000, 95_000
_TABLE_MASK = 0xFFFF
# Vehicles; the table is half as large as a second-level cache. `road_drive` took 26.6 ns a report with this, 26.1 with
# half, 25.8 with double, 32.6 with none (profile light, 3 M rows, CPU, least of thirty runs, busy machine).
_NOISE_AHEAD = 12
_FIRST_FT, _FIRST_SPAN_FT = 320, 281
_FIRST_MPH, _FIRST_SPAN_MPH = 16, 21


@native("i64(f64, f64)")
def _poisson(rate: float, share: float) -> int:
    """The quantile `share` of the Poisson distribution."""
    p = f64_exp(-rate)
    k = 0
    total = p
    while share >= total and p > 0.0:
        k += 1
        p *= f64_div(rate, i64_to_f64(k))
        total += p
    return k


@native("i64(i64, i64)", export=True)
def road_expect(road: int, block: int) -> int:
    """How many vehicles enter in this block; notes the number for every second."""
    duration = i64_to_f64(ld_i64(road, ROAD_DURATION_S))
    first, last = ld_f64(road, ROAD_RATE_FIRST), ld_f64(road, ROAD_RATE_LAST)
    seed, stream = ld_i64(road, ROAD_SEED), ld_i64(road, ROAD_STREAM)
    draws = fill_draws(ld_i64(road, ROAD_DRAWS), seed, stream, ARRIVALS_PURPOSE, block, 0, BLOCK_S)
    counts = ld_i64(road, ROAD_NEW_COUNTS)
    total = 0
    for second in range(BLOCK_S):
        passed = f64_div(i64_to_f64(block * BLOCK_S + second), duration)
        rate = first + (last - first) * (passed if passed < 1.0 else 1.0)
        count = _poisson(rate, unit_of(ld_i64(draws, second)))
        st_i64(counts, second, count)
        total += count
    return total


@native("i64(i64, i64, i64, i64, i64)")
def _new_draws(road: int, block: int, count: int, column: int, room: int) -> int:
    """The address of the draws of one column of the arrivals."""
    seed, stream = ld_i64(road, ROAD_SEED), ld_i64(road, ROAD_STREAM)
    return fill_draws(room, seed, stream, ARRIVALS_PURPOSE, block, BLOCK_S + column * count, count)


@native("i64(i64, i64, i64)", export=True)
def road_arrive(road: int, block: int, count: int) -> int:
    """Write the `count` vehicles of `road_expect` to ROAD_NEW, without their names; return count."""
    new, room = ld_i64(road, ROAD_NEW), ld_i64(road, ROAD_NEW_ROOM) * 8
    counts = ld_i64(road, ROAD_NEW_COUNTS)
    at = 0
    for second in range(BLOCK_S):
        for _ in range(ld_i64(counts, second)):
            st_i64(new + NEW_TIME * room, at, block * BLOCK_S + second)
            at += 1
    segments, scratch = ld_i64(road, ROAD_SEGMENTS), ld_i64(road, ROAD_DRAWS)
    entries, trips, desired = ld_i64(road, ROAD_ENTRIES), ld_i64(road, ROAD_TRIPS), ld_i64(road, ROAD_DESIRED)
    draws = _new_draws(road, block, count, 0, scratch)
    for n in range(count):
        st_i64(new + NEW_X * room, n, picked(entries, segments, unit_of(ld_i64(draws, n))))
    draws = _new_draws(road, block, count, 1, scratch)
    for n in range(count):
        draw, entry = ld_i64(draws, n), ld_i64(new + NEW_X * room, n)
        if trips == 0:
            leaves = entry + ((draw >> 32) * (segments - entry) >> 31)
        else:
            leaves = min(entry + picked(trips, segments, unit_of(draw)), segments - 1)
        st_i64(new + NEW_EXIT * room, n, leaves * SEGMENT_FT + EXIT_OFFSET_FT)
    draws = _new_draws(road, block, count, 2, scratch)
    for n in range(count):
        draw, entry = ld_i64(draws, n), ld_i64(new + NEW_X * room, n)
        wish = ld_i64(desired, draw & _TABLE_MASK)
        st_i64(new + NEW_DESIRED * room, n, min(max(wish, _SLOWEST_WISH), _FASTEST_WISH))
        st_i64(new + NEW_X * room, n, entry * SEGMENT_FT + _FIRST_FT + below_high(draw, _FIRST_SPAN_FT))
    draws = _new_draws(road, block, count, 3, scratch)
    for n in range(count):
        st_i64(new + NEW_SPEED * room, n, _FIRST_MPH + below_high(ld_i64(draws, n), _FIRST_SPAN_MPH))
    return count


@native("void(i64)")
def _note_limits(road: int) -> None:
    """Set the speed that the density of every segment allows, in thousandths of a mile per hour."""
    vehicles, capacity, limits = ld_i64(road, ROAD_VEHICLES), ld_i64(road, ROAD_CAPACITY), ld_i64(road, ROAD_LIMITS)
    half, free = ld_f64(road, ROAD_CROWD), ld_f64(road, ROAD_FREE_MILLI)
    squared = ld_i64(road, ROAD_SQUARED)
    for segment in range(ld_i64(road, ROAD_SEGMENTS)):
        crowd = f64_div(i64_to_f64(ld_i64(vehicles, segment)), half * ld_f64(capacity, segment))
        powered = crowd * (crowd if squared else f64_sqrt(crowd))
        st_i64(limits, segment, f64_to_i64(f64_div(free, 1.0 + powered)))


@native("i64(i64, i64)")
def _incident_at(road: int, number: int) -> int:
    """The address of an incident; the first is number 1."""
    return ld_i64(road, ROAD_INCIDENTS) + (number - 1) * INCIDENT_WORDS * 8


@native("void(i64, i64)")
def _open_and_close(road: int, t: int) -> None:
    """Begin the incidents of second t, and end those released by now."""
    begun, opened = ld_i64(road, ROAD_BEGUN), ld_i64(road, ROAD_OPEN)
    capacity, count = ld_i64(road, ROAD_CAPACITY), ld_i64(road, ROAD_OPEN_COUNT)
    while begun < ld_i64(road, ROAD_PLANNED) and ld_i64(_incident_at(road, begun + 1), INCIDENT_START_S) <= t:
        begun += 1
        st_i64(opened, count, begun)
        count += 1
        if ld_i64(_incident_at(road, begun), INCIDENT_NARROWS):
            st_f64(capacity, ld_i64(_incident_at(road, begun), INCIDENT_SEGMENT), 0.5)
    left = 0
    for n in range(count):
        number = ld_i64(opened, n)
        incident = _incident_at(road, number)
        if ld_i64(incident, INCIDENT_RELEASE_S) > t:
            st_i64(opened, left, number)
            left += 1
        elif ld_i64(incident, INCIDENT_NARROWS):
            st_f64(capacity, ld_i64(incident, INCIDENT_SEGMENT), 1.0)
    st_i64(road, ROAD_BEGUN, begun)
    st_i64(road, ROAD_OPEN_COUNT, left)


@native("void(i64, i64, i64, i64, i64)")
def _stop_at(road: int, t: int, number: int, bucket: int, reports: int) -> None:
    """Hold the first vehicles whose move passes the incident's place there, as many as it still takes."""
    incident, room = _incident_at(road, number), ld_i64(road, ROAD_ROOM) * 8
    report_room = ld_i64(road, ROAD_REPORT_ROOM) * 8
    place = ld_i64(incident, INCIDENT_X)
    for n in range(ld_i64(ld_i64(road, ROAD_COUNTS), t % REPORT_S)):
        held = ld_i64(incident, INCIDENT_HELD)
        if held >= ld_i64(incident, INCIDENT_LANES):
            return
        passes = ld_i64(bucket + BUCKET_X * room, n) < place <= ld_i64(reports + REPORT_X * report_room, n)
        if passes and ld_i64(bucket + BUCKET_EXIT * room, n) > place:
            st_i64(reports + REPORT_SPEED * report_room, n, 0)
            st_i64(reports + REPORT_X * report_room, n, place)
            st_i64(reports + REPORT_LANE * report_room, n, ld_i64(incident, INCIDENT_LANE + held))
            st_i64(bucket + BUCKET_HELD * room, n, number)
            st_i64(incident, INCIDENT_HELD, held + 1)
            if held + 1 == ld_i64(incident, INCIDENT_COMPLETE):
                st_i64(incident, INCIDENT_RELEASE_S, t + ld_i64(incident, INCIDENT_HOLD_S))


@native("void(i64, i64, i64, i64)")
def _reach(road: int, t: int, bucket: int, reports: int) -> None:
    """Where every vehicle of a bucket would be now, and how fast, except for incidents that begin to hold it."""
    room, report_room = ld_i64(road, ROAD_ROOM) * 8, ld_i64(road, ROAD_REPORT_ROOM) * 8
    limits, noise = ld_i64(road, ROAD_LIMITS), ld_i64(road, ROAD_NOISE)
    lowest, count = ld_i64(road, ROAD_FLOOR_MPH), ld_i64(ld_i64(road, ROAD_COUNTS), t % REPORT_S)
    drawn, block = ld_i64(road, ROAD_DRAWN), t // BLOCK_S
    seed, stream = ld_i64(road, ROAD_SEED), ld_i64(road, ROAD_STREAM)
    draws = fill_draws(ld_i64(road, ROAD_DRAWS), seed, stream, MOVES_PURPOSE, block, drawn, count)
    st_i64(road, ROAD_DRAWN, drawn + count)
    for n in range(count):
        prefetch(noise + (ld_i64(draws, min(n + _NOISE_AHEAD, count - 1)) & _TABLE_MASK) * 4)
        draw, x = ld_i64(draws, n), ld_i64(bucket + BUCKET_X * room, n)
        lane, held = ld_i64(bucket + BUCKET_LANE * room, n), ld_i64(bucket + BUCKET_HELD * room, n)
        allowed = min(ld_i64(bucket + BUCKET_DESIRED * room, n), ld_i64(limits, sdiv(x, SEGMENT_FT)))
        wish = allowed * ld_i32(noise, draw & _TABLE_MASK)
        speed = min(max(sdiv(wish + _HALF_UNIT, _MILLI_MILLION), lowest), TOP_MPH)
        if held != 0 and ld_i64(_incident_at(road, held), INCIDENT_RELEASE_S) > t:
            speed = 0
        else:
            st_i64(bucket + BUCKET_HELD * room, n, 0)
            redraw = ((draw >> 16) & _TABLE_MASK) < _LANE_CHANGE or lane == 0
            lane = pick(redraw, 1 + below_high(draw, 3), lane)
        st_i64(reports + REPORT_VID * report_room, n, ld_i64(bucket + BUCKET_VID * room, n))
        st_i64(reports + REPORT_SPEED * report_room, n, speed)
        st_i64(reports + REPORT_LANE * report_room, n, lane)
        st_i64(reports + REPORT_X * report_room, n, x + speed * FT_PER_MPH)


@native("i64(i64, i64, i64, i64)")
def _arrive_there(road: int, t: int, bucket: int, reports: int) -> int:
    """Move the bucket's vehicles to their reported places; those at their exit leave. Returns how many reported."""
    room, report_room = ld_i64(road, ROAD_ROOM) * 8, ld_i64(road, ROAD_REPORT_ROOM) * 8
    vehicles, counts = ld_i64(road, ROAD_VEHICLES), ld_i64(road, ROAD_COUNTS)
    count = ld_i64(counts, t % REPORT_S)
    left = 0
    for n in range(count):
        before = sdiv(ld_i64(bucket + BUCKET_X * room, n), SEGMENT_FT)
        st_i64(vehicles, before, ld_i64(vehicles, before) - 1)
        x, leaves = ld_i64(reports + REPORT_X * report_room, n), ld_i64(bucket + BUCKET_EXIT * room, n)
        if x >= leaves:
            st_i64(reports + REPORT_X * report_room, n, leaves)
            st_i64(reports + REPORT_LANE * report_room, n, EXIT_LANE)
            continue
        st_i64(vehicles, sdiv(x, SEGMENT_FT), ld_i64(vehicles, sdiv(x, SEGMENT_FT)) + 1)
        st_i64(bucket + BUCKET_X * room, left, x)
        st_i64(bucket + BUCKET_EXIT * room, left, leaves)
        st_i64(bucket + BUCKET_DESIRED * room, left, ld_i64(bucket + BUCKET_DESIRED * room, n))
        st_i64(bucket + BUCKET_LANE * room, left, ld_i64(reports + REPORT_LANE * report_room, n))
        st_i64(bucket + BUCKET_VID * room, left, ld_i64(bucket + BUCKET_VID * room, n))
        st_i64(bucket + BUCKET_HELD * room, left, ld_i64(bucket + BUCKET_HELD * room, n))
        left += 1
    st_i64(counts, t % REPORT_S, left)
    return count


@native("i64(i64, i64, i64, i64)")
def _enter(road: int, t: int, bucket: int, reports: int) -> int:
    """Put the vehicles that enter in second t into the bucket, with their reports; return how many."""
    room, report_room = ld_i64(road, ROAD_ROOM) * 8, ld_i64(road, ROAD_REPORT_ROOM) * 8
    new, new_room = ld_i64(road, ROAD_NEW), ld_i64(road, ROAD_NEW_ROOM) * 8
    counts, vehicles, new_counts = ld_i64(road, ROAD_COUNTS), ld_i64(road, ROAD_VEHICLES), ld_i64(road, ROAD_NEW_COUNTS)
    first = 0
    for second in range(t % BLOCK_S):
        first += ld_i64(new_counts, second)
    at, count = ld_i64(counts, t % REPORT_S), ld_i64(new_counts, t % BLOCK_S)
    for n in range(count):
        x, vid = ld_i64(new + NEW_X * new_room, first + n), ld_i64(new + NEW_VID * new_room, first + n)
        st_i64(bucket + BUCKET_X * room, at + n, x)
        st_i64(bucket + BUCKET_EXIT * room, at + n, ld_i64(new + NEW_EXIT * new_room, first + n))
        st_i64(bucket + BUCKET_DESIRED * room, at + n, ld_i64(new + NEW_DESIRED * new_room, first + n))
        st_i64(bucket + BUCKET_LANE * room, at + n, 0)
        st_i64(bucket + BUCKET_VID * room, at + n, vid)
        st_i64(bucket + BUCKET_HELD * room, at + n, 0)
        st_i64(reports + REPORT_VID * report_room, n, vid)
        st_i64(reports + REPORT_SPEED * report_room, n, ld_i64(new + NEW_SPEED * new_room, first + n))
        st_i64(reports + REPORT_LANE * report_room, n, 0)
        st_i64(reports + REPORT_X * report_room, n, x)
        segment = sdiv(x, SEGMENT_FT)
        st_i64(vehicles, segment, ld_i64(vehicles, segment) + 1)
    st_i64(counts, t % REPORT_S, at + count)
    return count


@native("i64(i64, i64)", export=True)
def road_drive(road: int, block: int) -> int:
    """Drive the road through the block; return how many reports are in ROAD_REPORTS, in order of time.

    ROAD_ROOM is at least the vehicles of a bucket and those of ROAD_NEW together, ROAD_REPORT_ROOM twice all vehicles.
    """
    st_i64(road, ROAD_DRAWN, 0)
    edges, at = ld_i64(road, ROAD_EDGES), 0
    for second in range(BLOCK_S):
        t = block * BLOCK_S + second
        st_i64(edges, second, at)
        bucket = ld_i64(road, ROAD_BUCKETS) + t % REPORT_S * BUCKET_COLUMNS * ld_i64(road, ROAD_ROOM) * 8
        _open_and_close(road, t)
        if ld_i64(ld_i64(road, ROAD_COUNTS), t % REPORT_S):
            reports = ld_i64(road, ROAD_REPORTS) + at * 8
            _note_limits(road)
            _reach(road, t, bucket, reports)
            for n in range(ld_i64(road, ROAD_OPEN_COUNT)):
                _stop_at(road, t, ld_i64(ld_i64(road, ROAD_OPEN), n), bucket, reports)
            at += _arrive_there(road, t, bucket, reports)
        at += _enter(road, t, bucket, ld_i64(road, ROAD_REPORTS) + at * 8)
    st_i64(edges, BLOCK_S, at)
    return at
