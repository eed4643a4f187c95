"""Files that FROM names by their paths: `FROM 'trips.parquet'`, `FROM 'day/*.csv.gz'`, `FROM '-'`."""

from __future__ import annotations

import re
from collections.abc import Collection

from cq.connectors.access import STDIN

PATTERN_SIGNS = "*?["


def names_file(name: str) -> bool:
    """Whether an otherwise unknown name in double quotes is the path of a file: its ending says so."""
    if "." not in name:
        return False
    from cq.connectors.formats import ending_format

    return bool(ending_format(name))


def file_options(path: str) -> dict[str, str]:
    """The WITH options implied for such a file."""
    return {"connector": "stdin"} if path == STDIN else {"connector": "file", "path": path}


def stream_name(path: str, taken: Collection[str]) -> str:
    """An unused name for the stream: that of the file without its endings, or of a pattern's directory."""
    parts = [p for p in path.split("/") if p not in {"", ".", ".."}]
    plain = [p for p in parts if not any(sign in p for sign in PATTERN_SIGNS)] or parts
    last = plain[-1].split(".")[0] if plain else ""
    stem = "stdin" if path == STDIN else re.sub(r"\W+", "_", last.lower()).strip("_") or "file"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name
