"""What every source gives and every sink takes.

A source yields `SourceBatch`es: canonical Arrow columns (types exactly `cq.types.to_arrow`), rows that broke no rule of
the declaration, and the place of every row for error messages. Batches may have any size; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cq.errors import DataError, Diagnostic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from cq.expressions import Expr
    from cq.schema import Field

BATCH_ROWS = 65_536  # rows a batch of a source has at most: 4 MB of eight columns; the engine cuts what it needs
RECORD_BYTES = 16 << 20  # longest line of a text format (`cq limits`)


class Declared(Protocol):
    """What a connector must know of a stream; the planner's `SourceDef` is one."""

    @property
    def name(self) -> str: ...
    @property
    def fields(self) -> tuple[Field, ...]: ...
    @property
    def options(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def event_time(self) -> Expr | None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of a batch stand: row k is at line (text) or row (other formats) `first + k` of `file`.

    lines: given when they do not follow one another: the number of each row.
    """

    file: str
    first: int
    lines: npt.NDArray[np.int64] | None = None

    def line(self, row: int) -> int:
        """The physical line or row, from 1, of row `row` of the batch."""
        return self.first + row if self.lines is None else int(self.lines[row])

    def of(self, row: int) -> str:
        """`file:line` of row `row` of the batch."""
        return f"{self.file}:{self.line(row)}"

    def slice(self, start: int, stop: int) -> Place:
        """The place of rows start..stop."""
        return Place(self.file, self.line(start) if stop > start else self.first, _cut(self.lines, start, stop))

    def take(self, rows: npt.NDArray[np.int64]) -> Place:
        """The place of the chosen rows."""
        return Place(self.file, self.first, self.first + rows if self.lines is None else self.lines[rows])


def _cut(lines: npt.NDArray[np.int64] | None, start: int, stop: int) -> npt.NDArray[np.int64] | None:
    return None if lines is None else lines[start:stop]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be a row of its stream.

    before: how many good rows of its piece come before it.  column: empty when the whole row is at fault.
    raw: the bytes of the record where the format has such, else of the value.
    """

    before: int
    line: int
    code: str
    message: str
    column: str = ""
    raw: bytes = b""

    def diagnostic(self, file: str) -> Diagnostic:
        return Diagnostic(self.code, self.message, severity="data error", place=f"{file}:{self.line}")


@dataclass(frozen=True, slots=True)
class Piece:
    """What a format reader found in one stretch of input: its good rows, where they stand, and the bad ones between."""

    batch: pa.RecordBatch
    place: Place
    bad: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Rows of a source in order, and how many bad rows were left out up to the end of this batch."""

    batch: pa.RecordBatch
    place: Place
    bad_rows: int = 0


Report = Callable[[float], None]
"""Told by a format reader how much of its file is read, from 0 to 1."""


def to_nobody(share: float) -> None:
    """The report of a reader whose caller does not ask."""


class Source(Protocol):
    """A stream of rows. `batches` may be asked for once; bad rows are counted when the batch after them is taken."""

    @property
    def bad_rows(self) -> int: ...

    def batches(self) -> Iterator[SourceBatch]:
        """Everything before the first unreadable row, which is then raised as a DataError (`on_error = fail`).

        A batch without rows means that there is nothing at the moment: whoever takes batches may do something else.
        """
        ...

    def share_done(self) -> float | None:
        """How much of the input was read, from 0 to 1; None when nobody knows."""
        ...

    def interrupt(self) -> None:
        """`batches` ends soon, though the input has not; takes no lock, so a signal handler may call it."""
        ...

    def close(self) -> None:
        """Files are closed and the reading thread has ended; may be called twice, and in the middle."""
        ...


class Sink(Protocol):
    """Where the rows of one output go, in order."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None:
        """All rows stand under the final name."""
        ...

    def abort(self) -> None:
        """Nothing of it stays, where it can be taken back."""
        ...


def damaged(file: str, cause: str, *help: str) -> DataError:
    """The error for a file that is broken or not of its format."""
    ways_out = help or ("check that the file is complete and of this format: cq schema FILE",)
    return DataError(Diagnostic("CQ0701", cause, severity="data error", place=file, help=ways_out))


def field_of(fields: Sequence[Field], name: str) -> int | None:
    """The position of a column by name; names in files fold like names in queries when the exact one is not there."""
    names = [f.name for f in fields]
    if name in names:
        return names.index(name)
    folded = [n.lower() for n in names]
    return folded.index(name.lower()) if folded.count(name.lower()) == 1 else None
