"""Lines of CSV made natively are those that the definition makes; what a line is, test_connectors.py says."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import cq
from cq.connectors.sinks.cell_text import csv_rows
from cq.lang.calendar import DAY_US
from cq.runtime.base.simulation import Memory
from cq.runtime.writers import CsvText, csv_text
from cq.runtime.writers.csv_lines import csv_lines

Lines = Callable[[pa.RecordBatch], bytes]
Draw = Callable[[random.Random], object]

FIRST_US, LAST_US = -719528 * DAY_US, 2932897 * DAY_US - 1  # of the years 0 to 9999
LETTERS = ("a", ",", ";", '"', "\n", "\r", "\t", " ", "é", "😀", "-", "\x00", "]")


def whole(bits: int) -> Draw:
    """Integers of every length."""
    return lambda rng: rng.choice((-1, 1)) * rng.randrange(1 << rng.randrange(bits)) - rng.choice((0, 1))


def micros(rng: random.Random) -> int:
    """Times with every number of digits behind the second."""
    return min(LAST_US, rng.randrange(FIRST_US, LAST_US) // (step := 10 ** rng.randrange(8)) * step)


def text(rng: random.Random) -> str:
    letters = LETTERS if rng.random() < 0.3 else "abc"
    return "".join(rng.choice(letters) for _ in range(rng.choice((0, 1, 7, 8, 9, 20))))


COLUMNS: dict[str, tuple[pa.DataType, Draw]] = {
    "tiny": (pa.int8(), whole(8)),
    "small": (pa.int16(), whole(16)),
    "integer": (pa.int32(), whole(32)),
    "big": (pa.int64(), whole(64)),
    "price": (pa.decimal128(18, 6), lambda rng: Decimal(whole(59)(rng)).scaleb(-6)),
    "count": (pa.decimal128(7, 0), lambda rng: Decimal(whole(23)(rng))),
    "wide": (pa.decimal128(38, 9), lambda rng: Decimal(whole(60)(rng)).scaleb(-9)),
    "small decimal": (pa.decimal128(18, 12), lambda rng: Decimal(whole(40)(rng)).scaleb(-12)),
    "truth": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "day": (pa.date32(), lambda rng: rng.randrange(-719528, 2932897)),
    "time": (pa.time64("us"), lambda rng: micros(rng) % DAY_US),
    "at": (pa.timestamp("us"), micros),
    "span": (pa.duration("us"), whole(64)),
    "real": (pa.float32(), lambda rng: rng.choice((0.0, -0.5, 1e20, float("nan")))),
    "double": (pa.float64(), lambda rng: rng.choice((rng.random(), 1.0, -1e300, float("inf")))),
    "text": (pa.string(), text),
    "texts": (pa.list_(pa.string()), lambda rng: [text(rng) for _ in range(rng.randrange(3))]),
}


def drawn(rng: random.Random, rows: int) -> pa.RecordBatch:
    """Some columns, with and without NULLs, as a slice of longer ones."""
    names = rng.sample(list(COLUMNS), rng.randrange(1, 6))
    arrays = []
    for name in names:
        type_, draw = COLUMNS[name]
        nulls = rng.choice((0, 0.3))
        arrays.append(pa.array([None if rng.random() < nulls else draw(rng) for _ in range(rows + 9)], type_))
    return pa.RecordBatch.from_arrays(arrays, names).slice(rng.randrange(9), rows)


def checked(memory: Memory, delimiter: str) -> Lines:
    """The native function interpreted: every access is checked to be within its memory."""
    arrays = lambda array: memory._add(memoryview(array).cast("B"), owned=False)  # noqa: E731
    buffers = lambda buffer: memory._add(memoryview(bytes(buffer) + bytes(7)), owned=False)  # noqa: E731
    return CsvText(csv_lines, delimiter, arrays, buffers).lines


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "]"])
def test_native_lines_are_what_the_definition_writes(interpreted: bool, delimiter: str) -> None:
    rng = random.Random(5)
    with Memory() as memory:
        lines = checked(memory, delimiter) if interpreted else csv_text(delimiter)
        for _ in range(40 if interpreted else 200):
            batch = drawn(rng, rng.choice((1, 2, 30)))
            assert lines(batch) == csv_rows(batch, delimiter), batch.to_pydict()


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int64(), [-(2**63), 2**63 - 1, 0, 9, 10, 10**8 - 1, 10**8, 10**16 - 1, 10**16]),
        (pa.timestamp("us"), [FIRST_US, LAST_US, -1, 0, DAY_US - 1, 100_000]),
        (pa.duration("us"), [-(2**63), 2**63 - 1, -1, DAY_US, DAY_US - 1]),
        (pa.decimal128(2, 2), [Decimal("0.00"), Decimal("-0.99"), Decimal("0.09")]),
        (pa.string(), ["", "12345678", "1234567,", '1234567"', "12345678\r", '"', "\n"]),
    ],
)
def test_extreme_values_are_written_natively_as_by_the_definition(type_: pa.DataType, values: list[object]) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(values, type_)], ["a"])
    with Memory() as memory:
        assert csv_text(",")(batch) == checked(memory, ",")(batch) == csv_rows(batch, ",")


@pytest.mark.parametrize(
    "array",
    [
        pa.array([0, LAST_US + 1], pa.timestamp("us")),
        pa.array([0, FIRST_US - 1, 2**63 - 1], pa.timestamp("us")),
        pa.array([0, 2932897, -719529], pa.date32()),
        pa.nulls(2),
    ],
)
def test_batch_with_a_year_of_other_than_four_digits_is_written_by_the_definition(array: pa.Array) -> None:
    batch = pa.RecordBatch.from_arrays([array], ["a"])
    assert csv_text(",")(batch) == csv_rows(batch, ",")


def test_batch_of_no_rows_or_no_columns_is_written_as_the_definition_does() -> None:
    empty = pa.RecordBatch.from_pydict({"a": pa.array([], pa.int64())})
    bare = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 2, [None]))
    assert csv_text(",")(empty) == b"" and csv_text(",")(bare) == b"\n\n"


def test_file_of_the_native_engine_has_the_bytes_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [name for name in COLUMNS if name != "texts"]
    rng = random.Random(8)
    rows = pa.table(
        {n.replace(" ", "_"): pa.array([COLUMNS[n][1](rng) for _ in range(50)], COLUMNS[n][0]) for n in names}
    )
    for engine in ("native", "reference"):
        query = f"CREATE SINK o WITH (path = '{engine}.csv'); INSERT INTO o SELECT * FROM t WHERE big <> 5;"
        cq.run(query, {"t": rows}, engine=engine)
    assert Path("native.csv").read_bytes() == Path("reference.csv").read_bytes()
