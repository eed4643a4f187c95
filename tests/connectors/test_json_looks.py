"""What values of JSON lines look like: the reader of the standard library against the one that defines the lines."""

from __future__ import annotations

import json
import random

import pytest
from random_json import document

from cq.connectors.json import guess
from cq.connectors.json.looks import MOST_LEVELS, Look, exact_fields, line_fields, text_look
from cq.connectors.json.rows import MAX_DEPTH
from cq.errors import DataError

DEEP = '{"a":' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
NESTED = '{"o":' * (MOST_LEVELS + 2) + "1" + "}" * (MOST_LEVELS + 2)
VALUES = (
    "1", "-0", "-0.0", "1e3", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1" * 5000, "true",
    "null", '"2024-01-31"', '" 2024-01-31\\t"', '"2024-02-31"', '"2024-01-31 10:00"', '"2024-01-31T10:00:00.5Z"', '"x"',
    '" 2024-01-31 10:00"', '"\\u0032024-01-31"', '"\\ud800"', '"2024-\\ud800"', '["2024-01-31", null]', "[1, 2.5]",
    '[[1], "a"]', '[{"a": 1}]', "{}", "[]", "NaN", "-Infinity", "01", "+1", '"\t"', '{"a.b": 1}', '{"": 1}',
    '{"\\ud800": 1}',
)  # fmt: skip
LINES = ("", " ", "{}", "[1]", "1", "nothing", '\ufeff{"a": 1}', '{"a": 1} x', ' {"a" : 1 , "a": "b"}\r', '{"a": 1,}',
         "\v{}", '{"\\ud800": 1, "\\\\xed\\\\xa0\\\\x80": "x"}', DEEP, DEEP.replace("[]", "[[]]"), NESTED)  # fmt: skip


def guessed(lines: list[bytes]) -> object:
    try:
        return guess.guessed_fields(b"\n".join(lines), "t")
    except DataError as error:
        return str(error)


def drawn(rng: random.Random) -> bytes:
    if rng.random() < 0.2:
        return document(rng).replace("\n", " ").encode()
    names = rng.choices(('"a"', '"b"', '"c"', '"é"', '"x.y"', r'"\u0061"'), k=rng.randint(0, 4))
    values = [document(rng).replace("\n", " ") if rng.random() < 0.3 else rng.choice(VALUES) for _ in names]
    return ("{" + ", ".join(f"{n}: {v}" for n, v in zip(names, values, strict=True)) + "}").encode("utf-8")


def test_columns_are_those_of_exact_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    files = [[line.encode()] for line in LINES] + [[b'{"a": "\xff"}', b'{"a": 1}'], [b'{"a": "\xed\xa0\x80"}']]
    files += [[f'{{"a": {value}}}'.encode()] for value in VALUES]
    files += [[drawn(rng) for _ in range(rng.randint(1, 5))] for _ in range(1500)]
    found = [guessed(lines) for lines in files]
    monkeypatch.setattr(guess, "line_fields", exact_fields_of_text)
    for lines, columns in zip(files, found, strict=True):
        assert guessed(lines) == columns, lines
    assert len({str(columns) for columns in found}) > 200


def exact_fields_of_text(line: bytes) -> object:
    try:
        line.decode()
    except UnicodeDecodeError:
        return None
    return exact_fields(line)


def test_deep_lines_are_read_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the standard library gives up, at a depth that depends on its caller."""
    assert line_fields(DEEP.encode()) == exact_fields(DEEP.encode()) is not None

    def gives_up(_: str) -> object:
        raise RecursionError

    monkeypatch.setattr("cq.connectors.json.looks._DECODER", type("", (), {"decode": staticmethod(gives_up)}))
    assert line_fields(b'{"a": [1, "b"]}') == (("a", [Look.WHOLE, "b"]),)


@pytest.mark.parametrize("text", [json.loads(v) for v in VALUES if v.startswith('"') and "\t" not in v])
def test_look_of_a_text_does_not_depend_on_others(text: str) -> None:
    """Once a column has a text that is no time, other texts are not looked at."""
    assert guess._type({Look.TEXT, text_look(text)}) == guess._type({Look.TEXT})
