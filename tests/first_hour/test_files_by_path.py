"""Files named by their paths, and queries typed as text: nothing is declared first."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import cq, outside, ref

import cq as api
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.errors import CqError


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT id, zip FROM 'trips.csv' WHERE fare > 1", "id,zip\n1,00501\n2,10001\n"),
        ('SELECT id FROM "trips.csv" WHERE zip IS NULL', "id\n3\n"),
        ("SELECT trips.id FROM 'trips.csv' ORDER BY ts LIMIT 1", "id\n2\n"),
        ("SELECT COUNT(*) AS n, SUM(fare) AS fares FROM 'day/*.csv.gz'", "n,fares\n6,14.0\n"),
        (
            "SELECT p.name, t.zip FROM 'people.jsonl' p JOIN 'trips.csv' AS t USING (id)",
            "name,zip\nAnn,00501\n,10001\n",
        ),
        ("SELECT a.id FROM 'trips.csv' a JOIN 'trips.csv' b ON a.id = b.id + 1", "id\n2\n3\n"),
        ("SELECT id FROM read_csv('trips.csv') WHERE zip IS NULL", "id\n3\n"),
        ("/* a comment */ select 1 AS one", "one\n1\n"),
    ],
)
def test_file_is_read_by_its_path(capfd: pytest.CaptureFixture[str], text: str, rows: str) -> None:
    assert ref(capfd, text, "-q") == (0, rows, "")


def test_options_of_an_input_are_given_beside_the_query(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = ref(capfd, "SELECT * FROM 'semi.csv'")
    assert code == 1 and "-w delimiter=';'" in err
    for arguments in (
        ("SELECT * FROM 'semi.csv'", "-w", "delimiter=;"),
        ("SELECT * FROM s", "s=semi.csv", "-w", "s.delimiter=;"),
        ("CREATE STREAM s (id BIGINT, v VARCHAR) WITH (path = 'semi.csv'); SELECT * FROM s", "-w", "s.delimiter=;"),
    ):
        assert ref(capfd, "-q", *arguments) == (0, "id,v\n1,x\n2,y\n", "")
    assert 'did you mean "delimiter"?' in ref(capfd, "SELECT 1", "-w", "delimeter=;")[2]
    assert 'did you mean "trips"?' in ref(capfd, "SELECT * FROM 'trips.csv'", "-w", "trip.delimiter=;")[2]


def test_reader_of_another_system_with_options_is_a_declaration(capfd: pytest.CaptureFixture[str]) -> None:
    _, _, err = ref(capfd, "SELECT v FROM read_csv('semi.csv', delim = ';')")
    path, declared = (line.removeprefix("  = help: ") for line in err.splitlines() if "help" in line)
    assert path == "write FROM 'semi.csv'"
    declaration = declared.removeprefix("options stand in a declaration: ").removesuffix(", then FROM s")
    assert declaration == "CREATE STREAM s WITH (path = 'semi.csv', delimiter = ';')"
    assert ref(capfd, "-q", f"{declaration}; SELECT v FROM s") == (0, "v\nx\ny\n", "")
    _, _, err = ref(capfd, "SELECT * FROM read_csv('semi.csv', sep => ';', HEADER = false, skip = 1, nullstr = 'x')")
    declaration = "CREATE STREAM s WITH (path = 'semi.csv', delimiter = ';', header = FALSE, 'null' = 'x')"
    assert declaration in err
    assert ref(capfd, "-q", f"{declaration}; SELECT c1 FROM s") == (0, "c1\nid\n1\n2\n", "")
    assert "nothing here is like skip" in err
    _, _, err = ref(capfd, "SELECT * FROM read_csv('semi.csv', header = 1, dateformat = '%d', nullstr = ['', 'NA'])")
    assert "CREATE STREAM s WITH (path = 'semi.csv', header = true, 'null' = ',NA')" in err
    assert "nothing here is like dateformat" in err
    _, _, err = ref(capfd, "SELECT v FROM read_csv('semi.csv', skip = 1)")
    assert "WITH (path = 'semi.csv', header = true)" in err
    _, _, err = ref(capfd, "SELECT v FROM read_json('semi.jsonl', format = 'newline_delimited')")
    assert "write FROM 'semi.jsonl'" in err and "header" not in err and "nothing here is like format" in err
    _, _, err = ref(capfd, "SELECT id FROM read_csv(['day/1.csv', 'day/2.csv'])")
    assert "all that a pattern matches, FROM 'day/*.csv'" in err


def test_options_of_a_generator_are_given_beside_the_query(capfd: pytest.CaptureFixture[str]) -> None:
    stream = "CREATE STREAM lr WITH (connector = 'generator', workload = 'linear_road', rows = 9);"
    counted = f"{stream} SELECT COUNT(*) AS n, MAX(ts) AS last FROM lr"
    by = {rows: ref(capfd, "-q", counted, "-w", f"lr.rows={rows}")[1] for rows in (9, 3_000)}
    assert by[9] == ref(capfd, "-q", counted)[1] != by[3_000]
    assert by[3_000] == ref(capfd, "-q", counted, "-w", "rows=3000")[1]
    assert ref(capfd, "-q", counted, "-w", "rows=3000", "-w", "lr.duration_s=60")[1] != by[3_000]
    for option, said in {
        "lr.sed=5": 'did you mean "seed"?',
        "lr.rows=x": "rows cannot be 'x'",
        "lr.path=x.csv": "to read a file, write lr=PATH after the query",
        "lr.connector=file": 'inputs have no option "connector"',
        "seed=5": 'inputs have no option "seed"',
    }.items():
        assert said in ref(capfd, counted, "-w", option)[2]


def test_window_over_a_file_says_how_to_declare_its_time(capfd: pytest.CaptureFixture[str]) -> None:
    window = "SELECT COUNT(*) AS n FROM {} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    _, _, err = ref(capfd, window.format("'trips.csv'"))
    way = next(line for line in err.splitlines() if "CREATE STREAM trips" in line)
    declaration = way.removeprefix("  = help: ").partition(";")[0]
    assert ref(capfd, "-q", f"{declaration}; {window.format('trips')}") == (0, "n\n2\n1\n", "")


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("file", ["TABLE 'late.csv'", "'late.csv'"])
def test_window_over_a_file_by_its_path_takes_the_named_column_and_loses_no_late_row(
    capfd: pytest.CaptureFixture[str], place: Path, file: str, engine: str
) -> None:
    moments = ["00:00:10", "00:03:00", "00:00:20", "00:03:30"]  # the third is 160 s behind the second
    (place / "late.csv").write_text("At,v\n" + "".join(f"2024-01-01 {at},1\n" for at in moments))
    grouped = "INTERVAL '1' MINUTE) GROUP BY window_start, window_end"
    for time in ("DESCRIPTOR(at)", "at"):
        query = f"SELECT MINUTE(window_start) AS m, SUM(v) AS n FROM TUMBLE({file}, {time}, {grouped}"
        assert cq(capfd, "run", "--engine", engine, "-q", query) == (0, "m,n\n0,2\n3,2\n", "")
    sessions = f"SELECT COUNT(*) AS n FROM SESSION({file} PARTITION BY v, at, INTERVAL '1' MINUTE)"
    query = sessions + " GROUP BY window_start, window_end, v"
    assert cq(capfd, "run", "--engine", engine, "-q", query) == (0, "n\n2\n2\n", "")
    both = (
        f"SELECT COUNT(*) AS n FROM (SELECT v FROM TUMBLE({file}, at, INTERVAL '1' HOUR)"
        " UNION ALL SELECT v FROM 'late.csv')"
    )
    assert cq(capfd, "run", "--engine", engine, "-q", both)[1] == "n\n8\n"


def test_window_over_what_is_read_once_or_has_no_time_says_what_to_declare(
    capfd: pytest.CaptureFixture[str], place: Path
) -> None:
    (place / "odd.csv").write_text("Epoch,day\n1704103200,2024-01-01\n1704103260,2024-01-02\n")
    for column in ("epoch", "day"):
        _, _, err = ref(capfd, f"SELECT COUNT(*) AS n FROM TUMBLE('odd.csv', {column}, INTERVAL '1' MINUTE)")
        way = next(line for line in err.splitlines() if "CREATE STREAM odd" in line).removeprefix("  = help: ")
        declaration, _, then = way.partition("; ")
        assert "CQ0401" in err and then == "then read FROM odd by at"
        query = "SELECT COUNT(*) AS n FROM TUMBLE(odd, at, INTERVAL '1' MINUTE) GROUP BY window_start"
        assert ref(capfd, "-q", f"{declaration}; {query}") == (0, "n\n1\n1\n", "")
    window = "SELECT COUNT(*) AS n FROM TUMBLE({}, ts, INTERVAL '1' MINUTE)"
    rows = b"ts\n2024-01-01 10:00:00\n2024-01-02 10:00:00\n"
    said = outside("run", "--engine", "reference", window.format("'-'"), input=rows).stderr.decode()
    way = next(line for line in said.splitlines() if "CREATE STREAM stdin" in line).removeprefix("  = help: ")
    taken = f"{way.partition(';')[0]}; {window.format('stdin')}"
    assert outside("run", "--engine", "reference", "-q", taken, input=rows).stdout == b"n\n2\n"


def test_time_in_milliseconds_has_its_own_way_out(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    """At a stream that the text declares, whose rows nobody has looked at."""
    (place / "ms.csv").write_text("t\n1704103200000\n1704103260000\n")
    declared = "CREATE STREAM ms WITH (path = 'ms.csv')"
    query = "SELECT window_start FROM TUMBLE(ms, {}, INTERVAL '1' MINUTE) GROUP BY window_start"
    _, _, err = ref(capfd, f"{declared}; {query.format('t')}")
    ways = [line.removeprefix("  = help: ") for line in err.splitlines() if "= help: " in line]
    declaration, _, _ = ways[0].partition("; ")
    computed = declaration.partition("(at AS ")[2].partition(", WATERMARK")[0]
    millis = ways[1].removeprefix("if t counts milliseconds, its time is ")
    text = f"{declaration.replace(computed, millis)}; {query.format('at')}"
    assert ref(capfd, "-q", text) == (0, "window_start\n2024-01-01 10:00:00\n2024-01-01 10:01:00\n", "")


def test_path_without_quotes_is_told_to_be_quoted(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = ref(capfd, "SELECT * FROM trips.csv")
    assert code == 1 and "write the path of a file in quotes: 'trips.csv'" in err


def test_file_beside_a_stream_of_its_name_is_another_stream(capfd: pytest.CaptureFixture[str]) -> None:
    text = "CREATE STREAM trips (id BIGINT) WITH (path = 'people.jsonl'); SELECT COUNT(*) AS n FROM "
    both = text + "(SELECT id FROM 'trips.csv' UNION ALL SELECT id FROM trips)"
    assert ref(capfd, "-q", both)[1] == "n\n5\n"
    text = 'CREATE STREAM "values" (id BIGINT) WITH (path = \'trips.csv\'); SELECT id FROM "values" UNION ALL SELECT 9'
    assert ref(capfd, "-q", text)[1] == "id\n1\n2\n3\n9\n"


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_files_with_the_same_columns_in_another_order_are_united_by_name(
    capfd: pytest.CaptureFixture[str], place: Path, union: str
) -> None:
    (place / "1.csv").write_text("a,b\n1,x\n")
    (place / "2.csv").write_text("b,a\ny,2\n")
    query = "SELECT * FROM '1.csv' {} SELECT * FROM '2.csv'"
    err = ref(capfd, query.format(union))[2]
    assert f"help: the names are the same in another order: write {union} BY NAME\n" in err
    assert ref(capfd, "-q", query.format(f"{union} BY NAME"))[1] == "a,b\n1,x\n2,y\n"


def test_insert_into_a_path_is_told_of_a_sink_and_the_way_writes_the_file(
    capfd: pytest.CaptureFixture[str], place: Path
) -> None:
    (place / "o").mkdir()
    select = "SELECT id FROM 'trips.csv'"
    err = ref(capfd, f"INSERT INTO 'o/ins.csv' {select}")[2]
    way = err.partition("help: a file is written by a sink: ")[2].partition("\n")[0]
    assert ref(capfd, "-q", f"{way.replace(' name', ' n')} {select}")[0] == 0
    assert (place / "o" / "ins.csv").read_text() == "id\n1\n2\n3\n"
    err = ref(capfd, f'INSERT INTO "o/2.csv" {select}')[2]
    declared, _, insert = err.partition("help: declare it: ")[2].partition("\n")[0].partition(", then ")
    assert insert == 'INSERT INTO "2"' and ref(capfd, "-q", f"{declared}; {insert} {select}")[0] == 0
    assert (place / "o" / "2.csv").read_text() == "id\n1\n2\n3\n"


def test_copy_is_told_how_files_are_read_and_written(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    err = ref(capfd, "COPY (SELECT id FROM 'trips.csv') TO 'o.csv'")[2]
    way = err.partition("write one by ")[2].partition(" …")[0]
    assert ref(capfd, "-q", f"{way} SELECT id FROM 'trips.csv'")[0] == 0
    assert (place / "o.csv").read_text() == "id\n1\n2\n3\n"


def test_query_may_read_and_write_what_its_user_may_unless_it_is_confined(
    capfd: pytest.CaptureFixture[str], place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away")
    text = f"CREATE SINK o WITH (path = '{away}/o.csv'); INSERT INTO o SELECT id FROM '{place}/trips.csv'"
    (place / "q.cq").write_text(text)
    code, _, err = ref(capfd, "q.cq", "--restrict", str(place))
    assert code == 2 and f"--restrict {away}" in err
    assert ref(capfd, "q.cq", "--restrict", str(place), "--restrict", str(away))[0] == 0
    assert ref(capfd, "q.cq")[0] == 0 and (away / "o.csv").read_text() == "id\n1\n2\n3\n"
    with pytest.raises(CqError, match="outside the directories"):
        api.load("q.cq", restrict=away).check()
    assert api.load("q.cq", restrict=[away, place]).check() == ()


def test_null_device_takes_every_format_and_other_devices_none(capfd: pytest.CaptureFixture[str]) -> None:
    for format_ in ((), ("-f", "parquet")):
        assert ref(capfd, "-q", "SELECT * FROM 'trips.csv'", "-o", "/dev/null", *format_) == (0, "", "")
    assert "not a regular file" in ref(capfd, "SELECT 1", "-o", "/dev/full", "-f", "csv")[2]


def test_rows_are_partitioned_into_a_directory_that_is_read_back_whole(
    capfd: pytest.CaptureFixture[str], place: Path
) -> None:
    query = "SELECT id, zip, CASE id WHEN 1 THEN 'a/b' WHEN 2 THEN '' END AS k FROM 'trips.csv'"
    assert ref(capfd, "-q", query, "-o", "out/", "-f", "csv", "--partition-by", "k,zip") == (0, "", "")
    written = {str(p.relative_to(place / "out")): p.read_text() for p in (place / "out").rglob("*.csv")}
    assert written == {
        "k=a%2Fb/zip=00501/part.csv": "id,zip,k\n1,00501,a/b\n",
        "k=/zip=10001/part.csv": 'id,zip,k\n2,10001,""\n',
        "k=__HIVE_DEFAULT_PARTITION__/zip=__HIVE_DEFAULT_PARTITION__/part.csv": "id,zip,k\n3,,\n",
    }
    read = "CREATE STREAM o (id BIGINT, zip VARCHAR, k VARCHAR) WITH (path = 'out/**/*.csv'); SELECT k, zip, id FROM o"
    assert sorted(ref(capfd, "-q", read)[1].splitlines()) == ['"",10001,2', ",,3", "a/b,00501,1", "k,zip,id"]
    assert "is not empty" in ref(capfd, query, "-o", "out/", "-f", "csv", "--partition-by", "k")[2]
    assert "--partition-by COLUMN" in ref(capfd, query, "-o", "new/", "-f", "csv")[2]
    assert 'did you mean "zip"?' in ref(capfd, query, "-o", "new/", "-f", "csv", "--partition-by", "zap")[2]
    sink = (
        "CREATE SINK o WITH (path = 'sunk', format = 'json', compression = 'gzip', partition_by = 'id'); INSERT INTO o "
    )
    assert ref(capfd, "-q", sink + query)[0] == 0 and (place / "sunk" / "id=2" / "part.json.gz").exists()


def test_run_that_fails_leaves_no_partition(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    query = "SELECT id, 1 / (id - 2) AS x FROM 'trips.csv'"
    assert ref(capfd, query, "-o", "deep/out/", "-f", "parquet", "--partition-by", "id")[0] == 1
    assert not (place / "deep").exists()


def test_more_partitions_than_a_run_may_have_are_refused(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "many.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(1001)))
    code, _, err = ref(capfd, "SELECT id FROM 'many.csv'", "-o", "out/", "-f", "csv", "--partition-by", "id")
    assert code == 1 and "more than 1,000 partitions by id" in err and not (place / "out").exists()


def test_paths_keep_their_quotes_when_a_query_is_formatted(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "f.cq").write_text(
        "select * from 'a b.csv' x join tumble(table 'c.csv', descriptor(ts), 5) y on x.k = y.k"
    )
    assert cq(capfd, "fmt", "f.cq")[0] == 0
    assert "FROM 'a b.csv' AS x" in (place / "f.cq").read_text() and "TABLE 'c.csv'" in (place / "f.cq").read_text()


def test_shared_binding_of_a_path_is_one_stream() -> None:
    from cq.compiler.passes import compile

    text = "SELECT a.id FROM 'trips.csv' a JOIN 'trips.csv' b ON a.id = b.id"
    assert [s.name for s in compile(text, inputs=Inputs(FileAccess(Path.cwd()))).streams] == ["trips"]
