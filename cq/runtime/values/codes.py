"""Bytes in other alphabets: form fields, hexadecimal digits, base 64; the native side of text_bytes.py and binary.py.

New text is fresh step bytes, with the length in STATE_RESULT; 0 without memory.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import MAX64, ld_u8, min_i64, shl, shr_u, st_i64, st_u8, udiv
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.numerals import ZERO, finish_text
from cq.runtime.values.text import step_bytes

BLANK, PLUS, PERCENT, SLASH, EQUALS = 32, 43, 37, 47, 61
POINT, DASH, STAR, LOW_LINE = 46, 45, 42, 95
NOTHING = -1  # the length that means no text


@native("i64(i64)", inline=True)
def _is_letter_or_digit(byte: int) -> int:
    lower = byte | 32
    return (byte >= ZERO and byte <= ZERO + 9) or (lower >= 97 and lower <= 122)


@native("i64(i64)", inline=True)
def _hex_letter(digit: int) -> int:
    return digit + ZERO + (digit > 9) * 7


@native("i64(i64, i64, i64)", export=True)
def write_url(state: int, text: int, length: int) -> int:
    """The text as a form field."""
    made = step_bytes(state, length * 3)
    if made == 0:
        return 0
    out = made
    for at in range(length):
        byte = ld_u8(text, at)
        plain = byte == POINT or byte == DASH or byte == STAR or byte == LOW_LINE
        if plain or _is_letter_or_digit(byte) != 0:
            st_u8(out, 0, byte)
            out += 1
        elif byte == BLANK:
            st_u8(out, 0, PLUS)
            out += 1
        else:
            st_u8(out, 0, PERCENT)
            st_u8(out, 1, _hex_letter(shr_u(byte, 4)))
            st_u8(out, 2, _hex_letter(byte & 15))
            out += 3
    return finish_text(state, made, out)


@native("i64(i64)")
def _hex_value(byte: int) -> int:
    """The value of a hexadecimal digit; below 0 if it is not one."""
    if byte >= ZERO and byte <= ZERO + 9:
        return byte - ZERO
    lower = byte | 32
    if lower >= 97 and lower <= 102:
        return lower - 87
    return NOTHING


@native("i64(i64, i64, i64)")
def _is_character(text: int, length: int, at: int) -> int:
    """The number of bytes of the UTF-8 character at an offset; 0 if there is none."""
    first = ld_u8(text, at)
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4:
        return 0
    size = 2 + (first >= 0xE0) + (first >= 0xF0)
    if at + size > length:
        return 0
    for k in range(1, size):
        if ld_u8(text, at + k) & 0xC0 != 0x80:
            return 0
    second = ld_u8(text, at + 1)
    too_low = (first == 0xE0 and second < 0xA0) or (first == 0xF0 and second < 0x90)
    too_high = (first == 0xED and second > 0x9F) or (first == 0xF4 and second > 0x8F)
    if too_low or too_high:
        return 0
    return size


@native("i64(i64, i64)", export=True)
def is_utf8(text: int, length: int) -> int:
    """1 if bytes are valid UTF-8, else 0."""
    at = 0
    while at < length:
        size = _is_character(text, length, at)
        if size == 0:
            return 0
        at += size
    return 1


@native("i64(i64, i64, i64)", export=True)
def read_url(state: int, text: int, length: int) -> int:
    """The text that a form field encodes; a length below 0 if it is invalid."""
    made = step_bytes(state, length)
    if made == 0:
        return 0
    st_i64(state, STATE_RESULT, NOTHING)
    count = 0
    at = 0
    while at < length:
        byte = ld_u8(text, at)
        if byte == PLUS:
            byte = BLANK
        elif byte == PERCENT:
            if at + 2 >= length or _hex_value(ld_u8(text, at + 1)) < 0 or _hex_value(ld_u8(text, at + 2)) < 0:
                return made
            byte = _hex_value(ld_u8(text, at + 1)) * 16 + _hex_value(ld_u8(text, at + 2))
            at += 2
        st_u8(made, count, byte)
        count += 1
        at += 1
    if is_utf8(made, count) == 1:
        st_i64(state, STATE_RESULT, count)
    return made


@native("i64(i64, i64, i64)", export=True)
def read_hex(state: int, text: int, length: int) -> int:
    """The bytes that hexadecimal digits encode, of which the first may lack its pair; a length below 0 if others are
    there."""
    made = step_bytes(state, length + 1)
    if made == 0:
        return 0
    st_i64(state, STATE_RESULT, NOTHING)
    out = made
    byte = 0
    for at in range(length):
        digit = _hex_value(ld_u8(text, at))
        if digit < 0:
            return made
        byte = (byte * 16 + digit) & 255
        if (length - at) & 1 == 1:
            st_u8(out, 0, byte)
            out += 1
    st_i64(state, STATE_RESULT, out - made)
    return made


@native("i64(i64)")
def _base64_letter(value: int) -> int:
    """The letter for six bits."""
    if value < 26:
        return value + 65
    if value < 52:
        return value + 71
    if value < 62:
        return value - 4
    if value == 62:
        return PLUS
    return SLASH


@native("i64(i64)")
def _base64_value(letter: int) -> int:
    """The six bits of a letter; below 0 if it is not one."""
    if letter >= 65 and letter <= 90:
        return letter - 65
    if letter >= 97 and letter <= 122:
        return letter - 71
    if letter >= ZERO and letter <= ZERO + 9:
        return letter + 4
    if letter == PLUS:
        return 62
    if letter == SLASH:
        return 63
    return NOTHING


@native("i64(i64, i64, i64)", export=True)
def read_base64(state: int, text: int, length: int) -> int:
    """The bytes that padded base 64 encodes; a length below 0 if it is invalid."""
    made = step_bytes(state, length + 1)
    if made == 0:
        return 0
    st_i64(state, STATE_RESULT, NOTHING)
    if length & 3 != 0:
        return made
    padding = 0
    while padding < 2 and padding < length and ld_u8(text, length - 1 - padding) == EQUALS:
        padding += 1
    out = made
    bits = 0
    for at in range(length):
        value = 0
        if at < length - padding:
            value = _base64_value(ld_u8(text, at))
        if value < 0:
            return made
        bits = (shl(bits, 6) | value) & 0xFFFFFF
        if at & 3 == 3:
            st_u8(out, 0, shr_u(bits, 16))
            st_u8(out, 1, shr_u(bits, 8) & 255)
            st_u8(out, 2, bits & 255)
            out += 3
    st_i64(state, STATE_RESULT, out - made - padding)
    return made


@native("i64(i64, i64)", export=True)
def binary_start(length: int, start: int) -> int:
    """Where SUBSTRING of bytes from `start` begins: 0 counts as 1, below 0 from the end."""
    if start > 0:
        return min_i64(start - 1, length)
    if start == 0 or start < -length:
        return 0
    return length + start


@native("i64(i64, i64, i64, i64)", export=True)
def binary_end(length: int, start: int, count: int, first: int) -> int:
    """Where SUBSTRING of `count` bytes from `start`, which begins at `first`, ends."""
    if start < -length and count != MAX64 and count > 0:  # the window begins before the bytes
        count += start + length
    if count <= 0:
        return first
    return first + min_i64(count, length - first)


@native("i64(i64, i64, i64)", export=True)
def write_base64(state: int, text: int, length: int) -> int:
    """The bytes in base 64."""
    made = step_bytes(state, udiv(length + 2, 3) * 4)
    if made == 0:
        return 0
    out = made
    at = 0
    while at < length:
        bits = 0
        for k in range(3):
            bits = shl(bits, 8)
            if at + k < length:
                bits |= ld_u8(text, at + k)
        for k in range(4):
            letter = EQUALS
            if at + k <= length:
                letter = _base64_letter(shr_u(bits, 18 - 6 * k) & 63)
            st_u8(out, k, letter)
        out += 4
        at += 3
    return finish_text(state, made, out)
