"""This tree against another checkout, in turn: `python -m benchmarks.against DIR`, DIR at the commit to compare with.

Each tree has a process of its own that holds a case's input; the two take turns, so what else the machine does hits
both alike. Where a process's memory lies makes it faster or slower for all its life, so a case has several pairs of
processes. What is told are medians of the ratios within rounds, of all pairs: above 1 this tree is faster.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

TREE = Path(__file__).parent.parent
THREADS = (0, 1, 2)
BAR = 0.95


class Turn(NamedTuple):
    """One run: wall-clock seconds, and processor seconds."""

    wall: float
    cpu: float


class Runner:
    """A process that runs cases with the code of one tree."""

    def __init__(self, tree: Path) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--serve", str(tree.resolve())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: object) -> str:
        """The line the process answers with."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise SystemExit("a tree's process has ended: see its error above")
        return answer

    def run(self, threads: int) -> Turn:
        """One run of the current case."""
        wall, cpu = self.ask("run", threads).split()
        return Turn(float(wall), float(cpu))

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def serve(tree: Path) -> None:
    """Answer `case NAME ROWS` and `run THREADS` with the code of this tree."""
    sys.path[0] = str(tree)
    import cq
    from benchmarks.cases import CASES
    from benchmarks.throughput import Measured

    assert tree in Path(cq.__file__).parents, "another cq is in the way"
    for line in sys.stdin:
        what, *words = line.split()
        if what == "cases":
            print(*CASES, flush=True)
        elif what == "case":
            measured = Measured(CASES[words[0]], int(words[1]) or CASES[words[0]].rows)
            engines = {n: measured.engine(n) for n in THREADS}
            for run in engines.values():
                run()
            print("ready", flush=True)
        else:
            wall, cpu = time.perf_counter(), time.process_time()
            engines[int(words[0])]()
            print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


Pairs = list[tuple[Turn, Turn]]  # this tree's turn and the other's, for each round


def race(here: Runner, there: Runner, threads: int, rounds: int) -> Pairs:
    """The turns of both in every round; rounds alternate which tree begins."""
    found = []
    for n in range(rounds):
        first, second = (here, there) if n % 2 == 0 else (there, here)
        turns = {runner: runner.run(threads) for runner in (first, second)}
        found.append((turns[here], turns[there]))
    return found


def raced(tree: Path, name: str, rows: int, rounds: int, pairs: int) -> dict[int, Pairs]:
    """All rounds of a case by number of workers, over all pairs of processes."""
    found: dict[int, Pairs] = {threads: [] for threads in THREADS}
    for _ in range(pairs):
        with Runner(TREE) as here, Runner(tree) as there:
            for runner in (here, there):
                runner.ask("case", name, rows)
            for threads in THREADS:
                found[threads] += race(here, there, threads, rounds)
    return found


def cases_of(tree: Path) -> list[str]:
    """The names of its cases."""
    with Runner(tree) as runner:
        return runner.ask("cases").split()


def main(arguments: Sequence[str]) -> int:
    """Print a line for each case; 1 if this tree is slower than the bar in one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("tree", type=Path, help="a checkout of the commit to compare with")
    parser.add_argument("cases", nargs="*", help="their names (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="of a pair of processes")
    parser.add_argument("--pairs", type=int, default=3, help="of processes for each case")
    parser.add_argument("--rows", type=int, default=0, help="of the input (default: as many as the case says)")
    options = parser.parse_args(arguments)
    slow = False
    print(f"{'case':28}" + "".join(f"{f'-j {n}':>22}" for n in THREADS) + f"{'CPU of -j 0':>22}")
    theirs = cases_of(options.tree)
    for name in options.cases or cases_of(TREE):
        if name not in theirs:
            print(f"{name:28}  the other tree has no such case")
            continue
        rounds = raced(options.tree, name, options.rows, options.rounds, options.pairs)
        by_clock = [[old.wall / new.wall for new, old in turns] for turns in rounds.values()]
        slow = slow or any(median(ratios) < BAR for ratios in by_clock)
        told = [*by_clock, [old.cpu / new.cpu for new, old in rounds[0]]]
        cells = (f"{median(ratios):6.2f} ({min(ratios):.2f}-{max(ratios):.2f})" for ratios in told)
        print(f"{name:28}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
    return int(slow)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        sys.exit(main(sys.argv[1:]))
