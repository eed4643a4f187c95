"""The options of every connector: one table, from which the binder checks a WITH clause and the docs list what exists.

Values are kept as text; the binder has already checked that they can be read as their kind, and has put words (CHOICE
and BOOLEAN) in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping

from cq.connectors.formats import CODECS, FORMATS, PLAIN, WRITTEN
from cq.connectors.option_kinds import OptionDef, OptionKind
from cq.entries import refuse

_ON_ERROR = OptionDef(
    OptionKind.CHOICE,
    "how to handle unreadable rows: stop the query, skip and count them, or write them to the file of bad rows",
    "fail",
    ("fail", "skip", "dead_letter"),
)
LATE_STREAM = "stream:"
_LATE = OptionDef(
    OptionKind.CHOICE,
    "how to handle late rows at the first operator that needs event time: drop and count them, or stop the query; "
    "'stream:NAME' drops and counts them there, and gives them all as the stream NAME",
    "drop",
    ("drop", "fail"),
    named=LATE_STREAM,
)
_FORMAT = OptionDef(
    OptionKind.CHOICE,
    "file format; by default taken from the file name; json has one object per line",
    choices=tuple(FORMATS),
)
_COMPRESSION = OptionDef(
    OptionKind.CHOICE,
    "how a csv or json file is packed as a whole; by default taken from the file name",
    choices=(*CODECS.values(), PLAIN),
)
_SINK_COMPRESSION = OptionDef(
    OptionKind.CHOICE,
    "how to pack a csv or json file as a whole; by default taken from the file name",
    choices=(*WRITTEN, PLAIN),
)
_STDIN_FORMAT = OptionDef(
    OptionKind.CHOICE,
    "input format; by default taken from the first bytes: csv where they say nothing else",
    choices=_FORMAT.choices,
)
_STDIN_COMPRESSION = OptionDef(
    OptionKind.CHOICE,
    "how csv or json is packed as a whole; by default taken from the first bytes",
    choices=_COMPRESSION.choices,
)
_GUESS_ROWS = OptionDef(
    OptionKind.INTEGER,
    "csv, json: from how many rows columns are guessed that are not declared; by default the first MiB, or all",
    low=1,
)
_SINK_FORMAT = OptionDef(
    OptionKind.CHOICE,
    "output format; by default taken from the file name; json has one object per line",
    choices=tuple(FORMATS),
)
_STDOUT_FORMAT = OptionDef(
    OptionKind.CHOICE, "output format", "csv", tuple(f.name for f in FORMATS.values() if f.pipes)
)
_OF_FORMATS = {key: said for format_ in FORMATS.values() for key, said in format_.options.items()}
_OF_WRITTEN_FORMATS = {key: said for format_ in FORMATS.values() for key, said in format_.sink_options.items()}
ROW_OPTIONS: Mapping[str, OptionDef] = {"on_error": _ON_ERROR, "late": _LATE}

SOURCE_OPTIONS: Mapping[str, Mapping[str, OptionDef]] = {
    "file": {
        "path": OptionDef(
            OptionKind.PATH,
            "a file, or a pattern such as day/*.csv; files are read in order of their names",
            required=True,
        ),
        "format": _FORMAT,
        "compression": _COMPRESSION,
        "follow": OptionDef(
            OptionKind.BOOLEAN,
            "csv, json: whether to wait for more rows at the end of the file, as tail -F does",
            "false",
        ),
        "guess_rows": _GUESS_ROWS,
        "union_by_name": OptionDef(
            OptionKind.BOOLEAN,
            "of several files: whether the columns are those of all of them, NULL where a file lacks one; "
            "otherwise those of the first file, which all others must have",
            "false",
        ),
        "bad_rows": OptionDef(OptionKind.PATH, "the file to which on_error = 'dead_letter' writes unreadable rows"),
        **_OF_FORMATS,
        **ROW_OPTIONS,
    },
    "memory": dict(ROW_OPTIONS),
    "stdin": {
        "format": _STDIN_FORMAT,
        "compression": _STDIN_COMPRESSION,
        "guess_rows": _GUESS_ROWS,
        **_OF_FORMATS,
        **ROW_OPTIONS,
    },
    "generator": {
        "workload": OptionDef(
            OptionKind.TEXT, "the workload to generate; its parameters are options too", required=True
        ),
        "rows": OptionDef(
            OptionKind.INTEGER, "number of rows; without it the stream is unbounded, unless the workload ends by itself"
        ),
        **ROW_OPTIONS,
    },
}

SINK_OPTIONS: Mapping[str, Mapping[str, OptionDef]] = {
    "file": {
        "path": OptionDef(
            OptionKind.PATH, "the file to write; an existing file is replaced when the query finishes", required=True
        ),
        "format": _SINK_FORMAT,
        "compression": _SINK_COMPRESSION,
        "partition_by": OptionDef(
            OptionKind.TEXT,
            "columns, such as 'day, city': path is a directory then, with a file for each value",
        ),
        **_OF_WRITTEN_FORMATS,
    },
    "memory": {},
    "stdout": {"format": _STDOUT_FORMAT, **_OF_WRITTEN_FORMATS},
    "discard": {},
}

for _connector, _options in (*SOURCE_OPTIONS.items(), *SINK_OPTIONS.items()):
    for _key, _option in _options.items():
        refuse(f"option {_key} of {_connector}", _option.problems())

BY_NAME = "write union_by_name = 'true' in WITH, or pass -w union_by_name=true to cq run and cq schema"

OPEN_CONNECTORS = frozenset({"generator"})
"""Connectors with options of their own beyond the table: they check those themselves, when the schema is asked for."""


def option(options: Mapping[str, str], key: str) -> str:
    """The value of an option of a source: as written, else the default in the table; empty when there is neither."""
    known = SOURCE_OPTIONS.get(options.get("connector", "file"), {})
    return options.get(key, known[key].default if key in known else "")
