"""What an engine may do faster than the definitions here do it; the rows are the same."""

from __future__ import annotations

from cq.connectors.csv.plain import MakePlainScan
from cq.connectors.generator import Twins
from cq.connectors.json.source import MakeScan
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Natives:
    """twins: ways to make the rows of workloads.  json_scan: finds the cells of JSON lines.
    csv_scan: reads rows of CSV.

    codes: texts may come as codes of a dictionary (cq/connectors/coded.py).
    """

    twins: Twins | None = None
    json_scan: MakeScan | None = None
    csv_scan: MakePlainScan | None = None
    codes: bool = False


NONE = Natives()
