"""Lines of CSV natively: the rows of a batch as text.

cq/connectors/sinks/cell_text.py defines lines, and when a cell has quotes. A batch with a value that only the
definition can write (a year of more than four digits) ends the writing; that is not an error.

Every cell goes straight to its place in the text: through columns of strings, which are then joined, Arrow takes five
times as long.

Sharing: none. A call's words and all they point to belong to the calling thread.
"""

from __future__ import annotations

from cq.lang.calendar import DAY_US, day_of_days, month_of_days, year_of_days
from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    clz,
    copy,
    ctz,
    floordiv,
    ld_bit,
    ld_i8,
    ld_i16,
    ld_i32,
    ld_i64,
    ld_u8,
    shl,
    shr_u,
    st_i64,
    st_u8,
    udiv,
    urem,
    wmul,
    wsub,
)
from cq.runtime.layout.words import Struct
from cq.runtime.values.times import SECOND_US

UNKNOWN = -1  # instead of the length: the definition has to write this batch

# kinds of columns: how a value is written
INT8, INT16, INT32, INT64, DECIMAL, BOOLEAN, DATE, TIME, TIMESTAMP, INTERVAL, TEXT, BARE = range(12)
# TEXT has quotes if it needs them, BARE never has
WIDTHS = {  # the most bytes of a cell, without strings
    INT8: 4, INT16: 6, INT32: 11, INT64: 20, DECIMAL: 21, BOOLEAN: 5, DATE: 10, TIME: 15, TIMESTAMP: 26, INTERVAL: 26,
}  # fmt: skip

_call = Struct("CSV")
CSV_ROWS = _call.word()
CSV_DELIMITER = _call.word()  # a byte
CSV_COLUMNS = _call.word()  # number of columns
CSV_FIRST = _call.rest()  # the columns, CSV_COLUMN words each

_column = Struct("CSV_COLUMN")
COLUMN_KIND = _column.word()
COLUMN_VALUES = _column.word()  # -> values, or the bytes of strings
COLUMN_OFFSETS = _column.word()  # -> where strings begin
COLUMN_VALIDITY = _column.word()  # -> bits; 0: no value is NULL
COLUMN_PLACE = _column.word()  # of the first row
COLUMN_UNIT = _column.word()  # of a DECIMAL: 10 to the power of its scale
COLUMN_SCALE = _column.word()
COLUMN_DAY = _column.word()  # the last day written
COLUMN_DATE = _column.word()  # its text without dashes
COLUMN_WORDS = _column.size()

_QUOTE, _MINUS, _POINT, _BLANK, _LF, _CR = 0x22, 0x2D, 0x2E, 0x20, 0x0A, 0x0D
_TRUE, _FALSE = (int.from_bytes(word, "little") for word in (b"true", b"false"))
_COLONS = 0x3A << 16 | 0x3A << 40  # of hh:mm:ss
_DASHES = 0x2D | 0x2D << 24  # of -MM-DD
_ZEROS = 0x3030303030303030
_LAST_DIGIT = 1 << 56  # kept even if it is 0
_EIGHT = 10**8
_ONES = 0x0101010101010101
_TOP_BITS = -0x7F7F7F7F7F7F7F80
_HARMLESS = 0x61 * _ONES  # the letter a
NO_DAY = -(1 << 62)
_FIRST_DAY, _LAST_DAY = -719528, 2932896  # of the years 0 and 9999


# -- digits: eight at a time, each a byte of a word, the first one lowest ----------------------------------------------


@native("i64(i64)", inline=True)
def _eight_digits(value: int) -> int:
    """The digits of a value below 10**8, each from 0 to 9."""
    fours = udiv(value, 10_000) | shl(urem(value, 10_000), 32)
    hundreds = shr_u(fours * 10_486, 20) & 0x7F0000007F  # of each four
    twos = hundreds | shl(fours - 100 * hundreds, 16)
    tens = shr_u(twos * 103, 10) & 0x000F000F000F000F  # of each two
    return tens | shl(twos - 10 * tens, 8)


@native("i64(i64, i64)", inline=True)
def _put_eight(out: int, value: int) -> int:
    """Write all eight digits."""
    st_i64(out, 0, _eight_digits(value) | _ZEROS)
    return out + 8


@native("i64(i64, i64)", inline=True)
def _put_short(out: int, value: int) -> int:
    """Write a value below 10**8 without leading zeros."""
    digits = _eight_digits(value)
    zeros = ctz(digits | _LAST_DIGIT) >> 3
    st_i64(out, 0, shr_u(digits | _ZEROS, zeros * 8))
    return out + 8 - zeros


@native("i64(i64, i64)")
def _put_number(out: int, value: int) -> int:
    """Write an unsigned value."""
    if value >= 0 and value < _EIGHT:
        return _put_short(out, value)
    above = udiv(value, _EIGHT)
    if above < _EIGHT:
        out = _put_short(out, above)
    else:
        out = _put_eight(_put_short(out, udiv(above, _EIGHT)), urem(above, _EIGHT))
    return _put_eight(out, urem(value, _EIGHT))


@native("i64(i64, i64)", inline=True)
def _put_byte(out: int, byte: int) -> int:
    st_u8(out, 0, byte)
    return out + 1


@native("i64(i64)", inline=True)
def _two_digits(value: int) -> int:
    """The two digits of a value below 100, as they are written."""
    tens = shr_u(value * 103, 10)
    return tens | shl(value - 10 * tens, 8) | 0x3030


# -- values ------------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)")
def _put_fixed(out: int, column: int, place: int) -> int:
    """Write a value of fixed width; return the address after it, or 0 if the definition has to."""
    kind = ld_i64(column, COLUMN_KIND)
    values = ld_i64(column, COLUMN_VALUES)
    if kind == INT64:
        return _put_integer(out, ld_i64(values, place))
    if kind == TIMESTAMP:
        return _put_timestamp(out, column, ld_i64(values, place))
    if kind == INT32:
        return _put_integer(out, ld_i32(values, place))
    if kind == INT16:
        return _put_integer(out, ld_i16(values, place))
    if kind == INT8:
        return _put_integer(out, ld_i8(values, place))
    if kind == DECIMAL:
        return _put_decimal(out, ld_i64(values, 2 * place), ld_i64(column, COLUMN_UNIT), ld_i64(column, COLUMN_SCALE))
    if kind == BOOLEAN:
        if ld_bit(values, place):
            st_i64(out, 0, _TRUE)
            return out + 4
        st_i64(out, 0, _FALSE)
        return out + 5
    if kind == DATE:
        return _put_day(out, column, ld_i32(values, place))
    if kind == TIME:
        return _put_clock(out, ld_i64(values, place))
    return _put_span(out, ld_i64(values, place))


@native("i64(i64, i64)", inline=True)
def _put_integer(out: int, value: int) -> int:
    if value < 0:
        return _put_number(_put_byte(out, _MINUS), wsub(0, value))  # as unsigned bits, right for the least one too
    return _put_number(out, value)


@native("i64(i64, i64, i64, i64)")
def _put_decimal(out: int, value: int, unit: int, scale: int) -> int:
    """Write a value with all digits of its scale, at most MOST_SCALE."""
    rest = value
    if value < 0:
        out = _put_byte(out, _MINUS)
        rest = wsub(0, value)
    out = _put_number(out, udiv(rest, unit))
    if scale == 0:
        return out
    out = _put_byte(out, _POINT)
    st_i64(out, 0, shr_u(_eight_digits(urem(rest, unit)) | _ZEROS, (8 - scale) * 8))
    return out + scale


@native("i64(i64, i64, i64)")
def _put_timestamp(out: int, column: int, time: int) -> int:
    day = floordiv(time, DAY_US)
    out = _put_day(out, column, day)
    if out == 0:
        return 0
    return _put_clock(_put_byte(out, _BLANK), wsub(time, wmul(day, DAY_US)))


@native("i64(i64, i64, i64)", inline=True)
def _put_day(out: int, column: int, day: int) -> int:
    """`YYYY-MM-DD`; 0 if the year does not have four digits. Most days equal that of the previous row."""
    if day != ld_i64(column, COLUMN_DAY):
        if day < _FIRST_DAY or day > _LAST_DAY:
            return 0
        st_i64(column, COLUMN_DAY, day)
        number = (year_of_days(day) * 100 + month_of_days(day)) * 100 + day_of_days(day)
        st_i64(column, COLUMN_DATE, _eight_digits(number) | _ZEROS)
    digits = ld_i64(column, COLUMN_DATE)
    st_i64(out, 0, digits)
    month, of_month = shr_u(digits, 32) & 0xFFFF, shr_u(digits, 48)
    st_i64(out + 4, 0, shl(of_month, 32) | shl(month, 8) | _DASHES)
    return out + 10


@native("i64(i64, i64)")
def _put_clock(out: int, micros: int) -> int:
    """`hh:mm:ss` and the fraction without its final zeros."""
    seconds = udiv(micros, SECOND_US)
    minutes = udiv(seconds, 60)
    hour, minute = _two_digits(udiv(minutes, 60)), _two_digits(urem(minutes, 60))
    st_i64(out, 0, hour | shl(minute, 24) | shl(_two_digits(urem(seconds, 60)), 48) | _COLONS)
    fraction = urem(micros, SECOND_US)
    if fraction == 0:
        return out + 8
    digits = _eight_digits(fraction * 100)
    st_u8(out, 8, _POINT)
    st_i64(out + 9, 0, digits | _ZEROS)
    return out + 17 - (clz(digits) >> 3)


@native("i64(i64, i64)")
def _put_span(out: int, micros: int) -> int:
    """`-1 02:03:04.5`."""
    length = micros
    if micros < 0:
        out = _put_byte(out, _MINUS)
        length = wsub(0, micros)  # as unsigned bits
    days = udiv(length, DAY_US)
    if days != 0:
        out = _put_byte(_put_number(out, days), _BLANK)
    return _put_clock(out, urem(length, DAY_US))


# -- strings -----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", inline=True)
def _zero_bytes(word: int, pattern: int) -> int:
    """Not 0 if some byte of the word equals that of the pattern."""
    word ^= pattern
    return wsub(word, _ONES) & ~word & _TOP_BITS


@native("i64(i64, i64, i64)")
def _needs_quotes(text: int, size: int, delimiter: int) -> int:
    """1 if the text is empty or contains a quote, a delimiter or a line end."""
    if size == 0:
        return 1
    delimiters = delimiter * _ONES
    at = 0
    while at < size:
        word = ld_i64(text + at, 0)
        left = size - at
        if left < 8:
            mask = shl(1, left * 8) - 1
            word = (word & mask) | (_HARMLESS & ~mask)
        found = _zero_bytes(word, _QUOTE * _ONES) | _zero_bytes(word, delimiters)
        found |= _zero_bytes(word, _LF * _ONES) | _zero_bytes(word, _CR * _ONES)
        if found != 0:
            return 1
        at += 8
    return 0


@native("i64(i64, i64, i64)")
def _put_quoted(out: int, text: int, size: int) -> int:
    """Write the text in quotes, doubling its own."""
    out = _put_byte(out, _QUOTE)
    for at in range(size):
        byte = ld_u8(text, at)
        if byte == _QUOTE:
            out = _put_byte(out, _QUOTE)
        out = _put_byte(out, byte)
    return _put_byte(out, _QUOTE)


@native("i64(i64, i64, i64, i64)")
def _put_string(out: int, column: int, place: int, delimiter: int) -> int:
    offsets = ld_i64(column, COLUMN_OFFSETS)
    begin = ld_i32(offsets, place)
    size = ld_i32(offsets, place + 1) - begin
    text = ld_i64(column, COLUMN_VALUES) + begin
    if ld_i64(column, COLUMN_KIND) == TEXT and _needs_quotes(text, size, delimiter) == 1:
        return _put_quoted(out, text, size)
    copy(out, text, size)
    return out + size


@native("i64(i64, i64)", export=True)
def csv_lines(call: int, out: int) -> int:
    """Write the rows as lines to `out`; return how many bytes, or UNKNOWN. There is room for all."""
    columns = ld_i64(call, CSV_COLUMNS)
    delimiter = ld_i64(call, CSV_DELIMITER)
    at = out
    for row in range(ld_i64(call, CSV_ROWS)):
        for number in range(columns):
            column = call + (CSV_FIRST + number * COLUMN_WORDS) * 8
            if number > 0:
                at = _put_byte(at, delimiter)
            place = ld_i64(column, COLUMN_PLACE) + row
            validity = ld_i64(column, COLUMN_VALIDITY)
            if validity == 0 or ld_bit(validity, place):
                if ld_i64(column, COLUMN_KIND) >= TEXT:
                    at = _put_string(at, column, place, delimiter)
                else:
                    at = _put_fixed(at, column, place)
                    if at == 0:
                        return UNKNOWN
        at = _put_byte(at, _LF)
    return at - out
