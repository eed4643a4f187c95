"""The meaning of escapes in strings, and of characters and numbers from other keyboards and languages, with what to
type instead."""

from __future__ import annotations

import re

SMART_QUOTES = dict.fromkeys("‘’‚‛′", "'") | dict.fromkeys("“”„‟″«»", '"')
LOOKALIKE_SIGNS = {
    "−": "-",
    "–": "-",
    "—": "-",
    "×": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "<>",
    ",": ",",
    ";": ";",
}
SIGN_HELP = {
    "!": "write NOT, or <> for `not equal`",
    "&&": "write AND; of arrays, ARRAY_HAS_ANY(a, b)",
    "?": "parameters have names: write :name",
    "$": "parameters are written :name",
    "@": "parameters are written :name",
    "^": "write POWER(x, y); of bits, BITXOR(x, y)",
    "#": "a comment begins with --; of bits, write BITXOR(x, y)",
    "\\": "backslashes do not escape; to write a quote inside a string, double it: ''",
    "}": "braces are not part of the language",
}
_ESCAPE = re.compile(r"\\((?P<hex>x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|(?P<octal>[0-7]{1,3})|[\s\S])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def unescaped(text: str) -> str:
    """The text of an `E'…'` string with its escapes replaced."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(found: re.Match[str]) -> str:
    """The replacement for a backslash and the text after it; other characters stand for themselves."""
    digits = found["hex"] or found["octal"]
    if digits is None:
        return _ESCAPED.get(found[1], found[1])
    number = int(digits.lstrip("xuU"), 16 if found["hex"] else 8)
    return chr(number) if 0 < number <= 0x10FFFF and not 0xD800 <= number < 0xE000 else found[1]


def number_help(digits: str, letters: str) -> str:
    """What to write for a number followed by letters, as other systems have them."""
    type_ = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "REAL", "BD": "DECIMAL"}.get(letters)
    if type_ == "DECIMAL" and "." in digits:
        return f"numbers with a decimal point are DECIMAL: write {digits}"
    if type_ is not None and type_ != "DECIMAL":
        return f"write CAST({digits} AS {type_})"
    return "names begin with a letter, and numbers contain none"


_READER = re.compile(r"\bread_\w+\s*\(\s*('(?:[^']|'')*')[^()]*$", re.IGNORECASE)
_COLUMN = re.compile(r"""['"]?(\w+)['"]?\s*:\s*'([\w (),]+)'""")


def braces_help(braces: str, before: str) -> str:
    """What to write in place of braces behind this text: for the columns of a reader of DuckDB, a declaration."""
    if braces.startswith(("$", "{{")):
        return "parameters are written :name"
    reader, columns = _READER.search(before[-1000:]), _COLUMN.findall(braces)
    if reader is None or not columns:
        return "structs are not supported: use a column for each field"
    declared = ", ".join(f"{name} {type_}" for name, type_ in columns)
    return f"declare the columns: CREATE STREAM s ({declared}) WITH (path = {reader[1]}); then read FROM s"
