"""Plain Python of the user as code of a stage: what it gives without asking is what Python gives, bit for bit."""

from __future__ import annotations

import ast
import linecache
import math
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cq
from cq.codegen.expressions.plain_python import native_form
from cq.codegen.expressions.plain_source import Unfit
from cq.codegen.values import Constants
from cq.codegen.writer import Writer, expr
from cq.lang.functions import Failure
from cq.lang.functions.user import UserFunction
from cq.runtime.base.host import CompiledHost
from cq.runtime.base.interpret import interpret_stage, stage_scope
from cq.runtime.base.kernel import callable_at, compile_stage

PRIMES, RATE, NEGATIVE_ZERO = 7, 0.25, -0.0
FUNCTIONS: list[UserFunction] = []


def native(function: Callable[..., Any]) -> UserFunction:
    """A function that kernels compile."""
    FUNCTIONS.append(cq.udf(function))
    return FUNCTIONS[-1]


@native
def arithmetic(a: int, b: int, x: float, y: float) -> float:
    n = a + b * 3 - -a
    return n * RATE + x / y - a / b + (x if a < b else y)


@native
def integers(a: int, b: int, x: float, y: float) -> int:
    """Division as Python has it, and bits."""
    q, r = a // b, a % b
    q, r = r, q
    return (q ^ r) + (a & 255) * ~b - (a >> (b & 7)) + (abs(a) << (b % PRIMES)) + a**3 + (+True) - (not b)


@native
def shifted(a: int, b: int, x: float, y: float) -> int:
    return (a << (b % 70 - 1)) | (b >> a)


@native
def collatz(a: int, b: int, x: float, y: float) -> int:
    n, steps = abs(a) % 1000 + 1, 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > 50:
            break
    return steps


def _horner(x: float, last: int) -> float:
    total = 0.0
    for i in range(last, -1, -1):
        if i == 3:
            continue
        total = total * x + i
    return total


@native
def polynomial(a: int, b: int, x: float, y: float) -> float:
    total = _horner(x, 5)
    for _ in range(3):
        for j in range(b % 4):
            total += _horner(y, j)
            if total > 1e6:
                return -total
    return total


@native
def choices(a: int, b: int, x: float, y: float) -> bool:
    seen = a < b <= 10 or x >= y != a or not (a and b)
    flag: bool = seen and x == y if a > 0 else a == True  # noqa: E712  a bool is a number in Python
    return flag ^ (x < a)


@native
def powers(a: int, b: int, x: float, y: float) -> float:
    return x**2 + y**0.5 + math.pow(x, y) + 2**y


@native
def functions(a: int, b: int, x: float, y: float) -> float:
    near = math.sin(x) * math.cos(y) + math.atan2(x, y) + math.tanh(x) + math.atan(y)
    if x > 0:
        near += math.log(x) + math.sqrt(x) + math.log2(x) + math.log10(x) + math.log1p(x)
    return near + math.exp(y) if math.isfinite(y) else math.fabs(x)


@native
def domains(a: int, b: int, x: float, y: float) -> float:
    return math.sqrt(x) + math.log(y) if a > b else math.asin(x / 30) + math.acos(y) + math.expm1(a) + math.cosh(b)


@native
def roundings(a: int, b: int, x: float, y: float) -> int:
    whole = round(x) + int(y) + math.floor(x) - math.ceil(y) + math.trunc(x)
    return min(whole, a, b) - max(a, b) + int(max(x, y) > min(x, y)) + round(b > a)


@native
def extremes(a: int, b: int, x: float, y: float) -> float:
    if math.isnan(x) or math.isinf(y):
        return NEGATIVE_ZERO
    return max(x, y, float(a)) - min(x, -y, math.pi)


@native
def refusing(a: int, b: int, x: float, y: float) -> int:
    if b == 2:
        raise ValueError(a)
    for n in range(a % 50, b % 200, a % 5):
        if n > 100:
            return n
    if x > y:
        return a
    return None  # type: ignore[return-value]


@cq.udf("SMALLINT", ["BIGINT", "BIGINT", "DOUBLE", "DOUBLE"])
def narrow(a: int, b: int, x: float, y: float) -> int:
    return a + b


@cq.udf("REAL", ["BIGINT", "BIGINT", "DOUBLE", "DOUBLE"])
def real(a: int, b: int, x: float, y: float) -> float:
    return x * a


FUNCTIONS += [narrow, real]
INTS = [0, 1, -1, 2, 3, 7, 10, -12, 62, 63, 255, 2**31, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.5, 2.5, 3.7, 1e-300, 1e300, 2.0**53, -(2.0**63), math.inf, -math.inf, math.nan]


def arguments() -> Iterator[tuple[int, int, float, float]]:
    rng = random.Random(8)
    for _ in range(400):
        yield rng.choice(INTS), rng.choice(INTS), rng.choice(FLOATS), rng.choice(FLOATS)
    for _ in range(400):
        yield rng.randint(-50, 50), rng.randint(-50, 50), rng.uniform(-20, 20), rng.uniform(-9, 9)


def written() -> tuple[str, dict[str, str], bytes, list[str]]:
    """One module with every function, and an entry for each: arguments from words, fault and result into words."""
    writer, constants, entries = Writer(), Constants(), []
    for number, function in enumerate(FUNCTIONS):
        form = native_form(function, constants, f"user{number}")
        for definition, signature in form.functions:
            writer.adopt(definition, signature)
        entries.append(f"entry{number}")
        with writer.function(entries[-1], ("constants", "words")):
            given = [expr("ld_i64(words, 0)"), expr("ld_i64(words, 1)")]
            given += [expr("ld_f64(words, 2)"), expr("ld_f64(words, 3)")]
            call = ast.Call(ast.Name(form.name, ast.Load()), [expr("constants"), *given], [])
            targets = ast.Tuple([ast.Name("fault", ast.Store()), ast.Name("made", ast.Store())], ast.Store())
            writer.here().append(ast.Assign([targets], call, lineno=0))
            kind = "f64" if function.returns.type.is_float else "i64"
            writer.code(f"st_{kind}(words, 4, made)\nreturn fault")
    return writer.finish(stage_scope()), dict(writer.signatures), constants.pack(), entries


def bits(value: Any) -> Any:
    return struct.pack("<d", value) if isinstance(value, float) and not math.isnan(value) else repr(value)


def meaning(function: UserFunction, given: tuple[Any, ...]) -> Any:
    """What the reference gives; None where that is an error."""
    try:
        return function.compute(*given)
    except Failure:
        return None


def test_what_is_not_asked_of_python_is_what_python_gives() -> None:
    module, signatures, constants, entries = written()
    host = CompiledHost()
    table, words = host.place(constants), host.place(bytes(48))
    addresses = compile_stage(module, signatures, entries).addresses
    for function, entry in zip(FUNCTIONS, entries, strict=True):
        run = callable_at(addresses[entry], "i64(i64, i64)")
        asked = 0
        for given in arguments():
            host.write(words, struct.pack("<qqdd", *given))
            fault = run(table, words)
            meant = meaning(function, given)
            if fault:
                asked += 1
                continue
            (found,) = struct.unpack("<d" if function.returns.type.is_float else "<q", host.read(words + 32, 8))
            found = bool(found) if isinstance(meant, bool) else found
            assert bits(found) == bits(meant), (function.name, given, found, meant)
        assert asked < 700, f"{function.name} leaves too much to Python"


def test_plain_values_are_not_asked_of_python() -> None:
    """Interpreted; and generated code runs over checked memory."""
    module, _, _, entries = written()
    made = interpret_stage(module)
    for function, entry in zip(FUNCTIONS, entries, strict=True):
        if function.name not in {"collatz", "polynomial", "choices", "roundings", "extremes", "real", "narrow"}:
            continue
        run = made[entry.replace("entry", "user") + "_0"]
        for given in list(arguments())[400:450]:
            fault, found = run(0, *given)
            meant = function.compute(*given)
            assert (fault, bits(bool(found) if isinstance(meant, bool) else found)) == (0, bits(meant))


# -- what is left to Python altogether ---------------------------------------------------------------------------------


def text(n: int) -> str:
    return str(n)


def sees(n: int | None) -> int:
    return n or 0


def mixed(n: int) -> float:
    x = 0
    if n > 1:
        x = 0.5
    return x


def late(n: int) -> int:
    if n > 1:
        x = 1
    return x


def either(n: int) -> float:
    return 1 if n else 0.5


def floored(n: int) -> float:
    return (n / 2) // 3


def powered(n: int) -> int:
    return 2**n


def recursive(n: int) -> int:
    return 1 if n < 2 else recursive(n - 1) * n


def listed(n: int) -> int:
    return len([n])


def tried(n: int) -> int:
    try:
        return n
    finally:
        pass


def large(n: int) -> int:
    return n % 2**70


def rounded(n: int) -> float:
    return round(n / 3, 2)


LEFT = [
    (text, "values of VARCHAR are Python objects|is int|no plain|calls"),
    (sees, "sees or returns NULL"),
    (mixed, "x in mixed() is int in one place and float in another"),
    (late, "x may have no value yet"),
    (either, "is int or float: write both alike"),
    (floored, "of floats there are"),
    (powered, "whether that is an int depends on the values"),
    (recursive, "recursive() calls itself"),
    (listed, "listed(): [n] is not a plain value"),
    (tried, "is not a plain statement"),
    (large, "powers of an int are written 1 to 64"),
    (rounded, "is not taken in this form"),
    (eval("lambda n: n", {}), "source of"),  # noqa: S307
]


@pytest.mark.parametrize(("function", "why"), LEFT, ids=[w for _, w in LEFT])
def test_what_is_not_plain_is_left_to_python(function: Callable[..., Any], why: str) -> None:
    made = cq.udf("BIGINT", ["BIGINT"], name="f")(function) if function.__name__ == "<lambda>" else cq.udf(function)
    with pytest.raises(Unfit) as found:
        native_form(made, Constants(), "user0")
    assert any(part in str(found.value) for part in why.split("|")), str(found.value)


def test_a_source_that_has_changed_is_not_what_runs(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text("def edited(n: int) -> int:\n    assert n != 3, n\n    return n + 1\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert native_form(cq.udf(names["edited"]), Constants(), "user0").functions
    file.write_text("def edited(n: int) -> int:\n    assert n != 3, n\n    return n + 2\n")
    linecache.checkcache(str(file))
    with pytest.raises(Unfit, match="has changed since it was loaded"):
        native_form(cq.udf(names["edited"]), Constants(), "user0")


def test_a_source_that_has_changed_is_not_what_runs_where_it_has_variables_of_an_outer_function(tmp_path: Path) -> None:
    file = tmp_path / "closure.py"
    file.write_text("def make(k):\n    def moved(n: int) -> int:\n        return n + k\n    return moved\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert native_form(cq.udf(names["make"](3)), Constants(), "user0").functions
    file.write_text("def make(k):\n    def moved(n: int) -> int:\n        return n - k\n    return moved\n")
    linecache.checkcache(str(file))
    with pytest.raises(Unfit, match="has changed since it was loaded"):
        native_form(cq.udf(names["make"](3)), Constants(), "user0")
