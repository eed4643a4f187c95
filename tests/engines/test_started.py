"""Started queries: rows pushed step by step, results as soon as they are known, errors in their place."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import threading
from contextlib import suppress

import pyarrow as pa
import pytest

import cq

QUERY = """CREATE STREAM bid (id BIGINT, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts);
SELECT window_start, id, COUNT(*) AS n, SUM(price) AS total
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, id;
"""
ROWS = [{"id": n % 3, "price": n / 2, "ts": dt.datetime(2024, 1, 1, 0, n // 10, n % 10)} for n in range(60)]
ENGINES = ["reference", "native"]


def _workers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("cq worker")]


@pytest.mark.parametrize("engine", ENGINES)
def test_started_query_has_the_rows_that_it_says_itself(engine: str) -> None:
    text = "CREATE STREAM t (id BIGINT); SELECT id FROM t UNION ALL VALUES (7), (8); SELECT 1 AS x;"
    with cq.sql(text).start(engine=engine, threads=0) as job:
        job.push("t", [{"id": 5}])
        job.end()
        assert [row["id"] for b in job.results() for row in b.to_pylist()] == [5, 7, 8]
        assert [row["x"] for b in job.results("result_2") for row in b.to_pylist()] == [1]
    assert cq.sql(text).run({"t": [{"id": 5}]}, engine=engine)["result"].to_arrow().column("id").to_pylist() == [
        5,
        7,
        8,
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_started_query_gives_results_as_soon_as_they_are_known(engine: str) -> None:
    with cq.sql(QUERY).start(engine=engine) as job:
        job.push("bid", ROWS[:15])
        assert sum(b.num_rows for b in job.results()) == 3  # minute 0 has closed
        job.push("bid", pa.Table.from_pylist(ROWS[15:]))
        assert sum(b.num_rows for b in job.results()) == 12
    assert sum(b.num_rows for b in job.results()) == 3  # the end closed the last minute
    assert list(job.results()) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_pushing_in_pieces_gives_what_a_run_gives(engine: str) -> None:
    whole = cq.run(QUERY, {"bid": ROWS}, engine="reference")["result"].to_arrow()
    with cq.sql(QUERY).start(engine=engine) as job:
        for row in ROWS:
            job.push("bid", [row])
    assert pa.Table.from_batches(job.results(), whole.schema).equals(whole)


def test_results_can_be_waited_for() -> None:
    async def both() -> int:
        job = cq.sql(QUERY).start(engine="reference")

        async def feed() -> None:
            for start in range(0, 60, 20):
                job.push("bid", ROWS[start : start + 20])
                await asyncio.sleep(0)
            job.end()

        feeding = asyncio.create_task(feed())
        rows = 0
        async for batch in job.results():
            rows += batch.num_rows
        await feeding
        job.close()
        return rows

    assert asyncio.run(asyncio.wait_for(both(), 30)) == 18


@pytest.mark.parametrize("engine", ENGINES)
def test_error_of_a_job_comes_after_the_results_before_it(engine: str) -> None:
    with cq.sql("CREATE STREAM t (id BIGINT); SELECT 6 / (id - 2) AS x FROM t").start(engine=engine) as job:
        job.push("t", [{"id": 1}])
        job.push("t", [{"id": 3}, {"id": 2}, {"id": 4}])
        seen: list[int] = []
        with pytest.raises(cq.DataError) as failed:
            for batch in job.results():
                seen += batch.column(0).to_pylist()
        assert seen == [-6, 6]
        assert (failed.value.code, failed.value.first.place) == ("CQ0706", "<t>:3")


@pytest.mark.parametrize("engine", ENGINES)
def test_error_of_a_job_is_not_lost_when_it_is_closed(engine: str) -> None:
    with cq.sql("CREATE STREAM t (id BIGINT); SELECT 6 / (id - 2) AS x FROM t").start(engine=engine) as job:
        job.push("t", [{"id": 3}, {"id": 2}])
    batches = iter(job.results())
    assert next(batches).to_pylist() == [{"x": 6}]
    with pytest.raises(cq.DataError, match="division by zero"):
        next(batches)


def test_rows_can_be_pushed_after_the_loop_of_those_who_waited_is_closed() -> None:
    async def wait(job: cq.Job) -> None:
        async for _ in job.results():
            pass

    async def give_up(job: cq.Job) -> None:
        with suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(wait(job), 0)
        waiting = asyncio.ensure_future(wait(job))
        await asyncio.sleep(0)
        waiting.cancel()

    with cq.sql(QUERY).start(engine="reference") as job:
        asyncio.run(give_up(job))
        job.push("bid", ROWS)
    assert sum(b.num_rows for b in job.results()) == 18


def test_workers_of_a_job_that_nobody_closed_end_with_it() -> None:
    job = cq.sql("CREATE STREAM t (id BIGINT); SELECT id FROM t").start(threads=2)
    job.push("t", [{"id": 1}])
    before = set(_workers())
    batches = list(job.results())
    del job
    gc.collect()
    assert before and not before & set(_workers())
    assert [b.to_pylist() for b in batches] == [[{"id": 1}]]


def test_job_with_workers_is_refused_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with cq.sql("CREATE STREAM t (id BIGINT); SELECT id FROM t").start(threads=1) as job:
        with monkeypatch.context() as child:
            child.setattr("os.getpid", lambda: 0)
            with pytest.raises(cq.UsageError, match="belong to another process"):
                job.push("t", [{"id": 1}])
            with pytest.raises(cq.UsageError, match="belong to another process"):
                list(job.results())
        job.push("t", [{"id": 1}])
    assert [b.to_pylist() for b in job.results()] == [[{"id": 1}]]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_a_push_are_taken_all_or_none(engine: str) -> None:
    with cq.sql("CREATE STREAM t (k SMALLINT); SELECT k FROM t").start(engine=engine) as job:
        job.push("t", [{"k": 1}])
        with pytest.raises(cq.DataError, match="t>:3"):
            job.push("t", pa.table({"k": [2, 99_999_999, 3]}))
        job.push("t", [{"k": 4}])
        batches = pa.table({"k": [5, 6, 99_999_999]}).to_batches(max_chunksize=1)
        with pytest.raises(cq.DataError, match="t>:5"):
            job.push("t", pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert [row["k"] for batch in job.results() for row in batch.to_pylist()] == [1, 4, 5, 6]


def test_job_refuses_what_it_does_not_know() -> None:
    with cq.sql(QUERY).start(engine="reference") as job:
        with pytest.raises(cq.UsageError, match="no stream"):
            job.push("bids", ROWS)
        with pytest.raises(cq.UsageError, match="no output"):
            job.results("x")
        job.end("bid")
        with pytest.raises(cq.UsageError, match="has ended"):
            job.push("bid", ROWS)
        job.close()
    with pytest.raises(cq.UsageError, match="cannot run step by step"):
        cq.sql(QUERY).start(engine="spark")


@pytest.mark.parametrize("threads", [0, 1, 2])
@pytest.mark.parametrize("engine", ENGINES)
def test_any_number_of_pushes_may_go_before_the_first_of_another_stream(engine: str, threads: int) -> None:
    declared = "(k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');"
    text = f"CREATE STREAM a {declared} CREATE STREAM b {declared} SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b"
    rows = [{"k": n, "ts": dt.datetime(2024, 1, 1, 0, 0, n)} for n in range(50)]
    with cq.sql(text).start(engine=engine, threads=threads) as job:
        for row in rows:
            job.push("a", [row])
        assert not list(job.results())
        job.end("a")
        for row in rows:
            job.push("b", [row])
        found = [row["k"] for batch in job.results() for row in batch.to_pylist()]
        assert len(found) > 90
        job.end("b")
        found += [row["k"] for batch in job.results() for row in batch.to_pylist()]
    assert found == [n for n in range(50) for _ in "ab"]
