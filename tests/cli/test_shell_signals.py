"""Ctrl-C interrupts what the shell does, and nothing between two prompts."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from cq.cli import shell
from cq.cli.shell import Shell
from cq.cli.signals import Ended

pytestmark = pytest.mark.usefixtures("usual_signals")


def reading(*typed: str, before: Callable[[], None] = lambda: None) -> Callable[[str], str]:
    """A prompt at which these are typed, one after the other, and then Ctrl-D. before: what happens before each."""
    left = list(typed)

    def read(begun: str) -> str:
        before()
        if not left:
            raise EOFError
        return begun + left.pop(0)

    return read


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_between_two_prompts_changes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert Shell().loop(reading(".timer", ".timer", before=ctrl_c)) == 0
    out, err = capfd.readouterr()
    assert out == "timer on\ntimer off\n" and "interrupted" not in err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_an_error_is_said_does_not_end_the_shell(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real = shell.say
    monkeypatch.setattr(shell, "say", lambda text: (ctrl_c(), real(text)))
    assert Shell().loop(reading("SELECT x;", ".timer")) == 0
    out, err = capfd.readouterr()
    assert out == "timer on\n" and "CQ0203" in err


def test_ctrl_c_interrupts_a_command_however_often_it_is_pressed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def slow(_: Shell, text: str) -> None:
        try:
            ctrl_c()
        finally:
            ctrl_c()  # while the first one is on its way out

    monkeypatch.setitem(shell.COMMANDS, ".timer", (slow, ""))
    assert Shell().loop(reading(".timer", ".tables")) == 0
    assert capfd.readouterr().err.endswith("interrupted\n")


def test_prompt_that_is_interrupted_while_it_ends_is_asked_again(capfd: pytest.CaptureFixture[str]) -> None:
    """prompt_toolkit puts Python's own handler back a moment before ours."""
    raised = iter([KeyboardInterrupt])

    def raise_once() -> None:
        for error in raised:
            raise error

    assert Shell().loop(reading(".timer", before=raise_once)) == 0
    assert capfd.readouterr().out == "timer on\n"


def test_sigterm_ends_the_shell_at_the_prompt() -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line sets it
    try:
        with pytest.raises(Ended):
            Shell().loop(reading(".timer", before=lambda: signal.raise_signal(signal.SIGTERM)))
    finally:
        signal.signal(signal.SIGTERM, before)
