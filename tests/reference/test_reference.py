"""The page on meaning, line by line: watermarks, lateness, closing, order, cascades, merging of sources, errors."""

from __future__ import annotations

from typing import Any

import pytest
from reference_fixture import S, caused_by, plan_of, result_of, seconds, stepped, stream, timed

from cq.errors import UsageError
from cq.lang.expressions import Column
from cq.lang.schema import Field, TimeAttribute
from cq.lang.types import BIGINT, TIMESTAMP, VARCHAR
from cq.planner.operators import JoinKind, Scan, TemporalJoin
from cq.planner.plan.logical import LogicalPlan, Output
from cq.planner.plan.source import SourceDef
from cq.reference.engine import SourceRow, run
from cq.reference.operator import BEFORE_ALL, NEVER

TUMBLING = """SELECT window_start, window_end, k, COUNT(*) AS n, SUM(v) AS total
FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;"""
S_STREAM = stream("s", "k VARCHAR, v BIGINT")
S_DELAYED = stream("s", "k VARCHAR, v BIGINT", delay=5)


# ------------------------------------------------------------------------------------------ watermarks and windows


def test_a_window_closes_when_the_watermark_reaches_its_end_and_before_the_row_that_moved_it() -> None:
    # [0 --a--b--)[10 --a--   the row at 10 is in the second window and closes the first
    s = stepped(S_STREAM + TUMBLING)
    assert caused_by(s.push("s", ("a", 1, 1 * S))) == []
    assert caused_by(s.push("s", ("b", 2, 9 * S))) == []
    assert seconds(caused_by(s.push("s", ("a", 4, 10 * S))), 0, 1) == [(0, 10, "a", 1, 1), (0, 10, "b", 1, 2)]
    assert seconds(caused_by(s.end("s")), 0, 1) == [(10, 20, "a", 1, 4)]


def test_a_row_at_the_watermark_is_on_time_and_one_below_is_late() -> None:
    # delay 5: after 12 the watermark is 7; 7 is on time, 6.999999 is not
    result = result_of(S_DELAYED + TUMBLING, s=[("a", 1, 12), ("a", 2, 7), ("a", 4, 6.999999)])
    assert seconds(result.rows(), 0, 1) == [(0, 10, "a", 1, 2), (10, 20, "a", 1, 1)]
    assert result.sources["s"].late == 1
    assert [(node.operator, n) for node, n in result.late] == [("window", 1)]


def test_a_row_within_the_delay_is_counted_in_its_window() -> None:
    # arrival 9 11 8 14.999999 : the window [0,10) is still open at watermark 9.999999
    result = result_of(S_DELAYED + TUMBLING, s=[("a", 1, 9), ("a", 1, 11), ("a", 1, 8), ("a", 1, 14.999999)])
    assert seconds(result.rows(), 0, 1) == [(0, 10, "a", 2, 2), (10, 20, "a", 2, 2)]


def test_times_before_1970_fall_into_windows_by_floor() -> None:
    result = result_of(S_STREAM + TUMBLING, s=[("a", 1, -10), ("a", 1, -0.000001), ("a", 1, 0)])
    assert seconds(result.rows(), 0, 1) == [(-10, 0, "a", 2, 2), (0, 10, "a", 1, 1)]


def test_a_jump_of_the_watermark_serves_every_instant_in_order() -> None:
    # delay 60 s keeps four windows open, the row at 100 closes them one after the other
    query = stream("s", "k VARCHAR, v BIGINT", delay=60) + TUMBLING
    s = stepped(query)
    for t in (35, 5, 25, 15):
        assert caused_by(s.push("s", ("a", t, t * S))) == []
    closed = s.push("s", ("z", 0, 100 * S))
    (rows,) = closed.values()
    assert seconds([d.row for d in rows], 0, 1) == [
        (0, 10, "a", 1, 5),
        (10, 20, "a", 1, 15),
        (20, 30, "a", 1, 25),
        (30, 40, "a", 1, 35),
    ]
    assert [d.position for d in rows] == [(4, end * S, 0) for end in (10, 20, 30, 40)]


def test_groups_leave_in_order_of_first_arrival_also_across_panes() -> None:
    # hop 20 s every 10 s; b arrives first, in the later pane
    query = (
        S_DELAYED
        + """SELECT window_end, k, COUNT(*) AS n
        FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)
        GROUP BY window_start, window_end, k;"""
    )
    result = result_of(query, s=[("b", 1, 10), ("a", 1, 9), ("b", 1, 8)])
    assert seconds(result.rows(), 0) == [(10, "a", 1), (10, "b", 1), (20, "b", 2), (20, "a", 1), (30, "b", 1)]


def test_a_slide_longer_than_the_size_leaves_rows_between_windows_out() -> None:
    query = (
        S_STREAM
        + """SELECT window_start, window_end, COUNT(*) AS n
        FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '3' SECOND)
        GROUP BY window_start, window_end;"""
    )
    result = result_of(query, s=[("a", 1, 2), ("a", 1, 3), ("a", 1, 9), ("a", 1, 12)])
    assert seconds(result.rows(), 0, 1) == [(0, 3, 1), (10, 13, 1)]


def test_double_sums_add_in_arrival_order_inside_a_pane_and_panes_from_left_to_right() -> None:
    query = (
        stream("s", "x DOUBLE", delay=20)
        + """SELECT SUM(x) AS total
        FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)
        GROUP BY window_start, window_end;"""
    )
    result = result_of(query, s=[(0.3, 12), (0.1, 2), (0.2, 13), (0.7, 1)])
    left, right = 0.0 + 0.1 + 0.7, 0.0 + 0.3 + 0.2
    assert result.rows() == [(left,), (left + right,), (right,)]


def test_nan_is_one_group_and_minus_zero_is_zero() -> None:
    query = (
        stream("s", "x DOUBLE")
        + """SELECT x, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND)
        GROUP BY window_start, window_end, x;"""
    )
    nan = float("nan")
    result = result_of(query, s=[(-0.0, 1), (nan, 2), (0.0, 3), (-nan, 4), (None, 5)])
    assert repr(result.rows()) == "[(0.0, 2), (nan, 2), (None, 1)]"


def test_a_row_with_a_null_event_time_is_dropped_and_gets_no_serial() -> None:
    result = result_of(S_STREAM + TUMBLING, s=[("a", 1, None), ("a", 1, 1)])
    assert seconds(result.rows(), 0, 1) == [(0, 10, "a", 1, 1)]
    assert result.sources["s"].without_time == 1 and result.sources["s"].rows == 2
    assert result.outputs[next(iter(result.outputs))][0].position.serial == 1


# -------------------------------------------------------------------------------------------------------- cascades


def test_a_window_over_window_results_closes_at_the_same_instant() -> None:
    # inner [0,10)[10,20)…, outer [0,30): the inner result with time 29.999999 belongs to it and comes before its close
    query = (
        S_STREAM
        + """CREATE VIEW small AS SELECT window_start, window_end, window_time, COUNT(*) AS n
          FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, window_time;
        SELECT window_start, window_end, SUM(n) AS n, COUNT(*) AS parts
        FROM TUMBLE(TABLE small, DESCRIPTOR(window_time), INTERVAL '30' SECOND) GROUP BY window_start, window_end;"""
    )
    s = stepped(query)
    for t in (1, 2, 12, 29):
        assert caused_by(s.push("s", ("a", 1, t * S))) == []
    assert seconds(caused_by(s.push("s", ("a", 1, 30 * S))), 0, 1) == [(0, 30, 4, 3)]
    assert seconds(caused_by(s.end("s")), 0, 1) == [(30, 60, 1, 1)]


def test_an_aggregate_of_aggregates_keeps_the_window_of_its_input() -> None:
    query = (
        S_STREAM
        + """CREATE VIEW per_key AS SELECT window_start, window_end, k, SUM(v) AS total
          FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;
        SELECT window_start, window_end, MAX(total) AS best, COUNT(*) AS keys FROM per_key
        GROUP BY window_start, window_end;"""
    )
    result = result_of(query, s=[("a", 1, 1), ("b", 5, 2), ("a", 3, 3), ("c", 7, 11)])
    assert seconds(result.rows(), 0, 1) == [(0, 10, 5, 2), (10, 20, 7, 1)]


# --------------------------------------------------------------------------------------------------- temporal join

LOOK_UP = """CREATE VIEW minute AS SELECT window_start, window_end, k, COUNT(*) AS n
  FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;
SELECT s.k AS k, s.v AS v, m.n AS n FROM s {kind} JOIN minute FOR SYSTEM_TIME AS OF s.ts AS m ON m.k = s.k {more};"""


def test_a_row_at_the_end_of_a_window_sees_it_closed() -> None:
    # [0 --1--9--)10 : the row at 10 sees both, those inside see nothing
    result = result_of(S_STREAM + LOOK_UP.format(kind="LEFT", more=""), s=[("a", 1, 1), ("a", 2, 9), ("a", 3, 10)])
    assert result.rows() == [("a", 1, None), ("a", 2, None), ("a", 3, 2)]


def test_without_a_match_an_inner_look_up_gives_nothing_and_a_left_one_nulls() -> None:
    rows = [("a", 1, 1), ("b", 2, 11), ("a", 3, 12), (None, 4, 13)]
    inner = result_of(S_STREAM + LOOK_UP.format(kind="", more=""), s=rows)
    outer = result_of(S_STREAM + LOOK_UP.format(kind="LEFT", more=""), s=rows)
    assert inner.rows() == [("a", 3, 1)]
    assert outer.rows() == [("a", 1, None), ("b", 2, None), ("a", 3, 1), (None, 4, None)]


def test_the_residual_is_tested_on_the_one_candidate() -> None:
    # the window [0,10) has n = 2, [10,20) has n = 1: only the latest is looked at
    rows = [("a", 1, 1), ("a", 2, 2), ("a", 3, 12), ("a", 4, 22)]
    result = result_of(S_STREAM + LOOK_UP.format(kind="LEFT", more="AND m.n = 2"), s=rows)
    assert result.rows() == [("a", 1, None), ("a", 2, None), ("a", 3, 2), ("a", 4, None)]


def test_with_a_delay_a_left_row_waits_until_the_watermark_reaches_its_time() -> None:
    # delay 5; the row at 12 leaves when the watermark is 12, after [0,10) has closed with the row at 8 in it
    s = stepped(S_DELAYED + LOOK_UP.format(kind="LEFT", more=""))
    assert caused_by(s.push("s", ("a", 1, 9 * S))) == []
    assert caused_by(s.push("s", ("a", 2, 12 * S))) == []
    assert caused_by(s.push("s", ("a", 3, 8 * S))) == []
    assert caused_by(s.push("s", ("b", 4, 17 * S))) == [("a", 3, None), ("a", 1, None), ("a", 2, 2)]
    assert caused_by(s.end("s")) == [("b", 4, None)]


def test_late_rows_are_dropped_once_on_each_path() -> None:
    result = result_of(S_DELAYED + LOOK_UP.format(kind="LEFT", more=""), s=[("a", 1, 20), ("a", 2, 3)])
    assert result.rows() == [("a", 1, None)]
    assert sorted((node.operator, n) for node, n in result.late) == [("temporal_join", 1), ("window", 1)]
    assert result.sources["s"].late == 1


# ------------------------------------------------------------------------------------------- OVER, unnest, aggregate


def test_lag_and_running_aggregates_without_a_delay_leave_at_once() -> None:
    query = (
        S_STREAM
        + """SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS before,
          SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS running FROM s;"""
    )
    s = stepped(query)
    assert caused_by(s.push("s", ("a", 1, 1 * S))) == [("a", 1, None, 1)]
    assert caused_by(s.push("s", ("b", 5, 1 * S))) == [("b", 5, None, 5)]
    assert caused_by(s.push("s", ("a", 2, 1 * S))) == [("a", 2, 1, 3)]
    assert caused_by(s.push("s", ("a", 9, 0))) == []  # late


def test_with_a_delay_rows_are_taken_by_time_then_position() -> None:
    query = S_DELAYED + "SELECT k, v, LAG(v, 1, 0) OVER (PARTITION BY k ORDER BY ts) AS before FROM s;"
    s = stepped(query)
    for v, t in ((1, 9), (2, 8), (3, 9), (4, 7)):
        assert caused_by(s.push("s", ("a", v, t * S))) == []
    assert caused_by(s.push("s", ("a", 5, 13.5 * S))) == [("a", 4, 0), ("a", 2, 4)]
    assert caused_by(s.push("s", ("a", 6, 14 * S))) == [("a", 1, 2), ("a", 3, 1)]
    assert caused_by(s.end("s")) == [("a", 5, 3), ("a", 6, 5)]


def test_without_an_order_rows_are_taken_in_arrival_order_and_late_ones_pass() -> None:
    query = S_STREAM + "SELECT v, COUNT(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM s;"
    result = result_of(query, s=[("a", 1, 10), ("a", 2, 3), ("b", 3, 4)])
    assert result.rows() == [(1, 1), (2, 2), (3, 1)]
    assert result.sources["s"].late == 2 and result.late == []


def test_unnest_gives_a_row_for_each_element_and_none_for_null() -> None:
    query = stream("s", "line VARCHAR", delay=None) + "SELECT word FROM s, UNNEST(SPLIT(line, ' ')) AS t(word);"
    result = result_of(query, s=[("a b", 0), (None, 0), ("", 0), ("c", 0)])
    assert result.rows() == [("a",), ("b",), ("",), ("c",)]


def test_an_aggregate_without_a_window_comes_at_the_end_and_counts_late_rows() -> None:
    query = S_STREAM + "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k;"
    s = stepped(query)
    for row in (("b", 1, 9), ("a", 2, 3), ("b", None, 4)):
        assert caused_by(s.push("s", (*row[:2], row[2] * S))) == []
    assert caused_by(s.end("s")) == [("b", 2, 1), ("a", 1, 2)]


def test_a_global_aggregate_of_nothing_is_one_row() -> None:
    result = result_of(S_STREAM + "SELECT COUNT(*) AS n, SUM(v) AS total, MIN(k) AS least FROM s;", s=[])
    assert result.rows() == [(0, None, None)]


def test_limit_takes_the_first_rows_by_position() -> None:
    result = result_of(S_STREAM + "SELECT v FROM s LIMIT 2;", s=[("a", 1, 5), ("a", 2, 1), ("a", 3, 9)])
    assert result.rows() == [(1,), (2,)]


# ------------------------------------------------------------------------------------------------- several sources

TWO = stream("a", "v BIGINT") + stream("b", "v BIGINT")
BOTH = TWO + "SELECT v, ts FROM a UNION ALL SELECT v, ts FROM b;"
BOTH_WINDOWED = (
    TWO
    + """CREATE VIEW u AS SELECT v, ts FROM a UNION ALL SELECT v, ts FROM b;
SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE u, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY window_start, window_end;"""
)


def test_sources_are_merged_by_running_maximum_then_position_in_the_file() -> None:
    # a: 1 5 3 8      3 stays behind 5, as in its source
    # b: 1 4 6
    result = result_of(BOTH, a=[(10, 1), (11, 5), (12, 3), (13, 8)], b=[(20, 1), (21, 4), (22, 6)])
    assert [v for v, _ in result.rows()] == [10, 20, 21, 11, 12, 22, 13]


def test_the_watermark_is_the_least_of_the_sources_and_an_ended_one_does_not_hold_it() -> None:
    s = stepped(BOTH_WINDOWED)
    assert caused_by(s.push("a", (1, 12 * S))) == []
    assert s.watermark("a") == BEFORE_ALL  # b may still come before 12
    assert caused_by(s.push("b", (2, 3 * S))) == []
    assert caused_by(s.push("b", (3, 15 * S))) == []
    assert s.watermark("a") == 3 * S  # 12 is admitted, but b's own watermark is 3
    assert seconds(caused_by(s.end("a")), 0) == [(10, 1)]
    assert s.watermark("b") == 15 * S
    assert seconds(caused_by(s.end("b")), 0) == [(20, 2)]
    assert s.watermark("b") == NEVER


def test_an_empty_source_ends_at_the_start() -> None:
    result = result_of(BOTH_WINDOWED, a=[], b=[(1, 3), (2, 12)])
    (rows,) = result.outputs.values()
    assert seconds([d.row for d in rows], 0) == [(10, 1), (20, 1)]
    assert [d.position for d in rows] == [(1, 10 * S, 0), (2, 20 * S, 0)]


def test_lateness_is_judged_by_the_own_source() -> None:
    # b's row at 4 is behind b's watermark 9, though the merged watermark is only 5
    result = result_of(BOTH_WINDOWED, a=[(1, 5), (2, 9.5)], b=[(3, 9), (4, 4)])
    assert seconds(result.rows(), 0) == [(10, 3)]
    assert result.sources["b"].late == 1 and result.sources["a"].late == 0


def test_a_source_without_a_watermark_comes_before_all_that_have_one() -> None:
    query = stream("a", "v BIGINT") + stream("b", "v BIGINT", delay=None)
    query += "SELECT v FROM a UNION ALL SELECT v FROM b;"
    result = result_of(query, a=[(1, 1), (2, 2)], b=[(3, 99), (4, 0)])
    assert result.rows() == [(3,), (4,), (1,), (2,)]


def test_rows_of_one_event_follow_the_order_of_the_union() -> None:
    query = S_STREAM + "SELECT v * 10 AS v FROM s UNION ALL SELECT v FROM s WHERE v > 1;"
    result = result_of(query, s=[("a", 1, 1), ("a", 2, 2)])
    assert result.rows() == [(10,), (20,), (2,)]


def test_a_union_of_rows_and_windows_is_in_order_of_position() -> None:
    # the window closes before the row that closes it
    query = (
        S_STREAM
        + """SELECT v FROM s UNION ALL SELECT COUNT(*) AS v
        FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end;"""
    )
    result = result_of(query, s=[("a", 100, 1), ("a", 200, 2), ("a", 300, 10)])
    assert result.rows() == [(100,), (200,), (2,), (300,), (1,)]
    positions = [d.position for d in next(iter(result.outputs.values()))]
    assert positions == sorted(positions)


def test_outputs_without_a_common_source_have_their_own_serials_and_watermark() -> None:
    query = TWO + "".join(
        f"SELECT COUNT(*) AS n FROM TUMBLE(TABLE {x}, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
        "GROUP BY window_start, window_end;\n"
        for x in "ab"
    )
    s = stepped(query)
    s.push("a", (1, 1 * S))
    assert [len(rows) for rows in s.push("a", (1, 10 * S)).values()] == [1]
    assert s.watermark("b") == BEFORE_ALL


def test_rows_wait_for_a_silent_source_and_come_in_the_same_order() -> None:
    inputs = {"a": timed([(10, 1), (11, 5), (12, 3)]), "b": timed([(20, 2), (21, 6)])}
    whole = run(plan_of(BOTH), inputs).rows()
    s = stepped(BOTH)
    got = []
    for row in inputs["a"]:
        got += caused_by(s.push("a", row))
    assert got == []
    got += caused_by(s.end("a"))
    for row in inputs["b"]:
        got += caused_by(s.push("b", row))
    got += caused_by(s.end("b"))
    assert got == whole


# ---------------------------------------------------------------------------------------------------------- errors


def test_everything_before_a_failing_row_is_delivered() -> None:
    result = result_of(S_STREAM + "SELECT 10 / v AS q FROM s;", s=[("a", 5, 1), ("a", 0, 2), ("a", 2, 3)])
    assert result.rows() == [(2,)]
    assert result.error is not None and result.error.code == "CQ0706"
    assert result.error.first.place == "s:2"
    assert result.error.line == 2


def test_a_late_row_stops_the_query_when_its_source_says_so() -> None:
    strict = S_STREAM.replace("'memory'", "'memory', late = 'fail'")
    rows = [("a", 1, 5), ("a", 2, 12), ("a", 3, 4), ("a", 4, 30)]
    result = result_of(strict + TUMBLING, s=rows)
    assert seconds(result.rows(), 0, 1) == [(0, 10, "a", 1, 1)]
    assert result.error is not None and result.error.code == "CQ0709" and result.error.first.place == "s:3"
    assert len(result_of(strict + "SELECT v FROM s;", s=rows).rows()) == 4  # no operator here asks for event time


def test_the_place_of_a_row_is_what_its_connector_says() -> None:
    rows = [SourceRow(("a", 0, S), "s/03.jsonl:18842")]
    result = run(plan_of(S_STREAM + "SELECT 10 / v AS q FROM s;"), {"s": rows})
    assert result.error is not None and result.error.first.place == "s/03.jsonl:18842"


def test_a_failing_group_names_its_window_and_the_groups_before_it_are_delivered() -> None:
    big = 2**63 - 1
    result = result_of(S_STREAM + TUMBLING, s=[("a", 1, 1), ("b", big, 2), ("b", big, 3), ("c", 1, 4), ("d", 1, 12)])
    assert seconds(result.rows(), 0, 1) == [(0, 10, "a", 1, 1)]
    assert result.error is not None and result.error.code == "CQ0705"
    assert result.error.first.place == "window 1970-01-01 00:00:00 to 1970-01-01 00:00:10, group k = 'b'"


def test_of_two_failures_in_one_event_the_one_of_the_earlier_row_is_reported() -> None:
    # the sum of b overflows in the window; the division below it fails already for a
    big = 2**63 - 1
    query = (
        S_STREAM
        + """CREATE VIEW w AS SELECT window_start, window_end, k, SUM(v) AS total
          FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;
        SELECT k, 1 / total AS q FROM w;"""
    )
    result = result_of(query, s=[("a", 0, 1), ("b", big, 2), ("b", big, 3), ("a", 0, 12)])
    assert result.rows() == []
    assert result.error is not None and result.error.code == "CQ0706"


def test_an_argument_that_is_not_needed_does_not_fail() -> None:
    query = S_STREAM + "SELECT v FROM s WHERE v <> 0 AND 10 / v > 1 OR COALESCE(v, 1 / 0) = 0;"
    result = result_of(query, s=[("a", 0, 1), ("a", 2, 2), ("a", 100, 3)])
    assert result.rows() == [(0,), (2,)] and result.error is None


def test_a_missing_input_is_named() -> None:
    with pytest.raises(UsageError, match="no input is given for s"):
        run(plan_of(S_STREAM + TUMBLING), {})


# ------------------------------------------------- a look-up in a plain stream: the binder asks for a window so far


def as_of(delay: int) -> LogicalPlan:
    """l (k, v, ts) beside the row of r (k, v, ts) with its key as of its time."""
    sides = []
    for position, name in enumerate("lr"):
        fields = (Field("k", VARCHAR), Field("v", BIGINT), Field("ts", TIMESTAMP, False))
        time = Column(TIMESTAMP, False, 2)
        sides.append(Scan(SourceDef(name, fields, event_time=time, delay_us=delay * S, position=position)))
    left, right = sides
    keys = (Column(VARCHAR, True, 0),)
    join = TemporalJoin(left, right, keys, keys, None, JoinKind.LEFT, left_time=TimeAttribute(2))
    return LogicalPlan((Output("out", join),))


def looked_up(delay: int, left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    rows = run(as_of(delay), {"l": timed(left), "r": timed(right)}).rows()
    return [(row[1], row[4]) for row in rows]


def test_a_look_up_does_not_see_versions_after_the_time_of_the_row() -> None:
    # r  --1---5--9--   l at 2, 4, 6, 8
    left = [("a", 10, 2), ("a", 11, 4), ("a", 12, 6), ("a", 13, 8)]
    assert looked_up(0, left, [("a", 1, 1), ("a", 2, 5), ("a", 3, 9)]) == [(10, 1), (11, 1), (12, 2), (13, 2)]


def test_a_version_at_the_very_time_of_the_row_counts_if_it_came_before_the_row_left() -> None:
    # both at 5. Without a delay l, the first source, leaves at the instant 5, before the row of r that brings it
    left, right = [("a", 10, 5), ("a", 11, 90)], [("a", 1, 1), ("a", 2, 5), ("a", 3, 95)]
    assert looked_up(0, left, right) == [(10, 1), (11, 2)]
    assert looked_up(1, left, right) == [(10, 2), (11, 2)]


def test_versions_may_come_out_of_order_and_of_equal_times_the_later_arrival_counts() -> None:
    left = [("a", 10, 3), ("a", 11, 6), ("a", 12, 30)]
    right = [("a", 1, 6), ("a", 2, 2), ("a", 3, 6), ("a", 4, 3), ("a", 5, 40)]
    assert looked_up(9, left, right) == [(10, 4), (11, 3), (12, 3)]


def test_old_versions_go_only_when_no_row_can_look_at_them() -> None:
    # watermark 5 when the version at 6 comes: a row at 5 may still come and sees the one at 4
    left = [("a", 10, 10), ("a", 11, 5), ("a", 12, 6)]
    right = [("a", 1, 1), ("a", 2, 4), ("a", 3, 10), ("a", 4, 6)]
    assert looked_up(5, left, right) == [(11, 2), (12, 4), (10, 3)]


def test_an_event_time_that_cannot_be_computed_is_an_error_at_its_row() -> None:
    query = """CREATE STREAM s (v BIGINT, at AS TIMESTAMP_SECONDS(v), WATERMARK FOR at) WITH (connector = 'memory');
        SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '10' SECOND)
        GROUP BY window_start, window_end;"""
    result = run(plan_of(query), {"s": [(1,), (None,), (11,), (2**62,), (30,)]})
    assert seconds(result.rows(), 0) == [(10, 1)]
    assert result.error is not None and result.error.code == "CQ0705" and result.error.first.place == "s:4"
    assert result.sources["s"].without_time == 1
