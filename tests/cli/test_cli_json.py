"""JSON lines through the whole engine: files, packed files, standard input, Python; every engine the same."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from command_line import PER_MINUTE, RESULT, cq, outside, ref

from cq import sql

BIDS = (
    '{"id": 1, "price": 1.5, "ts": "2024-01-01T00:00:10Z"}\n\n'
    '{"ts": "2024-01-01 00:00:20", "price": 2, "ID": 9007199254740993, "more": [1]}\n'
    '{"id": "3", "price": "2", "ts": "2024-01-01 00:00:5"}\n'
    '{"id": 4, "ts": "2024-01-01 00:01:00"}\n'
)
SKIPPING = PER_MINUTE.replace("path = 'bids.csv'", "path = 'bids.csv', on_error = 'skip'")


@pytest.fixture(autouse=True)
def bids(place: Path) -> None:
    Path("bids.jsonl").write_text(BIDS)
    Path("bids.ndjson.gz").write_bytes(gzip.compress(BIDS.encode()))
    Path("json.cq").write_text(SKIPPING)


def test_path_for_a_stream_says_its_format_and_packing_and_engines_agree(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = ref(capfd, "json.cq", "bid=bids.jsonl", "--hash")
    assert (code, out) == (0, RESULT) and "read 3 rows of bid · wrote 2 rows · 1 unreadable · 1 blank line · " in err
    native = cq(capfd, "run", "json.cq", "bid=bids.ndjson.gz", "-j", "1", "--hash")
    assert native[1] == out and native[2].split("hash")[1] == err.split("hash")[1]


@pytest.mark.spark
def test_spark_reads_the_same_rows(capfd: pytest.CaptureFixture[str]) -> None:
    assert cq(capfd, "diff", "json.cq", "bid=bids.ndjson.gz", "--against", "spark")[0] == 0


def test_row_at_fault_is_told_with_its_line_and_column(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = ref(capfd, "q.cq", "bid=bids.jsonl")
    assert (code, out) == (1, "") and (
        "data error[CQ0703]: bids.jsonl:4: cannot read '2024-01-01 00:00:5' as TIMESTAMP in column ts: "
        "write it as 2024-01-31 10:20:30.5\n"
    ) in err


def test_standard_input_and_output_are_lines_of_json() -> None:
    query = """CREATE STREAM b (id BIGINT, "user.name" VARCHAR) WITH (connector = 'stdin', format = 'json');
    SELECT id + 1 AS n, "user.name" AS name FROM b"""
    text = b'{"id": 9007199254740993, "user": {"name": "a\\u00e9\\n"}}\n{"user": null}'
    done = outside("run", "--engine", "reference", "-q", "-c", query, "-f", "json", input=text)
    assert done.stdout.decode() == '{"n": 9007199254740994, "name": "aé\\n"}\n{"n": null, "name": null}\n', done.stderr


def test_packed_json_that_was_written_is_read_without_a_declaration(capfd: pytest.CaptureFixture[str]) -> None:
    assert ref(capfd, "json.cq", "bid=bids.jsonl", "-o", "out.json.zst")[0] == 0
    assert ref(capfd, "-q", "-c", "SELECT * FROM o", "o=out.json.zst")[1] == RESULT


def test_schema_of_json_prints_a_statement_that_runs(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = cq(capfd, "schema", "bids.ndjson.gz", "--name", "bid")
    assert code == 0 and '  id VARCHAR,\n  price VARCHAR,\n  ts VARCHAR,\n  "ID" BIGINT,\n  more BIGINT ARRAY,\n' in out
    assert "  at AS CAST(ts AS TIMESTAMP),\n" in out  # a CAST reads 00:00:5, which no file may hold in a TIMESTAMP
    Path("s.cq").write_text(out + 'SELECT COUNT(*) AS n, COUNT("ID") AS ids FROM bid;')
    assert ref(capfd, "-q", "s.cq")[1] == "n,ids\n4,1\n"


def test_python_takes_the_path_of_a_json_file() -> None:
    query = sql(
        "CREATE STREAM b (id BIGINT, price DECIMAL(5, 2)); SELECT id, price FROM b WHERE id > 1", b="bids.jsonl"
    )
    rows = query.run(engine="reference")["result"].to_pylist()
    assert [(row["id"], str(row["price"])) for row in rows] == [(2**53 + 1, "2.00"), (3, "2.00"), (4, "None")]


def test_packing_declared_for_one_file_is_not_that_of_another(capfd: pytest.CaptureFixture[str]) -> None:
    query = "CREATE STREAM b (id BIGINT) WITH (path = 'bids.ndjson.gz', format = 'json', compression = 'gzip');"
    assert ref(capfd, "-q", "-c", f"{query} SELECT COUNT(*) AS n FROM b", "b=bids.csv")[1] == "n\n3\n"
    assert ref(capfd, "-q", "-c", f"{query} SELECT COUNT(*) AS n FROM b")[1] == "n\n4\n"
