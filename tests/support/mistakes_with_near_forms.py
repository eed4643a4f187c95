"""Mistakes beside which several queries stand, of which one means the same: the way out is that one."""

from __future__ import annotations

from mistakes_in_triggers import BID, PER_MIN

PER_HOUR = "\nSELECT window_start, COUNT(*) AS n FROM TUMBLE(v, ts, INTERVAL '1' HOUR) GROUP BY window_start;"
SALE = """CREATE STREAM sale (auction BIGINT, wait BIGINT, paid TIMESTAMP, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'file', path = 'sale.csv');
"""
NEAR_FORMS = {
    "interval_beside_text": BID
    + "SELECT auction FROM bid WHERE ts - TIMESTAMP '2024-01-31 10:00:00' > '00:10:00'\n"
    + "  OR ts - TIMESTAMP '2024-01-31 10:00:00' > '600' OR ts - TIMESTAMP '2024-01-31 10:00:00' > item;",
    "results_of_numbers_and_text": BID
    + "SELECT COALESCE(item, auction) AS a, CASE WHEN price > 1 THEN bid.price WHEN price > 2 THEN 1 ELSE 'x' END,\n"
    + "  IF(price > 1, ts, item) AS c, COALESCE(price, '5') AS d, COALESCE(SPLIT(item, ' '), item) AS e,\n"
    + "  DECODE(auction, 1, 2, 'more') AS f, price + 'x' AS g FROM bid;",
    "union_of_a_number_and_text": BID + "SELECT auction FROM bid UNION SELECT item FROM bid;",
    "elements_kept_by_a_left_join": BID
    + "SELECT b.auction, u.w FROM bid AS b LEFT JOIN UNNEST(SPLIT(b.item, ' ')) AS u(w) ON u.w LIKE '%t%';",
    "window_time_that_a_view_leaves_out": BID
    + PER_MIN
    + "SELECT window_start, SUM(n) AS n FROM TUMBLE(per_min, window_time, INTERVAL '1' HOUR) GROUP BY window_start;",
    "windows_of_sorted_rows": BID + "CREATE VIEW v AS SELECT auction, ts FROM bid ORDER BY ts LIMIT 100;" + PER_HOUR,
    "windows_of_ranked_rows": BID
    + "CREATE VIEW v AS SELECT auction, ts, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price) AS r FROM bid;"
    + PER_HOUR,
    "windows_of_joined_rows": BID
    + "CREATE STREAM cust (id BIGINT, name VARCHAR) WITH (connector = 'file', path = 'cust.csv');\n"
    + "CREATE VIEW v AS SELECT name, ts FROM bid JOIN cust ON auction = id;"
    + PER_HOUR,
    "asof_join_of_groups": BID
    + SALE
    + "SELECT wait, q.top FROM sale AS s\nASOF JOIN (SELECT auction, ts, MAX(price) AS top FROM bid "
    + "GROUP BY auction, ts) AS q ON s.auction = q.auction AND s.ts >= q.ts;",
    "asof_join_of_ranked_rows": BID
    + SALE
    + "SELECT wait, q.r FROM sale AS s\nASOF JOIN (SELECT auction, ts, RANK() OVER (ORDER BY price) AS r FROM bid) "
    + "AS q ON s.auction = q.auction AND s.ts >= q.ts;",
    "sub_query_before_a_window_of_group_by": BID
    + SALE
    + "SELECT COUNT(*) AS n FROM bid WHERE auction IN (SELECT auction FROM sale)\n"
    + "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR);",
    "sub_query_before_windows_of_rows": BID
    + SALE
    + "SELECT COUNT(*) AS n FROM TUMBLE(TABLE bid PARTITION BY auction, ROWS 3)\n"
    + "WHERE auction IN (SELECT auction FROM sale) GROUP BY auction;",
    "rank_tested_in_where": BID
    + "SELECT auction, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts) AS r FROM bid WHERE r < 3;\n"
    + "SELECT auction, COUNT(*) AS n FROM bid WHERE n > 3 GROUP BY auction;",
    "lateral_first_by_qualify": BID
    + SALE
    + "SELECT b.price, l.wait FROM bid AS b, LATERAL (SELECT wait FROM sale AS s WHERE s.auction = b.auction\n"
    + "QUALIFY ROW_NUMBER() OVER (ORDER BY wait) = 1) AS l;",
    "having_in_a_value": BID
    + SALE
    + "SELECT price, (SELECT SUM(wait) FROM sale AS s WHERE s.auction = b.auction HAVING SUM(wait) > 10) AS w\n"
    + "FROM bid AS b;",
    "sessions_grouped_by_more": BID
    + "SELECT item, COUNT(*) AS n FROM SESSION(TABLE bid PARTITION BY auction, ts, INTERVAL '1' MINUTE)\n"
    + "GROUP BY window_start, window_end, auction, item;",
    "windows_of_another_time": SALE
    + "SELECT window_start, COUNT(*) AS n FROM TUMBLE(sale, paid, INTERVAL '1' HOUR) GROUP BY window_start;",
}
