"""Windows measured in addition to those of cases.py: sessions, sliding windows and frames, ranks, medians, order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.case import BID, BID_INTERVAL_US, SECOND_US, START_US, Case, Generate, bids, columns, times
from benchmarks.loops import LoopSpec

SEED = 80
RATIO = 1000  # of a window's length to its slide
SLIDE_MS = 50

_BID = BID.replace("{null}", "NOT NULL")


def _distinct_prices(keys: int) -> Generate:
    """Bids in order of time, all with different prices, so that all kinds of rank agree."""

    def generate(rows: int) -> pa.RecordBatch:
        r = np.random.default_rng(SEED)
        return columns(auction=r.integers(0, keys, rows), price=r.permutation(rows), ts=times(rows))

    return generate


# -- sessions --------------------------------------------------------------------------------------------------------


def _session(name: str, title: str, keys: int, gap_ms: int, delay_s: int, rows: int) -> Case:
    gap_us = gap_ms * 1000
    head = _BID.replace(
        "WATERMARK FOR ts", f"WATERMARK FOR ts AS ts - INTERVAL '{delay_s}' SECOND" if delay_s else "WATERMARK FOR ts"
    )

    def in_polars(bid: Any) -> Any:
        import polars as pl

        begins = (pl.col("ts").diff().over("auction") > pl.duration(microseconds=gap_us)).fill_null(True)
        numbered = bid.with_columns(begins.cum_sum().over("auction").alias("session"))
        made = numbered.group_by("auction", "session").agg(
            pl.col("ts").min().alias("window_start"), pl.len().alias("n"), pl.col("price").sum().alias("total")
        )
        return made.select("window_start", "auction", "n", "total")

    return Case(
        name=name,
        title=title,
        query=head
        + "SELECT window_start, auction, COUNT(*) AS n, SUM(price) AS total\n"
        + f"FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '0.{gap_ms:03}' SECOND)\n"
        + "GROUP BY window_start, window_end, auction;",
        stream="bid",
        rows=rows,
        generate=bids(keys, False) if keys > 1 else _hot(gap_us),
        loop=LoopSpec("sessions", ("ts", "auction", "price"), (gap_us,)) if not delay_s else None,
        duckdb="WITH begun AS (SELECT *, CASE WHEN epoch_us(ts) - epoch_us(LAG(ts) OVER k) <= "
        f"{gap_us} THEN 0 ELSE 1 END AS new FROM bid WINDOW k AS (PARTITION BY auction ORDER BY ts)), "
        "numbered AS "
        "(SELECT *, SUM(new) OVER (PARTITION BY auction ORDER BY ts ROWS UNBOUNDED PRECEDING) AS s FROM begun) "
        "SELECT MIN(ts) AS window_start, auction, COUNT(*) AS n, SUM(price) AS total FROM numbered GROUP BY auction, s",
        polars=in_polars,
        peer_bar=2.0,
        file_bar=1.2,
        loop_bar=0.8,
        from_file=not delay_s,
    )


def _hot(gap_us: int) -> Generate:
    """Bids for one auction in bursts of ten, a little more than the gap apart."""

    def generate(rows: int) -> pa.RecordBatch:
        r = np.random.default_rng(SEED)
        n = np.arange(rows, dtype=np.int64)
        at = START_US + n * BID_INTERVAL_US + (n // 10) * (gap_us + 1)
        return columns(auction=np.ones(rows), price=r.integers(100, 100_000, rows), ts=at)

    return generate


# -- sliding ---------------------------------------------------------------------------------------------------------


def _sliding(ratio: int) -> Case:
    """A window `ratio` times as long as its slide; 1: the cost of the same panes if windows do not overlap."""
    slide_us = SLIDE_MS * 1000
    slide, size = (f"INTERVAL '{n * SLIDE_MS / 1000}' SECOND" for n in (1, ratio))
    table = (
        f"HOP(TABLE bid, DESCRIPTOR(ts), {slide}, {size})"
        if ratio > 1
        else f"TUMBLE(TABLE bid, DESCRIPTOR(ts), {slide})"
    )
    aggregates = "COUNT(*) AS n, SUM(price) AS total, MAX(price) AS highest"
    panes = f"SELECT epoch_us(ts) // {slide_us} AS pane, auction, {aggregates} FROM bid GROUP BY ALL"
    start = f"make_timestamp((pane - {ratio - 1}) * {slide_us}) AS window_start"
    window = f"OVER (PARTITION BY auction ORDER BY pane ROWS {ratio - 1} PRECEDING)"
    over = (
        f"WITH panes AS ({panes}), "
        f"places AS (SELECT UNNEST(range(MIN(pane), MAX(pane) + {ratio})) AS pane FROM panes), "
        "keys AS (SELECT DISTINCT auction FROM panes), "
        "filled AS (SELECT pane, auction, n, total, highest "
        "FROM places CROSS JOIN keys LEFT JOIN panes USING (pane, auction)) "
        f"SELECT {start}, auction, n, total, highest FROM (SELECT pane, auction, "
        f"SUM(n) {window} AS n, SUM(total) {window} AS total, MAX(highest) {window} AS highest FROM filled) WHERE n > 0"
    )
    plain = f"SELECT make_timestamp(pane * {slide_us}) AS window_start, auction, n, total, highest FROM ({panes})"
    return Case(
        name=f"sliding_{ratio}",
        title=f"windows of {ratio} × {SLIDE_MS} ms, 5,000 rows a slide, 100 keys"
        if ratio > 1
        else f"windows of {SLIDE_MS} ms, the same",
        query=_BID
        + f"SELECT window_start, auction, {aggregates}\nFROM {table}\nGROUP BY window_start, window_end, auction;",
        stream="bid",
        rows=8_000_000,
        generate=bids(100, False),
        duckdb=over if ratio > 1 else plain,
        peer_bar=2.0 if ratio > 1 else 1.3,
        file_bar=1.2,
        from_file=ratio == RATIO,
    )


def _frame() -> Case:
    over = "OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW)"
    text = f"SELECT auction, SUM(price) {over} AS total, MAX(price) {over} AS highest FROM bid"

    def in_polars(bid: Any) -> Any:
        import polars as pl

        price = pl.col("price")
        made = bid.rolling("ts", period="1000001us", group_by="auction").agg(
            price.sum().alias("total"), price.max().alias("highest")
        )
        return made.select("auction", "total", "highest")

    return Case(
        name="frame",
        title="SUM and MAX OVER the last second, 10,000 keys",
        query=_BID + text + ";",
        stream="bid",
        rows=2_000_000,
        generate=bids(10_000, False),
        duckdb=text,
        polars=in_polars,
        peer_bar=2.0,
        file_bar=1.2,
        from_file=True,
    )


# -- ranks, medians, order -------------------------------------------------------------------------------------------


def _top() -> Case:
    bucket = f"epoch_us(ts) // {SECOND_US}"

    def in_polars(bid: Any) -> Any:
        import polars as pl

        window = pl.col("ts").dt.truncate("1s").alias("w")
        return (
            bid.group_by(window, "auction").agg(pl.col("price").top_k(10)).explode("price").select("auction", "price")
        )

    return Case(
        name="top_per_window",
        title="10 highest prices a second and key, 100 keys",
        query=_BID
        + "SELECT auction, price FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND)\n"
        + "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end, auction ORDER BY price DESC) <= 10;",
        stream="bid",
        rows=8_000_000,
        generate=_distinct_prices(100),
        duckdb=f"SELECT auction, UNNEST(max(price, 10)) AS price FROM bid GROUP BY {bucket}, auction",
        polars=in_polars,
        peer_bar=2.0,
        file_bar=1.2,
        from_file=True,
    )


def _median() -> Case:
    bucket = f"make_timestamp(epoch_us(ts) // {10 * SECOND_US} * {10 * SECOND_US})"

    def in_polars(bid: Any) -> Any:
        import polars as pl

        start = pl.col("ts").dt.truncate("10s").alias("window_start")
        return bid.group_by(start, "auction").agg(pl.col("price").median().alias("middle"))

    return Case(
        name="median",
        title="median in windows of 10 seconds, 10,000 keys",
        query=_BID
        + "SELECT window_start, auction, MEDIAN(price) AS middle\n"
        + "FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND)\nGROUP BY window_start, window_end, auction;",
        stream="bid",
        rows=8_000_000,
        generate=bids(10_000, False),
        duckdb=f"SELECT {bucket} AS window_start, auction, MEDIAN(price) AS middle FROM bid GROUP BY ALL",
        polars=in_polars,
        peer_bar=2.0,
        file_bar=1.2,
        from_file=True,
    )


def _first_rows() -> Case:
    text = "SELECT auction, price FROM bid ORDER BY price DESC LIMIT 10"
    return Case(
        name="first_rows",
        title="ORDER BY price DESC LIMIT 10",
        query=_BID + text + ";",
        stream="bid",
        rows=10_000_000,
        generate=_distinct_prices(10_000),
        duckdb=text,
        polars=lambda bid: bid.select("auction", "price").top_k(10, by="price"),
        peer_bar=1.0,
        file_bar=1.0,
        halves=False,
    )


def _sorted() -> Case:
    text = "SELECT auction, price FROM bid ORDER BY price"
    return Case(
        name="sorted",
        title="ORDER BY price, 1 M rows",
        query=_BID + text + ";",
        stream="bid",
        rows=1_000_000,
        generate=_distinct_prices(10_000),
        duckdb=text,
        polars=lambda bid: bid.select("auction", "price").sort("price"),
        peer_bar=1.0,
        file_bar=1.0,
        halves=False,
    )


CASES: tuple[Case, ...] = (
    _session("session", "sessions, 10,000 keys", 10_000, 200, 0, 8_000_000),
    _session("session_hot", "sessions of one key, a delay of 1,000 gaps", 1, 10, 10, 2_000_000),
    _sliding(1),
    _sliding(RATIO),
    _frame(),
    _top(),
    _median(),
    _first_rows(),
    _sorted(),
)
