"""The queries allowed in a trigger: SELECT, FROM and WHERE, over one row of a table or over arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cq.errors import CompileError, Span, compile_error, did_you_mean
from cq.grammar import ast
from cq.grammar.printer import print_expr
from cq.planner.binding.functions.names import is_aggregate
from cq.planner.binding.scope import listing
from cq.records import dataclass, replace

NO_IN = "IN (SELECT …) is not supported here in a trigger"
NO_TABLES = "WHEN sees the event, not tables"
OF_ROWS = "the rows of a trigger are a relation of its name: group and order them in a query of its own"
OF_ELEMENTS = "remove it: each element inserts a row in its turn, with ON CONFLICT DO NOTHING the first of each key"
OF_KEYS = "remove it: the row of each key that the query gives is deleted, in the order of the array"
OF_A_VALUE = "remove it: the key in WHERE names one row; several are gathered, (SELECT SUM(x) FROM t, UNNEST …)"
OF_WITH = "write a sub-query where its value is used: (SELECT x FROM t WHERE t.key = new.k)"
OF_FIRST_ROWS = "remove it: the key in WHERE names one row, and IN (new.a, new.b) one for each value"
SUM_OF_SEVERAL = "SELECT SUM(x) FROM t, UNNEST(ARRAY_DISTINCT(ARRAY[new.a, new.b])) AS u(k) WHERE t.key = u.k"
BY_A_VIEW = "compute it in a view, whose rows fire the trigger: CREATE VIEW v AS SELECT … FROM s; AFTER INSERT ON v"
ROW_BY_ROW = (
    "or insert a row for each: INSERT INTO o SELECT u.k, (SELECT x FROM t WHERE key = u.k) FROM UNNEST(new.ks) AS u(k)",
    "its x is NULL where t has no row; to insert none there, add WHERE EXISTS (SELECT 1 FROM t WHERE key = u.k)",
)
EACH_INTO_A_STREAM = "insert a row for each element into a stream: INSERT INTO o SELECT u.x FROM UNNEST(new.xs) AS u(x)"
OF_ELEMENTS_OF_ARRAYS = {
    "sum": "ARRAY_SUM",
    "min": "ARRAY_MIN",
    "max": "ARRAY_MAX",
    "avg": "LIST_AVG",
    "count": "LIST_COUNT",
}


def plain(query: ast.Query, way: str) -> ast.Select:
    """The SELECT of a query that has only items, FROM and WHERE. CQ0502, with this fix, for any other."""
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
            cause = "a query in a trigger can only have SELECT, FROM and WHERE"
            raise compile_error("CQ0502", cause, node.span, label=clause, help=_instead(clause, way))
    assert isinstance(select, ast.Select), "any other is refused"
    return select


def _instead(clause: str, way: str) -> str:
    """The fix for a clause. way: the usual one."""
    if clause == "WITH":
        return OF_WITH
    return OF_FIRST_ROWS if clause in {"LIMIT", "OFFSET"} and way == OF_ROWS else way


@dataclass(frozen=True, slots=True)
class ArraySource:
    """The FROM of a SELECT over arrays: a table, the arrays, and the condition of a join."""

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
    """The SELECT with its stars expanded.

    relations: the columns of each, by its name; those of a bare star under "", if there are any.
    """
    items = tuple(own for item in select.items for own in _items(item, relations))
    if not items:
        cause = "EXCLUDE leaves no column of the star"
        raise compile_error("CQ0203", cause, select.items[0].span, help="leave one column, or name the values you need")
    return replace(select, items=items)


def _items(item: ast.SelectItem | ast.Star, relations: Mapping[str, Sequence[str]]) -> Iterator[ast.SelectItem]:
    if isinstance(item, ast.SelectItem):
        yield item
        return
    columns = relations.get(item.qualifier or "")
    if columns is None or item.replace:
        raise _no_star(item)
    without = {name for left_out in item.exclude for name in _left_out(left_out, columns)}
    for name in columns:
        if name in without:
            continue
        column = ast.ColumnRef(name, item.qualifier, span=item.span, name_span=item.span)
        yield ast.SelectItem(column, span=item.span)


def _left_out(ref: ast.ColumnRef, columns: Sequence[str]) -> list[str]:
    """The columns of a star that a name in its EXCLUDE matches. CQ0203 if there are none."""
    found = [c for c in columns if ref.name in ({c} if ref.quoted else {c, c.lower()})]
    if not found:
        raise compile_error(
            "CQ0203", f'the star has no column "{ref.name}"', ref.span, label="no such column",
            help=f"{did_you_mean(ref.name, columns)} columns: {listing(columns)}".strip(),
        )  # fmt: skip
    return found


def given(select: ast.Select) -> tuple[ast.Expr, ...]:
    """The items it selects. CQ0502 for a star that was not expanded."""
    for item in select.items:
        if isinstance(item, ast.Star):
            raise _no_star(item)
    return tuple(i.expr for i in select.items if isinstance(i, ast.SelectItem))


def _no_star(item: ast.Star) -> CompileError:
    return compile_error(
        "CQ0502", "this * is not supported in a trigger", item.span,
        help=("name the columns: new.a, t.b", "new.* is supported, and so is t.* if t is the only table in FROM"),
    )  # fmt: skip


def no_row(select: ast.Select, span: Span) -> CompileError:
    """CQ0502 for a SELECT whose FROM names no row of a table."""
    ways = ["read another table in a sub-query of its own: (SELECT x FROM t WHERE t.key = …)"]
    match select.relations:
        case (ast.DerivedTable(),):
            ways = [BY_A_VIEW, "or read a row of a table in a sub-query: (SELECT x FROM t WHERE t.key = …)"]
        case (ast.Unnest() as arrays,):
            ways = [_of_elements(select, arrays)]
    return compile_error("CQ0502", "a query in a trigger reads one row of one table", span, help=ways)


def _of_elements(select: ast.Select, arrays: ast.Unnest) -> str:
    """How to write a SELECT over arrays alone in a trigger."""
    calls = [n for item in select.items for n in ast.below(item) if is_aggregate(n)]
    if not calls:
        return EACH_INTO_A_STREAM
    by_column = dict(zip(arrays.columns or (arrays.alias,), map(print_expr, arrays.arrays), strict=False))
    match calls:
        case [ast.Call("count", (), distinct=False, filter=None)] if select.where is None and len(arrays.arrays) == 1:
            return f"write CARDINALITY({print_expr(arrays.arrays[0])})"
        case [ast.Call(name, (ast.ColumnRef(column),), distinct=False, filter=None)] if select.where is None:
            if name in OF_ELEMENTS_OF_ARRAYS and column in by_column:
                return f"write {OF_ELEMENTS_OF_ARRAYS[name]}({by_column[column]})"
    *functions, last = OF_ELEMENTS_OF_ARRAYS.values()
    return f"aggregate whole arrays: {', '.join(functions)} or {last} of new.xs"


def refuse_aggregates(select: ast.Select) -> None:
    """CQ0405 for an aggregate of the rows that several keys name."""
    for call in (n for item in select.items for n in ast.below(item) if is_aggregate(n)):
        cause = "a trigger aggregates rows that an array names"
        raise compile_error("CQ0405", cause, call.span, label="an aggregate", help=f"write {SUM_OF_SEVERAL}")


def there_of_array(span: Span) -> CompileError:
    """CQ0501 for EXISTS over the rows that elements of arrays name."""
    way = "count them: (SELECT COUNT(*) FROM t, UNNEST(new.keys) AS u(k) WHERE t.key = u.k) > 0"
    return compile_error("CQ0501", "EXISTS over an array is not supported yet in a trigger", span, help=way)


def no_members(node: ast.InQuery) -> CompileError:
    """CQ0501 for IN (SELECT …), which can only name rows of a DELETE through arrays."""
    ways = [f"write {_without_in(node)}"]
    if _over_arrays(node) and not node.negated:
        by_key = "write UPDATE t SET … FROM UNNEST(new.keys) AS u(k) WHERE t.key = u.k"
        ways = [by_key, f"or beside a condition that gives the key: {_without_in(node)}"]
    return compile_error("CQ0501", NO_IN, node.span, help=tuple(ways))


def refuse_in_when(node: ast.InQuery) -> None:
    """CQ0502 for IN (SELECT …) over the rows of a table in a WHEN, which cannot read tables; CQ0501 for one over an
    array."""
    if _over_arrays(node):
        raise compile_error("CQ0501", NO_IN, node.span, help=f"write {_without_in(node)}")
    way = f"test it in the body: IF {_without_in(node)} THEN … END IF"
    raise compile_error("CQ0502", NO_TABLES, node.span, help=way)


def _over_arrays(node: ast.InQuery) -> bool:
    select = node.query.body
    return isinstance(select, ast.Select) and any(isinstance(r, ast.Unnest) for r in select.relations)


def _without_in(node: ast.InQuery) -> str:
    """The same condition in a form that a trigger allows."""
    if _over_arrays(node):
        return "x <> ALL (new.keys)" if node.negated else "x = ANY (new.keys)"
    return ("NOT " if node.negated else "") + "EXISTS (SELECT 1 FROM t WHERE t.key = …)"
