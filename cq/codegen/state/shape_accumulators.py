"""The accumulators of SKEWNESS, KURTOSIS and PRODUCT."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.state.accumulators import Accumulator, Entry
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr


class Shape(Accumulator):
    """The number of doubles, their mean, sums of powers of their distances from it: cq/lang/aggregates/shapes.py."""

    names = ("MANY", "MEAN", "SECOND", "THIRD", "FOURTH")

    @property
    def words(self) -> int:
        return 5

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        before = scope.let(self.at(e), "before")
        holes = {"B": scope.let(expr("i64_to_f64(C)", C=before), "b"), **self._sums(scope, e, "")}
        holes["N"] = scope.let(expr("i64_to_f64(C + 1)", C=before), "n")
        holes["AWAY"] = scope.let(expr("V - M", V=value.it, M=holes["M1"]), "away")
        holes["STEP"] = scope.let(expr("f64_div(AWAY, N)", **holes), "step")
        holes["SQ"] = scope.let(expr("STEP * STEP", **holes), "square")
        holes["MORE"] = scope.let(expr("AWAY * STEP * B", **holes), "more")
        self.put(scope, e, expr("C + 1", C=before))
        fourth = "M4 + MORE * SQ * (N * N - 3.0 * N + 3.0) + 6.0 * SQ * M2 - 4.0 * STEP * M3"
        self.put_float(scope, e, expr(fourth, **holes), 4)
        self.put_float(scope, e, expr("M3 + MORE * STEP * (N - 2.0) - 3.0 * STEP * M2", **holes), 3)
        self.put_float(scope, e, expr("M2 + MORE", **holes), 2)
        self.put_float(scope, e, expr("M1 + STEP", **holes), 1)

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        mine, theirs = scope.let(self.at(e), "mine"), scope.let(self.at(other), "theirs")
        with scope.when(expr("T != 0 and M == 0", T=theirs, M=mine)):
            for n in range(self.words):
                self.put(scope, e, self.at(other, n), n)
        with scope.when(expr("T != 0 and M != 0", T=theirs, M=mine)):
            holes = {**self._sums(scope, e, ""), **self._sums(scope, other, "O")}
            holes["A"] = scope.let(expr("i64_to_f64(C)", C=mine), "a")
            holes["B"] = scope.let(expr("i64_to_f64(C)", C=theirs), "b")
            holes["AWAY"] = scope.let(expr("OM1 - M1", **holes), "away")
            holes["STEP"] = scope.let(expr("f64_div(AWAY, A + B)", **holes), "step")
            holes["SQ"] = scope.let(expr("STEP * STEP", **holes), "square")
            holes["MORE"] = scope.let(expr("AWAY * STEP * A * B", **holes), "more")
            self.put(scope, e, expr("M + T", M=mine, T=theirs))
            fourth = scope.let(expr("M4 + OM4 + MORE * SQ * (A * A - A * B + B * B)", **holes), "fourth")
            last = "F + 6.0 * SQ * (A * A * OM2 + B * B * M2) + 4.0 * STEP * (A * OM3 - B * M3)"
            self.put_float(scope, e, expr(last, F=fourth, **holes), 4)
            third = "M3 + OM3 + MORE * STEP * (A - B) + 3.0 * STEP * (A * OM2 - B * M2)"
            self.put_float(scope, e, expr(third, **holes), 3)
            self.put_float(scope, e, expr("M2 + OM2 + MORE", **holes), 2)
            self.put_float(scope, e, expr("M1 + STEP * B", **holes), 1)

    def _sums(self, scope: Scope, e: Entry, prefix: str) -> dict[str, ast.expr]:
        return {f"{prefix}M{n}": scope.let(self.at_float(e, n), "sum") for n in range(1, self.words)}


class FloatProduct(Accumulator):
    """The product of doubles, in the order of the rows."""

    names = ("PRODUCT",)

    def start(self, scope: Scope, e: Entry) -> None:
        self.put_float(scope, e, ast.Constant(1.0))

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        self.put_float(scope, e, expr("P * V", P=self.at_float(e), V=value.it))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        self.put_float(scope, e, expr("P * V", P=self.at_float(e), V=self.at_float(other)))
