"""The stdin connector: rows of any format from standard input, as soon as they are there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from cq.connectors.natives import NONE, Natives
from cq.connectors.once import Once
from cq.connectors.pipes import read_pipe
from cq.connectors.protocol import Piece
from cq.connectors.rules import Rules

NAME = "<stdin>"


def standard_input() -> Once:
    """Standard input, which stays open."""
    return Once.of(sys.stdin.fileno(), owned=False)


def read_stdin(options: Mapping[str, str], rules: Rules, natives: Natives = NONE) -> Iterator[Piece]:
    """The rows of standard input as pieces."""
    yield from read_pipe(standard_input(), NAME, options, rules, natives)
