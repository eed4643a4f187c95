"""`cq run`: what goes where, and which code it leaves with."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import BIDS, RESULT, ROWS, cq, outside, ref, without_progress

from cq.cli import execute
from cq.version import VERSION

ENOUGH = "(cq schema bids.csv tells how late its rows come)"


def test_pipe_gets_csv_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = ref(capfd, "q.cq")
    assert (code, out) == (0, RESULT)
    assert err.startswith("read 3 rows of bid · wrote 2 rows · ") and "hash" not in err


def test_native_gives_the_same_rows_and_hash(capfd: pytest.CaptureFixture[str]) -> None:
    reference, native = ref(capfd, "q.cq", "--hash"), cq(capfd, "run", "q.cq", "-j", "1", "--hash")
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


def test_tsv_is_a_format_of_outputs(capfd: pytest.CaptureFixture[str]) -> None:
    assert ref(capfd, "-q", "-c", "SELECT 1 AS a, 'x,y' AS b", "-f", "tsv")[:2] == (0, "a\tb\n1\tx,y\n")
    assert ref(capfd, "-q", "-c", "SELECT 1 AS a, 2 AS b", "-f", "tsv", "-o", "rows")[0] == 0
    assert Path("rows").read_text() == "a\tb\n1\t2\n"
    assert cq(capfd, "gen", "tpch_region", "-f", "tsv")[1].splitlines()[0].count("\t") == 2


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


@pytest.mark.parametrize("with_", ["connector = 'stdout', format = 'json'", "path = '-'"])
def test_sink_on_standard_output_shares_it_with_nothing(capfd: pytest.CaptureFixture[str], with_: str) -> None:
    sink = f"CREATE SINK o WITH ({with_}); INSERT INTO o SELECT id FROM b LIMIT 1;"
    both = f"{sink} SELECT price FROM b LIMIT 1"
    for format_ in ((), ("-f", "table"), ("-f", "json")):
        code, out, err = ref(capfd, "-c", both, "b=bids.csv", *format_)
        assert (code, out) == (2, "") and "2 outputs cannot share standard output: o, result" in err
        assert "= help: give each a file: -o o=PATH\n" in err
    assert ref(capfd, "-c", both, "b=bids.csv", "-o", "o=o.csv")[1] == "price\n1.5\n"
    assert ref(capfd, "-c", both, "b=bids.csv", "-o", "result=r.csv", "-q")[1] in {"id\n1\n", '{"id": 1}\n'}
    assert ref(capfd, "-c", sink + sink.replace(" o ", " p "), "b=bids.csv")[0] == 2
    assert ref(capfd, "-c", sink, "b=bids.csv", "-f", "table")[0] == 0


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
    assert code == 0 and " · 1 late · " in err
    dropped = (
        "note: 1 late row was dropped by window (line 3); to drop fewer, increase the delay of bid, now 0 seconds: "
    )
    assert f"{dropped}WATERMARK FOR ts AS ts - INTERVAL '1 minute' {ENOUGH}\n" in err
    assert "note:" not in ref(capfd, "-q", "q.cq")[2]


def test_each_operator_that_may_have_dropped_late_rows_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bids.csv").write_text(ROWS + "4,1,2024-01-01 00:00:30\n")
    Path("q.cq").write_text(
        """CREATE STREAM bid (id BIGINT, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '20' SECOND)
WITH (connector = 'file', path = 'bids.csv');
CREATE SINK sessions WITH (connector = 'file', path = 'sessions.csv');
CREATE SINK pairs WITH (connector = 'file', path = 'pairs.csv');
INSERT INTO sessions
SELECT COUNT(*) AS n FROM bid GROUP BY SESSION(ts, INTERVAL '1' MINUTE);
INSERT INTO pairs
SELECT a.id FROM bid AS a
JOIN bid AS b ON a.id = b.id AND b.ts BETWEEN a.ts AND a.ts;
"""
    )
    _, _, err = ref(capfd, "q.cq")
    assert "late rows were dropped by session (line 6) or interval join (line 8); to drop fewer, " in err
    longer = "increase the delay of bid, now 20 seconds: WATERMARK FOR ts AS ts - INTERVAL '40 seconds'"
    assert f"{longer} {ENOUGH}\n" in err


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
    assert err.startswith("read 2 rows of b · wrote 2 rows · ")
    ref(capfd, "-c", text, "b=bad.csv", "-o", "out.csv")
    assert sorted(os.listdir(place)) == ["bad.csv", "bids.csv", "q.cq"]


def test_bad_rows_are_counted_in_the_summary(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bad.csv").write_text("id\n1\nx\n")
    _, _, err = ref(
        capfd, "-c", "CREATE STREAM b (id BIGINT) WITH (on_error = 'dead_letter'); SELECT id FROM b", "b=bad.csv"
    )
    assert (
        f" · 1 unreadable, written to {Path.cwd() / 'query.b.bad.jsonl'} · " in err
        and Path("query.b.bad.jsonl").exists()
    )


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
    assert code == 2 and 'error[CQ0605]: "x.jsonl" is already written by another output' in err
    assert not Path(options[1]).exists()
    assert ref(capfd, "-c", text)[:2] == (0, "id\n7\n7\n") and len(Path("x.jsonl").read_text().splitlines()) == 1


def test_closed_pipe_ends_quietly(place: Path) -> None:
    Path("many.csv").write_text("id\n" + "1\n" * 100_000)
    command = f"{sys.executable} -m cq run --engine reference -c 'SELECT id FROM b' b=many.csv | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, check=False)
    assert (done.stdout, without_progress(done.stderr.decode())) == (b"id\n", "")


def test_more_columns_than_can_be_compiled_are_refused_before(capfd: pytest.CaptureFixture[str]) -> None:
    Path("wide.csv").write_text(",".join(f"c{i}" for i in range(600)) + "\n" + ",".join("1" * 600) + "\n")
    code, _, err = cq(capfd, "run", "-j", "0", "-c", "SELECT * FROM w", "w=wide.csv")
    assert code == 1 and "CQ0802" in err and "name the columns" in err
    assert cq(capfd, "run", "-q", "-j", "0", "-c", "SELECT c599 FROM w", "w=wide.csv")[1] == "c599\n1\n"


def test_sums_of_other_systems_are_read(capfd: pytest.CaptureFixture[str]) -> None:
    for name, value in (("a", "12.50"), ("b", "12345678901234567890.00")):
        column = pa.array([Decimal(value)], pa.decimal128(38, 2))
        pq.write_table(pa.table({"s": column}), f"{name}.parquet")
        assert ref(capfd, "-q", "-c", "SELECT s FROM t", f"t={name}.parquet")[1] == f"s\n{value}\n"


def test_a_small_run_loads_nothing_slow_that_it_does_not_use() -> None:
    program = (
        "import sys; from cq.cli import execute\n"
        "slow = {'pandas', 'pyspark', 'numba', 'pyarrow.compute', 'dataclasses', 'importlib.metadata', 'cq.workloads',"
        " 'statistics', 'traceback', 'secrets', 'cq.planner.plan_facts', 'zoneinfo'}\n"
        "code = execute(['run', '-q', '-c', 'SELECT id FROM b', 'b=bids.csv'])\n"
        "loaded = slow & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, b"id\n1\n2\n3\n"), done.stderr.decode()


def test_warmup_compiles_what_a_query_needs(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = cq(capfd, "warmup", "q.cq", "-j", "1")
    assert (code, out) == (0, "") and "q.cq is compiled" in err
    Path("p.cq").write_text(BIDS + "SELECT id FROM bid WHERE id > :least;")
    assert cq(capfd, "warmup", "p.cq", "-j", "0", "--var", "least=1")[0] == 0


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


def test_a_file_beside_the_command_and_not_beside_the_query_is_said(
    capfd: pytest.CaptureFixture[str], place: Path
) -> None:
    (place / "queries").mkdir()
    (place / "queries" / "q.cq").write_text("SELECT COUNT(*) AS n FROM 'bids.csv'")
    code, _, said = cq(capfd, "run", "queries/q.cq")
    assert code == 2
    assert f'start from the directory of its file, {place / "queries"}: write "../bids.csv"' in said
    (place / "queries" / "q.cq").write_text("SELECT COUNT(*) AS n FROM '../bids.csv'")
    assert cq(capfd, "run", "queries/q.cq")[0] == 0


def test_the_version_is_that_of_the_source(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["--version"]) == 0
    assert capfd.readouterr().out == f"cq {VERSION}\n"
