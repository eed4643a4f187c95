"""Functions and aggregates in Python for random queries: kernels compile some, the others stay Python's, and two
functions may fail."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any, Optional

from cases import Prepared

import cq
from cq.lang.aggregates.user import UserFold
from cq.lang.functions.user import UserFunction
from cq.lang.types import Kind


@cq.udf
def stepped(n: int, m: int) -> int:
    found = 0
    for i in range(n % 5):
        found += m % (i + 2)
    return found if n < m else -found


@cq.udf
def damped(x: float, go: bool) -> float:
    return x / (1.0 + abs(x)) if go else -x


@cq.udf
def ranked(n: Optional[int], x: Optional[float]) -> Optional[int]:  # noqa: UP045  as users write it
    if n is None or x is None:
        return 7
    return None if x > 3.5 or n % 3 == 0 else n // 2


@cq.udf
def paired(left: Optional[str], right: str) -> str:  # noqa: UP045  as users write it
    return f"{right}/{'none' if left is None else left.upper()}"


@cq.udf
def is_even(day: dt.date, n: int) -> bool:
    return (day.day + n) % 2 == 0


@cq.udf("DECIMAL(12, 2)", ["DECIMAL(9, 2)", "SMALLINT"])
def shared(amount: Decimal, parts: int) -> Decimal:
    return amount / (abs(parts) + 1)


@cq.udf
def inverse(n: int) -> int:
    return 100 // (n % 4)


@cq.udf
def initial(text: str) -> str:
    return text[0]


@cq.udaf
class smoothed:
    """The order of the rows decides."""

    zero = (0.0, False)

    @staticmethod
    def add(state: tuple[float, bool], x: float, n: int) -> tuple[float, bool]:
        value, begun = state
        return (value + (x - value) / (2 + n % 7), True) if begun else (x, True)

    @staticmethod
    def result(state: tuple[float, bool]) -> float:
        return state[0]


@cq.udaf
class stretch:
    """NULL of fewer than two rows."""

    zero = (0, 0, 0)

    @staticmethod
    def add(state: tuple[int, int, int], n: int) -> tuple[int, int, int]:
        rows, least, most = state
        return (rows + 1, min(least, n), max(most, n)) if rows else (1, n, n)

    @staticmethod
    def result(state: tuple[int, int, int]) -> Optional[int]:  # noqa: UP045  as users write it
        return None if state[0] < 2 else state[2] // 2 - state[1] // 2


@cq.udaf("VARCHAR", ["VARCHAR"], name="written")
class Written:
    """Python is asked for every row."""

    zero = (0, 0)

    @staticmethod
    def add(state: Any, text: str) -> Any:
        return state[0] + 1, (state[1] * 31 + len(text)) % 1009

    @staticmethod
    def result(state: Any) -> str:
        return f"{state[0]}:{state[1]}"


TOTAL = (stepped, damped, ranked, paired, is_even, shared)
FOLDS: tuple[UserFold, ...] = (smoothed, stretch, Written)
FUNCTIONS: tuple[UserFunction, ...] = (*TOTAL, inverse, initial)


def prepared(text: str) -> Prepared:
    """A random query, which may call these functions."""
    return Prepared(text, (*FUNCTIONS, *FOLDS))


def drawn(kind: Kind, wild: bool, rng: random.Random) -> UserFunction | None:
    """A function with a result of this kind; one that may fail only if wild."""
    fitting = [f for f in (FUNCTIONS if wild else TOTAL) if f.returns.type.kind is kind]
    return rng.choice(fitting) if fitting else None
