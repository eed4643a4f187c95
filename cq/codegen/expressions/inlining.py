"""Python functions of the registry as functions of a stage: plain bodies over integers, doubles and `math`.

A body and the functions it calls are copied as syntax, not as text: `//` and `%` become ops, constants of their modules
their values, `math.x` an op; docstrings and annotations are removed. The writer's verifier decides what a copy may
contain. Functions that the runtime library has (the calendar) are called there.
"""

from __future__ import annotations

import ast
import inspect
import math
import struct
import textwrap
from functools import lru_cache
from types import FunctionType

from cq.codegen.writer import Writer, as_expr, expr
from cq.runtime.base.native import registered
from cq.runtime.layout.words import Word

_ONE_TO_ONE = (
    "sqrt",
    "exp",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "cbrt",
    "expm1",
    "atan2",
)
_MATH = {name: f"f64_{name}" for name in _ONE_TO_ONE}
_BUILTINS = ("min", "max")  # of integers
_NEEDED = "the entry needs a kernel form"
_OPS: dict[type[ast.operator], str] = {ast.FloorDiv: "floordiv", ast.Mod: "floormod", ast.Div: "f64_div"}
_KINDS = {"int": "i64", "bool": "i64", "float": "f64"}


def copied(writer: Writer, function: FunctionType) -> str:
    """The function's name in the module, after copying it with all it calls."""
    name = _name_of(function)
    if name not in writer.signatures:
        definition, called = _copy(function)
        for callee in called:
            copied(writer, callee)
        writer.adopt(definition, _signature(function))
    return name


def _name_of(function: FunctionType) -> str:
    module = function.__module__.rsplit(".", 1)[-1]
    return f"{module}_{function.__name__.strip('_')}"


def _signature(function: FunctionType) -> str:
    kinds = {name: _KINDS[str(kind)] for name, kind in function.__annotations__.items()}
    assert len(kinds) == function.__code__.co_argcount + 1, f"{function.__name__} lacks annotations of its types"
    returned = kinds.pop("return")
    return f"{returned}({', '.join(kinds.values())})"


@lru_cache(maxsize=256)
def _copy(function: FunctionType) -> tuple[ast.FunctionDef, tuple[FunctionType, ...]]:
    """The definition under its new name, and the functions it calls, which are to be copied too."""
    (source,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(source, ast.FunctionDef)
    statements = source.body[1:] if ast.get_docstring(source) else source.body
    copier = _Copier(function)
    body = [copier.visit(s) for s in statements]
    given = [ast.arg(a.arg) for a in source.args.args]
    spec = ast.arguments(posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[])
    made = ast.FunctionDef(_name_of(function), spec, body, decorator_list=[], lineno=0)
    return made, tuple(copier.called)


class _Copier(ast.NodeTransformer):
    """Rewrites a body into kernel code."""

    def __init__(self, function: FunctionType) -> None:
        self._scope = function.__globals__
        self._local = set(function.__code__.co_varnames)
        self.called: list[FunctionType] = []

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        assert not isinstance(node.op, ast.Pow), f"no op for **: {_NEEDED}"
        left, right = self.visit(node.left), self.visit(node.right)
        op = _OPS.get(type(node.op))
        return ast.BinOp(left, node.op, right) if op is None else ast.Call(_name(op), [left, right], [])

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        assert isinstance(node.value, ast.Name) and self._scope[node.value.id] is math, ast.unparse(node)
        constant = getattr(math, node.attr)
        if not isinstance(constant, float):
            assert node.attr in _MATH, f"no op for math.{node.attr}: {_NEEDED}"
            return _name(_MATH[node.attr])
        if math.isfinite(constant):
            return ast.Constant(constant)
        return expr("bits_f64(BITS)", BITS=struct.unpack("<q", struct.pack("<d", constant))[0])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert not node.keywords, ast.unparse(node)
        arguments = [self.visit(a) for a in node.args]
        if not isinstance(node.func, ast.Name):
            return ast.Call(self.visit(node.func), arguments, [])
        target = self._scope.get(node.func.id)
        if isinstance(target, FunctionType) and registered(target) is None:
            self.called.append(target)
            return ast.Call(_name(_name_of(target)), arguments, [])
        assert target is not None or node.func.id in _BUILTINS, f"no op for {node.func.id}: {_NEEDED}"
        return ast.Call(_name(node.func.id), arguments, [])

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._local:
            return node
        value = self._scope[node.id]
        assert isinstance(value, int | float), f"{node.id} is no constant"
        name = node.id.strip("_")
        return as_expr(Word(value, name) if type(value) is int and name.isupper() else value)


def _name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load())
