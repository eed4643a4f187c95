"""Object code on disk: a checked container, and an owner-only directory that keeps containers by key.

A container is   magic, SHA-256 of all that follows, header length, header (JSON), code, text.
The checksum is against damage. Against planted code the barrier is the directory, which must be ours alone
(cq/cache.py); otherwise nothing is read from it or written to it. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cq.cache import is_ours, open_directory
from cq.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"CQOBJ\x00\x00\x01"  # the last byte is the version of the format
SUFFIX = ".cqo"
_HASH_BYTES = 32
_LENGTH = struct.Struct("<I")
MAX_CONTAINER_BYTES = 64 << 20  # the largest object seen is under 1 MiB; a larger file is not ours
CACHE_BYTES = 256 << 20  # about 5,000 stages; least recently used ones go first


class BadContainer(Exception):
    """The bytes are not an intact container for this key."""


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """Relocatable machine code and what is needed to use it.

    key: hash of everything it was made from.  entries: callable name -> symbol.  required: symbols it does not define.
    code: the object file.  text: LLVM assembly of the functions that other code copies (the library's inline ones).
    """

    key: str
    entries: dict[str, str]
    required: tuple[str, ...]
    code: bytes
    text: str = ""

    def pack(self) -> bytes:
        """The container."""
        text = self.text.encode()
        header = json.dumps(
            {
                "key": self.key,
                "entries": self.entries,
                "required": self.required,
                "code_bytes": len(self.code),
                "text_bytes": len(text),
            },
            sort_keys=True,
        ).encode()
        body = _LENGTH.pack(len(header)) + header + self.code + text
        return MAGIC + hashlib.sha256(body).digest() + body

    @staticmethod
    def unpack(container: bytes, key: str) -> ObjectCode:
        """The contents, after checking everything about them."""
        start = len(MAGIC) + _HASH_BYTES
        body = container[start:]
        if container[: len(MAGIC)] != MAGIC or len(body) < _LENGTH.size:
            raise BadContainer("no container of this version")
        if hashlib.sha256(body).digest() != container[len(MAGIC) : start]:
            raise BadContainer("checksum")
        (header_bytes,) = _LENGTH.unpack_from(body)
        try:
            header = json.loads(body[_LENGTH.size : _LENGTH.size + header_bytes])
            code_bytes, text_bytes = int(header["code_bytes"]), int(header["text_bytes"])
            entries = {str(name): str(symbol) for name, symbol in header["entries"].items()}
            required = tuple(str(name) for name in header["required"])
            found = str(header["key"])
        except (ValueError, KeyError, TypeError, AttributeError) as why:
            raise BadContainer(f"header: {why}") from None
        rest = body[_LENGTH.size + header_bytes :]
        if found != key or min(code_bytes, text_bytes) < 0 or len(rest) != code_bytes + text_bytes:
            raise BadContainer("key or sizes")
        return ObjectCode(key, entries, required, rest[:code_bytes], rest[code_bytes:].decode())


class ObjectCache:
    """Containers by key in one directory; empty if there is no safe directory."""

    def __init__(self, directory: Path | None, limit_bytes: int = CACHE_BYTES) -> None:
        self.directory = directory
        self.limit_bytes = limit_bytes
        self.refused = ""
        self._bytes = limit_bytes  # of the directory, as far as known: unknown counts as full, so that it is measured

    def get(self, key: str) -> ObjectCode | None:
        """The intact container of this key; None if there is none (then compile and `put`)."""
        with self._opened() as directory:
            if directory is None:
                return None
            name = key + SUFFIX
            content = _read_own_file(directory, name)
            if content is None:
                return None
            try:
                found = ObjectCode.unpack(content, key)
            except BadContainer:
                return None
            with suppress(OSError):
                os.utime(name, dir_fd=directory)
            return found

    def put(self, made: ObjectCode, source: str = "") -> None:
        """Write the container to disk, with the generated source beside it for people; without room, neither."""
        with self._opened() as directory:
            if directory is None:
                return
            try:
                if source:
                    _write_file(directory, made.key + ".py", source.encode())
                container = made.pack()
                _write_file(directory, made.key + SUFFIX, container)
                self._bytes += len(container) + len(source)
                if self._bytes > self.limit_bytes:
                    self._bytes = self._evict(directory)
            except OSError as why:
                self._refuse(f"cannot write to {self.directory}: {why.strerror}")

    def source_path(self, key: str) -> str:
        """Where `put` writes the generated source; a name in brackets if it writes none."""
        return str(self.directory / f"{key}.py") if self.directory is not None else f"<cq {key[:16]}>"

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        if self.directory is None or self.refused:
            yield None
            return
        descriptor = None
        try:
            descriptor = open_directory(self.directory)
        except OSError as why:
            self._refuse(str(why))
        try:
            yield descriptor
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _refuse(self, why: str) -> None:
        if not self.refused:
            self.refused = why
            import logging

            logging.getLogger("cq.runtime").warning("compiled code is not kept: %s", why)

    def _evict(self, directory: int) -> int:
        """Remove files, longest unused first, until the directory is within its limit; return its bytes."""
        found = []
        for name in os.listdir(directory):
            with suppress(OSError):
                entry = os.stat(name, dir_fd=directory, follow_symlinks=False)
                found.append((entry.st_mtime_ns, name, entry.st_size))
        total = sum(size for _, _, size in found)
        for _, name, size in sorted(found):
            if total <= self.limit_bytes:
                break
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)
                total -= size
        return total


def _read_own_file(directory: int, name: str) -> bytes | None:
    """The bytes of a regular file that only we can access; None for anything else."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        entry = os.fstat(descriptor)
        ours = stat.S_ISREG(entry.st_mode) and is_ours(entry)
        return file.read() if ours and entry.st_size <= MAX_CONTAINER_BYTES else None


def _write_file(directory: int, name: str, content: bytes) -> None:
    """The file has the content, or is unchanged: written to another file, then renamed."""
    aside = f".{name}.{os.getpid()}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(aside, flags, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with suppress(OSError):
            os.unlink(aside, dir_fd=directory)
        raise
