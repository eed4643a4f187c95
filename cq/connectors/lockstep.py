"""Several iterators read step by step, advanced by several threads: the columns of one file, decoded side by side.

Roles     the reader, who iterates, and `helpers` threads; all of them advance iterators.
Shared    all under `_changed`: ready[i] the items of iterator i nobody took yet; made[i] how many steps it has made;
          busy[i] whether a thread is advancing it; taken the steps the reader has taken; stopped.
I1        an iterator is advanced by one thread at a time, in order.                tests: test_iterators_stay_in_step
I2        no iterator is more than STEPS_AHEAD steps before the reader.             tests: test_no_iterator_runs_away
Progress  the reader advances what it needs itself unless another thread is at it, so that no helper has to run;
          a helper waits only while every iterator is busy, at its end or as far ahead as it may be.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Generic, TypeVar

from cq.connectors.ahead import End

T = TypeVar("T")

# Steps an iterator may be before the reader. A slow column is overtaken by the others; with 2 they often wait for it,
# from 4 on nothing changes (three columns of a Parquet file, two threads).
STEPS_AHEAD = 4


class Lockstep(Generic[T]):
    """Iterates over steps: the next item of every iterator. An error of one comes out at its step.

    Of several errors at one step the one of the first iterator comes out: the order of threads decides nothing.
    """

    def __init__(self, iterators: Sequence[Iterator[T]], helpers: int, name: str) -> None:
        self._iterators = list(iterators)
        self._ready: list[deque[T | End]] = [deque() for _ in iterators]
        self._made = [0] * len(iterators)
        self._busy = [False] * len(iterators)
        self._over = [False] * len(iterators)
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
            while (step := self._step()) is not None:
                yield step
        finally:
            self._stop()

    def _step(self) -> list[T] | None:
        """The next item of every iterator; None at their common end."""
        with self._changed:
            while not all(self._ready):
                number = self._next()
                if number is None:
                    self._changed.wait()
                else:
                    self._advance(number)
            items = [ready.popleft() for ready in self._ready]
            self._taken += 1
            self._changed.notify_all()
        ends = [item for item in items if isinstance(item, End)]
        for end in ends:
            if end.error is not None:
                raise end.error
        if not ends:
            return [item for item in items if not isinstance(item, End)]
        assert len(ends) == len(items), "iterators of different lengths"
        return None

    def _next(self) -> int | None:
        """The iterator that is furthest behind and may be advanced now."""
        free = [
            (made, number)
            for number, made in enumerate(self._made)
            if not self._busy[number] and not self._over[number] and made < self._taken + STEPS_AHEAD
        ]
        return min(free)[1] if free else None

    def _advance(self, number: int) -> None:
        """One more item of an iterator is ready. Called with the lock, which is free meanwhile."""
        self._busy[number] = True
        self._changed.release()
        item: T | End
        try:
            item = next(self._iterators[number])
        except StopIteration:
            item = End(None)
        except BaseException as e:  # crosses to the reader, who raises it
            item = End(e)
        finally:
            self._changed.acquire()
        self._busy[number] = False
        self._over[number] = isinstance(item, End)
        self._ready[number].append(item)
        self._made[number] += 1
        self._changed.notify_all()

    def _help(self) -> None:
        with self._changed:
            while not self._stopped and not all(self._over):
                number = self._next()
                if number is None:
                    self._changed.wait()
                else:
                    self._advance(number)

    def _stop(self) -> None:
        """The helpers have ended: nobody touches the iterators any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for helper in self._helpers:
            helper.join()
