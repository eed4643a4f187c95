"""A real terminal for tests: shows `cq` as a person sees it, and types into it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import resource
import select
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence

LONGEST_S = 60  # without output from the command: then it hangs
LARGEST_FILE = 2 << 30  # bytes: an endless run in a hanging test wrote 73 GB in twenty minutes
_CONTROL = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])")


def _on_its_own() -> None:
    """Make the terminal this process's own, so that Ctrl-C is a signal; no file can fill the disk."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


class Typed:
    """A command on its own terminal: `type` to it, read on `until` some text appears."""

    def __init__(self, command: Sequence[str], columns: int, rows: int, environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        own = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES", "NO_COLOR"}}
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**own, "TERM": "xterm", "PAGER": "", "PROMPT_TOOLKIT_NO_CPR": "1", **environment},
            start_new_session=True,
            preexec_fn=_on_its_own,
        )
        os.close(slave)
        self.raw = ""
        self._read_to = 0

    @property
    def seen(self) -> str:
        """All output, without colours and cursor movements."""
        return plain(self.raw)

    def type(self, text: str) -> None:
        """Type keys: \\n is Enter, \\t Tab, \\x03 Ctrl-C, \\x04 Ctrl-D."""
        os.write(self._master, text.encode())

    def until(self, *texts: str) -> str:
        """The output since the last call, up to all of these texts in this order. AssertionError if they do not appear.
        Ask for texts that may be written together in one call: anything after the last one counts as seen.
        """
        wanted = re.compile(".*?".join(map(re.escape, texts)), re.DOTALL)
        while not wanted.search(plain(self.raw[self._read_to :])):
            if not self._read():
                raise AssertionError(f"{texts} were not written, but {plain(self.raw[self._read_to :])!r}")
        found = plain(self.raw[self._read_to :])
        self._read_to = len(self.raw)
        return found

    def _read(self) -> bool:
        ready = select.select([self._master], [], [], LONGEST_S)[0]
        with contextlib.suppress(OSError):  # the error of a closed terminal
            part = os.read(self._master, 1 << 16) if ready else b""
            self.raw += part.decode("utf-8", "replace")
            return bool(part)
        return False

    def end(self) -> int:
        """The exit code, once all output is written."""
        while self._read():
            pass
        return self.process.wait(timeout=LONGEST_S)


def plain(text: str) -> str:
    """The visible text on the screen: no colours, and of redrawn lines the last version."""
    lines = _CONTROL.sub("", text.replace("\r\n", "\n")).split("\n")
    return "\n".join(line.rpartition("\r")[2] for line in lines)


@contextlib.contextmanager
def typed(arguments: str, columns: int = 100, rows: int = 30, **environment: str) -> Iterator[Typed]:
    """`cq` with these arguments on a terminal; killed if it has not ended by the end of the block."""
    terminal = Typed([sys.executable, "-m", "cq", *shlex.split(arguments)], columns, rows, environment)
    try:
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait()
        os.close(terminal._master)


def on_terminal(arguments: str, columns: int = 100, rows: int = 30, **environment: str) -> str:
    """What a person sees of a command that ends by itself."""
    with typed(arguments, columns, rows, **environment) as terminal:
        terminal.end()
        return terminal.seen
