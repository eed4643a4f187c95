"""The serial oracle against the golden micro-traces of the Linear Road specification."""

from cq.workloads.linear_road import history
from cq.workloads.linear_road.oracle import (
    Alert,
    Balance,
    Expenditure,
    Oracle,
    Toll,
    Travel,
    simple_tolls,
    tolls_without_accidents,
)


def report(time, vid, spd, xway, lane, dir, seg, pos):
    return (0, time, vid, spd, xway, lane, dir, seg, pos, -1, -1, -1, -1, -1, -1)


def balance(time, vid, qid):
    return (2, time, vid, -1, -1, -1, -1, -1, -1, qid, -1, -1, -1, -1, -1)


def expenditure(time, vid, xway, qid, day):
    return (3, time, vid, -1, xway, -1, -1, -1, -1, qid, -1, -1, -1, -1, day)


def travel(time, vid, xway, qid, s_init, s_end, dow, tod):
    return (4, time, vid, -1, xway, -1, -1, -1, -1, qid, s_init, s_end, dow, tod, -1)


def answers(rows, **options):
    return list(Oracle(**options).answers(sorted(rows, key=lambda r: r[1])))


def crowd(cars=52, mph=30):
    """`cars` vehicles, each once in minute 1 in segment 20."""
    return [report(10 + n % 50, 100 + n, mph, 0, 2, 0, 20, 105_600 + 20 * n) for n in range(cars)]


def passing(last_lane=2, last_seg=21):
    """Vehicle 999 twice in segment 20, then once more."""
    return [
        report(70, 999, 50, 0, 2, 0, 20, 106_000),
        report(100, 999, 50, 0, 2, 0, 20, 108_200),
        report(130, 999, 50, 0, last_lane, 0, last_seg, 5280 * last_seg + 4700),
    ]


def tolls_of(vid, found):
    return [a for a in found if isinstance(a, Toll) and a.vid == vid]


# --- trace A: crossings ------------------------------------------------------------------------------------------


def test_only_crossings_off_the_exit_ramp_are_notified():
    # seg   10      10      11      11 (exit)
    # t      0------30------60------90
    rows = [
        report(0, 1, 30, 0, 0, 0, 10, 52_800),
        report(30, 1, 60, 0, 1, 0, 10, 55_440),
        report(60, 1, 60, 0, 1, 0, 11, 58_080),
        report(90, 1, 60, 0, 4, 0, 11, 60_720),
    ]
    assert answers(rows) == [Toll(1, 0, 0, 0), Toll(1, 60, 0, 0)]


# --- trace B: tolls and accounts ---------------------------------------------------------------------------------


def test_a_full_segment_costs_by_the_cars_of_the_minute_before():
    found = answers([*crowd(), *passing(), balance(129, 999, 1), balance(130, 999, 2)])
    assert tolls_of(999, found) == [Toll(999, 70, 30, 8), Toll(999, 130, 0, 0)]
    assert [a for a in found if isinstance(a, Balance)] == [Balance(129, 1, 0), Balance(130, 2, 8)]


def test_leaving_in_the_segment_of_the_last_crossing_costs_nothing():
    oracle = Oracle()
    list(oracle.answers(sorted([*crowd(), *passing(last_lane=4, last_seg=20)], key=lambda r: r[1])))
    assert oracle.balances == {}


def test_leaving_in_the_next_segment_is_charged():
    oracle = Oracle()
    list(oracle.answers(sorted([*crowd(), *passing(last_lane=4, last_seg=21)], key=lambda r: r[1])))
    assert oracle.balances == {999: 8}


def test_exactly_fifty_cars_cost_nothing():
    assert tolls_of(999, answers([*crowd(cars=50), *passing()]))[0] == Toll(999, 70, 30, 0)


def test_exactly_forty_miles_per_hour_cost_nothing():
    assert tolls_of(999, answers([*crowd(mph=40), *passing()]))[0] == Toll(999, 70, 40, 0)


def test_a_query_of_the_same_second_sees_the_reports_whatever_the_order():
    rows = sorted([*crowd(), *passing()], key=lambda r: r[1])
    assert list(Oracle().answers([*rows[:-1], balance(130, 999, 7), rows[-1]]))[-1] == Balance(130, 7, 8)


# --- trace C: accidents ------------------------------------------------------------------------------------------

# vid 1  |0---30---60---90---…---210-|      moves at 240
# vid 2    |15---45---75---105---…---225-|  stopped at 105: accident in minute 2, cleared in minute 5
STANDING = [
    *(report(t, 1, 0, 0, 2, 0, 30, 160_000) for t in range(0, 211, 30)),
    *(report(t, 2, 0, 0, 2, 0, 30, 160_000) for t in range(15, 226, 30)),
    report(240, 1, 30, 0, 2, 0, 30, 161_000),
]


def probe(time, seg, lane=1):
    return report(time, 1000 + time * 10 + seg, 50, 0, lane, 0, seg, 5280 * seg + 100)


PROBES = [
    probe(119, 26), probe(120, 26), probe(121, 25), probe(122, 31), probe(123, 30, lane=4), probe(180, 30),
    probe(299, 28), probe(300, 28),
]  # fmt: skip


def alerted(found):
    return [(a.time, a.seg) for a in found if isinstance(a, Alert)]


def test_an_accident_is_announced_from_the_minute_after_it_to_the_minute_of_its_clearing():
    assert alerted(answers(STANDING + PROBES)) == [(120, 30), (180, 30), (299, 30)]


def test_the_longer_tail_announces_one_more_minute():
    found = answers(STANDING + PROBES, acc_tail="minute")
    assert alerted(found) == [(120, 30), (180, 30), (299, 30), (300, 30)]


def test_a_vehicle_that_leaves_is_told_nothing():
    found = answers([*STANDING, probe(123, 30, lane=4)])
    assert [a for a in found if a in tolls_of(1000 + 1230 + 30, found)] == []


def test_the_accident_is_dated_by_the_report_that_completes_the_second_stop():
    oracle = Oracle()
    list(oracle.answers(sorted(STANDING, key=lambda r: r[1])))
    assert oracle.accidents == [(0, 0, 30, 105, 240)]


def test_westbound_traffic_is_warned_from_the_higher_segments():
    west = [(*r[:6], 1, *r[7:]) for r in [*STANDING, probe(130, 34), probe(131, 29), probe(132, 35)]]
    assert alerted(answers(west)) == [(130, 30)]


def test_cars_side_by_side_are_no_accident():
    oracle = Oracle()
    rows = [(*r[:5], 1, *r[6:]) if r[2] == 2 else r for r in STANDING]
    list(oracle.answers(sorted(rows, key=lambda r: r[1])))
    assert oracle.accidents == []


def test_a_later_accident_in_the_same_segment_is_found_too():
    again = [(0, r[1] + 600, r[2] + 10, *r[3:8], r[8] + 200, *r[9:]) for r in STANDING]
    oracle = Oracle()
    list(oracle.answers(sorted(STANDING + again, key=lambda r: r[1])))
    assert [a.detected for a in oracle.accidents] == [105, 705]


def test_the_end_of_one_accident_clears_it_when_its_car_comes_back_elsewhere():
    # vehicle 1 vanishes while stopped and enters again in segment 50, more than 60 s later
    rows = [r for r in STANDING if r[1] < 240] + [report(400, 1, 20, 0, 0, 0, 50, 264_400)]
    oracle = Oracle()
    list(oracle.answers(sorted(rows, key=lambda r: r[1])))
    assert oracle.accidents == [(0, 0, 30, 105, 400)]


# --- traces D and E ----------------------------------------------------------------------------------------------


def test_the_two_ways_to_average_speeds_differ_where_a_vehicle_reports_twice():
    rows = [
        report(0, 1, 20, 0, 1, 0, 40, 211_300),
        report(10, 2, 60, 0, 1, 0, 40, 212_000),
        report(30, 1, 20, 0, 1, 0, 40, 212_100),
        report(65, 3, 30, 0, 0, 0, 40, 211_500),
    ]
    assert answers(rows)[-1].lav == 33
    assert answers(rows, lav_mode="mean")[-1].lav == 40


BACK_AGAIN = [
    report(0, 1, 30, 0, 0, 0, 5, 26_400),
    report(30, 1, 60, 0, 4, 0, 5, 31_200),
    report(60, 1, 60, 0, 1, 0, 6, 33_000),
    report(91, 1, 30, 0, 0, 0, 5, 26_400),
    report(120, 1, 30, 0, 0, 0, 5, 26_400),
]


def test_reports_after_an_exit_do_not_count_and_a_later_entry_starts_a_new_trip():
    assert answers(BACK_AGAIN) == [Toll(1, 0, 0, 0), Toll(1, 91, 45, 0)]


# --- historical queries ------------------------------------------------------------------------------------------


def test_daily_expenditure_is_the_toll_of_the_day_on_its_expressway_only():
    day_toll, used = history.daily_toll(7, 100, 5), history.daily_xway(7, 100, 5, 2)
    found = answers([expenditure(9, 100, used, 1, 5), expenditure(9, 100, 1 - used, 2, 5)], seed=7, expressways=2.0)
    assert found == [Expenditure(9, 1, day_toll), Expenditure(9, 2, 0)]
    assert 0 <= day_toll <= 98


def test_a_journey_at_night_is_faster_than_in_the_rush_hour():
    night, rush = answers([travel(0, 1, 0, 1, 10, 29, 3, 120), travel(0, 1, 0, 2, 10, 29, 3, 470)])
    assert isinstance(night, Travel)
    assert night.toll == 0 < rush.toll
    assert 20 * 3600 / 62 - 60 < night.seconds < rush.seconds


def test_every_weekday_occurs_ten_times_in_ten_weeks():
    days = [history.weekday(d) for d in range(1, 71)]
    assert sorted(set(days)) == [1, 2, 3, 4, 5, 6, 7]
    assert all(days.count(d) == 10 for d in range(1, 8))
    assert history.weekday(7) == history.weekday(14) == 1


# --- the two toll functions queries are held against --------------------------------------------------------------


def test_without_accidents_the_toll_is_not_suppressed():
    jam = [report(60 + n % 60, 3000 + n, 20, 0, 1, 0, 29, 153_200 + 30 * n) for n in range(52)]
    rows = sorted([*STANDING, *jam, report(130, 5000, 30, 0, 1, 0, 29, 153_300)], key=lambda r: r[1])
    assert tolls_of(5000, answers(rows)) == [Toll(5000, 130, 20, 0)]
    assert tolls_of(5000, tolls_without_accidents(rows)) == [Toll(5000, 130, 20, 8)]


def test_simple_tolls_know_no_trips():
    # 0 crosses; 30 leaves; 60 is counted, it crosses into 6; 91 crosses back into 5; 120 stays
    assert simple_tolls(BACK_AGAIN) == [Toll(1, 0, 0, 0), Toll(1, 60, 0, 0), Toll(1, 91, 45, 0)]


def test_simple_tolls_charge_a_full_segment():
    rows = sorted([*crowd(), *passing(), balance(130, 999, 2)], key=lambda r: r[1])
    assert tolls_of(999, simple_tolls(rows)) == [Toll(999, 70, 30, 8), Toll(999, 130, 0, 0)]


def test_speeds_older_than_five_minutes_are_forgotten():
    old = report(0, 1, 10, 0, 1, 0, 20, 105_700)
    late, too_late = (report(t, t, 50, 0, 1, 0, 20, 105_800) for t in (359, 360))
    assert [t.lav for t in simple_tolls([old, late])] == [0, 10]
    assert [t.lav for t in simple_tolls([old, too_late])] == [0, 0]
