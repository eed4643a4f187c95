"""Times written and read by a pattern: DATE_FORMAT and TO_TIMESTAMP with Java's letters, as Spark has them.

A pattern is a literal. It is parsed once, into fields; STRFTIME and STRPTIME are these functions with their pattern
translated (`java_pattern`), so there is only one set of fields.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from cq.lang.calendar import DAY_US, day_of_days, days_from_civil, days_in_month, month_of_days, year_of_days
from cq.lang.functions.registry import Constants, Failure, Refusal, Signature, SignatureRule, scalar
from cq.lang.functions.time_making import MONTH_NAMES, WEEKDAY_NAMES
from cq.lang.types import BIGINT, TIMESTAMP, VARCHAR, DataType, Kind, common_type, integer_range
from cq.lang.value_text import quoted
from cq.records import dataclass

# how often a letter may be repeated, and what each field is
LETTERS = {
    "y": (2, 4), "M": (1, 2, 3, 4), "d": (1, 2), "D": (1, 3), "E": (1, 2, 3, 4), "a": (1,),
    "H": (1, 2), "h": (1, 2), "m": (1, 2), "s": (1, 2), "S": (1, 2, 3, 4, 5, 6),
}  # fmt: skip
NAMES = {("M", 3), ("M", 4), ("E", 1), ("E", 2), ("E", 3), ("E", 4), ("a", 1)}
_RESERVED = "#{}[]"
# strftime's directives as Java's letters
_DIRECTIVES = {
    "Y": "yyyy", "y": "yy", "m": "MM", "-m": "M", "b": "MMM", "B": "MMMM", "d": "dd", "-d": "d", "j": "DDD", "-j": "D",
    "a": "EEE", "A": "EEEE", "p": "a", "H": "HH", "-H": "H", "I": "hh", "-I": "h", "M": "mm", "-M": "m", "S": "ss",
    "-S": "s", "f": "SSSSSS", "g": "SSS", "F": "yyyy-MM-dd", "T": "HH:mm:ss", "%": "%",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PatternField:
    """A letter of the pattern and how often it is repeated; the letter `'` for literal text, which is then `text`."""

    letter: str
    count: int
    text: str = ""

    @property
    def is_number(self) -> bool:
        return self.letter != "'" and (self.letter, self.count) not in NAMES


class BadPattern(Exception):
    """The text is not a valid pattern; the message says what is wrong."""


@lru_cache(maxsize=256)
def fields_of(pattern: str) -> tuple[PatternField, ...]:
    """The fields of a pattern; `BadPattern` for unknown letters."""
    out: list[PatternField] = []
    for run in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", pattern, re.DOTALL):
        text = run[0]
        if run[1] is not None:
            out.append(PatternField("'", 0, run[1].replace("''", "'") or "'"))
        elif not run[2]:
            if text in _RESERVED or text == "'":
                raise BadPattern(f"{text} at character {run.start() + 1} has no meaning here")
            out.append(PatternField("'", 0, text))
        elif len(text) not in LETTERS.get(text[0], ()):
            raise BadPattern(f"{text} at character {run.start() + 1} is not a field")
        else:
            out.append(PatternField(text[0], len(text)))
    return tuple(out)


def java_pattern(directives: str) -> str:
    """The pattern of STRFTIME in Java's letters; `BadPattern` for unsupported directives."""
    out = ""
    for part in re.finditer(r"%(-?.)|%|[^%]+", directives, re.DOTALL):
        if part[1] is None and part[0] != "%":
            out += _quoted(part[0])
        elif part[1] not in _DIRECTIVES:
            raise BadPattern(f"{part[0]} at character {part.start() + 1} is not a field")
        else:
            out += _DIRECTIVES[part[1]]
    return out


_TEMPLATE = {
    "YYYY": "yyyy", "YY": "yy", "MM": "MM", "FMMM": "M", "Mon": "MMM", "FMMonth": "MMMM", "DD": "dd", "FMDD": "d",
    "DDD": "DDD", "Dy": "EEE", "FMDay": "EEEE", "HH24": "HH", "FMHH24": "H", "HH12": "hh", "HH": "hh", "FMHH12": "h",
    "MI": "mm", "SS": "ss", "MS": "SSS", "US": "SSSSSS", "AM": "a", "PM": "a",
}  # fmt: skip
_TEMPLATE_PART = re.compile(rf'({"|".join(sorted(_TEMPLATE, key=len, reverse=True))})|"([^"]*)"|([^A-Za-z"]+)')
_ONLY_THERE = re.compile("YY|DD|HH24|HH12|MI|SS(?!S)|MS|US")


def _quoted(text: str) -> str:
    """A literal text, quoted as in a pattern."""
    return "'" + text.replace("'", "''") + "'" if text else ""


def template_pattern(template: str) -> str | None:
    """A template of PostgreSQL's TO_CHAR (YYYY-MM-DD HH24:MI:SS) in Java's letters; None for any other text."""
    out, text, at = "", "", 0
    while at < len(template):
        part = _TEMPLATE_PART.match(template, at)
        if part is None:
            return None
        if part[1]:
            out, text = out + _quoted(text) + _TEMPLATE[part[1]], ""
        else:
            text += part[2] or part[3] or ""
        at = part.end()
    out += _quoted(text)
    return out if _ONLY_THERE.search(template) else None


def minutes_for_months(pattern: str) -> bool:
    """Whether Java's minutes appear beside a year and a day but no hour, where other systems mean months."""
    letters = set(pattern)
    return {"y", "m", "d"} <= letters and not letters & set("MHh")


def check_readable(fields: Sequence[PatternField]) -> None:
    """`BadPattern` when these fields cannot be parsed: a part is missing, occurs twice, or has no end."""
    letters = [f.letter for f in fields if f.letter != "'"]
    for letter in letters:
        if letter in "ED":
            raise BadPattern(f"{letter} is only for writing")
        if letters.count(letter) > 1:
            raise BadPattern(f"{letter} stands there twice")
    if "y" not in letters or ("d" in letters and "M" not in letters):
        raise BadPattern("it has no year, or a day without a month")
    if ("h" in letters) != ("a" in letters) or {"h", "H"} <= set(letters):
        raise BadPattern("h goes with a, and H stands alone")
    for one, other in itertools.pairwise(fields):
        if one.is_number and other.is_number and "S" in (one.letter, other.letter):
            raise BadPattern("S stands beside another number")
        if one.is_number and other.is_number and one.count == 1:
            raise BadPattern(f"{one.letter} does not say how many digits it has")
    if not all(f.text.isascii() for f in fields):
        raise BadPattern("a text is not ASCII")


def reserved_digits(fields: Sequence[PatternField], at: int) -> int:
    """How many digits right after a field belong to the next ones."""
    count = 0
    for field in fields[at + 1 :]:
        if not field.is_number:
            break
        count += field.count
    return count


def _by_pattern(function: str, param: DataType, returns: DataType, reads: bool) -> SignatureRule:
    """A value and a literal pattern."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
        if len(types) != 2 or common_type(types[0], param) != param or types[1].kind not in {Kind.VARCHAR, Kind.NULL}:
            return None
        pattern = constants[1]
        if not isinstance(pattern, str):
            return Refusal(
                "CQ0302", f"{function} needs a literal pattern", f"write {function}(x, 'yyyy-MM-dd HH:mm:ss')"
            )
        try:
            fields = fields_of(pattern)
            if reads:
                check_readable(fields)
        except BadPattern as bad:
            other = "STRPTIME" if reads else "STRFTIME"
            way = (
                f"{other} takes patterns with %"
                if "%" in pattern
                else "fields: yyyy yy M d D E a H h m s S, text in ''"
            )
            return Refusal("CQ0302", f"in the pattern '{pattern}' {bad}", way)
        return Signature((param, VARCHAR), returns)

    return rule


# -- writing ----------------------------------------------------------------------------------------------------------


@scalar(
    "date_format",
    "date_format(TIMESTAMP, pattern)",
    _by_pattern("DATE_FORMAT", TIMESTAMP, VARCHAR, reads=False),
    spark="date_format({0}, {1})",
    native="date_format",
    examples=[
        "date_format(TIMESTAMP '2024-02-29 13:04:05.678', 'yyyy-MM-dd HH:mm:ss.SSS') = '2024-02-29 13:04:05.678'",
        "date_format(DATE '2024-02-05', 'EEEE, d MMMM yyyy') = 'Monday, 5 February 2024'",
        "date_format(TIMESTAMP '1969-12-31 00:30:00', 'EEE dd/MMM/yy h:mm a') = 'Wed 31/Dec/69 12:30 AM'",
        "date_format(DATE '2024-12-31', 'DDD ''day''') = '366 day'",
        "date_format(CAST('+12024-01-01' AS DATE), 'yyyyMMdd') = '+120240101'",
        "to_char(TIMESTAMP '2024-02-29 13:04:05', 'DD.MM.YYYY HH24:MI') = '29.02.2024 13:04'",
        "strftime(TIMESTAMP '2024-02-29 13:04:05', '%Y-%m-%d %I:%M:%S %p') = '2024-02-29 01:04:05 PM'",
        "date_format(null, 'yyyy') = null",
    ],
)
def date_format(x: int, pattern: str) -> str:
    """The time formatted by the pattern, a literal: see below. STRFTIME(x, '%Y-%m-%d') is the same with `%`."""
    days, micros = x // DAY_US, x % DAY_US
    return "".join(_written(field, days, micros) for field in fields_of(pattern))


def _written(field: PatternField, days: int, micros: int) -> str:
    hour = micros // 3_600_000_000
    match field.letter:
        case "'":
            return field.text
        case "y" if field.count == 2:
            return f"{abs(year_of_days(days)) % 100:02}"
        case "y":
            year = year_of_days(days)
            return f"{'-' if year < 0 else '+' if year > 9999 else ''}{abs(year):04}"
        case "M" if field.count > 2:
            name = MONTH_NAMES[month_of_days(days) - 1]
            return name if field.count == 4 else name[:3]
        case "E":
            name = WEEKDAY_NAMES[(days + 3) % 7]
            return name if field.count == 4 else name[:3]
        case "a":
            return "PM" if hour >= 12 else "AM"
        case "S":
            return f"{micros % 1_000_000:06}"[: field.count]
    values = {
        "M": month_of_days(days),
        "d": day_of_days(days),
        "D": days - days_from_civil(year_of_days(days), 1, 1) + 1,
        "H": hour,
        "h": (hour + 11) % 12 + 1,
        "m": micros // 60_000_000 % 60,
        "s": micros // 1_000_000 % 60,
    }
    return f"{values[field.letter]:0{field.count}}"


# -- reading ----------------------------------------------------------------------------------------------------------

MOST_DIGITS = 19  # of a number in a text; leading zeros count
TOO_MUCH = 10**6  # beyond every year: more digits make no difference
_DEFAULTS = {"M": 1, "d": 1, "H": 0, "h": 12, "a": 0, "m": 0, "s": 0, "S": 0}


def read_time(x: str, fields: Sequence[PatternField]) -> int | None:
    """The time that the text spells by the pattern; None if it does not match."""
    found = dict(_DEFAULTS)
    at = 0
    for number, field in enumerate(fields):
        value, at = _read_field(x, at, field, reserved_digits(fields, number))
        if at < 0:
            return None
        found[field.letter] = value
    year, month, day = found["y"], found["M"], found["d"]
    if at != len(x) or not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        return None
    if not 1 <= found["h"] <= 12 or found["H"] > 23 or found["m"] > 59 or found["s"] > 59:
        return None
    hour = found["H"] + found["h"] % 12 + 12 * found["a"]
    seconds = (hour * 60 + found["m"]) * 60 + found["s"]
    time = days_from_civil(year, month, day) * DAY_US + seconds * 1_000_000 + found["S"]
    low, high = integer_range(BIGINT)
    return time if low <= time <= high else None


_NOWHERE = (0, -1)


def _read_field(x: str, at: int, field: PatternField, reserved: int) -> tuple[int, int]:
    """The field's value and where it ends; `_NOWHERE` if it does not match. ASCII letters match in any case."""
    match field.letter:
        case "'":
            end = at + len(field.text)
            return (0, end) if lower_ascii(x[at:end]) == lower_ascii(field.text) else _NOWHERE
        case "a":
            word = lower_ascii(x[at : at + 2])
            return (int(word == "pm"), at + 2) if word in ("am", "pm") else _NOWHERE
        case "M" if field.count > 2:
            for number, name in enumerate(MONTH_NAMES, 1):
                end = at + (len(name) if field.count == 4 else 3)
                if lower_ascii(x[at:end]) == lower_ascii(name[: end - at]):
                    return number, end
            return _NOWHERE
        case "y" if field.count == 4:
            return _read_year(x, at, reserved)
        case "S":
            value, end = _read_number(x, at, 1, field.count)
            return (value * 10 ** (6 - (end - at)), end) if end > 0 else _NOWHERE
    value, end = _read_number(x, at, field.count, MOST_DIGITS if field.count == 1 else field.count)
    return (value + 2000 if field.letter == "y" else value), end


def _read_year(x: str, at: int, reserved: int) -> tuple[int, int]:
    """Four digits; more after `+`, four or more after `-`. The last digits of a run may belong to other fields."""
    sign = x[at : at + 1]
    first = at + (sign in ("+", "-"))
    value, end = _read_number(x, first, 4, MOST_DIGITS + reserved)
    if end > 0 and reserved:
        value, end = _read_number(x, first, 4, max(4, end - first - reserved))
    if end < 0 or (sign == "+" and end - first == 4) or (sign not in ("+", "-") and end - first > 4):
        return _NOWHERE
    return (value, end) if sign != "-" else (-value, end) if value else _NOWHERE


def _read_number(x: str, at: int, least: int, most: int) -> tuple[int, int]:
    """The number written with this many digits, and where they end."""
    value, end = 0, at
    while end < len(x) and end - at < most and "0" <= x[end] <= "9":
        if value < TOO_MUCH:
            value = value * 10 + int(x[end])
        end += 1
    return (value, end) if end - at >= least else _NOWHERE


def lower_ascii(text: str) -> str:
    """The text with A to Z in lower case."""
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in text)


def _spark_read(name: str) -> Callable[[Signature, tuple[str, ...]], str]:
    return lambda _, args: f"cast({name}({args[0]}, {args[1]}) as TIMESTAMP_NTZ)"


@scalar(
    "to_timestamp",
    "to_timestamp(text [, pattern])",
    _by_pattern("TO_TIMESTAMP", VARCHAR, TIMESTAMP, reads=True),
    spark=_spark_read("to_timestamp"),
    native="to_timestamp",
    fails=("CQ0707",),
    examples=[
        "to_timestamp('29.02.2024 13:04', 'dd.MM.yyyy HH:mm') = TIMESTAMP '2024-02-29 13:04:00'",
        "to_timestamp('5 Feb 24 1:04:05.6 pm', 'd MMM yy h:mm:ss.SSS a') = TIMESTAMP '2024-02-05 13:04:05.6'",
        "to_timestamp('20240229', 'yyyyMMdd') = TIMESTAMP '2024-02-29 00:00:00'",
        "to_timestamp('2024-02-29') = TIMESTAMP '2024-02-29 00:00:00'",
        "to_date('29/2/2024', 'd/M/yyyy') = DATE '2024-02-29'",
        "strptime('2024-02-29T13:04', '%Y-%m-%dT%H:%M') = TIMESTAMP '2024-02-29 13:04:00'",
        "to_timestamp('2023-02-29', 'yyyy-MM-dd') = error CQ0707",
        "to_timestamp(null, 'yyyy') = null",
    ],
)
def to_timestamp(x: str, pattern: str) -> int:
    """The text parsed by the pattern, a literal: see below. Without a pattern, like CAST. TO_DATE gives the day."""
    time = read_time(x, fields_of(pattern))
    if time is None:
        raise Failure("CQ0707", no_time(quoted(x), pattern))
    return time


def no_time(text: str, pattern: str) -> str:
    """The message about a text that does not follow a pattern."""
    return f"{text} is not a time as '{pattern}' writes it"


@scalar(
    "try_to_timestamp",
    "try_to_timestamp(text [, pattern])",
    _by_pattern("TRY_TO_TIMESTAMP", VARCHAR, TIMESTAMP, reads=True),
    spark=_spark_read("try_to_timestamp"),
    native="try_to_timestamp",
    may_be_null=True,
    examples=[
        "try_to_timestamp('2024-02-29', 'yyyy-MM-dd') = TIMESTAMP '2024-02-29 00:00:00'",
        "try_to_timestamp('2023-02-29', 'yyyy-MM-dd') = null",
        "try_to_timestamp('soon', 'yyyy-MM-dd') = null",
        "try_to_timestamp('soon') = null",
        "try_to_timestamp(null, 'yyyy') = null",
    ],
)
def try_to_timestamp(x: str, pattern: str) -> int | None:
    """Like TO_TIMESTAMP, but NULL if the text is not a time."""
    return read_time(x, fields_of(pattern))
