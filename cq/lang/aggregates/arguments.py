"""Which arguments aggregates take: rules that several of them share."""

from __future__ import annotations

from cq.lang.functions.registry import Constants, Signature
from cq.lang.types import BIGINT, DOUBLE, DataType, Kind


def number(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    """One number of any type, as DOUBLE; the result is a DOUBLE."""
    if len(types) != 1 or not (types[0].is_numeric or types[0].kind is Kind.NULL):
        return None
    return Signature((DOUBLE,), DOUBLE)


def ordered(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    """One value of any type except an array; the result has its type."""
    if len(types) != 1 or types[0].kind is Kind.ARRAY:
        return None
    t = BIGINT if types[0].kind is Kind.NULL else types[0]
    return Signature((t,), t)
