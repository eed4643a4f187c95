"""Kernel forms of the aggregates: the words groups keep, and code to add, merge and finish.

An aggregate is made of parts, and equal parts are kept once: COUNT(x), SUM(x), AVG(x) and the emptiness of MIN(x) share
one count of x. A part has words in an entry; a fresh entry's words are 0, `start` sets those that begin otherwise.
Exact sums take two words (128 bits), so adding never fails; whoever reads one checks that it fits.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from cq.codegen.expressions.emit import emit
from cq.codegen.expressions.numbers import compare
from cq.codegen.state.hash_tables import Field, load_field, store_field, words_of
from cq.codegen.values import Row, Scope, Val, default_parts, is_true
from cq.codegen.writer import expr
from cq.lang.expressions import Expr, can_fail
from cq.lang.types import INT64_MAX, INT64_MIN, INTEGER, NAN_BITS, DataType, Kind, Physical, integer_range
from cq.planner.plan.calls import AggregateCall
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.words import Word

_LOWEST_BITS = -0x0010000000000000  # bits of minus infinity


@dataclass(slots=True)
class Entry:
    """An entry in generated code: its address, and its table's for strings."""

    address: ast.expr
    table: ast.expr


@dataclass(slots=True)
class Part:
    """Some words of a group, kept for one argument under one filter, over distinct values or all."""

    arg: Expr | None
    filter: Expr | None
    distinct: bool
    word: int = 0
    owner: str = ""  # what generated code calls its words: by owner, name and number, such as GROUP_COUNT0
    number: int = 0
    names: ClassVar[tuple[str, ...]] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two parts the same."""
        return (type(self), self.arg, self.filter, self.distinct)

    @property
    def words(self) -> int:
        return 1

    @property
    def strings(self) -> tuple[int, ...]:
        """The words where strings begin."""
        return ()

    def start(self, scope: Scope, e: Entry) -> None:
        """Set the words of a fresh entry that do not begin as 0."""

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        """Count one row in; the value is not NULL."""
        raise AssertionError

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        """Count in what another entry holds, whose rows come after this one's."""
        raise AssertionError

    def _word(self, n: int) -> int:
        return Word(self.word + n, f"{self.owner}_{self.names[n]}{self.number}")

    def at(self, e: Entry, n: int = 0) -> ast.expr:
        return expr("ld_i64(E, W)", E=e.address, W=self._word(n))

    def at_float(self, e: Entry) -> ast.expr:
        return expr("ld_f64(E, W)", E=e.address, W=self._word(0))

    def put(self, scope: Scope, e: Entry, value: ast.expr | int, n: int = 0) -> None:
        scope.writer.code("st_i64(E, W, V)", E=e.address, W=self._word(n), V=value)

    def put_float(self, scope: Scope, e: Entry, value: ast.expr) -> None:
        scope.writer.code("st_f64(E, W, V)", E=e.address, W=self._word(0), V=value)


class Counted(Part):
    """How many rows, or how many arguments that are not NULL."""

    names = ("COUNT",)

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        self.put(scope, e, expr("C + 1", C=self.at(e)))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put(scope, e, expr("C + D", C=self.at(e), D=self.at(other)))


class Trues(Counted):
    """How many BOOLEAN arguments are TRUE."""

    names = ("TRUES",)

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
        self.put(scope, e, expr("C + pick(V, 1, 0)", C=self.at(e), V=value.it))


class Total(Part):
    """The exact sum of integers or decimals: low word, high word."""

    names = ("SUM_LO", "SUM_HI")

    @property
    def words(self) -> int:
        return 2

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
        lo, hi = scope.let(self.at(e), "sum_lo"), scope.let(self.at(e, 1), "sum_hi")
        self.put(scope, e, expr("add128_hi(HI, LO, X)", HI=hi, LO=lo, X=value.it), 1)
        self.put(scope, e, expr("wadd(LO, X)", LO=lo, X=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        lo, hi = scope.let(self.at(e), "sum_lo"), scope.let(self.at(e, 1), "sum_hi")
        lo2, hi2 = scope.let(self.at(other), "other_lo"), scope.let(self.at(other, 1), "other_hi")
        self.put(scope, e, expr("add128w_hi(HI, LO, H2, L2)", HI=hi, LO=lo, H2=hi2, L2=lo2), 1)
        self.put(scope, e, expr("wadd(LO, L2)", LO=lo, L2=lo2))


class FloatTotal(Part):
    """The sum of doubles, in the order of the rows."""

    names = ("SUM",)

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
        self.put_float(scope, e, expr("S + V", S=self.at_float(e), V=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put_float(scope, e, expr("S + V", S=self.at_float(e), V=self.at_float(other)))


class _Best(Part):
    """The smallest or largest argument; the first of equals stays. Numbers begin at the far end of their order."""

    name = ""  # the comparison that makes a value better

    @property
    def type(self) -> DataType:
        assert self.arg is not None
        return self.arg.type

    @property
    def words(self) -> int:
        return 3 if self.type.physical is Physical.BYTES else words_of(self.type)

    @property
    def strings(self) -> tuple[int, ...]:
        return (self.word,) if self.type.physical is Physical.BYTES else ()

    @property
    def field(self) -> Field:
        return Field(self.type, self._word(0))

    def start(self, scope: Scope, e: Entry) -> None:
        least = self.name == "less"
        if self.type.physical is Physical.F64:
            self.put(scope, e, NAN_BITS if least else _LOWEST_BITS)
        elif self.type.kind is Kind.BOOLEAN:
            self.put(scope, e, int(least))
        elif self.type.physical is Physical.I64:
            low, high = _stored_range(self.type)  # what a NULL result stores must fit its column
            self.put(scope, e, high if least else low)

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
        if self.type.physical is Physical.I64 and self.type.kind is not Kind.BOOLEAN:
            pick = "min_i64(H, V)" if self.name == "less" else "max_i64(H, V)"
            self.put(scope, e, expr(pick, H=self.at(e), V=value.it))
            return
        if self.type.is_float:  # an extreme is never -0.0
            value = Val(value.type, (scope.let(expr("V + 0.0", V=value.it), "value"),))
        held = load_field(scope, self.field, e.address, e.table, None)
        better = compare(scope, value, held, self.name)
        if self.type.physical is Physical.BYTES:  # the third word says that there is one
            with scope.when(expr("HAS == 0 or BETTER", HAS=self.at(e, 2), BETTER=better)):
                store_field(scope, self.field, e.address, e.table, value)
                self.put(scope, e, 1, 2)
        else:
            with scope.when(better):
                store_field(scope, self.field, e.address, e.table, value)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        value = load_field(scope, self.field, other.address, other.table, None)
        if self.type.physical is not Physical.BYTES:
            self.add(scope, e, value)
            return
        with scope.when(expr("HAS != 0", HAS=self.at(other, 2))):
            if ast.dump(e.table) == ast.dump(other.table):
                self._exchange(scope, e, other, value)
            else:
                self.add(scope, e, value)

    def _exchange(self, scope: Scope, e: Entry, other: Entry, value: Val) -> None:
        """The better one of two texts of one table, whose bytes cannot be copied within it: entries change texts."""
        held = load_field(scope, self.field, e.address, e.table, None)
        better = compare(scope, value, held, self.name)
        with scope.when(expr("HAS == 0 or BETTER", HAS=self.at(e, 2), BETTER=better)):
            for n in range(self.words):
                mine = scope.let(self.at(e, n))
                self.put(scope, e, self.at(other, n), n)
                self.put(scope, other, mine, n)


def _stored_range(type_: DataType) -> tuple[int, int]:
    """The least and greatest value that a column of the type can hold."""
    if type_.kind in {Kind.DATE, Kind.INTERVAL_MONTH}:
        return integer_range(INTEGER)
    return integer_range(type_) if type_.is_integer else (INT64_MIN, INT64_MAX)


class Least(_Best):
    name = "less"
    names = ("MIN", "MIN_TAIL", "MIN_IS_THERE")


class Greatest(_Best):
    name = "greater"
    names = ("MAX", "MAX_TAIL", "MAX_IS_THERE")


Result = Callable[[Scope, Entry], Val]


@dataclass(slots=True)
class Parts:
    """The parts of several calls, each kept once, and how to read each call's result from them."""

    first_word: int
    owner: str  # of their words, for their names
    parts: list[Part] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    @staticmethod
    def of(calls: Sequence[AggregateCall], first_word: int, owner: str = "GROUP") -> Parts:
        made = Parts(first_word, owner)
        for call in calls:
            made.results.append(RECIPES[call.function.native](made, call))
        return made

    @property
    def next_word(self) -> int:
        return self.parts[-1].word + self.parts[-1].words if self.parts else self.first_word

    @property
    def strings(self) -> tuple[int, ...]:
        return tuple(w for p in self.parts for w in p.strings)

    def take(self, part: Part) -> Part:
        """This part, or the equal one there is."""
        for known in self.parts:
            if known.key == part.key:
                return known
        part.word, part.owner, part.number = self.next_word, self.owner, len(self.parts)
        self.parts.append(part)
        return part

    def start(self, scope: Scope, e: Entry) -> None:
        """Make a fresh entry one of no rows."""
        for part in self.parts:
            part.start(scope, e)

    def add(
        self, scope: Scope, e: Entry, row: Row, once: Callable[[Part, Val, Callable[[], None]], None] | None = None
    ) -> None:
        """Count a row into every part. once(part, value, then): writes `then` for the first row of a value."""
        for part in self.parts:
            with scope.block():
                self._add(scope, e, row, part, once)

    def _add(
        self, scope: Scope, e: Entry, row: Row, part: Part,
        once: Callable[[Part, Val, Callable[[], None]], None] | None,
    ) -> None:  # fmt: skip
        conditions: list[ast.expr] = []
        if part.filter is not None:
            conditions.append(is_true(emit(scope, row, part.filter)))

        def counted() -> None:
            value = emit(scope, row, part.arg) if part.arg is not None else None
            if value is not None and value.null is not None:
                present = Val(value.type, value.parts)
                with scope.when(expr("not N", N=value.null)):
                    put(present)
            else:
                put(value)

        def put(value: Val | None) -> None:
            if part.distinct:
                assert once is not None and value is not None
                once(part, value, lambda: part.add(scope, e, value))
            else:
                part.add(scope, e, value)

        if conditions:
            with scope.when(conditions[0]):
                counted()
        else:
            counted()

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        """Count in all another entry holds."""
        for part in self.parts:
            with scope.block():
                part.merge(scope, e, other)

    def values(self, scope: Scope, e: Entry) -> list[Val]:
        """Every call's result."""
        return [result(scope, e) for result in self.results]


Recipe = Callable[[Parts, AggregateCall], Result]
RECIPES: dict[str, Recipe] = {}


def recipe(name: str) -> Callable[[Recipe], Recipe]:
    """Register how a call is made of parts, under the name its registry entry gives in `native`."""

    def register(function: Recipe) -> Recipe:
        RECIPES[name] = function
        return function

    return register


def _count(parts: Parts, call: AggregateCall) -> Part:
    """The count of the call's rows: shared with COUNT(*) where no argument can be NULL."""
    arg = call.args[0] if call.args else None
    if arg is not None and not arg.nullable and not call.distinct:
        arg = None
    return parts.take(Counted(arg, call.filter, call.distinct))


def _emptiness(parts: Parts, call: AggregateCall) -> Callable[[Scope, Entry], ast.expr | None]:
    """Whether no argument was added; None where a group always has one."""
    if call.filter is None and not call.args[0].nullable:
        return lambda scope, e: None
    count = _count(parts, call)
    return lambda scope, e: scope.let(expr("C == 0", C=count.at(e)), "empty")


@recipe("count")
def count_recipe(parts: Parts, call: AggregateCall) -> Result:
    fails = bool(call.args) and can_fail(call.args[0])  # then it is computed, NULL or not
    count = parts.take(Counted(call.args[0], call.filter, call.distinct)) if fails else _count(parts, call)
    return lambda scope, e: Val(call.type, (scope.let(count.at(e), "count"),))


def _total(parts: Parts, call: AggregateCall) -> Part:
    kind = FloatTotal if call.args[0].type.is_float else Total
    return parts.take(kind(call.args[0], call.filter, call.distinct))


@recipe("sum")
def sum_recipe(parts: Parts, call: AggregateCall) -> Result:
    total = _total(parts, call)
    empty = _emptiness(parts, call)

    def result(scope: Scope, e: Entry) -> Val:
        null = empty(scope, e)
        if isinstance(total, FloatTotal):
            value = scope.let(total.at_float(e), "sum")
            if call.type.kind is Kind.REAL:
                value = scope.let(expr("f32_round(V)", V=value), "sum")
            return Val(call.type, (value,), null)
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
def avg_recipe(parts: Parts, call: AggregateCall) -> Result:
    total, count = _total(parts, call), _count(parts, call)
    empty = _emptiness(parts, call)

    def result(scope: Scope, e: Entry) -> Val:
        null = empty(scope, e)
        many = scope.let(expr("max(C, 1)", C=count.at(e)), "count")
        if isinstance(total, FloatTotal):
            mean = scope.let(expr("f64_div(S, i64_to_f64(C))", S=total.at_float(e), C=many), "mean")
            return Val(call.type, (mean,), null)
        lo, hi = scope.let(total.at(e), "sum_lo"), scope.let(total.at(e, 1), "sum_hi")
        if call.type.is_float:
            return Val(call.type, (scope.let(expr("avg_i128(HI, LO, C)", HI=hi, LO=lo, C=many), "mean"),), null)
        return Val(call.type, (_decimal_mean(scope, call, hi, lo, many),), null)

    return result


def _decimal_mean(scope: Scope, call: AggregateCall, hi: ast.expr, lo: ast.expr, many: ast.expr) -> ast.expr:
    """The exact sum brought to the result's scale, divided, halves away from zero."""
    scale = 10 ** (call.type.scale - call.args[0].type.scale)
    wide_hi = scope.let(expr("wadd(wmul(HI, K), umulhi(LO, K))", HI=hi, LO=lo, K=scale), "wide_hi")
    wide_lo = scope.let(expr("wmul(LO, K)", LO=lo, K=scale), "wide_lo")
    place = expr("state + W * 8", W=abi.STATE_RESULT)
    with scope.when(expr("div_half_up(HI, LO, C, AT) == 0", HI=wide_hi, LO=wide_lo, C=many, AT=place)):
        scope.fail(ErrorCode.OVERFLOW, f"the average does not fit {call.type}", call.span)
    return scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "mean")


def _best(kind: type[_Best]) -> Recipe:
    def best_recipe(parts: Parts, call: AggregateCall) -> Result:
        empty = _emptiness(parts, call)
        best = parts.take(kind(call.args[0], call.filter, False))  # DISTINCT changes nothing
        assert isinstance(best, _Best)
        return lambda scope, e: Val(
            call.type, load_field(scope, best.field, e.address, e.table, None).parts, empty(scope, e)
        )

    return best_recipe


RECIPES["min"] = _best(Least)
RECIPES["max"] = _best(Greatest)


def _bool(template: str) -> Recipe:
    def bool_recipe(parts: Parts, call: AggregateCall) -> Result:
        count, trues = _count(parts, call), parts.take(Trues(call.args[0], call.filter, False))
        empty = _emptiness(parts, call)
        return lambda scope, e: Val(
            call.type, (scope.let(expr(template, T=trues.at(e), C=count.at(e))),), empty(scope, e)
        )

    return bool_recipe


RECIPES["bool_or"] = _bool("T != 0")
RECIPES["bool_and"] = _bool("T == C")


def nothing(call: AggregateCall) -> Val:
    """The result over no rows: 0 for COUNT, NULL for the rest."""
    null = None if call.function.never_null else ast.Constant(True)
    return Val(call.type, default_parts(call.type), null)
