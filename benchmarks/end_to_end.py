"""The time that a user waits, compared with DuckDB: a query in Python to its table, and a whole process on files.

In Python both get the query's text, and the rows as an Arrow table or the name of a Parquet file; both return an Arrow
table. cq's code was compiled before, as by an earlier run of the query on the machine; everything else is timed.
Processes are measured from start to end, including the interpreter's start and the imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.case import BID_INTERVAL_US
from benchmarks.cases import LEAST_PRICE
from benchmarks.measure import Contender, Race, run_race
from benchmarks.peers import ROW_GROUP, THREADS
from benchmarks.processes import RUN_AND_TELL, TELL_PEAK, Ended, run_process
from cq.api import sql
from cq.cache import cache_directory
from cq.workloads import WORKLOADS

TEXTS = 10_000
KEY_STRIDE = 7919  # so that keys are not a dense range
HIGH_PRICE = 99_900_000  # one of 10,000 prices is higher: this measures reading


@dataclass(frozen=True, slots=True)
class InPython:
    """One query over the rows of t. bar: the required speed relative to DuckDB.  query: cq's, if texts differ."""

    name: str
    title: str
    rows: int
    duckdb: str
    query: str = ""
    bar: float = 1.0


@dataclass(frozen=True, slots=True)
class Whole:
    """One query as a process. time_bar, memory_bar: the most that it may take, as a multiple of DuckDB's process.

    query: cq's arguments to `cq run`, or a program in Python.  duckdb: a program that has a connection c.
    """

    name: str
    title: str
    query: tuple[str, ...] | str
    duckdb: str
    time_bar: float = 1.5
    memory_bar: float | None = None


_GROUPED = "COUNT(*) AS n, SUM(price) AS total"
_STREAM = (
    "CREATE STREAM t (auction BIGINT NOT NULL, price BIGINT, item VARCHAR, ts TIMESTAMP NOT NULL, WATERMARK FOR ts)"
)

IN_PYTHON = (
    InPython("filter", "filter", 10_000_000, f"SELECT auction, price, ts FROM t WHERE price > {LEAST_PRICE}"),
    InPython("projection", "projection", 10_000_000, "SELECT auction, price * 2 + 1 AS doubled FROM t"),
    InPython(
        "tumbling", "tumbling aggregate, 10,000 keys", 10_000_000,
        f"SELECT time_bucket(INTERVAL 10 SECOND, ts) AS window_start, auction, {_GROUPED} FROM t GROUP BY ALL",
        f"SELECT window_start, auction, {_GROUPED} FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
        "GROUP BY window_start, window_end, auction",
    ),
    InPython("group", "GROUP BY, 10,000 keys", 10_000_000, f"SELECT auction, {_GROUPED} FROM t GROUP BY auction"),
    InPython("text", f"GROUP BY, {TEXTS:,} texts", 20_000_000, f"SELECT item, {_GROUPED} FROM t GROUP BY item"),
    InPython("distinct", "COUNT(DISTINCT)", 20_000_000, "SELECT COUNT(DISTINCT price) AS n FROM t"),
)  # fmt: skip

_KEYS = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM {} GROUP BY k"
_COUNTED = f"print(sum(b.num_rows for b in c.sql({{!r}}).to_arrow_reader({ROW_GROUP})))"
_LOADED = "import pyarrow.parquet\nkeys = pyarrow.parquet.read_table('keys.parquet')\n"
_FEW = f"SELECT auction, price FROM 't.parquet' WHERE price > {HIGH_PRICE}"
_TEXT = f"SELECT auction, price, ts, item FROM 't.csv' WHERE price > {LEAST_PRICE}"

WHOLE = (
    Whole(
        "count", "COUNT(*), 20,000,000 rows of Parquet", ("SELECT COUNT(*) AS n FROM 't.parquet'",),
        "print(c.sql(\"SELECT COUNT(*) FROM 't.parquet'\").fetchall())",
    ),
    Whole(
        "limit", "LIMIT 5, 20,000,000 rows of Parquet", ("SELECT * FROM 't.parquet' LIMIT 5",),
        "print(c.sql(\"SELECT * FROM 't.parquet' LIMIT 5\").fetchall())",
    ),
    Whole(
        "few", "filter, 20,000,000 rows of Parquet", (_FEW, "-o", "few.csv"),
        f'c.sql("COPY ({_FEW}) TO \'few_duck.csv\'")',
    ),
    Whole(
        "csv", "CSV, filter, CSV: 4,000,000 rows", (_TEXT, "-o", "kept.csv"),
        f'c.sql("COPY ({_TEXT}) TO \'kept_duck.csv\'")', time_bar=1.0,
    ),
    Whole(
        "keys", "GROUP BY of 20,000,000 keys, Parquet", (_KEYS.format("'keys.parquet'"), "-o", "/dev/null"),
        _COUNTED.format(_KEYS.format("'keys.parquet'")), memory_bar=1.5,
    ),
    Whole(
        "keys in memory", "GROUP BY of 20,000,000 keys, from memory",
        f"{_LOADED}import cq\n"
        f"print(len(cq.run({_KEYS.format('keys')!r}, {{'keys': keys}}, threads={THREADS}).to_arrow()))",
        f"{_LOADED}print(len(c.sql({_KEYS.format('keys')!r}).to_arrow_table()))", memory_bar=1.5,
    ),
)  # fmt: skip

WHOLE_ROWS, CSV_ROWS = 20_000_000, 4_000_000
_DUCK = f"import duckdb\nc = duckdb.connect(config={{'threads': {THREADS}}})\n"


def rows_of(rows: int) -> pa.Table:
    """Bids with a text for an item: 10,000 keys scattered over all integers, and as many texts."""
    made = WORKLOADS["bids"].generate(rows=rows, keys=10_000, scatter=True, interval_us=BID_INTERVAL_US)
    table = pa.Table.from_batches(made).select(["auction", "price", "ts"])
    texts = pa.array([f"item number {n}" for n in range(TEXTS)])
    codes = np.random.default_rng(1).integers(0, TEXTS, rows).astype(np.int32)
    return table.append_column("item", texts.take(pa.array(codes)))


# -- in Python ---------------------------------------------------------------------------------------------------------


def python_races(rounds: int, share: int, directory: Path, told: Callable[[str], None]) -> dict[str, Race]:
    """Every query from memory and from a file: by the name of the query and the place of its rows."""
    found: dict[str, Race] = {}
    for rows in dict.fromkeys(case.rows // share for case in IN_PYTHON):
        table = rows_of(rows)
        path = directory / f"t{rows}.parquet"
        parquet.write_table(table, path)
        for case in IN_PYTHON:
            if case.rows // share == rows:
                for kind, given in (("memory", table), ("Parquet", path)):
                    told(f"{case.name}, from {kind}")
                    found[f"{case.name}, {kind}"] = _race(case, given, rows, rounds)
        path.unlink()
    return found


def _race(case: InPython, given: pa.Table | Path, rows: int, rounds: int) -> Race:
    text = f"{_STREAM};\n{case.query}" if case.query else case.duckdb
    with _duck(given) as connection:

        def duck() -> int:
            return len(connection.sql(case.duckdb).to_arrow_table())

        contenders: dict[str, Contender] = {"cq": lambda: len(sql(text, t=given).run(threads=THREADS).to_arrow())}
        return run_race(rows, contenders | {"duckdb": duck}, rounds)


@contextmanager
def _duck(given: pa.Table | Path) -> Iterator[Any]:
    import duckdb

    with duckdb.connect(config={"threads": THREADS}) as connection:
        if isinstance(given, Path):
            connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{given}')")
        else:
            connection.register("t", given)
        yield connection


# -- processes ---------------------------------------------------------------------------------------------------------


def whole_processes(
    rounds: int, share: int, directory: Path, told: Callable[[str], None]
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """By case and contender: the time of every process, and its peak memory."""
    rows = WHOLE_ROWS // share
    table = rows_of(rows)
    parquet.write_table(table, directory / "t.parquet")
    with (directory / "t.csv").open("wb") as file:
        csv.write_csv(table.slice(0, CSV_ROWS // share), file)
    draws = np.random.default_rng(2)
    keys = {"k": draws.permutation(rows) * KEY_STRIDE, "v": draws.integers(0, 1000, rows)}
    parquet.write_table(pa.table(keys), directory / "keys.parquet")
    found = {case.name: _processes(case, rounds, directory, told) for case in WHOLE}
    for file_ in directory.iterdir():
        if file_.is_file():
            file_.unlink()
    return found


def _processes(
    case: Whole, rounds: int, directory: Path, told: Callable[[str], None]
) -> dict[str, dict[str, list[float]]]:
    told(case.title)
    if isinstance(case.query, str):
        mine = ["-c", case.query + "\n" + TELL_PEAK]
    else:
        mine = ["-c", RUN_AND_TELL, "run", *case.query, "-q", "-j", str(THREADS)]
    programs = {"cq": mine, "duckdb": ["-c", f"{_DUCK}{case.duckdb}\n{TELL_PEAK}"]}
    found = {name: list[Ended]() for name in programs}
    cache = cache_directory() or directory / "cache"
    for number in range(-1, rounds):  # the first round may compile, and is not counted
        for name in sorted(programs, reverse=number % 2 == 1):
            ended = run_process(programs[name], directory, cache)
            if number >= 0:
                found[name].append(ended)
    return {
        name: {
            "wall_s": [e.wall_s for e in ended],
            "cpu_s": [e.cpu_s for e in ended],
            "peak": [int(e.output.split()[-1]) * 1024 for e in ended],
        }
        for name, ended in found.items()
    }
