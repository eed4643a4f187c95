"""Rates of one case: kernel, C++ loop, engine, control, DuckDB and polars over one input, in one race."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from benchmarks import loops, peers
from benchmarks.bare import BareKernel
from benchmarks.case import Case
from benchmarks.measure import Contender, Race, run_race
from cq.api import sql
from cq.compiler.passes import Compiled, compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.sinks.writers import Discard
from cq.engines.native import arrow_schema
from cq.engines.protocol import RunOptions
from cq.engines.query import run_query
from cq.runtime.engine.engine import TICKET_ROWS, Engine
from cq.runtime.layout.pipeline import Pipeline

WORKERS = 2


def only_pipeline(compiled: Compiled, workers: int) -> Pipeline:
    """The pipeline of a query that has just one."""
    pipelines: tuple[Pipeline, ...] = compiled.for_workers(workers).after("emit")
    (pipeline,) = pipelines
    return pipeline


class Measured:
    """A case with its inputs in memory: each as one contiguous batch, and the same rows in slices as the peers like
    them."""

    def __init__(self, case: Case, rows: int) -> None:
        self.case = case
        self.wholes = case.inputs(rows)
        self.tables = {name: _sliced(batch) for name, batch in self.wholes.items()}
        given = Inputs(FileAccess(Path.cwd()), dict(self.tables))
        self.compiled: Compiled = compile(case.query, case.name, inputs=given)
        self.schemas = [arrow_schema(output) for output in self.compiled.outputs]

    @property
    def units(self) -> int:
        return sum(batch.num_rows for batch in self.wholes.values()) * self.case.units

    def pipeline(self, workers: int) -> Pipeline:
        return only_pipeline(self.compiled, workers)

    def batches(self, pipeline: Pipeline) -> list[list[pa.RecordBatch]]:
        """The columns of each source that the pipeline reads."""
        names = [[column.name for column in source.columns] for source in pipeline.sources]
        return [
            self.tables[source.name].select(n).to_batches() for source, n in zip(pipeline.sources, names, strict=True)
        ]

    def results(self) -> list[pa.RecordBatch]:
        """The rows the query gives."""
        pipeline, made = self.pipeline(1), list[pa.RecordBatch]()
        with Engine(pipeline, schemas=self.schemas) as engine:
            failure = engine.run([iter(b) for b in self.batches(pipeline)], lambda sink, batch: made.append(batch))
        assert failure is None, failure
        return made

    def engine(self, threads: int) -> Contender:
        """A whole run of the engine: built, fed, drained, closed."""
        pipeline = self.pipeline(max(threads, 1))
        batches = self.batches(pipeline)
        return lambda: self._run(pipeline, batches, threads)

    def _run(self, pipeline: Pipeline, batches: Sequence[Sequence[pa.RecordBatch]], threads: int) -> int:
        rows = 0

        def count(sink: int, batch: pa.RecordBatch) -> None:
            nonlocal rows
            rows += batch.num_rows

        with Engine(pipeline, threads=threads, schemas=self.schemas) as engine:
            failure = engine.run([iter(b) for b in batches], count)
        assert failure is None, failure
        return rows

    def halves(self) -> Contender:
        """The control of every scaling figure: two independent engines with one thread, each on half of the inputs."""
        pipeline = self.pipeline(1)
        batches = self.batches(pipeline)
        halves = [b[: len(b) // 2] for b in batches], [b[len(b) // 2 :] for b in batches]

        def run() -> None:
            threads = [threading.Thread(target=self._run, args=(pipeline, half, 0)) for half in halves]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return run

    def api(self) -> Contender:
        """What a user writes: `cq.sql(text, stream=table).run()`, with the result as a table in memory."""
        query = sql(self.case.query, **self.tables)

        def run() -> None:
            query.run(threads=WORKERS)

        return run

    def loop(self) -> loops.Loop | None:
        """The loop in C++, if the case has one and there is a compiler."""
        if self.case.loop is None or not loops.compiler_version():
            return None
        columns = sum(len(schema) for schema in self.schemas)
        return loops.Loop(self.case.loop, self.wholes, columns, TICKET_ROWS)


def _sliced(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch.slice(at, peers.ROW_GROUP) for at in range(0, batch.num_rows, peers.ROW_GROUP)])


def check(case: Case, rows: int) -> None:
    """Check that all forms of the case give the same rows, by their number and the sums of their columns.

    Over all its rows if that many give none.
    """
    measured = Measured(case, rows)
    made = measured.results()
    if not made:
        measured = Measured(case, case.rows)
        made = measured.results()
    expected, names = loops.result_sums(made), measured.schemas[0].names
    forms = {}
    if case.duckdb:
        forms["duckdb"] = peers.Duck(case, measured.tables).batches()
    if case.polars is not None:
        forms["polars"] = peers.Bear(case, measured.tables).batches()
    sums = {name: loops.result_sums([b.select(names) for b in batches]) for name, batches in forms.items()}
    loop = measured.loop()
    if loop is not None:
        sums["c++"] = loop.sums()
    wrong = {name: found for name, found in sums.items() if found != expected}
    assert not wrong, f"{case.name}: cq {expected}, {wrong}"


def memory_race(case: Case, rows: int, rounds: int) -> Race:
    """All contenders over the same Arrow memory."""
    measured = Measured(case, rows)
    pipeline = measured.pipeline(1)
    bare = BareKernel(pipeline, measured.batches(pipeline))
    duck = peers.Duck(case, measured.tables) if case.duckdb else None
    contenders: dict[str, Contender] = {"kernel": bare.run}
    loop = measured.loop()
    if loop is not None:
        contenders["c++"] = loop.run
    contenders |= {f"-j {n}": measured.engine(n) for n in (0, 1, WORKERS)}
    if case.halves:
        contenders["halves"] = measured.halves()
    contenders["api"] = measured.api()
    if duck is not None:
        contenders["duckdb"] = duck.run
    if case.polars is not None:
        contenders["polars"] = peers.Bear(case, measured.tables).run
    try:
        return run_race(measured.units, contenders, rounds)
    finally:
        bare.close()
        if duck is not None:
            duck.close()


@contextmanager
def parquet_files(case: Case, rows: int, directory: Path) -> Iterator[dict[str, Path]]:
    """The case's inputs as Parquet files by stream, deleted afterwards."""
    paths = {}
    for name, batch in case.inputs(rows).items():
        paths[name] = directory / f"{name}.parquet"
        parquet.write_table(pa.Table.from_batches([batch]), paths[name])
    try:
        yield paths
    finally:
        for path in paths.values():
            path.unlink()


def parquet_race(case: Case, rows: int, rounds: int, directory: Path) -> Race:
    """The whole path of `cq run` from files, against decoding alone and against peers reading the same files."""
    with parquet_files(case, rows, directory) as paths:
        compiled = compile(case.query, case.name, inputs=Inputs(FileAccess(directory)))
        names = {s.name: [c.name for c in s.columns] for s in only_pipeline(compiled, WORKERS).sources}
        units = sum(parquet.read_metadata(path).num_rows for path in paths.values()) * case.units

        def cq() -> int:
            sinks = {output.name: Discard() for output in compiled.outputs}
            options = RunOptions(threads=WORKERS, unhashed=frozenset(sinks))  # as `cq run` without --hash
            return sum(run_query(compiled, sinks, options=options).rows_out.values())

        def decoded() -> None:
            for name, path in paths.items():
                parquet.read_table(path, columns=names[name])

        duck = peers.Duck(case, paths)
        try:
            contenders: dict[str, Contender] = {"cq": cq, "pyarrow": decoded, "duckdb": duck.run}
            if case.polars is not None:
                contenders["polars"] = peers.Bear(case, paths).run
            return run_race(units, contenders, rounds)
        finally:
            duck.close()
