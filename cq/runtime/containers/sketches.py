"""HyperLogLog registers owned by entries: a byte each, in a list. cq/lang/aggregates/sketches.py defines them.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    clz,
    f64_div,
    f64_floor,
    f64_ln,
    f64_to_i64,
    fill,
    i64_to_f64,
    ld_i64,
    ld_u8,
    max_i64,
    pick,
    shl,
    shr_u,
    st_i64,
    st_u8,
    wmul,
)
from cq.runtime.containers.lists import LIST_USED, list_items, list_merge, list_room
from cq.runtime.layout.words import name_words

REGISTER_BITS = 12  # a standard error of 1.04 / sqrt(4096), 1.6 %
REGISTERS = 1 << REGISTER_BITS
MOST_RANK = 50  # so that 4096 times 2**50 is less than 2**63
# 0xFF51AFD7ED558CCD and 0xC4CEB9FE1A85EC53: the finaliser of MurmurHash3
FIRST_MIX = -49064778989728563
SECOND_MIX = -4265267296055464877

name_words(globals())


@native("i64(i64, i64, i64)", export=True)
def sketch_add(table: int, slot: int, word: int) -> int:
    """Add this value to the registers and return 1; 0 without memory."""
    if ld_i64(slot, LIST_USED) == 0:
        if list_room(table, slot, REGISTERS) == 0:
            return 0
        fill(list_items(table, slot), 0, REGISTERS)  # the room may have been used before
        st_i64(slot, LIST_USED, REGISTERS)
    mixed = wmul(word ^ shr_u(word, 33), FIRST_MIX)
    mixed = wmul(mixed ^ shr_u(mixed, 33), SECOND_MIX)
    mixed ^= shr_u(mixed, 33)
    rank = 1 + clz(shl(mixed, REGISTER_BITS) | shl(1, 64 - MOST_RANK))
    number = shr_u(mixed, 64 - REGISTER_BITS)
    registers = list_items(table, slot)
    if rank > ld_u8(registers, number):
        st_u8(registers, number, rank)
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def sketch_merge(table: int, slot: int, other_table: int, other: int) -> int:
    """Merge the other registers into these and return 1; 0 without memory."""
    if ld_i64(slot, LIST_USED) == 0:
        return list_merge(table, slot, other_table, other)
    if ld_i64(other, LIST_USED) != 0:
        mine = list_items(table, slot)
        theirs = list_items(other_table, other)
        for n in range(REGISTERS):
            st_u8(mine, n, max_i64(ld_u8(mine, n), ld_u8(theirs, n)))
    return 1


@native("i64(i64, i64)", export=True)
def sketch_count(table: int, slot: int) -> int:
    """The approximate number of values added to the registers."""
    if ld_i64(slot, LIST_USED) == 0:
        return 0
    registers = list_items(table, slot)
    empty = 0
    total = 0
    for n in range(REGISTERS):
        rank = ld_u8(registers, n)
        total += shl(1, MOST_RANK - rank)
        empty += pick(rank == 0, 1, 0)
    size = i64_to_f64(REGISTERS)
    alpha = f64_div(0.7213, 1.0 + f64_div(1.079, size))
    found = f64_div(alpha * size * size, f64_div(i64_to_f64(total), i64_to_f64(shl(1, MOST_RANK))))
    if found <= 2.5 * size and empty > 0:
        found = size * f64_ln(f64_div(size, i64_to_f64(empty)))
    return f64_to_i64(f64_floor(found + 0.5))
