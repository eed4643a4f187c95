"""Relations that must hold between the results of related runs, whatever a query means: no other engine is needed.

A condition splits the rows of a view into those where it is TRUE, FALSE and NULL, and counts the first of them; a
prefix of the input gives a prefix of the output; and rows reordered within the delay give the same results in operators
that use time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from cases import Outcome, Prepared, Row, Way
from random_functions import prepared
from random_queries import Generator
from random_rows import random_inputs
from random_statements import Query

from cq.errors import CompileError
from cq.reference.engine import run as reference_run

TRIES = 6
DELAY_S = 6
STREAMS = "".join(
    f"CREATE STREAM {name} (k BIGINT, {value} BIGINT, ts TIMESTAMP, "
    f"WATERMARK FOR ts AS ts - INTERVAL '{DELAY_S}' SECOND) WITH (connector = 'memory');\n"
    for name, value in (("a", "v"), ("b", "w"))
)
CALLS = "COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, MIN(v) AS least, MAX(v) AS most"
KEPT = f"{CALLS}, COUNT(DISTINCT v) AS d, MEDIAN(v) AS m"
BY_TIME = (
    f"SELECT window_end, k, {KEPT} FROM TUMBLE(a, ts, INTERVAL '7' SECOND) GROUP BY window_end, k",
    f"SELECT window_end, {CALLS} FROM HOP(a, ts, INTERVAL '3' SECOND, INTERVAL '8' SECOND) GROUP BY window_end",
    f"SELECT window_start, window_end, k, {CALLS} FROM CUMULATE(a, ts, INTERVAL '2' SECOND, INTERVAL '6' SECOND) "
    "GROUP BY window_start, window_end, k",
    f"SELECT window_start, window_end, k, {CALLS} FROM SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), "
    "INTERVAL '3' SECOND) GROUP BY window_start, window_end, k",
    "SELECT window_end, v, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY ts DESC) AS r "
    "FROM TUMBLE(a, ts, INTERVAL '9' SECOND)",
    "SELECT ts, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS a, LEAD(v, 2) OVER (ORDER BY ts) AS b FROM a",
    "SELECT ts, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS 3 PRECEDING) AS s, MAX(v) OVER (ORDER BY ts RANGE "
    "INTERVAL '5' SECOND PRECEDING) AS m FROM a",
    "SELECT ts, COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '4' SECOND PRECEDING AND "
    "INTERVAL '4' SECOND FOLLOWING) AS n, FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY ts) AS f FROM a",
    "SELECT a.ts, b.ts AS at, v, w FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '4' SECOND",
    "SELECT a.ts, b.ts AS at FROM a FULL JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '3' SECOND AND a.ts",
    "SELECT a.ts, b.ts AS at, w FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts",
    "SELECT a.ts, b.ts AS at, w FROM a ASOF JOIN b ON a.k = b.k AND a.ts < b.ts",
    "SELECT x.ts, y.window_end, y.n FROM a AS x LEFT JOIN (SELECT window_end, k, COUNT(*) AS n FROM "
    "TUMBLE(b, ts, INTERVAL '5' SECOND) GROUP BY window_end, k) AS y ON x.k = y.k AND x.ts = y.window_end",
    f"SELECT k, {KEPT} FROM a GROUP BY k",
    "SELECT v, ts FROM a ORDER BY ts DESC LIMIT 5",
    "SELECT ts FROM a WHERE k IN (SELECT k FROM b WHERE w > 0)",
)


def parted(seed: int) -> str:
    """How the parts made by a random condition on a random view differ from the view; empty if they do not."""
    rng = random.Random(f"parts {seed}")
    made = _view_and_condition(rng)
    if made is None:
        return ""
    query, text, bound = made
    bound.give(random_inputs(query, seed, wild=False))
    for outcome in (bound.reference(), bound.native(Way(0, 3, interpreted=True))):
        if said := _parts(outcome):
            return f"seed {seed}: {said}\n{text}"
    return ""


def _view_and_condition(rng: random.Random) -> tuple[Query, str, Prepared] | None:
    """A random view; queries for its parts, for all of it, and for how many rows pass."""
    generator = Generator(rng)
    query = generator.draw()
    (view, _), *_ = query.outputs
    (relation,) = (r for r in generator.relations if r.name == view)
    for _ in range(TRIES):
        p = generator.expressions(("", relation.fields)).condition()
        selects = [f"SELECT * FROM {view} WHERE {part};\n" for part in (p, f"NOT {p}", f"({p}) IS NULL")]
        selects += [f"SELECT * FROM {view};\n", f"SELECT COUNT(*) FILTER (WHERE {p}) AS n FROM {view};\n"]
        text = query.head() + "".join(selects)
        try:
            return query, text, prepared(text)
        except CompileError:
            continue
    return None


def _parts(outcome: Outcome) -> str:
    if outcome.error:
        return ""
    true, false, unknown, whole, counted = outcome.rows.values()
    if Counter(map(repr, (*true, *false, *unknown))) != Counter(map(repr, whole)):
        return f"{len(true)} + {len(false)} + {len(unknown)} rows are not the {len(whole)}"
    return "" if counted == ((len(true),),) else f"{len(true)} rows pass, {counted} are counted"


def prefixed(seed: int) -> str | None:
    """How the output for the first rows of a stream is not a prefix of the output for all; None for a query of several
    streams."""
    rng = random.Random(f"prefix {seed}")
    query = Generator(rng).draw()
    made = prepared(query.text())
    (stream, *others) = made.compiled.sources
    if others or stream.event_time is None:
        return None
    ((name, rows),) = random_inputs(query, seed, wild=False).items()
    rows = [row for row in rows if row[-1] is not None]
    if not rows:
        return None
    count = rng.randrange(len(rows))
    whole, first = (reference_run(made.compiled.plan, {name: r}) for r in (rows, rows[:count]))
    if whole.error or first.error:
        return None
    for output in whole.outputs:
        now, later = ([d for d in r.outputs[output] if d.position.serial < count] for r in (first, whole))
        if repr(now) != repr(later):
            return f"seed {seed}, {output}, the first {count} of {len(rows)} rows:\n{now}\n{later}\n{query.text()}"
    return ""


def reordered(seed: int) -> Iterator[str]:
    """The output of time-based operators for rows in another order than that of their times."""
    rng = random.Random(f"order {seed}")
    given = {name: _rows(rng, n) for n, name in enumerate("ab")}
    for query in BY_TIME:
        made = Prepared(f"{STREAMS}{query};")
        results = []
        for rows in (given, {name: _moved(rng, rows) for name, rows in given.items()}):
            made.give(rows)
            outcome = made.reference()
            assert not outcome.error and not outcome.late, outcome
            results.append(Counter(map(repr, outcome.rows["result"])))
        if results[0] != results[1]:
            yield f"seed {seed}: {results[0] - results[1]} is not {results[1] - results[0]}\n{query}\n{given}"


def _rows(rng: random.Random, n: int) -> list[Row]:
    """Rows in order of time, with no time twice, in either stream."""
    times = rng.sample(range(-20, 40), rng.choice([0, 1, 5, 25]))
    return [
        (rng.choice([None, 1, 1, 2, 3]), rng.choice([None, -1, 0, 1, 2, 9]), t * 1_000_000 + n) for t in sorted(times)
    ]


def _moved(rng: random.Random, rows: Sequence[Row]) -> list[Row]:
    """The rows in another order, none of them late."""
    return sorted(rows, key=lambda row: row[-1] + rng.randrange(DELAY_S * 1_000_000))
