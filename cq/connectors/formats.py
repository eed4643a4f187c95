"""File formats and compression: the entry of a format says everything that others need to know about it.

To add a format, register it here and write its reader (`readings/`) and its writer (`sinks/writers.py`). This file is
also loaded where only names matter, so an entry names its code by module and attribute.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from cq.connectors.option_kinds import OptionDef, OptionKind
from cq.entries import enter
from cq.errors import Diagnostic, UsageError
from cq.records import dataclass

CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
WRITTEN = ("gzip", "zstd")
PLAIN = "none"


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    name: as in options and -f.  title: for people.
    endings: file name endings, each with the options it implies.
    magics: the first bytes of its inputs; none: it is detected by its rows.
    packs: whether a file may be compressed as a whole; otherwise its parts are.
    grows: whether an unfinished file is readable: then it can be followed, and written forever.  pipes: whether a pipe
    can be written in it.
    months: whether a reader can recognise an INTERVAL of months.
    options, sink_options: options of a WITH clause for this format alone.
    reading: the TextReading or TypedReading (readings/protocol.py).  sink: the function that opens a sink
    (sinks/writers.py).
    """

    name: str
    title: str
    endings: Mapping[str, Mapping[str, str]]
    magics: tuple[bytes, ...]
    packs: bool
    grows: bool
    pipes: bool
    months: bool
    options: Mapping[str, OptionDef]
    sink_options: Mapping[str, OptionDef]
    reading: str
    sink: str


FORMATS: dict[str, Format] = {}


def register(format_: Format) -> None:
    """Add this format to sources and sinks. Its code is not loaded: only the existence of the modules is checked."""
    enter(FORMATS, format_.name, format_, "format", _problems(format_))


def _problems(format_: Format) -> Iterator[str]:
    for ending, stands_for in format_.endings.items():
        if os.path.splitext(f"x{ending.lower()}")[1] != ending or ending in {"", *CODECS}:
            yield f"{ending!r} is no ending: a point and small letters, and not that of a packed file"
        yield from (f"{ending} stands for the unknown option {o}" for o in stands_for if o not in format_.options)
    for key, said in (*format_.options.items(), *format_.sink_options.items()):
        yield from (f"its option {key} {problem}" for problem in said.problems())
    yield from (
        f"{place} names no module and attribute" for place in (format_.reading, format_.sink) if not is_there(place)
    )
    for other in FORMATS.values():
        yield from (f"{ending} is an ending of {other.name}" for ending in format_.endings if ending in other.endings)
        pairs = ((m, o) for m in format_.magics for o in other.magics if m.startswith(o) or o.startswith(m))
        yield from (f"files of {other.name} begin with {o!r}, its own with {m!r}" for m, o in pairs)
        options = ((format_.options, other.options), (format_.sink_options, other.sink_options))
        again = (k for mine, others in options for k, said in mine.items() if others.get(k, said) != said)
        yield from (f"its option {key} is another one than that of {other.name}" for key in again)


def is_there(place: str) -> bool:
    """Whether the module exists; its attribute is checked when it is loaded."""
    module, _, attribute = place.partition(":")
    try:
        return attribute.isidentifier() and find_spec(module) is not None
    except (ImportError, ValueError):
        return False


CSV_OPTIONS: Mapping[str, OptionDef] = {
    "header": OptionDef(OptionKind.BOOLEAN, "csv: whether the first line contains the column names", "true"),
    "delimiter": OptionDef(OptionKind.CHARACTER, "csv: field separator", ",", ("tab", r"\t")),
    "quote": OptionDef(
        OptionKind.CHARACTER, "csv: quote character for fields that contain separators; empty for none", '"', ("",)
    ),
    "null": OptionDef(
        OptionKind.TEXT,
        "csv: unquoted text to read as NULL, or several separated by commas: ',NA,N/A' is the empty text, NA and N/A",
        "",
    ),
}
NAN = OptionDef(
    OptionKind.CHOICE,
    'json: how to write NaN and infinities: null, or text such as "nan", which reads back as the same value',
    "null",
    ("null", "text"),
)
register(
    Format(
        "csv",
        "CSV",
        endings={".csv": {}, ".tsv": {"delimiter": "\t"}, ".txt": {}},
        magics=(),
        packs=True,
        grows=True,
        pipes=True,
        months=True,
        options=CSV_OPTIONS,
        sink_options={key: CSV_OPTIONS[key] for key in ("header", "delimiter")},
        reading="cq.connectors.readings.csv:READING",
        sink="cq.connectors.sinks.writers:csv_sink",
    )
)
register(
    Format(
        "json",
        "JSON",
        endings={".json": {}, ".jsonl": {}, ".ndjson": {}},
        magics=(),
        packs=True,
        grows=True,
        pipes=True,
        months=True,
        options={},
        sink_options={"nan": NAN},
        reading="cq.connectors.readings.json:READING",
        sink="cq.connectors.sinks.writers:json_sink",
    )
)
register(
    Format(
        "parquet",
        "Parquet",
        endings={".parquet": {}, ".pq": {}},
        magics=(b"PAR1",),
        packs=False,
        grows=False,
        pipes=False,
        months=False,
        options={},
        sink_options={},
        reading="cq.connectors.readings.parquet:READING",
        sink="cq.connectors.sinks.writers:parquet_sink",
    )
)
register(
    Format(
        "arrow",
        "Arrow",
        endings={".arrow": {}, ".arrows": {}, ".feather": {}, ".ipc": {}},
        magics=(b"ARROW1", b"\xff\xff\xff\xff"),
        packs=False,
        grows=False,
        pipes=True,
        months=False,
        options={},
        sink_options={},
        reading="cq.connectors.readings.arrow:READING",
        sink="cq.connectors.sinks.writers:arrow_sink",
    )
)


def loaded(place: str) -> Any:
    """The object that a format names by `module:attribute`."""
    module, attribute = place.split(":")
    return getattr(importlib.import_module(module), attribute)


def _ending(path: str) -> str:
    """The ending of a name that shows the format, not the compression."""
    stem, ending = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if ending in CODECS else ending


def ending_format(path: str) -> str:
    """The format the ending of a name implies; empty when there is none."""
    ending = _ending(path)
    return next((f.name for f in FORMATS.values() if ending in f.endings), "")


def format_of(path: str, given: str = "") -> str:
    """The name of a format: as given, else by the ending of the name; CQ0602 when neither is known."""
    found = given.lower() or ending_format(path)
    if not found:
        cause = f'the extension of "{path}" names no format'
        *first, last = (f"'{name}'" for name in FORMATS)
        ways = (
            f"set the option format = {', '.join(first)} or {last}",
            "pass -w format=csv to cq run, or -f csv to cq schema",
        )
        raise UsageError(Diagnostic("CQ0602", cause, help=ways))
    return found


def with_ending(options: Mapping[str, str], path: str) -> dict[str, str]:
    """The options plus those implied by the ending of the name, where nothing else gives the format."""
    return {**({} if options.get("format") else options_of_ending(path)), **options}


def options_of_ending(path: str) -> Mapping[str, str]:
    """The options that the ending of a name implies: for .tsv the delimiter."""
    found = FORMATS.get(ending_format(path))
    return found.endings[_ending(path)] if found is not None else {}


def output_formats() -> dict[str, dict[str, str]]:
    """What -f takes, and the options of a sink for each: the formats, and endings that stand for options, as tsv."""
    found = {name: {"format": name} for name in FORMATS}
    for format_ in FORMATS.values():
        for ending, options in format_.endings.items():
            if options:
                found.setdefault(ending[1:], {"format": format_.name, **options})
    return found


def codec_of(path: str, given: str, format_: str) -> str:
    """The codec as given, else by the ending of the name; empty for none. CQ0602 for a format that compresses its
    parts.

    format_: empty where only the rows show it.
    """
    codec = given or CODECS.get(os.path.splitext(path.lower())[1], "")
    if codec in {"", PLAIN}:
        return ""
    if format_ and not FORMATS[format_].packs:
        cause = f'"{path}" cannot be {format_} and compressed: {format_} files are compressed internally'
        ways = (
            "leave the option out, and remove the extension from the name"
            if given
            else "remove the extension from the name",
        )
        raise UsageError(Diagnostic("CQ0602", cause, help=ways))
    return codec
