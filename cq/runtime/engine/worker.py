"""Workers: choose a stage, take an item, call the kernel, send on in order, repeat; sleep when there is nothing.

The whole engine runs by `work_once`: `threads=0` calls it until nothing moves, a worker thread until it has to stop.
A stage run by one worker at a time (SINGLE) keeps rows behind its ports while more input waits, so that small outputs
leave together. Tickets of a SHARED stage are run by anybody; a task that emits more than HELD_PARCELS before its turn
waits in the reorder buffer, and whoever reads there goes on with it, so one ticket with a million rows breaks no bound.

Roles     any number of workers; one at a time in a SINGLE stage, at the sending end of a SHARED one, in admission.
I1        the head ticket of a SHARED stage always has a task: a task is taken before a ticket.
                                                                       tests: test_a_ticket_far_ahead_cannot_starve_*
I2        a worker goes to sleep only when a look at everything after it had announced itself found nothing.
                                                                       tests: test_no_wakeup_is_lost
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
    clock_ns,
    futex_wait,
    ld_i64,
    pause,
    sched_yield,
    st_i64,
)
from cq.runtime.engine.lanes import serve_lanes
from cq.runtime.engine.partials import (
    AGAIN,
    COLLECTED,
    PART_STATE,
    UNCOLLECTED,
    collect_parts,
    part_give,
    part_marked,
    part_retire,
    part_take,
)
from cq.runtime.engine.schedule import choose_stage
from cq.runtime.engine.stage import (
    ENGINE_ADMISSION,
    ENGINE_EPOCH,
    ENGINE_HEURISTIC,
    ENGINE_LISTENERS,
    ENGINE_OUTCOME,
    ENGINE_SIGNAL,
    ENGINE_STAGE_TABLE,
    ENGINE_STAGES,
    ENGINE_STOP,
    ENGINE_UNHEARD,
    ENGINE_WAITERS,
    ENGINE_WORKERS,
    LANED,
    NO_MEMORY,
    PARTIAL,
    RUNNING,
    SINGLE,
    STAGE_ACTIVE,
    STAGE_BUSY,
    STAGE_ENGINE,
    STAGE_FAILED,
    STAGE_INPUT,
    STAGE_KIND,
    STAGE_NEXT,
    STAGE_PARTIALS,
    STAGE_PORTS,
    STAGE_REORDER,
    STAGE_TASK,
    STAGE_TASKS,
    TASK_COLLECTED,
    TASK_COUNT,
    TASK_FIRST,
    TASK_HOME,
    TASK_ITEM,
    TASK_OUT,
    TASK_STATE,
    TASK_STATUS,
    TASK_TICKET,
    call_feeder,
    can_send,
    collect_emitted,
    count_item,
    fail,
    holds_rows,
    note_failure,
    run_kernel,
    send,
    send_emitted,
    send_failure,
    signal_feeder,
    use_up,
    wake_workers,
)
from cq.runtime.flow.admission import (
    ADMISSION_BUSY,
    ADMISSION_ENDED,
    ADMISSION_LOANS,
    ADMISSION_SOURCE_TABLE,
    ADMISSION_SOURCES,
    SOURCE_ENDED,
    SOURCE_RING,
    SOURCE_WORDS,
    admit,
)
from cq.runtime.flow.batch import FAILURE, ITEM_KIND, ITEM_LAST, ITEM_LINK, ITEM_PORT
from cq.runtime.layout.abi import DONE, ERROR, MORE, PORT_LIMIT, PORT_ROWS, PORT_WORDS, STATE_ERROR_CODE
from cq.runtime.queues.pool import bag_count, bag_put, bag_take
from cq.runtime.queues.reorder import (
    reorder_enter,
    reorder_head,
    reorder_leave,
    reorder_next,
    reorder_put,
)
from cq.runtime.queues.ring import ring_pop, ring_size, ring_take

FEW_BATCHES = 1  # of PENDING_BATCHES that wait: the feeder is then just in time for record batches of usual size
TICKETS_AHEAD = 4  # a worker, when there are several: with fewer they run dry while one of them admits
ITEMS_A_VISIT = 8  # a worker then looks around again; at 16k rows a visit is about a millisecond
HELD_ITEMS = 16  # what a SINGLE stage emits waits no longer than for this many items
HELD_PARCELS = 2  # of a task whose turn has not come
SPINS = 100  # about 5 us of `pause`, less than a sleep and a wake-up cost
YIELDS = 10
SLEEP_NS = 100_000_000  # a safety net: every wake-up is sent


# -- stages run by one worker at a time ------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _filled(stage: int, task: int) -> int:
    """1 when some port is at least half full."""
    for port in range(ld_i64(stage, STAGE_PORTS)):
        words = ld_i64(task, TASK_OUT) + port * PORT_WORDS * 8
        if ld_i64(words, PORT_ROWS) * 2 >= ld_i64(words, PORT_LIMIT):
            return 1
    return 0


@native("void(i64, i64, i64)")
def _send_all(stage: int, task: int, last: int) -> None:
    """All the task emitted is sent; without memory for fresh parcels the task goes on with that failure."""
    st_i64(task, TASK_COUNT, 0)
    if send_emitted(stage, task, last) == 0:
        fail(ld_i64(task, TASK_STATE), NO_MEMORY)
        _fail_with(stage, task)


@native("void(i64, i64)")
def _fail_with(stage: int, task: int) -> None:
    """The task's item is used up, and the stage's failure, as its state shows it, is the item instead."""
    item = ld_i64(task, TASK_ITEM)
    failure = note_failure(stage, ld_i64(task, TASK_STATE), item)
    use_up(stage, item)
    st_i64(task, TASK_ITEM, failure)


@native("void(i64, i64, i64)")
def _step(stage: int, task: int, item: int) -> None:
    """One kernel call, or one failure passed on. TASK_ITEM is 0 when the item is used up. Sends once at most."""
    if ld_i64(stage, STAGE_FAILED) == 1:
        use_up(stage, item)
        st_i64(task, TASK_ITEM, 0)
        return
    if ld_i64(item, ITEM_KIND) == FAILURE:
        if holds_rows(stage, task) == 0 or send_emitted(stage, task, 0) == 0:
            send_failure(stage, item)
            st_i64(task, TASK_ITEM, 0)
        return
    status = run_kernel(stage, task, item)
    if status == ERROR:
        _fail_with(stage, task)  # the rows before it leave with the next step
    elif status == MORE:
        _send_all(stage, task, 0)
    else:
        last = ld_i64(item, ITEM_LAST)
        st_i64(task, TASK_COUNT, ld_i64(task, TASK_COUNT) + 1)
        if last == 1 or _filled(stage, task) == 1 or ld_i64(task, TASK_COUNT) >= HELD_ITEMS:
            _send_all(stage, task, last)
        if ld_i64(task, TASK_ITEM) == item:
            use_up(stage, item)
            st_i64(task, TASK_ITEM, 0)


@native("i64(i64, i64)")
def serve_single(stage: int, part: int) -> int:
    """How many steps were made; 0 when another worker is in the stage or nothing can move.

    part: whose panes the caller holds (cq/runtime/engine/partials.py), or 0.
    """
    if can_send(stage) == 0 or not at_cas(stage + STAGE_BUSY * 8, 0, 1):
        return 0
    task = ld_i64(stage, STAGE_TASK)
    steps = 0
    while steps < ITEMS_A_VISIT and can_send(stage) == 1:
        item = ld_i64(task, TASK_ITEM)
        if item == 0:
            item = ring_pop(ld_i64(stage, STAGE_INPUT))
            if item == 0:
                break
            st_i64(task, TASK_ITEM, item)
            count_item(stage, item)
            st_i64(task, TASK_COLLECTED, 0)
        if _collected(stage, task, item, part) == 0:
            break
        _step(stage, task, ld_i64(task, TASK_ITEM))
        steps += 1
    at_store(stage + STAGE_BUSY * 8, 0)
    return steps


@native("i64(i64, i64, i64, i64)")
def _collected(stage: int, task: int, item: int, part: int) -> int:
    """1 and the panes that other workers have filled for the item are here; 0: some are still in use."""
    partials = ld_i64(stage, STAGE_PARTIALS)
    if partials == 0 or ld_i64(task, TASK_COLLECTED) == 1:
        return 1
    done = collect_parts(partials, ld_i64(task, TASK_STATE), item, part)
    if done == AGAIN:
        return 0
    st_i64(task, TASK_COLLECTED, 1)
    if done == UNCOLLECTED:
        fail(ld_i64(task, TASK_STATE), NO_MEMORY)
        _fail_with(stage, task)
    elif done == COLLECTED:  # workers may have found no panes to fill meanwhile
        engine = ld_i64(stage, STAGE_ENGINE)
        wake_workers(engine, ld_i64(engine, ENGINE_WORKERS))
    return 1


@native("i64(i64)")
def send_held(stage: int) -> int:
    """1 and the rows that a SINGLE stage kept for company are sent: nothing more is coming just now."""
    task = ld_i64(stage, STAGE_TASK)
    if ld_i64(stage, STAGE_KIND) != SINGLE or can_send(stage) == 0 or not at_cas(stage + STAGE_BUSY * 8, 0, 1):
        return 0
    held = 0
    if ld_i64(task, TASK_ITEM) == 0:
        held = holds_rows(stage, task)
    if held == 1:
        st_i64(task, TASK_COUNT, 0)
        if send_emitted(stage, task, 0) == 0:
            fail(ld_i64(task, TASK_STATE), NO_MEMORY)
            st_i64(task, TASK_ITEM, note_failure(stage, ld_i64(task, TASK_STATE), 0))
    at_store(stage + STAGE_BUSY * 8, 0)
    return held


# -- stages whose tickets anybody runs -------------------------------------------------------------------------------


@native("void(i64, i64)")
def _run(stage: int, task: int) -> None:
    """The kernel was called once and what it emitted is in the task's list; TASK_STATUS says how it goes on."""
    status = run_kernel(stage, task, ld_i64(task, TASK_ITEM))
    if collect_emitted(stage, task) == 0:
        status = ERROR
        fail(ld_i64(task, TASK_STATE), NO_MEMORY)
    st_i64(task, TASK_STATUS, status)


@native("i64(i64, i64)")
def _send_task(stage: int, task: int) -> int:
    """1 and all of the head ticket is sent and used up; 0 when there is no room for the rest. Reader only."""
    item = ld_i64(task, TASK_ITEM)
    while True:
        parcel = ld_i64(task, TASK_FIRST)
        while parcel != 0:
            if can_send(stage) == 0:
                return 0
            following = ld_i64(parcel, ITEM_LINK)
            st_i64(task, TASK_FIRST, following)
            send(stage, ld_i64(parcel, ITEM_PORT), parcel)
            parcel = following
        st_i64(task, TASK_COUNT, 0)
        status = ld_i64(task, TASK_STATUS)
        if ld_i64(item, ITEM_KIND) != FAILURE and status == MORE and ld_i64(stage, STAGE_FAILED) == 0:
            _run(stage, task)
        else:
            if can_send(stage) == 0:
                return 0
            if ld_i64(item, ITEM_KIND) == FAILURE:
                send_failure(stage, item)
            elif ld_i64(stage, STAGE_FAILED) == 0 and status == ERROR:
                send_failure(stage, note_failure(stage, ld_i64(task, TASK_STATE), item))
            elif ld_i64(stage, STAGE_FAILED) == 0 and ld_i64(item, ITEM_LAST) == 1:
                send_emitted(stage, task, 1)
            use_up(stage, item)
            return 1


@native("i64(i64)")
def _drain(stage: int) -> int:
    """How many tickets left the stage, in order, as far as there are results and room."""
    buffer = ld_i64(stage, STAGE_REORDER)
    sent = 0
    while can_send(stage) == 1 and reorder_enter(buffer) == 1:
        task = reorder_head(buffer)
        while task != 0 and _send_task(stage, task) == 1:
            st_i64(task, TASK_ITEM, 0)
            reorder_next(buffer)
            bag_put(ld_i64(task, TASK_HOME), task)
            sent += 1
            task = reorder_head(buffer)
        if reorder_leave(buffer) == 0:
            break
    return sent


@native("i64(i64)")
def _take_ticket(stage: int) -> int:
    """A task with the next ticket, not run; 0 when there is no ticket, or no task for it."""
    task = bag_take(ld_i64(stage, STAGE_TASK))
    if task == 0:
        return 0
    item, ticket = ring_take(ld_i64(stage, STAGE_INPUT))
    if item == 0:
        bag_put(ld_i64(task, TASK_HOME), task)
        return 0
    count_item(stage, item)
    st_i64(task, TASK_ITEM, item)
    st_i64(task, TASK_TICKET, ticket)
    st_i64(task, TASK_STATUS, DONE)
    return task


@native("i64(i64, i64)")
def _lives(stage: int, task: int) -> int:
    """1 when the task's ticket is to be run: it is no failure passed on, and the stage has not failed."""
    item = ld_i64(task, TASK_ITEM)
    return 1 if ld_i64(item, ITEM_KIND) != FAILURE and at_load(stage + STAGE_FAILED * 8) == 0 else 0


@native("void(i64, i64)")
def _put_ticket(stage: int, task: int) -> None:
    """The task waits in the reorder buffer for the turn of its ticket."""
    put = reorder_put(ld_i64(stage, STAGE_REORDER), ld_i64(task, TASK_TICKET), task)
    assert put == 1, "as many slots as tasks"


@native("i64(i64)")
def serve_shared(stage: int) -> int:
    """How many tickets were run or sent."""
    done = _drain(stage)
    task = _take_ticket(stage)
    if task == 0:
        return done
    if _lives(stage, task) == 1:
        _run(stage, task)
        while ld_i64(task, TASK_STATUS) == MORE and ld_i64(task, TASK_COUNT) < HELD_PARCELS:
            _run(stage, task)
    _put_ticket(stage, task)
    return done + 1 + _drain(stage)


@native("i64(i64, i64)")
def serve_partial(stage: int, worker: int) -> int:
    """How many tickets were counted into panes of this worker's own, or passed on.

    What they close is collected and emitted at once where that is possible: an emptied pane is then used again while it
    is in the cache. With tickets waiting before the collector, windows shorter than those filled pane after fresh pane,
    and segment statistics took five times as long.
    """
    done = _drain(stage)
    part = part_take(ld_i64(stage, STAGE_PARTIALS), worker)
    if part == 0 and at_load(stage + STAGE_FAILED * 8) == 0:
        return done
    for _ in range(ITEMS_A_VISIT):
        if _fill(stage, part) == 0:
            break
        done += 1 + _drain(stage)
        serve_single(ld_i64(stage, STAGE_NEXT), part)
        if part != 0 and (part_marked(part) == 1 or ld_i64(ld_i64(part, PART_STATE), STATE_ERROR_CODE) != 0):
            break
    if part != 0:
        if ld_i64(ld_i64(part, PART_STATE), STATE_ERROR_CODE) != 0:
            part_retire(part)
        else:
            part_give(part)
    return done


@native("i64(i64, i64)")
def _fill(stage: int, part: int) -> int:
    """1 and the next ticket is in the reorder buffer, run on the part's state unless the stage has failed."""
    task = _take_ticket(stage)
    if task == 0:
        return 0
    if part != 0 and _lives(stage, task) == 1:
        st_i64(task, TASK_STATE, ld_i64(part, PART_STATE))
        _run(stage, task)
        assert ld_i64(task, TASK_STATUS) != MORE, "nothing is emitted that could fill a port"
    _put_ticket(stage, task)
    return 1


# -- the loop --------------------------------------------------------------------------------------------------------


@native("void(i64)")
def _tell_of_room(engine: int) -> None:
    """The feeder knows, at once where a source has few batches left, else with the next news: a wake-up costs 30 us."""
    admission = ld_i64(engine, ENGINE_ADMISSION)
    for number in range(ld_i64(admission, ADMISSION_SOURCES)):
        source = ld_i64(admission, ADMISSION_SOURCE_TABLE) + number * SOURCE_WORDS * 8
        if ld_i64(source, SOURCE_ENDED) == 0 and ring_size(ld_i64(source, SOURCE_RING)) <= FEW_BATCHES:
            signal_feeder(engine)
            return
    if at_load(engine + ENGINE_UNHEARD * 8) == 0:
        at_store(engine + ENGINE_UNHEARD * 8, clock_ns())


@native("i64(i64)")
def serve_admission(engine: int) -> int:
    """How many tickets were cut; none when another worker is at it."""
    admission = ld_i64(engine, ENGINE_ADMISSION)
    if at_load(admission + ADMISSION_ENDED * 8) == 1 or not at_cas(admission + ADMISSION_BUSY * 8, 0, 1):
        return 0
    loans = ld_i64(admission, ADMISSION_LOANS)
    workers = ld_i64(engine, ENGINE_WORKERS)
    made = admit(admission, workers if workers == 1 else workers * TICKETS_AHEAD)
    taken = ld_i64(admission, ADMISSION_LOANS) - loans
    at_store(admission + ADMISSION_BUSY * 8, 0)
    if taken > 0:
        _tell_of_room(engine)
    if made > 1:
        wake_workers(engine, made - 1)
    return made


@native("i64(i64, i64)")
def serve(stage: int, worker: int) -> int:
    """What one worker could do for the stage now; 0 when nothing."""
    at_add(stage + STAGE_ACTIVE * 8, 1)
    kind = ld_i64(stage, STAGE_KIND)
    done = 0
    if kind == SINGLE:
        done = serve_single(stage, 0)
    elif kind == LANED:
        done = serve_lanes(stage)
    elif kind == PARTIAL:
        done = serve_partial(stage, worker)
    else:
        done = serve_shared(stage)
    at_add(stage + STAGE_ACTIVE * 8, -1)
    return done


@native("i64(i64, i64)")
def work_once(engine: int, worker: int) -> int:
    """1 when something was done: a visit to the stage the heuristic chose, else to any, else to admission."""
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
        if send_held(ld_i64(table, number)) == 1:
            return 1
    call_feeder(engine)
    return 0


@native("i64(i64, i64)", export=True)
def run_inline(engine: int, steps: int) -> int:
    """How often something was done, at most `steps` times, on this thread, until nothing moves any more."""
    done = 0
    while done < steps and work_once(engine, 0) == 1:
        done += 1
    return done


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
        elif idle < SPINS + YIELDS:
            idle += 1
            sched_yield()
        else:
            epoch = at_load(engine + ENGINE_EPOCH * 8)
            at_add(engine + ENGINE_WAITERS * 8, 1)
            if work_once(engine, worker) == 0 and at_load(engine + ENGINE_STOP * 8) == 0:
                futex_wait(engine + ENGINE_EPOCH * 8, epoch, SLEEP_NS)
                slept += 1
            at_add(engine + ENGINE_WAITERS * 8, -1)
            idle = SPINS  # a few yields, then sleep again
    return slept


@native("i64(i64, i64, i64)", export=True)
def feeder_wait(engine: int, seen: int, timeout_ns: int) -> int:
    """The signal's value, after it differs from `seen` or the time is over. For the feeder, in slices."""
    at_add(engine + ENGINE_LISTENERS * 8, 1)
    if at_load(engine + ENGINE_SIGNAL * 8) == seen:
        futex_wait(engine + ENGINE_SIGNAL * 8, seen, timeout_ns)
    at_add(engine + ENGINE_LISTENERS * 8, -1)
    return at_load(engine + ENGINE_SIGNAL * 8)


@native("i64(i64)")
def _stage_idle(stage: int) -> int:
    """1 when the stage has nothing to do and nothing to send. Holds while nothing new comes in."""
    if ring_size(ld_i64(stage, STAGE_INPUT)) > 0:
        return 0
    if ld_i64(stage, STAGE_KIND) != SINGLE:  # STAGE_TASK: idle tasks, or idle splits
        return 1 if bag_count(ld_i64(stage, STAGE_TASK)) == ld_i64(stage, STAGE_TASKS) else 0
    if not at_cas(stage + STAGE_BUSY * 8, 0, 1):
        return 0
    task = ld_i64(stage, STAGE_TASK)
    idle = 0
    if ld_i64(task, TASK_ITEM) == 0 and holds_rows(stage, task) == 0:
        idle = 1
    at_store(stage + STAGE_BUSY * 8, 0)
    return idle


@native("i64(i64)", export=True)
def engine_idle(engine: int) -> int:
    """1 when all that can be admitted is admitted, processed and sent to the sinks."""
    if serve_admission(engine) > 0 or at_load(ld_i64(engine, ENGINE_ADMISSION) + ADMISSION_BUSY * 8) == 1:
        return 0
    for number in range(ld_i64(engine, ENGINE_STAGES)):
        if _stage_idle(ld_i64(ld_i64(engine, ENGINE_STAGE_TABLE), number)) == 0:
            return 0
    return 1
