"""CSV sources: blocks through pyarrow, and a block that fails once more, row by row, to place its bad rows.

The text is cut at row ends into blocks; every block is one call of pyarrow's reader with all declared columns and
becomes one piece. When pyarrow refuses a block, or a rule of the declaration is broken in it, `texts.py` reads it
again. Both readers accept the same rows, so bad rows and block edges never change what the others become.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from cq.connectors import texts
from cq.connectors.csv_rows import STANDARD, Cell, Dialect, Positions, Row, complete, count_lines, lines_of_rows, rows
from cq.connectors.physical import array_of
from cq.connectors.protocol import RECORD_BYTES, BadRow, Piece, Place, damaged, field_of
from cq.connectors.rules import FAR, Rules, has_text_form, shown
from cq.errors import DataError, Diagnostic, UsageError, did_you_mean
from cq.schema import Field
from cq.types import DataType, Kind, to_arrow

# Bytes a block has. Measured on four columns: 256 KiB 78 ms, 1 MiB 61 ms, 4 MiB 42 ms for 20 MB; larger blocks wait
# longer before the engine sees the first row and leave the cache.
BLOCK_BYTES = 1 << 20
MAX_PLAIN_DECIMAL_CHARS = 40  # longer ones go to the strict scanner: 38 digits, a sign and a point
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Reads(Protocol):
    """What the CSV reader needs of an open file."""

    def read(self, size: int, /) -> bytes: ...


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
        header = options.get("header", "true").lower() == "true"
        return cls(header, Dialect(delimiter.encode(), quote.encode()), options.get("null", ""))


@dataclass(frozen=True, slots=True)
class Block:
    """Whole rows of a file. first_line: the line its first byte is on, from 1."""

    text: bytes
    first_line: int

    def without(self, size: int) -> Block:
        """The block after its first `size` bytes, which are whole rows."""
        return Block(self.text[size:], self.first_line + count_lines(self.text[:size])) if size else self


def blocks(file: Reads, name: str, dialect: Dialect) -> Iterator[Block]:
    """The file cut at ends of rows. CQ0701 for a row over the record limit or text that is plainly not UTF-8."""
    line, rest, last = 1, b"", False
    while not last:
        # a row longer than a block: read as much again as is waiting, so that it is looked at few times
        found = _read_fully(file, min(max(BLOCK_BYTES, len(rest)), RECORD_BYTES + 1 - len(rest)))
        last = not found
        text = rest + found if rest else found
        if line == 1 and not rest:
            check_encoding(text, name)
            text = text.removeprefix(BYTE_ORDER_MARK)
        end = complete(text, dialect, last)
        if end:
            yield Block(text[:end], line)
            line += count_lines(text[:end])
        rest = text[end:]
        if len(rest) > RECORD_BYTES:
            cause = f"the record at line {line} is longer than {RECORD_BYTES >> 20} MiB"
            raise damaged(name, cause, "is a quote never closed, or is this not a text file?")


def _read_fully(file: Reads, size: int) -> bytes:
    """`size` bytes, fewer only at the end; pipes give what they have, so ask again."""
    found = file.read(size)
    if not found or len(found) >= size // 2:
        return found
    parts = [found]
    have = len(found)
    while have < size and (found := file.read(size - have)):
        parts.append(found)
        have += len(found)
    return b"".join(parts)


def check_encoding(text: bytes, name: str) -> None:
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise damaged(name, "the text is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8")
    for magic, what in (
        (b"PAR1", "Parquet"),
        (b"ARROW1", "Arrow"),
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ):
        if text.startswith(magic):
            raise damaged(
                name, f"this is a {what} file, not CSV", "set the option format, or use the usual file ending"
            )


def read_csv(file: Reads, name: str, options: CsvOptions, rules: Rules) -> Iterator[Piece]:
    """The rows of one file as pieces; declared columns by the names in its header, or by position without one."""
    layout: Layout | None = None
    for block in blocks(file, name, options.dialect):
        header_bytes = 0
        if layout is None:
            first = next(rows(block.text, options.dialect), None)
            if first is None:
                continue
            layout = Layout.of(first, name, options, rules)
            header_bytes = next_row(block.text, first) if options.header else 0
        body = block.without(header_bytes)
        if body.text:
            yield from layout.read(body)
    if layout is None and options.header:
        raise damaged(name, "the file is empty, not even a header line", "say header = false if it has none")


def next_row(text: bytes, row: Row) -> int:
    """Where the row after `row` begins."""
    ending = text[row.end : row.end + 2]
    return row.end + (2 if ending == b"\r\n" else len(ending[:1]))


def header_names(row: Row) -> list[str]:
    """The names a header row gives its columns."""
    return [c.text.decode("utf-8", "replace").strip() for c in row.cells]


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
            return cls(name, options, rules, width, _by_name(header_names(first), name, rules.fields))
        if width != len(rules.fields):
            cause = f"{name} has {width} columns and the stream declares {len(rules.fields)}"
            raise DataError(Diagnostic("CQ0603", cause, help=("without a header, declare every column in order",)))
        return cls(name, options, rules, width, tuple(range(width)))

    def read(self, block: Block) -> Iterator[Piece]:
        """The rows of a block."""
        table = self._through_pyarrow(block)
        if table is not None:
            lines = lines_of_rows(block.text, self.options.dialect, table.num_rows)
            if table.num_rows:
                columns = {i: table.column(i).chunk(0) for i in self.rules.wanted}
                yield Piece(self.rules.deliver(columns, table.num_rows), self._place(block, lines))
        else:
            yield from _ByRow(self, block).pieces()

    def _place(self, block: Block, lines: Positions | None) -> Place:
        return Place(self.name, block.first_line, None if lines is None else lines + block.first_line)

    def _through_pyarrow(self, block: Block) -> pa.Table | None:
        """All declared columns, or None when the block has to be read row by row."""
        fields = self.rules.fields
        dialect = self.options.dialect
        if dialect.quote and block.text.count(dialect.quote) % 2:
            return None  # pyarrow takes an open quote at the end for closed
        names = [f"c{i}" for i in range(self.width)]
        declared = [f"c{p}" for p in self.places]
        try:
            table = csv.read_csv(
                pa.BufferReader(_ended(block.text)),
                csv.ReadOptions(use_threads=False, block_size=len(block.text) + 2, column_names=names),
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
        if b"0x" in block.text or b"0X" in block.text:
            hexadecimal = self._hexadecimal(block, names)
            if hexadecimal:
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


def _by_name(header: list[str], name: str, fields: tuple[Field, ...]) -> tuple[int, ...]:
    known = tuple(Field(h, f.type) for h, f in zip(header, [fields[0]] * len(header), strict=True))
    places = []
    for f in fields:
        place = field_of(known, f.name)
        if place is None or header.count(header[place]) > 1:
            cause = f"{name} has no column {f.name!r}" if place is None else f"{name} has several columns {f.name!r}"
            guess = did_you_mean(f.name, header)
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
