"""Views that double their rows: a warning when one row may become many, a refusal when it is sure to."""

from __future__ import annotations

import time

import pytest

from cq.compiler.passes import Compiled, compile
from cq.errors import CompileError
from cq.planner.binding.fan_out import MOST_COPIES, WARNED_COPIES, copies

STREAM = "CREATE STREAM t (x BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts) WITH (connector = 'memory');\n"
DOUBLED = "SELECT x, ts FROM {0} UNION ALL SELECT x, ts FROM {0}"
KEPT = "SELECT x, ts FROM {0} WHERE x > {1} UNION ALL SELECT x, ts FROM {0} WHERE x <= {1}"


def chain(depth: int, body: str, first: str = "SELECT x, ts FROM t") -> str:
    views = [f"CREATE VIEW v0 AS {first};"]
    views += [f"CREATE VIEW v{n} AS {body.format(f'v{n - 1}', n)};" for n in range(1, depth + 1)]
    return STREAM + "\n".join(views) + f"\nSELECT x FROM v{depth};"


def warned(compiled: Compiled) -> list[str]:
    return [d.message for d in compiled.findings() if d.code == "CQ0103" and "Spark" not in d.message]


def test_forty_doublings_are_refused_at_once() -> None:
    began = time.process_time()
    with pytest.raises(CompileError) as refused:
        compile(chain(40, DOUBLED))
    assert time.process_time() - began < 5
    (found,) = refused.value.diagnostics
    assert found.code == "CQ0103" and found.span.line == 22  # the twentieth doubling: 2^20 > a million
    assert found.message == "one row becomes 1,048,576 rows here, more than the limit of 1,000,000"
    assert "doubles its rows" in found.help[0]


def test_ten_doublings_are_warned_of_and_nine_are_not() -> None:
    assert 2**9 <= WARNED_COPIES < 2**10 < MOST_COPIES
    assert warned(compile(chain(10, DOUBLED))) == ["one row may become 1,024 rows here"]
    assert warned(compile(chain(9, DOUBLED))) == []


def test_rows_that_a_condition_sends_one_way_or_the_other_are_not_refused() -> None:
    """Thirty splits, each row goes one way: perhaps not one copy is made. All walks of the plan end soon."""
    began = time.process_time()
    compiled = compile(chain(30, KEPT))
    assert warned(compiled) == ["one row may become 1,024 rows here"]
    compiled.for_workers(2).after("emit")
    assert time.process_time() - began < 20


def test_a_window_gives_a_row_for_a_group_and_doublings_before_it_count() -> None:
    grouped = (
        "SELECT window_time AS ts, MAX(x) AS x FROM TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '1' SECOND) "
        "GROUP BY window_start, window_end, window_time"
    )
    nine = chain(9, DOUBLED).rpartition("SELECT x FROM")[0]
    more = "\n".join(f"CREATE VIEW w{n} AS {DOUBLED.format(f'w{n - 1}')};" for n in range(1, 10))
    assert warned(compile(f"{nine}CREATE VIEW w0 AS {grouped.format('v9')};\n{more}\nSELECT x FROM w9;")) == []
    ten = chain(10, DOUBLED).rpartition("SELECT x FROM")[0]
    assert len(warned(compile(f"{ten}{grouped.format('v10')};"))) == 1


def test_rows_of_several_streams_are_counted_apart() -> None:
    plan = compile(
        STREAM + STREAM.replace("STREAM t", "STREAM u") + "SELECT x FROM t UNION ALL SELECT x FROM u "
        "UNION ALL SELECT x FROM u;"
    ).plan
    found = copies(plan.nodes(), at_least=True)
    assert sorted(found[id(plan.outputs[0].node)].values()) == [1, 2]
