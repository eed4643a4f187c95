"""The command line: what it prints where, and with which code it leaves."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cq.cli import COMMANDS, execute

BIDS = """CREATE STREAM bid (id BIGINT, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'file', path = 'bids.csv');
"""
PER_MINUTE = (
    BIDS
    + """SELECT window_start, COUNT(*) AS n, SUM(price) AS total
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end;
"""
)
ROWS = "id,price,ts\n1,1.5,2024-01-01 00:00:10\n2,2,2024-01-01 00:00:20\n3,,2024-01-01 00:01:00\n"
RESULT = "window_start,n,total\n2024-01-01 00:00:00,2,3.5\n2024-01-01 00:01:00,1,\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bids.csv").write_text(ROWS)
    (tmp_path / "q.cq").write_text(PER_MINUTE)
    return tmp_path


def cq(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr); queries run on the reference unless an engine is named."""
    code = execute(list(arguments))
    out, err = capfd.readouterr()
    return code, out, without_progress(err)


def without_progress(err: str) -> str:
    """What was said besides how far compiling is, which hangs on the cache and on how busy the machine is."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("cq: compiling "))


def ref(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return cq(capfd, "run", "--engine", "reference", *arguments)


def outside(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "cq", *arguments]
    return subprocess.run(command, capture_output=True, timeout=120, check=False, **options)  # type: ignore[call-overload,no-any-return]


# ------------------------------------------------------------------------------------------------------------------ run


def test_pipe_gets_csv_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = ref(capfd, "q.cq")
    assert (code, out) == (0, RESULT)
    assert err.startswith("in bid 3 · out result 2 · late 0 · bad 0 · ") and " · hash " in err


def test_native_gives_the_same_rows_and_hash(capfd: pytest.CaptureFixture[str]) -> None:
    reference, native = ref(capfd, "q.cq"), cq(capfd, "run", "q.cq", "-j", "1")
    assert reference[:2] == native[:2]
    assert reference[2].split("hash")[1] == native[2].split("hash")[1]


def test_quiet_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert ref(capfd, "q.cq", "-q") == (0, RESULT, "")


def test_table_is_for_people(capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ref(capfd, "q.cq", "-f", "table")
    assert out.splitlines()[0] == "window_start         n  total"
    assert out.splitlines()[3] == "2024-01-01 00:01:00  1   NULL"


def test_stream_from_another_file(capfd: pytest.CaptureFixture[str]) -> None:
    Path("other.csv").write_text("id,price,ts\n7,1,2024-01-01\n")
    assert ref(capfd, "q.cq", "bid=other.csv")[1] == "window_start,n,total\n2024-01-01 00:00:00,1,1.0\n"


def test_query_without_a_file_over_a_file_without_a_declaration(capfd: pytest.CaptureFixture[str]) -> None:
    assert ref(capfd, "-c", "SELECT id, price FROM b WHERE id > 1", "b=bids.csv")[1] == "id,price\n2,2.0\n3,\n"


def test_standard_input_is_a_stream() -> None:
    query = "CREATE STREAM b (id BIGINT); SELECT id + 1 AS n FROM b"
    done = outside("run", "--engine", "reference", "-q", "-c", query, "b=-", input=b"id\n1\n2\n")
    assert (done.returncode, done.stdout) == (0, b"n\n2\n3\n")


def test_query_itself_from_standard_input() -> None:
    done = outside("run", "--engine", "reference", "-q", "-", "b=bids.csv", input=b"SELECT id FROM b LIMIT 1")
    assert done.stdout == b"id\n1\n"


def test_parameters_and_limit(capfd: pytest.CaptureFixture[str]) -> None:
    text = "SELECT id FROM b WHERE id >= :least"
    assert ref(capfd, "-c", text, "b=bids.csv", "--var", "least=2", "--limit", "1")[1] == "id\n2\n"


def test_parameter_may_be_the_empty_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert ref(capfd, "-c", "SELECT id || :end AS n FROM b LIMIT 1", "b=bids.csv", "--var", "end=")[1] == "n\n1\n"
    assert "write --var NAME=VALUE" in ref(capfd, "-c", "SELECT id FROM b", "b=bids.csv", "--var", "end")[2]


def test_output_goes_to_a_file_in_the_format_of_its_name(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    code, out, _ = ref(capfd, "q.cq", "-o", "out.parquet")
    assert (code, out) == (0, "")
    assert pq.read_table("out.parquet").column("n").to_pylist() == [2, 1]
    assert sorted(os.listdir(place)) == ["bids.csv", "out.parquet", "q.cq"]


def test_several_outputs_need_a_file_each_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    text = "SELECT id FROM b; SELECT price FROM b;"
    code, _, err = ref(capfd, "-c", text, "b=bids.csv")
    assert code == 2 and "cannot share standard output" in err
    code, out, _ = ref(capfd, "-c", text, "b=bids.csv", "-o", "result_2=p.csv")
    assert (code, out) == (0, "id\n1\n2\n3\n") and Path("p.csv").read_text() == "price\n1.5\n2.0\n\n"
    assert ref(capfd, "-c", text, "b=bids.csv", "-f", "table")[1].count("result") == 2


def test_declared_sink_is_written_beside_the_query(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "sub").mkdir()
    (place / "sub" / "s.cq").write_text(
        "CREATE SINK o WITH (connector = 'file', path = 'o.jsonl', format = 'json'); INSERT INTO o SELECT id FROM b"
    )
    assert ref(capfd, "sub/s.cq", "b=bids.csv")[0] == 0
    assert (place / "sub" / "o.jsonl").read_text() == '{"id": 1}\n{"id": 2}\n{"id": 3}\n'


def test_output_onto_its_own_source_or_query_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for target in ("bids.csv", "q.cq"):
        code, _, err = ref(capfd, "q.cq", "-o", target, "-f", "csv")
        assert code == 2 and "CQ0605" in err
    assert Path("bids.csv").read_text() == ROWS


def test_two_outputs_into_one_file_are_refused(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    two = BIDS + "SELECT id FROM bid; SELECT price FROM bid"
    code, _, err = ref(capfd, "-c", two, "-o", "result=a.csv", "-o", "result_2=./a.csv")
    assert code == 2 and "CQ0605" in err and "written by another output" in err
    assert not (place / "a.csv").exists()
    assert ref(capfd, "-c", two, "-o", "result=a.csv", "-o", "result_2=b.csv")[0] == 0


def test_input_for_a_stream_the_query_does_not_have_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = ref(capfd, "q.cq", "bids=bids.csv")
    assert (code, out) == (2, "") and "CQ0201" in err and 'did you mean "bid"' in err


@pytest.mark.parametrize("name", ["b.csv", "b.txt"])
@pytest.mark.parametrize("where", ["path = 'a.csv', ", ""])
def test_layout_in_the_text_holds_for_another_file_too(
    capfd: pytest.CaptureFixture[str], name: str, where: str
) -> None:
    Path(name).write_text("1;x\n")
    text = f"CREATE STREAM s (a INT, b VARCHAR) WITH ({where}format = 'csv', delimiter = ';', header = FALSE);"
    assert ref(capfd, "-q", "-c", text + "SELECT b, a FROM s", f"s={name}")[1] == "b,a\nx,1\n"
    assert "CQ0207" in ref(capfd, "-c", text.replace("delimiter", "delimeter") + "SELECT a FROM s", f"s={name}")[2]


def test_late_rows_are_explained(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bids.csv").write_text(ROWS + "4,1,2024-01-01 00:00:30\n")
    code, _, err = ref(capfd, "q.cq")
    assert code == 0 and "late 1" in err and "note: 1 late row was dropped" in err and "WATERMARK FOR" in err
    assert "note:" not in ref(capfd, "-q", "q.cq")[2]


def test_missing_file_is_marked_where_the_query_names_it(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = ref(capfd, "-c", "CREATE STREAM b (id BIGINT) WITH (path = 'bid.csv'); SELECT id FROM b")
    assert code == 2 and "CQ0601" in err and 'did you mean "bids.csv"?' in err
    marked = err.splitlines()[4]
    assert marked.index("^") == err.splitlines()[3].index("'bid.csv'") and "^" * 9 in marked


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("limit", ["LIMIT 3", "LIMIT 0", ""])
def test_limit_ends_a_run_over_a_source_without_end(capfd: pytest.CaptureFixture[str], engine: str, limit: str) -> None:
    endless = f"CREATE STREAM b WITH (connector = 'generator', workload = 'bids'); SELECT auction FROM b {limit}"
    asked = [] if limit else ["--limit", "3"]
    code, out, err = cq(capfd, "run", "--engine", engine, "-j", "0", "-c", endless, *asked)
    assert code == 0, err
    assert len(out.splitlines()) == (1 if limit == "LIMIT 0" else 4)


def test_outputs_that_share_no_source_stop_at_their_own_limits(capfd: pytest.CaptureFixture[str]) -> None:
    two = "".join(
        f"CREATE STREAM {s} WITH (connector = 'generator', workload = 'bids'); SELECT auction FROM {s} LIMIT 2;"
        for s in "ab"
    )
    code, out, err = cq(capfd, "run", "-f", "table", "-j", "0", "-c", two)
    assert code == 0 and len(out.splitlines()) == 11, (out, err)


def test_data_error_comes_after_the_rows_before_it_and_leaves_no_file(
    capfd: pytest.CaptureFixture[str], place: Path
) -> None:
    Path("bad.csv").write_text("id\n1\n2\nx\n")
    text = "CREATE STREAM b (id BIGINT); SELECT id FROM b"
    code, out, err = ref(capfd, "-c", text, "b=bad.csv")
    assert (code, out) == (1, "id\n1\n2\n")
    assert "data error[CQ0702]: bad.csv:4: cannot read 'x' as BIGINT in column id" in err
    assert err.startswith("in b 2 · out result 2 · ")
    ref(capfd, "-c", text, "b=bad.csv", "-o", "out.csv")
    assert sorted(os.listdir(place)) == ["bad.csv", "bids.csv", "q.cq"]


def test_bad_rows_are_counted_in_the_summary(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bad.csv").write_text("id\n1\nx\n")
    _, _, err = ref(
        capfd, "-c", "CREATE STREAM b (id BIGINT) WITH (on_error = 'dead_letter'); SELECT id FROM b", "b=bad.csv"
    )
    assert " · bad 1 · " in err and Path("query.b.bad.jsonl").exists()


@pytest.mark.parametrize("taken", ["q.cq", "other.csv"])
def test_dead_letters_never_overwrite_what_the_run_reads(capfd: pytest.CaptureFixture[str], taken: str) -> None:
    Path("bad.csv").write_text("id\nx\n")
    Path("other.csv").write_text("id\n7\n")
    Path("q.cq").write_text(
        f"CREATE STREAM a (id INT) WITH (path = 'bad.csv', on_error = 'dead_letter', bad_rows = '{taken}');\n"
        "CREATE STREAM b (id INT) WITH (path = 'other.csv');\nSELECT id FROM a UNION ALL SELECT id FROM b;\n"
    )
    before = Path(taken).read_text()
    code, out, err = ref(capfd, "q.cq")
    assert (code, out) == (2, "") and f'error[CQ0605]: "{taken}" is read by this query' in err
    assert Path(taken).read_text() == before


@pytest.mark.parametrize("options", [("-o", "x.jsonl"), ("-o", "y.jsonl", "c=bad.csv")])
def test_dead_letters_have_a_file_of_their_own(capfd: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    Path("bad.csv").write_text("id\nx\n7\n")
    Path("good.csv").write_text("id\n7\n")
    bad = "on_error = 'dead_letter', bad_rows = 'x.jsonl'"
    text = (
        f"CREATE STREAM b (id INT) WITH (path = 'bad.csv', {bad});"
        f"CREATE STREAM c (id INT) WITH (path = 'good.csv', {bad});"
        "SELECT id FROM b UNION ALL SELECT id FROM c"
    )
    code, _, err = ref(capfd, "-c", text, *options)
    assert code == 2 and 'error[CQ0605]: "x.jsonl" is written by another output already' in err
    assert not Path(options[1]).exists()
    assert ref(capfd, "-c", text)[:2] == (0, "id\n7\n7\n") and len(Path("x.jsonl").read_text().splitlines()) == 1


def test_tolerance_of_a_difference_is_a_number(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = cq(capfd, "diff", "q.cq", "--float", "nan")
    assert code == 2 and "the tolerance must be a number of at least 0, not nan" in err


def test_closed_pipe_ends_quietly(place: Path) -> None:
    Path("many.csv").write_text("id\n" + "1\n" * 300_000)
    command = f"{sys.executable} -m cq run --engine reference -c 'SELECT id FROM b' b=many.csv | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == (b"id\n", b"")


# ------------------------------------------------------------------------------------------------------ other commands


def test_no_command_shows_help(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = cq(capfd)
    assert code == 0 and all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(capfd: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = cq(capfd, name, "--help")
    assert code == 0 and out.startswith(f"Usage: cq {name}")


def test_unknown_command_and_option_get_did_you_mean(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = cq(capfd, "rnu")
    assert code == 2 and 'did you mean "run"?' in err
    code, _, err = cq(capfd, "q.cq")
    assert code == 2 and "cq run q.cq" in err
    code, _, err = cq(capfd, "run", "q.cq", "--limt", "3")
    assert code == 2 and "--limit" in err


def test_check_reports_every_mistake_with_its_place(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bad.cq").write_text(BIDS + "SELECT prize FROM bid;\nSELECT LENGHT('x') FROM bid;\n")
    code, _, err = cq(capfd, "check", "bad.cq")
    assert code == 1 and err.count("error[") == 2 and "--> bad.cq:3:8" in err and "^^^^^" in err
    code, out, _ = cq(capfd, "check", "bad.cq", "--format", "json")
    assert code == 1 and [(d["line"], d["code"]) for d in json.loads(out)] == [(3, "CQ0203"), (4, "CQ0205")]


def test_check_says_ok_only_when_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = cq(capfd, "check", "-c", BIDS + "SELECT SPLIT('a b', ' ') AS words FROM bid;")
    assert (code, out) == (1, "") and err.startswith("error[CQ0501]")
    warned = BIDS + "SELECT id FROM bid WHERE price = NULL;"
    assert cq(capfd, "check", "-c", warned)[1].startswith("ok: ")
    assert cq(capfd, "check", "--strict", "-c", warned)[:2] == (1, "")


def test_check_of_a_good_query_says_what_it_reads_and_gives(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = cq(capfd, "check", "q.cq")
    assert (code, err) == (0, "") and out.startswith("ok: reads bid; gives result (window_start TIMESTAMP")


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        (BIDS + "SELECT id FROM bid WHERE price = NULL", "CQ0308", "price = NULL"),
        (BIDS + "SELECT id FROM bid WHERE price <> NULL OR id > 1", "CQ0308", "price <> NULL"),
        (BIDS + "SELECT id FROM bid WHERE 1 > 2", "CQ0308", "1 > 2"),
        (BIDS + "CREATE STREAM other (a INT) WITH (path = 'a.csv'); SELECT id FROM bid", "CQ0201", "other"),
        (BIDS + "CREATE SINK gone WITH (path = 'a.csv'); SELECT id FROM bid", "CQ0201", "gone"),
        (BIDS + "WITH c AS (SELECT * FROM bid) SELECT id FROM bid", "CQ0201", "c"),
        (BIDS + "CREATE VIEW v AS SELECT price FROM bid; SELECT id FROM bid", "CQ0201", "v"),
        (BIDS + "SELECT id AS a, price AS a FROM bid", "CQ0409", "price"),
        (
            "CREATE STREAM b WITH (connector = 'generator', workload = 'bids');"
            "SELECT SUM(price) OVER (PARTITION BY auction ROWS UNBOUNDED PRECEDING) AS s FROM b",
            "CQ0407",
            "SUM(price) OVER (PARTITION BY auction ROWS UNBOUNDED PRECEDING)",
        ),
    ],
)
def test_check_warns_of_what_was_probably_not_meant(
    capfd: pytest.CaptureFixture[str], text: str, code: str, marked: str
) -> None:
    done, _, err = cq(capfd, "check", "-c", text)
    assert done == 0 and err.startswith(f"warning[{code}]") and err.count("warning[") == 1, err
    line, carets = err.splitlines()[3:5]
    assert line[carets.index("^") : carets.rindex("^") + 1] == marked
    assert cq(capfd, "check", "--strict", "-c", text)[0] == 1


def test_check_names_a_value_for_a_parameter_the_query_does_not_have(capfd: pytest.CaptureFixture[str]) -> None:
    assert "CQ0206" in cq(capfd, "check", "q.cq", "--var", "mn=1")[2]


@pytest.mark.parametrize("text", ["TABLE bid", "bid", "INPUT => TABLE bid"])
def test_a_stream_read_by_a_window_is_read(capfd: pytest.CaptureFixture[str], text: str) -> None:
    query = f"SELECT COUNT(*) AS n FROM TUMBLE({text}, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start"
    code, _, err = cq(capfd, "check", "-c", BIDS + query)
    assert (code, err) in {(0, ""), (1, err)} and "never read" not in err


def test_check_finds_what_the_native_engine_cannot_run(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = cq(capfd, "check", "-c", "CREATE STREAM s (t VARCHAR); SELECT SPLIT(t, ' ') AS words FROM s")
    assert code == 1 and "CQ0501" in err and "--engine reference" in err


@pytest.mark.parametrize("stage", ["stages", "code"])
def test_a_text_without_output_has_no_stages(capfd: pytest.CaptureFixture[str], stage: str) -> None:
    code, _, err = cq(capfd, "explain", "--stage", stage, "-c", "CREATE STREAM s (a INT)")
    assert code == 2 and "the query has no output" in err


def test_more_columns_than_can_be_compiled_are_refused_before(capfd: pytest.CaptureFixture[str]) -> None:
    Path("wide.csv").write_text(",".join(f"c{i}" for i in range(600)) + "\n" + ",".join("1" * 600) + "\n")
    code, _, err = cq(capfd, "run", "-j", "0", "-c", "SELECT * FROM w", "w=wide.csv")
    assert code == 1 and "CQ0802" in err and "name the columns" in err
    assert cq(capfd, "run", "-q", "-j", "0", "-c", "SELECT c599 FROM w", "w=wide.csv")[1] == "c599\n1\n"


def test_sums_of_other_systems_are_read(capfd: pytest.CaptureFixture[str]) -> None:
    for name, value in (("a", "12.50"), ("b", "12345678901234567890.00")):
        column = pa.array([Decimal(value)], pa.decimal128(38, 2))
        pq.write_table(pa.table({"s": column}), f"{name}.parquet")
    assert ref(capfd, "-q", "-c", "SELECT s FROM t", "t=a.parquet")[1] == "s\n12.50\n"
    code, _, err = ref(capfd, "-q", "-c", "SELECT s FROM t", "t=b.parquet")
    assert code == 1 and "CQ0702" in err and "DECIMAL(18,2)" in err


def test_schema_leaves_out_what_no_type_holds_and_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"a": [1], "raw": [{"x": 1}], "nothing": pa.nulls(1)})
    pq.write_table(table, "odd.parquet")
    code, out, _ = cq(capfd, "schema", "odd.parquet")
    assert code == 0 and out.startswith("-- left out: raw struct<x: int64>\nCREATE STREAM odd (\n  a BIGINT,\n")
    Path("odd.cq").write_text(out + "SELECT a, nothing FROM odd")
    assert cq(capfd, "run", "-q", "--engine", "reference", "odd.cq")[1] == "a,nothing\n1,\n"


@pytest.mark.parametrize("stage", ["text", "logical", "rewritten", "stages", "code", "spark"])
def test_explain_shows_every_stage(capfd: pytest.CaptureFixture[str], stage: str) -> None:
    code, out, _ = cq(capfd, "explain", "q.cq", "--stage", stage)
    assert code == 0 and out
    if stage in {"logical", "stages"}:
        assert json.loads(cq(capfd, "explain", "q.cq", "--stage", stage, "--format", "json")[1])["nodes"]


def test_explain_statement_in_a_query_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ref(capfd, "-c", "EXPLAIN SELECT id FROM b", "b=bids.csv")
    assert code == 0 and "scan  b" in out


def test_fmt_checks_and_then_formats_once(capfd: pytest.CaptureFixture[str]) -> None:
    Path("f.cq").write_text("select  id from b where id>1 -- why\n;")
    code, out, _ = cq(capfd, "fmt", "--check", "f.cq")
    assert code == 1 and "-select  id" in out
    assert cq(capfd, "fmt", "f.cq")[0] == 0
    assert "-- why" in Path("f.cq").read_text()
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


def test_diff_of_two_engines_is_equal(capfd: pytest.CaptureFixture[str]) -> None:
    assert cq(capfd, "diff", "q.cq") == (0, "result: equal, 2 rows\n", "")


def test_diff_that_cannot_run_leaves_with_2(capfd: pytest.CaptureFixture[str]) -> None:
    assert cq(capfd, "diff", "missing.cq")[0] == 2
    code, _, err = cq(capfd, "diff", "q.cq", "--against", "duckdb")
    assert code == 2 and "engines: native" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "missing.cq"), 2, "CQ0601"),
        (("run", "."), 2, "CQ0601"),
        (("run",), 2, "no query given"),
        (("run", "q.cq", "bid"), 2, "STREAM=PATH"),
        (("run", "q.cq", "bid=nowhere.csv"), 2, "CQ0601"),
        (("run", "-", "bid=-"), 2, "only be read once"),
        (("run", "q.cq", "-s", "paralelism=2"), 2, 'did you mean "parallelism"?'),
        (("run", "q.cq", "--engine", "sparc"), 2, 'did you mean "spark"?'),
        (("run", "-c", "CREATE STREAM s (a BIGINT)"), 2, "no output"),
        (("run", "-c", "SELECT 'open"), 1, "CQ0102"),
        (("run", "-c", "SELECT id FROM b", "b=/dev/zero"), 2, "CQ06"),
        (("schema", "q.cq"), 2, "CQ0602"),
        (("explain", "q.cq", "--stage", "code", "--format", "dot"), 2, "CQ0208"),
        (("run", "q.cq", "-o", "a.csv", "-o", "result=b.csv"), 2, "two places: a.csv and b.csv"),
        (("run", "q.cq", "bid=bids.csv", "bid=q.cq"), 2, 'stream "bid" is given twice'),
        (("run", "-c", "SELECT :x AS x FROM b", "b=bids.csv", "--var", "x=\udcff"), 1, "CQ0105"),
        (("schema", "\udcff.csv"), 2, "not UTF-8"),
    ],
)  # fmt: skip
def test_mistakes_on_the_command_line_have_a_code_and_a_way_out(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    got, out, err = cq(capfd, *arguments)
    assert (got, out) == (code, "") and words in err, err
    assert "Traceback" not in err and ("= help:" in err or code == 1), err


def test_query_that_is_no_text_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    Path("b.cq").write_bytes(b"SELECT \xff")
    assert "CQ0105" in cq(capfd, "check", "b.cq")[2]
    Path("b.cq").write_bytes(b"-" * (1 << 21))
    assert "CQ0103" in cq(capfd, "check", "b.cq")[2]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_query_on_standard_input_is_utf_8_whatever_the_locale_is(encoding: str) -> None:
    text = "SELECT 'é' AS x\nFROM b;\n".encode()
    done = outside("fmt", "-", input=text, env={**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"})
    assert b"Traceback" not in done.stderr and done.stdout == text, done
    done = outside("fmt", "-", input=b"SELECT '\xff' AS x FROM b")
    assert done.returncode == 1 and b"<stdin>: the text is not UTF-8" in done.stderr


def test_internal_fault_is_one_line_and_how_to_report_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("cq.planner.binding.binder.bind", broken)
    code, _, err = cq(capfd, "check", "q.cq")
    assert code == 2 and err.startswith("error[CQ0999]: KeyError: 'lost'") and "Traceback" not in err
    assert "Traceback" in cq(capfd, "--debug", "check", "q.cq")[2]


def test_a_small_run_loads_no_pandas() -> None:
    program = (
        "import sys; from cq.cli import execute\n"
        "code = execute(['run', '-q', '-c', 'SELECT id FROM b', 'b=bids.csv'])\n"
        "assert 'pandas' not in sys.modules and 'pyspark' not in sys.modules\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, b"id\n1\n2\n3\n"), done.stderr.decode()


def test_warmup_compiles_what_a_query_needs(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = cq(capfd, "warmup", "q.cq", "-j", "1")
    assert (code, out) == (0, "") and "q.cq is compiled" in err
    Path("p.cq").write_text(BIDS + "SELECT id FROM bid WHERE id > :least;")
    assert cq(capfd, "warmup", "p.cq", "-j", "0", "--var", "least=1")[0] == 0


def test_progress_line_names_sources_shares_and_rates() -> None:
    from cq.cli.progress import progress_text
    from cq.engines.protocol import Progress

    progress = Progress({"a": 50, "b": 3000}, {"o": 7}, {"a": lambda: 0.5, "b": lambda: None})
    assert progress_text(progress, 10.0) == "a 50% 50 · b 3,000 · out 7 · 305 rows/s · eta 10 s"


def test_progress_line_is_drawn_on_a_terminal_and_taken_away() -> None:

    from cq.cli import progress as p
    from cq.engines.protocol import Progress

    shown = io.StringIO()
    line = p.ProgressLine(Progress({"a": 5}, {"o": 7}, {"a": lambda: None}, began=0.0), shown)
    line.draw()
    line.clear()
    line.clear()
    assert shown.getvalue().startswith(p.CLEAR + "a 5 · out 7") and shown.getvalue().endswith(p.CLEAR)
    assert shown.getvalue().count(p.CLEAR) == 2


def test_progress_line_says_that_nothing_is_read_yet() -> None:
    from cq.cli.progress import progress_text
    from cq.engines.protocol import Progress

    assert progress_text(Progress({"a": 0}, {}, {"a": lambda: None}), None) == "compiling"


def test_rows_a_second_are_of_the_run_and_not_of_the_compiler() -> None:
    from cq.cli.progress import summary_text
    from cq.engines.protocol import RunSummary

    summary = RunSummary("native", {"a": 500}, seconds=0.5, start_seconds=20.0)
    assert "0.50 s after 20.00 s · 1,000 rows/s" in summary_text(summary)


def test_compiling_is_told_with_what_and_how_far() -> None:
    from cq.cli.progress import progress_text
    from cq.engines.protocol import Progress

    progress = Progress()
    progress.compiles("the query", 3, 10)
    assert progress_text(progress, None) == "cq: compiling the query 3/10"
    assert "compiling" not in progress_text(progress, 1.0)


@pytest.mark.parametrize(("what", "told"), [("RUNTIME", True), ("QUERY", False)])
def test_compiling_the_runtime_is_drawn_at_once_and_the_query_only_when_it_takes_long(
    what: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cq.cli import progress as p
    from cq.engines.protocol import Progress
    from cq.runtime.base import notices

    monkeypatch.setattr(p, "EVERY_S", 0.001)
    monkeypatch.setattr(p, "FIRST_AFTER_S", 3600.0)
    progress, shown = Progress(), io.StringIO()
    with notices.listening(progress.compiles), p.ProgressLine(progress, shown) as line:
        notices.tell(getattr(notices, what), 1, 2)
        line._over.wait(0.2)
    assert ("compiling " + notices.RUNTIME + " 1/2" in shown.getvalue()) is told
    notices.tell("nobody listens", 0, 1)
    assert progress.compiling == (getattr(notices, what), 1, 2)


def test_compiling_is_told_in_plain_lines_where_nothing_can_be_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from cq.cli import progress as p
    from cq.engines.protocol import Progress

    monkeypatch.setattr(p, "PLAIN_FIRST_AFTER_S", 0.001)
    monkeypatch.setattr(p, "PLAIN_EVERY_S", 0.001)
    progress, shown = Progress(), io.StringIO()
    with p.CompilingNotes(progress, shown) as notes:
        notes._over.wait(0.05)
        assert shown.getvalue() == ""  # nothing is compiled
        progress.compiles("the runtime", 12, 34)
        while not shown.getvalue():
            notes._over.wait(0.01)
        progress.began = 1.0
    lines = shown.getvalue().splitlines()
    assert set(lines) == {"cq: compiling the runtime 12/34"}
    assert "\r" not in shown.getvalue() and "\x1b" not in shown.getvalue()


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "aarch64")])
def test_native_engine_says_where_it_runs(
    system: str, machine: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cq.engines import feeding

    monkeypatch.setattr(feeding.platform, "system", lambda: system)
    monkeypatch.setattr(feeding.platform, "machine", lambda: machine)
    code, out, err = cq(capfd, "run", "-c", "SELECT id FROM b", "b=bids.csv")
    assert (code, out) == (2, "")
    assert err.startswith(f"error[CQ0607]: the native engine runs on Linux on x86-64, not on {system} ")
    assert machine in err and "--engine reference" in err
    assert cq(capfd, "run", "--engine", "reference", "-q", "-c", "SELECT id FROM b", "b=bids.csv")[0] == 0
