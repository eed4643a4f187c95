"""The restricted Python of native functions: the kind of every expression and local, and the meaning of names.

Three kinds of value: i64, f64 and bool. A local has one kind, the widest that is assigned to it (bool, i64, f64 in
that order). Names that are not locals are ops, native functions, or constants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from cq.records import dataclass
from cq.runtime.base.ops import MAX64, MIN64
from cq.runtime.base.signatures import NativeSignature

Kinds = tuple[str, ...]  # of the results of an expression: one, except for calls of functions with none or several

_WIDENING = {"bool": 0, "i64": 1, "f64": 2}
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)


class TranslationError(Exception):
    """A native function is outside the restricted Python; always our own mistake."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A symbol that translated code may call, and its signature."""

    symbol: str
    signature: NativeSignature


def outside(node: ast.AST) -> TranslationError:
    """The error for code that is not restricted Python."""
    return TranslationError(f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node)} is not restricted Python")


def unknown(node: ast.expr) -> TranslationError:
    """The error for a name without a meaning here."""
    return TranslationError(
        f"line {node.lineno}: {ast.unparse(node)} is neither an op, nor a native function, nor a constant"
    )


class FunctionNames:
    """The kind of every local of a function, and the meaning of its other names."""

    def __init__(
        self,
        tree: ast.FunctionDef,
        signature: NativeSignature,
        callees: Mapping[str, Callee],
        constants: Mapping[str, int | float],
    ) -> None:
        self.callees, self.constants = callees, constants
        self.parameters = [argument.arg for argument in tree.args.args]
        if len(self.parameters) != len(signature.arguments):
            raise TranslationError(f"it has {len(self.parameters)} parameters, its signature another number")
        self.locals: dict[str, str] = dict(zip(self.parameters, signature.arguments, strict=True))
        self.assigned: set[str] = set()
        self._settle(list(_assignments(tree.body)))

    def _settle(self, assignments: list[tuple[str, ast.expr | None, int]]) -> None:
        """Give locals the widest kind that is assigned to them; kinds only widen, so this ends."""
        self.assigned = {name for name, _, _ in assignments}
        while True:
            before = dict(self.locals)
            for name, value, place in assignments:
                kinds = self.kinds(value) if value is not None else ("i64",)
                if kinds and place < len(kinds):
                    self.locals[name] = wider(self.locals.get(name), kinds[place])
            if self.locals == before:
                break
        for name in sorted(self.assigned - self.locals.keys()):
            raise TranslationError(f"nothing gives {name} a value")

    def kinds(self, node: ast.expr) -> Kinds:
        """The kinds of an expression; empty while one of its locals has none yet, and for a call without a result."""
        if isinstance(node, ast.Call):
            return self.callee(node).signature.results
        if isinstance(node, ast.Tuple):
            parts = [self.kinds(part) for part in node.elts]
            return tuple(part[0] for part in parts) if all(parts) else ()
        kind = self._kind(node)
        return (kind,) if kind else ()

    def _kind(self, node: ast.expr) -> str | None:
        match node:
            case ast.Name(id=name):
                return self.locals.get(name) or (kind_of(self.constants[name]) if name in self.constants else None)
            case ast.Constant(value=value):
                return kind_of(value)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return "bool"
            case ast.UnaryOp(operand=operand):
                return self._widest([operand], "i64")
            case ast.BinOp(left=left, op=operator, right=right):
                return self._widest([left, right], "bool" if isinstance(operator, _BITWISE) else "i64")
            case ast.BoolOp(values=values):
                return self._widest(values, "bool")
            case ast.IfExp(body=body, orelse=orelse):
                return self._widest([body, orelse], "bool")
        raise outside(node)

    def _widest(self, nodes: Sequence[ast.expr], least: str) -> str | None:
        kind: str | None = least
        for node in nodes:
            kinds = self.kinds(node)
            if not kinds:
                return None
            kind = wider(kind, kinds[0])
        return kind

    def callee(self, node: ast.Call) -> Callee:
        """The function that a call calls."""
        found = self.callees.get(ast.unparse(node.func))
        if found is None:
            raise unknown(node.func)
        if node.keywords or len(node.args) != len(found.signature.arguments):
            raise outside(node)
        return found


def kind_of(value: object) -> str:
    """The kind of a literal or constant; TranslationError if it is not a 64-bit number."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        if not MIN64 <= value <= MAX64:
            raise TranslationError(f"{value} does not fit 64 bits")
        return "i64"
    if isinstance(value, float):
        return "f64"
    raise TranslationError(f"{value!r} is not a number")


def wider(known: str | None, kind: str) -> str:
    """The wider of two kinds; the second if there is no first."""
    return kind if known is None or _WIDENING[kind] > _WIDENING[known] else known


def _assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr | None, int]]:
    """Every assignment to a local: its name, the expression (None: the counter of a loop), and which of its results."""
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value, 0
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value):
                for place, element in enumerate(elements):
                    yield local(element), value, place
            case ast.AugAssign(target=target):
                yield local(target), augmented(node), 0
            case ast.For(target=target, body=inner):
                yield local(target), None, 0
                yield from _assignments(inner)
            case ast.While(body=inner):
                yield from _assignments(inner)
            case ast.If(body=inner, orelse=other):
                yield from _assignments(inner)
                yield from _assignments(other)


def local(node: ast.expr) -> str:
    """The name of a local that is assigned to."""
    if not isinstance(node, ast.Name):
        raise outside(node)
    return node.id


def augmented(node: ast.AugAssign) -> ast.BinOp:
    """`x + e` for `x += e`."""
    read = ast.copy_location(ast.Name(local(node.target), ast.Load()), node)
    return ast.copy_location(ast.BinOp(read, node.op, node.value), node)
