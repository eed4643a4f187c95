"""Kernel forms of the aggregates: code to add, merge and finish.

An aggregate is made of accumulators (cq/codegen/state/accumulators.py), and equal ones are kept once: COUNT(x),
SUM(x), AVG(x) and the emptiness of MIN(x) share one count of x.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from cq.codegen.expressions.arrays import order_of
from cq.codegen.expressions.emit import emit
from cq.codegen.expressions.forms import stored_parts
from cq.codegen.expressions.int128 import is_int128
from cq.codegen.expressions.user import is_user_call, user_values
from cq.codegen.state.accumulators import (
    Accumulator,
    AllBits,
    AtGreatest,
    AtLeast,
    Best,
    Bits,
    Counted,
    Entry,
    First,
    FirstPresent,
    FloatTotal,
    Greatest,
    Last,
    Least,
    Moments,
    OddBits,
    PairMoments,
    Pick,
    SomeBits,
    Total,
    Trues,
    WideTotal,
)
from cq.codegen.state.hash_tables import load_field, load_fields
from cq.codegen.state.list_accumulators import JoinedText, ListedValues, OrderedArguments, Sketch
from cq.codegen.state.shape_accumulators import FloatProduct, Shape
from cq.codegen.state.user_accumulators import UserState
from cq.codegen.values import Row, Scope, Val, any_null, default_parts, is_true
from cq.codegen.writer import expr
from cq.entries import enter
from cq.lang.aggregates.pairs import GREATEST_SQUARE, LEAST_SQUARE
from cq.lang.aggregates.user import FORM as USER_AGGREGATE
from cq.lang.aggregates.user import UserAggregate
from cq.lang.expressions import can_fail, walk
from cq.lang.types import BIGINT, Kind
from cq.planner.plan.calls import AggregateCall
from cq.records import dataclass, field
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode

Result = Callable[[Scope, Entry], Val]


@dataclass(slots=True)
class Accumulators:
    """The accumulators of several calls, each kept once, and how to read each call's result from them.

    of_none: whether results over no rows are read, too.
    """

    first_word: int
    owner: str  # the prefix of their words' names
    of_none: bool = False
    all: list[Accumulator] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    _known: dict[object, Accumulator] = field(default_factory=dict)

    @staticmethod
    def of(
        calls: Sequence[AggregateCall], first_word: int, owner: str = "GROUP", of_none: bool = False
    ) -> Accumulators:
        made = Accumulators(first_word, owner, of_none)
        for call in calls:
            made.results.append(RECIPES[call.function.native](made, call))
        return made

    @property
    def next_word(self) -> int:
        return self.all[-1].word + self.all[-1].words if self.all else self.first_word

    @property
    def strings(self) -> tuple[int, ...]:
        return tuple(w for p in self.all for w in p.strings)

    @property
    def arrivals(self) -> tuple[int, ...]:
        return tuple(w for p in self.all for w in p.arrivals)

    def take(self, accumulator: Accumulator) -> Accumulator:
        """This accumulator, or an equal one that is already there."""
        known = self._known.setdefault(accumulator.key, accumulator)
        if known is accumulator:
            accumulator.word, accumulator.owner, accumulator.number = self.next_word, self.owner, len(self.all)
            self.all.append(accumulator)
        return known

    def start(self, scope: Scope, e: Entry) -> None:
        """Set a new entry to no rows."""
        for accumulator in self.all:
            accumulator.start(scope, e)

    def clear(self, scope: Scope, e: Entry) -> None:
        """Reset an entry to no rows."""
        for accumulator in self.all:
            accumulator.clear(scope, e)

    def add(
        self, scope: Scope, e: Entry, row: Row, arrival: ast.expr,
        once: Callable[[Accumulator, Val, Callable[[], None]], None] | None = None,
    ) -> None:  # fmt: skip
        """Add a row to every accumulator.

        arrival: greater for a later row; 0 if rows only come in order.
        once(accumulator, value, then): writes `then` for the first row with a value.
        """
        for accumulator in self.all:
            if accumulator.filter is None:
                for arg in accumulator.args:
                    if any(map(is_user_call, walk(arg))):
                        emit(scope, row, arg)  # once for all accumulators: it may call Python
            with scope.block():
                self._add(scope, e, row, accumulator, arrival, once)

    def _add(
        self, scope: Scope, e: Entry, row: Row, accumulator: Accumulator, arrival: ast.expr,
        once: Callable[[Accumulator, Val, Callable[[], None]], None] | None,
    ) -> None:  # fmt: skip
        conditions: list[ast.expr] = []
        if accumulator.filter is not None:
            conditions.append(is_true(emit(scope, row, accumulator.filter)))

        def counted() -> None:
            values = [emit(scope, row, arg) for arg in accumulator.args]
            placed = [Val(BIGINT, (arrival,))] if accumulator.by_position else []
            null = None if accumulator.keeps_null else any_null(values)
            if null is not None:
                with scope.when(expr("not N", N=null)):
                    put([*placed, *(Val(v.type, v.parts) for v in values)])
            else:
                put([*placed, *values])

        def put(values: Sequence[Val]) -> None:
            if accumulator.distinct:
                assert once is not None, "a set where there are none"
                (value,) = values
                once(accumulator, value, lambda: accumulator.add(scope, e, values))
            else:
                accumulator.add(scope, e, values)

        if conditions:
            with scope.when(conditions[0]):
                counted()
        else:
            counted()

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        """Add the contents of another entry."""
        for accumulator in self.all:
            with scope.block():
                accumulator.merge(scope, e, other)

    def values(self, scope: Scope, e: Entry) -> list[Val]:
        """Every call's result."""
        return [result(scope, e) for result in self.results]


Recipe = Callable[[Accumulators, AggregateCall], Result]
RECIPES: dict[str, Recipe] = {}


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    """Register how a call is made of accumulators, under the names that entries of the registry give in `native`."""

    def register(function: Recipe) -> Recipe:
        for name in names:
            enter(RECIPES, name, function, "recipe of an aggregate")
        return function

    return register


def _count(accumulators: Accumulators, call: AggregateCall) -> Accumulator:
    """The count of the call's rows: shared with COUNT(*) if no argument can be NULL."""
    args = call.args if call.distinct or any(a.nullable for a in call.args) else ()
    return accumulators.take(Counted(args, call.filter, call.distinct))


def _emptiness(accumulators: Accumulators, call: AggregateCall) -> Callable[[Scope, Entry], ast.expr | None]:
    """Whether no argument was added; None if there always is one."""
    if call.filter is None and not accumulators.of_none and not any(a.nullable for a in call.args):
        return lambda scope, e: None
    count = _count(accumulators, call)
    return lambda scope, e: scope.let(expr("C == 0", C=count.at(e)), "empty")


@recipe(USER_AGGREGATE)
def user_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    assert isinstance(call.function, UserAggregate)
    fold = call.function.made_of
    state = accumulators.take(UserState(call.args, call.filter, call.distinct, fold=fold, span=call.span))
    empty = _emptiness(accumulators, call)
    assert isinstance(state, UserState)

    def result(scope: Scope, e: Entry) -> Val:
        null = empty(scope, e)
        if null is None:
            (made,) = user_values(scope, fold.result, state.fields(scope, e), call.span)
            return made
        made = scope.variables(call.type, True, "made")
        with scope.when(expr("not N", N=null)):
            (there,) = user_values(scope, fold.result, state.fields(scope, e), call.span)
            scope.assign(made, there)
        return made

    return result


@recipe("count")
def count_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    fails = bool(call.args) and can_fail(call.args[0])  # if so it is always computed, NULL or not
    count = accumulators.take(Counted(call.args, call.filter, call.distinct)) if fails else _count(accumulators, call)
    return lambda scope, e: Val(call.type, (scope.let(count.at(e), "count"),))


def _total(accumulators: Accumulators, call: AggregateCall) -> Accumulator:
    type_ = call.args[0].type
    kind = FloatTotal if type_.is_float else WideTotal if is_int128(type_) else Total
    return accumulators.take(kind(call.args, call.filter, call.distinct))


@recipe("sum")
def sum_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    total = _total(accumulators, call)
    empty = _emptiness(accumulators, call)

    def result(scope: Scope, e: Entry) -> Val:
        null = empty(scope, e)
        if isinstance(total, FloatTotal):
            value = scope.let(total.at_float(e), "sum")
            if call.type.kind is Kind.REAL:
                value = scope.let(expr("f32_round(V)", V=value), "sum")
            return Val(call.type, (value,), null)
        if is_int128(call.type):
            return Val(call.type, _wide_mean(scope, call, total, e, ast.Constant(1), "sum"), null)
        lo, hi = scope.let(total.at(e), "sum_lo"), scope.let(total.at(e, 1), "sum_hi")
        wrong = expr("fits_64(HI, LO) == 0", HI=hi, LO=lo)
        if call.type.kind is Kind.DECIMAL:
            most = 10**call.type.precision - 1
            wrong = expr("WRONG or LO > MOST or LO < LEAST", WRONG=wrong, LO=lo, MOST=most, LEAST=-most)
        with scope.when(wrong):
            scope.fail(ErrorCode.OVERFLOW, f"the sum does not fit {call.type}", call.span)
        return Val(call.type, (lo,), null)

    return result


@recipe("avg")
def avg_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    total, count = _total(accumulators, call), _count(accumulators, call)
    empty = _emptiness(accumulators, call)

    def result(scope: Scope, e: Entry) -> Val:
        null = empty(scope, e)
        many = scope.let(expr("max(C, 1)", C=count.at(e)), "count")
        if isinstance(total, FloatTotal):
            mean = scope.let(expr("f64_div(S, i64_to_f64(C))", S=total.at_float(e), C=many), "mean")
            return Val(call.type, (mean,), null)
        if is_int128(call.type):
            return Val(call.type, _wide_mean(scope, call, total, e, many, "average"), null)
        lo, hi = scope.let(total.at(e), "sum_lo"), scope.let(total.at(e, 1), "sum_hi")
        if call.type.is_float:
            return Val(call.type, (scope.let(expr("avg_i128(HI, LO, C)", HI=hi, LO=lo, C=many), "mean"),), null)
        return Val(call.type, (_rounded_mean(scope, call, hi, lo, many),), null)

    return result


def _wide_mean(
    scope: Scope, call: AggregateCall, total: Accumulator, e: Entry, many: ast.expr, what: str
) -> tuple[ast.expr, ...]:  # fmt: skip
    """The exact sum at the result's scale, divided, halves away from zero, as two words."""
    lo, hi = scope.let(total.at(e), "sum_lo"), scope.let(total.at(e, 1), "sum_hi")
    top = total.at(e, 2) if isinstance(total, WideTotal) else expr("H >> 63", H=hi)
    up = call.type.scale - call.args[0].type.scale
    status = expr(
        "decimal_mean(state, TOP, HI, LO, UP, C, P)", TOP=top, HI=hi, LO=lo, UP=up, C=many, P=call.type.precision
    )  # fmt: skip
    with scope.when(expr("S != 0", S=scope.let(status, "status"))):
        scope.fail(ErrorCode.OVERFLOW, f"the {what} does not fit {call.type}", call.span)
    return stored_parts(scope, call.type)


def _rounded_mean(scope: Scope, call: AggregateCall, hi: ast.expr, lo: ast.expr, many: ast.expr) -> ast.expr:
    """The exact sum at the result's scale (an INTERVAL has none), divided, halves away from zero."""
    scale = 10 ** (call.type.scale - call.args[0].type.scale)
    wide_hi = scope.let(expr("wadd(wmul(HI, K), umulhi(LO, K))", HI=hi, LO=lo, K=scale), "wide_hi")
    wide_lo = scope.let(expr("wmul(LO, K)", LO=lo, K=scale), "wide_lo")
    place = expr("state + W * 8", W=abi.STATE_RESULT)
    with scope.when(expr("div_half_up(HI, LO, C, AT) == 0", HI=wide_hi, LO=wide_lo, C=many, AT=place)):
        scope.fail(ErrorCode.OVERFLOW, f"the average does not fit {call.type}", call.span)
    return scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "mean")


def _best(kind: type[Best]) -> Recipe:
    def best_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        empty = _emptiness(accumulators, call)
        best = accumulators.take(kind(call.args, call.filter, False))  # DISTINCT changes nothing
        assert isinstance(best, Best)
        return lambda scope, e: Val(
            call.type, load_field(scope, best.field, e.address, e.table, None).parts, empty(scope, e)
        )

    return best_recipe


recipe("min")(_best(Least))
recipe("max")(_best(Greatest))


def _bool(template: str) -> Recipe:
    def bool_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        count, trues = _count(accumulators, call), accumulators.take(Trues(call.args, call.filter, False))
        empty = _emptiness(accumulators, call)
        return lambda scope, e: Val(
            call.type, (scope.let(expr(template, T=trues.at(e), C=count.at(e))),), empty(scope, e)
        )

    return bool_recipe


recipe("bool_or")(_bool("T != 0"))
recipe("bool_and")(_bool("T == C"))


@recipe("count_if")
def count_if_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    trues = accumulators.take(Trues(call.args, call.filter, call.distinct))
    return lambda scope, e: Val(call.type, (scope.let(trues.at(e), "count"),))


def _bits(kind: type[Bits]) -> Recipe:
    def bits_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        bits = accumulators.take(kind(call.args, call.filter, call.distinct))
        empty = _emptiness(accumulators, call)
        return lambda scope, e: Val(call.type, (scope.let(bits.at(e), "bits"),), empty(scope, e))

    return bits_recipe


recipe("bit_and")(_bits(AllBits))
recipe("bit_or")(_bits(SomeBits))
recipe("bit_xor")(_bits(OddBits))


def _spread(less: int, template: str) -> Recipe:
    """less: 1 for a sample.  template: the result as a function of the variance V."""

    def spread_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        moments = accumulators.take(Moments(call.args, call.filter, call.distinct))

        def result(scope: Scope, e: Entry) -> Val:
            many = scope.let(moments.at(e), "many")
            divisor = expr("i64_to_f64(max(C - L, 1))", C=many, L=less)
            variance = scope.let(expr("f64_div(S, D)", S=moments.at_float(e, 2), D=divisor), "variance")
            null = scope.let(expr("C <= L", C=many, L=less), "few") if call.nullable else None
            return Val(call.type, (scope.let(expr(template, V=variance), "spread"),), null)

        return result

    return spread_recipe


recipe("var_pop")(_spread(0, "V"))
recipe("var_samp")(_spread(1, "V"))
recipe("stddev_pop")(_spread(0, "f64_sqrt(V)"))
recipe("stddev_samp")(_spread(1, "f64_sqrt(V)"))


def _shape(template: str) -> Recipe:
    """template: the result, from the count N and the sums of powers M2, M3 and M4; NULL if M2 is 0."""

    def shape_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        shape = accumulators.take(Shape(call.args, call.filter, call.distinct))

        def result(scope: Scope, e: Entry) -> Val:
            words = {f"M{n}": scope.let(shape.at_float(e, n), "sum") for n in (2, 3, 4)}
            flat = scope.let(expr("C == 0 or M2 == 0.0", C=shape.at(e), **words), "flat")
            words["N"] = scope.let(expr("i64_to_f64(C)", C=shape.at(e)), "n")
            return Val(call.type, (scope.let(expr(template, **words), "shape"),), flat)

        return result

    return shape_recipe


recipe("skewness")(_shape("f64_sqrt(N) * f64_div(f64_div(M3, M2), f64_sqrt(M2))"))
recipe("kurtosis")(_shape("N * f64_div(f64_div(M4, M2), M2) - 3.0"))


@recipe("product")
def product_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    product = accumulators.take(FloatProduct(call.args, call.filter, call.distinct))
    empty = _emptiness(accumulators, call)
    return lambda scope, e: Val(call.type, (scope.let(product.at_float(e), "product"),), empty(scope, e))


def _points(template: str, none: str = "C == 0") -> Recipe:
    """template: the result.  none: when there is none. Both use the words X, Y, SXX, SYY, SXY, the count C, and its
    DOUBLE N, which is at least 1."""

    def points_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        points = accumulators.take(
            PairMoments(call.args[::-1] if call.function.y_first else call.args, call.filter, call.distinct)
        )

        def result(scope: Scope, e: Entry) -> Val:
            names = ("X", "Y", "SXX", "SYY", "SXY")
            words = {n: scope.let(points.at_float(e, i), n.lower()) for i, n in enumerate(names, 1)}
            words["C"] = scope.let(points.at(e), "many")
            words["N"] = scope.let(expr("i64_to_f64(max(C, 1))", C=words["C"]), "n")
            null = scope.let(expr(none, **words), "none") if call.nullable else None
            return Val(call.type, (scope.let(expr(template, **words), "value"),), null)

        return result

    return points_recipe


NO_LINE, NO_SPREAD = "C == 0 or SXX == 0.0", "C == 0 or SXX == 0.0 or SYY == 0.0"
BETWEEN = f"SXX * SYY > {LEAST_SQUARE!r} and SXX * SYY < {GREATEST_SQUARE!r}"
CORRELATION = f"f64_div(SXY, pick_f64({BETWEEN}, f64_sqrt(SXX * SYY), f64_sqrt(SXX) * f64_sqrt(SYY)))"
recipe("covar_pop")(_points("f64_div(SXY, N)"))
recipe("covar_samp")(_points("f64_div(SXY, i64_to_f64(max(C - 1, 1)))", "C < 2"))
recipe("corr")(_points(CORRELATION, NO_SPREAD))
recipe("regr_count")(_points("C"))
recipe("regr_avgx")(_points("X"))
recipe("regr_avgy")(_points("Y"))
recipe("regr_sxx")(_points("SXX"))
recipe("regr_syy")(_points("SYY"))
recipe("regr_sxy")(_points("SXY"))
recipe("regr_slope")(_points("f64_div(SXY, SXX)", NO_LINE))
recipe("regr_intercept")(_points("Y - f64_div(SXY, SXX) * X", NO_LINE))
recipe("regr_r2")(_points(f"pick_f64(SYY == 0.0, 1.0, {CORRELATION} * {CORRELATION})", NO_LINE))


def _pick(kind: type[Pick]) -> Recipe:
    def pick_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        pick = accumulators.take(kind(call.args, call.filter, False))  # DISTINCT changes nothing
        assert isinstance(pick, Pick)

        def result(scope: Scope, e: Entry) -> Val:
            value = load_fields(scope, pick.fields, e.address, e.table)[0]
            if not call.nullable:
                return value
            none = scope.let(expr("A == NEVER", A=pick.at(e), NEVER=abi.NEVER), "none")
            null = none if value.null is None else scope.let(expr("N or M", N=none, M=value.null), "null")
            return Val(call.type, value.parts, null)

        return result

    return pick_recipe


recipe("first")(_pick(First))
recipe("last")(_pick(Last))
recipe("any_value")(_pick(FirstPresent))
recipe("arg_min")(_pick(AtLeast))
recipe("arg_max")(_pick(AtGreatest))


def collected(ready: str, template: str) -> Recipe:
    """ready, template: code that prepares the list, and the result: from the table T, the list L and the option F. It
    is a DOUBLE if the name says between."""

    def collected_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
        values = accumulators.take(OrderedArguments(call.args, call.filter, call.distinct))
        assert isinstance(values, OrderedArguments)

        def result(scope: Scope, e: Entry) -> Val:
            where = {"T": e.table, "L": values.list(e), "F": call.options[0] if call.options else 0.5}
            values.needs(scope, expr(ready, **where))
            found = expr(template, **where)
            between = template.startswith("list_between")
            parts_ = (scope.let(found, "value"),) if between else values.value(scope, found)
            null = scope.let(expr("U == 0", U=values.used(e)), "empty") if call.nullable else None
            return Val(call.type, parts_, null)

        return result

    return collected_recipe


recipe("median", "quantile_cont")(collected("list_seek_between(T, L, F)", "list_between(T, L, F)"))


@recipe("string_agg")
def string_agg_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    joined = accumulators.take(JoinedText(call.args, call.filter, False))
    assert isinstance(joined, JoinedText)

    def result(scope: Scope, e: Entry) -> Val:
        address = scope.let(expr("list_items(T, L)", T=e.table, L=joined.list(e)), "text")
        null = scope.let(expr("not H", H=joined.is_there(e)), "empty") if call.nullable else None
        return Val(call.type, (address, scope.let(joined.used(e), "length")), null)

    return result


@recipe("array_agg")
def array_agg_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    """An array of step bytes, made from the list when the result is read."""
    listed = accumulators.take(ListedValues(call.args, call.filter, False))
    assert isinstance(listed, ListedValues)

    def result(scope: Scope, e: Entry) -> Val:
        array = scope.variables(call.type, call.nullable, "array")
        used = scope.let(listed.used(e), "used")
        with scope.when(expr("U > 0", U=used)):
            items = scope.let(expr("list_items(T, L)", T=e.table, L=listed.list(e)), "items")
            made = expr("array_of_items(state, I, U, HOW)", I=items, U=used, HOW=order_of(call.type))
            address = scope.let(made, "made")
            listed.needs(scope, address)
            size = scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size")
            scope.assign(array, Val(call.type, (address, size), ast.Constant(False) if call.nullable else None))
        return array

    return result


@recipe("approx_count_distinct")
def approx_count_distinct_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    sketch = accumulators.take(Sketch(call.args, call.filter, False))
    assert isinstance(sketch, Sketch)
    return lambda scope, e: Val(
        call.type, (scope.let(expr("sketch_count(T, L)", T=e.table, L=sketch.list(e)), "count"),)
    )


def nothing(call: AggregateCall) -> Val:
    """The result over no rows: 0 for COUNT, NULL for the rest."""
    null = None if call.function.never_null else ast.Constant(True)
    return Val(call.type, default_parts(call.type), null)
