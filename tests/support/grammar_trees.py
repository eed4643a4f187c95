"""Random syntax trees that the parser could have built, for the laws of the printer. Every node type occurs."""

from __future__ import annotations

import random
from typing import Any

from cq.errors import NOWHERE, SourceText
from cq.grammar import ast
from cq.grammar.comparing import RowOfValues, row_among_rows
from cq.grammar.parser import parse

NAMES = ["a", "b", "ts", "time", "type", "day", "rows", "window", "order", "Mixed", "two words", 'quo"te', "é", "size"]
TABLES = ["s", "t", "bids", "select", "Big", "value"]
FUNCTIONS = ["f", "count", "sum", "lower", "window", "left", "if", "trim", "substring", "date", "Weird F", "extract"]
STRINGS = ["", "x", "it's", "a\nb", "-- no comment", "/*", '"', "ü"]
NUMBERS = ["0", "1", "10", "1.5", ".5", "1.", "1e9", "2.5E-3", "123456789012345678901234567890"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def parse_query(text: str) -> ast.Query:
    """The tree of one query."""
    (query,) = parse(SourceText("<text>", text)).statements
    assert isinstance(query, ast.Query)
    return query


class Trees:
    """A source of trees. `depth` bounds how far expressions and queries nest."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    # ------------------------------------------------------------------------------------------------- choices

    def pick(self, options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, probability: float = 0.3) -> bool:
        return self.random.random() < probability

    def maybe(self, make: Any, *args: Any, probability: float = 0.3) -> Any:
        return make(*args) if self.chance(probability) else None

    def some(self, make: Any, *args: Any, least: int = 1, most: int = 3) -> tuple[Any, ...]:
        return tuple(make(*args) for _ in range(self.random.randint(least, most)))

    def name(self) -> str:
        return str(self.pick(NAMES))

    def names(self, least: int = 0) -> tuple[str, ...]:
        return self.some(self.name, least=least, most=2)

    # --------------------------------------------------------------------------------------------- expressions

    def expr(self, depth: int) -> Any:
        if depth <= 0:
            return self.leaf()
        makers = [
            *(self.leaf, self.column, self.unary, self.binary, self.negation, self.logical, self.is_test, self.between),
            *(
                self.in_list,
                self.in_query,
                self.row_in_query,
                self.like,
                self.exists,
                self.scalar_query,
                self.cast,
                self.case,
            ),
            *(
                self.case,
                self.extract,
                self.call,
                self.array,
                self.subscript,
                self.at_time_zone,
                self.binary,
                self.call,
            ),
        ]
        return self.pick(makers)(depth - 1)

    def exprs(self, depth: int, least: int = 1) -> tuple[Any, ...]:
        return self.some(self.expr, depth, least=least, most=3)

    def leaf(self, depth: int = 0) -> Any:
        kind = self.random.randrange(10)
        if kind == 0:
            return ast.StringLiteral(self.pick(STRINGS))
        if kind == 9:
            return ast.BinaryLiteral(self.pick(["", "0AFF", "61"]))
        if kind == 1:
            return self.pick([ast.BooleanLiteral(True), ast.BooleanLiteral(False), ast.NullLiteral()])
        if kind == 2:
            return ast.TypedLiteral(self.pick(["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"]), self.pick(STRINGS))
        if kind == 3:
            return self.interval()
        if kind == 4:
            return ast.Parameter(self.pick(["p", "n_1", "select"]))
        return ast.NumberLiteral(self.pick(NUMBERS)) if kind < 7 else self.column()

    def interval(self) -> ast.IntervalLiteral:
        parts = [
            ast.IntervalPart(self.pick(["1", "-2", "1.5", "30"]), self.pick(ast.INTERVAL_UNITS))
            for _ in range(self.pick([1, 1, 2]))
        ]
        return ast.IntervalLiteral(tuple(parts))

    def column(self, depth: int = 0) -> ast.ColumnRef:
        qualifier = self.maybe(self.name)
        path = self.names()[:2] if qualifier is not None and self.chance(0.2) else ()
        return ast.ColumnRef(self.name(), qualifier, tuple(path))

    def unary(self, depth: int) -> Any:
        return ast.Unary(self.pick("+-"), self.expr(depth))

    def binary(self, depth: int) -> Any:
        return ast.Binary(self.pick(["+", "-", "*", "/", "%", "||", *COMPARISONS]), self.expr(depth), self.expr(depth))

    def negation(self, depth: int) -> Any:
        return ast.Not(self.expr(depth))

    def logical(self, depth: int) -> Any:
        op = self.pick(["AND", "OR"])
        operands: list[Any] = []
        for operand in self.some(self.expr, depth, least=2, most=3):  # never nested in itself
            operands.extend(operand.operands if isinstance(operand, ast.Logical) and operand.op == op else [operand])
        return ast.Logical(op, tuple(operands))

    def is_test(self, depth: int) -> Any:
        return ast.IsTest(self.expr(depth), self.pick(["NULL", "TRUE", "FALSE", "UNKNOWN"]), self.chance())

    def between(self, depth: int) -> Any:
        return ast.Between(self.expr(depth), self.expr(depth), self.expr(depth), self.chance())

    def in_list(self, depth: int) -> Any:
        items = self.exprs(depth)
        # a single sub-query in parentheses is an IN with a query
        if len(items) == 1 and isinstance(items[0], ast.ScalarQuery):
            return ast.InQuery(self.expr(depth), items[0].query, self.chance())
        return ast.InList(self.expr(depth), items, self.chance())

    def in_query(self, depth: int) -> Any:
        return ast.InQuery(self.expr(depth), self.query(depth), self.chance())

    def row_in_query(self, depth: int) -> Any:
        row = RowOfValues(tuple(self.some(self.expr, depth, least=2, most=3)), NOWHERE)
        return row_among_rows(row, self.query(depth), self.chance(), NOWHERE)

    def like(self, depth: int) -> Any:
        escape = self.maybe(self.expr, depth)
        return ast.Like(self.pick(["LIKE", "ILIKE"]), self.expr(depth), self.expr(depth), escape, self.chance())

    def exists(self, depth: int) -> Any:
        return ast.Exists(self.query(depth))

    def scalar_query(self, depth: int) -> Any:
        return ast.ScalarQuery(self.query(depth))

    def cast(self, depth: int) -> Any:
        return ast.Cast(self.expr(depth), self.type(), self.chance())

    def case(self, depth: int) -> Any:
        branches = self.some(lambda: ast.When(self.expr(depth), self.expr(depth)), most=2)
        return ast.Case(self.maybe(self.expr, depth), branches, self.maybe(self.expr, depth))

    def extract(self, depth: int) -> Any:
        return ast.Extract(self.pick(["DAY", "HOUR", "EPOCH", "SELECT", "A B"]), self.expr(depth))

    def array(self, depth: int) -> Any:
        return ast.ArrayLiteral(self.exprs(depth, least=0))

    def at_time_zone(self, depth: int) -> Any:
        return ast.AtTimeZone(self.expr(depth), self.pick([ast.StringLiteral("Europe/Berlin"), ast.Parameter("zone")]))

    def subscript(self, depth: int) -> Any:
        return ast.Subscript(self.expr(depth), self.expr(depth))

    def call(self, depth: int) -> Any:
        name = self.pick(FUNCTIONS)
        over = self.pick([None, None, "w", "Big W", self.window(depth)])
        filter = self.maybe(self.expr, depth)
        nulls = self.pick([None, None, "IGNORE", "RESPECT"])
        if self.chance(0.1):
            return ast.Call(name, star=True, filter=filter, nulls=nulls, over=over)
        args = tuple(self.argument(depth) for _ in range(self.random.randint(0, 3)))
        order_by = self.some(self.order_item, depth, most=2) if args and self.chance(0.2) else ()
        distinct = bool(args) and self.chance(0.2)
        within = self.some(self.order_item, depth, most=2) if self.chance(0.2) else ()
        return ast.Call(name, args, False, distinct, order_by, nulls, filter, over, within)

    def argument(self, depth: int) -> Any:
        value = self.expr(depth)
        return ast.NamedArgument(self.name(), value) if self.chance(0.2) else value

    def order_item(self, depth: int) -> Any:
        return ast.OrderItem(self.expr(depth), self.chance(), self.pick([None, None, True, False]))

    def window(self, depth: int) -> Any:
        partition = self.some(self.expr, depth, least=0, most=2)
        order = self.some(self.order_item, depth, least=0, most=2)
        return ast.WindowSpec(partition, order, self.maybe(self.frame, depth), self.maybe(self.name))

    def frame(self, depth: int) -> Any:
        unit = self.pick(["ROWS", "RANGE", "GROUPS"])
        exclude = self.pick([None, None, "CURRENT ROW", "GROUP", "TIES", "NO OTHERS"])
        return ast.Frame(unit, self.bound(depth), self.bound(depth), exclude)

    def bound(self, depth: int) -> Any:
        kind = self.pick(["UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"])
        return ast.FrameBound(kind, self.expr(depth) if kind in ("PRECEDING", "FOLLOWING") else None)

    def type(self) -> Any:
        simple = self.pick(
            ["BIGINT", "DOUBLE", "TIMESTAMP", "TIMESTAMP_LTZ", "INTERVAL", "DATE", "ARRAY", "A B", "ROW"]
        )
        if self.chance(0.2):
            return ast.ArrayType(self.type())
        if self.chance(0.1):
            return ast.RowType(tuple(ast.RowField(name, self.type()) for name in self.names(1)))
        params = () if simple == "INTERVAL" else self.pick([(), (3,), (12, 2)])
        return ast.SimpleType(simple, params)

    # ----------------------------------------------------------------------------------------------- relations

    def alias(self) -> dict[str, Any]:
        return {"alias": self.name(), "columns": self.names()} if self.chance(0.5) else {}

    def relation(self, depth: int) -> Any:
        kind = self.random.randrange(6) if depth > 0 else 0
        if kind == 0:
            return ast.TableRef(self.pick(TABLES), as_of=self.maybe(self.expr, min(depth, 1)), **self.alias())
        if kind == 1:
            return ast.DerivedTable(self.query(depth - 1), lateral=self.chance(), **self.alias())
        if kind == 2:
            return self.window_function(depth - 1)
        if kind == 3:
            args = tuple(self.table_argument(depth - 1) for _ in range(self.random.randint(0, 2)))
            return ast.TableFunction(self.pick(["f", "gen", "Odd F"]), args, lateral=self.chance(), **self.alias())
        if kind == 4:
            arrays = self.exprs(depth - 1)
            return ast.Unnest(arrays, self.chance(), lateral=self.chance(), **self.alias())
        return self.join(depth - 1)

    def window_function(self, depth: int) -> Any:
        table = self.pick([self.pick(TABLES), self.query(depth)])
        first = ast.TableArgument(table, self.some(self.expr, min(depth, 1), least=0, most=2))
        if self.chance():
            args: tuple[Any, ...] = (first, self.row_count(), ast.RowCount(ast.NumberLiteral("10")))
        elif self.chance():
            size = ast.NamedArgument("size", self.interval())
            args = (ast.NamedArgument("data", first), ast.NamedArgument("timecol", ast.Descriptor(("ts",))), size)
        else:
            args = (first, ast.Descriptor(("ts",)), self.interval())
        return ast.TableFunction(self.pick(["tumble", "hop", "cumulate", "session"]), args, **self.alias())

    def table_argument(self, depth: int) -> Any:
        value = self.pick(
            [
                self.expr(depth),
                ast.TableArgument(self.pick(TABLES), self.some(self.expr, 0, least=0, most=2)),
                ast.Descriptor(self.names(1)),
                self.row_count(),
            ]
        )
        return ast.NamedArgument(self.name(), value) if self.chance(0.2) else value

    def row_count(self) -> Any:
        return ast.RowCount(self.pick([ast.NumberLiteral("100"), ast.Parameter("n")]))

    def join(self, depth: int) -> Any:
        left, right = self.relation(depth), self.relation(depth)
        kind = self.pick(["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "ASOF"])
        if kind == "CROSS":
            return ast.Join(kind, left, right)
        condition = {"on": self.expr(depth)} if self.chance(0.6) else {"using": self.names(1)}
        if kind != "ASOF":
            return ast.Join(kind, left, right, **condition)
        match = self.maybe(self.expr, depth, probability=0.6)
        if match is not None and self.chance():
            condition = {}
        return ast.Join(self.pick(["INNER", "LEFT"]), left, right, asof=True, match=match, **condition)

    # ------------------------------------------------------------------------------------------------- queries

    def query(self, depth: int) -> Any:
        ctes = tuple(
            ast.Cte(self.pick(TABLES), self.query(depth - 1), self.names())
            for _ in range(self.random.randint(0, 2) if depth > 0 and self.chance(0.2) else 0)
        )
        order_by = self.some(self.order_item, min(depth, 1), most=2) if self.chance(0.2) else ()
        limit = self.maybe(self.expr, 0, probability=0.2)
        offset = self.maybe(self.expr, min(depth, 1), probability=0.1)
        emit = self.maybe(self.emit, probability=0.2)
        body = self.body(depth)
        starred = not isinstance(body, ast.Select) or any(isinstance(i, ast.Star) for i in body.items)
        if starred and self.chance(0.1):
            order_by = (ast.OrderItem(ast.EveryColumn(), self.chance(), self.pick([None, True, False])),)
        if isinstance(body, ast.Query) and not (ctes or order_by or limit or offset or emit):
            return body  # parentheses alone do not make a separate query
        return ast.Query(body, ctes, order_by, limit, offset, emit)

    def emit(self) -> Any:
        mode = self.pick(["FINAL", "CHANGES", "EVERY"])
        return ast.Emit(mode, self.interval() if mode == "EVERY" else None)

    def body(self, depth: int) -> Any:
        kind = self.random.randrange(6) if depth > 0 else 5
        if kind == 0:
            operation = self.pick(["UNION", "INTERSECT", "EXCEPT"])
            return ast.SetOperation(operation, self.chance(0.5), self.body(depth - 1), self.body(depth - 1))
        if kind == 1:
            return ast.Values(self.some(lambda: ast.ValuesRow(self.some(self.given, 0, most=3)), most=2))
        if kind == 2:
            inner = self.query(depth - 1)
            return inner if inner != ast.Query(inner.body) else inner.body
        return self.select(depth)

    def select(self, depth: int) -> Any:
        depth = max(0, depth - 1)
        relations = self.some(self.relation, depth, most=2) if self.chance(0.8) else ()
        keys = self.exprs(depth) if self.chance(0.1) else ()
        groups = self.some(self.group_item, depth)
        return ast.Select(
            self.some(self.item, depth),
            relations,
            self.maybe(self.expr, depth),
            groups if self.chance() else (),
            self.maybe(self.expr, depth, probability=0.1),
            self.some(lambda: ast.NamedWindow(self.name(), self.window(depth)), most=2) if self.chance(0.1) else (),
            self.maybe(self.expr, depth, probability=0.1),
            bool(keys) or self.chance(0.1),
            keys,
        )

    def group_item(self, depth: int) -> Any:
        if depth < 1 or self.chance(0.8):
            return self.expr(depth)
        kind = self.pick(["GROUPING SETS", "ROLLUP", "CUBE"])
        items = self.some(self.group_item if kind == "GROUPING SETS" else self.expr, depth - 1)
        together = ast.GroupKeys((self.expr(0), self.expr(0)) if self.chance() else ())
        return ast.GroupingSets(kind, (*items, together) if self.chance() else items)

    def item(self, depth: int) -> Any:
        if self.chance(0.15):
            without = tuple(map(ast.ColumnRef, self.names(1))) if self.chance(0.2) else ()
            others = self.some(lambda: ast.SelectItem(self.expr(depth), self.name()), most=2)
            return ast.Star(self.maybe(self.name), without, others if self.chance(0.2) else ())
        return ast.SelectItem(self.expr(depth), self.maybe(self.name))

    # ---------------------------------------------------------------------------------------------- statements

    def statement(self, depth: int) -> Any:
        makers = [self.query, self.insert, self.create_relation, self.create_sink, self.create_view]
        return self.pick([*makers, self.create_trigger, self.set_option, self.explain])(depth)

    def script(self, depth: int) -> ast.Script:
        return ast.Script(self.some(self.statement, depth, most=4))

    def create_relation(self, depth: int) -> Any:
        kind = self.pick(["STREAM", "TABLE", "SOURCE"])
        return ast.CreateRelation(kind, self.pick(TABLES), self.elements(), self.options(), self.chance())

    def create_sink(self, depth: int) -> Any:
        return ast.CreateSink(self.pick(TABLES), self.elements(), self.options(), self.chance())

    def create_view(self, depth: int) -> Any:
        return ast.CreateView(self.pick(TABLES), self.query(depth), self.names(), self.chance())

    def elements(self) -> tuple[Any, ...]:
        return self.some(self.element, least=0, most=4)

    def element(self) -> Any:
        kind = self.random.randrange(6)
        if kind == 0:
            return ast.Watermark(self.name(), self.maybe(self.expr, 1), self.maybe(self.interval))
        if kind == 1:
            return ast.PrimaryKey(self.names(1))
        if kind == 2:
            return self.check(1)
        if kind == 3:
            return ast.ColumnDef(self.name(), self.maybe(self.type), self.expr(1))
        checks = self.some(self.check, 1, least=0, most=2)
        default = self.maybe(self.expr, 1)
        return ast.ColumnDef(self.name(), self.type(), None, self.chance(), self.chance(), default, checks)

    def check(self, depth: int) -> Any:
        return ast.Check(self.expr(depth), self.maybe(self.name))

    def options(self) -> tuple[Any, ...]:
        return self.some(self.option, least=0, most=3)

    def option(self) -> Any:
        return ast.Option(self.pick(["path", "a.b", "Odd Key", "table", "window"]), self.option_value())

    def option_value(self) -> Any:
        return self.pick(
            [
                ast.StringLiteral(self.pick(STRINGS)),
                ast.NumberLiteral("5"),
                ast.Unary("-", ast.NumberLiteral("5")),
                ast.BooleanLiteral(True),
                ast.Parameter("p"),
                self.interval(),
                ast.Call("secret", (ast.StringLiteral("token"),)),
            ]
        )

    def set_option(self, depth: int) -> Any:
        return ast.SetOption(self.pick(["parallelism", "a.b", "Odd Key"]), self.option_value())

    def explain(self, depth: int) -> Any:
        stage = self.pick([None, "LOGICAL", "STAGES", "PLACEMENT", "CODE", "CHANGELOG"])
        return ast.Explain(self.pick([self.query, self.insert])(depth), stage)

    def insert(self, depth: int) -> Any:
        return ast.Insert(
            self.pick(TABLES), self.query(depth), self.names(), self.maybe(self.conflict, probability=0.1)
        )

    def conflict(self) -> Any:
        assignments = self.some(self.assignment, 1, least=0, most=2)
        return ast.OnConflict(self.names(), assignments, self.maybe(self.expr, 1) if assignments else None)

    def assignment(self, depth: int) -> Any:
        return ast.Assignment(self.name(), self.given(depth))

    def given(self, depth: int) -> Any:
        return ast.DefaultValue() if self.chance(0.1) else self.expr(depth)

    def create_trigger(self, depth: int) -> Any:
        row, when = self.maybe(self.name), self.maybe(self.expr, 2)
        return ast.CreateTrigger(self.name(), self.pick(TABLES), self.trigger_body(depth), row, when, self.chance())

    def trigger_body(self, depth: int) -> tuple[Any, ...]:
        return self.some(self.trigger_statement, depth, most=3)

    def trigger_statement(self, depth: int) -> Any:
        kind = self.random.randrange(6 if depth > 0 else 5)
        if kind == 0:
            assignments = self.some(self.assignment, depth, most=2)
            relations = self.some(self.relation, depth, least=0, most=2)
            return ast.Update(
                self.pick(TABLES), assignments, relations, self.maybe(self.expr, depth), self.maybe(self.name)
            )
        if kind == 1:
            relations = self.some(self.relation, depth, least=0, most=2)
            return ast.Delete(self.pick(TABLES), relations, self.maybe(self.expr, depth), self.maybe(self.name))
        if kind == 2:
            return ast.Signal("45000", self.maybe(self.expr, depth))
        if kind == 3:
            return self.insert(depth)
        if kind == 4:
            return self.query(depth)
        branches = self.some(lambda: ast.IfBranch(self.expr(1), self.trigger_body(depth - 1)), most=2)
        return ast.If(branches, self.trigger_body(depth - 1) if self.chance() else ())
