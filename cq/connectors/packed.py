"""The text of a compressed file, read as it is unpacked."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from cq.connectors.csv.blocks import Readable
from cq.connectors.first_bytes import codec_of_bytes, format_of_bytes
from cq.connectors.formats import FORMATS, PLAIN
from cq.connectors.protocol import INCOMPLETE, damaged
from cq.connectors.read_once import Peeked

# A file may unpack to this many times its size, beyond a free allowance: text compresses 3 to 30 times.
MAX_RATIO = 200
FREE_BYTES = 64 << 20
FILLING = b"\xff"


def unpacked(file: BinaryIO, path: str, codec: str) -> Readable:
    """The unpacked text of a file."""
    return _Unpacked(file, codec, path) if codec else file


NOT_PACKED = f"if it is not compressed, write compression = '{PLAIN}' in WITH, or cq run -w compression={PLAIN}"


class _Unpacked(Peeked):
    """Reads a compressed file and stops when it grows beyond reason.

    Everything before the damage in a file is read; the error comes after it.
    """

    def __init__(self, file: BinaryIO, codec: str, path: str) -> None:
        super().__init__()
        self._packed, self._codec, self._path = file, codec, path
        self._stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)
        self._bytes = 0
        self._broken: Exception | None = None

    def take(self, size: int) -> bytes:
        """As in `Peeked`, but waits for all `size` bytes."""
        if self._broken is not None:
            cause = f"it cannot be decompressed: {str(self._broken)[:200]}"
            raise damaged(self._path, cause, *(() if self._bytes else (NOT_PACKED,)), INCOMPLETE) from None
        # Arrow does not say how much it unpacked when it fails: the output ends where the fill bytes begin, which are
        # not UTF-8
        room = bytearray(FILLING) * size
        try:
            found = bytes(memoryview(room)[: self._stream.readinto(room)])
        except (pa.ArrowException, OSError) as e:
            self._broken = e
            found = bytes(room.rstrip(FILLING))
        if not self._bytes:
            self._refuse_no_text(found)
        self._bytes += len(found)
        if self._bytes > FREE_BYTES and self._bytes > MAX_RATIO * self._packed.tell():
            raise damaged(self._path, f"it decompresses to more than {MAX_RATIO} times its size")
        if not self._bytes and not self._packed.tell():
            raise damaged(self._path, f"the file is empty, so it is no {self._codec} file")
        return found or self.take(size) if self._broken is not None else found

    def _refuse_no_text(self, head: bytes) -> None:
        kind = format_of_bytes(head)
        what = FORMATS[kind].title if kind else codec_of_bytes(head)
        if what:
            raise damaged(
                self._path, f"its content, compressed with {self._codec}, is {what} and not text", "decompress it first"
            )
