"""Order groups by the first row of each, where one serial can give several rows."""

from __future__ import annotations

import ast

from cq.codegen.flow import Flow
from cq.codegen.writer import expr
from cq.planner.operators.one_input import OneInput
from cq.planner.plan.node import LogicalNode, topological
from cq.runtime.layout.abi import ORDINAL_BITS
from cq.runtime.layout.words import beside


def arrival_of(flow: Flow, node: OneInput) -> ast.expr:
    """The key that orders groups of `node` by first row: its serial, and its number if one serial can give several.

    Rows of one closing time share one key: the groups they begin keep the order in which they were made.
    """
    if not _several_an_event(node.input):
        return flow.serial
    key = (id(node), "arrival")
    if key not in flow.stage.scratch:
        flow.stage.scratch[key] = flow.stage.scratch_words(2, "LAST_SERIAL")
    last = flow.stage.scratch[key]
    number = beside(last, 1, "ROWS")
    writer, serial = flow.writer, flow.serial
    with writer.if_(expr("ld_i64(state, W) != S + 1", W=last, S=serial)):
        writer.code("st_i64(state, W, S + 1)", W=last, S=serial)
        writer.code("st_i64(state, W, 0)", W=number)
    with writer.otherwise():
        writer.code("st_i64(state, W, ld_i64(state, W) + 1)", W=number)
    return flow.scope.let(expr("shl(S, BITS) + ld_i64(state, W)", S=serial, BITS=ORDINAL_BITS, W=number), "arrival_")


def _several_an_event(node: LogicalNode) -> bool:
    """Whether rows of one event share their serial: an operator below makes several of one, or there are several paths.

    Rows of an earlier stage have serials of their own.
    """
    return any(
        n.inputs and (n.fan_out != 1 or sum(not n.holds_back(p) for p in range(len(n.inputs))) > 1)
        for n in topological((node,))
    )
