"""Rows on a terminal: one header, widths from the first rows, NULL dimmed, nothing that moves a cursor.

A table is as wide as the terminal: texts are cut first, then columns are left out from the right, and the end says so.
When the output is no terminal, a column widens where a later row needs it, so that nothing is cut.

A result that ends may be too long to read: its first rows are shown, and at the end how many more there are.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import IO

import pyarrow as pa
import pyarrow.types as t

from cq.connectors.sinks.cell_text import column_text, is_text
from cq.connectors.sinks.targets import OutputClosed, silence_stdout
from cq.errors import printable, shows_colours
from cq.hints import face
from cq.records import dataclass

MAX_WIDTH = 60  # characters of a column, unless it is shown in full; longer values end in …
FIRST_ROWS = 40  # rows of a result that ends: a screenful; the rest is counted
HELD_ROWS = 1_000  # rows of a result that ends that set the widths, whatever batches they come in
LEAST_WIDTH = 12  # width to which texts are cut before whole columns are left out
GAP = "  "
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


@dataclass
class Screen:
    """The terminal that all outputs of a run share: it prints whose rows follow when that changes.

    width: the maximum width of a table; None: any.  expanded: draw each row as lines of column and value.  in_full:
    show values of any length whole.
    """

    stream: IO[str]
    colour: bool
    titles: bool = False
    width: int | None = None
    current: str = ""
    expanded: bool = False
    in_full: bool = False
    before_write: Callable[[], None] = lambda: None
    taken: Callable[[], None] = lambda: None  # Note that something else uses the terminal from now on.

    @classmethod
    def stdout(cls, titles: bool, wide: bool = False, expanded: bool = False) -> Screen:
        """Standard output, coloured when it is a terminal that wants it."""
        width = None if wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns
        return cls(sys.stdout, shows_colours(sys.stdout), titles, width, expanded=expanded, in_full=wide)

    @property
    def is_seen(self) -> bool:
        """Whether somebody may have seen a row."""
        return bool(self.current)

    def begin(self) -> None:
        """Start a run: nothing written by an earlier one counts as seen."""
        self.current = ""

    def write(self, text: str) -> None:
        self.before_write()
        try:
            self.stream.write(text)
            self.stream.flush()
        except BrokenPipeError:
            if self.stream is sys.stdout:  # not for a pager that was quit
                silence_stdout()
            raise OutputClosed from None

    def styled(self, text: str, style: str) -> str:
        return f"{style}{text}{PLAIN}" if self.colour else text


class Table:
    """A sink that draws the first `rows` rows, or all of them, and counts the others.

    A result that ends is drawn when it has ended or has more than HELD_ROWS rows: its rows are one table, which looks
    the same in batches of any size. Rows of an endless result are drawn as they come.
    """

    lasts = False

    def __init__(
        self,
        name: str,
        names: list[str],
        screen: Screen,
        rows: int | None = None,
        way: str = "",
        ends: bool = True,
    ) -> None:
        """way: how to see the rows after the first `rows`.  ends: whether the result ends."""
        self._way = way
        self._held: list[pa.RecordBatch] | None = [] if ends else None
        self._name, self._screen, self._room = printable(name), screen, rows
        self._hidden = 0
        self._names = [self._shown(n) for n in names]
        self._unseen: list[str] = []
        self._widths: list[int] = []
        self._right: list[bool] = []
        self._cut: list[bool] = []  # whether a column may be narrower than its values
        self._drawn = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if self._room is not None:
            self._hidden += max(0, batch.num_rows - self._room)
            batch = batch.slice(0, self._room)
            self._room -= batch.num_rows
        if self._held is None:
            self._draw(batch)
            return
        self._held.append(batch)
        is_whole = self._room == 0 and not self._screen.titles
        if is_whole or sum(b.num_rows for b in self._held) > HELD_ROWS:
            self._release()

    def _release(self) -> None:
        """Draw the rows held so far, and later ones as they come."""
        held, self._held = self._held, None
        if held:
            for batch in pa.Table.from_batches(held).combine_chunks().to_batches():
                self._draw(batch)

    def _draw(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        if self._screen.expanded:
            self._expand(batch)
            return
        self._right = [_is_number(f.type) for f in batch.schema][: len(self._names)]
        self._cut = [is_text(f.type) for f in batch.schema]
        for start in range(0, batch.num_rows, HELD_ROWS):
            part = batch.slice(start, HELD_ROWS)
            cells = [[self._cell(v) for v in column_text(c).to_pylist()] for c in part.columns[: len(self._names)]]
            if not self._widths:
                self._widths = [
                    max(cell_len(n), *map(_room_of, column)) for n, column in zip(self._names, cells, strict=True)
                ]
                self._fit()
                self._header()
            elif self._screen.current != self._name:
                self._header()
            rows = zip(*cells[: len(self._names)], strict=True)
            self._screen.write("".join(self._line(row) for row in rows))

    def _expand(self, batch: pa.RecordBatch) -> None:
        """Draw each row as lines of column and value, uncut: for rows that are wider than any screen."""
        width = max(map(cell_len, self._names), default=0)
        columns = [column_text(c).to_pylist() for c in batch.columns]
        if self._screen.current != self._name:
            self._title()
        for row in zip(*columns, strict=True):
            self._drawn += 1
            lines = [self._screen.styled(f"── row {self._drawn:,}", DIM)]
            for name, value in zip(self._names, row, strict=True):
                shown = self._screen.styled("NULL", DIM) if value is None else printable(value)
                lines.append(f"{self._screen.styled(_pad(name, width, False), BOLD)}{GAP}{shown}")
            self._screen.write("\n".join(lines) + "\n")

    def _fit(self) -> None:
        """Make the table fit the screen: narrow texts, then drop columns. Numbers and times stay whole."""
        room = self._screen.width
        if room is None:
            return
        texts = [i for i, cut in enumerate(self._cut) if cut]
        while self._total() > room:
            widest = max(texts, key=lambda i: self._widths[i], default=None)
            if widest is None or self._widths[widest] <= LEAST_WIDTH:
                break
            self._widths[widest] -= 1
        while self._total() > room and len(self._names) > 1:
            self._unseen.insert(0, self._names.pop())
            self._widths.pop()
            self._right.pop()

    def _total(self) -> int:
        return sum(self._widths) + len(GAP) * (len(self._widths) - 1)

    def _header(self) -> None:
        screen = self._screen
        self._title()
        names = [_pad(_clip(n, w), w, r) for n, w, r in zip(self._names, self._widths, self._right, strict=True)]
        rule = GAP.join("─" * w for w in self._widths)
        screen.write(f"{screen.styled(GAP.join(names).rstrip(), BOLD)}\n{screen.styled(rule, DIM)}\n")

    def _title(self) -> None:
        screen = self._screen
        if screen.titles:
            screen.write(("\n" if screen.current else "") + screen.styled(self._name, BOLD) + "\n")
        screen.current = self._name

    def _cell(self, value: str | None) -> str | None:
        return None if value is None else self._shown(value)

    def _shown(self, value: str) -> str:
        return printable(value) if self._screen.in_full else _clip(printable(value[: 4 * MAX_WIDTH]))

    def _line(self, row: tuple[str | None, ...]) -> str:
        """The row as a line. If the table may have any width, its columns widen as this row needs."""
        if self._screen.width is None:
            self._widths = [max(w, _room_of(v)) for v, w in zip(row, self._widths, strict=True)]
        cells = []
        for value, width, right in zip(row, self._widths, self._right, strict=True):
            shown = value if value is not None else "NULL"
            padded = _pad(shown if right else _clip(shown, width), width, right)
            cells.append(self._screen.styled(padded, DIM) if value is None else padded)
        return GAP.join(cells).rstrip() + "\n"

    def close(self) -> None:
        """Finish; an output without rows still shows its columns."""
        self._release()
        if not self._widths and not self._drawn:
            self._widths = [cell_len(n) for n in self._names]
            self._right = [False] * len(self._names)
            self._fit()
            self._header()
        self._say_hidden()

    def abort(self) -> None:
        """Nothing to do: what has been drawn stays on the screen."""
        self._release()
        self._say_hidden()

    @property
    def stays(self) -> bool:
        return self._screen.is_seen

    def _say_hidden(self) -> None:
        title = f"{self._name}: " if self._screen.titles else ""
        if self._unseen:
            columns = f"{len(self._unseen)} more column{'s' if len(self._unseen) > 1 else ''}"
            more = f"{title}… {columns}: {', '.join(self._unseen)}; {face().columns}"
            self._screen.write(self._screen.styled(more, DIM) + "\n")
        if self._hidden:
            more = f"{title}… {self._hidden:,} more row{'s' if self._hidden > 1 else ''}{self._way}"
            self._screen.write(self._screen.styled(more, DIM) + "\n")


def cell_len(text: str) -> int:
    """How many terminal columns a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as measured

    return measured(text)


def _room_of(value: str | None) -> int:
    return cell_len("NULL" if value is None else value)


def _is_number(kind: pa.DataType) -> bool:
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind))


def _clip(text: str, width: int = MAX_WIDTH) -> str:
    if cell_len(text) <= width:
        return text
    clipped = text[: width - 1]
    while cell_len(clipped) > width - 1:
        clipped = clipped[:-1]
    return clipped + "…"


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space
