"""What was planned once is not planned again while the process lasts, and is never taken for another plan."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest

import cq
from cq import api
from cq.compiler import passes
from cq.compiler.kept_plans import MOST_KEPT, KeptPlans
from cq.records import replace

TEXT = "SELECT x + 1 AS y FROM t"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the passes that ran, in a process that has compiled nothing before."""
    names: list[str] = []
    monkeypatch.setattr(passes, "PASSES", tuple(_recorded(step, names) for step in passes.PASSES))
    monkeypatch.setattr(api, "OF_PROCESS", KeptPlans())
    return names


def _recorded(step: passes.Pass, names: list[str]) -> passes.Pass:
    def run(request: passes.Request, before: object) -> object:
        names.append(step.name)
        return step.run(request, before)

    return replace(step, run=run)


def result_of(query: cq.Query, threads: int = 0, **inputs: object) -> list[dict[str, object]]:
    return query.run(inputs, threads=threads).to_pylist()


def integers(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


@pytest.mark.parametrize("made_anew", [False, True])
def test_text_that_runs_again_is_not_planned_again(made_anew: bool, ran: list[str]) -> None:
    query = cq.sql(TEXT)
    for given in (integers(1, 2), integers(5)):
        query = cq.sql(TEXT) if made_anew else query
        assert result_of(query, t=given) == [{"y": x + 1} for x in given["x"].to_pylist()]
    assert {name: ran.count(name) for name in ran} == {"parse": 2, "bind": 2, "rewrite": 1, "place": 1, "emit": 1}


def test_text_over_columns_of_other_types_is_planned_anew(ran: list[str]) -> None:
    assert result_of(cq.sql(TEXT), t=integers(1)) == [{"y": 2}]
    assert result_of(cq.sql(TEXT), t=pa.table({"x": [0.5]})) == [{"y": 1.5}]
    assert result_of(cq.sql(TEXT), t=pa.table({"w": [0], "x": [7]})) == [{"y": 8}]
    assert ran.count("emit") == 3


def test_text_with_other_parameters_is_planned_anew(ran: list[str]) -> None:
    query = cq.sql("SELECT x * :y AS y FROM t", t=pa.table({"x": [1.0]}))
    found = [query.with_variables(y=zero).run(threads=0).to_pylist()[0]["y"] for zero in (0.0, -0.0)]
    assert [math.copysign(1, y) for y in found] == [1, -1] and ran.count("emit") == 2
    rows = cq.sql("SELECT * FROM (VALUES (:a)) AS v (x)")  # its rows are no part of the plan
    assert [rows.with_variables(a=a).run(threads=0).to_pylist() for a in (1, 2)] == [[{"x": 1}], [{"x": 2}]]


def test_plan_is_placed_for_every_number_of_workers(ran: list[str]) -> None:
    text = "SELECT x, COUNT(*) AS n FROM t GROUP BY x"
    for _ in range(2):
        for threads in (0, 1, 2):
            assert result_of(cq.sql(text), threads, t=integers(3, 3, 4)) == [{"x": 3, "n": 2}, {"x": 4, "n": 1}]
    assert ran.count("rewrite") == 1 and ran.count("place") == ran.count("emit") == 3


def test_query_with_functions_of_the_user_is_planned_once_by_itself(ran: list[str]) -> None:
    @cq.udf
    def twice(x: int) -> int:
        return 2 * x

    first, other = (cq.sql("SELECT twice(x) AS y FROM t", functions=[twice]) for _ in range(2))
    for query in (first, first, other):
        assert result_of(query, t=integers(4)) == [{"y": 8}]
    assert ran.count("emit") == 2  # a plan that is kept would keep what the functions hold


FREED = [
    "SELECT x, y FROM t WHERE x > 1",
    "SELECT x, COUNT(*) AS n FROM t GROUP BY x HAVING COUNT(*) > 0 ORDER BY n DESC LIMIT 3",
    "SELECT x FROM t WHERE x IN (SELECT y FROM u) AND y > (SELECT MIN(y) FROM u)",
    "CREATE VIEW v AS SELECT x, ROW_NUMBER() OVER (PARTITION BY y ORDER BY x) AS r FROM t; SELECT * FROM v WHERE r < 9",
    "SELECT t.x, u.y FROM t JOIN u ON t.x = u.x",
    "CREATE STREAM t (x BIGINT, y BIGINT, ts TIMESTAMP, WATERMARK FOR ts); SELECT window_start, COUNT(*) AS n "
    "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end",
    "SELECT twice(x) AS y FROM t",
]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("text", FREED)
def test_rows_are_gone_with_their_last_name(text: str, engine: str, no_collector: None) -> None:
    # a result of 100 MB that waits for Python's collector is there ten times before it comes
    @cq.udf
    def twice(x: int) -> int:
        return 2 * x

    times = pa.array([0, 1, 2], pa.timestamp("us"))
    names = ["t", "u"] if " u" in text else ["t"]
    given = {name: pa.table({"x": [1, 2, 3], "y": [3, 2, 1], "ts": times}) for name in names}
    watched = [weakref.ref(table) for table in given.values()]
    result = cq.sql(text, functions=[twice]).run(given, engine=engine, threads=0)
    assert len(result.to_arrow()) > 0 and len(result.stats.hashes) == 1
    watched.append(weakref.ref(result.to_arrow()))
    del result, given
    assert not any(ref() is not None for ref in watched)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only what nobody refers to is freed."""
    gc.disable()
    yield
    gc.enable()


def plan_of(text: str) -> passes.Compiled:
    return passes.compile(text)


def test_the_last_plans_are_kept() -> None:
    kept = KeptPlans()
    plans = [plan_of(f"SELECT {n} AS x").plan for n in range(MOST_KEPT + 1)]
    for n, plan in enumerate(plans):
        kept.of(n, plan)["emit"] = n
        kept.of(1, plans[1])  # asked for all the time
    assert [kept.of(n, plans[n]).get("emit") for n in (1, 3, MOST_KEPT, 0)] == [1, 3, MOST_KEPT, None]


def test_plans_with_shared_views_are_compared_node_by_node() -> None:
    # v1 reads v0 twice, v2 reads v1 twice …: 30 views, and 2^30 ways from the last one to the first
    views = [f"CREATE VIEW v{n + 1} AS SELECT x FROM v{n} INTERSECT SELECT x FROM v{n};" for n in range(30)]
    text = "CREATE VIEW v0 AS SELECT * FROM (VALUES (1)) AS v (x);" + "".join(views) + "SELECT x{} FROM v30 LIMIT 1"
    plans = [plan_of(text.format(tail)).plan for tail in ("", "", " + 1 AS x")]
    assert plans[0].equals(plans[1]) and not plans[0].equals(plans[2])


@pytest.mark.parametrize(
    "other",
    [
        "SELECT 1 AS y",
        "SELECT 2 AS x",
        "SELECT 1 AS x LIMIT 1",
        "SELECT 1 AS x; SELECT 1 AS x",
        "CREATE SINK s WITH (path = 'a.csv'); INSERT INTO s SELECT 1 AS x",
    ],
)
def test_plans_that_differ_are_not_equal(other: str) -> None:
    plan = plan_of("SELECT 1 AS x").plan
    assert plan.equals(plan_of("SELECT  1 AS x").plan)
    assert not plan.equals(plan_of(other).plan) and not plan_of(other).plan.equals(plan)
