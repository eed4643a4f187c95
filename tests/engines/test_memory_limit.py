"""A query whose state outgrows the memory limit stops with an error that says where the memory went and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import cq
from cq.cli import execute
from cq.compiler.passes import compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.engines import native
from cq.engines.protocol import RunOptions
from cq.errors import CompileError, EngineError, UsageError
from cq.planner.binding.settings import bytes_of
from cq.runtime.engine.engine import Engine

STREAM = "CREATE STREAM t (k BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts) WITH (connector = 'memory');\n"
GROUPS = "SELECT k, COUNT(*) AS n\nFROM t GROUP BY k;"


def table(rows: int) -> pa.Table:
    return pa.table({"k": pa.array(range(rows), pa.int64()), "ts": pa.array(range(rows), pa.timestamp("us"))})


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_a_run_stops_and_names_the_operator(threads: int) -> None:
    query = cq.sql(STREAM + GROUPS, t=table(400_000))
    with pytest.raises(EngineError) as stopped:
        query.run(threads=threads, batch_rows=1000, memory_limit="2MB")
    (found,) = stopped.value.diagnostics
    assert found.code == "CQ0802" and found.span.line in {2, 3}
    assert found.message.startswith("the state of the query takes ")
    assert "more than the memory limit of 2MB; most of it belongs to aggregate (line " in found.message
    raised, kept = found.help
    assert raised.startswith("raise the limit: SET memory_limit = '") and "fewer keys" in kept


CHAINS = "SET transactions = 'chains'"
TRANSACTIONS = """CREATE STREAM t (ks BIGINT[], ts TIMESTAMP NOT NULL, WATERMARK FOR ts) WITH (connector = 'memory');
CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT);
CREATE TRIGGER g AFTER INSERT ON t INSERT INTO a SELECT u.k, 1 FROM UNNEST(new.ks) AS u(k) ON CONFLICT DO NOTHING;
SELECT COUNT(*) AS n FROM g;"""


def test_a_run_whose_transactions_take_too_much_together_passes_with_fewer_of_them() -> None:
    keys = pa.array([list(range(50))] * 2000, pa.list_(pa.int64()))
    events = pa.table({"ks": keys, "ts": pa.array(range(2000), pa.timestamp("us"))})
    with pytest.raises(EngineError) as stopped:
        cq.sql(f"{CHAINS};\n{TRANSACTIONS}", t=events).run(threads=2, memory_limit="3MB")
    way = stopped.value.first.help[1]
    fewer, serial = re.findall(r"SET \w+ = [\w']+", way)
    for statement in (f"{CHAINS};\n{fewer}", serial):
        made = cq.sql(f"{statement};\n{TRANSACTIONS}", t=events).run(threads=2, memory_limit="3MB")
        assert made["result"].to_pylist() == [{"n": 2000}]


@pytest.mark.parametrize("threads", [0, 2])
def test_the_same_run_passes_with_more_or_without_a_limit(threads: int) -> None:
    for limit in ("500MB", "none", 500_000_000, None):
        made = cq.sql(STREAM + GROUPS, t=table(50_000)).run(threads=threads, batch_rows=1000, memory_limit=limit)
        assert len(made["result"]) == 50_000


def test_the_way_out_is_a_statement_that_works() -> None:
    with pytest.raises(EngineError) as stopped:
        cq.sql(STREAM + GROUPS, t=table(100_000)).run(threads=0, batch_rows=1000, memory_limit="1MB")
    statement = stopped.value.first.help[0].removeprefix("raise the limit: ").partition(", or more")[0]
    cq.sql(f"{STREAM}{statement};\n{GROUPS}", t=table(100_000)).bound()


def test_the_text_the_command_line_and_the_call_are_asked_in_turn(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    compiled = compile(STREAM + "SET memory_limit = '3MB';" + GROUPS)
    assert native.memory_limit(compiled, RunOptions()) == 3_000_000
    assert native.memory_limit(compiled, RunOptions(memory_limit=7)) == 7
    assert native.memory_limit(compile(STREAM + "SET memory_limit = 'none';" + GROUPS), RunOptions()) is None
    given = compile(STREAM + "SET memory_limit = '3MB';" + GROUPS, settings={"memory_limit": 5})
    assert native.memory_limit(given, RunOptions()) == 5
    rows = tmp_path / "t.csv"
    rows.write_text("k\n" + "\n".join(map(str, range(200_000))))
    text = "CREATE STREAM t (k BIGINT) WITH (connector = 'file', format = 'csv');" + GROUPS
    command = ["run", "-q", "-j", "0", "-c", text, f"t={rows}", "-s", "batch_rows=1000"]
    assert execute([*command, "-s", "memory_limit=1MB"]) == 2
    assert "more than the memory limit of 1MB" in capfd.readouterr().err
    assert execute([*command, "-s", "memory_limit=1GB"]) == 0


def test_without_a_limit_given_it_is_a_share_of_what_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile(STREAM + GROUPS)
    monkeypatch.setattr(native, "usable_memory_bytes", lambda: 10_000_000)
    assert native.memory_limit(compiled, RunOptions()) == 8_000_000
    monkeypatch.setattr(native, "usable_memory_bytes", lambda: None)
    assert native.memory_limit(compiled, RunOptions()) is None


def test_a_started_query_stops_too() -> None:
    with cq.sql(STREAM + GROUPS).start(memory_limit="1MB", batch_rows=1000) as job:
        job.push("t", table(200_000))
        job.end()
        with pytest.raises(EngineError, match="memory limit of 1MB"):
            list(job.results())


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2_000_000_000),
        ("512MiB", 512 << 20),
        ("1.5 kb", 1500),
        ("4096", 4096),
        ("3t", 3 * 10**12),
        ("none", 0),
        ("0", None),
        ("-1GB", None),
        ("2i", None),
        ("many", None),
        ("9999999TB", None),
        ("", None),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int | None) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("value", ["'lots'", "-5", "'0'", "TRUE"])
def test_a_size_that_is_none_is_refused_at_its_place(value: str) -> None:
    with pytest.raises(CompileError) as refused:
        compile(f"{STREAM}SET memory_limit = {value};\n{GROUPS}", inputs=Inputs(FileAccess(Path.cwd())))
    assert refused.value.code == "CQ0208" and refused.value.first.span.line == 2
    with pytest.raises(UsageError, match="memory_limit takes a size such as"):
        cq.sql(STREAM + GROUPS, t=table(1)).run(memory_limit=value)


@pytest.mark.parametrize("scheme", ["chains", "mvlk"])
def test_of_a_trigger_and_a_window_behind_it_the_one_is_named_whose_transactions_hold_most(scheme: str) -> None:
    text = f"""SET transactions = '{scheme}'; SET punctuation_interval = 40000;
        CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');
        CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);
        CREATE TRIGGER g AFTER INSERT ON s BEGIN UPDATE a SET n = n + 1 WHERE k = new.k; SELECT new.ts, new.k; END;
        SELECT k, COUNT(*) AS n FROM TUMBLE(g, ts, INTERVAL '1' MINUTE) GROUP BY window_start, k;"""
    rows = {
        "k": pa.array([n % 10 for n in range(40_000)], pa.int64()),
        "ts": pa.array(range(40_000), pa.timestamp("us")),
    }
    with pytest.raises(EngineError, match=r"most of it belongs to trigger \(line 4\)\n"):
        cq.sql(text, s=pa.table(rows)).run(threads=2, batch_rows=40_000, memory_limit="2MB")


@pytest.mark.parametrize("scheme", ["chains", "mvlk"])
def test_the_rows_that_transactions_of_a_punctuation_name_count(scheme: str) -> None:
    text = f"""SET transactions = '{scheme}';
        CREATE STREAM s (k BIGINT) WITH (connector = 'memory');
        CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);
        CREATE TRIGGER g AFTER INSERT ON s
          INSERT INTO a VALUES (new.k, 1) ON CONFLICT DO UPDATE SET n = n + 1;
        SELECT * FROM a;"""
    rows = pa.table({"k": pa.array([n % 10 for n in range(40_000)], pa.int64())})
    query = cq.sql(f"SET punctuation_interval = 40000; {text}", s=rows)
    with pytest.raises(EngineError) as stopped:
        query.run(threads=2, batch_rows=40_000, memory_limit="2MB")
    assert "most of it belongs to trigger (line " in stopped.value.first.message
    assert (
        query.run(threads=2, batch_rows=40_000, memory_limit="100MB")["result"].to_arrow()["n"].to_pylist()
        == [4000] * 10
    )
    short = cq.sql(f"SET punctuation_interval = 500; {text}", s=rows)
    assert len(short.run(threads=2, memory_limit="2MB")["result"]) == 10


@pytest.mark.parametrize("condition", ["", " AND r.v > s.v"])
@pytest.mark.parametrize("what", ["EXISTS", "NOT EXISTS"])
def test_left_rows_that_had_their_match_are_not_held(what: str, condition: str) -> None:
    """Each key has 1000 left rows, then a right row that matches them all; 0.2 kB stay of each, where 65 kB were."""
    columns = "(k BIGINT NOT NULL, v BIGINT NOT NULL, x VARCHAR, ts TIMESTAMP NOT NULL, WATERMARK FOR ts)"
    streams = "".join(f"CREATE STREAM {name} {columns} WITH (connector = 'memory');\n" for name in "sr")
    text = f"{streams}SELECT k, v, x FROM s WHERE {what} (SELECT 1 FROM r WHERE r.k = s.k{condition});"
    (pipeline,) = compile(text).for_workers(1).after("emit")

    def rows(key: int, count: int, least: int, names: list[str]) -> pa.RecordBatch:
        made = {
            "k": pa.array([key] * count, pa.int64()),
            "v": pa.array(range(least, least + count), pa.int64()),
            "x": pa.array([f"the text of row {n} of key {key}" for n in range(count)]),
            "ts": pa.array([key] * count, pa.timestamp("us")),
        }
        return pa.record_batch([made[name] for name in names], names)

    left, right = ([c.name for c in source.columns] for source in pipeline.sources)
    held, gone = [], 0
    with Engine(pipeline, batch_rows=500) as engine:
        for key in range(120):
            engine.push(0, rows(key, 1000, 0, left))
            engine.push(1, rows(key, 1, 1000, right))
            gone += sum(batch.num_rows for _, batch in engine.drain())
            (by_operator,) = engine.held_bytes()
            held.append(sum(by_operator.values()))
    assert gone == (0 if what == "NOT EXISTS" else 119_000)
    assert held[119] - held[19] <= 100 * 200


WAY_OF = {
    "SELECT k, COUNT(*) AS n FROM s GROUP BY k;": "use shorter windows, or group by fewer keys",
    """CREATE TRIGGER g AFTER INSERT ON s INSERT INTO a VALUES (new.k, 1) ON CONFLICT DO NOTHING;
    SELECT * FROM a;""": "DELETE the rows that are needed no longer",
    "SELECT s.k FROM s JOIN s AS o ON s.k = o.k;": "limit how far apart the times are: ON … AND b.ts BETWEEN a.ts AND "
    "a.ts + INTERVAL '5' SECOND",
}


@pytest.mark.parametrize("query", WAY_OF)
def test_the_way_to_keep_less_is_that_of_what_keeps_most(query: str) -> None:
    text = f"""CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');
        CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);
        {query}"""
    with pytest.raises(EngineError) as stopped:
        cq.sql(text, s=table(400_000)).run(threads=0, memory_limit="2MB")
    assert stopped.value.first.help[-1] == f"or keep less: {WAY_OF[query]}"
