"""Scalar functions and casts: every example of the registry on the reference, and what examples cannot say."""

from __future__ import annotations

import itertools
import math
import random
import struct
from decimal import ROUND_HALF_UP, Decimal, localcontext
from dis import get_instructions
from fractions import Fraction
from types import FunctionType
from typing import Any

import pytest
from examples import Example, bound, cast_examples, comparable, scalar_examples

from cq.errors import CqError
from cq.grammar import ast
from cq.grammar.parser import parse_expression
from cq.grammar.unsupported import ELSEWHERE
from cq.lang import aggregates, functions
from cq.lang.casts import castable, caster
from cq.lang.expressions import Call, cast_can_fail
from cq.lang.functions import Failure, Refusal, Signature
from cq.lang.functions.text import like
from cq.lang.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
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
    decimal,
    integer_range,
)
from cq.lang.value_text import (
    read_decimal,
    read_double,
    read_timestamp,
    write_double,
    write_duration,
    write_real,
    write_timestamp,
)
from cq.planner.binding.functions.shorthands import SHORTHANDS
from cq.planner.binding.literals import bind_interval
from cq.reference.evaluate import evaluate

ENTRIES = sorted(functions.all_scalars().values(), key=lambda e: e.name)


@pytest.mark.parametrize("example", [*scalar_examples(), *cast_examples()], ids=str)
def test_the_example_holds_on_the_reference(example: Example) -> None:
    if example.error:
        (expr,) = bound(example.expression)
        with pytest.raises(Failure) as caught:
            evaluate(expr)
        assert caught.value.code == example.error
        return
    expr, expected = bound(example.expression, example.expected)
    got, wanted = evaluate(expr), evaluate(expected)
    assert comparable(got, expr.type) == comparable(wanted, expected.type), got
    assert expr.nullable or got is not None
    if isinstance(expr, Call) and expr.function.no_null_inside:
        assert got is None or None not in got


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.fails], ids=lambda e: e.name)
def test_an_entry_that_fails_shows_it(entry: functions.Scalar) -> None:
    assert any("= error " in e for e in entry.examples) or entry.name in {"add_months", "subtract_months"}


def body_functions(entry: functions.Scalar) -> list[FunctionType]:
    """The body and every plain function it calls."""
    assert isinstance(entry.body, FunctionType)
    found = [entry.body]
    for function in found:
        names = [i.argval for i in get_instructions(function) if i.opname == "LOAD_GLOBAL"]
        called = [function.__globals__.get(name) for name in names]
        found += [c for c in called if isinstance(c, FunctionType) and c not in found]
    return found


@pytest.mark.parametrize("entry", [e for e in ENTRIES if not e.native], ids=lambda e: e.name)
def test_a_compiled_body_uses_only_numbers(entry: functions.Scalar) -> None:
    for function in body_functions(entry):
        assert all(c is None or isinstance(c, (int, float, str)) for c in function.__code__.co_consts)
        assert all(-(2**63) <= c < 2**63 for c in function.__code__.co_consts if isinstance(c, int))


def signature(name: str, *types: DataType, constants: tuple[Any, ...] = ()) -> Signature:
    found = functions.resolve(name, types, constants)
    assert not isinstance(found, Refusal), found
    return found[1]


@pytest.mark.parametrize(
    ("name", "types", "returns"),
    [
        ("+", (INTEGER, BIGINT), BIGINT),
        ("+", (TINYINT, TINYINT), TINYINT),
        ("+", (INTEGER, REAL), DOUBLE),
        ("+", (REAL, REAL), REAL),
        ("+", (decimal(12, 2), decimal(10, 4)), decimal(15, 4)),
        ("-", (decimal(12, 2), INTEGER), decimal(13, 2)),
        ("*", (decimal(12, 2), decimal(2, 1)), decimal(15, 3)),
        ("/", (decimal(10, 2), decimal(1, 0)), decimal(14, 6)),
        ("%", (decimal(10, 2), decimal(5, 4)), decimal(5, 4)),
        ("*", (decimal(12, 2), DOUBLE), DOUBLE),
        ("+", (TIMESTAMP, INTERVAL), TIMESTAMP),
        ("+", (DATE, INTERVAL), TIMESTAMP),
        ("+", (DATE, INTERVAL_MONTH), DATE),
        ("+", (DATE, INTEGER), DATE),
        ("-", (DATE, DATE), INTERVAL),
        ("-", (TIMESTAMP, DATE), INTERVAL),
        ("*", (INTEGER, INTERVAL), INTERVAL),
        ("*", (INTERVAL_MONTH, INTEGER), INTERVAL_MONTH),
        ("<", (DATE, TIMESTAMP), BOOLEAN),
        ("ceil", (decimal(10, 2),), decimal(9, 0)),
        ("ceil", (REAL,), BIGINT),
        ("greatest", (INTEGER, decimal(10, 1), SMALLINT), decimal(11, 1)),
        ("year", (TIMESTAMP,), INTEGER),
        # as Spark says, from here on
        ("+", (decimal(12, 2), BIGINT), decimal(23, 2)),
        ("+", (decimal(38, 10), decimal(38, 10)), decimal(38, 9)),
        ("-", (decimal(38, 2), decimal(38, 20)), decimal(38, 6)),
        ("*", (decimal(12, 2), decimal(12, 2)), decimal(25, 4)),
        ("*", (decimal(38, 10), decimal(38, 10)), decimal(38, 6)),
        ("*", (decimal(20, 2), decimal(20, 3)), decimal(38, 5)),
        ("/", (decimal(12, 2), decimal(12, 2)), decimal(27, 15)),
        ("/", (decimal(18, 6), decimal(18, 6)), decimal(38, 20)),
        ("/", (decimal(38, 38), decimal(38, 0)), decimal(38, 38)),
        ("/", (decimal(38, 0), decimal(38, 38)), decimal(38, 6)),
        ("%", (decimal(38, 10), decimal(20, 2)), decimal(28, 10)),
        ("ceil", (decimal(38, 4),), decimal(35, 0)),
        ("abs", (decimal(38, 4),), decimal(38, 4)),
    ],
)
def test_types_of_results(name: str, types: tuple[DataType, ...], returns: DataType) -> None:
    assert signature(name, *types).returns == returns


def test_a_comparison_with_the_sides_changed_is_the_one_that_its_entry_names() -> None:
    compared = {e.compares: e for e in functions.all_scalars().values() if e.compares is not None}
    assert {c: e.name for c, e in compared.items()} == {c: c.value for c in functions.Compares}
    for comparison, entry in compared.items():
        found, turned = entry.signature((BIGINT, BIGINT)), compared[comparison.turned]
        for x, y in ((1, 2), (2, 1), (1, 1)):
            assert entry.body(found, x, y) == turned.body(found, y, x)


def test_an_integer_literal_beside_a_decimal_is_as_narrow_as_its_digits() -> None:
    assert signature("*", decimal(12, 2), INTEGER, constants=(None, 3)).returns == decimal(14, 2)
    assert signature("<", decimal(17, 2), INTEGER, constants=(None, 100)).params == (decimal(17, 2),) * 2


@pytest.mark.parametrize(
    ("name", "types", "code"),
    [
        ("%", (decimal(38, 20), BIGINT), "CQ0304"),
        ("<", (decimal(38, 38), decimal(2, 1)), "CQ0304"),
        ("greatest", (decimal(38, 20), BIGINT), "CQ0304"),
        ("<", (VARCHAR, DOUBLE), "CQ0301"),
        ("+", (VARCHAR, INTEGER), "CQ0301"),
        ("+", (TIMESTAMP, TIMESTAMP), "CQ0301"),
        ("+", (INTERVAL, INTERVAL_MONTH), "CQ0301"),
        ("sqrt", (VARCHAR,), "CQ0302"),
        ("length", (INTEGER,), "CQ0302"),
        ("substring", (VARCHAR,), "CQ0302"),
        ("no_such", (VARCHAR,), "CQ0205"),
    ],
)
def test_what_does_not_go_together_is_refused_with_a_code(name: str, types: tuple[DataType, ...], code: str) -> None:
    refusal = functions.resolve(name, types)
    assert isinstance(refusal, Refusal) and refusal.code == code


def body(name: str, *types: DataType) -> Any:
    found = functions.resolve(name, types)
    assert not isinstance(found, Refusal)
    entry, resolved = found
    return (lambda *values: entry.body(resolved, *values)) if entry.typed else entry.body


@pytest.mark.parametrize("type_", [TINYINT, SMALLINT, INTEGER, BIGINT], ids=str)
def test_integer_arithmetic_is_exact_or_an_error_at_the_edge_of_its_own_type(type_: DataType) -> None:
    low, high = integer_range(type_)
    values = [low, low + 1, -7, -1, 0, 1, 2, 7, high - 1, high]
    exact = {
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
        "/": lambda x, y: int(Fraction(x, y)),
        "%": lambda x, y: x - y * int(Fraction(x, y)),
    }
    for name, true in exact.items():
        compute = body(name, type_, type_)
        for x in values:
            for y in values:
                if y == 0 and name in "/%":
                    continue
                wanted = true(x, y)
                if low <= wanted <= high:
                    assert compute(x, y) == wanted, (x, name, y)
                else:
                    with pytest.raises(Failure, match="overflow"):
                        compute(x, y)


def test_decimal_quotients_round_half_up_and_fit_their_type() -> None:
    rng = random.Random(5)
    left, right = decimal(6, 2), decimal(3, 1)
    resolved = signature("/", left, right)
    compute = body("/", left, right)
    for _ in range(2000):
        x, y = rng.randint(-(10**6) + 1, 10**6 - 1), rng.randint(-999, 999) or 1
        with localcontext() as context:
            context.prec = 60
            exact = Decimal(x).scaleb(-2) / Decimal(y).scaleb(-1)
            wanted = exact.quantize(Decimal(1).scaleb(-resolved.returns.scale), rounding=ROUND_HALF_UP)
        got = compute(x, y)
        assert Decimal(got).scaleb(-resolved.returns.scale) == wanted
        assert abs(got) < 10**resolved.returns.precision


def random_double(rng: random.Random) -> float:
    (value,) = struct.unpack("<d", rng.randbytes(8))
    return 0.0 if math.isnan(value) else float(value)


def test_doubles_written_as_text_read_back_the_same() -> None:
    rng = random.Random(7)
    for _ in range(5000):
        value = random_double(rng)
        assert read_double(write_double(value)) == value


def test_reals_written_as_text_read_back_the_same() -> None:
    rng = random.Random(8)
    for _ in range(2000):
        (value,) = struct.unpack("<f", rng.randbytes(4))
        if not math.isnan(value):
            assert caster(VARCHAR, REAL)(write_real(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e-324, "4.9E-324"),
        (2e-323, "2.0E-323"),
        (
            2.0**-44,
            "5.684341886080802E-14",
        ),  # a power of two: with as many digits, ...801E-14 is nearer but reads as less
        (1e23, "1.0E23"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.0009999, "9.999E-4"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (123456.75, "123456.75"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert write_double(value) == text


def test_rounding_judges_the_shortest_text_and_agrees_with_the_rule_for_kernels() -> None:
    # [-- k --|-- tie --|-- k+1 --): below 1e15 the nearest DOUBLE to the tie decides
    rng = random.Random(11)
    compute = body("round", DOUBLE, INTEGER)
    for _ in range(4000):
        digits = rng.randint(0, 6)
        x = rng.choice([round(rng.uniform(-1e6, 1e6), rng.randint(0, 8)), rng.uniform(-1e3, 1e3)])
        k = int(abs(x) * 10**digits)
        while (k + 1) / 10**digits <= abs(x):
            k += 1
        while k / 10**digits > abs(x):
            k -= 1
        tie = (10 * k + 5) / 10 ** (digits + 1)
        wanted = math.copysign((k + 1 if abs(x) >= tie else k) / 10**digits, x) + 0.0
        assert compute(x, digits) == (wanted if wanted else 0.0)


def slow_like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(slow_like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and slow_like(text[1:], pattern[1:])


def test_like_agrees_with_the_definition_and_stays_fast() -> None:
    rng = random.Random(3)
    for _ in range(3000):
        text = "".join(rng.choice("ab\n") for _ in range(rng.randint(0, 8)))
        pattern = "".join(rng.choice("ab_%") for _ in range(rng.randint(0, 6)))
        assert like(text, pattern) == slow_like(text, pattern), (text, pattern)
    assert not like("a" * 3000, "%a" * 30 + "b")


TYPES = [
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INTEGER,
    BIGINT,
    REAL,
    DOUBLE,
    decimal(5, 2),
    decimal(18, 0),
    VARCHAR,
    DATE,
    TIMESTAMP,
    INTERVAL,
    INTERVAL_MONTH,
]


def some_values(type_: DataType) -> list[Any]:
    if type_.is_integer:
        return [*integer_range(type_), 0, -1, 7]
    match type_.kind:
        case Kind.BOOLEAN:
            return [True, False]
        case Kind.REAL | Kind.DOUBLE:
            return [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, 16777216.0, 1.401298464324817e-45]
        case Kind.DECIMAL:
            return [0, 1, -(10**type_.precision) + 1, 10**type_.precision - 1, 55]
        case Kind.VARCHAR:
            return ["", " 1 ", "1.5", "true", "2024-02-29", "2024-02-29 01:02:03.456789", "NaN", "x", "é\n"]
        case Kind.DATE:
            return [0, -1, 19782, -(2**31), 2**31 - 1]
        case Kind.TIMESTAMP | Kind.INTERVAL:
            return [0, -1, INT64_MIN, INT64_MAX, 1_709_168_523_456_789]
        case _:
            return [0, -1, 14]


@pytest.mark.parametrize("name", [e.name for e in functions.all_scalars().values() if e.settled])
def test_a_call_does_not_fail_beside_literals_that_settle_it(name: str) -> None:
    entry, settled, open_ = functions.all_scalars()[name], 0, 0
    for types in (t for count in (2, 3) for t in itertools.product(TYPES, repeat=count)):
        signature = entry.signature(types)
        if signature is None or signature.params != types:
            continue
        for values in itertools.product(*map(some_values, types)):
            if entry.can_fail(signature, (None, *values[1:])):
                open_ += 1
                continue
            settled += 1
            entry.body(*([signature] if entry.typed else []), *values)
    assert settled and open_


@pytest.mark.parametrize(("source", "target"), [(s, t) for s in TYPES for t in TYPES if castable(s, t)], ids=str)
def test_a_cast_gives_a_value_of_its_type_or_fails_as_announced(source: DataType, target: DataType) -> None:
    convert = caster(source, target)
    for value in some_values(source):
        try:
            got = convert(value)
        except Failure as failure:
            assert failure.code == "CQ0707" and cast_can_fail(source, target)
            continue
        if target.is_integer:
            assert type(got) is int and integer_range(target)[0] <= got <= integer_range(target)[1]
        elif target.is_float:
            assert type(got) is float
        elif target.kind is Kind.DECIMAL:
            assert type(got) is int and abs(got) < 10**target.precision
        elif target.kind is Kind.VARCHAR:
            assert type(got) is str
        elif target.kind is Kind.BOOLEAN:
            assert type(got) is bool


@pytest.mark.parametrize("type_", [t for t in TYPES if t.kind not in {Kind.INTERVAL, Kind.INTERVAL_MONTH}], ids=str)
def test_a_value_cast_to_text_and_back_is_the_same(type_: DataType) -> None:
    write, read = caster(type_, VARCHAR), caster(VARCHAR, type_)
    for value in some_values(type_):
        got = read(write(value))
        assert repr(got) == repr(value)


@pytest.mark.parametrize(
    "text", ["", " ", "1_000", "٣", "0x10", "1e", "e5", ".", "+", "--1", "1 2", "1e99999999", "9" * 500, "１"]
)
def test_numbers_are_read_strictly(text: str) -> None:
    for type_ in (BIGINT, DOUBLE, decimal(18, 2)):
        with pytest.raises(Failure):
            caster(VARCHAR, type_)(text)


def test_decimals_are_read_exactly_whatever_their_exponent() -> None:
    assert read_decimal("0.00000000000000000000000000000000000000005e41", 5, 2) == 500
    assert read_decimal("1e-300", 5, 2) == 0
    assert read_decimal("0e300", 5, 2) == 0
    assert read_decimal("-0.005", 5, 2) == -1
    assert read_decimal("0.00499999999999999999999999999", 5, 2) == 0
    assert read_decimal("999.995", 5, 2) is None


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-30",
        "2024-13-01",
        "24-01-01",
        "2024-01-01 25:00",
        "2024-01-01 00:60:00",
        "2024-01-01 00:00:60",
        "2024-01-01 00:00:00+02:00",
        "2024-01-01x",
        "10:00:00",
        "300000-01-01",
        "٢٠٢٤-01-01",
    ],
)
def test_times_are_read_strictly(text: str) -> None:
    assert read_timestamp(text) is None


def test_times_at_the_ends_of_64_bits_are_written_and_read() -> None:
    for time in (INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX):
        assert read_timestamp(write_timestamp(time)) == time


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (0, "0 seconds"),
        (1, "1 microsecond"),
        (120_000_000, "2 minutes"),
        (5_400_000_000, "1 hour 30 minutes"),
        (2 * 86_400_000_000 + 1_500_000, "2 days 1 second 500 milliseconds"),
        (-90_000_000, "-1 minute -30 seconds"),
    ],
)
def test_a_duration_is_written_in_the_units_people_use_and_interval_reads_it(micros: int, shown: str) -> None:
    assert write_duration(micros) == shown
    literal = parse_expression(f"INTERVAL '{shown}'")
    assert isinstance(literal, ast.IntervalLiteral) and bind_interval(literal).value == micros


NAN = "CAST('NaN' AS DOUBLE)"


@pytest.mark.parametrize(
    ("short", "value"),
    [
        ("NVL2(1, 'a', 'b')", "'a'"),
        ("NVL2(CAST(null AS DATE), 1, 2.5)", "2.5"),
        ("ZEROIFNULL(CAST(null AS BIGINT))", "0"),
        ("ZEROIFNULL(7.5)", "7.5"),
        ("NULLIFZERO(0e0)", "null"),
        ("NULLIFZERO(3)", "3"),
        (f"NANVL({NAN}, 1)", "1e0"),
        ("NANVL(null, 1)", "null"),
        ("NANVL(2, null)", "2e0"),
        ("ISNULL(null)", "true"),
        ("ISNOTNULL(null)", "false"),
        ("STRING(1.50)", "'1.50'"),
        ("INT('12')", "12"),
        ("DATE('2024-02-29 10:00')", "DATE '2024-02-29'"),
        ("TRY_TO_DATE('29/13/2024', 'dd/MM/yyyy')", "null"),
        ("TRY_STRPTIME('soon', '%Y')", "null"),
        ("STRPTIME('5%2 2024', '%-d%%%-m %Y')", "TIMESTAMP '2024-02-05 00:00:00'"),
        ("STRFTIME(DATE '2024-02-05', 'it''s %F')", "'it''s 2024-02-05'"),
        ("UNIX_TIMESTAMP(DATE '1970-01-02')", "86400"),
        ("UNIX_TIMESTAMP('01.01.1970 00:01', 'dd.MM.yyyy HH:mm')", "60"),
        ("TO_UNIX_TIMESTAMP('1970-01-01 00:00:01.9')", "1"),
        ("FROM_UNIXTIME(0)", "'1970-01-01 00:00:00'"),
        ("FROM_UNIXTIME(60, 'HH:mm')", "'00:01'"),
        ("DATEADD(DAY, 2, DATE '2024-02-28')", "TIMESTAMP '2024-03-01 00:00:00'"),
        ("DATE_ADD('month', 1, TIMESTAMP '2024-01-31 10:00:00')", "TIMESTAMP '2024-02-29 10:00:00'"),
        ("TIMESTAMPADD(QUARTER, -1, '2024-03-31')", "TIMESTAMP '2023-12-31 00:00:00'"),
        ("DATE_ADD(DATE '2024-01-31', INTERVAL 1 MONTH)", "DATE '2024-02-29'"),
        ("DATE_SUB(TIMESTAMP '2024-01-31 00:00:00', INTERVAL '1' HOUR)", "TIMESTAMP '2024-01-30 23:00:00'"),
        ("DATEDIFF('2024-03-01', '2024-02-28')", "2"),
        ("DATE_DIFF('minutes', '2024-01-01 10:00:30', '2024-01-01 10:02:00')", "1"),
        ("TIMESTAMPDIFF(QUARTER, DATE '2024-01-31', DATE '2025-01-30')", "3"),
        ("DATEDIFF(WEEK, DATE '2024-01-15', DATE '2024-01-01')", "-2"),
    ],
)
def test_a_short_form_means_what_it_is_short_for(short: str, value: str) -> None:
    got, wanted = bound(short, value)
    assert comparable(evaluate(got), got.type) == comparable(evaluate(wanted), wanted.type)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("DATE_FORMAT(DATE '2024-01-01', '%Y-%q')", "%q at character 4 is not a field"),
        ("DATE_FORMAT(DATE '2024-01-01', 'yyyy-ww')", "ww at character 6 is not a field"),
        ("DATE_FORMAT(DATE '2024-01-01', 'yyyy [')", "[ at character 6 has no meaning here"),
        ("DATE_FORMAT(DATE '2024-01-01', STRING(x))", "DATE_FORMAT needs a literal pattern"),
        ("STRFTIME(DATE '2024-01-01', '%Y %Q')", "%Q at character 4 is not a field"),
        ("TO_TIMESTAMP('1', 'MM-dd')", "it has no year"),
        ("TO_TIMESTAMP('1', 'yyyy-dd')", "a day without a month"),
        ("TO_TIMESTAMP('1', 'yyyy yyyy')", "y stands there twice"),
        ("TO_TIMESTAMP('1', 'EEE yyyy')", "E is only for writing"),
        ("TO_TIMESTAMP('1', 'yyyy hh')", "h goes with a"),
        ("TO_TIMESTAMP('1', 'yyyyMdd')", "M does not say how many digits it has"),
        ("TO_TIMESTAMP('1', 'yyyy ssSSS')", "S stands beside another number"),
        ("UNIX_TIMESTAMP()", "UNIX_TIMESTAMP needs an argument"),
        ("UNIX_TIMESTAMP(DATE '1970-01-01', 'yyyy')", "UNIX_SECONDS does not take (DATE, VARCHAR)"),
        ("DATEDIFF(FORTNIGHT, x, x)", "`fortnight` is not a unit of time"),
        ("TIMESTAMPDIFF(x, x)", "TIMESTAMPDIFF takes a unit and two values"),
        ("TRUNC(1.5e0, 1)", "TRUNC of a DOUBLE takes no digits"),
        ("TRUNC(15, INT(x))", "TRUNC needs a literal number of digits"),
        ("ZEROIFNULL('a')", "the argument of ZEROIFNULL and 0"),
    ],
)
def test_what_a_function_does_not_take_is_refused_with_the_reason_and_its_place(call: str, said: str) -> None:
    with pytest.raises(CqError) as caught:
        bound(call)
    assert said in str(caught.value)
    assert caught.value.line == 2


def test_what_is_written_elsewhere_is_no_function_here() -> None:
    assert not ELSEWHERE.keys() & {
        *functions.all_names(),
        *SHORTHANDS,
        *aggregates.all_aggregates(),
        *aggregates.ALIASES,
    }
