"""Ctrl-C, SIGTERM and SIGHUP while a query runs, and between two prompts of the shell."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from cq.cli.process import ENDING_SIGNALS
from cq.engines.protocol import Progress


@contextmanager
def stopping(progress: Progress) -> Iterator[None]:
    """The first Ctrl-C, SIGTERM or SIGHUP lets the run drain and report; the second one ends it.

    A signal that our parent ignores (`nohup`, `&` in a script) stays ignored. A thread watches for signals, too: Python
    runs handlers in the main thread only, which with `-j 0` is inside a kernel for as long as that takes.
    """
    first = True

    def on_signal(*_: object) -> None:
        nonlocal first
        if not first:
            raise KeyboardInterrupt
        first = False
        progress.interrupt()

    heeded = [n for n in (signal.SIGINT, *ENDING_SIGNALS) if signal.getsignal(n) != signal.SIG_IGN]
    heard, told = os.pipe()
    os.set_blocking(told, False)
    listener = threading.Thread(target=_listen, args=(heard, frozenset(heeded), progress), daemon=True)
    listener.start()
    before = {number: signal.signal(number, on_signal) for number in heeded}
    woken = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told)
        listener.join()
        os.close(heard)


def _listen(heard: int, heeded: frozenset[int], progress: Progress) -> None:
    """Ask the run to stop when one of these signals comes, until the pipe that delivers them is closed."""
    with suppress(OSError):
        while numbers := os.read(heard, 64):
            if heeded.intersection(numbers):
                progress.interrupt()


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: the process must end, whatever it is doing."""


class Interrupts:
    """While this is open, Ctrl-C interrupts only what runs inside `work`: between two statements it has no meaning.
    SIGTERM and SIGHUP raise Ended anywhere.

    Interrupted work ends with a single KeyboardInterrupt, however often the keys are pressed.
    """

    def __init__(self) -> None:
        self._works = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, *ENDING_SIGNALS):
            if signal.getsignal(number) == signal.default_int_handler:
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._before:
            signal.signal(number, signal.default_int_handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT:
            raise Ended
        if self._works:
            self._works = False
            raise KeyboardInterrupt

    @contextmanager
    def work(self) -> Iterator[None]:
        """Work that Ctrl-C interrupts."""
        self._works = True
        try:
            yield
        finally:
            self._works = False
