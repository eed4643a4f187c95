"""What a registry of the runtime is told of is whole, or it is refused with the name of what is missing."""

from __future__ import annotations

import pytest
from engine_kernels import pipeline, stage

from cq.records import fields, replace
from cq.runtime.base.host import InterpretedHost
from cq.runtime.base.simulation import Memory
from cq.runtime.containers.protocol import Container, containers
from cq.runtime.engine import build as building
from cq.runtime.engine.build import build, close
from cq.runtime.engine.plant import Plant
from cq.runtime.engine.ways import protocol
from cq.runtime.engine.ways.protocol import Runner, runners
from cq.runtime.layout.pipeline import verify_pipeline
from cq.ways import TRAITS, Way, WayTraits

RUNNERS, CONTAINERS = runners(), containers()  # imported with the tests: a way without a runner fails here


@pytest.mark.parametrize(
    ("made", "name"),
    [(made, f.name) for made in (Container, Runner, WayTraits) for f in fields(made)],
    ids=lambda v: str(v)[:30],
)
def test_what_is_registered_says_everything_about_itself(made, name):
    """A container that is silent about handing over would be taken for one that workers may not fill apart."""
    example = {Container: next(iter(CONTAINERS.values())), Runner: RUNNERS[Way.LOOP], WayTraits: TRAITS[Way.LOOP]}[made]
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
        plant = build(host, pipeline(stage("running", Way.LANES)), 2, 3, 0)
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


@pytest.mark.parametrize(
    ("trait", "told"),
    [
        ("lanes", "lanes by key whose rows are not told apart"),
        ("hands_over", "partial panes are merged by the next stage"),
        ("shares", "tickets that are shared from no known one on"),
        ("together", "transactions that nobody collects"),
    ],
)
def test_a_way_is_asked_for_its_traits_and_not_for_its_name(trait, told, monkeypatch):
    made = pipeline(stage("running", Way.LOOP))
    verify_pipeline(made)
    monkeypatch.setitem(TRAITS, Way.LOOP, replace(TRAITS[Way.LOOP], **{trait: True}))
    with pytest.raises(AssertionError, match=told):
        verify_pipeline(made)


@pytest.mark.parametrize("hands_over", [False, True])
def test_a_stage_behind_one_that_hands_panes_over_has_few_items_waiting(hands_over, monkeypatch):
    """What the first of two stages does is asked of its way, by whatever name it goes."""
    monkeypatch.setitem(TRAITS, Way.ANY, replace(TRAITS[Way.ANY], hands_over=hands_over))
    made, capacities = Plant.ring, []
    monkeypatch.setattr(building, "EVENTS_WAITING", 5)
    monkeypatch.setattr(Plant, "ring", lambda plant, items: capacities.append(items) or made(plant, items))
    with Memory() as memory:
        host = InterpretedHost()
        host.memory = memory
        host._active._memory = memory
        close(build(host, pipeline(stage("passthrough", Way.ANY), stage("running", Way.LOOP)), 1, 3, 0))
    assert (5 in capacities) == hands_over
