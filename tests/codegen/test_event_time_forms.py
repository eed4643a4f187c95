"""Rows whose event time is NULL are dropped, so a computed one is NOT NULL, even of an expression that may be NULL."""

from __future__ import annotations

import pytest

from cq.compiler.passes import compile
from cq.errors import CompileError

WINDOW = "TUMBLE(t, at, INTERVAL '1' SECOND)"
GROUPED = f"SELECT window_end, COUNT(*) AS n FROM {WINDOW} GROUP BY window_end;"
WRITTEN = [
    "TRY_CAST(x AS TIMESTAMP)",
    "CASE WHEN x = 'a' THEN TIMESTAMP '2024-01-01' END",
    "IF(x = 'a', ts, NULL)",
    "COALESCE(TRY_CAST(x AS TIMESTAMP), ts)",
    "NULLIF(ts, TIMESTAMP '2024-01-01')",
    "CASE WHEN x = 'a' THEN TRY_CAST(x AS TIMESTAMP) ELSE ts END",
]


@pytest.mark.parametrize("at", WRITTEN)
@pytest.mark.parametrize("rest", ["SELECT x, at FROM t;", GROUPED])
def test_event_time_of_any_form_compiles_or_is_refused_with_a_way_out(at: str, rest: str) -> None:
    stream = f"CREATE STREAM t (x VARCHAR, ts TIMESTAMP, at AS {at}, WATERMARK FOR at) WITH (connector = 'memory');\n"
    compiled = compile(stream + rest)
    try:
        compiled.for_workers(2).after("emit")
    except CompileError as refused:
        assert refused.code == "CQ0502" and refused.first.span.line == 1 and refused.first.help
