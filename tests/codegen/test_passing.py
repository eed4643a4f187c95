"""What follows a join at the end of all inputs is written once, so code does not grow with the square of the joins."""

from __future__ import annotations

import re

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
    """The lines of each function of the generated code."""
    (pipeline,) = compile(text).for_workers(workers).after("emit")
    parts = re.split(r"^def (\w+)", "\n".join(s.module for s in pipeline.stages), flags=re.MULTILINE)
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


def test_code_of_rows_grows_with_the_number_of_sources_and_not_with_its_square() -> None:
    lines = {n: sum(sizes_of(chain_of(n)).values()) for n in (2, 4, 8)}
    assert lines[4] < 2.5 * lines[2]
    assert lines[8] < 2.5 * lines[4]


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
