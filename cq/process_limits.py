"""How many processors and how much memory this process may use: the machine, CPU affinity and control groups.

Containers and service managers limit a process by control groups, which neither `os.cpu_count` nor the size of the
machine's memory shows. Every function reads files below `root`, so tests hand it a directory of their own. Limits of
groups and the size of the memory are read once in a process, the affinity each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

ROOT = Path("/")
MOUNTS = "sys/fs/cgroup"
NO_LIMIT_BYTES = 1 << 60  # version 1 writes "no limit" as a number a little below 2^63


def usable_cpus(root: Path = ROOT) -> int:
    """Processors this process may keep busy: those in its affinity, and no more than its group's quota.

    A fraction of a processor does not count, but the result is at least one: a worker that has used up the quota is
    stopped for the rest of the period, and so is everything that waits for its rows.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota(root)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def usable_sockets(root: Path = ROOT) -> tuple[tuple[int, ...], ...]:
    """The processors in the affinity of this process, by socket; all on one if that is unknown."""
    found: dict[str, list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        place = _read(root / f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id").strip()
        found.setdefault(place, []).append(cpu)
    return tuple(map(tuple, found.values()))


def usable_memory_bytes(root: Path = ROOT) -> int | None:
    """The smallest of the machine's memory and the limits of the group and its parents; None when unknown."""
    known = [n for n in (_machine_bytes(root), memory_limit_bytes(root)) if n is not None]
    return min(known, default=None)


@lru_cache(maxsize=4)
def cpu_quota(root: Path = ROOT) -> float | None:
    """How many processors the control groups of this process grant it; None without a quota."""
    quotas = []
    for directory in _groups(root, ""):
        words = _read(directory / "cpu.max").split()  # version 2: "200000 100000", or "max 100000"
        if len(words) == 2:
            quotas.append(_share(*words))
    for directory in _groups(root, "cpu"):
        quotas.append(_share(_read(directory / "cpu.cfs_quota_us"), _read(directory / "cpu.cfs_period_us")))
    return min((q for q in quotas if q is not None), default=None)


@lru_cache(maxsize=4)
def memory_limit_bytes(root: Path = ROOT) -> int | None:
    """How many bytes the control groups of this process let it use; None without a limit."""
    limits = [_number(_read(directory / "memory.max")) for directory in _groups(root, "")]
    limits += [_number(_read(directory / "memory.limit_in_bytes")) for directory in _groups(root, "memory")]
    return min((n for n in limits if n is not None and 0 < n < NO_LIMIT_BYTES), default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The directories of the process's group and its parents. controller: of version 1; "" is version 2."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        listed = names.split(",")
        if controller not in listed or (controller == "") != (number == "0"):
            continue
        mounts = [root / MOUNTS / "unified", root / MOUNTS] if not controller else [root / MOUNTS / names]
        if controller and not mounts[0].is_dir():  # mounted separately, or as a link
            mounts = [root / MOUNTS / controller]
        group = PurePosixPath(path.lstrip("/"))
        for mount in mounts:
            # inside a container the path may be that of the host, which is not mounted: then the mount is the group
            yield from (mount / above for above in (group, *group.parents))


def _share(quota: str, period: str) -> float | None:
    spent, every = _number(quota), _number(period)
    return spent / every if spent is not None and every is not None and spent > 0 and every > 0 else None


@lru_cache(maxsize=4)
def _machine_bytes(root: Path) -> int | None:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal" and (kib := _number(value.split()[0])) is not None:
            return kib << 10
    return None


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
