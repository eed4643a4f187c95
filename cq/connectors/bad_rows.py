"""What happens to rows that cannot be read: the query stops, or they are counted, or counted and written to a file."""

from __future__ import annotations

import base64
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

from cq.connectors.access import claim, give_back
from cq.connectors.protocol import BadRow
from cq.errors import DataError, Diagnostic, EngineError, UsageError
from cq.records import dataclass, field

MAX_BYTES = 1 << 30  # per file of bad rows (`cq limits`): a wrong delimiter must not fill the disk


@dataclass(slots=True, weakref_slot=True, eq=False)
class BadRows:
    """How one source handles bad rows.

    policy: fail, skip or dead_letter.  path: the file of dead letters, created at the first one.
    """

    policy: str
    path: Path | None = None
    count: int = 0
    _file: IO[bytes] | None = field(default=None, repr=False)
    _bytes: int = 0

    @property
    def fails(self) -> bool:
        return self.policy == "fail"

    def take(self, file: str, rows: tuple[BadRow, ...]) -> None:
        """Count bad rows, in order, and write them down if asked; raise the first one when the policy is fail."""
        for row in rows:
            if self.fails:
                raise DataError(row.diagnostic(file))
            self.count += 1
        if rows and self.policy == "dead_letter":
            self._write(file, rows)

    def _write(self, file: str, rows: tuple[BadRow, ...]) -> None:
        """Write the letters through to the file: a failure to write is reported before any sink has its name."""
        try:
            if self._file is None:
                assert self.path is not None, "dead letters without a path"
                claim(self.path, self.path.name, self)
                try:
                    self._file = self._open(self.path)
                except BaseException:
                    give_back(self.path)
                    raise
            for row in rows:
                line = dead_letter(file, row)
                self._bytes += len(line)
                if self._bytes > MAX_BYTES:
                    raise EngineError(
                        Diagnostic("CQ0802", f"the file of bad rows {self.path} is over {MAX_BYTES >> 20} MiB")
                    )
                self._file.write(line)
            self._file.flush()
        except OSError as e:
            raise self._cannot_write((e.strerror or str(e)).lower()) from None

    def _open(self, path: Path) -> IO[bytes]:
        # O_NONBLOCK: opening a pipe that nobody reads must not wait forever
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._cannot_write("it is not a regular file")
        os.truncate(descriptor, 0)
        return os.fdopen(descriptor, "wb")

    def _cannot_write(self, why: str) -> UsageError:
        return UsageError(Diagnostic("CQ0605", f"cannot write bad rows to {self.path}: {why}"))

    def close(self) -> None:
        """Write out what is buffered and close the file."""
        if self._file is not None:
            with suppress(OSError):  # the error for what did not fit was already reported
                self._file.close()
            self._file = None
            if self.path is not None:
                give_back(self.path)


def dead_letter(file: str, row: BadRow) -> bytes:
    """One line of JSON with the record as text, or as base64 when it is not UTF-8."""
    letter: dict[str, object] = {"file": file, "record": row.line, "column": row.column or None, "code": row.code}
    letter["cause"] = row.message
    try:
        letter["raw"] = row.raw.decode("utf-8")
    except UnicodeDecodeError:
        letter["raw_base64"] = base64.b64encode(row.raw).decode()
    return json.dumps(letter, ensure_ascii=True).encode() + b"\n"
