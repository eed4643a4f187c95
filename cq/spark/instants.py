"""Casts from and to instants, TIMESTAMP_LTZ, as Spark SQL text: there each is its UTC TIMESTAMP_NTZ.

Zone names come from the time zone database, or are offsets, never text of the query: they may appear in SQL.
"""

from __future__ import annotations

from typing import Final

from cq.lang.types import DataType, Kind
from cq.spark.position import micros

# as in cq/spark/expressions.py, the texts that cq.lang.value_text accepts
_WHITE: Final = r"[\x00-\x20]*"
_DAY: Final = r"[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK: Final = r"[0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]{0,9})?)?"
_DISTANCE: Final = r"Z|z|UTC|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9])?)?"
INSTANT_PATTERN: Final = rf"\A{_WHITE}(?:({_DAY})|({_DAY}[ Tt]{_CLOCK})(?:[ ]?({_DISTANCE}))?){_WHITE}\z"


def local_time(text: str, zone: str) -> str:
    """The TIMESTAMP_NTZ of an instant in a zone."""
    return f"convert_timezone('UTC', '{zone}', {text})"


def instant_of(text: str, zone: str) -> str:
    """The instant of a TIMESTAMP_NTZ in a zone."""
    return f"convert_timezone('{zone}', 'UTC', {text})"


def instant_text(text: str, zone: str) -> str:
    """An instant as text: the local time and the UTC offset."""
    local = local_time(text, zone)
    apart = f"({micros(local)} - {micros(text)}) div 1000000"
    numbers = ("abs(o) div 3600", "abs(o) div 60 % 60", "abs(o) % 60")
    parts = [f"lpad(cast({number} as STRING), 2, '0')" for number in numbers]
    seconds = f"if(abs(o) % 60 = 0, '', concat(':', {parts[2]}))"
    distance = f"concat(if(o < 0, '-', '+'), {parts[0]}, ':', {parts[1]}, {seconds})"
    return f"concat(cast({local} as STRING), transform(array({apart}), o -> {distance})[0])"


def instant_from_text(text: str, target: DataType, cast: str) -> str:
    """The instant that a text spells, in the type's zone if it names none. cast: CAST or TRY_CAST."""
    assert target.kind is Kind.TIMESTAMP_LTZ
    groups = [f"regexp_extract({text}, r'{INSTANT_PATTERN}', {n})" for n in (1, 2, 3)]
    local = f"{cast}(upper(concat({groups[0]}, {groups[1]})) as TIMESTAMP_NTZ)"
    digits = f"translate({groups[2]}, ':', '')"
    parts = [f"coalesce(try_cast(substring(d, {at}, 2) as INT), 0)" for at in (2, 4, 6)]
    seconds = f"if(startswith(d, '-'), -1, 1) * ({parts[0]} * 3600 + {parts[1]} * 60 + {parts[2]})"
    named = f"{local} - make_dt_interval(0, 0, 0, {seconds})"
    return f"transform(array({digits}), d -> if(d = '', {instant_of(local, target.zone)}, {named}))[0]"
