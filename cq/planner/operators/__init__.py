"""The operators of the logical plan: one file each, under the name their reference, codegen and Spark files share."""

from cq.planner.operators.aggregate import Aggregate
from cq.planner.operators.filter import Filter
from cq.planner.operators.over import Lag, Over
from cq.planner.operators.project import Project
from cq.planner.operators.scan import Scan, SourceDef
from cq.planner.operators.temporal_join import TemporalJoin
from cq.planner.operators.union import UnionAll
from cq.planner.operators.unnest import Unnest
from cq.planner.operators.window import Window, WindowAggregate, WindowKind

__all__ = [
    "Aggregate",
    "Filter",
    "Lag",
    "Over",
    "Project",
    "Scan",
    "SourceDef",
    "TemporalJoin",
    "UnionAll",
    "Unnest",
    "Window",
    "WindowAggregate",
    "WindowKind",
]
