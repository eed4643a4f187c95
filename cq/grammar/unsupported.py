"""Syntax of other systems that cq does not support: phrases, the reason in words, the nearest form that works."""

from __future__ import annotations

from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Phrase:
    """Consecutive words and signs, what to say about them, and the way out.

    anywhere: it explains any error after it.
    """

    words: tuple[str, ...]
    message: str
    help: str
    anywhere: bool = False


def _phrases(message: str, help: str, *texts: str) -> list[Phrase]:
    return [Phrase(tuple(text.split()), message.replace("{}", text.removesuffix(" (")), help) for text in texts]


_FUNCTION = "functions of your own are written in Python: @cq.udf, then cq.sql(text, functions=[f])"
_STATE = "write it in a trigger: CREATE TRIGGER g AFTER INSERT ON s FOR EACH ROW BEGIN ATOMIC … END"
_EACH = "name rows by an array: UPDATE t SET x = u.v FROM UNNEST(new.keys, new.vals) AS u(k, v) WHERE t.key = u.k"
_VALUE = "write the value where it is used: an expression, or (SELECT x FROM t WHERE key = new.k)"
_UPSERT = "write INSERT INTO t VALUES (…) ON CONFLICT DO UPDATE SET x = excluded.x"
_UPSERT_IN_ONE = f"in a trigger, {_UPSERT}"
_DELETE = "delete rows by their key: DELETE FROM t WHERE key = new.k"
_DELETE_IN_ONE = "in a trigger, rows are deleted by their key: DELETE FROM t WHERE key = new.k"
_UNIQUE = (
    "only the PRIMARY KEY of a table is unique: keep these values in a table of their own, as its key, or remove it"
)
_KEPT = "write INSERT INTO t VALUES (…) ON CONFLICT DO NOTHING"
_ATOMIC = "remove it: a body is a transaction, which takes effect when the event is accepted"
_IF = "write IF condition THEN … ELSEIF condition THEN … ELSE … END IF"
_OR_UPDATE = "write ON CONFLICT DO UPDATE SET x = excluded.x"
_NAMED = "remove it: WHERE names each row by its key, and several rows are changed in the order of their list or array"
_REJECT = "reject the event, which leaves no trace: SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'reason'"
_SAMPLE = "keep the rows of some keys: WHERE MD5(CAST(k AS VARCHAR)) < '1a' keeps one key in ten"
_REFERENCE = "test it in a trigger: IF NOT EXISTS (SELECT 1 FROM t WHERE key = new.k) THEN RAISE 'no row'; END IF"
_ANY = "list the values: x IN (1, 2, 3), or x > GREATEST(1, 2, 3); of an array, ARRAY_CONTAINS(items, x)"
_PIVOT = "list the values, which name the columns: FROM s PIVOT (SUM(x) FOR k IN ('a', 'b'))"
_UNPIVOT = "list the columns: FROM s UNPIVOT (value FOR name IN (a, b))"
_ZONES = "write ts AT TIME ZONE 'Europe/Berlin', or a parameter: ts AT TIME ZONE :zone"
_FILES = "read a file by its path, FROM 't.csv'; write one by CREATE SINK o WITH (path = 'o.csv'); INSERT INTO o …"
_RECURSIVE = (
    "leave RECURSIVE out if no query of WITH reads itself; numbers come from FROM GENERATE_SERIES(1, 10) AS t(n); "
    "otherwise write a query for each step, each reading the one before, and combine them with UNION ALL"
)
_NO_CATALOG = "there is no catalog: edit or remove its CREATE statement; in the shell, a new one replaces it"

# Recognised at the start of a statement.
STATEMENTS: tuple[Phrase, ...] = (
    *_phrases("{} is only allowed in a trigger", _STATE, "DELETE", "UPDATE"),
    *_phrases("{} is not a statement of cq", _UPSERT_IN_ONE, "MERGE", "UPSERT"),
    *_phrases("{} is not a statement of cq", _DELETE_IN_ONE, "TRUNCATE"),
    *_phrases("{} is not a statement of cq", _NO_CATALOG, "ALTER", "DROP", "USE", "GRANT", "REVOKE", "REFRESH"),
    *_phrases(
        "{} is not a statement of cq", "cq schema FILE shows columns, cq explain shows plans", "SHOW", "DESCRIBE"
    ),
    *_phrases("{} is not a statement of cq", "write SELECT COUNT(*), MIN(x), MAX(x) FROM s", "SUMMARIZE"),
    *_phrases("this form of {} is not supported", _PIVOT, "PIVOT"),
    *_phrases("this form of {} is not supported", _UNPIVOT, "UNPIVOT"),
    *_phrases(
        "{} is not a statement of cq",
        "remove it: each row is processed once, in order of arrival",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
    ),
    *_phrases("{} is not a statement of cq", _FILES, "COPY", "LOAD"),
    *_phrases(
        "{} is not a statement of cq", "write SET name = value, or a parameter: :name", "DECLARE", "LET", "PRAGMA"
    ),
    *_phrases("{} is not a statement of cq", "remove it: blocks are only allowed in triggers", "END"),
    *_phrases("{} is not a statement of cq", _FUNCTION, "CALL", "EXECUTE"),
    *_phrases("{} is not a statement of cq", "write SELECT * FROM s", "PRINT"),
    *_phrases(
        "{} is not supported",
        _FUNCTION,
        *("CREATE FUNCTION", "CREATE AGGREGATE", "CREATE PROCEDURE", "CREATE MACRO"),
        *("CREATE TEMPORARY FUNCTION", "CREATE TEMPORARY SYSTEM", "CREATE OR REPLACE FUNCTION"),
    ),
    *_phrases(
        "{} is not supported",
        "remove it: state is always indexed by its key",
        "CREATE INDEX",
        "CREATE UNIQUE",
    ),
    *_phrases("{} is not supported", "arrays need no type: BIGINT ARRAY", "CREATE TYPE", "CREATE DOMAIN"),
    *_phrases(
        "{} is not supported", _NO_CATALOG, "CREATE DATABASE", "CREATE SCHEMA", "CREATE CATALOG", "CREATE SEQUENCE"
    ),
    *_phrases(
        "{} is not supported",
        "remove this word: definitions last for one run",
        *("CREATE EXTERNAL", "CREATE GLOBAL", "CREATE LOCAL", "CREATE UNLOGGED"),
    ),
    *_phrases(
        "{} is not supported",
        "write CREATE VIEW, and INSERT INTO a sink to store the result",
        "CREATE RECURSIVE",
    ),
)

# Recognised at the error: the phrase contains the token at fault, or ends right before it.
CLAUSES: tuple[Phrase, ...] = (
    Phrase(
        ("MATCH_RECOGNIZE",),
        "MATCH_RECOGNIZE is not supported yet",
        "simple patterns can be written with LAG(x) OVER (…) and conditions on it",
        anywhere=True,
    ),
    Phrase(
        (")", "FILTER", "WHERE"),
        "FILTER takes its condition in parentheses",
        "write FILTER (WHERE condition)",
        anywhere=True,
    ),
    *_phrases("WITH RECURSIVE is not supported", _RECURSIVE, "WITH RECURSIVE"),
    *_phrases("a time zone is a constant", _ZONES, "AT TIME ZONE"),
    *_phrases(
        "{} is not an operator of cq",
        "write x RLIKE '^(a|b).*$', x ILIKE 'a%' or STARTS_WITH(x, 'a')",
        "STARTS WITH",
    ),
    *_phrases("{} takes a literal pattern", "write x GLOB 'a*', or x RLIKE '^(a|b).*$'", "GLOB"),
    *_phrases(
        "{} is not supported",
        'remove it: text is compared by its UTF-8 bytes, as by COLLATE "C"; LOWER(x) = LOWER(y) ignores case',
        "COLLATE",
    ),
    *_phrases("{} is not an operator of cq", "write a.start < b.end AND b.start < a.end", "OVERLAPS"),
    *_phrases("{} is not an operator of cq", "write a <> b, or BITXOR(a, b) of numbers", "XOR"),
    Phrase(("*", "*"), "** is not an operator of cq", "write POWER(x, y)"),
    *_phrases("{} is not supported", "write BETWEEN a AND b", "BETWEEN ASYMMETRIC"),
    *_phrases(
        "{} is not supported here",
        "write DATE_TRUNC('hour', ts), plus INTERVAL '1' HOUR for the end",
        *(f"TO {unit}" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")),
    ),
    *_phrases("{} is not supported", "write BIGINT, or DECIMAL(18, 0)", "UNSIGNED"),
    *_phrases("{} is not an operator of cq", "write a % b", "MOD"),
    *_phrases("INSERT OVERWRITE is not supported", "write INSERT INTO; a sink starts empty", "INSERT OVERWRITE"),
    *_phrases("SELECT TOP takes a number", "write SELECT TOP 10 …, or LIMIT n at the end", "SELECT TOP"),
    *_phrases("{} is not supported", "remove it: nothing else changes the rows", "FOR UPDATE"),
    *_phrases("{} is not a statement", "cq explain --analyze runs the query and shows what it did", "EXPLAIN ANALYZE"),
    *_phrases("{} is not a statement", "write EXPLAIN or EXPLAIN LOGICAL", "EXPLAIN PLAN", "EXPLAIN EXTENDED"),
    *_phrases(
        "{} is not supported here", "give the key where it is used: GROUP BY, OVER (PARTITION BY …)", "PARTITIONED BY"
    ),
    Phrase(("PIVOT", "("), "this form of PIVOT is not supported", _PIVOT, anywhere=True),
    Phrase(("UNPIVOT", "("), "this form of UNPIVOT is not supported", _UNPIVOT, anywhere=True),
    *_phrases("this form of {} is not supported", _PIVOT, "PIVOT"),
    *_phrases("this form of {} is not supported", _UNPIVOT, "UNPIVOT"),
    *_phrases("{} is not a number of rows", "remove it: without LIMIT every row is given", "LIMIT ALL"),
    *_phrases("{} is not supported", _SAMPLE, "TABLESAMPLE", "TABLESAMPLE (", "USING SAMPLE"),
    *_phrases("{} is not supported", "remove it: a sink receives every row", "ON DUPLICATE"),
    *_phrases("{} types are not supported yet", "give each key a column of its own", "MAP"),
    *_phrases("{} is not supported", _UNIQUE, "UNIQUE"),
    *_phrases("{} is not supported", _REFERENCE, "REFERENCES", "FOREIGN KEY"),
    *_phrases("{} is not supported", _UPSERT, "REPLACE INTO", "INSERT OR REPLACE"),
    *_phrases("{} is not supported", _KEPT, "INSERT OR IGNORE", "INSERT IGNORE"),
    *_phrases("{} is not supported", "write a separate SELECT", "RETURNING"),
    *_phrases(
        "{} is not supported", "the order inside a key: OVER (PARTITION BY … ORDER BY …)", "SORT BY", "CLUSTER BY"
    ),
    *_phrases("{} is not supported", "rows are routed by the keys of the operators", "DISTRIBUTE BY"),
    *_phrases(
        "{} is the syntax of another system",
        "write WINDOW TUMBLING (SIZE 1 HOUR) between FROM and GROUP BY, or GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
        *("WINDOW TUMBLING", "WINDOW HOPPING", "WINDOW SESSION", "TUMBLING (", "HOPPING ("),
    ),
    *_phrases("WITHIN comes before ON", "write JOIN b WITHIN 5 MINUTES ON a.k = b.k", "WITHIN"),
    *_phrases(
        "{} is the syntax of another system", "set the delay in WATERMARK FOR ts AS ts - INTERVAL …", "GRACE PERIOD"
    ),
    *_phrases(
        "{} triggers are not supported",
        "write AFTER INSERT ON the stream, or for changes of a table AFTER INSERT ON t_changes … WHEN (new.op = '-D')",
        *("BEFORE INSERT", "AFTER UPDATE", "AFTER DELETE", "INSTEAD OF"),
    ),
    *_phrases("{} triggers are not supported", "write FOR EACH ROW, or leave it out", "FOR EACH STATEMENT"),
)

# Recognised where a statement of a trigger begins.
BODY_STATEMENTS: tuple[Phrase, ...] = (
    *_phrases("{} is not supported in a trigger", _EACH, "WHILE", "FOR"),
    *_phrases("{} is not supported in a trigger", _VALUE, "DECLARE", "SET"),
    *_phrases("{} is not supported in a trigger", _UPSERT, "MERGE", "UPSERT"),
    *_phrases("{} is not supported in a trigger", _DELETE, "TRUNCATE"),
    *_phrases("{} is not supported in a trigger", _REJECT, "ROLLBACK"),
    *_phrases("{} is not supported in a trigger", _ATOMIC, "COMMIT", "START", "SAVEPOINT"),
    *_phrases("{} is not a statement of a trigger", _IF, "CASE"),
)

# Recognised at the error, in a trigger, after the one of these words that begins the statement or its query.
BODIES: tuple[tuple[tuple[str, ...], Phrase], ...] = (
    (("INSERT", "SELECT"), Phrase(("ON", "DUPLICATE"), "ON DUPLICATE is not supported in a trigger", _OR_UPDATE)),
    (("SELECT",), Phrase(("INTO",), "SELECT … INTO is not supported in a trigger", _VALUE)),
    (("UPDATE", "DELETE"), Phrase(("LIMIT",), "UPDATE and DELETE have no LIMIT", _NAMED)),
    (("UPDATE", "DELETE"), Phrase(("ORDER", "BY"), "UPDATE and DELETE have no ORDER BY", _NAMED)),
)

FUNCTION_WAYS = (
    "cq functions lists all functions, cq docs NAME explains one; one of your own is written in Python: @cq.udf, then "
    "cq.sql(text, functions=[f])"
)
_BETWEEN = "subtract: a - b is an INTERVAL, and TIMESTAMPDIFF(SECOND, b, a) a number"
_LATER = "add an interval: ts + INTERVAL '1' DAY"
_TIME_OF = "write TO_TIMESTAMP(text, 'dd.MM.yyyy HH:mm'), or TIMESTAMP_SECONDS(n) or TIMESTAMP_MILLIS(n) of a number"
_BUCKET = "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) … GROUP BY window_start, or DATE_TRUNC('hour', ts)"
_FIELDS = "structs and maps are not supported: give each field a column of its own"
_JSON = "take values out: x ->> 'a', JSON_VALUE(x, '$.a.b[0]'); or give each field a column of its own"
_UNNESTED = "use UNNEST in FROM: FROM s, UNNEST(s.items) AS u(item)"
GATHERED = (
    "take the elements as rows: SELECT k, ARRAY_AGG(x + 1) AS xs FROM s, UNNEST(s.items) AS u(x) GROUP BY k; "
    "rows without elements stay with LEFT JOIN UNNEST(s.items) AS u(x) ON TRUE"
)
SAME_PLACE = "take the element of another array by its position: UNNEST(s.a) WITH ORDINALITY AS u(x, i), then s.b[i]"

# Functions of other systems by name, and what does the same here.
ELSEWHERE: dict[str, str] = {
    "std": "write STDDEV(x)",
    "collect": "write ARRAY_AGG(x) FILTER (WHERE x IS NOT NULL)",
    "slice": "write ARRAY_SLICE(xs, first, last)",
    "total": "write SUM(x)",
    "raise": "RAISE is a statement of a trigger, which rejects the event: IF condition THEN RAISE 'reason'; END IF",
    "columns": "name the columns, or leave some out: * EXCLUDE (a, b)",
    **dict.fromkeys(["rollup", "cube"], "it stands in GROUP BY: GROUP BY ROLLUP(a, b)"),
    **dict.fromkeys(["any", "all", "any_match"], _ANY),
    "timebucket": _BUCKET,
    **dict.fromkeys(["row", "struct", "named_struct", "struct_pack", "map", "map_from_entries"], _FIELDS),
    **dict.fromkeys(["json_query", "json_extract"], "write GET_JSON_OBJECT(x, '$.a'): the value as text"),
    "json_exists": "write GET_JSON_OBJECT(x, '$.a') IS NOT NULL",
    **dict.fromkeys(["from_json", "parse_json", "json_tuple"], _JSON),
    **dict.fromkeys(["json_keys", "json_object_keys", "json_each", "json_type", "json_contains"], _JSON),
    **dict.fromkeys(["explode", "posexplode", "explode_outer", "flatten"], _UNNESTED),
    **dict.fromkeys([f"list_{f}" for f in ("transform", "apply", "filter", "reduce")], GATHERED),
    **dict.fromkeys([f"array_{f}" for f in ("transform", "apply", "filter", "reduce")], GATHERED),
    **dict.fromkeys(["transform", "filter", "reduce", "aggregate"], GATHERED),
    "is_null": "write x IS NULL",
    "is_not_null": "write x IS NOT NULL",
    **dict.fromkeys(["convert", "try_convert", "decimal"], "write CAST(x AS T), or TRY_CAST(x AS T)"),
    **dict.fromkeys(["to_number", "to_decimal"], "write CAST(x AS DECIMAL(18, 2))"),
    "hash": "write MD5(x) or SHA256(x)",
    "sha2": "write SHA256(x)",
    "cot": "write 1 / TAN(x)",
    "add_days": _LATER,
    "day_of_week": "write DAYOFWEEK(ts): 1 is Sunday; WEEKDAY(ts): 0 is Monday; ISODOW(ts): 1 is Monday",
    "current_watermark": "expressions cannot read the watermark; for late rows see docs/language.md",
    **dict.fromkeys(["timestamp_diff", "age"], _BETWEEN),
    **dict.fromkeys(["format_datetime"], "write DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm')"),
    "regexp_instr": "if it matches, write LENGTH(REGEXP_EXTRACT(x, '(?s)^(.*?)pattern', 1)) + 1",
    **dict.fromkeys(
        ["regexp_split_to_table", "regexp_split_to_array"],
        "replace, then split: SPLIT(REGEXP_REPLACE(x, 'p', ','), ',')",
    ),
    **dict.fromkeys(["datetime", "parse_timestamp", "stringtotimestamp"], _TIME_OF),
    **dict.fromkeys(["sum_if", "sumif"], "write SUM(x) FILTER (WHERE condition)"),
    "unnest": _UNNESTED,
}
