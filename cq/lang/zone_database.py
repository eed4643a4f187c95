"""The IANA time zone database that Python finds: the system's, or that of the package tzdata.

A separate module, loaded with the first zone that a query names: its imports take longer than the rest of a small
query's planning.
"""

from __future__ import annotations

import importlib.resources
import zoneinfo
from datetime import tzinfo
from pathlib import Path


def opened(name: str) -> tzinfo | None:
    """The zone with that name; None if the database has none."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def names() -> set[str]:
    """All names in the database; none if there is no database."""
    return zoneinfo.available_timezones()


def content(name: str) -> bytes:
    """The file (RFC 8536) of a zone opened by `opened`."""
    for folder in zoneinfo.TZPATH:
        path = Path(folder, *name.split("/"))
        if path.is_file():
            return path.read_bytes()
    *rooms, last = name.split("/")
    return importlib.resources.files(".".join(("tzdata.zoneinfo", *rooms))).joinpath(last).read_bytes()
