"""The `cq docs` entries of signs and words between values. Those that are functions, such as `+`, have their own."""

from __future__ import annotations

from cq.cli.entries import HelpEntry


def _operator(names: str, shape: str, doc: str, *examples: str) -> HelpEntry:
    return HelpEntry(tuple(names.split(", ")), shape, doc, examples, ())


OPERATORS: tuple[HelpEntry, ...] = (
    _operator(
        "||",
        "text || text, array || array",
        "Joins two texts or arrays; NULL if either is NULL, unlike CONCAT.",
        "'a' || 'b' = 'ab'",
        "[1] || [2, 3] = [1, 2, 3]",
        "('a' || NULL) IS NULL",
    ),
    _operator(
        "//", "integer // integer, integer DIV integer", "The integer quotient, truncated towards zero.", "7 // 2 = 3"
    ),
    _operator(
        "&, |, <<, >>",
        "integer & integer, integer | integer, integer << places, integer >> places",
        "Bitwise AND and OR, shift left and right: BITAND, BITOR, SHIFTLEFT …",
        "(6 & 3) = 2",
        "(6 | 3) = 7",
        "1 << 3 = 8",
        "16 >> 2 = 4",
    ),
    _operator("~", "~integer, text ~ pattern", "Bitwise NOT; for a text, the same as RLIKE.", "~5 = -6"),
    _operator(
        "~, !~, ~*, !~*",
        "text ~ pattern, text !~ pattern, text ~* pattern, text !~* pattern",
        "Whether the pattern matches, or does not match, somewhere; with a star regardless of case.",
        "'Abc' ~ '^A'",
        "'abc' !~ '^A'",
        "'abc' ~* '^A'",
        "'abc' !~* 'x'",
    ),
    _operator(
        "like, ilike, ~~, !~~, ~~*, !~~*",
        "text [NOT] LIKE pattern [ESCAPE sign], text [NOT] ILIKE pattern, text LIKE ANY (pattern, …)",
        "Whether the whole text matches: % stands for any characters, _ for one. ILIKE ignores case; ~~ is "
        "LIKE, ~~* ILIKE.",
        "'abc' LIKE 'a%'",
        "'abc' ILIKE 'A_c'",
        "'50%' LIKE '50!%' ESCAPE '!'",
        "'abc' LIKE ANY ('x%', 'a%')",
        "'abc' !~~ 'b%'",
    ),
    _operator(
        "glob",
        "text GLOB pattern",
        "Whether the whole text matches: * and ? as in file names.",
        "'a.csv' GLOB '*.csv'",
    ),
    _operator(
        "similar to, similar",
        "text SIMILAR TO pattern",
        "Whether the whole text matches: LIKE with (a|b), [a-z] and repetitions.",
        "'abc' SIMILAR TO '(a|b)%'",
    ),
    _operator(
        "and, or, not",
        "x AND y, x OR y, NOT x",
        "NULL means unknown: FALSE AND NULL is FALSE, TRUE OR NULL is TRUE, and all other results with NULL are NULL.",
        "(NULL AND FALSE) = FALSE",
        "(NULL OR TRUE) = TRUE",
        "(NOT NULL) IS NULL",
    ),
    _operator(
        "is, isnull, notnull",
        "x IS [NOT] NULL, x IS [NOT] TRUE, x IS [NOT] FALSE, x IS [NOT] UNKNOWN",
        "Tests for one of these values; never NULL.",
        "NULL IS NULL",
        "(NULL > 1) IS UNKNOWN",
        "(1 > 2) IS NOT TRUE",
    ),
    _operator(
        "is distinct from, distinct",
        "x IS [NOT] DISTINCT FROM y",
        "Whether they differ; NULL equals only NULL.",
        "NULL IS NOT DISTINCT FROM NULL",
        "1 IS DISTINCT FROM NULL",
    ),
    _operator(
        "between",
        "x [NOT] BETWEEN a AND b, x BETWEEN SYMMETRIC a AND b",
        "Whether x is between a and b, inclusive; with SYMMETRIC also if a is greater than b.",
        "2 BETWEEN 1 AND 2",
        "2 BETWEEN SYMMETRIC 3 AND 1",
    ),
    _operator(
        "in, any, some",
        "x [NOT] IN (a, b, …), x [NOT] IN (SELECT …), x = ANY(array)",
        "Whether x equals any of them; NULL if none is equal and one is NULL.",
        "2 IN (1, 2, 3)",
        "2 NOT IN (1, 3)",
        "2 = ANY([1, 2, 3])",
        "(2 IN (1, NULL)) IS NULL",
    ),
    _operator(
        "exists",
        "[NOT] EXISTS (SELECT …)",
        "In WHERE: whether the query returns a row.",
        "SELECT k FROM s WHERE EXISTS (SELECT 1 FROM s AS r WHERE r.k = s.k AND r.x > 1)",
    ),
    _operator(
        "[], [:]",
        "array[number], array[first:last], text[number]",
        "The element or character at this position, from 1, or from the end if negative; or the slice between "
        "two positions. See ARRAY_SLICE.",
        "[1, 2, 3][2] = 2",
        "[1, 2, 3][-1] = 3",
        "[1, 2, 3][2:3] = [2, 3]",
        "'ab'[1] = 'a'",
    ),
    _operator(
        "->, ->>",
        "json -> 'name', json ->> 'name', json ->> number",
        "The value of a field, or of an array element counted from 0, in a JSON text: -> as JSON, ->> as text.",
        """'{"a": {"b": 1}}' -> 'a' ->> 'b' = '1'""",
    ),
    _operator("::", "x::TYPE", "The same as CAST(x AS TYPE).", "'12'::BIGINT = 12"),
    _operator(
        "at time zone",
        "time AT TIME ZONE 'zone'",
        "For a TIMESTAMP, the instant at which clocks in the zone show it; for an instant, the time they show.",
        "TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin' = TIMESTAMP_LTZ '2024-07-01 10:00:00+00:00'",
    ),
    _operator(
        "=>",
        "NAME => value",
        "In a call: the argument with this name.",
        "SELECT k FROM TUMBLE(s, ts, SIZE => INTERVAL '1' MINUTE)",
    ),
)
