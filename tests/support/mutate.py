"""Plants a bug in one module and reports whether given tests see it.

The tests run in a separate process where the module is loaded from an altered copy, so interpreted and compiled forms
both have the bug (object code is keyed by source) and the tree stays unchanged. Processes are forked by a nursery
(`mutant_nursery.py`), which has imported what no mutant of that package can change.

The test that saw a bug is recorded in tests/golden/mutants.json by `pytest --update -m mutants`, and is tried before
all others that may see it. A test that times out sees the bug only if it ends without it.
"""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mutant_nursery import Order
from paths import GOLDEN, ROOT, SUPPORT, TESTS

from cq.records import dataclass, replace

LOWER = ("cq.grammar.parser", "cq.connectors.inputs", "cq.connectors.sinks.writers")  # both of these depend on it
PLANNER = ("cq.planner.binding.binder", "cq.planner.physical.choose", "cq.planner.explain")
RUNTIME = ("cq.runtime.engine.engine",)
# package -> modules that none of its modules can reach: the layers of pyproject.toml say so, and the nursery checks
UNTOUCHED = {
    "codegen": (*LOWER, *PLANNER, *RUNTIME),
    "planner": (*LOWER, *RUNTIME),
    "runtime": (*LOWER, *PLANNER),
}


# module and title of a mutant -> the test that saw it, after HANGS if it never ends
WITNESSES = GOLDEN / "mutants.json"
ALSO_LONG = ("-m", "")  # a named test runs even if the gate leaves it out
HANGS = "for ever: "
CPU_SECONDS = 30  # for one test: one that takes longer counts as never ending, if it ends without the bug
KNOWN_TO_HANG_CPU_SECONDS = 3  # without the bug it takes less than one; if it takes more, all tests are tried
TIME_IS_UP = {-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL}  # killed: it kept allocating memory
SLT_CASE = "tests/agreement/test_slt.py::"


def in_turn(names: Iterable[str]) -> list[Any]:
    """The mutants to try: every tenth, and the others if tests may take long, as with `-m mutants`."""
    return [pytest.param(name, marks=[pytest.mark.long] * (number % 10 != 0)) for number, name in enumerate(names)]


@cache
def _nursery(package: str) -> subprocess.Popen[str]:
    """The nursery for mutants of the package; it ends with this process."""
    command = [sys.executable, str(SUPPORT / "mutant_nursery.py"), *UNTOUCHED[package]]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _status(order: Order, package: str) -> int:
    """How the tests ended: the exit status, negative for a signal."""
    nursery = _nursery(package)
    assert nursery.stdin is not None and nursery.stdout is not None
    nursery.stdin.write(json.dumps(order) + "\n")
    nursery.stdin.flush()
    status = nursery.stdout.readline()
    assert status, f"the nursery of {package} has ended"
    return int(status)


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `module`, the only place that reads `old` reads `new`; `tests` (and `select`, as in pytest -k) should fail.

    more: further places in the module, as (old, new), if one alone has no effect.
    """

    module: str
    old: str
    new: str
    tests: tuple[str, ...]
    select: str = ""
    more: tuple[tuple[str, str], ...] = ()

    def demand_seen(self, title: str, update: bool) -> None:
        """Fails unless a test sees the bug. update: record again which one does."""
        name = f"{self.module}: {title}"
        witness = "" if update else _witnesses().get(name, "")
        limit = KNOWN_TO_HANG_CPU_SECONDS if witness.startswith(HANGS) else CPU_SECONDS
        if witness and self.tried([witness.removeprefix(HANGS)], cpu_seconds=limit).seen:
            return
        verdict = self.tried([str(next(TESTS.rglob(name))) for name in self.tests], self.select)
        assert verdict.seen, verdict.said
        if update:
            _write_down(name, HANGS + verdict.test if verdict.hangs else verdict.test)
        else:
            warnings.warn(f"{name}: seen by {verdict.test}, not by {witness or 'a test known before'}", stacklevel=2)

    def tried(self, tests: Sequence[str], select: str = "", cpu_seconds: int = CPU_SECONDS) -> Verdict:
        """The verdict of these tests on the tree with the bug."""
        original = (ROOT / (self.module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
        changed = original
        for old, new in ((self.old, self.new), *self.more):
            assert changed.count(old) == 1, f"{self.module} has {changed.count(old)} places like {old!r}"
            changed = changed.replace(old, new)
        verdict = self._verdict(changed, [*tests, *(["-k", select] if select else [])], cpu_seconds)
        if verdict.hangs:
            without = self._verdict(original, [verdict.test] if verdict.test else tests, cpu_seconds)
            if not without.passes:
                return replace(verdict, seen=False, said=f"without the bug {verdict.test} says: {without.said}")
        return verdict

    def _verdict(self, source: str, arguments: Sequence[str], cpu_seconds: int) -> Verdict:
        """The verdict of tests on the tree with this source of the module."""
        with tempfile.TemporaryDirectory() as directory:
            path, output, started = (Path(directory) / name for name in ("mutant.py", "output", "started"))
            path.write_text(source, encoding="utf-8")
            order = Order(
                module=self.module,
                path=str(path),
                arguments=[*arguments, *(ALSO_LONG if "::" in arguments[0] else ())],
                output=str(output),
                started=str(started),
                slt_file=_slt_file(arguments),
                cpu_seconds=cpu_seconds,
            )
            status = _status(order, self.module.split(".")[1])
            said = output.read_text(encoding="utf-8", errors="replace")[-2000:]
            test = started.read_text(encoding="utf-8") if started.exists() else ""
        # 1: tests failed.  A crash or a hang of the mutant would count too, but 2 to 5 mean that nothing was tested
        return Verdict(status == 1 or status < 0, status in TIME_IS_UP, status == 0, test, said)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether tests see a bug, see one that makes them run forever, or pass; the last one started, and the end of
    pytest's output."""

    seen: bool
    hangs: bool
    passes: bool
    test: str
    said: str


def _slt_file(tests: Sequence[str]) -> str:
    """The only file of tests/slt whose cases are needed; empty if all may be."""
    if len(tests) == 1 and tests[0].startswith(SLT_CASE):
        return tests[0].partition("[")[2].partition(":")[0]
    return ""


@cache
def _witnesses() -> dict[str, str]:
    found: dict[str, str] = json.loads(WITNESSES.read_text(encoding="utf-8"))
    return found


def _write_down(name: str, test: str) -> None:
    """Several processes may write, one at a time."""
    with WITNESSES.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        witnesses = json.load(file) | {name: test}
        file.seek(0)
        file.truncate()
        json.dump(dict(sorted(witnesses.items())), file, indent=0, ensure_ascii=False)
        file.write("\n")
