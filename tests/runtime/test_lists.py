"""Columns of lists become the arrays of kernels and lists again, whatever their elements and slices."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cq.runtime.flow.lists import array_of_lists, lists_of_array

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, 127, None],
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
    rng = random.Random(1)
    rows = [rng.choice([None, [], rng.choices(VALUES[type_], k=rng.randrange(12))]) for _ in range(60)]
    column = pa.array(rows, pa.list_(type_))
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
