"""Numbers of the binary contract that know their names, so that generated code can say what it touches.

A module that declares word offsets calls `name_words(globals())` behind them. To everybody who computes with it a
`Word` is the int it stands for; the writer of generated code prints its name (cq/codegen/writer.py).
"""

from __future__ import annotations

import re
from typing import Any

_DECLARED = re.compile(r"[A-Z][A-Z0-9_]*")


class Word(int):
    """An int with the name it was declared under. Sums and products of it are plain ints."""

    name: str

    def __new__(cls, value: int, name: str = "") -> Word:
        made = super().__new__(cls, value)
        made.name = name
        return made


def beside(word: int, distance: int, suffix: str) -> int:
    """The word so many places behind another one, named after it."""
    return Word(word + distance, f"{word.name}_{suffix}") if isinstance(word, Word) else word + distance


def name_words(scope: dict[str, Any]) -> None:
    """Let every public constant of a module that is an int know its name; one declared as another gets its own."""
    for name, value in list(scope.items()):
        if _DECLARED.fullmatch(name) and (type(value) is int or (isinstance(value, Word) and value.name != name)):
            scope[name] = Word(value, name)
