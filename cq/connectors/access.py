"""Which files a query may touch, how they are opened, and which writer owns each.

A query may read and write whatever its user may. `--restrict` is for queries from strangers: it confines the paths in
the text of a query to regular files in some directories. Paths typed on the command line or given from Python come from
the user and are never confined.
"""

from __future__ import annotations

import glob
import os
import stat
import threading
from collections import Counter
from pathlib import Path
from typing import BinaryIO, cast
from weakref import WeakValueDictionary

from cq.connectors.read_once import Once, kept
from cq.errors import Diagnostic, UsageError
from cq.hints import face
from cq.records import dataclass

MAX_FILES = 100_000  # a pattern that matches more is a mistake (`cq limits`)
STDIN = "-"
PART = ".part"  # the suffix of a file that is not complete yet


@dataclass(frozen=True, slots=True)
class FileAccess:
    """base: where relative paths start.  roots: directories files must lie in, excluding pipes and devices; None allows
    everything."""

    base: Path
    roots: tuple[Path, ...] | None = None

    def trusted(self) -> FileAccess:
        """The same for a path the user typed: relative to the working directory, anywhere."""
        return FileAccess(Path.cwd())

    def resolve(self, path: str) -> Path:
        """The real path behind `path`, links followed; refused when it lies outside the roots."""
        real = Path(os.path.realpath(self.base / path))
        if self.roots is not None and not any(real.is_relative_to(os.path.realpath(r)) for r in self.roots):
            raise UsageError(
                Diagnostic(
                    "CQ0601",
                    f'"{path}" is outside the directories that this query may use',
                    help=(f"allow its directory as well: {face().allowing(os.path.dirname(real))}",),
                )
            )
        return real

    def expand(self, pattern: str) -> tuple[str, ...]:
        """The files of a path or pattern as errors will show them, sorted by name; at least one."""
        if not is_pattern(pattern) or os.path.lexists(self.base / pattern):
            return (pattern,)
        self.resolve(_fixed_part(pattern))  # nothing outside the roots is even listed
        found: list[str] = []
        for name in glob.iglob(pattern, root_dir=self.base, recursive=True):
            if not os.path.isdir(self.base / name):
                found.append(name)
            if len(found) > MAX_FILES:
                raise UsageError(Diagnostic("CQ0601", f'"{pattern}" matches more than {MAX_FILES:,} files'))
        if not found:
            raise UsageError(
                Diagnostic(
                    "CQ0601",
                    f'no file matches "{pattern}"',
                    help=(f"patterns are relative to {self.base}; use ** to include subdirectories",),
                )
            )
        return tuple(sorted(found, key=os.fsencode))

    def refuse_directory(self, path: str) -> None:
        """CQ0601 for a directory, with the pattern of the files in it."""
        if os.path.isdir(self.base / path):
            self.resolve(path)  # nothing outside the roots is even listed
            raise self._is_directory(path)

    def _is_directory(self, path: str) -> UsageError:
        below, ending = "", ""
        for directory, directories, files in os.walk(self.base / path):
            directories.sort()
            if files or not directories:
                endings = Counter(found for name in files if (found := os.path.splitext(name)[1]))
                (ending, _), *_ = endings.most_common(1) or [("", 0)]
                below = "" if os.path.samefile(directory, self.base / path) else "**/"
                break
        way = f"name its files: {path.rstrip('/')}/{below}*{ending}"
        return UsageError(Diagnostic("CQ0601", f'"{path}" is a directory', help=(way,)))

    def open(self, path: str) -> BinaryIO:
        """Open `path` for reading, or raise a UsageError that says why it cannot be opened. Opening a pipe waits for
        its writer."""
        if self.roots is None and (looked := kept(self.base / path)) is not None:
            return cast(BinaryIO, looked)
        try:
            descriptor = self._open(path)
        except OSError as e:
            raise self._cannot_open(path, e) from None
        try:
            status = os.fstat(descriptor)
            self._check_kind(path, status)
            self._check_place(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.set_blocking(descriptor, True)
        if stat.S_ISFIFO(status.st_mode):
            return cast(BinaryIO, Once.of(descriptor, owned=True))
        return os.fdopen(descriptor, "rb", buffering=0)

    def _open(self, path: str) -> int:
        """Return a descriptor. A confined query does not wait forever at a pipe that nobody writes to."""
        if self.roots is None:  # the path as given: `/dev/fd/63` cannot be resolved
            return os.open(self.base / path, os.O_RDONLY | os.O_CLOEXEC)
        return os.open(self.resolve(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)

    def _check_kind(self, path: str, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise self._is_directory(path)
        if not stat.S_ISREG(status.st_mode) and self.roots is not None:
            cause = f'"{path}" is not a regular file but a {_kind(status.st_mode)}, which a confined query may not use'
            raise UsageError(Diagnostic("CQ0601", cause, help=("pass it as standard input: stream=-",)))

    def _check_place(self, descriptor: int) -> None:
        """Check the directory of the open descriptor, which reveals a link swapped in between resolving and opening."""
        link = f"/proc/self/fd/{descriptor}"
        if self.roots is not None and os.path.islink(link):
            self.resolve(os.readlink(link))

    def _cannot_open(self, path: str, error: OSError) -> UsageError:
        help: tuple[str, ...] = ()
        if isinstance(error, FileNotFoundError):
            near = nearest(self.base / path)
            if self.roots is None and os.path.exists(path):  # in the directory where the command runs
                other = os.path.relpath(path, self.base)
                help = (f'paths in a query start from the directory of its file, {self.base}: write "{other}"',)
            elif near:
                help = (f'did you mean "{os.path.join(os.path.dirname(path), near)}"?',)
            else:
                help = (f"relative paths start from {self.base}",)
        return UsageError(
            Diagnostic("CQ0601", f'cannot open "{path}": {(error.strerror or str(error)).lower()}', help=help)
        )


def _fixed_part(pattern: str) -> str:
    """The directory a pattern starts from."""
    parts = pattern.split("/")
    magic = next(n for n, part in enumerate(parts) if is_pattern(part))
    return "/".join(parts[:magic]) + "/" if magic else "."


def is_pattern(path: str) -> bool:
    """Whether a path may stand for several files."""
    return any(c in path for c in "*?[")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFSOCK: "socket"}
    return kinds.get(stat.S_IFMT(mode), "special file")


_WRITTEN: WeakValueDictionary[str, object] = WeakValueDictionary()  # by path: the writer that owns it now, in any query
_CLAIMING = threading.Lock()


def claim(path: Path, shown: str, writer: object) -> None:
    """Make the caller the file's writer until it gives it back or is collected; CQ0605 when another writer has it."""
    with _CLAIMING:
        if str(path) in _WRITTEN:
            cause = f'"{shown}" is already written by another output'
            raise UsageError(Diagnostic("CQ0605", cause, help=("give each output a file of its own",)))
        _WRITTEN[str(path)] = writer


def is_written(path: Path) -> bool:
    """Whether a writer owns the file now."""
    return str(path) in _WRITTEN


def give_back(path: Path) -> None:
    """Let any writer claim the file."""
    _WRITTEN.pop(str(path), None)


def nearest(path: Path) -> str:
    """The name most like that of a missing file in its directory; files that are being written do not count."""
    import difflib

    directory = os.path.realpath(path.parent)
    try:
        found = os.listdir(directory)[:1000]
    except OSError:
        return ""
    names = [n for n in found if not n.endswith(PART) and os.path.join(directory, n) not in _WRITTEN]
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return close[0] if close else ""


def identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """(device, inode) of a file, to recognise one file under two names; None when it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
