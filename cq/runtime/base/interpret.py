"""The names that generated source may use, and the same source as Python functions over the simulated memory.

Needs neither numba nor llvmlite.
"""

from __future__ import annotations

import importlib
import linecache
import pkgutil
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from cq.runtime.base import ops
from cq.runtime.base.native import natives_of


def _modules(folder: str) -> tuple[str, ...]:
    """The modules in a folder of the runtime."""
    found = pkgutil.iter_modules([str(Path(__file__).parent.parent / folder)])
    return tuple(f"cq.runtime.{folder.replace('/', '.')}.{module.name}" for module in found)


CONTAINERS = _modules("containers")  # of state
WAYS = _modules("engine/ways")  # of running a stage

# the modules whose native functions make up the runtime library, in the order of their object code
LIBRARY: tuple[str, ...] = (
    "cq.runtime.queues.free_list",
    "cq.runtime.containers.blocks",
    "cq.runtime.values.int128",
    *(name for name in CONTAINERS if name != "cq.runtime.containers.blocks"),
    "cq.runtime.values.text",
    "cq.runtime.values.xxhash",
    "cq.runtime.values.characters",
    "cq.runtime.values.divisors",
    "cq.runtime.values.numerals",
    "cq.runtime.values.decimals",
    "cq.runtime.values.array_building",
    "cq.runtime.values.array_sets",
    "cq.runtime.values.arrays",
    "cq.runtime.values.building",
    "cq.runtime.values.codes",
    "cq.runtime.values.digests",
    "cq.runtime.values.doubles",
    "cq.runtime.values.times",
    "cq.runtime.values.json_paths",
    "cq.runtime.values.patterns",
    "cq.runtime.values.regular",
    "cq.runtime.values.zones",
    "cq.runtime.values.instants",
    "cq.lang.calendar",  # registered by cq.runtime.values.times
    "cq.runtime.queues.ring",
    "cq.runtime.queues.pool",
    "cq.runtime.queues.reorder",
    "cq.runtime.queues.hybrid",
    "cq.runtime.flow.packing",
    "cq.runtime.flow.batch",
    "cq.runtime.flow.event_times",
    "cq.runtime.flow.watermarks",
    "cq.runtime.flow.grids",
    "cq.runtime.flow.parcel",
    "cq.runtime.flow.export",
    "cq.runtime.flow.rowhash",
    "cq.runtime.flow.mixed",
    "cq.runtime.flow.admission",
    "cq.runtime.engine.stage",
    "cq.runtime.engine.schedule",
    "cq.runtime.flow.rooms",
    "cq.runtime.flow.shares",
    "cq.runtime.flow.split",
    "cq.runtime.flow.merged_segments",
    "cq.runtime.flow.merged_lanes",
    "cq.runtime.flow.chained",
    *WAYS,
    "cq.runtime.engine.worker",
)

# those that generate the rows of workloads, loaded by their readers
GENERATORS: tuple[str, ...] = (
    "cq.runtime.generators.draws",
    "cq.runtime.generators.traffic",
    "cq.runtime.generators.reports",
    "cq.runtime.generators.lines",
    "cq.runtime.generators.auctions",
)

# those that read file formats, likewise
READERS: tuple[str, ...] = ("cq.runtime.readers.csv_columns", "cq.runtime.readers.json_lines")

# those that write file formats
WRITERS: tuple[str, ...] = ("cq.runtime.writers.csv_lines",)


def stage_scope(names: Iterable[str] = ()) -> dict[str, Any]:
    """The names generated source may use besides those it declares: the ops, exported and inline natives, `range`."""
    load_modules(LIBRARY)
    scope: dict[str, Any] = {name: getattr(ops, name) for name in ops.OPS}
    for module in LIBRARY:
        scope.update({n.name: n.function for n in natives_of(module) if n.export or n.inline})
    scope.update({"range": range, "int": int, "float": float, "bool": bool, "min": min, "max": max, "abs": abs})
    assert scope.keys().isdisjoint(names), "generated names shadow the runtime"
    return scope


def stage_constants(source: str) -> dict[str, int]:
    """The constants at the beginning of a generated source: a line each, before its functions."""
    return {name: int(value) for name, value in _DECLARED.findall(source)}


_DECLARED = re.compile(r"^([A-Z][A-Z0-9_]*) = (-?[0-9]+)$", re.M)


def load_modules(names: Iterable[str]) -> None:
    """Import the modules, so that their native functions are registered."""
    for name in names:
        importlib.import_module(name)


def interpret_stage(source: str, path: str = "<cq stage>") -> dict[str, Callable[..., Any]]:
    """The functions of a generated source by name, running over the simulated memory."""
    scope = stage_scope()
    scope["__builtins__"] = {"AssertionError": AssertionError}
    lines = source.splitlines(keepends=True)
    linecache.cache[path] = (len(source), None, lines, path)
    own = dict(scope)
    exec(_code(source, path), own)  # noqa: S102  the source is generated and verified by codegen
    return {
        name: value for name, value in own.items() if isinstance(value, FunctionType) and scope.get(name) is not value
    }


@lru_cache(maxsize=16)
def _code(source: str, path: str) -> CodeType:
    """Its code, cached: tests run one stage several times."""
    return compile(source, path, "exec")
