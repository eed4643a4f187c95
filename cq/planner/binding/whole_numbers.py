"""Casts to a DECIMAL without digits: DECIMAL(10, 0), as in Spark, where PostgreSQL keeps all decimal places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cq.errors import Diagnostic
from cq.grammar import ast
from cq.lang.expressions import Cast, walk
from cq.planner.binding.literals import DECIMAL_NAMES
from cq.planner.plan.node import LogicalNode


def rounded_casts(script: ast.Script, nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    """A warning for every such cast of a value that can have decimal places, which it rounds away."""
    bare = {n.span: n.type for n in ast.walk(script) if isinstance(n, ast.Cast) and isinstance(n.type, ast.SimpleType)}
    bare = {span: t for span, t in bare.items() if t.name.upper() in DECIMAL_NAMES and not t.params}
    if not bare:
        return
    warned = set()
    for node in nodes:
        for expr, _ in node.expressions():
            for e in walk(expr):
                if isinstance(e, Cast) and e.span in bare and e.span not in warned and not e.arg.type.is_integer:
                    warned.add(e.span)
                    name = bare[e.span].name.upper()
                    text = f"{name} without digits is DECIMAL(10, 0), so decimal places are rounded away"
                    way = f"write the number of digits and of decimal places: {name}(18, 2)"
                    yield Diagnostic("CQ0309", text, bare[e.span].span, severity="warning", help=(way,))
