"""The shape of CSV text: where rows end, on which lines they stand, and their fields one by one.

A field is quoted when it begins with the quote; inside, two quotes are one; what follows the closing quote is taken as
it stands. Elsewhere a quote is a character like any other. Rows end at LF, CR or CRLF outside quotes; empty rows do not
count. This is what pyarrow's parser does (the tests compare them), but a quote that is never closed is a bad row here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

LF, CR = 10, 13
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Dialect:
    """delimiter, quote: one ASCII byte each; an empty quote means there is no quoting."""

    delimiter: bytes = b","
    quote: bytes = b'"'


STANDARD = Dialect()


@dataclass(frozen=True, slots=True)
class Cell:
    """A field without its quotes."""

    text: bytes
    quoted: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a chunk. lines: how many lines before it in the chunk.  closed: False when a quote is never closed."""

    start: int
    end: int
    lines: int
    cells: tuple[Cell, ...]
    closed: bool = True


@lru_cache(maxsize=16)
def _field_pattern(dialect: Dialect) -> re.Pattern[bytes]:
    d, q = re.escape(dialect.delimiter), re.escape(dialect.quote)
    plain = rb"([^" + d + rb"\r\n]*+)"
    end = rb"(" + d + rb"|\r\n|\n|\r|\Z)"
    if not dialect.quote:
        return re.compile(plain + end)
    quoted = q + rb"((?:[^" + q + rb"]|" + q + q + rb")*+)" + q + plain
    return re.compile(rb"(?:" + quoted + rb"|(?!" + q + rb")" + plain + rb")" + end)


def rows(text: bytes, dialect: Dialect) -> Iterator[Row]:
    """Every row of `text` that is not empty, in order."""
    match_field = _field_pattern(dialect).match
    at, start, lines, size = 0, 0, 0, len(text)
    cells: list[Cell] = []
    while at < size or cells:
        found = match_field(text, at)
        if found is None:  # only a quote without its end matches nothing
            yield Row(start, size, lines, (*cells, Cell(text[at + 1 :], True)), closed=False)
            return
        cells.append(_cell(found, dialect))
        at = found.end()
        end = found[found.re.groups]
        if end == dialect.delimiter:
            continue
        if at - len(end) > start:
            yield Row(start, at - len(end), lines, tuple(cells))
        lines += _line_ends(text, start, at)
        cells, start = [], at


def _cell(found: re.Match[bytes], dialect: Dialect) -> Cell:
    if found.re.groups == 2:
        return Cell(found[1], False)
    if found[1] is None:
        return Cell(found[3], False)
    return Cell(found[1].replace(dialect.quote * 2, dialect.quote) + found[2], True)


def _line_ends(text: bytes, start: int, stop: int) -> int:
    """Line ends in a stretch; CRLF is one."""
    carriage_returns = text.count(b"\r", start, stop)
    return text.count(b"\n", start, stop) + carriage_returns - (carriage_returns and text.count(b"\r\n", start, stop))


def count_line_feeds(text: bytes) -> int:
    """How many LFs there are; eight times as fast as bytes.count where they are dense."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == LF))


def ends_with_lf_only(text: bytes) -> bool:
    """Whether every line end is LF or CRLF. Looking first is cheap; counting what is not there takes 1 ms a MiB."""
    return b"\r" not in text or text.count(b"\r") == text.count(b"\r\n")


def has_hexadecimal(text: bytes) -> bool:
    """Whether 0x or 0X stands anywhere; four times as fast as looking for two bytes among many zeros."""
    if b"x" not in text and b"X" not in text:
        return False
    data = np.frombuffer(text, np.uint8)
    letters = np.flatnonzero((data[1:] | 0x20) == ord("x"))
    return bool((data[letters] == ord("0")).any())


def count_lines(text: bytes) -> int:
    """How many lines end in `text`."""
    return count_line_feeds(text) if b"\r" not in text else _line_ends(text, 0, len(text))


def complete(text: bytes, dialect: Dialect, last: bool) -> int:
    """How much of `text`, which begins at a row, is whole rows; when `last`, all of it."""
    if last:
        return len(text)
    if not dialect.quote or dialect.quote not in text:
        end = text.rfind(b"\n") + 1
        return end or text.rfind(b"\r", 0, len(text) - 1) + 1  # a CR at the very end may be half of a CRLF
    ends = _ends_outside_quotes(text, dialect)
    if ends is not None:
        return int(ends[-1]) + 1 if len(ends) else 0
    end = 0
    for row in rows(text, dialect):
        if not row.closed or row.end + 2 > len(text):
            break
        end = row.end + (2 if text[row.end : row.end + 2] == b"\r\n" else 1)
    return end


def _ends_outside_quotes(text: bytes, dialect: Dialect) -> Positions | None:
    """Where the LFs that end rows are; None when quotes stand where counting them does not tell inside from outside."""
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == dialect.quote[0])
    ends = np.flatnonzero(data == LF)
    opening = quotes[0::2]
    before = data[opening - 1]  # of a quote at 0 this is the last byte, and is not looked at
    begins = (before == dialect.delimiter[0]) | (before == LF) | (before == dialect.quote[0]) | (before == CR)
    if not (begins | (opening == 0)).all():
        return None
    # a quote before an opening one must be the closing one right before it: two of them are one character
    outside: Positions = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return outside


def lines_of_rows(text: bytes, dialect: Dialect, found: int) -> Positions | None:
    """The number of lines before each of the `found` rows of `text`; None when row k simply has k lines before it."""
    line_ends = count_line_feeds(text)
    only_lf = ends_with_lf_only(text)
    if only_lf and found == line_ends + (not text.endswith(b"\n")):
        return None
    ends = _ends_outside_quotes(text, dialect) if only_lf and dialect.quote else None
    if ends is None:
        return np.array([row.lines for row in rows(text, dialect)], np.int64)
    data = np.frombuffer(text, np.uint8)
    starts = np.concatenate(([0], ends + 1))
    starts = starts[starts < len(data)]
    empty = (data[starts] == LF) | ((data[starts] == CR) & (data[np.minimum(starts + 1, len(data) - 1)] == LF))
    lines: Positions = np.searchsorted(np.flatnonzero(data == LF), starts[~empty]).astype(np.int64)
    return lines
