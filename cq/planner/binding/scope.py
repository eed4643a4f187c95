"""Names while a query is bound: relations, the columns they show, and how a name finds its column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from cq.connectors.registry import BY_NAME
from cq.errors import NOWHERE, CompileError, Span, amount, compile_error, did_you_mean
from cq.grammar import ast, inline
from cq.lang.expressions import Column, Expr, transform
from cq.lang.schema import TimeAttribute, Unheld
from cq.lang.types import DataType, Kind
from cq.planner.operators import OrderKey, Project, Scan, Window, Windowed
from cq.planner.operators.window import WINDOW_COLUMNS
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.source import SourceDef
from cq.records import dataclass, field, replace

SHOWN_NAMES = 12  # columns or relations that a help line lists; more would hide the one that is meant
BOUNDS_WAY = "the bounds of GROUP BY window(…) are window.start and window.end"
WINDOW_WAY = "use a window: FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"


class Room(Enum):
    """Which operator above the FROM clause computes the value of a hole."""

    WINDOW = "window"  # index 0 start, 1 end, 2 time
    AGGREGATE = "aggregate"
    OVER = "over"
    QUERY = "query"
    GROUPING = "grouping"


@dataclass(frozen=True, slots=True)
class Hole(Expr):
    """A value that a later operator of the same SELECT computes: the binder fills it in; no plan contains one."""

    room: Room
    index: int


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that a name can reach. hidden: `*` leaves it out.  needs_qualifier: its name alone means something
    else."""

    name: str
    qualifier: str | None
    expr: Expr
    hidden: bool = False
    needs_qualifier: bool = False


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Sessions over an event time.

    keys: those of PARTITION BY; None if the call is in GROUP BY, whose keys are the session's.
    """

    time: TimeAttribute
    gap_us: int
    keys: tuple[Expr, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class CountWindow:
    """Windows of `size` rows of each key, ending at every `slide`th row. order: of the rows; without keys they are
    counted as they arrive."""

    size: int
    slide: int
    keys: tuple[Expr, ...]
    order: tuple[OrderKey, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PendingWindow:
    """A window table function: the GROUP BY that follows assigns rows to its windows."""

    window: Window | SessionWindow | CountWindow
    span: Span


@dataclass(frozen=True, slots=True)
class Relation:
    """Something in FROM: its rows, the columns it shows, and its name for people (`stream "bid"`)."""

    node: LogicalNode
    columns: tuple[Visible, ...]
    title: str
    window: PendingWindow | None = None
    beside: LogicalNode | None = None  # the right side, whose columns come after those of `node`, in the scope of ON
    span: Span = field(default=NOWHERE, compare=False)
    by_triggers: bool = False  # whether it is a stream that triggers fill
    within: str = "this FROM"  # what names its columns, for people
    absent: tuple[tuple[str, str], ...] = ()  # relations that cannot be named here, and why, for people

    @property
    def qualifiers(self) -> set[str]:
        return {c.qualifier for c in self.columns if c.qualifier is not None}

    @property
    def bounds(self) -> DataType | None:
        """The type of the bounds of its pending windows; None without windows, or if they count rows."""
        if self.window is None or isinstance(self.window.window, CountWindow):
            return None
        return self.node.schema.type_of(self.window.window.time)


NO_COLUMNS = "there are no columns here: read them FROM a stream"
NOTHING = Relation(Scan(SourceDef("nothing", ())), (), "a constant expression")
"""The relation that constants are bound over: no columns."""


def relation_of(node: LogicalNode, qualifier: str | None, title: str, span: Span = NOWHERE) -> Relation:
    """All columns of `node`, under `qualifier`."""
    return Relation(node, tuple(visible_columns(node, qualifier)), title, span=span)


def visible_columns(node: LogicalNode, qualifier: str | None) -> list[Visible]:
    """The columns of a node by their names."""
    return [Visible(f.name, qualifier, Column(f.type, f.nullable, i, f.name)) for i, f in enumerate(node.schema.fields)]


def projection(node: LogicalNode, exprs: Sequence[Expr], names: Sequence[str], span: Span = NOWHERE) -> LogicalNode:
    """`node` with these columns: unchanged when it already has them."""
    same = [(c.expr, c.name) for c in visible_columns(node, None)]
    if same == list(zip(exprs, names, strict=True)):
        return node
    return Project(node, tuple(exprs), tuple(names), span=span)


def with_nulls(relation: Relation) -> Relation:
    """The relation with nullable columns, as a key is NULL in rows of a set that leaves it out."""
    columns = (
        replace(c, expr=replace(c.expr, nullable=True)) if isinstance(c.expr, Column) else c for c in relation.columns
    )
    return replace(relation, columns=tuple(columns))


def renamed(relation: Relation, alias: str, names: Sequence[str], span: Span) -> Relation:
    """The relation under another name, with its columns renamed if `names` are given."""
    shown = [c for c in relation.columns if not c.hidden]
    if len(names) > len(shown):
        raise compile_error(
            "CQ0307",
            f'"{alias}" is given {amount(len(names), "column name")} and has {amount(len(shown), "column")}',
            span,
            help=f"columns: {listing(c.name for c in shown)}",
        )
    new = dict(zip((id(c) for c in shown), names, strict=False))
    columns = tuple(replace(c, name=new.get(id(c), c.name), qualifier=alias) for c in relation.columns)
    return replace(relation, columns=columns, title=f'"{alias}"' if alias else relation.title)


def shifted(columns: Iterable[Visible], by: int, nullable: bool = False) -> tuple[Visible, ...]:
    """The same columns when their relation is `by` positions further right."""

    def move(e: Expr) -> Expr:
        moved = replace(e, index=e.index + by) if isinstance(e, Column) else e
        return replace(moved, nullable=True) if nullable else moved

    return tuple(replace(c, expr=transform(c.expr, move)) for c in columns)


def resolve(relation: Relation, ref: ast.ColumnRef) -> Expr:
    """The value a column name stands for. CQ0203 when there is none, CQ0204 when there are several."""
    found = _meant(relation, ref)
    if not found:
        raise _unknown(relation, ref)
    if len({id(c.expr) for c in found}) > 1 and any(c.expr != found[0].expr for c in found):
        ways = [f"{inline.name(c.qualifier)}.{inline.name(c.name)}" for c in found if c.qualifier]
        raise compile_error(
            "CQ0204",
            f'column "{ref.name}" is ambiguous',
            ref.span,
            label=f"{len(found)} columns have this name",
            help=f"write {' or '.join(dict.fromkeys(ways))}" if len(set(ways)) > 1 else "give the columns aliases",
        )
    return replace(found[0].expr, span=ref.span)


def finds(relation: Relation, ref: ast.ColumnRef) -> bool:
    """Whether the name matches some column."""
    return bool(_meant(relation, ref))


def of_relation(node: ast.Expr | ast.NamedArgument, relation: Relation) -> ast.Expr | ast.NamedArgument:
    """The event time of a relation named as an argument, as in `DATEDIFF(second, a, b)`; else the argument
    unchanged."""
    if not isinstance(node, ast.ColumnRef) or node.qualifier is not None or finds(relation, node):
        return node
    mine = [c for c in relation.columns if c.qualifier == node.name]
    width, known = len(relation.node.schema), {t.column for t in relation.node.schema.times}
    if relation.beside is not None:
        known |= {width + t.column for t in relation.beside.schema.times}
    times = [c for c in mine if isinstance(c.expr, Column) and c.expr.index in known and not c.hidden]
    if len(times) != 1:
        return node
    return ast.ColumnRef(times[0].name, node.name, span=node.span, name_span=node.span)


def _meant(relation: Relation, ref: ast.ColumnRef) -> list[Visible]:
    alone = [c for c in relation.columns if not c.needs_qualifier]
    if ref.qualifier is None:
        return columns_named(alone, ref.name, ref.quoted)
    inside = ".".join((*ref.path, ref.name))
    found = columns_named([c for c in relation.columns if c.qualifier == ref.qualifier], inside, ref.quoted)
    return found or columns_named(alone, f"{ref.qualifier}.{inside}", ref.quoted)


def columns_named(columns: Iterable[Visible], name: str, quoted: bool = False) -> list[Visible]:
    """The columns that a name matches."""
    columns = list(columns)
    named = [c for c in columns if c.name == name]
    if named or quoted:
        return named
    # a file may call it "Price": a name without quotes also matches that one
    return [c for c in columns if c.name.lower() == name]


def one_named(columns: Iterable[Visible], name: str, span: Span) -> Visible | None:
    """The column that a name alone means, None when there is none. CQ0204 when there are several."""
    found = columns_named([c for c in columns if not c.needs_qualifier], name)
    if any(c.expr != found[0].expr for c in found):
        raise compile_error(
            "CQ0204",
            f'column "{name}" is ambiguous',
            span,
            label=f"{len(found)} columns have this name",
            help="write ON l.x = r.y, with the qualifiers of the columns",
        )
    return found[0] if found else None


def _unknown_qualifier(relation: Relation, ref: ast.ColumnRef, name: str) -> CompileError:
    known = f"relations: {listing(sorted(relation.qualifiers))}"
    cause = dict(relation.absent).get(name)
    if cause is None:
        cause = f'there is no relation "{name}" in {relation.within}'
        ways = (did_you_mean(name, relation.qualifiers), known)
    else:
        meant = next((c.qualifier for c in relation.columns if c.name == ref.name and c.qualifier is not None), None)
        ways = ("", known if meant is None else f"write {inline.name(meant)}.{inline.name(ref.name)}")
    return compile_error("CQ0203", cause, ref.span, label="unknown qualifier", help=ways)


def _unknown(relation: Relation, ref: ast.ColumnRef) -> CompileError:
    known = [c.name for c in relation.columns if ref.qualifier in {None, c.qualifier}]
    fields = _without_fields(relation, ref)
    if fields is not None:
        return fields
    if ref.qualifier is not None and ref.qualifier not in relation.qualifiers:
        return _unknown_qualifier(relation, ref, ref.qualifier)
    span = ref.name_span if ref.name_span != NOWHERE else ref.span
    if ref.name == "default" and ref.qualifier is None and not ref.quoted:
        return misplaced_default(span)
    unheld = next((f for f in _unheld(relation) if ref.name in {f.name, f.name.lower()}), None)
    if unheld is not None and unheld.file:
        cause = f'column "{unheld.name}" of {relation.title} is in {unheld.file}, and not in the first file'
        return compile_error("CQ0603", cause, span, help=f"to take the columns of all files, {BY_NAME}")
    if unheld is not None:
        cause = f'column "{unheld.name}" of {relation.title} is {unheld.type}{"" if unheld.way else HOLDS_NONE}'
        return compile_error("CQ0603", cause, span, help=unheld.way or CONVERT)
    return compile_error(
        "CQ0203",
        f'unknown column "{ref.name}" in {_searched(relation, ref)}',
        span,
        label="no such column",
        help=(
            f"{did_you_mean(ref.name, known)} columns: {listing(known)}".strip() if known else NO_COLUMNS,
            f"a string is written '{ref.name}'" if ref.quoted else "",
            _bound_way(relation, ref.name) if ref.name in WINDOW_COLUMNS else "",
            BOUNDS_WAY if ref.name == "window" else "",
        ),
    )


def _bound_way(relation: Relation, bound: str) -> str:
    """How a relation gets a bound of windows that it does not show: from its own windows, where it has some."""
    if not any(isinstance(n, Windowed) for n in topological([relation.node])):
        return WINDOW_WAY
    times = [relation.node.schema.names[t.column] for t in relation.node.schema.times]
    other = f", or use {' or '.join(map(inline.name, times))}, which is its event time" if times else ""
    return f"select {bound} in {relation.title}{other}"


def misplaced_default(span: Span) -> CompileError:
    """CQ0502 for DEFAULT as part of an expression, or where no table has a column for it."""
    cause = "DEFAULT stands alone as a value, in VALUES or SET of a table"
    return compile_error("CQ0502", cause, span, help="write the value that it stands for, or NULL")


def _searched(relation: Relation, ref: ast.ColumnRef) -> str:
    """Where a column was looked for: of several relations the one its qualifier names."""
    several = len({c.qualifier for c in relation.columns}) > 1
    return f'"{ref.qualifier}"' if several and ref.qualifier is not None else relation.title


HOLDS_NONE = ", which cq does not support"
CONVERT = "use other columns, or convert it when writing the file"


def no_columns(relation: Relation) -> str:
    """The message for a `*` without columns: which columns of its files no query can read, if there are some."""
    left_out = ", ".join(map(str, _unheld(relation)))
    return f"cq supports no column of this FROM: {left_out}" if left_out else "this FROM has no columns"


def _unheld(relation: Relation) -> list[Unheld]:
    sources = [n.source for n in topological([relation.node]) if isinstance(n, Scan)]
    return [f for s in sources for f in s.unheld]


def _without_fields(relation: Relation, ref: ast.ColumnRef) -> CompileError | None:
    """Return the error for a name of a whole row of fields, or of a field that its row lacks; None for other names."""
    whole = ".".join(p for p in (ref.qualifier, *ref.path, ref.name) if p is not None)
    fields = fields_of(relation, whole)
    if fields:
        shown = ".".join(inline.name(p) for p in (ref.qualifier, *ref.path, ref.name) if p is not None)
        names = [f"{shown}.{inline.name(c.name)}" for c in fields]
        return compile_error(
            "CQ0501",
            f'"{whole}" is a row of fields, which cannot be a value here',
            ref.span,
            label="its fields have names",
            help=f"name its fields: {listing(names)}" + ("" if "." in whole else f"; {shown}.* is all of them"),
        )
    before = whole.rpartition(".")[0]
    fields = fields_of(relation, before) if before else []
    if fields:
        known = [c.name for c in fields]
        return compile_error(
            "CQ0203",
            f'"{before}" has no field "{ref.name}"',
            ref.name_span if ref.name_span != NOWHERE else ref.span,
            label="no such field",
            help=f"{did_you_mean(ref.name, known)} fields: {listing(known)}".strip(),
        )
    return (
        None if ref.qualifier is None else _field_of_a_value(relation, (ref.qualifier, *ref.path, ref.name), ref.span)
    )


def _field_of_a_value(relation: Relation, path: Sequence[str], span: Span) -> CompileError | None:
    """What a path that begins with a column of text or an array is told: perhaps the text is JSON."""
    for end in range(len(path) - 1, 0, -1):
        column, steps = ".".join(path[:end]), [f"'{step}'" for step in path[end:]]
        found = _meant(relation, _reference(path[:end]))
        kind = found[0].expr.type.kind if found else None
        if kind is Kind.ARRAY:
            name = ".".join(map(inline.name, path[:end]))
            ways = (f"CARDINALITY({name}) is the number of its elements", f"or take an element: {name}[1]")
            return compile_error("CQ0203", f'"{column}" is {found[0].expr.type}, which has no fields', span, help=ways)
        if kind is Kind.VARCHAR:
            arrows = f"{' -> '.join([column, *steps[:-1]])} ->> {steps[-1]}"
            way = f"for JSON text, write {arrows}; or declare it: {path[end - 1]} ROW({path[end]} …)"
            return compile_error("CQ0203", f'"{column}" is VARCHAR, which has no fields', span, help=way)
    return None


def _reference(path: Sequence[str]) -> ast.ColumnRef:
    return ast.ColumnRef(path[-1], path[0], tuple(path[1:-1])) if len(path) > 1 else ast.ColumnRef(path[0])


def fields_of(relation: Relation, path: str) -> list[Visible]:
    """The fields of a row, by their names in it: columns whose names begin with its path, or with the rest of it after
    a qualifier."""
    prefix, found = f"{path.lower()}.", []
    for c in relation.columns:
        skipped = 0 if c.qualifier is None or not prefix.startswith(f"{c.qualifier.lower()}.") else len(c.qualifier) + 1
        for start in {0, skipped} if not c.hidden else ():
            inside = prefix[start:]
            if inside and c.name.lower().startswith(inside) and (start or not c.needs_qualifier):
                found.append(replace(c, name=c.name[len(inside) :]))
    return found


def listing(names: Iterable[str]) -> str:
    """Names for a help line, limited in number."""
    shown = list(dict.fromkeys(names))
    more = len(shown) - SHOWN_NAMES
    return ", ".join(shown[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def holes_of(expr: Expr, room: Room) -> list[Hole]:
    """The holes of one kind below `expr`."""
    out: list[Hole] = []
    todo = [expr]
    while todo:
        e = todo.pop()
        if isinstance(e, Hole) and e.room is room:
            out.append(e)
        todo.extend(e.children)
    return out
