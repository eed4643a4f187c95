"""Word count's sentences generated natively: the same rows as `cq/workloads/sentences.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.lang.arrow_buffers import of_type
from cq.runtime.base.interpret import GENERATORS
from cq.runtime.base.kernel import library_with
from cq.runtime.generators.cells import cells_of
from cq.runtime.generators.lines import CELL_BYTES
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.draws import MASK, Zipf
from cq.workloads.sentences import ARTEFACT_LETTERS, SCHEMA, chunk_bits, vocabulary_of

# (state of the generator, rows) -> the lines of a chunk
Lines = Callable[[NDArray[np.uint64], int], pa.StringArray]


def generate(
    rows: int = 1_000_000,
    seed: int = 1,
    theta: float = 0.5,
    words_per_line: int = 10,
    artefact: bool = False,
    vocabulary: int = 100_000,
    interval_us: int = 1,
) -> Iterator[pa.RecordBatch]:
    """The rows of `cq.workloads.sentences.sentences`."""
    lines = _letters(words_per_line) if artefact else _words(seed, vocabulary, theta, words_per_line)
    return _batches(lines, rows, seed, interval_us)


def _batches(lines: Lines, rows: int, seed: int, interval_us: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, GENERATED_ROWS):
        n = min(GENERATED_ROWS, rows - start)
        times = np.arange(start, start + n, dtype=np.int64) * interval_us
        text = lines(_state(seed, start // GENERATED_ROWS), n)
        yield pa.RecordBatch.from_arrays([text, of_type(pa.timestamp("us"), times)], schema=SCHEMA)


def _state(seed: int, chunk: int) -> NDArray[np.uint64]:
    """The generator of a chunk before its first draw: state and increment, each high word first."""
    words = chunk_bits(seed, chunk).state["state"]
    return np.array([part for name in ("state", "inc") for part in (words[name] >> 64, words[name] & MASK)], np.uint64)


@lru_cache(maxsize=4)
def _cells(seed: int, vocabulary: int) -> NDArray[np.uint8]:
    """The words, each followed by a blank."""
    return cells_of(vocabulary_of(seed, vocabulary).slice(0, vocabulary))


def _words(seed: int, vocabulary: int, theta: float, words_per_line: int) -> Lines:
    """Lines of words drawn from a vocabulary."""
    library = library_with(GENERATORS)
    draw, write = library.function("draw_words"), library.function("write_lines")
    zipf, cells = Zipf(vocabulary, theta), _cells(seed, vocabulary)
    ranks = np.empty(GENERATED_ROWS * words_per_line, np.int32)
    tables = (zipf.accept.ctypes.data, zipf.alias.ctypes.data, cells.ctypes.data, ranks.ctypes.data)

    def lines(state: NDArray[np.uint64], rows: int) -> pa.StringArray:
        size = draw(state.ctypes.data, rows * words_per_line, zipf.n, *tables)
        text, ends = pa.allocate_buffer(size + CELL_BYTES, resizable=True), pa.allocate_buffer(4 * (rows + 1))
        used = write(ranks.ctypes.data, rows, words_per_line, cells.ctypes.data, ends.address, text.address)
        text.resize(used, shrink_to_fit=False)
        return pa.StringArray.from_buffers(rows, ends, text)

    return lines


def _letters(words_per_line: int) -> Lines:
    """Lines of words of random letters."""
    write = library_with(GENERATORS).function("write_letters")
    stride = words_per_line * (ARTEFACT_LETTERS + 1)
    drawn = np.empty(GENERATED_ROWS * stride // 8 + 2, np.uint64)

    def lines(state: NDArray[np.uint64], rows: int) -> pa.StringArray:
        text = pa.allocate_buffer(rows * (stride - 1))
        write(state.ctypes.data, rows, words_per_line, ARTEFACT_LETTERS, text.address, drawn.ctypes.data)
        ends = np.arange(rows + 1, dtype=np.int32) * np.int32(stride - 1)
        return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), text)

    return lines
