"""Random texts, as rows of characters: letters and words up to a length, digits, and concatenated pieces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.workloads.draws import Bits, Ints, mix_more

LETTERS = np.array([ord("a") + (b * 26 >> 8) for b in range(256)], np.uint8)
BLANKS = 20  # of 256 byte values make a blank: one in thirteen
WORDS = np.array(
    [ord(" ") if b < BLANKS else ord("a") + (b - BLANKS) * 26 // (256 - BLANKS) for b in range(256)], np.uint8
)

Piece = tuple[NDArray[np.uint8], NDArray[np.bool_]]  # characters, one row each, and which of them are used


def random_bytes(drawn: Bits, width: int) -> NDArray[np.uint8]:
    """At least `width` bytes for every draw."""
    words = np.empty((len(drawn), -(-width // 8)), "<u8")
    for n in range(words.shape[1]):
        words[:, n] = mix_more(drawn, n)
    return words.view(np.uint8)


def letters(drawn: Bits, lengths: Ints, longest: int) -> Piece:
    """This many random letters."""
    made = LETTERS[random_bytes(drawn, longest)[:, :longest]]
    return made, np.arange(longest) < lengths[:, None]


def words(drawn: Bits, lengths: Ints, longest: int) -> Piece:
    """Random words separated by blanks, this many characters; a letter first and last."""
    raw = random_bytes(drawn, longest)[:, :longest]
    made = WORDS[raw]
    ends = np.zeros(raw.shape, np.bool_)
    ends[:, 0] = True
    ends[np.arange(len(raw)), lengths - 1] = True
    return np.where(ends, LETTERS[raw], made), np.arange(longest) < lengths[:, None]


def digits(drawn: Bits, groups: int, width: int) -> Piece:
    """Groups of digits with blanks between them; each group is 15 bits of the draw, the first the lowest."""
    made = np.full((len(drawn), groups * (width + 1) - 1), ord(" "), np.uint8)
    for group in range(groups):
        left = ((drawn >> np.uint64(15 * group)) & np.uint64(0x7FFF)).view(np.int64) * 10**width >> 15
        for n in range(width):
            made[:, group * (width + 1) + n] = ord("0") + left // 10 ** (width - 1 - n) % 10
    return made, np.ones(made.shape, np.bool_)


def always(text: str, rows: int) -> Piece:
    """The same text in every row."""
    made = np.tile(np.frombuffer(text.encode(), np.uint8), (rows, 1))
    return made, np.ones(made.shape, np.bool_)


def joined(*pieces: Piece) -> pa.StringArray:
    """The pieces of each row, concatenated."""
    made, there = (np.concatenate([piece[n] for piece in pieces], axis=1) for n in (0, 1))
    ends = np.zeros(len(made) + 1, np.int32)
    np.cumsum(there.sum(axis=1), out=ends[1:])
    return pa.StringArray.from_buffers(len(made), pa.py_buffer(ends), pa.py_buffer(made[there]))
