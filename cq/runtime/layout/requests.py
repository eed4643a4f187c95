"""The words of transactions that request rows while they run, and of what gives each its place in the order.

An access is preceded by a request. The first access of a ticket that names a row represents the row: its request holds
the words of the record. The scheme (cq/runtime/engine/ways) defines who may write which word, and when.
"""

from __future__ import annotations

from cq.runtime.layout.chains import SLOTS_WORDS
from cq.runtime.layout.words import Struct, name_words

_request = Struct("REQUEST")
REQUEST_MODE = _request.word()  # READS, WRITES or NOTHING
REQUEST_RECORD = _request.word()  # -> the request of the access that represents the row
REQUEST_HELD = _request.word()  # 1: to be released when the transaction is done
REQUEST_WAITS = _request.word()  # the value that it waits for in a word
REQUEST_AT = _request.word()  # -> that word, or 0
REQUEST_READ = _request.word()  # finished readers of what the access has written
RECORD_ASKER = _request.word()  # -> the last access that requests the row, the first of its transaction
RECORD_TAIL = _request.word()  # -> the last access that writes the row, or 0: the table has it
RECORD_READERS = _request.word()  # readers after it
RECORD_READ = _request.word()  # finished readers of the table's row
RECORD_LOCK = _request.word()  # readers inside; -1: a writer is
REQUEST_WORDS = _request.size()
REQUEST_BYTES = 8 * REQUEST_WORDS

READS, WRITES, NOTHING = 0, 1, 2  # READS; the transaction may change the row; the access has no row

CLAIM, ADMIT, RUN, OVER = 0, 1, 2, 3  # SHARE_STEP

_order = Struct("ORDER")
ORDER_CLAIMED = _order.line()  # transactions of the ticket that shares have claimed
ORDER_TURN = _order.line()  # the number of the next one to take its place
ORDER_ADMIT = _order.line()  # -> functions of the scheme
ORDER_READY = _order.word()
ORDER_FINISH = _order.word()
ORDER_IN_TURN = _order.word()  # 1: transactions take their places one after the other
ORDER_CLAIM_SIZE = _order.word()  # how many transactions are claimed together
ORDER_TOTAL = _order.word()  # transactions of the ticket
ORDER_ACCESS_BYTES = _order.word()
ORDER_PROGRAMS = _order.word()  # transactions of an event
ORDER_STARTS = _order.word()  # -> the word of an event at which each begins
ORDER_SLOTS = _order.words(SLOTS_WORDS)  # accesses that represent rows, by tag
ORDER_PARTITIONS = _order.word()
ORDER_PARTITION_TABLE = _order.word()  # -> PARTITION_WORDS each
ORDER_SYNC_NS = _order.line()  # spent waiting for a turn; for metrics
ORDER_LOCK_NS = _order.word()  # spent waiting for rows
ORDER_WORDS = _order.lines()

_partition = Struct("PARTITION")
PARTITION_TURN = _partition.line()  # the number of the transaction that may be inside
PARTITION_NEXT = _partition.line()  # the number of the next one to request it
PARTITION_LAST = _partition.word()  # -> the last transaction that requested it
PARTITION_WORDS = _partition.lines()

name_words(globals())
