"""Help, and mistakes on the command line: a code, the cause and a way out."""

from __future__ import annotations

import io
import os
from pathlib import Path

import click
import pytest
from command_line import cq, outside

from cq.cli import COMMANDS, cli
from cq.engines.protocol import RunOptions
from cq.errors import UsageError
from cq.notebook import _line
from cq.planner.binding.settings import MOST_THREADS


def test_no_command_shows_help(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, _ = cq(capfd)
    assert code == 0 and all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(capfd: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = cq(capfd, name, "--help")
    assert code == 0 and out.startswith(f"Usage: cq {name}")


def test_unknown_command_and_option_get_did_you_mean(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = cq(capfd, "rnu")
    assert code == 2 and 'did you mean "run"?' in err
    code, _, err = cq(capfd, "q.cq")
    assert code == 2 and "cq run q.cq" in err
    code, _, err = cq(capfd, "run", "q.cq", "--limt", "3")
    assert code == 2 and "--limit" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "missing.cq"), 2, "CQ0601"),
        (("run", "."), 2, "CQ0601"),
        (("run",), 2, "no query given"),
        (("run", "q.cq", "bid"), 2, "STREAM=PATH"),
        (("run", "q.cq", "bid=nowhere.csv"), 2, "CQ0601"),
        (("run", "-", "bid=-"), 2, "only be read once"),
        (("run", "q.cq", "-s", "paralelism=2"), 2, 'did you mean "parallelism"?'),
        (("check", "q.cq", "-s", "batch_rows=0"), 2, 'takes a whole number from 1 to 2,147,483,647, not "0"'),
        (("check", "q.cq", "-s", "threads=1025"), 2, "threads takes a whole number from 0 to 1,024"),
        (("run", "q.cq", "-s", "parallelism=1025"), 2, "parallelism takes a whole number from 0 to 1,024"),
        (("run", "q.cq", "-j", "1025"), 2, "-j"),
        (("run", "q.cq", "--engine", "sparc"), 2, 'did you mean "spark"?'),
        (("run", "-c", "CREATE STREAM s (a BIGINT)"), 2, "no output"),
        (("run", "-c", "SELECT 'open"), 1, "CQ0102"),
        (("run", "-c", "SELECT id FROM b", "b=/dev/zero"), 2, "CQ06"),
        (("schema", "q.cq"), 2, "CQ0602"),
        (("explain", "q.cq", "--stage", "code", "--format", "dot"), 2, "CQ0208"),
        (("run", "q.cq", "-o", "a.csv", "-o", "result=b.csv"), 2, "two places: a.csv and b.csv"),
        (("run", "q.cq", "bid=bids.csv", "bid=q.cq"), 2, 'stream "bid" is given twice'),
        (("run", "-c", "SELECT :x AS x FROM b", "b=bids.csv", "--var", "x=\udcff"), 1, "CQ0105"),
        (("schema", "\udcff.csv"), 2, "not UTF-8"),
    ],
)  # fmt: skip
def test_mistakes_on_the_command_line_have_a_code_and_a_way_out(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    got, out, err = cq(capfd, *arguments)
    assert (got, out) == (code, "") and words in err, err
    assert "Traceback" not in err and ("= help:" in err or code == 1), err


def test_query_that_is_no_text_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    Path("b.cq").write_bytes(b"SELECT \xff")
    assert "CQ0105" in cq(capfd, "check", "b.cq")[2]
    Path("b.cq").write_bytes(b"-" * (1 << 21))
    assert "CQ0103" in cq(capfd, "check", "b.cq")[2]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_query_on_standard_input_is_utf_8_whatever_the_locale_is(encoding: str) -> None:
    text = "SELECT 'é' AS x\nFROM b;\n".encode()
    done = outside("fmt", "-", input=text, env={**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"})
    assert b"Traceback" not in done.stderr and done.stdout == text, done
    done = outside("fmt", "-", input=b"SELECT '\xff' AS x FROM b")
    assert done.returncode == 1 and b"<stdin>: the text is not UTF-8" in done.stderr


def test_internal_fault_is_one_line_and_how_to_report_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("cq.planner.binding.binder.bind", broken)
    code, _, err = cq(capfd, "check", "q.cq")
    assert code == 2 and err.startswith("error[CQ0999]: KeyError: 'lost'") and "Traceback" not in err
    assert "Traceback" in cq(capfd, "--debug", "check", "q.cq")[2]


def test_every_j_takes_as_many_workers_as_a_run_does() -> None:
    """The bound of runs was 1025, one more than they take, and each command had a number of its own."""
    RunOptions(threads=MOST_THREADS)
    with pytest.raises(UsageError, match=f"threads takes a whole number from 0 to {MOST_THREADS:,}, not"):
        RunOptions(threads=MOST_THREADS + 1)
    commands = [*(cli.get_command(click.Context(cli), name) for name in cli.list_commands(click.Context(cli))), _line]
    ranges = [p.type for c in commands if c is not None for p in c.params if "--threads" in p.opts]
    assert len(ranges) == 5 and all((r.min, r.max, r.max_open) == (0, MOST_THREADS, False) for r in ranges)
