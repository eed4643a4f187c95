"""Notices of what is being compiled. Needs neither numba nor llvmlite, so anyone can listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

RUNTIME, QUERY = "the runtime (first run on this machine)", "the query"

Listener = Callable[[str, int, int], None]

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While this is open, the listener is called with what is compiled: (what, functions done, functions in all)."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(what: str, done: int, total: int) -> None:
    """Tell the listener how far compiling is."""
    for listener in _listeners:
        listener(what, done, total)
