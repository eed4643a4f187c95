"""Query texts with mistakes nobody would think of: those in the tests, with tokens and clauses changed.

Each one must be refused with a code and a place, or run, with the same result on the reference and in generated code.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache

from cases import Prepared, Way, watched
from paths import QUERIES
from random_rows import random_value
from slt_coverage import all_cases
from slt_format import read_row

from cq.errors import CompileError, CqError, SourceText
from cq.grammar.parser import parse
from cq.grammar.printer import print_script
from cq.records import dataclass

TOKEN = re.compile(
    r"\s+|--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[A-Za-z_][A-Za-z_0-9]*|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
    r"|<=>|->>|::|=>|<=|>=|<>|!=|\|\||->|.",
    re.DOTALL,
)
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*$")
CLAUSES = frozenset(
    ["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "JOIN", "ON",
     "USING", "UNION", "INTERSECT", "EXCEPT", "PARTITION", "ROWS", "RANGE", "GROUPS", "FILTER", "OVER", "AS", "THEN",
     "ELSE", "WHEN", "VALUES", "SET"]
)  # fmt: skip
SPICE = (
    "0", "-1", "NULL", "TRUE", "''", "'a'", "1.5", "1e300", "9223372036854775807", "99999999999999999999.99",
    "INTERVAL '1' SECOND", "INTERVAL '0' SECOND", "INTERVAL '1' MONTH", "DATE '2024-02-29'",
    "TIMESTAMP '2024-01-01 00:00:00'", "TIME '10:00:00'", "ARRAY[1, 2]", "[]", "*", "COUNT(*)", "SUM(1)",
    "ROW_NUMBER() OVER ()", "(SELECT 1)", "MAX(1) OVER ()", "DISTINCT", "NOT", "ALL", "LEFT", "FULL", "GROUP BY ALL",
    "LIMIT 1", "ORDER BY 1", "ROWS UNBOUNDED PRECEDING", "window_start", "window_end", "ts", "LATERAL", "IGNORE NULLS",
    "FILTER (WHERE TRUE)", "WITH ORDINALITY", "CAST(NULL AS VARCHAR)", "CROSS JOIN", "ASOF JOIN", "SEMI JOIN",
    "USING (k)", "QUALIFY TRUE", "HAVING TRUE", "AS t", "UNNEST([1, 2])", "GROUPING(1)", "x -> x", "1 = 1", ";",
)  # fmt: skip


@dataclass(frozen=True)
class Seedling:
    """A valid text: the declarations of its streams, the query, and rows of the streams as lines of slt."""

    name: str
    head: str
    query: str
    rows: dict[str, list[str]]


@cache
def seedlings() -> tuple[Seedling, ...]:
    """Every slt case and every shipped query."""
    found = []
    for case in all_cases():
        head = case.text.removesuffix(case.query)
        found.append(Seedling(f"{case.file}: {case.name}", head, case.query, dict(case.data)))
    for path in sorted(QUERIES.rglob("*.cq")):
        found.append(Seedling(path.name, "", path.read_text(encoding="utf-8"), {}))
    return tuple(found)


def tokens(text: str) -> list[str]:
    """The text in pieces, with the white space."""
    return TOKEN.findall(text)


def mutated(seed: int) -> tuple[Seedling, str]:
    """A text from the tests, and its mutation."""
    rng = random.Random(f"mutated {seed}")
    source = rng.choice(seedlings())
    parts = tokens(source.query)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        parts = tokens("".join(rng.choice(CHANGES)(rng, parts)))
    return source, source.head + "".join(parts)


def _solid(parts: Sequence[str]) -> list[int]:
    return [n for n, part in enumerate(parts) if not part.isspace() and not part.startswith(("--", "/*"))]


def _place(rng: random.Random, parts: Sequence[str]) -> int:
    return rng.choice(_solid(parts) or [0]) if parts else 0


def _swap(rng: random.Random, parts: list[str]) -> list[str]:
    out = list(parts)
    if out:
        a, b = _place(rng, out), _place(rng, out)
        out[a], out[b] = out[b], out[a]
    return out


def _drop(rng: random.Random, parts: list[str]) -> list[str]:
    at = _place(rng, parts)
    return parts[:at] + parts[at + 1 :]


def _twice(rng: random.Random, parts: list[str]) -> list[str]:
    at = _place(rng, parts)
    return [*parts[: at + 1], " ", *parts[at:]]


def _spiced(rng: random.Random, parts: list[str]) -> list[str]:
    """One token replaced by something that is meaningful somewhere, or with that added beside it."""
    at = _place(rng, parts)
    return [*parts[:at], " ", rng.choice(SPICE), " ", *parts[at + rng.choice([0, 1, 1]) :]]


def _renamed(rng: random.Random, parts: list[str]) -> list[str]:
    """One word replaced by another word of the text."""
    words = [n for n, part in enumerate(parts) if WORD.match(part)]
    if not words:
        return parts
    at = rng.choice(words)
    return [*parts[:at], parts[rng.choice(words)], *parts[at + 1 :]]


def _clause(rng: random.Random, parts: Sequence[str]) -> tuple[int, int] | None:
    """The start and end of a clause."""
    starts = [n for n, part in enumerate(parts) if part.upper() in CLAUSES]
    if not starts:
        return None
    start = rng.choice(starts)
    depth = 0
    for n in range(start + 1, len(parts)):
        depth += (parts[n] in "([") - (parts[n] in ")]")
        if depth < 0 or (depth == 0 and (parts[n] == ";" or parts[n].upper() in CLAUSES)):
            return start, n
    return start, len(parts)


def _without_clause(rng: random.Random, parts: list[str]) -> list[str]:
    found = _clause(rng, parts)
    return parts[: found[0]] + parts[found[1] :] if found else parts


def _moved_clause(rng: random.Random, parts: list[str]) -> list[str]:
    """A clause moved or copied to another place."""
    found = _clause(rng, parts)
    if not found:
        return parts
    piece = [" ", *parts[found[0] : found[1]], " "]
    rest = parts[: found[0]] + parts[found[1] :] if rng.random() < 0.5 else parts
    at = _place(rng, rest) if rest else 0
    return [*rest[:at], *piece, *rest[at:]]


def _grafted(rng: random.Random, parts: list[str]) -> list[str]:
    """A clause of another text replacing one of this text."""
    other = tokens(rng.choice(seedlings()).query)
    mine, theirs = _clause(rng, parts), _clause(rng, other)
    if not mine or not theirs:
        return parts
    end = mine[rng.choice([0, 1])]
    return [*parts[: mine[0]], " ", *other[theirs[0] : theirs[1]], " ", *parts[end:]]


def _nested(rng: random.Random, parts: list[str]) -> list[str]:
    """A piece in parentheses, or a query around it."""
    at = _place(rng, parts)
    end = min(len(parts), at + rng.choice([1, 1, 3, 5, 9, 30]))
    before, after = rng.choice(
        [("(", ")"), ("(SELECT * FROM (", ") AS q)"), ("(SELECT ", ")"), ("COUNT(DISTINCT ", ")"),
         ("SUM(", ") OVER ()"),
         ("CASE WHEN ", " THEN 1 END"), ("EXISTS (", ")"), ("CAST(", " AS VARCHAR)"), ("[", "]"), ("UNNEST(", ")"),
         ("NOT ", ""), ("- ", ""), ("", " IS NULL"), ("", " IN (1, 2)"), ("", "::BIGINT"), ("", "[1]"), ("", ".x"),
         ("MAX(", ")"), ("COALESCE(", ", NULL)"), ("ABS(", ")"), ("LAG(", ") OVER (ORDER BY ts)")]
    )  # fmt: skip
    return [*parts[:at], before, *parts[at:end], after, *parts[end:]]


def _whole_around(rng: random.Random, parts: list[str]) -> list[str]:
    """A query around the last one of the text."""
    text = "".join(parts).rstrip().rstrip(";")
    head, found, last = text.rpartition(";")
    if rng.random() < 0.5:
        return [*head, found, f"SELECT * FROM ({last}) AS q"]
    tail = rng.choice(
        ["GROUP BY ALL", "ORDER BY 1", "LIMIT 2", "WHERE EXISTS (SELECT 1)", "UNION SELECT 1",
         "QUALIFY COUNT(*) OVER () > 1", "EXCEPT SELECT * FROM s", "INTERSECT ALL SELECT 1, 2"]
    )  # fmt: skip
    made = rng.choice(
        [f"WITH q AS ({last}) SELECT COUNT(*), q.* FROM q {tail}", f"{last} {tail}",
         f"SELECT * FROM ({last}) AS q {tail}", f"SELECT a.* FROM ({last}) AS a, ({last}) AS b {tail}"]
    )  # fmt: skip
    return [head, found, made]


CHANGES: tuple[Callable[[random.Random, list[str]], list[str]], ...] = (
    _swap, _drop, _twice, _spiced, _spiced, _renamed, _renamed, _without_clause, _without_clause, _moved_clause,
    _grafted, _grafted, _nested, _nested, _whole_around,
)  # fmt: skip


def said_of(seed: int, run: bool = True) -> tuple[str, str]:
    """How far the mutant of a seed got, and what is wrong with it; empty if nothing is."""
    source, text = mutated(seed)
    with watched(f"mutant {seed} of {source.name}", 90):
        try:
            return _tried(seed, source, text, run)
        except Exception as error:
            import traceback

            told = "".join(traceback.format_exception(error)[-6:])
            return "broken", f"mutant {seed} of {source.name}\n{text}\n{told}"


def _tried(seed: int, source: Seedling, text: str, run: bool) -> tuple[str, str]:
    try:
        made = Prepared(text)
    except CqError as refused:
        return "refused", _badly_refused(seed, refused, text)
    printed = print_script(parse(SourceText("q.cq", text)))
    if print_script(parse(SourceText("q.cq", printed))) != printed:
        return "printed", f"mutant {seed}: another text after printing\n{text}\n{printed}"
    if not run or not made.compiled.plan.outputs:
        return "bound", ""
    rng = random.Random(f"rows {seed}")
    rows = {n: _rows(rng, source, n, fields) for n, fields in made.fields.items()}
    made.give(rows)
    wanted = made.reference()
    way = Way(rng.choice([0, 2]), rng.choice([1, 3, 4096]), interpreted=True)
    try:
        got = made.native(way)
    except CompileError as refused:
        return "refused by native", _badly_refused(seed, refused, text)
    if not made.agree(got, way, wanted):
        return "differs", f"mutant {seed}, {way}: {got.difference(wanted)}\n{text}\n{rows}"
    return "run", ""


def _rows(rng: random.Random, source: Seedling, name: str, fields: Sequence[object]) -> list[tuple[object, ...]]:
    if name in source.rows:
        try:
            return [read_row(line, fields) for line in source.rows[name]][:30]  # type: ignore[arg-type]
        except Exception:  # the mutant has declared other columns
            pass
    return [tuple(random_value(rng, f.type, False) for f in fields) for _ in range(rng.choice([0, 1, 5]))]  # type: ignore[attr-defined]


def _badly_refused(seed: int, refused: CqError, text: str) -> str:
    """What is wrong with a refusal: no place, a code for bugs, an error that cannot be drawn."""
    said = str(refused)
    wrong = []
    if refused.code == "CQ0999":
        wrong.append("CQ0999")
    if len(said) > 20_000:
        wrong.append(f"{len(said)} characters")
    for d in getattr(refused, "diagnostics", ()):
        if not d.message:
            wrong.append("no message")
        if "Traceback" in d.message or "object at 0x" in said:
            wrong.append("a message of Python")
    return f"mutant {seed}: {', '.join(wrong)}\n{text}\n{said[:2000]}" if wrong else ""
