"""What `cq schema` prints runs, and has the delay that the rows need: whatever the file, and its way to write times."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import cq, ref

from cq.connectors.proposed_times import LOOK_TEXTS, PATTERNS

# [--a------c--)[--b--): in minutes; c comes 40 s behind b
TIMES = [datetime(2024, 1, 31, 10, 0, 15), datetime(2024, 1, 31, 10, 1, 20), datetime(2024, 1, 31, 10, 0, 40)]
COUNTED = "window_start,n\n2024-01-31 10:00:00,2\n2024-01-31 10:01:00,1\n"

FORMS: dict[str, Callable[[datetime], Any]] = {
    "iso": lambda t: t.isoformat(sep=" "),
    "iso_t": lambda t: t.isoformat(),
    "month_first": lambda t: t.strftime("%m/%d/%Y %H:%M:%S"),
    "day_first": lambda t: t.strftime("%d.%m.%Y %H:%M:%S"),
    "slashes": lambda t: t.strftime("%Y/%m/%d %H:%M:%S.%f"),
    "american": lambda t: t.strftime("%b %-d, %Y %-I:%M:%S %p"),
    "log": lambda t: t.strftime("%d/%b/%Y:%H:%M:%S"),
    "seconds": lambda t: int(t.replace(tzinfo=UTC).timestamp()),
    "millis": lambda t: int(t.replace(tzinfo=UTC).timestamp() * 1000),
    "micros": lambda t: int(t.replace(tzinfo=UTC).timestamp() * 1_000_000),
}


def csv(values: list[Any]) -> bytes:
    written = ["" if v is None else f'"{v}"' if isinstance(v, str) else str(v) for v in values]
    return "".join(["id,ts\n", *(f"{i},{v}\n" for i, v in enumerate(written))]).encode()


def lines(values: list[Any]) -> bytes:
    return "".join(json.dumps({"id": i, "ts": v}) + "\n" for i, v in enumerate(values)).encode()


def parquet(values: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": list(range(len(values))), "ts": values}), sink)
    return bytes(sink.getvalue())


FILES: dict[str, Callable[[list[Any]], bytes]] = {
    "x.csv": csv,
    "x.csv.gz": lambda values: gzip.compress(csv(values)),
    "x.jsonl": lines,
    "x.jsonl.gz": lambda values: gzip.compress(lines(values)),
    "x.parquet": parquet,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("file", FILES)
def test_what_schema_prints_of_a_file_runs_and_no_row_is_late(
    capfd: pytest.CaptureFixture[str], file: str, form: str
) -> None:
    Path(file).write_bytes(FILES[file]([FORMS[form](t) for t in TIMES]))
    code, printed, err = cq(capfd, "schema", file, "--name", "x")
    assert code == 0, err
    assert " - INTERVAL '40' SECOND  -- in all 3 rows some are as late as 40 s\n" in printed
    time = printed.partition("WATERMARK FOR ")[2].split()[0]
    window = f"SELECT window_start, COUNT(*) AS n FROM TUMBLE(x, {time}, INTERVAL '1' MINUTE) GROUP BY window_start"
    assert ref(capfd, "-q", f"{printed}{window}") == (0, COUNTED, "")


@pytest.mark.parametrize("form", FORMS)
def test_declaration_that_an_error_shows_runs_as_it_is(capfd: pytest.CaptureFixture[str], form: str) -> None:
    Path("x.csv").write_bytes(csv([FORMS[form](t) for t in TIMES]))
    query = "SELECT window_start, COUNT(*) AS n FROM TUMBLE({}, INTERVAL '1' MINUTE) GROUP BY window_start"
    code, out, err = ref(capfd, "-q", query.format("'x.csv', ts"))
    if code:  # a TIMESTAMP needs no declaration
        way = next(line for line in err.splitlines() if "CREATE STREAM x " in line).removeprefix("  = help: ")
        declaration, _, then = way.partition("; then read FROM x by ")
        assert "the delay is that of all 3 rows: some are as late as 40 s" in err
        code, out, err = ref(capfd, "-q", f"{declaration}; {query.format(f'x, {then}')}")
    assert (code, out, err) == (0, COUNTED, "")


def test_rows_in_order_need_no_delay(capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"at": ["a", "b"], "day": [date(2024, 1, 1), date(2024, 1, 2)]}), "days.parquet")
    printed = cq(capfd, "schema", "days.parquet")[1]
    assert "  event_time AS CAST(day AS TIMESTAMP),\n  WATERMARK FOR event_time  -- all 2 rows are in order" in printed
    err = ref(capfd, "SELECT COUNT(*) FROM TUMBLE('days.parquet', day, INTERVAL '1' DAY) GROUP BY window_start")[2]
    assert "(event_time AS CAST(day AS TIMESTAMP), WATERMARK FOR event_time) WITH" in err
    assert "all 2 rows are in this order" in err


def test_times_of_which_later_rows_tell_the_form_are_read_by_it(capfd: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("ts\n01/02/2024\n13/02/2024\n")
    assert "TO_TIMESTAMP(ts, 'd/M/yyyy')" in cq(capfd, "schema", "x.csv")[1]
    Path("x.csv").write_text("ts\n01/02/2024\n02/13/2024\n")
    assert "TO_TIMESTAMP(ts, 'M/d/yyyy')" in cq(capfd, "schema", "x.csv")[1]


@pytest.mark.parametrize(
    ("sign", "clock", "letters"), [("/", " 10:00", " H:mm"), ("-", "", ""), ("/", " 9:30 AM", " h:mm a")]
)
def test_days_that_may_be_months_are_said_to_be_read_as_days_of_january(
    capfd: pytest.CaptureFixture[str], sign: str, clock: str, letters: str
) -> None:
    rows = [f"{m:02}{sign}02{sign}2024{clock}\n" for m in (1, 2, 2)]
    Path("x.csv").write_text("ts\n" + "".join(rows))
    month, day = (f"{form.replace('/', sign)}{letters}" for form in ("M/d/yyyy", "d/M/yyyy"))
    printed = cq(capfd, "schema", "x.csv")[1]
    assert f"  -- {day} fits as well\n  at AS TO_TIMESTAMP(ts, '{month}'),\n" in printed
    query = "SELECT window_start FROM TUMBLE({}, INTERVAL '1' DAY) GROUP BY window_start"
    err = ref(capfd, "-q", query.format("'x.csv', ts"))[2]
    assert f"TO_TIMESTAMP(ts, '{month}')" in err and f"; the pattern '{day}' fits as well\n" in err
    for pattern, days in ((month, ("01-02", "02-02")), (day, ("02-01", "02-02"))):
        done = ref(capfd, "-q", f"{printed.replace(month, pattern)}{query.format('x, at')}")
        assert done == (0, "window_start\n" + "".join(f"2024-{d} 00:00:00\n" for d in days), "")
    Path("x.csv").write_text("ts\n" + "".join([*rows, f"12{sign}13{sign}2024{clock}\n"]))
    assert "fits as well" not in cq(capfd, "schema", "x.csv")[1]


def test_texts_and_numbers_that_are_no_times_are_taken_for_none(capfd: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("id,price,time,name\n1700000000,1704103200,7,x\n1700000001,1704103201,8,y\n")
    assert "WATERMARK" not in cq(capfd, "schema", "x.csv")[1]
    Path("odd.csv").write_text("ts\nn/a\n2024-01-01 10:00:00\n")
    assert "WATERMARK" not in cq(capfd, "schema", "odd.csv")[1]
    err = ref(capfd, "SELECT COUNT(*) FROM TUMBLE('odd.csv', ts, INTERVAL '1' DAY) GROUP BY window_start")[2]
    assert "cannot recognise the time format of ts; specify its pattern or unit" in err


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("form", ["iso", "day_first"])
def test_rows_without_a_time_are_left_out_and_that_is_said(
    capfd: pytest.CaptureFixture[str], file: str, form: str
) -> None:
    Path(file).write_bytes(FILES[file]([FORMS[form](TIMES[0]), None, FORMS[form](TIMES[1])]))
    printed = cq(capfd, "schema", file, "--name", "x")[1]
    time = printed.partition("WATERMARK FOR ")[2].split()[0]
    assert f"  -- rows without {time} are left out: 1 of all 3 rows\n" in printed and "on_error = 'skip'" in printed
    assert ref(capfd, "-q", f"{printed}SELECT id FROM x") == (0, "id\n0\n2\n", "")


def test_column_that_every_row_has_is_the_event_time_before_others(capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"gone": [None, TIMES[0]], "here": TIMES[:2]}), "x.parquet")
    printed = cq(capfd, "schema", "x.parquet")[1]
    assert "left out" not in printed and "WATERMARK FOR here  -- all 2 rows" in printed


def test_only_so_many_texts_are_looked_at_and_that_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    begin = datetime(2024, 1, 31)
    rows = [f"{begin + timedelta(seconds=n):%Y/%m/%d %H:%M:%S}\n" for n in range(LOOK_TEXTS)]
    Path("x.csv").write_text("ts\n" + "".join(rows) + rows[0])
    assert "WATERMARK FOR at  -- the first 100,000 rows are in order of at" in cq(capfd, "schema", "x.csv")[1]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_form_that_is_proposed_is_one_that_queries_may_read(
    capfd: pytest.CaptureFixture[str], pattern: str
) -> None:
    written = pattern.replace("'", "''")
    query = f"SELECT TO_TIMESTAMP(DATE_FORMAT(TIMESTAMP '2024-11-25 22:13:14', '{written}'), '{written}') IS NULL AS n"
    assert ref(capfd, "-q", query) == (0, "n\nfalse\n", "")
