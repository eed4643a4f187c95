"""A directory of files: rows go to `column=value/part.FORMAT` by the values of columns, the naming other systems use.

The files keep those columns, so a pattern (`out/*/*.csv`) reads every row back whole. Within a file, rows are in output
order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from cq.connectors.protocol import Sink
from cq.connectors.sinks.cell_text import column_text
from cq.errors import DataError, Diagnostic, UsageError, did_you_mean, printable
from cq.lang.arrow_buffers import number_array

if TYPE_CHECKING:
    from cq.lang.schema import Field

MAX_PARTITIONS = 1000  # open at once: each has a descriptor and a buffer (`cq limits`)
OF_NULL = "__HIVE_DEFAULT_PARTITION__"  # what Hive, Spark and DuckDB write for NULL
_PLAIN = " !#$&'()+,;@[]^{}~"  # kept as they are in a name, besides letters, digits and _.-
Open = Callable[[str], Sink]


def partition_columns(written: str, fields: Sequence[Field]) -> tuple[int, ...]:
    """The positions of the columns that `partition_by` names; CQ0208 for one that does not exist."""
    places = {f.name: i for i, f in enumerate(fields)}
    found = []
    for name in (part.strip() for part in written.split(",")):
        if name not in places:
            ways = (did_you_mean(name, places), "columns: " + ", ".join(places))
            cause = f'partition_by names no column of the result: "{printable(name)}"'
            raise UsageError(Diagnostic("CQ0208", cause, help=tuple(w for w in ways if w)))
        found.append(places[name])
    return tuple(dict.fromkeys(found))


class Partitioned:
    """Opens a sink for each combination of values when it first appears; the files get their names at the end."""

    lasts = True

    def __init__(self, path: str, root: Path, columns: Sequence[int], format_: str, open_part: Open) -> None:
        """path: as written.  root: the real directory, which must be empty or missing.  open_part: a sink by path."""
        if root.is_dir() and any(root.iterdir()):
            cause = f'the directory "{printable(path)}" is not empty: its files would look like output of this run'
            raise UsageError(Diagnostic("CQ0605", cause, help=("remove it, or name another",)))
        self._path, self._root, self._columns, self._format = path, root, tuple(columns), format_
        self._open, self._parts = open_part, dict[tuple[str | None, ...], Sink]()
        self._made: list[Path] = []  # directories that did not exist, the outer ones first

    @property
    def parts(self) -> Sequence[Sink]:
        """The sinks of its files."""
        return list(self._parts.values())

    def write(self, batch: pa.RecordBatch) -> None:
        keys = zip(*(column_text(batch.column(i)).to_pylist() for i in self._columns), strict=True)
        rows: dict[tuple[str | None, ...], list[int]] = {}
        for row, key in enumerate(keys):
            rows.setdefault(key, []).append(row)
        for key, places in rows.items():
            part = self._parts.get(key) or self._opened(batch.schema, key)
            part.write(batch if len(places) == batch.num_rows else batch.take(number_array(pa.int64(), places)))

    def _opened(self, schema: pa.Schema, key: tuple[str | None, ...]) -> Sink:
        if len(self._parts) == MAX_PARTITIONS:
            names = ", ".join(schema.names[i] for i in self._columns)
            cause = f'"{printable(self._path)}" would have more than {MAX_PARTITIONS:,} partitions by {names}'
            help = ("partition by something coarser, such as DATE_TRUNC('day', ts)",)
            raise DataError(Diagnostic("CQ0802", cause, severity="data error", help=help))
        levels = [f"{quote(schema.names[i], _PLAIN)}={_named(v)}" for i, v in zip(self._columns, key, strict=True)]
        self._make(self._root.joinpath(*levels))
        part = self._open(os.path.join(self._path, *levels, f"part.{self._format}"))
        self._parts[key] = part
        return part

    def _make(self, directory: Path) -> None:
        for each in (*reversed(directory.parents), directory):
            try:
                each.mkdir()
            except FileExistsError:
                continue
            except OSError as e:
                cause = f'cannot write "{printable(str(each))}": {(e.strerror or str(e)).lower()}'
                raise UsageError(Diagnostic("CQ0605", cause)) from None
            self._made.append(each)

    def close(self) -> None:
        self._make(self._root)  # an empty result leaves a directory without files
        for part in self._parts.values():
            part.close()

    def abort(self) -> None:
        for part in self._parts.values():
            part.abort()
        for directory in reversed(self._made):
            with suppress(OSError):  # it has files: of endless rows
                directory.rmdir()

    @property
    def stays(self) -> bool:
        return any(part.stays for part in self._parts.values())


def _named(value: str | None) -> str:
    return OF_NULL if value is None else quote(value, _PLAIN)
