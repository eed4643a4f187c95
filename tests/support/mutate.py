"""Plants a bug in one module and says whether given tests see it.

The tests run in a process of their own where the module is loaded from an altered copy, so interpreted and compiled
forms both carry the bug (object code is keyed by source) and the tree stays as it is. Processes are forked by a
nursery (`mutant_nursery.py`), which has imported what no mutant of that package can change.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from mutant_nursery import Order
from paths import ROOT, SUPPORT, TESTS

from cq.records import dataclass

LOWER = ("cq.grammar.parser", "cq.connectors.inputs", "cq.connectors.sinks.writers")  # what both of these stand on
PLANNER = ("cq.planner.binding.binder", "cq.planner.physical.choose", "cq.planner.explain")
RUNTIME = ("cq.runtime.engine.engine",)
# package -> what none of its modules can reach: the layers of pyproject.toml say so, and the nursery looks
UNTOUCHED = {
    "codegen": (*LOWER, *PLANNER, *RUNTIME),
    "planner": (*LOWER, *RUNTIME),
    "runtime": (*LOWER, *PLANNER),
}


@cache
def _nursery(package: str) -> subprocess.Popen[str]:
    """The nursery for mutants of the package; it ends with this process."""
    command = [sys.executable, str(SUPPORT / "mutant_nursery.py"), *UNTOUCHED[package]]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _status(order: Order, package: str) -> int | None:
    """How the tests ended: the exit status, negative for a signal, or None where they hang."""
    nursery = _nursery(package)
    assert nursery.stdin is not None and nursery.stdout is not None
    nursery.stdin.write(json.dumps(order) + "\n")
    nursery.stdin.flush()
    status = nursery.stdout.readline()
    assert status, f"the nursery of {package} has ended"
    found: int | None = json.loads(status)
    return found


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `module`, the one place that reads `old` reads `new`; `tests` (and `select`, as pytest -k) should fail.

    more: further places of the module, as (old, new), where one alone shows nowhere.
    """

    module: str
    old: str
    new: str
    tests: tuple[str, ...]
    select: str = ""
    more: tuple[tuple[str, str], ...] = ()

    def verdict(self) -> tuple[bool, str]:
        """Whether a test failed, and the end of what pytest said."""
        source = (ROOT / (self.module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
        for old, new in ((self.old, self.new), *self.more):
            assert source.count(old) == 1, f"{self.module} has {source.count(old)} places like {old!r}"
            source = source.replace(old, new)
        with tempfile.TemporaryDirectory() as directory:
            path, output = Path(directory) / "mutant.py", Path(directory) / "output"
            path.write_text(source, encoding="utf-8")
            arguments = [str(next(TESTS.rglob(name))) for name in self.tests] + (
                ["-k", self.select] if self.select else []
            )
            order = Order(module=self.module, path=str(path), arguments=arguments, output=str(output))
            status = _status(order, self.module.split(".")[1])
            said = output.read_text(encoding="utf-8", errors="replace")[-2000:]
        # 1: tests failed.  A crash or a hang of the mutant would count too, but 2 to 5 mean that nothing was tested
        return (True, "hangs") if status is None else (status == 1 or status < 0, said)
