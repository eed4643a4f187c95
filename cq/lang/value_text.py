"""Values as text and back: the strict readers and the writers behind CAST, connectors' text formats and error messages.

Readers take a text and return the physical value, or None if it is invalid; they accept only ASCII digits and none of
the extras of Python's `int` and `float` (`1_000`, `٣`, `0x10`). White space around a value is removed first, as Spark
does: code points up to U+0020. Writers give what Spark's CAST to STRING gives.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from cq.lang.calendar import DAY_US, day_of_days, days_from_civil, days_in_month, month_of_days, year_of_days
from cq.lang.types import INT64_MAX, INT64_MIN, DataType, Kind, integer_range, round_to_real
from cq.lang.zones import zone_of

MAX_NUMBER_CHARACTERS = 400  # longer numbers are refused before any arithmetic on them
MOST_SHOWN = 60  # letters of a text in a message: the first bytes that a kernel keeps of it hold more (layout/abi.py)
_WHITE = "".join(map(chr, range(33)))

_PAIRS = re.compile("(?:[0-9A-Fa-f]{2})*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,5}))?")
_DOUBLE_WORDS = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-infinity": -math.inf,
}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_DATE = r"([+-]?[0-9]{4,7})-([0-9]{1,2})-([0-9]{1,2})"
_CLOCK = r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?"
_TIME = re.compile(_CLOCK)
_TIMESTAMP = re.compile(rf"{_DATE}(?:[ Tt]{_CLOCK}[ ]?(?:Z|z|UTC|[+-]00:?00)?)?")
_OFFSET = r"(?:(Z|z|UTC)|([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?)"
_INSTANT = re.compile(rf"{_DATE}(?:[ Tt]{_CLOCK}(?:[ ]?{_OFFSET})?)?")


def read_integer(text: str) -> int | None:
    """The integer that a text spells, of any size up to MAX_NUMBER_CHARACTERS digits."""
    text = text.strip(_WHITE)
    return int(text) if len(text) <= MAX_NUMBER_CHARACTERS and _INTEGER.fullmatch(text) else None


def read_double(text: str) -> float | None:
    """The nearest DOUBLE. `NaN`, `Infinity`, `inf` in any case, and a final `d` or `f` are accepted, as in Spark."""
    text = text.strip(_WHITE)
    if len(text) > MAX_NUMBER_CHARACTERS:
        return None
    number = text[:-1] if text[-1:] in tuple("dDfF") else text
    if _NUMBER.fullmatch(number):
        return float(number)
    return _DOUBLE_WORDS.get(text.lower())


def read_decimal(text: str, precision: int, scale: int) -> int | None:
    """The unscaled value of DECIMAL(precision, scale), rounded half up; None also when it has too many digits."""
    text = text.strip(_WHITE)
    match = _NUMBER.fullmatch(text) if len(text) <= MAX_NUMBER_CHARACTERS else None
    if match is None:
        return None
    sign, whole, fraction, bare_fraction, exponent = match.groups()
    fraction = bare_fraction or fraction or ""
    digits = int((whole or "") + fraction)
    shift = scale + int(exponent or 0) - len(fraction)  # the value is digits * 10**(shift - scale)
    if digits == 0 or shift < -MAX_NUMBER_CHARACTERS - 1:
        return 0
    if shift > precision:
        return None
    unscaled = digits * 10**shift if shift >= 0 else (2 * digits + 10**-shift) // (2 * 10**-shift)
    if unscaled >= 10**precision:
        return None
    return int(-unscaled if sign == "-" else unscaled)


def read_boolean(text: str) -> bool | None:
    """TRUE for t, true, y, yes, 1; FALSE for f, false, n, no, 0; in any case."""
    word = text.strip(_WHITE).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def read_timestamp(text: str) -> int | None:
    """Microseconds since 1970 of `YYYY-MM-DD[ hh:mm[:ss[.f]]]`, or with `T` between them; digits past six are cut.

    `Z`, `UTC` and `+00:00` may follow; any other zone is refused, because a TIMESTAMP has none.
    """
    match = _TIMESTAMP.fullmatch(text.strip(_WHITE))
    if match is None:
        return None
    days, since_midnight = _days(*match.groups()[:3]), _time_of_day(*match.groups()[3:])
    if days is None or since_midnight is None:
        return None
    time = days * DAY_US + since_midnight
    return time if INT64_MIN <= time <= INT64_MAX else None


def read_instant(text: str, zone: str) -> int | None:
    """Microseconds since 1970 in UTC of the same texts; `Z`, `UTC` or an offset such as `+02:00` may follow.

    Without one the time is in `zone`: an ambiguous time is the first one, a skipped one is moved past the gap.
    """
    match = _INSTANT.fullmatch(text.strip(_WHITE))
    if match is None:
        return None
    days, since_midnight = _days(*match.groups()[:3]), _time_of_day(*match.groups()[3:7])
    if days is None or since_midnight is None:
        return None
    local = days * DAY_US + since_midnight
    utc, sign, hours, minutes, seconds = match.groups()[7:]
    if utc is None and sign is None:
        time = local - zone_of(zone).offset_of(local) if INT64_MIN <= local <= INT64_MAX else local
    else:
        ahead = _time_of_day(hours, minutes, seconds, None)
        if ahead is None:
            return None
        time = local + ahead if sign == "-" else local - ahead
    return time if INT64_MIN <= time <= INT64_MAX else None


def read_time(text: str) -> int | None:
    """Microseconds since midnight of `hh:mm[:ss[.f]]`; digits past six are cut."""
    match = _TIME.fullmatch(text.strip(_WHITE))
    return _time_of_day(*match.groups()) if match is not None else None


def _time_of_day(hour: str | None, minute: str | None, second: str | None, fraction: str | None) -> int | None:
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((fraction or "").ljust(6, "0")[:6])


def read_date(text: str, clock: bool = True) -> int | None:
    """Days since 1970 of `YYYY-MM-DD`; with `clock` a valid time of day may follow and is ignored."""
    match = _TIMESTAMP.fullmatch(text.strip(_WHITE))
    if match is None or (match.group(4) is not None and not clock):
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
    if hour > 23 or minute > 59 or second > 59:
        return None
    days = _days(*match.groups()[:3])
    low, high = integer_range(DataType(Kind.INTEGER))
    return days if days is not None and low <= days <= high else None


def _days(year_text: str, month_text: str, day_text: str) -> int | None:
    year, month, day = int(year_text), int(month_text), int(day_text)
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        return None
    return days_from_civil(year, month, day)


def write_double(value: float) -> str:
    """Java's text: the fewest digits that read back as the same value, at least one after the point, `1.0E21` from
    10**7."""
    if value == 0 or not math.isfinite(value):
        return _special(value)
    return _java(*_shortest(value))


def write_real(value: float) -> str:
    """The same for a REAL: the fewest digits that read back as its 32 bits."""
    if value == 0 or not math.isfinite(value):
        return _special(value)
    magnitude = abs(value)
    for digits in range(2, 10):
        nearest = Decimal(f"{magnitude:.{digits - 1}e}")
        above = nearest + Decimal(1).scaleb(nearest.adjusted() - digits + 1)
        found = next((d for d in (nearest, above) if round_to_real(float(d)) == magnitude), None)
        if found is not None:
            break
    # below a power of two REALs are denser: the nearest number may read as another one, and the next above it as this
    # one
    assert found is not None, "nine digits give every REAL back"
    return ("-" if value < 0 else "") + _java(*_parts(f"{found:e}"))


def _special(value: float) -> str:
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _shortest(value: float) -> tuple[str, int]:
    text = repr(value)
    digits = text.lower().split("e")[0].replace("-", "").replace(".", "").strip("0")
    # Java writes at least two digits and takes the nearest such number: 4.9E-324, not 5.0E-324
    return _parts(f"{value:.1e}" if len(digits) < 2 else f"{Decimal(text):e}")


def _parts(scientific: str) -> tuple[str, int]:
    mantissa, exponent = scientific.split("e")
    return mantissa, int(exponent)


def _java(mantissa: str, exponent: int) -> str:
    sign = "-" if mantissa[0] == "-" else ""
    digits = mantissa.lstrip("-").replace(".", "").rstrip("0") or "0"
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    digits = digits.ljust(exponent + 2, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def write_decimal(value: int, scale: int) -> str:
    """The plain text with all digits of the scale."""
    digits = str(abs(value)).rjust(scale + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


def write_date(days: int) -> str:
    """`YYYY-MM-DD`; years beyond 9999 with `+`, before 0 with `-`."""
    year = year_of_days(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month_of_days(days):02d}-{day_of_days(days):02d}"


def write_timestamp(micros: int) -> str:
    """`YYYY-MM-DD hh:mm:ss`, then the fraction without trailing zeros."""
    days = micros // DAY_US
    return f"{write_date(days)} {write_time(micros - days * DAY_US)}"


def write_instant(micros: int, zone: str) -> str:
    """The local time in a zone, as in `write_timestamp`, and its UTC offset: `+02:00`."""
    offset = zone_of(zone).offset_at(micros)
    return write_timestamp(micros + offset) + write_offset(offset)


def write_offset(micros: int) -> str:
    """`+02:00`; with seconds if there are any, as before clocks followed zones."""
    seconds = abs(micros) // 1_000_000
    tail = f":{seconds % 60:02d}" if seconds % 60 else ""
    return f"{'-' if micros < 0 else '+'}{seconds // 3600:02d}:{seconds // 60 % 60:02d}{tail}"


def write_time(micros: int) -> str:
    """`hh:mm:ss` of a time of day, then the fraction without trailing zeros."""
    return _clock(micros)


_SPAN = re.compile(r"(-)?(?:(\d{1,9}) )?(\d{1,9}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)


def write_interval(micros: int) -> str:
    """`INTERVAL '1 02:03:04.5' DAY TO SECOND`."""
    return f"INTERVAL '{'-' if micros < 0 else ''}{abs(micros) // DAY_US} {_clock(micros)}' DAY TO SECOND"


def write_span(micros: int) -> str:
    """`00:02:00`, `-1 02:03:04.5`: the form of an INTERVAL in results and text files."""
    days = abs(micros) // DAY_US
    return f"{'-' if micros < 0 else ''}{f'{days} ' if days else ''}{_clock(micros)}"


def read_span(text: str) -> int | None:
    """Microseconds of `[-][days ]hours:minutes:seconds[.fraction]`; None for anything else, or beyond 64 bits."""
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    sign, days, hours, minutes, seconds, fraction = found.groups()
    clock = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = int(days or 0) * DAY_US + clock * 1_000_000 + int(f"{fraction or '':0<6}")
    return None if micros > INT64_MAX else -micros if sign else micros


def _clock(micros: int) -> str:
    seconds, fraction = divmod(abs(micros) % DAY_US, 1_000_000)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


def write_months(months: int) -> str:
    """`INTERVAL '1-2' YEAR TO MONTH`."""
    years, rest = divmod(abs(months), 12)
    return f"INTERVAL '{'-' if months < 0 else ''}{years}-{rest}' YEAR TO MONTH"


_UNITS_US = (
    ("day", DAY_US),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


def write_duration(micros: int) -> str:
    """`1 hour 30 minutes`, for people. INTERVAL accepts it too, which is why each part of a negative one has its
    sign."""
    sign, rest, parts = "-" if micros < 0 else "", abs(micros), []
    for unit, length in _UNITS_US:
        amount, rest = divmod(rest, length)
        if amount:
            parts.append(f"{sign}{amount} {unit}{'' if amount == 1 else 's'}")
    return " ".join(parts) or "0 seconds"


def write_months_duration(months: int) -> str:
    """`1 year 6 months`, for people; INTERVAL accepts it too."""
    years, rest = divmod(abs(months), 12)
    sign = "-" if months < 0 else ""
    amounts = ((years, "year"), (rest, "month"))
    parts = [f"{sign}{amount} {unit}{'' if amount == 1 else 's'}" for amount, unit in amounts if amount]
    return " ".join(parts) or "0 months"


def size_text(size: int) -> str:
    """Bytes for people, in the form that memory_limit accepts."""
    for unit, power in (("GB", 3), ("MB", 2), ("KB", 1)):
        if size >= 1000**power:
            return f"{size / 1000**power:.3g}{unit}"
    return f"{size}B"


def shortened(text: str) -> str:
    """Cut a text to what a message shows of it."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def quoted(text: str) -> str:
    """A text as messages show it: cut, and in quotes."""
    return "'" + shortened(text).replace("'", "''") + "'"


def read_hexadecimal(text: str) -> bytes | None:
    """The bytes that pairs of hexadecimal digits stand for."""
    return bytes.fromhex(text) if _PAIRS.fullmatch(text) else None
