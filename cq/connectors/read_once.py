"""Input that can be read only once, a pipe or standard input: what inference has looked at can still be read later.

A descriptor that inference has read from stays open, keyed by the identity of its file, until somebody reads it.
"""

from __future__ import annotations

import io
import os
import select
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from cq.records import dataclass

CHUNK_BYTES = 1 << 16
PATIENCE_S = 1.0  # after this long the user is told that inference waits; the result never depends on it

Listener = Callable[[str], None]
_listeners: list[Listener] = []


@contextmanager
def told_of_waiting(listener: Listener) -> Iterator[None]:
    """While this is open, tell the listener what inference is waiting for."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(text: str) -> None:
    """Tell the listener what inference is waiting for."""
    for listener in _listeners:
        listener(text)


@dataclass(frozen=True, slots=True)
class Looked:
    """The first bytes of an input. ended: nothing relevant comes after them."""

    text: bytes
    ended: bool


class Peeked(io.RawIOBase):
    """A reader whose first bytes can be looked at before they are read."""

    def __init__(self) -> None:
        super().__init__()
        self._head = b""

    def take(self, size: int) -> bytes:
        """Up to `size` bytes after the head; none only at the end."""
        raise NotImplementedError

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes; fewer when no more are available now, none only at the end."""
        if not self._head:
            return self.take(size)
        found, self._head = self._head[:size], self._head[size:]
        return found

    def readinto(self, into: memoryview, /) -> int:  # type: ignore[override]
        found = self.read(len(into))
        into[: len(found)] = found
        return len(found)

    def readable(self) -> bool:
        return True

    def peek(self, is_enough: Callable[[bytes], bool]) -> bytes:
        """The first bytes, which can be read again later: as many as are enough, or all there are."""
        while not is_enough(self._head):
            more = self.take(CHUNK_BYTES)
            if not more:
                break
            self._head += more
        return self._head


@dataclass(slots=True)
class _Kept:
    """owned: the next reader owns the descriptor and closes it."""

    descriptor: int
    owned: bool
    head: bytes


Identity = tuple[int, int]
_KEPT: dict[Identity, _Kept] = {}


class Once(Peeked):
    """Reads a descriptor without waiting for more than is available: a slow producer's rows are not held back."""

    def __init__(self, key: Identity, kept: _Kept) -> None:
        super().__init__()
        self._key = key
        self._descriptor, self._owned, self._head = kept.descriptor, kept.owned, kept.head
        self._taken = len(kept.head)
        self._seen: bytearray | None = None
        self._on_wait: Callable[[], None] | None = None
        self._patient_until = 0.0

    @classmethod
    def of(cls, descriptor: int, owned: bool) -> Once:
        """The input behind a descriptor, from the start if it was only peeked at.

        owned: closing this closes it; else it stays open.
        """
        key = _identity(os.fstat(descriptor))
        kept = _KEPT.pop(key, None)
        if kept is None:
            return cls(key, _Kept(descriptor, owned, b""))
        if kept.descriptor != descriptor and owned:
            os.close(descriptor)
        return cls(key, kept)

    def fileno(self) -> int:
        return self._descriptor

    def tell(self) -> int:
        return self._taken - len(self._head)

    def take(self, size: int) -> bytes:
        """Wait for the first byte, then take what follows at once, up to `size`."""
        if self._on_wait is not None and not self._is_ready(max(0.0, self._patient_until - time.monotonic())):
            self._on_wait()
        parts = [os.read(self._descriptor, size)]
        have = len(parts[0])
        while parts[-1] and have < size and self._is_ready(0):
            parts.append(os.read(self._descriptor, size - have))
            have += len(parts[-1])
        self._taken += have
        found = b"".join(parts)
        if self._seen is not None:
            self._seen += found
        return found

    def _is_ready(self, wait_s: float) -> bool:
        return bool(select.select([self._descriptor], [], [], wait_s)[0])

    @contextmanager
    def looking(self, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        """The next reader of the same input reads again what is read while this is open.

        on_wait: called before each read that has to wait, once PATIENCE_S are over.
        """
        self._seen = bytearray(self._head)
        self._on_wait, self._patient_until = on_wait, time.monotonic() + PATIENCE_S
        try:
            yield
        finally:
            self._on_wait = None
            _KEPT[self._key] = _Kept(self._descriptor, self._owned, bytes(self._seen))

    def as_file(self) -> BinaryIO:
        """The whole input as a seekable file: itself if it is one, else an unnamed copy.

        OSError when there is no room for the copy.
        """
        if not self._is_file_from_its_beginning():
            self._copy()
        return os.fdopen(os.dup(self._descriptor), "rb", buffering=0)

    def _copy(self) -> None:
        """Switch to a copy of the whole input, from the start."""
        import tempfile

        with tempfile.TemporaryFile(buffering=0) as copy:
            while found := self.read(CHUNK_BYTES):
                copy.write(found)
            copy.seek(0)
            kept = os.dup(copy.fileno())
        if self._owned:
            os.close(self._descriptor)
        self._descriptor, self._owned, self._taken = kept, True, 0
        if self._seen is not None:
            self._seen = bytearray()

    def _is_file_from_its_beginning(self) -> bool:
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            return False
        return os.lseek(self._descriptor, 0, os.SEEK_CUR) == self._taken

    def close(self) -> None:
        if self._owned and self._seen is None and not self.closed:  # the next reader owns what was peeked at
            os.close(self._descriptor)
        super().close()


def is_pipe(path: os.PathLike[str]) -> bool:
    """Whether the path is a named pipe, or that of a process substitution."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False  # opening it raises the error


def kept(path: os.PathLike[str]) -> Once | None:
    """The pipe at that path, if it was peeked at: opening it again would wait for another writer."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    key = _identity(status)
    if not stat.S_ISFIFO(status.st_mode) or key not in _KEPT:
        return None
    return Once(key, _KEPT.pop(key))


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino
