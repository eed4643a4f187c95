"""Arrays that are looped over together, as in UNNEST of several."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.expressions.arrays import count_of, element, has_nulls
from cq.codegen.values import Scope, Val, null_of
from cq.codegen.writer import expr
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays in locals, with what is the same for all of their elements.

    most: the length of the longest.  whole: whether all have one length and no NULL among the elements.
    """

    values: Sequence[Val]
    counts: Sequence[ast.expr]
    most: ast.expr
    whole: ast.expr

    @staticmethod
    def measured(scope: Scope, values: Sequence[Val]) -> Arrays:
        """A NULL among the arrays is empty."""
        writer = scope.writer
        names = [writer.let(ast.Constant(0), "count") for _ in values]
        nulls = writer.let(ast.Constant(False), "nulls")
        for array, name in zip(values, names, strict=True):
            with scope.when(ast.Constant(True) if array.null is None else expr("not N", N=array.null)):
                writer.set(name, count_of(scope, array))
                writer.set(nulls, expr("N or A", N=nulls, A=has_nulls(array, ast.Name(name, ast.Load()))))
        first, *others = counts = [ast.Name(name, ast.Load()) for name in names]
        most: ast.expr = first
        whole: ast.expr = expr("not N", N=nulls)
        for count in others:
            most = expr("max(M, C)", M=most, C=count)
            whole = expr("W and C == D", W=whole, C=first, D=count)
        return Arrays(values, counts, scope.let(most, "most"), scope.let(whole, "whole"))

    def take(self, scope: Scope, variables: Sequence[Val], index: ast.expr, whole: bool) -> None:
        """Load the elements at an index into the first of these variables; NULL if an array is too short.

        whole: whether the arrays are known to be whole: all elements exist then and none is NULL.
        """
        for variable, array, count in zip(variables, self.values, self.counts, strict=False):
            if whole:
                scope.assign(variable, element(scope, array, count, index, whole=True))
                continue
            scope.assign(variable, null_of(variable.type))
            with scope.when(expr("P < C", P=index, C=count)):
                scope.assign(variable, element(scope, array, count, index))
