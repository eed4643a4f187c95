"""Calls that are not scalar functions: aggregates, LAG and aggregates OVER, and the bounds of a window.

Each becomes a hole in its expression; `SelectCalls` remembers what fills it, and bind_select builds the operators that
do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar, Protocol

from cq.errors import NOWHERE, CompileError, Span, compile_error, did_you_mean
from cq.grammar import ast, comparing, inline
from cq.lang.aggregates import AggregateFunction, all_aggregates, lookup, resolve
from cq.lang.aggregates.registry import Grows
from cq.lang.expressions import Column, Expr, IsNull, Literal, conjunction
from cq.lang.functions import Refusal
from cq.lang.types import BIGINT, BOOLEAN, INTEGER, NULL, VARCHAR, DataType, common_type
from cq.planner.binding.array_keys import demand_plain_key
from cq.planner.binding.collecting import collection, is_collection
from cq.planner.binding.conversion import convert, instead, settled
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.frames import WrittenFrame, frame_of, is_whole, refuse_frame, within
from cq.planner.binding.functions.foreign import as_one
from cq.planner.binding.functions.foreign_calls import restated
from cq.planner.binding.functions.names import OVER_ONLY
from cq.planner.binding.in_one_value import in_one_value
from cq.planner.binding.nested_overs import nested
from cq.planner.binding.order_keys import distinct_keys, order_key
from cq.planner.binding.scope import NOTHING, Hole, Room
from cq.planner.binding.window_functions import expanded, plain_arguments
from cq.planner.operators import Lag, OrderKey
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.fold import folded
from cq.records import dataclass, field, replace

WINDOW_BOUNDS = {
    "tumble_start": 0, "hop_start": 0, "session_start": 0, "window_start": 0,
    "tumble_end": 1, "hop_end": 1, "session_end": 1, "window_end": 1,
    "tumble_rowtime": 2, "hop_rowtime": 2, "session_rowtime": 2, "window_time": 2,
}  # fmt: skip
WINDOW_NAMES = {"tumble", "hop", "cumulate", "session", "window", "session_window"}
SPARK_FIELDS = {"start": 0, "end": 1}  # of `window` and `session_window`, Spark's names for the windows of GROUP BY
WINDOW_FIELDS = {"window_start": 0, "window_end": 1, "window_time": 2}
KSQL_FIELDS = {"windowstart": 0, "windowend": 1}  # ksqlDB's columns: milliseconds since 1970
SYSTEM_TIMESTAMP = "system_timestamp"
GROUPING_NAMES = {"grouping", "grouping_id"}
MAX_LAG = 10_000  # rows kept for each partition; looking back further is a job for a window


@dataclass(frozen=True, slots=True)
class Rank:
    """RANK: 1 + the rows of the partition that come before all peers of the row; DENSE_RANK: 1 + how many values do."""

    dense: bool
    type: ClassVar[DataType] = BIGINT
    nullable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class OverCall:
    """A call with its OVER. order: the order of the rows; by arrival if it has no keys.

    whole: it covers all rows of the partition.  frame: the rows around the row; None: those up to it.
    """

    call: Lag | AggregateCall | Rank
    partition: tuple[Expr, ...]
    order: tuple[OrderKey, ...]
    whole: bool = False
    frame: WrittenFrame | None = None
    span: Span = field(default=NOWHERE, compare=False)


class SubQuery(Protocol):
    """A query whose value is used in an expression."""

    @property
    def type(self) -> DataType: ...


@dataclass(frozen=True, slots=True)
class GroupingCall:
    """`GROUPING(keys)`: which of these keys a grouping set leaves out; without arguments, of all keys."""

    keys: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class SelectCalls:
    """The calls of one SELECT, collected while its expressions are bound.

    bounds: the type of the bounds of the windows that FROM or GROUP BY makes; None without windows.
    group_window: the call in GROUP BY that makes windows.
    of_nothing: whether there is a group that may have no rows, whose aggregates are NULL.
    nesting: how many enclosing calls with OVER are being bound as other calls.
    asked: the index of each sub-query's value, by the clause that contains it.
    """

    named_windows: Mapping[str, ast.WindowSpec]
    bounds: DataType | None = None
    group_window: ast.Call | None = None
    of_nothing: bool = False
    aggregates: list[AggregateCall] = field(default_factory=list)
    overs: list[OverCall] = field(default_factory=list)
    nesting: int = 0
    values: list[SubQuery] = field(default_factory=list)
    asked: dict[tuple[ast.Query, str], int] = field(default_factory=dict)
    sub_query: Callable[[ast.Query, ExprBinder], SubQuery] | None = None

    def bind_query(self, node: ast.ScalarQuery | ast.InQuery | ast.Exists, binder: ExprBinder) -> Expr:
        if self.sub_query is None or not binder.clause.queries:
            raise compile_error(
                "CQ0502",
                f"a sub-query is not allowed in {binder.clause.name}",
                node.span,
                help=binder.clause.instead,
            )
        if isinstance(node, ast.InQuery):
            return binder.bind(in_one_value(node) or comparing.among_as_value(node))
        if isinstance(node, ast.Exists):
            return binder.bind(comparing.exists_as_value(node))
        asked = (node.query, binder.clause.name)  # the same query in the same clause has one value
        if asked not in self.asked:
            self.values.append(self.sub_query(node.query, binder))
            self.asked[asked] = len(self.values) - 1
        place = self.asked[asked]
        return Hole(self.values[place].type, True, Room.QUERY, place, span=node.span)

    groupings: list[GroupingCall] = field(default_factory=list)

    def bind_window_field(self, node: ast.ColumnRef) -> Expr | None:
        if self.group_window is None or self.bounds is None:
            return None
        if node.qualifier in {"window", "session_window"} and node.name in SPARK_FIELDS:
            return window_hole(SPARK_FIELDS[node.name], self.bounds, node.span)
        if node.qualifier is None and node.name in WINDOW_FIELDS:
            return window_hole(WINDOW_FIELDS[node.name], self.bounds, node.span)
        if node.qualifier is None and node.name in KSQL_FIELDS:
            bound = window_hole(KSQL_FIELDS[node.name], self.bounds, node.span)
            return ExprBinder(NOTHING, {}, Clause(node.name), self).call("unix_millis", [bound], node.span, [node])
        return None

    def bind_call(self, node: ast.Call, binder: ExprBinder) -> Expr | None:
        other = restated(node)
        if other is not None:
            return binder.bind(other)
        if node.name == SYSTEM_TIMESTAMP and not node.args:
            return self.system_timestamp(node, binder)
        if node.name in WINDOW_BOUNDS:
            return self.window_bound(node)
        if node.name in WINDOW_NAMES:
            raise compile_error(
                "CQ0405",
                f"{node.name.upper()} creates windows and has no value here",
                node.span,
                help=(
                    "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) … GROUP BY window_start, window_end",
                    "the bounds are window_start and window_end",
                ),
            )
        if node.over is not None:
            return self.over(node, binder, node.over)
        if node.name in OVER_ONLY:
            raise compile_error(
                "CQ0405",
                f"{node.name.upper()} needs an OVER clause",
                node.span,
                help=f"write {node.name.upper()}(…) OVER (PARTITION BY key ORDER BY ts)",
            )
        if node.name in GROUPING_NAMES and binder.clause.aggregates:
            return self.grouping(node, binder)
        if lookup(node.name) is None:
            return None
        if not binder.clause.aggregates:
            raise compile_error(
                "CQ0405",
                f"an aggregate is not allowed in {binder.clause.name}",
                node.span,
                label="an aggregate",
                help=binder.clause.advice,
            )
        inside = binder.narrowed(Clause("the argument of an aggregate", advice="aggregate in a derived table first"))

        def collect(call: ast.Call) -> Expr:
            return self.remember(self.aggregate(call, inside))

        return collection(node, inside, binder, collect) if is_collection(node) else collect(node)

    def grouping(self, node: ast.Call, binder: ExprBinder) -> Expr:
        """The hole for GROUPING(a, b) or GROUPING_ID(): a number whose bits say which keys the row's set leaves out."""
        inside = binder.narrowed(Clause("GROUPING", advice="it takes keys of GROUP BY"))
        call = GroupingCall(tuple(inside.positional(node, int(node.name == "grouping"))), node.span)
        if call not in self.groupings:
            self.groupings.append(call)
        return Hole(BIGINT, False, Room.GROUPING, self.groupings.index(call), span=node.span)

    def window_bound(self, node: ast.Call) -> Expr:
        """TUMBLE_START(ts, i) and its like: a bound of the window made by GROUP BY."""
        if self.bounds is None:
            raise compile_error(
                "CQ0405",
                f"{node.name.upper()} needs a window",
                node.span,
                help="write GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
            )
        made = self.group_window
        kind = node.name.partition("_")[0]
        if node.args and (made is None or node.args != made.args or kind not in {"window", *made.name.split("_")}):
            raise compile_error(
                "CQ0502",
                f"{node.name.upper()} names a different window than GROUP BY",
                node.span,
                help="give it the same arguments, or write window_start and window_end",
            )
        return window_hole(WINDOW_BOUNDS[node.name], self.bounds, node.span)

    def system_timestamp(self, node: ast.Call, binder: ExprBinder) -> Expr:
        """Azure's System.Timestamp(): the last instant of the window; without a window the event time."""
        if self.bounds is not None:
            return window_hole(WINDOW_FIELDS["window_time"], self.bounds, node.span)
        time = next(iter(binder.relation.node.schema.times), None)
        if time is None:
            raise compile_error(
                "CQ0402", f"System.Timestamp() needs an event time, and {binder.relation.title} has none", node.span,
                help="name the column you mean",
            )  # fmt: skip
        known = binder.relation.node.schema.fields[time.column]
        return Column(known.type, known.nullable, time.column, known.name, span=node.span)

    def remember(self, call: AggregateCall) -> Expr:
        """The hole for an aggregate; equal aggregates share one."""
        if self.of_nothing and not call.function.never_null:
            call = replace(call, nullable=True)
        if call not in self.aggregates:
            self.aggregates.append(call)
        return Hole(call.type, call.nullable, Room.AGGREGATE, self.aggregates.index(call), span=call.span)

    def aggregate(self, node: ast.Call, inside: ExprBinder) -> AggregateCall:
        """The aggregate call with its arguments bound by `inside` and converted."""
        name = node.name.upper()
        if node.order_by:
            raise compile_error(
                "CQ0501",
                f"ORDER BY inside {name} is not supported yet",
                node.order_by[0].span,
                help=(
                    "remove it; ARG_MIN(x, y) and ARG_MAX(x, y) give the x of the least and of the greatest y",
                    "ARRAY_AGG(x ORDER BY y) and STRING_AGG(x, ',' ORDER BY y) list all",
                ),
            )
        node = _ordered_set(_with_its_nulls(node))
        args = [settled(a) for a in inside.positional(node, 0)]
        options = _options(node, args)
        args = args[: len(args) - len(options)]
        entry = lookup(node.name)
        assert entry is not None
        if entry.grows is Grows.COUNT and not (args or node.distinct):  # DuckDB, ClickHouse: COUNT()
            node = replace(node, star=True)
        if entry.grows is Grows.COUNT and node.distinct and len(args) > 1:
            args = [as_one(inside, args, node)]
        if entry.counts_truth and args and args[0].type == BOOLEAN:  # MySQL: how many, or which share, are TRUE
            args[0] = convert(inside.bind_cast(args[0], INTEGER, args[0].span), INTEGER)
        if entry.as_text and args and args[0].type != VARCHAR and args[0].type != NULL:
            args[0] = inside.bind_cast(args[0], VARCHAR, args[0].span)
        found = resolve(node.name, [a.type for a in args])
        if isinstance(found, Refusal) or (not args and not node.star):
            raise _refused(node, entry, args, found if isinstance(found, Refusal) else None)
        entry, signature = found
        condition = inside.condition(node.filter, "the condition of FILTER") if node.filter is not None else None
        converted = tuple(convert(a, t) for a, t in zip(args, signature.params, strict=True))
        distinct = node.distinct and not entry.idempotent
        if distinct and entry.packs(signature):
            raise compile_error(
                "CQ0302",
                f"{name} does not take DISTINCT",
                node.span,
                help="leave DISTINCT out, or group by the arguments in a derived table and aggregate that",
            )
        if distinct:
            demand_plain_key(converted[0])
        if node.nulls is not None:
            condition = _of_nulls(node, entry, inside, converted, condition)
        some = condition is not None or entry.may_be_null or any(a.nullable for a in converted)
        nullable = some and not entry.never_null
        return AggregateCall(
            entry, converted, signature.returns, nullable, distinct, condition, options, span=node.span
        )

    # ------------------------------------------------------------------------------------------------------- OVER

    def over(self, node: ast.Call, binder: ExprBinder, over: ast.WindowSpec | str) -> Expr:
        """The hole for a call with OVER; equal calls share one."""
        if not binder.clause.windows:
            raise compile_error(
                "CQ0405",
                f"a call with OVER is not allowed in {binder.clause.name}",
                node.span,
                help=(
                    *(["write the condition in QUALIFY"] if binder.clause.name in {"WHERE", "HAVING"} else []),
                    binder.clause.over,
                ),
            )
        node, spec = _with_its_nulls(node), self.spec(over, node)
        made = expanded(node, spec)
        if made is not None:
            return binder.bind(made)
        if is_collection(node):
            return self.collected_over(node, binder)
        made = nested(node, spec)
        if made is not None:
            if self.nesting == 0:
                self._refuse_overs_within(node, spec, binder)
            self.nesting += 1
            try:
                return binder.bind(made)
            finally:
                self.nesting -= 1
        nests = self.nesting > 0
        inside = binder.narrowed(replace(binder.clause, name="an OVER clause", windows=nests, queries=False))
        call: Lag | AggregateCall | Rank
        whole, frame = False, None
        if node.name == "lag":
            call = self.lag(node, inside, spec)
        elif node.name == "row_number":
            call = self.row_number(node, inside, spec)
        elif node.name in {"rank", "dense_rank"}:
            call = self.rank(node, spec)
        elif lookup(node.name) is not None:
            whole = is_whole(spec)
            frame = None if whole else frame_of(node, spec, inside)
            call = self.aggregate(node, inside)  # its arguments may hold aggregates of the group: holes, filled first
            if frame is not None:
                call, frame = within(call, frame)
        else:
            raise _no_such_window_function(node)
        keys = (inside.bind(p) for p in spec.partition_by)
        partition = tuple(dict.fromkeys(k for k in keys if not isinstance(k, Literal)))  # constants do not partition
        order = order_of(spec, inside)
        if isinstance(call, Rank) and not order:
            raise unordered_rank(node)
        result = OverCall(call, partition, order, whole, frame, span=node.span)
        if result not in self.overs:
            self.overs.append(result)
        return Hole(call.type, call.nullable, Room.OVER, self.overs.index(result), span=node.span)

    def _refuse_overs_within(self, node: ast.Call, spec: ast.WindowSpec, binder: ExprBinder) -> None:
        """CQ0405 if the call as written contains a call with OVER, or the name of one."""
        inside = binder.narrowed(replace(binder.clause, name="an OVER clause", windows=False, queries=False))
        inside.positional(node, 0)
        for part in (*spec.partition_by, *(key.expr for key in spec.order_by)):
            inside.bind(part)
        if node.filter is not None:
            inside.bind(node.filter)

    def collected_over(self, node: ast.Call, binder: ExprBinder) -> Expr:
        """ARRAY_AGG and its relatives with ORDER BY or DISTINCT, over the rows of a frame."""
        inside = binder.narrowed(replace(binder.clause, name="an OVER clause", windows=False, queries=False))

        def collect(call: ast.Call) -> Expr:
            assert call.over is not None
            return self.over(call, binder, call.over)

        return collection(node, inside, binder, collect)

    def row_number(self, node: ast.Call, inside: ExprBinder, spec: ast.WindowSpec) -> AggregateCall:
        """ROW_NUMBER() is COUNT(*) of the rows up to this one: ties are numbered in order of arrival."""
        refuse_arguments(node)
        refuse_frame(node, spec)
        return self.aggregate(replace(node, name="count", star=True), inside)

    def rank(self, node: ast.Call, spec: ast.WindowSpec) -> Rank:
        """RANK() or DENSE_RANK()."""
        refuse_arguments(node)
        refuse_frame(node, spec)
        return Rank(node.name == "dense_rank")

    def spec(self, over: ast.WindowSpec | str, node: ast.Call) -> ast.WindowSpec:
        """The window specification, with named ones looked up and refined."""
        if isinstance(over, str):
            at = node.over_span if node.over_span != NOWHERE else node.span
            return self._named(over, at, self.named_windows)
        return self._refined(over, self.named_windows)

    def _refined(self, spec: ast.WindowSpec, known: Mapping[str, ast.WindowSpec]) -> ast.WindowSpec:
        """The specification plus everything in the named window it begins with."""
        if spec.base is None:
            return spec
        base = self._named(spec.base, spec.span, known)
        if spec.partition_by or (spec.order_by and base.order_by):
            raise compile_error(
                "CQ0502",
                f'OVER cannot change what the window "{spec.base}" already defines',
                spec.span,
                help="it may add ORDER BY or a frame that the named window does not have",
            )
        return replace(base, order_by=spec.order_by or base.order_by, frame=spec.frame or base.frame)

    def _named(self, name: str, span: Span, known: Mapping[str, ast.WindowSpec]) -> ast.WindowSpec:
        """The window with this name, which may itself begin with an earlier one: so none begins with itself."""
        if name not in known:
            raise compile_error(
                "CQ0201",
                f'there is no window "{name}"' + (" before this one" if name in self.named_windows else ""),
                span,
                help=did_you_mean(name, known) or f"write WINDOW {name} AS (PARTITION BY … ORDER BY …)",
            )
        before = dict(takewhile(lambda window: window[0] != name, known.items()))
        return self._refined(known[name], before)

    def lag(self, node: ast.Call, inside: ExprBinder, spec: ast.WindowSpec) -> Lag:
        """LAG(x[, n[, default]]): the default is converted to x's type."""
        plain_arguments(node)
        refuse_frame(node, spec)
        args = inside.positional(node, 1)
        if len(args) > 3:
            raise compile_error("CQ0302", "LAG takes a value, a number of rows and a default", node.span)
        offset = 1
        if len(args) > 1:
            number = folded(args[1])
            if not (isinstance(number, Literal) and number.type.is_integer and number.value is not None):
                raise compile_error("CQ0302", "LAG takes a constant number of rows", args[1].span, help="LAG(x, 1)")
            offset = number.value
            if not 1 <= offset <= MAX_LAG:
                raise compile_error(
                    "CQ0302",
                    f"LAG looks back 1 to {MAX_LAG} rows, not {offset}",
                    args[1].span,
                    help="LEAD(x, 1) looks ahead",
                )
        values = inside.aligned([args[0], *args[2:]], "the value and the default of LAG")
        value = values[0]
        default = values[1] if len(values) > 1 else None
        nullable = value.nullable or default is None or default.nullable
        return Lag(value, offset, default, value.type, nullable, span=node.span)


def _with_its_nulls(node: ast.Call) -> ast.Call:
    """FIRST(ABS(x) IGNORE NULLS), LAG(x, 1, ABS(y) IGNORE NULLS): these words after a call that is no aggregate belong
    to the call around it."""
    last = node.args[-1] if node.args else None
    if not isinstance(last, ast.Call) or last.nulls is None or node.nulls is not None or lookup(last.name) is not None:
        return node
    return replace(node, args=(*node.args[:-1], replace(last, nulls=None)), nulls=last.nulls)


def _ordered_set(node: ast.Call) -> ast.Call:
    """The call with the ORDER BY expression of WITHIN GROUP as its first argument."""
    if not node.within:
        return node
    entry, (first, *more) = lookup(node.name), node.within
    if entry is None or not entry.within_group or more or len(node.args) != len(entry.options):
        raise compile_error(
            "CQ0501",
            f"{node.name.upper()} does not take this WITHIN GROUP",
            first.span,
            help="supported: PERCENTILE_CONT(0.5), PERCENTILE_DISC(0.5) and MODE(), WITHIN GROUP (ORDER BY x)",
        )
    if first.descending:
        raise compile_error(
            "CQ0501",
            "WITHIN GROUP with ORDER BY … DESC is not supported yet",
            first.span,
            help="order ascending: from the other end, PERCENTILE_CONT has the same value at 1 minus the fraction",
        )
    return replace(node, args=(first.expr, *node.args), within=())


def _options(node: ast.Call, args: Sequence[Expr]) -> tuple[Any, ...]:
    """The values of the constants after the arguments of an aggregate. CQ0302 for anything but a constant."""
    entry = lookup(node.name)
    if entry is None or not entry.options:
        return ()
    values: list[Any] = []
    for n, option in enumerate(entry.options):
        place = len(args) - len(entry.options) + n
        given = args[place] if place > 0 else None
        fits = given is not None and common_type(given.type, option.type) == option.type
        value = folded(convert(given, option.type)) if given is not None and fits else None
        if not isinstance(value, Literal) or value.value is None or not option.fits(value.value):
            raise compile_error(
                "CQ0302",
                f"{node.name.upper()} takes {option.what} after its argument, as a constant",
                node.span if given is None else given.span,
                help=f"usage: {entry.shape}",
            )
        values.append(value.value)
    return tuple(values)


def _refused(node: ast.Call, entry: AggregateFunction, args: Sequence[Expr], refusal: Refusal | None) -> CompileError:
    """The error for an aggregate that does not take these arguments, or lacks arguments."""
    several = node.distinct and entry.grows is Grows.COUNT and len(args) > 1
    way = _distinct_rows(args) if several else (refusal.help if refusal else "") or f"usage: {entry.shape}"
    return compile_error(
        refusal.code if refusal else "CQ0302",
        refusal.message if refusal else f"{node.name.upper()} needs an argument",
        args[0].span if args else node.span,
        label=str(args[0].type) if args else "",
        help=(way, *instead(args, entry.shape)),
    )


def _of_nulls(
    node: ast.Call, entry: AggregateFunction, inside: ExprBinder, args: Sequence[Expr], condition: Expr | None
) -> Expr | None:
    """The FILTER of a call with IGNORE NULLS or RESPECT NULLS."""
    if not entry.keeps_null:
        raise compile_error(
            "CQ0302",
            f"{node.name.upper()} takes neither IGNORE NULLS nor RESPECT NULLS",
            node.span,
            help="leave it out: rows where an argument is NULL are skipped",
        )
    if node.nulls == "RESPECT" or not args[0].nullable:
        return condition
    present = inside.negated(IsNull(BOOLEAN, False, args[0], span=node.span), node.span)
    return present if condition is None else conjunction([condition, present])


def _distinct_rows(args: Sequence[Expr]) -> str:
    names = ", ".join(inline.name(a.name) if isinstance(a, Column) else f"x{n}" for n, a in enumerate(args, 1))
    return f"count the rows of SELECT DISTINCT: SELECT COUNT(*) FROM (SELECT DISTINCT {names} FROM …) AS t"


def window_hole(index: int, type_: DataType, span: Span) -> Hole:
    """A bound of the pending window: 0 start, 1 end, 2 time."""
    return Hole(type_, False, Room.WINDOW, index, span=span)


def unordered_rank(node: ast.Call) -> CompileError:
    """CQ0302 for a rank without an order."""
    return compile_error(
        "CQ0302",
        f"{node.name.upper()} needs an ORDER BY in OVER: without one all rows are peers",
        node.span,
        help=f"write {node.name.upper()}() OVER (PARTITION BY … ORDER BY …)",
    )


def refuse_arguments(node: ast.Call) -> None:
    """CQ0302 for arguments of a function that only counts."""
    written = (node.args, node.star, node.distinct, node.order_by, node.within, node.filter, node.nulls)
    if any(written):
        raise compile_error(
            "CQ0302",
            f"{node.name.upper()} takes no arguments",
            node.span,
            help=f"write {node.name.upper()}() OVER (PARTITION BY … ORDER BY ts)",
        )


def order_of(spec: ast.WindowSpec, inside: ExprBinder) -> tuple[OrderKey, ...]:
    """The order of an OVER."""
    return distinct_keys(order_key(item, inside.bind(item.expr)) for item in spec.order_by)


def _no_such_window_function(node: ast.Call) -> Exception:
    known = ("LAG", "LEAD", "NTH_VALUE", "ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE")
    return compile_error(
        "CQ0205",
        f'there is no window function "{node.name}"',
        node.span,
        help=(
            did_you_mean(node.name, {*OVER_ONLY, *all_aggregates()}),
            f"there are {', '.join(known)}, and all aggregates",
        ),
    )
