"""Rows of two sources that take turns: many of them in one segment, whose words give the place of each row.

A segment for each row, or for every few, costs more to write and to read than the rows: 48 bytes, and addresses that
the kernel has to find again. So while two sources of plain event times take turns, their rows are merged here row by
row. Longer runs of one source, late rows, and rows that close something are left to admission.py.

Sharing: none; see admission.py.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, max_i64, min_i64, st_i64
from cq.runtime.flow.admission_words import (
    ADMISSION_BATCH_ROWS,
    ADMISSION_BOUNDARY,
    ADMISSION_MINIMUM,
    ADMISSION_SERIAL,
    ADMISSION_SOURCE_TABLE,
    SOURCE_DELAY,
    SOURCE_ENDED,
    SOURCE_MAX,
    SOURCE_ROW,
    SOURCE_ROWS,
    SOURCE_TAKEN,
    SOURCE_TIMES,
    SOURCE_WATERMARK,
    SOURCE_WORDS,
)
from cq.runtime.flow.batch import add_segment, last_segment
from cq.runtime.layout.abi import (
    BATCH_MIXED,
    BATCH_ROWS,
    BATCH_WATERMARKS,
    BEFORE_ALL,
    MIXED,
    MIXED_PORT_SHIFT,
    NEVER,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LO,
    SEGMENT_PORT,
    SEGMENT_ROWS,
)

# A run of this many rows of one source becomes its own segment: in blocks of 64 a row costs 0.3 ns, merged about 2.
LONG_ROWS = 32


@native("i64(i64)")
def _merges(source: int) -> int:
    """1 if rows of the source can be merged here: it has a next one, and its watermark comes from a row."""
    maximum = ld_i64(source, SOURCE_MAX)
    if ld_i64(source, SOURCE_ENDED) != 0:
        return 0
    if ld_i64(source, SOURCE_ROW) == ld_i64(source, SOURCE_ROWS):
        return 0
    return 1 if maximum != BEFORE_ALL and maximum > BEFORE_ALL + ld_i64(source, SOURCE_DELAY) else 0


@native("i64(i64, i64, i64)")
def takes_turns(admission: int, number: int, limit: int) -> int:
    """1 if the two sources seem to take turns, beginning with this one, whose rows are next while below `limit`."""
    table = ld_i64(admission, ADMISSION_SOURCE_TABLE)
    source = table + number * SOURCE_WORDS * 8
    if _merges(table) == 0 or _merges(table + SOURCE_WORDS * 8) == 0:
        return 0
    last = ld_i64(source, SOURCE_ROW) + LONG_ROWS - 1
    return 1 if last >= ld_i64(source, SOURCE_ROWS) or ld_i64(ld_i64(source, SOURCE_TIMES), last) >= limit else 0


@native("i64(i64, i64)")
def mix_rows(admission: int, ticket: int) -> int:
    """Add the next rows of both sources, in their order, to the ticket, with the next serials; return how many.

    It goes on to the end of a loan or of the ticket, or up to a row that is late or may close something, or until
    LONG_ROWS have come from one source alone. Ties go to the first source.
    """
    one = ld_i64(admission, ADMISSION_SOURCE_TABLE)
    two = one + SOURCE_WORDS * 8
    one_times, two_times = ld_i64(one, SOURCE_TIMES), ld_i64(two, SOURCE_TIMES)
    one_delay, two_delay = ld_i64(one, SOURCE_DELAY), ld_i64(two, SOURCE_DELAY)
    one_max, two_max = ld_i64(one, SOURCE_MAX), ld_i64(two, SOURCE_MAX)
    one_row, two_row = ld_i64(one, SOURCE_ROW), ld_i64(two, SOURCE_ROW)
    one_rows, two_rows = ld_i64(one, SOURCE_ROWS), ld_i64(two, SOURCE_ROWS)
    places, marks = ld_i64(ticket, BATCH_MIXED), ld_i64(ticket, BATCH_WATERMARKS)
    minimum = ld_i64(admission, ADMISSION_MINIMUM)
    boundary = ld_i64(admission, ADMISSION_BOUNDARY)
    first = ld_i64(admission, ADMISSION_SERIAL)
    serial = first
    end = first + ld_i64(admission, ADMISSION_BATCH_ROWS) - ld_i64(ticket, BATCH_ROWS)
    alone = 0  # the latest rows of one source alone
    follows = True
    while follows:
        # for this many rows neither source need be checked for a next one
        begun = serial
        one_begun, two_begun = one_row, two_row
        room = min_i64(min_i64(end - serial, LONG_ROWS), min_i64(one_rows - one_row, two_rows - two_row))
        while serial < begun + room:
            one_time = ld_i64(one_times, one_row)
            two_time = ld_i64(two_times, two_row)
            one_key = max_i64(one_max, one_time)
            two_key = max_i64(two_max, two_time)
            if one_key <= two_key:
                reached = max_i64(minimum, min_i64(one_key - one_delay, two_max - two_delay))
                if one_time < one_max - one_delay or reached >= boundary or one_key >= NEVER - 1:
                    break
                st_i64(places, serial, one_row)
                one_max = one_key
                one_row += 1
            else:
                reached = max_i64(minimum, min_i64(two_key - two_delay, one_max - one_delay))
                if two_time < two_max - two_delay or reached >= boundary or two_key >= NEVER - 1:
                    break
                st_i64(places, serial, (1 << MIXED_PORT_SHIFT) + two_row)
                two_max = two_key
                two_row += 1
            minimum = reached
            if marks != 0:
                st_i64(marks, serial, minimum)
            serial += 1
        alone = alone + room if one_row == one_begun or two_row == two_begun else 0
        follows = serial == begun + room and room > 0 and alone < LONG_ROWS
    st_i64(admission, ADMISSION_MINIMUM, minimum)
    _took(one, one_row, one_max)
    _took(two, two_row, two_max)
    if serial > first:
        _add_mixed(admission, ticket, first, serial)
    return serial - first


@native("void(i64, i64, i64)")
def _took(source: int, row: int, maximum: int) -> None:
    """Advance the source to this next row; its times have reached the maximum."""
    st_i64(source, SOURCE_TAKEN, ld_i64(source, SOURCE_TAKEN) + row - ld_i64(source, SOURCE_ROW))
    st_i64(source, SOURCE_ROW, row)
    st_i64(source, SOURCE_MAX, maximum)
    st_i64(source, SOURCE_WATERMARK, maximum - ld_i64(source, SOURCE_DELAY))


@native("void(i64, i64, i64, i64)")
def _add_mixed(admission: int, ticket: int, first: int, serial: int) -> None:
    """Put the rows with these serials, up to the second, into a segment of the ticket."""
    segment = last_segment(ticket)
    if segment == 0 or ld_i64(segment, SEGMENT_KIND) != SEGMENT_ROWS or ld_i64(segment, SEGMENT_PORT) != MIXED:
        segment = add_segment(ticket, SEGMENT_ROWS, first)
        st_i64(segment, SEGMENT_PORT, MIXED)
        st_i64(segment, SEGMENT_LO, first)
    st_i64(segment, SEGMENT_HI, serial)
    st_i64(admission, ADMISSION_SERIAL, serial)
    st_i64(ticket, BATCH_ROWS, ld_i64(ticket, BATCH_ROWS) + serial - first)
