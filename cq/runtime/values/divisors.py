"""Divisors of integers: the native side of cq/lang/functions/integers.py.

Sharing: none.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import pick, udiv, umulhi, urem, wmul, wsub


@native("i64(i64, i64)", export=True)
def common_divisor(x: int, y: int) -> int:
    """The greatest common divisor as unsigned bits: below 0 if it is 2**63."""
    a = pick(x < 0, wsub(0, x), x)
    b = pick(y < 0, wsub(0, y), y)
    while b != 0:
        rest = urem(a, b)
        a = b
        b = rest
    return a


@native("i64(i64, i64)", export=True)
def common_multiple(x: int, y: int) -> int:
    """The least common multiple; below 0 if it does not fit a BIGINT."""
    divisor = common_divisor(x, y)
    if x == 0 or y == 0:
        return 0
    a = udiv(pick(x < 0, wsub(0, x), x), divisor)
    b = pick(y < 0, wsub(0, y), y)
    if umulhi(a, b) != 0:
        return -1
    return wmul(a, b)


@native("i64(i64)", export=True)
def product_up_to(n: int) -> int:
    """The product of 1 to n, for n <= 20."""
    product = 1
    for factor in range(2, n + 1):
        product = product * factor
    return product
