"""Suggestions for data errors: the same for every engine."""

from __future__ import annotations

import re

from cq.errors import DataError, SourceText, Span
from cq.lang.functions.text_building import MOST_LETTERS
from cq.lang.types import MAX_DECIMAL_DIGITS
from cq.records import replace

# The form that gives NULL instead of an error, where that is not TRY_CAST.
_TRIED = {
    "TO_TIMESTAMP": "TRY_TO_TIMESTAMP(…)",
    "STRPTIME": "TRY_STRPTIME(…)",
    "TO_DATE": "TRY_TO_DATE(…)",
    "UNIX_TIMESTAMP": "UNIX_SECONDS(TRY_TO_TIMESTAMP(…))",
    "TO_UNIX_TIMESTAMP": "UNIX_SECONDS(TRY_TO_TIMESTAMP(…))",
}
# For numbers that are no date or time: the same as text, read by a function that gives NULL.
_MADE = {
    "MAKE_DATE": "TRY_TO_DATE(CONCAT(year, '-', month, '-', day), 'yyyy-M-d')",
    "MAKE_TIMESTAMP": "TRY_TO_TIMESTAMP(CONCAT(year, '-', month, '-', day, ' ', hour, ':', minute), 'yyyy-M-d H:m')",
}


def with_ways_out(error: DataError, source: SourceText) -> DataError:
    """The error; its first finding suggests a fix, if it did not yet."""
    first, *others = error.diagnostics
    if not first.help:
        first = replace(first, help=ways_out(first.code, first.message, written_at(first.span, source)))
    return DataError(first, *others)


def written_at(span: Span, source: SourceText) -> str:
    """The name of the function that the query calls at this place, in capitals; "" where there is none."""
    called = re.match(r"\s*(\w+)\s*\(", source.line(span.line)[span.column - 1 :]) if span.line else None
    return called[1].upper() if called else ""


def ways_out(code: str, message: str, name: str) -> tuple[str, ...]:
    """Fixes for a data error with this code and message, in a call of this function, if it was in a call."""
    match code:
        case "CQ0705":
            if any(time in message for time in ("DATE", "TIMESTAMP", "INTERVAL")):
                return ("no type can hold this value: exclude such rows with WHERE or CASE",)
            if f"DECIMAL({MAX_DECIMAL_DIGITS}," in message:
                return ("no DECIMAL has more digits: cast the operands to DOUBLE",)
            return ("cast an operand to a wider type, or to DOUBLE",)
        case "CQ0706":
            return ("to get NULL instead, write a / NULLIF(b, 0) or TRY_DIVIDE(a, b)",)
        case "CQ0707":
            return (f"to get NULL instead, write {_TRIED.get(name, 'TRY_CAST')}",)
        case "CQ0708" if name in _MADE:
            return (f"to get NULL instead, write {_MADE[name]}",)
        case "CQ0708" if str(MOST_LETTERS) in message:
            return (f"limit the number, as in LEAST(n, {MOST_LETTERS})",)
        case "CQ0709":
            return ("wait longer for late rows: subtract a larger interval in WATERMARK", "or drop them: late = 'drop'")
        case "CQ0711":
            return ("correct the row, or declare a stream and write its rows by a trigger with ON CONFLICT",)
        case _:
            return ()
