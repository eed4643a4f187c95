"""One object per module: what the object code of a module of the runtime depends on, and where it is found.

The key of a module's object is the hash of everything it was made from: our translation, the module's source and
constants, the signatures of what it calls, the sources of the small functions it copies from other modules, and the
target. So only the changed module is recompiled. Objects that came with the package are tried first; they are made for
the portable target (`link.portable`) and used only if the key matches and the processor has what they need.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite.binding import llvm_version_info

from cq.runtime.base.link import Processor, identity, portable
from cq.runtime.base.native import Native, natives_of, registered
from cq.runtime.base.objects import SUFFIX, BadContainer, ObjectCode
from cq.version import VERSION

NUMBA, DIRECT = "numba", "direct"  # translators of native functions
_MAKERS = (
    "effort",
    "ops",
    "intrinsics",
    "signatures",
    "native",
    "restricted",
    "link",
    "modules",
    "kernel",
)  # and a translator:
_TRANSLATORS = {DIRECT: "translator", NUMBA: "by_numba"}  # these sources decide the object code

SHIPPED = Path(__file__).parent.parent / "objects"  # where a wheel build puts objects


@lru_cache(maxsize=1)
def translator_name() -> str:
    """The translator of this process: `direct`, unless the environment variable CQ_TRANSLATOR says `numba`."""
    return NUMBA if os.environ.get("CQ_TRANSLATOR") == NUMBA else DIRECT


# -- keys ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _makers(target: Processor | None = None) -> tuple[str, ...]:
    """What every object depends on: our translation, the tools, the machine it is for.

    Code for this machine is recompiled when any tool changes. Shipped code is not: loading it needs the LLVM that reads
    its assembly, but not the Python it was made by.
    """
    here = Path(__file__).parent
    makers = (*_MAKERS, _TRANSLATORS[translator_name()])
    sources = [hashlib.sha256((here / f"{name}.py").read_bytes()).hexdigest() for name in makers]
    system = (VERSION, platform.system(), platform.machine(), *identity(target))
    if target is not None:
        return (*sources, "llvm", *(str(part) for part in llvm_version_info), *system)
    tools = [llvmlite.__version__, sys.version, sys.implementation.name]
    if translator_name() == NUMBA:
        from importlib import metadata

        tools.append(metadata.version("numba"))
    return (*sources, *tools, *system)


def key_of(*parts: object, target: Processor | None = None) -> str:
    """The key of an object made from these parts, for this machine or the given target."""
    return hashlib.sha256(json.dumps([*_makers(target), *parts]).encode()).hexdigest()


@lru_cache(maxsize=256)
def source_of(module: str) -> str:
    """The source of an imported module."""
    path = sys.modules[module].__file__
    assert path is not None
    return Path(path).read_text(encoding="utf-8")


def _constants(module: str) -> dict[str, str]:
    """The numbers that functions of a module may name, wherever they were declared."""
    names = vars(sys.modules[module])
    return {name: repr(value) for name, value in sorted(names.items()) if isinstance(value, int | float)}


def _facts(module: str) -> str:
    """A module's own contribution to code made from it, as a hash."""
    text = "\0".join((module, source_of(module), *(f"{name}={value}" for name, value in _constants(module).items())))
    return hashlib.sha256(text.encode()).hexdigest()


def _callees(module: str) -> dict[str, Native]:
    """The native functions of other modules that this one names, by symbol."""
    found: dict[str, Native] = {}
    for entry in natives_of(module):
        scope = entry.function.__globals__
        for name in entry.function.__code__.co_names:
            callee = registered(scope.get(name))
            if callee is not None and callee.function.__module__ != module:
                found[callee.symbol] = callee
    return found


def borrowed(natives: Iterable[Native]) -> list[Native]:
    """The inline functions that these call, directly or indirectly, by symbol."""
    found: dict[str, Native] = {}
    waiting = list(natives)
    while waiting:
        entry = waiting.pop()
        scope = entry.function.__globals__
        for name in entry.function.__code__.co_names:
            callee = registered(scope.get(name))
            if callee is not None and callee.inline and callee.symbol not in found:
                found[callee.symbol] = callee
                waiting.append(callee)
    return [found[symbol] for symbol in sorted(found)]


class Dependencies:
    """Calls across the borders of a group of modules."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.modules = modules
        self._facts = lru_cache(maxsize=None)(_facts)  # most modules lend to several
        self._callees = {module: _callees(module) for module in modules}
        called = {symbol for found in self._callees.values() for symbol, n in found.items() if not n.inline}
        self.entries = {
            module: {
                n.name if n.export else n.symbol: n.symbol
                for n in natives_of(module)
                if n.export or (n.symbol in called and not n.inline)
            }
            for module in modules
        }

    def key(self, module: str, target: Processor | None = None) -> str:
        """The key of the object of a module of the group."""
        callees = sorted((symbol, str(n.signature)) for symbol, n in self._callees[module].items())
        copied = [self._facts(lender) for lender in self._lenders(module)]
        entries = sorted(self.entries[module].items())
        return key_of("module", self._facts(module), copied, callees, entries, target=target)

    def _lenders(self, module: str) -> list[str]:
        """The modules whose inline functions are copied into this one, directly or indirectly."""
        found: set[str] = set()
        waiting = [module]
        while waiting:
            here = waiting.pop()
            callees = self._callees[here] if here in self._callees else _callees(here)
            lenders = {n.function.__module__ for n in callees.values() if n.inline}
            waiting += lenders - found
            found |= lenders
        return sorted(found - {module})


# -- shipped objects -------------------------------------------------------------------------------------------------


def shipped_name(module: str) -> str:
    """The file of a module's shipped object."""
    return module + SUFFIX


def shipped(keys: Mapping[str, str], directory: Path | None = None) -> dict[str, ObjectCode]:
    """The shipped objects of these modules that can be used here, by name. keys: of the objects."""
    target, found = portable(), {}
    if target is None or not target.runs_here():
        return {}
    for module, key in keys.items():
        try:
            content = ((directory or SHIPPED) / shipped_name(module)).read_bytes()
            found[module] = ObjectCode.unpack(content, key)
        except OSError:
            continue
        except BadContainer as why:
            import logging

            logging.getLogger("cq.runtime").info("the shipped object of %s is not used: %s", module, why)
    return found


def inline_texts(objects: Iterable[ObjectCode]) -> dict[str, str]:
    """The assembly, by symbol, of the functions that other code copies."""
    texts: dict[str, Any] = {}
    for made in objects:
        texts.update(json.loads(made.text))
    return texts
