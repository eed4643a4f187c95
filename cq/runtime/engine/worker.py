"""Workers: choose a stage, serve it, repeat; sleep when there is nothing.

`work_once` runs the whole engine: `threads=0` calls it until nothing moves, a worker thread until it has to stop. How a
stage is served is up to its way (cq/runtime/engine/ways/).

Roles     any number of workers; one at a time in admission.
Shared    EPOCH  moved by whoever has made work.  WAITERS  workers that sleep or are about to.  SIGNAL, LISTENERS  the
          same for the feeder; RESTS_HEARD while it waits for the end of all work.  ADMISSION_BUSY (try-lock).
I1        a worker goes to sleep only when a look at everything after it had announced itself found nothing.
                                                                       tests: test_no_wakeup_is_lost
I2        a feeder that waits for the end of all work is signalled after the last of it.
                                                  tests: test_a_feeder_that_waits_for_the_end_of_all_work_is_told_of_it
Progress  a worker waits only in the futex, when no work is left, until work is made; the feeder only for results or
          room.
Order     sleep: EPOCH is loaded, WAITERS raised (seq_cst), then everything is looked at again, then the futex compares
          EPOCH. Wake (stage.py): the work, a fence, WAITERS. Raising and looking, publishing and asking are a store
          and a load of two words: one of the two sides sees the other.
          Admission: ADMISSION_BUSY is taken by CAS and given back by a store (seq_cst); all words of admission and its
          sources are plain and touched in between, so what a worker needs of them it loads before the store.
                                                                tests: test_what_a_worker_learns_of_sources_*
          The feeder listens: LISTENERS is raised, then SIGNAL compared; the futex compares it once more.
          The feeder waits for the end of all work: SIGNAL is loaded, RESTS_HEARD stored, then everything is looked at.
          A worker that finds nothing more to do loads RESTS_HEARD after its last work: either the feeder has seen that
          work done, or SIGNAL moves after it was loaded.
Source    Prasaad et al. (2018), section 6, for the choice of the stage: cq/runtime/engine/schedule.py.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    at_add,
    at_cas,
    at_load,
    at_load_acq,
    at_store,
    call1,
    call2,
    clock_ns,
    futex_wait,
    ld_i64,
    pause,
    sched_yield,
)
from cq.runtime.engine.schedule import choose_stage
from cq.runtime.engine.stage import (
    ENGINE_ADMISSION,
    ENGINE_EPOCH,
    ENGINE_HEURISTIC,
    ENGINE_LISTENERS,
    ENGINE_OUTCOME,
    ENGINE_RESTS_HEARD,
    ENGINE_SIGNAL,
    ENGINE_STAGE_TABLE,
    ENGINE_STAGES,
    ENGINE_STOP,
    ENGINE_UNHEARD,
    ENGINE_WAITERS,
    ENGINE_WORKERS,
    RUNNING,
    STAGE_ACTIVE,
    STAGE_FLUSH,
    STAGE_IDLE,
    STAGE_SERVE,
    call_feeder,
    signal_feeder,
    tell_of_rest,
    wake_workers,
)
from cq.runtime.flow.admission import admit
from cq.runtime.flow.admission_words import (
    ADMISSION_BUSY,
    ADMISSION_ENDED,
    ADMISSION_LOANS,
    ADMISSION_SOURCE_TABLE,
    ADMISSION_SOURCES,
    SOURCE_ENDED,
    SOURCE_RING,
    SOURCE_WORDS,
)
from cq.runtime.queues.ring import ring_size

FEW_BATCHES = 1  # of waiting PENDING_BATCHES: the feeder is then just in time for record batches of usual size
TICKETS_AHEAD = 4  # per worker, if there are several: with fewer they run dry while one of them admits
SPINS = 100  # about 5 us of `pause`, less than a sleep and a wake-up cost
YIELDS = 400  # about 100 us, what a wake-up costs in a virtual machine: other ready threads have the processor
SLEEP_NS = 100_000_000  # a safety net: every wake-up is sent


# -- the loop --------------------------------------------------------------------------------------------------------


@native("i64(i64)")
def _runs_short(admission: int) -> int:
    """1 if a source that has not ended has few batches left. The caller holds admission."""
    for number in range(ld_i64(admission, ADMISSION_SOURCES)):
        source = ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8
        if ld_i64(source, SOURCE_ENDED) == 0 and ring_size(ld_i64(source, SOURCE_RING)) <= FEW_BATCHES:
            return 1
    return 0


@native("void(i64, i64)")
def _tell_of_room(engine: int, short: int) -> None:
    """Tell the feeder of room, at once if a source runs short, else with the next news: a wake-up costs 30 us."""
    if short == 1:
        signal_feeder(engine)
    elif at_load(engine + ENGINE_UNHEARD * 8) == 0:
        at_store(engine + ENGINE_UNHEARD * 8, clock_ns())


@native("i64(i64)")
def serve_admission(engine: int) -> int:
    """How many tickets were cut; 0 if another worker holds admission."""
    admission = ld_i64(engine, ENGINE_ADMISSION)
    if at_load(admission + ADMISSION_ENDED * 8) == 1 or not at_cas(admission + ADMISSION_BUSY * 8, 0, 1):
        return 0
    loans = ld_i64(admission, ADMISSION_LOANS)
    workers = ld_i64(engine, ENGINE_WORKERS)
    made = admit(admission, workers if workers == 1 else workers * TICKETS_AHEAD)
    taken = ld_i64(admission, ADMISSION_LOANS) - loans
    short = 0
    if taken > 0:
        short = _runs_short(admission)  # before another worker is at it
    at_store(admission + ADMISSION_BUSY * 8, 0)
    if taken > 0:
        _tell_of_room(engine, short)
    if made > 1:
        wake_workers(engine, made - 1)
    return made


@native("i64(i64, i64)")
def serve(stage: int, worker: int) -> int:
    """How much one worker could do for the stage now; 0 if nothing."""
    at_add(stage + STAGE_ACTIVE * 8, 1)
    done = call2(ld_i64(stage, STAGE_SERVE), stage, worker)
    at_add(stage + STAGE_ACTIVE * 8, -1)
    return done


@native("i64(i64, i64)")
def work_once(engine: int, worker: int) -> int:
    """1 if something was done: a visit to the stage the heuristic chose, else to any, else to admission."""
    if at_load(engine + ENGINE_OUTCOME * 8) != RUNNING:
        return 0
    count = ld_i64(engine, ENGINE_STAGES)
    table = ld_i64(engine, ENGINE_STAGE_TABLE)
    if count > 1:
        chosen = choose_stage(engine, ld_i64(engine, ENGINE_HEURISTIC))
        if chosen >= 0 and serve(ld_i64(table, chosen), worker) > 0:
            return 1
    for number in range(count - 1, -1, -1):
        if serve(ld_i64(table, number), worker) > 0:
            return 1
    if serve_admission(engine) > 0:
        return 1
    for number in range(count):
        flush = ld_i64(ld_i64(table, number), STAGE_FLUSH)
        if flush != 0 and call1(flush, ld_i64(table, number)) == 1:
            return 1
    call_feeder(engine)
    return 0


@native("i64(i64, i64)", export=True)
def run_inline(engine: int, steps: int) -> int:
    """Work on this thread, at most `steps` times, until nothing moves any more; return how often something was done."""
    done = 0
    while done < steps and work_once(engine, 0) == 1:
        done += 1
    return done


@native("i64(i64, i64, i64, i64)")
def rest(word: int, seen: int, yields: int, timeout_ns: int) -> int:
    """1 after a sleep, 0 if the word, a futex, differed from `seen` within this many yields."""
    for _ in range(yields):
        if at_load(word) != seen:
            return 0
        sched_yield()
    futex_wait(word, seen, timeout_ns)
    return 1


@native("i64(i64, i64)", export=True)
def worker_loop(engine: int, worker: int) -> int:
    """A worker's life, until ENGINE_STOP; returns how often it slept."""
    slept = 0
    idle = 0
    while at_load_acq(engine + ENGINE_STOP * 8) == 0:
        if work_once(engine, worker) == 1:
            idle = 0
        elif idle < SPINS:
            idle += 1
            pause()
        else:
            epoch = at_load(engine + ENGINE_EPOCH * 8)
            at_add(engine + ENGINE_WAITERS * 8, 1)
            if work_once(engine, worker) == 0 and at_load(engine + ENGINE_STOP * 8) == 0:
                tell_of_rest(engine)
                slept += rest(engine + ENGINE_EPOCH * 8, epoch, YIELDS, SLEEP_NS)
            at_add(engine + ENGINE_WAITERS * 8, -1)
            idle = 0  # as patient as before: this worker takes what is left to others (parts.py) only after some visits
    return slept


@native("i64(i64, i64, i64, i64)", export=True)
def feeder_wait(engine: int, seen: int, yields: int, timeout_ns: int) -> int:
    """The signal's value, once it differs from `seen` or the time is over. For the feeder, in slices."""
    at_add(engine + ENGINE_LISTENERS * 8, 1)
    rest(engine + ENGINE_SIGNAL * 8, seen, yields, timeout_ns)
    at_add(engine + ENGINE_LISTENERS * 8, -1)
    return at_load(engine + ENGINE_SIGNAL * 8)


@native("i64(i64)", export=True)
def engine_idle(engine: int) -> int:
    """1 if everything that can be admitted is admitted, processed and sent to the sinks."""
    if serve_admission(engine) > 0 or at_load(ld_i64(engine, ENGINE_ADMISSION) + ADMISSION_BUSY * 8) == 1:
        return 0
    for number in range(ld_i64(engine, ENGINE_STAGES)):
        stage = ld_i64(ld_i64(engine, ENGINE_STAGE_TABLE), number)
        if call1(ld_i64(stage, STAGE_IDLE), stage) == 0:
            return 0
    return 1


@native("i64(i64)", export=True)
def engine_settled(engine: int) -> int:
    """As `engine_idle`; until then, the feeder is signalled whenever a worker runs out of work."""
    at_store(engine + ENGINE_RESTS_HEARD * 8, 1)
    if engine_idle(engine) == 0:
        return 0
    at_store(engine + ENGINE_RESTS_HEARD * 8, 0)
    return 1
