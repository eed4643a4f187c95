"""Spark SQL spellings that several entries need. TIMESTAMP is Spark's TIMESTAMP_NTZ throughout, TIMESTAMP_LTZ is one in
UTC, and TIME is the microseconds since midnight, a BIGINT."""

from __future__ import annotations

from cq.lang.functions.registry import Signature
from cq.lang.types import DataType, Kind

_NAMES = {
    Kind.NULL: "VOID",
    Kind.INTEGER: "INT",
    Kind.REAL: "FLOAT",
    Kind.VARCHAR: "STRING",
    Kind.TIME: "BIGINT",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ",
    Kind.TIMESTAMP_LTZ: "TIMESTAMP_NTZ",
    Kind.INTERVAL: "INTERVAL DAY TO SECOND",
    Kind.INTERVAL_MONTH: "INTERVAL YEAR TO MONTH",
}


def spark_type(type_: DataType) -> str:
    """The type's name in Spark SQL."""
    if type_.kind is Kind.ARRAY:
        assert type_.element is not None
        return f"ARRAY<{spark_type(type_.element)}>"
    return _NAMES.get(type_.kind, str(type_))


def time_of_day(text: str) -> str:
    """A TIME as that time on 1970-01-01, a TIMESTAMP_NTZ."""
    return f"cast(timestamp_micros({text}) as TIMESTAMP_NTZ)"


def cast_to(text: str, type_: DataType, *, unless: DataType | None = None) -> str:
    """`text` cast to `type_`; unchanged if it already has that type."""
    return text if type_ == unless else f"cast({text} as {spark_type(type_)})"


def clamped_int(text: str, limit: int = 2**31 - 1) -> str:
    """A BIGINT text as Spark's INT, clamped to `limit` on either side. NULL stays NULL."""
    clamped = f"cast(greatest(least({text}, {limit}L), -{limit}L) as INT)"
    return f"if({text} is null, null, {clamped})"  # GREATEST and LEAST skip NULL


def spark_substring(_: Signature, args: tuple[str, ...]) -> str:
    """SUBSTRING of a text or of bytes."""
    x, start, *count = args
    # at the end of INT Spark's sum of start and length wraps around
    return f"substring({', '.join((x, clamped_int(start, 2**30), *map(clamped_int, count)))})"
