"""The primitive operations native functions are written in.

A native function is plain restricted Python over these ops. Interpreted, an op is the Python function below, over the
simulated memory of `simulation.py`; compiled, the op of the same name in `intrinsics.py`. Both must agree on every
argument that the op allows (tests/runtime/test_native_ops.py compares them); other arguments fail an assert here and
are undefined there.

Values are i64 (Python int within 64 bits), f64 (float) and bool. Plain `+ - *` on i64 must not overflow; use `wadd`,
`wsub`, `wmul` where they may. `& | ^ ~ >>` and comparisons are the plain Python operators; `//` and `%` are not used
(see `sdiv`, `srem`), nor are `<<` (see `shl`) and `/` (see `f64_div`).
An address is an i64; typed loads and stores take a base and an index, so that loops over them vectorise.
This file is over 600 lines because it is one flat list: writers of native code find all ops here.
A 128-bit value is two words, hi (signed) and lo (unsigned bits); its low word is made by `wadd`, `wsub`, `wmul`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, TypeVar

from cq.runtime.base.simulation import BLOCKS, OFFSET_MASK, function_at, memory

MIN64 = -(1 << 63)
MAX64 = (1 << 63) - 1
MASK64 = (1 << 64) - 1

OPS: dict[str, str] = {}  # name -> signature, e.g. "i64(i64, i64)"

LoadInt = Callable[[int, int], int]
LoadFloat = Callable[[int, int], float]
F = TypeVar("F", bound=Callable[..., Any])


def op(signature: str) -> Callable[[F], F]:
    """Register a function as the op of its name with this native signature."""

    def register(function: F) -> F:
        OPS[function.__name__] = signature
        return function

    return register


def _wrap(x: int) -> int:
    x &= MASK64
    return x - (1 << 64) if x > MAX64 else x


# -- loads and stores: address = base + index * size ------------------------------------------------------------------


def _load(name: str, code: str, kind: str, doc: str) -> Callable[[int, int], Any]:
    form = struct.Struct("<" + code)
    unpack, size = form.unpack_from, form.size

    def load(base: int, index: int) -> Any:
        address = base + index * size
        try:
            return unpack(BLOCKS[address >> 32], address & OFFSET_MASK)[0]
        except (KeyError, struct.error):
            return memory().load(form, address)

    load.__name__ = load.__qualname__ = name
    load.__doc__ = doc
    return op(f"{kind}(i64, i64)")(load)


def _store(name: str, code: str, kind: str, doc: str) -> Callable[[int, int, Any], None]:
    form = struct.Struct("<" + code)
    pack, size = form.pack_into, form.size

    def store(base: int, index: int, value: Any) -> None:
        address = base + index * size
        try:
            pack(BLOCKS[address >> 32], address & OFFSET_MASK, value)
        except (KeyError, struct.error, TypeError):
            memory().store(form, address, value)

    store.__name__ = store.__qualname__ = name
    store.__doc__ = doc
    return op(f"void(i64, i64, {kind})")(store)


ld_i64: LoadInt = _load("ld_i64", "q", "i64", "The signed 64-bit word `index` of an array.")
ld_i32: LoadInt = _load("ld_i32", "i", "i64", "The signed 32-bit word `index`.")
ld_u32: LoadInt = _load("ld_u32", "I", "i64", "The unsigned 32-bit word `index`.")
ld_i16: LoadInt = _load("ld_i16", "h", "i64", "The signed 16-bit word `index`.")
ld_u16: LoadInt = _load("ld_u16", "H", "i64", "The unsigned 16-bit word `index`.")
ld_i8: LoadInt = _load("ld_i8", "b", "i64", "The signed byte `index`.")
ld_u8: LoadInt = _load("ld_u8", "B", "i64", "The unsigned byte `index`.")
ld_f64: LoadFloat = _load("ld_f64", "d", "f64", "The double `index`.")
ld_f32: LoadFloat = _load("ld_f32", "f", "f64", "The float `index`, widened.")

st_i64 = _store("st_i64", "q", "i64", "Word `index` is now `value`.")
st_i32 = _store("st_i32", "i", "i64", "32-bit word `index` is now `value`, which fits it.")
st_u32 = _store("st_u32", "I", "i64", "32-bit word `index` is now `value`, 0 <= value < 2**32.")
st_i16 = _store("st_i16", "h", "i64", "16-bit word `index` is now `value`, which fits it.")
st_i8 = _store("st_i8", "b", "i64", "Signed byte `index` is now `value`, which fits it.")
st_u8 = _store("st_u8", "B", "i64", "Byte `index` is now `value`, 0 <= value < 256.")
st_f64 = _store("st_f64", "d", "f64", "Double `index` is now `value`.")
_st_f32 = _store("st_f32", "f", "f64", "")


@op("void(i64, i64, f64)")
def st_f32(base: int, index: int, value: float) -> None:
    """Set float `index` to `value` rounded to nearest; infinite beyond the range of a float."""
    _st_f32(base, index, f32_round(value))


@op("bool(i64, i64)")
def ld_bit(base: int, index: int) -> bool:
    """Bit `index` of an Arrow bitmap (least significant bit first)."""
    return (ld_u8(base, index >> 3) >> (index & 7)) & 1 == 1


@op("void(i64, i64, bool)")
def st_bit(base: int, index: int, value: bool) -> None:
    """Set bit `index` to `value`; its byte is read and written, so it must have one owner."""
    byte = ld_u8(base, index >> 3)
    bit = 1 << (index & 7)
    st_u8(base, index >> 3, byte | bit if value else byte & ~bit)


@op("void(i64, i64)")
def set_bit(base: int, index: int) -> None:
    """Set bit `index` to 1."""
    st_u8(base, index >> 3, ld_u8(base, index >> 3) | 1 << (index & 7))


# -- 64-bit integers --------------------------------------------------------------------------------------------------


@op("i64(i64, i64)")
def wadd(a: int, b: int) -> int:
    """a + b modulo 2**64. One instruction together with `add_ovf` of the same operands."""
    return _wrap(a + b)


@op("i64(i64, i64)")
def wsub(a: int, b: int) -> int:
    """a - b modulo 2**64. One instruction together with `sub_ovf`."""
    return _wrap(a - b)


@op("i64(i64, i64)")
def wmul(a: int, b: int) -> int:
    """a * b modulo 2**64. One instruction together with `mul_ovf`."""
    return _wrap(a * b)


@op("bool(i64, i64)")
def add_ovf(a: int, b: int) -> bool:
    """Whether a + b is outside 64 bits."""
    return not MIN64 <= a + b <= MAX64


@op("bool(i64, i64)")
def sub_ovf(a: int, b: int) -> bool:
    """Whether a - b is outside 64 bits."""
    return not MIN64 <= a - b <= MAX64


@op("bool(i64, i64)")
def mul_ovf(a: int, b: int) -> bool:
    """Whether a * b is outside 64 bits."""
    return not MIN64 <= a * b <= MAX64


@op("i64(i64, i64)")
def shl(a: int, n: int) -> int:
    """a shifted left by n modulo 64, wrapped."""
    return _wrap(a << (n & 63))


@op("i64(i64, i64)")
def shr_u(a: int, n: int) -> int:
    """a as unsigned bits shifted right by n modulo 64."""
    return _wrap((a & MASK64) >> (n & 63))


@op("bool(i64, i64)")
def ult(a: int, b: int) -> bool:
    """a < b, both as unsigned bits."""
    return (a & MASK64) < (b & MASK64)


@op("i64(i64, i64)")
def sdiv(a: int, b: int) -> int:
    """a / b truncated towards zero; b is not 0, and not -1 where a is the minimum."""
    assert b != 0 and not (a == MIN64 and b == -1), f"sdiv({a}, {b})"
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@op("i64(i64, i64)")
def srem(a: int, b: int) -> int:
    """a - b * sdiv(a, b): the sign is that of a. Same precondition as `sdiv`."""
    assert b != 0 and not (a == MIN64 and b == -1), f"srem({a}, {b})"
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


@op("i64(i64, i64)")
def floordiv(a: int, b: int) -> int:
    """a / b rounded down, as Python's //; same precondition as `sdiv`."""
    assert b != 0 and not (a == MIN64 and b == -1), f"floordiv({a}, {b})"
    return a // b


@op("i64(i64, i64)")
def floormod(a: int, b: int) -> int:
    """a - b * floordiv(a, b), as Python's %: the sign is that of b. Same precondition as `sdiv`."""
    assert b != 0 and not (a == MIN64 and b == -1), f"floormod({a}, {b})"
    return a % b


@op("i64(i64, i64)")
def udiv(a: int, b: int) -> int:
    """a / b, both as unsigned bits; b is not 0."""
    assert b != 0, "udiv by 0"
    return _wrap((a & MASK64) // (b & MASK64))


@op("i64(i64, i64)")
def urem(a: int, b: int) -> int:
    """The remainder of `udiv`."""
    assert b != 0, "urem by 0"
    return _wrap((a & MASK64) % (b & MASK64))


@op("i64(i64, i64)")
def umulhi(a: int, b: int) -> int:
    """The high word of the unsigned 128-bit product; the low word is `wmul`."""
    return _wrap((a & MASK64) * (b & MASK64) >> 64)


@op("i64(i64, i64)")
def smulhi(a: int, b: int) -> int:
    """The high word of the signed 128-bit product; the low word is `wmul`."""
    return a * b >> 64


@op("i64(i64, i64, i64)")
def add128_hi(hi: int, lo: int, x: int) -> int:
    """The high word of (hi, lo) + x for signed x; the low word is `wadd(lo, x)`."""
    return _wrap(((hi << 64 | lo & MASK64) + x) >> 64)


@op("i64(i64, i64, i64, i64)")
def add128w_hi(hi: int, lo: int, other_hi: int, other_lo: int) -> int:
    """The high word of (hi, lo) + (other_hi, other_lo), wrapped; the low word is `wadd(lo, other_lo)`."""
    return _wrap(((hi << 64 | lo & MASK64) + (other_hi << 64 | other_lo & MASK64)) >> 64)


@op("i64(i64)")
def clz(a: int) -> int:
    """Leading zero bits; 64 for 0."""
    return 64 - (a & MASK64).bit_length()


@op("i64(i64)")
def ctz(a: int) -> int:
    """Trailing zero bits; 64 for 0."""
    return (a & -a).bit_length() - 1 if a else 64


@op("i64(i64, i64)")
def min_i64(a: int, b: int) -> int:
    """The smaller."""
    return a if a < b else b


@op("i64(i64, i64)")
def max_i64(a: int, b: int) -> int:
    """The larger."""
    return a if a > b else b


@op("i64(bool, i64, i64)")
def pick(condition: bool, yes: int, no: int) -> int:
    """`yes` if the condition holds, else `no`, without a branch; both are evaluated."""
    return yes if condition else no


@op("f64(bool, f64, f64)")
def pick_f64(condition: bool, yes: float, no: float) -> float:
    """`yes` if the condition holds, else `no`, without a branch; both are evaluated."""
    return yes if condition else no


# -- doubles ----------------------------------------------------------------------------------------------------------


@op("i64(f64)")
def f64_bits(x: float) -> int:
    """The 64 bits of a double; those of a NaN differ between machines."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


@op("f64(i64)")
def bits_f64(bits: int) -> float:
    """The double with these 64 bits."""
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


@op("f64(i64)")
def i64_to_f64(a: int) -> float:
    """The nearest double, ties to even."""
    return float(a)


@op("i64(f64)")
def f64_to_i64(x: float) -> int:
    """x without its fraction; -2**63 <= x < 2**63."""
    assert -9.223372036854775808e18 <= x < 9.223372036854775808e18, f"f64_to_i64({x})"
    return int(x)


@op("f64(f64)")
def f32_round(x: float) -> float:
    """The nearest float as a double; infinite beyond the range of a float."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


@op("f64(f64, f64)")
def f64_div(a: float, b: float) -> float:
    """a / b by IEEE 754: x/0 is infinite, 0/0 is NaN."""
    if b == 0.0:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


@op("f64(f64, f64)")
def f64_rem(a: float, b: float) -> float:
    """C `fmod`: the remainder of truncated division with the sign of a; NaN for infinite a or b = 0."""
    return math.fmod(a, b) if math.isfinite(a) and b != 0.0 else math.nan


@op("f64(f64)")
def f64_sqrt(x: float) -> float:
    """The square root, NaN below zero."""
    return math.sqrt(x) if x >= 0.0 else math.nan


@op("f64(f64)")
def f64_abs(x: float) -> float:
    """x without its sign."""
    return math.fabs(x)


@op("f64(f64)")
def f64_floor(x: float) -> float:
    """The largest whole double not above x."""
    return x if _whole(x) else math.copysign(float(math.floor(x)), x)


@op("f64(f64)")
def f64_ceil(x: float) -> float:
    """The smallest whole double not below x."""
    return x if _whole(x) else math.copysign(float(math.ceil(x)), x)


@op("f64(f64)")
def f64_trunc(x: float) -> float:
    """x without its fraction."""
    return x if _whole(x) else math.copysign(float(math.trunc(x)), x)


def _whole(x: float) -> bool:
    return not -4503599627370496.0 < x < 4503599627370496.0


@op("f64(f64)")
def f64_exp(x: float) -> float:
    """e to the power x; infinite beyond the doubles."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


@op("f64(f64)")
def f64_ln(x: float) -> float:
    """The natural logarithm of x > 0 or NaN."""
    assert not x <= 0.0, f"f64_ln({x})"
    return math.log(x)


@op("f64(f64)")
def f64_log10(x: float) -> float:
    """The decimal logarithm of x > 0 or NaN."""
    assert not x <= 0.0, f"f64_log10({x})"
    return math.log10(x)


@op("f64(f64)")
def f64_log2(x: float) -> float:
    """The logarithm to base 2 of x > 0 or NaN."""
    assert not x <= 0.0, f"f64_log2({x})"
    return math.log2(x)


@op("f64(f64)")
def f64_log1p(x: float) -> float:
    """The natural logarithm of 1 + x, for x > -1 or NaN."""
    assert not x <= -1.0, f"f64_log1p({x})"
    return math.log1p(x)


def _by_libm(name: str, function: Callable[[float], float], doc: str) -> Callable[[float], float]:
    """A function of the C library: never an error, NaN outside of its domain, infinite beyond the doubles."""

    def computed(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, x) if name != "f64_cosh" else math.inf

    computed.__name__ = computed.__qualname__ = name
    computed.__doc__ = doc
    return op("f64(f64)")(computed)


f64_sin = _by_libm("f64_sin", math.sin, "The sine; NaN of an infinity.")
f64_cos = _by_libm("f64_cos", math.cos, "The cosine; NaN of an infinity.")
f64_tan = _by_libm("f64_tan", math.tan, "The tangent; NaN of an infinity.")
f64_asin = _by_libm("f64_asin", math.asin, "The arc sine; NaN beyond -1 and 1.")
f64_acos = _by_libm("f64_acos", math.acos, "The arc cosine; NaN beyond -1 and 1.")
f64_atan = _by_libm("f64_atan", math.atan, "The arc tangent.")
f64_sinh = _by_libm("f64_sinh", math.sinh, "The hyperbolic sine.")
f64_cosh = _by_libm("f64_cosh", math.cosh, "The hyperbolic cosine.")
f64_tanh = _by_libm("f64_tanh", math.tanh, "The hyperbolic tangent.")
f64_cbrt = _by_libm("f64_cbrt", math.cbrt, "The cube root.")
f64_expm1 = _by_libm("f64_expm1", math.expm1, "e to the power x, less 1, exact for small x.")


@op("f64(f64, f64)")
def f64_atan2(y: float, x: float) -> float:
    """The angle of the point (x, y), from -pi to pi."""
    return math.atan2(y, x)


@op("f64(f64, f64)")
def f64_pow(x: float, y: float) -> float:
    """C `pow`: never an error, NaN for a negative base to a fraction, infinite beyond the doubles."""
    odd = y % 2.0 == 1.0
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0.0 and odd else math.inf
    except ValueError:
        return math.nan if x != 0.0 else math.copysign(math.inf, x) if odd else math.inf


# -- numbers as text, by the C library --------------------------------------------------------------------------------

PRINTED_BYTES = 40  # the room `print_f64` needs


@op("i64(f64, i64, i64)")
def print_f64(x: float, digits: int, out: int) -> int:
    """Write finite x as `d.ddde+xx` with 1 to 17 digits, rounded exactly, and a zero byte; return the bytes before it.

    The separator after the first digit depends on the locale; `out` has room for PRINTED_BYTES.
    """
    assert math.isfinite(x) and 1 <= digits <= 17, f"print_f64({x}, {digits})"
    text = f"{x:.{digits - 1}e}".encode()
    memory().block_access(out, PRINTED_BYTES, "write")[: len(text) + 1] = text + b"\0"
    return len(text)


@op("f64(i64)")
def scan_f64(text: int) -> float:
    """The double nearest to the number in zero-terminated text: digits, `e`, exponent; the point is the locale's."""
    size = 0
    while ld_u8(text, size) != 0:
        size += 1
    number = bytes(memory().block_access(text, size, "read")).decode()
    assert number.replace("e", "", 1).replace("-", "", 1).isdigit(), f"scan_f64({number!r})"
    return float(number)


# -- memory -----------------------------------------------------------------------------------------------------------


@op("void(i64)")
def prefetch(address: int) -> None:
    """Fetch the cache line of `address` (any value), perhaps."""


@op("void(i64)")
def prefetch_to_write(address: int) -> None:
    """Like `prefetch`, and take the line from other cores: the first write to it need not wait for that."""


@op("i64(i64)")
def alloc(size: int) -> int:
    """The 16-byte aligned address of `size` > 0 uninitialised bytes, or 0."""
    return memory().alloc(size)


@op("i64(i64)")
def zalloc(size: int) -> int:
    """The 16-byte aligned address of `size` > 0 zero bytes, or 0."""
    return memory().alloc(size, fill=0)


@op("void(i64)")
def release(address: int) -> None:
    """Free a block from `alloc` or `zalloc`; 0 is ignored."""
    memory().release(address)


KEPT_WORDS = 8 + 24 * 2049  # of `kept_words`: what cq/runtime/containers/blocks.py needs


@op("i64()")
def kept_words() -> int:
    """The address of KEPT_WORDS words, 0 at first, shared by all code of an object; 0 if there are none.

    Simulated memory has none, so that no block is kept and every use of a stale address shows.
    """
    return 0


@op("i64(i64)")
def map_pages(size: int) -> int:
    """The address of `size` > 0 zero bytes in whole pages of their own, or 0."""
    return memory().alloc(size, fill=0)


@op("void(i64, i64)")
def unmap_pages(address: int, size: int) -> None:
    """Return what `map_pages` gave for this size to the system."""
    memory().release(address)


@op("i64(i64, i64, i64, i64, i64)")
def move_pages(base: int, mapped: int, start: int, size: int, target: int) -> int:
    """Move the `size` bytes of whole pages from `start` on to `target`, where pages of a mapping were; 1, or 0.

    base, mapped: the address and size of the mapping from `map_pages` that contains `start`; it goes back to the
    system. With 0 it is unchanged, and the pages at `target` hold anything.
    """
    assert (start | size | target) & 4095 == 0 and 0 < size <= mapped - (start - base), "not whole pages of the mapping"
    now = memory()
    now.requests += 1
    if now.requests > now.fail_at:
        return 0
    copy(target, start, size)
    now.release(base)
    return 1


@op("void(i64, i64, i64)")
def copy(target: int, source: int, size: int) -> None:
    """Copy `size` bytes from `source` to `target`; the two do not overlap."""
    now = memory()
    assert size <= 0 or target + size <= source or source + size <= target, "copy of overlapping memory"
    now.block_access(target, size, "write")[:] = now.block_access(source, size, "read")


@op("void(i64, i64, i64)")
def move(target: int, source: int, size: int) -> None:
    """Copy `size` bytes from `source` to `target`; the two may overlap."""
    now = memory()
    now.block_access(target, size, "write")[:] = bytes(now.block_access(source, size, "read"))


@op("void(i64, i64, i64)")
def fill(address: int, byte: int, size: int) -> None:
    """Set `size` bytes at `address` to `byte` (0 to 255)."""
    memory().block_access(address, size, "write")[:] = bytes((byte,)) * size


@op("i64(i64, i64, i64)")
def compare(a: int, b: int, size: int) -> int:
    """-1, 0 or 1 as the `size` bytes at a are below, equal to or above those at b, byte by byte, unsigned."""
    now = memory()
    left, right = bytes(now.block_access(a, size, "read")), bytes(now.block_access(b, size, "read"))
    return (left > right) - (left < right)


@op("bool(i64, i64, i64)")
def mem_eq(a: int, b: int, size: int) -> bool:
    """Whether the `size` bytes at a and b are equal."""
    return compare(a, b, size) == 0


@op("i64(i64, i64, i64, i64)")
def mem_find(text: int, size: int, part: int, part_size: int) -> int:
    """The first offset of the `part_size` bytes at part in the `size` bytes at text; -1 if there is none. Linear."""
    now = memory()
    return bytes(now.block_access(text, size, "read")).find(bytes(now.block_access(part, part_size, "read")))


# -- shared words: 64 bits, aligned; sequentially consistent unless the name says acquire or release ------------------


def _unwatched(address: int) -> bool:
    """Whether access to this shared word is a plain one, because no other thread runs inside it."""
    return bool(BLOCKS) and address & 7 == 0


@op("i64(i64)")
def at_load(address: int) -> int:
    """Load the word, in the one order that all threads agree on."""
    return ld_i64(address, 0) if _unwatched(address) else int(memory().word(address, read=True, write=False)[0])


@op("i64(i64)")
def at_load_acq(address: int) -> int:
    """Load the word; what its writer did before `at_store_rel` (or stronger) is visible."""
    return at_load(address)


@op("void(i64, i64)")
def at_store(address: int, value: int) -> None:
    """Set the word to `value`, in the one order that all threads agree on."""
    if _unwatched(address):
        st_i64(address, 0, value)
    else:
        memory().word(address, read=False, write=True)[0] = value


@op("void(i64, i64)")
def at_store_rel(address: int, value: int) -> None:
    """Set the word to `value`; a thread that loads it with acquire sees everything done before."""
    if _unwatched(address):
        st_i64(address, 0, value)
    else:
        memory().store_release(address, value)


def _changed(address: int, change: Callable[[int], int]) -> int:
    """Replace the word by what `change` returns for it, in one step; return the old word."""
    if _unwatched(address):
        old = ld_i64(address, 0)
        st_i64(address, 0, change(old))
        return old
    word = memory().word(address, read=True, write=True)
    old = int(word[0])
    word[0] = change(old)
    return old


@op("i64(i64, i64)")
def at_add(address: int, value: int) -> int:
    """Add `value` to the word, wrapped; return the old word."""
    return _changed(address, lambda old: _wrap(old + value))


@op("i64(i64, i64)")
def at_xchg(address: int, value: int) -> int:
    """Set the word to `value`; return the old word."""
    return _changed(address, lambda _: value)


@op("bool(i64, i64, i64)")
def at_cas(address: int, expected: int, new: int) -> bool:
    """If the word is `expected`, set it to `new`; return whether it was. Never fails spuriously."""
    return _changed(address, lambda old: new if old == expected else old) == expected


@op("void()")
def fence() -> None:
    """No access of this thread is reordered across it, in either direction."""
    if (now := memory()).monitor is not None:
        now.monitor.hint("fence")


@op("void(i64, i64, i64)")
def futex_wait(address: int, expected: int, timeout_ns: int) -> None:
    """Sleep while the word holds `expected` (low 32 bits), until `futex_wake` or the timeout; may return early."""
    now = memory()
    if now.word(address, read=True, write=False)[0] & 0xFFFFFFFF == expected & 0xFFFFFFFF and now.monitor is not None:
        now.monitor.wait(address, expected)


@op("i64(i64, i64)")
def futex_wake(address: int, count: int) -> int:
    """Wake up to `count` sleepers on the word; return how many."""
    now = memory()
    return now.monitor.wake(address, count) if now.monitor is not None else 0


@op("void(i64, i64)")
def large_pages(address: int, size: int) -> None:
    """Ask the system to back these whole pages by large ones if it can. Changes no content."""
    assert address & 4095 == 0 and size & 4095 == 0, "not whole pages"


@op("void(i64, i64)")
def spare_pages(address: int, size: int) -> None:
    """Let the system take these whole pages until they are written to; they hold anything from now on."""
    assert address & 4095 == 0 and size & 4095 == 0, "not whole pages"


@op("void()")
def pause() -> None:
    """Tell the core that this thread spins."""
    if (now := memory()).monitor is not None:
        now.monitor.hint("pause")


@op("void()")
def sched_yield() -> None:
    """Let another thread have the core."""
    if (now := memory()).monitor is not None:
        now.monitor.hint("yield")


@op("i64()")
def clock_ns() -> int:
    """Monotonic time, for metrics only; each reading advances the simulated clock by 1000."""
    now = memory()
    now.clock_ns += 1000
    return now.clock_ns


# -- calls by address -------------------------------------------------------------------------------------------------


@op("i64(i64, i64)")
def call1(function: int, a: int) -> int:
    """The result of the i64 function at this address for a."""
    return int(function_at(function)(a))


@op("i64(i64, i64, i64)")
def call2(function: int, a: int, b: int) -> int:
    """The result of the i64 function at this address for (a, b)."""
    return int(function_at(function)(a, b))


@op("i64(i64, i64, i64, i64, i64)")
def call4(function: int, a: int, b: int, c: int, d: int) -> int:
    """The result of the i64 function at this address for (a, b, c, d)."""
    return int(function_at(function)(a, b, c, d))


@op("i64(i64, i64, i64, i64, i64, i64, i64)")
def call6(function: int, a: int, b: int, c: int, d: int, e: int, f: int) -> int:
    """The result of the i64 function at this address for (a, b, c, d, e, f)."""
    return int(function_at(function)(a, b, c, d, e, f))
