"""Kernel forms of scalar functions and casts: interpreted and compiled, bit for bit what the reference computes."""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections.abc import Iterator
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import pytest
from examples import bound, cast_examples, scalar_examples
from expression_kernels import Kernels, Stopped
from time_patterns import MOMENTS, READ, TEXTS, WRITTEN, reading, writing

from cq.lang.casts import castable
from cq.lang.expressions import Call, Cast, Column, Expr, Literal, format_expr
from cq.lang.functions import Failure, Scalar, Signature, all_scalars
from cq.lang.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    INTERVAL_MONTH,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    DataType,
    Kind,
    array,
    decimal,
    integer_range,
    round_to_real,
)
from cq.lang.value_text import write_double, write_real
from cq.records import replace
from cq.reference.evaluate import evaluate
from cq.runtime.base.simulation import memory

pytestmark = pytest.mark.optimised

SEED = 20_26
TYPES = (
    BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, decimal(7, 2), decimal(18, 0), decimal(18, 18),
    decimal(12, 4), VARCHAR, DATE, TIMESTAMP, INTERVAL, INTERVAL_MONTH, array(BIGINT), array(VARCHAR), array(DOUBLE),
)  # fmt: skip
WIDE = (decimal(38, 10), decimal(38, 0), decimal(25, 25))
ROWS = 60

# -- values -----------------------------------------------------------------------------------------------------------

FLOATS = (
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.675, 1.005, 0.285, 0.1, 1e15, 123456789.987654321, 9.999999e6, 1e7, 1e-3,
    9.99e-4, 1e22, 1e23, 1e300, -1e300, 5e-324, 2.5e-323, 2.2250738585072014e-308, 1.7976931348623157e308,
    9007199254740993.0, 9.223372036854775807e18, -9.223372036854775808e18, 9.2233720368547748e18, 127.9, -128.9, 128.0,
    2147483647.9, 2147483648.0, -2147483648.9, 4503599627370497.5, 0.49999999999999994, 2.0**-44, 2.0**-24, 2.0**63,
    1e18, 999999999999999999.0, 99999.995, math.inf, -math.inf, math.nan,
)  # fmt: skip
NUMBERS = (
    "0", "-0", "+7", " 12 ", "12.5", "1_000", "", " ", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "99999999999999999999", "1e3", "1E-3", "1e", "1e+", ".5", "5.",
    ".", "-.5e2", "1f", "1d", "1dd", "0x10", "nan", "NaN", "+nan", "-inf", "Infinity", "INFINITY", "infinit", "1e400",
    "-1e-400", "123456789012345678901234567890", "0.1234567890123456789012345", "9007199254740993", "1e99999",
    "0e99999", "1e100000", "2.675", "0.005", "0.0049999999999999999999999999", "99999.995",
    "99999.994999999999999999999999", "1e-19", "5e-19", "4.35", "-4.345", "0" * 399 + "1", "0" * 400 + "1", "1" * 401,
    "٣", "1 2", "--1", "2.2250738585072011e-308",
)  # fmt: skip
TIMES = (
    "2024-02-29", "2023-02-29", "2024-2-9", "02024-01-01", "+12024-01-01", "-0044-03-15", "9999999-12-31", "999-01-01",
    "2024-13-01", "2024-01-32", "2024-00-10", "2024-01-00", "2024-01-01 10:00", "2024-01-01T10:00:00.5",
    "2024-01-01 10:00:00.123456789", "2024-01-01 10:00:00.1234567890", "2024-01-01 24:00:00", "2024-01-01 10:60",
    "2024-01-01 10:00:60", "2024-01-01 10:00Z", "2024-01-01 10:00 UTC", "2024-01-01 10:00 utc",
    "2024-01-01 10:00+00:00", "2024-01-01 10:00-0000", "2024-01-01 10:00+0:00", "2024-01-01 10:00+02:00",
    "2024-01-01 10:00:00.", "2024-01-01 10", "2024-01-01 1:2:3", "2024-01-01t23:59:59.999999",
    "2024-01-01 10:00:00  Z", "2024-01-01 ", "2024-01-01 10:00.5", "294247-01-10 04:00:54.775807",
    "294247-01-10 04:00:54.775808", "-290308-12-21 19:59:05.224192", "-290308-12-21 19:59:05.224191",
    "-290308-12-21 00:00", "5881580-07-11", "5881580-07-12", "-5877641-06-23", "-5877641-06-22", "1970-01-01T",
    "2024-01-01 010:00", "1969-12-31 23:59:59.000001",
)  # fmt: skip
WORDS = (
    "t", "TRUE", "yes", "Y", "oui", "f", "No", "n", "false", "abc", "ABC", "Straße", "ŉǆﬁ", "İstanbul", "ΑΣ", "ΑΣ Σ",
    "Α\u0301Σ.", "aΣ\u0301b", "ς", "ΌΣΟΣ", "\u0345Σ", "😀a😀", "añb", "hello", "l", "lo", "he", "\t x \n", "xxaxx", "%",
    "_", "a%", "%b_c", "\\%", "a\\", "!%", "日本語", "ﬀ", "\0", "a\0b", "banana", "an", "ana", "𐐀𐐨", "K", "é" * 30,
    "ab" * 40,
)  # fmt: skip


def random_float(r: random.Random) -> float:
    pick = r.random()
    if pick < 0.3:
        return r.choice(FLOATS)
    if pick < 0.5:
        return round(r.uniform(-1e5, 1e5), r.randint(0, 6))
    if pick < 0.6:
        return math.ldexp(1.0, r.randint(-1074, 1023))
    if pick < 0.7:
        return float(r.randint(-(2**63), 2**63))
    return float(struct.unpack("<d", r.randbytes(8))[0])


def random_text(r: random.Random) -> str:
    pick = r.random()
    if pick < 0.25:
        return r.choice(NUMBERS)
    if pick < 0.45:
        return r.choice(TIMES)
    if pick < 0.8:
        return r.choice(WORDS)
    if pick < 0.9:
        return "".join(r.choices("abé%_\\ ", k=r.randint(0, 9)))
    return f"{' ' * r.randint(0, 2)}{r.choice(['', '-', '+'])}{r.randint(0, 10 ** r.randint(1, 20))}.{r.randint(0, 99)}"


def random_value(r: random.Random, type_: DataType) -> Any:
    if r.random() < 0.08:
        return None
    match type_.kind:
        case Kind.BOOLEAN:
            return r.random() < 0.5
        case Kind.REAL:
            return round_to_real(r.choice([random_float(r), struct.unpack("<f", r.randbytes(4))[0]]))
        case Kind.DOUBLE:
            return random_float(r)
        case Kind.VARCHAR:
            return random_text(r)
        case Kind.ARRAY:
            assert type_.element is not None
            return tuple(random_value(r, type_.element) for _ in range(r.randint(0, 4)))
        case Kind.DECIMAL:
            low, high = -(10**type_.precision) + 1, 10**type_.precision - 1
        case Kind.DATE | Kind.INTERVAL_MONTH:
            low, high = integer_range(INTEGER)
        case Kind.TIMESTAMP | Kind.INTERVAL:
            low, high = integer_range(BIGINT)
        case _:
            low, high = integer_range(type_)
    near = [low, low + 1, high - 1, high, 0, 1, -1, 2, 10, -7, r.randint(-100, 100), r.randint(low, high)]
    if type_.kind in {Kind.TIMESTAMP, Kind.INTERVAL}:
        near += [r.randint(-(2**52), 2**52), -86_400_000_000, 86_399_999_999, -9223372036800000001]
    return max(low, min(high, r.choice([*near, r.randint(low, high) >> r.randint(0, 60)])))


# -- expressions ------------------------------------------------------------------------------------------------------


def column(type_: DataType, index: int, nullable: bool = True) -> Column:
    return Column(type_, nullable, index)


def without_null(e: Expr) -> Expr:
    """The same call or cast over columns that are never NULL."""
    args = [replace(a, nullable=False) if isinstance(a, Column) else a for a in e.children]
    if isinstance(e, Cast):
        return replace(e, arg=args[0], nullable=e.try_)
    assert isinstance(e, Call)
    return replace(e, args=tuple(args), nullable=e.function.nullable([False] * len(args)))


def signatures(
    entry: Scalar, known: tuple[DataType, ...] = TYPES
) -> Iterator[tuple[Signature, tuple[Expr, ...]]]:  # fmt: skip
    """Every signature of an entry over known types without a conversion, with columns where they can be arguments."""
    for arity in (1, 2, 3):
        for types in itertools.product(known if arity < 3 else (VARCHAR, BIGINT, DOUBLE), repeat=arity):
            found = entry.signature(types)
            if found is not None and found.params == types:
                yield found, tuple(column(t, i) for i, t in enumerate(types))
    if entry.name in {"round", "trunc"}:
        numbers = (decimal(7, 2), decimal(18, 9), decimal(18, 18)) if known is TYPES else WIDE
        for type_, digits in itertools.product(numbers, (-20, -3, 0, 1, 2, 9)):
            found = entry.signature((type_, INTEGER), (None, digits))
            if found is not None:
                yield found, (column(type_, 0), Literal(INTEGER, False, digits))


def scalar_calls() -> list[Expr]:
    calls: list[Expr] = []
    for entry in all_scalars().values():
        for found, args in signatures(entry):
            calls.append(Call(found.returns, entry.nullable([a.nullable for a in args]), entry, args))
    return calls


def casts() -> list[Expr]:
    return [
        Cast(target, True, column(source, 0), soft)
        for source, target, soft in itertools.product(TYPES, TYPES, (False, True))
        if castable(source, target)
    ]


def likes() -> list[Expr]:
    """LIKE with literal patterns: those with a form of their own, those without, wrong ones."""
    entry = all_scalars()["like"]
    patterns = ("abc", "", "%", "%%", "a%", "%c", "a%c", "%b%", "a_c", "%b%c%", "_%", "\\%%", "é%", "a\\", "%an%a")
    two = [(column(VARCHAR, 0), Literal(VARCHAR, False, p)) for p in patterns]
    escaped = [
        (*two[1][:1], Literal(VARCHAR, False, p), Literal(VARCHAR, False, e))
        for p, e in (("!%%", "!"), ("%%", "%"), ("a", ""), ("éé%", "é"))
    ]
    return [Call(BOOLEAN, True, entry, args) for args in (*two, *escaped)]


def wide_expressions() -> list[Expr]:
    """Functions and casts over DECIMALs of two words and what is found beside them."""
    calls: list[Expr] = []
    for entry in all_scalars().values():
        for found, args in signatures(entry, (*WIDE, decimal(12, 4))):
            calls.append(Call(found.returns, entry.nullable([a.nullable for a in args]), entry, args))
    pairs = [*itertools.product(WIDE, (*TYPES, *WIDE)), *itertools.product(TYPES, WIDE)]
    soft = [Cast(target, True, column(source, 0), True) for source, target in pairs if castable(source, target)]
    return [*calls, *soft, *(replace(e, try_=False) for e in soft[::3])]


@cache
def example_expressions() -> list[Expr]:
    return [e for text in (*scalar_examples(), *cast_examples()) for e in bound(text.expression)]


@cache
def random_expressions() -> list[Expr]:
    nullable = [*scalar_calls(), *casts(), *likes()]
    return [e if n % 3 else without_null(e) for n, e in enumerate(nullable)]


def expected(e: Expr, values: tuple[Any, ...]) -> Any:
    try:
        return evaluate(e, values)
    except Failure as failure:
        return Stopped(failure.code)


def bits(value: Any) -> Any:
    """What is compared: every bit of a double, but all NaNs are the same."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return tuple(map(bits, value)) if isinstance(value, tuple) else value


def rows_for(e: Expr, number: int) -> list[tuple[Any, ...]]:
    r = random.Random(f"{SEED} {number} {format_expr(e)}")
    columns = [c for c in e.children if isinstance(c, Column)]
    types = [c.type for c in columns]
    rows = [tuple(random_value(r, c.type) for c in columns) for _ in range(ROWS)]
    rows = [row for row in rows if all(v is not None or c.nullable for v, c in zip(row, columns, strict=True))]
    if types == [VARCHAR]:
        rows += [(t,) for t in (*NUMBERS, *TIMES, *WORDS)]
    if len(types) == 1 and types[0].is_float:
        rows += [(round_to_real(x) if types[0] == REAL else x,) for x in FLOATS]
    return rows


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
def test_every_example_gives_in_a_kernel_what_it_gives_on_the_reference(way: str) -> None:
    kernels = Kernels(example_expressions())
    with getattr(kernels, way)() as run:
        wrong = [
            (format_expr(e), wanted, got)
            for number, e in enumerate(example_expressions())
            if bits(wanted := expected(e, ())) != bits(got := run(number, ()))
        ]
    assert not wrong


def test_forms_of_decimals_of_two_words_give_what_the_reference_gives() -> None:
    exprs = wide_expressions()
    with Kernels(exprs).interpreted() as run:
        for number, e in enumerate(exprs):
            for values in rows_for(e, number):
                wanted, got = expected(e, values), run(number, values)
                assert bits(wanted) == bits(got), (format_expr(e), str(e.type), values)


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
def test_casts_between_decimals_of_one_scale_stop_at_the_digits_of_the_result(way: str) -> None:
    kinds = [BIGINT, *(decimal(p, 0) for p in (18, 19, 20, 30, 37, 38))]
    exprs = [Cast(to, try_, column(of, 0)) for of in kinds for to in kinds if to != of for try_ in (False, True)]
    edges = sorted({sign * (10**p + more) for p in (18, 19, 20, 30, 37) for sign in (1, -1) for more in (-1, 0, 1)})
    edges += [0, 1, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, -(2**64), 10**38 - 1, 1 - 10**38]
    with getattr(Kernels(exprs), way)() as run:
        for number, e in enumerate(exprs):
            of = e.arg.type
            low, high = integer_range(BIGINT) if of == BIGINT else (1 - 10**of.precision, 10**of.precision - 1)
            for value in (v for v in edges if low <= v <= high):
                wanted, got = expected(e, (value,)), run(number, (value,))
                assert bits(wanted) == bits(got), (format_expr(e), str(e.type), value)


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
def test_every_form_gives_what_the_reference_gives_on_random_and_extreme_values(way: str) -> None:
    kernels = Kernels(random_expressions())
    wrong = []
    with getattr(kernels, way)() as run:
        for number, e in enumerate(random_expressions()):
            for values in rows_for(e, number):
                wanted, got = expected(e, values), run(number, values)
                if bits(wanted) != bits(got):
                    wrong.append((format_expr(e), str(e.type), values, wanted, got))
    assert not wrong, f"seed {SEED}, {len(wrong)} wrong: {wrong[:10]}"


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
def test_times_are_read_and_written_by_patterns_as_on_the_reference(way: str) -> None:
    reads = [reading(p) for p in READ] + [without_null(reading(p, "to_timestamp")) for p in READ[:3]]
    exprs = [*reads, *(writing(p) for p in WRITTEN)]
    with getattr(Kernels(exprs), way)() as run:
        for number, e in enumerate(exprs):
            values = TEXTS if number < len(reads) else (*MOMENTS, *integer_range(BIGINT))
            for value in values:
                assert run(number, (value,)) == expected(e, (value,)), (format_expr(e), value)


# -- what random values do not reach ----------------------------------------------------------------------------------


def function(name: str, *types: DataType) -> Expr:
    entry = all_scalars()[name]
    found = entry.signature(types)
    assert found is not None
    return Call(found.returns, True, entry, tuple(column(t, i) for i, t in enumerate(types)))


def test_every_character_changes_case_as_in_python_wherever_a_sigma_stands() -> None:
    mark = "\ue000"  # changes nothing and ends a word
    points = [chr(p) for p in range(0x110000) if not 0xD800 <= p < 0xE000]
    texts = ["".join(points)]
    texts += [mark.join(before + c + after for c in points) for before, after in (("", "Σ"), ("A", "Σ"), ("AΣ", ""))]
    texts.append(mark.join("AΣ" + c + "b" for c in points))
    with Kernels([function("upper", VARCHAR), function("lower", VARCHAR)]).compiled() as run:
        for text in texts:
            assert run(0, (text,)) == text.upper()
            assert run(1, (text,)) == text.lower()


def test_decimals_between_two_doubles_are_read_as_the_nearer_one() -> None:
    # [-- x --------|-------- next --): the middle has many digits, and one more digit decides
    r = random.Random(SEED)
    with Kernels([Cast(DOUBLE, True, column(VARCHAR, 0))]).compiled() as run, localcontext() as context:
        context.prec = 400
        for _ in range(2000):
            x = abs(struct.unpack("<d", r.randbytes(8))[0])
            if not 1e-60 < x < 1e60:
                continue
            middle = (Decimal(x) + Decimal(math.nextafter(x, math.inf))) / 2
            for text in (f"{middle:f}", f"{middle:e}", f"{middle:e}".replace("e", "1e"), f"-{middle.next_minus():e}"):
                assert len(text) > 400 or run(0, (text,)) == float(text), text


def test_powers_of_two_are_written_as_the_reference_writes_them() -> None:
    with Kernels([Cast(VARCHAR, True, column(t, 0)) for t in (DOUBLE, REAL)]).compiled() as run:
        for exponent in range(-1074, 1024):
            x = math.ldexp(1.0, exponent)
            assert run(0, (x,)) == write_double(x)
            assert float(write_double(x)) == x
            if -149 <= exponent < 128:
                assert run(1, (x,)) == write_real(x)
                assert round_to_real(float(write_real(x))) == x


WITHOUT_MEMORY = [
    (function("concat", VARCHAR, VARCHAR), ("a", "b")),
    (function("upper", VARCHAR), ("a",)),
    (function("replace", VARCHAR, VARCHAR, VARCHAR), ("a", "a", "b")),
    (function("lpad", VARCHAR, BIGINT), ("a", 3)),
    (function("concat_ws", VARCHAR, VARCHAR), ("a", "b")),
    (function("translate", VARCHAR, VARCHAR, VARCHAR), ("a", "a", "b")),
    (function("levenshtein", VARCHAR, VARCHAR), ("a", "b")),
    (function("sha256", VARCHAR), ("a",)),
    (writing("yyyy"), (0,)),
    (function("round", DOUBLE, INTEGER), (1e300, 2)),
    (function("round", REAL, INTEGER), (2.5, 0)),
    *(
        (Cast(VARCHAR, True, column(t, 0)), (1,))
        for t in (BIGINT, DOUBLE, REAL, DATE, TIMESTAMP, INTERVAL, INTERVAL_MONTH)
    ),
    (Cast(DOUBLE, True, column(VARCHAR, 0), True), ("1e300",)),
    (Cast(decimal(18, 2), True, column(REAL, 0), True), (1.5,)),
]


def test_texts_of_few_letters_are_cut_and_joined_as_on_the_reference() -> None:
    exprs = [
        *(function(name, VARCHAR, VARCHAR, BIGINT) for name in ("split_part", "substring_index")),
        *(function(name, VARCHAR, BIGINT, VARCHAR) for name in ("lpad", "rpad")),
        *(function(name, VARCHAR, VARCHAR, VARCHAR) for name in ("translate", "replace", "concat_ws")),
        function("overlay", VARCHAR, VARCHAR, BIGINT, BIGINT),
        function("levenshtein", VARCHAR, VARCHAR),
    ]
    r = random.Random(SEED)
    with Kernels(exprs).interpreted() as run:
        for _ in range(150):
            for number, e in enumerate(exprs):
                values = tuple(
                    r.randint(-4, 7)
                    if c.type == BIGINT
                    else "".join(r.choices("aaéb", k=r.randint(0, 6 - 4 * (at > 0))))
                    for at, c in enumerate(e.children)
                )
                assert run(number, values) == expected(e, values), (format_expr(e), values)


def test_without_memory_a_function_stops_and_never_gives_null() -> None:
    kernels = Kernels([e for e, _ in WITHOUT_MEMORY])
    for number, (e, values) in enumerate(WITHOUT_MEMORY):
        with kernels.interpreted() as run:
            memory().fail_at = 0
            assert run(number, values) == Stopped("CQ0801"), format_expr(e)


def test_numbers_leave_no_step_bytes_behind() -> None:
    exprs = [Cast(DOUBLE, True, column(VARCHAR, 0)), function("round", DOUBLE, INTEGER)]
    with Kernels(exprs).interpreted(reset=False) as run:
        for _ in range(300):
            assert run(0, ("1e300",)) == 1e300
            assert run(1, (1.25e300, -299)) == 1.3e300
        assert memory().in_use_bytes < 8192


def test_a_text_that_no_column_can_hold_is_no_memory() -> None:
    with Kernels([function("replace", VARCHAR, VARCHAR, VARCHAR)]).compiled() as run:
        assert run(0, ("a" * 70_000, "a", "b" * 70_000)) == Stopped("CQ0801")
