"""Are outputs still those of another checkout, bit for bit?

    python -m tests.output_hashes > new.txt                     # the shipped queries over 10,000 rows, a line each
    python -m tests.output_hashes --tree ../old > old.txt       # those of another checkout: diff the two files
    python -m tests.output_hashes --write cases --tree ../old   # random queries it draws and runs: a file for each
    python -m tests.output_hashes --read cases                  # run them here: which outputs differ, and how

A seed makes another query once there is another operator to draw, so the other checkout writes down what it drew and
what came out. Random queries run natively with the generated code interpreted; `--compiled` compiles it instead.
A file that exists is not written again, so writing goes on where it was stopped; reading goes on from `--seed`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cases import Outcome, Prepared, Way

ROOT = Path(__file__).parent.parent
ROWS = 10_000
STANDS_STILL_S = 600
VERDICTS = ("differs", "allowed", "equal")  # the worst first


def use_tree(tree: Path) -> None:
    """Names of `cq` and of the test support are those of this checkout."""
    support = tree / "tests" / "support"
    sys.path[:0] = [str(tree), str(support if support.is_dir() else tree / "tests")]


def shipped(tree: Path) -> Iterator[str]:
    """The hashes of the shipped queries over generated rows."""
    import cq

    for path in sorted((tree / "queries").rglob("*.cq")):
        text = re.sub(r"rows = \d+", f"rows = {ROWS}", path.read_text(encoding="utf-8"))
        for threads in (0, 2):
            result = cq.sql(text).run(threads=threads)
            hashes = {name: result.stats.hashes[name] for name in sorted(o for o in result)}
            yield f"{path.relative_to(tree / 'queries')} -j {threads} {hashes}"


def ran(prepared: Prepared, way: Way) -> Outcome | str:
    """What the native engine gives; the name of the exception that no run of rows may end with."""
    from cases import watched

    try:
        with watched(f"{way}", STANDS_STILL_S):
            return prepared.native(way)
    except Exception as error:
        return told(error)


def told(error: Exception) -> str:
    """The exception by name and code."""
    return f"{type(error).__name__} {getattr(error, 'code', error)}"


def write(path: Path, seed: int) -> None:
    """A random query, its rows (physical values; the text has their types), how it ran, and what came out."""
    from random_trial import Plan

    plan = Plan.of(seed)
    trial = plan.trial(0, interpreted=True)
    plan.prepared.give(trial.inputs, trial.cuts)
    outcome = ran(plan.prepared, trial.way)
    case = {
        "text": trial.query.text(),
        "inputs": trial.inputs,
        "cuts": trial.cuts,
        "way": _words(trial.way),
        "outcome": outcome if isinstance(outcome, str) else _words(outcome),
    }
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(case), encoding="utf-8")
    draft.replace(path)


def _words(record: Way | Outcome) -> dict[str, object]:
    """The values of a record by name, whichever checkout its class is of."""
    return {name: getattr(record, name) for name in type(record).__annotations__}


def read(path: Path, compiled: bool) -> str:
    """The verdict, its first word one of `VERDICTS`: whether what comes out here is what is written there."""
    from cases import Outcome, Way
    from random_functions import prepared

    case = json.loads(path.read_text(encoding="utf-8"))
    wanted: Outcome | str = case["outcome"]
    if isinstance(wanted, dict):
        wanted = Outcome(**{**wanted, "rows": {name: frozen(rows) for name, rows in wanted["rows"].items()}})
    way = Way(**case["way"])
    try:
        bound = prepared(case["text"])
    except Exception as error:
        return f"differs (binding): {told(error)}"
    bound.give(case["inputs"], case["cuts"])
    ways = [Way(**{**_words(way), "threads": n, "interpreted": False}) for n in (0, 2)] if compiled else [way]
    said = [compared(bound, way, ran(bound, way), wanted) for way in ways]
    return min(said, key=lambda s: VERDICTS.index(s.partition(" ")[0]))


def compared(prepared: Prepared, way: Way, got: Outcome | str, wanted: Outcome | str) -> str:
    """The verdict on one run; what the failing event leaves may differ (tests/README.md, What is compared)."""
    if isinstance(got, str) or isinstance(wanted, str):
        return f"equal {got}" if got == wanted else f"differs ({way}): {got}, not {wanted}"
    if got == wanted:
        return f"equal {hashlib.sha256(repr(got.seen()).encode()).hexdigest()[:16]}"
    if prepared.agree(got, way, wanted):
        return f"allowed ({way}): {got.difference(wanted)}, of the event that failed"
    here = prepared.reference()
    says = "agrees" if prepared.agree(got, way, here) else f"differs too: {got.difference(here)}"
    return f"differs ({way}): {got.difference(wanted)}; the reference here {says}"


def frozen(value: Any) -> Any:
    """What was a tuple before it was written is one again."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def main(arguments: Sequence[str]) -> int:
    """Print a line for each query."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.output_hashes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose code runs (default: this one)")
    random = parser.add_mutually_exclusive_group()
    random.add_argument("--write", type=Path, metavar="FOLDER", help="draw and run random queries")
    random.add_argument("--read", type=Path, metavar="FOLDER", help="run what was written")
    parser.add_argument("--cases", type=int, default=2000, help="random queries (default 2000)")
    parser.add_argument("--seed", type=int, default=40_000_000, help="the first seed")
    parser.add_argument("--compiled", action="store_true", help="compile what is read, for threads 0 and 2")
    options = parser.parse_args(arguments)
    use_tree(options.tree)
    if not (options.write or options.read):
        for line in shipped(options.tree):
            print(line, flush=True)
        return 0
    folder = options.write or options.read
    folder.mkdir(parents=True, exist_ok=True)
    verdicts: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.cases):
        path = folder / f"{seed}.json"
        if options.read:
            verdict = read(path, options.compiled)
            verdicts[verdict.partition(" ")[0]] += 1
            print(seed, verdict, flush=True)
        elif not path.exists():
            write(path, seed)
    print(dict(verdicts) if options.read else f"{options.cases} cases in {folder}")
    return 1 if verdicts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
