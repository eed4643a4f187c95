"""Interval literals in all their spellings, read into (amount, unit) parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cq.errors import Span, compile_error, did_you_mean
from cq.grammar.ast import INTERVAL_UNITS, IntervalPart

_SHORT_UNITS = {
    "Y": "YEAR", "MON": "MONTH", "MONS": "MONTH", "W": "WEEK", "D": "DAY", "H": "HOUR", "HR": "HOUR", "HRS": "HOUR",
    "MIN": "MINUTE", "MINS": "MINUTE", "S": "SECOND", "SEC": "SECOND", "SECS": "SECOND", "MS": "MILLISECOND",
    "MSEC": "MILLISECOND", "US": "MICROSECOND", "USEC": "MICROSECOND",
}  # fmt: skip
_RANGES = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))
_SEPARATORS = {"MONTH": "-", "HOUR": " +", "MINUTE": ":", "SECOND": ":"}
_AMOUNT = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*", re.ASCII)
_CLOCK = re.compile(r"\s*[+-]?\s*\d+:\d+:\d+(?:\.\d*)?\s*", re.ASCII)
_SUMMAND = re.compile(r"\s*(?:,\s*)?([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]+)", re.ASCII)


def interval_unit(word: str) -> str | None:
    """The unit a word names (`seconds`, `min`, `MS`), or None."""
    upper = word.upper()
    singular = upper[:-1] if upper.endswith("S") and upper[:-1] in INTERVAL_UNITS else upper
    return singular if singular in INTERVAL_UNITS else _SHORT_UNITS.get(upper)


def read_unit(word: str, span: Span) -> str:
    """The unit a word names; CQ0104 if it names none."""
    unit = interval_unit(word)
    if unit is None:
        close = did_you_mean(word, [u.lower() for u in INTERVAL_UNITS] + [u.lower() + "s" for u in INTERVAL_UNITS])
        known = f"units: {', '.join(u.lower() for u in INTERVAL_UNITS)}"
        raise compile_error("CQ0104", f"`{word}` is not a unit of time", span, help=(close, known) if close else known)
    return unit


def read_amount(text: str, unit: str, span: Span) -> tuple[IntervalPart, ...]:
    """`'10'` with the unit that follows it."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        problem = f"cannot read '{text}' as a number of {unit.lower()}s"
        raise compile_error(
            "CQ0104", problem, span, help=f"write INTERVAL '10' {unit} or INTERVAL '10 {unit.lower()}s'"
        )
    return (IntervalPart(_signed(match[1], match[2]), unit, span=span),)


def read_summands(text: str, span: Span) -> tuple[IntervalPart, ...]:
    """`'1 day 2 hours'`: the units are inside the string; `'01:30:00'` are hours, minutes and seconds."""
    if _CLOCK.fullmatch(text):
        return read_fields(text, "HOUR", "SECOND", span)
    parts: list[IntervalPart] = []
    at = 0
    while (match := _SUMMAND.match(text, at)) is not None:
        parts.append(IntervalPart(_signed(match[1], match[2]), read_unit(match[3], span), span=span))
        at = match.end()
    if text[at:].strip() or not parts:
        help = "write INTERVAL '10' SECOND or INTERVAL '1 hour 30 minutes'"
        if _AMOUNT.fullmatch(text):
            raise compile_error("CQ0104", f"the interval '{text}' has no unit", span, label="of what?", help=help)
        raise compile_error("CQ0104", f"cannot read '{text}' as an interval", span, help=help)
    return tuple(parts)


def read_fields(text: str, first: str, last: str, span: Span) -> tuple[IntervalPart, ...]:
    """`'1:30' MINUTE TO SECOND`: one number for each unit from `first` to `last`; a sign applies to all of them."""
    order = next((r for r in _RANGES if first in r and last in r), ())
    if not order or order.index(first) >= order.index(last):
        help = "from a greater to a smaller one: YEAR TO MONTH, or between DAY, HOUR, MINUTE and SECOND"
        raise compile_error("CQ0104", f"there is no interval {first} TO {last}", span, help=help)
    units: Sequence[str] = order[order.index(first) : order.index(last) + 1]
    pattern = r"(\d+)" + "".join(_SEPARATORS[u] + r"(\d+(?:\.\d*)?)" for u in units[1:])
    match = re.fullmatch(r"\s*([+-]?)\s*" + pattern + r"\s*", text, re.ASCII)
    if match is None:
        form = "'2-6'" if first == "YEAR" else "'3 12:30:00'" if first == "DAY" else "'1:30'"
        raise compile_error("CQ0104", f"cannot read '{text}' as {first} TO {last}", span, help=f"it looks like {form}")
    return tuple(IntervalPart(_signed(match[1], match[i + 2]), unit, span=span) for i, unit in enumerate(units))


def _signed(sign: str, digits: str) -> str:
    return "-" + digits if sign == "-" else digits
