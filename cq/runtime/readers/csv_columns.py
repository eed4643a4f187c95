"""Rows of CSV text natively: cells straight into columns.

cq/connectors/csv/rows.py and cq/connectors/cells.py define rows and cells. Only plain text is read here: rows with the
right number of cells, each on one line, numbers and times in their usual form. Anything else (a quote that is never
closed, a blank line, a time with a zone, more digits than fit a word …) ends the reading; that is not an error yet. So
rows that are read are on one line each, and the text ends where a row ends.

Source: D. Lemire, Number parsing at a gigabyte per second, 2021 (eight digits at once).
Sharing: none. A call's words and all they point to belong to the calling thread.
"""

from __future__ import annotations

from cq.lang.calendar import days_from_civil, days_in_month
from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    ctz,
    ld_i64,
    ld_u8,
    mem_eq,
    pick,
    shr_u,
    st_bit,
    st_f64,
    st_i8,
    st_i16,
    st_i32,
    st_i64,
    st_u8,
    wadd,
    wmul,
    wsub,
)
from cq.runtime.layout.words import Struct
from cq.runtime.values.doubles import EXACT_INTEGER, EXACT_POWER, exact_double, scanned_double
from cq.runtime.values.numerals import MOST_DIGITS, gathered, number_parts, power_of_ten

DONE, STRANGE_ROW = 0, 1
UNDECLARED, INTEGER, DOUBLE, DECIMAL, TEXT, BOOLEAN, DATE, TIMESTAMP = range(8)  # kinds of fields
MOST_NUMBER_BYTES = 64  # the definition reads longer ones

_call = Struct("CSV")
CSV_FIELDS = _call.word()  # -> FIELD_WORDS for each cell of a row
CSV_WIDTH = _call.word()  # cells of a row
CSV_DELIMITER = _call.word()
CSV_QUOTE = _call.word()  # -1: no quoting
CSV_NULLS = _call.word()  # -> texts that mean NULL without quotes, NULL words each
CSV_NULLS_END = _call.word()  # -> after the last of them
CSV_DIGITS = _call.word()  # -> room for a number
CSV_ROWS = _call.word()  # found
CSV_WORDS = _call.size()

_null = Struct("NULL")
NULL_TEXT = _null.word()
NULL_LENGTH = _null.word()
NULL_WORDS = _null.size()

_field = Struct("CSV_FIELD")
FIELD_KIND = _field.word()
FIELD_VALUES = _field.word()  # -> values, for texts their letters; 0: they are checked and not kept
FIELD_VALID = _field.word()  # -> a bit a row, all of them 1 at first
FIELD_ENDS = _field.word()  # -> i32, the ends of texts, after a 0
FIELD_NULLS = _field.word()  # how many were found
FIELD_NULLABLE = _field.word()
FIELD_GUESSED = _field.word()  # 1: the type was guessed, so digits need not be numbers
FIELD_LEAST = _field.word()  # of numbers
FIELD_GREATEST = _field.word()
FIELD_BYTES = _field.word()  # of an integer
FIELD_SCALE = _field.word()  # of a DECIMAL
FIELD_WRITTEN = _field.word()  # bytes of texts
FIELD_DAY_TEXT = _field.word()  # the first eight bytes of the last day read
FIELD_DAY_END = _field.word()  # and the other two
FIELD_DAY = _field.word()
FIELD_WORDS = _field.size()

_ONES = 0x0101010101010101
_TOP_BITS = -0x7F7F7F7F7F7F7F80
_LOW_NIBBLES = 0x0F0F0F0F0F0F0F0F
_HIGH_NIBBLES = -0x0F0F0F0F0F0F0F10
_ZEROS = 0x3030303030303030
_SIXES = 0x0606060606060606  # a byte above 9 has another high nibble when 6 is added
_LFS, _CRS = 0x0A * _ONES, 0x0D * _ONES
_LF, _CR, _TAB, _BLANK = 0x0A, 0x0D, 0x09, 0x20
_ZERO, _NINE, _POINT, _MINUS, _PLUS, _COLON, _LETTER_T = 0x30, 0x39, 0x2E, 0x2D, 0x2B, 0x3A, 0x54
_LOW32 = 0xFFFFFFFF
# the bytes of true, TRUE and True, and of all but the last letter of false, lowest first
_SMALL_TRUE, _LARGE_TRUE, _PROPER_TRUE = 0x65757274, 0x45555254, 0x65757254
_SMALL_FALS, _LARGE_FALS, _PROPER_FALS = 0x736C6166, 0x534C4146, 0x736C6146
_SMALL_E, _LARGE_E = 0x65, 0x45
_MOST_WORD_DIGITS = 19  # 2**63 has as many
_DAY_BYTES, _MINUTE_BYTES, _SECOND_BYTES, _MOST_TIME_BYTES = 10, 16, 19, 26  # of 2024-01-31 10:20:30.123456
_SECOND_US, _DAY_US = 1_000_000, 86_400_000_000


# -- cells -------------------------------------------------------------------------------------------------------------


@native("i64(i64)", inline=True)
def _zero_bytes(word: int) -> int:
    """The top bit of every byte that is zero, and perhaps of some above the lowest such byte."""
    return wsub(word, _ONES) & ~word & _TOP_BITS


@native("i64(i64, i64)", inline=True)
def _cell_end(at: int, delimiters: int) -> int:
    """The address of the first delimiter, LF or CR. delimiters: eight of them."""
    while True:
        word = ld_i64(at, 0)
        found = _zero_bytes(word ^ delimiters) | _zero_bytes(word ^ _LFS) | _zero_bytes(word ^ _CRS)
        if found != 0:
            return at + (ctz(found) >> 3)
        at += 8


@native("(i64, i64)(i64, i64)")
def _quoted_end(at: int, quote: int) -> tuple[int, int]:
    """The quote that closes a cell whose letters begin at `at`, 0 if its line ends before, and how many quotes in it
    are doubled."""
    quotes = wmul(quote, _ONES)
    doubled = 0
    while True:
        word = ld_i64(at, 0)
        found = _zero_bytes(word ^ quotes) | _zero_bytes(word ^ _LFS) | _zero_bytes(word ^ _CRS)
        if found == 0:
            at += 8
            continue
        at += ctz(found) >> 3
        if ld_u8(at, 0) != quote:
            return 0, 0
        if ld_u8(at, 1) != quote:
            return at, doubled
        doubled += 1
        at += 2


# -- numbers -----------------------------------------------------------------------------------------------------------


@native("i64(i64)", inline=True)
def _are_digits(word: int) -> int:
    """Whether its eight bytes are digits."""
    high = word & _HIGH_NIBBLES
    return high == _ZEROS and wadd(word, _SIXES) & _HIGH_NIBBLES == _ZEROS


@native("i64(i64)", inline=True)
def _eight(word: int) -> int:
    """The number of eight digits."""
    pairs = shr_u(wmul(word & _LOW_NIBBLES, 2561), 8)
    fours = shr_u(wmul(pairs & 0x00FF00FF00FF00FF, 6553601), 16)
    return shr_u(wmul(fours & 0x0000FFFF0000FFFF, 42949672960001), 32)


@native("(i64, i64)(i64, i64)")
def _digits(at: int, end: int) -> tuple[int, int]:
    """The value of digits, and whether there are 1 to 19 of them and it fits a word."""
    if end <= at or end - at > _MOST_WORD_DIGITS:
        return 0, 0
    value = 0
    while end - at >= 8:
        word = ld_i64(at, 0)
        if _are_digits(word) == 0:
            return 0, 0
        value = wadd(wmul(value, 100_000_000), _eight(word))
        at += 8
    while at < end:
        digit = ld_u8(at, 0) - _ZERO
        if digit < 0 or digit > 9:
            return 0, 0
        value = wadd(wmul(value, 10), digit)
        at += 1
    return value, value >= 0


@native("i64(i64, i64)", inline=True)
def _zero_leads(start: int, end: int) -> int:
    """Whether a digit follows a leading zero: perhaps a label, not a number."""
    return end - start > 1 and ld_u8(start, 0) == _ZERO and _ZERO <= ld_u8(start, 1) <= _NINE


@native("(i64, i64)(i64, i64)", inline=True)
def _without_blanks(start: int, end: int) -> tuple[int, int]:
    """The text without surrounding blanks and tabs."""
    while start < end and (ld_u8(start, 0) == _BLANK or ld_u8(start, 0) == _TAB):
        start += 1
    while start < end and (ld_u8(end, -1) == _BLANK or ld_u8(end, -1) == _TAB):
        end -= 1
    return start, end


@native("i64(i64, i64, i64, i64)")
def _take_integer(field: int, row: int, start: int, end: int) -> int:
    if ld_i64(field, FIELD_GUESSED) != 0 and _zero_leads(start, end) != 0:
        return 0
    start, end = _without_blanks(start, end)
    minus = start < end and ld_u8(start, 0) == _MINUS
    value, good = _digits(start + minus, end)
    value = pick(minus, wsub(0, value), value)
    if good == 0 or value < ld_i64(field, FIELD_LEAST) or value > ld_i64(field, FIELD_GREATEST):
        return 0
    values, size = ld_i64(field, FIELD_VALUES), ld_i64(field, FIELD_BYTES)
    if values == 0:
        return 1
    if size == 8:
        st_i64(values, row, value)
    elif size == 4:
        st_i32(values, row, value)
    elif size == 2:
        st_i16(values, row, value)
    else:
        st_i8(values, row, value)
    return 1


@native("i64(i64, i64, i64, i64)")
def _take_decimal(field: int, row: int, start: int, end: int) -> int:
    minus = start < end and ld_u8(start, 0) == _MINUS
    start += minus or (start < end and ld_u8(start, 0) == _PLUS)
    point = start
    while point < end and ld_u8(point, 0) != _POINT:
        point += 1
    fraction = min(point + 1, end)
    scale = ld_i64(field, FIELD_SCALE)
    places = end - fraction
    if point - start + places == 0 or places > scale or point - start + scale > MOST_DIGITS:
        return 0
    value, good = 0, 1
    if point > start:
        value, good = _digits(start, point)
    if good != 0 and places > 0:
        behind, good = _digits(fraction, end)
        value = value * power_of_ten(places) + behind
    if good == 0:
        return 0
    value *= power_of_ten(scale - places)
    if value > ld_i64(field, FIELD_GREATEST):
        return 0
    values = ld_i64(field, FIELD_VALUES)
    if values != 0:
        value = pick(minus, -value, value)
        st_i64(values, 2 * row, value)
        st_i64(values, 2 * row + 1, value >> 63)
    return 1


@native("i64(i64, i64, i64, i64, i64)")
def _take_double(field: int, row: int, start: int, end: int, room: int) -> int:
    if ld_i64(field, FIELD_GUESSED) != 0 and _zero_leads(start, end) != 0:
        return 0
    start, end = _without_blanks(start, end)
    if end - start > MOST_NUMBER_BYTES:
        return 0
    whole, whole_end, fraction, fraction_end, exponent, sign = number_parts(start, 0, end - start)
    if sign == 0:
        return 0
    value, count = gathered(start, whole, whole_end, 0, 0)
    value, count = gathered(start, fraction, fraction_end, value, count)
    power = exponent - (fraction_end - fraction)
    made = 0.0
    if count <= MOST_DIGITS and value <= EXACT_INTEGER and power >= -EXACT_POWER and power <= EXACT_POWER:
        made = exact_double(value, power)
    elif value != 0:
        made = scanned_double(room, start, whole, whole_end, fraction, fraction_end, power)
    if sign < 0:
        made = -made
    values = ld_i64(field, FIELD_VALUES)
    if values != 0:
        st_f64(values, row, made)
    return 1


# -- times -------------------------------------------------------------------------------------------------------------


@native("i64(i64)", inline=True)
def _pair(at: int) -> int:
    """The number of two digits; above 99 if one is not a digit."""
    tens, ones = ld_u8(at, 0) - _ZERO, ld_u8(at, 1) - _ZERO
    good = tens >= 0 and tens <= 9 and ones >= 0 and ones <= 9
    return pick(good, tens * 10 + ones, 100)


@native("(i64, i64)(i64, i64)")
def _day(field: int, at: int) -> tuple[int, int]:
    """The day of the ten bytes YYYY-MM-DD, and whether they are one; the field remembers it."""
    head, tail = ld_i64(at, 0), ld_u8(at, 8) << 8 | ld_u8(at, 9)
    if head == ld_i64(field, FIELD_DAY_TEXT) and tail == ld_i64(field, FIELD_DAY_END):
        return ld_i64(field, FIELD_DAY), 1
    century, years, month, day = _pair(at), _pair(at + 2), _pair(at + 5), _pair(at + 8)
    year = century * 100 + years
    if century > 99 or years > 99 or year == 0 or ld_u8(at, 4) != _MINUS or ld_u8(at, 7) != _MINUS:
        return 0, 0
    if month < 1 or month > 12 or day < 1 or day > days_in_month(year, month):
        return 0, 0
    days = days_from_civil(year, month, day)
    st_i64(field, FIELD_DAY_TEXT, head)
    st_i64(field, FIELD_DAY_END, tail)
    st_i64(field, FIELD_DAY, days)
    return days, 1


@native("i64(i64, i64, i64, i64)")
def _take_date(field: int, row: int, start: int, end: int) -> int:
    if end - start != _DAY_BYTES:
        return 0
    days, good = _day(field, start)
    values = ld_i64(field, FIELD_VALUES)
    if good != 0 and values != 0:
        st_i32(values, row, days)
    return good


@native("(i64, i64)(i64, i64)")
def _clock(at: int, end: int) -> tuple[int, int]:
    """The microseconds since midnight of HH:MM, HH:MM:SS or HH:MM:SS.f, and whether the text is one."""
    hour, minute = _pair(at), _pair(at + 3)
    if hour > 23 or minute > 59 or ld_u8(at, 2) != _COLON:
        return 0, 0
    second, micros = 0, 0
    if end - at > 5:
        second = _pair(at + 6)
        if second > 59 or ld_u8(at, 5) != _COLON:
            return 0, 0
    if end - at > 8:
        micros, good = _digits(at + 9, end)
        if good == 0 or ld_u8(at, 8) != _POINT:
            return 0, 0
        micros *= power_of_ten(6 - (end - at - 9))
    return ((hour * 60 + minute) * 60 + second) * _SECOND_US + micros, 1


@native("i64(i64, i64, i64, i64)")
def _take_timestamp(field: int, row: int, start: int, end: int) -> int:
    size = end - start
    whole = size == _DAY_BYTES or size == _MINUTE_BYTES or size == _SECOND_BYTES
    if not whole and (size < _SECOND_BYTES + 2 or size > _MOST_TIME_BYTES):
        return 0
    days, good = _day(field, start)
    micros = 0
    if good != 0 and size > _DAY_BYTES:
        between = ld_u8(start, _DAY_BYTES)
        micros, good = _clock(start + _DAY_BYTES + 1, end)
        good = good != 0 and (between == _BLANK or between == _LETTER_T)
    values = ld_i64(field, FIELD_VALUES)
    if good != 0 and values != 0:
        st_i64(values, row, days * _DAY_US + micros)
    return good


# -- texts and booleans ------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64)")
def _take_boolean(field: int, row: int, start: int, end: int) -> int:
    word = ld_i64(start, 0) & _LOW32
    true = end - start == 4 and (word == _SMALL_TRUE or word == _LARGE_TRUE or word == _PROPER_TRUE)
    if not true:
        last = ld_u8(start, 4)
        false = (last == _SMALL_E and (word == _SMALL_FALS or word == _PROPER_FALS)) or (
            last == _LARGE_E and word == _LARGE_FALS
        )
        if end - start != 5 or not false:
            return 0
    values = ld_i64(field, FIELD_VALUES)
    if values != 0:
        st_bit(values, row, true)
    return 1


@native("void(i64, i64, i64, i64)", inline=True)
def _keep_text(field: int, row: int, start: int, end: int) -> None:
    """Write the letters as the row's text. Up to seven more bytes are written after them."""
    written = ld_i64(field, FIELD_WRITTEN)
    out = ld_i64(field, FIELD_VALUES) + written
    for k in range((end - start + 7) >> 3):
        st_i64(out, k, ld_i64(start, k))
    _end_text(field, row, written + (end - start))


@native("void(i64, i64, i64, i64, i64)")
def _keep_doubled(field: int, row: int, start: int, end: int, quote: int) -> None:
    """Write the letters as the row's text, with doubled quotes as one."""
    written = ld_i64(field, FIELD_WRITTEN)
    letters = ld_i64(field, FIELD_VALUES)
    while start < end:
        byte = ld_u8(start, 0)
        st_u8(letters, written, byte)
        written += 1
        start += pick(byte == quote, 2, 1)
    _end_text(field, row, written)


@native("void(i64, i64, i64)", inline=True)
def _end_text(field: int, row: int, written: int) -> None:
    st_i64(field, FIELD_WRITTEN, written)
    st_i32(ld_i64(field, FIELD_ENDS), row + 1, written)


# -- rows --------------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _take_null(field: int, row: int) -> int:
    """Make the row's value NULL and return 1; 0 if it must have one."""
    if ld_i64(field, FIELD_NULLABLE) == 0:
        return 0
    if ld_i64(field, FIELD_VALUES) != 0:
        st_bit(ld_i64(field, FIELD_VALID), row, False)
        st_i64(field, FIELD_NULLS, ld_i64(field, FIELD_NULLS) + 1)
        if ld_i64(field, FIELD_KIND) == TEXT:
            _end_text(field, row, ld_i64(field, FIELD_WRITTEN))
    return 1


@native("i64(i64, i64, i64, i64, i64)")
def _take(call: int, field: int, row: int, start: int, end: int) -> int:
    """Store the value of a cell that is not text and return 1; 0: the definition must read it."""
    kind = ld_i64(field, FIELD_KIND)
    if kind == INTEGER:
        return _take_integer(field, row, start, end)
    if kind == TIMESTAMP:
        return _take_timestamp(field, row, start, end)
    if kind == DOUBLE:
        return _take_double(field, row, start, end, ld_i64(call, CSV_DIGITS))
    if kind == DECIMAL:
        return _take_decimal(field, row, start, end)
    if kind == DATE:
        return _take_date(field, row, start, end)
    return _take_boolean(field, row, start, end)


@native("i64(i64, i64, i64)", inline=True)
def _is_null(call: int, start: int, end: int) -> int:
    """1 if an unquoted cell means NULL."""
    text, stop = ld_i64(call, CSV_NULLS), ld_i64(call, CSV_NULLS_END)
    while text < stop:
        length = ld_i64(text, NULL_LENGTH)
        if end - start == length and mem_eq(start, ld_i64(text, NULL_TEXT), length):
            return 1
        text += NULL_WORDS * 8
    return 0


@native("i64(i64, i64, i64, i64, i64, i64)", inline=True)
def _take_cell(call: int, field: int, row: int, start: int, end: int, doubled: int) -> int:
    """Store the cell and return 1; 0: the definition must read it.  doubled: -1 for an unquoted cell."""
    if doubled < 0 and _is_null(call, start, end) != 0:
        return _take_null(field, row)
    if ld_i64(field, FIELD_KIND) != TEXT:
        return 0 if doubled > 0 else _take(call, field, row, start, end)
    if ld_i64(field, FIELD_VALUES) == 0:
        return 1
    if doubled > 0:
        _keep_doubled(field, row, start, end, ld_i64(call, CSV_QUOTE))
    else:
        _keep_text(field, row, start, end)
    return 1


@native("i64(i64, i64, i64)", export=True)
def csv_columns(call: int, text: int, size: int) -> int:
    """DONE: all rows are in the columns, CSV_ROWS of them; STRANGE_ROW: the definition must read one.

    text: rows that end in LF or CRLF, valid UTF-8, followed by STRING_SLACK_BYTES. Columns have room for as many rows
    as there are LFs, and texts for `size` bytes and STRING_SLACK_BYTES.
    """
    delimiter, quote, width = ld_i64(call, CSV_DELIMITER), ld_i64(call, CSV_QUOTE), ld_i64(call, CSV_WIDTH)
    delimiters = wmul(delimiter, _ONES)
    at, stop, row = text, text + size, 0
    while at < stop:
        field = ld_i64(call, CSV_FIELDS)
        for place in range(width):
            start, doubled = at, -1
            if ld_u8(at, 0) == quote:
                start += 1
                end, doubled = _quoted_end(start, quote)
                if end == 0:
                    return STRANGE_ROW
                at = end + 1
            else:
                end = _cell_end(at, delimiters)
                at = end
            if place == width - 1:
                at += ld_u8(at, 0) == _CR
                if ld_u8(at, 0) != _LF:
                    return STRANGE_ROW
            elif ld_u8(at, 0) != delimiter:
                return STRANGE_ROW
            if ld_i64(field, FIELD_KIND) != UNDECLARED and _take_cell(call, field, row, start, end, doubled) == 0:
                return STRANGE_ROW
            at += 1
            field += FIELD_WORDS * 8
        row += 1
    st_i64(call, CSV_ROWS, row)
    return DONE
