"""`cq completion`: shells complete commands, options, their values, functions, settings and files."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from command_line import cq

from cq.cli import execute


def completed(line: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `cq` answers a shell in which this was typed; the last word is unfinished."""
    monkeypatch.setenv("_CQ_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    with pytest.raises(SystemExit):
        execute([])
    return capfd.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("cq exp", ["plain,explain"]),
        ("cq explain --an", ["plain,--analyze"]),
        ("cq explain --format s", ["plain,svg"]),
        ("cq run -s batch", ["plain,batch_rows="]),
        ("cq run q", ["file,q"]),
        ("cq run q.cq bid=today", ["file,today"]),
        ("cq docs sqr", ["plain,sqrt"]),
        ("cq schema ", ["file,"]),
        ("cq nothing x", []),
    ],
)
def test_words_that_go_on_from_what_was_typed(
    line: str, answers: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completed(line, capfd, monkeypatch) == answers


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_a_shell_asks_cq(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, script, _ = cq(capfd, "completion", shell)
    assert code == 0 and "_CQ_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_bash_completes_with_the_script(capfd: pytest.CaptureFixture[str]) -> None:
    if not shutil.which("bash"):
        pytest.skip("no bash is installed")
    script = cq(capfd, "completion", "bash")[1]
    typed = f'cq() {{ {sys.executable} -m cq "$@"; }}; COMP_WORDS=(cq explain --ver); COMP_CWORD=2; _cq_completion'
    text = script.replace("env COMP_WORDS", "COMP_WORDS") + typed + ' cq; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "--verbose"


def test_shell_is_that_of_the_user(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert "fish_complete" in cq(capfd, "completion")[1]
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    code, _, err = cq(capfd, "completion")
    assert code == 2 and "cq completion zsh" in err
