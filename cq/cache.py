"""The cache directory, kept between runs, and whether it is ours alone.

It contains code: whoever can write it can run as us. So it must belong to us, nobody else may write it, and nobody else
may be able to rename it or a directory above it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def cache_directory() -> Path | None:
    """`$CQ_CACHE_DIR` (set but empty: no cache), else `cq` under the user's cache directory."""
    named = os.environ.get("CQ_CACHE_DIR")
    if named is not None:
        return Path(named).absolute() if named else None
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "cq"
    home = Path.home()
    return home / ".cache" / "cq" if home.is_absolute() else None


def open_directory(path: Path) -> int:
    """A descriptor of the directory, created if needed, after it and its parents were found safe; else OSError."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for parent in path.resolve().parents:
        entry = os.stat(parent)
        shared = entry.st_mode & 0o022 and not entry.st_mode & stat.S_ISVTX
        if shared or entry.st_uid not in {0, os.geteuid()}:
            raise PermissionError(f"others can change {parent}, a parent of the cache directory")
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not is_ours(os.fstat(descriptor)):
        os.close(descriptor)
        raise PermissionError(f"others can write to the cache directory {path}")
    return descriptor


def is_ours(entry: os.stat_result) -> bool:
    """Whether a file or directory belongs to us and nobody else can write to it."""
    return entry.st_uid == os.geteuid() and not entry.st_mode & 0o022
