"""The interface of an engine's native CSV reader: plain rows in, columns out."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from cq.connectors.csv.rows import Dialect, is_utf8
from cq.lang.schema import Field
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Plain:
    """The form of a file's rows.

    width: cells per row.  fields: the declared columns; one that is not nullable has a value in every row. indices:
    their positions in a row.  wanted: those to keep; the values of the others are checked all the same.
    nulls: the texts that mean NULL when not in quotes.  guessed: nobody declared that digits are numbers.
    """

    dialect: Dialect
    nulls: tuple[bytes, ...]
    width: int
    fields: tuple[Field, ...]
    indices: tuple[int, ...]
    wanted: tuple[int, ...]
    guessed: bool


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """rows: how many there are, each on its own line.  columns: by field."""

    rows: int
    columns: dict[int, pa.Array]


PlainScan = Callable[[bytes], PlainColumns | None]
"""Read whole rows of UTF-8; None if one of them must be read by the definition."""

MakePlainScan = Callable[[Plain], PlainScan | None]
"""None if a column has a type that is not read natively."""

# After this many consecutive blocks that were not plain, the rest of a file is assumed to be like them: trying costs up
# to a tenth of the time that reading the block another way does.
PATIENCE = 4


class PlainReading:
    """One file read by a scan, as long as most of its blocks are plain. Several threads may use it at once."""

    def __init__(self, scan: PlainScan) -> None:
        self._scan = scan
        self._in_vain = 0  # an update lost between threads costs one more try

    def columns(self, text: bytes) -> PlainColumns | None:
        """The columns of whole rows; None where they are not plain, or no longer tried."""
        if self._in_vain == PATIENCE:
            return None
        found = self._scan(text) if is_utf8(text) else None
        self._in_vain = min(PATIENCE, self._in_vain + 1) if found is None else 0
        return found
