"""The process of a command: its exit codes, the signals that end it, and its messages on stderr."""

from __future__ import annotations

import os
import re
import signal
import sys

import click

from cq.errors import shows_colours

DONE, AT_FAULT, USAGE, INTERRUPTED = 0, 1, 2, 130
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # signals that act like Ctrl-C

RED, YELLOW, CYAN, BOLD, PLAIN = "\x1b[31;1m", "\x1b[33;1m", "\x1b[36m", "\x1b[1m", "\x1b[0m"
_HEAD = re.compile(r"(?:data )?(error|warning)\[CQ\d+\]:")
_MARK = re.compile(r"( *\|)( +[\^-].*)")
_WAY = re.compile(r" *= (help|note):")


def say(text: str) -> None:
    """Print a line or more on stderr, whether or not anybody reads it; errors stand out on a terminal with colours."""
    if shows_colours(sys.stderr):
        text = "\n".join(map(_coloured, text.split("\n")))
    try:
        click.echo(text, err=True)
    except (OSError, UnicodeError):
        os.write(2, text.encode("ascii", "backslashreplace") + b"\n")


def _coloured(line: str) -> str:
    """A line of the drawing of an error or warning, as made by `errors.render`."""
    head = _HEAD.match(line)
    if head is not None:
        return f"{YELLOW if head[1] == 'warning' else RED}{head[0]}{PLAIN}{BOLD}{line[head.end() :]}{PLAIN}"
    mark = _MARK.match(line)
    if mark is not None:
        return f"{mark[1]}{RED}{mark[2]}{PLAIN}"
    way = _WAY.match(line)
    return f"{CYAN}{way[0]}{PLAIN}{line[way.end() :]}" if way is not None else line
