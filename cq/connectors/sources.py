"""Opening a source: which connector reads a stream, what its rows must obey, and who reads ahead."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from cq.connectors.access import STDIN, identity
from cq.connectors.bad_rows import BadRows
from cq.connectors.event_times import timed
from cq.connectors.files import Files
from cq.connectors.followed import Followed, is_followed
from cq.connectors.generator import read_generator
from cq.connectors.inputs import Inputs, is_path
from cq.connectors.memory import read_constants, read_memory
from cq.connectors.narrow import narrowed, spread
from cq.connectors.natives import NONE, Natives
from cq.connectors.options import option
from cq.connectors.protocol import Contradiction, DeclaredStream, EventTimer, Piece, Place, SourceBatch
from cq.connectors.read_ahead import Ahead
from cq.connectors.rules import Rules
from cq.connectors.stdin import read_stdin
from cq.errors import DataError, Diagnostic, UsageError
from cq.faces import face
from cq.records import replace


def open_source(
    stream: DeclaredStream,
    inputs: Inputs,
    wanted: Sequence[int] | None = None,
    reserved: frozenset[tuple[int, int]] = frozenset(),
    natives: Natives = NONE,
    used: AbstractSet[int] | None = None,
) -> PiecedSource:
    """The rows of a stream. Files are found and opened here, so what is missing is said at once.

    wanted: positions of the columns to deliver, all when left out. Rows are checked against every declared column.
    reserved: files, besides its own, that bad rows must not be written to, by (device, inode).
    natives: what the engine does faster itself.
    used: the columns that matter to the query; where nobody declared them, the others are not looked at, and NULL.
    """
    narrow = None if used is None else narrowed(stream, used)
    if narrow is not None:
        asked = range(len(stream.fields)) if wanted is None else wanted
        source = open_source(narrow, inputs, narrow.wanted(asked), reserved, natives)
        source.widen_by(partial(spread, fields=stream.fields, wanted=asked, read=narrow.places))
        return source
    options = dict(stream.options)
    rules = Rules.of(stream, wanted, natives.codes)
    bad = BadRows(option(options, "on_error"), _dead_letter_path(stream, inputs, reserved))
    if stream.rows is not None:
        return PiecedSource(stream.name, read_constants(stream.rows, stream.name, rules), bad)
    path, access = inputs.path_of(stream)
    if path is not None:
        follows = is_followed(options)
        files = (Followed if follows else Files)(path, options, rules, access, natives)
        return PiecedSource(stream.name, files.pieces(), bad, files, idle=rules.nothing())
    given = inputs.given.get(stream.name)
    if given is not None and not is_path(given):
        return PiecedSource(stream.name, read_memory(given, stream.name, rules), bad)
    match STDIN if is_path(given) else options.get("connector", ""):
        case "generator":
            pieces = read_generator(options, stream.name, rules, natives.twins)
            rows = options.get("rows")
            counted = CountedPieces(pieces, int(rows)) if rows is not None else None
            return PiecedSource(stream.name, counted or pieces, bad, counted, idle=rules.nothing())
        case "stdin" | "-":
            pieces = read_stdin(options, rules, natives)
            return PiecedSource(stream.name, pieces, bad, Redirected(), idle=rules.nothing())
        case _:
            raise UsageError(
                Diagnostic(
                    "CQ0602",
                    f"stream {stream.name} has no source",
                    help=tuple(
                        h for h in (face().giving(stream.name), "declare where its rows are: WITH (path = '…')") if h
                    ),
                )
            )


def _dead_letter_path(stream: DeclaredStream, inputs: Inputs, reserved: frozenset[tuple[int, int]]) -> Path | None:
    options = dict(stream.options)
    if option(options, "on_error") != "dead_letter":
        return None
    written = options.get("bad_rows")
    default = Path.cwd() / f"{inputs.dead_letters}.{stream.name}.bad.jsonl"
    path = inputs.access.resolve(written or str(default))
    own, access = inputs.path_of(stream)
    if identity(path) in inputs.reserved([stream]) | reserved or (own is not None and path == access.resolve(own)):
        raise UsageError(
            Diagnostic("CQ0605", f'"{path.name}" is read by this query, so bad rows cannot be written to it')
        )
    return path


NOWHERE = Place("", 0)


class Opened(Protocol):
    """Files that a thread reads."""

    def share_done(self) -> float | None: ...

    def stop(self) -> None:
        """The thread waits for nothing any more."""
        ...

    def close(self) -> None: ...


class CountedPieces:
    """Pieces of which it is known how many rows they have together."""

    def __init__(self, pieces: Iterator[Piece], total: int) -> None:
        self._pieces, self._total = pieces, total
        self._rows = 0

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        piece = next(self._pieces)
        self._rows += piece.batch.num_rows
        return piece

    def share_done(self) -> float | None:
        return min(1.0, self._rows / self._total) if self._total else None

    def stop(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


class Redirected:
    """Standard input: a file behind `<` has a size and a position, a pipe has neither."""

    def share_done(self) -> float | None:
        try:
            descriptor = sys.stdin.fileno()
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                return None
            return min(1.0, os.lseek(descriptor, 0, os.SEEK_CUR) / status.st_size)
        except (OSError, ValueError):
            return None

    def stop(self) -> None:
        """A read of a silent pipe cannot be called back."""

    def close(self) -> None:
        """It is not ours."""


class PiecedSource:
    """A source over pieces: bad rows are dealt with in order, by whoever takes the batches.

    idle: given when the pieces are read ahead by a thread: the batch that says that there is nothing at the moment.
    """

    def __init__(
        self,
        name: str,
        pieces: Iterator[Piece],
        bad: BadRows,
        files: Opened | None = None,
        idle: pa.RecordBatch | None = None,
    ) -> None:
        self._bad, self._files, self._idle = bad, files, idle
        self._timer: EventTimer | None = None
        self._widen: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
        self._ahead = Ahead(pieces, name) if idle is not None else None
        self._pieces = pieces
        self.blank_lines = 0
        self.notes: list[str] = []
        self.contradiction: Contradiction | None = None

    @property
    def bad_rows(self) -> int:
        return self._bad.count

    def time_by(self, timer: EventTimer) -> None:
        self._timer = timer

    def widen_by(self, widen: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Let every batch become one with more columns, from before the first row on."""
        self._widen = widen

    def batches(self) -> Iterator[SourceBatch]:
        for read in self._ahead or self._pieces:
            piece = Piece(self._idle, NOWHERE) if read is None else read
            if self._widen is not None:
                piece = replace(piece, batch=self._widen(piece.batch))
            if self._timer is not None:
                piece = timed(piece, self._timer)
            if read is None:
                yield SourceBatch(piece.batch, NOWHERE, self._bad.count)
                continue
            if piece.bad and self._bad.fails:
                before = piece.bad[0].before
                if before:
                    yield SourceBatch(piece.batch.slice(0, before), piece.place.slice(0, before), 0)
                first = piece.bad[0]
                said = first.diagnostic(piece.place.file)
                if first.wider is not None:
                    self.contradiction = Contradiction(first.column, *first.wider, said)
                raise DataError(said)
            self._bad.take(piece.place.file, piece.bad)
            self.blank_lines += piece.blank
            self.notes += [piece.note] if piece.note else []
            if piece.batch.num_rows:
                yield SourceBatch(piece.batch, piece.place, self._bad.count)

    def share_done(self) -> float | None:
        return self._files.share_done() if self._files is not None else None

    def interrupt(self) -> None:
        if self._ahead is not None:
            self._ahead.interrupted = True

    def close(self) -> None:
        if self._files is not None:
            self._files.stop()
        if self._ahead is not None:
            self._ahead.stop()
        if self._files is not None:
            self._files.close()
        self._bad.close()
