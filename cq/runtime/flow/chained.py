"""Transactions of a ticket in lists, and the rows they name in chains.

A share of the work is some rows of the ticket, of which it collects the transactions, and then those lists that are for
it, made by all: of accesses whose row's hash is its own, in the order of the events, and of transactions whose first
access is among them. Accesses of one row are in one share, so that linking needs no lock.

Roles     one worker at a time has a share.
Shared    lists: written by the share that collects, read by the one they are for, in a later phase.
I1        an access is linked to the last one of an earlier transaction that names its row.
                                                            tests: test_transactions_in_chains_give_the_rows_of_one_loop
I2        ACCESS_LATEST is 1 for one access of every row that the ticket names.
                                                            tests: test_transactions_in_chains_give_the_rows_of_one_loop
Source    Zhang et al., TStream (ICDE 2020): operations of a punctuation in chains by key; lists instead of skip lists.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import fill, ld_i64, release, shr_u, st_i64, wmul, zalloc
from cq.runtime.containers.strings import HASH_FACTOR
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.chains import (
    ACCESS_BEFORE,
    ACCESS_IMAGE,
    ACCESS_LATEST,
    ACCESS_NEXT,
    ACCESS_PLACE,
    ACCESS_TRANSACTION,
    LIST_ACCESSES,
    LIST_COUNT,
    LIST_LAST_ACCESS,
    LIST_LAST_TRANSACTION,
    LIST_TRANSACTIONS,
    LIST_WORDS,
    PLACE_KEY_MASK,
    PLACE_KEY_SHIFT,
    SHARE_CURSOR,
    SHARE_LISTS,
    SHARE_MASK,
    SHARE_SIZE,
    SHARE_SLOTS,
    SHARE_WORDS,
    TRANSACTION_NEXT,
)


@native("i64(i64, i64)", inline=True)
def list_for(share: int, hash32: int) -> int:
    """What the share has collected for the one that a hash belongs to. Tables take slots from the top bits."""
    return ld_i64(share, SHARE_LISTS) + (hash32 & ld_i64(share, SHARE_MASK)) * LIST_WORDS * 8


@native("void(i64, i64)", inline=True)
def list_transaction(found: int, transaction: int) -> None:
    """The transaction is the last of the list."""
    st_i64(transaction, TRANSACTION_NEXT, 0)
    last = ld_i64(found, LIST_LAST_TRANSACTION)
    if last == 0:
        st_i64(found, LIST_TRANSACTIONS, transaction)
    else:
        st_i64(last, TRANSACTION_NEXT, transaction)
    st_i64(found, LIST_LAST_TRANSACTION, transaction)


@native("void(i64, i64)", inline=True)
def list_access(found: int, access: int) -> None:
    """The access is the last of the list."""
    st_i64(access, ACCESS_NEXT, 0)
    last = ld_i64(found, LIST_LAST_ACCESS)
    if last == 0:
        st_i64(found, LIST_ACCESSES, access)
    else:
        st_i64(last, ACCESS_NEXT, access)
    st_i64(found, LIST_LAST_ACCESS, access)
    st_i64(found, LIST_COUNT, ld_i64(found, LIST_COUNT) + 1)


@native("i64(i64, i64, i64)")
def share_link(shares: int, count: int, number: int) -> int:
    """1 and what all shares have collected for this one is in order and linked; 0 without memory."""
    share = shares + number * SHARE_WORDS * 8
    accesses = 0
    for other in range(count):
        accesses += ld_i64(list_by(shares, other, number), LIST_COUNT)
    bits = _clear_slots(share, accesses)
    if bits == 0:
        return 0
    first = 0
    last = 0
    for other in range(count):
        found = list_by(shares, other, number)
        if ld_i64(found, LIST_TRANSACTIONS) != 0:
            if last == 0:
                first = ld_i64(found, LIST_TRANSACTIONS)
            else:
                st_i64(last, TRANSACTION_NEXT, ld_i64(found, LIST_TRANSACTIONS))
            last = ld_i64(found, LIST_LAST_TRANSACTION)
        access = ld_i64(found, LIST_ACCESSES)
        while access != 0:
            link_access(ld_i64(share, SHARE_SLOTS), bits, access)
            access = ld_i64(access, ACCESS_NEXT)
    st_i64(share, SHARE_CURSOR, first)
    return 1


@native("i64(i64, i64, i64)", inline=True)
def list_by(shares: int, by: int, number: int) -> int:
    return ld_i64(shares + by * SHARE_WORDS * 8, SHARE_LISTS) + number * LIST_WORDS * 8


@native("i64(i64, i64)")
def _clear_slots(share: int, accesses: int) -> int:
    """How many bits number the slots, which are empty and twice as many as the accesses; 0 without memory."""
    bits = 6
    while (1 << bits) < 2 * accesses:
        bits += 1
    size = 1 << bits
    if ld_i64(share, SHARE_SIZE) < size:
        release(ld_i64(share, SHARE_SLOTS))
        st_i64(share, SHARE_SIZE, 0)
        st_i64(share, SHARE_SLOTS, zalloc(size * 8))
        if ld_i64(share, SHARE_SLOTS) == 0:
            return 0
        st_i64(share, SHARE_SIZE, size)
    else:
        fill(ld_i64(share, SHARE_SLOTS), 0, size * 8)
    return bits


@native("void(i64, i64, i64)", inline=True)
def link_access(slots: int, bits: int, access: int) -> None:
    """The access is behind the one that had the row last, and has it now.

    Two of one transaction that name one row are both behind what is before the first.
    """
    place = ld_i64(access, ACCESS_PLACE)
    mask = (1 << bits) - 1
    slot = shr_u(wmul(place, HASH_FACTOR), 64 - bits)
    last = ld_i64(slots, slot)
    while last != 0 and same_row(last, access, place) == 0:
        slot = (slot + 1) & mask
        last = ld_i64(slots, slot)
    before = last
    if last != 0:
        st_i64(last, ACCESS_LATEST, 0)
        if ld_i64(last, ACCESS_TRANSACTION) == ld_i64(access, ACCESS_TRANSACTION):
            before = ld_i64(last, ACCESS_BEFORE)
    st_i64(access, ACCESS_BEFORE, before)
    st_i64(access, ACCESS_LATEST, 1)
    st_i64(slots, slot, access)


@native("i64(i64, i64, i64)", inline=True)
def same_row(one: int, other: int, place: int) -> int:
    """1 when two accesses name one row. place: of the other."""
    if ld_i64(one, ACCESS_PLACE) != place:
        return 0
    for word in range((place >> PLACE_KEY_SHIFT) & PLACE_KEY_MASK):
        at = ACCESS_IMAGE + ENTRY_FIRST + word
        if ld_i64(one, at) != ld_i64(other, at):
            return 0
    return 1


@native("i64(i64, i64)", inline=True)
def access_same(one: int, other: int) -> int:
    """1 when two accesses that name rows name the same one."""
    return same_row(one, other, ld_i64(other, ACCESS_PLACE))
