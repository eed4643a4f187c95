"""Which heuristic the workers follow is a setting of the query; the rows do not depend on it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cq
from cq.compiler.passes import compile
from cq.engines import native
from cq.engines.protocol import RunOptions
from cq.errors import CompileError, UsageError
from cq.planner.binding.settings import BATCH_ROWS, BOUNDS, PARALLELISM, SETTING_ALIASES, Settings
from cq.records import replace
from cq.runtime.engine.engine import Engine
from cq.runtime.engine.schedule import CT, ET, LP, QST
from cq.ways import HEURISTICS

QUERY = """CREATE STREAM t (k BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts) WITH (connector = 'memory');
SELECT k, n FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY k) AS n FROM t) WHERE n = 10;"""


def test_the_names_stand_for_the_numbers_of_the_kernels() -> None:
    assert [HEURISTICS.index(name) for name in ("ct", "lp", "et", "qst")] == [CT, LP, ET, QST]


@pytest.mark.parametrize(
    ("written", "expected"), [("", "ct"), ("SET heuristic = 'qst';", "qst"), ("SET heuristic = 'LP';", "lp")]
)
def test_the_engine_is_told_the_heuristic(written: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []

    class Told(Engine):
        def __init__(self, *args: object, **options: object) -> None:
            told.append(options["heuristic"])
            super().__init__(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(native, "Engine", Told)
    keys = pa.array([i % 100 for i in range(2000)], pa.int64())
    rows = pa.table({"k": keys, "ts": pa.array(range(2000), pa.timestamp("us"))})
    result = cq.sql(written + QUERY, t=rows).run(threads=2)
    assert told == [expected]
    assert result["result"].to_arrow().column("k").to_pylist() == list(range(100))


@pytest.mark.parametrize("value", ["'fastest'", "2", "''"])
def test_another_is_refused_with_those_there_are(value: str) -> None:
    with pytest.raises(CompileError, match="heuristic takes one of 'ct', 'lp', 'et', 'qst'") as refused:
        compile(f"SET heuristic = {value};\n" + QUERY)
    assert refused.value.code == "CQ0208"


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_a_number_out_of_bounds_is_refused_where_it_is_written_and_by_that_name(name: str) -> None:
    """`cq check` took 0 rows of a batch and 5,000 workers, of which only a run said that there are none such."""
    least, most = BOUNDS[name]
    for number in (least, most):
        assert compile(f"SET {name} = {number};\n" + QUERY).bound.settings == {name: number}
    written = [name, *(alias for alias, meant in SETTING_ALIASES.items() if meant == name and "." not in alias)]
    for number in (str(most + 1), "99999999999999999999999", *(["0"] if least else [])):
        for alias in written:
            with pytest.raises(CompileError, match=f"^error.CQ0208.: {alias} takes a whole number from {least} to"):
                compile(f"SET {alias} = {number};\n" + QUERY)
    with pytest.raises(CompileError) as refused:
        compile(f"\nSET {name} = :n;\n" + QUERY, variables={"n": most + 1})
    assert refused.value.first.span.line == 2 and refused.value.first.help[0].startswith(f"{name}: ")


@pytest.mark.parametrize(("name", "setting"), [("threads", PARALLELISM), ("batch_rows", BATCH_ROWS)])
def test_python_takes_what_set_takes(name: str, setting: str) -> None:
    least, most = BOUNDS[setting]
    for number in (least, most):
        assert getattr(RunOptions(**{name: number}), name) == number
    for number in (least - 1, most + 1):
        with pytest.raises(UsageError, match=f"{name} takes a whole number from {least} to {most:,}, not {number}"):
            RunOptions(**{name: number})


def test_settings_are_the_words_that_were_written_and_what_is_asked_for_comes_before_what_the_text_says() -> None:
    """They were the places of words in tuples: another order of a tuple, and a query ran by another scheme."""
    said = "SET transactions = 'Lock-A'; SET heuristic = qst; SET punctuation_interval = AUTO; SET batch_rows = 7;\n"
    of_text = Settings(transactions="lock_a", heuristic="qst", punctuation_interval="auto", batch_rows=7)
    assert compile(QUERY).settings == Settings() and compile(said + QUERY).settings == of_text
    asked = compile(said + QUERY, settings={"transactions": "mvlk", "threads": "2"}).settings
    assert asked == replace(of_text, transactions="mvlk", parallelism=2)
    with pytest.raises(UsageError, match=r"transactions takes one of 'auto', .*, not \"3\""):
        compile(QUERY, settings={"transactions": 3})
    with pytest.raises(UsageError, match='there is no setting "transaction"'):
        compile(QUERY, settings={"transaction": "lock"})


def test_a_placement_or_an_interval_that_is_none_is_refused_and_others_are_taken_however_they_are_spelt() -> None:
    placements = "'stealing', 'shared_nothing', 'shared_everything', 'per_socket'"
    for written, told in (
        ("placement = 'numa'", f"placement takes one of {placements}"),
        ("placement = 4", f"placement takes one of {placements}"),
        ("punctuation_interval = 0", "punctuation_interval takes a whole number from 1 to 1,000,000, or 'auto'"),
        ("punctuation_interval = 'often'", "punctuation_interval takes a whole number from 1 to 1,000,000, or 'auto'"),
    ):
        with pytest.raises(CompileError, match=told):
            cq.sql(f"SET {written}; SELECT 1 AS x").check()
    for taken in ("placement = 'Shared-Nothing'", "placement = per_socket", "punctuation_interval = auto"):
        assert not cq.sql(f"SET {taken}; SELECT 1 AS x").check()
