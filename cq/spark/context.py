"""What the operators need besides their node and their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cq.expressions import Expr
from cq.functions import Signature
from cq.planner.logical import AggregateCall
from cq.planner.operators import SourceDef
from cq.spark.expressions import Expressions


@dataclass(slots=True)
class Context:
    """One text while it is written. views: the temp view of each source by the source's name.

    waits: whether the operator being lowered may see a row before the watermark has reached the row's time.
    """

    views: Mapping[str, str]
    expressions: Expressions = field(default_factory=Expressions)
    waits: bool = True

    def text(self, expr: Expr, columns: Sequence[str]) -> str:
        """An expression over a row with these columns."""
        return self.expressions.text(expr, columns)

    def view(self, source: SourceDef) -> str:
        """The view that holds the rows of a source."""
        return self.views[source.name]


def argument(call: AggregateCall, columns: Sequence[str], context: Context) -> str:
    """What the aggregate sees of a row: its argument, `1` for COUNT(*); NULL (it skips those) unless FILTER is TRUE."""
    value = context.text(call.args[0], columns) if call.args else "1"
    return value if call.filter is None else f"case when {context.text(call.filter, columns)} then {value} end"


def aggregate(call: AggregateCall, column: str, over: str = "") -> str:
    """The aggregate over the column that holds its argument."""
    signature = Signature(tuple(a.type for a in call.args), call.type)
    return call.function.spark_text(signature, f"DISTINCT {column}" if call.distinct else column, over)
