"""Joins that are measured: by equal keys, in windows, by distance in time, with the latest earlier row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.case import BID_INTERVAL_US, SECOND_US, Case, Generate, columns, file_of, times
from benchmarks.loops import LoopSpec

SEED = 8
ITEMS = 1_000_000
SHARE = 10  # bids for each item, or ask

_ITEM = "CREATE STREAM item (id BIGINT NOT NULL, weight BIGINT NOT NULL)\n" + file_of("item") + "\n"
_SALE = "CREATE STREAM sale (auction BIGINT NOT NULL, price BIGINT NOT NULL)\n" + file_of("sale") + "\n"
_TIMED = (
    "CREATE STREAM {name} (auction BIGINT NOT NULL, {value} BIGINT NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts)\n"
    "{file}\n"
)

_BIDS_AND_ASKS = ("bid.auction", "bid.price", "bid.ts", "ask.auction", "ask.asked", "ask.ts")


def _timed(name: str, value: str) -> str:
    return _TIMED.format(name=name, value=value, file=file_of(name))


def _items(rows: int) -> pa.RecordBatch:
    """One row for each id, in random order."""
    r = np.random.default_rng(SEED)
    return columns(id=r.permutation(rows // SHARE), weight=r.integers(1, 1000, rows // SHARE))


def _sales(rows: int) -> pa.RecordBatch:
    r = np.random.default_rng(SEED + 1)
    return columns(auction=r.integers(0, rows // SHARE, rows), price=r.integers(100, 100_000, rows))


def _hash_join(small_first: bool) -> Case:
    """All sales with their items: the rows of the stream declared first come first."""
    if small_first:
        inputs: dict[str, Any] = {"stream": "item", "generate": _items, "others": {"sale": _sales}}
    else:
        inputs = {"stream": "sale", "generate": _sales, "others": {"item": _items}}
    text = "SELECT auction, price, weight FROM sale JOIN item ON id = auction"

    def in_polars(first: Any, second: Any) -> Any:
        item, sale = (first, second) if small_first else (second, first)
        return sale.join(item, left_on="auction", right_on="id").select("auction", "price", "weight")

    return Case(
        name="join_small_first" if small_first else "join_large_first",
        title=f"hash join, {'1 M rows, then 10 M' if small_first else '10 M rows, then 1 M'}, 1 M random keys",
        query=(_ITEM + _SALE if small_first else _SALE + _ITEM) + text + ";",
        rows=SHARE * ITEMS,
        **inputs,
        loop=LoopSpec("joined", ("item.id", "item.weight", "sale.auction", "sale.price"), (int(small_first),)),
        duckdb=text,
        polars=in_polars,
        peer_bar=2.0,
        file_bar=1.2,
        loop_bar=0.8,
        halves=False,
        from_file=small_first,
    )


def _keyed(keys: int, interval_us: int, value: str, seed: int, share: int = 1, first_us: int = 0) -> Generate:
    """Rows with random keys in order of time, one for every `share` rows of the first input."""

    def generate(rows: int) -> pa.RecordBatch:
        r = np.random.default_rng(SEED + seed)
        made = rows // share
        values = {value: r.integers(100, 100_000, made)}
        return columns(auction=r.integers(0, keys, made), **values, ts=times(made, interval_us, first_us))

    return generate


def _window_join() -> Case:
    keys, second = 10_000, "INTERVAL '1' SECOND"
    window = f"TUMBLE(TABLE {{}}, DESCRIPTOR(ts), {second})"
    bucket = "epoch_us({}.ts) // 1000000"

    def in_polars(bid: Any, ask: Any) -> Any:
        import polars as pl

        pane = pl.col("ts").dt.truncate("1s").alias("pane")
        both = bid.with_columns(pane).join(ask.with_columns(pane), on=["pane", "auction"])
        return both.select("auction", "price", "asked")

    return Case(
        name="window_join",
        title="window join, 10 bids and 1 ask a key and second, 10,000 keys",
        query=_timed("bid", "price")
        + _timed("ask", "asked")
        + "SELECT b.auction, b.price, a.asked\n"
        + f"FROM {window.format('bid')} AS b\n"
        + f"JOIN {window.format('ask')} AS a ON b.window_end = a.window_end AND b.auction = a.auction;",
        stream="bid",
        rows=4_000_000,
        generate=_keyed(keys, BID_INTERVAL_US, "price", 2),
        others={"ask": _keyed(keys, BID_INTERVAL_US * SHARE, "asked", 3, SHARE, BID_INTERVAL_US // 2)},
        loop=LoopSpec("window_joined", _BIDS_AND_ASKS, (SECOND_US,)),
        duckdb="SELECT b.auction, b.price, a.asked FROM bid AS b JOIN ask AS a "
        f"ON {bucket.format('b')} = {bucket.format('a')} AND b.auction = a.auction",
        polars=in_polars,
        peer_bar=2.0,
        file_bar=1.2,
        loop_bar=0.8,
        from_file=True,
    )


def _interval_join(name: str, title: str, keys: int, low_s: int, high_s: int, rows: int) -> Case:
    """Asks from low_s to high_s after a bid with their key. DuckDB finds them through buckets as long as the distance
    between the two: an ask may be in one of two."""
    between = f"a.ts BETWEEN b.ts + INTERVAL '{low_s}' SECOND AND b.ts + INTERVAL '{high_s}' SECOND"
    width_us = (high_s - low_s) * SECOND_US
    place = f"(epoch_us(ts) - {low_s * SECOND_US}) // {width_us}"
    return Case(
        name=name,
        title=title,
        query=_timed("bid", "price")
        + _timed("ask", "asked")
        + f"SELECT b.auction, price, asked FROM bid AS b JOIN ask AS a ON b.auction = a.auction AND {between};",
        stream="bid",
        rows=rows,
        generate=_keyed(keys, BID_INTERVAL_US, "price", 2),
        others={"ask": _keyed(keys, BID_INTERVAL_US, "asked", 3, 1, BID_INTERVAL_US // 2)},
        loop=LoopSpec("interval_joined", _BIDS_AND_ASKS, (low_s * SECOND_US, high_s * SECOND_US)),
        duckdb=f"SELECT b.auction, price, asked FROM (SELECT *, epoch_us(ts) // {width_us} AS place FROM bid) AS b "
        f"JOIN (SELECT *, UNNEST([{place}, {place} - 1]) AS place FROM ask) AS a "
        f"ON b.auction = a.auction AND b.place = a.place AND {between}",
        peer_bar=2.0,
        file_bar=1.2,
        loop_bar=0.8,
        from_file=low_s == 0,
    )


def _asof_join() -> Case:
    keys = 1_000

    def in_polars(trade: Any, quote: Any) -> Any:
        made = trade.join_asof(quote, on="ts", by="auction", strategy="backward").drop_nulls("quoted")
        return made.select("auction", "price", "quoted")

    return Case(
        name="asof_join",
        title="ASOF join, trades and quotes of 1,000 keys",
        query=_timed("trade", "price")
        + _timed("quote", "quoted")
        + "SELECT t.auction, price, quoted\n"
        + "FROM trade AS t ASOF JOIN quote AS q ON t.auction = q.auction AND t.ts >= q.ts;",
        stream="trade",
        rows=4_000_000,
        generate=_keyed(keys, BID_INTERVAL_US, "price", 2),
        others={"quote": _keyed(keys, BID_INTERVAL_US, "quoted", 3, 1, BID_INTERVAL_US // 2)},
        loop=LoopSpec(
            "asof", ("trade.auction", "trade.price", "trade.ts", "quote.auction", "quote.quoted", "quote.ts"), ()
        ),
        duckdb="SELECT t.auction, price, quoted FROM trade AS t ASOF JOIN quote AS q "
        "ON t.auction = q.auction AND t.ts >= q.ts",
        polars=in_polars,
        peer_bar=2.0,
        file_bar=1.2,
        loop_bar=0.8,
        from_file=True,
    )


CASES: tuple[Case, ...] = (
    _hash_join(True),
    _hash_join(False),
    _window_join(),
    _interval_join(
        "interval_join", "interval join, asks within a second of a bid, 100,000 keys", 100_000, 0, 1, 4_000_000
    ),
    _interval_join(
        "interval_ahead", "interval join, asks 20 to 21 seconds after a bid, 100,000 keys", 100_000, 20, 21, 4_000_000
    ),
    _asof_join(),
)
