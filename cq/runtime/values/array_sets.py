"""Arrays as sets: what two of them share, how many values one has. Conventions as in arrays.py; NULLs equal each other
if elements are kept, and are ignored if they are counted.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, ld_u8, st_i64, udiv, wadd, wsub
from cq.runtime.values.array_building import ASCENDING, array_take, ascending_indices, first_indices, ordered_indices
from cq.runtime.values.arrays import array_flags, array_new, element_order

NO_STEP, TOO_MANY = -1, -2  # instead of an address: errors of a sequence


@native("i64(i64, i64)", export=True)
def array_count(array: int, how: int) -> int:
    """The number of elements that are not NULL."""
    flags = array_flags(array, how)
    count = 0
    for index in range(ld_i64(array, 0)):
        if ld_u8(flags, index) == 0:
            count += 1
    return count


@native("i64(i64, i64, i64, i64, i64)")
def _has(array: int, indices: int, other: int, at: int, how: int) -> int:
    """Whether an array has an element equal to the one at an index of another. indices: its own, in ascending order,
    NULLs last."""
    flags = array_flags(array, how)
    null = ld_u8(array_flags(other, how), at)
    low = 0
    high = ld_i64(array, 0)
    count = high
    while low < high:
        middle = (low + high) >> 1
        index = ld_i64(indices, middle)
        before = 0  # whether the element in the middle goes before the wanted one
        if ld_u8(flags, index) == 0:
            before = 1
            if null == 0 and element_order(array, index, other, at, how) >= 0:
                before = 0
        if before != 0:
            low = middle + 1
        else:
            high = middle
    if low == count:
        return 0
    index = ld_i64(indices, low)
    if null != 0:
        return ld_u8(flags, index) != 0  # after all values there are only NULLs
    if ld_u8(flags, index) != 0:
        return 0
    return element_order(array, index, other, at, how) == 0


@native("i64(i64, i64, i64, i64, i64)", export=True)
def array_kept(state: int, array: int, other: int, how: int, wanted: int) -> int:
    """The elements, each once, that another array has if `wanted`, else those that it does not have."""
    count = ld_i64(array, 0)
    first = first_indices(state, array, how)
    if first == 0:
        return 0
    indices = ordered_indices(state, other, how, ASCENDING)
    if indices == 0:
        return 0
    size = 0
    for n in range(ld_i64(first, count)):
        index = ld_i64(first, n)
        if _has(other, indices, array, index, how) == wanted:
            st_i64(first, size, index)
            size += 1
    return array_take(state, array, first, size, how)


@native("i64(i64, i64, i64, i64)", export=True)
def array_shared(state: int, array: int, other: int, how: int) -> int:
    """How many non-NULL elements another array has, too; -1 without memory."""
    indices = ordered_indices(state, other, how, ASCENDING)
    if indices == 0:
        return -1
    flags = array_flags(array, how)
    shared = 0
    for index in range(ld_i64(array, 0)):
        if ld_u8(flags, index) == 0:
            shared += _has(other, indices, array, index, how)
    return shared


@native("i64(i64, i64, i64)", export=True)
def array_compact(state: int, array: int, how: int) -> int:
    """The elements that are not NULL."""
    flags = array_flags(array, how)
    count = ld_i64(array, 0)
    indices = ascending_indices(state, count)
    if indices == 0:
        return 0
    size = 0
    for index in range(count):
        if ld_u8(flags, index) == 0:
            st_i64(indices, size, index)
            size += 1
    return array_take(state, array, indices, size, how)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def array_sequence(state: int, start: int, stop: int, step: int, most: int) -> int:
    """The numbers from `start` to `stop` by `step`, at most `most`; 0 without memory, NO_STEP or TOO_MANY."""
    if step == 0:
        return NO_STEP
    count = 0
    if step > 0 and start <= stop:
        count = _steps(start, stop, step, most)
    elif step < 0 and start >= stop:
        count = _steps(stop, start, wsub(0, step), most)
    if count > most:
        return TOO_MANY
    made = array_new(state, count, 1)
    if made != 0:
        number = start
        for n in range(count):
            st_i64(made, 1 + n, number)
            number = wadd(number, step)
    return made


@native("i64(i64, i64, i64, i64)")
def _steps(low: int, high: int, step: int, most: int) -> int:
    """How many numbers there are from one to another, at most one more than `most`. step: without its sign."""
    between = udiv(wsub(high, low), step)
    if between < 0 or between >= most:
        return most + 1
    return between + 1
