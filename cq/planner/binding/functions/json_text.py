"""Short forms that write JSON: texts are quoted, everything else is as written."""

from __future__ import annotations

from cq.errors import compile_error
from cq.grammar import ast
from cq.lang.expressions import Coalesce, Expr, Literal
from cq.lang.types import BINARY, BOOLEAN, VARCHAR, DataType, Kind
from cq.planner.binding.conversion import settled
from cq.planner.binding.functions.choices import call
from cq.planner.binding.functions.shorthands import ShorthandBinder, shorthand


@shorthand("to_json")
def _to_json(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TO_JSON(x): the value as JSON: numbers and truth values as they are, all else as JSON_QUOTE of its text."""
    (x,) = binder.exactly(node, 1)
    return _as_json(binder, node, settled(x))


@shorthand("json_array")
def _json_array(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """JSON_ARRAY(x, y, …): an array of the values, written as by TO_JSON; NULLs are null."""
    values = [_or_null(binder, node, x) for x in binder.positional(node, 0)]
    return _enclosed(binder, node, "[", [[v] for v in values], "]")


@shorthand("json_object")
def _json_object(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """JSON_OBJECT('name', x, 'other', y, …): an object of the values, written as by TO_JSON; NULLs are null."""
    args = binder.positional(node, 0)
    if len(args) % 2:
        raise compile_error(
            "CQ0302", f"{node.name.upper()} takes a name and a value for each field", node.span,
            help="write JSON_OBJECT('a', x, 'b', y)",
        )  # fmt: skip
    names = [call(binder, node, "json_quote", [binder.bind_cast(name, VARCHAR, name.span)]) for name in args[::2]]
    values = [_or_null(binder, node, x) for x in args[1::2]]
    fields: list[list[Expr]] = [[name, _text(node, ":"), value] for name, value in zip(names, values, strict=True)]
    return _enclosed(binder, node, "{", fields, "}")


def _enclosed(binder: ShorthandBinder, node: ast.Call, opening: str, items: list[list[Expr]], closing: str) -> Expr:
    parts: list[Expr] = [_text(node, opening)]
    for number, item in enumerate(items):
        parts += [*([_text(node, ",")] if number else []), *item]
    return call(binder, node, "concat", [*parts, _text(node, closing)])


def _or_null(binder: ShorthandBinder, node: ast.Call, x: Expr) -> Expr:
    return Coalesce(VARCHAR, False, (_as_json(binder, node, settled(x)), _text(node, "null")), span=node.span)


def _as_json(binder: ShorthandBinder, node: ast.Call, x: Expr) -> Expr:
    element = x.type.element
    if element is not None:
        if not _is_plain(element):
            raise compile_error(
                "CQ0302", f"{node.name.upper()} does not take {x.type}", x.span, label=str(x.type),
                help="it takes arrays of integers, DECIMALs and BOOLEANs; write ARRAY_TO_STRING(items, ',') for others",
            )  # fmt: skip
        texts = call(binder, node, "array_to_string", [x, _text(node, ","), _text(node, "null")])
        return call(binder, node, "concat", [_text(node, "["), texts, _text(node, "]")])
    if x.type == BINARY:  # as JSON lines have it
        return call(binder, node, "json_quote", [call(binder, node, "hex", [x])])
    text = binder.bind_cast(x, VARCHAR, x.span)
    if x.type.is_float:  # JSON has no NaN and no infinities
        endless = call(binder, node, "not", [call(binder, node, "isfinite", [x])])
        return binder.conditional([endless], [_text(node, "null"), text], node.span)
    return text if _is_plain(x.type) else call(binder, node, "json_quote", [text])


def _is_plain(type_: DataType) -> bool:
    return type_.is_integer or type_.kind is Kind.DECIMAL or type_ == BOOLEAN


def _text(node: ast.Call, text: str) -> Literal:
    return Literal(VARCHAR, False, text, span=node.span)
