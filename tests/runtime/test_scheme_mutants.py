"""Bugs planted in the schemes of transactions are seen by exploring their schedules."""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

WAYS = "cq.runtime.engine.ways"
SCHEDULES, AGREEMENT = ("test_scheme_schedules.py",), ("test_schemes_of_transactions.py",)


def mutant(module: str, old: str, new: str, select: str, tests: tuple[str, ...] = SCHEDULES) -> Mutant:
    return Mutant(f"{WAYS}.{module}", old, new, tests, select)


MUTANTS = {
    "transactions take their places in any order": mutant(
        "requests", "if turns == 1 and _turn_comes(", "if turns == 2 and _turn_comes(", "loop and mvlk"
    ),
    "each access has a record of its own": mutant(
        "requests", "return first - REQUEST_BYTES\n", "return access - REQUEST_BYTES\n", "loop and lock"
    ),
    "whoever comes second to a row has a record of its own": mutant(
        "requests",
        "            first = at_load_acq(slots + slot * 8)\n        if same_row",
        "            first = access\n        if same_row",
        "one_record",
    ),
    "a row named twice is behind itself": mutant(
        "requests",
        "        st_i64(access, ACCESS_SAME, asker)\n        return 1\n",
        "        st_i64(access, ACCESS_SAME, asker)\n",
        "loop and mvlk",
    ),
    "a transaction finds the row as it is in the table": mutant(
        "requests", "    st_i64(access, ACCESS_BEFORE, ld_i64(record, RECORD_TAIL))\n", "", "loop and pat"
    ),
    "a row that is written is not the row of those behind it": mutant(
        "requests",
        "        st_i64(record, RECORD_TAIL, access)\n",
        "        st_i64(record, RECORD_TAIL, 0)\n",
        "loop and lock_a",
    ),
    "rows are not written to their tables": mutant(
        "requests", "write_row(access, ld_i64(access, ACCESS_ENTRY))\n", "pass\n", "loop and pat"
    ),
    "rows that came in a ticket stay as they came": mutant(
        "requests", " | LATEST)\n", " | 0)\n", "random and lock and not lock_a", AGREEMENT
    ),
    "a share that waits is taken for done": mutant(
        "requests", "SHARE_CURSOR, ld_i64(share, SHARE_STEP) - OVER)", "SHARE_CURSOR, 0)", "loop and lock"
    ),
    "a transaction runs before those it queues behind are done": mutant(
        "lock", "(before + ACCESS_DONE * 8) == 0", "(before + ACCESS_DONE * 8) == 2", "loop and lock"
    ),
    "a writer does not wait for readers": mutant("lock", "< waits:", "< 0:", "readers_before_it"),
    "a reader does not count itself out": mutant(
        "lock", "at_add(ld_i64(request, REQUEST_AT), 1)\n", "pass\n", "readers_before_it"
    ),
    "a lock is taken twice": mutant("lock_a", "if inside != FREE:\n", "if inside == 7:\n", "lock_is_held"),
    "a reader takes the lock of a writer": mutant(
        "lock_a", "if inside == WRITER:\n", "if inside == 7:\n", "lock_is_held"
    ),
    "a lock is not given back": mutant("lock_a", "at_store_rel(lock, FREE)\n", "pass\n", "lock_is_held"),
    "a version is read before it is there": mutant(
        "mvlk",
        "return transaction_ready(transaction, ld_i64(order, ORDER_ACCESS_BYTES))\n",
        "return 1\n",
        "loop and mvlk",
    ),
    "a partition lets everybody in": mutant("pat", "if turn != ", "if turn < -9 * ", "loop and pat"),
    "a transaction takes two numbers in a partition": mutant(
        "pat", "                st_i64(partition, PARTITION_LAST, transaction)\n", "", "loop and pat"
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_seen(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
