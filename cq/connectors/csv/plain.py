"""What is asked of an engine that reads CSV natively: rows that are plain, in columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from cq.connectors.csv.rows import Dialect, is_utf8
from cq.lang.schema import Field
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Plain:
    """The form of a file's rows.

    width: cells of a row.  fields: the columns that are declared; one that is not nullable has a value in every row.
    indices: of each in a row.  wanted: those that are kept; the others' values are looked at all the same.
    nulls: the texts that stand for NULL where they are not in quotes.  guessed: nobody said that digits are numbers.
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
    """rows: how many there are, each on a line of its own.  columns: by field."""

    rows: int
    columns: dict[int, pa.Array]


PlainScan = Callable[[bytes], PlainColumns | None]
"""Reads whole rows of UTF-8; None where the definition has to look at one of them."""

MakePlainScan = Callable[[Plain], PlainScan | None]
"""None where a column has a type that is not read natively."""

# After so many blocks in a row that were not plain the rest of a file is taken to be like them: looking costs up to a
# tenth of what reading the block another way does.
PATIENCE = 4


class PlainReading:
    """One file read by a scan, as long as most of its blocks are plain. Several threads may use it at once."""

    def __init__(self, scan: PlainScan) -> None:
        self._scan = scan
        self._in_vain = 0  # a count that is lost between threads costs a look more

    def columns(self, text: bytes) -> PlainColumns | None:
        """The columns of whole rows; None where they are not plain, or not looked at any more."""
        if self._in_vain == PATIENCE:
            return None
        found = self._scan(text) if is_utf8(text) else None
        self._in_vain = min(PATIENCE, self._in_vain + 1) if found is None else 0
        return found
