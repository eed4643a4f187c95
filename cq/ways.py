"""The ways of running a stage: the planner chooses one, codegen generates code for it, the engine runs it.

Also the heuristics by which a worker chooses a stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, unique

from cq.entries import refuse
from cq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WayTraits:
    """What the planner, codegen and the engine need to know about any way of running.

    keeps_state: whether operators with state run this way.
    lanes: whether each ticket is split into lanes by key.
    hands_over: whether its workers fill their own panes, which the next stage takes over, and send no rows. shares:
    whether any worker takes any ticket once some of its sources have ended.
    together: whether all workers evaluate the transactions of a ticket before its rows are handed on.
    asks: whether those transactions take their places one by one while they run.
    """

    keeps_state: bool
    lanes: bool
    hands_over: bool
    shares: bool
    together: bool
    asks: bool

    @property
    def spreads(self) -> tuple[str, ...]:
        """The traits by which several workers share the work and the state; any two exclude each other."""
        return tuple(n for n in ("lanes", "hands_over", "shares", "together") if getattr(self, n))

    def problems(self) -> Iterator[str]:
        """The ways in which it contradicts itself."""
        if len(self.spreads) > 1:
            yield f"is {' and '.join(self.spreads)}"
        if self.spreads and not self.keeps_state:
            yield f"is {self.spreads[0]}, and no operator with state runs so"
        if self.asks and not self.together:
            yield "its transactions ask for their places, and are not run together"


@unique
class Way(Enum):
    """How the tickets of a stage are spread over workers. The value describes it to people, the traits to code.

    LOOP: one worker at a time, tickets in order.  ANY: any worker takes any ticket; results return to ticket order.
    LANES: a ticket is split into lanes by key; each lane has its own state.  PARTIAL: any worker takes any ticket and
    fills its own panes; the next stage merges and closes them.  SHARED: LOOP until a side of each join has ended, then
    ANY, since the rows to look up do not change any more. CHAINS: the transactions of a ticket are evaluated by all
    workers, each as soon as earlier ones have finished with the rows it names; one worker then hands on the rows. LOCK,
    LOCK_A, MVLK, PAT: the same, but transactions take their place in the order one by one while they run, as in earlier
    systems (a file each in cq/runtime/engine/ways).  NOLOCK: they take none, and the result is wrong.
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

    @property
    def traits(self) -> WayTraits:
        """The traits of this way."""
        return TRAITS[self]


def _of_tickets(*, keeps_state: bool, lanes: bool, hands_over: bool, shares: bool) -> WayTraits:
    """A way that spreads tickets over workers, but not the transactions of each."""
    return WayTraits(
        keeps_state=keeps_state, lanes=lanes, hands_over=hands_over, shares=shares, together=False, asks=False
    )


def _of_transactions(*, asks: bool) -> WayTraits:
    """A way in which all workers evaluate the transactions of a ticket."""
    return WayTraits(keeps_state=True, lanes=False, hands_over=False, shares=False, together=True, asks=asks)


TRAITS = {
    Way.LOOP: _of_tickets(keeps_state=True, lanes=False, hands_over=False, shares=False),
    Way.ANY: _of_tickets(keeps_state=False, lanes=False, hands_over=False, shares=False),
    Way.LANES: _of_tickets(keeps_state=True, lanes=True, hands_over=False, shares=False),
    Way.PARTIAL: _of_tickets(keeps_state=True, lanes=False, hands_over=True, shares=False),
    Way.SHARED: _of_tickets(keeps_state=True, lanes=False, hands_over=False, shares=True),
    Way.CHAINS: _of_transactions(asks=False),
    Way.LOCK: _of_transactions(asks=True),
    Way.LOCK_A: _of_transactions(asks=True),
    Way.MVLK: _of_transactions(asks=True),
    Way.PAT: _of_transactions(asks=True),
    Way.NOLOCK: _of_transactions(asks=True),
}
"""The declarations of each way."""


HEURISTICS = ("ct", "lp", "et", "qst")
"""Which stage a worker serves next if it has a choice; by default the first. `cq.runtime.engine.schedule` says what
each one does."""

PLACEMENTS = ("stealing", "shared_nothing", "shared_everything", "per_socket")
"""Which of the transactions running together a worker takes; by default the first. See
`cq.runtime.engine.ways.placement`."""

EVENTS_TOGETHER = 500  # of a group of transactions run together, unless the query sets another number: as in TStream


@dataclass(frozen=True, slots=True)
class Sharing:
    """How all workers share transactions that run together.

    events: the most events they belong to; None: the engine finds out.  placement: which of them a worker takes.
    """

    events: int | None = EVENTS_TOGETHER
    placement: str = PLACEMENTS[0]


WAY_OF_SCHEME = {
    "chains": Way.CHAINS,
    "lock": Way.LOCK,
    "lock_a": Way.LOCK_A,
    "mvlk": Way.MVLK,
    "pat": Way.PAT,
    "nolock": Way.NOLOCK,
}
"""The schemes in which all workers evaluate transactions."""

SCHEMES = ("auto", "serial", *WAY_OF_SCHEME)
"""How transactions run: chosen by estimated cost, one after the other, or by all workers in one of the ways above; by
default the first."""


def verify(traits: Mapping[Way, WayTraits], schemes: Mapping[str, Way]) -> None:
    """Refuse ways that lack traits or contradict themselves, and schemes that do not match them."""
    for way in Way:
        problems = [*traits[way].problems()] if way in traits else ["has no traits"]
        named = [scheme for scheme, its in schemes.items() if its is way]
        if way in traits and len(named) != traits[way].together:
            problems.append(f"is that of {' and '.join(named) or 'no scheme'}, and together={traits[way].together}")
        refuse(f"way {way.name}", problems)


verify(TRAITS, WAY_OF_SCHEME)

UNCHECKED = "nolock"
"""The scheme whose results depend on time: an upper bound for the others."""
