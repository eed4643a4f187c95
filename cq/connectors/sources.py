"""Opening a source: which connector reads a stream, which constraints its rows must satisfy, and who reads ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path

import pyarrow as pa

from cq.connectors.access import identity
from cq.connectors.bad_rows import BadRows
from cq.connectors.event_times import timed
from cq.connectors.formats import loaded
from cq.connectors.inputs import Inputs, is_path
from cq.connectors.memory import read_constants
from cq.connectors.narrow import narrowed, spread
from cq.connectors.natives import NONE, Natives
from cq.connectors.protocol import Contradiction, DeclaredStream, EventTimer, Piece, Place, SourceBatch
from cq.connectors.read_ahead import Ahead
from cq.connectors.registry import SOURCES, option
from cq.connectors.requests import Opened, SourceRequest
from cq.connectors.rules import Rules
from cq.errors import DataError, Diagnostic, UsageError
from cq.records import replace


def open_source(
    stream: DeclaredStream,
    inputs: Inputs,
    wanted: Sequence[int] | None = None,
    reserved: frozenset[tuple[int, int]] = frozenset(),
    natives: Natives = NONE,
    used: AbstractSet[int] | None = None,
) -> PiecedSource:
    """The rows of a stream. Files are found and opened here, so a missing one is reported at once.

    wanted: positions of the columns to deliver; all by default. Rows are checked against every declared column.
    reserved: files, besides its own, that bad rows must not be written to, by (device, inode).
    natives: what the engine does faster itself.
    used: the columns that matter to the query; if the columns are undeclared, the others are not read, and are NULL.
    """
    narrow = None if used is None else narrowed(stream, used)
    if narrow is not None:
        asked = range(len(stream.fields)) if wanted is None else wanted
        source = open_source(narrow, inputs, narrow.wanted(asked), reserved, natives)
        source.widen_by(partial(spread, fields=stream.fields, wanted=asked, read=narrow.indices))
        return source
    options = dict(stream.options)
    rules = Rules.of(stream, wanted, natives.codes)
    bad = BadRows(option(options, "on_error"), _dead_letter_path(stream, inputs, reserved))
    if stream.rows is not None:
        rows = read_constants(stream.rows, stream.name, rules)
        return PiecedSource(stream.name, Opened(rows, None, None, len(stream.rows)), bad)
    connector, request = _asked(stream, inputs, rules, natives)
    return PiecedSource(stream.name, loaded(SOURCES[connector].open)(request), bad)


def _asked(stream: DeclaredStream, inputs: Inputs, rules: Rules, natives: Natives) -> tuple[str, SourceRequest]:
    """The connector of a stream and the request for it: what was given replaces what was declared."""
    given, options = inputs.given.get(stream.name), dict(stream.options)
    path, access = inputs.path_of(stream)
    if path is not None:
        connector = "file"
    elif given is not None:
        connector = "stdin" if is_path(given) else "memory"
    else:
        connector = options.get("connector", "memory")
    return connector, SourceRequest(stream.name, options, rules, natives, access, path, given)


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


class PiecedSource:
    """A source over pieces: bad rows are handled in order, by the thread that takes the batches."""

    def __init__(self, name: str, opened: Opened, bad: BadRows) -> None:
        self._bad, self._progress, self._nothing = bad, opened.progress, opened.nothing
        self._timer: EventTimer | None = None
        self._widen: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
        self._ahead = Ahead(opened.pieces, name) if opened.nothing is not None else None
        self._pieces = opened.pieces
        self.about_rows = opened.about_rows
        self.blank_lines = 0
        self.notes: list[str] = []
        self.contradiction: Contradiction | None = None

    @property
    def bad_rows(self) -> int:
        return self._bad.count

    @property
    def letters(self) -> Path | None:
        return self._bad.path if self._bad.count else None

    def start(self) -> None:
        if self._ahead is not None:
            self._ahead.start()

    def time_by(self, timer: EventTimer) -> None:
        self._timer = timer

    def widen_by(self, widen: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace every batch by one with more columns, starting before the first row."""
        self._widen = widen

    def batches(self) -> Iterator[SourceBatch]:
        for read in self._ahead or self._pieces:
            piece = Piece(self._nothing, NOWHERE) if read is None else read
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
        return self._progress.share_done() if self._progress is not None else None

    def interrupt(self) -> None:
        if self._ahead is not None:
            self._ahead.interrupted = True

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._ahead is not None:
            self._ahead.stop()
        if self._progress is not None:
            self._progress.close()
        self._bad.close()
