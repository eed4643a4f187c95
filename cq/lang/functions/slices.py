"""Slices of texts and of arrays: from one position to another, both included, counted from the end if negative."""

from __future__ import annotations

from cq.lang.functions.spark_text import clamped_int


def between(first: int, last: int, count: int) -> slice:
    """Which of this many items lie between two positions, counted from 1."""
    begin, end = (n + count + 1 if n < 0 else n for n in (first, last))
    return slice(max(begin, 1) - 1, max(end, 0))


def spark_slice(size: str, part: str, args: tuple[str, ...]) -> str:
    """The same on Spark. size, part: the functions that count it and that take a part of it."""
    items, first, last = args
    first, last = (f"cast({clamped_int(n)} as BIGINT)" for n in (first, last))
    begin = f"greatest(if({first} < 0, {first} + {size}({items}) + 1, {first}), 1)"
    end = f"least(if({last} < 0, {last} + {size}({items}) + 1, {last}), {size}({items}))"
    length = f"cast(greatest({end} - {begin} + 1, 0) as INT)"
    return f"if({first} is null or {last} is null, null, {part}({items}, cast({begin} as INT), {length}))"
