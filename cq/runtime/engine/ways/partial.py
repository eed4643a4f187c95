"""Any worker takes any ticket and fills panes of its own; the next stage collects, merges and closes them.

The parts that workers fill, who may touch one when, and how they are collected, are in parts.py. A ticket's events
travel as in any_worker.py; a ticket emits no rows, so it never stops at a full port.

Roles     each worker with its own part; whoever is the collector for a while (loop.py).
Shared    what parts.py and any_worker.py say; nothing more.             tests: test_panes_of_workers_*
Progress  no call waits: who finds its part in use returns.
Order     a part passes by its lock (parts.py), a ticket by the reorder buffer. A ticket's rows are in a part before the
          ticket is put, so who reads a CLOSE from the buffer, and then takes the parts, finds all rows before it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_load, ld_i64, st_i64
from cq.runtime.containers.protocol import container_of
from cq.runtime.containers.state import words
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import idle_tasks, new_states
from cq.runtime.engine.stage import STAGE_FAILED, STAGE_NEXT, STAGE_PARTIALS, TASK_STATE, TASK_STATUS
from cq.runtime.engine.ways import parts as q
from cq.runtime.engine.ways.any_worker import any_idle, drain_tickets, put_ticket, run_ticket, take_ticket, ticket_lives
from cq.runtime.engine.ways.loop import ITEMS_A_VISIT, serve_single
from cq.runtime.engine.ways.parts import PART_STATE, part_give, part_marked, part_retire, part_take, parts_balance
from cq.runtime.engine.ways.protocol import Making, Runner, register
from cq.runtime.layout.abi import MORE, STATE_ERROR_CODE
from cq.runtime.layout.job import Slot
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

# of a window's rows, for each group in each worker's panes: with fewer, merging takes more than a second worker gives
ROWS_A_GROUP = 8


@native("i64(i64, i64)", export=True)
def serve_partial(stage: int, worker: int) -> int:
    """`Runner.serve`: how many tickets were counted into panes of this worker's own, or passed on.

    What they close is collected and emitted at once where that is possible: an emptied pane is then used again while it
    is in the cache. With tickets waiting before the collector, windows shorter than those filled pane after fresh pane,
    and segment statistics took five times as long.
    """
    done = drain_tickets(stage)
    part = part_take(ld_i64(stage, STAGE_PARTIALS), worker)
    if part == 0 and at_load(stage + STAGE_FAILED * 8) == 0:
        return done
    for _ in range(ITEMS_A_VISIT):
        if _fill(stage, part) == 0:
            break
        done += 1 + drain_tickets(stage)
        serve_single(ld_i64(stage, STAGE_NEXT), part)
        if part != 0:
            parts_balance(ld_i64(stage, STAGE_PARTIALS), part)
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
    task = take_ticket(stage)
    if task == 0:
        return 0
    if part != 0 and ticket_lives(stage, task) == 1:
        st_i64(task, TASK_STATE, ld_i64(part, PART_STATE))
        run_ticket(stage, task)
        assert ld_i64(task, TASK_STATUS) != MORE, "nothing is emitted that could fill a port"
    put_ticket(stage, task)
    return 1


def _build(making: Making) -> None:
    """A part a worker; what more workers have left in parts of theirs is collected from there."""
    plant, spec = making.plant, making.spec
    saved = plant.saved[making.number] if plant.saved else 0
    states = new_states(plant, spec, max(plant.workers, saved))
    idle_tasks(plant, spec, making.address, [0] * (2 * plant.workers))
    _build_parts(making, states)


def _build_parts(making: Making, states: Sequence[int]) -> None:
    """The parts that workers fill; the next stage, when it is built, is their collector."""
    plant, stage = making.plant, making.address
    host, (spec, collector) = plant.host, plant.job.stages[making.number : making.number + 2]
    targets = {slot.node: slot.offset for slot in collector.slots if _handed_over(slot)}
    slots = [(slot.offset, targets[slot.node]) for slot in spec.slots if _handed_over(slot)]
    assert slots, "parts are filled, and nothing in them can be handed over"
    partials = plant.block(q.PARTIALS_PARTS + len(states) * q.PART_WORDS)
    for index, value in (
        (q.PARTIALS_COUNT, len(states)),
        (q.PARTIALS_ROWS_IN, stage + 8 * s.STAGE_ROWS_IN),
        (q.PARTIALS_SLOTS, host.place(words(w for pair in slots for w in pair))),
        (q.PARTIALS_SLOT_COUNT, len(slots)),
        (q.PARTIALS_ROWS_A_GROUP, ROWS_A_GROUP),
        (q.PARTIALS_SPREAD, len(states) if ROWS_A_GROUP == 0 else 1),
    ):
        host.set_word(partials, index, value)
    for place, state in enumerate(states):
        host.set_word(partials, q.PARTIALS_PARTS + place * q.PART_WORDS + q.PART_STATE, state)
    host.set_word(stage, s.STAGE_PARTIALS, partials)


def _handed_over(slot: Slot) -> bool:
    """Whether workers fill what the slot holds apart, and one collects it."""
    container = container_of(slot)
    return container is not None and container.hand_over is not None


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
