"""Bugs planted in chains of transactions are seen, most of them by exploring their schedules."""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

CHAINS, CHAINED = "cq.runtime.engine.ways.chains", "cq.runtime.flow.chained"
COLLECTED = "cq.codegen.operators.chains"
MOVES, MOVED = ("test_engine_schedules.py",), "of_chains"
WAKE_UPS, IN_CHAINS = ("test_wake_ups.py",), ("test_chained_transactions.py",)

MUTANTS = {
    "a phase of chains begins before a share of the last one is done": Mutant(
        CHAINS,
        "ld_i64(chains, CHAINS_COUNT) - 1:",
        "ld_i64(chains, CHAINS_COUNT) - 2:",
        MOVES,
        MOVED,
    ),
    "transactions are evaluated before the kernel has made the rows of the last ticket": Mutant(
        CHAINS,
        "    if at == COLLECT and not in_chains:\n        return phase + READY - COLLECT\n",
        "    if at == LINK and in_chains:\n        return phase + EVALUATE - LINK\n",
        MOVES,
        MOVED,
    ),
    "the kernel hands on what the transactions of the next ticket have left": Mutant(
        CHAINS,
        "    events = ld_i64(chains + CHAINS_SHARES * 8, SHARE_EVENTS)\n",
        "    events = ld_i64(other + CHAINS_SHARES * 8, SHARE_EVENTS)\n",
        MOVES,
        MOVED,
    ),
    "the ticket that was collected ahead comes twice": Mutant(
        CHAINS,
        "        st_i64(other, CHAINS_AHEAD, 0)\n",
        "",
        MOVES,
        MOVED,
    ),
    "what is collected in an array that grows is lost": Mutant(
        CHAINED,
        "        copy(fresh, ld_i64(array, ARRAY_AT), ld_i64(array, ARRAY_COUNT) * size)\n",
        "        fill(fresh, 0, ld_i64(array, ARRAY_COUNT) * size)\n",
        IN_CHAINS,
        "array_stays_when_it_grows",
    ),
    "a share that waits is taken for done": Mutant(
        CHAINS,
        """            moved = _call(chains, CHAINS_EVALUATE, share)
            if moved < 0:
                at_store(chains + CHAINS_FAILED * 8, 1)
            elif ld_i64(share, SHARE_CURSOR) != 0:
                over = 0
""",
        "            moved = _call(chains, CHAINS_EVALUATE, share)\n",
        MOVES,
        MOVED,
    ),
    "a share that waits is lost": Mutant(
        CHAINS,
        "        at_store(share + SHARE_LOCK * 8, 2 * phase)\n        return moved",
        "        return moved",
        MOVES,
        MOVED,
    ),
    "a row is known to be done before it is written": Mutant(
        CHAINED,
        "at_store_rel(access + ACCESS_DONE * 8, 1)",
        "st_i64(access, ACCESS_DONE, 1)",
        MOVES,
        MOVED,
    ),
    "a transaction does not wait for those before it": Mutant(
        CHAINED,
        "at_load_acq(before + ACCESS_DONE * 8) == 0",
        "at_load_acq(before + ACCESS_DONE * 8) == 2",
        MOVES,
        MOVED,
    ),
    "a transaction finds the row as it is in the table": Mutant(
        CHAINED,
        "        st_i64(access, ACCESS_BEFORE, last)\n",
        "        st_i64(access, ACCESS_BEFORE, 0)\n",
        MOVES,
        MOVED,
    ),
    "texts of keys are the same if they are as long": Mutant(
        CHAINED,
        "or not mem_eq(ld_i64(one, at), ld_i64(other, at), length):\n",
        "or length < 0:\n",
        IN_CHAINS,
        "texts_of_keys_that_have_one_hash",
    ),
    "any worker writes rows with texts": Mutant(
        CHAINED,
        " and ld_i64(access, ACCESS_TAG) & TAG_ROW_TEXTS == 0\n",
        "\n",
        IN_CHAINS,
        "keys_that_begin_alike",
    ),
    "nobody is the last to name a row": Mutant(
        CHAINED,
        "        st_i64(access, ACCESS_STATE, LATEST)\n",
        "        st_i64(access, ACCESS_STATE, 0)\n",
        MOVES,
        MOVED,
    ),
    "a row named twice is two rows": Mutant(
        CHAINED,
        "    if last != 0 and ld_i64(last, ACCESS_TRANSACTION) == ld_i64(access, ACCESS_TRANSACTION):\n",
        "    if last != 0 and ld_i64(last, ACCESS_TRANSACTION) == 0:\n",
        MOVES,
        MOVED,
    ),
    "a row named twice has two versions in a transaction": Mutant(
        COLLECTED,
        'expr("access_of_row(A)", A=self.access(at.number))',
        'expr("A", A=self.access(at.number))',
        MOVES,
        MOVED,
    ),
    "a rejected transaction leaves its rows changed": Mutant(
        COLLECTED,
        'with self.scope.when(expr("O == DONE", O=self.outcome, DONE=ACCEPTED)):',
        'with self.scope.when(expr("O != 0", O=self.outcome)):',
        MOVES,
        MOVED,
    ),
    "a rejected transaction leaves the rows of its array changed": Mutant(
        COLLECTED,
        "            if undone(self.node, self.program):\n",
        "            if False:\n",
        MOVES,
        MOVED,
    ),
    "two accesses have a row that no later transaction names": Mutant(
        CHAINED, "            st_i64(last, ACCESS_STATE, 0)\n", "            pass\n", IN_CHAINS, "the_last_is_latest"
    ),
    "nobody is woken when a phase begins": Mutant(
        CHAINS,
        "    wake_workers(engine, ld_i64(engine, ENGINE_WORKERS) - 1)\n\n\n@native",
        "\n\n@native",
        WAKE_UPS,
        "phase",
    ),
    "nobody is woken when a share of another worker has moved": Mutant(
        CHAINS,
        "        wake_workers(engine, ld_i64(engine, ENGINE_WORKERS) - 1)\n    return done\n",
        "    return done\n",
        WAKE_UPS,
        "moved",
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_seen(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
