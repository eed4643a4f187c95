"""Compiling, keeping and loading native code."""

from __future__ import annotations

import ctypes
import enum
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from both_ways import small_library

from cq.cache import cache_directory
from cq.records import replace
from cq.runtime.base import interpret, intrinsics, kernel, link, ops
from cq.runtime.base.interpret import interpret_stage, load_modules, stage_scope
from cq.runtime.base.modules import NUMBA
from cq.runtime.base.native import native, natives_of, registered
from cq.runtime.base.objects import BadContainer, ObjectCache, ObjectCode
from cq.runtime.base.ops import add_ovf, ld_i64, st_f64, st_i64, wadd
from cq.runtime.base.restricted import TranslationError
from cq.runtime.base.simulation import Memory

pytestmark = pytest.mark.optimised

STAGE = """
def half(x):
    return x * 0.5


def k(state, batch):
    total = 0
    for row in range(ld_i64(batch, 0)):
        total = wadd(total, ld_i64(batch, row + 1))
    st_f64(state, 0, half(avg_i128(0, total, 1)))
    return total
"""
SIGNATURES = {"k": "i64(i64, i64)", "half": "f64(f64)"}


@pytest.fixture(scope="module", autouse=True)
def library():
    """Little to compile before the stages of these tests."""
    with small_library():
        yield


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty object cache for one test."""
    made = ObjectCache(tmp_path / "cache")
    monkeypatch.setattr(kernel, "object_cache", lambda: made)
    monkeypatch.setattr(kernel, "_stages", {})
    return made


def run_stage(stage: kernel.LoadedStage) -> tuple[int, float]:
    state, batch = (ctypes.c_double * 1)(), (ctypes.c_int64 * 4)(3, 10, 20, 33)
    k = kernel.callable_at(stage.addresses["k"], SIGNATURES["k"])
    return k(ctypes.addressof(state), ctypes.addressof(batch)), state[0]


def test_a_stage_computes_the_same_compiled_and_interpreted():
    assert run_stage(kernel.compile_stage(STAGE, SIGNATURES, ["k"])) == (63, 31.5)
    with Memory() as memory:
        batch = memory.place(bytes((ctypes.c_int64 * 4)(3, 10, 20, 33)))
        state = ops.alloc(8)
        assert interpret_stage(STAGE)["k"](state, batch) == 63
        assert ops.ld_f64(state, 0) == 31.5


def test_interpreted_errors_show_the_generated_line():
    with Memory(), pytest.raises(Exception, match="read of 8 bytes") as caught:
        interpret_stage(STAGE, "<stage 7>")["k"](0, 0)
    assert any(entry.path == "<stage 7>" or str(entry.path) == "<stage 7>" for entry in caught.traceback)


def test_generated_source_sees_ops_and_exports_and_nothing_else():
    scope = stage_scope()
    assert {"ld_i64", "block_new", "free_list_take", "range"} <= scope.keys()
    assert not {"open", "__import__", "print", "_keep", "eval"} & scope.keys()
    functions = interpret_stage("def f():\n    return open('/etc/passwd')\n")
    with pytest.raises(NameError):
        functions["f"]()


def test_a_global_that_is_not_an_op_does_not_compile():
    with pytest.raises(TranslationError, match="frobnicate is neither an op"):
        kernel.compile_stage("def f(a):\n    return frobnicate(a)\n", {"f": "i64(i64)"}, ["f"])


def test_native_functions_of_the_library_name_only_what_compiles():
    from dis import get_instructions

    load_modules(interpret.LIBRARY)
    for entry in (n for module in interpret.LIBRARY for n in natives_of(module)):
        for step in get_instructions(entry.function):
            if step.opname == "LOAD_GLOBAL" and step.argval not in {
                "range",
                "min",
                "max",
                "abs",
                "int",
                "float",
                "AssertionError",
            }:
                value = entry.function.__globals__[step.argval]
                known = isinstance(value, int | float) or registered(value) or value is getattr(ops, step.argval, None)
                assert known, f"{entry.function.__module__}.{entry.name}: {step.argval}"


COLOUR = enum.IntEnum("Colour", ["RED", "BLUE"])
BLUE = COLOUR.BLUE  # type: ignore[attr-defined]


@native("i64(i64)", export=True)
def plus_blue(a: int) -> int:
    """a + 2, by an enum member."""
    return a + BLUE


def test_an_enum_member_is_a_number():
    assert kernel.compile_functions(plus_blue)["plus_blue"](40) == 42


def test_code_that_could_raise_does_not_compile(monkeypatch):
    source = "def f(a, b):\n    total = 0\n    for i in range(0, a, b):\n        total += i\n    return total\n"
    with pytest.raises(TranslationError, match="is not restricted Python"):
        kernel.compile_stage(source, {"f": "i64(i64, i64)"}, ["f"])
    monkeypatch.setattr(kernel, "translator_name", lambda: NUMBA)
    with pytest.raises(link.LinkError, match="_f can"):
        kernel.compile_stage(source, {"f": "i64(i64, i64)"}, ["f"])


def test_equal_stages_are_loaded_once():
    first = kernel.compile_stage(STAGE, SIGNATURES, ["k"])
    assert kernel.compile_stage(STAGE, SIGNATURES, ["k"]) is first


def test_a_stage_that_differs_in_comments_is_known(own_cache):
    one = STAGE.replace("    total = 0\n", "    # line 7: sum\n    total = 0  # nothing yet\n").replace("0.5", "0.125")
    other = one.replace("line 7", "line 9").replace("nothing", "none")
    assert one != other
    assert kernel.compile_stage(one, SIGNATURES, ["k"]) is kernel.compile_stage(other, SIGNATURES, ["k"])


def test_threads_compile_one_after_the_other(own_cache):
    made: list[kernel.LoadedStage] = []

    def compile_it() -> None:
        made.append(kernel.compile_stage(STAGE.replace("0.5", "0.25"), SIGNATURES, ["k"]))

    threads = [threading.Thread(target=compile_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 2 and made[0] is made[1]


@native("i64(i64)")
def checked(a: int) -> int:
    """a + 1, where a is not 7."""
    assert a != 7, "seven"
    return a + 1


def test_asserts_hold_interpreted_and_are_absent_compiled():
    with pytest.raises(AssertionError, match="seven"):
        checked(7)
    assert kernel.compile_functions(checked)["checked"](7) == 8


@native("(i64, f64)(i64)")
def several(a: int) -> tuple[int, float]:
    """Two results of different kinds."""
    return a * 2, a * 0.5


@native("f64(i64)", export=True)
def sum_of_several(a: int) -> float:
    """Both results, added."""
    x, y = several(a)
    return x + y


@native("i64(i64)", export=True)
def factorial(n: int) -> int:
    """n!, to see recursion."""
    if n < 2:
        return 1
    return n * factorial(n - 1)


def test_natives_call_each_other_with_several_results_and_themselves():
    made = kernel.compile_functions(sum_of_several, factorial)
    assert made["sum_of_several"](5) == sum_of_several(5) == 12.5
    assert made["factorial"](20) == factorial(20)


@native("i64(i64, i64, i64)", export=True)
def between(low: int, x: int, high: int) -> int:
    """x, kept within its bounds."""
    return max(low, min(x, high))


def test_min_and_max_of_integers_are_ops():
    made = kernel.compile_functions(between)["between"]
    for given in [(0, 5, 9), (0, -5, 9), (0, 50, 9), (ops.MIN64, ops.MAX64, ops.MAX64)]:
        assert made(*given) == between(*given)


def test_a_double_is_not_silently_made_an_integer():
    with pytest.raises(TranslationError, match="f64 stands where i64 is needed"):
        kernel.compile_stage("def f(a):\n    return shl(a * 0.5, 1)\n", {"f": "i64(i64)"}, ["f"])


# -- what the machine code looks like --------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", export=True)
def checked_sum(column: int, rows: int, out: int) -> int:
    """The row where the sum of a column overflows, else -1 and the sum is at `out`."""
    total = 0
    for row in range(rows):
        value = ld_i64(column, row)
        if add_ovf(total, value):
            return row
        total = wadd(total, value)
    st_i64(out, 0, total)
    return -1


@native("void(i64, i64, i64)", export=True)
def scale(source: int, target: int, rows: int) -> None:
    """A loop that must vectorise."""
    for row in range(rows):
        st_f64(target, row, ld_i64(source, row) * 1.5)


def assembly(*functions: object) -> str:
    """The x86 assembly of native functions, optimised as for real."""
    entries = [entry for f in functions if (entry := registered(f)) is not None]
    texts = [kernel._text(kernel._source_of(n), {}) for n in entries]
    used = {name for text in texts for name in re.findall(r'@"?cqop_(\w+)"?', text)}
    module = link.optimised([*texts, intrinsics.prelude(used)], frozenset(n.symbol for n in entries))
    return str(link.target_machine().emit_assembly(module))


@pytest.mark.skipif(link.identity()[0].split("-")[0] != "x86_64", reason="reads x86 instructions")
def test_a_checked_sum_is_one_add_and_one_jump_a_row():
    text = assembly(checked_sum)
    assert re.search(r"\bjo\b", text), text
    adds = re.findall(r"\n\s+addq\s+\(.*\), %\w+|\n\s+addq\s+%\w+, %\w+", text)
    assert len(adds) <= text.count("jo\t"), text


@pytest.mark.skipif(link.identity()[0].split("-")[0] != "x86_64", reason="reads x86 instructions")
def test_a_plain_loop_over_columns_uses_vectors():
    assert re.search(r"vmulpd|mulpd", assembly(scale))


def test_object_code_is_the_same_in_every_process():
    script = """if True:
        import hashlib
        from cq.runtime.base import kernel
        from cq.runtime.base.interpret import LIBRARY, load_modules
        from cq.runtime.base.native import natives_of
        load_modules(LIBRARY[:2])
        found = [n for m in LIBRARY[:2] for n in natives_of(m)]
        print(hashlib.sha256(kernel._compile_natives(found, found, 'k').pack()).hexdigest())
    """
    made = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "CQ_CACHE_DIR": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


# -- loading ---------------------------------------------------------------------------------------------------------


def test_object_code_with_an_unknown_symbol_is_not_loaded(tmp_path):
    text = """declare i64 @nobody_has_this(i64)
    define i64 @f(i64 %a) {
      %v = call i64 @nobody_has_this(i64 %a)
      ret i64 %v
    }"""
    code = link.link([text], frozenset({"f"}))
    assert link.undefined_symbols(code) == ("nobody_has_this",)
    with pytest.raises(link.LinkError, match="no nobody_has_this"):
        link.LoadedCode().load(ObjectCode("k", {"f": "f"}, ("nobody_has_this",), code))


def test_object_code_may_use_the_c_library_only_as_far_as_listed():
    text = """declare i32 @system(ptr)
    define i64 @f(i64 %a) {
      %p = inttoptr i64 %a to ptr
      %v = call i32 @system(ptr %p)
      ret i64 0
    }"""
    with pytest.raises(link.LinkError, match="no system"):
        link.LoadedCode().load(ObjectCode("k", {"f": "f"}, (), link.link([text], frozenset({"f"}))))


def test_a_symbol_is_loaded_once():
    code = link.link(["define i64 @twice_loaded(i64 %a) {\n ret i64 %a\n}"], frozenset({"twice_loaded"}))
    made = ObjectCode("k", {"f": "twice_loaded"}, (), code)
    engine = link.LoadedCode()
    engine.load(made)
    with pytest.raises(link.LinkError, match="already loaded"):
        engine.load(made)


# -- the container ---------------------------------------------------------------------------------------------------

SAMPLE = ObjectCode("ab" * 32, {"k": "cqst_k"}, ("malloc",), b"\x7fELF code", "text")


def test_a_container_gives_back_what_was_packed():
    assert ObjectCode.unpack(SAMPLE.pack(), SAMPLE.key) == SAMPLE


def test_every_flipped_bit_and_every_truncation_is_noticed():
    packed = SAMPLE.pack()
    for at in range(len(packed)):
        for damaged in (packed[:at], packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :]):
            with pytest.raises(BadContainer):
                ObjectCode.unpack(damaged, SAMPLE.key)
    with pytest.raises(BadContainer):
        ObjectCode.unpack(packed + b"x", SAMPLE.key)


def test_a_container_of_another_key_is_refused():
    with pytest.raises(BadContainer, match="key"):
        ObjectCode.unpack(SAMPLE.pack(), "cd" * 32)


# -- the cache -------------------------------------------------------------------------------------------------------


def test_a_kept_object_is_found_again_with_its_source_beside_it(tmp_path):
    cache = ObjectCache(tmp_path / "cache")
    assert cache.get(SAMPLE.key) is None
    cache.put(SAMPLE, "def k(): ...\n")
    assert cache.get(SAMPLE.key) == SAMPLE
    assert (tmp_path / "cache" / f"{SAMPLE.key}.py").read_text() == "def k(): ...\n"
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert all(entry.stat().st_mode & 0o777 == 0o600 for entry in (tmp_path / "cache").iterdir())


def test_a_damaged_or_foreign_entry_is_compiled_anew(own_cache):
    first = kernel.compile_stage(STAGE.replace("0.5", "0.125"), SIGNATURES, ["k"])
    entry = own_cache.directory / f"{first.key}.cqo"
    intact = entry.read_bytes()
    for content in (b"", intact[:-1], intact[:60] + b"\0" + intact[61:], b"MZ" + intact):
        entry.write_bytes(content)
        assert own_cache.get(first.key) is None
    entry.write_bytes(intact)
    os.chmod(entry, 0o666)
    assert own_cache.get(first.key) is None
    os.chmod(entry, 0o600)
    assert own_cache.get(first.key) is not None
    target = own_cache.directory / "elsewhere"
    os.rename(entry, target)
    os.symlink(target, entry)
    assert own_cache.get(first.key) is None
    entry.unlink()
    os.mkfifo(entry)
    assert own_cache.get(first.key) is None


def test_an_unsafe_directory_is_not_used_and_that_is_said_once(tmp_path, caplog):
    shared = tmp_path / "shared"
    shared.mkdir()
    ObjectCache(shared).put(SAMPLE)
    os.chmod(shared, 0o777)
    cache = ObjectCache(shared)
    assert cache.get(SAMPLE.key) is None
    cache.put(replace(SAMPLE, key="ef" * 32))
    assert len(list(shared.iterdir())) == 1
    assert [r.message for r in caplog.records if "not kept" in r.message] == [
        f"compiled code is not kept: others can write to the cache directory {shared}"
    ]
    inside = ObjectCache(shared / "inside")
    inside.put(SAMPLE)
    assert inside.get(SAMPLE.key) is None
    assert "a parent of the cache directory" in inside.refused


def test_a_directory_behind_a_symlink_or_a_file_is_not_used(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    os.symlink(tmp_path / "real", tmp_path / "link")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        cache = ObjectCache(tmp_path / name)
        cache.put(SAMPLE)
        assert cache.get(SAMPLE.key) is None
        assert cache.refused
    assert not list((tmp_path / "real").iterdir())


def test_the_longest_unused_objects_leave_a_full_cache(tmp_path):
    cache = ObjectCache(tmp_path / "cache", limit_bytes=3 * len(SAMPLE.pack()))
    keys = [f"{n:02d}" * 32 for n in range(5)]
    for n, key in enumerate(keys):
        cache.put(replace(SAMPLE, key=key))
        os.utime(tmp_path / "cache" / f"{key}.cqo", ns=(n, n))
        if n == 2:
            cache.get(keys[0])
    assert [cache.get(key) is not None for key in keys] == [True, False, False, True, True]


def test_no_directory_means_no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CQ_CACHE_DIR", "")
    assert cache_directory() is None
    monkeypatch.setenv("CQ_CACHE_DIR", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("CQ_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "cq"
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")  # relative: to be ignored, says its specification
    assert cache_directory() == Path.home() / ".cache" / "cq"
    cache = ObjectCache(None)
    cache.put(SAMPLE)
    assert cache.get(SAMPLE.key) is None
    assert cache.source_path(SAMPLE.key).startswith("<cq ")


FRESH = """if True:
    import sys
    from cq.runtime.base import kernel
    kernel.library()
    stage = kernel.compile_stage(%r, %r, ["k"])
    print("numba" in sys.modules, "numpy" in sys.modules)
"""


def test_compiling_a_stage_imports_neither_numba_nor_numpy():
    stage = STAGE.replace("half", f"half_{time.time_ns()}")
    script = FRESH % (stage, {"k": SIGNATURES["k"], re.search(r"half_\d+", stage)[0]: SIGNATURES["half"]})
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


def test_threads_that_need_the_same_stage_load_it_once(own_cache, monkeypatch):
    loads, meeting = [], threading.Barrier(2)

    def load(engine, made):
        loads.append(made.key)
        with suppress(threading.BrokenBarrierError):
            meeting.wait(0.1)  # only a second load at the same time lets it through
        return {"k": 1}

    monkeypatch.setattr(link.LoadedCode, "load", load)
    kernel.compile_stage(STAGE, SIGNATURES, ["k"])  # threads may not compile
    kernel._stages.clear()
    loads.clear()
    meeting.reset()
    threads = [threading.Thread(target=kernel.compile_stage, args=(STAGE, SIGNATURES, ["k"])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1


FAR = """
import mmap
from contextlib import contextmanager


def mapped(size):
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE


def some_gigabytes():
    return mapped(3 << 30)


plugs = [mapped(48 << 20)] if PLUGGED else []
held = [some_gigabytes()]
import numpy, pyarrow  # whose libraries leave small gaps elsewhere
from cq.runtime.base import kernel, link

hole = link._hole


@contextmanager
def gap_for_one():
    with hole():
        if plugs:
            plugs.pop().close()
        yield


link._hole = gap_for_one
for n in range(20):
    held.append(some_gigabytes())
    stage = STAGE.replace("total = 0", "total = 0; fill(state, 0, ld_i64(batch, 0))") if n else STAGE
    kernel.compile_stage(stage.replace("0.5", f"0.{n}5"), SIGNATURES, ["k"])
"""


@pytest.mark.parametrize("plugged", [False, True], ids=["", "and a gap for one kind comes free"])
def test_code_is_loaded_near_its_constants_however_much_is_mapped_meanwhile(plugged: bool) -> None:
    """LLVM aborts the process where they, or the addresses of what is called in C, are more than 2 GiB apart."""
    program = f"STAGE, SIGNATURES, PLUGGED = {STAGE!r}, {SIGNATURES!r}, {plugged}\n{FAR}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
