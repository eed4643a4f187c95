"""A semi or anti join by time gives what the join with its condition gives: left rows as they first appear in the JOIN,
or those that stand beside NULLs in the LEFT JOIN, in this order. On the reference, which the cases of tests/slt hold
the engines to.
"""

from __future__ import annotations

import random

import pytest
from cases import Prepared

STREAMS = "".join(
    f"CREATE STREAM {name} (id BIGINT NOT NULL, k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts{delay});\n"
    for name, delay in (("a", " AS ts - INTERVAL '3' SECOND"), ("b", ""))
)
TUMBLE, HOP = "TUMBLE({}, ts, INTERVAL '5' SECOND)", "HOP({}, ts, INTERVAL '2' SECOND, INTERVAL '5' SECOND)"
JOINS = {
    "an interval": ("{}", "l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL '2' SECOND AND l.ts + INTERVAL '4' SECOND"),
    "an interval ahead": (
        "{}",
        "l.k = r.k AND r.ts > l.ts + INTERVAL '1' SECOND AND r.ts < l.ts + INTERVAL '6' SECOND",
    ),
    "an interval behind": (
        "{}",
        "l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL '6' SECOND AND l.ts - INTERVAL '1' SECOND",
    ),
    "a condition": ("{}", "l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL '4' SECOND AND l.v < r.v"),
    "no key": ("{}", "r.ts BETWEEN l.ts - INTERVAL '1' SECOND AND l.ts + INTERVAL '1' SECOND AND l.v = r.v + 1"),
    "the same time": ("{}", "l.ts = r.ts AND l.k = r.k"),
    "a window": (TUMBLE, "l.window_end = r.window_end AND l.k = r.k"),
    "a window and a condition": (TUMBLE, "l.window_end = r.window_end AND l.k = r.k AND l.v < r.v"),
    "windows that overlap": (HOP, "l.window_end = r.window_end AND l.k = r.k"),
}
SIDES = (("a", "b"), ("b", "a"), ("a", "a"))


@pytest.mark.parametrize("form", JOINS)
@pytest.mark.parametrize("sides", SIDES, ids="".join)
def test_they_give_the_left_rows_of_the_join_in_its_order(form: str, sides: tuple[str, str]) -> None:
    reads, on = JOINS[form]
    left, right = (reads.format(name) for name in sides)
    row = "l.id, l.ts, l.window_end" if "window" in on else "l.id, l.ts, NULL::BIGINT"
    made = Prepared(
        f"{STREAMS}SELECT {row} FROM {left} AS l WHERE EXISTS (SELECT 1 FROM {right} AS r WHERE {on});\n"
        f"SELECT {row} FROM {left} AS l JOIN {right} AS r ON {on};\n"
        f"SELECT {row} FROM {left} AS l ANTI JOIN {right} AS r ON {on};\n"
        f"SELECT {row}, r.id FROM {left} AS l LEFT JOIN {right} AS r ON {on};\n"
    )
    met = 0
    for seed in range(12):
        made.give({name: rows(random.Random(f"{name} {seed}")) for name in made.fields}, ())
        found = made.reference()
        assert not found.error, found.message
        some, pairs, none, kept = found.rows.values()
        assert list(some) == list(dict.fromkeys(pairs)), seed
        assert list(none) == [tuple(row) for *row, other in kept if other is None], seed
        met += bool(some) + bool(none)
    assert met > 10, "hardly a row comes"


def rows(rng: random.Random) -> list[tuple[int | None, ...]]:
    """Out of order by more than the delay now and then, with ties and NULL keys."""
    out: list[tuple[int | None, ...]] = []
    at = 0
    for n in range(rng.choice([0, 10, 25, 25])):
        at += rng.choice([0, 0, 500_000, 1_000_000, 3_000_000])
        key = rng.choice([None, 1, 2, 2, 3])
        out.append((n, key, rng.randrange(5), max(0, at - rng.choice([0, 0, 0, 1_000_000, 4_000_000]))))
    return out
