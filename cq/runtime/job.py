"""A Job: everything the engine runs, and nothing about SQL.

The compiler makes it, the engine runs it. Stages form a chain: tickets flow from admission through the stages in order,
the last stage's ports are the sinks. (A diamond in the plan lives inside one stage; see docs/architecture.md.)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cq.runtime.abi import Storage
from cq.types import DataType


class StageKind(Enum):
    """How tickets of a stage may be spread over workers."""

    STATELESS = "stateless"  # any worker takes any ticket; results return to ticket order
    PARTITIONED = "partitioned"  # a ticket is split into lanes by key; each lane has its own state
    PARTIAL = "partial"  # any worker takes any ticket and fills panes of its own; the next stage merges and closes them
    STATEFUL = "stateful"  # one worker at a time, tickets in order


class Container(Enum):
    """What a state slot holds."""

    WORD = "word"  # a plain 64-bit value
    TABLE = "table"  # -> hash table (cq/runtime/tables.py)
    PANES = "panes"  # -> open panes of a window operator, each with its tables
    BUFFER = "buffer"  # -> rows waiting in (time, serial) order


@dataclass(frozen=True, slots=True)
class TableShape:
    """Entries of a hash table: words of 8 bytes. Word 0 is the tag (epoch and hash), then keys, then values.

    string_words: indices of words that begin a two-word string (cq/runtime/tables.py).
    """

    entry_words: int
    key_words: int
    string_words: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """One described word of a stage's state: checkpoints and restores walk these, nothing else is state.

    node: stable identity of the operator it belongs to.  initial: a WORD's first value.
    shapes: the tables behind it (PANES: one for groups, then one for each DISTINCT set; BUFFER: the row's words).
    parameters: PANES: (pane_us, offset_us, size_us, slide_us).
    """

    name: str
    offset: int
    container: Container = Container.WORD
    node: str = ""
    initial: int = 0
    shapes: tuple[TableShape, ...] = ()
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column that crosses a port."""

    name: str
    storage: Storage
    nullable: bool


@dataclass(frozen=True, slots=True)
class EventTime:
    """How admission finds a row's event time: microseconds = column * scale + shift."""

    column: int
    scale: int = 1
    shift: int = 0


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """An input of the job. Its columns are those the plan reads, in order.

    time: None for a source without a watermark: its rows merge as if their event time were BEFORE_ALL, and it holds
    nothing back.  delay_us: watermark = running maximum of the event time - delay_us.
    """

    name: str
    columns: tuple[ColumnSpec, ...]
    time: EventTime | None = None
    delay_us: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """Closing times offset_us + n * period_us that some operator may have."""

    period_us: int
    offset_us: int = 0


@dataclass(frozen=True, slots=True)
class Site:
    """A place of the query where a data error can happen: what the error says, and where in the text."""

    text: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key of a group's entry: the first word it takes, and its bit of the null word, or -1."""

    name: str
    type: DataType
    word: int
    null_bit: int


@dataclass(frozen=True, slots=True)
class Groups:
    """How to read which group an entry is, for errors. windowed: it is of a window."""

    keys: tuple[GroupKey, ...]
    null_word: int
    windowed: bool


@dataclass(frozen=True, slots=True)
class PortSpec:
    """An output of a stage: a sink's rows, or rows for the next stage."""

    name: str
    columns: tuple[ColumnSpec, ...]
    limit: int | None = None  # sink: only the first rows, by position


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A compiled-to-be loop.

    module: generated Python source, one file.  functions: (name, signature) of all it defines.  entry: its kernel.
    lane_entry: for PARTITIONED, a function
    `i64 lanes(batch, port, lo, hi, out, constants)` that writes the 32-bit key hash of rows lo..hi of a port's batch
    into out, a u32[hi - lo].  positions: whether the kernel writes PORT_POSITIONS (needed when run in lanes).
    constants: the bytes a kernel reads its literals from (words, then string bytes).  sites: by STATE_ERROR_SITE.
    groups: by STATE_ERROR_GROUP - 1.
    """

    name: str
    kind: StageKind
    module: str
    functions: tuple[tuple[str, str], ...]
    entry: str
    slots: tuple[Slot, ...]
    state_words: int
    constants: bytes
    ports: tuple[PortSpec, ...]
    sites: tuple[Site, ...] = ()
    lane_entry: str | None = None
    groups: tuple[Groups, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """Sources, a chain of stages, and the closing times admission has to announce.

    grids: admission sends CLOSE when the watermark passes a multiple of any of them; every_advance: at every advance.
    """

    sources: tuple[SourceSpec, ...]
    stages: tuple[Stage, ...]
    grids: tuple[Grid, ...] = ()
    every_advance: bool = False

    @property
    def sinks(self) -> tuple[PortSpec, ...]:
        return self.stages[-1].ports
