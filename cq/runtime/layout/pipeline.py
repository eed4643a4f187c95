"""A pipeline: everything the engine runs, and nothing about SQL.

The compiler makes it, the engine runs it. Stages form a chain: tickets flow from admission through the stages in order,
the last stage's ports are the sinks. Whatever runs in parallel is in one stage: its branches, each in its own lanes; a
diamond in the plan is inside one stage too (docs/decisions/one-loop-a-stage.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cq.lang.functions.user import UserFunction
from cq.lang.types import DataType
from cq.records import dataclass
from cq.runtime.layout.abi import Storage
from cq.ways import Sharing, Way


@dataclass(frozen=True, slots=True)
class TableShape:
    """Entries of a hash table: words of 8 bytes. Tag (epoch and hash), arrival of the first row, keys, then values.

    string_words: indices of words that begin a two-word string (cq/runtime/containers/tables.py).
    arrival_words: indices of words, besides that of its first row, that hold the arrival of a row, or NEVER.
    until_word: the word of a key that is a time in microseconds; an entry ends, and may be forgotten, when event time
    is more than `behind_us` past that time. 0: no entry ever ends.
    """

    entry_words: int
    key_words: int
    string_words: tuple[int, ...] = ()
    arrival_words: tuple[int, ...] = ()
    until_word: int = 0
    behind_us: int = 0


@dataclass(frozen=True, slots=True)
class Slot:
    """One described word of a stage's state: checkpoints and restores walk these, nothing else is state.

    name: its role in its operator; with `node` it identifies the state for good.
    container: the name of a container registered in cq/runtime/containers/; "": a plain word, 0 at first.
    node: stable identity of the operator it belongs to.
    shapes: of its content (panes: one for groups, then one for each DISTINCT set; waiting: the row's words; log: the
    key's, then the row's).
    contents: a hash of what it holds; only slots of one key and the same contents may take over from each other.
    transient: it is empty whenever nothing is in progress, and not part of a snapshot.
    parameters: of panes (pane, offset, size, slide, by_calendar, shift_us), of intervals (gap_us,).
    operator, line, column: the operator's name for people, and its place in the query.  way: how to make it keep less;
    "" if windows and groups decide.
    """

    name: str
    offset: int
    container: str = ""
    node: str = ""
    shapes: tuple[TableShape, ...] = ()
    parameters: tuple[int, ...] = ()
    contents: str = ""
    transient: bool = False
    operator: str = ""
    line: int = 0
    column: int = 0
    way: str = ""

    @property
    def key(self) -> str:
        """Its name in snapshots: the same in every plan of a query."""
        return f"{self.node} {self.name}"


@dataclass(frozen=True, slots=True)
class Moving:
    """Generated functions that move the state of another plan into this stage's state, a function for each slot.

    They are compiled only when a snapshot of another plan is restored.
    entries: (slot key, its branch, function `i64 move(source, target, constants, routing)` over two containers, which
    returns 1, or 0 without memory).  routing: 0, or -> two words: u8[256], the lane of each virtual partition, and the
    lane of `target`.
    """

    module: str
    functions: tuple[tuple[str, str], ...]
    entries: tuple[tuple[str, int, str], ...]
    constants: bytes


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column that crosses a port."""

    name: str
    storage: Storage
    nullable: bool


@dataclass(frozen=True, slots=True)
class EventTime:
    """How admission finds a row's event time: microseconds = column * scale.

    entry: a function of the first stage that computes this column, the source's first, before rows are admitted (see
    `StageSpec.time_entries`); None if the source delivers it.
    """

    column: int
    scale: int = 1
    entry: str | None = None


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """An input of the pipeline. Its columns are those the plan reads, in order.

    time: None for a source without a watermark: its rows merge as if their event time were BEFORE_ALL, and it holds
    nothing back.  delay_us: watermark = running maximum of the event time - delay_us.
    """

    name: str
    columns: tuple[ColumnSpec, ...]
    time: EventTime | None = None
    delay_us: int = 0

    @property
    def plain(self) -> bool:
        """Whether its column has the event times in the form that admission compares."""
        time = self.time
        if time is None:
            return False
        return self.columns[time.column].storage is Storage.I64 and time.scale == 1

    @property
    def delivered(self) -> tuple[ColumnSpec, ...]:
        """The columns that are read; a computed event time precedes them."""
        return self.columns if self.time is None or self.time.entry is None else self.columns[1:]


@dataclass(frozen=True, slots=True)
class Grid:
    """Closing times offset + n * period that some operator may have, in microseconds since 1970.

    by_calendar: in months since January 1970, each shift_us after the month begins.
    """

    period: int
    offset: int = 0
    by_calendar: bool = False
    shift_us: int = 0


@dataclass(frozen=True, slots=True)
class Site:
    """A place of the query where a data error can happen: the message, and the place in the text.

    asked: whether Python was called there, which may have given a longer message than `text`.
    shown: the type of the value whose text stands for {} in the message; None if it shows none.
    """

    text: str
    line: int
    column: int
    end_line: int
    end_column: int
    asked: bool = False
    shown: DataType | None = None


@dataclass(frozen=True, slots=True)
class UserCall:
    """A user function that a stage calls: `i64 call(state, record)`, which calls Python and returns 0, or an ErrorCode.
    The engine puts its address into this word of the stage's constants.

    record: words: two for each argument (if one is enough, the first; BOOLEAN and doubles by their bits), one for each
    that says whether it is NULL, one that says whether the result is, two for each result. Texts are an address and a
    length, those of results in step bytes.
    """

    word: int
    function: UserFunction

    @property
    def words(self) -> int:
        """Words of the record."""
        return self.result + 2 * len(self.function.results)

    def argument(self, number: int) -> int:
        """The first word of an argument."""
        return 2 * number

    def null(self, number: int) -> int:
        """The word that says whether an argument is NULL; written only if the function sees NULL."""
        return 2 * len(self.function.parameters) + number

    @property
    def result_null(self) -> int:
        """The word that says whether the result is NULL."""
        return 3 * len(self.function.parameters)

    @property
    def result(self) -> int:
        """The first word of the result."""
        return self.result_null + 1


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key of a group's entry: its first word, its null word and its bit there, or -1 and -1."""

    name: str
    type: DataType
    word: int
    null_word: int
    null_bit: int


@dataclass(frozen=True, slots=True)
class Groups:
    """How to read the group of an entry, for errors.

    lag_us: how long after its window's end a group is computed; None: it has no window.
    """

    keys: tuple[GroupKey, ...]
    lag_us: int | None


@dataclass(frozen=True, slots=True)
class Met:
    """How errors name the kept row that another one has met: its side of the join. Its entry is its time."""

    side: str


@dataclass(frozen=True, slots=True)
class Counter:
    """The words of a state that count an operator's rows: those it emitted, and those it dropped as late."""

    rows: int
    late: int


@dataclass(frozen=True, slots=True)
class Rejections:
    """The word of a state that counts the events that a trigger rejects; a slot, so that snapshots have it."""

    trigger: str
    word: int


@dataclass(frozen=True, slots=True)
class PortSpec:
    """An output of a stage: a sink's rows, or rows for the next stage."""

    name: str
    columns: tuple[ColumnSpec, ...]
    limit: int | None = None  # sink: only the first rows, by position


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """How a stage's rows are divided.

    entry: the function `i64 lanes(batch, place, lo, hi, out, constants)` that writes the 32-bit key hash of rows lo..hi
    of a port's batch into out, a u32[hi - lo], and returns 1; or 0 if the branch does not read the port. place:
    branch * ports + port.
    count: number of lanes of all branches.  branches: groups of operators, each with an equal number of lanes; a row
    goes to one lane of every branch that reads its port.
    turns: rows that a source row causes in a lane have a turn below this in POSITION_NODE.
    """

    entry: str
    count: int
    branches: int
    turns: int

    def __post_init__(self) -> None:
        assert self.branches > 0 < self.turns, "no branch, or none of what a row causes has a turn"
        assert self.count > 0 and self.count % self.branches == 0, "lanes that are not those of branches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """How the transactions of a stage are evaluated by several workers (cq/runtime/layout/chains.py).

    begin, collect, evaluate: functions `i64 f(state, batch, share, constants)`. begin: prepares the tables for the
    first ticket and returns 1, or 0 without memory; it has no share.  collect: lists what the share's rows name and
    returns 1, or 0 without memory.
    evaluate: 1 if transactions of the share, from its cursor on, were done, up to one that is not ready; 0: none was;
    -1 without memory. In all ways but CHAINS: the one at the cursor is done.
    event_words: words of an event.  events: the word of the state with the place of the events.
    programs: the words at which the transactions of an event begin.  access_bytes: bytes of an access.
    nodes: the operators of these transactions, as slots name them.
    """

    begin: str
    collect: str
    evaluate: str
    event_words: int
    events: int
    programs: tuple[int, ...]
    access_bytes: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """A stage as written by codegen: a loop that is still to be compiled.

    module: generated Python source, one file.  functions: (name, signature) of all it defines.  entry: its kernel.
    lanes: for LANES only.  by_key: for PARTIAL, if parts can be filled by key: the function that hashes a row's key,
    like `Lanes.entry`.  complete: for SHARED only: bits of the sources after whose end no row changes a container.
    chains, sharing: for CHAINS and the other ways of running transactions together.
    time_entries: functions `i64 times(state, batch, lo, hi, out, constants)` of computed event times
    (cq/runtime/engine/clock.py).
    constants: the bytes that a kernel reads its literals from (words, then string bytes).
    user_calls: of the user functions whose addresses its constants have room for.
    sites: by STATE_ERROR_SITE.  passes_watermarks: each row it emits carries its watermark to the next stage.
    groups: by STATE_ERROR_GROUP - 1.  moving: writes the functions that fill its containers from another plan's.
    rejections: of the triggers that it runs.
    counters: of every operator of the stage's plan, in its order, if the pipeline was written to count; else none.
    """

    name: str
    way: Way
    module: str
    functions: tuple[tuple[str, str], ...]
    entry: str
    slots: tuple[Slot, ...]
    state_words: int
    constants: bytes
    ports: tuple[PortSpec, ...]
    sites: tuple[Site, ...]
    user_calls: tuple[UserCall, ...]
    lanes: Lanes | None
    by_key: str
    chains: Chains | None
    sharing: Sharing | None
    complete: int
    time_entries: tuple[str, ...]
    passes_watermarks: bool
    groups: tuple[Groups | Met, ...]
    moving: Callable[[], Moving] | None
    counters: tuple[Counter, ...]
    rejections: tuple[Rejections, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Sources, a chain of stages, and the closing times that admission has to announce.

    grids: admission sends CLOSE when the watermark passes a multiple of any of them.  watermarks: tickets carry the
    watermark of every row, for stages whose closing times depend on data.
    mixed: segments may have rows of its two sources (abi.MIXED), whose times are plain.
    workers: the most of its planned workers that can be busy; None: all.
    pairs_all: some operator compares each row with all rows of another input.
    """

    sources: tuple[SourceSpec, ...]
    stages: tuple[StageSpec, ...]
    grids: tuple[Grid, ...]
    watermarks: bool
    mixed: bool
    workers: int | None
    pairs_all: bool

    @property
    def sinks(self) -> tuple[PortSpec, ...]:
        return self.stages[-1].ports


def verify_pipeline(pipeline: Pipeline) -> Pipeline:
    """The pipeline itself; an AssertionError names what breaks the contract of this file."""
    assert pipeline.stages, "a pipeline without stages"
    assert not pipeline.mixed or [s.plain for s in pipeline.sources] == [True, True], "sources that cannot be merged"
    for number, stage in enumerate(pipeline.stages):
        problems = list(_problems(pipeline, number, stage))
        assert not problems, f"stage {stage.name}: {', '.join(problems)}"
    return pipeline


def _problems(pipeline: Pipeline, number: int, stage: StageSpec) -> Iterator[str]:
    last = number == len(pipeline.stages) - 1
    names = {name for name, _ in stage.functions}
    if stage.entry not in names or (stage.lanes is not None and stage.lanes.entry not in names):
        yield "an entry it does not define"
    way = stage.way.traits
    if way.lanes != (stage.lanes is not None):
        yield "lanes by key whose rows are not told apart, or the reverse"
    if stage.by_key and (stage.by_key not in names or not way.hands_over):
        yield "parts by key that nobody fills, or whose rows are not told apart"
    if way.shares != (stage.complete > 0) or (way.shares and number > 0):
        yield "tickets that are shared from no known one on, or in a stage that reads no sources"
    if way.together != (stage.chains is not None):
        yield "transactions that nobody collects, or the reverse"
    if way.together != (stage.sharing is not None):
        yield "transactions that nobody shares, or the reverse"
    if way.hands_over and last:
        yield "partial panes are merged by the next stage"
    if not last and len(stage.ports) != 1:
        yield "one port leads to the next stage"
    offsets = [slot.offset for slot in stage.slots]
    if len(set(offsets)) != len(offsets) or any(not 0 <= o < stage.state_words for o in offsets):
        yield "two slots in one word, or one outside of the state"
    unnamed = [slot.name for slot in stage.slots if slot.container and not slot.node]
    kept = [slot.key for slot in stage.slots if not slot.transient]
    if len(set(kept)) != len(kept):
        yield "two slots of one key"
    if unnamed:
        yield f"state without the identity of its operator: {', '.join(unnamed)}"
