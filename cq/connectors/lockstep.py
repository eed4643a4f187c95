"""Columns of one file decoded side by side: lanes whose items make up numbered steps, advanced by several threads.

Roles     the reader, who iterates over steps, and `helpers` threads; all of them advance lanes.
Shared    all under `_changed`: of every lane: ready, the items nobody took yet; coming, the step it makes next; busy,
          whether a thread is advancing it. taken, the steps the reader has taken; stopped.
I1        a lane is advanced by one thread at a time, in order.                     tests: test_lanes_stay_in_step
I2        no item is made STEPS_AHEAD steps or more before the reader, but for      tests: test_no_lane_runs_away
          MOST_APART items of lanes that are not due, less than MOST_AHEAD before. tests: test_lane_of_a_later_stretch
Progress  the reader advances what it needs itself unless another thread is at it, so that no helper has to run;
          a helper waits only while every lane is busy, at its end or as far ahead as it may be.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cq.connectors.ahead import End

T = TypeVar("T")

# Steps a lane may be before the reader. A slow column is overtaken by the others; with 2 they often wait for it,
# from 4 on nothing changes (three columns of a Parquet file, two threads).
STEPS_AHEAD = 4
# A slow column has a second lane, for every other run of row groups, which is begun while the first one is in the run
# before: the row groups most writers make have 2 to 16 steps.
MOST_AHEAD = 20
MOST_APART = 16  # 8 MB of eight-byte values


@dataclass(slots=True)
class Lane(Generic[T]):
    """Items that belong to the steps `steps`, which grow; one for each. place: which part of a step they are.

    In every step each place comes from one lane.
    """

    place: int
    steps: Iterator[int]
    items: Iterator[T]
    ready: deque[tuple[int, T | End]] = field(default_factory=deque, init=False)
    coming: int | None = field(init=False)
    busy: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.coming = next(self.steps, None)

    def first(self) -> int | None:
        """The step of the first item nobody took; None at the end."""
        return self.ready[0][0] if self.ready else self.coming


class Lockstep(Generic[T]):
    """Iterates over steps: the items of each, by their places. An error of a lane comes out at its step.

    Of several errors at one step the one of the first place comes out: the order of threads decides nothing.
    """

    def __init__(self, lanes: Sequence[Lane[T]], helpers: int, name: str) -> None:
        self._lanes = sorted(lanes, key=lambda lane: lane.place)
        self._taken = 0
        self._stopped = False
        self._changed = threading.Condition()
        self._helpers = [
            threading.Thread(target=self._help, name=f"cq-decode-{name}", daemon=True) for _ in range(helpers)
        ]

    def __iter__(self) -> Generator[list[T], None, None]:
        for helper in self._helpers:
            helper.start()
        try:
            while step := self._step():
                yield step
        finally:
            self._stop()

    def _step(self) -> list[T]:
        """The items of the next step; none at the end."""
        with self._changed:
            due = [lane for lane in self._lanes if lane.first() == self._taken]
            while not all(lane.ready for lane in due):
                lane = self._choice()
                if lane is None:
                    self._changed.wait()
                else:
                    self._advance(lane)
            items = [lane.ready.popleft()[1] for lane in due]
            self._taken += 1
            self._changed.notify_all()
        for item in items:
            if isinstance(item, End):
                assert item.error is not None
                raise item.error
        return [item for item in items if not isinstance(item, End)]

    def _choice(self) -> Lane[T] | None:
        """The lane that is furthest behind and may be advanced now."""
        near = self._taken + STEPS_AHEAD
        apart = sum(step >= near for lane in self._lanes for step, _ in lane.ready)
        limit = near if apart >= MOST_APART else self._taken + MOST_AHEAD
        chosen, least = None, limit
        for lane in self._lanes:
            if lane.coming is not None and not lane.busy:
                may = near if lane.first() == self._taken else limit
                if lane.coming < min(may, least):
                    chosen, least = lane, lane.coming
        return chosen

    def _advance(self, lane: Lane[T]) -> None:
        """One more item of a lane is ready. Called with the lock, which is free meanwhile."""
        step = lane.coming
        assert step is not None
        lane.busy = True
        self._changed.release()
        item: T | End
        try:
            item = next(lane.items)
        except BaseException as e:  # crosses to the reader, who raises it
            item = End(e)
        finally:
            self._changed.acquire()
        lane.busy = False
        lane.ready.append((step, item))
        lane.coming = None if isinstance(item, End) else next(lane.steps, None)
        self._changed.notify_all()

    def _help(self) -> None:
        with self._changed:
            while not self._stopped and any(lane.coming is not None for lane in self._lanes):
                lane = self._choice()
                if lane is None:
                    self._changed.wait()
                else:
                    self._advance(lane)

    def _stop(self) -> None:
        """The helpers have ended: nobody touches the lanes any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for helper in self._helpers:
            helper.join()
