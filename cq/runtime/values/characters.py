"""Functions of text that count code points, search, replace and match: the native side of cq/lang/functions/text.py.

Text is valid UTF-8, so whole code points can be compared and searched as bytes. A part of a text is not copied: its
function returns byte offsets. New text is fresh step bytes, with the length in STATE_RESULT; 0 without memory.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import MAX64, copy, ld_i32, ld_u8, ld_u16, mem_eq, mem_find, shr_u, st_i64, st_u8, wsub
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.text import character_bytes, step_bytes

CONTINUES = 0xC0  # the upper two bits of a byte; 0x80 in every byte of a character except the first
CONTINUATION = 0x80
ANY_ONE, ANY_RUN = 95, 37  # `_` and `%`
SPACE = 0x20


@native("i64(i64, i64)", export=True)
def text_length(text: int, length: int) -> int:
    """The number of code points."""
    count = 0
    for at in range(length):
        count += ld_u8(text, at) & CONTINUES != CONTINUATION
    return count


@native("i64(i64, i64, i64, i64)", export=True)
def text_forward(text: int, length: int, at: int, count: int) -> int:
    """The offset `count` code points after `at`, at most the end."""
    while count > 0 and at < length:
        at += character_bytes(ld_u8(text, at))
        count -= 1
    return at


@native("i64(i64, i64)")
def _character_before(text: int, at: int) -> int:
    """Where the character that ends before `at` > 0 begins."""
    at -= 1
    while ld_u8(text, at) & CONTINUES == CONTINUATION:
        at -= 1
    return at


@native("i64(i64, i64, i64)", export=True)
def text_last(text: int, length: int, count: int) -> int:
    """The offset of the last `count` code points; 0 if there are no more."""
    at = length
    while count > 0 and at > 0:
        at = _character_before(text, at)
        count -= 1
    return at


@native("i64(i64, i64, i64)", export=True)
def substring_start(text: int, length: int, start: int) -> int:
    """Where SUBSTRING from `start` begins: 0 counts as 1, below 0 from the end."""
    if start < 0:
        if start < -length:
            return 0
        return text_last(text, length, -start)
    return text_forward(text, length, 0, start - (start > 0))


@native("i64(i64, i64, i64, i64, i64)", export=True)
def substring_end(text: int, length: int, start: int, count: int, first: int) -> int:
    """Where SUBSTRING of `count` code points from `start`, which begins at `first`, ends."""
    if count <= 0:
        return first
    if start < 0 and first == 0 and count != MAX64:  # the window may begin before the text
        missing = wsub(0, start + text_length(text, length))
        if missing > 0:
            count -= missing
    if count >= length - first:  # more than there are bytes
        return length
    return text_forward(text, length, first, count)


@native("i64(i64, i64, i64, i64)", export=True)
def slice_end(text: int, length: int, last: int, first: int) -> int:
    """Where a slice that begins at `first` ends, after the code point with number `last`: below 0 from the end."""
    if last < -length:
        return first
    end = text_last(text, length, -last - 1) if last < 0 else text_forward(text, length, 0, last)
    return end if end > first else first


@native("i64(i64, i64, i64, i64)", export=True)
def trim_start(text: int, length: int, characters: int, characters_length: int) -> int:
    """The offset of the first code point that is not one of the characters."""
    at = 0
    while at < length:
        size = character_bytes(ld_u8(text, at))
        if characters_length == 0 or mem_find(characters, characters_length, text + at, size) < 0:
            break
        at += size
    return at


@native("i64(i64, i64, i64, i64, i64)", export=True)
def trim_end(text: int, length: int, first: int, characters: int, characters_length: int) -> int:
    """The offset after the last code point, not before `first`, that is not one of the characters."""
    end = length
    while end > first:
        at = _character_before(text, end)
        if characters_length == 0 or mem_find(characters, characters_length, text + at, end - at) < 0:
            break
        end = at
    return end


@native("i64(i64, i64, i64, i64)", export=True)
def text_position(text: int, length: int, part: int, part_length: int) -> int:
    """The code point, from 1, at which the part first occurs; 0 if it does not."""
    found = mem_find(text, length, part, part_length)
    if found < 0:
        return 0
    return text_length(text, found) + 1


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def text_replace(
    state: int, text: int, length: int, search: int, search_length: int, other: int, other_length: int
) -> int:
    """The text with every occurrence of `search`, left to right, replaced; an empty one never occurs."""
    count = 0
    at = 0
    found = -1
    if search_length > 0:
        found = mem_find(text, length, search, search_length)
    while found >= 0:
        count += 1
        at += found + search_length
        found = mem_find(text + at, length - at, search, search_length)
    size = length + count * (other_length - search_length)
    made = step_bytes(state, size)
    if made == 0:
        return 0
    out = made
    at = 0
    for _ in range(count):
        found = mem_find(text + at, length - at, search, search_length)
        copy(out, text + at, found)
        copy(out + found, other, other_length)
        out += found + other_length
        at += found + search_length
    copy(out, text + at, length - at)
    st_i64(state, STATE_RESULT, size)
    return made


# -- LIKE -------------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64)")
def _stands_at(text: int, length: int, part: int, part_length: int) -> int:
    """Whether the text begins with the part."""
    return part_length <= length and mem_eq(text, part, part_length)


@native("i64(i64, i64, i64, i64)", export=True)
def like_is_valid(pattern: int, length: int, escape: int, escape_length: int) -> int:
    """Whether the escape is one code point and precedes only `_`, `%` and itself in the pattern."""
    if escape_length == 0 or escape_length != character_bytes(ld_u8(escape, 0)):
        return 0
    at = 0
    while at < length:
        if _stands_at(pattern + at, length - at, escape, escape_length) != 0:
            at += escape_length
            if at == length:
                return 0
            byte = ld_u8(pattern, at)
            itself = _stands_at(pattern + at, length - at, escape, escape_length)
            if byte != ANY_ONE and byte != ANY_RUN and itself == 0:
                return 0
        at += character_bytes(ld_u8(pattern, at))
    return 1


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def text_like(text: int, length: int, pattern: int, pattern_length: int, escape: int, escape_length: int) -> int:
    """Whether the text matches a valid pattern.

    Every `%` takes as little as possible, and only the last one seen is tried again: an earlier one never has to take
    more. So the time is at most the product of the two lengths.
    """
    at = 0
    of = 0  # the next element of the pattern
    again = -1  # the element after the last `%`, and where its stretch was tried last
    tried = 0
    while at < length:
        size = character_bytes(ld_u8(text, at))
        fits = False
        following = of
        if of < pattern_length:
            byte = ld_u8(pattern, of)
            escaped = _stands_at(pattern + of, pattern_length - of, escape, escape_length)
            if escaped != 0:
                of += escape_length
            elif byte == ANY_RUN:
                of += 1
                again = of
                tried = at
                continue
            if escaped == 0 and byte == ANY_ONE:
                following = of + 1
                fits = True
            else:
                following = of + character_bytes(ld_u8(pattern, of))
                fits = _stands_at(text + at, length - at, pattern + of, following - of) != 0
        if fits:
            at += size
            of = following
        elif again >= 0:
            tried += character_bytes(ld_u8(text, tried))
            at = tried
            of = again
        else:
            return 0
    while of < pattern_length and ld_u8(pattern, of) == ANY_RUN:
        if _stands_at(pattern + of, pattern_length - of, escape, escape_length) != 0:
            return 0  # `%` is the escape: the next character is missing
        of += 1
    return of == pattern_length


# -- upper and lower case ---------------------------------------------------------------------------------------------

# A case table (cq/codegen/expressions/case_tables.py) maps every code point:
#   u16[CASE_BLOCKS]         the place of each block of CASE_BLOCK code points, in units of one block
#   blocks of i32            class + 4 * change; a change below CASE_SPECIAL is added to the code point, others are
#                            CASE_SPECIAL + the offset, from the table's start, of a count and that many bytes of UTF-8
CASE_BLOCK_BITS = 7
CASE_BLOCK = 1 << CASE_BLOCK_BITS
CASE_BLOCKS = 0x110000 >> CASE_BLOCK_BITS
CASE_SPECIAL = 0x200000
CASE_CLASS = 3
CASED, CASE_IGNORABLE, CAPITAL_SIGMA = 1, 2, 3
FINAL_SIGMA = 0x3C2
MOST_CASE_GROWTH = 3  # bytes of the result for one byte of the text


@native("i64(i64, i64)", export=True)
def code_point(text: int, at: int) -> int:
    """The code point at an offset."""
    first = ld_u8(text, at)
    if first < 0x80:
        return first
    if first < 0xE0:
        return (first & 0x1F) * 64 + (ld_u8(text, at + 1) & 0x3F)
    if first < 0xF0:
        return ((first & 0x0F) * 64 + (ld_u8(text, at + 1) & 0x3F)) * 64 + (ld_u8(text, at + 2) & 0x3F)
    high = (first & 0x07) * 64 + (ld_u8(text, at + 1) & 0x3F)
    return (high * 64 + (ld_u8(text, at + 2) & 0x3F)) * 64 + (ld_u8(text, at + 3) & 0x3F)


@native("i64(i64, i64)")
def put_code_point(out: int, point: int) -> int:
    """Write a code point in UTF-8; return the address after it."""
    if point < 0x80:
        st_u8(out, 0, point)
        return out + 1
    if point < 0x800:
        st_u8(out, 0, 0xC0 | shr_u(point, 6))
        st_u8(out, 1, 0x80 | point & 0x3F)
        return out + 2
    if point < 0x10000:
        st_u8(out, 0, 0xE0 | shr_u(point, 12))
        st_u8(out, 1, 0x80 | shr_u(point, 6) & 0x3F)
        st_u8(out, 2, 0x80 | point & 0x3F)
        return out + 3
    st_u8(out, 0, 0xF0 | shr_u(point, 18))
    st_u8(out, 1, 0x80 | shr_u(point, 12) & 0x3F)
    st_u8(out, 2, 0x80 | shr_u(point, 6) & 0x3F)
    st_u8(out, 3, 0x80 | point & 0x3F)
    return out + 4


@native("i64(i64, i64)")
def _case_entry(table: int, point: int) -> int:
    block = ld_u16(table, shr_u(point, CASE_BLOCK_BITS))
    return ld_i32(table, block * CASE_BLOCK + (point & (CASE_BLOCK - 1)))


@native("i64(i64, i64, i64, i64)")
def _is_final(text: int, length: int, at: int, table: int) -> int:
    """Whether the capital sigma at an offset ends a word: a letter before it and none after, ignorable ones aside."""
    before = at
    kind = CASE_IGNORABLE
    while before > 0 and kind == CASE_IGNORABLE:
        before = _character_before(text, before)
        kind = _case_entry(table, code_point(text, before)) & CASE_CLASS
    if kind == 0 or kind == CASE_IGNORABLE:
        return 0
    after = at + 2  # bytes of the sigma itself
    while after < length:
        kind = _case_entry(table, code_point(text, after)) & CASE_CLASS
        if kind != CASE_IGNORABLE:
            return kind == 0
        after += character_bytes(ld_u8(text, after))
    return 1


@native("i64(i64, i64, i64, i64, i64)", export=True)
def text_case(state: int, text: int, length: int, first: int, table: int) -> int:
    """The text in upper or lower case; ASCII letters from `first` (65 or 97) to the 25th after it change by 32."""
    ascii_end = 0
    while ascii_end < length and ld_u8(text, ascii_end) < 0x80:
        ascii_end += 1
    made = step_bytes(state, ascii_end + (length - ascii_end) * MOST_CASE_GROWTH)
    if made == 0:
        return 0
    for i in range(ascii_end):
        byte = ld_u8(text, i)
        st_u8(made, i, byte ^ (byte >= first and byte <= first + 25) * 32)
    out = made + ascii_end
    at = ascii_end
    while at < length:
        point = code_point(text, at)
        entry = _case_entry(table, point)
        change = entry >> 2
        if entry & CASE_CLASS == CAPITAL_SIGMA and change != 0 and _is_final(text, length, at, table) != 0:
            out = put_code_point(out, FINAL_SIGMA)
        else:
            out = _put_changed(out, table, point, change)
        at += character_bytes(ld_u8(text, at))
    st_i64(state, STATE_RESULT, out - made)
    return made


@native("i64(i64, i64, i64, i64)")
def _put_changed(out: int, table: int, point: int, change: int) -> int:
    """Write the result of a code point's change in a table; return the address after it."""
    if change < CASE_SPECIAL:
        return put_code_point(out, point + change)
    special = table + change - CASE_SPECIAL
    copy(out, special + 1, ld_u8(special, 0))
    return out + ld_u8(special, 0)


@native("i64(i64, i64, i64, i64)", export=True)
def text_titles(state: int, text: int, length: int, table: int) -> int:
    """The text with the first letters of words, separated by spaces, changed by a table for titles."""
    made = step_bytes(state, length * MOST_CASE_GROWTH)
    if made == 0:
        return 0
    out = made
    at = 0
    begins = 1
    while at < length:
        byte = ld_u8(text, at)
        size = character_bytes(byte)
        if begins != 0:
            point = code_point(text, at)
            out = _put_changed(out, table, point, _case_entry(table, point) >> 2)
        else:
            copy(out, text + at, size)
            out += size
        begins = byte == SPACE
        at += size
    st_i64(state, STATE_RESULT, out - made)
    return made
