"""Random scalar expressions as query text: every entry of the function registry with the types it takes, and syntax
that is not a function (CASE, COALESCE, CAST, IN, BETWEEN, IS NULL, AND, OR).

The types of columns are known exactly, those of results only by kind: the binder has the last word, and what it refuses
is drawn again.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import cache

import random_functions
import random_json
import random_regexes

from cq.lang.casts import castable
from cq.lang.functions import EXTRACT_PARTS, TRUNC_UNITS, Scalar, Signature, all_scalars
from cq.lang.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    INTERVAL_MONTH,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TINYINT,
    UTC_INSTANT,
    VARCHAR,
    DataType,
    Kind,
    decimal,
)
from cq.planner.binding.in_lists import FEW
from cq.records import dataclass

DECIMALS = (decimal(9, 2), decimal(4, 0), decimal(12, 4))
WIDE = (decimal(20, 4), decimal(38, 6))
SAMPLED = (BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, decimal(9, 2), VARCHAR, BINARY, DATE, TIME,
           TIMESTAMP, UTC_INSTANT, INTERVAL, INTERVAL_MONTH)  # fmt: skip
COLUMN_TYPES = (BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, BIGINT, REAL, DOUBLE, DOUBLE, *DECIMALS, *WIDE, VARCHAR,
                VARCHAR, BINARY, DATE, TIME, TIMESTAMP, UTC_INSTANT)  # fmt: skip
ELEMENTS = (BIGINT, BIGINT, DOUBLE, VARCHAR, VARCHAR, BINARY, DATE)  # of arrays
INFIX = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">="}
COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
TRUNCATED = {entry: unit for unit, entry in TRUNC_UNITS.items()}
EXTRACTED = {entry: part for part, entry in EXTRACT_PARTS.items()}
PATTERNS = ("a%", "%b", "%a%", "_", "%", "", "a_c%", "%é%", "aaaa%bbbb%", "%%", "10\\%%")
MOST_DIGITS = 6  # of a literal of a tame query: sums and products of a few stay far from every limit


@cache
def signatures() -> dict[Kind, tuple[tuple[Scalar, tuple[DataType, ...], bool], ...]]:
    """By kind of result: entries with argument types they accept, and whether some values fail."""
    found: dict[Kind, list[tuple[Scalar, tuple[DataType, ...], bool]]] = {}
    for entry in all_scalars().values():
        if entry.name in {"split", "like", "round"}:
            continue
        for count in (1, 2, 3):
            for types in itertools.product(SAMPLED, repeat=count):
                signature = entry.signature(types)
                if signature is not None and _near(types, signature):
                    place = found.setdefault(signature.returns.kind, [])
                    place.append((entry, types, entry.can_fail(signature, (None,) * count)))
    return {kind: tuple(entries) for kind, entries in found.items()}


def _near(types: tuple[DataType, ...], signature: Signature) -> bool:
    """Whether the arguments need at most one conversion: otherwise nearly all draws would be conversions."""
    return sum(a != b for a, b in zip(types, signature.params, strict=True)) <= 1


@dataclass(frozen=True)
class Vocabulary:
    """The parts of expressions. functions, aggregates: names; empty means all.

    shared: only what another engine computes to the last bit: no casts, no REAL, no NaN, no -0.0, no huge DOUBLE.
    """

    types: tuple[DataType, ...]
    functions: frozenset[str] = frozenset()
    aggregates: tuple[str, ...] = ()
    shared: bool = False

    def kind(self, rng: random.Random) -> Kind:
        """A kind that a column can have."""
        return rng.choice(self.types).kind

    def has(self, *kinds: Kind) -> bool:
        """Whether expressions of all these kinds can be drawn."""
        return not self.shared or all(any(t.kind is k for t in self.types) for k in kinds)


EVERYTHING = Vocabulary(COLUMN_TYPES)


@cache
def entries_of(
    kind: Kind, fallible: bool, vocabulary: Vocabulary
) -> tuple[tuple[Scalar, tuple[tuple[DataType, ...], ...]], ...]:
    """By entry, the argument types for a result of this kind."""
    by_entry: dict[str, list[tuple[DataType, ...]]] = {}
    for entry, types, can_fail in signatures().get(kind, ()):
        known = entry.name in vocabulary.functions if vocabulary.functions else fallible or not can_fail
        if known and vocabulary.has(*(t.kind for t in types)):
            by_entry.setdefault(entry.name, []).append(types)
    return tuple((all_scalars()[name], tuple(types)) for name, types in sorted(by_entry.items()))


@dataclass
class Expressions:
    """Draws expressions over some columns, each (text of a reference, type). wild: also draw what can fail."""

    rng: random.Random
    columns: Sequence[tuple[str, DataType]]
    wild: bool = False
    vocabulary: Vocabulary = EVERYTHING

    def any(self, depth: int) -> str:
        """An expression of a random type that a column can have."""
        return self.of(self.vocabulary.kind(self.rng), depth)

    def condition(self, depth: int = 2) -> str:
        return self.of(Kind.BOOLEAN, depth)

    def column(self, kind: Kind | None = None) -> str | None:
        """A column, of this kind if given."""
        fitting = [text for text, t in self.columns if kind is None or t.kind is kind]
        return self.rng.choice(fitting) if fitting else None

    def argument(self, kind: Kind | None = None) -> str:
        """A column, or else a small expression."""
        column = self.column(kind)
        if column is not None and self.rng.random() < 0.7:
            return column
        return self.of(kind, 1) if kind is not None else self.any(1)

    def of(self, kind: Kind, depth: int) -> str:
        """An expression of a kind, with at most `depth` nested calls."""
        rng = self.rng
        column = self.column(kind)
        if kind is Kind.INTERVAL_MONTH:
            return self.literal(kind)
        if kind is Kind.ARRAY:
            return self._list(depth)
        if rng.random() < 0.3 and (taken := self._of_list(kind)):
            return taken
        if depth <= 0 or rng.random() < 0.15:
            if column is not None and rng.random() < 0.85:
                return column
            return self._from_other(kind) if rng.random() < 0.6 else self.literal(kind)
        roll = rng.random()
        if kind is Kind.BOOLEAN and roll < 0.6:
            return self._condition(depth)
        if roll < 0.12:
            return f"CASE WHEN {self.condition(depth - 1)} THEN {self.of(kind, depth - 1)}" + (
                f" ELSE {self.of(kind, depth - 1)} END" if rng.random() < 0.7 else " END"
            )
        if roll < 0.2:
            return f"COALESCE({self.of(kind, depth - 1)}, {self.of(kind, depth - 1)})"
        if roll < 0.25:
            return f"NULLIF({self.of(kind, depth - 1)}, {self.of(kind, depth - 1)})"
        if roll < 0.35 and not self.vocabulary.shared:
            return self._cast(kind, depth)
        return self._call(kind, depth)

    def _list(self, depth: int) -> str:
        """An array: a column, also changed, or one of literals."""
        column = self.column(Kind.ARRAY)
        if column is None:
            kind = self.rng.choice(ELEMENTS).kind
            return f"ARRAY[{', '.join(self.literal(kind) for _ in range(self.rng.randint(1, 3)))}]"
        forms = [
            "array_reverse({})",
            "array_sort({})",
            "array_distinct({})",
            "array_concat({0}, {0})",
            "array_slice({}, 1, 2)",
        ]
        return column if depth <= 0 or self.rng.random() < 0.4 else self.rng.choice(forms).format(column)

    def _of_list(self, kind: Kind) -> str:
        """A value of this kind from an array column; empty if there is none."""
        made = []
        for text, type_ in self.columns:
            if type_.element is None:
                continue
            if type_.element.kind is kind:
                made += [f"{text}[{self.rng.choice([1, 2, -1, 9])}]", f"array_max({text})", f"array_min({text})"]
            if kind is Kind.BIGINT:
                made.append(f"CAST(cardinality({text}) AS BIGINT)")
            if kind is Kind.BOOLEAN:
                made.append(f"array_contains({text}, {self.literal(type_.element.kind)})")
        return self.rng.choice(made) if made else ""

    def _call(self, kind: Kind, depth: int) -> str:
        rng = self.rng
        if kind in {Kind.DOUBLE, Kind.DECIMAL} and rng.random() < 0.1 and not self.vocabulary.shared:
            digits = f", {rng.choice([0, 1, 2, -1])}" if rng.random() < 0.7 else ""
            return f"ROUND({self.of(kind, depth - 1)}{digits})"
        choices = entries_of(kind, self.wild, self.vocabulary)
        if not choices:
            return self.literal(kind)
        if rng.random() < 0.1 and (found := self._found_in_text(kind, depth)):
            return found
        if (
            rng.random() < 0.05
            and not self.vocabulary.shared
            and (mine := random_functions.drawn(kind, self.wild, rng))
        ):
            return f"{mine.name}({', '.join(self.of(p.type.kind, depth - 1) for p in mine.parameters)})"
        entry, forms = rng.choice(choices)
        types = rng.choice(forms)
        return rendered(entry, [self.of(t.kind, depth - 1) for t in types], rng)

    def _found_in_text(self, kind: Kind, depth: int) -> str:
        """What a pattern or a path, both literals, finds in a text; empty if that is never of this kind."""
        rng = self.rng
        if self.vocabulary.shared or kind not in {Kind.BOOLEAN, Kind.BIGINT, Kind.VARCHAR}:
            return ""
        text = self.of(Kind.VARCHAR, depth - 1)
        regex, path = (_in_quotes(drawn) for drawn in (random_regexes.pattern(rng, 1), rng.choice(random_json.PATHS)))
        match kind:
            case Kind.BOOLEAN:
                return f"regexp_like({text}, {regex})"
            case Kind.BIGINT:
                return f"regexp_count({text}, {regex})"
        forms = ["regexp_extract({}, {}, 0)", "regexp_replace({}, {}, '<$0>')"]
        paths = ["json_value({}, {})", "get_json_object({}, {})"]
        return rng.choice([*(f.format(text, regex) for f in forms), *(p.format(text, path) for p in paths)])

    def _cast(self, kind: Kind, depth: int) -> str:
        """A cast to the kind, from a type that allows it; one that can fail is TRY_CAST unless failures are allowed."""
        target = self.rng.choice([t for t in COLUMN_TYPES if t.kind is kind] or [BIGINT])
        sources = [t for t in COLUMN_TYPES if any(castable(t, u) and u.kind is kind for u in COLUMN_TYPES)]
        if kind is Kind.INTERVAL or not sources:
            return self.literal(kind)
        inner = self.of(self.rng.choice(sources).kind, depth - 1)
        word = "CAST" if self.wild and self.rng.random() < 0.5 else "TRY_CAST"
        return f"{word}({inner} AS {target})"

    def _from_other(self, kind: Kind) -> str:
        """A column of another kind, cast; a literal when none can be."""
        targets = [t for t in COLUMN_TYPES if t.kind is kind]
        sources = [text for text, t in self.columns if targets and castable(t, targets[0])]
        if not sources or self.vocabulary.shared:
            return self.literal(kind)
        return f"TRY_CAST({self.rng.choice(sources)} AS {self.rng.choice(targets)})"

    def _condition(self, depth: int) -> str:
        rng = self.rng
        match rng.randrange(9):
            case 0 | 1:
                word = rng.choice([" AND ", " OR "])
                return "(" + word.join(self.condition(depth - 1) for _ in range(rng.randint(2, 3))) + ")"
            case 2:
                return f"(NOT {self.condition(depth - 1)})"
            case 3:
                kind = self.vocabulary.kind(rng)
                return f"({self.of(kind, depth - 1)} IS {rng.choice(['', 'NOT '])}NULL)"
            case 4:
                kind = self.vocabulary.kind(rng)
                items = rng.choice([1, 1, 2, 2, 3, 3, 4, FEW + 2])  # more than FEW are searched
                values = ", ".join(self.literal(kind) for _ in range(items))
                return f"({self.of(kind, depth - 1)} {rng.choice(['', 'NOT '])}IN ({values}))"
            case 5:
                kind = self.vocabulary.kind(rng)
                bounds = f"{self.of(kind, depth - 1)} AND {self.of(kind, depth - 1)}"
                return f"({self.of(kind, depth - 1)} {rng.choice(['', 'NOT '])}BETWEEN {bounds})"
            case 6:
                pattern = rng.choice(PATTERNS).replace("'", "''")
                return f"({self.of(Kind.VARCHAR, depth - 1)} {rng.choice(['', 'NOT '])}LIKE '{pattern}')"
            case _:
                kind = self.vocabulary.kind(rng)
                other = Kind.DECIMAL if kind is Kind.BIGINT and rng.random() < 0.2 else kind
                sides = (kind, other) if rng.random() < 0.5 else (other, kind)
                left, right = (self.of(side, depth - 1) for side in sides)
                return f"({left} {rng.choice(COMPARED)} {right})"

    def literal(self, kind: Kind) -> str:
        rng = self.rng
        if rng.random() < 0.06 and kind not in {Kind.INTERVAL, Kind.INTERVAL_MONTH}:
            return f"CAST(NULL AS {_example(kind)})"
        number = rng.choice([0, 1, 2, 3, 7, 10, 100, rng.randint(0, 9**MOST_DIGITS // 100)])
        if self.wild and rng.random() < 0.1:
            number = rng.choice([127, 32767, 2**31 - 1, 2**63 - 1])
        sign = "-" if number and rng.random() < 0.3 else ""
        match kind:
            case Kind.BOOLEAN:
                return rng.choice(["TRUE", "FALSE"])
            case Kind.VARCHAR:
                return _in_quotes(random_text(rng).replace("\x00", ""))
            case Kind.BINARY:
                return f"X'{random_bytes(rng).hex()}'"
            case Kind.REAL:
                return f"CAST({sign}{number}.5e0 AS REAL)"
            case Kind.DOUBLE:
                if self.vocabulary.shared:
                    return f"{sign}{number}.25e0"
                plain = (f"{sign}{number}.25e0", f"{sign}{number}e-1", "0e0", "-0e0")
                return rng.choice([*plain, "1e300", "CAST('NaN' AS DOUBLE)"])
            case Kind.DECIMAL:
                return f"{sign}{min(number, 10**6)}.{rng.randint(0, 99):02}"
            case Kind.DATE:
                return f"DATE '{rng.choice([1969, 1970, 2000, 2024])}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}'"
            case Kind.TIME:
                return f"TIME '{rng.randint(0, 23):02}:{rng.choice(['00:00', '30:00.5', '59:59.999999'])}'"
            case Kind.TIMESTAMP:
                day = f"{rng.choice([1969, 1970, 2024])}-01-0{rng.randint(1, 9)}"
                return f"TIMESTAMP '{day} 00:00:{rng.randint(0, 59):02}.5'"
            case Kind.TIMESTAMP_LTZ:
                day = f"{rng.choice([1969, 1970, 2024])}-01-0{rng.randint(1, 9)}"
                zone = rng.choice(["", "Z", "+05:30", "-01:00"])
                return f"TIMESTAMP_LTZ '{day} 00:00:{rng.randint(0, 59):02}.5{zone}'"
            case Kind.INTERVAL:
                return f"INTERVAL '{sign}{number % 1000}' {rng.choice(['MICROSECOND', 'SECOND', 'MINUTE', 'DAY'])}"
            case Kind.INTERVAL_MONTH:
                return f"INTERVAL '{sign}{number % 100}' {rng.choice(['MONTH', 'YEAR'])}"
            case Kind.TINYINT | Kind.SMALLINT:
                return f"CAST({sign}{min(number, 127)} AS {kind.value})"
            case Kind.BIGINT if rng.random() < 0.5:
                return f"CAST({sign}{number} AS BIGINT)"
            case _:
                return f"{sign}{min(number, 2**31 - 1)}"


def _in_quotes(text: str) -> str:
    """The text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def _example(kind: Kind) -> DataType:
    return next((t for t in COLUMN_TYPES if t.kind is kind), BIGINT)


def rendered(entry: Scalar, args: list[str], rng: random.Random) -> str:
    """The call as query text, in one of its spellings."""
    name = entry.name
    match name:
        case _ if name in INFIX:
            return f"({args[0]} {name} {args[1]})"
        case "not":
            return f"(NOT {args[0]})"
        case "negate":
            return f"(- {args[0]})"
        case "concat" if len(args) == 2 and rng.random() < 0.5:
            return f"({args[0]} || {args[1]})"
        case "position":
            return f"POSITION({args[0]} IN {args[1]})"
        case "is distinct from" | "is not distinct from":
            return f"({args[0]} {name.upper()} {args[1]})"
        case _ if name in TRUNCATED:
            return f"DATE_TRUNC('{TRUNCATED[name]}', {args[0]})"
        case _ if name in EXTRACTED and (name.startswith("extract") or rng.random() < 0.5):
            return f"EXTRACT({EXTRACTED[name].upper()} FROM {args[0]})"
        case "add_months" | "subtract_months":
            return f"({args[0]} {'+' if name == 'add_months' else '-'} {args[1]})"
        case _:
            return f"{name}({', '.join(args)})"


TEXTS = (
    "", "a", "b", "ab", "abc", "A b c", " a", "x,y,,z", ",", "é", "日本語", "𝄞", "12", "-3.5", "true", "NaN",
    "2024-02-29", "aaaaaaaaaaaa", "aaaaaaaaaaaab", "aaaaaaaaaaaac", "aaaaaaaaaaaabbbbbbbbbbbbbbbbbb",
    "aaaaaaaaaaaabbbbbbbbbbbbbbbbbc", "it's", "\x00", "\n", "%_", "NULL",
)  # fmt: skip


def random_bytes(rng: random.Random) -> bytes:
    """Empty, not UTF-8, with zeros, above and below 12 bytes with a common prefix, or the bytes of a text."""
    if rng.random() < 0.3:
        return random_text(rng).encode()
    return rng.choice(
        [b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b"\xed\xa0\x80", b"a" * 12, b"a" * 13 + b"\xff"]
    )


def random_text(rng: random.Random) -> str:
    """Short, long (over 12 bytes, with a common prefix), empty, not ASCII, the text of another type's value, or
    JSON."""
    if rng.random() < 0.8:
        return rng.choice(TEXTS)
    if rng.random() < 0.3:
        return random_json.document(rng)
    return "".join(rng.choice("ab cé,1") for _ in range(rng.choice([1, 3, 12, 13, 40])))
