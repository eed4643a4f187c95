"""Both engines say the same way out of a value that a function cannot take, and it gives NULL for that row alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import cq

ROWS = "day,y,m,n\n2024-02-29,2024,2,2\nsoon,2023,13,2000000\n"

# what the query writes -> what takes its place, as the hint says it, and the first row's value
CASES = {
    "TO_TIMESTAMP(day, 'yyyy-MM-dd')": ("TRY_TO_TIMESTAMP(…)", "(day, 'yyyy-MM-dd')", "2024-02-29 00:00:00"),
    "STRPTIME(day, '%Y-%m-%d')": ("TRY_STRPTIME(…)", "(day, '%Y-%m-%d')", "2024-02-29 00:00:00"),
    "TO_DATE(day, 'yyyy-MM-dd')": ("TRY_TO_DATE(…)", "(day, 'yyyy-MM-dd')", "2024-02-29"),
    "TO_DATE(day)": ("TRY_TO_DATE(…)", "(day)", "2024-02-29"),
    "UNIX_TIMESTAMP(day, 'yyyy-MM-dd')": ("UNIX_SECONDS(TRY_TO_TIMESTAMP(…))", "(day, 'yyyy-MM-dd')", "1709164800"),
    "CAST(day AS DATE)": ("TRY_CAST", "TRY_CAST(day AS DATE)", "2024-02-29"),
    "MAKE_DATE(y, m, 29)": (
        "TRY_TO_DATE(CONCAT(year, '-', month, '-', day), 'yyyy-M-d')",
        "TRY_TO_DATE(CONCAT(y, '-', m, '-', 29), 'yyyy-M-d')",
        "2024-02-29",
    ),
    "MAKE_TIMESTAMP(y, m, 29, 0, 0, 0)": (
        "TRY_TO_TIMESTAMP(CONCAT(year, '-', month, '-', day, ' ', hour, ':', minute), 'yyyy-M-d H:m')",
        "TRY_TO_TIMESTAMP(CONCAT(y, '-', m, '-', 29, ' ', 0, ':', 0), 'yyyy-M-d H:m')",
        "2024-02-29 00:00:00",
    ),
}
STREAM = "CREATE STREAM x (day VARCHAR, y INTEGER, m INTEGER, n BIGINT) WITH (path = 'x.csv');"


@pytest.mark.parametrize("written", CASES)
def test_way_out_of_a_value_is_that_of_both_engines_and_gives_null(
    capfd: pytest.CaptureFixture[str], written: str
) -> None:
    Path("x.csv").write_text(ROWS)
    hint, taken, value = CASES[written]
    for engine in ("reference", "native"):
        code, _, err = cq(capfd, "run", "-q", "--engine", engine, f"{STREAM} SELECT {written} AS it FROM x")
        assert code == 1 and err.endswith(f"= help: to get NULL instead, write {hint}\n"), err
        assert "x.csv:3: " in err and "x.csv:3: to_timestamp" not in err and "x.csv:3: make_" not in err
    query = hint.replace("(…)", taken) if "(…)" in hint else taken
    done = cq(capfd, "run", "-q", "--engine", "reference", f"{STREAM} SELECT {query} AS it FROM x")
    assert done == (0, f"it\n{value}\n\n", "")


def test_text_that_is_too_long_is_made_of_fewer_letters(capfd: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text(ROWS)
    query = STREAM + " SELECT LENGTH(REPEAT('a', {})) AS it FROM x"
    for engine in ("reference", "native"):
        code, _, err = cq(capfd, "run", "-q", "--engine", engine, query.format("n"))
        assert code == 1 and "= help: limit the number, as in LEAST(n, 1000000)" in err
    done = cq(capfd, "run", "-q", "--engine", "reference", query.format("LEAST(n, 1000000)"))
    assert done == (0, "it\n2\n1000000\n", "")
