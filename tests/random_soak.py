"""The long random test: `python -m tests.random_soak --cases 100000 --plans 5000 --spark 1000 --duckdb 20000
--mutants 50000`.

Half of the cases run compiled plans with many trials each, half interpret the generated code of a plan of their own.
Work goes out in chunks of seeds, each in a process of its own, `--jobs` at a time; a crash or a hang is told with its
seeds. What is done is kept in `--state` (a line of JSON each), so the command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "support"))  # the tests import each other by name, as under pytest

from random_chunk import Found, duckdb_chunk, mutants_chunk, run_chunk, spark_chunk

ROOT = Path(__file__).parent.parent
PLANS_A_CHUNK = {"compiled": 50, "interpreted": 200, "spark": 50, "duckdb": 1000, "mutants": 2000}
FIRST_SEED = {
    "interpreted": 10_000_000,
    "compiled": 20_000_000,
    "spark": 30_000_000,
    "duckdb": 40_000_000,
    "mutants": 50_000_000,
}
CHUNK_TIMEOUT_S = 3_600


@dataclass(frozen=True)
class Chunk:
    """Plans of consecutive seeds, all tried in one way."""

    kind: str
    first: int
    plans: int
    trials: int


def chunks_of(cases: int, plans: int, spark: int, duckdb: int, mutants: int, seed: int) -> list[Chunk]:
    """The work of the whole command."""
    compiled_cases = cases // 2
    trials = max(1, -(-compiled_cases // max(1, plans)))
    wanted = {"compiled": (plans, trials), "interpreted": (cases - compiled_cases, 1), "spark": (spark, 1),
              "duckdb": (-(-duckdb // 2), 2), "mutants": (mutants, 1)}  # fmt: skip
    out = []
    for kind, (count, each) in wanted.items():
        size = PLANS_A_CHUNK[kind]
        for start in range(0, count, size):
            out.append(Chunk(kind, FIRST_SEED[kind] + seed + start, min(size, count - start), each))
    return out


def run(chunk: Chunk) -> Found:
    seeds = range(chunk.first, chunk.first + chunk.plans)
    if chunk.kind == "spark":
        return spark_chunk(seeds)
    if chunk.kind == "mutants":
        return mutants_chunk(seeds)
    if chunk.kind == "duckdb":
        return duckdb_chunk(seeds, chunk.trials)
    return run_chunk(seeds, chunk.trials, chunk.kind == "interpreted")


def in_process(chunk: Chunk) -> dict[str, object]:
    """The chunk run by another process: its result, or how that process ended."""
    command = [sys.executable, "-m", "tests.random_soak", "--chunk", json.dumps(asdict(chunk))]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=CHUNK_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"chunk": asdict(chunk), "crash": f"no end after {CHUNK_TIMEOUT_S} s"}
    if done.returncode != 0:
        return {"chunk": asdict(chunk), "crash": f"exit code {done.returncode}\n{done.stderr[-4000:]}"}
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return {"chunk": asdict(chunk), **result}


def report(found: Found) -> str:
    return json.dumps({"counts": dict(found.counts), "modules": sorted(found.modules), "mismatches": found.mismatches})


def summary(lines: list[dict[str, object]]) -> tuple[str, bool]:
    """All chunks in a few lines, and whether nothing was found."""
    total = Found()
    bad = []
    for line in lines:
        if "crash" in line:
            bad.append(f"{line['chunk']}: {line['crash']}")
            continue
        counts, modules, mismatches = line["counts"], line["modules"], line["mismatches"]
        assert isinstance(counts, dict) and isinstance(modules, list) and isinstance(mismatches, list)
        total.counts.update(counts)
        total.modules |= set(modules)
        total.mismatches += mismatches
    told = [*bad, *total.mismatches]
    counts_text = ", ".join(f"{n} {name}" for name, n in sorted(total.counts.items()))
    return "\n\n".join([*told, f"{counts_text}; {len(total.modules)} distinct plans; {len(told)} found"]), not told


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--plans", type=int, default=5_000, help="compiled plans")
    parser.add_argument("--spark", type=int, default=1_000, help="plans run on Spark")
    parser.add_argument("--duckdb", type=int, default=20_000, help="cases run on DuckDB")
    parser.add_argument("--mutants", type=int, default=0, help="texts of the tests with mistakes in them")
    parser.add_argument("--seed", type=int, default=0, help="where the seeds begin")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--state", type=Path, default=Path("random_soak.jsonl"), help="what is done so far")
    parser.add_argument("--chunk", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chunk:
        print(report(run(Chunk(**json.loads(options.chunk)))))
        return 0
    lines = [json.loads(x) for x in options.state.read_text().splitlines()] if options.state.exists() else []
    finished = {json.dumps(line["chunk"]) for line in lines}
    o = options
    wanted = chunks_of(o.cases, o.plans, o.spark, o.duckdb, o.mutants, o.seed)
    left = [c for c in wanted if json.dumps(asdict(c)) not in finished]
    with ThreadPoolExecutor(options.jobs) as pool, options.state.open("a", encoding="utf-8") as state:
        for line in pool.map(in_process, left):
            lines.append(line)
            state.write(json.dumps(line) + "\n")
            state.flush()
            print(f"{len(lines)} chunks: {line.get('counts') or line.get('crash')}", file=sys.stderr, flush=True)
    text, clean = summary(lines)
    print(text)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
