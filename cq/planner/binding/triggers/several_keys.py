"""WHERE k IN (…) in a trigger: one statement for each row that it names, or for each element of an array."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from math import prod
from typing import TypeAlias

from cq.grammar import ast
from cq.grammar.comparing import ROWS
from cq.planner.binding.triggers.queries import OF_KEYS, plain
from cq.records import dataclass

Choice: TypeAlias = tuple[ast.Expr, ...]  # conditions that one row meets together
_ELEMENT = "$element"  # a name that hides none in the statement


@dataclass(frozen=True, slots=True)
class Key:
    """The columns of a key, and the names that their table has in a statement."""

    columns: Collection[str]
    qualifiers: Collection[str]

    def column(self, node: ast.Expr) -> str | None:
        """The key column that an expression is."""
        if isinstance(node, ast.ColumnRef) and not node.path and node.qualifier in {None, *self.qualifiers}:
            return node.name if node.name in self.columns else None
        return None

    def given(self, part: ast.Expr) -> str | None:
        """The key column to which a condition gives a value."""
        if not isinstance(part, ast.Binary) or part.op != "=":
            return None
        return self.column(part.left) or self.column(part.right)

    def values(self, where: ast.Expr) -> Iterator[tuple[str, ast.Expr, ast.Binary]]:
        """The key columns to which the parts of a WHERE give values: each with its value and the part."""
        for part in _parts(where):
            if isinstance(part, ast.Binary) and part.op == "=":
                for column, value in ((part.left, part.right), (part.right, part.left)):
                    name = self.column(column)
                    if name is not None:
                        yield name, value, part


def row_by_row(where: ast.Expr | None, key: Key, most: int) -> tuple[ast.Expr | None, ...] | int:
    """A WHERE for each row that this one names by IN, = ANY or OR; itself if it names one row, or none. If it names
    more than `most`, the number: lists for several columns of a key multiply.

    Each also tests that no earlier one named its row, since a value may occur twice.
    """
    if where is None:
        return (None,)
    fixed = {c for p in _parts(where) if (c := key.given(p)) is not None}
    rest: list[ast.Expr] = []
    lists: list[tuple[Choice, ...]] = []
    for part in _parts(where):
        choices = _choices(part, key)
        columns = {c for choice in choices for p in choice if (c := key.given(p)) is not None}
        if columns <= fixed:
            rest.append(part)
        else:
            lists.append(choices)
            fixed |= columns
    if not lists:
        return (where,)
    rows = prod(map(len, lists))
    if rows > most:
        return rows
    ways = [tuple(p for choice in chosen for p in choice) for chosen in product(*lists)]
    found = []
    for n, way in enumerate(ways):
        earlier = (ast.IsTest(_all(w, where), "TRUE", True, span=where.span) for w in ways[:n])
        found.append(_all((*way, *earlier, *rest), where))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Among:
    """A WHERE with one part that looks columns up among the values that a SELECT gives for each element of arrays.

    query: that SELECT, its items as many as the columns.  rest: the other parts.
    """

    columns: tuple[ast.Expr, ...]
    arrays: ast.Unnest
    query: ast.Select
    rest: tuple[ast.Expr, ...]


def among(where: ast.Expr | None, key: Key) -> Among | None:
    """`k IN (SELECT … FROM UNNEST(…))` or `k = ANY (array)` in a WHERE, for key columns that nothing else gives."""
    parts = () if where is None else _parts(where)
    others = (p for part in parts for choice in ((part,), *_choices(part, key)) for p in choice)
    fixed = {key.given(p) for p in others}
    for n, part in enumerate(parts):
        found = _member(part)
        if found is None or {key.column(c) for c in found[0]} <= {None, *fixed}:
            continue
        columns, query = found
        match query.relations:
            case (ast.Unnest() as arrays,):
                return Among(columns, arrays, query, (*parts[:n], *parts[n + 1 :]))
    return None


def _member(part: ast.Expr) -> tuple[tuple[ast.Expr, ...], ast.Select] | None:
    """The columns that a condition looks up in the values of a SELECT over arrays."""
    columns: tuple[ast.Expr, ...] = ()
    query: ast.Query | None = None
    match part:
        case ast.InQuery(operand, query, negated=False):
            columns = (operand,)
        case ast.Exists(ast.Query(body=ast.Select(relations=(ast.DerivedTable(query, rows),), where=compared))):
            if rows == ROWS and isinstance(compared, ast.Logical):
                columns = tuple(p.right for p in compared.operands if isinstance(p, ast.Binary))
        case ast.Call("array_contains", (array, operand)) if not isinstance(operand, ast.NamedArgument):
            if isinstance(array, ast.NamedArgument):
                return None
            items = (ast.SelectItem(ast.ColumnRef(_ELEMENT, span=part.span), span=part.span),)
            arrays = ast.Unnest((array,), columns=(_ELEMENT,), span=array.span)
            return (operand,), ast.Select(items, (arrays,), span=part.span)
    if query is None or not isinstance(query.body, ast.Select):
        return None
    return columns, plain(query, OF_KEYS)


def _parts(node: ast.Expr) -> tuple[ast.Expr, ...]:
    return node.operands if isinstance(node, ast.Logical) and node.op == "AND" else (node,)


def _choices(part: ast.Expr, key: Key) -> tuple[Choice, ...]:
    """If a condition gives one of several values to key columns, the alternatives as conditions; else none."""
    match part:
        case ast.InList(operand, items, negated=False) if key.column(operand) is not None:
            return tuple((ast.Binary("=", operand, i, span=i.span, op_span=i.span),) for i in dict.fromkeys(items))
        case ast.Logical(op="OR", operands=operands):
            choices = tuple(dict.fromkeys(map(_parts, operands)))
            return choices if all(_only_gives(c, key) for c in choices) else ()
    return ()


def _only_gives(choice: Choice, key: Key) -> bool:
    """Whether each condition only gives a value to a key column: then changing the row does not change the
    condition."""
    return all(key.given(p) is not None for p in choice)


def _all(parts: Choice, where: ast.Expr) -> ast.Expr:
    return parts[0] if len(parts) == 1 else ast.Logical("AND", parts, span=where.span)
