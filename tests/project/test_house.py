"""What holds of all source files and no linter looks at."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from docs_pages import PAGES, ROOT

MOST_LINES = 60  # of one function
MOST_LINES_OF_A_FILE = 600
LISTS = {"cq/runtime/base/ops.py"}  # longer ones that are a list, of which each entry stands for itself

MODULES = sorted((ROOT / "cq").rglob("*.py"))

# What a text says and what it becomes after binding have one name: `ast.Join` and the operator Join.
IN_SYNTAX_AND_PLAN = {
    *("Call", "Case", "Cast", "Frame", "Join", "Unnest"),
    *("Delete", "Emit", "Insert", "Update"),  # steps of triggers
}
ON_TWO_LEVELS = {
    "Field",  # of a schema; of a record, as in `dataclasses`, for which records stand in
    "Output",  # of a plan; what a caller gets of it
    "Parameter",  # `:name` in a text; of a generator
    "Position",  # in all order: of the reference; of a kernel
    "Query",  # the text with its inputs; its syntax tree
}


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


def test_classes_have_names_of_their_own() -> None:
    """A reader who has seen one Placed takes the next one for the same."""
    found = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in found.items() if count > 1} == IN_SYNTAX_AND_PLAN | ON_TWO_LEVELS


def test_files_and_tests_that_code_and_pages_name_exist() -> None:
    tests = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    tops = [p for name in ("tests", "benchmarks") for p in (ROOT / name).rglob("*.py")]
    files = [f"/{p.relative_to(ROOT)}" for p in (*ROOT.glob("*.py"), *MODULES, *tops)]
    missing = []
    for place in (*MODULES, *PAGES, ROOT / "tests" / "README.md"):
        text = place.read_text(encoding="utf-8")
        paths = set(re.findall(r"(?<![\w/])(?:cq|docs|tests|benchmarks|queries)/[a-z_/]+\.(?:py|md|cq|lark)\b", text))
        missing += [f"{place.relative_to(ROOT)}: {p}" for p in paths if not (ROOT / p).exists()]
        ends = set(re.findall(r"(?<![\w/.*])(?:[a-z0-9_]+/)*[a-z0-9_]+\.py\b", text))  # of paths, such as flow/lanes.py
        missing += [f"{place.relative_to(ROOT)}: {e}" for e in ends if not any(p.endswith(f"/{e}") for p in files)]
        named = re.findall(r"tests: (test_\w+)(\*?)", text)
        missing += [
            f"{place.relative_to(ROOT)}: {n}" for n, more in named if f"def {n}{'' if more else '('}" not in tests
        ]
    assert not missing


def test_files_that_share_memory_say_what_orders_it() -> None:
    """Who may do what, who waits, and which loads and stores may not change places: a reader cannot guess it."""
    atomic = re.compile(r"\b(?:at_(?:load|store|add|cas|xchg)(?:_acq|_rel)?|fence|futex_\w+)\(")
    silent = []
    sharing = [p for layer in ("runtime", "connectors") for p in sorted((ROOT / "cq" / layer).rglob("*.py"))]
    for path in sharing:
        if path.parent == ROOT / "cq" / "runtime" / "base":  # defines them
            continue
        source = path.read_text(encoding="utf-8")
        header = ast.get_docstring(ast.parse(source)) or ""
        shares = atomic.search(source) or re.search(r"^(?:Roles|Shared) {2,}", header, re.MULTILINE)
        headings = ("Roles", "Shared", "Progress", "Order")
        lacks = [h for h in headings if not re.search(rf"^{h} {{2,}}", header, re.MULTILINE)]
        if shares and lacks:
            silent.append(f"{path.relative_to(ROOT)} says nothing of {', '.join(lacks)}")
    assert not silent


def test_every_invariant_names_a_test() -> None:
    """An item of a header that begins with I and its number; that there are such tests, another test demands."""
    untested = []
    for path in MODULES:
        header = ast.get_docstring(ast.parse(path.read_bytes())) or ""
        items = re.findall(r"^(I\d+) {2,}(.*?)(?=^[A-Z][a-z0-9]* {2,}|\Z)", header, re.MULTILINE | re.DOTALL)
        untested += [
            f"{path.relative_to(ROOT)}: {number}" for number, told in items if not re.search(r"\btest_\w+", told)
        ]
    assert not untested


def test_the_files_that_ask_which_operator_a_node_is_are_those_that_the_architecture_names() -> None:
    """Whoever adds an operator reads these, and the four files of another one."""
    found = {str(path.relative_to(ROOT / "cq")) for path in MODULES if _asks_which_operator(path)}
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^Outside these files, code tests which operator .*?\n\n", page, re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`([a-z_/]+(?:/|\.py))`", told))
    assert {p for p in found if not p.startswith("planner/binding/")} == named - {"planner/binding/"}


def _asks_which_operator(path: Path) -> bool:
    """Whether code outside of the rooms of operators compares the class of a node with that of an operator."""
    if path.parent.name == "operators":
        return False
    tree = ast.parse(path.read_bytes())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and _has_operators(node)]
    known = {alias.asname or alias.name for node in imports for alias in node.names}
    return any(isinstance(x, ast.Name) and x.id in known for kind in _classes_asked(tree) for x in ast.walk(kind))


def _has_operators(node: ast.ImportFrom) -> bool:
    name = (node.module or "").split(".")
    return "operators" in name or name[-1] in {"stage_input", "crossing_rows"}  # which only plans of stages have


def _classes_asked(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]) | ast.MatchClass(cls=kind):
                yield kind


def _number(value: ast.expr) -> int | None:
    """The number an expression writes by hand, or adds to another constant."""
    match value:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.BinOp(left=ast.Name(), op=ast.Add() | ast.Sub(), right=ast.Constant(value=int(number))):
            return number
        case ast.BinOp(left=ast.Constant(value=int(number)), op=ast.Add() | ast.Sub(), right=ast.Name()):
            return number
        case ast.Call(func=ast.Name(id="int" | "Word"), args=[ast.Constant(value=int(number)), *_]):
            return number
        case _:
            return None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _statements(statement.body)


def _numbered(statement: ast.stmt, declared: Collection[str]) -> list[tuple[str, int]]:
    """The constants of a module that a statement numbers by hand. Kinds are numbered in one assignment, those of a
    structure from 0 on."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=first), *_] as names)], value=ast.Tuple(elts=values)):
            kinds = _number(values[0]) == 0 or first.split("_")[0] not in declared
            pairs = [] if kinds else list(zip(names, values, strict=False))
        case ast.Assign(targets=[name], value=value) | ast.AnnAssign(target=name, value=ast.expr() as value):
            pairs = [(name, value)]
        case _:
            pairs = []
    found = [(name.id, _number(value)) for name, value in pairs if isinstance(name, ast.Name)]
    return [(name, number) for name, number in found if number is not None]


def _hand_numbered(source: str) -> Iterator[str]:
    """Words of a structure that have a number: those of a declared one, and any row of names that counts upwards.

    A row of kinds is one assignment: `LEFT, RIGHT = 0, 1`.
    """
    declared = set(re.findall(r'^_\w+ = (?:Struct|Overlay)\("([A-Z]+)"', source, re.M))
    before, last = "", None
    for statement in _statements(ast.parse(source).body):
        numbered = _numbered(statement, declared)
        for name, number in numbered:
            prefix = name.split("_")[0]
            if prefix in declared or name.endswith("_WORDS") or (prefix == before and number - 1 == last):
                yield name
            before, last = prefix, number
        if not numbered:
            before, last = "", None


def test_no_word_of_a_structure_is_numbered_by_hand() -> None:
    assert list(_hand_numbered("PLACE_HEAD = 0\nPLACE_TAIL = 8\nPLACE_NEXT = 9\nPLACE_WORDS = 16")) == [
        "PLACE_NEXT",
        "PLACE_WORDS",
    ]
    place = '_place = Struct("PLACE")\nPLACE_HEAD = _place.word()\n'
    for spelled in (
        "PLACE_TAIL = PLACE_HEAD + 1",
        "PLACE_TAIL = 1 + PLACE_HEAD",
        "PLACE_TAIL = PLACE_END - 1",
        "PLACE_TAIL: Final = 1",
        "PLACE_TAIL, PLACE_END = 1, 2",
        "PLACE_TAIL = int(1)",
        'PLACE_TAIL = Word(1, "PLACE_TAIL")',
        "if True:\n    PLACE_TAIL = 1",
    ):
        assert "PLACE_TAIL" in _hand_numbered(place + spelled), spelled
    assert not list(_hand_numbered("LEFT, RIGHT = 0, 1\nFIRST_BYTES = 16\nMOST_ROWS = 17"))
    runtime = [path for path in MODULES if path.is_relative_to(ROOT / "cq" / "runtime")]
    found = [f"{p.relative_to(ROOT)}: {name}" for p in runtime for name in _hand_numbered(p.read_text("utf-8"))]
    assert not found, "declare them with Struct (cq/runtime/layout/words.py)"


_ACCESS = re.compile(r"(?:ld|st)_[iuf]\d+|at_(?:load|store|add|cas|xchg)")


def _counted(index: ast.expr) -> bool:
    """Whether the place of a word says with a number which one of a structure it is: `3`, `TABLE_KEYS + 1`,
    `row * 3 + 2`. A text takes two words, a DECIMAL too: `word + 1` and `row * 2 + 1` are those of a value."""
    match index:
        case ast.Constant(value=int(number)):
            return number > 0
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=int(number))) if number:
            return _of_a_structure(left)
        case ast.BinOp(left=ast.Constant(value=int(number)), op=ast.Add(), right=right) if number:
            return _of_a_structure(right)
        case _:
            return False


def _of_a_structure(place: ast.expr) -> bool:
    match place:
        case ast.Name(id=name):
            return len(name) > 1 and name.isupper() and not name.endswith(("_ROWS", "_COUNT"))
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(isinstance(n, ast.Constant) and n.value not in {2} for n in (left, right))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _of_a_structure(left) or _of_a_structure(right)
        case _:
            return False


def _in_bytes(address: ast.expr) -> bool:
    """Whether whole words are counted in an address: `queue + 8`."""
    match address:
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=int(number))):
            return number % 8 == 0
        case _:
            return False


def _of_text(address: ast.expr) -> bool:
    """Whether the bytes of a text begin there: they are read by the word, and none of these has a name."""
    first = next(n for n in ast.walk(address) if not isinstance(n, ast.BinOp))
    return isinstance(first, ast.Name) and first.id in {"text", "source", "target"}


def _counted_words(tree: ast.AST) -> Iterator[str]:
    """The accesses to words that are counted by hand: by an index, or in the address, in bytes."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[address, *more]) if _ACCESS.fullmatch(name):
                in_bytes = _in_bytes(address)
                bare = (name.endswith(("i64", "f64")) or name.startswith("at_")) and not _of_text(address)
                index = more[0] if more and not name.startswith("at_") else None
                if bare and (in_bytes or (index is not None and _counted(index))):
                    yield ast.unparse(node)


def _templates(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of the texts from which generated code is written."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.search(r"\b[ls][dt]_\w+\(", node.value)
        ):
            with suppress(SyntaxError):
                yield ast.parse(node.value)


def test_no_word_is_counted_where_it_is_read() -> None:
    for spelled in (
        "ld_i64(table, 3)",
        "st_i64(entry, ENTRY_KEYS + 1, 0)",
        "st_i64(entry, 1 + ENTRY_KEYS, 0)",
        "ld_i64(cursors, lane * 3 + 1)",
        "ld_i64(bases, (entry >> ROW_BITS) * 3 + 2)",
        "at_load(queue + 8)",
        "ld_i64(table + 24, 0)",
        "ld_i64(cells + number * 16, 1)",
    ):
        assert list(_counted_words(ast.parse(spelled))), spelled
    for spelled in (
        "ld_i64(record, word + 1)",
        "ld_i64(values, row * 2 + 1)",
        "ld_i64(items, place - 1)",
        "ld_i64(text + at, 1)",
    ):
        assert not list(_counted_words(ast.parse(spelled))), spelled
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in MODULES
        if path.is_relative_to(ROOT / "cq" / "runtime")
        for word in _counted_words(ast.parse(path.read_bytes()))
    ]
    found += [
        f"{path.relative_to(ROOT)}: {word}"
        for path in MODULES
        if path.is_relative_to(ROOT / "cq" / "codegen")
        for template in _templates(ast.parse(path.read_bytes()))
        for word in _counted_words(template)
    ]
    assert not found, "give the word a name with Struct (cq/runtime/layout/words.py)"
