"""The options of every connector: one table, from which the binder checks a WITH clause and the docs list what exists.

Values are kept as text; the binder has already checked that they can be read as their kind, and has put words (CHOICE
and BOOLEAN) in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from cq.records import dataclass


class OptionKind(Enum):
    """What an option's text must be readable as."""

    TEXT = "text"
    INTEGER = "a whole number"
    BOOLEAN = "true or false"
    CHOICE = "one of a few words"
    PATH = "a path"
    CHARACTER = "one ASCII character"


@dataclass(frozen=True, slots=True)
class OptionDef:
    """One option. default: empty when there is none.  choices: for CHOICE, and what a CHARACTER may be besides one.

    low: the least INTEGER allowed.  named: the beginning of a further choice, which ends in a name.
    """

    kind: OptionKind
    doc: str
    default: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    low: int = 0
    named: str = ""

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        choices = (*self.choices, *([f"{self.named}NAME"] if self.named else []))
        if self.kind is OptionKind.CHARACTER:
            return ", or ".join([self.kind.value, *(choice or "empty" for choice in choices)])
        return "one of " + ", ".join(choices) if self.kind is OptionKind.CHOICE else self.kind.value

    @property
    def is_word(self) -> bool:
        """Whether it does not matter how its letters are written."""
        return self.kind in {OptionKind.CHOICE, OptionKind.BOOLEAN}

    def accepts(self, text: str) -> bool:
        """Whether `text` can be read as this option's kind."""
        match self.kind:
            case OptionKind.CHOICE:
                word = text.lower()
                named = bool(self.named) and word.startswith(self.named) and word[len(self.named) :].isidentifier()
                return named or word in self.choices
            case OptionKind.BOOLEAN:
                return text.lower() in {"true", "false"}
            case OptionKind.INTEGER:
                return text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= self.low
            case OptionKind.PATH:
                return bool(text) and "\0" not in text
            case OptionKind.CHARACTER:
                return text in self.choices or (len(text) == 1 and text.isascii() and text not in "\r\n\0")
            case OptionKind.TEXT:
                return True


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
    choices=("csv", "json", "parquet", "arrow"),
)
_COMPRESSION = OptionDef(
    OptionKind.CHOICE,
    "how a csv or json file is packed as a whole; by default taken from the file name",
    choices=("gzip", "zstd", "bz2", "lz4", "none"),
)
_SINK_COMPRESSION = OptionDef(
    OptionKind.CHOICE,
    "how to pack a csv or json file as a whole; by default taken from the file name",
    choices=("gzip", "zstd", "none"),
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
    choices=("csv", "json", "parquet", "arrow"),
)
_STDOUT_FORMAT = OptionDef(OptionKind.CHOICE, "output format", "csv", ("csv", "json", "arrow"))
CSV_OPTIONS: Mapping[str, OptionDef] = {
    "header": OptionDef(OptionKind.BOOLEAN, "csv: whether the first line contains the column names", "true"),
    "delimiter": OptionDef(OptionKind.CHARACTER, "csv: field separator", ",", ("tab", r"\t")),
    "quote": OptionDef(
        OptionKind.CHARACTER, "csv: quote character for fields that contain separators; empty for none", '"', ("",)
    ),
    "null": OptionDef(
        OptionKind.TEXT,
        "csv: unquoted text to read as NULL; several are divided by commas: ',NA,N/A' is the empty text, NA and N/A",
        "",
    ),
}
_NAN = OptionDef(
    OptionKind.CHOICE,
    'json: how to write NaN and infinities: null, or text such as "nan", which reads back as the same value',
    "null",
    ("null", "text"),
)
_SINK_CSV = {key: CSV_OPTIONS[key] for key in ("header", "delimiter")}
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
        **CSV_OPTIONS,
        **ROW_OPTIONS,
    },
    "memory": dict(ROW_OPTIONS),
    "stdin": {
        "format": _STDIN_FORMAT,
        "compression": _STDIN_COMPRESSION,
        "guess_rows": _GUESS_ROWS,
        **CSV_OPTIONS,
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
        "nan": _NAN,
        "partition_by": OptionDef(
            OptionKind.TEXT,
            "columns, such as 'day, city': path is a directory then, with a file for each value",
        ),
        **_SINK_CSV,
    },
    "memory": {},
    "stdout": {"format": _STDOUT_FORMAT, "nan": _NAN, **_SINK_CSV},
    "discard": {},
}

BY_NAME = "union_by_name = 'true' in WITH; to cq run and cq schema: -w union_by_name=true"

OPEN_CONNECTORS = frozenset({"generator"})
"""Connectors with options of their own beyond the table: they check those themselves, when the schema is asked for."""


def option(options: Mapping[str, str], key: str) -> str:
    """The value of an option of a source: as written, else the default in the table; empty when there is neither."""
    known = SOURCE_OPTIONS.get(options.get("connector", "file"), {})
    return options.get(key, known[key].default if key in known else "")
