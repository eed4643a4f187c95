"""What the restricted Python means in machine code: what Python computes, and what numba makes of the same source."""

from __future__ import annotations

import itertools
import math

import pytest
from both_ways import small_library

from cq.runtime.base import interpret, kernel
from cq.runtime.base.modules import NUMBA
from cq.runtime.base.restricted import TranslationError

CASES = {
    "a local takes the widest kind that is assigned to it": """
def f(a, b):
    x = a > b
    if a > 3:
        x = b
    y = x
    y += 1
    return y + x
""",
    "tuples are assigned at once": """
def f(a, b):
    a, b = b, a
    x, y = both(a, b)
    return a * 7 + b + x * 3 - y
""",
    "loops count apart from their local": """
def f(a, b):
    total = 0
    for i in range(a & 7):
        total = total * 3 + i
        i = 100
        if total > 50:
            continue
        for j in range(b & 3, 9):
            if j == 7:
                break
            total += j
        total += i
    for k in range(10, -3, -4):
        total += k
    for k in range(1, 9, STEP):
        total += k * 5
    return total
""",
    "what follows an end is not reached": """
def f(a, b):
    while True:
        a += 3
        if a > b:
            break
            a = 0
        elif a == 7:
            return a
            b = 2
    while a > b and b > -9:
        a -= 2
        b += 1
    while True:
        if a > 0:
            return a
        return -b
""",
    "and, or and not decide as early as in Python": """
def f(a, b):
    n = 0
    if a > 0 and b > 0 or not a:
        n += 1
    if not (a > b or b > 3) and not (a < 0 and b < 0):
        n += 2
    x = a and b
    y = a or b
    z = (a > 1 and b > 1) or a < -1
    return n * 1000 + x * 10 + y + z
""",
    "comparisons are joined": """
def f(a, b):
    x = 1 < a <= b < 7
    return x + (0 <= a < 5) * 2 + (a == b) * 4 + (a != b != 3) * 8
""",
    "bits of numbers and of truth": """
def f(a, b):
    p = (a > 0) & (b > 0)
    q = (a > 0) | (b > 0)
    r = (a > 0) ^ (b > 0)
    x = ((a & b) | (a ^ 5)) >> 1
    return x + p * 16 + q * 32 + r * 64 + ~a - (-b)
""",
    "division rounds down": """
def f(a, b):
    return a // 7 * 1000 + a % 7 * 10 + b // -4 + b % -4 + a // (b * b + 1)
""",
    "a choice takes the wider kind": """
def f(a, b):
    x = a if a > b else a == b
    y = 1 if a > 2 else 2 if b > 2 else 3
    return x * 10 + y
""",
    "an assert is absent and a docstring is nothing": '''
def f(a, b):
    """Nothing."""
    assert a == a, "holds"
    pass
    return a + b
''',
    "functions without a result are called and end anywhere": """
def f(a, b):
    nothing(a)
    nothing(b)
    return a - b
""",
}
HELPERS = """STEP = 3

def both(a, b):
    return a + b, a - b

def nothing(a):
    if a > 2:
        return
    g = a

def k(state, batch):
    return f(state, batch)
"""
SIGNATURES = {
    "f": "i64(i64, i64)", "k": "i64(i64, i64)", "both": "(i64, i64)(i64, i64)", "nothing": "void(i64)",
}  # fmt: skip
NUMBERS = (-100, -9, -2, -1, 0, 1, 2, 3, 4, 7, 8, 1000)


@pytest.fixture(scope="module", autouse=True)
def library():
    """Little to compile before the stages of these tests."""
    with small_library():
        yield


def results(source: str, signatures: dict[str, str], name: str, arguments) -> list[object]:
    stage = kernel.compile_stage(source, signatures, [name])
    function = kernel.callable_at(stage.addresses[name], signatures[name])
    return [function(*given) for given in arguments]


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_machine_code_computes_what_python_does(case):
    source = HELPERS + CASES[case]
    pairs = list(itertools.product(NUMBERS, NUMBERS))
    python = interpret.interpret_stage(source)["k"]
    assert results(source, SIGNATURES, "k", pairs) == [python(*pair) for pair in pairs]


@pytest.mark.optimised  # its calls that raise are gone once the optimiser sees that they cannot
def test_numba_makes_the_same_of_every_case(monkeypatch):
    every = {f"f{n}": text.replace("def f(", f"def f{n}(") for n, text in enumerate(CASES.values())}
    whole = HELPERS.replace("f(state, batch)", " ^ ".join(f"{name}(state, batch)" for name in every))
    source = whole + "".join(every.values())
    signatures = {**SIGNATURES, **dict.fromkeys(every, "i64(i64, i64)")}
    del signatures["f"]
    pairs = list(itertools.product(NUMBERS, NUMBERS))
    ours = results(source, signatures, "k", pairs)
    monkeypatch.setattr(kernel, "translator_name", lambda: NUMBA)
    assert results(source, signatures, "k", pairs) == ours


DOUBLES = """
def f(x, y):
    n = 0
    if x < y:
        n = n * 2 + 1
    if x <= y or not x:
        n = n * 2 + 1
    n = n * 16 + (x == y) * 8 + (x != y) * 4 + (x > y) * 2 + (x >= y)
    z = 0
    z += x if n > 20 else n
    return -z * 2.5 + y - n * 0.1 + -0.0
"""


def test_doubles_compare_and_compute_as_in_python():
    values = (0.0, -0.0, 1.5, -3.25, 1e300, math.inf, -math.inf, math.nan, 5e-324)
    pairs = list(itertools.product(values, values))
    made = results(DOUBLES, {"f": "f64(f64, f64)"}, "f", pairs)
    python = interpret.interpret_stage(DOUBLES)["f"]
    for pair, found in zip(pairs, made, strict=True):
        wanted = python(*pair)
        assert repr(found) == repr(wanted), pair


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return [a]", "line 2: .a. is not restricted Python"),
        ("return a.real", "is not restricted Python"),
        ("return a ** 2", "is not restricted Python"),
        ("return shl(a, n=1)", "is not restricted Python"),
        ("return shl(a)", "is not restricted Python"),
        ("return open(a)", "open is neither an op, nor a native function, nor a constant"),
        ("return nobody", "nobody is neither an op"),
        ("return 'text'", "'text' is not a number"),
        ("return 1 << 64 if a else 99999999999999999999", "99999999999999999999 does not fit 64 bits"),
        ("if a:\n        return 1", "f: may end without a result"),
        ("return a, a", "is not restricted Python"),
        ("x, y, z = a, a\n    return x", "nothing gives z a value"),
        ("x, y = a, a, a\n    return x", "is not restricted Python"),
        ("return a is 1", "is not restricted Python"),
        ("for i in a:\n        a += i\n    return a", "is not restricted Python"),
        ("for i in range(0, 5, 0):\n        a += i\n    return a", "is not restricted Python"),
        ("while a:\n        a -= 1\n    else:\n        a = 2\n    return a", "is not restricted Python"),
        ("import os\n    return a", "is not restricted Python"),
        ("return a * 0.5", "a value of f64 stands where i64 is needed"),
    ],
)  # fmt: skip
def test_what_is_outside_the_restricted_python_is_refused(body, why):
    with pytest.raises(TranslationError, match=why):
        kernel.compile_stage(f"def f(a):\n    {body}\n", {"f": "i64(i64)"}, ["f"])
