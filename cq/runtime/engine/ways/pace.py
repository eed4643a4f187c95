"""The pace of punctuations: how many events they have, adapted while a query runs.

More events share the cost of each phase; but the rows that they name leave the cache, and their results wait for the
last of them. So a punctuation of the next longer rung of a ladder is tried, and kept if an event then takes noticeably
less time; a shorter one is taken if a punctuation takes longer than LATENCY_NS. Both are decided by the median of
WINDOW punctuations: a worker that is interrupted for some milliseconds says nothing about the rest. Rows and their
order do not depend on where punctuations end.

Roles     the one in turn (cq/runtime/engine/ways/chains.py) of the last stage that runs transactions together measures
          and decides; admission obeys.
Shared    ADMISSION_INTERVAL: stored by the one in turn, loaded before every ticket. All else is the one in turn's.
I1        a punctuation has from 1 to PACE_MOST events.             tests: test_punctuations_keep_within_the_ladder
I2        rows do not depend on what is decided.                    tests: test_any_pace_gives_the_rows_of_one_loop
Progress  no call waits.
Order     none is needed: a ticket of either length is correct. Tickets in flight were cut before a change, so after one
          as many as there can be are not measured.
Source    Zhang et al., TStream (ICDE 2020), where the interval is the user's; climbing a ladder by medians is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_store, clock_ns, ld_i64, min_i64, sdiv, st_i64
from cq.runtime.containers.state import words
from cq.runtime.engine.plant import Plant
from cq.runtime.engine.stage import STAGE_OWN
from cq.runtime.flow.admission_words import ADMISSION_INTERVAL
from cq.runtime.layout.chains import CHAINS_OTHER, CHAINS_PACE
from cq.runtime.layout.words import Struct, name_words

if TYPE_CHECKING:
    from cq.runtime.base.host import Host

LADDER = (
    50, 64, 80, 100, 125, 160, 200, 250, 320, 400, 500, 640,
    800, 1_000, 1_250, 1_600, 2_000, 2_500, 3_200, 4_000, 5_000, 6_400, 8_000, 10_000,
)  # fmt: skip
"""The most events per punctuation. Each rung is a quarter longer than the one below: smaller steps drown in noise."""
FIRST_RUNG = LADDER.index(500)  # as without adapting
RUNGS = len(LADDER)
LATENCY_NS = 500_000  # the most a punctuation may take: the median wait of users, if they wait for nothing else
WINDOW = 16  # punctuations measured for each decision
GAIN_PERCENT = 3  # the least gain per event of a longer punctuation; two windows of one length differ by as much
REST_WINDOWS = 64  # before a longer one that did not pay is tried again: trials take at most 6 % of the time

name_words(globals())

_pace = Struct("PACE")
PACE_ADMISSION = _pace.word()
PACE_LADDER = _pace.word()  # -> LADDER
PACE_MOST = _pace.word()  # rows of a ticket, from the batch size
PACE_RUNG = _pace.word()
PACE_TRIAL = _pace.word()  # 1: the rung below was faster, or the faster one is not known yet
PACE_COST = _pace.word()  # of an event in the rung below, when this one is on trial
PACE_REST = _pace.word()  # windows before a longer one is tried
PACE_BEHIND = _pace.word()  # the most tickets in flight that were cut by an earlier decision
PACE_SKIP = _pace.word()  # how many of those may still come
PACE_SEEN = _pace.word()  # measured so far
PACE_LAST_NS = _pace.word()  # when the previous one was done; 0: nothing waited then
PACE_COSTS = _pace.words(WINDOW)  # of each: 1/1024 ns per event, from the end of the previous one to its own
PACE_TIMES = _pace.words(WINDOW)  # of each: ns from its beginning
PACE_COUNTS = _pace.words(RUNGS)  # punctuations of each rung
PACE_WORDS = _pace.lines()


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def pace_step(rung: int, most: int, trial: int, cost: int, cost_before: int, took_ns: int) -> int:
    """How many rungs up (1) or down (-1) the next punctuations go.

    most: the highest rung to try.  trial: whether this rung is on trial, while an event of the one below took
    `cost_before`.  cost, took_ns: the medians of an event and of a punctuation.
    """
    if took_ns > LATENCY_NS:
        return -1 if rung > 0 else 0
    if trial == 1 and cost * 100 > cost_before * (100 - GAIN_PERCENT):
        return -1
    return 1 if rung < most else 0


@native("void(i64, i64, i64, i64)")
def pace_note(pace: int, rows: int, begun_ns: int, waits: int) -> None:
    """Note that a punctuation is done. begun_ns: when it was taken.  waits: whether the next one is there.

    A full one is followed by others: until the next one is done no time passes without events.
    """
    now = clock_ns()
    last = ld_i64(pace, PACE_LAST_NS)
    st_i64(pace, PACE_LAST_NS, now if waits == 1 or rows >= _length(pace) else 0)
    counted = pace + (PACE_COUNTS + ld_i64(pace, PACE_RUNG)) * 8
    st_i64(counted, 0, ld_i64(counted, 0) + 1)
    if ld_i64(pace, PACE_SKIP) > 0:
        st_i64(pace, PACE_SKIP, ld_i64(pace, PACE_SKIP) - 1)
        return
    if last == 0 or rows == 0:
        return
    seen = ld_i64(pace, PACE_SEEN)
    st_i64(pace + seen * 8, PACE_COSTS, sdiv((now - last) * 1024, rows))
    st_i64(pace + seen * 8, PACE_TIMES, now - begun_ns)
    st_i64(pace, PACE_SEEN, seen + 1)
    if seen + 1 == WINDOW:
        _decide(pace)


@native("void(i64)")
def _decide(pace: int) -> None:
    """Set the rung of the next punctuations by a window of them."""
    st_i64(pace, PACE_SEEN, 0)
    rung = ld_i64(pace, PACE_RUNG)
    cost = _median(pace + PACE_COSTS * 8)
    rest = ld_i64(pace, PACE_REST)
    most = rung if rest > 0 or ld_i64(ld_i64(pace, PACE_LADDER), rung) >= ld_i64(pace, PACE_MOST) else RUNGS - 1
    took_ns = _median(pace + PACE_TIMES * 8)
    turn = pace_step(rung, most, ld_i64(pace, PACE_TRIAL), cost, ld_i64(pace, PACE_COST), took_ns)
    st_i64(pace, PACE_TRIAL, 1 if turn == 1 else 0)
    st_i64(pace, PACE_COST, cost)
    st_i64(pace, PACE_REST, REST_WINDOWS if turn == -1 else rest - min_i64(rest, 1))
    if turn != 0:
        st_i64(pace, PACE_RUNG, rung + turn)
        st_i64(pace, PACE_SKIP, ld_i64(pace, PACE_BEHIND))
        pace_tell(pace)


@native("i64(i64)")
def _median(values: int) -> int:
    """The upper one of the two in the middle."""
    found = 0
    for n in range(WINDOW):
        below = 0
        for other in range(WINDOW):
            if ld_i64(values, other) < ld_i64(values, n) or (ld_i64(values, other) == ld_i64(values, n) and other < n):
                below += 1
        if below == WINDOW // 2:
            found = ld_i64(values, n)
    return found


@native("void(i64)", export=True)
def pace_tell(pace: int) -> None:
    """Set the maximum number of events in the tickets that are admitted from now on."""
    at_store(ld_i64(pace, PACE_ADMISSION) + ADMISSION_INTERVAL * 8, _length(pace))


@native("i64(i64)")
def _length(pace: int) -> int:
    """Return the maximum number of events in the next punctuations."""
    return min_i64(ld_i64(ld_i64(pace, PACE_LADDER), ld_i64(pace, PACE_RUNG)), ld_i64(pace, PACE_MOST))


def adapt(plant: Plant, stage: int, rows: int, behind: int) -> None:
    """Let the punctuations of a stage adapt from now on. rows: the most of a ticket.  behind: tickets before it."""
    pace = plant.block(PACE_WORDS)
    for index, value in (
        (PACE_ADMISSION, plant.admission),
        (PACE_LADDER, plant.host.place(words(LADDER))),
        (PACE_MOST, rows),
        (PACE_RUNG, FIRST_RUNG),
        (PACE_BEHIND, behind),
    ):
        plant.host.set_word(pace, index, value)
    chains = plant.host.word(stage, STAGE_OWN)
    for shares in (chains, plant.host.word(chains, CHAINS_OTHER)):
        plant.host.set_word(shares, CHAINS_PACE, pace)
    plant.host.function("pace_tell")(pace)


def intervals_of(host: Host, chains: int) -> Sequence[tuple[int, int]]:
    """(events at most, how many punctuations), ascending; none if punctuations do not adapt."""
    pace = host.word(chains, CHAINS_PACE)
    if not pace:
        return ()
    counts = (host.word(pace, PACE_COUNTS + n) for n in range(RUNGS))
    return tuple((min(e, host.word(pace, PACE_MOST)), n) for e, n in zip(LADDER, counts, strict=True) if n)
