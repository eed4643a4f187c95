"""What the function that opens a source takes, and what it returns."""

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
    """The request to open one stream.

    options: of its WITH clause, checked.  rules: the constraints on its rows.  natives: what the engine does faster.
    path: where its files are, confined by `access`.  given: an object in memory, from a program.
    """

    stream: str
    options: Mapping[str, str]
    rules: Rules
    natives: Natives
    access: FileAccess
    path: str | None
    given: Any


class ReadShare(Protocol):
    """The progress of reading, and how to stop it."""

    def share_done(self) -> float | None: ...

    def stop(self) -> None:
        """Make the reading thread stop waiting."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """Rows that can be read, in pieces.

    progress: None if it is unknown and nothing has to be closed.
    nothing: set if a thread should read them ahead of the query: the batch that means that there are none right now.
    about_rows: roughly how many rows there are, rather too many than too few; None if nobody knows.
    """

    pieces: Iterator[Piece]
    progress: ReadShare | None
    nothing: pa.RecordBatch | None
    about_rows: int | None = None
