"""Arithmetic on times of day, and their combination with a date. They wrap around: an hour after 23:30 it is 00:30."""

from __future__ import annotations

from collections.abc import Callable

from cq.lang.functions.arithmetic import within
from cq.lang.functions.registry import OVERLOADS, Signature, scalar
from cq.lang.functions.signatures import fixed, overloaded
from cq.lang.types import DATE, INTERVAL, TIME, TIMESTAMP


def _moved(sign: str) -> Callable[[Signature, tuple[str, ...]], str]:
    """Spark's text, where a TIME is a count of microseconds."""

    def write(signature: Signature, args: tuple[str, ...]) -> str:
        counts = (
            f"unix_micros(timestamp_micros(0L) + {a}) % 86400000000L" if type_ == INTERVAL else a
            for a, type_ in zip(args, signature.params, strict=True)
        )
        return f"pmod({f' {sign} '.join(counts)}, 86400000000L)"

    return write


@scalar(
    "time_add",
    "time_add(TIME, INTERVAL), also as `+`",
    overloaded(Signature((TIME, INTERVAL), TIME), Signature((INTERVAL, TIME), TIME)),
    spark=_moved("+"),
    examples=[
        "TIME '23:30:00' + INTERVAL '1' HOUR = TIME '00:30:00'",
        "time_add(TIME '00:00:00', INTERVAL '0' SECOND) = TIME '00:00:00'",
        "time_add(TIME '10:00:00', INTERVAL '-36' HOUR) = TIME '22:00:00'",
        "time_add(TIME '00:00:00', INTERVAL '9223372036854775807' MICROSECOND) = TIME '04:00:54.775807'",
        "time_add(null, INTERVAL '1' HOUR) = null",
    ],
)
def time_add(x: int, y: int) -> int:
    """Add an interval to a time of day; it wraps around at midnight."""
    return (x % 86400000000 + y % 86400000000) % 86400000000


@scalar(
    "time_subtract",
    "time_subtract(TIME, INTERVAL), also as `-`",
    fixed(TIME, INTERVAL, returns=TIME),
    spark=_moved("-"),
    examples=[
        "TIME '00:30:00' - INTERVAL '1' HOUR = TIME '23:30:00'",
        "time_subtract(TIME '00:00:00', INTERVAL '0' SECOND) = TIME '00:00:00'",
        "time_subtract(TIME '10:00:00', INTERVAL '25' HOUR) = TIME '09:00:00'",
        "time_subtract(TIME '10:00:00', null) = null",
    ],
)
def time_subtract(x: int, y: int) -> int:
    """Subtract an interval from a time of day; it wraps around at midnight."""
    return (x - y % 86400000000) % 86400000000


@scalar(
    "time_difference",
    "time_difference(TIME, TIME), also as `-`",
    fixed(TIME, TIME, returns=INTERVAL),
    spark="(timestamp_micros({0}) - timestamp_micros({1}))",
    examples=[
        "TIME '10:30:00' - TIME '09:00:00' = INTERVAL '90' MINUTE",
        "TIME '00:00:00' - TIME '23:59:59.999999' = INTERVAL '-86399999999' MICROSECOND",
        "time_difference(TIME '00:00:00', TIME '00:00:00') = INTERVAL '0' SECOND",
        "time_difference(TIME '10:30:00', null) = null",
    ],
)
def time_difference(x: int, y: int) -> int:
    """The time from the second to the first on the same day; negative if the first is earlier."""
    return x - y


@scalar(
    "date_at",
    "date_at(DATE, TIME), also as `+`",
    fixed(DATE, TIME, returns=TIMESTAMP),
    spark="cast(timestamp_micros(unix_micros(cast({0} as TIMESTAMP_LTZ)) + {1}) as TIMESTAMP_NTZ)",
    native="date_at",
    fails=("CQ0705",),
    examples=[
        "DATE '2024-02-29' + TIME '10:20:30' = TIMESTAMP '2024-02-29 10:20:30'",
        "date_at(DATE '1969-12-31', TIME '23:59:59.5') = TIMESTAMP '1969-12-31 23:59:59.5'",
        "date_at(DATE '1970-01-01', TIME '00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_at(CAST('+294248-01-01' AS DATE), TIME '00:00:00') = error CQ0705",
        "date_at(null, TIME '10:00:00') = null",
    ],
)
def date_at(date: int, time: int) -> int:
    """The time on that date."""
    return within(TIMESTAMP, date * 86400000000 + time, "date plus time")


OVERLOADS["+"] = (*OVERLOADS["+"], "time_add", "date_at")
OVERLOADS["-"] = (*OVERLOADS["-"], "time_subtract", "time_difference")
