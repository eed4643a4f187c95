"""Native code: compiled once, kept, loaded by llvmlite alone, and callable by address.

`library()` is the runtime library: the native functions of `LIBRARY`, one object per module (`modules.py`).
`compile_stage` makes the object of one generated stage; it calls the library by symbol. Objects come with the package
or from the object cache, and the rest is compiled. `interpret.py` runs the same sources as Python over the simulated
memory.
"""

from __future__ import annotations

import ast
import ctypes
import json
import random
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from cq.cache import cache_directory
from cq.garbage_collection import collector_paused
from cq.records import dataclass
from cq.runtime.base import intrinsics, ops
from cq.runtime.base.effort import Effort, effort_asked
from cq.runtime.base.interpret import LIBRARY, load_modules, stage_constants, stage_scope
from cq.runtime.base.link import LoadedCode, Processor, link, portable, undefined_symbols
from cq.runtime.base.modules import (
    NUMBA,
    SHIPPED,
    Dependencies,
    borrowed,
    inline_texts,
    key_of,
    shipped,
    source_of,
    translator_name,
)  # fmt: skip
from cq.runtime.base.native import Native, natives_of, registered
from cq.runtime.base.notices import QUERY, RUNTIME, tell
from cq.runtime.base.objects import ObjectCache, ObjectCode
from cq.runtime.base.restricted import Callee
from cq.runtime.base.signatures import NativeSignature
from cq.runtime.base.translator import translate

if TYPE_CHECKING:
    from cq.runtime.base.by_numba import ByNumba

_CTYPES: dict[str, Any] = {"i64": ctypes.c_int64, "f64": ctypes.c_double, "void": None}


# -- what is compiled ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """One function to compile: its source, its type, its symbol, and the meaning of its global names."""

    tree: ast.FunctionDef
    path: str
    signature: NativeSignature
    symbol: str
    scope: Mapping[str, Any]


@cache
def _module_functions(module: str) -> dict[str, ast.FunctionDef]:
    """The top-level functions of a module."""
    return _functions(source_of(module))


def _functions(source: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def _source_of(entry: Native) -> FunctionSource:
    module, scope = entry.function.__module__, entry.function.__globals__
    path = sys.modules[module].__file__
    return FunctionSource(_module_functions(module)[entry.name], str(path), entry.signature, entry.symbol, scope)


# -- compiling -------------------------------------------------------------------------------------------------------


# builtins that are ops when compiled, on two i64
_BUILTIN_OPS = {"min": min, "max": max}


def _op_name(value: object) -> str | None:
    """The op that a global value stands for, if any."""
    if value is min or value is max:
        return f"{value.__name__}_i64"
    name = getattr(value, "__name__", "")
    return name if name in ops.OPS and getattr(ops, name) is value else None


def _text(function: FunctionSource, own: Mapping[str, FunctionSource]) -> str:
    """The function as LLVM assembly. own: the functions of the same generated source, which scopes do not hold."""
    callees: dict[str, Callee] = {}
    constants: dict[str, int | float] = {}
    for name in {node.id for node in ast.walk(function.tree) if isinstance(node, ast.Name)}:
        value = function.scope.get(name, _BUILTIN_OPS.get(name))
        if name in own:
            callees[name] = Callee(own[name].symbol, own[name].signature)
        elif (op := _op_name(value)) is not None:
            callees[name] = Callee(intrinsics.symbol(op), NativeSignature.parse(ops.OPS[op]))
        elif (entry := registered(value)) is not None:
            callees[name] = Callee(entry.symbol, entry.signature)
        elif isinstance(value, int):
            constants[name] = int(value)  # an enum member becomes its number
        elif isinstance(value, float):
            constants[name] = value
    made = _numba().translate if translator_name() == NUMBA else translate
    return made(function.tree, function.signature, function.symbol, callees, constants)


@lru_cache(maxsize=1)
def _numba() -> ByNumba:
    """The translation by numba, which takes a while to import."""
    from cq.runtime.base.by_numba import ByNumba

    return ByNumba()


def _object(
    key: str,
    texts: list[str],
    entries: dict[str, str],
    inline: Mapping[str, str],
    target: Processor | None = None,
    effort: Effort = Effort.FULL,
) -> ObjectCode:
    """The object of these translated functions with the ops they use inlined."""
    used = {name for text in texts for name in re.findall(rf'@"?{intrinsics.symbol("")}(\w+)"?', text)}
    code = link([*texts, intrinsics.prelude(used)], frozenset(entries.values()), target, effort)
    return ObjectCode(key, entries, undefined_symbols(code), code, json.dumps(inline, sort_keys=True))


def _compile_natives(natives: list[Native], called: list[Native], key: str) -> ObjectCode:
    """The object of native functions that refer to each other; `called` can be called from outside."""
    symbols = [n.symbol for n in natives]
    assert len(set(symbols)) == len(symbols), "two native functions have one name"
    texts = {n.symbol: _text(_source_of(n), {}) for n in natives}
    entries = {n.name: n.symbol for n in called}
    return _object(key, list(texts.values()), entries, {n.symbol: texts[n.symbol] for n in natives if n.inline})


class _ModuleCompiler:
    """Makes the objects of modules; a function is translated once, however many modules copy it."""

    def __init__(self, group: Dependencies, total: int, target: Processor | None = None) -> None:
        self._group, self._target = group, target
        self._texts: dict[str, str] = {}
        self._done, self._total = 0, total

    def compiled(self, module: str, key: str) -> ObjectCode:
        """The object of a module under this key."""
        natives = natives_of(module)
        texts = {}
        for entry in natives:
            tell(RUNTIME, self._done, self._total)
            texts[entry.symbol] = self._text(entry)
            self._done += 1
        own = list(texts.values())
        lent = [self._text(n) for n in borrowed(natives) if n.symbol not in texts]
        inline = {n.symbol: texts[n.symbol] for n in natives if n.inline}
        return _object(key, own + lent, self._group.entries[module], inline, self._target)

    def leave_out(self, module: str) -> None:
        """Skip a module; its functions count as done."""
        self._done += len(natives_of(module))

    def _text(self, entry: Native) -> str:
        if entry.symbol not in self._texts:
            self._texts[entry.symbol] = _text(_source_of(entry), {})
        return self._texts[entry.symbol]


def compile_modules(modules: Sequence[str], target: Processor) -> dict[str, ObjectCode]:
    """The objects of a group of modules for a target, as shipped in a wheel."""
    group = _group(modules)
    compiler = _ModuleCompiler(group, sum(len(natives_of(m)) for m in modules), target)
    return {module: compiler.compiled(module, group.key(module, target)) for module in modules}


def _group(modules: Sequence[str]) -> Dependencies:
    load_modules(modules)
    symbols = [n.symbol for module in modules for n in natives_of(module)]
    assert len(set(symbols)) == len(symbols), "two native functions have one name"
    return Dependencies(modules)


# -- the runtime library ---------------------------------------------------------------------------------------------


class Library:
    """The loaded native functions of the runtime: `address` for native code, `function` for Python."""

    def __init__(self) -> None:
        self.code = LoadedCode()
        self.addresses: dict[str, int] = {}
        self.key = ""  # of everything stages can see: its initial modules
        self.inline_texts: dict[str, str] = {}
        self._modules: set[str] = set()
        self._signatures: dict[str, NativeSignature] = {}
        self._functions: dict[str, Callable[..., Any]] = {}

    def add(self, objects: Sequence[ObjectCode], natives: Iterable[Native], modules: Iterable[str] = ()) -> None:
        """Load these objects."""
        self.addresses.update(self.code.load(*objects))
        self.inline_texts.update(inline_texts(objects))
        self._signatures.update({n.name: n.signature for n in natives if n.name in self.addresses})
        self._modules.update(modules)
        self.key = self.key or key_of("library", sorted(made.key for made in objects))

    def has(self, modules: Iterable[str]) -> bool:
        """Whether these modules are loaded."""
        return self._modules.issuperset(modules)

    def address(self, name: str) -> int:
        """The address of an exported function."""
        return self.addresses[name]

    def function(self, name: str) -> Callable[..., Any]:
        """An exported function, callable from Python; the GIL is released while it runs."""
        if name not in self._functions:  # ctypes takes 6 us to make one
            self._functions[name] = callable_at(self.addresses[name], self._signatures[name])
        return self._functions[name]


def callable_at(address: int, signature: NativeSignature | str) -> Callable[..., Any]:
    """Native code at an address as a Python function; the GIL is released while it runs."""
    shape = NativeSignature.parse(signature) if isinstance(signature, str) else signature
    arguments = [_CTYPES[kind] for kind in shape.arguments]
    return ctypes.CFUNCTYPE(_CTYPES[shape.result], *arguments)(address)


@lru_cache(maxsize=1)
def object_cache() -> ObjectCache:
    """The object cache of this process."""
    return ObjectCache(cache_directory())


# Queries may start in any thread, several at once: the first of them compiles and loads. No thread that waits for this
# lock holds the import lock of a numba module: that made a deadlock when functions were compiled on their first call.
_LOADING = threading.RLock()


def library() -> Library:
    """The runtime library, compiled if the cache does not have it; one for the life of the process."""
    with _LOADING, collector_paused():
        return _library()


def library_with(modules: Sequence[str]) -> Library:
    """The runtime library, with a group of modules that most runs do not need and that is loaded on demand.

    Modules of the group call functions that the library exports or lends.
    """
    with _LOADING:
        found = _library()
        if not found.has(modules):
            _load_group(found, modules)
        return found


@lru_cache(maxsize=1)
def _library() -> Library:
    made = Library()
    _load_group(made, LIBRARY)
    return made


def _load_group(into: Library, modules: Sequence[str]) -> None:
    """Load every module of the group: as shipped, from the cache, or compiled now."""
    group, target = _group(modules), portable()
    objects = shipped({m: group.key(m, target) for m in modules}) if target and SHIPPED.is_dir() else {}
    keys = {module: group.key(module) for module in modules if module not in objects}
    for module, key in keys.items():
        if (kept := object_cache().get(key)) is not None:
            objects[module] = kept
    missing = [module for module in modules if module not in objects]
    random.shuffle(missing)  # processes that start together compile different modules, and share them through the cache
    compiler = _ModuleCompiler(group, sum(len(natives_of(m)) for m in missing))
    for module in missing:
        kept = object_cache().get(keys[module])
        if kept is None:
            objects[module] = compiler.compiled(module, keys[module])
            object_cache().put(objects[module])
        else:
            objects[module] = kept
            compiler.leave_out(module)
    into.add([objects[m] for m in modules], [n for m in modules for n in natives_of(m)], modules)


def compile_functions(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """These native functions as compiled Python functions by name; everything they call is compiled with them.

    For tests and benchmarks: they are separate from the runtime library, and nothing is cached.
    """
    asked = [entry for function in functions if (entry := registered(function)) is not None]
    assert len(asked) == len(functions), "not a native function"
    found: dict[str, Native] = {}
    waiting = list(asked)
    while waiting:
        entry = waiting.pop()
        if entry.symbol not in found:
            found[entry.symbol] = entry
            scope = entry.function.__globals__
            names = entry.function.__code__.co_names
            waiting.extend(callee for name in names if (callee := registered(scope.get(name))) is not None)
    built = Library()
    built.add([_compile_natives(list(found.values()), asked, key_of("test"))], asked)
    return {n.name: built.function(n.name) for n in asked}


# -- stages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadedStage:
    """A loaded stage: the address of each entry, and where its source can be read."""

    key: str
    addresses: dict[str, int]
    source_path: str


def compile_stage(
    source: str, signatures: Mapping[str, str], entries: Iterable[str], effort: Effort = Effort.FULL
) -> LoadedStage:
    """The functions of a generated source as loaded native code.

    signatures: of every function in the source.  entries: those that are called by address.  effort: the least that
    suits; code that was optimised more before is taken all the same.
    Sources that differ only in comments, which name the origin of a block, are one stage.
    """
    runtime = library()
    callable_names = sorted(entries)
    code = _without_comments(source)

    def key(effort: Effort) -> str:
        what = runtime.key, code, sorted(signatures.items()), callable_names
        return key_of("stage", translator_name(), effort, *what)

    least, most = effort_asked(effort), effort_asked(Effort.FULL)
    with _LOADING:
        for known in (key(e) for e in reversed(Effort) if least <= e <= most):
            if known in _stages:
                return _stages[known]
            if (made := object_cache().get(known)) is not None:
                return _loaded(made)
        made = _compile_source(source, signatures, callable_names, key(least), least)
        object_cache().put(made, source)
        return _loaded(made)


def _loaded(made: ObjectCode) -> LoadedStage:
    """The stage of this object, which was not loaded before."""
    found = LoadedStage(made.key, library().code.load(made), object_cache().source_path(made.key))
    _stages[made.key] = found
    return found


_stages: dict[str, LoadedStage] = {}
_COMMENT = re.compile(r"[ \t]*#[^\n]*")  # generated sources have no string literals that could contain a #


@lru_cache(maxsize=64)  # a program that runs a query again and again looks its stages up each time
def _without_comments(source: str) -> str:
    return _COMMENT.sub("", source)


def _compile_source(
    source: str, signatures: Mapping[str, str], entries: list[str], key: str, effort: Effort
) -> ObjectCode:
    path = object_cache().source_path(key)
    scope = {**stage_scope(signatures), **stage_constants(source)}
    trees = _functions(source)
    assert trees.keys() == signatures.keys(), "every function of a generated source has a signature"
    own = {
        name: FunctionSource(tree, path, NativeSignature.parse(signatures[name]), f"cqst_{key[:16]}_{name}", scope)
        for name, tree in trees.items()
    }
    texts: list[str] = []
    for function in own.values():
        tell(QUERY, len(texts), len(own))
        texts.append(_text(function, own))
    texts += _copied(texts, library().inline_texts)
    return _object(key, texts, {name: own[name].symbol for name in entries}, {}, effort=effort)


def _copied(texts: list[str], inline: Mapping[str, str]) -> list[str]:
    """The inline natives that the texts call, directly or indirectly."""
    needed: dict[str, str] = {}
    waiting = list(texts)
    while waiting:
        text = waiting.pop()
        for symbol in set(re.findall(r'declare [^\n]*@"(cqrt_\w+)"', text)) & inline.keys() - needed.keys():
            needed[symbol] = inline[symbol]
            waiting.append(inline[symbol])
    return [needed[symbol] for symbol in sorted(needed)]
