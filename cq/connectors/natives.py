"""What an engine can do faster than the definitions here; the rows are the same."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from cq.connectors.csv.plain import MakePlainScan
from cq.connectors.json.source import MakeScan
from cq.records import dataclass

if TYPE_CHECKING:
    from cq.workloads.registry import Build

# (a workload's name, the columns that are read) -> the faster generator of its rows, if there is one
Twins = Callable[[str, "Collection[str] | None"], "Build | None"]


@dataclass(frozen=True, slots=True)
class Natives:
    """twins: fast generators of workloads.  json_scan: finds the cells of JSON lines.
    csv_scan: reads rows of CSV.

    codes: texts may arrive as dictionary codes (cq/connectors/dictionary_codes.py).
    """

    twins: Twins | None = None
    json_scan: MakeScan | None = None
    csv_scan: MakePlainScan | None = None
    codes: bool = False


NONE = Natives()
