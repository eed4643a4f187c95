"""What holds of all source files and no linter looks at."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from docs_pages import PAGES, ROOT

MOST_LINES = 60  # of one function
MOST_LINES_OF_A_FILE = 600
LISTS = {"cq/runtime/base/ops.py"}  # longer ones that are a list, of which each entry stands for itself

MODULES = sorted((ROOT / "cq").rglob("*.py"))


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= MOST_LINES
    ]
    assert not long


def test_no_file_is_longer_than_can_be_read_at_once() -> None:
    files = (*MODULES, *sorted((ROOT / "tests").rglob("*.py")))
    lengths = {str(p.relative_to(ROOT)): p.read_bytes().count(b"\n") for p in files}
    assert {path for path, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == LISTS


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest imports them by their names alone, and stops where it meets one again."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]


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


def test_files_that_share_memory_say_what_orders_it() -> None:
    """Which loads and stores may not change places, and why, stands in the header: a reader cannot guess it."""
    atomic = re.compile(r"\b(?:at_(?:load|store|add|cas|xchg)(?:_acq|_rel)?|fence|futex_\w+)\(")
    silent = []
    sharing = [p for layer in ("runtime", "connectors") for p in sorted((ROOT / "cq" / layer).rglob("*.py"))]
    for path in sharing:
        if path.parent == ROOT / "cq" / "runtime" / "base":  # defines them
            continue
        source = path.read_text(encoding="utf-8")
        header = ast.get_docstring(ast.parse(source)) or ""
        shares = atomic.search(source) or re.search(r"^(?:Roles|Shared) {2,}", header, re.MULTILINE)
        if shares and not re.search(r"^Order {2,}", header, re.MULTILINE):
            silent.append(str(path.relative_to(ROOT)))
    assert not silent


def _number(value: ast.expr) -> int | None:
    """The number an expression writes by hand, or adds to another constant."""
    match value:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.BinOp(left=ast.Name(), op=ast.Add(), right=ast.Constant(value=int(number))):
            return number
        case _:
            return None


def _hand_numbered(source: str) -> Iterator[str]:
    """Words of a structure that have a number: those of a declared one, and any row of names that counts upwards.

    A row of kinds is one assignment: `LEFT, RIGHT = 0, 1`.
    """
    declared = set(re.findall(r'^_\w+ = (?:Struct|Overlay)\("([A-Z]+)"', source, re.M))
    before, last = "", None
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (number := _number(value)) is not None:
                prefix = name.split("_")[0]
                if prefix in declared or name.endswith("_WORDS") or (prefix == before and number - 1 == last):
                    yield name
                before, last = prefix, number
            case _:
                before, last = "", None


def test_no_word_of_a_structure_is_numbered_by_hand() -> None:
    assert list(_hand_numbered("PLACE_HEAD = 0\nPLACE_TAIL = 8\nPLACE_NEXT = 9\nPLACE_WORDS = 16")) == [
        "PLACE_NEXT",
        "PLACE_WORDS",
    ]
    assert list(_hand_numbered('_place = Struct("PLACE")\nPLACE_HEAD = _place.word()\nPLACE_TAIL = PLACE_HEAD + 1'))
    runtime = [path for path in MODULES if path.is_relative_to(ROOT / "cq" / "runtime")]
    found = [f"{p.relative_to(ROOT)}: {name}" for p in runtime for name in _hand_numbered(p.read_text("utf-8"))]
    assert not found, "declare them with Struct (cq/runtime/layout/words.py)"
