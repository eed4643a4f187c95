"""Options and fixtures every test may use."""

from __future__ import annotations

import gc
import math
import os
import signal
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parent.parent


def pytest_configure() -> None:
    """A process that a test starts imports this tree, also where nothing but what it depends on is installed."""
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), *([others] if others else ())))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write golden files anew instead of comparing with them")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests that say `one_in` the gate takes some cases; those of one case of tests/slt follow each other, so that
    its query is bound once."""
    _leave_some_out(items)
    places = [n for n, item in enumerate(items) if _case_of(item) is not None]
    by_case = sorted((items[n] for n in places), key=_case_of)
    for n, item in zip(places, by_case, strict=True):
        items[n] = item
    items.sort(key=_without_spark)


def _leave_some_out(items: list[pytest.Item]) -> None:
    """Of a test with the mark one_in(n) the gate runs one of n cases, drawn by their names; the others are `long`.

    With each="parameter" it does so for each value of the parameter, so that every value has a case.
    """
    cases: dict[tuple[str, Any], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None and not item.get_closest_marker("long"):
            each = mark.kwargs.get("each")
            value = None if each is None else _parameters(item)[each]
            cases.setdefault((item.nodeid.partition("[")[0], value), []).append(item)
    for own in cases.values():
        mark = own[0].get_closest_marker("one_in")
        assert mark is not None
        drawn = sorted(own, key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in drawn[math.ceil(len(own) / mark.args[0]) :]:
            item.add_marker(pytest.mark.long)


def _without_spark(item: pytest.Item) -> bool:
    """Tests that need Spark come first, so that one process takes them all and warms one JVM up.

    Each process begins with as many tests that follow each other, and later takes from the end of what others have.
    """
    return item.get_closest_marker("spark") is None


def _case_of(item: pytest.Item) -> Any:
    """Which case of tests/slt a test is of; None of most."""
    return _parameters(item).get("case_id")


def _parameters(item: pytest.Item) -> dict[str, Any]:
    """The parameters of a test, by name."""
    called = getattr(item, "callspec", None)
    return called.params if called else {}


def pytest_collection_finish() -> None:
    """What collecting has made stays to the end: no collection of garbage looks at it again.

    Later ones come less often than Python's own 700 objects apart: they took a twelfth of the time of all tests.
    """
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test compiles its queries quickly, unless it is of what the optimiser makes of them."""
    optimised = item.get_closest_marker("optimised") or item.get_closest_marker("long")
    os.environ["CQ_OPTIMISE"] = "full" if optimised else "little"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: text equals the file tests/golden/<name>, or becomes it under --update."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{name} is missing; pytest --update writes it"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Commands that a test starts can be interrupted, also where tests run in the background of a shell or by nohup."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
