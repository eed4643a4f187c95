"""MVLK: multi-version locking. A transaction waits for the versions it needs, and for no readers.

In its turn a transaction notes for each row the last earlier writer of the row; for rows it writes it becomes the last
one. That is the version with the largest time below its own, and the low-water mark of the row, the smallest unfinished
writer, has passed the transaction when that writer is done: writers of a row wait for one another. As every version is
stored with the transaction that made it, a writer overwrites nothing that a reader may still need. Versions are freed
with their ticket.

Roles     the worker that has a transaction's share acts for it; in its turn it owns all record words.
Shared    ACCESS_DONE: stored by a writer when its version is there.
          All other words of requests and records: written in turn, handed on by ORDER_TURN.
I1        a transaction reads a row as the last earlier writer of that row has left it.
                                                                    tests: test_every_schedule_of_a_scheme_*
Progress  of all transactions that are not done the first one waits for none.
Order     a version is written, then ACCESS_DONE = 1 (release); a reader loads DONE (acquire) first. What is written
          in turn is handed on by ORDER_TURN (requests.py).
Source    Wang et al. (2011) as MVLK in Zhang et al., TStream (ICDE 2020), section VI-A; there the mark is a word.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64
from cq.runtime.engine.ways.chains import register_scheme
from cq.runtime.engine.ways.requests import comes_last_everywhere, nothing_to_do
from cq.runtime.flow.chained import transaction_ready
from cq.runtime.layout.requests import ORDER_ACCESS_BYTES
from cq.ways import Way


@native("i64(i64, i64)", export=True)
def mvlk_admit(order: int, transaction: int) -> int:
    """Make its versions the next ones of the rows it writes, and return 1."""
    comes_last_everywhere(order, transaction)
    return 1


@native("i64(i64, i64)", export=True)
def mvlk_ready(order: int, transaction: int) -> int:
    """1 if the versions it reads are there."""
    return transaction_ready(transaction, ld_i64(order, ORDER_ACCESS_BYTES))


register_scheme(Way.MVLK, mvlk_admit, mvlk_ready, nothing_to_do, in_turn=True, at_once=True)
