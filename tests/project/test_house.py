"""What holds of all source files and no linter looks at."""

from __future__ import annotations

import ast
import re

from docs_pages import PAGES, ROOT

MOST_LINES = 60  # of one function

MODULES = sorted((ROOT / "cq").rglob("*.py"))


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= MOST_LINES
    ]
    assert not long


def test_files_and_tests_that_code_and_pages_name_exist() -> None:
    tests = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    missing = []
    for place in (*MODULES, *PAGES, ROOT / "tests" / "README.md"):
        text = place.read_text(encoding="utf-8")
        paths = set(re.findall(r"(?<![\w/])(?:cq|docs|tests|benchmarks|queries)/[a-z_/]+\.(?:py|md|cq|lark)\b", text))
        missing += [f"{place.relative_to(ROOT)}: {p}" for p in paths if not (ROOT / p).exists()]
        named = re.findall(r"tests: (test_\w+)(\*?)", text)
        missing += [
            f"{place.relative_to(ROOT)}: {n}" for n, more in named if f"def {n}{'' if more else '('}" not in tests
        ]
    assert not missing
