"""Prints the module of a stage: every node is checked as it is printed, so nothing else can be in the text.

A kernel may contain what `Printer` has a method for: assignments, branches, loops and calls of functions by name, over
names and numbers. A number that knows its name (cq/runtime/layout/words.py) is printed by that name, and the module
begins with the values of the names it uses. The text is the same whatever Python version runs this.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from cq.runtime.layout.words import Word

MOST_NODES = 220_000  # statements and expressions of one stage; beyond it compiling would take minutes
LINE_MARK = "line_mark"  # a call of it, with a query line and the number of a word, becomes a comment

NAME = re.compile(r"[a-z_][a-z0-9_]{0,63}")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_INDENT = "    "

# the precedence of expressions, the weakest first
_CHOICE, _OR, _AND, _NOT, _COMPARED, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFTED, _SUM, _PRODUCT, _SIGNED = range(12)
_BINARY: dict[type[ast.AST], tuple[str, int]] = {
    ast.BitOr: ("|", _BIT_OR), ast.BitXor: ("^", _BIT_XOR), ast.BitAnd: ("&", _BIT_AND), ast.RShift: (">>", _SHIFTED),
    ast.Add: ("+", _SUM), ast.Sub: ("-", _SUM), ast.Mult: ("*", _PRODUCT),
}  # fmt: skip
_UNARY: dict[type[ast.AST], tuple[str, int]] = {
    ast.USub: ("-", _SIGNED), ast.Invert: ("~", _SIGNED), ast.Not: ("not ", _NOT),
}  # fmt: skip
_JOINED: dict[type[ast.AST], tuple[str, int]] = {ast.And: (" and ", _AND), ast.Or: (" or ", _OR)}
_COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


class GeneratedTooMuch(Exception):
    """The stage is larger than `MOST_NODES`."""


class Printer:
    """Prints the functions of one module.

    callable_: functions that may be called; a name is one of these, or of a constant, or of a local of its function.
    marks: the words that line marks name.
    """

    def __init__(self, callable_: Iterable[str], marks: Sequence[str] = ()) -> None:
        self._callable = {*callable_, LINE_MARK}
        self._marks = marks
        self._constants: dict[str, int] = {}
        self._lines: list[str] = []
        self._named: set[str] = set()  # by the function being printed
        self._assigned: set[str] = set()
        self._nodes = 0

    def module(self, functions: Sequence[ast.FunctionDef]) -> str:
        """The text: a line for each constant, by name, then the functions. Raises `GeneratedTooMuch`, and
        AssertionError for nodes that kernels may not contain."""
        self._callable.update(f.name for f in functions)
        printed = [self._function(f) for f in functions]
        declared = "".join(f"{name} = {value}\n" for name, value in sorted(self._constants.items()))
        return declared + "\n" * bool(declared) + "\n\n".join(printed) + "\n"

    def _function(self, function: ast.FunctionDef) -> str:
        assert not function.decorator_list, "a module of functions only"
        others = [value for name, value in ast.iter_fields(function.args) if name != "args"]
        assert not any(others), "arguments that are not plain"
        arguments = [a.arg for a in function.args.args]
        self._named, self._assigned, self._lines = set(), set(arguments), []
        self._block(function.body, _INDENT)
        hidden = self._assigned & self._callable
        assert not hidden, f"locals hide functions: {sorted(hidden)}"
        for name in self._assigned:
            assert NAME.fullmatch(name), f"generated code names {name}"
        unknown = self._named - self._assigned - self._callable
        assert not unknown, f"generated code names {sorted(unknown)}"
        return "\n".join([f"def {function.name}({', '.join(arguments)}):", *self._lines])

    # -- statements --------------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], indent: str) -> None:
        for statement in body:
            print_ = _STATEMENTS.get(type(statement))
            assert print_ is not None, f"{type(statement).__name__} in generated code"
            print_(self, statement, indent)
        self._nodes += len(body)
        if self._nodes > MOST_NODES:
            raise GeneratedTooMuch

    def _assign(self, node: ast.Assign, indent: str) -> None:
        targets = " = ".join(self._target(t) for t in node.targets)
        self._lines.append(f"{indent}{targets} = {self._expression(node.value)}")

    def _change(self, node: ast.AugAssign, indent: str) -> None:
        sign, _ = _of(_BINARY, node.op)
        self._lines.append(f"{indent}{self._target(node.target)} {sign}= {self._expression(node.value)}")

    def _target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Tuple):
            return ", ".join(self._target(e) for e in node.elts)
        assert isinstance(node, ast.Name), "generated code assigns something computed"
        self._assigned.add(node.id)
        return node.id

    def _if(self, node: ast.If, indent: str) -> None:
        word = "if"
        while True:
            self._lines.append(f"{indent}{word} {self._expression(node.test)}:")
            self._block(node.body, indent + _INDENT)
            other = node.orelse
            if not (len(other) == 1 and isinstance(other[0], ast.If)):
                break
            node, word = other[0], "elif"
            self._nodes += 1
        if other:
            self._lines.append(f"{indent}else:")
            self._block(other, indent + _INDENT)

    def _while(self, node: ast.While, indent: str) -> None:
        assert not node.orelse, "a loop with an else in generated code"
        self._lines.append(f"{indent}while {self._expression(node.test)}:")
        self._block(node.body, indent + _INDENT)

    def _for(self, node: ast.For, indent: str) -> None:
        assert not node.orelse, "a loop with an else in generated code"
        self._lines.append(f"{indent}for {self._target(node.target)} in {self._expression(node.iter)}:")
        self._block(node.body, indent + _INDENT)

    def _return(self, node: ast.Return, indent: str) -> None:
        self._lines.append(
            f"{indent}return" if node.value is None else f"{indent}return {self._expression(node.value)}"
        )

    def _do(self, node: ast.Expr, indent: str) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == LINE_MARK:
            line, what = (a.value for a in call.args if isinstance(a, ast.Constant))
            assert isinstance(line, int) and isinstance(what, int), "a line mark with something computed"
            self._lines.append(f"{indent}# line {line}: {self._marks[what]}")
        else:
            self._lines.append(indent + self._expression(call))

    def _word(self, node: ast.stmt, indent: str) -> None:
        self._lines.append(indent + type(node).__name__.lower())

    # -- expressions -------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr, least: int = _CHOICE) -> str:
        """Its text, in parentheses unless it binds at least that strongly."""
        self._nodes += 1
        print_ = _EXPRESSIONS.get(type(node))
        assert print_ is not None, f"{type(node).__name__} in generated code"
        return print_(self, node, least)

    def _name(self, node: ast.Name, least: int) -> str:
        self._named.add(node.id)
        return node.id

    def _constant(self, node: ast.Constant, least: int) -> str:
        value = node.value
        assert isinstance(value, int | float), "generated code holds text"
        if isinstance(value, float):
            assert not math.isnan(value), "NaN has no literal"
            return repr(value).replace("inf", "1e309")
        if isinstance(value, Word) and value.name:
            return self._constant_name(value)
        assert -(2**63) < value < 2**63, "a constant beyond 64 bits"
        return repr(value)

    def _constant_name(self, word: Word) -> str:
        """The name of a number. Two numbers with one name get different names."""
        for name in _spellings(word.name):
            known = self._constants.get(name)
            if known is None:
                assert _CONSTANT.fullmatch(name), f"a constant named {name}"
                assert -(2**63) <= word < 2**63, f"{name} is beyond 64 bits"
                self._constants[name] = int(word)
                return name
            if known == word:
                return name
        raise AssertionError("there is always another spelling")

    def _call(self, node: ast.Call, least: int) -> str:
        assert isinstance(node.func, ast.Name) and not node.keywords, "generated code calls something computed"
        name = node.func.id
        assert name in self._callable, f"generated code calls {name}"
        return f"{name}({', '.join([self._expression(a) for a in node.args])})"

    def _binary(self, node: ast.BinOp, least: int) -> str:
        sign, strength = _of(_BINARY, node.op)
        left, right = self._expression(node.left, strength), self._expression(node.right, strength + 1)
        return _held(f"{left} {sign} {right}", strength, least)

    def _unary(self, node: ast.UnaryOp, least: int) -> str:
        sign, strength = _of(_UNARY, node.op)
        return _held(sign + self._expression(node.operand, strength), strength, least)

    def _joined(self, node: ast.BoolOp, least: int) -> str:
        word, strength = _of(_JOINED, node.op)
        return _held(word.join([self._expression(v, strength + 1) for v in node.values]), strength, least)

    def _compare(self, node: ast.Compare, least: int) -> str:
        text = self._expression(node.left, _COMPARED + 1)
        for op, other in zip(node.ops, node.comparators, strict=True):
            text += f" {_of(_COMPARISONS, op)} {self._expression(other, _COMPARED + 1)}"
        return _held(text, _COMPARED, least)

    def _choice(self, node: ast.IfExp, least: int) -> str:
        yes, test = self._expression(node.body, _CHOICE + 1), self._expression(node.test, _CHOICE + 1)
        return _held(f"{yes} if {test} else {self._expression(node.orelse)}", _CHOICE, least)

    def _tuple(self, node: ast.Tuple, least: int) -> str:
        assert len(node.elts) > 1, "a tuple of one value in generated code"
        return f"({', '.join([self._expression(e) for e in node.elts])})"


def _of(table: Mapping[type[ast.AST], Any], op: ast.AST) -> Any:
    found = table.get(type(op))
    assert found is not None, f"{type(op).__name__} in generated code"
    return found


def _held(text: str, strength: int, least: int) -> str:
    return f"({text})" if strength < least else text


def _spellings(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{n}" for n in count(2))


_STATEMENTS: dict[type[ast.AST], Callable[[Printer, Any, str], None]] = {
    ast.Assign: Printer._assign, ast.AugAssign: Printer._change, ast.If: Printer._if, ast.While: Printer._while,
    ast.For: Printer._for, ast.Return: Printer._return, ast.Expr: Printer._do, ast.Break: Printer._word,
    ast.Continue: Printer._word, ast.Pass: Printer._word,
}  # fmt: skip
_EXPRESSIONS: dict[type[ast.AST], Callable[[Printer, Any, int], str]] = {
    ast.Name: Printer._name, ast.Constant: Printer._constant, ast.Call: Printer._call, ast.BinOp: Printer._binary,
    ast.UnaryOp: Printer._unary, ast.BoolOp: Printer._joined, ast.Compare: Printer._compare, ast.IfExp: Printer._choice,
    ast.Tuple: Printer._tuple,
}  # fmt: skip
