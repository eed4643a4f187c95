"""The automaton of a program: one table look-up per code point.

A state is the set of open paths through the program, in order of preference, and the kind of the code point before it.
What `cq.lang.regex.program.search` does with paths at one code point is computed here once for each state and class of
code points: the next state and, if slots are kept, a `Move`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from cq.lang.regex.program import Fork, Found, Mark, One, PlaceTest, RegexProgram, contains, holds, program_of
from cq.lang.regex.syntax import LAST_POINT, LINE_FEED, WORD, BadRegex
from cq.records import dataclass

DEAD, ACCEPT = 0, 1  # no match is possible any more; there is one, and its place does not matter
# Bounds on the size of one pattern. Chosen, not measured.
MOST_STATES = 8000
MOST_CELLS = 60_000  # states x classes of code points
MOST_CLASSES = 250
BEYOND, LINE, LETTER, OTHER = range(4)  # kinds of code points that assertions distinguish
_OF_KIND = (None, LINE_FEED, ord("a"), ord(" "))  # a code point of each kind

Way = tuple[int, int, int]
"""A step, the path it continues (index in the previous state; -1 for a new one), and the slots to set here, as bits."""


@dataclass(frozen=True, slots=True)
class Move:
    """found: the path that has become a match, as (from, slots). ways: (from, slots) for each path of the next
    state."""

    found: tuple[int, int] | None
    ways: tuple[tuple[int, int], ...]


NOTHING = Move(None, ())


@dataclass(frozen=True, slots=True)
class Automaton:
    """starts: the initial state after a code point of each kind. bounds, classes: the class of code points from each
    bound on; the class after the last is the end of the text. following, moves: by state, then by class; a move of None
    changes nothing. widest: the most paths in a state."""

    slots: int
    starts: tuple[int, ...]
    bounds: tuple[int, ...]
    classes: tuple[int, ...]
    class_count: int
    following: tuple[tuple[int, ...], ...]
    moves: tuple[tuple[Move | None, ...], ...]
    widest: int

    def class_of(self, point: int) -> int:
        return self.classes[bisect_right(self.bounds, point) - 1]


@lru_cache(maxsize=256)
def automaton_of(pattern: str, kept: tuple[int, ...]) -> Automaton:
    """The automaton that records where these groups match; `BadRegex` if it would be too large."""
    return _Maker(program_of(pattern, kept)).made()


State = tuple[int, tuple[int, ...], bool]
"""The kind of the previous character, the steps of its paths, and whether there is a match already, so that no new path
begins."""


class _Maker:
    def __init__(self, program: RegexProgram) -> None:
        self.program = program
        self.places = any(isinstance(s, PlaceTest) for s in program.steps)
        self.bounds, self.classes, self.samples = self._classes()
        self.numbers: dict[State, int] = {}
        self.following: list[list[int]] = []
        self.moves: list[list[Move | None]] = []
        self.waiting: deque[State] = deque()

    def _classes(self) -> tuple[list[int], list[int], list[int]]:
        """The code points at which treatment changes, their classes, and a code point of each class."""
        sets = sorted({s.ranges for s in self.program.steps if isinstance(s, One)})
        if self.places:
            sets += [WORD, ((LINE_FEED, LINE_FEED),)]
        cuts = {0, *(low for ranges in sets for low, _ in ranges), *(high + 1 for ranges in sets for _, high in ranges)}
        bounds = sorted(cuts - {LAST_POINT + 1})
        known: dict[tuple[bool, ...], int] = {}
        classes, samples = [], []
        for point in bounds:
            member = tuple(contains(ranges, point) for ranges in sets)
            if member not in known:
                known[member] = len(known)
                samples.append(point)
            classes.append(known[member])
        if len(samples) > MOST_CLASSES:
            raise BadRegex(f"it tells more than {MOST_CLASSES} classes of characters apart", "use fewer brackets")
        return bounds, classes, samples

    def made(self) -> Automaton:
        kinds = range(4) if self.places else (BEYOND,)
        starts = [self.number((kind, (), False)) for kind in kinds]
        while self.waiting:
            self.expand(self.waiting.popleft())
        useful = self.useful()
        following = tuple(
            tuple(n if n in useful else DEAD for n in row) if state in useful else (DEAD,) * len(row)
            for state, row in enumerate(self.following, ACCEPT + 1)
        )
        unused = ((DEAD,) * (len(self.samples) + 1),) * 2
        idle: tuple[Move | None, ...] = (None,) * (len(self.samples) + 1)
        return Automaton(
            self.program.slots,
            tuple(starts if self.places else starts * 4),
            tuple(self.bounds),
            tuple(self.classes),
            len(self.samples) + 1,
            unused + following,
            (idle, idle, *map(tuple, self.moves)),
            max(len(ways) for _, ways, _ in self.numbers),
        )

    def number(self, state: State) -> int:
        if state not in self.numbers:
            self.numbers[state] = len(self.numbers) + ACCEPT + 1
            self.waiting.append(state)
            if len(self.numbers) > min(MOST_STATES, MOST_CELLS // (len(self.samples) + 1)):
                help = "count less: a.{20}b has to remember 2**20 texts; what stands apart may be two conditions"
                raise BadRegex("too many ways through it are open at once", help)
        return self.numbers[state]

    def expand(self, state: State) -> None:
        row: list[int] = []
        moves: list[Move | None] = []
        for point in (*self.samples, None):
            next_state, move = self.step(state, point)
            row.append(next_state)
            moves.append(move)
        self.following.append(row)
        self.moves.append(moves)

    def step(self, state: State, point: int | None) -> tuple[int, Move | None]:
        """The state that a code point leads to, and what happens to the slots."""
        before, steps, done = state
        entry = [] if done else [(self.program.entry, -1, 0)]
        ways = self.reached([*((s, i, 0) for i, s in enumerate(steps)), *entry], _OF_KIND[before], point)
        found: tuple[int, int] | None = None
        onward: dict[int, tuple[int, int]] = {}
        for number, source, slots in ways:
            step = self.program.steps[number]
            if isinstance(step, Found):
                found = (source, slots)
                break
            if isinstance(step, One) and contains(step.ranges, point):
                onward.setdefault(step.then, (source, slots))
        if not self.program.slots:
            if found is not None:
                return ACCEPT, None
            onward = dict.fromkeys(sorted(onward), (-1, 0))
        if point is None:
            onward = {}
        target = (_kind(point) if self.places else BEYOND, tuple(onward), done or found is not None)
        move = Move(found, tuple(onward.values()))
        still = move.found is None and all(way == (i, 0) for i, way in enumerate(move.ways))
        return self.number(target) if point is not None else DEAD, None if still or not self.program.slots else move

    def reached(self, ways: Sequence[Way], before: int | None, after: int | None) -> list[Way]:
        """Like `program._reached`, with the actions on slots instead of slots."""
        out: list[Way] = []
        seen: set[int] = set()
        waiting = list(reversed(ways))
        while waiting:
            number, source, slots = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            match self.program.steps[number]:
                case Fork(ways=onward):
                    waiting += [(w, source, slots) for w in reversed(onward)]
                case Mark(slot=slot, then=then):
                    waiting.append((then, source, slots | 1 << slot))
                case PlaceTest(place=place, then=then):
                    if holds(place, before, after):
                        waiting.append((then, source, slots))
                case _:
                    out.append((number, source, slots))
        return out

    def useful(self) -> set[int]:
        """The states from which a match is still possible, and ACCEPT."""
        back: dict[int, list[int]] = {}
        useful = {ACCEPT}
        for state, (row, moves) in enumerate(zip(self.following, self.moves, strict=True), ACCEPT + 1):
            if any(m is not None and m.found is not None for m in moves):
                useful.add(state)
            for n in row:
                back.setdefault(n, []).append(state)
        waiting = list(useful)
        while waiting:
            for state in back.get(waiting.pop(), ()):
                if state not in useful:
                    useful.add(state)
                    waiting.append(state)
        return useful


def _kind(point: int | None) -> int:
    if point is None:
        return BEYOND
    return LINE if point == LINE_FEED else LETTER if contains(WORD, point) else OTHER
