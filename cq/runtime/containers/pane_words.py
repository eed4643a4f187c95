"""The words of open panes and of their records. cq/runtime/containers/panes.py explains how they work together.

Generated code reads these.
"""

from __future__ import annotations

from cq.runtime.layout.words import Struct, name_words

_panes = Struct("PANES")
PANES_LO = _panes.word()  # the pane of the last row is [LO, HI)
PANES_HI = _panes.word()
PANES_RECORD = _panes.word()
PANES_NEXT_END = _panes.word()  # the next closing time; NEVER without an open pane
PANES_COUNT = _panes.word()
PANES_CAPACITY = _panes.word()
PANES_LIST = _panes.word()  # -> addresses of the open records, ascending
PANES_FREE = _panes.word()  # -> recycled records, linked by their first word
PANES_PANE = _panes.word()  # in steps: microseconds, or months
PANES_OFFSET = _panes.word()
PANES_SIZE = _panes.word()  # 0: attached windows
PANES_SLIDE = _panes.word()
PANES_MONTHS = _panes.word()  # 1: steps are months of the calendar
PANES_SHIFT_US = _panes.word()  # how much later than its step a pane begins
PANES_TABLES = _panes.word()  # tables of a record
PANES_SHAPES = _panes.word()  # -> SHAPE_WORDS of each table
PANES_CURSOR = _panes.word()  # next group of the window that is closing; -1 if none is
PANES_SCRATCH = _panes.word()  # -> table where the panes of a closing window are merged, or 0
PANES_SLIDES = _panes.word()  # -> sums of panes (cq/runtime/containers/sliding.py), or 0
PANES_OPENS = _panes.word()  # the second order word of panes that rows open: 0, or as in disjoint_panes.py
PANES_ROUNDS = _panes.word()  # -> the order of groups of panes that are apart (disjoint_panes.py), or 0
PANES_WORDS = _panes.size()

_pane = Struct("PANE")
PANE_FIRST = _pane.word()  # order words
PANE_SECOND = _pane.word()
PANE_TABLES = _pane.rest()

_shape = Struct("SHAPE")
SHAPE_ENTRY_WORDS = _shape.word()
SHAPE_STRINGS = _shape.word()  # as TABLE_STRINGS
SHAPE_ARRIVALS = _shape.word()  # as TABLE_ARRIVALS
SHAPE_WORDS = _shape.size()

name_words(globals())
