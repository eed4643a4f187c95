"""Columns of lists become the arrays of kernels and lists again, whatever their elements and slices."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cq.runtime.base.host import CompiledHost, InterpretedHost
from cq.runtime.containers.state import words
from cq.runtime.flow.arrow import lend
from cq.runtime.flow.batch import LOAN_COLUMNS
from cq.runtime.flow.lists import array_of_lists, lists_of_array
from cq.runtime.layout.abi import COLUMN_BIT, COLUMN_DATA, COLUMN_OFFSETS, COLUMN_ROWS, COLUMN_VALIDITY, Storage

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, 127, None],
    pa.int16(): [-(2**15), 77, None],
    pa.int32(): [2**31 - 1, -1],
    pa.int64(): [2**63 - 1, -(2**63), None, 0],
    pa.bool_(): [True, False, None],
    pa.float32(): [1.5, float("inf"), None],
    pa.float64(): [-0.0, 1e300, None],
    pa.decimal128(10, 2): [Decimal("-3.25"), None],
    pa.decimal128(38, 2): [Decimal("-123456789012345678901234567890123456.78"), Decimal("0.01"), None],
    pa.string(): ["", "a", "ünïcöde, and longer than a word", None],
    pa.date32(): [date(1, 1, 1), None],
    pa.timestamp("us"): [datetime(2024, 2, 29, 1, 2, 3, 4), None],
}


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_lists_are_the_same_after_they_were_arrays(type_: pa.DataType) -> None:
    column = random_lists(type_, 1)
    for part in (column, column.slice(7), column.slice(20, 3), column.slice(60)):
        packed = array_of_lists(part)
        packed.validate(full=True)
        again = lists_of_array(packed, part.type)
        again.validate(full=True)
        assert again.to_pylist() == part.to_pylist()
        assert lists_of_array(packed.slice(2), part.type).to_pylist() == part.slice(2).to_pylist()


def test_what_a_null_has_behind_it_is_left_out() -> None:
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0\4\0\0\0"), pa.py_buffer(b"abbc"))
    masked = pa.StringArray.from_buffers(3, texts.buffers()[1], texts.buffers()[2], pa.py_buffer(b"\5"))
    column = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), masked)
    assert lists_of_array(array_of_lists(column), column.type).to_pylist() == [["a", None, "c"]]
    assert array_of_lists(column)[0].as_py() == array_of_lists(pa.array([["a", None, "c"]]))[0].as_py()


def packed(host, column: pa.ListArray) -> list[bytes | None]:
    """The arrays that the column table of a loan shows; none of a NULL."""
    batch = pa.RecordBatch.from_arrays([column], ["a"])
    with host.active():
        loan = lend(host, batch, host.place(words([int(Storage.UTF8)])))
        table = host.word(loan, LOAN_COLUMNS)
        offsets, data, validity, bit = (
            host.word(table, w) for w in (COLUMN_OFFSETS, COLUMN_DATA, COLUMN_VALIDITY, COLUMN_BIT)
        )
        assert host.word(table, COLUMN_ROWS) == len(column)
        found: list[bytes | None] = []
        for row in range(len(column)):
            begin, end = np.frombuffer(host.read(offsets + 4 * row, 8), np.int32).tolist()
            place = bit + row
            there = validity == 0 or host.read(validity + place // 8, 1)[0] >> place % 8 & 1
            found.append(host.read(data + begin, end - begin) if there else None)
        host.function("loan_return")(loan)
    return found


def random_lists(type_: pa.DataType, seed: int) -> pa.ListArray:
    rng = random.Random(seed)
    rows = [rng.choice([None, [], rng.choices(VALUES[type_], k=rng.randrange(12))]) for _ in range(60)]
    if seed == 2:  # without a NULL among the elements, and without NULL lists
        rows = [[v for v in row or () if v is not None] for row in rows]
    return pa.array(rows, pa.list_(type_))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_a_loan_shows_lists_as_the_arrays_that_are_their_definition(type_: pa.DataType, seed: int) -> None:
    column = random_lists(type_, seed)
    inner = pa.ListArray.from_arrays(column.offsets, pa.concat_arrays([column.values[:2], column.values])[2:])
    for part in (column, column.slice(7), column.slice(20, 3), inner, inner.slice(5, 30)):
        expected = array_of_lists(part).to_pylist()
        for host in (InterpretedHost(), CompiledHost()):
            assert packed(host, part) == expected, f"{host} seed {seed}"


def test_a_loan_shows_lists_of_nothing() -> None:
    column = pa.array([[None, None], None, [], [None]], pa.list_(pa.null()))
    for host in (InterpretedHost(), CompiledHost()):
        assert packed(host, column) == array_of_lists(column).to_pylist()


def test_a_loan_leaves_out_what_a_null_has_behind_it() -> None:
    masked = pa.StringArray.from_buffers(
        3, pa.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0\4\0\0\0"), pa.py_buffer(b"abbc"), pa.py_buffer(b"\5")
    )
    texts = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), masked)
    numbers = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(b"\7" * 16)])
    lists = pa.Array.from_buffers(
        pa.list_(pa.int64()), 2, [pa.py_buffer(b"\2"), pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0")], children=[numbers]
    )
    for column in (texts, lists):
        for host in (InterpretedHost(), CompiledHost()):
            assert packed(host, column) == array_of_lists(column).to_pylist()
