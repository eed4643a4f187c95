"""Transactions have one outcome, whatever runs them: `python -m tests.transactions`.

Every application runs by every scheme with 1, 2, 4 and 8 workers and 1, 7, 500 and 5,000 events at a time. Rows,
rejections and tables have the hashes of the serial loop, values in order. `--events` is how many transactions run in
all these settings together; a round has new events, the next ones of the knobs below, at most 100,000 for a setting on
average. Applications begin with different ones of their knobs.

Half of the events run 5,000 at a time, so that a quarter of a million transactions of an application fill one of these
punctuations and begin another.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from cq.compiler.kept_plans import KeptPlans
from cq.compiler.passes import Compiled, compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.rowhash import RowHash
from cq.connectors.sinks.writers import MemorySink, result_schema
from cq.engines.protocol import RunOptions
from cq.engines.query import run_query
from cq.records import dataclass
from cq.ways import UNCHECKED, WAY_OF_SCHEME
from cq.workloads import WORKLOADS

PLANS = KeptPlans()  # of other rows of the same query
QUERIES = Path(__file__).parent.parent / "queries" / "transactions"
SCHEMES_COMPARED = tuple(s for s in WAY_OF_SCHEME if s != UNCHECKED)
WORKERS, INTERVALS = (1, 2, 4, 8), (1, 7, 500, 5_000)
EVENTS, MOST = 100_000_000, 100_000

Knobs = Mapping[str, int | float]


@dataclass(frozen=True)
class Application:
    """streams: the workloads its streams are of.  rows: the knob that says how many rows its tables begin with.
    outputs: what its triggers give, and its tables.  knobs: those of the first round, of the second one, …
    """

    streams: Mapping[str, str]
    rows: str
    outputs: tuple[str, ...]
    knobs: tuple[Knobs, ...]


SEVERAL = {"partitions": 8, "several": 0.5}
APPLICATIONS = {
    "streaming_ledger": Application(
        {"opening": "ledger_accounts", "ledger": "ledger"},
        "accounts",
        ("made", "account", "asset"),
        (
            {"accounts": 500, "balance": 20_000},
            {"accounts": 10_000, "balance": 1_000_000},
            {"accounts": 2, "balance": 30_000, "transfers": 1.0},
            {"accounts": 500, "balance": 0, "theta": 1.2, **SEVERAL},
        ),
    ),
    "grep_and_sum": Application(
        {"record": "grep_sum_records", "request": "grep_sum"},
        "records",
        ("answered", "rec"),
        (
            {"records": 64, "theta": 1.2},
            {"records": 10_000},
            {"records": 1_000, "reads": 0.0, **SEVERAL},
            {"records": 64, "reads": 0.9, "accesses": 30},
        ),
    ),
    "online_bidding": Application(
        {"opening": "bidding_goods", "bidding": "bidding"},
        "goods",
        ("trade", "trade_rejected", "goods"),
        ({"goods": 100, "quantity": 10, "added": 1}, {"goods": 10_000}, {"goods": 1_000, **SEVERAL}),
    ),
    "toll_processing": Application(
        {"report": "toll_reports"},
        "",
        ("toll", "measure_rejected", "road_speed", "vehicles", "seen"),
        ({"segments": 100}, {"segments": 3, "broken": 0.1, "vehicles": 300}, {"segments": 1, "theta": 0.0}),
    ),
}
SETTINGS = tuple(itertools.product(SCHEMES_COMPARED, WORKERS, INTERVALS))


LONGEST = max(INTERVALS)


@dataclass(frozen=True)
class Round:
    """An application in every setting. events: by how many run together.  different: the settings with another outcome,
    of which there should be none."""

    name: str
    events: Mapping[int, int]
    knobs: Knobs
    different: tuple[tuple[str, int, int], ...]

    @property
    def transactions(self) -> int:
        """In all settings."""
        return sum(self.events.values()) * len(SCHEMES_COMPARED) * len(WORKERS)


def rows_of(application: Application, knobs: Knobs, seed: int, events: int) -> dict[str, pa.Table]:
    """What the streams of an application give."""
    found = {}
    for stream, name in application.streams.items():
        workload = WORKLOADS[name]
        rows = events if "interval_us" in workload.parameters else int(knobs[application.rows])
        chosen = {k: v for k, v in {**knobs, "rows": rows, "seed": seed}.items() if k in workload.parameters}
        found[stream] = pa.Table.from_batches(workload.generate(**chosen), workload.schema)
    return found


def compiled_for(name: str, scheme: str, given: dict[str, pa.Table]) -> Compiled:
    """The query with all that its transactions leave, by a scheme, over these rows."""
    text = (QUERIES / f"{name}.cq").read_text(encoding="utf-8")
    shown = "".join(f"SELECT * FROM {output};\n" for output in APPLICATIONS[name].outputs)
    text, found = re.subn(r"\nSELECT \*\nFROM \w+;\n$", "\n" + shown, text)
    assert found == 1, f"{name} does not end with a query of a stream"
    return compile(
        text,
        name,
        settings={"transactions": scheme, "punctuation_interval": LONGEST},
        inputs=Inputs(FileAccess(QUERIES), given),
        kept=PLANS,
    )


def outcome(compiled: Compiled, workers: int, interval: int) -> tuple[tuple[int, str], ...]:
    """The number of rows and the hash of each output, values in order, so many events at a time."""
    sinks = {o.name: MemorySink(result_schema(o.node.schema.fields)) for o in compiled.outputs}
    run_query(compiled, sinks, "native", RunOptions(workers, batch_rows=interval, unhashed=frozenset(sinks)))
    found = []
    for sink in sinks.values():
        rows = sink.table().combine_chunks()  # a punctuation gives a batch, and hashing many small ones takes long
        rows_hash = RowHash()
        for batch in rows.to_batches():
            rows_hash.update(batch)
        found.append((rows.num_rows, rows_hash.digest))
    return tuple(found)


def different_settings(
    name: str, given: dict[str, pa.Table], intervals: tuple[int, ...]
) -> Iterator[tuple[str, int, int]]:
    """The settings, with these many events at a time, whose outcome is not that of the serial loop."""
    expected = outcome(compiled_for(name, "serial", given), 1, LONGEST)
    assert expected[0][0] > 0, f"{name} gives nothing"
    for scheme in SCHEMES_COMPARED:
        compiled = compiled_for(name, scheme, given)
        for workers, interval in itertools.product(WORKERS, intervals):
            (part,) = compiled.for_workers(workers).after("place")
            assert workers == 1 or part.stages[-1].way is WAY_OF_SCHEME[scheme], part.stages[-1].reason
            if outcome(compiled, workers, interval) != expected:
                yield scheme, workers, interval


def rounds(events: int, names: tuple[str, ...] = tuple(APPLICATIONS)) -> Iterator[Round]:
    """All settings of these applications, over so many events together."""
    left = events // len(names) // len(SETTINGS)
    number = 0
    while left > 0:
        size = min(left, MOST)
        most = size * len(INTERVALS) * 13 // 25
        fewer = (size * len(INTERVALS) - most) // (len(INTERVALS) - 1)
        events = {i: most if i == LONGEST else fewer for i in INTERVALS}
        for name in names:
            known = APPLICATIONS[name].knobs
            knobs = known[(number + tuple(APPLICATIONS).index(name)) % len(known)]
            different = []
            for count, intervals in ((most, (LONGEST,)), (fewer, tuple(i for i in INTERVALS if i != LONGEST))):
                given = rows_of(APPLICATIONS[name], knobs, number + 1, count)
                different += different_settings(name, given, intervals)
            yield Round(name, events, knobs, tuple(different))
        left -= size
        number += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("applications", nargs="*", help="their names; all when left out")
    parser.add_argument("--events", type=int, default=EVENTS, help=f"in all settings together (default {EVENTS:,})")
    options = parser.parse_args()
    chosen = tuple(options.applications) or tuple(APPLICATIONS)
    bad = run = 0
    began = time.perf_counter()
    for done in rounds(options.events, chosen):
        run += done.transactions
        bad += len(done.different)
        verdict = f"DIFFERENT: {done.different}" if done.different else "one outcome"
        print(
            f"{done.name} {dict(done.knobs)}: {sum(done.events.values()) // len(INTERVALS):,} events a setting, "
            f"{len(SETTINGS)} settings: {verdict}",
            flush=True,
        )
    print(f"{run:,} transactions in {time.perf_counter() - began:.0f} s: {bad or 'none'} different")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
