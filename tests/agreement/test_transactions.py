"""Transactional applications give what a serial loop in plain Python gives: outputs, rejections and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
import transaction_oracles
from cases import Prepared, Way
from paths import QUERIES

from cq.workloads import WORKLOADS

EVENTS, FEWER, MOST = 10_000, 2_000, 1_000_000
SHARED = {"partitions": 8, "several": 0.5}
STREAMS = {
    "streaming_ledger": {"opening": "ledger_accounts", "ledger": "ledger"},
    "toll_processing": {"report": "toll_reports"},
}
KNOBS: list[tuple[str, dict[str, Any]]] = [
    ("streaming_ledger", {}),
    ("streaming_ledger", {"balance": 0, "theta": 1.2}),
    ("streaming_ledger", {"accounts": 2, "balance": 30_000, "seed": 3}),
    ("streaming_ledger", {"transfers": 1.0, "accounts": 500, "balance": 9_000, **SHARED}),
    ("toll_processing", {}),
    ("toll_processing", {"broken": 0.1, "vehicles": 300}),
    ("toll_processing", {"segments": 1, "theta": 0.0, "seed": 2}),
]


class Application:
    """A query of queries/transactions/ over generated rows, whose outputs are those of the oracle."""

    def __init__(self, name: str, knobs: Mapping[str, Any], events: int) -> None:
        self.streams = {}
        tables = {}
        for stream, workload in STREAMS[name].items():
            known = WORKLOADS[workload].parameters
            rows = events if "seed" in known else knobs.get("accounts", 10_000)
            chosen = {k: v for k, v in {**knobs, "rows": rows}.items() if k in known}
            tables[stream] = pa.Table.from_batches(WORKLOADS[workload].generate(**chosen), WORKLOADS[workload].schema)
            columns = [c.cast("int64") if pa.types.is_timestamp(c.type) else c for c in tables[stream].columns]
            self.streams[stream] = list(zip(*(c.to_pylist() for c in columns), strict=True))
        self.expected = getattr(transaction_oracles, name)(self.streams)
        text = (QUERIES / "transactions" / f"{name}.cq").read_text(encoding="utf-8")
        shown = "".join(f"SELECT * FROM {output};\n" for output in self.expected)
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
def test_reference_gives_what_the_oracle_gives(name: str, knobs: Mapping[str, Any]) -> None:
    Application(name, knobs, FEWER if knobs else EVENTS).agrees(None)


@pytest.mark.parametrize("name", STREAMS)
def test_kernels_give_it_too(name: str) -> None:
    Application(name, {"accounts": 50, "segments": 3}, 500).agrees(Way(interpreted=True, batch_rows=7))


@pytest.mark.long
@pytest.mark.parametrize(("name", "knobs"), KNOBS)
def test_compiled_kernels_give_it_for_a_million_events(name: str, knobs: Mapping[str, Any]) -> None:
    application = Application(name, knobs, MOST)
    for threads in (0, 1, 2, 4):
        application.agrees(Way(threads))


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
