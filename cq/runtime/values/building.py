"""Texts made from texts: the native side of cq/lang/functions/text_building.py.

Conventions as in characters.py: text is valid UTF-8, new text is fresh step bytes with the length in STATE_RESULT.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    copy,
    fill,
    ld_i64,
    ld_u8,
    max_i64,
    mem_eq,
    mem_find,
    min_i64,
    sdiv,
    st_i64,
)
from cq.runtime.layout.abi import STATE_RESULT, ErrorCode
from cq.runtime.values.characters import code_point, substring_end, substring_start, text_forward, text_length
from cq.runtime.values.text import character_bytes, step_bytes, step_give_back

GOOD, NO_MEMORY = int(ErrorCode.NONE), int(ErrorCode.NO_MEMORY)
FARTHEST = 1 << 40  # beyond all places in a text; the sum of two fits a word
BLANK = 32


@native("i64(i64, i64, i64, i64, i64)", export=True)
def piece_start(text: int, length: int, separator: int, separator_length: int, number: int) -> int:
    """Where the piece with this number, from 1 or from -1 at the end, begins; -1 if there is none."""
    wanted = number
    if number < 0:
        wanted = number + 2
        if separator_length > 0:
            found = mem_find(text, length, separator, separator_length)
            at = 0
            while found >= 0:
                wanted += 1
                at += found + separator_length
                found = mem_find(text + at, length - at, separator, separator_length)
    if wanted < 1:
        return -1
    at = 0
    while wanted > 1:
        found = -1
        if separator_length > 0:
            found = mem_find(text + at, length - at, separator, separator_length)
        if found < 0:
            return -1
        at += found + separator_length
        wanted -= 1
    return at


@native("i64(i64, i64, i64, i64, i64)", export=True)
def separator_at(text: int, length: int, separator: int, separator_length: int, count: int) -> int:
    """Where the separator with this number, from 1 or from -1 at the end, begins; -1 if there are fewer."""
    at = -1
    step = 1
    rest = count
    if count < 0:
        at = length - separator_length + 1
        step = -1
    while rest != 0:
        at += step
        while at >= 0 and at + separator_length <= length and not mem_eq(text + at, separator, separator_length):
            at += step
        if at < 0 or at + separator_length > length:
            return -1
        rest -= step
    return at


@native("i64(i64, i64, i64, i64)")
def _put_repeated(out: int, part: int, size: int, times: int) -> int:
    """Write a part this many times, each copy twice as long as the one before; return the address after them."""
    total = size * times
    done = min_i64(size, total)
    copy(out, part, done)
    while done < total:
        more = min_i64(done, total - done)
        copy(out + done, out, more)
        done += more
    return out + total


@native("i64(i64, i64, i64, i64)", export=True)
def text_repeat(state: int, text: int, length: int, times: int) -> int:
    """The text repeated this many times."""
    count = 0
    if length > 0:
        count = max_i64(times, 0)
    made = step_bytes(state, length * count)
    if made == 0:
        return 0
    _put_repeated(made, text, length, count)
    st_i64(state, STATE_RESULT, length * count)
    return made


@native("i64(i64, i64)", export=True)
def text_blank(state: int, count: int) -> int:
    """This many spaces."""
    size = max_i64(count, 0)
    made = step_bytes(state, size)
    if made != 0:
        fill(made, BLANK, size)
        st_i64(state, STATE_RESULT, size)
    return made


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def text_pad(state: int, text: int, length: int, count: int, padding: int, padding_length: int, before: int) -> int:
    """The text cut or padded, on the left if `before` is 1, to this many code points."""
    had = text_length(text, length)
    missing = 0
    if count > had:
        missing = count - had
    kept = length
    whole = 0
    rest = 0
    if missing == 0 or padding_length == 0:
        kept = text_forward(text, length, 0, count)
    else:
        letters = text_length(padding, padding_length)
        whole = sdiv(missing, letters)
        rest = text_forward(padding, padding_length, 0, missing - whole * letters)
    size = kept + whole * padding_length + rest
    made = step_bytes(state, size)
    if made == 0:
        return 0
    out = made
    if before == 0:
        copy(out, text, kept)
        out += kept
    out = _put_repeated(out, padding, padding_length, whole)
    copy(out, padding, rest)
    if before != 0:
        copy(out + rest, text, kept)
    st_i64(state, STATE_RESULT, size)
    return made


@native("i64(i64, i64, i64)", export=True)
def text_reverse(state: int, text: int, length: int) -> int:
    """The characters from the last to the first."""
    made = step_bytes(state, length)
    if made == 0:
        return 0
    at = 0
    while at < length:
        size = character_bytes(ld_u8(text, at))
        copy(made + length - at - size, text + at, size)
        at += size
    st_i64(state, STATE_RESULT, length)
    return made


@native("i64(i64, i64, i64)")
def _same(character: int, size: int, other: int) -> int:
    """Whether two characters are equal."""
    return character_bytes(ld_u8(other, 0)) == size and mem_eq(character, other, size)


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def text_translate(
    state: int, text: int, length: int, characters: int, characters_length: int, others: int, others_length: int
) -> int:
    """Each of the characters replaced by the one at its place in `others`, or removed if there is none."""
    made = step_bytes(state, length * 4)
    if made == 0:
        return 0
    out = made
    at = 0
    while at < length:
        size = character_bytes(ld_u8(text, at))
        place = 0
        other = 0
        while place < characters_length and _same(text + at, size, characters + place) == 0:
            place += character_bytes(ld_u8(characters, place))
            if other < others_length:
                other += character_bytes(ld_u8(others, other))
        if place >= characters_length:
            copy(out, text + at, size)
            out += size
        elif other < others_length:
            width = character_bytes(ld_u8(others, other))
            copy(out, others + other, width)
            out += width
        at += size
    st_i64(state, STATE_RESULT, out - made)
    return made


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def text_overlay(state: int, text: int, length: int, other: int, other_length: int, start: int, count: int) -> int:
    """The text with `other` in place of `count` code points from `start`."""
    first = max_i64(min_i64(start, FARTHEST), -FARTHEST)
    after = first + max_i64(min_i64(count, FARTHEST), -FARTHEST)
    head = substring_end(text, length, 1, first - 1, 0)
    tail = substring_start(text, length, after)
    size = head + other_length + length - tail
    made = step_bytes(state, size)
    if made == 0:
        return 0
    copy(made, text, head)
    copy(made + head, other, other_length)
    copy(made + head + other_length, text + tail, length - tail)
    st_i64(state, STATE_RESULT, size)
    return made


@native("i64(i64, i64, i64, i64, i64)", export=True)
def text_distance(state: int, text: int, length: int, other: int, other_length: int) -> int:
    """Put Levenshtein's distance into STATE_RESULT, one row of the table at a time; an ErrorCode."""
    columns = text_length(other, other_length)
    size = (columns + 1) * 16
    row = step_bytes(state, size)
    if row == 0:
        return NO_MEMORY
    letters = row + (columns + 1) * 8
    at = 0
    for j in range(columns):
        st_i64(row, j, j)
        st_i64(letters, j, code_point(other, at))
        at += character_bytes(ld_u8(other, at))
    st_i64(row, columns, columns)
    at = 0
    line = 0
    while at < length:
        letter = code_point(text, at)
        at += character_bytes(ld_u8(text, at))
        before = line
        line += 1
        left = line
        st_i64(row, 0, line)
        for j in range(columns):
            above = ld_i64(row, j + 1)
            replaced = before + (letter != ld_i64(letters, j))
            left = min_i64(replaced, min_i64(above, left) + 1)
            st_i64(row, j + 1, left)
            before = above
    st_i64(state, STATE_RESULT, ld_i64(row, columns))
    step_give_back(state, size)
    return GOOD
