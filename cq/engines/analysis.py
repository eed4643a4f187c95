"""EXPLAIN ANALYZE: run a query with kernels that count, and show its stages with the measured numbers.

Counting is compiled in: other runs of the query have kernels without it, and pay nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.connectors.sinks.writers import Discard
from cq.engines.protocol import Progress, RunOptions
from cq.engines.query import run_query
from cq.planner.explain import picture
from cq.planner.measured import RunMeasures, StageMeasures, draw_measured, measured_facts

if TYPE_CHECKING:
    from cq.compiler.passes import Compiled
    from cq.planner.plan_facts import Facts
    from cq.runtime.engine.engine import Engine


def analyze(compiled: Compiled, threads: int | None = None, progress: Progress | None = None) -> Facts:
    """Run the query natively, discard its rows, and return the facts of its stages with the measurements.

    Nothing is written to sinks. An interrupted run has numbers too. Raises what a run raises.
    """
    workers = compiled.workers(threads)
    counting = compiled.counting()
    stages: list[list[StageMeasures]] = []

    def measure(engine: Engine, over: bool) -> None:
        held = engine.held_bytes() if over else [{} for _ in engine.pipeline.stages]
        of_stages = zip(engine.metrics().stages, engine.counted(), held, strict=True)
        stages.append([StageMeasures(m.busy_ns, counted, bytes_, m.punctuations) for m, counted, bytes_ in of_stages])

    sinks = {o.name: Discard() for o in compiled.outputs}
    options = RunOptions(workers, unhashed=frozenset(sinks), on_end=measure)
    done = run_query(counting, sinks, "native", options, progress)
    over = not (done.interrupted or done.limited)
    rows_in, rows_out = sum(done.rows_in.values()), sum(done.rows_out.values())
    run = RunMeasures(done.seconds, workers, rows_in, rows_out, done.rejected_events, over, stages)
    parts = counting.for_workers(workers).after("place")
    return measured_facts(parts[: len(stages)], run)


def drawn(facts: Facts, format: str = "tree") -> str:
    """The result of `analyze`, for people or in one of the plan formats."""
    return draw_measured(facts) if format == "tree" else picture(facts, format)
