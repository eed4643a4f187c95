"""What is known of plans and stages, and how it is drawn. Goldens: tests/golden/plans."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from planner_fixture import bound, infer, plan_of

from cq.errors import SourceText
from cq.expressions import format_expr
from cq.grammar.parser import parse
from cq.planner.binder import bind
from cq.planner.catalog import Environment
from cq.planner.classify import classify
from cq.planner.explain import explain, plan_facts
from cq.planner.logical import LogicalPlan, OpClass, identities
from cq.planner.operators import Over, Scan, TemporalJoin, WindowAggregate
from cq.planner.rewrite import rewrite
from cq.planner.stages import StageGraph, fuse

QUERIES = Path(__file__).parent.parent / "queries"
TUMBLE = "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"


def shipped(name: str) -> LogicalPlan:
    path = QUERIES / name
    return bind(parse(SourceText(name, path.read_text(encoding="utf-8"))), Environment(infer=infer)).plan


def keys_of(graph: StageGraph, stage: int) -> list[list[str]]:
    s = graph.stages[stage]
    return [[format_expr(e, i.schema.names) for e in key] for key, i in zip(s.keys, s.inputs, strict=True)]


@pytest.mark.parametrize("name", sorted(p.name for p in QUERIES.glob("*.cq")))
def test_the_plan_and_stages_of_each_query_stand_as_goldens(name: str, golden: Callable[[str, str], None]) -> None:
    plan = shipped(name)
    better = rewrite(plan, check=True)
    golden(f"plans/{name.removesuffix('.cq')}.logical.txt", explain(plan) + "\n")
    golden(f"plans/{name.removesuffix('.cq')}.stages.txt", explain(better, fuse(better, 2)) + "\n")


@pytest.mark.parametrize("format", ["tree", "json", "dot", "mermaid"])
def test_every_format_draws_plans_and_stages(format: str) -> None:
    plan = shipped("lr_tolls.cq")
    for text in (explain(plan, format=format), explain(plan, fuse(plan, 2), format)):
        assert "temporal_join" in text
        if format == "json":
            json.loads(text)


def test_the_json_names_everything_the_tree_shows() -> None:
    facts = plan_facts(plan_of(f"SELECT auction, SUM(bidder) AS s FROM {TUMBLE} GROUP BY window_end, auction LIMIT 5;"))
    window = next(n for n in facts["nodes"] if n["operator"] == "window")
    assert window["class"] == "partitioned" and window["keys"] == [["auction"]] and window["merges_partials"]
    assert window["times"][0] == {"column": "window_end", "shift_us": -1, "lag_us": 0}
    assert window["emits"] == "append" and window["ends"] and window["state_bounded"]
    assert window["counts_late"] == ["bid"] and window["line"] == 8
    assert facts["outputs"][0]["limit"] == 5
    scan = facts["nodes"][0]
    assert scan["source"]["delay_us"] == 5_000_000 and scan["source"]["event_time"] == "ts"


def test_late_rows_are_counted_by_the_first_operator_that_needs_time() -> None:
    text = (
        f"CREATE VIEW m AS SELECT window_start, window_end, auction, COUNT(*) AS n FROM {TUMBLE} "
        "GROUP BY window_start, window_end, auction; SELECT window_end, MAX(n) AS n FROM m GROUP BY window_end;"
    )
    counted = [n["counts_late"] for n in plan_facts(plan_of(text))["nodes"] if n["operator"] == "window"]
    assert counted == [["bid"], []]


def test_operators_joined_into_one_say_how_often_they_count_late_rows() -> None:
    query = f"SELECT window_end, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end;"
    better = rewrite(plan_of(query + query), check=True)
    assert [n["copies"] for n in plan_facts(better)["nodes"] if n["operator"] == "window"] == [2]
    assert "counts late rows of bid 2 times" in explain(better)


def test_identities_do_not_depend_on_spelling_or_place() -> None:
    a, b = (
        plan_of(f"SELECT auction, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end, auction;"),
        plan_of(f"-- again\nselect AUCTION,\n  count(*) as N\nfrom {TUMBLE} group by 1, window_start;"),
    )
    assert list(identities(a).values()) == list(identities(b).values())


def test_identities_are_the_same_for_every_binding() -> None:
    plan = plan_of("SELECT price FROM bid WHERE price > 1.5;")
    first, second = identities(plan), identities(plan_of("SELECT price FROM bid WHERE price > 1.5;"))
    assert sorted(first.values()) == sorted(second.values())


class TestClasses:
    def test_a_window_without_keys_is_stateful_and_may_merge(self) -> None:
        plan = plan_of(f"SELECT COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end;")
        known = classify(plan)
        (window,) = (n for n in plan.nodes() if isinstance(n, WindowAggregate))
        assert known[id(window)].op_class is OpClass.STATEFUL and known[id(window)].mergeable

    def test_sums_of_doubles_do_not_merge(self) -> None:
        plan = plan_of(f"SELECT SUM(price) AS s FROM {TUMBLE} GROUP BY window_end, auction;")
        (window,) = (n for n in plan.nodes() if isinstance(n, WindowAggregate))
        assert not classify(plan)[id(window)].mergeable

    def test_a_look_up_has_a_key_on_each_side(self) -> None:
        plan = shipped("lr_tolls.cq")
        join = next(n for n in plan.nodes() if isinstance(n, TemporalJoin))
        assert [len(k) for k in classify(plan)[id(join)].keys] == [3, 3]

    def test_over_is_partitioned_by_its_partition(self) -> None:
        plan = shipped("viper_new_seg.cq")
        over = next(n for n in plan.nodes() if isinstance(n, Over))
        assert classify(plan)[id(over)].op_class is OpClass.PARTITIONED


class TestStages:
    def test_one_worker_has_one_stage(self) -> None:
        graph = fuse(shipped("lr_tolls.cq"), 1)
        assert [s.op_class for s in graph.stages] == [OpClass.STATEFUL]

    def test_a_plan_without_state_is_one_stateless_stage(self) -> None:
        graph = fuse(shipped("viper_pos_rep.cq"), 8)
        assert [s.op_class for s in graph.stages] == [OpClass.STATELESS]

    def test_the_key_is_what_all_operators_with_state_have_in_common(self) -> None:
        graph = fuse(rewrite(shipped("lr_tolls.cq")), 2)
        assert [s.op_class for s in graph.stages] == [OpClass.STATELESS, OpClass.PARTITIONED]
        assert keys_of(graph, 1) == [["xway", "dir"]]

    def test_keys_are_followed_through_computed_columns(self) -> None:
        text = (
            "CREATE VIEW q AS SELECT auction % 10 AS g, ts, LAG(item) OVER (PARTITION BY auction % 10 ORDER BY ts) "
            "FROM bid; SELECT g, COUNT(*) AS n FROM TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '1' MINUTE) "
            "GROUP BY window_end, g;"
        )
        assert keys_of(fuse(plan_of(text), 2), 1) == [["(auction % 10)"]]

    def test_keys_without_a_common_part_make_a_stateful_stage(self) -> None:
        text = (
            "SELECT LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS a, "
            "LAG(price) OVER (PARTITION BY bidder ORDER BY ts) AS b FROM bid;"
        )
        assert [s.op_class for s in fuse(plan_of(text), 2).stages] == [OpClass.STATELESS, OpClass.STATEFUL]

    def test_a_key_of_two_sources_is_one_for_each(self) -> None:
        text = (
            "CREATE VIEW m AS SELECT window_end, k, SUM(v) AS v FROM TUMBLE(TABLE live, DESCRIPTOR(ts), INTERVAL '1' "
            "MINUTE) GROUP BY window_end, k; "
            "SELECT b.price, m.v FROM bid AS b LEFT JOIN m FOR SYSTEM_TIME AS OF b.ts ON m.k = b.auction;"
        )
        graph = fuse(plan_of(text), 2)
        assert [s.op_class for s in graph.stages] == [OpClass.STATELESS, OpClass.PARTITIONED]
        assert sorted(keys_of(graph, 1)) == [["auction"], ["k"]]

    def test_windows_that_merge_exactly_over_stateless_rows_may_use_partial_tables(self) -> None:
        exact = fuse(plan_of(f"SELECT auction, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end, auction;"), 2)
        doubles = fuse(plan_of(f"SELECT auction, SUM(price) AS n FROM {TUMBLE} GROUP BY window_end, auction;"), 2)
        assert len(exact.stages[1].mergeable) == 1 and not doubles.stages[1].mergeable

    def test_results_may_leave_from_both_stages(self) -> None:
        text = f"SELECT price FROM bid; SELECT COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end, auction;"
        graph = fuse(plan_of(text), 2)
        assert len(graph.stages[0].outputs) == 2 and len(graph.stages[1].outputs) == 1

    def test_every_operator_is_in_one_stage(self) -> None:
        plan = shipped("viper_tolls.cq")
        graph = fuse(plan, 4)
        placed = [id(n) for s in graph.stages for n in s.nodes]
        assert len(graph.stages) > 1 and sorted(placed) == sorted(id(n) for n in plan.nodes())


def test_hostile_names_cannot_leave_a_picture() -> None:
    plan = bound('SELECT price AS "a"";<b>\\" FROM bid;').plan
    for format in ("dot", "mermaid"):
        text = explain(plan, format=format)
        assert "<b>" not in text and '"";' not in text and "a&quot;;&lt;b&gt;&#92;" in text


def test_a_scan_says_when_it_has_no_watermark() -> None:
    plan = plan_of("SELECT v FROM plain;")
    assert isinstance(plan.nodes()[0], Scan) and "no watermark" in explain(plan)
