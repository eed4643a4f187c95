"""The queries that are measured: each as cq text, as a C++ loop, in DuckDB's SQL and as a polars expression.

All forms of a case give the same rows, in any order; `check` in throughput.py compares counts and sums.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import joined, sliding, transacted
from benchmarks.case import BID, SECOND_US, Case, bids, file_of, whole
from benchmarks.loops import LoopSpec
from cq.workloads import WORKLOADS

QUERIES = Path(__file__).parent.parent / "queries"
LEAST_PRICE = 200_000  # prices are log-uniform from 100 to 10^8: 45 % of them are higher


# -- stateless -------------------------------------------------------------------------------------------------------


def _filter(name: str, nulls: float) -> Case:
    def in_polars(bid: Any) -> Any:
        import polars as pl

        kept = bid.filter(pl.col("price") > LEAST_PRICE)
        return kept.select("auction", (pl.col("price") * 2 + 1).alias("doubled"), "ts")

    text = f"SELECT auction, price * 2 + 1 AS doubled, ts FROM bid WHERE price > {LEAST_PRICE}"
    return Case(
        name=name,
        title="filter and project, 45 % pass" + (", 10 % NULL" if nulls else ""),
        query=BID.replace("{null}", "" if nulls else "NOT NULL") + text + ";",
        stream="bid",
        rows=12_000_000,
        generate=bids(10_000, False, nulls),
        loop=LoopSpec(
            "filtered_nulls" if nulls else "filtered", ("price", "auction", "ts"), (LEAST_PRICE, 2, 1),
            "price" if nulls else "",
        ),
        duckdb=text,
        polars=in_polars,
        peer_bar=1.0,
        spread=True,
        stateless=True,
        from_file=not nulls,
    )  # fmt: skip


# -- windows ---------------------------------------------------------------------------------------------------------


def _tumbling(keys: int, scatter: bool) -> Case:
    many = keys >= 1_000_000
    size_s = 20 if many else 10
    kernel_bar = {(10_000, False): 250.0, (10_000, True): 100.0}.get((keys, scatter))
    short = {100: "100", 10_000: "10k", 1_000_000: "1m"}[keys]
    bucket = f"make_timestamp(epoch_us(ts) // {size_s * SECOND_US} * {size_s * SECOND_US})"
    aggregates = "COUNT(*) AS n, SUM(price) AS total, MIN(price) AS lowest, MAX(price) AS highest"

    def in_polars(bid: Any) -> Any:
        import polars as pl

        price = pl.col("price")
        made = (
            pl.len().alias("n"), price.sum().alias("total"), price.min().alias("lowest"), price.max().alias("highest"),
        )  # fmt: skip
        start = pl.col("ts").dt.truncate(f"{size_s}s").alias("window_start")
        return bid.group_by(start, "auction").agg(*made)

    return Case(
        name=f"tumbling_{short}_{'random' if scatter else 'dense'}",
        title=f"tumbling aggregate, {keys:,} {'random' if scatter else 'dense'} keys",
        query=BID.replace("{null}", "NOT NULL")
        + f"SELECT window_start, auction, {aggregates}\n"
        + f"FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '{size_s}' SECOND)\n"
        + "GROUP BY window_start, window_end, auction;",
        stream="bid",
        rows=4_000_000 if many else 8_000_000,
        generate=bids(keys, scatter),
        loop=LoopSpec("tumbling", ("ts", "auction", "price"), (size_s * SECOND_US,)),
        duckdb=f"SELECT {bucket} AS window_start, auction, {aggregates} FROM bid GROUP BY ALL",
        polars=in_polars,
        peer_bar=2.0 if scatter else 1.3,
        spread=not many,
        kernel_bar=kernel_bar,
        from_file=scatter and keys == 10_000,
    )


def _hopping() -> Case:
    bucket = f"epoch_us(ts) // {SECOND_US}"

    def in_polars(bid: Any) -> Any:
        import polars as pl

        pane = pl.col("ts").dt.truncate("1s")
        panes = bid.group_by(pane.alias("pane"), "auction").agg(pl.len().alias("n"))
        starts = pl.datetime_ranges(pl.col("pane") - pl.duration(seconds=9), pl.col("pane"), "1s", time_unit="us")
        spread = panes.with_columns(starts.alias("window_start")).explode("window_start")
        return spread.group_by("window_start", "auction").agg(pl.col("n").sum())

    return Case(
        name="hopping_10k",
        title="hopping count, 10 panes of 100,000 rows, 10,000 dense keys",
        query=BID.replace("{null}", "NOT NULL")
        + "SELECT window_start, auction, COUNT(*) AS n\n"
        + "FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '10' SECOND)\n"
        + "GROUP BY window_start, window_end, auction;",
        stream="bid",
        rows=4_000_000,
        generate=bids(10_000, False),
        loop=LoopSpec("hopping", ("ts", "auction"), (SECOND_US, 10 * SECOND_US)),
        duckdb=f"WITH panes AS (SELECT {bucket} AS pane, auction, COUNT(*) AS n FROM bid GROUP BY ALL) "
        f"SELECT make_timestamp((pane - k) * {SECOND_US}) AS window_start, auction, SUM(n) AS n "
        "FROM panes, range(10) AS r(k) GROUP BY ALL",
        polars=in_polars,
        peer_bar=2.0,
    )


def _segments() -> Case:
    def generate(rows: int) -> pa.RecordBatch:
        made = WORKLOADS["linear_road"].generate(profile="light", rows=rows)
        return whole(pa.Table.from_batches(made))

    def in_polars(lr: Any) -> Any:
        import polars as pl

        start = pl.col("ts").dt.truncate("1m").alias("window_start")
        reports = lr.filter(pl.col("type") == 0)
        return reports.group_by(start, "xway", "dir", "seg").agg(
            pl.col("vid").n_unique().alias("cars"), pl.len().alias("reports"), pl.col("spd").mean().alias("speed")
        )

    text = (QUERIES / "lr_segment_statistics.cq").read_text(encoding="utf-8")
    head, _, tail = text.partition("WITH (")
    _, _, tail = tail.partition(");")
    return Case(
        name="segment_statistics",
        title="segment statistics (queries/lr_segment_statistics.cq)",
        query=head + file_of("lr") + tail,
        stream="lr",
        rows=3_000_000,
        generate=generate,
        loop=LoopSpec("segments", ("ts", "type", "vid", "spd", "xway", "dir", "seg"), (60 * SECOND_US, 0)),
        duckdb="SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start, xway, dir, seg, "
        "COUNT(DISTINCT vid) AS cars, COUNT(*) AS reports, AVG(spd) AS speed FROM lr WHERE type = 0 GROUP BY ALL",
        polars=in_polars,
        peer_bar=4.0,
        spread=True,
        from_file=True,
    )


# -- running ---------------------------------------------------------------------------------------------------------


def _running(keys: int, short: str, rows: int) -> Case:
    def in_polars(bid: Any) -> Any:
        import polars as pl

        return bid.select("auction", pl.col("price").cum_sum().over("auction").alias("total"))

    frame = "SUM(price) OVER (PARTITION BY auction ORDER BY ts ROWS UNBOUNDED PRECEDING) AS total"
    return Case(
        name=f"running_{short}",
        title=f"running sum OVER, {keys:,} random keys",
        query=BID.replace("{null}", "NOT NULL") + f"SELECT auction, {frame} FROM bid;",
        stream="bid",
        rows=rows,
        generate=bids(keys, True),
        loop=LoopSpec("running", ("auction", "price")),
        duckdb=f"SELECT auction, {frame} FROM bid",
        polars=in_polars,
        peer_bar=2.0,
        from_file=keys == 10_000,
    )


def _word_count() -> Case:
    def generate(rows: int) -> pa.RecordBatch:
        return whole(pa.Table.from_batches(WORKLOADS["sentences"].generate(rows=rows, vocabulary=5_000)))

    def in_polars(sentences: Any) -> Any:
        import polars as pl

        words = sentences.select(pl.col("line").str.split(" ").alias("word")).explode("word")
        return words.select("word", pl.int_range(1, pl.len() + 1).over("word").alias("n"))

    text = (QUERIES / "word_count.cq").read_text(encoding="utf-8")
    head, _, tail = text.partition("WITH (")
    _, _, tail = tail.partition(");")
    return Case(
        name="word_count",
        title="word count with running counts, 5,000 words (queries/word_count.cq)",
        query=head + file_of("sentences") + tail,
        stream="sentences",
        rows=400_000,
        generate=generate,
        loop=LoopSpec("counted_words", ("line",), (ord(" "),)),
        duckdb="SELECT word, COUNT(*) OVER (PARTITION BY word ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n "
        "FROM (SELECT ts, UNNEST(string_split(line, ' ')) AS word FROM sentences)",
        polars=in_polars,
        peer_bar=4.0,
        units=10,
        unit="words",
        from_file=True,
    )


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        _filter("filter", 0.0),
        _filter("filter_nulls", 0.1),
        *(_tumbling(keys, scatter) for keys in (100, 10_000, 1_000_000) for scatter in (False, True)),
        _hopping(),
        _segments(),
        _running(10_000, "10k", 6_000_000),
        _running(1_000_000, "1m", 3_000_000),
        _word_count(),
        *transacted.CASES,
        *joined.CASES,
        *sliding.CASES,
    )
}
