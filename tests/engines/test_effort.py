"""The code of a query is optimised as much as its rows are worth, and fully where nobody knows how many come."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forgetful import Forgetful

import cq
from cq.compiler.passes import compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.sources import open_source
from cq.engines.effort import ROWS_A_LINE, effort_for
from cq.runtime.base import kernel
from cq.runtime.base.effort import Effort
from cq.runtime.layout.pipeline import Pipeline

TWO = "".join(f"CREATE STREAM {n} (k BIGINT, v BIGINT) WITH (connector = 'memory');" for n in "st")


def pipeline(text: str) -> Pipeline:
    (made,) = compile(TWO + text).for_workers(1).after("emit")
    return made


def lines_of(made: Pipeline) -> int:
    return sum(stage.module.count("\n") for stage in made.stages)


@pytest.mark.parametrize(("effort", "above"), [(Effort.LITTLE, Effort.SOME), (Effort.SOME, Effort.FULL)])
def test_rows_are_few_compared_with_the_code(effort: Effort, above: Effort) -> None:
    made = pipeline("SELECT s.k, t.v FROM s JOIN t ON s.k = t.k")
    few = lines_of(made) * ROWS_A_LINE[effort]
    assert effort_for(made, [few - 1, 1]) is effort
    assert effort_for(made, [few, 1]) is above
    assert effort_for(made, [1, None]) is Effort.FULL


@pytest.mark.parametrize("condition", ["s.v < t.v", "s.v = t.v + 1 OR s.k = 1"])
def test_without_an_equal_key_pairs_are_counted(condition: str) -> None:
    made = pipeline(f"SELECT s.k, t.v FROM s JOIN t ON {condition}")
    few = lines_of(made) * ROWS_A_LINE[Effort.LITTLE]
    assert effort_for(made, [few // 1000, 1000]) is Effort.LITTLE
    assert effort_for(made, [few // 1000 + 1, 1000]) is Effort.SOME


# -- how many rows there are -------------------------------------------------------------------------------------------

ROWS = [{"k": n, "v": n} for n in range(30)]
TABLE = pa.Table.from_pylist(ROWS)
KEPT: list[Any] = [
    ROWS, TABLE, TABLE.to_batches()[0], TABLE.to_batches(), TABLE.to_pydict(), TABLE.to_pandas(),
    polars.DataFrame(ROWS),
]  # fmt: skip


def about_rows(given: Any = None, **options: str) -> int | None:
    declared = ", ".join(f"{key} = '{value}'" for key, value in options.items()) or "connector = 'memory'"
    inputs = Inputs(FileAccess(Path.cwd()), {} if given is None else {"x": given})
    text = f"CREATE STREAM x (k BIGINT, v BIGINT) WITH ({declared}); SELECT k, v FROM x"
    source = open_source(compile(text, inputs=inputs).sources[0], inputs)
    try:
        return source.about_rows
    finally:
        source.close()


@pytest.mark.parametrize(
    "given", KEPT, ids=lambda given: f"{type(given).__module__.split('.')[0]} {type(given).__name__}"
)
def test_objects_in_memory_know_their_rows(given: Any) -> None:
    assert about_rows(given) == 30


def test_a_reader_does_not_know_its_rows() -> None:
    assert about_rows(TABLE.to_reader()) is None


def test_rows_of_files_are_rather_too_many(tmp_path: Path) -> None:
    text = "k,v\n" + "1234,5678\n" * 3000
    (tmp_path / "x.csv").write_text(text)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    (tmp_path / "x.jsonl").write_text('{"k": 1, "v": 2}\n' * 3000)
    pq.write_table(pa.table({"k": range(3000), "v": range(3000)}), tmp_path / "x.parquet")
    for name, most in (("x.csv", 5000), ("x.csv.gz", 100_000), ("x.jsonl", 8000), ("x.parquet", 100_000)):
        found = about_rows(path=str(tmp_path / name))
        assert found is not None and found <= most
        assert found >= 3000 or name == "x.csv.gz"  # equal lines are packed better than any others


def test_what_has_no_end_does_not_know_its_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("k,v\n1,2\n")
    os.mkfifo(tmp_path / "pipe.csv")
    holder = os.open(tmp_path / "pipe.csv", os.O_RDWR)
    try:
        assert about_rows(path=str(tmp_path / "pipe.csv")) is None
    finally:
        os.close(holder)
    assert about_rows(path=str(tmp_path / "x.csv"), follow="true") is None


def test_rows_of_a_query_and_of_a_generator_are_known() -> None:
    text = "CREATE STREAM g WITH (connector = 'generator', workload = 'nexmark_bid', rows = 70); SELECT auction FROM g"
    (of_generator,) = compile(text).sources
    (written,) = compile("SELECT * FROM (VALUES (1, 2), (3, 4)) AS v (a, b)").sources
    inputs = Inputs(FileAccess(Path.cwd()), {})
    for stream, rows in ((of_generator, 70), (written, 2)):
        source = open_source(stream, inputs)
        assert source.about_rows == rows
        source.close()


# -- what is compiled --------------------------------------------------------------------------------------------------


def test_code_that_was_optimised_more_before_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CQ_OPTIMISE")
    monkeypatch.setattr(kernel, "object_cache", Forgetful)
    stage = pipeline("SELECT k + 7127 AS k FROM s").stages[0]
    what = stage.module, dict(stage.functions), (stage.entry,)
    made = [kernel.compile_stage(*what, effort) for effort in Effort]
    assert len({m.key for m in made}) == len(Effort)
    assert all(kernel.compile_stage(*what, effort) is made[-1] for effort in Effort)


@pytest.mark.parametrize(("rows", "effort"), [(3, Effort.LITTLE), (2_000_000, Effort.SOME)])
def test_few_rows_compile_quickly(rows: int, effort: Effort, monkeypatch: pytest.MonkeyPatch) -> None:
    efforts = []
    compiled = kernel._compile_source

    def noted(source: str, signatures: Any, entries: list[str], key: str, effort: Effort) -> Any:
        efforts.append(effort)
        return compiled(source, signatures, entries, key, effort)

    monkeypatch.delenv("CQ_OPTIMISE")
    monkeypatch.setattr(kernel, "_compile_source", noted)
    monkeypatch.setattr(kernel, "object_cache", Forgetful)
    numbers = np.arange(rows)
    given = pa.table({"k": numbers % 3, "v": numbers})
    found = cq.sql(f"SELECT k, SUM(v * 7121) AS s FROM t WHERE v < {rows} GROUP BY k", t=given).run().to_pylist()
    assert [row["s"] for row in found][-1] > 0
    assert set(efforts) == {effort}
