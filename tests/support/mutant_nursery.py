"""A process that imports what no mutant can change, once, and forks a child for each mutant to run its tests.

Started with the names of modules of cq to import. A line of standard input is an Order in JSON, the line it is answered
by the exit status of the tests (negative: the signal that ended them), or null where they hang. Ends with its input.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import NoReturn, TypedDict

# The tests of one mutant take some seconds; a bug that makes them run on for ever, or stand still, is seen, too.
HANG_SECONDS = 60  # less than the 120 after which `cases.watched` ends the process as if nothing had been tested
# what the tests import, whoever is mutated
OTHERS = (
    "pytest",
    "hypothesis",
    "pandas",  # which pyarrow imports with the first array it makes
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.parquet",
    "numpy",
    "lark",
    "llvmlite.binding",
    "unittest.mock",
)
BROKEN = 3  # as pytest's own exit status for an error that is no test's


class Order(TypedDict):
    """The module is loaded from `path`; pytest runs with `arguments`, what it says goes to the file `output`, the test
    that begins to the file `started`.  slt_file: the only file of tests/slt whose cases are collected.  cpu_seconds:
    after so many they are ended."""

    module: str
    path: str
    arguments: list[str]
    output: str
    started: str
    slt_file: str
    cpu_seconds: int


def main() -> None:
    sys.path.insert(0, os.getcwd())
    for name in ("CI", "BUILD_NUMBER"):  # there pytest shows whole differences: of a megabyte that takes a minute
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as directory:  # what one child has compiled of Python, all others find
        sys.pycache_prefix, sys.dont_write_bytecode = directory, False
        for name in (*OTHERS, *sys.argv[1:]):
            importlib.import_module(name)
        for line in sys.stdin:
            print(json.dumps(status_of(json.loads(line))), flush=True)


def status_of(order: Order) -> int | None:
    child = os.fork()
    if child == 0:
        run(order)
    with os.fdopen(os.pidfd_open(child)) as ended:
        hangs = not select.select([ended], [], [], HANG_SECONDS)[0]
    if hangs:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if hangs else status


def run(order: Order) -> NoReturn:
    """In the child: everything from the mutant upwards is imported anew, by the tests."""
    status = BROKEN
    try:
        with open(order["output"], "wb") as output, open(os.devnull, "rb") as nothing:
            for file, number in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(file.fileno(), number)
        resource.setrlimit(resource.RLIMIT_CPU, (order["cpu_seconds"], order["cpu_seconds"]))
        if order["slt_file"]:
            os.environ["CQ_SLT_FILE"] = order["slt_file"]
        plant(order["module"], order["path"])
        import pytest

        options = ["-q", "-x", "--no-header", "--disable-warnings", "-p", "no:cacheprovider"]
        status = int(pytest.main([*options, *order["arguments"]], plugins=[Started(order["started"])]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Started:
    """Writes down which test begins: a bug may end the process."""

    def __init__(self, path: str) -> None:
        self.path = path

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(nodeid)


def plant(name: str, path: str) -> None:
    """The module is the one at `path`, for all that import it from now on: nobody may have imported it before."""
    assert name not in sys.modules, f"the nursery has imported {name}"
    sys.meta_path.insert(0, Planted(name, path))
    importlib.import_module(name)


class Planted(MetaPathFinder):
    """Finds one module at another place."""

    def __init__(self, name: str, path: str) -> None:
        self.name, self.path = name, path

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(fullname, self.path) if fullname == self.name else None


if __name__ == "__main__":
    main()
