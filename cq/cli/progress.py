"""Progress of a run for the person waiting: one redrawn line while it runs, one closing line when it is over.

If standard error is not a terminal, the same text is a plain line every few seconds.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from cq.errors import printable
from cq.runtime.base.notices import RUNTIME, listening

if TYPE_CHECKING:
    from cq.engines.protocol import Progress, RunSummary

FIRST_AFTER_S = 1.0  # a shorter run shows nothing, unless the runtime has to be compiled
EVERY_S = 0.25
PLAIN_FIRST_AFTER_S, PLAIN_EVERY_S = 2.0, 5.0  # permanent lines are less frequent
CLEAR = "\r\x1b[K"
UNNAMED = "result"  # the output of a query without a sink


class ProgressLine:
    """Redraws a line on a terminal from its own thread; `clear` removes it before something else is written."""

    def __init__(self, progress: Progress, stream: TextIO) -> None:
        self._progress, self._stream = progress, stream
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._shown = False
        self._thread = threading.Thread(target=self._run, name="cq-progress", daemon=True)

    def __enter__(self) -> ProgressLine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.clear()

    def end(self) -> None:
        """Remove the line for good."""
        self._over.set()
        self.clear()

    def clear(self) -> None:
        """Remove the line."""
        with self._lock:
            if self._shown:
                self._shown = False
                self._stream.write(CLEAR)
                self._stream.flush()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._over.wait(EVERY_S):
            compiling = self._progress.compiling
            if time.monotonic() - began >= FIRST_AFTER_S or (compiling is not None and compiling[0] == RUNTIME):
                self.draw()

    def draw(self) -> None:
        """Show the current state on the line."""
        text = progress_now(self._progress) or "cq: compiling"
        with self._lock:
            if self._over.is_set():
                return
            self._stream.write(CLEAR + text[: _columns()])
            self._stream.flush()
            self._shown = True


class ProgressNotes:
    """Reports in plain lines how far compiling and running have come, where a redrawn line is of no use.

    Its own thread writes the first line after PLAIN_FIRST_AFTER_S, so a short run prints nothing.
    """

    def __init__(self, progress: Progress, stream: TextIO) -> None:
        self._progress, self._stream = progress, stream
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cq-progress", daemon=True)

    def __enter__(self) -> ProgressNotes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        pause, said = PLAIN_FIRST_AFTER_S, None
        while not self._over.wait(pause):
            text, done = progress_now(self._progress), _done(self._progress)
            if text and done != said:  # if nothing arrives, as from a quiet file that is followed, nothing is written
                said = done
                self._stream.write(text + "\n")
                self._stream.flush()
                pause = PLAIN_EVERY_S


@contextmanager
def compiling_shown() -> Iterator[None]:
    """While this is open, show what is being compiled."""
    from cq.engines.protocol import Progress

    progress = Progress()
    kind = ProgressLine if sys.stderr.isatty() else ProgressNotes
    with listening(progress.compiles), kind(progress, sys.stderr):
        yield


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns - 1


def progress_now(progress: Progress) -> str:
    """How far a run has come by now; empty while there is nothing to report."""
    began = progress.began
    if progress.waiting_for:
        return f"cq: {progress.engine}{progress.waiting_for}"
    if began is not None:
        return progress_text(progress, time.perf_counter() - began)
    return "" if progress.compiling is None else "cq: compiling {} {}/{}".format(*progress.compiling)


def _done(progress: Progress) -> object:
    """The rows in and out, and what is waited for: a line is worth writing when these have changed."""
    shares = [share() for share in progress.shares.values()]
    return dict(progress.rows_in), dict(progress.rows_out), shares, progress.waiting_for, progress.compiling


def progress_text(progress: Progress, seconds: float) -> str:
    """Rows read from each source with the share done, rows written, rows/s, and the estimated remaining time.

    seconds: since the first row was asked for.
    """
    rows = sum(progress.rows_in.values())
    shares = [progress.shares[name]() for name in progress.rows_in]
    read = _counts(progress.rows_in, "of", ["" if s is None else f" ({s:.0%})" for s in shares])
    wrote = f"wrote {sum(progress.rows_out.values()):,}"
    parts = [f"cq: {progress.engine}read {read}", wrote, f"{rows / max(seconds, 1e-9):,.0f} rows/s"]
    known = [s for s in shares if s is not None]
    if known and len(known) == len(shares) and 0.01 < min(known) < 1:
        parts.append(f"about {_duration(seconds * (1 - min(known)) / min(known))} left")
    return " · ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3600:.1f} h"


def _written_to(letters: Mapping[str, str]) -> str:
    return f", written to {' and '.join(printable(path) for path in letters.values())}" if letters else ""


def summary_text(summary: RunSummary, hashes: bool = False) -> str:
    """The closing line: rows read and written, rows that were not, if any, the time, and the rate.

    A run too short for a meaningful rate shows none.

    Compiling and opening come first; the running time, and the rate, exclude them. hashes: of every output.
    """
    from cq.planner.measured import rejected_text

    rows = sum(summary.rows_in.values())
    bad, blank = sum(summary.bad_rows.values()), sum(summary.blank_lines.values())
    parts = [
        f"read {_counts(summary.rows_in, 'of')}",
        f"{'computed' if summary.unwritten else 'wrote'} {_counts(summary.rows_out, 'to')}",
        *(["late rows not counted"] if summary.late_rows is None else []),
        *([f"{summary.late_rows:,} late"] if summary.late_rows else []),
        *(["rejected events not counted"] if summary.rejected_events is None else []),
        *([rejected_text(summary.rejected_events)] if summary.rejected_events else []),
        *([f"{bad:,} unreadable{_written_to(summary.letters)}"] if bad else []),
        *([f"{blank:,} blank line{'s' if blank > 1 else ''}"] if blank else []),
        *(
            f"{printable(name)} silent {count:,} time{'s' if count > 1 else ''}"
            for name, count in summary.silent.items()
        ),
        *([f"ready after {summary.start_seconds:.2f} s"] if summary.start_seconds >= 0.01 else []),
        f"ran {summary.seconds:.2f} s"
        + (f", {_rate(rows / summary.seconds)} rows/s" if summary.seconds >= 0.1 else ""),
        *(["hash " + " ".join(_hashes(summary.hashes))] if hashes else []),
    ]
    if summary.limited:
        parts.append("stopped at the limit")
    parts += [f"{printable(name)} was not read to its end" for name in summary.left]
    parts += [f"nothing of {printable(name)} was kept" for name in summary.unwritten]
    if summary.interrupted:
        parts.append("interrupted")
    return " · ".join(parts)


def summary_json(summary: RunSummary) -> str:
    """The same for programs: one JSON object on one line, with the hash of every output."""
    counts = ("rows_in", "rows_out", "late_rows", "rejected_events", "bad_rows", "blank_lines")
    ends = ("silent", "notes", "limited", "interrupted", "left", "unwritten")
    found = {name: getattr(summary, name) for name in ("engine", *counts, "seconds", "start_seconds", *ends)}
    return json.dumps(found | {"hashes": dict(summary.hashes)}, ensure_ascii=False)


def _counts(counts: Mapping[str, int], word: str, behind: Sequence[str] = ()) -> str:
    """`3 rows of a, 5 of b`; a result without a name comes first. behind: the text after each."""
    notes = behind or [""] * len(counts)
    ordered = sorted(zip(counts.items(), notes, strict=True), key=lambda each: each[0][0] != UNNAMED)
    named = [f"{c:,}{_rows(c) if i == 0 else ''}{_of(n, word)}{note}" for i, ((n, c), note) in enumerate(ordered)]
    return ", ".join(named) or "nothing"


def _rows(count: int) -> str:
    return " row" if count == 1 else " rows"


def _of(name: str, word: str) -> str:
    return "" if name == UNNAMED else f" {word} {printable(name)}"


def _rate(rows: float) -> str:
    return f"{rows / 1e6:.1f} M" if rows >= 1e6 else f"{rows:,.0f}"


def _hashes(hashes: Mapping[str, str]) -> Sequence[str]:
    return list(hashes.values()) if len(hashes) == 1 else [f"{printable(n)} {h}" for n, h in hashes.items()]
