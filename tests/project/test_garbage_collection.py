"""When Python's garbage collector runs while cq starts."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import cq
from cq.engines import query
from cq.garbage_collection import collector_paused

FIRST_QUERY = """
import gc, pyarrow as pa
rows = pa.table({"a": [1, 2, 3]})
ran = []
gc.callbacks.append(lambda phase, info: ran.append(phase))
import cq
assert cq.run("SELECT a FROM t WHERE a > 1", {"t": rows}, engine="reference").to_pylist() == [{"a": 2}, {"a": 3}]
print(ran.count("start"))
"""
MOST_COLLECTIONS = 40  # 120 without the pauses


def test_the_collector_pauses_and_goes_on_after_a_failure_too() -> None:
    assert gc.isenabled()
    with pytest.raises(KeyError), collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_first_query_is_loaded_and_compiled_without_collections() -> None:
    ran = subprocess.run([sys.executable, "-c", FIRST_QUERY], capture_output=True, text=True, timeout=60, check=True)
    assert int(ran.stdout) <= MOST_COLLECTIONS


def test_collector_runs_while_a_source_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    opened = query.open_feeds

    def spy(*given: object) -> object:
        ran.append(gc.isenabled())
        return opened(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(query, "open_feeds", spy)
    assert cq.sql("SELECT 1 AS one").run(engine="reference").to_pylist() == [{"one": 1}]
    assert ran == [True]
