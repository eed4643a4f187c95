"""The laws of a transaction's steps: whoever breaks one is told which, when the plan is verified."""

from __future__ import annotations

import pytest
from planner_fixture import plan_of

from cq.lang.expressions import Column, Expr, Literal
from cq.lang.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, array
from cq.planner.operators import Trigger
from cq.planner.plan.transactions import (
    Access,
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    Local,
    Read,
    Reject,
    Set,
    Step,
    Update,
)
from cq.planner.plan.verify import verify
from cq.records import replace

TEXT = """CREATE STREAM s (k BIGINT, ks BIGINT[], ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT);
CREATE TRIGGER g AFTER INSERT ON s BEGIN UPDATE t SET n = 1 WHERE k = new.k; SELECT new.ts, new.k; END;
SELECT k FROM g;"""
ONE, SMALL, TRUE = Literal(BIGINT, False, 1), Literal(INTEGER, False, 1), Literal(BOOLEAN, False, True)
TEXT_VALUE = Literal(VARCHAR, False, "x")
KEY, KEYS = Column(BIGINT, True, 0, "k"), Column(array(BIGINT), True, 1, "ks")
# the frame: k, ks, ts; of access 0 found, k, n; of access 1 the same; the local
OTHER_N, LOCAL = Column(BIGINT, True, 8, "n"), Column(BIGINT, True, 9)
ACCESSES = (Access(0, (KEY,)), Access(0, (ONE,)), Local(BIGINT))


def trigger() -> Trigger:
    return next(n for n in verify(plan_of(TEXT)).nodes() if isinstance(n, Trigger))


def with_steps(*steps: Step, when: Expr | None = None, accesses: tuple[Access | Local, ...] = ACCESSES) -> Trigger:
    """The trigger with these steps instead, over two rows of its table and a local."""
    node = trigger()
    (program,) = node.programs
    return replace(node, accesses=accesses, programs=(replace(program, steps=steps, when=when),))


WRITE = Update(0, (1,), (ONE,))


@pytest.mark.parametrize(
    "steps",
    [
        (Read(0), WRITE),
        (Choose(TRUE, (Read(1),), (Read(1),)), Set(2, OTHER_N)),
        (Read(0), Insert(0, (KEY, ONE), (WRITE,))),
        (Each(2, (KEYS,), (Read(1), Set(2, OTHER_N))),),
        (Set(2, LOCAL), Read(0), Delete(0, TRUE), Reject(TEXT_VALUE)),
    ],
)
def test_steps_that_fit_are_accepted(steps: tuple[Step, ...]) -> None:
    with_steps(*steps).check()


UNREAD = "uses row {} of t, which is not read on every way"
BROKEN: list[tuple[tuple[Step, ...], str]] = [
    ((Read(0), Update(0, (1,), (ONE, ONE))), "g: an update of row 0 of t has 2 values for 1 columns"),
    ((Read(0), Update(0, (1,), (SMALL,))), "g: an update of row 0 of t gives INTEGER to n, which is BIGINT"),
    ((Read(0), Update(0, (2,), (ONE,))), "g: an update of row 0 of t sets a missing column"),
    ((Read(0), Update(0, (1,), (ONE,), ONE)), "g: the condition of an update is BIGINT"),
    ((Read(0), Insert(0, (KEY,))), "g: an insert of row 0 of t has 1 values for 2 columns"),
    ((Read(0), Insert(0, (KEY, TEXT_VALUE))), "g: an insert of row 0 of t gives VARCHAR to n, which is BIGINT"),
    ((Emit((KEY,)),), "g: an emit has 1 values for 2 columns"),
    ((Emit((KEY, KEY)),), "g: an emit gives BIGINT to ts, which is TIMESTAMP"),
    ((Set(0, ONE),), "g: a set of 0, which is no local"),
    ((Set(3, ONE),), "g: a set of 3, which is no local"),
    ((Set(2, SMALL),), "g: a set gives INTEGER to a local of BIGINT"),
    ((Each(2, (KEYS, KEYS), ()),), "g: a loop of 3, which is no local"),
    ((Each(2, (KEY,), ()),), "g: a loop gives None to a local of BIGINT"),
    ((Read(2),), "g: a read of 2, which is no access"),
    ((Delete(2),), "g: a delete of 2, which is no access"),
    ((Reject(ONE),), "g: a rejection gives BIGINT as its reason"),
    ((Choose(ONE, ()),), "g: the condition of a choice is BIGINT"),
    ((WRITE,), f"g: an update {UNREAD.format(0)}"),
    ((Delete(0),), f"g: a delete {UNREAD.format(0)}"),
    ((Set(2, OTHER_N),), f"g: a set {UNREAD.format(1)}"),
    ((Choose(TRUE, (Read(1),)), Set(2, OTHER_N)), f"g: a set {UNREAD.format(1)}"),
    ((Each(2, (KEYS,), (Read(1),)), Set(2, OTHER_N)), f"g: a set {UNREAD.format(1)}"),
    ((Read(0), Insert(0, (KEY, ONE), (Read(1),)), Set(2, OTHER_N)), f"g: a set {UNREAD.format(1)}"),
]


@pytest.mark.parametrize(("steps", "law"), BROKEN, ids=[law for _, law in BROKEN])
def test_steps_that_break_a_law_are_told_which(steps: tuple[Step, ...], law: str) -> None:
    with pytest.raises(AssertionError) as broken:
        with_steps(*steps).check()
    assert str(broken.value) == law


@pytest.mark.parametrize(
    ("access", "law"),
    [
        (Access(1, (KEY,)), "an access to a missing table"),
        (Access(0, (KEY, KEY)), "a key of t has 2 values for 1 columns"),
        (Access(0, (SMALL,)), "a key of t gives INTEGER to k, which is BIGINT"),
    ],
)
def test_accesses_that_fit_no_table_are_told(access: Access, law: str) -> None:
    with pytest.raises(AssertionError) as broken:
        with_steps(accesses=(access, *ACCESSES[1:])).check()
    assert str(broken.value) == law


def test_a_key_of_a_row_that_is_not_read_is_told() -> None:
    with pytest.raises(AssertionError, match=r"^g: a read uses row 1 of t, which is not read on every way$"):
        with_steps(Read(0), accesses=(Access(0, (OTHER_N,)), *ACCESSES[1:])).check()


@pytest.mark.parametrize(
    ("when", "law"),
    [(Column(BOOLEAN, False, 3), "WHEN of g sees more than the event"), (ONE, "the condition of WHEN is BIGINT")],
)
def test_a_when_that_is_none_is_told(when: Expr, law: str) -> None:
    with pytest.raises(AssertionError) as broken:
        with_steps(when=when).check()
    assert str(broken.value) == law
