"""How far out of order the rows of a file are: what `cq schema` looks at before it proposes a watermark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from cq.connectors.access import Access
from cq.connectors.inputs import Inputs
from cq.connectors.natives import NONE, Natives
from cq.connectors.protocol import Declared
from cq.connectors.sources import open_source
from cq.lang.schema import Field
from cq.records import dataclass

LOOK_ROWS = 1_000_000  # 0.1 to 0.5 s; ten times as many would be waited for


@dataclass(frozen=True, slots=True)
class _File:
    """A file as a stream; rows without a readable time say nothing of the order of the others."""

    name: str
    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...]
    event_time: None = None
    inferred: bool = True
    rows: None = None


def greatest_delay_us(
    fields: tuple[Field, ...],
    column: int,
    options: Mapping[str, str],
    access: Access | None = None,
    most_rows: int | None = LOOK_ROWS,
    natives: Natives = NONE,
) -> tuple[int, int]:
    """How far a time lies behind the greatest before it, at most, and how many rows were looked at.

    most_rows: about so many are; None: all.  natives: as for `open_source`; JSON lines take 20 times as long without.
    """
    skipping = {"connector": "file", **options, "on_error": "skip"}
    declared: Declared = _File("file", fields, tuple(skipping.items()))
    source = open_source(declared, Inputs(access or Access(Path.cwd())), (column,), natives=natives, used={column})
    greatest, delay, rows = np.iinfo(np.int64).min, 0, 0
    try:
        for found in source.batches():
            times = found.batch.column(0).drop_null().cast(pa.int64()).to_numpy()
            if len(times):
                running = np.maximum.accumulate(np.concatenate(([max(greatest, int(times[0]))], times)))
                delay = max(delay, int((running[1:] - times).max()))
                greatest = int(running[-1])
            rows += found.batch.num_rows
            if most_rows is not None and rows >= most_rows:
                break
    finally:
        source.close()
    return delay, rows
