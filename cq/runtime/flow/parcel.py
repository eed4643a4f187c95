"""Parcels: the rows a stage has emitted, in our own buffers, on their way to the next stage or to a sink.

A kernel writes into ports (abi.PORT_*); behind each port is a parcel that owns the buffers. When the rows leave, the
parcel goes with them, as the next stage's batch or as an Arrow record batch, and the port gets a new one. A depot holds
the parcels of one port while they are idle: new buffers of this size would cost more than filling them.

Roles     a parcel has one owner. Parcels lent to Arrow come back from any thread (parcel_arrow_release).
Shared    DEPOT_FREE  free list of idle parcels.  DEPOT_USERS  parcels that exist, plus one for the engine.
          DEPOT_CLOSED  1 once the engine is gone.  DEPOT_BYTES  held by parcels that are not with Arrow.
I1        a parcel is with its owner or idle in its depot, never both.  tests: test_a_parcel_that_came_back_is_taken_*
I2        after the engine is gone, the last parcel takes the depot with it.
                                                            tests: test_a_parcel_that_comes_back_while_its_depot_*
Progress  no call waits. A port gets a new parcel if its depot has no idle one, and is refused without memory.
Order     return: the parcel is cleared, the depot's user count is raised (seq_cst), the parcel is put on the free list
          (CAS), then CLOSED is checked. close: CLOSED = 1, then the free list is emptied, then the user count is
          lowered. Putting and checking are a store and a load of two words, as closing and emptying are, so none may be
          weaker than seq_cst: whichever comes second frees the parcel. No thread touches a depot after leaving it: the
          last one releases it.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    at_add,
    at_load,
    at_store,
    copy,
    fill,
    ld_i64,
    max_i64,
    release,
    shl,
    st_i32,
    st_i64,
    zalloc,
)
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.flow.arrow_words import ARROW_WORDS, BIT, UTF8
from cq.runtime.flow.batch import ITEM_KIND, ITEM_LAST, ITEM_LINK, ITEM_WORDS, PARCEL, storage_bytes
from cq.runtime.layout.abi import (
    BATCH_CAUSES,
    BATCH_FIRST,
    BATCH_PORTS,
    BATCH_ROWS,
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    BATCH_WATERMARKS,
    COLUMN_DATA,
    COLUMN_OFFSETS,
    COLUMN_ROWS,
    COLUMN_VALIDITY,
    COLUMN_WORDS,
    NEVER,
    OUT_BYTES,
    OUT_BYTES_CAPACITY,
    OUT_DATA,
    OUT_OFFSETS,
    OUT_STORAGE,
    OUT_VALIDITY,
    OUT_WORDS,
    PORT_CAPACITY,
    PORT_CAUSES,
    PORT_COLUMN_COUNT,
    PORT_COLUMNS,
    PORT_LIMIT,
    PORT_POSITIONS,
    PORT_ROWS,
    PORT_SEGMENT_CAPACITY,
    PORT_SEGMENT_COUNT,
    PORT_SEGMENTS,
    PORT_WATERMARKS,
    PORT_WORDS,
    POSITION_WORDS,
    SEGMENT_CLOSE,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LATE,
    SEGMENT_LO,
    SEGMENT_PORT,
    SEGMENT_ROWS,
    SEGMENT_SERIAL,
    SEGMENT_WATERMARK,
    SEGMENT_WORDS,
    STATE_ERROR_INSTANT,
    STATE_ERROR_SERIAL,
    STRING_SLACK_BYTES,
)
from cq.runtime.layout.words import Struct
from cq.runtime.queues.free_list import free_list_put, free_list_take, free_list_take_at

IDLE_PARCELS = 32  # kept in a depot: all that wait in a sink and as many in use; new ones cost a page fault per page

_depot = Struct("DEPOT")
DEPOT_USERS = _depot.word()
DEPOT_BYTES = _depot.word()
DEPOT_CLOSED = _depot.word()
_depot.align()
DEPOT_COLUMNS = _depot.word()
DEPOT_SPECS = _depot.word()  # -> (storage, nullable) a column
DEPOT_LIMIT = _depot.word()  # PORT_LIMIT of its parcels
DEPOT_CAPACITY = _depot.word()  # rows that a new parcel has room for
DEPOT_SEGMENTED = _depot.word()  # 1: parcels carry segments for a next stage
DEPOT_POSITIONED = _depot.word()  # 1: parcels carry positions
DEPOT_MARKED = _depot.word()  # 1: parcels carry the watermarks of their rows
DEPOT_CAUSED = _depot.word()  # 1: parcels carry the causes of their rows
DEPOT_FREE = _depot.words(1 + IDLE_PARCELS)  # free list of idle parcels
DEPOT_WORDS = _depot.size()

_parcel = Struct("PARCEL", after=ITEM_WORDS)
PARCEL_PORT = _parcel.words(PORT_WORDS)  # the port's words while the parcel is not behind a port
PARCEL_DEPOT = _parcel.word()
PARCEL_BYTES = _parcel.word()  # counted in DEPOT_BYTES
PARCEL_SINGLE = _parcel.word()  # 1: of a special size, not kept for the next rows
PARCEL_TABLE_WORD = _parcel.word()  # -> column table: the target of BATCH_PORTS
PARCEL_ARRAY = _parcel.word()  # -> ArrowArray structures (cq/runtime/flow/export.py)
PARCEL_DIRTY = _parcel.word()  # rows whose bits may be set though the port has fewer
PARCEL_WORDS = _parcel.size()

FIRST_SEGMENTS = 64
FIRST_STRING_BYTES = 8  # room for each row at first
LARGEST_IDLE_BYTES = 16 << 20  # a parcel grown beyond this is not kept
ARRAY_WORDS = ARROW_WORDS + 1 + 3  # an ArrowArray, its place in the children, its buffers: a column, and the parent


# -- depots ----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64)", export=True)
def depot_new(columns: int, specs: int, limit: int, capacity: int) -> int:
    """A depot without parcels, whose parcels carry columns only; 0 without memory.

    specs: -> (storage, nullable) a column, copied.  What else they carry is set before the first parcel (DEPOT_*).
    """
    depot = zalloc((DEPOT_WORDS + columns * 2) * 8)
    if depot == 0:
        return 0
    if columns > 0:
        copy(depot + DEPOT_WORDS * 8, specs, columns * 16)
    st_i64(depot, DEPOT_USERS, 1)
    st_i64(depot, DEPOT_COLUMNS, columns)
    st_i64(depot, DEPOT_SPECS, depot + DEPOT_WORDS * 8)
    st_i64(depot, DEPOT_LIMIT, limit)
    st_i64(depot, DEPOT_CAPACITY, capacity)
    return depot


@native("void(i64)", export=True)
def depot_close(depot: int) -> None:
    """Release the engine's hold on the depot; it is freed with the last of its parcels. 0 is ignored."""
    if depot == 0:
        return
    at_store(depot + DEPOT_CLOSED * 8, 1)
    _empty(depot)
    _leave(depot)


@native("void(i64)")
def _empty(depot: int) -> None:
    """Free idle parcels."""
    for number in range(IDLE_PARCELS):
        parcel = free_list_take_at(depot + DEPOT_FREE * 8, 1 + number)
        if parcel != 0:
            parcel_free(parcel)


@native("void(i64)")
def _leave(depot: int) -> None:
    """Remove one user; the last one frees the depot."""
    if at_add(depot + DEPOT_USERS * 8, -1) == 1:
        release(depot)


# -- parcels ---------------------------------------------------------------------------------------------------------


@native("i64(i64)", inline=True)
def bitmap_bytes(rows: int) -> int:
    """Bytes of a bitmap for this many rows and the one past the last, in whole words."""
    return shl((rows >> 6) + 1, 3)


@native("i64(i64, i64)")
def parcel_new(depot: int, capacity: int) -> int:
    """An empty parcel with room for `capacity` rows and the one past the last; 0 without memory."""
    columns = ld_i64(depot, DEPOT_COLUMNS)
    outs = PARCEL_WORDS
    tables = outs + columns * OUT_WORDS
    arrays = tables + columns * COLUMN_WORDS
    parcel = zalloc((arrays + (columns + 1) * ARRAY_WORDS) * 8)
    if parcel == 0:
        return 0
    st_i64(parcel, ITEM_KIND, PARCEL)
    st_i64(parcel, PARCEL_DEPOT, depot)
    st_i64(parcel, PARCEL_TABLE_WORD, parcel + tables * 8)
    st_i64(parcel, PARCEL_ARRAY, parcel + arrays * 8)
    st_i64(parcel, BATCH_PORTS, parcel + PARCEL_TABLE_WORD * 8)
    port = parcel + PARCEL_PORT * 8
    st_i64(port, PORT_COLUMNS, parcel + outs * 8)
    st_i64(port, PORT_COLUMN_COUNT, columns)
    for column in range(columns):
        st_i64(parcel + (outs + column * OUT_WORDS) * 8, OUT_STORAGE, ld_i64(ld_i64(depot, DEPOT_SPECS), column * 2))
    at_add(depot + DEPOT_USERS * 8, 1)
    if _make_room(depot, port, capacity) == 0:
        parcel_free(parcel)
        return 0
    parcel_clear(parcel)
    parcel_count(parcel)
    return parcel


@native("i64(i64, i64, i64)")
def _zero_resized(address: int, old: int, size: int) -> int:
    """`block_resize`, with all beyond the first `old` bytes zeroed."""
    block = block_resize(address, size)
    if block != 0:
        kept = old if address != 0 else 0
        fill(block + kept, 0, size - kept)
    return block


@native("i64(i64, i64, i64)")
def _make_room(depot: int, port: int, capacity: int) -> int:
    """Make room in the port's buffers for `capacity` rows and the one past them, keeping their content; 1, or 0.

    0 leaves some buffers larger than necessary, and the port unchanged.
    """
    bits = bitmap_bytes(ld_i64(port, PORT_CAPACITY))
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        nullable = ld_i64(ld_i64(depot, DEPOT_SPECS), column * 2 + 1)
        if _make_column_room(out, bits, capacity, nullable) == 0:
            return 0
    if ld_i64(depot, DEPOT_SEGMENTED) == 1 and ld_i64(port, PORT_SEGMENTS) == 0:
        segments = block_new(FIRST_SEGMENTS * SEGMENT_WORDS * 8, 0)
        if segments == 0:
            return 0
        st_i64(port, PORT_SEGMENTS, segments)
        st_i64(port, PORT_SEGMENT_CAPACITY, FIRST_SEGMENTS)
    if ld_i64(depot, DEPOT_MARKED) == 1:
        marks = block_resize(ld_i64(port, PORT_WATERMARKS), (capacity + 1) * 8)
        if marks == 0:
            return 0
        st_i64(port, PORT_WATERMARKS, marks)
    if ld_i64(depot, DEPOT_CAUSED) == 1:
        causes = block_resize(ld_i64(port, PORT_CAUSES), (capacity + 1) * 8)
        if causes == 0:
            return 0
        st_i64(port, PORT_CAUSES, causes)
    if ld_i64(depot, DEPOT_POSITIONED) == 1:
        positions = block_resize(ld_i64(port, PORT_POSITIONS), (capacity + 1) * POSITION_WORDS * 8)
        if positions == 0:
            return 0
        st_i64(port, PORT_POSITIONS, positions)
    st_i64(port, PORT_CAPACITY, capacity)
    return 1


@native("i64(i64, i64, i64, i64)")
def _make_column_room(out: int, bits: int, capacity: int, nullable: int) -> int:
    """`_make_room` for one column. bits: the current bytes of its bitmaps."""
    if nullable == 1:
        validity = _zero_resized(ld_i64(out, OUT_VALIDITY), bits, bitmap_bytes(capacity))
        if validity == 0:
            return 0
        st_i64(out, OUT_VALIDITY, validity)
    storage = ld_i64(out, OUT_STORAGE)
    if storage == BIT:
        values = _zero_resized(ld_i64(out, OUT_DATA), bits, bitmap_bytes(capacity))
        if values == 0:
            return 0
        st_i64(out, OUT_DATA, values)
        return 1
    if storage == UTF8:
        offsets = block_resize(ld_i64(out, OUT_OFFSETS), (capacity + 2) * 4)
        if offsets == 0:
            return 0
        st_i64(out, OUT_OFFSETS, offsets)
        if ld_i64(out, OUT_DATA) == 0:
            return port_make_bytes_room(out, capacity * FIRST_STRING_BYTES)
        return 1
    values = block_resize(ld_i64(out, OUT_DATA), (capacity + 1) * storage_bytes(storage))
    if values == 0:
        return 0
    st_i64(out, OUT_DATA, values)
    return 1


@native("i64(i64, i64)")
def port_make_bytes_room(out: int, size: int) -> int:
    """Make room in a VARCHAR column for `size` bytes and the slack; 1, or 0."""
    values = block_resize(ld_i64(out, OUT_DATA), size + STRING_SLACK_BYTES)
    if values == 0:
        return 0
    st_i64(out, OUT_DATA, values)
    st_i64(out, OUT_BYTES_CAPACITY, size)
    return 1


@native("i64(i64)")
def parcel_get(depot: int) -> int:
    """An empty parcel, an idle one if there is one; 0 without memory."""
    parcel = free_list_take(depot + DEPOT_FREE * 8)
    if parcel != 0:
        return parcel
    return parcel_new(depot, ld_i64(depot, DEPOT_CAPACITY))


@native("void(i64)")
def parcel_clear(parcel: int) -> None:
    """Remove the parcel's rows; its bitmaps become zero."""
    port = parcel + PARCEL_PORT * 8
    used = bitmap_bytes(max_i64(ld_i64(port, PORT_ROWS), ld_i64(parcel, PARCEL_DIRTY)))
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        if ld_i64(out, OUT_VALIDITY) != 0:
            fill(ld_i64(out, OUT_VALIDITY), 0, used)
        if ld_i64(out, OUT_STORAGE) == BIT:
            fill(ld_i64(out, OUT_DATA), 0, used)
        if ld_i64(out, OUT_STORAGE) == UTF8:
            st_i32(ld_i64(out, OUT_OFFSETS), 0, 0)
        st_i64(out, OUT_BYTES, 0)
    st_i64(port, PORT_ROWS, 0)
    st_i64(port, PORT_LIMIT, ld_i64(ld_i64(parcel, PARCEL_DEPOT), DEPOT_LIMIT))
    st_i64(port, PORT_SEGMENT_COUNT, 0)
    st_i64(parcel, PARCEL_DIRTY, 0)
    st_i64(parcel, ITEM_LAST, 0)
    st_i64(parcel, ITEM_LINK, 0)


@native("i64(i64)")
def parcel_count(parcel: int) -> int:
    """Update DEPOT_BYTES to what the parcel holds now; return its bytes."""
    port = parcel + PARCEL_PORT * 8
    capacity = ld_i64(port, PORT_CAPACITY)
    size = ld_i64(port, PORT_SEGMENT_CAPACITY) * SEGMENT_WORDS * 8
    if ld_i64(port, PORT_WATERMARKS) != 0:
        size += capacity * 8
    if ld_i64(port, PORT_CAUSES) != 0:
        size += capacity * 8
    if ld_i64(port, PORT_POSITIONS) != 0:
        size += capacity * POSITION_WORDS * 8
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        size += capacity * storage_bytes(ld_i64(out, OUT_STORAGE)) + ld_i64(out, OUT_BYTES_CAPACITY)
    at_add(ld_i64(parcel, PARCEL_DEPOT) + DEPOT_BYTES * 8, size - ld_i64(parcel, PARCEL_BYTES))
    st_i64(parcel, PARCEL_BYTES, size)
    return size


@native("void(i64)", export=True)
def parcel_return(parcel: int) -> None:
    """Make the parcel, whose rows are used up, idle in its depot, or free it. Any thread."""
    depot = ld_i64(parcel, PARCEL_DEPOT)
    size = parcel_count(parcel)
    if ld_i64(parcel, PARCEL_SINGLE) == 1 or size > LARGEST_IDLE_BYTES or at_load(depot + DEPOT_CLOSED * 8) == 1:
        parcel_free(parcel)
        return
    parcel_clear(parcel)
    at_add(depot + DEPOT_USERS * 8, 1)  # this call looks at the depot after the parcel may be gone
    if free_list_put(depot + DEPOT_FREE * 8, IDLE_PARCELS, parcel) == 0:
        parcel_free(parcel)
    elif at_load(depot + DEPOT_CLOSED * 8) == 1:
        _empty(depot)
    _leave(depot)


@native("void(i64)", export=True)
def parcel_free(parcel: int) -> None:
    """Free the parcel and its buffers; with the last one of a closed depot, the depot too."""
    depot = ld_i64(parcel, PARCEL_DEPOT)
    port = parcel + PARCEL_PORT * 8
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        block_drop(ld_i64(out, OUT_DATA))
        block_drop(ld_i64(out, OUT_VALIDITY))
        block_drop(ld_i64(out, OUT_OFFSETS))
    block_drop(ld_i64(port, PORT_SEGMENTS))
    block_drop(ld_i64(port, PORT_POSITIONS))
    block_drop(ld_i64(port, PORT_WATERMARKS))
    block_drop(ld_i64(port, PORT_CAUSES))
    at_add(depot + DEPOT_BYTES * 8, -ld_i64(parcel, PARCEL_BYTES))
    release(parcel)
    _leave(depot)


# -- ports: what kernels call ----------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def port_grow(out: int, port: int) -> int:
    """Make room in the port for twice the rows, with its content; 1, or 0 without memory. out: the kernel's ports."""
    words = out + port * PORT_WORDS * 8
    depot = ld_i64(ld_i64(ld_i64(out, -1), port), PARCEL_DEPOT)
    return _make_room(depot, words, ld_i64(words, PORT_CAPACITY) * 2)


@native("i64(i64, i64, i64, i64)", export=True)
def port_bytes(out: int, port: int, column: int, extra: int) -> int:
    """Make room in a VARCHAR column of the port for `extra` more bytes; 1, or 0 without memory or beyond 2 GiB."""
    words = ld_i64(out + port * PORT_WORDS * 8, PORT_COLUMNS) + column * OUT_WORDS * 8
    needed = ld_i64(words, OUT_BYTES) + extra
    if needed <= ld_i64(words, OUT_BYTES_CAPACITY):
        return 1
    if needed > 2147483647:
        return 0
    return port_make_bytes_room(words, max_i64(needed, ld_i64(words, OUT_BYTES_CAPACITY) * 2))


@native("i64(i64, i64, i64, i64)", export=True)
def port_segment(out: int, port: int, kind: int, watermark: int) -> int:
    """Add a segment to the port and return 1; 0 without memory.

    ROWS and LATE take the rows emitted since the last segment of rows (none: no segment). What is emitted before an
    event is on time. watermark: of a CLOSE.
    """
    words = out + port * PORT_WORDS * 8
    rows = ld_i64(words, PORT_ROWS)
    if kind > SEGMENT_LATE and segment_add(words, SEGMENT_ROWS, 0, rows) == 0:
        return 0
    return segment_add(words, kind, watermark, rows)


@native("i64(i64, i64, i64, i64)")
def segment_add(words: int, kind: int, watermark: int, rows: int) -> int:
    """`port_segment` for a port of `rows` rows, which need not all be there yet."""
    count = ld_i64(words, PORT_SEGMENT_COUNT)
    segments = ld_i64(words, PORT_SEGMENTS)
    lo = 0
    if count > 0:
        lo = ld_i64(segments + (count - 1) * SEGMENT_WORDS * 8, SEGMENT_HI)
    if kind <= SEGMENT_LATE and lo == rows:
        return 1
    if count == ld_i64(words, PORT_SEGMENT_CAPACITY):
        segments = block_resize(segments, count * 2 * SEGMENT_WORDS * 8)
        if segments == 0:
            return 0
        st_i64(words, PORT_SEGMENTS, segments)
        st_i64(words, PORT_SEGMENT_CAPACITY, count * 2)
    segment = segments + count * SEGMENT_WORDS * 8
    st_i64(segment, SEGMENT_KIND, kind)
    st_i64(segment, SEGMENT_PORT, 0)
    st_i64(segment, SEGMENT_LO, lo)
    st_i64(segment, SEGMENT_HI, rows if kind <= SEGMENT_LATE else lo)  # an event keeps the place the next rows begin at
    st_i64(segment, SEGMENT_WATERMARK, watermark)
    st_i64(words, PORT_SEGMENT_COUNT, count + 1)
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def port_failed(out: int, kind: int, state: int, batch: int) -> int:
    """Pass what came before a failure in a segment of this kind to the next stage, as far as there is memory.

    These are the rows emitted, and every closing time that the watermark had reached when it happened.
    """
    port_segment(out, 0, kind if kind == SEGMENT_LATE else SEGMENT_ROWS, 0)
    instant = ld_i64(state, STATE_ERROR_INSTANT)
    marks = ld_i64(batch, BATCH_WATERMARKS)
    if instant != NEVER:
        port_segment(out, 0, SEGMENT_CLOSE, instant - 1)
    elif marks != 0 and kind <= SEGMENT_LATE:
        port_segment(out, 0, SEGMENT_CLOSE, ld_i64(marks, ld_i64(state, STATE_ERROR_SERIAL)))
    return 0


# -- the parcel as the next stage's batch ----------------------------------------------------------------------------


@native("void(i64, i64)")
def parcel_to_batch(parcel: int, first: int) -> None:
    """Make the parcel's batch words and column table show its rows. first: the number of its first row in its stage."""
    port = parcel + PARCEL_PORT * 8
    table = ld_i64(parcel, PARCEL_TABLE_WORD)
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        entry = table + column * COLUMN_WORDS * 8
        st_i64(entry, COLUMN_DATA, ld_i64(out, OUT_DATA))
        st_i64(entry, COLUMN_VALIDITY, ld_i64(out, OUT_VALIDITY))
        st_i64(entry, COLUMN_OFFSETS, ld_i64(out, OUT_OFFSETS))
        st_i64(entry, COLUMN_ROWS, ld_i64(port, PORT_ROWS))
    st_i64(parcel, BATCH_ROWS, ld_i64(port, PORT_ROWS))
    st_i64(parcel, BATCH_SEGMENTS, ld_i64(port, PORT_SEGMENTS))
    st_i64(parcel, BATCH_SEGMENT_COUNT, ld_i64(port, PORT_SEGMENT_COUNT))
    st_i64(parcel, BATCH_FIRST, first)
    st_i64(parcel, BATCH_CAUSES, ld_i64(port, PORT_CAUSES))
    marks = ld_i64(port, PORT_WATERMARKS)
    st_i64(parcel, BATCH_WATERMARKS, marks - first * 8 if marks != 0 else 0)
    for number in range(ld_i64(port, PORT_SEGMENT_COUNT)):
        segment = ld_i64(port, PORT_SEGMENTS) + number * SEGMENT_WORDS * 8
        st_i64(segment, SEGMENT_SERIAL, first + ld_i64(segment, SEGMENT_LO))
