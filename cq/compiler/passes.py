"""From text to Pipeline: every pass of the compiler, in order, as one list.

`Compiled` runs a pass when its result is needed, and keeps the result: `check` stops after bind, `explain` at the
stage it shows, the reference and Spark run the bound plan, only the native engine needs the Pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cq.compiler.kept_plans import KeptPlans
from cq.connectors.access import FileAccess, identity
from cq.connectors.inputs import Inputs, is_path
from cq.errors import CompileError, Diagnostic, Severity, SourceText, UsageError, did_you_mean
from cq.garbage_collection import collector_paused
from cq.process_limits import usable_cpus
from cq.records import dataclass, field, replace
from cq.ways import SCHEMES, UNCHECKED, Sharing

if TYPE_CHECKING:
    from cq.grammar.ast import Script
    from cq.lang.aggregates.user import UserFold
    from cq.lang.event_time import ProposedTime
    from cq.lang.functions.user import UserFunction
    from cq.lang.schema import Field, Unheld
    from cq.lang.types import DataType
    from cq.planner.binding.binder import BoundScript
    from cq.planner.binding.settings import Settings
    from cq.planner.physical.stages import PhysicalPlan
    from cq.planner.plan.logical import LogicalPlan, Output
    from cq.planner.plan.source import SourceDef
    from cq.runtime.layout.pipeline import Pipeline
    from cq.spark.lower import SparkQuery

UNSAFE = f"with transactions = '{UNCHECKED}' events overwrite one another's changes: the result changes from run to run"
SAFER = "for measuring only: write SET transactions = 'auto' for results"
MAX_TEXT_BYTES = 1 << 20  # of a query file (`cq limits`)


@dataclass(frozen=True, slots=True)
class Request:
    """A query text and everything its compilation depends on. settings: override what the text SETs.

    counting: kernels count the rows of every operator.  scheme: how transactions run, where they can.
    sharing: how workers share transactions that run together.
    functions: the user's functions that the text may call.  kept: results of passes over earlier plans.
    """

    source: SourceText
    inputs: Inputs
    variables: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, int | str] = field(default_factory=dict)
    workers: int = 1
    scheme: str = SCHEMES[0]
    sharing: Sharing = Sharing()
    counting: bool = False
    functions: tuple[UserFunction | UserFold, ...] = ()
    kept: KeptPlans = field(default_factory=KeptPlans, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pass:
    """One step. run: turns the request and the previous step's result into this step's result.

    stage: the name `explain` gives its result.  dump: the result for people, in one of `formats`, with all details if
    the last argument is true; the request has the text whose line numbers it holds.
    """

    name: str
    stage: str
    doc: str
    run: Callable[[Request, Any], Any]
    dump: Callable[[Request, Any, str, bool], str]
    formats: tuple[str, ...]


def _parse(request: Request, before: None) -> Script:
    from cq.grammar.parser import parse

    return parse(request.source)


def _bind(request: Request, script: Script) -> BoundScript:
    from cq.lang import aggregates, functions
    from cq.lang.aggregates.user import UserFold
    from cq.lang.functions.user import UserFunction
    from cq.planner.binding.binder import bind
    from cq.planner.binding.catalog import Environment
    from cq.planner.binding.settings import TIME_ZONE

    inputs = request.inputs
    asked = partial(_infer, inputs), partial(_lateness, inputs.access), partial(_proposes, inputs)
    zone = str(request.settings.get(TIME_ZONE, ""))
    environment = Environment(request.variables, inputs.options(), inputs.extra, *asked, zone)
    from cq.planner.plan.verify import verify

    try:
        scalars = (f.entry for f in request.functions if isinstance(f, UserFunction))
        folds = (f.entry for f in request.functions if isinstance(f, UserFold))
        with functions.given(scalars), aggregates.given(folds):
            bound = bind(script, environment)
        verify(bound.plan)
        return bound
    except CompileError as error:
        raise error.at(request.source) from None


def _infer(inputs: Inputs, name: str, options: Mapping[str, str]) -> tuple[Field | Unheld, ...]:
    """The columns of a stream that declares none."""
    from cq.connectors.inference import infer, infer_file, infer_given

    given = inputs.given.get(name)
    if given is None or options.get("connector") == "stdin":
        found = infer(options, inputs.access, name)
    elif is_path(given):
        found = infer_file(options["path"], options, inputs.access.trusted(), name)
    else:
        found = infer_given(given, name)
    wider = inputs.wider.get(name, {})
    if not wider:
        return found
    from cq.lang.schema import Field

    return tuple(replace(f, type=wider[f.name]) if isinstance(f, Field) and f.name in wider else f for f in found)


def _lateness(access: FileAccess, options: Mapping[str, str], fields: tuple[Field, ...], column: int) -> int | None:
    """How far a time of a file lies behind an earlier one, at most. None for an input that can be read only once."""
    from cq.connectors.lateness import seen_times

    if not _can_be_read_twice(access, options):
        return None
    return seen_times(fields, column, options, access, most_rows=None).delay_us


def _proposes(
    inputs: Inputs, stream: str, options: Mapping[str, str], fields: tuple[Field, ...], column: int
) -> ProposedTime | None:
    """What turns a column of a file or an object in memory into times. None for inputs that can be read only once."""
    from cq.connectors.memory import is_kept
    from cq.connectors.proposed_times import proposed_time
    from cq.grammar.inline import name

    given = inputs.given.get(stream) if options.get("connector") == "memory" else None
    if not (_can_be_read_twice(inputs.access, options) if given is None else is_kept(given)):
        return None
    return proposed_time(name(fields[column].name), fields, column, options, inputs.access, given=given)


def _can_be_read_twice(access: FileAccess, options: Mapping[str, str]) -> bool:
    from cq.connectors.inputs import is_special

    path = options.get("path")
    if options.get("connector", "file") != "file" or path is None or options.get("follow") == "true":
        return False
    return not any(is_special(access.base / p) for p in access.expand(path))


def _rewrite(request: Request, bound: BoundScript) -> LogicalPlan:
    from cq.planner.rewriting.rewrite import rewrite

    return rewrite(bound.plan)


def demand_output(plan: LogicalPlan) -> None:
    """CQ0606 for a text that only declares things: it has nothing to run."""
    if not plan.outputs:
        help = ("add a SELECT, or an INSERT INTO a sink",)
        raise UsageError(Diagnostic("CQ0606", "the query has no output", help=help))


def _place(request: Request, plan: LogicalPlan) -> tuple[PhysicalPlan, ...]:
    demand_output(plan)
    from cq.codegen.lane_keys import decides_lane, needs_no_python, needs_no_state
    from cq.planner.physical.choose import choose
    from cq.planner.physical.stages import verify
    from cq.planner.physical.transactions import Natively

    natively = Natively(needs_no_state, needs_no_python)
    parts = choose(plan, request.workers, decides_lane, natively, request.scheme, request.sharing)
    return tuple(verify(part) for part in parts)


def _emit(request: Request, parts: tuple[PhysicalPlan, ...]) -> tuple[Pipeline, ...]:
    from cq.codegen.pipeline import write_pipeline
    from cq.runtime.layout.pipeline import verify_pipeline

    try:
        return tuple(verify_pipeline(write_pipeline(part, request.counting)) for part in parts)
    except CompileError as error:
        raise error.at(request.source) from None


def _dump_script(request: Request, script: Script, format: str, verbose: bool) -> str:
    from cq.grammar.printer import print_script

    return print_script(script)


def _dump_bound(request: Request, bound: BoundScript, format: str, verbose: bool) -> str:
    return _dump_plan(request, bound.plan, format, verbose)


def _dump_plan(request: Request, plan: LogicalPlan, format: str, verbose: bool) -> str:
    from cq.planner.explain import explain

    return explain(plan, format=format, verbose=verbose)


def _dump_stages(request: Request, parts: tuple[PhysicalPlan, ...], format: str, verbose: bool) -> str:
    from cq.planner.explain import explain

    return explain(parts[0].plan, parts, format, verbose)


def _lower(request: Request, bound: BoundScript) -> tuple[SparkQuery, ...]:
    from cq.spark.lower import lower, lower_triggers

    try:
        return (*(t.events for t in lower_triggers(bound.plan)), *lower(bound.plan))
    except CompileError as error:
        raise error.at(request.source) from None


def _dump_spark(request: Request, queries: tuple[SparkQuery, ...], format: str, verbose: bool) -> str:
    if format == "json":
        return json.dumps([{"name": q.name, "text": q.text, "constants": q.constants} for q in queries], default=str)
    return "\n\n".join(f"-- {q.name}\n{q}" for q in queries)


def _dump_pipelines(request: Request, pipelines: tuple[Pipeline, ...], format: str, verbose: bool) -> str:
    from cq.compiler.listing import listing

    return listing(pipelines, request.source)


TEXT = ("tree",)
PICTURES = ("tree", "json", "dot", "mermaid", "svg", "html")

PASSES: tuple[Pass, ...] = (
    Pass("parse", "text", "text to syntax tree; all syntax errors at once", _parse, _dump_script, TEXT),
    Pass("bind", "logical", "names, types, times: the plan that defines the meaning", _bind, _dump_bound, PICTURES),
    Pass("rewrite", "rewritten", "the same meaning with less work", _rewrite, _dump_plan, PICTURES),
    Pass("place", "stages", "the stages that run and how, for the number of workers", _place, _dump_stages, PICTURES),
    Pass("emit", "code", "the Pipeline the native engine runs: generated stages, state", _emit, _dump_pipelines, TEXT),
)
SPARK = Pass("lower", "spark", "the SQL texts Spark runs, of the bound plan", _lower, _dump_spark, ("tree", "json"))
STAGES = tuple(p.stage for p in (*PASSES, SPARK))
EXPLAINED = "rewritten"  # the default stage: the operators and the state of a run


class Compiled:
    """A query on its way to a Pipeline. A pass that failed fails again with the same error."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._done: dict[str, Any] = {}  # results of the passes that read the text and the inputs
        self._made: dict[str, Any] | None = None  # results of the later passes, which depend on the plan alone
        self._by_workers: dict[int, Compiled] = {}

    def after(self, name: str) -> Any:
        """The result of the pass `name`, after running all passes before it."""
        result: Any = None
        for step in PASSES:
            results = self._results(step)
            if step.name not in results:
                with collector_paused():
                    results[step.name] = step.run(self.request, result)
            result = results[step.name]
            if step.name == name:
                return result
        raise AssertionError(f"no pass {name}")

    def _results(self, step: Pass) -> dict[str, Any]:
        """The dict that holds the results of a pass; already filled if the plan was compiled before."""
        if step.name in {"parse", "bind"}:
            return self._done
        if self._made is None:
            request = self.request
            key = (request.source.text, request.workers, request.scheme, request.sharing, request.counting)
            self._made = request.kept.of(key, self.plan)
        return self._made

    def for_workers(self, workers: int) -> Compiled:
        """The same query, compiled once for this many workers; results of other passes are kept."""
        if workers not in self._by_workers:
            other = self._going_on(self._request_for(workers))
            self._by_workers[workers] = other
        return self._by_workers[workers]

    def _going_on(self, request: Request) -> Compiled:
        """The query under another request that is equal in everything the passes up to the rewriting depend on."""
        rewritten = self.after("rewrite")
        other = Compiled(request)
        other._done = self._done
        other._results(PASSES[-1]).setdefault("rewrite", rewritten)
        return other

    def _request_for(self, workers: int) -> Request:
        said = self.settings
        return replace(self.request, workers=workers, scheme=said.transactions, sharing=said.sharing)

    def counting(self) -> Compiled:
        """The same query, with kernels that count the rows of every operator."""
        return self._going_on(replace(self.request, counting=True))

    def widened(self, stream: str, column: str, type_: DataType) -> Compiled:
        """The query recompiled, with another type for a column whose type was guessed. CompileError if it needs the
        guessed type."""
        inputs = self.request.inputs
        wider = {**inputs.wider, stream: {**inputs.wider.get(stream, {}), column: type_}}
        other = Compiled(replace(self.request, inputs=replace(inputs, wider=wider)))
        other.after("bind")
        return other

    def with_inputs_as_written(self) -> Compiled:
        """The same query, its inputs under their names in the text. CompileError with all syntax errors."""
        from cq.grammar.naming import as_written

        inputs = self.request.inputs
        names = as_written(sorted({*inputs.given, *inputs.extra}), self.script)
        other = Compiled(replace(self.request, inputs=inputs.called(names)))
        other._done = {"parse": self.script}
        return other

    def of_plan(self, plan: LogicalPlan) -> Compiled:
        """Another plan of the same text (an EXPLAIN statement's), bound."""
        from cq.planner.plan.verify import verify

        other = Compiled(self.request)
        other._done = {"parse": self.script, "bind": replace(self.bound, plan=verify(plan))}
        return other

    def explain(self, stage: str = EXPLAINED, format: str = "tree", verbose: bool = False) -> str:
        """What the query is at a stage of compilation, as text. CQ0208 for an unknown stage or format.

        verbose: with everything known about each operator.
        """
        step = next((p for p in (*PASSES, SPARK) if p.stage == stage), None)
        if step is None:
            ways = (did_you_mean(stage, STAGES), "stages: " + ", ".join(STAGES))
            raise UsageError(Diagnostic("CQ0208", f'there is no stage "{stage}"', help=tuple(w for w in ways if w)))
        if format not in step.formats:
            way = "formats: " + ", ".join(step.formats)
            raise UsageError(Diagnostic("CQ0208", f'stage "{stage}" cannot be shown as "{format}"', help=(way,)))
        made = step.run(self.request, self.bound) if step is SPARK else self.after(step.name)
        return step.dump(self.request, made, format, verbose)

    @property
    def script(self) -> Script:
        """The syntax tree. CompileError with all syntax errors."""
        script: Script = self.after("parse")
        return script

    @property
    def bound(self) -> BoundScript:
        """The text with names and types resolved: plan, sources, settings, warnings. CompileError with all errors."""
        bound: BoundScript = self.after("bind")
        return bound

    @property
    def plan(self) -> LogicalPlan:
        """The bound plan: what the reference and Spark run."""
        return self.bound.plan

    @property
    def sources(self) -> tuple[SourceDef, ...]:
        """The streams the query reads, without those it only declares."""
        return self.bound.sources

    @property
    def streams(self) -> tuple[SourceDef, ...]:
        """The sources that read rows from outside: those the text declares or the caller names."""
        return tuple(s for s in self.sources if s.rows is None)

    @property
    def constants(self) -> tuple[SourceDef, ...]:
        """The sources whose rows are written in the query."""
        return tuple(s for s in self.sources if s.rows is not None)

    @property
    def read_files(self) -> frozenset[tuple[int, int]]:
        """The files its streams read, and its own file, by (device, inode): nothing may overwrite one."""
        query = identity(self.request.source.name)
        return self.request.inputs.reserved(self.sources) | (frozenset() if query is None else {query})

    def endless(self, output: Output) -> bool:
        """Whether the rows of an output may never end: it reads a generator, a pipe, a device."""
        from cq.planner.plan.node import topological
        from cq.planner.plan.source import sources_of

        read = sources_of(topological((output.node,)))
        return any(not s.bounded or self.request.inputs.goes_on(s) for s in read)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs of the query, in the order of the text; empty for a text of declarations only."""
        return self.plan.outputs

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Findings that do not stop the query, with their places in the text."""
        return tuple(w.at(self.request.source) for w in self.bound.warnings)

    def findings(self) -> tuple[Diagnostic, ...]:
        """Everything `check` reports about a query that binds: warnings, and what the native engine with its settings,
        and Spark, cannot run."""
        from cq.planner.binding.lint import lint

        found = [*self.warnings, *lint(self.script, self.bound, self.request.variables)]
        found += self._uncompiled()
        found += [Diagnostic("CQ0904", UNSAFE, severity="warning", help=(SAFER,))] if self.unchecked else []
        found += self._refusals("error", lambda: self.for_workers(self.workers()).after("emit"))
        found += self._refusals("warning", lambda: self.explain("spark"))
        return tuple(d.at(self.request.source) for d in found)

    def _uncompiled(self) -> list[Diagnostic]:
        """The calls of the user's functions that kernels leave to Python, and why."""
        from cq.codegen.expressions.user import why_python
        from cq.planner.plan.user_calls import user_calls, user_folds

        found = {}
        called = [*user_calls(self.plan)]
        for node in self.plan.nodes():
            called += [(part, span) for fold, span in user_folds(node) for part in (fold.add, fold.result)]
        for function, span in called:
            if function.name not in found and (why := why_python(function)):
                cause = f"Python is called for each value of {function.name}(): {why}"
                help = ("numbers, conditions, loops and functions of math are compiled",)
                found[function.name] = Diagnostic("CQ0903", cause, span, severity="warning", help=help)
        return list(found.values())

    def _refusals(self, severity: Severity, step: Callable[[], object]) -> list[Diagnostic]:
        """Why a later pass cannot follow the plan, if it cannot."""
        try:
            if self.outputs:
                step()
        except CompileError as error:
            return [replace(d, severity=severity) for d in error.diagnostics]
        return []

    @property
    def unchecked(self) -> bool:
        """Whether transactions run without locks, so that two runs may give different results."""
        from cq.planner.physical.transactions import transactions_of

        return self.settings.transactions == UNCHECKED and bool(transactions_of(self.plan))

    def workers(self, asked: int | None = None) -> int:
        """How many workers run the query: as requested, else as SET in the text, else one for each usable processor.

        A stream that computes its rows keeps one processor busy: with a worker there too, both wait for each other.
        """
        from cq.connectors.registry import SOURCES
        from cq.planner.binding.settings import MOST_THREADS

        said = asked if asked is not None else self.settings.parallelism
        if said is not None:
            return said
        computed = any(SOURCES[s.option("connector")].computes for s in self.streams)
        return max(1, min(usable_cpus() - computed, MOST_THREADS))

    @property
    def settings(self) -> Settings:
        """The settings as requested for this run, else as SET in the text, else the defaults."""
        from cq.planner.binding.settings import Settings

        said: dict[str, Any] = {**self.bound.settings, **self.request.settings}
        return Settings(**said)


def compile(
    text: str,
    name: str = "<text>",
    variables: Mapping[str, Any] | None = None,
    inputs: Inputs | None = None,
    settings: Mapping[str, int | str] | None = None,
    functions: Sequence[UserFunction | UserFold] = (),
    kept: KeptPlans | None = None,
) -> Compiled:
    """The query, bound: its errors have been raised, nothing has been run.

    name: what errors call the text.  variables: values of its parameters.  inputs: what its streams read.
    functions: the user's functions, by names that no other function has (CQ0202).
    kept: results of passes over earlier plans; if omitted, none are reused.
    """
    from cq.planner.binding.settings import asked_settings

    asked = asked_settings(settings or {})
    _check_functions(functions)
    request = Request(
        SourceText(name, text),
        inputs or Inputs(FileAccess(Path.cwd())),
        dict(variables or {}),
        asked,
        functions=tuple(functions),
        kept=kept or KeptPlans(),
    )
    compiled = Compiled(request)
    if any(name != name.lower() for name in {*request.inputs.given, *request.inputs.extra}):
        compiled = compiled.with_inputs_as_written()
    compiled.after("bind")
    return compiled


def _check_functions(functions: Sequence[UserFunction | UserFold]) -> None:
    if not functions:
        return
    from cq.lang.aggregates.user import UserFold
    from cq.lang.functions.user import UserFunction
    from cq.planner.binding.functions.names import known_functions

    taken = set(known_functions())
    for function in functions:
        if not isinstance(function, UserFunction | UserFold):
            cause = f"functions takes what @cq.udf and @cq.udaf made, not {function!r}"
            raise UsageError(Diagnostic("CQ0205", cause, help=("write @cq.udf above the function",)))
        if function.name in taken:
            cause = f"there is a function {function.name} already"
            way = f'give it another name: @cq.udf(name="my_{function.name}")'
            raise UsageError(Diagnostic("CQ0202", cause, help=(way,)))
        taken.add(function.name)


def read_text(path: Path) -> str:
    """The text of a query file; CQ0601 if it cannot be read, CQ0103 or CQ0105 if it is not a query text."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TEXT_BYTES + 1)
    except OSError as e:
        from cq.connectors.access import nearest

        near = nearest(path)
        if isinstance(e, FileNotFoundError):
            help = (f'did you mean "{path.with_name(near)}"?',) if near else (f"the working directory is {Path.cwd()}",)
        else:
            help = ("name a file with a query, such as query.cq",)
        cause = f'cannot open "{path}": {(e.strerror or str(e)).lower()}'
        raise UsageError(Diagnostic("CQ0601", cause, help=help)) from None
    if len(raw) > MAX_TEXT_BYTES:
        raise CompileError(Diagnostic("CQ0103", f"{path} is longer than {MAX_TEXT_BYTES >> 20} MiB"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = raw.count(b"\n", 0, e.start) + 1
        raise CompileError(Diagnostic("CQ0105", f"{path}:{line}: the text is not UTF-8")) from None
