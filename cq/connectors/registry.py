"""The connectors: one entry each, with its options and the function that opens it.

To add a connector, register it here and write the function that opens it. This file is also loaded where only options
are checked, so an entry names its code by module and attribute, as a format does. The values of options are kept as
text; the binder has already checked that they can be read as their kind, and has put words (CHOICE and BOOLEAN) in
lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TypeVar

from cq.connectors.formats import CODECS, FORMATS, PLAIN, WRITTEN, is_there
from cq.connectors.option_kinds import OptionDef, OptionKind
from cq.entries import enter
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Connector:
    """What source and sink connectors have in common.

    options: those of a WITH clause.
    takes_more: whether it takes others, which it checks itself when its columns are asked for.
    open: the function that opens it, as module:attribute; it takes a `SourceRequest` (requests.py) or a `SinkRequest`
    (sinks/writers.py).
    """

    name: str
    options: Mapping[str, OptionDef]
    takes_more: bool
    open: str


@dataclass(frozen=True, slots=True)
class SourceConnector(Connector):
    """A connector that streams read from.

    ends: whether its rows end, by its options.
    narrows: whether undeclared, unused columns may be left out when it is opened.
    computes: whether making its rows keeps a processor busy.
    columns: the function, as module:attribute, of options, access and the stream's name that gives its columns
    where they are not declared; empty where they must be.
    """

    ends: Callable[[Mapping[str, str]], bool]
    narrows: bool
    computes: bool
    columns: str


@dataclass(frozen=True, slots=True)
class SinkConnector(Connector):
    """A connector that queries write to."""


SOURCES: dict[str, SourceConnector] = {}
SINKS: dict[str, SinkConnector] = {}

C = TypeVar("C", bound=Connector)


def register_source(connector: SourceConnector) -> None:
    """Add a connector to the sources. Its code is not loaded: only the existence of the modules is checked."""
    places = [connector.open, *([connector.columns] if connector.columns else [])]
    _register(SOURCES, connector, "source", [p for p in places if not is_there(p)])


def register_sink(connector: SinkConnector) -> None:
    """Add a connector to the sinks. Its code is not loaded: only the existence of the module is checked."""
    _register(SINKS, connector, "sink", [] if is_there(connector.open) else [connector.open])


def _register(registry: MutableMapping[str, C], connector: C, kind: str, missing: list[str]) -> None:
    problems = [f"{place} names no module and attribute" for place in missing]
    enter(registry, connector.name, connector, kind, [*problems, *_problems_of_options(connector)])


def _problems_of_options(connector: Connector) -> Iterator[str]:
    for key, said in connector.options.items():
        yield from (f"its option {key} {problem}" for problem in said.problems())


# -- options that several have ---------------------------------------------------------------------------------------

_ON_ERROR = OptionDef(
    OptionKind.CHOICE,
    "how to handle unreadable rows: stop the query, skip and count them, or write them to the file of bad rows",
    "fail",
    ("fail", "skip", "dead_letter"),
)
LATE_STREAM = "stream:"
_LATE = OptionDef(
    OptionKind.CHOICE,
    "how to handle late rows at the first operator that needs event time: drop and count them, or stop "
    "the query; 'stream:NAME' drops and counts them too, and provides them as the stream NAME",
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
    "compression of a csv or json file; by default taken from the file name",
    choices=(*CODECS.values(), PLAIN),
)
_SINK_COMPRESSION = OptionDef(
    OptionKind.CHOICE,
    "compression of a csv or json file; by default taken from the file name",
    choices=(*WRITTEN, PLAIN),
)
_STDIN_FORMAT = OptionDef(
    OptionKind.CHOICE,
    "input format; by default detected from the first bytes, otherwise csv",
    choices=_FORMAT.choices,
)
_STDIN_COMPRESSION = OptionDef(
    OptionKind.CHOICE,
    "compression of csv or json; by default detected from the first bytes",
    choices=_COMPRESSION.choices,
)
_GUESS_ROWS = OptionDef(
    OptionKind.INTEGER,
    "csv, json: number of rows used to infer undeclared columns; by default those in the first MiB",
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

# -- sources ---------------------------------------------------------------------------------------------------------

register_source(
    SourceConnector(
        "file",
        {
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
                "of several files: whether to use the columns of all of them, NULL where a file lacks one; "
                "otherwise those of the first file, which all others must have",
                "false",
            ),
            "bad_rows": OptionDef(OptionKind.PATH, "the file to which on_error = 'dead_letter' writes unreadable rows"),
            **_OF_FORMATS,
            **ROW_OPTIONS,
        },
        takes_more=False,
        open="cq.connectors.files:open_files",
        ends=lambda options: options.get("follow") != "true",
        narrows=True,
        computes=False,
        columns="cq.connectors.inference:columns_of_files",
    )
)
register_source(
    SourceConnector(
        "memory",
        ROW_OPTIONS,
        takes_more=False,
        open="cq.connectors.memory:open_memory",
        ends=lambda options: True,
        narrows=True,
        computes=False,
        columns="",
    )
)
register_source(
    SourceConnector(
        "stdin",
        {
            "format": _STDIN_FORMAT,
            "compression": _STDIN_COMPRESSION,
            "guess_rows": _GUESS_ROWS,
            **_OF_FORMATS,
            **ROW_OPTIONS,
        },
        takes_more=False,
        open="cq.connectors.stdin:open_stdin",
        ends=lambda options: True,
        narrows=True,
        computes=False,
        columns="cq.connectors.inference:columns_of_stdin",
    )
)
register_source(
    SourceConnector(
        "generator",
        {
            "workload": OptionDef(
                OptionKind.TEXT, "the workload to generate; its parameters are options too", required=True
            ),
            "rows": OptionDef(
                OptionKind.INTEGER,
                "number of rows; without it, the stream is unbounded unless the workload itself ends",
            ),
            **ROW_OPTIONS,
        },
        takes_more=True,
        open="cq.connectors.generator:open_generator",
        ends=lambda options: "rows" in options,
        narrows=False,
        computes=True,
        columns="cq.connectors.generator:columns_of_workload",
    )
)

# -- sinks -----------------------------------------------------------------------------------------------------------

register_sink(
    SinkConnector(
        "file",
        {
            "path": OptionDef(
                OptionKind.PATH,
                "the file to write; an existing file is replaced when the query finishes",
                required=True,
            ),
            "format": _SINK_FORMAT,
            "compression": _SINK_COMPRESSION,
            "partition_by": OptionDef(
                OptionKind.TEXT,
                "columns, such as 'day, city'; path is then a directory with a file for each value",
            ),
            **_OF_WRITTEN_FORMATS,
        },
        takes_more=False,
        open="cq.connectors.sinks.writers:open_file",
    )
)
register_sink(SinkConnector("memory", {}, takes_more=False, open="cq.connectors.sinks.writers:open_memory"))
register_sink(
    SinkConnector(
        "stdout",
        {"format": _STDOUT_FORMAT, **_OF_WRITTEN_FORMATS},
        takes_more=False,
        open="cq.connectors.sinks.writers:open_stdout",
    )
)
register_sink(SinkConnector("discard", {}, takes_more=False, open="cq.connectors.sinks.writers:open_discard"))

BY_NAME = "write union_by_name = 'true' in WITH, or pass -w union_by_name=true to cq run and cq schema"


def option(options: Mapping[str, str], key: str) -> str:
    """The value of a source's option: as written, else its default; empty when there is neither."""
    connector = SOURCES.get(options.get("connector", "file"))
    known = connector.options if connector is not None else {}
    return options.get(key, known[key].default if key in known else "")
