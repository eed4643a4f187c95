"""Text in kernels: comparison, SPLIT, and bytes that live for one step.

Strings are (address, length) in UTF-8. A function that makes a new string takes its bytes from the step memory of the
state (`step_bytes`), a chain of blocks that the next step reuses.

Sharing: none. Step memory belongs to the kernel whose state holds it.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    alloc,
    compare,
    copy,
    ctz,
    ld_i32,
    ld_i64,
    ld_u8,
    max_i64,
    mem_eq,
    mem_find,
    min_i64,
    pick,
    release,
    shr_u,
    st_i64,
    wmul,
    wsub,
)
from cq.runtime.layout.abi import STATE_ERROR_TEXT, STATE_ERROR_VALUE, STATE_SCRATCH, STRING_SLACK_BYTES, TOLD_BYTES
from cq.runtime.layout.words import Struct

_step = Struct("STEP")
STEP_CAPACITY = _step.word()
STEP_USED = _step.word()
STEP_OLDER = _step.word()  # -> the block before, freed at the next reset
STEP_HEADER_BYTES = _step.size() * 8

FIRST_STEP_BYTES = 4096
MOST_TEXT_BYTES = 2**31 - 1  # of one text; its offsets in a column have 32 bits


@native("i64(i64, i64)", export=True)
def step_bytes(state: int, size: int) -> int:
    """Room for `size` bytes until the next `step_reset`; 0 without memory, or for too many. Never 0 for size 0."""
    if size > MOST_TEXT_BYTES:
        return 0
    block = ld_i64(state, STATE_SCRATCH)
    if block != 0:
        used = ld_i64(block, STEP_USED)
        if used + size <= ld_i64(block, STEP_CAPACITY):
            st_i64(block, STEP_USED, used + size)
            return block + STEP_HEADER_BYTES + used
    capacity = max_i64(FIRST_STEP_BYTES, size)
    if block != 0:
        capacity = max_i64(ld_i64(block, STEP_CAPACITY) * 2, size)
    fresh = alloc(STEP_HEADER_BYTES + capacity + STRING_SLACK_BYTES)
    if fresh == 0:
        return 0
    st_i64(fresh, STEP_CAPACITY, capacity)
    st_i64(fresh, STEP_USED, size)
    st_i64(fresh, STEP_OLDER, block)
    st_i64(state, STATE_SCRATCH, fresh)
    return fresh + STEP_HEADER_BYTES


@native("void(i64, i64)")
def step_give_back(state: int, size: int) -> None:
    """Give back the last `size` bytes, which must be the last ones requested."""
    block = ld_i64(state, STATE_SCRATCH)
    st_i64(block, STEP_USED, ld_i64(block, STEP_USED) - size)


@native("i64(i64)", export=True, inline=True)
def step_reset(state: int) -> int:
    """Make the bytes given since the last reset available again."""
    block = ld_i64(state, STATE_SCRATCH)
    if block != 0:
        if ld_i64(block, STEP_OLDER) != 0:
            step_drop_older(block)
        st_i64(block, STEP_USED, 0)
    return 0


@native("i64(i64)", export=True)
def step_drop(state: int) -> int:
    """Free the step memory."""
    block = ld_i64(state, STATE_SCRATCH)
    if block != 0:
        step_drop_older(block)
        release(block)
        st_i64(state, STATE_SCRATCH, 0)
    return 0


@native("i64(i64)")
def step_held_bytes(state: int) -> int:
    """The bytes of the step memory, given or not."""
    held = 0
    block = ld_i64(state, STATE_SCRATCH)
    while block != 0:
        held += ld_i64(block, STEP_CAPACITY)
        block = ld_i64(block, STEP_OLDER)
    return held


@native("void(i64)", export=True)
def step_drop_older(block: int) -> None:
    older = ld_i64(block, STEP_OLDER)
    while older != 0:
        following = ld_i64(older, STEP_OLDER)
        release(older)
        older = following
    st_i64(block, STEP_OLDER, 0)


@native("i64(i64, i64, i64, i64)", export=True)
def text_compare(a: int, a_length: int, b: int, b_length: int) -> int:
    """Below, at or above 0 as a sorts before, with or after b, byte by byte."""
    shorter = min_i64(a_length, b_length)
    order = 0
    if shorter > 0:
        order = compare(a, b, shorter)
    if order == 0:
        order = a_length - b_length
    return order


@native("i64(i64, i64, i64)", inline=True)
def text_same(a: int, b: int, length: int) -> int:
    """Whether, as 1 or 0, two texts of one length are equal. Short ones are compared as their first and last words,
    which may overlap: a call takes longer.
    """
    if length > 16:
        return 1 if mem_eq(a, b, length) else 0
    differ = 0
    last = length - 8
    if length >= 8:
        differ = (ld_i64(a, 0) ^ ld_i64(b, 0)) | (ld_i64(a + last, 0) ^ ld_i64(b + last, 0))
    elif length >= 4:
        differ = (ld_i32(a, 0) ^ ld_i32(b, 0)) | (ld_i32(a + last + 4, 0) ^ ld_i32(b + last + 4, 0))
    elif length > 0:
        middle = length >> 1
        differ = (ld_u8(a, 0) ^ ld_u8(b, 0)) | (ld_u8(a, middle) ^ ld_u8(b, middle))
        differ = differ | (ld_u8(a, length - 1) ^ ld_u8(b, length - 1))
    return 1 if differ == 0 else 0


@native("i64(i64)", inline=True)
def character_bytes(first: int) -> int:
    """The length of a UTF-8 character in bytes, by its first byte."""
    size = 1
    if first >= 240:
        size = 4
    elif first >= 224:
        size = 3
    elif first >= 192:
        size = 2
    return size


_EACH_BYTE = 72340172838076673  # 0x01 in every byte
_EACH_TOP_BIT = -9187201950435737472  # 0x80 in every byte


@native("i64(i64, i64, i64, i64)", inline=True)
def find_byte(text: int, length: int, at: int, byte: int) -> int:
    """The first place of `byte` at or after `at`; `length` if there is none. Reads up to 15 bytes past the end.

    A byte of x is 0 where the text has the wanted one; (x - 0x01…) & ~x has its top bit set there first (Mycroft).
    Two words per step: most words of a language end within them, so the loop has no branch to mispredict.
    """
    pattern = wmul(byte, _EACH_BYTE)
    end = length
    while at < length:
        x = ld_i64(text + at, 0) ^ pattern
        y = ld_i64(text + at, 1) ^ pattern
        first = wsub(x, _EACH_BYTE) & ~x & _EACH_TOP_BIT
        second = wsub(y, _EACH_BYTE) & ~y & _EACH_TOP_BIT
        if (first | second) != 0:
            skipped = pick(first != 0, ctz(first), ctz(second) + 64)
            end = min_i64(length, at + shr_u(skipped, 3))
            break
        at += 16
    return end


@native("void(i64, i64, i64)", inline=True)
def copy_text(target: int, source: int, length: int) -> None:
    """Copy a string, short ones as two words: up to 16 bytes past both ends are read and written."""
    if length > 16:
        copy(target, source, length)
    elif length > 0:
        first = ld_i64(source, 0)
        second = ld_i64(source, 1)
        st_i64(target, 0, first)
        st_i64(target, 1, second)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def split_end(text: int, length: int, at: int, separator: int, separator_length: int) -> int:
    """Where the piece that begins at `at` ends: at the next separator or the end; an empty separator never occurs."""
    if separator_length == 1:
        wanted = ld_u8(separator, 0)
        end = at
        while end < length and ld_u8(text, end) != wanted:
            end += 1
        return end
    if separator_length == 0:
        return length
    found = mem_find(text + at, length - at, separator, separator_length)
    if found < 0:
        return length
    return at + found


@native("i64(i64, i64, i64)", inline=True)
def split_next(length: int, end: int, separator_length: int) -> int:
    """Where the piece after the one that ended at `end` begins; beyond `length` if there is none."""
    following = end + separator_length
    if end >= length:
        following = length + 1
    return following


@native("void(i64, i64, i64)", export=True)
def keep_failed_text(state: int, address: int, length: int) -> None:
    """Keep the first bytes of a text for the message about it."""
    st_i64(state, STATE_ERROR_VALUE, length)
    copy(state + STATE_ERROR_TEXT * 8, address, min_i64(length, TOLD_BYTES))
