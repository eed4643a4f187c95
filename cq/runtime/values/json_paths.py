"""JSON in texts: the native side of cq/lang/functions/json_text.py, equal to it.

A path is a table made by `path_table` in cq/codegen/expressions/json_text.py, of i32 words: the number of steps, then
STEP words for each: the number of an element (-1 for a name), the offset of the name and its length. One walk over the
text finds the value and checks the rest; open objects and arrays are words of step memory.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i32, ld_i64, ld_u8, max_i64, mem_eq, pick, shr_u, st_i64, st_u8
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.arrays import PIECE_LENGTH, PIECE_TEXT, PIECE_WORDS, array_of_texts
from cq.runtime.values.characters import code_point, put_code_point
from cq.runtime.values.numerals import digits_end, letters, word_of
from cq.runtime.values.text import character_bytes, step_bytes

MOST_DEPTH = 200  # as in json_text.py
STEP, NUMBER, NAME, NAME_LENGTH = 3, 1, 2, 3  # words of a step, and their places after the count
NOWHERE = -1
IS_OBJECT, IS_LIVE, ONE_MORE = 1, 2, 4  # of an open one: the path may go on in it; the count of elements before
QUOTE, BACKSLASH, COMMA, COLON, MINUS, PLUS, POINT, ZERO = 0x22, 0x5C, 0x2C, 0x3A, 0x2D, 0x2B, 0x2E, 0x30
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
LETTER_E, LETTER_F, LETTER_N, LETTER_T, LETTER_U, SMALL = 0x65, 0x66, 0x6E, 0x74, 0x75, 0x20
HIGH, LOW, PAST = 0xD800, 0xDC00, 0xE000  # surrogates
TRUE, FALSE, NULL = letters(b"true"), letters(b"false"), letters(b"null")
GROWTH = 6  # the most bytes of an escaped letter


@native("i64(i64, i64, i64)")
def _past_blanks(text: int, length: int, at: int) -> int:
    while at < length and (
        ld_u8(text, at) == 32 or ld_u8(text, at) == 9 or ld_u8(text, at) == 10 or ld_u8(text, at) == 13
    ):
        at += 1
    return at


@native("i64(i64, i64, i64)")
def _hex_unit(text: int, length: int, at: int) -> int:
    """The value of four hex digits; NOWHERE if they are not."""
    if at + 4 > length:
        return NOWHERE
    value = 0
    for k in range(4):
        byte = ld_u8(text, at + k)
        digit = byte - ZERO
        if digit < 0 or digit > 9:
            digit = (byte | SMALL) - 0x61 + 10
            if digit < 10 or digit > 15:
                return NOWHERE
        value = value * 16 + digit
    return value


@native("i64(i64)")
def _escaped(byte: int) -> int:
    """The letter that a backslash and this letter mean; NOWHERE for none."""
    if byte == QUOTE or byte == BACKSLASH or byte == 0x2F:
        return byte
    if byte == 0x62:
        return 8
    if byte == LETTER_F:
        return 12
    if byte == LETTER_N:
        return 10
    if byte == 0x72:
        return 13
    if byte == LETTER_T:
        return 9
    return NOWHERE


@native("i64(i64, i64, i64)")
def _string_end(text: int, length: int, at: int) -> int:
    """The offset after the string whose quote is at an offset; NOWHERE if it is not one."""
    at += 1
    while at < length and ld_u8(text, at) != QUOTE:
        if ld_u8(text, at) == BACKSLASH:
            at += 1
            if at == length:
                return NOWHERE
            if ld_u8(text, at) == LETTER_U:
                if _hex_unit(text, length, at + 1) < 0:
                    return NOWHERE
                at += 4
            elif _escaped(ld_u8(text, at)) < 0:
                return NOWHERE
        at += 1
    if at == length:
        return NOWHERE
    return at + 1


@native("i64(i64, i64, i64)")
def _number_end(text: int, length: int, at: int) -> int:
    """The offset after the number that begins at an offset; NOWHERE if there is none."""
    if at < length and ld_u8(text, at) == MINUS:
        at += 1
    end = digits_end(text, at, length)
    if end == at or (end > at + 1 and ld_u8(text, at) == ZERO):
        return NOWHERE
    if end < length and ld_u8(text, end) == POINT:
        at = end + 1
        end = digits_end(text, at, length)
        if end == at:
            return NOWHERE
    if end < length and ld_u8(text, end) | SMALL == LETTER_E:
        at = end + 1
        if at < length and (ld_u8(text, at) == MINUS or ld_u8(text, at) == PLUS):
            at += 1
        end = digits_end(text, at, length)
        if end == at:
            return NOWHERE
    return end


@native("i64(i64, i64, i64, i64, i64)")
def _word_end(text: int, length: int, at: int, word: int, count: int) -> int:
    """The offset after the word at an offset; NOWHERE if there is another one."""
    if at + count > length or word_of(text, at, at + count, 0) != word:
        return NOWHERE
    return at + count


@native("i64(i64, i64, i64)")
def _scalar_end(text: int, length: int, at: int) -> int:
    """The offset after the string, number or word that begins at an offset; NOWHERE if there is none."""
    byte = ld_u8(text, at)
    if byte == QUOTE:
        return _string_end(text, length, at)
    if byte == LETTER_T:
        return _word_end(text, length, at, TRUE, 4)
    if byte == LETTER_N:
        return _word_end(text, length, at, NULL, 4)
    if byte == LETTER_F:
        return _word_end(text, length, at, FALSE, 5)
    return _number_end(text, length, at)


# -- the walk ----------------------------------------------------------------------------------------------------------


@native("(i64, i64)(i64, i64, i64)")
def _letter(text: int, length: int, at: int) -> tuple[int, int]:
    """The code point at an offset in a string, read through its escape, and the offset after it; half of a surrogate
    pair is itself."""
    byte = ld_u8(text, at)
    if byte != BACKSLASH:
        return code_point(text, at), at + character_bytes(byte)
    if ld_u8(text, at + 1) != LETTER_U:
        return _escaped(ld_u8(text, at + 1)), at + 2
    point = _hex_unit(text, length, at + 2)
    low = NOWHERE
    if point >= HIGH and point < LOW and at + 12 <= length and ld_u8(text, at + 6) == BACKSLASH:
        low = _hex_unit(text, length, at + 8)
    if low >= LOW and low < PAST and ld_u8(text, at + 7) == LETTER_U:
        return 0x10000 + (point - HIGH) * 1024 + low - LOW, at + 12
    return point, at + 6


@native("i64(i64, i64, i64, i64, i64)")
def _put_string(out: int, text: int, length: int, at: int, quoted: int) -> int:
    """Write the letters of the string whose quote is at an offset, escaped and in quotes if `quoted`; return the
    address after them, 0 for half of a surrogate pair that is not escaped."""
    end = _string_end(text, length, at) - 1
    at += 1
    if quoted != 0:
        st_u8(out, 0, QUOTE)
        out += 1
    while at < end:
        point, at = _letter(text, end, at)
        if quoted != 0:
            out = put_letter(out, point)
        elif point >= HIGH and point < PAST:
            return 0
        else:
            out = put_code_point(out, point)
    if quoted != 0:
        st_u8(out, 0, QUOTE)
        out += 1
    return out


@native("i64(i64, i64)")
def _put_unit(out: int, unit: int) -> int:
    """Write sixteen bits as an escape."""
    st_u8(out, 0, BACKSLASH)
    st_u8(out, 1, LETTER_U)
    for k in range(4):
        digit = shr_u(unit, 12 - 4 * k) & 15
        st_u8(out, 2 + k, digit + ZERO + (digit > 9) * 7)
    return out + 6


@native("i64(i64, i64, i64)", export=True)
def json_quoted(state: int, text: int, length: int) -> int:
    """The text as a JSON string."""
    made = step_bytes(state, length * GROWTH + 2)
    if made == 0:
        return 0
    st_u8(made, 0, QUOTE)
    out = made + 1
    for at in range(length):
        byte = ld_u8(text, at)
        if byte < 32 or byte == QUOTE or byte == BACKSLASH:
            out = put_letter(out, byte)
        else:
            st_u8(out, 0, byte)
            out += 1
    st_u8(out, 0, QUOTE)
    st_i64(state, STATE_RESULT, out + 1 - made)
    return made


@native("i64(i64, i64)")
def put_letter(out: int, point: int) -> int:
    """Write a code point inside quotes."""
    if point >= 0x10000:
        out = _put_unit(out, HIGH + shr_u(point - 0x10000, 10))
        return _put_unit(out, LOW + ((point - 0x10000) & 1023))
    if point >= 32 and point != QUOTE and point != BACKSLASH and (point < HIGH or point >= PAST):
        return put_code_point(out, point)
    letter = point
    if point == 8:
        letter = 0x62
    elif point == 9:
        letter = LETTER_T
    elif point == 10:
        letter = LETTER_N
    elif point == 12:
        letter = LETTER_F
    elif point == 13:
        letter = 0x72
    elif point != QUOTE and point != BACKSLASH:
        return _put_unit(out, point)
    st_u8(out, 0, BACKSLASH)
    st_u8(out, 1, letter)
    return out + 2


@native("i64(i64, i64, i64, i64, i64, i64)")
def _is_name(text: int, start: int, end: int, name: int, name_length: int, room: int) -> int:
    """Whether the string between two offsets, with its quotes, is a name. The room takes its letters."""
    at = start + 1
    while at < end - 1 and ld_u8(text, at) != BACKSLASH:
        at += 1
    if at == end - 1:
        return end - start - 2 == name_length and mem_eq(text + start + 1, name, name_length)
    after = _put_string(room, text, end, start, 0)
    return after != 0 and after - room == name_length and mem_eq(room, name, name_length)


@native("i64(i64, i64, i64, i64)")
def _opened(path: int, depth: int, byte: int, live: int) -> int:
    """The word of an object or array that begins with this byte; live: the path continues from it."""
    opened = (byte == OPEN_OBJECT) * IS_OBJECT
    if live != 0:
        by_name = ld_i32(path, depth * STEP + NUMBER) < 0
        opened += (by_name == (byte == OPEN_OBJECT)) * IS_LIVE
    return opened


@native("(i64, i64)(i64, i64, i64, i64, i64, i64, i64)")
def _past_name(text: int, length: int, at: int, path: int, step: int, room: int, live: int) -> tuple[int, int]:
    """Where the value of the field that begins at an offset begins, NOWHERE if there is no field; and whether the path,
    if it was live, continues there."""
    if at >= length or ld_u8(text, at) != QUOTE:
        return NOWHERE, 0
    after = _string_end(text, length, at)
    if after < 0:
        return NOWHERE, 0
    if live != 0:
        name = path + ld_i32(path, step + NAME)
        live = _is_name(text, at, after, name, ld_i32(path, step + NAME_LENGTH), room + MOST_DEPTH * 8)
    at = _past_blanks(text, length, after)
    if at >= length or ld_u8(text, at) != COLON:
        return NOWHERE, 0
    return _past_blanks(text, length, at + 1), live


@native("i64(i64)")
def _closing(opened: int) -> int:
    """The bracket that closes it."""
    return pick(opened & IS_OBJECT != 0, CLOSE_OBJECT, CLOSE_ARRAY)


@native("(i64, i64)(i64, i64, i64, i64)")
def _walk(text: int, length: int, path: int, room: int) -> tuple[int, int]:
    """Where the value at a path begins and ends, NOWHERE if it is not there; the end is 0 if the text is not JSON.
    room: MOST_DEPTH words, followed by as many bytes as the text has."""
    steps = ld_i32(path, 0)
    start = NOWHERE
    end = NOWHERE
    depth = 0
    live = 1
    at = _past_blanks(text, length, 0)
    while True:
        # a value begins here; live: the path leads to it
        if at >= length:
            return NOWHERE, 0
        byte = ld_u8(text, at)
        here = live != 0 and depth == steps and start < 0
        if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            if depth == MOST_DEPTH:
                return NOWHERE, 0
            if here:
                start = at
            opened = _opened(path, depth, byte, live != 0 and depth < steps and start < 0)
            st_i64(room, depth, opened)
            depth += 1
            at = _past_blanks(text, length, at + 1)
            fresh = 1
        else:
            after = _scalar_end(text, length, at)
            if after < 0:
                return NOWHERE, 0
            if here and byte != LETTER_N:
                start = at
                end = after
            at = after
            fresh = 0
        # after a value, or after the bracket that opens one
        at = _past_blanks(text, length, at)
        while depth > 0 and at < length and ld_u8(text, at) == _closing(ld_i64(room, depth - 1)):
            depth -= 1
            fresh = 0
            if depth == steps and start >= 0 and end < 0:
                end = at + 1
            at = _past_blanks(text, length, at + 1)
        if depth == 0:
            return start, pick(at == length, end, 0)
        opened = ld_i64(room, depth - 1)
        if fresh == 0:
            if at >= length or ld_u8(text, at) != COMMA:
                return NOWHERE, 0
            at = _past_blanks(text, length, at + 1)
            opened += ONE_MORE
            st_i64(room, depth - 1, opened)
        live = opened & IS_LIVE != 0 and start < 0
        if opened & IS_OBJECT != 0:
            at, live = _past_name(text, length, at, path, (depth - 1) * STEP, room, live)
            if at < 0:
                return NOWHERE, 0
        elif live:
            live = shr_u(opened, 2) == ld_i32(path, (depth - 1) * STEP + NUMBER)


# -- results ----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _room(state: int, length: int) -> int:
    """Memory for a walk; 0 without."""
    return step_bytes(state, MOST_DEPTH * 8 + length)


@native("i64(i64, i64, i64, i64)")
def _put_value(out: int, text: int, start: int, end: int) -> int:
    """Write a value without blanks; return the address after it."""
    at = start
    while at < end:
        byte = ld_u8(text, at)
        if byte == QUOTE:
            after = _string_end(text, end, at)
            out = _put_string(out, text, after, at, 1)
            at = after
        else:
            if byte > 32:
                st_u8(out, 0, byte)
                out += 1
            at += 1
    return out


@native("i64(i64, i64, i64, i64)")
def _put_text(out: int, text: int, start: int, end: int) -> int:
    """Write a value as text: a string's letters, an object or array without blanks, all else as written. Return the
    address after it, 0 for half of a surrogate pair. It takes up to GROWTH bytes for each of the value's."""
    byte = ld_u8(text, start)
    if byte == QUOTE:
        return _put_string(out, text, end, start, 0)
    if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
        return _put_value(out, text, start, end)
    copy(out, text + start, end - start)
    return out + end - start


@native("i64(i64, i64, i64, i64, i64)", export=True)
def json_at(state: int, text: int, length: int, path: int, nested: int) -> int:
    """The value at a path as text, an object or array only if `nested`; a length below 0 for none."""
    room = _room(state, length)
    if room == 0:
        return 0
    st_i64(state, STATE_RESULT, NOWHERE)
    start, end = _walk(text, length, path, room)
    if start < 0 or end == 0:
        return room
    byte = ld_u8(text, start)
    if (byte == OPEN_OBJECT or byte == OPEN_ARRAY) and nested == 0:
        return room
    made = step_bytes(state, (end - start) * GROWTH)
    if made == 0:
        return 0
    after = _put_text(made, text, start, end)
    if after != 0:
        st_i64(state, STATE_RESULT, after - made)
    return made


@native("i64(i64, i64, i64, i64)", export=True)
def json_is_valid(state: int, text: int, length: int, path: int) -> int:
    """1 for a text that is JSON, 2 for another; 0 without memory. The path is the empty one."""
    room = _room(state, length)
    if room == 0:
        return 0
    _, end = _walk(text, length, path, room)
    return 1 + (end == 0)


# -- elements of an array ----------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)")
def _value_end(text: int, length: int, at: int) -> int:
    """The offset after the value that begins at an offset of valid JSON."""
    if ld_u8(text, at) != OPEN_OBJECT and ld_u8(text, at) != OPEN_ARRAY:
        return _scalar_end(text, length, at)
    depth = 0
    while True:
        byte = ld_u8(text, at)
        if byte == QUOTE:
            at = _string_end(text, length, at)
            continue
        at += 1
        if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            depth += 1
        elif byte == CLOSE_OBJECT or byte == CLOSE_ARRAY:
            depth -= 1
            if depth == 0:
                return at


@native("i64(i64, i64, i64)")
def _next_element(text: int, length: int, at: int) -> int:
    """The offset of the element after the value that ends at an offset of valid JSON, or of the closing bracket."""
    at = _past_blanks(text, length, at)
    if ld_u8(text, at) == COMMA:
        at = _past_blanks(text, length, at + 1)
    return at


@native("i64(i64, i64, i64)")
def _elements(text: int, start: int, end: int) -> int:
    """How many elements the array between two offsets has."""
    count = 0
    at = _past_blanks(text, end, start + 1)
    while ld_u8(text, at) != CLOSE_ARRAY:
        count += 1
        at = _next_element(text, end, _value_end(text, end, at))
    return count


@native("i64(i64, i64, i64, i64)", export=True)
def json_count(state: int, text: int, length: int, path: int) -> int:
    """The number of elements of the text as an array, below 0 if it is not one; the address of memory, 0 without. The
    path is the empty one."""
    room = _room(state, length)
    if room == 0:
        return 0
    st_i64(state, STATE_RESULT, NOWHERE)
    start, end = _walk(text, length, path, room)
    if start >= 0 and end != 0 and ld_u8(text, start) == OPEN_ARRAY:
        st_i64(state, STATE_RESULT, _elements(text, start, end))
    return room


@native("i64(i64, i64, i64, i64)", export=True)
def json_elements(state: int, text: int, length: int, path: int) -> int:
    """The elements of the text as an array of texts; a length below 0 if it is not an array. The path is the empty
    one."""
    room = _room(state, length)
    if room == 0:
        return 0
    st_i64(state, STATE_RESULT, NOWHERE)
    start, end = _walk(text, length, path, room)
    if start < 0 or end == 0 or ld_u8(text, start) != OPEN_ARRAY:
        return room
    count = _elements(text, start, end)
    items = step_bytes(state, count * PIECE_WORDS * 8)
    out = step_bytes(state, (end - start) * GROWTH)
    if items == 0 or out == 0:
        return 0
    at = _past_blanks(text, end, start + 1)
    for item in range(count):
        after = _value_end(text, end, at)
        size = NOWHERE
        if ld_u8(text, at) != LETTER_N:
            written = _put_text(out, text, at, after)
            if written != 0:
                size = written - out
        st_i64(items, item * PIECE_WORDS + PIECE_TEXT, out)
        st_i64(items, item * PIECE_WORDS + PIECE_LENGTH, size)
        out += max_i64(size, 0)
        at = _next_element(text, end, after)
    return array_of_texts(state, items, count)
