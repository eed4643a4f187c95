"""The cores this process may run on, as the operating system shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Core:
    """A hardware thread: its number, the physical core it shares with others, and the socket that core is in."""

    cpu: int
    core: int
    socket: int


def cores(root: Path = CPUS) -> tuple[Core, ...]:
    """Every hardware thread we may use, by socket, then core. Where nothing is known each is a core of socket 0."""
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    found = []
    for cpu in allowed:
        topology = root / f"cpu{cpu}" / "topology"
        found.append(Core(cpu, _number(topology / "core_id", cpu), _number(topology / "physical_package_id", 0)))
    return tuple(sorted(found, key=lambda c: (c.socket, c.core, c.cpu)))


def _number(path: Path, unknown: int) -> int:
    try:
        return max(0, int(path.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return unknown
