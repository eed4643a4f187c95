"""Transactions that are measured: the Streaming Ledger in its own text, other applications as shipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.case import Case, Generate, file_of, whole
from benchmarks.loops import LoopSpec
from cq.workloads import WORKLOADS

QUERIES = Path(__file__).parent.parent / "queries" / "transactions"

ACCOUNTS, SKEW, SEED = 10_000, 0.6, 1
_MOVED = "VALUES ({key}, {amount}) ON CONFLICT (id) DO UPDATE SET bal = bal + excluded.bal"
_TOLD = ", ".join(f"COALESCE((SELECT bal FROM account WHERE id = {k}), 0) AS of_{k}" for k in ("sa", "da"))


def _ledger() -> Case:
    """Streaming Ledger (TStream, section 6.2): half deposits, half transfers that may be refused."""

    def generate(rows: int) -> pa.RecordBatch:
        r = np.random.default_rng(SEED)
        weights = 1 / np.arange(1, ACCOUNTS + 1) ** SKEW
        places = r.permutation(ACCOUNTS)
        keys = [places[r.choice(ACCOUNTS, rows, p=weights / weights.sum())] for _ in range(4)]
        kind = (r.random(rows) < 0.5).astype(np.int64)
        for source, to in ((0, 1), (2, 3)):
            keys[to] = np.where(keys[source] == keys[to], (keys[to] + 1) % ACCOUNTS, keys[to])
        amounts = [r.integers(0, 10_000, rows), r.integers(0, 1_000, rows)]
        return pa.RecordBatch.from_arrays([pa.array(c) for c in (kind, *keys, *amounts)], list(_LEDGER))

    account, asset = (_MOVED.format(key=k, amount=a) for k, a in (("{0}", "x"), ("{1}", "y")))
    moved = f"    INSERT INTO account {account};\n    INSERT INTO asset {asset};\n"
    query = (
        f"CREATE STREAM event ({', '.join(f'{c} BIGINT NOT NULL' for c in _LEDGER)})\n"
        f"{file_of('event')}\n"
        "CREATE TABLE account (id BIGINT PRIMARY KEY, bal BIGINT NOT NULL);\n"
        "CREATE TABLE asset (id BIGINT PRIMARY KEY, bal BIGINT NOT NULL);\n"
        "CREATE TRIGGER ledger AFTER INSERT ON event BEGIN ATOMIC\n"
        f"  IF kind = 0 THEN\n{moved.replace('{0}', 'sa').replace('{1}', 'sb')}"
        f"    SELECT sa, 1 AS ok, {_TOLD};\n"
        "  ELSEIF (SELECT bal FROM account WHERE id = sa) > x AND (SELECT bal FROM asset WHERE id = sb) > y THEN\n"
        "    UPDATE account SET bal = bal - x WHERE id = sa;\n    UPDATE asset SET bal = bal - y WHERE id = sb;\n"
        f"{moved.replace('{0}', 'da').replace('{1}', 'db')}    SELECT sa, 1, {_TOLD};\n"
        f"  ELSE SELECT sa, 0, {_TOLD}; END IF;\nEND;\n"
        "SELECT * FROM ledger;"
    )
    return Case(
        name="ledger",
        title="transactions: streaming ledger, 10,000 accounts",
        query=query,
        stream="event",
        rows=2_000_000,
        generate=generate,
        loop=LoopSpec("ledger", _LEDGER, ()),
    )


_LEDGER = ("kind", "sa", "da", "sb", "db", "x", "y")


def _workload(name: str) -> Generate:
    """Events of a workload with the parameters of the shipped query."""
    return lambda rows: whole(pa.Table.from_batches(WORKLOADS[name].generate(rows=rows)))


def _first(name: str) -> Generate:
    """The initial rows of a table, however many events there are."""
    return lambda _: whole(pa.Table.from_batches(WORKLOADS[name].generate(rows=ACCOUNTS)))


def _shipped(name: str, title: str, streams: dict[str, str], columns: tuple[str, ...]) -> Case:
    """A query of queries/transactions/. streams: the workloads of the events, then of the tables' initial rows."""
    (stream, events), *others = streams.items()
    return Case(
        name=name,
        title=f"transactions: {title}",
        query=(QUERIES / f"{name}.cq").read_text(encoding="utf-8"),
        stream=stream,
        rows=500_000,
        generate=_workload(events),
        others={other: _first(workload) for other, workload in others},
        loop=LoopSpec(name, columns),
        loop_bar=0.7,
    )


_GOODS = ("id", "price", "quantity")

CASES = (
    _ledger(),
    _shipped(
        "grep_and_sum",
        "grep and sum, ten of 10,000 records",
        {"request": "grep_sum", "record": "grep_sum_records"},
        ("is_read", "keys", "vals", "ts", "record.key", "record.val"),
    ),
    _shipped(
        "online_bidding",
        "online bidding, one or twenty of 10,000 goods",
        {"bidding": "bidding", "opening": "bidding_goods"},
        ("kind", "item", "price", "quantity", "items", "amounts", "ts", *(f"opening.{c}" for c in _GOODS)),
    ),
    _shipped(
        "toll_processing",
        "toll processing, 100 segments",
        {"report": "toll_reports"},
        ("vid", "seg", "speed", "ts"),
    ),
)
