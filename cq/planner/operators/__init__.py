"""The operators of the logical plan: one file each, under the name that their reference, codegen and Spark files
share."""

from cq.planner.operators.aggregate import Aggregate
from cq.planner.operators.asof_join import AsofJoin
from cq.planner.operators.assign_windows import AssignWindows
from cq.planner.operators.filter import Filter
from cq.planner.operators.frames import Frame, Frames, Unit, Without
from cq.planner.operators.interval_join import IntervalJoin
from cq.planner.operators.join import Join
from cq.planner.operators.joined import JoinKind
from cq.planner.operators.late_rows import LateRows
from cq.planner.operators.over import Lag, Over
from cq.planner.operators.project import Project
from cq.planner.operators.scan import Scan
from cq.planner.operators.semi_join import SemiJoin
from cq.planner.operators.session import SessionAggregate
from cq.planner.operators.session_rows import SessionRows
from cq.planner.operators.sort import OrderKey, Sort
from cq.planner.operators.temporal_join import TemporalJoin
from cq.planner.operators.trigger import Trigger
from cq.planner.operators.union import UnionAll
from cq.planner.operators.unnest import Unnest
from cq.planner.operators.window import Window, WindowAggregate, Windowed, WindowKind

__all__ = [
    "Aggregate",
    "AsofJoin",
    "AssignWindows",
    "Filter",
    "Frame",
    "Frames",
    "IntervalJoin",
    "Join",
    "JoinKind",
    "Lag",
    "LateRows",
    "OrderKey",
    "Over",
    "Project",
    "Scan",
    "SemiJoin",
    "SessionAggregate",
    "SessionRows",
    "Sort",
    "TemporalJoin",
    "Trigger",
    "UnionAll",
    "Unit",
    "Unnest",
    "Window",
    "WindowAggregate",
    "WindowKind",
    "Windowed",
    "Without",
]
