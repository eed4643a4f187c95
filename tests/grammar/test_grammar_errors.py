"""Syntax errors as users see them. tests/golden/syntax/*.txt hold texts and pictures; `pytest --update` writes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cq.errors import CODES, CompileError, SourceText, printable
from cq.grammar.parser import parse
from cq.grammar.unsupported import BODY_STATEMENTS, CLAUSES, STATEMENTS

CASES: dict[str, list[str]] = {
    "commas": [
        "SELECT a b c FROM t",
        "SELECT a, b,",
        "CREATE STREAM s (\n  id BIGINT\n  name VARCHAR\n)",
        "CREATE STREAM s (id BIGINT, name VARCHAR,)",
        "CREATE SINK k WITH (path = 'x' format = 'csv')",
        "SELECT a FROM t LIMIT 5, 10, 15",
    ],
    "misspelt": [
        "SELCT a FROM t",
        "SELECT a FORM t",
        "SELECT a FROM t WEHRE a > 1",
        "SELECT a FROM t GRUOP BY a",
        "SELECT a FROM t EMIT CHANGE",
        "CRATE STREAM s (a INT)",
        "CREATE STRAEM s (a INT)",
        "CREATE STREAM s (ts TIMESTAMP, WATERMRK FOR ts)",
    ],
    "order_of_clauses": [
        "SELECT a FROM t GROUP BY a WHERE a > 1",
        "SELECT a FROM t LIMIT 10 ORDER BY a",
        "SELECT a\nFROM t\nEMIT CHANGES\nORDER BY a",
        "SELECT a FROM t WHERE a = 1 WHERE b = 2",
        "SELECT a FROM t\nSELECT b FROM u",
    ],
    "never_closed": [
        "SELECT a FROM t WHERE b = 'x",
        "SELECT a FROM t WHERE b = 'x\nAND c = 'y'",
        'SELECT "a FROM t',
        "SELECT a /* why FROM t",
        "SELECT COUNT(a FROM t",
        "SELECT f(a, (b + c)",
        "SELECT a) FROM t",
        "SELECT CASE WHEN a THEN b FROM t",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN UPDATE x SET a = 1;",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC IF new.n > 1 THEN DELETE FROM a WHERE k = 1; END;",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF n = 1 THEN DELETE FROM a WHERE k = 1; END; SELECT 1 FROM s",
        "CREATE TRIGGER g AFTER INSERT ON s IF n = 1 THEN DELETE FROM a WHERE k = 1; END IF",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF n = 1 THEN RAISE 'x'; END; DELETE FROM a WHERE k = 1; END",
    ],
    "words_and_quotes": [
        "SELECT order, a FROM t",
        "SELECT a AS end FROM t",
        "CREATE STREAM s (a INT, group VARCHAR)",
        "SELECT a AS 'total' FROM t",
        "SELECT a FROM rates.csv",
        "SELECT a FROM t WHERE b = “x”",
        "SELECT a FROM t WHERE b = ‘x’",
    ],
    "signs": [
        "SELECT 100L FROM t",
        "SELECT a FROM t WHERE !a",
        "SELECT a FROM t WHERE a && b",
        "SELECT a − b FROM t",
        "SELECT 12abc FROM t",
        "SELECT a | b & 3 FROM t",
        "SELECT a FROM t WHERE b = ?",
        "SELECT a.b.* FROM t",
        "SELECT {'x': a, 'y': b} FROM t",
        "SELECT a FROM t WHERE b = {{ least }}",
        "SELECT a FROM t WHERE b COLLATE nocase = 'x'",
        "SELECT a ** 2, b FROM t",
        "SELECT a ^ 3 FROM t",
    ],
    "intervals": [
        "SELECT INTERVAL '10' SECNOD",
        "SELECT INTERVAL '10' FROM t",
        "SELECT INTERVAL 10 FROM t",
        "SELECT INTERVAL 'ten seconds'",
        "SELECT INTERVAL '1:30' MINUTE",
        "SELECT INTERVAL '1' DAY TO YEAR",
        "SELECT INTERVAL '5 fortnights'",
    ],
    "conditions": [
        "SELECT a FROM t WHERE a => 10",
        "SELECT a FROM t WHERE a =< 10",
        "SELECT a FROM t WHERE a > 1 AND < 5",
        "SELECT a FROM t WHERE NOT IN (1, 2)",
        "SELECT a FROM t WHERE a NOT NULL",
        "SELECT a FROM t WHERE (a, b) BETWEEN 1 AND 2",
        "SELECT a FROM t WHERE a > 10 a < 20",
        "SELECT a FROM t WHERE a = ANY (1, 2)",
        "SELECT a FROM t WHERE a <> ALL (b, 2)",
        "SELECT a FROM t WHERE a > 1 XOR b > 2",
        "SELECT a FROM t WHERE (a, b) OVERLAPS (c, d)",
        "SELECT a FROM t WHERE b GLOB c",
        "SELECT a FROM t WHERE b = E'\\x01'",
    ],
    "other_systems": [
        "SELECT a COUNT(*) FROM t",
        "SELECT SAFE_CAST(a AS INT) FROM t",
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK ts - INTERVAL '5' SECOND)",
        "CREATE STREAM s (ts TIMESTAMP) WATERMARK FOR ts WITH (connector = 'memory')",
        "SELECT a FROM kafka.default.t",
        "SELECT ROUND(ts TO HOUR) FROM t",
        "BEGIN STATEMENT SET",
        "CREATE SOURCE s (a VARCHAR) WITH (connector = 'kafka') FORMAT DEBEZIUM ENCODE JSON",
        "SELECT ts + INTERVAL SUM(a) SECOND FROM t",
        "SELECT a FROM t WHERE a IS 'x'",
        "WITH a AS SELECT b FROM t SELECT b FROM a",
        "CREATE SINK o FROM v",
        "SELECT a FROM t // all of them",
        "SELECT a INTO o FROM t",
        "SELECT SUM(a) FILTER WHERE a > 3 FROM t",
        "SELECT [1, 2 AS a FROM t",
        "SELECT a FROM t WHERE a IN ()",
        "/* all /* of */ them */ SELECT a FROM t",
        "SELECT a FROM t LIMIT ALL",
        "PIVOT t ON k USING SUM(n)",
        "SELECT * FROM 't.csv' AS t UNPIVOT ((n, m) FOR k IN ((a, b)))",
        "SELECT a FROM t ORDER BY b LIMIT 10 PERCENT",
        "SELECT a FROM t ORDER BY b FETCH FIRST 10 PERCENT ROWS ONLY",
        "SELECT a FROM t ORDER BY b LIMIT 10%",
        "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT n FROM a",
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts - INTERVAL '5' SECOND)",
        "SELECT o.items[2].sku FROM o",
        "SELECT f(a)[b].c FROM o",
        "SELECT 'day 1.csv'.fare FROM 'day 1.csv'",
        "SELECT * FROM read_csv('a.csv', columns = {'id': 'BIGINT', 'price': 'DECIMAL(9, 2)'})",
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a, ALL",
        "SELECT a FROM t ORDER BY a, ALL DESC",
    ],
    "calls_of_other_systems": [
        "SELECT LIST_TRANSFORM(tags, x -> UPPER(x)) AS a FROM t",
        "SELECT LIST_TRANSFORM(tags, lambda x: UPPER(x)) AS a FROM t",
        "SELECT MAX(a) KEEP (DENSE_RANK LAST ORDER BY ts) AS b FROM t",
        "SELECT SAFE.SUBSTR(a, 1, 2) FROM t",
        "SELECT dbo.initials(a) FROM t",
        "SELECT ARRAY_AGG(id ORDER BY fare DESC LIMIT 2) AS a FROM t",
        "SELECT STRING_AGG(name, ',' ORDER BY id LIMIT 2) AS a FROM t",
        "SELECT ANY_VALUE(id HAVING MAX fare + GREATEST(tip, 0)) AS a FROM t",
        "SELECT SUM(id HAVING MIN fare) AS a FROM t",
        "SELECT STRUCT_PACK(a := b) FROM t",
        "SELECT STRUCT(a AS b) FROM t",
        "SELECT COUNT(a LIMIT 3",
        "SELECT [x * 2 FOR x IN tags] AS a FROM t",
        "SELECT ARRAY(SELECT b FROM u ORDER BY b) AS a FROM t",
    ],
    "expected": [
        "SELECT FROM t",
        "SELECT a FROM",
        "SELECT a FROM t WHERE",
        "SELECT a FROM t WHERE a >",
        "SELECT a FROM t WHERE a BETWEEN 1 OR 2",
        "SELECT a FROM t WHERE a NOT 5",
        "SELECT a FROM t GROUP a",
        "SELECT a FROM t JOIN u WHERE a = 1",
        "SELECT a FROM t WHERE a IN b",
        "CREATE STREAM s (a, b)",
        "CREATE SINK k WITH (path 'x')",
        "SET x",
        "frobnicate",
        "SELECT CAST(a AS DECIMAL(1.5))",
    ],
    "forbidden_characters": [
        "SELECT a\x00b FROM t",
        "SELECT 'a\x00b' FROM t",
        "SELECT a\u00a0FROM t",
        "SELECT \u202eevil FROM t",
        "-- \u2066 hidden\nSELECT a FROM t",
        "SELECT \u0430mount FROM t",
        "SELECT \uff41mount FROM t",
        'SELECT "a\u200bb" FROM t',
        "SELECT '\ud800' FROM t",
        "SELECT a\u200b FROM t",
    ],
    "unsupported": [
        "DELETE FROM t",
        "CREATE FUNCTION f AS 'x'",
        "ALTER TABLE t ADD COLUMN a INT",
        "CREATE OR REPLACE FUNCTION f AS SELECT 1",
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY a)",
        "SELECT a FROM t LATERAL VIEW stack(2, a, b) u AS x",
        "SELECT a FROM t POSITIONAL JOIN u",
        "SELECT a FROM t WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 1 DAY) GROUP BY a",
        "CREATE STREAM s (a MAP<INT, INT>)",
        "CREATE STREAM s (a TIME WITH TIME ZONE)",
        "SELECT a FROM t WHERE a > ALL (ARRAY[1, 2])",
        "CREATE TRIGGER g AFTER UPDATE ON s BEGIN SELECT 1; END",
        "INSERT OVERWRITE t SELECT 1",
        "SELECT a FROM s JOIN (SELECT a FROM t) AS m FOR SYSTEM_TIME AS OF s.ts ON m.a = s.a",
        "SELECT a AT TIME ZONE z FROM t",
        "CREATE TABLE t (a BIGINT PRIMARY KEY REFERENCES u)",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN WHILE new.n > 0 DO UPDATE t SET n = 0 WHERE k = 1; END WHILE; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN SELECT 1; FOR r AS SELECT 1 DO DELETE FROM t; END FOR; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC DECLARE x INT; SELECT x; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC SET x = 1; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC IF new.k > 1 THEN ROLLBACK; END IF; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN MERGE INTO t USING u ON t.k = u.k; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN INSERT INTO t VALUES (1, 2) ON DUPLICATE KEY UPDATE n = 3; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC SELECT n INTO x FROM t WHERE k = new.k; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF new.k > 1 THEN DELETE FROM t WHERE k = 1 LIMIT 1; END IF; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN UPDATE t SET n = 1 WHERE k = 1 ORDER BY n; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN DELETE FROM t WHERE k = 1; COMMIT; END",
        "CREATE TRIGGER g AFTER INSERT ON s REPLACE INTO t VALUES (new.k, 1)",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN INSERT OR REPLACE INTO t VALUES (new.k, 1); END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN INSERT OR IGNORE INTO t VALUES (new.k, 1); END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN CASE WHEN new.k > 1 THEN DELETE FROM t WHERE k = 1; END CASE; END",
        "CREATE TRIGGER g AFTER INSERT ON s TRUNCATE TABLE t",
        "MERGE INTO t USING u ON t.k = u.k",
        "TRUNCATE TABLE t",
        "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE)",
    ],
    "triggers": [
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF new.k > 9 THEN SIGNAL 'too much'; END IF; END",
    ],
    "defaults": [
        "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT DEFAULT 1 + 2 NOT NULL)",
        "CREATE TABLE t (a BIGINT PRIMARY KEY, b VARCHAR DEFAULT 'x' || 'y', c INT)",
        "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT DEFAULT LENGTH('a, b') * (2) CHECK (b > 0))",
        "CREATE TABLE t (a BIGINT PRIMARY KEY, b BOOLEAN DEFAULT 1 IN (2))",
    ],
    "empty_bodies": [
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN ; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF new.k > 1 THEN END IF; SELECT 1; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF new.k > 1 THEN ELSE RAISE 'x'; END IF; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF new.k > 1 THEN RAISE 'x'; ELSE END IF; END",
    ],
}


def error_of(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        parse(SourceText("q.cq", text))
    return caught.value


FILES = {f"{group}_{i // 4 + 1}": texts[i : i + 4] for group, texts in CASES.items() for i in range(0, len(texts), 4)}


@pytest.mark.parametrize("name", FILES)
def test_syntax_errors_are_drawn_as_in_the_golden_files(name: str, golden: Callable[[str, str], None]) -> None:
    parts = []
    for text in FILES[name]:
        shown = "".join(f"> {printable(line)}\n" for line in text.split("\n"))
        parts.append(f"{shown}{error_of(text)}\n")
    golden(f"syntax/{name}.txt", "\n".join(parts))


def test_every_case_has_one_error_with_a_place_and_a_registered_code() -> None:
    for text in (t for texts in CASES.values() for t in texts):
        error = error_of(text)
        assert len(error.diagnostics) == 1, text
        assert error.code in CODES and error.line >= 1 and error.column >= 1


def test_all_bad_statements_of_a_file_are_reported_and_each_once() -> None:
    text = "SELCT a;\nSELECT a FROM t;\nSELECT a, FROM t WHERE == 'x';\nSELECT 'ok';\nSELECT (a;\nSET x = 5;\nfoo"
    assert [d.span.line for d in error_of(text).diagnostics] == [1, 3, 5, 7]


def test_a_bad_statement_in_a_trigger_hides_no_later_statement() -> None:
    text = "CREATE TRIGGER g AFTER INSERT ON s BEGIN\nUPDATE x SE a = 1;\nSELECT 1;\nEND;\nSELCT 1;"
    assert [d.span.line for d in error_of(text).diagnostics] == [2, 5]


def test_columns_count_code_points() -> None:
    error = error_of("SELECT '\u4f60\U0001f600', a b c FROM t")
    assert (error.line, error.column) == (1, 18)


def test_every_phrase_of_other_systems_is_recognised_where_it_is_used() -> None:
    for phrase in STATEMENTS:
        assert error_of(" ".join(phrase.words) + " x").code == "CQ0501", phrase.words
    # in front of what they stand for: a clause, a type, a join, a trigger, an operator
    frames = [
        "SELECT a FROM t {p} x",
        "SELECT a {p} b FROM t",
        "SELECT a {p} '$.x' FROM t",
        "SELECT a FROM t WHERE a = {p} SELECT 1)",
        "SELECT a FROM t GROUP BY {p} ((a))",
        "{p} x AS (SELECT 1)",
        "{p} t SELECT 1",
        "{p} 5 a FROM t",
        "{p} SELECT 1",
        "CREATE STREAM s (a {p} <INT>)",
        "CREATE STREAM s (a {p} b INT))",
        "CREATE STREAM s (a INT) {p} (a)",
        "CREATE TABLE t (a INT, {p} (a))",
        "CREATE TABLE t (a INT {p})",
        "CREATE SOURCE s {p} ENCODE JSON",
        "SELECT f(a {p}) FROM t",
        "SELECT a FROM t WHERE a {p} 1 AND 2",
        "CREATE TRIGGER g {p} ON s BEGIN SELECT 1; END",
        "CREATE TRIGGER g AFTER INSERT ON s {p} BEGIN SELECT 1; END",
        "CREATE TRIGGER g AFTER INSERT ON s {p} x; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN {p} x; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN SELECT 1{p} x; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF a {p} x; END IF; END",
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN IF a THEN SELECT 1; {p} x; END IF; END",
    ]
    for phrase in BODY_STATEMENTS:
        for before in ("", "DELETE FROM t WHERE k = 1; ", "IF new.k > 1 THEN "):
            text = f"CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC {before}{' '.join(phrase.words)} x; END"
            assert _code(text) == "CQ0501", text
    for phrase in CLAUSES:
        texts = [frame.format(p=" ".join(phrase.words)) for frame in frames]
        assert any(_code(text) == "CQ0501" for text in texts), phrase.words


def _code(text: str) -> str:
    try:
        parse(SourceText("q.cq", text))
    except CompileError as error:
        return error.code
    return ""
