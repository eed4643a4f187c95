"""The tables of TPC-H, as far as its queries need them: matching keys, and dates, prices and words distributed as
specified.

Rows are functions of (seed, number of the row), so a table can be made in part, and without the others: the totals of
an order are drawn again from the numbers of its lines. Orders have 1 to 7 lines, in a fixed cycle. Comments and
addresses are random words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from cq.lang.arrow_buffers import from_numpy, of_type, text_array
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.draws import Ints, mix_columns, under
from cq.workloads.texts import joined, words

Columns = dict[str, pa.Array]

_KEY, _NUMBER, _TEXT, _DATE, _MONEY = pa.int64(), pa.int32(), pa.string(), pa.date32(), pa.decimal128(15, 2)


def _schema(prefix: str, **columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(f"{prefix}_{name}", type, nullable=False) for name, type in columns.items()])


LINEITEM = _schema(
    "l", orderkey=_KEY, partkey=_KEY, suppkey=_KEY, linenumber=_NUMBER, quantity=_MONEY, extendedprice=_MONEY,
    discount=_MONEY, tax=_MONEY, returnflag=_TEXT, linestatus=_TEXT, shipdate=_DATE, commitdate=_DATE,
    receiptdate=_DATE, shipinstruct=_TEXT, shipmode=_TEXT, comment=_TEXT,
)  # fmt: skip
ORDERS = _schema(
    "o", orderkey=_KEY, custkey=_KEY, orderstatus=_TEXT, totalprice=_MONEY, orderdate=_DATE, orderpriority=_TEXT,
    clerk=_TEXT, shippriority=_NUMBER, comment=_TEXT,
)  # fmt: skip
CUSTOMER = _schema(
    "c", custkey=_KEY, name=_TEXT, address=_TEXT, nationkey=_NUMBER, phone=_TEXT, acctbal=_MONEY, mktsegment=_TEXT,
    comment=_TEXT,
)  # fmt: skip
SUPPLIER = _schema(
    "s", suppkey=_KEY, name=_TEXT, address=_TEXT, nationkey=_NUMBER, phone=_TEXT, acctbal=_MONEY, comment=_TEXT
)
PART = _schema(
    "p", partkey=_KEY, name=_TEXT, mfgr=_TEXT, brand=_TEXT, type=_TEXT, size=_NUMBER, container=_TEXT,
    retailprice=_MONEY, comment=_TEXT,
)  # fmt: skip
PARTSUPP = _schema("ps", partkey=_KEY, suppkey=_KEY, availqty=_NUMBER, supplycost=_MONEY, comment=_TEXT)
NATION = _schema("n", nationkey=_NUMBER, name=_TEXT, regionkey=_NUMBER, comment=_TEXT)
REGION = _schema("r", regionkey=_NUMBER, name=_TEXT, comment=_TEXT)

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2),
    ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
COLOURS = ("almond", "azure", "beige", "black", "blue", "brown", "coral", "forest", "green", "ivory", "plum", "red")
SIZES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
FINISHES = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
WRAPS = ("SM", "LG", "MED", "JUMBO", "WRAP")
BOXES = ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")

FIRST_DAY = 8035  # 1992-01-01
ORDER_DAYS = 2406  # orders come on this many days, up to 1998-08-02
TODAY = 9298  # 1995-06-17: items with later ship dates have not been shipped

# Lines of consecutive orders: 28 lines make 7 orders.
LINES = np.array([1, 4, 7, 2, 5, 3, 6], np.int64)
_ORDER_OF_LINE = np.repeat(np.arange(7, dtype=np.int64), LINES)
_FIRST_LINE = np.cumsum(LINES) - LINES

# Purposes of draws; each table adds its own hundred.
_LINES, _ORDERS, _CUSTOMERS, _SUPPLIERS, _PARTS, _NATIONS, _REGIONS, _OFFERS = range(200, 1000, 100)


def lineitem(rows: int = 60_000, seed: int = 1, orders: int = 15_000) -> Iterator[pa.RecordBatch]:
    """Four lines for each order, on average. orders: in the whole database, whose other tables grow with it."""

    def make(row: Ints) -> Columns:
        order, drawn = row // 28 * 7 + _ORDER_OF_LINE[row % 28], _Draws(_LINES, seed, row)
        lines = _Lines(seed, row, order, orders)
        return {
            "orderkey": from_numpy(_order_key(order)),
            "partkey": from_numpy(lines.part),
            "suppkey": from_numpy(_supplier_of(lines.part, drawn.below(1, 4), orders)),
            "linenumber": _numbers(row % 28 - _FIRST_LINE[order % 7] + 1),
            "quantity": _money(lines.quantity * 100),
            "extendedprice": _money(lines.price),
            "discount": _money(lines.discount),
            "tax": _money(lines.tax),
            "returnflag": _chosen(
                np.where(lines.receipt > TODAY, 2, drawn.below(6, 2)), ("A", "R", "N")
            ),
            "linestatus": _chosen((lines.ship > TODAY).astype(np.int64), ("F", "O")),
            "shipdate": _dates(lines.ship),
            "commitdate": _dates(_order_day(seed, order) + 30 + drawn.below(7, 61)),
            "receiptdate": _dates(lines.receipt),
            "shipinstruct": drawn.one_of(8, INSTRUCTIONS),
            "shipmode": drawn.one_of(9, MODES),
            "comment": drawn.words(10, 10, 43),
        }  # fmt: skip

    return _batches(make, LINEITEM, rows)


def orders(rows: int = 15_000, seed: int = 1, orders: int = 15_000) -> Iterator[pa.RecordBatch]:
    """An order of a customer; a third of the customers never order."""

    def make(row: Ints) -> Columns:
        drawn, day = _Draws(_ORDERS, seed, row), _order_day(seed, row)
        customer = drawn.below(1, max(1, _customers(orders) * 2 // 3))
        total, open_lines = np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
        for n in range(int(LINES.max())):
            there = n < LINES[row % 7]
            lines = _Lines(seed, row // 7 * 28 + _FIRST_LINE[row % 7] + n, row, orders)
            billed = lines.price * (100 - lines.discount) * (100 + lines.tax)
            total += np.where(there, (billed + 5_000) // 10_000, 0)
            open_lines += there & (lines.ship > TODAY)
        status = np.where(open_lines == 0, 0, np.where(open_lines == LINES[row % 7], 1, 2))
        return {
            "orderkey": from_numpy(_order_key(row)),
            "custkey": from_numpy(customer // 2 * 3 + customer % 2 + 1),
            "orderstatus": _chosen(status, ("F", "O", "P")),
            "totalprice": _money(total),
            "orderdate": _dates(day),
            "orderpriority": drawn.one_of(2, PRIORITIES),
            "clerk": _named("Clerk", 1 + drawn.below(3, max(1, orders // 1500))),
            "shippriority": _numbers(np.zeros(len(row), np.int64)),
            "comment": drawn.words(4, 19, 78),
        }

    return _batches(make, ORDERS, rows)


def customer(rows: int = 1_500, seed: int = 1) -> Iterator[pa.RecordBatch]:
    """The customers: one for ten orders."""

    def make(row: Ints) -> Columns:
        drawn = _Draws(_CUSTOMERS, seed, row)
        return {
            "custkey": from_numpy(row + 1),
            "name": _named("Customer", row + 1),
            **_place(drawn),
            "mktsegment": drawn.one_of(5, SEGMENTS),
            "comment": drawn.words(6, 29, 116),
        }

    return _batches(make, CUSTOMER, rows)


def supplier(rows: int = 100, seed: int = 1) -> Iterator[pa.RecordBatch]:
    """The suppliers: one for 150 orders."""

    def make(row: Ints) -> Columns:
        drawn = _Draws(_SUPPLIERS, seed, row)
        return {
            "suppkey": from_numpy(row + 1),
            "name": _named("Supplier", row + 1),
            **_place(drawn),
            "comment": drawn.words(6, 25, 100),
        }

    return _batches(make, SUPPLIER, rows)


def part(rows: int = 2_000, seed: int = 1) -> Iterator[pa.RecordBatch]:
    """The parts: two for fifteen orders, each from four suppliers."""

    def make(row: Ints) -> Columns:
        drawn = _Draws(_PARTS, seed, row)
        maker = 1 + drawn.below(2, 5)
        return {
            "partkey": from_numpy(row + 1),
            "name": _texts(zip(drawn.listed(0, COLOURS), drawn.listed(1, COLOURS), strict=True), "{} {}"),
            "mfgr": _texts(((n,) for n in maker.tolist()), "Manufacturer#{}"),
            "brand": _texts(zip(maker.tolist(), (1 + drawn.below(3, 5)).tolist(), strict=True), "Brand#{}{}"),
            "type": _texts(
                zip(drawn.listed(4, SIZES), drawn.listed(5, FINISHES), drawn.listed(6, METALS), strict=True),
                "{} {} {}",
            ),
            "size": _numbers(1 + drawn.below(7, 50)),
            "container": _texts(zip(drawn.listed(8, WRAPS), drawn.listed(9, BOXES), strict=True), "{} {}"),
            "retailprice": _money(_retail_price(row + 1)),
            "comment": drawn.words(10, 5, 22),
        }

    return _batches(make, PART, rows)


def partsupp(rows: int = 8_000, seed: int = 1, orders: int = 15_000) -> Iterator[pa.RecordBatch]:
    """Which suppliers have which parts: four for each part."""

    def make(row: Ints) -> Columns:
        drawn, key = _Draws(_OFFERS, seed, row), row // 4 + 1
        return {
            "partkey": from_numpy(key),
            "suppkey": from_numpy(_supplier_of(key, row % 4, orders)),
            "availqty": _numbers(1 + drawn.below(1, 9_999)),
            "supplycost": _money(100 + drawn.below(2, 99_901)),
            "comment": drawn.words(3, 49, 198),
        }

    return _batches(make, PARTSUPP, rows)


def nation(rows: int = 25, seed: int = 1) -> Iterator[pa.RecordBatch]:
    """The nations of customers and suppliers; 25 at most."""

    def make(row: Ints) -> Columns:
        return {
            "nationkey": _numbers(row),
            "name": _chosen(row, [name for name, _ in NATIONS]),
            "regionkey": _numbers(np.array([region for _, region in NATIONS], np.int64)[row]),
            "comment": _Draws(_NATIONS, seed, row).words(0, 31, 114),
        }

    return _batches(make, NATION, min(rows, len(NATIONS)))


def region(rows: int = 5, seed: int = 1) -> Iterator[pa.RecordBatch]:
    """The regions of nations; 5 at most."""

    def make(row: Ints) -> Columns:
        return {
            "regionkey": _numbers(row),
            "name": _chosen(row, REGIONS),
            "comment": _Draws(_REGIONS, seed, row).words(0, 31, 115),
        }

    return _batches(make, REGION, min(rows, len(REGIONS)))


# -- what tables share -----------------------------------------------------------------------------------------------


class _Draws:
    """Random values for the rows of a table, by number of the column."""

    def __init__(self, table: int, seed: int, row: Ints) -> None:
        self._table, self._seed, self._row = table, seed, row

    def below(self, column: int, bound: int) -> Ints:
        """Uniform integers 0 … bound−1."""
        return under(mix_columns(self._table + column, self._seed, self._row), bound)

    def one_of(self, column: int, choices: Sequence[str]) -> pa.Array:
        """One of these texts."""
        return _chosen(self.below(column, len(choices)), choices)

    def listed(self, column: int, choices: Sequence[str]) -> list[str]:
        """One of these texts, as a list."""
        return [choices[n] for n in self.below(column, len(choices)).tolist()]

    def words(self, column: int, shortest: int, longest: int) -> pa.Array:
        """Random words, this many characters."""
        drawn = mix_columns(self._table + column, self._seed, self._row)
        return joined(words(drawn, shortest + under(drawn, longest - shortest + 1), longest))


class _Lines:
    """The lines from which an order is summed up, by number: parts, prices in cents, percents, days."""

    def __init__(self, seed: int, row: Ints, order: Ints, orders: int) -> None:
        drawn = _Draws(_LINES, seed, row)
        self.part = 1 + drawn.below(0, max(1, orders * 2 // 15))
        self.quantity = 1 + drawn.below(2, 50)
        self.price = self.quantity * _retail_price(self.part)
        self.discount, self.tax = drawn.below(3, 11), drawn.below(4, 9)
        self.ship = _order_day(seed, order) + 1 + drawn.below(5, 121)
        self.receipt = self.ship + 1 + drawn.below(11, 30)


def _batches(make: Callable[[Ints], Columns], schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, GENERATED_ROWS):
        made = make(np.arange(first, min(first + GENERATED_ROWS, rows), dtype=np.int64))
        yield pa.RecordBatch.from_arrays([made[name.partition("_")[2]] for name in schema.names], schema=schema)


def _place(drawn: _Draws) -> Columns:
    """Address, nation, phone number and balance of a customer or supplier."""
    at = drawn.below(1, len(NATIONS))
    parts = [at + 10, 100 + drawn.below(2, 900), 100 + drawn.below(3, 900), 1000 + drawn.below(7, 9000)]
    return {
        "address": drawn.words(0, 10, 40),
        "nationkey": _numbers(at),
        "phone": _texts(zip(*(p.tolist() for p in parts), strict=True), "{}-{}-{}-{}"),
        "acctbal": _money(drawn.below(4, 1_099_999) - 99_999),
    }


def _customers(orders: int) -> int:
    return orders // 10


def _order_key(order: Ints) -> Ints:
    """Only the first eight of every 32 keys are used."""
    return order // 8 * 32 + order % 8 + 1


def _order_day(seed: int, order: Ints) -> Ints:
    return FIRST_DAY + _Draws(_ORDERS, seed, order).below(0, ORDER_DAYS)


def _supplier_of(part: Ints, which: Ints, orders: int) -> Ints:
    """One of the four suppliers of a part."""
    count = max(1, orders // 150)
    return (part + which * (count // 4 + (part - 1) // count)) % count + 1


def _retail_price(part: Ints) -> Ints:
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1000)


def _money(cents: Ints) -> pa.Array:
    halves = np.stack([cents, cents >> 63], axis=1)
    return pa.Array.from_buffers(_MONEY, len(cents), [None, pa.py_buffer(np.ascontiguousarray(halves))])


def _numbers(values: Ints) -> pa.Array:
    return from_numpy(values.astype(np.int32))


def _dates(days: Ints) -> pa.Array:
    return of_type(_DATE, days.astype(np.int32))


@cache
def _choices(texts: tuple[str, ...]) -> pa.StringArray:
    return text_array(texts)


def _chosen(number: Ints, texts: Sequence[str]) -> pa.Array:
    return _choices(tuple(texts)).take(from_numpy(number))


def _texts(rows: Iterator[tuple[object, ...]] | zip[tuple[object, ...]], form: str) -> pa.Array:
    return text_array([form.format(*row) for row in rows])


def _named(kind: str, number: Ints) -> pa.Array:
    """Names such as Clerk#000000007."""
    return _texts(((kind, n) for n in number.tolist()), "{}#{:09}")
