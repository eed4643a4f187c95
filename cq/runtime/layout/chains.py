"""The words of transactions that run together: a ticket's transactions, the rows they name, the workers' shares.

For each event of a ticket there is a block of memory: for each program a transaction, followed by the rows it emits and
the places of the rows it names. These are accesses, contiguous in the memory of the share that collects the event: as
many as the event names, all of one size. Generated code fills them (cq/codegen/collecting.py); the order of the phases
is in cq/runtime/engine/ways/chains.py.
"""

from __future__ import annotations

from cq.runtime.layout.words import Struct, name_words

_transaction = Struct("TRANSACTION")
TRANSACTION_ROW = _transaction.word()  # of the batch
TRANSACTION_PROGRAM = _transaction.word()
TRANSACTION_OUTCOME = _transaction.word()  # UNFIRED, or the program's outcome
TRANSACTION_ACCESSES = _transaction.word()  # -> the first
TRANSACTION_COUNT = _transaction.word()  # of the accesses
TRANSACTION_LEFT = _transaction.word()  # not 0: some of its rows are left for the kernel to write
TRANSACTION_VALUES = _transaction.rest()  # the reason of a rejection, or the emitted rows; then places of accesses

UNFIRED = -1  # the program does not run for the event: nothing else of the transaction is set

_access = Struct("ACCESS")
ACCESS_BEFORE = _access.word()  # -> the access of the previous transaction with the row, 0: the table has it
ACCESS_DONE = _access.word()  # 1: the rest is the row as the transaction has left it
ACCESS_TRANSACTION = _access.word()
ACCESS_STATE = _access.word()  # the bits below
ACCESS_ENTRY = _access.word()  # -> where the row is in the table, 0: nowhere, or it came or went in this ticket
# the words of an entry, but a text is its address and its length; if the key has texts, one more word after them
# has a bit for each word that begins one
ACCESS_IMAGE = _access.rest()

ACCESS_SAME = ACCESS_ENTRY  # in a REPEATED one: -> the transaction's first access to its row
ACCESS_TAG = ACCESS_IMAGE  # where an entry has one: see below; NO_ROW if a part of the key is NULL

NO_ROW = -1
# there is a row; it differs from the table's; this transaction made or deleted it; no later one of the ticket names
# it; an access before it of the same transaction names it, and has all the rest
FOUND, CHANGED, TURNED, LATEST, REPEATED = 1, 2, 4, 8, 16

# a tag: the hash of the key, as in an entry, then these. Accesses of one row have equal tags
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
CHAINS_FINISHED = _chains.line()  # shares that have finished the phase
CHAINS_FAILED = _chains.line()  # 1: there was no memory
CHAINS_STAGE = _chains.word()
CHAINS_BATCH = _chains.word()
CHAINS_AHEAD = _chains.word()  # 0, or -> its item while the item of the other chains is in turn
CHAINS_MEMORY = _chains.word()  # -> memory for events
CHAINS_EVENTS = _chains.word()  # -> its first cache line; a block of some lines for each event
CHAINS_CAPACITY = _chains.word()  # number of blocks, less EVENTS_BEHIND
CHAINS_STRIDE = _chains.word()  # bytes of each
CHAINS_STATE_WORDS = _chains.word()  # of the stage's state
CHAINS_EVENTS_WORD = _chains.word()  # the word of the state with the place of the blocks, for the kernel
CHAINS_BEGIN = _chains.word()  # -> generated functions
CHAINS_COLLECT = _chains.word()
CHAINS_EVALUATE = _chains.word()
CHAINS_COUNT = _chains.word()  # shares: a power of two
CHAINS_ROUNDS = _chains.word()  # -> for each worker: -> its round: how many shares it visits, then which, in order
CHAINS_OWNED = _chains.word()  # 1: each share has only one worker, which is woken when it may go on
CHAINS_OTHER = _chains.word()  # -> the chains of the next ticket, and of the previous one
CHAINS_HELD_BYTES = _chains.word()  # by these and their shares, when last measured
CHAINS_PACE = _chains.word()  # 0, or -> what adapts the length of punctuations (cq/runtime/engine/ways/pace.py)
CHAINS_BEGUN_NS = _chains.word()  # when the ticket was taken, if they adapt
CHAINS_ORDER = _chains.word()  # 0, or -> how transactions take their places (cq/runtime/layout/requests.py)
_chains.align()
CHAINS_SHARES = _chains.rest()  # SHARE_WORDS each

# the next step: for the worker in turn in NO_PHASE and READY, for any worker that takes a share in the others
NO_PHASE, COLLECT, LINK, READY, EVALUATE, WRITE = 0, 1, 2, 3, 4, 5
PHASES = 8

_slots = Struct("SLOTS")  # a table of accesses by tag
SLOTS_AT = _slots.word()  # -> a word each: an access, or 0
SLOTS_BITS = _slots.word()  # bits of a slot number
SLOTS_SIZE = _slots.word()  # that there is memory for
SLOTS_WORDS = _slots.size()

_array = Struct("ARRAY")  # that grows
ARRAY_AT = _array.word()  # -> the first item
ARRAY_COUNT = _array.word()  # of the items
ARRAY_SIZE = _array.word()  # that there is memory for
ARRAY_WORDS = _array.size()

_share = Struct("SHARE")
SHARE_LOCK = _share.line()  # 2 * phase: free; 1 more: a worker has it. All read this word, one worker the others
# -> the place in the queue of the transaction to continue with, or 0: all are done. If transactions take their places
# as they run, -> the transaction
SHARE_CURSOR = _share.word()
SHARE_QUEUE = _share.words(ARRAY_WORDS)  # transactions in the order of their events, then QUEUE_END zeros
SHARE_FIRST = _share.word()  # rows of the batch
SHARE_END = _share.word()
SHARE_EVENTS = _share.word()  # as CHAINS_EVENTS
SHARE_MASK = _share.word()  # CHAINS_COUNT - 1
SHARE_LISTS = _share.word()  # -> lists for each share: LIST_WORDS each
SHARE_SLOTS = _share.words(SLOTS_WORDS)  # accesses by tag, the latest of each row
SHARE_STATE = _share.word()  # -> words as the stage's state has them, with step memory and results of their own
SHARE_ROOM = _share.word()  # -> room for the next accesses
SHARE_ROOM_END = _share.word()
SHARE_BLOCK = _share.word()  # -> the block of this room: the previous block, its bytes; 0 if there is none
SHARE_ASKED = _share.word()  # accesses that its transactions request (cq/runtime/layout/requests.py)
SHARE_STEP = _share.word()  # of the transactions it has claimed
SHARE_TURN = _share.word()  # the number of the first one it has claimed
SHARE_TURNS = _share.word()  # how many it has claimed
SHARE_EVENT = _share.word()  # -> the event of the next one of these
SHARE_PROGRAM = _share.word()  # which of that event's transactions it is
SHARE_DONE = _share.word()  # how many of them are done
SHARE_WORDS = _share.lines()

_list = Struct("LIST")
LIST_TRANSACTIONS = _list.words(ARRAY_WORDS)
LIST_ACCESSES = _list.words(ARRAY_WORDS)  # LISTED_WORDS each
LIST_WORDS = _list.lines()

_listed = Struct("LISTED")
LISTED_ACCESS = _listed.word()
LISTED_TAG = _listed.word()  # ACCESS_TAG: linking finds the row before the access has come from another cache
LISTED_WORDS = _listed.size()

# How many events the kernel looks ahead, to fetch rows that come or go; a ticket's memory has room for this many more.
# With it, delivering an event of Toll Processing took 100 ns instead of 128. With less, lines from another core come
# too late; with more, they may be gone again, and a ticket takes more memory. Other distances were not measured.
EVENTS_BEHIND = 6
QUEUE_END = 8  # evaluating a transaction may look at those up to this many places later

name_words(globals())
