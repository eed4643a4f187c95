"""Transactions that take their places in the order of events as they run: the common part of all schemes but chains.

A ticket goes through three phases (cq/runtime/engine/ways/chains.py says how):
    COLLECT   as in chains; each access has a request before it
    EVALUATE  a share claims the next few transactions of the ticket and takes them through three steps, repeatedly:
        CLAIM   they belong to this share; the records of the rows they name are found
        ADMIT   in the order of events, after those before them: the scheme notes what each of them waits for
        RUN     one after the other, when the scheme allows it: evaluated, then it releases what it held
    WRITE     of some slots each: rows are written to their tables as the last transaction that writes them has left
              them
A scheme is three native functions (order, transaction) and a file of its own: `admit` and `ready` return 1, or 0 for
"not yet", and then are called again; `finish` releases. A transaction's version of a row is in its access, as in
chains, and later ones read it there; so tables are read while transactions run, and written when all are done.

Waiting is bounded: a worker looks SPINS times, then gives the share back in the middle, and continues with another one.

Roles     one worker at a time has a share, and with it the transactions that it has claimed.
Shared    ORDER_CLAIMED: added to.  ORDER_TURN: loaded by all, stored by the share whose turn it is.  Slots: 0, then by
          CAS the access that represents a row, for the rest of the ticket.  Record words: see the schemes.
          TRANSACTION_LEFT: in WRITE, all store the same.
I1        a transaction is claimed once.                                    tests: test_every_schedule_of_a_scheme_*
I2        if a scheme goes by turns, `admit` is called in the order of events, by one worker at a time.
                                                                            tests: test_every_schedule_of_a_scheme_*
I3        accesses of one row have one record.  tests: test_accesses_of_one_row_have_one_record_in_every_schedule
I4        of a transaction's accesses to one row one is in the order, the others are REPEATED.
                                                                            tests: test_every_schedule_of_a_scheme_*
Progress  no call waits forever. The first of all unfinished transactions is claimed before all others and waits for
          nothing; its share is free, or some worker is at it.
Order     ORDER_CLAIMED: an atomic add divides the transactions, which COLLECT has written before the phase began
          (chains.py).  ORDER_TURN: loaded (acquire) before anything that is written in turn, stored (release) after.
          Slots: a request is cleared while its row is collected; its access is put by CAS and found by a load
          (acquire), whether the CAS failed or not. TRANSACTION_LEFT: all store 1, and the kernel reads it in a later
          phase.
Source    Zhang et al., TStream (ICDE 2020), section VI-A, for the schemes; claims of several transactions are ours.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    at_add,
    at_cas,
    at_load_acq,
    at_store_rel,
    call2,
    call4,
    clock_ns,
    fill,
    ld_i64,
    pause,
    release,
    sdiv,
    shl,
    shr_u,
    srem,
    st_i64,
    wmul,
)
from cq.runtime.containers.strings import HASH_FACTOR
from cq.runtime.engine.stage import STAGE_CONSTANTS
from cq.runtime.engine.ways.protocol import Making
from cq.runtime.flow.chained import same_row, slots_clear, workers_write, write_row
from cq.runtime.layout.abi import BATCH_ROWS
from cq.runtime.layout.chains import (
    ACCESS_BEFORE,
    ACCESS_ENTRY,
    ACCESS_SAME,
    ACCESS_STATE,
    ACCESS_TAG,
    ACCESS_TRANSACTION,
    CHAINS_BATCH,
    CHAINS_COUNT,
    CHAINS_EVALUATE,
    CHAINS_ORDER,
    CHAINS_OTHER,
    CHAINS_SHARES,
    CHAINS_STAGE,
    CHAINS_STRIDE,
    CHANGED,
    EVALUATE,
    FOUND,
    LATEST,
    REPEATED,
    SHARE_ASKED,
    SHARE_CURSOR,
    SHARE_DONE,
    SHARE_EVENT,
    SHARE_EVENTS,
    SHARE_FIRST,
    SHARE_PROGRAM,
    SHARE_STATE,
    SHARE_STEP,
    SHARE_TURN,
    SHARE_TURNS,
    SHARE_WORDS,
    SLOTS_AT,
    SLOTS_BITS,
    SLOTS_SIZE,
    TRANSACTION_ACCESSES,
    TRANSACTION_COUNT,
    TRANSACTION_LEFT,
    TRANSACTION_OUTCOME,
    UNFIRED,
    WRITE,
)
from cq.runtime.layout.requests import (
    ADMIT,
    CLAIM,
    NOTHING,
    ORDER_ACCESS_BYTES,
    ORDER_ADMIT,
    ORDER_CLAIM_SIZE,
    ORDER_CLAIMED,
    ORDER_FINISH,
    ORDER_IN_TURN,
    ORDER_LOCK_NS,
    ORDER_PARTITION_TABLE,
    ORDER_PARTITIONS,
    ORDER_PROGRAMS,
    ORDER_READY,
    ORDER_SLOTS,
    ORDER_STARTS,
    ORDER_SYNC_NS,
    ORDER_TOTAL,
    ORDER_TURN,
    ORDER_WORDS,
    OVER,
    PARTITION_WORDS,
    READS,
    RECORD_ASKER,
    RECORD_LOCK,
    RECORD_READ,
    RECORD_READERS,
    RECORD_TAIL,
    REQUEST_AT,
    REQUEST_BYTES,
    REQUEST_HELD,
    REQUEST_MODE,
    REQUEST_READ,
    REQUEST_RECORD,
    REQUEST_WAITS,
    RUN,
    WRITES,
)

# How often to look, about 3 us of `pause`: as long as some transactions take. With fewer, a share is given back for a
# wait that is over before a worker comes by again; with more, a worker waits while it could continue another share. Not
# measured.
SPINS = 60
# Transactions per change of turn. Streaming Ledger on two workers, M events a second by LOCK and by PAT: 1.5 and
# 1.1 at 1, 2.0 and 1.8 at 16, 0.8 and 0.9 at 64, where the shares of one ticket are too few.
EVENTS_A_CLAIM = 16


@native("void(i64, i64)", inline=True)
def ask(access: int, mode: int) -> None:
    """The request of an access: READS, WRITES or NOTHING."""
    request = access - REQUEST_BYTES
    st_i64(request, REQUEST_MODE, mode)
    st_i64(request, REQUEST_RECORD, 0)
    st_i64(request, REQUEST_HELD, 0)
    st_i64(request, REQUEST_WAITS, 0)
    st_i64(request, REQUEST_AT, 0)
    st_i64(request, REQUEST_READ, 0)
    st_i64(request, RECORD_ASKER, 0)
    st_i64(request, RECORD_TAIL, 0)
    st_i64(request, RECORD_READERS, 0)
    st_i64(request, RECORD_READ, 0)
    st_i64(request, RECORD_LOCK, 0)


@native("void(i64, i64)", inline=True)
def asked(share: int, transaction: int) -> None:
    """Note that the share has collected a transaction with its accesses."""
    st_i64(share, SHARE_ASKED, ld_i64(share, SHARE_ASKED) + ld_i64(transaction, TRANSACTION_COUNT))


# -- records ---------------------------------------------------------------------------------------------------------


@native("i64(i64)")
def order_begin(chains: int) -> int:
    """Clear all records of rows and all turns and return 1; 0 without memory. By the worker that collected last."""
    order = ld_i64(chains, CHAINS_ORDER)
    asked = 0
    for number in range(ld_i64(chains, CHAINS_COUNT)):
        share = chains + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        asked += ld_i64(share, SHARE_ASKED)
        st_i64(share, SHARE_STEP, CLAIM)
    if slots_clear(order + ORDER_SLOTS * 8, asked) == 0:
        return 0
    fill(ld_i64(order, ORDER_PARTITION_TABLE), 0, ld_i64(order, ORDER_PARTITIONS) * PARTITION_WORDS * 8)
    rows = ld_i64(ld_i64(chains, CHAINS_BATCH), BATCH_ROWS)
    st_i64(order, ORDER_TOTAL, rows * ld_i64(order, ORDER_PROGRAMS))
    at_store_rel(order + ORDER_CLAIMED * 8, 0)
    at_store_rel(order + ORDER_TURN * 8, 0)
    return 1


@native("i64(i64, i64)")
def _record_of(order: int, access: int) -> int:
    """The request of the access that represents its row: this one if there is none yet."""
    bits = ld_i64(order, ORDER_SLOTS + SLOTS_BITS)
    slots = ld_i64(order, ORDER_SLOTS + SLOTS_AT)
    tag = ld_i64(access, ACCESS_TAG)
    slot = shr_u(wmul(tag, HASH_FACTOR), 64 - bits)
    while True:
        first = at_load_acq(slots + slot * 8)
        if first == 0:
            if at_cas(slots + slot * 8, 0, access):
                return access - REQUEST_BYTES
            first = at_load_acq(slots + slot * 8)
        if same_row(first, access, tag) == 1:
            return first - REQUEST_BYTES
        slot = (slot + 1) & ((1 << bits) - 1)


@native("i64(i64)", inline=True)
def is_repeated(access: int) -> int:
    """1 if an access of the same transaction represents the row of this one. By the owner of the record."""
    record = ld_i64(access - REQUEST_BYTES, REQUEST_RECORD)
    asker = ld_i64(record, RECORD_ASKER)
    if asker != 0 and ld_i64(asker, ACCESS_TRANSACTION) == ld_i64(access, ACCESS_TRANSACTION):
        st_i64(access, ACCESS_STATE, REPEATED)
        st_i64(access, ACCESS_SAME, asker)
        return 1
    st_i64(record, RECORD_ASKER, access)
    return 0


@native("void(i64)", inline=True)
def comes_last(access: int) -> None:
    """Put the access after the last writer of its row; if it writes the row, it becomes the last one."""
    request = access - REQUEST_BYTES
    record = ld_i64(request, REQUEST_RECORD)
    st_i64(access, ACCESS_BEFORE, ld_i64(record, RECORD_TAIL))
    if ld_i64(request, REQUEST_MODE) == WRITES:
        st_i64(record, RECORD_TAIL, access)


@native("void(i64, i64)")
def comes_last_everywhere(order: int, transaction: int) -> None:
    """Put the transaction after the last writers of its rows. Among accesses to one row one that writes it comes first:
    it represents the others."""
    size = ld_i64(order, ORDER_ACCESS_BYTES)
    count = ld_i64(transaction, TRANSACTION_COUNT)
    for mode in range(WRITES, READS - 1, -1):
        access = ld_i64(transaction, TRANSACTION_ACCESSES)
        for _ in range(count):
            if ld_i64(access - REQUEST_BYTES, REQUEST_MODE) == mode and is_repeated(access) == 0:
                comes_last(access)
            access += size


# -- a share ---------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64)")
def order_go_on(chains: int, share: int, number: int, phase: int) -> int:
    """Advance a share in a phase after COLLECT and return 1; 0: it has to wait; -1: out of memory.

    SHARE_CURSOR is 0 when the share has finished the phase.
    """
    if phase == EVALUATE:
        return _run_share(chains, share)
    st_i64(share, SHARE_CURSOR, 0)
    if phase == WRITE:
        _write_rows(chains, number)
    return 1


@native("i64(i64, i64)")
def _run_share(chains: int, share: int) -> int:
    """The phase EVALUATE of a share: see `order_go_on`."""
    order = ld_i64(chains, CHAINS_ORDER)
    moved = 0
    on = 1
    while on == 1:
        step = ld_i64(share, SHARE_STEP)
        done = ld_i64(share, SHARE_DONE)
        if step == CLAIM:
            _claim(chains, order, share)
        elif step == ADMIT:
            on = _admitted(chains, order, share)
        elif step == RUN:
            on = _run(chains, order, share)
        else:
            on = 0
        if on == 1 or ld_i64(share, SHARE_DONE) != done:
            moved = 1
    st_i64(share, SHARE_CURSOR, ld_i64(share, SHARE_STEP) - OVER)
    if on < 0:
        moved = -1
    return moved


@native("void(i64, i64)")
def _write_rows(chains: int, number: int) -> None:
    """Write the rows of this share's slots to their tables; those that came in the ticket, and those with texts, are
    left to the kernel."""
    order = ld_i64(chains, CHAINS_ORDER)
    count = ld_i64(chains, CHAINS_COUNT)
    slots = ld_i64(order, ORDER_SLOTS + SLOTS_AT)
    size = shl(1, ld_i64(order, ORDER_SLOTS + SLOTS_BITS))
    for slot in range(sdiv(size * number, count), sdiv(size * (number + 1), count)):
        first = ld_i64(slots, slot)
        if first != 0:
            access = ld_i64(first - REQUEST_BYTES, RECORD_TAIL)
            if access != 0 and ld_i64(access, ACCESS_STATE) & (FOUND | CHANGED) == FOUND | CHANGED:
                if workers_write(access) == 1:
                    write_row(access, ld_i64(access, ACCESS_ENTRY))
                else:
                    st_i64(access, ACCESS_STATE, ld_i64(access, ACCESS_STATE) | LATEST)
                    at_store_rel(ld_i64(access, ACCESS_TRANSACTION) + TRANSACTION_LEFT * 8, 1)


@native("void(i64, i64, i64)")
def _claim(chains: int, order: int, share: int) -> None:
    """Claim the next transactions for the share, with the records of their rows; or none is left."""
    size = ld_i64(order, ORDER_CLAIM_SIZE)
    total = ld_i64(order, ORDER_TOTAL)
    first = at_add(order + ORDER_CLAIMED * 8, size)
    if first >= total:
        st_i64(share, SHARE_STEP, OVER)
        return
    programs = ld_i64(order, ORDER_PROGRAMS)
    stride = ld_i64(chains, CHAINS_STRIDE)
    starts = ld_i64(order, ORDER_STARTS)
    bytes_ = ld_i64(order, ORDER_ACCESS_BYTES)
    event = _first_event(chains) + sdiv(first, programs) * stride
    program = srem(first, programs)
    st_i64(share, SHARE_TURN, first)
    st_i64(share, SHARE_TURNS, min(size, total - first))
    st_i64(share, SHARE_EVENT, event)
    st_i64(share, SHARE_PROGRAM, program)
    st_i64(share, SHARE_DONE, 0)
    st_i64(share, SHARE_STEP, ADMIT)
    for _ in range(ld_i64(share, SHARE_TURNS)):
        transaction = event + ld_i64(starts, program) * 8
        if ld_i64(transaction, TRANSACTION_OUTCOME) != UNFIRED:
            access = ld_i64(transaction, TRANSACTION_ACCESSES)
            for _access in range(ld_i64(transaction, TRANSACTION_COUNT)):
                if ld_i64(access - REQUEST_BYTES, REQUEST_MODE) != NOTHING:
                    st_i64(access - REQUEST_BYTES, REQUEST_RECORD, _record_of(order, access))
                access += bytes_
        program += 1
        if program == programs:
            program = 0
            event += stride


@native("i64(i64)")
def _first_event(chains: int) -> int:
    """The memory of the ticket's first event."""
    share = chains + CHAINS_SHARES * 8
    return ld_i64(share, SHARE_EVENTS) + ld_i64(share, SHARE_FIRST) * ld_i64(chains, CHAINS_STRIDE)


@native("i64(i64, i64, i64)")
def _admitted(chains: int, order: int, share: int) -> int:
    """1 if the share's transactions have their places; 0: not yet."""
    turns = ld_i64(order, ORDER_IN_TURN)
    turn = ld_i64(share, SHARE_TURN)
    if turns == 1 and _turn_comes(order, turn) == 0:
        return 0
    programs = ld_i64(order, ORDER_PROGRAMS)
    stride = ld_i64(chains, CHAINS_STRIDE)
    starts = ld_i64(order, ORDER_STARTS)
    event = ld_i64(share, SHARE_EVENT)
    program = ld_i64(share, SHARE_PROGRAM)
    for _ in range(ld_i64(share, SHARE_TURNS)):
        transaction = event + ld_i64(starts, program) * 8
        if (
            ld_i64(transaction, TRANSACTION_OUTCOME) != UNFIRED
            and _soon(order, transaction, ORDER_ADMIT, ORDER_SYNC_NS) == 0
        ):
            return 0
        program += 1
        if program == programs:
            program = 0
            event += stride
    if turns == 1:
        at_store_rel(order + ORDER_TURN * 8, turn + ld_i64(share, SHARE_TURNS))
    st_i64(share, SHARE_STEP, RUN)
    return 1


@native("i64(i64, i64)")
def _turn_comes(order: int, turn: int) -> int:
    """1 if it is this transaction's turn, now or soon."""
    word = order + ORDER_TURN * 8
    if at_load_acq(word) == turn:
        return 1
    begun = clock_ns()
    spins = 0
    while spins < SPINS and at_load_acq(word) != turn:
        pause()
        spins += 1
    at_add(order + ORDER_SYNC_NS * 8, clock_ns() - begun)
    if at_load_acq(word) == turn:
        return 1
    return 0


@native("i64(i64, i64, i64, i64)")
def _soon(order: int, transaction: int, entry: int, ns: int) -> int:
    """1 if a function of the scheme returns 1 for the transaction, now or soon. ns: the word to add the wait to."""
    function = ld_i64(order, entry)
    if call2(function, order, transaction) == 1:
        return 1
    begun = clock_ns()
    spins = 0
    come = 0
    while spins < SPINS and come == 0:
        pause()
        spins += 1
        come = call2(function, order, transaction)
    at_add(order + ns * 8, clock_ns() - begun)
    return come


@native("i64(i64, i64, i64)")
def _run(chains: int, order: int, share: int) -> int:
    """1 if the share's transactions are done; 0: the next one has to wait; -1: out of memory for it."""
    evaluate = ld_i64(chains, CHAINS_EVALUATE)
    state = ld_i64(share, SHARE_STATE)
    batch = ld_i64(chains, CHAINS_BATCH)
    constants = ld_i64(ld_i64(chains, CHAINS_STAGE), STAGE_CONSTANTS)
    programs = ld_i64(order, ORDER_PROGRAMS)
    starts = ld_i64(order, ORDER_STARTS)
    for done in range(ld_i64(share, SHARE_DONE), ld_i64(share, SHARE_TURNS)):
        event = ld_i64(share, SHARE_EVENT)
        program = ld_i64(share, SHARE_PROGRAM)
        transaction = event + ld_i64(starts, program) * 8
        if ld_i64(transaction, TRANSACTION_OUTCOME) != UNFIRED:
            if _soon(order, transaction, ORDER_READY, ORDER_LOCK_NS) == 0:
                return 0
            st_i64(share, SHARE_CURSOR, transaction)
            if call4(evaluate, state, batch, share, constants) < 0:
                return -1
            call2(ld_i64(order, ORDER_FINISH), order, transaction)
        st_i64(share, SHARE_DONE, done + 1)
        program += 1
        if program == programs:
            program = 0
            st_i64(share, SHARE_EVENT, event + ld_i64(chains, CHAINS_STRIDE))
        st_i64(share, SHARE_PROGRAM, program)
    st_i64(share, SHARE_STEP, CLAIM)
    return 1


@native("i64(i64)")
def order_held_bytes(order: int) -> int:
    """Memory allocated for the rows of a ticket."""
    return ld_i64(order, ORDER_SLOTS + SLOTS_SIZE) * 8


@native("void(i64)")
def order_release(order: int) -> None:
    """Free what it has allocated."""
    release(ld_i64(order, ORDER_SLOTS + SLOTS_AT))


# -- for schemes -----------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def nothing_to_do(order: int, transaction: int) -> int:
    """A step of a scheme that has nothing to do in it."""
    return 1


def build_order(making: Making, chains: int, functions: tuple[int, int, int], in_turn: bool, at_once: bool) -> None:
    """Make what a scheme needs besides the shares. functions: the addresses of `admit`, `ready` and `finish`.

    in_turn: transactions are admitted in the order of events.  at_once: several of them before the first has run.
    """
    plant, spec = making.plant, making.spec
    assert spec.chains is not None, "verify_pipeline has seen to it"
    programs = spec.chains.programs
    order, starts = plant.block(ORDER_WORDS), plant.block(len(programs))
    table = plant.block(PARTITION_WORDS * plant.workers)
    for number, first in enumerate(programs):
        plant.host.set_word(starts, number, first)
    for index, value in (
        *zip((ORDER_ADMIT, ORDER_READY, ORDER_FINISH), functions, strict=True),
        (ORDER_IN_TURN, int(in_turn)),
        (ORDER_CLAIM_SIZE, EVENTS_A_CLAIM * len(programs) if at_once else 1),
        (ORDER_ACCESS_BYTES, spec.chains.access_bytes),
        (ORDER_PROGRAMS, len(programs)),
        (ORDER_STARTS, starts),
        (ORDER_PARTITIONS, plant.workers),
        (ORDER_PARTITION_TABLE, table),
    ):
        plant.host.set_word(order, index, value)
    for those in (chains, plant.host.word(chains, CHAINS_OTHER)):
        plant.host.set_word(those, CHAINS_ORDER, order)
