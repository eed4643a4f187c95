"""Every accepted spelling and the canonical text it becomes."""

from __future__ import annotations

import pytest
from grammar_trees import parse_query

from cq.errors import CompileError, SourceText
from cq.grammar import ast, inline
from cq.grammar.lexer import RESERVED
from cq.grammar.parser import parse, parse_expression, tables
from cq.grammar.printer import print_expr, print_script

EXPRESSIONS = {
    # names and literals
    "Amount": "amount",
    '"Amount"': '"Amount"',
    "`two words`": '"two words"',
    '"say ""x"""': '"say ""x"""',
    "T.Amount": "t.amount",
    "window.END": "window.end",
    't."end" + t."End"': 't.end + t."End"',
    "'it''s'": "'it''s'",
    "1.50": "1.50",
    ".5e-3": ".5e-3",
    "1_000_000.25": "1000000.25",
    "true AND False or NULL": "TRUE AND FALSE OR NULL",
    "date '2024-01-31'": "DATE '2024-01-31'",
    "timestamp '2024-01-31 10:00:00'": "TIMESTAMP '2024-01-31 10:00:00'",
    "time '10:00'": "TIME '10:00'",
    "interval '10' second": "INTERVAL '10' SECOND",
    "interval '10 seconds'": "INTERVAL '10' SECOND",
    "interval 10 SECONDS": "INTERVAL '10' SECOND",
    "interval -10 second": "INTERVAL '-10' SECOND",
    "interval '-10' second": "INTERVAL '-10' SECOND",
    "interval '100ms'": "INTERVAL '100' MILLISECOND",
    "interval '1 day 2 hours'": "INTERVAL '1 DAY 2 HOUR'",
    "interval '1:30' minute to second": "INTERVAL '1 MINUTE 30 SECOND'",
    "interval '-3 12:30:00.5' day to second": "INTERVAL '-3 DAY -12 HOUR -30 MINUTE -00.5 SECOND'",
    "interval '2-6' year to month": "INTERVAL '2 YEAR 6 MONTH'",
    ":Limit": ":limit",
    "array[1, 2][1]": "ARRAY[1, 2][1]",
    "array[]": "ARRAY[]",
    "current_timestamp": "CURRENT_TIMESTAMP",
    "NOW()": "NOW()",
    # literals of other systems
    "0xFF + 0b1_01 + 0o17": "255 + 5 + 15",
    r"e'a\x41\'''\\'": r"'aA''''\'",
    r"E'\n\u00e9\101\q'": "'\néAq'",
    "$$it's$$ || $x$a$$b$x$": "'it''s' || 'a$$b'",
    "datetime '2024-01-31 10:00:00'": "TIMESTAMP '2024-01-31 10:00:00'",
    # bits
    "a & b & 3 = 0": "BITAND(BITAND(a, b), 3) = 0",
    "a | b + 1": "BITOR(a, b + 1)",
    "(a & 1) | ~b": "BITOR(BITAND(a, 1), BITNOT(b))",
    "a << 2": "SHIFTLEFT(a, 2)",
    "a >> b": "SHIFTRIGHT(a, b)",
    "a // b * c": "DIV(a, b) * c",
    "cast(a as struct<x array<bigint>>)": "CAST(a AS ROW(x BIGINT ARRAY))",
    # slices
    "xs[1:2]": "ARRAY_SLICE(xs, 1, 2)",
    "xs[:n]": "xs[:n]",
    "xs[2:]": "ARRAY_SLICE(xs, 2, -1)",
    "xs[: n]": "ARRAY_SLICE(xs, 1, n)",
    "xs[a:b]": "ARRAY_SLICE(xs, a, b)",
    "xs[a : b + 1]": "ARRAY_SLICE(xs, a, b + 1)",
    "overlay(a placing b from 2 for 1)": "OVERLAY(a, b, 2, 1)",
    "overlay(a placing b from 2)": "OVERLAY(a, b, 2)",
    # precedence: no parentheses where they say nothing, all where they do
    "((a)) + (b * c)": "a + b * c",
    "(a + b) * c": "(a + b) * c",
    "a - (b - c)": "a - (b - c)",
    "(a - b) - c": "a - b - c",
    "a || b + c": "a || b + c",
    "(a || b) + c": "(a || b) + c",
    "- - a": "- -a",
    "-(-1)": "- -1",
    "-(a + b)": "-(a + b)",
    "- a::int": "-CAST(a AS INT)",
    "(-a)::int": "CAST(-a AS INT)",
    "not (a = b)": "NOT a = b",
    "(not a) = b": "(NOT a) = b",
    "not not a": "NOT NOT a",
    "a or (b and c)": "a OR b AND c",
    "(a or b) and c": "(a OR b) AND c",
    "a and (b and c)": "a AND b AND c",
    "a = b = c": "a = b = c",
    "a = (b = c)": "a = (b = c)",
    "(a < b) is true": "a < b IS TRUE",
    "a < (b is true)": "a < (b IS TRUE)",
    "a between 1 and 2 and b": "a BETWEEN 1 AND 2 AND b",
    "a between (b and c) and d": "a BETWEEN (b AND c) AND d",
    # comparison
    "a isnull or b notnull": "a IS NULL OR b IS NOT NULL",
    "(a, b) < (1, 2)": "a < 1 OR a = 1 AND b < 2",
    "(a, b, c) >= (1, 2, 3)": "a > 1 OR a = 1 AND (b > 2 OR b = 2 AND c >= 3)",
    "a ~ 'x' and a !~ 'y'": "a RLIKE 'x' AND a NOT RLIKE 'y'",
    "a ~* 'x' and a !~* 'y'": "REGEXP_LIKE(a, 'x', 'i') AND NOT REGEXP_LIKE(a, 'y', 'i')",
    "a ~~ 'x' and a !~~ 'y'": "a LIKE 'x' AND a NOT LIKE 'y'",
    "a ~~* 'x' and a !~~* 'y'": "a ILIKE 'x' AND a NOT ILIKE 'y'",
    "a similar to 'x|y' escape '!'": "a SIMILAR TO 'x|y' ESCAPE '!'",
    "a not similar to 'x' and a glob 'y*'": "a NOT SIMILAR TO 'x' AND a GLOB 'y*'",
    "a != b": "a <> b",
    "a == b": "a = b",
    "a <=> b": "a IS NOT DISTINCT FROM b",
    "a is not null": "a IS NOT NULL",
    "a is unknown": "a IS UNKNOWN",
    "a is not distinct from b + 1": "a IS NOT DISTINCT FROM b + 1",
    "a not between 1 and 2": "a NOT BETWEEN 1 AND 2",
    "a not in (1, 2)": "a NOT IN (1, 2)",
    "interval '-01:30:05.5'": "INTERVAL '-01 HOUR -30 MINUTE -05.5 SECOND'",
    "(a, b) in ((1, 2), (3, 4))": "a = 1 AND b = 2 OR a = 3 AND b = 4",
    "a = any (array[1, 2])": "a IN (1, 2)",
    "a <> all (b)": "NOT ARRAY_CONTAINS(b, a)",
    "a between symmetric 2 and 1": "a BETWEEN 2 AND 1 OR a BETWEEN 1 AND 2",
    "count(*) filter (a > 1)": "COUNT(*) FILTER (WHERE a > 1)",
    "a in (select b from t)": "a IN (SELECT b FROM t)",
    "a in ((select b from t))": "a IN (SELECT b FROM t)",
    "a = any (select b from t)": "a IN (SELECT b FROM t)",
    "a == some ((select b from t))": "a IN (SELECT b FROM t)",
    "a != all (select b from t)": "a NOT IN (SELECT b FROM t)",
    "a = any + some": "a = any + some",
    "a like 'x%' escape '!'": "a LIKE 'x%' ESCAPE '!'",
    "a not ilike b": "a NOT ILIKE b",
    "exists (select 1)": "EXISTS (SELECT 1)",
    "not exists (select 1)": "NOT EXISTS (SELECT 1)",
    "((select 1)) + 1": "(SELECT 1) + 1",
    # casts, types
    "cast(a as decimal(12,2))": "CAST(a AS DECIMAL(12, 2))",
    "try_cast(a as double precision)": "TRY_CAST(a AS DOUBLE)",
    "a::character varying(3)": "CAST(a AS VARCHAR(3))",
    "a::timestamp(3) with local time zone": "CAST(a AS TIMESTAMP_LTZ(3))",
    "a::timestamp without time zone": "CAST(a AS TIMESTAMP)",
    "a::array<array<int>>": "CAST(a AS INT ARRAY ARRAY)",
    "a::int[] = b": "CAST(a AS INT ARRAY) = b",
    "a::int < b": "CAST(a AS INT) < b",
    # calls
    "case a when 1 then 'x' else 'y' end": "CASE a WHEN 1 THEN 'x' ELSE 'y' END",
    "case when a > 1 then b end": "CASE WHEN a > 1 THEN b END",
    "count(*)": "COUNT(*)",
    "count(distinct a)": "COUNT(DISTINCT a)",
    "count(all a)": "COUNT(a)",
    "array_agg(a order by b desc nulls last)": "ARRAY_AGG(a ORDER BY b DESC NULLS LAST)",
    "sum(a) filter (where b > 0)": "SUM(a) FILTER (WHERE b > 0)",
    "lag(a, 1) ignore nulls over w": "LAG(a, 1) IGNORE NULLS OVER w",
    "lag(a ignore nulls) over (w)": "LAG(a) IGNORE NULLS OVER (w)",
    "last(a) ignore nulls filter (where b)": "LAST(a) FILTER (WHERE b) IGNORE NULLS",
    "sum(a) over (partition by b order by ts rows 5 preceding)": (
        "SUM(a) OVER (PARTITION BY b ORDER BY ts ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)"
    ),
    "sum(a) over (order by ts range between interval '1' hour preceding and unbounded following)": (
        "SUM(a) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND UNBOUNDED FOLLOWING)"
    ),
    "extract(hour from ts)": "EXTRACT(HOUR FROM ts)",
    "substring(a from 2 for 3)": "SUBSTRING(a, 2, 3)",
    "substring(a for 3)": "SUBSTRING(a, 1, 3)",
    "substring(a, 2)": "SUBSTRING(a, 2)",
    "position('x' in a)": "POSITION('x', a)",
    "trim(a)": "TRIM(a)",
    "trim(both ' ' from a)": "TRIM(a, ' ')",
    "trim(leading from a)": "LTRIM(a)",
    "trim('x' from a)": "TRIM(a, 'x')",
    "trim(trailing 'x' from a)": "RTRIM(a, 'x')",
    "left(a, 3) || right(a, 2)": "LEFT(a, 3) || RIGHT(a, 2)",
    "if(a, b, c)": "IF(a, b, c)",
    "window(ts, '10 seconds')": "WINDOW(ts, '10 seconds')",
    "hop(ts, slide => interval 1 minute, size => interval 5 minute)": (
        "HOP(ts, SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '5' MINUTE)"
    ),
}

QUERIES = {
    "select all a x from t y": "SELECT a AS x FROM t AS y",
    "select distinct on (a, b) c from t": "SELECT DISTINCT ON (a, b) c FROM t",
    "select t.*, * from t": "SELECT t.*, * FROM t",
    "from t select a, b where a > 1": "SELECT a, b FROM t WHERE a > 1",
    "from t": "SELECT * FROM t",
    "from read_csv('a.csv') as t, read_parquet('b.parquet')": "SELECT * FROM 'a.csv' AS t, 'b.parquet'",
    "select a, b from t order by all desc": "SELECT a, b FROM t ORDER BY 1 DESC, 2 DESC",
    "select a, unnest(b) as c from t": "SELECT a, unnested.c AS c FROM t, UNNEST(b) AS unnested (c)",
    "select a, b, from t": "SELECT a, b FROM t",
    "select a from t group by (a, b), rollup((c, d), e)": "SELECT a FROM t GROUP BY a, b, ROLLUP((c, d), e)",
    "select a from t left semi join u on t.k = u.k": "SELECT a FROM t SEMI JOIN u ON t.k = u.k",
    "select semi.a from t as semi anti join u using (k)": "SELECT semi.a FROM t AS semi ANTI JOIN u USING (k)",
    "(select a from t)": "SELECT a FROM t",
    "((select a from t)) union (select b from u)": "SELECT a FROM t UNION SELECT b FROM u",
    "select a from t union all (select b from u union select c from v)": (
        "SELECT a FROM t UNION ALL (SELECT b FROM u UNION SELECT c FROM v)"
    ),
    "select 1 union by name select 2 union all by name select 3": (
        "SELECT 1 UNION BY NAME SELECT 2 UNION ALL BY NAME SELECT 3"
    ),
    "select 1 union distinct select 2 intersect all select 3": "SELECT 1 UNION SELECT 2 INTERSECT ALL SELECT 3",
    "(select 1 union select 2) intersect select 3": "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3",
    "(select a from t limit 1) except select b from u": "(SELECT a FROM t LIMIT 1) EXCEPT SELECT b FROM u",
    "with x(a) as (select 1), y as (select 2) select * from x, y": (
        "WITH x (a) AS (SELECT 1), y AS (SELECT 2) SELECT * FROM x, y"
    ),
    "values (1, 'a'), (2, 'b')": "VALUES (1, 'a'), (2, 'b')",
    "select a from t inner join u on t.k = u.k": "SELECT a FROM t JOIN u ON t.k = u.k",
    "select a from t left outer join u using (k, l)": "SELECT a FROM t LEFT JOIN u USING (k, l)",
    "select a from t full join u on true cross join v": "SELECT a FROM t FULL JOIN u ON TRUE CROSS JOIN v",
    "select a from t natural full outer join u natural join v": "SELECT a FROM t NATURAL FULL JOIN u NATURAL JOIN v",
    "select natural from natural natural join u": "SELECT natural FROM natural NATURAL JOIN u",
    "select a from t join (u join v on x = y) on z": "SELECT a FROM t JOIN (u JOIN v ON x = y) ON z",
    "select a from t asof join u on t.k = u.k and t.ts >= u.ts": (
        "SELECT a FROM t ASOF JOIN u ON t.k = u.k AND t.ts >= u.ts"
    ),
    "select a from t left asof join u match_condition (t.ts >= u.ts) using (k)": (
        "SELECT a FROM t ASOF LEFT JOIN u MATCH_CONDITION (t.ts >= u.ts) USING (k)"
    ),
    "select a from t asof join u on k = l match_condition(x >= y)": (
        "SELECT a FROM t ASOF JOIN u MATCH_CONDITION (x >= y) ON k = l"
    ),
    "select a from s left join v as w for system_time as of s.ts on s.k = w.k": (
        "SELECT a FROM s LEFT JOIN v FOR SYSTEM_TIME AS OF s.ts AS w ON s.k = w.k"
    ),
    "select a from s join v for system_time as of s.ts w on s.k = w.k": (
        "SELECT a FROM s JOIN v FOR SYSTEM_TIME AS OF s.ts AS w ON s.k = w.k"
    ),
    "select a from (select 1) as t(a)": "SELECT a FROM (SELECT 1) AS t (a)",
    "select w from s, lateral (select 1) l": "SELECT w FROM s, LATERAL (SELECT 1) AS l",
    "select w from s cross join unnest(split(line, ' ')) with ordinality as t(w, i)": (
        "SELECT w FROM s CROSS JOIN UNNEST(SPLIT(line, ' ')) WITH ORDINALITY AS t (w, i)"
    ),
    "select w from s, unnest(items) w": "SELECT w FROM s, UNNEST(items) AS w",
    # window functions
    "select * from tumble(table s, descriptor(ts), interval '1' minute)": (
        "SELECT * FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    ),
    "select * from tumble(s, ts, interval '1' minute, interval '5' second) w": (
        "SELECT * FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' SECOND) AS w"
    ),
    "select * from table(hop(table s, descriptor(ts), interval 1 minute, interval 5 minute))": (
        "SELECT * FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)"
    ),
    "select * from hop(data => table s, timecol => ts, slide => interval 1 minute, size => interval 5 minute)": (
        "SELECT * FROM HOP(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), "
        "SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '5' MINUTE)"
    ),
    "select * from tumble((select * from s), ts, interval '1' minute)": (
        "SELECT * FROM TUMBLE(TABLE (SELECT * FROM s), DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    ),
    "select * from session(table s partition by k, descriptor(ts), interval '1' minute)": (
        "SELECT * FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    ),
    "select * from session(table s partition by k, l, descriptor(ts), interval '1' minute)": (
        "SELECT * FROM SESSION(TABLE s PARTITION BY (k, l), DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    ),
    "select * from session(s partition by k, l, ts, interval '1' minute)": (
        "SELECT * FROM SESSION(TABLE s PARTITION BY (k, l), DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    ),
    "select * from session(s partition by (k, l), ts, interval '1' minute)": (
        "SELECT * FROM SESSION(TABLE s PARTITION BY (k, l), DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    ),
    "select * from hop(table s partition by k, l, rows 10, rows 100)": (
        "SELECT * FROM HOP(TABLE s PARTITION BY (k, l), ROWS 10, ROWS 100)"
    ),
    # clauses
    "select a from t where b group by 1, tumble(ts, interval '1' minute) having c": (
        "SELECT a FROM t WHERE b GROUP BY 1, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING c"
    ),
    "select a from t qualify row_number() over w = 1 window w as (order by ts)": (
        "SELECT a FROM t WINDOW w AS (ORDER BY ts) QUALIFY ROW_NUMBER() OVER w = 1"
    ),
    "select a from t order by a asc, b desc nulls first": "SELECT a FROM t ORDER BY a, b DESC NULLS FIRST",
    "select a from t offset 5 rows limit 10": "SELECT a FROM t LIMIT 10 OFFSET 5",
    "select a from t offset 5 rows fetch next 10 rows only": "SELECT a FROM t LIMIT 10 OFFSET 5",
    "select mode() within group (order by a) filter (where b) over w from t": "SELECT MODE() WITHIN GROUP (ORDER BY a) "
    "FILTER (WHERE b) OVER w FROM t",
    "select a from t fetch first 10 rows only": "SELECT a FROM t LIMIT 10",
    "select a from t limit :n offset 5": "SELECT a FROM t LIMIT :n OFFSET 5",
    "select a from t emit on window close": "SELECT a FROM t EMIT FINAL",
    "select a from t emit on update": "SELECT a FROM t EMIT CHANGES",
    "select a from t order by a limit 5 emit every interval '5' second": (
        "SELECT a FROM t ORDER BY a LIMIT 5 EMIT EVERY INTERVAL '5' SECOND"
    ),
}

STATEMENTS = {
    "create stream s (a int, b timestamp(3), watermark for b idle timeout interval '1' minute) with (path = 'x')": (
        "CREATE STREAM s (\n  a INT,\n  b TIMESTAMP(3),\n  WATERMARK FOR b IDLE TIMEOUT INTERVAL '1' MINUTE\n"
        ") WITH (path = 'x');\n"
    ),
    "create source if not exists s (a int, b int null) with ('connector' = 'file', format = CSV, n = -5)": (
        "CREATE SOURCE IF NOT EXISTS s (a INT, b INT) WITH (connector = 'file', format = 'csv', n = -5);\n"
    ),
    "create table t (a int not null primary key default -1 check (a > 0), d date generated always as (f(a)) stored)": (
        "CREATE TABLE t (a INT PRIMARY KEY NOT NULL DEFAULT -1 CHECK (a > 0), d DATE AS F(a));\n"
    ),
    "create table t (a int, constraint k primary key (a) not enforced, check (a > 0), b array<int>)": (
        "CREATE TABLE t (a INT, PRIMARY KEY (a), CHECK (a > 0), b INT ARRAY);\n"
    ),
    "create or replace temp view v as select 1": "CREATE VIEW v AS\n  SELECT 1;\n",
    "create temporary table t (a int)": "CREATE TABLE t (a INT);\n",
    "create or replace stream v as select 1": "CREATE VIEW v AS\n  SELECT 1;\n",
    "create stream v as select 1": "CREATE VIEW v AS\n  SELECT 1;\n",
    "create view v(a, b) as select 1, 2": "CREATE VIEW v (a, b) AS\n  SELECT 1, 2;\n",
    "create sink k": "CREATE SINK k;\n",
    "insert into k (a, b) select 1, 2": "INSERT INTO k (a, b)\n  SELECT 1, 2;\n",
    "set Parallelism = 8": "SET parallelism = 8;\n",
    "set 'a.b' = on_error": "SET a.b = 'on_error';\n",
    "explain code select 1": "EXPLAIN CODE\nSELECT 1;\n",
    "explain insert into k select 1": "EXPLAIN\nINSERT INTO k\n  SELECT 1;\n",
    "create trigger g after insert on s for each row insert into k values (new.a)": (
        "CREATE TRIGGER g AFTER INSERT ON s FOR EACH ROW\nBEGIN ATOMIC\n  INSERT INTO k VALUES (new.a);\nEND;\n"
    ),
    "create trigger g after insert on s referencing new t when t.a > 0 begin raise 'no'; delete from x; end": (
        "CREATE TRIGGER g AFTER INSERT ON s REFERENCING NEW ROW AS t FOR EACH ROW\nWHEN (t.a > 0)\nBEGIN ATOMIC\n"
        "  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no';\n  DELETE FROM x;\nEND;\n"
    ),
    "create trigger g after insert on s begin atomic if a then select 1; elseif b then update x set y = 1; "
    "else insert into x values (1, 2) on conflict (k) do update set y = x.y + 1; end if; end": (
        "CREATE TRIGGER g AFTER INSERT ON s FOR EACH ROW\nBEGIN ATOMIC\n  IF a THEN\n    SELECT 1;\n  ELSIF b THEN\n"
        "    UPDATE x SET y = 1;\n  ELSE\n"
        "    INSERT INTO x VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET y = x.y + 1;\n  END IF;\nEND;\n"
    ),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression_has_one_canonical_text(text: str) -> None:
    printed = print_expr(parse_expression(text))
    assert printed == EXPRESSIONS[text]
    assert parse_expression(printed) == parse_expression(text)


@pytest.mark.parametrize("text", QUERIES)
def test_query_has_one_canonical_text(text: str) -> None:
    printed = inline.query(parse_query(text))
    assert printed == QUERIES[text]
    assert parse_query(printed) == parse_query(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_statement_has_one_canonical_text(text: str) -> None:
    script = parse(SourceText("test.cq", text))
    printed = print_script(script)
    assert printed == STATEMENTS[text]
    assert parse(SourceText("test.cq", printed)) == script


def test_keywords_are_taken_in_any_case() -> None:
    for text in (t for t in QUERIES if "'" not in t):
        assert parse_query(text.upper()) == parse_query(text)
    for text in (t for t in EXPRESSIONS if not set("'\"`.") & set(t)):
        assert parse_expression(text.upper()) == parse_expression(text)


PLACES_OF_NAMES = [
    "SELECT {n}, t.{n}, {n}.a, f({n}) FROM t AS {n}",
    "SELECT a AS {n} FROM {n} JOIN {n} AS x USING ({n})",
    "SELECT {n} FROM t WHERE {n} = 1 AND {n} IS NULL AND {n} BETWEEN 1 AND 2 GROUP BY {n} ORDER BY {n} DESC",
    "SELECT -{n} + {n} * 2 || {n}, CAST({n} AS INT), {n}::INT, CASE {n} WHEN {n} THEN {n} END",
    "SELECT SUM({n}) OVER (PARTITION BY {n} ORDER BY {n} ROWS 5 PRECEDING) FROM t",
    "SELECT a FROM TUMBLE({n}, {n}, INTERVAL '1' MINUTE)",
    "WITH {n} AS (SELECT 1) SELECT a FROM UNNEST({n}) AS t({n})",
    "CREATE TABLE t ({n} TIMESTAMP NOT NULL, PRIMARY KEY ({n}), WATERMARK FOR {n} AS {n} - INTERVAL '1' SECOND)",
    "CREATE SINK s WITH ({n} = 'x')",
    "SET {n} = 1",
    "INSERT INTO {n} ({n}) SELECT {n} FROM t",
    "CREATE TRIGGER g AFTER INSERT ON {n} BEGIN UPDATE {n} SET {n} = {n} + 1 WHERE {n} = 1; END",
]
# what SQL users call columns, and every keyword of the grammar that is not reserved
COLUMN_NAMES = ["type", "day", "seg", "lane", "slide", "dir", "start", "user", "hour", "status", "count", "map"]
# words of other systems' clauses
COLUMN_NAMES += ["top", "div", "separator", "grace", "within", "outer", "timestamp", "system", "explode", "tumbling"]


def test_every_word_that_is_not_reserved_is_a_name_everywhere() -> None:
    keywords = [k for k in tables().keywords if k.replace("_", "").isalpha() and k not in RESERVED]
    assert {"TIME", "ROWS", "WINDOW", "KEY", "VALUE", "DATE", "OFFSET", "FIRST", "SOURCE"} <= set(keywords)
    for word in [*keywords, *COLUMN_NAMES]:
        for place in PLACES_OF_NAMES:
            if word == "CONSTRAINT" and place.startswith("CREATE TABLE"):
                continue  # there it begins a constraint
            bare = parse(SourceText("test.cq", place.format(n=word.lower())))
            quoted = parse(SourceText("test.cq", place.format(n=f'"{word.lower()}"')))
            assert bare == quoted, f"{word} in {place}"


def test_every_reserved_word_is_a_name_in_quotes() -> None:
    for word in RESERVED:
        for place in PLACES_OF_NAMES:
            script = parse(SourceText("test.cq", place.format(n=f'"{word.lower()}"')))
            assert parse(SourceText("test.cq", print_script(script))) == script


def test_a_whole_file_of_every_kind_of_statement_parses_and_prints_to_itself() -> None:
    text = LANGUAGE_EXAMPLE
    script = parse(SourceText("test.cq", text))
    assert [type(s).__name__ for s in script.statements] == [
        "SetOption", "CreateRelation", "CreateRelation", "CreateRelation", "CreateSink", "CreateView", "Insert",
        "CreateTrigger", "Query",
    ]  # fmt: skip
    assert script.description == "the first comment block of a file is its description\nin two lines"
    printed = print_script(script)
    assert parse(SourceText("test.cq", printed)) == script
    assert print_script(parse(SourceText("test.cq", printed))) == printed


def test_spans_cover_what_a_node_says() -> None:
    query = parse_query("SELECT a,\n  SUM( b ) FROM t")
    assert isinstance(query.body, ast.Select)
    second = query.body.items[1]
    assert (second.span.line, second.span.column, second.span.end_line, second.span.end_column) == (2, 3, 2, 11)
    assert isinstance(second, ast.SelectItem) and isinstance(second.expr, ast.Call)
    assert (second.expr.name_span.column, second.expr.name_span.end_column) == (3, 6)


def test_a_quoted_column_remembers_its_quotes() -> None:
    for text, quoted in (('"text"', True), ("text", False)):
        column = parse_expression(text)
        assert isinstance(column, ast.ColumnRef) and column.quoted is quoted


def test_in_without_parentheses_is_refused_but_for_position() -> None:
    with pytest.raises(CompileError, match="IN needs a list"):
        parse_expression("a IN b")
    with pytest.raises(CompileError, match="IN needs a list"):
        parse_expression("POSITION(a IN b AND c IN d)")


LANGUAGE_EXAMPLE = """\
-- the first comment block of a file is its description
-- in two lines

-- not this
SET parallelism = 8;
CREATE STREAM txn (
  id BIGINT, card VARCHAR, amount DECIMAL(12,2) NOT NULL, merchant VARCHAR, ts TIMESTAMP(3),
  day AS CAST(ts AS DATE),                                  -- computed column
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND              -- bare `WATERMARK FOR ts` = zero delay
) WITH (connector = 'file', path = 'txn/*.jsonl', format = 'json', on_error = 'dead_letter');
CREATE TABLE account (card VARCHAR PRIMARY KEY, balance DECIMAL(12,2) NOT NULL DEFAULT 0 CHECK (balance >= 0));
CREATE TABLE rates WITH (connector = 'file', path = 'rates.csv', format = 'csv');    -- static table, schema inferred
CREATE SINK alerts WITH (connector = 'file', path = 'alerts.csv', format = 'csv');
CREATE VIEW per_min AS
  SELECT window_start, window_end, card, COUNT(*) AS n, SUM(amount) AS total
  FROM TUMBLE(TABLE txn, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
  GROUP BY window_start, window_end, card;
INSERT INTO alerts
  SELECT window_start, card, total FROM per_min
  QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY total DESC, card) <= 3;
CREATE TRIGGER pay AFTER INSERT ON txn REFERENCING NEW ROW AS t FOR EACH ROW WHEN (t.amount > 0)
BEGIN ATOMIC
  UPDATE account SET balance = balance - t.amount WHERE card = t.card;    -- CHECK fails => the whole event is rejected
  UPDATE account SET balance = balance + t.amount WHERE card = t.merchant;
END;
SELECT * FROM per_min EMIT CHANGES                          -- a bare SELECT goes to the terminal
"""
