"""Native ways to read what `cq/connectors` defines.

`json_scan` finds the cells of JSON lines, `csv_scan` reads rows of CSV into columns; cq/connectors/json/rows.py,
cq/connectors/csv/rows.py and cq/connectors/cells.py define lines, rows and values, and tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cq.connectors.csv.rows import count_line_feeds
from cq.connectors.json.names import Level
from cq.connectors.json.rows import MAX_DEPTH
from cq.connectors.json.source import Cells, Scan
from cq.runtime.base.arrays import Address, Spare, real_address
from cq.runtime.base.interpret import READERS
from cq.runtime.base.kernel import library_with
from cq.runtime.layout.abi import STRING_SLACK_BYTES
from cq.runtime.readers import json_lines as j
from cq.runtime.readers.csv_scan import csv_scan as csv_scan

FEWEST_PLACES = 64  # of fields remembered from line to line


def json_scan(levels: tuple[Level, ...], raw: tuple[bool, ...]) -> Scan:
    """Finds the cells of columns with these names. raw: whether a column takes JSON text of any kind."""
    return JsonScan(library_with(READERS).function("json_cells"), levels, raw).cells


class JsonScan:
    """Names in native memory, and the function that finds them. Several threads may use it at once.

    address: the address of an array for `run`.
    """

    def __init__(
        self, run: Callable[..., int], levels: Sequence[Level], raw: Sequence[bool], address: Address = real_address
    ) -> None:
        self._run, self._columns, self._address = run, len(raw), address
        every = [name for level in levels for name in level.names]
        self._spare = Spare()
        self._places = max(FEWEST_PLACES, 2 * len(every))
        self._texts = [np.frombuffer(name.text + bytes(1), np.uint8) for name in every]  # an empty one has an address
        self._names = np.zeros((len(every), j.NAME_WORDS), np.int64)
        for row, name, text in zip(self._names, every, self._texts, strict=True):
            row[j.NAME_TEXT], row[j.NAME_LENGTH] = address(text), len(name.text)
            row[j.NAME_COLUMN], row[j.NAME_NODE] = name.column, name.level
            row[j.NAME_RAW] = name.column >= 0 and raw[name.column]
        self._nodes = np.zeros((len(levels), j.NODE_WORDS), np.int64)
        first = 0
        for row, level in zip(self._nodes, levels, strict=True):
            row[j.NODE_FIRST], row[j.NODE_COUNT] = first, len(level.names)
            first += len(level.names)

    def cells(self, text: bytes) -> Cells | None:
        """The cells of whole lines; None if the definition has to read one of them."""
        ended = text if text.endswith(b"\n") else text + b"\n"
        lines = np.empty(count_line_feeds(ended), np.int64)
        call, kept = self._call(lines)
        padded = np.frombuffer(ended + bytes(STRING_SLACK_BYTES), np.uint8)
        start = self._address(padded)
        result, capacity = j.NO_ROOM, len(ended) + len(lines) * self._columns + STRING_SLACK_BYTES
        while result == j.NO_ROOM:
            out = self._spare.room(capacity)
            result = self._run(self._address(call), start, len(ended), self._address(out), len(out))
            capacity = 2 * len(out)
        del kept
        written = out[: call[j.JSON_WRITTEN]].tobytes()
        self._spare.give_back(out)
        rows = int(call[j.JSON_ROWS])
        return Cells(written, lines[:rows], int(call[j.JSON_LINE]) - rows) if result == j.DONE else None

    def _call(self, lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
        """The words of a call, and the memory they point to, which must live as long as they."""
        leads = {
            j.JSON_NODES: self._nodes,
            j.JSON_NAMES: self._names,
            j.JSON_CELLS: np.empty(self._columns * j.CELL_WORDS, np.int64),
            j.JSON_MEMO: np.zeros(self._places * j.MEMO_WORDS, np.int64),
            j.JSON_STACK: np.empty(MAX_DEPTH * j.OPEN_WORDS, np.int64),
            j.JSON_LINES: lines,
        }
        call = np.zeros(j.JSON_WORDS, np.int64)
        for word, array in leads.items():
            call[word] = self._address(array)
        call[j.JSON_COLUMNS], call[j.JSON_PLACES], call[j.JSON_DEPTH] = self._columns, self._places, MAX_DEPTH
        return call, list(leads.values())
