"""Mistakes with sub-queries and with joins without an end, and the streams that mistakes are made with."""

from __future__ import annotations

import re

from mistakes_in_triggers import BID

SALE = """CREATE STREAM sale (auction BIGINT, wait BIGINT, paid TIMESTAMP, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'file', path = 'sale.csv');
"""
GENERATED = "'generator', workload = 'bids'"


def endless(streams: str) -> str:
    """The streams without an end."""
    return re.sub(r"'file', path = '\w+\.csv'", GENERATED, streams)


LIVE_BID, LIVE_SALE = endless(BID), endless(SALE)
LIVE_ITEM = LIVE_BID + "CREATE STREAM item (auction BIGINT, name VARCHAR) WITH (path = 'i.csv');\n"

OF_SUB_QUERIES = {
    "lateral": BID
    + SALE
    + "".join(
        f"CREATE VIEW v{n} AS SELECT price FROM bid {join};\n"
        for n, join in enumerate(
            [
                "FULL JOIN LATERAL (SELECT wait FROM sale WHERE sale.auction = bid.auction) AS l ON TRUE",
                "LEFT JOIN LATERAL (SELECT wait FROM sale WHERE sale.auction = bid.auction) AS l ON wait > 1",
                ", LATERAL (SELECT DISTINCT wait FROM sale WHERE sale.auction = bid.auction) AS l",
                ", LATERAL (SELECT wait + price AS w FROM sale WHERE sale.auction = bid.auction) AS l",
                ", LATERAL (SELECT wait FROM sale WHERE sale.ts <= bid.ts ORDER BY sale.ts DESC LIMIT 1) AS l",
                ", LATERAL (SELECT SUM(wait) OVER () AS w FROM sale WHERE sale.ts <= bid.ts) AS l",
                "LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM sale WHERE sale.auction = bid.auction) AS l ON n > 1",
            ]
        )
    ),
    "exists_in_join": BID + SALE + "SELECT price FROM bid FULL JOIN sale ON EXISTS (SELECT 1 FROM sale);",
    "value_of_several_rows": BID
    + SALE
    + "SELECT (SELECT wait + MAX(wait) FROM sale WHERE sale.auction = bid.auction) AS v FROM bid;",
    "value_of_several_columns": BID + SALE + "SELECT price FROM bid WHERE auction = (SELECT * FROM sale);",
    "in_of_several_columns": BID + SALE + "SELECT price FROM bid WHERE auction IN\n"
    "(SELECT auction, wait FROM sale WHERE sale.ts > bid.ts);",
    "groups_of_a_row": BID + SALE + "SELECT price FROM bid WHERE EXISTS (SELECT 1 FROM sale\n"
    "WHERE sale.auction = bid.auction GROUP BY wait HAVING COUNT(*) > 1);",
    "not_exists_without_end": LIVE_BID + "SELECT b.price FROM bid AS b WHERE NOT EXISTS (SELECT 1 FROM bid AS c\n"
    "  WHERE c.auction = b.auction OR c.price > b.price);\n"
    "SELECT price FROM bid AS b WHERE NOT EXISTS (SELECT 1 FROM bid c WHERE c.auction = b.auction AND c.ts > b.ts);\n"
    "SELECT b.price FROM bid AS b WHERE NOT EXISTS (SELECT 1 FROM bid WHERE auction = b.auction);",
    "anti_join_without_end": LIVE_BID + "SELECT a.price FROM bid AS a ANTI JOIN bid AS b ON a.auction = b.auction;\n"
    "SELECT price FROM bid ANTI JOIN bid AS b USING (auction);",
    "rows_not_in_without_end": LIVE_BID + "SELECT price FROM bid\n"
    "WHERE (auction, price) NOT IN (SELECT auction, price FROM bid WHERE price > 5);",
    "value_for_each_row_without_end": LIVE_ITEM
    + "SELECT price, (SELECT name FROM item AS i WHERE i.auction = bid.auction LIMIT 1) AS name FROM bid;\n"
    "SELECT price FROM bid WHERE price > 10 OR auction IN (SELECT auction FROM item);",
    "outer_join_with_groups_of_a_file": LIVE_ITEM
    + "SELECT price, t.name FROM bid LEFT JOIN (SELECT auction, MAX(name) AS name FROM item GROUP BY auction) AS t\n"
    "  ON t.auction = bid.auction;",
    "names_from_two_levels_out": BID + SALE + "SELECT price FROM bid AS b\n"
    "WHERE EXISTS (SELECT 1 FROM sale AS s WHERE s.auction > b.auction\n"
    "  AND EXISTS (SELECT 1 FROM sale AS r WHERE r.wait = b.auction AND r.auction = s.wait));",
    "limit_of_each_group": BID + SALE + "SELECT price FROM bid WHERE auction > (SELECT wait FROM sale AS s\n"
    "  WHERE s.auction = bid.auction ORDER BY wait DESC LIMIT 1 OFFSET 2);\n"
    "SELECT price FROM bid WHERE auction IN (SELECT wait FROM sale WHERE sale.auction = bid.auction AND wait > 1\n"
    "  ORDER BY wait LIMIT 2);\n"
    "SELECT price, l.wait FROM bid, LATERAL (SELECT wait FROM sale AS s\n"
    "  WHERE s.auction = bid.auction OR s.wait = bid.auction ORDER BY s.wait LIMIT 2) AS l;",
    "not_in_without_end": LIVE_BID + SALE + "SELECT price FROM bid WHERE auction NOT IN (SELECT auction FROM sale);",
    "file_beside_no_end": LIVE_ITEM + "SELECT name FROM item WHERE auction NOT IN (SELECT auction FROM bid);\n"
    "SELECT name, price FROM item FULL JOIN bid ON item.auction = bid.auction;\n"
    "SELECT price FROM bid WHERE auction NOT IN (SELECT MAX(auction) FROM item GROUP BY name);",
    "groups_beside_no_end": LIVE_BID
    + SALE
    + "SELECT price, m FROM bid JOIN (SELECT auction, MAX(wait) AS m FROM sale GROUP BY auction) AS s\n"
    "ON s.auction = bid.auction;",
    "value_without_end": LIVE_BID + SALE + "SELECT price FROM bid WHERE auction > (SELECT AVG(wait) FROM sale);",
    "value_in_an_over": BID + SALE + "SELECT SUM(price - (SELECT AVG(wait) FROM sale)) OVER () AS s FROM bid;",
    "outer_name_in_an_aggregate": BID
    + SALE
    + "SELECT price, (SELECT MAX(wait + b.price) FROM sale AS s WHERE s.auction = b.auction) AS m FROM bid AS b\n"
    "WHERE EXISTS (SELECT 1 FROM sale AS s WHERE wait IN (SELECT wait FROM sale AS t WHERE t.auction = b.auction));",
    "sub_query_before_a_window": LIVE_BID
    + LIVE_SALE
    + "SELECT COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)\n"
    "WHERE auction IN (SELECT auction FROM sale) GROUP BY window_start;\n"
    "SELECT COUNT(*) FROM TUMBLE((SELECT * FROM bid AS b WHERE auction IN (SELECT auction FROM sale)), ts,\n"
    "  INTERVAL '1' MINUTE) GROUP BY window_start;",
    "sub_query_by_the_time_in_a_session": LIVE_BID
    + LIVE_SALE
    + "SELECT b.auction FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '1' MINUTE) AS b\n"
    "WHERE NOT EXISTS (SELECT 1 FROM sale AS c WHERE c.auction = b.auction\n"
    "  AND c.ts BETWEEN b.ts AND b.ts + INTERVAL '5' SECOND);\n"
    "SELECT b.auction, COUNT(*) AS n FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts),\n"
    "  INTERVAL '1' MINUTE) AS b WHERE EXISTS (SELECT 1 FROM sale AS d WHERE d.auction = b.auction\n"
    "  AND d.ts BETWEEN b.ts AND b.ts + INTERVAL '9' SECOND) GROUP BY window_start, window_end, b.auction;",
    "semi_join_of_windows_that_are_grouped": LIVE_BID
    + LIVE_SALE
    + "SELECT a.auction, COUNT(*) AS n FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts),\n"
    "  INTERVAL '1' MINUTE) AS a SEMI JOIN sale AS b ON a.auction = b.auction\n"
    "GROUP BY window_start, window_end, a.auction;",
}
