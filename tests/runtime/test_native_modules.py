"""One object a module: keys that say what an object was made from, and objects that came with the package."""

import shutil
from importlib import import_module

import pytest
from both_ways import small_library

from cq.records import replace
from cq.runtime.base import kernel, link, modules, shipping
from cq.runtime.base.interpret import GENERATORS, LIBRARY, READERS, WRITERS, load_modules
from cq.runtime.base.notices import RUNTIME, listening

SMALL = LIBRARY[:3]
TARGET = link.portable()
NEEDS_TARGET = pytest.mark.skipif(TARGET is None or not TARGET.runs_here(), reason="no code is shipped for this one")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A directory as a wheel has it, with the objects of three modules."""
    directory = tmp_path_factory.mktemp("objects")
    assert shipping.ship(directory, [SMALL]) == len(SMALL)
    return directory


def keys(target=None):
    load_modules((*LIBRARY, *GENERATORS, *READERS, *WRITERS))
    return {
        m: group.key(m, target) for names in shipping.GROUPS for group in [modules.Dependencies(names)] for m in names
    }


# -- keys ------------------------------------------------------------------------------------------------------------


def changed_by(monkeypatch, change):
    before = keys()
    change()
    after = keys()
    monkeypatch.undo()
    return {module for module in before if after[module] != before[module]}


def edited(monkeypatch, module):
    source_of = modules.source_of
    monkeypatch.setattr(modules, "source_of", lambda m: source_of(m) + ("# edited\n" if m == module else ""))


def test_a_change_of_a_module_is_compiled_alone(monkeypatch):
    module = "cq.runtime.queues.ring"
    assert changed_by(monkeypatch, lambda: edited(monkeypatch, module)) == {module}


def test_a_change_of_a_small_function_is_compiled_wherever_it_is_copied(monkeypatch):
    module = "cq.runtime.generators.draws"
    assert changed_by(monkeypatch, lambda: edited(monkeypatch, module)) == set(GENERATORS)


def test_a_change_of_a_constant_declared_elsewhere_is_compiled(monkeypatch):
    """Word offsets come from cq/runtime/layout, whose source is no part of any object's."""
    reports = import_module("cq.runtime.generators.reports")

    def change():
        monkeypatch.setattr(reports, "EXIT_LANE", reports.EXIT_LANE + 1)

    assert changed_by(monkeypatch, change) == {"cq.runtime.generators.reports"}


def test_shipped_code_has_keys_of_its_own(monkeypatch):
    if TARGET is None:
        pytest.skip("no code is shipped for this machine")
    here, there = keys(), keys(TARGET)
    assert not set(here.values()) & set(there.values())
    monkeypatch.setattr(modules.sys, "version", "another Python")
    modules._makers.cache_clear()
    try:
        assert keys(TARGET) == there
        assert not set(keys().values()) & set(here.values())
    finally:
        monkeypatch.undo()
        modules._makers.cache_clear()


# -- shipped objects -------------------------------------------------------------------------------------------------


@NEEDS_TARGET
def test_a_shipped_object_is_used_and_nothing_compiled(shipped, monkeypatch):
    monkeypatch.setattr(kernel, "SHIPPED", shipped)
    monkeypatch.setattr(modules, "SHIPPED", shipped)
    monkeypatch.setattr(kernel, "_text", lambda *_: pytest.fail("something was compiled"))
    monkeypatch.setattr(kernel, "object_cache", lambda: pytest.fail("the cache was asked"))
    with small_library():
        assert kernel.library().function("avg_i128")(0, 7, 2) == 3.5
        assert kernel.library().function("block_new")(4096, 1)  # which takes from a free list of another module


@NEEDS_TARGET
def test_only_what_is_missing_is_compiled(shipped, monkeypatch, tmp_path):
    part = shutil.copytree(shipped, tmp_path / "part")
    (part / modules.shipped_name(SMALL[1])).unlink()
    compiled, told = [], []
    whole = kernel._ModuleCompiler.compiled

    def noted(self, module, key):
        compiled.append(module)
        return whole(self, module, key)

    monkeypatch.setattr(kernel._ModuleCompiler, "compiled", noted)
    monkeypatch.setattr(kernel, "object_cache", lambda: kernel.ObjectCache(tmp_path / "cache"))
    for module in (kernel, modules):
        monkeypatch.setattr(module, "SHIPPED", part)
    with small_library(), listening(lambda what, done, total: told.append((what, done, total))):
        assert kernel.library().function("block_new")(64, 0)
    assert compiled == [SMALL[1]]
    assert told[0] == (RUNTIME, 0, len(kernel.natives_of(SMALL[1])))
    assert [done for _, done, _ in told] == list(range(told[0][2]))
    with small_library():
        assert kernel.library().function("block_new")(64, 0)
    assert compiled == [SMALL[1]]  # the second time it comes from the cache


class FilledMeanwhile(kernel.ObjectCache):
    """A cache without a module on the first look; another process has left it there by the second."""

    def __init__(self, directory, left):
        super().__init__(directory)
        self.looks, self.left = set(), left

    def get(self, key):
        first = key not in self.looks
        self.looks.add(key)
        return None if first else self.left[key]


def test_what_another_process_has_compiled_meanwhile_is_taken(monkeypatch, tmp_path):
    group = kernel._group(SMALL)
    made = kernel._ModuleCompiler(group, 1)
    cache = FilledMeanwhile(tmp_path, {group.key(m): made.compiled(m, group.key(m)) for m in SMALL})
    monkeypatch.setattr(kernel, "object_cache", lambda: cache)
    monkeypatch.setattr(kernel._ModuleCompiler, "compiled", lambda *_: pytest.fail("a module was compiled twice"))
    into = kernel.Library()
    kernel._load_group(into, SMALL)
    assert into.has(SMALL)


@NEEDS_TARGET
def test_a_shipped_object_that_is_damaged_or_of_another_key_is_not_used(shipped, tmp_path):
    right = {m: modules.Dependencies(SMALL).key(m, TARGET) for m in SMALL}
    assert modules.shipped(right, shipped).keys() == right.keys()
    assert modules.shipped(dict.fromkeys(SMALL, "0" * 64), shipped) == {}
    assert modules.shipped(right, tmp_path / "nowhere") == {}
    copied = shutil.copytree(shipped, tmp_path / "copied")
    file = copied / modules.shipped_name(SMALL[0])
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert modules.shipped(right, copied).keys() == set(SMALL[1:])


@NEEDS_TARGET
def test_a_processor_without_the_features_takes_no_shipped_object(shipped, monkeypatch):
    right = {m: modules.Dependencies(SMALL).key(m, TARGET) for m in SMALL}
    beyond = replace(TARGET, needs=(*TARGET.needs, "a feature of tomorrow"))
    monkeypatch.setattr(modules, "portable", lambda: beyond)
    assert modules.shipped(right, shipped) == {}


@pytest.mark.skipif(link.platform.machine() != "x86_64", reason="names x86 features")
def test_every_feature_the_portable_target_implies_is_asked_for():
    """LLVM says which features x86-64-v3 has: a function that may use them all needs nothing we do not ask for."""
    has = link.llvm.get_host_cpu_features()
    assert set(TARGET.needs) <= has.keys(), "LLVM has no such feature"
    assert {"avx2", "bmi2", "fma", "lzcnt", "movbe", "f16c"} <= set(TARGET.needs)


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "riscv64"), ("Windows", "AMD64")])
def test_nothing_is_shipped_for_other_platforms(monkeypatch, tmp_path, system, machine):
    monkeypatch.setattr(link.platform, "system", lambda: system)
    monkeypatch.setattr(link.platform, "machine", lambda: machine)
    assert link.portable() is None
    assert shipping.ship(tmp_path / "objects") == 0
    assert not (tmp_path / "objects").exists()
