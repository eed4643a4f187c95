"""JSON by steps: `x -> 'a' ->> 'b'` is GET_JSON_OBJECT(x, '$.a.b'). JSON has no type: a chain ends in text."""

from __future__ import annotations

from collections.abc import Callable

from cq.errors import compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import VARCHAR
from cq.planner.binding.functions.shorthands import ShorthandBinder, shorthand

ARROWS = frozenset(["->", "->>"])


def bind_steps(binder: ShorthandBinder, node: ast.Binary, bind: Callable[[ast.Expr], Expr]) -> Expr:
    """The text that a chain of arrows reaches."""
    if node.op == "->":
        raise compile_error(
            "CQ0501",
            "-> returns JSON, a type that is not supported yet",
            node.op_span,
            help="write ->> for its text: x ->> 'a', x -> 'a' ->> 'b'",
        )
    steps, root = [_step(node.right)], node.left
    while isinstance(root, ast.Binary) and root.op == "->":
        steps.append(_step(root.right))
        root = root.left
    path = Literal(VARCHAR, False, "$" + "".join(reversed(steps)), span=node.right.span)
    return binder.call("get_json_object", [bind(root), path], node.span, [root, node.right], node.op_span)


def _step(node: ast.Expr) -> str:
    """A step of a path: a name, a whole path, or the number of an element."""
    if isinstance(node, ast.StringLiteral):
        return node.value[1:] if node.value.startswith("$") else f"['{node.value}']"
    assert isinstance(node, ast.NumberLiteral)
    return f"[{node.text}]"


def _of_path(binder: ShorthandBinder, node: ast.Call, name: str) -> Expr:
    """A call of a function of the value at a path, if one is given."""
    args = binder.positional(node, 1)
    if len(args) == 2:
        args = [binder.call("get_json_object", args, node.span, node.args, node.name_span)]
    return binder.call(name, args, node.span, node.args, node.name_span)


@shorthand("json_array_length")
def _json_array_length(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """JSON_ARRAY_LENGTH(x, path): JSON_ARRAY_LENGTH(GET_JSON_OBJECT(x, path))."""
    return _of_path(binder, node, "json_array_length")


@shorthand("json_array_elements", "json_array_elements_text", "json_extract_string_array")
def _json_array_elements(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """JSON_ARRAY_ELEMENTS(x, path): JSON_ARRAY_ELEMENTS(GET_JSON_OBJECT(x, path))."""
    return _of_path(binder, node, "json_array_elements")
