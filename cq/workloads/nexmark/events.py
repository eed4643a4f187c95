"""The sequence of events: every number from 0 on is a person, an auction or a bid, with its time and id.

Of 50 events the first is a person, the next three are auctions, the others bids. Every field of an event is a hash of
(field, seed, number of the event), so any row of any stream can be made on its own.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from cq.records import dataclass
from cq.workloads.bids import FIRST_ID, START_US
from cq.workloads.draws import Bits, Ints, under

ROUND = 50  # events
PERSON, AUCTION, BID = range(1), range(1, 4), range(4, ROUND)  # places in a round
AUCTIONS_A_ROUND = len(AUCTION)
MIX_STEP = 953  # of the arrivals in a group: a prime, so any smaller group is only reordered
MAX_DISORDER = MIX_STEP - 1
MS = 1000

ACTIVE_PERSONS, ACTIVE_AUCTIONS = 1000, 100  # persons who may still sell and bid, auctions that may still be bid for
AHEAD = 10  # ids that may be named before they exist
HOT_EVERY = 100  # one id in this many is hot: it sells, or is bid for, more than all others


@dataclass(frozen=True, slots=True)
class KindArrivals:
    """The events of one kind in order of arrival: event n * period + numbers[m] is row n * len(numbers) + m."""

    numbers: Ints
    period: int

    def events(self, first: int, rows: int) -> Ints:
        """The numbers of the events that are these rows."""
        row = np.arange(first, first + rows, dtype=np.int64)
        return row // len(self.numbers) * self.period + self.numbers[row % len(self.numbers)]


@lru_cache(maxsize=16)
def arrivals(places: range, disorder: int) -> KindArrivals:
    """The events at these positions of a round. disorder: events that swap positions with each other; 1: none do."""
    period = math.lcm(ROUND, disorder)
    n = np.arange(period, dtype=np.int64)
    event = n // disorder * disorder + n * MIX_STEP % disorder
    place = event % ROUND
    return KindArrivals(event[(place >= places.start) & (place < places.stop)], period)


def time_us(event: Ints, rate: int) -> Ints:
    """When events happen, in whole milliseconds; `rate` of them per second."""
    return START_US + event * 1000 // rate * MS


def last_person(event: Ints) -> Ints:
    """The newest person at the time of an event, counted from 0."""
    return event // ROUND


def last_auction(event: Ints) -> Ints:
    """The newest auction at the time of an event, counted from 0; -1 when there is none."""
    opened = np.clip(event % ROUND - AUCTION.start, -1, AUCTIONS_A_ROUND - 1)
    return event // ROUND * AUCTIONS_A_ROUND + opened


def hot(newest: Ints) -> Ints:
    """The hot one at that time."""
    return newest // HOT_EVERY * HOT_EVERY


def any_person(drawn: Bits, event: Ints) -> Ints:
    """The id of somebody active, or not yet there."""
    known = last_person(event) + 1
    active = np.minimum(known, ACTIVE_PERSONS)
    return FIRST_ID + known - active + under(drawn, active + AHEAD)


def any_auction(drawn: Bits, event: Ints) -> Ints:
    """The id of an auction that may be open, or is not yet there."""
    newest = last_auction(event)
    oldest = np.maximum(newest - ACTIVE_AUCTIONS, 0)
    return FIRST_ID + oldest + under(drawn, newest - oldest + 1 + AHEAD)
