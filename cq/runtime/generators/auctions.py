"""The rows of NEXMark, natively; `cq/workloads/nexmark/` defines them with numpy.

A column is the COLUMN words of the stream's table: for numbers and times, where the values go; for texts, where the
ends go (Arrow offsets, the first of which is 0) and where the bytes go, with room for SLACK_BYTES more than needed.

Sharing: none. Every row is a function of the parameters and its number.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i32, ld_i64, ld_u8, pick, sdiv, shr_u, srem, st_i32, st_i64, st_u8
from cq.runtime.generators.draws import mixed_with
from cq.runtime.generators.lines import CELL_BYTES, LENGTH_BYTE, copy_cell
from cq.runtime.layout.words import Struct
from cq.workloads.bids import COLD_CHANNELS, FIRST_ID, HOT_CHANNELS, PRICE_STEPS, START_US
from cq.workloads.nexmark import events
from cq.workloads.nexmark import texts as tx
from cq.workloads.nexmark.events import ACTIVE_AUCTIONS, ACTIVE_PERSONS, AHEAD, AUCTIONS_A_ROUND, HOT_EVERY, MS, ROUND
from cq.workloads.nexmark.streams import (
    AUCTION,
    AUCTION_EXTRA,
    BID_EXTRA,
    BIDDER,
    CARD,
    CARD_GROUPS,
    CARD_WIDTH,
    CATEGORIES,
    CATEGORY,
    CHANNEL,
    CITY,
    DESCRIPTION,
    DESCRIPTION_MOST,
    EXPIRES,
    EXTRA_AUCTION,
    EXTRA_BID,
    EXTRA_PERSON,
    FIRST_CATEGORY,
    HOST,
    HOST_MOST,
    INITIAL,
    ITEM,
    ITEM_MOST,
    MAILBOX,
    MAILBOX_MOST,
    NAME,
    PERSON_EXTRA,
    PRICE,
    RESERVE,
    SELLER,
    SHORTEST,
    STATE,
    extra_span,
)

SLACK_BYTES = CELL_BYTES  # bytes a text may write beyond its end

_stream = Struct("EVENTS")
EVENTS_SEED = _stream.word()
EVENTS_RATE = _stream.word()
EVENTS_NUMBERS = _stream.word()  # -> i64[EVENTS_COUNT]: the events of a period that become rows
EVENTS_COUNT = _stream.word()
EVENTS_PERIOD = _stream.word()
EVENTS_COLUMNS = _stream.word()  # -> i64[columns][COLUMN_WORDS]
EVENTS_PRICES = _stream.word()  # -> i64[PRICE_STEPS]
EVENTS_CHOICES = _stream.word()  # -> the words of PERSON or BID: cells, see lines.py
EVENTS_CHARACTERS = _stream.word()  # -> u8[256]: the character of a random byte inside words
EVENTS_URLS = _stream.word()  # -> i32[channels + 1]: ends
EVENTS_URL_TEXT = _stream.word()
EVENTS_LIFE_MS = _stream.word()  # the longest life of an auction
EVENTS_HIGHER = _stream.word()  # added to bidders
EVENTS_WORDS = _stream.size()

_column = Struct("COLUMN")
COLUMN_PLACE = _column.word()  # -> the values, or the ends of texts
COLUMN_BYTES = _column.word()  # -> the bytes of texts
COLUMN_WORDS = _column.size()

_person = Struct("PERSON")
PERSON_NAMES = _person.word()
PERSON_CITIES = _person.word()
PERSON_STATES = _person.word()

_bid = Struct("BID")
BID_CHANNELS = _bid.word()

_FIRST_LETTER = ord("a")
_LETTERS = 26
_ZERO = ord("0")
_BLANK = ord(" ")
_AT_SIGN, _DOT, _C, _O, _M = (ord(c) for c in "@.com")

_HOT_CHANNELS = len(HOT_CHANNELS)
_NAMES = len(tx.FIRST_NAMES) * len(tx.LAST_NAMES)
_CITIES = len(tx.CITIES)
_STATES = len(tx.STATES)
_PERSON_EXTRA, _PERSON_EXTRAS = extra_span(EXTRA_PERSON)
_AUCTION_EXTRA, _AUCTION_EXTRAS = extra_span(EXTRA_AUCTION)
_BID_EXTRA, _BID_EXTRAS = extra_span(EXTRA_BID)
_AUCTION_PLACE = events.AUCTION.start


# -- events ---------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", inline=True)
def _event_of(stream: int, row: int) -> int:
    """The number of the event that is this row."""
    count = ld_i64(stream, EVENTS_COUNT)
    return sdiv(row, count) * ld_i64(stream, EVENTS_PERIOD) + ld_i64(ld_i64(stream, EVENTS_NUMBERS), srem(row, count))


@native("i64(i64, i64, i64)", inline=True)
def _drawn(stream: int, field: int, event: int) -> int:
    """64 random bits for one field of an event."""
    return mixed_with(mixed_with(mixed_with(0, field), ld_i64(stream, EVENTS_SEED)), event)


@native("i64(i64, i64)", inline=True)
def _below(drawn: int, bound: int) -> int:
    """A number under `bound` from the upper half of a draw."""
    return shr_u(drawn, 33) * bound >> 31


@native("i64(i64, i64)", inline=True)
def _time_us(stream: int, event: int) -> int:
    """When an event happens."""
    return START_US + sdiv(event * 1000, ld_i64(stream, EVENTS_RATE)) * MS


@native("i64(i64)", inline=True)
def _last_person(event: int) -> int:
    """The newest person, counting from 0."""
    return sdiv(event, ROUND)


@native("i64(i64)", inline=True)
def _last_auction(event: int) -> int:
    """The newest auction, counting from 0."""
    opened = srem(event, ROUND) - _AUCTION_PLACE
    return sdiv(event, ROUND) * AUCTIONS_A_ROUND + max(-1, min(opened, AUCTIONS_A_ROUND - 1))


@native("i64(i64)", inline=True)
def _hot(newest: int) -> int:
    """The currently hot one."""
    return sdiv(newest, HOT_EVERY) * HOT_EVERY


@native("i64(i64, i64)", inline=True)
def _any_person(drawn: int, event: int) -> int:
    """The id of someone active, or of someone to come."""
    known = _last_person(event) + 1
    active = min(known, ACTIVE_PERSONS)
    return FIRST_ID + known - active + _below(drawn, active + AHEAD)


@native("i64(i64, i64)", inline=True)
def _any_auction(drawn: int, event: int) -> int:
    """The id of an auction that may be open, or is to come."""
    newest = _last_auction(event)
    oldest = max(newest - ACTIVE_AUCTIONS, 0)
    return FIRST_ID + oldest + _below(drawn, newest - oldest + 1 + AHEAD)


# -- columns ---------------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64, i64)", inline=True)
def _put(stream: int, column: int, row: int, value: int) -> None:
    """A number or a time."""
    st_i64(ld_i64(ld_i64(stream, EVENTS_COLUMNS), COLUMN_WORDS * column + COLUMN_PLACE), row, value)


@native("i64(i64, i64, i64)", inline=True)
def _text_at(stream: int, column: int, row: int) -> int:
    """Where the text of a row begins."""
    columns = ld_i64(stream, EVENTS_COLUMNS)
    at = COLUMN_WORDS * column
    return ld_i64(columns, at + COLUMN_BYTES) + ld_i32(ld_i64(columns, at + COLUMN_PLACE), row)


@native("void(i64, i64, i64, i64)", inline=True)
def _end_text(stream: int, column: int, row: int, end: int) -> None:
    """The text of a row ends before this address."""
    columns = ld_i64(stream, EVENTS_COLUMNS)
    at = COLUMN_WORDS * column
    st_i32(ld_i64(columns, at + COLUMN_PLACE), row + 1, end - ld_i64(columns, at + COLUMN_BYTES))


@native("i64(i64, i64, i64)")
def _letters(target: int, drawn: int, length: int) -> int:
    """Write random letters; return where they end."""
    for n in range((length + 7) >> 3):
        st_i64(target, n, mixed_with(drawn, n))
    for n in range(length):
        st_u8(target, n, _FIRST_LETTER + (ld_u8(target, n) * _LETTERS >> 8))
    return target + length


@native("i64(i64, i64, i64, i64)")
def _words(target: int, characters: int, drawn: int, length: int) -> int:
    """Write random words with blanks between them, a letter first and last; return where they end."""
    for n in range((length + 7) >> 3):
        st_i64(target, n, mixed_with(drawn, n))
    first = _FIRST_LETTER + (ld_u8(target, 0) * _LETTERS >> 8)
    last = _FIRST_LETTER + (ld_u8(target, length - 1) * _LETTERS >> 8)
    for n in range(length):
        st_u8(target, n, ld_u8(characters, ld_u8(target, n)))
    st_u8(target, 0, first)
    st_u8(target, length - 1, last)
    return target + length


@native("i64(i64, i64, i64)", inline=True)
def _cell(target: int, cells: int, number: int) -> int:
    """Write a word of a list; return where it ends."""
    cell = cells + number * CELL_BYTES
    copy_cell(target, cell)
    return target + ld_u8(cell, LENGTH_BYTE)


@native("i64(i64, i64)")
def _card(target: int, drawn: int) -> int:
    """Write four groups of four digits; return where they end."""
    at = target
    for group in range(CARD_GROUPS):
        left = (shr_u(drawn, 15 * group) & 0x7FFF) * 10000 >> 15
        st_u8(at, 0, _ZERO + sdiv(left, 1000))
        st_u8(at, 1, _ZERO + srem(sdiv(left, 100), 10))
        st_u8(at, 2, _ZERO + srem(sdiv(left, 10), 10))
        st_u8(at, 3, _ZERO + srem(left, 10))
        st_u8(at, 4, _BLANK)
        at += CARD_WIDTH + 1
    return at - 1


@native("void(i64, i64, i64, i64, i64, i64)", inline=True)
def _extra(stream: int, column: int, row: int, drawn: int, shortest: int, lengths: int) -> None:
    """The padding of a row."""
    end = _letters(_text_at(stream, column, row), drawn, shortest + _below(drawn, lengths))
    _end_text(stream, column, row, end)


@native("i64(i64, i64)", inline=True)
def _price(stream: int, drawn: int) -> int:
    """Cents."""
    return ld_i64(ld_i64(stream, EVENTS_PRICES), drawn & (PRICE_STEPS - 1))


@native("i64(i64, i64)", inline=True)
def _length(drawn: int, most: int) -> int:
    """The length of a random text."""
    return SHORTEST + _below(drawn, most - SHORTEST)


# -- streams ---------------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64)", inline=True)
def _mail(stream: int, row: int, event: int) -> None:
    """The address of a person."""
    at = _text_at(stream, 2, row)
    mailbox, host = _drawn(stream, MAILBOX, event), _drawn(stream, HOST, event)
    at = _letters(at, mailbox, _length(mailbox, MAILBOX_MOST))
    st_u8(at, 0, _AT_SIGN)
    at = _letters(at + 1, host, _length(host, HOST_MOST))
    st_u8(at, 0, _DOT)
    st_u8(at, 1, _C)
    st_u8(at, 2, _O)
    st_u8(at, 3, _M)
    _end_text(stream, 2, row, at + 4)


@native("void(i64, i64, i64, i64, i64, i64)", inline=True)
def _one_of(stream: int, column: int, row: int, cells: int, size: int, drawn: int) -> None:
    """Write a word of a list as the text of a row."""
    _end_text(stream, column, row, _cell(_text_at(stream, column, row), cells, _below(drawn, size)))


@native("void(i64, i64, i64)", export=True)
def write_persons(stream: int, first: int, rows: int) -> None:
    """Write rows of persons from number `first` on to the columns."""
    choices = ld_i64(stream, EVENTS_CHOICES)
    for row in range(rows):
        event = _event_of(stream, first + row)
        _put(stream, 0, row, FIRST_ID + _last_person(event))
        _one_of(stream, 1, row, ld_i64(choices, PERSON_NAMES), _NAMES, _drawn(stream, NAME, event))
        _mail(stream, row, event)
        _end_text(stream, 3, row, _card(_text_at(stream, 3, row), _drawn(stream, CARD, event)))
        _one_of(stream, 4, row, ld_i64(choices, PERSON_CITIES), _CITIES, _drawn(stream, CITY, event))
        _one_of(stream, 5, row, ld_i64(choices, PERSON_STATES), _STATES, _drawn(stream, STATE, event))
        _put(stream, 6, row, _time_us(stream, event))
        _extra(stream, 7, row, _drawn(stream, PERSON_EXTRA, event), _PERSON_EXTRA, _PERSON_EXTRAS)


@native("void(i64, i64, i64, i64, i64)", inline=True)
def _phrase(stream: int, column: int, row: int, drawn: int, most: int) -> None:
    """Write random words as the text of a row."""
    at = _text_at(stream, column, row)
    _end_text(stream, column, row, _words(at, ld_i64(stream, EVENTS_CHARACTERS), drawn, _length(drawn, most)))


@native("void(i64, i64, i64)", export=True)
def write_auctions(stream: int, first: int, rows: int) -> None:
    """Write rows of auctions from number `first` on to the columns."""
    life = ld_i64(stream, EVENTS_LIFE_MS)
    for row in range(rows):
        event = _event_of(stream, first + row)
        _put(stream, 0, row, FIRST_ID + _last_auction(event))
        _phrase(stream, 1, row, _drawn(stream, ITEM, event), ITEM_MOST)
        _phrase(stream, 2, row, _drawn(stream, DESCRIPTION, event), DESCRIPTION_MOST)
        initial = _price(stream, _drawn(stream, INITIAL, event))
        _put(stream, 3, row, initial)
        _put(stream, 4, row, initial + _price(stream, _drawn(stream, RESERVE, event)))
        begins = _time_us(stream, event)
        _put(stream, 5, row, begins)
        _put(stream, 6, row, begins + (1 + _below(_drawn(stream, EXPIRES, event), life)) * MS)
        seller = _drawn(stream, SELLER, event)
        common = FIRST_ID + _hot(_last_person(event))
        _put(stream, 7, row, pick((seller & 3) != 0, common, _any_person(seller, event)))
        category = _below(_drawn(stream, CATEGORY, event), CATEGORIES)
        _put(stream, 8, row, FIRST_CATEGORY + category)
        _extra(stream, 9, row, _drawn(stream, AUCTION_EXTRA, event), _AUCTION_EXTRA, _AUCTION_EXTRAS)


@native("void(i64, i64, i64)", inline=True)
def _channel(stream: int, row: int, drawn: int) -> None:
    """The channel of a bid, and its url."""
    cold = _HOT_CHANNELS + _below(drawn, COLD_CHANNELS)
    number = pick((drawn & 1) != 0, cold, (drawn >> 1) & 3)
    cells = ld_i64(ld_i64(stream, EVENTS_CHOICES), BID_CHANNELS)
    _end_text(stream, 3, row, _cell(_text_at(stream, 3, row), cells, number))
    ends, at = ld_i64(stream, EVENTS_URLS), _text_at(stream, 4, row)
    begin = ld_i32(ends, number)
    size = ld_i32(ends, number + 1) - begin
    copy(at, ld_i64(stream, EVENTS_URL_TEXT) + begin, size)
    _end_text(stream, 4, row, at + size)


@native("void(i64, i64, i64)", export=True)
def write_auction_bids(stream: int, first: int, rows: int) -> None:
    """Write rows of bids from number `first` on to the columns."""
    higher = ld_i64(stream, EVENTS_HIGHER)
    for row in range(rows):
        event = _event_of(stream, first + row)
        auction, bidder = _drawn(stream, AUCTION, event), _drawn(stream, BIDDER, event)
        common = FIRST_ID + _hot(_last_auction(event))
        _put(stream, 0, row, pick((auction & 1) != 0, common, _any_auction(auction, event)))
        buyer = FIRST_ID + _hot(_last_person(event)) + 1
        _put(stream, 1, row, higher + pick((bidder & 3) != 0, buyer, _any_person(bidder, event)))
        _put(stream, 2, row, _price(stream, _drawn(stream, PRICE, event)))
        _channel(stream, row, _drawn(stream, CHANNEL, event))
        _put(stream, 5, row, _time_us(stream, event))
        _extra(stream, 6, row, _drawn(stream, BID_EXTRA, event), _BID_EXTRA, _BID_EXTRAS)
