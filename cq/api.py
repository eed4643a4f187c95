"""The Python face of cq: load a query, run it over tables and files, or feed it row by row.

Errors are those of `cq.errors`; nothing else is raised on purpose. Results are Arrow underneath and become pandas or
polars frames when asked.
"""

from __future__ import annotations

import html
import io
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cq.compiler.passes import Compiled, compile, read_text
from cq.connectors.access import Access
from cq.connectors.bad_rows import BadRows
from cq.connectors.inputs import Inputs, is_path
from cq.connectors.memory import as_reader, read_memory
from cq.connectors.rowhash import RowHash
from cq.connectors.rules import Rules
from cq.connectors.sinks.writers import Memory, open_sink, result_schema
from cq.connectors.sources import PiecedSource
from cq.engines import stepping
from cq.engines.compare import Difference, compare_runs, tolerance_between
from cq.engines.engines import engine_named
from cq.engines.protocol import RunOptions, RunSummary
from cq.engines.query import collect, opening_sinks, run_query
from cq.errors import CompileError, CqError, Diagnostic, UsageError, did_you_mean, printable
from cq.lang.aggregates.user import UserFold
from cq.lang.functions.user import UserFunction
from cq.planner.binding.settings import MEMORY_LIMIT, setting_value, takes

if TYPE_CHECKING:
    import asyncio

HTML_ROWS = 20  # of a result in a notebook
_Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def load(
    path: str | os.PathLike[str],
    *,
    restrict: _Paths | None = None,
    functions: Sequence[UserFunction | UserFold] = (),
    **variables: Any,
) -> Query:
    """Return the query in a file; it is read now, compiled when it is checked, explained or run.

    variables: values of its parameters (`:name`). Relative paths in the text start at the file's directory.
    restrict: the directories whose files its text may name, for the query of a stranger; left out, all the user may.
    functions: those of the user's that it may call (`@cq.udf`, `@cq.udaf`).
    Raises UsageError when the file cannot be read, CompileError when it is too long or not UTF-8.
    """
    file = Path(path)
    return Query(read_text(file), str(path), file.parent, variables=variables, restrict=restrict, functions=functions)


def sql(
    text: str, *, restrict: _Paths | None = None, functions: Sequence[UserFunction | UserFold] = (), **inputs: Any
) -> Query:
    """Return the query of a text; its mistakes are raised when it is checked, explained or run.

    restrict, functions: as of `load`.
    inputs: what its streams read: paths, Arrow, pandas or polars tables, lists of dicts, readers. They are kept, not
    copied; a reader serves one run. A stream that has an input needs no CREATE STREAM. Paths start at the working
    directory.
    """
    return Query(text, "<python>", Path(), inputs=inputs, restrict=restrict, functions=functions)


def run(query: str | os.PathLike[str] | Query, inputs: Mapping[str, Any] | None = None, **options: Any) -> Result:
    """Run a query and return its result; options and errors as of `Query.run`.

    query: a Query, a path, or a str: the path of a file if it ends in `.cq` and has one line, else the text itself.
    inputs: by stream, besides those the query has; of one that has both, this one is read.
    """
    return _as_query(query).run(inputs, **options)


def diff(
    query: str | os.PathLike[str] | Query,
    inputs: Mapping[str, Any] | None = None,
    against: str = "reference",
    *,
    engine: str = "native",
    order: str | None = None,
    tolerance: float | None = None,
    threads: int | None = None,
    rows: int | None = None,
) -> Difference:
    """Run a query on two engines and return how their rows differ; `.raise_if_different()`, `.equal`, `str()`.

    Nothing is written to sinks; both results are held in memory, and so are inputs that can be read only once.
    query, inputs: as in `run`.  order: "strict" or "ignore"; left out, rows must be in the same order unless one side
    is Spark.  tolerance: how far apart two DOUBLE values that count as equal may be, by the larger of them or of 1;
    left out, 1e-9 if one side is Spark, else 0: the same bits.  rows: how many first rows of each input are read.
    A data error is part of what is compared, not raised; CompileError and UsageError are raised.
    """
    if order not in {None, "strict", "ignore"}:
        raise UsageError(Diagnostic("CQ0208", f"order must be strict or ignore, not {order!r}"))
    within = tolerance_between(engine, against, tolerance)
    prepared = _as_query(query).bound({k: _reusable(v, k) for k, v in (inputs or {}).items()})
    options = RunOptions(threads, input_rows=rows)
    sides = [(name, collect(prepared, name, options)) for name in (engine, against)]
    strict = order == "strict" if order is not None else "spark" not in engine + against
    (left, a), (right, b) = sides
    return compare_runs((left, a.tables, a.error), (right, b.tables, b.error), strict, within)


def _as_query(query: str | os.PathLike[str] | Query) -> Query:
    if isinstance(query, Query):
        return query
    text = os.fspath(query)
    return load(text) if not isinstance(query, str) or (text.endswith(".cq") and "\n" not in text) else sql(text)


def _reusable(given: Any, name: str) -> Any:
    """An input that can be read twice."""
    return (
        given
        if is_path(given) or isinstance(given, pa.Table | list | dict)
        else as_reader(given, None, name).read_all()
    )


class Query:
    """A query text with what it is given. Compiled when first needed, so that schemas may come from its inputs."""

    def __init__(
        self,
        text: str,
        name: str = "<python>",
        directory: Path | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        restrict: _Paths | None = None,
        functions: Sequence[UserFunction | UserFold] = (),
    ) -> None:
        self.text, self.name = text, name
        self._functions = tuple(functions)
        self._restrict = [restrict] if isinstance(restrict, str | os.PathLike) else restrict
        self._directory = (directory or Path()).absolute()
        self._inputs, self._variables = dict(inputs or {}), dict(variables or {})
        self._compiled: Compiled | None = None  # by the last call

    def bound(self, inputs: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None) -> Compiled:
        """Compile the query as far as the logical plan, over these inputs besides its own; nothing is run.

        settings: override what the text SETs. Raises CompileError with every mistake of the text, UsageError where an
        input cannot be found or read.
        """
        roots = None if self._restrict is None else tuple(Path(d).absolute() for d in self._restrict)
        access = Access(self._directory, roots)
        stem = Path(self.name).stem if self.name != "<python>" else "query"
        given = Inputs(access, {**self._inputs, **(inputs or {})}, dead_letters=stem)
        compiled = compile(self.text, self.name, self._variables, given, settings, self._functions)
        if self._compiled is not None:
            compiled.take_over(self._compiled)
        self._compiled = compiled
        return compiled

    def with_variables(self, **variables: Any) -> Query:
        """Return the same query with these parameter values besides those it has; this one stays as it is."""
        return Query(
            self.text,
            self.name,
            self._directory,
            inputs=self._inputs,
            variables={**self._variables, **variables},
            restrict=self._restrict,
            functions=self._functions,
        )

    def check(self, inputs: Mapping[str, Any] | None = None) -> tuple[Diagnostic, ...]:
        """Return the warnings, or raise a CompileError with every mistake; what no native kernel can run is one.

        Reads of the inputs what their schemas need, and no rows to run over.
        """
        found = self.bound(inputs).findings()
        if any(d.severity == "error" for d in found):
            raise CompileError(*found)
        return found

    def explain(
        self,
        stage: str = "logical",
        inputs: Mapping[str, Any] | None = None,
        format: str = "tree",
        *,
        threads: int | None = None,
        verbose: bool = False,
        analyze: bool = False,
    ) -> str:
        """Return what the query is at a stage of compilation, as text; nothing is run unless `analyze`.

        stage: text, logical, rewritten, stages, code or spark.  format: tree, json, dot, mermaid, svg or html; text and
        code have tree only.  threads: as for `run`; how stages run, and their code, depend on it.  verbose: all that is
        known of each operator, also its identity.  analyze: run the query, forget its rows, and show what its stages
        did. Raises UsageError for others, and CompileError as `check` does.
        """
        compiled = self.bound(inputs)
        if analyze:
            from cq.engines.analysis import analyze as run_counting
            from cq.engines.analysis import drawn

            return drawn(run_counting(compiled, threads), format)
        return compiled.for_workers(compiled.workers(threads)).explain(stage, format, verbose)

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        engine: str = "native",
        threads: int | None = None,
        batch_rows: int | None = None,
        limit: int | None = None,
        memory_limit: int | str | None = None,
    ) -> Result:
        """Run to the end of the inputs. Outputs with a sink are written there, the others are in the Result.

        inputs: by stream, besides the query's own.  engine: native, reference or spark.
        threads: workers of the native engine; 0: all work in the calling thread; left out, as the text SETs, else one
        for each usable processor.  batch_rows: rows of a batch at most; results do not depend on it.
        limit: rows of each output; the run ends when all have them.
        memory_limit: for the state of the query, in bytes or such as "2GB"; "none" for no limit.
        Raises CompileError and UsageError before the first row, DataError for a row that cannot be read or computed:
        files of sinks are then as they were before, unless the input has no end.
        """
        within = _memory_limit(memory_limit)
        engine_named(engine)
        compiled = self.bound(inputs)
        access, reserved = compiled.request.inputs.access, compiled.read_files
        kept: dict[str, Memory] = {}
        with opening_sinks() as sinks:
            for output in compiled.outputs:
                fields = output.node.schema.fields
                if output.sink is not None and dict(output.sink.options).get("connector") != "memory":
                    declared, endless = dict(output.sink.options), compiled.endless(output)
                    sinks[output.name] = open_sink(fields, declared, access, reserved, endless)
                else:
                    sinks[output.name] = kept[output.name] = Memory(result_schema(fields))
        options = RunOptions(threads, batch_rows, limit, frozenset(kept), memory_limit=within)
        stats = run_query(compiled, sinks, engine, options)
        tables = {name: sink.table() for name, sink in kept.items()}
        stats.hashes = Hashes(stats.hashes, tables)
        return Result({name: Output(name, table) for name, table in tables.items()}, stats)

    def start(
        self,
        *,
        engine: str = "native",
        threads: int = 0,
        batch_rows: int | None = None,
        memory_limit: int | str | None = None,
    ) -> Job:
        """Return a run that waits for `push`; the caller closes it, or uses it in `with`.

        With threads=0 all work happens inside the calls; otherwise that many threads of its own do it. CQ0901 for an
        engine that cannot be fed row by row.

        Nothing is opened: rows of every stream are pushed and rows of every output taken from the job, whatever
        connectors the text declares.
        """
        streams = dict.fromkeys(self._inputs, None)
        if streams:
            names = ", ".join(streams)
            raise UsageError(
                Diagnostic("CQ0602", f"a started query takes its rows from push(): it cannot have an input for {names}")
            )
        return Job(self.bound(), engine, RunOptions(threads, batch_rows, memory_limit=_memory_limit(memory_limit)))

    def __repr__(self) -> str:
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        return f"<cq.Query {self.name}: {printable(first[:60])}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def _memory_limit(given: int | str | None) -> int | None:
    value = None if given is None else setting_value(MEMORY_LIMIT, given)
    if given is not None and value is None:
        raise UsageError(Diagnostic("CQ0208", f"{MEMORY_LIMIT} takes {takes(MEMORY_LIMIT)}, not {given!r}"))
    return value


class Output:
    """The rows of one output, in the order the query defines; NULL is null. Anything that takes Arrow takes it."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name, self._table = name, table

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; no copy is made."""
        return self._table

    def to_pandas(self) -> Any:
        """The rows as a pandas frame; NULLs become what pandas has for them (NaN, None, NaT). Needs pandas."""
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars frame; NULLs stay null. UsageError (CQ0604) without polars."""
        try:
            import polars
        except ImportError:
            raise UsageError(Diagnostic("CQ0604", "polars is not installed", help=("pip install polars",))) from None
        return polars.from_arrow(self._table)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts of Python values, NULL as None. UsageError (CQ0605) for a year beyond Python's."""
        try:
            rows: list[dict[str, Any]] = self._table.to_pylist()
        except OverflowError:
            text = f'output "{self.name}" holds a year that Python\'s dates do not: they go from 1 to 9999'
            help = ("take the rows as Arrow, with to_arrow()", "or the times as text: CAST(ts AS VARCHAR)")
            raise UsageError(Diagnostic("CQ0605", text, help=help)) from None
        return rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def __str__(self) -> str:
        """The first rows as a table."""
        from cq.connectors.sinks.terminal import Screen, Table

        shown = io.StringIO()
        table = Table(self.name, self._table.column_names, Screen(shown, colour=False), HTML_ROWS, "")
        for batch in self._table.to_batches():
            table.write(batch)
        table.close()
        return shown.getvalue().rstrip("\n")

    def __repr__(self) -> str:
        return f"<cq.Output {self.name}: {len(self):,} rows of {', '.join(self._table.column_names)}>"

    def _repr_html_(self) -> str:
        from cq.connectors.sinks.cell_text import column_text

        head = self._table.slice(0, HTML_ROWS).combine_chunks()
        columns = [column_text(c.combine_chunks()).to_pylist() for c in head.columns] if len(head) else []
        names = "".join(f"<th>{html.escape(printable(n))}</th>" for n in head.column_names)
        rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in zip(*columns, strict=True))
        more = f"<p>{len(self) - HTML_ROWS:,} more rows</p>" if len(self) > HTML_ROWS else ""
        return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>{more}"


class Hashes(Mapping[str, str]):
    """The hash of every output; a table in memory is hashed when its hash is first asked for."""

    def __init__(self, known: Mapping[str, str], tables: Mapping[str, pa.Table]) -> None:
        self._known, self._tables = dict(known), dict(tables)

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            hashing = RowHash()
            for batch in self._tables[name].to_batches():
                hashing.update(batch)
            self._known[name] = hashing.digest
            del self._tables[name]
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._known, *self._tables)))

    def __len__(self) -> int:
        return len(set(self._known) | set(self._tables))

    def __repr__(self) -> str:
        return repr(dict(self))


def _html_cell(value: str | None) -> str:
    return "<td><i>NULL</i></td>" if value is None else f"<td>{html.escape(printable(value))}</td>"


class Result(Mapping[str, Output]):
    """The outputs of a run by name, and what it did (`stats`)."""

    def __init__(self, outputs: dict[str, Output], stats: RunSummary) -> None:
        self._outputs, self.stats = outputs, stats

    def __getitem__(self, name: str) -> Output:
        if name not in self._outputs:
            help = tuple(h for h in (did_you_mean(name, self._outputs), "outputs: " + ", ".join(self._outputs)) if h)
            raise UsageError(Diagnostic("CQ0201", f'there is no output "{name}"', help=help))
        return self._outputs[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The output of this name, or the default where there is none: unlike `[]` it raises nothing."""
        return self._outputs.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __contains__(self, name: object) -> bool:
        return name in self._outputs

    @property
    def only(self) -> Output:
        """The output of a query that has one. UsageError (CQ0201) where there are several, or none."""
        if len(self._outputs) != 1:
            names = ", ".join(self._outputs) or "none: all were written to sinks"
            raise UsageError(Diagnostic("CQ0201", f"the result has not one output, but {len(self)}", help=(names,)))
        return next(iter(self._outputs.values()))

    def to_arrow(self) -> pa.Table:
        """The rows of the only output, as `Output.to_arrow`."""
        return self.only.to_arrow()

    def to_pandas(self) -> Any:
        """The rows of the only output, as `Output.to_pandas`."""
        return self.only.to_pandas()

    def to_polars(self) -> Any:
        """The rows of the only output, as `Output.to_polars`."""
        return self.only.to_polars()

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows of the only output, as `Output.to_pylist`."""
        return self.only.to_pylist()

    def __str__(self) -> str:
        """The first rows of every output as tables."""
        titled = len(self._outputs) > 1
        return "\n\n".join(f"{printable(n)}\n{o}" if titled else str(o) for n, o in self._outputs.items())

    def __repr__(self) -> str:
        return "<cq.Result " + ", ".join(f"{n}: {len(o):,} rows" for n, o in self._outputs.items()) + ">"

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{html.escape(printable(n))}</h4>{o._repr_html_()}" for n, o in self._outputs.items())


class Job:
    """A started query. Threads may share it: calls take turns.

    `results(name)` gives what the rows pushed so far have caused and nobody took yet, then stops; `async for` over it
    waits for more until the job has ended. A row that fails inside the query (a division by zero) ends the job: the
    error is raised once everything before it was taken.
    """

    def __init__(self, compiled: Compiled, engine: str, options: RunOptions) -> None:
        self._streams = {s.name: s for s in compiled.streams}
        self._steps = stepping.start(compiled, engine, options)
        self._waiting: dict[str, deque[pa.RecordBatch]] = {o.name: deque() for o in compiled.outputs}
        self._open = dict.fromkeys(self._streams)
        self._rows = dict.fromkeys(self._streams, 0)
        self._bad = {n: _bad_rows(s.option("on_error")) for n, s in self._streams.items()}
        self._lock = threading.RLock()
        self._process = os.getpid() if options.threads else None  # the only one that has the workers
        self._closed = False
        self._failure: CqError | None = None  # what had ended the job when it was closed
        self._changes = 0
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def push(self, stream: str, data: Any) -> None:
        """Rows of a stream, behind all earlier ones: an Arrow batch or table, a frame, a list of dicts, a reader.

        A DataError for a row that cannot be read (`on_error = fail`) leaves the job as it was: none of the rows is
        taken. The batches of a reader are pushes of their own.
        """
        if isinstance(data, pa.RecordBatchReader):
            for part in data:
                self.push(stream, part)
            return
        with self._lock:
            self._demand_open(stream)
            declared = self._streams[stream]
            pieces = read_memory(data, stream, Rules.of(declared), first=self._rows[stream] + 1)
            source = PiecedSource(stream, pieces, self._bad[stream])
            clock = self._steps.clock(stream)
            if clock is not None:
                source.time_by(clock)
            for batch in list(source.batches()):
                self._rows[stream] += batch.batch.num_rows
                self._steps.push(stream, batch)
        self._wake()

    def idle(self, stream: str) -> None:
        """A stream with an IDLE TIMEOUT has nothing for now: no other waits for it, until rows are pushed to it again.

        Those come behind everything that could be processed by then; of them a row below the watermark is late.
        """
        with self._lock:
            self._demand_open(stream)
            if self._streams[stream].idle_us is None:
                help = ("declare it: WATERMARK FOR column IDLE TIMEOUT INTERVAL '10' SECOND",)
                raise UsageError(Diagnostic("CQ0602", f"stream {stream} is declared without IDLE TIMEOUT", help=help))
            self._steps.silence(stream)
        self._wake()

    def end(self, stream: str | None = None) -> None:
        """A stream, or every stream, has no more rows: what only the end decides is decided."""
        with self._lock:
            if stream is not None:
                self._demand_open(stream)
            for name in [stream] if stream is not None else list(self._open):
                self._steps.end(name)
                del self._open[name]
        self._wake()

    def results(self, output: str = "result") -> Batches:
        """The record batches of an output, in the order the query defines."""
        if output not in self._waiting:
            help = tuple(h for h in (did_you_mean(output, self._waiting), "outputs: " + ", ".join(self._waiting)) if h)
            raise UsageError(Diagnostic("CQ0201", f'there is no output "{output}"', help=help))
        return Batches(self, output)

    @property
    def bad_rows(self) -> dict[str, int]:
        """How many rows of each stream could not be read so far; none of them was taken."""
        return {name: bad.count for name, bad in self._bad.items()}

    @property
    def ended(self) -> bool:
        """Whether no stream can get rows any more."""
        return not self._open or self._closed

    def close(self) -> None:
        """The job has stopped; results that are ready, and the error that ended it, can still be taken.

        May be called twice.
        """
        with self._lock:
            if not self._closed:
                try:
                    if self._has_workers:
                        self._collect()
                    self._failure = self._steps.failure()
                finally:
                    self._closed = True
                    self._steps.close()
        self._wake()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None and not self._closed:
            self.end()
        self.close()

    def take(self, output: str) -> pa.RecordBatch | None:
        """The next batch of an output that is ready; None when there is none now. Raises the error that ended the job
        when nothing is left before it."""
        with self._lock:
            if not self._waiting[output] and not self._closed:
                self._collect()
            if self._waiting[output]:
                return self._waiting[output].popleft()
            failure = self._failure if self._closed else self._steps.failure()
        if failure is not None:
            raise failure
        return None

    @property
    def changes(self) -> int:
        """How often rows were pushed, or a stream or the job ended."""
        return self._changes

    async def sleep_until_changed(self, seen: int) -> None:
        """`changes` is no longer `seen`."""
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self._changes != seen:
                return
            self._sleepers.append((loop, future))
        try:
            await future
        finally:
            with self._lock:
                self._sleepers = [(at, who) for at, who in self._sleepers if who is not future]

    @property
    def _has_workers(self) -> bool:
        return self._process in {None, os.getpid()}

    def _collect(self) -> None:
        self._demand_workers()
        for name, batch in self._steps.ready():
            self._waiting[name].append(batch)

    def _wake(self) -> None:
        with self._lock:
            sleepers, self._sleepers = self._sleepers, []
            self._changes += 1
        for loop, future in sleepers:
            with suppress(RuntimeError):  # the loop was closed while a task slept: nobody is there to be woken
                loop.call_soon_threadsafe(_finish, future)

    def _demand_workers(self) -> None:
        """CQ0602 in a child that was forked: workers are not forked, and waiting for them would never end."""
        if not self._has_workers:
            help = ("start the query in the child process, or with threads=0",)
            raise UsageError(Diagnostic("CQ0602", "the workers of this query belong to another process", help=help))

    def _demand_open(self, stream: str) -> None:
        self._demand_workers()
        if stream not in self._streams:
            help = (did_you_mean(stream, self._streams), "streams: " + ", ".join(self._streams))
            raise UsageError(
                Diagnostic("CQ0201", f'the query reads no stream "{stream}"', help=tuple(h for h in help if h))
            )
        if stream not in self._open or self._closed:
            raise UsageError(Diagnostic("CQ0602", f"stream {stream} has ended"))


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _bad_rows(policy: str) -> BadRows:
    """Pushed rows have no file for dead letters: they are counted."""
    return BadRows("fail" if policy == "fail" else "skip")


class Batches:
    """The record batches of one output of a job."""

    def __init__(self, job: Job, output: str) -> None:
        self._job, self._output = job, output

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._job.take(self._output)) is not None:
            yield batch

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        while True:
            over, seen = self._job.ended, self._job.changes
            batch = self._job.take(self._output)
            if batch is not None:
                yield batch
            elif over:
                return
            else:
                await self._job.sleep_until_changed(seen)
