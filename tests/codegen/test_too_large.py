"""A stage whose code is too large to be compiled is refused at the operator that has most of it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import Prepared, Way
from forgetful import Forgetful

import cq
from cq.codegen import printing
from cq.codegen.printing import MOST_NODES
from cq.compiler.passes import compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.runtime.base import kernel, link
from cq.runtime.base.effort import Effort
from cq.runtime.layout.pipeline import Pipeline

pytestmark = pytest.mark.optimised

ROWS = {"k": [1, 1, 2]}


def test_code_beyond_the_limit_is_refused_with_its_place_and_runs_on_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = " + ".join(f"k * {n}" for n in range(60))
    query = cq.sql(f"SELECT k, n * 2 AS n\nFROM (SELECT k, {many} AS n FROM t WHERE k > 0)", t=ROWS)
    monkeypatch.setattr(printing, "MOST_NODES", 1_000)
    with pytest.raises(cq.CompileError) as caught:
        query.run(threads=0)
    assert caught.value.code == "CQ0802" and "--> <python>:2:" in str(caught.value)
    assert 'engine="reference"' in str(caught.value)
    assert len(query.run(engine="reference")["result"]) == 3


STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');\n"


def pipelines(text: str) -> list[Pipeline]:
    return list(compile(STREAM + text, inputs=Inputs(FileAccess(Path.cwd()), {})).after("emit"))


def written(text: str) -> int:
    """How many statements and expressions the generated code of a query has."""
    return sum(size(stage.module) for pipeline in pipelines(text) for stage in pipeline.stages)


def size(module: str) -> int:
    nodes = list(ast.walk(ast.parse(module)))
    called = sum(isinstance(node, ast.Call) for node in nodes)  # their names are no expressions
    return sum(isinstance(node, ast.stmt | ast.expr) for node in nodes) - called


@pytest.mark.parametrize(
    "piece",
    [
        lambda n: "SELECT CASE " + " ".join(f"WHEN k = {i} THEN v + {i}" for i in range(n)) + " END AS c FROM s;",
        lambda n: (
            "".join(f"CREATE VIEW a{i} AS SELECT v, COUNT(*) AS n FROM s WHERE k <> {i} GROUP BY v;" for i in range(n))
            + "".join(f"SELECT * FROM a{i};" for i in range(n))
        ),
        lambda n: "SELECT k FROM s WHERE k IN (" + ", ".join(map(str, range(n))) + ");",
    ],
    ids=["branches", "views", "values"],
)
def test_code_grows_as_the_query_does(piece: Callable[[int], str]) -> None:
    assert written(piece(200)) < 5 * written(piece(50)) < MOST_NODES


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT " + ", ".join(f"v + {i} AS c{i}" for i in range(1000)) + " FROM s;", "CQ0802"),
        ("CREATE VIEW a0 AS SELECT k, v FROM s;"
         + "".join(f"CREATE VIEW a{i} AS SELECT k, v FROM a{i - 1} WHERE v <> {i};" for i in range(1, 250))
         + "SELECT * FROM a249;", "CQ0103"),
    ],
    ids=["columns", "views"],
)  # fmt: skip
def test_more_than_there_is_time_for_is_refused(text: str, code: str) -> None:
    with pytest.raises(cq.CompileError) as refused:
        pipelines(text)
    assert refused.value.code == code


@pytest.mark.parametrize("why", ["large", "little", "some"])
def test_code_that_is_optimised_less_gives_the_same(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Prepared(STREAM + "SELECT v, COUNT(*) AS n, SUM(k * 7919) AS k, MEDIAN(k) AS m FROM s GROUP BY v;")
    made.give({"s": [(n, n % 3, n) for n in range(50)]})
    efforts = noted_efforts(monkeypatch)
    if why == "large":
        monkeypatch.setattr(link, "LARGE_LINES", 10)
    else:
        monkeypatch.setenv("CQ_OPTIMISE", why)
    assert made.native(Way(0, 7)) == made.reference()
    assert efforts == [Effort.SOME if why == "some" else Effort.LITTLE]


def test_code_optimised_little_is_not_that_of_a_usual_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Prepared(STREAM + "SELECT v, COUNT(*) AS n, SUM(k * 7907) AS k FROM s GROUP BY v;")
    made.give({"s": [(1, 2, 3)]})
    efforts = noted_efforts(monkeypatch)
    for wish in 2 * ("little", "some", "full"):
        monkeypatch.setenv("CQ_OPTIMISE", wish)
        made.native(Way(0, 7))
    assert efforts == list(Effort)


def noted_efforts(monkeypatch: pytest.MonkeyPatch) -> list[Effort]:
    """The effort spent on each module that is compiled from now on; nothing is found in the object cache."""
    kernel.library()  # compiled before, if it is at all
    efforts = []
    optimised = link.optimised

    def noted(texts: list[str], exports: frozenset[str], target: link.Processor | None, effort: Effort) -> object:
        efforts.append(effort)
        return optimised(texts, exports, target, effort)

    monkeypatch.setattr(link, "optimised", noted)
    monkeypatch.setattr(kernel, "object_cache", Forgetful)
    return efforts
