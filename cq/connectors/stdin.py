"""The stdin connector: rows of any format from standard input, as soon as they arrive."""

from __future__ import annotations

import os
import stat
import sys

from cq.connectors.pipes import read_pipe
from cq.connectors.read_once import Once
from cq.connectors.requests import Opened, SourceRequest

NAME = "<stdin>"


def standard_input() -> Once:
    """Standard input, which is never closed."""
    return Once.of(sys.stdin.fileno(), owned=False)


def open_stdin(asked: SourceRequest) -> Opened:
    """The rows of standard input."""
    pieces = read_pipe(standard_input(), NAME, asked.options, asked.rules, asked.natives)
    return Opened(pieces, Redirected(), asked.rules.nothing())


class Redirected:
    """Standard input with its progress: a file behind `<` has a size and a position, a pipe has neither."""

    def share_done(self) -> float | None:
        try:
            descriptor = sys.stdin.fileno()
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                return None
            return min(1.0, os.lseek(descriptor, 0, os.SEEK_CUR) / status.st_size)
        except (OSError, ValueError):
            return None

    def stop(self) -> None:
        """Nothing to do: a read of a silent pipe cannot be cancelled."""

    def close(self) -> None:
        """Nothing to do: it is not ours."""
