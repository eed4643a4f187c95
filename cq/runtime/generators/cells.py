"""A vocabulary as the table of cells that native code copies words from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.runtime.generators.lines import CELL_BYTES, LENGTH_BYTE, LONGEST_CELL


def cells_of(words: pa.StringArray) -> NDArray[np.uint8]:
    """One row of CELL_BYTES for every word, none longer than LONGEST_CELL bytes."""
    _, offsets, text = words.buffers()
    ends = np.frombuffer(offsets, np.int32)[words.offset : words.offset + len(words) + 1].astype(np.int64)
    content, lengths = np.frombuffer(text, np.uint8), np.diff(ends)
    assert lengths.max(initial=0) <= LONGEST_CELL, "a word is too long for its cell"
    made = np.zeros((len(words), CELL_BYTES), np.uint8)
    for at in range(LONGEST_CELL):
        has = lengths > at
        made[has, at] = content[ends[:-1][has] + at]
    made[:, LENGTH_BYTE] = lengths
    return made
