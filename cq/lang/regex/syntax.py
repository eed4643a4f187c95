r"""Regular expressions as trees: the syntax that Java and RE2 share with the same meaning.

A match is the leftmost one; of those, the one that a backtracking matcher finds first. Classes (`\d \w \s \b`) and
`(?i)` are limited to ASCII; `.` matches everything but a line feed, and `$` only the end. Anything that one of the two
lacks, or reads differently, is refused: look-around, back references, possessive quantifiers, set operations in
brackets, repetition of something that may be empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from cq.records import dataclass

LAST_POINT = 0x10FFFF
MOST_TIMES = 1000  # of a counted repetition
LINE_FEED = ord("\n")

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points, in order and disjoint."""


class BadRegex(Exception):
    """The text is not a supported regular expression; the message says why, `help` what to write."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


@dataclass(frozen=True, slots=True)
class CodePoints:
    """One code point from this set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after the other; without parts it matches the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first alternative that leads to a match."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` to `most` times, or without end; as often as possible if greedy."""

    item: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Capture:
    """The text it matches is available by its number, from 1."""

    number: int
    item: Node


@dataclass(frozen=True, slots=True)
class Where:
    """An assertion between code points: one of `PLACES`."""

    place: str


Node = CodePoints | Concatenation | Choice | Repeat | Capture | Where

START, END, LINE_START, LINE_END, BORDER, NO_BORDER = PLACES = (
    "start", "end", "line start", "line end", "border", "no border",
)  # fmt: skip


def union(*parts: Ranges) -> Ranges:
    """All code points in one of the parts."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(r for part in parts for r in part):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def others(ranges: Ranges) -> Ranges:
    """All other code points."""
    out, at = [], 0
    for low, high in ranges:
        if at < low:
            out.append((at, low - 1))
        at = high + 1
    return (*out, *([(at, LAST_POINT)] if at <= LAST_POINT else []))


def points(text: str) -> Ranges:
    """These code points."""
    return union(tuple((ord(c), ord(c)) for c in text))


def _span(first: str, last: str) -> Ranges:
    return ((ord(first), ord(last)),)


DIGITS, LOWER, UPPER = _span("0", "9"), _span("a", "z"), _span("A", "Z")
WORD = union(DIGITS, LOWER, UPPER, points("_"))
WHITE = points("\t\n\f\r ")
_CLASSES = {"d": DIGITS, "w": WORD, "s": WHITE}
_NAMED = {
    "alpha": union(LOWER, UPPER), "digit": DIGITS, "alnum": union(DIGITS, LOWER, UPPER), "lower": LOWER,
    "upper": UPPER, "space": union(WHITE, points("\v")), "word": WORD, "blank": points("\t "),
    "xdigit": union(DIGITS, _span("a", "f"), _span("A", "F")), "punct": union(_span("!", "/"), _span(":", "@"),
    _span("[", "`"), _span("{", "~")),
}  # fmt: skip
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a"}
_PLACES = {"A": START, "z": END, "b": BORDER, "B": NO_BORDER}
_LETTER_SHIFT = ord("a") - ord("A")


def in_any_case(ranges: Ranges) -> Ranges:
    """With the other case of the ASCII letters."""
    moved: list[tuple[int, int]] = []
    for low, high in ranges:
        for (first, last), shift in ((LOWER[0], -_LETTER_SHIFT), (UPPER[0], _LETTER_SHIFT)):
            if max(low, first) <= min(high, last):
                moved.append((max(low, first) + shift, min(high, last) + shift))
    return union(ranges, tuple(moved))


def may_be_empty(node: Node) -> bool:
    """Whether it can match the empty text."""
    match node:
        case CodePoints():
            return False
        case Concatenation(items=items):
            return all(map(may_be_empty, items))
        case Choice(options=options):
            return any(map(may_be_empty, options))
        case Repeat(item=item, least=least):
            return least == 0 or may_be_empty(item)
        case Capture(item=item):
            return may_be_empty(item)
        case Where():
            return True


def parse(pattern: str) -> tuple[Node, int]:
    """The tree and the number of its groups; `BadRegex` for invalid text."""
    reader = _Reader(pattern)
    tree = reader.choice(frozenset())
    if reader.at < len(pattern):
        raise BadRegex(f"the ) at character {reader.at + 1} closes nothing", r"write \) for the character")
    return tree, reader.groups


_CLOSED = "close it with )"
_MOST_DEPTH = 100


class _Reader:
    """Recursive descent; `flags` are the letters of (?ims) in force at this point."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.depth = 0

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def take(self) -> str:
        c = self.peek()
        self.at += 1
        return c

    def choice(self, flags: frozenset[str]) -> Node:
        options = []
        while True:
            option, flags = self.row(flags)
            options.append(option)
            if self.peek() != "|":
                return options[0] if len(options) == 1 else Choice(tuple(options))
            self.at += 1

    def row(self, flags: frozenset[str]) -> tuple[Node, frozenset[str]]:
        items: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            start = self.at
            if self.peek(2) == "(?" and (changed := self.flags_here(flags)) is not None:
                flags = changed
                continue
            items.append(self.repeated(self.atom(flags), start))
        return items[0] if len(items) == 1 else Concatenation(tuple(items)), flags

    # -- repetition ------------------------------------------------------------------------------------------------

    def repeated(self, item: Node, start: int) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return item
        least, most = bounds
        greedy = True
        if self.peek() == "?":
            greedy = False
            self.at += 1
        behind = self.at
        if self.bounds() is not None:
            help = "a quantifier takes one ? behind it; (?:a{2}){3} repeats a repetition"
            raise BadRegex(f"two quantifiers follow each other at character {behind + 1}", help)
        if most is not None and (least > most or most > MOST_TIMES):
            raise BadRegex(f"{{{least},{most}}} repeats from {least} to {most} times", f"at most {MOST_TIMES} times")
        if (least, most) != (0, 1) and may_be_empty(item):
            part = self.text[start : self.at]
            raise BadRegex(f"{part} repeats what may be empty", "let each repetition take a character: (a+)* as a*")
        return Repeat(item, least, most, greedy)

    def bounds(self) -> tuple[int, int | None] | None:
        """The quantifier at this point; None if there is none."""
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self.peek() in simple:
            return simple[self.take()]
        if self.peek() != "{":
            return None
        inside, closed, _ = self.text[self.at + 1 :].partition("}")
        least, comma, most = inside.partition(",")
        if not closed or not _is_number(least) or not (most == "" or _is_number(most)):
            raise BadRegex(
                f"the {{ at character {self.at + 1} begins no quantifier", r"write {2}, {2,} or {2,3}, or \{"
            )
        self.at += len(inside) + 2
        if int(least) > MOST_TIMES:
            raise BadRegex(f"{{{inside}}} repeats {least} times", f"at most {MOST_TIMES} times")
        return int(least), int(most) if most else None if comma else int(least)

    # -- groups ----------------------------------------------------------------------------------------------------

    def flags_here(self, flags: frozenset[str]) -> frozenset[str] | None:
        """The flags of a (?i) or (?-i) at this point; None if there is none."""
        inside, closed, _ = self.text[self.at + 2 :].partition(")")
        changed = self.changed(flags, inside) if closed else None
        if changed is not None:
            self.at += len(inside) + 3
        return changed

    def changed(self, flags: frozenset[str], letters: str) -> frozenset[str] | None:
        on, _, off = letters.partition("-")
        if not letters.strip("-") or not {*on, *off} <= set("ims"):
            return None
        return (flags | set(on)) - set(off)

    def group(self, flags: frozenset[str]) -> Node:
        start = self.at
        self.at += 1
        number = 0
        if self.peek() != "?":
            self.groups += 1
            number = self.groups
        elif self.peek(3) == "?P<" or (self.peek(2) == "?<" and self.peek(3) not in ("?<=", "?<!")):
            name, closed, _ = self.text[self.at :].partition("<")[2].partition(">")
            if not closed or not name.isidentifier() or not name.isascii():
                raise BadRegex(f"the name of the group at character {start + 1} is none", "write (?<name>…)")
            self.at = self.text.index(">", self.at) + 1
            self.groups += 1
            number = self.groups
        else:
            letters, colon, _ = self.text[self.at + 1 :].partition(":")
            inner = flags if letters == "" else self.changed(flags, letters)
            if not colon or inner is None:
                what = "look-around" if self.peek(2) in ("?=", "?!", "?<") else f"({self.peek(2)}"
                help = "there are (…), (?:…), (?i), (?s), (?m), (?<name>…); look-around may be a condition of its own"
                raise BadRegex(f"{what} at character {start + 1} is not supported", help)
            flags = inner
            self.at += len(letters) + 2
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise BadRegex(f"more than {_MOST_DEPTH} groups stand in each other", "write it flatter")
        item = self.choice(flags)
        self.depth -= 1
        if self.take() != ")":
            raise BadRegex(f"the ( at character {start + 1} is not closed", rf"{_CLOSED}, or write \(")
        return Capture(number, item) if number else item

    # -- one item -------------------------------------------------------------------------------------------------

    def atom(self, flags: frozenset[str]) -> Node:
        c = self.peek()
        if c == "(":
            return self.group(flags)
        start = self.at
        self.at += 1
        match c:
            case "*" | "+" | "?" | "{":
                raise BadRegex(f"the {c} at character {start + 1} repeats nothing", rf"write \{c} for the character")
            case "^":
                return Where(LINE_START if "m" in flags else START)
            case "$":
                return Where(LINE_END if "m" in flags else END)
            case ".":
                return CodePoints(others(() if "s" in flags else points("\n")))
            case "[":
                return CodePoints(self.brackets(start, flags))
            case "\\" if self.peek() in _PLACES:
                return Where(_PLACES[self.take()])
            case "\\":
                return CodePoints(_folded(self.escaped(start), flags))
            case _:
                return CodePoints(_folded(points(c), flags))

    def escaped(self, start: int) -> Ranges:
        """The item after a backslash, in brackets or outside."""
        c = self.take()
        if c.lower() in _CLASSES:
            ranges = _CLASSES[c.lower()]
            return ranges if c.islower() else others(ranges)
        if c in _CONTROLS:
            return points(_CONTROLS[c])
        if c == "x":
            return self.by_number(start)
        if c == "" or c.isalnum() or not c.isascii():
            what = "a back reference" if c.isdigit() and c != "0" else f"\\{c}"
            help = r"there are \d \w \s \b \A \z, \t \n \r \f, \x41, and \ before a sign"
            raise BadRegex(f"{what} at character {start + 1} is not supported", help)
        return points(c)

    def by_number(self, start: int) -> Ranges:
        braces = self.peek() == "{"
        digits = self.text[self.at + 1 :].partition("}")[0] if braces else self.peek(2)
        good = 1 <= len(digits) <= 6 if braces else len(digits) == 2
        if not good or not set(digits) <= set("0123456789abcdefABCDEF") or int(digits, 16) > LAST_POINT:
            raise BadRegex(rf"the \x at character {start + 1} names no code point", r"write \x41 or \x{1F600}")
        self.at += len(digits) + (2 if braces else 0)
        return ((int(digits, 16), int(digits, 16)),)

    def brackets(self, start: int, flags: frozenset[str]) -> Ranges:
        negated = self.peek() == "^"
        self.at += negated
        parts: list[Ranges] = []
        while self.peek() != "]" or not parts:
            first = self.at
            part = self.bracket_item(start)
            if self.peek() == "-" and self.peek(2)[1:] not in ("", "]"):
                self.at += 1
                part = _from_to(part, self.bracket_item(start), self.text[first : self.at])
            parts.append(part)
        self.at += 1
        ranges = _folded(union(*parts), flags)
        return others(ranges) if negated else ranges

    def bracket_item(self, start: int) -> Ranges:
        if self.peek(2) == "[:":
            name, closed, _ = self.text[self.at + 2 :].partition(":]")
            if closed and name.removeprefix("^") in _NAMED:
                self.at += len(name) + 4
                ranges = _NAMED[name.removeprefix("^")]
                return others(ranges) if name.startswith("^") else ranges
        here = self.at
        c = self.take()
        if c == "":
            raise BadRegex(f"the [ at character {start + 1} is not closed", r"close it with ], or write \[")
        if c == "\\":
            return self.escaped(here)
        if c in "[]" or (c == "&" and self.peek() == "&"):
            what = f"{c} at character {here + 1} has another meaning elsewhere"
            raise BadRegex(what, f"in brackets write \\{c} for the character")
        return points(c)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _folded(ranges: Ranges, flags: Iterable[str]) -> Ranges:
    return in_any_case(ranges) if "i" in flags else ranges


def _from_to(first: Ranges, last: Ranges, shown: str) -> Ranges:
    if len(first) != 1 or len(last) != 1 or first[0][0] != first[0][1] or last[0][0] != last[0][1]:
        raise BadRegex(f"{shown} is not a range", r"a range goes from one character to another; write \- for the sign")
    if first[0][0] > last[0][0]:
        raise BadRegex(f"{shown} is not a range: its end comes before its start", "write the lesser one first")
    return ((first[0][0], last[0][0]),)
