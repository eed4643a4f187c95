"""The names of a file: streams, views and sinks, as its statements declare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cq.connectors.registry import SINKS, SOURCES
from cq.errors import (
    NOWHERE,
    TOLD,
    CompileError,
    CqError,
    Diagnostic,
    Span,
    UsageError,
    compile_error,
    did_you_mean,
)
from cq.grammar import ast, inline
from cq.hints import face
from cq.lang.event_time import ProposedTime, watermark_text
from cq.lang.expressions import Column, Expr, Literal
from cq.lang.schema import Field, Unheld
from cq.lang.types import BIGINT, NULL, DataType, Kind
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.declared import check_unique, declared_fields, flat_names
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.file_names import file_options, names_file, stream_name
from cq.planner.binding.foreign_sources import (
    told_by_topic,
    topic_watermarks,
)
from cq.planner.binding.late_streams import late_name, late_rows
from cq.planner.binding.literals import bind_type, in_session
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import NOTHING, Relation, Visible, columns_named, listing, relation_of, visible_columns
from cq.planner.binding.stream_options import (
    Options,
    as_pairs,
    check_followed,
    check_options,
    connector_of,
    from_stdin,
    is_bounded,
    still_said,
    written_options,
)
from cq.planner.binding.traits import check_size
from cq.planner.operators import Project, Scan
from cq.planner.plan.fold import folded
from cq.planner.plan.logical import SinkDef
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef
from cq.records import dataclass, field, replace

CONSTANTS = "values"
Infer = Callable[[str, Options], tuple[Field | Unheld, ...]]
"""(stream, options) -> the columns its connector delivers; raises a CqError when it cannot tell."""
Lateness = Callable[[Options, tuple[Field, ...], int], int | None]
"""(options, fields, column) -> the most that a time of a file lies behind an earlier one, in microseconds; None for
inputs that cannot be examined before they are read."""
Proposes = Callable[[str, Options, tuple[Field, ...], int], ProposedTime | None]
"""(stream, options, fields, column) -> how to compute a time from a column of a stream without one, and how late its
rows come; None as for Lateness."""


def infer_nothing(name: str, options: Options) -> tuple[Field, ...]:
    """The `infer` of an environment that cannot open anything."""
    raise CompileError(
        Diagnostic(
            "CQ0603",
            f'the columns of "{name}" are not declared',
            help=(f"declare them: CREATE STREAM {inline.name(name)} (column TYPE, …)",),
        )
    )


@dataclass(frozen=True, slots=True)
class Environment:
    """The inputs of a query from outside its text.

    parameters: values for `:name`.  inputs: options that replace those in a stream's WITH, or provide a stream the text
    does not declare (`bid=path`, a table in memory).  extra: further options by stream, those under "" for every stream
    whose connector has them.  infer: asks a connector for columns that are not declared.  lateness, proposes: look at
    the rows of a stream, for a column that is an event time, or is used as one.  time_zone: that of the query, whatever
    it SETs; "" for none.
    """

    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    inputs: Mapping[str, Options] = field(default_factory=dict)
    extra: Mapping[str, Options] = field(default_factory=dict)
    infer: Infer = infer_nothing
    lateness: Lateness = lambda options, fields, column: None
    proposes: Proposes = lambda stream, options, fields, column: None
    time_zone: str = ""


@dataclass(frozen=True, slots=True)
class SinkDecl:
    """A declared sink and the columns it was declared with, if any."""

    sink: SinkDef
    fields: tuple[Field, ...] = ()


def broken(name: str, span: Span) -> CompileError:
    """A statement uses a name whose own statement failed: that mistake was already reported."""
    return CompileError(Diagnostic("CQ0201", f'"{name}" could not be bound', span, severity=TOLD))


@dataclass(slots=True)
class Catalog:
    """All names of a file, in the order in which its statements give them.

    declared: where statements define which names.  looked_up: names that a query joins FOR SYSTEM_TIME AS OF.
    filled: streams that triggers fill.  written: the sinks that queries write into, and where.
    files: files that FROM names by path.  made: builds the relation of a table or trigger when it is first read. keyed:
    joins rows with those of a keyed table, as of a time.  called: nodes that have names.  options: known to some
    source.  processing_times: columns that are PROCTIME().  undeclared_names: of sources that no statement declares.
    sources, filling: the places of the next stream and of the next source that fills a table; the latter come first.
    """

    environment: Environment
    declared: Mapping[str, Span] = field(default_factory=dict)
    looked_up: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    written: dict[str, Span] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    made: dict[str, Callable[[Span], Relation]] = field(default_factory=dict)
    keyed: dict[str, Callable[[ast.Join, Relation], Relation]] = field(default_factory=dict)
    files: dict[tuple[str, str | None], Relation] = field(default_factory=dict)
    sinks: dict[str, SinkDecl] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    sources: int = 0
    filling: int = 0
    streams: list[str] = field(default_factory=list)
    options: set[str] = field(default_factory=set)
    constants: int = 0
    unit: LogicalNode | None = None
    called: list[tuple[LogicalNode, str]] = field(default_factory=list)
    processing_times: set[str] = field(default_factory=set)
    undeclared_names: set[str] = field(default_factory=set)

    def call(self, node: LogicalNode, name: str) -> None:
        """Record the name that the text gives these rows, unless they have one. Rows of a stream have that of the
        stream."""
        if node.inputs:
            self.called.append((node, name))

    def lookup(self, name: str, span: Span) -> Relation:
        """The stream or view with that name. CQ0201 when there is none."""
        if name in self.broken:
            raise broken(name, span)
        if name in self.made and name not in self.relations:
            self.relations[name] = self.made[name](span)
        found = self.relations.get(name)
        if found is not None:
            return found
        if name in self.environment.inputs:
            self.relations[name] = self.implicit(name, span)
            return self.relations[name]
        if names_file(name) and name not in self.sinks:
            return self.file(name, span)
        if name in self.sinks:
            raise compile_error(
                "CQ0201", f'"{name}" is a sink, which cannot be read', span, help="read what is written to it"
            )
        if self.is_declared_below(name, span):
            raise too_early(name, span)
        known = {*self.relations, *self.made, *self.environment.inputs}
        raise compile_error(
            "CQ0201",
            f'unknown stream, table or view "{name}"',
            span,
            label="no such name",
            help=(
                f"{did_you_mean(name, known)} known: {listing(sorted(known))}".strip()
                if known
                else (
                    f"declare it: CREATE STREAM {inline.name(name)} (…) WITH (connector = 'file', path = '…')",
                    face().giving(name),
                )
            ),
        )

    def is_declared_below(self, name: str, span: Span) -> bool:
        """Whether only a later statement defines the name."""
        at = self.declared.get(name, span)
        known = name in self.relations or name in self.made or name in self.environment.inputs or name in self.broken
        return not known and (at.line, at.column) > (span.line, span.column)

    def check_given(self) -> None:
        """Check that every input given is a stream of the text: with a misspelt name another file would be read."""
        for name in self.environment.inputs:
            if name not in self.streams:
                what = "is not a stream of the query"
                if name in self.filled:
                    what = "gets its rows from triggers"
                elif name in self.relations:
                    what = "is a view, which computes its rows"
                raise self.no_stream(f'an input is given for "{name}", which {what}', name)
        for name in self.environment.extra:
            if name and name not in self.streams:
                raise self.no_stream(f'options are given for "{name}", which is not a stream of the query', name)
        for key in self.environment.extra.get("", {}):
            if self.streams and key not in self.options:
                cause = f'no input of the query takes the option "{key}"'
                raise UsageError(Diagnostic("CQ0207", cause, help=("leave it out",)))

    def no_stream(self, cause: str, name: str) -> UsageError:
        streams = f"streams: {listing(self.streams)}" if self.streams else "the query reads no stream"
        help = (did_you_mean(name, self.streams), streams)
        return UsageError(Diagnostic("CQ0201", cause, help=tuple(h for h in help if h)))

    def file(self, path: str, span: Span, time: str | None = None) -> Relation:
        """The stream of a file that FROM names by path, one for each path: columns inferred, no watermark.

        time: the column by which rows are assigned to windows. If it is a TIMESTAMP, it is the event time of a separate
        stream, whose delay is chosen from the rows of the file so that none is late.
        """
        if (path, time) not in self.files:
            taken = {CONSTANTS, *self.streams, *self.declared, *self.environment.inputs}
            name = stream_name(path, taken)
            options = source_options(name, file_options(path), replace(self.environment, inputs={}), span, {})
            self.files[path, time] = self.undeclared(name, options, span, time)
        return self.files[path, time]

    def implicit(self, name: str, span: Span) -> Relation:
        """A stream that the text does not declare but the caller provides: no watermark, columns inferred."""
        return self.undeclared(name, source_options(name, {}, self.environment, span, {}), span)

    def looked_at(self, relation: Relation, time: str | None) -> Relation:
        """The relation; for an undeclared one in memory, with what its rows show of this column."""
        source = relation.node.source
        if source is None or source.name not in self.undeclared_names or source.option("connector") != "memory":
            return relation
        at = next((i for i, f in enumerate(source.fields) if time in {f.name, f.name.lower()}), None)
        if at is None:
            return relation
        found = self.environment.proposes(source.name, dict(source.options), source.fields, at)
        return replace(relation, node=Scan(replace(source, proposed=found), span=source.span))

    def undeclared(self, name: str, options: Options, span: Span, time: str | None = None) -> Relation:
        fields, unheld = infer_fields(self.environment, name, options, span)
        source = SourceDef(name, fields, as_pairs(options), bounded=is_bounded(options), span=span)
        at = next((i for i, f in enumerate(fields) if time in {f.name, f.name.lower()}), None)
        if at is not None and not fields[at].type.is_timestamp:
            source = replace(source, proposed=self.environment.proposes(name, options, fields, at))
        elif at is not None and (delay_us := self.environment.lateness(options, fields, at)) is not None:
            column = Column(fields[at].type, fields[at].nullable, at, fields[at].name)
            source = replace(source, event_time=column, delay_us=delay_us)
        self.undeclared_names.add(name)
        return self.add_source(replace(source, inferred=True, unheld=unheld))

    def add_source(self, source: SourceDef, fills: bool = False) -> Relation:
        """The rows of a source, placed after the earlier sources. fills: whether it fills a table."""
        numbered = replace(source, position=self.filling if fills else self.sources)
        self.streams.append(source.name)
        self.options.update(key for key, _ in source.options)
        self.filling, self.sources = self.filling + fills, self.sources + (not fills)
        return relation_of(Scan(numbered, span=source.span), source.name, f'stream "{source.name}"')

    def constant_rows(self, fields: tuple[Field, ...], rows: tuple[tuple[Any, ...], ...], span: Span) -> LogicalNode:
        """A source of rows written in the text, placed after the earlier sources."""
        name = ""
        while not name or name in {*self.declared, *self.environment.inputs}:
            self.constants += 1
            name = CONSTANTS if self.constants == 1 else f"{CONSTANTS} {self.constants}"
        source = SourceDef(name, fields, as_pairs({"connector": "memory"}), position=self.sources, rows=rows, span=span)
        self.sources += 1
        return Scan(source, span=span)

    def one_row(self, span: Span) -> LogicalNode:
        """The row of a SELECT without FROM; the whole file shares one."""
        if self.unit is None:
            self.unit = self.constant_rows((Field("row", BIGINT, False),), ((1,),), span)
        return self.unit

    def check_free(self, name: str, span: Span) -> None:
        """CQ0202 when the name is already in use."""
        if name in self.relations or name in self.made or name in self.sinks or name in self.broken:
            raise compile_error("CQ0202", f'"{name}" is defined twice', span, help="choose another name")

    def create_stream(self, node: ast.CreateRelation) -> None:
        """CREATE STREAM: a scan, and above it a projection when there are computed columns."""
        if node.if_not_exists and node.name in self.relations:
            return
        self.check_free(node.name, node.name_span)
        try:
            self.relations[node.name] = StreamBinder(self, node).bind()
        except CompileError:
            self.broken.update(filter(None, (node.name, late_name(node))))
            raise

    def create_sink(self, node: ast.CreateSink) -> None:
        """CREATE SINK: check the options; keep the columns for INSERT to convert to."""
        if node.if_not_exists and node.name in self.sinks:
            return
        self.check_free(node.name, node.name_span)
        for e in node.elements:
            if not isinstance(e, ast.ColumnDef) or e.primary_key or e.checks or e.computed is not None:
                raise compile_error(
                    "CQ0501",
                    "keys, checks and computed columns of a sink are not supported yet",
                    e.span,
                    help="leave them out",
                )
        columns = [e for e in node.elements if isinstance(e, ast.ColumnDef)]
        fields = declared_fields(columns)
        check_unique([(name, c.span) for c in columns for name in flat_names(c)])
        options = written_options(node.options, self.environment.parameters)
        check_options(options, node.options, SINKS, node.name_span, "stdout")
        sink = SinkDef(node.name, as_pairs(options), span=node.name_span)
        self.sinks[node.name] = SinkDecl(sink, fields)


@dataclass(slots=True)
class StreamBinder:
    """Binds one CREATE STREAM. fills: whether it provides the initial rows of a table."""

    catalog: Catalog
    node: ast.CreateRelation
    fills: bool = False

    def bind(self) -> Relation:
        node, environment = self.node, self.catalog.environment
        self.refuse_constraints()
        check_unique([(name, c.name_span) for c in node.columns for name in flat_names(c)])
        written = written_options(node.options, environment.parameters)
        places = {o.key: o for o in node.options}
        options = source_options(node.name, written, environment, node.name_span, places)
        plain = [c for c in node.columns if c.computed is None]
        unheld: tuple[Unheld, ...] = ()
        if plain:
            fields = declared_fields(plain)
        else:
            place = places["path"].value.span if "path" in places else node.name_span
            fields, unheld = infer_fields(environment, node.name, options, place)
        source = SourceDef(node.name, fields, as_pairs(options), bounded=is_bounded(options), span=node.name_span)
        source = replace(source, inferred=not plain, unheld=unheld)
        columns = self.columns(fields)
        time, delay, idle = self.watermark(columns)
        source = replace(source, event_time=time, delay_us=delay, idle_us=idle)
        relation = self.catalog.add_source(source, self.fills)
        shown = self.shown(relation.node, columns, time, node.name)
        late = late_rows(node, relation.node)
        if late is not None:
            name, rows = late
            self.catalog.check_free(name, rows.span)
            self.catalog.relations[name] = self.shown(rows, columns, None, name)
        return shown

    def columns(self, fields: tuple[Field, ...]) -> list[Visible]:
        """Every column of the stream in the order declared, as an expression over the connector's columns."""
        node = self.node
        scan = Scan(SourceDef(node.name, fields))
        known = visible_columns(scan, node.name)
        delivered = {v.name: v for v in known}
        declared = {name for c in node.columns for name in flat_names(c)}
        shown = [v for v in known if v.name not in declared]
        for c in node.columns:
            if c.computed is None:
                shown += [delivered[name] for name in flat_names(c)]
                continue
            if c.type is None and c.computed == ast.Call("proctime"):
                self.catalog.processing_times.add(c.name)  # not a column: only FOR SYSTEM_TIME AS OF can name it
                continue
            visible = known + [v for v in shown if v.name not in delivered]
            binder = self.binder(Relation(scan, tuple(visible), f'stream "{node.name}"'), "a computed column")
            expr = binder.bind(c.computed)
            if c.type is not None:
                expr = binder.bind_cast(expr, bind_type(c.type), c.span)
            if expr.type == NULL:
                raise compile_error(
                    "CQ0302", "remove the type of the computed column", c.span, help="CAST it: CAST(NULL AS BIGINT)"
                )
            shown.append(Visible(c.name, node.name, check_size(expr, c.span)))
        return shown

    def shown(self, scan: LogicalNode, columns: list[Visible], time: Expr | None, name: str) -> Relation:
        """The rows of a scan as a stream; a projection adds computed columns."""
        if not any(c.computed for c in self.node.columns):
            return relation_of(scan, name, f'stream "{name}"')
        seen = {f.name: Column(f.type, f.nullable, i, f.name) for i, f in enumerate(scan.schema.fields)}
        exprs = tuple(seen.get(c.name, c.expr) if isinstance(c.expr, Column) else c.expr for c in columns)
        names = tuple(c.name for c in columns)
        at = next((i for i, e in enumerate(exprs) if e == time), None) if not isinstance(time, Column) else None
        if at is not None:  # accepted rows have an event time
            exprs = (*exprs[:at], replace(exprs[at], nullable=False), *exprs[at + 1 :])
        node = Project(scan, exprs, names, at, span=self.node.name_span)
        return relation_of(node, name, f'stream "{name}"')

    def watermark(self, columns: list[Visible]) -> tuple[Expr | None, int, int | None]:
        """The expression for the event time, the delay, and after how long without rows the stream counts as idle."""
        marks = self.node.watermarks or topic_watermarks(self.node)
        if not marks:
            return None, 0, None
        mark, *more = marks
        if more:
            raise compile_error("CQ0202", "a stream has one WATERMARK", more[0].span, help="leave one of them out")
        found = columns_named(columns, mark.column)
        if not found:
            names = [c.name for c in columns]
            raise compile_error(
                "CQ0203",
                f'unknown column "{mark.column}" in stream "{self.node.name}"',
                mark.column_span,
                label="no such column",
                help=f"{did_you_mean(mark.column, names)} columns: {listing(names)}".strip(),
            )
        time = found[0].expr
        if not time.type.is_timestamp:
            raise compile_error(
                "CQ0402",
                f"an event time must be a TIMESTAMP, but {mark.column} is {time.type}",
                mark.column_span,
                label=str(time.type),
                help=_time_help(mark.column, time.type),
            )
        return time, self.delay(mark), None if mark.idle is None else self.idle(mark.idle)

    def idle(self, written: ast.IntervalLiteral) -> int:
        """Microseconds of IDLE TIMEOUT. CQ0403 for zero, and for months."""
        value = folded(self.binder(NOTHING, "an IDLE TIMEOUT").bind(written))
        if not isinstance(value, Literal) or value.type.kind is not Kind.INTERVAL or value.value <= 0:
            cause = "an IDLE TIMEOUT must be a positive interval of days or less"
            raise compile_error("CQ0403", cause, written.span, help="write IDLE TIMEOUT INTERVAL '10' SECOND")
        timeout: int = value.value
        return timeout

    def delay(self, mark: ast.Watermark) -> int:
        """Microseconds of `ts - INTERVAL …`. CQ0403 for any other form of bound."""
        bound = mark.bound
        if bound is None or _is_column(bound, mark.column):
            return 0
        value: Expr | None = None
        if isinstance(bound, ast.Binary) and bound.op == "-" and _is_column(bound.left, mark.column):
            value = folded(self.binder(NOTHING, "the delay of a watermark").bind(bound.right))
        if not isinstance(value, Literal) or value.type.kind is not Kind.INTERVAL or value.value < 0:
            raise compile_error(
                "CQ0403",
                "a watermark must be its column minus a constant interval of at least zero",
                bound.span,
                help=f"write {watermark_text(inline.name(mark.column), 5_000_000)}",
            )
        delay: int = value.value
        return delay

    def binder(self, relation: Relation, where: str) -> ExprBinder:
        return ExprBinder(relation, self.catalog.environment.parameters, Clause(where), SelectCalls({}))

    def refuse_constraints(self) -> None:
        """CQ0501 for constraints that a stream's columns cannot have."""
        for e in self.node.elements:
            keyed = isinstance(e, ast.PrimaryKey) or (isinstance(e, ast.ColumnDef) and e.primary_key)
            if keyed:
                raise compile_error(
                    "CQ0501",
                    "a stream has no PRIMARY KEY: every row counts",
                    e.span,
                    help="leave it out, or write CREATE TABLE: its rows are written by triggers",
                )
            if isinstance(e, ast.Check) or (isinstance(e, ast.ColumnDef) and e.checks):
                raise compile_error(
                    "CQ0501", "CHECK on a stream is not supported yet", e.span, help="filter in a view: WHERE condition"
                )
            if isinstance(e, ast.ColumnDef) and e.default is not None:
                raise compile_error(
                    "CQ0501", "DEFAULT on a stream is not supported yet", e.span, help="write COALESCE(column, value)"
                )


def _time_help(column: str, type_: DataType) -> str:
    of, time = inline.name(column), inline.name(f"{column}_time")
    if type_.is_integer:
        return f"compute it: {time} AS TIMESTAMP '1970-01-01' + {of} * INTERVAL '1' SECOND, WATERMARK FOR {time}"
    if type_.kind is Kind.VARCHAR:
        return f"declare it as TIMESTAMP, or compute it: {time} AS CAST({of} AS TIMESTAMP)"
    return "declare a TIMESTAMP column"


def _is_column(node: ast.Expr, name: str) -> bool:
    if not isinstance(node, ast.ColumnRef):
        return False
    named = ".".join((*node.path, node.name))
    return name in {named, f"{node.qualifier}.{named}"}


def too_early(name: str, span: Span, way: str = "move its CREATE up, before this statement") -> CompileError:
    """CQ0201 for a name that a later statement defines."""
    return compile_error("CQ0201", f'"{name}" is declared further down', span, label="not declared yet", help=way)


def source_options(
    name: str, written: Options, environment: Environment, span: Span, places: Mapping[str, ast.Option]
) -> dict[str, str]:
    """The options of a stream, those of the environment before those of the text, all checked."""
    given = dict(environment.inputs.get(name, {}))
    written = from_stdin(told_by_topic(written))
    options = {**(still_said(written, given) if given else written), **given}
    connector = SOURCES.get(connector_of(options, "memory"))
    known = connector.options if connector is not None else {}
    options |= {key: value for key, value in environment.extra.get("", {}).items() if key in known}
    options |= environment.extra.get(name, {})
    check_options(options, places.values(), SOURCES, span, "memory")
    if options.get("follow") == "true":
        check_followed(options, places["follow"].value.span if "follow" in places else span)
    return options


def infer_fields(
    environment: Environment, name: str, options: Options, span: Span
) -> tuple[tuple[Field, ...], tuple[Unheld, ...]]:
    """The columns that the connector reports, and those without a SQL type; errors are placed at the stream."""
    try:
        found = environment.infer(name, options)
    except CqError as error:
        placed = [replace(d, span=span) if d.span == NOWHERE else d for d in error.diagnostics]
        raise CompileError(*placed) from error
    fields = (replace(f, type=in_session(f.type)) for f in found if isinstance(f, Field))
    return tuple(fields), tuple(f for f in found if isinstance(f, Unheld))
