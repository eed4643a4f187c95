"""The binary contract between kernels and the engine: word offsets of everything both sides touch.

All structures are arrays of 64-bit words; `X_Y` is the index of word Y of structure X. Kernels are written by
cq/codegen, everything else here is filled by the engine.

A stage kernel is `i64 kernel(state, batch, out, constants)`. It walks the batch's segments in order, from the cursor in
its state, and returns
    DONE   the batch is used up, the cursor is back at its start;
    MORE   an output port has reached its limit: take the rows away, call again with the same batch;
    ERROR  the state's error words say what and where; rows emitted so far are all rows before the failing position.
Between two steps (a row, one group of a closing window) a kernel looks at the ports' limits, so a port never holds
more than its limit plus the fan-out of one step.
"""

from __future__ import annotations

from enum import IntEnum

from cq.runtime.layout.words import name_words

ABI_VERSION = 3

DONE, MORE, ERROR = 0, 1, 2

NEVER = 2**63 - 1  # an instant that does not come; the watermark after the end of all inputs
BEFORE_ALL = -(2**63)  # the watermark before any row

# -- batch: one ticket's share of the input of one stage ------------------------------------------------------------
BATCH_ABI = 0
BATCH_TICKET = 1  # consecutive from 0; results of a stage leave in this order
BATCH_SEGMENTS = 2  # -> segments
BATCH_SEGMENT_COUNT = 3
BATCH_PORTS = 4  # -> one word a port: -> column table of that port (a port is a source, or the stage before)
BATCH_SELECTION = 5  # 0, or -> i32[]: segment bounds index into it and it gives the row (a lane's share)
BATCH_ROWS = 6  # rows in all segments
# 0, or -> i64[]: the watermark in force when a row is taken (cq/runtime/flow/watermarks.py), by serial
BATCH_WATERMARKS = 7
BATCH_FIRST = 8  # serial of its first row; in a batch from an earlier stage that stage's rows are numbered
# -> i64 a row: what has caused it, for messages: CAUSE_*. In a ticket -> i64 a port: the cause of its row 0, to which a
# row's number is added
BATCH_CAUSES = 9
BATCH_WORDS = 10

CAUSE_SOURCE_SHIFT = 48  # cause >= 0: the port of the source, above the number of the row in it
CAUSE_INSTANT = -(2**62)  # cause < CAUSE_END: this and the instant at which it was made
CAUSE_END = -1  # made when all inputs had ended

# -- segment: what happens next, in order ----------------------------------------------------------------------------
SEGMENT_KIND = 0
SEGMENT_PORT = 1  # which port the rows are from
SEGMENT_LO = 2  # first row (ROWS, LATE)
SEGMENT_HI = 3  # one past the last row
# Serial of the first row of the segment: row LO, or row SELECTION[LO] of a lane's share. That of any other row
# is this plus its distance from that one. CLOSE, END: serial of the cause: the row they come before.
SEGMENT_SERIAL = 4
SEGMENT_WATERMARK = 5  # CLOSE: the minimum watermark over all sources, to which event time has now advanced
SEGMENT_WORDS = 6

SEGMENT_ROWS = 0  # rows on time, in arrival order
SEGMENT_LATE = 1  # rows below the watermark of their source: event-time operators drop them
SEGMENT_CLOSE = 2  # serve every closing time at or before WATERMARK, ascending
SEGMENT_END = 3  # all inputs have ended (a CLOSE with NEVER came before)

# -- column of an input port: Arrow buffers by reference -------------------------------------------------------------
COLUMN_DATA = 0  # -> values, array offset applied (BOOLEAN: -> bits, not applied); VARCHAR: -> bytes
COLUMN_VALIDITY = 1  # 0 (no NULL), or -> bits
COLUMN_OFFSETS = 2  # VARCHAR: -> i32[], array offset applied
COLUMN_BIT = 3  # the array offset, to add to a row number when looking at bits
COLUMN_WORDS = 4

# Bytes of VARCHAR buffers are readable for this many bytes past the last value, so that kernels may load whole words.
STRING_SLACK_BYTES = 16


class Storage(IntEnum):
    """How a column lies in memory, in input and output alike (Arrow layouts)."""

    BIT = 0  # BOOLEAN
    I8 = 1
    I16 = 2
    I32 = 3  # INTEGER, DATE, INTERVAL_MONTH
    I64 = 4  # BIGINT, TIMESTAMP, INTERVAL
    F32 = 5
    F64 = 6
    I128 = 7  # DECIMAL: the low word counts, the high word is its sign
    UTF8 = 8  # 32-bit offsets


STORAGE_BYTES = {
    Storage.I8: 1,
    Storage.I16: 2,
    Storage.I32: 4,
    Storage.I64: 8,
    Storage.F32: 4,
    Storage.F64: 8,
    Storage.I128: 16,
}

ORDINAL_BITS = 24  # of a number that tells apart rows of one serial: a record of 16 MiB makes fewer

# -- output port: a batch under construction -------------------------------------------------------------------------
PORT_ROWS = 0  # rows emitted so far
PORT_LIMIT = 1  # at or above this many rows the kernel returns MORE at its next step
PORT_CAPACITY = 2  # rows the buffers have room for; always > LIMIT
PORT_COLUMNS = 3  # -> output columns
PORT_COLUMN_COUNT = 4
PORT_SEGMENTS = 5  # stage output: -> segments over the emitted rows for the next stage; sink: 0
PORT_SEGMENT_COUNT = 6
PORT_SEGMENT_CAPACITY = 7
PORT_POSITIONS = 8  # 0, or -> i64[rows][POSITION_WORDS]: a lane's output, merged by these
PORT_WATERMARKS = 9  # 0, or -> i64[]: the watermark of each row, for a next stage whose closing times depend on data
PORT_CAUSES = 10  # 0, or -> i64[]: what has caused each row, for messages of later stages
PORT_WORDS = 11

OUT_DATA = 0  # -> values (VARCHAR: -> bytes; BOOLEAN: -> bits, zeroed)
OUT_VALIDITY = 1  # 0 (never NULL), or -> bits, zeroed: the kernel sets the bit of a value that is not NULL
OUT_OFFSETS = 2  # VARCHAR: -> i32[capacity + 1], [0] = 0
OUT_BYTES = 3  # VARCHAR: bytes used
OUT_BYTES_CAPACITY = 4  # VARCHAR: bytes there is room for (STRING_SLACK_BYTES more are writable)
OUT_STORAGE = 5  # a Storage
OUT_WORDS = 6

# -- position of an output row, compared word by word ----------------------------------------------------------------
POSITION_SERIAL = 0
POSITION_INSTANT = 1  # NEVER for what a row itself causes: instants come before the row
POSITION_NODE = 2  # place of the closing operator in the plan
POSITION_START = 3  # window start
POSITION_ARRIVAL = 4  # serial of the group's first row, or of the released row
POSITION_WORDS = 5

# -- state: the words every kernel's state begins with ---------------------------------------------------------------
STATE_SEGMENT = 0  # cursor: the segment to go on with
STATE_ROW = 1  # cursor: 1 + the row to go on with, or 0: the segment has not begun
STATE_ERROR_CODE = 2  # ErrorCode
STATE_ERROR_SITE = 3  # which place of the query: index into Stage.sites
STATE_ERROR_PORT = 4
STATE_ERROR_ROW = 5  # row of the port's batch, or -1 when a closing window failed
STATE_ERROR_SERIAL = 6
STATE_ERROR_INSTANT = 7
STATE_LATE_ROWS = 8  # rows dropped as late by event-time operators, each counted once a path
STATE_INSTANT = 9  # closing time under way
STATE_SCRATCH = 10  # -> bytes that live for one step (cq/runtime/values/text.py), or 0
STATE_RESULT = 11  # where a library function leaves a second result
STATE_ERROR_NODE = 12  # the rest of the failing position: in lanes other lanes' rows before it are delivered
STATE_ERROR_START = 13
STATE_ERROR_ARRIVAL = 14
STATE_CALLS = 15  # kernel calls so far (the engine's)
STATE_HELD_BYTES = 16  # what the containers held when last weighed (the engine's)
STATE_ERROR_GROUP = 17  # 1 + index into Stage.groups when a value of a group, or of a pair of rows, failed; or 0
STATE_ERROR_ENTRY = 18  # -> its entry, and the table that is in; START is the window's. Of a pair: the other row's time
STATE_ERROR_TABLE = 19
STATE_FIRST_FREE = 20  # operators' words start here

name_words(globals())


class ErrorCode(IntEnum):
    """Why a kernel stopped; `ERROR_CODES` gives the user's code."""

    NONE = 0
    OVERFLOW = 1
    DIVISION_BY_ZERO = 2
    BAD_CAST = 3
    BAD_ARGUMENT = 4
    NO_MEMORY = 5
    LIMIT = 6
    BROKEN_BATCH = 7
    LATE = 8


ERROR_CODES = {
    ErrorCode.OVERFLOW: "CQ0705",
    ErrorCode.DIVISION_BY_ZERO: "CQ0706",
    ErrorCode.BAD_CAST: "CQ0707",
    ErrorCode.BAD_ARGUMENT: "CQ0708",
    ErrorCode.NO_MEMORY: "CQ0801",
    ErrorCode.LIMIT: "CQ0802",
    ErrorCode.BROKEN_BATCH: "CQ0999",
    ErrorCode.LATE: "CQ0709",
}
