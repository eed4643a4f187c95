"""Reads damaged copies of a file in a process of its own: `damage.py FILE SEED COUNT`.

Prints one line a copy: what was done to it, and either the number of rows or the code of the error. Anything else, a
traceback or the end of the process, is what the test looks for.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

from connectors_fixture import read, stream

COLUMNS = "id bigint, name varchar, p double, ts timestamp"


def damaged(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """A copy with one thing wrong."""
    match rng.randrange(5):
        case 0:
            cut = rng.randrange(len(data))
            return f"cut at {cut}", data[:cut]
        case 1:
            at, bit = rng.randrange(len(data)), rng.randrange(8)
            return f"bit {bit} of byte {at}", data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
        case 2:
            at, size = rng.randrange(len(data)), rng.randrange(1, 64)
            return f"{size} zeros at {at}", data[:at] + bytes(size) + data[at + size :]
        case 3:
            at, size = rng.randrange(len(data)), rng.randrange(1, 64)
            return f"{size} bytes gone at {at}", data[:at] + data[at + size :]
        case _:
            at = rng.randrange(len(data))
            return f"noise at {at}", data[:at] + rng.randbytes(8) + data[at + 8 :]


def main(path: Path, seed: int, count: int) -> None:
    data = path.read_bytes()
    copy = path.with_name(f"copy{path.suffix}")
    rng = random.Random(seed)
    for _ in range(count):
        what, bad = damaged(data, rng)
        print(what, end=": ", flush=True)
        copy.write_bytes(bad)
        seen = read(stream(COLUMNS, path=str(copy)))
        print(len(seen.rows) if seen.error is None else seen.error.code, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
