"""What one run binds to the streams of a query, and which files it may touch."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cq.connectors.access import STDIN, FileAccess, identity
from cq.connectors.protocol import DeclaredStream
from cq.records import dataclass, field, replace

if TYPE_CHECKING:
    from cq.lang.types import DataType


@dataclass(frozen=True, slots=True)
class Inputs:
    """given: stream -> a path, `-`, or an object in memory; overrides the connector of the declaration.

    access: for paths in the text of the query.  dead_letters: the start of the default name for files of bad rows.
    extra: further options, by stream; those for every stream are under "".
    wider: by stream and column, the type of a column whose guessed type was contradicted by a row.
    """

    access: FileAccess
    given: Mapping[str, Any] = field(default_factory=dict)
    dead_letters: str = "query"
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    wider: Mapping[str, Mapping[str, DataType]] = field(default_factory=dict)

    def options(self) -> dict[str, dict[str, str]]:
        """The values given as options of a WITH clause, for the binder."""
        return {name: _as_options(value) for name, value in self.given.items()}

    def called(self, names: Mapping[str, str]) -> Inputs:
        """The same inputs, for streams of other names."""
        given = {names.get(name, name): value for name, value in self.given.items()}
        return replace(self, given=given, extra={names.get(name, name): o for name, o in self.extra.items()})

    def path_of(self, stream: DeclaredStream) -> tuple[str | None, FileAccess]:
        """The path or pattern of a stream that is read from files, and the access that confines it."""
        given: Any = self.given.get(stream.name)
        if is_path(given):
            return (None if given == STDIN else os.fspath(given)), self.access.trusted()
        options = dict(stream.options)
        if given is None and options.get("connector", "file") == "file" and "path" in options:
            return options["path"], self.access
        return None, self.access

    def is_read_once(self, stream: DeclaredStream) -> bool:
        """Whether the stream is standard input or a pipe."""
        path, access = self.path_of(stream)
        if path is None:
            given = self.given.get(stream.name)
            return given == STDIN if is_path(given) else given is None and _connector(stream) == "stdin"
        return any(is_special(access.base / p) for p in access.expand(path))

    def goes_on(self, stream: DeclaredStream) -> bool:
        """Whether the input may be endless: a pipe, a device, a reader in memory."""
        path, access = self.path_of(stream)
        if path is not None:
            return any(is_special(access.base / p) for p in access.expand(path))
        given = self.given.get(stream.name)
        if given is not None and not is_path(given):
            return type(given).__name__ == "RecordBatchReader"  # by name: nothing here needs Arrow
        if given is None and _connector(stream) != "stdin":
            return False
        try:
            return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
        except (OSError, ValueError):
            return True

    def reserved(self, streams: Sequence[DeclaredStream]) -> frozenset[tuple[int, int]]:
        """Every file the streams are read from, by (device, inode): no sink may write onto one of them."""
        found: set[tuple[int, int]] = set()
        for stream in streams:
            path, access = self.path_of(stream)
            if path is not None:
                found |= {i for p in access.expand(path) if (i := identity(access.base / p)) is not None}
        return frozenset(found)


def _connector(stream: DeclaredStream) -> str:
    return dict(stream.options).get("connector", "file")


def is_special(path: os.PathLike[str]) -> bool:
    """Whether the path is something other than a regular file."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False  # opening it raises the error


def is_path(given: Any) -> bool:
    """Whether an input was given as a path."""
    return isinstance(given, str | os.PathLike)


def _as_options(given: Any) -> dict[str, str]:
    if isinstance(given, str) and given == STDIN:
        return {"connector": "stdin"}
    return {"connector": "file", "path": os.fspath(given)} if is_path(given) else {"connector": "memory"}
