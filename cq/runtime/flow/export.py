"""Parcels lent to Arrow by the C Data Interface, cut to size before.

The ArrowArray structures are in the parcel itself: parent, its one buffer, the list of its children, the children,
three buffers for each child. Arrow calls the release function when the last reference to the rows is gone, from
any thread; the parcel then returns to its depot. Buffers are lent as they are if the rows fill them well; otherwise
the rows are copied into a parcel of their size, so that a result of three rows does not hold memory for thousands.

Roles     the feeder lends a parcel; any thread may be the last reader, and calls the release function.
Shared    DEPOT_BYTES and what parcel.py lists.
Progress  no call waits.
Order     Arrow's release call may come from any thread: its reference count ensures that the last reader's loads come
          before it; what follows is `parcel_return` (parcel.py). DEPOT_BYTES is added to, and read for metrics only.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_add, copy, ld_i32, ld_i64, min_i64, st_i64
from cq.runtime.flow.arrow_words import (
    ARROW_BUFFER_COUNT,
    ARROW_BUFFERS,
    ARROW_CHILD_COUNT,
    ARROW_CHILDREN,
    ARROW_DICTIONARY,
    ARROW_LENGTH,
    ARROW_NULL_COUNT,
    ARROW_OFFSET,
    ARROW_PRIVATE,
    ARROW_RELEASE,
    ARROW_WORDS,
    BIT,
    BUFFERS_TEXTS,
    BUFFERS_VALIDITY,
    BUFFERS_VALUES,
    BUFFERS_WORDS,
    UTF8,
)
from cq.runtime.flow.batch import storage_bytes
from cq.runtime.flow.parcel import (
    DEPOT_BYTES,
    PARCEL_ARRAY,
    PARCEL_BYTES,
    PARCEL_DEPOT,
    PARCEL_DIRTY,
    PARCEL_PORT,
    PARCEL_SINGLE,
    bitmap_bytes,
    parcel_free,
    parcel_new,
    parcel_return,
    port_make_bytes_room,
)
from cq.runtime.layout.abi import (
    OUT_BYTES,
    OUT_BYTES_CAPACITY,
    OUT_DATA,
    OUT_OFFSETS,
    OUT_STORAGE,
    OUT_VALIDITY,
    OUT_WORDS,
    PORT_CAPACITY,
    PORT_COLUMN_COUNT,
    PORT_COLUMNS,
    PORT_LIMIT,
    PORT_ROWS,
)

# A parcel with less than a quarter of a ticket's rows is copied, a fuller one lent as it is: the copy cost 0.5 ns a row
# and page faults 1.8 ns where it was measured. Room beyond the limit is mostly untouched and so no memory in use.
SPARSE = 4


@native("i64(i64, i64)", export=True)
def parcel_export(parcel: int, callback: int) -> int:
    """The address of an ArrowArray (a struct of the parcel's columns) that owns the parcel from now on.

    callback: address of `parcel_arrow_release`.
    """
    port = parcel + PARCEL_PORT * 8
    columns = ld_i64(port, PORT_COLUMN_COUNT)
    rows = ld_i64(port, PORT_ROWS)
    parent = ld_i64(parcel, PARCEL_ARRAY)
    children = parent + (ARROW_WORDS + 1) * 8
    first = children + columns * 8
    buffers = first + columns * ARROW_WORDS * 8
    at_add(ld_i64(parcel, PARCEL_DEPOT) + DEPOT_BYTES * 8, -ld_i64(parcel, PARCEL_BYTES))
    st_i64(parcel, PARCEL_BYTES, 0)
    st_i64(parent, ARROW_WORDS, 0)
    _describe(parent, rows, 1, parent + ARROW_WORDS * 8, callback)
    st_i64(parent, ARROW_CHILD_COUNT, columns)
    st_i64(parent, ARROW_CHILDREN, children)
    st_i64(parent, ARROW_PRIVATE, parcel)
    for column in range(columns):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        child = first + column * ARROW_WORDS * 8
        own = buffers + column * BUFFERS_WORDS * 8
        st_i64(children, column, child)
        _describe(child, rows, 2, own, callback)
        st_i64(own, BUFFERS_VALIDITY, ld_i64(out, OUT_VALIDITY))
        if ld_i64(out, OUT_VALIDITY) != 0:
            st_i64(child, ARROW_NULL_COUNT, -1)
        if ld_i64(out, OUT_STORAGE) == UTF8:
            st_i64(child, ARROW_BUFFER_COUNT, 3)
            st_i64(own, BUFFERS_VALUES, ld_i64(out, OUT_OFFSETS))
            st_i64(own, BUFFERS_TEXTS, ld_i64(out, OUT_DATA))
        else:
            st_i64(own, BUFFERS_VALUES, ld_i64(out, OUT_DATA))
    return parent


@native("void(i64, i64, i64, i64, i64)")
def _describe(array: int, rows: int, count: int, buffers: int, callback: int) -> None:
    """An ArrowArray without NULLs and children that owns nothing."""
    st_i64(array, ARROW_LENGTH, rows)
    st_i64(array, ARROW_NULL_COUNT, 0)
    st_i64(array, ARROW_OFFSET, 0)
    st_i64(array, ARROW_BUFFER_COUNT, count)
    st_i64(array, ARROW_CHILD_COUNT, 0)
    st_i64(array, ARROW_BUFFERS, buffers)
    st_i64(array, ARROW_CHILDREN, 0)
    st_i64(array, ARROW_DICTIONARY, 0)
    st_i64(array, ARROW_RELEASE, callback)
    st_i64(array, ARROW_PRIVATE, 0)


@native("void(i64)", export=True)
def parcel_arrow_release(array: int) -> None:
    """Arrow calls this when it no longer needs the rows. array: the structure as Arrow holds it, moved or not."""
    st_i64(array, ARROW_RELEASE, 0)
    for child in range(ld_i64(array, ARROW_CHILD_COUNT)):
        st_i64(ld_i64(ld_i64(array, ARROW_CHILDREN), child), ARROW_RELEASE, 0)
    parcel = ld_i64(array, ARROW_PRIVATE)
    if parcel != 0:
        parcel_return(parcel)


# -- cut to size -----------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def parcel_truncate(parcel: int, rows: int) -> int:
    """Cut the parcel to at most `rows` rows; return how many it has."""
    port = parcel + PARCEL_PORT * 8
    if ld_i64(port, PORT_ROWS) > rows:
        st_i64(parcel, PARCEL_DIRTY, ld_i64(port, PORT_ROWS))
        st_i64(port, PORT_ROWS, rows)
    return ld_i64(port, PORT_ROWS)


@native("i64(i64)")
def parcel_compact(parcel: int) -> int:
    """A parcel with the same rows and little spare room: the given one, or a new one after returning the given one.

    Without memory for a new one: the given one.
    """
    port = parcel + PARCEL_PORT * 8
    rows = ld_i64(port, PORT_ROWS)
    if rows * SPARSE >= min_i64(ld_i64(port, PORT_LIMIT), ld_i64(port, PORT_CAPACITY)):
        return parcel
    small = parcel_new(ld_i64(parcel, PARCEL_DEPOT), rows)
    if small == 0:
        return parcel
    st_i64(small, PARCEL_SINGLE, 1)
    target = small + PARCEL_PORT * 8
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        if (
            _copy_column(
                ld_i64(target, PORT_COLUMNS) + column * OUT_WORDS * 8,
                ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8,
                rows,
            )
            == 0
        ):
            parcel_free(small)
            return parcel
    st_i64(target, PORT_ROWS, rows)
    parcel_return(parcel)
    return small


@native("i64(i64, i64, i64)")
def _copy_column(target: int, source: int, rows: int) -> int:
    """Copy the first `rows` values of an output column to another with room for them; 1, or 0 without memory."""
    storage = ld_i64(source, OUT_STORAGE)
    if ld_i64(source, OUT_VALIDITY) != 0:
        copy(ld_i64(target, OUT_VALIDITY), ld_i64(source, OUT_VALIDITY), bitmap_bytes(rows))
    if storage == UTF8:
        size = ld_i32(ld_i64(source, OUT_OFFSETS), rows)
        if size > ld_i64(target, OUT_BYTES_CAPACITY) and port_make_bytes_room(target, size) == 0:
            return 0
        copy(ld_i64(target, OUT_OFFSETS), ld_i64(source, OUT_OFFSETS), (rows + 1) * 4)
        copy(ld_i64(target, OUT_DATA), ld_i64(source, OUT_DATA), size)
        st_i64(target, OUT_BYTES, size)
    elif storage == BIT:
        copy(ld_i64(target, OUT_DATA), ld_i64(source, OUT_DATA), bitmap_bytes(rows))
    else:
        copy(ld_i64(target, OUT_DATA), ld_i64(source, OUT_DATA), rows * storage_bytes(storage))
    return 1
