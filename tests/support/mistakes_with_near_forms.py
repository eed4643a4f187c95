"""Mistakes beside which several queries stand, of which one means the same: the way out is that one."""

from __future__ import annotations

from mistakes_in_triggers import BID

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
}
