"""Which rows a transaction names: skewed, from one partition or several, no row twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cq.workloads.draws import Bits, Ints, Zipf, mix_columns, mix_more

Truths = NDArray[np.bool_]

# Fields: the purposes of an event's draws. Those of the keys are FIRST_KEY + slot + SLOTS * attempt.
PLACES, SEVERAL, START, FIRST_KEY = 200, 201, 202, 256
SLOTS = 64
TRIES = 8  # draws for a key that differs from the transaction's others; then the next free rank is taken


class KeyDraw:
    """Draws keys 0 … n−1. The partition of a key is its remainder by `partitions`.

    A transaction draws its first partition p with skew theta. With probability `several` its accesses go round-robin
    over p … p+length−1, else they are all in p; within a partition P(rank) ∝ rank^-theta, and ranks are keys by a fixed
    permutation. There are fewer partitions if one would have fewer keys than a transaction has accesses; keys beyond a
    multiple of the partitions are not drawn.
    """

    def __init__(self, n: int, theta: float, partitions: int, several: float, length: int, accesses: int) -> None:
        self.partitions = max(1, min(partitions, n // accesses))
        self.several, self.length = several, length
        self.ranks, self.starts = Zipf(n // self.partitions, theta), Zipf(self.partitions, theta)
        self.places = np.argsort(mix_columns(PLACES, np.arange(self.ranks.n)), kind="stable")

    def draw(self, event: Bits, slot: int, turn: int | Ints, taken: Sequence[Ints]) -> Ints:
        """A key for each event, given as a hash, that differs from those taken. turn: the number of the access."""
        several = share(mix_more(event, SEVERAL), self.several)
        step = np.where(several, turn % self.length, 0)
        partition = (self.starts.ranks(positive(mix_more(event, START))) + step) % self.partitions
        rank = self._ranks(event, slot, 0)
        key = self.places[rank] * self.partitions + partition
        attempt = 0
        while (clash := np.flatnonzero(_among(key, taken))).size:
            attempt += 1
            drawn = self._ranks(event[clash], slot, attempt)
            rank[clash] = drawn if attempt < TRIES else (rank[clash] + 1) % self.ranks.n
            key[clash] = self.places[rank[clash]] * self.partitions + partition[clash]
        return key

    def several_of(self, event: Bits, accesses: int) -> list[Ints]:
        """This many keys for each event, all different."""
        found: list[Ints] = []
        for slot in range(accesses):
            found.append(self.draw(event, slot, slot, found))
        return found

    def _ranks(self, event: Bits, slot: int, attempt: int) -> Ints:
        return self.ranks.ranks(positive(mix_more(event, FIRST_KEY + slot + SLOTS * attempt)))


def _among(key: Ints, taken: Sequence[Ints]) -> Truths:
    found = np.zeros(len(key), dtype=np.bool_)
    for other in taken:
        found |= key == other
    return found


def positive(hashes: Bits) -> Ints:
    """The upper 63 bits of each hash."""
    return (hashes >> np.uint64(1)).view(np.int64)


def share(hashes: Bits, probability: float) -> Truths:
    """Which of the hashes are within this share of all."""
    return (hashes >> np.uint64(11)) < np.uint64(int(probability * (1 << 53)))
