"""A table that is longer than the terminal is shown in a pager: `$PAGER`, or `less`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cq.connectors.sinks.targets import OutputClosed
from cq.connectors.sinks.terminal import Screen

LESS = "SRFX"  # long lines are cut, colours kept; what fits stays on the screen, and so does what was read
NONE = ("", "cat")  # values of PAGER for people who want none


def pager() -> str:
    """The command that pages on this terminal; empty if there is none, or none is wanted."""
    if os.environ.get("TERM") == "dumb":
        return ""
    given = os.environ.get("PAGER")
    if given is not None:
        return "" if given.strip() in NONE else given
    return "less" if shutil.which("less") else ""


class Pages:
    """A running pager."""

    def __init__(self, command: str) -> None:
        environment = {"LESS": LESS, **os.environ}
        self._process = subprocess.Popen(
            command, shell=True, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment
        )

    def write(self, text: str) -> None:
        """Raises OutputClosed when the reader has quit."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise OutputClosed from None

    def close(self) -> None:
        """Wait until the reader quits. Ctrl-C belongs to the pager meanwhile."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        while True:
            with suppress(KeyboardInterrupt):
                self._process.wait()
                return


class PagedScreen(Screen):
    """Keeps what is written until it exceeds the lines of the terminal; then a pager gets it and everything after
    it."""

    def __init__(self, like: Screen, command: str, at_once: bool) -> None:
        """at_once: give the pager even the first line."""
        super().__init__(
            like.stream, like.colour, like.titles, like.width, expanded=like.expanded, in_full=like.in_full
        )
        self._command = command
        self._lines = 0 if at_once else shutil.get_terminal_size().lines - 1  # the prompt needs one
        self._waiting: list[str] = []
        self._count = 0
        self._pages: Pages | None = None

    @property
    def is_seen(self) -> bool:
        return self._pages is not None and super().is_seen

    def begin(self) -> None:
        super().begin()
        self._waiting, self._count = [], 0

    def write(self, text: str) -> None:
        if self._pages is not None:
            self._pages.write(text)
            return
        self._waiting.append(text)
        self._count += text.count("\n")
        if self._count > self._lines:
            self.before_write()
            self.taken()
            self._pages = Pages(self._command)
            self._pages.write("".join(self._waiting))

    def close(self) -> None:
        """Finish: everything is on the terminal, or the reader has quit the pager."""
        if self._pages is not None:
            self._pages.close()
        elif self._waiting:
            super().write("".join(self._waiting))


@contextmanager
def paged(screen: Screen, wanted: bool, at_once: bool = False) -> Iterator[Screen]:
    """The screen, or one that pages if that is wanted and possible."""
    command = pager() if wanted and sys.stdout.isatty() else ""
    if not command:
        yield screen
        return
    pages = PagedScreen(screen, command, at_once)
    try:
        yield pages
    finally:
        pages.close()
