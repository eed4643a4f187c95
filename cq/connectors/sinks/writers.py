"""Sinks: CSV, JSON lines, Parquet and Arrow to a file or standard output, memory, and discard."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa

from cq.connectors.access import STDIN, FileAccess
from cq.connectors.csv.source import CsvOptions
from cq.connectors.formats import CODECS, FORMATS, WRITTEN, codec_of, ending_format, loaded, options_of_ending
from cq.connectors.protocol import Sink
from cq.connectors.registry import SINKS
from cq.connectors.sinks.cell_text import csv_header, csv_rows, json_rows, not_numbers
from cq.connectors.sinks.partitioned import Partitioned, partition_columns
from cq.connectors.sinks.targets import (
    FileTarget,
    OutputClosed,
    Packed,
    Target,
    cannot_write,
    is_pipe,
    open_target,
    silence_stdout,
)
from cq.errors import CqError, Diagnostic, UsageError, printable
from cq.grammar import inline
from cq.hints import face
from cq.lang.schema import Field
from cq.lang.types import Kind, to_arrow
from cq.records import dataclass

_ENDINGS_WRITTEN = tuple(ending for ending, codec in CODECS.items() if codec in WRITTEN)
ROW_GROUP_ROWS = 131_072  # of a Parquet file: engines read row groups in parallel, and each costs some kilobytes


MakeSink = Callable[[pa.Schema, Target, bool], Sink]
"""The sink of a schema over a target. endless: as of `open_sink`."""

OpenSink = Callable[[str, Mapping[str, str]], MakeSink]
"""Make the sink of a path with these checked options; nothing is opened earlier."""


def result_schema(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of results with these columns."""
    return pa.schema([pa.field(f.name, to_arrow(f.type), f.nullable) for f in fields])


def format_for(path: str, given: str = "", piped: bool = False) -> str:
    """The format as given, else by the ending of the name, else that of pipes; CQ0602 for a file of unknown format."""
    if given:
        return given.lower()
    format_ = ending_format(path)
    if piped and not format_:
        return SINKS["stdout"].options["format"].default
    if not format_:
        cause = f'the extension of "{path}" names no format'
        raise UsageError(Diagnostic("CQ0602", cause, help=(f"say which: -f {', '.join(FORMATS)}",)))
    return format_


def open_sink(
    fields: Sequence[Field],
    options: Mapping[str, str],
    access: FileAccess,
    reserved: frozenset[tuple[int, int]] = frozenset(),
    endless: bool = False,
) -> Sink:
    """The sink a WITH clause describes.

    reserved: files that must not be written, by (device, inode).  endless: the rows may never end, so a file keeps what
    has arrived when the run ends first.
    """
    opener = loaded(SINKS[_connector(options)].open)
    opened: Sink = opener(SinkRequest(fields, options, access, reserved, endless))
    return opened


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """The request to open a sink; fields as for `open_sink`."""

    fields: Sequence[Field]
    options: Mapping[str, str]
    access: FileAccess
    reserved: frozenset[tuple[int, int]]
    endless: bool


def open_discard(asked: SinkRequest) -> Sink:
    """A sink whose rows go nowhere."""
    return Discard()


def open_memory(asked: SinkRequest) -> Sink:
    """A sink that keeps its rows for a program."""
    return MemorySink(result_schema(asked.fields))


def open_stdout(asked: SinkRequest) -> Sink:
    """Standard output as a sink."""
    return _written(STDIN, asked)


def open_file(asked: SinkRequest) -> Sink:
    """A file as a sink, or several files, one for each combination of values of some columns."""
    path = asked.options["path"]
    return Discard() if asked.access.resolve(path) == Path(os.devnull) else _written(path, asked)


def _written(path: str, asked: SinkRequest) -> Sink:
    """The sink for a path."""
    fields, options, access = asked.fields, asked.options, asked.access
    piped = is_pipe(path, access)
    kind = format_for(path, options.get("format", ""), piped)
    _demand_no_months(fields, kind)
    if options.get("partition_by"):
        return _partitioned(path, fields, options, access, asked.reserved, asked.endless)
    if path.endswith("/"):
        parted = ", or --partition-by COLUMN" if face().takes_options else ""
        ways = ("name a file in it", f"or partition the rows: partition_by = 'column' in WITH{parted}")
        raise UsageError(Diagnostic("CQ0605", f'cannot write "{path}": it is a directory', help=ways))
    if kind not in FORMATS:
        help = ("formats: " + ", ".join(FORMATS),)
        raise UsageError(Diagnostic("CQ0208", f'there is no format "{kind}"', help=help))
    codec = codec_of(path, options.get("compression", ""), kind)
    if codec and codec not in WRITTEN:
        cause = f'"{path}" would be compressed with {codec}, which cq cannot write'
        raise UsageError(Diagnostic("CQ0602", cause, help=(f"name it with {' or '.join(_ENDINGS_WRITTEN)}",)))
    format_ = FORMATS[kind]
    if piped and not format_.pipes:
        raise UsageError(Diagnostic("CQ0605", f"{format_.title} cannot be written to a pipe", help=("use -f arrow",)))
    opener: OpenSink = loaded(format_.sink)
    make = opener(path, options)
    target: Target = open_target(path, access, asked.reserved, grows=asked.endless and format_.grows)
    if codec:
        target = Packed(target, codec, asked.endless)
    return make(result_schema(fields), target, asked.endless)


def _demand_no_months(fields: Sequence[Field], kind: str) -> None:
    """CQ0605 for a file whose types would store an INTERVAL of months as a plain integer: no reader could tell."""
    column = next((f.name for f in fields if f.type.kind is Kind.INTERVAL_MONTH), None)
    if column is None or kind not in FORMATS or FORMATS[kind].months:
        return
    cause = f"column {printable(column)} is an INTERVAL of months, for which {FORMATS[kind].title} has no type"
    ways = (
        f"write its text: CAST({inline.name(column)} AS VARCHAR)",
        f"or its number of months: TIMESTAMPDIFF(MONTH, DATE '2000-01-01', DATE '2000-01-01' + {inline.name(column)})",
    )
    raise UsageError(Diagnostic("CQ0605", cause, help=ways))


def _connector(options: Mapping[str, str]) -> str:
    return options.get("connector", "file" if "path" in options else "stdout")


def writes_stdout(options: Mapping[str, str]) -> bool:
    """Whether the sink a WITH clause describes writes to standard output."""
    return _connector(options) == "stdout" or options.get("path") == STDIN


CsvText = Callable[[pa.RecordBatch], bytes]
"""The lines of a batch, as `csv_rows` makes them."""


def _partitioned(
    path: str,
    fields: Sequence[Field],
    options: Mapping[str, str],
    access: FileAccess,
    reserved: frozenset[tuple[int, int]],
    endless: bool,
) -> Sink:
    """The files of a directory, written as the other options say."""
    if path == STDIN:
        cause = "partitioned rows are written to a directory, not to standard output"
        raise UsageError(Diagnostic("CQ0605", cause, help=("name one: -o DIR/",)))
    kind = format_for(path, options.get("format", ""))
    ending = kind + {codec: end for end, codec in CODECS.items()}.get(options.get("compression", ""), "")
    own = {key: value for key, value in options.items() if key not in {"partition_by", "path"}}

    def opened(part: str) -> Sink:
        return open_sink(fields, {**own, "path": part}, access, reserved, endless)

    return Partitioned(path, access.resolve(path), partition_columns(options["partition_by"], fields), ending, opened)


class Csv:
    """Lines of CSV after a header, which is written with the first row or at the end: a run that cannot start writes
    nothing."""

    def __init__(self, schema: pa.Schema, target: Target, delimiter: str, header: bool) -> None:
        self._target, self._delimiter = target, delimiter
        self._header = csv_header(schema.names, delimiter) if header else b""
        self._way: Callable[[str], CsvText] = lambda delimiter: partial(csv_rows, delimiter=delimiter)
        self._text: CsvText | None = None

    def write_by(self, way: Callable[[str], CsvText]) -> None:
        """Use the line writer that this function returns for the delimiter; it is called when the first rows come."""
        self._way = way

    def write(self, batch: pa.RecordBatch) -> None:
        if self._text is None:
            self._text = self._way(self._delimiter)
        self._target.write(self._header + self._text(batch))
        self._header = b""

    def close(self) -> None:
        self._target.write(self._header)
        self._target.close()

    def abort(self) -> None:
        self._target.abort()

    @property
    def stays(self) -> bool:
        return self._target.stays

    @property
    def lasts(self) -> bool:
        return self._target.lasts


class JsonLines:
    """One JSON object per line.  nulls: how many values so far are null because JSON has no such numbers."""

    def __init__(self, target: Target, nan_text: bool = False) -> None:
        self._target, self._nan_text = target, nan_text
        self.nulls = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not self._nan_text:
            self.nulls += not_numbers(batch)
        self._target.write(json_rows(batch, self._nan_text))

    def close(self) -> None:
        self._target.close()

    def abort(self) -> None:
        self._target.abort()

    @property
    def stays(self) -> bool:
        return self._target.stays

    @property
    def lasts(self) -> bool:
        return self._target.lasts


class Parquet:
    """A Parquet file with checksums; rows are collected into row groups."""

    def __init__(self, schema: pa.Schema, target: FileTarget, path: str) -> None:
        from pyarrow import parquet  # 20 ms that a run without a Parquet file saves

        self._target, self._path, self._schema = target, path, schema
        self._writer = parquet.ParquetWriter(target.file, schema, compression="zstd", write_page_checksum=True)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch.cast(self._schema))
        self._rows += batch.num_rows
        if self._rows >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        try:
            if self._waiting:
                self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=ROW_GROUP_ROWS)
        except OSError as e:
            raise cannot_write(self._path, e) from None
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        self._flush()
        try:
            self._writer.close()
        except OSError as e:
            self.abort()
            raise cannot_write(self._path, e) from None
        self._target.close()

    def abort(self) -> None:
        """Close the writer into nothing now: one that is dropped open writes its footer when it is collected."""
        self._target.ignore()
        with suppress(pa.ArrowException, OSError, ValueError):
            self._writer.close()
        self._target.abort()

    @property
    def stays(self) -> bool:
        return self._target.stays

    @property
    def lasts(self) -> bool:
        return self._target.lasts


class Arrow:
    """Arrow IPC: the file format in a file, the stream format in a pipe."""

    def __init__(self, schema: pa.Schema, target: Target, path: str) -> None:
        self._target, self._schema = target, schema
        self._path = "<stdout>" if path == STDIN else path
        made = pa.ipc.new_file if isinstance(target, FileTarget) else pa.ipc.new_stream
        self._writer = made(target.file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            self._writer.write_batch(batch.cast(self._schema))
        except BrokenPipeError:
            silence_stdout()
            raise OutputClosed from None
        except OSError as e:
            raise cannot_write(self._path, e) from None

    def close(self) -> None:
        try:
            self._writer.close()
        except BrokenPipeError:
            silence_stdout()
            raise OutputClosed from None
        except OSError as e:
            self.abort()
            raise cannot_write(self._path, e) from None
        self._target.close()

    def abort(self) -> None:
        self._target.abort()

    @property
    def stays(self) -> bool:
        return self._target.stays

    @property
    def lasts(self) -> bool:
        return self._target.lasts


class Completed:
    """A file that is readable only with its footer, for endless rows: when the run ends first, the file is completed
    with the rows that have arrived."""

    lasts = True

    def __init__(self, sink: Parquet | Arrow) -> None:
        self._sink = sink
        self._has_rows = self._stays = False

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink.write(batch)
        self._has_rows = True

    def close(self) -> None:
        self._sink.close()

    def abort(self) -> None:
        if self._has_rows:
            self._has_rows = False
            with suppress(CqError, pa.ArrowException):  # then nothing is kept
                self._sink.close()
                self._stays = True
                return
        self._sink.abort()

    @property
    def stays(self) -> bool:
        return self._stays


def csv_sink(path: str, options: Mapping[str, str]) -> MakeSink:
    """The rows as CSV."""
    csv = CsvOptions.of({**options_of_ending(path), **options})
    return lambda schema, target, endless: Csv(schema, target, csv.dialect.delimiter.decode(), csv.header)


def json_sink(path: str, options: Mapping[str, str]) -> MakeSink:
    """The rows as JSON lines."""
    nan_text = options.get("nan", SINKS["file"].options["nan"].default) == "text"
    return lambda schema, target, endless: JsonLines(target, nan_text)


def parquet_sink(path: str, options: Mapping[str, str]) -> MakeSink:
    """The rows as a Parquet file."""

    def made(schema: pa.Schema, target: Target, endless: bool) -> Sink:
        assert isinstance(target, FileTarget), "pipes were refused"
        whole = Parquet(schema, target, path)
        return Completed(whole) if endless else whole

    return made


def arrow_sink(path: str, options: Mapping[str, str]) -> MakeSink:
    """The rows as Arrow IPC."""

    def made(schema: pa.Schema, target: Target, endless: bool) -> Sink:
        whole = Arrow(schema, target, path)
        return Completed(whole) if endless and isinstance(target, FileTarget) else whole

    return made


class MemorySink:
    """Keeps the batches in memory, for the Python API and for comparisons."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)

    def close(self) -> None:
        """Nothing to do: nothing is open."""

    def abort(self) -> None:
        """Keep what has arrived: everything before an error is delivered."""

    stays = False  # its creator decides what to do with the rows
    lasts = True

    def table(self) -> pa.Table:
        """All rows so far."""
        canonical = [b if b.schema == self.schema else b.cast(self.schema) for b in self.batches]
        return pa.Table.from_batches(canonical, schema=self.schema)


class Discard:
    """Takes rows and drops them."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Drop the batch."""

    def close(self) -> None:
        """Nothing to do: nothing is open."""

    def abort(self) -> None:
        """Nothing to do: nothing is kept."""

    stays = False
    lasts = True
