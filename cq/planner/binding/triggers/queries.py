"""What a query in a trigger may be: SELECT, FROM and WHERE, of one row of a table or over arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.records import dataclass, replace

OF_ROWS = "the rows of a trigger are a relation of its name: group and order them in a query of its own"
OF_ELEMENTS = "remove it: each element inserts a row in its turn, with ON CONFLICT DO NOTHING the first of each key"
OF_KEYS = "remove it: the row of each key that the query gives is deleted, in the order of the array"
OF_A_VALUE = "remove it: the key in WHERE names one row; several are gathered, (SELECT SUM(x) FROM t, UNNEST …)"


def plain(query: ast.Query, way: str) -> ast.Select:
    """The SELECT of a query that has only items, FROM and WHERE. CQ0502, with this way out, for any other."""
    select = query.body
    more: list[tuple[str, ast.Node | None]] = [
        *(("WITH", c) for c in query.ctes),
        *(("ORDER BY", o) for o in query.order_by),
        *(("LIMIT", query.limit), ("OFFSET", query.offset), ("EMIT", query.emit)),
    ]
    if isinstance(select, ast.Select):
        more += [("GROUP BY", g) for g in select.group_by] + [("WINDOW", w) for w in select.windows]
        more += [("HAVING", select.having), ("QUALIFY", select.qualify)]
        more += [("DISTINCT", query)] * select.distinct + [("GROUP BY ALL", query)] * select.group_all
    else:
        more.append(("not one SELECT", query))
        way = "write a SELECT for each, in a statement or sub-query of its own"
    for clause, node in more:
        if node is not None:
            raise compile_error(
                "CQ0502", "a query in a trigger can only have SELECT, FROM and WHERE", node.span, label=clause, help=way
            )
    assert isinstance(select, ast.Select), "any other is refused"
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


def written_out(select: ast.Select, relations: Mapping[str, Sequence[str]]) -> ast.Select:
    """The SELECT with the columns that its stars stand for.

    relations: the columns of each, by its name; those of a bare star by "", where there are any.
    """
    return replace(select, items=tuple(own for item in select.items for own in _items(item, relations)))


def _items(item: ast.SelectItem | ast.Star, relations: Mapping[str, Sequence[str]]) -> Iterator[ast.SelectItem]:
    if isinstance(item, ast.SelectItem):
        yield item
        return
    columns = relations.get(item.qualifier or "")
    if columns is None or item.exclude or item.replace:
        raise _no_star(item)
    for name in columns:
        column = ast.ColumnRef(name, item.qualifier, span=item.span, name_span=item.span)
        yield ast.SelectItem(column, span=item.span)


def given(select: ast.Select) -> tuple[ast.Expr, ...]:
    """What it selects. CQ0502 for a star that is not written out."""
    for item in select.items:
        if isinstance(item, ast.Star):
            raise _no_star(item)
    return tuple(i.expr for i in select.items if isinstance(i, ast.SelectItem))


def _no_star(item: ast.Star) -> CompileError:
    return compile_error(
        "CQ0502", "this * is not supported in a trigger", item.span,
        help=("name the columns: new.a, t.b", "new.* is supported, and so is t.* if t is the only table in FROM"),
    )  # fmt: skip


def there_of_array(span: Span) -> CompileError:
    """CQ0501 for EXISTS of the rows that elements of arrays name."""
    way = "count them: (SELECT COUNT(*) FROM t, UNNEST(new.keys) AS u(k) WHERE t.key = u.k) > 0"
    return compile_error("CQ0501", "EXISTS over an array is not supported yet in a trigger", span, help=way)


def no_members(node: ast.InQuery) -> CompileError:
    """CQ0501 for IN (SELECT …), which names rows of a DELETE by arrays, and nothing else."""
    ways = ["write EXISTS (SELECT 1 FROM t WHERE t.key = …)"]
    select = node.query.body
    of_arrays = isinstance(select, ast.Select) and any(isinstance(r, ast.Unnest) for r in select.relations)
    if node.negated:
        ways = ["write x <> ALL (new.keys)" if of_arrays else "write NOT EXISTS (SELECT 1 FROM t WHERE t.key = …)"]
    elif of_arrays:
        by_key = "write UPDATE t SET … FROM UNNEST(new.keys) AS u(k) WHERE t.key = u.k"
        ways = [by_key, "or beside a condition that gives the key: x = ANY (new.keys)"]
    return compile_error("CQ0501", "IN (SELECT …) is not supported here in a trigger", node.span, help=tuple(ways))
