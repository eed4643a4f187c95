"""What generated source may name, and the same source as Python functions over the simulated memory.

Needs neither numba nor llvmlite.
"""

from __future__ import annotations

import importlib
import linecache
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from cq.runtime import ops
from cq.runtime.native import natives_of

# the modules whose native functions make up the runtime library, in the order of their object code
LIBRARY: tuple[str, ...] = (
    "cq.runtime.shelf",
    "cq.runtime.memory",
    "cq.runtime.wide",
    "cq.runtime.tables",
    "cq.runtime.panes",
    "cq.runtime.buffers",
    "cq.runtime.text",
    "cq.runtime.characters",
    "cq.runtime.numerals",
    "cq.runtime.doubles",
    "cq.runtime.times",
    "cq.calendar",  # registered by cq.runtime.times
    "cq.runtime.saving",
    "cq.runtime.ring",
    "cq.runtime.bag",
    "cq.runtime.reorder",
    "cq.runtime.hybrid",
    "cq.runtime.batch",
    "cq.runtime.parcel",
    "cq.runtime.export",
    "cq.runtime.rowhash",
    "cq.runtime.merge",
    "cq.runtime.stage",
    "cq.runtime.schedule",
    "cq.runtime.split",
    "cq.runtime.gather",
    "cq.runtime.lanes",
    "cq.runtime.partials",
    "cq.runtime.worker",
)


def stage_scope(names: Iterable[str] = ()) -> dict[str, Any]:
    """What generated source may name besides its own functions: the ops, exported and inline natives, `range`."""
    load_modules(LIBRARY)
    scope: dict[str, Any] = {name: getattr(ops, name) for name in ops.OPS}
    for module in LIBRARY:
        scope.update({n.name: n.function for n in natives_of(module) if n.export or n.inline})
    scope.update({"range": range, "int": int, "float": float, "bool": bool, "min": min, "max": max, "abs": abs})
    assert scope.keys().isdisjoint(names), "generated names shadow the runtime"
    return scope


def load_modules(names: Iterable[str]) -> None:
    """The modules are imported, so that their native functions are registered."""
    for name in names:
        importlib.import_module(name)


def interpret_stage(source: str, path: str = "<cq stage>") -> dict[str, Callable[..., Any]]:
    """The functions of a generated source by name, running over the simulated memory."""
    scope = stage_scope()
    scope["__builtins__"] = {"AssertionError": AssertionError}
    lines = source.splitlines(keepends=True)
    linecache.cache[path] = (len(source), None, lines, path)
    own = dict(scope)
    exec(compile(source, path, "exec"), own)  # noqa: S102  the source is generated and verified by codegen
    return {
        name: value for name, value in own.items() if isinstance(value, FunctionType) and scope.get(name) is not value
    }
