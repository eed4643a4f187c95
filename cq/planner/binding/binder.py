"""Bind the statements of a file to its logical plan. After this there are no names, only typed positions.

`bind` goes through the statements in order. Each statement is bound on its own, so one run reports the mistakes of all
of them; using a name whose own statement failed is not reported again. Streams and views become nodes once and are
shared by all their readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cq.connectors.registry import BY_NAME
from cq.errors import NOWHERE, TOLD, CompileError, Diagnostic, Findings, Span, amount, compile_error, did_you_mean
from cq.grammar import ast, inline
from cq.lang.casts import castable
from cq.lang.schema import Unheld
from cq.lang.types import NULL, DataType, common_type
from cq.lang.zones import NO_ZONE, session_zone
from cq.planner.binding.array_keys import demand_plain_keys
from cq.planner.binding.arrival import in_order_of_arrival, rows_that_never_come
from cq.planner.binding.catalog import Catalog, Environment, SinkDecl, broken
from cq.planner.binding.conversion import unsettled
from cq.planner.binding.file_names import names_file, stream_name
from cq.planner.binding.foreign_sources import as_sink
from cq.planner.binding.parameters import bind_parameter
from cq.planner.binding.queries import BoundQuery, QueryBinder
from cq.planner.binding.repeated_names import repeated_names
from cq.planner.binding.scope import relation_of, renamed, visible_columns
from cq.planner.binding.sets import as_types
from cq.planner.binding.settings import (
    NO_CHECKPOINTS,
    SETTINGS,
    TIME_ZONE,
    WORDS,
    Setting,
    is_foreign,
    is_of_checkpoints,
    setting_called,
    setting_value,
    takes,
    unknown_setting,
)
from cq.planner.binding.tables import is_filled, is_keyed
from cq.planner.binding.triggers.filled_streams import filled_streams
from cq.planner.binding.triggers.mistakes import second_insert
from cq.planner.binding.triggers.transactions import Transactions
from cq.planner.binding.whole_numbers import columns_cut_off, rounded_casts
from cq.planner.operators import Project, Scan
from cq.planner.plan.identity import identified
from cq.planner.plan.logical import LogicalPlan, Output
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef, sources_of
from cq.records import dataclass, field, replace

_DECLARING = ast.CreateRelation | ast.CreateSink | ast.CreateView | ast.CreateTrigger


@dataclass(frozen=True, slots=True)
class Explained:
    """An EXPLAIN statement: the stage of compilation to show (None: the default one), and the query's own plan."""

    plan: LogicalPlan
    stage: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class BoundScript:
    """A file after binding. settings: the values of SET, by name.  description: its first comment block."""

    plan: LogicalPlan
    settings: dict[str, Setting]
    description: str
    explains: tuple[Explained, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def sources(self) -> tuple[SourceDef, ...]:
        """The streams the plan reads, in order of their position."""
        plans = [self.plan, *(e.plan for e in self.explains)]
        found = {n.source.position: n.source for p in plans for n in p.nodes() if isinstance(n, Scan)}
        return tuple(found[p] for p in sorted(found))


def bind(script: ast.Script, environment: Environment | None = None) -> BoundScript:
    """The plan of a whole file. Raises one CompileError with every mistake of the file."""
    declared = {s.name: s.name_span for s in script.statements if isinstance(s, _DECLARING)}
    environment = environment or Environment()
    filled = sum(isinstance(s, ast.CreateRelation) and is_filled(s, environment.inputs) for s in script.statements)
    refs = (n for n in ast.walk(script) if isinstance(n, ast.TableRef) and n.as_of is not None)
    looked_up = frozenset(n.name for n in refs)
    binding = Binding(Catalog(environment, declared, looked_up, filled_streams(script), sources=filled))
    with session_zone(environment.time_zone or binding.time_zone(script)):
        return _bound(script, binding)


def _bound(script: ast.Script, binding: Binding) -> BoundScript:
    findings = Findings()
    takes: list[Callable[[], None]] = [partial(binding.statement, s) for s in script.statements]
    for take in (*takes, binding.fill_sinks):
        try:
            take()
        except CompileError as error:
            findings.add(error)
    failed = bool(findings.diagnostics)
    findings.diagnostics = [d for d in findings.diagnostics if d.severity != TOLD]
    findings.raise_if_any()
    binding.catalog.check_given()
    assert not failed, "a statement failed without a report"
    plan = binding.settled(LogicalPlan(tuple(binding.outputs)))
    demand_plain_keys(plan)
    explains = tuple(replace(e, plan=binding.settled(e.plan)) for e in binding.explains)
    late = (d for p in (plan, *(e.plan for e in explains)) for d in rows_that_never_come(p))
    warnings = (*binding.warnings(script), *late, *_left_out_of_stars(script, binding.outputs))
    return BoundScript(plan, binding.settings, script.description, explains, warnings)


@dataclass(slots=True)
class Binding:
    """A file being bound."""

    catalog: Catalog
    outputs: list[Output] = field(default_factory=list)
    explains: list[Explained] = field(default_factory=list)
    settings: dict[str, Setting] = field(default_factory=dict)
    depths: dict[int, int] = field(default_factory=dict)
    views: dict[str, tuple[LogicalNode, Span]] = field(default_factory=dict)
    noted: list[Diagnostic] = field(default_factory=list)
    transactions: Transactions = field(init=False)

    def __post_init__(self) -> None:
        self.transactions = Transactions(self.catalog)

    @property
    def queries(self) -> QueryBinder:
        return QueryBinder(self.catalog, self.catalog.environment.parameters, {}, self.depths)

    def statement(self, node: ast.Statement) -> None:
        """Bind one statement."""
        match node:
            case ast.CreateRelation(kind="TABLE") if is_keyed(node):
                self.transactions.create_table(node)
            case ast.CreateRelation(name=name, options=()) if name in self.catalog.filled:
                self.transactions.create_stream(node)
            case ast.CreateRelation() if (sink := as_sink(node)) is not None:
                self.catalog.create_sink(sink)
            case ast.CreateRelation():
                self.catalog.create_stream(node)
            case ast.CreateSink():
                self.catalog.create_sink(node)
            case ast.CreateView():
                self.create_view(node)
            case ast.Insert(target=name) if name in self.transactions.tables:
                self.transactions.fill(node)
            case ast.Insert():
                self.outputs.append(self.insert(node))
            case ast.Query():
                self.outputs.append(self.result(node, self.free_name()))
            case ast.SetOption():
                self.set_option(node)
            case ast.Explain():
                self.explain(node)
            case ast.CreateTrigger():
                self.transactions.create_trigger(node)

    def fill_sinks(self) -> None:
        """Make the sinks into which triggers insert rows outputs, after those of queries."""
        self.outputs += self.transactions.outputs()

    def create_view(self, node: ast.CreateView) -> None:
        """Bind the view once; all its readers share the node."""
        catalog = self.catalog
        if node.if_not_exists and node.name in catalog.relations:
            return
        catalog.check_free(node.name, node.name_span)
        try:
            rows = self.queries.nested(node.query)
            catalog.call(rows, node.name)
            relation = relation_of(rows, node.name, f'view "{node.name}"', node.name_span)
            if node.columns:
                title = relation.title
                relation = replace(renamed(relation, node.name, node.columns, node.name_span), title=title)
        except CompileError:
            catalog.broken.add(node.name)
            raise
        catalog.relations[node.name] = relation
        self.views[node.name] = (rows, node.name_span)

    def free_name(self) -> str:
        """`result`, `result_2`, … for queries without INSERT."""
        taken = {o.name for o in self.outputs} | set(self.catalog.sinks)
        number = 1
        while (name := "result" if number == 1 else f"result_{number}") in taken:
            number += 1
        return name

    def result(self, node: ast.Query, name: str) -> Output:
        """A bare query: repeated column names are numbered."""
        bound = self.queries.top(node)
        rows = with_unique_names(bound.node)
        self.noted += repeated_names(node, bound.node, rows.schema.names)
        return Output(name, rows, None, bound.limit, span=node.span)

    def insert(self, node: ast.Insert) -> Output:
        """INSERT INTO a sink: convert the columns to those it declares."""
        declared = self.catalog.sinks.get(node.target)
        place = node.target_span if node.target_span != NOWHERE else node.span
        if declared is None:
            raise self.no_sink(node.target, place)
        if node.conflict is not None:
            raise compile_error("CQ0501", "ON CONFLICT is not supported yet", node.span, help="remove it")
        if node.target in self.catalog.written:
            raise compile_error(
                "CQ0502",
                f'a second INSERT INTO "{node.target}" is not supported yet',
                place,
                help="combine the queries with UNION ALL",
            )
        if node.target in self.transactions.sinks:
            raise second_insert(node.target, place)
        self.catalog.written[node.target] = place
        bound = self.queries.top(node.query)
        rows = self.for_sink(bound, declared, node)
        return Output(node.target, rows, declared.sink, bound.limit, span=node.span)

    def no_sink(self, name: str, place: Span) -> CompileError:
        if name in self.catalog.broken:
            return broken(name, place)
        if name in self.catalog.relations:
            return compile_error(
                "CQ0501",
                f'"{name}" is a stream or view, and INSERT INTO those is not supported yet',
                place,
                help="UNION ALL combines streams; CREATE SINK declares what can be written",
            )
        sink = stream_name(name, self.catalog.streams) if names_file(name) else name
        path = inline.string(name if names_file(name) else f"{name}.csv")
        use = f", then INSERT INTO {inline.name(sink)}" if sink != name else ""
        return compile_error(
            "CQ0201",
            f'unknown sink "{name}"',
            place,
            label="no such sink",
            help=did_you_mean(name, self.catalog.sinks)
            or f"declare it: CREATE SINK {inline.name(sink)} WITH (connector = 'file', path = {path}){use}",
        )

    def for_sink(self, bound: BoundQuery, declared: SinkDecl, node: ast.Insert) -> LogicalNode:
        """The rows converted for the sink."""
        rows, fields = bound.node, declared.fields
        names = node.columns or tuple(f.name for f in fields)
        if not fields:
            if node.columns:
                rows = _renamed(rows, node.columns, node.span)
            check_unique_names(rows, node.span)
            return rows
        if set(names) != {f.name for f in fields} or len(names) != len(rows.schema):
            raise compile_error(
                "CQ0307",
                f'the query gives {amount(len(rows.schema), "column")}, but sink "{node.target}" has {len(fields)}',
                node.query.span,
                help=f"columns of the sink: {', '.join(str(f) for f in fields)}",
            )
        by_name = {f.name: f for f in fields}
        wanted = [by_name[name] for name in names]
        bare = {n for n, e in enumerate(rows.exprs) if unsettled(e) == NULL} if isinstance(rows, Project) else set()
        for n, (given, held) in enumerate(zip(rows.schema.fields, wanted, strict=True)):
            type_ = NULL if n in bare else given.type
            if common_type(type_, held.type) is None and not _assignable(type_, held.type):
                raise compile_error(
                    "CQ0307",
                    f'column "{held.name}" of sink "{node.target}" is {held.type}, but the query gives {given.type}',
                    node.query.span,
                    help=f"CAST({inline.name(given.name)} AS {held.type})"
                    if castable(given.type, held.type)
                    else f"no {given.type} is a {held.type}: select another column, "
                    f"or declare {inline.name(held.name)} {given.type}",
                )
        self.noted += columns_cut_off(rows, wanted, _column_spans(node.query, len(wanted)))
        rows = _renamed(as_types(rows, [f.type for f in wanted]), names, node.span)
        order = [names.index(f.name) for f in fields]
        if order == list(range(len(order))):
            return rows
        exprs = [c.expr for c in visible_columns(rows, None)]
        return Project(rows, tuple(exprs[i] for i in order), tuple(f.name for f in fields), span=node.span)

    def time_zone(self, script: ast.Script) -> str:
        """The zone of the last SET time_zone, wherever it stands. An invalid zone is reported when its own turn
        comes."""
        written = [s for s in script.statements if isinstance(s, ast.SetOption) and setting_called(s.name) == TIME_ZONE]
        zone = setting_value(TIME_ZONE, self.written(written[-1])) if written else None
        return NO_ZONE if zone is None else str(zone)

    def set_option(self, node: ast.SetOption) -> None:
        """SET name = value."""
        name = setting_called(node.name)
        if name not in SETTINGS and is_foreign(node.name):
            text = f'"{node.name}" is a setting of another system and has no effect'
            way = f"remove it: {NO_CHECKPOINTS}" if is_of_checkpoints(name) else "remove it"
            self.noted.append(Diagnostic("CQ0207", text, node.name_span, severity="warning", help=(way,)))
            return
        if name not in SETTINGS:
            cause, way = unknown_setting(node.name)
            raise compile_error("CQ0207", cause, node.name_span, help=way)
        value = setting_value(name, self.written(node))
        if value is None:
            raise compile_error(
                "CQ0208", f"{node.name} takes {takes(name)}", node.value.span, help=f"{name}: {SETTINGS[name]}"
            )
        self.settings[name] = value

    def written(self, node: ast.SetOption) -> Setting:
        """The value that SET gives, or the empty text for one that no setting of that kind takes."""
        words = setting_called(node.name) in WORDS
        match node.value:
            case ast.NumberLiteral(text=text):
                return text
            case ast.StringLiteral(value=text) if words:
                return text
            case ast.Parameter(name=p) if p in self.catalog.environment.parameters:
                bound = bind_parameter(p, self.catalog.environment.parameters[p], node.span).value
                taken = isinstance(bound, int | str if words else int) and not isinstance(bound, bool)
                return bound if taken else ""
        return ""

    def explain(self, node: ast.Explain) -> None:
        """EXPLAIN: bind its query as a plan of its own."""
        if node.stage in {"PLACEMENT", "CHANGELOG"}:
            ways = "EXPLAIN, EXPLAIN STAGES and EXPLAIN CODE show the plan, its stages and their code"
            raise compile_error("CQ0501", f"EXPLAIN {node.stage} is not supported yet", node.span, help=ways)
        inner = node.statement
        output = self.insert(inner) if isinstance(inner, ast.Insert) else self.result(inner, "result")
        if isinstance(inner, ast.Insert):
            del self.catalog.written[inner.target]
        self.explains.append(Explained(LogicalPlan((output,)), node.stage.lower() if node.stage else None, node.span))

    def settled(self, plan: LogicalPlan) -> LogicalPlan:
        """The complete plan once the whole file is known, with the identity of every operator."""
        whole, called = self.transactions.joints.settled(plan, self.catalog.called)
        return identified(*in_order_of_arrival(whole, called, self.catalog.undeclared_names))

    def warnings(self, script: ast.Script) -> list[Diagnostic]:
        """Columns that were renamed, decimal places lost, and views that nobody reads in a file that has outputs."""
        plans = [LogicalPlan(tuple(self.outputs)), *(e.plan for e in self.explains)]
        used = {id(n): n for p in plans for n in p.nodes()}
        unused = [(name, span) for name, (node, span) in self.views.items() if id(node) not in used]
        return [*self.noted, *rounded_casts(script, used.values()), *self.transactions.warnings()] + [
            Diagnostic(
                "CQ0201", f'view "{name}" is never used', span, severity="warning", help=("use it, or remove it",)
            )
            for name, span in unused
            if used
        ]


def _left_out_of_stars(script: ast.Script, outputs: list[Output]) -> list[Diagnostic]:
    """Note once per stream the columns that `*` leaves out because no query can read them."""
    read = [s for s in sources_of(LogicalPlan(tuple(outputs)).nodes()) if s.unheld]
    if not read or not any(isinstance(n, ast.Star) for n in ast.walk(script)):
        return []
    return [
        Diagnostic("CQ0603", f'* leaves out columns of "{s.name}" {why}', severity="warning")
        for s in read
        for why in _why_left_out(s.unheld)
    ]


def _why_left_out(columns: Sequence[Unheld]) -> Iterator[str]:
    later = [c for c in columns if c.file]
    no_type = [str(c) for c in columns if not c.file]
    if no_type:
        yield f"of types that cq does not support: {', '.join(no_type)}"
    if later:
        named = ", ".join(map(str, later))
        yield f"that the first file does not have: {named}; to take the columns of all files, {BY_NAME}"


def _assignable(given: DataType, wanted: DataType) -> bool:
    """Whether INSERT converts even without a common type: between numbers, as a cast would."""
    return given.is_numeric and wanted.is_numeric and castable(given, wanted)


def _column_spans(query: ast.Query, width: int) -> list[Span]:
    """Where each column of a query is written; the whole query for a column that is not one item of a select list."""
    items = query.body.items if isinstance(query.body, ast.Select) else ()
    written = [i.expr.span for i in items if isinstance(i, ast.SelectItem)]
    return written if len(written) == len(items) == width else [query.span] * width


def _renamed(node: LogicalNode, names: tuple[str, ...], span: Span) -> LogicalNode:
    """`node` with its columns named `names`."""
    if len(names) != len(node.schema):
        raise compile_error("CQ0307", f"{amount(len(names), 'name')} for {amount(len(node.schema), 'column')}", span)
    if names == node.schema.names:
        return node
    if isinstance(node, Project):
        return replace(node, names=names)
    return Project(node, tuple(c.expr for c in visible_columns(node, None)), names, span=span)


def with_unique_names(node: LogicalNode) -> LogicalNode:
    """`node` with repeated column names numbered: n, n_1, n_2."""
    names: dict[str, None] = {}
    numbers: dict[str, int] = {}  # the last number tried for a name
    taken = set(node.schema.names)
    for name in node.schema.names:
        unique = name
        while unique in names or (unique != name and unique in taken):
            numbers[name] = numbers.get(name, 0) + 1
            unique = f"{name}_{numbers[name]}"
        names[unique] = None
    return _renamed(node, tuple(names), node.span)


def check_unique_names(node: LogicalNode, span: Span) -> None:
    """CQ0409 when two columns of a written result have one name."""
    names = node.schema.names
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise compile_error(
            "CQ0409",
            f'two columns of the result are named "{twice}"',
            span,
            help=f"give one of them an alias: … AS {inline.name(twice + '_2')}",
        )
