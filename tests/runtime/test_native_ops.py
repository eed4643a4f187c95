"""Every op does compiled what it does interpreted."""

from __future__ import annotations

import ctypes
import math
import random
import struct

import pytest
from both_ways import small_library

from cq.runtime.base import intrinsics, kernel, ops
from cq.runtime.base.signatures import NativeSignature
from cq.runtime.base.simulation import Memory, MemoryFault, function_address

EDGES = [0, 1, -1, 2, -2, 3, 7, 8, 63, 64, 65, 255, 256, 10**9, -(10**9), 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 32,
         1 << 53, (1 << 53) + 1, 1 << 62, ops.MAX64 - 1, ops.MAX64, ops.MIN64, ops.MIN64 + 1]  # fmt: skip
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 1e-310, 1e300, -1e300, 3.4028235e38, 3.5e38, 1e-46, math.pi,
          4503599627370495.5, -4503599627370495.5, 2.0**53, math.inf, -math.inf, math.nan]  # fmt: skip
MAKE = {
    "i64": lambda r: r.choice([r.choice(EDGES), r.randint(ops.MIN64, ops.MAX64), r.randint(-100, 100)]),
    "f64": lambda r: r.choice([r.choice(FLOATS), r.uniform(-1e6, 1e6), struct.unpack("<d", r.randbytes(8))[0]]),
    "bool": lambda r: r.random() < 0.5,
}
PURE = sorted(
    name
    for name in set(ops.OPS) - {"fence", "pause", "sched_yield", "clock_ns", "alloc", "zalloc"}
    if not name.startswith(
        (
            "ld_",
            "st_",
            "at_",
            "futex",
            "call",
            "set_bit",
            "large_pages",
            "map_pages",
            "unmap_",
            "spare_",
            "kept_",
            "prefetch",
        )
    )
    and name
    not in {"release", "copy", "move", "move_pages", "fill", "compare", "mem_eq", "mem_find", "print_f64", "scan_f64"}
)


@pytest.fixture(scope="module", autouse=True)
def library():
    """Little to compile before the stages of these tests."""
    with small_library():
        yield


@pytest.fixture(scope="module")
def compiled():
    """All ops as functions over i64 and f64, compiled in one stage."""
    source, signatures = [], {}
    for name, text in ops.OPS.items():
        shape = NativeSignature.parse(text)
        given = [f"a{n}" for n in range(len(shape.arguments))]
        passed = [f"{a} != 0" if kind == "bool" else a for a, kind in zip(given, shape.arguments, strict=True)]
        call = f"{name}({', '.join(passed)})"
        source.append(f"def run_{name}({', '.join(given)}):\n    " + (f"return {call}" if shape.results else call))
        kinds = tuple("i64" if kind == "bool" else kind for kind in shape.arguments)
        signatures[f"run_{name}"] = str(
            NativeSignature(tuple("i64" if k == "bool" else k for k in shape.results), kinds)
        )
    stage = kernel.compile_stage("\n\n".join(source) + "\n", signatures, signatures)
    return {n: kernel.callable_at(stage.addresses[f"run_{n}"], signatures[f"run_{n}"]) for n in ops.OPS}


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or struct.pack("<d", a) == struct.pack("<d", b)
    return a == b


def test_every_op_has_a_compiled_form():
    assert set(intrinsics.BODIES) == set(ops.OPS)


@pytest.mark.parametrize("name", PURE)
def test_arithmetic_is_the_same_interpreted_and_compiled(compiled, name):
    r = random.Random(name)
    shape = NativeSignature.parse(ops.OPS[name])
    interpreted, native = getattr(ops, name), compiled[name]
    pairs = [(a, b) for a in EDGES for b in EDGES] if shape.arguments == ("i64", "i64") else []
    pairs += [(a, b) for a in FLOATS for b in FLOATS] if shape.arguments == ("f64", "f64") else []
    done = 0
    for given in pairs + [tuple(MAKE[kind](r) for kind in shape.arguments) for _ in range(1500)]:
        try:
            expected = interpreted(*given)
        except AssertionError:
            continue  # outside the precondition
        if name == "f64_bits" and math.isnan(given[0]):
            continue
        got = native(*given)
        assert same(float(expected) if shape.results == ("f64",) else int(expected), got), (given, expected, got)
        done += 1
    assert done > 200


SIZES = {"i64": 8, "i32": 4, "u32": 4, "i16": 2, "u16": 2, "i8": 1, "u8": 1, "f64": 8, "f32": 4}


@pytest.mark.parametrize("kind", SIZES)
def test_loads_read_the_same_bytes_both_ways(compiled, kind):
    content = random.Random(kind).randbytes(256)
    with Memory() as memory:
        simulated = memory.place(content)
        buffer = ctypes.create_string_buffer(content, len(content))
        for index in range(256 // SIZES[kind]):
            expected = getattr(ops, f"ld_{kind}")(simulated, index)
            assert same(expected, compiled[f"ld_{kind}"](ctypes.addressof(buffer), index))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("i64", [0, -1, ops.MAX64, ops.MIN64]),
        ("i32", [0, -1, 2**31 - 1, -(2**31)]),
        ("u32", [0, 1, 2**32 - 1]),
        ("i16", [0, -1, 32767, -32768]),
        ("u8", [0, 1, 255]),
        ("f64", [0.0, -0.0, 1.5, math.inf, 5e-324]),
        ("f32", [0.0, -0.0, 1.1, 1e300, -1e300, 3.4028235e38, 1e-46]),
    ],
)
def test_stores_write_the_same_bytes_both_ways(compiled, kind, values):
    with Memory() as memory:
        simulated = memory.place(bytes(64), writable=True)
        buffer = ctypes.create_string_buffer(64)
        for index, value in enumerate(values):
            getattr(ops, f"st_{kind}")(simulated, index, value)
            compiled[f"st_{kind}"](ctypes.addressof(buffer), index, value)
        assert memory.read(simulated, 64) == buffer.raw


def test_bits_are_read_and_written_the_same_both_ways(compiled):
    r = random.Random(1)
    with Memory() as memory:
        simulated = memory.place(bytes(16), writable=True)
        buffer = ctypes.create_string_buffer(16)
        for _ in range(300):
            index, value = r.randrange(128), r.random() < 0.5
            for native, address in ((ops.__dict__, simulated), (compiled, ctypes.addressof(buffer))):
                native["st_bit"](address, index, value)
                native["set_bit"](address, (index * 7) % 128)
        assert memory.read(simulated, 16) == buffer.raw
        for index in range(128):
            assert ops.ld_bit(simulated, index) == compiled["ld_bit"](ctypes.addressof(buffer), index)


def test_memory_ops_agree_both_ways(compiled):
    r = random.Random(2)
    content = bytes(r.choice(b"ab") for _ in range(64))
    with Memory() as memory:
        simulated = memory.place(content, writable=True)
        buffer = ctypes.create_string_buffer(content, 64)
        ways = ((ops.__dict__, simulated), (compiled, ctypes.addressof(buffer)))
        for _ in range(300):
            a, b, size = r.randrange(32), 32 + r.randrange(16), r.randrange(16)
            got = [(w["compare"](at + a, at + b, size), bool(w["mem_eq"](at + a, at + b, size))) for w, at in ways]
            assert got[0] == got[1]
            for way, at in ways:
                way["copy"](at + b, at + a, min(size, b - a))
                way["move"](at + a, at + a + 3, size)
                way["fill"](at + r.choice([a]), 97 + size % 2, size // 2)
            assert memory.read(simulated, 64) == buffer.raw


def test_atomic_ops_agree_both_ways(compiled):
    r = random.Random(3)
    with Memory() as memory:
        word = ctypes.c_int64(5)
        simulated = memory.place(bytes(word), writable=True)
        ways = ((ops.__dict__, simulated), (compiled, ctypes.addressof(word)))
        for _ in range(2000):
            name = r.choice([n for n in ops.OPS if n.startswith("at_")])
            value = MAKE["i64"](r)
            arguments = {"at_load": (), "at_load_acq": (), "at_cas": (r.choice([word.value, 7]), value)}.get(
                name, (value,)
            )
            got = [way[name](at, *arguments) for way, at in ways]
            assert got[0] == got[1], name
            assert memory.read(simulated, 8) == bytes(word)


def test_a_call_by_address_reaches_the_function_both_ways(compiled):
    def four(a, b, c, d):
        return a * 1000 + b * 100 + c * 10 + d

    native = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(four)
    address = ctypes.cast(native, ctypes.c_void_p).value
    assert ops.call4(function_address(four), 1, 2, 3, 4) == compiled["call4"](address, 1, 2, 3, 4) == 1234
    with pytest.raises(MemoryFault, match="no function"):
        ops.call1(12345, 1)


def test_allocated_memory_is_usable_compiled(compiled):
    block = compiled["zalloc"](1000)
    assert block % 16 == 0
    assert ctypes.string_at(block, 1000) == bytes(1000)
    compiled["st_i64"](block, 3, 77)
    assert compiled["ld_i64"](block, 3) == 77
    compiled["release"](block)
    compiled["release"](0)
    assert compiled["alloc"](1 << 62) == 0


def test_pages_are_zero_and_go_back_to_the_system_compiled(compiled):
    pages = compiled["map_pages"](1 << 20)
    assert pages % 4096 == 0
    assert ctypes.string_at(pages, 1 << 20) == bytes(1 << 20)
    compiled["spare_pages"](pages, 1 << 20)
    compiled["st_i64"](pages, 3, 77)
    assert compiled["ld_i64"](pages, 3) == 77
    compiled["unmap_pages"](pages, 1 << 20)
    assert compiled["map_pages"](1 << 62) == 0


def test_moved_pages_are_where_they_were_moved_to_and_nowhere_else_compiled(compiled):
    size, page = 1 << 20, 4096
    old, new = compiled["map_pages"](size), compiled["map_pages"](4 * size)
    for at in range(0, size, page):
        compiled["st_i64"](old, at // 8, at + 1)
    start = old + 3 * page
    assert compiled["move_pages"](old, size, start, size - 5 * page, new + 2 * page) == 1
    assert [compiled["ld_i64"](new, at // 8) for at in range(0, size, page)] == [
        at + page + 1 if 2 * page <= at < size - 3 * page else 0 for at in range(0, size, page)
    ]
    assert compiled["move_pages"](old, size, start, page, new) == 0  # it is the system's
    assert ctypes.string_at(new, page) == bytes(page)
    compiled["unmap_pages"](new, 4 * size)


def test_kept_words_are_zero_at_first_and_stay_where_they_are(compiled):
    words = compiled["kept_words"]()
    assert ctypes.string_at(words, 8 * ops.KEPT_WORDS) == bytes(8 * ops.KEPT_WORDS)
    assert compiled["kept_words"]() == words


def test_hints_and_the_clock_are_callable_compiled(compiled):
    for name in ("pause", "sched_yield", "fence"):
        compiled[name]()
    for name in ("prefetch", "prefetch_to_write"):
        compiled[name](0)
        compiled[name](-1)
    compiled["large_pages"](0, 0)
    first = compiled["clock_ns"]()
    assert 0 < first <= compiled["clock_ns"]()


def test_futex_wait_returns_at_once_on_another_value_and_after_the_timeout(compiled):
    word = ctypes.c_int64(7)
    at = ctypes.addressof(word)
    compiled["futex_wait"](at, 8, 3_600_000_000_000)
    before = compiled["clock_ns"]()
    compiled["futex_wait"](at, 7, 2_000_000)
    assert compiled["clock_ns"]() - before >= 1_500_000
    assert compiled["futex_wake"](at, 1) == 0


FAULTS = {
    "read of 8 bytes.*byte 64 of a block of 64": lambda a: ops.ld_i64(a, 8),
    "before the start of a block": lambda a: ops.ld_u8(a, -1),
    "byte 63 of a block of 64": lambda a: ops.ld_i16(a + 63, 0),
    "null or small": lambda a: ops.st_i64(8, 0, 1),
    "store of 256 into a 1-byte": lambda a: ops.st_u8(a, 0, 256),
    "store of -1 into a 4-byte": lambda a: ops.st_u32(a, 0, -1),
    "not 8-byte aligned": lambda a: ops.at_add(a + 4, 1),
    "write of 65 bytes": lambda a: ops.fill(a, 0, 65),
    "already released at": lambda a: (ops.release(a), ops.ld_i64(a, 0)),
    "release of.*already released": lambda a: (ops.release(a), ops.release(a)),
    "bytes into a block": lambda a: ops.release(a + 16),
    "already released": lambda a: (ops.release(a), ops.ld_i64(a, 0)),
}


@pytest.mark.parametrize("message", FAULTS)
def test_a_wrong_access_is_a_fault_that_says_what_and_where(message):
    with Memory(), pytest.raises(MemoryFault, match=message) as caught:
        FAULTS[message](ops.alloc(64))
    assert "test_native_ops.py:" in str(caught.value)


def test_placed_memory_is_read_only_and_cannot_be_released():
    with Memory() as memory:
        at = memory.place(b"12345678")
        with pytest.raises(MemoryFault, match="read-only"):
            ops.st_u8(at, 0, 1)
        with pytest.raises(MemoryFault, match="placed"):
            ops.release(at)


def test_overlapping_copy_is_refused():
    with Memory(), pytest.raises(AssertionError, match="overlapping"):
        at = ops.alloc(64)
        ops.copy(at, at + 8, 16)


def test_leaks_are_listed_with_the_place_of_their_allocation():
    with Memory() as memory:
        ops.release(ops.alloc(8))
        ops.alloc(24)
        with pytest.raises(MemoryFault, match=r"24 bytes from test_native_ops\.py:"):
            memory.check_no_leaks()


def test_allocation_fails_where_the_test_wants_it():
    with Memory(fail_at=1):
        assert ops.alloc(8) != 0
        assert ops.alloc(8) == 0
    with Memory(limit_bytes=100):
        first = ops.alloc(60)
        assert ops.alloc(60) == 0
        ops.st_i64(first, 0, 1)


def test_memories_do_not_see_each_other():
    with Memory():
        outer = ops.zalloc(8)
        with Memory():
            inner = ops.zalloc(16)
            ops.st_i64(inner, 1, 3)
        with pytest.raises(MemoryFault):
            ops.ld_i64(inner, 1)
        assert ops.ld_i64(outer, 0) == 0
    with pytest.raises(MemoryFault, match="no simulated memory"):
        ops.alloc(8)


def test_a_part_is_found_where_it_first_stands_both_ways(compiled):
    r = random.Random(4)
    with Memory() as memory:
        for _ in range(400):
            text = bytes(r.choices(b"ab", k=r.randint(0, 40)))
            part = bytes(r.choices(b"ab", k=r.randint(0, 4)))
            buffer, other = ctypes.create_string_buffer(text), ctypes.create_string_buffer(part)
            given = (ctypes.addressof(buffer), len(text), ctypes.addressof(other), len(part))
            found = ops.mem_find(memory.place(text), len(text), memory.place(part), len(part))
            assert found == compiled["mem_find"](*given) == text.find(part)
        assert compiled["mem_find"](0, 0, 0, 0) == ops.mem_find(0, 0, 0, 0) == 0


def test_doubles_are_printed_and_scanned_the_same_both_ways(compiled):
    r = random.Random(5)
    with Memory() as memory:
        simulated = memory.place(bytes(ops.PRINTED_BYTES), writable=True)
        buffer = ctypes.create_string_buffer(ops.PRINTED_BYTES)
        for _ in range(2000):
            x, digits = MAKE["f64"](r), r.randint(1, 17)
            if not math.isfinite(x):
                continue
            size = ops.print_f64(x, digits, simulated)
            assert size == compiled["print_f64"](x, digits, ctypes.addressof(buffer))
            assert memory.read(simulated, size) == buffer.value
            text = f"{r.randint(0, 10 ** r.randint(1, 25))}e{r.randint(-340, 320)}".encode() + b"\0"
            number = ctypes.create_string_buffer(text)
            assert same(ops.scan_f64(memory.place(text)), compiled["scan_f64"](ctypes.addressof(number)))
