"""Turn LLVM assembly into machine code, and load machine code into this process. llvmlite only, no numba.

`link` makes one relocatable object of many functions, for this machine or for the portable target that objects are
shipped for. `LoadedCode` loads objects; before an object is made executable every symbol it needs is looked up, because
a missing one would only show as a crash when it is called.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from cq.records import dataclass
from cq.runtime.base.effort import Effort
from cq.runtime.base.intrinsics import LIBC, RAISES
from cq.runtime.base.objects import ObjectCode

_OPTIMISE = 3
_LEVELS = {Effort.LITTLE: 0, Effort.SOME: 2, Effort.FULL: _OPTIMISE}  # of choosing instructions
# Above this many lines of LLVM assembly little is optimised, because the time of the whole pipeline grows faster than
# the code: 4 s for 33,000 lines, 13 s for 88,000, 30 s for 133,000; on 165,000 its recursion overflows the stack.
# Inlining and registers alone take 1 to 2 s. Stages of that size have hundreds of outputs, aggregates or branches.
LARGE_LINES = 50_000


class LinkError(Exception):
    """Object code needs a missing symbol, or a part cannot be linked."""


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor that code is made for, as LLVM names it. needs: features a processor must have to run the code."""

    cpu: str
    features: str
    needs: tuple[str, ...] = ()

    def runs_here(self) -> bool:
        """Whether this processor can run the code."""
        has = llvm.get_host_cpu_features()
        return all(has.get(feature, False) for feature in self.needs)


# The target of the object code in a wheel. x86-64-v3 is every Intel since Haswell (2013) and every AMD since Excavator
# (2015); without it, code is compiled on the first run.
_X86_64_V3 = (
    "avx", "avx2", "bmi", "bmi2", "cmov", "cx16", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf",
    "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave",
)  # fmt: skip
_PORTABLE = {"x86_64": Processor("x86-64-v3", "", _X86_64_V3), "aarch64": Processor("generic", "+neon", ("neon",))}


def portable() -> Processor | None:
    """The target of shipped object code on machines like this one; None if none is shipped."""
    return _PORTABLE.get(platform.machine()) if platform.system() == "Linux" else None


@lru_cache(maxsize=1)
def host() -> Processor:
    """The processor we run on, with all its features used."""
    return Processor(llvm.get_host_cpu_name(), cpu_features())


@lru_cache(maxsize=4)
def target_machine(target: Processor | None = None, effort: int = _OPTIMISE) -> Any:
    """LLVM's machine for a target, by default this one."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    made = target or host()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=made.cpu, features=made.features, opt=effort, reloc="pic", codemodel="small"
    )


@lru_cache(maxsize=1)
def cpu_features() -> str:
    """The features of this core as LLVM writes them."""
    return str(llvm.get_host_cpu_features().flatten())


def identity(target: Processor | None = None) -> list[str]:
    """What decides whether object code can run on a target, by default this machine."""
    made = target or host()
    return [llvm.get_default_triple(), made.cpu, made.features]


def link(
    texts: Iterable[str], exports: frozenset[str], target: Processor | None = None, effort: Effort = Effort.FULL
) -> bytes:
    """One object file of these modules; only `exports` can be called from outside it. Large code is LITTLE."""
    texts = list(texts)
    if _is_large(texts):
        effort = Effort.LITTLE
    machine = target_machine(target, _LEVELS[effort])
    code = bytes(machine.emit_object(optimised(texts, exports, target, effort)))
    if raising := [name.removeprefix(RAISES) for name in undefined_symbols(code) if name.startswith(RAISES)]:
        raise LinkError(f"native code cannot raise, but {', '.join(raising)} can")
    return code


def optimised(
    texts: Iterable[str], exports: frozenset[str], target: Processor | None = None, effort: Effort = Effort.FULL
) -> Any:
    """One optimised module of these modules."""
    machine = target_machine(target)
    module = llvm.parse_assembly("")
    module.name = "cq"
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    for text in texts:
        part = llvm.parse_assembly(text)
        part.triple, part.data_layout = module.triple, module.data_layout
        part.verify()
        module.link_in(part)
    for function in module.functions:
        if not function.is_declaration and function.name not in exports:
            function.linkage = "internal"
            if function.name.endswith(".body"):
                function.add_function_attribute("alwaysinline")
    if effort is not Effort.FULL:
        _optimise_a_little(module, machine)
        return module
    options = llvm.create_pipeline_tuning_options(speed_level=_OPTIMISE)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _is_large(texts: Iterable[str]) -> bool:
    return sum(text.count("\n") for text in texts) > LARGE_LINES


def _optimise_a_little(module: Any, machine: Any) -> None:
    """Run passes whose time is linear in the code: required inlining, variables in registers."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))


# Code finds its constants and its table of addresses at most 2 GiB away. LLVM maps memory for each kind wherever there
# is room: after a process had put a table of some GB between two of them, LLVM aborted it. So the very first object
# asks for such a large alignment of a section of each kind that LLVM maps twice as much for it, into one hole that is
# made for the three (`_hole`), and everything loaded later has room there. Memory that is freed meanwhile, by another
# thread or by Python's collector, may be a gap that the kernel prefers: then the room is made again. 16 MiB are enough
# for 2,000 stages, which take 8 KB on average. Unused room takes no memory.
ROOM_BYTES = 16 << 20
REACH_BYTES = 1 << 30  # half the distance that code reaches
MOST_ROOMS = 16  # attempts, though one is nearly always enough
KINDS = 3  # code, constants, variables
MOST_GAPS = 100  # gaps between the mappings of a process that are tried before giving up the hole
_ROOM = """
@cq_room_variable = global i64 1
@cq_room_constant = constant i64 1
define void @cq_room_code() nounwind { ret void }
"""
_ROOM_SYMBOLS = ("cq_room_variable", "cq_room_constant", "cq_room_code")

_ABANDONED: list[Any] = []  # rooms whose kinds are far apart: freeing one ended the process
_ALL_CODE: list[LoadedCode] = []  # addresses outlive the objects that requested them, so the code behind them stays


class LoadedCode:
    """Holds loaded object code for the life of the process; loaded code is never unloaded."""

    def __init__(self) -> None:
        self._jit = _jit()
        self._kept: list[Any] = []
        self.addresses: dict[str, int] = {}
        _ALL_CODE.append(self)

    def load(self, *objects: ObjectCode) -> dict[str, int]:
        """Load objects that may call each other; return addresses by callable name.

        `LinkError` if a symbol is missing or already defined.
        """
        entries = {name: symbol for made in objects for name, symbol in made.entries.items()}
        symbols = [symbol for made in objects for symbol in made.entries.values()]
        known = set(self.addresses)
        for symbol in symbols:
            if symbol in known:
                raise LinkError(f"{symbol} is already loaded")
            known.add(symbol)
        for symbol in (s for made in objects for s in undefined_symbols(made.code)):
            if symbol not in known and not (symbol in LIBC and llvm.address_of_symbol(symbol)):
                raise LinkError(f"no {symbol} to link with")
        if not self._kept:
            self._settle()
        self._add([made.code for made in objects])
        found = {name: int(self._jit.get_function_address(symbol)) for name, symbol in entries.items()}
        if missing := [name for name, address in found.items() if not address]:
            raise LinkError(f"object code lacks {', '.join(missing)}")
        self.addresses.update({symbol: found[name] for name, symbol in entries.items()})
        return found

    def _settle(self) -> None:
        """Make room for everything that will be loaded, with the kinds near each other."""
        for left in reversed(range(MOST_ROOMS)):
            with _hole():
                self._add([_room()])
            if left == 0 or self._apart() < REACH_BYTES:
                return
            _ABANDONED.append((self._jit, self._kept))
            self._jit, self._kept = _jit(), []

    def _apart(self) -> int:
        """The distance between the kinds of the room."""
        places = [self._jit.get_global_value_address(symbol) for symbol in _ROOM_SYMBOLS]
        return int(max(places) - min(places))

    def _add(self, codes: Iterable[bytes]) -> None:
        """Load the objects into memory, ready to run."""
        for code in codes:
            file = llvm.ObjectFileRef.from_data(code)
            self._kept.append((file, code))
            self._jit.add_object_file(file)
        self._jit.finalize_object()


def _jit() -> Any:
    """An object loader, with nothing loaded."""
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


@contextmanager
def _hole() -> Iterator[None]:
    """While it is entered, mappings for the sections of the room are adjacent.

    The kernel takes the highest gap that is wide enough. So gaps are filled until one mapping for each kind lies next
    to the others; these are freed, and for now theirs is the highest gap.
    """
    size = 2 * ROOM_BYTES
    held: list[mmap.mmap] = []
    places: list[int] = []
    try:
        while len(held) < MOST_GAPS:
            try:
                held.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            except OSError:  # no address space is left (ulimit -v): LLVM uses what it finds
                break
            places.append(ctypes.addressof(ctypes.c_char.from_buffer(held[-1])))
            last = places[-KINDS:]
            if len(last) == KINDS and last == [last[0] - n * size for n in range(KINDS)]:
                break
        for _ in range(min(KINDS, len(held))):
            held.pop().close()
        yield
    finally:
        for filler in held:
            filler.close()


# -- ELF: its sections and symbols -------------------------------------------------------------------------------------

_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entry size
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_CONTENTS, _SYMBOL_TABLE = 1, 2  # types of a section
_LOADED = 2  # a flag of a section
_ALIGNMENT = 48  # where it is in a section


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """The symbols an ELF object needs from others, sorted."""
    return tuple(sorted({name for name, section in _symbols(code) if section == 0 and name}))


@lru_cache(maxsize=1)
def _room() -> bytes:
    """An object with code, a constant and a variable, each aligned to ROOM_BYTES."""
    code = bytearray(target_machine().emit_object(llvm.parse_assembly(_ROOM)))
    for at, section in _sections(bytes(code)):
        if section[1] == _CONTENTS and section[2] & _LOADED and section[5] > 0:
            struct.pack_into("<Q", code, at + _ALIGNMENT, ROOM_BYTES)
    return bytes(code)


def _sections(code: bytes) -> list[tuple[int, tuple[int, ...]]]:
    """Where each section header is, and its contents."""
    if code[:6] != b"\x7fELF\x02\x01":
        raise LinkError("object code is not 64-bit little-endian ELF")
    (table_at,) = struct.unpack_from("<Q", code, 40)
    entry_bytes, count = struct.unpack_from("<HH", code, 58)
    places = range(table_at, table_at + count * entry_bytes, entry_bytes)
    return [(at, _SECTION.unpack_from(code, at)) for at in places]


def _symbols(code: bytes) -> Iterator[tuple[str, int]]:
    sections = [section for _, section in _sections(code)]
    for section in sections:
        if section[1] != _SYMBOL_TABLE:
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name_at, _, _, home, _, _ = _SYMBOL.unpack_from(code, at)
            start = strings + name_at
            yield code[start : code.index(b"\0", start)].decode(), home
