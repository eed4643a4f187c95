"""How to do what a hint proposes: on the command line, in the shell, in a notebook, in Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Face:
    """The texts for each action, with {name} for the thing and {value} for its value; "" if there is no way.

    parameter: gives a parameter a value.  rows: gives a stream its rows.  reference: runs on the reference. first_rows:
    reads only so many rows.  allow: lets a query use a directory.  columns, all_rows: show those that a table leaves
    out.  takes_options: accepts the options of cq run for everything allowed in WITH.
    """

    parameter: str
    rows: str
    reference: str
    first_rows: str
    allow: str
    columns: str
    all_rows: str
    takes_options: bool = False

    def setting(self, name: str, value: str = "VALUE") -> str:
        """How to give this parameter this value."""
        return self.parameter.format(name=name, value=shlex.quote(value) if self.takes_options else value)

    def giving(self, name: str) -> str:
        """The hint that gives this stream its rows, if there is a way."""
        return f"give it rows: {self.rows.format(name=name)}" if self.rows else ""

    def allowing(self, directory: str) -> str:
        """How to let a query use this directory."""
        return self.allow.format(name=directory)


COMMAND_LINE = Face(
    parameter="--var {name}={value}",
    rows="{name}=PATH after the query",
    reference="--engine reference",
    first_rows="--rows N",
    allow="--restrict {name}",
    columns="--wide shows them",
    all_rows="--all shows them, -o FILE and -f csv write them",
    takes_options=True,
)
SHELL = Face(
    parameter=".set {name} {value}",
    rows="",
    reference=".engine reference",
    first_rows="",
    allow="",
    columns=".all shows them",
    all_rows=".all shows them",
)
NOTEBOOK = Face(
    parameter="{name} = {value} in a cell before this one",
    rows="{name} = table in a cell before this one",
    reference="%%cq --engine reference",
    first_rows="",
    allow="",
    columns="",
    all_rows="",
)
PYTHON = Face(
    parameter=".with_variables({name}={value})",
    rows="cq.sql(text, {name}=table)",
    reference='engine="reference"',
    first_rows="rows=N",
    allow="restrict=[…, '{name}']",
    columns="",
    all_rows="",
)

_here: ContextVar[Face | None] = ContextVar("face", default=None)


def face() -> Face:
    """Where the user is: on the command line by default."""
    return _here.get() or COMMAND_LINE


@contextmanager
def facing(where: Face) -> Iterator[None]:
    """While this is open, the user is there, unless an outer one has said otherwise."""
    before = _here.set(_here.get() or where)
    try:
        yield
    finally:
        _here.reset(before)
