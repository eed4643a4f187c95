"""Each rewrite rule: the tree it takes and the tree it gives (tests/golden/rules), and equal rows on both sides."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from planner_fixture import described
from reference_fixture import plan_of, stream

from cq.planner.operators import Filter, Over, Project, UnionAll, WindowAggregate
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.verify import verify, verify_same_results
from cq.planner.rewriting.rewrite import rewrite, without
from cq.planner.rewriting.rules import RULES, Phase, Rule, Uses
from cq.records import replace
from cq.reference.engine import ReferenceResult, run

S = stream("s", "k BIGINT, v BIGINT, x DOUBLE, w VARCHAR", delay=2) + stream("t", "k BIGINT, v BIGINT", delay=None)
PER_MIN = (
    "CREATE VIEW m AS SELECT window_start, window_end, k, COUNT(*) AS n, MAX(v) AS top, SUM(v) AS total "
    "FROM TUMBLE(s, ts, INTERVAL '3' SECOND) GROUP BY window_start, window_end, k;\n"
)

# rule -> a query it has something to do in
TAKEN = {
    "constant_folding": "SELECT v + 2 * 3 AS a, CASE WHEN 1 = 2 THEN v ELSE 0 END AS b FROM s WHERE TRUE AND v > 1 + 1",
    "true_filter": "SELECT v FROM s WHERE TRUE;",
    "filter_over_filter": "SELECT v FROM (SELECT * FROM s WHERE k IS NOT NULL) AS a WHERE v < 5;",
    "filter_below_project": "SELECT a FROM (SELECT k AS a, x * 2 AS b FROM s) AS q WHERE b > 4 AND a < 3;",
    "filter_below_union": "SELECT v FROM (SELECT k, v FROM s UNION ALL SELECT k, v FROM t) AS u WHERE k = 1;",
    "filter_below_join": "SELECT s.v, t.v AS w FROM s JOIN t ON s.k = t.k WHERE s.v > 1 AND s.v % 2 = 1 "
    "AND s.w LIKE 'a%' AND t.v < 5 AND s.v < t.v;",
    "residual_below_join": "SELECT s.v, t.v AS w FROM s JOIN t ON s.k = t.k AND s.v > 1 AND t.v < 5 AND s.v < t.v;",
    "filter_below_over": "SELECT k, COUNT(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM s QUALIFY k > 1;",
    "filter_below_window": PER_MIN + "SELECT window_end, k, MAX(n) AS n FROM m GROUP BY window_end, k HAVING k = 2;",
    "project_over_project": "SELECT b FROM (SELECT k AS a, x + 1 AS b FROM s) AS q;",
    "unnest_below_project": "SELECT k, e FROM (SELECT k, SPLIT(w, ' ') AS c FROM s) AS q, UNNEST(c) AS u(e);",
    "limit_into_sort": "SELECT k, v FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) < 3 AND k > 1;",
    "distinct_into_groups": "SELECT COUNT(DISTINCT x) AS n FROM s WHERE k IS NOT NULL;",
    "forget_partitions": PER_MIN + "SELECT DISTINCT window_end, n FROM m;",
    "prune": PER_MIN + "SELECT window_end, n FROM m;",
    "share": "SELECT k, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '3' SECOND) GROUP BY window_end, k;"
    "SELECT k AS key, COUNT(*) AS c FROM TUMBLE(s, ts, INTERVAL '3' SECOND) GROUP BY window_end, k HAVING k > 1;",
}

# rule -> queries that look like it and must be left alone, with the condition that forbids it
REFUSED = {
    "constant_folding": ["SELECT 1 / 0 AS a FROM s;"],
    "unnest_below_project": [
        # for each element anew it would cost more, and a row without elements would be spared its failure
        "SELECT a, e FROM (SELECT k / v AS a, SPLIT(w, ' ') AS c FROM s) AS q, UNNEST(c) AS u(e);",
    ],
    "filter_over_filter": ["SELECT v FROM (SELECT * FROM s WHERE v > 1) AS a WHERE k / v > 1;"],
    "filter_below_project": ["SELECT a FROM (SELECT k / v AS a, v AS b FROM s) AS q WHERE b <> 0;"],
    "filter_below_union": [
        "SELECT v FROM (SELECT k, v FROM s UNION ALL SELECT k, v FROM t) AS u WHERE k / v = 1;",
    ],
    "filter_below_join": [
        # the left row would leave beside NULLs, which WHERE drops
        "SELECT s.v FROM s LEFT JOIN t ON s.k = t.k WHERE t.v IS DISTINCT FROM 2;",
        "SELECT s.v FROM s FULL JOIN t ON s.k = t.k WHERE s.v IS DISTINCT FROM 2;",
        # a condition, a key or a residual that can fail meets the rows it met before
        "SELECT s.v FROM s JOIN t ON s.k = t.k WHERE 1 / s.v > 0;",
        "SELECT s.v FROM s JOIN t ON s.k = t.k WHERE s.v / -1 > 0;",
        "SELECT s.v FROM s JOIN t ON s.k = t.k WHERE s.w LIKE s.w;",
        "SELECT s.v FROM s JOIN t ON s.k = t.k WHERE s.w LIKE 'a!' ESCAPE '!';",
        "SELECT s.v FROM s JOIN t ON 6 / s.v = t.k WHERE t.v > 1;",
        "SELECT s.v FROM s JOIN t ON s.k = t.k AND s.v / t.v > 0 WHERE t.v > 1;",
    ],
    "residual_below_join": [
        # the left row leaves beside NULLs
        "SELECT s.v FROM s LEFT JOIN t ON s.k = t.k AND s.v > 1;",
        "SELECT s.v FROM s FULL JOIN t ON s.k = t.k AND t.v > 1;",
        # it fails for pairs alone
        "SELECT s.v FROM s JOIN t ON s.k = t.k AND 6 / s.v > 1;",
    ],
    "filter_below_over": [
        # ordered by time: late rows of every partition are counted
        "SELECT k, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS n FROM s QUALIFY k > 1;",
        # the sum of a dropped partition may not be spared its overflow
        "SELECT k, SUM(v) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM s QUALIFY k > 1;",
        # 0.0 and -0.0 are one partition, of which the condition would drop a part
        "SELECT x, COUNT(*) OVER (PARTITION BY x ROWS UNBOUNDED PRECEDING) AS n FROM s "
        "QUALIFY CAST(x AS VARCHAR) LIKE '-0%';",
        # not a partition column
        "SELECT k, COUNT(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM s QUALIFY v > 1;",
        # below OVER its error would name the group
        PER_MIN + "SELECT k, COUNT(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM m QUALIFY 10 / k > 1;",
    ],
    "filter_below_window": [
        # late rows of every group are counted
        "SELECT k, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '3' SECOND) GROUP BY window_end, k HAVING k = 2;",
        # 0.0 and -0.0 are one key
        "CREATE VIEW m AS SELECT window_start, window_end, x, MAX(v) AS n FROM TUMBLE(s, ts, INTERVAL '3' SECOND) "
        "GROUP BY window_start, window_end, x, k;"
        "SELECT window_end, x, MAX(n) AS n FROM m GROUP BY window_end, x HAVING CAST(x AS VARCHAR) = '0.0';",
        # not a key
        PER_MIN + "SELECT window_end, k, MAX(n) AS n FROM m GROUP BY window_end, k HAVING MAX(n) = 2;",
        # the sum of a dropped group may not be spared its overflow
        PER_MIN + "SELECT window_end, k, SUM(n) AS n FROM m GROUP BY window_end, k HAVING k = 2;",
    ],
    "limit_into_sort": [
        # peers of the last row have its rank
        "SELECT k, v FROM s QUALIFY RANK() OVER (PARTITION BY k ORDER BY v DESC) <= 2;",
        # the sum of a dropped row may not be spared its overflow
        "SELECT k, SUM(v) OVER (w ROWS UNBOUNDED PRECEDING) AS total FROM s QUALIFY ROW_NUMBER() OVER w <= 2 "
        "WINDOW w AS (PARTITION BY k ORDER BY v);",
        "SELECT k, v FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) <= 2 AND 1 / k > 0;",
        # from the third on
        "SELECT k, v FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) >= 2;",
    ],
    "distinct_into_groups": [
        "SELECT COUNT(DISTINCT v) AS n, COUNT(*) AS m FROM s;",
        "SELECT COUNT(DISTINCT v) AS n, COUNT(DISTINCT k) AS m FROM s;",
        "SELECT COUNT(DISTINCT v) FILTER (WHERE k > 1) AS n FROM s;",
        "SELECT k, COUNT(DISTINCT v) AS n FROM s GROUP BY k;",
        # the sum may overflow at a row
        "SELECT SUM(DISTINCT v) AS n FROM s;",
    ],
    "forget_partitions": [
        # a late row has a time that is over
        "SELECT DISTINCT ts, k FROM s;",
        # of one key there are rows at all times
        PER_MIN + "SELECT DISTINCT k, n FROM m;",
        # when NULL is over is not known
        "SELECT DISTINCT CASE WHEN k > 1 THEN window_end END AS w FROM TUMBLE(s, ts, INTERVAL '3' SECOND);",
    ],
    "project_over_project": [
        "SELECT b FROM (SELECT k / v AS a, x + 1 AS b FROM s) AS q;",
        "SELECT b + b AS c FROM (SELECT x * 2 AS b FROM s) AS q;",
    ],
}


def rows(seed: int, width: int, count: int = 60) -> list[tuple[object, ...]]:
    """Rows with NULL, NaN, ties and late times; the last value is a time in microseconds."""
    rng = random.Random(seed)
    out: list[tuple[object, ...]] = []
    now = 0.0
    for _ in range(count):
        now += rng.choice([0, 0, 0.5, 1])
        k = rng.choice([None, 1, 2, 3])
        v = rng.choice([None, 0, 1, 2, 5])
        x = rng.choice([None, 0.5, 2.0, float("nan"), -1.0])
        word = rng.choice([None, "", "a b", "b"])
        ts = int((now - rng.choice([0, 0, 0, 1, 4])) * 1_000_000)
        out.append((k, v, x, word, ts) if width == 5 else (k, v, ts))
    return out


def outcome(plan: LogicalPlan, seed: int) -> dict[str, object]:
    """Everything a user can see of a run: rows in order, counts of late rows, the error."""
    result: ReferenceResult = run(plan, {"s": rows(seed, 5), "t": rows(seed + 1, 3)})
    shown = {o.name: [repr(r) for r in result.rows(o.name)] for o in plan.outputs}
    late = {n: c.late for n, c in result.sources.items()}
    dropped = sum(n for _, n in result.late)
    return {"rows": shown, "late": late, "dropped": dropped, "error": str(result.error)}


def drawn(plan: LogicalPlan) -> str:
    return "\n".join(f"{o.name}:\n{described(o.node)}" for o in plan.outputs)


def test_every_rule_is_shown_at_work() -> None:
    assert set(TAKEN) == set(RULES)
    assert all(r.law.strip() for r in RULES.values())


@pytest.mark.parametrize("name", TAKEN)
def test_a_rule_gives_the_tree_its_golden_shows(name: str, golden: Callable[[str, str], None]) -> None:
    before = verify(plan_of(S + TAKEN[name]))
    after = rewrite(before, {name: RULES[name]})
    assert after is not before, "the rule had nothing to do"
    law = " ".join(RULES[name].law.split("\n\n")[0].split())
    golden(f"rules/{name}.txt", f"{law}\n\n{drawn(before)}\n\n---->\n\n{drawn(after)}\n")


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in REFUSED.items() for t in texts])
def test_a_rule_leaves_alone_what_its_condition_forbids(name: str, text: str) -> None:
    before = plan_of(S + text)
    assert rewrite(before, {name: RULES[name]}) is before


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("text", [*TAKEN.values(), *(t for texts in REFUSED.values() for t in texts)])
def test_a_rewritten_plan_gives_the_same_rows_late_counts_and_errors(text: str, seed: int) -> None:
    before = plan_of(S + text)
    after = rewrite(before)
    assert outcome(after, seed) == outcome(before, seed)


def test_a_second_rewrite_changes_nothing() -> None:
    for text in TAKEN.values():
        once = rewrite(plan_of(S + text))
        assert rewrite(once) is once


def test_rules_can_be_switched_off_one_by_one() -> None:
    plan = plan_of(S + TAKEN["filter_below_union"])
    assert isinstance(rewrite(plan, without("filter_below_union", "prune")).outputs[0].node, Project)
    kept = rewrite(plan, without("filter_below_union"))
    assert any(isinstance(n, Filter) and isinstance(n.input, UnionAll) for n in kept.nodes())


def test_no_rules_no_change() -> None:
    plan = plan_of(S + TAKEN["prune"])
    assert rewrite(plan, {}) is plan


def test_a_view_read_twice_is_not_copied_by_a_filter_above_it() -> None:
    text = (
        "CREATE VIEW q AS SELECT k, COUNT(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM s;"
        "SELECT n FROM q WHERE k > 1; SELECT n FROM q;"
    )
    after = rewrite(plan_of(S + text))
    assert sum(isinstance(n, Over) for n in after.nodes()) == 1


def test_equal_windows_of_two_outputs_are_computed_once() -> None:
    plan = plan_of(S + TAKEN["share"])
    after = rewrite(plan)
    assert [n.copies for n in plan.nodes() if isinstance(n, WindowAggregate)] == [1, 1]
    assert [n.copies for n in after.nodes() if isinstance(n, WindowAggregate)] == [2]
    assert RULES["share"].plan is not None and RULES["share"].plan(after).outputs[0].node is after.outputs[0].node
    verify_same_results(plan, after)


def test_a_column_that_can_fail_is_computed_although_nobody_reads_it() -> None:
    plan = plan_of(S + "SELECT b FROM (SELECT k / v AS a, v AS b FROM s) AS q;")
    after = rewrite(plan)
    assert any(isinstance(n, Project) and "/" in n.describe() for n in after.nodes())
    assert outcome(after, 1)["error"] == outcome(plan, 1)["error"] != "None"


def test_a_broken_rule_is_named() -> None:
    def without_the_last_column(node: LogicalNode, _: Uses) -> LogicalNode | None:
        two = isinstance(node, Project) and len(node.names) > 1
        return replace(node, exprs=node.exprs[:-1], names=node.names[:-1]) if two else None

    broken = Rule("shorten", Phase.FOLD, "wrong", without_the_last_column)
    with pytest.raises(AssertionError, match="the rule shorten: columns of result changed"):
        rewrite(plan_of(S + "SELECT k AS a, v AS b FROM s;"), {"shorten": broken})


def test_phases_run_in_the_order_they_are_argued_in() -> None:
    assert [p.name for p in Phase] == ["FOLD", "PUSHDOWN", "PRUNE", "SHARE", "FORGET"]
