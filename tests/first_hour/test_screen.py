"""What is printed: on a terminal, to a pipe, in Python."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from command_line import ref
from terminal import plain, typed

import cq as api
from cq.errors import CqError

WIDE = "SELECT id, ts, 'a text longer than there is room for' AS t, id * 1000000 AS n, zip, fare FROM 'trips.csv'"


def on_terminal(columns: int, *arguments: str, **environment: str) -> str:
    """What `cq run` writes on the reference, on a terminal of so many columns, colours too."""
    with typed(shlex.join(["run", "--engine", "reference", *arguments]), columns, 24, **environment) as terminal:
        terminal.end()
        return terminal.raw.replace("\r\n", "\n")


def test_table_is_as_wide_as_its_terminal_and_numbers_stay_whole() -> None:
    seen = on_terminal(50, "-q", WIDE, TERM="dumb")
    assert plain(seen) == (
        "id  ts                   t                   n\n"
        "──  ───────────────────  ────────────  ───────\n"
        " 1  2024-01-01 00:00:10  a text long…  1000000\n"
        " 2  2024-01-01 00:00:05  a text long…  2000000\n"
        " 3  2024-01-01 00:02:00  a text long…  3000000\n"
        "… 2 more columns: zip, fare; --wide shows them\n"
    )
    assert "longer than there is room for" in on_terminal(50, "-q", "--wide", WIDE, TERM="dumb")


def test_errors_have_colours_on_a_terminal_that_wants_them() -> None:
    assert "\x1b[31;1merror[CQ0201]:\x1b[0m" in on_terminal(80, "SELECT * FROM nothing", TERM="xterm")
    assert "\x1b" not in on_terminal(80, "SELECT * FROM nothing", TERM="xterm", NO_COLOR="1")


def test_summary_is_in_words_and_in_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert ref(capfd, "SELECT id FROM 'trips.csv'")[2].startswith("read 3 rows of trips · wrote 3 rows · ")
    assert " · hash " in ref(capfd, "SELECT id FROM 'trips.csv'", "--hash")[2]
    summary = json.loads(ref(capfd, "SELECT id FROM 'trips.csv'", "--summary", "json")[2])
    assert summary["rows_in"] == {"trips": 3} and summary["rows_out"] == {"result": 3}
    assert len(summary["hashes"]["result"]) == 16


def test_interval_is_a_clock_and_can_be_read_back(capfd: pytest.CaptureFixture[str]) -> None:
    ages = "SELECT ts - TIMESTAMP '2024-01-01 00:01:00' AS age FROM 'trips.csv'"
    for name in ("ages.csv", "ages.jsonl", "ages.parquet"):
        assert ref(capfd, "-q", ages, "-o", name)[0] == 0
        read = f"CREATE STREAM a (age INTERVAL) WITH (path = '{name}'); SELECT age, age * 100 AS more FROM a"
        rows = "-00:00:50,-01:23:20\n-00:00:55,-01:31:40\n00:01:00,01:40:00\n"
        assert ref(capfd, "-q", read) == (0, "age,more\n" + rows, "")
    (code, _, err) = ref(capfd, "CREATE STREAM t (zip INTERVAL) WITH (path = 'trips.csv'); SELECT zip FROM t")
    assert code == 1 and "write it as 00:02:00" in err


@pytest.mark.parametrize("file", ["o.parquet", "o.arrow"])
def test_interval_of_months_is_written_into_no_file_that_would_take_it_for_a_number(
    file: str, capfd: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT {} AS m FROM (SELECT id * INTERVAL '1' MONTH AS m FROM 'trips.csv' WHERE id = 2) AS t"
    code, _, err = ref(capfd, query.format("m"), "-o", file)
    assert code == 2 and "column m is an INTERVAL of months" in err and not Path(file).exists()
    read = f"SELECT m FROM '{file}'"
    for way, value in zip(re.findall(r"= help: .*?((?:CAST|TIMESTAMPDIFF)\(.*\))\n", err), ("2", "2"), strict=True):
        assert ref(capfd, "-q", query.format(way), "-o", file)[0] == 0
        assert value in ref(capfd, "-q", read)[1]


def test_nan_is_null_in_json_with_a_note_or_a_text_where_that_is_asked_for(
    capfd: pytest.CaptureFixture[str],
) -> None:
    query = "SELECT id, CASE WHEN id < 3 THEN CAST('NaN' AS DOUBLE) ELSE fare END AS x FROM 'trips.csv'"
    code, out, err = ref(capfd, query, "-f", "json")
    assert (code, out) == (0, '{"id": 1, "x": null}\n{"id": 2, "x": null}\n{"id": 3, "x": 0.5}\n')
    assert "note: 2 values of result are null in JSON" in err
    way = err.partition("CREATE SINK ")[2].splitlines()[0].replace("result", "o").replace("…", "o.jsonl")
    assert ref(capfd, f"CREATE SINK {way}; INSERT INTO o {query}")[0] == 0
    read = "CREATE STREAM s (id BIGINT, x DOUBLE) WITH (path = 'o.jsonl'); SELECT SUM(id) AS n FROM s WHERE isnan(x)"
    assert ref(capfd, "-q", read) == (0, "n\n3\n", "")


def test_result_in_python_shows_its_rows_and_gives_them() -> None:
    result = api.sql("SELECT id, zip FROM 'trips.csv'").run(engine="reference")
    assert str(result) == "id  zip\n──  ─────\n 1  00501\n 2  10001\n 3  NULL"
    assert [row["zip"] for row in result["result"]] == ["00501", "10001", None]
    assert result.to_pylist()[0] == {"id": 1, "zip": "00501"}
    assert result.to_arrow().num_rows == len(result.to_pandas()) == len(result.to_polars()) == 3
    both = api.sql("SELECT 1 AS a; SELECT 2 AS b").run(engine="reference")
    assert str(both) == "result\na\n─\n1\n\nresult_2\nb\n─\n2"
    with pytest.raises(CqError, match="not one output, but 2"):
        both.to_arrow()
