"""The hash the engine computes natively is the one Python computes."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from cq.connectors.rowhash import RowHash
from cq.runtime.flow import rowhash
from cq.runtime.flow.hashing import NativeRowHash

COUNT = 20_000  # more than two chunks


def columns(seed: int) -> dict[str, pa.Array]:
    draw = random.Random(seed)

    def some(kind: pa.DataType, values: list[object]) -> pa.Array:
        return pa.array(draw.choices(values, k=COUNT), kind)

    words: list[object] = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "é" * 50, "x" * rowhash.LONG_BYTES]
    decimals: list[object] = [Decimal("1.50"), Decimal("-1.50"), None]
    doubles: list[object] = [0.0, -0.0, float("nan"), float("inf"), 1.5, None]
    return {
        "i64": some(pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63)]),
        "i64n": some(pa.int64(), [0, 7, None]),
        "i32": some(pa.int32(), [0, -1, 2**31 - 1]),
        "i16": some(pa.int16(), [0, -1, None]),
        "i8": some(pa.int8(), [0, -128, 127]),
        "bit": some(pa.bool_(), [True, False]),
        "bitn": some(pa.bool_(), [True, False, None]),
        "f32": some(pa.float32(), doubles),
        "f64": some(pa.float64(), doubles),
        "dec": some(pa.decimal128(10, 2), decimals),
        "wide": some(pa.decimal128(38, 2), [Decimal("-123456789012345678901234567890.12"), Decimal(2**64), None]),
        "text": some(pa.string(), words),
        "textn": some(pa.string(), [*words, None]),
        "ts": some(pa.timestamp("us"), [0, 5, None]),
        "date": some(pa.date32(), [0, 19_000]),
    }


def digests(batches: list[pa.RecordBatch]) -> tuple[str, str]:
    made = []
    for hashing in (RowHash, NativeRowHash):
        h = hashing()
        for batch in batches:
            h.update(batch)
        made.append(h.digest)
    return made[0], made[1]


@pytest.mark.parametrize("name", columns(0))
def test_every_layout_has_the_hash_python_gives_it(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([columns(1)[name]], [name])
    plain, native = digests([batch])
    assert plain == native
    assert (
        digests([batch.slice(5, 9000), batch.slice(3, 1)])[0] == digests([batch.slice(5, 9000), batch.slice(3, 1)])[1]
    )
    assert digests([batch.slice(1)])[1] != native


def test_rows_of_all_layouts_in_slices_have_the_same_hash() -> None:
    table = columns(2)
    batch = pa.RecordBatch.from_arrays(list(table.values()), list(table))
    whole, native = digests([batch])
    assert whole == native
    for size in (1000, 8192, 8193):
        cut = [batch.slice(at, size) for at in range(0, COUNT, size)]
        assert digests(cut) == (whole, whole)


def test_a_long_string_in_the_middle_changes_nothing_but_the_way() -> None:
    texts = ["short"] * COUNT
    texts[10_000] = "x" * (rowhash.LONG_BYTES + 1)
    batch = pa.RecordBatch.from_arrays([pa.array(range(COUNT)), pa.array(texts)], ["n", "s"])
    plain, native = digests([batch, batch])
    assert plain == native


def test_no_rows_and_no_columns_hash_alike() -> None:
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.int64())], ["n"])
    assert digests([empty])[0] == digests([empty])[1]
