"""Functions of regular expressions. A pattern is a literal; cq.lang.regex defines which patterns exist and what they
mean."""

from __future__ import annotations

import re
from functools import lru_cache

from cq.lang.functions.registry import Constants, Refusal, Signature, SignatureRule, scalar
from cq.lang.regex.automaton import automaton_of
from cq.lang.regex.java import java_replacement, java_text
from cq.lang.regex.program import matches, program_of, search
from cq.lang.regex.syntax import BadRegex
from cq.lang.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, DataType, Kind, array

_TEXT = {Kind.VARCHAR, Kind.NULL}


def _by_regex(function: str, *others: DataType, returns: DataType, optional: int = 0) -> SignatureRule:
    """A text, a literal pattern, and literals of these types, of which the last `optional` may be omitted."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
        params = (VARCHAR, VARCHAR, *others)[: len(types)]
        if not len(others) + 2 - optional <= len(types) <= len(others) + 2 or types[0].kind not in _TEXT:
            return None
        if any(not (t == p or t.kind is Kind.NULL or t.is_integer) for t, p in zip(types, params, strict=True)):
            return None
        if not isinstance(constants[1], str) or any(c is None for c in constants[2:]):
            what = "a literal pattern" if len(types) == 2 else "literals behind the text"
            way = "write the pattern in quotes; of two columns POSITION(a IN b), STARTS_WITH(a, b) or CONTAINS(a, b)"
            return Refusal("CQ0302", f"{function} needs {what}", way)
        try:
            automaton_of(constants[1], _kept(function, constants))
        except BadRegex as bad:
            return Refusal("CQ0302", f"in the pattern '{constants[1]}' {bad}", bad.help)
        return Signature(params, returns)

    return rule


def _kept(function: str, constants: Constants) -> tuple[int, ...]:
    """The groups that a function needs; `BadRegex` for one that does not exist."""
    groups = program_of(constants[1], ()).groups
    if function == "REGEXP_LIKE":
        return ()
    if function == "REGEXP_REPLACE":
        kept = kept_by(constants[2])
        if kept[-1] > groups:
            raise BadRegex(f"there is no group {kept[-1]}", "number the groups from 1; 0 is the whole match")
        return kept
    if len(constants) == 2:
        if function.startswith("REGEXP_EXTRACT") and groups:
            raise BadRegex("are groups", f"say which: {function}(x, p, 1), or 0 for the whole match; (?:…) is none")
        return (0,)
    if not 0 <= constants[2] <= groups:
        raise BadRegex(f"there is no group {constants[2]}", "number the groups from 1; 0 is the whole match")
    return kept_groups(constants[2])


def kept_groups(*groups: int) -> tuple[int, ...]:
    """These groups and the whole match."""
    return tuple(sorted({0, *groups}))


def kept_by(replacement: str) -> tuple[int, ...]:
    """The groups named in a replacement, and the whole match."""
    return kept_groups(*(p for p in pieces_of(replacement) if isinstance(p, int)))


@lru_cache(maxsize=256)
def pieces_of(replacement: str) -> tuple[str | int, ...]:
    r"""A replacement as texts and the numbers of groups: `\1` or `$1`; a backslash before a sign is for the sign."""
    pieces: list[str | int] = []
    for part in re.finditer(r"[\\$]([0-9])|\\([^0-9A-Za-z])|([^\\$]+)|.", replacement, re.DOTALL):
        if part[1]:
            pieces.append(int(part[1]))
        elif part[2] or part[3]:
            pieces.append(part[2] or part[3])
        else:
            raise BadRegex(f"the replacement has a {part[0]} that names no group", rf"write \{part[0]} for the sign")
    return tuple(pieces)


@scalar(
    "regexp_like",
    "regexp_like(text, pattern [, flags]), text RLIKE pattern",
    _by_regex("REGEXP_LIKE", returns=BOOLEAN),
    spark="regexp_like({0}, {1})",
    spark_literals={1: java_text},
    native="regexp_like",
    aliases=("regexp_matches", "regexp_contains", "rlike", "regexp"),
    examples=[
        r"regexp_like('order 66', '\d+') = true",
        r"regexp_like('order 66', '^\d+$') = false",
        "regexp_like('ERROR: disk', 'error|warn', 'i') = true",
        r"regexp_like('a word.', '\bword\b') = true",
        "regexp_like('', '^$') = true",
        "regexp_like('été', '^.t.$') = true",
        "regexp_like(null, 'a') = null",
    ],
)
def regexp_like(x: str, pattern: str) -> bool:
    """Whether the pattern, a literal, matches somewhere in the text; `^` and `$` anchor it to the ends."""
    return search(program_of(pattern, ()), x) is not None


@scalar(
    "regexp_extract",
    "regexp_extract(text, pattern [, group])",
    _by_regex("REGEXP_EXTRACT", INTEGER, returns=VARCHAR, optional=1),
    spark=lambda _, args: f"regexp_extract({args[0]}, {args[1]}, {args[2] if len(args) == 3 else 0})",
    spark_literals={1: java_text},
    native="regexp_extract",
    examples=[
        r"regexp_extract('GET /a/b 200', '/\S+') = '/a/b'",
        r"regexp_extract('GET /a/b 200', '^(\w+) (\S+)', 2) = '/a/b'",
        "regexp_extract('key=value', '([^=]+)=(?<v>.*)', 2) = 'value'",
        "regexp_extract('aaa', 'a+?') = 'a'",
        "regexp_extract('ab', 'a(x)?', 1) = ''",
        "regexp_extract('none', '[0-9]+') = ''",
        "regexp_extract(null, 'a', 0) = null",
    ],
)
def regexp_extract(x: str, pattern: str, group: int = 0) -> str:
    """The first match, or the part of it that a group matched; '' if nothing matches."""
    kept = kept_groups(group)
    slots = search(program_of(pattern, kept), x)
    if slots is None:
        return ""
    first, end = slots[2 * kept.index(group) :][:2]
    return x[first:end] if first >= 0 else ""


@scalar(
    "regexp_extract_all",
    "regexp_extract_all(text, pattern [, group])",
    _by_regex("REGEXP_EXTRACT_ALL", INTEGER, returns=array(VARCHAR), optional=1),
    spark=lambda _, args: f"regexp_extract_all({args[0]}, {args[1]}, {args[2] if len(args) == 3 else 0})",
    spark_literals={1: java_text},
    native="regexp_extract_all",
    no_null_inside=True,
    examples=[
        r"regexp_extract_all('a1b22', '\d+') = ARRAY['1', '22']",
        r"regexp_extract_all('k=v, x=y', '(\w)=(\w)', 2) = ARRAY['v', 'y']",
        "regexp_extract_all('ab a', 'a(b)?', 1) = ARRAY['b', '']",
        "regexp_extract_all('none', '[0-9]+') = CAST(ARRAY[] AS VARCHAR[])",
        "regexp_extract_all('ab', 'x*') = ARRAY['', '', '']",
        "regexp_extract_all(null, 'a') = null",
    ],
)
def regexp_extract_all(x: str, pattern: str, group: int = 0) -> tuple[str, ...]:
    """All matches from left to right, or the part of each that a group matched; '' if the group took no part."""
    kept = kept_groups(group)
    slot = 2 * kept.index(group)
    return tuple(x[s[slot] : s[slot + 1]] if s[slot] >= 0 else "" for s in matches(program_of(pattern, kept), x))


@scalar(
    "regexp_replace",
    "regexp_replace(text, pattern, replacement [, flags])",
    _by_regex("REGEXP_REPLACE", VARCHAR, returns=VARCHAR),
    spark="regexp_replace({0}, {1}, {2})",
    spark_literals={1: java_text, 2: lambda text: java_replacement(pieces_of(text))},
    native="regexp_replace",
    examples=[
        r"regexp_replace('a1b22', '[0-9]+', '#') = 'a#b#'",
        r"regexp_replace('2024-02-29', '(\d+)-(\d+)-(\d+)', '\3.\2.\1') = '29.02.2024'",
        "regexp_replace('ab', '(a)(x)?', '[$1$2]') = '[a]b'",
        "regexp_replace('baaac', 'a*', '-') = '-b--c-'",
        r"regexp_replace('5 EUR', 'eur', '\$', 'gi') = '5 $'",
        "regexp_replace(null, 'a', 'b') = null",
    ],
)
def regexp_replace(x: str, pattern: str, replacement: str) -> str:
    r"""The text with every match replaced; `\1` or `$1` in the replacement, a literal, is what group 1 matched."""
    kept = kept_by(replacement)
    out, at = "", 0
    for slots in matches(program_of(pattern, kept), x):
        out += x[at : slots[0]]
        for piece in pieces_of(replacement):
            if isinstance(piece, str):
                out += piece
            elif slots[2 * kept.index(piece)] >= 0:
                out += x[slots[2 * kept.index(piece)] : slots[2 * kept.index(piece) + 1]]
        at = slots[1]
    return out + x[at:]


@scalar(
    "regexp_count",
    "regexp_count(text, pattern [, flags])",
    _by_regex("REGEXP_COUNT", returns=BIGINT),
    spark="cast(regexp_count({0}, {1}) as BIGINT)",
    spark_literals={1: java_text},
    native="regexp_count",
    examples=[
        "regexp_count('banana', 'an') = 2",
        "regexp_count('aaaa', 'aa') = 2",
        "regexp_count('abc', 'x*') = 4",
        "regexp_count('', 'a') = 0",
        "regexp_count(null, 'a') = null",
    ],
)
def regexp_count(x: str, pattern: str) -> int:
    """The number of matches, from left to right and without overlaps."""
    return sum(1 for _ in matches(program_of(pattern, (0,)), x))
