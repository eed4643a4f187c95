"""The Spark session of the test run: one JVM, opened by the first test that asks and closed at the end.

Import `spark` where it is needed (a conftest, or the test file): all share one session. Temp views are shared too, so
tests take a name from `view_name`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

_serials = itertools.count()


INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[Any]:
    """The session; in the gate Spark interprets expressions.

    Compiling Java for a few rows took a third of the time of these tests (71 CPU seconds, 50 without, for 37 cases of
    tests/slt). Long runs compile, as `cq diff` does.
    """
    pytest.importorskip("pyspark")
    from cq.spark.session import close_session, open_session

    session = open_session("small")
    if "not long" in pytestconfig.getoption("-m"):
        for name, value in INTERPRETED.items():
            session.conf.set(name, value)
    yield session
    close_session()


def view_name() -> str:
    """A name no other temp view of this run has."""
    return f"v{next(_serials)}"
