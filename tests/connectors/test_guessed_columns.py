"""Columns of CSV nobody declared: what numbers are numbers, and what is said when a later row is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import sql
from cq.connectors import infer
from cq.connectors.csv.blocks import BLOCK_BYTES
from cq.errors import DataError

WIDE = "w" * 100  # a column of these fills the block that guesses look at
BEYOND = BLOCK_BYTES // len(WIDE)  # with so many rows


def guessed(directory: Path, *values: str) -> str:
    path = directory / "t.csv"
    path.write_text("x,y\n" + "".join(f"{v},1\n" for v in values))
    return str(infer({"path": str(path)})[0].type)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "-2", "0", ""], "BIGINT"),
        (["9223372036854775807", "-9223372036854775808"], "BIGINT"),
        (["9223372036854775808", "1"], "VARCHAR"),  # beyond: as a DOUBLE it would be equal to its neighbours
        (["12345678901234567890", "", "-5"], "VARCHAR"),
        (["00501", "10001"], "VARCHAR"),
        (["-007", "1"], "VARCHAR"),
        (["+4912345", "+4912346"], "VARCHAR"),
        (["0x1F", "2"], "VARCHAR"),
        (["0X1f", ""], "VARCHAR"),
        (["00501", "1.5"], "VARCHAR"),
        (["0.5", "-0.25", "0", "1e3"], "DOUBLE"),
        (["12345678901234567890", "1.5"], "DOUBLE"),
        (["0", "00"], "VARCHAR"),
        (["", ""], "VARCHAR"),
    ],
)
def test_numbers_that_would_change_stay_text(tmp_path: Path, values: list[str], type_: str) -> None:
    assert guessed(tmp_path, *values) == type_


def test_ids_beyond_bigint_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text("id,x\n12345678901234567891,1\n12345678901234567892,1\n")
    rows = sql("SELECT id, COUNT(*) AS n FROM t GROUP BY id", t=str(path)).run(engine="reference")["result"].to_pylist()
    assert rows == [{"id": "12345678901234567891", "n": 1}, {"id": "12345678901234567892", "n": 1}]


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_row_that_contradicts_a_guess_is_told_with_the_declaration_to_write(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\n" + f"1,2,{WIDE}\n" * BEYOND + "abc,3,\n")
    with pytest.raises(DataError) as stopped:
        sql("SELECT SUM(id) AS n FROM t", t=str(path)).run(engine=engine)  # no other type will do
    error = stopped.value.first
    assert error.place == f"{path}:{BEYOND + 2}" and error.message == "cannot read 'abc' as BIGINT in column id"
    assert "inferred" in error.help[0] and error.help[0].endswith(
        f"CREATE STREAM t (id VARCHAR) WITH (path = '{path}'); then read FROM t, "
        "and write TRY_CAST(id AS BIGINT) where id is used"
    )
    declared = "CREATE STREAM t (id VARCHAR); SELECT COUNT(*) AS n FROM t"
    assert sql(declared, t=str(path)).run(engine=engine)["result"].to_pylist() == [{"n": BEYOND + 1}]


def test_row_that_contradicts_a_declaration_gets_no_such_advice(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id\nabc\n")
    with pytest.raises(DataError) as stopped:
        sql("CREATE STREAM t (id BIGINT); SELECT id FROM t", t=str(path)).run(engine="reference")
    assert stopped.value.first.help == ()


@pytest.mark.parametrize("late", ["00501", '"00501"'])
def test_zeros_that_come_after_the_guess_are_not_lost(tmp_path: Path, late: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("zip,x,at,y\n" + f"10001,0.5,2024-01-01,{WIDE}\n" * BEYOND + f"{late},1,2024-01-01,\n")
    with pytest.raises(DataError) as stopped:
        sql("SELECT SUM(zip) AS s FROM t", t=str(path)).run(engine="reference")
    error = stopped.value.first
    assert error.place == f"{path}:{BEYOND + 2}" and "'00501' as BIGINT in column zip: as a number" in error.message
    assert "CREATE STREAM t (zip VARCHAR) WITH (path" in error.help[0]
    declared = "CREATE STREAM t (zip BIGINT); SELECT MIN(zip) AS least FROM t"
    assert sql(declared, t=str(path)).run(engine="reference")["result"].to_pylist() == [{"least": 501}]


def test_zeros_of_a_text_column_say_nothing_about_the_numbers_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("zip,x,y\n" + f"00501,7,{WIDE}\n" * 2 * BEYOND)
    result = sql("SELECT MIN(zip) AS z, SUM(x) AS s FROM t", t=str(path)).run(engine="reference")["result"]
    assert result.to_pylist() == [{"z": "00501", "s": 14 * BEYOND}]


@pytest.mark.parametrize(
    ("times", "type_"),
    [
        (["2024-01-01T00:00:00Z", "2024-01-01 02:00:00+02:00", "2023-12-31 19:00-0500"], "TIMESTAMP_LTZ"),
        (["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"], "TIMESTAMP"),
        (["2024-01-01T00:00:00Z", "2024-01-01"], "TIMESTAMP"),
        (["2024-01-01T00:00:00", "2024-01-01"], "TIMESTAMP"),
        (["2024-01-01T00:00:00Z", "soon"], "VARCHAR"),
    ],
)
def test_times_of_json_that_all_name_a_zone_are_instants(tmp_path: Path, times: list[str], type_: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"at": "{time}", "all": ["{time}"]}}\n' for time in times))
    assert [str(f.type) for f in infer({"path": str(path)})] == [type_, f"{type_} ARRAY"]
    if type_ != "VARCHAR":
        query = sql('SELECT UNIX_SECONDS(at) AS s, UNIX_SECONDS("all"[1]) AS e FROM t', t=str(path))
        for engine in ("reference", "native"):
            rows = query.run(engine=engine)["result"].to_pylist()
            assert rows == [{"s": 1_704_067_200, "e": 1_704_067_200}] * len(times)
