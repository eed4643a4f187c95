"""Random rows through joins within windows: every way of running them gives the rows of the reference, in their order,
also where a run is paused and goes on in another plan."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from cases import WAYS, Prepared, spread_out, watched
from wandering import plans_of, wander

import cq

STREAM = (
    "CREATE STREAM {} (k BIGINT, w VARCHAR, v BIGINT, t VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3' "
    "SECOND) WITH (connector = 'memory');\n"
)
STREAMS = STREAM.format("a") + STREAM.format("b")
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
WINDOWS = {
    "TUMBLE": "TUMBLE({}, ts, INTERVAL '10' SECOND)",
    "HOP": "HOP({}, ts, INTERVAL '2' SECOND, INTERVAL '6' SECOND)",
    "CUMULATE": "CUMULATE({}, ts, INTERVAL '4' SECOND, INTERVAL '12' SECOND)",
}
CONDITIONS = {
    "by a number": "l.k = r.k",
    "by a text": "l.w = r.w",
    "by both, where a condition holds": "l.k = r.k AND l.w = r.w AND l.v <= r.v + 60",
    "by a text that is computed": "UPPER(l.w) = UPPER(r.w) AND l.t <> r.t",
    "all of a window": "l.v % 4 = 1 AND r.v % 7 < 3",
    "by other columns of one stream": "l.k = r.v % 6",
}


COLUMNS = "l.window_end AS e, r.window_start AS s, l.k, r.k AS rk, l.w, r.w AS rw, l.v, r.v AS rv, l.t, r.t AS rt"
INTERPRETED = [w for w in WAYS if w.interpreted]


def query(kind, window, condition):
    right = "a" if condition.endswith("one stream") else "b"
    joined = f"{WINDOWS[window].format('a')} AS l {kind} {WINDOWS[window].format(right)} AS r"
    return f"{STREAMS}SELECT {COLUMNS}\nFROM {joined} ON l.window_end = r.window_end AND {CONDITIONS[condition]};"


def rows(dice, count, keys):
    """Rows in steps of 0 to 2 seconds, some of them up to 5 back: 2 of these are late."""
    now, made = 0, []
    for n in range(count):
        now += dice.choice([0, 0, 1, 2]) * 1_000_000
        word = dice.choice([None, "", "x", "Y", "a text of more than twelve bytes", "A TEXT of more than twelve bytes"])
        text = dice.choice([None, "", "short", f"the text of row {n} is long"])
        key = dice.choice([None, *range(keys)])
        made.append((key, word, n, text, now - dice.choice([0, 0, 0, 1, 2, 5]) * 1_000_000))
    return made


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.one_in(4)
def test_rows_of_one_window_meet_as_the_reference_says(condition, kind, window):
    dice = random.Random(f"{condition} {kind} {window}")
    made = Prepared(query(kind, window, condition))
    for keys in (2, 30):
        way = dice.choice(INTERPRETED)
        made.give({"a": rows(dice, 60, keys), "b": rows(dice, 50, keys)}, cuts=(dice.choice([1, 5, 40]),))
        wanted = made.reference()
        assert any(wanted.rows.values()) and wanted.late
        with watched(f"{condition}, {kind}, {window}, {way}"):
            outcome = made.native(way)
        assert outcome == wanted, f"{way}: {outcome.difference(wanted)}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.one_in(2)
def test_compiled_rows_of_one_window_meet_as_the_reference_says(kind):
    """By every number of workers, in lanes, and rows at a time; windows have more keys than a small table has slots."""
    dice = random.Random(kind)
    made = Prepared(query(kind, "TUMBLE", "by both, where a condition holds"))
    close = {s: [(*row[:4], row[4] // 100) for row in rows(dice, 1000, 300)] for s in ("a", "b")}
    made.give(close)
    wanted = made.reference()
    for way in (w for w in WAYS if not w.interpreted):
        with spread_out(), watched(f"{kind}, {way}"):
            outcome = made.native(way)
        assert outcome == wanted, f"{way}: {outcome.difference(wanted)}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", ["by a text", "by both, where a condition holds"])
@pytest.mark.one_in(4)
def test_a_paused_join_goes_on_in_another_plan(condition, kind):
    prepared = Prepared(query(kind, "TUMBLE", condition))
    dice = random.Random(f"{condition} {kind}")
    plans = plans_of(prepared)
    prepared.give({"a": rows(dice, 80, 5), "b": rows(dice, 80, 5)})
    wanted, moves = prepared.reference(), 0
    for seed in range(2):
        with watched(f"{condition}, {kind}, seed {seed}"):
            outcome, moved = wander(prepared, plans, seed, interpreted=True)
        assert outcome == wanted, outcome.difference(wanted)
        moves += moved
    assert moves > 3


@pytest.mark.parametrize("what", ["EXISTS", "NOT EXISTS"])
def test_right_rows_do_not_pass_by_left_rows_that_had_their_match(what):
    """As long as the square of their number would be a minute."""
    count, columns = 300_000, "(v BIGINT NOT NULL, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');\n"
    text = f"""CREATE STREAM a {columns}CREATE STREAM b {columns}
    CREATE VIEW l AS SELECT * FROM {WINDOWS["TUMBLE"].format("a")};
    CREATE VIEW r AS SELECT * FROM {WINDOWS["TUMBLE"].format("b")};
    SELECT COUNT(*) AS n FROM l
    WHERE {what} (SELECT 1 FROM r WHERE r.window_end = l.window_end AND r.v > l.v AND r.v % 3 <> l.v % 3);"""
    numbers = [pa.array(range(first, first + count), pa.int64()) for first in (0, count)]
    left, right = (pa.table({"v": n, "ts": n.cast(pa.timestamp("us"))}) for n in numbers)
    found = cq.sql(text, a=left, b=right).run(threads=0)["result"].to_pylist()
    assert found == [{"n": count if what == "EXISTS" else 0}]
