"""The output of every shipped query is the same whatever the threads and batches: `python -m tests.determinism`.

Each query runs over rows generated once (1 M; 50 k for batches of one row) in every configuration; the hash of each
output has to be one. `--rows` and `--small-rows` shorten it, names of queries choose some.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from cq.compiler.passes import Compiled, compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.sinks.writers import MemorySink, result_schema
from cq.connectors.sources import open_source
from cq.engines.protocol import RunOptions
from cq.engines.query import run_query
from cq.records import dataclass

QUERIES = Path(__file__).parent.parent / "queries"
THREADS = (0, 1, 2, 4, 8)
BATCH_ROWS = (7, 4096, 16384)
ROWS, SMALL_ROWS = 1_000_000, 50_000  # the latter for batches of one row
_ROWS_OPTION = re.compile(r"rows = \d+")


@dataclass(frozen=True)
class Run:
    """One configuration and what came out: rows and hash of every output."""

    rows: int
    threads: int
    batch_rows: int
    hashes: tuple[tuple[str, int, str], ...]
    seconds: float


def prepared(path: Path, rows: int) -> Compiled:
    """The query over `rows` generated rows of every stream, which are in memory."""
    text = _ROWS_OPTION.sub(f"rows = {rows}", path.read_text(encoding="utf-8"))
    given: dict[str, pa.Table] = {}
    compiled = compile(text, path.name, inputs=Inputs(FileAccess(path.parent), given))
    for stream in compiled.sources:
        source = open_source(stream, compiled.request.inputs)
        schema = result_schema(stream.fields)  # that of a batch may say NOT NULL
        batches = [b.batch.cast(schema) for b in source.batches()]
        source.close()
        given[stream.name] = pa.Table.from_batches(batches, schema)
    return compiled


def run(compiled: Compiled, rows: int, threads: int, batch_rows: int) -> Run:
    """One run. The hash is over values in order, not over how they come in batches."""
    sinks = {o.name: MemorySink(result_schema(o.node.schema.fields)) for o in compiled.outputs}
    began = time.perf_counter()
    summary = run_query(compiled, sinks, "native", RunOptions(threads, batch_rows))
    hashes = tuple((n, summary.rows_out[n], summary.hashes[n]) for n in sorted(sinks))
    return Run(rows, threads, batch_rows, hashes, time.perf_counter() - began)


def runs(
    path: Path, rows: int, small_rows: int, threads: Sequence[int] = THREADS, batch_rows: Sequence[int] = BATCH_ROWS
) -> Iterator[Run]:
    """Every configuration of one query; batches of one row over fewer rows."""
    for count, sizes in ((rows, batch_rows), (small_rows, (1,))):
        if count:
            compiled = prepared(path, count)
            for size in sizes:
                for workers in threads:
                    yield run(compiled, count, workers, size)


def disagreements(found: Sequence[Run]) -> list[Run]:
    """The runs whose output is not that of the first one over as many rows."""
    first: dict[int, Run] = {}
    return [r for r in found if r.hashes != first.setdefault(r.rows, r).hashes]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("queries", nargs="*", help="names without .cq, as nexmark/q5; all of queries/ when left out")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--small-rows", type=int, default=SMALL_ROWS)
    options = parser.parse_args()
    chosen = [QUERIES / f"{name}.cq" for name in options.queries] or sorted(QUERIES.rglob("*.cq"))
    different = 0
    for path in chosen:
        print(path.relative_to(QUERIES).with_suffix(""), flush=True)
        found = []
        for r in runs(path, options.rows, options.small_rows):
            found.append(r)
            outputs = " ".join(f"{name} {rows:,} {digest}" for name, rows, digest in r.hashes)
            way = f"{r.rows:>9,} rows  threads {r.threads}  batch rows {r.batch_rows:>5}"
            print(f"  {way}  {r.seconds:7.2f} s  {outputs}", flush=True)
        bad = disagreements(found)
        different += len(bad)
        print(f"  {'DIFFERENT: ' + str(len(bad)) if bad else 'one hash'} over {len(found)} configurations", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
