"""CSV sources: parse blocks natively where the engine can, else through pyarrow; reread a failing block row by row.

The text is cut at row ends into blocks, several of which are parsed at once; every block becomes one piece. The
engine's own reader takes plain rows; a block with other rows, or without such a reader, is one pyarrow call with all
declared columns. When pyarrow refuses a block, or a row breaks a rule of the declaration, `cells.py` reads the block
again and locates its bad rows. All readers accept the same rows, so bad rows and block edges never change the values of
the others.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
from pyarrow import csv

from cq.connectors import cells
from cq.connectors import compute as pc
from cq.connectors.conversion import timestamps_as
from cq.connectors.csv.blocks import Readable, TextBlock, UnreadRows
from cq.connectors.csv.plain import MakePlainScan, Plain, PlainColumns, PlainReading
from cq.connectors.csv.rows import (
    NEVER_CLOSED,
    STANDARD,
    Cell,
    CsvRow,
    Dialect,
    Positions,
    count_line_feeds,
    ends_with_lf_only,
    has_hexadecimal,
    has_leading_zeros,
    is_utf8,
    lines_of_rows,
    rows,
    text_behind_quotes,
)
from cq.connectors.formats import CSV_OPTIONS
from cq.connectors.parallel import Parallel, cores
from cq.connectors.physical_rows import array_of
from cq.connectors.protocol import BadRow, ColumnNames, Piece, Place, damaged, told_apart
from cq.connectors.rules import FAR, RowFault, Rules, has_text_form, shown
from cq.errors import DataError, Diagnostic, UsageError, amount, did_you_mean, printable
from cq.grammar import inline
from cq.lang.arrow_buffers import from_hexadecimal
from cq.lang.schema import Field
from cq.lang.types import DOUBLE, MAX_DECIMAL_DIGITS, DataType, Kind, to_arrow
from cq.records import dataclass, replace

MAX_THREADS = 4  # threads that parse one file; a block with a bad row is reread with everything that was read with it
MAX_FILE_COLUMNS = 16_384  # per file, for every reader (`cq limits`): the most that spreadsheets have
QUOTES_AS_LETTERS = (
    "to read quotes as ordinary characters, write quote = '' in WITH, or pass -w quote= to cq run and cq schema"
)
MAX_NULLS_BEFORE = 64  # rows of a block that are checked for how its times are written
_HAS_ZONE = re.compile(rb":[0-9.]*(?:Z|[+-][0-9:]+)$")
_IS_FINE = re.compile(rb"\.[0-9]{7}")
MOST_DIGITS_256 = 76  # of an Arrow decimal of 256 bits
MAX_PLAIN_DECIMAL_CHARS = 40  # longer ones go to the strict scanner: 38 digits, a sign and a point


_ELEMENT = r'[^\[\],"\s][^\[\],"]*'


def _array_of_text(name: str, type_: DataType) -> str:
    """The array that a text denotes: elements between commas, with or without brackets and quotes; also as cq writes
    it."""
    assert type_.element is not None
    is_text = type_.element.kind is Kind.VARCHAR
    pieces = f"SPLIT({name}, ',')" if is_text else f"REGEXP_EXTRACT_ALL({name}, '{_ELEMENT}')"
    return f"CAST({pieces} AS {type_})"


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """The CSV options of a WITH clause."""

    header: bool = CSV_OPTIONS["header"].default == "true"
    dialect: Dialect = STANDARD
    nulls: tuple[str, ...] = (CSV_OPTIONS["null"].default,)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CsvOptions:
        """Options as written, with defaults for the missing ones; CQ0208 when they make no CSV."""
        written = {key: options.get(key, definition.default) for key, definition in CSV_OPTIONS.items()}
        for key in ("delimiter", "quote"):
            if not CSV_OPTIONS[key].accepts(written[key]):
                cause = f"{key} must be {CSV_OPTIONS[key].allowed}, not {written[key]!r}"
                raise UsageError(Diagnostic("CQ0208", cause))
        delimiter, quote = written["delimiter"], written["quote"]
        delimiter = "\t" if delimiter in CSV_OPTIONS["delimiter"].choices else delimiter
        if delimiter == quote:
            raise UsageError(Diagnostic("CQ0208", "delimiter and quote cannot be the same character"))
        return cls(
            written["header"] == "true", Dialect(delimiter.encode(), quote.encode()), tuple(written["null"].split(","))
        )


def read_csv(
    file: Readable, name: str, options: CsvOptions, rules: Rules, make_scan: MakePlainScan | None = None,
    may_be_blank: bool = False,
) -> Iterator[Piece]:  # fmt: skip
    """The rows of one file as pieces; declared columns by the names in its header, or by position without one.

    make_scan: makes the engine's own reader, if it has one.  may_be_blank: whether a file that lacks the header line it
    should have counts as a file without rows.
    """
    threads = min(cores(), MAX_THREADS)
    window = UnreadRows(file, name, options.dialect, threads)
    with closing(Parallel(threads - 1)) as parallel:
        begun = yield from _pieces(window, name, options, rules, make_scan, parallel)
    if not begun and options.header and not may_be_blank:
        raise damaged(name, "the input is empty, not even a header line", "write header = false if it has none")


def _pieces(
    window: UnreadRows,
    name: str,
    options: CsvOptions,
    rules: Rules,
    make_scan: MakePlainScan | None,
    parallel: Parallel,
) -> Generator[Piece, None, bool]:
    """Yield the rows; return whether there was a first one, or a header."""
    column_map: ColumnMap | None = None
    may_guess = True
    while window.fill():
        if column_map is None:
            block = window.whole()
            first = first_row(block.text, name, options)
            if first is None:
                window.take(len(block.text))
                continue
            column_map = ColumnMap.of(first, name, options, rules).by(make_scan)
            if options.header:
                window.take(next_row(block.text, first))
        if may_guess and not window.last:
            guesses = window.guesses()
            for guess, (piece, again) in zip(guesses, parallel.map(column_map.proven, guesses), strict=True):
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
            yield from column_map.read(block)
    return column_map is not None


def first_row(text: bytes, name: str, options: CsvOptions) -> CsvRow | None:
    """The first row that is not a blank line; CQ0701 when its quotes or names are wrong, CQ0802 when it is too wide."""
    found = rows(text, options.dialect, MAX_FILE_COLUMNS)
    first = next((row for row in found if not row.blank), None)
    if first is None:
        return None
    if len(first.cells) > MAX_FILE_COLUMNS:
        cause = f"it has more than {MAX_FILE_COLUMNS:,} columns"
        help = ("is the delimiter the right one, or are rows and columns swapped?",)
        raise DataError(Diagnostic("CQ0802", cause, severity="data error", place=name, help=help))
    if first.fault and options.header:
        raise damaged(name, f"in its header {first.fault}")
    strange = next((c.text for c in first.cells if options.header and not is_utf8(c.text)), None)
    if strange is not None:
        way = f"convert it first: iconv -f LATIN1 -t UTF-8 '{printable(name)}' > utf8.csv"
        raise damaged(name, f"the column name '{shown(strange)}' in its header is not UTF-8", way)
    return first


def next_row(text: bytes, row: CsvRow) -> int:
    """The start of the row after `row`."""
    ending = text[row.end : row.end + 2]
    return row.end + (2 if ending == b"\r\n" else len(ending[:1]))


def header_names(row: CsvRow) -> list[str]:
    """The column names in a header row; an unnamed column is column0, column1, … by its position, and the second of two
    equal names becomes name_1."""
    return told_apart([c.text.decode().strip() or f"column{i}" for i, c in enumerate(row.cells)])


def other_delimiter(header: Sequence[str], options: CsvOptions) -> str | None:
    """The delimiter that a header with one name seems to use instead of the given one; as the option is written."""
    taken = options.dialect.delimiter.decode()
    found = [d for d in (";", "\t", "|", ",") if d != taken and len(header) == 1 and d in header[0]]
    return {"\t": "tab"}.get(found[0], found[0]) if found else None


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """How the columns of one file map to the declaration. indices: for each declared column, its index in a row.

    plain: the reader of plain rows, if the engine has one.
    """

    name: str
    options: CsvOptions
    rules: Rules
    width: int
    indices: tuple[int, ...]
    plain: PlainReading | None = None

    @classmethod
    def of(cls, first: CsvRow, name: str, options: CsvOptions, rules: Rules) -> ColumnMap:
        """Made from the first row. CQ0603 when a declared column is missing, CQ0602 when its type has no text form."""
        for f in rules.fields:
            if not has_text_form(f.type.kind):
                way = "use format = 'parquet'"
                if f.type.kind is Kind.ARRAY:
                    name = inline.name(f.name)
                    way += f", or declare it VARCHAR and write {_array_of_text(name, f.type)}"
                cause = f"column {f.name}: {f.type} cannot be read from CSV"
                raise UsageError(Diagnostic("CQ0602", cause, help=(way,)))
        width = len(first.cells)
        if options.header:
            return cls(name, options, rules, width, _by_name(header_names(first), name, rules.fields, options))
        if width != len(rules.fields):
            cause = f"{name} has {amount(width, 'column')} and the stream declares {len(rules.fields)}"
            raise DataError(Diagnostic("CQ0603", cause, help=("without a header, declare every column in order",)))
        return cls(name, options, rules, width, tuple(range(width)))

    def by(self, make_scan: MakePlainScan | None) -> ColumnMap:
        """The same map, with the engine's own reader where it has one for these columns."""
        rules, options = self.rules, self.options
        if make_scan is None or (rules.ranged is not None and rules.ranged.column not in rules.wanted):
            return self
        # rows with a NULL event time are left out, so its column is not nullable
        fields = tuple(replace(f, nullable=not rules.demands_value(i)) for i, f in enumerate(rules.fields))
        nulls = tuple(text.encode() for text in options.nulls)
        guessed = bool(rules.guessed_for)
        scan = make_scan(Plain(options.dialect, nulls, self.width, fields, self.indices, rules.wanted, guessed))
        return self if scan is None else replace(self, plain=PlainReading(scan))

    def columns(self, text: bytes) -> PlainColumns | None:
        """The columns of whole rows, each on one line; None where some are not plain, or there is no reader for
        them."""
        found = None if self.plain is None or not text else self.plain.columns(text)
        if found is None or self.rules.ranged is None:
            return found
        return None if self._is_far(found.columns[self.rules.ranged.column]) else found

    def _plain_piece(self, block: TextBlock) -> Piece | None:
        found = self.columns(block.text)
        if found is None:
            return None
        return Piece(self.rules.deliver(found.columns, found.rows), Place(self.name, block.first_line))

    def proven(self, block: TextBlock) -> tuple[Piece | None, bool]:
        """The rows of a block cut at a line end that may lie in quotes, if they prove that none does.

        They do when there are as many rows as line ends, and a row of NULLs appended to them is one more: an open quote
        would have swallowed it. The second value is whether guessing pays next time.
        """
        text, quote = block.text, self.options.dialect.quote
        piece = self._plain_piece(block)
        if piece is not None:
            return piece, True
        behind = b""
        if quote and quote in text:
            behind = self.options.dialect.delimiter.join([self.options.nulls[0].encode()] * self.width) + b"\n"
            if quote in behind:
                return None, False
        table = self.through_pyarrow(block, behind)
        if table is None:
            return None, True
        if not table.num_rows or not ends_with_lf_only(text) or table.num_rows != count_line_feeds(text):
            return None, False
        if self._text_behind_quotes(block, lines_are_rows=True):
            return None, True
        return self._piece(table, block, None), True

    def read(self, block: TextBlock) -> Iterator[Piece]:
        """The rows of a block."""
        piece = self._plain_piece(block)
        if piece is not None:
            yield piece
            return
        table = self.through_pyarrow(block)
        if table is None or self._text_behind_quotes(block):
            yield _ByRow(self, block).piece()
        else:
            lines, blank = lines_of_rows(block.text, self.options.dialect, self.width, table.num_rows)
            if table.num_rows or blank:
                yield self._piece(table, block, lines, blank)

    def _piece(self, table: pa.Table, block: TextBlock, lines: Positions | None, blank: int = 0) -> Piece:
        place = Place(self.name, block.first_line, None if lines is None else lines + block.first_line)
        columns = {i: one_array(table.column(i)) for i in self.rules.wanted}
        return Piece(self.rules.deliver(columns, table.num_rows), place, blank=blank)

    def _text_behind_quotes(self, block: TextBlock, lines_are_rows: bool = False) -> bool:
        dialect = self.options.dialect
        return (
            bool(dialect.quote)
            and dialect.quote in block.text
            and text_behind_quotes(block.text, dialect, lines_are_rows)
        )

    def through_pyarrow(self, block: TextBlock, behind: bytes = b"") -> pa.Table | None:
        """All declared columns; None when the block has to be read row by row. behind: a row to append and drop
        again."""
        fields = self.rules.fields
        dialect = self.options.dialect
        if block.last and dialect.quote and block.text.count(dialect.quote) % 2:
            return None  # pyarrow takes an open quote at the end as closed
        if any(f.type.kind is Kind.INTERVAL for f in fields):
            return None  # pyarrow reads no INTERVAL
        declared = [f"c{p}" for p in self.indices]
        types = [_as_parsed(f.type) for f in fields]
        times = self._time_types(block.text)
        asked = dict(zip(declared, types, strict=True)) | {declared[i]: type_ for i, type_ in times.items()}
        asked = asked or {"c0": pa.binary()}  # rows that are only counted, so invalid UTF-8 does not matter
        table = self._parsed(block.text, behind, asked)
        if table is None:
            return None
        for i, f in enumerate(fields):
            if i in times or f.type.kind is Kind.TIMESTAMP_LTZ:
                made = timestamps_as(f.type)(one_array(table.column(i)))
                table = table.set_column(i, table.schema.names[i], pa.chunked_array([made]))
        if behind:
            table = table.slice(0, table.num_rows - 1)
        if any(self.rules.demands_value(i) and table.column(i).null_count for i in range(len(fields))):
            return None
        for i, f in enumerate(fields):
            if f.type.kind in _FROM_TEXT:
                read = _FROM_TEXT[f.type.kind](table.column(i), f.type)
                if read is None:
                    return None
                table = table.set_column(i, table.schema.names[i], read)
        if self.rules.ranged is not None and self._is_far(table.column(self.rules.ranged.column)):
            return None
        if self._strange_integer(block.text):
            return None
        return table

    def _time_types(self, text: bytes) -> dict[int, pa.DataType]:
        """The pyarrow types for the timestamp columns whose first value has a zone, or more digits than microseconds;
        pyarrow then accepts no other form in the column."""
        missing = [i for i, f in enumerate(self.rules.fields) if f.type.is_timestamp]
        types: dict[int, pa.DataType] = {}
        for row in islice(rows(text, self.options.dialect), MAX_NULLS_BEFORE if missing else 0):
            for i in tuple(missing):
                value = row.cells[self.indices[i]].text if self.indices[i] < len(row.cells) else b""
                if value and value.decode("utf-8", "replace") not in self.options.nulls:
                    missing.remove(i)
                    zone, unit = _HAS_ZONE.search(value), "ns" if _IS_FINE.search(value) else "us"
                    if zone or unit == "ns":
                        types[i] = pa.timestamp(unit, "UTC" if zone else None)
            if not missing:
                break
        return types

    def _is_far(self, values: pa.Array | pa.ChunkedArray) -> bool:
        """Whether one of the values gives an event time beyond 64 bits."""
        time = self.rules.ranged
        if time is None:
            return False
        extremes = pc.min_max(values.cast(pa.int32()) if pa.types.is_date(values.type) else values).as_py()
        return extremes["min"] is not None and not (time.least <= extremes["min"] and extremes["max"] <= time.greatest)

    def _parsed(self, text: bytes, behind: bytes, types: dict[str, pa.DataType]) -> pa.Table | None:
        """These columns in these types; None where pyarrow refuses a row or a value."""
        dialect = self.options.dialect
        try:
            return csv.read_csv(
                pa.BufferReader(_ended(text) + behind if behind else _ended(text)),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=len(text) + len(behind) + 2,
                    column_names=[f"c{i}" for i in range(self.width)],
                ),
                csv.ParseOptions(
                    delimiter=dialect.delimiter.decode(),
                    quote_char=dialect.quote.decode() or False,
                    double_quote=bool(dialect.quote),
                    newlines_in_values=bool(dialect.quote),
                    ignore_empty_lines=self.width > 1,
                ),
                csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=list(self.options.nulls),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    true_values=list(cells.TRUE_TEXTS),
                    false_values=list(cells.FALSE_TEXTS),
                    timestamp_parsers=[csv.ISO8601],
                ),
            )
        except pa.ArrowInvalid:
            return None

    def _strange_integer(self, text: bytes) -> bool:
        """Whether a number is written in a way that pyarrow accepts and we do not: 0x1F, or 00501 where the type is a
        guess."""
        guessed = bool(self.rules.guessed_for)
        if not has_hexadecimal(text) and not (guessed and has_leading_zeros(text, self.options.dialect)):
            return False
        types = [(p, f.type) for p, f in zip(self.indices, self.rules.fields, strict=True)]
        numbers = [p for p, type_ in types if type_.is_integer or (guessed and type_ == DOUBLE)]
        texts = self._parsed(text, b"", {f"c{p}": pa.string() for p in numbers}) if numbers else None
        pattern = rf"^[ \t]*0[xX]{'|^0[0-9]+$' if guessed else ''}"
        return texts is not None and any(
            pc.any(pc.match_substring_regex(column, pattern)).as_py() for column in texts.columns
        )


def _as_parsed(type_: DataType) -> pa.DataType:
    """The type in which pyarrow reads a column whose values do not ask for another."""
    match type_.kind:
        case kind if kind in _FROM_TEXT:
            return pa.string()
        case Kind.TIMESTAMP_LTZ:
            return pa.timestamp("us")
        case _:
            return to_arrow(type_)


def _by_name(header: list[str], name: str, fields: tuple[Field, ...], options: CsvOptions) -> tuple[int, ...]:
    known = ColumnNames(header)
    indices = []
    for f in fields:
        index = known.find(f.name)
        if index is None:
            cause = f"{name} has no column {f.name!r}"
            other = other_delimiter(header, options)
            guess = f"write delimiter = '{other}'" if other else did_you_mean(f.name, header)
            listing = "its columns: " + ", ".join(header[:50])
            raise DataError(Diagnostic("CQ0603", cause, help=tuple(h for h in (guess, listing) if h)))
        indices.append(index)
    return tuple(indices)


def _ended(text: bytes) -> bytes:
    """The text with its last row terminated: otherwise pyarrow mistakes an empty last field for the one before."""
    return text if not text or text.endswith((b"\n", b"\r")) else text + b"\n"


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column that was read as one block, as one array."""
    return column.chunk(0) if column.num_chunks else column.combine_chunks()


def _plain_decimals(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray | None:
    """Texts as DECIMALs; None when the strict scanner has to read one of them.

    pyarrow's own reader of decimals must not see an exponent: it looks up 10 to that power in a table without checking
    the index, so 1e-2147483647 crashes the process. Nor does it check the precision after scaling a value: values that
    could exceed 128 bits then are read with 256.
    """
    texts_of_column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    letters = texts_of_column.buffers()[2]
    found = b"" if letters is None else memoryview(letters).tobytes()
    longest = pc.max(pc.binary_length(texts_of_column)).as_py() or 0
    if b"e" in found or b"E" in found or longest > MAX_PLAIN_DECIMAL_CHARS or longest + type_.scale > MOST_DIGITS_256:
        return None
    try:
        if longest + type_.scale > MAX_DECIMAL_DIGITS:
            texts_of_column = texts_of_column.cast(pa.decimal256(MOST_DIGITS_256, type_.scale))
        read = texts_of_column.cast(to_arrow(type_))
        read.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return pa.chunked_array([read])


def _plain_binaries(column: pa.ChunkedArray, _: DataType) -> pa.ChunkedArray | None:
    """Texts as values of BINARY; None when the strict scanner has to refuse one of them."""
    read = from_hexadecimal(one_array(column))
    return None if read is None else pa.chunked_array([read])


_FROM_TEXT = {Kind.DECIMAL: _plain_decimals, Kind.BINARY: _plain_binaries}  # readers of what pyarrow reads as text


class _ByRow:
    """The strict scanner over one block."""

    def __init__(self, column_map: ColumnMap, block: TextBlock) -> None:
        self.column_map, self.block = column_map, block
        self.rules = column_map.rules
        self.nulls = {text.encode() for text in column_map.options.nulls}
        self.scan = [cells.scanner(f.type, bool(self.rules.guessed_for)) for f in self.rules.fields]
        self.values: dict[int, list[Any]] = {i: [] for i in self.rules.wanted}
        self.lines: list[int] = []
        self.bad: list[BadRow] = []
        self.note = ""

    def piece(self) -> Piece:
        """All rows of the block."""
        blank = 0
        for row in rows(self.block.text, self.column_map.options.dialect):
            if row.blank and self.column_map.width > 1:
                blank += 1
            else:
                self._take(row)
        columns = {i: array_of(v, self.rules.fields[i].type) for i, v in self.values.items()}
        import numpy as np

        place = Place(self.column_map.name, self.block.first_line, np.array(self.lines, np.int64))
        return Piece(self.rules.deliver(columns, len(self.lines)), place, tuple(self.bad), blank, self.note)

    def _take(self, row: CsvRow) -> None:
        line = self.block.first_line + row.lines
        fault = self._shape_fault(row, line)
        values: list[Any] = []
        if fault is None:
            for i, index in enumerate(self.column_map.indices):
                value, fault = self._value(i, row.cells[index])
                if fault is not None:
                    break
                values.append(value)
        if fault is not None:
            raw = self.block.text[row.start : row.end]
            self.bad.append(self.rules.bad_row(len(self.lines), line, fault, raw))
            return
        self.lines.append(line)
        for i in self.values:
            self.values[i].append(values[i])

    def _shape_fault(self, row: CsvRow, line: int) -> RowFault | None:
        swallowed = len(self.block.text[row.start : row.end].splitlines()) if row.fault == NEVER_CLOSED else 0
        if swallowed > 1:
            self.note = (
                f"{self.column_map.name}: {NEVER_CLOSED}, so one unreadable record goes from line {line} to the end: "
                f"{swallowed:,} lines; quote = '' reads quotes as ordinary characters"
            )
            cause = f"{row.fault}: the record continues to the end, over {swallowed:,} lines"
            return RowFault("CQ0710", cause, way=QUOTES_AS_LETTERS)
        if row.fault:
            return RowFault("CQ0710", row.fault, way=QUOTES_AS_LETTERS)
        if len(row.cells) != self.column_map.width:
            return RowFault(
                "CQ0710", f"{amount(len(row.cells), 'field')} where there should be {self.column_map.width}"
            )
        return None

    def _value(self, column: int, cell: Cell) -> tuple[Any, RowFault | None]:
        if cell.text in self.nulls and not cell.quoted:
            return None, RowFault(*self.rules.null(column), column) if self.rules.demands_value(column) else None
        try:
            value = self.scan[column](cell.text)
        except cells.UnreadableText as e:
            wider = self.rules.wider(column, cell.text, partial(cells.is_one, cell.text))
            return None, RowFault(
                *self.rules.unreadable(column, shown(cell.text), str(e)), column, wider, not cell.text
            )
        if self.rules.out_of_range(column, value):
            return None, RowFault(*self.rules.unreadable(column, shown(cell.text), FAR), column)
        return value, None
