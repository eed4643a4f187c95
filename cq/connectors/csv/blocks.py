"""Cut a text file at row ends into blocks, some of which can be parsed in parallel."""

from __future__ import annotations

from typing import Protocol

from cq.connectors.csv.rows import Dialect, complete, count_line_feeds, count_lines
from cq.connectors.first_bytes import BYTE_ORDER_MARK, codec_of_bytes, format_of_bytes
from cq.connectors.formats import FORMATS
from cq.connectors.protocol import RECORD_BYTES, damaged
from cq.records import dataclass

# Bytes per block. Measured on four columns: 256 KiB 78 ms, 1 MiB 61 ms, 4 MiB 42 ms for 20 MB; larger blocks make the
# engine wait longer for the first row and fall out of the cache.
BLOCK_BYTES = 1 << 20
LINES = Dialect(b",", b"")  # no quoting hides a line end, as in JSON


class Readable(Protocol):
    """What the CSV reader needs from an open file."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; fewer when no more are available now, none only at the end."""
        ...


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole rows of a file. first_line: the line of its first byte, from 1.  last: nothing comes after it."""

    text: bytes
    first_line: int
    last: bool = True


class UnreadRows:
    """The part of a file that was read but not taken yet; it starts at the start of a row."""

    def __init__(self, file: Readable, name: str, dialect: Dialect, blocks: int = 1, format_: str = "CSV") -> None:
        """blocks: how many are read at once, if there are that many.  format_: the name of the format."""
        self.text = b""
        self.last = False
        self._file, self._name, self._dialect = file, name, dialect
        self._bytes = blocks * BLOCK_BYTES
        self._format = format_
        self._line = 1
        self._begun = False

    def fill(self) -> bool:
        """Read more of the file into `text`; False when everything has been taken. CQ0701 for a row over the limit."""
        if self.last:
            return False
        waiting = len(self.text)
        if waiting > RECORD_BYTES:
            cause = f"the record at line {self._line} is longer than {RECORD_BYTES >> 20} MiB"
            raise damaged(self._name, cause, "is a quote never closed, or a line never ended?")
        # a row longer than a block: read as much again as is waiting, so that it is scanned only a few times
        found = self._file.read(min(max(self._bytes, waiting), RECORD_BYTES + 1 - waiting))
        self.last = not found
        self.text = self.text + found if waiting else found
        if not self._begun:
            self._begun = True
            check_encoding(self.text, self._name, self._format)
            self.text = self.text.removeprefix(BYTE_ORDER_MARK)
        return bool(self.text)

    def guesses(self) -> list[TextBlock]:
        """Blocks of whole rows if no line end lies in quotes, for callers that can tell from the rows they find.

        At least one, which may be empty; a block starts at the start of a row if the guess holds for those before it.
        """
        blocks, start, line = list[TextBlock](), 0, self._line
        while not blocks or start < len(self.text):
            end = self.text.rfind(b"\n", start, start + BLOCK_BYTES) + 1 or self.text.rfind(b"\n", start) + 1
            if blocks and end <= start:
                break
            blocks.append(TextBlock(self.text[start:end], line, False))
            start, line = end, line + count_line_feeds(blocks[-1].text)
        return blocks

    def whole(self) -> TextBlock:
        """Blocks of whole rows, whatever lies in quotes."""
        return TextBlock(self.text[: complete(self.text, self._dialect, self.last)], self._line, self.last)

    def take(self, size: int, lines: int | None = None) -> None:
        """Drop the first `size` bytes, which are whole rows. lines: how many lines end in them, if known."""
        self._line += count_lines(self.text[:size]) if lines is None else lines
        self.text = self.text[size:]


def check_encoding(text: bytes, name: str, format_: str) -> None:
    """CQ0701 for text that is clearly in another encoding."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise damaged(name, "the text is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8")
    if kind := format_of_bytes(text):
        way = f"write format = '{kind}' in WITH, or pass -w format={kind} to cq run and -f {kind} to cq schema"
        raise damaged(name, f"this is {FORMATS[kind].title}, not {format_}", way)
    if codec := codec_of_bytes(text):
        way = f"write compression = '{codec}' in WITH, or pass -w compression={codec} to cq run and cq schema"
        raise damaged(
            name, f"this is compressed ({codec}), not plain {format_}", way, "or give the file its usual extension"
        )
