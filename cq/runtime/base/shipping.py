"""Compile the runtime for the portable target into a directory: `python -m cq.runtime.base.shipping DIRECTORY`.

The build of a wheel calls it, so that the first run on a machine compiles only the query.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from cq.runtime.base.interpret import GENERATORS, LIBRARY, READERS, WRITERS
from cq.runtime.base.kernel import compile_modules
from cq.runtime.base.link import portable
from cq.runtime.base.modules import shipped_name

GROUPS = (LIBRARY, GENERATORS, READERS, WRITERS)


def ship(directory: Path, groups: Sequence[Sequence[str]] = GROUPS) -> int:
    """Write the objects of all modules to the directory; return how many, 0 if no code is shipped for the machine."""
    target = portable()
    if target is None:
        return 0
    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for group in groups:
        for module, made in compile_modules(group, target).items():
            (directory / shipped_name(module)).write_bytes(made.pack())
            count += 1
    return count


if __name__ == "__main__":
    print(ship(Path(sys.argv[1])))
