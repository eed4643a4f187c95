"""Map a function over items in parallel, with results in order: the blocks of a text, parsed side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from cq.process_limits import usable_cpus

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """How many cores this process may use."""
    return usable_cpus()


class Parallel:
    """The calling thread and its helpers, which are started once there is more than one item."""

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """The result for every item, in order. The calling thread works on the first."""
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
        """Stop the helpers and wait for them."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
