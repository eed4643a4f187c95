"""Case tables: the LOWER, UPPER and INITCAP of every code point, as the bytes that `text_case` reads.

The tables are made from Python's own `str.lower`, `str.upper` and `str.title`, which define these functions, when a
query uses them; so they have the same version of Unicode. Layout: cq/runtime/values/characters.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain

from cq.runtime.values.characters import (
    CAPITAL_SIGMA,
    CASE_BLOCK,
    CASE_BLOCK_BITS,
    CASE_BLOCKS,
    CASE_IGNORABLE,
    CASE_SPECIAL,
    CASED,
    MOST_CASE_GROWTH,
)

MARK = 0xE000  # a code point for private use: it neither changes nor affects case
# the planes that have letters and marks; tests/codegen/test_kernel_forms.py checks all others
_LETTERS = (range(MARK), range(MARK + 1, 0x20000), range(0xE0000, 0xE1000))
SIGMA, FINAL = "Σ", "ς"


CHANGES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "title": str.title}


@lru_cache(maxsize=len(CHANGES))
def case_table(change: str) -> bytes:
    """The table for one of CHANGES."""
    specials = bytearray()
    entries = {
        point: (kind, changed)
        for point, kind, changed in zip(_letters(), _kinds(change), _changed(change), strict=True)
        if kind or changed != chr(point)
    }
    blocks = sorted({point >> CASE_BLOCK_BITS for point in entries})
    first = CASE_BLOCKS * 2 // (CASE_BLOCK * 4)  # how many blocks the index occupies
    index = [first] * CASE_BLOCKS  # block `first` changes nothing
    for place, block in enumerate(blocks):
        index[block] = first + 1 + place
    specials_at = (first + 1 + len(blocks)) * CASE_BLOCK * 4
    words = [0] * CASE_BLOCK
    for block in blocks:
        for point in range(block << CASE_BLOCK_BITS, (block + 1) << CASE_BLOCK_BITS):
            kind, changed = entries.get(point, (0, chr(point)))
            if len(changed) == 1:
                words.append(kind + 4 * (ord(changed) - point))
                continue
            words.append(kind + 4 * (CASE_SPECIAL + specials_at + len(specials)))
            content = changed.encode()
            assert len(content) <= MOST_CASE_GROWTH * len(chr(point).encode()), f"U+{point:04X} grows too much"
            specials += bytes((len(content),)) + content
    return struct.pack(f"<{CASE_BLOCKS}H", *index) + struct.pack(f"<{len(words)}i", *words) + bytes(specials)


def _letters() -> Iterator[int]:
    return chain(*_LETTERS)


def _changed(change: str) -> list[str]:
    """What each letter alone becomes."""
    return CHANGES[change](chr(MARK).join(map(chr, _letters()))).split(chr(MARK))


def _kinds(change: str) -> list[int]:
    """How each letter counts beside a capital sigma, which becomes final only after a cased letter."""
    if change != "lower":
        return [0] * sum(map(len, _LETTERS))
    alone, behind_letter = (_makes_final(before) for before in ("", "A"))
    kinds = [CASED if a else CASE_IGNORABLE if b else 0 for a, b in zip(alone, behind_letter, strict=True)]
    kinds[ord(SIGMA)] = CAPITAL_SIGMA
    return kinds


def _makes_final(before: str) -> list[bool]:
    """For each letter, whether a sigma after it becomes final when the letter follows `before`."""
    text = chr(MARK).join(before + chr(point) + SIGMA for point in _letters()).lower()
    return [t.endswith(FINAL) for t in text.split(chr(MARK))]
