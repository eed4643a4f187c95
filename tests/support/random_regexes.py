"""Random regular expressions, texts for them, and calls of every regular-expression function."""

from __future__ import annotations

import random

from cq.lang.expressions import Call, Column, Literal
from cq.lang.functions import all_scalars
from cq.lang.types import INTEGER, VARCHAR, DataType

ATOMS = ("a", "b", "c", "_", "é", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", "^", "$", r"\b", r"\B", "(?:)", "日")
QUANTIFIERS = ("", "", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}")
LETTERS = "aabbc_ é\n1日💡"


def pattern(rng: random.Random, depth: int = 2) -> str:
    """A pattern. Some are refused: they repeat something that may be empty."""
    rows = (
        "".join(_repeated(rng, depth) for _ in range(rng.randint(0, 3))) for _ in range(rng.choice((1, 1, 1, 2, 3)))
    )
    return "|".join(rows)


def _repeated(rng: random.Random, depth: int) -> str:
    pick = rng.random()
    if depth and pick < 0.3:
        return f"({'?:' if pick < 0.05 else ''}{pattern(rng, depth - 1)}){rng.choice(QUANTIFIERS)}"
    atom = rng.choice(ATOMS)
    return atom + ("" if atom in ("^", "$", r"\b", r"\B", "(?:)") else rng.choice(QUANTIFIERS))


def text(rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(0, 8)))


def calls(regex: str) -> list[Call]:
    """The functions with this pattern on column 0; none if it is refused."""
    forms: list[tuple[str, list[tuple[DataType, str | int]]]] = [
        ("regexp_like", []), ("regexp_count", []), ("regexp_extract", [(INTEGER, 0)]),
        ("regexp_extract", [(INTEGER, 1)]), ("regexp_replace", [(VARCHAR, "<$0>")]),
        ("regexp_replace", [(VARCHAR, r"\1-\\")]),
    ]  # fmt: skip
    made = []
    for name, more in forms:
        entry = all_scalars()[name]
        given = [(VARCHAR, regex), *more]
        signature = entry.signature([VARCHAR, *(t for t, _ in given)], [None, *(v for _, v in given)])
        if signature is not None:
            args = (Column(VARCHAR, True, 0), *(Literal(t, False, v) for t, v in given))
            made.append(Call(signature.returns, True, entry, args))
    return made
