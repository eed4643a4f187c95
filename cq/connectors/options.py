"""The options of every connector: one table, from which the binder checks a WITH clause and the docs list what exists.

Values are kept as text; the binder has already checked that they can be read as their kind, and has put words (CHOICE
and BOOLEAN) in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class OptionKind(Enum):
    """What an option's text must be readable as."""

    TEXT = "text"
    INTEGER = "a whole number"
    BOOLEAN = "true or false"
    CHOICE = "one of a few words"
    PATH = "a path"


@dataclass(frozen=True, slots=True)
class OptionDef:
    """One option. default: empty when there is none.  choices: for CHOICE.  low: the least INTEGER allowed."""

    kind: OptionKind
    doc: str
    default: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    low: int = 0

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        return "one of " + ", ".join(self.choices) if self.kind is OptionKind.CHOICE else self.kind.value

    @property
    def is_word(self) -> bool:
        """Whether it does not matter how its letters are written."""
        return self.kind in {OptionKind.CHOICE, OptionKind.BOOLEAN}

    def accepts(self, text: str) -> bool:
        """Whether `text` can be read as this option's kind."""
        match self.kind:
            case OptionKind.CHOICE:
                return text.lower() in self.choices
            case OptionKind.BOOLEAN:
                return text.lower() in {"true", "false"}
            case OptionKind.INTEGER:
                return text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= self.low
            case OptionKind.PATH:
                return bool(text) and "\0" not in text
            case OptionKind.TEXT:
                return True


_ON_ERROR = OptionDef(
    OptionKind.CHOICE,
    "what a row that cannot be read does: stop the query, vanish and be counted, or go to the file of bad rows",
    "fail",
    ("fail", "skip", "dead_letter"),
)
_LATE = OptionDef(
    OptionKind.CHOICE,
    "what a late row does at the first operator that needs event time: vanish and be counted, or stop the query",
    "drop",
    ("drop", "fail"),
)
_FORMAT = OptionDef(
    OptionKind.CHOICE,
    "how the bytes are laid out; taken from the name of the file when not given",
    choices=("csv", "parquet", "arrow"),
)
_TEXT_FORMAT = OptionDef(OptionKind.CHOICE, "how the bytes are laid out", "csv", ("csv", "arrow"))
_SINK_FORMAT = OptionDef(
    OptionKind.CHOICE,
    "how the rows are written; taken from the name of the file when not given; json is one object a line",
    choices=("csv", "json", "parquet", "arrow"),
)
_STDOUT_FORMAT = OptionDef(OptionKind.CHOICE, "how the rows are written", "csv", ("csv", "json", "arrow"))
_CSV = {
    "header": OptionDef(OptionKind.BOOLEAN, "csv: the first line holds the names of the columns", "true"),
    "delimiter": OptionDef(OptionKind.TEXT, "csv: what stands between two fields", ","),
    "quote": OptionDef(OptionKind.TEXT, "csv: what stands around a field that holds the others; empty: nothing", '"'),
    "null": OptionDef(OptionKind.TEXT, "csv: the unquoted text that means NULL", ""),
}
_SINK_CSV = {key: _CSV[key] for key in ("header", "delimiter")}
_SOURCE = {"on_error": _ON_ERROR, "late": _LATE}

SOURCE_OPTIONS: Mapping[str, Mapping[str, OptionDef]] = {
    "file": {
        "path": OptionDef(
            OptionKind.PATH, "a file, or a pattern such as day/*.csv; files in order of name", required=True
        ),
        "format": _FORMAT,
        "bad_rows": OptionDef(OptionKind.PATH, "where on_error = 'dead_letter' writes the rows it could not read"),
        **_CSV,
        **_SOURCE,
    },
    "memory": dict(_SOURCE),
    "stdin": {"format": _TEXT_FORMAT, **_CSV, **_SOURCE},
    "generator": {
        "workload": OptionDef(
            OptionKind.TEXT, "which stream to make up; its parameters are options too", required=True
        ),
        "rows": OptionDef(
            OptionKind.INTEGER, "how many rows to make; the stream never ends without it, unless the workload does"
        ),
        **_SOURCE,
    },
}

SINK_OPTIONS: Mapping[str, Mapping[str, OptionDef]] = {
    "file": {
        "path": OptionDef(OptionKind.PATH, "the file to write; replaced when it exists", required=True),
        "format": _SINK_FORMAT,
        **_SINK_CSV,
    },
    "memory": {},
    "stdout": {"format": _STDOUT_FORMAT, **_SINK_CSV},
    "discard": {},
}

OPEN_CONNECTORS = frozenset({"generator"})
"""Connectors with options of their own beyond the table: they check those themselves, when the schema is asked for."""
