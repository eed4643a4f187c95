"""README.md beside this file names the tests of every item of issue 10: all items are there, and so are the tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TEXT = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
ITEMS = {int(number): line for number, line in re.findall(r"^\| (\d+) \| (.*)", TEXT, re.MULTILINE)}
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def names_of(file: str) -> frozenset[str]:
    """The names of the test functions in a file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


def test_every_item_but_that_of_speed_has_a_test_in_this_directory() -> None:
    assert sorted(ITEMS) == [*range(1, 14), 15]
    for number, line in ITEMS.items():
        assert any(file.startswith("first_hour/") for file, _ in NAMED.findall(line)), number


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(TEXT))))
def test_what_is_named_exists(file: str, name: str) -> None:
    assert name in names_of(file)


def test_everything_in_the_column_of_tests_is_one() -> None:
    for line in ITEMS.values():
        tests = line.rsplit("|", 2)[1]
        assert NAMED.sub("", tests).strip(" ,") == "", tests
