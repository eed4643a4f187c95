"""`python -m benchmarks.transactions [PART …]`: measure, print, on request write docs/benchmarks-transactions.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.__main__ import ROOT, surroundings
from benchmarks.transactions.page import page, pictures, summary
from benchmarks.transactions.parts import PARTS, Circumstances

DOCUMENT = ROOT / "docs" / "benchmarks-transactions.md"
FIGURES = ROOT / "docs" / "benchmarks-transactions.json"
PICTURES = ROOT / "docs" / "pictures"
QUICK_SHARE = 0.02


def main(arguments: Sequence[str]) -> None:
    """Run what was requested."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transactions", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5, help="turns of every scheme (default 5)")
    parser.add_argument("--workers", default="", help="numbers of workers, as 1,2,4 (default: 1 and one a core)")
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of events (default 1)")
    parser.add_argument("--quick", action="store_true", help="few events and two rounds: does everything run?")
    parser.add_argument("--write-docs", action="store_true", help="keep the figures, and write the page anew")
    parser.add_argument("--docs-only", action="store_true", help="write the page again from the figures kept")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown or (options.write_docs and options.quick):
        parser.error(f"no part {', '.join(unknown)}" if unknown else "--quick measures nothing worth keeping")
    if options.docs_only:
        write(json.loads(FIGURES.read_text(encoding="utf-8")))
        return
    workers = [int(w) for w in options.workers.split(",") if w] or sorted({1, os.cpu_count() or 1})
    share = QUICK_SHARE if options.quick else options.share
    now = Circumstances(2 if options.quick else options.rounds, share, workers)
    found = {name: measured(name, now) for name in options.parts or PARTS}
    print(summary(found))
    if options.write_docs:
        kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
        write({name: part for name in PARTS if (part := found.get(name) or kept.get(name)) is not None})


def measured(name: str, now: Circumstances) -> dict[str, Any]:
    """The figures of a part, and the circumstances."""
    print(name, file=sys.stderr, flush=True)
    before = os.getloadavg()[0]
    part = PARTS[name](now)
    around = surroundings(now.rounds, before)
    kept = {k: around[k] for k in ("commit", "date", "rounds", "machine", "load")}
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    return {**part, "circumstances": {**kept, "share": now.share, "nice": nice}}


def write(found: dict[str, Any]) -> None:
    """Write the figures, the page and its pictures for these parts."""
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    DOCUMENT.write_text(page(found), encoding="utf-8")
    for name, text in pictures(found).items():
        (PICTURES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
