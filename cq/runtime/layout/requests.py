"""The words of transactions that ask for rows while they run, and of what gives each its place in the order.

An access is preceded by a request. The first access of a ticket that names a row stands for the row: its request holds
the words of the record. Who may write which word, and when, is said by the scheme (cq/runtime/engine/ways).
"""

from __future__ import annotations

from cq.runtime.layout.chains import SLOTS_WORDS
from cq.runtime.layout.words import Struct, name_words

_request = Struct("REQUEST")
REQUEST_MODE = _request.word()  # READS, WRITES or NOTHING
REQUEST_RECORD = _request.word()  # -> the request of the access that stands for the row
REQUEST_HELD = _request.word()  # 1: what is to be given back when the transaction is done
REQUEST_WAITS = _request.word()  # what has to stand in the word it waits for
REQUEST_AT = _request.word()  # -> that word, or 0
REQUEST_READ = _request.word()  # readers of what the access has written that are done
RECORD_ASKER = _request.word()  # -> the last access that asks for the row, the first of its transaction
RECORD_TAIL = _request.word()  # -> the last access that writes the row, or 0: the table has it
RECORD_READERS = _request.word()  # readers behind it
RECORD_READ = _request.word()  # readers of the table's row that are done
RECORD_LOCK = _request.word()  # readers inside; -1: a writer is
REQUEST_WORDS = _request.size()
REQUEST_BYTES = 8 * REQUEST_WORDS

READS, WRITES, NOTHING = 0, 1, 2  # the transaction may change the row; the access has no row

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
ORDER_SLOTS = _order.words(SLOTS_WORDS)  # accesses that stand for rows, by tag
ORDER_PARTITIONS = _order.word()
ORDER_PARTITION_TABLE = _order.word()  # -> PARTITION_WORDS each
ORDER_SYNC_NS = _order.line()  # spent waiting for a turn; for metrics
ORDER_LOCK_NS = _order.word()  # spent waiting for rows
ORDER_WORDS = _order.lines()

_partition = Struct("PARTITION")
PARTITION_TURN = _partition.line()  # the number of the transaction that may be inside
PARTITION_NEXT = _partition.line()  # the number that the next one to ask will have
PARTITION_LAST = _partition.word()  # -> the last transaction that has asked
PARTITION_WORDS = _partition.lines()

name_words(globals())
