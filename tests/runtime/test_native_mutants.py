"""The tests of memory, of state containers and of 128-bit arithmetic notice planted bugs."""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

MEMORY = ("test_native_memory.py",)
TABLES = ("test_tables.py",)
OPEN = ("test_open_table.py",)
SAVING = ("test_saving.py",)
WAITING = ("test_waiting_rows.py",)
BUFFER = "cq.runtime.containers.waiting"
TABLE = "cq.runtime.containers.tables"
STRINGS = "cq.runtime.containers.strings"


def moved(module: str, old: str, new: str, query: str) -> Mutant:
    """A mutant that a run should see which goes on in another plan."""
    return Mutant(module, old, new, ("test_snapshot.py",), f"one_plan and interpreted and {query}")


MUTANTS = {
    "what is over stays in a table": Mutant(
        TABLE, "_over_entries(table) * 4 >= ld_i64(table, TABLE_LIMIT)", "_over_entries(table) > 9999", OPEN
    ),
    "what is over now is forgotten": Mutant(TABLE, "wadd(time, behind) < ld_i64", "wadd(time, behind) <= ld_i64", OPEN),
    "what is added to a time wraps around": Mutant(TABLE, "not add_ovf(time, behind) and ", "", OPEN),
    "of a table that has forgotten the old count is used": Mutant(
        TABLE, "    st_i64(table, TABLE_COUNT, kept)\n", "", OPEN
    ),
    "texts of what is over in slots stay": Mutant(TABLE, "            strings_forget(table, old)\n", "", OPEN),
    "texts of what is over in a dense table stay": Mutant(
        TABLE, "            st_i64(entry, ENTRY_TAG, 0)\n            strings_forget(table, entry)\n",
        "            st_i64(entry, ENTRY_TAG, 0)\n", OPEN,
    ),
    "time before 1970 is past from the beginning": Mutant(
        "cq.runtime.containers.open_table", "        st_i64(table, TABLE_PAST, BEFORE_ALL)\n", "", OPEN
    ),
    "a kept block is taken by load and store": Mutant(
        "cq.runtime.queues.free_list",
        "            thing = at_xchg(place, 0)",
        "            thing = at_load(place)\n            at_xchg(place, 0)",
        MEMORY,
        "schedule",
    ),
    "a place is filled without a look at what is in it": Mutant(
        "cq.runtime.queues.free_list", "at_cas(place, 0, thing)", "at_xchg(place, thing) == 0", MEMORY, "schedule"
    ),
    "kept blocks are not counted": Mutant(
        "cq.runtime.containers.blocks",
        "if at_add(kept_words(), room) + room <= MOST_KEPT_BYTES:", "if room > 0:", MEMORY, "most"
    ),
    "a kept block is not zeroed": Mutant(
        "cq.runtime.containers.blocks", "            if zero == 1:", "            if zero == 2:", MEMORY, "zero"
    ),
    "a size class is too small by one byte": Mutant(
        "cq.runtime.containers.blocks", "clz(size - EXTRA_BYTES - 1)", "clz(size - EXTRA_BYTES - 2)", MEMORY, "a_class"
    ),
    "a moved block keeps the words of the one it was": Mutant(
        "cq.runtime.containers.blocks", "    st_i64(to, BLOCK_MAPPED, mapped)\n", "", MEMORY, "resized"
    ),
    "a block whose pages cannot be moved is lost": Mutant(
        "cq.runtime.containers.blocks", "or _move(block, moved) == 0", "or _move(block, moved) == 2", MEMORY, "copied"
    ),
    "a block that grows large takes the least kept one": Mutant(
        "cq.runtime.containers.blocks", "range(SIZE_CLASSES - 1, least - 1, -1)", "range(least, SIZE_CLASSES)",
        MEMORY, "grows_large",
    ),
    "a block that grows large takes one that is too small": Mutant(
        "cq.runtime.containers.blocks", "SIZE_CLASSES - 1, least - 1, -1", "SIZE_CLASSES - 1, least - 2, -1",
        MEMORY, "finds_none",
    ),
    "a block that grows large loses what was in it": Mutant(
        "cq.runtime.containers.blocks", "        copy(moved, block, held)\n        block_drop(block)\n        return",
        "        block_drop(block)\n        return", MEMORY, "grows_large",
    ),
    "a hole is not filled by what stands behind it": Mutant(
        TABLE, "(at - home) & mask >= (at - hole) & mask", "(at - home) & mask > (at - hole) & mask", TABLES
    ),
    "a hole is filled by what stands before its place": Mutant(
        TABLE, "if (at - home) & mask >= (at - hole) & mask:", "if at >= 0:", TABLES
    ),
    "the hole stays where it was": Mutant(TABLE, "            hole = at\n", "            pass\n", TABLES),
    "a deleted string is no garbage": Mutant(
        STRINGS, "garbage += length if length > INLINE_STRING_BYTES else 0", "garbage += 0", TABLES, "deleted"
    ),
    "the dead are never buried": Mutant(TABLE, "dead * 4 >= limit", "dead < 0", TABLES, "gone"),
    "the index points to where entries were before they moved": Mutant(
        TABLE,
        "    for n in range(1, number + 1):\n        _point(",
        "    for n in range(2, number + 1):\n        _point(",
        TABLES,
    ),
    "sorted births are forgotten when entries move": Mutant(
        TABLE, "        _reorder(table)\n", "        st_i64(table, TABLE_BIRTHS, 0)\n", TABLES, "dictionary"
    ),
    "a cycle of births does not close": Mutant(
        TABLE, "            copy(spare + to * stride, spare, stride)\n", "", TABLES, "dictionary"
    ),
    "an emptied index keeps the ends of runs": Mutant(
        TABLE,
        "            slot = (slot + 1) & mask\n\n\n# -- making",
        "            slot = mask\n\n\n# -- making",
        TABLES,
    ),
    "growing forgets the last slot of the index": Mutant(
        TABLE, "    for slot in range(slots):\n", "    for slot in range(slots - 1):\n", TABLES
    ),
    "a saved table forgets its last group": Mutant(
        "cq.runtime.containers.table_saving",
        "    for n in range(count):\n        copy(at, ",
        "    for n in range(count - 1):\n        copy(at, ",
        SAVING,
    ),
    "arrivals are numbered backwards in another plan": moved(
        "cq.runtime.containers.saving", "rank - count", "count - rank", "over"
    ),
    "every lane takes all entries of another plan": moved(
        "cq.codegen.state.entry_moves", "R == ld_i64(routing, L)", "R >= 0", "session"
    ),
    "sets keep the numbers their groups had in another plan": moved(
        "cq.codegen.state.groups", "[renumbered, value]", "[number, value]", "sets"
    ),
    "groups that workers filled apart are not counted together": moved(
        "cq.codegen.state.groups", "    layout.accumulators.merge(scope, found, other)", "    pass", "merged"
    ),
    "a part that was emptied closes when it would have": moved(
        "cq.runtime.containers.panes",
        "    st_i64(panes, PANES_NEXT_END, NEVER)\n    if ld_i64(panes, PANES_COUNT) > 0:\n        st_i64(panes",
        "    if ld_i64(panes, PANES_COUNT) > 100:\n        st_i64(panes",
        "merged",
    ),
    "rows that wait forget the order in which they came": moved(
        "cq.runtime.containers.waiting", "ld_i64(made, RECORD_SERIAL))\n    return", "0)\n    return", "over"
    ),
    "a row that comes too early for the queue waits in it": Mutant(
        BUFFER, "RECORD_TIME) > time_us:", "RECORD_TIME) > NEVER - 1:", WAITING
    ),
    "a row of the heap waits for the queue": Mutant(
        BUFFER, "_before(heap, first) == 1", "_before(heap, first) == 2", WAITING
    ),
    "early rows leave in order of arrival": Mutant(
        BUFFER, "        if _before(record, above) == 0:\n", "        if place > 0:\n", WAITING
    ),
    "the last row of the heap is lost": Mutant(
        BUFFER, "    if place != count:\n", "    if place > count:\n", WAITING
    ),
    "the queue forgets where its first row has moved": Mutant(
        BUFFER, "        st_i64(buffer, BUFFER_FIRST, queue)\n    return 1", "        pass\n    return 1", WAITING
    ),
    "expired left rows have no proof to wait for in another plan": moved(
        "cq.runtime.containers.log_saving", '    return _order_proofs(log)\n', "    return 1\n", "left"
    ),
    "loaded strings are where they were in the piece": Mutant(
        STRINGS, "texts + ld_i64(words, word + 1)", "texts", TABLES, "pieces"
    ),
    "ties are rounded up": Mutant(
        "cq.runtime.values.int128", "(rest != 0 or significand & 1 == 1)", "(rest != 0 or significand >= 0)",
        ("test_native_int128.py",),
    ),
    "the rest of an average is forgotten": Mutant(
        "cq.runtime.values.int128",
        "to_double(q_hi, q_lo, rest)", "to_double(q_hi, q_lo, 0)", ("test_native_int128.py",)
    ),
}  # fmt: skip


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_noticed(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
