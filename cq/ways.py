"""The ways of running a stage: the planner chooses one, codegen writes for it, the engine runs it.

And the heuristics by which a worker chooses a stage."""

from __future__ import annotations

from enum import Enum


class Way(Enum):
    """How the tickets of a stage are spread over workers. The value says it to people.

    LOOP: one worker at a time, tickets in order.  ANY: any worker takes any ticket; results return to ticket order.
    LANES: a ticket is split into lanes by key; each lane has its own state.  PARTIAL: any worker takes any ticket and
    fills panes of its own; the next stage merges and closes them.  SHARED: LOOP until a side of each join has ended,
    then ANY, for what rows are looked up in does not change any more.  CHAINS: the transactions of a ticket are
    evaluated by all workers, each as soon as the rows it names are as those before it have left them; one then hands
    on the rows.
    LOCK, LOCK_A, MVLK, PAT: the same, but transactions take their place in the order one by one while they run, as
    earlier systems do it (a file each in cq/runtime/engine/ways).  NOLOCK: they take none, and the result is wrong.
    """

    LOOP = "one worker at a time"
    ANY = "any worker"
    LANES = "lanes by key"
    PARTIAL = "any worker, into panes of its own"
    SHARED = "one worker until a side of each join is complete, then any"
    CHAINS = "chains of transactions"
    LOCK = "transactions that queue for locks of rows"
    LOCK_A = "transactions that lock all rows in turn"
    MVLK = "transactions that wait for versions of rows"
    PAT = "transactions that queue for partitions"
    NOLOCK = "transactions without locks: the result is not serial"


HEURISTICS = ("ct", "lp", "et", "qst")
"""Which stage a worker serves next, where it has a choice; the first unless the query sets another. What each one does
is said in `cq.runtime.engine.schedule`."""

SCHEMES = ("auto", "serial", "chains", "lock", "lock_a", "mvlk", "pat", "nolock")
"""How transactions are run: one after the other, by all workers in one of the ways below, or by estimated cost."""

WAY_OF_SCHEME = {
    "chains": Way.CHAINS,
    "lock": Way.LOCK,
    "lock_a": Way.LOCK_A,
    "mvlk": Way.MVLK,
    "pat": Way.PAT,
    "nolock": Way.NOLOCK,
}
"""The schemes in which all workers evaluate transactions."""

TOGETHER = frozenset(WAY_OF_SCHEME.values())
"""The ways in which the transactions of a ticket are evaluated before its rows are handed on."""

UNCHECKED = "nolock"
"""The scheme whose results depend on time: an upper bound for the others."""
