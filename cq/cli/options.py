"""What several commands share: the query argument, bindings of streams, and the options that go with them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cq.cli.completion import complete_files
from cq.cli.process import say
from cq.compiler.passes import MAX_TEXT_BYTES, Compiled, compile, read_text
from cq.connectors.access import STDIN, FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.read_once import told_of_waiting
from cq.connectors.registry import SOURCES
from cq.errors import CompileError, Diagnostic, UsageError, did_you_mean, printable
from cq.planner.binding.parameters import Untyped
from cq.planner.binding.settings import MOST_THREADS, SETTINGS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
# words that start a query, including statements of which cq only says that it does not have them
_WORDS = (
    "SELECT", "WITH", "FROM", "VALUES", "CREATE", "INSERT", "EXPLAIN", "SET", "TABLE", "DESCRIBE", "SHOW", "SUMMARIZE",
    "PIVOT", "UNPIVOT", "UPDATE", "DELETE", "MERGE", "COPY", "DROP", "ALTER", "PRAGMA",
)  # fmt: skip
_BEGINNING = re.compile(rf"\s*(/\*|--|\(|({'|'.join(_WORDS)})\s)", re.IGNORECASE)


def complete_settings(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The settings that continue the typed text."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(f"{name}=", help=doc) for name, doc in SETTINGS.items() if name.startswith(typed)]


def threads_option(help: str) -> Callable[[F], F]:
    """-j, for commands that plan for a number of workers."""
    return click.option("-j", "--threads", type=click.IntRange(0, MOST_THREADS), help=help)


def query_options(command: F) -> F:
    """QUERY [STREAM=PATH …], -c, --var, -s, -w and what the query may touch."""
    for decorate in reversed(
        (
            click.argument("arguments", nargs=-1, metavar="[QUERY] [STREAM=PATH]...", shell_complete=complete_files),
            click.option("-c", "--command", "text", metavar="TEXT", help="Use TEXT as the query instead of a file."),
            click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="Set the parameter :NAME."),
            click.option(
                "-s",
                "--set",
                "settings",
                multiple=True,
                metavar="NAME=VALUE",
                help="Change a setting, as SET does.",
                shell_complete=complete_settings,
            ),
            click.option(
                "-w",
                "--with",
                "options",
                multiple=True,
                metavar="[STREAM.]OPTION=VALUE",
                help="Set an option of one input, or of all, as WITH does: -w delimiter=';'.",
            ),
            click.option("--restrict", multiple=True, metavar="DIR", help="Let the query use files in DIR only."),
        )
    ):
        command = decorate(command)
    return command


def compiled_query(
    arguments: Sequence[str],
    text: str | None,
    variables: Sequence[str],
    settings: Sequence[str],
    options: Sequence[str],
    restrict: Sequence[str],
    quiet: bool = False,
) -> Compiled:
    """The query of a command line, bound. quiet: do not report that a pipe keeps us waiting."""
    if sum(a == STDIN or a.endswith(f"={STDIN}") for a in arguments) > 1:
        raise _usage("standard input can only be read once", "write the other input to a file")
    bindings = list(arguments)
    path: Path | None = None
    name = "<command>"
    if text is None:
        if not bindings:
            raise _usage("no query given", "name a query file, or write the query: cq run 'SELECT …'")
        first = bindings.pop(0)
        if first == STDIN:
            text, name = stdin_text(), "<stdin>"
        elif is_query_text(first):
            text = first
        elif "=" in first and not os.path.exists(first):
            raise _usage(f'"{first}" comes before the query', "put the query first")
        else:
            _refuse_misspelt_query(first)
            text, path, name = read_text(Path(first)), Path(first), first
    given: dict[str, str] = {}
    for stream, where in (_pair(b, "a stream", "STREAM=PATH") for b in bindings):
        if stream in given:
            raise _usage(
                f'stream "{stream}" is given twice', "to read several files, use a pattern: STREAM='day/*.csv'"
            )
        given[stream] = where
    base = path.parent if path is not None else Path()
    access = FileAccess(base.absolute(), tuple(Path(d).absolute() for d in restrict) or None)
    letters = path.stem if path is not None else "query"
    inputs = Inputs(access, given, letters, input_options(options))
    values = {k: Untyped(v) for k, v in (_pair(x, "--var", "NAME=VALUE") for x in variables)}
    asked = dict(_pair(x, "-s", "NAME=VALUE") for x in settings)
    with told_of_waiting(lambda waits: None if quiet else say(f"note: {waits}")):
        return compile(text, name, values, inputs, asked)


def is_query_text(argument: str) -> bool:
    """Whether an argument is the text of a query rather than a file: it starts like one, and has more than one word."""
    return _BEGINNING.match(argument) is not None and not os.path.exists(argument)


def _refuse_misspelt_query(argument: str) -> None:
    """CQ0100 for words of which the first is nearly one that starts a query, and that name no file."""
    word, _, more = argument.partition(" ")
    meant = did_you_mean(word.upper(), _WORDS) if more and not os.path.exists(argument) else ""
    if meant:
        cause = f'no query begins with "{printable(word)}", and no file is called "{printable(argument)}"'
        raise CompileError(Diagnostic("CQ0100", cause, help=(meant,)))


def input_options(given: Sequence[str]) -> dict[str, dict[str, str]]:
    """Options by stream, those for every stream under ""; CQ0207 for one that no input has.

    Options for one stream are checked with the stream: a workload has its own parameters.
    """
    known = {key for connector in SOURCES.values() for key in connector.options} - {"path", "workload"}
    found: dict[str, dict[str, str]] = {}
    for key, value in (_pair(g, "-w", "[STREAM.]OPTION=VALUE") for g in given):
        stream, _, option = key.rpartition(".")
        if option in {"path", "connector"} or (not stream and option not in known):
            files = f"to read a file, write {stream or 'STREAM'}=PATH after the query" if option == "path" else ""
            ways = (files, did_you_mean(option, known), f"options: {', '.join(sorted(known))}")
            raise UsageError(
                Diagnostic("CQ0207", f'inputs have no option "{option}"', help=tuple(w for w in ways if w))
            )
        found.setdefault(stream, {})[option] = value
    return found


def _pair(text: str, what: str, shape: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not (value or what != "a stream"):  # the empty text is a value, but not a path
        help = "a path with = in it goes after the first =" if what == "a stream" else f"write {what} {shape}"
        raise _usage(f'{what} must be written {shape}, not "{text}"', help)
    return name, value


def stdin_text() -> str:
    """The text of a query on standard input, in UTF-8 whatever the locale is."""
    raw = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CompileError(Diagnostic("CQ0105", "<stdin>: the text is not UTF-8")) from None


def _usage(cause: str, help: str) -> UsageError:
    return UsageError(Diagnostic("CQ0606", cause, help=(help,)))
