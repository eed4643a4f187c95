"""Why a run stopped, read from the words the native code left behind."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cq.expressions import Value
from cq.runtime import stage as s
from cq.runtime.abi import ErrorCode
from cq.runtime.host import Host
from cq.runtime.job import GroupKey, Job
from cq.runtime.tables import INLINE_STRING_BYTES, TABLE_ARENA
from cq.types import DataType, Kind, Physical


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """Why a run stopped: an error at a place of the query and at a position; all rows before it were delivered.

    site: index into the stage's sites; -1 when no place of the query has caused it.
    source, row: the row of that source (from 0) that was under way; -1 when unknown or when a window was closing.
    serial, instant: the position.  group: whose value failed, where an aggregate's did.
    """

    code: ErrorCode
    stage: int
    site: int
    source: int
    row: int
    serial: int
    instant: int
    group: FailedGroup | None = None


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """A group: the columns rows are grouped by, and what they hold.

    start: of its window, which ends at the failure's instant; None where the aggregate has no window.
    """

    start: int | None
    columns: tuple[tuple[str, DataType], ...]
    key: tuple[Value, ...]


def read_failure(host: Host, job: Job, stage: int) -> EngineFailure:
    """The failure of the stage at this address; its state is still there."""
    words = [host.word(stage, s.STAGE_ERROR + n) for n in range(s.ERROR_WORDS)]
    number = host.word(stage, s.STAGE_NUMBER)
    group = _group(host, job, number, *words[s.ERROR_GROUP :]) if words[s.ERROR_GROUP] else None
    code, site, source, row, serial, instant = words[: s.ERROR_GROUP]
    return EngineFailure(ErrorCode(code), number, site, source, row, serial, instant, group)


def _group(host: Host, job: Job, stage: int, number: int, entry: int, table: int, start: int) -> FailedGroup:
    groups = job.stages[stage].groups[number - 1]
    nulls = host.word(entry, groups.null_word) if groups.null_word >= 0 else 0

    def value(key: GroupKey) -> Value:
        missing = key.null_bit >= 0 and nulls >> key.null_bit & 1
        return None if missing else _value(host, key, entry, table)

    columns = tuple((k.name, k.type) for k in groups.keys)
    return FailedGroup(start if groups.windowed else None, columns, tuple(value(k) for k in groups.keys))


def _value(host: Host, key: GroupKey, entry: int, table: int) -> Value:
    """The key as the entry holds it (cq/codegen/probe.py); a text's slot is two words (cq/runtime/tables.py)."""
    word = host.word(entry, key.word)
    if key.type.physical is Physical.BYTES:
        length = word & 0xFFFF_FFFF
        place = entry + 8 * key.word + 4
        if length > INLINE_STRING_BYTES:
            place = host.word(table, TABLE_ARENA) + host.word(entry, key.word + 1)
        return host.read(place, length).decode(errors="replace")
    if key.type.is_float:
        return float(struct.unpack("<d", struct.pack("<q", word))[0])
    return bool(word) if key.type.kind is Kind.BOOLEAN else word
