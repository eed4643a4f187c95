"""Stages at run time: their structure, running their kernel, and sending what it emitted.

Task      one kernel call in progress: a state, output ports with their parcels, the item it works on. A stage has one
          task if one worker at a time runs it, several if it is stateless, one for each lane if partitioned; with
          partial panes a task has no state of its own and borrows one for each call.
Sending   only the worker in turn sends: the holder of STAGE_BUSY, or the reader of the reorder buffer. A failure
          travels as an item after the rows before it; the first to pass the last stage is the one with the smallest
          position, so failing runs are identical too.
Roles     any number of workers run the kernel, each with a task of its own; the one in turn sends.
Shared    STAGE_BUSY (try-lock); the metrics, which the stage adds to and never reads; ENGINE_OUTCOME; rings.
I1        can_send == 1, found by the one in turn, holds until it sends.      tests: test_a_sink_that_is_not_drained_*
I2        after a failure or the last row nothing is sent.                          tests: test_rows_before_a_failure_*
I3        an item is in the ring of the next stage before workers are woken for it.
                                                                          tests: test_a_worker_that_falls_asleep_*
I4        ENGINE_OUTCOME is stored after the last row is in its ring, and before the signal that announces it moves: no
          other signal need follow.
                        tests: test_who_knows_that_the_run_is_over_*, test_a_feeder_that_waits_is_told_*
Progress  no call waits. A worker that may not send, because it is not in turn or the next ring is full, keeps its rows
          in the task and goes on with other work; whoever makes room wakes workers.
Order     send: the parcel, then the ring's cell (ring.py); then a fence, then ENGINE_WAITERS: a worker that is not in
          WAITERS yet looks at the rings again after it is. Moving EPOCH by an atomic add before the futex wake makes a
          sleeper that read it earlier return.  Results: into the ring, then UNHEARD is loaded; the signaller stores
          UNHEARD = 0, then adds to SIGNAL, then loads LISTENERS (all seq_cst): a result that relies on an UNHEARD
          already set is in the ring before SIGNAL moves.       tests: test_a_feeder_that_waits_is_told_of_every_result
          STAGE_FAILED: stored by the one in turn before the failure is sent; others load it only to save work.
          ENGINE_OUTCOME: changed once, by CAS: the first outcome counts, whoever has another.
          Metrics: added to (seq_cst, whole); no metric implies anything about another.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    at_add,
    at_cas,
    at_load,
    at_store,
    call4,
    clock_ns,
    copy,
    fence,
    futex_wake,
    ld_i64,
    release,
    st_i64,
    zalloc,
)
from cq.runtime.containers.saving import state_held_bytes
from cq.runtime.flow.batch import (
    FAILURE,
    ITEM_KIND,
    ITEM_LAST,
    ITEM_LINK,
    ITEM_LOANS,
    ITEM_PORT,
    ITEM_STAGE,
    ITEM_WORDS,
    LOAN_FIRST,
    PARCEL,
    TICKET,
    ticket_return,
)
from cq.runtime.flow.export import parcel_compact, parcel_truncate
from cq.runtime.flow.parcel import PARCEL_PORT, parcel_count, parcel_get, parcel_return, parcel_to_batch, port_segment
from cq.runtime.layout.abi import (
    BATCH_CAUSES,
    BATCH_ROWS,
    CAUSE_END,
    CAUSE_INSTANT,
    CAUSE_SOURCE_SHIFT,
    ERROR,
    PORT_ROWS,
    PORT_SEGMENT_COUNT,
    PORT_SEGMENTS,
    PORT_WORDS,
    SEGMENT_ROWS,
    STATE_CALLS,
    STATE_ERROR_CODE,
    STATE_ERROR_ENTRY,
    STATE_ERROR_GROUP,
    STATE_ERROR_INSTANT,
    STATE_ERROR_PORT,
    STATE_ERROR_ROW,
    STATE_ERROR_SERIAL,
    STATE_ERROR_SITE,
    STATE_ERROR_START,
    STATE_ERROR_TABLE,
    STATE_HELD_BYTES,
    ErrorCode,
)
from cq.runtime.layout.words import Struct
from cq.runtime.queues.ring import ring_has_room, ring_push, ring_size

# words of the engine; those that workers write have lines of their own
_engine = Struct("ENGINE")
ENGINE_STOP = _engine.line()  # 1: workers leave
ENGINE_EPOCH = _engine.line()  # futex of the workers: moves when there may be work
ENGINE_WAITERS = _engine.line()  # workers about to sleep or asleep
ENGINE_SIGNAL = _engine.line()  # futex of the feeder: moves when there may be results, room, or an outcome
ENGINE_LISTENERS = _engine.line()
ENGINE_RESTS_HEARD = _engine.word()  # 1: the feeder waits until no work is left
ENGINE_OUTCOME = _engine.line()  # RUNNING, FINISHED, or the failure item that passed the last stage
ENGINE_STAGES = _engine.word()
ENGINE_STAGE_TABLE = _engine.word()  # -> addresses
ENGINE_ADMISSION = _engine.word()
ENGINE_SINKS = _engine.word()
ENGINE_SINK_TABLE = _engine.word()  # -> addresses
ENGINE_HEURISTIC = _engine.word()
ENGINE_WORKERS = _engine.word()
ENGINE_WINDOW = _engine.line()  # when the scheduling window began
ENGINE_UNHEARD = _engine.word()  # when the first unannounced result was sent; 0: all were announced
ENGINE_STATE_LIMIT = _engine.word()  # bytes that the states of all stages may hold
ENGINE_STATE_BYTES = _engine.line()  # held by the containers of all states, when last measured
ENGINE_WORDS = _engine.size()

MANY_RESULTS = 8  # waiting results: their reader is woken at once, and not for each of them
UNHEARD_NS = 200_000  # four wake-ups' worth: a result waits no longer than this and a kernel call

RUNNING, FINISHED = 0, 1

_error = Struct("ERROR")
ERROR_CODE = _error.word()
ERROR_SITE = _error.word()
ERROR_SOURCE = _error.word()  # source the row is from, where ROW is known
ERROR_ROW = _error.word()  # number of the row in its source; -1 if a window failed or the stage is not the first
ERROR_SERIAL = _error.word()
ERROR_INSTANT = _error.word()
ERROR_GROUP = _error.word()  # as in STATE_ERROR_GROUP, and the three words that identify the group
ERROR_ENTRY = _error.word()
ERROR_TABLE = _error.word()
ERROR_START = _error.word()
ERROR_STATE = _error.word()  # -> the state that failed
ERROR_WORDS = _error.size()

_stage = Struct("STAGE")
STAGE_BUSY = _stage.line()
STAGE_ENGINE = _stage.word()
STAGE_SERVE = _stage.word()  # -> native functions of its way (cq/runtime/engine/ways/protocol.py)
STAGE_WAY = _stage.word()  # its number among `cq.ways.Way`
STAGE_KERNEL = _stage.word()
STAGE_CONSTANTS = _stage.word()
STAGE_INPUT = _stage.word()  # ring of items; the position of an item is its ticket here
STAGE_REORDER = _stage.word()
STAGE_NEXT = _stage.word()  # the next stage, or 0
STAGE_PORTS = _stage.word()
STAGE_DEPOTS = _stage.word()  # -> one a port
STAGE_TASK = _stage.word()  # the one task; or a pool of idle tasks, of idle splits
STAGE_NUMBER = _stage.word()
STAGE_SOURCES = _stage.word()  # ports of a ticket, for the first stage
STAGE_FAILED = _stage.word()  # 1: nothing more is sent; written by the one in turn
STAGE_TASKS = _stage.word()
# 0, or -> what only stages of its way have (ways/*.py); in a loop that collects parts: what their fillers have
STAGE_OWN = _stage.word()
_stage.align()  # metrics: every worker adds to them
STAGE_ROWS_IN = _stage.word()
STAGE_ROWS_OUT = _stage.word()
STAGE_BUSY_NS = _stage.word()
STAGE_ITEMS = _stage.word()
STAGE_CALLS = _stage.word()
STAGE_ACTIVE = _stage.word()  # workers inside
STAGE_WINDOW_NS = _stage.word()  # STAGE_BUSY_NS when the scheduling window began
STAGE_STATE_BYTES = _stage.word()  # held by the containers of its states, when last measured
STAGE_FAILURE = _stage.words(ITEM_WORDS)  # the failure item
STAGE_ERROR = _stage.words(ERROR_WORDS)  # ERROR_* words
STAGE_SLOTS = _stage.word()  # -> (offset, container) of each slot of a state
STAGE_SLOT_COUNT = _stage.word()
# rows sent to the next stage, which are numbered; an item without rows also takes a number
STAGE_SENT = _stage.word()
STAGE_IDLE = _stage.word()  # -> as STAGE_SERVE
STAGE_FLUSH = _stage.word()  # -> as STAGE_SERVE, or 0
STAGE_ALONE = _stage.word()  # 1: one worker at a time is inside
STAGE_WORDS = _stage.size()

_task = Struct("TASK")
TASK_STATE = _task.word()
TASK_ITEM = _task.word()
TASK_TICKET = _task.word()
TASK_FIRST = _task.word()  # list of parcels to send
TASK_LAST = _task.word()
TASK_COUNT = _task.word()
TASK_STATUS = _task.word()
TASK_OUT = _task.word()  # -> ports; the word before them points to TASK_PARCELS' words
TASK_PARCELS = _task.word()  # -> one parcel a port
TASK_HOME = _task.word()  # in the pool of idle tasks
TASK_OWN = _task.word()  # what only tasks of its stage's way have (ways/*.py)
TASK_WORDS = _task.size()

_sink = Struct("SINK")
SINK_RING = _sink.word()
SINK_LEFT = _sink.word()  # rows it still takes; -1: no limit
SINK_ROWS = _sink.word()
SINK_BATCHES = _sink.word()
SINK_WORDS = _sink.lines()

NO_MEMORY = int(ErrorCode.NO_MEMORY)
LIMIT = int(ErrorCode.LIMIT)
CALLS_A_WEIGHING = 16  # calls between measurements of a state, which walk the open panes


# -- signals ---------------------------------------------------------------------------------------------------------


@native("void(i64, i64)", export=True)
def wake_workers(engine: int, count: int) -> None:
    """Wake up to `count` sleeping workers to look for work. What they are to find was published before."""
    fence()
    if at_load(engine + ENGINE_WAITERS * 8) > 0:
        at_add(engine + ENGINE_EPOCH * 8, 1)
        futex_wake(engine + ENGINE_EPOCH * 8, count)


@native("void(i64)")
def signal_feeder(engine: int) -> None:
    """Make the feeder look again at results, room and outcome."""
    at_store(engine + ENGINE_UNHEARD * 8, 0)  # first: a sender that still finds it set has sent before the signal moves
    at_add(engine + ENGINE_SIGNAL * 8, 1)
    if at_load(engine + ENGINE_LISTENERS * 8) > 0:
        futex_wake(engine + ENGINE_SIGNAL * 8, 1)


@native("void(i64)")
def tell_of_rest(engine: int) -> None:
    """If the feeder waits until no work is left, make it check again."""
    if at_load(engine + ENGINE_RESTS_HEARD * 8) == 1:
        signal_feeder(engine)


@native("void(i64, i64)")
def announce_results(engine: int, waiting: int) -> None:
    """Tell the feeder of the results, at once or soon: a wake-up for each would cost more than many kernels.

    At once if many wait or the last announcement is a while ago; else when a worker finds nothing more to do.
    """
    if at_load(engine + ENGINE_UNHEARD * 8) == 0:
        at_store(engine + ENGINE_UNHEARD * 8, clock_ns())
    if waiting >= MANY_RESULTS or clock_ns() - at_load(engine + ENGINE_UNHEARD * 8) > UNHEARD_NS:
        signal_feeder(engine)


@native("void(i64)")
def call_feeder(engine: int) -> None:
    """Tell the feeder of all results."""
    if at_load(engine + ENGINE_UNHEARD * 8) != 0:
        signal_feeder(engine)


@native("void(i64, i64)")
def conclude(engine: int, outcome: int) -> None:
    """End the run with this outcome, unless it was over before."""
    at_cas(engine + ENGINE_OUTCOME * 8, RUNNING, outcome)
    signal_feeder(engine)


# -- tasks -----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def task_new(stage: int, state: int) -> int:
    """A task with a parcel behind each port; 0 without memory."""
    ports = ld_i64(stage, STAGE_PORTS)
    task = zalloc((TASK_WORDS + ports + 1 + ports * PORT_WORDS) * 8)
    if task == 0:
        return 0
    parcels = task + TASK_WORDS * 8
    out = parcels + (ports + 1) * 8
    st_i64(out, -1, parcels)
    st_i64(task, TASK_STATE, state)
    st_i64(task, TASK_PARCELS, parcels)
    st_i64(task, TASK_OUT, out)
    for port in range(ports):
        parcel = parcel_get(ld_i64(ld_i64(stage, STAGE_DEPOTS), port))
        if parcel == 0:
            task_drop(task, port)
            return 0
        st_i64(parcels, port, parcel)
        copy(out + port * PORT_WORDS * 8, parcel + PARCEL_PORT * 8, PORT_WORDS * 8)
    return task


@native("void(i64, i64)", export=True)
def task_drop(task: int, ports: int) -> None:
    """Free the task, and return its parcels to their depots."""
    for port in range(ports):
        parcel = ld_i64(ld_i64(task, TASK_PARCELS), port)
        copy(parcel + PARCEL_PORT * 8, ld_i64(task, TASK_OUT) + port * PORT_WORDS * 8, PORT_WORDS * 8)
        parcel_return(parcel)
    parcel = ld_i64(task, TASK_FIRST)
    while parcel != 0:
        following = ld_i64(parcel, ITEM_LINK)
        parcel_return(parcel)
        parcel = following
    item = ld_i64(task, TASK_ITEM)
    if item != 0 and ld_i64(item, ITEM_KIND) == PARCEL:
        parcel_return(item)
    release(task)


@native("i64(i64, i64, i64)")
def take_parcel(stage: int, task: int, port: int) -> int:
    """The parcel behind a port with the rows emitted so far, replaced by a new one. 0 without memory.

    If it carries segments, rows that the kernel has not put into one yet are a segment of rows on time.
    """
    words = ld_i64(task, TASK_OUT) + port * PORT_WORDS * 8
    if ld_i64(words, PORT_SEGMENTS) != 0 and port_segment(ld_i64(task, TASK_OUT), port, SEGMENT_ROWS, 0) == 0:
        return 0
    fresh = parcel_get(ld_i64(ld_i64(stage, STAGE_DEPOTS), port))
    if fresh == 0:
        return 0
    parcel = ld_i64(ld_i64(task, TASK_PARCELS), port)
    copy(parcel + PARCEL_PORT * 8, words, PORT_WORDS * 8)
    copy(words, fresh + PARCEL_PORT * 8, PORT_WORDS * 8)
    st_i64(ld_i64(task, TASK_PARCELS), port, fresh)
    parcel_count(parcel)
    at_add(stage + STAGE_ROWS_OUT * 8, ld_i64(parcel + PARCEL_PORT * 8, PORT_ROWS))
    return parcel


@native("i64(i64, i64, i64)")
def run_kernel(stage: int, task: int, item: int) -> int:
    """Run the kernel on the item, charge its time to the stage, and return its result.

    A state that has exceeded the limit is an error, reported after the call that found it.
    """
    begun = clock_ns()
    state = ld_i64(task, TASK_STATE)
    status = call4(
        ld_i64(stage, STAGE_KERNEL),
        state,
        item,
        ld_i64(task, TASK_OUT),
        ld_i64(stage, STAGE_CONSTANTS),
    )
    at_add(stage + STAGE_BUSY_NS * 8, clock_ns() - begun)
    at_add(stage + STAGE_CALLS * 8, 1)
    calls = ld_i64(state, STATE_CALLS)
    st_i64(state, STATE_CALLS, calls + 1)
    if calls & (CALLS_A_WEIGHING - 1) == 0 and status != ERROR and weigh(stage, state) == 0:
        fail(state, LIMIT)
        return ERROR
    return status


@native("i64(i64, i64)")
def weigh(stage: int, state: int) -> int:
    """Measure this state and return 1; 0 if all states together hold more than the limit."""
    held = state_held_bytes(state, ld_i64(stage, STAGE_SLOTS), ld_i64(stage, STAGE_SLOT_COUNT))
    more = held - ld_i64(state, STATE_HELD_BYTES)
    st_i64(state, STATE_HELD_BYTES, held)
    return count_bytes(stage, more)


@native("i64(i64, i64)")
def count_bytes(stage: int, more: int) -> int:
    """Add this many bytes to the stage's count and return 1; 0 if all stages together hold more than the limit."""
    engine = ld_i64(stage, STAGE_ENGINE)
    at_add(stage + STAGE_STATE_BYTES * 8, more)
    total = at_add(engine + ENGINE_STATE_BYTES * 8, more) + more
    return 1 if total <= ld_i64(engine, ENGINE_STATE_LIMIT) else 0


@native("void(i64, i64)")
def use_up(stage: int, item: int) -> None:
    """Release the item, which the stage needs no more."""
    kind = ld_i64(item, ITEM_KIND)
    if kind == PARCEL:
        parcel_return(item)
    elif kind == TICKET:
        ticket_return(item, ld_i64(stage, STAGE_SOURCES))


@native("void(i64, i64)")
def count_item(stage: int, item: int) -> None:
    """Count the item that a worker took, now: when its last row is sent the run may be over."""
    if ld_i64(item, ITEM_KIND) != FAILURE:
        at_add(stage + STAGE_ROWS_IN * 8, ld_i64(item, BATCH_ROWS))
        at_add(stage + STAGE_ITEMS * 8, 1)


@native("void(i64, i64)")
def fail(state: int, code: int) -> None:
    """Set the state's error words to an error that no place of the query has caused."""
    st_i64(state, STATE_ERROR_CODE, code)
    st_i64(state, STATE_ERROR_SITE, -1)
    st_i64(state, STATE_ERROR_PORT, -1)
    st_i64(state, STATE_ERROR_ROW, -1)


@native("i64(i64, i64, i64)")
def note_failure(stage: int, state: int, item: int) -> int:
    """The failure item of the stage, with the error words of a state. Called by the worker in turn, once.

    item: what the kernel worked on, not released yet.
    """
    error = stage + STAGE_ERROR * 8
    port = ld_i64(state, STATE_ERROR_PORT)
    row = ld_i64(state, STATE_ERROR_ROW)
    if row >= 0 and ld_i64(item, ITEM_KIND) == TICKET:
        row += ld_i64(ld_i64(ld_i64(item, ITEM_LOANS), port), LOAN_FIRST)
    instant = ld_i64(state, STATE_ERROR_INSTANT)
    if row >= 0 and ld_i64(item, ITEM_KIND) == PARCEL:
        cause = ld_i64(ld_i64(item, BATCH_CAUSES), row)
        row = -1
        if cause >= 0:
            port = cause >> CAUSE_SOURCE_SHIFT
            row = cause - (port << CAUSE_SOURCE_SHIFT)
        elif cause != CAUSE_END:
            instant = cause - CAUSE_INSTANT
    st_i64(error, ERROR_CODE, ld_i64(state, STATE_ERROR_CODE))
    st_i64(error, ERROR_SITE, ld_i64(state, STATE_ERROR_SITE))
    st_i64(error, ERROR_SOURCE, port)
    st_i64(error, ERROR_ROW, row)
    st_i64(error, ERROR_SERIAL, ld_i64(state, STATE_ERROR_SERIAL))
    st_i64(error, ERROR_INSTANT, instant)
    st_i64(error, ERROR_GROUP, ld_i64(state, STATE_ERROR_GROUP))
    st_i64(error, ERROR_ENTRY, ld_i64(state, STATE_ERROR_ENTRY))
    st_i64(error, ERROR_TABLE, ld_i64(state, STATE_ERROR_TABLE))
    st_i64(error, ERROR_START, ld_i64(state, STATE_ERROR_START))
    st_i64(error, ERROR_STATE, state)
    failure = stage + STAGE_FAILURE * 8
    st_i64(failure, ITEM_KIND, FAILURE)
    st_i64(failure, ITEM_STAGE, stage)
    return failure


# -- sending ---------------------------------------------------------------------------------------------------------


@native("i64(i64)")
def can_send(stage: int) -> int:
    """1 if one item, or one parcel to each sink, can be sent."""
    following = ld_i64(stage, STAGE_NEXT)
    if following != 0:
        return ring_has_room(ld_i64(following, STAGE_INPUT))
    engine = ld_i64(stage, STAGE_ENGINE)
    for sink in range(ld_i64(engine, ENGINE_SINKS)):
        if ring_has_room(ld_i64(ld_i64(ld_i64(engine, ENGINE_SINK_TABLE), sink), SINK_RING)) == 0:
            return 0
    return 1


@native("void(i64, i64)")
def _push(ring: int, thing: int) -> None:
    """Put the thing into a ring in which the sender has found room."""
    pushed = ring_push(ring, thing)
    assert pushed == 1, "room that was found is taken by the one in turn alone"


@native("void(i64, i64, i64)")
def send(stage: int, port: int, parcel: int) -> None:
    """Give the parcel to the next stage or its sink, or drop it if nothing needs it. After can_send."""
    engine = ld_i64(stage, STAGE_ENGINE)
    following = ld_i64(stage, STAGE_NEXT)
    if ld_i64(stage, STAGE_FAILED) == 1:
        parcel_return(parcel)
    elif following != 0:
        first = ld_i64(stage, STAGE_SENT)
        parcel_to_batch(parcel, first)
        st_i64(stage, STAGE_SENT, first + max(ld_i64(parcel, BATCH_ROWS), 1))
        _push(ld_i64(following, STAGE_INPUT), parcel)
        wake_workers(engine, 1)
    else:
        _send_to_sink(engine, ld_i64(ld_i64(engine, ENGINE_SINK_TABLE), port), parcel)


@native("void(i64, i64, i64)")
def _send_to_sink(engine: int, sink: int, parcel: int) -> None:
    """Queue rows within the sink's limit for the feeder. When no sink takes any more, the run is over."""
    rows = ld_i64(parcel + PARCEL_PORT * 8, PORT_ROWS)
    left = ld_i64(sink, SINK_LEFT)
    if left >= 0:
        rows = parcel_truncate(parcel, left)
        st_i64(sink, SINK_LEFT, left - rows)
    if rows == 0:
        parcel_return(parcel)
        return
    st_i64(sink, SINK_ROWS, ld_i64(sink, SINK_ROWS) + rows)
    st_i64(sink, SINK_BATCHES, ld_i64(sink, SINK_BATCHES) + 1)
    _push(ld_i64(sink, SINK_RING), parcel_compact(parcel))
    announce_results(engine, ring_size(ld_i64(sink, SINK_RING)))
    if left >= 0 and left == rows:
        conclude_if_satisfied(engine)


@native("void(i64)", export=True)
def conclude_if_satisfied(engine: int) -> None:
    """End the run if every sink has all rows it takes."""
    for number in range(ld_i64(engine, ENGINE_SINKS)):
        if ld_i64(ld_i64(ld_i64(engine, ENGINE_SINK_TABLE), number), SINK_LEFT) != 0:
            return
    conclude(engine, FINISHED)


@native("void(i64, i64)")
def send_failure(stage: int, item: int) -> None:
    """Pass the failure to the next stage, or make it the outcome; the stage sends nothing after it. After can_send."""
    following = ld_i64(stage, STAGE_NEXT)
    if ld_i64(stage, STAGE_FAILED) == 1:
        return
    at_store(stage + STAGE_FAILED * 8, 1)
    if following != 0:
        _push(ld_i64(following, STAGE_INPUT), item)
        wake_workers(ld_i64(stage, STAGE_ENGINE), 1)
    else:
        conclude(ld_i64(stage, STAGE_ENGINE), item)


@native("i64(i64, i64)")
def holds_rows(stage: int, task: int) -> int:
    """1 if emitted rows are still behind the task's ports."""
    for port in range(ld_i64(stage, STAGE_PORTS)):
        words = ld_i64(task, TASK_OUT) + port * PORT_WORDS * 8
        if ld_i64(words, PORT_ROWS) > 0 or ld_i64(words, PORT_SEGMENT_COUNT) > 0:
            return 1
    return 0


@native("i64(i64, i64, i64)")
def send_emitted(stage: int, task: int, last: int) -> int:
    """Send everything the task emitted and return 1; 0 without memory for new parcels. last: nothing comes after."""
    following = ld_i64(stage, STAGE_NEXT)
    for port in range(ld_i64(stage, STAGE_PORTS)):
        words = ld_i64(task, TASK_OUT) + port * PORT_WORDS * 8
        marked = last == 1 and following != 0
        if ld_i64(words, PORT_ROWS) > 0 or ld_i64(words, PORT_SEGMENT_COUNT) > 0 or marked:
            parcel = take_parcel(stage, task, port)
            if parcel == 0:
                return 0
            st_i64(parcel, ITEM_LAST, last)
            send(stage, port, parcel)
    if last == 1 and following == 0 and ld_i64(stage, STAGE_FAILED) == 0:
        finish(stage)
    return 1


@native("void(i64)")
def finish(stage: int) -> None:
    """End the run: the last stage has sent its last row."""
    at_store(stage + STAGE_FAILED * 8, 1)
    conclude(ld_i64(stage, STAGE_ENGINE), FINISHED)


@native("i64(i64, i64)")
def collect_emitted(stage: int, task: int) -> int:
    """Move the rows the task emitted to the end of its list and return 1; 0 without memory. For tasks not in turn."""
    for port in range(ld_i64(stage, STAGE_PORTS)):
        words = ld_i64(task, TASK_OUT) + port * PORT_WORDS * 8
        if ld_i64(words, PORT_ROWS) > 0 or ld_i64(words, PORT_SEGMENT_COUNT) > 0:
            parcel = take_parcel(stage, task, port)
            if parcel == 0:
                return 0
            append_parcel(task, port, parcel)
    return 1


@native("void(i64, i64, i64)")
def append_parcel(task: int, port: int, parcel: int) -> None:
    """Append the parcel to the task's list."""
    st_i64(parcel, ITEM_PORT, port)
    st_i64(parcel, ITEM_LINK, 0)
    if ld_i64(task, TASK_FIRST) == 0:
        st_i64(task, TASK_FIRST, parcel)
    else:
        st_i64(ld_i64(task, TASK_LAST), ITEM_LINK, parcel)
    st_i64(task, TASK_LAST, parcel)
    st_i64(task, TASK_COUNT, ld_i64(task, TASK_COUNT) + 1)
