"""Short forms that the tables of examples do not show: buckets, templates of TO_CHAR, parts of a URL."""

from __future__ import annotations

import pytest
from examples import bound

from cq.errors import CqError
from cq.reference.evaluate import evaluate

URL = "'https://u:p@ex.com:80/a/b.html?k=1&q=x%20y&q=2#top?z=3'"


@pytest.mark.parametrize(
    ("short", "value"),
    [
        ("time_bucket(INTERVAL '5' MINUTE, TIMESTAMP '2024-01-31 10:03:59')", "TIMESTAMP '2024-01-31 10:00:00'"),
        ("time_bucket(INTERVAL '7' DAY, DATE '2024-01-31')", "TIMESTAMP '2024-01-29 00:00:00'"),
        ("time_bucket(INTERVAL '7' DAY, DATE '1969-12-31')", "TIMESTAMP '1969-12-29 00:00:00'"),
        (
            "date_bin(INTERVAL '15' MINUTE, TIMESTAMP '2024-01-31 10:03:00', TIMESTAMP '2030-01-01 00:05:00')",
            "TIMESTAMP '2024-01-31 09:50:00'",
        ),
        ("add_months(DATE '2024-01-31', 1)", "DATE '2024-02-29'"),
        ("add_months(TIMESTAMP '2024-03-31 10:00:00', -1)", "TIMESTAMP '2024-02-29 10:00:00'"),
        ("to_timestamp(1700000000)", "TIMESTAMP '2023-11-14 22:13:20'"),
        ("to_timestamp_ltz(1700000000000, 3)", "to_timestamp_ltz(1700000000, 0)"),
        ("to_char(TIMESTAMP '2024-01-31 13:04:05.6', 'Dy, FMDD Mon YYYY \"at\" HH12:MI:SS.MS PM')",
         "'Wed, 31 Jan 2024 at 01:04:05.600 PM'"),
        ("to_char(DATE '2024-01-31', 'yyyy-MM-dd')", "'2024-01-31'"),
        ("to_date('31/01/2024', 'DD/MM/YYYY')", "DATE '2024-01-31'"),
        (f"parse_url({URL}, 'PROTOCOL')", "'https'"),
        (f"parse_url({URL}, 'HOST')", "'ex.com'"),
        (f"parse_url({URL}, 'AUTHORITY')", "'u:p@ex.com:80'"),
        (f"parse_url({URL}, 'USERINFO')", "'u:p'"),
        (f"parse_url({URL}, 'PATH')", "'/a/b.html'"),
        (f"parse_url({URL}, 'FILE')", "'/a/b.html?k=1&q=x%20y&q=2'"),
        (f"parse_url({URL}, 'QUERY')", "'k=1&q=x%20y&q=2'"),
        (f"parse_url({URL}, 'REF')", "'top?z=3'"),
        (f"parse_url({URL}, 'QUERY', 'q')", "'x%20y'"),
        (f"parse_url({URL}, 'QUERY', 'z')", "CAST(NULL AS VARCHAR)"),
        ("parse_url('no url', 'HOST')", "CAST(NULL AS VARCHAR)"),
    ],
)  # fmt: skip
def test_a_short_form_is_what_it_stands_for(short: str, value: str) -> None:
    got, wanted = bound(short, value)
    assert (evaluate(got), got.type) == (evaluate(wanted), wanted.type)


@pytest.mark.parametrize(
    ("call", "message", "way_out"),
    [
        ("time_bucket(INTERVAL '1' MONTH, TIMESTAMP '2024-01-31 10:03:00')", "constant width of days or less",
         "DATE_TRUNC('month', TIMESTAMP '2024-01-31 10:03:00')"),
        ("to_char(DATE '2024-01-31', 'yyyy-mm-dd')", "mm is the minute", "to_char(DATE '2024-01-31', 'YYYY-MM-DD')"),
        ("to_timestamp_ltz(1, 6)", "counts seconds, 0, or milliseconds, 3", "to_timestamp_ltz(1, 3)"),
        ("parse_url('x', 'DOMAIN')", "takes the name of a part", "parse_url('x', 'HOST')"),
        ("parse_url('x', 'HOST', 'a')", "takes the name of a part", "parse_url('x', 'QUERY', 'a')"),
    ],
)  # fmt: skip
def test_what_is_refused_names_a_way_out_that_works(call: str, message: str, way_out: str) -> None:
    with pytest.raises(CqError, match=message):
        bound(call)
    bound(way_out)
