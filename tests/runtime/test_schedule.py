"""Heuristics are pure functions; the chooser applies them to a chain of stages."""

from __future__ import annotations

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.engine import schedule as h
from cq.runtime.engine import stage as s
from cq.runtime.queues.ring import ring_drop, ring_new, ring_push
from cq.ways import HEURISTICS

FUNCTIONS = (h.score_et, h.score_ct, h.score_lp, h.score_qst, h.choose_stage, ring_new, ring_push, ring_drop)


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request):
    with request.param(*FUNCTIONS, leaks_allowed=True) as made:
        yield made


SHARED, ALONE = 0, 1  # STAGE_ALONE


def chain(run, *stages):
    """An engine over stages of (waiting items, workers inside, busy ns, items done, whether for one worker)."""
    table = []
    for waiting, active, busy_ns, items, alone in stages:
        ring = run.ring_new(64)
        for item in range(waiting):
            run.ring_push(ring, item + 1)
        words = [0] * s.STAGE_WORDS
        words[s.STAGE_INPUT], words[s.STAGE_ACTIVE], words[s.STAGE_BUSY_NS] = ring, active, busy_ns
        words[s.STAGE_ITEMS], words[s.STAGE_ALONE] = items, alone
        table.append(words)
    following = 0
    addresses = []
    for words in reversed(table):
        words[s.STAGE_NEXT] = following
        following = run.place_words(*words) if not run.compiled else place(run, words)
        addresses.insert(0, following)
    engine = [0] * s.ENGINE_WORDS
    engine[s.ENGINE_STAGES], engine[s.ENGINE_WORKERS] = len(table), 4
    engine[s.ENGINE_STAGE_TABLE] = place(run, addresses)
    engine[s.ENGINE_WINDOW] = 2**62  # the window never ends in these tests
    return place(run, engine)


def place(run, words):
    import struct

    return run.place(struct.pack(f"<{len(words)}q", *words), True)


def test_lp_takes_the_last_stage_that_can_be_served(run):
    engine = chain(run, (3, 0, 0, 0, SHARED), (1, 0, 0, 0, SHARED), (0, 0, 0, 0, SHARED))
    assert run.choose_stage(engine, h.LP) == 1


def test_a_single_stage_with_a_worker_inside_is_not_chosen(run):
    engine = chain(run, (3, 0, 0, 0, SHARED), (5, 1, 0, 0, ALONE))
    assert [run.choose_stage(engine, n) for n in (h.CT, h.LP, h.ET, h.QST)] == [0, 0, 0, 0]


def test_nothing_is_chosen_when_nothing_waits(run):
    engine = chain(run, (0, 0, 0, 0, SHARED), (0, 0, 0, 0, ALONE))
    assert [run.choose_stage(engine, n) for n in (h.CT, h.LP, h.ET, h.QST)] == [-1] * 4


def test_et_takes_the_queue_that_would_take_longest(run):
    # 10 items of 1 us against 3 items of 5 us; then a second worker would halve that
    engine = chain(run, (10, 0, 100_000, 100, SHARED), (3, 0, 500_000, 100, SHARED))
    assert run.choose_stage(engine, h.ET) == 1
    engine = chain(run, (10, 0, 100_000, 100, SHARED), (3, 1, 500_000, 100, SHARED))
    assert run.choose_stage(engine, h.ET) == 0


def test_ct_takes_the_stage_that_has_kept_up_least(run):
    # the same items through both, the second five times dearer: after equal worker time it lags behind
    engine = chain(run, (5, 0, 100_000, 100, SHARED), (5, 0, 100_000, 20, SHARED))
    reach = (20 + 5 + 1) / 101
    assert h.score_ct(100_000, 0, 5001.0, reach) > h.score_ct(100_000, 0, 1001.0, 1.05)
    assert run.choose_stage(engine, h.CT) == 1


def test_qst_pushes_from_the_front_until_the_next_queue_has_its_share(run):
    engine = chain(run, (5, 0, 1000, 100, SHARED), (2, 0, 1000, 100, SHARED))
    assert run.choose_stage(engine, h.QST) == 0
    engine = chain(run, (5, 0, 1000, 100, SHARED), (40, 0, 1000, 100, SHARED))
    assert run.choose_stage(engine, h.QST) == 1


@pytest.mark.parametrize("name", HEURISTICS)
def test_every_heuristic_chooses_by_a_score_of_its_own(run, name):
    """One without a branch in `_score` used to run as LP; the assertion is there when it is interpreted."""
    assert run.choose_stage(chain(run, (1, 0, 0, 0, SHARED)), HEURISTICS.index(name)) == 0
    with Interpreted(*FUNCTIONS, leaks_allowed=True) as made, pytest.raises(AssertionError, match="without a score"):
        made.choose_stage(chain(made, (1, 0, 0, 0, SHARED)), len(HEURISTICS))


def test_a_heuristic_without_a_score_is_named(monkeypatch):
    monkeypatch.setattr(h, "HEURISTICS", (*HEURISTICS, "probe"))
    assert h._unscored() == ["probe"]


def test_scores_are_the_formulas_of_the_paper(run):
    assert run.score_et(6, 100.0, 2) == 200.0
    assert run.score_ct(1_000_000, 1, 100.0, 2.0) == -10_000.0
    assert run.score_qst(1, 15, 1.0, 2.0) == -1.0
    assert run.score_qst(1, 16, 1.0, 2.0) < -1e8
