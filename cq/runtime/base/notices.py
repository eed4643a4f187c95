"""Who is told what is being compiled. Needs neither numba nor llvmlite, so that anybody can listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

RUNTIME, QUERY = "the runtime (first run on this machine)", "the query"

Listener = Callable[[str, int, int], None]

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While this is open, the listener hears what is compiled: (what, functions done, of so many)."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(what: str, done: int, total: int) -> None:
    """Whoever listens knows how far compiling is."""
    for listener in _listeners:
        listener(what, done, total)
