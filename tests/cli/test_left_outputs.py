"""Outputs of which one loses its reader, or that are interrupted: files are whole or as they were, and it is said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import typed

ROWS = 200_000
BOTH = (
    "CREATE SINK kept WITH (path = 'kept.csv'); INSERT INTO kept SELECT id FROM 'many.csv';"
    "SELECT id, id + 1 AS next FROM 'many.csv'"
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    Path("many.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(ROWS)))
    Path("kept.csv").write_text("old\n")
    return tmp_path


def run_by_shell(command: str) -> tuple[str, str]:
    """(standard output, standard error) of a line of bash in which `cq` is this one."""
    cq = f"{sys.executable} -c 'from cq.cli import main; main()'"
    done = subprocess.run(
        ["bash", "-c", f'cq() {{ {cq} "$@"; }}; {command}'], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_file_gets_all_its_rows_when_the_reader_of_another_output_leaves(engine: str) -> None:
    out, said = run_by_shell(f'cq run --engine {engine} -c "{BOTH}" | head -1')
    assert out == "id,next\n" and Path("kept.csv").read_text().count("\n") == ROWS + 1
    assert f"{ROWS:,} to kept" in said and "result was not read to its end" in said


def test_reader_that_leaves_before_a_small_result_costs_the_file_nothing() -> None:
    query = BOTH.replace("FROM 'many.csv'", "FROM 'many.csv' WHERE id < 3")
    run_by_shell(f'cq run -c "{query}" -o result=- | true')
    assert Path("kept.csv").read_text() == "id\n0\n1\n2\n"


def test_file_gets_all_its_rows_when_the_pager_is_left() -> None:
    with typed(f'run "{BOTH}"', columns=80, rows=12, PAGER="head -2") as terminal:
        assert terminal.end() == 0
    assert Path("kept.csv").read_text().count("\n") == ROWS + 1


def test_run_without_another_output_ends_with_its_reader_and_says_nothing() -> None:
    assert run_by_shell("cq run \"SELECT id FROM 'many.csv'\" | head -1") == ("id\n", "")


@pytest.mark.usefixtures("usual_signals")
def test_interrupted_run_says_that_its_file_is_as_it_was() -> None:
    program = (
        "import os, signal, cq.cli\n"
        "from cq.connectors.sinks.writers import Csv\n"
        "write = Csv.write\n"
        "Csv.write = lambda *a: (write(*a), setattr(Csv, 'write', write), os.kill(os.getpid(), signal.SIGINT))\n"
        "pairs = \"SELECT a.id FROM 'many.csv' AS a JOIN 'many.csv' AS b ON a.id < b.id\"\n"
        "cq.cli.main(['run', '-c', pairs, '-o', 'kept.csv'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130 and Path("kept.csv").read_text() == "old\n"
    summary = done.stderr.splitlines()[-1]
    assert "computed " in summary and "nothing of result was kept" in summary and "wrote" not in summary


@pytest.mark.parametrize(("text", "expected"), [("SELECT 1 AS one", "one\n1\n"), ("\n", "Usage: cq")])
def test_query_on_standard_input_is_run(text: str, expected: str) -> None:
    program = [sys.executable, "-c", "from cq.cli import main; main()"]
    done = subprocess.run(program, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout.startswith(expected)


def test_two_outputs_go_to_two_pipes() -> None:
    query = "SELECT id FROM 'many.csv' LIMIT 3; SELECT COUNT(*) AS n FROM 'many.csv'"
    out, _ = run_by_shell(f"""cq run -q "{query}" -o result=>(cat > one.csv) -o result_2=/dev/stdout; wait""")
    assert out == f"n\n{ROWS}\n" and Path("one.csv").read_text() == "id\n0\n1\n2\n"


def test_pipe_whose_reader_leaves_costs_a_file_nothing() -> None:
    run_by_shell(f'cq run -q "{BOTH}" -o result=>(head -1 > one.csv); wait')
    assert Path("one.csv").read_text() == "id,next\n" and Path("kept.csv").read_text().count("\n") == ROWS + 1


def test_stream_of_arrow_goes_through_a_named_pipe_and_parquet_does_not() -> None:
    os.mkfifo("pipe")
    read = 'import pyarrow as pa; print(pa.ipc.open_stream(open("pipe", "rb")).read_all().num_rows)'
    out, _ = run_by_shell(
        f"{sys.executable} -c '{read}' & cq run -q \"SELECT id FROM 'many.csv'\" -o pipe -f arrow; wait"
    )
    assert out == f"{ROWS}\n"
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run_by_shell("cq run -q \"SELECT id FROM 'many.csv'\" -o pipe -f parquet")
    assert "Parquet cannot be written to a pipe" in refused.value.stderr
