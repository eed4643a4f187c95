"""Mistakes with types that do not go together, and with BINARY: beside a text or a number, in functions of texts."""

from __future__ import annotations

from mistakes_in_triggers import BID

OF_TYPES = {
    "types_apart": BID
    + "SELECT CAST(CAST(ts AS DATE) AS BIGINT), CAST(item AS INTERVAL), CAST(auction AS DATE),\n"
    + "  COALESCE(auction, CAST(price AS DECIMAL(38, 20))), CAST(ts AS DATE) + auction FROM bid;",
    "bytes_and_text": "CREATE STREAM s (id BINARY, code VARCHAR, n BIGINT) WITH (connector = 'memory');\n"
    "SELECT id = code AS a, id <> 'ff00' AS b, id IN ('ab c') AS c, id || code AS d, COALESCE(id, code) AS e,\n"
    "  CAST(n AS BINARY) AS f, CAST(id AS BIGINT) AS g, UPPER(id) AS h, ENCODE(code, 'latin1') AS i,\n"
    "  ENCODE(id) AS j, DECODE(code) AS k, id LIKE 'a%' AS l,\n"
    "  id = n AS m, id + 1 AS o FROM s;",
    "bytes_of_a_fixed_length": "CREATE STREAM s (id BINARY(16)) WITH (connector = 'memory'); SELECT id FROM s;",
}
