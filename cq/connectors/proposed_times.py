"""The event time of a file without a TIMESTAMP column: which column holds it and how it is written, found from its
values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cq.connectors.access import FileAccess
from cq.connectors.lateness import RunningDelay, Times, column_of, seen_times
from cq.connectors.natives import NONE, Natives
from cq.grammar.inline import string
from cq.lang.arrow_buffers import numbers
from cq.lang.calendar import DAY_US
from cq.lang.event_time import ProposedTime, SeenTimes
from cq.lang.functions.time_formats import fields_of, read_time
from cq.lang.schema import Field
from cq.lang.types import DataType, Kind
from cq.lang.value_text import read_timestamp

# Texts are read one by one in Python, 1 to 3 us per pattern and row: 0.2 s, mostly for the first batch.
LOOK_TEXTS = 100_000
# Numbers outside are unlikely to be times: 1980-01-01 to 2100-01-01. At most one of the units below fits.
_LEAST_US, _MOST_US = 315_532_800_000_000, 4_102_444_800_000_000

_UNITS = {"TIMESTAMP_SECONDS": 1_000_000, "TIMESTAMP_MILLIS": 1000, "TIMESTAMP_MICROS": 1}
_DAYS = (
    *("M/d/yyyy", "d/M/yyyy", "d.M.yyyy", "M-d-yyyy", "d-M-yyyy", "yyyy/M/d", "yyyyMMdd"),
    *("d MMM yyyy", "d-MMM-yyyy", "d/MMM/yyyy", "MMM d yyyy", "MMM d, yyyy", "d MMMM yyyy", "MMMM d, yyyy"),
)
_CLOCKS = ("", " H:mm", " H:mm:ss", " H:mm:ss.SSSSSS", " h:mm a", " h:mm:ss a", "'T'H:mm:ss", ":H:mm:ss")
PATTERNS = (
    *(day + clock for day in _DAYS for clock in _CLOCKS),
    "yyyyMMddHHmmss",
    "yyyyMMdd HHmmss",
    "yyyy-M-d h:mm a",
)
# Patterns with the month first, and the same ones with the day first.
_TURNED = tuple((f"M{sign}d{sign}yyyy{clock}", f"d{sign}M{sign}yyyy{clock}") for sign in "/-" for clock in _CLOCKS)

Read = Callable[[pa.Array], "Times | None"]


def proposed_time(
    column: str,
    fields: tuple[Field, ...],
    place: int,
    options: Mapping[str, str],
    access: FileAccess | None = None,
    natives: Natives = NONE,
    given: Any = None,
) -> ProposedTime:
    """The form in which every value of the column is a valid time, if there is one.

    column: its name as the query writes it; a TIMESTAMP is already a time.  given: as for `seen_times`.  The first form
    that fits wins: 01/02/2024 is in January, unless another value shows that days come first.
    """
    if fields[place].type.is_timestamp:
        return ProposedTime(column, seen_times(fields, place, options, access, None, natives, given))
    forms = {form: (read, RunningDelay()) for form, read in _forms(column, fields[place].type)}
    rows, without, all_rows = 0, 0, True
    for found in column_of(fields, place, options, access, natives, given):
        looked = found[: LOOK_TEXTS - rows]
        rows, without = rows + len(looked), without + looked.null_count
        for form, (read, delay) in list(forms.items()):
            times = read(looked.drop_null())
            if times is None:
                del forms[form]
            else:
                delay.add(times)
        if not forms or rows >= LOOK_TEXTS:
            all_rows = False
            break
    if not forms or rows == without:
        return ProposedTime("", SeenTimes(0, rows, all_rows, without))
    form, (_, delay) = next(iter(forms.items()))
    other = next((d for m, d in _TURNED if form == _by_pattern(column, m) and _by_pattern(column, d) in forms), "")
    return ProposedTime(form, SeenTimes(delay.delay_us, rows, all_rows, without), other)


def _forms(column: str, type_: DataType) -> Iterator[tuple[str, Read]]:
    """Every expression that may turn a column of this type into a time, with the reader of its values."""
    if type_.kind is Kind.DATE:
        yield f"CAST({column} AS TIMESTAMP)", _of_days
    elif type_.is_integer:
        for function, unit_us in _UNITS.items():
            yield f"{function}({column})", partial(_of_counts, unit_us)
    elif type_.kind is Kind.VARCHAR:
        yield f"CAST({column} AS TIMESTAMP)", partial(_of_texts, read_timestamp)
        for pattern in PATTERNS:
            yield _by_pattern(column, pattern), partial(_of_texts, _reader(pattern))


def _by_pattern(column: str, pattern: str) -> str:
    return f"TO_TIMESTAMP({column}, {string(pattern)})"


def _reader(pattern: str) -> Callable[[str], int | None]:
    fields = fields_of(pattern)
    return lambda text: read_time(text, fields)


def _of_days(days: pa.Array) -> Times:
    times: Times = numbers(days).astype(np.int64) * DAY_US
    return times


def _of_counts(unit_us: int, values: pa.Array) -> Times | None:
    counts = numbers(values).astype(np.int64)
    if len(counts) and not (_LEAST_US // unit_us <= counts.min() and counts.max() < _MOST_US // unit_us):
        return None
    times: Times = counts * unit_us
    return times


def _of_texts(read: Callable[[str], int | None], texts: pa.Array) -> Times | None:
    times = []
    for text in texts.to_pylist():
        time = read(text)
        if time is None:
            return None
        times.append(time)
    return np.array(times, np.int64)


_TIME_NAMES = re.compile(r"(^|_)(ts|t|at|on|time|timestamp|datetime|date|epoch|when|created|updated)(_|$)|time", re.I)


def first_proposed_time(
    fields: tuple[Field, ...], written: Callable[[str], str], options: Mapping[str, str], natives: Natives
) -> ProposedTime | None:
    """The time of the first column that has one. Integer columns are considered only if their name suggests a time,
    since any number may be one. written: how the query writes a name."""
    for place, f in enumerate(fields):
        if f.type.kind in {Kind.VARCHAR, Kind.DATE} or (f.type.is_integer and _TIME_NAMES.search(f.name)):
            found = proposed_time(written(f.name), fields, place, options, natives=natives)
            if found.expression:
                return found
    return None
