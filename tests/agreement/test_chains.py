"""Queries of several stages, each by a key of its own: rows and order are those of the reference, however they run."""

from __future__ import annotations

import random

import pytest
from cases import Prepared, Way, spread_out, watched

from cq.ways import Way as Runs

MINUTE = 60_000_000
STREAM = """CREATE STREAM r (car BIGINT, seg BIGINT, speed BIGINT, d DOUBLE, words VARCHAR, ts TIMESTAMP, {watermark})
WITH (connector = 'memory');
"""
PROMPT = "WATERMARK FOR ts"
DELAYED = "WATERMARK FOR ts AS ts - INTERVAL '20' SECOND"
LAGGED = (
    "CREATE VIEW q AS SELECT car, seg, speed, d, ts, LAG(speed) OVER (PARTITION BY car ORDER BY ts) AS before FROM r;\n"
)
COUNTED = (
    "CREATE VIEW q AS SELECT car, seg, speed, d, words, ts, COUNT(*) OVER (PARTITION BY car ROWS UNBOUNDED PRECEDING)"
    " AS before FROM r;\n"
)
BY_SEGMENT = (
    "SELECT window_end, seg, SUM(d) AS total, COUNT(before) AS n, MAX(before) AS most FROM "
    "TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end, seg;\n"
)
LANES, LOOP, ANY = Runs.LANES, Runs.LOOP, Runs.ANY

CASES = {
    "a lag by car, then windows by segment": (PROMPT, LAGGED + BY_SEGMENT, [LANES, LANES]),
    "rows that have waited come at their instants": (DELAYED, LAGGED + BY_SEGMENT, [LANES, LANES]),
    "late rows stay late": (
        DELAYED,
        COUNTED + BY_SEGMENT,
        [LANES, LANES],
    ),
    "a chain of counts lets late rows through": (
        DELAYED,
        COUNTED
        + "SELECT car, seg, before, SUM(before) OVER (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS s FROM q;\n",
        [LANES, LANES],
    ),
    "three stages, one row becomes many": (
        PROMPT,
        "CREATE VIEW w AS SELECT car, seg, d, ts, word FROM r CROSS JOIN UNNEST(SPLIT(words, ' ')) AS t (word);\n"
        "CREATE VIEW q AS SELECT car, seg, d, ts, LENGTH(word) + COUNT(*) OVER (PARTITION BY word"
        " ROWS UNBOUNDED PRECEDING) AS before FROM w;\n" + BY_SEGMENT,
        [ANY, LANES, LANES],
    ),
    "three keys": (
        DELAYED,
        "CREATE VIEW p AS SELECT car, seg, speed, d, ts, LAG(speed) OVER (PARTITION BY car ORDER BY ts) AS b FROM r;\n"
        "CREATE VIEW q AS SELECT car, seg, speed, d, ts, SUM(b) OVER (PARTITION BY seg ROWS UNBOUNDED PRECEDING)"
        " AS before FROM p;\n" + BY_SEGMENT.replace("seg", "speed"),
        [LANES, LANES, LANES],
    ),
    "windows, then a count of their rows by another key": (
        DELAYED,
        "CREATE VIEW q AS SELECT window_end, window_time, car, seg, SUM(d) AS total FROM"
        " HOP(TABLE r, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)"
        " GROUP BY window_end, window_time, car, seg;\n"
        "SELECT seg, total, SUM(car) OVER (PARTITION BY window_end ROWS UNBOUNDED PRECEDING) AS s FROM q;\n",
        [LANES, LANES],
    ),
    "one row becomes many in the second stage, before panes are merged": (
        PROMPT,
        COUNTED
        + "CREATE VIEW w AS SELECT seg, d, ts, before, word FROM q CROSS JOIN UNNEST(SPLIT(words, ' ')) AS t (word);\n"
        "SELECT window_end, word, seg, MAX(before) AS n, SUM(d) AS total FROM"
        " HOP(TABLE w, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE) GROUP BY window_end, word, seg;\n",
        [LANES, LANES],
    ),
    "one state for all rows, then lanes": (
        PROMPT,
        "CREATE VIEW q AS SELECT car, seg, speed, d, ts, SUM(speed) OVER (ROWS UNBOUNDED PRECEDING) AS before FROM r;\n"
        + BY_SEGMENT,
        [LOOP, LANES],
    ),
    "one state for all rows that wait, then lanes": (
        DELAYED,
        "CREATE VIEW q AS SELECT car, seg, speed, d, ts, LAG(speed) OVER (ORDER BY ts) AS before FROM r;\n"
        + BY_SEGMENT,
        [LOOP, LANES],
    ),
    "sessions of rows that have waited": (
        DELAYED,
        LAGGED + "SELECT window_start, window_end, seg, SUM(d) AS total, MAX(before) AS most FROM"
        " SESSION(TABLE q PARTITION BY seg, DESCRIPTOR(ts), INTERVAL '4' SECOND)"
        " GROUP BY window_start, window_end, seg;\n",
        [LANES, LANES],
    ),
    "sessions, then counts of them": (
        DELAYED,
        "CREATE VIEW q AS SELECT window_start, window_end, car, SUM(d) AS total FROM"
        " SESSION(TABLE r PARTITION BY car, DESCRIPTOR(ts), INTERVAL '9' SECOND)"
        " GROUP BY window_start, window_end, car;\n"
        "SELECT car, total, COUNT(*) OVER (PARTITION BY window_start ROWS UNBOUNDED PRECEDING) AS n FROM q;\n",
        [LANES, LANES],
    ),
    "a join by car, then counts by segment": (
        DELAYED,
        LAGGED.replace("VIEW q", "VIEW p")
        + "CREATE VIEW q AS SELECT p.car, p.seg, r.speed, p.before FROM p JOIN r ON p.car = r.car"
        " AND r.ts BETWEEN p.ts - INTERVAL '9' SECOND AND p.ts;\n"
        "SELECT seg, speed, COUNT(before) OVER (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS n FROM q;\n",
        [LANES, LANES],
    ),
    "a lag by segment, then a join by car with itself": (
        PROMPT,
        LAGGED.replace("VIEW q", "VIEW p").replace("PARTITION BY car", "PARTITION BY seg")
        + "SELECT a.car, a.seg, a.before, b.before AS other FROM p AS a LEFT JOIN p AS b ON a.car = b.car"
        " AND b.ts BETWEEN a.ts + INTERVAL '1' SECOND AND a.ts + INTERVAL '6' SECOND;\n",
        [LANES, LANES],
    ),
    "two outputs, each by a key of its own": (
        DELAYED,
        COUNTED + "CREATE SINK a; INSERT INTO a SELECT car, seg, before, ts FROM q;\n"
        "CREATE SINK b; INSERT INTO b SELECT seg, speed, SUM(speed) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS s FROM r;\n",
        [LANES],
    ),
    "three outputs, one of windows, two keys": (
        DELAYED,
        LAGGED
        + "CREATE SINK a; INSERT INTO a SELECT car, seg, before, ts FROM q;\n"
        + "CREATE SINK b; INSERT INTO b "
        + BY_SEGMENT.replace("TABLE q", "TABLE r").replace("before", "speed")
        + "CREATE SINK c; INSERT INTO c SELECT car, COUNT(words) OVER"
        " (PARTITION BY car ROWS UNBOUNDED PRECEDING) AS n FROM r;\n",
        [LANES],
    ),
    "rows of two keys meet in a join by a third": (
        PROMPT,
        LAGGED.replace("VIEW q", "VIEW p") + "CREATE VIEW q AS SELECT car, seg, speed, words, ts,"
        " COUNT(*) OVER (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS many FROM r;\n"
        "SELECT p.car, p.before, q.seg, q.many, q.words FROM p JOIN q ON p.speed = q.speed"
        " AND q.ts BETWEEN p.ts - INTERVAL '9' SECOND AND p.ts;\n",
        [LANES, LANES],
    ),
    "windows of two keys meet in a join": (
        DELAYED,
        "CREATE VIEW p AS SELECT window_time AS t, car, SUM(d) AS total FROM"
        " TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '20' SECOND) GROUP BY window_start, window_end, window_time, car;\n"
        "CREATE VIEW q AS SELECT window_time AS t, seg, MAX(words) AS w FROM"
        " TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end, window_time, seg;\n"
        "SELECT p.car, p.total, q.w, q.t FROM p JOIN q ON p.car = q.seg"
        " AND q.t BETWEEN p.t - INTERVAL '1' MINUTE AND p.t + INTERVAL '1' MINUTE;\n",
        None,
    ),
    "what crosses is made of what crosses": (
        DELAYED,
        COUNTED + "CREATE VIEW e AS SELECT window_end, car, SUM(before) AS most, MIN(seg) AS seg FROM"
        " TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '3' SECOND) GROUP BY window_start, window_end, car;\n"
        "CREATE SINK a; INSERT INTO a SELECT seg, before, SUM(before) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS s FROM q;\n"
        "CREATE SINK b; INSERT INTO b SELECT seg, SUM(most) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS s FROM e;\n"
        "CREATE SINK c; INSERT INTO c SELECT car, MAX(speed) OVER"
        " (PARTITION BY car ROWS UNBOUNDED PRECEDING) AS m FROM r;\n",
        [LANES, LOOP],
    ),
    "what crosses is made of what crosses, in one event": (
        PROMPT,
        COUNTED
        + "CREATE VIEW e AS SELECT car, seg, SUM(before) OVER (PARTITION BY car ROWS UNBOUNDED PRECEDING) AS many"
        " FROM q;\n"
        "CREATE SINK a; INSERT INTO a SELECT seg, SUM(many) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS s FROM e;\n"
        "CREATE SINK b; INSERT INTO b SELECT seg, SUM(1 / (before - 7)) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS error FROM q;\n"
        "CREATE SINK c; INSERT INTO c SELECT car, MAX(speed) OVER"
        " (PARTITION BY car ROWS UNBOUNDED PRECEDING) AS m FROM r;\n",
        [LOOP],
    ),
    "what is made above at an instant comes before what is made below": (
        DELAYED,
        "CREATE VIEW p AS SELECT window_end, window_time AS t, car, SUM(d) AS total, MIN(seg) AS seg FROM"
        " TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '20' SECOND) GROUP BY window_start, window_end, window_time, car;\n"
        "CREATE VIEW q AS SELECT window_end, seg, MAX(speed) AS most FROM"
        " TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '40' SECOND) GROUP BY window_start, window_end, seg;\n"
        "SELECT seg, COUNT(*) AS n FROM TUMBLE(TABLE p, DESCRIPTOR(t), INTERVAL '40' SECOND) GROUP BY window_end, seg"
        " UNION ALL SELECT most, SUM(most) OVER (PARTITION BY most ROWS UNBOUNDED PRECEDING) AS n FROM q;\n",
        [LOOP],
    ),
    "an error in one of two branches": (
        DELAYED,
        LAGGED.replace("LAG(speed)", "LAG(1 / (speed - 7))")
        + "CREATE SINK a; INSERT INTO a SELECT car, before FROM q;\n"
        "CREATE SINK b; INSERT INTO b SELECT seg, SUM(speed) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS s FROM r;\n",
        [LANES],
    ),
    "an error in the other branch": (
        DELAYED,
        COUNTED + "CREATE SINK a; INSERT INTO a SELECT car, before FROM q;\n"
        "CREATE SINK b; INSERT INTO b SELECT seg, SUM(1 / (speed - 7)) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS s FROM r;\n",
        [LANES],
    ),
    "what a failing row caused before is delivered, what would have come after is not": (
        PROMPT,
        "CREATE SINK a; INSERT INTO a SELECT car, COUNT(*) OVER (PARTITION BY car ROWS UNBOUNDED PRECEDING) AS n"
        " FROM r;\n"
        "CREATE SINK b; INSERT INTO b SELECT seg, SUM(1 / (speed - 7)) OVER"
        " (PARTITION BY seg ROWS UNBOUNDED PRECEDING) AS error FROM r;\n"
        "CREATE SINK c; INSERT INTO c SELECT car, COUNT(words) OVER"
        " (PARTITION BY car ROWS UNBOUNDED PRECEDING) AS n FROM r;\n",
        [LANES],
    ),
    "an error in the second stage": (
        DELAYED,
        LAGGED + BY_SEGMENT.replace("COUNT(before)", "COUNT(1 / (before - 7))"),
        [LANES, LANES],
    ),
    "an error in the first stage": (
        DELAYED,
        LAGGED.replace("LAG(speed)", "LAG(1 / (speed - 7))") + BY_SEGMENT,
        [LANES, LANES],
    ),
    "a limit": (DELAYED, LAGGED + BY_SEGMENT.replace(";", " LIMIT 5;"), [LANES, LANES]),
}
WAYS = [Way(t, b) for t in (0, 1, 2, 4, 8) for b in (1, 7, 4096)]


def rows(seed: int, count: int, strict: bool) -> list[tuple[object, ...]]:
    """Rows out of order by up to half a minute: some wait, some are late."""
    rng, made, now = random.Random(seed), [], 0
    for _ in range(count):
        now += rng.randrange(3_000_000)
        at = now - rng.choice((0, 0, 0, 5_000_000, 30_000_000))
        values = (rng.randrange(9), rng.randrange(5), rng.randrange(20) if strict else 8 + rng.randrange(20))
        words = " ".join(rng.choice(("a", "bb", "ccc", "a longer word than fits")) for _ in range(rng.randrange(4)))
        made.append((*values, rng.random(), words, at))
    return made


def test_a_query_of_two_keys_runs_in_three_stages_where_that_pays() -> None:
    sets = ", ".join(f"COUNT(DISTINCT {what}) AS n{n}" for n, what in enumerate(("car", "speed", "before")))
    text = (
        "CREATE VIEW w AS SELECT car, seg, speed, ts, word FROM r CROSS JOIN UNNEST(SPLIT(words, ' ')) AS t (word);\n"
        "CREATE VIEW p AS SELECT car, seg, speed, ts, word,"
        " COUNT(*) OVER (PARTITION BY word ROWS UNBOUNDED PRECEDING) AS many FROM w;\n"
        "CREATE VIEW q AS SELECT car, seg, speed, ts,"
        " many + SUM(speed) OVER (PARTITION BY word, car ROWS UNBOUNDED PRECEDING) AS before FROM p;\n"
        f"SELECT window_end, seg, {sets} FROM TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
        " GROUP BY window_end, seg;\n"
    )
    prepared = Prepared(STREAM.format(watermark=PROMPT) + text)
    prepared.give({"r": rows(3, 600, strict=False)}, (40, 7))
    wanted = prepared.reference()
    for way in WAYS:
        got = prepared.native(way)
        assert prepared.agree(got, way, wanted), f"{way}: {got.difference(wanted)}"
    stages = {n: [s.way for s in prepared.compiled.for_workers(n).after("place")[0].stages] for n in (1, 2, 4, 8)}
    assert stages == {1: [LOOP], 2: [ANY, LOOP], 4: [ANY, LANES, LANES], 8: [ANY, LANES, LANES]}
    assert len(wanted.rows["result"]) > 20


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(2)
def test_a_chain_gives_the_rows_of_the_reference_in_order(name: str) -> None:
    watermark, query, stages = CASES[name]
    prepared = Prepared(STREAM.format(watermark=watermark) + query)
    with spread_out():
        for seed, cuts in ((1, ()), (2, (3, 1, 50))):
            prepared.give({"r": rows(seed, 400, strict="error" in name + query)}, cuts)
            wanted = prepared.reference()
            assert bool(wanted.error) == ("error" in name + query) and (wanted.error or all(wanted.rows.values()))
            for way in WAYS:
                with watched(f"{name}, {way}"):
                    got = prepared.native(way)
                assert prepared.agree(got, way, wanted), f"{way}: {got.difference(wanted)}"
        (part,) = prepared.compiled.for_workers(4).after("place")
        assert stages is None or [s.way for s in part.stages] == stages


BRANCHED = [
    "three outputs, one of windows, two keys",
    "rows of two keys meet in a join by a third",
    "what a failing row caused before is delivered, what would have come after is not",
]


@pytest.mark.parametrize("name", BRANCHED)
@pytest.mark.one_in(2)
def test_branches_interpreted(name: str) -> None:
    watermark, query, stages = CASES[name]
    prepared = Prepared(STREAM.format(watermark=watermark) + query)
    prepared.give({"r": rows(1, 300, strict="error" in name + query)}, (40, 7))
    wanted = prepared.reference()
    with spread_out():
        for batch_rows in (1, 7, 4096):
            got = prepared.native(Way(4, batch_rows, interpreted=True))
            assert got == wanted, got.difference(wanted)
        (part,) = prepared.compiled.for_workers(4).after("place")
    assert [s.way for s in part.stages] == stages and len(part.stages[0].branches) == 2


def test_a_step_that_sends_a_part_of_a_ticket_has_done_something() -> None:
    """All windows close at the end, in one ticket: more batches than the next stage has room for at once."""
    prepared = Prepared(
        STREAM.format(watermark=PROMPT) + "CREATE VIEW p AS SELECT b.speed FROM r AS a JOIN r AS b ON a.d = b.d"
        " AND b.ts BETWEEN a.ts - INTERVAL '2' SECOND AND a.ts - INTERVAL '2' SECOND;\n"
        "CREATE VIEW q AS SELECT window_end, AVG(car) AS mean FROM"
        " HOP(TABLE r, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '8' SECOND) GROUP BY window_end, car;\n"
        "CREATE SINK a; INSERT INTO a SELECT * FROM p;\n"
        "CREATE SINK b; INSERT INTO b SELECT MIN(d) AS d FROM"
        " TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '8' SECOND) GROUP BY window_end, seg;\n"
        "CREATE SINK c; INSERT INTO c SELECT MAX(10) AS most FROM"
        " TUMBLE(TABLE q, DESCRIPTOR(window_end), INTERVAL '5' SECOND) GROUP BY window_end, mean;\n"
    )
    at = 1_709_164_822_000_000
    prepared.give({"r": [(-36, 15, 1, -1.0, "", at), (1, 15, 1, None, "", at)]})
    wanted = prepared.reference()
    with spread_out():
        for workers in (2, 3, 4):
            got = prepared.native(Way(workers, 1, interpreted=True))
            assert got == wanted, got.difference(wanted)


def test_a_key_that_may_be_null_on_one_side_only_meets_its_equals_in_one_lane() -> None:
    prepared = Prepared(
        "CREATE STREAM l (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');\n"
        "CREATE STREAM r (k BIGINT NOT NULL, w BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');\n"
        "CREATE VIEW q AS SELECT window_end, k, SUM(w) AS w FROM TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '3' SECOND)"
        " GROUP BY window_end, k;\n"
        "SELECT l.k, v, w FROM l LEFT JOIN q FOR SYSTEM_TIME AS OF l.ts ON l.k = q.k;\n"
    )
    made = [(n % 7, n, n * 1_000_000) for n in range(60)]
    prepared.give({"l": [(None if n % 11 == 5 else k, v, t) for n, (k, v, t) in enumerate(made)], "r": made})
    wanted = prepared.reference()
    with spread_out():
        for way in WAYS:
            got = prepared.native(way)
            assert prepared.agree(got, way, wanted), f"{way}: {got.difference(wanted)}"
        (part,) = prepared.compiled.for_workers(4).after("place")
    assert [s.way for s in part.stages] == [LANES] and any(w is not None for _, _, w in wanted.rows["result"])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n FROM (SELECT k, j, COUNT(*) AS c FROM s GROUP BY k, j) AS g GROUP BY k;",
        "SELECT a.k, b.k AS l, n FROM s AS a FULL JOIN (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS b"
        " ON a.k = b.k AND j > n;",
        "SELECT k, COUNT(*) OVER (PARTITION BY j) AS n, SUM(k) OVER (PARTITION BY TRY_CAST(k AS TINYINT)) AS t FROM s;",
    ],
)
def test_what_groups_begin_at_the_end_keeps_its_order_with_several_workers(query: str) -> None:
    prepared = Prepared("CREATE STREAM s (k BIGINT, j BIGINT) WITH (connector = 'memory');\n" + query)
    prepared.give({"s": [(97 * n % 31, n % 3) for n in range(80)]}, (40, 7))
    wanted = prepared.reference()
    with spread_out():
        for workers in (1, 4):
            got = prepared.native(Way(workers, 7, interpreted=True))
            assert got == wanted, got.difference(wanted)


def test_a_stage_that_takes_rows_of_two_ports_passes_its_last_watermark_on() -> None:
    """Found by a random query: the function that takes such rows had the name of a local of the kernel."""
    prepared = Prepared("""
CREATE STREAM s (b BIGINT ARRAY NOT NULL, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' MICROSECOND);
CREATE STREAM t (w BIGINT NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '5' MICROSECOND);
CREATE VIEW v AS SELECT a, b FROM (SELECT ts AS at, ts AS a FROM t) AS l
  ASOF JOIN (SELECT ts AS at, b FROM s) AS r USING (at);
SELECT * FROM SESSION(TABLE v PARTITION BY b, DESCRIPTOR(a), INTERVAL '3' MICROSECOND);
""")
    prepared.give({"s": [([n % 3], n) for n in range(20)], "t": [(n, n + n % 4) for n in range(20)]}, (3,))
    wanted = prepared.reference()
    assert wanted.rows["result"]
    with spread_out():
        for workers in (1, 3):
            got = prepared.native(Way(workers, 7, interpreted=True))
            assert got == wanted, got.difference(wanted)
