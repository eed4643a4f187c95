"""Arrays in triggers: a statement for each element of UNNEST, and the values that a SELECT aggregates over the rows
that the elements name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from cq.errors import Span, amount, compile_error
from cq.grammar import ast, inline
from cq.lang.aggregates.registry import Grows
from cq.lang.expressions import Case, Coalesce, Column, Expr, IsNull, Literal, columns_of, conjunction, remap
from cq.lang.types import BIGINT, BOOLEAN, DataType, Kind, decimal
from cq.planner.binding.conversion import convert, settled
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.scope import Hole, Relation, Visible
from cq.planner.binding.tables import DeclaredTable
from cq.planner.binding.triggers.queries import BY_A_VIEW, ArraySource, given
from cq.planner.binding.triggers.row_keys import Several, keyed, of_value
from cq.planner.binding.triggers.several_keys import Among
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.transactions import Access, Choose, Each, Local, Read, Set, Step
from cq.records import dataclass, replace

ONE_ROW = "a SELECT over an array in a trigger gives one row: write SUM(x), COUNT(*), MIN(x) or MAX(x)"
SEVERAL = Clause("a SELECT of a trigger", aggregates=True, over=BY_A_VIEW)
EXACT = decimal(30, 0)  # holds the sum of 2^31 BIGINTs


@dataclass(frozen=True, slots=True)
class PlacedAccess:
    """An access and its start in the frame. bound: its start when expressions over it were bound."""

    access: int
    start: int
    bound: int

    def over(self, expr: Expr) -> Expr:
        """An expression that was bound over it, adjusted to its place."""
        if self.start == self.bound:
            return expr
        return remap(expr, {c: c - self.bound + self.start if c >= self.bound else c for c in columns_of(expr)})


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row that a statement names: its access, the start of that in the frame, values of the statement, and the
    conditions of its WHERE beyond the key."""

    access: int
    start: int
    values: tuple[Expr, ...]
    condition: Expr | None

    @property
    def there(self) -> Expr:
        """Whether there is a row that meets the condition."""
        found = Column(BOOLEAN, False, self.start, "found")
        return found if self.condition is None else conjunction((found, self.condition))

    @property
    def exists(self) -> Expr:
        """The same as a value: FALSE, not NULL, if the condition is NULL for the row."""
        there = self.there
        if not there.nullable:
            return there
        return Coalesce(BOOLEAN, False, (there, Literal(BOOLEAN, False, False)), span=there.span)


class TriggerBody(Protocol):
    """Binds a trigger's body: its frame so far, and the steps that the current statement needs before it."""

    accesses: list[Access | Local]
    pending: list[Step]
    end: int

    @property
    def declared(self) -> Mapping[str, DeclaredTable]: ...

    def event(self) -> Relation: ...

    def binder(self, relation: Relation) -> ExprBinder: ...

    def gathering(self, relation: Relation) -> tuple[ExprBinder, list[AggregateCall]]: ...

    def beside(self, table: str, alias: str | None, start: int, outer: Relation) -> Relation: ...

    def table(self, name: str, span: Span) -> str: ...

    def fresh(self, table: str) -> int: ...

    def settle(self, start: int, table: str, key: tuple[Expr, ...], span: Span, several: Several) -> PlacedAccess: ...

    def local(self, type_: DataType) -> Column: ...

    def of_event(self, number: int) -> bool: ...

    def is_once(self, column: int) -> bool: ...

    def taken(self) -> tuple[Step, ...]: ...


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of an UNNEST. local: its first local, `start` its place in the frame.

    relation: the elements beside the columns known outside.
    """

    local: int
    start: int
    arrays: tuple[Expr, ...]
    numbered: bool
    relation: Relation


def elements(body: TriggerBody, node: ast.Unnest, outer: Relation) -> Elements:
    """Make a local for the elements of each array. CQ0307 unless each array has a name."""
    binder = body.binder(outer)
    arrays = tuple(_array(binder, a) for a in node.arrays)
    names = [*node.columns]
    if not names and len(arrays) == 1:
        names = [node.alias or "unnest"]
    if node.ordinality and len(names) == len(arrays):
        names.append("ordinality")
    types = [a.type.element for a in arrays] + [BIGINT] * node.ordinality
    if len(names) != len(types):
        raise compile_error(
            "CQ0307", f"UNNEST has {amount(len(names), 'name')} for {amount(len(types), 'column')}", node.span,
            help="name them all: UNNEST(new.keys, new.amounts) AS u(k, x)",
        )  # fmt: skip
    start, number, own = body.end, len(body.accesses), []
    for name, type_ in zip(names, types, strict=True):
        assert type_ is not None
        own.append(Visible(name, node.alias, replace(body.local(type_), name=name)))
    others = (replace(c, needs_qualifier=c.needs_qualifier or c.name in names) for c in outer.columns)
    relation = replace(outer, columns=(*own, *others), title=f"{outer.title} with UNNEST")
    return Elements(number, start, arrays, node.ordinality, relation)


def _array(binder: ExprBinder, node: ast.Expr) -> Expr:
    array = settled(binder.bind(node))
    if array.type.kind is not Kind.ARRAY:
        raise compile_error("CQ0302", f"UNNEST takes an array, not {array.type}", node.span)
    return array


def each(body: TriggerBody, found: Elements, bind: Callable[[], Sequence[Step]]) -> tuple[Step, ...]:
    """Repeat the bound steps for each element. Rows that the event names are read before them: there may be no
    elements."""
    before, body.pending = body.pending, []
    own = bind()
    inside = (*body.taken(), *own)
    body.pending = before
    once = (s for s in inside if isinstance(s, Read) and body.of_event(s.access))
    return (*once, Each(found.local, found.arrays, inside, found.numbered))


def compared(body: TriggerBody, among: Among, relation: Relation) -> tuple[Relation, ast.Expr]:
    """The values that a SELECT gives for each element of this relation, as unnamed columns, and a WHERE that compares
    the columns on its left with these.
    """
    select = among.query
    binder = body.binder(relation)
    items = given(select)
    if len(items) != len(among.columns):
        raise compile_error(
            "CQ0502", f"this SELECT gives {amount(len(items), 'value')} for {amount(len(among.columns), 'column')}",
            select.span, help="give as many values as there are before IN: (k, l) IN (SELECT a, b …)",
        )  # fmt: skip
    values = [settled(binder.bind(i)) for i in items]
    parts: list[ast.Expr] = []
    for n, column in enumerate(among.columns):
        name = ast.ColumnRef(f"$value{n}", span=items[n].span)
        parts.append(ast.Binary("=", column, name, span=column.span, op_span=column.span))
    if select.where is not None:
        values.append(binder.condition(select.where, "the condition of WHERE"))
        parts.append(ast.ColumnRef(f"$value{len(items)}", span=select.where.span))
    own = tuple(Visible(f"$value{n}", None, v, hidden=True) for n, v in enumerate(values))
    where = (*parts, *among.rest)
    said = where[0] if len(where) == 1 else ast.Logical("AND", where, span=select.span)
    return replace(relation, columns=(*own, *relation.columns)), said


def gather(
    body: TriggerBody,
    select: ast.Select,
    of: ArraySource,
    items: Sequence[ast.Expr],
    outer: Relation,
    span: Span,
    instead: Sequence[str] = (),
) -> tuple[Expr, ...]:
    """The values of a SELECT that aggregates the rows named by elements; the steps that compute them become pending.

    instead: what to write if it does not aggregate.
    """
    found = elements(body, of.arrays, outer)
    table = body.table(of.table.name, of.table.name_span)
    resets: list[Step] = []
    finals: list[Expr] = []
    values: list[Expr] = []

    def bind() -> Sequence[Step]:
        start = body.fresh(table)
        relation = body.beside(table, of.table.alias, start, found.relation)
        binder, aggregates = body.gathering(relation)
        bound = [settled(binder.bind(i)) for i in items]
        if not aggregates:
            raise compile_error("CQ0502", "this SELECT returns a row for each element", span, help=(ONE_ROW, *instead))
        written = [w for w in (of.on, select.where) if w is not None]
        conditions = [body.binder(relation).condition(w, "the condition of WHERE") for w in written]
        met = conjunction(conditions) if conditions else None
        at = written[0].span if written else span
        key, rest = keyed(body.declared[table].table, start, met, at, of_value)
        placed = body.settle(start, table, key, at, of_value)
        values.extend(map(placed.over, bound))
        there: Expr = Column(BOOLEAN, False, placed.start, "found")
        sets = [_gathered(body, placed, call, resets, finals) for call in aggregates]
        return (Choose(there if rest is None else conjunction((there, placed.over(rest))), tuple(sets)),)

    steps = each(body, found, bind)
    body.pending += [*resets, *steps]
    return tuple(_above(body, found, finals, v, span) for v in values)


def _gathered(
    body: TriggerBody, placed: PlacedAccess, call: AggregateCall, resets: list[Step], finals: list[Expr]
) -> Step:
    """The step that adds a row to an aggregate's local, which starts with its reset value."""
    grows, span = call.function.grows, call.span
    value = placed.over(call.args[0]) if call.args else None
    ordered = value is None or not value.type.is_float
    if grows is None or call.distinct or not (ordered or grows in {Grows.SUM, Grows.COUNT}):
        name = call.function.name.upper()
        shown = f"{name} of {value.type}" if grows is not None and value is not None else name
        raise compile_error(
            "CQ0501", f"{shown}{' DISTINCT' * call.distinct} in a trigger is not supported yet", span, help=ONE_ROW
        )
    type_ = _local_type(call)
    number = len(body.accesses)
    local = body.local(type_)
    binder = body.binder(body.event())
    new: Expr
    if grows is Grows.COUNT:
        new = binder.call("+", [local, Literal(BIGINT, False, 1)], span, ())
    elif grows is Grows.SUM:
        assert value is not None
        zero = binder.bind_cast(Literal(BIGINT, False, 0), type_, span)
        total = Coalesce(type_, False, (local, zero), span=span)
        addend = binder.bind_cast(value, decimal(19, 0), span) if value.type.is_integer else value
        new = binder.bind_cast(binder.call("+", [total, addend], span, ()), type_, span)
    else:
        assert value is not None
        closer = binder.compare("<" if grows is Grows.LEAST else ">", value, local, span)
        new = Case(type_, True, ((closer, value), (IsNull(BOOLEAN, False, local), value)), local, span=span)
    step: Step = Set(number, new)
    conditions: list[Expr] = []
    if value is not None and value.nullable:
        conditions.append(binder.negated(IsNull(BOOLEAN, False, value), span))
    if call.filter is not None:
        conditions.append(placed.over(call.filter))
    resets.append(Set(number, Literal(type_, grows is not Grows.COUNT, 0 if grows is Grows.COUNT else None)))
    finals.append(convert(local, call.type) if grows is not Grows.SUM else binder.bind_cast(local, call.type, span))
    return Choose(conjunction(conditions), (step,)) if conditions else step


def _local_type(call: AggregateCall) -> DataType:
    """The type in which an aggregate is accumulated: exact, like its result."""
    if call.function.grows is Grows.SUM and call.args[0].type.is_integer:
        return EXACT
    return call.type


def _above(body: TriggerBody, found: Elements, finals: Sequence[Expr], expr: Expr, span: Span) -> Expr:
    """A value with the results of its aggregates. CQ0404 for a column of one of several rows."""
    if isinstance(expr, Hole):
        return finals[expr.index]
    if isinstance(expr, Column) and not expr.name and expr.index >= found.start and not body.is_once(expr.index):
        raise compile_error(
            "CQ0502", "a sub-query beside an aggregate is not supported in a trigger", span,
            help="write it in a statement of its own, which stores its value in a table",
        )  # fmt: skip
    if isinstance(expr, Column) and expr.index >= found.start and not body.is_once(expr.index):
        raise compile_error(
            "CQ0404", f'"{expr.name}" is not in an aggregate', expr.span, label="which row\'s value?",
            help=f"write MIN({inline.name(expr.name)}) or MAX({inline.name(expr.name)})",
        )  # fmt: skip
    children = expr.children
    return expr.with_children([_above(body, found, finals, c, span) for c in children]) if children else expr
