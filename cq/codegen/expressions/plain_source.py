"""Find the definition of a Python function, if it is the one the function was made from."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any


class Unfit(Exception):
    """The function is not plain Python (cq/codegen/expressions/plain_python.py), and why."""


def source_of(function: Any) -> ast.FunctionDef:
    """The definition of a function."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        raise Unfit("it is not a plain function written in Python")
    try:
        (found,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError, ValueError):
        raise Unfit(f"the source of {function.__name__}() cannot be read") from None
    if not isinstance(found, ast.FunctionDef):
        raise Unfit(f"{function.__name__}() is not defined with def")
    if not _is_code_of(found, function):
        raise Unfit(f"the source of {function.__name__}() has changed since it was loaded")
    return found


def _is_code_of(found: ast.FunctionDef, function: FunctionType) -> bool:
    """Whether the function was made from the definition."""
    arguments = ast.arguments(found.args.posonlyargs, found.args.args, kwonlyargs=[], kw_defaults=[], defaults=[])
    plain = ast.FunctionDef(found.name, arguments, found.body, decorator_list=[], lineno=1, col_offset=0)
    free = [ast.arg(name) for name in function.__code__.co_freevars]
    names = ast.arguments(posonlyargs=[], args=free, kwonlyargs=[], kw_defaults=[], defaults=[])
    around = ast.FunctionDef("around", names, [plain], decorator_list=[], lineno=1, col_offset=0)
    module = ast.fix_missing_locations(ast.Module([around if free else plain], []))
    made = compile(module, "<source>", "exec", dont_inherit=True)
    for _ in range(2 if free else 1):
        (made,) = (c for c in made.co_consts if isinstance(c, CodeType))
    return _steps(made) == _steps(function.__code__)


def _steps(code: CodeType) -> list[tuple[str, str]]:
    """What the code does, except how it calls functions of modules: that depends on the rest of the module."""
    steps = []
    for step in dis.get_instructions(code):
        if step.opname not in _OF_CALLS:
            jumps = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
            shown = "" if jumps else step.argrepr.replace("NULL + ", "").replace(" + NULL|self", "")
            steps.append((step.opname.replace("LOAD_METHOD", "LOAD_ATTR"), shown))
    return steps


_OF_CALLS = {"PUSH_NULL", "PRECALL", "CALL", "CALL_METHOD", "CALL_FUNCTION", "EXTENDED_ARG"}
