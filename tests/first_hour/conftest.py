"""Every test of the first hour runs in a directory of its own, with the files a newcomer may have."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

TRIPS = "id,zip,fare,ts\n1,00501,2.5,2024-01-01 00:00:10\n2,10001,4,2024-01-01 00:00:05\n3,,0.5,2024-01-01 00:02:00\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory: trips.csv, packed under day/ as well; semi.csv with another delimiter; people.jsonl."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trips.csv").write_text(TRIPS)
    (tmp_path / "semi.csv").write_text("id;v\n1;x\n2;y\n")
    (tmp_path / "people.jsonl").write_text('{"id": 1, "name": "Ann"}\n{"id": 2, "name": null}\n')
    (tmp_path / "day").mkdir()
    for name in "ab":
        (tmp_path / "day" / f"{name}.csv.gz").write_bytes(gzip.compress(TRIPS.encode()))
    return tmp_path
