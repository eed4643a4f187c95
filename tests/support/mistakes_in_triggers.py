"""Mistakes in triggers, and in queries of their tables: the texts of tests/planner/test_binder_mistakes.py."""

from __future__ import annotations

BID = """CREATE STREAM bid (auction BIGINT, price DOUBLE, amount DECIMAL(12,2), item VARCHAR, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector = 'file', path = 'bid.csv');
"""
ACCOUNT = BID + "CREATE TABLE account (card VARCHAR PRIMARY KEY, n BIGINT NOT NULL DEFAULT 0 CHECK (n >= 0));\n"
PER_MIN = """CREATE VIEW per_min AS SELECT window_start, window_end, auction, COUNT(*) AS n
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, auction;
"""
OF_TRIGGERS = {
    "trigger_without_key": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid\nUPDATE account SET n = n + 1 WHERE n > new.price;",
    "trigger_selects_without_key": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid\nSELECT card, n FROM account WHERE n > 3;",
    "trigger_value_without_key": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid\nSELECT new.ts, (SELECT n FROM account WHERE n > 3) AS n;",
    "trigger_key_of_its_own": ACCOUNT + "CREATE TABLE a (auction BIGINT PRIMARY KEY, n INT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid UPDATE a SET n = 1 WHERE a.auction = auction;",
    "trigger_key_of_another_column": ACCOUNT + "CREATE TABLE a (auction BIGINT PRIMARY KEY, n INT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM a WHERE n = auction;",
    "trigger_reads_its_stream": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid SELECT new.item FROM bid;",
    "trigger_changes_its_stream": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE bid SET price = 1 WHERE auction = new.auction;",
    "trigger_reads_a_trigger": ACCOUNT + "CREATE TRIGGER u AFTER INSERT ON bid SELECT item, 1 AS n;\n"
    "CREATE TRIGGER t AFTER INSERT ON bid SELECT (SELECT n FROM u WHERE item = new.item) AS n;",
    "trigger_changes_a_view": ACCOUNT
    + PER_MIN
    + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM per_min WHERE auction = new.auction;",
    "trigger_part_of_key": BID + "CREATE TABLE a (x BIGINT, y BIGINT, PRIMARY KEY (x, y));\n"
    "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM a WHERE x = new.auction;",
    "trigger_key_of_another_type": BID + "CREATE TABLE a (x BIGINT PRIMARY KEY, y BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid UPDATE a SET y = 1 WHERE x = new.price;",
    "table_by_an_array": BID + "CREATE TABLE a (x BIGINT[] PRIMARY KEY, y BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid UPDATE a SET y = y + 1 WHERE x = [new.auction];\nSELECT y FROM a;",
    "trigger_table": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM acount WHERE card = new.item;",
    "trigger_column": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET m = 1 WHERE card = item;",
    "trigger_old_row": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET n = old.n + 1 WHERE card = item;",
    "trigger_old_event": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid SELECT old.item;",
    "trigger_old_column": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid SELECT old.cost;",
    "trigger_qualifier": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET n = event.auction WHERE card = item;",
    "trigger_sets_key": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET card = 'x' WHERE card = item;",
    "trigger_type": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET n = new.item WHERE card = item;",
    "trigger_outputs": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid BEGIN\n"
    "  SELECT new.item, price; SELECT new.item, new.item; END;",
    "trigger_group_by": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid SELECT card, n FROM account GROUP BY card;",
    "trigger_after_query": ACCOUNT + "SELECT * FROM account;\n"
    "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account WHERE card = new.item;",
    "trigger_on_table": ACCOUNT
    + "CREATE TABLE seen (card VARCHAR PRIMARY KEY);\nCREATE TRIGGER t AFTER INSERT ON bid\n"
    "INSERT INTO account VALUES (item, 1) ON CONFLICT (card) DO UPDATE SET n = n + 1;\n"
    "CREATE TRIGGER u AFTER INSERT ON account INSERT INTO seen VALUES (new.card) ON CONFLICT (card) DO NOTHING;",
    "trigger_when": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "WHEN ((SELECT n FROM account WHERE card = item) > 3) DELETE FROM account WHERE card = item;",
    "table_that_ends_never": "CREATE STREAM live (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts)\n"
    "WITH (connector = 'generator', workload = 'bids');\nCREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON live INSERT INTO a VALUES (k, 1) ON CONFLICT (k) DO UPDATE SET n = a.n + 1;\n"
    "SELECT * FROM a;",
    "trigger_cascade": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account WHERE card = new.item;\n"
    "CREATE TRIGGER u AFTER INSERT ON t DELETE FROM account WHERE card = new.item || 'x';",
    "look_up_of_two_tables": ACCOUNT + "CREATE TABLE b (k VARCHAR PRIMARY KEY, m BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid BEGIN DELETE FROM account WHERE card = item;\n"
    "  DELETE FROM b WHERE k = item; END;\n"
    "SELECT n, m FROM bid LEFT JOIN account FOR SYSTEM_TIME AS OF bid.ts ON card = bid.item\n"
    "LEFT JOIN b FOR SYSTEM_TIME AS OF bid.ts ON b.k = bid.item || 'x';",
    "look_up_of_own_table": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account WHERE card = new.item;\n"
    "SELECT t.ts, n FROM t LEFT JOIN account FOR SYSTEM_TIME AS OF t.ts ON card = t.item;",
    "look_up_by_another_column": ACCOUNT
    + "SELECT b.ts, a.n FROM bid AS b JOIN account FOR SYSTEM_TIME AS OF b.ts AS a ON a.n = b.price;",
    "look_up_of_windows_and_events": ACCOUNT
    + PER_MIN
    + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account WHERE card = new.item;\nSELECT * FROM t;\n"
    "SELECT p.n, a.n FROM per_min AS p JOIN account FOR SYSTEM_TIME AS OF p.window_end AS a "
    "ON a.card = CAST(p.auction AS VARCHAR);",
    "look_up_of_windows_above_one_of_events": ACCOUNT
    + PER_MIN
    + "SELECT p.n, a.n FROM per_min AS p JOIN account FOR SYSTEM_TIME AS OF p.window_end AS a "
    "ON a.card = CAST(p.auction AS VARCHAR);\n"
    "SELECT b.ts, a.n FROM bid AS b JOIN account FOR SYSTEM_TIME AS OF b.ts AS a ON a.card = b.item;",
    "look_up_of_windows_beside_one_of_events": ACCOUNT
    + PER_MIN
    + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account WHERE card = new.item;\n"
    "SELECT p.n, a.n FROM per_min AS p JOIN account FOR SYSTEM_TIME AS OF p.window_end AS a "
    "ON a.card = CAST(p.auction AS VARCHAR);\n"
    "SELECT b.ts, a.n FROM bid AS b JOIN account FOR SYSTEM_TIME AS OF b.ts AS a ON a.card = b.item;",
    "trigger_rows_of_array": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "  SELECT n FROM account, UNNEST(SPLIT(item, ' ')) AS u(k) WHERE card = k;",
    "trigger_column_of_array": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "  SELECT n, SUM(n) AS s FROM account, UNNEST(SPLIT(item, ' ')) AS u(k) WHERE card = k;",
    "trigger_aggregate_of_array": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "  SELECT AVG(n) FROM account, UNNEST(SPLIT(item, ' ')) AS u(k) WHERE card = k;",
    "trigger_names_of_arrays": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "  UPDATE account SET n = 1 FROM UNNEST(SPLIT(item, ' '), SPLIT(item, ' ')) AS u(k) WHERE card = k;",
    "trigger_keys_and_other_rows": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "UPDATE account SET n = (SELECT n FROM account WHERE card = 'x') WHERE card IN (new.item, 'y');",
    "trigger_inserts_rows_and_reads_others": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "INSERT INTO account VALUES ('x', 1), (new.item, 2)\n"
    "  ON CONFLICT (card) DO UPDATE SET n = (SELECT n FROM account WHERE card = 'x');",
    "trigger_value_of_several_rows": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "SELECT (SELECT n FROM account WHERE card IN (item, 'x')) AS n;",
    "table_without_changes": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "SELECT n FROM account WHERE card = item;\nSELECT * FROM account_changes;",
    "table_changes_with_an_op": BID + "CREATE TABLE a (k BIGINT PRIMARY KEY, op BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM a WHERE k = auction;\nSELECT * FROM a_changes;",
    "trigger_updates_from_table": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET n = b.n FROM account AS b WHERE account.card = item;",
    "trigger_deletes_using_table": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account USING account AS b WHERE account.card = b.card;",
    "trigger_inserts_from_table": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO account SELECT u.k, a.n\n"
    "FROM account AS a, UNNEST(SPLIT(item, ' ')) AS u(k) WHERE a.card = u.k;",
    "trigger_inserts_several_from_one_table": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "INSERT INTO account SELECT card || item, n FROM account WHERE card IN ('x', item);",
    "trigger_events_have_a_reason": ACCOUNT + "CREATE STREAM txn (\n"
    "reason VARCHAR, n BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'file', path = 'txn.csv');\n"
    "CREATE TRIGGER t AFTER INSERT ON txn UPDATE account SET n = new.n WHERE card = 'x';\n"
    "SELECT n, reason FROM t_rejected;",
    "trigger_updates_among": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "UPDATE account SET n = 1 WHERE card IN (SELECT u.k FROM UNNEST(SPLIT(item, ' ')) AS u(k));",
    "trigger_if_in": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "BEGIN IF item IN (SELECT card FROM account) THEN DELETE FROM account WHERE card = item; END IF; END;",
    "trigger_when_in": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "WHEN (item IN (SELECT card FROM account)) DELETE FROM account WHERE card = item;",
    "trigger_when_not_in": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "WHEN (item NOT IN (SELECT card FROM account WHERE n > 3)) DELETE FROM account WHERE card = item;",
    "trigger_when_in_array": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "WHEN (item IN (SELECT u.k FROM UNNEST(SPLIT(item, ' ')) AS u(k))) DELETE FROM account WHERE card = item;",
    "trigger_deletes_among_others": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account\n"
    "WHERE card = ANY (SPLIT(item, ' ')) AND EXISTS (SELECT 1 FROM account AS o WHERE o.card = 'x');",
    "trigger_deletes_two_among_one": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "DELETE FROM account WHERE card IN (SELECT u.k, 1 FROM UNNEST(SPLIT(item, ' ')) AS u(k));",
    "trigger_writes_its_stream": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO bid VALUES (1, 2, 3, new.item, ts);",
    "trigger_reads_a_view": ACCOUNT
    + PER_MIN
    + "CREATE TRIGGER t AFTER INSERT ON bid SELECT (SELECT n FROM per_min WHERE auction = new.auction) AS n;",
    "trigger_writes_a_trigger": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account WHERE card = item;\n"
    "CREATE TRIGGER u AFTER INSERT ON t INSERT INTO t VALUES (1);",
    "trigger_fired_by_itself": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON t_rejected DELETE FROM account WHERE card = new.item;",
    "triggers_in_a_circle": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON u DELETE FROM account WHERE card = new.item;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid SELECT item;",
    "view_of_a_later_one": BID + "CREATE VIEW a AS SELECT price FROM b;\nCREATE VIEW b AS SELECT price FROM bid;",
    "view_of_itself": BID + "CREATE VIEW a AS SELECT price FROM a;",
    "check_of_a_query": ACCOUNT + "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT CHECK (n < (SELECT 1)));\n"
    "CREATE TRIGGER t AFTER INSERT ON bid BEGIN UPDATE a SET n = 1 WHERE k = auction; END;",
    "default_of_a_query": BID + "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT DEFAULT (SELECT 1));",
    "default_in_an_expression": ACCOUNT + "INSERT INTO account VALUES ('x', DEFAULT + 1);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid BEGIN\n"
    "  UPDATE account SET n = DEFAULT + 1 WHERE card = item;\n"
    "  INSERT INTO account VALUES (item, COALESCE(DEFAULT, 1));\n"
    "  SELECT DEFAULT; END;\nSELECT DEFAULT FROM bid;",
    "trigger_inserts_distinct": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "INSERT INTO account (card) SELECT DISTINCT u.k FROM UNNEST(SPLIT(item, ' ')) AS u(k);",
    "trigger_inserts_union": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid BEGIN\n"
    "INSERT INTO account (card) SELECT item UNION ALL SELECT 'x'; END;",
    "trigger_deletes_first": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "DELETE FROM account WHERE card IN (SELECT u.k FROM UNNEST(SPLIT(item, ' ')) AS u(k) LIMIT 2);",
    "trigger_value_of_the_first": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "SELECT (SELECT n FROM account WHERE card = item ORDER BY n) AS n;",
    "trigger_exists_any": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "BEGIN IF EXISTS (SELECT 1 FROM account WHERE card = ANY (SPLIT(item, ' '))) THEN RAISE 'x'; END IF; END;",
    "trigger_exists_over_array": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid BEGIN\n"
    "IF EXISTS (SELECT 1 FROM account, UNNEST(SPLIT(item, ' ')) AS u(k) WHERE card = k) THEN RAISE 'x'; END IF; END;",
    "trigger_not_in_array": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET n = 1\n"
    "WHERE card = item AND card NOT IN (SELECT u.k FROM UNNEST(SPLIT(item, ' ')) AS u(k));",
    "trigger_not_in_table": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET n = 1\n"
    "WHERE card = item AND 'x' NOT IN (SELECT card FROM account);",
    "trigger_key_by_its_row": BID + "CREATE TABLE a (x BIGINT PRIMARY KEY, y BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid UPDATE a SET y = 1 WHERE x = (SELECT o.y FROM a AS o WHERE o.x = a.y);",
    "trigger_of_many_rows": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid BEGIN "
    + "".join(f"DELETE FROM account WHERE card = item || '{n}'; " for n in range(33))
    + "END;",
    "trigger_of_many_rows_at_once": BID + "CREATE TABLE a (x BIGINT, y BIGINT, PRIMARY KEY (x, y));\n"
    "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM a\n"
    "WHERE x IN (auction, 1, 2, 3, 4, 5) AND y IN (auction, 1, 2, 3, 4, 5);",
    "trigger_with_many_more_rows": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid BEGIN "
    + "".join(f"DELETE FROM account WHERE card = item || '{n}'; " for n in range(36))
    + "END;",
    "trigger_with_a_mistake_in_each_statement": ACCOUNT + "CREATE TABLE wrong (k VARCHAR PRIMARY KEY, n BIGNT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid WHEN (new.prise > 1) BEGIN\n"
    "  SELECT new.prize, auction;\n"
    "  UPDATE account SET m = 1 WHERE card = item;\n"
    "  INSERT INTO wrong VALUES (item, 1);\n"
    "  DELETE FROM account WHERE card = (SELECT k FROM wrong WHERE k = item);\n"
    "  IF new.prce > 1 THEN DELETE FROM acount WHERE card = item;\n"
    "  ELSEIF auction > 2 THEN RAISE new.itm;\n"
    "  ELSE RAISE new.iten; END IF;\n"
    "  SELECT auction; SELECT new.item, 'x', 1; END;\nSELECT * FROM t;",
    "trigger_writes_a_view": ACCOUNT
    + PER_MIN
    + "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO per_min VALUES (new.ts, new.ts, 1, 2);",
    "trigger_of_a_sink_with_a_mistake": BID + "CREATE SINK o (k BIGINT) WITH (connector = 'file', path = 'o.csv');\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auctoin);",
    "inserted_column_named_twice": BID + "CREATE STREAM o (k BIGINT, n BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o (k, k) VALUES (new.auction, 1);\nSELECT k FROM o;",
    "initial_column_named_twice": "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT);\n"
    "INSERT INTO a (k, k) VALUES (1, 2);\nSELECT * FROM a;",
    "trigger_below_those_it_shares_tables_with": ACCOUNT + "CREATE STREAM o (k BIGINT);\nCREATE STREAM p (k BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid BEGIN\n"
    "  DELETE FROM account WHERE card = new.item; INSERT INTO p VALUES (new.auction); END;\n"
    "CREATE TRIGGER u AFTER INSERT ON p INSERT INTO o VALUES (new.k);\n"
    "CREATE TRIGGER v AFTER INSERT ON bid DELETE FROM account WHERE card = new.item || 'x';\nSELECT k FROM o;",
    "filled_stream_fires_a_trigger_on_its_tables": ACCOUNT + "CREATE STREAM o (k VARCHAR);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid BEGIN\n"
    "  DELETE FROM account WHERE card = new.item; INSERT INTO o VALUES (new.item); END;\n"
    "CREATE TRIGGER u AFTER INSERT ON o DELETE FROM account WHERE card = new.k || 'x';\nSELECT * FROM account;",
    "looked_up_rows_fire_a_trigger_on_their_table": ACCOUNT + "CREATE VIEW e AS SELECT bid.item, account.n, bid.ts\n"
    "FROM bid LEFT JOIN account FOR SYSTEM_TIME AS OF bid.ts ON account.card = bid.item;\n"
    "CREATE TRIGGER t AFTER INSERT ON e UPDATE account SET n = new.n + 1 WHERE card = new.item;\nSELECT n FROM e;",
    "loaded_rows_fire_a_trigger_on_their_table": "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT)\n"
    "WITH (connector = 'file', path = 'a.csv');\nCREATE VIEW e AS SELECT k, n FROM a;\n"
    "CREATE TRIGGER t AFTER INSERT ON e UPDATE a SET n = new.n + 1 WHERE k = new.k;\nSELECT n FROM e;",
    "filled_stream_of_a_changed_time": BID + "CREATE STREAM o (k BIGINT, at TIMESTAMP);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction, new.ts + INTERVAL '1' MINUTE);\n"
    "SELECT COUNT(*) AS n FROM TUMBLE(o, at, INTERVAL '1' MINUTE) GROUP BY window_end;",
    "trigger_fills_its_stream": BID + "CREATE STREAM o (k BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON o INSERT INTO o VALUES (new.k);",
    "triggers_fill_a_ring": BID + "CREATE STREAM o (k BIGINT);\nCREATE STREAM p (k BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);\n"
    "CREATE TRIGGER u AFTER INSERT ON o INSERT INTO p VALUES (new.k);\n"
    "CREATE TRIGGER v AFTER INSERT ON p INSERT INTO o VALUES (new.k);",
    "trigger_on_a_stream_filled_below": BID + "CREATE STREAM o (k BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON o SELECT new.k;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);",
    "query_of_a_stream_filled_below": BID + "CREATE STREAM o (k BIGINT);\nSELECT k FROM o;\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);",
    "trigger_fills_what_is_read": BID + "CREATE STREAM o (k BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);\nSELECT k FROM o;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid INSERT INTO o VALUES (7);",
    "trigger_fills_a_later_stream": BID + "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);\n"
    "CREATE STREAM o (k BIGINT);",
    "trigger_fills_by_conflict": BID + "CREATE STREAM o (k BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction) ON CONFLICT DO NOTHING;",
    "trigger_fills_by_group": BID + "CREATE STREAM o (k BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o SELECT new.auction ORDER BY 1;",
    "trigger_fills_too_few_columns": BID + "CREATE STREAM o (k BIGINT, n BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);",
    "filled_stream_without_columns": BID + "CREATE STREAM o;\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);",
    "filled_stream_of_rows": BID + "CREATE STREAM o (a ROW<b BIGINT, c BIGINT>);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);",
    "filled_stream_with_a_delay": BID
    + "CREATE STREAM o (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction, new.ts);",
    "filled_stream_of_a_computed_time": BID
    + "CREATE STREAM o (ts TIMESTAMP, day AS DATE_TRUNC('day', ts), WATERMARK FOR day);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.ts);",
    "filled_stream_of_another_time": BID + "CREATE STREAM o (k BIGINT, at TIMESTAMP, WATERMARK FOR at);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction, new.ts + INTERVAL '1' HOUR);\n"
    "SELECT * FROM o;",
    "filled_stream_of_events_without_time": "CREATE STREAM s (k BIGINT) WITH (connector = 'file', path = 's.csv');\n"
    "CREATE STREAM o (k BIGINT, at TIMESTAMP, WATERMARK FOR at);\n"
    "CREATE TRIGGER t AFTER INSERT ON s INSERT INTO o VALUES (new.k, TIMESTAMP '2024-01-01');\nSELECT * FROM o;",
    "filled_stream_beside_events_without_time": ACCOUNT
    + "CREATE STREAM s (k VARCHAR) WITH (connector = 'file', path = 's.csv');\n"
    "CREATE STREAM o (k VARCHAR, at TIMESTAMP, WATERMARK FOR at);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid BEGIN DELETE FROM account WHERE card = new.item;\n"
    "  INSERT INTO o VALUES (new.item, new.ts); END;\n"
    "CREATE TRIGGER u AFTER INSERT ON s DELETE FROM account WHERE card = new.k;\nSELECT * FROM o;",
    "trigger_fills_a_sink_without_columns": BID + "CREATE SINK o WITH (connector = 'file', path = 'o.csv');\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);",
    "trigger_fills_a_sink_of_a_query": BID + "CREATE SINK o (k BIGINT) WITH (connector = 'file', path = 'o.csv');\n"
    "INSERT INTO o SELECT auction FROM bid;\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);",
    "query_fills_a_sink_of_a_trigger": BID + "CREATE SINK o (k BIGINT) WITH (connector = 'file', path = 'o.csv');\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o VALUES (new.auction);\n"
    "INSERT INTO o SELECT auction FROM bid;",
    "trigger_changes_a_sink": BID + "CREATE SINK o (k BIGINT) WITH (connector = 'file', path = 'o.csv');\n"
    "CREATE TRIGGER t AFTER INSERT ON bid UPDATE o SET k = 1 WHERE k = new.auction;",
    "trigger_key_of_text_by_another_type": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid DELETE FROM account WHERE card = new.auction;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid DELETE FROM account AS a WHERE a.n > 1 AND DATE '2024-01-31' = a.card;\n"
    "CREATE TRIGGER v AFTER INSERT ON bid DELETE FROM account WHERE card = new.item AND n = new.item;",
    "trigger_leaves_columns_out": BID + "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);\n"
    "CREATE STREAM o (k BIGINT, n BIGINT NOT NULL);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO a (k) VALUES (auction);\n"
    "CREATE TRIGGER u AFTER INSERT ON bid INSERT INTO a (n) VALUES (1);\n"
    "CREATE TRIGGER v AFTER INSERT ON bid INSERT INTO a (k) VALUES (ROUND(price)::BIGINT)\n"
    "  ON CONFLICT (k) DO UPDATE SET n = n + 1;\n"
    "CREATE TRIGGER w AFTER INSERT ON bid INSERT INTO o (k) SELECT new.auction WHERE price > 3;",
    "trigger_gives_null": BID + "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO a VALUES (auction, NULL) ON CONFLICT (k) DO NOTHING;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid UPDATE a SET n = CAST(NULL AS BIGINT) WHERE k = auction;\n"
    "CREATE TRIGGER v AFTER INSERT ON bid UPDATE a SET n = NULL WHERE k = auction;",
    "trigger_constants_of_another_type": BID + "CREATE TABLE a (k BIGINT PRIMARY KEY, n TINYINT, d DATE);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid UPDATE a SET n = 'text' WHERE k = auction;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid UPDATE a SET n = 300 WHERE k = auction;\n"
    "CREATE TRIGGER v AFTER INSERT ON bid INSERT INTO a (k) VALUES (auction)\n"
    "  ON CONFLICT (k) DO UPDATE SET d = '2024-13-01';",
    "initial_row_that_fails_a_check": "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT CHECK (100 / n > 1));\n"
    "INSERT INTO a VALUES (1, 2), (2, 0);",
    "mistake_beside_changes_that_are_read": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid UPDATE account SET m = 1 WHERE card = item;\n"
    "SELECT * FROM account_changes;",
    "trigger_over": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid SELECT item, ROW_NUMBER() OVER (ORDER BY ts) AS n;",
    "trigger_derived_table": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid SELECT q.n FROM (SELECT LENGTH(new.item) AS n) AS q;",
    "initial_rows_by_conflict": ACCOUNT
    + "INSERT INTO account VALUES ('a', 1), ('b', 2) ON CONFLICT DO NOTHING;\nSELECT * FROM account;",
    "initial_rows_of_a_file_by_conflict": ACCOUNT
    + "INSERT INTO account SELECT item, price FROM bid ON CONFLICT (card) DO NOTHING;\nSELECT * FROM account;",
    "initial_rows_of_a_query": ACCOUNT + "INSERT INTO account SELECT 'a', 1;\nSELECT * FROM account;",
    "trigger_fills_by_rows_of_an_array": ACCOUNT + "CREATE STREAM o (k VARCHAR, n BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid INSERT INTO o\n"
    "  SELECT card, n FROM account, UNNEST(SPLIT(item, ' ')) AS u(k) WHERE card = u.k;",
    "trigger_aggregates_several_keys": ACCOUNT + "CREATE STREAM o (n BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid SELECT SUM(n) AS n FROM account WHERE card IN (new.item, 'x');\n"
    "CREATE TRIGGER u AFTER INSERT ON bid INSERT INTO o SELECT MAX(n) FROM account WHERE card = item OR card = 'x';",
    "trigger_aggregates_elements": ACCOUNT + "CREATE STREAM o (k VARCHAR);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid SELECT (SELECT MAX(q.w) FROM UNNEST(SPLIT(item, ' ')) AS q(w)) AS w;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid SELECT COUNT(*) AS n FROM UNNEST(SPLIT(item, ' ')) AS q(w) WHERE w > 'b';\n"
    "CREATE TRIGGER v AFTER INSERT ON bid SELECT COUNT(*) AS n FROM UNNEST(SPLIT(item, ' ')) AS q;\n"
    "CREATE TRIGGER w AFTER INSERT ON bid SELECT q.w FROM UNNEST(SPLIT(item, ' ')) AS q(w);",
    "trigger_default_that_is_none": BID + "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);\n"
    "CREATE STREAM o (k BIGINT, n BIGINT NOT NULL);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid UPDATE a SET n = DEFAULT WHERE k = auction;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid INSERT INTO a VALUES (auction, DEFAULT) ON CONFLICT DO NOTHING;\n"
    "CREATE TRIGGER v AFTER INSERT ON bid INSERT INTO o VALUES (auction, DEFAULT);",
    "default_of_no_table": "SELECT * FROM (VALUES (1, DEFAULT)) AS t(a, b);",
    "trigger_raises_as_sqlite": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid SELECT RAISE(ABORT, 'no price') WHERE new.price IS NULL;",
    "trigger_with": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid\n"
    "  WITH q AS (SELECT n FROM account WHERE card = item) SELECT new.ts, n FROM q;",
    "trigger_limit": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid SELECT n FROM account WHERE card = item LIMIT 1;",
    "trigger_outputs_of_two_widths": ACCOUNT + "CREATE TRIGGER t AFTER INSERT ON bid BEGIN\n"
    "  SELECT new.item; SELECT new.item, new.price; END;",
    "trigger_stars_of_one_name": BID + "CREATE TABLE a (auction BIGINT PRIMARY KEY, n BIGINT);\n"
    "CREATE TRIGGER t AFTER INSERT ON bid SELECT new.*, a.* FROM a WHERE a.auction = new.auction;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid SELECT new.item, n AS item FROM a WHERE a.auction = new.auction;",
    "trigger_star_without_columns": ACCOUNT
    + "CREATE TRIGGER t AFTER INSERT ON bid SELECT a.* EXCLUDE (m) FROM account AS a WHERE card = item;\n"
    "CREATE TRIGGER u AFTER INSERT ON bid SELECT * EXCLUDE (card, n) FROM account WHERE card = item;\n"
    "CREATE TRIGGER v AFTER INSERT ON bid SELECT * REPLACE (1 AS n) FROM account WHERE card = item;",
    "look_up_as_of_an_expression": ACCOUNT
    + "SELECT bid.ts, n FROM bid JOIN account FOR SYSTEM_TIME AS OF bid.ts + INTERVAL '1' SECOND ON card = bid.item;",
}
