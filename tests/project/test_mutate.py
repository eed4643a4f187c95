"""A test sees a planted bug if it fails or never ends with it, and not if it is merely slow."""

from __future__ import annotations

import pytest
from mutate import Mutant
from paths import SUPPORT

PLACES, OLD = (
    "cq.runtime.engine.ways.placement",
    "    return tuple(share for share, owner in enumerate(owners) if owner == worker)\n",
)
AS_GOOD, BUG = OLD.replace("tuple(", "tuple(sorted(").replace(")\n", "))\n"), OLD.replace(")\n", ")[1:]\n")


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("test", "new", "seen", "hangs"),
    [
        pytest.param("slow", AS_GOOD, False, False, id="tests take their time and pass"),
        pytest.param("slow", BUG, True, False, id="a test fails"),
        pytest.param("waiting", BUG, True, True, id="a test never ends with the bug"),
        pytest.param("endless", BUG, False, True, id="a test never ends, nor does it without the bug"),
    ],
)
def test_a_bug_is_seen(test: str, new: str, seen: bool, hangs: bool) -> None:
    """Each test has one second of the processor."""
    verdict = Mutant(PLACES, OLD, new, ()).tried([f"{SUPPORT}/timed_tests.py::test_{test}"], cpu_seconds=1)
    assert (verdict.seen, verdict.hangs) == (seen, hangs), verdict.said
