"""A native function as LLVM assembly, translated from the restricted Python it is written in.

Every local is a stack slot here, which LLVM turns into a register; every callee is a declared symbol. So a function is
translated independently of its callers, in a millisecond or two, and all optimisation happens after `kernel.py` has
linked the parts. `by_numba.py` does the same with numba; docs/decisions/native-code.md says why there are two.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cq.records import dataclass
from cq.runtime.base.intrinsics import IR_TYPES, result_type
from cq.runtime.base.intrinsics import symbol as op_symbol
from cq.runtime.base.ops import OPS
from cq.runtime.base.restricted import (
    Callee,
    FunctionNames,
    TranslationError,
    augmented,
    kind_of,
    local,
    outside,
    unknown,
    wider,
)
from cq.runtime.base.signatures import NativeSignature


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand and its kind."""

    kind: str
    text: str


@dataclass(slots=True)
class _Loop:
    """Where `continue` and `break` go, and whether there is a `break`."""

    again: str
    end: str
    broken: bool = False


def translate(
    tree: ast.FunctionDef,
    signature: NativeSignature,
    symbol: str,
    callees: Mapping[str, Callee],
    constants: Mapping[str, int | float],
) -> str:
    """A module in LLVM assembly that defines `symbol` with a plain C signature.

    callees, constants: the meaning of the function's names that are not locals. Raises TranslationError if it is not
    restricted Python.
    """
    try:
        return _Writer(tree, signature, symbol, FunctionNames(tree, signature, callees, constants)).module()
    except TranslationError as why:
        raise TranslationError(f"{tree.name}: {why}") from why


class _Writer:
    """Writes the assembly of one function, block by block."""

    def __init__(self, tree: ast.FunctionDef, signature: NativeSignature, symbol: str, scope: FunctionNames) -> None:
        self._tree, self._signature, self._symbol, self._scope = tree, signature, symbol, scope
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._declared: dict[str, str] = {}
        self._loops: list[_Loop] = []
        self._count = 0
        self._open = True  # whether the current block has no end yet

    def module(self) -> str:
        """The assembly of the module."""
        parameters = dict(zip(self._scope.parameters, self._signature.arguments, strict=True))
        for name in sorted(self._scope.assigned):
            self._slots.append(f"%s.{name} = alloca {IR_TYPES[self._scope.locals[name]]}")
        for name, kind in parameters.items():
            if name in self._scope.assigned:
                self._store(name, Operand(kind, f"%p.{name}"))
        self._body(self._tree.body)
        if self._open:
            self._fall_off()
        arguments = ", ".join(f"{IR_TYPES[kind]} %p.{name}" for name, kind in parameters.items())
        header = f'define {result_type(self._signature)} @"{self._symbol}"({arguments}) nounwind {{\nentry:'
        declared = [line for symbol, line in self._declared.items() if symbol != self._symbol]
        return "\n".join([*declared, header, *self._slots, *self._lines, "}\n"])

    def _fall_off(self) -> None:
        if self._signature.results:
            raise TranslationError("may end without a result")
        self._end("ret void")

    # -- lines and blocks

    def _made(self, kind: str, instruction: str) -> Operand:
        """The result of an instruction."""
        self._count += 1
        name = f"%t{self._count}"
        self._lines.append(f"{name} = {instruction}")
        return Operand(kind, name)

    def _slot(self, kind: str) -> str:
        self._count += 1
        self._slots.append(f"%t{self._count} = alloca {IR_TYPES[kind]}")
        return f"%t{self._count}"

    def _put(self, value: Operand, slot: str) -> None:
        self._lines.append(f"store {IR_TYPES[value.kind]} {value.text}, ptr {slot}")

    def _label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def _end(self, instruction: str) -> None:
        """End the block with this instruction."""
        self._lines.append(instruction)
        self._open = False

    def _jump(self, label: str) -> None:
        """If the block is open, jump to the label."""
        if self._open:
            self._end(f"br label %{label}")

    def _begin(self, label: str) -> None:
        """Begin a block; the one before falls through to it if it is open."""
        self._jump(label)
        self._lines.append(f"{label}:")
        self._open = True

    # -- statements

    def _body(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if not self._open:
                return  # this is unreachable
            write = _STATEMENTS.get(type(node))
            if write is None:
                raise outside(node)
            write(self, node)

    def _nothing(self, node: ast.Assert | ast.Pass) -> None:
        """An assert holds when interpreted and is absent here."""

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._call(node.value)
        elif not isinstance(node.value, ast.Constant):  # a docstring is a constant
            raise outside(node)

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise outside(node)
        (target,) = node.targets
        if not isinstance(target, ast.Tuple):
            self._store(local(target), self._value(node.value))
            return
        values = self._values(node.value)
        if len(values) != len(target.elts):
            raise outside(node)
        for element, value in zip(target.elts, values, strict=True):
            self._store(local(element), value)

    def _augment(self, node: ast.AugAssign) -> None:
        self._store(local(node.target), self._value(augmented(node)))

    def _store(self, name: str, value: Operand) -> None:
        self._put(self._as(self._scope.locals[name], value), f"%s.{name}")

    def _return(self, node: ast.Return) -> None:
        values = self._values(node.value) if node.value is not None else []
        kinds = self._signature.results
        if len(values) != len(kinds):
            raise outside(node)
        values = [self._as(kind, value) for kind, value in zip(kinds, values, strict=True)]
        if len(values) <= 1:
            self._end(f"ret {IR_TYPES[values[0].kind]} {values[0].text}" if values else "ret void")
            return
        whole, shape = "poison", result_type(self._signature)
        for place, value in enumerate(values):
            whole = self._made("", f"insertvalue {shape} {whole}, {IR_TYPES[value.kind]} {value.text}, {place}").text
        self._end(f"ret {shape} {whole}")

    def _if(self, node: ast.If) -> None:
        then, other, end = self._label(), self._label(), self._label()
        self._branch(node.test, then, other if node.orelse else end)
        reached = not node.orelse
        for label, body in ((then, node.body), (other, node.orelse)):
            if body:
                self._begin(label)
                self._body(body)
                reached |= self._open
                self._jump(end)
        if reached:
            self._begin(end)

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise outside(node)
        loop = _Loop(self._label(), self._label())
        self._begin(loop.again)
        if not (isinstance(node.test, ast.Constant) and node.test.value):
            body = self._label()
            self._branch(node.test, body, loop.end)
            self._begin(body)
            loop.broken = True
        self._turn(loop, node.body)
        self._jump(loop.again)
        if loop.broken:
            self._begin(loop.end)

    def _for(self, node: ast.For) -> None:
        """The iterations are counted separately from the local, which the body may change."""
        first, bound, step = self._range(node)
        loop, test, body = _Loop(self._label(), self._label()), self._label(), self._label()
        counter = self._slot("i64")
        self._put(first, counter)
        self._begin(test)
        number = self._made("i64", f"load i64, ptr {counter}")
        on = self._made("bool", f"icmp {'slt' if step > 0 else 'sgt'} i64 {number.text}, {bound.text}")
        self._end(f"br i1 {on.text}, label %{body}, label %{loop.end}")
        self._begin(body)
        self._store(local(node.target), number)
        self._turn(loop, node.body)
        self._begin(loop.again)
        self._put(self._made("i64", f"add nsw i64 {number.text}, {step}"), counter)
        self._jump(test)
        self._begin(loop.end)

    def _turn(self, loop: _Loop, body: Sequence[ast.stmt]) -> None:
        self._loops.append(loop)
        self._body(body)
        self._loops.pop()

    def _range(self, node: ast.For) -> tuple[Operand, Operand, int]:
        """The first number, the bound and the step."""
        match node:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]), orelse=[]):
                given = [self._as("i64", self._value(argument)) for argument in arguments]
            case _:
                raise outside(node)
        if len(given) == 1:
            return Operand("i64", "0"), given[0], 1
        first, bound, step = given if len(given) == 3 else (*given, Operand("i64", "1"))
        if not step.text.lstrip("-").strip("0").isdigit():  # neither a literal nor a constant, or 0
            raise outside(node)
        return first, bound, int(step.text)

    def _break(self, node: ast.Break) -> None:
        self._loops[-1].broken = True
        self._jump(self._loops[-1].end)

    def _continue(self, node: ast.Continue) -> None:
        self._jump(self._loops[-1].again)

    # -- conditions

    def _branch(self, test: ast.expr, then: str, other: str) -> None:
        """End the block with a branch to one of two labels."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._branch(operand, other, then)
            case ast.BoolOp(op=operator, values=[*parts, last]):
                for part in parts:
                    following = self._label()
                    if isinstance(operator, ast.And):
                        self._branch(part, following, other)
                    else:
                        self._branch(part, then, following)
                    self._begin(following)
                self._branch(last, then, other)
            case _:
                met = self._truth(self._value(test))
                self._end(f"br i1 {met.text}, label %{then}, label %{other}")

    def _truth(self, value: Operand) -> Operand:
        match value.kind:
            case "bool":
                return value
            case "i64":
                return self._made("bool", f"icmp ne i64 {value.text}, 0")
        return self._made("bool", f"fcmp une double {value.text}, {_double(0.0)}")

    # -- values

    def _values(self, node: ast.expr) -> list[Operand]:
        """The results of an expression that may have several."""
        if isinstance(node, ast.Tuple):
            return [self._value(element) for element in node.elts]
        return self._call(node) if isinstance(node, ast.Call) else [self._value(node)]

    def _value(self, node: ast.expr) -> Operand:
        read = _EXPRESSIONS.get(type(node))
        if read is None:
            raise outside(node)
        return read(self, node)

    def _as(self, kind: str, value: Operand) -> Operand:
        """Convert the value to a kind, which is no narrower: a double is never silently truncated."""
        if value.kind == kind:
            return value
        match value.kind, kind:
            case "bool", "i64":
                return self._made(kind, f"zext i1 {value.text} to i64")
            case "i64", "f64":
                return self._made(kind, f"sitofp i64 {value.text} to double")
            case "bool", "f64":
                return self._made(kind, f"uitofp i1 {value.text} to double")
            case "i64", "bool":
                return self._truth(value)
        raise TranslationError(f"a value of {value.kind} stands where {kind} is needed")

    def _constant(self, node: ast.Constant) -> Operand:
        return _literal(node.value)

    def _name(self, node: ast.Name) -> Operand:
        name = node.id
        if name in self._scope.assigned:
            kind = self._scope.locals[name]
            return self._made(kind, f"load {IR_TYPES[kind]}, ptr %s.{name}")
        if name in self._scope.locals:
            return Operand(self._scope.locals[name], f"%p.{name}")
        if name in self._scope.constants:
            return _literal(self._scope.constants[name])
        raise unknown(node)

    def _one_result(self, node: ast.Call) -> Operand:
        results = self._call(node)
        if len(results) != 1:
            raise outside(node)
        return results[0]

    def _call(self, node: ast.Call) -> list[Operand]:
        """The results of a call."""
        callee = self._scope.callee(node)
        wanted = zip(callee.signature.arguments, node.args, strict=True)
        return self._invoke(callee, [self._as(kind, self._value(argument)) for kind, argument in wanted])

    def _invoke(self, callee: Callee, given: list[Operand]) -> list[Operand]:
        shape, result = callee.signature, result_type(callee.signature)
        passed = ", ".join(f"{IR_TYPES[value.kind]} {value.text}" for value in given)
        declared = ", ".join(IR_TYPES[kind] for kind in shape.arguments)
        self._declared[callee.symbol] = f'declare {result} @"{callee.symbol}"({declared})'
        call = f'call {result} @"{callee.symbol}"({passed})'
        if not shape.results:
            self._lines.append(call)
            return []
        made = self._made(shape.results[0], call)
        if len(shape.results) == 1:
            return [made]
        return [
            self._made(kind, f"extractvalue {result} {made.text}, {place}") for place, kind in enumerate(shape.results)
        ]

    def _binary(self, node: ast.BinOp) -> Operand:
        left, right = self._value(node.left), self._value(node.right)
        kind, operator = wider(left.kind, right.kind), type(node.op)
        if kind == "bool" and operator not in _OF_BOOLS:
            kind = "i64"
        a, b = self._as(kind, left), self._as(kind, right)
        if kind == "i64" and operator in _DIVISIONS:
            return self._invoke(
                Callee(op_symbol(_DIVISIONS[operator]), NativeSignature.parse(OPS[_DIVISIONS[operator]])), [a, b]
            )[0]
        instruction = _ARITHMETIC.get((kind, operator))
        if instruction is None:
            raise outside(node)
        return self._made(kind, f"{instruction} {IR_TYPES[kind]} {a.text}, {b.text}")

    def _unary(self, node: ast.UnaryOp) -> Operand:
        if isinstance(node.op, ast.Not):
            return self._made("bool", f"xor i1 {self._truth(self._value(node.operand)).text}, true")
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return _literal(-node.operand.value)  # type: ignore[operator]  # a number: `kind_of` has refused others
        given = self._value(node.operand)
        if isinstance(node.op, ast.USub) and given.kind == "f64":
            return self._made("f64", f"fneg double {given.text}")
        word = self._as("i64", given)
        if isinstance(node.op, ast.USub):
            return self._made("i64", f"sub i64 0, {word.text}")
        if isinstance(node.op, ast.Invert):
            return self._made("i64", f"xor i64 {word.text}, -1")
        raise outside(node)

    def _compare(self, node: ast.Compare) -> Operand:
        left, right = self._value(node.left), self._value(node.comparators[0])
        met = self._compared(node, node.ops[0], left, right)
        if len(node.ops) == 1:
            return met
        slot, end = self._slot("bool"), self._label()
        for operator, further in zip(node.ops[1:], node.comparators[1:], strict=True):
            following = self._label()
            self._put(met, slot)
            self._end(f"br i1 {met.text}, label %{following}, label %{end}")
            self._begin(following)
            left, right = right, self._value(further)
            met = self._compared(node, operator, left, right)
        self._put(met, slot)
        self._begin(end)
        return self._made("bool", f"load i1, ptr {slot}")

    def _compared(self, node: ast.Compare, operator: ast.cmpop, left: Operand, right: Operand) -> Operand:
        if type(operator) not in _COMPARISONS:
            raise outside(node)
        kind = "f64" if "f64" in (left.kind, right.kind) else "i64"
        of_words, of_doubles = _COMPARISONS[type(operator)]
        a, b = self._as(kind, left), self._as(kind, right)
        compared = f"fcmp {of_doubles}" if kind == "f64" else f"icmp {of_words}"
        return self._made("bool", f"{compared} {IR_TYPES[kind]} {a.text}, {b.text}")

    def _either(self, node: ast.BoolOp) -> Operand:
        """The value of `and` and `or`: the first operand that decides, or the last."""
        (kind,) = self._scope.kinds(node)
        slot, end = self._slot(kind), self._label()
        *parts, last = node.values
        for part in parts:
            value, following = self._as(kind, self._value(part)), self._label()
            self._put(value, slot)
            on, out = (following, end) if isinstance(node.op, ast.And) else (end, following)
            self._end(f"br i1 {self._truth(value).text}, label %{on}, label %{out}")
            self._begin(following)
        self._put(self._as(kind, self._value(last)), slot)
        self._begin(end)
        return self._made(kind, f"load {IR_TYPES[kind]}, ptr {slot}")

    def _choice(self, node: ast.IfExp) -> Operand:
        (kind,) = self._scope.kinds(node)
        slot, then, other, end = self._slot(kind), self._label(), self._label(), self._label()
        self._branch(node.test, then, other)
        for label, part in ((then, node.body), (other, node.orelse)):
            self._begin(label)
            self._put(self._as(kind, self._value(part)), slot)
            self._jump(end)
        self._begin(end)
        return self._made(kind, f"load {IR_TYPES[kind]}, ptr {slot}")


_STATEMENTS: dict[type[ast.stmt], Callable[[_Writer, Any], None]] = {
    ast.Assert: _Writer._nothing,
    ast.Pass: _Writer._nothing,
    ast.Expr: _Writer._expression,
    ast.Assign: _Writer._assign,
    ast.AugAssign: _Writer._augment,
    ast.Return: _Writer._return,
    ast.If: _Writer._if,
    ast.While: _Writer._while,
    ast.For: _Writer._for,
    ast.Break: _Writer._break,
    ast.Continue: _Writer._continue,
}
_EXPRESSIONS: dict[type[ast.expr], Callable[[_Writer, Any], Operand]] = {
    ast.Constant: _Writer._constant,
    ast.Name: _Writer._name,
    ast.Call: _Writer._one_result,
    ast.BinOp: _Writer._binary,
    ast.UnaryOp: _Writer._unary,
    ast.Compare: _Writer._compare,
    ast.BoolOp: _Writer._either,
    ast.IfExp: _Writer._choice,
}
_OF_BOOLS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_ARITHMETIC: dict[tuple[str, type[ast.operator]], str] = {
    ("i64", ast.Add): "add",
    ("i64", ast.Sub): "sub",
    ("i64", ast.Mult): "mul",
    ("i64", ast.RShift): "ashr",
    ("i64", ast.LShift): "shl",
    **{(kind, ast.BitAnd): "and" for kind in ("i64", "bool")},
    **{(kind, ast.BitOr): "or" for kind in ("i64", "bool")},
    **{(kind, ast.BitXor): "xor" for kind in ("i64", "bool")},
    ("f64", ast.Add): "fadd",
    ("f64", ast.Sub): "fsub",
    ("f64", ast.Mult): "fmul",
    ("f64", ast.Div): "fdiv",
}  # fmt: skip
_DIVISIONS: dict[type[ast.operator], str] = {ast.FloorDiv: "floordiv", ast.Mod: "floormod"}  # the divisor is not 0
_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
}


def _literal(value: object) -> Operand:
    kind = kind_of(value)
    if kind == "f64":
        return Operand(kind, _double(float(value)))  # type: ignore[arg-type]
    return Operand(kind, str(value).lower() if kind == "bool" else str(int(value)))  # type: ignore[call-overload]


def _double(value: float) -> str:
    """A double as LLVM reads it, bit for bit."""
    return f"0x{struct.pack('>d', value).hex()}"
