"""What is drawn and said while a query compiles and runs."""

from __future__ import annotations

import io

import pytest


def test_progress_line_names_sources_shares_and_rates() -> None:
    from cq.cli.progress import progress_text
    from cq.engines.protocol import Progress

    progress = Progress({"a": 50, "b": 3000}, {"o": 7}, {"a": lambda: 0.5, "b": lambda: None})
    assert progress_text(progress, 10.0) == "cq: read 50 rows of a (50%), 3,000 of b · wrote 7 · 305 rows/s"
    progress.shares["b"] = lambda: 0.25
    assert progress_text(progress, 10.0).endswith(" of b (25%) · wrote 7 · 305 rows/s · about 30 s left")


def test_progress_line_is_drawn_on_a_terminal_and_taken_away() -> None:

    from cq.cli import progress as p
    from cq.engines.protocol import Progress

    shown = io.StringIO()
    line = p.ProgressLine(Progress({"a": 5}, {"o": 7}, {"a": lambda: None}, began=0.0), shown)
    line.draw()
    line.clear()
    line.clear()
    assert shown.getvalue().startswith(p.CLEAR + "cq: read 5 rows of a · wrote 7") and shown.getvalue().endswith(
        p.CLEAR
    )
    assert shown.getvalue().count(p.CLEAR) == 2


def test_progress_line_says_that_nothing_is_read_yet() -> None:
    from cq.cli import progress as p
    from cq.engines.protocol import Progress

    shown = io.StringIO()
    p.ProgressLine(Progress({"a": 0}, {}, {"a": lambda: None}), shown).draw()
    assert shown.getvalue() == p.CLEAR + "cq: compiling"
    progress = Progress(engine="spark: ", waiting_for="waiting for Spark to start", began=0.0)
    assert p.progress_now(progress) == "cq: spark: waiting for Spark to start"


def test_rows_a_second_are_of_the_run_and_not_of_the_compiler() -> None:
    from cq.cli.progress import summary_text
    from cq.engines.protocol import RunSummary

    summary = RunSummary("native", {"a": 500}, seconds=0.5, start_seconds=20.0)
    assert "ready after 20.00 s · ran 0.50 s, 1,000 rows/s" in summary_text(summary)


def test_the_result_without_a_name_is_said_first() -> None:
    from cq.cli.progress import summary_text
    from cq.engines.protocol import RunSummary

    summary = RunSummary("native", {"s": 5}, rows_out={"o": 2, "result": 3, "audit": 4})
    assert "wrote 3 rows, 2 to o, 4 to audit" in summary_text(summary)


def test_compiling_is_told_with_what_and_how_far() -> None:
    from cq.cli.progress import progress_now
    from cq.engines.protocol import Progress

    progress = Progress()
    assert progress_now(progress) == ""
    progress.compiles("the query", 3, 10)
    assert progress_now(progress) == "cq: compiling the query 3/10"
    progress.began = 1.0
    assert "compiling" not in progress_now(progress)


@pytest.mark.parametrize(("what", "told"), [("RUNTIME", True), ("QUERY", False)])
def test_compiling_the_runtime_is_drawn_at_once_and_the_query_only_when_it_takes_long(
    what: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cq.cli import progress as p
    from cq.engines.protocol import Progress
    from cq.runtime.base import notices

    monkeypatch.setattr(p, "EVERY_S", 0.001)
    monkeypatch.setattr(p, "FIRST_AFTER_S", 3600.0)
    progress, shown = Progress(), io.StringIO()
    with notices.listening(progress.compiles), p.ProgressLine(progress, shown) as line:
        notices.tell(getattr(notices, what), 1, 2)
        line._over.wait(0.2)
    assert ("compiling " + notices.RUNTIME + " 1/2" in shown.getvalue()) is told
    notices.tell("nobody listens", 0, 1)
    assert progress.compiling == (getattr(notices, what), 1, 2)


def test_progress_is_told_in_plain_lines_where_nothing_can_be_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from cq.cli import progress as p
    from cq.engines.protocol import Progress

    monkeypatch.setattr(p, "PLAIN_FIRST_AFTER_S", 0.001)
    monkeypatch.setattr(p, "PLAIN_EVERY_S", 0.001)
    progress, shown = Progress(), io.StringIO()
    with p.ProgressNotes(progress, shown) as notes:
        notes._over.wait(0.05)
        assert shown.getvalue() == ""  # nothing is compiled
        progress.compiles("the runtime", 12, 34)
        while not shown.getvalue():
            notes._over.wait(0.01)
        progress.rows_in["a"], progress.shares["a"] = 5, lambda: 0.5
        progress.began = 1.0
        while " left\n" not in shown.getvalue():
            notes._over.wait(0.01)
    lines = shown.getvalue().splitlines()
    assert lines[0] == "cq: compiling the runtime 12/34"
    assert lines[-1].startswith("cq: read 5 rows of a (50%) · wrote 0 · ") and " · about " in lines[-1]
    assert "\r" not in shown.getvalue() and "\x1b" not in shown.getvalue()


def test_plain_line_is_written_when_something_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    from cq.cli import progress as p
    from cq.engines.protocol import Progress

    progress, shown = Progress({"a": 1}, {"o": 1}, {"a": lambda: None}, began=0.0), io.StringIO()
    notes = p.ProgressNotes(progress, shown)
    looks = iter([1, 1, 1, 2, 2, None])  # rows of a quiet file at each look, to the end of the run

    class Over:
        def wait(self, seconds: float) -> bool:
            rows = next(looks)
            progress.rows_in["a"] = rows or 0
            return rows is None

    monkeypatch.setattr(notes, "_over", Over())
    notes._run()
    assert [line.split(" of a")[0] for line in shown.getvalue().splitlines()] == ["cq: read 1 row", "cq: read 2 rows"]
