"""What an engine can do faster than the definitions here; the rows are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cq.connectors.csv.plain import MakePlainScan
from cq.connectors.json.source import MakeScan
from cq.records import dataclass

if TYPE_CHECKING:
    from cq.workloads.registry import Build

Twins = Callable[[str], "Build | None"]  # the faster generator of a workload's rows, by its name, if there is one


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
