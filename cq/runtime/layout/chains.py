"""The words of transactions that run together: those of a ticket, the rows they name, the shares that workers take.

For each event of a ticket there is a block of memory: for each program a transaction, behind it what it emits and where
the rows are that it names. These are accesses, one behind the other in the memory of the share that collects the event:
as many as the event names, all of one size. Generated code fills them (cq/codegen/collecting.py); the order of
the phases is in cq/runtime/engine/ways/chains.py.
"""

from __future__ import annotations

from cq.runtime.layout.words import Struct, name_words

_transaction = Struct("TRANSACTION")
TRANSACTION_ROW = _transaction.word()  # of the batch
TRANSACTION_PROGRAM = _transaction.word()
TRANSACTION_OUTCOME = _transaction.word()  # UNFIRED, or what the program has come to
TRANSACTION_ACCESSES = _transaction.word()  # -> the first
TRANSACTION_COUNT = _transaction.word()  # of the accesses
TRANSACTION_LEFT = _transaction.word()  # not 0: rows of it are left for the kernel to write
TRANSACTION_VALUES = _transaction.rest()  # the reason of a rejection, or what it emits; then where its accesses are

UNFIRED = -1  # the event is none of the program's: nothing else of the transaction is set

_access = Struct("ACCESS")
ACCESS_BEFORE = _access.word()  # -> the access of an earlier transaction that has the row before, 0: the table has
ACCESS_DONE = _access.word()  # 1: what follows is how the transaction has left the row
ACCESS_TRANSACTION = _access.word()
ACCESS_STATE = _access.word()  # the bits below
ACCESS_ENTRY = _access.word()  # -> where the row is in the table, 0: nowhere, or it came or went in this ticket
# the words of an entry, but a text is its address and its length; where the key has texts, one more word behind them
# says which words begin one, a bit each
ACCESS_IMAGE = _access.rest()

ACCESS_SAME = ACCESS_ENTRY  # of a REPEATED one: -> the first access of the transaction to its row
ACCESS_TAG = ACCESS_IMAGE  # where an entry has one: see below; NO_ROW where a part of the key is NULL

NO_ROW = -1
# there is a row; it is another than the table's; this transaction made or deleted it; no later one of the ticket names
# it; an access before it of the same transaction names it, and has all the rest
FOUND, CHANGED, TURNED, LATEST, REPEATED = 1, 2, 4, 8, 16

# a tag: the hash of the key, as in an entry, then these. Two accesses of one row have the same
TAG_HASH_MASK = 4294967295
TAG_WORDS_SHIFT = 32  # words of an entry
TAG_WORDS_MASK = 4095
TAG_KEY_SHIFT = 44  # words of the key
TAG_KEY_MASK = 255
TAG_KEY_TEXTS = 1 << 52  # the key has texts
TAG_ROW_TEXTS = 1 << 53  # the non-key columns have texts: the kernel alone writes such rows
TAG_TABLE_SHIFT = 54

_chains = Struct("CHAINS")
CHAINS_PHASE = _chains.line()  # a multiple of PHASES, and one of the phases below
CHAINS_FINISHED = _chains.line()  # shares that are through with the phase
CHAINS_FAILED = _chains.line()  # 1: there was no memory
CHAINS_STAGE = _chains.word()
CHAINS_BATCH = _chains.word()
CHAINS_AHEAD = _chains.word()  # 0, or -> its item while that of the other ones is in turn
CHAINS_MEMORY = _chains.word()  # -> memory for events
CHAINS_EVENTS = _chains.word()  # -> the first line of it; a block of some lines for each event
CHAINS_CAPACITY = _chains.word()  # how many, less EVENTS_BEHIND
CHAINS_STRIDE = _chains.word()  # bytes of each
CHAINS_STATE_WORDS = _chains.word()  # of the stage's state
CHAINS_EVENTS_WORD = _chains.word()  # of the state, for the kernel: where the blocks are
CHAINS_BEGIN = _chains.word()  # -> generated functions
CHAINS_COLLECT = _chains.word()
CHAINS_EVALUATE = _chains.word()
CHAINS_COUNT = _chains.word()  # shares: a power of two
CHAINS_ROUNDS = _chains.word()  # -> for each worker: -> its round: how many shares it looks at, then which, in order
CHAINS_OWNED = _chains.word()  # 1: a share is one worker's alone, which is woken when it may go on
CHAINS_OTHER = _chains.word()  # -> those of the next ticket, and of the one before
CHAINS_HELD_BYTES = _chains.word()  # by these and their shares, when last weighed
CHAINS_PACE = _chains.word()  # 0, or -> what adapts how many events a punctuation has (cq/runtime/engine/ways/pace.py)
CHAINS_BEGUN_NS = _chains.word()  # when the ticket was taken, where they adapt
CHAINS_ORDER = _chains.word()  # 0, or -> how transactions take their place (cq/runtime/layout/requests.py)
_chains.align()
CHAINS_SHARES = _chains.rest()  # SHARE_WORDS each

# what is done next: by the one in turn in NO_PHASE and READY, by whoever takes a share in the others
NO_PHASE, COLLECT, LINK, READY, EVALUATE, WRITE = 0, 1, 2, 3, 4, 5
PHASES = 8

_slots = Struct("SLOTS")  # a table of accesses by tag
SLOTS_AT = _slots.word()  # -> a word each: an access, or 0
SLOTS_BITS = _slots.word()  # by which they are numbered
SLOTS_SIZE = _slots.word()  # there is memory for
SLOTS_WORDS = _slots.size()

_array = Struct("ARRAY")  # that grows
ARRAY_AT = _array.word()  # -> the first item
ARRAY_COUNT = _array.word()  # of the items
ARRAY_SIZE = _array.word()  # there is memory for
ARRAY_WORDS = _array.size()

_share = Struct("SHARE")
SHARE_LOCK = _share.line()  # 2 * phase: free; 1 more: a worker has it. All look at it, the others are one worker's
# -> where in the queue the transaction to go on with stands, or 0: all are done. Where transactions take their place as
# they run, -> the transaction
SHARE_CURSOR = _share.word()
SHARE_QUEUE = _share.words(ARRAY_WORDS)  # transactions in the order of their events, then QUEUE_END zeros
SHARE_FIRST = _share.word()  # rows of the batch
SHARE_END = _share.word()
SHARE_EVENTS = _share.word()  # as CHAINS_EVENTS
SHARE_MASK = _share.word()  # CHAINS_COUNT - 1
SHARE_LISTS = _share.word()  # -> for each share, what is for it: LIST_WORDS each
SHARE_SLOTS = _share.words(SLOTS_WORDS)  # accesses by tag, the latest of each row
SHARE_STATE = _share.word()  # -> words as the stage's state has them, with step memory and results of their own
SHARE_ROOM = _share.word()  # -> where the next accesses can be
SHARE_ROOM_END = _share.word()
SHARE_BLOCK = _share.word()  # -> the block that this is in: the one before, its bytes; 0 where there is none
SHARE_ASKED = _share.word()  # accesses that its transactions ask for (cq/runtime/layout/requests.py)
SHARE_STEP = _share.word()  # of the transactions it has claimed
SHARE_TURN = _share.word()  # the number of the first one it has claimed
SHARE_TURNS = _share.word()  # how many it has claimed
SHARE_EVENT = _share.word()  # -> the event of the next one of these
SHARE_PROGRAM = _share.word()  # and which of its transactions it is
SHARE_DONE = _share.word()  # how many of them are done
SHARE_WORDS = _share.lines()

_list = Struct("LIST")
LIST_TRANSACTIONS = _list.words(ARRAY_WORDS)
LIST_ACCESSES = _list.words(ARRAY_WORDS)  # LISTED_WORDS each
LIST_WORDS = _list.lines()

_listed = Struct("LISTED")
LISTED_ACCESS = _listed.word()
LISTED_TAG = _listed.word()  # ACCESS_TAG: who links finds the row before the access has come from another cache
LISTED_WORDS = _listed.size()

# Events that the kernel looks ahead, to fetch rows that come or go; behind those of a ticket is memory for so many.
# With it, handing on an event of Toll Processing took 100 ns instead of 128. With less, lines from another core come
# too late; with more, they may be gone again, and a ticket takes more memory. Other distances were not measured.
EVENTS_BEHIND = 6
QUEUE_END = 8  # who evaluates a transaction may look at those up to so many turns later

name_words(globals())
