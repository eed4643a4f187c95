"""Arrays in kernels: how elements are read and written, and the kernel forms of the functions of arrays.

cq/runtime/values/arrays.py says how an array lies in its bytes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cmp_to_key

from cq.codegen.expressions.casts import cast_form
from cq.codegen.expressions.constants import literal
from cq.codegen.expressions.forms import FORMS, PURE, Strict, form, give_text, no_memory, result_of, stored_parts
from cq.codegen.values import Scope, Val, value_words
from cq.codegen.writer import expr
from cq.errors import Span
from cq.lang.expressions import Cast, Column, Literal, Value
from cq.lang.functions.array_sets import MOST_ELEMENTS, NO_STEP, TOO_MANY
from cq.lang.functions.comparison import precedes
from cq.lang.types import DataType, Kind, Physical
from cq.records import dataclass, replace
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.words import Word
from cq.runtime.values import array_building, array_sets, arrays

_ORDERS = {
    Physical.I64: Word(arrays.WORD, "WORD"),
    Physical.I128: Word(arrays.WIDE, "WIDE"),
    Physical.F64: Word(arrays.FLOAT, "FLOAT"),
    Physical.BYTES: Word(arrays.TEXT, "TEXT"),
}


def element_type(type_: DataType) -> DataType:
    """The type of an array's elements."""
    assert type_.element is not None, f"{type_} is no array"
    return type_.element


def order_of(type_: DataType) -> Word:
    """How natives are to compare the elements of an array."""
    return _ORDERS[element_type(type_).physical]


def _width(element: DataType) -> int:
    return 2 if element.physical is Physical.I128 else 1


# -- reading ----------------------------------------------------------------------------------------------------------


def count_of(scope: Scope, array: Val) -> ast.expr:
    """The length of an array that is not NULL."""
    return scope.let(expr("ld_i64(A, 0)", A=array.parts[0]), "count")


def has_nulls(array: Val, count: ast.expr) -> ast.expr:
    """Whether an array of this length has a NULL among its elements."""
    return expr("array_nulls(A, C, W) == 1", A=array.parts[0], C=count, W=_width(element_type(array.type)))


def element(scope: Scope, array: Val, count: ast.expr, place: ast.expr, whole: bool = False) -> Val:
    """The element at a place, from 0, that exists. whole: none of its elements is NULL."""
    type_, address = element_type(array.type), array.parts[0]
    flag = expr("ld_u8(A, 8 + C * WIDTH + P) != 0", A=address, C=count, WIDTH=8 * _width(type_), P=place)
    null = None if whole else scope.let(flag, "element_null")
    if type_.physical is Physical.BYTES:
        start = scope.let(expr("text_start(A, P)", A=address, P=place), "start")
        text = expr("A + array_bytes(C, 1) + S", A=address, C=count, S=start)
        size = expr("ld_i64(A, 1 + P) - S", A=address, P=place, S=start)
        return Val(type_, (scope.let(text, "element"), scope.let(size, "size")), null)
    if type_.physical is Physical.I128:
        low, high = (expr("ld_i64(A, N + P * 2)", A=address, N=n, P=place) for n in (1, 2))
        return Val(type_, (scope.let(low, "low"), scope.let(high, "high")), null)
    load = "ld_f64(A, 1 + P)" if type_.is_float else "ld_i64(A, 1 + P)"
    word = expr(f"{load} != 0" if type_.kind is Kind.BOOLEAN else load, A=address, P=place)
    return Val(type_, (scope.let(word, "element"),), null)


@contextmanager
def each_element(scope: Scope, array: Val) -> Iterator[tuple[ast.expr, Val]]:
    """Inside, one element after the other, with its place from 0."""
    count = count_of(scope, array)
    turn = scope.writer.fresh("p")
    place = ast.Name(turn, ast.Load())
    with scope.writer.for_(turn, 0, count), scope.block():
        yield place, element(scope, array, count, place)


# -- making -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class NewArray:
    """An array of known length being built. Texts are gathered as (address, length) until all are there."""

    scope: Scope
    call: Strict
    type: DataType
    count: ast.expr
    address: ast.expr
    size: ast.expr

    @staticmethod
    def of(scope: Scope, call: Strict, type_: DataType, count: ast.expr) -> NewArray:
        """type_: of the elements."""
        if type_.physical is Physical.BYTES:
            room = expr("C * WORDS * 8", C=count, WORDS=Word(arrays.PIECE_WORDS, "PIECE_WORDS"))
            address = scope.let(expr("step_bytes(state, R)", R=room), "items")
        else:
            address = scope.let(expr("array_new(state, C, W)", C=count, W=_width(type_)), "array")
        no_memory(scope, call, expr("A == 0", A=address))
        size = scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size")
        return NewArray(scope, call, type_, count, address, size)

    def put(self, place: ast.expr, value: Val) -> None:
        """Set the element at a place, once."""
        code = self.scope.writer.code
        if self.type.physical is Physical.BYTES:
            text, length = value.parts
            size = length if value.null is None else expr("pick(N, -1, L)", N=value.null, L=length)
            for n, word in ((arrays.PIECE_TEXT, text), (arrays.PIECE_LENGTH, size)):
                code("st_i64(A, P * WORDS + N, W)", A=self.address, P=place, WORDS=arrays.PIECE_WORDS, N=n, W=word)
            return
        width = _width(self.type)
        for n, word in enumerate(value_words(value)):
            kept = word if value.null is None else expr("pick(N, 0, W)", N=value.null, W=word)
            code("st_i64(A, P * WIDTH + N, W)", A=self.address, P=place, WIDTH=width, N=1 + n, W=kept)
        if value.null is not None:
            flag = expr("pick(N, 1, 0)", N=value.null)
            code("st_u8(A, 8 + C * W + P, F)", A=self.address, C=self.count, W=8 * width, P=place, F=flag)

    def finish(self) -> tuple[ast.expr, ast.expr]:
        """Address and length of the array."""
        if self.type.physical is not Physical.BYTES:
            return self.address, self.size
        made = expr("array_of_texts(state, A, C)", A=self.address, C=self.count)
        address = self.scope.let(made, "array")
        no_memory(self.scope, self.call, expr("A == 0", A=address))
        return address, self.scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size")


def array_of_values(scope: Scope, call: Strict, type_: DataType, values: tuple[Val, ...]) -> tuple[ast.expr, ast.expr]:
    """Address and length of the array of these values."""
    making = NewArray.of(scope, call, type_, ast.Constant(len(values)))
    for place, value in enumerate(values):
        making.put(ast.Constant(place), value)
    return making.finish()


@form("array")
def _array(scope: Scope, call: Strict) -> None:
    call.give(scope, *array_of_values(scope, call, element_type(call.type), call.args))


@form("split")
def _split(scope: Scope, call: Strict) -> None:
    (text, length), (separator, size) = (v.parts for v in call.args)
    made = expr("split_array(state, T, L, S, LS)", T=text, L=length, S=separator, LS=size)
    give_text(scope, call, made)


def cast_array(scope: Scope, array: Val, type_: DataType, span: Span) -> Val:
    """The array as one of another type; no element fails."""
    node = Cast(type_, False, Column(array.type, False, 0), span=span)
    cast = Strict(node, (array,), scope.variables(type_, False, "cast"), "the array cannot be cast")
    _cast(scope, cast)
    return cast.result


@form("cast_array_array")
def _cast(scope: Scope, call: Strict) -> None:
    """Cast element by element, where the layouts differ."""
    assert isinstance(call.node, Cast)
    (array,) = call.args
    source, target = element_type(array.type), element_type(call.type)
    if cast_form(replace(call.node, arg=Column(source, True, 0), type=target)) in {"cast_same", "cast_widened"}:
        call.give(scope, *array.parts)
        return
    making = NewArray.of(scope, call, target, count_of(scope, array))
    with each_element(scope, array) as (place, one):
        making.put(place, _cast_element(scope, call, target, one))
    call.give(scope, *making.finish())


def _cast_element(scope: Scope, call: Strict, target: DataType, one: Val) -> Val:
    assert isinstance(call.node, Cast)
    cast = replace(call.node, type=target, arg=Column(one.type, True, 0))
    result = scope.variables(target, True, "cast")
    step = Strict(cast, (one,), result, f"the value cannot be cast to {target}")
    name = cast_form(cast)
    assert one.null is not None
    with scope.when(expr("not N", N=one.null)):
        if name in PURE:
            step.give(scope, PURE[name](scope, step))
        else:
            FORMS[name](scope, step)
    return result


# -- contents of arrays -----------------------------------------------------------------------------------------------


@form("array_element")
def _element(scope: Scope, call: Strict) -> None:
    array, number = call.args
    place = scope.let(expr("array_place(A, N)", A=array.parts[0], N=number.it), "place")
    with scope.when(expr("P >= 0", P=place)):
        found = element(scope, array, count_of(scope, array), place)
        scope.assign(call.result, found)


@form("cardinality")
def _cardinality(scope: Scope, call: Strict) -> None:
    call.give(scope, count_of(scope, call.args[0]))


def _find(scope: Scope, call: Strict) -> ast.expr:
    """The number of the first element that equals the second argument; 0 where none does."""
    array, wanted = call.args
    other, _ = array_of_values(scope, call, wanted.type, (wanted,))
    how = order_of(array.type)
    return scope.let(expr("array_find(A, O, HOW)", A=array.parts[0], O=other, HOW=how), "number")


@form("array_contains")
def _contains(scope: Scope, call: Strict) -> None:
    given = call.node.children[0]
    if not isinstance(given, Literal) or given.value is None:
        call.give(scope, scope.let(expr("N > 0", N=_find(scope, call)), "there"))
        return
    wanted = call.args[1]
    array = literal(scope, replace(given, value=_ascending(given.value)))
    other, _ = array_of_values(scope, call, wanted.type, (wanted,))
    has = expr("sorted_array_has(A, O, HOW)", A=array.parts[0], O=other, HOW=order_of(array.type))
    call.give(scope, scope.let(expr("H != 0", H=scope.let(has, "has")), "there"))


def _ascending(elements: tuple[Value, ...]) -> tuple[Value, ...]:
    """The elements of a constant in the order of kernels, which use binary search; without NULLs."""

    def order(a: Value, b: Value) -> int:
        return int(precedes(b, a)) - int(precedes(a, b))

    return tuple(sorted((e for e in elements if e is not None), key=cmp_to_key(order)))


@form("array_position")
def _position(scope: Scope, call: Strict) -> None:
    call.give(scope, _find(scope, call))


# -- arrays made from arrays -----------------------------------------------------------------------------------------


def _made(name: str, template: str) -> None:
    """Register a form for an array made by a native: A and B are arrays, N and M numbers, HOW belongs to the first."""

    @form(name)
    def made(scope: Scope, call: Strict) -> None:
        holes: dict[str, ast.expr | int] = {"HOW": order_of(call.args[0].type)}
        for letters, value in zip(("A", "BN", "M"), call.args, strict=False):
            holes |= dict.fromkeys(letters, value.parts[0])
        give_text(scope, call, expr(template, **holes))


_made("array_concat", "array_concat(state, A, B, HOW)")
_made("array_slice", "array_slice(state, A, N, M, HOW)")
_made("array_reverse", "array_reverse(state, A, HOW)")
_made("array_sort", "array_order(state, A, HOW, A, HOW, 0)")
_made("array_distinct", "array_distinct(state, A, HOW)")
_made("array_compact", "array_compact(state, A, HOW)")
_made("array_intersect", "array_kept(state, A, B, HOW, 1)")
_made("array_except", "array_kept(state, A, B, HOW, 0)")


@form("array_order")
def _order(scope: Scope, call: Strict) -> None:
    """The last argument is the order, as in array_building.py."""
    array, keys, order = call.args
    with scope.when(expr("ld_i64(A, 0) != ld_i64(K, 0)", A=array.parts[0], K=keys.parts[0])):
        scope.fail(ErrorCode.BAD_ARGUMENT, "elements are ordered by another number of keys", call.span)
    made = expr(
        "array_order(state, A, HOW, K, KEYS, ORDER)",
        A=array.parts[0], HOW=order_of(array.type), K=keys.parts[0], KEYS=order_of(keys.type), ORDER=order.it,
    )  # fmt: skip
    give_text(scope, call, made)


@form("array_remove")
def _remove(scope: Scope, call: Strict) -> None:
    array, unwanted = call.args
    other, _ = array_of_values(scope, call, unwanted.type, (unwanted,))
    made = expr("array_remove(state, A, O, HOW)", A=array.parts[0], O=other, HOW=order_of(array.type))
    give_text(scope, call, made)


def _extreme(name: str, order: int) -> None:
    @form(name)
    def extreme(scope: Scope, call: Strict) -> None:
        (array,) = call.args
        how = order_of(array.type)
        found = expr("array_extreme(A, HOW, ORDER)", A=array.parts[0], HOW=how, ORDER=order)
        place = scope.let(found, "place")
        with scope.when(expr("P >= 0", P=place)):
            scope.assign(call.result, element(scope, array, count_of(scope, array), place))


_extreme("array_min", array_building.ASCENDING)
_extreme("array_max", array_building.DESCENDING)


@form("array_mode")
def _mode(scope: Scope, call: Strict) -> None:
    (array,) = call.args
    place = scope.let(expr("array_commonest(state, A, HOW)", A=array.parts[0], HOW=order_of(array.type)), "place")
    no_memory(scope, call, expr("P < -1", P=place))
    with scope.when(expr("P >= 0", P=place)):
        scope.assign(call.result, element(scope, array, count_of(scope, array), place))


@form("array_sum")
def _sum(scope: Scope, call: Strict) -> None:
    (array,) = call.args
    there = expr("array_extreme(A, HOW, 0) >= 0", A=array.parts[0], HOW=order_of(array.type))
    wide = int(call.type.physical is Physical.I128)
    status = expr("array_sum(state, A, WIDE)", A=array.parts[0], WIDE=wide)
    if call.type.is_float:
        status = expr("array_sum_floats(state, A)", A=array.parts[0])
    with scope.when(there):
        result_of(scope, call, status, ErrorCode.OVERFLOW)
        call.give(scope, *stored_parts(scope, call.type))


# -- arrays as sets ---------------------------------------------------------------------------------------------------


@form("list_count")
def _count(scope: Scope, call: Strict) -> None:
    call.give(scope, scope.let(_values_of(call.args[0]), "values"))


def _values_of(array: Val) -> ast.expr:
    """How many elements are not NULL."""
    return expr("array_count(A, HOW)", A=array.parts[0], HOW=order_of(array.type))


@form("array_has_any")
def _has_any(scope: Scope, call: Strict) -> None:
    call.give(scope, expr("N > 0", N=_shared(scope, call, *call.args)))


@form("array_has_all")
def _has_all(scope: Scope, call: Strict) -> None:
    array, wanted = call.args
    call.give(scope, expr("N == ALL", N=_shared(scope, call, wanted, array), ALL=scope.let(_values_of(wanted), "all")))


def _shared(scope: Scope, call: Strict, array: Val, other: Val) -> ast.expr:
    """How many non-NULL elements of an array another one contains."""
    how = order_of(array.type)
    shared = scope.let(expr("array_shared(state, A, B, HOW)", A=array.parts[0], B=other.parts[0], HOW=how), "shared")
    no_memory(scope, call, expr("N < 0", N=shared))
    return shared


@form("sequence")
def _sequence(scope: Scope, call: Strict) -> None:
    first, last, *steps = (v.it for v in call.args)
    step = steps[0] if steps else scope.let(expr("pick(A <= B, 1, -1)", A=first, B=last), "step")
    made = expr("array_sequence(state, A, B, S, MOST)", A=first, B=last, S=step, MOST=MOST_ELEMENTS)
    array = scope.let(made, "array")
    for status, cause in ((array_sets.NO_STEP, NO_STEP), (array_sets.TOO_MANY, TOO_MANY)):
        with scope.when(expr("A == STATUS", A=array, STATUS=status)):
            scope.fail(ErrorCode.BAD_ARGUMENT, cause, call.span)
    no_memory(scope, call, expr("A == 0", A=array))
    call.give(scope, array, scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size"))


# -- texts ------------------------------------------------------------------------------------------------------------


@form("array_to_string")
def _to_string(scope: Scope, call: Strict) -> None:
    array, separator, *missing = call.args
    shown = missing[0].parts if missing else (ast.Constant(0), ast.Constant(0))
    made = expr(
        "array_join(state, A, S, LS, M, LM, SHOWS)",
        A=array.parts[0], S=separator.parts[0], LS=separator.parts[1], M=shown[0], LM=shown[1], SHOWS=len(missing),
    )  # fmt: skip
    give_text(scope, call, made)
