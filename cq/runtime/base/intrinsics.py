"""Each op of `ops.py` in compiled code: a function body in LLVM's assembly language, inlined at every use.

Nothing here imports numba or llvmlite: bodies are text, `%0 %1 …` are the arguments, and `definition` adds the header
from the signature of the op. The kernel compiler links the definitions that the code uses and no others.
"""

from __future__ import annotations

import platform
import re

from cq.runtime.base.ops import KEPT_WORDS, OPS, PRINTED_BYTES
from cq.runtime.base.signatures import NativeSignature

# start of the name of a symbol that does not exist; it is called where a function would raise an exception.
# Optimisation removes most calls (`range` raises for a step of 0, which a constant step is not); an object that still
# has one is refused
RAISES = "cq_raises."

IR_TYPES = {"i64": "i64", "f64": "double", "bool": "i1", "void": "void"}

_OF_ONE_DOUBLE = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "cbrt", "expm1")

# every function that bodies call and the words they share; bodies may name nothing else
DECLARATIONS = {
    "llvm.sadd.with.overflow.i64": "declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)",
    "llvm.ssub.with.overflow.i64": "declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)",
    "llvm.smul.with.overflow.i64": "declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)",
    "llvm.ctlz.i64": "declare i64 @llvm.ctlz.i64(i64, i1)",
    "llvm.cttz.i64": "declare i64 @llvm.cttz.i64(i64, i1)",
    "llvm.smin.i64": "declare i64 @llvm.smin.i64(i64, i64)",
    "llvm.smax.i64": "declare i64 @llvm.smax.i64(i64, i64)",
    "llvm.sqrt.f64": "declare double @llvm.sqrt.f64(double)",
    "llvm.fabs.f64": "declare double @llvm.fabs.f64(double)",
    "llvm.floor.f64": "declare double @llvm.floor.f64(double)",
    "llvm.ceil.f64": "declare double @llvm.ceil.f64(double)",
    "llvm.trunc.f64": "declare double @llvm.trunc.f64(double)",
    "llvm.prefetch.p0": "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "llvm.memmove.p0.p0.i64": "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
    "llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "llvm.x86.sse2.pause": "declare void @llvm.x86.sse2.pause()",
    "llvm.aarch64.hint": "declare void @llvm.aarch64.hint(i32)",
    "cq_kept": f"@cq_kept = internal global [{KEPT_WORDS} x i64] zeroinitializer, align 64",
    "malloc": "declare noalias ptr @malloc(i64)",
    "calloc": "declare noalias ptr @calloc(i64, i64)",
    "free": "declare void @free(ptr)",
    "mmap": "declare ptr @mmap(ptr, i64, i32, i32, i32, i64)",
    "munmap": "declare i32 @munmap(ptr, i64)",
    "mremap": "declare ptr @mremap(ptr, i64, i64, i32, ...)",
    "memcmp": "declare i32 @memcmp(ptr, ptr, i64) memory(argmem: read) nounwind",
    "bcmp": "declare i32 @bcmp(ptr, ptr, i64) memory(argmem: read) nounwind",
    "memmem": "declare ptr @memmem(ptr, i64, ptr, i64) memory(argmem: read) nounwind",
    "fmod": "declare double @fmod(double, double)",
    "exp": "declare double @exp(double)",
    "log": "declare double @log(double)",
    "log10": "declare double @log10(double)",
    "log2": "declare double @log2(double)",
    "log1p": "declare double @log1p(double)",
    **{name: f"declare double @{name}(double)" for name in _OF_ONE_DOUBLE},
    "atan2": "declare double @atan2(double, double)",
    "pow": "declare double @pow(double, double)",
    "snprintf": "declare i32 @snprintf(ptr, i64, ptr, ...)",
    "strtod": "declare double @strtod(ptr, ptr)",
    "syscall": "declare i64 @syscall(i64, ...)",
    "sched_yield": "declare i32 @sched_yield()",
    "clock_gettime": "declare i32 @clock_gettime(i32, ptr)",
}

# symbols of the C library that object code may refer to; LLVM turns loops into the memory functions by itself
_LIBC_NAMES = """malloc calloc free mmap munmap mremap memcpy memmove memset memcmp bcmp memmem fmod floor ceil trunc
rint sqrt syscall sched_yield clock_gettime pow exp exp2 log log2 log10 log1p expm1 sin cos tan asin acos atan atan2
sinh cosh tanh cbrt hypot snprintf strtod"""
LIBC = frozenset(_LIBC_NAMES.split())

_MACHINE = platform.machine()
_PAUSE = {
    "x86_64": "call void @llvm.x86.sse2.pause()\nret void",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)\nret void",
}.get(_MACHINE, "ret void")
_FUTEX_CALL = {"x86_64": 202, "aarch64": 98}.get(_MACHINE, -1)
_FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 128, 129
_CLOCK_MONOTONIC = 1
_MADVISE_CALL = {"x86_64": 28, "aarch64": 233}.get(_MACHINE, -1)
_MADV_HUGEPAGE, _MADV_FREE = 14, 8
_MAP_OWN_ZERO_PAGES = 0x22  # private, anonymous
_MAP_FIXED = 0x10
_MOVE_TO_FIXED = 3  # may move, to this address

_EXTEND = {"i64": "", "i32": "sext", "u32": "zext", "i16": "sext", "u16": "zext", "i8": "sext", "u8": "zext"}


def _element(kind: str) -> str:
    """A pointer %p to element %1 of the array at %0; in this form loops over it vectorise, `%0 + 8 * %1` does not."""
    return f"%b = inttoptr i64 %0 to ptr\n%p = getelementptr {kind}, ptr %b, i64 %1\n"


def _load(name: str) -> str:
    bits = name[1:]
    if name == "f64":
        return _element("double") + "%v = load double, ptr %p, align 1\nret double %v"
    if name == "f32":
        return _element("float") + "%v = load float, ptr %p, align 1\n%w = fpext float %v to double\nret double %w"
    loaded = f"%v = load i{bits}, ptr %p, align 1\n"
    if name == "i64":
        return _element("i64") + loaded + "ret i64 %v"
    return _element(f"i{bits}") + loaded + f"%w = {_EXTEND[name]} i{bits} %v to i64\nret i64 %w"


def _store(name: str) -> str:
    bits = name[1:]
    if name == "f64":
        return _element("double") + "store double %2, ptr %p, align 1\nret void"
    if name == "f32":
        return _element("float") + "%v = fptrunc double %2 to float\nstore float %v, ptr %p, align 1\nret void"
    if name == "i64":
        return _element("i64") + "store i64 %2, ptr %p, align 1\nret void"
    return _element(f"i{bits}") + f"%v = trunc i64 %2 to i{bits}\nstore i{bits} %v, ptr %p, align 1\nret void"


_BIT = """%i = ashr i64 %1, 3
%b = inttoptr i64 %0 to ptr
%p = getelementptr i8, ptr %b, i64 %i
%byte = load i8, ptr %p, align 1
%j = trunc i64 %1 to i8
%k = and i8 %j, 7
"""


def _checked(operation: str, part: int) -> str:
    kind = ("i64", "i1")[part]
    return f"""%r = call {{ i64, i1 }} @llvm.{operation}.with.overflow.i64(i64 %0, i64 %1)
%v = extractvalue {{ i64, i1 }} %r, {part}
ret {kind} %v"""


def _binary(instruction: str) -> str:
    return f"%v = {instruction} i64 %0, %1\nret i64 %v"


def _shift(instruction: str) -> str:
    return f"%n = and i64 %1, 63\n%v = {instruction} i64 %0, %n\nret i64 %v"


def _rounded_down(quotient: bool) -> str:
    """Floor division from the truncated one: one less, or the divisor more, if the remainder has the other sign."""
    answer = "%v = sub i64 %q, %c" if quotient else "%d = select i1 %low, i64 %1, i64 0\n%v = add i64 %r, %d"
    return f"""%q = sdiv i64 %0, %1
%t = mul i64 %q, %1
%r = sub i64 %0, %t
%s = xor i64 %r, %1
%opposite = icmp slt i64 %s, 0
%rest = icmp ne i64 %r, 0
%low = and i1 %opposite, %rest
%c = zext i1 %low to i64
{answer}
ret i64 %v"""


def _high_product(extend: str) -> str:
    return f"""%a = {extend} i64 %0 to i128
%b = {extend} i64 %1 to i128
%m = mul i128 %a, %b
%h = lshr i128 %m, 64
%v = trunc i128 %h to i64
ret i64 %v"""


def _wide_sum(other: str) -> str:
    """The high word of (%0, %1) + a 128-bit %y that `other` defines."""
    return f"""%h = sext i64 %0 to i128
%hs = shl i128 %h, 64
%l = zext i64 %1 to i128
%x = or i128 %hs, %l
{other}
%m = add i128 %x, %y
%s = lshr i128 %m, 64
%v = trunc i128 %s to i64
ret i64 %v"""


_SIGNED_WORD = "%y = sext i64 %2 to i128"
_TWO_WORDS = """%oh = sext i64 %2 to i128
%ohs = shl i128 %oh, 64
%ol = zext i64 %3 to i128
%y = or i128 %ohs, %ol"""


def _float(name: str) -> str:
    return f"%v = call double @llvm.{name}.f64(double %0)\nret double %v"


def _libc(name: str) -> str:
    return f"%v = call double @{name}(double %0)\nret double %v"


_PRINT_FORMAT = int.from_bytes(b"%.*e", "little")  # with the zero bytes above it


def _atomic(instruction: str, kind: str = "i64") -> str:
    answer = f"ret {kind} %v" if kind != "void" else "ret void"
    return f"%p = inttoptr i64 %0 to ptr\n{instruction}\n{answer}"


def _count(name: str) -> str:
    return f"%v = call i64 @llvm.{name}.i64(i64 %0, i1 false)\nret i64 %v"


def _call(arity: int) -> str:
    arguments = ", ".join(f"i64 %{n + 1}" for n in range(arity))
    return f"%f = inttoptr i64 %0 to ptr\n%v = call i64 %f({arguments})\nret i64 %v"


_TWO_ADDRESSES = "%p = inttoptr i64 %0 to ptr\n%q = inttoptr i64 %2 to ptr\n"
_TWO_POINTERS = "%p = inttoptr i64 %0 to ptr\n%q = inttoptr i64 %1 to ptr\n"

BODIES: dict[str, str] = {
    **{f"ld_{kind}": _load(kind) for kind in ("i64", "i32", "u32", "i16", "u16", "i8", "u8", "f64", "f32")},
    **{f"st_{kind}": _store(kind) for kind in ("i64", "i32", "u32", "i16", "i8", "u8", "f64", "f32")},
    "ld_bit": _BIT + "%s = lshr i8 %byte, %k\n%v = trunc i8 %s to i1\nret i1 %v",
    "set_bit": _BIT + "%one = shl i8 1, %k\n%v = or i8 %byte, %one\nstore i8 %v, ptr %p, align 1\nret void",
    "st_bit": _BIT
    + """%one = shl i8 1, %k
%not = xor i8 %one, -1
%kept = and i8 %byte, %not
%x = zext i1 %2 to i8
%bit = shl i8 %x, %k
%v = or i8 %kept, %bit
store i8 %v, ptr %p, align 1
ret void""",
    "wadd": _checked("sadd", 0),
    "wsub": _checked("ssub", 0),
    "wmul": _checked("smul", 0),
    "add_ovf": _checked("sadd", 1),
    "sub_ovf": _checked("ssub", 1),
    "mul_ovf": _checked("smul", 1),
    "shl": _shift("shl"),
    "shr_u": _shift("lshr"),
    "ult": "%v = icmp ult i64 %0, %1\nret i1 %v",
    "sdiv": _binary("sdiv"),
    "srem": _binary("srem"),
    "floordiv": _rounded_down(quotient=True),
    "floormod": _rounded_down(quotient=False),
    "udiv": _binary("udiv"),
    "urem": _binary("urem"),
    "umulhi": _high_product("zext"),
    "smulhi": _high_product("sext"),
    "add128_hi": _wide_sum(_SIGNED_WORD),
    "add128w_hi": _wide_sum(_TWO_WORDS),
    "clz": _count("ctlz"),
    "ctz": _count("cttz"),
    "min_i64": "%v = call i64 @llvm.smin.i64(i64 %0, i64 %1)\nret i64 %v",
    "max_i64": "%v = call i64 @llvm.smax.i64(i64 %0, i64 %1)\nret i64 %v",
    "pick": "%v = select i1 %0, i64 %1, i64 %2\nret i64 %v",
    "pick_f64": "%v = select i1 %0, double %1, double %2\nret double %v",
    "f64_bits": "%v = bitcast double %0 to i64\nret i64 %v",
    "bits_f64": "%v = bitcast i64 %0 to double\nret double %v",
    "i64_to_f64": "%v = sitofp i64 %0 to double\nret double %v",
    "f64_to_i64": "%v = fptosi double %0 to i64\nret i64 %v",
    "f32_round": "%f = fptrunc double %0 to float\n%v = fpext float %f to double\nret double %v",
    "f64_div": "%v = fdiv double %0, %1\nret double %v",
    "f64_rem": "%v = call double @fmod(double %0, double %1)\nret double %v",
    "f64_sqrt": _float("sqrt"),
    "f64_abs": _float("fabs"),
    "f64_floor": _float("floor"),
    "f64_ceil": _float("ceil"),
    "f64_trunc": _float("trunc"),
    "f64_exp": _libc("exp"),
    "f64_ln": _libc("log"),
    "f64_log10": _libc("log10"),
    "f64_log2": _libc("log2"),
    "f64_log1p": _libc("log1p"),
    **{f"f64_{name}": _libc(name) for name in _OF_ONE_DOUBLE},
    "f64_atan2": "%v = call double @atan2(double %0, double %1)\nret double %v",
    "f64_pow": "%v = call double @pow(double %0, double %1)\nret double %v",
    "print_f64": f"""%f = alloca i64, align 8
store i64 {_PRINT_FORMAT}, ptr %f, align 8
%m = sub i64 %1, 1
%n = trunc i64 %m to i32
%p = inttoptr i64 %2 to ptr
%r = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %p, i64 {PRINTED_BYTES}, ptr %f, i32 %n, double %0)
%v = sext i32 %r to i64
ret i64 %v""",
    "scan_f64": "%p = inttoptr i64 %0 to ptr\n%v = call double @strtod(ptr %p, ptr null)\nret double %v",
    "prefetch": "%p = inttoptr i64 %0 to ptr\ncall void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)\nret void",
    "prefetch_to_write": """%p = inttoptr i64 %0 to ptr
call void @llvm.prefetch.p0(ptr %p, i32 1, i32 3, i32 1)
ret void""",
    "alloc": "%p = call ptr @malloc(i64 %0)\n%v = ptrtoint ptr %p to i64\nret i64 %v",
    "zalloc": "%p = call ptr @calloc(i64 %0, i64 1)\n%v = ptrtoint ptr %p to i64\nret i64 %v",
    "kept_words": "%v = ptrtoint ptr @cq_kept to i64\nret i64 %v",
    "map_pages": f"""%p = call ptr @mmap(ptr null, i64 %0, i32 3, i32 {_MAP_OWN_ZERO_PAGES}, i32 -1, i64 0)
%a = ptrtoint ptr %p to i64
%failed = icmp eq i64 %a, -1
%v = select i1 %failed, i64 0, i64 %a
ret i64 %v""",
    "move_pages": f"""%p = inttoptr i64 %2 to ptr
%q = inttoptr i64 %4 to ptr
%r = call ptr (ptr, i64, i64, i32, ...) @mremap(ptr %p, i64 %3, i64 %3, i32 {_MOVE_TO_FIXED}, ptr %q)
%a = ptrtoint ptr %r to i64
%moved = icmp eq i64 %a, %4
%v = zext i1 %moved to i64
%not = xor i64 %v, 1
%lost = mul i64 %3, %not
%z = call ptr @mmap(ptr %q, i64 %lost, i32 3, i32 {_MAP_OWN_ZERO_PAGES | _MAP_FIXED}, i32 -1, i64 0)
%b = inttoptr i64 %0 to ptr
%before = sub i64 %2, %0
%head = mul i64 %before, %v
%x = call i32 @munmap(ptr %b, i64 %head)
%end = add i64 %2, %3
%e = inttoptr i64 %end to ptr
%all = add i64 %0, %1
%after = sub i64 %all, %end
%tail = mul i64 %after, %v
%y = call i32 @munmap(ptr %e, i64 %tail)
ret i64 %v""",  # the system refuses to map or unmap 0 bytes
    "unmap_pages": "%p = inttoptr i64 %0 to ptr\n%r = call i32 @munmap(ptr %p, i64 %1)\nret void",
    "release": "%p = inttoptr i64 %0 to ptr\ncall void @free(ptr %p)\nret void",
    "copy": _TWO_POINTERS + "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %2, i1 false)\nret void",
    "move": _TWO_POINTERS + "call void @llvm.memmove.p0.p0.i64(ptr %p, ptr %q, i64 %2, i1 false)\nret void",
    "fill": "%p = inttoptr i64 %0 to ptr\n%b = trunc i64 %1 to i8\n"
    "call void @llvm.memset.p0.i64(ptr %p, i8 %b, i64 %2, i1 false)\nret void",
    "compare": _TWO_POINTERS
    + """%r = call i32 @memcmp(ptr %p, ptr %q, i64 %2)
%above = icmp sgt i32 %r, 0
%below = icmp slt i32 %r, 0
%x = zext i1 %above to i64
%y = zext i1 %below to i64
%v = sub i64 %x, %y
ret i64 %v""",
    "mem_eq": _TWO_POINTERS + "%r = call i32 @bcmp(ptr %p, ptr %q, i64 %2)\n%v = icmp eq i32 %r, 0\nret i1 %v",
    "mem_find": _TWO_ADDRESSES
    + """%r = call ptr @memmem(ptr %p, i64 %1, ptr %q, i64 %3)
%a = ptrtoint ptr %r to i64
%o = sub i64 %a, %0
%none = icmp eq ptr %r, null
%w = select i1 %none, i64 -1, i64 %o
%empty = icmp eq i64 %3, 0
%v = select i1 %empty, i64 0, i64 %w
ret i64 %v""",
    "at_load": _atomic("%v = load atomic i64, ptr %p seq_cst, align 8"),
    "at_load_acq": _atomic("%v = load atomic i64, ptr %p acquire, align 8"),
    "at_store": _atomic("store atomic i64 %1, ptr %p seq_cst, align 8", "void"),
    "at_store_rel": _atomic("store atomic i64 %1, ptr %p release, align 8", "void"),
    "at_add": _atomic("%v = atomicrmw add ptr %p, i64 %1 seq_cst, align 8"),
    "at_xchg": _atomic("%v = atomicrmw xchg ptr %p, i64 %1 seq_cst, align 8"),
    "at_cas": _atomic(
        "%r = cmpxchg ptr %p, i64 %1, i64 %2 seq_cst seq_cst, align 8\n%v = extractvalue { i64, i1 } %r, 1", "i1"
    ),
    "fence": "fence seq_cst\nret void",
    "futex_wait": f"""%t = alloca [2 x i64], align 8
%s = sdiv i64 %2, 1000000000
%n = srem i64 %2, 1000000000
store i64 %s, ptr %t, align 8
%q = getelementptr i64, ptr %t, i64 1
store i64 %n, ptr %q, align 8
%e = trunc i64 %1 to i32
%r = call i64 (i64, ...) @syscall(i64 {_FUTEX_CALL}, i64 %0, i32 {_FUTEX_WAIT_PRIVATE}, i32 %e, ptr %t, i64 0, i32 0)
ret void""",
    "futex_wake": f"""%n = trunc i64 %1 to i32
%r = call i64 (i64, ...) @syscall(i64 {_FUTEX_CALL}, i64 %0, i32 {_FUTEX_WAKE_PRIVATE}, i32 %n, i64 0, i64 0, i32 0)
%v = call i64 @llvm.smax.i64(i64 %r, i64 0)
ret i64 %v""",
    "large_pages": f"""%r = call i64 (i64, ...) @syscall(i64 {_MADVISE_CALL}, i64 %0, i64 %1, i32 {_MADV_HUGEPAGE})
ret void""",
    "spare_pages": f"""%r = call i64 (i64, ...) @syscall(i64 {_MADVISE_CALL}, i64 %0, i64 %1, i32 {_MADV_FREE})
ret void""",
    "pause": _PAUSE,
    "sched_yield": "%r = call i32 @sched_yield()\nret void",
    "clock_ns": f"""%t = alloca [2 x i64], align 8
%r = call i32 @clock_gettime(i32 {_CLOCK_MONOTONIC}, ptr %t)
%s = load i64, ptr %t, align 8
%q = getelementptr i64, ptr %t, i64 1
%n = load i64, ptr %q, align 8
%m = mul i64 %s, 1000000000
%v = add i64 %m, %n
ret i64 %v""",
    **{f"call{arity}": _call(arity) for arity in (1, 2, 4, 6)},
}


def result_type(signature: NativeSignature) -> str:
    """The result type of this signature; numba returns several results of one kind as an array, so all do."""
    kinds = [IR_TYPES[kind] for kind in signature.results]
    if len(kinds) <= 1:
        return kinds[0] if kinds else "void"
    return f"[{len(kinds)} x {kinds[0]}]" if len(set(kinds)) == 1 else "{ " + ", ".join(kinds) + " }"


def symbol(op: str) -> str:
    """The name of an op inside a module under compilation; it is inlined and never reaches object code."""
    return f"cqop_{op}"


def definition(op: str) -> str:
    """The op as a function of LLVM assembly, without the declarations it needs."""
    signature = NativeSignature.parse(OPS[op])
    returned = IR_TYPES[signature.result]
    arguments = ", ".join(IR_TYPES[kind] for kind in signature.arguments)
    return f"define {returned} @{symbol(op)}({arguments}) alwaysinline nounwind {{\n{BODIES[op]}\n}}\n"


def prelude(ops: set[str]) -> str:
    """The definitions of these ops and the declarations they need, as one module in LLVM assembly."""
    bodies = [definition(op) for op in sorted(ops)]
    called = {name for body in bodies for name in re.findall(r"@([\w.]+)", body)}
    return "\n".join([*(DECLARATIONS[name] for name in sorted(called & set(DECLARATIONS))), *bodies])
