"""IN over many constants: search one array instead of comparing with each constant.

Comparisons of thousands of values would each be typed, rewritten, written and compiled. A constant array is one node of
the plan and some bytes next to the kernel, which does a binary search; other values use the same kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.errors import Span
from cq.grammar import ast
from cq.lang.expressions import Call, Expr, Literal
from cq.lang.types import ELEMENTS, DataType, array

# Up to here comparisons are no slower: for 16 values they took 19 ns a row and the search 28, for 32 values 36 and 24,
# for 128 values 165 and 29 (a count of 5 M BIGINTs, CPU). Rewrites also see through them.
FEW = 24

CallFunction = Callable[[str, Sequence[Expr], Span, Sequence[ast.Node]], Expr]


def gathered(tests: tuple[Expr, ...], call: CallFunction, span: Span) -> tuple[Expr, ...]:
    """The tests of `x IN (…)`, each `x = item`, with more than FEW constants of one type as one ARRAY_CONTAINS.

    Unless all items are constants nothing changes: an item that fails must be evaluated exactly as often.
    """
    constants: dict[DataType, list[tuple[Expr, Literal]]] = {}
    others: list[Expr] = []
    for test in tests:
        match test:
            case Call(args=(operand, Literal() as item)) if test.function.name == "=":
                if item.value is None or item.type.kind not in ELEMENTS:
                    others.append(test)
                else:
                    constants.setdefault(item.type, []).append((operand, item))
            case _:
                return tests
    if max(map(len, constants.values()), default=0) <= FEW:
        return tests
    for type_, pairs in constants.items():
        among = Literal(array(type_), False, tuple(item.value for _, item in pairs), span=span)
        others.append(call("array_contains", [among, pairs[0][0]], span, []))
    return tuple(others)
