"""JSON lines as sources: read blocks natively where the engine can, and line by line where a block needs a closer look.

The fields that columns take become CSV cells, which are read like those of CSV files, so a text or number means the
same in both formats. A block with a line or value that is not plainly valid is read by `rows.py`, which defines what
every line means and locates the bad ones; which reader takes a block changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cq.connectors import compute as pc
from cq.connectors.cells import UnreadableText
from cq.connectors.csv.blocks import LINES, Readable, TextBlock, UnreadRows
from cq.connectors.csv.plain import MakePlainScan
from cq.connectors.csv.rows import Dialect, Positions, count_line_feeds, is_utf8
from cq.connectors.csv.source import MAX_THREADS, ColumnMap, CsvOptions, one_array
from cq.connectors.json.names import Level, levels_of
from cq.connectors.json.rows import JsonValue, NoFields, NoObject, reader, values
from cq.connectors.parallel import Parallel, cores
from cq.connectors.physical_rows import array_of
from cq.connectors.protocol import BadRow, Piece, Place, damaged
from cq.connectors.rules import FAR, RowFault, Rules, has_text_form, shown
from cq.errors import Diagnostic, UsageError
from cq.lang.schema import Field
from cq.lang.types import VARCHAR, DataType, Kind
from cq.records import dataclass, replace

QUOTED = CsvOptions(header=False, dialect=Dialect(b"\x1f", b'"'))
BARE = CsvOptions(header=False, dialect=Dialect(b"\x1f", b""))  # no quotes: pyarrow takes 2.6 ms, not 4.2
# Lines read one by one take 0.5 ms a KiB. With one bad line 1 MiB takes 21 ms if this is 1, 4 or 16 KiB, 31 if 64.
FEW_BYTES = 4 << 10
_FIRST = re.compile(rb"[^ \t\r\n]")
NO_ROWS = "JSON lines have an object on each line; this begins with [, as one array does"
UNPACK = "put each object on a line: jq -c '.[]' FILE > FILE.jsonl"


@dataclass(frozen=True, slots=True)
class Cells:
    """A block as CSV in the form QUOTED: a row for each line that is not blank, a cell for each column.

    lines: how many lines precede each row.  blank: how many lines are not rows.
    """

    text: bytes
    lines: Positions
    blank: int


Scan = Callable[[bytes], "Cells | None"]
"""Read whole lines of UTF-8; None if one of them must be read by `rows.py`."""

MakeScan = Callable[[tuple[Level, ...], tuple[bool, ...]], Scan]
"""Made from the names of the columns, and whether each takes the JSON text of any value."""


def read_json(
    file: Readable, name: str, rules: Rules, make_scan: MakeScan | None = None, make_plain: MakePlainScan | None = None
) -> Iterator[Piece]:
    """The rows of one file as pieces. make_scan, make_plain: make the engine's own scanner and reader of cells, if it
    has them."""
    threads = min(cores(), MAX_THREADS) if make_scan else 1
    window = UnreadRows(file, name, LINES, threads, "JSON")
    reading = _Reading.of(name, rules, make_scan, make_plain)
    begun = False
    with closing(Parallel(threads - 1)) as parallel:
        while window.fill():
            begun = begun or check_lines(window.text, name)
            blocks = [window.whole()] if window.last else window.guesses()
            for block, pieces in zip(blocks, parallel.map(reading.pieces, blocks), strict=True):
                window.take(len(block.text))
                yield from pieces


def check_lines(text: bytes, name: str) -> bool:
    """Whether the file has started; CQ0701 if it starts with an array, which would make every line a bad row."""
    first = _FIRST.search(text)
    if first is not None and first[0] == b"[":
        raise damaged(name, NO_ROWS, UNPACK)
    return first is not None


@dataclass(frozen=True, slots=True)
class _Reading:
    """One file and how its rows are read. quoted, bare: the layouts of cells that `scan` finds."""

    name: str
    rules: Rules
    levels: tuple[Level, ...]
    quoted: ColumnMap
    bare: ColumnMap
    scan: Scan | None

    @classmethod
    def of(
        cls, name: str, rules: Rules, make_scan: MakeScan | None, make_plain: MakePlainScan | None = None
    ) -> _Reading:
        """CQ0602 for a column whose type has no JSON form."""
        for f in rules.fields:
            if not _has_form(f.type):
                cause = f"column {f.name}: {f.type} cannot be read from JSON"
                raise UsageError(Diagnostic("CQ0602", cause, help=("read it as VARCHAR and convert it",)))
        if not rules.fields:  # rows that are only counted: any cell of each will do
            rules = replace(rules, fields=(Field("", VARCHAR),))
        levels = levels_of([f.name for f in rules.fields])
        arrays = tuple(f.type.kind is Kind.ARRAY for f in rules.fields)
        as_text = (replace(f, type=VARCHAR) if array else f for f, array in zip(rules.fields, arrays, strict=True))
        width = len(arrays)
        read = tuple(i for i, f in enumerate(rules.fields) if i in rules.wanted or _may_be_infinite(f.type))
        quoted = ColumnMap(name, QUOTED, replace(rules, fields=tuple(as_text), wanted=read), width, tuple(range(width)))
        scan = make_scan(levels, arrays) if make_scan else None
        return cls(name, rules, levels, quoted.by(make_plain), replace(quoted, options=BARE), scan)

    def columns(self, cells: Cells) -> dict[int, pa.Array] | None:
        """The cells of the columns that are wanted, or may be infinite, in their types; None where a cell of any column
        needs a closer look."""
        found = self.quoted.columns(cells.text)
        if found is not None:
            return found.columns
        column_map = self.quoted if b'"' in cells.text else self.bare
        table = column_map.through_pyarrow(TextBlock(cells.text, 1, last=False))
        return None if table is None else {i: one_array(table.column(i)) for i in self.quoted.rules.wanted}

    def pieces(self, block: TextBlock) -> list[Piece]:
        """The rows of a block. Errors are located by bisection, so that few lines are read one by one."""
        if not block.text:
            return []
        piece = self._natively(block)
        if piece is not None:
            return [piece]
        half = block.text.find(b"\n", len(block.text) // 2) + 1
        if self.scan is None or len(block.text) <= FEW_BYTES or half in {0, len(block.text)}:
            return [_ByLine(self, block).piece()]
        first, rest = block.text[:half], block.text[half:]
        between = block.first_line + count_line_feeds(first)
        return self.pieces(TextBlock(first, block.first_line)) + self.pieces(TextBlock(rest, between))

    def _natively(self, block: TextBlock) -> Piece | None:
        if self.scan is None or not is_utf8(block.text):
            return None
        cells = self.scan(block.text)
        if cells is None:
            return None
        found = self.columns(cells)
        if found is None or self._is_infinite(found):
            return None
        try:
            columns = {i: self._column(found[i], i) for i in self.rules.wanted}
        except UnreadableText:
            return None
        rows = len(cells.lines)
        assert all(len(column) == rows for column in columns.values()), "a row of cells is a row"
        place = Place(self.name, block.first_line, cells.lines + block.first_line if cells.blank else None)
        return Piece(self.rules.deliver(columns, rows), place, blank=cells.blank)

    def _is_infinite(self, columns: Mapping[int, pa.Array]) -> bool:
        """Whether a number may have become infinite."""
        numbers = (column for i, column in columns.items() if _may_be_infinite(self.rules.fields[i].type))
        return any(pc.any(pc.is_inf(column)).as_py() for column in numbers)

    def _column(self, read: pa.Array, column: int) -> pa.Array:
        type_ = self.rules.fields[column].type
        if type_.kind is not Kind.ARRAY:
            return read
        read_array = reader(type_, bool(self.rules.guessed_for))
        texts = read.cast(pa.binary()).to_pylist()
        return array_of([None if text is None else read_array(JsonValue(text)) for text in texts], type_)


def _may_be_infinite(type_: DataType) -> bool:
    return type_.kind in {Kind.DOUBLE, Kind.REAL}


def _has_form(type_: DataType) -> bool:
    return _has_form(type_.element) if type_.element is not None else has_text_form(type_.kind)


class _ByLine:
    """One block read line by line."""

    def __init__(self, reading: _Reading, block: TextBlock) -> None:
        self._reading, self._block = reading, block
        self._rules = reading.rules
        self._readers = [reader(f.type, bool(self._rules.guessed_for)) for f in self._rules.fields]
        self._values: dict[int, list[Any]] = {i: [] for i in self._rules.wanted}
        self._lines: list[int] = []
        self._bad: list[BadRow] = []

    def piece(self) -> Piece:
        """All rows of the block."""
        blank = 0
        lines = self._block.text.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines, self._block.first_line):
            if line.strip(b" \t\r"):
                self._take(line, number)
            else:
                blank += 1
        columns = {i: array_of(v, self._rules.fields[i].type) for i, v in self._values.items()}
        place = Place(self._reading.name, self._block.first_line, np.array(self._lines, np.int64))
        return Piece(self._rules.deliver(columns, len(self._lines)), place, tuple(self._bad), blank)

    def _take(self, line: bytes, number: int) -> None:
        row, fault = self._row(line)
        if fault is not None:
            self._bad.append(self._rules.bad_row(len(self._lines), number, fault, line.removesuffix(b"\r")))
            return
        self._lines.append(number)
        for i, taken in self._values.items():
            taken.append(row[i])

    def _row(self, line: bytes) -> tuple[list[Any], RowFault | None]:
        """The value of every column, or the first fault."""
        if not is_utf8(line):
            return [], RowFault("CQ0710", "the line is not UTF-8")
        try:
            found = values(line, self._reading.levels, len(self._readers))
        except NoObject as e:
            return [], RowFault("CQ0710", f"the line is not a JSON object: {e}", way=e.way)
        row = []
        for i, value in enumerate(found):
            read, fault = self._value(i, value)
            if fault is not None:
                return [], fault
            row.append(read)
        return row, None

    def _value(self, column: int, value: JsonValue | None) -> tuple[Any, RowFault | None]:
        if value is None:
            return None, RowFault(*self._rules.null(column), column) if self._rules.demands_value(column) else None
        if isinstance(value, NoFields):
            code, message = self._rules.unreadable(column, shown(value.json), "it is not an object that has fields")
            return None, RowFault(code, message, column, no_fields=True)
        try:
            read = self._readers[column](value)
        except UnreadableText as e:
            text = _as_shown(value)
            wider = self._rules.wider(column, text, partial(_holds, value))
            return None, RowFault(*self._rules.unreadable(column, shown(text), str(e)), column, wider, not text)
        if self._rules.out_of_range(column, read):
            return None, RowFault(*self._rules.unreadable(column, shown(_as_shown(value)), FAR), column)
        return read, None


def _holds(value: JsonValue, type_: DataType) -> bool:
    try:
        reader(type_, guessed=True)(value)
    except UnreadableText:
        return False
    return True


def _as_shown(value: JsonValue) -> bytes:
    try:
        return value.text
    except UnreadableText:
        return value.json
