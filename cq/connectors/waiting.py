"""Guessing the columns of a slow input: how many rows are enough, and what whoever waits is told meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from cq.connectors.csv.rows import NEVER_CLOSED, rows
from cq.connectors.csv.source import CsvOptions
from cq.connectors.formats import tabbed
from cq.connectors.once import tell
from cq.errors import CqError, amount, printable
from cq.grammar import inline
from cq.lang.schema import Field, Unheld

LOOK_BYTES = 1 << 20  # that columns are guessed from

Guess = Callable[[str, bytes], Sequence[Field | Unheld]]
"""The columns of whole rows in a format."""


def end_of_rows(text: bytes, kind: str, name: str, options: Mapping[str, str], most: int) -> int:
    """Where the first `most` rows end; 0 when some of them may be missing. It says the same of any longer text."""
    csv = CsvOptions.of(tabbed(options, name))
    wanted = most + (kind == "csv" and csv.header)
    end = 0
    for number, end in enumerate(_ends(text, csv) if kind == "csv" else _line_ends(text), 1):
        if number == wanted:
            return end
    return 0


def count_rows(text: bytes, kind: str, name: str, options: Mapping[str, str]) -> int:
    """How many rows of data there are, whole ones."""
    csv = CsvOptions.of(tabbed(options, name))
    found = sum(1 for _ in (_ends(text, csv) if kind == "csv" else _line_ends(text)))
    return max(0, found - (kind == "csv" and csv.header))


def _ends(text: bytes, options: CsvOptions) -> Iterator[int]:
    """The ends of rows that are whole and not blank: the byte behind the line end is there, or it is an LF."""
    for row in rows(text, options.dialect):
        ending = text[row.end : row.end + 2]
        if row.fault == NEVER_CLOSED or ending in {b"", b"\r"}:
            return
        if not row.blank:
            yield row.end + (2 if ending == b"\r\n" else 1)


def _line_ends(text: bytes) -> Iterator[int]:
    """The ends of lines that are whole and not blank."""
    start = 0
    while (end := text.find(b"\n", start) + 1) > 0:
        if text[start:end].strip():
            yield end
        start = end


class Waiting:
    """Tells whoever listens that a pipe keeps a guess waiting: once before its first row, once behind it."""

    def __init__(self, name: str, stream: str, options: Mapping[str, str], guess: Guess) -> None:
        self._name, self._stream, self._options, self._guess = name, stream, options, guess
        self.kind, self.text = "", b""
        self._told = -1  # of how many rows

    def say(self) -> None:
        """Whoever listens knows; nobody is told twice."""
        count = min(1, self._count()) if self._told < 1 else 1
        if count > self._told:
            self._told = count
            tell(self._message())

    def _count(self) -> int:
        return count_rows(self.text, self.kind, self._name, self._options) if self.kind else 0

    def _message(self) -> str:
        asked = self._options.get("guess_rows")
        until = amount(int(asked), "row") if asked else f"{LOOK_BYTES >> 20} MiB of rows"
        count = self._count()
        so_far = f"{amount(count, 'row')} so far" if count else "none has come yet"
        waits = f"waiting for {until} from {printable(self._name)}, or its end, to guess its columns ({so_far})"
        if not count:
            return waits
        columns = ", ".join(f"{inline.name(f.name)} {f.type}" for f in self._guessed(count))
        stream = inline.name(self._stream or "stdin")
        whence = f"path = {inline.string(path)}" if (path := self._options.get("path")) else "connector = 'stdin'"
        statement = f"CREATE STREAM {stream} ({columns or 'column TYPE, …'}) WITH ({whence})"
        declare = f"to begin at once, declare them: {statement}; then read FROM {stream}"
        return f"{waits}\n  = help: {declare}\n  = help: or guess from fewer rows: -w guess_rows={count}"

    def _guessed(self, count: int) -> list[Field]:
        """The columns as the first rows have them."""
        rows = self.text[: end_of_rows(self.text, self.kind, self._name, self._options, count)]
        with suppress(CqError):
            return [f for f in self._guess(self.kind, rows) if isinstance(f, Field)]
        return []
