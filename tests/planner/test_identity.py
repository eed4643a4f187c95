"""What an operator is does not depend on names, on the layout of columns, or on what else the query does."""

from __future__ import annotations

import pytest
from planner_fixture import plan_of

from cq.planner.plan.logical import LogicalPlan
from cq.planner.rewriting.rewrite import rewrite

TUMBLE = "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
COUNTED = f"SELECT auction, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end, auction;"


def state_of(plan: LogicalPlan) -> list[str]:
    """The identities of the operators that keep state."""
    return [n.identity for n in plan.nodes() if n.keeps_state]


@pytest.mark.parametrize(
    "same",
    [
        f"-- again\nselect AUCTION,\n  count(*) as N\nfrom {TUMBLE} group by 1, window_start;",
        f"SELECT COUNT(*) AS m, auction AS a FROM {TUMBLE} GROUP BY window_end, auction;",
        "CREATE VIEW v AS SELECT price, ts AS at, auction AS a FROM bid; SELECT a, COUNT(*) AS n "
        "FROM TUMBLE(TABLE v, DESCRIPTOR(at), INTERVAL '1' MINUTE) GROUP BY window_end, a;",
        f"SELECT price FROM bid WHERE price > 1; {COUNTED}",
    ],
)
def test_names_views_and_other_outputs_change_no_identity(same: str) -> None:
    assert state_of(plan_of(same)) == state_of(plan_of(COUNTED))


@pytest.mark.parametrize(
    "other",
    [
        COUNTED.replace("'1' MINUTE", "'2' MINUTE"),
        COUNTED.replace("auction", "bidder"),
        COUNTED.replace("COUNT(*)", "COUNT(price)"),
        COUNTED.replace("GROUP BY", "WHERE price > 1 GROUP BY"),
        COUNTED.replace("COUNT(*)", "COUNT(*) FILTER (WHERE price > 1)"),
    ],
)
def test_what_is_computed_changes_the_identity(other: str) -> None:
    assert state_of(plan_of(other)) != state_of(plan_of(COUNTED))


def test_rewriting_keeps_the_identities_of_the_bound_plan() -> None:
    plan = plan_of(
        "CREATE VIEW v AS SELECT auction + 1 AS a, price, ts, LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS l "
        "FROM bid; SELECT a, COUNT(*) AS n FROM TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE) "
        "WHERE l > 1 GROUP BY window_end, a;"
    )
    assert state_of(rewrite(plan)) == state_of(plan) and all(state_of(plan))


def test_late_rows_are_others_than_all_rows() -> None:
    stream = "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (late = 'stream:tardy');"
    of_all, of_late = (state_of(plan_of(f"{stream} SELECT COUNT(*) AS n FROM {name};")) for name in ("s", "tardy"))
    assert not {*of_all} & {*of_late}


def test_operators_that_compute_the_same_are_told_apart() -> None:
    plan = plan_of(COUNTED + COUNTED.replace("AS n", "AS m"))
    first, second = state_of(plan)
    assert second == f"{first}#2"


def test_a_long_chain_of_columns_of_columns_stays_short() -> None:
    views = "CREATE VIEW v0 AS SELECT auction + auction AS a, ts FROM bid; " + "".join(
        f"CREATE VIEW v{n + 1} AS SELECT a + a AS a, ts FROM v{n}; " for n in range(40)
    )
    plan = plan_of(views + "SELECT LAG(a) OVER (ORDER BY ts) AS l FROM v12;")
    assert len(state_of(plan)[0]) == 24


TRIGGER = """CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT DEFAULT 0, m BIGINT DEFAULT 0, CHECK (n < 100));
CREATE TRIGGER t AFTER INSERT ON bid REFERENCING NEW ROW AS e FOR EACH ROW BEGIN ATOMIC
  IF e.bidder > 1 THEN UPDATE a SET n = 1 WHERE k = e.auction; UPDATE a SET m = 2 WHERE k = e.bidder; END IF;
  SELECT e.auction AS x;
END;
SELECT x FROM t;"""


def test_names_and_spelling_change_no_identity_of_a_trigger() -> None:
    same = (
        TRIGGER.replace("AS e", "AS event")
        .replace("e.", "event.")
        .replace("  IF", "\n IF  ")
        .replace("TRIGGER t", "TRIGGER u")
    )
    assert state_of(plan_of(same.replace("FROM t", "FROM u"))) == state_of(plan_of(TRIGGER))


@pytest.mark.parametrize(
    "change",
    [
        ("SET n = 1", "SET m = 1"),
        ("SET n = 1", "SET n = 3"),
        ("k = e.bidder", "k = e.auction"),
        ("; UPDATE a SET m", "; END IF; UPDATE a SET m", " END IF;\n  SELECT", "\n  SELECT"),
        ("; UPDATE a SET m", "; ELSE UPDATE a SET m"),
        ("n < 100", "n < 99"),
    ],
)
def test_what_a_trigger_does_changes_its_identity(change: tuple[str, ...]) -> None:
    other = TRIGGER
    for old, new in zip(change[::2], change[1::2], strict=True):
        assert old in other
        other = other.replace(old, new)
    assert state_of(plan_of(other)) != state_of(plan_of(TRIGGER))
