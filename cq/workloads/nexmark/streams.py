"""Persons, auctions and bids of NEXMark, as separate streams; rows with one seed belong together.

Choices where the text of the benchmark is open: event times begin at 2015-07-15 and are whole milliseconds; `extra` has
letters only; the id base is added once to bidders, so they are persons (`flink_bidders` adds it twice, as Flink's
generator does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from cq.lang.arrow_buffers import from_numpy, of_type, text_array
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.bids import COLD_CHANNELS, FIRST_ID, HOT_CHANNELS, PRICE_STEPS, channel_names, price_table
from cq.workloads.draws import Bits, Ints, mix_columns, under
from cq.workloads.nexmark import events as ev
from cq.workloads.nexmark import texts as tx
from cq.workloads.texts import always, digits, joined, letters, words

_TEXT, _NUMBER, _TIME = pa.string(), pa.int64(), pa.timestamp("us")


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, type, nullable=False) for name, type in columns.items()])


PERSON_SCHEMA = _schema(
    id=_NUMBER, name=_TEXT, emailaddress=_TEXT, creditcard=_TEXT, city=_TEXT, state=_TEXT, datetime=_TIME, extra=_TEXT
)
AUCTION_SCHEMA = _schema(
    id=_NUMBER, itemname=_TEXT, description=_TEXT, initialbid=_NUMBER, reserve=_NUMBER, datetime=_TIME, expires=_TIME,
    seller=_NUMBER, category=_NUMBER, extra=_TEXT,
)  # fmt: skip
BID_SCHEMA = _schema(
    auction=_NUMBER, bidder=_NUMBER, price=_NUMBER, channel=_TEXT, url=_TEXT, datetime=_TIME, extra=_TEXT
)
SIDE_SCHEMA = _schema(key=_NUMBER, value=_NUMBER)

# Fields: the purposes of an event's draws.
NAME, CITY, STATE, CARD, MAILBOX, HOST, PERSON_EXTRA = range(100, 107)
SELLER, CATEGORY, INITIAL, RESERVE, EXPIRES, ITEM, DESCRIPTION, AUCTION_EXTRA = range(107, 115)
AUCTION, BIDDER, PRICE, CHANNEL, BID_EXTRA = range(115, 120)

SHORTEST = 3  # of a random text; the longest ones:
MAILBOX_MOST, HOST_MOST, ITEM_MOST, DESCRIPTION_MOST = 7, 5, 20, 100
EXTRA_PERSON, EXTRA_AUCTION, EXTRA_BID = 110, 370, 65  # on average; a fifth more or less
CATEGORIES, FIRST_CATEGORY = 5, 10
CARD_GROUPS = CARD_WIDTH = 4
LIFE_EVENTS = ev.ROUND * 100 // ev.AUCTIONS_A_ROUND  # an auction lives as long as these take, on average


def persons(rows: int = 20_000, seed: int = 1, rate: int = 10_000, disorder: int = 1) -> Iterator[pa.RecordBatch]:
    """`rows` persons: id, name, emailaddress, creditcard, city, state, datetime, extra.

    rate: events of all three streams per second.  disorder: events that swap positions with each other.
    """

    def make(event: Ints) -> list[pa.Array]:
        mailbox, host = mix_columns(MAILBOX, seed, event), mix_columns(HOST, seed, event)
        return [
            from_numpy(FIRST_ID + ev.last_person(event)),
            _one_of(tx.person_names(), mix_columns(NAME, seed, event)),
            joined(
                letters(mailbox, _length(mailbox, MAILBOX_MOST), MAILBOX_MOST),
                always("@", len(event)),
                letters(host, _length(host, HOST_MOST), HOST_MOST),
                always(".com", len(event)),
            ),
            joined(digits(mix_columns(CARD, seed, event), CARD_GROUPS, CARD_WIDTH)),
            _one_of(text_array(tx.CITIES), mix_columns(CITY, seed, event)),
            _one_of(text_array(tx.STATES), mix_columns(STATE, seed, event)),
            _time(ev.time_us(event, rate)),
            _extra(mix_columns(PERSON_EXTRA, seed, event), EXTRA_PERSON),
        ]

    return _batches(make, PERSON_SCHEMA, ev.arrivals(ev.PERSON, disorder), rows)


def auctions(rows: int = 60_000, seed: int = 1, rate: int = 10_000, disorder: int = 1) -> Iterator[pa.RecordBatch]:
    """`rows` auctions: id, itemname, description, initialbid, reserve, datetime, expires, seller, category, extra.

    Three of four have the hot seller. An auction lasts at most as long as 3,333 events take.
    """
    longest_ms = life_ms(rate)

    def make(event: Ints) -> list[pa.Array]:
        item, description = mix_columns(ITEM, seed, event), mix_columns(DESCRIPTION, seed, event)
        seller, begins = mix_columns(SELLER, seed, event), ev.time_us(event, rate)
        initial = _price(mix_columns(INITIAL, seed, event))
        common = seller & np.uint64(3) != 0
        return [
            from_numpy(FIRST_ID + ev.last_auction(event)),
            joined(words(item, _length(item, ITEM_MOST), ITEM_MOST)),
            joined(words(description, _length(description, DESCRIPTION_MOST), DESCRIPTION_MOST)),
            from_numpy(initial),
            from_numpy(initial + _price(mix_columns(RESERVE, seed, event))),
            _time(begins),
            _time(begins + (1 + under(mix_columns(EXPIRES, seed, event), longest_ms)) * ev.MS),
            from_numpy(np.where(common, FIRST_ID + ev.hot(ev.last_person(event)), ev.any_person(seller, event))),
            from_numpy(FIRST_CATEGORY + under(mix_columns(CATEGORY, seed, event), CATEGORIES)),
            _extra(mix_columns(AUCTION_EXTRA, seed, event), EXTRA_AUCTION),
        ]

    return _batches(make, AUCTION_SCHEMA, ev.arrivals(ev.AUCTION, disorder), rows)


def bids(
    rows: int = 920_000, seed: int = 1, rate: int = 10_000, disorder: int = 1, flink_bidders: bool = False
) -> Iterator[pa.RecordBatch]:
    """`rows` bids: auction, bidder, price, channel, url, datetime, extra.

    Half of them are for the hot auction, three of four come from the hot bidder.
    """
    channels, urls, higher = channel_names(), tx.urls(seed), FIRST_ID * flink_bidders

    def make(event: Ints) -> list[pa.Array]:
        auction, bidder = mix_columns(AUCTION, seed, event), mix_columns(BIDDER, seed, event)
        channel = mix_columns(CHANNEL, seed, event)
        common = FIRST_ID + ev.hot(ev.last_auction(event))
        cold = len(HOT_CHANNELS) + under(channel, COLD_CHANNELS)
        number = np.where(channel & np.uint64(1), cold, ((channel >> np.uint64(1)) & np.uint64(3)).view(np.int64))
        buyer = np.where(
            bidder & np.uint64(3) != 0,
            FIRST_ID + ev.hot(ev.last_person(event)) + 1,
            ev.any_person(bidder, event),
        )
        return [
            from_numpy(np.where(auction & np.uint64(1), common, ev.any_auction(auction, event))),
            from_numpy(buyer + higher),
            from_numpy(_price(mix_columns(PRICE, seed, event))),
            channels.take(from_numpy(number)),
            urls.take(from_numpy(number)),
            _time(ev.time_us(event, rate)),
            _extra(mix_columns(BID_EXTRA, seed, event), EXTRA_BID),
        ]

    return _batches(make, BID_SCHEMA, ev.arrivals(ev.BID, disorder), rows)


def side_input(rows: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Each key from 0 on, which is its own value."""
    for first in range(0, rows, GENERATED_ROWS):
        key = from_numpy(np.arange(first, min(first + GENERATED_ROWS, rows), dtype=np.int64))
        yield pa.RecordBatch.from_arrays([key, key], schema=SIDE_SCHEMA)


def _batches(
    make: Callable[[Ints], list[pa.Array]], schema: pa.Schema, arrivals: ev.KindArrivals, rows: int
) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, GENERATED_ROWS):
        event = arrivals.events(first, min(GENERATED_ROWS, rows - first))
        yield pa.RecordBatch.from_arrays(make(event), schema=schema)


def _time(us: Ints) -> pa.Array:
    return of_type(_TIME, us)


def _one_of(choices: pa.StringArray, drawn: Bits) -> pa.Array:
    return choices.take(from_numpy(under(drawn, len(choices))))


def life_ms(rate: int) -> int:
    """How long an auction lives at most."""
    return max(1, 2 * (LIFE_EVENTS * 1000 // rate))


def _length(drawn: Bits, most: int) -> Ints:
    """The length of a random text: less than `most`."""
    return SHORTEST + under(drawn, most - SHORTEST)


def extra_span(average: int) -> tuple[int, int]:
    """The shortest padding and how many lengths there are: a fifth less than the average to a fifth more."""
    return average - average // 5, 2 * (average // 5) + 1


def _extra(drawn: Bits, average: int) -> pa.StringArray:
    shortest, lengths = extra_span(average)
    return joined(letters(drawn, shortest + under(drawn, lengths), shortest + lengths - 1))


def _price(drawn: Bits) -> Ints:
    """Cents, log-uniform 100 … 10^8."""
    return price_table()[(drawn & np.uint64(PRICE_STEPS - 1)).view(np.int64)]
