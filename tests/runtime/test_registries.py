"""What a registry of the runtime is told of is whole, or it is refused with the name of what is missing."""

from __future__ import annotations

import pytest
from engine_kernels import job, stage

from cq.records import fields
from cq.runtime.base.host import InterpretedHost
from cq.runtime.base.simulation import Memory
from cq.runtime.containers.protocol import Container, containers
from cq.runtime.engine.build import build, close
from cq.runtime.engine.ways import protocol
from cq.runtime.engine.ways.protocol import Runner, runners
from cq.ways import Way

RUNNERS, CONTAINERS = runners(), containers()  # imported with the tests: a way without a runner fails here


@pytest.mark.parametrize(
    ("made", "name"), [(made, f.name) for made in (Container, Runner) for f in fields(made)], ids=lambda v: str(v)[:30]
)
def test_what_is_registered_says_everything_about_itself(made, name):
    """A container that is silent about handing over would be taken for one that workers may not fill apart."""
    example = next(iter(CONTAINERS.values())) if made is Container else RUNNERS[Way.LOOP]
    said = {f.name: getattr(example, f.name) for f in fields(made)}
    made(**said)
    del said[name]
    with pytest.raises(TypeError, match=name):
        made(**said)


def test_what_a_way_has_made_is_dropped_with_the_plant_the_last_first():
    """The engine used to know what lanes, parts and chains make, and forgot what another way would."""
    with Memory() as memory:
        host, gone = InterpretedHost(), []
        host.memory = memory
        host._active._memory = memory
        plant = build(host, job(stage("running", Way.LANES)), 2, 3, 0)
        assert plant.closing
        for name in ("first", "second"):
            plant.when_closed(lambda name=name: gone.append(name))
        close(plant)
        assert gone == ["second", "first"]
        close(plant)
        assert gone == ["second", "first"]


@pytest.mark.parametrize("way", Way)
def test_a_way_without_a_runner_is_named(way, monkeypatch):
    monkeypatch.delitem(protocol._REGISTERED, way)
    with pytest.raises(AssertionError, match=f"^no runner for {way.name}$"):
        runners.__wrapped__()
