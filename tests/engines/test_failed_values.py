"""The message about a value that cannot be cast shows the value, on both engines."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import cq
from cq.lang import error_places
from cq.lang.types import BIGINT, BINARY, VARCHAR, DataType, array
from cq.lang.value_text import MOST_SHOWN
from cq.runtime.layout.abi import TOLD_BYTES

LONG = "ä" * 100
MANY = "123456789012345678901234567890.5"
CASTS = {
    "CAST(x AS INTEGER)": ("x7", "cannot cast 'x7' to INTEGER"),
    "CAST(x AS DOUBLE)": (LONG, f"cannot cast '{LONG[:60]}…' to DOUBLE"),
    "CAST(x AS TIMESTAMP)": ("", "cannot cast '' to TIMESTAMP"),
    "CAST(x AS TINYINT)": (200, "cannot cast 200 to TINYINT"),
    "CAST(x AS BIGINT)": (1e300, "cannot cast 1.0E300 to BIGINT"),
    "CAST(x AS SMALLINT)": (Decimal(MANY), f"cannot cast {MANY} to SMALLINT"),
    "CAST([x, '1'] AS INTEGER ARRAY)": ("one", "cannot cast 'one' to INTEGER"),
    "CAST(x AS VARCHAR)": (b"\xff" * 100, f"cannot cast X'{'F' * 60}…' to VARCHAR"),
    "TO_TIMESTAMP(x, 'yyyy')": ("20x4", "'20x4' is not a time as 'yyyy' writes it"),
    "TO_DATE(x || x, 'yyyy')": ("{}", "'{}{}' is not a time as 'yyyy' writes it"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize(("made", "value", "message"), [(c, *told) for c, told in CASTS.items()], ids=CASTS)
def test_the_value_is_shown(made: str, value: object, message: str, engine: str) -> None:
    rows = pa.table({"x": pa.array([value])})
    with pytest.raises(cq.DataError) as failed:
        cq.sql(f"SELECT {made} AS y FROM t", t=rows).run(engine=engine, threads=0)
    assert failed.value.first.message == message


def test_the_value_of_a_computed_event_time_is_shown() -> None:
    text = """CREATE STREAM s (x VARCHAR, at AS TO_TIMESTAMP(x, 'yyyy'), WATERMARK FOR at) WITH (connector = 'memory');
    SELECT x FROM s"""
    with pytest.raises(cq.DataError) as failed:
        cq.sql(text, s=pa.table({"x": ["2024", "next year"]})).run(threads=0)
    assert failed.value.first.message == "'next year' is not a time as 'yyyy' writes it"


def test_a_kernel_keeps_more_of_a_text_than_a_message_shows() -> None:
    assert TOLD_BYTES >= 4 * (MOST_SHOWN + 1)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (VARCHAR, "it's " * 20, "'" + "it''s " * 12 + "…'"),
        (BINARY, b"\xaa" * 40, f"X'{'AA' * 30}…'"),
        (array(BIGINT), tuple([7] * 40), f"ARRAY[{'7, ' * 18}…"),
    ],
    ids=["text", "bytes", "array"],
)
def test_a_group_shows_the_beginning_of_a_long_key(type_: DataType, value: object, text: str) -> None:
    assert error_places.group([("k", type_)], (value,)) == f"group k = {text}"
