"""What a source connector is asked to open, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from cq.connectors.access import FileAccess
from cq.connectors.natives import Natives
from cq.connectors.protocol import Piece
from cq.connectors.rules import Rules
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """The rows of one stream.

    options: of its WITH clause, checked.  rules: what its rows must obey.  natives: what the engine does faster.
    path: where its files are, which `access` confines.  given: an object in memory, from a program.
    """

    stream: str
    options: Mapping[str, str]
    rules: Rules
    natives: Natives
    access: FileAccess
    path: str | None
    given: Any


class ReadShare(Protocol):
    """How far reading has come, and what must be told when nobody reads any more."""

    def share_done(self) -> float | None: ...

    def stop(self) -> None:
        """The thread that reads waits for nothing any more."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """Rows that can be read, in pieces.

    progress: None where nothing is known of it and nothing has to be closed.
    nothing: given where a thread shall read them ahead of the query: the batch that says that there are none just now.
    """

    pieces: Iterator[Piece]
    progress: ReadShare | None
    nothing: pa.RecordBatch | None
