"""Measurements in separate processes: start-up times and peak memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from cq.workloads import WORKLOADS

SMALL_ROWS = 1_000
QUERY = """
CREATE STREAM bid (auction BIGINT NOT NULL, price BIGINT NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts)
WITH ({source});
SELECT window_start, auction, {columns}
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND) GROUP BY window_start, window_end, auction;
"""
COLUMNS = "COUNT(*) AS n, SUM(price) AS total, MAX(price) AS highest"
OTHER_COLUMNS = "COUNT(*) AS n"  # another kernel: it leaves the runtime library in the cache
FILTER = QUERY.partition("SELECT")[0] + "SELECT auction, price * 2 AS doubled, ts FROM bid WHERE price > 200000;\n"


_BID = QUERY.partition("SELECT")[0]
_WINDOW = "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND)"
_WINDOWED = {  # everything that keeps rows or groups for a time: memory must not grow with the input
    "window join": f"SELECT a.auction, a.price, b.price AS other FROM {_WINDOW} AS a JOIN {_WINDOW} AS b "
    "ON a.window_end = b.window_end AND a.auction = b.auction AND a.price < b.price;\n",
    "interval join": "SELECT a.auction, a.price, b.price AS other FROM bid AS a JOIN bid AS b "
    "ON a.auction = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '0.5' SECOND;\n",
    "ASOF join": "SELECT a.auction, a.price, b.price AS other FROM bid AS a ASOF JOIN bid AS b "
    "ON a.auction = b.auction AND a.ts > b.ts;\n",
    "sessions": "SELECT window_start, auction, COUNT(*) AS n "
    "FROM SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '0.2' SECOND) "
    "GROUP BY window_start, window_end, auction;\n",
    "top 10 of a window": f"SELECT auction, price FROM {_WINDOW} "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY price DESC) <= 10;\n",
    "sliding window": "SELECT window_start, auction, COUNT(*) AS n, MAX(price) AS highest "
    "FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '0.1' SECOND, INTERVAL '2' SECOND) "
    "GROUP BY window_start, window_end, auction;\n",
    "sliding frame": "SELECT auction, SUM(price) OVER (PARTITION BY auction ORDER BY ts "
    "RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW) AS total FROM bid;\n",
    "median": f"SELECT window_start, auction, MEDIAN(price) AS middle FROM {_WINDOW} "
    "GROUP BY window_start, window_end, auction;\n",
}


# The wait of a program that has imported pyarrow and has its rows: `import cq`, and the first query to its last row.
_FIRST_QUERY = """
import resource, time
import pyarrow as pa
rows = pa.table({"a": list(range(1000)), "b": [n / 2 for n in range(1000)]})

def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), usage.ru_utime + usage.ru_stime

began = spent()
import cq
assert len(cq.run("SELECT a, b * 2 AS c FROM t WHERE a > 500", {"t": rows}).to_arrow()) == 499
print(*(end - start for start, end in zip(began, spent())))
"""

# In its rusage, the peak of a process started by a large one includes the large one; its own memory map does not.
TELL_PEAK = """
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
# Like `cq` itself: its `main` ends the process, and the exit reports the peak.
RUN_AND_TELL = f"""
import atexit, sys
from cq.cli import main
tell = {TELL_PEAK!r}
atexit.register(exec, tell)
main(sys.argv[1:])
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended successfully."""

    wall_s: float
    cpu_s: float
    output: str


def run_process(arguments: Sequence[str], directory: Path, cache: Path) -> Ended:
    """Run Python with these arguments in `directory`, with compiled code in `cache`.

    Byte code is kept, as for an installed package, whatever the settings of this process.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {
        "CQ_CACHE_DIR": str(cache),
        "PYTHONPATH": str(Path(__file__).parent.parent),
        "PYTHONPYCACHEPREFIX": str(directory / "bytecode"),
    }
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=directory, env=environment, stdout=output, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        assert process.returncode == 0, errors.read().decode(errors="replace")
        return Ended(wall_s, usage.ru_utime + usage.ru_stime, output.read().decode(errors="replace"))


def startup(rounds: int, cold_rounds: int) -> dict[str, list[Ended]]:
    """`import cq`, `cq check`, a first query in Python, and `cq run` on a small CSV file: warm; compiling the kernel;
    compiling the runtime library too."""
    names = ("python", "import cq", "import pyarrow", "check", "first query", "warm", "cold", "all cold")
    found: dict[str, list[Ended]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        _write_small(directory)
        source = "connector = 'file', path = 'bids.csv', format = 'csv'"
        (directory / "q.cq").write_text(QUERY.format(source=source, columns=COLUMNS))
        (directory / "other.cq").write_text(QUERY.format(source=source, columns=OTHER_COLUMNS))
        warm, library = directory / "warm", directory / "library"
        run_process(_cq_run("q.cq"), directory, warm)
        _first_query(directory, warm)
        run_process(_cq_run("other.cq"), directory, library)
        for number in range(rounds):
            found["python"].append(run_process(["-c", "pass"], directory, warm))
            found["import cq"].append(run_process(["-c", "import cq"], directory, warm))
            found["import pyarrow"].append(run_process(["-c", "import pyarrow"], directory, warm))
            found["check"].append(run_process(["-m", "cq", "check", "q.cq"], directory, warm))
            found["first query"].append(_first_query(directory, warm))
            found["warm"].append(run_process(_cq_run("q.cq"), directory, warm))
            fresh = directory / f"fresh{number}"
            shutil.copytree(library, fresh)
            found["cold"].append(run_process(_cq_run("q.cq"), directory, fresh))
            if number < cold_rounds:
                found["all cold"].append(run_process(_cq_run("q.cq"), directory, directory / f"empty{number}"))
    return found


def _first_query(directory: Path, cache: Path) -> Ended:
    ended = run_process(["-c", _FIRST_QUERY], directory, cache)
    wall_s, cpu_s = map(float, ended.output.split())
    return Ended(wall_s, cpu_s, "")


def _cq_run(query: str) -> list[str]:
    return ["-m", "cq", "run", query, "-q", "-f", "csv"]


def _write_small(directory: Path) -> None:
    made = WORKLOADS["bids"].generate(rows=SMALL_ROWS, keys=100)
    table = pa.Table.from_batches(made).select(["auction", "price", "ts"])
    with (directory / "bids.csv").open("wb") as file:
        csv.write_csv(table, file)


def peak_memory(rows: int) -> dict[str, tuple[int, int]]:
    """Peak bytes of `cq run` at `rows` rows and at ten times as many, by query."""
    found: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for title, query, source in _memory_queries():
            _compiling, small, large = (_peak(directory, query, source, n) for n in (1000, rows, 10 * rows))
            found[title] = (small, large)
    return found


def _memory_queries() -> Sequence[tuple[str, str, str]]:
    file = "connector = 'file', path = 'bids.parquet', format = 'parquet'"
    generator = "connector = 'generator', workload = 'bids', keys = 10000, interval_us = 10, rows = {rows}"
    return (
        ("filter, Parquet file", FILTER, file),
        ("tumbling aggregate, Parquet file", QUERY, file),
        ("tumbling aggregate, generator", QUERY, generator),
        *((title, _BID + text, generator) for title, text in _WINDOWED.items()),
    )


def _peak(directory: Path, query: str, source: str, rows: int) -> int:
    path = directory / "bids.parquet"
    if "path" in source:
        _write_parquet(path, rows)
    text = query.format(source=source.format(rows=rows), columns=COLUMNS)
    text = text.replace("SELECT ", "CREATE SINK gone WITH (connector = 'discard');\nINSERT INTO gone SELECT ", 1)
    (directory / "q.cq").write_text(text)
    ended = run_process(["-c", RUN_AND_TELL, "run", "q.cq", "-q", "-j", "2"], directory, directory / "cache")
    path.unlink(missing_ok=True)
    return int(ended.output) * 1024


def _write_parquet(path: Path, rows: int) -> None:
    """Write bids to one file, never holding all of them: the measuring process must not need the memory it measures."""
    names = ["auction", "price", "ts"]
    with parquet.ParquetWriter(path, _schema(names)) as writer:
        for batch in WORKLOADS["bids"].generate(rows=rows, keys=10_000, interval_us=10):
            writer.write_batch(batch.select(names))


def _schema(names: Sequence[str]) -> pa.Schema:
    schema = WORKLOADS["bids"].schema
    return pa.schema([schema.field(name) for name in names])


def as_json(found: Mapping[str, list[Ended]]) -> dict[str, dict[str, list[float]]]:
    """The times of every kind of start."""
    return {
        name: {"wall_s": [e.wall_s for e in ended], "cpu_s": [e.cpu_s for e in ended]} for name, ended in found.items()
    }
