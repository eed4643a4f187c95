"""What a format must provide for files, pipes and followed files to be read in it."""

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
"""The options of a WITH clause and those implied by the extension."""


@dataclass(frozen=True, slots=True)
class TextReading:
    """A text format: read as it arrives, with columns guessed from its first rows.

    check(options): CQ0208 where they contradict each other, raised before anything is read.
    read(text, name, options, rules, natives, may_be_blank): the rows as pieces. may_be_blank: whether a file that lacks
    the header it should have counts as one without rows.
    guess(head, name, options): the columns, as fields or as a schema.
    header(text, name, options): the column names in the first bytes, `whole` if those are the whole input; None if
    there are none.
    ends(text, options): the end of each complete row that is not blank; header_rows(options): how many are not data.
    begins(head): whether a text is clearly in this format; None: it is the fallback when no other format matches.
    told(head): whether more of the text could not change the answer of `begins`.
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
    """A self-describing format, read by Arrow.

    read(file, name, rules, report): the rows as pieces.  schema(file, name): its columns; CQ0701 when it is damaged.
    streams(head): whether an input that starts like this can be read as it arrives; otherwise all of it is needed
    first.
    """

    read: Callable[[pa.NativeFile | BinaryIO, str, Rules, Report], Generator[Piece, None, None] | Iterator[Piece]]
    schema: Callable[[pa.NativeFile | BinaryIO, str], pa.Schema]
    streams: Callable[[bytes], bool]


def reading_of(kind: str) -> TextReading | TypedReading:
    """The reader of this format."""
    reading: TextReading | TypedReading = loaded(FORMATS[kind].reading)
    return reading


def texts() -> dict[str, TextReading]:
    """The formats that are detected by their rows."""
    readings = ((name, reading_of(name)) for name, format_ in FORMATS.items() if not format_.magics)
    return {name: reading for name, reading in readings if isinstance(reading, TextReading)}
