"""Digests and digits of bytes: MD5, SHA-1, SHA-256, CRC-32, hexadecimal and binary; the native side of text_bytes.py.

Digests work on 32-bit words held in 64 bits; texts are padded by RFC 1321 and FIPS 180-4. `round_constants` in
cq/codegen/expressions/text_building.py makes the constants of the rounds.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import clz, copy, fill, ld_u8, ld_u32, max_i64, sdiv, shl, shr_u, st_i64, st_u8, st_u32
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.characters import put_code_point
from cq.runtime.values.numerals import ZERO
from cq.runtime.values.text import step_bytes

LOW_WORD = 0xFFFFFFFF
BLOCK_BYTES = 64
UPPER_A, LOWER_A = 65 - 10, 97 - 10  # added to a digit of 10 or more
SCHEDULE_BYTES = 80 * 4
MOST_DIGEST = 64  # hexadecimal digits of the longest digest


@native("i64(i64, i64)")
def _rotated(word: int, count: int) -> int:
    """A 32-bit word rotated to the left."""
    return (shl(word, count) | shr_u(word, 32 - count)) & LOW_WORD


@native("i64(i64, i64, i64, i64, i64)")
def _put_digits(out: int, value: int, count: int, bits: int, letter: int) -> int:
    """Write the last `count` digits of `bits` bits each; return the address after them."""
    for at in range(count):
        digit = shr_u(value, bits * (count - 1 - at)) & (shl(1, bits) - 1)
        if digit < 10:
            st_u8(out, at, ZERO + digit)
        else:
            st_u8(out, at, letter + digit)
    return out + count


@native("i64(i64, i64, i64)", export=True)
def write_bits(state: int, value: int, bits: int) -> int:
    """A number's 64 bits as digits of `bits` bits each, without leading zeros."""
    made = step_bytes(state, 64)
    if made == 0:
        return 0
    count = max_i64(1, sdiv(64 - clz(value) + bits - 1, bits))
    _put_digits(made, value, count, bits, UPPER_A)
    st_i64(state, STATE_RESULT, count)
    return made


@native("i64(i64, i64, i64)", export=True)
def write_hex(state: int, text: int, length: int) -> int:
    """The bytes as two hexadecimal digits each."""
    made = step_bytes(state, length * 2)
    if made == 0:
        return 0
    for at in range(length):
        _put_digits(made + at * 2, ld_u8(text, at), 2, 4, UPPER_A)
    st_i64(state, STATE_RESULT, length * 2)
    return made


@native("i64(i64, i64)", export=True)
def write_character(state: int, number: int) -> int:
    """The character with this number modulo 256; nothing for a negative one."""
    made = step_bytes(state, 4)
    if made == 0:
        return 0
    end = made
    if number >= 0:
        end = put_code_point(made, number & 255)
    st_i64(state, STATE_RESULT, end - made)
    return made


@native("i64(i64, i64)", export=True)
def check_sum(text: int, length: int) -> int:
    """The CRC-32 of the bytes."""
    rest = LOW_WORD
    for at in range(length):
        rest = rest ^ ld_u8(text, at)
        for _ in range(8):
            rest = shr_u(rest, 1) ^ (0xEDB88320 & -(rest & 1))
    return rest ^ LOW_WORD


# -- digests ----------------------------------------------------------------------------------------------------------


@native("i64(i64)")
def _padded_bytes(length: int) -> int:
    """The bytes of a text with its end mark and its length, in whole blocks."""
    return (length + 8 + BLOCK_BYTES) & -BLOCK_BYTES


@native("void(i64, i64, i64, i64)")
def _pad(out: int, text: int, length: int, big: int) -> None:
    """Write the text, its end mark, and its length in bits, the upper byte first if `big` is 1."""
    size = _padded_bytes(length)
    copy(out, text, length)
    st_u8(out, length, 0x80)
    fill(out + length + 1, 0, size - length - 1)
    for at in range(8):
        byte = shr_u(length * 8, 8 * at) & 255
        if big != 0:
            st_u8(out, size - 1 - at, byte)
        else:
            st_u8(out, size - 8 + at, byte)


@native("i64(i64, i64)")
def _big_word(block: int, index: int) -> int:
    """The word of a block whose upper byte comes first."""
    first = block + index * 4
    return shl(ld_u8(first, 0), 24) | shl(ld_u8(first, 1), 16) | shl(ld_u8(first, 2), 8) | ld_u8(first, 3)


@native("i64(i64)")
def _bytes_turned(word: int) -> int:
    """The word with its bytes reversed."""
    return shl(word & 255, 24) | shl(shr_u(word, 8) & 255, 16) | shl(shr_u(word, 16) & 255, 8) | shr_u(word, 24)


@native("i64(i64, i64, i64, i64)", export=True)
def digest_md5(state: int, text: int, length: int, table: int) -> int:
    """The MD5 digest. table: u32[64] addends, then u32[64] rotations."""
    size = _padded_bytes(length)
    made = step_bytes(state, MOST_DIGEST + size)
    if made == 0:
        return 0
    block = made + MOST_DIGEST
    _pad(block, text, length, 0)
    a0 = 0x67452301
    b0 = 0xEFCDAB89
    c0 = 0x98BADCFE
    d0 = 0x10325476
    end = block + size
    while block < end:
        a = a0
        b = b0
        c = c0
        d = d0
        for i in range(64):
            if i < 16:
                f = b & c | ~b & d
                g = i
            elif i < 32:
                f = d & b | ~d & c
                g = 5 * i + 1 & 15
            elif i < 48:
                f = b ^ c ^ d
                g = 3 * i + 5 & 15
            else:
                f = c ^ (b | ~d & LOW_WORD)
                g = 7 * i & 15
            turned = (f & LOW_WORD) + a + ld_u32(table, i) + ld_u32(block, g) & LOW_WORD
            a = d
            d = c
            c = b
            b = b + _rotated(turned, ld_u32(table, 64 + i)) & LOW_WORD
        a0 = a0 + a & LOW_WORD
        b0 = b0 + b & LOW_WORD
        c0 = c0 + c & LOW_WORD
        d0 = d0 + d & LOW_WORD
        block += BLOCK_BYTES
    out = _put_digits(made, _bytes_turned(a0), 8, 4, LOWER_A)
    out = _put_digits(out, _bytes_turned(b0), 8, 4, LOWER_A)
    out = _put_digits(out, _bytes_turned(c0), 8, 4, LOWER_A)
    _put_digits(out, _bytes_turned(d0), 8, 4, LOWER_A)
    st_i64(state, STATE_RESULT, 32)
    return made


@native("i64(i64, i64, i64)", export=True)
def digest_sha1(state: int, text: int, length: int) -> int:
    """The SHA-1 digest."""
    size = _padded_bytes(length)
    made = step_bytes(state, MOST_DIGEST + SCHEDULE_BYTES + size)
    if made == 0:
        return 0
    words = made + MOST_DIGEST
    block = words + SCHEDULE_BYTES
    _pad(block, text, length, 1)
    h0 = 0x67452301
    h1 = 0xEFCDAB89
    h2 = 0x98BADCFE
    h3 = 0x10325476
    h4 = 0xC3D2E1F0
    end = block + size
    while block < end:
        for i in range(16):
            st_u32(words, i, _big_word(block, i))
        for i in range(16, 80):
            mixed = ld_u32(words, i - 3) ^ ld_u32(words, i - 8) ^ ld_u32(words, i - 14) ^ ld_u32(words, i - 16)
            st_u32(words, i, _rotated(mixed, 1))
        a = h0
        b = h1
        c = h2
        d = h3
        e = h4
        for i in range(80):
            if i < 20:
                f = b & c | ~b & d
                k = 0x5A827999
            elif i < 40:
                f = b ^ c ^ d
                k = 0x6ED9EBA1
            elif i < 60:
                f = b & c | b & d | c & d
                k = 0x8F1BBCDC
            else:
                f = b ^ c ^ d
                k = 0xCA62C1D6
            turned = _rotated(a, 5) + f + e + k + ld_u32(words, i) & LOW_WORD
            e = d
            d = c
            c = _rotated(b, 30)
            b = a
            a = turned
        h0 = h0 + a & LOW_WORD
        h1 = h1 + b & LOW_WORD
        h2 = h2 + c & LOW_WORD
        h3 = h3 + d & LOW_WORD
        h4 = h4 + e & LOW_WORD
        block += BLOCK_BYTES
    out = _put_digits(made, h0, 8, 4, LOWER_A)
    out = _put_digits(out, h1, 8, 4, LOWER_A)
    out = _put_digits(out, h2, 8, 4, LOWER_A)
    out = _put_digits(out, h3, 8, 4, LOWER_A)
    _put_digits(out, h4, 8, 4, LOWER_A)
    st_i64(state, STATE_RESULT, 40)
    return made


@native("i64(i64, i64, i64, i64)", export=True)
def digest_sha256(state: int, text: int, length: int, table: int) -> int:
    """The SHA-256 digest. table: u32[64] addends, then u32[8] initial digest."""
    size = _padded_bytes(length)
    made = step_bytes(state, MOST_DIGEST + SCHEDULE_BYTES + 32 + size)
    if made == 0:
        return 0
    words = made + MOST_DIGEST
    sums = words + SCHEDULE_BYTES
    block = sums + 32
    _pad(block, text, length, 1)
    copy(sums, table + 64 * 4, 32)
    end = block + size
    while block < end:
        for i in range(16):
            st_u32(words, i, _big_word(block, i))
        for i in range(16, 64):
            w = ld_u32(words, i - 15)
            low = _rotated(w, 25) ^ _rotated(w, 14) ^ shr_u(w, 3)
            w = ld_u32(words, i - 2)
            high = _rotated(w, 15) ^ _rotated(w, 13) ^ shr_u(w, 10)
            st_u32(words, i, ld_u32(words, i - 16) + low + ld_u32(words, i - 7) + high & LOW_WORD)
        a = ld_u32(sums, 0)
        b = ld_u32(sums, 1)
        c = ld_u32(sums, 2)
        d = ld_u32(sums, 3)
        e = ld_u32(sums, 4)
        f = ld_u32(sums, 5)
        g = ld_u32(sums, 6)
        h = ld_u32(sums, 7)
        for i in range(64):
            mixed = _rotated(e, 26) ^ _rotated(e, 21) ^ _rotated(e, 7)
            first = h + mixed + (e & f ^ ~e & g) + ld_u32(table, i) + ld_u32(words, i)
            mixed = _rotated(a, 30) ^ _rotated(a, 19) ^ _rotated(a, 10)
            second = mixed + (a & b ^ a & c ^ b & c)
            h = g
            g = f
            f = e
            e = d + first & LOW_WORD
            d = c
            c = b
            b = a
            a = first + second & LOW_WORD
        st_u32(sums, 0, ld_u32(sums, 0) + a & LOW_WORD)
        st_u32(sums, 1, ld_u32(sums, 1) + b & LOW_WORD)
        st_u32(sums, 2, ld_u32(sums, 2) + c & LOW_WORD)
        st_u32(sums, 3, ld_u32(sums, 3) + d & LOW_WORD)
        st_u32(sums, 4, ld_u32(sums, 4) + e & LOW_WORD)
        st_u32(sums, 5, ld_u32(sums, 5) + f & LOW_WORD)
        st_u32(sums, 6, ld_u32(sums, 6) + g & LOW_WORD)
        st_u32(sums, 7, ld_u32(sums, 7) + h & LOW_WORD)
        block += BLOCK_BYTES
    for i in range(8):
        _put_digits(made + i * 8, ld_u32(sums, i), 8, 4, LOWER_A)
    st_i64(state, STATE_RESULT, 64)
    return made
