"""LOCK: ordered strict two-phase locking, with a queue for each row of the ticket.

In its turn a transaction joins the queues of all its rows; then the next one may. It runs when it is at the head of all
of them, and leaves them when it is done. Readers with no writer between them are at the head together. The queue of a
row is its writers, each linked to the one before it, with a count of the readers after it: a reader waits for the
writer before it, a writer for that writer and its readers, who count themselves out at the writer.

Roles     the worker that has a transaction's share acts for it; in its turn it owns all record words.
Shared    ACCESS_DONE: stored by a writer when it is done.  REQUEST_READ, RECORD_READ: added to by readers when done.
          All other words of requests and records: written in turn, handed on by ORDER_TURN.
I1        a transaction reads a row as the last earlier writer of that row has left it.
                                                                    tests: test_every_schedule_of_a_scheme_*
I2        a writer is alone in its row: readers before it are done.
                                                                    tests: test_a_writer_waits_for_the_readers_before_it
Progress  of all transactions that have joined the first one is at the head of its queues.
Order     a version is written, then ACCESS_DONE = 1 (release); a waiting worker loads DONE (acquire), then the version.
          A reader counts itself out by an atomic add after its last use of the row; the next writer loads the count
          (acquire) before it counts as ready. What is written in turn is handed on by ORDER_TURN (requests.py).
Source    Wang et al. (2012) as LOCK in Zhang et al., TStream (ICDE 2020), section VI-A.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_add, at_load_acq, ld_i64, st_i64
from cq.runtime.engine.ways.chains import register_scheme
from cq.runtime.engine.ways.requests import comes_last, is_repeated
from cq.runtime.layout.chains import ACCESS_BEFORE, ACCESS_DONE, TRANSACTION_ACCESSES, TRANSACTION_COUNT
from cq.runtime.layout.requests import (
    ORDER_ACCESS_BYTES,
    READS,
    RECORD_READ,
    RECORD_READERS,
    RECORD_TAIL,
    REQUEST_AT,
    REQUEST_BYTES,
    REQUEST_MODE,
    REQUEST_READ,
    REQUEST_RECORD,
    REQUEST_WAITS,
    WRITES,
)
from cq.ways import Way


@native("void(i64)", inline=True)
def _join(access: int) -> None:
    """Add the access to the queue of its row."""
    request = access - REQUEST_BYTES
    record = ld_i64(request, REQUEST_RECORD)
    tail = ld_i64(record, RECORD_TAIL)
    read = record + RECORD_READ * 8
    if tail != 0:
        read = tail - REQUEST_BYTES + REQUEST_READ * 8
    st_i64(request, REQUEST_AT, read)
    if ld_i64(request, REQUEST_MODE) == WRITES:
        st_i64(request, REQUEST_WAITS, ld_i64(record, RECORD_READERS))
        st_i64(record, RECORD_READERS, 0)
    else:
        st_i64(record, RECORD_READERS, ld_i64(record, RECORD_READERS) + 1)
    comes_last(access)


@native("i64(i64, i64)", export=True)
def lock_admit(order: int, transaction: int) -> int:
    """Add the transaction to the queues of its rows, as a writer of those it may write, and return 1."""
    for mode in range(WRITES, READS - 1, -1):
        access = ld_i64(transaction, TRANSACTION_ACCESSES)
        for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
            if ld_i64(access - REQUEST_BYTES, REQUEST_MODE) == mode and is_repeated(access) == 0:
                _join(access)
            access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


@native("i64(i64, i64)", export=True)
def lock_ready(order: int, transaction: int) -> int:
    """1 if it is at the head of its queues."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        request = access - REQUEST_BYTES
        before = ld_i64(access, ACCESS_BEFORE)
        if before != 0 and at_load_acq(before + ACCESS_DONE * 8) == 0:
            return 0
        waits = ld_i64(request, REQUEST_WAITS)
        if waits > 0 and at_load_acq(ld_i64(request, REQUEST_AT)) < waits:
            return 0
        access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


@native("i64(i64, i64)", export=True)
def lock_finish(order: int, transaction: int) -> int:
    """Leave its queues and return 1; as a writer it has left them already when it was done."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        request = access - REQUEST_BYTES
        if ld_i64(request, REQUEST_MODE) == READS and ld_i64(request, REQUEST_AT) != 0:
            at_add(ld_i64(request, REQUEST_AT), 1)
        access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


register_scheme(Way.LOCK, lock_admit, lock_ready, lock_finish, in_turn=True, at_once=True)
