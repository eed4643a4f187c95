"""What reading a format means to those who open files, pipes and followed files: all a format has to say of it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import BinaryIO

import pyarrow as pa

from cq.connectors.csv.blocks import Readable
from cq.connectors.formats import FORMATS, loaded
from cq.connectors.natives import Natives
from cq.connectors.protocol import Piece, Report
from cq.connectors.read_once import Looked
from cq.connectors.rules import Rules
from cq.lang.schema import Field
from cq.records import dataclass

Options = Mapping[str, str]
"""Of a WITH clause, and those that the ending of the name stands for."""


@dataclass(frozen=True, slots=True)
class TextReading:
    """A format that is text: read as it comes, and what its columns are is guessed from its first rows.

    check(options): CQ0208 where they contradict each other, said before anything is read.
    read(text, name, options, rules, natives, may_be_blank): the rows as pieces. may_be_blank: whether a file without
    the header that it should have is one without rows.
    guess(head, name, options): the columns, as fields or as a schema.
    header(text, name, options): the names of the columns as the first bytes say them, `whole` where that is all; None
    where they do not.
    ends(text, options): where each row ends that is whole and not blank; header_rows(options): how many are no data.
    begins(head): whether a text is of this format and of no other; None: what no other format is.
    told(head): whether more of the text would tell nothing else about `begins`.
    """

    check: Callable[[Options], None]
    read: Callable[[Readable, str, Options, Rules, Natives, bool], Iterator[Piece]]
    guess: Callable[[Looked, str, Options], pa.Schema | tuple[Field, ...]]
    header: Callable[[bytes, str, Options, bool], list[str] | None]
    ends: Callable[[bytes, Options], Iterator[int]]
    header_rows: Callable[[Options], int]
    begins: Callable[[bytes], bool] | None
    told: Callable[[bytes], bool] | None


@dataclass(frozen=True, slots=True)
class TypedReading:
    """A format that says what its columns are, read by Arrow's own files.

    read(file, name, rules, report): the rows as pieces.  schema(file, name): its columns; CQ0701 when it is damaged.
    streams(head): whether an input that begins so is read as it comes; otherwise it is needed whole.
    """

    read: Callable[[pa.NativeFile | BinaryIO, str, Rules, Report], Generator[Piece, None, None] | Iterator[Piece]]
    schema: Callable[[pa.NativeFile | BinaryIO, str], pa.Schema]
    streams: Callable[[bytes], bool]


def reading_of(kind: str) -> TextReading | TypedReading:
    """What reads this format."""
    reading: TextReading | TypedReading = loaded(FORMATS[kind].reading)
    return reading


def texts() -> dict[str, TextReading]:
    """The formats that are told by their rows."""
    readings = ((name, reading_of(name)) for name, format_ in FORMATS.items() if not format_.magics)
    return {name: reading for name, reading in readings if isinstance(reading, TextReading)}
