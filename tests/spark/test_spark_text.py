"""The SQL text of plans, and admission: what needs no Java."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable

import pyarrow as pa
import pytest
from spark_agreement import plan_of

from cq.errors import CompileError
from cq.lang.types import INT64_MAX
from cq.planner.plan.registration import OPERATORS as PLAN_OPERATORS
from cq.reference.engine import run
from cq.spark.ingest import BEFORE_ALL, admit, parts
from cq.spark.lower import lower
from cq.spark.operators import OPERATORS
from cq.spark.position import LATE, ON_TIME

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, w VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH (connector = 'memory');
CREATE STREAM t (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');
"""
LOOK_UP = """
CREATE VIEW hops AS SELECT window_end, k, MAX(v) AS most
  FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '5' SECOND) GROUP BY window_start, window_end, k;
SELECT a.k, b.most FROM s AS a LEFT JOIN hops FOR SYSTEM_TIME AS OF a.ts AS b ON a.k = b.k AND b.most > a.v;
"""
# name -> the query, and the operator whose text is shown with all that follows it
GOLDENS = {
    "tumbling": (
        """
        SELECT window_start, k, SUM(v) AS total, COUNT(*) FILTER (WHERE w LIKE 'a%') AS n
        FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) WHERE v > 3
        GROUP BY window_start, window_end, k HAVING COUNT(*) > 1;
        """,
        "filter",
    ),
    "look_up": (LOOK_UP, "temporal_join"),
    "words": (
        """
        SELECT word, COUNT(*) OVER (PARTITION BY word ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n, LAG(v, 2, 0) OVER (
          PARTITION BY word ORDER BY ts) AS before
        FROM s, UNNEST(SPLIT(w, ' ')) AS words(word) LIMIT 3;
        """,
        "unnest",
    ),
    "union": (
        "SELECT k, MIN(v) AS least FROM (SELECT k, v FROM s UNION ALL SELECT k, v FROM t) AS u GROUP BY k;",
        "scan",
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_the_text_is_as_shown(name: str, golden: Callable[[str, str], None]) -> None:
    text, first = GOLDENS[name]
    (query,) = lower(plan_of(STREAMS + text))
    shown = str(query)
    golden(f"spark/{name}.sql", shown[shown.index(f"-- {first}") :] + "\n")


CANARY = "x'); DROP TABLE t; -- \\' :k0 */ \n"


def test_nothing_of_the_query_becomes_text() -> None:
    quoted = CANARY.replace("'", "''")
    text = f"""
        SELECT v AS "canary_name", w || '{quoted}' AS x, SPLIT(w, '{quoted}') AS y, 1.25 AS z
        FROM s WHERE w LIKE '{quoted}' ESCAPE '!';
        """
    (query,) = lower(plan_of(STREAMS + text))
    assert "canary" not in query.text and "DROP" not in query.text and "1.25" not in query.text
    assert list(query.constants.values()).count(CANARY) == 1


def test_a_view_read_many_times_over_is_refused_with_its_place() -> None:
    views = "".join(
        f"CREATE VIEW v{i} AS SELECT k FROM {f'v{i - 1}' if i else 's'} UNION ALL SELECT k FROM "
        f"{f'v{i - 1}' if i else 's'};\n"
        for i in range(8)
    )
    with pytest.raises(CompileError) as caught:
        lower(plan_of(STREAMS + views + "SELECT k FROM v7;"))
    assert caught.value.code == "CQ0901" and caught.value.line == 13


def test_the_text_of_nested_calls_grows_with_their_depth_only() -> None:
    sizes = []
    for depth in (10, 20):
        nested = "TRY_DIVIDE(" * depth + "v" + ", v)" * depth
        (query,) = lower(plan_of(STREAMS + f"SELECT {nested} AS x FROM s;"))
        sizes.append(len(query.text))
    assert sizes[1] < 2.5 * sizes[0]


BOTH = "SELECT k, ts FROM s UNION ALL SELECT k, ts FROM t;"
S = 1_000_000


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_numbered_and_judged_as_the_reference_does(seed: int) -> None:
    r = random.Random(seed)
    (part,) = parts(plan := plan_of(STREAMS + BOTH))
    times = {}
    for name in ("s", "t"):
        count = r.choice([0, 1, 30])
        times[name] = [None if r.random() < 0.1 else (i // 2 + r.randrange(-8, 3)) * S for i in range(count)]
    got = admit(part.sources, {n: pa.array(v, pa.int64()) for n, v in times.items()})

    keys = {"s": [f"s{i}" for i in range(30)], "t": [f"t{i}" for i in range(30)]}
    numbers = {name: i for i, name in enumerate(keys["s"] + keys["t"])}
    rows = {
        "s": [(numbers[k], 0, "", t) for k, t in zip(keys["s"], times["s"], strict=False)],
        "t": [(numbers[k], 0, t) for k, t in zip(keys["t"], times["t"], strict=False)],
    }
    expected = run(plan, rows)
    serials = {d.row[0]: d.position.serial for d in expected.outputs["result"]}
    for name, found in got.items():
        assert [serials[numbers[keys[name][i]]] for i in found.rows] == found.serial.tolist()
        assert (found.late == LATE).sum() == expected.sources[name].late
        assert set(found.late.tolist()) <= {ON_TIME, LATE}
    assert watermarks({n: [t for t in v if t is not None] for n, v in times.items()}, got) == {
        n: found.watermark.tolist() for n, found in got.items()
    }


def watermarks(times: dict, admitted: dict) -> dict[str, list[int]]:
    """The watermark after each row, from its definition: row by row over the serials."""
    delay = {"s": 5 * S, "t": 0}
    rows = sorted((int(n), name, i) for name, a in admitted.items() for i, n in enumerate(a.serial))
    own = {name: BEFORE_ALL if times[name] else INT64_MAX for name in times}
    out: dict[str, list[int]] = {name: [] for name in times}
    for _, name, i in rows:
        own[name] = max(times[name][: i + 1]) - delay[name]
        out[name].append(min(own.values()))
        if i == len(times[name]) - 1:
            own[name] = INT64_MAX
    return out


def test_every_operator_of_the_plan_has_a_text() -> None:
    of_queries = {name for name, node in PLAN_OPERATORS.items() if node.__module__.startswith("cq.planner.operators.")}
    assert set(OPERATORS) == of_queries  # the physical plan adds one more, between stages


def test_a_text_is_made_without_pyspark() -> None:
    script = "import sys; import cq.spark.lower, cq.spark.run; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
