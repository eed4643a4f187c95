"""What a query in a trigger may be: SELECT, FROM and WHERE, of one row of a table or over arrays."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import CompileError, compile_error
from cq.grammar import ast
from cq.records import dataclass


def plain(query: ast.Query) -> ast.Select:
    """The SELECT of a query that has only items, FROM and WHERE. CQ0502 for any other."""
    select = query.body
    more: list[ast.Node] = [
        *query.ctes,
        *query.order_by,
        *(p for p in (query.limit, query.offset, query.emit) if p is not None),
    ]
    if isinstance(select, ast.Select):
        more += [*select.group_by, *select.windows, *(p for p in (select.having, select.qualify) if p is not None)]
    if not isinstance(select, ast.Select) or more or select.distinct or select.group_all:
        at = more[0].span if more else query.span
        raise compile_error(
            "CQ0502", "a query in a trigger has SELECT, FROM and WHERE", at,
            help="the rows of a trigger are a relation of its name: group and order them in a query of its own",
        )  # fmt: skip
    return select


@dataclass(frozen=True, slots=True)
class ArraySource:
    """The FROM of a SELECT over an array: a table, the arrays, and the condition of a join."""

    table: ast.TableRef
    arrays: ast.Unnest
    on: ast.Expr | None


def source(select: ast.Select) -> ArraySource | None:
    """`FROM t, UNNEST(a)`, in any order, or `FROM UNNEST(a) JOIN t ON …`; None for any other."""
    relations: Sequence[ast.Relation] = select.relations
    on = None
    match relations:
        case (ast.Join(kind="INNER" | "CROSS", using=(), asof=False, natural=False) as join,):
            relations, on = (join.left, join.right), join.on
    match relations:
        case (ast.Unnest() as arrays, ast.TableRef(as_of=None, columns=()) as table):
            return ArraySource(table, arrays, on)
        case (ast.TableRef(as_of=None, columns=()) as table, ast.Unnest() as arrays):
            return ArraySource(table, arrays, on)
    return None


def given(select: ast.Select) -> tuple[ast.Expr, ...]:
    """What it selects. CQ0502 for *, of which a trigger has to say what it is."""
    for item in select.items:
        if not isinstance(item, ast.SelectItem):
            raise compile_error(
                "CQ0502", "* in a trigger is not supported", item.span, help="name the columns: new.a, t.b"
            )
    return tuple(i.expr for i in select.items if isinstance(i, ast.SelectItem))


def no_members(node: ast.InQuery) -> CompileError:
    """CQ0501 for IN (SELECT …), which names rows of a DELETE by arrays, and nothing else."""
    ways = ["write EXISTS (SELECT 1 FROM t WHERE t.key = …)"]
    select = node.query.body
    if isinstance(select, ast.Select) and any(isinstance(r, ast.Unnest) for r in select.relations):
        by_key = "write UPDATE t SET … FROM UNNEST(new.keys) AS u(k) WHERE t.key = u.k"
        ways = [by_key, "or beside a condition that gives the key: x = ANY (new.keys)"]
    return compile_error("CQ0501", "IN (SELECT …) is not supported here in a trigger", node.span, help=tuple(ways))
