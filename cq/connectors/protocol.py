"""The interfaces of sources and sinks.

A source yields `SourceBatch`es: canonical Arrow columns (types exactly `cq.lang.types.to_arrow`) of rows that satisfy
the declaration, and the place of every row for error messages. Batches may have any size; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cq.errors import NOWHERE, DataError, Diagnostic, Span
from cq.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from cq.lang.expressions import Expr
    from cq.lang.schema import Field
    from cq.lang.types import DataType

# rows per batch of a source, at most: 4 MB of eight columns; the engine cuts them as it needs. Rows in memory whose
# values need no check are not cut so small (memory.py).
READ_ROWS = 65_536
RECORD_BYTES = 16 << 20  # longest line of a text format (`cq limits`)


class DeclaredStream(Protocol):
    """What a connector must know about a stream; the planner's `SourceDef` is one."""

    @property
    def name(self) -> str: ...
    @property
    def fields(self) -> tuple[Field, ...]: ...
    @property
    def options(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def event_time(self) -> Expr | None: ...
    @property
    def inferred(self) -> bool: ...
    @property
    def rows(self) -> Sequence[Sequence[Any]] | None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of a batch come from: row k is at line (text) or row (other formats) `first + k` of `file`.

    lines: the number of each row; given when they are not consecutive.
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
        """The place of rows start to stop."""
        return Place(self.file, self.line(start) if stop > start else self.first, _cut(self.lines, start, stop))

    def take(self, rows: npt.NDArray[np.int64]) -> Place:
        """The place of the chosen rows."""
        return Place(self.file, self.first, self.first + rows if self.lines is None else self.lines[rows])


def _cut(lines: npt.NDArray[np.int64] | None, start: int, stop: int) -> npt.NDArray[np.int64] | None:
    return None if lines is None else lines[start:stop]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be a row of its stream.

    before: how many good rows of its piece precede it.  column: empty when the whole row is at fault.
    raw: the bytes of the record if the format has them, else of the value.  help: a way out, if there is one.  span: of
    the expression at fault.  wider: the type that a guessed column would need for the value, as messages show it.
    """

    before: int
    line: int
    code: str
    message: str
    column: str = ""
    raw: bytes = b""
    help: tuple[str, ...] = ()
    span: Span = NOWHERE
    wider: tuple[DataType, str] | None = None

    def diagnostic(self, file: str) -> Diagnostic:
        place = f"{file}:{self.line}"
        return Diagnostic(self.code, self.message, self.span, severity="data error", place=place, help=self.help)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a format reader found in one stretch of input: its good rows, their places, and the bad rows between them.

    blank: how many blank lines between them are not rows.  note: a message for the user at this point.
    """

    batch: pa.RecordBatch
    place: Place
    bad: tuple[BadRow, ...] = ()
    blank: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A row that ended a source because it contradicts the guessed type of a column.

    type: the narrowest that fits.  shown: the value as text.  said: the error message.
    """

    column: str
    type: DataType
    shown: str
    said: Diagnostic


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Rows of a source in order, and how many bad rows were left out up to the end of this batch.

    silent: it has no rows, and none arrived during the stream's IDLE TIMEOUT.
    """

    batch: pa.RecordBatch
    place: Place
    bad_rows: int = 0
    silent: bool = False


@dataclass(frozen=True, slots=True)
class UnreadableTime:
    """Why the event time of a row cannot be computed, and the expression at fault."""

    code: str
    message: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Times:
    """The event times of a batch in microseconds, int64, NULL for a row that has none.

    unreadable: by row, for those whose time could not be computed.
    """

    values: pa.Array
    unreadable: Mapping[int, UnreadableTime]


@dataclass(frozen=True, slots=True)
class EventTimer:
    """Computes the event times of the batches of one source.

    column: the name of the first column of a batch that they become; empty when they do not become one.
    """

    compute: Callable[[pa.RecordBatch], Times]
    column: str = ""


Report = Callable[[float], None]
"""Called by a format reader with the share of its file that has been read, from 0 to 1."""


def to_nobody(share: float) -> None:
    """The progress report for callers that do not ask for one."""


class Source(Protocol):
    """A stream of rows. `batches` may be called once; bad rows are counted when the batch after them is taken."""

    @property
    def bad_rows(self) -> int: ...

    @property
    def letters(self) -> Path | None:
        """The file that its bad rows are written to, once there are some; None if they are not written."""
        ...

    @property
    def blank_lines(self) -> int:
        """How many lines of text were empty and not rows."""
        ...

    @property
    def about_rows(self) -> int | None:
        """Roughly how many rows there are, rather too many than too few; None if nobody knows."""
        ...

    @property
    def contradiction(self) -> Contradiction | None:
        """The row that contradicted a guessed column, if that ended `batches`."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Messages for the user about the input so far."""
        ...

    def start(self) -> None:
        """Begin to read, if a thread does so ahead of the query: `batches` is called once the query is compiled."""
        ...

    def time_by(self, timer: EventTimer) -> None:
        """Let the timer compute the event times, starting before the first row. Rows without one are bad rows."""
        ...

    def batches(self) -> Iterator[SourceBatch]:
        """Yield everything before the first unreadable row, which is then raised as a DataError (`on_error = fail`).

        A batch without rows means that there are none at the moment: the caller may do something else.
        """
        ...

    def share_done(self) -> float | None:
        """How much of the input has been read, from 0 to 1; None when unknown."""
        ...

    def interrupt(self) -> None:
        """Make `batches` end soon, before the input does; takes no lock, so a signal handler may call it."""
        ...

    def close(self) -> None:
        """Close the files and end the reading thread; may be called twice, and in the middle."""
        ...


class Sink(Protocol):
    """The destination of the rows of one output, in order."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None:
        """Finish: all rows are under the final name."""
        ...

    def abort(self) -> None:
        """The run ended before the rows did: discard them, where they can be taken back.

        Rows of an endless output that have arrived stay, complete and readable.
        """
        ...

    @property
    def stays(self) -> bool:
        """Whether somebody may have seen a row that was written although the sink was aborted."""
        ...

    @property
    def lasts(self) -> bool:
        """Whether its rows go somewhere other than standard output: they are wanted even if nobody reads that any
        more."""
        ...


INCOMPLETE = "check that the file is complete and of this format: cq schema FILE"


def damaged(file: str, cause: str, *help: str) -> DataError:
    """The error for a file that is broken or not in its format."""
    ways_out = help or (INCOMPLETE,)
    return DataError(Diagnostic("CQ0701", cause, severity="data error", place=file, help=ways_out))


def told_apart(written: Sequence[str]) -> list[str]:
    """The column names made unique: the second of two equal names is name_1, or the first name_n that no other column
    has."""
    taken, names = set(written), dict[str, int]()  # each name and the last number tried with it
    for name in written:
        unique, number = name, names.get(name, 0)
        while unique in names or (number and unique in taken):
            number += 1
            unique = f"{name}_{number}"
        names.setdefault(name, 0)
        names[name] = number
        names.setdefault(unique, 0)
    return list(names)


class ColumnNames:
    """The columns of an input by name; without an exact match a name folds like a name in a query."""

    def __init__(self, names: Sequence[str]) -> None:
        self._exact = {name: at for at, name in reversed(list(enumerate(names)))}
        self._folded: dict[str, int | None] = {}
        for at, name in enumerate(names):
            self._folded[name.lower()] = None if name.lower() in self._folded else at

    def find(self, name: str) -> int | None:
        """The position of a column; None when there is none, or when several differ only in letter case."""
        at = self._exact.get(name)
        return self._folded.get(name.lower()) if at is None else at
