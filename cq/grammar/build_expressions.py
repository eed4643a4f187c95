"""Productions of expressions and types to nodes. A method is named after its production in cq.lark and is called with
the place of the production and its values: tokens, nodes, tuples, or None for what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast, comparing
from cq.grammar.intervals import read_amount, read_fields, read_summands, read_unit
from cq.grammar.lexer import NILADIC, Lexed, Token
from cq.records import replace

OF_BITS = {"&": "bitand", "|": "bitor", "<<": "shiftleft", ">>": "shiftright"}
LIKE_SIGNS: dict[str, ast.Fits] = {"~": "RLIKE", "~~": "LIKE", "~~*": "ILIKE"}


class ExpressionBuilder:
    """Builds the nodes of one statement."""

    def __init__(self, lexed: Lexed) -> None:
        self._tokens = lexed.tokens
        self._places = lexed.places
        # `a IN b` without parentheses is valid only inside POSITION(…): those not yet found there, by identity
        self._bare_in: dict[int, ast.InList] = {}
        # ORDER BY ALL that may not belong to a query
        self._by_all: dict[int, ast.OrderItem] = {}
        # rows of values that are not yet compared with anything, by identity
        self._rows: dict[int, comparing.RowOfValues] = {}
        # bit operators outside parentheses, by the identity of their results
        self._bits: dict[int, Token] = {}

    def _span(self, token: Token) -> Span:
        return self._places.span(token.start, token.end)

    def finish(self) -> None:
        """Refuse what was parsed but turned out to have no meaning."""
        for item in self._by_all.values():
            way = "name the columns: ORDER BY a, b"
            raise compile_error("CQ0100", "ORDER BY ALL belongs at the end of a query", item.span, help=way)
        for row in self._rows.values():
            raise comparing.misplaced_row(row.span)
        for node in self._bare_in.values():
            help = ("write IN (…)", "for an array write ARRAY_CONTAINS(items, x)")
            raise compile_error("CQ0100", "IN needs a list or a query in parentheses", node.items[0].span, help=help)

    # ------------------------------------------------------------------------------------------------- literals

    def number(self, at: Span, token: Token) -> ast.NumberLiteral:
        return ast.NumberLiteral(token.text, span=at)

    def string(self, at: Span, token: Token) -> ast.StringLiteral:
        return ast.StringLiteral(token.value, span=at)

    def binary_literal(self, at: Span, token: Token) -> ast.BinaryLiteral:
        return ast.BinaryLiteral(token.value, span=at)

    def true(self, at: Span) -> ast.BooleanLiteral:
        return ast.BooleanLiteral(True, span=at)

    def false(self, at: Span) -> ast.BooleanLiteral:
        return ast.BooleanLiteral(False, span=at)

    def null(self, at: Span) -> ast.NullLiteral:
        return ast.NullLiteral(span=at)

    def typed_literal(self, at: Span, kind: Any, token: Token) -> ast.TypedLiteral:
        return ast.TypedLiteral("TIMESTAMP" if kind == "DATETIME" else kind, token.value, span=at)

    def interval_string(
        self, at: Span, text: Token, unit: Token | None = None, last: Token | None = None
    ) -> ast.IntervalLiteral:
        place = self._span(text)
        if unit is None:
            return ast.IntervalLiteral(read_summands(text.value, place), span=at)
        name = read_unit(unit.text, self._span(unit))
        if last is None:
            return ast.IntervalLiteral(read_amount(text.value, name, place), span=at)
        return ast.IntervalLiteral(
            read_fields(text.value, name, read_unit(last.text, self._span(last)), place), span=at
        )

    def interval_number(self, at: Span, minus: Token | None, number: Token, unit: Token) -> ast.IntervalLiteral:
        name = read_unit(unit.text, self._span(unit))
        text = ("-" if minus else "") + number.text
        return ast.IntervalLiteral(read_amount(text, name, self._span(number)), span=at)

    def parameter(self, at: Span, token: Token) -> ast.Parameter:
        return ast.Parameter(token.value, span=at)

    def array(self, at: Span, _: Token, *items: Any) -> ast.ArrayLiteral:
        return ast.ArrayLiteral(tuple(i for i in items if i is not None), span=at)

    def bare_array(self, at: Span, *items: Any) -> ast.ArrayLiteral:
        return ast.ArrayLiteral(items, span=at)

    def empty_array(self, at: Span, *_: Token) -> ast.ArrayLiteral:
        return ast.ArrayLiteral((), span=at)

    # ------------------------------------------------------------------------------------------------ operators

    def column(self, at: Span, *names: Token) -> ast.Expr:
        if len(names) == 1 and names[0].text.upper() in NILADIC:
            return ast.Call(names[0].value, span=at, name_span=at)
        return self._column(at, tuple(n.value for n in names), names[-1])

    def _column(self, at: Span, path: tuple[str, ...], last: Token) -> ast.ColumnRef:
        qualifier, inside = (path[0], path[1:-1]) if len(path) > 1 else (None, ())
        quoted = last.text[0] in '"`'
        return ast.ColumnRef(path[-1], qualifier, inside, quoted=quoted, span=at, name_span=self._span(last))

    def parenthesised(self, at: Span, inner: Any) -> Any:
        self._bits.pop(id(inner), None)
        return inner

    def or_(self, at: Span, *operands: Any) -> ast.Logical:
        return self._logical("OR", operands, at)

    def and_(self, at: Span, *operands: Any) -> ast.Logical:
        return self._logical("AND", operands, at)

    def _logical(self, op: Any, operands: tuple[ast.Expr, ...], at: Span) -> ast.Logical:
        flat: list[ast.Expr] = []
        for operand in operands:
            flat.extend(operand.operands if isinstance(operand, ast.Logical) and operand.op == op else (operand,))
        return ast.Logical(op, tuple(flat), span=at)

    def not_(self, at: Span, operand: Any) -> ast.Not:
        return ast.Not(operand, span=at)

    def is_(self, at: Span, operand: Any, negated: Token | None, what: Any) -> ast.IsTest:
        return ast.IsTest(operand, what, negated is not None, span=at)

    def is_distinct(self, at: Span, left: Any, negated: Token | None, right: Any) -> ast.Binary:
        return ast.Binary("IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM", left, right, span=at, op_span=at)

    def binary(self, at: Span, left: Any, op: Token, right: Any) -> ast.Expr:
        sign = self._sign(op)
        if isinstance(left, comparing.RowOfValues) and sign in comparing.OF_ROWS:
            return comparing.rows_compared(sign, self._taken(left), self._taken(right), at)
        return ast.Binary(sign, left, right, span=at, op_span=self._span(op))

    def bits_of(self, at: Span, left: Any, op: Token, right: Any) -> ast.Call:
        """`a & b`, a call. CQ0502 for two bit operators next to each other: `1 | 2 & 4` is 1 in one system and 0 in
        another."""
        other = self._bits.pop(id(left), op)
        if other.text != op.text:
            help = f"say which is first: (a {other.text} b) {op.text} c, or a {other.text} (b {op.text} c)"
            raise compile_error("CQ0502", f"{other.text} and {op.text} need parentheses", self._span(op), help=help)
        made = ast.Call(OF_BITS[op.text], (left, right), span=at, name_span=self._span(op))
        self._bits[id(made)] = op
        return made

    def bits_turned(self, at: Span, sign: Token, operand: Any) -> ast.Call:
        return ast.Call("bitnot", (operand,), span=at, name_span=self._span(sign))

    def is_null(self, at: Span, operand: Any) -> ast.IsTest:
        return ast.IsTest(operand, "NULL", span=at)

    def is_not_null(self, at: Span, operand: Any) -> ast.IsTest:
        return ast.IsTest(operand, "NULL", True, span=at)

    def _sign(self, op: Token) -> Any:
        return {"!=": "<>", "==": "=", "<=>": "IS NOT DISTINCT FROM"}.get(op.text, op.text)

    def compared_to_query(self, at: Span, operand: Any, op: Token, which: str, query: Any) -> ast.Expr:
        return comparing.compared_to_query(operand, self._sign(op), which, query, at)

    def compared_to_array(self, at: Span, operand: Any, op: Token, which: str, array: Any) -> ast.Expr:
        return comparing.compared_to_array(operand, self._sign(op), which, array, at)

    def row_of_values(self, at: Span, *items: Any) -> comparing.RowOfValues:
        row = comparing.RowOfValues(items, at)
        self._rows[id(row)] = row
        return row

    def _taken(self, row: Any) -> Any:
        """A possible row of values whose place is known now."""
        self._rows.pop(id(row), None)
        return row

    def _keys_in(self, items: Sequence[Any]) -> tuple[Any, ...]:
        """Keys, some of which may be in parentheses."""
        return tuple(k for i in items for k in (self._taken(i).items if isinstance(i, comparing.RowOfValues) else (i,)))

    def between(self, at: Span, operand: Any, negated: Token | None, low: Any, high: Any) -> ast.Between:
        return ast.Between(operand, low, high, negated is not None, span=at)

    def between_symmetric(self, at: Span, operand: Any, negated: Token | None, low: Any, high: Any) -> ast.Expr:
        return comparing.between_symmetric(operand, low, high, negated is not None, at)

    def in_query(self, at: Span, operand: Any, negated: Token | None, query: Any) -> ast.Expr:
        if isinstance(operand, comparing.RowOfValues):
            return comparing.row_among_rows(self._taken(operand), query, negated is not None, at)
        return ast.InQuery(operand, query, negated is not None, span=at)

    def in_list(self, at: Span, operand: Any, negated: Token | None, *items: Any) -> ast.Expr:
        if isinstance(operand, comparing.RowOfValues):
            return comparing.row_among(self._taken(operand), [self._taken(i) for i in items], negated is not None, at)
        return ast.InList(operand, items, negated is not None, span=at)

    def in_bare(self, at: Span, operand: Any, negated: Token | None, item: Any) -> ast.InList:
        node = ast.InList(operand, (item,), negated is not None, span=at)
        self._bare_in[id(node)] = node
        return node

    def like_op(self, at: Span, word: Token, _: Token | None = None) -> str:
        return "SIMILAR TO" if word.text.upper() == "SIMILAR" else word.text.upper()

    def like(self, at: Span, operand: Any, negated: Token | None, op: Any, pattern: Any, escape: Any) -> ast.Like:
        return ast.Like(op, operand, pattern, escape, negated is not None, span=at)

    def like_by_sign(self, at: Span, operand: Any, sign: str, pattern: Any) -> ast.Expr:
        """PostgreSQL's `x ~ p`, `x ~* p` for letters in any case, `x ~~ p` for LIKE; negated with `!` before them."""
        negated, kind = sign.startswith("!"), sign.lstrip("!")
        if kind == "~*":
            flags = ast.StringLiteral("i", span=at)
            found = ast.Call("regexp_like", (operand, pattern, flags), span=at, name_span=at)
            return ast.Not(found, span=at) if negated else found
        return ast.Like(LIKE_SIGNS[kind], operand, pattern, None, negated, span=at)

    def like_some(
        self, at: Span, operand: Any, negated: Token | None, op: Any, which: str, *patterns: Any
    ) -> ast.Expr:  # fmt: skip
        """`x LIKE ANY ('a%', 'b%')`: one of them matches; with ALL, all of them."""
        tests = tuple(ast.Like(op, operand, p, None, span=at) for p in patterns)
        found = tests[0] if len(tests) == 1 else ast.Logical("AND" if which == "ALL" else "OR", tests, span=at)
        return ast.Not(found, span=at) if negated is not None else found

    def rlike(self, at: Span, operand: Any, negated: Token | None, op: Any, pattern: Any) -> ast.Like:
        return ast.Like("RLIKE", operand, pattern, None, negated is not None, span=at)

    def minus(self, at: Span, operand: Any) -> ast.Unary:
        return ast.Unary("-", operand, span=at)

    def plus(self, at: Span, operand: Any) -> ast.Unary:
        return ast.Unary("+", operand, span=at)

    def double_colon_cast(self, at: Span, operand: Any, _: Token, type: Any) -> ast.Cast:
        return ast.Cast(operand, type, span=at)

    def cast(self, at: Span, operand: Any, type: Any) -> ast.Cast:
        return ast.Cast(operand, type, span=at)

    def try_cast(self, at: Span, operand: Any, type: Any) -> ast.Cast:
        return ast.Cast(operand, type, True, span=at)

    def at_time_zone(self, at: Span, operand: Any, zone: Any) -> ast.AtTimeZone:
        return ast.AtTimeZone(operand, zone, span=at)

    def subscript(self, at: Span, operand: Any, index: Any) -> ast.Subscript:
        return ast.Subscript(operand, index, span=at)

    def slice(self, at: Span, operand: Any, first: Any, colon: Token, last: Any) -> ast.Call:
        """`xs[2:3]`; `xs[2:]` goes on to the last element."""
        end = last if last is not None else ast.Unary("-", ast.NumberLiteral("1", span=at), span=at)
        return ast.Call("array_slice", (operand, first, end), span=at, name_span=self._span(colon))

    def slice_to(self, at: Span, operand: Any, colon: Token, last: Any) -> ast.Call:
        return self.slice(at, operand, ast.NumberLiteral("1", span=at), colon, last)

    def slice_to_name(self, at: Span, operand: Any, first: Any, last: Token) -> ast.Call:
        """`xs[a:b]`, where `:b` is not a parameter."""
        place = self._span(last)
        return self.slice(at, operand, first, last, ast.ColumnRef(last.value, span=place, name_span=place))

    def field(self, at: Span, operand: Any, *names: Token) -> ast.ColumnRef:
        if not isinstance(operand, ast.ColumnRef):
            help = "only columns have fields, by their names: s.a.b"
            raise compile_error("CQ0501", "a field of a computed value is not supported", at, help=help)
        before = () if operand.qualifier is None else (operand.qualifier, *operand.path)
        return self._column(at, (*before, operand.name, *(n.value for n in names)), names[-1])

    def scalar_query(self, at: Span, query: Any) -> ast.ScalarQuery:
        return ast.ScalarQuery(query, span=at)

    def exists(self, at: Span, query: Any) -> ast.Exists:
        return ast.Exists(query, span=at)

    def case(self, at: Span, operand: Any, *rest: Any) -> ast.Case:
        return ast.Case(operand, rest[:-1], rest[-1], span=at)

    def when(self, at: Span, condition: Any, result: Any) -> ast.When:
        return ast.When(condition, result, span=at)

    # ---------------------------------------------------------------------------------------------------- calls

    def extract(self, at: Span, part: Token, operand: Any) -> ast.Extract:
        return ast.Extract(part.value.upper(), operand, span=at, part_span=self._span(part))

    def _call(self, at: Span, name: str, *args: ast.Expr) -> ast.Call:
        place = Span(at.line, at.column, at.line, at.column + len(name))
        return ast.Call(name, args, span=at, name_span=place)

    def substring(self, at: Span, *args: Any) -> ast.Call:
        return self._call(at, "substring", *args)

    def substring_from(self, at: Span, operand: Any, start: Any, length: Any) -> ast.Call:
        return self._call(at, "substring", *(a for a in (operand, start, length) if a is not None))

    def substring_for(self, at: Span, operand: Any, length: Any) -> ast.Call:
        return self._call(at, "substring", operand, ast.NumberLiteral("1", span=at), length)

    def overlay(self, at: Span, *args: Any) -> ast.Call:
        return self._call(at, "overlay", *(a for a in args if a is not None))

    def trim(self, at: Span, *args: Any) -> ast.Call:
        return self._call(at, "trim", *args)

    def trim_from(self, at: Span, side: str | None, characters: Any, operand: Any) -> ast.Call:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side or "", "trim")
        node = self._call(at, name, *(a for a in (operand, characters) if a is not None))
        return replace(node, name_span=Span(at.line, at.column, at.line, at.column + len("trim")))

    def _head(self, at: Span, name: Token, quantifier: Any, args: Any, order_by: Any, nulls: Any) -> ast.Call:
        args = args or ()
        if name.value == "position" and len(args) == 1 and isinstance(args[0], ast.InList):
            inside = args[0]
            if len(inside.items) == 1 and not inside.negated:
                self._bare_in.pop(id(inside), None)
                args = (inside.operand, inside.items[0])
        distinct = quantifier is not None and quantifier[0] == "DISTINCT"
        place = self._span(name)
        return ast.Call(
            name.value, args, distinct=distinct, order_by=order_by or (), nulls=nulls, span=at, name_span=place
        )

    def count_star(self, at: Span, name: Token) -> ast.Call:
        return ast.Call(name.value, star=True, span=at, name_span=self._span(name))

    def call(self, at: Span, head: ast.Call, within: Any, filter: Any, nulls: Any, over: Any) -> ast.Call:
        if within is None and filter is None and nulls is None and over is None:
            return head
        if nulls is not None and head.nulls is not None:
            raise compile_error("CQ0100", "the treatment of NULLs is given twice", at)
        window, place = over if over is not None else (None, head.over_span)
        return replace(
            head, within=within or (), filter=filter, nulls=nulls or head.nulls, over=window, span=at, over_span=place
        )

    def call_nulls_first(self, at: Span, head: ast.Call, nulls: Any, filter: Any, over: Any) -> ast.Call:
        return self.call(at, head, None, filter, nulls, over)

    def call_args(self, at: Span, *args: Any) -> tuple[Any, ...]:
        return args

    def named_argument(self, at: Span, name: Token, value: Any) -> ast.NamedArgument:
        return ast.NamedArgument(name.value, value, span=at, name_span=self._span(name))

    def distinct(self, at: Span) -> tuple[str, tuple[ast.Expr, ...]]:
        return "DISTINCT", ()

    def distinct_on(self, at: Span, *keys: Any) -> tuple[str, tuple[ast.Expr, ...]]:
        return "DISTINCT", keys

    def select_all(self, at: Span) -> tuple[str, tuple[ast.Expr, ...]]:
        return "ALL", ()

    def within_group(self, at: Span, items: Any) -> Any:
        return items

    def filter(self, at: Span, condition: Any) -> Any:
        return condition

    def nulls(self, at: Span, rule: str) -> str:
        return rule

    # -------------------------------------------------------------------------------------------------- windows

    def over_name(self, at: Span, name: Token) -> tuple[str, Span]:
        return name.value, self._span(name)

    def over_spec(self, at: Span, spec: ast.WindowSpec) -> tuple[ast.WindowSpec, Span]:
        return replace(spec, span=at), at

    def window_spec(self, at: Span, base: Any, partition: Any, order_by: Any, frame: Any) -> ast.WindowSpec:
        return ast.WindowSpec(partition or (), order_by or (), frame, base, span=at)

    def window_base(self, at: Span, name: Token) -> str:
        return name.value

    def window_partition(self, at: Span, *keys: Any) -> tuple[Any, ...]:
        return self._keys_in(keys)

    def order_by(self, at: Span, *items: Any) -> tuple[Any, ...]:
        return items

    def order_by_all(self, at: Span, direction: str | None, nulls: str | None) -> tuple[Any, ...]:
        item = self.order_item(at, ast.EveryColumn(span=at), direction, nulls)
        self._by_all[id(item)] = item
        return (item,)

    def order_item(self, at: Span, expr: Any, direction: str | None, nulls: str | None) -> ast.OrderItem:
        return ast.OrderItem(expr, direction == "DESC", None if nulls is None else nulls == "FIRST", span=at)

    def frame_from(self, at: Span, unit: Any, start: ast.FrameBound, exclude: Any) -> ast.Frame:
        return ast.Frame(unit, start, ast.FrameBound("CURRENT ROW", span=at), exclude, span=at)

    def frame_between(self, at: Span, unit: Any, start: Any, end: Any, exclude: Any) -> ast.Frame:
        return ast.Frame(unit, start, end, exclude, span=at)

    def exclude_row(self, at: Span) -> str:
        return "CURRENT ROW"

    def exclude_group(self, at: Span) -> str:
        return "GROUP"

    def exclude_ties(self, at: Span) -> str:
        return "TIES"

    def exclude_nothing(self, at: Span) -> str:
        return "NO OTHERS"

    def unbounded_preceding(self, at: Span) -> ast.FrameBound:
        return ast.FrameBound("UNBOUNDED PRECEDING", span=at)

    def unbounded_following(self, at: Span) -> ast.FrameBound:
        return ast.FrameBound("UNBOUNDED FOLLOWING", span=at)

    def current_row(self, at: Span) -> ast.FrameBound:
        return ast.FrameBound("CURRENT ROW", span=at)

    def preceding(self, at: Span, offset: Any) -> ast.FrameBound:
        return ast.FrameBound("PRECEDING", offset, span=at)

    def following(self, at: Span, offset: Any) -> ast.FrameBound:
        return ast.FrameBound("FOLLOWING", offset, span=at)

    # ---------------------------------------------------------------------------------------------------- types

    def simple_type(self, at: Span, name: Token, params: Any, zone: str | None) -> ast.SimpleType:
        type_name = name.value.upper()
        if zone is not None and type_name != "TIMESTAMP":
            help = "write TIMESTAMP_LTZ, or TIME without a zone"
            raise compile_error("CQ0501", f"{type_name} with a time zone is not supported", at, help=help)
        return ast.SimpleType("TIMESTAMP_LTZ" if zone is not None else type_name, params or (), span=at)

    def long_type(self, at: Span, name: Token, params: Any) -> ast.SimpleType:
        return ast.SimpleType("DOUBLE" if name.value == "double" else "VARCHAR", params or (), span=at)

    def interval_type(self, at: Span) -> ast.SimpleType:
        return ast.SimpleType("INTERVAL", span=at)

    def type_params(self, at: Span, *numbers: Token) -> tuple[int, ...]:
        for number in numbers:
            if not number.text.isdigit() or len(number.text) > 9:
                raise self._bad_type_parameter(number)
        return tuple(int(n.text) for n in numbers)

    def _bad_type_parameter(self, number: Token) -> CompileError:
        message = f"`{number.text[:40]}` cannot be a length, precision or scale"
        return compile_error("CQ0104", message, self._span(number), help="write a whole number, as in DECIMAL(12, 2)")

    def with_local_zone(self, at: Span) -> str:
        return "WITH"

    def with_zone(self, at: Span) -> str:
        return "WITH"

    def without_zone(self, at: Span) -> None:
        return None

    def array_type(self, at: Span, element: Any, *_: Token) -> ast.ArrayType:
        return ast.ArrayType(element, span=at)

    def row_field(self, at: Span, name: Token, type_: Any) -> ast.RowField:
        return ast.RowField(name.value, type_, span=at)

    def row_type(self, at: Span, word: Token, *fields: Any) -> ast.RowType:
        if word.value.upper() not in ("ROW", "STRUCT"):
            help = "write fields as ROW(name TYPE, …) or STRUCT<name TYPE, …>"
            raise compile_error("CQ0501", f"{word.value.upper()} is not a type with fields", at, help=help)
        return ast.RowType(fields, span=at)

    def array_of(self, at: Span, _: Token, element: Any) -> ast.ArrayType:
        return ast.ArrayType(element, span=at)
