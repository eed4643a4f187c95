"""The Python face: loading, running, comparing; and that importing it costs nothing."""

from __future__ import annotations

import datetime as dt
import html
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy
import pandas
import polars
import pyarrow as pa
import pytest

import cq
from cq.connectors.sinks.writers import Discard
from cq.engines.protocol import RunOptions
from cq.engines.query import run_query
from cq.errors import mistakes_told

QUERY = """CREATE STREAM bid (id BIGINT, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts);
SELECT window_start, id, COUNT(*) AS n, SUM(price) AS total
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, id;
"""
ROWS = [{"id": n % 3, "price": n / 2, "ts": dt.datetime(2024, 1, 1, 0, n // 10, n % 10)} for n in range(60)]
ENGINES = ["reference", "native"]


@pytest.mark.parametrize("engine", ["reference", "native", "spark"])
@pytest.mark.filterwarnings("ignore:trigger")
def test_program_without_outputs_is_refused_by_every_engine(engine: str) -> None:
    trigger = "CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE TRIGGER g AFTER INSERT ON s DELETE FROM t WHERE k = new.k;"
    for text in ("CREATE STREAM s (k BIGINT);", f"CREATE STREAM s (k BIGINT); {trigger}"):
        with pytest.raises(cq.UsageError, match="no output"):
            cq.run(text, {"s": [{"k": 1}]}, engine=engine)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT DF.v FROM DF", "DF"),
        ("SELECT df.v FROM df", "Df"),
        ('SELECT v FROM "DF"', "DF"),
        ("CREATE STREAM DF (v BIGINT); SELECT v FROM DF", "DF"),
        ("WITH x AS (SELECT * FROM DF) SELECT x.v FROM x", "DF"),
    ],
)
def test_input_is_found_by_its_name_in_any_letter_case(text: str, name: str) -> None:
    assert cq.sql(text, **{name: [{"v": 1}]}).run(engine="reference").to_pylist() == [{"v": 1}]


def test_inputs_that_differ_in_letter_case_are_told_apart_by_quotes() -> None:
    given = {"DF": [{"v": 1}], "Df": [{"v": 2}]}
    with pytest.raises(cq.CompileError, match='unknown stream, table or view "df"'):
        cq.sql("SELECT v FROM df", **given).check()
    assert cq.sql('SELECT a.v + b.v AS v FROM "DF" AS a JOIN "Df" AS b ON a.v + 1 = b.v', **given).check() == ()
    given = {"DF": [{"v": 1}], "df": [{"v": 2}]}
    assert cq.sql('SELECT a.v FROM DF AS a JOIN "DF" AS b ON a.v = b.v + 1', **given).check() == ()


def test_import_is_light() -> None:
    program = (
        "import time; began = time.perf_counter(); import cq; seconds = time.perf_counter() - began\n"
        "import sys; heavy = {'numba', 'pyspark', 'pyarrow', 'numpy', 'click', 'lark'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert seconds < 0.3, seconds\n"
        "assert cq.CompileError and 'load' in dir(cq)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("engine", ENGINES)
def test_result_is_a_mapping_of_outputs(engine: str) -> None:
    result = cq.run(QUERY, {"bid": ROWS}, engine=engine, threads=0)
    assert list(result) == ["result"] and len(result["result"]) == 18
    assert result["result"].to_arrow().schema.names == ["window_start", "id", "n", "total"]
    assert isinstance(result["result"].to_pandas(), pandas.DataFrame)
    assert isinstance(result["result"].to_polars(), polars.DataFrame)
    assert pa.table(result["result"]).num_rows == 18
    assert result.stats.rows_in == {"bid": 60} and len(result.stats.hashes["result"]) == 16
    assert result.get("result") is result["result"] and result.get("resutl") is None
    with pytest.raises(cq.UsageError, match="no output"):
        result["resutl"]
    with pytest.raises(cq.UsageError, match="no output"):
        result[0]  # type: ignore[index]


def test_no_frame_changes_a_value() -> None:
    beyond = 2**53 + 1  # the first integer that no DOUBLE has
    rows = [{"a": beyond, "t": 7, "b": True, "l": [beyond, None], "w": beyond}]
    rows.append({"a": None, "t": None, "b": None, "l": None, "w": 0})
    text = (
        "CREATE STREAM s (a BIGINT, t TINYINT, b BOOLEAN, l BIGINT[], w BIGINT);"
        "SELECT a, w, t, b, l, CAST(a AS DECIMAL(20, 2)) AS d FROM s"
    )
    result = cq.sql(text, s=rows).run(engine="reference")
    frame = result.to_pandas()
    assert list(frame.columns) == result.to_arrow().column_names
    assert [str(frame[n].dtype) for n in "awtb"] == ["Int64", "int64", "Int8", "boolean"]
    assert frame["a"][0] == beyond and frame["a"][1] is pandas.NA and list(frame["l"][0]) == [beyond, None]
    again = cq.sql("SELECT a, w, t, b, l, d FROM s", s=frame).run(engine="reference")
    assert again.to_pylist() == result.to_pylist() == result.to_polars().to_dicts()
    alone = cq.sql("CREATE STREAM s (a BIGINT); SELECT a FROM s", s=rows).run(engine="reference").to_pandas()
    assert list(alone["a"]) == [beyond, pandas.NA] and list(alone.index) == [0, 1]


def test_frames_need_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    result = cq.sql("SELECT 1 AS a").run(engine="reference")
    for package, to_frame in (("pandas", result.to_pandas), ("polars", result.to_polars)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(cq.UsageError, match=f"{package} is not installed"):
            to_frame()


def test_inputs_of_every_kind_give_the_same_result(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    frame = table.to_pandas()
    frame.to_csv(tmp_path / "b.csv", index=False)
    expected = cq.run(QUERY, {"bid": ROWS}, engine="reference").stats.hashes
    for given in (table, frame, polars.from_arrow(table), table.to_reader(), tmp_path / "b.csv"):
        assert cq.run(QUERY, {"bid": given}, engine="reference").stats.hashes == expected, type(given)


@pytest.mark.parametrize("engine", ENGINES)
def test_hash_of_a_table_in_memory_is_that_of_its_rows_as_they_come(engine: str) -> None:
    query = cq.sql(QUERY, bid=ROWS)
    asked = query.run(engine=engine, threads=0).stats.hashes
    compiled = query.bound()
    sinks = {o.name: Discard() for o in compiled.outputs}
    assert asked == run_query(compiled, sinks, engine, RunOptions(threads=0)).hashes
    assert len(asked) == 1 and "result" in asked and repr(asked) == repr(dict(asked))
    with pytest.raises(KeyError):
        asked["resutl"]


SHUFFLED = [{"ts": dt.datetime(2024, 1, 1, 0, 0, s), "v": s} for s in (1, 20, 2, 40, 3)]
IN_WINDOWS = (
    "CREATE STREAM t (WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);"
    "SELECT SUM(v) AS v FROM TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start"
)
LATE = (
    "2 late rows were dropped by window (line 1); to drop fewer, "
    "increase the delay of t, now 5 seconds: WATERMARK FOR ts AS ts - INTERVAL '10 seconds'"
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("run", [lambda q, e: q.run(engine=e), lambda q, e: cq.run(q, engine=e)])
def test_late_rows_are_warned_of_and_stand_under_the_rows(engine: str, run: Callable[..., cq.Result]) -> None:
    # t: 1 20 | 2 40 | 3, of which 2 and 3 are late
    with pytest.warns(UserWarning) as told:
        result = run(cq.sql(IN_WINDOWS, t=SHUFFLED), engine)
    assert [(str(w.message), w.filename) for w in told] == [(LATE, __file__)]
    assert result.losses == (LATE,) and result.stats.late_rows == 2
    assert str(result).endswith(f"\nnote: {LATE}") and f"<p>note: {html.escape(LATE)}</p>" in result._repr_html_()


SHUFFLED_TABLE = pa.Table.from_pylist(SHUFFLED)
KEPT = {
    "list": SHUFFLED,
    "dict": SHUFFLED_TABLE.to_pydict(),
    "table": SHUFFLED_TABLE,
    "pandas": SHUFFLED_TABLE.to_pandas(),
    "polars": polars.from_arrow(SHUFFLED_TABLE),
    "texts": [row | {"ts": str(row["ts"])} for row in SHUFFLED],
    "zoned": [row | {"ts": row["ts"].replace(tzinfo=dt.UTC)} for row in SHUFFLED],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KEPT)
def test_declaration_that_an_error_shows_of_rows_in_memory_makes_none_of_them_late(kind: str) -> None:
    # t: 1 20 2 40 3: as late as 37 s
    window = "SELECT SUM(v) AS v FROM TUMBLE({}, INTERVAL '10' SECOND) GROUP BY window_start"
    with pytest.raises(cq.CompileError) as stopped:
        cq.sql(window.format("t, ts"), t=KEPT[kind]).check()
    with pytest.raises(cq.CompileError) as grouped:
        cq.sql("SELECT SUM(v) AS v FROM t GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)", t=KEPT[kind]).check()
    way, seen = stopped.value.first.help
    assert grouped.value.first.help == (way, seen)
    assert " - INTERVAL '37' SECOND); then read FROM t" in way
    assert seen == "the delay is that of all 5 rows: some are as late as 37 s"
    declaration, _, then = way.partition("; then read FROM ")
    query = f"{declaration}; {window.format(then.replace(' by ', ', ') if ' by ' in then else 't, ts')}"
    result = cq.sql(query, t=KEPT[kind]).run(engine="reference")
    assert result.to_pylist() == [{"v": 6}, {"v": 20}, {"v": 40}] and result.stats.late_rows == 0


def test_rows_that_can_be_read_only_once_are_not_looked_at_for_their_delay() -> None:
    reader = SHUFFLED_TABLE.to_reader()
    with pytest.raises(cq.CompileError, match="INTERVAL '5' SECOND") as stopped:
        cq.sql("SELECT v FROM TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10' SECOND)", t=reader).check()
    assert stopped.value.first.help[1] == "5 seconds is an example: choose how late rows may be"
    assert reader.read_all().num_rows == 5


def test_rows_that_could_not_be_read_are_warned_of_and_stand_under_the_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("v\n1\nx\ny\n")
    text = f"CREATE STREAM t (v BIGINT) WITH (path = '{tmp_path}/t.csv', on_error = 'skip'); SELECT v FROM t"
    with pytest.warns(UserWarning) as told:
        result = cq.sql(text).run(engine="reference")
    loss = "2 rows could not be read and are left out of t; to see why, leave on_error out of its WITH"
    assert [str(w.message) for w in told] == [loss] and str(result).endswith(f"note: {loss}")


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_a_run_that_leaves_out_no_row() -> None:
    result = cq.sql(IN_WINDOWS, t=sorted(SHUFFLED, key=lambda row: row["v"])).run(engine="reference")
    assert result.losses == () and "note" not in str(result) + result._repr_html_()


@pytest.mark.filterwarnings("error")
def test_warning_that_is_made_an_error_is_no_mistake_of_ours() -> None:
    with pytest.raises(UserWarning, match="2 late rows"):
        cq.sql(IN_WINDOWS, t=SHUFFLED).run(engine="reference")


def test_sql_takes_its_inputs_by_name() -> None:
    q = cq.sql("SELECT id, price FROM t WHERE price > 29", t=pa.Table.from_pylist(ROWS))
    assert q.run(engine="reference")["result"].to_pylist() == [{"id": 2, "price": 29.5}]


def test_sql_takes_parameters_by_name_beside_its_inputs() -> None:
    q = cq.sql("SELECT id, price FROM t WHERE price > :least", t=ROWS, least=29)
    assert q.run(engine="reference")["result"].to_pylist() == [{"id": 2, "price": 29.5}]
    assert len(q.with_variables(least=28).run(engine="reference").only) == 3
    with pytest.raises(cq.UsageError, match='an input is given for "price"'):  # in a text it is no parameter
        cq.sql("SELECT ':price' AS p FROM t WHERE id > :least", t=ROWS, least=1, price=1).check()
    with pytest.raises(cq.CompileError, match="SELECT"):
        cq.sql("SELEC :least", least=29).check()


def test_what_is_no_query_and_no_input_is_told() -> None:
    with pytest.raises(cq.UsageError, match="a query is text, not of type NoneType"):
        cq.sql(None)  # type: ignore[arg-type]
    with pytest.raises(cq.CqError, match="stream t cannot be read from a value of type int"):
        cq.sql("SELECT a FROM t", t=3).run()
    with pytest.raises(cq.UsageError) as stopped:
        cq.sql("SELECT 1 AS a", t=ROWS).check()
    assert stopped.value.first.help == ("the query reads no stream",)


def test_loaded_query_takes_parameters_and_paths_beside_it(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("id\n1\n2\n")
    (tmp_path / "q.cq").write_text(
        "CREATE STREAM b WITH (connector = 'file', path = 'b.csv'); SELECT id FROM b WHERE id > :least"
    )
    q = cq.load(tmp_path / "q.cq", least=1)
    assert q.run(engine="reference")["result"].to_pylist() == [{"id": 2}]
    assert q.with_variables(least=0).run(engine="reference").stats.rows_out == {"result": 2}


def test_declared_sink_is_written_and_is_not_in_the_result(tmp_path: Path) -> None:
    (tmp_path / "q.cq").write_text(
        "CREATE SINK o WITH (connector = 'file', path = 'o.csv'); INSERT INTO o SELECT id FROM b; SELECT id FROM b;"
    )
    result = cq.load(tmp_path / "q.cq").run({"b": [{"id": 1}]}, engine="reference")
    assert list(result) == ["result"] and (tmp_path / "o.csv").read_text() == "id\n1\n"
    assert result.stats.rows_out == {"o": 1, "result": 1}


def test_sink_that_cannot_be_opened_leaves_nothing_of_those_before_it(tmp_path: Path) -> None:
    (tmp_path / "q.cq").write_text(
        "CREATE STREAM t (id BIGINT); CREATE SINK a WITH (path = 'a.csv'); CREATE SINK b WITH (path = 'no/b.csv');"
        "INSERT INTO a SELECT id FROM t; INSERT INTO b SELECT id FROM t"
    )
    with pytest.raises(cq.UsageError, match=r"no/b\.csv"):
        cq.load(tmp_path / "q.cq").run({"t": [{"id": 1}]}, engine="reference")
    assert [p.name for p in tmp_path.iterdir()] == ["q.cq"]


def test_sink_onto_the_query_itself_is_refused(tmp_path: Path) -> None:
    sink = "CREATE SINK a WITH (path = 'q.cq', format = 'csv');"
    text = f"CREATE STREAM t (id BIGINT); {sink} INSERT INTO a SELECT id FROM t"
    (tmp_path / "q.cq").write_text(text)
    with pytest.raises(cq.UsageError, match=r"q\.cq"):
        cq.load(tmp_path / "q.cq").run({"t": [{"id": 1}]}, engine="reference")
    assert (tmp_path / "q.cq").read_text() == text


def test_errors_say_where() -> None:
    with pytest.raises(cq.CompileError) as caught:
        cq.sql("SELECT\n  prize FROM t", t=ROWS).check()
    error = caught.value
    assert (error.code, error.line, error.column) == ("CQ0203", 2, 3)
    assert 'did you mean "price"?' in error.hint
    with pytest.raises(cq.DataError) as failed:
        cq.sql("SELECT 1 / (id - 1) AS x FROM t", t=ROWS).run(engine="reference")
    assert failed.value.first.place == "<t>:2"


@pytest.mark.parametrize(
    ("expression", "way"),
    [
        ("a % (b - b)", "to get NULL instead, write a / NULLIF"),
        ("TIMESTAMP_SECONDS(a)", "no type can hold this value"),
        ("a * a", "cast an operand to a wider type"),
        ("CAST(a AS DECIMAL(38, 0)) * a * a", "no DECIMAL has more digits: cast the operands to DOUBLE"),
    ],
)
def test_way_out_of_a_data_error_fits_what_was_computed(expression: str, way: str) -> None:
    query = cq.sql(f"SELECT {expression} AS x FROM t", t=pa.table({"a": [1 << 62], "b": [1]}))
    with pytest.raises(cq.DataError) as failure:
        query.run(threads=0)
    assert failure.value.hint.startswith(way)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_late_row_that_ends_the_run_is_told_with_what_asked_for_its_time(engine: str) -> None:
    text = """CREATE STREAM t (a BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory', late = 'fail');
SELECT a, LAG(a) OVER (ORDER BY ts) AS before FROM t;"""
    times = pa.array([2, 1], pa.timestamp("us"))  # --2--1--
    with pytest.raises(cq.DataError) as failure:
        cq.sql(text, t=pa.table({"a": [7, 8], "ts": times})).run(engine=engine, threads=0)
    error = failure.value
    assert (error.code, error.first.place, error.line, error.column) == ("CQ0709", "<t>:2", 2, 11)
    assert engine == "reference" or error.hint.startswith("wait longer for late rows")


def test_year_python_has_no_date_for_is_told_with_a_way_out() -> None:
    query = cq.sql("SELECT day - 1 AS day, CAST(day - 1 AS VARCHAR) AS text FROM t", t=[{"day": dt.date(1, 1, 1)}])
    output = query.run(engine="reference")["result"]
    with pytest.raises(cq.UsageError, match="to_arrow") as failure:
        output.to_pylist()
    assert failure.value.code == "CQ0605"
    assert output.to_arrow().column("text").to_pylist() == ["0000-12-31"]


def test_explain_and_check_run_nothing() -> None:
    q = cq.sql(QUERY)
    assert q.check() == ()
    assert "scan  bid" in q.explain()
    assert "SELECT" in q.explain("text")


def test_diff_is_equal_and_can_be_demanded() -> None:
    result = cq.diff(QUERY, {"bid": pa.Table.from_pylist(ROWS).to_reader()})
    assert result.raise_if_different().equal
    assert str(result) == "result: equal, 18 rows"


@pytest.mark.parametrize("options", [{"order": "stricter"}, {"tolerance": float("nan")}, {"tolerance": -1}])
def test_diff_refuses_what_it_would_not_heed(options: dict[str, object]) -> None:
    with pytest.raises(cq.UsageError, match=next(iter(options))):
        cq.diff(QUERY, {"bid": ROWS}, **options)  # type: ignore[arg-type]


def test_notebooks_get_tables_that_cannot_run_anything() -> None:
    result = cq.sql("SELECT name FROM t", t=[{"name": "<script>alert(1)</script>"}, {"name": None}]).run(
        engine="reference"
    )
    page = result._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "<i>NULL</i>" in page
    assert "<b>" not in cq.sql("SELECT '<b>'")._repr_html_()


@pytest.mark.parametrize(
    "options",
    [{"threads": -1}, {"threads": "2"}, {"batch_rows": 0}, {"limit": -1}, {"threads": True}, {"engine": "nativ"}],
)
def test_options_that_cannot_be_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(cq.UsageError):
        cq.run(QUERY, {"bid": ROWS}, **options)
    if "limit" not in options:
        with pytest.raises(cq.UsageError):
            cq.sql(QUERY).start(**options)  # type: ignore[arg-type]


def test_queries_run_in_threads_side_by_side() -> None:
    results: list[object] = []

    def run(n: int) -> None:
        try:
            query = f"SELECT a + {n} AS b, COUNT(*) AS rows FROM t GROUP BY a + {n}"
            results.append(cq.sql(query, t={"a": [1, 2, 2]}).run(threads=1)["result"].to_pylist())
        except BaseException as e:
            results.append(e)

    threads = [threading.Thread(target=run, args=(7_100 + n % 2,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given = [[{"b": n + 1, "rows": 1}, {"b": n + 2, "rows": 2}] for n in (7_100, 7_101)]
    assert len(results) == 4 and all(r in given for r in results), results


@pytest.mark.parametrize("engine", ENGINES)
def test_array_column_of_a_view_is_taken_apart(engine: str) -> None:
    text = "SELECT id, w FROM (SELECT id, SPLIT(words, ' ') AS c FROM t) AS q, UNNEST(q.c) AS u(w)"
    rows = cq.sql(text, t={"id": [1, 2], "words": ["a b", "c"]}).run(engine=engine, threads=0)["result"]
    assert rows.to_pylist() == [{"id": 1, "w": "a"}, {"id": 1, "w": "b"}, {"id": 2, "w": "c"}]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT SPLIT(words, ' ') AS c FROM t", [{"c": ["a", "b"]}]),
        (
            "SELECT n, w FROM (SELECT LENGTH(words) AS n, SPLIT(words, ' ') AS c FROM t) AS q, UNNEST(c) AS u(w)",
            [{"n": 3, "w": "a"}, {"n": 3, "w": "b"}],
        ),
        ("SELECT list FROM t", [{"list": ["x", None]}]),
        ("SELECT w FROM t, UNNEST(list) AS u(w)", [{"w": "x"}, {"w": None}]),
        ("SELECT * FROM t", [{"words": "a b", "list": ["x", None]}]),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_are_columns(text: str, rows: list[dict[str, object]], engine: str) -> None:
    table = pa.table({"words": ["a b"], "list": [["x", None]]})
    assert cq.sql(text, t=table).run(engine=engine, threads=0)["result"].to_pylist() == rows


@pytest.mark.parametrize(
    ("text", "code", "way_out"),
    [
        ("SELECT nested FROM t", "CQ0603", "use other columns"),
        ("SELECT ARRAY_AGG(list) FROM t", "CQ0501", "one array of all elements"),
        ("SELECT ARRAY[list] FROM t", "CQ0501", "one array of all elements"),
    ],
)
def test_array_of_arrays_is_refused_with_a_way_out(text: str, code: str, way_out: str) -> None:
    with pytest.raises(cq.CompileError) as caught:
        cq.sql(text, t=pa.table({"list": [["x", "y"]], "nested": [[["x"]]]})).run(threads=0)
    assert caught.value.code == code and way_out in str(caught.value) and "^" in str(caught.value)


def test_name_without_quotes_finds_a_column_whatever_its_case() -> None:
    table = {"Price": [1, 2], "Ort": ["a", "b"]}
    assert cq.sql('SELECT price, ORT, "Ort" AS o FROM t', t=table).run(engine="reference")["result"].to_pylist() == [
        {"price": 1, "ort": "a", "o": "a"},
        {"price": 2, "ort": "b", "o": "b"},
    ]
    with pytest.raises(cq.CompileError, match="unknown column"):
        cq.sql('SELECT "price" FROM t', t=table).check()
    with pytest.raises(cq.CompileError, match="ambiguous"):
        cq.sql("SELECT PRICE FROM t", t={"Price": [1], "PRICE": [2]}).check()
    assert cq.sql("SELECT price FROM t", t={"Price": [1], "price": [2]}).check() == ()


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        (polars.DataFrame({"a": polars.Series(["x", "y"], dtype=polars.Categorical)}), [{"a": "x"}, {"a": "y"}]),
        (pandas.DataFrame({"a": [None, None]}), [{"a": None}, {"a": None}]),
    ],
)
def test_columns_as_frames_have_them_are_read(given: object, rows: list[dict[str, object]]) -> None:
    assert cq.sql("SELECT * FROM t", t=given).run(engine="reference")["result"].to_pylist() == rows


@pytest.mark.parametrize(
    ("given", "way"),
    [
        (polars.DataFrame({"a": [1]}).lazy(), "frame.collect()"),
        (pandas.Series([1]), "series.to_frame()"),
        ([], "declare them"),
        (5, "a list of dicts"),
    ],
)
def test_what_is_no_table_is_refused_with_a_way_out(given: object, way: str) -> None:
    with pytest.raises(cq.CqError) as caught:
        cq.sql("SELECT * FROM t", t=given).run()
    assert caught.value.code == "CQ0602" and way in caught.value.hint


def test_a_number_beyond_every_type_in_a_list_of_dicts_is_refused_with_its_column() -> None:
    with pytest.raises(cq.CqError, match='column "a" of stream "p" is of values that no type') as caught:
        cq.sql("SELECT a FROM p", p=[{"a": 2**70}]).run()
    assert caught.value.code == "CQ0603"


def test_a_misspelt_key_of_a_dict_is_not_taken_for_a_missing_one() -> None:
    declared = "CREATE STREAM s (k BIGINT, price BIGINT); SELECT k, price FROM s"
    with pytest.raises(cq.CqError, match="stream s has no column 'price'") as caught:
        cq.sql(declared, s=[{"k": 1, "prize": 2}]).run(engine="reference")
    assert caught.value.code == "CQ0603" and 'did you mean "prize"?' in caught.value.hint
    missing = cq.sql(declared, s=[{"k": 1}, {"k": 2, "note": 3, "price": 4}]).run(engine="reference")
    assert missing["result"].to_pylist() == [{"k": 1, "price": None}, {"k": 2, "price": 4}]


def test_input_without_columns_is_said_to_have_none() -> None:
    with pytest.raises(cq.CompileError, match="has no columns"):
        cq.sql("SELECT * FROM t", t=pa.table({})).run(engine="reference")


def test_a_number_of_numpy_is_a_parameter() -> None:
    query = cq.sql("SELECT a FROM t WHERE a > :x", t={"a": [1, 2]}).with_variables(x=numpy.int64(1))
    assert query.run(engine="reference")["result"].to_pylist() == [{"a": 2}]


def test_extract_is_known_before_any_other_function() -> None:
    program = "import cq\ncq.sql('CREATE STREAM s (ts TIMESTAMP); SELECT EXTRACT(HOUR FROM ts) AS h FROM s').check()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "SELECT k, SUM(x) AS s FROM TUMBLE(s, ts, INTERVAL '1' MINUTE) GROUP BY window_end, k",
            "window 2024-01-01 00:00:00 to 2024-01-01 00:01:00, group k = 1",
        ),
        ("SELECT k, SUM(x) AS s FROM s GROUP BY k", "group k = 1"),
        ("SELECT k, MIN(x) * 4 AS s FROM s GROUP BY k", "group k = 1"),
    ],
)
def test_error_of_what_closes_says_of_which_window_and_group(text: str, place: str) -> None:
    rows = [{"k": 1, "x": 2**62, "ts": dt.datetime(2024, 1, 1, 0, 0, n)} for n in range(3)]
    declared = "CREATE STREAM s (k INT, x BIGINT, ts TIMESTAMP, WATERMARK FOR ts);"
    with pytest.raises(cq.DataError) as caught:
        cq.sql(declared + text).run({"s": rows}, threads=0)
    assert caught.value.code == "CQ0705" and caught.value.first.place == place


def test_a_mistake_of_ours_is_an_error_of_cq_and_what_other_code_raises_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.delattr("cq.planner.plan.verify.verify_node")
        with pytest.raises(cq.EngineError, match=r"NameError: .* in cq\.planner\.plan\.verify:") as caught:
            cq.sql("SELECT 1 + 41 AS lost").run()
    assert caught.value.code == "CQ0999" and isinstance(caught.value.__cause__, NameError)
    with pytest.raises(KeyError), mistakes_told():
        raise KeyError("of an input")
