"""The simulated memory of interpreted native functions.

Every allocation is a segment of its own: the upper 32 bits of an address name the segment, the lower 32 the byte in it.
An access past either end therefore lands in another segment at an offset it does not have, and faults. Freed segments
are never reused, so a stale address faults too.

`BLOCKS` maps a segment to its bytes and is what the ops read: one dictionary look-up, then `struct`. An access that
misses there reaches `Memory.load` and `Memory.store`, which either explain the fault or, while a `monitor` watches
(tests/support/interleave.py), report the access and carry it out. So an unwatched run pays nothing for either.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from cq.records import dataclass

SEGMENT_BITS = 32
OFFSET_MASK = (1 << SEGMENT_BITS) - 1
JUNK = 0xA5  # new memory holds this, so that reads of unwritten memory show
FIRST_FUNCTION = 0x10000  # addresses of callables; segment 0 holds no memory, so they clash with no data address

Block = bytearray | bytes

BLOCKS: dict[int, Block] = {}


class MemoryFault(Exception):
    """A native function touched memory it may not touch, or broke the precondition of an op."""


class Monitor(Protocol):
    """What the schedule explorer implements: it sees every access and may let other threads run inside the call.

    `store` is a release store: true if the monitor holds it back for now, as a core's store buffer may.
    """

    def plain(self, address: int, size: int, write: bool) -> None: ...

    def atomic(self, address: int, read: bool, write: bool) -> None: ...

    def store(self, address: int, value: int) -> bool: ...

    def hint(self, kind: str) -> None: ...

    def wait(self, address: int, expected: int) -> None: ...

    def wake(self, address: int, count: int) -> int: ...


@dataclass(slots=True)
class Allocation:
    """One segment: its size, where it was allocated, and whether it must be released."""

    size: int
    where: str
    owned: bool
    freed_at: str = ""


def call_site() -> str:
    """The innermost Python frame outside the simulation itself, as `file:line function`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in {__name__, "cq.runtime.base.ops"}:
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno} {frame.f_code.co_name}"


class Memory:
    """A fresh, isolated memory; `with Memory() as memory:` makes it the one the ops use.

    limit_bytes: `alloc` returns 0 beyond it.  fail_at: the n-th allocation (from 0) and all later ones return 0.
    """

    current: Memory | None = None

    def __init__(self, limit_bytes: int = 1 << 62, fail_at: int = 1 << 62) -> None:
        self.blocks: dict[int, Block] = {}
        self.allocations: dict[int, Allocation] = {}
        self.in_use_bytes = 0
        self.limit_bytes = limit_bytes
        self.fail_at = fail_at
        self.requests = 0
        self.clock_ns = 0
        self.monitor: Monitor | None = None
        self._outer: Memory | None = None
        self._next_segment = 1

    # -- being the current memory ------------------------------------------------------------------------------------

    def __enter__(self) -> Memory:
        self._outer, Memory.current = Memory.current, self
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        Memory.current = self._outer
        BLOCKS.clear()
        if self._outer is not None:
            self._outer._show()

    def _show(self) -> None:
        BLOCKS.clear()
        if self.monitor is None:
            BLOCKS.update(self.blocks)

    def watch(self, monitor: Monitor | None) -> None:
        """From now on, report every access of this memory to `monitor`; None stops that."""
        self.monitor = monitor
        if Memory.current is self:
            self._show()

    # -- allocation --------------------------------------------------------------------------------------------------

    def alloc(self, size: int, fill: int = JUNK) -> int:
        """The address of `size` new bytes, or 0 if the limit or the planned failure is reached."""
        if not 0 < size <= OFFSET_MASK:
            raise MemoryFault(f"allocation of {size} bytes at {call_site()}")
        self.requests += 1
        if self.requests > self.fail_at or self.in_use_bytes + size > self.limit_bytes:
            return 0
        return self._add(bytearray(bytes((fill,)) * size), owned=True)

    def place(self, content: Any, writable: bool = False) -> int:
        """The address of a copy of a bytes-like object (an Arrow buffer too); read-only by default."""
        copied = bytes(memoryview(content).cast("B")) if content is not None else b""
        return self._add(bytearray(copied) if writable else copied, owned=False)

    def _add(self, block: Block, owned: bool) -> int:
        segment = self._next_segment
        self._next_segment += 1
        self.blocks[segment] = block
        if self.monitor is None and Memory.current is self:
            BLOCKS[segment] = block
        self.allocations[segment] = Allocation(len(block), call_site(), owned)
        if owned:
            self.in_use_bytes += len(block)
        return segment << SEGMENT_BITS

    def release(self, address: int) -> None:
        """Free a block that `alloc` returned; address 0 is ignored, as `free` does."""
        if address == 0:
            return
        block = self._whole(address, "release")
        segment = address >> SEGMENT_BITS
        entry = self.allocations[segment]
        if not entry.owned:
            raise MemoryFault(f"release of memory that was placed, not allocated, at {entry.where}; by {call_site()}")
        entry.freed_at = call_site()
        self.in_use_bytes -= len(block)
        del self.blocks[segment]
        BLOCKS.pop(segment, None)

    def _whole(self, address: int, verb: str) -> Block:
        segment, offset = address >> SEGMENT_BITS, address & OFFSET_MASK
        block = self.blocks.get(segment)
        if block is None:
            self.fault(address, 0, verb)
        if offset:
            raise MemoryFault(f"{verb} of {address:#x}, which is {offset} bytes into a block; at {call_site()}")
        return block

    # -- access from Python ------------------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes."""
        return bytes(self.span(address, size, "read"))

    def write(self, address: int, content: bytes) -> None:
        """Overwrite the bytes at `address`."""
        self.span(address, len(content), "write")[:] = content

    def span(self, address: int, size: int, verb: str) -> memoryview:
        """A view of `size` live bytes; faults if they are not all inside one block."""
        segment, offset = address >> SEGMENT_BITS, address & OFFSET_MASK
        block = self.blocks.get(segment)
        if size < 0 or block is None or offset + size > len(block) or (verb == "write" and isinstance(block, bytes)):
            if size == 0:
                return memoryview(bytearray())
            self.fault(address, size, verb)
        return memoryview(block)[offset : offset + size]

    def live(self) -> list[str]:
        """One line for each allocation that was not released: the leak report."""
        return [
            f"{entry.size} bytes from {entry.where}"
            for segment, entry in self.allocations.items()
            if entry.owned and segment in self.blocks
        ]

    def check_no_leaks(self) -> None:
        """Fault with a list of the allocations that were not released, if there are any."""
        if leaks := self.live():
            raise MemoryFault("never released: " + "; ".join(leaks))

    # -- the slow path of the ops ------------------------------------------------------------------------------------

    def load(self, code: struct.Struct, address: int) -> Any:
        """Do a watched load, or explain why it is not allowed."""
        try:
            value = code.unpack_from(self.blocks[address >> SEGMENT_BITS], address & OFFSET_MASK)[0]
        except (KeyError, struct.error):
            self.fault(address, code.size, "read")
        if self.monitor is None:
            self.fault(address, code.size, "read")
        self.monitor.plain(address, code.size, False)
        return value

    def store(self, code: struct.Struct, address: int, value: Any) -> None:
        """Do a watched store, or explain why it is not allowed."""
        try:
            code.pack_into(self.blocks[address >> SEGMENT_BITS], address & OFFSET_MASK, value)
        except (KeyError, struct.error, TypeError):
            self._refuse(code, address, value)
        if self.monitor is not None:
            self.monitor.plain(address, code.size, True)

    def _refuse(self, code: struct.Struct, address: int, value: Any) -> NoReturn:
        """Raise with the reason why this value cannot be stored there."""
        self.span(address, code.size, "write")
        try:
            code.pack(value)
        except struct.error as why:
            raise MemoryFault(f"store of {value!r} into a {code.size}-byte word ({why}); at {call_site()}") from None
        self.fault(address, code.size, "write")

    def block_access(self, address: int, size: int, verb: str) -> memoryview:
        """The bytes of a `copy`, `fill` or `compare`, reported to the monitor if there is one."""
        view = self.span(address, size, verb)
        if self.monitor is not None and size:
            self.monitor.plain(address, size, verb == "write")
        return view

    def word(self, address: int, read: bool, write: bool) -> memoryview:
        """The 8 aligned bytes of an atomic access; another thread may run before this returns."""
        if address & 7:
            raise MemoryFault(f"atomic access to {address:#x}, which is not 8-byte aligned; at {call_site()}")
        verb = "write" if write else "read"
        found = self.span(address, 8, verb)
        if self.monitor is not None:
            self.monitor.atomic(address, read, write)
            if address >> SEGMENT_BITS not in self.blocks:  # it was freed meanwhile
                self.fault(address, 8, verb)
        return found.cast("q")

    def store_release(self, address: int, value: int) -> None:
        """A release store; the monitor may delay it, so that later loads of this thread overtake it."""
        if self.monitor is None or not self.monitor.store(address, value):
            self.word(address, read=False, write=True)[0] = value

    def fault(self, address: int, size: int, verb: str) -> NoReturn:
        """Raise what is wrong with an access, as precisely as possible."""
        segment, offset = address >> SEGMENT_BITS, address & OFFSET_MASK
        at = call_site()
        entry = self.allocations.get(segment)
        near = self.allocations.get(segment + 1)
        if entry is None and near is not None and offset > OFFSET_MASK // 2:
            what = "before the start of a block from " + near.where
        elif entry is None:
            what = "null or small address" if segment == 0 else "no such block"
        elif entry.freed_at:
            what = f"block from {entry.where} was already released at {entry.freed_at}"
        elif offset + size > entry.size:
            what = f"byte {offset} of a block of {entry.size} from {entry.where}"
        else:
            what = f"read-only block from {entry.where}"
        raise MemoryFault(f"{verb} of {size} bytes at {address:#x}: {what}; at {at}")


def memory() -> Memory:
    """The current memory; a fault if no `with Memory()` is open."""
    if Memory.current is None:
        raise MemoryFault(f"no simulated memory is open; at {call_site()}")
    return Memory.current


_FUNCTIONS: dict[int, Callable[..., Any]] = {}
_ADDRESSES: dict[Callable[..., Any], int] = {}


def function_address(function: Callable[..., Any]) -> int:
    """The address under which `call1` … `call6` find a Python function; always the same one."""
    address = _ADDRESSES.get(function)
    if address is None:
        address = FIRST_FUNCTION + 16 * len(_ADDRESSES)
        _ADDRESSES[function] = address
        _FUNCTIONS[address] = function
    return address


def function_at(address: int) -> Callable[..., Any]:
    """The Python function behind an address; a fault if there is none."""
    function = _FUNCTIONS.get(address)
    if function is None:
        raise MemoryFault(f"call of {address:#x}, which is no function; at {call_site()}")
    return function
