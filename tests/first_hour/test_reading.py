"""What a newcomer's files and parameters hold: nothing of it is lost or means something else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import cq, outside, ref


def test_standard_input_is_read_whole_although_its_columns_are_inferred() -> None:
    text = "id,v\n" + "".join(f"{n},{'x' * 1000}\n" for n in range(2000))  # more than what is looked at
    query = ("--engine", "reference", "-q", "SELECT COUNT(*) AS n, MAX(id) AS m FROM ")
    for read in (("'-'",), ("s", "s=-")):
        done = outside("run", *query[:-1], query[-1] + read[0], *read[1:], input=text.encode())
        assert (done.stdout, done.stderr) == (b"n,m\n2000,1999\n", b"")


def test_named_pipe_is_read_whole_and_only_once(capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe.csv")

    def write() -> None:
        Path("pipe.csv").write_text("id\n1\n2\n")

    for command, code in (("run", 0), ("diff", 2)):
        writer = threading.Thread(target=write)
        writer.start()
        found = cq(capfd, command, "--engine", "reference", "SELECT SUM(id) AS s FROM 'pipe.csv'")
        writer.join()
        assert found[0] == code and ("s\n3\n" in found[1] or "cannot be read twice" in found[2])


def test_json_lines_read_as_csv_say_what_they_are(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    os.rename("people.jsonl", "people.log")
    code, _, err = ref(capfd, "SELECT name FROM p", "p=people.log", "-w", "format=csv")
    assert code == 1 and "-w format=json" in err
    assert ref(capfd, "-q", "SELECT name FROM p", "p=people.log", "-w", "format=json")[1] == "name\nAnn\n\n"


def test_columns_without_a_type_block_nothing_that_does_not_use_them(capfd: pytest.CaptureFixture[str]) -> None:
    parts = pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"id": [1, 2], "s": [[{"x": 1}], None], "parts": parts}), "u.parquet")
    assert ref(capfd, "-q", "SELECT SUM(id) AS s FROM 'u.parquet'") == (0, "s\n3\n", "")
    code, out, err = ref(capfd, "-q", "SELECT * FROM 'u.parquet'")
    assert (code, out) == (0, "id\n1\n2\n") and "s list<element: struct<x: int64>>, parts map<string, int64" in err
    assert '"s" of stream "u" is list<element: struct<x: int64>>' in ref(capfd, "SELECT s FROM 'u.parquet'")[2]


@pytest.mark.parametrize(
    ("condition", "value", "rows"),
    [
        ("zip = :p", "00501", "1\n"),
        ("zip = :p", "10001", "2\n"),
        ("zip IN ('x', :p)", "10001", "2\n"),
        ("zip LIKE :p", "10001", "2\n"),
        (":p = id", "002", "2\n"),
        ("id BETWEEN :p AND 2", "2", "2\n"),
        ("CASE zip WHEN :p THEN TRUE ELSE FALSE END", "10001", "2\n"),
        ("ts < :p", "2024-01-01 00:00:07", "2\n"),
        ("fare > :p", "3", "2\n"),
        ("UNHEX('0aff') = :p AND id = 2", "0AFF", "2\n"),
    ],
)
def test_parameter_has_the_type_of_its_use(
    capfd: pytest.CaptureFixture[str], condition: str, value: str, rows: str
) -> None:
    query = f"SELECT id FROM 'trips.csv' WHERE {condition}"
    assert ref(capfd, "-q", query, "--var", f"p={value}") == (0, "id\n" + rows, "")


@pytest.mark.parametrize(("column", "type_"), [("id", "BIGINT"), ("UNHEX(zip)", "BINARY")])
def test_parameter_that_fits_no_type_is_an_error(capfd: pytest.CaptureFixture[str], column: str, type_: str) -> None:
    code, out, err = ref(capfd, f"SELECT id FROM 'trips.csv' WHERE {column} = :p", "--var", "p=abc")
    assert (code, out) == (1, "") and f"'abc', and is compared with {type_}" in err


@pytest.mark.parametrize("value", ["99999999999999999999", "1.5", "-9223372036854775809", "1e-3"])
@pytest.mark.parametrize("condition", ["id = :p", ":p = id", "id IN (1, :p)", "id + 1 IS NOT DISTINCT FROM :p"])
def test_parameter_that_no_value_equals_is_an_error(
    capfd: pytest.CaptureFixture[str], condition: str, value: str
) -> None:
    code, out, err = ref(capfd, f"SELECT id FROM 'trips.csv' WHERE {condition}", "--var", f"p={value}")
    assert (code, out) == (1, "") and f'the parameter "p" is {value}, and no BIGINT equals it' in err
    assert "help: set another value: --var p=1\n" in err


@pytest.mark.parametrize(
    ("condition", "value"), [("id = :p", "2"), ("id = :p", "2.0"), ("id < :p", "2.5"), ("fare = :p OR id = 2", "1.5")]
)
def test_parameter_that_a_value_may_equal_or_is_less_than_is_none(
    capfd: pytest.CaptureFixture[str], condition: str, value: str
) -> None:
    code, out, err = ref(capfd, "-q", f"SELECT id FROM 'trips.csv' WHERE {condition}", "--var", f"p={value}")
    assert (code, err) == (0, "") and out.endswith("2\n")


def test_parameter_beside_a_constant_may_be_another_number(capfd: pytest.CaptureFixture[str]) -> None:
    switch = "SELECT COUNT(*) AS n FROM 'trips.csv' WHERE :p = 1"
    assert ref(capfd, "-q", switch, "--var", "p=99999999999") == (0, "n\n0\n", "")


def test_schema_proposes_the_delay_that_the_rows_have(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    out = cq(capfd, "schema", "trips.csv")[1]
    assert "AS ts - INTERVAL '5' SECOND  -- in all 3 rows some are as late as 5 s" in out
    window = "SELECT COUNT(*) AS n FROM TUMBLE(TABLE trips, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start"
    assert ref(capfd, "-q", out + window + ", window_end") == (0, "n\n2\n1\n", "")
    Path("order.csv").write_text("ts\n2024-01-01 00:00:00\n2024-01-01 00:00:00\n")
    assert "WATERMARK FOR ts  -- all 2 rows are in order of ts" in cq(capfd, "schema", "order.csv")[1]


def test_schema_redirected_to_a_query_elsewhere_runs(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "queries").mkdir()
    query = place / "queries" / "q.cq"
    with query.open("wb") as target:
        command = [sys.executable, "-m", "cq", "schema", "day/a.csv.gz"]
        subprocess.run(command, stdout=target, check=True, timeout=60)
    query.write_text(query.read_text() + "SELECT COUNT(*) AS n FROM a")
    assert ref(capfd, "-q", "queries/q.cq")[1] == "n\n3\n"


def test_slow_pipe_is_told_what_it_waits_for_and_the_way_out_reads_at_once() -> None:
    command = [sys.executable, "-m", "cq", "run"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "SELECT * FROM '-'"], **pipes) as running:  # type: ignore[call-overload]
        running.stdin.write(b"id,v\n1,a\n")
        running.stdin.flush()
        said = [running.stderr.readline().decode() for _ in range(3)]  # before anything is compiled
        assert running.communicate(b"x,b\n", timeout=60)[0] == b"id,v\n1,a\nx,b\n"
    assert said[0].startswith("note: waiting for 1 MiB of rows from <stdin>") and said[2].endswith("guess_rows=1\n")
    declaration = said[1].partition("them: ")[2].partition(";")[0]
    for query in (("SELECT * FROM '-'", "-w", "guess_rows=1"), (f"{declaration}; SELECT * FROM stdin",)):
        with subprocess.Popen([*command, "-q", *query], **pipes) as running:  # type: ignore[call-overload]
            running.stdin.write(b"id,v\n1,a\n")
            running.stdin.flush()
            assert [running.stdout.readline() for _ in range(2)] == [b"id,v\n", b"1,a\n"]
            assert running.communicate(b"2,b\n", timeout=60) == (b"2,b\n", b"")


def test_option_that_no_input_takes_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = ref(capfd, "SELECT * FROM bids", "bids=trips.csv", "-w", "guess_rows=3", "-q")
    assert (code, err) == (0, "")
    done = outside("run", "--engine", "reference", "SELECT * FROM '-'", "-w", "follow=true", input=b"id\n1\n")
    assert done.returncode == 2 and b'no input of the query takes the option "follow"' in done.stderr
