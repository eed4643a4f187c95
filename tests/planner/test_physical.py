"""The stages that run: how many, in which way, by which key, and that they are what a running engine has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest
from paths import QUERIES, SHIPPED
from planner_fixture import infer, plan_of

from cq.codegen.lane_keys import decides_lane, needs_no_python, needs_no_state
from cq.codegen.pipeline import write_pipeline
from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.lang.expressions import format_expr
from cq.planner.binding.binder import bind
from cq.planner.binding.catalog import Environment
from cq.planner.operators import Scan
from cq.planner.physical import chain
from cq.planner.physical import choose as choosing
from cq.planner.physical.branches import MOST_BRANCHES
from cq.planner.physical.chain import cuts
from cq.planner.physical.choose import ROUTED_FROM_NS, TURNS, choose, lane_count, row_cost_ns
from cq.planner.physical.printing import draw_stages, graph_text
from cq.planner.physical.stages import PhysicalPlan, verify
from cq.planner.physical.transactions import Natively, transactions_of
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.planner.rewriting.rewrite import rewrite
from cq.records import replace
from cq.runtime.base.host import InterpretedHost
from cq.runtime.engine.build import build, close
from cq.runtime.engine.engine import TICKET_ROWS, Engine
from cq.runtime.engine.graph import graph
from cq.runtime.engine.schedule import CT
from cq.runtime.flow.merged_lanes import WIDEST_SCATTER
from cq.runtime.layout.pipeline import verify_pipeline
from cq.ways import SCHEMES, Way

TUMBLE = "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
NAMES = [str(p.relative_to(QUERIES)) for p in SHIPPED]


def shipped(name: str) -> LogicalPlan:
    text = (QUERIES / name).read_text(encoding="utf-8")
    return rewrite(bind(parse(SourceText(name, text)), Environment(infer=infer)).plan)


def placed(plan: LogicalPlan, workers: int = 2) -> PhysicalPlan:
    (part,) = choose(plan, workers, decides_lane)
    return verify(part)


def keys_of(part: PhysicalPlan) -> list[list[str]]:
    (stage,) = (s for s in part.stages if s.way is Way.LANES)
    (branch,) = stage.branches
    return [
        [format_expr(e, i.schema.names) for e in key or ()] for key, i in zip(branch.keys, stage.leaves, strict=True)
    ]


def ways(part: PhysicalPlan) -> list[Way]:
    return [s.way for s in part.stages]


WORKERS = (0, 1, 2, 16)
WITH_TRIGGERS = [str(p.relative_to(QUERIES)) for p in SHIPPED if "CREATE TRIGGER" in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_explained_is_what_runs(name: str) -> None:
    """Of every shipped query, as `cq explain -j n` and a run choose."""
    explained_as_run(name, product(WORKERS, ["auto"]))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["in turn", "every number"])
@pytest.mark.parametrize("name", WITH_TRIGGERS)
def test_what_is_explained_of_transactions_is_what_runs_by_every_scheme(name: str, every: bool) -> None:
    """With two workers, and by each scheme with another number of them; with all of them: `-m long`."""
    turns = [(workers, scheme) for n, scheme in enumerate(SCHEMES) for workers in {2, WORKERS[n % len(WORKERS)]}]
    assert transactions_of(shipped(name))
    explained_as_run(name, product(WORKERS, SCHEMES) if every else turns)


def explained_as_run(name: str, ways: Iterable[tuple[int, str]]) -> None:
    plan, natively = shipped(name), Natively(needs_no_state, needs_no_python)
    for workers, scheme in ways:
        for part in choose(plan, workers, decides_lane, natively, scheme):
            pipeline = verify_pipeline(write_pipeline(verify(part)))
            host = InterpretedHost()
            with host.active():
                plant = build(host, pipeline, part.workers, TICKET_ROWS, CT)
                assert graph(host, plant) == graph_text(part), f"-j {workers}, transactions = '{scheme}'"
                close(plant)
            assert graph_text(part) in draw_stages([part])


def test_one_worker_has_one_loop() -> None:
    part = placed(shipped("lr_tolls.cq"), 1)
    assert ways(part) == [Way.LOOP] and part.workers == 1


def test_a_plan_without_state_runs_on_any_worker() -> None:
    part = placed(shipped("viper_pos_rep.cq"), 8)
    assert ways(part) == [Way.ANY] and part.workers == 8


def test_the_key_is_what_all_operators_with_state_have_in_common() -> None:
    part = placed(shipped("lr_tolls.cq"))
    assert ways(part) == [Way.LANES] and keys_of(part) == [["xway", "dir"]]


SLOW = "COUNT(DISTINCT price) AS a, COUNT(DISTINCT item) AS b, COUNT(DISTINCT bidder) AS c"  # worth routing


def test_keys_are_followed_through_renamed_columns() -> None:
    sets = ", ".join(f"COUNT(DISTINCT v + {n}) AS n{n}" for n in range(3))
    text = (
        "CREATE VIEW q AS SELECT k AS g, v, ts, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS l FROM live; "
        f"SELECT g, {sets} FROM TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end, g;"
    )
    assert row_cost_ns(plan_of(text)) >= ROUTED_FROM_NS
    assert keys_of(placed(plan_of(text))) == [["k"]]


THREE_KEYS = "".join(
    f"SELECT {key}, {SLOW} FROM {TUMBLE} GROUP BY window_end, {key};" for key in ("auction", "bidder", "item")
)


def test_operators_of_several_keys_are_branches_of_one_stage_and_say_so() -> None:
    part = placed(rewrite(plan_of(THREE_KEYS)))
    assert ways(part) == [Way.LANES] and part.workers == 2
    (stage,) = part.stages
    assert stage.reason == "its operators have 3 keys: a row goes to a lane of each"
    assert stage.lanes == 3 * 8 and len(stage.branches) == 3
    assert "  by (auction) of bid: #1\n  by (bidder) of bid: #3\n  by (item) of bid: #5\n" in draw_stages([part])
    (pipeline,) = [verify_pipeline(write_pipeline(part))]
    with Engine(pipeline, threads=2) as engine:
        assert engine.graph() == graph_text(part)


def test_rows_of_as_many_branches_as_may_be_are_scattered_into_order() -> None:
    assert MOST_BRANCHES <= WIDEST_SCATTER


def test_branches_that_do_not_pay_stay_one_loop_and_say_so() -> None:
    text = THREE_KEYS.replace(SLOW, "COUNT(DISTINCT price) AS a")
    part = placed(rewrite(plan_of(text)))
    assert ways(part) == [Way.LOOP] and part.workers == 1
    nothing = "its operators have no common key that can be read from a row"
    assert part.stages[0].reason == f"{nothing}; routing by each would gain too little"


def test_rows_that_pass_operators_with_state_by_are_told_as_the_reason() -> None:
    text = (
        f"SELECT auction AS k, a + b + c AS n FROM (SELECT auction, {SLOW} FROM {TUMBLE} GROUP BY window_end, auction)"
        " UNION ALL SELECT v, 1 FROM plain;"
    )
    part = placed(rewrite(plan_of(text)))
    assert ways(part) == [Way.LOOP] and "a UNION ALL combines rows of a source" in part.stages[0].reason


def test_one_branch_is_routed_only_where_routing_a_row_pays() -> None:
    text = (
        f"CREATE VIEW p AS SELECT window_time AS t, COUNT(*) AS n, {SLOW} FROM {TUMBLE}"
        " GROUP BY window_end, window_time, auction;"
        f"CREATE VIEW q AS SELECT window_time AS t, COUNT(*) AS n, {SLOW.replace('price', 'item')} FROM {TUMBLE}"
        " GROUP BY window_end, window_time, bidder;"
        "SELECT p.a + p.b + p.c AS x, q.a + q.b + q.c AS y FROM p JOIN q ON p.n = q.n;"
    )
    part = placed(rewrite(plan_of(text)), 8)
    assert ways(part) == [Way.LANES, Way.LOOP] and len(part.stages[0].branches) == 2
    assert part.stages[1].reason == "a row costs 40 ns, and routing pays from 45"


def test_a_cheap_row_is_not_routed() -> None:
    part = placed(
        rewrite(plan_of("SELECT SUM(auction) OVER (PARTITION BY bidder ROWS UNBOUNDED PRECEDING) AS s FROM bid;"))
    )
    assert ways(part) == [Way.LOOP] and part.stages[0].reason == "a row costs 8 ns, and routing pays from 45"


def test_routing_takes_more_where_rows_of_several_inputs_take_turns() -> None:
    """A join of texts costs more than routing rows of one input, or of two that share segments, and less than routing
    rows whose times are computed."""
    made = "CREATE STREAM {0} (a VARCHAR, ts {1}) WITH (connector = 'file', path = '{0}.csv');"
    join = " SELECT x.a, y.a FROM {0} AS x JOIN {1} AS y ON x.a = y.a;"
    timed = "".join(made.format(name, "TIMESTAMP, WATERMARK FOR ts") for name in "lr")
    cost = row_cost_ns(plan_of(timed + join.format("l", "r")))
    assert ROUTED_FROM_NS <= cost < ROUTED_FROM_NS * TURNS
    assert [ways(placed(plan_of(timed + join.format("l", other)))) for other in "rl"] == [[Way.LANES], [Way.LANES]]
    time = "VARCHAR, at AS CAST(ts AS TIMESTAMP), WATERMARK FOR at"
    computed = made.format("l", "TIMESTAMP, WATERMARK FOR ts") + made.format("r", time)
    third = timed + made.format("t", "TIMESTAMP, WATERMARK FOR ts")
    of_three = "SELECT l.a FROM l JOIN (SELECT a FROM r UNION ALL SELECT a FROM t) AS y ON l.a = y.a;"
    for plan in (plan_of(computed + join.format("l", "r")), plan_of(third + of_three)):
        assert ways(placed(plan)) == [Way.LOOP]
        assert placed(plan).stages[0].reason.endswith(f"pays from {ROUTED_FROM_NS * TURNS}")
    untimed = "".join(made.format(name, "TIMESTAMP") for name in "lr")
    assert ways(placed(plan_of(untimed + join.format("l", "r").replace("JOIN", "FULL JOIN")))) == [Way.LANES]


def test_interval_join_is_routed_whatever_lies_between_its_rows() -> None:
    declared = "".join(f"CREATE STREAM {n} (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts); " for n in "lr")
    join = declared + "SELECT l.k FROM l JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts {} AND l.ts + INTERVAL '21' SECOND;"
    near, ahead = (plan_of(join.format(least)) for least in ("", "+ INTERVAL '20' SECOND"))
    for plan in (near, ahead):
        assert [ways(placed(plan, workers)) for workers in (1, 2)] == [[Way.LOOP], [Way.LANES]]


@pytest.mark.parametrize(("join", "wanted"), [("JOIN", Way.LANES), ("LEFT JOIN", Way.LOOP)])
def test_left_rows_of_one_closing_time_wait_in_one_state(join: str, wanted: Way) -> None:
    """They leave alone in order of arrival, and one closing time has one serial."""
    text = (
        f"CREATE VIEW w AS SELECT window_time, auction, {SLOW} FROM {TUMBLE} GROUP BY window_end, auction; "
        f"SELECT w.a, bid.price FROM w {join} bid ON w.auction = bid.auction "
        "AND bid.ts BETWEEN w.window_time AND w.window_time + INTERVAL '1' SECOND;"
    )
    part = placed(rewrite(plan_of(text)))
    assert ways(part) == [wanted], part.stages[0].reason


def test_windows_that_merge_exactly_over_stateless_rows_are_filled_by_every_worker() -> None:
    exact = placed(plan_of(f"SELECT auction, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end, auction;"))
    assert ways(exact) == [Way.PARTIAL, Way.LOOP] and exact.stages[1].collects
    doubles = placed(plan_of(f"SELECT auction, SUM(price) AS n FROM {TUMBLE} GROUP BY window_end, auction;"))
    assert ways(doubles) == [Way.LOOP]
    sets = placed(plan_of(f"SELECT COUNT(DISTINCT auction) AS n FROM {TUMBLE} GROUP BY window_end;"))
    assert ways(sets) == [Way.LOOP]


def test_a_join_within_windows_runs_in_lanes_by_the_keys_that_rows_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "ROUTED_FROM_NS", 0)
    text = f"SELECT a.price FROM {TUMBLE} AS a JOIN {TUMBLE} AS b USING (window_start, window_end, auction, bidder);"
    part = placed(plan_of(text))
    assert ways(part) == [Way.LANES], part.stages[0].reason
    assert keys_of(part) == [["auction", "bidder"]]
    by_window = placed(plan_of(text.replace(", auction, bidder", "")))
    assert ways(by_window) == [Way.LOOP], by_window.stages[0].reason


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("ORDER BY price DESC LIMIT 10", [Way.LOOP]),
        ("WHERE price > 5 ORDER BY price LIMIT 10", [Way.LOOP]),
        ("WHERE price % 7 > 5 ORDER BY price LIMIT 10", [Way.PARTIAL, Way.LOOP]),
        ("ORDER BY price * auction + bidder LIMIT 10", [Way.PARTIAL, Way.LOOP]),
        ("QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price) <= 3", [Way.PARTIAL, Way.LOOP]),
    ],
)
def test_rows_that_are_only_compared_with_the_last_that_is_kept_stay_with_one_worker(
    what: str, wanted: list[Way]
) -> None:
    part = placed(rewrite(plan_of(f"SELECT auction, price FROM bid {what};")))
    assert ways(part) == wanted, part.stages[0].reason


@pytest.mark.parametrize(("most", "wanted"), [(10_000, [Way.PARTIAL, Way.LOOP]), (10_001, [Way.LOOP])])
def test_the_first_rows_of_partitions_are_merged_where_they_are_few(most: int, wanted: list[Way]) -> None:
    within = "PARTITION BY window_end ORDER BY price"
    part = placed(rewrite(plan_of(f"SELECT price FROM {TUMBLE} QUALIFY ROW_NUMBER() OVER ({within}) <= {most};")))
    assert ways(part) == wanted, part.stages[0].reason


def test_groups_of_rows_in_windows_are_not_filled_apart() -> None:
    rows = f"(SELECT window_start, window_end, auction FROM {TUMBLE})"
    part = placed(plan_of(f"SELECT auction, COUNT(*) AS n FROM {rows} GROUP BY window_start, window_end, auction;"))
    assert ways(part) == [Way.LOOP], part.stages[0].reason


def called_alike(plan: LogicalPlan) -> LogicalPlan:
    """The plan whose sources all have one name."""

    def change(node: LogicalNode) -> LogicalNode:
        return replace(node, source=replace(node.source, name="one")) if isinstance(node, Scan) else node

    return plan.map(change)


SIDES = """CREATE STREAM names (k BIGINT, name VARCHAR) WITH (connector = 'file', path = 'names.csv');
SELECT plain.v, names.name FROM plain JOIN names ON plain.k = names.k;"""
PARTS = "SELECT k FROM plain; SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction;"


@pytest.mark.parametrize("text", [SIDES, PARTS], ids=["joined", "apart"])
def test_no_name_of_a_source_decides_what_runs(text: str) -> None:
    plan = rewrite(plan_of(text))
    own, alike = (choose(p, 4, decides_lane) for p in (plan, called_alike(plan)))
    assert [ways(verify(p)) for p in own] == [ways(verify(p)) for p in alike]
    for one, other in zip(own, alike, strict=True):
        first, second = (verify_pipeline(write_pipeline(p)) for p in (one, other))
        assert [s.module for s in first.stages] == [s.module for s in second.stages]
        assert [s.complete for s in first.stages] == [s.complete for s in second.stages]
        assert [s.columns for s in first.sources] == [s.columns for s in second.sources]


def test_two_sources_at_one_place_are_found() -> None:
    plan = rewrite(plan_of(SIDES)).map(
        lambda n: replace(n, source=replace(n.source, position=0)) if isinstance(n, Scan) else n
    )
    with pytest.raises(AssertionError, match="at one place"):
        choose(plan, 4, decides_lane)


def test_parts_that_share_no_source_are_plans_of_their_own() -> None:
    parts = choose(plan_of("SELECT price FROM bid; SELECT v FROM plain;"), 2, decides_lane)
    assert [len(p.stages) for p in parts] == [1, 1]


@pytest.mark.parametrize(("key", "cut"), [("bidder", True), ("10 / n", False)])
def test_what_may_fail_on_results_of_groups_stays_where_the_groups_are_known(key: str, cut: bool) -> None:
    text = f"""CREATE VIEW w AS
    SELECT auction, bidder, COUNT(*) AS n FROM {TUMBLE} GROUP BY auction, bidder, window_end;
    SELECT auction AS k, COUNT(*) OVER (PARTITION BY auction ROWS UNBOUNDED PRECEDING) AS n FROM w
    UNION ALL
    SELECT k, COUNT(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM (SELECT {key} AS k FROM w);"""
    assert bool(cuts(rewrite(plan_of(text)), waits=False)) == cut


def test_lanes_are_a_power_of_two_and_bounded() -> None:
    assert [lane_count(n, 1) for n in (1, 2, 3, 8, 16, 100)] == [4, 8, 16, 32, 64, 64]
    assert [lane_count(n, 3) for n in (1, 2, 8)] == [12, 24, 48]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"way": Way.ANY}, "state where any worker takes any ticket"),
        ({"lanes": 4}, "lanes without a key"),
        ({"final": False}, "the last stage, and only that one"),
    ],
)
def test_a_plan_that_contradicts_itself_is_found(change: dict[str, object], told: str) -> None:
    part = placed(shipped("lr_tolls.cq"), 1)
    stages = (replace(part.stages[0], **change),)
    with pytest.raises(AssertionError, match=told):
        verify(replace(part, stages=stages))


TWO_KEYS = f"""CREATE VIEW w AS SELECT *, COUNT(*) OVER (PARTITION BY item ROWS UNBOUNDED PRECEDING) AS before FROM bid;
SELECT auction, COUNT(DISTINCT before) AS n, {SLOW} FROM TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
GROUP BY window_end, auction;"""


def test_only_the_columns_that_are_read_cross_to_the_next_stage() -> None:
    (cut,) = cuts(plan_of(TWO_KEYS), waits=False)
    (leaf,) = (n for n in cut.above.nodes() if not n.inputs)
    assert leaf.schema.names == ("auction", "bidder", "price", "item", "ts", "before")  # neither amount nor ok


def test_columns_that_cross_for_nothing_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "prune", lambda plan: plan)
    with pytest.raises(AssertionError, match="columns cross to it that nobody reads"):
        placed(plan_of(TWO_KEYS), 16)
