"""IN over many constants is one node of the plan, whatever their number."""

from __future__ import annotations

from planner_fixture import top

from cq.lang.expressions import Call, walk
from cq.planner.binding.in_lists import FEW
from cq.planner.operators import Project


def _named(text: str, name: str) -> int:
    node = top(f"SELECT {text} AS x FROM bid;")
    assert isinstance(node, Project)
    return sum(isinstance(e, Call) and e.function.name == name for e in walk(node.exprs[0]))


def _numbers(count: int) -> str:
    return ", ".join(map(str, range(count)))


def test_more_than_few_constants_are_one_search() -> None:
    assert _named(f"price IN ({_numbers(FEW)})", "=") == FEW
    assert _named(f"price IN ({_numbers(FEW)})", "array_contains") == 0
    for count in (FEW + 1, 2_000):
        assert _named(f"price IN ({_numbers(count)})", "=") == 0
        assert _named(f"price IN ({_numbers(count)})", "array_contains") == 1


def test_a_null_is_compared_beside_the_search() -> None:
    assert _named(f"price IN ({_numbers(FEW + 1)}, NULL)", "=") == 1
    assert _named(f"price IN ({_numbers(FEW + 1)}, NULL)", "array_contains") == 1


def test_an_item_that_is_no_constant_keeps_all_comparisons() -> None:
    # 1 / price must not be computed for a price that is among the constants before it
    assert _named(f"price IN ({_numbers(FEW + 1)}, 1 / price)", "array_contains") == 0
