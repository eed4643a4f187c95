"""The Python interface of cq: load a query, run it over tables and files, or feed it row by row.

Errors are those of `cq.errors`, including bugs of ours (CQ0999); exceptions of your inputs and functions pass through.
"""

from __future__ import annotations

import html
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from cq.compiler.kept_plans import OF_PROCESS, KeptPlans
from cq.compiler.passes import EXPLAINED, Compiled, compile, read_text
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs, is_path
from cq.connectors.memory import as_reader
from cq.connectors.protocol import Sink
from cq.connectors.sinks.writers import MemorySink, open_sink, result_schema
from cq.engines.compare import Difference, compare_runs, tolerance_between
from cq.engines.engines import engine_named
from cq.engines.left_out_rows import losses
from cq.engines.protocol import RunOptions
from cq.engines.query import collect, opening_sinks, run_reading_again
from cq.errors import CompileError, CqError, Diagnostic, SourceText, UsageError, mistakes_told, printable
from cq.grammar.naming import names_of
from cq.grammar.parser import parse
from cq.hints import PYTHON, facing
from cq.job import Job
from cq.lang.aggregates.user import UserFold
from cq.lang.functions.user import UserFunction
from cq.planner.binding.settings import MEMORY_LIMIT, setting_value, takes
from cq.planner.plan.logical import Output as PlannedOutput
from cq.result import Hashes, Output, Result


@contextmanager
def _in_python() -> Iterator[None]:
    """Report bugs of ours as such, and word hints for Python, or for where the call came from."""
    with mistakes_told(), facing(PYTHON):
        yield


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
    restrict: the directories whose files its text may name, for queries from strangers; by default, all that the user
    may access.  functions: user-defined functions that it may call (`@cq.udf`, `@cq.udaf`).
    Raises UsageError when the file cannot be read, CompileError when it is too long or not UTF-8.
    """
    file = Path(path)
    return Query(read_text(file), str(path), file.parent, variables=variables, restrict=restrict, functions=functions)


def sql(
    text: str, *, restrict: _Paths | None = None, functions: Sequence[UserFunction | UserFold] = (), **given: Any
) -> Query:
    """Return the query of a text; its mistakes are raised when it is checked, explained or run.

    restrict, functions: as in `load`.
    given: values of its parameters (`:name`), and what its streams read: paths, Arrow, pandas or polars tables, lists
    of dicts, readers. They are kept, not copied; a reader serves one run. A stream that has an input needs no CREATE
    STREAM. Paths start at the working directory.
    """
    if not isinstance(text, str):
        way = "pass the text itself, or a file with cq.load(path)"
        raise UsageError(Diagnostic("CQ0208", f"a query is text, not of type {type(text).__name__}", help=(way,)))
    inputs, variables = _parted(text, given)
    return Query(text, "<python>", Path(), inputs=inputs, variables=variables, restrict=restrict, functions=functions)


def _parted(text: str, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(inputs, values of parameters), under the names in the text. An invalid text is reported when it is run."""
    if not any(f":{name.lower()}" in text.lower() for name in given):  # then nothing needs to be parsed
        return given, {}
    try:
        names = names_of(parse(SourceText("<python>", text)))
    except CqError:
        return given, {}
    variables = {name: value for name, value in given.items() if name in names.parameters}
    return {k: v for k, v in given.items() if k not in variables or k in names.streams}, variables


def run(query: str | os.PathLike[str] | Query, inputs: Mapping[str, Any] | None = None, **options: Any) -> Result:
    """Run a query and return its result; options and errors as in `Query.run`.

    query: a Query, a path, or a str: the path of a file if it ends in `.cq` and has one line, else the text itself.
    inputs: by stream, in addition to the query's own, which they override.
    """
    return _as_query(query).run(inputs, **options)


@_in_python()
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
    """A query text with its inputs. Compiled when first needed, since schemas may come from its inputs."""

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
        self._kept = KeptPlans() if self._functions else OF_PROCESS

    @_in_python()
    def bound(
        self, inputs: Mapping[str, Any] | None = None, settings: Mapping[str, int | str] | None = None
    ) -> Compiled:
        """Compile the query as far as the logical plan, over these inputs besides its own; nothing is run.

        settings: override what the text SETs. Raises CompileError with every mistake of the text, UsageError where an
        input cannot be found or read.
        """
        roots = None if self._restrict is None else tuple(Path(d).absolute() for d in self._restrict)
        access = FileAccess(self._directory, roots)
        stem = Path(self.name).stem if self.name != "<python>" else "query"
        given = Inputs(access, {**self._inputs, **(inputs or {})}, dead_letters=stem)
        return compile(self.text, self.name, self._variables, given, settings, self._functions, self._kept)

    def with_variables(self, **variables: Any) -> Query:
        """Return the same query with these parameter values in addition to its own; this one is unchanged."""
        return Query(
            self.text,
            self.name,
            self._directory,
            inputs=self._inputs,
            variables={**self._variables, **variables},
            restrict=self._restrict,
            functions=self._functions,
        )

    @_in_python()
    def check(self, inputs: Mapping[str, Any] | None = None) -> tuple[Diagnostic, ...]:
        """Return the warnings, or raise a CompileError with every mistake, including anything that no native kernel can
        run.

        Reads only what schemas need from the inputs, and runs over no rows.
        """
        found = self.bound(inputs).findings()
        if any(d.severity == "error" for d in found):
            raise CompileError(*found)
        return found

    @_in_python()
    def explain(
        self,
        stage: str = EXPLAINED,
        inputs: Mapping[str, Any] | None = None,
        format: str = "tree",
        *,
        threads: int | None = None,
        verbose: bool = False,
        analyze: bool = False,
    ) -> str:
        """Return what the query is at a stage of compilation, as text; nothing is run unless `analyze`.

        stage: text, logical (as written), rewritten (what runs), stages, code or spark.  format: tree, json, dot,
        mermaid, svg or html; text and code have tree only.  threads: as for `run`; how stages run, and their code,
        depend on it.  verbose: all details of each operator, including its identity.  analyze: run the query, discard
        its rows, and show what its stages did. Raises UsageError for others, and CompileError as `check` does.
        """
        compiled = self.bound(inputs)
        if analyze:
            from cq.engines.analysis import analyze as run_counting
            from cq.engines.analysis import drawn

            return drawn(run_counting(compiled, threads), format)
        return compiled.for_workers(compiled.workers(threads)).explain(stage, format, verbose)

    @_in_python()
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
        for each usable processor, less one if a generator is read.
        batch_rows: rows of a batch at most; results do not depend on it.
        limit: rows of each output; the run ends when all have them.
        memory_limit: for the state of the query, in bytes or such as "2GB"; "none" for no limit.
        What the command line warns of is a UserWarning, and so are rows that came late or could not be read.
        Raises CompileError and UsageError before the first row, DataError for a row that cannot be read or computed:
        files of sinks are then as they were before, unless the input has no end.
        """
        within = _memory_limit(memory_limit)
        engine_named(engine)
        compiled = self.bound(inputs)
        for warning in compiled.warnings:
            _warn(warning.message)
        access, reserved = compiled.request.inputs.access, compiled.read_files
        kept: dict[str, MemorySink] = {}

        def opened(compiled: Compiled) -> Mapping[str, Sink]:
            with opening_sinks() as sinks:
                for output in compiled.outputs:
                    fields, declared = output.node.schema.fields, _declared_sink(output)
                    if declared is not None:
                        sinks[output.name] = open_sink(fields, declared, access, reserved, compiled.endless(output))
                    else:
                        sinks[output.name] = kept[output.name] = MemorySink(result_schema(fields))
            return sinks

        unhashed = frozenset(o.name for o in compiled.outputs if _declared_sink(o) is None)
        options = RunOptions(threads, batch_rows, limit, unhashed, memory_limit=within)
        stats = run_reading_again(compiled, opened, engine, options)
        tables = {name: sink.table() for name, sink in kept.items()}
        stats.hashes = Hashes(stats.hashes, tables)
        lost = losses(stats, compiled.plan)
        for loss in lost:
            _warn(loss)
        return Result({name: Output(name, table) for name, table in tables.items()}, stats, lost)

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


def _warn(message: str) -> None:
    """Issue a UserWarning placed where cq was called."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in {"cq", "contextlib"}:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, stacklevel=depth)


def _declared_sink(output: PlannedOutput) -> dict[str, str] | None:
    """The options of the sink that the text declares for these rows, unless they stay in memory."""
    options = dict(output.sink.options) if output.sink is not None else {"connector": "memory"}
    return options if options.get("connector") != "memory" else None


def _memory_limit(given: int | str | None) -> int | None:
    value = None if given is None else setting_value(MEMORY_LIMIT, given)
    if given is not None and value is None:
        raise UsageError(Diagnostic("CQ0208", f"{MEMORY_LIMIT} takes {takes(MEMORY_LIMIT)}, not {given!r}"))
    assert not isinstance(value, str), "a size is a number of bytes"
    return value
