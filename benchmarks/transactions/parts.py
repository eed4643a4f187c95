"""The parts of the measurement: each takes less than three minutes, and is kept with its circumstances."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.measure import run_race
from benchmarks.transactions.applications import GS, INTERVAL, OB, SL, TP, Application, percentiles
from cq.records import dataclass

COMPARED = ("serial", "chains", "lock", "lock_a", "mvlk", "pat", "nolock")
SWEPT = ("chains", "lock", "mvlk", "pat", "nolock")
EVENTS = {SL: 400_000, TP: 240_000, GS: 120_000, OB: 120_000}
TICKETS = 1_000  # rounds of latency: of sixty, the 99th percentile is the first one, which grows everything

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """events: share of the usual number.  workers: all numbers of them, the largest last."""

    rounds: int
    share: float
    workers: Sequence[int]

    def events(self, name: str) -> int:
        return max(1_000, int(EVENTS[name] * self.share))

    @property
    def most(self) -> int:
        return self.workers[-1]


def application(name: str) -> Callable[[Circumstances], Record]:
    """Every scheme with every number of workers."""

    def measure(now: Circumstances) -> Record:
        made = Application(name, now.events(name))
        contenders = {
            f"{scheme} {workers}": made.runner(scheme, workers).contender()
            for scheme in COMPARED
            for workers in now.workers
        }
        return {"application": name, **report.record_of(run_race(made.events, contenders, now.rounds))}

    return measure


def _point(now: Circumstances, at: Any, made: Application, schemes: Iterable[str], interval: int = INTERVAL) -> Record:
    contenders = {s: made.runner(s, now.most, interval).contender() for s in schemes}
    _say(f"  {made.name} {at}")
    return {
        "at": at,
        "application": made.name,
        **report.record_of(run_race(made.events, contenders, max(2, now.rounds - 2))),
    }


def sweep(
    name: str, knob: str, values: Sequence[float], others: Mapping[str, Any]
) -> Callable[[Circumstances], Record]:
    """One parameter of a generator over these values, with the most workers."""

    def measure(now: Circumstances) -> Record:
        points = []
        for value in values:
            made = Application(name, now.events(name), {**others, knob: value})
            points.append(_point(now, value, made, SWEPT))
        return {"knob": knob, "points": points}

    return measure


def intervals(now: Circumstances) -> Record:
    """Chains and locks over the number of events run together, for every application."""
    points = []
    for name in EVENTS:
        made = Application(name, now.events(name))
        points += [_point(now, n, made, ("chains", "lock"), n) for n in (100, 250, 500, 1_000, 2_500, 5_000, 10_000)]
    return {"knob": "punctuation_interval", "points": points}


def breakdown(now: Circumstances) -> Record:
    """Where the time of all workers goes."""
    found = []
    for name in EVENTS:
        made = Application(name, now.events(name))
        serial = made.runner("serial", 1)
        for scheme in COMPARED[1:]:
            runs = []
            for _ in range(now.rounds):
                useful = serial.busy_ns()
                runs.append(made.runner(scheme, now.most).spent(useful))
            shares = {part: sorted(getattr(r, part) for r in runs)[len(runs) // 2] for part in runs[0].__slots__}
            found.append({"application": name, "scheme": scheme, **shares})
    return {"workers": now.most, "runs": found}


def latency(now: Circumstances) -> Record:
    """From handing over the events of a punctuation to the last of their results: percentiles of each round."""
    tickets = max(2, int(TICKETS * now.share))
    found, bare = [], []
    for name in EVENTS:
        made = Application(name, INTERVAL * tickets)
        runners = [(s, w, made.runner(s, w)) for s in ("serial", "chains", "lock", "pat") for w in now.workers]
        rounds = []
        for _ in range(now.rounds):
            bare.append(percentiles(undisturbed(tickets)))
            rounds.append([percentiles(runner.latencies(INTERVAL)) for _, _, runner in runners])
        for (scheme, workers, _), taken in zip(runners, zip(*rounds, strict=True), strict=True):
            p50, p99 = zip(*taken, strict=True)
            found.append(
                {
                    "application": name, "scheme": scheme, "workers": workers, "tickets": tickets,
                    "p50_us": p50, "p99_us": p99,
                }
            )  # fmt: skip
    p50, p99 = zip(*bare, strict=True)
    return {"interval": INTERVAL, "runs": found, "bare": {"p50_us": p50, "p99_us": p99}}


def undisturbed(times: int) -> list[float]:
    """Microseconds for each of this many sums of roots, which wait for nobody: how the machine disturbs a thread."""
    values, found = np.arange(200_000.0), []
    for _ in range(times):
        begun = time.perf_counter()
        np.sqrt(values).sum()
        found.append((time.perf_counter() - begun) * 1e6)
    return found


SHARED = {"partitions": 8}
PARTS: dict[str, Callable[[Circumstances], Record]] = {
    "grep_and_sum": application(GS),
    "streaming_ledger": application(SL),
    "online_bidding": application(OB),
    "toll_processing": application(TP),
    "skew": sweep(GS, "theta", (0.0, 0.3, 0.6, 0.9, 1.2), {"reads": 0.0}),
    "reads": sweep(GS, "reads", (0.0, 0.25, 0.5, 0.75, 1.0), {"theta": 0.0}),
    "several": sweep(GS, "several", (0.0, 0.25, 0.5, 0.75, 1.0), {**SHARED, "length": 6}),
    "length": sweep(GS, "length", (1, 2, 4, 6, 8), {**SHARED, "several": 0.5}),
    "aborts": sweep(TP, "broken", (0.0, 0.15, 0.3, 0.45, 0.6), {}),
    "hot": sweep(SL, "accounts", (4, 16, 128, 1_024, 10_000), {}),
    "interval": intervals,
    "breakdown": breakdown,
    "latency": latency,
}


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
