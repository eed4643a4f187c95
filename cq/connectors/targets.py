"""Where the bytes of a sink go: a file that has its name only when it is whole, or standard output as it comes."""

from __future__ import annotations

import os
import secrets
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol
from weakref import WeakValueDictionary

from cq.connectors.access import STDIN, Access, identity
from cq.errors import Diagnostic, UsageError, printable


class OutputClosed(Exception):
    """Whoever read our standard output has gone (`| head`): there is nothing left to do, and nothing to say."""


class Target(Protocol):
    """A place for bytes."""

    @property
    def file(self) -> BinaryIO: ...

    def write(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


def cannot_write(path: str, error: OSError) -> UsageError:
    """The error for a file that cannot be written."""
    return UsageError(
        Diagnostic("CQ0605", f'cannot write "{printable(path)}": {(error.strerror or str(error)).lower()}')
    )


_WRITTEN: WeakValueDictionary[str, object] = WeakValueDictionary()  # by path: who writes it now, in any query
_CLAIMING = threading.Lock()


def claim(path: Path, shown: str, writer: object) -> None:
    """The file is the writer's until it gives it back, or is collected; CQ0605 when it is another's."""
    with _CLAIMING:
        if str(path) in _WRITTEN:
            cause = f'"{shown}" is written by another output already'
            raise UsageError(Diagnostic("CQ0605", cause, help=("give each output a file of its own",)))
        _WRITTEN[str(path)] = writer


def give_back(path: Path) -> None:
    """Anybody may write the file."""
    _WRITTEN.pop(str(path), None)


class FileTarget:
    """Writes beside `path` and takes its name at the end; on abort, and when the process dies, `path` is as it was."""

    def __init__(self, path: str, access: Access, reserved: frozenset[tuple[int, int]]) -> None:
        self._shown = path
        self._path = access.resolve(path)
        self._check(path, reserved)
        claim(self._path, path, self)
        self._part = self._path.with_name(f".{self._path.name[:200]}.{secrets.token_hex(6)}.part")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file: BinaryIO = os.fdopen(os.open(self._part, flags, 0o666), "wb", buffering=1 << 18)
        except OSError as e:
            give_back(self._path)
            raise cannot_write(path, e) from None

    def _check(self, path: str, reserved: frozenset[tuple[int, int]]) -> None:
        there = identity(self._path)
        if there is None:
            return
        if there in reserved:
            raise UsageError(
                Diagnostic(
                    "CQ0605",
                    f'"{path}" is read by this very query, so it cannot be its output',
                    help=("write to another file",),
                )
            )
        if not stat.S_ISREG(os.stat(self._path).st_mode):
            what = "a directory" if self._path.is_dir() else "not a regular file"
            raise UsageError(Diagnostic("CQ0605", f'cannot write "{path}": it is {what}', help=("name a file",)))

    @property
    def file(self) -> BinaryIO:
        return self._file

    def write(self, data: bytes, /) -> None:
        try:
            self._file.write(data)
        except OSError as e:
            raise cannot_write(self._shown, e) from None

    def close(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self._path)
            give_back(self._path)
            _sync_directory(self._path.parent)
        except OSError as e:
            self.abort()
            raise cannot_write(self._shown, e) from None

    def abort(self) -> None:
        give_back(self._path)
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    """The new name survives a power cut, where directories can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class StdoutTarget:
    """Standard output. What was written stays written."""

    @property
    def file(self) -> BinaryIO:
        return sys.stdout.buffer

    def write(self, data: bytes, /) -> None:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            silence_stdout()
            raise OutputClosed from None
        except OSError as e:
            raise cannot_write("<stdout>", e) from None

    def close(self) -> None:
        self.write(b"")

    def abort(self) -> None:
        with suppress(OutputClosed, UsageError):
            self.write(b"")


def silence_stdout() -> None:
    """Python's own flush at exit goes nowhere instead of failing once more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def open_target(path: str, access: Access, reserved: frozenset[tuple[int, int]]) -> FileTarget | StdoutTarget:
    """The target for a path; `-` is standard output."""
    return StdoutTarget() if path == STDIN else FileTarget(path, access, reserved)
