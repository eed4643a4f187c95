"""How far out of order the rows of a file are: the measurement behind the watermark that `cq schema` proposes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.natives import NONE, Natives
from cq.connectors.protocol import DeclaredStream
from cq.connectors.sources import open_source
from cq.lang.arrow_buffers import numbers
from cq.lang.event_time import SeenTimes
from cq.lang.schema import Field
from cq.records import dataclass

Times: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

LOOK_ROWS = 1_000_000  # rows: 0.1 to 0.5 s; ten times as many would be a noticeable wait


@dataclass(frozen=True, slots=True)
class _File:
    """A file as a stream; rows without a readable time do not count towards the order of the others."""

    name: str
    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...]
    event_time: None = None
    inferred: bool = True
    rows: None = None


class RunningDelay:
    """The greatest time so far, and how far, at most, a later one fell behind it."""

    __slots__ = ("_greatest", "delay_us")

    def __init__(self) -> None:
        self._greatest = int(np.iinfo(np.int64).min)
        self.delay_us = 0

    def add(self, times_us: Times) -> None:
        """Include the times of the next rows."""
        if not len(times_us):
            return
        running = np.maximum.accumulate(np.concatenate(([max(self._greatest, int(times_us[0]))], times_us)))
        self.delay_us = max(self.delay_us, int((running[1:] - times_us).max()))
        self._greatest = int(running[-1])


def seen_times(
    fields: tuple[Field, ...],
    column: int,
    options: Mapping[str, str],
    access: FileAccess | None = None,
    most_rows: int | None = LOOK_ROWS,
    natives: Natives = NONE,
    given: Any = None,
) -> SeenTimes:
    """Measure a TIMESTAMP column.

    most_rows: about this many are looked at; None: all.  natives: as for `open_source`; JSON lines take 20 times as
    long without.  given: the object in memory that holds the rows, if they are not in a file.
    """
    found, rows, without, all_rows = RunningDelay(), 0, 0, True
    for values in column_of(fields, column, options, access, natives, given):
        found.add(numbers(values.drop_null()))
        rows, without = rows + len(values), without + values.null_count
        if most_rows is not None and rows >= most_rows:
            all_rows = False
            break
    return SeenTimes(found.delay_us, rows, all_rows, without)


def column_of(
    fields: tuple[Field, ...],
    column: int,
    options: Mapping[str, str],
    access: FileAccess | None,
    natives: Natives,
    given: Any = None,
) -> Iterator[pa.Array]:
    """The values of one column of a file or of an object in memory, in reading order; rows that cannot be read are
    skipped."""
    skipping = {"connector": "file", **options, "on_error": "skip"}
    declared: DeclaredStream = _File("file", fields, tuple(skipping.items()))
    inputs = Inputs(access or FileAccess(Path.cwd()), {} if given is None else {declared.name: given})
    source = open_source(declared, inputs, (column,), natives=natives, used={column})
    try:
        for found in source.batches():
            yield found.batch.column(0)
    finally:
        source.close()
