"""Bugs planted in admission, sending, splitting and merging are seen by the engine's own tests, interpreted."""

from __future__ import annotations

import pytest
from mutate import Mutant

MERGE = ("test_merge.py",)
ENGINE = ("test_engine.py",)
SAFE = "interpreted and not compiled"

PARTIALS = ("test_partials.py",)
SCHEDULES = "not threads"

MUTANTS = {
    "a part in use is collected": Mutant(
        "cq.runtime.partials",
        "at_cas(part + PART_LOCK * 8, BUSY, MARKED):\n            return MARKED",
        "at_cas(part + PART_LOCK * 8, BUSY, MARKED):\n            return RETIRED",
        PARTIALS,
        SCHEDULES,
    ),
    "a part is taken without looking": Mutant(
        "cq.runtime.partials",
        "    if at_load(part + PART_LOCK * 8) != FREE:\n        return 0\n",
        "    at_store(part + PART_LOCK * 8, FREE)\n",
        PARTIALS,
        SCHEDULES,
    ),
    "panes are collected but no window of theirs closes": Mutant(
        "cq.runtime.panes",
        "min(ld_i64(target, PANES_NEXT_END), first_end(target, start))",
        "max(ld_i64(target, PANES_NEXT_END), first_end(target, start))",
        PARTIALS,
        SCHEDULES,
    ),
    "a part is collected once for all closing times": Mutant(
        "cq.runtime.partials",
        "PARTIALS_PARTS + number * PART_WORDS + PART_COLLECTED, 0)",
        "PARTIALS_PARTS + number * PART_WORDS + PART_COLLECTED, 1)",
        PARTIALS,
        SCHEDULES,
    ),
    "groups of merged panes stay as they came": Mutant(
        "cq.codegen.operators.window",
        """            with scope.when(expr("table_sort_births(T) == 0", T=target.table)):
                flow.no_memory("ordering groups")
            writer.code("panes_remove""",
        """            writer.code("panes_remove""",
        PARTIALS,
        SCHEDULES,
    ),
    "ties go to the later source": Mutant(
        "cq.runtime.merge",
        "            elif key < best_key:  # a tie stays with the source that comes first\n"
        "                limit = best_key\n",
        "            elif key <= best_key:\n                limit = best_key + 1\n",
        MERGE,
        SAFE,
    ),
    "a run goes on to the equal time of a source before it": Mutant(
        "cq.runtime.merge", "                limit = best_key\n", "                limit = best_key + 1\n", MERGE, SAFE
    ),
    "a row is late against its own watermark": Mutant(
        "cq.runtime.merge",
        "    kind = SEGMENT_ROWS\n    if instant < ld_i64(source, SOURCE_WATERMARK):",
        "    kind = SEGMENT_ROWS\n    if instant <= ld_i64(source, SOURCE_WATERMARK):",
        MERGE,
        SAFE,
    ),
    "a closing time is passed one instant late": Mutant(
        "cq.runtime.merge",
        "    if minimum >= ld_i64(admission, ADMISSION_BOUNDARY):",
        "    if minimum > ld_i64(admission, ADMISSION_BOUNDARY):",
        MERGE,
        SAFE,
    ),
    "the row before the last of a block is not looked at": Mutant(
        "cq.runtime.merge",
        "    for row in range(1, BLOCK_ROWS):\n        falls",
        "    for row in range(1, BLOCK_ROWS - 1):\n        falls",
        MERGE,
        SAFE,
    ),
    "the end of a source moves no watermark": Mutant(
        "cq.runtime.merge",
        "            if ld_i64(source, SOURCE_TIMED) == 1 and minimum < NEVER:",
        "            if ld_i64(source, SOURCE_TIMED) == 2 and minimum < NEVER:",
        MERGE,
        SAFE,
    ),
    "rows before a failure are lost": Mutant(
        "cq.runtime.worker",
        "        if holds_rows(stage, task) == 0 or send_emitted(stage, task, 0) == 0:\n",
        "        if holds_rows(stage, task) >= 0:\n",
        ENGINE,
        SAFE,
    ),
    "a limit lets one row more through": Mutant(
        "cq.runtime.stage",
        "        rows = parcel_truncate(parcel, left)\n",
        "        rows = parcel_truncate(parcel, left + 1)\n",
        ENGINE,
        SAFE,
    ),
    "a lane's share starts at the row after its first": Mutant(
        "cq.runtime.split",
        "        st_i64(target, SEGMENT_LO, lo)\n",
        "        st_i64(target, SEGMENT_LO, lo + (1 if hi > lo + 1 else 0))\n",
        ENGINE,
        SAFE,
    ),
    "closing times go only to lanes with rows": Mutant(
        "cq.runtime.split", "share = 1 if events > 0 or", "share = 1 if events > 1000 or", ENGINE, SAFE
    ),
    "lanes are merged by their number": Mutant(
        "cq.runtime.gather",
        "                if best < 0 or position_before(at, best_at) == 1:",
        "                if best < 0:",
        ENGINE,
        SAFE,
    ),
    "rows of other lanes behind a failure are sent": Mutant(
        "cq.runtime.gather", "        _cut(lanes, split, failed, scratch)\n", "        pass\n", ENGINE, SAFE
    ),
    "a parcel is used again with the bits of its last rows": Mutant(
        "cq.runtime.parcel",
        "            fill(ld_i64(out, OUT_VALIDITY), 0, used)\n",
        "            fill(ld_i64(out, OUT_VALIDITY), 0, 0)\n",
        ("test_parcel.py",),
        "interpreted",
    ),
    "a saved table forgets its last group": Mutant(
        "cq.runtime.saving",
        "    for birth in range(count):\n        slot = ld_i32",
        "    for birth in range(count - 1):\n        slot = ld_i32",
        ("test_saving.py",),
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name):
    seen, said = MUTANTS[name].verdict()
    assert seen, said
