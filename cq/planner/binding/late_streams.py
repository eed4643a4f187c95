"""`late = 'stream:NAME'`: the late rows of a stream as a separate stream."""

from __future__ import annotations

from cq.connectors.registry import LATE_STREAM
from cq.errors import compile_error
from cq.grammar import ast, inline
from cq.planner.operators import LateRows
from cq.planner.plan.node import LogicalNode


def late_name(node: ast.CreateRelation) -> str | None:
    """The name that the text gives the late rows of a stream, if any."""
    written = (o.value.value for o in node.options if o.key == "late" and isinstance(o.value, ast.StringLiteral))
    text = next(written, "").lower()
    return text.removeprefix(LATE_STREAM) if text.startswith(LATE_STREAM) else None


def late_rows(node: ast.CreateRelation, scan: LogicalNode) -> tuple[str, LogicalNode] | None:
    """The name for late rows in a declaration, and these rows, as the connector delivers them; None without one.

    CQ0401 if no row has an event time, CQ0202 if the name is the stream's own.
    """
    source = scan.source
    assert source is not None, "the scan of a stream"
    option = source.option("late")
    if not option.startswith(LATE_STREAM):
        return None
    name = option.removeprefix(LATE_STREAM)
    place = next((o.value.span for o in node.options if o.key == "late"), node.name_span)
    if source.event_time is None:
        cause = f"no row of a stream without WATERMARK is late, so {name} would have no rows"
        raise compile_error(
            "CQ0401", cause, place, help=f"declare one in {inline.name(node.name)}: WATERMARK FOR column"
        )
    if name == node.name:
        raise compile_error("CQ0202", f'"{name}" is defined twice', place, help="choose another name")
    return name, LateRows(scan, span=place)
