"""Scalar expressions: syntax trees in, typed trees over column positions out.

Implicit conversions become explicit casts here, and the shorthands of SQL (BETWEEN, IN, simple CASE, NULLIF, IS TRUE,
…) become the few kinds of node in `cq.lang.expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from cq.errors import CompileError, Span, compile_error, did_you_mean, each
from cq.grammar import ast
from cq.grammar.intervals import read_summands
from cq.hints import face
from cq.lang.casts import castable
from cq.lang.expressions import And, Case, Coalesce, Expr, IsNull, Literal, Or
from cq.lang.expressions import Cast as BoundCast
from cq.lang.functions import Refusal, extract_parts, lookup, trunc_units
from cq.lang.types import BIGINT, BINARY, BOOLEAN, INTERVAL, NULL, VARCHAR, DataType, Kind, Physical
from cq.planner.binding.aliases import Aliases, ambiguous
from cq.planner.binding.conversion import common, convert, not_taken, settled, time_text
from cq.planner.binding.functions.applying import apply, resolve_function
from cq.planner.binding.functions.foreign import part_of_length
from cq.planner.binding.functions.instants import applied, bind_at_time_zone
from cq.planner.binding.functions.json_paths import ARROWS, bind_steps
from cq.planner.binding.functions.names import COALESCE_NAMES, TRUNC_NAMES, unknown_function, unnamed
from cq.planner.binding.functions.patterns import whole_regex
from cq.planner.binding.functions.shorthands import short_form
from cq.planner.binding.in_lists import gathered
from cq.planner.binding.literals import (
    bind_interval,
    bind_number,
    bind_type,
    bind_typed,
)
from cq.planner.binding.parameters import ParameterValue, Untyped, bind_beside, bind_parameter, demand_equal
from cq.planner.binding.scope import Relation, finds, misplaced_default
from cq.planner.binding.scope import resolve as resolve_column
from cq.planner.binding.traits import check_size
from cq.planner.binding.type_errors import (
    alike_help,
    apart,
    cannot_combine,
    cannot_compare,
    cast_help,
    condition_help,
    meeting_help,
    refused,
    too_wide,
)
from cq.planner.plan.fold import folded
from cq.records import dataclass, field, replace

TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}  # with the sides swapped


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause of an expression, and what is allowed in it. advice, instead: what to write where an aggregate, or a
    sub-query, is not allowed.  over: likewise for a call with OVER."""

    name: str
    aggregates: bool = False
    windows: bool = False
    over: str = "compute it in a derived table, and use its column outside"
    advice: str = ""
    queries: bool = False
    instead: str = "make it a column of a derived table: FROM (SELECT …, (SELECT …) AS m FROM s)"


@dataclass(slots=True)
class Meant:
    """What each clause knows about a select list: what its items stand for, or the error; and how many of the first
    items with a name have one value."""

    values: dict[tuple[Clause, int], Expr | CompileError] = field(default_factory=dict)
    alike: dict[tuple[Clause, str], int] = field(default_factory=dict)


class Calls(Protocol):
    """Binds the calls that are not scalar functions: aggregates, window functions and parts of windows."""

    def bind_call(self, node: ast.Call, binder: ExprBinder) -> Expr | None:
        """The value of the call, usually a hole; None when it is a plain scalar function."""
        ...

    def bind_query(self, node: ast.ScalarQuery | ast.InQuery | ast.Exists, binder: ExprBinder) -> Expr:
        """The value of a sub-query, a hole."""
        ...

    def bind_window_field(self, node: ast.ColumnRef) -> Expr | None:
        """The value of `window.start` and its like if GROUP BY made a window; None when it is a plain column."""
        ...


@dataclass(frozen=True, slots=True)
class ExprBinder:
    """Binds expressions over one relation. aliases: names of the select list, used where no column has the name."""

    relation: Relation
    parameters: Mapping[str, ParameterValue]
    clause: Clause
    calls: Calls
    aliases: Aliases = Aliases()
    meant: Meant = field(default_factory=Meant)

    def bind(self, node: ast.Expr) -> Expr:
        """The typed value of `node`."""
        match node:
            case ast.ColumnRef():
                return self.column(node)
            case ast.Call():
                return self.function(node)
            case ast.Binary():
                return self.binary(node)
            case ast.Logical():
                return self.logical(node)
            case ast.Not():
                return self.not_(node)
            case ast.Unary():
                return self.unary(node)
            case ast.IsTest():
                return self.is_test(node)
            case ast.Between():
                return self.between(node)
            case ast.InList():
                return self.in_list(node)
            case ast.Like():
                return self.like(node)
            case ast.Case():
                return self.case(node)
            case ast.Cast():
                return self.cast(node)
            case ast.AtTimeZone():
                return bind_at_time_zone(self, node)
            case ast.Extract():
                return self.extract(node)
            case ast.ArrayLiteral():
                return self.call("array", [self.bind(i) for i in node.items], node.span, node.items)
            case ast.Subscript():
                operands = (node.operand, node.index)
                args = each(self.bind, operands)
                if args[0].type == VARCHAR:  # a code point, as in DuckDB
                    return self.call("text_slice", [*args, args[1]], node.span, (*operands, node.index))
                return self.call("element_at", args, node.span, operands)
            case ast.Parameter():
                return self.parameter(node)
            case ast.ScalarQuery() | ast.InQuery() | ast.Exists():
                return self.calls.bind_query(node, self)
            case _:
                return bind_constant(node)

    def condition(self, node: ast.Expr, what: str) -> Expr:
        """A BOOLEAN. CQ0305 when it is not."""
        expr = self.bind(node)
        if expr.type == NULL:
            return convert(expr, BOOLEAN)
        if expr.type != BOOLEAN:
            raise compile_error(
                "CQ0305",
                f"{what} must be BOOLEAN, not {expr.type}",
                node.span,
                label=str(expr.type),
                help=condition_help(node, expr.type),
            )
        return expr

    def narrowed(self, clause: Clause) -> ExprBinder:
        """The same names in another clause."""
        return replace(self, clause=clause)

    # ------------------------------------------------------------------------------------------------------ names

    def column(self, node: ast.ColumnRef) -> Expr:
        part = self.calls.bind_window_field(node)
        if part is not None:
            return part
        known = finds(self.relation, node)
        count = self.aliases.seen(node.name) if node.qualifier is None and not known else 0
        if count:
            return replace(self.aliased(node.name, count, node.span), span=node.span)
        if node.qualifier is None and not known and self.aliases.is_hidden(node.name):
            raise compile_error(
                "CQ0203",
                f'"{node.name}" is an alias of the select list, which {self.clause.name} cannot see',
                node.span,
                label="not a column of the input",
                help=self.aliases.elsewhere(node.name)
                or "repeat the expression, or put the SELECT into a derived table and filter outside",
            )
        return resolve_column(self.relation, node)

    def aliased(self, name: str, count: int, span: Span) -> Expr:
        """The value of the first items with this name, this many of them. CQ0204 if they differ."""
        indices, key = self.aliases.indices[name], (self.clause, name)
        first = self.of_item(indices[0], span)
        alike = self.meant.alike.get(key, 1)
        while alike < count and self.of_item(indices[alike], span) == first:
            alike += 1
        self.meant.alike[key] = alike
        if alike < count:
            raise ambiguous(name, count, span)
        return first

    def of_item(self, index: int, span: Span) -> Expr:
        """The value of an item of the select list, bound as in the list itself, where it sees the items before it.
        Bound once per clause, since each level of aliases of aliases would double the time."""
        key, values = (self.clause, index), self.meant.values
        if key not in values:
            earlier = replace(self, aliases=self.aliases.until(index))
            try:
                values[key] = check_size(earlier.bind(self.aliases.value(index)), span)
            except CompileError as error:
                values[key] = error
        found = values[key]
        if isinstance(found, CompileError):
            raise found
        return found

    def parameter(self, node: ast.Parameter) -> Expr:
        if node.name not in self.parameters:
            raise compile_error(
                "CQ0206",
                f'the parameter ":{node.name}" has no value',
                node.span,
                help=(did_you_mean(node.name, self.parameters), _setting(node.name)),
            )
        return bind_parameter(node.name, self.parameters[node.name], node.span)

    def beside(self, node: ast.Expr, other: DataType, bound: Expr | None = None) -> Expr:
        """The value of a node beside one of that type: a parameter given as text takes the type of its use."""
        value = self.parameters.get(node.name) if isinstance(node, ast.Parameter) else None
        if isinstance(node, ast.Parameter) and isinstance(value, Untyped):
            return bind_beside(node.name, value, other, node.span)
        return bound if bound is not None else self.bind(node)

    def sides(self, first: ast.Expr, second: ast.Expr) -> tuple[Expr, Expr]:
        """The two sides of an operator, unified."""
        left, right = each(self.bind, (first, second))
        return self.beside(first, right.type, left), self.beside(second, left.type, right)

    # -------------------------------------------------------------------------------------------------- operators

    def unary(self, node: ast.Unary) -> Expr:
        if isinstance(node.operand, ast.NumberLiteral):
            return bind_number(node.operand.text, node.span, negative=node.op == "-")
        operand = self.bind(node.operand)
        if isinstance(operand, Literal) and operand.type.is_interval and operand.value is not None:
            return replace(operand, value=-operand.value if node.op == "-" else operand.value, span=node.span)
        if node.op == "+":
            if not (operand.type.is_numeric or operand.type.is_interval):
                raise compile_error("CQ0301", f"cannot apply + to {operand.type}", node.span, label=str(operand.type))
            return operand
        if not (operand.type.is_numeric or operand.type.is_interval or operand.type == NULL):
            raise compile_error(
                "CQ0301", f"cannot negate {operand.type}", operand.span, label=str(operand.type),
                help="CAST the text to a number" if operand.type == VARCHAR else "write -number or -INTERVAL",
            )  # fmt: skip
        return self.call(NEGATE, [operand], node.span, [node.operand])

    def binary(self, node: ast.Binary) -> Expr:
        if node.op in ARROWS:
            return bind_steps(self, node, self.bind)
        if node.op not in {*TURNED, "IS DISTINCT FROM", "IS NOT DISTINCT FROM"}:
            bind = partial(self.beside, other=VARCHAR) if node.op == "||" else self.bind
            left, right = each(bind, (node.left, node.right))
            return self.arithmetic(node, left, right)
        left, right = self.sides(node.left, node.right)
        if node.op in {"=", "IS NOT DISTINCT FROM"}:
            demand_equal(node.left, self.parameters, right)
            demand_equal(node.right, self.parameters, left)
        if node.op not in TURNED:
            same = self.not_distinct(left, right, node.span)
            return self.negated(same, node.span) if node.op == "IS DISTINCT FROM" else same
        if isinstance(node.left, ast.Binary) and node.left.op in TURNED and right.type not in {BOOLEAN, NULL}:
            raise compile_error(
                "CQ0301", "comparisons cannot be chained", node.op_span, label="the third side begins here",
                help="repeat the middle: a < x AND x < b, or write x BETWEEN a AND b",
            )  # fmt: skip
        return self.compare(node.op, left, right, node.span, (node.left, node.right))

    def compare(self, op: str, left: Expr, right: Expr, span: Span, written: Sequence[ast.Expr] = ()) -> Expr:
        """`left op right`, both converted to their common type. written: both sides, where the text has them."""
        left, right = time_text(left, right), time_text(right, left)
        found = resolve_function(op, (left, right))
        for whole, number, turned in ((left, right, op), (right, left, TURNED[op])):
            if whole.type.is_integer and number.type.kind is Kind.DECIMAL:
                wide = isinstance(found, Refusal) or found[1].params[0].physical is Physical.I128
                if isinstance(found, Refusal) or (wide and number.type.physical is Physical.I64):
                    return self.compare_whole(turned, whole, number, span)
        if isinstance(found, Refusal):
            if found.code == "CQ0304":
                raise too_wide(found, left, right)
            raise cannot_compare(left, right, written)
        return apply(found, (left, right), span)

    def compare_whole(self, op: str, whole: Expr, number: Expr, span: Span) -> Expr:
        """Compare an integer with a DECIMAL when no DECIMAL holds both, or none of one word: exactly, with the integers
        below and above it."""
        below, above = (self.call(name, [number], span, ()) for name in ("floor", "ceil"))
        if number.type.physical is Physical.I64:
            below, above = (self.bind_cast(e, BIGINT, span) for e in (below, above))
        below, above = folded(below), folded(above)
        match op:
            case "<" | ">=":
                return self.compare(op, whole, above, span)
            case "<=" | ">":
                return self.compare(op, whole, below, span)
        parts = (self.compare("=", whole, below, span), self.compare("=", whole, above, span))
        equal = check_size(And(BOOLEAN, any(p.nullable for p in parts), parts, span=span), span)
        return equal if op == "=" else self.negated(equal, span)

    def not_distinct(self, left: Expr, right: Expr, span: Span) -> Expr:
        """TRUE when both are NULL or equal, never NULL."""
        equal = self.compare("=", left, right, span)
        nulls = tuple(IsNull(BOOLEAN, False, settled(e), span=span) for e in (left, right) if e.nullable)
        if not nulls:
            return equal
        known = Coalesce(BOOLEAN, False, (equal, Literal(BOOLEAN, False, False)), span=span)
        if len(nulls) == 1:
            return known
        return Or(BOOLEAN, False, (And(BOOLEAN, False, nulls, span=span), known), span=span)

    def arithmetic(self, node: ast.Binary, left: Expr, right: Expr) -> Expr:
        found = applied(node.op, (left, right), node.span)
        if isinstance(found, Refusal):
            if found.code == "CQ0304":
                raise too_wide(found, left, right)
            raise cannot_combine(node.op, left, right, (node.left, node.right))
        return found

    def negated(self, expr: Expr, span: Span) -> Expr:
        return self.call("not", [convert(expr, BOOLEAN)], span, [])

    def maybe_negated(self, expr: Expr, node: ast.Between | ast.InList | ast.Like | ast.IsTest) -> Expr:
        return self.negated(expr, node.span) if node.negated else expr

    def not_(self, node: ast.Not) -> Expr:
        return self.negated(self.condition(node.operand, "the operand of NOT"), node.span)

    def logical(self, node: ast.Logical) -> Expr:
        args = tuple(each(partial(self.condition, what=f"an operand of {node.op}"), node.operands))
        kind = And if node.op == "AND" else Or
        return kind(BOOLEAN, any(a.nullable for a in args), args, span=node.span)

    def is_test(self, node: ast.IsTest) -> Expr:
        if node.what == "NULL":
            arg = settled(self.bind(node.operand))
            return self.maybe_negated(IsNull(BOOLEAN, False, arg, span=node.span), node)
        operand = self.condition(node.operand, f"the operand of IS {node.what}")
        if not operand.nullable and node.what != "UNKNOWN":
            return operand if (node.what == "TRUE") != node.negated else self.negated(operand, node.span)
        match node.what:
            case "UNKNOWN":
                test: Expr = IsNull(BOOLEAN, False, operand, span=node.span)
            case "TRUE":
                test = Coalesce(BOOLEAN, False, (operand, Literal(BOOLEAN, False, False)), span=node.span)
            case "FALSE":
                no = self.negated(operand, node.span)
                test = Coalesce(BOOLEAN, False, (no, Literal(BOOLEAN, False, False)), span=node.span)
        return self.maybe_negated(test, node)

    def between(self, node: ast.Between) -> Expr:
        operand = self.bind(node.operand)
        parts = (
            self.compare(">=", operand, self.beside(node.low, operand.type), node.span),
            self.compare("<=", operand, self.beside(node.high, operand.type), node.span),
        )
        both = And(BOOLEAN, any(p.nullable for p in parts), parts, span=node.span)
        return self.maybe_negated(check_size(both, node.span), node)

    def in_list(self, node: ast.InList) -> Expr:
        operand = self.bind(node.operand)
        for item in node.items:
            demand_equal(item, self.parameters, operand)
        tests = tuple(self.compare("=", operand, self.beside(i, operand.type), i.span) for i in node.items)
        tests = gathered(tests, self.call, node.span)
        if len(tests) == 1:
            return self.maybe_negated(tests[0], node)
        either = Or(BOOLEAN, any(t.nullable for t in tests), tests, span=node.span)
        if operand.children:  # repeated in every test
            check_size(either, node.span)
        return self.maybe_negated(either, node)

    def like(self, node: ast.Like) -> Expr:
        parts = [node.operand, node.pattern, *([node.escape] if node.escape is not None else [])]
        args = [self.beside(p, VARCHAR) for p in parts]
        if node.op in {"GLOB", "SIMILAR TO"}:
            args = [args[0], whole_regex(node, args[1], args[2] if len(args) == 3 else None)]
        if node.op not in {"LIKE", "ILIKE"}:
            return self.maybe_negated(self.call("regexp_like", args, node.span, parts), node)
        if node.op == "ILIKE":
            args[:2] = [self.call("lower", [a], p.span, [p]) for a, p in zip(args[:2], parts[:2], strict=True)]
        return self.maybe_negated(self.call("like", args, node.span, parts), node)

    # ------------------------------------------------------------------------------------- conditionals and casts

    def case(self, node: ast.Case) -> Expr:
        if node.operand is None:
            conditions = [self.condition(w.condition, "a condition of CASE") for w in node.branches]
        else:
            operand = self.bind(node.operand)
            conditions = [
                self.compare("=", operand, self.beside(w.condition, operand.type), w.span) for w in node.branches
            ]
            for condition in conditions:
                check_size(condition, node.span)
        values = [self.bind(w.result) for w in node.branches]
        default = self.bind(node.otherwise) if node.otherwise is not None else Literal(NULL, True, None)
        written = [*(w.result for w in node.branches), *([node.otherwise] if node.otherwise is not None else [])]
        return self.conditional(conditions, [*values, default], node.span, written)

    def conditional(
        self, conditions: Sequence[Expr], values: Sequence[Expr], span: Span, written: Sequence[ast.Node] = ()
    ) -> Expr:
        """CASE over `conditions` with one value more, the default; all values brought to one type. written: as of
        `aligned`."""
        aligned = self.aligned(values, "the results of CASE", written)
        *results, default = aligned
        branches = tuple(zip(conditions, results, strict=True))
        return Case(default.type, any(v.nullable for v in aligned), branches, default, span=span)

    def aligned(self, values: Sequence[Expr], what: str, written: Sequence[ast.Node] = ()) -> list[Expr]:
        """The values converted to the one type that holds them all. CQ0301 when there is none. written: what they are
        in the text, where the user wrote each of them."""
        widest = values[0]
        for value in values[1:]:
            type_ = common(widest, value)
            if type_ is None:
                message = f"{what} are {widest.type} and {value.type}, which have no common type"
                help = (alike_help(values, written) if written else "") or meeting_help(widest, value)
                raise apart("CQ0301", message, value, widest, help)
            widest = widest if type_ == widest.type else Literal(type_, True, None, span=value.span)
        return [convert(v, settled(widest).type) for v in values]

    def coalesce(self, node: ast.Call) -> Expr:
        args = self.aligned(self.positional(node, 1), f"the arguments of {node.name.upper()}", node.args)
        if len(args) == 1:
            return args[0]
        return Coalesce(args[0].type, all(a.nullable for a in args), tuple(args), span=node.span)

    def nullif(self, node: ast.Call) -> Expr:
        first, second = self.exactly(node, 2)
        first = settled(first)
        equal = self.compare("=", first, second, node.span)
        null = Literal(first.type, True, None)
        return check_size(Case(first.type, True, ((equal, null),), first, span=node.span), node.span)

    def if_(self, node: ast.Call) -> Expr:
        _, yes, no = self.exactly(node, 3)
        argument = node.args[0]
        assert not isinstance(argument, ast.NamedArgument)
        return self.conditional([self.condition(argument, "the condition of IF")], [yes, no], node.span, node.args)

    def cast(self, node: ast.Cast) -> Expr:
        type_ = bind_type(node.type)
        if type_ == INTERVAL and isinstance(text := node.operand, ast.StringLiteral):
            return bind_interval(ast.IntervalLiteral(read_summands(text.value, text.span), span=node.span))
        return self.bind_cast(self.bind(node.operand), type_, node.span, node.safe)

    def bind_cast(self, arg: Expr, type_: DataType, span: Span, safe: bool = False) -> Expr:
        """`arg` as `type_`, as by CAST. CQ0303 when there is no such cast."""
        if arg.type in {NULL, type_}:
            return replace(convert(arg, type_), span=span)
        if not castable(arg.type, type_):
            raise compile_error(
                "CQ0303", f"{arg.type} cannot be cast to {type_}", arg.span, label=str(arg.type),
                help=cast_help(arg, type_),
            )  # fmt: skip
        return BoundCast(type_, arg.nullable or safe, arg, safe, span=span)

    def extract(self, node: ast.Extract) -> Expr:
        return self.part_of(node.part, node.part_span, extract_parts(), node.operand, node.span)

    def by_unit(self, node: ast.Call) -> Expr:
        """DATE_TRUNC('unit', x) and DATE_PART('part', x): the unit decides which entry computes it."""
        known = trunc_units() if node.name in TRUNC_NAMES else extract_parts()
        if len(node.args) != 2 or not isinstance(unit := node.args[0], ast.StringLiteral):
            raise compile_error(
                "CQ0302",
                f"{node.name.upper()} takes a unit as a constant, and a time",
                node.span,
                help=(f"write {node.name.upper()}('hour', ts)", f"units: {', '.join(known)}"),
            )
        return self.part_of(unit.value, unit.span, known, unnamed(node)[1], node.span)

    def part_of(self, part: str, part_span: Span, known: Mapping[str, str], operand: ast.Expr, span: Span) -> Expr:
        word = part.lower()
        name = known.get(word) or known.get(word.removesuffix("s"))
        if name is None:
            raise compile_error(
                "CQ0302", f'unknown unit "{part}"', part_span,
                help=f"{did_you_mean(word, known)} units: {', '.join(known)}".strip(),
            )  # fmt: skip
        bound = self.bind(operand)
        if bound.type.is_interval:
            return part_of_length(self, part, bound, operand)
        return self.call(name, [bound], span, [operand])

    # ------------------------------------------------------------------------------------------------------ calls

    def function(self, node: ast.Call) -> Expr:
        other = self.calls.bind_call(node, self)
        if other is not None:
            return other
        short = _SPECIAL.get(node.name) or short_form(node.name)
        if short is None and lookup(node.name) is None:
            raise unknown_function(node)
        inside = node.star or node.distinct or node.order_by or node.within
        if inside or node.filter is not None or node.nulls is not None:
            raise compile_error(
                "CQ0302",
                f"{node.name.upper()} is not an aggregate: it takes no *, DISTINCT, ORDER BY, WITHIN, FILTER or NULLS",
                node.span,
            )
        if short is not None:
            return short(self, node)
        args = self.positional(node, 0)
        return self.call(node.name, args, node.span, list(node.args), node.name_span)

    def positional(self, node: ast.Call, least: int) -> list[Expr]:
        """The bound arguments of a function that takes no named arguments."""
        out = each(self.bind, unnamed(node))
        if len(out) < least:
            raise compile_error("CQ0302", f"{node.name.upper()} needs an argument", node.span)
        return out

    def exactly(self, node: ast.Call, count: int) -> list[Expr]:
        args = self.positional(node, 0)
        if len(args) != count:
            raise compile_error("CQ0302", f"{node.name.upper()} takes {count} arguments, not {len(args)}", node.span)
        return args

    def call(
        self, name: str, args: Sequence[Expr], span: Span, nodes: Sequence[ast.Node], name_span: Span | None = None
    ) -> Expr:
        """A scalar function over bound arguments. CQ0302 when it does not take them."""
        found = applied(name, args, span)
        if isinstance(found, Refusal):
            raise not_taken(found, name, args, nodes, name_span or span)
        return found


def _setting(name: str) -> str:
    return f"set it: {face().setting(name)}"


def bind_constant(node: ast.Expr) -> Literal:
    """The value of a literal. CQ0501 for an expression that is not supported."""
    match node:
        case ast.NumberLiteral(text=text):
            return bind_number(text, node.span)
        case ast.StringLiteral(value=value):
            return Literal(VARCHAR, False, value, span=node.span)
        case ast.BinaryLiteral(digits=digits):
            return Literal(BINARY, False, bytes.fromhex(digits), span=node.span)
        case ast.BooleanLiteral(value=truth):
            return Literal(BOOLEAN, False, truth, span=node.span)
        case ast.NullLiteral():
            return Literal(NULL, True, None, span=node.span)
        case ast.TypedLiteral():
            return bind_typed(node)
        case ast.IntervalLiteral():
            return bind_interval(node)
        case ast.DefaultValue():
            raise misplaced_default(node.span)
        case ast.EveryColumn():
            help = "name the columns: ORDER BY a, b"
            raise compile_error("CQ0501", "ORDER BY ALL of a correlated query is not supported", node.span, help=help)
        case _:
            raise refused(node)


NEGATE = "negate"

# calls whose arguments are not all evaluated, or are no values
_SPECIAL: Mapping[str, Callable[[ExprBinder, ast.Call], Expr]] = {
    **dict.fromkeys(COALESCE_NAMES, ExprBinder.coalesce),
    "nullif": ExprBinder.nullif,
    **dict.fromkeys(("if", "iff", "iif"), ExprBinder.if_),
    **dict.fromkeys((*TRUNC_NAMES, "date_part", "datepart"), ExprBinder.by_unit),
}
