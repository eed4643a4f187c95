"""The build of a wheel compiles the runtime too; everything else about the package stands in pyproject.toml.

Where it cannot be compiled the wheel is built without: the runtime is then compiled on the first run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

QUERIES = Path("cq", "queries")
OBJECTS = Path("cq", "runtime", "objects")
LONGEST_S = 600  # compiling takes some fifteen seconds of one core


class BuildWithObjects(build_py):
    """Also leaves the shipped queries and the runtime's object code there. An editable install needs neither: it has
    the queries of the checkout, and compiles on the first run."""

    def run(self) -> None:
        super().run()
        for source, target in self._queries():
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(source), str(target))
        if not self.editable_mode:
            self._compile(Path(self.build_lib).absolute())

    def _queries(self) -> list[tuple[Path, Path]]:
        """The shipped queries and where they stand in the package, for `cq examples`; a checkout runs its own."""
        if self.editable_mode:
            return []
        root = Path(self.build_lib) / QUERIES
        return [(path, root / path.relative_to("queries")) for path in sorted(Path("queries").rglob("*.cq"))]

    def _compile(self, root: Path) -> None:
        paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "CQ_CACHE_DIR": ""}
        command = [sys.executable, "-m", "cq.runtime.base.shipping", str(root / OBJECTS)]
        try:
            done = subprocess.run(
                command, env=environment, cwd=root, capture_output=True, text=True, timeout=LONGEST_S, check=False
            )
            problem = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        except (OSError, subprocess.SubprocessError) as error:
            problem = str(error)
        if problem:
            for left in (root / OBJECTS).glob("*.cqo"):
                left.unlink()
            self.warn(f"the runtime is not compiled now but on the first run: {problem}")
        else:
            self.announce(f"compiled {done.stdout.strip()} modules of the runtime", level=2)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Everything that belongs to the package, the objects included."""
        made = sorted(str(path) for path in (Path(self.build_lib) / OBJECTS).glob("*.cqo"))
        return [*super().get_outputs(include_bytecode), *made, *(str(target) for _, target in self._queries())]


class PlatformWheel(bdist_wheel):
    """A wheel with object code is for one platform, whatever the Python: the code knows nothing of it."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"build_py": BuildWithObjects, "bdist_wheel": PlatformWheel})
