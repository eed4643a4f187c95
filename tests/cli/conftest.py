"""Every test of the command line runs in a directory of its own, with a query and its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import PER_MINUTE, ROWS


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory: bids.csv, and q.cq over it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bids.csv").write_text(ROWS)
    (tmp_path / "q.cq").write_text(PER_MINUTE)
    return tmp_path
