"""The words that groups keep of their rows: the parts of aggregates (cq/codegen/state/aggregates.py).

An accumulator has words in an entry; a new entry's words are 0, and `start` sets those that begin otherwise. Exact
sums take two words (128 bits), so adding never fails; the reader of one checks that it fits. Accumulators that grow
with their group are in list_accumulators.py.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import ClassVar

from cq.codegen.expressions.numbers import compare
from cq.codegen.state.hash_tables import (
    EntryField,
    lay_out,
    load_field,
    load_fields,
    outlives,
    store_field,
    store_nulls,
    string_words,
    words_of,
)
from cq.codegen.values import Scope, Val, high_low, words_of_value
from cq.codegen.writer import expr
from cq.lang.expressions import Expr
from cq.lang.types import BIGINT, INT64_MAX, INT64_MIN, INTEGER, NAN_BITS, DataType, Kind, Physical, integer_range
from cq.records import dataclass
from cq.runtime.layout import abi
from cq.runtime.layout.words import Word, beside

_LOWEST_BITS = -0x0010000000000000  # bits of minus infinity


@dataclass(slots=True)
class Entry:
    """An entry in generated code: its address, and its table's for strings. keeps: it must not be changed."""

    address: ast.expr
    table: ast.expr
    keeps: bool = False

    def shares_table(self, other: Entry) -> bool:
        """Whether both entries belong to one table."""
        return ast.dump(self.table) == ast.dump(other.table)


@dataclass(slots=True)
class Accumulator:
    """Some words of a group, kept for some arguments under one filter, over distinct values or all."""

    args: tuple[Expr, ...]
    filter: Expr | None
    distinct: bool
    word: int = 0
    owner: str = ""  # the prefix of its words' names, which are owner, name and number, such as GROUP_COUNT0
    number: int = 0
    names: ClassVar[tuple[str, ...]] = ()
    keeps_null: ClassVar[bool] = False
    by_position: ClassVar[bool] = False  # the first value is the row's arrival, before those of the arguments

    @property
    def key(self) -> tuple[object, ...]:
        """Two accumulators with equal keys are the same."""
        return (type(self), self.args, self.filter, self.distinct)

    @property
    def words(self) -> int:
        return 1

    @property
    def strings(self) -> tuple[int, ...]:
        """The words where strings begin."""
        return ()

    @property
    def arrivals(self) -> tuple[int, ...]:
        """The words that hold the arrival of a row, or NEVER."""
        return ()

    @property
    def lists(self) -> tuple[int, ...]:
        """The words that begin lists to which a row appends."""
        return ()

    def start(self, scope: Scope, e: Entry) -> None:
        """Set the words of a new entry that do not begin as 0."""

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        """Add one row; the values of the arguments are not NULL, unless the accumulator keeps NULL."""
        raise AssertionError

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        """Add the contents of another entry, whose rows come after this one's. Without `keeps` the other may change."""
        raise AssertionError

    def clear(self, scope: Scope, e: Entry) -> None:
        """Reset an entry to no rows; texts stay until others take their places."""
        texts = {n for word in self.strings for n in (word, word + 1)}
        for n in range(self.words):
            if self.word + n not in texts:
                scope.writer.code(
                    "st_i64(E, W, 0)", E=e.address, W=beside(self._word(0), n, f"AND{n}") if n else self._word(0)
                )
        self.start(scope, e)

    def swap(self, scope: Scope, e: Entry, other: Entry) -> None:
        """Exchange the words of two entries of one table: bytes of text cannot be copied within it."""
        for n in range(self.words):
            word = beside(self._word(0), n, f"AND{n}") if n else self._word(0)
            mine = scope.let(expr("ld_i64(E, W)", E=e.address, W=word))
            scope.writer.code("st_i64(E, W, ld_i64(O, W))", E=e.address, W=word, O=other.address)
            scope.writer.code("st_i64(O, W, V)", O=other.address, W=word, V=mine)

    def _word(self, n: int) -> int:
        return Word(self.word + n, f"{self.owner}_{self.names[n]}{self.number}")

    def at(self, e: Entry, n: int = 0) -> ast.expr:
        return expr("ld_i64(E, W)", E=e.address, W=self._word(n))

    def at_float(self, e: Entry, n: int = 0) -> ast.expr:
        return expr("ld_f64(E, W)", E=e.address, W=self._word(n))

    def put(self, scope: Scope, e: Entry, value: ast.expr | int, n: int = 0) -> None:
        scope.writer.code("st_i64(E, W, V)", E=e.address, W=self._word(n), V=value)

    def put_float(self, scope: Scope, e: Entry, value: ast.expr, n: int = 0) -> None:
        scope.writer.code("st_f64(E, W, V)", E=e.address, W=self._word(n), V=value)


class Counted(Accumulator):
    """The number of rows, or of non-NULL arguments."""

    names = ("COUNT",)

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        self.put(scope, e, expr("C + 1", C=self.at(e)))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put(scope, e, expr("C + D", C=self.at(e), D=self.at(other)))


class Trues(Counted):
    """The number of BOOLEAN arguments that are TRUE."""

    names = ("TRUES",)

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        self.put(scope, e, expr("C + pick(V, 1, 0)", C=self.at(e), V=value.it))


class Total(Accumulator):
    """The exact sum of integers or decimals: low word, high word."""

    names = ("SUM_LO", "SUM_HI")

    @property
    def words(self) -> int:
        return 2

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        lo, hi = scope.let(self.at(e), "sum_lo"), scope.let(self.at(e, 1), "sum_hi")
        self.put(scope, e, expr("add128_hi(HI, LO, X)", HI=hi, LO=lo, X=value.it), 1)
        self.put(scope, e, expr("wadd(LO, X)", LO=lo, X=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        lo, hi = scope.let(self.at(e), "sum_lo"), scope.let(self.at(e, 1), "sum_hi")
        lo2, hi2 = scope.let(self.at(other), "other_lo"), scope.let(self.at(other, 1), "other_hi")
        self.put(scope, e, expr("add128w_hi(HI, LO, H2, L2)", HI=hi, LO=lo, H2=hi2, L2=lo2), 1)
        self.put(scope, e, expr("wadd(LO, L2)", LO=lo, L2=lo2))


class WideTotal(Accumulator):
    """The exact sum of decimals of two words: low word, high word, and a third for what exceeds 128 bits."""

    names = ("SUM_LO", "SUM_HI", "SUM_TOP")

    @property
    def words(self) -> int:
        return 3

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        high, low = high_low(value)
        self._take(scope, e, expr("H >> 63", H=high), high, low)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self._take(scope, e, self.at(other, 2), self.at(other, 1), self.at(other))

    def _take(self, scope: Scope, e: Entry, top: ast.expr, high: ast.expr, low: ast.expr) -> None:
        code = "long_sum_add(E + W * 8, T, H, L)"
        scope.writer.code(code, E=e.address, W=self._word(0), T=top, H=high, L=low)


class FloatTotal(Accumulator):
    """The sum of doubles, in the order of the rows."""

    names = ("SUM",)

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        self.put_float(scope, e, expr("S + V", S=self.at_float(e), V=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put_float(scope, e, expr("S + V", S=self.at_float(e), V=self.at_float(other)))


class Moments(Accumulator):
    """The number of doubles, their mean, their sum of squared distances from it: cq/lang/aggregates/statistics.py."""

    names = ("MANY", "MEAN", "SQUARES")

    @property
    def words(self) -> int:
        return 3

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        many = scope.let(expr("C + 1", C=self.at(e)), "many")
        mean = scope.let(self.at_float(e, 1), "mean")
        away = scope.let(expr("V - M", V=value.it, M=mean), "away")
        mean = scope.let(expr("M + f64_div(A, i64_to_f64(C))", M=mean, A=away, C=many), "mean")
        self.put(scope, e, many)
        self.put_float(scope, e, mean, 1)
        squares = expr("S + A * (V - M)", S=self.at_float(e, 2), A=away, V=value.it, M=mean)
        self.put_float(scope, e, squares, 2)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        mine, theirs = scope.let(self.at(e), "mine"), scope.let(self.at(other), "theirs")
        with scope.when(expr("T != 0 and M == 0", T=theirs, M=mine)):
            for n in range(self.words):
                self.put(scope, e, self.at(other, n), n)
        with scope.when(expr("T != 0 and M != 0", T=theirs, M=mine)):
            many = scope.let(expr("M + T", M=mine, T=theirs), "many")
            mean = scope.let(self.at_float(e, 1), "mean")
            away = scope.let(expr("O - M", O=self.at_float(other, 1), M=mean), "away")
            share = scope.let(expr("f64_div(i64_to_f64(T), i64_to_f64(C))", T=theirs, C=many), "share")
            self.put(scope, e, many)
            self.put_float(scope, e, expr("M + A * S", M=mean, A=away, S=share), 1)
            squares = expr(
                "P + Q + A * A * (i64_to_f64(M) * S)",
                P=self.at_float(e, 2), Q=self.at_float(other, 2), A=away, M=mine, S=share,
            )  # fmt: skip
            self.put_float(scope, e, squares, 2)


class PairMoments(Accumulator):
    """The number of pairs of doubles, their means, the sums of products of distances: cq/lang/aggregates/pairs.py."""

    names = ("POINTS", "MEAN_X", "MEAN_Y", "SXX", "SYY", "SXY")

    @property
    def words(self) -> int:
        return 6

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        x, y = (v.it for v in values)
        many = scope.let(expr("C + 1", C=self.at(e)), "many")
        mean_x, mean_y = (scope.let(self.at_float(e, n), "mean") for n in (1, 2))
        from_x, from_y = (scope.let(expr("V - M", V=v, M=m), "away") for v, m in ((x, mean_x), (y, mean_y)))
        moved = expr("i64_to_f64(C)", C=many)
        mean_x, mean_y = (
            scope.let(expr("M + f64_div(A, C)", M=m, A=a, C=moved), "mean")
            for m, a in ((mean_x, from_x), (mean_y, from_y))
        )
        behind_y = scope.let(expr("V - M", V=y, M=mean_y), "away")
        self.put(scope, e, many)
        self.put_float(scope, e, mean_x, 1)
        self.put_float(scope, e, mean_y, 2)
        self.put_float(scope, e, expr("S + A * (V - M)", S=self.at_float(e, 3), A=from_x, V=x, M=mean_x), 3)
        self.put_float(scope, e, expr("S + A * B", S=self.at_float(e, 4), A=from_y, B=behind_y), 4)
        self.put_float(scope, e, expr("S + A * B", S=self.at_float(e, 5), A=from_x, B=behind_y), 5)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        mine, theirs = scope.let(self.at(e), "mine"), scope.let(self.at(other), "theirs")
        with scope.when(expr("T != 0 and M == 0", T=theirs, M=mine)):
            for n in range(self.words):
                self.put(scope, e, self.at(other, n), n)
        with scope.when(expr("T != 0 and M != 0", T=theirs, M=mine)):
            many = scope.let(expr("M + T", M=mine, T=theirs), "many")
            share = scope.let(expr("f64_div(i64_to_f64(T), i64_to_f64(C))", T=theirs, C=many), "share")
            weight = scope.let(expr("i64_to_f64(M) * S", M=mine, S=share), "weight")
            x, y = (scope.let(expr("O - M", O=self.at_float(other, n), M=self.at_float(e, n)), "away") for n in (1, 2))
            self.put(scope, e, many)
            for n, away in ((1, x), (2, y)):
                self.put_float(scope, e, expr("M + A * S", M=self.at_float(e, n), A=away, S=share), n)
            for n, a, b in ((3, x, x), (4, y, y), (5, x, y)):
                held, added = self.at_float(e, n), self.at_float(other, n)
                self.put_float(scope, e, expr("P + Q + A * B * W", P=held, Q=added, A=a, B=b, W=weight), n)


class Bits(Accumulator):
    """Integers combined bit by bit."""

    template = ""
    first = 0  # the neutral element

    def start(self, scope: Scope, e: Entry) -> None:
        if self.first != 0:
            self.put(scope, e, self.first)

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        self.put(scope, e, expr(self.template, H=self.at(e), V=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put(scope, e, expr(self.template, H=self.at(e), V=self.at(other)))


class AllBits(Bits):
    names, template, first = ("ALL_BITS",), "H & V", -1


class SomeBits(Bits):
    names, template = ("SOME_BITS",), "H | V"


class OddBits(Bits):
    names, template = ("ODD_BITS",), "H ^ V"


class Best(Accumulator):
    """The smallest or largest argument; among equals, the first. Numbers begin at the far end of their order."""

    name = ""  # the comparison that makes a value better

    @property
    def type(self) -> DataType:
        return self.args[0].type

    @property
    def words(self) -> int:
        return 3 if self.type.physical is Physical.BYTES else words_of(self.type)

    @property
    def strings(self) -> tuple[int, ...]:
        return (self.word,) if self.type.physical is Physical.BYTES else ()

    @property
    def field(self) -> EntryField:
        return EntryField(self.type, self._word(0))

    def start(self, scope: Scope, e: Entry) -> None:
        least = self.name == "less"
        if self.type.physical is Physical.F64:
            self.put(scope, e, NAN_BITS if least else _LOWEST_BITS)
        elif self.type.kind is Kind.BOOLEAN:
            self.put(scope, e, int(least))
        elif self.type.physical is Physical.I128:
            most = 10**self.type.precision - 1
            for n, word in enumerate(words_of_value(most if least else -most)):
                self.put(scope, e, word, n)
        elif self.type.physical is Physical.I64:
            low, high = _stored_range(self.type)  # the value stored for a NULL result must fit its column
            self.put(scope, e, high if least else low)

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        if self.type.physical is Physical.I64 and self.type.kind is not Kind.BOOLEAN:
            pick = "min_i64(H, V)" if self.name == "less" else "max_i64(H, V)"
            self.put(scope, e, expr(pick, H=self.at(e), V=value.it))
            return
        if self.type.is_float:  # an extreme is never -0.0
            value = Val(value.type, (scope.let(expr("V + 0.0", V=value.it), "value"),))
        held = load_field(scope, self.field, e.address, e.table, None)
        better = compare(scope, value, held, self.name)
        if self.type.physical is Physical.BYTES:  # the third word says whether there is one
            with scope.when(expr("HAS == 0 or BETTER", HAS=self.at(e, 2), BETTER=better)):
                store_field(scope, self.field, e.address, e.table, value)
                self.put(scope, e, 1, 2)
        else:
            with scope.when(better):
                store_field(scope, self.field, e.address, e.table, value)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        value = load_field(scope, self.field, other.address, other.table, None)
        if self.type.physical is not Physical.BYTES:
            self.add(scope, e, (value,))
            return
        with scope.when(expr("HAS != 0", HAS=self.at(other, 2))):
            if e.shares_table(other) and not other.keeps:
                held = load_field(scope, self.field, e.address, e.table, None)
                better = compare(scope, value, held, self.name)
                with scope.when(expr("HAS == 0 or BETTER", HAS=self.at(e, 2), BETTER=better)):
                    self.swap(scope, e, other)
            else:
                self.add(scope, e, (outlives(scope, value) if e.shares_table(other) else value,))


def _stored_range(type_: DataType) -> tuple[int, int]:
    """The least and greatest value that a column of the type can hold."""
    if type_.kind in {Kind.DATE, Kind.INTERVAL_MONTH}:
        return integer_range(INTEGER)
    return integer_range(type_) if type_.is_integer else (INT64_MIN, INT64_MAX)


class Least(Best):
    name = "less"
    names = ("MIN", "MIN_TAIL", "MIN_IS_THERE")


class Greatest(Best):
    name = "greater"
    names = ("MAX", "MAX_TAIL", "MAX_IS_THERE")


class Pick(Accumulator):
    """The arguments of one row, the first of which is the result, and that row's arrival: NEVER while there is none."""

    names = ("ARRIVAL",)
    by_position = True

    @property
    def _columns(self) -> list[tuple[DataType, bool]]:
        return [(a.type, a.nullable and self.keeps_null) for a in self.args]

    @property
    def words(self) -> int:
        return lay_out(self._columns, 1)[1]

    @property
    def fields(self) -> tuple[EntryField, ...]:
        """Where the arguments are."""
        return lay_out(self._columns, self.word + 1, f"{self.owner}_PICK{self.number}_")[0]

    @property
    def strings(self) -> tuple[int, ...]:
        return string_words(self.fields)

    @property
    def arrivals(self) -> tuple[int, ...]:
        return (self.word,)

    def start(self, scope: Scope, e: Entry) -> None:
        self.put(scope, e, abi.NEVER)

    def better(self, scope: Scope, e: Entry, values: Sequence[Val]) -> ast.expr:
        """Whether a row replaces the current one."""
        raise AssertionError

    def _takes(self, scope: Scope, e: Entry, values: Sequence[Val]) -> ast.expr:
        better = self.better(scope, e, values)
        return expr("A == NEVER or BETTER", A=self.at(e), NEVER=abi.NEVER, BETTER=better)

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        arrival, *row = values
        with scope.when(self._takes(scope, e, values)):
            self.put(scope, e, arrival.it)
            for f, value in zip(self.fields, row, strict=True):
                store_field(scope, f, e.address, e.table, value)
            store_nulls(scope, self.fields, e.address, row)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        arrival = scope.let(self.at(other), "arrival_")
        with scope.when(expr("A != NEVER", A=arrival, NEVER=abi.NEVER)):
            row = load_fields(scope, self.fields, other.address, other.table)
            values = [Val(BIGINT, (arrival,)), *row]
            if self.strings and e.shares_table(other) and not other.keeps:
                with scope.when(self._takes(scope, e, values)):
                    self.swap(scope, e, other)
            else:
                self.add(scope, e, [outlives(scope, v) for v in values] if e.shares_table(other) else values)


class FirstPresent(Pick):
    """The argument of the first row by position that has one."""

    def better(self, scope: Scope, e: Entry, values: Sequence[Val]) -> ast.expr:
        return expr("V < A", V=values[0].it, A=self.at(e))


class First(FirstPresent):
    keeps_null = True


class Last(Pick):
    keeps_null = True

    def better(self, scope: Scope, e: Entry, values: Sequence[Val]) -> ast.expr:
        return expr("V >= A", V=values[0].it, A=self.at(e))


class Extreme(Pick):
    """The first argument of the row whose second is best; among several rows, the first by position."""

    name = ""  # the comparison that makes a value better

    def better(self, scope: Scope, e: Entry, values: Sequence[Val]) -> ast.expr:
        arrival, _, value = values
        _, held = load_fields(scope, self.fields, e.address, e.table)
        better, equal = compare(scope, value, held, self.name), compare(scope, value, held, "equal")
        return expr("BETTER or EQUAL and V < A", BETTER=better, EQUAL=equal, V=arrival.it, A=self.at(e))


class AtLeast(Extreme):
    name = "less"


class AtGreatest(Extreme):
    name = "greater"
