"""The words of what splits tickets into lanes, of a split, and of a lane's record of a split.

cq/runtime/flow/split.py explains how they work together.
"""

from __future__ import annotations

from cq.runtime.layout.abi import BATCH_WORDS, STATE_FIRST_FREE
from cq.runtime.layout.words import Struct

PARTITIONS = 256  # virtual: more than lanes, so that load can be moved between lanes in small portions
PARTITION_MASK = PARTITIONS - 1
NO_LANE = 255  # more than there are

_lanes = Struct("LANES")
LANES_COUNT = _lanes.word()
LANES_BRANCHES = _lanes.word()  # each has an equal number of lanes, one branch after the other
LANES_TURNS = _lanes.word()  # the turns of a row's results are below this
LANES_INPUTS = _lanes.word()  # ports of the items
LANES_ROUTE = _lanes.word()  # -> u8[branches][PARTITIONS]: the lane of a virtual partition
LANES_ENTRY = _lanes.word()  # the stage's function that hashes keys
LANES_HYBRID = _lanes.word()
LANES_TASKS = _lanes.word()  # -> one task a lane
LANES_SPLITS = _lanes.word()  # pool of idle splits
LANES_SPREAD = _lanes.word()  # reorder buffer of splits to be added to the hybrid queue
LANES_MERGED = _lanes.word()  # reorder buffer of splits to be sent
LANES_DEPOTS = _lanes.word()  # -> one a port: parcels of merged rows
LANES_SENDS_ON = _lanes.word()  # 1: the one port leads to another stage
LANES_WORDS = _lanes.lines()

_split = Struct("SPLIT")
SPLIT_LEFT = _split.line()  # shared
SPLIT_ITEM = _split.word()
SPLIT_TICKET = _split.word()
SPLIT_STATUS = _split.word()  # DONE, or ERROR when the ticket fails
SPLIT_FAILED = _split.word()  # -> words like a state's, that show the failure
SPLIT_NEXT = _split.word()  # next lane to be added to the hybrid queue
SPLIT_FIRST = _split.word()  # list of merged parcels
SPLIT_LAST = _split.word()
_split.align()
SPLIT_HASHES_ROOM = _split.word()
SPLIT_HASHES = _split.word()  # -> u32 a row of a segment; for several ports one of each, port by port
SPLIT_LANE_OF_ROOM = _split.word()
SPLIT_LANE_OF = _split.word()  # -> u8 a row, in ticket order, branch by branch; NO_LANE if the branch does not read it
SPLIT_SELECTION_ROOM = _split.word()
SPLIT_SELECTION = _split.word()  # -> i32 a row of a lane: its number, lane by lane; for several ports i64: SHARE_*
SPLIT_SEGMENTS_ROOM = _split.word()
SPLIT_SEGMENTS = _split.word()
SPLIT_MIXED_ROOM = _split.word()
SPLIT_MIXED = _split.word()  # -> i64 a row of a branch: BATCH_MIXED of shares, branch by branch, port by port, by lane
SPLIT_PORTS_ROOM = _split.word()
SPLIT_PORTS = _split.word()  # -> for several ports the range of each, and a word a lane (cq/runtime/flow/shares.py)
SPLIT_PLACES = _split.word()  # -> one word a lane: where its next row goes in SELECTION
SPLIT_RECORDS = _split.word()  # -> one record a lane
SPLIT_ORDER_ROOM = _split.word()  # cq/runtime/flow/merged_lanes.py
SPLIT_ORDER = _split.word()
SPLIT_OWN_FAILURE = _split.word()  # -> words like a state's
SPLIT_POSITIONS = _split.word()  # -> room for two positions
SPLIT_HOME = _split.word()
SPLIT_WORDS = _split.lines()

_record = Struct("RECORD", after=BATCH_WORDS)
RECORD_STATUS = _record.word()  # the last result of the kernel
RECORD_SHARE = _record.word()  # 1: the lane has a share in the ticket
RECORD_FIRST = _record.word()  # list of parcels it emitted
RECORD_SEGMENT_COUNT = _record.word()
_record.align()
RECORD_STATE = _record.words(STATE_FIRST_FREE)  # the first words of its state after an error
RECORD_WORDS = _record.lines()
