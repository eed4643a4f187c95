"""NOLOCK: an upper bound. Transactions read rows as they find them, in any order, and overwrite each other's writes.

It does the same work as the other schemes except for taking turns and waiting. Its result depends on timing, so it is
only for measurements: `explain` says so, and `cq diff` refuses to compare it.

Roles     the worker that has a transaction's share acts for it.
Shared    RECORD_TAIL: loaded when a transaction begins and stored when it is done, so no half-written row is read.
          RECORD_ASKER: loaded and stored by all.
I1        a transaction finds a row as exactly one other transaction has left it.
                                                                    tests: test_every_schedule_without_locks_is_safe
Progress  no transaction waits.
Order     a transaction writes its versions, then RECORD_TAIL (release); a later one loads TAIL (acquire), then the
          version. The load and the store of one transaction are not one step: that is what the scheme leaves out. Two
          transactions that ask together may both see themselves as RECORD_ASKER of a row, each for its own accesses.
Source    No-Lock in Zhang et al., TStream (ICDE 2020), section VI-A.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_load_acq, at_store_rel, ld_i64, st_i64
from cq.runtime.engine.ways.chains import register_scheme
from cq.runtime.engine.ways.requests import nothing_to_do
from cq.runtime.layout.chains import (
    ACCESS_BEFORE,
    ACCESS_SAME,
    ACCESS_STATE,
    ACCESS_TRANSACTION,
    REPEATED,
    TRANSACTION_ACCESSES,
    TRANSACTION_COUNT,
)
from cq.runtime.layout.requests import (
    ORDER_ACCESS_BYTES,
    READS,
    RECORD_ASKER,
    RECORD_TAIL,
    REQUEST_BYTES,
    REQUEST_HELD,
    REQUEST_MODE,
    REQUEST_RECORD,
    WRITES,
)
from cq.ways import Way


@native("i64(i64)")
def _is_repeated(access: int) -> int:
    """1 if an access of the same transaction represents the row of this one; others may get in between."""
    asker = ld_i64(access - REQUEST_BYTES, REQUEST_RECORD) + RECORD_ASKER * 8
    last = at_load_acq(asker)
    if last != 0 and ld_i64(last, ACCESS_TRANSACTION) == ld_i64(access, ACCESS_TRANSACTION):
        st_i64(access, ACCESS_STATE, REPEATED)
        st_i64(access, ACCESS_SAME, last)
        return 1
    at_store_rel(asker, access)
    return 0


@native("i64(i64, i64)", export=True)
def nolock_ready(order: int, transaction: int) -> int:
    """Take the current versions of its rows and return 1."""
    for mode in range(WRITES, READS - 1, -1):
        access = ld_i64(transaction, TRANSACTION_ACCESSES)
        for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
            request = access - REQUEST_BYTES
            if ld_i64(request, REQUEST_MODE) == mode and _is_repeated(access) == 0:
                st_i64(access, ACCESS_BEFORE, at_load_acq(ld_i64(request, REQUEST_RECORD) + RECORD_TAIL * 8))
                st_i64(request, REQUEST_HELD, mode)
            access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


@native("i64(i64, i64)", export=True)
def nolock_finish(order: int, transaction: int) -> int:
    """Make its versions the current ones of its rows and return 1."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        request = access - REQUEST_BYTES
        if ld_i64(request, REQUEST_HELD) == WRITES:
            at_store_rel(ld_i64(request, REQUEST_RECORD) + RECORD_TAIL * 8, access)
        access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


register_scheme(Way.NOLOCK, nothing_to_do, nolock_ready, nolock_finish, in_turn=False, at_once=True)
