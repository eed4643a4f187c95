"""Admission: the rows of all sources become one sequence of tickets, with serials, lateness and closing times.

The order is (running maximum of the source's event time, source, row): each source keeps its own order. To proceed, the
next row or the end of every source must be known, so nothing depends on timing. A row is (1) tested for lateness
against its source's watermark, (2) moves that watermark; when the minimum over all sources passes a closing time of
some grid a CLOSE goes first; (3) then the row itself. A source's end comes right after its last row. If closing times
depend on data, tickets carry the minimum in force at each row, and a CLOSE appears only without a row: at the end of a
source that moves the minimum. While two sources take turns, mixed.py merges their rows.

A source may be declared silent: right after its last row, like an end. Then nothing waits for it. When it speaks again
its maximum is at least what lets its watermark be MINIMUM: rows below are late. Its feeder ensures that all sources
have been admitted as far as they can be before it speaks, so that again nothing depends on timing.

Roles     one worker at a time, with ADMISSION_BUSY. The feeder pushes loans and, last, END_OF_SOURCE into SOURCE_RING.
Shared    ADMISSION_BUSY  try-lock.  ADMISSION_PAUSED  no further ticket is cut while it is 1.  ADMISSION_INTERVAL
          stored by the worker that adapts the length of tickets; loaded before every ticket, and any value seen will
          do.
I1        serials are given once, in merge order, whatever the record batches and tickets. tests: test_merge_order_is_*
I2        MINIMUM never falls, and no closing time is passed without a CLOSE.            tests: test_every_passed_*
          The watermarks of a ticket's rows are the minimum at each.                     tests: test_watermarks_*
I3        a ticket has at most ADMISSION_BATCH_ROWS rows and one loan per source.       tests: test_a_ticket_*
Progress  no call waits: if the next row of a source is not known yet, nothing is cut, and pushing the next loan wakes
          workers.
Order     all words but five are plain, and belong to the holder of ADMISSION_BUSY (worker.py). ADMISSION_ENDED is
          stored (seq_cst) before BUSY is given back; a worker that reads 1 without the lock finds nothing to admit, and
          that stays so. ADMISSION_PAUSED is loaded before every ticket. LOAN_USERS: raised while admission still uses
          the loan itself, so it is never 0 in between. Tickets pass by the ring of the first stage, and come back by
          their pool.
Source    Viper/ScaleGate: the threads that are there merge in the channel; we merge rows, not tuples.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    add_ovf,
    at_add,
    at_load,
    at_store,
    ld_i8,
    ld_i16,
    ld_i32,
    ld_i64,
    max_i64,
    min_i64,
    mul_ovf,
    pick,
    prefetch,
    shl,
    st_i64,
    sub_ovf,
    wadd,
    wmul,
    wsub,
)
from cq.runtime.flow.admission_words import (
    ADMISSION_BATCH_ROWS,
    ADMISSION_BOUNDARY,
    ADMISSION_ENDED,
    ADMISSION_GRID_TABLE,
    ADMISSION_GRIDS,
    ADMISSION_INTERVAL,
    ADMISSION_LATE_ROWS,
    ADMISSION_LOANS,
    ADMISSION_MARKED,
    ADMISSION_MINIMUM,
    ADMISSION_NEXT_TICKET,
    ADMISSION_OUTPUT,
    ADMISSION_PAUSED,
    ADMISSION_SEGMENTS,
    ADMISSION_SERIAL,
    ADMISSION_SOURCE_TABLE,
    ADMISSION_SOURCES,
    ADMISSION_TICKETS,
    BREAK_OF_SOURCE,
    BROKEN,
    END_OF_SOURCE,
    SILENCE_OF_SOURCE,
    SILENT,
    SOURCE_DELAY,
    SOURCE_EMPTY,
    SOURCE_ENDED,
    SOURCE_LOAN,
    SOURCE_MAX,
    SOURCE_PLAIN,
    SOURCE_RING,
    SOURCE_ROW,
    SOURCE_ROWS,
    SOURCE_SCALE,
    SOURCE_STORAGE,
    SOURCE_TAKEN,
    SOURCE_TIME_COLUMN,
    SOURCE_TIMED,
    SOURCE_TIMES,
    SOURCE_WATERMARK,
    SOURCE_WORDS,
)
from cq.runtime.flow.arrow_words import I8, I16, I32
from cq.runtime.flow.batch import (
    ITEM_HOME,
    ITEM_LAST,
    ITEM_LOANS,
    ITEM_MARKS,
    ITEM_MIXED,
    ITEM_SERIAL,
    LOAN_COLUMNS,
    LOAN_FIRST,
    LOAN_ROWS,
    LOAN_USERS,
    add_segment,
    last_segment,
)
from cq.runtime.flow.grids import next_on_grids
from cq.runtime.flow.mixed import mix_rows, takes_turns
from cq.runtime.flow.watermarks import marks_fill, marks_follow
from cq.runtime.layout.abi import (
    BATCH_CAUSES,
    BATCH_ENDED,
    BATCH_FIRST,
    BATCH_MIXED,
    BATCH_PORTS,
    BATCH_ROWS,
    BATCH_SEGMENT_COUNT,
    BATCH_TICKET,
    BATCH_WATERMARKS,
    BEFORE_ALL,
    CAUSE_SOURCE_SHIFT,
    COLUMN_DATA,
    COLUMN_WORDS,
    NEVER,
    SEGMENT_CLOSE,
    SEGMENT_END,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LATE,
    SEGMENT_LO,
    SEGMENT_PORT,
    SEGMENT_ROWS,
    SEGMENT_WATERMARK,
)
from cq.runtime.queues.pool import pool_put, pool_take
from cq.runtime.queues.ring import ring_has_room, ring_pop, ring_push

MOST_ENDED = 63  # the most sources that BATCH_ENDED has bits for
WAIT = -1  # some source's next row is not known yet
ALL_ENDED = -2

BLOCK_ROWS = 64  # times tested together: long enough to vectorise, short enough that a late row costs little
LINES_A_BLOCK = 8  # of 64 bytes
AHEAD_BYTES = 4096  # the processor's own prefetching restarts in every page and for every ticket
SEGMENTS_A_STEP = 4  # room one step needs: CLOSE of a source's end, CLOSE of a row, the row, the next kind


# -- time ------------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def event_time(source: int, row: int) -> int:
    """Event time of a row of the loan in microseconds, strictly between BEFORE_ALL and NEVER."""
    times = ld_i64(source, SOURCE_TIMES)
    if ld_i64(source, SOURCE_PLAIN) == 1:
        return _bounded(ld_i64(times, row))
    storage = ld_i64(source, SOURCE_STORAGE)
    if storage == I32:
        value = ld_i32(times, row)
    elif storage == I16:
        value = ld_i16(times, row)
    elif storage == I8:
        value = ld_i8(times, row)
    else:
        value = ld_i64(times, row)
    scale = ld_i64(source, SOURCE_SCALE)
    scaled = wmul(value, scale)
    if mul_ovf(value, scale):
        scaled = NEVER - 1 if (value < 0) == (scale < 0) else BEFORE_ALL + 1
    return _bounded(scaled)


@native("i64(i64)")
def _bounded(instant: int) -> int:
    """The instant, kept strictly between BEFORE_ALL and NEVER."""
    return min_i64(max_i64(instant, BEFORE_ALL + 1), NEVER - 1)


@native("i64(i64, i64)")
def watermark_at(maximum: int, delay: int) -> int:
    """Watermark of a source whose latest event time is `maximum`."""
    if maximum == BEFORE_ALL:
        return BEFORE_ALL
    return BEFORE_ALL + 1 if sub_ovf(maximum, delay) else max_i64(wsub(maximum, delay), BEFORE_ALL + 1)


# -- tickets under construction --------------------------------------------------------------------------------------


@native("void(i64, i64, i64, i64, i64)")
def _add_rows(admission: int, ticket: int, kind: int, number: int, count: int) -> None:
    """Add the next `count` rows of a source to the ticket, with the next serials."""
    source = ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8
    row = ld_i64(source, SOURCE_ROW)
    serial = ld_i64(admission, ADMISSION_SERIAL)
    segment = last_segment(ticket)
    if (
        segment == 0
        or ld_i64(segment, SEGMENT_KIND) != kind
        or ld_i64(segment, SEGMENT_PORT) != number
        or ld_i64(segment, SEGMENT_HI) != row
    ):
        segment = add_segment(ticket, kind, serial)
        st_i64(segment, SEGMENT_PORT, number)
        st_i64(segment, SEGMENT_LO, row)
    st_i64(segment, SEGMENT_HI, row + count)
    st_i64(source, SOURCE_ROW, row + count)
    st_i64(source, SOURCE_TAKEN, ld_i64(source, SOURCE_TAKEN) + count)
    st_i64(admission, ADMISSION_SERIAL, serial + count)
    st_i64(ticket, BATCH_ROWS, ld_i64(ticket, BATCH_ROWS) + count)


@native("i64(i64, i64)")
def _boundary(admission: int, instant: int) -> int:
    """The first closing time after `instant`; NEVER if no grid has one."""
    return next_on_grids(ld_i64(admission, ADMISSION_GRID_TABLE), ld_i64(admission, ADMISSION_GRIDS), instant)


@native("void(i64, i64, i64, i64)")
def _advance(admission: int, ticket: int, minimum: int, unmarked: int) -> None:
    """Raise MINIMUM to at least `minimum`; add a CLOSE to the ticket if that passed a closing time.

    unmarked: 1: add a CLOSE anyway if MINIMUM moved, because no row reports it.
    """
    if minimum <= ld_i64(admission, ADMISSION_MINIMUM):
        return
    st_i64(admission, ADMISSION_MINIMUM, minimum)
    if unmarked == 1 or minimum >= ld_i64(admission, ADMISSION_BOUNDARY):
        segment = add_segment(ticket, SEGMENT_CLOSE, ld_i64(admission, ADMISSION_SERIAL))
        st_i64(segment, SEGMENT_WATERMARK, minimum)
        st_i64(admission, ADMISSION_BOUNDARY, _boundary(admission, minimum))


@native("i64(i64, i64)")
def _minimum_without(admission: int, excluded: int) -> int:
    """The lowest watermark of the timed sources that may have rows, except one; NEVER if there are none."""
    found = NEVER
    table = ld_i64(admission, ADMISSION_SOURCE_TABLE)
    for number in range(ld_i64(admission, ADMISSION_SOURCES)):
        source = table + number * SOURCE_WORDS * 8
        if number != excluded and ld_i64(source, SOURCE_TIMED) == 1 and has_rows(source) == 1:
            found = min_i64(found, ld_i64(source, SOURCE_WATERMARK))
    return found


@native("i64(i64)", inline=True)
def has_rows(source: int) -> int:
    """1 unless the source has ended or is silent."""
    return 0 if ld_i64(source, SOURCE_ENDED) == 1 or ld_i64(source, SOURCE_ENDED) == SILENT else 1


@native("void(i64, i64)")
def _speak(admission: int, source: int) -> None:
    """End the silence of a source; its watermark is at least MINIMUM."""
    if ld_i64(source, SOURCE_ENDED) != SILENT:
        return
    st_i64(source, SOURCE_ENDED, 0)
    minimum = ld_i64(admission, ADMISSION_MINIMUM)
    if ld_i64(source, SOURCE_TIMED) == 1 and minimum != BEFORE_ALL:
        delay = ld_i64(source, SOURCE_DELAY)
        least = NEVER - 1 if add_ovf(minimum, delay) else wadd(minimum, delay)
        st_i64(source, SOURCE_MAX, max_i64(ld_i64(source, SOURCE_MAX), least))
        st_i64(source, SOURCE_WATERMARK, watermark_at(ld_i64(source, SOURCE_MAX), delay))


# -- which source is next --------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)")
def _refill(admission: int, ticket: int, source: int) -> int:
    """1 if the source has a next row, has ended or is silent, 0 if that is not known yet.

    An end and a silence may close windows.
    """
    while ld_i64(source, SOURCE_ROW) == ld_i64(source, SOURCE_ROWS) and (
        ld_i64(source, SOURCE_ENDED) == 0 or ld_i64(source, SOURCE_ENDED) == SILENT
    ):
        if ld_i64(source, SOURCE_LOAN) != 0:
            at_add(ld_i64(source, SOURCE_LOAN) + LOAN_USERS * 8, -1)
            st_i64(source, SOURCE_LOAN, 0)
            st_i64(source, SOURCE_ROW, 0)
            st_i64(source, SOURCE_ROWS, 0)
        loan = ring_pop(ld_i64(source, SOURCE_RING))
        if loan == 0:
            return 1 - has_rows(source)
        st_i64(admission, ADMISSION_LOANS, ld_i64(admission, ADMISSION_LOANS) + 1)
        if loan == BREAK_OF_SOURCE:
            _speak(admission, source)
            st_i64(source, SOURCE_ENDED, BROKEN)
        elif loan == END_OF_SOURCE or loan == SILENCE_OF_SOURCE:
            st_i64(source, SOURCE_ENDED, 1 if loan == END_OF_SOURCE else SILENT)
            minimum = _minimum_without(admission, -1)
            if ld_i64(source, SOURCE_TIMED) == 1 and minimum < NEVER:
                _advance(admission, ticket, minimum, ld_i64(admission, ADMISSION_MARKED))
        else:
            _speak(admission, source)
            st_i64(source, SOURCE_LOAN, loan)
            st_i64(source, SOURCE_ROWS, ld_i64(loan, LOAN_ROWS))
            if ld_i64(source, SOURCE_TIMED) == 1:
                column = ld_i64(loan, LOAN_COLUMNS) + ld_i64(source, SOURCE_TIME_COLUMN) * COLUMN_WORDS * 8
                st_i64(source, SOURCE_TIMES, ld_i64(column, COLUMN_DATA))
    return 1


@native("(i64, i64)(i64, i64)")
def _next_source(admission: int, ticket: int) -> tuple[int, int]:
    """The source whose row is next, and the event time below which it stays next; or WAIT or ALL_ENDED.

    Silent sources are left out; if there are no others, one of them has to speak.
    """
    best = ALL_ENDED
    best_key = NEVER
    limit = NEVER
    waiting = 0
    silent = 0
    table = ld_i64(admission, ADMISSION_SOURCE_TABLE)
    for number in range(ld_i64(admission, ADMISSION_SOURCES)):
        source = table + number * SOURCE_WORDS * 8
        if _refill(admission, ticket, source) == 0:
            waiting = 1
        elif ld_i64(source, SOURCE_ENDED) == SILENT:
            silent = 1
        elif ld_i64(source, SOURCE_ENDED) != 1:
            key = BEFORE_ALL
            if ld_i64(source, SOURCE_ENDED) == BROKEN:  # an unreadable row has its place in the order
                key = max_i64(ld_i64(source, SOURCE_MAX), BEFORE_ALL + ld_i64(source, SOURCE_TIMED))
            elif ld_i64(source, SOURCE_TIMED) == 1:
                key = max_i64(ld_i64(source, SOURCE_MAX), event_time(source, ld_i64(source, SOURCE_ROW)))
            if best < 0:
                best = number
                best_key = key
            elif key < best_key:  # a tie stays with the source that comes first
                limit = best_key
                best = number
                best_key = key
            else:
                limit = min_i64(limit, key + 1)
    if waiting == 1 or (best < 0 and silent == 1):
        return WAIT, 0
    if best >= 0 and ld_i64(table + best * SOURCE_WORDS * 8, SOURCE_ENDED) == BROKEN:
        return WAIT, 0
    return best, limit


# -- taking rows -----------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", inline=True)
def marks_of_next(admission: int, ticket: int) -> int:
    """Where the watermark of the next row goes; 0 if the ticket carries none."""
    if ld_i64(ticket, ITEM_MARKS) == 0:
        return 0
    return ld_i64(ticket, BATCH_WATERMARKS) + ld_i64(admission, ADMISSION_SERIAL) * 8


@native("void(i64, i64, i64, i64, i64)")
def _take_row(admission: int, ticket: int, number: int, instant: int, others: int) -> None:
    """Take one row, whatever it causes: lateness, watermark, CLOSE, the row."""
    source = ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8
    kind = SEGMENT_ROWS
    if instant < ld_i64(source, SOURCE_WATERMARK):
        kind = SEGMENT_LATE
        st_i64(admission, ADMISSION_LATE_ROWS, ld_i64(admission, ADMISSION_LATE_ROWS) + 1)
    if instant > ld_i64(source, SOURCE_MAX):
        mark = watermark_at(instant, ld_i64(source, SOURCE_DELAY))
        st_i64(source, SOURCE_MAX, instant)
        st_i64(source, SOURCE_WATERMARK, mark)
        _advance(admission, ticket, min_i64(mark, others), 0)
    marks = marks_of_next(admission, ticket)
    if marks != 0:
        st_i64(marks, 0, ld_i64(admission, ADMISSION_MINIMUM))
    _add_rows(admission, ticket, kind, number, 1)


@native("i64(i64, i64, i64)")
def _block_rises(times: int, maximum: int, stop: int) -> int:
    """1 if BLOCK_ROWS times never fall, from `maximum` on, and stay below `stop`: none of them can be late."""
    falls = 0
    for row in range(1, BLOCK_ROWS):
        falls += pick(ld_i64(times, row) < ld_i64(times, row - 1), 1, 0)
    return 1 if falls == 0 and ld_i64(times, 0) >= maximum and ld_i64(times, BLOCK_ROWS - 1) < stop else 0


@native("(i64, i64)(i64)")
def _block_range(times: int) -> tuple[int, int]:
    """The lowest and the highest of BLOCK_ROWS times."""
    low = ld_i64(times, 0)
    high = low
    for row in range(1, BLOCK_ROWS):
        low = min_i64(low, ld_i64(times, row))
        high = max_i64(high, ld_i64(times, row))
    return low, high


@native("(i64, i64)(i64, i64, i64, i64, i64, i64)")
def _in_order(times: int, row: int, end: int, maximum: int, delay: int, stop: int) -> tuple[int, int]:
    """A row of [row, end) before which none is late or not below `stop`, and the maximum of the times before it.

    Whole blocks are tested at once (0.2 ns a row instead of 1 ns); the first block that fails goes row by row.
    The times come from memory: prefetched they cost 0.29 ns a row, not 0.33 to 0.63 (depending on the page size).
    """
    while row + BLOCK_ROWS <= end and ld_i64(times, row + BLOCK_ROWS - 1) < stop:
        for line in range(LINES_A_BLOCK):
            prefetch(times + row * 8 + AHEAD_BYTES + line * 64)
        if delay == 0:
            if _block_rises(times + row * 8, maximum, stop) == 0:
                break
            maximum = ld_i64(times, row + BLOCK_ROWS - 1)
        else:
            low, high = _block_range(times + row * 8)
            high = max_i64(high, maximum)
            if low < high - delay or high >= stop:
                break
            maximum = high
        row += BLOCK_ROWS
    end = min_i64(end, row + BLOCK_ROWS)
    floor = maximum - delay
    while row < end:
        instant = ld_i64(times, row)
        if instant < floor or instant >= stop:
            break
        maximum = max_i64(maximum, instant)
        floor = maximum - delay
        row += 1
    return row, maximum


@native("void(i64, i64, i64, i64)")
def _take_rows(admission: int, ticket: int, number: int, limit: int) -> None:
    """Take rows of one source while they are next (event time below `limit`), to the end of the ticket or loan."""
    source = ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8
    room = ld_i64(admission, ADMISSION_BATCH_ROWS) - ld_i64(ticket, BATCH_ROWS)
    end = min_i64(ld_i64(source, SOURCE_ROWS), ld_i64(source, SOURCE_ROW) + room)
    if ld_i64(source, SOURCE_TIMED) == 0:
        marks = marks_of_next(admission, ticket)
        if marks != 0:
            marks_fill(marks, end - ld_i64(source, SOURCE_ROW), ld_i64(admission, ADMISSION_MINIMUM))
        _add_rows(admission, ticket, SEGMENT_ROWS, number, end - ld_i64(source, SOURCE_ROW))
        return
    others = _minimum_without(admission, number)
    delay = ld_i64(source, SOURCE_DELAY)
    most = ld_i64(admission, ADMISSION_SEGMENTS) - SEGMENTS_A_STEP
    while ld_i64(source, SOURCE_ROW) < end and ld_i64(ticket, BATCH_SEGMENT_COUNT) <= most:
        row = ld_i64(source, SOURCE_ROW)
        maximum = ld_i64(source, SOURCE_MAX)
        if ld_i64(source, SOURCE_PLAIN) == 1 and maximum != BEFORE_ALL and maximum > BEFORE_ALL + delay:
            boundary = ld_i64(admission, ADMISSION_BOUNDARY)
            stop = limit
            if others >= boundary:
                stop = min_i64(stop, NEVER - 1 if add_ovf(boundary, delay) else wadd(boundary, delay))
            times = ld_i64(source, SOURCE_TIMES)
            before = maximum
            upto, maximum = _in_order(times, row, end, maximum, delay, stop)
            if upto > row:
                marks = marks_of_next(admission, ticket)
                if marks != 0:
                    minimum = ld_i64(admission, ADMISSION_MINIMUM)
                    marks_follow(marks, upto - row, times + row * 8, before, delay, others, minimum)
                st_i64(source, SOURCE_MAX, maximum)
                st_i64(source, SOURCE_WATERMARK, maximum - delay)
                st_i64(
                    admission,
                    ADMISSION_MINIMUM,
                    max_i64(ld_i64(admission, ADMISSION_MINIMUM), min_i64(maximum - delay, others)),
                )
                _add_rows(admission, ticket, SEGMENT_ROWS, number, upto - row)
        if ld_i64(source, SOURCE_ROW) < end:
            instant = event_time(source, ld_i64(source, SOURCE_ROW))
            if instant >= limit:
                return
            _take_row(admission, ticket, number, instant, others)


@native("void(i64, i64)")
def _end(admission: int, ticket: int) -> None:
    """Add all remaining closing times, then END."""
    segment = add_segment(ticket, SEGMENT_CLOSE, ld_i64(admission, ADMISSION_SERIAL))
    st_i64(segment, SEGMENT_WATERMARK, NEVER)
    add_segment(ticket, SEGMENT_END, ld_i64(admission, ADMISSION_SERIAL))
    st_i64(admission, ADMISSION_MINIMUM, NEVER)
    st_i64(admission, ADMISSION_BOUNDARY, NEVER)
    at_store(admission + ADMISSION_ENDED * 8, 1)
    st_i64(ticket, ITEM_LAST, 1)


@native("void(i64, i64)")
def _fill(admission: int, ticket: int) -> None:
    """Fill the ticket with all that can be admitted now and belongs in it."""
    rows = ld_i64(admission, ADMISSION_BATCH_ROWS)
    most = ld_i64(admission, ADMISSION_SEGMENTS) - SEGMENTS_A_STEP - ld_i64(admission, ADMISSION_SOURCES)
    while ld_i64(ticket, BATCH_ROWS) < rows and ld_i64(ticket, BATCH_SEGMENT_COUNT) <= most:
        number, limit = _next_source(admission, ticket)
        if number == WAIT:
            return
        if number == ALL_ENDED:
            _end(admission, ticket)
            return
        if _lent(admission, ticket, number) == 0:
            return
        taken = 0
        mixes = ld_i64(ticket, ITEM_MIXED) != 0 and takes_turns(admission, number, limit) == 1
        if mixes and _lent(admission, ticket, 1 - number) == 1:
            taken = mix_rows(admission, ticket)
        if taken == 0:
            _take_rows(admission, ticket, number, limit)


@native("void(i64, i64)")
def _have_columns(admission: int, ticket: int) -> None:
    """Give every source columns in the ticket, even if it lends no rows: readers of several sources look for all."""
    for number in range(ld_i64(admission, ADMISSION_SOURCES)):
        source = ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8
        st_i64(ld_i64(ticket, BATCH_PORTS), number, ld_i64(source, SOURCE_EMPTY))


@native("i64(i64, i64, i64)")
def _lent(admission: int, ticket: int, number: int) -> int:
    """1 and the current loan of a source belongs to the ticket; 0 if the ticket has another one."""
    loan = ld_i64(ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8, SOURCE_LOAN)
    loans = ld_i64(ticket, ITEM_LOANS)
    if ld_i64(loans, number) == 0:
        at_add(loan + LOAN_USERS * 8, 1)
        st_i64(loans, number, loan)
        st_i64(ld_i64(ticket, BATCH_PORTS), number, ld_i64(loan, LOAN_COLUMNS))
        first = (number << CAUSE_SOURCE_SHIFT) + ld_i64(loan, LOAN_FIRST)
        st_i64(ld_i64(ticket, BATCH_CAUSES), number, first)
    return 1 if ld_i64(loans, number) == loan else 0


@native("i64(i64)")
def _ended(admission: int) -> int:
    """The sources without more rows, as bits of BATCH_ENDED."""
    found = 0
    for number in range(min_i64(ld_i64(admission, ADMISSION_SOURCES), MOST_ENDED)):
        source = ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8
        if ld_i64(source, SOURCE_ENDED) == 1:
            found |= shl(1, number)
    return found


@native("i64(i64, i64)", export=True)
def admit(admission: int, most: int) -> int:
    """Cut and push at most `most` tickets; return how many. The caller holds ADMISSION_BUSY."""
    output = ld_i64(admission, ADMISSION_OUTPUT)
    made = 0
    while made < most and at_load(admission + ADMISSION_ENDED * 8) == 0:
        if at_load(admission + ADMISSION_PAUSED * 8) == 1 or ring_has_room(output) == 0:
            return made
        ticket = pool_take(ld_i64(admission, ADMISSION_TICKETS))
        if ticket == 0:
            return made
        interval = at_load(admission + ADMISSION_INTERVAL * 8)
        if interval != 0:
            st_i64(admission, ADMISSION_BATCH_ROWS, interval)
        st_i64(ticket, BATCH_FIRST, ld_i64(admission, ADMISSION_SERIAL))
        st_i64(ticket, BATCH_ENDED, _ended(admission))
        if ld_i64(ticket, ITEM_MARKS) != 0:
            st_i64(ticket, BATCH_WATERMARKS, ld_i64(ticket, ITEM_MARKS) - ld_i64(admission, ADMISSION_SERIAL) * 8)
        if ld_i64(ticket, ITEM_MIXED) != 0:
            st_i64(ticket, BATCH_MIXED, ld_i64(ticket, ITEM_MIXED) - ld_i64(admission, ADMISSION_SERIAL) * 8)
        _have_columns(admission, ticket)
        _fill(admission, ticket)
        if ld_i64(ticket, BATCH_SEGMENT_COUNT) == 0:
            pool_put(ld_i64(ticket, ITEM_HOME), ticket)
            return made
        st_i64(ticket, BATCH_TICKET, ld_i64(admission, ADMISSION_NEXT_TICKET))
        st_i64(ticket, ITEM_SERIAL, ld_i64(admission, ADMISSION_SERIAL))
        st_i64(admission, ADMISSION_NEXT_TICKET, ld_i64(admission, ADMISSION_NEXT_TICKET) + 1)
        ring_push(output, ticket)
        made += 1
    return made
