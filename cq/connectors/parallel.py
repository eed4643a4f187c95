"""Several things of one kind done at once, their results in order: the blocks of a text, parsed side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from cq.process_limits import usable_cpus

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """How many this process may use."""
    return usable_cpus()


class Parallel:
    """The calling thread and as many helpers, which are there when there is more than one thing to do."""

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """The result for every item, in order. The calling thread does the first one."""
        if len(items) == 1 or not self._helpers:
            yield from map(work, items)
            return
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._helpers, "cq-parse")
        others = [self._pool.submit(work, item) for item in items[1:]]
        yield work(items[0])
        for other in others:
            yield other.result()

    def close(self) -> None:
        """The helpers have ended."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
