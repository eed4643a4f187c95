"""What every source gives and every sink takes.

A source yields `SourceBatch`es: canonical Arrow columns (types exactly `cq.lang.types.to_arrow`), rows that broke no
rule of the declaration, and the place of every row for error messages. Batches may have any size; nothing depends on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

# rows a batch of a source has at most: 4 MB of eight columns; the engine cuts what it needs. Rows in memory at which
# nobody has to look are not cut so small (memory.py).
READ_ROWS = 65_536
RECORD_BYTES = 16 << 20  # longest line of a text format (`cq limits`)


class DeclaredStream(Protocol):
    """What a connector must know of a stream; the planner's `SourceDef` is one."""

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
    raw: the bytes of the record where the format has such, else of the value.  help: a way out, where there is one.
    span: of the expression at fault.  wider: the type that a guessed column would need for the value, as it is shown.
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
    """What a format reader found in one stretch of input: its good rows, where they stand, and the bad ones between.

    blank: how many blank lines stand between them that are no rows.  note: what whoever runs the query is told here.
    """

    batch: pa.RecordBatch
    place: Place
    bad: tuple[BadRow, ...] = ()
    blank: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A row that ended a source, because it does not fit what was guessed of a column.

    type: the narrowest that fits.  shown: the value.  said: the error.
    """

    column: str
    type: DataType
    shown: str
    said: Diagnostic


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Rows of a source in order, and how many bad rows were left out up to the end of this batch.

    silent: it has no rows, and there were none for as long as the stream's IDLE TIMEOUT.
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

    unreadable: by row, for those of them that could not be computed.
    """

    values: pa.Array
    unreadable: Mapping[int, UnreadableTime]


@dataclass(frozen=True, slots=True)
class EventTimer:
    """Computes the event times of the batches of one source.

    column: the name under which they become the first column of a batch; empty when they do not.
    """

    compute: Callable[[pa.RecordBatch], Times]
    column: str = ""


Report = Callable[[float], None]
"""Told by a format reader how much of its file is read, from 0 to 1."""


def to_nobody(share: float) -> None:
    """The report of a reader whose caller does not ask."""


class Source(Protocol):
    """A stream of rows. `batches` may be asked for once; bad rows are counted when the batch after them is taken."""

    @property
    def bad_rows(self) -> int: ...

    @property
    def blank_lines(self) -> int:
        """How many lines of text were empty and no rows."""
        ...

    @property
    def contradiction(self) -> Contradiction | None:
        """What was wrong about a guessed column, if that ended `batches`."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What happened to the input so far that whoever runs the query is told."""
        ...

    def time_by(self, timer: EventTimer) -> None:
        """Let the timer compute the event times, from before the first row on. Rows without one are bad rows."""
        ...

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
        """The run ended before the rows did: nothing of them stays, where it can be taken back.

        Of rows that nobody knew the end of, those that came stay, complete and readable.
        """
        ...

    @property
    def stays(self) -> bool:
        """Whether somebody may have seen a row that was written, though the sink was aborted."""
        ...

    @property
    def lasts(self) -> bool:
        """Whether its rows go elsewhere than to standard output: they are wanted though nobody reads that any more."""
        ...


INCOMPLETE = "check that the file is complete and of this format: cq schema FILE"


def damaged(file: str, cause: str, *help: str) -> DataError:
    """The error for a file that is broken or not of its format."""
    ways_out = help or (INCOMPLETE,)
    return DataError(Diagnostic("CQ0701", cause, severity="data error", place=file, help=ways_out))


def told_apart(written: Sequence[str]) -> list[str]:
    """The names of columns; of two with one name the second is name_1, or the first such that no other column has."""
    taken, names = set(written), dict[str, int]()  # each name and the last number tried for it
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
    """The columns of an input by name; a name folds like a name in a query when the exact one is not there."""

    def __init__(self, names: Sequence[str]) -> None:
        self._exact = {name: at for at, name in reversed(list(enumerate(names)))}
        self._folded: dict[str, int | None] = {}
        for at, name in enumerate(names):
            self._folded[name.lower()] = None if name.lower() in self._folded else at

    def find(self, name: str) -> int | None:
        """The position of a column; None when there is none, or several that only letter case tells apart."""
        at = self._exact.get(name)
        return self._folded.get(name.lower()) if at is None else at
