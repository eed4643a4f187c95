"""One worker at a time: it takes items in order, and keeps rows behind the ports while more input waits, so that small
outputs leave together.

Roles     the worker that gets STAGE_BUSY serves the stage and sends; the others go on with other work.
Shared    STAGE_BUSY (try-lock): taken by CAS, given back by a store; both order everything in between.
I1        one worker at a time has the task, its state and its ports.     tests: test_every_schedule_gives_the_rows_*
I2        the task's item is used up, or passed on, before the next one is taken.
                                                                          tests: test_every_schedule_gives_the_rows_*
Progress  no call waits: a worker that finds the stage taken, or no room after it, returns.
Order     STAGE_BUSY is taken by CAS and given back by a store (both seq_cst, acquire and release would do); the task,
          its state, its ports and the sending end are plain memory and only touched in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_store, ld_i64, st_i64
from cq.runtime.engine.plant import new_states, new_tasks
from cq.runtime.engine.stage import (
    ENGINE_WORKERS,
    NO_MEMORY,
    STAGE_BUSY,
    STAGE_ENGINE,
    STAGE_FAILED,
    STAGE_INPUT,
    STAGE_OWN,
    STAGE_PORTS,
    STAGE_TASK,
    TASK_COUNT,
    TASK_ITEM,
    TASK_OUT,
    TASK_OWN,
    TASK_STATE,
    can_send,
    count_item,
    fail,
    holds_rows,
    note_failure,
    run_kernel,
    send_emitted,
    send_failure,
    use_up,
    wake_workers,
)
from cq.runtime.engine.ways.parts import AGAIN, COLLECTED, UNCOLLECTED, collect_parts, left_to_owner
from cq.runtime.engine.ways.protocol import Making, Runner, register
from cq.runtime.flow.batch import FAILURE, ITEM_KIND, ITEM_LAST
from cq.runtime.layout.abi import ERROR, MORE, PORT_LIMIT, PORT_ROWS, PORT_WORDS
from cq.runtime.queues.ring import ring_pop, ring_size
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

ITEMS_A_VISIT = 8  # a worker then looks around again; at 16k rows a visit is about a millisecond
HELD_ITEMS = 16  # emitted rows wait for at most this many items
TASK_COLLECTED = TASK_OWN  # 1: the workers' panes were collected for its item


@native("i64(i64, i64)")
def _filled(stage: int, task: int) -> int:
    """1 if some port is at least half full."""
    for port in range(ld_i64(stage, STAGE_PORTS)):
        words = ld_i64(task, TASK_OUT) + port * PORT_WORDS * 8
        if ld_i64(words, PORT_ROWS) * 2 >= ld_i64(words, PORT_LIMIT):
            return 1
    return 0


@native("void(i64, i64, i64)")
def _send_all(stage: int, task: int, last: int) -> None:
    """Send everything the task emitted; without memory for new parcels the task continues with that failure."""
    st_i64(task, TASK_COUNT, 0)
    if send_emitted(stage, task, last) == 0:
        fail(ld_i64(task, TASK_STATE), NO_MEMORY)
        fail_with(stage, task)


@native("void(i64, i64)")
def fail_with(stage: int, task: int) -> None:
    """Release the task's item, and make the stage's failure, from its state, the item instead."""
    item = ld_i64(task, TASK_ITEM)
    failure = note_failure(stage, ld_i64(task, TASK_STATE), item)
    use_up(stage, item)
    st_i64(task, TASK_ITEM, failure)


@native("void(i64, i64, i64)")
def step(stage: int, task: int, item: int) -> None:
    """Make one kernel call, or pass on one failure. TASK_ITEM is 0 when the item is released. Sends once at most."""
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
        fail_with(stage, task)  # the rows before it leave with the next step
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
    """How many steps were made; 0 if another worker is in the stage or nothing can move.

    part: whose panes the caller holds (cq/runtime/engine/ways/parts.py), or 0.
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
        step(stage, task, ld_i64(task, TASK_ITEM))
        steps += 1
    at_store(stage + STAGE_BUSY * 8, 0)
    return steps


@native("i64(i64, i64, i64, i64)")
def _collected(stage: int, task: int, item: int, part: int) -> int:
    """1 if the panes that other workers have filled for the item are here; 0: some are still in use."""
    partials = ld_i64(stage, STAGE_OWN)
    if partials == 0 or ld_i64(task, TASK_COLLECTED) == 1:
        return 1
    done = collect_parts(partials, ld_i64(task, TASK_STATE), item, part)
    if done == AGAIN:
        return 0
    st_i64(task, TASK_COLLECTED, 1)
    if done == UNCOLLECTED:
        fail(ld_i64(task, TASK_STATE), NO_MEMORY)
        fail_with(stage, task)
    elif done == COLLECTED:  # workers may have found no panes to fill meanwhile
        engine = ld_i64(stage, STAGE_ENGINE)
        wake_workers(engine, ld_i64(engine, ENGINE_WORKERS))
    return 1


@native("i64(i64)", export=True)
def flush_loop(stage: int) -> int:
    """`Runner.flush`."""
    return flush_task(stage, ld_i64(stage, STAGE_TASK))


@native("i64(i64, i64)")
def flush_task(stage: int, task: int) -> int:
    """Send the rows kept to be sent together and return 1: nothing more is coming now. task: that of the loop."""
    if can_send(stage) == 0 or not at_cas(stage + STAGE_BUSY * 8, 0, 1):
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


@native("i64(i64, i64)", export=True)
def serve_loop(stage: int, worker: int) -> int:
    """`Runner.serve`: for any worker, unless another one has what the stage collects in its cache."""
    partials = ld_i64(stage, STAGE_OWN)
    if partials != 0 and left_to_owner(partials, worker) == 1:
        return 0
    return serve_single(stage, 0)


@native("i64(i64)", export=True)
def loop_idle(stage: int) -> int:
    """`Runner.idle`."""
    return task_idle(stage, ld_i64(stage, STAGE_TASK))


@native("i64(i64, i64)")
def task_idle(stage: int, task: int) -> int:
    """1 if no item waits and the loop's task has nothing to do and nothing to send."""
    if ring_size(ld_i64(stage, STAGE_INPUT)) > 0 or not at_cas(stage + STAGE_BUSY * 8, 0, 1):
        return 0
    idle = 0
    if ld_i64(task, TASK_ITEM) == 0 and holds_rows(stage, task) == 0:
        idle = 1
    at_store(stage + STAGE_BUSY * 8, 0)
    return idle


def _build(making: Making) -> None:
    """One state, one task."""
    plant, spec = making.plant, making.spec
    (task,) = new_tasks(plant, spec, making.address, new_states(plant, spec, 1))
    plant.host.set_word(making.address, STAGE_TASK, task)


def _describe(_host: Host, _stage: int) -> str:
    return Way.LOOP.value


register(
    Runner(
        Way.LOOP,
        _build,
        _describe,
        serve=serve_loop,
        idle=loop_idle,
        flush=flush_loop,
        alone=True,
        emptied=False,
    )
)
