"""The `cq docs` entries of forms that look like functions but are not: each has its own grammar or binding.

Examples that begin with SELECT are over `s (k BIGINT, x BIGINT, items BIGINT ARRAY, ts TIMESTAMP, WATERMARK FOR ts)`.
"""

from __future__ import annotations

from cq.cli.entries import HelpEntry

_BY_TIME = "OVER (PARTITION BY k ORDER BY ts)"
_GROUPED = "GROUP BY window_start, window_end"


def _form(names: str, shape: str, doc: str, *examples: str) -> HelpEntry:
    return HelpEntry(tuple(names.split()), shape, doc, examples, ())


FORMS: tuple[HelpEntry, ...] = (
    _form(
        "cast",
        "CAST(x AS TYPE), x::TYPE",
        "The value in another type; a value that cannot be converted stops the query.",
        "CAST('12' AS BIGINT) = 12",
        "'2.50'::DECIMAL(5, 2) = 2.5",
    ),
    _form(
        "try_cast",
        "TRY_CAST(x AS TYPE)",
        "Like CAST, but NULL for a value that cannot be converted.",
        "TRY_CAST('x' AS BIGINT) IS NULL",
    ),
    _form("coalesce ifnull nvl", "COALESCE(x, y, …)", "The first value that is not NULL.", "COALESCE(NULL, 2, 3) = 2"),
    _form("nullif", "NULLIF(x, y)", "NULL if x equals y, else x.", "NULLIF(1, 1) IS NULL", "NULLIF(1, 2) = 1"),
    _form("if", "IF(condition, x, y)", "x if the condition is TRUE, else y.", "IF(1 < 2, 'a', 'b') = 'a'"),
    _form(
        "case",
        "CASE WHEN condition THEN x … [ELSE y] END, CASE value WHEN v THEN x … END",
        "The x of the first condition that is TRUE, or of the first v that equals the value; ELSE, or NULL, "
        "if there is none.",
        "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END = 'b'",
        "CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END = 'b'",
    ),
    _form(
        "extract date_part datepart",
        "EXTRACT(PART FROM time), DATE_PART('part', time)",
        "A part of a time as a number: YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, DOW, DOY and others.",
        "EXTRACT(HOUR FROM TIMESTAMP '2024-01-31 10:20:30') = 10",
    ),
    _form(
        "date_trunc time_trunc",
        "DATE_TRUNC('unit', time)",
        "The start of the unit that contains the time: 'year', 'quarter', 'month', 'week', 'day', 'hour', 'minute' …",
        "DATE_TRUNC('hour', TIMESTAMP '2024-01-31 10:20:30') = TIMESTAMP '2024-01-31 10:00:00'",
    ),
    _form(
        "lag",
        f"LAG(x [, rows [, default]]) {_BY_TIME}",
        "The x of an earlier row.",
        f"SELECT LAG(x) {_BY_TIME} AS y FROM s",
    ),
    _form("lead", f"LEAD(x [, rows]) {_BY_TIME}", "The x of a later row.", f"SELECT LEAD(x, 1) {_BY_TIME} AS y FROM s"),
    _form(
        "row_number rank dense_rank percent_rank cume_dist",
        f"ROW_NUMBER() {_BY_TIME}",
        "The rank of a row in its partition. RANK leaves gaps after equal rows, DENSE_RANK does not.",
        f"SELECT ROW_NUMBER() {_BY_TIME} AS n FROM s",
        f"SELECT RANK() {_BY_TIME} AS n, DENSE_RANK() {_BY_TIME} AS d FROM s",
    ),
    _form(
        "nth_value",
        f"NTH_VALUE(x, n) {_BY_TIME}",
        "The x of the nth row of the frame; NULL if the frame has fewer rows.",
        f"SELECT NTH_VALUE(x, 2) {_BY_TIME} AS y FROM s",
    ),
    _form(
        "ntile",
        "NTILE(n) OVER (PARTITION BY k ORDER BY x)",
        "Divides the rows of a partition into n parts whose sizes differ by at most one; returns the number "
        "of the part.",
        "SELECT NTILE(4) OVER (ORDER BY x) AS quarter FROM s",
    ),
    _form(
        "tumble",
        "TUMBLE(TABLE s, DESCRIPTOR(ts), size [, offset]), TUMBLE(TABLE s PARTITION BY k, ROWS n)",
        "FROM: consecutive windows, with window_start and window_end; or, for each key, windows of n rows.",
        f"SELECT COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) {_GROUPED}",
        "SELECT k, SUM(x) AS total FROM TUMBLE(TABLE s PARTITION BY k, ROWS 100) GROUP BY k",
    ),
    _form(
        "hop",
        "HOP(TABLE s, DESCRIPTOR(ts), slide, size), HOP(TABLE s PARTITION BY k, ROWS slide, ROWS size)",
        "FROM: windows of one size, one starting at every slide; or, for each key, windows of a number of rows.",
        f"SELECT COUNT(*) AS n FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE) {_GROUPED}",
        "SELECT k, SUM(x) AS total FROM HOP(TABLE s PARTITION BY k, ROWS 10, ROWS 100) GROUP BY k",
    ),
    _form(
        "cumulate",
        "CUMULATE(TABLE s, DESCRIPTOR(ts), step, size)",
        "FROM: windows that start together and grow by a step up to their size.",
        f"SELECT COUNT(*) AS n FROM CUMULATE(s, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE) {_GROUPED}",
    ),
    _form(
        "session",
        "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), gap)",
        "FROM: for each key, windows of rows that are at most the gap apart.",
        f"SELECT k, COUNT(*) AS n FROM SESSION(s PARTITION BY k, ts, INTERVAL '5' MINUTE) {_GROUPED}, k",
    ),
    _form(
        "unnest",
        "FROM s, UNNEST(array) AS u(x)",
        "A row for each element of an array.",
        "SELECT k, u.x FROM s, UNNEST(s.items) AS u(x)",
    ),
    _form(
        "grouping",
        "GROUPING(key)",
        "1 in rows of a grouping set without the key, else 0; for ROLLUP, CUBE and GROUPING SETS.",
        "SELECT k, GROUPING(k) AS every, COUNT(*) AS n FROM s GROUP BY ROLLUP(k)",
    ),
)
