"""Any worker takes any ticket; results return to ticket order through the reorder buffer.

A task that emits more than HELD_PARCELS before its turn waits in the reorder buffer, and the reader there continues it,
so one ticket with a million rows breaks no bound.

Roles     any number of workers; one at a time at the sending end.
I1        the head ticket always has a task: a task is taken before a ticket.
                                                                       tests: test_a_ticket_far_ahead_cannot_starve_*
I2        a task is idle again only when its ticket has left the reorder buffer.
                                                                       tests: test_every_schedule_gives_the_rows_*
Shared    the ring of items, the pool of idle tasks, the reorder buffer (see there). STAGE_FAILED, read to save work.
Progress  no call waits: a worker that finds no task, no ticket or no room after the stage returns.
Order     a task and its ticket are plain memory: the slot of the reorder buffer passes them from the worker that ran
          the ticket to its sender (store and load seq_cst), and the task's home back (pool.py). The head moves on
          before the task is home: the next taker finds a slot free.
                                                                  tests: test_a_task_is_idle_again_when_its_ticket_*
Source    Prasaad et al. (2018), section 3.2; any later reader sends what a slow consumer leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_load, ld_i64, st_i64
from cq.runtime.engine.plant import idle_tasks, new_states
from cq.runtime.engine.stage import (
    NO_MEMORY,
    STAGE_FAILED,
    STAGE_INPUT,
    STAGE_REORDER,
    STAGE_TASK,
    STAGE_TASKS,
    TASK_COUNT,
    TASK_FIRST,
    TASK_HOME,
    TASK_ITEM,
    TASK_STATE,
    TASK_STATUS,
    TASK_TICKET,
    can_send,
    collect_emitted,
    count_item,
    fail,
    note_failure,
    run_kernel,
    send,
    send_emitted,
    send_failure,
    use_up,
)
from cq.runtime.engine.ways.protocol import Making, Runner, register
from cq.runtime.flow.batch import FAILURE, ITEM_KIND, ITEM_LAST, ITEM_LINK, ITEM_PORT
from cq.runtime.layout.abi import DONE, ERROR, MORE
from cq.runtime.queues.pool import pool_count, pool_put, pool_take
from cq.runtime.queues.reorder import reorder_enter, reorder_head, reorder_leave, reorder_next, reorder_put
from cq.runtime.queues.ring import ring_size, ring_take
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

HELD_PARCELS = 2  # held by a task before its turn


@native("void(i64, i64)")
def run_ticket(stage: int, task: int) -> None:
    """Call the kernel once and put what it emitted into the task's list; TASK_STATUS says how it continues."""
    status = run_kernel(stage, task, ld_i64(task, TASK_ITEM))
    if collect_emitted(stage, task) == 0:
        status = ERROR
        fail(ld_i64(task, TASK_STATE), NO_MEMORY)
    st_i64(task, TASK_STATUS, status)


@native("(i64, i64)(i64, i64)")
def _send_task(stage: int, task: int) -> tuple[int, int]:
    """1 if all of the head ticket is sent and released; 0 if there is no room for the rest. And how much was sent.

    Called by the reader only.
    """
    item = ld_i64(task, TASK_ITEM)
    sent = 0
    while True:
        parcel = ld_i64(task, TASK_FIRST)
        while parcel != 0:
            if can_send(stage) == 0:
                return 0, sent
            following = ld_i64(parcel, ITEM_LINK)
            st_i64(task, TASK_FIRST, following)
            send(stage, ld_i64(parcel, ITEM_PORT), parcel)
            parcel = following
            sent += 1
        st_i64(task, TASK_COUNT, 0)
        status = ld_i64(task, TASK_STATUS)
        if ld_i64(item, ITEM_KIND) != FAILURE and status == MORE and ld_i64(stage, STAGE_FAILED) == 0:
            run_ticket(stage, task)
        else:
            if can_send(stage) == 0:
                return 0, sent
            if ld_i64(item, ITEM_KIND) == FAILURE:
                send_failure(stage, item)
            elif ld_i64(stage, STAGE_FAILED) == 0 and status == ERROR:
                send_failure(stage, note_failure(stage, ld_i64(task, TASK_STATE), item))
            elif ld_i64(stage, STAGE_FAILED) == 0 and ld_i64(item, ITEM_LAST) == 1:
                send_emitted(stage, task, 1)
            use_up(stage, item)
            return 1, sent + 1


@native("i64(i64)")
def drain_tickets(stage: int) -> int:
    """How many parcels and tickets left the stage, in order, as far as there are results and room."""
    buffer = ld_i64(stage, STAGE_REORDER)
    sent = 0
    while can_send(stage) == 1 and reorder_enter(buffer) == 1:
        task = reorder_head(buffer)
        whole = 1
        while task != 0 and whole == 1:
            whole, parcels = _send_task(stage, task)
            sent += parcels
            if whole == 1:
                st_i64(task, TASK_ITEM, 0)
                reorder_next(buffer)
                pool_put(ld_i64(task, TASK_HOME), task)
                task = reorder_head(buffer)
        if reorder_leave(buffer) == 0:
            break
    return sent


@native("i64(i64)")
def take_ticket(stage: int) -> int:
    """A task with the next ticket, not run; 0 if there is no ticket, or no task for it."""
    task = pool_take(ld_i64(stage, STAGE_TASK))
    if task == 0:
        return 0
    item, ticket = ring_take(ld_i64(stage, STAGE_INPUT))
    if item == 0:
        pool_put(ld_i64(task, TASK_HOME), task)
        return 0
    count_item(stage, item)
    give_ticket(task, item, ticket)
    return task


@native("void(i64, i64, i64)")
def give_ticket(task: int, item: int, ticket: int) -> None:
    """Give the task the ticket, not run."""
    st_i64(task, TASK_ITEM, item)
    st_i64(task, TASK_TICKET, ticket)
    st_i64(task, TASK_STATUS, DONE)


@native("i64(i64, i64)")
def ticket_lives(stage: int, task: int) -> int:
    """1 if the task's ticket is to be run: it is not a failure passed on, and the stage has not failed."""
    item = ld_i64(task, TASK_ITEM)
    return 1 if ld_i64(item, ITEM_KIND) != FAILURE and at_load(stage + STAGE_FAILED * 8) == 0 else 0


@native("void(i64, i64)")
def put_ticket(stage: int, task: int) -> None:
    """Let the task wait in the reorder buffer for the turn of its ticket."""
    put = reorder_put(ld_i64(stage, STAGE_REORDER), ld_i64(task, TASK_TICKET), task)
    assert put == 1, "as many slots as tasks"


@native("i64(i64, i64)", export=True)
def serve_any(stage: int, worker: int) -> int:
    """`Runner.serve`: how many tickets were run or sent."""
    done = drain_tickets(stage)
    task = take_ticket(stage)
    if task == 0:
        return done
    return done + serve_ticket(stage, task)


@native("i64(i64, i64)")
def serve_ticket(stage: int, task: int) -> int:
    """Run this task until it holds enough and its turn comes; return how many tickets were run or sent."""
    if ticket_lives(stage, task) == 1:
        run_ticket(stage, task)
        while ld_i64(task, TASK_STATUS) == MORE and ld_i64(task, TASK_COUNT) < HELD_PARCELS:
            run_ticket(stage, task)
    put_ticket(stage, task)
    return 1 + drain_tickets(stage)


@native("i64(i64)", export=True)
def any_idle(stage: int) -> int:
    """`Runner.idle`, if STAGE_TASK holds everything that is not in use: tasks, or splits."""
    if ring_size(ld_i64(stage, STAGE_INPUT)) > 0:
        return 0
    return 1 if pool_count(ld_i64(stage, STAGE_TASK)) == ld_i64(stage, STAGE_TASKS) else 0


def _build(making: Making) -> None:
    """Two states per worker: one in progress, one waiting for its turn."""
    plant, spec = making.plant, making.spec
    idle_tasks(plant, spec, making.address, new_states(plant, spec, 2 * plant.workers))


def _describe(_host: Host, _stage: int) -> str:
    return Way.ANY.value


register(
    Runner(
        Way.ANY,
        _build,
        _describe,
        serve=serve_any,
        idle=any_idle,
        flush=None,
        alone=False,
        emptied=True,
    )
)
