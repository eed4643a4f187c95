"""The words that groups keep of their rows: what aggregates are made of (cq/codegen/state/aggregates.py).

A part has words in an entry; a fresh entry's words are 0, `start` sets those that begin otherwise. Exact sums take two
words (128 bits), so adding never fails; whoever reads one checks that it fits.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import ClassVar

from cq.codegen.expressions.numbers import compare
from cq.codegen.state.hash_tables import Field, load_field, store_field, words_of
from cq.codegen.values import Scope, Val, high_low, words_of_value
from cq.codegen.writer import expr
from cq.lang.expressions import Expr
from cq.lang.types import INT64_MAX, INT64_MIN, INTEGER, NAN_BITS, DataType, Kind, Physical, integer_range
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

    def at_float(self, e: Entry, n: int = 0) -> ast.expr:
        return expr("ld_f64(E, W)", E=e.address, W=self._word(n))

    def put(self, scope: Scope, e: Entry, value: ast.expr | int, n: int = 0) -> None:
        scope.writer.code("st_i64(E, W, V)", E=e.address, W=self._word(n), V=value)

    def put_float(self, scope: Scope, e: Entry, value: ast.expr, n: int = 0) -> None:
        scope.writer.code("st_f64(E, W, V)", E=e.address, W=self._word(n), V=value)


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


class WideTotal(Part):
    """The exact sum of decimals of two words: low word, high word, and a third for what passes beyond 128 bits."""

    names = ("SUM_LO", "SUM_HI", "SUM_TOP")

    @property
    def words(self) -> int:
        return 3

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
        high, low = high_low(value)
        self._take(scope, e, expr("H >> 63", H=high), high, low)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self._take(scope, e, self.at(other, 2), self.at(other, 1), self.at(other))

    def _take(self, scope: Scope, e: Entry, top: ast.expr, high: ast.expr, low: ast.expr) -> None:
        code = "long_sum_add(E + W * 8, T, H, L)"
        scope.writer.code(code, E=e.address, W=self._word(0), T=top, H=high, L=low)


class FloatTotal(Part):
    """The sum of doubles, in the order of the rows."""

    names = ("SUM",)

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
        self.put_float(scope, e, expr("S + V", S=self.at_float(e), V=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put_float(scope, e, expr("S + V", S=self.at_float(e), V=self.at_float(other)))


class Moments(Part):
    """How many doubles, their mean, the sum of their squared distances from it: cq/lang/aggregates/statistics.py."""

    names = ("MANY", "MEAN", "SQUARES")

    @property
    def words(self) -> int:
        return 3

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
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


class Bits(Part):
    """Integers put together bit by bit."""

    template = ""
    first = 0  # what changes nothing

    def start(self, scope: Scope, e: Entry) -> None:
        if self.first != 0:
            self.put(scope, e, self.first)

    def add(self, scope: Scope, e: Entry, value: Val | None) -> None:
        assert value is not None
        self.put(scope, e, expr(self.template, H=self.at(e), V=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put(scope, e, expr(self.template, H=self.at(e), V=self.at(other)))


class AllBits(Bits):
    names, template, first = ("ALL_BITS",), "H & V", -1


class SomeBits(Bits):
    names, template = ("SOME_BITS",), "H | V"


class OddBits(Bits):
    names, template = ("ODD_BITS",), "H ^ V"


class Best(Part):
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
        elif self.type.physical is Physical.I128:
            most = 10**self.type.precision - 1
            for n, word in enumerate(words_of_value(most if least else -most)):
                self.put(scope, e, word, n)
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


class Least(Best):
    name = "less"
    names = ("MIN", "MIN_TAIL", "MIN_IS_THERE")


class Greatest(Best):
    name = "greater"
    names = ("MAX", "MAX_TAIL", "MAX_IS_THERE")
