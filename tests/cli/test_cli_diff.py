"""`cq diff`: two engines over the same input."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import cq


def test_tolerance_of_a_difference_is_a_number(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = cq(capfd, "diff", "q.cq", "--float", "nan")
    assert code == 2 and "the tolerance must be a number of at least 0, not nan" in err


def test_diff_of_two_engines_is_equal(capfd: pytest.CaptureFixture[str]) -> None:
    assert cq(capfd, "diff", "q.cq") == (0, "result: equal, 2 rows\n", "")


def test_diff_compares_a_beginning_of_the_input(capfd: pytest.CaptureFixture[str]) -> None:
    assert cq(capfd, "diff", "q.cq", "--rows", "2")[1] == (
        "result: equal, 1 row\ncompared the first 2 rows of each input\n"
    )
    endless = "CREATE STREAM b WITH (connector = 'generator', workload = 'bids'); SELECT auction FROM b"
    code, _, err = cq(capfd, "diff", endless)
    assert code == 2 and "has no end" in err and "--rows N" in err
    assert cq(capfd, "diff", endless, "--rows", "70000", "--against", "native")[:2] == (
        0,
        "result: equal, 70,000 rows\ncompared the first 70,000 rows of each input\n",
    )


def test_diff_that_cannot_run_leaves_with_2(capfd: pytest.CaptureFixture[str]) -> None:
    assert cq(capfd, "diff", "missing.cq")[0] == 2
    code, _, err = cq(capfd, "diff", "q.cq", "--against", "duckdb")
    assert code == 2 and "engines: native" in err


def test_results_without_locks_are_not_compared(capfd: pytest.CaptureFixture[str]) -> None:
    Path("ledger.cq").write_text(
        "CREATE STREAM s (a BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'file', path = 's.csv');\n"
        "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT);\n"
        "CREATE TRIGGER g AFTER INSERT ON s UPDATE t SET n = n + 1 WHERE k = new.a;\nSELECT * FROM g;\n"
    )
    Path("s.csv").write_text("a,ts\n1,2024-01-01 00:00:00\n")
    code, _, err = cq(capfd, "diff", "ledger.cq", "-s", "transactions=nolock")
    assert code == 2 and "error[CQ0904]" in err and "-s transactions=lock" in err
    assert cq(capfd, "diff", "ledger.cq", "-s", "transactions=lock")[0] == 0
