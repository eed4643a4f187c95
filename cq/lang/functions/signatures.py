"""Signature rules: how the types of arguments decide what an entry takes and returns.

A rule sees the types as written and the values of literals. Implicit conversions are those of
`cq.lang.types.common_type`: to a wider number, from DATE to TIMESTAMP, and from NULL to anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.lang.functions.registry import Constants, Refusal, Signature, SignatureRule
from cq.lang.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DOUBLE,
    MAX_DECIMAL_DIGITS,
    VARCHAR,
    DataType,
    Kind,
    as_decimal_digits,
    common_type,
    decimal,
)

KEPT_SCALE = 6  # digits after the point that a capped result keeps, if it has that many


def converts(source: DataType, target: DataType) -> bool:
    """Whether a value of `source` implicitly converts to a `target`."""
    return common_type(source, target) == target


def fixed(*params: DataType, returns: DataType) -> SignatureRule:
    """Exactly these parameters."""
    return overloaded(Signature(params, returns))


def overloaded(*signatures: Signature) -> SignatureRule:
    """The first signature whose parameters are the arguments' types, else the first to which they convert."""

    def rule(types: tuple[DataType, ...], _: Constants) -> Signature | None:
        fitting = [s for s in signatures if len(s.params) == len(types)]
        for s in fitting:
            if s.params == types:
                return s
        return next((s for s in fitting if all(map(converts, types, s.params))), None)

    return rule


def text_or_binary(returns: DataType) -> SignatureRule:
    """One VARCHAR or BINARY, for what reads bytes."""
    return overloaded(Signature((VARCHAR,), returns), Signature((BINARY,), returns))


def with_optional(required: Sequence[DataType], optional: Sequence[DataType], returns: DataType) -> SignatureRule:
    """`required` parameters and any prefix of the `optional` ones."""
    forms = [(*required, *optional[:n]) for n in range(len(optional) + 1)]
    return overloaded(*(Signature(tuple(f), returns) for f in forms))


def too_many_digits(what: str, precision: int, scale: int) -> Refusal:
    """The refusal for a DECIMAL that would need more digits than exist."""
    return Refusal(
        "CQ0304",
        f"{what} needs DECIMAL({precision},{scale}), more than {MAX_DECIMAL_DIGITS} digits",
        f"CAST an operand to DOUBLE, or to {max(precision - MAX_DECIMAL_DIGITS, 1)} digits fewer: "
        "an INTEGER counts as DECIMAL(10,0), a BIGINT as DECIMAL(20,0)",
    )


def decimal_result(what: str, precision: int, scale: int) -> DataType | Refusal:
    """DECIMAL(precision, scale), or the refusal when it has too many digits."""
    return too_many_digits(what, precision, scale) if precision > MAX_DECIMAL_DIGITS else decimal(precision, scale)


def capped(precision: int, scale: int) -> DataType:
    """DECIMAL(precision, scale); with too many digits capped like Spark's `adjustPrecisionScale`, which drops digits
    after the point, but keeps KEPT_SCALE of them: results are rounded, and may be too large for it."""
    whole = precision - scale
    if precision <= MAX_DECIMAL_DIGITS:
        return decimal(precision, scale)
    return decimal(MAX_DECIMAL_DIGITS, max(MAX_DECIMAL_DIGITS - whole, min(scale, KEPT_SCALE)))


def literal_types(types: tuple[DataType, ...], constants: Constants) -> tuple[DataType, ...]:
    """The types, with integer literals beside a DECIMAL as narrow as their digits, as in Spark."""
    if not any(t.kind is Kind.DECIMAL for t in types) or any(t.is_float for t in types):
        return types
    return tuple(
        decimal(len(str(abs(c))), 0) if t.is_integer and c is not None else t
        for t, c in zip(types, constants, strict=True)
    )


def common_of(what: str, types: tuple[DataType, ...], constants: Constants) -> DataType | Refusal | None:
    """The common type of all arguments; BIGINT when all are NULL."""
    types = literal_types(types, constants)
    out = types[0]
    for t in types[1:]:
        both = common_type(out, t)
        if both is None:
            if out.is_numeric and t.is_numeric:
                (p1, s1), (p2, s2) = as_decimal_digits(out), as_decimal_digits(t)
                scale = max(s1, s2)
                return too_many_digits(what, max(p1 - s1, p2 - s2) + scale, scale)
            return None
        out = both
    return BIGINT if out.kind is Kind.NULL else out


def same_type(
    what: str, returns: Callable[[DataType], DataType], least: int = 2, most: int | None = None, arrays: bool = False
) -> SignatureRule:
    """Arguments that all convert to one type, which may be an array if `arrays`; between `least` and `most` of them."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
        if len(types) < least or (most is not None and len(types) > most):
            return None
        common = common_of(what, types, constants)
        if isinstance(common, Refusal) or common is None or (common.kind is Kind.ARRAY and not arrays):
            return common if isinstance(common, Refusal) else None
        return Signature((common,) * len(types), returns(common))

    return rule


def compared(what: str, arrays: bool = False) -> SignatureRule:
    """Two arguments of one comparable type; the result is BOOLEAN."""
    return same_type(what, lambda _: BOOLEAN, 2, 2, arrays)


def as_text(least: int) -> SignatureRule:
    """At least `least` arguments of any type that has a text form; all become VARCHAR."""

    def rule(types: tuple[DataType, ...], _: Constants) -> Signature | None:
        if len(types) < least or any(t.kind in {Kind.ARRAY, Kind.BINARY} for t in types):
            return None
        return Signature((VARCHAR,) * len(types), VARCHAR)

    return rule


def keeps_number(intervals: bool = False) -> SignatureRule:
    """One number, or one interval if that is allowed; the result has the same type."""

    def rule(types: tuple[DataType, ...], _: Constants) -> Signature | None:
        if len(types) != 1:
            return None
        (t,) = types
        if t.kind is Kind.NULL:
            t = DOUBLE
        return Signature((t,), t) if t.is_numeric or (intervals and t.is_interval) else None

    return rule
