"""CSV sources: blocks through pyarrow, and a block that fails once more, row by row, to place its bad rows.

The text is cut at row ends into blocks, several of which are parsed at once; every block is one call of pyarrow's
reader with all declared columns and becomes one piece. When pyarrow refuses a block, or a rule of the declaration is
broken in it, `texts.py` reads it again. Both readers accept the same rows, so bad rows and block edges never change
what the others become.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from cq.connectors import texts
from cq.connectors.abreast import Abreast, cores
from cq.connectors.csv_blocks import Block, Reads, Window
from cq.connectors.csv_rows import (
    STANDARD,
    Cell,
    Dialect,
    Positions,
    Row,
    count_line_feeds,
    ends_with_lf_only,
    has_hexadecimal,
    lines_of_rows,
    rows,
)
from cq.connectors.physical import array_of
from cq.connectors.protocol import BadRow, Piece, Place, damaged, field_of
from cq.connectors.rules import FAR, Rules, has_text_form, shown
from cq.errors import DataError, Diagnostic, UsageError, did_you_mean
from cq.schema import Field
from cq.types import DataType, Kind, to_arrow

MAX_THREADS = 4  # that parse one file; a block with a bad row is read again with all that was read with it
MAX_PLAIN_DECIMAL_CHARS = 40  # longer ones go to the strict scanner: 38 digits, a sign and a point


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """The options of a WITH clause that concern CSV."""

    header: bool = True
    dialect: Dialect = STANDARD
    null: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CsvOptions:
        """Options as written, defaults where the text is silent; CQ0208 when they make no CSV."""
        delimiter = {"\\t": "\t", "tab": "\t"}.get(options.get("delimiter", ","), options.get("delimiter", ","))
        quote = options.get("quote", '"')
        for key, value in (("delimiter", delimiter), ("quote", quote)):
            if (len(value) != 1 and not (key == "quote" and not value)) or not value.isascii() or value in "\r\n\0":
                raise UsageError(Diagnostic("CQ0208", f"{key} must be one ASCII character, not {value!r}"))
        if delimiter == quote:
            raise UsageError(Diagnostic("CQ0208", "delimiter and quote cannot be the same character"))
        header = options.get("header", "true") == "true"
        return cls(header, Dialect(delimiter.encode(), quote.encode()), options.get("null", ""))


def read_csv(file: Reads, name: str, options: CsvOptions, rules: Rules) -> Iterator[Piece]:
    """The rows of one file as pieces; declared columns by the names in its header, or by position without one."""
    threads = min(cores(), MAX_THREADS)
    window = Window(file, name, options.dialect, threads)
    with closing(Abreast(threads - 1)) as abreast:
        yield from _pieces(window, name, options, rules, abreast)


def _pieces(window: Window, name: str, options: CsvOptions, rules: Rules, abreast: Abreast) -> Iterator[Piece]:
    layout: Layout | None = None
    may_guess = True
    while window.fill():
        if layout is None:
            block = window.whole()
            first = next(rows(block.text, options.dialect), None)
            if first is None:
                window.take(len(block.text))
                continue
            layout = Layout.of(first, name, options, rules)
            if options.header:
                window.take(next_row(block.text, first))
        if may_guess and not window.last:
            guesses = window.guesses()
            for guess, (piece, again) in zip(guesses, abreast.map(layout.proven, guesses), strict=True):
                may_guess = again
                if piece is None:
                    break
                window.take(len(guess.text), piece.batch.num_rows)
                yield piece
            else:
                continue
        block = window.whole()
        window.take(len(block.text))
        if block.text:
            yield from layout.read(block)
    if layout is None and options.header:
        raise damaged(name, "the file is empty, not even a header line", "say header = false if it has none")


def next_row(text: bytes, row: Row) -> int:
    """Where the row after `row` begins."""
    ending = text[row.end : row.end + 2]
    return row.end + (2 if ending == b"\r\n" else len(ending[:1]))


def header_names(row: Row) -> list[str]:
    """The names a header row gives its columns; a column without one is column0, column1, … by its place, and of two
    with one name the second is name_1."""
    written = [c.text.decode("utf-8", "replace").strip() or f"column{i}" for i, c in enumerate(row.cells)]
    names: list[str] = []
    for name in written:
        unique, number = name, 0
        while unique in names or (number and unique in written):
            number += 1
            unique = f"{name}_{number}"
        names.append(unique)
    return names


def other_delimiter(header: Sequence[str], options: CsvOptions) -> str | None:
    """What a header of one name seems to be divided by, where that is not the delimiter; as the option is written."""
    taken = options.dialect.delimiter.decode()
    found = [d for d in (";", "\t", "|", ",") if d != taken and len(header) == 1 and d in header[0]]
    return {"\t": "tab"}.get(found[0], found[0]) if found else None


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of one file map to the declaration. places: for each declared column, its place in a row."""

    name: str
    options: CsvOptions
    rules: Rules
    width: int
    places: tuple[int, ...]

    @classmethod
    def of(cls, first: Row, name: str, options: CsvOptions, rules: Rules) -> Layout:
        """From the first row. CQ0603 when a declared column is not there, CQ0602 when its type has no text form."""
        for f in rules.fields:
            if not has_text_form(f.type.kind):
                raise UsageError(
                    Diagnostic(
                        "CQ0602", f"column {f.name}: {f.type} cannot be read from CSV", help=("use format = 'parquet'",)
                    )
                )
        if not first.closed:
            raise damaged(name, "the first line opens a quote that is never closed")
        width = len(first.cells)
        if options.header:
            return cls(name, options, rules, width, _by_name(header_names(first), name, rules.fields, options))
        if width != len(rules.fields):
            cause = f"{name} has {width} columns and the stream declares {len(rules.fields)}"
            raise DataError(Diagnostic("CQ0603", cause, help=("without a header, declare every column in order",)))
        return cls(name, options, rules, width, tuple(range(width)))

    def proven(self, block: Block) -> tuple[Piece | None, bool]:
        """The rows of a block cut at a line end that may lie in quotes, if they prove that none does.

        They do when there are as many rows as line ends, and a row of NULLs put behind them is one more: an open quote
        would have swallowed it. The second value is whether guessing is worth it next time.
        """
        text, quote = block.text, self.options.dialect.quote
        behind = b""
        if quote and quote in text:
            behind = self.options.dialect.delimiter.join([self.options.null.encode()] * self.width) + b"\n"
            if behind == b"\n" or quote in behind:
                return None, False
        table = self._through_pyarrow(block, behind)
        if table is None:
            return None, True
        if not table.num_rows or not ends_with_lf_only(text) or table.num_rows != count_line_feeds(text):
            return None, False
        return self._piece(table, block, None), True

    def read(self, block: Block) -> Iterator[Piece]:
        """The rows of a block."""
        table = self._through_pyarrow(block)
        if table is not None:
            lines = lines_of_rows(block.text, self.options.dialect, table.num_rows)
            if table.num_rows:
                yield self._piece(table, block, lines)
        else:
            yield from _ByRow(self, block).pieces()

    def _piece(self, table: pa.Table, block: Block, lines: Positions | None) -> Piece:
        place = Place(self.name, block.first_line, None if lines is None else lines + block.first_line)
        columns = {i: table.column(i).chunk(0) for i in self.rules.wanted}
        return Piece(self.rules.deliver(columns, table.num_rows), place)

    def _through_pyarrow(self, block: Block, behind: bytes = b"") -> pa.Table | None:
        """All declared columns; None when the block has to be read row by row. behind: a row to add and take away."""
        fields = self.rules.fields
        dialect = self.options.dialect
        if block.last and dialect.quote and block.text.count(dialect.quote) % 2:
            return None  # pyarrow takes an open quote at the end for closed
        names = [f"c{i}" for i in range(self.width)]
        declared = [f"c{p}" for p in self.places]
        try:
            table = csv.read_csv(
                pa.BufferReader(_ended(block.text) + behind if behind else _ended(block.text)),
                csv.ReadOptions(use_threads=False, block_size=len(block.text) + len(behind) + 2, column_names=names),
                csv.ParseOptions(
                    delimiter=dialect.delimiter.decode(),
                    quote_char=dialect.quote.decode() or False,
                    double_quote=bool(dialect.quote),
                    newlines_in_values=bool(dialect.quote),
                ),
                self._conversion(declared),
            )
        except pa.ArrowInvalid:
            return None
        if behind:
            table = table.slice(0, table.num_rows - 1)
        if any(self.rules.demands_value(i) and table.column(i).null_count for i in range(len(fields))):
            return None
        for i, f in enumerate(fields):
            if f.type.kind is Kind.DECIMAL:
                read = _plain_decimals(table.column(i), f.type)
                if read is None:
                    return None
                table = table.set_column(i, table.schema.names[i], read)
        if self._far_time(table):
            return None
        if has_hexadecimal(block.text) and self._hexadecimal(block, names):
            return None
        return table

    def _far_time(self, table: pa.Table) -> bool:
        """Whether a value may give an event time beyond 64 bits."""
        if self.rules.time_range is None:
            return False
        column, least, greatest = self.rules.time_range
        values = table.column(column)
        extremes = pc.min_max(values.cast(pa.int32()) if pa.types.is_date(values.type) else values).as_py()
        return extremes["min"] is not None and not (least <= extremes["min"] and extremes["max"] <= greatest)

    def _conversion(self, declared: list[str]) -> csv.ConvertOptions:
        arrow = {
            n: pa.string() if f.type.kind is Kind.DECIMAL else to_arrow(f.type)
            for n, f in zip(declared, self.rules.fields, strict=True)
        }
        return csv.ConvertOptions(
            column_types=arrow,
            include_columns=declared,
            null_values=[self.options.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=list(texts.TRUE_TEXTS),
            false_values=list(texts.FALSE_TEXTS),
            timestamp_parsers=[csv.ISO8601],
        )

    def _hexadecimal(self, block: Block, names: list[str]) -> bool:
        """Whether an integer is written as 0x1F, which pyarrow takes and SQL does not know."""
        integers = [p for p, f in zip(self.places, self.rules.fields, strict=True) if f.type.is_integer]
        return (
            any(
                len(row.cells) == len(names) and any(row.cells[p].text.strip()[:2] in {b"0x", b"0X"} for p in integers)
                for row in rows(block.text, self.options.dialect)
            )
            if integers
            else False
        )


def _by_name(header: list[str], name: str, fields: tuple[Field, ...], options: CsvOptions) -> tuple[int, ...]:
    known = tuple(Field(h, f.type) for h, f in zip(header, [fields[0]] * len(header), strict=True))
    places = []
    for f in fields:
        place = field_of(known, f.name)
        if place is None:
            cause = f"{name} has no column {f.name!r}"
            other = other_delimiter(header, options)
            guess = f"say delimiter = '{other}'" if other else did_you_mean(f.name, header)
            listing = "its columns: " + ", ".join(header[:50])
            raise DataError(Diagnostic("CQ0603", cause, help=tuple(h for h in (guess, listing) if h)))
        places.append(place)
    return tuple(places)


def _ended(text: bytes) -> bytes:
    """The text with its last row ended: without that pyarrow mistakes an empty last field for the one before."""
    return text if text.endswith((b"\n", b"\r")) else text + b"\n"


def _plain_decimals(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray | None:
    """Texts as DECIMALs; None when one has to be read by the strict scanner.

    pyarrow's own reader of decimals must not see an exponent: it looks 10 to that power up in a table without checking
    the index, so that 1e-2147483647 ends the process. Nor does it compare the precision after it has scaled a value.
    """
    texts_of_column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    letters = texts_of_column.buffers()[2]
    found = b"" if letters is None else memoryview(letters).tobytes()
    longest = pc.max(pc.binary_length(texts_of_column)).as_py() or 0
    if b"e" in found or b"E" in found or longest > MAX_PLAIN_DECIMAL_CHARS:
        return None
    try:
        read = texts_of_column.cast(to_arrow(type_))
        read.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return pa.chunked_array([read])


class _ByRow:
    """One block read by the strict scanner."""

    def __init__(self, layout: Layout, block: Block) -> None:
        self.layout, self.block = layout, block
        self.rules = layout.rules
        self.null = layout.options.null.encode()
        self.scan = [texts.scanner(f.type) for f in self.rules.fields]
        self.values: dict[int, list[Any]] = {i: [] for i in self.rules.wanted}
        self.lines: list[int] = []
        self.bad: list[BadRow] = []

    def pieces(self) -> Iterator[Piece]:
        for row in rows(self.block.text, self.layout.options.dialect):
            self._take(row)
        columns = {i: array_of(v, self.rules.fields[i].type) for i, v in self.values.items()}
        import numpy as np

        place = Place(self.layout.name, self.block.first_line, np.array(self.lines, np.int64))
        yield Piece(self.rules.deliver(columns, len(self.lines)), place, tuple(self.bad))

    def _take(self, row: Row) -> None:
        line = self.block.first_line + row.lines
        fault = self._shape_fault(row)
        values: list[Any] = []
        if fault is None:
            for i, place in enumerate(self.layout.places):
                value, fault = self._value(i, row.cells[place])
                if fault is not None:
                    break
                values.append(value)
        if fault is not None:
            code, message, column = fault
            raw = self.block.text[row.start : row.end]
            self.bad.append(BadRow(len(self.lines), line, code, message, column, raw))
            return
        self.lines.append(line)
        for i in self.values:
            self.values[i].append(values[i])

    def _shape_fault(self, row: Row) -> tuple[str, str, str] | None:
        if not row.closed:
            return "CQ0710", "a quoted field is never closed", ""
        if len(row.cells) != self.layout.width:
            return "CQ0710", f"{len(row.cells)} fields where there should be {self.layout.width}", ""
        return None

    def _value(self, column: int, cell: Cell) -> tuple[Any, tuple[str, str, str] | None]:
        name = self.rules.fields[column].name
        if cell.text == self.null and not cell.quoted:
            return None, (*self.rules.null(column), name) if self.rules.demands_value(column) else None
        try:
            value = self.scan[column](cell.text)
        except texts.Unreadable as e:
            return None, (*self.rules.unreadable(column, shown(cell.text), str(e)), name)
        if self.rules.out_of_range(column, value):
            return None, (*self.rules.unreadable(column, shown(cell.text), FAR), name)
        return value, None
