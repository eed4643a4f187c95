"""Plants a bug in one module and says whether given tests see it.

The tests run in a process of their own where the module is loaded from an altered copy, so interpreted and compiled
forms both carry the bug (object code is keyed by source) and the tree stays as it is.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from paths import ROOT, SUPPORT, TESTS

HANG_SECONDS = 60  # the tests of one mutant take some seconds; a bug that makes them stand still is seen, too

_RUN = """
import importlib, importlib.util, sys
sys.path.insert(0, {support!r})
name = {module!r}
package, _, last = name.rpartition(".")
spec = importlib.util.spec_from_file_location(name, {path!r})
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
setattr(importlib.import_module(package), last, module)
import pytest
sys.exit(pytest.main(["-q", "-x", "--no-header", "-p", "no:cacheprovider", *{arguments!r}]))
"""


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
            path = Path(directory) / "mutant.py"
            path.write_text(source, encoding="utf-8")
            arguments = [str(next(TESTS.rglob(name))) for name in self.tests] + (
                ["-k", self.select] if self.select else []
            )
            script = _RUN.format(support=str(SUPPORT), module=self.module, path=str(path), arguments=arguments)
            command = [sys.executable, "-c", script]
            try:
                done = subprocess.run(
                    command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
                )
            except subprocess.TimeoutExpired:
                return True, "hangs"
        # 1: tests failed.  A crash or a hang of the mutant would count too, but 2 to 5 mean that nothing was tested
        return done.returncode == 1 or done.returncode < 0, (done.stdout + done.stderr)[-2000:]
