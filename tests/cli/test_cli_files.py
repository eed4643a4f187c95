"""The command line and files: what the closing line counts, what stays of a run that ends early, what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import cq, ref

from cq import sql
from cq.errors import CqError


def test_blank_lines_are_counted_in_the_summary(capfd: pytest.CaptureFixture[str]) -> None:
    Path("gaps.csv").write_text("id,x\n1,2\n\n3,4\n\n")
    query = "CREATE STREAM a (id INT, x INT) WITH (path = 'gaps.csv'); SELECT id FROM a"
    code, out, err = ref(capfd, "-c", query)
    assert (code, out) == (0, "id\n1\n3\n") and " · wrote 2 rows · 2 blank lines · " in err


def test_check_does_not_say_ok_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    wide = ", ".join(f"id + {n} AS c{n}" for n in range(500))
    code, out, err = cq(capfd, "check", "-c", f"CREATE STREAM s (id BIGINT); SELECT {wide} FROM s", "s=bids.csv")
    assert code == 1 and "error[CQ" in err and "ok" not in out
    warned = "CREATE STREAM s (id BIGINT); SELECT id FROM s WHERE id = NULL"
    code, out, err = cq(capfd, "check", "-c", warned, "s=bids.csv")
    assert code == 0 and "warning[CQ" in err and out.startswith("ok: ")
    code, out, _ = cq(capfd, "check", "--strict", "-c", warned, "s=bids.csv")
    assert code == 1 and "ok" not in out


@pytest.mark.parametrize(("value", "rows"), [("00501", "x\n1\n"), ("+49", "x\n3\n"), ("0x1F", "x\n")])
def test_parameter_with_digits_that_are_no_number_is_text(
    capfd: pytest.CaptureFixture[str], value: str, rows: str
) -> None:
    Path("z.csv").write_text("zip,x\n00501,1\n501,2\n+49,3\n")
    query = "CREATE STREAM z (zip VARCHAR, x INT); SELECT x FROM z WHERE zip = :p"
    assert ref(capfd, "-c", query, "z=z.csv", "--var", f"p={value}")[:2] == (0, rows)


def test_missing_input_is_not_guessed_to_be_an_output(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bids_out.csv").write_text("id\n")
    query = "CREATE STREAM b (id BIGINT) WITH (path = 'bids_ou.csv'); SELECT id FROM b"
    code, _, err = ref(capfd, "-c", query, "-o", "bids_out.csv")
    assert code == 2 and 'did you mean "bids.csv"?' in err
    code, _, err = ref(capfd, "-c", query, "-o", "other.csv")
    assert code == 2 and 'did you mean "bids_out.csv"?' in err


def test_text_for_a_time_is_told_how_it_becomes_one() -> None:
    rows = [{"id": 1, "ts": "2024-01-01 10:00:00"}]
    with pytest.raises(CqError) as refused:
        sql("CREATE STREAM t (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts); SELECT id FROM t", t=rows).run()
    assert "ts VARCHAR, ts_value AS CAST(ts AS TIMESTAMP)" in refused.value.first.help[0]
    computed = "CREATE STREAM t (id BIGINT, ts VARCHAR, ts_value AS CAST(ts AS TIMESTAMP), WATERMARK FOR ts_value); "
    result = sql(computed + "SELECT ts_value FROM t", t=rows).run(engine="reference")["result"]
    assert str(result.to_pylist()[0]["ts_value"]) == "2024-01-01 10:00:00"


def test_name_that_was_meant_is_the_path_to_it(capfd: pytest.CaptureFixture[str]) -> None:
    Path("mix").mkdir()
    Path("mix/1.csv").write_text("a\n1\n")
    _, _, err = ref(capfd, "-c", "SELECT * FROM 'mix/11.csv'")
    assert 'did you mean "mix/1.csv"?' in err
    Path("mix/q.cq").write_text("SELECT 1 AS one")
    assert 'did you mean "mix/q.cq"?' in ref(capfd, "mix/qq.cq")[2]


def test_directory_of_partitions_is_told_its_pattern(capfd: pytest.CaptureFixture[str]) -> None:
    for key in ("b", "a"):
        Path(f"hive/k={key}").mkdir(parents=True)
        Path(f"hive/k={key}/part.csv").write_text("v\n1\n")
    _, _, err = ref(capfd, "-c", "SELECT * FROM 'hive/'")
    assert "name its files: hive/**/*.csv" in err
    assert ref(capfd, "-q", "-c", "SELECT * FROM 'hive/**/*.csv'")[:2] == (0, "v\n1\n1\n")


def test_column_without_a_name_is_left_out_of_a_declaration(capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table([[1], [2]], names=["a", ""]), "names.parquet")
    code, out, err = cq(capfd, "schema", "names.parquet")
    assert (code, err) == (0, "") and "-- left out: a column without a name, BIGINT" in out
    assert ref(capfd, "-q", "-c", out + "SELECT * FROM names")[:2] == (0, "a\n1\n")
