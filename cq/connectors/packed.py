"""Packed text: which codec a file has, and its text while it is read."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import BinaryIO

import pyarrow as pa

from cq.connectors.csv.blocks import BLOCK_BYTES, Reads
from cq.connectors.protocol import damaged
from cq.errors import Diagnostic, UsageError

TEXT_FORMATS = ("csv", "json")
CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
WRITTEN = ("gzip", "zstd")
PLAIN = "none"
# A file may become this many times larger when unpacked, once it is past the free part: text packs 3 to 30 times.
MAX_RATIO = 200
FREE_BYTES = 64 << 20


def codec_of(path: str, given: str, format_: str) -> str:
    """The codec as given, else by the ending of the name; empty for none. CQ0602 for a format that packs its parts."""
    codec = given or CODECS.get(os.path.splitext(path.lower())[1], "")
    if codec in {"", PLAIN}:
        return ""
    if format_ not in TEXT_FORMATS:
        cause = f'"{path}" cannot be {format_} and packed: {format_} files are packed inside'
        ways = ("leave the option out, and the ending of the name" if given else "leave the ending of the name out",)
        raise UsageError(Diagnostic("CQ0602", cause, help=ways))
    return codec


def unpacked(file: BinaryIO, path: str, codec: str) -> Reads:
    """The text of a file."""
    return _Unpacked(file, codec, path) if codec else file


class _Unpacked(io.RawIOBase):
    """Reads a packed file and stops when it grows beyond reason.

    Of a damaged file everything before the damage is read; the error comes after it.
    """

    def __init__(self, file: BinaryIO, codec: str, path: str) -> None:
        super().__init__()
        self._packed, self._codec, self._path = file, codec, path
        self._streams = list[pa.CompressedInputStream]()  # one that is dropped closes the file
        self._open()
        self._bytes = 0
        self._broken: Exception | None = None

    def _open(self) -> None:
        """The last stream reads from where the file is."""
        self._streams.append(pa.CompressedInputStream(pa.PythonFile(self._packed, mode="r"), self._codec))

    def read(self, size: int = -1, /) -> bytes:
        if self._broken is not None:
            raise damaged(self._path, f"it cannot be unpacked: {str(self._broken)[:200]}") from None
        parts: list[bytes] = []
        have = 0
        try:
            while have < size and (part := self._streams[-1].read(size - have)):
                parts.append(part)
                have += len(part)
        except (pa.ArrowException, OSError) as e:
            self._broken = e
            parts.append(self._before_damage(have, size))
        found = b"".join(parts)
        self._bytes += len(found)
        if self._bytes > FREE_BYTES and self._bytes > MAX_RATIO * self._packed.tell():
            raise damaged(self._path, f"it unpacks to more than {MAX_RATIO} times its size")
        if not self._bytes and not self._packed.tell():
            raise damaged(self._path, f"the file is empty, so it is no {self._codec} file")
        return found or self.read(size) if self._broken is not None else found

    def _before_damage(self, have: int, size: int) -> bytes:
        """What can be unpacked of the `size` bytes behind the `have` ones read last: Arrow gives nothing of a read in
        which it fails, so they are read anew, one at a time."""
        rest = bytearray()
        with suppress(pa.ArrowException, OSError):
            self._packed.seek(0)
            self._open()
            left = self._bytes + have
            while left:
                left -= len(self._streams[-1].read(min(left, BLOCK_BYTES)))
            while have + len(rest) < size:
                rest += self._streams[-1].read(1)
        return bytes(rest)
