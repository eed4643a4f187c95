"""Rows of text, natively: words drawn from a vocabulary, and the draws of `cq/workloads/bids.py` for a bid.

A vocabulary is a table of cells: 16 bytes each, the text from byte 0 on, its length in byte 15. So a word is one cache
line, and is copied by two loads and two stores; the next word overwrites what they write beyond its end.

Sharing: none.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    add128w_hi,
    ld_bit,
    ld_i32,
    ld_i64,
    ld_u8,
    pick,
    set_bit,
    shl,
    shr_u,
    st_i32,
    st_i64,
    st_u8,
    umulhi,
    wadd,
    wmul,
)
from cq.runtime.generators.draws import below_high, fill_draws, mixed_with
from cq.runtime.layout.words import Struct
from cq.workloads.bids import BIDS, COLD_CHANNELS, FIRST_ID, HOT_CHANNELS, NULL_BITS, PRICE_STEPS, SCATTER, START_US

_cell = Struct("CELL")
CELL_HEAD = _cell.word()
CELL_TAIL = _cell.word()
CELL_BYTES = 8 * _cell.size()
LENGTH_BYTE = CELL_BYTES - 1  # the byte of a cell that holds the length
LONGEST_CELL = LENGTH_BYTE

_generator = Struct("GENERATOR")
GENERATOR_HIGH = _generator.word()  # of the state
GENERATOR_LOW = _generator.word()
GENERATOR_ADD_HIGH = _generator.word()  # of the increment
GENERATOR_ADD_LOW = _generator.word()

# PCG64 as in numpy: a 128-bit linear congruential generator with the output function XSL-RR
_MULTIPLIER_HIGH = 2549297995355413924
_MULTIPLIER_LOW = 4865540595714422341
_LOW32 = 0xFFFFFFFF
_LOW31 = 0x7FFFFFFF
_BLANK = ord(" ")
_FIRST_LETTER = ord("a")
_LETTERS = 26

_HOT = len(HOT_CHANNELS)
_NULL_MASK = (1 << NULL_BITS) - 1


@native("(i64, i64)(i64, i64, i64, i64)")
def _stepped(high: int, low: int, add_high: int, add_low: int) -> tuple[int, int]:
    """The next state of the generator."""
    product_high = wadd(wadd(umulhi(low, _MULTIPLIER_LOW), wmul(high, _MULTIPLIER_LOW)), wmul(low, _MULTIPLIER_HIGH))
    product_low = wmul(low, _MULTIPLIER_LOW)
    return add128w_hi(product_high, product_low, add_high, add_low), wadd(product_low, add_low)


@native("i64(i64, i64)")
def _output(high: int, low: int) -> int:
    """The 64 bits that a state yields."""
    mixed, turn = high ^ low, shr_u(high, 58)
    return shr_u(mixed, turn) | shl(mixed, (64 - turn) & 63)


@native("i64(i64, i64, i64, i64)", inline=True)
def ranked(draw: int, size: int, accept: int, alias: int) -> int:
    """The rank of a draw by the alias method."""
    column = below_high(draw, size)
    return pick((draw & _LOW32) < ld_i64(accept, column), column, ld_i64(alias, column))


@native("void(i64, i64)", inline=True)
def copy_cell(target: int, cell: int) -> None:
    """Write the text of a cell, and the bytes after it up to CELL_BYTES."""
    st_i64(target, CELL_HEAD, ld_i64(cell, CELL_HEAD))
    st_i64(target, CELL_TAIL, ld_i64(cell, CELL_TAIL))


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def draw_words(generator: int, count: int, size: int, accept: int, alias: int, cells: int, ranks: int) -> int:
    """Draw `count` ranks of words; return the bytes of all the words.

    generator: -> the GENERATOR words; advances the state.
    """
    high, low = ld_i64(generator, GENERATOR_HIGH), ld_i64(generator, GENERATOR_LOW)
    add_high, add_low = ld_i64(generator, GENERATOR_ADD_HIGH), ld_i64(generator, GENERATOR_ADD_LOW)
    total = 0
    for n in range(count):
        high, low = _stepped(high, low, add_high, add_low)
        rank = ranked(shr_u(_output(high, low), 1), size, accept, alias)
        st_i32(ranks, n, rank)
        total += ld_u8(cells + rank * CELL_BYTES, LENGTH_BYTE)
    st_i64(generator, GENERATOR_HIGH, high)
    st_i64(generator, GENERATOR_LOW, low)
    return total


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def write_lines(ranks: int, rows: int, words: int, cells: int, ends: int, text: int) -> int:
    """Write lines of this many words, each word but the last of a line followed by a blank; return their bytes.

    ends: Arrow offsets, the first of which is 0.  text: room for 16 bytes more than the words have.
    """
    at = text
    st_i32(ends, 0, 0)
    for row in range(rows):
        for n in range(words):
            cell = cells + ld_i32(ranks, row * words + n) * CELL_BYTES
            copy_cell(at, cell)
            at += ld_u8(cell, LENGTH_BYTE)
        at -= 1  # the blank
        st_i32(ends, row + 1, at - text)
    return at - text


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def write_letters(generator: int, rows: int, words: int, letters: int, text: int, drawn: int) -> int:
    """Write lines of this many words of random letters; return their bytes.

    drawn: room for as many bytes as the lines have with a blank after every word, and 8 more.
    """
    high, low = ld_i64(generator, GENERATOR_HIGH), ld_i64(generator, GENERATOR_LOW)
    add_high, add_low = ld_i64(generator, GENERATOR_ADD_HIGH), ld_i64(generator, GENERATOR_ADD_LOW)
    width = letters + 1
    stride = words * width
    for n in range((rows * stride + 7) >> 3):
        high, low = _stepped(high, low, add_high, add_low)
        st_i64(drawn, n, _output(high, low))
    for row in range(rows):
        source, target = drawn + row * stride, text + row * (stride - 1)
        for n in range(stride - 1):
            st_u8(target, n, _FIRST_LETTER + (ld_u8(source, n) * _LETTERS >> 8))
        for n in range(words - 1):
            st_u8(target, n * width + letters, _BLANK)
    return rows * (stride - 1)


# -- bids ------------------------------------------------------------------------------------------------------------

_bid = Struct("BID")
BID_SEED = _bid.word()
BID_KEYS = _bid.word()
BID_ACCEPT = _bid.word()
BID_ALIAS = _bid.word()
BID_SCATTER = _bid.word()
BID_BIDDERS = _bid.word()
BID_INTERVAL_US = _bid.word()
BID_DELAY_US = _bid.word()
BID_NULL_BELOW = _bid.word()  # of 2^NULL_BITS; 0: no NULLs
BID_PRICES = _bid.word()  # -> i64[PRICE_STEPS]
BID_CHANNELS = _bid.word()  # -> cells
BID_DRAWS = _bid.word()  # -> room for the draws of a chunk
BID_AUCTION = _bid.word()  # -> i64[rows], as those that follow
BID_BIDDER = _bid.word()
BID_PRICE = _bid.word()
BID_TS = _bid.word()
BID_ENDS = _bid.word()  # -> i32[rows + 1]
BID_TEXT = _bid.word()  # -> room for 16 bytes a row
BID_VALID = _bid.word()  # -> three bitmaps of zeros: bidder, price, channel
BID_VALID_BYTES = _bid.word()  # of one of them
BID_WORDS = _bid.size()


@native("i64(i64, i64, i64, i64, i64)")
def _bid_draws(bid: int, chunk: int, chunk_rows: int, number: int, count: int) -> int:
    """The address of one column's draws of a chunk; whole chunks are drawn, so fewer rows are a prefix of more."""
    room, seed = ld_i64(bid, BID_DRAWS), ld_i64(bid, BID_SEED)
    return fill_draws(room, seed, 0, BIDS, chunk, number * chunk_rows, count)


@native("void(i64, i64, i64, i64)")
def _write_channels(bid: int, draws: int, rows: int, valid: int) -> None:
    """The channels of a chunk. valid: 0, or -> bits."""
    ends, text, at = ld_i64(bid, BID_ENDS), ld_i64(bid, BID_TEXT), 0
    cells = ld_i64(bid, BID_CHANNELS)
    st_i32(ends, 0, 0)
    for row in range(rows):
        draw = ld_i64(draws, row)
        number = pick((draw & 1) != 0, _HOT + below_high(draw, COLD_CHANNELS), (draw >> 1) & 3)
        cell = cells + number * CELL_BYTES
        copy_cell(text + at, cell)
        if valid == 0 or ld_bit(valid, row):
            at += ld_u8(cell, LENGTH_BYTE)
        st_i32(ends, row + 1, at)


@native("void(i64, i64, i64)")
def _note_valid(bid: int, draws: int, rows: int) -> None:
    """Note which values of bidder, price and channel are not NULL."""
    least = ld_i64(bid, BID_NULL_BELOW)
    for column in range(3):
        bits = ld_i64(bid, BID_VALID) + column * ld_i64(bid, BID_VALID_BYTES)
        for row in range(rows):
            if ((ld_i64(draws, row) >> (column * NULL_BITS)) & _NULL_MASK) >= least:
                set_bit(bits, row)


@native("i64(i64, i64, i64, i64)", export=True)
def write_bids(bid: int, chunk: int, chunk_rows: int, rows: int) -> int:
    """Write the first rows of a chunk to its columns; return the bytes of the channels."""
    keys, accept, alias = ld_i64(bid, BID_KEYS), ld_i64(bid, BID_ACCEPT), ld_i64(bid, BID_ALIAS)
    auctions, bidders, prices = ld_i64(bid, BID_AUCTION), ld_i64(bid, BID_BIDDER), ld_i64(bid, BID_PRICE)
    times, interval, first = ld_i64(bid, BID_TS), ld_i64(bid, BID_INTERVAL_US), chunk * chunk_rows
    prefix = mixed_with(mixed_with(0, SCATTER), ld_i64(bid, BID_SEED))
    draws = _bid_draws(bid, chunk, chunk_rows, 0, rows)
    scatter = ld_i64(bid, BID_SCATTER)
    for row in range(rows):
        rank = ranked(ld_i64(draws, row), keys, accept, alias)
        st_i64(auctions, row, shr_u(mixed_with(prefix, rank), 1) if scatter else FIRST_ID + rank)
    draws = _bid_draws(bid, chunk, chunk_rows, 1, rows)
    count, delays = ld_i64(bid, BID_BIDDERS), ld_i64(bid, BID_DELAY_US) + 1
    for row in range(rows):
        draw = ld_i64(draws, row)
        st_i64(bidders, row, FIRST_ID + below_high(draw, count))
        st_i64(times, row, START_US + (first + row) * interval - ((draw & _LOW31) * delays >> 31))
    draws, table = _bid_draws(bid, chunk, chunk_rows, 2, rows), ld_i64(bid, BID_PRICES)
    for row in range(rows):
        st_i64(prices, row, ld_i64(table, ld_i64(draws, row) & (PRICE_STEPS - 1)))
    valid = 0
    if ld_i64(bid, BID_NULL_BELOW):
        _note_valid(bid, _bid_draws(bid, chunk, chunk_rows, 4, rows), rows)
        valid = ld_i64(bid, BID_VALID) + 2 * ld_i64(bid, BID_VALID_BYTES)
    _write_channels(bid, _bid_draws(bid, chunk, chunk_rows, 3, rows), rows, valid)
    return ld_i32(ld_i64(bid, BID_ENDS), rows)
