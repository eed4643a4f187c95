"""Native structures: their words are declared once, in order, and have names in generated code.

A structure is declared at the top of the module that owns it, a word a line; offsets are never written by hand:

    _heap = Struct("HEAP")
    HEAP_ITEMS = _heap.word()  # -> items
    HEAP_COUNT = _heap.word()
    HEAP_WORDS = _heap.size()

A module whose words generated code uses calls `name_words(globals())` after them. In computations a `Word` is a plain
int; generated code prints its name (cq/codegen/printing.py).
"""

from __future__ import annotations

import re
from typing import Any

WORDS_A_LINE = 8  # of a cache line

_DECLARED = re.compile(r"[A-Z][A-Z0-9_]*")


class Struct:
    """Hands out the words of a structure, the next free ones at every call.

    name: the prefix of its words' names.  after: the size of the structure it begins with; negative: this many words
    before the place its address points to. Lines are counted from its address; two words of `line` never share a cache
    line, even if that address is in the middle of one.
    """

    def __init__(self, name: str, after: int = 0) -> None:
        self._name, self._next, self._closed = name, int(after), False

    def word(self) -> int:
        """The next word."""
        return self.words(1)

    def words(self, count: int) -> int:
        """The first of the next `count` words."""
        assert not self._closed, f"{self._name}: a word behind its end"
        assert count > 0, f"{self._name}: no word"
        first = self._next
        self._next += count
        return first

    def line(self) -> int:
        """The next word that can have a cache line of its own, so that writing it disturbs no reader of another."""
        self.align()
        return self.words(WORDS_A_LINE)

    def align(self) -> None:
        """Let the next word begin a cache line."""
        self.skip(-self._next % WORDS_A_LINE)

    def skip(self, count: int) -> None:
        """Leave the next `count` words unused."""
        assert not self._closed, f"{self._name}: a hole behind its end"
        assert count >= 0, f"{self._name}: a hole of {count} words"
        self._next += count

    def rest(self) -> int:
        """Where the declared words end and others begin, as many as each structure has room for."""
        self._closed = True
        return self._next

    def size(self) -> int:
        """The number of its words, all declared now."""
        return self.rest()

    def lines(self) -> int:
        """Its size in words, rounded up to whole cache lines."""
        self.align()
        return self.rest()


class Overlay:
    """Hands out words of a structure that shares its place and size with another one, which keeps the rest."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size, self._taken = name, int(size), set[int]()

    def at(self, word: int) -> int:
        """The word in the place of this word of the other structure."""
        assert 0 <= word < self._size, f"{self._name}: word {int(word)} of {self._size}"
        assert word not in self._taken, f"{self._name}: word {int(word)} twice"
        self._taken.add(int(word))
        return int(word)

    def size(self) -> int:
        """The number of its words."""
        return self._size


class Word(int):
    """An int with the name it was declared under. Sums and products of it are plain ints."""

    name: str

    def __new__(cls, value: int, name: str = "") -> Word:
        made = super().__new__(cls, value)
        made.name = name
        return made


def beside(word: int, distance: int, suffix: str) -> int:
    """The word this many places after another one, named after it."""
    return Word(word + distance, f"{word.name}_{suffix}") if isinstance(word, Word) else word + distance


def name_words(scope: dict[str, Any]) -> None:
    """Give every public int constant of a module its name; one declared as another gets its own."""
    for name, value in list(scope.items()):
        if _DECLARED.fullmatch(name) and (type(value) is int or (isinstance(value, Word) and value.name != name)):
            scope[name] = Word(value, name)
