"""One worker at a time until a side of every join is complete; then any worker takes any ticket.

While a side of a join grows, rows are kept and looked up in turn, as in loop.py. A ticket records which sources had
ended before it (BATCH_ENDED). Once those of SHARED_COMPLETE have, its rows and all later ones only look something up:
no container changes any more. So the worker that finds that ticket hands over: what the loop still holds is sent,
containers are settled, results return to ticket order from this ticket on, and SHARED_BEGUN is set. Then each task runs
on a state of its own, which has its own cursors, errors and texts, and the containers of the first state
(`Plant.views`).

Roles     the holder of STAGE_BUSY until the hand-over; then any number of workers, as in any_worker.py.
Shared    SHARED_BEGUN  0 until the hand-over, then 1; stored once, by the holder of STAGE_BUSY.
          the containers: written by the holder of STAGE_BUSY before that, by no one after it.
          SHARED_OWNER  -> the loop's task; STAGE_TASK: the pool of the others, which are idle until the hand-over.
I1        no ticket is shared before all earlier ones are used up.   tests: test_shared_probes_*
I2        no container is written after the hand-over.      tests: test_shared_probes_*, watched for races
I3        after the hand-over the loop's task holds nothing, and gets nothing.            tests: test_shared_probes_*
Progress  no call waits: a worker that finds the stage taken, no ticket, no task or no room after the stage returns.
Order     hand over: containers, head of the reorder buffer, then SHARED_BEGUN (release).
          serve: SHARED_BEGUN (acquire), then these.
Source    Blanas et al., Main Memory Hash Join Algorithms for Multi-core CPUs (SIGMOD 2011), for one table that all
          threads probe; that tickets show when it is complete, and its rows in order, are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_load_acq, at_store, at_store_rel, ld_i64, st_i64
from cq.runtime.containers.saving import state_settle
from cq.runtime.containers.state import settled_slots, words
from cq.runtime.engine.plant import idle_tasks, new_states, new_tasks, new_views
from cq.runtime.engine.stage import (
    ENGINE_WORKERS,
    LIMIT,
    NO_MEMORY,
    STAGE_BUSY,
    STAGE_ENGINE,
    STAGE_FAILED,
    STAGE_INPUT,
    STAGE_OWN,
    STAGE_REORDER,
    STAGE_SLOT_COUNT,
    STAGE_TASK,
    TASK_COUNT,
    TASK_ITEM,
    TASK_STATE,
    TASK_TICKET,
    can_send,
    count_item,
    fail,
    holds_rows,
    send_emitted,
    wake_workers,
    weigh,
)
from cq.runtime.engine.ways.any_worker import any_idle, give_ticket, serve_any, serve_ticket
from cq.runtime.engine.ways.loop import ITEMS_A_VISIT, fail_with, flush_task, step, task_idle
from cq.runtime.engine.ways.protocol import Making, Runner, register
from cq.runtime.flow.batch import FAILURE, ITEM_KIND
from cq.runtime.layout.abi import BATCH_ENDED
from cq.runtime.layout.words import Struct
from cq.runtime.queues.pool import pool_take
from cq.runtime.queues.reorder import reorder_begin
from cq.runtime.queues.ring import ring_take
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

_shared = Struct("SHARED")
SHARED_OWNER = _shared.word()
SHARED_COMPLETE = _shared.word()
SHARED_SETTLES = _shared.word()  # -> (offset, address of `settle`) of each container of a state that needs it
SHARED_SETTLE_COUNT = _shared.word()
SHARED_BEGUN = _shared.line()
SHARED_WORDS = _shared.size()


@native("i64(i64, i64)")
def _only_looks_up(stage: int, item: int) -> int:
    """1 if the rows of the item, and of all later ones, change no container."""
    if ld_i64(item, ITEM_KIND) == FAILURE or ld_i64(stage, STAGE_FAILED) == 1:
        return 0
    complete = ld_i64(ld_i64(stage, STAGE_OWN), SHARED_COMPLETE)
    return 1 if ld_i64(item, BATCH_ENDED) & complete == complete else 0


@native("i64(i64, i64)")
def _hand_over(stage: int, owner: int) -> int:
    """A task with the item of the loop's task, not run, and tickets are shared from now on; 0: the loop has failed
    instead. By the holder of STAGE_BUSY, after can_send."""
    shared = ld_i64(stage, STAGE_OWN)
    state = ld_i64(owner, TASK_STATE)
    if holds_rows(stage, owner) == 1:
        st_i64(owner, TASK_COUNT, 0)
        if send_emitted(stage, owner, 0) == 0:
            fail(state, NO_MEMORY)
            fail_with(stage, owner)
            return 0
    if state_settle(state, ld_i64(shared, SHARED_SETTLES), ld_i64(shared, SHARED_SETTLE_COUNT)) == 0:
        fail(state, NO_MEMORY)
        fail_with(stage, owner)
        return 0
    if weigh(stage, state) == 0:
        fail(state, LIMIT)
        fail_with(stage, owner)
        return 0
    st_i64(stage, STAGE_SLOT_COUNT, 0)  # nothing grows any more; what views share is measured
    task = pool_take(ld_i64(stage, STAGE_TASK))
    assert task != 0, "tasks that are idle until now"
    ticket = ld_i64(owner, TASK_TICKET)
    give_ticket(task, ld_i64(owner, TASK_ITEM), ticket)
    st_i64(owner, TASK_ITEM, 0)
    reorder_begin(ld_i64(stage, STAGE_REORDER), ticket)
    at_store_rel(shared + SHARED_BEGUN * 8, 1)
    return task


@native("(i64, i64)(i64)")
def _serve_alone(stage: int) -> tuple[int, int]:
    """How many steps were made in the loop, and the task of the ticket at which it handed over, or 0."""
    if can_send(stage) == 0 or not at_cas(stage + STAGE_BUSY * 8, 0, 1):
        return 0, 0
    shared = ld_i64(stage, STAGE_OWN)
    owner = ld_i64(shared, SHARED_OWNER)
    steps = 0
    task = 0
    while steps < ITEMS_A_VISIT and task == 0 and can_send(stage) == 1 and at_load_acq(shared + SHARED_BEGUN * 8) == 0:
        item = ld_i64(owner, TASK_ITEM)
        if item == 0:
            item, ticket = ring_take(ld_i64(stage, STAGE_INPUT))
            if item == 0:
                break
            count_item(stage, item)
            st_i64(owner, TASK_ITEM, item)
            st_i64(owner, TASK_TICKET, ticket)
        if _only_looks_up(stage, item) == 1:
            task = _hand_over(stage, owner)
        else:
            step(stage, owner, item)
        steps += 1
    at_store(stage + STAGE_BUSY * 8, 0)
    return steps, task


@native("i64(i64, i64)", export=True)
def serve_shared(stage: int, worker: int) -> int:
    """`Runner.serve`: how many steps were made, or tickets run or sent."""
    if at_load_acq(ld_i64(stage, STAGE_OWN) + SHARED_BEGUN * 8) == 1:
        return serve_any(stage, worker)
    done, task = _serve_alone(stage)
    if task == 0:
        return done
    engine = ld_i64(stage, STAGE_ENGINE)
    wake_workers(engine, ld_i64(engine, ENGINE_WORKERS))  # they had nothing to do
    return done + serve_ticket(stage, task)


@native("i64(i64)", export=True)
def flush_shared(stage: int) -> int:
    """`Runner.flush`, for the loop; shared tickets are sent at once."""
    return flush_task(stage, ld_i64(ld_i64(stage, STAGE_OWN), SHARED_OWNER))


@native("i64(i64)", export=True)
def shared_idle(stage: int) -> int:
    """`Runner.idle`. If the loop is idle, and had not handed over before, nothing has come that could be shared."""
    idle = task_idle(stage, ld_i64(ld_i64(stage, STAGE_OWN), SHARED_OWNER))
    if idle == 1 and at_load_acq(ld_i64(stage, STAGE_OWN) + SHARED_BEGUN * 8) == 1:
        return any_idle(stage)
    return idle


def _build(making: Making) -> None:
    """One state and the loop's task; idle tasks with views of the state, two per worker."""
    plant, spec = making.plant, making.spec
    (state,) = new_states(plant, spec, 1)
    idle_tasks(plant, spec, making.address, new_views(plant, spec, state, 2 * plant.workers))
    tasks = plant.tasks.pop()
    (owner,) = new_tasks(plant, spec, making.address, [state])
    plant.tasks[-1] += tasks  # of the same stage
    settled = settled_slots(plant.host, spec)
    shared = plant.block(SHARED_WORDS)
    for index, value in (
        (SHARED_OWNER, owner),
        (SHARED_COMPLETE, spec.complete),
        (SHARED_SETTLES, plant.host.place(words(settled))),
        (SHARED_SETTLE_COUNT, len(settled) // 2),
    ):
        plant.host.set_word(shared, index, value)
    plant.host.set_word(making.address, STAGE_OWN, shared)


def _describe(_host: Host, _stage: int) -> str:
    return Way.SHARED.value


register(
    Runner(
        Way.SHARED,
        _build,
        _describe,
        serve=serve_shared,
        idle=shared_idle,
        flush=flush_shared,
        alone=False,
        emptied=False,
    )
)
