"""`python -m benchmarks [NAME …]`: measure, print tables, and on request write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import end_to_end, loops, peers, processes, report, throughput
from benchmarks.cases import CASES

ROOT = Path(__file__).parent.parent
DOCUMENT, FIGURES = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks.json"
CAUSES = Path(__file__).with_name("causes.md")
SUITES = ("parquet", "startup", "peak", "python", "whole")
QUICK_SHARE = 100  # one row in this many: enough for every path, too little for a meaningful rate
CHECK_ROWS = 200_000
PEAK_ROWS = 2_000_000
WHOLE_SHARE = 3  # one round in this many: some of these processes take ten seconds


def main(arguments: Sequence[str]) -> None:
    """Run what was requested."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*CASES, *SUITES)))
    parser.add_argument("--rounds", type=int, default=9, help="turns of every contender (default 9)")
    parser.add_argument("--quick", action="store_true", help="few rows and two rounds: does everything run?")
    parser.add_argument(
        "--check", action="store_true", help="compare results with those of C++, DuckDB and polars first"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every turn in this file")
    parser.add_argument("--write-docs", action="store_true", help="write docs/benchmarks.md and .json; measures all")
    parser.add_argument("--docs-only", action="store_true", help="write docs/benchmarks.md again from the .json")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in CASES and name not in SUITES]
    if unknown or (options.write_docs and (options.names or options.quick)):
        parser.error(f"no benchmark {', '.join(unknown)}" if unknown else "--write-docs measures everything, in full")
    if options.docs_only:
        DOCUMENT.write_text(document(json.loads(FIGURES.read_text(encoding="utf-8"))), encoding="utf-8")
        return
    found = measure(options.names or (*CASES, *SUITES), options.rounds, options.quick, options.check)
    for table in report.tables(found):
        print(table.text())
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if options.write_docs:
        FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        DOCUMENT.write_text(document(found), encoding="utf-8")


def measure(names: Sequence[str], rounds: int = 9, quick: bool = False, checked: bool = False) -> dict[str, Any]:
    """The figures of these cases and suites. `parquet` alone means every case measured from a file."""
    rounds = 2 if quick else rounds
    share = QUICK_SHARE if quick else 1
    pa.set_cpu_count(peers.THREADS)
    before = os.getloadavg()[0]
    found: dict[str, Any] = {"memory": {}, "parquet": {}}
    chosen = [CASES[name] for name in names if name in CASES]
    for case in chosen:
        if checked:
            throughput.check(case, min(case.rows, CHECK_ROWS))
        _say(f"{case.name}: memory")
        found["memory"][case.name] = report.record_of(throughput.memory_race(case, case.rows // share, rounds))
    if "parquet" in names:
        with tempfile.TemporaryDirectory() as directory:
            for case in (c for c in chosen or CASES.values() if c.from_file):
                _say(f"{case.name}: Parquet")
                race = throughput.parquet_race(case, case.rows // share, rounds, Path(directory))
                found["parquet"][case.name] = report.record_of(race)
    if "startup" in names:
        _say("start-up")
        found["startup"] = processes.as_json(processes.startup(rounds, 1 if quick else 3))
    if "peak" in names:
        _say("peak memory")
        rows = PEAK_ROWS // share
        found["peak"] = {"rows": rows, "bytes": processes.peak_memory(rows)}
    with tempfile.TemporaryDirectory() as directory:
        if "python" in names:
            races = end_to_end.python_races(rounds, share, Path(directory), _say)
            found["python"] = {name: report.record_of(race) for name, race in races.items()}
        if "whole" in names:
            few = max(1, rounds // WHOLE_SHARE)
            found["whole"] = end_to_end.whole_processes(few, share, Path(directory), _say)
    return {**surroundings(rounds, before), **found}


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def surroundings(rounds: int, load_before: float) -> dict[str, Any]:
    """The circumstances of a measurement, without which a number means nothing."""
    versions = {"python": platform.python_version(), **{n: metadata.version(n) for n in ("numba", "llvmlite")}}
    return {
        "command": "python -m benchmarks --write-docs",
        "commit": _commit(),
        "date": date.today().isoformat(),
        "rounds": rounds,
        "machine": _machine(),
        "software": {**versions, **peers.versions(), "g++": loops.compiler_version() or "absent"},
        "load": (load_before, os.getloadavg()[0]),
    }


def _commit() -> str:
    """The commit checked out, and whether files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False).stdout

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no", "--", "cq", "benchmarks") else ""
    return (git("rev-parse", "--short", "HEAD").strip() or "unknown") + changed


def _machine() -> dict[str, Any]:
    models = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    total = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(total / 2**20),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []


def document(found: dict[str, Any]) -> str:
    """The text of docs/benchmarks.md: the figures, and the reason where a bar is missed."""
    tables = (table.markdown() for table in report.tables(found))
    return "\n".join([report.heading(found), *tables, CAUSES.read_text(encoding="utf-8")])


if __name__ == "__main__":
    main(sys.argv[1:])
