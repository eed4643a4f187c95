"""Runs native functions interpreted over the simulated memory, and compiled over real memory, behind one interface.

    @pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
    def run(request):
        with request.param(ring_push, ring_pop) as run:
            yield run

`run.ring_push(…)` calls the function; `place`, `zeros`, `read`, `words` move bytes in and out.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cq.runtime.base import interpret, kernel
from cq.runtime.base.simulation import Memory, function_address


@contextmanager
def small_library() -> Iterator[None]:
    """Restrict the runtime library to free lists, memory and 128-bit arithmetic: tests of compilation need no more."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (interpret, kernel):
            patch.setattr(module, "LIBRARY", interpret.LIBRARY[:3])
        kernel._library.cache_clear()
        patch.setattr(kernel, "_stages", {})
        yield
    kernel._library.cache_clear()


class Interpreted:
    """The functions as run by Python; leaving the `with` block checks that nothing leaked."""

    compiled = False

    def __init__(self, *functions: Callable[..., Any], leaks_allowed: bool = False) -> None:
        self._functions = {f.__name__: f for f in functions}
        self._leaks_allowed = leaks_allowed
        self.memory = Memory()

    def __enter__(self) -> Interpreted:
        self.memory.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.memory.__exit__(*raised)
        if raised[0] is None and not self._leaks_allowed:
            self.memory.check_no_leaks()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._functions[name]

    def place(self, content: bytes, writable: bool = False) -> int:
        """The address of a copy of the bytes, which lives to the end of the test."""
        return self.memory.place(content, writable)

    def read(self, address: int, size: int) -> bytes:
        return self.memory.read(address, size)

    def address(self, function: Callable[..., Any]) -> int:
        """An address for this function that `call1` … `call4` accept."""
        return function_address(function)

    def zeros(self, size: int) -> int:
        """The address of writable zero bytes, which live to the end of the test."""
        return self.place(bytes(size), writable=True)

    def words(self, address: int, count: int) -> list[int]:
        """`count` signed 64-bit words."""
        return list(struct.unpack(f"<{count}q", self.read(address, 8 * count)))

    def place_words(self, *values: int) -> int:
        """The address of writable words with these values."""
        return self.place(struct.pack(f"<{len(values)}q", *values), writable=True)


@functools.cache
def _compiled(functions: tuple[Callable[..., Any], ...]) -> dict[str, Callable[..., Any]]:
    return kernel.compile_functions(*functions)


class Compiled(Interpreted):
    """The functions as machine code, compiled once for each set of functions."""

    compiled = True

    def __init__(self, *functions: Callable[..., Any], leaks_allowed: bool = False) -> None:
        self._functions = _compiled(functions)
        self._kept: list[Any] = []

    def __enter__(self) -> Compiled:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.clear()

    def place(self, content: bytes, writable: bool = False) -> int:
        buffer = ctypes.create_string_buffer(len(content) + 32)
        self._kept.append(buffer)
        address = (ctypes.addressof(buffer) + 15) & ~15
        ctypes.memmove(address, content, len(content))
        return address

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def address(self, function: Callable[..., Any]) -> int:
        made = self._functions[function.__name__]
        found = ctypes.cast(made, ctypes.c_void_p).value  # type: ignore[arg-type]
        assert found
        return found
