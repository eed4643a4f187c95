"""The ways of running a stage: the planner chooses one, codegen writes for it, the engine runs it.

And the heuristics by which a worker chooses a stage."""

from __future__ import annotations

from enum import Enum


class Way(Enum):
    """How the tickets of a stage are spread over workers. The value says it to people.

    LOOP: one worker at a time, tickets in order.  ANY: any worker takes any ticket; results return to ticket order.
    LANES: a ticket is split into lanes by key; each lane has its own state.  PARTIAL: any worker takes any ticket and
    fills panes of its own; the next stage merges and closes them.  CHAINS: the transactions of a ticket are evaluated
    by all workers, each as soon as the rows it names are as those before it have left them; one then hands on the rows.
    """

    LOOP = "one worker at a time"
    ANY = "any worker"
    LANES = "lanes by key"
    PARTIAL = "any worker, into panes of its own"
    CHAINS = "chains of transactions"


HEURISTICS = ("ct", "lp", "et", "qst")
"""Which stage a worker serves next, where it has a choice; the first unless the query sets another. What each one does
is said in `cq.runtime.engine.schedule`."""

SCHEMES = ("auto", "serial", "chains")
"""How transactions are run: one after the other, in chains wherever a trigger allows it, or as costs say."""
