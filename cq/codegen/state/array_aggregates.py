"""Kernel forms of the aggregates that gather all values of a group as an array: of texts and of wide DECIMALs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from cq.codegen.expressions.arrays import cast_array, count_of, element, order_of
from cq.codegen.state.accumulators import Entry
from cq.codegen.state.aggregates import RECIPES, Accumulators, Recipe, Result, collected, recipe
from cq.codegen.state.list_accumulators import ListedValues, OrderedArguments
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.entries import refuse
from cq.errors import NOWHERE
from cq.lang.aggregates import all_aggregates
from cq.lang.aggregates.collected import is_word
from cq.lang.aggregates.user import FORM as USER_AGGREGATE
from cq.lang.types import VARCHAR, array
from cq.planner.plan.calls import AggregateCall
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode


class Gathered(ListedValues):
    """All values of the argument, in any order, stored as in ListedValues, without NULLs."""

    names = ("GATHERED", "GATHERED_PLACE", "GATHERED_BYTES", "GATHERED_ORDERED")
    keeps_null = False

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        OrderedArguments.merge(self, scope, e, other)


def gathers(call: AggregateCall) -> bool:
    """Whether its result is read from an array of step bytes."""
    if call.function.native in {"quantile_disc", "mode"}:
        return not is_word(call.args[0].type)
    return call.function.native in {"array_agg", "histogram"}


def _gathered(accumulators: Accumulators, call: AggregateCall, read: Callable[[Scope, Val], Val]) -> Result:
    """read: returns the result, given an array of step bytes with all values, at least one."""
    gathered = accumulators.take(Gathered(call.args, call.filter, call.distinct))
    assert isinstance(gathered, Gathered)
    type_ = array(call.args[0].type)

    def result(scope: Scope, e: Entry) -> Val:
        value = scope.variables(call.type, call.nullable, "value")
        used = scope.let(gathered.used(e), "used")
        with scope.when(expr("U > 0", U=used)):
            items = scope.let(expr("list_items(T, L)", T=e.table, L=gathered.list(e)), "items")
            made = scope.let(expr("array_of_items(state, I, U, HOW)", I=items, U=used, HOW=order_of(type_)), "made")
            gathered.needs(scope, made)
            found = read(scope, Val(type_, (made, ast.Constant(0))))
            scope.assign(value, Val(call.type, found.parts, ast.Constant(False) if call.nullable else None))
        return value

    return result


def _ascending(scope: Scope, items: Val) -> Val:
    """The array in ascending order."""
    made = expr("array_order(state, A, HOW, A, HOW, 0)", A=items.parts[0], HOW=order_of(items.type))
    address = scope.let(made, "ascending")
    with scope.when(expr("A == 0", A=address)):
        scope.fail(ErrorCode.NO_MEMORY, "values of a group", NOWHERE)
    return Val(items.type, (address, scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size")))


def _or_gathered(of_words: Recipe, otherwise: Recipe) -> Recipe:
    """Values that fit a word are kept as words."""
    return lambda accumulators, call: (otherwise if gathers(call) else of_words)(accumulators, call)


def _quantile_disc(accumulators: Accumulators, call: AggregateCall) -> Result:
    def reaching(scope: Scope, items: Val) -> Val:
        ordered = _ascending(scope, items)
        count = count_of(scope, ordered)
        reached = expr("f64_to_i64(f64_ceil(F * i64_to_f64(C)))", F=call.options[0], C=count)
        return element(scope, ordered, count, scope.let(expr("max(R - 1, 0)", R=reached), "place"))

    return _gathered(accumulators, call, reaching)


def _mode(accumulators: Accumulators, call: AggregateCall) -> Result:
    def commonest(scope: Scope, items: Val) -> Val:
        found = expr("array_commonest(state, A, HOW)", A=items.parts[0], HOW=order_of(items.type))
        place = scope.let(found, "place")
        with scope.when(expr("P < 0", P=place)):
            scope.fail(ErrorCode.NO_MEMORY, "values of a group", NOWHERE)
        return element(scope, items, count_of(scope, items), place)

    return _gathered(accumulators, call, commonest)


@recipe("histogram")
def histogram_recipe(accumulators: Accumulators, call: AggregateCall) -> Result:
    def counted(scope: Scope, items: Val) -> Val:
        texts = cast_array(scope, _ascending(scope, items), array(VARCHAR), call.span)
        address = scope.let(expr("array_counts(state, A)", A=texts.parts[0]), "text")
        with scope.when(expr("A == 0", A=address)):
            scope.fail(ErrorCode.NO_MEMORY, "values of a group", NOWHERE)
        return Val(VARCHAR, (address, scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size")))

    return _gathered(accumulators, call, counted)


recipe("quantile_disc")(
    _or_gathered(collected("list_seek_reaching(T, L, F)", "list_reaching(T, L, F)"), _quantile_disc)
)
recipe("mode")(_or_gathered(collected("list_sort(T, L)", "list_commonest(T, L)"), _mode))


def unmatched(recipes: Collection[str]) -> Iterator[str]:
    """Aggregates whose recipe is not registered, and recipes that no aggregate names."""
    named = {entry.native: name for name, entry in all_aggregates().items()}
    yield from (f"there is no recipe {r}, which aggregate {named[r]} names" for r in named if r not in recipes)
    yield from (f"no aggregate names recipe {r}" for r in recipes if r not in {*named, USER_AGGREGATE})


refuse("recipes of aggregates", unmatched(RECIPES))  # here all are registered: this file imports the other one
