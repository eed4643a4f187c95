"""PAT: ordered locks of partitions, as in S-Store. There are as many partitions as workers.

In its turn a transaction takes a number in each partition it touches. It runs when its number is up in all of them and
is then alone there; when it is done, the next number is up. The partition of a row is the remainder of its key, or of
the hash of a key of several words.

Roles     the worker that has a transaction's share acts for it. In its turn the transaction takes numbers; while its
          number is up in a partition it owns the record words of the partition's rows.
Shared    PARTITION_TURN: loaded by all, stored by the transaction whose number is up.
          PARTITION_NEXT, PARTITION_LAST: written in turn, handed on by ORDER_TURN.
I1        a transaction reads a row as the last earlier writer of that row has left it.
                                                                    tests: test_every_schedule_of_a_scheme_*
I2        one transaction at a time runs in a partition, in the order of events.
                                                                    tests: test_every_schedule_of_a_scheme_*
Progress  the numbers of the earliest unfinished transaction are up in all its partitions.
Order     a transaction writes its versions, then PARTITION_TURN (release); the holder of the next number loads TURN
          (acquire) before it touches a record or a version of the partition. Numbers are plain words, handed on by
          ORDER_TURN.
Source    Meehan et al., S-Store (VLDB 2015), as PAT in Zhang et al., TStream (ICDE 2020), section VI-A.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_load_acq, at_store_rel, floormod, ld_i64, st_i64
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.engine.ways.chains import register_scheme
from cq.runtime.engine.ways.requests import comes_last_everywhere
from cq.runtime.layout.chains import (
    ACCESS_IMAGE,
    ACCESS_TAG,
    TAG_HASH_MASK,
    TAG_KEY_MASK,
    TAG_KEY_SHIFT,
    TRANSACTION_ACCESSES,
    TRANSACTION_COUNT,
)
from cq.runtime.layout.requests import (
    NOTHING,
    ORDER_ACCESS_BYTES,
    ORDER_PARTITION_TABLE,
    ORDER_PARTITIONS,
    PARTITION_LAST,
    PARTITION_NEXT,
    PARTITION_TURN,
    PARTITION_WORDS,
    REQUEST_AT,
    REQUEST_BYTES,
    REQUEST_HELD,
    REQUEST_MODE,
    REQUEST_WAITS,
)
from cq.ways import Way


@native("i64(i64, i64)")
def _partition_of(order: int, access: int) -> int:
    """The address of the partition of an access's row."""
    tag = ld_i64(access, ACCESS_TAG)
    number = tag & TAG_HASH_MASK
    if (tag >> TAG_KEY_SHIFT) & TAG_KEY_MASK == 1:
        number = ld_i64(access, ACCESS_IMAGE + ENTRY_FIRST)
    number = floormod(number, ld_i64(order, ORDER_PARTITIONS))
    return ld_i64(order, ORDER_PARTITION_TABLE) + number * PARTITION_WORDS * 8


@native("i64(i64, i64)", export=True)
def pat_admit(order: int, transaction: int) -> int:
    """Take a number in each partition the transaction touches, and return 1."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        request = access - REQUEST_BYTES
        if ld_i64(request, REQUEST_MODE) != NOTHING:
            partition = _partition_of(order, access)
            if ld_i64(partition, PARTITION_LAST) != transaction:
                number = ld_i64(partition, PARTITION_NEXT)
                st_i64(partition, PARTITION_LAST, transaction)
                st_i64(partition, PARTITION_NEXT, number + 1)
                st_i64(request, REQUEST_HELD, 1)
                st_i64(request, REQUEST_WAITS, number)
                st_i64(request, REQUEST_AT, partition)
        access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


@native("i64(i64, i64)", export=True)
def pat_ready(order: int, transaction: int) -> int:
    """1 if its numbers are up; it then knows the versions of its rows."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        request = access - REQUEST_BYTES
        if ld_i64(request, REQUEST_HELD) == 1:
            turn = at_load_acq(ld_i64(request, REQUEST_AT) + PARTITION_TURN * 8)
            if turn != ld_i64(request, REQUEST_WAITS):
                return 0
        access += ld_i64(order, ORDER_ACCESS_BYTES)
    comes_last_everywhere(order, transaction)
    return 1


@native("i64(i64, i64)", export=True)
def pat_finish(order: int, transaction: int) -> int:
    """Let the next numbers come up, and return 1."""
    access = ld_i64(transaction, TRANSACTION_ACCESSES)
    for _ in range(ld_i64(transaction, TRANSACTION_COUNT)):
        request = access - REQUEST_BYTES
        if ld_i64(request, REQUEST_HELD) == 1:
            at_store_rel(ld_i64(request, REQUEST_AT) + PARTITION_TURN * 8, ld_i64(request, REQUEST_WAITS) + 1)
        access += ld_i64(order, ORDER_ACCESS_BYTES)
    return 1


register_scheme(Way.PAT, pat_admit, pat_ready, pat_finish, in_turn=True, at_once=True)
