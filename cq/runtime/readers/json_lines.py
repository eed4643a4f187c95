"""Lines of JSON natively: the fields that columns take, as the cells of CSV text.

cq/connectors/json/rows.py defines lines and the fields that columns take. A line that the definition has to read (not
JSON, a name with escapes, a lone surrogate, not an object where its fields are taken …) ends the reading; that is not
an error yet.

A cell is a number or a word as it is, or text: bare if the bytes between its quotes are its letters, in quotes if it is
empty or has escapes, so that NULL, which is nothing, stays distinct. `DELIMITER` is between cells: it is not a letter
of JSON text, so bare text never has one.

Sharing: none. A call's words and all they point to belong to the calling thread.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    ctz,
    ld_i64,
    ld_u8,
    mem_eq,
    pick,
    shl,
    st_i64,
    st_u8,
    wsub,
)
from cq.runtime.layout.abi import STRING_SLACK_BYTES
from cq.runtime.layout.words import Struct

DELIMITER = 0x1F
DONE, STRANGE_LINE, NO_ROOM = 0, 1, 2
NOWHERE = 0  # the address that no text has
FULL_NAME, FOLDED_NAME = 2, 1  # how a field matches a column: a better match is not replaced by a worse one

_call = Struct("JSON")
JSON_NODES = _call.word()  # -> names by level, NODE_WORDS each
JSON_NAMES = _call.word()  # -> names, NAME_WORDS each; those of a level are contiguous
JSON_COLUMNS = _call.word()  # number of columns
JSON_CELLS = _call.word()  # -> a cell for every column
JSON_MEMO = _call.word()  # -> the fields of the previous line, by their place in it, zeros at first
JSON_PLACES = _call.word()  # number of fields kept
JSON_STACK = _call.word()  # -> open objects and arrays
JSON_DEPTH = _call.word()  # the most that may be open
JSON_LINES = _call.word()  # -> i64, the lines before each row
JSON_ROWS = _call.word()  # found
JSON_LINE = _call.word()  # lines read
JSON_WRITTEN = _call.word()  # bytes of CSV
JSON_WORDS = _call.size()

_node = Struct("NODE")
NODE_FIRST = _node.word()  # of its names
NODE_COUNT = _node.word()
NODE_WORDS = _node.size()

_name = Struct("NAME")
NAME_TEXT = _name.word()  # -> its bytes
NAME_LENGTH = _name.word()
NAME_COLUMN = _name.word()  # the column that takes the value; -1: none
NAME_NODE = _name.word()  # the level of names inside the value; -1: none
NAME_RAW = _name.word()  # whether the column takes any value as JSON text
NAME_WORDS = _name.size()

_cell = Struct("CELL")
CELL_START = _cell.word()
CELL_END = _cell.word()
CELL_KIND = _cell.word()
CELL_ANSWER = _cell.word()  # FULL_NAME, FOLDED_NAME, or 0 before a field was found
CELL_WORDS = _cell.size()

_memo = Struct("MEMO")
MEMO_START = _memo.word()  # -> the name and its closing quote in an earlier line; 0: none yet
MEMO_LENGTH = _memo.word()  # of both
MEMO_HEAD = _memo.word()  # the first eight bytes of them, as far as there are
MEMO_MASK = _memo.word()
MEMO_NODE = _memo.word()  # its level
MEMO_NAME = _memo.word()  # -> the matching name, or 0
MEMO_ANSWER = _memo.word()
MEMO_WORDS = _memo.size()

_open = Struct("OPEN")
OPEN_NODE = _open.word()  # -> the level of names of an object; NO_NAMES
OPEN_IS_OBJECT = _open.word()
OPEN_ANSWER = _open.word()  # how the path to it matched
OPEN_START = _open.word()
OPEN_NAME = _open.word()  # -> the name whose value it is, or 0
OPEN_WORDS = _open.size()

NO_NAMES = -1
NULL, BARE, TEXT, RAW = 0, 1, 2, 3  # kinds of cells

_ONES = 0x0101010101010101
_TOP_BITS = -0x7F7F7F7F7F7F7F80
_QUOTES = 0x22 * _ONES
_BACKSLASHES = 0x5C * _ONES
_BLANKS = 0x20 * _ONES
_BLANK, _TAB, _CR, _LF = 0x20, 0x09, 0x0D, 0x0A
_QUOTE, _BACKSLASH, _COMMA, _COLON = 0x22, 0x5C, 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_MINUS, _PLUS, _POINT, _ZERO, _NINE = 0x2D, 0x2B, 0x2E, 0x30, 0x39
_LETTER_E, _SMALL = 0x65, 0x20  # a letter with the bit _SMALL is lower case
_LETTER_N, _LETTER_U = 0x6E, 0x75
_NULL_WORD = 0x6C6C756E  # the bytes of null, true and alse, lowest first
_TRUE_WORD = 0x65757274
_ALSE_WORD = 0x65736C61
_LOW32 = 0xFFFFFFFF
_ABOVE_ASCII = 0xEF  # a text that begins with a byte order mark is put in quotes, where CSV keeps it
_HIGH_SURROGATE, _LOW_SURROGATE, _PAST_SURROGATES = 0xD800, 0xDC00, 0xE000


# -- tokens ------------------------------------------------------------------------------------------------------------


@native("i64(i64)", inline=True)
def _past_blanks(at: int) -> int:
    """The first byte that is not a blank; a line feed is not one."""
    byte = ld_u8(at, 0)
    while byte == _BLANK or byte == _TAB or byte == _CR:
        at += 1
        byte = ld_u8(at, 0)
    return at


@native("i64(i64)", inline=True)
def _past_letters(at: int) -> int:
    """The first byte of a text that is a quote, a backslash or a control character, which ends every line."""
    while True:
        word = ld_i64(at, 0)
        quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
        found = wsub(word, _BLANKS) & ~word
        found |= (wsub(quotes, _ONES) & ~quotes) | (wsub(backslashes, _ONES) & ~backslashes)
        found &= _TOP_BITS
        if found != 0:
            return at + (ctz(found) >> 3)
        at += 8


@native("i64(i64)")
def _hex_digit(byte: int) -> int:
    """The value of a digit; -1 for anything else."""
    if _ZERO <= byte <= _NINE:
        return byte - _ZERO
    letter = (byte | _SMALL) - 0x61
    return letter + 10 if 0 <= letter < 6 else -1


@native("i64(i64)")
def _hex_unit(at: int) -> int:
    """The value of four hex digits; negative if they are not."""
    value, bad = 0, 0
    for k in range(4):
        digit = _hex_digit(ld_u8(at, k))
        bad |= digit
        value = value * 16 + digit
        if bad < 0:
            return -1
    return value


@native("i64(i64)")
def _past_escape(at: int) -> int:
    """The address after the escape at a backslash; NOWHERE if it is not one."""
    byte = ld_u8(at, 1)
    if byte == _LETTER_U:
        return at + 6 if _hex_unit(at + 2) >= 0 else NOWHERE
    return at + 2 if _escaped(byte) >= 0 else NOWHERE


@native("i64(i64)")
def _escaped(byte: int) -> int:
    """The letter that a backslash and this letter mean; -1 for none."""
    if byte == _QUOTE or byte == _BACKSLASH or byte == 0x2F:
        return byte
    if byte == 0x62:
        return 8
    if byte == 0x66:
        return 12
    if byte == _LETTER_N:
        return _LF
    if byte == 0x72:
        return _CR
    return _TAB if byte == 0x74 else -1


@native("(i64, i64)(i64)")
def _text_end(at: int) -> tuple[int, int]:
    """The closing quote of a text whose letters begin at `at`, NOWHERE if there is none, and whether it has escapes."""
    escapes = 0
    at = _past_letters(at)
    while ld_u8(at, 0) == _BACKSLASH:
        escapes = 1
        at = _past_escape(at)
        if at == NOWHERE:
            return NOWHERE, 0
        at = _past_letters(at)
    return pick(ld_u8(at, 0) == _QUOTE, at, NOWHERE), escapes


@native("i64(i64)", inline=True)
def _past_digits(at: int) -> int:
    """The address after the digits that begin here; NOWHERE if there are none."""
    start = at
    while _ZERO <= ld_u8(at, 0) <= _NINE:
        at += 1
    return pick(at == start, NOWHERE, at)


@native("i64(i64)")
def _past_number(at: int) -> int:
    """The address after the number that begins here; NOWHERE if there is none."""
    at += ld_u8(at, 0) == _MINUS
    leading_zero = ld_u8(at, 0) == _ZERO
    start = at
    at = _past_digits(at)
    if at == NOWHERE or (leading_zero and at != start + 1):
        return NOWHERE
    if ld_u8(at, 0) == _POINT:
        at = _past_digits(at + 1)
        if at == NOWHERE:
            return NOWHERE
    if ld_u8(at, 0) | _SMALL == _LETTER_E:
        at += 1
        sign = ld_u8(at, 0)
        at += (sign == _MINUS) | (sign == _PLUS)
        return _past_digits(at)
    return at


@native("(i64, i64)(i64)")
def _past_scalar(at: int) -> tuple[int, int]:
    """The address after the text, number or word that begins here, or NOWHERE; and the kind of its cell."""
    byte = ld_u8(at, 0)
    if byte == _QUOTE:
        end, escapes = _text_end(at + 1)
        if end == NOWHERE:
            return NOWHERE, NULL
        bare = escapes == 0 and end != at + 1 and ld_u8(at, 1) != _ABOVE_ASCII
        return end + 1, pick(bare, BARE, TEXT)
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        return _past_number(at), BARE
    word = ld_i64(at, 0) & _LOW32
    if word == _NULL_WORD:
        return at + 4, NULL
    if word == _TRUE_WORD:
        return at + 4, BARE
    if byte == 0x66 and ld_i64(at + 1, 0) & _LOW32 == _ALSE_WORD:
        return at + 5, BARE
    return NOWHERE, NULL


# -- names -------------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)")
def _equal_folded(a: int, b: int, length: int) -> int:
    """Whether two names are equal with A to Z as lower-case letters."""
    for k in range(length):
        x, y = ld_u8(a, k), ld_u8(b, k)
        x += pick(0x41 <= x <= 0x5A, _SMALL, 0)
        y += pick(0x41 <= y <= 0x5A, _SMALL, 0)
        if x != y:
            return 0
    return 1


@native("(i64, i64)(i64, i64, i64, i64)")
def _named(call: int, node: int, text: int, length: int) -> tuple[int, int]:
    """The name on a level that matches a field, and how it matches; 0 and 0 for none."""
    first = ld_i64(call, JSON_NAMES) + ld_i64(node, NODE_FIRST) * NAME_WORDS * 8
    count = ld_i64(node, NODE_COUNT)
    folded = 0
    for k in range(count):
        name = first + k * NAME_WORDS * 8
        if ld_i64(name, NAME_LENGTH) == length:
            if mem_eq(ld_i64(name, NAME_TEXT), text, length):
                return name, FULL_NAME
            if folded == 0 and _equal_folded(ld_i64(name, NAME_TEXT), text, length) != 0:
                folded = name
    return folded, pick(folded == 0, 0, FOLDED_NAME)


@native("i64(i64, i64, i64)", inline=True)
def _is_known(memo: int, at: int, node: int) -> int:
    """Whether the name that begins at `at` is the remembered one."""
    if ld_i64(memo, MEMO_NODE) != node or (ld_i64(at, 0) ^ ld_i64(memo, MEMO_HEAD)) & ld_i64(memo, MEMO_MASK) != 0:
        return 0
    length = ld_i64(memo, MEMO_LENGTH)
    return 1 if length <= 8 or mem_eq(at, ld_i64(memo, MEMO_START), length) else 0


@native("i64(i64, i64, i64, i64)")
def _learn(call: int, memo: int, at: int, node: int) -> int:
    """Remember the name that begins at `at`; return 0 if the definition must read it."""
    end, escapes = _text_end(at)
    if end == NOWHERE or escapes != 0:
        return 0
    name, answer = 0, 0
    if node != NO_NAMES:
        name, answer = _named(call, node, at, end - at)
    length = end + 1 - at
    mask = pick(length >= 8, -1, shl(1, length * 8 & 63) - 1)
    st_i64(memo, MEMO_START, at)
    st_i64(memo, MEMO_LENGTH, length)
    st_i64(memo, MEMO_HEAD, ld_i64(at, 0))
    st_i64(memo, MEMO_MASK, mask)
    st_i64(memo, MEMO_NODE, node)
    st_i64(memo, MEMO_NAME, name)
    st_i64(memo, MEMO_ANSWER, answer)
    return 1


@native("i64(i64, i64, i64, i64)")
def _past_name(call: int, memo: int, at: int, node: int) -> int:
    """Where the value of the field that begins here begins; the memo knows its name. NOWHERE if there is no field."""
    if ld_u8(at, 0) != _QUOTE:
        return NOWHERE
    at += 1
    if _is_known(memo, at, node) == 0 and _learn(call, memo, at, node) == 0:
        return NOWHERE
    at = _past_blanks(at + ld_i64(memo, MEMO_LENGTH))
    return _past_blanks(at + 1) if ld_u8(at, 0) == _COLON else NOWHERE


# -- values ------------------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64, i64, i64, i64)", inline=True)
def _keep(call: int, name: int, answer: int, start: int, end: int, kind: int) -> None:
    """Make the value the cell of this name's column, unless a better match is there."""
    column = ld_i64(name, NAME_COLUMN)
    if column < 0:
        return
    cell = ld_i64(call, JSON_CELLS) + column * CELL_WORDS * 8
    if answer < ld_i64(cell, CELL_ANSWER):
        return
    if ld_i64(name, NAME_RAW) != 0 and kind != NULL:
        kind = RAW
    quoted = (kind == BARE or kind == TEXT) and ld_u8(start, 0) == _QUOTE
    st_i64(cell, CELL_START, start + quoted)
    st_i64(cell, CELL_END, end - quoted)
    st_i64(cell, CELL_KIND, kind)
    st_i64(cell, CELL_ANSWER, answer)


@native("void(i64, i64, i64, i64, i64)")
def _push(call: int, opened: int, at: int, name: int, answer: int) -> None:
    """Push the object or array that begins at `at` as open."""
    is_object = ld_u8(at, 0) == _OPEN_OBJECT
    node = NO_NAMES
    if name != 0 and is_object and ld_i64(name, NAME_NODE) >= 0:
        node = ld_i64(call, JSON_NODES) + ld_i64(name, NAME_NODE) * NODE_WORDS * 8
    st_i64(opened, OPEN_NODE, node)
    st_i64(opened, OPEN_IS_OBJECT, 1 if is_object else 0)
    st_i64(opened, OPEN_ANSWER, answer)
    st_i64(opened, OPEN_START, at)
    st_i64(opened, OPEN_NAME, name)


@native("i64(i64)", inline=True)
def _has_fields(name: int) -> int:
    """Whether columns take fields of the value with this name: if it is not an object, the definition must read it."""
    return 1 if name != 0 and ld_i64(name, NAME_NODE) >= 0 else 0


@native("i64(i64, i64)")
def _past_object(call: int, at: int) -> int:
    """The address after the object that begins here, with its fields in cells; NOWHERE: the definition must read it."""
    bottom = ld_i64(call, JSON_STACK)
    top = bottom + (ld_i64(call, JSON_DEPTH) - 1) * OPEN_WORDS * 8
    first_memo, places = ld_i64(call, JSON_MEMO), ld_i64(call, JSON_PLACES)
    opened, place, fresh = bottom, 0, 1
    _push(call, opened, at, 0, FULL_NAME)
    st_i64(opened, OPEN_NODE, ld_i64(call, JSON_NODES))
    at += 1
    while True:
        at = _past_blanks(at)
        is_object = ld_i64(opened, OPEN_IS_OBJECT)
        if ld_u8(at, 0) == pick(is_object != 0, _CLOSE_OBJECT, _CLOSE_ARRAY):
            at += 1
            if opened == bottom:
                return at
            if ld_i64(opened, OPEN_NAME) != 0:
                _keep(call, ld_i64(opened, OPEN_NAME), ld_i64(opened, OPEN_ANSWER), ld_i64(opened, OPEN_START), at, RAW)
            opened -= OPEN_WORDS * 8
            fresh = 0
            continue
        if fresh == 0:
            if ld_u8(at, 0) != _COMMA:
                return NOWHERE
            at = _past_blanks(at + 1)
        fresh = 0
        name, answer = 0, 0
        if is_object != 0:
            memo = first_memo + min(place, places - 1) * MEMO_WORDS * 8
            place += 1
            at = _past_name(call, memo, at, ld_i64(opened, OPEN_NODE))
            if at == NOWHERE:
                return NOWHERE
            name, answer = ld_i64(memo, MEMO_NAME), min(ld_i64(memo, MEMO_ANSWER), ld_i64(opened, OPEN_ANSWER))
        byte = ld_u8(at, 0)
        if byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
            if opened == top or (byte == _OPEN_ARRAY and _has_fields(name) != 0):
                return NOWHERE
            opened += OPEN_WORDS * 8
            _push(call, opened, at, name, answer)
            at += 1
            fresh = 1
        else:
            end, kind = _past_scalar(at)
            if end == NOWHERE or (kind != NULL and _has_fields(name) != 0):
                return NOWHERE
            if name != 0:
                _keep(call, name, answer, at, end, kind)
            at = end


# -- cells as CSV ------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", inline=True)
def _copied(out: int, start: int, end: int) -> int:
    """Copy the bytes to `out`; return where they end. Up to seven more are written after them."""
    for k in range((end - start + 7) >> 3):
        st_i64(out, k, ld_i64(start, k))
    return out + (end - start)


@native("i64(i64, i64, i64)")
def _doubled(out: int, start: int, end: int) -> int:
    """Copy the bytes to `out` between quotes, doubling every quote."""
    st_u8(out, 0, _QUOTE)
    out += 1
    for k in range(end - start):
        byte = ld_u8(start, k)
        st_u8(out, 0, byte)
        st_u8(out, 1, byte)
        out += pick(byte == _QUOTE, 2, 1)
    st_u8(out, 0, _QUOTE)
    return out + 1


@native("i64(i64, i64)")
def _encoded(out: int, point: int) -> int:
    """Write the character to `out` in UTF-8."""
    if point < 0x80:
        st_u8(out, 0, point)
        return out + 1
    if point < 0x800:
        st_u8(out, 0, 0xC0 | point >> 6)
        st_u8(out, 1, 0x80 | point & 0x3F)
        return out + 2
    if point < 0x10000:
        st_u8(out, 0, 0xE0 | point >> 12)
        st_u8(out, 1, 0x80 | point >> 6 & 0x3F)
        st_u8(out, 2, 0x80 | point & 0x3F)
        return out + 3
    st_u8(out, 0, 0xF0 | point >> 18)
    st_u8(out, 1, 0x80 | point >> 12 & 0x3F)
    st_u8(out, 2, 0x80 | point >> 6 & 0x3F)
    st_u8(out, 3, 0x80 | point & 0x3F)
    return out + 4


@native("(i64, i64)(i64)")
def _character(at: int) -> tuple[int, int]:
    """The address after the escape \\uXXXX at `at`, or two, and their character; NOWHERE for a lone surrogate."""
    unit = _hex_unit(at + 2)
    if unit < _HIGH_SURROGATE or unit >= _PAST_SURROGATES:
        return at + 6, unit
    if unit >= _LOW_SURROGATE or ld_u8(at, 6) != _BACKSLASH or ld_u8(at, 7) != _LETTER_U:
        return NOWHERE, 0
    low = _hex_unit(at + 8)
    if low < _LOW_SURROGATE or low >= _PAST_SURROGATES:
        return NOWHERE, 0
    return at + 12, 0x10000 + shl(unit - _HIGH_SURROGATE, 10) + (low - _LOW_SURROGATE)


@native("i64(i64, i64, i64)")
def _unescaped(out: int, start: int, end: int) -> int:
    """Write the letters of a text to `out` between quotes, doubling quotes; NOWHERE for a lone surrogate."""
    st_u8(out, 0, _QUOTE)
    out += 1
    at = start
    while at < end:
        byte = ld_u8(at, 0)
        at += 1
        if byte == _BACKSLASH:
            if ld_u8(at, 0) == _LETTER_U:
                at, byte = _character(at - 1)
                if at == NOWHERE:
                    return NOWHERE
                if byte >= 0x80:
                    out = _encoded(out, byte)
                    continue
            else:
                byte = _escaped(ld_u8(at, 0))
                at += 1
        st_u8(out, 0, byte)
        st_u8(out, 1, byte)
        out += pick(byte == _QUOTE, 2, 1)
    st_u8(out, 0, _QUOTE)
    return out + 1


@native("i64(i64, i64)")
def _row_bytes(cells: int, columns: int) -> int:
    """More bytes than the row can take."""
    total = STRING_SLACK_BYTES
    for k in range(columns):
        cell = cells + k * CELL_WORDS * 8
        total += 2 * (ld_i64(cell, CELL_END) - ld_i64(cell, CELL_START)) + 3
    return total


@native("i64(i64, i64, i64)")
def _written(cells: int, columns: int, out: int) -> int:
    """Write the cells to `out` as a line of CSV; return its end, NOWHERE if the definition must read it."""
    for k in range(columns):
        if k > 0:
            st_u8(out, 0, DELIMITER)
            out += 1
        cell = cells + k * CELL_WORDS * 8
        kind = ld_i64(cell, CELL_KIND)
        start, end = ld_i64(cell, CELL_START), ld_i64(cell, CELL_END)
        if kind == BARE:
            out = _copied(out, start, end)
        elif kind == TEXT:
            out = _unescaped(out, start, end)
            if out == NOWHERE:
                return NOWHERE
        elif kind == RAW:
            out = _doubled(out, start, end)
    st_u8(out, 0, _LF)
    return out + 1


@native("void(i64, i64)")
def _clear(cells: int, columns: int) -> None:
    """Clear the values of all columns."""
    for k in range(columns * CELL_WORDS):
        st_i64(cells, k, 0)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def json_cells(call: int, text: int, size: int, out: int, capacity: int) -> int:
    """Turn lines of JSON objects into lines of CSV; return DONE, or why not.

    text: whole lines that end in a line feed, followed by STRING_SLACK_BYTES; valid UTF-8.  JSON_ROWS, JSON_LINE and
    JSON_WRITTEN report how far it came.
    """
    cells, columns, lines = ld_i64(call, JSON_CELLS), ld_i64(call, JSON_COLUMNS), ld_i64(call, JSON_LINES)
    at, stop, to, room = text, text + size, out, out + capacity
    rows, line, result = 0, 0, DONE
    while at < stop:
        at = _past_blanks(at)
        byte = ld_u8(at, 0)
        if byte != _LF:
            _clear(cells, columns)
            at = _past_object(call, at) if byte == _OPEN_OBJECT else NOWHERE
            if at != NOWHERE:
                at = _past_blanks(at)
            if at == NOWHERE or ld_u8(at, 0) != _LF:
                result = STRANGE_LINE
                break
            if to + _row_bytes(cells, columns) > room:
                result = NO_ROOM
                break
            to = _written(cells, columns, to)
            if to == NOWHERE:
                result = STRANGE_LINE
                break
            st_i64(lines, rows, line)
            rows += 1
        line += 1
        at += 1
    st_i64(call, JSON_ROWS, rows)
    st_i64(call, JSON_LINE, line)
    st_i64(call, JSON_WRITTEN, to - out)
    return result
