"""The documentation is true: its tables are those of the registries, its queries, commands and programs run, its links
lead somewhere. `pytest tests/project/test_docs.py --update` writes the generated parts anew."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from docs_pages import FILES, PAGES, ROOT, Block, all_blocks, bench, blocks, results_of, written_anew
from paths import SHIPPED

from cq.cli import execute
from cq.cli.reading import formatted_text
from cq.compiler.passes import compile
from cq.errors import CqError

SETUP = "python3 -m venv .venv && .venv/bin/pip install -q "
SMALL_ROWS = 2_000
LANGUAGES = {"sql", "sh", "python", *FILES, "text", "mermaid", ""}


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def link_target(heading: str) -> str:
    """The anchor GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


# ------------------------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_generated_parts_are_as_the_registries_say(page: Path, request: pytest.FixtureRequest) -> None:
    anew = written_anew(page)
    if request.config.getoption("--update"):
        page.write_text(anew, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == anew, "pytest tests/project/test_docs.py --update writes it anew"


def test_pictures_are_those_of_the_plans(request: pytest.FixtureRequest) -> None:
    drawn = compile((ROOT / "queries" / "lr_tolls.cq").read_text(encoding="utf-8")).explain(format="svg") + "\n"
    picture = ROOT / "docs" / "pictures" / "lr_tolls.svg"
    if request.config.getoption("--update"):
        picture.write_text(drawn, encoding="utf-8")
    assert picture.read_text(encoding="utf-8") == drawn, "pytest tests/project/test_docs.py --update draws it anew"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = unquote(link).partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert target.is_relative_to(ROOT)
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {link_target(h) for h in headings}, f"{link}: no such heading"


def test_every_block_is_of_a_language_the_tests_know() -> None:
    assert {b.language for page in PAGES for b in blocks(page)} <= LANGUAGES


def test_code_in_the_recipes_is_that_of_the_tree() -> None:
    tree = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "cq").rglob("*.py"))
    shown = [b for b in blocks(ROOT / "docs" / "recipes.md") if not b.language]
    assert shown and all(b.text in tree for b in shown)


# -------------------------------------------------------------------------------------------------- what is in them


@pytest.mark.parametrize("block", list(all_blocks("sql")), ids=str)
def test_queries_parse_and_bind_or_are_refused_as_marked(block: Block, tmp_path: Path) -> None:
    place = bench(block.page, tmp_path)
    if not block.refused:
        place.compiled(block)
        return
    with pytest.raises(CqError) as refused:
        place.compiled(block)
    assert block.refused in {d.code for d in refused.value.diagnostics}


def answered() -> Iterator[Block]:
    """The queries whose result stands behind them."""
    for page in PAGES:
        yield from (query for query, _ in results_of(page, page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("block", list(answered()), ids=str)
def test_results_are_those_of_two_workers_and_of_the_reference(block: Block, tmp_path: Path) -> None:
    """Those on the page are of the native engine in one thread."""
    place = bench(block.page, tmp_path)
    assert place.outcome(block, threads=2) == place.outcome(block)
    assert place.outcome(block, "reference", brief=True) == place.outcome(block, brief=True)


@pytest.mark.spark
@pytest.mark.parametrize("block", list(answered()), ids=str)
@pytest.mark.one_in(4)
def test_results_are_those_of_spark_in_any_order(block: Block, tmp_path: Path) -> None:
    """Or Spark says why it cannot run the query. It counts no late rows, and gives none before an error."""
    place = bench(block.page, tmp_path)
    rows = place.outcome(block, brief=True).splitlines()
    try:
        found = place.outcome(block, "spark", brief=True).splitlines()
    except CqError as refused:
        assert refused.code == "CQ0901"
        return
    if any("error[" in line for line in rows):
        assert [line[:18] for line in rows if "error[" in line] == [line[:18] for line in found if "error[" in line]
        return
    counted = re.compile(r"(late|bad) \d+( · |$)")
    assert sorted(r for r in rows if not counted.match(r)) == sorted(r for r in found if not counted.match(r))


@pytest.mark.parametrize("block", list(all_blocks("python")), ids=str)
def test_programs_run(block: Block, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with small queries and a `cq` on the path."""
    shutil.copytree(ROOT / "queries", tmp_path / "queries")
    for query in (tmp_path / "queries").rglob("*.cq"):
        small = re.sub(r"\brows = \d+", f"rows = {SMALL_ROWS}", query.read_text(encoding="utf-8"))
        query.write_text(small, encoding="utf-8")
    command = tmp_path / "bin" / "cq"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cq "$@"\n')
    command.chmod(0o755)
    return tmp_path


def commands() -> Iterator[Block]:
    """The blocks of commands but those that set cq up, which tests of their own look at."""
    yield from (b for b in all_blocks("sh") if "-m venv" not in b.text)


def small(text: str) -> str:
    return re.sub(r"\brows=\d+", f"rows={SMALL_ROWS}", text)


@pytest.mark.parametrize("block", list(commands()), ids=str)
def test_commands_run(block: Block, place: Path) -> None:
    text = "".join(line for line in small(block.text).splitlines(True) if "spark" not in line)
    environment = {**os.environ, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spark
@pytest.mark.parametrize("line", [x for b in commands() for x in b.text.splitlines() if "spark" in x])
def test_commands_with_spark_run(line: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    first, *arguments = shlex.split(small(line))
    assert first == "cq"
    assert execute(arguments) == 0


# ----------------------------------------------------------------------------------------------- the two commands


def set_up(mark: str) -> str:
    """The one command line under `<!-- mark -->` in the README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(rf"<!-- {mark} -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert len(found) == 1
    lines = found[0].splitlines()
    assert len(lines) == 1, "one command line each, so that it can be copied"
    return str(lines[0])


def test_first_command_installs_cq_and_runs_the_toll_query(place: Path) -> None:
    install, run = set_up("run").removeprefix(SETUP).split(" && ")
    assert install == "."
    words = shlex.split(run)
    assert words[0] == ".venv/bin/cq"
    query = ROOT / words[2]
    found = re.search(r"\brows = (\d+)", query.read_text(encoding="utf-8"))
    assert found and found[1] == "3000000"
    done = subprocess.run(
        [sys.executable, "-m", "cq", *words[1:]], cwd=place, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("vid,time,lav,toll\n") and done.stdout.count("\n") > SMALL_ROWS / 4
    assert done.stderr.splitlines()[-1].startswith(f"read {SMALL_ROWS:,} rows of lr · wrote ")  # after what compiles


def test_second_command_installs_what_the_tests_need_and_runs_them() -> None:
    install, run = set_up("test").removeprefix(SETUP).split(" && ")
    assert shlex.split(install) == ["-e", ".[test]"]
    assert run == ".venv/bin/python -m pytest -n auto --dist worksteal"
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    extract = "sed -n '/<!-- test -->/,/```$/p' README.md | sed -n 's/^\\(python3 -m venv .*\\)$/\\1/p'"
    assert extract in gate
    extracted = subprocess.run(["bash", "-c", extract], cwd=ROOT, capture_output=True, text=True, check=True)
    assert extracted.stdout.strip() == set_up("test")


@pytest.mark.long
@pytest.mark.parametrize("mark", ["run"])
def test_set_up_command_runs_as_written_in_a_fresh_copy(mark: str, tmp_path: Path) -> None:
    copy = tmp_path / "cq"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
    environment = {**os.environ, "CQ_CACHE_DIR": str(tmp_path / "cache")}
    del environment["PYTHONPATH"]  # the copy's cq, not this tree's
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", set_up(mark)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "read 3,000,000 rows of lr · wrote " in done.stderr and done.stdout.count("\n") > 100_000


# -------------------------------------------------------------------------------------------------------- queries


@pytest.mark.parametrize("query", SHIPPED, ids=lambda q: q.stem)
def test_shipped_query_is_formatted_and_asks_one_question(query: Path) -> None:
    text = query.read_text(encoding="utf-8")
    assert formatted_text(text, query.name) == text, f"cq fmt {query.relative_to(ROOT)}"
    assert re.match(r"-- [A-Z].*\?( \(.*\))?\n", text), "the first line is the question"


@pytest.mark.parametrize("query", SHIPPED, ids=lambda q: q.stem)
def test_shipped_query_passes_check_strictly(query: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["check", "--strict", str(query)]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("ok: reads ") and err == ""
