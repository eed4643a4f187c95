"""Input that can be read only once, a pipe or standard input: what inference has looked at is still read later.

A descriptor that was looked at stays open under the identity of its file until somebody reads it.
"""

from __future__ import annotations

import io
import os
import select
import stat

from cq.records import dataclass

LOOK_BYTES = 1 << 20  # as much as of a file
# A producer that pauses has its columns guessed from the rows it sent: half as long and a busy `zcat` seems to pause.
SILENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Looked:
    """The first bytes of an input. ended: nothing comes after them."""

    text: bytes
    ended: bool


@dataclass(slots=True)
class _Kept:
    descriptor: int
    looked: Looked


_KEPT: dict[tuple[int, int], _Kept] = {}


class Once(io.RawIOBase):
    """Reads a descriptor without waiting for more than there is: a slow producer's rows are not held back."""

    def __init__(self, descriptor: int, owned: bool) -> None:
        """owned: it is closed with this; else it stays open."""
        super().__init__()
        self._key = _identity(os.fstat(descriptor))
        kept = _KEPT.pop(self._key, None)
        if kept is not None and kept.descriptor != descriptor and owned:
            os.close(descriptor)
        self._descriptor = kept.descriptor if kept is not None else descriptor
        self._head = kept.looked.text if kept is not None else b""
        self._owned = owned
        self._read = 0

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def tell(self) -> int:
        return self._read

    def read(self, size: int = -1, /) -> bytes:
        """Waits for the first byte, then takes what follows at once, up to `size`."""
        head, self._head = self._head[:size], self._head[size:]
        parts = [head or os.read(self._descriptor, size)]
        have = len(parts[0])
        while parts[-1] and have < size and self._is_ready(0):
            parts.append(os.read(self._descriptor, size - have))
            have += len(parts[-1])
        self._read += have
        return b"".join(parts)

    def look(self) -> Looked:
        """The first bytes, which whoever opens the same input next reads once more; this object is done."""
        text, ended = self._head, False
        while len(text) < LOOK_BYTES and (b"\n" not in text[:-1] or self._is_ready(SILENCE_S)):
            more = os.read(self._descriptor, LOOK_BYTES - len(text))
            text += more
            if not more:
                ended = True
                break
        looked = Looked(text, ended)
        _KEPT[self._key] = _Kept(self._descriptor, looked)
        self._owned = False
        return looked

    def _is_ready(self, wait_s: float) -> bool:
        return bool(select.select([self._descriptor], [], [], wait_s)[0])

    def close(self) -> None:
        if self._owned and not self.closed:
            os.close(self._descriptor)
        super().close()


def kept(path: os.PathLike[str]) -> Once | None:
    """The pipe of that path, if it was looked at: opening it anew would wait for another writer."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    found = _KEPT.get(_identity(status)) if stat.S_ISFIFO(status.st_mode) else None
    return Once(found.descriptor, owned=True) if found is not None else None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
