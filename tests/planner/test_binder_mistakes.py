"""What a user sees for each mistake: code, place, cause, way out. The pictures stand in tests/golden/errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import Prepared
from mistakes_in_sub_queries import GENERATED, LIVE_BID, LIVE_SALE, OF_SUB_QUERIES, SALE, endless
from mistakes_in_triggers import BID, OF_TRIGGERS, PER_MIN
from mistakes_with_near_forms import NEAR_FORMS
from mistakes_with_types import OF_TYPES
from planner_fixture import infer

from cq.errors import CqError, SourceText
from cq.grammar.parser import parse
from cq.grammar.unsupported import ELSEWHERE
from cq.planner.binding.binder import bind
from cq.planner.binding.catalog import Environment
from cq.planner.binding.functions.names import known_functions

PLAIN = "CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP) WITH (connector = 'file', path = 's.csv');\n"
LIVE = """CREATE STREAM live (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'generator', workload = 'bids');
"""
TAGS = "CREATE STREAM t (id BIGINT, tags VARCHAR ARRAY) WITH (path = 't.jsonl');\n"
JOIN = LIVE_BID + LIVE_SALE + "SELECT bid.price FROM bid\nJOIN sale ON bid.auction < sale.auction\n  AND "
ASOF = BID + SALE + "SELECT price FROM bid\nASOF JOIN sale ON bid.auction = sale.auction AND "
ENDLESS = LIVE_SALE.replace("sale (", "bid (price DOUBLE, ") + SALE

# The twelve mistakes every SQL user makes.
TWELVE = {
    "mistyped_column_of_one_side": BID + "SELECT a.auction FROM bid AS a JOIN bid AS b ON a.auction = b.auctoin;",
    "mistyped_column": BID + "SELECT auctoin, price FROM bid;",
    "missing_comma": BID + "SELECT auction price item FROM bid;",
    "wrong_type": BID + "SELECT auction FROM bid WHERE price > '10';",
    "missing_watermark": PLAIN
    + "SELECT window_start, COUNT(*) FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start;",
    "unknown_function": BID + "SELECT lenght(item) FROM bid;",
    "aggregate_without_group_by": BID + "SELECT auction, COUNT(*) FROM bid;",
    "bad_interval": BID
    + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUET) GROUP BY window_start;",
    "unknown_option": "CREATE STREAM s (k BIGINT) WITH (connector = 'file', pth = 's.csv');",
    "missing_file": "CREATE STREAM s WITH (connector = 'file', path = 'no/such/file.csv');\nSELECT * FROM s;",
    "unsupported_statement": BID + "EXPLAIN PLACEMENT SELECT auction FROM bid;",
    "open_string": BID + "SELECT auction FROM bid WHERE item = 'pen;",
    "order_by_unbounded": LIVE + "SELECT k, v FROM live ORDER BY v;",
}

NAMES = {
    "types_of_other_systems": "CREATE STREAM s (a INTT, b INT64, c NVARCHAR(10), d NUMBER(10, 2), e BLOB, f INT8) WITH "
    "(connector = 'file', path = 's.csv');\nSELECT a FROM s;",
    "mistyped_connector": "CREATE STREAM s (k BIGINT) WITH (conector = 'file', path = 's.csv');",
    "options_of_another_system": "CREATE TABLE s (k BIGINT) WITH ('connector' = 'kafka', 'topic' = 's');\n"
    "CREATE TABLE t (k BIGINT) WITH ('connector' = 'filesystem', 'path' = 's.csv');\n"
    "CREATE SINK o WITH ('connector' = 'blackhole');",
    "idle_timeout_of_months": "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts IDLE TIMEOUT INTERVAL '1' MONTH) "
    "WITH (connector = 'memory'); SELECT ts FROM s;",
    "windows_of_late_rows": "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (late = 'stream:old');\n"
    "SELECT window_end, COUNT(*) AS n FROM TUMBLE(old, ts, INTERVAL '1' MINUTE) GROUP BY window_end;",
    "late_rows_without_a_watermark": "CREATE STREAM s (k BIGINT) WITH (late = 'stream:old'); SELECT k FROM old;",
    "late_rows_under_a_name_taken": "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) "
    "WITH (late = 'stream:s'); SELECT k FROM s;",
    "quote_of_two_letters": "CREATE STREAM s (k BIGINT) WITH (path = 's.csv', quote = 'ab', delimiter = '');",
    "every_wrong_option": "CREATE STREAM s (k BIGINT) WITH (path = 's.csv', format = 'jsn', hdr = true, late = 'no');",
    "unknown_stream": BID + "SELECT * FROM bids;",
    "sink_read": BID + "CREATE SINK out WITH (connector = 'stdout');\nSELECT * FROM out;",
    "unknown_sink": BID + "CREATE SINK out WITH (connector = 'stdout');\nINSERT INTO outt SELECT * FROM bid;",
    "defined_twice": BID + "CREATE VIEW bid AS SELECT 1 AS x FROM bid;",
    "unknown_qualifier": BID + "SELECT c.price FROM bid AS b;",
    "ambiguous": BID
    + PER_MIN
    + "SELECT auction FROM bid JOIN per_min FOR SYSTEM_TIME AS OF bid.ts ON per_min.auction = bid.auction;",
    "double_quoted_string": BID + 'SELECT auction FROM bid WHERE item = "pen";',
    "alias_in_where": BID + "SELECT price * 2 AS twice FROM bid WHERE twice > 10;",
    "alias_of_two_items": BID + "SELECT price AS p, price * 2 AS p, p + 1 AS q FROM bid;",
    "unknown_parameter": BID + "SELECT auction FROM bid WHERE price > :least;",
    "setting_of_checkpoints": "SET checkpoint_interval = 4;",
    "unknown_setting": "SET paralelism = 4;",
    "setting_of_aborts": "SET aborts = 'lazy';",
    "ordinal_too_large": BID
    + "SELECT auction, COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start, 3;",
    "duplicate_sink_columns": BID
    + "CREATE SINK out WITH (connector = 'stdout');\nINSERT INTO out SELECT price, price FROM bid;",
}

TYPES = {
    "inside_aggregates": BID
    + "SELECT SUM(price IGNORE NULLS), CORR(DISTINCT price, auction), QUANTILE_CONT(price, 2),\n"
    "  MODE() WITHIN GROUP (ORDER BY price DESC), MODE(item) FROM bid;",
    "functions_of_elements": BID + "SELECT list_transform(SPLIT(item, ' '), auction) AS xs FROM bid;",
    "unnest_twice": BID + "SELECT UNNEST(SPLIT(item, ' ')) AS a, UNNEST(SPLIT(item, '-')) AS b FROM bid;",
    "unnest_of_two_arrays": BID + "SELECT a, b FROM bid, UNNEST(SPLIT(item, ' '), SPLIT(item, '-')) AS u(a, b);",
    "functions_of_other_systems": BID + "SELECT age(ts, ts), collect_list(price) FROM bid;",
    "windows_structs_and_sets_of_other_systems": BID
    + "SELECT time_bucket(INTERVAL '1 minute', ts) AS bucket, histogram(price), STRUCT(price)\n"
    "FROM bid GROUP BY bucket, ROLLUP(auction);",
    "comparison_of_three": BID + "SELECT auction FROM bid WHERE 1 < price < 5;",
    "half_an_or": BID + "SELECT auction FROM bid WHERE item LIKE 'a%' OR 'b%';",
    "minus_text": BID + "SELECT -item FROM bid;",
    "time_with_a_zone": BID + "SELECT auction FROM bid WHERE ts > TIMESTAMP '2024-01-31 10:20:30+02:00';",
    "elements_by_a_table_function": BID + "SELECT e ->> 'sku' AS sku FROM bid AS b, jsonb_array_elements(b.item) AS e;",
    "table_functions": BID
    + "SELECT COUNT(*) FROM TUMBEL(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start;",
    "part_of_interval": BID + "SELECT EXTRACT(SECOND FROM ts - ts) FROM bid;",
    "interval_to_number": BID + "SELECT CAST(ts - ts AS BIGINT) FROM bid;",
    "window_column_without_window": BID + "SELECT window_start, COUNT(*) FROM bid GROUP BY window_start;",
    "bad_arguments": BID + "SELECT lower(price, 2) FROM bid;",
    "condition_not_boolean": BID + "SELECT auction FROM bid WHERE price;",
    "no_such_cast": BID + "SELECT CAST(ts AS BIGINT) FROM bid;",
    "add_text": BID + "SELECT item + 1 FROM bid;",
    "add_number_to_time": BID + "SELECT ts + 5 FROM bid;",
    "decimal_too_wide": BID + "SELECT auction FROM bid WHERE amount < CAST(price AS DECIMAL(38, 38));",
    "remainder_too_wide": BID + "SELECT amount % CAST(price AS DECIMAL(38, 38)) FROM bid;",
    "decimal_type_too_wide": "CREATE STREAM s (x DECIMAL(40,2)) WITH (connector = 'file', path = 's.csv');",
    "case_of_two_types": BID + "SELECT CASE WHEN price > 1 THEN 'many' ELSE 0 END FROM bid;",
    "bad_time_text": BID + "SELECT auction FROM bid WHERE ts > '2024-13-01';",
    "union_of_a_number_and_a_time": BID + "SELECT auction FROM bid UNION ALL SELECT ts FROM bid;",
    "union_by_one_name_twice": BID + "SELECT auction, price AS auction FROM bid UNION BY NAME SELECT auction FROM bid;",
    "number_and_time": BID + "SELECT auction FROM bid WHERE price > ts;",
    "number_and_time_of_a_join": BID
    + "SELECT a.auction FROM bid AS a JOIN bid AS b ON a.auction = b.auction AND a.ts = b.ts AND a.price > b.ts;",
    "union_widths": BID + "SELECT auction, price FROM bid UNION ALL SELECT auction FROM bid;",
    "union_types": BID + "SELECT item FROM bid UNION ALL SELECT price FROM bid;",
    "unnest_text": BID + "SELECT w FROM bid, UNNEST(item) AS t(w);",
    "unnest_json": "CREATE STREAM o (id BIGINT, items VARCHAR) WITH (path = 'o.jsonl');\n"
    "SELECT id, i ->> 'sku' AS sku FROM o, UNNEST(items) AS u(i);",
    "text_cast_to_an_array": "CREATE STREAM o (id BIGINT, items VARCHAR) WITH (path = 'o.jsonl');\n"
    "SELECT CAST(items AS VARCHAR ARRAY) AS items FROM o;",
    "array_of_rows": "CREATE STREAM o (id BIGINT, items ARRAY<ROW<sku VARCHAR>>) WITH (path = 'o.jsonl');\n"
    "SELECT id FROM o;",
    "array_compared_with_an_element": TAGS + "SELECT id FROM t WHERE tags = 'card';",
    "array_in_a_list_of_elements": TAGS + "SELECT id FROM t WHERE t.tags IN ('card');",
    "field_of_an_array": TAGS + "SELECT id, tags.length AS n FROM t;",
    "unnest_of_a_misspelt_column": TAGS + "SELECT id, tag FROM t, UNNEST(tgas) AS u(tag);",
    "sum_of_text": BID
    + "SELECT SUM(item) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start;",
    "integer_too_large": BID + "SELECT auction + 100000000000000000000000000000000000000 FROM bid;",
}

WINDOWS = {
    "not_event_time": "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, WATERMARK FOR a) "
    "WITH (connector = 'file', path = 's.csv');\n"
    "SELECT COUNT(*) FROM TUMBLE(TABLE s, DESCRIPTOR(b), INTERVAL '1' MINUTE) GROUP BY window_start;",
    "watermark_not_timestamp": "CREATE STREAM s (t BIGINT, WATERMARK FOR t) WITH (connector = 'file', path = 's.csv');",
    "watermark_unknown": "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR tz) WITH (connector = 'file', path = 's.csv');",
    "negative_delay": "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts + INTERVAL '5' SECOND) "
    "WITH (connector = 'file', path = 's.csv');",
    "window_of_months_by_days": BID + "SELECT COUNT(*) FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' DAY, "
    "INTERVAL '1' MONTH) GROUP BY window_start;",
    "window_of_days_from_a_month": BID + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '7' DAY, "
    "INTERVAL '1' MONTH) GROUP BY window_start;",
    "window_of_months_far_from_them": BID + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), "
    "INTERVAL '1' MONTH, INTERVAL '28' DAY) GROUP BY window_start;",
    "growing_by_no_part_of_months": BID + "SELECT COUNT(*) FROM CUMULATE(TABLE bid, DESCRIPTOR(ts), "
    "INTERVAL '2' MONTH, INTERVAL '1 year 1 month') GROUP BY window_start;",
    "session_with_a_gap_of_months": BID + "SELECT COUNT(*) FROM SESSION(TABLE bid, DESCRIPTOR(ts), "
    "INTERVAL '1' MONTH) GROUP BY window_start, window_end;",
    "number_as_size": BID + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), 60) GROUP BY window_start;",
    "hop_without_size": BID
    + "SELECT COUNT(*) FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start;",
    "cumulate_by_no_part": BID
    + "SELECT price FROM CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '25' SECOND, INTERVAL '1' MINUTE);",
    "cumulate_without_size": BID + "SELECT price FROM CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '25' SECOND);",
    "both_bounds_at_once": BID + "SELECT window, COUNT(*) FROM bid GROUP BY window(ts, '1 minute');",
    "where_on_window": BID + "SELECT window_start, COUNT(*) FROM bid\n"
    "WHERE window_start > TIMESTAMP '2024-01-01' GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);",
    "ungrouped_column": BID
    + "SELECT window_start, auction, item, COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)\n"
    "GROUP BY window_start, auction;",
    "star_of_groups": BID + "SELECT *, COUNT(*) FROM bid GROUP BY auction;",
    "aggregate_in_where": BID + "SELECT auction FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)\n"
    "WHERE COUNT(*) > 3 GROUP BY window_start, auction;",
    "aggregate_in_aggregate": BID
    + "SELECT MAX(COUNT(*)) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start;",
    "unbounded_group_by": LIVE + "SELECT k, SUM(v) FROM live GROUP BY k;",
    "session_window": BID
    + "SELECT COUNT(*) FROM SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(ts), INTERVAL '1' MINUTE)\n"
    "GROUP BY window_start, auction;",
    "too_many_panes": BID
    + "SELECT COUNT(*) FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '7' MILLISECOND, INTERVAL '1' DAY)\n"
    "GROUP BY window_start;",
}

OVER_AND_JOINS = {
    "range_frame": BID + "SELECT SUM(price) OVER (PARTITION BY auction ORDER BY price RANGE 1 PRECEDING) FROM bid;",
    "frame_without_end": LIVE
    + "SELECT SUM(v) OVER (PARTITION BY k ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM live;",
    "frames": BID
    + "".join(
        f"CREATE VIEW v{n} AS SELECT {call}(price) OVER ({frame}) AS x FROM bid;\n"
        for n, (call, frame) in enumerate(
            [
                ("SUM", "GROUPS 2 PRECEDING"),
                ("SUM", "ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 PRECEDING"),
                ("SUM", "ORDER BY ts ROWS 1.5 PRECEDING"),
                ("SUM", "ORDER BY ts RANGE INTERVAL '1' MONTH PRECEDING"),
                ("SUM", "ORDER BY amount, ts RANGE 1 PRECEDING"),
                ("SUM", "ROWS 9 PRECEDING EXCLUDE TIES"),
            ]
        )
    ),
    "ntile": BID
    + "".join(
        f"CREATE VIEW v{n} AS SELECT {call} AS x FROM bid;\n"
        for n, call in enumerate(
            [
                "NTILE(0) OVER (ORDER BY ts)",
                "NTILE(4) OVER (PARTITION BY auction)",
                "LEAD(price, auction) OVER (ORDER BY ts)",
                "LEAD(DISTINCT price) OVER (ORDER BY ts)",
                "LAG(price, 9) IGNORE NULLS OVER (ORDER BY ts)",
                "LAG(price, auction) IGNORE NULLS OVER (ORDER BY ts)",
                "NTILE(4) RESPECT NULLS OVER (ORDER BY ts)",
                "CUME_DIST() OVER (ORDER BY ts ROWS 1 PRECEDING)",
                "PERCENT_RANK(price) OVER (ORDER BY ts)",
                "NTH_VALUE(price, auction) OVER (ORDER BY ts)",
            ]
        )
    ),
    "rank_without_order": BID + "SELECT RANK() OVER (PARTITION BY auction) FROM bid;",
    "row_number_of_something": BID + "SELECT ROW_NUMBER(price) OVER (PARTITION BY auction ORDER BY ts) FROM bid;",
    "tumble_start_of_a_session": BID
    + "SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s FROM bid GROUP BY SESSION(ts, INTERVAL '1' MINUTE), auction;",
    "lag_without_over": BID + "SELECT LAG(price) FROM bid;",
    "over_not_by_time": LIVE + "SELECT LAG(v) OVER (PARTITION BY k ORDER BY v) FROM live;",
    "over_in_where": BID + "SELECT auction FROM bid WHERE LAG(price) OVER (ORDER BY ts) > 3;",
    "plain_join": LIVE_BID + PER_MIN + "SELECT bid.price FROM bid JOIN per_min ON per_min.auction < bid.auction;",
    "look_up_without_key": BID
    + PER_MIN
    + "SELECT n FROM bid JOIN per_min FOR SYSTEM_TIME AS OF bid.ts ON per_min.n = bid.auction;",
    "look_up_of_a_stream": BID + "CREATE VIEW high AS SELECT * FROM bid WHERE price > 10;\n"
    "SELECT item FROM bid JOIN high FOR SYSTEM_TIME AS OF bid.ts ON high.auction = bid.auction AND high.price > 5;",
    "look_up_without_time": BID + PER_MIN + "CREATE VIEW timeless AS SELECT auction, n FROM per_min;\n"
    "SELECT t.n FROM bid JOIN timeless AS t FOR SYSTEM_TIME AS OF bid.ts ON t.auction = bid.auction;",
    "emit_changes": BID + PER_MIN + "SELECT * FROM per_min EMIT CHANGES;",
    "values_of_several_kinds": "VALUES (1, 2), (3);\nVALUES (1), ('a');\nVALUES (x), (COUNT(*));\nVALUES (1), (7 / 0);"
    "\nSELECT x;\nSELECT *;",
    "grouping_sets": BID + "SELECT auction, GROUPING(price) FROM bid GROUP BY ROLLUP(auction, item);\n"
    "SELECT GROUPING(auction) FROM bid;\n"
    "SELECT COUNT(*) AS n FROM bid GROUP BY CUBE(auction, price, item, amount), CUBE(ts, 1, 2);"
    "\nSELECT auction + SUM(price) FROM bid GROUP BY ALL;\nSELECT rollup(price) FROM bid;",
    "sets_with_and_without_a_window": BID
    + PER_MIN
    + "SELECT n FROM per_min GROUP BY GROUPING SETS ((window_start, window_end, n), n);",
    "sets_without_end": LIVE + "SELECT k, SUM(v) FROM live GROUP BY ROLLUP(k);",
    "changes_of_a_star": BID + "SELECT * EXCLUDE (prize, item) FROM bid;\n"
    "SELECT * REPLACE (1 AS ite) FROM bid;\nSELECT b.* EXCEPT (item) REPLACE ('x' AS item) FROM bid AS b;\n"
    "SELECT * EXCLUDE (auction, price, amount, item, ts) FROM bid;",
    "sets_of_a_window_and_of_none": BID
    + "SELECT COUNT(*) AS n FROM TUMBLE(bid, ts, INTERVAL '1' MINUTE) GROUP BY ROLLUP(window_start);\n"
    "SELECT 1 AS one, COUNT(*) AS n FROM bid GROUP BY ROLLUP(one);",
    "limit_of_a_correlated_query": BID
    + SALE
    + "SELECT auction FROM bid WHERE EXISTS (SELECT 1 FROM sale WHERE sale.auction = bid.auction LIMIT 0);\n"
    "SELECT RANK() OVER (ORDER BY 1) AS n FROM bid;",
    "arrays_of_doubles_as_keys": BID + "SELECT COUNT(*) OVER (PARTITION BY [price / 2e0]) AS n FROM bid;",
    "arrays_compared": BID + "SELECT auction FROM bid WHERE SPLIT(item, ' ') < ['b'];",
    "array_of_arrays": BID + "SELECT [[price]] AS a, [1, 'a'] AS b FROM bid;",
    "zone_misspelt": BID + "SELECT FROM_UTC_TIMESTAMP(ts, 'Europe/Berlim') AS t FROM bid;",
    "instants": BID
    + "SELECT item AT TIME ZONE 'UTC', ts AT TIME ZONE 'CET', TO_UTC_TIMESTAMP(TIMESTAMPTZ '2024-01-01', 'UTC'),\n"
    + "  TIMESTAMPTZ '2024-01-32', TIMESTAMPTZ '2024-02-01' > '25:00',\n"
    + "  CAST(TIMESTAMPTZ '2024-01-31' AS BIGINT) FROM bid;",
    "months_of_instants": "SET time_zone = 'America/New_York'; "
    + "CREATE STREAM s (ts TIMESTAMPTZ, WATERMARK FOR ts) WITH (path = 's.csv');\n"
    + "SELECT COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MONTH) GROUP BY window_start;",
    "zone_of_setting": "SET time_zone = 'CET';\nSELECT TIMESTAMPTZ '2024-01-31';",
    "order_of_distinct": BID + "SELECT DISTINCT auction FROM bid ORDER BY price;",
    "whole_partition_without_end": LIVE + "SELECT SUM(v) OVER (PARTITION BY k) AS n FROM live;",
    "except_without_end": LIVE + "SELECT k FROM live EXCEPT SELECT v FROM live WHERE v > 5;",
    "intersect_types": BID + "SELECT auction, item FROM bid INTERSECT ALL SELECT auction, price FROM bid;",
    **OF_TRIGGERS,
    "table_row": "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT CHECK (n > 0));\nINSERT INTO a VALUES (1, 2), (2, 0);",
    "table_key": "CREATE TABLE a (k BIGINT, n BIGINT, PRIMARY KEY (kk));",
    "table_float_key": "CREATE TABLE a (k DOUBLE PRIMARY KEY, n BIGINT);",
    "primary_key": "CREATE STREAM account (card VARCHAR PRIMARY KEY, balance BIGINT);",
    "random": BID + "SELECT random() FROM bid;",
    "clock": BID + "SELECT auction FROM bid WHERE ts > NOW();",
}

JOINS = {
    "join_bound_in_months": JOIN + "sale.ts BETWEEN bid.ts AND bid.ts + INTERVAL '2' MONTH;",
    "join_bound_in_years_before": JOIN + "sale.ts >= bid.ts - INTERVAL '1' YEAR AND sale.ts <= bid.ts;",
    "join_bound_of_a_column": JOIN + "sale.ts BETWEEN bid.ts AND bid.ts + sale.wait * INTERVAL '1' SECOND;",
    "join_bound_on_a_difference": JOIN + "sale.ts - bid.ts <= sale.wait * INTERVAL '1' SECOND;",
    "join_bound_on_another_time": JOIN + "sale.paid BETWEEN bid.ts AND bid.ts + INTERVAL '5' SECOND;",
    "join_bound_on_a_computed_time": JOIN + "sale.ts <= DATE_TRUNC('hour', bid.ts) AND sale.ts >= bid.ts;",
    "join_without_upper_bound": JOIN + "sale.ts >= bid.ts;",
    "join_without_lower_bound": JOIN + "sale.ts < bid.ts AND bid.price > 3;",
    "join_without_bounds": LIVE_BID + LIVE_SALE + "SELECT price FROM bid AS b JOIN sale AS s ON b.auction < s.auction;",
    "join_using_unknown": BID + SALE + "SELECT price FROM bid\nJOIN sale USING (price);",
    "join_of_excluding_bounds": JOIN + "sale.ts BETWEEN bid.ts + INTERVAL '5' SECOND AND bid.ts;",
    "join_without_watermark": LIVE_BID
    + endless(PLAIN)
    + "SELECT price FROM bid JOIN s ON auction < k AND s.ts >= bid.ts;",
    "left_join_before_its_right_side": "CREATE STREAM bid (auction BIGINT) WITH (path = 'bid.csv', follow = true);\n"
    "CREATE STREAM item (auction BIGINT, words VARCHAR) WITH (path = 'item.csv');\n"
    "SELECT auction, words FROM bid\nLEFT JOIN item USING (auction);",
    "left_join_without_end": ENDLESS + "SELECT price FROM bid\nLEFT JOIN sale ON bid.auction = sale.auction;",
    "right_join_using_without_end": ENDLESS + "SELECT price FROM bid\nRIGHT OUTER JOIN sale USING (auction);",
    "full_join_without_end": ENDLESS + "SELECT price FROM bid AS b FULL JOIN sale AS s ON b.auction = s.auction;",
    "cross_join": LIVE_BID + LIVE_SALE + "SELECT price FROM bid CROSS JOIN sale;",
    "natural_join": BID + SALE + "CREATE VIEW v AS SELECT paid FROM sale;\nSELECT price FROM bid NATURAL LEFT JOIN v;",
    "asof_without_times": BID + SALE + "SELECT price FROM bid ASOF LEFT JOIN sale ON bid.auction = sale.auction;",
    "asof_by_another_time": ASOF + "bid.ts >= sale.paid;",
    "asof_by_a_number": ASOF + "bid.price >= sale.wait;",
    "asof_both_ways": ASOF + "bid.ts - INTERVAL '5' SECOND <= sale.ts AND sale.ts <= bid.ts + INTERVAL '1' SECOND;",
    "asof_ahead_without_end": LIVE_BID
    + LIVE_SALE
    + "SELECT price FROM bid\nASOF JOIN sale ON bid.auction = sale.auction AND bid.ts <= sale.ts;",
    "asof_with_more_conditions": ASOF + "bid.ts >= sale.ts AND bid.price > sale.wait;",
    "comma_join": LIVE_BID
    + LIVE_SALE
    + "SELECT price FROM bid, sale WHERE bid.auction < sale.auction AND sale.wait = 3;",
    "window_over_a_join": BID + SALE + "SELECT COUNT(*) FROM bid JOIN sale ON bid.auction = sale.auction\n"
    "GROUP BY TUMBLE(bid.ts, INTERVAL '1' MINUTE);",
    "window_over_rows_with_names": BID + "CREATE STREAM cust (id BIGINT, name VARCHAR)\n"
    "WITH (connector = 'file', path = 'cust.csv');\n"
    "SELECT name, COUNT(*) AS n FROM bid JOIN cust ON bid.auction = cust.id\n"
    "GROUP BY TUMBLE(bid.ts, INTERVAL '1' MINUTE), name;",
    "using_a_name_of_two": BID + SALE + "SELECT price FROM bid JOIN sale ON bid.auction = sale.auction\n"
    "JOIN bid AS b USING (auction);",
    "look_up_in_right_join": BID
    + PER_MIN
    + "SELECT price FROM bid RIGHT JOIN per_min FOR SYSTEM_TIME AS OF bid.ts ON bid.auction = per_min.auction;",
    "left_join_unnest": BID + "SELECT w FROM bid LEFT JOIN UNNEST(SPLIT(item, ' ')) AS t(w) ON w = item;\n"
    "SELECT w FROM bid RIGHT JOIN UNNEST(SPLIT(item, ' ')) AS t(w) ON TRUE;",
    "join_unnest_on": BID + "SELECT w FROM bid JOIN UNNEST(SPLIT(item, ' ')) AS t(w) ON w = 'a';",
}

MATCHED = """CREATE STREAM q (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'generator', workload = 'bids');
CREATE VIEW x AS SELECT bid.auction AS k, bid.ts AS ots, sale.ts AS pts FROM bid JOIN sale ON bid.auction = sale.auction
  AND sale.ts BETWEEN bid.ts AND bid.ts + INTERVAL '1' HOUR;
"""

VISITS = """CREATE VIEW visits AS SELECT window_end, auction, COUNT(*) AS n
FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end, auction;
"""

JOINS |= {
    "look_up_of_sessions": BID + SALE + VISITS + "SELECT v.n FROM sale AS s\n"
    "JOIN visits AS v FOR SYSTEM_TIME AS OF s.ts ON v.auction = s.auction;",
    "look_up_by_sessions": BID + PER_MIN + VISITS + "SELECT v.n FROM visits AS v\n"
    "JOIN per_min AS m FOR SYSTEM_TIME AS OF v.window_end ON v.auction = m.auction;",
    "look_up_by_a_join": BID + SALE + PER_MIN + MATCHED + "SELECT x.k FROM x\n"
    "JOIN per_min AS m FOR SYSTEM_TIME AS OF x.ots ON x.k = m.auction;",
    "join_bounds_on_two_times": LIVE_BID + LIVE_SALE + MATCHED + "SELECT q.k FROM x JOIN q ON q.k < x.k\n"
    "  AND q.ts >= x.ots AND q.ts <= x.pts + INTERVAL '1' DAY;",
    "join_bounds_on_two_times_of_the_right": LIVE_BID + LIVE_SALE + MATCHED + "SELECT q.k FROM q JOIN x ON q.k < x.k\n"
    "  AND x.pts <= q.ts AND x.ots >= q.ts - INTERVAL '1' DAY;",
    "join_with_bounds_in_where": LIVE_BID
    + LIVE_SALE
    + "SELECT price FROM bid JOIN sale ON bid.auction < sale.auction\n"
    "WHERE price > 3 AND sale.ts BETWEEN bid.ts AND bid.ts + INTERVAL '1' HOUR;",
    "join_with_one_bound_in_where": JOIN + "sale.ts >= bid.ts\nWHERE sale.ts < bid.ts + INTERVAL '1' HOUR;",
    "join_on_either_with_bounds_in_where": LIVE_BID + LIVE_SALE + "SELECT price FROM bid\n"
    "JOIN sale ON bid.auction = sale.auction OR wait = 3 WHERE sale.ts BETWEEN bid.ts AND bid.ts + INTERVAL '1' HOUR;",
    "join_on_either": JOIN + "sale.ts BETWEEN bid.ts AND bid.ts + INTERVAL '1' HOUR OR sale.wait = 3;",
}

WINDOW_ARGUMENTS = {
    "session_without_gap": BID
    + "SELECT COUNT(*) FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts)) GROUP BY window_start, auction;",
    "session_group_without_gap": BID + "SELECT COUNT(*) FROM bid GROUP BY SESSION(ts), auction;",
    "session_that_never_ends": BID
    + "SELECT COUNT(*) FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '106751991' DAY)\n"
    "GROUP BY window_start, window_end, auction;",
    "order_by_start_of_sessions": LIVE
    + "SELECT window_start, window_end, COUNT(*) FROM SESSION(TABLE live, DESCRIPTOR(ts), INTERVAL '1' MINUTE)\n"
    "GROUP BY window_start, window_end ORDER BY window_start;",
    "order_by_a_list": BID + "SELECT auction FROM bid ORDER BY SPLIT(item, ' ');",
    "order_by_a_missing_column": BID + "SELECT auction FROM bid ORDER BY 2;",
    "order_by_two_columns_of_a_name": BID + "SELECT auction AS a, price AS a FROM bid ORDER BY a;",
    "limit_that_is_no_number": BID + "SELECT auction FROM bid ORDER BY auction LIMIT 2 OFFSET 1.5;",
    "session_with_too_much": BID
    + "SELECT COUNT(*) FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '1' MINUTE,\n"
    "  INTERVAL '5' MINUTE) GROUP BY window_start, auction;",
    "session_without_time": BID + "SELECT COUNT(*) FROM SESSION(TABLE bid PARTITION BY auction, INTERVAL '1' MINUTE)\n"
    "GROUP BY window_start, auction;",
    "session_by_too_little": BID
    + "SELECT COUNT(*) FROM SESSION(TABLE bid PARTITION BY item, auction, DESCRIPTOR(ts), INTERVAL '1' MINUTE)\n"
    "GROUP BY window_start, auction;",
    "tumble_of_a_number": BID
    + "SELECT COUNT(*) FROM TUMBLE(5, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start;",
    "tumble_with_partition": BID
    + "SELECT COUNT(*) FROM TUMBLE(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '1' MINUTE)\n"
    "GROUP BY window_start, auction;",
    "rows_of_count_windows": BID + "SELECT auction FROM TUMBLE(TABLE bid PARTITION BY auction, ROWS 100);",
    "count_windows_by_other_keys": BID + "SELECT item, COUNT(*) FROM TUMBLE(TABLE bid PARTITION BY auction, ROWS 100) "
    "GROUP BY item;",
    "count_windows_with_where": BID
    + "SELECT auction, SUM(price) AS s FROM TUMBLE(TABLE bid PARTITION BY auction, ROWS 10) WHERE price > 5 "
    "GROUP BY auction;",
    "growing_by_rows": BID + "SELECT COUNT(*) FROM CUMULATE(TABLE bid, ROWS 10, ROWS 100);",
    "rows_that_are_no_number": BID + "SELECT COUNT(*) FROM TUMBLE(TABLE bid PARTITION BY auction, ROWS 50 + 50);",
    "rows_by_time": BID + "SELECT COUNT(*) FROM HOP(TABLE bid, DESCRIPTOR(ts), ROWS 10, INTERVAL '1' DAY);",
    "window_of_no_rows": BID + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, ROWS 0);",
    "window_of_too_many_rows": BID + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, ROWS 2000000);",
    "bounds_of_count_windows": BID + "SELECT window_start, COUNT(*) FROM TUMBLE(TABLE bid, ROWS 10) "
    "GROUP BY window_start;",
    "tumble_size_twice": BID
    + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, SIZE => INTERVAL '1' HOUR)\n"
    "GROUP BY window_start;",
}

SEVERAL = {
    "several_at_once": BID
    + "SELECT auctoin, lenght(item)\nFROM bid\nWHERE price > 'x';\nSELECT * FROM nowhere;\nSET speed = 3;",
    "each_condition": BID + "SELECT auction FROM bid WHERE prise > 1 AND (item = 3 OR lower(itm) = upper(5)) AND 1;",
    "each_key_once": BID + "SELECT nothing AS n, COUNT(*) FROM bid GROUP BY n, nowhere, 5;",
    "one_mistake_is_told_once_in_sub_queries": BID + "CREATE VIEW v AS SELECT nothing FROM bid;\n"
    "SELECT prize, (SELECT nothing FROM v) FROM bid;\nSELECT price FROM bid WHERE auction IN (SELECT nothing FROM v);",
    "one_mistake_is_told_once": BID + "CREATE VIEW v AS SELECT nothing FROM bid;\nSELECT * FROM v;",
}

OFTEN_MADE = {
    "ungrouped_in_a_derived_table": BID + "SELECT auction FROM (SELECT auction, item, COUNT(*) AS n FROM bid "
    "GROUP BY auction) AS t;",
    "range_over_text": BID + "SELECT SUM(price) OVER (ORDER BY item RANGE 1 PRECEDING) AS near FROM bid;",
    "group_by_an_aggregate": BID + "SELECT auction, SUM(price) AS total FROM bid GROUP BY auction, total;",
    "over_in_having": BID + "SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction\n"
    "HAVING ROW_NUMBER() OVER (ORDER BY auction) = 1;",
    "over_in_group_by": BID + "SELECT ROW_NUMBER() OVER (ORDER BY ts) AS n FROM bid GROUP BY n;",
    "mistyped_window_argument": BID + "SELECT COUNT(*) AS n FROM TUMBLE(bid, ts, sze => INTERVAL '1' MINUTE) "
    "GROUP BY window_end;",
    "hop_by_nothing": BID + "SELECT COUNT(*) AS n FROM HOP(bid, ts, INTERVAL '0' SECOND, INTERVAL '1' MINUTE)\n"
    "GROUP BY window_end;",
    "window_of_no_minutes": BID
    + "SELECT COUNT(*) AS n FROM TUMBLE(bid, ts, INTERVAL '0' MINUTE)\nGROUP BY window_end;",
    "time_of_a_count": BID + "SELECT EPOCH_MS(auction) AS at, UNIX_SECONDS(auction + 1) AS later FROM bid;",
    "unit_that_is_none": BID + "SELECT ts + INTERVAL '2' FORTNIGHT AS due FROM bid;",
    "date_that_is_none": BID + "SELECT auction FROM bid WHERE ts >= '2024-02-30';",
    "interval_by_interval": BID + SALE + "SELECT (bid.ts - sale.paid) / INTERVAL '1' MINUTE AS late\n"
    "FROM bid JOIN sale USING (auction);",
    "number_from_time": BID + "SELECT ts - 5 AS before FROM bid;",
    "limit_by_a_column": BID + "SELECT auction FROM bid LIMIT price;",
    "limit_by_a_query": BID + "SELECT auction FROM bid LIMIT (SELECT 3);",
    "versions_with_a_key": "CREATE TABLE rates (cur VARCHAR, rate DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts,\n"
    "  PRIMARY KEY (cur) NOT ENFORCED) WITH (path = 'rates.csv');",
    "negative_limit": BID + "SELECT auction FROM bid LIMIT -1;",
    "lag_ahead": BID + "SELECT LAG(price, -1) OVER (ORDER BY ts) AS next FROM bid;",
    "lead_by_names": BID + "SELECT LEAD(price, 1, d => 0.0) OVER (ORDER BY ts) AS next FROM bid;",
    "no_tiles": BID + "SELECT NTILE(0) OVER (ORDER BY price) AS part FROM bid;",
    "filter_by_a_number": BID + "SELECT COUNT(*) FILTER (WHERE price) AS n FROM bid;",
    "insert_of_a_number_as_a_time": BID
    + "CREATE SINK o (at TIMESTAMP) WITH (connector = 'file', path = 'o.csv');\n"
    + "INSERT INTO o SELECT auction AS at FROM bid;",
    "insert_widths": BID + "CREATE SINK o (auction BIGINT, price DOUBLE) WITH (connector = 'file', path = 'o.csv');\n"
    "INSERT INTO o SELECT auction FROM bid;",
    "range_of_time_by_a_number": BID + "SELECT SUM(price) OVER (ORDER BY ts RANGE 5 PRECEDING) AS recent FROM bid;",
    "keys_of_two_types": BID + SALE + "SELECT price FROM bid JOIN sale ON bid.item = sale.auction;",
    "join_of_itself_without_names": BID + "SELECT x.price FROM bid AS x JOIN bid AS y ON auction = y.auction;",
}

CASES = {
    **TWELVE,
    **NAMES,
    **TYPES,
    **WINDOWS,
    **OVER_AND_JOINS,
    **JOINS,
    **OF_SUB_QUERIES,
    **WINDOW_ARGUMENTS,
    **SEVERAL,
    **OFTEN_MADE,
    **NEAR_FORMS,
    **OF_TYPES,
}


def picture(text: str) -> str:
    """What the user sees. Fails when there is nothing wrong."""
    source = SourceText("q.cq", text)
    try:
        bind(parse(source), Environment(infer=infer))
    except CqError as error:
        return str(error.at(source)).replace(str(Path.cwd()), "HERE")
    raise AssertionError("no mistake was found")


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_drawn_with_its_cause_and_a_way_out(name: str, golden: Callable[[str, str], None]) -> None:
    text = CASES[name]
    golden(f"errors/{name}.txt", f"{text}\n\n{picture(text)}\n")


@pytest.mark.parametrize("name", CASES)
def test_every_mistake_has_a_code_a_place_and_a_way_out(name: str) -> None:
    source = SourceText("q.cq", CASES[name])
    with pytest.raises(CqError) as caught:
        bind(parse(source), Environment(infer=infer))
    for d in caught.value.diagnostics:
        assert d.span.line > 0 and d.span.column > 0
        assert any(d.help), f"{d.code} {d.message} has no way out"


def test_what_another_system_has_is_not_here() -> None:
    assert set(ELSEWHERE).isdisjoint(known_functions())


def test_a_picture_of_hostile_names_holds_no_control_characters() -> None:
    text = "CREATE STREAM s (k BIGINT) WITH (connector = 'file', path = 's.csv');\nSELECT \"a\x1b[31m\u202eb\" FROM s;"
    shown = picture(text)
    assert "\x1b" not in shown and "\u202e" not in shown


def test_the_wider_bound_of_a_way_out_takes_no_row_away() -> None:
    text = CASES["join_bounds_on_two_times"].replace(GENERATED, "'memory'")
    made = Prepared(text.replace("DAY;", "DAY AND q.ts <= x.ots + INTERVAL '1 day 1 hour';"))
    hour = 3_600_000_000
    bids, sales = [(1, 2.0, None, "pen", 0)], [(1, 0, None, 0), (1, 0, None, hour)]
    made.give({"bid": bids, "sale": sales, "q": [(0, 25 * hour), (0, 25 * hour + 1)]})
    assert made.reference().rows == {"result": ((0,),)}, "at the last moment that the first condition allows"
