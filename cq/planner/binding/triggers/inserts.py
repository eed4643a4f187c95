"""INSERT in a trigger: rows of a keyed table, or rows that a stream or sink gets when the event is accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from cq.errors import NOWHERE, Diagnostic, Span, amount, compile_error
from cq.grammar import ast, inline
from cq.lang.expressions import Expr, IsNull, Literal
from cq.lang.schema import Field
from cq.lang.types import BOOLEAN, VARCHAR
from cq.planner.binding.conversion import settled
from cq.planner.binding.scope import Relation, Visible, listing
from cq.planner.binding.tables import default_of, is_null, named_columns, or_null, stored
from cq.planner.binding.triggers.arrays import NamedRow, PlacedAccess, TriggerBody, each, elements, gather
from cq.planner.binding.triggers.mistakes import always_null, left_out
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.binding.triggers.queries import OF_ELEMENTS, ROW_BY_ROW, given, refuse_aggregates, source
from cq.planner.binding.triggers.row_keys import Several, of_select, of_value
from cq.planner.plan.transactions import Choose, Emit, Insert, Read, Reject, Set, Step, Update, every
from cq.records import replace

MakeRow: TypeAlias = Callable[[Sequence[ast.Expr], Relation], tuple[Step, ...]]
"""(values as written, the names they may use) -> the steps that insert a row of these values."""


class Inserting(TriggerBody, Protocol):
    """Binds a body with INSERTs."""

    warnings: list[Diagnostic]

    def target(self, name: str, span: Span) -> RowTarget | None: ...

    def selected(self, query: ast.Query, way: str) -> ast.Select: ...

    def is_of(self, number: int, table: str) -> bool: ...

    def is_of_event(self, *values: Expr) -> bool: ...

    def read(self, select: ast.Select, span: Span) -> tuple[str, str | None]: ...

    def ways(self, table: str, alias: str | None, where: ast.Expr | None) -> tuple[ast.Expr | None, ...]: ...

    def row(
        self,
        table: str,
        alias: str | None,
        where: ast.Expr | None,
        outer: Relation,
        span: Span,
        several: Several,
        *values: ast.Expr,
    ) -> NamedRow: ...

    def assigned(
        self, table: str, assignments: Sequence[ast.Assignment], values: Sequence[Expr]
    ) -> tuple[tuple[int, ...], tuple[Expr, ...]]: ...


def insert(body: Inserting, node: ast.Insert) -> tuple[Step, ...]:
    """A row for each of VALUES, the one of a SELECT without FROM, or one for each element of arrays; for a stream also
    one for each row of a table."""
    place = node.target_span if node.target_span != NOWHERE else node.span
    target = body.target(node.target, place)
    if target is not None:
        return _into_stream(body, node, target)
    table = body.table(node.target, place)
    if isinstance(node.query.body, ast.Values):
        return _table_rows(body, node, table, node.query.body.rows)

    def make(written: Sequence[ast.Expr], outer: Relation) -> tuple[Step, ...]:
        own = _table_row(body, node, table, _values(body, node, table, written, outer))
        return (*body.taken(), own)

    found = _given_rows(body, node, OF_ELEMENTS, make)
    return _rows_of_rows(body, node, table) if found is None else found


def _given_rows(body: Inserting, node: ast.Insert, way: str, make: MakeRow) -> tuple[Step, ...] | None:
    """The steps for VALUES, a SELECT without FROM, or one over arrays; None for any other. way: to write a longer
    query."""
    if isinstance(node.query.body, ast.Values):
        return tuple(step for row in node.query.body.rows for step in make(row.values, body.event()))
    select = body.selected(node.query, way)
    match select.relations:
        case ():
            return _where(body, select, body.event(), make)
        case (ast.Unnest() as arrays,):
            found = elements(body, arrays, body.event())
            return each(body, found, lambda: _where(body, select, found.relation, make))
    return None


def _where(body: Inserting, select: ast.Select, outer: Relation, make: MakeRow) -> tuple[Step, ...]:
    """The selected row, if the condition of WHERE is TRUE."""
    met = None if select.where is None else body.binder(outer).condition(select.where, "the condition of WHERE")
    before = body.taken()
    steps = make(given(select), outer)
    return (*before, *steps) if met is None else (*before, Choose(met, steps))


def _row_by_row(
    body: Inserting,
    node: ast.Insert,
    select: ast.Select,
    make: Callable[[Sequence[Expr]], tuple[Step, ...]],
    target: str | None = None,
) -> tuple[Step, ...]:
    """The steps made from the values beside each row of a table that a SELECT names, if the row exists.

    CQ0501 for several rows of the target: the first one inserted could be the next one read.
    """
    table, alias = body.read(select, node.query.span)
    ways = body.ways(table, alias, select.where)
    if len(ways) > 1:
        refuse_aggregates(select)
        if table == target:
            cause = f'an INSERT of several rows of "{table}" cannot read them from the same table'
            raise compile_error("CQ0501", cause, node.query.span, help="write an INSERT for each row")
    steps: list[Step] = []
    for where in ways:
        row = body.row(table, alias, where, body.event(), node.query.span, of_select, *given(select))
        steps += body.taken()
        steps.append(Choose(row.there, make(row.values)))
    return tuple(steps)


# ------------------------------------------------------------------------------------------------------------- tables


def _table_rows(body: Inserting, node: ast.Insert, table: str, rows: Sequence[ast.ValuesRow]) -> tuple[Step, ...]:
    """The steps that insert these rows, one after the other. Their values are those before the statement: if a later
    row reads the table, all are computed before the first row is inserted."""
    given = []
    for row in rows:
        values = _values(body, node, table, row.values, body.event())
        given.append((body.taken(), values))
    if any(_reads(body, table, reads) for reads, _ in given[1:]):
        given = [_computed(body, reads, values) for reads, values in given]
    steps = [s for reads, _ in given for s in reads]
    for _, values in given:
        own = _table_row(body, node, table, values)
        steps += [*body.taken(), own]
    return tuple(steps)


def _rows_of_rows(body: Inserting, node: ast.Insert, table: str) -> tuple[Step, ...]:
    """A row for each row of a table that a SELECT names."""
    select = body.selected(node.query, OF_ELEMENTS)
    if source(select) is not None:
        raise compile_error(
            "CQ0502", "INSERT INTO a table cannot join rows of a table with arrays", node.query.span,
            help="read the rows in sub-queries: SELECT u.k, (SELECT x FROM t WHERE t.key = u.k) FROM UNNEST(…) AS u(k)",
        )  # fmt: skip

    def make(values: Sequence[Expr]) -> tuple[Step, ...]:
        order = _order(node, body.declared[table].table.fields, f'table "{table}"', values)
        own = _table_row(body, node, table, _stored(body, node, table, order, values))
        return (*body.taken(), own)

    return _row_by_row(body, node, select, make, table)


def _reads(body: Inserting, table: str, steps: Sequence[Step]) -> bool:
    """Whether these steps read a row of the table."""
    return any(isinstance(s, Read) and body.is_of(s.access, table) for s in every(steps))


def _computed(
    body: Inserting, reads: tuple[Step, ...], values: Sequence[Expr]
) -> tuple[tuple[Step, ...], Sequence[Expr]]:
    """The values, those that depend on rows stored in locals, and the steps that read these rows and set the locals."""
    steps = [*reads]
    kept = []
    for value in values:
        if body.is_of_event(value):
            kept.append(value)
            continue
        steps.append(Set(len(body.accesses), value))
        kept.append(replace(body.local(value.type), span=value.span))
    return tuple(steps), kept


def _values(
    body: Inserting, node: ast.Insert, table: str, written: Sequence[ast.Expr], outer: Relation
) -> Sequence[Expr]:
    """The values of all columns of a row: those written, and defaults."""
    binder, declared = body.binder(outer), body.declared[table]
    order = _order(node, declared.table.fields, f'table "{table}"', written)
    given = [
        default_of(declared, column, value.span) if isinstance(value, ast.DefaultValue) else binder.bind(value)
        for column, value in zip(order, written, strict=True)
    ]
    return _stored(body, node, table, order, given)


def _stored(
    body: Inserting, node: ast.Insert, table: str, order: Sequence[int], given: Sequence[Expr]
) -> Sequence[Expr]:
    """The same for bound values. order: their columns."""
    declared, binder = body.declared[table], body.binder(body.event())
    fields = declared.table.fields
    values: list[Expr] = list(declared.defaults)
    for column, value in zip(order, given, strict=True):
        values[column] = stored(binder, value, fields[column], body.warnings)
    _demand_values(node, table, fields, values, order)
    return values


def _table_row(body: Inserting, node: ast.Insert, table: str, values: Sequence[Expr]) -> Step:
    start = body.fresh(table)
    key = tuple(values[c] for c in body.declared[table].table.key)
    placed = body.settle(start, table, key, node.span, of_value)
    return Insert(placed.access, tuple(values), _conflict(body, node, table, placed, values))


def _order(node: ast.Insert, fields: Sequence[Field], title: str, written: Sequence[object]) -> list[int]:
    """The columns for which values are written. CQ0307 if their numbers differ."""
    order = named_columns(fields, title, node.columns, node.column_places())
    if len(written) != len(order):
        raise compile_error(
            "CQ0307", f"{amount(len(written), 'value')} for {amount(len(order), 'column')}", node.span,
            help=f"columns: {listing(fields[c].name for c in order)}",
        )  # fmt: skip
    return order


def _demand_values(
    node: ast.Insert, name: str, fields: Sequence[Field], values: Sequence[Expr], order: Sequence[int]
) -> None:
    """CQ0306 if a column that cannot be NULL is always NULL. order: the columns for which values are written."""
    for column, (field, value) in enumerate(zip(fields, values, strict=True)):
        if not field.nullable and is_null(value):
            raise always_null(name, field, value.span) if column in order else left_out(node, name, field)


def _conflict(
    body: Inserting, node: ast.Insert, table: str, placed: PlacedAccess, values: Sequence[Expr]
) -> tuple[Step, ...] | None:
    """What happens instead of an INSERT whose key exists."""
    said = node.conflict
    if said is None:
        return None
    declared = body.declared[table]
    key = {declared.table.fields[c].name for c in declared.table.key}
    if said.columns and set(said.columns) != key:
        raise compile_error(
            "CQ0502", f'ON CONFLICT names other columns than the key of "{table}"', said.span,
            help=f"write ON CONFLICT {inline.names(sorted(key))}",
        )  # fmt: skip
    if not said.assignments:
        return ()
    row = body.beside(table, None, placed.start, body.event())
    excluded = tuple(
        Visible(f.name, "excluded", e, needs_qualifier=True)
        for f, e in zip(declared.table.fields, values, strict=True)
    )  # fmt: skip
    before, body.pending = body.pending, []
    binder = body.binder(replace(row, columns=(*row.columns, *excluded)))
    made = [settled(binder.bind(or_null(a.value))) for a in said.assignments]
    columns, new = body.assigned(table, said.assignments, made)
    met = None if said.where is None else binder.condition(said.where, "the condition of WHERE")
    reads, body.pending = tuple(body.pending), before
    if isinstance(node.query.body, ast.Values) and len(node.query.body.rows) > 1 and _reads(body, table, reads):
        raise compile_error(
            "CQ0501", f'DO UPDATE of an INSERT of several rows cannot read other rows of "{table}"', said.span,
            help="write an INSERT for each row",
        )  # fmt: skip
    again = (Read(placed.access),) if reads else ()  # the row read earlier may be this one
    return (*reads, *again, Update(placed.access, columns, new, met))


# ------------------------------------------------------------------------------------------------------------ streams


def _into_stream(body: Inserting, node: ast.Insert, target: RowTarget) -> tuple[Step, ...]:
    if node.conflict is not None:
        raise compile_error(
            "CQ0502", f'"{target.name}" has no key, so no two rows of it conflict', node.conflict.span,
            help=("remove ON CONFLICT", "to keep one row for each key, insert into a table that has a PRIMARY KEY"),
        )  # fmt: skip

    def make(written: Sequence[ast.Expr], outer: Relation) -> tuple[Step, ...]:
        binder = body.binder(outer)
        own = _row(body, node, target, [settled(binder.bind(or_null(w))) for w in written])
        return (*body.taken(), *own)

    way = f"remove it: group and order the rows where they are read, SELECT … FROM {inline.name(target.name)}"
    found = _given_rows(body, node, way, make)
    if found is not None:
        return found
    select = body.selected(node.query, way)
    several = source(select)
    if several is not None:
        values = gather(body, select, several, given(select), body.event(), node.query.span, ROW_BY_ROW)
        own = _row(body, node, target, values)
        return (*body.taken(), *own)
    return _row_by_row(body, node, select, lambda values: _row(body, node, target, values))


def _row(body: Inserting, node: ast.Insert, target: RowTarget, given: Sequence[Expr]) -> tuple[Step, ...]:
    """The steps that emit a row with these values; NULL in a NOT NULL column rejects the event."""
    order = _order(node, target.fields, f'"{target.name}"', given)
    binder = body.binder(body.event())
    values: list[Expr] = [Literal(f.type, True, None) for f in target.fields]
    for column, value in zip(order, given, strict=True):
        values[column] = stored(binder, value, target.fields[column], body.warnings)
    _demand_values(node, target.name, target.fields, values, order)
    steps: list[Step] = []
    for field, value in zip(target.fields, values, strict=True):
        if value.nullable and not field.nullable:
            reason = Literal(VARCHAR, False, f"{target.name}.{field.name} cannot be NULL")
            steps.append(Choose(IsNull(BOOLEAN, False, value), (Reject(reason),)))
    return (*steps, Emit(tuple(values), into=target.name))
