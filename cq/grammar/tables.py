"""The LALR tables of cq.lark: their container, and the machine that runs on them.

The container is JSON and holds only names and numbers. It is current when it names the SHA-256 of the grammar text;
otherwise the parser has lark rebuild the tables, in memory. The version of lark does not matter: it only computes the
tables, the machine that runs on them is ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from cq.grammar.ast import Node
from cq.records import dataclass

T = TypeVar("T")
FORMAT = 1
END = "$END"


@dataclass(frozen=True, slots=True)
class Production:
    """One production. keep: (index in the production, spliced, Nones before it) of each value that is passed on.
    nones: Nones after the last.  call: the builder's method, or empty: the value is the list of values.  single: one
    value alone is passed on as it is, without a call."""

    origin: str
    size: int
    keep: tuple[tuple[int, bool, int], ...]
    nones: int
    call: str
    single: bool

    @property
    def renames(self) -> bool:
        """The production only renames a value: nothing to do except change state."""
        return self.single and self.size == 1 and self.keep == ((0, False, 0),) and self.nones == 0


class LazyTable(dict[int, T]):
    """Values by number from 0, each made when first needed: a query visits one state in twenty."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        super().__init__()
        self._count, self._make = count, make

    def __missing__(self, number: int) -> T:
        made = self[number] = self._make(number)
        return made

    def every(self) -> list[T]:
        return [self[number] for number in range(self._count)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyTable) and self.every() == other.every()

    __hash__ = None


@dataclass(frozen=True, slots=True)
class Tables:
    """actions[state][terminal]: n >= 0 shifts to state n, n < 0 reduces by rule ~n.  default[state]: the rule a state
    reduces by whatever the next token, or None.  goto[state][origin]: the state after a reduction.  start, accept: by
    start symbol.  keywords: word or sign -> terminal.  renames: of each rule, see there."""

    rules: LazyTable[Production]
    renames: LazyTable[bool]
    actions: LazyTable[dict[str, int]]
    default: tuple[int | None, ...]
    goto: LazyTable[dict[str, int]]
    start: dict[str, int]
    accept: dict[str, int]
    keywords: dict[str, str]


def fingerprint(grammar: str) -> dict[str, object]:
    """The fingerprint of a current container."""
    return {"format": FORMAT, "grammar": hashlib.sha256(grammar.encode()).hexdigest()}


def to_json(tables: Tables, made_from: dict[str, object]) -> str:
    """The container's text: one state or rule a line, so that a diff can be read."""
    actions, gotos = tables.actions.every(), tables.goto.every()
    symbols = sorted({s for row in (*actions, *gotos) for s in row})
    number = {s: i for i, s in enumerate(symbols)}

    def row(pairs: dict[str, int]) -> list[int]:
        return [x for symbol, target in pairs.items() for x in (number[symbol], target)]

    lines = [
        *(f'"{key}":{_compact(value)},' for key, value in made_from.items()),
        f'"start":{_compact(tables.start)},"accept":{_compact(tables.accept)},',
        f'"keywords":{_compact(tables.keywords)},',
        f'"symbols":{_compact(symbols)},',
        '"rules":[',
        ",\n".join(_compact([r.origin, r.size, r.keep, r.nones, r.call, r.single]) for r in tables.rules.every()),
        '],"states":[',
        ",\n".join(_compact([row(a), d, row(g)]) for a, d, g in zip(actions, tables.default, gotos, strict=True)),
        "]",
    ]
    return "{" + "\n".join(lines) + "}\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def from_json(text: str, made_from: dict[str, object]) -> Tables | None:
    """The tables in a container, or None when it is damaged or made from something else."""
    try:
        raw = json.loads(text)
        if any(raw.get(key) != value for key, value in made_from.items()):
            return None
        return _read(raw) if _is_sound(raw) else None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


def _read(raw: dict[str, Any]) -> Tables:
    symbols, states = raw["symbols"], raw["states"]

    def row(flat: list[int]) -> dict[str, int]:
        return {symbols[s]: target for s, target in zip(flat[::2], flat[1::2], strict=True)}

    def rule(number: int) -> Production:
        origin, size, keep, trailing, call, single = raw["rules"][number]
        kept = tuple((i, bool(spliced), nones) for i, spliced, nones in keep)
        return Production(origin, size, kept, trailing, call, single)

    rules = LazyTable(len(raw["rules"]), rule)
    return Tables(
        rules=rules,
        renames=LazyTable(len(raw["rules"]), lambda n: rules[n].renames),
        actions=LazyTable(len(states), lambda n: row(states[n][0])),
        default=tuple(s[1] for s in states),
        goto=LazyTable(len(states), lambda n: row(states[n][2])),
        start=raw["start"],
        accept=raw["accept"],
        keywords=raw["keywords"],
    )


def _is_sound(raw: dict[str, Any]) -> bool:
    """Whether no number points outside of the tables. A row is pairs of a symbol and its target."""
    symbols, states, rules = len(raw["symbols"]), len(raw["states"]), len(raw["rules"])
    acting, defaults, going = zip(*raw["states"], strict=True)
    actions, gotos = list(chain.from_iterable(acting)), list(chain.from_iterable(going))
    return (
        not any(len(row) % 2 for row in chain(acting, going))
        and _within(0, [*actions[::2], *gotos[::2]], symbols)
        and _within(-rules, actions[1::2], states)
        and _within(0, [*gotos[1::2], *raw["start"].values(), *raw["accept"].values()], states)
        and _within(0, [d for d in defaults if d is not None], rules)
    )


def _within(first: int, numbers: Sequence[int], end: int) -> bool:
    return not numbers or (first <= min(numbers) and max(numbers) < end)


class Machine:
    """The state of one parse. Feeding it never recurses; values are built bottom-up by `build`.

    build(call, first, last, children): first and last are numbers of tokens, last < first for an empty production.
    """

    def __init__(self, tables: Tables, start: str, build: Callable[[str, int, int, list[Any]], Any]) -> None:
        self._tables = tables
        self._build = build
        self._accept = tables.accept[start]
        self._states = [tables.start[start]]
        self._values: list[Any] = []
        self._firsts: list[int] = []
        self._heights: list[int] = []
        self.height = 0  # the depth of the deepest tree built so far

    def accepts(self, kind: str) -> bool:
        """Whether a token of this kind is allowed here; found by walking the tables, without building."""
        tables, pushed, below = self._tables, list[int](), len(self._states)
        top = self._states[-1]
        while True:
            action = tables.actions[top].get(kind)
            if action is None:
                default = tables.default[top]
                if default is None:
                    return False
                action = ~default
            if action >= 0:
                return True
            rule = tables.rules[~action]
            popped_here = min(rule.size, len(pushed))
            del pushed[len(pushed) - popped_here :]
            below -= rule.size - popped_here
            top = tables.goto[pushed[-1] if pushed else self._states[below - 1]][rule.origin]
            pushed.append(top)
            if kind == END and top == self._accept:
                return True

    def choose(self, kinds: Sequence[str]) -> str | None:
        """The first of `kinds` that is allowed here, or None."""
        return next((kind for kind in kinds if self.accepts(kind)), None)

    def expected(self) -> set[str]:
        """All terminals allowed here."""
        every: Iterable[str] = {*self._tables.actions[self._states[-1]], END}
        if self._tables.default[self._states[-1]] is not None:
            every = {terminal for row in self._tables.actions.every() for terminal in row} | {END}
        return {terminal for terminal in every if self.accepts(terminal)}

    def feed(self, kind: str, value: Any, position: int) -> bool:
        """Shift a token, `position` is its number; END completes the parse. Returns False, and the machine is unusable,
        if such a token is not allowed here."""
        tables, states = self._tables, self._states
        while True:
            state = states[-1]
            action = tables.actions[state].get(kind)
            if action is None:
                default = tables.default[state]
                if default is None:
                    return False
                action = ~default
            if action >= 0:
                states.append(action)
                self._values.append(value)
                self._firsts.append(position)
                self._heights.append(0)
                return True
            if tables.renames[~action]:
                states.pop()
                states.append(tables.goto[states[-1]][tables.rules[~action].origin])
            else:
                self._reduce(tables.rules[~action], position)
            if kind == END and states[-1] == self._accept:
                return True

    def result(self) -> Any:
        """The value of the start symbol, after END was fed."""
        assert len(self._values) == 1, "the parse is not complete"
        return self._values[0]

    def _reduce(self, rule: Production, position: int) -> None:
        first, height, values = position, 0, list[Any]()
        if rule.size:
            bottom = len(self._values) - rule.size
            values, first, height = self._values[bottom:], self._firsts[bottom], max(self._heights[bottom:])
            del self._states[bottom + 1 :], self._values[bottom:], self._firsts[bottom:], self._heights[bottom:]
        self._push(rule, values, first, position - 1, height)
        self._states.append(self._tables.goto[self._states[-1]][rule.origin])

    def _push(self, rule: Production, values: list[Any], first: int, last: int, height: int) -> None:
        kept: list[Any] = []
        for index, spliced, nones in rule.keep:
            if nones:
                kept.extend([None] * nones)
            if not spliced:
                kept.append(values[index])
            elif kept:
                kept.extend(values[index])
            else:
                kept = values[index]  # a left-recursive list grows in place: linear, not quadratic
        kept.extend([None] * rule.nones)
        value: Any = kept
        if rule.single and len(kept) == 1:
            value = kept[0]
        elif rule.call:
            value = self._build(rule.call, first, last, kept)
            if isinstance(value, Node) and not (kept and value is kept[0]):
                height += 1
                self.height = max(self.height, height)
        self._values.append(value)
        self._firsts.append(first)
        self._heights.append(height)
