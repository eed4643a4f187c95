"""Transactional applications give what a serial loop in plain Python gives: outputs, rejections and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
import transaction_oracles
from cases import Prepared, Way
from paths import QUERIES

from cq.workloads import WORKLOADS

pytestmark = pytest.mark.optimised

EVENTS, FEWER, MOST = 10_000, 1_000, 1_000_000
KEYS = ("accounts", "records", "goods")
SHARED = {"partitions": 8, "several": 0.5}
STREAMS = {
    "streaming_ledger": {"opening": "ledger_accounts", "ledger": "ledger"},
    "grep_and_sum": {"record": "grep_sum_records", "request": "grep_sum"},
    "online_bidding": {"opening": "bidding_goods", "bidding": "bidding"},
    "toll_processing": {"report": "toll_reports"},
}
KNOBS: list[tuple[str, dict[str, Any]]] = [
    ("streaming_ledger", {}),
    ("streaming_ledger", {"balance": 0, "theta": 1.2}),
    ("streaming_ledger", {"accounts": 2, "balance": 30_000, "seed": 3}),
    ("streaming_ledger", {"transfers": 1.0, "accounts": 500, "balance": 9_000, **SHARED}),
    ("grep_and_sum", {}),
    ("grep_and_sum", {"records": 64, "reads": 0.9, "theta": 1.2, "accesses": 30}),
    ("grep_and_sum", {"reads": 0.0, **SHARED}),
    ("online_bidding", {}),
    ("online_bidding", {"quantity": 10, "added": 1, "goods": 100, **SHARED}),
    ("toll_processing", {}),
    ("toll_processing", {"broken": 0.1, "vehicles": 300}),
    ("toll_processing", {"segments": 1, "theta": 0.0, "seed": 2}),
]


class Application:
    """A query of queries/transactions/ over generated rows, whose outputs are those of the oracle, and `more`."""

    def __init__(self, name: str, knobs: Mapping[str, Any], events: int, more: Sequence[str] = ()) -> None:
        self.streams = {}
        tables = {}
        for stream, workload in STREAMS[name].items():
            known = WORKLOADS[workload].parameters
            rows = events if "interval_us" in known else next((knobs[k] for k in KEYS if k in knobs), 10_000)
            chosen = {k: v for k, v in {**knobs, "rows": rows}.items() if k in known}
            tables[stream] = pa.Table.from_batches(WORKLOADS[workload].generate(**chosen), WORKLOADS[workload].schema)
            columns = [c.cast("int64") if pa.types.is_timestamp(c.type) else c for c in tables[stream].columns]
            self.streams[stream] = list(zip(*(c.to_pylist() for c in columns), strict=True))
        self.expected = getattr(transaction_oracles, name)(self.streams)
        text = (QUERIES / "transactions" / f"{name}.cq").read_text(encoding="utf-8")
        shown = "".join(f"SELECT * FROM {output};\n" for output in (*self.expected, *more))
        self.prepared = Prepared(re.sub(r"\nSELECT \*\nFROM \w+;\n$", "\n" + shown, text))
        self.prepared.give_tables(tables)

    def agrees(self, way: Way | None) -> None:
        outcome = self.prepared.reference() if way is None else self.prepared.native(way)
        assert not outcome.error, outcome.message
        for (name, expected), rows in zip(self.expected.items(), outcome.rows.values(), strict=True):
            assert len(rows) == len(expected), name
            for number, (row, other) in enumerate(zip(rows, expected, strict=True)):
                assert repr(row) == repr(other), f"{name}[{number}]"


@pytest.mark.parametrize(("name", "knobs"), KNOBS)
@pytest.mark.one_in(3)
def test_reference_gives_what_the_oracle_gives(name: str, knobs: Mapping[str, Any]) -> None:
    Application(name, knobs, FEWER if knobs else EVENTS).agrees(None)


@pytest.mark.parametrize("name", STREAMS)
def test_kernels_give_it_too(name: str) -> None:
    Application(name, {"accounts": 64, "records": 64, "goods": 64, "segments": 3, "quantity": 10}, 500).agrees(
        Way(interpreted=True, batch_rows=7)
    )


@pytest.mark.long
@pytest.mark.parametrize(("name", "knobs"), KNOBS)
def test_compiled_kernels_give_it_for_a_million_events(name: str, knobs: Mapping[str, Any]) -> None:
    application = Application(name, knobs, MOST)
    for threads in (0, 1, 2, 4):
        application.agrees(Way(threads))


def test_bids_are_refused_for_the_price_and_for_the_quantity() -> None:
    application = Application("online_bidding", {"quantity": 10, "added": 1, "goods": 100}, 4_000)
    reasons = Counter(row[-1] for row in application.expected["trade_rejected"])
    assert min(reasons["the price is higher"], reasons["CHECK (quantity >= 0) of goods"]) > 200
    assert min(quantity for _, _, quantity in application.expected["goods"]) >= 0


# -- what holds whatever the events are ------------------------------------------------------------------------------


def test_transfers_keep_the_sum_and_deposits_add_to_it() -> None:
    for transfers in (1.0, 0.5):
        knobs = {"accounts": 100, "transfers": transfers, "balance": 5_000}
        application = Application("streaming_ledger", knobs, 2_000)
        application.agrees(None)
        deposits = [row for row in application.streams["ledger"] if row[1] == "deposit"]
        for table, amount in (("account", -2), ("asset", -1)):
            balances = [balance for _, balance in application.expected[table]]
            assert sum(balances) == 100 * 5_000 + sum(row[amount] for row in deposits) and min(balances) >= 0
        accepted = {row[1] for row in application.expected["made"]}
        assert accepted == {True, False}
