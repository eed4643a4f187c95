"""A stream of auction bids after NEXMark, reduced to what tests and benchmarks vary: keys, skew, disorder, NULLs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.lang.arrow_buffers import from_numpy, of_type, text_array
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.draws import Ints, Zipf, below, mix_columns, philox, raw

SCHEMA = pa.schema(
    [
        pa.field("auction", pa.int64(), nullable=False),
        pa.field("bidder", pa.int64()),
        pa.field("price", pa.int64()),
        pa.field("ts", pa.timestamp("us"), nullable=False),
        pa.field("channel", pa.string()),
    ]
)

FIRST_ID = 1000
START_US = 1_436_918_400_000_000  # 2015-07-15 00:00:00, the base time of NEXMark
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
COLD_CHANNELS = 10_000
PRICE_STEPS = 1 << 16
BIDS, SCATTER = 0, 21  # purposes of draws and hashes
NULL_BITS = 21  # bits of a draw that decide whether one value is NULL


def bids(
    rows: int = 1_000_000,
    seed: int = 1,
    keys: int = 1_000,
    theta: float = 0.0,
    scatter: bool = False,
    bidders: int = 10_000,
    interval_us: int = 100,
    delay_us: int = 0,
    nulls: float = 0.0,
) -> Iterator[pa.RecordBatch]:
    """`rows` bids (auction, bidder, price, ts, channel).

    keys, theta: number of auctions and their skew, P(rank) ∝ rank^-theta; ids are dense from 1000, or with `scatter`
    spread over 63 bits.  interval_us: between arrivals; an event time is uniformly up to delay_us before its arrival,
    so with a watermark of that delay no row is late.  nulls: share of NULLs in bidder, in price and in channel. price:
    cents, log-uniform 100 … 10^8.  channel: half of the bids use one of four, the others one of 10 000.
    """
    zipf, channels, prices = Zipf(keys, theta), channel_names(), price_table()
    for start in range(0, rows, GENERATED_ROWS):
        n = min(GENERATED_ROWS, rows - start)
        bits = philox(seed, 0, BIDS, start // GENERATED_ROWS)
        # Whole chunks are drawn, so fewer rows are a prefix of more.
        rank_bits, bidder_bits, price_bits, channel_bits, null_bits = (raw(bits, GENERATED_ROWS)[:n] for _ in range(5))
        rank = zipf.ranks(rank_bits)
        auction = (mix_columns(SCATTER, seed, rank) >> np.uint64(1)).view(np.int64) if scatter else FIRST_ID + rank
        arrival = START_US + np.arange(start, start + n, dtype=np.int64) * interval_us
        ts = arrival - below(bidder_bits, delay_us + 1, 32)
        cold = len(HOT_CHANNELS) + below(channel_bits, COLD_CHANNELS)
        channel = np.where(channel_bits & 1, cold, (channel_bits >> 1) & 3)
        absent = [_absent(null_bits, shift, nulls) for shift in (0, NULL_BITS, 2 * NULL_BITS)]
        columns = [
            from_numpy(auction),
            from_numpy(FIRST_ID + below(bidder_bits, bidders), absent[0]),
            from_numpy(prices[price_bits & (PRICE_STEPS - 1)], absent[1]),
            of_type(pa.timestamp("us"), ts),
            channels.take(from_numpy(channel, absent[2])),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _absent(draws: Ints, shift: int, share: float) -> NDArray[np.bool_] | None:
    """Which rows are NULL, by some bits of each draw; None if no row can be."""
    return ((draws >> shift) & ((1 << NULL_BITS) - 1)) < null_limit(share) if share > 0 else None


def null_limit(share: float) -> int:
    """NULL_BITS bits below this make a NULL."""
    return int(share * (1 << NULL_BITS))


@lru_cache(maxsize=1)
def channel_names() -> pa.StringArray:
    """The channels by number: the hot ones, then the others."""
    return text_array([*HOT_CHANNELS, *(f"channel-{i}" for i in range(COLD_CHANNELS))])


@lru_cache(maxsize=1)
def price_table() -> Ints:
    """Quantiles of a price between 100 and 10^8 whose logarithm is uniform."""
    return np.array([int(100 * 10 ** (6 * (i + 0.5) / PRICE_STEPS) + 0.5) for i in range(PRICE_STEPS)], dtype=np.int64)
