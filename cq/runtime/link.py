"""LLVM assembly in, machine code out; and machine code into this process. llvmlite only, no numba.

`link` makes one relocatable object of many functions. `Engine` loads objects; before an object is made executable
every symbol it needs is looked up, because a missing one would only show as a crash when it is called.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from cq.runtime.intrinsics import LIBC, RAISES
from cq.runtime.objects import ObjectCode

_OPTIMISE = 3


class LinkError(Exception):
    """Object code needs a symbol nobody has, or a part cannot be linked."""


@lru_cache(maxsize=1)
def target_machine() -> Any:
    """The machine we run on, all its features used."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=cpu_features(), opt=_OPTIMISE, reloc="pic", codemodel="small"
    )


@lru_cache(maxsize=1)
def cpu_features() -> str:
    """The features of this core as LLVM writes them."""
    return str(llvm.get_host_cpu_features().flatten())


def identity() -> list[str]:
    """What of this machine decides whether object code can run on it."""
    return [llvm.get_default_triple(), llvm.get_host_cpu_name(), cpu_features()]


def link(texts: Iterable[str], exports: frozenset[str]) -> bytes:
    """One object file of these modules; only `exports` can be called from outside it."""
    code = bytes(target_machine().emit_object(optimised(texts, exports)))
    if raising := [name.removeprefix(RAISES) for name in undefined_symbols(code) if name.startswith(RAISES)]:
        raise LinkError(f"native code cannot raise, but {', '.join(raising)} can")
    return code


def optimised(texts: Iterable[str], exports: frozenset[str]) -> Any:
    """One optimised module of these modules."""
    machine = target_machine()
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
    options = llvm.create_pipeline_tuning_options(speed_level=_OPTIMISE)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


_ENGINES: list[Engine] = []  # addresses outlive the objects that asked for them, so the code behind them stays


class Engine:
    """Holds loaded object code for the life of the process; code that was loaded is never unloaded."""

    def __init__(self) -> None:
        self._jit = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        self._kept: list[Any] = []
        self.addresses: dict[str, int] = {}
        _ENGINES.append(self)

    def load(self, made: ObjectCode) -> dict[str, int]:
        """Address by callable name; `LinkError` when a symbol is missing or one is defined that already was."""
        for symbol in made.entries.values():
            if symbol in self.addresses:
                raise LinkError(f"{symbol} is already loaded")
        for symbol in undefined_symbols(made.code):
            if symbol not in self.addresses and not (symbol in LIBC and llvm.address_of_symbol(symbol)):
                raise LinkError(f"no {symbol} to link with")
        file = llvm.ObjectFileRef.from_data(made.code)
        self._kept.append((file, made.code))
        self._jit.add_object_file(file)
        self._jit.finalize_object()
        found = {name: int(self._jit.get_function_address(symbol)) for name, symbol in made.entries.items()}
        if missing := [name for name, address in found.items() if not address]:
            raise LinkError(f"object code lacks {', '.join(missing)}")
        self.addresses.update({symbol: found[name] for name, symbol in made.entries.items()})
        return found


# -- ELF: the symbol table is all we read ------------------------------------------------------------------------------

_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entry size
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_SYMBOL_TABLE = 2


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """The symbols an ELF object needs from others, sorted."""
    return tuple(sorted({name for name, section in _symbols(code) if section == 0 and name}))


def _symbols(code: bytes) -> Iterator[tuple[str, int]]:
    if code[:6] != b"\x7fELF\x02\x01":
        raise LinkError("object code is not 64-bit little-endian ELF")
    (table_at,) = struct.unpack_from("<Q", code, 40)
    entry_bytes, count = struct.unpack_from("<HH", code, 58)
    sections = [_SECTION.unpack_from(code, table_at + n * entry_bytes) for n in range(count)]
    for section in sections:
        if section[1] != _SYMBOL_TABLE:
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name_at, _, _, home, _, _ = _SYMBOL.unpack_from(code, at)
            start = strings + name_at
            yield code[start : code.index(b"\0", start)].decode(), home
