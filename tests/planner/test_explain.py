"""What is known of plans and stages, and how it is drawn. Goldens: tests/golden/plans."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from paths import QUERIES, SHIPPED
from planner_fixture import bound, infer, plan_of

from cq.codegen.lane_keys import decides_lane
from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.planner.binding.binder import bind
from cq.planner.binding.catalog import Environment
from cq.planner.explain import draw_dot, draw_mermaid, explain
from cq.planner.operators import Over, Scan, TemporalJoin, WindowAggregate
from cq.planner.physical.choose import choose
from cq.planner.physical.classify import classify
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import OpClass, StateBound
from cq.planner.plan_facts import plan_facts, staged_facts
from cq.planner.rewriting.rewrite import rewrite

TUMBLE = "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"


def shipped(name: str) -> LogicalPlan:
    path = QUERIES / name
    return bind(parse(SourceText(name, path.read_text(encoding="utf-8"))), Environment(infer=infer)).plan


@pytest.mark.parametrize("name", [str(p.relative_to(QUERIES)) for p in SHIPPED])
def test_the_plan_and_stages_of_each_query_stand_as_goldens(name: str, golden: Callable[[str, str], None]) -> None:
    plan = shipped(name)
    better = rewrite(plan)
    golden(f"plans/{name.removesuffix('.cq')}.logical.txt", explain(plan) + "\n")
    golden(f"plans/{name.removesuffix('.cq')}.stages.txt", explain(better, choose(better, 2, decides_lane)) + "\n")


@pytest.mark.parametrize("name", ["grep_and_sum", "toll_processing"])
def test_a_verbose_plan_shows_the_steps_of_its_transactions(name: str, golden: Callable[[str, str], None]) -> None:
    plan = rewrite(shipped(f"transactions/{name}.cq"))
    golden(f"plans/transactions/{name}.verbose.txt", explain(plan, verbose=True) + "\n")
    assert "emit" not in explain(plan)


def test_every_step_is_told_near_to_its_statement() -> None:
    plan = plan_of(
        "CREATE STREAM s (k BIGINT, ks BIGINT[], ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');"
        "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT);"
        "CREATE TRIGGER g AFTER INSERT ON s WHEN (new.k > 0) BEGIN DELETE FROM t WHERE k = new.k AND n > 3;"
        " INSERT INTO t SELECT u.x, u.i FROM UNNEST(new.ks) WITH ORDINALITY AS u(x, i) ON CONFLICT DO NOTHING;"
        " IF new.k = 7 THEN RAISE 'seven'; END IF; END; SELECT k FROM g;"
    )
    (steps,) = (n.in_detail() for n in plan.nodes() if n.in_detail())
    assert steps == (
        "g when (new.k > 0)",
        "  read t[new.k] as t_1",
        "  delete t_1 where (t_1.n > 3)",
        "  for each local_1, local_2 in new.ks with ordinality",
        "    read t[local_1] as t_2",
        "    insert t_2 with k = local_1, n = local_2",
        "    on conflict do nothing",
        "  if (new.k = 7)",
        "    reject 'seven'",
        "  emit the event",
    )


@pytest.mark.parametrize("format", ["tree", "json", "dot", "mermaid", "svg", "html"])
def test_every_format_draws_plans_and_stages(format: str) -> None:
    plan = shipped("lr_tolls.cq")
    for text in (explain(plan, format=format), explain(plan, choose(plan, 2, decides_lane), format)):
        assert "temporal_join" in text or "temporal join" in text
        if format == "json":
            json.loads(text)


def test_lengths_of_time_are_drawn_in_the_units_people_use() -> None:
    pairs = "a.auction = b.auction AND b.ts BETWEEN a.ts - INTERVAL '30' SECOND AND a.ts + INTERVAL '2' MINUTE"
    text = explain(plan_of(f"SELECT a.price FROM bid AS a JOIN bid AS b ON {pairs};"))
    assert (
        "AND right.ts from left.ts - 30 seconds to left.ts + 2 minutes" in text and "watermark ts - 5 seconds" in text
    )
    assert "keeps left rows for 2 minutes and right rows for 30 seconds of event time" in text
    text = explain(plan_of("SELECT COUNT(*) AS n FROM bid GROUP BY SESSION(ts, INTERVAL '90' SECOND);"))
    assert "gaps up to 1 minute 30 seconds" in text and "time window_end, lag 1 microsecond" in text


def test_what_sub_queries_keep_is_shown() -> None:
    plan = plan_of("SELECT price FROM bid WHERE auction IN (SELECT bidder FROM bid WHERE price > 3);")
    text = explain(plan)
    assert "semi_join  left rows with a match on auction = right.bidder" in text
    assert "keeps left rows without a match, and the keys of the right side (grows)" in text
    plan = plan_of("SELECT price FROM bid AS a WHERE NOT EXISTS (SELECT 1 FROM bid AS b WHERE b.price > a.price);")
    text = explain(plan)
    assert "semi_join  left rows without a match on (right.price > left.price)" in text and "no key" in text
    assert "keeps left rows without a match, and all right rows (grows)" in text
    text = explain(plan_of("SELECT price FROM bid WHERE price > (SELECT AVG(price) FROM bid);"))
    assert "join  all pairs" in text and "no key" in text


def test_the_json_names_everything_the_tree_shows() -> None:
    facts = plan_facts(plan_of(f"SELECT auction, SUM(bidder) AS s FROM {TUMBLE} GROUP BY window_end, auction LIMIT 5;"))
    window = next(n for n in facts["nodes"] if n["operator"] == "window")
    assert window["class"] == "partitioned" and window["keys"] == [["auction"]] and window["merges_partials"]
    assert window["times"][0] == {"column": "window_end", "shift_us": -1, "lag_us": 0}
    assert window["ends"] and window["state_bounded"]
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
    better = rewrite(plan_of(query + query))
    assert [n["copies"] for n in plan_facts(better)["nodes"] if n["operator"] == "window"] == [2]
    assert "counts late rows of bid 2 times" in explain(better)


def test_pictures_show_each_operator_in_its_stage_and_where_panes_go() -> None:
    text = f"SELECT COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end; SELECT v FROM plain WHERE k > 1;"
    facts = staged_facts(choose(plan_of(text), 2, decides_lane))
    shown = [n for s in facts["stages"] for n in s["nodes"]]
    assert sorted(shown) == [n["number"] for n in facts["nodes"]], "each in one stage"
    filling, collecting = (n for n in facts["nodes"] if n["operator"] == "window")
    assert collecting["inputs"] == [filling["number"]]
    for draw, head in ((draw_dot, "subgraph cluster_"), (draw_mermaid, "subgraph ")):
        named = [line.split()[1] for line in draw(facts).splitlines() if head in line]
        assert len(named) == len(set(named)) == len(facts["stages"])


class TestClasses:
    def test_an_aggregate_that_keeps_all_values_says_so(self) -> None:
        def state_of(query: str) -> StateBound:
            (state,) = (n.state for n in plan_of(query).nodes() if n.keeps_state)
            return state

        grouped = f"FROM {TUMBLE} GROUP BY window_end;"
        kept = "open windows x groups with all their values (1 pane each)"
        assert state_of(f"SELECT MEDIAN(price) AS m {grouped}").text == kept
        assert state_of(f"SELECT AVG(price) AS m {grouped}").text == "open windows x groups (1 pane each)"
        running = state_of("SELECT STRING_AGG('a', ',') OVER (ROWS UNBOUNDED PRECEDING) AS t FROM bid;")
        assert running.text == "one entry a partition, with all values of its rows" and not running.bounded

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


def test_hostile_names_cannot_leave_a_picture() -> None:
    plan = bound('SELECT price AS "a"";<b>\\" FROM bid;').plan
    for format in ("dot", "mermaid"):
        text = explain(plan, format=format)
        assert "<b>" not in text and '"";' not in text and "a&quot;;&lt;b&gt;&#92;" in text


def test_a_scan_says_when_it_has_no_watermark() -> None:
    plan = plan_of("SELECT v FROM plain;")
    assert isinstance(plan.nodes()[0], Scan) and "no watermark" in explain(plan)


def test_rows_have_the_names_that_the_query_gives_them() -> None:
    views = (
        f"CREATE VIEW per_minute AS SELECT window_end, auction, COUNT(*) AS n, SUM(bidder) AS s FROM {TUMBLE} "
        "GROUP BY window_start, window_end, auction; CREATE VIEW again AS SELECT * FROM per_minute;"
    )
    text = explain(plan_of(views + "WITH busy AS (SELECT * FROM again WHERE n > 3) SELECT n + 1 AS m FROM busy;"))
    assert "project per_minute  window_end, auction, n, s" in text and "filter busy  (n > 3)" in text
    assert "window  every 1 minute by auction: count(*) AS n, sum(bidder) AS s" in text
    assert "again" not in text, "it is the same rows"


def test_columns_of_aggregates_are_called_what_they_are() -> None:
    text = explain(plan_of(f"SELECT MAX(price) - MIN(price) AS spread FROM {TUMBLE} GROUP BY window_end;"))
    assert "(max(price) - min(price)) AS spread" in text


def test_windows_are_shown_in_words() -> None:
    of = "TABLE bid, DESCRIPTOR(ts), INTERVAL"
    for window, words in (
        (f"HOP({of} '1' MINUTE, INTERVAL '5' MINUTE)", "every 1 minute, last 5 minutes: count(*) AS n"),
        (f"CUMULATE({of} '1' MINUTE, INTERVAL '1' HOUR)", "every 1 minute, growing to 1 hour: count(*) AS n"),
    ):
        assert words in explain(plan_of(f"SELECT COUNT(*) AS n FROM {window} GROUP BY window_end;"))


def test_only_a_verbose_tree_shows_identities_and_facts_that_all_operators_share() -> None:
    plan = plan_of(f"SELECT COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end;")
    window = next(n for n in plan.nodes() if isinstance(n, WindowAggregate))
    text, all_of_it = explain(plan), explain(plan, verbose=True)
    assert window.identity[:8] not in text and len(text.splitlines()) == 4
    assert window.identity[:8] in all_of_it and "stateful · time window_end - 1 microsecond · " in all_of_it
