"""LOCK_A: ordered locking as TStream's own program does it: a turn ends when all locks are held.

The lock of a row is a word: free, a writer inside, or a number of readers. In its turn a transaction takes the locks of
its rows one by one; while it waits for one, all later transactions wait too. It is a baseline for measurements.

Roles     the worker that has a transaction's share acts for it; only the transaction whose turn it is takes locks.
Shared    RECORD_LOCK: taken in turn, released by its holder.
          All other words of requests and records: written in turn, handed on by ORDER_TURN.
I1        a transaction reads a row as the last earlier writer of that row has left it.
                                                                    tests: test_every_schedule_of_a_scheme_*
I2        a lock is released once for each time it was taken.
                                                           tests: test_a_lock_is_held_until_its_transaction_is_done
Progress  only transactions earlier than the one whose turn it is hold locks, and they wait for nothing.
Order     RECORD_LOCK is loaded (acquire) before the row's version, and given back by a release, or an atomic add, after
          the last use. Taking needs no CAS: only the transaction in turn takes, and others can but make it freer. In
          between ORDER_TURN hands on all words that are written in turn.
Source    Zhang et al., TStream (ICDE 2020), and its artefact: `LA_LOCK`, a lock_ratio spin inside the ordered region.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_add, at_load_acq, at_store_rel, ld_i64, st_i64
from cq.runtime.engine.ways.chains import register_scheme
from cq.runtime.engine.ways.requests import comes_last, is_repeated, nothing_to_do
from cq.runtime.layout.chains import ACCESS_TRANSACTION, TRANSACTION_ACCESSES, TRANSACTION_COUNT
from cq.runtime.layout.requests import (
    ORDER_ACCESS_BYTES,
    READS,
    RECORD_ASKER,
    RECORD_LOCK,
    REQUEST_BYTES,
    REQUEST_HELD,
    REQUEST_MODE,
    REQUEST_RECORD,
    WRITES,
)
from cq.ways import Way

FREE, WRITER = 0, -1
HELD, NOT_NEEDED = 1, 2  # REQUEST_HELD; another access of the transaction holds the lock


@native("i64(i64)")
def _take(access: int) -> int:
    """1 if the transaction now holds the lock of the row; 0: others do."""
    request = access - REQUEST_BYTES
    record = ld_i64(request, REQUEST_RECORD)
    asker = ld_i64(record, RECORD_ASKER)
    if asker != 0 and ld_i64(asker, ACCESS_TRANSACTION) == ld_i64(access, ACCESS_TRANSACTION):
        st_i64(request, REQUEST_HELD, NOT_NEEDED)
        return is_repeated(access)
    inside = at_load_acq(record + RECORD_LOCK * 8)
    if ld_i64(request, REQUEST_MODE) == WRITES:
        if inside != FREE:
            return 0
        at_store_rel(record + RECORD_LOCK * 8, WRITER)
    else:
        if inside == WRITER:
            return 0
        at_add(record + RECORD_LOCK * 8, 1)
    st_i64(request, REQUEST_HELD, HELD)
    st_i64(record, RECORD_ASKER, access)
    comes_last(access)
    return 1


@native("i64(i64, i64)", export=True)
def lock_a_admit(order: int, transaction: int) -> int:
    """1 if the transaction now holds all its locks; 0: it holds some, and continues from there."""
    for mode in range(WRITES, READS - 1, -1):
        access = ld_i64(transaction, TRANSACTION_ACCESSES)
        for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
            request = access - REQUEST_BYTES
            wanted = ld_i64(request, REQUEST_MODE) == mode and ld_i64(request, REQUEST_HELD) == 0
            if wanted and _take(access) == 0:
                return 0
            access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


@native("i64(i64, i64)", export=True)
def lock_a_finish(order: int, transaction: int) -> int:
    """Release all its locks and return 1."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        request = access - REQUEST_BYTES
        if ld_i64(request, REQUEST_HELD) == HELD:
            lock = ld_i64(request, REQUEST_RECORD) + RECORD_LOCK * 8
            if ld_i64(request, REQUEST_MODE) == WRITES:
                at_store_rel(lock, FREE)
            else:
                at_add(lock, -1)
        access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


register_scheme(Way.LOCK_A, lock_a_admit, nothing_to_do, lock_a_finish, in_turn=True, at_once=False)
