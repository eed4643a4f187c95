"""A thread that reads ahead: decoding a source overlaps with everything after it, a bounded distance ahead.

Roles     one thread that reads the source; one that starts it, takes what it has read, and stops it.
Shared    waiting  at most AHEAD_ITEMS entries, in order.  stopped  set once by the reader.
Progress  the thread waits only for room and ends at the next entry after `stopped`; the reader waits only for entries.
Order     the lock of `_changed` orders both. `interrupted` is set without it, by a signal handler, which may have
interrupted the very thread that holds it; the reader checks it after at most IDLE_S. The end is put last, so an error
is raised after every item that was read before it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

# Entries waiting at most. One is enough to overlap; the rest smooths uneven entries. At 4 MB each this is 24 MB per
# source.
AHEAD_ITEMS = 6
IDLE_S = 0.005  # after this long without an entry the reader gets None: it may have other work, or be interrupted


class Ahead(Generic[T]):
    """Iterates over `items` in a thread of its own; errors are raised at their place in the order.

    None between two items means that there is none at the moment.
    """

    def __init__(self, items: Iterator[T], name: str) -> None:
        self._items = items
        self._waiting: deque[T | End] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self.interrupted = False  # set by a signal handler, which must not take the lock
        # a daemon: a read of a silent pipe cannot be cancelled, and must not keep the process alive
        self._thread = threading.Thread(target=self._run, name=f"cq-read-{name}", daemon=True)
        self._started = False

    def start(self) -> None:
        """Begin to read, if that has not begun: the first rows are there when they are asked for."""
        if not self._started:
            self._started = True
            self._thread.start()

    def __iter__(self) -> Iterator[T | None]:
        self.start()
        while True:
            with self._changed:
                if not self._waiting and not self._stopped:
                    self._changed.wait(IDLE_S)
                if self._stopped or self.interrupted:
                    return
                item = self._waiting.popleft() if self._waiting else None
                self._changed.notify_all()
            if isinstance(item, End):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def stop(self, wait_s: float = 1.0) -> None:
        """Tell the thread to end; it has ended unless it waits for input that does not come."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._started and self._thread is not threading.current_thread():
            self._thread.join(wait_s)

    def _run(self) -> None:
        end = End(None)
        try:
            for item in self._items:
                if not self._put(item):
                    return
        except BaseException as e:  # passed to the consumer, which raises it
            end = End(e)
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
            self._put(end)

    def _put(self, item: T | End) -> bool:
        with self._changed:
            while len(self._waiting) >= AHEAD_ITEMS and not self._stopped:
                self._changed.wait()
            if self._stopped:
                return False
            self._waiting.append(item)
            self._changed.notify_all()
            return True


class End:
    """The last item of another thread: the end, or the error."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
