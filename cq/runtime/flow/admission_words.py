"""The words of admission, and of the sources it merges; admission.py explains how they work together."""

from __future__ import annotations

from cq.runtime.layout.words import Struct

_admission = Struct("ADMISSION")
ADMISSION_BUSY = _admission.line()
ADMISSION_PAUSED = _admission.line()
ADMISSION_INTERVAL = _admission.line()  # the most rows of the next tickets; 0: the usual number
ADMISSION_SOURCES = _admission.word()
ADMISSION_SOURCE_TABLE = _admission.word()
ADMISSION_SERIAL = _admission.word()  # of the next row
ADMISSION_MINIMUM = _admission.word()  # watermark over all sources
ADMISSION_BOUNDARY = _admission.word()  # the next closing time above MINIMUM; NEVER if there is none
ADMISSION_GRIDS = _admission.word()
ADMISSION_GRID_TABLE = _admission.word()  # -> GRID_WORDS of each
ADMISSION_MARKED = _admission.word()  # 1: tickets carry the watermarks of their rows
ADMISSION_TICKETS = _admission.word()  # pool of tickets free for use
ADMISSION_BATCH_ROWS = _admission.word()
ADMISSION_SEGMENTS = _admission.word()  # that a ticket has room for
ADMISSION_OUTPUT = _admission.word()  # ring that takes the tickets
ADMISSION_NEXT_TICKET = _admission.word()
ADMISSION_ENDED = _admission.word()  # 1: the END is sent
ADMISSION_LATE_ROWS = _admission.word()
ADMISSION_LOANS = _admission.word()  # taken out of the sources' rings: each makes room for another
ADMISSION_WORDS = _admission.size()

_source = Struct("SOURCE")
SOURCE_RING = _source.word()
SOURCE_LOAN = _source.word()  # the loan rows are taken from, or 0
SOURCE_ROW = _source.word()  # the next row of it
SOURCE_ROWS = _source.word()
SOURCE_ENDED = _source.word()  # 1: it has no more rows; BROKEN: its next row cannot be read; SILENT: none for now
SOURCE_TIMED = _source.word()
SOURCE_MAX = _source.word()  # running maximum of the event time
SOURCE_DELAY = _source.word()
SOURCE_WATERMARK = _source.word()
SOURCE_TIME_COLUMN = _source.word()
SOURCE_SCALE = _source.word()
SOURCE_STORAGE = _source.word()
SOURCE_TIMES = _source.word()  # -> values of the time column in the loan
SOURCE_PLAIN = _source.word()  # 1: the column holds 64-bit microseconds
SOURCE_TAKEN = _source.word()  # rows taken from this source
SOURCE_EMPTY = _source.word()  # -> a column table of no rows
SOURCE_WORDS = _source.size()

END_OF_SOURCE, BREAK_OF_SOURCE, SILENCE_OF_SOURCE = 1, 2, 3  # in SOURCE_RING, where loans are addresses
BROKEN = 2
SILENT = 3
