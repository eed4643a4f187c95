"""Deferred rows of a multimap: grouped by the hash of their keys, and put into lists when the first one is requested.

While only one side of a join comes, its rows are not looked up. Linking each to the previous one of its key writes and
later reads 10 M records at random addresses, a cache miss each: in a join of 10 M rows with 1 M then, 1 M keys, reading
took 64 ns of 75 a row. So from DEFER_FROM_ROWS on a row is only appended to a piece, chosen by its key's hash. When a
row is requested, the pieces, each of which fits into a cache, are processed in turn: keys are counted, and the rows of
each key become contiguous, in order of arrival, as records of the multimap. In all that takes 17 ns a row (a loop in
C++, AMD EPYC).

A row is its values as in a record, then the words of its key. A piece is chunks of rows; the first word of a chunk
leads to the next one. Places are byte offsets from DEFERRED_ROWS, because that block grows.

Sharing: none, as for the multimap.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    copy,
    fill,
    ld_i64,
    max_i64,
    min_i64,
    prefetch_to_write,
    release,
    shl,
    shr_u,
    st_i64,
    udiv,
    wmul,
    zalloc,
)
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.containers.multimap_words import (
    DEFER_NEVER,
    MOST_ROWS,
    MULTIMAP_COUNT,
    MULTIMAP_DEFERRED,
    MULTIMAP_DEFERS_AT,
    MULTIMAP_HEAD,
    MULTIMAP_RECORD_BYTES,
    MULTIMAP_ROOM,
    MULTIMAP_ROWS,
    MULTIMAP_TABLE,
    NUMBER_BITS,
    ROW_NEXT,
    ROW_VALUES,
)
from cq.runtime.containers.strings import HASH_FACTOR, hash_mix
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_TAG,
    NUMBER_MASK,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_ENTRY_BYTES,
    TABLE_EPOCH,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_SHIFT,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import table_drop, table_insert_at, table_new, table_size_for
from cq.runtime.layout.words import Struct, name_words

LOG_PIECES = 9  # 10 M rows of 16 bytes: 0.3 MB a piece, and as much for its records; 1,024 pieces fill a near cache
PIECES = 1 << LOG_PIECES
CHUNK_BYTES = 8192  # twice as many would take 8 MB for the first deferred rows
FEWEST_IN_CHUNK = 4  # rows, where they are long
FIRST_CHUNKS = PIECES
FETCHED_AHEAD = 12  # rows: with 1 M keys of one row each, a row took 40 ns without
SAMPLED = 8  # pieces whose keys are counted to estimate their total
SPARE_SHIFT = 5  # a 32nd more than estimated: a sample of 15,000 keys is within 3 % of the true number

_deferred = Struct("DEFERRED")
DEFERRED_ROWS = _deferred.word()  # -> chunks
DEFERRED_USED = _deferred.word()  # bytes of it
DEFERRED_ROOM = _deferred.word()  # bytes of it there is room for
DEFERRED_ROW_BYTES = _deferred.word()
DEFERRED_CHUNK_BYTES = _deferred.word()
DEFERRED_KEY = _deferred.word()  # the word of a row where its key begins; the words before it are its values
DEFERRED_PIECES = _deferred.lines()

_piece = Struct("PIECE")
PIECE_TAIL = _piece.word()  # where its next row goes
PIECE_END = _piece.word()  # where its last chunk ends
PIECE_FIRST = _piece.word()  # its first chunk; 0: none
PIECE_LAST = _piece.word()  # its last chunk
PIECE_BYTES = _piece.size() * 8

name_words(globals())


@native("i64(i64, i64)", inline=True)
def _piece_at(deferred: int, number: int) -> int:
    """The address of a piece."""
    return deferred + DEFERRED_PIECES * 8 + number * PIECE_BYTES


@native("i64(i64, i64, i64)", inline=True)
def deferred_row(deferred: int, hash32: int, row_bytes: int) -> int:
    """The address of a new row whose key has this hash, its values 0; 0 without memory.

    A text is stored over the one that was there: what a block held before must not be taken for one. Inline: where the
    size is a constant, it is a few stores, most of which the values make superfluous.
    """
    piece = _piece_at(deferred, shr_u(hash32, 32 - LOG_PIECES))
    place = ld_i64(piece, PIECE_TAIL)
    if place == ld_i64(piece, PIECE_END):
        place = deferred_chunk(deferred, piece)
        if place == 0:
            return 0
    st_i64(piece, PIECE_TAIL, place + row_bytes)
    row = ld_i64(deferred, DEFERRED_ROWS) + place
    fill(row, 0, row_bytes)
    return row


@native("i64(i64, i64)", export=True)
def deferred_chunk(deferred: int, piece: int) -> int:
    """Add an empty last chunk to the piece; return where its next row goes, or 0 without memory."""
    size = ld_i64(deferred, DEFERRED_CHUNK_BYTES)
    chunk = ld_i64(deferred, DEFERRED_USED)
    if chunk + size > ld_i64(deferred, DEFERRED_ROOM):
        room = 2 * ld_i64(deferred, DEFERRED_ROOM)
        rows = block_resize(ld_i64(deferred, DEFERRED_ROWS), room)
        if rows == 0:
            return 0
        st_i64(deferred, DEFERRED_ROWS, rows)
        st_i64(deferred, DEFERRED_ROOM, room)
    rows = ld_i64(deferred, DEFERRED_ROWS)
    st_i64(deferred, DEFERRED_USED, chunk + size)
    st_i64(rows + chunk, 0, 0)
    if ld_i64(piece, PIECE_FIRST) == 0:
        st_i64(piece, PIECE_FIRST, chunk)
    else:
        st_i64(rows + ld_i64(piece, PIECE_LAST), 0, chunk)
    st_i64(piece, PIECE_LAST, chunk)
    st_i64(piece, PIECE_END, chunk + size)
    return chunk + 8


@native("i64(i64)", export=True)
def deferred_drop(deferred: int) -> int:
    """Free the deferred rows; 0 is none."""
    if deferred != 0:
        block_drop(ld_i64(deferred, DEFERRED_ROWS))
        release(deferred)
    return 0


@native("i64(i64)", export=True)
def deferred_held_bytes(deferred: int) -> int:
    """Memory that deferred rows hold; 0 is none."""
    if deferred == 0:
        return 0
    return DEFERRED_PIECES * 8 + PIECES * PIECE_BYTES + ld_i64(deferred, DEFERRED_USED)


# -- deferring -------------------------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def multimap_defer(multimap: int) -> int:
    """Defer the rows of the multimap and those to come, and return 1; 0 without memory: nothing has changed except that
    it will not try again.

    Its keys are words without strings, at least one. Addresses of entries and table words read before are stale.
    """
    st_i64(multimap, MULTIMAP_DEFERS_AT, DEFER_NEVER)
    deferred = _new_deferred(multimap)
    if deferred == 0:
        return 0
    table = ld_i64(multimap, MULTIMAP_TABLE)
    births = ld_i64(table, TABLE_BIRTHS)
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry = entry_at(ld_i64(table, TABLE_ENTRIES), births, ld_i64(table, TABLE_STRIDE), n)
        if _defer_list(multimap, deferred, entry) == 0:
            deferred_drop(deferred)
            return 0
    if table_size_for(table, 0) == 0:
        deferred_drop(deferred)
        return 0
    st_i64(multimap, MULTIMAP_COUNT, 0)
    st_i64(multimap, MULTIMAP_DEFERRED, deferred)
    return 1


@native("i64(i64)")
def _new_deferred(multimap: int) -> int:
    """Room for rows of the multimap, or 0 without memory."""
    deferred = zalloc(DEFERRED_PIECES * 8 + PIECES * PIECE_BYTES)
    if deferred == 0:
        return 0
    values = ld_i64(multimap, MULTIMAP_RECORD_BYTES) - ROW_VALUES * 8
    row_bytes = values + (ld_i64(multimap, MULTIMAP_HEAD) - ENTRY_FIRST) * 8
    rows = max_i64(udiv(CHUNK_BYTES - 8, row_bytes), FEWEST_IN_CHUNK)
    chunk = 8 + rows * row_bytes
    room = FIRST_CHUNKS * chunk
    st_i64(deferred, DEFERRED_ROWS, block_new(room, 0))
    st_i64(deferred, DEFERRED_ROOM, room)
    st_i64(deferred, DEFERRED_USED, 8)  # place 0 is unused
    st_i64(deferred, DEFERRED_ROW_BYTES, row_bytes)
    st_i64(deferred, DEFERRED_CHUNK_BYTES, chunk)
    st_i64(deferred, DEFERRED_KEY, shr_u(values, 3))
    if ld_i64(deferred, DEFERRED_ROWS) != 0:
        return deferred
    release(deferred)
    return 0


@native("i64(i64, i64, i64)")
def _defer_list(multimap: int, deferred: int, entry: int) -> int:
    """Move the rows of an entry's key to the deferred ones and return 1; 0 without memory."""
    values = ld_i64(deferred, DEFERRED_KEY) * 8
    row_bytes = ld_i64(deferred, DEFERRED_ROW_BYTES)
    number = ld_i64(entry, ld_i64(multimap, MULTIMAP_HEAD)) & MOST_ROWS
    while number != 0:
        record = ld_i64(multimap, MULTIMAP_ROWS) + number * ld_i64(multimap, MULTIMAP_RECORD_BYTES)
        row = deferred_row(deferred, ld_i64(entry, ENTRY_TAG) & NUMBER_MASK, row_bytes)
        if row == 0:
            return 0
        copy(row, record + ROW_VALUES * 8, values)
        copy(row + values, entry + ENTRY_FIRST * 8, row_bytes - values)
        number = ld_i64(record, ROW_NEXT)
    return 1


# -- putting them into lists -----------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def multimap_ask(multimap: int) -> int:
    """Put every row, and those to come, into the list of its key and return 1; 0 without memory.

    Addresses of entries and table words read before are stale.
    """
    st_i64(multimap, MULTIMAP_DEFERS_AT, DEFER_NEVER)
    return multimap_settle(multimap)


@native("i64(i64)", export=True)
def multimap_settle(multimap: int) -> int:
    """Put every row into the list of its key and return 1; 0 without memory: then the multimap can only be freed."""
    deferred = ld_i64(multimap, MULTIMAP_DEFERRED)
    if deferred == 0:
        return 1
    rows, most = _count_rows(deferred)
    if rows > MOST_ROWS or _room_for(multimap, rows) == 0:
        return 0
    keys = _expected_keys(multimap, deferred)
    if keys < 0 or table_size_for(ld_i64(multimap, MULTIMAP_TABLE), min_i64(keys, rows)) == 0:
        return 0
    entries = block_new(max_i64(most, 1) * 8, 0)
    if entries == 0:
        return 0
    whole = 1
    for number in range(PIECES):
        if whole == 1:
            whole = _settle_piece(multimap, deferred, _piece_at(deferred, number), entries)
    block_drop(entries)
    if whole == 1:
        st_i64(multimap, MULTIMAP_DEFERRED, 0)
        deferred_drop(deferred)
    return whole


@native("(i64, i64)(i64)")
def _count_rows(deferred: int) -> tuple[int, int]:
    """How many rows there are, and the most in a piece."""
    base = ld_i64(deferred, DEFERRED_ROWS)
    size = ld_i64(deferred, DEFERRED_ROW_BYTES)
    full = udiv(ld_i64(deferred, DEFERRED_CHUNK_BYTES) - 8, size)
    total = 0
    most = 0
    for number in range(PIECES):
        piece = _piece_at(deferred, number)
        chunk = ld_i64(piece, PIECE_FIRST)
        rows = 0
        while chunk != 0:
            following = ld_i64(base + chunk, 0)
            rows += full if following != 0 else udiv(ld_i64(piece, PIECE_TAIL) - chunk - 8, size)
            chunk = following
        total += rows
        most = max_i64(most, rows)
    return total, most


@native("i64(i64, i64)")
def _room_for(multimap: int, rows: int) -> int:
    """Make room for this many records and return 1; 0 without memory."""
    if rows <= ld_i64(multimap, MULTIMAP_ROOM):
        return 1
    records = block_resize(ld_i64(multimap, MULTIMAP_ROWS), (rows + 1) * ld_i64(multimap, MULTIMAP_RECORD_BYTES))
    if records == 0:
        return 0
    st_i64(multimap, MULTIMAP_ROWS, records)
    st_i64(multimap, MULTIMAP_ROOM, rows)
    return 1


@native("i64(i64, i64)")
def _expected_keys(multimap: int, deferred: int) -> int:
    """The number of keys, estimated from those of some pieces; -1 without memory.

    Hashes are spread evenly over pieces. If keys are not, the table grows later. The hashes of a piece begin with the
    same bits, which also select slots.
    """
    table = table_new(shr_u(ld_i64(ld_i64(multimap, MULTIMAP_TABLE), TABLE_ENTRY_BYTES), 3), 0, 0)
    if table == 0:
        return -1
    base = ld_i64(deferred, DEFERRED_ROWS)
    size = ld_i64(deferred, DEFERRED_ROW_BYTES)
    found = 1
    for sample in range(SAMPLED):
        piece = _piece_at(deferred, sample * (PIECES // SAMPLED))
        chunk = ld_i64(piece, PIECE_FIRST)
        while chunk != 0 and found != 0:
            end = _end_of(deferred, piece, chunk)
            row = base + chunk + 8
            while row < end and found != 0:
                found = _entry_of(table, deferred, row, LOG_PIECES)
                row += size
            chunk = ld_i64(base + chunk, 0)
    keys = ld_i64(table, TABLE_COUNT) * (PIECES // SAMPLED)
    table_drop(table)
    return keys + shr_u(keys, SPARE_SHIFT) if found != 0 else -1


@native("i64(i64, i64, i64)", inline=True)
def _end_of(deferred: int, piece: int, chunk: int) -> int:
    """The address after the last row of a chunk of the piece."""
    place = chunk + ld_i64(deferred, DEFERRED_CHUNK_BYTES)
    if chunk == ld_i64(piece, PIECE_LAST):
        place = ld_i64(piece, PIECE_TAIL)
    return ld_i64(deferred, DEFERRED_ROWS) + place


@native("i64(i64, i64)", inline=True)
def _hash_of(key: int, words: int) -> int:
    """The 32-bit hash of this many key words, as generated code computes it."""
    state = wmul(ld_i64(key, 0), HASH_FACTOR)
    for word in range(1, words):
        state = hash_mix(state, ld_i64(key, word))
    return shr_u(state, 32)


@native("i64(i64, i64, i64)", inline=True)
def _has_key(entry: int, key: int, words: int) -> int:
    """1 if the entry has these key words."""
    same = 1
    for word in range(words):
        if ld_i64(entry, ENTRY_FIRST + word) != ld_i64(key, word):
            same = 0
    return same


@native("void(i64, i64, i64)", inline=True)
def _fetch(table: int, deferred: int, row: int) -> None:
    """Prefetch the slot of a row's key, to be changed."""
    first = ld_i64(deferred, DEFERRED_KEY)
    hash32 = _hash_of(row + first * 8, shr_u(ld_i64(deferred, DEFERRED_ROW_BYTES), 3) - first)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    index = ld_i64(table, TABLE_INDEX)
    if index != 0:
        prefetch_to_write(index + slot * 8)
    else:
        prefetch_to_write(ld_i64(table, TABLE_ENTRIES) + slot * ld_i64(table, TABLE_STRIDE))


@native("i64(i64, i64, i64, i64)", inline=True)
def _entry_of(table: int, deferred: int, row: int, bits: int) -> int:
    """The entry of a row's key, made if missing; 0 without memory.

    bits: how many leading bits of hashes are left out.
    """
    first = ld_i64(deferred, DEFERRED_KEY)
    words = shr_u(ld_i64(deferred, DEFERRED_ROW_BYTES), 3) - first
    key = row + first * 8
    hash32 = shl(_hash_of(key, words), bits) & NUMBER_MASK
    entries = ld_i64(table, TABLE_ENTRIES)
    stride = ld_i64(table, TABLE_STRIDE)
    mask = ld_i64(table, TABLE_MASK)
    index = ld_i64(table, TABLE_INDEX)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    found = 0
    if index == 0:
        epoch = ld_i64(table, TABLE_EPOCH)
        while found == 0 and ld_i64(entries + slot * stride, ENTRY_TAG) >= epoch:
            entry = entries + slot * stride
            if ld_i64(entry, ENTRY_TAG) == epoch | hash32 and _has_key(entry, key, words) == 1:
                found = entry
            slot = (slot + 1) & mask
    else:
        item = ld_i64(index, slot)
        while found == 0 and item != 0:
            entry = entries + (item & NUMBER_MASK) * stride
            if shr_u(item, 32) == hash32 and _has_key(entry, key, words) == 1:
                found = entry
            slot = (slot + 1) & mask
            item = ld_i64(index, slot)
    if found == 0:
        found = table_insert_at(table, hash32, 0, slot, ld_i64(table, TABLE_ENTRY_BYTES))
        if found != 0:
            copy(found + ENTRY_FIRST * 8, key, words * 8)
    return found


@native("i64(i64, i64, i64, i64)")
def _settle_piece(multimap: int, deferred: int, piece: int, entries: int) -> int:
    """Make the rows of a piece records, those of a key contiguous, and return 1; 0 without memory.

    entries: room for a word for each row.
    """
    table = ld_i64(multimap, MULTIMAP_TABLE)
    shift = ld_i64(table, TABLE_SHIFT)
    if _find_entries(multimap, deferred, piece, entries, 1) == 0:
        return 0
    if ld_i64(table, TABLE_SHIFT) != shift:  # it has grown, and entries have moved
        _find_entries(multimap, deferred, piece, entries, 0)
    _place_rows(multimap, deferred, piece, entries)
    return 1


@native("i64(i64, i64, i64, i64, i64)")
def _find_entries(multimap: int, deferred: int, piece: int, entries: int, count: int) -> int:
    """Put the entry of each row of the piece into `entries` and return 1; 0 without memory.

    count: 1: in place of the ends of an entry's list, store how many rows it has.
    """
    table = ld_i64(multimap, MULTIMAP_TABLE)
    head = ld_i64(multimap, MULTIMAP_HEAD)
    base = ld_i64(deferred, DEFERRED_ROWS)
    size = ld_i64(deferred, DEFERRED_ROW_BYTES)
    chunk = ld_i64(piece, PIECE_FIRST)
    n = 0
    while chunk != 0:
        end = _end_of(deferred, piece, chunk)
        row = base + chunk + 8
        while row < end:
            _fetch(table, deferred, min_i64(row + FETCHED_AHEAD * size, end - size))
            entry = _entry_of(table, deferred, row, 0)
            if entry == 0:
                return 0
            st_i64(entry, head, ld_i64(entry, head) + count)
            st_i64(entries, n, entry)
            n += 1
            row += size
        chunk = ld_i64(base + chunk, 0)
    return 1


@native("void(i64, i64, i64, i64)")
def _place_rows(multimap: int, deferred: int, piece: int, entries: int) -> None:
    """Make the rows of a piece records. entries: of each row; until the first row is placed, an entry has its number of
    rows in place of the ends of its list."""
    head = ld_i64(multimap, MULTIMAP_HEAD)
    rows = ld_i64(multimap, MULTIMAP_ROWS)
    record_bytes = ld_i64(multimap, MULTIMAP_RECORD_BYTES)
    base = ld_i64(deferred, DEFERRED_ROWS)
    size = ld_i64(deferred, DEFERRED_ROW_BYTES)
    values = ld_i64(deferred, DEFERRED_KEY)
    chunk = ld_i64(piece, PIECE_FIRST)
    placed = ld_i64(multimap, MULTIMAP_COUNT)
    n = 0
    while chunk != 0:
        end = _end_of(deferred, piece, chunk)
        row = base + chunk + 8
        while row < end:
            entry = ld_i64(entries, n)
            held = ld_i64(entry, head)
            last = shr_u(held, NUMBER_BITS)
            first = held & MOST_ROWS
            number = last + 1
            if last == 0:
                first = placed + 1
                number = first
                placed += held
            else:
                st_i64(rows + last * record_bytes, ROW_NEXT, number)
            st_i64(entry, head, shl(number, NUMBER_BITS) | first)
            record = rows + number * record_bytes
            st_i64(record, ROW_NEXT, 0)
            for word in range(values):
                st_i64(record, ROW_VALUES + word, ld_i64(row, word))
            n += 1
            row += size
        chunk = ld_i64(base + chunk, 0)
    st_i64(multimap, MULTIMAP_COUNT, placed)
