"""The file connector: one file, or those that match a pattern, in name order, in any format cq reads."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import BinaryIO

from cq.connectors.access import FileAccess
from cq.connectors.followed import Followed, is_followed
from cq.connectors.formats import FORMATS, codec_of, format_of, with_ending
from cq.connectors.headers import columns_said
from cq.connectors.narrow import spread
from cq.connectors.native_file import native
from cq.connectors.natives import NONE, Natives
from cq.connectors.packed import unpacked
from cq.connectors.pipes import read_pipe
from cq.connectors.protocol import Piece, Report, damaged
from cq.connectors.read_once import Once, is_pipe
from cq.connectors.readings.protocol import TextReading, reading_of
from cq.connectors.registry import option
from cq.connectors.requests import Opened, SourceRequest
from cq.connectors.rules import Rules
from cq.connectors.several import Lacking, lacking
from cq.records import replace

TEXT_BYTES = 4  # of a value with its delimiter, at least
PACKED = 10  # times as long is a compressed text, at most


def open_files(asked: SourceRequest) -> Opened:
    """The rows of the files of a path or pattern; for a followed file, the future rows too."""
    assert asked.path is not None, "files without a path"
    read = Followed if is_followed(asked.options) else Files
    files = read(asked.path, asked.options, asked.rules, asked.access, asked.natives)
    return Opened(files.pieces(), files, asked.rules.nothing(), files.about_rows())


class Files:
    """The pieces of all files of a path or pattern, and how far reading has come."""

    def __init__(
        self,
        pattern: str,
        options: Mapping[str, str],
        rules: Rules,
        access: FileAccess,
        natives: Natives = NONE,
    ) -> None:
        self.paths = access.expand(pattern)
        access.refuse_directory(self.paths[0])
        self._options, self._rules, self._access = dict(options), rules, access
        self._options = with_ending(self._options, self.paths[0])
        self._kinds = [self._kind_of(p) for p in self.paths]
        self._natives = natives
        for reading in (reading_of(kind) for kind, _ in self._kinds if kind):
            if isinstance(reading, TextReading):
                reading.check(self._options)
        # open the first now, so that a missing file is reported before anything runs
        self._next: BinaryIO | None = access.open(self.paths[0])
        self._sizes = [_size(access, p) for p in self.paths]
        self._lacking = self._files_that_lack_columns()
        self._done_bytes = 0.0  # bytes of the files that are done and of the one being read

    def pieces(self) -> Iterator[Piece]:
        """Read every file from beginning to end, one after the other."""
        for path, (kind, codec), size in zip(self.paths, self._kinds, self._sizes, strict=True):
            file = self._next or self._access.open(path)
            self._next = None
            report = partial(self._report, self._done_bytes, size)
            rules, has = self._lacking.get(path, (self._rules, None))
            with file, closing(self._read(file, path, kind, codec, report, rules)) as pieces:
                yield from pieces if has is None else (self._with_nulls(piece, has) for piece in pieces)
            report(1.0)

    def _with_nulls(self, piece: Piece, has: Sequence[int]) -> Piece:
        """The piece of a file that lacks columns, with those columns as NULLs."""
        return replace(piece, batch=spread(piece.batch, self._rules.fields, self._rules.wanted, has))

    def _files_that_lack_columns(self) -> Lacking:
        """How to read files of a pattern that lack columns; CQ0603, before anything runs, where they must have them."""
        files = zip(self.paths, self._kinds, self._sizes, strict=True)
        said = (
            (path, columns_said(self._access, path, kind, codec, self._options))
            for path, (kind, codec), size in files
            if kind and size
        )
        return lacking(said, self._rules, self._options) if len(self.paths) > 1 and self._rules.fields else {}

    def _report(self, before: float, size: int, share: float) -> None:
        self._done_bytes = before + share * size

    def _kind_of(self, path: str) -> tuple[str, str]:
        """(format, codec) of a file. For a pipe both are detected when it is read."""
        if is_pipe(self._access.base / path):
            return "", ""
        kind = format_of(path, option(self._options, "format"))
        return kind, codec_of(path, option(self._options, "compression"), kind)

    def _read(
        self, file: BinaryIO, path: str, kind: str, codec: str, report: Report, rules: Rules
    ) -> Generator[Piece, None, None]:
        if isinstance(file, Once):
            yield from read_pipe(file, path, self._options, rules, self._natives)
            return
        reading = reading_of(kind)
        if isinstance(reading, TextReading):
            yield from self._read_text(file, path, reading, codec, report, rules)
            return
        if os.fstat(file.fileno()).st_size == 0:
            raise damaged(path, f"the file is empty, so it is no {FORMATS[kind].title} file")
        with native(file) as its_own:
            yield from reading.read(its_own, path, rules, report)

    def _read_text(
        self, file: BinaryIO, path: str, reading: TextReading, codec: str, report: Report, rules: Rules
    ) -> Iterator[Piece]:
        status = os.fstat(file.fileno())
        size = status.st_size
        if not size and stat.S_ISREG(status.st_mode) and len(self.paths) > 1:
            return  # when there are several files, one may have no rows, and then neither header nor compression magic
        may_be_blank = len(self.paths) > 1 or stat.S_ISREG(status.st_mode)  # not a pipe, whose writer may have failed
        try:
            text = unpacked(file, path, codec)
            for piece in reading.read(text, path, self._options, rules, self._natives, may_be_blank):
                if size:  # special files have none
                    report(file.tell() / size)
                yield piece
            # the file ended too soon: the rows after that are lost (a truncated compressed file is detected when it is
            # unpacked)
            if text is file and os.fstat(file.fileno()).st_size < size:
                raise damaged(path, "it became shorter while it was read", "run again when nobody changes it")
        except OSError as e:
            raise damaged(path, f"it cannot be read: {e.strerror or str(e)[:200]}") from None

    def about_rows(self) -> int | None:
        """Roughly how many rows there are, rather too many than too few, by the bytes of the files; None for pipes."""
        if not all(kind for kind, _ in self._kinds):
            return None
        row_bytes = TEXT_BYTES * max(1, len(self._rules.fields))
        found = 0
        for (kind, codec), size in zip(self._kinds, self._sizes, strict=True):
            is_text = isinstance(reading_of(kind), TextReading)
            found += size * (PACKED if codec else 1) // (row_bytes if is_text else 1)
        return found

    def share_done(self) -> float | None:
        """Bytes read over bytes there are."""
        total = sum(self._sizes)
        return min(1.0, self._done_bytes / total) if total else None

    def stop(self) -> None:
        """Nothing to do: reading a file never waits."""

    def close(self) -> None:
        if self._next is not None:
            self._next.close()
            self._next = None


def _size(access: FileAccess, path: str) -> int:
    try:
        return os.stat(access.base / path).st_size
    except OSError:
        return 0
