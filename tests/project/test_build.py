"""The wheel: object code of the runtime in it, one platform, and an installation that succeeds without."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from docs_pages import ROOT

from cq.runtime.base import link
from cq.runtime.base.modules import shipped_name
from cq.runtime.base.shipping import GROUPS


class FakeBuild:
    """What the hook needs of setuptools' command."""

    build_lib, editable_mode = "lib", False

    def __init__(self) -> None:
        self.said: list[str] = []

    def run(self) -> None: ...

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return []

    def copy_file(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)

    def warn(self, text: str) -> None:
        self.said.append(text)

    def announce(self, text: str, level: int) -> None:
        self.said.append(text)


class FakeWheel:
    def finalize_options(self) -> None:
        self.root_is_pure = True

    def get_tag(self) -> tuple[str, str, str]:
        return "cp311", "cp311", "linux_x86_64"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    """The names of setup.py, run where setuptools is not there; its builds go to an empty directory."""
    fakes = {
        "setuptools": {"setup": lambda **_: None},
        "setuptools.command": {},
        "setuptools.command.bdist_wheel": {"bdist_wheel": FakeWheel},
        "setuptools.command.build_py": {"build_py": FakeBuild},
    }
    for name, content in fakes.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    return runpy.run_path(str(ROOT / "setup.py"))


class Answers:
    """Stands for `subprocess.run`: leaves a file, then ends this way."""

    def __init__(self, objects: Path, code: int = 0, error: BaseException | None = None) -> None:
        self.objects, self.code, self.error, self.calls = objects, code, error, 0

    def __call__(self, command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        self.objects.mkdir(parents=True, exist_ok=True)
        (self.objects / "half.cqo").write_bytes(b"half")
        if self.error is not None:
            raise self.error
        return subprocess.CompletedProcess(command, self.code, "1\n", "Traceback\nNoLLVM: there is no LLVM\n")


@pytest.mark.parametrize(
    ("code", "error", "why"),
    [
        (1, None, "NoLLVM: there is no LLVM"),
        (0, OSError("no such program"), "no such program"),
        (0, subprocess.TimeoutExpired("cq", 600), "timed out after 600"),
    ],
)
def test_a_build_that_cannot_compile_says_so_and_goes_on_without(
    code: int, error: BaseException | None, why: str, hook: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(Path("lib") / hook["OBJECTS"], code, error)
    monkeypatch.setattr(subprocess, "run", answers)
    build = hook["BuildWithObjects"]()
    build.run()
    assert len(build.said) == 1 and "on the first run" in build.said[0] and why in build.said[0]
    assert build.get_outputs() == []  # half of the objects are none


def test_a_build_lists_its_objects_and_an_editable_one_makes_none(hook: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(Path("lib") / hook["OBJECTS"])
    monkeypatch.setattr(subprocess, "run", answers)
    build = hook["BuildWithObjects"]()
    build.editable_mode = True
    build.run()
    assert (answers.calls, build.said) == (0, [])
    build.editable_mode = False
    build.run()
    assert build.get_outputs() == [str(Path("lib") / hook["OBJECTS"] / "half.cqo")]


def test_a_build_has_the_shipped_queries(hook: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Answers(Path("lib") / hook["OBJECTS"], 1))
    Path("queries/more").mkdir(parents=True)
    Path("queries/more/q.cq").write_text("-- Is it there?\nSELECT 1")
    build = hook["BuildWithObjects"]()
    build.run()
    target = Path("lib", "cq", "queries", "more", "q.cq")
    assert build.get_outputs() == [str(target)] and target.read_text().startswith("-- Is it there?")


def test_a_wheel_is_for_its_platform_and_any_python(hook: dict) -> None:
    wheel = hook["PlatformWheel"]()
    wheel.finalize_options()
    assert wheel.root_is_pure is False
    assert wheel.get_tag() == ("py3", "none", "linux_x86_64")


def test_what_builds_a_wheel_is_what_runs_it() -> None:
    """Objects are used only by the same llvmlite: the ranges of the build are those of the installation."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = set(project["build-system"]["requires"]) - {"setuptools>=77"}
    assert needed <= set(project["project"]["dependencies"])
    assert {need.partition(">")[0] for need in needed} >= {"llvmlite"}


@pytest.mark.long
def test_an_installed_wheel_compiles_no_runtime(tmp_path: Path) -> None:
    """Builds in isolation, installs beside what this Python has, and runs with an empty cache."""
    pip = [sys.executable, "-m", "pip", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True, timeout=900)
    (wheel,) = tmp_path.glob("cq-*-py3-none-linux_*.whl")
    names = {name.partition(".data/purelib/")[2] or name for name in zipfile.ZipFile(wheel).namelist()}
    wanted = {f"cq/runtime/objects/{shipped_name(m)}" for group in GROUPS for m in group}
    assert wanted <= names or link.portable() is None
    target = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True, timeout=300)
    program = (
        "import sys; from cq.runtime.base import kernel; from cq.runtime.base.interpret import GENERATORS\n"
        "kernel.library_with(GENERATORS); print(kernel.__file__, 'numba' in sys.modules)"
    )
    environment = {"PYTHONPATH": str(target), "CQ_CACHE_DIR": "", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    file, compiled = done.stdout.split()
    assert Path(file).is_relative_to(target)
    assert compiled == "False"
