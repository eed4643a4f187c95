"""`python -m benchmarks.costs [NAME …]`: what the planner takes a row of each operator to cost, and what it costs.

Each query has one operator with state and 10,000 keys. Its bare kernel and that of a query that hands the same columns
on take turns over the same rows; the difference of their CPU seconds is what the operator adds to a row. Beside it
stands what the plan says (cq/planner/plan/costs.py), which the figures of the table there come from.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.bare import BareKernel
from benchmarks.case import BID_INTERVAL_US, columns, times
from cq.compiler.passes import compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.planner.physical.choose import row_cost_ns
from cq.runtime.layout.pipeline import Pipeline

KEYS = 10_000
ROWS = 1_000_000
ROUNDS = 7
SEED = 7

_STREAMS = "".join(
    f"CREATE STREAM {name} (k BIGINT NOT NULL, {value} BIGINT NOT NULL, name VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, "
    f"WATERMARK FOR ts) WITH (connector = 'file', path = '{name}.parquet', format = 'parquet');\n"
    for name, value in (("bid", "price"), ("ask", "asked"))
)
ALONE = "SELECT k, price, ts FROM bid"
BOTH = "SELECT k, price, ts FROM bid UNION ALL SELECT k, asked, ts FROM ask"
_OVER = "SELECT k, {} OVER (PARTITION BY k ORDER BY ts {}) AS n FROM bid"
_TUMBLE = "FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND)"
_JOIN = "SELECT b.k, price, asked FROM bid AS b {} JOIN ask AS a ON b.k = a.k AND {}"
_WINDOWED = (
    "SELECT b.k, price, asked FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '0.1' SECOND) AS b "
    "{} JOIN TUMBLE(TABLE ask, DESCRIPTOR(ts), INTERVAL '0.1' SECOND) AS a ON b.window_end = a.window_end AND b.k = a.k"
)

# name: (the query, the one to compare it with)
QUERIES = {
    "group": (f"SELECT k, COUNT(*) AS n, SUM(price) AS s {_TUMBLE} GROUP BY window_start, window_end, k", ALONE),
    "text key": (f"SELECT name, COUNT(*) AS n, SUM(price) {_TUMBLE} GROUP BY window_start, window_end, name", ALONE),
    "distinct": (f"SELECT k, COUNT(DISTINCT price % 100) AS n {_TUMBLE} GROUP BY window_start, window_end, k", ALONE),
    "over": (_OVER.format("SUM(price)", "ROWS UNBOUNDED PRECEDING"), ALONE),
    "frame of rows": (_OVER.format("SUM(price)", "ROWS 9 PRECEDING"), ALONE),
    "frame of time": (_OVER.format("SUM(price)", "RANGE INTERVAL '1' SECOND PRECEDING"), ALONE),
    "greatest of a frame": (_OVER.format("MAX(price)", "RANGE INTERVAL '1' SECOND PRECEDING"), ALONE),
    "frame that is walked": (_OVER.format("MEDIAN(price)", "ROWS 23 PRECEDING"), ALONE),
    "session": (
        "SELECT k, window_start, COUNT(*) AS n FROM SESSION(TABLE bid PARTITION BY k, DESCRIPTOR(ts), "
        "INTERVAL '0.1' SECOND) GROUP BY window_start, window_end, k",
        ALONE,
    ),
    "long session": (
        "SELECT k, window_start, COUNT(*) AS n FROM SESSION(TABLE bid PARTITION BY k, DESCRIPTOR(ts), "
        "INTERVAL '1' SECOND) GROUP BY window_start, window_end, k",
        ALONE,
    ),
    "rows of sessions": (
        "SELECT k, price, window_start FROM SESSION(TABLE bid PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.1' SECOND)",
        ALONE,
    ),
    "order": ("SELECT k, price FROM bid ORDER BY price", ALONE),
    "first of a window": (
        f"SELECT k, price {_TUMBLE} QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end, k ORDER BY price DESC) <= 3",
        ALONE,
    ),
    "join": (_JOIN.format("", "a.asked < 101"), BOTH),
    "interval join": (_JOIN.format("", "a.ts BETWEEN b.ts AND b.ts + INTERVAL '0.1' SECOND"), BOTH),
    "outer interval join": (_JOIN.format("LEFT", "a.ts BETWEEN b.ts AND b.ts + INTERVAL '0.1' SECOND"), BOTH),
    "window join": (_WINDOWED.format(""), BOTH),
    "outer window join": (_WINDOWED.format("LEFT"), BOTH),
    "ASOF join": (_JOIN.format("ASOF", "b.ts >= a.ts"), BOTH),
}  # fmt: skip


def inputs() -> dict[str, pa.Table]:
    """A bid every 10 µs and an ask between every two, with random keys; half as many of each if both are read."""
    r = np.random.default_rng(SEED)
    made = {}
    for name, value, first_us in (("bid", "price", 0), ("ask", "asked", BID_INTERVAL_US // 2)):
        keys = r.integers(0, KEYS, ROWS)
        table = columns(k=keys, **{value: r.integers(100, 100_000, ROWS)}, ts=times(ROWS, first_us=first_us))
        names = pa.array([f"the key {k}" for k in range(KEYS)]).take(pa.array(keys))
        made[name] = pa.Table.from_batches([table]).add_column(2, pa.field("name", pa.string(), False), names)
    return made


class Kernel:
    """The single loop of a query, its cost by the plan, and the rows to work on."""

    def __init__(self, text: str, tables: dict[str, pa.Table]) -> None:
        given = Inputs(FileAccess(Path.cwd()), dict(tables))
        compiled = compile(f"{_STREAMS}{text};", "costs", inputs=given)
        steps = compiled.for_workers(1)
        (pipeline,) = steps.after("emit")
        assert isinstance(pipeline, Pipeline)
        self.says_ns = sum(row_cost_ns(plan.plan) for plan in steps.after("place"))
        batches = [tables[s.name].select([c.name for c in s.columns]).to_batches(65_536) for s in pipeline.sources]
        self.rows = sum(b.num_rows for bs in batches for b in bs)
        self.bare = BareKernel(pipeline, batches)

    def run_ns(self) -> float:
        """CPU nanoseconds per row, for one run with empty state."""
        begun = time.thread_time_ns()
        self.bare.run()
        return (time.thread_time_ns() - begun) / self.rows


def main(names: Sequence[str]) -> None:
    """Print a line for each query, as soon as it is measured."""
    tables = inputs()
    others = {text: Kernel(text, tables) for text in (ALONE, BOTH)}
    print(f"{'operator':24}{'adds ns a row':>16}{'from':>8}{'to':>8}{'plan says':>12}")
    for name in names or QUERIES:
        text, other = QUERIES[name]
        kernel = Kernel(text, tables)
        kernel.run_ns()
        found = sorted(kernel.run_ns() - others[other].run_ns() for _ in range(ROUNDS))
        print(f"{name:24}{median(found):16.1f}{found[0]:8.1f}{found[-1]:8.1f}{kernel.says_ns:12}", flush=True)
        kernel.bare.close()


if __name__ == "__main__":
    main(sys.argv[1:])
