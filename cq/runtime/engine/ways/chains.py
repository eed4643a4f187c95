"""Transactions in chains: all workers evaluate those of one ticket, then one of them delivers their results.

A ticket goes through phases, each of which is split into shares; a worker takes any free share, and the one that
finishes the last share begins the next phase:
    COLLECT    by rows: which programs an event is for, and which rows they name, in a list for each share
    LINK       by keys: every access is linked to the one before it on the same row (cq/runtime/flow/chained.py)
    EVALUATE   by keys: transactions in the order of their events, each after everything before it on its rows is done;
               the rows as it has left them, and what it emits, are stored with it. The last one to name a row writes
               it to the table
In other ways transactions take their place as they run: see requests.py for the phases after COLLECT.
Then the kernel takes the ticket like any other, in order, by one worker: it inserts and deletes the rows that have come
or gone, and emits what the transactions have left for it. A ticket is a punctuation. While the kernel is at work,
others collect and link the next ticket, which needs no tables: so there are shares for two. That ticket is then READY,
and is evaluated when the kernel is done.

A share whose next transaction is not ready is given back, to be continued by any worker. It has a state of its own
besides the stage's: the same words, but results, errors and memory for texts are not shared.

Roles     any number of workers in the phases; the holder of STAGE_BUSY takes tickets, runs the kernel and sends.
Shared    CHAINS_PHASE: only ever increases; changed by the worker that finished the last share, and by the one in turn
          if there is none.  SHARE_LOCK: taken by CAS from 2 * phase, so no share is taken in a phase that is
          over.  ACCESS_DONE: stored after the row, loaded before it.
I1        a share is one worker's at a time, and done once in a phase.   tests: test_every_schedule_of_chains_*
I2        a phase begins when all shares of the one before it are done.  tests: test_every_schedule_of_chains_*
I3        a transaction reads rows that are done.                        tests: test_every_schedule_of_chains_*
I4        the kernel runs when no transaction is evaluated.              tests: test_every_schedule_of_chains_*
I5        sleeping workers are woken when a phase begins and, if a share has only one worker, when one has moved.
                                                       tests: test_a_worker_that_falls_asleep_is_woken_when
Progress  no call waits. Of all transactions that are not done the first one is ready, and it is the next of its share.
Order     a share's words are plain: they pass from worker to worker by SHARE_LOCK (CAS, store; seq_cst), and are
          written before CHAINS_FINISHED is added to. So the worker with the last add sees all that the others did, and
          passes it on to all by storing CHAINS_PHASE; FINISHED is 0 again before that. SHARE_LOCK is stored before the
          add, too, so that workers that are woken for the next phase find all shares free; no invariant needs that,
          since a worker that stored it later would continue the share itself. The one in turn loads CHAINS_PHASE before
          it touches tables and shares, which it does when no share is out. CHAINS_FAILED may be seen late: a worker
          that misses it works in vain.
Source    Zhang et al., TStream (ICDE 2020): dual-mode scheduling, punctuations and chains; an operation there is an
          access, here a whole transaction (docs/decisions/transactions.md).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cq.entries import refuse
from cq.runtime.base.native import native, unfit
from cq.runtime.base.ops import (
    at_add,
    at_cas,
    at_load,
    at_store,
    call4,
    clock_ns,
    copy,
    ld_i64,
    release,
    sdiv,
    st_i64,
    zalloc,
)
from cq.runtime.containers.state import native_name, words
from cq.runtime.engine.plant import new_states, new_tasks, power_of_two
from cq.runtime.engine.stage import (
    ENGINE_WORKERS,
    LIMIT,
    NO_MEMORY,
    STAGE_BUSY,
    STAGE_BUSY_NS,
    STAGE_CONSTANTS,
    STAGE_ENGINE,
    STAGE_FAILED,
    STAGE_INPUT,
    STAGE_OWN,
    STAGE_TASK,
    TASK_ITEM,
    TASK_OWN,
    TASK_STATE,
    can_send,
    count_bytes,
    count_item,
    fail,
    wake_workers,
)
from cq.runtime.engine.ways.loop import ITEMS_A_VISIT, fail_with, flush_loop, loop_idle, step
from cq.runtime.engine.ways.pace import pace_note
from cq.runtime.engine.ways.placement import homes_of, shares_of
from cq.runtime.engine.ways.protocol import Making, Native, Runner, register
from cq.runtime.engine.ways.requests import build_order, order_begin, order_go_on, order_held_bytes, order_release
from cq.runtime.flow.batch import FAILURE, ITEM_KIND
from cq.runtime.flow.chained import LINE_BYTES, share_empty, share_held_bytes, share_link, share_release
from cq.runtime.layout.abi import (
    BATCH_ROWS,
    BATCH_SEGMENTS,
    SEGMENT_KIND,
    SEGMENT_LATE,
    SEGMENT_LO,
    SEGMENT_WORDS,
    STATE_FIRST_FREE,
)
from cq.runtime.layout.chains import (
    CHAINS_AHEAD,
    CHAINS_BATCH,
    CHAINS_BEGIN,
    CHAINS_BEGUN_NS,
    CHAINS_CAPACITY,
    CHAINS_COLLECT,
    CHAINS_COUNT,
    CHAINS_EVALUATE,
    CHAINS_EVENTS,
    CHAINS_EVENTS_WORD,
    CHAINS_FAILED,
    CHAINS_FINISHED,
    CHAINS_HELD_BYTES,
    CHAINS_MEMORY,
    CHAINS_ORDER,
    CHAINS_OTHER,
    CHAINS_OWNED,
    CHAINS_PACE,
    CHAINS_PHASE,
    CHAINS_ROUNDS,
    CHAINS_SHARES,
    CHAINS_STAGE,
    CHAINS_STATE_WORDS,
    CHAINS_STRIDE,
    COLLECT,
    EVALUATE,
    EVENTS_BEHIND,
    LINK,
    LIST_WORDS,
    NO_PHASE,
    PHASES,
    READY,
    SHARE_ASKED,
    SHARE_CURSOR,
    SHARE_END,
    SHARE_EVENTS,
    SHARE_FIRST,
    SHARE_LISTS,
    SHARE_LOCK,
    SHARE_MASK,
    SHARE_STATE,
    SHARE_WORDS,
    WRITE,
)
from cq.runtime.queues.ring import ring_pop
from cq.runtime.values.text import step_drop, step_held_bytes, step_reset
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

TASK_CHAINS = TASK_OWN  # -> the chains of its item

# A worker whose share has to wait continues with another one. With fewer, it sooner finds none that can go on; with
# more, each has fewer transactions, and a worker visits more of them in vain. Other numbers were not measured.
SHARES_A_WORKER = 4


@native("i64(i64)")
def _phase_of(chains: int) -> int:
    """The next phase of the ticket."""
    return at_load(chains + CHAINS_PHASE * 8) & (PHASES - 1)


@native("i64(i64, i64)")
def _following(chains: int, phase: int) -> int:
    """The phase after this one. If transactions take their places as they run, nothing is linked, and rows are written
    at the end."""
    at = phase & (PHASES - 1)
    in_chains = ld_i64(chains, CHAINS_ORDER) == 0
    if at == COLLECT and not in_chains:
        return phase + READY - COLLECT
    if at == WRITE or (at == EVALUATE and in_chains):
        return phase - at + PHASES
    return phase + 1


# -- phases ----------------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64)")
def _begin(stage: int, chains: int, item: int) -> None:
    """Begin the phases of the item, if it has rows and there is memory. Called by the worker in turn."""
    state = ld_i64(ld_i64(stage, STAGE_TASK), TASK_STATE)
    rows = ld_i64(item, BATCH_ROWS)
    if rows == 0:
        return
    if (
        _make_room(chains, rows) == 0
        or call4(ld_i64(chains, CHAINS_BEGIN), state, item, 0, ld_i64(stage, STAGE_CONSTANTS)) == 0
    ):
        at_store(chains + CHAINS_FAILED * 8, 1)
        return
    first = _first_row(item)
    events = ld_i64(chains, CHAINS_EVENTS) - first * ld_i64(chains, CHAINS_STRIDE)  # row 0 of the batch would be here
    st_i64(chains, CHAINS_BATCH, item)
    if ld_i64(chains, CHAINS_PACE) != 0:
        st_i64(chains, CHAINS_BEGUN_NS, clock_ns())
    count = ld_i64(chains, CHAINS_COUNT)
    for number in range(count):
        share = chains + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        st_i64(share, SHARE_FIRST, first + sdiv(rows * number, count))
        st_i64(share, SHARE_END, first + sdiv(rows * (number + 1), count))
        st_i64(share, SHARE_EVENTS, events)
    _next_phase(chains)


@native("i64(i64)")
def _first_row(item: int) -> int:
    """The first row of a batch that has rows: a ticket may begin in the middle of one that was lent."""
    segment = ld_i64(item, BATCH_SEGMENTS)
    while ld_i64(segment, SEGMENT_KIND) > SEGMENT_LATE:
        segment += SEGMENT_WORDS * 8
    return ld_i64(segment, SEGMENT_LO)


@native("i64(i64, i64)")
def _make_room(chains: int, rows: int) -> int:
    """Allocate memory for each event and return 1; 0: there is none."""
    if ld_i64(chains, CHAINS_CAPACITY) >= rows:
        return 1
    release(ld_i64(chains, CHAINS_MEMORY))
    st_i64(chains, CHAINS_CAPACITY, 0)
    st_i64(chains, CHAINS_MEMORY, zalloc((rows + EVENTS_BEHIND) * ld_i64(chains, CHAINS_STRIDE) + LINE_BYTES))
    if ld_i64(chains, CHAINS_MEMORY) == 0:
        return 0
    st_i64(chains, CHAINS_EVENTS, (ld_i64(chains, CHAINS_MEMORY) + LINE_BYTES - 1) & -LINE_BYTES)
    st_i64(chains, CHAINS_CAPACITY, rows)
    return 1


@native("void(i64)")
def _next_phase(chains: int) -> None:
    """Begin the phase after this one; sleeping workers come for its shares, or for their turn."""
    at_store(chains + CHAINS_FINISHED * 8, 0)
    at_store(chains + CHAINS_PHASE * 8, _following(chains, at_load(chains + CHAINS_PHASE * 8)))
    engine = ld_i64(ld_i64(chains, CHAINS_STAGE), STAGE_ENGINE)
    wake_workers(engine, ld_i64(engine, ENGINE_WORKERS) - 1)


@native("i64(i64, i64)")
def _help(chains: int, worker: int) -> int:
    """How many shares of the current phase this worker could advance."""
    phase = at_load(chains + CHAINS_PHASE * 8)
    if phase & (PHASES - 1) == NO_PHASE or phase & (PHASES - 1) == READY:
        return 0
    round_ = ld_i64(ld_i64(chains, CHAINS_ROUNDS), worker)
    done = 0
    for turn in range(ld_i64(round_, 0)):
        number = ld_i64(round_, 1 + turn)
        share = chains + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        lock = share + SHARE_LOCK * 8
        if at_load(lock) == 2 * phase and at_cas(lock, 2 * phase, 2 * phase + 1):
            done += _go_on(chains, share, number, phase)
    if done > 0 and ld_i64(chains, CHAINS_OWNED) == 1:  # the only worker that may continue a share may be asleep
        engine = ld_i64(ld_i64(chains, CHAINS_STAGE), STAGE_ENGINE)
        wake_workers(engine, ld_i64(engine, ENGINE_WORKERS) - 1)
    return done


@native("i64(i64, i64, i64, i64)")
def _go_on(chains: int, share: int, number: int, phase: int) -> int:
    """1 if something was done for the share, which is free again, or through with the phase."""
    stage = ld_i64(chains, CHAINS_STAGE)
    begun = clock_ns()
    moved = 1
    over = 1
    if at_load(chains + CHAINS_FAILED * 8) == 0:
        if phase & (PHASES - 1) == COLLECT:
            _clear(share)
            if _call(chains, CHAINS_COLLECT, share) == 0:
                at_store(chains + CHAINS_FAILED * 8, 1)
        elif ld_i64(chains, CHAINS_ORDER) != 0:
            moved = order_go_on(chains, share, number, phase & (PHASES - 1))
            if moved < 0:
                at_store(chains + CHAINS_FAILED * 8, 1)
            elif ld_i64(share, SHARE_CURSOR) != 0:
                over = 0
        elif phase & (PHASES - 1) == LINK:
            if share_link(chains + CHAINS_SHARES * 8, ld_i64(chains, CHAINS_COUNT), number) == 0:
                at_store(chains + CHAINS_FAILED * 8, 1)
        else:
            moved = _call(chains, CHAINS_EVALUATE, share)
            if moved < 0:
                at_store(chains + CHAINS_FAILED * 8, 1)
            elif ld_i64(share, SHARE_CURSOR) != 0:
                over = 0
    at_add(stage + STAGE_BUSY_NS * 8, clock_ns() - begun)
    if over == 0:
        at_store(share + SHARE_LOCK * 8, 2 * phase)
        return moved
    following = _following(chains, phase)
    if following & (PHASES - 1) == NO_PHASE or following & (PHASES - 1) == READY:
        following += 1  # the next phase with shares
    at_store(share + SHARE_LOCK * 8, 2 * following)
    if at_add(chains + CHAINS_FINISHED * 8, 1) == ld_i64(chains, CHAINS_COUNT) - 1:
        if phase & (PHASES - 1) == COLLECT and ld_i64(chains, CHAINS_ORDER) != 0 and order_begin(chains) == 0:
            at_store(chains + CHAINS_FAILED * 8, 1)
        _next_phase(chains)
    return 1


@native("void(i64)")
def _clear(share: int) -> None:
    """Remove everything of the last ticket from the share."""
    st_i64(share, SHARE_ASKED, 0)
    share_empty(share)
    step_reset(ld_i64(share, SHARE_STATE))


@native("void(i64, i64)")
def _show_tables(chains: int, state: int) -> None:
    """Show the shares the tables of the stage, as the kernel has left them. Called by the worker in turn."""
    first = STATE_FIRST_FREE * 8
    size = ld_i64(chains, CHAINS_STATE_WORDS) * 8 - first
    for number in range(ld_i64(chains, CHAINS_COUNT)):
        share = chains + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        copy(ld_i64(share, SHARE_STATE) + first, state + first, size)


@native("i64(i64, i64, i64)")
def _call(chains: int, entry: int, share: int) -> int:
    """The result of a generated function for the share."""
    constants = ld_i64(ld_i64(chains, CHAINS_STAGE), STAGE_CONSTANTS)
    return call4(ld_i64(chains, entry), ld_i64(share, SHARE_STATE), ld_i64(chains, CHAINS_BATCH), share, constants)


# -- the stage -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def serve_chains(stage: int, worker: int) -> int:
    """`Runner.serve`."""
    chains = ld_i64(stage, STAGE_OWN)
    done = _help(chains, worker) + _help(ld_i64(chains, CHAINS_OTHER), worker)
    busy = stage + STAGE_BUSY * 8
    if done > 0 or can_send(stage) == 0 or at_load(busy) == 1 or not at_cas(busy, 0, 1):
        return done
    while done < ITEMS_A_VISIT and can_send(stage) == 1 and _in_turn(stage, ld_i64(stage, STAGE_TASK)) == 1:
        done += 1
    at_store(busy, 0)
    return done


@native("i64(i64, i64)")
def _in_turn(stage: int, task: int) -> int:
    """1 if the worker in turn has done something; 0: there is no ticket, or its shares are to be done first."""
    chains = ld_i64(task, TASK_CHAINS)
    if ld_i64(task, TASK_ITEM) == 0:
        st_i64(task, TASK_ITEM, _take(stage, chains))
        return 1 if ld_i64(task, TASK_ITEM) != 0 else 0
    phase = _phase_of(chains)
    if phase == READY:
        if _weigh(stage, chains) == 0 and ld_i64(stage, STAGE_FAILED) == 0:
            fail(ld_i64(task, TASK_STATE), LIMIT)
            fail_with(stage, task)
            at_store(chains + CHAINS_FAILED * 8, 1)
        if ld_i64(stage, STAGE_FAILED) == 1:
            at_store(chains + CHAINS_FAILED * 8, 1)  # no more evaluation
        _show_tables(chains, ld_i64(task, TASK_STATE))
        _next_phase(chains)
        return 1
    if phase != NO_PHASE:
        return 0
    _hand_on(stage, task, chains)
    return 1


@native("i64(i64, i64)")
def _weigh(stage: int, chains: int) -> int:
    """Add the memory held for transactions of a ticket to the stage's number of bytes and return 1; 0 beyond the limit.

    Called by the worker in turn, when all of the ticket is collected and no worker is in a share.
    """
    held = ld_i64(chains, CHAINS_CAPACITY) * ld_i64(chains, CHAINS_STRIDE)
    for number in range(ld_i64(chains, CHAINS_COUNT)):
        share = chains + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        held += share_held_bytes(share) + step_held_bytes(ld_i64(share, SHARE_STATE))
    if ld_i64(chains, CHAINS_ORDER) != 0:
        held += order_held_bytes(ld_i64(chains, CHAINS_ORDER))
    more = held - ld_i64(chains, CHAINS_HELD_BYTES)
    st_i64(chains, CHAINS_HELD_BYTES, held)
    return count_bytes(stage, more)


@native("i64(i64, i64)")
def _take(stage: int, chains: int) -> int:
    """The next item, whose phases have begun if it has transactions; 0: there is none."""
    item = ring_pop(ld_i64(stage, STAGE_INPUT))
    if item != 0:
        count_item(stage, item)
        at_store(chains + CHAINS_FAILED * 8, 0)
        if ld_i64(item, ITEM_KIND) != FAILURE and ld_i64(stage, STAGE_FAILED) == 0:
            _begin(stage, chains, item)
    return item


@native("void(i64, i64, i64)")
def _hand_on(stage: int, task: int, chains: int) -> None:
    """Call the kernel for an item whose transactions are evaluated, while others collect those of the next one."""
    other = ld_i64(chains, CHAINS_OTHER)
    item = ld_i64(task, TASK_ITEM)
    failed = at_load(chains + CHAINS_FAILED * 8)
    if failed == 1 and ld_i64(item, ITEM_KIND) != FAILURE and ld_i64(stage, STAGE_FAILED) == 0:
        at_store(chains + CHAINS_FAILED * 8, 0)
        fail(ld_i64(task, TASK_STATE), NO_MEMORY)
        fail_with(stage, task)
    if ld_i64(other, CHAINS_AHEAD) == 0:
        st_i64(other, CHAINS_AHEAD, _take(stage, other))
    events = ld_i64(chains + CHAINS_SHARES * 8, SHARE_EVENTS)
    st_i64(ld_i64(task, TASK_STATE), ld_i64(chains, CHAINS_EVENTS_WORD), events)
    item = ld_i64(task, TASK_ITEM)
    rows = 0 if ld_i64(item, ITEM_KIND) == FAILURE else ld_i64(item, BATCH_ROWS)
    step(stage, task, item)
    if ld_i64(task, TASK_ITEM) == 0 and ld_i64(chains, CHAINS_PACE) != 0:
        waits = 1 if ld_i64(other, CHAINS_AHEAD) != 0 else 0
        pace_note(ld_i64(chains, CHAINS_PACE), rows, ld_i64(chains, CHAINS_BEGUN_NS), waits)
    if ld_i64(task, TASK_ITEM) == 0 and ld_i64(other, CHAINS_AHEAD) != 0:
        st_i64(task, TASK_ITEM, ld_i64(other, CHAINS_AHEAD))
        st_i64(other, CHAINS_AHEAD, 0)
        st_i64(task, TASK_CHAINS, other)


@native("void(i64)", export=True)
def chains_release(chains: int) -> None:
    """Free what the phases have allocated."""
    if ld_i64(chains, CHAINS_ORDER) != 0:
        order_release(ld_i64(chains, CHAINS_ORDER))
    _release_all(chains)
    _release_all(ld_i64(chains, CHAINS_OTHER))


@native("void(i64)")
def _release_all(chains: int) -> None:
    """Free what shares have allocated."""
    release(ld_i64(chains, CHAINS_MEMORY))
    for number in range(ld_i64(chains, CHAINS_COUNT)):
        share = chains + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        share_release(share)
        step_drop(ld_i64(share, SHARE_STATE))


def build_chains(making: Making) -> int:
    """Make one state, one task, and twice the shares; return the address of what a ticket's shares have in common."""
    plant = making.plant
    (task,) = new_tasks(plant, making.spec, making.address, new_states(plant, making.spec, 1))
    chains, other = _build_shares(making), _build_shares(making)
    sharing, workers = plant.sharing, range(plant.workers)
    homes = homes_of(plant.workers, max(1, len(sharing.sockets)))
    count = plant.host.word(chains, CHAINS_COUNT)
    taken = [shares_of(sharing.placement, worker, homes, count) for worker in workers]
    rounds = plant.host.place(words([plant.host.place(words((len(shares), *shares))) for shares in taken]))
    for shares in (chains, other):
        plant.host.set_word(shares, CHAINS_ROUNDS, rounds)
        plant.host.set_word(shares, CHAINS_OWNED, int(sharing.placement == "shared_nothing"))
    plant.when_closed(lambda: plant.host.function("chains_release")(chains))
    plant.host.set_word(chains, CHAINS_OTHER, other)
    plant.host.set_word(other, CHAINS_OTHER, chains)
    plant.host.set_word(making.address, STAGE_OWN, chains)
    plant.host.set_word(making.address, STAGE_TASK, task)
    plant.host.set_word(task, TASK_CHAINS, chains)
    return chains


def _build_shares(making: Making) -> int:
    """Make the shares of a ticket; return the address of what they have in common."""
    plant, spec = making.plant, making.spec
    entries = spec.chains
    assert entries is not None, "verify_pipeline has seen to it"
    count = power_of_two(SHARES_A_WORKER * plant.workers)
    chains = plant.block(CHAINS_SHARES + count * SHARE_WORDS)
    for index, value in (
        (CHAINS_STAGE, making.address),
        (CHAINS_STRIDE, 8 * entries.event_words),
        (CHAINS_EVENTS_WORD, entries.events),
        (CHAINS_BEGIN, making.entries[entries.begin]),
        (CHAINS_COLLECT, making.entries[entries.collect]),
        (CHAINS_EVALUATE, making.entries[entries.evaluate]),
        (CHAINS_COUNT, count),
        (CHAINS_STATE_WORDS, spec.state_words),
    ):
        plant.host.set_word(chains, index, value)
    for number in range(count):
        share = chains + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        plant.host.set_word(share, SHARE_LOCK, 2 * COLLECT)
        plant.host.set_word(share, SHARE_MASK, count - 1)
        plant.host.set_word(share, SHARE_LISTS, plant.block(count * LIST_WORDS))
        plant.host.set_word(share, SHARE_STATE, plant.block(spec.state_words))
    return chains


def register_together(way: Way, build: Callable[[Making], object]) -> None:
    """Register a way of running in which all workers evaluate the transactions of a ticket."""
    refuse(f"runner {way}", [] if way.traits.together else ["runs transactions together; its traits do not say so"])

    def describe(_host: Host, _stage: int) -> str:
        return way.value

    def built(making: Making) -> None:
        build(making)

    register(
        Runner(way, built, describe, serve=serve_chains, idle=loop_idle, flush=flush_loop, alone=False, emptied=False)
    )


STEPS = {"admit": 2, "ready": 2, "finish": 2}
"""Of a scheme: with how many arguments each is called."""


def register_scheme(way: Way, admit: Native, ready: Native, finish: Native, *, in_turn: bool, at_once: bool) -> None:
    """Register a way in which transactions take their places as they run (cq/runtime/engine/ways/requests.py).

    at_once: a share admits all transactions that it claims before it runs one. `admit` must not wait then for what only
    a transaction that has run gives back. LOCK_A's `admit` waits for locks: a second transaction on a row would wait
    for the first one of its own claim, which runs when all are admitted. The share would be visited forever.
    """
    problems = [*unfit(SimpleNamespace(admit=admit, ready=ready, finish=finish), STEPS)]
    if not way.traits.asks:
        problems.append("its transactions ask for their places; its traits do not say so")
    refuse(f"runner {way}", problems)

    def build(making: Making) -> None:
        address = making.plant.host.address
        functions = (address(native_name(admit)), address(native_name(ready)), address(native_name(finish)))
        build_order(making, build_chains(making), functions, in_turn, at_once)

    register_together(way, build)


register_together(Way.CHAINS, build_chains)
