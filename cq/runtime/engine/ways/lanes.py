"""Partitioned stages on several workers: a ticket is split by key into lanes, each with a state of its own.

    take    any worker: a ticket, and a split to hold it; rows are hashed and sorted by lane     (in any order)
    spread  one at a time, in ticket order: the split's lanes are added to the hybrid queue
    serve   the worker that claims a lane: the kernel on the lane's rows of one ticket after the other
    merge   the worker that finishes the last lane of a ticket: its output by position (cq/runtime/flow/merged_lanes.py)
    send    one at a time, in ticket order

A key's hash has a virtual partition, its low bits; a table maps the partition to its lane. Events (CLOSE, END) go to
every lane, rows to theirs; a lane without either has no share in the ticket. Operators without a common key are in
branches, each with its own key, table and lanes: a row then goes to a lane of every branch that reads it. All lanes run
one kernel; the port of a segment identifies the branch of its rows (`_share_segment`).

A lane does not stop at a full port: what it emits for a ticket stays in its own parcels until the last lane of the
ticket is done, because the merge by position needs every lane. Ports bound the size of a parcel, not their number
(docs/decisions/one-loop-a-stage.md).

Roles     any worker in each role; `spread` and `send` are the readers of two reorder buffers.
Shared    SPLIT_LEFT  lanes of the ticket that are not done.
I1        a lane sees the tickets it has a share in, in order, one at a time (hybrid queue).
                                                              tests: test_a_lane_has_one_worker_at_a_time
I2        a split is used again only after its ticket is sent; the head ticket always has one.
                                                              tests: test_splits_that_are_used_again_*
I3        of several lanes that fail in a ticket, the smallest position counts; rows before it are sent.
                                                              tests: test_the_smallest_position_fails_in_lanes
Progress  no call waits: a worker that finds no split, no ticket, no lane or no room after the stage returns.
Order     a split is plain memory. Its shares are written, then SPLIT_LEFT, then the slot of the reorder buffer
          (seq_cst); they pass to lanes by the hybrid queue, as a lane's state does from worker to worker. Each lane's
          output is written before its `at_add(SPLIT_LEFT, -1)`: the one that gets 1 back has all of it, merges, and
          hands the split on by the second buffer. After its last share is added a split may be gone, so `spread`
          determines the last one before. The head of the second buffer moves on before the split is home.
                                                              tests: test_a_split_is_idle_again_when_its_ticket_*
Source    Prasaad et al. (2018), sections 4.3 and 5; the merge by the last finisher is ours, as their unit is a tuple.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_add, at_load, at_store, copy, ld_i64, st_i64
from cq.runtime.containers.state import made, words
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import Carried, new_depot, new_states, new_tasks, power_of_two
from cq.runtime.engine.stage import (
    NO_MEMORY,
    STAGE_CONSTANTS,
    STAGE_ENGINE,
    STAGE_FAILED,
    STAGE_INPUT,
    STAGE_NEXT,
    STAGE_OWN,
    STAGE_PORTS,
    TASK_FIRST,
    TASK_STATE,
    TASK_STATUS,
    can_send,
    collect_emitted,
    count_item,
    fail,
    finish,
    note_failure,
    run_kernel,
    send,
    send_failure,
    use_up,
    wake_workers,
)
from cq.runtime.engine.ways.any_worker import any_idle
from cq.runtime.engine.ways.protocol import Making, Runner, register
from cq.runtime.flow import split_words as x
from cq.runtime.flow.batch import FAILURE, ITEM_KIND, ITEM_LAST, ITEM_LINK, ITEM_PORT
from cq.runtime.flow.merged_lanes import merge_split
from cq.runtime.flow.split import split_item
from cq.runtime.flow.split_words import (
    LANES_COUNT,
    LANES_HYBRID,
    LANES_MERGED,
    LANES_SPLITS,
    LANES_SPREAD,
    LANES_TASKS,
    RECORD_FIRST,
    RECORD_SHARE,
    RECORD_STATE,
    RECORD_STATUS,
    RECORD_WORDS,
    SPLIT_FAILED,
    SPLIT_FIRST,
    SPLIT_HOME,
    SPLIT_ITEM,
    SPLIT_LEFT,
    SPLIT_NEXT,
    SPLIT_OWN_FAILURE,
    SPLIT_RECORDS,
    SPLIT_STATUS,
    SPLIT_TICKET,
)
from cq.runtime.layout.abi import DONE, ERROR, MORE, STATE_FIRST_FREE
from cq.runtime.queues.hybrid import hybrid_add, hybrid_claim, hybrid_done, hybrid_has_room, hybrid_item
from cq.runtime.queues.pool import pool_put, pool_take
from cq.runtime.queues.reorder import reorder_enter, reorder_head, reorder_leave, reorder_next, reorder_put
from cq.runtime.queues.ring import ring_take
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host


@native("void(i64, i64)")
def _fail_split(split: int, code: int) -> None:
    """Make the ticket fail without a place in the query."""
    words = ld_i64(split, SPLIT_OWN_FAILURE)
    fail(words, code)
    st_i64(split, SPLIT_STATUS, ERROR)
    st_i64(split, SPLIT_FAILED, words)


# -- take ------------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _take(stage: int, lanes: int) -> int:
    """Split one more ticket and return 1; 0 if there is no ticket, or no split for it."""
    split = pool_take(ld_i64(lanes, LANES_SPLITS))
    if split == 0:
        return 0
    item, ticket = ring_take(ld_i64(stage, STAGE_INPUT))
    if item == 0:
        pool_put(ld_i64(split, SPLIT_HOME), split)
        return 0
    count_item(stage, item)
    st_i64(split, SPLIT_ITEM, item)
    st_i64(split, SPLIT_TICKET, ticket)
    st_i64(split, SPLIT_STATUS, DONE)
    st_i64(split, SPLIT_NEXT, 0)
    st_i64(split, SPLIT_FIRST, 0)
    shares = 0
    if ld_i64(item, ITEM_KIND) != FAILURE and at_load(stage + STAGE_FAILED * 8) == 0:
        shares = split_item(lanes, split, ld_i64(stage, STAGE_CONSTANTS))
        if shares == 0:  # the end of the input alone
            _merge(stage, lanes, split)
    if shares < 0:
        _fail_split(split, NO_MEMORY)
        shares = 0
    at_store(split + SPLIT_LEFT * 8, shares)
    put = reorder_put(ld_i64(lanes, LANES_SPREAD), ticket, split)
    assert put == 1, "as many slots as splits"
    _spread(stage, lanes)
    return 1


# -- spread ----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _spread_split(lanes: int, split: int) -> int:
    """Put every share into the hybrid queue, or a ticket without any to those to be sent; 1, or 0: no room."""
    if at_load(split + SPLIT_LEFT * 8) == 0 and ld_i64(split, SPLIT_NEXT) == 0:
        put = reorder_put(ld_i64(lanes, LANES_MERGED), ld_i64(split, SPLIT_TICKET), split)
        assert put == 1, "as many slots as splits"
        return 1
    hybrid = ld_i64(lanes, LANES_HYBRID)
    records = ld_i64(split, SPLIT_RECORDS)
    last = ld_i64(lanes, LANES_COUNT) - 1
    while ld_i64(records + last * RECORD_WORDS * 8, RECORD_SHARE) == 0:
        last -= 1
    lane = ld_i64(split, SPLIT_NEXT)
    while lane <= last:
        if ld_i64(records + lane * RECORD_WORDS * 8, RECORD_SHARE) == 1:
            if hybrid_has_room(hybrid, lane) == 0:
                st_i64(split, SPLIT_NEXT, lane)
                return 0
            hybrid_add(hybrid, lane, split)  # with the last share the split may be gone
        lane += 1
    return 1


@native("void(i64, i64)")
def _spread(stage: int, lanes: int) -> None:
    """Put splits into the hybrid queue, in ticket order, as far as they are there; other workers may serve them."""
    buffer = ld_i64(lanes, LANES_SPREAD)
    while reorder_enter(buffer) == 1:
        split = reorder_head(buffer)
        stuck = 0
        while split != 0 and stuck == 0:
            if _spread_split(lanes, split) == 1:
                reorder_next(buffer)
                wake_workers(ld_i64(stage, STAGE_ENGINE), 1)
                split = reorder_head(buffer)
            else:
                stuck = 1
        if reorder_leave(buffer) == 0 or stuck == 1:
            return


# -- serve -----------------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64)")
def _run_share(stage: int, task: int, record: int) -> None:
    """Run the lane's kernel on its share; put its output, and an error, into the record."""
    state = ld_i64(task, TASK_STATE)
    if ld_i64(task, TASK_STATUS) == ERROR or at_load(stage + STAGE_FAILED * 8) == 1:
        return  # a lane that failed has no state to continue with; tickets after a failure are not sent
    status = MORE
    while status == MORE:
        status = run_kernel(stage, task, record)
        if collect_emitted(stage, task) == 0:
            fail(state, NO_MEMORY)
            status = ERROR
    st_i64(record, RECORD_FIRST, ld_i64(task, TASK_FIRST))
    st_i64(task, TASK_FIRST, 0)
    st_i64(task, TASK_STATUS, status)
    st_i64(record, RECORD_STATUS, status)
    if status == ERROR:
        copy(record + RECORD_STATE * 8, state, STATE_FIRST_FREE * 8)


@native("void(i64, i64, i64)")
def _merge(stage: int, lanes: int, split: int) -> None:
    """Let the output of all lanes for the ticket, or its failure, wait to be sent."""
    if merge_split(lanes, split, ld_i64(stage, STAGE_PORTS)) == 0:
        _fail_split(split, NO_MEMORY)


@native("void(i64, i64, i64)")
def _finish_share(stage: int, lanes: int, split: int) -> None:
    """Count one lane of the ticket as done; after the last one, merge the output and let it wait to be sent."""
    if at_add(split + SPLIT_LEFT * 8, -1) == 1:
        _merge(stage, lanes, split)
        put = reorder_put(ld_i64(lanes, LANES_MERGED), ld_i64(split, SPLIT_TICKET), split)
        assert put == 1, "as many slots as splits"


@native("i64(i64, i64)")
def _serve_claim(stage: int, lanes: int) -> int:
    """How many shares of one lane were served; 0 if no lane needs a worker."""
    hybrid = ld_i64(lanes, LANES_HYBRID)
    lane = hybrid_claim(hybrid)
    if lane < 0:
        return 0
    task = ld_i64(ld_i64(lanes, LANES_TASKS), lane)
    served = 0
    more = 1
    while more == 1:
        split = hybrid_item(hybrid, lane)
        _run_share(stage, task, ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8)
        _finish_share(stage, lanes, split)
        more = hybrid_done(hybrid, lane)
        served += 1
    return served


# -- send ------------------------------------------------------------------------------------------------------------


@native("(i64, i64)(i64, i64)")
def _send_split(stage: int, split: int) -> tuple[int, int]:
    """1 if all of the head ticket is sent and released; 0 if there is no room for the rest. And what was sent."""
    item = ld_i64(split, SPLIT_ITEM)
    parcel = ld_i64(split, SPLIT_FIRST)
    sent = 0
    while parcel != 0:
        if can_send(stage) == 0:
            return 0, sent
        following = ld_i64(parcel, ITEM_LINK)
        st_i64(split, SPLIT_FIRST, following)
        send(stage, ld_i64(parcel, ITEM_PORT), parcel)
        parcel = following
        sent += 1
    if can_send(stage) == 0:
        return 0, sent
    if ld_i64(item, ITEM_KIND) == FAILURE:
        send_failure(stage, item)
    elif ld_i64(stage, STAGE_FAILED) == 0 and ld_i64(split, SPLIT_STATUS) == ERROR:
        send_failure(stage, note_failure(stage, ld_i64(split, SPLIT_FAILED), item))
    elif ld_i64(stage, STAGE_FAILED) == 0 and ld_i64(item, ITEM_LAST) == 1 and ld_i64(stage, STAGE_NEXT) == 0:
        finish(stage)
    use_up(stage, item)
    st_i64(split, SPLIT_ITEM, 0)
    return 1, sent + 1


@native("i64(i64, i64)")
def _send(stage: int, lanes: int) -> int:
    """How many parcels and tickets left the stage, in order, as far as they are merged and there is room."""
    buffer = ld_i64(lanes, LANES_MERGED)
    sent = 0
    while can_send(stage) == 1 and reorder_enter(buffer) == 1:
        split = reorder_head(buffer)
        whole = 1
        while split != 0 and whole == 1:
            whole, parcels = _send_split(stage, split)
            sent += parcels
            if whole == 1:
                reorder_next(buffer)
                pool_put(ld_i64(split, SPLIT_HOME), split)
                split = reorder_head(buffer)
        if reorder_leave(buffer) == 0:
            break
    return sent


@native("i64(i64, i64)", export=True)
def serve_lanes(stage: int, worker: int) -> int:
    """`Runner.serve`: how much was done: send what is merged, then serve a lane, else split a ticket."""
    lanes = ld_i64(stage, STAGE_OWN)
    done = _send(stage, lanes)
    _spread(stage, lanes)
    served = _serve_claim(stage, lanes)
    if served == 0:
        served = _take(stage, lanes)
    if served > 0:
        done += served + _send(stage, lanes)
    return done


def _build(making: Making) -> None:
    """A task for each of its lanes, and splits for two tickets a worker and two more."""
    plant, spec, batch_rows, sends_on = making.plant, making.spec, making.batch_rows, not making.is_last
    routing = spec.lanes
    assert routing is not None, "verify_pipeline has seen to it"
    host, lanes, count, stage = plant.host, plant.block(x.LANES_WORDS), routing.count, making.address
    splits = 2 * plant.workers + 2
    tasks = new_tasks(plant, spec, stage, new_states(plant, spec, count))
    carried = Carried(sends_on, False, spec.passes_watermarks, sends_on)
    depots = [new_depot(host, port, batch_rows, batch_rows, carried) for port in spec.ports]
    plant.depots.append(depots)
    hybrid = made(host.function("hybrid_new")(power_of_two(count), power_of_two(2 * splits)), spec.name)
    plant.when_closed(partial(host.function("hybrid_drop"), hybrid))
    idle, homes = plant.pool(splits)
    for home in homes:
        plant.when_closed(partial(_drop_split, host, made(host.function("split_new")(count, home), spec.name)))
    for index, value in (
        (x.LANES_COUNT, count),
        (x.LANES_BRANCHES, routing.branches),
        (x.LANES_TURNS, routing.turns),
        (x.LANES_INPUTS, len(plant.pipeline.sources) if making.number == 0 else 1),
        (x.LANES_ROUTE, host.place(_routes(count, routing.branches))),
        (x.LANES_ENTRY, making.entries[routing.entry]),
        (x.LANES_HYBRID, hybrid),
        (x.LANES_TASKS, host.place(words(tasks))),
        (x.LANES_SPLITS, idle),
        (x.LANES_SPREAD, plant.reorder_buffer(splits)),
        (x.LANES_MERGED, plant.reorder_buffer(splits)),
        (x.LANES_DEPOTS, host.place(words(depots))),
        (x.LANES_SENDS_ON, int(sends_on)),
    ):
        host.set_word(lanes, index, value)
    host.set_word(stage, s.STAGE_OWN, lanes)
    host.set_word(stage, s.STAGE_TASK, idle)
    host.set_word(stage, s.STAGE_TASKS, splits)


def _routes(lanes: int, branches: int) -> bytes:
    """The lane of each virtual partition, by branch."""
    each = lanes // branches
    return bytes(each * branch + n % each for branch in range(branches) for n in range(x.PARTITIONS))


def _drop_split(host: Host, split: int) -> None:
    """Free the split, and return its parcels, merged or not yet."""
    records = host.word(split, x.SPLIT_RECORDS)
    count = (host.word(split, x.SPLIT_PLACES) - records) // (8 * x.RECORD_WORDS)
    heads = [host.word(split, x.SPLIT_FIRST)]
    heads += [host.word(records + 8 * x.RECORD_WORDS * lane, x.RECORD_FIRST) for lane in range(count)]
    for head in heads:
        parcel = head
        while parcel != 0:
            following = host.word(parcel, ITEM_LINK)
            host.function("parcel_return")(parcel)
            parcel = following
    host.function("split_drop")(split)


def _describe(host: Host, stage: int) -> str:
    return f"{host.word(host.word(stage, s.STAGE_OWN), x.LANES_COUNT)} {Way.LANES.value}"


register(
    Runner(
        Way.LANES,
        _build,
        _describe,
        serve=serve_lanes,
        idle=any_idle,
        flush=None,
        alone=False,
        emptied=False,
    )
)
