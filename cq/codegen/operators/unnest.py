"""unnest: a loop over the pieces of SPLIT, the only array kernels know."""

from __future__ import annotations

import ast

from cq.codegen.expressions import emit
from cq.codegen.flow import Flow, consumes
from cq.codegen.values import Row, Val, any_null
from cq.codegen.writer import expr
from cq.expressions import Call
from cq.planner.logical import LogicalNode
from cq.planner.operators import Unnest
from cq.types import BIGINT, VARCHAR


@consumes("unnest")
def consume_unnest(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Every piece between separators, empty ones too; an empty separator gives the characters."""
    assert isinstance(node, Unnest)
    array = node.array
    assert isinstance(array, Call) and array.function.name == "split", "an array that is not SPLIT(…)"
    text, separator = (emit(flow.scope, row, a) for a in array.args)
    null = any_null([text, separator])
    if null is None:
        _pieces(flow, node, row, text, separator)
    else:
        with flow.scope.when(expr("not N", N=null)):
            _pieces(flow, node, row, text, separator)


def _pieces(flow: Flow, node: Unnest, row: Row, text: Val, separator: Val) -> None:
    scope, writer = flow.scope, flow.writer
    address, length = text.parts
    at = writer.let(ast.Constant(0), "at")
    number = writer.let(ast.Constant(0), "number")
    sep, sep_length = separator.parts
    width = len(node.input.schema)
    with writer.while_(expr("A <= L", A=at, L=length)), scope.block():
        end = writer.let(expr("split_end(T, L, A, S, N)", T=address, L=length, A=at, S=sep, N=sep_length), "end")
        start = scope.let(expr("T + A", T=address, A=at), "piece")
        size = scope.let(expr("E - A", E=end, A=at), "size")
        writer.code("N = N + 1", N=number)
        writer.code("A = split_next(L, E, N, S)", A=at, L=length, E=end, N=sep_length, S=size)
        added = [Val(VARCHAR, (start, size)), Val(BIGINT, (ast.Name(number, ast.Load()),))]

        def column(i: int, added: list[Val] = added) -> Val:
            return row.column(i) if i < width else added[i - width]

        made = Row(scope, [lambda i=i: column(i) for i in range(len(node.schema))])  # type: ignore[misc]
        flow.deliver(node, made)
