"""Productions of queries and relations to nodes; see build_expressions.py for how."""

from __future__ import annotations

from typing import Any

from cq.errors import Span, compile_error
from cq.grammar import ast
from cq.grammar.build_expressions import ExpressionBuilder
from cq.grammar.comparing import RowOfValues
from cq.grammar.lexer import Lexed, Token
from cq.records import replace

WINDOW_FUNCTIONS = frozenset(["tumble", "hop", "cumulate", "session"])
GROUP_BY_ALL = "ALL"
SERIES = frozenset(["generate_series", "range", "sequence"])  # functions in FROM, arrays elsewhere
# names for arguments that are a table or its time column, in other systems
TABLE_ARGUMENTS = frozenset(["data", "input", "table"])
TIME_ARGUMENTS = frozenset(["timecol", "time_col", "timestamp_column", "time"])


class QueryBuilder(ExpressionBuilder):
    """Adds queries."""

    def __init__(self, lexed: Lexed) -> None:
        super().__init__(lexed)
        # TABLE s PARTITION BY k without parentheses: the arguments that follow may be further keys
        self._open_partitions: dict[int, ast.TableArgument] = {}

    def query(self, at: Span, ctes: Any, body: Any, order_by: Any, limits: Any, emit: Any) -> ast.Query:
        limit, offset = limits or (None, None)
        order_by = self._by_every_column(body, order_by)
        if isinstance(body, ast.Query) and not (ctes or order_by or limits or emit):
            return body
        return ast.Query(body, ctes or (), order_by or (), limit, offset, emit, span=at)

    def _by_every_column(
        self, body: Any, order_by: tuple[ast.OrderItem, ...] | None
    ) -> tuple[ast.OrderItem, ...] | None:
        """ORDER BY ALL as the numbers of the selected columns, unless only the binder knows how many they are."""
        if not order_by or id(order_by[0]) not in self._by_all:
            return order_by
        (every,) = order_by
        del self._by_all[id(every)]
        if not isinstance(body, ast.Select) or any(isinstance(i, ast.Star) for i in body.items):
            return order_by
        numbers = range(1, len(body.items) + 1)
        return tuple(replace(every, expr=ast.NumberLiteral(str(n), span=every.span)) for n in numbers)

    def paren_query(self, at: Span, query: Any) -> Any:
        return query

    def query_in_parentheses(self, at: Span, query: ast.Query) -> ast.QueryBody:
        plain = query == ast.Query(query.body)
        return query.body if plain else query

    def with_clause(self, at: Span, *ctes: Any) -> tuple[Any, ...]:
        return ctes

    def cte(self, at: Span, name: Token, columns: Any, query: Any) -> ast.Cte:
        return ast.Cte(name.value, query, columns or (), span=at, name_span=self._span(name))

    def union(self, at: Span, left: Any, quantifier: str | None, right: Any) -> ast.SetOperation:
        return ast.SetOperation("UNION", quantifier == "ALL", left, right, span=at)

    def union_by_name(self, at: Span, left: Any, quantifier: str | None, word: Token, right: Any) -> ast.SetOperation:
        if word.value != "name":
            raise compile_error("CQ0100", "UNION works BY NAME or by position", self._span(word), help="write BY NAME")
        return ast.SetOperation("UNION", quantifier == "ALL", left, right, True, span=at)

    def except_(self, at: Span, left: Any, quantifier: str | None, right: Any) -> ast.SetOperation:
        return ast.SetOperation("EXCEPT", quantifier == "ALL", left, right, span=at)

    def intersect(self, at: Span, left: Any, quantifier: str | None, right: Any) -> ast.SetOperation:
        return ast.SetOperation("INTERSECT", quantifier == "ALL", left, right, span=at)

    def _plain_select(
        self, at: Span, quantifier: Any, items: Any, relations: Any, where: Any, group_by: Any, having: Any, rest: Any
    ) -> ast.Select:
        *items, comma = items
        if comma is not None and not relations:
            raise compile_error("CQ0100", "a comma follows the last column", comma, help="delete the comma")
        windows, qualify = rest or ((), None)
        if not (group_by or having):
            items, relations = _with_unnest(items, relations or ())
        kind, keys = quantifier or ("ALL", ())
        group_all = group_by == GROUP_BY_ALL
        groups = () if group_all else group_by or ()
        distinct = kind == "DISTINCT"
        return ast.Select(
            tuple(items), relations or (), where, groups, having, windows, qualify, distinct, keys, group_all, span=at
        )

    def select_items(self, at: Span, *items: Any) -> tuple[Any, ...]:
        return items

    def comma(self, at: Span) -> Span:
        return at

    def star(self, at: Span, excluded: Any, replaced: Any) -> ast.Star:
        return ast.Star(None, excluded or (), replaced or (), span=at)

    def qualified_star(self, at: Span, qualifier: Token, excluded: Any, replaced: Any) -> ast.Star:
        return ast.Star(qualifier.value, excluded or (), replaced or (), span=at)

    def excluded(self, at: Span, *columns: Any) -> tuple[Any, ...]:
        return columns

    def replaced(self, at: Span, *columns: Any) -> tuple[Any, ...]:
        return columns

    def column_name(self, at: Span, name: Token) -> ast.ColumnRef:
        return ast.ColumnRef(name.value, quoted=name.text[0] in '"`', span=at, name_span=at)

    def replacement(self, at: Span, expr: Any, name: Token) -> ast.SelectItem:
        return ast.SelectItem(expr, name.value, span=at, alias_span=self._span(name))

    def select_expr(self, at: Span, expr: Any, alias: Token | None = None) -> ast.SelectItem:
        if alias is None:
            return ast.SelectItem(expr, span=at)
        return ast.SelectItem(expr, alias.value, span=at, alias_span=self._span(alias))

    def from_clause(self, at: Span, *relations: Any) -> tuple[Any, ...]:
        return relations

    def where(self, at: Span, condition: Any) -> Any:
        return condition

    def group_by(self, at: Span, *keys: Any) -> tuple[Any, ...]:
        return self._keys_in(keys)

    def group_by_all(self, at: Span) -> str:
        return GROUP_BY_ALL

    def grouping_sets(self, at: Span, *items: Any) -> ast.GroupingSets:
        return ast.GroupingSets("GROUPING SETS", self._sets(items), span=at)

    def rollup(self, at: Span, *items: Any) -> ast.GroupingSets:
        return ast.GroupingSets("ROLLUP", self._sets(items), span=at)

    def cube(self, at: Span, *items: Any) -> ast.GroupingSets:
        return ast.GroupingSets("CUBE", self._sets(items), span=at)

    def _sets(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """Sets of a GROUP BY: `(a, b)` is one of two keys."""
        is_row = RowOfValues
        return tuple(ast.GroupKeys(self._keys_in((i,)), span=i.span) if isinstance(i, is_row) else i for i in items)

    def no_keys(self, at: Span) -> ast.GroupKeys:
        return ast.GroupKeys((), span=at)

    def having(self, at: Span, condition: Any) -> Any:
        return condition

    def qualify(self, at: Span, condition: Any) -> Any:
        return condition

    def windows(self, at: Span, *windows: Any) -> tuple[Any, ...]:
        return windows

    def windows_first(self, at: Span, windows: Any, qualify: Any) -> tuple[Any, Any]:
        return windows, qualify

    def qualify_first(self, at: Span, qualify: Any, windows: Any) -> tuple[Any, Any]:
        return windows or (), qualify

    def named_window(self, at: Span, name: Token, spec: Any) -> ast.NamedWindow:
        return ast.NamedWindow(name.value, spec, span=at)

    def whole_table(self, at: Span, name: Token) -> ast.Select:
        return ast.Select((ast.Star(span=at),), (self.table_ref(self._span(name), name, None),), span=at)

    def values(self, at: Span, *rows: Any) -> ast.Values:
        return ast.Values(rows, span=at)

    def values_row(self, at: Span, *values: Any) -> ast.ValuesRow:
        return ast.ValuesRow(values, span=at)

    def default_value(self, at: Span) -> ast.DefaultValue:
        return ast.DefaultValue(span=at)

    def limit_offset(self, at: Span, limit: Any, offset: Any = None) -> tuple[Any, Any]:
        return limit, offset

    def offset_limit(self, at: Span, offset: Any, limit: Any = None) -> tuple[Any, Any]:
        return limit, offset

    def emit_final(self, at: Span) -> ast.Emit:
        return ast.Emit("FINAL", span=at)

    def emit_changes(self, at: Span) -> ast.Emit:
        return ast.Emit("CHANGES", span=at)

    def emit_every(self, at: Span, every: Any) -> ast.Emit:
        return ast.Emit("EVERY", every, span=at)

    # ------------------------------------------------------------------------------------------------ relations

    def joined(
        self, at: Span, left: Any, kind: tuple[Any, Span], right: Any, condition: dict[str, Any], asof: bool = False
    ) -> ast.Join:
        return ast.Join(kind[0], left, right, asof=asof, span=at, kind_span=kind[1], **condition)

    def cross_joined(self, at: Span, left: Any, right: Any) -> ast.Join:
        return ast.Join("CROSS", left, right, span=at)

    def natural_joined(self, at: Span, left: Any, kind: tuple[Any, Span], right: Any) -> ast.Join:
        return ast.Join(kind[0], left, right, natural=True, span=at, kind_span=kind[1])

    def asof_joined(
        self, at: Span, left: Any, kind: tuple[Any, Span], right: Any, condition: dict[str, Any]
    ) -> ast.Join:
        return self.joined(at, left, kind, right, condition, asof=True)

    def semi_joined(
        self, at: Span, left: Any, kind: tuple[Any, Span], right: Any, condition: dict[str, Any]
    ) -> ast.Join:
        return self.joined(at, left, kind, right, condition)

    def semi(self, at: Span) -> tuple[str, Span]:
        return "SEMI", at

    def anti(self, at: Span) -> tuple[str, Span]:
        return "ANTI", at

    def inner(self, at: Span) -> tuple[str, Span]:
        return "INNER", at

    def left(self, at: Span) -> tuple[str, Span]:
        return "LEFT", at

    def right(self, at: Span) -> tuple[str, Span]:
        return "RIGHT", at

    def full(self, at: Span) -> tuple[str, Span]:
        return "FULL", at

    def on_condition(self, at: Span, condition: Any) -> dict[str, Any]:
        return {"on": condition}

    def using_condition(self, at: Span, names: Any) -> dict[str, Any]:
        return {"using": names, "using_span": at}

    def match_condition(self, at: Span, condition: Any) -> Any:
        return condition

    def match_only(self, at: Span, match: Any) -> dict[str, Any]:
        return {"match": match}

    def match_first(self, at: Span, match: Any, condition: dict[str, Any]) -> dict[str, Any]:
        return {"match": match, **condition}

    def match_last(self, at: Span, condition: dict[str, Any], match: Any) -> dict[str, Any]:
        return {"match": match, **condition}

    def names(self, at: Span, *names: Token) -> tuple[str, ...]:
        return tuple(n.value for n in names)

    def alias(self, at: Span, name: Token, columns: Any) -> dict[str, Any]:
        return {"alias": name.value, "columns": columns or (), "alias_span": self._span(name)}

    def as_of(self, at: Span, time: Any) -> Any:
        return time

    def table_ref(self, at: Span, name: Token, alias: dict[str, Any] | None) -> ast.TableRef:
        return ast.TableRef(name.value, span=at, name_span=self._span(name), **alias or {})

    def file_ref(self, at: Span, path: Token, alias: dict[str, Any] | None) -> ast.TableRef:
        return replace(self.table_ref(at, path, alias), is_path=True)

    def table_as_of(self, at: Span, name: Token, as_of: Any, alias: dict[str, Any] | None) -> ast.TableRef:
        return ast.TableRef(name.value, as_of=as_of, span=at, name_span=self._span(name), **alias or {})

    def alias_as_of(self, at: Span, name: Token, alias: dict[str, Any], as_of: Any) -> ast.TableRef:
        return self.table_as_of(at, name, as_of, alias)

    def derived_table(self, at: Span, lateral: Any, query: Any, alias: dict[str, Any] | None) -> ast.DerivedTable:
        return ast.DerivedTable(query, lateral=lateral is not None, span=at, **alias or {})

    def with_ordinality(self, at: Span) -> bool:
        return True

    def unnest(self, at: Span, lateral: Any, *rest: Any) -> ast.Unnest:
        *arrays, ordinality, alias = rest
        return ast.Unnest(tuple(arrays), bool(ordinality), lateral=lateral is not None, span=at, **alias or {})

    def table_call(self, at: Span, name: Token, *args: Any) -> tuple[Token, tuple[Any, ...]]:
        present = tuple(a for a in args if a is not None)
        return name, self._window_arguments(present) if name.value in WINDOW_FUNCTIONS else present

    def table_function(
        self, at: Span, lateral: Any, call: tuple[Token, tuple[Any, ...]], alias: dict[str, Any] | None
    ) -> ast.TableFunction:
        name, args = call
        place = self._span(name)
        return ast.TableFunction(name.value, args, lateral=lateral is not None, span=at, name_span=place, **alias or {})

    def table_argument(self, at: Span, name: Token, partition: Any) -> ast.TableArgument:
        return self._table_argument(at, name.value, partition, self._span(name))

    def file_argument(self, at: Span, path: Token, partition: Any) -> ast.TableArgument:
        return self._table_argument(at, path.value, partition, self._span(path), is_path=True)

    def query_argument(self, at: Span, query: Any, partition: Any) -> ast.TableArgument:
        return self._table_argument(at, query, partition, at)

    def _table_argument(
        self, at: Span, source: str | ast.Query, partition: Any, place: Span, is_path: bool = False
    ) -> ast.TableArgument:
        keys, is_open = partition or ((), False)
        node = ast.TableArgument(source, keys, is_path, span=at, name_span=place)
        if is_open:
            self._open_partitions[id(node)] = node
        return node

    def partition(self, at: Span, key: Any) -> tuple[tuple[Any, ...], bool]:
        return self._keys_in((key,)), not isinstance(key, RowOfValues)

    def descriptor(self, at: Span, names: Any) -> ast.Descriptor:
        return ast.Descriptor(names, span=at)

    def row_count(self, at: Span, count: Any) -> ast.RowCount:
        if not isinstance(count, ast.NumberLiteral | ast.Parameter):
            raise compile_error("CQ0403", "a window of rows takes a number of rows", count.span, help="write ROWS 100")
        return ast.RowCount(count, span=at)

    # ---------------------------------------------------------------------------- arguments of window functions

    def _window_arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with TABLE and DESCRIPTOR added where they were omitted, and all partition keys in their
        place."""
        named = [self._named_window_argument(a) if isinstance(a, ast.NamedArgument) else a for a in args]
        if not named or isinstance(named[0], ast.NamedArgument):
            return tuple(named)
        table, rest = _as_table(named[0]), named[1:]
        keys = self._further_keys(rest) if self._open_partitions.pop(id(named[0]), None) is not None else 0
        if keys:
            table = replace(table, partition_by=(*table.partition_by, *rest[:keys]))
            rest = rest[keys:]
        return (table, *(_as_descriptor(rest[0]), *rest[1:])) if rest else (table,)

    def _named_window_argument(self, arg: ast.NamedArgument) -> ast.NamedArgument:
        if arg.name in TABLE_ARGUMENTS:
            return replace(arg, value=_as_table(arg.value))
        return replace(arg, value=_as_descriptor(arg.value)) if arg.name in TIME_ARGUMENTS else arg

    def _further_keys(self, args: list[Any]) -> int:
        """How many of the arguments after `PARTITION BY k` are keys too: all columns before the time column."""
        plain = next((i for i, a in enumerate(args) if not isinstance(a, ast.ColumnRef)), len(args))
        following = args[plain] if plain < len(args) else None
        return plain if isinstance(following, ast.Descriptor | ast.RowCount) else max(0, plain - 1)


def _with_unnest(items: list[Any], relations: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """`SELECT UNNEST(xs) AS x FROM s` as `SELECT u.x FROM s, UNNEST(xs) AS u(x)`, for a single such item without a
    star."""
    found = [n for n, i in enumerate(items) if isinstance(i, ast.SelectItem) and _is_unnest(i.expr)]
    if len(found) != 1 or any(isinstance(i, ast.Star) for i in items):
        return items, relations
    item = items[found[0]]
    call = item.expr
    name = item.alias or ("col" if call.name == "explode" else "unnest")
    inner = call.args[0]
    array: ast.Relation = ast.Unnest(call.args, alias="unnested", columns=(name,), span=call.span)
    if isinstance(inner, ast.Call) and inner.name in SERIES:
        array = ast.TableFunction(
            inner.name, inner.args, "unnested", (name,), span=call.span, name_span=inner.name_span
        )
    element = replace(item, expr=ast.ColumnRef(name, "unnested", span=call.span, name_span=call.span))
    return [*items[: found[0]], element, *items[found[0] + 1 :]], (*relations, array)


def _is_unnest(node: Any) -> bool:
    """UNNEST(xs), or Spark's EXPLODE(xs)."""
    return isinstance(node, ast.Call) and node in (ast.Call(n, node.args[:1]) for n in ("unnest", "explode"))


def _as_table(arg: Any) -> Any:
    match arg:
        case ast.ColumnRef(name=name, qualifier=None, span=span):
            return ast.TableArgument(name, span=span, name_span=span)
        case ast.ScalarQuery(query=query, span=span):
            return ast.TableArgument(query, span=span, name_span=span)
    return arg


def _as_descriptor(arg: Any) -> Any:
    if isinstance(arg, ast.ColumnRef) and arg.qualifier is None:
        return ast.Descriptor((arg.name,), span=arg.span)
    return arg
