"""Hints say what is written where the user is: on the command line, in the shell, in a notebook, in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_shell import said_by_the_shell

import cq
from cq.hints import COMMAND_LINE, NOTEBOOK, PYTHON, SHELL, face, facing
from cq.notebook import run_cell
from cq.result import Result

ROOT = Path(cq.__file__).parent
TEXT = "SELECT price FROM (VALUES (1), (7)) AS t(price) WHERE price > :least"
ROWS = [{"price": 1}, {"price": 7}]


def test_value_of_a_parameter_is_set_in_python_as_its_hint_says() -> None:
    with pytest.raises(cq.CompileError) as stopped:
        cq.sql(TEXT).check()
    assert stopped.value.hint == "set it: .with_variables(least=VALUE)"
    assert cq.sql(TEXT).with_variables(least=1).run(engine="reference").to_pylist() == [{"price": 7}]


def test_value_of_a_parameter_is_set_in_a_notebook_as_its_hint_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cell({}, "--engine reference", TEXT) is None
    assert "help: set it: least = VALUE in a cell before this one\n" in capsys.readouterr().err
    shown = run_cell({"least": 1}, "--engine reference", TEXT)
    assert isinstance(shown, Result) and shown.to_pylist() == [{"price": 7}]


def test_value_of_a_parameter_is_set_in_the_shell_as_its_hint_says(tmp_path: Path) -> None:
    seen = said_by_the_shell(
        ".engine reference\n"
        f"{TEXT};\n.set least x\n{TEXT};\n.set :least 1\n.set\n{TEXT};\n"
        ".set who it's me\nCREATE VIEW v AS SELECT :Who AS who;\nSELECT * FROM v;\n.set least\n"
        f"SELECT :least AS gone;\n.quit\n",
        tmp_path,
    )
    assert "help: set it: .set least VALUE\n" in seen and "help: set another value: .set least 1\n" in seen
    assert "\nleast 1\n" in seen and "price\n─────\n    7\n" in seen and "who\n───────\nit's me\n" in seen
    assert seen.count("help: set it: .set least VALUE\n") == 2 and "--var" not in seen


def test_several_values_are_one_text_as_their_hint_says(capfd: pytest.CaptureFixture[str]) -> None:
    rows = "SELECT k FROM (VALUES (1), (2), (7)) AS t(k) WHERE "
    with pytest.raises(cq.CompileError) as stopped:
        cq.sql(rows + "k IN (:ids)", ids=[1, 7]).check()
    assert (
        stopped.value.hint == "for several, give one text, '1,2', and write x = ANY(CAST(SPLIT(:ids, ',') AS BIGINT[]))"
    )
    taken = cq.sql(rows + "k = ANY(CAST(SPLIT(:ids, ',') AS BIGINT[]))", ids="1,7")
    assert taken.run(engine="reference").to_pylist() == [{"k": 1}, {"k": 7}]
    with pytest.raises(cq.CompileError) as stopped:
        cq.sql(rows + "k IN (:ids)").with_variables(ids="1,7").check()


def test_stream_without_rows_is_given_them_as_its_hint_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = "CREATE STREAM t (price BIGINT); SELECT price FROM t"
    with pytest.raises(cq.UsageError) as stopped:
        cq.sql(text).run(engine="reference")
    assert stopped.value.first.help[0] == "give it rows: cq.sql(text, t=table)"
    assert cq.sql(text, t=ROWS).run(engine="reference").to_pylist() == ROWS
    for declared in (text, "CREATE STREAM t (WATERMARK FOR price); SELECT price FROM t"):
        assert run_cell({}, "--engine reference", declared) is None
        assert "help: give it rows: t = table in a cell before this one\n" in capsys.readouterr().err
    with facing(SHELL):
        assert face().giving("t") == ""


def test_directory_is_allowed_in_python_as_its_hint_says(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("price\n1\n7\n")
    (tmp_path / "in").mkdir()
    text = f"SELECT price FROM '{tmp_path}/t.csv'"
    with pytest.raises(cq.CqError) as stopped:
        cq.sql(text, restrict=[tmp_path / "in"]).check()
    way = stopped.value.first.help[0]
    assert way == f"allow its directory as well: restrict=[…, '{tmp_path}']"
    assert cq.sql(text, restrict=[tmp_path / "in", str(tmp_path)]).run(engine="reference").to_pylist() == ROWS


def test_face_of_who_called_first_stays() -> None:
    assert face() is COMMAND_LINE
    with facing(NOTEBOOK), facing(PYTHON):
        assert face() is NOTEBOOK
    assert face() is COMMAND_LINE


def test_value_is_quoted_for_the_command_line_only() -> None:
    assert COMMAND_LINE.setting("now", "10:00 h") == "--var now='10:00 h'"
    assert SHELL.setting("now", "10:00 h") == ".set now 10:00 h"


def texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """The strings of a file that are no docstrings."""
    said = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    yield from (
        n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in said
    )


def test_no_hint_below_the_command_line_names_an_option_to_those_who_have_none() -> None:
    rooms = ("grammar", "lang", "planner", "codegen", "connectors", "compiler", "engines", "reference")
    files = {path: path.read_text() for room in rooms for path in (ROOT / room).rglob("*.py")}
    found = [
        f"{path.relative_to(ROOT)}:{text.lineno}: {text.value}"
        for path, source in files.items()
        for text in texts(ast.parse(source))
        if re.search(r"(^|\s)--[a-z]", text.value)
        and not re.match(r"cq [a-z]+ --", text.value)
        and "face().takes_options" not in source  # it asks who is told
    ]
    assert not found, "\n".join(found)
