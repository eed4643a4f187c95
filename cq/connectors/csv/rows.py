"""The structure of CSV text: where rows end, on which lines they are, and their fields one by one.

A field is quoted when it begins with the quote; inside, two quotes are one. Elsewhere a quote is a character like any
other. Rows end at LF, CR or CRLF outside quotes. This is what pyarrow's parser does (the tests compare them), but two
rows it reads are bad here: one whose quote is never closed, and one with text behind a closing quote, which pyarrow
takes as part of the value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cq.connectors.formats import CSV_OPTIONS
from cq.records import dataclass

LF, CR = 10, 13
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Dialect:
    """delimiter, quote: one ASCII byte each; an empty quote means there is no quoting."""

    delimiter: bytes
    quote: bytes


STANDARD = Dialect(*(CSV_OPTIONS[key].default.encode() for key in ("delimiter", "quote")))


@dataclass(frozen=True, slots=True)
class Cell:
    """A field without its quotes."""

    text: bytes
    quoted: bool


NEVER_CLOSED = "a quoted field is never closed"
TEXT_BEHIND = "text follows the closing quote of a field"


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of a chunk. lines: how many lines precede it in the chunk.  fault: what is wrong with its quotes, if
    anything."""

    start: int
    end: int
    lines: int
    cells: tuple[Cell, ...]
    fault: str = ""

    @property
    def blank(self) -> bool:
        """Whether the line is empty: a NULL in a file with one column, skipped in one with several."""
        return self.start == self.end


@lru_cache(maxsize=16)
def _field_pattern(dialect: Dialect) -> re.Pattern[bytes]:
    d, q = re.escape(dialect.delimiter), re.escape(dialect.quote)
    plain = rb"([^" + d + rb"\r\n]*+)"
    end = rb"(" + d + rb"|\r\n|\n|\r|\Z)"
    if not dialect.quote:
        return re.compile(plain + end)
    quoted = q + rb"((?:[^" + q + rb"]|" + q + q + rb")*+)" + q + plain
    return re.compile(rb"(?:" + quoted + rb"|(?!" + q + rb")" + plain + rb")" + end)


def rows(text: bytes, dialect: Dialect, most_cells: int = sys.maxsize) -> Iterator[CsvRow]:
    """Every row of `text`, in order; a blank line is a row with one empty cell.

    most_cells: a row with more is cut there and is the last one.
    """
    match_field = _field_pattern(dialect).match
    quoting = bool(dialect.quote)
    at, start, lines, size = 0, 0, 0, len(text)
    cells: list[Cell] = []
    fault = ""
    while at < size or cells:
        found = match_field(text, at)
        if found is None:  # only an unclosed quote matches nothing
            yield CsvRow(start, size, lines, (*cells, Cell(text[at + 1 :], True)), NEVER_CLOSED)
            return
        cells.append(_cell(found, dialect))
        if quoting and found[2]:
            fault = TEXT_BEHIND
        at = found.end()
        end = found[found.re.groups]
        if end == dialect.delimiter and len(cells) <= most_cells:
            continue
        yield CsvRow(start, at - len(end), lines, tuple(cells), fault)
        if end == dialect.delimiter:
            return
        lines += _line_ends(text, start, at)
        cells, start, fault = [], at, ""


def _cell(found: re.Match[bytes], dialect: Dialect) -> Cell:
    if found.re.groups == 2:
        return Cell(found[1], False)
    if found[1] is None:
        return Cell(found[3], False)
    return Cell(found[1].replace(dialect.quote * 2, dialect.quote), True)


def _line_ends(text: bytes, start: int, stop: int) -> int:
    """Count the line ends in a stretch; CRLF is one."""
    carriage_returns = text.count(b"\r", start, stop)
    return text.count(b"\n", start, stop) + carriage_returns - (carriage_returns and text.count(b"\r\n", start, stop))


def is_utf8(text: bytes) -> bool:
    """Whether the bytes are UTF-8; 0.03 ms a MiB where all of it is ASCII."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def count_line_feeds(text: bytes) -> int:
    """Count the LFs; eight times as fast as bytes.count where they are dense."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == LF))


def ends_with_lf_only(text: bytes) -> bool:
    """Whether every line end is LF or CRLF. Looking for a CR first is cheap; counting when there is none takes 1 ms a
    MiB."""
    return b"\r" not in text or text.count(b"\r") == text.count(b"\r\n")


def has_hexadecimal(text: bytes) -> bool:
    """Whether the text contains 0x or 0X; four times as fast as looking for two bytes among many zeros."""
    if b"x" not in text and b"X" not in text:
        return False
    data = np.frombuffer(text, np.uint8)
    letters = np.flatnonzero((data[1:] | 0x20) == ord("x"))
    return bool((data[letters] == ord("0")).any())


def has_leading_zeros(text: bytes, dialect: Dialect) -> bool:
    """Whether a field seems to start with a zero and another digit; 0.5 ms a MiB."""
    data = np.frombuffer(text, np.uint8)
    zeros = data[:-1] == ord("0")
    zeros &= (data[1:] - np.uint8(ord("0"))) < 10
    before = data[:-2]
    begins = before == LF
    for byte in (CR, *dialect.delimiter, *dialect.quote):
        begins |= before == byte
    return bool((zeros[1:] & begins).any()) or bool(zeros[:1].any())


def count_lines(text: bytes) -> int:
    """Count the lines that end in `text`."""
    return count_line_feeds(text) if b"\r" not in text else _line_ends(text, 0, len(text))


def complete(text: bytes, dialect: Dialect, last: bool) -> int:
    """The length of the whole rows in `text`, which starts at a row; when `last`, all of it."""
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
        if row.fault == NEVER_CLOSED or row.end + 2 > len(text):
            break
        end = row.end + (2 if text[row.end : row.end + 2] == b"\r\n" else 1)
    return end


def _ends_outside_quotes(text: bytes, dialect: Dialect) -> Positions | None:
    """The positions of the LFs that end rows; None when counting quotes does not tell inside from outside."""
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == dialect.quote[0])
    ends = np.flatnonzero(data == LF)
    opening = quotes[0::2]
    before = data[opening - 1]  # for a quote at 0 this is the last byte, and is ignored
    begins = (before == dialect.delimiter[0]) | (before == LF) | (before == dialect.quote[0]) | (before == CR)
    if not (begins | (opening == 0)).all():
        return None
    # a quote before an opening one must be the closing one right before it: together they are one character
    outside: Positions = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return outside


def text_behind_quotes(text: bytes, dialect: Dialect, lines_are_rows: bool = False) -> bool:
    """Whether text follows a closing quote in `text`, which is whole rows.  lines_are_rows: each LF ends a row.

    Where all quotes belong to quoted fields, they open and close in turn, which one look at each shows. Rows with other
    quotes are read one by one: 0.1 s a MiB, so where lines are rows, only those that also have a quoted field.
    """
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == dialect.quote[0])
    beside = np.zeros(256, np.bool_)  # what may come before an opening quote and after a closing one
    beside[[dialect.delimiter[0], dialect.quote[0], LF, CR]] = True
    opening, closing = quotes[0::2], quotes[1::2]
    begins = beside[data[opening - 1]]  # for a quote at 0 this is the last byte, and is ignored
    if (begins | (opening == 0)).all():
        return not bool(beside[data[np.minimum(closing + 1, len(data) - 1)]].all())
    if not lines_are_rows:
        return any(row.fault == TEXT_BEHIND for row in rows(text, dialect))
    ends = np.flatnonzero(data == LF)
    begin_field = (quotes == 0) | (beside[data[quotes - 1]] & (data[quotes - 1] != dialect.quote[0]))
    doubtful = np.unique(np.searchsorted(ends, quotes[begin_field]))
    starts = np.concatenate(([0], ends + 1))
    lines = (text[starts[k] : ends[k]] for k in doubtful.tolist())
    return any(row.fault == TEXT_BEHIND for line in lines for row in rows(line, dialect))


def lines_of_rows(text: bytes, dialect: Dialect, width: int, found: int) -> tuple[Positions | None, int]:
    """The number of lines before each of the `found` rows of `text`, or None when row k simply has k lines before it;
    and how many blank lines are not rows.  width: columns of the file; if it has one, a blank line is a row."""
    line_ends = count_line_feeds(text)
    only_lf = ends_with_lf_only(text)
    if only_lf and found == line_ends + (not text.endswith(b"\n")):
        return None, 0
    ends = _ends_outside_quotes(text, dialect) if only_lf and dialect.quote else None
    if ends is None:
        every = list(rows(text, dialect))
        lines = np.array([row.lines for row in every if width == 1 or not row.blank], np.int64)
        return lines, len(every) - len(lines)
    data = np.frombuffer(text, np.uint8)
    starts = np.concatenate(([0], ends + 1))
    starts = starts[starts < len(data)]
    blank = (data[starts] == LF) | ((data[starts] == CR) & (data[np.minimum(starts + 1, len(data) - 1)] == LF))
    kept = starts if width == 1 else starts[~blank]
    return np.searchsorted(np.flatnonzero(data == LF), kept).astype(np.int64), len(starts) - len(kept)
