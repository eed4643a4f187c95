"""The graph of a running engine, read from the structures its workers run on."""

from __future__ import annotations

from cq.runtime.base.host import Host
from cq.runtime.containers.state import native_name
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import Plant
from cq.runtime.engine.ways.protocol import runners
from cq.ways import Way


def graph(host: Host, plant: Plant) -> str:
    """The number of workers, and for each stage how it runs and where its rows go."""
    workers = host.word(plant.engine, s.ENGINE_WORKERS)
    lines = [f"{workers} worker{'s' if workers > 1 else ''}"]
    numbers = {stage: n for n, stage in enumerate(plant.stages)}
    for spec, stage in zip(plant.pipeline.stages, plant.stages, strict=True):
        runner, following = runners()[tuple(Way)[host.word(stage, s.STAGE_WAY)]], host.word(stage, s.STAGE_NEXT)
        assert host.word(stage, s.STAGE_SERVE) == host.address(native_name(runner.serve)), "served in another way"
        sinks = ", ".join(port.name for port in spec.ports)
        target = f"stage {plant.pipeline.stages[numbers[following]].name}" if following else sinks
        lines.append(f"stage {spec.name}: {runner.describe(host, stage)} -> {target}")
    return "\n".join(lines)
