"""Regular expressions as programs, and their meaning: follow all paths through a program at once, in order of
preference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cq.lang.regex.syntax import (
    BORDER,
    END,
    LINE_END,
    LINE_FEED,
    LINE_START,
    START,
    WORD,
    BadRegex,
    Capture,
    Choice,
    CodePoints,
    Concatenation,
    Node,
    Ranges,
    Repeat,
    Where,
    parse,
)
from cq.records import dataclass

MOST_STEPS = 3000


@dataclass(frozen=True, slots=True)
class One:
    """Consume one code point from this set and go on."""

    ranges: Ranges
    then: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Go on at the first of these that leads to a match."""

    ways: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Record the position in a slot: 2n where group n starts, 2n + 1 where it ends; group 0 is the match."""

    slot: int
    then: int


@dataclass(frozen=True, slots=True)
class PlaceTest:
    """Go on if the position is one of these."""

    place: str
    then: int


@dataclass(frozen=True, slots=True)
class Found:
    """A match is complete."""


Step = One | Fork | Mark | PlaceTest | Found


@dataclass(frozen=True, slots=True)
class RegexProgram:
    """Steps by number. slots: how many a match fills; group n of the pattern has slots 2 * place and 2 * place + 1,
    where place is the index of n in `kept`."""

    steps: tuple[Step, ...]
    entry: int
    kept: tuple[int, ...]
    groups: int

    @property
    def slots(self) -> int:
        return 2 * len(self.kept)


@lru_cache(maxsize=256)
def program_of(pattern: str, kept: tuple[int, ...]) -> RegexProgram:
    """The program of a pattern that records where these groups match; `BadRegex` for an invalid pattern."""
    tree, groups = parse(pattern)
    writer = _Writer({group: place for place, group in enumerate(kept)})
    entry = writer.write(Capture(0, tree), writer.add(Found()))
    return RegexProgram(tuple(writer.steps), entry, kept, groups)


class _Writer:
    """Writes from the end: every step knows its successor."""

    def __init__(self, places: dict[int, int]) -> None:
        self.steps: list[Step] = []
        self._places = places

    def add(self, step: Step) -> int:
        if len(self.steps) == MOST_STEPS:
            raise BadRegex("the pattern is too long", "repeat fewer times: {n} counts as n copies")
        self.steps.append(step)
        return len(self.steps) - 1

    def write(self, node: Node, then: int) -> int:
        """The number of the first step of the node before `then`."""
        match node:
            case CodePoints(ranges=ranges):
                return self.add(One(ranges, then))
            case Where(place=place):
                return self.add(PlaceTest(place, then))
            case Concatenation(items=items):
                for item in reversed(items):
                    then = self.write(item, then)
                return then
            case Choice(options=options):
                return self.add(Fork(tuple(self.write(o, then) for o in options)))
            case Capture(number=number, item=item) if number in self._places:
                slot = 2 * self._places[number]
                return self.add(Mark(slot, self.write(item, self.add(Mark(slot + 1, then)))))
            case Capture(item=item):
                return self.write(item, then)
            case Repeat():
                return self.repeated(node, then)

    def repeated(self, node: Repeat, then: int) -> int:
        def fork(inside: int, after: int) -> Fork:
            return Fork((inside, after) if node.greedy else (after, inside))

        if node.most is None:
            again = self.add(Found())  # a placeholder for the fork that its own body leads to
            self.steps[again] = fork(self.write(node.item, again), then)
            following = again
        else:
            following = then
            for _ in range(node.most - node.least):
                following = self.add(fork(self.write(node.item, following), then))
        for _ in range(node.least):
            following = self.write(node.item, following)
        return following


# -- meaning ----------------------------------------------------------------------------------------------------------

Slots = tuple[int, ...]
"""Offsets by slot; -1 if the group did not take part."""


def holds(place: str, before: int | None, after: int | None) -> bool:
    """Whether an assertion holds between these code points; None is beyond the text."""
    if place in (START, LINE_START):
        return before is None or (place == LINE_START and before == LINE_FEED)
    if place in (END, LINE_END):
        return after is None or (place == LINE_END and after == LINE_FEED)
    return (contains(WORD, before) != contains(WORD, after)) == (place == BORDER)


def contains(ranges: Ranges, point: int | None) -> bool:
    """Whether the code point is in this set."""
    return point is not None and any(low <= point <= high for low, high in ranges)


def search(program: RegexProgram, text: str, start: int = 0) -> Slots | None:
    """The first match that starts at `start` or later: the positions in its slots. None if there is none."""
    ways: list[tuple[int, Slots]] = []
    found: Slots | None = None
    for at in range(start, len(text) + 1):
        before = ord(text[at - 1]) if at > 0 else None
        after = ord(text[at]) if at < len(text) else None
        if found is None:
            ways.append((program.entry, (-1,) * program.slots))
        following: list[tuple[int, Slots]] = []
        for step, slots in _reached(program, ways, at, before, after):
            if isinstance(step, Found):
                found = slots  # those after it are less preferred
                break
            if isinstance(step, One) and contains(step.ranges, after):
                following.append((step.then, slots))
        ways = following
        if found is not None and not ways:
            break
    return found


def _reached(
    program: RegexProgram, ways: list[tuple[int, Slots]], at: int, before: int | None, after: int | None
) -> Iterator[tuple[Step, Slots]]:
    """The steps on these paths that consume a code point, or complete a match, the best path first; each step once."""
    seen: set[int] = set()
    waiting = list(reversed(ways))
    while waiting:
        number, slots = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        match program.steps[number]:
            case Fork(ways=onward):
                waiting += [(w, slots) for w in reversed(onward)]
            case Mark(slot=slot, then=then):
                waiting.append((then, (*slots[:slot], at, *slots[slot + 1 :])))
            case PlaceTest(place=place, then=then):
                if holds(place, before, after):
                    waiting.append((then, slots))
            case step:
                yield step, slots


def matches(program: RegexProgram, text: str) -> Iterator[Slots]:
    """All matches from left to right, as in Java: each search starts where the last match ended, one code point later
    if that was empty."""
    at = 0
    while at <= len(text) and (slots := search(program, text, at)) is not None:
        yield slots
        at = slots[1] + (slots[0] == slots[1])
