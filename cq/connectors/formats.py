"""Which format a file has, and how it is packed, as is written or by its name."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cq.errors import Diagnostic, UsageError

ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}

TEXT_FORMATS = ("csv", "json")
CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
WRITTEN = ("gzip", "zstd")
PLAIN = "none"
TABBED = (".tsv", ".tsv.gz", ".tsv.zst")


def ending_format(path: str) -> str:
    """The format the ending of a name stands for; empty when it stands for none."""
    stem, ending = os.path.splitext(path.lower())
    return ENDINGS.get(os.path.splitext(stem)[1] if ending in CODECS else ending, "")


def format_of(path: str, given: str = "") -> str:
    """csv, json, parquet or arrow: as given, else by the ending of the name; CQ0602 when neither says."""
    found = given.lower() or ending_format(path)
    if not found:
        cause = f'the ending of "{path}" names no format'
        ways = (
            "set the option format = 'csv', 'json', 'parquet' or 'arrow'",
            "to cq run: -w format=csv, to cq schema: -f csv",
        )
        raise UsageError(Diagnostic("CQ0602", cause, help=ways))
    return found


def tabbed(options: Mapping[str, str], path: str) -> dict[str, str]:
    """The options, with a tab as delimiter where only the ending of the name says what the file is."""
    says = not options.get("format") and path.lower().endswith(TABBED)
    return {**({"delimiter": "\t"} if says else {}), **options}


def codec_of(path: str, given: str, format_: str) -> str:
    """The codec as given, else by the ending of the name; empty for none. CQ0602 for a format that packs its parts."""
    codec = given or CODECS.get(os.path.splitext(path.lower())[1], "")
    if codec in {"", PLAIN}:
        return ""
    if format_ not in TEXT_FORMATS:
        cause = f'"{path}" cannot be {format_} and packed: {format_} files are packed inside'
        ways = ("leave the option out, and the ending of the name" if given else "leave the ending of the name out",)
        raise UsageError(Diagnostic("CQ0602", cause, help=ways))
    return codec
