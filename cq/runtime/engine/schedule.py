"""Which stage a worker serves next: four heuristics, each a pure function of measured numbers.

For each stage: queue (items waiting), cost_ns (mean per item), workers (inside now), most (workers allowed inside),
spent_ns (worker time in the current window), reach (items of this stage made from one item of the first: the cumulative
selectivity before it). A stage can be chosen if items wait and it has a place for one more worker. The highest score
wins; ties go to the stage nearer the sink.

    ct   the stage with the lowest normalised throughput in this window: it is the bottleneck
    lp   the last stage in the chain
    et   the stage whose queue would take longest
    qst  the first stage whose output queue is below its share of what may wait

Roles     any worker chooses, when it looks for work.
Shared    what stages measure about themselves (stage.py), and the number of items in their rings.
Progress  no call waits.
Order     measurements are loaded at any time (seq_cst, one word at a time): no word is read because of another, and a
          choice by numbers from different moments costs time, never rows.
Source    Prasaad et al. (2018), section 6. They saw CT give the best throughput and LP the best latency.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_load, at_store, clock_ns, f64_div, i64_to_f64, ld_i64, max_i64
from cq.runtime.engine.stage import (
    ENGINE_STAGE_TABLE,
    ENGINE_STAGES,
    ENGINE_WINDOW,
    ENGINE_WORKERS,
    STAGE_ACTIVE,
    STAGE_ALONE,
    STAGE_BUSY_NS,
    STAGE_INPUT,
    STAGE_ITEMS,
    STAGE_NEXT,
    STAGE_WINDOW_NS,
)
from cq.runtime.queues.ring import ring_size
from cq.ways import HEURISTICS

CT, LP, ET, QST = 0, 1, 2, 3  # their places in cq.ways.HEURISTICS

SLICE_NS = 1_000_000.0  # about the time of a visit: eight items of 16k rows at some ns a row
WINDOW_NS = 50_000_000  # long enough for every stage of a chain to get several visits
QUEUED_ITEMS = 32.0  # QST: the most items waiting in all queues together


@native("f64(i64, f64, i64)", export=True)
def score_et(queue: int, cost_ns: float, workers: int) -> float:
    """The time the queue would take with one more worker."""
    return f64_div(i64_to_f64(queue) * cost_ns, i64_to_f64(workers + 1))


@native("f64(i64, i64, f64, f64)", export=True)
def score_ct(spent_ns: int, workers: int, cost_ns: float, reach: float) -> float:
    """Minus the items of the first stage that this stage has kept up with in the window, including workers inside."""
    return -f64_div(i64_to_f64(spent_ns) + i64_to_f64(workers) * SLICE_NS, cost_ns * reach)


@native("f64(i64)", export=True)
def score_lp(number: int) -> float:
    """Later is better."""
    return i64_to_f64(number)


@native("f64(i64, i64, f64, f64)", export=True)
def score_qst(number: int, waiting: int, reach: float, total_reach: float) -> float:
    """Earlier is better while fewer items wait after the stage than its share; else below every other."""
    share = f64_div(QUEUED_ITEMS * reach, total_reach)
    return -i64_to_f64(number) if i64_to_f64(waiting) < share else -1.0e9 - i64_to_f64(number)


@native("f64(i64)")
def _cost_ns(stage: int) -> float:
    busy = i64_to_f64(at_load(stage + STAGE_BUSY_NS * 8))
    return f64_div(busy, i64_to_f64(max_i64(at_load(stage + STAGE_ITEMS * 8), 1))) + 1.0


@native("f64(i64, i64)")
def _reach(engine: int, stage: int) -> float:
    """Items of this stage for each item of the first one."""
    first = ld_i64(ld_i64(engine, ENGINE_STAGE_TABLE), 0)
    return f64_div(
        i64_to_f64(at_load(stage + STAGE_ITEMS * 8) + ring_size(ld_i64(stage, STAGE_INPUT)) + 1),
        i64_to_f64(at_load(first + STAGE_ITEMS * 8) + 1),
    )


@native("i64(i64)")
def _new_window(engine: int) -> int:
    """1 if the window is over; the caller then starts the next one for every stage."""
    now = clock_ns()
    if now - at_load(engine + ENGINE_WINDOW * 8) < WINDOW_NS:
        return 0
    at_store(engine + ENGINE_WINDOW * 8, now)
    return 1


@native("f64(i64, i64, i64, i64, i64, f64)")
def _score(engine: int, heuristic: int, number: int, queue: int, workers: int, total: float) -> float:
    """The heuristic's score of a stage that can be chosen. total: the reach of all stages, for QST."""
    stage = ld_i64(ld_i64(engine, ENGINE_STAGE_TABLE), number)
    if heuristic == CT:
        spent = at_load(stage + STAGE_BUSY_NS * 8) - at_load(stage + STAGE_WINDOW_NS * 8)
        return score_ct(spent, workers, _cost_ns(stage), _reach(engine, stage))
    if heuristic == LP:
        return score_lp(number)
    if heuristic == ET:
        return score_et(queue, _cost_ns(stage), workers)
    assert heuristic == QST, "a heuristic without a score"
    waiting = 0
    if ld_i64(stage, STAGE_NEXT) != 0:
        waiting = ring_size(ld_i64(ld_i64(stage, STAGE_NEXT), STAGE_INPUT))
    return score_qst(number, waiting, _reach(engine, stage), total)


@native("i64(i64, i64)")
def choose_stage(engine: int, heuristic: int) -> int:
    """The number of the stage to serve, or -1 if none can be chosen."""
    count = ld_i64(engine, ENGINE_STAGES)
    table = ld_i64(engine, ENGINE_STAGE_TABLE)
    fresh = 0
    if heuristic == CT:
        fresh = _new_window(engine)
    total = 0.0
    if heuristic == QST:
        for number in range(count):
            total += _reach(engine, ld_i64(table, number))
    best = -1
    best_score = 0.0
    for number in range(count):
        stage = ld_i64(table, number)
        if fresh == 1:
            at_store(stage + STAGE_WINDOW_NS * 8, at_load(stage + STAGE_BUSY_NS * 8))
        most = ld_i64(engine, ENGINE_WORKERS)
        if ld_i64(stage, STAGE_ALONE) == 1:
            most = 1
        queue = ring_size(ld_i64(stage, STAGE_INPUT))
        workers = at_load(stage + STAGE_ACTIVE * 8)
        if queue > 0 and workers < most:
            score = _score(engine, heuristic, number, queue, workers, total)
            if best < 0 or score >= best_score:
                best = number
                best_score = score
    return best


def _unscored() -> list[str]:
    """The heuristics without a number or a score here."""
    return [
        n for place, n in enumerate(HEURISTICS) if globals().get(n.upper()) != place or f"score_{n}" not in globals()
    ]


assert not _unscored(), f"heuristic {', '.join(_unscored())} has no number or no score"
