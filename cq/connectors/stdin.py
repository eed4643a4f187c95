"""The stdin connector: CSV, JSON lines or an Arrow stream from standard input, rows as soon as they are there."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Mapping

from cq.connectors.arrow.source import read_arrow
from cq.connectors.csv.source import CsvOptions, read_csv
from cq.connectors.json.source import read_json
from cq.connectors.natives import NONE, Natives
from cq.connectors.options import option
from cq.connectors.protocol import Piece
from cq.connectors.rules import Rules

NAME = "<stdin>"


class Pipe:
    """Reads a descriptor without waiting for more than there is: a slow producer's rows are not held back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        """Waits for the first byte, then takes what follows at once, up to `size`."""
        parts = [os.read(self._descriptor, size)]
        have = len(parts[0])
        while parts[-1] and have < size and select.select([self._descriptor], [], [], 0)[0]:
            parts.append(os.read(self._descriptor, size - have))
            have += len(parts[-1])
        return b"".join(parts)


def read_stdin(options: Mapping[str, str], rules: Rules, natives: Natives = NONE) -> Iterator[Piece]:
    """The rows of standard input as pieces."""
    match option(options, "format"):
        case "arrow":
            yield from read_arrow(sys.stdin.buffer, NAME, rules)
        case "json":
            yield from read_json(Pipe(sys.stdin.fileno()), NAME, rules, natives.json_scan)
        case _:
            yield from read_csv(Pipe(sys.stdin.fileno()), NAME, CsvOptions.of(options), rules)
