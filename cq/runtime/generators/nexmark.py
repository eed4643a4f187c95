"""The streams of NEXMark generated natively: the same rows as `cq/workloads/nexmark/streams.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.lang.arrow_buffers import text_array
from cq.runtime.base.interpret import GENERATORS
from cq.runtime.base.kernel import library_with
from cq.runtime.generators import auctions as a
from cq.runtime.generators.cells import cells_of
from cq.runtime.generators.lines import CELL_BYTES
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.bids import FIRST_ID, channel_names, price_table
from cq.workloads.nexmark import events as ev
from cq.workloads.nexmark import streams as nx
from cq.workloads.nexmark import texts as tx
from cq.workloads.texts import WORDS

# The most bytes of a text of a column that is not the word of a list.
_MOST = {"emailaddress": 16, "creditcard": 20, "itemname": nx.ITEM_MOST, "description": nx.DESCRIPTION_MOST, "url": 80}
_EXTRAS = {nx.PERSON_SCHEMA: nx.EXTRA_PERSON, nx.AUCTION_SCHEMA: nx.EXTRA_AUCTION, nx.BID_SCHEMA: nx.EXTRA_BID}


def persons(rows: int = 20_000, seed: int = 1, rate: int = 10_000, disorder: int = 1) -> Iterator[pa.RecordBatch]:
    """The rows of `cq.workloads.nexmark.streams.persons`."""
    stream = _Stream(nx.PERSON_SCHEMA, "write_persons", ev.arrivals(ev.PERSON, disorder), seed, rate)
    stream.choose(_person_choices())
    return stream.batches(rows)


def auctions(rows: int = 60_000, seed: int = 1, rate: int = 10_000, disorder: int = 1) -> Iterator[pa.RecordBatch]:
    """The rows of `cq.workloads.nexmark.streams.auctions`."""
    stream = _Stream(nx.AUCTION_SCHEMA, "write_auctions", ev.arrivals(ev.AUCTION, disorder), seed, rate)
    stream.set({a.EVENTS_LIFE_MS: nx.life_ms(rate)})
    return stream.batches(rows)


def bids(
    rows: int = 920_000, seed: int = 1, rate: int = 10_000, disorder: int = 1, flink_bidders: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of `cq.workloads.nexmark.streams.bids`."""
    stream = _Stream(nx.BID_SCHEMA, "write_auction_bids", ev.arrivals(ev.BID, disorder), seed, rate)
    stream.choose(_channel_choices())
    _, ends, text = tx.urls(seed).buffers()
    stream.keep(ends, text)
    stream.set(
        {a.EVENTS_URLS: ends.address, a.EVENTS_URL_TEXT: text.address, a.EVENTS_HIGHER: FIRST_ID * flink_bidders}
    )
    return stream.batches(rows)


@lru_cache(maxsize=1)
def _person_choices() -> Sequence[NDArray[np.uint8]]:
    return [cells_of(words) for words in (tx.person_names(), text_array(tx.CITIES), text_array(tx.STATES))]


@lru_cache(maxsize=1)
def _channel_choices() -> Sequence[NDArray[np.uint8]]:
    return [cells_of(channel_names())]


class _Stream:
    """What native code needs to write the rows of one stream: its words, and the memory they point to."""

    def __init__(self, schema: pa.Schema, function: str, arrivals: ev.KindArrivals, seed: int, rate: int) -> None:
        self._schema, self._write = schema, library_with(GENERATORS).function(function)
        self._words = np.zeros(a.EVENTS_WORDS, np.int64)
        self._columns = np.zeros((len(schema), a.COLUMN_WORDS), np.int64)
        self._kept: list[object] = []
        numbers, prices = arrivals.numbers, price_table()
        self.keep(numbers, prices)
        self.set({
            a.EVENTS_SEED: seed, a.EVENTS_RATE: rate, a.EVENTS_PERIOD: arrivals.period,
            a.EVENTS_NUMBERS: numbers.ctypes.data, a.EVENTS_COUNT: len(numbers), a.EVENTS_PRICES: prices.ctypes.data,
            a.EVENTS_CHARACTERS: WORDS.ctypes.data, a.EVENTS_COLUMNS: self._columns.ctypes.data,
        })  # fmt: skip

    def set(self, words: Mapping[int, int]) -> None:
        """Set these words to these values."""
        for word, value in words.items():
            self._words[word] = value

    def keep(self, *memory: object) -> None:
        """Keep alive the memory that words point to."""
        self._kept += memory

    def choose(self, lists: Sequence[NDArray[np.uint8]]) -> None:
        """Draw words from these cells."""
        addresses = np.array([cells.ctypes.data for cells in lists], np.int64)
        self.keep(lists, addresses)
        self.set({a.EVENTS_CHOICES: addresses.ctypes.data})

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in batches of GENERATED_ROWS, the last one shorter."""
        for first in range(0, rows, GENERATED_ROWS):
            yield self._batch(first, min(GENERATED_ROWS, rows - first))

    def _batch(self, first: int, rows: int) -> pa.RecordBatch:
        buffers = [self._room(n, field, rows) for n, field in enumerate(self._schema)]
        self._write(self._words.ctypes.data, first, rows)
        arrays = []
        for field, (values, text) in zip(self._schema, buffers, strict=True):
            if text is not None:
                text.resize(int(np.frombuffer(values, np.int32)[rows]), shrink_to_fit=False)
            parts = [None, values] if text is None else [None, values, text]
            arrays.append(pa.Array.from_buffers(field.type, rows, parts, null_count=0))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _room(self, column: int, field: pa.Field, rows: int) -> tuple[pa.Buffer, pa.Buffer | None]:
        """Memory for the values of a column, or for the ends of its texts and the texts; the table points to it."""
        if field.type != pa.string():
            values = pa.allocate_buffer(8 * rows)
            self._columns[column] = values.address, 0
            return values, None
        ends = pa.allocate_buffer(4 * (rows + 1))
        np.frombuffer(ends, np.int32)[0] = 0
        text = pa.allocate_buffer(rows * self._most(field.name) + a.SLACK_BYTES, resizable=True)
        self._columns[column] = ends.address, text.address
        return ends, text

    def _most(self, name: str) -> int:
        """The most bytes of one text of this column."""
        if name == "extra":
            shortest, lengths = nx.extra_span(_EXTRAS[self._schema])
            return shortest + lengths
        return _MOST.get(name, CELL_BYTES)
