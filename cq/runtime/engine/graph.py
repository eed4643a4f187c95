"""The graph of a running engine, read from the structures its workers run on."""

from __future__ import annotations

from cq.runtime.base.host import Host
from cq.runtime.engine import stage as s
from cq.runtime.engine.build import Plant
from cq.runtime.flow import split as x

WAYS = {
    s.SINGLE: "one worker at a time",
    s.SHARED: "any worker",
    s.LANED: "lanes by key",
    s.PARTIAL: "any worker, into panes of its own",
}


def graph(host: Host, plant: Plant) -> str:
    """How many workers there are, and of each stage how it runs and where its rows go."""
    workers = host.word(plant.engine, s.ENGINE_WORKERS)
    lines = [f"{workers} worker{'s' if workers > 1 else ''}"]
    numbers = {stage: n for n, stage in enumerate(plant.stages)}
    for spec, stage in zip(plant.job.stages, plant.stages, strict=True):
        kind, following = host.word(stage, s.STAGE_KIND), host.word(stage, s.STAGE_NEXT)
        lanes = f"{host.word(host.word(stage, s.STAGE_LANES), x.LANES_COUNT)} " if kind == s.LANED else ""
        sinks = ", ".join(port.name for port in spec.ports)
        target = f"stage {plant.job.stages[numbers[following]].name}" if following else sinks
        lines.append(f"stage {spec.name}: {lanes}{WAYS[kind]} -> {target}")
    return "\n".join(lines)
