"""Aggregates that keep all values of a group: MEDIAN, QUANTILE_CONT, QUANTILE_DISC, MODE, STRING_AGG, ARRAY_AGG.

The state of the first four is a tree: () without values, (value,), or (earlier, later). Their results depend on the
values and not on their order, so merging is exact. -0.0 counts as 0.0, and NaN is the greatest number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cq.lang.aggregates.arguments import number, ordered
from cq.lang.aggregates.library import always
from cq.lang.aggregates.registry import AggregateFunction, ConstantArgument, Keeps, OfArray, register
from cq.lang.casts import caster
from cq.lang.functions.arrays import no_element
from cq.lang.functions.comparison import equals
from cq.lang.functions.json_text import counts_of
from cq.lang.functions.registry import Constants, Refusal, Signature
from cq.lang.functions.spark_text import cast_to
from cq.lang.types import DOUBLE, ELEMENTS, INTEGER, VARCHAR, DataType, Kind, Physical, array

Tree = tuple[Any, ...]
FRACTION = ConstantArgument(DOUBLE, lambda value: 0.0 <= value <= 1.0, "a number from 0 to 1")


def between(values: Sequence[float], fraction: float) -> float:
    """The value at `fraction` of the way from the first to the last of n ascending values.

    The way has n - 1 steps of equal length, and is linear between two values: with place = fraction * (n - 1) and low =
    floor(place), (low + 1 - place) * values[low] + (place - low) * values[low + 1].
    """
    place = fraction * (len(values) - 1)
    low = math.floor(place)
    below, above = values[low], values[min(low + 1, len(values) - 1)]
    if below == above or place == low:
        return below
    return (low + 1 - place) * below + (place - low) * above


def reaching(values: Sequence[Any], fraction: float) -> Any:
    """The first of n ascending values that is not before ceil(fraction * n)."""
    return values[max(math.ceil(fraction * len(values)) - 1, 0)]


def commonest(values: Sequence[Any]) -> Any:
    """The most frequent value of an ascending list; the least of several."""
    best, most, first = values[0], 0, 0
    for n, value in enumerate(values):
        first = first if equals(value, values[first]) else n
        if n + 1 - first > most:
            best, most = value, n + 1 - first
    return best


def leaves(tree: Tree) -> Iterator[Any]:
    """The values of a tree, from left to right."""
    left = [tree]
    while left:
        node = left.pop()
        if len(node) == 1:
            yield node[0]
        else:
            left.extend(reversed(node))


def _ascending(tree: Tree) -> list[Any]:
    """The values of a tree: -0.0 as 0.0, NaN after all numbers."""
    found = [value + 0.0 if isinstance(value, float) else value for value in leaves(tree)]
    return sorted(found, key=lambda value: (value != value, value))  # noqa: PLR0124 - only NaN differs from itself


def is_word(type_: DataType) -> bool:
    """Whether a value is stored in one word: neither a text nor a DECIMAL of more than 18 digits."""
    return type_.physical not in {Physical.BYTES, Physical.I128}


def _spark_ascending(value: str) -> Callable[..., str]:
    """The text around an ascending array v of all values, of which there is at least one."""

    def text(signature: Signature, argument: str, over: str, fraction: float = 0.5) -> str:
        t = signature.params[0]
        item = f"{argument} + 0D" if t.is_float else argument
        picked = value.format(fraction=f"{fraction!r}D")
        ascending = f"sort_array(collect_list({item}){over})"
        whole = f"transform(array({ascending}), v -> case when size(v) > 0 then {picked} end)[0]"
        return cast_to(whole, signature.returns, unless=DOUBLE) if t.is_float else whole

    return text


_PLACE = "({fraction} * (size(v) - 1))"
_LOW = f"cast(floor({_PLACE}) as INT)"
_NEXT = f"v[least({_LOW} + 1, size(v) - 1)]"
_BETWEEN = (
    f"case when v[{_LOW}] = {_NEXT} or {_PLACE} = {_LOW} then v[{_LOW}]"
    f" else ({_LOW} + 1 - {_PLACE}) * v[{_LOW}] + ({_PLACE} - {_LOW}) * {_NEXT} end"
)
_REACHING = "v[greatest(cast(ceil({fraction} * size(v)) as INT) - 1, 0)]"


def _register(
    name: str, shape: str, doc: str, rule: Any, value: Callable[..., Any], spark: Any, examples: tuple[str, ...],
    *aliases: str, options: tuple[ConstantArgument, ...] = (),
) -> None:  # fmt: skip
    register(
        AggregateFunction(
            name=name,
            shape=shape,
            rule=rule,
            zero=(),
            add=lambda _, state, item: (state, (item,)),
            merge=lambda _, a, b: (a, b),
            empty=lambda state: not _ascending(state),
            result=lambda _, state, *given: value(_ascending(state), *given),
            exact_merge=always,
            keeps=Keeps.VALUES,
            options=options,
            within_group=name != "median",
            doc=doc,
            spark=spark,
            native=name,
            examples=(*examples, f"{name} over nothing = null"),
        ),
        *aliases,
    )


_register(
    "median",
    "median(number)",
    "The median of the non-null values as DOUBLE; of an even number, the mean of the two in the middle.",
    number,
    lambda values: between(values, 0.5),
    _spark_ascending(_BETWEEN),
    ("median over 5, 1, null, 3 = 3e0", "median over 1, 4 = 2.5e0", "median over 7 = 7e0", "median over null = null"),
)
_register(
    "quantile_cont",
    "quantile_cont(number, fraction)",
    "Also PERCENTILE_CONT(fraction) WITHIN GROUP (ORDER BY number).\n"
    "The value as DOUBLE at a fraction of the way from the least to the greatest of the n non-null values: with\n"
    "p = fraction * (n - 1) and i = floor(p), it is (i + 1 - p) * v[i] + (p - i) * v[i + 1].",
    number,
    between,
    _spark_ascending(_BETWEEN),
    (
        "quantile_cont(0.25) over 5, 1, null, 3 = 2e0",
        "quantile_cont(1) over 1, 4 = 4e0",
        "quantile_cont(0) over 7, 2 = 2e0",
    ),
    "percentile",
    "percentile_cont",
    options=(FRACTION,),
)
_register(
    "quantile_disc",
    "quantile_disc(x, fraction)",
    "The least non-null value such that at least this fraction of all of them are not greater. Also "
    "PERCENTILE_DISC(fraction) WITHIN GROUP (ORDER BY x).",
    ordered,
    reaching,
    _spark_ascending(_REACHING),
    (
        "quantile_disc(0.5) over 5, 1, null, 3 = 3",
        "quantile_disc(0.5) over 1, 4 = 1",
        "quantile_disc(0) over 7, 2 = 2",
        "quantile_disc(1) over DATE '2024-01-01', DATE '2023-01-01' = DATE '2024-01-01'",
        "quantile_disc(0.9) over 'b', 'a text of more than twelve bytes', null = 'b'",
    ),
    "percentile_disc",
    "quantile",
    "approx_percentile",
    "percentile_approx",
    "approx_quantile",
    options=(FRACTION,),
)
_register(
    "mode",
    "mode(x)",
    "The most frequent non-null value; ties give the least. Also MODE() WITHIN GROUP (ORDER BY x).",
    ordered,
    commonest,
    lambda signature, argument, over: cast_to(
        f"mode({argument}{' + 0D' if signature.params[0].is_float else ''}, true){over}",
        signature.returns,
        unless=None if signature.params[0].is_float else signature.returns,
    ),
    (
        "mode over 2, 1, 2, null = 2",
        "mode over 3, 1, 3, 1 = 1",
        "mode over true, false, true = true",
        "mode over 'b', 'a', 'b', null = 'b'",
        "mode over 12345678901234567890.5, 1.5, 12345678901234567890.5 = 12345678901234567890.5",
        "mode over null = null",
    ),
)


def _shown(types: tuple[DataType, ...], _: Constants) -> Signature | Refusal | None:
    """One value with a distinctive text."""
    if len(types) != 1 or types[0].kind is Kind.ARRAY:
        return None
    t = VARCHAR if types[0].kind is Kind.NULL else types[0]
    if t.is_integer or t.kind in {Kind.VARCHAR, Kind.BOOLEAN, Kind.DATE}:
        return Signature((t,), VARCHAR)
    return Refusal("CQ0302", f"HISTOGRAM does not take {t}", "give it texts: HISTOGRAM(CAST(x AS VARCHAR))")


def _counted(signature: Signature, tree: Tree) -> str:
    show = caster(signature.params[0], VARCHAR)
    return counts_of([show(value) for value in _ascending(tree)])


register(
    AggregateFunction(
        name="histogram",
        shape="histogram(x)",
        rule=_shown,
        zero=(),
        add=lambda _, state, item: (state, (item,)),
        merge=lambda _, a, b: (a, b),
        empty=lambda state: not _ascending(state),
        result=_counted,
        exact_merge=always,
        keeps=Keeps.VALUES,
        doc="The count of each non-null value, as a JSON object with the values as names in ascending order; for "
        "texts, integers, BOOLEAN and DATE. JSON_VALUE(histogram, '$.a') extracts one count.",
        spark=lambda signature, argument, over: (
            f"transform(array(sort_array(collect_list({argument}){over})), v -> if(size(v) = 0, null, to_json("
            "map_from_entries(transform(array_distinct(v), x -> struct(cast(x as STRING), "
            "size(filter(v, y -> y = x))))))))[0]"
        ),
        native="histogram",
        examples=(
            """histogram over 'b', 'a', 'b', null = '{"a":1,"b":2}'""",
            """histogram over 10, 9, 10 = '{"9":1,"10":2}'""",
            """histogram over true, true = '{"true":2}'""",
            "histogram over null = null",
            "histogram over nothing = null",
        ),
    )
)


def _texts(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    fits = len(types) == 2 and all(t.kind in {Kind.VARCHAR, Kind.NULL} for t in types)
    return Signature((VARCHAR, VARCHAR), VARCHAR) if fits else None


def _joined(_: Signature, tree: Tree) -> str:
    """The texts of a tree from left to right, each except the first after its separator."""
    pieces: list[str] = []
    for text, separator in leaves(tree):
        pieces += [separator, text] if pieces else [text]
    return "".join(pieces)


register(
    AggregateFunction(
        name="string_agg",
        shape="string_agg(text [, separator])",
        rule=_texts,
        zero=(),
        add=lambda _, state, _arrival, text, separator: (state, ((text, separator),)),
        merge=lambda _, a, b: (a, b) if a and b else a or b,
        empty=lambda state: not state,
        result=_joined,
        exact_merge=lambda _: False,
        by_position=True,
        keeps=Keeps.VALUES_IN_ORDER,
        doc="The texts joined by the separator, in order of position; NULL if there are none. The default "
        "separator is a comma, for LISTAGG the empty text.",
        spark="if(count({0}){1} = 0, null, array_join(transform(sort_array(collect_list(case when {0} is not null then"
        " struct({2} as p, {0}.a as a, {0}.b as b) end){1}), (v, i) -> if(i = 0, v.a, concat(v.b, v.a))), ''))",
        native="string_agg",
        of_array=OfArray.JOINED,
        as_text=True,
        examples=(
            "string_agg over ('b', '-'), (null, '-'), ('a', '-') = 'b-a'",
            "string_agg over ('', '+'), ('', '+') = '+'",
            "string_agg over ('a', null) = null",
            "string_agg over nothing = null",
        ),
    ),
    "listagg",
    "group_concat",
)


def _elements(types: tuple[DataType, ...], _: Constants) -> Signature | Refusal | None:
    """One value that an array can hold."""
    if len(types) != 1:
        return None
    element = INTEGER if types[0].kind is Kind.NULL else types[0]
    return Signature((element,), array(element)) if element.kind in ELEMENTS else no_element(element)


register(
    AggregateFunction(
        name="array_agg",
        shape="array_agg(x)",
        rule=_elements,
        zero=(),
        add=lambda _, state, _arrival, item: (state, (item,)) if state else (item,),
        merge=lambda _, a, b: (a, b) if a and b else a or b,
        empty=lambda state: not state,
        result=lambda _, tree: tuple(leaves(tree)),
        exact_merge=lambda _: False,
        keeps_null=True,
        by_position=True,
        keeps=Keeps.VALUES_IN_ORDER,
        doc="All values, including NULLs, as an array in order of position; NULL if there are no rows. Accepts "
        "DISTINCT, ORDER BY, FILTER and IGNORE NULLS.",
        spark="if(count({0}){1} = 0, null, transform(sort_array(collect_list(case when {0} is not null then"
        " struct({2} as p, {0}.a as a) end){1}), v -> v.a))",
        native="array_agg",
        of_array=OfArray.ITSELF,
        examples=(
            "array_agg over 2, null, 1 = ARRAY[2, null, 1]",
            "array_agg over 'b', 'a' = ARRAY['b', 'a']",
            "array_agg over null = ARRAY[null]",
            "array_agg over nothing = null",
        ),
    ),
    "list",
)
LOADED = True
