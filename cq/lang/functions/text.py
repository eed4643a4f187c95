"""Functions of VARCHAR. Lengths and positions count code points, from 1; comparison is by bytes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cq.lang.functions.registry import Failure, Signature, scalar
from cq.lang.functions.signatures import as_text, fixed, overloaded, with_optional
from cq.lang.functions.slices import between, spark_slice
from cq.lang.functions.spark_text import clamped_int, spark_substring
from cq.lang.types import BIGINT, BOOLEAN, INT64_MAX, INTEGER, VARCHAR, array

_ONE_TEXT = fixed(VARCHAR, returns=VARCHAR)


@scalar(
    "length",
    "length(text)",
    fixed(VARCHAR, returns=INTEGER),
    spark="char_length({0})",
    native="length",
    aliases=("char_length", "character_length", "len"),
    examples=["length('abc') = 3", "length('') = 0", "length('ßé') = 2", "length(null) = null", "length('a ') = 2"],
)
def length(x: str) -> int:
    """The number of code points."""
    return len(x)


@scalar(
    "lower",
    "lower(text)",
    _ONE_TEXT,
    spark="lower({0})",
    native="lower",
    aliases=("lcase",),
    examples=["lower('AbC') = 'abc'", "lower('') = ''", "lower('ÄÖ') = 'äö'", "lower(null) = null"],
)
def lower(x: str) -> str:
    """The text in lower case."""
    return x.lower()


@scalar(
    "initcap",
    "initcap(text)",
    _ONE_TEXT,
    spark="initcap({0})",
    native="initcap",
    examples=[
        "initcap('hello wORLD') = 'Hello World'",
        "initcap('o''neil-smith') = 'O''neil-smith'",
        "initcap('élan  à la') = 'Élan  À La'",
        "initcap('') = ''",
        "initcap(null) = null",
    ],
)
def initcap(x: str) -> str:
    """The text in lower case, with the first letter of each word in upper case; words are separated by spaces."""
    return " ".join(word[:1].title() + word[1:] for word in x.lower().split(" "))


@scalar(
    "upper",
    "upper(text)",
    _ONE_TEXT,
    spark="upper({0})",
    native="upper",
    aliases=("ucase",),
    examples=["upper('AbC') = 'ABC'", "upper('') = ''", "upper('ß') = 'SS'", "upper(null) = null"],
)
def upper(x: str) -> str:
    """The text in upper case; it may become longer."""
    return x.upper()


@scalar(
    "substring",
    "substring(text, start [, length])",
    with_optional((VARCHAR, BIGINT), (BIGINT,), VARCHAR),
    spark=spark_substring,
    native="substring",
    aliases=("substr",),
    examples=[
        "substring('hello', 2) = 'ello'",
        "substring('hello', 2, 3) = 'ell'",
        "substring('hello', 0, 2) = 'he'",
        "substring('hello', -3, 2) = 'll'",
        "substring('abc', -5, 3) = 'a'",
        "substring('abc', 2, -1) = ''",
        "substring('abc', 9) = ''",
        "substring('', 1, 1) = ''",
        "substring('añb', 2, 1) = 'ñ'",
        "substring('abc', 2, 9223372036854775807) = 'bc'",
        "substring('abc', -9223372036854775807 - 1) = 'abc'",
        "substring(null, 1) = null",
    ],
)
def substring(x: str, start: int, count: int = INT64_MAX) -> str:
    """`length` code points from `start`, by default all that follow. 0 counts as 1; a negative start counts from the
    end."""
    first = start - 1 if start > 0 else len(x) + start if start < 0 else 0
    return x[max(0, first) :] if count == INT64_MAX else x[max(0, first) : max(0, first + count)]


@scalar(
    "text_slice",
    "array_slice(text, first, last), text[first:last]",
    fixed(VARCHAR, BIGINT, BIGINT, returns=VARCHAR),
    spark=lambda _, args: spark_slice("char_length", "substring", args),
    native="text_slice",
    examples=[
        "array_slice('hello', 2, 3) = 'el'",
        "array_slice('hello', -3, -2) = 'll'",
        "array_slice('abc', 0, 2) = 'ab'",
        "array_slice('abc', -9, 2) = 'ab'",
        "array_slice('abc', 2, 9223372036854775807) = 'bc'",
        "array_slice('abc', 3, 1) = ''",
        "array_slice('abc', 4, 4) = ''",
        "array_slice('abc', 0, 0) = ''",
        "array_slice('abc', -9, -4) = ''",
        "array_slice('abc', -9223372036854775807 - 1, -9223372036854775807 - 1) = ''",
        "array_slice('', 1, 1) = ''",
        "array_slice('añb', 2, 2) = 'ñ'",
        "array_slice('abc', null, 1) = null",
        "array_slice(null, 1, 1) = null",
    ],
)
def text_slice(x: str, first: int, last: int) -> str:
    """The code points from position `first` to `last`; negative positions count from the end."""
    return x[between(first, last, len(x))]


@scalar(
    "concat",
    "concat(x, y, …), x || y",
    as_text(1),
    spark=lambda _, args: f"concat({', '.join(args)})",
    native="concat",
    aliases=("||",),
    examples=[
        "concat('a', 'b', 'c') = 'abc'",
        "'a' || 'b' = 'ab'",
        "'a' || null = null",
        "'' || '' = ''",
        "'n=' || 5 = 'n=5'",
        "'x' || 1.50 = 'x1.50'",
        "'' || 1e21 = '1.0E21'",
    ],
)
def concat(*texts: str) -> str:
    """The texts joined together; other values are cast to text."""
    return "".join(texts)


def _spark_trim(plain: str, side: str) -> Any:
    return lambda _, args: f"{plain}({args[0]})" if len(args) == 1 else f"trim({side} {args[1]} FROM {args[0]})"


_TRIMMED = with_optional((VARCHAR,), (VARCHAR,), VARCHAR)


@scalar(
    "trim",
    "trim(text [, characters])",
    _TRIMMED,
    spark=_spark_trim("trim", "BOTH"),
    native="trim",
    aliases=("btrim",),
    examples=["trim('  a b ') = 'a b'", "trim('') = ''", "trim('xyaxy', 'yx') = 'a'", "trim(null) = null"],
)
def trim(x: str, characters: str = " ") -> str:
    """The text without these characters (by default spaces) at both ends."""
    return x.strip(characters) if characters else x


@scalar(
    "ltrim",
    "ltrim(text [, characters])",
    _TRIMMED,
    spark=_spark_trim("ltrim", "LEADING"),
    native="ltrim",
    examples=["ltrim('  a ') = 'a '", "ltrim('') = ''", "ltrim('xxa', 'x') = 'a'", "ltrim('a', null) = null"],
)
def ltrim(x: str, characters: str = " ") -> str:
    """The text without these characters (by default spaces) at its start."""
    return x.lstrip(characters) if characters else x


@scalar(
    "rtrim",
    "rtrim(text [, characters])",
    _TRIMMED,
    spark=_spark_trim("rtrim", "TRAILING"),
    native="rtrim",
    examples=["rtrim(' a  ') = ' a'", "rtrim('') = ''", "rtrim('axx', 'x') = 'a'", "rtrim(null) = null"],
)
def rtrim(x: str, characters: str = " ") -> str:
    """The text without these characters (by default spaces) at its end."""
    return x.rstrip(characters) if characters else x


@scalar(
    "replace",
    "replace(text, search, replacement)",
    fixed(VARCHAR, VARCHAR, VARCHAR, returns=VARCHAR),
    spark="replace({0}, {1}, {2})",
    native="replace",
    examples=[
        "replace('banana', 'an', 'o') = 'booa'",
        "replace('abc', '', 'x') = 'abc'",
        "replace('', 'a', 'b') = ''",
        "replace('abc', 'b', '') = 'ac'",
        "replace('abc', null, 'x') = null",
    ],
)
def replace(x: str, search: str, replacement: str) -> str:
    """The text with every occurrence of `search` replaced, left to right; an empty `search` changes nothing."""
    return x.replace(search, replacement) if search else x


@scalar(
    "position",
    "position(part IN text), position(part, text)",
    fixed(VARCHAR, VARCHAR, returns=INTEGER),
    spark="position({0}, {1})",
    native="position",
    aliases=("locate", "charindex"),
    examples=[
        "position('l', 'hello') = 3",
        "position('x', 'hello') = 0",
        "position('', 'hello') = 1",
        "position('ñ', 'añ') = 2",
        "position(null, 'a') = null",
    ],
)
def position(part: str, x: str) -> int:
    """Position of the first occurrence of `part`, or 0."""
    return x.find(part) + 1


@scalar(
    "strpos",
    "strpos(text, part)",
    fixed(VARCHAR, VARCHAR, returns=INTEGER),
    spark="position({1}, {0})",
    native="strpos",
    aliases=("instr",),
    examples=["strpos('hello', 'lo') = 4", "strpos('', 'a') = 0", "strpos('', '') = 1", "strpos('a', null) = null"],
)
def strpos(x: str, part: str) -> int:
    """Position of the first occurrence of `part`, or 0: `position` with its arguments swapped."""
    return x.find(part) + 1


@scalar(
    "left",
    "left(text, count)",
    fixed(VARCHAR, BIGINT, returns=VARCHAR),
    spark=lambda _, args: f"left({args[0]}, {clamped_int(args[1])})",
    native="left",
    examples=["left('hello', 2) = 'he'", "left('hello', 0) = ''", "left('añb', 2) = 'añ'", "left(null, 1) = null"],
)
def left(x: str, count: int) -> str:
    """The first `count` code points; '' if `count` is not positive."""
    return x[:count] if count > 0 else ""


@scalar(
    "right",
    "right(text, count)",
    fixed(VARCHAR, BIGINT, returns=VARCHAR),
    spark=lambda _, args: f"right({args[0]}, {clamped_int(args[1])})",
    native="right",
    examples=[
        "right('hello', 2) = 'lo'",
        "right('hello', 0) = ''",
        "right('hello', -1) = ''",
        "right('ab', 9) = 'ab'",
        "right(null, 1) = null",
    ],
)
def right(x: str, count: int) -> str:
    """The last `count` code points; '' if `count` is not positive."""
    return x[-count:] if count > 0 else ""


_TWO_TEXTS = fixed(VARCHAR, VARCHAR, returns=BOOLEAN)


@scalar(
    "starts_with",
    "starts_with(text, part)",
    _TWO_TEXTS,
    spark="startswith({0}, {1})",
    native="starts_with",
    aliases=("startswith", "prefix"),
    examples=[
        "starts_with('hello', 'he') = true",
        "starts_with('hello', '') = true",
        "starts_with('', 'a') = false",
        "starts_with('a', null) = null",
    ],
)
def starts_with(x: str, part: str) -> bool:
    """Whether the text begins with `part`."""
    return x.startswith(part)


@scalar(
    "ends_with",
    "ends_with(text, part)",
    _TWO_TEXTS,
    spark="endswith({0}, {1})",
    native="ends_with",
    aliases=("endswith", "suffix"),
    examples=[
        "ends_with('hello', 'lo') = true",
        "ends_with('hello', '') = true",
        "ends_with('', 'a') = false",
        "ends_with(null, 'a') = null",
    ],
)
def ends_with(x: str, part: str) -> bool:
    """Whether the text ends with `part`."""
    return x.endswith(part)


@scalar(
    "contains",
    "contains(text, part)",
    _TWO_TEXTS,
    spark="contains({0}, {1})",
    native="contains",
    examples=[
        "contains('hello', 'ell') = true",
        "contains('hello', '') = true",
        "contains('', 'a') = false",
        "contains('a', null) = null",
    ],
)
def contains(x: str, part: str) -> bool:
    """Whether the text contains `part`."""
    return part in x


# Spark's split takes a regular expression: \Q…\E quotes it, and an \E inside closes and reopens the quotation
_SPARK_SPLIT = (
    r"if({0} is null, null, if({1} = '', array({0}), "
    r"split({0}, concat(r'\Q', replace({1}, r'\E', r'\E\\E\Q'), r'\E'), -1)))"
)


@scalar(
    "split",
    "split(text, separator)",
    fixed(VARCHAR, VARCHAR, returns=array(VARCHAR)),
    spark=_SPARK_SPLIT,
    native="split",
    walked=True,
    no_null_inside=True,
    aliases=("string_split", "string_to_array", "str_split"),
    examples=[
        "split('a,b,,c', ',') = ARRAY['a', 'b', '', 'c']",
        "split('', ',') = ARRAY['']",
        "split(null, ',') = null",
        "split('a', null) = null",
    ],
)
def split(x: str, separator: str) -> tuple[str, ...]:
    """The pieces between the separators, including empty ones; an empty separator gives the whole text as one piece."""
    return tuple(x.split(separator)) if separator else (x,)


# One element of a LIKE pattern: a code point that must stand there, or one of these
ANY_ONE, ANY_RUN = 1, 2
Pattern = tuple[tuple["str | int", ...], ...]


@lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str) -> Pattern:
    """The pattern as its stretches between `%`: code points, or ANY_ONE for `_`."""
    if len(escape) != 1:
        raise Failure("CQ0708", f"the escape of LIKE must be one character, not '{escape}'")
    stretches: list[tuple[str | int, ...]] = []
    current: list[str | int] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        i += 1
        if c == escape:
            if i == len(pattern) or pattern[i] not in ("_", "%", escape):
                raise Failure("CQ0708", f"in the LIKE pattern '{pattern}' an escape stands before no _, % or escape")
            current.append(pattern[i])
            i += 1
        elif c == "%":
            stretches.append(tuple(current))
            current = []
        else:
            current.append(ANY_ONE if c == "_" else c)
    stretches.append(tuple(current))
    return tuple(stretches)


def _is_pattern(pattern: str | None, escape: str | None = "\\") -> bool:
    """Whether both are known, and make a pattern."""
    try:
        return pattern is not None and escape is not None and like_pattern(pattern, escape) is not None
    except Failure:
        return False


def _stands_at(x: str, at: int, stretch: tuple[str | int, ...]) -> bool:
    return all(e == ANY_ONE or x[at + i] == e for i, e in enumerate(stretch))


def matches(x: str, stretches: Pattern) -> bool:
    """Whether the text consists of the stretches in order with anything between them.

    The first and the last are anchored to the ends; every other one is matched as early as possible, which never loses
    a match.
    """
    first, *middle = stretches
    if not middle:
        return len(x) == len(first) and _stands_at(x, 0, first)
    last = middle.pop()
    end = len(x) - len(last)
    if end < len(first) or not _stands_at(x, 0, first) or not _stands_at(x, end, last):
        return False
    at = len(first)
    for stretch in middle:
        while at + len(stretch) <= end and not _stands_at(x, at, stretch):
            at += 1
        if at + len(stretch) > end:
            return False
        at += len(stretch)
    return True


def _spark_like(_: Signature, args: tuple[str, ...]) -> str:
    return f"({args[0]} like {args[1]}{' escape ' + args[2] if len(args) == 3 else ''})"


@scalar(
    "like",
    "text [NOT] LIKE pattern [ESCAPE character]",
    overloaded(
        Signature((VARCHAR, VARCHAR), BOOLEAN),
        Signature((VARCHAR, VARCHAR, VARCHAR), BOOLEAN),
    ),
    spark=_spark_like,
    native="like",
    fails=("CQ0708",),
    settled=lambda _, constants: _is_pattern(*constants[1:]),
    examples=[
        "('hello' LIKE 'h%o') = true",
        "('hello' LIKE 'h_llo') = true",
        "('' LIKE '%') = true",
        "('' LIKE '_') = false",
        "('é' LIKE '_') = true",
        "('50%' LIKE '50!%' ESCAPE '!') = true",
        "('500' LIKE '50!%' ESCAPE '!') = false",
        "('abcabc' LIKE '%b%c') = true",
        "('a' LIKE 'a!' ESCAPE '!') = error CQ0708",
        "(null LIKE '%') = null",
    ],
)
def like(x: str, pattern: str, escape: str = "\\") -> bool:
    r"""Whether the text matches the pattern: `_` matches any one code point, `%` any number of them.

    The escape character is `\` by default; it must precede `_`, `%` or itself.
    """
    return matches(x, like_pattern(pattern, escape))
