"""Random texts that are JSON or nearly so, and calls of every JSON function on column 0."""

from __future__ import annotations

import random

from cq.lang.expressions import Call, Column, Literal
from cq.lang.functions import all_scalars
from cq.lang.types import VARCHAR

PATHS = ("$", "$.a", "$.b", "$.a.b", "$.a.a", "$[0]", "$[1]", "$.a[0]", "$.a[1].b", "$[0].a", "$['é']", '$["a b"]')
LETTERS = (
    "a", "b", "é", "日", "💡", r"\n", r"\"", r"\\", r"\/", r"\u00e9", r"\u0041", r"\u0001", r"\ud83d\ude00", r"\ud800",
    r"\udc00", "\x01", "\t", "1", "{", ",", "a", "b", "a", "b",
)  # fmt: skip
SCALARS = ("null", "true", "false", "0", "-0", "1.50", "1e5", "-12.0E-3", "12345678901234567890", '"true"', '"null"')
BROKEN = ("01", "tru", "nul", ".5", "1.", "1e", "NaN", "-", "falze", "'a'", r'"\x"', r'"\u12"')


def _blank(rng: random.Random) -> str:
    return rng.choice(("", "", "", "", " ", "\n", " \t"))


def _string(rng: random.Random) -> str:
    return '"' + "".join(rng.choices(LETTERS, k=rng.randint(0, 3))) + '"'


def _value(rng: random.Random, depth: int) -> str:
    pick = rng.random()
    if depth and pick < 0.35:
        names = [rng.choice(('"a"', '"a"', '"b"', '"é"', r'"\u0061"', '"a b"', '""', _string(rng))) for _ in range(3)]
        inside = [f"{n}{_blank(rng)}:{_blank(rng)}{_value(rng, depth - 1)}" for n in names[: rng.randint(0, 3)]]
        return "{" + _blank(rng) + f"{_blank(rng)},{_blank(rng)}".join(inside) + _blank(rng) + "}"
    if depth and pick < 0.6:
        inside = [_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
        return "[" + _blank(rng) + f"{_blank(rng)},{_blank(rng)}".join(inside) + _blank(rng) + "]"
    return rng.choice(BROKEN) if rng.random() < 0.03 else rng.choice((*SCALARS, _string(rng), _string(rng)))


def document(rng: random.Random) -> str:
    """A value with blanks around it; occasionally with a letter too few or too many."""
    text = _blank(rng) + _value(rng, 3) + _blank(rng)
    if rng.random() < 0.25 and text:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(("", "{", "}", "]", ",", '"', "\\", ":", " ", "x")) + text[at + 1 :]
    return text


def _call(name: str, *path: str) -> Call:
    entry = all_scalars()[name]
    found = entry.signature([VARCHAR] * (1 + len(path)), [None, *path])
    assert found is not None, (name, path)
    return Call(found.returns, True, entry, (Column(VARCHAR, True, 0), *(Literal(VARCHAR, False, p) for p in path)))


CALLS = [_call("json_array_length"), _call("json_valid"), _call("json_array_elements")]
CALLS += [_call(name, path) for path in PATHS for name in ("json_value", "get_json_object")]
