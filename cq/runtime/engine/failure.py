"""Why a run stopped, read from words left by the native code."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa

from cq.connectors.physical_rows import values_of
from cq.lang import casts
from cq.lang.expressions import Value
from cq.lang.types import DataType, Kind, Physical, to_arrow, with_content
from cq.records import dataclass, replace
from cq.runtime.base.host import Host
from cq.runtime.containers.strings import INLINE_STRING_BYTES
from cq.runtime.containers.table_words import TABLE_ARENA
from cq.runtime.engine import stage as s
from cq.runtime.flow.lists import lists_of_array
from cq.runtime.layout.abi import STATE_ERROR_TEXT, STATE_ERROR_VALUE, STATE_ERROR_VALUE_HIGH, TOLD_BYTES, ErrorCode
from cq.runtime.layout.chains import CHAINS_HELD_BYTES, CHAINS_OTHER
from cq.runtime.layout.pipeline import GroupKey, Groups, Met, Pipeline, Site


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """Why a run stopped: an error at a place of the query and at a position; all rows before it were delivered.

    site: index into the stage's sites; -1 if no place of the query has caused it.
    source, row: the current row of that source (from 0); -1 if unknown or if a window was closing.
    held_bytes, limit_bytes: for LIMIT: what all states hold, and may hold.  holders: what holds most of it.
    serial, instant: the position.  group: whose value failed, if an aggregate's, or one computed from it, did.
    met: the row of the other side, if the condition of a join failed.
    said: the message of the last user function that the failed state called; it is the cause if SITE is a call.
    shown: the text of the value that failed, if SITE shows one.
    """

    code: ErrorCode
    stage: int
    site: int
    source: int
    row: int
    serial: int
    instant: int
    group: FailedGroup | None = None
    met: MetRow | None = None
    said: str = ""
    shown: str = ""
    held_bytes: int = 0
    limit_bytes: int = 0
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """An operator that keeps rows or groups, in the stage that holds most memory, and its place in the query.

    way: how to make it keep less; "" if windows and groups decide.
    """

    operator: str
    line: int
    column: int
    way: str


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """A group: the columns rows are grouped by, and their values.

    window: its start and end; None if the aggregate has no window.
    """

    window: tuple[int, int] | None
    columns: tuple[tuple[str, DataType], ...]
    key: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class MetRow:
    """A kept row: its side of the join, and its event time."""

    side: str
    time: int


def read_failure(host: Host, pipeline: Pipeline, stage: int) -> EngineFailure:
    """The failure of the stage at this address; its state is still there."""
    words = [host.word(stage, s.STAGE_ERROR + n) for n in range(s.ERROR_WORDS)]
    number = host.word(stage, s.STAGE_NUMBER)
    code, site, source, row, serial, instant = words[: s.ERROR_GROUP]
    told, entry, table, start, state = words[s.ERROR_GROUP :]
    said, shown = host.said.get(state, ""), failed_value(host, pipeline, number, site, state)
    failure = EngineFailure(ErrorCode(code), number, site, source, row, serial, instant, said=said, shown=shown)
    match pipeline.stages[number].groups[told - 1] if told else None:
        case Groups() as groups:
            failure = replace(failure, group=_group(host, groups, instant, entry, table, start))
        case Met(side):
            failure = replace(failure, met=MetRow(side, entry))
    return _weighed(host, pipeline, stage, failure) if code == ErrorCode.LIMIT else failure


def failed_value(host: Host, pipeline: Pipeline, stage: int, site: int, state: int) -> str:
    """The text of the value that a state failed for at a site of its stage; "" if the site shows none."""
    sites = pipeline.stages[stage].sites
    type_ = sites[site].shown if 0 <= site < len(sites) else None
    if type_ is None:
        return ""
    word = host.word(state, STATE_ERROR_VALUE)
    if type_.physical is Physical.BYTES:
        content = host.read(state + STATE_ERROR_TEXT * 8, min(word, TOLD_BYTES))
        return casts.shown(with_content(type_, content), type_)
    return casts.shown(_of_words(type_, word, lambda: host.word(state, STATE_ERROR_VALUE_HIGH)), type_)


def message(site: Site, said: str, shown: str) -> str:
    """What went wrong at a site.  said, shown: as in `EngineFailure`."""
    if site.asked and said:
        return said
    return site.text if site.shown is None else site.text.replace("{}", shown, 1)


def _weighed(host: Host, pipeline: Pipeline, stage: int, failure: EngineFailure) -> EngineFailure:
    """The failure of a run that exceeded its limit, with the operators of the stage that holds most of the memory.

    Only sizes that workers have noted are read: other states may still change.
    """
    engine = host.word(stage, s.STAGE_ENGINE)
    table = host.word(engine, s.ENGINE_STAGE_TABLE)
    stages = [host.word(table, n) for n in range(len(pipeline.stages))]
    heaviest = max(range(len(stages)), key=lambda n: host.word(stages[n], s.STAGE_STATE_BYTES))
    spec, held = pipeline.stages[heaviest], host.word(stages[heaviest], s.STAGE_STATE_BYTES)
    slots = [slot for slot in spec.slots if slot.operator]
    if spec.chains is not None and 2 * _held_together(host, stages[heaviest]) > held:
        slots = [slot for slot in slots if slot.node in spec.chains.nodes]
    holders = tuple(dict.fromkeys(Holder(slot.operator, slot.line, slot.column, slot.way) for slot in slots))
    held, limit = host.word(engine, s.ENGINE_STATE_BYTES), host.word(engine, s.ENGINE_STATE_LIMIT)
    return replace(failure, held_bytes=held, limit_bytes=limit, holders=holders)


def _held_together(host: Host, stage: int) -> int:
    """Memory of the transactions of two punctuations, besides the containers of the stage."""
    chains = host.word(stage, s.STAGE_OWN)
    return sum(host.word(c, CHAINS_HELD_BYTES) for c in (chains, host.word(chains, CHAINS_OTHER)))


def _group(host: Host, groups: Groups, instant: int, entry: int, table: int, start: int) -> FailedGroup:
    def value(key: GroupKey) -> Value:
        missing = key.null_bit >= 0 and host.word(entry, key.null_word) >> key.null_bit & 1
        return None if missing else _value(host, key, entry, table)

    columns = tuple((k.name, k.type) for k in groups.keys)
    window = (start, instant - groups.lag_us) if groups.lag_us is not None else None
    return FailedGroup(window, columns, tuple(value(k) for k in groups.keys))


def _value(host: Host, key: GroupKey, entry: int, table: int) -> Value:
    """The key as the entry holds it; a text's slot is two words (cq/runtime/containers/tables.py)."""
    word = host.word(entry, key.word)
    if key.type.physical is Physical.BYTES:
        length = word & 0xFFFF_FFFF
        place = entry + 8 * key.word + 4
        if length > INLINE_STRING_BYTES:
            place = host.word(table, TABLE_ARENA) + host.word(entry, key.word + 1)
        content = host.read(place, length)
        if key.type.kind is Kind.ARRAY:
            lists = lists_of_array(pa.array([content], pa.binary()), to_arrow(key.type))
            return values_of(lists, key.type)[0]
        return with_content(key.type, content)
    return _of_words(key.type, word, lambda: host.word(entry, key.word + 1))


def _of_words(type_: DataType, word: int, high: Callable[[], int]) -> Value:
    """The value, other than a text, that these words hold."""
    if type_.is_float:
        return float(struct.unpack("<d", struct.pack("<q", word))[0])
    if type_.physical is Physical.I128:
        return high() << 64 | word & (1 << 64) - 1
    return bool(word) if type_.kind is Kind.BOOLEAN else word
