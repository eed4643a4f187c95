"""How one does what a hint proposes: on the command line, in the shell, in a notebook, in Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class Face:
    """What is written there, with {name} for what is meant and {value} for its value; "" where there is no way.

    parameter: gives a parameter a value.  rows: gives a stream its rows.  reference: runs on the reference.
    first_rows: reads only so many rows.  allow: lets a query use a directory.  columns, all_rows: shows those that a
    table leaves out.  takes_options: those of cq run, for whatever may stand in WITH.
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
        """What gives this parameter this value."""
        return self.parameter.format(name=name, value=shlex.quote(value) if self.takes_options else value)

    def giving(self, name: str) -> str:
        """The hint that gives this stream its rows, where there is a way."""
        return f"give it rows: {self.rows.format(name=name)}" if self.rows else ""

    def allowing(self, directory: str) -> str:
        """What lets a query use this directory."""
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
    """Where the user is: at the command line, unless somebody said otherwise."""
    return _here.get() or COMMAND_LINE


@contextmanager
def facing(where: Face) -> Iterator[None]:
    """While this is open, the user is there; or where somebody further out has said."""
    before = _here.set(_here.get() or where)
    try:
        yield
    finally:
        _here.reset(before)
