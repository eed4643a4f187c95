"""Tables with a primary key: the declarations of CREATE TABLE, and the rows that INSERT adds before any event."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

from cq.errors import NOWHERE, Diagnostic, Span, amount, compile_error, did_you_mean, each
from cq.grammar import ast, inline
from cq.grammar.printer import print_expr
from cq.lang.expressions import Column, Expr, Literal, substitute
from cq.lang.functions import Failure
from cq.lang.schema import Field
from cq.lang.types import NULL, Kind
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.conversion import convert, unsettled
from cq.planner.binding.declared import check_unique, declared_fields
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.literals import TIME_FORMS
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import NOTHING, Relation, Visible, listing
from cq.planner.binding.whole_numbers import places_cut_off
from cq.planner.plan.fold import constant, folded
from cq.planner.plan.transactions import Condition, KeyedTable
from cq.records import dataclass, replace

Parameters = Mapping[str, ParameterValue]
CHECK = Clause(
    "a CHECK",
    instead="test it in the trigger that writes the row: IF new.n <= (SELECT x FROM t WHERE key = new.k) "
    "THEN RAISE 'reason'; END IF",
)
CONSTANT = Clause("a constant", instead="write the value, or a parameter: :name")
LOADING = "CREATE TRIGGER load AFTER INSERT ON s INSERT INTO {0} VALUES (new.a, …)"


def is_keyed(node: ast.CreateRelation) -> bool:
    """Whether the statement declares a primary key."""
    return any(isinstance(e, ast.PrimaryKey) or (isinstance(e, ast.ColumnDef) and e.primary_key) for e in node.elements)


def is_filled(node: ast.CreateRelation, given: Container[str]) -> bool:
    """Whether a source fills the table: one in the text, or one given under its name."""
    return node.kind == "TABLE" and is_keyed(node) and (bool(node.options) or node.name in given)


def as_stream(node: ast.CreateRelation) -> ast.CreateRelation:
    """The source that fills a table, as a stream: its columns are NOT NULL where the table's are."""
    key = {node.columns[n].name for n in _key(node)}
    columns = tuple(
        replace(c, primary_key=False, default=None, checks=(), not_null=c.not_null or c.name in key)
        for c in node.columns
    )
    return replace(node, kind="STREAM", elements=columns)


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table and the defaults of columns that INSERT leaves out. warnings: about these, and about its initial rows."""

    table: KeyedTable
    defaults: tuple[Expr, ...]
    warnings: tuple[Diagnostic, ...] = ()


def bind_table(node: ast.CreateRelation, parameters: Parameters) -> DeclaredTable:
    """The table that a CREATE TABLE with a primary key declares."""
    for e in node.elements:
        if isinstance(e, ast.Watermark):
            raise compile_error(
                "CQ0501", "a table with a PRIMARY KEY has no watermark", e.span,
                help=(
                    "leave PRIMARY KEY out: the rows of a stream are versions, of which JOIN … FOR SYSTEM_TIME AS OF "
                    "finds that of a key at a time",
                    "or leave WATERMARK out to keep only the last row of each key",
                ),
            )  # fmt: skip
        if isinstance(e, ast.ColumnDef) and e.computed is not None:
            raise compile_error(
                "CQ0501", "computed columns of a keyed table are not supported", e.span,
                help="compute the column in the trigger that writes it, or in the query that reads it",
            )  # fmt: skip
    columns = node.columns
    key = _key(node)
    fields = tuple(replace(f, nullable=f.nullable and n not in key) for n, f in enumerate(_fields(columns)))
    for n in key:
        if (fields[n].type.element or fields[n].type).is_float:
            raise compile_error(
                "CQ0501", f"a key of type {fields[n].type} is not supported", columns[n].span,
                help="declare it DECIMAL or BIGINT, or an array of them",
            )  # fmt: skip
    relation = table_relation(node.name, fields)
    binder = ExprBinder(relation, parameters, CHECK, SelectCalls({}))
    conditions = tuple(each(partial(_condition, binder), (c for e in node.elements for c in _checks(e))))
    table = KeyedTable(node.name, fields, key, conditions, span=node.name_span)
    warnings: list[Diagnostic] = []
    defaults = each(lambda pair: _default(*pair, parameters, warnings), zip(columns, fields, strict=True))
    return DeclaredTable(table, tuple(defaults), tuple(warnings))


def _fields(columns: tuple[ast.ColumnDef, ...]) -> tuple[Field, ...]:
    check_unique([(c.name, c.name_span) for c in columns])
    for c in columns:
        if isinstance(c.type, ast.RowType):
            help = "give each field a column of its own"
            raise compile_error("CQ0501", "a column of a table cannot be a row of fields", c.span, help=help)
    return declared_fields(columns)


def _key(node: ast.CreateRelation) -> tuple[int, ...]:
    """The columns of the primary key."""
    names = [c.name for c in node.columns]
    found = [(e, e.columns) for e in node.elements if isinstance(e, ast.PrimaryKey)]
    found += [(c, (c.name,)) for c in node.columns if c.primary_key]  # type: ignore[misc]  # both are elements
    (first, key), *more = found
    if more:
        raise compile_error(
            "CQ0202", "a table has one PRIMARY KEY", more[0][0].span, help="write PRIMARY KEY (a, b) for two columns"
        )
    for name in key:
        if name not in names:
            raise compile_error(
                "CQ0203", f'unknown column "{name}" in the key of "{node.name}"', first.span,
                help=f"{did_you_mean(name, names)} columns: {listing(names)}".strip(),
            )  # fmt: skip
    return tuple(names.index(name) for name in key)


def _condition(binder: ExprBinder, node: ast.Check) -> Condition:
    """The condition of a CHECK, named by its name or, without one, by its text."""
    said = f"({print_expr(node.condition)})" if node.name is None else inline.name(node.name)
    return Condition(folded(binder.condition(node.condition, "a CHECK")), said)


def _checks(element: ast.TableElement) -> tuple[ast.Check, ...]:
    if isinstance(element, ast.Check):
        return (element,)
    return element.checks if isinstance(element, ast.ColumnDef) else ()


def _default(column: ast.ColumnDef, field: Field, parameters: Parameters, warnings: list[Diagnostic]) -> Expr:
    if column.default is None:
        return Literal(field.type, True, None, span=column.span)
    return constant_of(column.default, field, parameters, warnings)


def constant_of(node: ast.Expr, field: Field, parameters: Parameters, warnings: list[Diagnostic]) -> Literal:
    """The value of a constant expression in a column. CQ0306 if it has none. warnings: collects those about it."""
    binder = ExprBinder(NOTHING, parameters, CONSTANT, SelectCalls({}))
    return _computed(stored(binder, binder.bind(node), field, warnings), field, node.span)


def _computed(expr: Expr, field: Field, span: Span) -> Literal:
    """The value of an expression without columns for a column. CQ0306 if it has none."""
    try:
        return constant(expr)
    except Failure as failure:
        at = failure.span if failure.span != NOWHERE else span
        raise compile_error("CQ0306", failure.message, at, help=_written(field)) from None


def _written(field: Field) -> str:
    """A constant in a column, as written."""
    if field.type.kind in TIME_FORMS:
        return f"write it as '{TIME_FORMS[field.type.kind]}'"
    return f"write a {field.type}, which column {inline.name(field.name)} holds"


def stored(binder: ExprBinder, value: Expr, field: Field, warnings: list[Diagnostic]) -> Expr:
    """The value converted for the column. CQ0307 if that is impossible, and CQ0306 for a constant that does not fit.
    warnings: collects the one about decimal places that the column drops."""
    if value.type == field.type:
        return value
    warnings += places_cut_off(value, field)
    if unsettled(value) == NULL:
        return convert(value, field.type)
    both_texts = (value.type.kind is Kind.VARCHAR) == (field.type.kind is Kind.VARCHAR)
    if isinstance(value, Literal):
        return _computed(binder.bind_cast(value, field.type, value.span), field, value.span)
    if value.type.kind is Kind.NULL or both_texts:
        return binder.bind_cast(value, field.type, value.span)
    raise compile_error(
        "CQ0307", f'column "{field.name}" is {field.type}, and this is {value.type}', value.span, label=str(value.type),
        help=f"write CAST(… AS {field.type})",
    )  # fmt: skip


def default_of(declared: DeclaredTable, column: int, span: Span) -> Expr:
    """DEFAULT as the value of a column. CQ0306 if that is NULL but the column cannot be."""
    value, field = declared.defaults[column], declared.table.fields[column]
    if is_null(value) and not field.nullable:
        what = f"{declared.table.name}.{field.name} has no DEFAULT, and cannot be NULL"
        raise compile_error(
            "CQ0306", f"this would reject every event that gets here: {what}", span, label="no default",
            help=(f"write a {field.type}", f"or declare {inline.name(field.name)} {field.type} NOT NULL DEFAULT value"),
        )  # fmt: skip
    return replace(value, span=span)


def or_null(node: ast.Expr) -> ast.Expr:
    """The expression; NULL for DEFAULT, which binds only where its column is known."""
    return ast.NullLiteral(span=node.span) if isinstance(node, ast.DefaultValue) else node


def is_null(value: Expr) -> bool:
    """Whether it is always NULL."""
    return isinstance(value, Literal) and value.value is None


def table_relation(name: str, fields: tuple[Field, ...]) -> Relation:
    """The columns of a table."""
    columns = (Column(f.type, f.nullable, n, f.name) for n, f in enumerate(fields))
    shown = (Visible(f.name, name, c) for f, c in zip(fields, columns, strict=True))
    return replace(NOTHING, columns=tuple(shown), title=f'table "{name}"')


def filled(declared: DeclaredTable, node: ast.Insert, parameters: Parameters) -> DeclaredTable:
    """The table with the rows of an INSERT of constants, which no event causes."""
    table = declared.table
    if not isinstance(node.query.body, ast.Values):
        loading = LOADING.format(inline.name(table.name))
        raise compile_error(
            "CQ0501",
            f'the initial rows of "{table.name}" must be VALUES',
            node.span,
            help=f"insert the rows of a stream with a trigger: {loading}{' ON CONFLICT …' if node.conflict else ''}",
        )
    if node.conflict is not None:
        raise compile_error(
            "CQ0501",
            f'the initial rows of "{table.name}" cannot have ON CONFLICT',
            node.conflict.span,
            help="remove it, and write one row for each key",
        )
    rows, warnings = list(table.rows), [*declared.warnings]
    taken = {tuple(row[c] for c in table.key) for row in rows}
    order = named_columns(table.fields, f'table "{table.name}"', node.columns, node.column_places())
    for written in node.query.body.rows:
        if len(written.values) != len(order):
            raise compile_error(
                "CQ0307", f"{amount(len(written.values), 'value')} for {amount(len(order), 'column')}", written.span,
                help=f"columns: {listing(table.fields[c].name for c in order)}",
            )  # fmt: skip
        row: list[Any] = [d.value if isinstance(d, Literal) else None for d in declared.defaults]
        for column, value in zip(order, written.values, strict=True):
            if not isinstance(value, ast.DefaultValue):
                row[column] = constant_of(value, table.fields[column], parameters, warnings).value
        reason = _refuses(table, row, taken)
        if reason:
            raise compile_error("CQ0306", f"the initial row is rejected: {reason}", written.span, help="change the row")
        taken.add(tuple(row[c] for c in table.key))
        rows.append(tuple(row))
    return replace(declared, table=replace(table, rows=tuple(rows)), warnings=tuple(warnings))


def named_columns(fields: Sequence[Field], title: str, names: Sequence[str], spans: Sequence[Span]) -> list[int]:
    """The columns named by INSERT, all if it names none. CQ0203 for unknown ones, CQ0202 for a repeated one."""
    known = [f.name for f in fields]
    named: set[str] = set()
    for name, span in zip(names, spans, strict=True):
        if name in named:
            what = f'column "{name}" of {title} is named twice'
            raise compile_error("CQ0202", what, span, help="give each column one value")
        if name not in known:
            raise compile_error(
                "CQ0203", f'unknown column "{name}" in {title}', span,
                help=f"{did_you_mean(name, known)} columns: {listing(known)}".strip(),
            )  # fmt: skip
        named.add(name)
    return [known.index(n) for n in names or known]


def _refuses(table: KeyedTable, row: list[Any], taken: set[tuple[Any, ...]]) -> str:
    """Why the row cannot be in the table; empty if it can."""
    for n, (f, value) in enumerate(zip(table.fields, row, strict=True)):
        if value is None and not f.nullable:
            return table.missing(n)
    if tuple(row[c] for c in table.key) in taken:
        return table.duplicate()
    values = [Literal(f.type, v is None, v) for f, v in zip(table.fields, row, strict=True)]
    for condition in table.conditions:
        try:
            met = constant(substitute(condition.expr, values)).value
        except Failure as failure:
            return f"{failure.message} in {table.broken(condition)}"
        if met is False:
            return table.broken(condition)
    return ""
