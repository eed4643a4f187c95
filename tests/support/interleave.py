"""Runs native code in several threads in every order that matters.

    found = explore(setup, [producer, consumer], check, preemptions=2)

`setup()` builds the shared memory once and returns addresses; each thread function gets them and returns what it saw;
`check(addresses, results)` asserts. All run over the simulated memory, one thread at a time; before each operation on
a shared word another thread may take over. `explore` tries all schedules with up to `preemptions` such take-overs
(switches where a thread waits, spins or ends are free); `wander` tries random ones (PCT: random priorities with `depth`
changes) for cases too large for that. A failure names its schedule, and `replay` runs it again.

Between operations on shared words nothing is interleaved. That is sound because plain accesses are watched: two that
touch the same bytes from two threads, one of them a write, without a happens-before order through shared words, are
reported as a race in whatever schedule they occur (vector clocks, after Flanagan and Freund, FastTrack, PLDI 2009). So
a missing acquire or release is found although threads run one at a time. With `delays` a release store may also stay in
the store buffer of its core until the thread's next sequentially consistent write or fence: that finds a release where
the algorithm needs sequential consistency. Futexes have no timeout here: a lost wake-up is a deadlock.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from cq.records import dataclass, field
from cq.runtime.base.simulation import Allocation, Block, Memory, MemoryFault, call_site

Thread = Callable[[Any], Any]
Check = Callable[[Any, list[Any]], None]
STEP_LIMIT = 10000  # operations on shared words in one schedule; small cases take some hundred


class Failure(AssertionError):
    """A schedule under which the code is wrong. `schedule` reproduces it with `replay`."""

    def __init__(self, cause: BaseException, schedule: list[int], number: int, trace: list[str]) -> None:
        steps = "\n".join(f"  {line}" for line in trace[-60:])
        super().__init__(f"{type(cause).__name__}: {cause}\nin schedule {number}: {schedule}\n{steps}")
        self.schedule = schedule
        self.cause = cause


class Stuck(AssertionError):
    """No thread can go on, or none makes progress."""


class Race(AssertionError):
    """Two plain accesses without an order."""


class _Abandoned(BaseException):
    """Ends a thread of a schedule that has failed."""


@dataclass(slots=True)
class Explored:
    """How many schedules were run, and whether these were all there are."""

    schedules: int
    complete: bool


# -- choosing ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Exhaustive:
    """Depth-first over all choices; each run follows `plan` and then always takes the first option."""

    budget: int
    plan: list[int] = field(default_factory=list)
    taken: list[tuple[int, int]] = field(default_factory=list)
    spent: int = 0

    def begin(self, threads: int) -> None:
        self.taken = []
        self.spent = 0

    def choose(self, options: int, costly: bool) -> int:
        """One of `options`; if `costly`, all but the first cost a preemption."""
        if options == 1 or (costly and self.spent >= self.budget):
            return 0
        at = len(self.taken)
        choice = self.plan[at] if at < len(self.plan) else 0
        self.taken.append((choice, options))
        self.spent += costly and choice > 0
        return choice

    def thread(self, current: int, enabled: list[int], free: bool) -> int:
        if free or current not in enabled:
            return enabled[self.choose(len(enabled), costly=False)]
        return [current, *(t for t in enabled if t != current)][self.choose(len(enabled), costly=True)]

    def delay(self) -> bool:
        return self.choose(2, costly=True) == 1

    def schedule(self) -> list[int]:
        return [choice for choice, _ in self.taken]

    def advance(self) -> bool:
        """Plan the next schedule; return whether there is one."""
        while self.taken and self.taken[-1][0] + 1 == self.taken[-1][1]:
            self.taken.pop()
        if not self.taken:
            return False
        self.plan = [*(choice for choice, _ in self.taken[:-1]), self.taken[-1][0] + 1]
        return True


@dataclass
class _Random:
    """The enabled thread of highest priority runs; priorities are random and change at `depth` random steps."""

    seed: int
    depth: int
    steps: int = 10  # how long schedules were so far: used to place changes
    run: int = 0
    at: int = 0
    priority: list[int] = field(default_factory=list)
    changes: dict[int, int] = field(default_factory=dict)
    dice: random.Random = field(default_factory=random.Random)

    def begin(self, threads: int) -> None:
        self.steps = max(self.steps, self.at)
        self.run += 1
        self.at = 0
        self.dice = random.Random(self.seed * 1_000_003 + self.run)
        self.priority = self.dice.sample(range(self.depth, self.depth + threads), threads)
        self.changes = {self.dice.randrange(1, self.steps + 1): low for low in range(self.depth)}

    def thread(self, current: int, enabled: list[int], free: bool) -> int:
        self.at += 1
        if self.at in self.changes:
            self.priority[current] = self.changes[self.at]
        if free:
            self.priority[current] = min(self.priority) - 1
        return max(enabled, key=self.priority.__getitem__)

    def delay(self) -> bool:
        return self.dice.random() < 0.2

    def schedule(self) -> list[int]:
        return [self.seed, self.run]


_Strategy = _Exhaustive | _Random


# -- happens-before ---------------------------------------------------------------------------------------------------


PLAIN_WRITE, ATOMIC_WRITE, PLAIN_READ, ATOMIC_READ = KINDS = range(4)
_NAMES = ("plain write", "atomic write", "plain read", "atomic read")
_AGAINST = {  # the accesses that must be ordered with a given one
    PLAIN_WRITE: KINDS,
    PLAIN_READ: (PLAIN_WRITE, ATOMIC_WRITE),
    ATOMIC_WRITE: (PLAIN_WRITE, PLAIN_READ),
    ATOMIC_READ: (PLAIN_WRITE,),
}
_Seen = tuple[dict[int, tuple[int, int, int]], ...]


class _Order:
    """Vector clocks of threads and shared words, and the last accesses to every 8 bytes."""

    def __init__(self, threads: int) -> None:
        self.clock = [[0] * threads for _ in range(threads)]
        for thread in range(threads):
            self.clock[thread][thread] = 1
        self.words: dict[int, list[int]] = {}
        # per 8 bytes, by kind of access: thread -> (its clock, first byte, end)
        self.seen: dict[int, _Seen] = {}
        # per 8 bytes, the latest plain access (thread, first byte, end), whether it wrote, and the thread's clock
        self.latest: dict[int, tuple[tuple[int, int, int], bool, int]] = {}

    def _noted(self, thread: int, first: int, end: int, granule: int, kind: int) -> None:
        """Record the access, once it is known to be ordered after all earlier ones."""
        mine = self.clock[thread]
        seen = self.seen.get(granule)
        if seen is None:
            seen = self.seen[granule] = ({}, {}, {}, {})
        for against in _AGAINST[kind]:
            for other, (when, low, high) in seen[against].items():
                if other != thread and when > mine[other] and low < end and first < high:
                    what = f"{_NAMES[kind]} by thread {thread} and {_NAMES[against]} by thread {other}"
                    raise Race(f"{what} of {(granule << 3) + max(first, low):#x} have no order")
        seen[kind][thread] = (mine[thread], first, end)

    def plain(self, thread: int, address: int, size: int, write: bool) -> None:
        now = self.clock[thread][thread]
        granule, first = address >> 3, address & 7
        end = first + size
        kind = PLAIN_WRITE if write else PLAIN_READ
        while True:
            access = (thread, first, end if end < 8 else 8)
            latest = self.latest.get(granule)
            # what repeats the latest access, or reads what it wrote, is ordered with all that the latest is
            if latest is None or latest[0] != access or (write and not latest[1]):
                self._noted(*access, granule, kind)
                self.latest[granule] = (access, write, now)
            elif latest[2] != now:
                self.seen[granule][kind][thread] = (now, access[1], access[2])
            if end <= 8:
                return
            granule, first, end = granule + 1, 0, end - 8

    def atomic(self, thread: int, address: int, read: bool, write: bool) -> None:
        granule = address >> 3
        mine = self.clock[thread]
        word = self.words.get(granule)
        self.latest.pop(granule, None)
        if read and word is not None:
            mine[:] = map(max, mine, word)
        self._noted(thread, 0, 8, granule, ATOMIC_WRITE if write else ATOMIC_READ)
        if write:
            self.words[granule] = list(map(max, mine, word)) if read and word is not None else mine.copy()
            mine[thread] += 1


# -- one schedule -----------------------------------------------------------------------------------------------------


class _Crew:
    """Operating system threads that take turns: exactly one runs, the others wait for their baton."""

    def __init__(self, size: int) -> None:
        self.batons = [threading.Lock() for _ in range(size)]
        self.done = threading.Lock()
        self.work: list[Callable[[], None] | None] = [None] * size
        for baton in (*self.batons, self.done):
            baton.acquire()
        self.members = [threading.Thread(target=self._serve, args=(n,), daemon=True) for n in range(size)]
        for member in self.members:
            member.start()

    def _serve(self, number: int) -> None:
        while True:
            self.batons[number].acquire()
            work = self.work[number]
            if work is None:
                return
            work()

    def dismiss(self) -> None:
        self.work = [None] * len(self.batons)
        for baton in self.batons:
            baton.release()
        for member in self.members:
            member.join()


class _Schedule:
    """Runs the threads once; the monitor of their memory."""

    def __init__(
        self, crew: _Crew, memory: Memory, threads: Sequence[Thread], shared: Any, strategy: _Strategy, *, delays: bool
    ) -> None:
        self.crew, self.memory, self.strategy, self.delays = crew, memory, strategy, delays
        self.threads, self.shared = threads, shared
        self.results: list[Any] = [None] * len(threads)
        self.unfinished = list(range(len(threads)))
        self.waiting: dict[int, int] = {}  # thread -> futex address
        self.buffers: list[list[tuple[int, int]]] = [[] for _ in threads]
        self.order = _Order(len(threads))
        self.running = 0
        self.steps = 0
        self.failure: BaseException | None = None
        self.trace: list[str] | None = None

    def run(self) -> None:
        """Run all threads to their end, or set `failure`."""
        self.strategy.begin(len(self.threads))
        self.crew.work = [lambda n=n: self._body(n) for n in range(len(self.threads))]  # type: ignore[misc]
        self.memory.watch(self)
        self.running = self.strategy.thread(0, self.unfinished, free=True)
        self.crew.batons[self.running].release()
        self.crew.done.acquire()
        self.memory.watch(None)

    def _body(self, number: int) -> None:
        try:
            if self.failure is None:
                self.results[number] = self.threads[number](self.shared)
                self._drain()
        except _Abandoned:
            pass
        except BaseException as error:
            self.failure = self.failure or error
        self.unfinished.remove(number)
        if not self.unfinished:
            self.crew.done.release()
            return
        enabled = self._enabled()
        if not enabled and self.failure is None:
            self.failure = Stuck(f"threads {sorted(self.waiting)} wait on a futex for ever")
        following = self.unfinished[0] if self.failure is not None else self.strategy.thread(number, enabled, free=True)
        self.running = following
        self.crew.batons[following].release()

    def _enabled(self) -> list[int]:
        return [t for t in self.unfinished if t not in self.waiting]

    def _pass_on(self, free: bool) -> None:
        """Another thread may run; returns when it is this one's turn again."""
        me = self.running
        self.steps += 1
        if self.failure is None and self.steps > STEP_LIMIT:
            self.failure = Stuck(f"no end after {STEP_LIMIT} steps: threads {self.unfinished} spin")
        if self.failure is not None:
            raise _Abandoned
        enabled = self._enabled()
        if free and len(enabled) > 1 and me in enabled:
            enabled.remove(me)
        if not enabled:
            self.failure = Stuck(f"threads {sorted(self.waiting)} wait on a futex for ever")
            raise _Abandoned
        following = self.strategy.thread(me, enabled, free)
        if following != me:
            self.running = following
            self.crew.batons[following].release()
            self.crew.batons[me].acquire()
            if self.failure is not None:
                raise _Abandoned

    def _note(self, what: str) -> None:
        if self.trace is not None:
            self.trace.append(f"thread {self.running}: {what} at {call_site()}")

    def _flush(self, thread: int) -> None:
        for address, value in self.buffers[thread]:
            self.order.atomic(thread, address, False, True)
            self.memory.span(address, 8, "write").cast("q")[0] = value
        self.buffers[thread].clear()

    def _drain(self) -> None:
        """Let the delayed stores of the running thread reach memory, other threads perhaps first."""
        if self.buffers[self.running]:
            self._pass_on(free=False)
            self._flush(self.running)

    # -- Monitor ----------------------------------------------------------------------------------------------------

    def plain(self, address: int, size: int, write: bool) -> None:
        self.order.plain(self.running, address, size, write)

    def atomic(self, address: int, read: bool, write: bool) -> None:
        self._pass_on(free=False)
        if (buffer := self.buffers[self.running]) and (write or any(at == address for at, _ in buffer)):
            self._flush(self.running)
        self._note(f"{'read' if read else ''}{'/' if read and write else ''}{'write' if write else ''} {address:#x}")
        self.order.atomic(self.running, address, read, write)

    def store(self, address: int, value: int) -> bool:
        if not self.delays:
            return False
        self._pass_on(free=False)
        if self.buffers[self.running] or self.strategy.delay():
            self._note(f"write {address:#x}, delayed,")
            self.buffers[self.running].append((address, value))
            return True
        return False

    def hint(self, kind: str) -> None:
        self._drain()
        if kind != "fence":
            self._pass_on(free=True)

    def wait(self, address: int, expected: int) -> None:
        self._flush(self.running)
        self._note(f"sleeps on {address:#x}")
        self.waiting[self.running] = address
        self._pass_on(free=True)

    def wake(self, address: int, count: int) -> int:
        self._pass_on(free=False)
        self._flush(self.running)
        self._note(f"wakes {address:#x}")
        sleepers = [t for t, at in self.waiting.items() if at == address][:count]
        for sleeper in sleepers:
            del self.waiting[sleeper]
        return len(sleepers)


# -- the front --------------------------------------------------------------------------------------------------------


class _Case:
    """A set-up, its threads and its check; `run` runs one schedule from the state after the set-up."""

    def __init__(self, setup: Callable[[], Any], threads: Sequence[Thread], check: Check, delays: bool) -> None:
        self.threads, self.check, self.delays = threads, check, delays
        with Memory() as memory:
            self.shared = setup()
        self.memory = memory
        self.blocks: dict[int, Block] = memory.blocks
        self.allocations: dict[int, Allocation] = dict(memory.allocations)
        self.in_use = memory.in_use_bytes
        self.next_segment = memory._next_segment

    def run(self, crew: _Crew, strategy: _Strategy, trace: list[str] | None = None) -> BaseException | None:
        """What went wrong, if anything."""
        memory = self.memory
        memory.blocks = {n: bytearray(b) if isinstance(b, bytearray) else b for n, b in self.blocks.items()}
        memory.allocations = {n: Allocation(a.size, a.where, a.owned, a.freed_at) for n, a in self.allocations.items()}
        memory.in_use_bytes, memory._next_segment = self.in_use, self.next_segment
        with memory:
            schedule = _Schedule(crew, memory, self.threads, self.shared, strategy, delays=self.delays)
            schedule.trace = trace
            schedule.run()
            if schedule.failure is not None:
                return schedule.failure
            try:
                self.check(self.shared, schedule.results)
            except (AssertionError, MemoryFault) as error:
                return error
        return None


def explore(
    setup: Callable[[], Any],
    threads: Sequence[Thread],
    check: Check,
    *,
    preemptions: int = 2,
    delays: bool = False,
    limit: int = 1_000_000,
) -> Explored:
    """Check all schedules with at most `preemptions` preemptions (and delayed stores); raise `Failure` for a wrong one.

    limit: give up, incomplete, after this many schedules.
    """
    case = _Case(setup, threads, check, delays)
    strategy = _Exhaustive(preemptions)
    crew = _Crew(len(threads))
    try:
        for number in range(1, limit + 1):
            if (error := case.run(crew, strategy)) is not None:
                raise _explained(case, crew, error, strategy.schedule(), number, preemptions)
            if not strategy.advance():
                return Explored(number, complete=True)
    finally:
        crew.dismiss()
    return Explored(limit, complete=False)


def wander(
    setup: Callable[[], Any],
    threads: Sequence[Thread],
    check: Check,
    *,
    runs: int,
    seed: int = 1,
    depth: int = 3,
    delays: bool = False,
) -> Explored:
    """Check `runs` random schedules; raise `Failure`, with the seed, for a wrong one."""
    case = _Case(setup, threads, check, delays)
    strategy = _Random(seed, depth)
    crew = _Crew(len(threads))
    try:
        for number in range(1, runs + 1):
            if (error := case.run(crew, strategy)) is not None:
                raise Failure(error, strategy.schedule(), number, [])
    finally:
        crew.dismiss()
    return Explored(runs, complete=False)


def replay(
    setup: Callable[[], Any],
    threads: Sequence[Thread],
    check: Check,
    schedule: list[int],
    *,
    preemptions: int = 2,
    delays: bool = False,
) -> list[str]:
    """Run one schedule of `explore` again; return what the threads did, step by step."""
    case = _Case(setup, threads, check, delays)
    crew = _Crew(len(threads))
    trace: list[str] = []
    try:
        case.run(crew, _Exhaustive(preemptions, plan=schedule), trace)
    finally:
        crew.dismiss()
    return trace


def _explained(
    case: _Case, crew: _Crew, error: BaseException, schedule: list[int], number: int, preemptions: int
) -> Failure:
    trace: list[str] = []
    case.run(crew, _Exhaustive(preemptions, plan=schedule), trace)
    return Failure(error, schedule, number, trace)
