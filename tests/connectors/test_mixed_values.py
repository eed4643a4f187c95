"""Python values of several types in one column: an error with a way out that works where it is read, else nothing."""

from __future__ import annotations

from typing import Any

import pandas
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


def test_value_that_no_type_holds_is_told_with_its_type() -> None:
    with pytest.raises(CqError, match='column "a" of stream "t" is of values that no type holds all of: int'):
        sql("SELECT a FROM t", t=[{"a": 2**70}]).run(engine="reference")


def test_star_warns_in_python_of_columns_that_it_leaves_out() -> None:
    table = pa.table({"id": [1], "m": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64()))})
    with pytest.warns(UserWarning, match=r"\* leaves out columns of \"t\" that cq does not hold: m map<string, int64"):
        assert sql("SELECT * FROM t", t=table).run(engine="reference").to_pylist() == [{"id": 1}]
    with pytest.warns(UserWarning, match="a of values of several types: int, str"):
        assert sql("SELECT * FROM t", t=ROWS).run(engine="reference").to_pylist() == [{"b": 2}, {"b": 3}, {"b": 4}]
