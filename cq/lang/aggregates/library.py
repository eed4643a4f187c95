"""COUNT, SUM, AVG, MIN, MAX, BOOL_AND and BOOL_OR; the other aggregates are in the files beside this one.

Sums of integers, DECIMALs and INTERVALs are exact however long (128 or 192 bits in kernels): only a result that does
not fit its type fails. Sums of DOUBLE start at 0.0 and add in the order given. MIN and MAX order as comparison does
(NaN is the greatest number) and give 0.0 for -0.0, so the order of merging does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.lang.aggregates.arguments import ordered
from cq.lang.aggregates.registry import AggregateFunction, Grows, Keeps, register
from cq.lang.functions.arithmetic import RANGES, half_up, in_digits
from cq.lang.functions.comparison import precedes
from cq.lang.functions.registry import Constants, Failure, Signature
from cq.lang.functions.signatures import fixed
from cq.lang.functions.spark_text import cast_to
from cq.lang.types import BIGINT, BOOLEAN, DOUBLE, MAX_DECIMAL_DIGITS, DataType, Kind, decimal

SUM_DIGITS = 10  # digits that Spark adds to the argument's for a SUM of DECIMAL
AVG_DIGITS = 4  # the same for AVG, before and after the point


def always(_: Signature) -> bool:
    return True


def no_floats(signature: Signature) -> bool:
    """Whether addition of the argument's values is exact."""
    return not signature.params[0].is_float


def without_negative_zero(signature: Signature, value: Any) -> Any:
    """`value` as keys and extremes hold it: 0.0 for -0.0."""
    return value + 0.0 if signature.params[0].is_float else value


def _counted(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    return Signature(types, BIGINT) if len(types) <= 1 else None


register(
    AggregateFunction(
        name="count",
        shape="count(*), count(x)",
        rule=_counted,
        zero=0,
        add=lambda _, state, *values: state + 1,
        merge=lambda _, a, b: a + b,
        empty=lambda state: state == 0,
        result=lambda _, state: state,
        exact_merge=always,
        never_null=True,
        doc="The number of rows whose argument is not NULL; COUNT(*) counts all rows.",
        spark="count({0}){1}",
        native="count",
        grows=Grows.COUNT,
        keeps=Keeps.WORDS,
        examples=("count over 1, null, 2 = 2", "count over null = 0", "count over nothing = 0", "count over '' = 1"),
    )
)


def _summed(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    """SUM: integers to BIGINT, DECIMAL(p,s) to DECIMAL(min(38, p + 10), s), floats to DOUBLE, INTERVALs."""
    if len(types) != 1:
        return None
    (t,) = types
    if t.kind is Kind.NULL:
        t = BIGINT
    if t.is_integer:
        return Signature((t,), BIGINT)
    if t.is_float:
        return Signature((t,), DOUBLE)
    if t.kind is Kind.DECIMAL:
        return Signature((t,), decimal(min(MAX_DECIMAL_DIGITS, t.precision + SUM_DIGITS), t.scale))
    return Signature((t,), t) if t.is_interval else None


def _add_to_sum(_: Signature, state: tuple[Any, int], value: Any) -> tuple[Any, int]:
    return state[0] + value, state[1] + 1


def _merge_sums(_: Signature, a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
    return a[0] + b[0], a[1] + b[1]


def _sum(signature: Signature, state: tuple[Any, int]) -> Any:
    total, type_ = state[0], signature.returns
    if type_.is_float:
        return float(total)
    limit = 10**type_.precision
    low, high = RANGES.get(type_.kind, (1 - limit, limit - 1))
    if not low <= total <= high:
        raise Failure("CQ0705", f"{type_} overflow: the sum of {state[1]} values is out of its range")
    return total


def _spark_sum(signature: Signature, argument: str, over: str) -> str:
    returns = signature.returns
    if returns == BIGINT:
        total = _spark_exact_sum(argument, over)
        # the second cast fails, as an overflow, for every total beyond the BIGINT of the first
        return f"coalesce(try_cast({total} as BIGINT), cast(cast({total} as DECIMAL(18,0)) as BIGINT))"
    return f"sum({argument}){over}"


def _spark_exact_sum(argument: str, over: str) -> str:
    # as BIGINT, whether partial sums overflow would depend on the distribution of the rows
    column = argument.removeprefix("DISTINCT ")
    return f"sum({argument.removesuffix(column)}cast({column} as DECIMAL(38,0))){over}"


register(
    AggregateFunction(
        name="sum",
        shape="sum(number), sum(INTERVAL)",
        rule=_summed,
        zero=(0, 0),
        add=_add_to_sum,
        merge=_merge_sums,
        empty=lambda state: state[1] == 0,
        result=_sum,
        exact_merge=no_floats,
        fails=("CQ0705",),
        doc="The sum of the non-null values; NULL if there are none. Integers give BIGINT, DECIMAL(p,s) gives "
        "DECIMAL(min(38, p + 10), s); both are exact and fail only if the result does not fit.",
        spark=_spark_sum,
        native="sum",
        grows=Grows.SUM,
        counts_truth=True,
        keeps=Keeps.WORDS,
        examples=(
            "sum over 1, 2, null = 3",
            "sum over nothing = null",
            "sum over null = null",
            "sum over 9223372036854775807, 1, -1 = 9223372036854775807",
            "sum over 9223372036854775807, 1 = error CQ0705",
            "sum over 0.10, 0.20 = 0.30",
            "sum over 0.1e0, 0.2e0, 0.3e0 = 0.6000000000000001e0",
        ),
    )
)


def _averaged(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    """AVG: DOUBLE, but DECIMAL(p,s) gives DECIMAL(min(38, p + 4), min(38, s + 4)) as in Spark, and an INTERVAL keeps
    its type."""
    if len(types) != 1:
        return None
    (t,) = types
    if t.kind is Kind.DECIMAL:
        precision, scale = (min(MAX_DECIMAL_DIGITS, n + AVG_DIGITS) for n in (t.precision, t.scale))
        return Signature((t,), decimal(precision, scale))
    if t.kind is Kind.NULL:
        t = BIGINT
    if t.is_interval:
        return Signature((t,), t)
    return Signature((t,), DOUBLE) if t.is_integer or t.is_float else None


def _average_fits(signature: Signature) -> bool:
    """Whether no average fails: that of DECIMALs fits unless its type is cut to 38 digits."""
    returns = signature.returns
    return returns.kind is not Kind.DECIMAL or returns.precision == signature.params[0].precision + AVG_DIGITS


def _avg(signature: Signature, state: tuple[Any, int]) -> Any:
    if signature.returns.kind is Kind.DECIMAL:
        returns, digits = signature.returns, signature.returns.scale - signature.params[0].scale
        return in_digits(returns, half_up(state[0] * 10**digits, state[1]), f"the average of {state[1]} values")
    if signature.returns.is_interval:
        return half_up(*state)
    return state[0] / state[1]  # of integers: one correctly rounded division


def _spark_avg(signature: Signature, argument: str, over: str) -> str:
    if not signature.params[0].is_integer:
        return f"avg({argument}){over}"
    return f"(cast({_spark_exact_sum(argument, over)} as DOUBLE) / count({argument}){over})"


register(
    AggregateFunction(
        name="avg",
        shape="avg(number), avg(INTERVAL)",
        rule=_averaged,
        zero=(0, 0),
        add=_add_to_sum,
        merge=_merge_sums,
        empty=lambda state: state[1] == 0,
        result=_avg,
        exact_merge=no_floats,
        fails=("CQ0705",),
        exact=_average_fits,
        doc="The mean of the non-null values; NULL if there are none. Integers give a DOUBLE: the exact sum, "
        "divided once. DECIMAL(p,s) gives DECIMAL(min(38, p + 4), min(38, s + 4)) and an INTERVAL its own "
        "type, both rounded half up.",
        spark=_spark_avg,
        native="avg",
        counts_truth=True,
        keeps=Keeps.WORDS,
        examples=(
            "avg over 1, 2, null = 1.5e0",
            "avg over nothing = null",
            "avg over 9007199254740993 = 9007199254740992e0",
            "avg over 9223372036854775807, 9223372036854775807 = 9223372036854775807e0",
            "avg over 1.00, 1.00, 2.00 = 1.333333",
            "avg over 0e0, null = 0e0",
        ),
    ),
    "mean",
)


def _least(signature: Signature, state: Any, value: Any) -> Any:
    return without_negative_zero(signature, value) if state is None or precedes(value, state) else state


def _greatest(signature: Signature, state: Any, value: Any) -> Any:
    return without_negative_zero(signature, value) if state is None or precedes(state, value) else state


def _spark_extreme(name: str) -> Callable[[Signature, str, str], str]:
    def text(signature: Signature, argument: str, over: str) -> str:
        plain = f"{name}({argument}){over}"
        if not signature.params[0].is_float:
            return plain
        return cast_to(f"({plain} + 0D)", signature.returns, unless=DOUBLE)  # 0.0 for -0.0

    return text


register(
    AggregateFunction(
        name="min",
        shape="min(x)",
        rule=ordered,
        zero=None,
        add=_least,
        merge=lambda signature, a, b: a if b is None else _least(signature, a, b),
        empty=lambda state: state is None,
        result=lambda _, state: state,
        exact_merge=always,
        idempotent=True,
        doc="The least non-null value; NULL if there are none. NaN is greater than every number.",
        spark=_spark_extreme("min"),
        native="min",
        grows=Grows.LEAST,
        keeps=Keeps.WORDS,
        examples=(
            "min over 2, null, 1 = 1",
            "min over nothing = null",
            "min over CAST('NaN' AS DOUBLE), 1e0 = 1e0",
            "min over 'b', 'a' = 'a'",
            "min over -9223372036854775807, 0 = -9223372036854775807",
        ),
    ),
)
register(
    AggregateFunction(
        name="max",
        shape="max(x)",
        rule=ordered,
        zero=None,
        add=_greatest,
        merge=lambda signature, a, b: a if b is None else _greatest(signature, a, b),
        empty=lambda state: state is None,
        result=lambda _, state: state,
        exact_merge=always,
        idempotent=True,
        doc="The greatest non-null value; NULL if there are none. NaN is greater than every number.",
        spark=_spark_extreme("max"),
        native="max",
        grows=Grows.GREATEST,
        keeps=Keeps.WORDS,
        examples=(
            "max over 2, null, 1 = 2",
            "max over nothing = null",
            "max over CAST('NaN' AS DOUBLE), 1e0 = CAST('NaN' AS DOUBLE)",
            "max over 'b', 'a', '' = 'b'",
            "max over DATE '2024-01-01', DATE '2023-01-01' = DATE '2024-01-01'",
        ),
    )
)

for _name, _other, _stops_at, _doc in (
    ("bool_and", "every", False, "Whether every non-null condition is TRUE; NULL if there are none."),
    ("bool_or", "some", True, "Whether any non-null condition is TRUE; NULL if there are none."),
):
    register(
        AggregateFunction(
            name=_name,
            shape=f"{_name}(condition)",
            rule=fixed(BOOLEAN, returns=BOOLEAN),
            zero=None,
            add=lambda _, state, value, stop=_stops_at: stop if stop in (value, state) else value,
            merge=lambda _, a, b, stop=_stops_at: stop if stop in (a, b) else b if a is None else a,  # type: ignore[misc]
            empty=lambda state: state is None,
            result=lambda _, state: state,
            exact_merge=always,
            idempotent=True,
            doc=_doc,
            spark=_name + "({0}){1}",
            native=_name,
            keeps=Keeps.WORDS,
            examples=(
                f"{_name} over true, false = {str(_stops_at).lower()}",
                f"{_name} over null, true = true",
                f"{_name} over false, false = false",
                f"{_name} over nothing = null",
            ),
        ),
        _other,
    )
LOADED = True
