"""A line for each query with the hash of its output: `python -m tests.output_hashes --cases 2000 > new.txt`.

The shipped queries (10,000 rows), then random queries by seed, natively with the generated code interpreted. With
`--tree DIR` the code under test is that of another checkout, so `diff` of two files says which outputs a change moved.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROWS = 10_000


def use_tree(tree: Path) -> None:
    """Names of `cq` and of the test support are those of this checkout."""
    support = tree / "tests" / "support"
    sys.path[:0] = [str(tree), str(support if support.is_dir() else tree / "tests")]


def shipped(tree: Path) -> Iterator[str]:
    """The hashes of the shipped queries over generated rows."""
    import re

    import cq

    for path in sorted((tree / "queries").glob("*.cq")):
        text = re.sub(r"rows = \d+", f"rows = {ROWS}", path.read_text(encoding="utf-8"))
        for threads in (0, 2):
            result = cq.sql(text).run(threads=threads)
            hashes = {name: result.stats.hashes[name] for name in sorted(o for o in result)}
            yield f"{path.name} -j {threads} {hashes}"


def random(cases: int, first: int) -> Iterator[str]:
    """The outcomes of random queries over random rows."""
    from random_trial import Plan, Refused

    for seed in range(first, first + cases):
        plan = Plan.of(seed)
        trial = plan.trial(0, interpreted=True)
        plan.prepared.give(trial.inputs, trial.cuts)
        try:
            outcome = plan.prepared.native(trial.way)
        except Refused:
            yield f"{seed} refused"
            continue
        except Exception as error:
            yield f"{seed} {type(error).__name__}"
            continue
        text = repr((trial.query.text(), outcome.seen()))
        yield f"{seed} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def main(arguments: Sequence[str]) -> None:
    """Print a line for each query."""
    parser = argparse.ArgumentParser(prog="python -m tests.output_hashes", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose code runs (default: this one)")
    parser.add_argument("--cases", type=int, default=2000, help="random queries (default 2000)")
    parser.add_argument("--seed", type=int, default=40_000_000, help="the first seed")
    options = parser.parse_args(arguments)
    use_tree(options.tree)
    for line in (*shipped(options.tree), *random(options.cases, options.seed)):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
