"""What tests of the command line share: a query and its rows (tests/cli/conftest.py), and ways to call `cq`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cq.cli import execute

BIDS = """CREATE STREAM bid (id BIGINT, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'file', path = 'bids.csv');
"""
PER_MINUTE = (
    BIDS
    + """SELECT window_start, COUNT(*) AS n, SUM(price) AS total
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end;
"""
)
ROWS = "id,price,ts\n1,1.5,2024-01-01 00:00:10\n2,2,2024-01-01 00:00:20\n3,,2024-01-01 00:01:00\n"
RESULT = "window_start,n,total\n2024-01-01 00:00:00,2,3.5\n2024-01-01 00:01:00,1,\n"


def cq(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr); queries run on the reference unless an engine is named."""
    code = execute(list(arguments))
    out, err = capfd.readouterr()
    return code, out, without_progress(err)


def without_progress(err: str) -> str:
    """The text without progress messages, which depend on how busy the machine is."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("cq: "))


def ref(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return cq(capfd, "run", "--engine", "reference", *arguments)


def outside(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a separate process, and drop its progress messages."""
    command = [sys.executable, "-m", "cq", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, **options)  # type: ignore[call-overload]
    done.stderr = without_progress(done.stderr.decode()).encode()
    return done  # type: ignore[no-any-return]
