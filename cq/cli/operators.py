"""What `cq docs` says of signs and words between values. Those that are functions, as `+`, say it themselves."""

from __future__ import annotations

from cq.cli.entries import HelpEntry


def _operator(names: str, shape: str, doc: str, *examples: str) -> HelpEntry:
    return HelpEntry(tuple(names.split(", ")), shape, doc, examples, ())


OPERATORS: tuple[HelpEntry, ...] = (
    _operator(
        "||",
        "text || text, array || array",
        "The one behind the other; NULL where one of them is NULL, unlike CONCAT.",
        "'a' || 'b' = 'ab'",
        "[1] || [2, 3] = [1, 2, 3]",
        "('a' || NULL) IS NULL",
    ),
    _operator("//", "integer // integer, integer DIV integer", "The whole quotient, towards zero.", "7 // 2 = 3"),
    _operator(
        "&, |, <<, >>",
        "integer & integer, integer | integer, integer << places, integer >> places",
        "The bits that both have, those that one has, the bits moved up or down: BITAND, BITOR, SHIFTLEFT …",
        "(6 & 3) = 2",
        "(6 | 3) = 7",
        "1 << 3 = 8",
        "16 >> 2 = 4",
    ),
    _operator("~", "~integer, text ~ pattern", "All bits the other way round; of a text, as RLIKE.", "~5 = -6"),
    _operator(
        "~, !~, ~*, !~*",
        "text ~ pattern, text !~ pattern, text ~* pattern, text !~* pattern",
        "Whether the pattern matches somewhere, or does not; with a star in capitals and small letters alike.",
        "'Abc' ~ '^A'",
        "'abc' !~ '^A'",
        "'abc' ~* '^A'",
        "'abc' !~* 'x'",
    ),
    _operator(
        "like, ilike, ~~, !~~, ~~*, !~~*",
        "text [NOT] LIKE pattern [ESCAPE sign], text [NOT] ILIKE pattern, text LIKE ANY (pattern, …)",
        "Whether the whole text fits: % stands for any characters, _ for one. ILIKE takes capitals and small letters "
        "alike; ~~ is LIKE, ~~* ILIKE.",
        "'abc' LIKE 'a%'",
        "'abc' ILIKE 'A_c'",
        "'50%' LIKE '50!%' ESCAPE '!'",
        "'abc' LIKE ANY ('x%', 'a%')",
        "'abc' !~~ 'b%'",
    ),
    _operator(
        "glob",
        "text GLOB pattern",
        "Whether the whole text fits: * and ? as in names of files.",
        "'a.csv' GLOB '*.csv'",
    ),
    _operator(
        "similar to, similar",
        "text SIMILAR TO pattern",
        "Whether the whole text fits: LIKE with (a|b), [a-z] and repetitions.",
        "'abc' SIMILAR TO '(a|b)%'",
    ),
    _operator(
        "and, or, not",
        "x AND y, x OR y, NOT x",
        "NULL is what nobody knows: FALSE AND NULL is FALSE, TRUE OR NULL is TRUE, and the others with it are NULL.",
        "(NULL AND FALSE) = FALSE",
        "(NULL OR TRUE) = TRUE",
        "(NOT NULL) IS NULL",
    ),
    _operator(
        "is, isnull, notnull",
        "x IS [NOT] NULL, x IS [NOT] TRUE, x IS [NOT] FALSE, x IS [NOT] UNKNOWN",
        "Whether it is; TRUE or FALSE and never NULL.",
        "NULL IS NULL",
        "(NULL > 1) IS UNKNOWN",
        "(1 > 2) IS NOT TRUE",
    ),
    _operator(
        "is distinct from, distinct",
        "x IS [NOT] DISTINCT FROM y",
        "Whether they differ, where NULL equals NULL and nothing else.",
        "NULL IS NOT DISTINCT FROM NULL",
        "1 IS DISTINCT FROM NULL",
    ),
    _operator(
        "between",
        "x [NOT] BETWEEN a AND b, x BETWEEN SYMMETRIC a AND b",
        "Whether x lies from a to b, both of them included; SYMMETRIC also where a is the greater one.",
        "2 BETWEEN 1 AND 2",
        "2 BETWEEN SYMMETRIC 3 AND 1",
    ),
    _operator(
        "in, any, some",
        "x [NOT] IN (a, b, …), x [NOT] IN (SELECT …), x = ANY(array)",
        "Whether x equals one of them. NULL where none does and one of them is NULL.",
        "2 IN (1, 2, 3)",
        "2 NOT IN (1, 3)",
        "2 = ANY([1, 2, 3])",
        "(2 IN (1, NULL)) IS NULL",
    ),
    _operator(
        "exists",
        "[NOT] EXISTS (SELECT …)",
        "In WHERE: whether the query has a row.",
        "SELECT k FROM s WHERE EXISTS (SELECT 1 FROM s AS r WHERE r.k = s.k AND r.x > 1)",
    ),
    _operator(
        "[], [:]",
        "array[number], array[first:last], text[number]",
        "The element or character with this number, from 1, or from the end if it is negative; the elements from one "
        "number to another. See ARRAY_SLICE.",
        "[1, 2, 3][2] = 2",
        "[1, 2, 3][-1] = 3",
        "[1, 2, 3][2:3] = [2, 3]",
        "'ab'[1] = 'a'",
    ),
    _operator(
        "->, ->>",
        "json -> 'name', json ->> 'name', json ->> number",
        "What an object has under a name, or an array at a place from 0, in a text of JSON: -> as JSON, ->> as text.",
        """'{"a": {"b": 1}}' -> 'a' ->> 'b' = '1'""",
    ),
    _operator("::", "x::TYPE", "As CAST(x AS TYPE).", "'12'::BIGINT = 12"),
    _operator(
        "at time zone",
        "time AT TIME ZONE 'zone'",
        "Of a TIMESTAMP, the instant at which clocks of the zone show it; of an instant, what they show.",
        "TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin' = TIMESTAMP_LTZ '2024-07-01 10:00:00+00:00'",
    ),
    _operator(
        "=>",
        "NAME => value",
        "In a call: the argument of this name.",
        "SELECT k FROM TUMBLE(s, ts, SIZE => INTERVAL '1' MINUTE)",
    ),
)
