"""Word count's input: sentences of random words, as fast as Arrow can copy them.

Words are drawn from a vocabulary by Zipf's law; no word and no sentence ever becomes a Python object. Every chunk has
its own generator, so the bytes of a row depend on the parameters and its number alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cq.lang.arrow_buffers import from_numpy, of_type, text_array, text_scalar
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.draws import Bits, Ints, Zipf, below, raw

SCHEMA = pa.schema([pa.field("line", pa.string(), nullable=False), pa.field("ts", pa.timestamp("us"), nullable=False)])

SHORTEST, LONGEST = 3, 12
MAX_VOCABULARY = 1_000_000
ARTEFACT_LETTERS = 18
_WORDS_OF_VOCABULARY = (1 << 64) - 1  # the chunk number reserved for drawing the vocabulary


def sentences(
    rows: int = 1_000_000,
    seed: int = 1,
    theta: float = 0.5,
    words_per_line: int = 10,
    artefact: bool = False,
    vocabulary: int = 100_000,
    interval_us: int = 1,
) -> Iterator[pa.RecordBatch]:
    """`rows` sentences (line, ts): words separated by one blank, event times `interval_us` apart, starting in 1970.

    theta: skew of the words, P(rank) ∝ rank^-theta, 0 is uniform.  artefact: words of 18 random letters instead,
    practically all distinct, as the published word-count benchmark draws them.
    """
    if not artefact:
        words, zipf = vocabulary_of(seed, vocabulary), Zipf(vocabulary, theta)
    for start in range(0, rows, GENERATED_ROWS):
        n = min(GENERATED_ROWS, rows - start)
        bits = chunk_bits(seed, start // GENERATED_ROWS)
        if artefact:
            lines = _letters(bits, n, words_per_line)
        else:
            ranks = zipf.ranks(raw(bits, n * words_per_line))
            lines = _lines(words, ranks, words_per_line)
        times = np.arange(start, start + n, dtype=np.int64) * interval_us
        yield pa.RecordBatch.from_arrays([lines, of_type(pa.timestamp("us"), times)], schema=SCHEMA)


def chunk_bits(seed: int, chunk: int) -> np.random.PCG64:
    """The generator of one chunk."""
    return np.random.PCG64([seed, chunk])


@lru_cache(maxsize=4)
def vocabulary_of(seed: int, size: int) -> pa.StringArray:
    """2·size strings: the distinct words by rank, each followed by a blank, then the same words without it."""
    bits = chunk_bits(seed, _WORDS_OF_VOCABULARY)
    letters = np.zeros((0, LONGEST), dtype=np.uint8)
    while True:
        letters = np.concatenate((letters, _random_words(bits, 2 * size)))
        whole = letters.view(f"S{LONGEST}").ravel()
        first = np.sort(np.unique(whole, return_index=True)[1])
        if len(first) >= size:
            break
    words = text_array([word.decode() for word in whole[first[:size]].tolist()])
    return pa.concat_arrays([pc.binary_join_element_wise(words, text_scalar(""), text_scalar(" ")), words])


def _random_words(bits: np.random.BitGenerator, n: int) -> NDArray[np.uint8]:
    """n words of uniform length, one row of LONGEST bytes each, zeros after the end."""
    lengths = SHORTEST + below(raw(bits, n), LONGEST - SHORTEST + 1)
    value: Bits = bits.random_raw(n)  # 26^12 words fit well into 64 bits
    letters = np.empty((n, LONGEST), dtype=np.uint8)
    for i in range(LONGEST):
        value, letter = np.divmod(value, np.uint64(26))
        letters[:, i] = np.where(i < lengths, letter + np.uint64(ord("a")), np.uint64(0))
    return letters


def _lines(words: pa.StringArray, ranks: Ints, words_per_line: int) -> pa.StringArray:
    """Sentences of words_per_line words each.

    `take` concatenates the chosen words; every line is then a stretch of that buffer, which ends at every
    words_per_line-th offset. The last word of a line comes from the half of `words` without blanks.
    """
    ranks = ranks.reshape(-1, words_per_line)
    ranks[:, -1] += len(words) // 2
    taken = words.take(from_numpy(ranks.ravel()))
    _, offsets, text = taken.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[taken.offset : taken.offset + len(taken) + 1 : words_per_line]
    return pa.StringArray.from_buffers(len(ranks), pa.py_buffer(np.ascontiguousarray(ends)), text)


def _letters(bits: np.random.BitGenerator, n: int, words_per_line: int) -> pa.StringArray:
    """Sentences of words of ARTEFACT_LETTERS random letters."""
    width = ARTEFACT_LETTERS + 1
    size = n * words_per_line * width
    random_bytes = bits.random_raw(-(-size // 8)).astype("<u8").view(np.uint8)[:size]
    text = _LETTER_OF_BYTE[random_bytes].reshape(n * words_per_line, width)
    text[:, -1] = ord(" ")
    stride = words_per_line * width
    lines = np.ascontiguousarray(text.reshape(n, stride)[:, :-1])
    ends = np.arange(n + 1, dtype=np.int32) * np.int32(stride - 1)
    return pa.StringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(lines))


_LETTER_OF_BYTE = np.array([ord("a") + (b * 26 >> 8) for b in range(256)], dtype=np.uint8)
