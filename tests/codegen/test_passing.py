"""What follows a join at the end of all inputs is written once, so code does not grow with the square of the joins."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

import pytest

import cq
from cq.compiler.passes import compile

STREAMS = "".join(
    f"CREATE STREAM {name} (k BIGINT, v BIGINT) WITH (connector = 'memory');" for name in ("o", "p", "q", "s")
)


def text_of(members: int) -> str:
    """A query with this many conditions that need the last row of a sub-query."""
    values = ", ".join(f"(k IN (SELECT k FROM p WHERE v = {n})) AS c{n}" for n in range(members))
    return f"{STREAMS} SELECT k, {values} FROM o"


def sizes_of(text: str, workers: int = 1) -> dict[str, int]:
    """The lines of each function of the first stage."""
    (pipeline,) = compile(text).for_workers(workers).after("emit")
    parts = re.split(r"^def (\w+)", pipeline.stages[0].module, flags=re.MULTILINE)
    return {name: body.count("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def test_code_of_the_end_grows_with_the_number_of_joins_and_not_with_its_square() -> None:
    lines = {n: sum(v for k, v in sizes_of(text_of(n)).items() if k.startswith(("finish", "pass"))) for n in (2, 4, 8)}
    assert lines[4] < 2.5 * lines[2]
    assert lines[8] < 2.5 * lines[4]


def test_rows_that_one_function_alone_emits_are_not_passed_on() -> None:
    sizes = sizes_of(
        f"{STREAMS} SELECT o.k, n FROM o JOIN (SELECT k, COUNT(*) AS n FROM p GROUP BY k) AS c ON o.k = c.k"
    )
    assert not any(name.startswith("pass") for name in sizes)


@pytest.mark.parametrize("batch_rows", [1, 3, 4096])
@pytest.mark.parametrize("threads", [0, 1, 2, 4])
def test_an_error_in_a_row_that_is_passed_on_is_the_same(threads: int, batch_rows: int) -> None:
    """It stops the run with the place of the expression, after the same rows."""
    text = f"""{STREAMS} SELECT o.k, 10 / (o.v - (SELECT MAX(v) FROM p)) AS x,
        (SELECT COUNT(*) FROM q) AS n, (SELECT SUM(v) FROM s) AS t FROM o LEFT JOIN p ON p.k = o.k"""
    rows = {"o": [{"k": k, "v": v} for k, v in ((1, 5), (2, 9), (3, 7), (4, 5))], "p": [{"k": 2, "v": 7}],
            "q": [{"k": 1, "v": 1}], "s": [{"k": 1, "v": 1}]}  # fmt: skip
    found = []
    for options in ({"engine": "reference"}, {"threads": threads, "batch_rows": batch_rows}):
        with pytest.raises(cq.DataError) as raised:
            cq.sql(text, **rows).run(**options)
        found.append(str(raised.value))
    assert found[0] == found[1]
    assert "CQ0706" in found[0]


def chain_of(sources: int, last: str = "") -> str:
    """A join of so many sources, with a value that fails where `v` of the first one is 0."""
    joins = "".join(f" JOIN s{n} ON s{n}.k = s0.k" for n in range(1, sources))
    declared = "".join(
        f"CREATE STREAM s{n} (k BIGINT, v BIGINT) WITH (connector = 'memory');" for n in range(sources + 1)
    )
    inner = f"SELECT s0.k, 10 / s0.v AS q FROM s0{joins}"
    return f"{declared} SELECT j.k, q, s{sources}.v FROM ({inner}) AS j JOIN s{sources} ON j.k = s{sources}.k{last}"


WHOLE_PARTITION = "SUM(last_v) OVER (PARTITION BY k)"  # by lanes of a second stage, if there are workers for them
IN_REACH = "SUM(last_v) OVER (PARTITION BY v1 ORDER BY ts RANGE INTERVAL '3' SECOND PRECEDING)"


def cut_chain(sources: int, value: str, within: str = "") -> str:
    """A join of so many sources, with a value over its rows that another stage computes at two workers."""
    joins = "".join(f" JOIN s{n} ON s{n}.k = s0.k{within.format(n=n)}" for n in range(1, sources))
    declared = "".join(
        f"CREATE STREAM s{n} (k BIGINT, v BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
        " WITH (connector = 'memory');"
        for n in range(sources)
    )
    inner = f"SELECT s0.k, s0.ts, s1.v AS v1, s{sources - 1}.v AS last_v FROM s0{joins}"
    return f"{declared} SELECT k, v1, {value} AS t FROM ({inner}) AS j"


WITHIN = " AND s{n}.ts BETWEEN s0.ts - INTERVAL '5' SECOND AND s0.ts + INTERVAL '5' SECOND"
CUT_CHAINS = {"at the end": (WHOLE_PARTITION, ""), "with watermarks": (IN_REACH, WITHIN)}


@pytest.mark.parametrize("batch_rows", [1, 3, 4096])
@pytest.mark.parametrize("threads", [0, 1, 2, 4])
@pytest.mark.parametrize("chain", CUT_CHAINS)
def test_rows_passed_on_to_another_stage_are_the_same(chain: str, threads: int, batch_rows: int) -> None:
    text = cut_chain(4, *CUT_CHAINS[chain])
    if threads > 1:
        (pipeline,) = compile(text).for_workers(threads).after("emit")
        assert len(pipeline.stages) > 1
        assert pipeline.stages[0].passes_watermarks == (chain == "with watermarks")
        assert any(name.startswith("pass_row") for name in sizes_of(text, threads))
    start = datetime.datetime(2024, 5, 1)
    rows = {
        f"s{n}": [
            {"k": i % 3, "v": i % 4 + n, "ts": start + datetime.timedelta(seconds=i * (n + 1) % 13 + i // 2)}
            for i in range(12)
        ]
        for n in range(4)
    }
    expected = cq.sql(text, **rows).run(engine="reference").to_pylist()
    assert len(expected) > 12
    assert cq.sql(text, **rows).run(threads=threads, batch_rows=batch_rows).to_pylist() == expected


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("text_of_chain", [chain_of, lambda n: cut_chain(n, WHOLE_PARTITION)], ids=["rows", "cut"])
def test_code_of_rows_grows_with_the_number_of_sources_and_not_with_its_square(
    text_of_chain: Callable[[int], str], workers: int
) -> None:
    lines = {n: sum(sizes_of(text_of_chain(n), workers).values()) for n in (4, 8, 12)}
    assert lines[12] - lines[8] < 1.1 * (lines[8] - lines[4])


def test_rows_of_two_sources_are_not_passed_on() -> None:
    sizes = sizes_of(f"{STREAMS} SELECT o.k, SUM(p.v) AS n FROM o JOIN p ON o.k = p.k GROUP BY o.k")
    assert not any(name.startswith("pass") for name in sizes)


@pytest.mark.parametrize("batch_rows", [1, 3, 4096])
@pytest.mark.parametrize("threads", [0, 1, 2, 4])
def test_an_error_in_a_passed_row_names_the_row_of_the_source_that_caused_it(threads: int, batch_rows: int) -> None:
    rows = {f"s{n}": [{"k": k, "v": k - 2 * (n == 0)} for k in (3, 1, 4, 2)] for n in range(5)}
    found = []
    for options in ({"engine": "reference"}, {"threads": threads, "batch_rows": batch_rows}):
        with pytest.raises(cq.DataError) as raised:
            cq.sql(chain_of(4), **rows).run(**options)
        found.append(str(raised.value))
    assert found[0] == found[1]
    assert "<s3>:4: division by zero" in found[0]
