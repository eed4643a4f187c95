"""Where the bytes of a sink go: a file that gets its name when complete, one that grows, or standard output."""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from cq.connectors.access import PART, STDIN, FileAccess, claim, give_back, identity
from cq.errors import Diagnostic, UsageError, printable

MEMBER_BYTES = 1 << 20  # bytes of text in each member of a compressed file: one percent larger than as a single member
PART_BYTES = 6  # random bytes in the name of a part


class OutputClosed(Exception):
    """The reader of our standard output has gone (`| head`): stop writing, with no error to report."""


class Target(Protocol):
    """A destination for bytes."""

    @property
    def file(self) -> BinaryIO: ...

    def write(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...

    @property
    def stays(self) -> bool:
        """Whether somebody may have seen what was written although it was aborted."""
        ...

    @property
    def lasts(self) -> bool:
        """Whether it is somewhere other than standard output."""
        ...


def cannot_write(path: str, error: OSError) -> UsageError:
    """The error for a file that cannot be written."""
    directory = os.path.dirname(path)
    lacks_one = isinstance(error, FileNotFoundError) and directory and not os.path.exists(directory)
    help = (f"create its directory: mkdir -p {shlex.quote(printable(directory))}",) if lacks_one else ()
    cause = f'cannot write "{printable(path)}": {(error.strerror or str(error)).lower()}'
    return UsageError(Diagnostic("CQ0605", cause, help=help))


class FileTarget:
    """Writes to a file beside `path` and renames it at the end; on abort, and when the process dies, `path` is
    unchanged.

    grows: it is renamed with the first bytes, which everybody can read from then on, and an abort keeps what was
    written whole.
    """

    lasts = True

    def __init__(
        self, path: str, access: FileAccess, reserved: frozenset[tuple[int, int]], grows: bool = False
    ) -> None:
        self._shown, self._grows = path, grows
        self._path = access.resolve(path)
        self._check(path, reserved)
        claim(self._path, path, self)
        self._there_bytes = 0  # for a growing file that has its name: how much of it is whole
        try:
            self._part, descriptor = _open_part(self._path)
        except OSError as e:
            give_back(self._path)
            raise cannot_write(path, e) from None
        self._file: BinaryIO = os.fdopen(descriptor, "wb", buffering=1 << 18)

    def _check(self, path: str, reserved: frozenset[tuple[int, int]]) -> None:
        there = identity(self._path)
        if there is None:
            return
        if there in reserved:
            raise UsageError(
                Diagnostic(
                    "CQ0605",
                    f'"{path}" is read by this query and cannot be its output',
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
            if self._grows and data:
                self._file.flush()
                if not self._there_bytes:
                    self._part.replace(self._path)
                self._there_bytes += len(data)
        except OSError as e:
            raise cannot_write(self._shown, e) from None

    def close(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            if not self._there_bytes:
                self._part.replace(self._path)
            self._file.close()
            give_back(self._path)
            _sync_directory(self._path.parent)
        except OSError as e:
            self.abort()
            raise cannot_write(self._shown, e) from None

    def ignore(self) -> None:
        """Discard what is written from now on, without failing."""
        if self._file.closed:
            return
        with suppress(OSError):
            if self._there_bytes:
                os.ftruncate(self._file.fileno(), self._there_bytes)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)

    def abort(self) -> None:
        give_back(self._path)
        self.ignore()  # after a failed write for lack of room, nothing may follow
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)

    @property
    def stays(self) -> bool:
        return self._there_bytes > 0


def _open_part(path: Path) -> tuple[Path, int]:
    """Create and lock a new file beside `path` for the incomplete output; remove those left by killed runs to `path`.

    The lock ends with the process: if a part can be locked, nobody writes it any more.
    """
    prefix = f".{path.name[:200]}."
    with suppress(OSError):
        for left in [p for p in path.parent.iterdir() if p.name.startswith(prefix) and _is_part(p.name, len(prefix))]:
            _remove_unlocked(left)
    while True:
        part = path.with_name(f"{prefix}{os.urandom(PART_BYTES).hex()}{PART}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(part, flags, 0o666)
        with suppress(OSError):  # without locks, parts of killed runs stay
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return part, descriptor
        os.close(descriptor)  # another run found it before it was locked, and took it for abandoned


def _is_part(name: str, at: int) -> bool:
    return len(name) == at + 2 * PART_BYTES + len(PART) and name.endswith(PART)


def _remove_unlocked(part: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(part, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()
        finally:
            os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    """Make the new name survive a power cut, where directories can be synced."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Packed:
    """A target that compresses what is written to another: consecutive members of the codec, which its tools can
    read."""

    lasts = True

    def __init__(self, target: Target, codec: str, grows: bool) -> None:
        """grows: what was written can be read immediately, whole."""
        self._target, self._codec = target, pa.Codec(codec)
        self._member_bytes = 0 if grows else MEMBER_BYTES
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._is_empty = True

    @property
    def file(self) -> BinaryIO:
        return self._target.file

    def write(self, data: bytes, /) -> None:
        self._waiting.append(data)
        self._bytes += len(data)
        if self._bytes > self._member_bytes:
            self._pack()

    def _pack(self) -> None:
        self._target.write(self._codec.compress(b"".join(self._waiting), asbytes=True))
        self._waiting, self._bytes, self._is_empty = [], 0, False

    def close(self) -> None:
        if self._bytes or self._is_empty:
            self._pack()
        self._target.close()

    def abort(self) -> None:
        self._target.abort()

    @property
    def stays(self) -> bool:
        return self._target.stays


class PipeTarget:
    """A named pipe, also `-o >(…)`: what was written stays written. Opening it waits for its reader."""

    lasts = True

    def __init__(self, path: str, place: Path) -> None:
        self._shown, self.stays = path, False
        try:
            self._file: BinaryIO = open(place, "wb")  # noqa: SIM115 - `close` closes it
        except OSError as e:
            raise cannot_write(path, e) from None

    @property
    def file(self) -> BinaryIO:
        self.stays = True  # who asks for it writes to it
        return self._file

    def write(self, data: bytes, /) -> None:
        self.stays = self.stays or bool(data)
        try:
            self._file.write(data)
            self._file.flush()
        except BrokenPipeError:
            self._left()
            raise OutputClosed from None
        except OSError as e:
            raise cannot_write(self._shown, e) from None

    def _left(self) -> None:
        """Report that its reader has gone."""

    def close(self) -> None:
        self.write(b"")
        self._file.close()

    def abort(self) -> None:
        with suppress(OSError):
            self._file.close()


class StdoutTarget(PipeTarget):
    """Standard output, which stays open."""

    lasts = False

    def __init__(self) -> None:
        self._shown, self._file, self.stays = "<stdout>", sys.stdout.buffer, False

    def _left(self) -> None:
        silence_stdout()

    def close(self) -> None:
        self.write(b"")

    def abort(self) -> None:
        with suppress(OutputClosed, UsageError):
            self.write(b"")


def silence_stdout() -> None:
    """Let Python's own flush at exit write to nowhere instead of failing once more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def is_pipe(path: str, access: FileAccess) -> bool:
    """Whether a sink's path is a named pipe, or standard output. None if the query is confined."""
    try:
        return path == STDIN or (access.roots is None and stat.S_ISFIFO(os.stat(access.base / path).st_mode))
    except OSError:
        return False


def open_target(path: str, access: FileAccess, reserved: frozenset[tuple[int, int]], grows: bool = False) -> Target:
    """The target for a path; `-` is standard output."""
    if path == STDIN:
        return StdoutTarget()
    if is_pipe(path, access):
        return PipeTarget(path, access.base / path)
    return FileTarget(path, access, reserved, grows)
