"""The module of a stage is printed as Python reads it, and nothing is printed that a kernel is not made of."""

from __future__ import annotations

import ast
import random
from itertools import product

import pytest

from cq.codegen import printing
from cq.codegen.printing import GeneratedTooMuch, Printer

OPERATORS = [
    ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor, ast.RShift,
]  # fmt: skip
SIGNS = [ast.USub, ast.Invert, ast.Not]
COMPARISONS = [ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE]


def printed(body: str, callable_: tuple[str, ...] = ("f", "range")) -> str:
    (function,) = ast.parse("def g(a, b):\n" + "".join(f"    {line}\n" for line in body.splitlines())).body
    assert isinstance(function, ast.FunctionDef)
    return Printer(callable_).module([function])


def of_expression(node: ast.expr) -> str:
    function = ast.FunctionDef(
        "g", ast.arguments([], [ast.arg("a"), ast.arg("b")], None, [], [], None, []), [ast.Return(node)], []
    )
    return Printer(("f",)).module([function]).removeprefix("def g(a, b):\n    return ").strip()


def expression(r: random.Random, depth: int) -> ast.expr:
    if depth == 0:
        return r.choice([ast.Name("a", ast.Load()), ast.Name("b", ast.Load()), ast.Constant(7), ast.Constant(0.5)])
    inner = [expression(r, r.randrange(depth)) for _ in range(3)]
    match r.randrange(7):
        case 0 | 1:
            return ast.BinOp(inner[0], r.choice(OPERATORS)(), inner[1])
        case 2:
            return ast.UnaryOp(r.choice(SIGNS)(), inner[0])
        case 3:
            return ast.BoolOp(r.choice([ast.And, ast.Or])(), inner[: r.choice([2, 3])])
        case 4:
            many = r.choice([1, 2])
            return ast.Compare(inner[0], [r.choice(COMPARISONS)() for _ in range(many)], inner[1 : 1 + many])
        case 5:
            return ast.IfExp(inner[0], inner[1], inner[2])
        case _:
            return ast.Call(ast.Name("f", ast.Load()), inner[: r.randrange(4)], [])


@pytest.mark.parametrize("seed", range(20))
def test_what_is_printed_is_read_as_the_same_expression(seed: int) -> None:
    r = random.Random(seed)
    for _ in range(200):
        node = expression(r, 4)
        assert ast.dump(ast.parse(of_expression(node), mode="eval").body) == ast.dump(node), ast.unparse(node)


def test_parentheses_stand_where_they_are_needed_only() -> None:
    for outer, inner in product(("a + {}", "a * {}", "a & {}", "not {}", "-{}"), ("b - 7", "b * 7", "b < 7", "~b")):
        text = outer.format(f"({inner})")
        node = ast.parse(text, mode="eval").body
        bare = outer.format(inner)
        needed = ast.dump(ast.parse(bare, mode="eval").body) != ast.dump(node)
        assert of_expression(node) == (text if needed else bare)


BODY = """x = 1
y, z = (a, b)
x += f(a)
if a < b:
    x = 2
elif a == b:
    for i in range(a):
        if i > 3:
            break
        else:
            continue
else:
    while True:
        pass
f(x)
return x if y else z"""


def test_statements_are_printed_as_they_are_written() -> None:
    assert printed(BODY) == "def g(a, b):\n" + "".join(f"    {line}\n" for line in BODY.splitlines())


def test_infinity_is_a_literal() -> None:
    assert of_expression(ast.UnaryOp(ast.USub(), ast.Constant(float("inf")))) == "-1e309"


@pytest.mark.parametrize(
    "body",
    [
        "import os", "a.b = 1", "return a.b", "return a[0]", "return [a]", "return 'text'", "return b'text'",
        "return None", "return lambda: a", "return (yield)", "global a", "del a", "raise a", "assert a",
        "with a: pass", "try: pass\nfinally: pass", "return a / b", "return a // b", "return a ** b", "return a << b",
        "return +a", "return a is b", "return a in b", "a /= b", "return f(x=a)", "return f(*a)", "return f(a)(b)",
        "return open(a)", "return (a,)", "a[0] = 1", "(a, b.c) = f(a)", "while a:\n    pass\nelse:\n    pass",
        "for i in range(a):\n    pass\nelse:\n    pass", "def h():\n    pass", "class h:\n    pass", "f = 1",
        "return (a := b)", "return {a}", "return f'{a}'", "return 9223372036854775808", "A = 1", "__x__ = c",
        "match a:\n    case 1: pass", "return ...", "async def h(): pass",
    ],
)  # fmt: skip
def test_anything_else_is_refused(body: str) -> None:
    with pytest.raises(AssertionError):
        printed(body)


@pytest.mark.parametrize(
    "head", ["@f\ndef g():", "def g(a=1):", "def g(*a):", "def g(**a):", "def g(a, /):", "def g(*, a):"]
)
def test_functions_are_plain(head: str) -> None:
    with pytest.raises(AssertionError):
        Printer(("f",)).module([f for f in ast.parse(f"{head}\n    pass").body if isinstance(f, ast.FunctionDef)])


def test_more_than_there_is_time_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "MOST_NODES", 20)
    assert printed("return f(a)")
    with pytest.raises(GeneratedTooMuch):
        printed("return " + " + ".join("a" * 30))
