"""A process that imports once what no mutant can change, and forks a child for each mutant to run its tests.

Started with the names of cq modules to import. A line of standard input is an Order in JSON; the answer is a line with
the exit status of the tests (negative: the signal that ended them). Ends with its input.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import NoReturn, TypedDict

# A test that hangs is ended after this long: before the 120 seconds after which `cases.watched` ends the process as if
# nothing had been tested, and late enough for a test that waits for the processor on a busy machine.
HANG_SECONDS = 60
# imported by the tests, whatever is mutated
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
BROKEN = 3  # like pytest's own exit status for an error outside of tests


class Order(TypedDict):
    """The module is loaded from `path`; pytest runs with `arguments`, its output goes to the file `output`, the name of
    the running test to the file `started`.  slt_file: the only file of tests/slt whose cases are collected.
    cpu_seconds: a test that takes longer is ended."""

    module: str
    path: str
    arguments: list[str]
    output: str
    started: str
    slt_file: str
    cpu_seconds: int


def main() -> None:
    sys.path.insert(0, os.getcwd())
    for name in ("CI", "BUILD_NUMBER"):  # with it pytest shows whole differences: for a megabyte that takes a minute
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as directory:  # byte code compiled by one child is found by all others
        sys.pycache_prefix, sys.dont_write_bytecode = directory, False
        for name in (*OTHERS, *sys.argv[1:]):
            importlib.import_module(name)
        for line in sys.stdin:
            print(json.dumps(status_of(json.loads(line))), flush=True)


def status_of(order: Order) -> int:
    child = os.fork()
    if child == 0:
        run(order)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(order: Order) -> NoReturn:
    """In the child: let the tests import everything from the mutant upwards again."""
    status = BROKEN
    try:
        with open(order["output"], "wb") as output, open(os.devnull, "rb") as nothing:
            for file, number in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(file.fileno(), number)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        limit(order["cpu_seconds"])  # to collect the tests
        if order["slt_file"]:
            os.environ["CQ_SLT_FILE"] = order["slt_file"]
        plant(order["module"], order["path"])
        import pytest

        options = ["-q", "-x", "--no-header", "--disable-warnings", "-p", "no:cacheprovider"]
        status = int(pytest.main([*options, *order["arguments"]], plugins=[EachTest(order)]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def limit(cpu_seconds: int) -> None:
    """From now on, the process may take this many CPU seconds, and HANG_SECONDS of wall time: then SIGXCPU or SIGALRM
    ends it."""
    end = math.ceil(time.process_time()) + cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)


class EachTest:
    """Writes down which test starts, since a bug may end the process, and limits the time of each."""

    def __init__(self, order: Order) -> None:
        self.order = order

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with open(self.order["started"], "w", encoding="utf-8") as file:
            file.write(nodeid)
        limit(self.order["cpu_seconds"])


def plant(name: str, path: str) -> None:
    """Load the module from `path` for all later imports: nobody may have imported it before."""
    assert name not in sys.modules, f"the nursery has imported {name}"
    sys.meta_path.insert(0, Planted(name, path))
    importlib.import_module(name)


class Planted(MetaPathFinder):
    """Finds one module at another path."""

    def __init__(self, name: str, path: str) -> None:
        self.name, self.path = name, path

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(fullname, self.path) if fullname == self.name else None


if __name__ == "__main__":
    main()
