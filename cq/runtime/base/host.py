"""Where native functions run: compiled over real memory, or interpreted over a simulated one.

The engine uses both through one interface: words of memory, functions by name, addresses of functions, stages.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any, Protocol

from cq.runtime.base import kernel
from cq.runtime.base.effort import Effort
from cq.runtime.base.interpret import LIBRARY, interpret_stage, load_modules
from cq.runtime.base.native import natives_of
from cq.runtime.base.simulation import Memory, function_address
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import Moving, StageSpec

Function = Callable[..., Any]
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Host(Protocol):
    """What the engine needs from the place where its native code runs."""

    interpreted: bool
    interrupts: list[BaseException]  # Ctrl-C in a callback: results of native code since then do not count
    said: dict[int, str]  # the message of a failed user function, by the state that called it last

    def active(self) -> AbstractContextManager[object]:
        """While this is open, functions run over this host's memory."""

    def word(self, address: int, index: int) -> int:
        """A word of memory."""

    def set_word(self, address: int, index: int, value: int) -> None:
        """Set the word to `value`."""

    def read(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes."""

    def write(self, address: int, content: bytes) -> None:
        """Write the bytes to the address, where there is room for them."""

    def place(self, content: bytes) -> int:
        """The address of a copy of the bytes, which stays as long as the host."""

    def callback(self, function: Function) -> int:
        """The address at which native code finds a Python function `i64 f(i64, i64)`; valid as long as the host."""

    def function(self, name: str) -> Function:
        """An exported function of the runtime library."""

    def address(self, name: str) -> int:
        """Its address."""

    def entries(self, stage: StageSpec) -> dict[str, int]:
        """The addresses of a stage's entry points by name."""

    def moving_entries(self, moving: Moving) -> dict[str, int]:
        """The addresses of the functions that move state, by name."""


def stage_entries(stage: StageSpec) -> tuple[str, ...]:
    """The functions of a stage that are called by address."""
    lanes = () if stage.lanes is None else (stage.lanes.entry,)
    by_key = (stage.by_key,) if stage.by_key else ()
    chains = () if stage.chains is None else (stage.chains.begin, stage.chains.collect, stage.chains.evaluate)
    return (stage.entry, *lanes, *by_key, *chains, *stage.time_entries)


def _uninterrupted(interrupts: list[BaseException], function: Function, first: int, second: int) -> int:
    """The function's result; after Ctrl-C in it, or in one before it, a failure."""
    if not interrupts:
        try:
            return int(function(first, second))
        except (KeyboardInterrupt, SystemExit) as interrupt:
            interrupts.append(interrupt)
    return ErrorCode.BAD_ARGUMENT


class CompiledHost:
    """Machine code over the memory of this process."""

    interpreted = False

    def __init__(self, effort: Effort = Effort.FULL) -> None:
        """effort: the least that suits the query, as in `compile_stage`."""
        self._library = kernel.library()
        self._effort = effort
        self._kept: list[Any] = []
        self.interrupts: list[BaseException] = []
        self.said: dict[int, str] = {}

    def active(self) -> AbstractContextManager[object]:
        return nullcontext()

    def word(self, address: int, index: int) -> int:
        return ctypes.c_int64.from_address(address + 8 * index).value

    def set_word(self, address: int, index: int, value: int) -> None:
        ctypes.c_int64.from_address(address + 8 * index).value = value

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size) if size else b""

    def write(self, address: int, content: bytes) -> None:
        ctypes.memmove(address, content, len(content))

    def place(self, content: bytes) -> int:
        words = array("q", content + bytes(24 - len(content) % 8))  # aligned; slack for reads of whole words
        self._kept.append(words)
        return words.buffer_info()[0]

    def callback(self, function: Function) -> int:
        made = _CALLBACK(partial(_uninterrupted, self.interrupts, function))  # takes the GIL while Python runs
        self._kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    def function(self, name: str) -> Function:
        return self._library.function(name)

    def address(self, name: str) -> int:
        return self._library.address(name)

    def entries(self, stage: StageSpec) -> dict[str, int]:
        return self._compiled(stage.module, dict(stage.functions), stage_entries(stage))

    def moving_entries(self, moving: Moving) -> dict[str, int]:
        entries = (function for *_, function in moving.entries)
        return self._compiled(moving.module, dict(moving.functions), entries)

    def _compiled(self, module: str, functions: Mapping[str, str], entries: Iterable[str]) -> dict[str, int]:
        return kernel.compile_stage(module, functions, entries, self._effort).addresses


@lru_cache(maxsize=1)
def _library_functions() -> dict[str, Function]:
    load_modules(LIBRARY)
    return {n.name: n.function for module in LIBRARY for n in natives_of(module)}


class _Active:
    """Makes a memory current, unless it is already."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._entered: list[bool] = []

    def __enter__(self) -> None:
        enter = Memory.current is not self._memory
        if enter:
            self._memory.__enter__()
        self._entered.append(enter)

    def __exit__(self, *raised: object) -> None:
        if self._entered.pop():
            self._memory.__exit__(*raised)


class InterpretedHost:
    """The same functions as plain Python over their own memory, where every access is checked."""

    interpreted = True

    def __init__(self) -> None:
        self.memory = Memory()
        self.interrupts: list[BaseException] = []  # they pass through Python unchanged
        self.said: dict[int, str] = {}
        self._functions: Mapping[str, Function] = _library_functions()
        self._active = _Active(self.memory)

    def active(self) -> AbstractContextManager[object]:
        return self._active

    def word(self, address: int, index: int) -> int:
        return int(struct.unpack("<q", self.memory.read(address + 8 * index, 8))[0])

    def set_word(self, address: int, index: int, value: int) -> None:
        self.memory.write(address + 8 * index, struct.pack("<q", value))

    def read(self, address: int, size: int) -> bytes:
        return self.memory.read(address, size)

    def write(self, address: int, content: bytes) -> None:
        self.memory.write(address, content)

    def place(self, content: bytes) -> int:
        return self.memory.place(content + bytes(16), writable=True)

    def callback(self, function: Function) -> int:
        return function_address(function)

    def function(self, name: str) -> Function:
        return self._functions[name]

    def address(self, name: str) -> int:
        return function_address(self._functions[name])

    def entries(self, stage: StageSpec) -> dict[str, int]:
        functions = interpret_stage(stage.module, f"<cq stage {stage.name}>")
        return {name: function_address(functions[name]) for name in stage_entries(stage)}

    def moving_entries(self, moving: Moving) -> dict[str, int]:
        functions = interpret_stage(moving.module, "<cq moving>")
        return {name: function_address(functions[name]) for *_, name in moving.entries}
