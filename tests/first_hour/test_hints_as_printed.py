"""The code that stands in a hint runs as it is printed, whatever files, streams and columns are called."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import cq, ref

from cq.grammar.inline import quoted, string
from cq.records import dataclass

FILES = ("2024-03.csv", "mix/1.csv", "order.csv", "größe.csv", "my trips.csv", "o'brien.csv", 'a"b.csv', "x.y.z.csv")
COLUMNS = ("at", "2nd", "order", "größe", "picked up", "it's", 'a"b', "Picked", "select", "a.b")
SEVERAL = [(file, "at") for file in FILES] + [("trips.csv", column) for column in COLUMNS]
NAMED = pytest.mark.parametrize(("file", "column"), SEVERAL)

DECLARED = re.compile(
    r"(?P<statement>CREATE STREAM .*?\)); then read FROM (?P<stream>.+?)"
    r"(?: by (?P<by>.+)|, and write (?P<cast>.+) where (?P<old>.+) is used)?$"
)


@dataclass(frozen=True, slots=True)
class Way:
    """What a hint says to write: a statement before the query, and what to read from and by."""

    statement: str
    stream: str
    by: str
    cast: str


def ways(err: str) -> list[str]:
    return [line.partition("= help: ")[2] for line in err.splitlines() if "= help: " in line]


def declaration(err: str) -> Way:
    """The first hint that declares a stream."""
    found = next((m for way in ways(err) if (m := DECLARED.search(way))), None)
    assert found is not None, err
    return Way(found["statement"], found["stream"], found["by"] or "", found["cast"] or "")


def write(file: str, rows: str) -> None:
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(rows)


def header(*names: str) -> str:
    return ",".join('"' + n.replace('"', '""') + '"' for n in names) + "\n"


TIMES = "2024-01-01 00:00:10,1\n2024-01-01 00:00:05,2\n"
COUNTED = (0, "n\n2\n", "")


@NAMED
def test_watermark_of_a_time_that_a_group_names(capfd: pytest.CaptureFixture[str], file: str, column: str) -> None:
    write(file, header(column, "v") + TIMES)
    query = "SELECT COUNT(*) AS n FROM {} GROUP BY TUMBLE({}, INTERVAL '1' HOUR)"
    code, _, err = ref(capfd, "-q", query.format(string(file), quoted(column)))
    assert code == 1 and "CQ0401" in err
    way = declaration(err)
    by = way.by or quoted(column)
    assert ref(capfd, "-q", f"{way.statement}; {query.format(way.stream, by)}") == COUNTED
    command = next(w.partition(" prints it")[0] for w in ways(err) if " prints it" in w)
    code, printed, err = cq(capfd, *shlex.split(command)[1:])
    assert code == 0, err
    assert ref(capfd, "-q", f"{printed}{query.format(way.stream, by)}")[:2] == COUNTED[:2]


@NAMED
def test_time_that_is_computed_of_text(capfd: pytest.CaptureFixture[str], file: str, column: str) -> None:
    write(file, header(column, "v") + "31.01.2024 10:00,1\n31.01.2024 10:01,2\n")
    query = "SELECT COUNT(*) AS n FROM TUMBLE({}, DESCRIPTOR({}), INTERVAL '1' HOUR) GROUP BY window_start"
    err = ref(capfd, "-q", query.format(string(file), quoted(column)))[2]
    way = declaration(err)
    assert ref(capfd, "-q", f"{way.statement}; {query.format(way.stream, way.by)}") == COUNTED


@NAMED
def test_type_that_a_later_row_contradicts(capfd: pytest.CaptureFixture[str], file: str, column: str) -> None:
    write(file, header(column, "v") + "1,1\n" * 3 + "x,2\n")
    code, _, err = ref(capfd, "-q", f"SELECT {quoted(column)} FROM {string(file)}", "-w", "guess_rows=2")
    assert code == 1 and "CQ0702" in err
    way = declaration(err)
    read = f"{way.statement}; SELECT COUNT({way.cast}) AS n FROM {way.stream}"
    assert ref(capfd, "-q", read) == (0, "n\n3\n", "")


@NAMED
def test_column_of_both_sides_and_of_no_group(capfd: pytest.CaptureFixture[str], file: str, column: str) -> None:
    write(file, header(column, "v") + TIMES)
    join = "SELECT {} AS it FROM {} AS {} JOIN {} AS b ON {}.v = b.v"
    place, alias, shown = string(file), quoted(Path(file).stem), quoted(column)
    err = ref(capfd, "-q", join.format(shown, place, alias, place, alias))[2]
    for way in ways(err)[0].removeprefix("write ").split(" or "):
        assert ref(capfd, "-q", join.format(way, place, alias, place, alias))[0] == 0, way
    err = ref(capfd, "-q", f"SELECT {shown}, COUNT(*) AS n FROM {place} GROUP BY v")[2]
    for way in ways(err)[0].partition("or write ")[2].split(" or "):
        assert ref(capfd, "-q", f"SELECT {way} AS it, COUNT(*) AS n FROM {place} GROUP BY v")[0] == 0, way


@NAMED
def test_columns_of_two_types_in_a_union(capfd: pytest.CaptureFixture[str], file: str, column: str) -> None:
    write(file, header(column, "v") + "1,07\n")
    place = string(file)
    text, number = "SELECT v AS it FROM {0}", "SELECT {1} AS it FROM {0}"
    for union in (f"{text} UNION ALL {number}", f"{number} UNION ALL {text}"):
        err = ref(capfd, "-q", union.format(place, quoted(column)))[2]
        cast = ways(err)[0].partition(": ")[2]
        code, out, err = ref(capfd, "-q", union.format(place, cast))
        assert (code, sorted(out.split()), err) == (0, ["07", "1", "it"], "")


NAMES = ("2x", "order", "größe", "my rows", "it's", 'a"b', "Upper")


@pytest.mark.parametrize("name", NAMES)
def test_sink_and_stream_that_are_not_declared(capfd: pytest.CaptureFixture[str], name: str) -> None:
    query = f"INSERT INTO {quoted(name)} SELECT id FROM 'trips.csv'"
    err = ref(capfd, "-q", query)[2]
    assert ref(capfd, "-q", f"{ways(err)[0].removeprefix('declare it: ')}; {query}") == (0, "", "")
    assert Path(f"{name}.csv").read_text() == "id\n1\n2\n3\n"
    err = ref(capfd, "-q", f"SELECT id FROM {quoted(name)}")[2]
    declared = ways(err)[0].removeprefix("declare it: ").replace("…", "id BIGINT", 1).replace("…", "trips.csv", 1)
    assert ref(capfd, "-q", f"{declared}; SELECT id FROM {quoted(name)}") == (0, "id\n1\n2\n3\n", "")


@pytest.mark.parametrize("name", NAMES)
def test_table_that_a_trigger_writes(capfd: pytest.CaptureFixture[str], name: str) -> None:
    read = "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 's.csv');"
    Path("s.csv").write_text("k,ts\n1,2024-01-01 00:00:00\n")
    trigger = f"CREATE TRIGGER t AFTER INSERT ON s BEGIN INSERT INTO {quoted(name)} VALUES (new.k); END;"
    query = f"SELECT * FROM {quoted(name)};"
    err = ref(capfd, "-q", f"{read}{trigger}{query}")[2]
    way = next(w for w in ways(err) if w.startswith("declare it: CREATE TABLE"))
    declared = way.removeprefix("declare it: ").replace(", …", "")
    assert ref(capfd, "-q", f"{read}{declared};{trigger}{query}") == (0, "k\n1\n", "")


@pytest.mark.parametrize("column", COLUMNS)
def test_longer_delay_for_rows_that_were_late(capfd: pytest.CaptureFixture[str], column: str) -> None:
    Path("x.csv").write_text(header(column, "v") + TIMES.replace("00:00:10", "00:01:05"))
    query = "CREATE STREAM x ({} TIMESTAMP, v BIGINT, {}) WITH (path = 'x.csv');"
    query += f"SELECT COUNT(*) AS n FROM TUMBLE(x, {quoted(column)}, INTERVAL '1' MINUTE) GROUP BY window_start"
    code, out, err = ref(capfd, query.format(quoted(column), f"WATERMARK FOR {quoted(column)}"))
    assert (code, out) == (0, "n\n1\n") and "1 late row was dropped" in err
    mark = re.search(r"WATERMARK FOR .* - INTERVAL '[^']*'", err)
    assert mark is not None, err
    assert ref(capfd, "-q", query.format(quoted(column), mark[0])) == (0, "n\n1\n1\n", "")


HOUR = "SELECT COUNT(*) AS n FROM TUMBLE({}, DESCRIPTOR({}), INTERVAL '1' HOUR) GROUP BY window_start"
TRIPS = (0, "n\n3\n", "")


def test_time_that_a_view_renames(capfd: pytest.CaptureFixture[str]) -> None:
    view = "CREATE VIEW u AS SELECT ts AS t FROM {0} UNION ALL SELECT ts FROM {0};" + HOUR.format("u", "t")
    way = declaration(ref(capfd, "-q", view.format("'trips.csv'"))[2])
    assert ref(capfd, "-q", f"{way.statement}; {view.format(way.stream)}") == (0, "n\n6\n", "")


@pytest.mark.parametrize("column", ["fare", "id"])
def test_column_that_is_no_time_is_told_of_one_that_is(capfd: pytest.CaptureFixture[str], column: str) -> None:
    way = declaration(ref(capfd, "-q", HOUR.format("'trips.csv'", column))[2])
    read = ref(capfd, "-q", f"{way.statement}; {HOUR.format(way.stream, way.by)}")
    assert read == TRIPS


def test_field_of_a_row_that_is_a_time(capfd: pytest.CaptureFixture[str]) -> None:
    Path("m.jsonl").write_text('{"meta": {"ts": "2024-01-01 00:00:00"}}\n')
    query = "SELECT COUNT(*) AS n FROM {} GROUP BY TUMBLE({}, INTERVAL '1' HOUR)"
    way = declaration(ref(capfd, "-q", query.format("'m.jsonl'", "meta.ts"))[2])
    assert ref(capfd, "-q", f"{way.statement}; {query.format(way.stream, way.by or 'meta.ts')}") == (0, "n\n1\n", "")


def test_text_of_a_declared_stream_that_is_a_time(capfd: pytest.CaptureFixture[str]) -> None:
    query = "CREATE STREAM s (id BIGINT, ts VARCHAR{}) WITH (path = 'trips.csv');"
    err = ref(capfd, "-q", query.format("") + HOUR.format("s", "ts"))[2]
    mark = ways(err)[0].removeprefix("add to CREATE STREAM s: ")
    at = mark.partition(" AS ")[0]
    assert ref(capfd, "-q", query.format(f", {mark}") + HOUR.format("s", at)) == TRIPS


def test_files_without_a_time_are_told_so(capfd: pytest.CaptureFixture[str]) -> None:
    err = ref(capfd, "-q", HOUR.format("'semi.csv'", "v"), "-w", "delimiter=;")[2]
    assert "cannot recognise the time format of v; specify its pattern or unit" in err
    Path("x.csv").write_text("a,b\n1.5,true\n")
    err = ref(capfd, "-q", HOUR.format("'x.csv'", "a"))[2]
    assert ways(err) == [
        "no column of x is a time: compute one where the stream is declared, "
        "CREATE STREAM x (at AS expression, WATERMARK FOR at, …)"
    ]
    Path("x.csv").write_text("ts,b\n")
    err = ref(capfd, "-q", HOUR.format("'x.csv'", "ts"))[2]
    assert "no row shows the time format of ts; specify its pattern or unit" in err
    Path("x.csv").write_text("ts,b\n,1\n,2\n")
    err = ref(capfd, "-q", HOUR.format("'x.csv'", "ts"))[2]
    assert "ts has no value in all 2 rows; specify the pattern or unit of its times" in err


ZONED = "at,w\n2024-01-01T01:00:04+01:00,a\n2024-01-01T01:00:08+01:00,b\n"


def rows_of(done: tuple[int, str, str]) -> list[str]:
    """The rows of a run that went well, sorted."""
    assert done[0] == 0, done[2]
    return sorted(done[1].splitlines()[1:])


@pytest.mark.parametrize(
    ("tables", "sign", "rows"),
    [
        ("'trips.csv' AS t ASOF JOIN 'zoned.csv' AS z", ">=", ["1,b", "2,a", "3,b"]),
        ("'zoned.csv' AS z ASOF JOIN 'trips.csv' AS t", "<=", ["2,b"]),
    ],
)
def test_asof_join_of_a_time_with_an_instant(
    capfd: pytest.CaptureFixture[str], tables: str, sign: str, rows: list[str]
) -> None:
    Path("zoned.csv").write_text(ZONED)
    query = f"SELECT id, w FROM {tables} ON t.ts {sign} z.at"
    code, _, err = ref(capfd, "-q", query)
    assert code == 1 and '"ts" is TIMESTAMP, "at" TIMESTAMP_LTZ' in err
    way = ways(err)[0].removeprefix("read ")
    assert rows_of(ref(capfd, "-q", query.replace("'zoned.csv' AS z", way))) == rows


def test_asof_join_of_a_time_with_an_instant_of_declared_streams(capfd: pytest.CaptureFixture[str]) -> None:
    Path("zoned.csv").write_text(ZONED)
    declared = "CREATE STREAM {0} (WATERMARK FOR {1} AS {1} - INTERVAL '9' SECOND) WITH (path = '{0}.csv');"
    streams = declared.format("trips", "ts") + declared.format("zoned", "at")
    query = "SELECT id, w FROM trips ASOF JOIN {} ON trips.ts >= zoned.at"
    way = ways(ref(capfd, "-q", streams + query.format("zoned"))[2])[0].removeprefix("read ")
    assert rows_of(ref(capfd, "-q", streams + query.format(way))) == ["1,b", "2,a", "3,b"]


def test_union_of_a_time_with_an_instant(capfd: pytest.CaptureFixture[str]) -> None:
    Path("zoned.csv").write_text(ZONED)
    streams = "CREATE STREAM s (WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (path = 'trips.csv');"
    streams += "CREATE STREAM z (WATERMARK FOR at) WITH (path = 'zoned.csv');"
    query = "CREATE VIEW u AS SELECT ts AS t FROM s UNION ALL SELECT at FROM z;" + HOUR.format("u", "t")
    way = ways(ref(capfd, "-q", streams + query)[2])[0]
    mark = way.partition("CREATE STREAM s instead: ")[2]
    made = mark.partition(" AS ")[0]
    streams = streams.replace("WATERMARK FOR ts AS ts", f"{mark} AS {made}")
    assert ref(capfd, "-q", streams + query.replace("SELECT ts AS t", f"SELECT {made} AS t")) == (0, "n\n5\n", "")


ARRAYS = {
    "BIGINT": "[1, -2]",
    "DOUBLE": "[1.5e0, 2e10]",
    "DECIMAL(5,2)": "[CAST(1.25 AS DECIMAL(5,2))]",
    "BOOLEAN": "[true, false]",
    "DATE": "[DATE '2024-01-31', DATE '2024-02-29']",
    "TIMESTAMP": "[TIMESTAMP '2024-01-31 10:00:00', TIMESTAMP '2024-02-29 00:00:00.5']",
}


@pytest.mark.parametrize("element", ARRAYS)
def test_array_that_was_written_as_csv(capfd: pytest.CaptureFixture[str], element: str) -> None:
    made = f'SELECT {ARRAYS[element]} AS "the a" UNION ALL SELECT CAST([] AS {element} ARRAY)'
    wanted = ref(capfd, "-q", made, "-f", "json")
    assert wanted[0] == 0 and ref(capfd, "-q", made, "-o", "a.csv")[0] == 0
    stream = 'CREATE STREAM a ("the a" {}) WITH (path = \'a.csv\'); SELECT {} AS "the a" FROM a'
    err = ref(capfd, "-q", stream.format(f"{element} ARRAY", '"the a"'))[2]
    way = ways(err)[0].partition("declare it VARCHAR and write ")[2]
    assert ref(capfd, "-q", stream.format("VARCHAR", way), "-f", "json") == wanted


def test_fraction_of_an_interval(capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT {} AS it FROM 'trips.csv'"
    err = ref(capfd, "-q", query.format("fare * INTERVAL '1' MINUTE"))[2]
    whole, finer = ways(err)[0].removeprefix("multiply an integer: ").split(", or, to the second, ")
    assert ref(capfd, "-q", query.format(whole)) == (0, "it\n00:03:00\n00:04:00\n00:01:00\n", "")
    assert ref(capfd, "-q", query.format(finer)) == (0, "it\n00:02:30\n00:04:00\n00:00:30\n", "")


CLOCKS = "t,d,i\n00:02:00,120.4,120\n"


@pytest.mark.parametrize("column", ["t", "d", "i"])
def test_column_that_becomes_an_interval(capfd: pytest.CaptureFixture[str], column: str) -> None:
    Path("x.csv").write_text(CLOCKS)
    query = "CREATE STREAM x (t VARCHAR, d DOUBLE, i INTEGER) WITH (path = 'x.csv'); SELECT {} AS it FROM x"
    way = ways(ref(capfd, "-q", query.format(f"CAST({column} AS INTERVAL)"))[2])[0]
    way = re.sub(r"\bx\b", column, re.split(r", write |integer: ", way)[1])
    assert ref(capfd, "-q", query.format(way)) == (0, "it\n00:02:00\n", "")


def test_table_without_a_key_that_a_trigger_changes(capfd: pytest.CaptureFixture[str]) -> None:
    Path("s.csv").write_text("k,ts\n1,2024-01-01 00:00:00\n")
    query = "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 's.csv'); {};"
    query += "CREATE TRIGGER t AFTER INSERT ON s BEGIN INSERT INTO seen VALUES (new.k);"
    query += " DELETE FROM seen WHERE k = new.k + 1; END; SELECT * FROM seen;"
    err = ref(capfd, "-q", query.format("CREATE TABLE seen (k BIGINT)"))[2]
    way = ways(err)[0].removeprefix("make it a table with a key: ").replace(", …", "")
    assert ref(capfd, "-q", query.format(way)) == (0, "k\n1\n", "")


@pytest.mark.parametrize("name", ["a", "order book", "it's"])
def test_relation_of_a_table_that_can_be_read(capfd: pytest.CaptureFixture[str], name: str) -> None:
    Path("s.csv").write_text("k,ts\n1,2024-01-01 00:00:00\n")
    table, changes = quoted(name), quoted(f"{name}_changes")
    query = "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH ({});"
    query += f" CREATE TABLE {table} (k BIGINT PRIMARY KEY);"
    query += "CREATE TRIGGER g AFTER INSERT ON s BEGIN {}; END; {}"
    write, file = f"INSERT INTO {table} VALUES (new.k)", "path = 's.csv'"
    err = ref(capfd, "-q", query.format("path = 's.csv', follow = true", write, f"SELECT * FROM {table}"))[2]
    way = ways(err)[0].removeprefix("read what changes in it: ")
    assert ref(capfd, "-q", query.format(file, write, way)) == (0, "event_time,op,k\n2024-01-01 00:00:00,+I,1\n", "")
    err = ref(capfd, "-q", query.format(file, f"SELECT k FROM {table} WHERE k = 1", f"SELECT * FROM {changes}"))[2]
    way = ways(err)[0].removeprefix("read its rows: ")
    assert ref(capfd, "-q", query.format(file, write, way)) == (0, "k\n1\n", "")


def test_fields_of_what_is_no_object_in_a_later_row(capfd: pytest.CaptureFixture[str]) -> None:
    Path("x.jsonl").write_text('{"my o": {"b": "1x"}}\n' * 3 + '{"my o": "2x"}\n')
    err = ref(capfd, "-q", "SELECT \"my o.b\" FROM 'x.jsonl'", "-w", "guess_rows=2")[2]
    declared, _, value = ways(err)[0].removeprefix("declare all of it: ").partition(", and write ")
    query = f"CREATE STREAM x ({declared}) WITH (path = 'x.jsonl'); SELECT {value} AS it FROM x"
    assert ref(capfd, "-q", query) == (0, "it\n1x\n1x\n1x\n\n", "")


def test_bytes_that_are_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"id": [1], "b": [b"\xff\xfe"]}), "x.parquet")
    stream = "CREATE STREAM x (id BIGINT, {}) WITH (path = 'x.parquet'); SELECT * FROM x"
    declared, _, _ = ways(ref(capfd, "-q", stream.format("b VARCHAR"))[2])[0].partition(", or leave the column out")
    declaration = declared.removeprefix("declare it BINARY: ")
    assert ref(capfd, "-q", stream.format(declaration)) == (0, "id,b\n1,FFFE\n", "")
    assert ref(capfd, "-q", "SELECT * EXCLUDE (b) FROM 'x.parquet'") == (0, "id\n1\n", "")


def test_signs_are_explained_as_they_are_written(capfd: pytest.CaptureFixture[str]) -> None:
    for sign in ("->>", "->", "-", "+"):
        code, out, _ = cq(capfd, "docs", sign)
        assert code == 0 and sign in out
    assert cq(capfd, "docs", "--nothing")[0] != 0


def test_parameter_that_is_a_text_is_cast_and_not_written_without_quotes(capfd: pytest.CaptureFixture[str]) -> None:
    given = ("--var", "a=007", "--var", "b=x")
    way = ways(ref(capfd, "-q", "SELECT :a + 1 AS it", *given)[2])[0].removeprefix("write ")
    assert ref(capfd, "-q", f"SELECT {way} + 1 AS it", "--var", "a=007") == (0, "it\n8\n", "")
    way = ways(ref(capfd, "-q", "SELECT :a - :b AS it", *given)[2])[0].removeprefix("CAST both to numbers: ")
    assert ref(capfd, "-q", f"SELECT {way} AS it", "--var", "a=007", "--var", "b=2") == (0, "it\n5.0\n", "")


def test_months_beside_days(capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT INTERVAL '1' MONTH > {} AS it"
    err = ref(capfd, "-q", query.format("INTERVAL '20' DAY"))[2]
    days = ways(err)[0].rpartition(", as ")[2]
    assert ref(capfd, "-q", query.replace("INTERVAL '1' MONTH", days).format("INTERVAL '20' DAY")) == (
        0,
        "it\ntrue\n",
        "",
    )


def test_directory_that_is_not_there_is_made(capfd: pytest.CaptureFixture[str]) -> None:
    err = ref(capfd, "-q", "SELECT 1 AS x", "-o", "my days/x.csv")[2]
    subprocess.run(ways(err)[0].removeprefix("create its directory: "), shell=True, check=True)
    assert ref(capfd, "-q", "SELECT 1 AS x", "-o", "my days/x.csv")[0] == 0
    assert Path("my days/x.csv").read_text() == "x\n1\n"


def test_text_that_is_called_packed(capfd: pytest.CaptureFixture[str]) -> None:
    Path("x.csv.gz").write_text("a\n1\n")
    err = ref(capfd, "-q", "SELECT * FROM 'x.csv.gz'")[2]
    option = ways(err)[0].rpartition("or cq run ")[2]
    assert ref(capfd, "-q", "SELECT * FROM 'x.csv.gz'", *shlex.split(option)) == (0, "a\n1\n", "")


def test_misspelt_query_is_taken_for_no_file(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = ref(capfd, "-q", "SELEC 1 AS x")
    assert code != 0 and ways(err) == ['did you mean "SELECT"?']
    assert "no such file" in ref(capfd, "-q", "my query.cq")[2]


@pytest.mark.parametrize(
    ("left", "right", "limit"),
    [
        ("", "", "b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"),
        (', "my time" TIMESTAMP', "", 'b.ts BETWEEN a."my time" AND a."my time" + INTERVAL \'5\' SECOND'),
        (", at TIMESTAMP", ", at TIMESTAMP", "b.at BETWEEN a.at AND a.at + INTERVAL '5' SECOND"),
        (", at TIMESTAMP, WATERMARK FOR at", "", "b.ts BETWEEN a.at AND a.at + INTERVAL '5' SECOND"),
    ],
)
@pytest.mark.parametrize("join", ["JOIN b ON a.k = b.k{}", "SEMI JOIN b ON a.k = b.k{}"])
def test_join_that_keeps_all_rows(capfd, left: str, right: str, limit: str, join: str) -> None:
    """It named columns that are not there, and times without a WATERMARK, which limit nothing."""
    declared = [
        f"CREATE STREAM {name} (k BIGINT{more}) WITH (path = '{name}.csv', follow = true);"
        for name, more in (("a", left), ("b", right))
    ]
    query = f"SELECT a.k AS k FROM a {join}"
    way = next(w for w in ways(cq(capfd, "check", " ".join(declared) + query.format(""))[2]) if "the times are" in w)
    event_times, _, shown = way.rpartition("limit how far apart the times are: ")
    assert shown.removeprefix("ON … AND ") == limit
    for stream, mark in re.findall(r"([ab]) \((.*?)\)", event_times):
        declared["ab".index(stream)] = declared["ab".index(stream)].replace(") WITH", f", {mark}) WITH")
    code, out, err = cq(capfd, "explain", " ".join(declared) + query.format(f" AND {limit}"))
    assert code == 0 and "interval_join" in out, err
