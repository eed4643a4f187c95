"""Columns of undeclared JSON lines: Python's parser and short cuts for common values give what the definition gives."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import pytest

from cq.connectors.cells import UnreadableText, names_a_zone, scanner
from cq.connectors.json import guess
from cq.connectors.json.guess import GuessedColumn, Look, guessed_fields
from cq.connectors.json.parsed import parsed, parsed_by_definition
from cq.connectors.json.rows import MAX_DEPTH, ONE_LINE, JsonValue, NoObject, elements, members
from cq.errors import DataError
from cq.lang.types import BIGINT, DATE, TIMESTAMP, DataType

NAMES = ('"a"', '"b"', '"a"', '"c"', '"a.b"', '""', '"é"', r'"\u00e9"', r'"\ud83d\ude00"', r'"\ud800"', r'"\\xed"')
NUMBERS = (
    "0", "-0", "7", "01", "-", "+1", "1.", ".5", "1.5", "-1e3", "1E+400", "NaN", "Infinity", "-Infinity",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
    "-999999999999999999", "9" * 5000, "1" * 5000 + ".0",
)  # fmt: skip
TIMES = (
    "2024-02-29", " 2024-02-29\\t", "2023-02-29", "2024-13-01", "2024-02-29T10", "2024-02-29 10:20",
    "\\u003224-02-29", "2024-02-29T10:20:30", "2023-02-29T10:20:30", "2024-02-30 10:20:30Z",
    "2024-04-30T23:59:59.123456789+05:30", "2024-04-30T24:00:00", "2024-04-30T10:20:60",
    "2024-04-30T10:20:30.1234567890", "2024-04-30T10:20:30z", "0000-01-01", "2024-04-30T10:20:30 UTC",
    "2024-04-30T10:20:30+24:00", "2024-04-30T10:20:30-0530", "2024-04-30T10:20:30+05", "2024-04-30T10:20:30\\n",
    "2024-04-30T10:20:30+05:30:15", "２０２４-04-30", "2024-04-30 é",
)  # fmt: skip
TEXTS = (
    *(f'"{time}"' for time in TIMES),
    '"t"', '""', r'"\ud800"', r'"2024-04-30 \udc00"', '"\x01"', r'"\x"', r'"\u00g0"', '"\x7f\u2028"', '"open', "'a'",
)  # fmt: skip
WORDS = ("true", "false", "null", "nul", "True", "[]", "{}", "[", "}", "// x")
DAMAGE = (
    "", ",", ":", " ", "\t", "\r", "\x00", "\x0b", "\u00a0", "\ufeff", "}", "{", "]", '"', "\\", "[1,]", '{"a":1,}',
)  # fmt: skip


def value(rng: random.Random, levels: int) -> str:
    kind = rng.randrange(9 if levels else 6)
    if kind >= 6:
        inside = [value(rng, levels - 1) for _ in range(rng.randrange(4))]
        return f"[{', '.join(inside)}]" if kind == 6 else object_of(rng, inside)
    return rng.choice((NUMBERS[:9:2], TEXTS[:2], WORDS[:3], NUMBERS, TEXTS, WORDS)[kind])


def object_of(rng: random.Random, inside: list[str]) -> str:
    return "{" + ", ".join(f"{rng.choice(NAMES)}:{rng.choice(('', ' '))}{v}" for v in inside) + "}"


def lines(rng: random.Random) -> bytes:
    """A few lines of which most are right."""
    drawn = []
    for _ in range(rng.randrange(1, 6)):
        line = object_of(rng, [value(rng, 3) for _ in range(rng.randrange(5))])
        if not rng.randrange(4):
            at = rng.randrange(len(line) + 1)
            line = line[:at] + rng.choice(DAMAGE) + line[at + rng.randrange(2) :]
        drawn.append(line.encode() + rng.choice((b"", b"", b"\r", b" \t", b"\xff", b"\x0c")) * (not rng.randrange(4)))
    return b"\n".join(drawn)


class Defined(GuessedColumn):
    """Notes every value by the definition of what it looks like."""

    def see(self, value: JsonValue | None, levels: int) -> None:
        if value is None:
            return
        look = defined_look(value)
        self.values.add(look)
        if look is Look.LIST:
            inside = {defined_look(e) for e in elements(value.json) if e is not None}
            self.elements |= {Look.NESTED if e in {Look.LIST, Look.OBJECT} else e for e in inside}
        elif look is Look.OBJECT:
            self.odd = self.odd or levels == 0
            for name, field in members(value.json) if not self.odd else ():
                self.odd = self.odd or not name or "." in name or len(self.columns) > guess.MOST_KEYS
                self.columns.setdefault(name, Defined()).see(field, levels - 1)


def defined_look(value: JsonValue) -> Look:
    if value.is_nested:
        return Look.LIST if value.json[:1] == b"[" else Look.OBJECT
    if value.is_text:
        if fits(value, DATE):
            return Look.DAY
        if fits(value, TIMESTAMP):
            return Look.INSTANT if names_a_zone(value.text) else Look.TIME
        return Look.TEXT
    if value.json in {b"true", b"false"}:
        return Look.WORD
    if value.json.lstrip(b"-").isdigit():
        return Look.WHOLE if fits(value, BIGINT) else Look.LONG_WHOLE
    return Look.FRACTION


def fits(value: JsonValue, type_: DataType) -> bool:
    try:
        scanner(type_)(value.text)
    except UnreadableText:
        return False
    return True


def defined_fields(line: bytes, _levels: int) -> list[tuple[str, JsonValue | None]]:
    try:
        line.decode()
        return members(line)
    except (NoObject, UnicodeDecodeError):
        return []


def columns(text: bytes) -> str:
    try:
        return "\n".join(f"{f.name!r} {f.type}" for f in guessed_fields(text, "t"))
    except DataError as e:
        return repr(e.first)


def test_columns_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    texts = [lines(rng) for _ in range(3000)]
    texts += [b'{"a": %s}' % text.encode() for text in (*NUMBERS, *TEXTS, *WORDS)]
    texts += [b'{"o": {%s}}' % b", ".join(b'"%d": 1' % n for n in range(keys)) for keys in range(199, 204)]
    texts += [b'[["a", 1]]\n{"b": 1}', b'"text"', b"1", b"null"]
    found = [columns(text) for text in texts]
    monkeypatch.setattr(guess, "parsed", defined_fields)
    monkeypatch.setattr(guess, "GuessedColumn", Defined)
    assert sum("TIMESTAMP" in f or "DATE" in f for f in found) > 500
    for text, mine in zip(texts, found, strict=True):
        assert mine == columns(text), text


def test_columns_do_not_depend_on_who_reads_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any line: every one could be one that Python's parser refuses, for its limits are others."""
    rng = random.Random(8)
    texts = [lines(rng) for _ in range(1000)]
    texts += [b'{"o": ' * n + b"1" + b"}" * n for n in (1, guess.MOST_LEVELS, guess.MOST_LEVELS + 1, MAX_DEPTH)]
    found = [columns(text) for text in texts]
    monkeypatch.setattr(guess, "parsed", parsed_by_definition_if_text)
    for text, mine in zip(texts, found, strict=True):
        assert mine == columns(text), text


def parsed_by_definition_if_text(line: bytes, levels: int) -> object:
    return parsed_by_definition(line, levels) if line.decode("utf-8", "ignore").encode() == line else None


@pytest.fixture(params=["its own", "far beyond ours"])
def limit_of_python(request: pytest.FixtureRequest) -> Iterator[None]:
    """How deep Python's parser goes, which depends on its version."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before if request.param == "its own" else 10 * MAX_DEPTH)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("limit_of_python")
@pytest.mark.parametrize("around", ["[%s]", '{"a": %s}'])
def test_depth_is_limited_as_in_rows(around: str) -> None:
    opened, closed = around.split("%s")

    def line(levels: int) -> bytes:
        return b'{"x": ' + opened.encode() * levels + b"1" + closed.encode() * levels + b"}"

    assert parsed(line(MAX_DEPTH - 1), 2) is not None
    assert parsed(line(MAX_DEPTH), 2) is None
    assert parsed(b'{"x": [' + b"[]," * MAX_DEPTH + b"[]]}", 2) is not None  # many, one beside the other


def test_brackets_beside_one_another_and_in_strings_are_no_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is read by the definition, which takes eight times as long, for its depth only."""
    wide = b'{"s": "' + b"[" * MAX_DEPTH + rb'\"{", "x": [' + b'{"y": [1]},' * MAX_DEPTH + b"[]]}"
    deep = b'{"s": "' + b"]" * MAX_DEPTH + rb'\\", "x": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}"
    expected = parsed_by_definition(wide, 2)
    defined: list[bytes] = []
    monkeypatch.setattr("cq.connectors.json.parsed.parsed_by_definition", lambda line, levels: defined.append(line))
    found = parsed(wide, 2)
    assert found is not None and expected is not None
    assert dict(found)["s"] == dict(expected)["s"]
    assert defined == []
    parsed(deep, 2)
    assert defined == [deep]


@pytest.mark.parametrize(
    ("line", "said", "way"),
    [
        ('{"a": NaN}', "has no line with an object that has fields (a value should be here: character 7)", "mend"),
        ('{"a": 1', "has no line with an object that has fields (the line ends before the object does)", ONE_LINE),
        ("{}", "has no line with an object that has fields, so", ONE_LINE),
        ("1,2", "has no line with an object that has fields, so", "leave format = 'json' out"),
        (" ", "is empty, so", "declare the columns"),
    ],
)
def test_a_file_without_columns_says_what_is_wrong_with_its_first_line(line: str, said: str, way: str) -> None:
    with pytest.raises(DataError) as raised:
        guessed_fields(line.encode() + b"\n", "x.json")
    assert said in str(raised.value)
    assert way in str(raised.value)
