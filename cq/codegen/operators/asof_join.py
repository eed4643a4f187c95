"""asof_join: rows wait for the watermark; then right ones replace their key's entry, and left ones look it up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from cq.codegen.flow import Flow, StagePlan, closes, consumes
from cq.codegen.state.moving import Held, entries, holds
from cq.codegen.values import Row
from cq.codegen.versions import layout_of, look_up_version, replace_version
from cq.codegen.waiting import close_buffer, keep_row, when_over
from cq.codegen.writer import expr
from cq.planner.operators import AsofJoin
from cq.planner.plan.node import LogicalNode

LEFT, RIGHT = 0, 1  # ports


@consumes("asof_join", copies_text=False)
def consume_asof_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A right row that all earlier ones have come before takes effect at once; every other row waits."""
    assert isinstance(node, AsofJoin)
    with flow.on_time(node):
        if port == LEFT:
            keep_row(flow, node, LEFT, row)
        else:
            when_over(flow, node, RIGHT, row, partial(_replace, node=node))


@closes("asof_join")
def close_asof_join(stage: StagePlan, node: LogicalNode) -> None:
    """Two functions: left rows that are due are looked up before right rows that are due then take effect."""
    assert isinstance(node, AsofJoin)
    close_buffer(stage, node, LEFT, partial(_look_up, node=node))
    close_buffer(stage, node, RIGHT, partial(_replace, node=node))


@holds("asof_join")
def held_asof_join(node: LogicalNode) -> tuple[Held, ...]:
    """The latest right row of each key."""
    assert isinstance(node, AsofJoin)
    return (entries("versions", layout_of(node).keys),)


def _replace(flow: Flow, row: Row, node: AsofJoin) -> None:
    replace_version(flow, node, row)


def _look_up(flow: Flow, row: Row, node: AsofJoin) -> None:
    look_up_version(flow, node, row, lambda joined: _near(flow, node, joined))


@contextmanager
def _near(flow: Flow, node: AsofJoin, joined: Row) -> Iterator[None]:
    """Inside, the latest right row is not too old for the left one."""
    if node.lower_us is None:
        yield
        return
    left, right = node.left_time, node.right_time
    least_us = node.lower_us + left.shift_us - right.shift_us
    mine, theirs = (joined.column(c).it for c in (left.column, len(node.left.schema) + right.column))
    with flow.scope.when(expr("R - L >= N", R=theirs, L=mine, N=least_us)):
        yield
