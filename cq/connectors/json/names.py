"""Which field of a JSON object a column takes: the one with its name, or the one at the dotted path that its name
spells.

A column "a.b" takes the field "a.b" of a row, and the field "b" of the object in its field "a". A name that differs
only in the case of A to Z matches too, but less well (`FOLDED`). Of the fields that match a column equally well, the
last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.records import dataclass, field

FULL, FOLDED, NONE = 2, 1, 0  # how well the name of a field matches that of a column


@dataclass(frozen=True, slots=True)
class Name:
    """A field to look for. column: takes its value.  level: of the names inside it; -1: none."""

    text: bytes
    column: int = -1
    level: int = -1


@dataclass(frozen=True, slots=True)
class Level:
    """The names to look for in one object."""

    names: tuple[Name, ...]
    _full: dict[bytes, Name] = field(init=False, repr=False, compare=False)
    _folded: dict[bytes, Name] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_full", {name.text: name for name in self.names})
        object.__setattr__(self, "_folded", {name.text.lower(): name for name in reversed(self.names)})

    def find(self, name: bytes) -> tuple[Name | None, int]:
        """The name that matches a field, and how well; the first one where several differ only in letter case."""
        found = self._full.get(name)
        if found is not None:
            return found, FULL
        found = self._folded.get(name.lower())
        return found, NONE if found is None else FOLDED


def levels_of(columns: Sequence[str]) -> tuple[Level, ...]:
    """The names at all levels; the first level is that of a row."""
    taken: list[dict[str, int]] = [{}]  # by level: name -> column
    inside: list[dict[str, int]] = [{}]  # by level: name -> the level inside it
    for column, name in enumerate(columns):
        taken[0][name] = column
        *path, last = name.split(".")
        if not path:
            continue
        level = 0
        for step in path:
            if step not in inside[level]:
                inside[level][step] = len(taken)
                taken.append({})
                inside.append({})
            level = inside[level][step]
        taken[level][last] = column
    return tuple(
        Level(tuple(Name(text.encode(), t.get(text, -1), i.get(text, -1)) for text in {**t, **i}))
        for t, i in zip(taken, inside, strict=True)
    )


def columns_inside(levels: Sequence[Level], level: int) -> Iterator[int]:
    """The columns that take fields of an object at this level, or of objects in it."""
    for name in levels[level].names:
        if name.column >= 0:
            yield name.column
        if name.level >= 0:
            yield from columns_inside(levels, name.level)
