"""The columns that a declaration defines: one each, or the fields of a row by their paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cq.errors import Span, compile_error, each
from cq.grammar import ast, inline
from cq.lang.schema import Field
from cq.lang.types import DataType
from cq.planner.binding.literals import bind_type


def declared_fields(columns: Iterable[ast.ColumnDef]) -> tuple[Field, ...]:
    """The columns as declared; all invalid types are reported."""
    return tuple(f for found in each(flat_fields, columns) for f in found)


def flat_fields(c: ast.ColumnDef) -> tuple[Field, ...]:
    """The columns that one declaration defines: for a row its fields, by their paths."""
    if not isinstance(c.type, ast.RowType):
        return (Field(c.name, column_type(c), not c.not_null),)
    if c.not_null:
        raise compile_error(
            "CQ0501",
            "NOT NULL is not supported for a row of fields",
            c.span,
            help=f"leave it out, and filter: WHERE {c.name}.{c.type.fields[0].name} IS NOT NULL",
        )
    return tuple(Field(path, bind_type(type_)) for path, type_ in _leaves(c.name, c.type) if type_ is not None)


def flat_names(c: ast.ColumnDef) -> tuple[str, ...]:
    """The names of the columns that one declaration defines."""
    return tuple(path for path, _ in _leaves(c.name, c.type)) if c.computed is None else (c.name,)


def _leaves(path: str, type_: ast.TypeName | None) -> Iterator[tuple[str, ast.TypeName | None]]:
    if not isinstance(type_, ast.RowType):
        yield path, type_
        return
    for f in type_.fields:
        yield from _leaves(f"{path}.{f.name}", f.type)


def column_type(c: ast.ColumnDef) -> DataType:
    """The declared type. CQ0302 if it is missing."""
    if c.type is None:
        raise compile_error(
            "CQ0302", f'column "{c.name}" has no type', c.span, help=f"write {inline.name(c.name)} BIGINT"
        )
    return bind_type(c.type)


def check_unique(names: Iterable[tuple[str, Span]]) -> None:
    """CQ0202 for the second of two columns with the same name."""
    seen: set[str] = set()
    for name, span in names:
        if name in seen:
            raise compile_error("CQ0202", f'column "{name}" is defined twice', span, help="choose another name")
        seen.add(name)
