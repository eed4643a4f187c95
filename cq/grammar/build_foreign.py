"""Clauses of other systems to the nodes of their equivalents here; see build_expressions.py for how.

If the meaning of a clause differs slightly from the nearest one here, it is translated exactly: the windows of Azure
Stream Analytics contain their end and not their start, so they are shifted by a microsecond.
"""

from __future__ import annotations

from typing import Any, Literal

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.grammar.build_queries import QueryBuilder
from cq.grammar.intervals import read_amount, read_unit
from cq.grammar.lexer import Lexed, Token
from cq.grammar.pivots import pivoted, unpivoted
from cq.records import dataclass, replace

ONE_BY_ONE = frozenset(["explode", "explode_outer", "unnest"])
FILE_READERS = frozenset(
    ["read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson"]
)
_SHAPES = {
    "tumblingwindow": "TUMBLINGWINDOW(minute, 5)",
    "hoppingwindow": "HOPPINGWINDOW(minute, 10, 5)",
    "sessionwindow": "SESSION(ts, INTERVAL '5' MINUTE)",
    "slidingwindow": "SLIDINGWINDOW(minute, 10)",
}
_KSQL_SHAPES = {
    "tumbling": "WINDOW TUMBLING (SIZE 1 HOUR)",
    "hopping": "WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES)",
    "session": "WINDOW SESSION (5 MINUTES)",
}


@dataclass(frozen=True, slots=True)
class KsqlPart:
    """`SIZE 1 HOUR`: the words before the number, and the interval."""

    words: str
    length: ast.IntervalLiteral


@dataclass(frozen=True, slots=True)
class Ranked:
    """A LIMIT by ranks: those of `function` up to `count`, among rows with equal keys."""

    function: Literal["row_number", "rank"]
    count: ast.Expr
    keys: tuple[ast.Expr, ...]
    span: Span


class ForeignBuilder(QueryBuilder):
    """Adds the syntax of other systems."""

    def __init__(self, lexed: Lexed) -> None:
        super().__init__(lexed)
        self._tops: dict[int, tuple[ast.Select, ast.NumberLiteral]] = {}

    def finish(self) -> None:
        super().finish()
        for select, top in self._tops.values():
            help = "write LIMIT n at the end of the whole query"
            raise compile_error("CQ0100", "TOP belongs to a query of its own", top.span.to(select.span), help=help)

    # -------------------------------------------------------------------------------------------- whole queries

    def select(
        self, at: Span, quantifier: Any, top: Any, items: Any, relations: Any, window: Any, *rest: Any
    ) -> ast.Select:
        where, group_by, having, last = rest
        if window is not None:
            group_by = self._with_window(window, group_by)
        made = self._plain_select(at, quantifier, items, relations, where, group_by, having, last)
        if top is not None:
            self._tops[id(made)] = (made, top)
        return made

    def from_first(self, at: Span, relations: Any, quantifier: Any, items: Any, *rest: Any) -> ast.Select:
        shown = items if items is not None else (ast.Star(span=at), None)
        where, group, having, last = rest
        return self.select(at, quantifier, None, shown, relations, None, where, group, having, last)

    def query(self, at: Span, ctes: Any, body: Any, order_by: Any, limits: Any, emit: Any) -> ast.Query:
        if id(body) in self._tops:
            _, top = self._tops.pop(id(body))
            if limits is not None:
                raise compile_error("CQ0100", "TOP and LIMIT say the same", top.span, help="leave one of them out")
            limits = (top, None)
        if limits is not None and len(limits) == 3:
            body, limits = self._ranked(body, order_by, limits[2]), None
        return super().query(at, ctes, body, order_by, limits, emit)

    def _ranked(self, body: Any, order_by: Any, ranked: Ranked) -> ast.Select:
        """The SELECT with its LIMIT by ranks as QUALIFY."""
        by_all = any(id(o) in self._by_all for o in order_by or ())
        if not isinstance(body, ast.Select) or body.distinct or by_all or (ranked.function == "rank" and not order_by):
            help = "put the SELECT into a derived table, and ORDER BY columns of it"
            raise compile_error("CQ0501", "this LIMIT takes a SELECT with an ORDER BY", ranked.span, help=help)
        spec = ast.WindowSpec(ranked.keys, order_by or (), span=ranked.span)
        rank = ast.Call(ranked.function, over=spec, span=ranked.span, name_span=ranked.span, over_span=ranked.span)
        few = ast.Binary("<=", rank, ranked.count, span=ranked.span, op_span=ranked.span)
        qualify = few if body.qualify is None else ast.Logical("AND", (body.qualify, few), span=ranked.span)
        return replace(body, qualify=qualify)

    def query_emit_first(self, at: Span, ctes: Any, body: Any, order_by: Any, emit: Any, limits: Any) -> ast.Query:
        """ksqlDB: `EMIT CHANGES LIMIT 3`."""
        return self.query(at, ctes, body, order_by, limits, emit)

    def top(self, at: Span, *tokens: Token) -> ast.NumberLiteral:
        return ast.NumberLiteral(tokens[-1].text, span=at)

    def limit_by(self, at: Span, count: Any, *keys: Any) -> tuple[Any, Any, Any]:
        """ClickHouse: `LIMIT n BY k`, the first n rows of each k."""
        return None, None, Ranked("row_number", count, self._keys_in(keys), at)

    def limit_with_ties(self, at: Span, count: Any, *_: Any) -> tuple[Any, Any, Any]:
        """`FETCH FIRST n ROWS WITH TIES`: the first n rows, and all that are equal to the last of them."""
        return None, None, Ranked("rank", count, (), at)

    def values_in_from(self, at: Span, values: Any, alias: dict[str, Any]) -> ast.DerivedTable:
        return ast.DerivedTable(ast.Query(values, span=values.span), span=at, **alias)

    # ---------------------------------------------------------------------------------------- PIVOT and UNPIVOT

    def pivot_by(self, at: Span, key: ast.ColumnRef, *values: Any) -> tuple[ast.ColumnRef, tuple[Any, ...]]:
        return key, values

    def pivot_query(self, at: Span, _: Token, source: Any, by: Any, *rest: Any) -> ast.Select:
        """DuckDB: `PIVOT s ON k IN ('a', 'b') USING SUM(q) GROUP BY g`."""
        *aggregates, group_by = rest
        key, values = by
        return pivoted(source, aggregates, key, values, group_by or (), at)

    def pivot_table(self, at: Span, source: Any, _: Token, *rest: Any) -> ast.DerivedTable:
        *aggregates, (key, values), group_by, alias = rest
        query = ast.Query(pivoted(source, aggregates, key, values, group_by or (), at), span=at)
        return ast.DerivedTable(query, span=at, **alias or {})

    def unpivot_columns(self, at: Span, *columns: ast.SelectItem) -> tuple[ast.SelectItem, ...]:
        return columns

    def unpivot_column(self, at: Span, name: Token, title: Token | None) -> ast.SelectItem:
        shown = None if title is None else title.value
        return ast.SelectItem(self.column_name(self._span(name), name), shown, span=at)

    def nulls_too(self, at: Span, _: Token) -> bool:
        """INCLUDE NULLS: the lexer accepts no other word here."""
        return True

    def no_nulls(self, at: Span) -> bool:
        return False

    def unpivot_query(self, at: Span, _: Token, source: Any, columns: Any, *names: Token) -> ast.Select:
        """DuckDB: `UNPIVOT s ON a, b INTO NAME n VALUE v`."""
        word, name, value = names
        if word.value != "name":
            raise compile_error(
                "CQ0101", f"unexpected `{word.text}`", self._span(word), help="write INTO NAME n VALUE v"
            )
        return unpivoted(source, (name.value, value.value), columns, False, at)

    def unpivot_table(self, at: Span, source: Any, _: Token, nulls: Any, *rest: Any) -> ast.DerivedTable:
        value, name, columns, alias = rest
        made = unpivoted(source, (name.value, value.value), columns, bool(nulls), at)
        return ast.DerivedTable(ast.Query(made, span=at), span=at, **alias or {})

    # ----------------------------------------------------------------------------------------------- definitions

    def encoding(self, at: Span, form: Token, encode: Token) -> ast.Option | None:
        """RisingWave: `FORMAT PLAIN ENCODE JSON` is the option format = 'json'."""
        if form.value != "plain":
            way = "write FORMAT PLAIN: each row of the stream counts, and none takes another back"
            raise compile_error("CQ0501", f"FORMAT {form.value.upper()} is not supported", at, help=way)
        return ast.Option("format", ast.StringLiteral(encode.value, span=self._span(encode)), span=at, key_span=at)

    def create_sink_from(self, at: Span, guard: Any, name: Token, source: Token, options: Any) -> tuple[Any, ...]:
        """RisingWave: `CREATE SINK o FROM v WITH (…)`."""
        place = self._span(source)
        items = (ast.Star(span=place),)
        select = ast.Select(items, (ast.TableRef(source.value, span=place, name_span=place),), span=place)
        return self.create_sink_as(at, guard, name, ast.Query(select, span=place), options)

    def create_sink_as(self, at: Span, guard: Any, name: Token, query: Any, options: Any) -> tuple[Any, ...]:
        """A sink and the query that fills it."""
        place = self._span(name)
        sink = ast.CreateSink(name.value, (), options, bool(guard), span=at, name_span=place)
        return sink, ast.Insert(name.value, query, span=at, target_span=place)

    def table_function(self, at: Span, lateral: Any, call: Any, alias: Any) -> Any:
        """`explode(xs)`, and of DuckDB `read_csv('a.csv')`, the file by its path."""
        name, args = call
        if name.value in FILE_READERS and len(args) == 1 and isinstance(args[0], ast.StringLiteral):
            return ast.TableRef(args[0].value, is_path=True, span=at, name_span=args[0].span, **alias or {})
        if name.value not in ONE_BY_ONE:
            return super().table_function(at, lateral, call, alias)
        return ast.Unnest(args, lateral=lateral is not None, span=at, **alias or {})

    def metadata(self, at: Span, *_: Any) -> tuple[str, Any]:
        """Flink: message metadata of the broker is an ordinary column when the rows come from a file."""
        return "", None

    # ------------------------------------------------------------------------------------------------- grouping

    def group_by(self, at: Span, *keys: Any) -> tuple[Any, ...]:
        return tuple(_window_of_azure(k) if isinstance(k, ast.Call) else k for k in super().group_by(at, *keys))

    def group_by_with_sets(self, at: Span, *parts: Any) -> tuple[Any, ...]:
        """Spark and MySQL: `GROUP BY a, b WITH ROLLUP`."""
        *keys, _, kind = parts
        span = keys[0].span.to(keys[-1].span)
        return (ast.GroupingSets("ROLLUP" if kind.value == "rollup" else "CUBE", self._sets(tuple(keys)), span=span),)

    def ksql_window(self, at: Span, _: Token, kind: Token, *parts: KsqlPart) -> ast.Call:
        """`WINDOW TUMBLING (SIZE 1 HOUR)` as the call for it in GROUP BY."""
        place, shape = self._span(kind), f"write {_KSQL_SHAPES[kind.value]}"
        given = {p.words: p.length for p in parts}
        if "grace period" in given:
            help = "declare the delay in the stream: WATERMARK FOR ts AS ts - INTERVAL '10' MINUTE"
            raise compile_error("CQ0501", "GRACE PERIOD of a window is not supported", at, help=help)
        given.pop("retention", None)  # how long ksqlDB keeps results for queries
        needed = {"tumbling": ("size",), "hopping": ("advance by", "size"), "session": ("",)}[kind.value]
        if set(given) != set(needed) or len(given) < len(parts) - 1:
            raise compile_error("CQ0100", f"WINDOW {kind.value.upper()} has other parts", at, help=shape)
        name = {"tumbling": "tumble", "hopping": "hop", "session": "session"}[kind.value]
        return ast.Call(name, tuple(given[n] for n in needed), span=at, name_span=place)

    def ksql_part(self, at: Span, *tokens: Token) -> KsqlPart:
        *words, number, unit = tokens
        said = " ".join(w.value for w in words)
        parts = read_amount(number.text, read_unit(unit.text, self._span(unit)), self._span(number))
        place = self._span(number).to(self._span(unit))
        return KsqlPart("advance by" if said == "advance" else said, ast.IntervalLiteral(parts, span=place))

    def _with_window(self, window: ast.Call, group_by: Any) -> tuple[Any, ...]:
        if not isinstance(group_by, tuple):
            help = "write GROUP BY after it, with the columns of a group"
            raise compile_error("CQ0100", "a WINDOW clause needs a GROUP BY", window.span, help=help)
        return (window, *group_by)

    # ------------------------------------------------------------------------------------------------- relations

    def timestamped(self, at: Span, name: Token, alias: Any, _: Token, path: tuple[str, Span]) -> ast.TableRef:
        """Azure Stream Analytics: `FROM s TIMESTAMP BY ts`."""
        ref = self.table_ref(at, name, alias)
        return replace(ref, timed_by=ast.ColumnRef(path[0].rpartition(".")[2], span=path[1], name_span=path[1]))

    def within(self, at: Span, _: Token, *parts: Any) -> tuple[ast.IntervalLiteral, ...]:
        """ksqlDB: `WITHIN (1 MINUTE, 2 MINUTES)`: the right row is at most this much earlier or later."""
        lengths = [p.length for p in parts if isinstance(p, KsqlPart)]
        if any(isinstance(p, Token) for p in parts):
            help = "declare the delay in the stream: WATERMARK FOR ts AS ts - INTERVAL '10' MINUTE"
            raise compile_error("CQ0501", "GRACE PERIOD of a join is not supported", at, help=help)
        return (lengths[0], lengths[-1])

    def joined_within(self, at: Span, left: Any, kind: Any, right: Any, within: Any, on: Any) -> ast.Join:
        return replace(self.joined(at, left, kind, right, {"on": on}), within=within)

    def lateral_view(self, at: Span, left: Any, _: Token, outer: Any, name: Token, *rest: Any) -> ast.Join:
        """Spark: `LATERAL VIEW [OUTER] explode(xs) t AS x`."""
        *arrays, alias, columns = rest
        if name.value not in ONE_BY_ONE or len(arrays) != 1:
            raise self._no_view(name)
        names = columns or (("col",) if name.value != "unnest" else ())
        array = ast.Unnest(tuple(arrays), alias=alias.value, columns=names, span=at, alias_span=self._span(alias))
        if outer is None and name.value != "explode_outer":
            return ast.Join("CROSS", left, array, span=at)
        true = ast.BooleanLiteral(True, span=at)
        return ast.Join("LEFT", left, array, true, span=at, kind_span=at)

    def _no_view(self, name: Token) -> CompileError:
        ways = {
            "posexplode": "write UNNEST(xs) WITH ORDINALITY AS t(x, n): n counts from 1",
            "stack": "write a SELECT for each row of the stack, with UNION ALL between them",
        }
        way = ways.get(name.value.removesuffix("_outer"), "write CROSS JOIN UNNEST(array) AS t(x)")
        message = f"LATERAL VIEW of {name.value.upper()} is not supported"
        return compile_error("CQ0501", message, self._span(name), help=way)

    def view_columns(self, at: Span, *names: Token) -> tuple[str, ...]:
        return tuple(n.value for n in names)

    # ----------------------------------------------------------------------------------------------- expressions

    def binary(self, at: Span, left: Any, op: Token, right: Any) -> Any:
        if op.text.upper() in ("DIV", "//"):  # of Spark, Hive and MySQL, and of DuckDB
            return ast.Call("div", (left, right), span=at, name_span=self._span(op))
        if op.text == "->" and isinstance(right, ast.ColumnRef):  # ksqlDB: a field of a row
            if isinstance(left, ast.ColumnRef):
                path = (*left.path, left.name) if left.qualifier is not None else ()
                return ast.ColumnRef(right.name, left.qualifier or left.name, path, span=at, name_span=right.span)
            help = "write the name of a column before it, and JSON ->> 'field' for the field of a text"
            raise compile_error("CQ0100", "-> with a name takes a field of a column", right.span, help=help)
        return super().binary(at, left, op, right)

    def call_head(
        self, at: Span, name: Token, quantifier: Any, args: Any, order_by: Any, separator: Any, nulls: Any
    ) -> ast.Call:
        if separator is not None:
            args = (*(args or ()), separator)
        return self._head(at, name, quantifier, args, order_by, nulls)

    def separator(self, at: Span, _: Token, text: Token) -> ast.StringLiteral:
        """MySQL: `GROUP_CONCAT(x SEPARATOR ';')`."""
        return ast.StringLiteral(text.value, span=at)

    def rounded_to_unit(self, at: Span, name: Token, time: Any, _: Token, unit: Token) -> ast.Expr:
        """Flink: `FLOOR(ts TO HOUR)`, `CEIL(ts TO HOUR)`."""
        place = self._span(unit)
        word = ast.StringLiteral(read_unit(unit.value, place).lower(), span=place)
        down = ast.Call("date_trunc", (word, time), span=at, name_span=self._span(name))
        if name.value == "floor":
            return down
        if name.value not in ("ceil", "ceiling"):
            message = f"{name.value.upper()} takes no TO"
            raise compile_error("CQ0100", message, place, help="write FLOOR(ts TO HOUR) or CEIL(ts TO HOUR)")
        parts = read_amount("1", read_unit(unit.value, place), place)
        up = ast.Binary("+", down, ast.IntervalLiteral(parts, span=place), span=at, op_span=at)
        exact = ast.Binary("=", down, time, span=at, op_span=at)
        return ast.Case(None, (ast.When(exact, down, span=at),), up, span=at)

    def field_of_call(self, at: Span, call: ast.Call, name: Token) -> ast.Expr:
        """Spark: `window(ts, '10 minutes').start`."""
        bound = {"start": "window_start", "end": "window_end"}.get(name.value)
        if call.name != "window" or bound is None:
            help = "only window(…).start and window(…).end have names behind a call; of a row of fields write (x).name"
            raise compile_error("CQ0501", "no value of a call has fields", self._span(name), help=help)
        return replace(call, name=bound, span=at)

    def interval_of(self, at: Span, count: Any, unit: Token) -> ast.Expr:
        """MySQL and DuckDB: `INTERVAL n DAY`."""
        parts = read_amount("1", read_unit(unit.text, self._span(unit)), self._span(unit))
        return ast.Binary("*", count, ast.IntervalLiteral(parts, span=at), span=at, op_span=at)

    def struct_step(self, at: Span, name: Token) -> ast.ColumnRef:
        return ast.ColumnRef(name.value, span=at, name_span=at)

    def system_timestamp(self, at: Span, name: Token, *_: Token) -> ast.Call:
        if name.value != "system":
            help = "write System.Timestamp()"
            raise compile_error("CQ0100", "a function has a name of one part", at, help=help)
        return ast.Call("system_timestamp", span=at, name_span=at)


def _window_of_azure(call: ast.Call) -> ast.Call:
    """`TumblingWindow(minute, 5)` as TUMBLE. Such a window contains its end and not its start: here both are a
    microsecond later."""
    if call.name not in _SHAPES:
        return call
    shape = f"write {_SHAPES[call.name]}"
    if call.name in ("sessionwindow", "slidingwindow"):
        message = {
            "sessionwindow": "a session has no greatest length",
            "slidingwindow": "SLIDINGWINDOW is not supported",
        }
        ways = (shape,) if call.name == "sessionwindow" else (
            "write HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE)",
            "or, at each row, COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL '10' MINUTE PRECEDING)",
        )  # fmt: skip
        raise compile_error("CQ0501", message[call.name], call.span, help=ways)
    unit, *numbers = call.args or (None,)
    least = 1 if call.name == "tumblingwindow" else 2
    plain = all(isinstance(n, ast.NumberLiteral) for n in numbers)
    if not isinstance(unit, ast.ColumnRef) or not plain or len(numbers) != least:
        raise compile_error("CQ0302", f"{call.name.upper()} has other arguments", call.span, help=shape)
    word = read_unit(unit.name, unit.span)
    lengths = [ast.IntervalLiteral(read_amount(n.text, word, n.span), span=n.span) for n in numbers]  # type: ignore[union-attr]
    shift = ast.IntervalLiteral((ast.IntervalPart("1", "MICROSECOND", span=call.span),), span=call.span)
    name = "tumble" if call.name == "tumblingwindow" else "hop"
    return replace(call, name=name, args=(*reversed(lengths), shift))
