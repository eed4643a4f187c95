"""Regular expressions in kernels: the automaton of cq/lang/regex/automaton.py, run over its table.

A table, made by `regex_table` in cq/codegen/expressions/regular.py, is i32 words: a header, the class of each ASCII
character (bytes), the bounds and the classes of all code points, the next state of each state and class, the place of
its move (-1 for none) and the moves: whether a way becomes a match, that way and its slots as bits; the number of ways
of the next state, and each one's origin (-1 for a new one) and slots. The memory of a search holds the slots of the
match, then those of the ways before and after a code point.

Time: one step for each code point, and for each open way if places are noted. Sharing: none. The state belongs to the
kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i32, ld_i64, ld_u8, max_i64, shr_u, st_i64
from cq.runtime.layout.abi import STATE_RESULT, ErrorCode
from cq.runtime.layout.words import Struct
from cq.runtime.values.arrays import PIECE_LENGTH, PIECE_TEXT, PIECE_WORDS, array_of_texts
from cq.runtime.values.characters import code_point
from cq.runtime.values.text import character_bytes, step_bytes

HEADER = ("classes", "slots", "widest", "beyond", "line", "letter", "other", "bounds", "next", "moves", "content")
CLASSES, SLOTS, WIDEST, STARTS, BOUNDS, NEXT, MOVES, CONTENT = map(
    HEADER.index, ("classes", "slots", "widest", "beyond", "bounds", "next", "moves", "content")
)
ASCII = len(HEADER)  # the word where the classes of ASCII begin
ASCII_POINTS = 128
BOUND = ASCII + ASCII_POINTS // 4  # the word where bounds begin
DEAD, ACCEPT = 0, 1  # as in automaton.py
LINE_KIND, LETTER_KIND, OTHER_KIND = 1, 2, 3
GOOD, NO_MEMORY = int(ErrorCode.NONE), int(ErrorCode.NO_MEMORY)

# words of 32 bits
_move_words = Struct("MOVE")
MOVE_MATCHES = _move_words.word()  # 1: a way becomes a match
MOVE_ORIGIN = _move_words.word()  # that way; -1: a new one
MOVE_SLOTS = _move_words.word()  # which of its slots are set to this place, as bits
MOVE_WAYS = _move_words.word()  # number of ways of the next state
MOVE_FIRST = _move_words.rest()  # and each of them

_way = Struct("WAY")
WAY_ORIGIN = _way.word()
WAY_SLOTS = _way.word()
WAY_WORDS = _way.size()

# the start of a search's memory: the slots of the whole match
_match = Struct("MATCH")
MATCH_START = _match.word()
MATCH_END = _match.rest()

_insert = Struct("INSERT")  # a piece of a replacement
INSERT_SLOT = _insert.word()  # of the group whose text it is; -1: it has its own text,
INSERT_TEXT = _insert.word()  # this many bytes after the first piece,
INSERT_LENGTH = _insert.word()  # of this many bytes
INSERT_WORDS = _insert.size()


@native("i64(i64, i64, i64)")
def _class_at(table: int, text: int, at: int) -> int:
    """The class of the code point at an offset."""
    byte = ld_u8(text, at)
    if byte < ASCII_POINTS:
        return ld_u8(table + ASCII * 4, byte)
    point = code_point(text, at)
    low = 0
    high = ld_i32(table, BOUNDS)
    while high - low > 1:
        middle = shr_u(low + high, 1)
        if ld_i32(table, BOUND + middle) <= point:
            low = middle
        else:
            high = middle
    return ld_i32(table, BOUND + ld_i32(table, BOUNDS) + low)


@native("i64(i64, i64, i64)", export=True)
def regex_like(table: int, text: int, length: int) -> int:
    """Whether there is a match, for an automaton without slots."""
    state = ld_i32(table, STARTS)
    classes = ld_i32(table, CLASSES)
    following = ld_i32(table, NEXT)
    at = 0
    while state > ACCEPT and at < length:
        state = ld_i32(table, following + state * classes + _class_at(table, text, at))
        at += character_bytes(ld_u8(text, at))
    if state > ACCEPT:
        state = ld_i32(table, following + state * classes + classes - 1)
    return state == ACCEPT


@native("i64(i64, i64)")
def _kind_before(text: int, at: int) -> int:
    """The kind of the code point before an offset; 0 for none."""
    if at == 0:
        return 0
    byte = ld_u8(text, at - 1)
    if byte == 10:
        return LINE_KIND
    if (byte >= 48 and byte <= 57) or (byte >= 65 and byte <= 90) or (byte >= 97 and byte <= 122) or byte == 95:
        return LETTER_KIND
    return OTHER_KIND


@native("void(i64, i64, i64, i64, i64)")
def _put_slots(target: int, source: int, slots: int, bits: int, at: int) -> None:
    """The slots of a way that continues: those of its origin (0 for a new one), some of them set to this place."""
    for slot in range(slots):
        value = -1
        if source != 0:
            value = ld_i64(source, slot)
        if shr_u(bits, slot) & 1 != 0:
            value = at
        st_i64(target, slot, value)


@native("i64(i64, i64, i64, i64, i64, i64, i64)")
def _move(move: int, match: int, ways: int, onward: int, slots: int, at: int, found: int) -> int:
    """Write the slots of the next state's ways to `onward`, those of a match to `match`; 1 if there is one."""
    source = 0
    if ld_i32(move, MOVE_MATCHES) != 0:
        found = 1
        if ld_i32(move, MOVE_ORIGIN) >= 0:
            source = ways + ld_i32(move, MOVE_ORIGIN) * slots * 8
        _put_slots(match, source, slots, ld_i32(move, MOVE_SLOTS), at)
    for number in range(ld_i32(move, MOVE_WAYS)):
        source = 0
        way = move + (MOVE_FIRST + number * WAY_WORDS) * 4
        if ld_i32(way, WAY_ORIGIN) >= 0:
            source = ways + ld_i32(way, WAY_ORIGIN) * slots * 8
        _put_slots(onward + number * slots * 8, source, slots, ld_i32(way, WAY_SLOTS), at)
    return found


@native("i64(i64, i64)", export=True)
def regex_memory(state: int, table: int) -> int:
    """The memory shared by searches with this table; 0 if there is none."""
    return step_bytes(state, ld_i32(table, SLOTS) * 8 * (1 + 2 * ld_i32(table, WIDEST)))


@native("i64(i64, i64, i64, i64, i64)", export=True)
def regex_find(table: int, memory: int, text: int, length: int, at: int) -> int:
    """Whether there is a match from `at` on; its slots are then in the memory."""
    state = ld_i32(table, STARTS + _kind_before(text, at))
    classes = ld_i32(table, CLASSES)
    slots = ld_i32(table, SLOTS)
    following = ld_i32(table, NEXT)
    moves = ld_i32(table, MOVES)
    content = table + ld_i32(table, CONTENT) * 4
    ways = memory + slots * 8
    onward = ways + ld_i32(table, WIDEST) * slots * 8
    found = 0
    while state != DEAD:
        kind = classes - 1
        size = 1
        if at < length:
            kind = _class_at(table, text, at)
            size = character_bytes(ld_u8(text, at))
        move = ld_i32(table, moves + state * classes + kind)
        if move >= 0:
            found = _move(content + move * 4, memory, ways, onward, slots, at, found)
            free = ways
            ways = onward
            onward = free
        state = ld_i32(table, following + state * classes + kind)
        at += size
    return found


@native("i64(i64, i64, i64)")
def _after(memory: int, text: int, length: int) -> int:
    """Where the search after a match begins: at its end, after the next code point if it is empty."""
    end = ld_i64(memory, MATCH_END)
    if ld_i64(memory, MATCH_START) < end:
        return end
    if end < length:
        return end + character_bytes(ld_u8(text, end))
    return length + 1


@native("i64(i64, i64, i64, i64)", export=True)
def regex_count(state: int, table: int, text: int, length: int) -> int:
    """Counts the matches; an ErrorCode."""
    memory = regex_memory(state, table)
    if memory == 0:
        return NO_MEMORY
    count = 0
    at = 0
    while at <= length and regex_find(table, memory, text, length, at) != 0:
        count += 1
        at = _after(memory, text, length)
    st_i64(state, STATE_RESULT, count)
    return GOOD


@native("i64(i64, i64, i64, i64, i64)", export=True)
def regex_matches(state: int, table: int, text: int, length: int, slot: int) -> int:
    """The array of what the group with these slots matched in each match: one pass to count, one to list them."""
    if regex_count(state, table, text, length) != GOOD:
        return 0
    count = ld_i64(state, STATE_RESULT)
    memory = regex_memory(state, table)
    items = step_bytes(state, count * PIECE_WORDS * 8)
    if memory == 0 or items == 0:
        return 0
    at = 0
    for item in range(count):
        regex_find(table, memory, text, length, at)
        first = max_i64(ld_i64(memory, slot), 0)  # -1 if the group took no part
        st_i64(items, item * PIECE_WORDS + PIECE_TEXT, text + first)
        st_i64(items, item * PIECE_WORDS + PIECE_LENGTH, max_i64(ld_i64(memory, slot + 1), 0) - first)
        at = _after(memory, text, length)
    return array_of_texts(state, items, count)


@native("i64(i64, i64, i64)")
def _piece_size(pieces: int, number: int, memory: int) -> int:
    """The bytes of a piece of the replacement."""
    slot = ld_i32(pieces, number * INSERT_WORDS + INSERT_SLOT)
    if slot < 0:
        return ld_i32(pieces, number * INSERT_WORDS + INSERT_LENGTH)
    return ld_i64(memory, slot + 1) - ld_i64(memory, slot)


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def regex_replace(state: int, table: int, text: int, length: int, pieces: int, count: int) -> int:
    """The text with every match replaced by the pieces: one pass for its length, one to write it."""
    memory = regex_memory(state, table)
    if memory == 0:
        return 0
    size = length
    at = 0
    while at <= length and regex_find(table, memory, text, length, at) != 0:
        size -= ld_i64(memory, MATCH_END) - ld_i64(memory, MATCH_START)
        for number in range(count):
            size += _piece_size(pieces, number, memory)
        at = _after(memory, text, length)
    made = step_bytes(state, size)
    if made == 0:
        return 0
    out = made
    done = 0
    at = 0
    while at <= length and regex_find(table, memory, text, length, at) != 0:
        copy(out, text + done, ld_i64(memory, MATCH_START) - done)
        out += ld_i64(memory, MATCH_START) - done
        for number in range(count):
            part = pieces + ld_i32(pieces, number * INSERT_WORDS + INSERT_TEXT)
            slot = ld_i32(pieces, number * INSERT_WORDS + INSERT_SLOT)
            if slot >= 0:
                part = text + ld_i64(memory, slot)
            width = _piece_size(pieces, number, memory)
            if width > 0:
                copy(out, part, width)
            out += width
        done = ld_i64(memory, MATCH_END)
        at = _after(memory, text, length)
    copy(out, text + done, length - done)
    st_i64(state, STATE_RESULT, size)
    return made
