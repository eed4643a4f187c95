"""Texts made from texts: padded, repeated, reversed, translated, joined; and the distance between two."""

from __future__ import annotations

from collections.abc import Callable

from cq.lang.functions.registry import Constants, Failure, Signature, scalar
from cq.lang.functions.signatures import as_text, fixed, with_optional
from cq.lang.functions.spark_text import clamped_int
from cq.lang.functions.text import substring
from cq.lang.types import BIGINT, INTEGER, VARCHAR, DataType

MOST_LETTERS = 1_000_000  # of a text with a computed length, so that a wrong number does not exhaust the memory
_TOO_LONG = f"raise_error('CQ0708: a text of more than {MOST_LETTERS} characters')"


def _demand_room(letters: int) -> None:
    if letters > MOST_LETTERS:
        raise Failure("CQ0708", f"a text of more than {MOST_LETTERS} characters")


@scalar(
    "split_part",
    "split_part(text, separator, number)",
    fixed(VARCHAR, VARCHAR, BIGINT, returns=VARCHAR),
    spark=lambda _, args: f"split_part({args[0]}, {args[1]}, {clamped_int(args[2])})",
    native="split_part",
    fails=("CQ0708",),
    settled=lambda _, constants: constants[2] not in {None, 0},
    examples=[
        "split_part('a,b,c', ',', 2) = 'b'",
        "split_part('a,b,c', ',', -1) = 'c'",
        "split_part('a,b,c', ',', 9) = ''",
        "split_part('a--b', '--', 2) = 'b'",
        "split_part('abc', '', 1) = 'abc'",
        "split_part('abc', ',', 0) = error CQ0708",
        "split_part('abc', null, 1) = null",
    ],
)
def split_part(x: str, separator: str, number: int) -> str:
    """The piece with this number, counted from 1, or from -1 at the end; '' if there is none. An empty separator does
    not split."""
    if number == 0:
        raise Failure("CQ0708", "SPLIT_PART counts pieces from 1, or from -1 at the end")
    pieces = x.split(separator) if separator else [x]
    at = number - 1 if number > 0 else len(pieces) + number
    return pieces[at] if 0 <= at < len(pieces) else ""


@scalar(
    "substring_index",
    "substring_index(text, separator, count)",
    fixed(VARCHAR, VARCHAR, BIGINT, returns=VARCHAR),
    spark=lambda _, args: f"substring_index({args[0]}, {args[1]}, {clamped_int(args[2])})",
    native="substring_index",
    examples=[
        "substring_index('a.b.c', '.', 2) = 'a.b'",
        "substring_index('a.b.c', '.', -1) = 'c'",
        "substring_index('a.b.c', '.', 9) = 'a.b.c'",
        "substring_index('aaa', 'aa', 2) = 'a'",
        "substring_index('aaa', 'aa', -2) = 'a'",
        "substring_index('abc', '.', 0) = ''",
        "substring_index('abc', '', 1) = ''",
        "substring_index(null, '.', 1) = null",
    ],
)
def substring_index(x: str, separator: str, count: int) -> str:
    """The text before the `count`-th separator or, if negative, after the `count`-th from the end; the whole text if
    there are fewer. Separators may overlap, as in Spark."""
    if not separator or count == 0:
        return ""
    at = -1 if count > 0 else len(x) - len(separator) + 1
    for _ in range(abs(count)):
        at = x.find(separator, at + 1) if count > 0 else x.rfind(separator, 0, max(0, at - 1 + len(separator)))
        if at < 0:
            return x
    return x[:at] if count > 0 else x[at + len(separator) :]


_PADDED = with_optional((VARCHAR, BIGINT), (VARCHAR,), VARCHAR)


def _spark_padded(name: str) -> Callable[[Signature, tuple[str, ...]], str]:
    def text(_: Signature, args: tuple[str, ...]) -> str:
        x, count, padding = (*args, "' '")[:3]
        known = f"{x} is not null and {padding} is not null"
        return f"if({known} and {count} > {MOST_LETTERS}, {_TOO_LONG}, {name}({x}, {clamped_int(count)}, {padding}))"

    return text


def _padding(x: str, count: int, padding: str) -> str:
    """The padding up to this many code points."""
    _demand_room(count)
    missing = count - len(x)
    return (padding * (missing // len(padding) + 1))[:missing] if padding and missing > 0 else ""


@scalar(
    "lpad",
    "lpad(text, length [, padding])",
    _PADDED,
    spark=_spark_padded("lpad"),
    native="lpad",
    fails=("CQ0708",),
    examples=[
        "lpad('7', 3, '0') = '007'",
        "lpad('hello', 3) = 'hel'",
        "lpad('ñ', 4, 'äb') = 'äbäñ'",
        "lpad('a', 3, '') = 'a'",
        "lpad('a', -1) = ''",
        "lpad('a', 1000001) = error CQ0708",
        "lpad(null, 3) = null",
    ],
)
def lpad(x: str, count: int, padding: str = " ") -> str:
    """Pad on the left to `length` code points, with spaces by default; a longer text is cut."""
    return (_padding(x, count, padding) + x)[: max(0, count)]


@scalar(
    "rpad",
    "rpad(text, length [, padding])",
    _PADDED,
    spark=_spark_padded("rpad"),
    native="rpad",
    fails=("CQ0708",),
    examples=[
        "rpad('7', 3, '0') = '700'",
        "rpad('hello', 3) = 'hel'",
        "rpad('ñ', 4, 'äb') = 'ñäbä'",
        "rpad('', 2) = '  '",
        "rpad('a', 0) = ''",
        "rpad('a', 1000001) = error CQ0708",
        "rpad('a', null) = null",
    ],
)
def rpad(x: str, count: int, padding: str = " ") -> str:
    """Pad on the right to `length` code points, with spaces by default; a longer text is cut."""
    return (x + _padding(x, count, padding))[: max(0, count)]


def _spark_repeat(_: Signature, args: tuple[str, ...]) -> str:
    x, times = args
    letters = f"char_length({x}) * greatest(0L, least({times}, {MOST_LETTERS + 1}L))"
    # GREATEST and LEAST skip NULL
    return f"if({times} is not null and {letters} > {MOST_LETTERS}, {_TOO_LONG}, repeat({x}, {clamped_int(times)}))"


@scalar(
    "repeat",
    "repeat(text, times)",
    fixed(VARCHAR, BIGINT, returns=VARCHAR),
    spark=_spark_repeat,
    native="repeat",
    aliases=("replicate",),
    fails=("CQ0708",),
    examples=[
        "repeat('ab', 3) = 'ababab'",
        "repeat('ab', 0) = ''",
        "repeat('ab', -1) = ''",
        "repeat('', 9223372036854775807) = ''",
        "repeat('ab', 1000000) = error CQ0708",
        "repeat(null, 2) = null",
        "repeat('ab', null) = null",
    ],
)
def repeat(x: str, times: int) -> str:
    """Repeat the text; '' when `times` is not positive."""
    _demand_room(len(x) * times)
    return x * times if x else ""


@scalar(
    "space",
    "space(count)",
    fixed(BIGINT, returns=VARCHAR),
    spark=lambda _, args: f"if({args[0]} > {MOST_LETTERS}, {_TOO_LONG}, space({clamped_int(args[0])}))",
    native="space",
    fails=("CQ0708",),
    examples=[
        "space(3) = '   '",
        "space(0) = ''",
        "space(-1) = ''",
        "space(1000001) = error CQ0708",
        "space(null) = null",
    ],
)
def space(count: int) -> str:
    """`count` spaces; '' if `count` is not positive."""
    _demand_room(count)
    return " " * count


@scalar(
    "reverse",
    "reverse(text)",
    fixed(VARCHAR, returns=VARCHAR),
    spark="reverse({0})",
    native="reverse",
    examples=["reverse('abc') = 'cba'", "reverse('añb') = 'bña'", "reverse('') = ''", "reverse(null) = null"],
)
def reverse(x: str) -> str:
    """The code points in reverse order."""
    return x[::-1]


@scalar(
    "translate",
    "translate(text, characters, others)",
    fixed(VARCHAR, VARCHAR, VARCHAR, returns=VARCHAR),
    spark="translate({0}, {1}, {2})",
    native="translate",
    examples=[
        "translate('12-34', '-', '/') = '12/34'",
        "translate('hello', 'lo', 'xy') = 'hexxy'",
        "translate('a b c', ' ', '') = 'abc'",
        "translate('aa', 'aa', 'xy') = 'xx'",
        "translate('año', 'ñ', 'nn') = 'ano'",
        "translate(null, 'a', 'b') = null",
    ],
)
def translate(x: str, characters: str, others: str) -> str:
    """The text with each of `characters` replaced by the one at the same position in `others`, or removed if there is
    none."""
    return x.translate({ord(c): others[i : i + 1] for i, c in reversed(list(enumerate(characters)))})


def _spark_overlay(_: Signature, args: tuple[str, ...]) -> str:
    x, other, start, *count = args
    # Spark adds both as INT, and takes a negative length for a missing one
    length = f"greatest(-{2**29}L, {clamped_int(count[0], 2**29)})" if count else f"char_length({other})"
    place = clamped_int(start, 2**29)
    return f"concat(substring({x}, 1, {place} - 1), {other}, substring({x}, cast({place} + {length} as INT)))"


@scalar(
    "overlay",
    "overlay(text, other, start [, length])",
    with_optional((VARCHAR, VARCHAR, BIGINT), (BIGINT,), VARCHAR),
    spark=_spark_overlay,
    native="overlay",
    examples=[
        "overlay('Spark SQL', '_', 6) = 'Spark_SQL'",
        "overlay('Spark SQL', 'CORE', 7) = 'Spark CORE'",
        "overlay('Spark SQL', 'ANSI ', 7, 0) = 'Spark ANSI SQL'",
        "overlay('abc', 'x', 9) = 'abcx'",
        "overlay('ñaß', 'o', 2) = 'ñoß'",
        "overlay(null, 'x', 1) = null",
    ],
)
def overlay(x: str, other: str, start: int, length: int | None = None) -> str:
    """Replace `length` code points from `start` (by default as many as `other` has) with `other`."""
    end = start + (len(other) if length is None else length)
    return substring(x, 1, start - 1) + other + substring(x, end)


def _separator_and_texts(types: tuple[DataType, ...], constants: Constants) -> Signature | None:
    found = as_text(1)(types, constants)
    return found if isinstance(found, Signature) else None


@scalar(
    "concat_ws",
    "concat_ws(separator, x, y, …)",
    _separator_and_texts,
    spark=lambda _, args: f"concat_ws({', '.join(args)})",
    native="concat_ws",
    handles_null=True,
    may_be_null=True,
    examples=[
        "concat_ws(', ', 'a', 'b') = 'a, b'",
        "concat_ws('-', 'a', null, 5) = 'a-5'",
        "concat_ws('-', null, null) = ''",
        "concat_ws('-') = ''",
        "concat_ws('', 'a', 'b') = 'ab'",
        "concat_ws(null, 'a') = null",
    ],
)
def concat_ws(separator: str | None, *texts: str | None) -> str | None:
    """The texts that are not NULL, with the separator between them; NULL if the separator is NULL."""
    return None if separator is None else separator.join(t for t in texts if t is not None)


@scalar(
    "levenshtein",
    "levenshtein(text, text)",
    fixed(VARCHAR, VARCHAR, returns=INTEGER),
    spark="levenshtein({0}, {1})",
    native="levenshtein",
    aliases=("editdist3",),
    examples=[
        "levenshtein('kitten', 'sitting') = 3",
        "levenshtein('', 'abc') = 3",
        "levenshtein('ñ', 'n') = 1",
        "levenshtein('a', 'a') = 0",
        "levenshtein('a', null) = null",
    ],
)
def levenshtein(x: str, y: str) -> int:
    """The number of code points to insert, delete or replace to turn one text into the other. The time grows with the
    product of their lengths."""
    row = list(range(len(y) + 1))
    for i, c in enumerate(x, 1):
        before, row[0] = row[0], i
        for j, d in enumerate(y, 1):
            before, row[j] = row[j], min(before + (c != d), row[j] + 1, row[j - 1] + 1)
    return row[-1]
