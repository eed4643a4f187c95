"""The watermark of every row of a batch, for stages where rows wait: closing times that depend on data.

A column of i64: the watermark in force when the row is taken, after its own time has moved it. It never falls. It is
indexed by serial, so one column serves the rows of all sources, and lanes find rows of other lanes in it. A kernel
compares a row's watermark with the next time at which something is due.

Sharing: written by the maker of the batch, read by the kernels that take it.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, max_i64, min_i64, st_i64


@native("void(i64, i64, i64)")
def marks_fill(marks: int, rows: int, watermark: int) -> None:
    """Give these rows one watermark. marks: -> that of the first."""
    for row in range(rows):
        st_i64(marks, row, watermark)


@native("void(i64, i64, i64, i64, i64, i64, i64)")
def marks_follow(marks: int, rows: int, times: int, maximum: int, delay: int, others: int, watermark: int) -> None:
    """Give rows of one source their watermarks. marks, times: -> those of the first.

    maximum, watermark: before the first.  others: the lowest watermark of the other sources; none of them moves.
    """
    for row in range(rows):
        maximum = max_i64(maximum, ld_i64(times, row))
        st_i64(marks, row, max_i64(watermark, min_i64(maximum - delay, others)))


@native("i64(i64, i64, i64, i64)", export=True)
def marks_reach(marks: int, first: int, last: int, instant: int) -> int:
    """Return the first place from `first` on whose watermark has reached the instant; `last` if none before it has.

    The search doubles its steps: the result is near `first` if instants are searched in ascending order.
    """
    step = 1
    while first + step <= last and ld_i64(marks, first + step - 1) < instant:
        first += step
        step += step
    high = min_i64(first + step - 1, last)
    while first < high:
        middle = (first + high) >> 1
        if ld_i64(marks, middle) < instant:
            first = middle + 1
        else:
            high = middle
    return first
