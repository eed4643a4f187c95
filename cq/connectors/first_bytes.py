"""Detect what an input is from its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cq.connectors.formats import FORMATS

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ARROW_FILE = b"ARROW1"  # starts the file format, which has a footer; the stream format is read sequentially
MAGICS = {magic: format_.name for format_ in FORMATS.values() for magic in format_.magics}
CODECS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    **{b"BZh%d1AY&SY" % level: "bz2" for level in range(1, 10)},
}
_OBJECT = re.compile(rb"[ \t\r\n]*(?:\[[ \t\r\n]*)?\{[ \t\r\n]*[\"}]")
_PART_OF_OBJECT = re.compile(rb"[ \t\r\n]*(?:\[[ \t\r\n]*)?(?:\{[ \t\r\n]*)?\Z")
MOST_BLANK_BYTES = 4096  # allowed before the first row of JSON lines


def format_of_bytes(head: bytes) -> str:
    """The format that these bytes identify; empty if none."""
    return next((format_ for magic, format_ in MAGICS.items() if head.startswith(magic)), "")


def codec_of_bytes(head: bytes) -> str:
    """How an input is compressed; empty when it is not."""
    return next((codec for magic, codec in CODECS.items() if head.startswith(magic)), "")


def is_told(head: bytes) -> bool:
    """Whether more bytes could not change the detected format and codec."""
    return not _is_part(head, (*MAGICS, *CODECS))


def is_json(head: bytes) -> bool:
    """Whether a text begins with an object, or an array of objects: no CSV header looks like that."""
    return _OBJECT.match(head.removeprefix(BYTE_ORDER_MARK)) is not None


def is_json_told(head: bytes) -> bool:
    """Whether more text could not change the answer of `is_json`."""
    if _is_part(head, (BYTE_ORDER_MARK,)):
        return False
    return len(head) > MOST_BLANK_BYTES or not _PART_OF_OBJECT.match(head.removeprefix(BYTE_ORDER_MARK))


def _is_part(head: bytes, magics: Iterable[bytes]) -> bool:
    return any(len(head) < len(magic) and magic.startswith(head) for magic in magics)
