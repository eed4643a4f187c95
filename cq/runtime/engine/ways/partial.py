"""Any worker takes any ticket and fills panes of its own; the next stage collects, merges and closes them.

parts.py says which parts workers fill, which worker may touch one when, and how they are collected; deals.py how a
ticket's rows are dealt among all parts, if these are filled by key. A ticket's events travel as in any_worker.py; a
ticket emits no rows, so it never stops at a full port.

Roles     each worker with its own part; the current collector (loop.py).
Shared    what parts.py, deals.py and any_worker.py declare; nothing more.   tests: test_panes_of_workers_*
Progress  no call waits: a worker that finds its part in use, or another worker taking a ticket, returns. One that has
          nothing to do with its own part looks for one that is behind.
Order     a part passes by its lock (parts.py), a ticket by the reorder buffer. A ticket's rows are in a part before the
          ticket is put, so a worker that reads a CLOSE from the buffer, then takes the parts, finds all earlier rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_load, at_store, ld_i64, st_i64
from cq.runtime.containers.protocol import container_of
from cq.runtime.containers.state import made, native_name, words
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import idle_tasks, new_states, power_of_two
from cq.runtime.engine.stage import STAGE_FAILED, STAGE_NEXT, STAGE_OWN, TASK_ITEM, TASK_STATE, TASK_STATUS
from cq.runtime.engine.ways import parts as q
from cq.runtime.engine.ways.any_worker import any_idle, drain_tickets, put_ticket, run_ticket, take_ticket, ticket_lives
from cq.runtime.engine.ways.deals import DEAL_WORDS, MOST_PARTS, TASK_DEAL, deal_ticket, open_panes, take_share
from cq.runtime.engine.ways.loop import ITEMS_A_VISIT, serve_single
from cq.runtime.engine.ways.parts import (
    PART_STATE,
    PARTIALS_TAKING,
    is_behind,
    is_filled_by_key,
    part_behind,
    part_filled,
    part_give,
    part_marked,
    part_take,
    parts_balance,
)
from cq.runtime.engine.ways.protocol import Making, Runner, register
from cq.runtime.flow.split_words import PARTITIONS
from cq.runtime.layout.abi import BATCH_ROWS, MORE, STATE_ERROR_CODE
from cq.runtime.layout.pipeline import Slot
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

# rows of a window per group in each worker's panes: with fewer, merging costs more than a second worker gains
ROWS_A_GROUP = 8
# If a window's groups have fewer: from this many groups on their parts are filled by key, by all workers. CPU ns a row
# with two rows a group, by key and on one worker: 16 K groups 23 and 14, 32 K 27 and 21, 64 K 26 and 30, 256 K 41 and
# 64.
MANY_GROUPS = 32768


@native("i64(i64, i64)", export=True)
def serve_partial(stage: int, worker: int) -> int:
    """`Runner.serve`: how many tickets were counted into panes of this worker's own, or passed on.

    What they close is collected and emitted at once if possible: an emptied pane is then reused while it is in the
    cache. With tickets waiting before the collector, short windows filled new pane after new pane, and segment
    statistics took five times as long.
    """
    partials = ld_i64(stage, STAGE_OWN)
    done = drain_tickets(stage)
    done += _serve_part(stage, part_take(partials, worker))
    if done == 0:
        done = _serve_part(stage, part_behind(partials, worker))
    return done


@native("i64(i64, i64)")
def _serve_part(stage: int, part: int) -> int:
    """How much was done with a part, then given back. 0: without one, tickets are passed on after a failure."""
    if part == 0 and at_load(stage + STAGE_FAILED * 8) == 0:
        return 0
    done = 0
    for _ in range(ITEMS_A_VISIT):
        if _fill(stage, part) == 0:
            break
        done += 1 + drain_tickets(stage)
        serve_single(ld_i64(stage, STAGE_NEXT), part)
        if part != 0:
            parts_balance(ld_i64(stage, STAGE_OWN), part)
        if part != 0 and part_marked(part) == 1:
            break
    if part != 0:
        part_give(part)
    return done


@native("i64(i64, i64)")
def _fill(stage: int, part: int) -> int:
    """1 if the part has its rows of a dealt ticket, or a ticket was dealt, or was put in the reorder buffer, run on the
    part's state unless the stage has failed. 0 if there is no ticket, or another worker is taking one."""
    partials = ld_i64(stage, STAGE_OWN)
    if part != 0 and is_behind(partials, part) == 1:
        take_share(stage, part)
        return 1
    if part != 0 and ld_i64(ld_i64(part, PART_STATE), STATE_ERROR_CODE) != 0 and at_load(stage + STAGE_FAILED * 8) == 0:
        return 0  # its kernel has failed: later rows are not filled in, and its error words stay
    if not at_cas(partials + PARTIALS_TAKING * 8, 0, 1):
        return 0
    task = 0
    if part == 0 or is_behind(partials, part) == 0:
        task = take_ticket(stage)
    dealt = _is_to_be_dealt(stage, part, task)
    if dealt == 1 and deal_ticket(stage, task) == 1:
        task = 0
    at_store(partials + PARTIALS_TAKING * 8, 0)
    if task == 0:
        return dealt
    if dealt == 0 and part != 0 and ticket_lives(stage, task) == 1:
        open_panes(partials, part, 0)
        st_i64(task, TASK_STATE, ld_i64(part, PART_STATE))
        run_ticket(stage, task)
        part_filled(part, ld_i64(ld_i64(task, TASK_ITEM), BATCH_ROWS))
        assert ld_i64(task, TASK_STATUS) != MORE, "nothing is emitted that could fill a port"
    put_ticket(stage, task)
    return 1


@native("i64(i64, i64, i64)")
def _is_to_be_dealt(stage: int, part: int, task: int) -> int:
    """1 if parts are filled by key and there is a ticket with rows to fill them with."""
    if task == 0 or part == 0 or is_filled_by_key(ld_i64(stage, STAGE_OWN)) == 0:
        return 0
    return 1 if ticket_lives(stage, task) == 1 and ld_i64(ld_i64(task, TASK_ITEM), BATCH_ROWS) > 0 else 0


def _build(making: Making) -> None:
    """One part per worker; what more workers have left in their parts is collected from there."""
    plant, spec = making.plant, making.spec
    saved = plant.saved[making.number] if plant.saved else 0
    states = new_states(plant, spec, max(plant.workers, saved))
    idle_tasks(plant, spec, making.address, [0] * (2 * plant.workers))
    tasks = list(plant.tasks[-1])
    partials = _build_parts(making, states)
    assert not spec.by_key or plant.workers <= MOST_PARTS, "parts by key for more workers than a row's byte tells apart"
    if spec.by_key and 1 < len(states) <= MOST_PARTS:  # a run of more workers may have left more parts than that
        _build_deals(making, partials, states, tasks)
    plant.host.function("filling_begin")(partials)


def _build_deals(making: Making, partials: int, states: Sequence[int], tasks: Sequence[int]) -> None:
    """Build what parts by key need, besides what all parts have."""
    plant, host = making.plant, making.plant.host
    slots = power_of_two(len(tasks))
    deals = [plant.block(DEAL_WORDS) for _ in tasks]
    for task, deal in zip(tasks, deals, strict=True):
        host.set_word(task, TASK_DEAL, deal)
    for number, state in enumerate(states):
        part = partials + (q.PARTIALS_PARTS + number * q.PART_WORDS) * 8
        plant.tasks[-1].append(made(host.function("task_new")(making.address, state), making.spec.name))
        host.set_word(part, q.PART_NUMBER, number)
        host.set_word(part, q.PART_TASK, plant.tasks[-1][-1])
    for index, value in (
        (q.PARTIALS_ENTRY, making.entries[making.spec.by_key]),
        (q.PARTIALS_ROUTE, host.place(bytes(n % len(states) for n in range(PARTITIONS)))),
        (q.PARTIALS_RING, host.place(bytes(8 * slots))),
        (q.PARTIALS_MASK, slots - 1),
        (q.PARTIALS_DEALS, host.place(words([*deals, *[0] * (slots - len(deals))]))),
    ):
        host.set_word(partials, index, value)
    plant.when_closed(lambda: host.function("partials_drop")(partials))


def _build_parts(making: Making, states: Sequence[int]) -> int:
    """The parts that workers fill; the next stage, when it is built, is their collector."""
    plant, stage = making.plant, making.address
    host, (spec, collector) = plant.host, plant.pipeline.stages[making.number : making.number + 2]
    targets = {slot.node: slot.offset for slot in collector.slots if _handed_over(slot)}
    slots = [_slot_words(host, slot, targets[slot.node]) for slot in spec.slots if _handed_over(slot)]
    assert slots, "parts are filled, and nothing in them can be handed over"
    partials = plant.block(q.PARTIALS_PARTS + len(states) * q.PART_WORDS)
    for index, value in (
        (q.PARTIALS_COUNT, len(states)),
        (q.PARTIALS_ROWS_IN, stage + 8 * s.STAGE_ROWS_IN),
        (q.PARTIALS_SLOTS, host.place(words(w for slot in slots for w in slot))),
        (q.PARTIALS_SLOT_COUNT, len(slots)),
        (q.PARTIALS_ROWS_A_GROUP, ROWS_A_GROUP),
        (q.PARTIALS_MANY, MANY_GROUPS),
    ):
        host.set_word(partials, index, value)
    for place, state in enumerate(states):
        host.set_word(partials, q.PARTIALS_PARTS + place * q.PART_WORDS + q.PART_STATE, state)
    host.set_word(stage, s.STAGE_OWN, partials)
    return partials


def _handed_over(slot: Slot) -> bool:
    """Whether workers fill what the slot holds separately, and one collects it."""
    container = container_of(slot)
    return container is not None and container.apart is not None


def _slot_words(host: Host, slot: Slot, target: int) -> tuple[int, ...]:
    """SLOT_WORDS of a slot that is handed over, to this word of the collector's state."""
    container = container_of(slot)
    assert container is not None and container.apart is not None, f"{slot.name} is not handed over"
    apart = container.apart
    return (slot.offset, target, *(host.address(native_name(f)) for f in (apart.hand_over, apart.groups)))


def _describe(_host: Host, _stage: int) -> str:
    return Way.PARTIAL.value


register(
    Runner(
        Way.PARTIAL,
        _build,
        _describe,
        serve=serve_partial,
        idle=any_idle,
        flush=None,
        alone=False,
        emptied=False,
    )
)
