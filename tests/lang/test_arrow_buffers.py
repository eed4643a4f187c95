"""Arrays made of buffers are those that pyarrow makes of the same values, and no query imports pandas for them."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cq.lang import arrow_buffers as ab
from cq.workloads import WORKLOADS

TEXTS = ["", "a", "é", "a long text of many letters", "\0", "🙂"]


def values(r: random.Random, draw: Callable[[], Any]) -> list[Any]:
    return [None if r.random() < r.choice((0, 0.3)) else draw() for _ in range(r.choice((0, 1, 7, 8, 9, 100)))]


NUMBERS: dict[pa.DataType, Callable[[random.Random], Any]] = {
    pa.int8(): lambda r: r.randint(-128, 127),
    pa.int32(): lambda r: r.randint(-(2**31), 2**31 - 1),
    pa.int64(): lambda r: r.choice((-(2**63), 2**63 - 1, 0, r.randrange(1000))),
    pa.float32(): lambda r: r.choice((0.5, -0.0, float("inf"))),
    pa.float64(): lambda r: r.random(),
    pa.date32(): lambda r: r.randint(-100, 100),
    pa.timestamp("us"): lambda r: r.randint(-(2**50), 2**50),
    pa.timestamp("us", "Europe/Berlin"): lambda r: r.randint(-(2**50), 2**50),
    pa.duration("us"): lambda r: r.randint(-(2**50), 2**50),
}


@pytest.mark.parametrize("type_", NUMBERS, ids=str)
def test_numbers_are_those_of_pyarrow(type_: pa.DataType) -> None:
    r = random.Random(1)
    for _ in range(20):
        drawn = values(r, lambda: NUMBERS[type_](r))
        made = ab.number_array(type_, drawn)
        made.validate(full=True)
        plain = pa.array(drawn, type_ if pa.types.is_floating(type_) else getattr(pa, f"int{type_.bit_width}")())
        assert made.type == type_ and made.equals(plain.cast(type_))


def test_texts_truths_decimals_and_lists_are_those_of_pyarrow() -> None:
    r = random.Random(2)
    decimal, nested = pa.decimal128(38, 2), pa.list_(pa.string())
    for _ in range(50):
        texts, truths = values(r, lambda: r.choice(TEXTS)), values(r, lambda: r.random() < 0.5)
        unscaled = values(r, lambda: r.choice((0, -1, 10**38 - 1, -(10**38) + 1, r.randrange(10**20))))
        lists = values(r, lambda: [r.choice([*TEXTS, None]) for _ in range(r.randrange(4))])
        numbers = [None if v is None else Decimal((v < 0, tuple(map(int, str(abs(v)))), -2)) for v in unscaled]
        flat = ab.text_array([x for v in lists if v is not None for x in v])
        sizes = np.array([len(v or []) for v in lists], np.int64)
        for made, plain in (
            (ab.text_array(texts), pa.array(texts, pa.string())),
            (ab.boolean_array(truths), pa.array(truths, pa.bool_())),
            (ab.decimal_array(decimal, unscaled), pa.array(numbers, decimal)),
            (ab.list_array(flat, sizes, ab.missing_in(lists)), pa.array(lists, nested)),
        ):
            made.validate(full=True)
            assert made.equals(plain), (made, plain)
            assert ab.valid(made).tolist() == plain.is_valid().to_pylist()


def test_arrays_of_numpy_are_not_copied_and_have_nulls_where_told() -> None:
    numbers, missing = np.arange(10), np.arange(10) % 3 == 0
    made = ab.from_numpy(numbers, missing)
    assert made.equals(pa.array(numbers, mask=missing)) and made.buffers()[1].address == numbers.ctypes.data
    assert ab.from_numpy(missing, missing).equals(pa.array(missing, mask=missing))
    assert ab.from_numpy(numbers[::2]).equals(pa.array(numbers[::2]))
    assert ab.from_numpy(numbers, np.zeros(10, np.bool_)).null_count == 0


@pytest.mark.parametrize("type_", [pa.uint8(), pa.uint32(), pa.uint64(), pa.int16(), pa.float32()], ids=str)
def test_numbers_come_back_as_they_are(type_: pa.DataType) -> None:
    most = 2**type_.bit_width - 1 if pa.types.is_unsigned_integer(type_) else 100
    array = pa.array([1, None, most, 0], type_)
    assert ab.numbers(array.slice(1), 7).tolist() == [7, most, 0] and ab.numbers(array)[2] == most
    assert ab.numbers(pa.array([], type_)).tolist() == []


def test_arrays_without_values_may_have_no_buffers() -> None:
    truths, numbers = (pa.Array.from_buffers(t, 0, [None, None]) for t in (pa.bool_(), pa.int64()))
    assert len(ab.booleans(truths)) == len(ab.valid(truths)) == len(ab.numbers(numbers, 0)) == 0


def test_more_text_than_an_array_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ab, "MOST_TEXT_BYTES", 3)
    assert len(ab.text_array(["ab", "c"])) == 2
    with pytest.raises(OverflowError):
        ab.text_array(["ab", "cd"])


WATCHED = """
import os, sys, traceback
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            traceback.print_stack()
            os._exit(9)
sys.meta_path.insert(0, Watch())
from cq.cli import main
main(sys.argv[1:])
"""
SHORT = """SELECT UPPER(b) AS b, COUNT(*) AS n, ARRAY_AGG(a) AS l, CAST(a AS DECIMAL(9, 2)) AS d
FROM {} GROUP BY b, a ORDER BY b"""
GENERATED = """CREATE STREAM {0} WITH (connector = 'generator', workload = '{0}');
SELECT * FROM {0} LIMIT 3;
"""
QUERIES = {
    "files and values": ";".join(
        [
            SHORT.format("'t.csv'"),
            SHORT.format("(VALUES (1, 'a'), (2, NULL)) AS v(a, b)"),
            "SELECT 1 AS x, TRUE AS y, NULL AS z, DATE '2024-01-01' AS d",
        ]
    ),
    "workloads": "".join(GENERATED.format(name) for name in WORKLOADS),
}


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.one_in(4)
def test_no_query_imports_pandas(query: str, engine: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,\n")
    command = [sys.executable, "-c", WATCHED, "run", "-f", "table", "--engine", engine, query]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
