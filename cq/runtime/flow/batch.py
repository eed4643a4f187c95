"""Record batches on loan from Arrow, and the items that carry their rows through the engine.

Loan      one record batch as native code sees it: its ArrowArray (C Data Interface) and a table of columns. Tickets cut
          from it point into it. The feeder opens it and gives it back; no other thread calls foreign code.
Item      the content of queues: a ticket cut from loans, a parcel of rows between two stages, or a failure passing
          through. It begins with the words of a batch (abi.BATCH_*), so a kernel takes it unchanged.

Roles     the feeder opens loans and gives them back; the holders of admission and tickets use them.
Shared    LOAN_USERS  tickets and the admission that still need the loan.
I1        a loan is given back when it is unused, and only by the feeder.     tests: test_a_batch_is_given_back_once_*
I2        VARCHAR bytes of a loan are readable for STRING_SLACK_BYTES past their end.
                                                                          tests: test_strings_at_the_end_of_a_page_*
Progress  no call waits: the feeder checks a loan that is still in use again later.
Order     a ticket's last use of a loan comes before its `at_add(LOAN_USERS, -1)` (seq_cst); the feeder loads 0, then
          gives the loan back. A ticket is emptied before it is put home (pool.py).
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, at_add, at_load, call1, copy, fill, ld_i32, ld_i64, release, st_i64, zalloc
from cq.runtime.flow.arrow_words import (
    ARROW_BUFFERS,
    ARROW_CHILD_COUNT,
    ARROW_CHILDREN,
    ARROW_DICTIONARY,
    ARROW_LENGTH,
    ARROW_NULL_COUNT,
    ARROW_OFFSET,
    ARROW_RELEASE,
    ARROW_WORDS,
    BIT,
    BUFFERS_TEXTS,
    BUFFERS_VALIDITY,
    BUFFERS_VALUES,
    F64,
    I8,
    I16,
    I64,
    I128,
    UTF8,
)
from cq.runtime.flow.packing import open_lists
from cq.runtime.layout.abi import (
    BATCH_CAUSES,
    BATCH_PORTS,
    BATCH_ROWS,
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    BATCH_WORDS,
    COLUMN_BIT,
    COLUMN_CODES,
    COLUMN_DATA,
    COLUMN_OFFSETS,
    COLUMN_ROWS,
    COLUMN_TEXTS,
    COLUMN_VALIDITY,
    COLUMN_WORDS,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LO,
    SEGMENT_PORT,
    SEGMENT_SERIAL,
    SEGMENT_WATERMARK,
    SEGMENT_WORDS,
    STRING_SLACK_BYTES,
)
from cq.runtime.layout.words import Struct
from cq.runtime.queues.pool import pool_put

_loan = Struct("LOAN")
LOAN_USERS = _loan.word()
LOAN_ROWS = _loan.word()
LOAN_COLUMN_COUNT = _loan.word()
LOAN_COLUMNS = _loan.word()  # -> column table
LOAN_COPIES = _loan.word()  # -> one word a column: its copied bytes, or 0
LOAN_FIRST = _loan.word()  # number of its first row in its source
LOAN_ELEMENTS = _loan.word()  # -> one word a column of lists: the layout of their elements (packing.py)
_loan.skip(1)
LOAN_ARRAY = _loan.words(ARROW_WORDS)  # the ArrowArray itself
LOAN_WORDS = _loan.size()

PAGE_SHIFT = 12  # memory is mapped in pages of at least this size

_item = Struct("ITEM", after=BATCH_WORDS)
ITEM_KIND = _item.word()
ITEM_LAST = _item.word()  # 1: nothing comes after this item
ITEM_SERIAL = _item.word()  # serials below it have been admitted, up to and including this item
ITEM_LINK = _item.word()  # the next item of a list, or 0
ITEM_HOME = _item.word()  # ticket: its home in the pool of tickets
ITEM_LOANS = _item.word()  # ticket: -> one word a source: the loan its rows are from, or 0
ITEM_STAGE = _item.word()  # failure: the stage it happened in
ITEM_PORT = _item.word()  # parcel in a list: the port it came out of
ITEM_MARKS = _item.word()  # ticket: -> room for the watermarks of its rows, or 0
ITEM_MIXED = _item.word()  # ticket: -> room for where mixed rows are, or 0
ITEM_WORDS = _item.size()

TICKET, PARCEL, FAILURE = 0, 1, 2


@native("i64(i64)", inline=True)
def storage_bytes(storage: int) -> int:
    """Bytes of one value; 0 for BIT, 4 (its offset) for UTF8."""
    if storage == BIT:
        return 0
    if storage == I8:
        return 1
    if storage == I16:
        return 2
    if storage == I64:
        return 8
    if storage == F64:
        return 8
    if storage == I128:
        return 16
    return 4


# -- loans -----------------------------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def loan_new(columns: int) -> int:
    """A loan for a record batch of this many columns, its ArrowArray still empty; 0 without memory."""
    loan = zalloc((LOAN_WORDS + columns * (COLUMN_WORDS + 2)) * 8)
    if loan != 0:
        st_i64(loan, LOAN_COLUMN_COUNT, columns)
        st_i64(loan, LOAN_COLUMNS, loan + LOAN_WORDS * 8)
        st_i64(loan, LOAN_COPIES, loan + (LOAN_WORDS + columns * COLUMN_WORDS) * 8)
        st_i64(loan, LOAN_ELEMENTS, loan + (LOAN_WORDS + columns * (COLUMN_WORDS + 1)) * 8)
    return loan


@native("i64(i64, i64)", export=True)
def loan_open(loan: int, storages: int) -> int:
    """Make the column table show the exported ArrowArray, used once (by admission); 1, 0 without memory, or TOO_LARGE.

    storages: -> one word a column.  The batch has columns of exactly these layouts, as the caller has checked.
    If a kernel has arrays it may have lists: the loan has the layout of their elements.
    """
    array = loan + LOAN_ARRAY * 8
    rows = ld_i64(array, ARROW_LENGTH)
    st_i64(loan, LOAN_ROWS, rows)
    st_i64(loan, LOAN_USERS, 1)
    for column in range(ld_i64(loan, LOAN_COLUMN_COUNT)):
        child = ld_i64(ld_i64(array, ARROW_CHILDREN), column)
        table = ld_i64(loan, LOAN_COLUMNS) + column * COLUMN_WORDS * 8
        copied = ld_i64(loan, LOAN_COPIES) + column * 8
        offset = ld_i64(array, ARROW_OFFSET) + ld_i64(child, ARROW_OFFSET)
        st_i64(table, COLUMN_ROWS, rows)
        if rows > 0:
            layout = ld_i64(ld_i64(loan, LOAN_ELEMENTS), column)
            status = _open_column(child, table, copied, offset, rows, ld_i64(storages, column), layout)
            if status != 1:
                return status
    return 1


@native("i64(i64, i64, i64, i64, i64, i64, i64)")
def _open_column(child: int, table: int, copied: int, offset: int, rows: int, storage: int, layout: int) -> int:
    """Fill the words of one column; 1, 0 without memory for a copy of its bytes, or TOO_LARGE.

    The values of a VARCHAR column with a dictionary are the 32-bit numbers of its texts.
    layout: of the elements, if it has lists.
    """
    buffers = ld_i64(child, ARROW_BUFFERS)
    validity = ld_i64(buffers, BUFFERS_VALIDITY)
    if ld_i64(child, ARROW_NULL_COUNT) == 0:
        validity = 0
    st_i64(table, COLUMN_VALIDITY, validity)
    st_i64(table, COLUMN_BIT, offset)
    if ld_i64(child, ARROW_CHILD_COUNT) == 1:
        return open_lists(child, table, copied, offset, rows, layout)
    values = ld_i64(buffers, BUFFERS_VALUES) + offset * storage_bytes(storage)
    if storage != UTF8:
        st_i64(table, COLUMN_DATA, values)
        return 1
    dictionary = ld_i64(child, ARROW_DICTIONARY)
    if dictionary == 0:
        return _open_texts(buffers, values, rows, table, copied)
    texts = ld_i64(dictionary, ARROW_LENGTH)
    st_i64(table, COLUMN_CODES, values)
    st_i64(table, COLUMN_TEXTS, texts)
    own = ld_i64(dictionary, ARROW_BUFFERS)
    return _open_texts(own, ld_i64(own, BUFFERS_VALUES) + ld_i64(dictionary, ARROW_OFFSET) * 4, texts, table, copied)


@native("i64(i64, i64, i64, i64, i64)")
def _open_texts(buffers: int, offsets: int, count: int, table: int, copied: int) -> int:
    """Make the column table show this many texts; 1, or 0 without memory for a copy of their bytes."""
    st_i64(table, COLUMN_OFFSETS, offsets)
    data = ld_i64(buffers, BUFFERS_TEXTS)
    first = ld_i32(offsets, 0)
    length = ld_i32(offsets, count) - first
    end = data + first + length
    # a foreign buffer may end anywhere; the rest of its last page can still be read
    if length > 0 and (end - 1) >> PAGE_SHIFT == (end + STRING_SLACK_BYTES - 1) >> PAGE_SHIFT:
        st_i64(table, COLUMN_DATA, data)
        return 1
    block = alloc(length + STRING_SLACK_BYTES)
    if block == 0:
        return 0
    if length > 0:
        copy(block, data + first, length)
    st_i64(copied, 0, block)
    st_i64(table, COLUMN_DATA, block - first)
    return 1


@native("i64(i64)", export=True)
def loan_in_use(loan: int) -> int:
    """How many still use the loan."""
    return at_load(loan + LOAN_USERS * 8)


@native("void(i64)", export=True)
def loan_return(loan: int) -> None:
    """Give the record batch back to Arrow and free the loan. Feeder only, when it is unused."""
    for column in range(ld_i64(loan, LOAN_COLUMN_COUNT)):
        release(ld_i64(ld_i64(loan, LOAN_COPIES), column))
    array = loan + LOAN_ARRAY * 8
    callback = ld_i64(array, ARROW_RELEASE)
    if callback != 0:
        call1(callback, array)
    release(loan)


# -- tickets ---------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64)", export=True)
def ticket_new(home: int, sources: int, segments: int, marks: int, mixed: int) -> int:
    """A ticket, in its home, for rows of `sources` sources and at most `segments` segments; 0 without memory.

    marks: the number of rows whose watermarks it can carry.  mixed: the number of rows whose places it can hold.
    """
    head = ITEM_WORDS + sources * 3
    words = head + segments * SEGMENT_WORDS
    ticket = alloc((words + marks + mixed) * 8)
    if ticket != 0:
        fill(ticket, 0, head * 8)  # the rest is written before it is read
        st_i64(ticket, ITEM_HOME, home)
        st_i64(ticket, BATCH_PORTS, ticket + ITEM_WORDS * 8)
        st_i64(ticket, ITEM_LOANS, ticket + (ITEM_WORDS + sources) * 8)
        st_i64(ticket, BATCH_CAUSES, ticket + (ITEM_WORDS + sources * 2) * 8)
        st_i64(ticket, BATCH_SEGMENTS, ticket + head * 8)
        if marks > 0:
            st_i64(ticket, ITEM_MARKS, ticket + words * 8)
        if mixed > 0:
            st_i64(ticket, ITEM_MIXED, ticket + (words + marks) * 8)
        pool_put(home, ticket)
    return ticket


@native("void(i64, i64)", export=True)
def ticket_return(ticket: int, sources: int) -> None:
    """Release the ticket's loans, and put it in its home for the next rows."""
    loans = ld_i64(ticket, ITEM_LOANS)
    for source in range(sources):
        loan = ld_i64(loans, source)
        if loan != 0:
            at_add(loan + LOAN_USERS * 8, -1)
            st_i64(loans, source, 0)
            st_i64(ld_i64(ticket, BATCH_PORTS), source, 0)
    st_i64(ticket, BATCH_ROWS, 0)
    st_i64(ticket, BATCH_SEGMENT_COUNT, 0)
    st_i64(ticket, ITEM_LAST, 0)
    pool_put(ld_i64(ticket, ITEM_HOME), ticket)


@native("i64(i64)")
def last_segment(ticket: int) -> int:
    """Address of the ticket's last segment, or 0."""
    count = ld_i64(ticket, BATCH_SEGMENT_COUNT)
    if count == 0:
        return 0
    return ld_i64(ticket, BATCH_SEGMENTS) + (count - 1) * SEGMENT_WORDS * 8


@native("i64(i64, i64, i64)")
def add_segment(ticket: int, kind: int, serial: int) -> int:
    """Address of a new last segment of the ticket."""
    count = ld_i64(ticket, BATCH_SEGMENT_COUNT)
    segment = ld_i64(ticket, BATCH_SEGMENTS) + count * SEGMENT_WORDS * 8
    st_i64(ticket, BATCH_SEGMENT_COUNT, count + 1)
    st_i64(segment, SEGMENT_KIND, kind)
    st_i64(segment, SEGMENT_PORT, 0)
    st_i64(segment, SEGMENT_LO, 0)
    st_i64(segment, SEGMENT_HI, 0)
    st_i64(segment, SEGMENT_SERIAL, serial)
    st_i64(segment, SEGMENT_WATERMARK, 0)
    return segment


@native("void(i64)", export=True)
def ticket_drop(ticket: int) -> None:
    """Free the ticket. Its loans belong to the feeder."""
    release(ticket)
