"""Python values of several types in one column: an error with a way out that works where it is read, else nothing."""

from __future__ import annotations

from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

from cq import sql
from cq.errors import CqError

ROWS = [{"a": 1, "b": 2}, {"a": "x", "b": 3}, {"b": 4}]
GIVEN = {
    "rows": lambda: [dict(row) for row in ROWS],
    "columns": lambda: {"a": [1, "x", None], "b": [2, 3, 4]},
    "frame": lambda: pandas.DataFrame(ROWS, dtype=object),
}


@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
def test_column_of_several_types_stops_nothing_that_does_not_read_it(make: Any) -> None:
    for query in ("SELECT SUM(b) AS s FROM t", "CREATE STREAM t (b BIGINT); SELECT SUM(b) AS s FROM t"):
        assert sql(query, t=make()).run(engine="reference").to_pylist() == [{"s": 9}]


@pytest.mark.parametrize("query", ["SELECT a FROM t", "CREATE STREAM t (a VARCHAR); SELECT a FROM t"])
@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
def test_column_of_several_types_is_refused_with_a_way_out_that_works(make: Any, query: str) -> None:
    with pytest.raises(CqError, match="values of several types: int, str") as refused:
        sql(query, t=make()).run(engine="reference")
    way = refused.value.first.help[0].removeprefix("make them texts: ")
    names = {"t": make()}
    exec(way, names)
    assert sql(query, t=names["t"]).run(engine="reference").to_pylist() == [{"a": "1"}, {"a": "x"}, {"a": None}]


WIDE = "SELECT a FROM t", "CREATE STREAM t (a VARCHAR); SELECT a FROM t"


def with_a_wide_column() -> polars.DataFrame:
    return polars.DataFrame({"a": polars.Series([2**70, None], dtype=polars.Int128), "b": [2, 3]})


def test_column_of_a_polars_frame_that_arrow_does_not_take_stops_nothing_that_does_not_read_it() -> None:
    for query in ("SELECT SUM(b) AS s FROM t", "CREATE STREAM t (b BIGINT); SELECT SUM(b) AS s FROM t"):
        assert sql(query, t=with_a_wide_column()).run(engine="reference").to_pylist() == [{"s": 5}]
    assert sql("SELECT COUNT(*) AS n FROM t", t=with_a_wide_column()).run(engine="reference").to_pylist() == [{"n": 2}]
    with pytest.warns(UserWarning, match="of types that cq does not support: a of the polars type Int128"):
        rows = sql("SELECT * FROM t", t=with_a_wide_column()).run(engine="reference").to_pylist()
    assert rows == [{"b": 2}, {"b": 3}]


@pytest.mark.parametrize("query", WIDE)
def test_column_of_a_polars_frame_that_arrow_does_not_take_is_refused_with_a_way_out_that_works(query: str) -> None:
    with pytest.raises(CqError, match="of the polars type Int128") as refused:
        sql(query, t=with_a_wide_column()).run(engine="reference")
    names = {"t": with_a_wide_column()}
    exec(refused.value.first.help[0].removeprefix("make it text: "), names)
    assert sql(query, t=names["t"]).run(engine="reference").to_pylist() == [{"a": str(2**70)}, {"a": None}]


DOUBLED = pa.table([[1], [2], [3], [4]], names=["a", "a", "b", "a_1"])
TWICE = {
    "frame": lambda: pandas.DataFrame([[1, 2, 3, 4]], columns=["a", "a", "b", "a_1"]),
    "table": lambda: DOUBLED,
    "reader": lambda: DOUBLED.to_reader(),
    "stream": lambda: Stream(),
}


class Stream:
    """What gives Arrow, and is of no package."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return DOUBLED.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("make", TWICE.values(), ids=TWICE)
def test_of_two_columns_with_one_name_the_second_has_another(make: Any, engine: str) -> None:
    for query, row in (
        ("SELECT b FROM t", {"b": 3}),
        ("SELECT a FROM t", {"a": 1}),
        ("SELECT * FROM t", {"a": 1, "a_2": 2, "b": 3, "a_1": 4}),
        ("SELECT a_2 + b AS s FROM t", {"s": 5}),
        ("SELECT COUNT(*) AS n FROM t", {"n": 1}),
        ("CREATE STREAM t (a_2 BIGINT, a BIGINT); SELECT a_2, a FROM t", {"a_2": 2, "a": 1}),
    ):
        assert sql(query, t=make()).run(engine=engine, threads=0).to_pylist() == [row], query


def test_value_that_no_type_holds_is_told_with_its_type() -> None:
    with pytest.raises(CqError, match='column "a" of stream "t" is of values that no type holds all of: int'):
        sql("SELECT a FROM t", t=[{"a": 2**70}]).run(engine="reference")


def test_star_warns_in_python_of_columns_that_it_leaves_out() -> None:
    table = pa.table({"id": [1], "m": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64()))})
    with pytest.warns(
        UserWarning, match=r"\* leaves out columns of \"t\" of types that cq does not support: m map<string, int64"
    ):
        assert sql("SELECT * FROM t", t=table).run(engine="reference").to_pylist() == [{"id": 1}]
    with pytest.warns(UserWarning, match="a of values of several types: int, str"):
        assert sql("SELECT * FROM t", t=ROWS).run(engine="reference").to_pylist() == [{"b": 2}, {"b": 3}, {"b": 4}]
