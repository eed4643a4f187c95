"""`cq schema`, `cq fmt` and `cq gen`: commands that print texts and rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import cq, ref

from cq.connectors.json import source


def test_schema_leaves_out_what_no_type_holds_and_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"a": [1], "raw": [[{"x": 1}]], "nothing": pa.nulls(1)})
    pq.write_table(table, "odd.parquet")
    code, out, _ = cq(capfd, "schema", "odd.parquet")
    assert code == 0 and out.startswith(
        "CREATE STREAM odd (\n  -- left out: raw list<element: struct<x: int64>>\n  a BIGINT,\n"
    )
    assert ref(capfd, "-q", out + "SELECT a, nothing FROM odd")[1] == "a,nothing\n1,\n"


def test_a_file_of_which_no_column_is_held_is_told_with_its_columns(capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}), "maps.parquet")
    code, out, err = cq(capfd, "schema", "maps.parquet")
    assert code == 1 and not out and "error[CQ0603]: maps.parquet has no column that cq supports: m map<" in err
    assert "SELECT COUNT(*) FROM 'maps.parquet'" in err
    assert ref(capfd, "SELECT COUNT(*) AS n FROM 'maps.parquet'")[1] == "n\n1\n"
    code, _, err = ref(capfd, "SELECT * FROM 'maps.parquet'")
    assert code == 1 and "error[CQ0203]: cq supports no column of this FROM: m map<" in err


def test_fmt_checks_and_then_formats_once(capfd: pytest.CaptureFixture[str]) -> None:
    Path("f.cq").write_text("select  id from b where id>1 -- why\n;")
    code, out, _ = cq(capfd, "fmt", "--check", "f.cq")
    assert code == 1 and "-select  id" in out
    assert cq(capfd, "fmt", "f.cq")[0] == 0
    assert "-- why" in Path("f.cq").read_text()
    assert cq(capfd, "fmt", "--check", "f.cq")[:2] == (0, "")


def test_formatted_file_is_formatted_although_a_comment_had_to_move(capfd: pytest.CaptureFixture[str]) -> None:
    Path("f.cq").write_text("SELECT s.a FROM s JOIN ( /* y */ SELECT a, b FROM q ) AS r ON s.a = r.a;\n")
    assert cq(capfd, "fmt", "f.cq")[0] == 0
    assert cq(capfd, "fmt", "--check", "f.cq")[:2] == (0, "")


def test_schema_prints_a_statement_that_runs(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = cq(capfd, "schema", "bids.csv", "--name", "bid")
    assert code == 0
    Path("s.cq").write_text(out + "SELECT COUNT(*) AS n FROM bid;")
    assert ref(capfd, "s.cq")[1] == "n\n3\n"


def test_generated_rows_are_the_same_for_the_same_seed(capfd: pytest.CaptureFixture[str]) -> None:
    assert cq(capfd, "gen", "bids", "rows=50", "-o", "g.parquet")[0] == 0
    first = pq.read_table("g.parquet")
    code, out, _ = cq(capfd, "gen", "bids", "rows=50")
    assert code == 0 and len(out.splitlines()) == 51 and first.num_rows == 50
    assert cq(capfd, "gen", "bids", "rows=50", "seed=2")[1] != out
    assert 'did you mean "rows"?' in cq(capfd, "gen", "bids", "row=50")[2]


def test_schema_reads_the_times_of_json_lines_as_a_run_would(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million lines one by one take a minute; the native reader takes less than two seconds."""
    lines = [f'{{"n": {n}, "ts": "2024-01-01T00:{n % 60:02}:00Z", "tags": ["a"]}}\n' for n in range(120)]
    Path("log.jsonl").write_text("".join(lines))
    found = cq(capfd, "schema", "log.jsonl")
    assert found[0] == 0 and "INTERVAL '3540' SECOND  -- in all 120 rows some are as late as 3540 s" in found[1]
    monkeypatch.setattr(source, "_ByLine", None)  # whoever reads a line in Python fails
    assert cq(capfd, "schema", "log.jsonl") == found


def test_ways_out_of_schema_are_its_own_options(capfd: pytest.CaptureFixture[str]) -> None:
    Path("access.log").write_text("a,b\n1,x\n")
    code, _, err = cq(capfd, "schema", "access.log")
    assert code == 2 and "or -f csv to cq schema" in err
    assert cq(capfd, "schema", "access.log", "-f", "csv")[0] == 0
    Path("zones.csv").write_text("a;b\n1;x\n")
    code, _, err = cq(capfd, "schema", "zones.csv")
    assert code == 1 and "--delimiter ';' to cq schema" in err
    assert cq(capfd, "schema", "zones.csv", "--delimiter", ";")[0] == 0
    code, _, err = cq(capfd, "schema", "-")
    assert code == 2 and "reads a file, not standard input" in err


@pytest.mark.parametrize("command", [("schema", "days"), ("run", "SELECT a FROM 'days/'"), ("schema", "days/")])
def test_directory_is_told_with_the_files_that_are_in_it(
    capfd: pytest.CaptureFixture[str], command: tuple[str, str]
) -> None:
    Path("days").mkdir()
    pq.write_table(pa.table({"a": [1]}), "days/1.parquet")
    pq.write_table(pa.table({"a": [2]}), "days/2.parquet")
    Path("days/notes.txt").write_text("x")
    code, _, err = cq(capfd, *command)
    assert code in {1, 2} and "is a directory" in err and "name its files: days/*.parquet" in err
    assert cq(capfd, command[0], command[1].replace("days/", "days").replace("days", "days/*.parquet"))[0] == 0


def test_schema_of_several_files_has_the_options_that_are_given(capfd: pytest.CaptureFixture[str]) -> None:
    Path("1.csv").write_text("a;b\n1;-\n")
    Path("2.csv").write_text("a;c\n2;5\n")
    code, _, err = cq(capfd, "schema", "[12].csv", "-w", "delimiter=;")
    assert code == 1 and "or pass -w union_by_name=true to cq run and cq schema" in err
    given = ("-w", "delimiter=;", "-w", "union_by_name=true", "-w", "null=-")
    code, out, _ = cq(capfd, "schema", "[12].csv", "--name", "x", *given)
    assert code == 0 and "union_by_name = 'true', 'null' = '-'" in out
    assert ref(capfd, "-q", f"{out}SELECT a, b, c FROM x")[1] == "a,b,c\n1,,\n2,,5\n"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("union_by_nam=true", 'did you mean "union_by_name"?'),
        ("union_by_name=maybe", "union_by_name cannot be 'maybe'"),
        ("x.null=-", 'cq schema reads one file, and no stream "x"'),
        ("follow=true", "add it to the printed statement"),
    ],
)
def test_option_that_a_file_does_not_take_is_told(capfd: pytest.CaptureFixture[str], option: str, said: str) -> None:
    code, out, err = cq(capfd, "schema", "bids.csv", "-w", option)
    assert code in {1, 2} and not out and said in err and "Traceback" not in err
