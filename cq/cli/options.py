"""What several commands share: the query argument, bindings of streams, and the options that go with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from cq.compiler.passes import MAX_TEXT_BYTES, Compiled, compile, read_text, variable
from cq.connectors.access import STDIN, Access
from cq.connectors.inputs import Inputs
from cq.errors import CompileError, Diagnostic, UsageError
from cq.planner.binding.settings import setting_value, takes

F = TypeVar("F", bound=Callable[..., Any])


def query_options(command: F) -> F:
    """QUERY [STREAM=PATH …], -c, --var, -s and what the query may touch."""
    for decorate in reversed(
        (
            click.argument("arguments", nargs=-1, metavar="[QUERY] [STREAM=PATH]..."),
            click.option("-c", "--command", "text", metavar="TEXT", help="Use TEXT as the query instead of a file."),
            click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="Set the parameter :NAME."),
            click.option(
                "-s", "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change a setting, as SET does."
            ),
            click.option("--allow-path", multiple=True, metavar="DIR", help="Allow the query to use files in DIR."),
            click.option("--allow-special", is_flag=True, help="Allow streams to read pipes and devices."),
        )
    ):
        command = decorate(command)
    return command


def compiled_query(
    arguments: Sequence[str],
    text: str | None,
    variables: Sequence[str],
    settings: Sequence[str],
    allow_path: Sequence[str],
    allow_special: bool,
) -> Compiled:
    """The query of a command line, bound."""
    if sum(a == STDIN or a.endswith(f"={STDIN}") for a in arguments) > 1:
        raise _usage("standard input can only be read once", "write the other input to a file")
    bindings = list(arguments)
    path: Path | None = None
    if text is None:
        if not bindings:
            raise _usage("no query given", "name a query file, or use -c 'SELECT …'")
        first = bindings.pop(0)
        if "=" in first and not os.path.exists(first):
            raise _usage(f'"{first}" comes before the query', "put the query file first")
        text, path = (stdin_text(), None) if first == STDIN else (read_text(Path(first)), Path(first))
        name = "<stdin>" if path is None else first
    else:
        name = "<command>"
    given: dict[str, str] = {}
    for stream, where in (_pair(b, "a stream", "STREAM=PATH") for b in bindings):
        if stream in given:
            raise _usage(
                f'stream "{stream}" is given twice', "to read several files, use a pattern: STREAM='day/*.csv'"
            )
        given[stream] = where
    base = path.parent if path is not None else Path()
    roots = (base, Path.cwd(), *(Path(p) for p in allow_path))
    access = Access(base.absolute(), tuple(r.absolute() for r in roots), allow_special)
    inputs = Inputs(access, given, dead_letters=path.stem if path is not None else "query")
    values = {k: variable(v) for k, v in (_pair(x, "--var", "NAME=VALUE") for x in variables)}
    numbers = {k: _setting(k, v) for k, v in (_pair(x, "-s", "NAME=VALUE") for x in settings)}
    return compile(text, name, values, inputs, numbers)


def _pair(text: str, what: str, shape: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not (value or what == "--var"):  # the empty text is a value, and no path
        help = "a path with = in it goes after the first =" if what == "a stream" else f"write {what} {shape}"
        raise _usage(f'{what} is written {shape}, not "{text}"', help)
    return name, value


def _setting(name: str, text: str) -> int:
    value = setting_value(name, text)
    if value is None:
        raise UsageError(Diagnostic("CQ0208", f'{name} takes {takes(name)}, not "{text}"'))
    return value


def stdin_text() -> str:
    """The text of a query on standard input, in UTF-8 whatever the locale is."""
    raw = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CompileError(Diagnostic("CQ0105", "<stdin>: the text is not UTF-8")) from None


def _usage(cause: str, help: str) -> UsageError:
    return UsageError(Diagnostic("CQ0606", cause, help=(help,)))
