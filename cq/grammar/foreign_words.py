"""Words that begin clauses of other systems: keywords if their surroundings show it, names everywhere else.

`TIMESTAMP BY`, `System.Timestamp()` and `TOP 5` of Azure Stream Analytics, `LATERAL VIEW`, `WITH ROLLUP` and `DIV` of
Spark, `MINUS` of Oracle, `PIVOT` and `UNPIVOT` in FROM and, for DuckDB, as queries, `WINDOW TUMBLING (…)` and `WITHIN 5
MINUTES` of ksqlDB, `FLOOR(ts TO HOUR)` of Calcite, `SEPARATOR` of MySQL, `SIMILAR TO` of PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from cq.grammar.intervals import interval_unit

ENDS_A_VALUE = (")", "]", "END", "STRING")  # and a name or a number


class ForeignWord(Protocol):
    """A token, as far as it matters here. kinds: known for earlier tokens, raw for later ones."""

    kinds: tuple[str, ...]
    text: str

    @property
    def word(self) -> str: ...


def foreign_kinds(tokens: Sequence[ForeignWord], position: int, reserved: frozenset[str]) -> tuple[str, ...] | None:
    """The kinds of the word at `position` in a clause of another system; None if it is not in one."""
    find = _WORDS.get(tokens[position].word)
    if find is not None:
        return find(tokens, position)
    return _div(tokens, position, reserved) if tokens[position].word == "DIV" else None


def _at(tokens: Sequence[ForeignWord], position: int) -> str:
    return tokens[position].word if 0 <= position < len(tokens) else ""


def _is_number(tokens: Sequence[ForeignWord], position: int) -> bool:
    return 0 <= position < len(tokens) and tokens[position].kinds == ("NUMBER",)


def _ends_a_value(tokens: Sequence[ForeignWord], position: int) -> bool:
    """Whether a value may end with the token at `position`."""
    if position < 0:
        return False
    token = tokens[position]
    return (
        token.word in ENDS_A_VALUE or token.kinds[0] in ("NUMBER", "BINARY", "PARAMETER") or token.kinds[-1] == "NAME"
    )


def _timestamp(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    """`FROM s TIMESTAMP BY ts`, and the last word of `System.Timestamp()`."""
    if (_at(tokens, position - 2), _at(tokens, position - 1)) == ("SYSTEM", "."):
        return ("SYSTEM_TIMESTAMP",) if _at(tokens, position + 1) == "(" or _is_azure(tokens) else None
    return ("TIMESTAMP_BY",) if _at(tokens, position + 1) == "BY" else None


def _is_azure(tokens: Sequence[ForeignWord]) -> bool:
    """Whether the text has a TIMESTAMP BY: only then is `System.Timestamp` not a column."""
    return any(t.word == "TIMESTAMP" and _at(tokens, n + 1) == "BY" for n, t in enumerate(tokens))


def _lateral(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    return ("LATERAL_VIEW",) if _at(tokens, position + 1) == "VIEW" else None


def _outer(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    return ("OUTER_VIEW",) if _at(tokens, position - 1) == "VIEW" else None


def _window(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    made = _at(tokens, position + 1) in ("TUMBLING", "HOPPING", "SESSION") and _at(tokens, position + 2) == "("
    return ("KSQL_WINDOW",) if made else None


def _within(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    counted = _is_number(tokens, position + 1) or (
        _at(tokens, position + 1) == "(" and _is_number(tokens, position + 2)
    )
    return ("KSQL_WITHIN",) if counted else None


def _grace(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    behind = _at(tokens, position - 1) not in ("(", ",") and _at(tokens, position + 1) == "PERIOD"
    return ("GRACE",) if behind and _is_number(tokens, position + 2) else None


def _top(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    first = _at(tokens, position - 1) in ("SELECT", "DISTINCT")
    counted = _is_number(tokens, position + 1) or (
        _at(tokens, position + 1) == "(" and _is_number(tokens, position + 2) and _at(tokens, position + 3) == ")"
    )
    if not first or not counted:
        return None
    call = _at(tokens, position + 1) == "(" and _at(tokens, position + 4) in (",", "FROM", "AS", ";", "")
    return None if call else ("TOP",)  # `SELECT top(5) FROM s` calls a function


def _with(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    if _at(tokens, position + 1) == "TIES" and _at(tokens, position - 1) in ("ROW", "ROWS"):
        return ("WITH_TIES",)
    named = _at(tokens, position + 2) in ("AS", "(")  # `WITH cube AS (SELECT …)`
    return ("WITH_SETS",) if _at(tokens, position + 1) in ("ROLLUP", "CUBE") and not named else None


def _to(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    unit = tokens[position + 1].text if position + 1 < len(tokens) else ""
    if tokens[position - 1].kinds == ("UNIT",) or _at(tokens, position + 2) != ")":
        return None
    return ("TO_UNIT",) if interval_unit(unit) is not None else None


def _separator(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    behind = _at(tokens, position - 1) not in ("(", ",", ".") and _at(tokens, position + 1) == "STRING"
    return ("SEPARATOR",) if behind else None


def _div(tokens: Sequence[ForeignWord], position: int, reserved: frozenset[str]) -> tuple[str, ...] | None:
    """`a DIV 2`: between two values, unlike in `div(a, 2)` and `AS div`."""
    after = tokens[position + 1] if position + 1 < len(tokens) else None
    if after is None or not _ends_a_value(tokens, position - 1) or _at(tokens, position - 1) == "AS":
        return None
    value = after.kinds[0] in ("NUMBER", "NAME") or (after.kinds[0] == "WORD" and after.word not in reserved)
    return ("DIV", "NAME") if value or after.word == "(" else None


def _similar(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    return ("SIMILAR",) if _at(tokens, position + 1) == "TO" else None


def _minus(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    """`SELECT … MINUS SELECT …`."""
    behind = position + 2 if _at(tokens, position + 1) in ("ALL", "DISTINCT") else position + 1
    while _at(tokens, behind) == "(":
        behind += 1
    return ("_MINUS_SET",) if _at(tokens, behind) in ("SELECT", "VALUES") and position > 0 else None


def _pivot(tokens: Sequence[ForeignWord], position: int) -> tuple[str, ...] | None:
    """`s PIVOT (SUM(q) FOR k IN (…))` in FROM, and `PIVOT s ON k IN (…) USING SUM(q)` where a query begins."""
    word, before, behind = tokens[position].word, _at(tokens, position - 1), _at(tokens, position + 1)
    if before in ("", ";", "(", "AS"):
        words = _outside(tokens, position + 1)
        by = words[words.index("ON") : words.index("USING")] if {"ON", "USING"} <= set(words) else []
        named = "IN" in by if word == "PIVOT" else {"ON", "INTO", "VALUE"} <= set(words)
        return (f"{word}_QUERY", "NAME") if named else None
    options = behind in ("INCLUDE", "EXCLUDE") and _at(tokens, position + 2) == "NULLS"
    listed = behind == "(" and "FOR" in _outside(tokens, position + 2)
    return (word, "NAME") if before not in ("FROM", "JOIN", ",") and (listed or options) else None


def _outside(tokens: Sequence[ForeignWord], position: int) -> list[str]:
    """The words from `position` to the end of the query there, without those in parentheses."""
    depth, words = 0, list[str]()
    for n in range(position, len(tokens)):
        word = _at(tokens, n)
        depth -= word == ")"
        if depth < 0 or word == ";":
            break
        if depth == 0:
            words.append(word)
        depth += word == "("
    return words


_WORDS: dict[str, Callable[[Sequence[ForeignWord], int], tuple[str, ...] | None]] = {
    "GRACE": _grace,
    "LATERAL": _lateral,
    "MINUS": _minus,
    "OUTER": _outer,
    "PIVOT": _pivot,
    "SEPARATOR": _separator,
    "SIMILAR": _similar,
    "TIMESTAMP": _timestamp,
    "TO": _to,
    "TOP": _top,
    "UNPIVOT": _pivot,
    "WINDOW": _window,
    "WITH": _with,
    "WITHIN": _within,
}
