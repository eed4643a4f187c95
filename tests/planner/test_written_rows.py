"""Where two accesses name one row, the last that was read holds it: who writes a row has read it last."""

from __future__ import annotations

import pytest
from planner_fixture import plan_of

from cq.lang.expressions import Literal
from cq.lang.types import BIGINT, BOOLEAN
from cq.planner.operators import Trigger
from cq.planner.plan.transactions import Choose, Delete, Each, Insert, Read, Step, Update, every, written_unread
from cq.planner.plan.verify import verify
from cq.records import replace

ONE, TRUE = Literal(BIGINT, False, 1), Literal(BOOLEAN, False, True)


def write(access: int) -> Update:
    return Update(access, (1,), (ONE,))


@pytest.mark.parametrize(
    ("steps", "unread"),
    [
        ((Read(0), write(0), Read(1), Read(0), write(0)), 0),
        ((Read(0), Read(2), write(0)), 0),  # 2 is of another table
        ((Read(0), Read(1), write(0)), 1),
        ((Read(0), Read(1), Delete(0), Insert(1, (ONE,))), 1),
        ((Read(0), Insert(0, (ONE,), (Read(1), write(0)))), 1),
        ((Read(0), Insert(0, (ONE,), (Read(1), Read(0), write(0))), write(0)), 0),
        ((Read(0), Choose(TRUE, (Read(1),), (write(0),)), write(0)), 1),
        ((Read(0), Each(3, (ONE,), (Read(1), write(1))), write(0)), 1),
        ((write(0),), 1),
    ],
)
def test_a_write_behind_the_read_of_another_row_is_found(steps: tuple[Step, ...], unread: int) -> None:
    assert len(written_unread(steps, lambda access: access // 2)) == unread


def test_a_plan_that_would_lose_a_write_is_refused() -> None:
    plan = plan_of(
        "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');"
        "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT);"
        "CREATE TRIGGER g AFTER INSERT ON s INSERT INTO t VALUES (new.k, 1)"
        " ON CONFLICT (k) DO UPDATE SET n = (SELECT n FROM t WHERE k = 1) + 1; SELECT * FROM g;"
    )
    trigger = next(n for n in verify(plan).nodes() if isinstance(n, Trigger))
    (program,) = trigger.programs
    insert = next(s for s in every(program.steps) if isinstance(s, Insert))
    assert insert.conflict is not None
    without = replace(insert, conflict=tuple(s for s in insert.conflict if s != Read(insert.access)))
    steps = tuple(without if s == insert else s for s in program.steps)
    with pytest.raises(AssertionError, match="another access may hold"):
        replace(trigger, programs=(replace(program, steps=steps),)).check()
