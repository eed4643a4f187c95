"""What the documentation once left open or told wrongly, as it was decided: docs/language.md says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import ref

import cq as api
from cq.planner.plan.registration import OPERATORS

LANGUAGE = Path(__file__).parents[2] / "docs" / "language.md"

BIDS = "CREATE STREAM b (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 'b.csv'{});"


@pytest.mark.parametrize("moment", ["00:01:00", "00:01:30"])
def test_temporal_look_up_finds_the_row_at_its_time_or_before(capfd: pytest.CaptureFixture[str], moment: str) -> None:
    with open("b.csv", "w") as file:
        file.write(f"k,v,ts\n1,5,2024-01-01 00:00:10\n1,7,2024-01-01 {moment}\n")
    view = (
        "CREATE VIEW m AS SELECT window_end, k, MAX(v) AS best"
        " FROM TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, k;"
    )
    look_up = "SELECT b.v, m.best FROM b LEFT JOIN m FOR SYSTEM_TIME AS OF b.ts ON m.k = b.k"
    # a row of the view has the time of its window's last microsecond: 00:00:59.999999
    assert ref(capfd, "-q", BIDS.format("") + view + look_up) == (0, "v,best\n5,\n7,5\n", "")


def test_null_for_an_event_time_is_an_unreadable_row(capfd: pytest.CaptureFixture[str]) -> None:
    with open("b.csv", "w") as file:
        file.write("k,v,ts\n1,5,2024-01-01 00:00:10\n2,6,\n3,7,2024-01-01 00:00:20\n")
    code, out, err = ref(capfd, BIDS.format("") + "SELECT k FROM b")
    assert (code, out) == (1, "k\n1\n") and "CQ0703" in err and "b.csv:3" in err
    code, out, err = ref(capfd, BIDS.format(", on_error = 'skip'") + "SELECT k FROM b")
    assert (code, out) == (0, "k\n1\n3\n") and "1 unreadable" in err


def test_bigint_has_exactly_the_digits_of_64_bits(capfd: pytest.CaptureFixture[str]) -> None:
    with open("b.csv", "w") as file:
        file.write("k,v,ts\n1,9223372036854775807,2024-01-01\n2,9223372036854775808,2024-01-01\n")
    code, out, err = ref(capfd, BIDS.format("") + "SELECT v FROM b")
    assert (code, out) == (1, "v\n9223372036854775807\n")
    assert "it is not between -9223372036854775808 and 9223372036854775807" in err
    digits = "v\n9223372036854775807\n9223372036854775808\n"  # nobody has declared them: they stay as they are
    assert ref(capfd, "-q", "SELECT v FROM 'b.csv'") == (0, digits, "")


def test_split_keeps_empty_pieces(capfd: pytest.CaptureFixture[str]) -> None:
    pieces = "SELECT w, n FROM (SELECT SPLIT({}, ',') AS ws) AS t, UNNEST(ws) WITH ORDINALITY AS u(w, n)"
    assert ref(capfd, "-q", pieces.format("'a,b,,c'")) == (0, 'w,n\na,1\nb,2\n"",3\nc,4\n', "")
    assert ref(capfd, "-q", pieces.format("''")) == (0, 'w,n\n"",1\n', "")


STREAMS = (
    "CREATE STREAM s (k BIGINT, x BIGINT, items BIGINT ARRAY, ts TIMESTAMP, WATERMARK FOR ts);"
    "CREATE STREAM r (k BIGINT, y BIGINT, ts TIMESTAMP, WATERMARK FOR ts);"
    "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);"
)
KEPT = re.findall(r"^\| \[(.+?)\]\(#.+?\) \| `(.+?)` \| (.+?) \| (.+?) \|$", LANGUAGE.read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(("construct", "query", "keeps", "spark"), KEPT, ids=[row[0] for row in KEPT])
def test_what_a_construct_keeps_and_its_form_on_spark_are_those_of_the_page(
    construct: str, query: str, keeps: str, spark: str
) -> None:
    asked = api.sql(STREAMS + query)
    kept = re.findall(r"keeps ([^·\n]*[^·\s])", asked.explain())
    assert "; ".join(kept) == keeps or (keeps == "nothing" and not kept), construct
    sql = " ".join(asked.explain("spark").split())
    assert all(form in sql for form in re.findall("`(.+?)`", spark)), (construct, sql)


def test_page_says_what_every_operator_keeps() -> None:
    drawn = "".join(api.sql(STREAMS + query).explain() for _, query, _, _ in KEPT)
    # forms of others, and what joins stages
    inner = {"assign_windows", "session_rows", "late_rows", "rows_of", "stage_input"}
    ours = {name for name, node in OPERATORS.items() if node.__module__.startswith("cq.")}  # tests register others
    assert ours - inner == set(re.findall(r"#\d+ (\w+)", drawn)), "give it a row in docs/language.md"
