"""Bugs planted in the containers of rows are seen by the tests that hold each of them against lists and dictionaries.

All run interpreted. What cases of tests/slt see of containers stands in test_mutants.py.
"""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

INTERVALS = "runtime.containers.intervals"
SLIDING = "runtime.containers.sliding"


def seen_in_log(old: str, new: str, file: str = "log") -> Mutant:
    """A mutant of the keyed log that its comparison with lists should see."""
    return Mutant(f"cq.runtime.containers.{file}", old, new, ("test_log.py",), "interpreted")


def in_multimap(old: str, new: str, file: str = "multimap") -> Mutant:
    """A mutant of the multimap that its comparison with lists should see."""
    return Mutant(f"cq.runtime.containers.{file}", old, new, ("test_multimap.py",), "interpreted")


def in_runs(old: str, new: str, file: str = "runs") -> Mutant:
    """A mutant of the windows of joins that their comparison with lists should see."""
    return Mutant(f"cq.runtime.containers.{file}", old, new, ("test_runs.py",), "interpreted or serials")


def in_intervals(old: str, new: str, *more: tuple[str, str]) -> Mutant:
    """A mutant of the container of sessions that its own tests should see."""
    return Mutant(f"cq.{INTERVALS}", old, new, ("test_intervals.py",), "interpreted or memory", more)


def in_order(old: str, new: str, file: str = "order") -> Mutant:
    """A mutant of the order of sessions that the tests of their container should see."""
    return Mutant(f"cq.runtime.containers.{file}", old, new, ("test_intervals.py",), "interpreted or steps")


def in_ranks(old: str, new: str, file: str = "ranks") -> Mutant:
    """A mutant of the container of sorted rows that its comparison with sorted lists should see."""
    return Mutant(f"cq.runtime.containers.{file}", old, new, ("test_ranks.py",), "sorting or saved or several")


def in_selecting(old: str, new: str) -> Mutant:
    """A mutant of the search for a place in a list that its comparison with sorted lists should see."""
    return Mutant("cq.runtime.containers.selecting", old, new, ("test_selecting.py",), "")


def in_sliding(old: str, new: str) -> Mutant:
    """A mutant of the sums of panes that long windows should see."""
    return Mutant(f"cq.{SLIDING}", old, new, ("test_sliding.py",), "grid or delay")


def in_copying(old: str, new: str) -> Mutant:
    """A mutant of the copy of a table that its tests should see."""
    return Mutant("cq.runtime.containers.table_copying", old, new, ("test_tables.py",), "copy")


MUTANTS = {
    "the front of a long window is left out": in_sliding(
        "            if front != 0 and", "            if front == 1 and"
    ),
    "a copy has the epoch of its source": in_copying(
        "epoch | (ld_i64(entry, ENTRY_TAG) & HASH_MASK)", "ld_i64(entry, ENTRY_TAG) | (epoch & HASH_MASK)"
    ),
    "a copy is added to what is there": in_copying("ld_i64(table, TABLE_COUNT) > 0 or ", ""),
    "the sum of a stretch is that from the one behind it": in_sliding(
        "        return _add(slides, made, ld_i64(slides, SLIDES_NEXT))", "        return _add(slides, made, made)"
    ),
    "a chunk does not go on behind its panes": in_sliding(
        "    return _add(slides, made, behind) if behind != 0 else READY", "    return READY"
    ),
    "the back is not begun anew": in_sliding("        table_clear(ld_i64(slides, SLIDES_BACK))\n", ""),
    "a row a gap before the next interval is not in it": in_intervals(
        "(second, INTERVAL_START) > to:", "(second, INTERVAL_START) >= to:"
    ),
    "a row a gap before the first interval is not in it": in_intervals(
        "(first, INTERVAL_START) > to:", "(first, INTERVAL_START) >= to:"
    ),
    "a row a gap behind an interval is not in it": in_intervals("INTERVAL_LAST) < since:", "INTERVAL_LAST) <= since:"),
    "one that is absorbed stays in order": in_intervals(
        "            order_drop_next(first, second)", "            pass"
    ),
    "what has closed stays in order": in_intervals("    order_remove(table, entry, ", "    max(table, "),
    "the order has old numbers when the table has new ones": in_intervals("    order_rebuild(table)\n", ""),
    "intervals of keys with one hash are in one order": in_order("number) == 1:", "number) >= 0:"),
    "names that begin alike are one": in_order(
        "string_address(other, b, word)) == 0:", "string_address(other, b, word)) < 0:", "equal_keys"
    ),
    "a name is another one where its bytes lie elsewhere": in_order(
        "            strings = shr_u(strings, 1)  # where its bytes are says nothing\n            word += 1\n",
        "",
        "equal_keys",
    ),
    "the order forgets what is behind one that closes": in_order("    root = _link(entry, AFTER)", "    root = 0"),
    "the order forgets what is behind one that is absorbed": in_order("_link(following, AFTER))", "0)"),
    "what is behind a row is anywhere in its tree": in_order(
        "_splay(table, _link(root, AFTER), ld_i64(root, INTERVAL_START))", "_link(root, AFTER)"
    ),
    "what is before a row is anywhere in its tree": in_order(
        "before = _splay(table, _link(root, BEFORE), time)", "before = _link(root, BEFORE)"
    ),
    "a key without intervals stays in the index": in_order(
        "    if root == 0:\n        table_unpoint", "    if root < 0:\n        table_unpoint"
    ),
    "trees are not made flatter by who goes down": in_order(
        "if (side == AFTER and start < time) or (side == BEFORE and start > time):",
        "if side > AFTER and start == time:",
    ),
    "a key has another slot in a larger index": in_intervals("    if index != ld_i64(", "    if 0 == ld_i64("),
    "numbers before an interval are as many as there were": in_intervals(
        "            moved -= 1", "            moved -= 0"
    ),
    "what closes is not sorted": in_intervals("    _sort(ld_i64(intervals, INTERVALS_DUE), count)\n", ""),
    "what starts together is sorted by nothing": in_intervals("ld_i64(a, DUE_FIRST) > ld_i64(b, DUE_FIRST)", "1 == 0"),
    "of equal ones the later comes first": in_intervals(
        "or _comes_later(first, second) == 0)", "or _comes_later(second, first) == 1)"
    ),
    "the last run stays behind": in_intervals("    if source != due:", "    if source == 0:"),
    "an interval that grew closes when it would have": in_intervals("elif closes > instant:", "elif closes < instant:"),
    "an absorbed interval closes, too": in_intervals(
        "        if ld_i64(entry, INTERVAL_START) == NEVER:\n            heap_pop(heap)",
        "        if ld_i64(entry, INTERVAL_START) == 1 << 62:\n            heap_pop(heap)",
    ),
    "the heap has old numbers when the table has new ones": in_intervals(
        "    table_settle(table)\n    _refill(intervals)  #", "    table_settle(table)\n    pass  #"
    ),
    "the table settles when it likes": in_intervals(
        "    if table_settles(table) == 1:", "    if table_settles(table) == 2:"
    ),
    "an absorbed interval is saved": in_intervals(
        "        if ld_i64(entry, ENTRY_TAG) != 0 and ld_i64(entry, INTERVAL_START) == NEVER:",
        "        if ld_i64(entry, ENTRY_TAG) == 0 and ld_i64(entry, INTERVAL_START) == NEVER:",
    ),
    "what is loaded closes at no time": in_intervals(
        "    if words == 0 or _refill(intervals) == 0:", "    if words == 0:"
    ),
    "time goes on before the last has left": in_intervals(
        "    if cursor == ld_i64(intervals, INTERVALS_COUNT):",
        "    if cursor + 1 >= ld_i64(intervals, INTERVALS_COUNT):",
    ),
    "the list is longer than its room": in_intervals("    if count < capacity:", "    if count < 4 * capacity:"),
    "an entry without memory for its item stays": in_intervals(
        "        table_delete(table, entry)\n        return 0", "        return 0"
    ),
    "a row that expires takes those behind it along": seen_in_log(
        "size), RECORD_NEXT, following)", "size), RECORD_NEXT, 0)"
    ),
    "a key begins with a row that is gone": seen_in_log(
        "(ends & REFERENCE_MASK) + following)", "(ends & REFERENCE_MASK) + reference)"
    ),
    "a key whose rows are gone stays": seen_in_log("            table_delete(", "            max_i64("),
    "a chunk is freed when its last row expires": seen_in_log(
        "max_i64(ld_i64(chunk, CHUNK_LATEST), expiry)", "max_i64(expiry, -NEVER)"
    ),
    "numbers of chunks are not used again": seen_in_log(
        "    st_i64(log, LOG_FREE, number)", "    st_i64(log, LOG_FREE, 0)"
    ),
    "texts of a chunk that is filled again lie behind those that are gone": seen_in_log(
        "    st_i64(chunk, TABLE_ARENA_USED, 0)", "    st_i64(chunk, CHUNK_COUNT, 0)"
    ),
    "a row that has left alone is there to leave again": seen_in_log(
        "RECORD_PROOF, 0)\n    heap_pop(proofs)", "RECORD_PROOF, 1)\n    heap_pop(proofs)"
    ),
    "logs that come together keep their own arrivals": seen_in_log(
        "_push_proofs(log, RECORD_SERIAL)", "_push_proofs(log, RECORD_EXPIRY)", "log_saving"
    ),
    "a row off its list is taken off again with its chunk": seen_in_log(
        "RECORD_BEFORE) != UNLISTED", "RECORD_BEFORE) != NEVER"
    ),
    "a row off its list leaves for want of a match": seen_in_log(
        "RECORD_PROOF, 0)\n    st_i64(log, LOG_RECORDS", "RECORD_NEXT, 0)\n    st_i64(log, LOG_RECORDS"
    ),
    "what is saved behind the texts is what lay there": seen_in_log(
        "fill(texts + used, 0, -used & 7)", "fill(texts + used, 0, 0)", "log_saving"
    ),
    "texts of rows off their lists are saved": seen_in_log(
        "SAVED_STRINGS, used)", "SAVED_STRINGS, _string_bytes(log))", "log_saving"
    ),
    "rows off their lists have an arrival": seen_in_log("BEFORE) != UNLISTED", "BEFORE) != UNLISTED + 1", "log_saving"),
    "chunks without a row in a list stay": seen_in_log(
        "    if 2 * ld_i64(log, LOG_IDLE) >", "    if ld_i64(log, LOG_IDLE) >"
    ),
    "a chunk that ends without a row in a list stays": seen_in_log(
        "        st_i64(log, LOG_IDLE, ld_i64(log, LOG_IDLE) + _is_unlisted(chunk))\n    if number == 0",
        "    if number == 0",
    ),
    "the chunk that is being filled is idle": seen_in_log(
        "    if reference >> PLACE_BITS != ld_i64(log, LOG_OPEN):", "    if reference != 0:"
    ),
    "an idle chunk that expires is still counted": seen_in_log(
        "LOG_IDLE) - _is_unlisted(", "LOG_IDLE) - 0 * _is_unlisted("
    ),
    "rows of a chunk that is gone wait for a proof": seen_in_log(
        "        if ld_i64(record, RECORD_PROOF) != 0:\n            heap_push",
        "        if record != 0:\n            heap_push",
    ),
    "rows that wait are forgotten with idle chunks": seen_in_log(
        "        if ld_i64(record, RECORD_PROOF) != 0:\n            heap_push",
        "        if record == 0:\n            heap_push",
    ),
    "saved strings lie on each other": seen_in_log("            used += length", "            used += 0", "log_saving"),
    "a row of a key is not linked to the next one": in_multimap(
        "record_bytes, ROW_NEXT, number)", "record_bytes, 0, 0)"
    ),
    "a key begins with its last row": in_multimap("    first = held & MOST_ROWS", "    first = number"),
    "records that are loaded lead to where they led": in_multimap(
        "ld_i64(record, ROW_NEXT) + before", "ld_i64(record, ROW_NEXT) + 0", "multimap_saving"
    ),
    "keys that are loaded begin where they began": in_multimap(
        "(shl(before, NUMBER_BITS) | before)", "shl(before, NUMBER_BITS)", "multimap_saving"
    ),
    "a key that is taken ends where it ended": in_multimap("    st_i64(made, head, 0)\n", "", "multimap_saving"),
    "texts of records that are taken are looked for in their new place": in_multimap(
        "ld_i64(other, TABLE_ARENA)", "ld_i64(multimap, TABLE_ARENA)", "multimap_saving"
    ),
    "a key forgets what is later than its last row": seen_in_log(
        "LIST_LATEST, max_i64(latest, expiry))", "LIST_LATEST, expiry)"
    ),
    "a row says nothing of those before it": seen_in_log(
        "    if latest <= expiry:\n", "    if latest <= NEVER:\n", "log_words"
    ),
    "begun units are none": seen_in_log("latest + LEAD_UNIT - 1", "latest + 0", "log_words"),
    "what is far ahead is no matter": seen_in_log(
        "NEVER if lead == MOST_LEAD", "expiry if lead == MOST_LEAD", "log_words"
    ),
    "a key whose latest row just matches is left out": seen_in_log(
        "LIST_LATEST) < since:", "LIST_LATEST) <= since:", "log_words"
    ),
    "a search ends where a row expires too early": seen_in_log(
        "        if log_latest(record) < since:", "        if ld_i64(record, RECORD_EXPIRY) < since:", "log_words"
    ),
    "a search begins behind a row that matches": seen_in_log(
        "ld_i64(record, RECORD_EXPIRY) >= since:", "ld_i64(record, RECORD_EXPIRY) > since:", "log_words"
    ),
    "a run that grows has lost its rows": in_runs("RUN_PLACE), rows * size)", "RUN_PLACE), 0 * size)", "runs_words"),
    "a row stands where the first one does": in_runs("(rows & ROWS_MASK) * size", "(rows & 0) * size", "runs_words"),
    "the room of a run is as it was left": in_runs(
        "    fill(arena + place + rows * size, 0, (wanted - rows) * size)\n", "", "runs_words"
    ),
    "the texts of a row move it": in_runs("texts != 0 and texts >", "texts == 1 and texts >", "runs_words"),
    "a row that has a match leaves alone": in_runs("ROW_MATCHED) == 0:", "ROW_MATCHED) >= 0:"),
    "a window goes on where the one before it ended": in_runs(
        "        panes_closed(panes)\n        st_i64(runs, RUNS_CURSOR, 0)", "        panes_closed(panes)"
    ),
    "a window is over a moment early": in_runs("PANES_NEXT_END) <= instant:", "PANES_NEXT_END) <= instant + 1:"),
    "the next window is over at no time": in_runs(
        "    st_i64(runs, RUNS_NEXT, ld_i64(panes, PANES_NEXT_END))\n    return 0", "    return 0"
    ),
    "a key that is taken has no number": in_runs(
        "RUNS_HEAD) + KEY_NUMBER, n)", "RUNS_HEAD) + KEY_NUMBER, 0)", "runs_saving"
    ),
    "what is loaded waits at the keys that were there": in_runs("+ 2 * before)", "+ 0 * before)", "runs_saving"),
    "what is loaded waits behind what did": in_runs(
        "    return words if table_sort_births(waits) == 1 else 0", "    return words", "runs_saving"
    ),
    "texts of rows that are taken stay where they were": in_runs(
        "words_move(keys, made, strings, arena) == 0", "arena == 0", "runs_saving"
    ),
    "what waits where it goes on has its old keys": in_runs("shl(number - 1, 1)", "shl(key >> 1, 1)", "runs_saving"),
    "rows of one event have no order": in_runs("shl(n - first, 1) | ", "0 | ", "runs_saving"),
    "of equal rows the last comes first": in_ranks(
        "RANKED_ARRIVAL) < ld_i64(b, RANKED_ARRIVAL)", "RANKED_ARRIVAL) > ld_i64(b, RANKED_ARRIVAL)", "ranks_words"
    ),
    "a text comes before what it begins with": in_ranks(
        "order != 0 else first - second", "order != 0 else second - first", "ranks_words"
    ),
    "what was handed over began as its part did": in_ranks(
        "if ld_i64(record, RANKED_FIRST) != first:", "if ld_i64(record, RANKED_FIRST) == 0:", "ranks_sorting"
    ),
    "rows before the offset leave": in_ranks("min_i64(ld_i64(ranks, RANKS_SKIP), rows)", "min_i64(0, rows)"),
    "the worst row is not looked for when one leaves": in_ranks(
        "        root = _merged(ranks, rest, number)", "        root = rest if rest != 0 else number"
    ),
    "a partition that stays leaves": in_ranks("            if closes <= instant:", "            if closes <= NEVER:"),
    "a place is sought among the words that are less": in_selecting(
        "        if place < at:\n            end = at", "        if place <= at:\n            end = at"
    ),
    "the word behind a place is any": in_selecting("    if least < count:", "    if least > count:"),
    "words equal to the least are sought among the others": in_selecting("pivot + 1) if", "pivot) if"),
    "of the words behind a place the greatest is next to it": in_selecting(
        "ld_i64(items, n) < ld_i64(items, least), n", "ld_i64(items, n) > ld_i64(items, least), n"
    ),
    "a list that is read again is not sorted": in_selecting("    st_i64(slot, LIST_ORDERED, READ_ONCE)\n", ""),
    "a value between two is the lower one": in_selecting("    if below == above or", "    if below <= above or"),
    "a fraction is reached one value too early": in_selecting(
        "fraction * i64_to_f64(count))) - 1, 0)", "fraction * i64_to_f64(count))) - 2, 0)"
    ),
    "there is no end of turns": in_selecting("        turns -= 1\n        pivot", "        pivot"),
    "rows that are handed over are there once more": in_ranks(
        "                table_delete(table, entry)\n", "", "ranks_saving"
    ),
    "what stays is handed over, too": in_ranks("closes > watermark:", "closes > NEVER:", "ranks_saving"),
    "a partition begins with the row that was handed over first": in_ranks(
        "min_i64(ld_i64(made, ENTRY_FIRST), ld_i64(entry, ENTRY_FIRST))", "ld_i64(made, ENTRY_FIRST)", "ranks_saving"
    ),
    "rows handed over meet those of any key": in_ranks(
        "if shr_u(item, 32) == hash32 and same_words(table, found, other, entry, ENTRY_KEYS, end) == 1:",
        "if hash32 != 0:",
        "equal_keys",
    ),
    "of one partition each part has its own": in_ranks(
        "    if made == 0:\n        made = table_take", "    if made != -1:\n        made = table_take", "ranks_saving"
    ),
    "when what is handed over leaves nobody knows": in_ranks(
        "    st_i64(ranks, RANKS_NEXT, following)\n    return rows", "    return rows", "ranks_saving"
    ),
    "partitions that were taken keep another order": in_ranks(
        "return table_sort_births(ld_i64(ranks, RANKS_TABLE))", "return 1", "ranks_saving"
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_noticed(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
