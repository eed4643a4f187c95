"""The binary contract between kernels and the engine: word offsets of everything both sides touch.

All structures are arrays of 64-bit words; `X_Y` is the index of word Y of structure X. cq/codegen writes the kernels,
the engine fills everything else here.

A stage kernel is `i64 kernel(state, batch, out, constants)`. It walks the batch's segments in order, from the cursor in
its state, and returns
    DONE   the batch is used up, the cursor is back at its start;
    MORE   an output port has reached its limit: remove the rows, call again with the same batch;
    ERROR  the state's error words say what and where; rows emitted so far are all rows before the failing position.
Between two steps (a row, one group of a closing window) a kernel checks the ports' limits, so a port never holds
more than its limit plus the fan-out of one step.
"""

from __future__ import annotations

from enum import IntEnum

from cq.runtime.layout.words import Struct, name_words

DONE, MORE, ERROR = 0, 1, 2

NEVER = 2**63 - 1  # an instant that does not come; the watermark after the end of all inputs
BEFORE_ALL = -(2**63)  # the watermark before any row

# -- batch: one ticket's share of the input of one stage ------------------------------------------------------------
_batch = Struct("BATCH")
BATCH_TICKET = _batch.word()  # consecutive from 0; results of a stage leave in this order
BATCH_SEGMENTS = _batch.word()  # -> segments
BATCH_SEGMENT_COUNT = _batch.word()
BATCH_PORTS = _batch.word()  # -> one word a port (a source, or the stage before): -> its column table
# 0, or -> i32[]: segment bounds index into it and it has the row numbers (a lane's share). If lanes have rows of
# several ports -> i64[]: a row's serial, counted from BATCH_FIRST, above its place in BATCH_MIXED (SHARE_SERIAL_SHIFT)
BATCH_SELECTION = _batch.word()
BATCH_ROWS = _batch.word()  # rows in all segments
# 0, or -> i64[]: the watermark in force when a row is taken (cq/runtime/flow/watermarks.py), by serial
BATCH_WATERMARKS = _batch.word()
BATCH_FIRST = _batch.word()  # serial of its first row; in a batch from an earlier stage that stage's rows are numbered
# -> i64 a row: its cause, for messages: CAUSE_*. In a ticket -> i64 a port: the cause of its row 0, to which a row's
# number is added
BATCH_CAUSES = _batch.word()
# a bit for each port: its source had ended before the first row of the batch, so it has no more rows; 0 for rows of an
# earlier stage, and for sources beyond the 63rd
BATCH_ENDED = _batch.word()
# 0, or -> i64[]: for a row in a segment of MIXED its port, above its number there (MIXED_PORT_SHIFT), by serial. In a
# lane's share by that place, the rows of a port adjacent, in order
BATCH_MIXED = _batch.word()
BATCH_WORDS = _batch.size()

MIXED_PORT_SHIFT = 48
SHARE_SERIAL_SHIFT = 32  # a ticket has at most 2**31 rows
SHARE_AHEAD_ROWS = 64  # BATCH_MIXED of a share can be read this far beyond its rows; the content there is undefined

CAUSE_SOURCE_SHIFT = 48  # cause >= 0: the port of the source, above the number of the row in it
CAUSE_INSTANT = -(2**62)  # cause < CAUSE_END: plus the instant at which it was made
CAUSE_END = -1  # made when all inputs had ended

# -- segment: what happens next, in order ----------------------------------------------------------------------------
_segment = Struct("SEGMENT")
SEGMENT_KIND = _segment.word()
# the port of the rows; MIXED: several, given by BATCH_MIXED. In a lane's share the lane's branch
SEGMENT_PORT = _segment.word()
SEGMENT_LO = _segment.word()  # first row (ROWS, LATE); for MIXED its serial
SEGMENT_HI = _segment.word()  # one past the last row
# Serial of the first row of the segment: row LO, or row SELECTION[LO] of a lane's share. That of any other row is this
# plus its distance from that one. CLOSE, END: serial of the cause: the row they come before.
SEGMENT_SERIAL = _segment.word()
# CLOSE: the minimum watermark over all sources, to which event time has now advanced
SEGMENT_WATERMARK = _segment.word()
SEGMENT_WORDS = _segment.size()

# ROWS   rows on time, in arrival order
# LATE   rows below the watermark of their source: event-time operators drop them
# CLOSE  serve every closing time at or before WATERMARK, ascending
# END    all inputs have ended (a CLOSE with NEVER came before)
SEGMENT_ROWS, SEGMENT_LATE, SEGMENT_CLOSE, SEGMENT_END = 0, 1, 2, 3

MIXED = -1  # the port of ROWS of several ports

# -- column of an input port: Arrow buffers by reference -------------------------------------------------------------
_column = Struct("COLUMN")
COLUMN_DATA = _column.word()  # -> values, array offset applied (BOOLEAN: -> bits, not applied); VARCHAR: -> bytes
COLUMN_VALIDITY = _column.word()  # 0 (no NULL), or -> bits
COLUMN_OFFSETS = _column.word()  # VARCHAR: -> i32[], array offset applied
COLUMN_BIT = _column.word()  # the array offset, to add to a row number for bits
# VARCHAR: 0, or -> i32[], array offset applied: the dictionary text of each row, any text for NULL.
# DATA and OFFSETS are then the dictionary's.
COLUMN_CODES = _column.word()
COLUMN_TEXTS = _column.word()  # how many texts the dictionary has
COLUMN_DICTIONARY = _column.word()  # its number, unique within a run; 0: without codes, or unknown
COLUMN_ROWS = _column.word()  # all its rows, even those outside the batch: a kernel may look ahead
COLUMN_WORDS = _column.size()

# Text buffers are readable for this many bytes past the last one, and writable if they are being filled, so that whole
# words may be loaded and stored.
STRING_SLACK_BYTES = 16


class Storage(IntEnum):
    """The memory layout of a column, in input and output alike (Arrow layouts)."""

    BIT = 0  # BOOLEAN
    I8 = 1
    I16 = 2
    I32 = 3  # INTEGER, DATE, INTERVAL_MONTH
    I64 = 4  # BIGINT, TIMESTAMP, INTERVAL
    F32 = 5
    F64 = 6
    I128 = 7  # DECIMAL: low word, high word, which for up to 18 digits is the sign of the low one
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

ORDINAL_BITS = 24  # of a number that distinguishes rows of one serial: a record of 16 MiB makes fewer

SPARE_ROWS = 64  # an empty port has room for this many beyond its limit: one input row may add as many unchecked

# -- output port: a batch under construction -------------------------------------------------------------------------
_port = Struct("PORT")
PORT_ROWS = _port.word()  # rows emitted so far
PORT_LIMIT = _port.word()  # at or above this many rows the kernel returns MORE at its next step
PORT_CAPACITY = _port.word()  # rows the buffers have room for; always > LIMIT
PORT_COLUMNS = _port.word()  # -> output columns
PORT_COLUMN_COUNT = _port.word()
PORT_SEGMENTS = _port.word()  # stage output: -> segments over the emitted rows for the next stage; sink: 0
PORT_SEGMENT_COUNT = _port.word()
PORT_SEGMENT_CAPACITY = _port.word()
PORT_POSITIONS = _port.word()  # 0, or -> i64[rows][POSITION_WORDS]: a lane's output, merged by these
# 0, or -> i64[]: the watermark of each row, for a next stage whose closing times depend on data
PORT_WATERMARKS = _port.word()
PORT_CAUSES = _port.word()  # 0, or -> i64[]: the cause of each row, for messages of later stages
PORT_WORDS = _port.size()

_out = Struct("OUT")
OUT_DATA = _out.word()  # -> values (VARCHAR: -> bytes; BOOLEAN: -> bits, zeroed)
OUT_VALIDITY = _out.word()  # 0 (never NULL), or -> bits, zeroed: the kernel sets the bit of a value that is not NULL
OUT_OFFSETS = _out.word()  # VARCHAR: -> i32[capacity + 1], [0] = 0
OUT_BYTES = _out.word()  # VARCHAR: bytes used
OUT_BYTES_CAPACITY = _out.word()  # VARCHAR: bytes there is room for (STRING_SLACK_BYTES more are writable)
OUT_STORAGE = _out.word()  # a Storage
OUT_WORDS = _out.size()

# -- position of an output row, compared word by word ----------------------------------------------------------------
_position = Struct("POSITION")
POSITION_SERIAL = _position.word()
POSITION_INSTANT = _position.word()  # NEVER for rows caused by a row itself: instants come before the row
POSITION_NODE = _position.word()  # place of the closing operator in the plan
POSITION_START = _position.word()  # window start
POSITION_ARRIVAL = _position.word()  # serial of the group's first row, or of the released row
POSITION_WORDS = _position.size()

# -- state: the words every kernel's state begins with ---------------------------------------------------------------
_times = Struct("TIMES")  # where a function of `StageSpec.time_entries` puts event times
TIMES_VALUES = _times.word()  # -> i64 a row
TIMES_THERE = _times.word()  # -> a byte a row: 1, or 0 where it has none
TIMES_WORDS = _times.size()

_routing = Struct("ROUTING")  # which entries a function of `Moving` takes (cq/runtime/layout/pipeline.py)
ROUTING_ROUTE = _routing.word()  # -> u8[256]: the lane of each virtual partition
ROUTING_LANE = _routing.word()  # the lane whose state is filled
ROUTING_WORDS = _routing.size()

TOLD_BYTES = 248  # of a text that failed: more letters than a message shows (cq/lang/value_text.py)

_state = Struct("STATE")
STATE_SEGMENT = _state.word()  # cursor: the segment to resume
STATE_ROW = _state.word()  # cursor: 1 + the row to resume, or 0: the segment has not begun
STATE_ERROR_CODE = _state.word()  # ErrorCode
STATE_ERROR_SITE = _state.word()  # the place in the query: index into StageSpec.sites
STATE_ERROR_PORT = _state.word()
STATE_ERROR_ROW = _state.word()  # row of the port's batch, or -1 if a closing window failed
STATE_ERROR_SERIAL = _state.word()
STATE_ERROR_INSTANT = _state.word()
STATE_LATE_ROWS = _state.word()  # rows dropped as late by event-time operators, each counted once per path
STATE_INSTANT = _state.word()  # current closing time
STATE_SCRATCH = _state.word()  # -> bytes that live for one step (cq/runtime/values/text.py), or 0
STATE_RESULT = _state.word()  # a second result of a library function
STATE_RESULT_HIGH = _state.word()  # its high word, if it has two
STATE_ERROR_NODE = _state.word()  # the rest of the failing position: in lanes other lanes' rows before it are delivered
STATE_ERROR_START = _state.word()
STATE_ERROR_ARRIVAL = _state.word()
STATE_CALLS = _state.word()  # kernel calls so far (the engine's)
STATE_HELD_BYTES = _state.word()  # what the containers held when last measured (the engine's)
STATE_ERROR_GROUP = _state.word()  # 1 + index into StageSpec.groups if a value of a group, or of a pair, failed
STATE_ERROR_ENTRY = _state.word()  # -> its entry, START its window's; for a pair the other row's time
STATE_ERROR_TABLE = _state.word()  # -> the table the entry is in
STATE_STOPPING = _state.word()  # 1: the rest is not needed: code that tests many pairs for one row fails with STOPPED
STATE_ERROR_VALUE = _state.word()  # the value that failed, if its site shows one; of a text the length
STATE_ERROR_VALUE_HIGH = _state.word()  # its high word, if it has two
STATE_ERROR_TEXT = _state.words(TOLD_BYTES // 8)  # its first bytes
STATE_FIRST_FREE = _state.rest()  # operators' words start here

name_words(globals())


class ErrorCode(IntEnum):
    """Why a kernel stopped; `ERROR_CODES` gives the user's code, except for STOPPED."""

    NONE = 0
    OVERFLOW = 1
    DIVISION_BY_ZERO = 2
    BAD_CAST = 3
    BAD_ARGUMENT = 4
    NO_MEMORY = 5
    LIMIT = 6
    BROKEN_BATCH = 7
    LATE = 8
    REFUSED = 9
    STOPPED = 10  # not an error: the run was asked to stop


ERROR_CODES = {
    ErrorCode.OVERFLOW: "CQ0705",
    ErrorCode.DIVISION_BY_ZERO: "CQ0706",
    ErrorCode.BAD_CAST: "CQ0707",
    ErrorCode.BAD_ARGUMENT: "CQ0708",
    ErrorCode.NO_MEMORY: "CQ0801",
    ErrorCode.LIMIT: "CQ0802",
    ErrorCode.BROKEN_BATCH: "CQ0999",
    ErrorCode.LATE: "CQ0709",
    ErrorCode.REFUSED: "CQ0711",
}
