"""What the tests of connectors share: a declared stream without a plan, and everything that one read of it returns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.natives import NONE, Natives
from cq.connectors.physical_rows import rows_of
from cq.connectors.sources import open_source
from cq.errors import CqError
from cq.lang.expressions import Column, Expr
from cq.lang.schema import Field
from cq.lang.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR, DataType
from cq.records import dataclass, field

TYPES: dict[str, DataType] = {"bigint": BIGINT, "varchar": VARCHAR, "double": DOUBLE, "timestamp": TIMESTAMP}


@dataclass(frozen=True)
class Stream:
    """A declared stream as connectors see it."""

    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...] = ()
    event_time: Expr | None = None
    name: str = "s"
    inferred: bool = False
    rows: None = None  # they are read


def stream(columns: str | Sequence[Field], time: str = "", **options: str) -> Stream:
    """`stream("id bigint!, name varchar", time="ts", path="…")`; ! is NOT NULL, `time` names the event-time column."""
    if isinstance(columns, str):
        parts = [c.split() for c in columns.split(",")]
        fields = tuple(Field(n, TYPES[t.rstrip("!")], not t.endswith("!")) for n, t in parts)
    else:
        fields = tuple(columns)
    at = [f.name for f in fields].index(time) if time else -1
    event_time = Column(fields[at].type, False, at, time) if time else None
    return Stream(fields, tuple(sorted(options.items())), event_time)


@dataclass
class Seen:
    """Rows as tuples of physical values, the place of each, the number of bad and blank rows, and the error, if any."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    bad: int = 0
    blank: int = 0
    error: CqError | None = None
    batches: list[pa.RecordBatch] = field(default_factory=list)


def read(
    declared: Stream,
    given: Any = None,
    directory: Path | None = None,
    wanted: Sequence[int] | None = None,
    natives: Natives = NONE,
) -> Seen:
    """Everything that the source of a stream yields. natives: of an engine that has some."""
    access = FileAccess(directory or Path.cwd())
    inputs = Inputs(access, {} if given is None else {declared.name: given}, dead_letters="q")
    seen = Seen()
    types = [declared.fields[i].type for i in (range(len(declared.fields)) if wanted is None else wanted)]
    source = None
    try:
        source = open_source(declared, inputs, wanted, natives=natives)
        for taken in source.batches():
            if not taken.batch.num_rows:
                continue  # nothing at the moment
            seen.batches.append(taken.batch)
            seen.rows += list(rows_of(taken.batch, types))
            seen.places += [taken.place.of(k) for k in range(taken.batch.num_rows)]
    except CqError as error:
        seen.error = error
    finally:
        if source is not None:
            seen.bad, seen.blank = source.bad_rows, source.blank_lines
            source.close()
    return seen
