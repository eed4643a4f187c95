"""Transactions of a ticket in lists, and the rows they name in chains.

A share of the work is some rows of the ticket, whose transactions it collects, and then the lists made for it by all
shares: of accesses whose row's hash belongs to it, in the order of the events, and of transactions whose first access
is among them. Accesses of one row are in one share, so that linking needs no lock.

Roles     one worker at a time has a share.
Shared    lists: written by the share that collects, read by the one they are for, in a later phase.
          ACCESS_DONE: stored after the row, loaded before it.
I1        an access is linked to the one of the last earlier transaction that names its row.
                                                            tests: test_transactions_in_chains_give_the_rows_of_one_loop
I2        of the accesses of a transaction to one row the first is linked, the others are REPEATED.
                                                            tests: test_a_row_that_a_transaction_names_twice_is_one_row
I3        of the accesses to a row one is LATEST, in whichever transaction.
                                                                tests: test_of_the_accesses_to_a_row_the_last_is_latest
I4        an entry of a table is written by the LATEST access of its row, when all its readers are done.
                                                            tests: test_every_schedule_of_chains_*
Progress  nothing here waits. A worker that finds ACCESS_DONE unset goes on with other transactions (chains.py).
Order     lists, links and images are plain: written in one phase and read in the next (chains.py). A row is written to
          its version, then ACCESS_DONE = 1 (release); a waiting worker loads DONE (acquire), then the row. Nothing
          waits for the LATEST of a row: what it writes to the table is read when the phase is over.
Source    Zhang et al., TStream (ICDE 2020): operations of a punctuation in chains by key; lists instead of skip lists.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    alloc,
    at_load_acq,
    at_store_rel,
    copy,
    fill,
    ld_i64,
    max_i64,
    mem_eq,
    prefetch,
    release,
    shr_u,
    st_i64,
    wmul,
    zalloc,
)
from cq.runtime.containers.strings import HASH_FACTOR
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.chains import (
    ACCESS_BEFORE,
    ACCESS_DONE,
    ACCESS_ENTRY,
    ACCESS_IMAGE,
    ACCESS_SAME,
    ACCESS_STATE,
    ACCESS_TAG,
    ACCESS_TRANSACTION,
    ARRAY_AT,
    ARRAY_COUNT,
    ARRAY_SIZE,
    CHANGED,
    FOUND,
    LATEST,
    LIST_ACCESSES,
    LIST_TRANSACTIONS,
    LIST_WORDS,
    LISTED_ACCESS,
    LISTED_TAG,
    LISTED_WORDS,
    NO_ROW,
    QUEUE_END,
    REPEATED,
    SHARE_BLOCK,
    SHARE_CURSOR,
    SHARE_LISTS,
    SHARE_MASK,
    SHARE_QUEUE,
    SHARE_ROOM,
    SHARE_ROOM_END,
    SHARE_SLOTS,
    SHARE_WORDS,
    SLOTS_AT,
    SLOTS_BITS,
    SLOTS_SIZE,
    TAG_KEY_MASK,
    TAG_KEY_SHIFT,
    TAG_KEY_TEXTS,
    TAG_ROW_TEXTS,
    TAG_WORDS_MASK,
    TAG_WORDS_SHIFT,
    TRANSACTION_ACCESSES,
    TRANSACTION_COUNT,
    TRANSACTION_LEFT,
    TRANSACTION_ROW,
    TURNED,
)

FIRST_ROOM_BYTES = 65536
LINE_BYTES = 64
BLOCK_OLDER, BLOCK_BYTES = 0, 1  # words of a block of room
FIRST_ITEMS = 16  # of an array
# How many accesses ahead of linking one it is fetched. A line from another core takes 60 to 100 ns, linking an event
# 30 if all is there. With this and the arrays, an event of Toll Processing took two workers 58 ns instead of 93. With
# less, lines come too late; with more, they may be gone again. Other distances were not measured.
LINKED_AHEAD = 8

# -- collecting ------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def share_room(share: int, size: int) -> int:
    """Room for this many bytes of accesses, which are in use once SHARE_ROOM is after them; 0 without memory."""
    at = ld_i64(share, SHARE_ROOM)
    if at != 0 and at + size <= ld_i64(share, SHARE_ROOM_END):
        return at
    block = ld_i64(share, SHARE_BLOCK)
    size = max_i64(size, FIRST_ROOM_BYTES)
    if block != 0:
        size = max_i64(size, 2 * ld_i64(block, BLOCK_BYTES))
    fresh = alloc(size + 2 * LINE_BYTES)
    if fresh == 0:
        return 0
    st_i64(fresh, BLOCK_OLDER, block)
    st_i64(fresh, BLOCK_BYTES, size)
    st_i64(share, SHARE_BLOCK, fresh)
    _room_is(share, fresh)
    return ld_i64(share, SHARE_ROOM)


@native("void(i64, i64)")
def _room_is(share: int, block: int) -> None:
    """Make all of the block room."""
    first = (block + 2 * LINE_BYTES) & -LINE_BYTES
    st_i64(share, SHARE_ROOM, first)
    st_i64(share, SHARE_ROOM_END, block + 2 * LINE_BYTES + ld_i64(block, BLOCK_BYTES))


@native("void(i64)")
def share_empty(share: int) -> None:
    """Clear what was collected from the last ticket; of the memory for accesses the largest block is kept."""
    for number in range(ld_i64(share, SHARE_MASK) + 1):
        found = ld_i64(share, SHARE_LISTS) + number * LIST_WORDS * 8
        st_i64(found, LIST_TRANSACTIONS + ARRAY_COUNT, 0)
        st_i64(found, LIST_ACCESSES + ARRAY_COUNT, 0)
    block = ld_i64(share, SHARE_BLOCK)
    if block != 0:
        _release_from(ld_i64(block, BLOCK_OLDER))
        st_i64(block, BLOCK_OLDER, 0)
        _room_is(share, block)


@native("void(i64)")
def share_release(share: int) -> None:
    """Free what the share has allocated."""
    _release_from(ld_i64(share, SHARE_BLOCK))
    release(ld_i64(share, SHARE_SLOTS + SLOTS_AT))
    release(ld_i64(share, SHARE_QUEUE + ARRAY_AT))
    for number in range(ld_i64(share, SHARE_MASK) + 1):
        found = ld_i64(share, SHARE_LISTS) + number * LIST_WORDS * 8
        release(ld_i64(found, LIST_TRANSACTIONS + ARRAY_AT))
        release(ld_i64(found, LIST_ACCESSES + ARRAY_AT))


@native("i64(i64)")
def share_held_bytes(share: int) -> int:
    """What the share has allocated for accesses and lists."""
    held = (ld_i64(share, SHARE_SLOTS + SLOTS_SIZE) + ld_i64(share, SHARE_QUEUE + ARRAY_SIZE)) * 8
    for number in range(ld_i64(share, SHARE_MASK) + 1):
        found = ld_i64(share, SHARE_LISTS) + number * LIST_WORDS * 8
        held += ld_i64(found, LIST_TRANSACTIONS + ARRAY_SIZE) * 8
        held += ld_i64(found, LIST_ACCESSES + ARRAY_SIZE) * LISTED_WORDS * 8
    block = ld_i64(share, SHARE_BLOCK)
    while block != 0:
        held += ld_i64(block, BLOCK_BYTES)
        block = ld_i64(block, BLOCK_OLDER)
    return held


@native("void(i64)")
def _release_from(block: int) -> None:
    while block != 0:
        older = ld_i64(block, BLOCK_OLDER)
        release(block)
        block = older


@native("i64(i64, i64, i64, i64)", inline=True)
def list_transaction(share: int, transaction: int, home: int, size: int) -> int:
    """Put the transaction and its accesses, of this many bytes each, into the lists they belong to; 1, or 0 without
    memory.

    home: the access to whose row it belongs, so that those of one row are mostly evaluated by one worker; 0: the first.
    """
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    count = ld_i64(transaction, TRANSACTION_COUNT)
    mine = ld_i64(transaction, TRANSACTION_ROW)
    if home != 0:
        mine = ld_i64(home, ACCESS_TAG)
    elif count > 0:
        mine = ld_i64(access, ACCESS_TAG)
    for _ in range(count):
        if ld_i64(access, ACCESS_TAG) != NO_ROW and _list_access(share, access) == 0:
            return 0
        access += size
    array = _list_for(share, mine) + LIST_TRANSACTIONS * 8
    listed = ld_i64(array, ARRAY_COUNT)
    if listed == ld_i64(array, ARRAY_SIZE) and array_grow(array, listed + 1, 8) == 0:
        return 0
    st_i64(ld_i64(array, ARRAY_AT), listed, transaction)
    st_i64(array, ARRAY_COUNT, listed + 1)
    return 1


@native("i64(i64, i64)", inline=True)
def _list_for(share: int, tag: int) -> int:
    """What the share has collected for the share that a hash belongs to. Tables take slots from the top bits."""
    return ld_i64(share, SHARE_LISTS) + (tag & ld_i64(share, SHARE_MASK)) * LIST_WORDS * 8


@native("i64(i64, i64)", inline=True)
def _list_access(share: int, access: int) -> int:
    """Append the access to its list and return 1; 0 without memory."""
    tag = ld_i64(access, ACCESS_TAG)
    array = _list_for(share, tag) + LIST_ACCESSES * 8
    listed = ld_i64(array, ARRAY_COUNT)
    if listed == ld_i64(array, ARRAY_SIZE) and array_grow(array, listed + 1, LISTED_WORDS * 8) == 0:
        return 0
    item = ld_i64(array, ARRAY_AT) + listed * LISTED_WORDS * 8
    st_i64(item, LISTED_ACCESS, access)
    st_i64(item, LISTED_TAG, tag)
    st_i64(array, ARRAY_COUNT, listed + 1)
    return 1


@native("i64(i64, i64, i64)", export=True)
def array_grow(array: int, count: int, size: int) -> int:
    """Allocate memory for this many items, each of this many bytes, keeping the content; 1, or 0: there is none."""
    if count <= ld_i64(array, ARRAY_SIZE):
        return 1
    items = max_i64(FIRST_ITEMS, 2 * ld_i64(array, ARRAY_SIZE))
    while items < count:
        items *= 2
    fresh = alloc(items * size)
    if fresh == 0:
        return 0
    if ld_i64(array, ARRAY_COUNT) > 0:
        copy(fresh, ld_i64(array, ARRAY_AT), ld_i64(array, ARRAY_COUNT) * size)
    release(ld_i64(array, ARRAY_AT))
    st_i64(array, ARRAY_AT, fresh)
    st_i64(array, ARRAY_SIZE, items)
    return 1


# -- linking ---------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)")
def share_link(shares: int, count: int, number: int) -> int:
    """Put in order and link what all shares have collected for this one, and return 1; 0 without memory."""
    share = shares + number * SHARE_WORDS * 8
    accesses = 0
    transactions = 0
    for other in range(count):
        found = _list_by(shares, other, number)
        accesses += ld_i64(found, LIST_ACCESSES + ARRAY_COUNT)
        transactions += ld_i64(found, LIST_TRANSACTIONS + ARRAY_COUNT)
    queue = share + SHARE_QUEUE * 8
    st_i64(queue, ARRAY_COUNT, 0)
    if slots_clear(share + SHARE_SLOTS * 8, accesses) == 0 or array_grow(queue, transactions + QUEUE_END, 8) == 0:
        return 0
    for other in range(count):
        _queue_all(queue, _list_by(shares, other, number) + LIST_TRANSACTIONS * 8)
        following = 0
        if other + 1 < count:
            following = _list_by(shares, other + 1, number) + LIST_ACCESSES * 8
        _link_all(share + SHARE_SLOTS * 8, _list_by(shares, other, number) + LIST_ACCESSES * 8, following)
    fill(ld_i64(queue, ARRAY_AT) + transactions * 8, 0, QUEUE_END * 8)
    st_i64(share, SHARE_CURSOR, 0)
    if transactions > 0:
        st_i64(share, SHARE_CURSOR, ld_i64(queue, ARRAY_AT))
    return 1


@native("i64(i64, i64, i64)", inline=True)
def _list_by(shares: int, by: int, number: int) -> int:
    """What a share has collected for the one with this number."""
    return ld_i64(shares + by * SHARE_WORDS * 8, SHARE_LISTS) + number * LIST_WORDS * 8


@native("void(i64, i64)")
def _queue_all(queue: int, array: int) -> None:
    """Append the transactions of the array to the queue, which has memory for them."""
    count = ld_i64(array, ARRAY_COUNT)
    queued = ld_i64(queue, ARRAY_COUNT)
    if count > 0:
        copy(ld_i64(queue, ARRAY_AT) + queued * 8, ld_i64(array, ARRAY_AT), count * 8)
        st_i64(queue, ARRAY_COUNT, queued + count)


@native("void(i64, i64, i64)")
def _link_all(slots: int, array: int, following: int) -> None:
    """Link the accesses of the array. following: the array after it, or 0, whose first ones are fetched.

    Accesses are in the cache of the worker that collected them. They are fetched a few iterations ahead: one after the
    other, each of them would take longer to come than to link.
    """
    count = ld_i64(array, ARRAY_COUNT)
    items = ld_i64(array, ARRAY_AT)
    at = ld_i64(slots, SLOTS_AT)
    bits = ld_i64(slots, SLOTS_BITS)
    for turn in range(count):
        _fetch_listed(array, turn + LINKED_AHEAD)
        if following != 0:
            _fetch_listed(following, turn + LINKED_AHEAD - count)
        item = items + turn * LISTED_WORDS * 8
        _link_access(at, bits, ld_i64(item, LISTED_ACCESS), ld_i64(item, LISTED_TAG))


@native("void(i64, i64)", inline=True)
def _fetch_listed(array: int, turn: int) -> None:
    """Prefetch the access at this place, if there is one."""
    if turn >= 0 and turn < ld_i64(array, ARRAY_COUNT):
        prefetch(ld_i64(ld_i64(array, ARRAY_AT), turn * LISTED_WORDS + LISTED_ACCESS))


@native("i64(i64, i64)")
def slots_clear(slots: int, accesses: int) -> int:
    """Make the slots empty, and at least twice as many as the accesses, and return 1; 0 without memory."""
    bits = 6
    while (1 << bits) < 2 * accesses:
        bits += 1
    size = 1 << bits
    if ld_i64(slots, SLOTS_SIZE) < size:
        release(ld_i64(slots, SLOTS_AT))
        st_i64(slots, SLOTS_SIZE, 0)
        st_i64(slots, SLOTS_AT, zalloc(size * 8))
        if ld_i64(slots, SLOTS_AT) == 0:
            return 0
        st_i64(slots, SLOTS_SIZE, size)
    else:
        fill(ld_i64(slots, SLOTS_AT), 0, size * 8)
    st_i64(slots, SLOTS_BITS, bits)
    return 1


@native("void(i64, i64, i64, i64)", inline=True)
def _link_access(slots: int, bits: int, access: int, tag: int) -> None:
    """Link the access to the last one of its row, and make it the last; or both belong to one transaction."""
    mask = (1 << bits) - 1
    slot = shr_u(wmul(tag, HASH_FACTOR), 64 - bits)
    last = ld_i64(slots, slot)
    while last != 0 and same_row(last, access, tag) == 0:
        slot = (slot + 1) & mask
        last = ld_i64(slots, slot)
    if last != 0 and ld_i64(last, ACCESS_TRANSACTION) == ld_i64(access, ACCESS_TRANSACTION):
        st_i64(access, ACCESS_STATE, REPEATED)
        st_i64(access, ACCESS_SAME, last)
        st_i64(access, ACCESS_BEFORE, 0)
    else:
        if last != 0:
            st_i64(last, ACCESS_STATE, 0)
        st_i64(access, ACCESS_STATE, LATEST)
        st_i64(access, ACCESS_BEFORE, last)
        st_i64(slots, slot, access)


@native("i64(i64, i64, i64)", inline=True)
def same_row(one: int, other: int, tag: int) -> int:
    """1 if two accesses name one row. tag: of the other."""
    if ld_i64(one, ACCESS_TAG) != tag:
        return 0
    if tag & TAG_KEY_TEXTS != 0:
        return same_texts(one, other, tag)
    for word in range((tag >> TAG_KEY_SHIFT) & TAG_KEY_MASK):
        at = ACCESS_IMAGE + ENTRY_FIRST + word
        if ld_i64(one, at) != ld_i64(other, at):
            return 0
    return 1


@native("i64(i64, i64, i64)", export=True)
def same_texts(one: int, other: int, tag: int) -> int:
    """As `same_row`, if the tags are equal and the key has texts: these are compared byte by byte."""
    texts = ld_i64(other, ACCESS_IMAGE + _words_of_entry(tag))
    word = ENTRY_FIRST
    while word < _first_word(tag):
        at = ACCESS_IMAGE + word
        if shr_u(texts, word) & 1 == 1:
            length = ld_i64(one, at + 1)
            if length != ld_i64(other, at + 1) or not mem_eq(ld_i64(one, at), ld_i64(other, at), length):
                return 0
            word += 1
        elif ld_i64(one, at) != ld_i64(other, at):
            return 0
        word += 1
    return 1


# -- evaluating ------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", inline=True)
def transaction_ready(transaction: int, size: int) -> int:
    """1 if all earlier accesses to its rows are done. size: bytes of an access."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        before = ld_i64(access, ACCESS_BEFORE)
        if before != 0 and at_load_acq(before + ACCESS_DONE * 8) == 0:
            return 0
        access += size
    return 1


@native("i64(i64)", inline=True)
def access_of_row(access: int) -> int:
    """The access that has what all accesses of its transaction to one row share."""
    if ld_i64(access, ACCESS_STATE) & REPEATED != 0:
        return ld_i64(access, ACCESS_SAME)
    return access


@native("void(i64, i64, i64, i64)", inline=True)
def _copy_words(to: int, source: int, word: int, end: int) -> None:
    """Copy words of one entry to another. Most rows have one or two: a loop over so few takes longer to begin."""
    if word < end:
        st_i64(to, word, ld_i64(source, word))
    if word + 1 < end:
        st_i64(to, word + 1, ld_i64(source, word + 1))
    for rest in range(word + 2, end):
        st_i64(to, rest, ld_i64(source, rest))


@native("void(i64, i64)", inline=True)
def copy_row(source: int, access: int) -> None:
    """Copy the non-key columns of an entry to the image of the access."""
    tag = ld_i64(access, ACCESS_TAG)
    _copy_words(access + ACCESS_IMAGE * 8, source, _first_word(tag), _words_of_entry(tag))


@native("i64(i64)", inline=True)
def _first_word(tag: int) -> int:
    """The word of an entry where the non-key columns begin."""
    return ENTRY_FIRST + ((tag >> TAG_KEY_SHIFT) & TAG_KEY_MASK)


@native("i64(i64)", inline=True)
def _words_of_entry(tag: int) -> int:
    return (tag >> TAG_WORDS_SHIFT) & TAG_WORDS_MASK


@native("void(i64, i64)", inline=True)
def write_row(access: int, entry: int) -> None:
    """Write the non-key columns of the image of the access to the entry."""
    tag = ld_i64(access, ACCESS_TAG)
    _copy_words(entry, access + ACCESS_IMAGE * 8, _first_word(tag), _words_of_entry(tag))


@native("i64(i64)", inline=True)
def workers_write(access: int) -> int:
    """1 if the row of an access has an entry that any worker may write; 0: the kernel has to."""
    kept = ld_i64(access, ACCESS_ENTRY) != 0 and ld_i64(access, ACCESS_TAG) & TAG_ROW_TEXTS == 0
    return 1 if kept else 0


@native("void(i64, i64)", inline=True)
def transaction_settled(transaction: int, size: int) -> None:
    """Let later transactions on its rows go on. Rows that no later one names are written to their tables, except those
    that came or went in this ticket and those with texts: these are left to the kernel, which alone makes and deletes
    entries and uses the texts of a table. size: bytes of an access.
    """
    left = 0
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        state = ld_i64(access, ACCESS_STATE)
        left |= state & TURNED
        if state & (LATEST | FOUND | CHANGED) == LATEST | FOUND | CHANGED:
            if workers_write(access) == 1:
                write_row(access, ld_i64(access, ACCESS_ENTRY))
            else:
                left = 1
        at_store_rel(access + ACCESS_DONE * 8, 1)
        access += size
    st_i64(transaction, TRANSACTION_LEFT, left)
