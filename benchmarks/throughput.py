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
from benchmarks.cases import Case
from benchmarks.measure import Contender, Race, run_race
from cq.api import sql
from cq.compiler.passes import Compiled, compile
from cq.connectors.access import Access
from cq.connectors.inputs import Inputs
from cq.connectors.sinks.writers import Discard
from cq.engines.native import arrow_schema
from cq.engines.protocol import RunOptions
from cq.engines.query import run_query
from cq.runtime.engine.engine import BATCH_ROWS, Engine
from cq.runtime.layout.job import Job

WORKERS = 2


def only_job(compiled: Compiled, workers: int) -> Job:
    """The job of a query that is in one piece."""
    jobs: tuple[Job, ...] = compiled.for_workers(workers).after("emit")
    (job,) = jobs
    return job


class Measured:
    """A case with its input in memory: one contiguous batch, and the same rows in slices as peers like them."""

    def __init__(self, case: Case, rows: int) -> None:
        self.case = case
        self.whole = case.generate(rows)
        slices = [self.whole.slice(at, peers.ROW_GROUP) for at in range(0, rows, peers.ROW_GROUP)]
        self.table = pa.Table.from_batches(slices)
        self.compiled: Compiled = compile(case.text(), case.name)
        self.schemas = [arrow_schema(output) for output in self.compiled.outputs]

    @property
    def units(self) -> int:
        return int(self.whole.num_rows) * self.case.units

    def job(self, workers: int) -> Job:
        return only_job(self.compiled, workers)

    def batches(self, job: Job) -> list[pa.RecordBatch]:
        """The columns the job reads."""
        names = [column.name for column in job.sources[0].columns]
        made: list[pa.RecordBatch] = self.table.select(names).to_batches()
        return made

    def results(self) -> list[pa.RecordBatch]:
        """The rows the query gives."""
        job, made = self.job(1), list[pa.RecordBatch]()
        with Engine(job, schemas=self.schemas) as engine:
            failure = engine.run([iter(self.batches(job))], lambda sink, batch: made.append(batch))
        assert failure is None, failure
        return made

    def engine(self, threads: int) -> Contender:
        """A whole run of the engine: built, fed, drained, closed."""
        job = self.job(max(threads, 1))
        batches = self.batches(job)
        return lambda: self._run(job, batches, threads)

    def _run(self, job: Job, batches: Sequence[pa.RecordBatch], threads: int) -> int:
        rows = 0

        def count(sink: int, batch: pa.RecordBatch) -> None:
            nonlocal rows
            rows += batch.num_rows

        with Engine(job, threads=threads, schemas=self.schemas) as engine:
            failure = engine.run([iter(batches)], count)
        assert failure is None, failure
        return rows

    def halves(self) -> Contender:
        """The control of every scaling figure: two independent engines of one thread, each on half of the input."""
        job = self.job(1)
        batches = self.batches(job)
        middle = len(batches) // 2

        def run() -> None:
            threads = [
                threading.Thread(target=self._run, args=(job, half, 0)) for half in (batches[:middle], batches[middle:])
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return run

    def api(self) -> Contender:
        """What a user writes: `cq.sql(text, stream=table).run()`, the result a table in memory."""
        query = sql(self.case.text(), **{self.case.stream: self.table})

        def run() -> None:
            query.run(threads=WORKERS)

        return run

    def loop(self) -> loops.Loop:
        columns = sum(len(schema) for schema in self.schemas)
        return loops.Loop(self.case.loop, self.whole, columns, BATCH_ROWS)


def check(case: Case, rows: int) -> None:
    """All forms of the case give the same rows, by their number and the sums of their columns."""
    measured = Measured(case, rows)
    made = measured.results()
    expected, names = loops.result_sums(made), measured.schemas[0].names
    forms = {}
    if case.duckdb:
        forms["duckdb"] = peers.Duck(case, measured.table).batches()
    if case.polars is not None:
        forms["polars"] = peers.Bear(case, measured.table).batches()
    sums = {name: loops.result_sums([b.select(names) for b in batches]) for name, batches in forms.items()}
    if loops.compiler_version():
        sums["c++"] = measured.loop().sums()
    wrong = {name: found for name, found in sums.items() if found != expected}
    assert not wrong, f"{case.name}: cq {expected}, {wrong}"


def memory_race(case: Case, rows: int, rounds: int) -> Race:
    """All contenders over the same Arrow memory."""
    measured = Measured(case, rows)
    job = measured.job(1)
    bare = BareKernel(job, measured.batches(job))
    duck = peers.Duck(case, measured.table) if case.duckdb else None
    contenders: dict[str, Contender] = {"kernel": bare.run}
    if loops.compiler_version():
        contenders["c++"] = measured.loop().run
    contenders |= {f"-j {n}": measured.engine(n) for n in (0, 1, WORKERS)}
    contenders |= {"halves": measured.halves(), "api": measured.api()}
    if duck is not None:
        contenders["duckdb"] = duck.run
    if case.polars is not None:
        contenders["polars"] = peers.Bear(case, measured.table).run
    try:
        return run_race(measured.units, contenders, rounds)
    finally:
        bare.close()
        if duck is not None:
            duck.close()


@contextmanager
def parquet_file(case: Case, rows: int, directory: Path) -> Iterator[Path]:
    """The case's input as one Parquet file, gone afterwards."""
    path = directory / f"{case.name}.parquet"
    parquet.write_table(pa.Table.from_batches([case.generate(rows)]), path)
    try:
        yield path
    finally:
        path.unlink()


def parquet_race(case: Case, rows: int, rounds: int, directory: Path) -> Race:
    """The whole path of `cq run` from one file, against decoding alone and against peers reading the same file."""
    with parquet_file(case, rows, directory) as path:
        compiled = compile(case.text(path.name), case.name, inputs=Inputs(Access(directory)))
        names = [column.name for column in only_job(compiled, WORKERS).sources[0].columns]

        def cq() -> int:
            sinks = {output.name: Discard() for output in compiled.outputs}
            return sum(run_query(compiled, sinks, options=RunOptions(threads=WORKERS)).rows_out.values())

        def decoded() -> None:
            parquet.read_table(path, columns=names)

        duck = peers.Duck(case, path=str(path))
        try:
            contenders: dict[str, Contender] = {"cq": cq, "pyarrow": decoded, "duckdb": duck.run}
            contenders["polars"] = peers.Bear(case, path=str(path)).run
            return run_race(rows * case.units, contenders, rounds)
        finally:
            duck.close()
