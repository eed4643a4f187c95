"""The examples of the registries, parsed and bound: they serve as documentation and, on every backend, as tests.

`expression = value` or `expression = error CODE` for scalar functions and casts; `sum over 1, 2, null = 3`, `corr over
(1, 2), (2, 4) = 1e0`, and `over nothing`, for aggregates.

`expression = value` or `expression = error CODE` for scalar functions and casts; `sum over 1, 2, null = 3`, `corr over
(1, 2), (2, 4) = 1e0`, and `over nothing`, for aggregates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, product
from typing import Any

from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.lang import aggregates, casts, functions
from cq.lang.expressions import Expr
from cq.lang.functions import Signature
from cq.lang.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, NULL, TIMESTAMP, VARCHAR, DataType, Kind, common_type
from cq.planner.binding.binder import bind
from cq.planner.operators import Project
from cq.records import dataclass
from cq.reference.evaluate import evaluate

STREAM = "CREATE STREAM one (x BIGINT) WITH (connector = 'memory');\n"

ANY = (BIGINT, BOOLEAN, VARCHAR, INTEGER, DOUBLE, DATE, TIMESTAMP)
"""The types that NULL may have in an example, tried in this order."""


@dataclass(frozen=True)
class Example:
    """One line of an entry: `expected` is the text of a value, or empty with `error` set to a code."""

    owner: str
    text: str
    expression: str
    expected: str
    error: str

    def __str__(self) -> str:
        return f"{self.owner}: {self.text}"


def read(owner: str, text: str) -> Example:
    expression, _, value = text.rpartition(" = ")
    code = value.removeprefix("error ") if value.startswith("error ") else ""
    return Example(owner, text, expression, "" if code else value, code)


def scalar_examples() -> list[Example]:
    return [read(e.name, text) for e in functions.all_scalars().values() for text in e.examples]


def cast_examples() -> list[Example]:
    return [read("cast", text) for text in casts.EXAMPLES]


def aggregate_examples() -> list[Example]:
    return [read(e.name, text) for e in aggregates.all_aggregates().values() for text in e.examples]


def values_of(example: Example) -> list[str]:
    """The values that an aggregate example aggregates, as texts."""
    inside = example.expression.partition(" over ")[2]
    return [] if inside == "nothing" else pieces(inside)


def pieces(text: str) -> list[str]:
    """The parts of a text between commas that are outside of parentheses."""
    out, depth = [""], 0
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [v.strip() for v in out]


def options_of(example: Example) -> list[Any]:
    """The constants after the arguments of the example's aggregate: `quantile_cont(0.5) over …`."""
    entry, given = aggregates.lookup(example.owner), example.expression.partition(" over ")[0].partition("(")[2]
    assert entry is not None
    if not entry.options:
        return []
    texts = pieces(given[:-1]) if given else ["0.5"]  # without values any type will do
    casts = (f"CAST({t} AS {o.type})" for t, o in zip(texts, entry.options, strict=True))
    return [evaluate(e) for e in bound(*casts)]


def arguments_of(example: Example) -> tuple[Signature, list[tuple[Any, ...]]]:
    """The call of the aggregate for an example's rows, with the first types that accept them all, and the arguments."""
    entry = aggregates.lookup(example.owner)
    assert entry is not None
    texts = [pieces(v[1:-1]) if v.startswith("(") else [v] for v in values_of(example)]
    columns = [typed(column) for column in zip(*texts, strict=True)] or [(NULL, [])]
    if texts:
        fitting = product(*(ANY if t == NULL else (t,) for t, _ in columns))
    else:
        fitting = chain(product(ANY), product(ANY, ANY))
    found = next((s for types in fitting if (s := entry.signature(types)) is not None), None)
    assert found is not None, f"{example.text}: {entry.name} takes none of the types tried for NULL: {ANY}"
    return found, list(zip(*(values for _, values in columns), strict=True))


def typed(texts: Sequence[str]) -> tuple[DataType, list[Any]]:
    """The first type that accepts all values, and the values."""
    exprs = bound(*texts)
    values = [evaluate(e) for e in exprs]
    type_ = NULL
    for e, value in zip(exprs, values, strict=True):
        found = common_type(type_, e.type) if value is not None else type_
        assert found is not None
        type_ = found
    return type_, values


def bound(*texts: str) -> tuple[Expr, ...]:
    """The expressions as the binder types them."""
    columns = ", ".join(f"({t}) AS c{i}" for i, t in enumerate(texts))
    plan = bind(parse(SourceText("<example>", f"{STREAM}SELECT {columns} FROM one;"))).plan
    node = plan.outputs[0].node
    assert isinstance(node, Project)
    return node.exprs


def comparable(value: Any, type_: DataType) -> Any:
    """A value that is equal for equal numbers of different widths, with NaN equal to NaN."""
    if value is None:
        return None
    if type_.element is not None:
        return tuple(comparable(e, type_.element) for e in value)
    if type_.kind is Kind.DECIMAL:
        return Fraction(value, 10**type_.scale)
    if type_.is_float:
        return ("double", "nan" if math.isnan(value) else value)
    return Fraction(value) if type_.is_integer else (type_.kind, value)
