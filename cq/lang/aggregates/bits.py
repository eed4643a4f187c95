"""COUNT_IF, and BIT_AND, BIT_OR, BIT_XOR of integers."""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_, xor
from typing import Any

from cq.lang.aggregates.registry import AggregateFunction, Keeps, register
from cq.lang.functions.registry import Constants, Signature
from cq.lang.functions.signatures import fixed
from cq.lang.types import BIGINT, BOOLEAN, DataType, Kind


def _always(_: Signature) -> bool:
    return True


register(
    AggregateFunction(
        name="count_if",
        shape="count_if(condition)",
        rule=fixed(BOOLEAN, returns=BIGINT),
        zero=0,
        add=lambda _, state, value: state + value,
        merge=lambda _, a, b: a + b,
        empty=lambda state: state == 0,
        result=lambda _, state: int(state),
        exact_merge=_always,
        never_null=True,
        doc="The number of rows for which the condition is TRUE.",
        spark="count_if({0}){1}",
        native="count_if",
        keeps=Keeps.WORDS,
        examples=(
            "count_if over true, false, null, true = 2",
            "count_if over false = 0",
            "count_if over null = 0",
            "count_if over nothing = 0",
        ),
    ),
    "countif",
)


def _integer(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    if len(types) != 1 or not (types[0].is_integer or types[0].kind is Kind.NULL):
        return None
    t = BIGINT if types[0].kind is Kind.NULL else types[0]
    return Signature((t,), t)


def _folding(bits: Callable[[int, int], int]) -> Callable[..., Any]:
    def add(_: Signature, state: int | None, value: int | None) -> int | None:
        return value if state is None else state if value is None else bits(state, value)

    return add


for _name, _bits, _idempotent, _doc, _examples in (
    ("bit_and", and_, True, "Bitwise AND of the non-null values; NULL if there are none.",
     ("bit_and over 12, 10, null = 8", "bit_and over -1, 5 = 5", "bit_and over 3 = 3")),
    ("bit_or", or_, True, "Bitwise OR of the non-null values; NULL if there are none.",
     ("bit_or over 12, 10, null = 14", "bit_or over -8, 5 = -3", "bit_or over 3 = 3")),
    ("bit_xor", xor, False, "Bitwise exclusive OR of the non-null values; NULL if there are none.",
     ("bit_xor over 12, 10, null = 6", "bit_xor over 5, 5 = 0", "bit_xor over -1, 0 = -1")),
):  # fmt: skip
    register(
        AggregateFunction(
            name=_name,
            shape=f"{_name}(integer)",
            rule=_integer,
            zero=None,
            add=_folding(_bits),
            merge=_folding(_bits),
            empty=lambda state: state is None,
            result=lambda _, state: state,
            exact_merge=_always,
            idempotent=_idempotent,
            doc=_doc,
            spark=_name + "({0}){1}",
            native=_name,
            keeps=Keeps.WORDS,
            examples=(*_examples, f"{_name} over nothing = null"),
        )
    )
LOADED = True
