"""Plain Python of the user as functions of a stage: numbers and conditions, loops, calls of such functions and `math`.

Every value has one kind that is known here: int, float or bool. An int has 64 bits where Python's is unbounded, and
C gives NaN where Python raises; so whatever Python would do differently, and whatever it would raise, sets a fault, and
the function returns (1, anything): Python has to be called. (0, value) is Python's result, bit for bit. Loops end at a
fault. Everything else is refused with the reason (`Unfit`).

    def f(x: float, n: int) -> float:          def user4_0(constants, p0, p1):
        return x / n + 1                           fault = False
                                                   t1 = float(p1)
                                         becomes   t2 = t1 == 0.0
                                                   fault = fault | t2
                                                   t3 = f64_div(p0, t1)
                                                   t4 = t3 + 1.0
                                                   return (pick(fault, 1, 0), t4)
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from cq.codegen.expressions.plain_calls import BUILTINS, MATHS, MOST_DOUBLE, Known, Typed
from cq.codegen.expressions.plain_source import Unfit, source_of
from cq.codegen.values import Constants
from cq.codegen.writer import as_expr, expr
from cq.lang.functions.user import UserFunction
from cq.lang.types import INTEGER_BITS, DataType, Kind, integer_range
from cq.records import dataclass, field

MOST_FUNCTIONS = 50  # that one function may call, directly or indirectly
SIGNATURE = {"int": "i64", "bool": "i64", "float": "f64"}
ZERO = {"int": 0, "bool": False, "float": 0.0}


@dataclass(slots=True)
class StageFunction:
    """A user function as functions of a stage: definitions and signatures, and which of them is the entry point."""

    functions: list[tuple[ast.FunctionDef, str]]
    name: str


def native_form(function: UserFunction, constants: Constants, prefix: str) -> StageFunction:
    """The function for a kernel, its names beginning with `prefix`. Raises `Unfit`."""
    if function.sees_null or any(s.optional for s in function.results):
        raise Unfit("it sees or returns NULL")
    kinds = tuple(_kind_of(p.type) for p in function.parameters)
    program = _Program(prefix, constants.word(0))
    made = program.function(function.function, kinds, tuple(s.type for s in function.results), function.state)
    return StageFunction(program.functions, made.name)


def _kind_of(type_: DataType) -> str:
    if type_.kind in INTEGER_BITS:
        return "int"
    if type_.is_float:
        return "float"
    if type_.kind is Kind.BOOLEAN:
        return "bool"
    raise Unfit(f"values of {type_} are Python objects")


@dataclass(frozen=True, slots=True)
class _Made:
    """A function that was written: its name here, and the kind of its result."""

    name: str
    returns: str


class _Program:
    """All functions that a user function needs, each once for every combination of kinds it is called with."""

    def __init__(self, prefix: str, zero_word: int) -> None:
        self._prefix = prefix
        self.zero_word = zero_word
        self.functions: list[tuple[ast.FunctionDef, str]] = []
        self._made: dict[tuple[object, tuple[str, ...]], _Made | None] = {}

    def function(
        self, function: Any, kinds: tuple[str, ...], returns: tuple[DataType, ...] = (), state: int = 0
    ) -> _Made:
        """The function over arguments of these kinds. returns: the declared type of the whole.  state: this many of
        them are one tuple."""
        key = (function, kinds)
        if key not in self._made:
            if len(self._made) >= MOST_FUNCTIONS:
                raise Unfit(f"it calls more than {MOST_FUNCTIONS} functions")
            self._made[key] = None
            name = f"{self._prefix}_{len(self._made) - 1}"
            self._made[key] = _Body(self, function, kinds, returns, state).written(name)
        made = self._made[key]
        if made is None:
            raise Unfit(f"{function.__name__}() calls itself")
        return made


@dataclass(slots=True)
class _Body:
    """One function being written. sure: locals that have a value at the point the code has reached."""

    program: _Program
    function: Any
    given: tuple[str, ...]
    declared: tuple[DataType, ...]
    state: int = 0
    returns: list[str] = field(default_factory=list)  # the kinds of the results, once they are known
    tuples: dict[str, list[Typed]] = field(default_factory=dict)  # the user's name -> the fields
    names: dict[str, tuple[str, str]] = field(default_factory=dict)  # the user's name -> kind, name here
    sure: set[str] = field(default_factory=set)
    blocks: list[list[ast.stmt]] = field(default_factory=list)
    count: int = 0

    def written(self, name: str) -> _Made:
        source = source_of(self.function)
        arguments = [f"p{i}" for i in range(len(self.given))]
        names = [a.arg for a in (*source.args.posonlyargs, *source.args.args)]
        whole = names[: 1 if self.state else 0]
        if (
            len(names) - len(whole) != len(arguments) - self.state
            or source.args.vararg
            or source.args.kwarg
            or source.args.kwonlyargs
        ):
            raise self.unfit(source, "its parameters are not all given by place")
        self.returns = [_kind_of(t) for t in self.declared]
        body: list[ast.stmt] = []
        with self.block(body):
            self.set("fault", ast.Constant(False))
            taken = [
                (k, expr("P != 0" if k == "bool" else "P", P=p)) for k, p in zip(self.given, arguments, strict=True)
            ]
            self.tuples = {w: [(k, self.let(v)) for k, v in taken[: self.state]] for w in whole}
            for user, value in zip(names[len(whole) :], taken[self.state :], strict=True):
                self.assign(user, value)
            if self.statements(source.body):
                self.leave()
        spec = [ast.arg(a) for a in ("constants", *arguments)]
        given = ast.arguments(posonlyargs=[], args=spec, kwonlyargs=[], kw_defaults=[], defaults=[])
        made = ast.FunctionDef(name, given, body, decorator_list=[], lineno=0)
        returns = self.returns or ["int"]
        given_kinds = ", ".join(["i64", *(SIGNATURE[k] for k in self.given)])
        self.program.functions.append((made, f"(i64, {', '.join(SIGNATURE[k] for k in returns)})({given_kinds})"))
        return _Made(name, returns[0])

    def unfit(self, node: ast.AST, why: str) -> Unfit:
        line = self.function.__code__.co_firstlineno + getattr(node, "lineno", 1) - 1
        return Unfit(f"line {line} of {self.function.__name__}(): {why}")

    # -- writing

    @contextmanager
    def block(self, body: list[ast.stmt]) -> Iterator[None]:
        self.blocks.append(body)
        yield
        self.blocks.pop()

    def put(self, statement: ast.stmt) -> None:
        self.blocks[-1].append(statement)

    def set(self, name: str, value: ast.expr) -> None:
        self.put(ast.Assign([ast.Name(name, ast.Store())], value, lineno=0))

    def fresh(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def let(self, value: ast.expr) -> ast.expr:
        """Assign the value to a local."""
        name = self.fresh("t")
        self.set(name, value)
        return ast.Name(name, ast.Load())

    def fault_if(self, condition: ast.expr) -> ast.expr:
        """Leave it to Python where the condition holds; the condition in a local."""
        met = self.let(condition)
        self.set("fault", expr("fault | C", C=met))
        return met

    def leave(self) -> bool:
        """Leave it to Python, at once; nothing follows."""
        zeros = [as_expr(0.0 if kind == "float" else 0) for kind in self.returns or ["int"]]
        self.put(ast.Return(ast.Tuple([ast.Constant(1), *zeros], ast.Load())))
        return False

    # -- names

    def assign(self, user: str, value: Typed) -> None:
        if user in self.tuples:
            raise Unfit(f"{user} in {self.function.__name__}() is a state, which it assigns again")
        kind, made = value
        known = self.names.setdefault(user, (kind, self.fresh("v")))
        if known[0] != kind:
            raise Unfit(f"{user} in {self.function.__name__}() is {known[0]} in one place and {kind} in another")
        self.set(known[1], made)
        self.sure.add(user)

    def resolved(self, node: ast.expr) -> Any:
        """The meaning of a name that is not a local."""
        match node:
            case ast.Name(id=name) if name not in self.function.__code__.co_varnames:
                cells = inspect.getclosurevars(self.function).nonlocals
                for scope in (cells, self.function.__globals__, vars(builtins)):
                    if name in scope:
                        return scope[name]
            case ast.Attribute(value=ast.Name() as module, attr=attribute) if self.resolved(module) is math:
                return getattr(math, attribute, None)
        raise self.unfit(node, f"{ast.unparse(node)} is none of its numbers, functions, or of math")

    # -- statements: return whether the next one is reached

    def statements(self, body: Sequence[ast.stmt]) -> bool:
        return all(self.statement(s) for s in body)

    def statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Raise() | ast.Return(value=None | ast.Constant(value=None)):
                return self.leave()
            case ast.Return(value=ast.expr() as value):
                tuple_ = isinstance(value, ast.Tuple) or (isinstance(value, ast.Name) and value.id in self.tuples)
                self.give(node, self.several(value) if tuple_ else [self.value(value)])
                return False
            case ast.Assert(test=test):
                self.branch(self.truth(self.value(test)), lambda: True, self.leave)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.assign(name, self.value(value))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                self.assign_all(node, targets, self.several(value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.assign(name, self.value(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                read = ast.copy_location(ast.Name(name, ast.Load()), target)
                self.assign(name, self.value(ast.copy_location(ast.BinOp(read, op, value), node)))
            case ast.If(test=test, body=body, orelse=other):
                met = self.truth(self.value(test))
                return self.branch(met, lambda: self.statements(body), lambda: self.statements(other))
            case ast.While(test=test, body=body, orelse=[]):
                self.loop(lambda: self.truth(self.value(test)), lambda: self.statements(body))
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=called, args=given, keywords=[]), orelse=[]) if (
                1 <= len(given) <= 3 and isinstance(called, ast.Name) and self.resolved(called) is range
            ):
                self.count_through(name, given, body=node.body)
            case ast.Break():
                self.put(ast.Break())
                return False
            case ast.Continue():
                self.put(ast.Continue())
                return False
            case _:
                raise self.unfit(node, f"{ast.unparse(node).splitlines()[0]} is not a plain statement over numbers")
        return True

    def several(self, node: ast.expr) -> list[Typed]:
        """The values of a tuple: a tuple display, or the state."""
        match node:
            case ast.Tuple(elts=elements):
                return [self.value(e) for e in elements]
            case ast.Name(id=name) if name in self.tuples:
                return self.tuples[name]
        raise self.unfit(node, f"{ast.unparse(node)} is not a tuple whose values are known")

    def assign_all(self, node: ast.stmt, targets: Sequence[ast.expr], values: Sequence[Typed]) -> None:
        if len(targets) != len(values) or not all(isinstance(t, ast.Name) for t in targets):
            raise self.unfit(node, "only names are assigned to")
        made = [(kind, self.let(v)) for kind, v in values]
        for target, value in zip(targets, made, strict=True):
            assert isinstance(target, ast.Name)
            self.assign(target.id, value)

    def branch(self, condition: ast.expr, yes: Callable[[], bool], no: Callable[[], bool]) -> bool:
        """Write both sides; a local is sure afterwards if it is sure at the end of every side that goes on."""
        before, ways, sides = set(self.sure), [], []
        for side in (yes, no):
            body: list[ast.stmt] = []
            self.sure = set(before)
            with self.block(body):
                if side():
                    ways.append(self.sure)
            sides.append(body)
        self.put(ast.If(condition, sides[0] or [ast.Pass()], sides[1]))
        self.sure = set.intersection(*ways) if ways else before
        return bool(ways)

    def loop(self, condition: Callable[[], ast.expr], body: Callable[[], object]) -> None:
        """Loop while the condition holds and there is no fault."""
        inside: list[ast.stmt] = []
        before = set(self.sure)
        with self.block(inside):
            go = condition()
            self.put(ast.If(expr("fault or not GO", GO=go), [ast.Break()], []))
            body()
        self.put(ast.While(ast.Constant(True), inside, []))
        self.sure = before

    def count_through(self, name: str, given: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """`for name in range(…)`: the counter is a local of its own, as in Python."""
        numbers = [self.let(self.integer(g, self.value(g))) for g in given]
        for number in numbers:
            self.fault_if(expr("N > MOST or N < LEAST", N=number, MOST=2**61, LEAST=-(2**61)))
        first = numbers[0] if len(numbers) > 1 else ast.Constant(0)
        bound = numbers[min(len(numbers) - 1, 1)]
        step = numbers[2] if len(numbers) == 3 else ast.Constant(1)
        self.fault_if(expr("S == 0", S=step))
        at = self.fresh("at")
        self.set(at, first)

        def more() -> ast.expr:
            return self.let(expr("S > 0 and AT < B or S < 0 and AT > B", S=step, AT=at, B=bound))

        def turn() -> None:
            self.assign(name, ("int", expr("AT", AT=at)))
            self.set(at, expr("AT + S", AT=at, S=step))
            self.statements(body)

        self.loop(more, turn)

    def give(self, node: ast.stmt, values: Sequence[Typed]) -> None:
        """`return values`."""
        self.returns = self.returns or [kind for kind, _ in values[:1]]
        if len(values) != len(self.returns):
            raise self.unfit(node, f"it returns {len(values)} values, and should return {len(self.returns)}")
        declared = self.declared or (None,) * len(values)
        made = [self.given_back(node, *each) for each in zip(values, self.returns, declared, strict=True)]
        self.put(ast.Return(ast.Tuple([expr("pick(fault, 1, 0)"), *made], ast.Load())))

    def given_back(self, node: ast.stmt, value: Typed, wanted: str, declared: DataType | None) -> ast.expr:
        kind, made = value
        if (kind, wanted) == ("int", "float") and declared is not None:
            made = self.let(expr("i64_to_f64(V)", V=made))
        elif kind != wanted:
            raise self.unfit(node, f"it returns {kind}, and should return {wanted}")
        if declared is not None and declared.kind in INTEGER_BITS:
            least, most = integer_range(declared)
            if most < 2**63 - 1:
                self.fault_if(expr("V < LEAST or V > MOST", V=made, LEAST=least, MOST=most))
        if declared is not None and declared.kind is Kind.REAL:
            made = self.let(expr("f32_round(V)", V=made))
        return expr("pick(V, 1, 0)", V=made) if kind == "bool" else made

    # -- values

    def value(self, node: ast.expr) -> Typed:
        match node:
            case ast.Constant(value=value):
                return self.constant(node, value)
            case ast.Name(id=name) if name in self.function.__code__.co_varnames:
                if name not in self.sure:
                    raise self.unfit(node, f"{name} may have no value yet")
                kind, own = self.names[name]
                return kind, ast.Name(own, ast.Load())
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as place)) if (
                name in self.tuples
            ):
                if not 0 <= place < len(self.tuples[name]):
                    raise self.unfit(node, f"{ast.unparse(node)} is not a field of the state")
                return self.tuples[name][place]
            case ast.Name() | ast.Attribute():
                return self.constant(node, self.resolved(node))
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(node, op, self.value(left), self.value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(node, op, self.value(operand))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self.compared(node, left, ops, others)
            case ast.BoolOp(op=op, values=values):
                return self.either(node, isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=yes, orelse=no):
                met = self.truth(self.value(test))
                return self.choice(node, met, lambda: self.value(yes), lambda: self.value(no))
            case ast.Call(func=called, args=given, keywords=[]):
                return self.call(node, self.resolved(called), [self.value(g) for g in given])
        raise self.unfit(node, f"{ast.unparse(node)} is not a plain value")

    def constant(self, node: ast.expr, value: Any) -> Typed:
        if type(value) is int and -(2**63) <= value < 2**63:
            return "int", as_expr(value)
        if type(value) is bool:
            return "bool", ast.Constant(value)
        if type(value) is float:
            if math.isfinite(value) and not (value == 0.0 and math.copysign(1.0, value) < 0.0):
                return "float", ast.Constant(value) if value >= 0.0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
            return "float", self.let(expr("bits_f64(BITS)", BITS=_bits(value)))
        raise self.unfit(node, f"{ast.unparse(node)} is not a number of 64 bits")

    def truth(self, value: Typed) -> ast.expr:
        kind, made = value
        if kind == "bool":
            return made
        return self.let(expr("V != ZERO", V=made, ZERO=ZERO[kind]))

    def integer(self, node: ast.expr, value: Typed) -> ast.expr:
        kind, made = value
        if kind == "float":
            raise self.unfit(node, f"{ast.unparse(node)} is not an int")
        return self.let(expr("pick(V, 1, 0)", V=made)) if kind == "bool" else made

    def real(self, value: Typed) -> ast.expr:
        kind, made = value
        if kind == "float":
            return made
        return self.let(expr("i64_to_f64(V)", V=expr("pick(V, 1, 0)", V=made) if kind == "bool" else made))

    def exact_real(self, value: Typed) -> ast.expr:
        """A double that equals the number: an int with too many digits for that is left to Python."""
        if value[0] == "int":
            self.fault_if(expr("V > MOST or V < LEAST", V=value[1], MOST=2**53, LEAST=-(2**53)))
        return self.real(value)

    def binary(self, node: ast.expr, op: ast.operator, left: Typed, right: Typed) -> Typed:
        if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and left[0] == right[0] == "bool":
            return "bool", self.let(ast.BinOp(left[1], op, right[1]))
        if isinstance(op, ast.Div):
            a, b = self.exact_real(left), self.exact_real(right)
            self.fault_if(expr("B == 0.0", B=b))
            return "float", self.let(expr("f64_div(A, B)", A=a, B=b))
        if "float" in (left[0], right[0]):
            return self.of_floats(node, op, self.real(left), self.real(right))
        return self.of_integers(node, op, self.integer(node, left), self.integer(node, right))

    def of_floats(self, node: ast.expr, op: ast.operator, a: ast.expr, b: ast.expr) -> Typed:
        if isinstance(op, ast.Add | ast.Sub | ast.Mult):
            return "float", self.let(ast.BinOp(a, op, b))
        if isinstance(op, ast.Pow):
            return "float", self.finite(self.power(a, b))
        raise self.unfit(node, f"{ast.unparse(node)}: of floats there are +, -, *, / and **")

    def power(self, a: ast.expr, b: ast.expr) -> ast.expr:
        """`pow` of the C library, hidden from LLVM, which would turn a squared into a * a: another double in one case
        of a thousand."""
        template = "bits_f64(f64_bits(X) ^ ld_i64(constants, W))"
        hidden = [self.let(expr(template, X=x, W=self.program.zero_word)) for x in (a, b)]
        return expr("f64_pow(A, B)", A=hidden[0], B=hidden[1])

    def finite(self, made: ast.expr) -> ast.expr:
        """A double that is finite; otherwise Python decides whether it is a value or an exception."""
        value = self.let(made)
        self.fault_if(expr("not f64_abs(V) <= MOST", V=value, MOST=MOST_DOUBLE))
        return value

    def of_integers(self, node: ast.expr, op: ast.operator, a: ast.expr, b: ast.expr) -> Typed:
        match op:
            case ast.Add() | ast.Sub() | ast.Mult():
                name = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}[type(op)]
                self.fault_if(expr(f"{name}_ovf(A, B)", A=a, B=b))
                made = expr(f"w{name}(A, B)", A=a, B=b)
            case ast.FloorDiv() | ast.Mod():
                bad = self.fault_if(expr("B == 0 or B == -1 and A == LEAST", A=a, B=b, LEAST=-(2**63)))
                safe = self.let(expr("pick(BAD, 1, B)", BAD=bad, B=b))
                made = expr(f"{'floordiv' if isinstance(op, ast.FloorDiv) else 'floormod'}(A, B)", A=a, B=safe)
            case ast.BitAnd() | ast.BitOr() | ast.BitXor():
                made = ast.BinOp(a, op, b)
            case ast.LShift():
                bad = self.fault_if(expr("B < 0 or B > 62", B=b))
                by = self.let(expr("pick(BAD, 0, B)", BAD=bad, B=b))
                made = self.let(expr("shl(A, B)", A=a, B=by))
                self.fault_if(expr("(M >> B) != A", M=made, A=a, B=by))
            case ast.RShift():
                bad = self.fault_if(expr("B < 0", B=b))
                made = expr("A >> min_i64(pick(BAD, 0, B), 63)", A=a, BAD=bad, B=b)
            case ast.Pow() if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
                times = node.right.value
                if type(times) is not int or not 1 <= times <= 64:
                    raise self.unfit(node, f"{ast.unparse(node)}: powers of an int are written 1 to 64")
                made = a
                for _ in range(times - 1):
                    _, made = self.of_integers(node, ast.Mult(), made, a)
            case _:
                raise self.unfit(node, f"{ast.unparse(node)}: whether that is an int depends on the values")
        return "int", self.let(made)

    def unary(self, node: ast.expr, op: ast.unaryop, value: Typed) -> Typed:
        match op:
            case ast.Not():
                return "bool", self.let(expr("not V", V=self.truth(value)))
            case ast.USub() if value[0] == "float":
                return "float", self.let(ast.UnaryOp(ast.USub(), value[1]))
            case ast.UAdd() if value[0] == "float":
                return value
            case ast.USub():
                return self.of_integers(node, ast.Sub(), ast.Constant(0), self.integer(node, value))
            case ast.UAdd():
                return "int", self.integer(node, value)
            case _:
                return "int", self.let(expr("~V", V=self.integer(node, value)))

    def compared(self, node: ast.expr, left: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr]) -> Typed:
        """One comparison, or a chain of them, each evaluated only if those before it hold."""
        if not all(isinstance(o, ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE) for o in ops):
            raise self.unfit(node, f"{ast.unparse(node)} is not a comparison of numbers")
        a, b = self.value(left), self.value(others[0])
        met = self.comparison(ops[0], a, b)
        for op, other in zip(ops[1:], others[1:], strict=True):
            before = b

            def further(op: ast.cmpop = op, other: ast.expr = other, before: Typed = before) -> Typed:
                nonlocal b
                b = self.value(other)
                return "bool", self.comparison(op, before, b)

            _, met = self.choice(node, met, further, lambda: ("bool", ast.Constant(False)))
        return "bool", met

    def comparison(self, op: ast.cmpop, a: Typed, b: Typed) -> ast.expr:
        if "float" in (a[0], b[0]):
            pair = [self.exact_real(a), self.exact_real(b)]
        else:
            pair = [expr("pick(V, 1, 0)", V=v) if kind == "bool" else v for kind, v in (a, b)]
        return self.let(ast.Compare(pair[0], [op], [pair[1]]))

    def either(self, node: ast.expr, every: bool, values: Sequence[ast.expr]) -> Typed:
        """`and` and `or`: the first value that decides, or the last."""
        made = self.value(values[0])
        for following in values[1:]:
            kept = made

            def further(following: ast.expr = following) -> Typed:
                return self.value(following)

            def same(kept: Typed = kept) -> Typed:
                return kept

            met = self.truth(kept)
            made = self.choice(node, met, further, same) if every else self.choice(node, met, same, further)
        return made

    def choice(self, node: ast.expr, condition: ast.expr, yes: Callable[[], Typed], no: Callable[[], Typed]) -> Typed:
        """One of two values; only the chosen one is computed."""
        result = self.fresh("t")
        kinds: list[str] = []

        def side(value: Callable[[], Typed]) -> bool:
            kind, made = value()
            kinds.append(kind)
            self.set(result, made)
            return True

        self.branch(condition, lambda: side(yes), lambda: side(no))
        if kinds[0] != kinds[1]:
            raise self.unfit(node, f"{ast.unparse(node)} is {kinds[0]} or {kinds[1]}: write both alike")
        return kinds[0], ast.Name(result, ast.Load())

    def call(self, node: ast.expr, target: Any, given: list[Typed]) -> Typed:
        try:
            known: Known | None = BUILTINS.get(target) or MATHS.get(target)
        except TypeError:
            known = None
        if known is not None:
            made = known(self, given)
            if made is None:
                raise self.unfit(node, f"{ast.unparse(node)} is not taken in this form")
            return made
        plain = target.function if isinstance(target, UserFunction) else target
        if not isinstance(plain, FunctionType):
            raise self.unfit(node, f"{ast.unparse(node)} calls what is not a plain function")
        callee = self.program.function(plain, tuple(kind for kind, _ in given))
        fault, value = self.fresh("t"), self.fresh("t")
        passed = [expr("pick(V, 1, 0)", V=v) if kind == "bool" else v for kind, v in given]
        called = ast.Call(ast.Name(callee.name, ast.Load()), [ast.Name("constants", ast.Load()), *passed], [])
        targets = ast.Tuple([ast.Name(fault, ast.Store()), ast.Name(value, ast.Store())], ast.Store())
        self.set(fault, ast.Constant(0))
        self.set(value, as_expr(0.0 if callee.returns == "float" else 0))
        known_so_far = ast.Assign([targets], called, lineno=0)  # calling with made-up values might never return
        self.put(ast.If(expr("not fault"), [known_so_far], []))
        self.fault_if(expr("F != 0", F=fault))
        result = expr("V", V=value)
        return callee.returns, self.let(expr("V != 0", V=value)) if callee.returns == "bool" else result


def _bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])
