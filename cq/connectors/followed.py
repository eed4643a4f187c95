"""A file that grows, read as `tail -F` reads it: `follow = true`.

A file is followed until another file with rows takes its path (rotation), or until it is shorter than what was read of
it (truncation); then the path is read from the start, header and all, as the next file of the stream. A line is read
once its line end is there. A replaced file is read to its end first, where the last line needs no line end; the
unfinished last line of a truncated file is lost. Both events are reported at their place among the rows.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from cq.connectors.access import FileAccess, is_pattern, is_written
from cq.connectors.formats import FORMATS, codec_of, format_of, with_ending
from cq.connectors.natives import NONE, Natives
from cq.connectors.protocol import RECORD_BYTES, Piece, Place, damaged
from cq.connectors.readings.protocol import TextReading, reading_of
from cq.connectors.registry import option
from cq.connectors.rules import Rules
from cq.errors import Diagnostic, UsageError

# How long to wait before looking again: first, and at most. A look costs 5 us; rows arrive at most this much later.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.002, 0.2

Pause = Callable[[float], bool]
"""Wait up to this many seconds; return whether following has ended."""


def is_followed(options: Mapping[str, str]) -> bool:
    """Whether a stream with these options waits for more at the end of its file."""
    return option(options, "follow") == "true"


def check_followed(options: Mapping[str, str]) -> None:
    """CQ0602 for what cannot be followed: several files, and formats that are read from the end or as a whole."""
    path = options["path"]
    if is_pattern(path):
        raise _cannot(f'"{path}" names several files', "declare a stream for each file, and read them with UNION ALL")
    kind = format_of(path, option(options, "format"))
    if not FORMATS[kind].grows:
        raise _cannot(
            f'"{path}" is a {FORMATS[kind].title} file, which is complete only when it is closed', "write CSV or JSON"
        )
    codec = codec_of(path, option(options, "compression"), kind)
    if codec:
        raise _cannot(f'"{path}" is compressed ({codec})', "follow the plain file")


def _cannot(cause: str, way: str) -> UsageError:
    ways = (way, "or leave follow out to read the file to its end")
    return UsageError(Diagnostic("CQ0602", f"only a plain CSV or JSON file can be followed; {cause}", help=ways))


def _mode(path: Path, name: str) -> int:
    """What kind of file it is. FileNotFoundError if there is none, CQ0601 if that is unknown or it is a directory."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(
            Diagnostic("CQ0601", f'cannot open "{name}": {(error.strerror or str(error)).lower()}')
        ) from None
    if stat.S_ISDIR(mode):
        raise _cannot(f'"{name}" is a directory', "name one file in it")
    return mode


class Followed:
    """The pieces of a followed file, until `stop`. pause: how it waits; by default it waits until it is stopped."""

    def __init__(
        self,
        path: str,
        options: Mapping[str, str],
        rules: Rules,
        access: FileAccess,
        natives: Natives = NONE,
        pause: Pause | None = None,
    ) -> None:
        check_followed({**options, "path": path})
        access.resolve(path)
        self._path, self._rules, self._access, self._natives = path, rules, access, natives
        self._reading = reading_of(format_of(path, option(options, "format")))
        self._options = with_ending(options, path)
        self._over = threading.Event()
        self._pause = pause or self._over.wait
        self._next: BinaryIO | None = self._opened()
        if self._next is None and is_written(access.resolve(path)):
            cause = f'"{path}" is written by this query and cannot be its input'
            raise UsageError(Diagnostic("CQ0605", cause, help=("write to another file",)))

    def _opened(self) -> BinaryIO | None:
        """The file now at the path; None when there is none."""
        path = self._access.base / self._path
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(_mode(path, self._path)):
                raise _cannot(f'"{self._path}" is not a regular file', "a pipe is read until its writer closes it")
            try:
                return self._access.open(self._path)
            except UsageError:
                os.stat(path)  # it may have disappeared meanwhile
                raise
        return None

    def pieces(self) -> Iterator[Piece]:
        """The rows of every file that appears at the path, one after the other."""
        number = 0
        if self._next is None:
            yield self._note("is not there yet: waiting for it")
        while (file := self._begun()) is not None:
            number += 1
            name = self._path if number == 1 else f"{self._path}#{number}"
            growing = _Growing(file, self._access.base / self._path, self._wait)
            assert isinstance(self._reading, TextReading), "a format that grows and is no text"
            try:
                yield from self._reading.read(growing, name, self._options, self._rules, self._natives, True)
            except OSError as e:
                raise damaged(name, f"it cannot be read: {e.strerror or str(e)[:200]}") from None
            finally:
                growing.close()
            if growing.ended:
                yield self._note(growing.ended)

    def _note(self, text: str) -> Piece:
        return Piece(self._rules.nothing(), Place(self._path, 1), note=f"{self._path} {text}")

    def _wait(self, seconds: float) -> bool:
        if self._pause(seconds):
            self.stop()
        return self._over.is_set()

    def _begun(self) -> BinaryIO | None:
        """The file at the path once it has a byte; None when following is over."""
        wait = FIRST_WAIT_S
        while not self._over.is_set():
            file, self._next = self._next or self._opened(), None
            if file is not None:
                if os.fstat(file.fileno()).st_size:
                    return file
                file.close()
            if self._wait(wait):
                break
            wait = _longer(wait)
        return None

    def about_rows(self) -> None:
        """Unknown, as nobody knows how much will come."""

    def share_done(self) -> float | None:
        """Unknown: nobody knows how much will come."""
        return None

    def stop(self) -> None:
        """Make `pieces` end soon, even if it is waiting."""
        self._over.set()

    def close(self) -> None:
        if self._next is not None:
            self._next.close()
            self._next = None


def _longer(wait: float) -> float:
    return min(2 * wait, LONGEST_WAIT_S)


class _Growing:
    """One file at the path while it grows: yields whole lines as soon as they are complete.

    ended: why reading it stopped, if the path is still followed.
    """

    def __init__(self, file: BinaryIO, path: os.PathLike[str], wait: Pause) -> None:
        self._file, self._path, self._wait = file, path, wait
        self._at = 0
        self._line = b""  # the unfinished line
        self._replaced = False
        self.ended = ""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes of whole lines; none when another file has taken the path or reading was stopped."""
        wait = FIRST_WAIT_S
        while not self.ended:
            found = self._file.read(max(1, size - len(self._line)))
            self._at += len(found)
            if found:
                whole, wait = self._lines(found, size), FIRST_WAIT_S
                if whole:
                    return whole
            elif self._replaced:
                self.ended = "has been replaced: the new file is read from its beginning"
                return self._line
            elif os.fstat(self._file.fileno()).st_size < self._at:
                lost = f"; {len(self._line)} bytes of an unfinished line are lost" if self._line else ""
                self.ended = f"has been truncated: it is read from its beginning{lost}"
            else:
                self._replaced = self._is_replaced()
                if not self._replaced and self._wait(wait):
                    break
                wait = _longer(wait)
        return b""

    def _lines(self, found: bytes, size: int) -> bytes:
        """Everything up to the last line end; of a line over the limit, what has arrived."""
        text = self._line + found
        end = text.rfind(b"\n") + 1
        if not end and len(text) >= min(size, RECORD_BYTES):
            end = len(text)
        self._line = text[end:]
        return text[:end]

    def _is_replaced(self) -> bool:
        """Whether another file, with rows, has taken the path."""
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        mine = os.fstat(self._file.fileno())
        return there.st_size > 0 and (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)

    def close(self) -> None:
        self._file.close()
