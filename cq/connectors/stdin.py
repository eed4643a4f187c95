"""The stdin connector: CSV, JSON lines or an Arrow stream from standard input, rows as soon as they are there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from cq.connectors.arrow.source import read_arrow
from cq.connectors.csv.source import CsvOptions, read_csv
from cq.connectors.json.source import read_json
from cq.connectors.natives import NONE, Natives
from cq.connectors.once import Once
from cq.connectors.options import option
from cq.connectors.protocol import Piece
from cq.connectors.rules import Rules

NAME = "<stdin>"


def read_stdin(options: Mapping[str, str], rules: Rules, natives: Natives = NONE) -> Iterator[Piece]:
    """The rows of standard input as pieces."""
    match option(options, "format"):
        case "arrow":
            yield from read_arrow(sys.stdin.buffer, NAME, rules)
        case "json":
            yield from read_json(Once(sys.stdin.fileno(), owned=False), NAME, rules, natives.json_scan)
        case _:
            yield from read_csv(Once(sys.stdin.fileno(), owned=False), NAME, CsvOptions.of(options), rules)
