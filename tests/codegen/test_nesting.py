"""How deep generated code nests does not depend on how long or how deep the expressions of a query are."""

from __future__ import annotations

import ast
import time

import pytest
from cases import Prepared, Way

from cq.codegen.nesting import MOST_DEPTH, flat
from cq.compiler.passes import compile

STREAM = "CREATE STREAM t (x BIGINT, s VARCHAR) WITH (connector = 'memory');\n"
WAYS = (Way(0, 3, interpreted=True), Way(0, 4096), Way(2, 3))


def agrees(text: str, rows: list[tuple[object, ...]], ways: tuple[Way, ...] = WAYS) -> None:
    prepared = Prepared(STREAM + text)
    prepared.give({"t": rows})
    wanted = prepared.reference()
    for way in ways:
        assert prepared.native(way) == wanted, str(way)


def case_of(count: int) -> str:
    whens = " ".join(f"WHEN x = {n} THEN {n * 7}" for n in range(count))
    return f"CASE {whens} ELSE -1 END"


def test_case_has_as_many_branches_as_one_likes() -> None:
    agrees(f"SELECT {case_of(98)} AS v FROM t;", [(n, "a") for n in (-1, 0, 7, 8, 9, 97, 98, None)])


@pytest.mark.optimised
def test_four_hundred_branches_compile_in_seconds() -> None:
    """8 s on quiet cores, 12 s while others use their caches; what this guards against takes minutes."""
    rows: list[tuple[object, ...]] = [(n, "a") for n in (-1, 0, 7, 8, 9, 399, 400, None)]
    text = f"SELECT {case_of(400)} + {time.time_ns() % 1000} AS v FROM t;"  # never compiled before
    agrees(text, rows, WAYS[:1])
    began = time.process_time()  # of this process: what others do on these cores does not count
    agrees(text, rows, WAYS[1:])
    assert time.process_time() - began < 30


@pytest.mark.parametrize("count", [98, 400])
def test_coalesce_has_as_many_arguments_as_one_likes(count: int) -> None:
    args = ", ".join(f"NULLIF({n}, x) + NULLIF(5, {n % 9})" if n < 9 else f"NULLIF(x, {n})" for n in range(count))
    rows: list[tuple[object, ...]] = [(n, "a") for n in (-1, 0, 7, 8, 9, count - 1, count, None)]
    agrees(f"SELECT COALESCE({args}, -3) AS w FROM t;", rows, WAYS[: 2 if count < 100 else 1])


def test_branches_of_text_and_null_are_those_of_the_reference() -> None:
    whens = " ".join(f"WHEN x = {n} THEN {'NULL' if n % 3 == 0 else f's || {n!r}::VARCHAR'}" for n in range(40))
    agrees(f"SELECT CASE {whens} END AS v FROM t;", [(n, "é" if n else None) for n in (0, 1, 2, 15, 16, 17, 39, 40)])


@pytest.mark.parametrize("bad", [0, 7, 8, 9, 31, 38])
def test_only_branches_before_the_chosen_one_are_evaluated(bad: int) -> None:
    """The condition of branch `bad` divides by zero for x = 1000: rows that stop earlier do not fail."""
    whens = " ".join(f"WHEN {'100 / (x - 1000)' if n == bad else 'x'} = {n} THEN {n}" for n in range(40))
    agrees(f"SELECT CASE {whens} ELSE 5 / (x - 2000) END AS v FROM t;", [(n, "") for n in (0, 5, bad - 1, 39, 1000, 1)])
    agrees(f"SELECT CASE {whens} ELSE 5 / (x - 2000) END AS v FROM t;", [(39, ""), (2000, ""), (1000, "")])


@pytest.mark.parametrize("depth", [30, 60])
def test_case_nests_as_deep_as_a_statement_may(depth: int) -> None:
    inner = "x"
    for n in range(depth):
        inner = f"CASE WHEN x > {n} THEN {inner} ELSE 1000 / (x - {n}) END"
    agrees(f"SELECT {inner} AS v FROM t;", [(n, "") for n in (depth + 5, depth - 1, 3, 2, 1, None, 49, 0)])


@pytest.mark.parametrize("depth", [50, 120])
def test_and_and_or_nest_as_deep_as_a_statement_may(depth: int) -> None:
    inner = "x > 3"
    for n in range(depth):
        inner = f"(x <> {n * 3} {'AND' if n % 2 else 'OR'} {inner})"
    agrees(f"SELECT {inner} AS v FROM t;", [(n, "") for n in (0, 3, 6, 9, None, 150, 357)])


# ------------------------------------------------------------------------------------- the pass alone


def run(source: str, **given: int) -> object:
    names: dict[str, object] = {}
    exec(source, names)
    return names["f"](**given)  # type: ignore[operator]


def depth_of(source: str) -> int:
    return max((len(line) - len(line.lstrip())) // 4 for line in source.splitlines())


def nest(depth: int, leaf: str, otherwise: str, tail: str) -> str:
    """`if`s inside one another, each with an else and a statement behind it."""
    lines = ["def f(x):", "    y = 0"]
    for n in range(depth):
        pad = "    " * (n + 1)
        lines.append(f"{pad}if x > {n}:")
    lines += ["    " * (depth + 1) + part for part in leaf.split(";")]
    for n in reversed(range(depth)):
        pad = "    " * (n + 1)
        lines += [f"{pad}else:", f"{pad}    {otherwise.format(n)}", f"{pad}{tail.format(n)}"]
    return "\n".join([*lines, "    return y"])


@pytest.mark.parametrize("otherwise", ["y += 100 * {}", "return -{}"])
@pytest.mark.parametrize("tail", ["y = y * 3 + {}", "y += 1 if x != {} else 7"])
def test_a_flattened_function_computes_what_it_did(otherwise: str, tail: str) -> None:
    """Python itself takes 20 levels of loops, and 99 of indentation: the original has fewer, the limit is lowered."""
    source = nest(30, "y += 5;x += 1", otherwise, tail)
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    names = iter(f"flag{n}" for n in range(10_000))
    function.body = flat(function.body, lambda: next(names), most=10)
    made = ast.unparse(ast.fix_missing_locations(ast.Module([function], [])))
    assert depth_of(made) <= 12 < depth_of(source)
    for x in (-1, 0, 1, 5, 19, 20, 28, 29, 30, 31):
        assert run(made, x=x) == run(source, x=x), x


def test_loops_inside_keep_their_breaks() -> None:
    loop = "while x < 90:;    x += 7;    if x > 50:;        y += x;        if x > 70:;            break"
    source = nest(20, loop, "y -= {}", "y += {}")
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    names = iter(f"flag{n}" for n in range(10_000))
    function.body = flat(function.body, lambda: next(names), most=6)
    made = ast.unparse(ast.fix_missing_locations(ast.Module([function], [])))
    assert depth_of(made) <= 9
    for x in (0, 10, 19, 20, 21, 60, 100):
        assert run(made, x=x) == run(source, x=x), x


def test_shallow_code_stays_as_it_is() -> None:
    body = ast.parse(nest(MOST_DEPTH - 2, "y = 1", "y = {}", "y += {}")).body
    assert flat(body, lambda: "never") is body


def test_shipped_depth_is_that_of_a_person() -> None:
    code = compile(STREAM + f"SELECT {case_of(6)} AS v FROM t;").explain("code")
    assert "undecided" not in code
