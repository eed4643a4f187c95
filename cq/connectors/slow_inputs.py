"""Guessing the columns of a slow input: how many rows are enough, and what the user is told meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from cq.connectors.read_once import tell
from cq.connectors.readings.protocol import TextReading
from cq.errors import CqError, amount, printable
from cq.grammar import inline
from cq.lang.schema import Field, Unheld

LOOK_BYTES = 1 << 20  # of text that columns are guessed from

Guess = Callable[[TextReading, bytes], Sequence[Field | Unheld]]
"""The columns of whole rows in a format."""


def end_of_rows(text: bytes, reading: TextReading, options: Mapping[str, str], most: int) -> int:
    """The end of the first `most` rows; 0 when some of them may be missing. The answer is the same for any longer
    text."""
    wanted = most + reading.header_rows(options)
    return next((end for number, end in enumerate(reading.ends(text, options), 1) if number == wanted), 0)


def count_rows(text: bytes, reading: TextReading, options: Mapping[str, str]) -> int:
    """How many complete rows of data there are."""
    return max(0, sum(1 for _ in reading.ends(text, options)) - reading.header_rows(options))


class WaitingNotice:
    """Tells the listener that a guess waits for a pipe: once before its first row, once after it."""

    def __init__(self, name: str, stream: str, options: Mapping[str, str], guess: Guess) -> None:
        self._name, self._stream, self._options, self._guess = name, stream, options, guess
        self.reading: TextReading | None = None
        self.text = b""
        self._told = -1  # the number of rows

    def say(self) -> None:
        """Tell the listener; never the same thing twice."""
        count = min(1, self._count()) if self._told < 1 else 1
        if count > self._told:
            self._told = count
            tell(self._message())

    def _count(self) -> int:
        return count_rows(self.text, self.reading, self._options) if self.reading is not None else 0

    def _message(self) -> str:
        asked = self._options.get("guess_rows")
        until = amount(int(asked), "row") if asked else f"{LOOK_BYTES >> 20} MiB of rows"
        count = self._count()
        so_far = f"{amount(count, 'row')} so far" if count else "none yet"
        waits = f"waiting for {until} from {printable(self._name)}, or its end, to infer its columns ({so_far})"
        if not count:
            return waits
        columns = ", ".join(f"{inline.name(f.name)} {f.type}" for f in self._guessed(count))
        stream = inline.name(self._stream or "stdin")
        whence = f"path = {inline.string(path)}" if (path := self._options.get("path")) else "connector = 'stdin'"
        statement = f"CREATE STREAM {stream} ({columns or 'column TYPE, …'}) WITH ({whence})"
        declare = f"to start at once, declare them: {statement}; then read FROM {stream}"
        return f"{waits}\n  = help: {declare}\n  = help: or infer them from fewer rows: -w guess_rows={count}"

    def _guessed(self, count: int) -> list[Field]:
        """The columns according to the first rows."""
        assert self.reading is not None, "rows of no format"
        rows = self.text[: end_of_rows(self.text, self.reading, self._options, count)]
        with suppress(CqError):
            return [f for f in self._guess(self.reading, rows) if isinstance(f, Field)]
        return []
