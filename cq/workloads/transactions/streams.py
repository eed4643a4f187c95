"""Streaming Ledger, Grep and Sum, Online Bidding and Toll Processing, with the parameters of the paper.

Each value of an event is drawn from a hash of the seed and the event's number, so fewer rows are a prefix of more. The
initial rows of tables are streams, too, whose events come a second before the first one of the application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from cq.lang.arrow_buffers import from_numpy, list_array, of_type, text_array
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.bids import START_US
from cq.workloads.draws import Ints, Zipf, mix_columns, mix_more, under
from cq.workloads.transactions.keys import KeyDraw, Truths, positive, share

_NUMBER, _NUMBERS, _TIME = pa.int64(), pa.list_(pa.int64()), pa.timestamp("us")
SECOND_US = 1_000_000


def _schema(nullable: tuple[str, ...] = (), **columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, type, nullable=name in nullable) for name, type in columns.items()])


LEDGER_SCHEMA = _schema(
    ("from_account", "from_asset"), ts=_TIME, kind=pa.string(), from_account=_NUMBER, to_account=_NUMBER,
    from_asset=_NUMBER, to_asset=_NUMBER, amount=_NUMBER, units=_NUMBER,
)  # fmt: skip
ACCOUNTS_SCHEMA = _schema(ts=_TIME, id=_NUMBER, balance=_NUMBER)
REQUESTS_SCHEMA = _schema(("vals",), ts=_TIME, is_read=pa.bool_(), keys=_NUMBERS, vals=_NUMBERS)
RECORDS_SCHEMA = _schema(ts=_TIME, key=_NUMBER, val=_NUMBER)
BIDDING_SCHEMA = _schema(
    ("item", "price", "quantity", "items", "amounts"), ts=_TIME, kind=pa.string(), item=_NUMBER, price=_NUMBER,
    quantity=_NUMBER, items=_NUMBERS, amounts=_NUMBERS,
)  # fmt: skip
GOODS_SCHEMA = _schema(ts=_TIME, id=_NUMBER, price=_NUMBER, quantity=_NUMBER)
REPORTS_SCHEMA = _schema(ts=_TIME, vid=_NUMBER, seg=_NUMBER, speed=_NUMBER)

# Fields: the purposes of an event's draws, besides those of keys.
LEDGER, TOLLS, REQUESTS, BIDDING, GOODS = range(100, 105)
KIND, AMOUNT, UNITS, VEHICLE, SEGMENT, SPEED, PRICE, QUANTITY, VALUE = range(120, 129)

AMOUNTS, ASSET_UNITS, SPEEDS = 10_000, 1_000, 101  # exclusive upper bounds of values, which start at 0
VALUES, PRICES, QUANTITIES = 1 << 31, 100, 20
PATTERN = 8  # of this many events of Online Bidding the last two are an alter and a top, the others bids
BID, ALTER, TOP = range(3)
FROM_ACCOUNT, TO_ACCOUNT, FROM_ASSET, TO_ASSET = range(4)


def ledger(
    rows: int = 1_000_000,
    seed: int = 1,
    accounts: int = 10_000,
    theta: float = 0.6,
    transfers: float = 0.5,
    partitions: int = 1,
    several: float = 0.25,
    length: int = 4,
    interval_us: int = 100,
) -> Iterator[pa.RecordBatch]:
    """`rows` deposits and transfers between accounts and between assets, of which there are equally many.

    A deposit has no source accounts.
    """
    keys = KeyDraw(accounts, theta, partitions, several, length, 4)

    def make(number: Ints) -> list[pa.Array]:
        event = mix_columns(LEDGER, seed, number)
        transfer = share(mix_more(event, KIND), transfers)
        from_account = keys.draw(event, FROM_ACCOUNT, 0, ())
        to_account = keys.draw(event, TO_ACCOUNT, np.where(transfer, 1, 0), (from_account,))
        from_asset = keys.draw(event, FROM_ASSET, 2, ())
        to_asset = keys.draw(event, TO_ASSET, np.where(transfer, 3, 1), (from_asset,))
        return [
            _times(number, interval_us),
            _words(("deposit", "transfer"), transfer.astype(np.int64)),
            from_numpy(from_account, ~transfer),
            from_numpy(to_account),
            from_numpy(from_asset, ~transfer),
            from_numpy(to_asset),
            from_numpy(under(mix_more(event, AMOUNT), AMOUNTS)),
            from_numpy(under(mix_more(event, UNITS), ASSET_UNITS)),
        ]

    return _batches(make, LEDGER_SCHEMA, rows)


def ledger_accounts(rows: int = 10_000, balance: int = 20_000) -> Iterator[pa.RecordBatch]:
    """Every account with its initial balance; with 0 many transfers are refused, with 10^6 none is for a long time."""

    def make(number: Ints) -> list[pa.Array]:
        return [_opening(number), from_numpy(number), from_numpy(np.full(len(number), balance))]

    return _batches(make, ACCOUNTS_SCHEMA, rows)


def grep_sum(
    rows: int = 1_000_000,
    seed: int = 1,
    records: int = 10_000,
    theta: float = 0.6,
    reads: float = 0.5,
    accesses: int = 10,
    partitions: int = 1,
    several: float = 0.25,
    length: int = 4,
    interval_us: int = 100,
) -> Iterator[pa.RecordBatch]:
    """`rows` requests to read this many records, or to write this many values."""
    keys = KeyDraw(records, theta, partitions, several, length, accesses)

    def make(number: Ints) -> list[pa.Array]:
        event = mix_columns(REQUESTS, seed, number)
        read = share(mix_more(event, KIND), reads)
        values = [under(mix_more(mix_more(event, VALUE), slot), VALUES) for slot in range(accesses)]
        return [
            _times(number, interval_us),
            from_numpy(read),
            _lists(keys.several_of(event, accesses)),
            _lists(values, ~read),
        ]

    return _batches(make, REQUESTS_SCHEMA, rows)


def grep_sum_records(rows: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Every record; its value is initially its key."""
    return _batches(lambda n: [_opening(n), from_numpy(n), from_numpy(n)], RECORDS_SCHEMA, rows)


def bidding(
    rows: int = 1_000_000,
    seed: int = 1,
    goods: int = 10_000,
    theta: float = 0.6,
    accesses: int = 20,
    added: int = 19,
    partitions: int = 1,
    several: float = 0.25,
    length: int = 4,
    interval_us: int = 100,
) -> Iterator[pa.RecordBatch]:
    """`rows` bids for an item, alters of the prices of some, and tops of the quantities of some, 6 : 1 : 1.

    accesses: items of an alter or a top.  added: the most that a top adds.
    """
    keys = KeyDraw(goods, theta, partitions, several, length, accesses)

    def make(number: Ints) -> list[pa.Array]:
        event = mix_columns(BIDDING, seed, number)
        kind = np.maximum(number % PATTERN - (PATTERN - 3), BID)
        bid, drawn = kind == BID, mix_more(event, AMOUNT)
        most = np.where(kind == ALTER, PRICES, added + 1)
        amounts = [under(mix_more(drawn, slot), most) for slot in range(accesses)]
        return [
            _times(number, interval_us),
            _words(("bid", "alter", "top"), kind),
            from_numpy(keys.draw(event, 0, 0, ()), ~bid),
            from_numpy(under(mix_more(event, PRICE), PRICES), ~bid),
            from_numpy(under(mix_more(event, QUANTITY), QUANTITIES), ~bid),
            _lists(keys.several_of(event, accesses), ~bid),
            _lists(amounts, ~bid),
        ]

    return _batches(make, BIDDING_SCHEMA, rows)


def bidding_goods(rows: int = 10_000, seed: int = 1, quantity: int = 100) -> Iterator[pa.RecordBatch]:
    """Every item with its price and its initial quantity."""

    def make(number: Ints) -> list[pa.Array]:
        price = under(mix_columns(GOODS, seed, number), PRICES)
        return [_opening(number), from_numpy(number), from_numpy(price), from_numpy(np.full(len(number), quantity))]

    return _batches(make, GOODS_SCHEMA, rows)


def toll_reports(
    rows: int = 1_000_000,
    seed: int = 1,
    segments: int = 100,
    theta: float = 0.2,
    vehicles: int = 100_000,
    broken: float = 0.0,
    interval_us: int = 100,
) -> Iterator[pa.RecordBatch]:
    """`rows` traffic reports: which vehicle is in which segment, and how fast. broken: share of speeds that are -1."""
    zipf = Zipf(segments, theta)
    places = np.argsort(mix_columns(TOLLS, np.arange(segments)), kind="stable")

    def make(number: Ints) -> list[pa.Array]:
        event = mix_columns(TOLLS, seed, number)
        drawn = mix_more(event, SPEED)
        return [
            _times(number, interval_us),
            from_numpy(under(mix_more(event, VEHICLE), vehicles)),
            from_numpy(places[zipf.ranks(positive(mix_more(event, SEGMENT)))]),
            from_numpy(np.where(share(mix_more(drawn, SPEED), broken), -1, under(drawn, SPEEDS))),
        ]

    return _batches(make, REPORTS_SCHEMA, rows)


def _batches(make: Callable[[Ints], list[pa.Array]], schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, GENERATED_ROWS):
        number = np.arange(first, min(first + GENERATED_ROWS, rows), dtype=np.int64)
        yield pa.RecordBatch.from_arrays(make(number), schema=schema)


def _times(number: Ints, interval_us: int) -> pa.Array:
    return of_type(_TIME, START_US + number * interval_us)


def _lists(columns: Sequence[Ints], there: Truths | None = None) -> pa.Array:
    """A list of one value from each column; NULL if there are none."""
    rows = np.stack(columns, axis=1)
    given = np.full(len(rows), True) if there is None else there
    return list_array(from_numpy(rows[given].reshape(-1)), given * len(columns), ~given)


def _opening(number: Ints) -> pa.Array:
    """A second before the first event."""
    return of_type(_TIME, np.full(len(number), START_US - SECOND_US))


def _words(words: tuple[str, ...], which: Ints) -> pa.Array:
    return text_array(words).take(from_numpy(which))
