"""The Spark session of the test run: one JVM, opened by the first test that asks and closed at the end.

Import `spark` where it is needed (a conftest, or the test file): all share the one session. Temp views are shared too,
so tests take a name from `view_name`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

_serials = itertools.count()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from cq.spark.session import close_session, open_session

    yield open_session("small")
    close_session()


def view_name() -> str:
    """A name no other temp view of this run has."""
    return f"v{next(_serials)}"
