"""What the binder makes of queries that are right: types, operators, names, time attributes."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from paths import SHIPPED
from planner_fixture import bound, columns, described, expression, identity, infer, nodes_of, plan_of, top

from cq.errors import CompileError, Diagnostic
from cq.lang.expressions import Column, Literal, walk
from cq.lang.schema import Field, TimeAttribute
from cq.lang.types import BIGINT, DOUBLE, VARCHAR
from cq.planner.binding.binder import BoundScript
from cq.planner.binding.catalog import Environment
from cq.planner.binding.scope import Hole
from cq.planner.operators import (
    Aggregate,
    IntervalJoin,
    Join,
    JoinKind,
    Lag,
    Over,
    Project,
    Scan,
    Sort,
    TemporalJoin,
    WindowAggregate,
    WindowKind,
)
from cq.planner.plan.node import rows_may_wait, topological
from cq.records import replace

MINUTE = 60_000_000
TUMBLE = "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
PER_MIN = (
    "CREATE VIEW per_min AS SELECT window_start, window_end, auction, COUNT(*) AS n, SUM(price) AS total "
    f"FROM {TUMBLE} GROUP BY window_start, window_end, auction;\n"
)


class TestExpressions:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("1", "1"),
            ("-1", "-1"),
            ("1.50", "1.50"),
            ("'it''s'", "'it''s'"),
            ("auction + 1", "(auction + 1)"),
            ("price > 10", "(price > 10.0)"),
            ("auction::DOUBLE", "CAST(auction AS DOUBLE)"),
            ("(price::INT2)::INT4", "CAST(CAST(price AS SMALLINT) AS INTEGER)"),
            ("(item::INT8)::FLOAT8", "CAST(CAST(item AS BIGINT) AS DOUBLE)"),
            ("item::TIMESTAMP_NTZ", "CAST(item AS TIMESTAMP)"),
            ("TRY_CAST(item AS BIGINT)", "TRY_CAST(item AS BIGINT)"),
            ("auction BETWEEN 1 AND 3", "((auction >= 1) AND (auction <= 3))"),
            ("auction NOT IN (1, 2)", "not(((auction = 1) OR (auction = 2)))"),
            ("auction IN (1)", "(auction = 1)"),
            ("ok IS TRUE", "COALESCE(ok, FALSE)"),
            ("ok IS NOT FALSE", "not(COALESCE(not(ok), FALSE))"),
            ("ok IS UNKNOWN", "(ok IS NULL)"),
            ("item IS NOT NULL", "not((item IS NULL))"),
            ("bidder IS DISTINCT FROM 3", "not((bidder = 3))"),
            ("auction IS NOT DISTINCT FROM 3", "COALESCE((auction = 3), FALSE)"),
            (
                "auction IS NOT DISTINCT FROM price",
                "(((auction IS NULL) AND (price IS NULL)) OR COALESCE((CAST(auction AS DOUBLE) = price), FALSE))",
            ),
            ("CASE auction WHEN 1 THEN 'one' END", "CASE WHEN (auction = 1) THEN 'one' ELSE NULL END"),
            ("NULLIF(auction, 0)", "CASE WHEN (auction = 0) THEN NULL ELSE auction END"),
            ("IF(ok, 1, 2.5)", "CASE WHEN ok THEN 1.0 ELSE 2.5 END"),
            ("IIF(ok, 1, 2)", "CASE WHEN ok THEN 1 ELSE 2 END"),
            ("auction <=> 3", "COALESCE((auction = 3), FALSE)"),
            ("COALESCE(auction, 0)", "COALESCE(auction, 0)"),
            ("IFNULL(price, 0)", "COALESCE(price, 0.0)"),
            ("EXTRACT(HOUR FROM ts)", "hour(ts)"),
            ("DATE_TRUNC('minute', ts)", "date_trunc_minute(ts)"),
            ("item LIKE 'a%'", "like(item, 'a%')"),
            ("item || 'x'", "concat(item, 'x')"),
        ],
    )
    def test_shorthands_become_the_few_kinds_of_node(self, text: str, shown: str) -> None:
        assert expression(text) == shown

    @pytest.mark.parametrize(
        ("text", "type_"),
        [
            ("1", "INTEGER NOT NULL"),
            ("3000000000", "BIGINT NOT NULL"),
            ("1.5", "DECIMAL(2,1) NOT NULL"),
            ("0.05", "DECIMAL(2,2) NOT NULL"),
            ("1e3", "DOUBLE NOT NULL"),
            ("bidder + 1", "BIGINT NOT NULL"),
            ("auction + 1", "BIGINT"),
            ("amount * 2", "DECIMAL(14,2)"),
            ("amount + 1.5", "DECIMAL(13,2)"),
            ("auction + price", "DOUBLE"),
            ("ts - ts", "INTERVAL NOT NULL"),
            ("ts + INTERVAL '1' DAY", "TIMESTAMP NOT NULL"),
            ("INTERVAL '1' YEAR", "INTERVAL MONTH NOT NULL"),
            ("ok AND auction = 1", "BOOLEAN"),
            ("auction IS NULL", "BOOLEAN NOT NULL"),
            ("COALESCE(auction, 0)", "BIGINT NOT NULL"),
            ("CASE WHEN ok THEN 1 ELSE 2 END", "INTEGER NOT NULL"),
            ("CASE WHEN ok THEN 1 END", "INTEGER"),
            ("TRY_CAST('5' AS BIGINT)", "BIGINT"),
            ("NULL", "INTEGER"),
            ("SPLIT(item, ',')", "VARCHAR ARRAY"),
            ("ts > '2024-01-01 10:00:00'", "BOOLEAN NOT NULL"),
        ],
    )
    def test_types_and_nullability_are_derived(self, text: str, type_: str) -> None:
        assert columns(f"SELECT {text} AS x FROM bid;") == f"x {type_}"

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT NULL IS NULL AS a, NULL IS NOT DISTINCT FROM price AS b, NULLIF(NULL, 1) AS c FROM bid;",
            "SELECT CASE WHEN ok THEN NULL END AS a, COALESCE(NULL, NULL) AS b FROM bid;",
            "SELECT CAST(NULL AS VARCHAR) = 1::VARCHAR AS b FROM bid;",
            "SELECT COUNT(NULL) OVER (PARTITION BY NULL ROWS UNBOUNDED PRECEDING) AS n FROM bid;",
            "SELECT LAG(NULL) OVER (ORDER BY ts) AS l FROM bid;",
            f"SELECT COUNT(NULL), SUM(NULL), MIN(NULL) FROM {TUMBLE} GROUP BY window_end, NULL;",
        ],
    )
    def test_null_has_a_type_wherever_it_stands(self, text: str) -> None:
        plan_of(text)  # verified: no expression of it has the type NULL

    def test_the_event_time_of_an_accepted_row_is_never_null(self) -> None:
        assert columns("SELECT ts FROM bid;") == "ts TIMESTAMP NOT NULL"

    def test_a_string_beside_a_timestamp_is_read_as_one(self) -> None:
        assert expression("ts < '1970-01-02'") == "(ts < TIMESTAMP '1970-01-02 00:00:00')"

    def test_the_least_bigint_can_be_written(self) -> None:
        assert expression("-9223372036854775808") == "-9223372036854775808"

    def test_a_chain_of_thousands_of_conditions_binds(self) -> None:
        many = " OR ".join(f"auction = {i}" for i in range(5_000))
        assert isinstance(top(f"SELECT auction FROM bid WHERE {many};"), Project)

    def test_no_hole_of_the_binder_is_left_in_a_plan(self) -> None:
        plan = plan_of(PER_MIN + "SELECT n + 1, LAG(n) OVER (PARTITION BY auction ORDER BY window_end) FROM per_min;")
        assert not any(isinstance(e, Hole) for n in plan.nodes() for x, _ in n.expressions() for e in walk(x))


class TestParameters:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (5, "5"),
            (True, "TRUE"),
            (Decimal("1.50"), "1.50"),
            (2.5, "2.5"),
            ("x", "'x'"),
            (datetime.date(1970, 1, 2), "DATE '1970-01-02'"),
            (datetime.datetime(1970, 1, 1, 0, 0, 1), "TIMESTAMP '1970-01-01 00:00:01'"),
            (datetime.timedelta(seconds=1), "INTERVAL '1 second'"),
        ],
    )
    def test_a_parameter_is_a_constant_of_its_type(self, value: object, shown: str) -> None:
        environment = Environment({"p": value})  # type: ignore[dict-item]
        node = plan_of("SELECT :p AS x FROM bid;", environment).outputs[0].node
        assert node.describe() == f"{shown} AS x"


class TestStreams:
    def test_computed_columns_stand_above_the_scan(self) -> None:
        text = "CREATE STREAM s (a BIGINT, b AS a + 1, c AS b * 2) WITH (connector = 'file', path = 'x.csv');"
        node = top(text + "SELECT * FROM s;")
        assert described(node) == "project a, (a + 1) AS b, ((a + 1) * 2) AS c\n  scan s"

    def test_an_event_time_may_be_computed(self) -> None:
        text = (
            "CREATE STREAM s (t BIGINT, ts AS TIMESTAMP '1970-01-01' + t * INTERVAL '1' SECOND, "
            "WATERMARK FOR ts AS ts - INTERVAL '2' MINUTE) WITH (connector = 'file', path = 'x.csv');"
        )
        plan = plan_of(text + "SELECT window_end, COUNT(*) FROM "
                       "TUMBLE(s, ts, INTERVAL '1' MINUTE) GROUP BY window_end;")  # fmt: skip
        scan = next(n for n in plan.nodes() if isinstance(n, Scan))
        project = next(n for n in plan.nodes() if isinstance(n, Project))
        assert scan.source.delay_us == 2 * MINUTE and scan.schema.times == ()
        assert replace(project.exprs[1], nullable=True) == scan.source.event_time and not project.exprs[1].nullable
        assert project.schema.times == (TimeAttribute(1),)

    def test_columns_come_from_the_source_when_none_are_declared(self) -> None:
        def fields(name: str, options: object) -> tuple[Field, ...]:
            return (Field("a", BIGINT), Field("b", VARCHAR, False))

        environment = Environment(infer=fields)
        plan = plan_of("CREATE STREAM s WITH (connector = 'file', path = 'x.csv'); SELECT * FROM s;", environment)
        assert str(plan.outputs[0].node.schema) == "a BIGINT, b VARCHAR NOT NULL"

    def test_words_of_options_are_kept_in_lower_case_and_text_as_it_is_written(self) -> None:
        options = "path = 'A.CSV', format = 'Csv', header = 'FALSE', late = 'Fail', \"null\" = 'NA'"
        (source,) = bound(f"CREATE STREAM s (v INTEGER) WITH ({options}); SELECT v FROM s;").sources
        assert dict(source.options) == {
            "connector": "file", "path": "A.CSV", "format": "csv", "header": "false", "late": "fail", "null": "NA",
        }  # fmt: skip

    def test_an_input_from_outside_replaces_the_one_in_the_text(self) -> None:
        environment = Environment(inputs={"bid": {"connector": "file", "path": "other.parquet"}})
        script = bound("SELECT price FROM bid;", environment)
        assert dict(script.sources[0].options) == {"connector": "file", "path": "other.parquet"}

    def test_an_input_from_outside_needs_no_declaration(self) -> None:
        environment = Environment(
            inputs={"t": {"connector": "memory"}}, infer=lambda name, options: (Field("x", DOUBLE),)
        )
        assert str(plan_of("SELECT x FROM t;", environment).outputs[0].node.schema) == "x DOUBLE"

    def test_files_end_and_a_generator_without_a_number_of_rows_does_not(self) -> None:
        assert top("SELECT price FROM bid;").bounded
        assert not top("SELECT v FROM live;").bounded

    def test_sources_are_numbered_in_the_order_of_the_file(self) -> None:
        script = bound("SELECT v FROM live UNION ALL SELECT v FROM plain;")
        assert [(s.name, s.position) for s in script.sources] == [("live", 1), ("plain", 2)]


class TestWindows:
    @pytest.mark.parametrize(
        "source",
        [
            "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
            "TUMBLE(bid, ts, INTERVAL '60' SECOND)",
            "TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE)",
            "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '30' SECOND * 2)",
        ],
    )
    def test_spellings_of_a_tumbling_window_are_one_plan(self, source: str) -> None:
        node = top(f"SELECT window_start, auction, COUNT(*) AS n FROM {source} GROUP BY window_start, auction;")
        assert described(node) == (
            "project window_start, auction, n\n"
            "  window every 1 minute by auction: count(*) AS n  [window_end,window_time]\n"
            "    scan bid  [ts]"
        )

    @pytest.mark.parametrize(
        ("call", "start"),
        [
            ("TUMBLE(ts, INTERVAL '1' MINUTE)", "TUMBLE_START(ts, INTERVAL '1' MINUTE)"),
            ("window(ts, '1 minute')", "window.start"),
            ("window(ts, '1 minute')", "window_start"),
        ],
    )
    def test_a_window_in_group_by_is_the_same_as_one_in_from(self, call: str, start: str) -> None:
        by = f"SELECT {start} AS s, auction, COUNT(*) AS n FROM bid GROUP BY {call}, auction;"
        from_ = f"SELECT window_start AS s, auction, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_start, auction;"
        assert identity(by) == identity(from_)

    def test_hop_takes_slide_then_size_and_spark_size_then_slide(self) -> None:
        flink = top(
            "SELECT COUNT(*) AS n FROM HOP(bid, ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE) GROUP BY window_end;"
        )
        spark = top("SELECT COUNT(*) AS n FROM bid GROUP BY window(ts, '5 minutes', '1 minute');")
        for node in (flink, spark):
            (window,) = node.inputs
            assert isinstance(window, WindowAggregate)
            assert (window.window.kind, window.window.size, window.window.slide) == (
                WindowKind.HOP, 5 * MINUTE, MINUTE,
            )  # fmt: skip

    def test_an_offset_is_reduced_to_one_slide(self) -> None:
        node = top(
            "SELECT COUNT(*) AS n FROM TUMBLE(bid, ts, INTERVAL '1' MINUTE, INTERVAL '61' SECOND) GROUP BY window_end;"
        )
        (window,) = node.inputs
        assert isinstance(window, WindowAggregate) and window.window.offset == 1_000_000

    def test_grouping_by_one_bound_equals_grouping_by_both(self) -> None:
        text = f"SELECT window_start, window_end, COUNT(*) AS n FROM {TUMBLE} GROUP BY "
        assert identity(text + "window_end;") == identity(text + "window_start, window_end;")

    def test_having_stands_above_the_window_and_where_below(self) -> None:
        text = f"SELECT auction FROM {TUMBLE} WHERE price > 1 GROUP BY window_start, auction HAVING COUNT(*) > 2;"
        assert nodes_of(text) == ["scan", "filter", "window", "filter", "project"]

    def test_equal_aggregates_are_computed_once(self) -> None:
        node = top(f"SELECT SUM(price), SUM(price) / COUNT(*), COUNT(*) FROM {TUMBLE} GROUP BY window_start;")
        (window,) = node.inputs
        assert isinstance(window, WindowAggregate) and len(window.aggregates) == 2

    def test_an_alias_is_that_of_the_items_before_however_many_have_it_behind(self) -> None:
        text = "SELECT price AS p, p + 1 AS q, price * 2 AS p FROM bid;"
        assert identity(text) == identity(text.replace("p + 1", "price + 1"))
        alike = f"SELECT auction AS g, auction AS g, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_start, "
        assert identity(alike + "g;") == identity(alike + "auction;")

    def test_aliases_and_ordinals_stand_for_their_expressions_in_group_by(self) -> None:
        text = f"SELECT auction % 10 AS g, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_start, "
        assert identity(text + "g;") == identity(text + "1;")

    def test_an_aggregate_over_not_null_values_of_a_group_is_not_null(self) -> None:
        sums = "SUM(bidder) AS a, SUM(auction) AS b, SUM(bidder) FILTER (WHERE ok) AS c, COUNT(auction) AS d"
        text = f"SELECT {sums} FROM {TUMBLE} GROUP BY window_start;"
        assert columns(text) == "a BIGINT NOT NULL, b BIGINT, c BIGINT, d BIGINT NOT NULL"

    def test_aggregates_of_aggregates_close_with_the_window_they_belong_to(self) -> None:
        node = top(PER_MIN + "SELECT window_end, MAX(n) AS most FROM per_min GROUP BY window_end;")
        (window,) = node.inputs
        assert isinstance(window, WindowAggregate) and window.window.kind is WindowKind.ATTACHED
        assert window.window.time == TimeAttribute(1, shift_us=-1) and window.window.start_column == 0

    def test_windows_of_windows_are_made_over_their_end(self) -> None:
        text = PER_MIN + (
            "SELECT window_start, auction, SUM(n) AS n "
            "FROM TUMBLE(TABLE per_min, DESCRIPTOR(window_end), INTERVAL '1' HOUR) GROUP BY window_start, auction;"
        )
        (window,) = top(text).inputs
        assert isinstance(window, WindowAggregate)
        assert (window.window.kind, window.window.time) == (WindowKind.TUMBLE, TimeAttribute(1, shift_us=-1))

    def test_rows_are_put_into_windows_behind_where_unless_it_reads_a_bound(self) -> None:
        text = f"SELECT auction FROM {TUMBLE} WHERE "
        assert nodes_of(text + "price > 1;") == ["scan", "filter", "assign_windows", "project"]
        assert nodes_of(text + "ts < window_time;") == ["scan", "assign_windows", "filter", "project"]

    def test_a_row_of_an_open_window_has_its_own_time_and_one_ahead_of_it(self) -> None:
        rows = f"SELECT ts, window_end, window_time FROM {TUMBLE}"
        own, end, last = TimeAttribute(0), *(TimeAttribute(c, s, 0, MINUTE - 1) for c, s in ((1, -1), (2, 0)))
        assert top(rows + ";").schema.times == (own, end, last)
        nested = f"SELECT window_time FROM TUMBLE(TABLE ({rows}), DESCRIPTOR(window_time), INTERVAL '1' HOUR);"
        assert top(nested).schema.times == (TimeAttribute(0, 0, 0, 61 * MINUTE - 2),)

    def test_rows_that_waited_for_the_end_of_their_window_have_no_other_time(self) -> None:
        rows = f"SELECT ts, window_end, COUNT(*) OVER (ORDER BY {{}} ROWS UNBOUNDED PRECEDING) AS n FROM {TUMBLE};"
        assert top(rows.format("window_end")).schema.times == (TimeAttribute(1, -1),)
        assert [t.column for t in top(rows.format("ts")).schema.times] == [0, 1]
        without_delay = rows.replace("TABLE bid", "TABLE live")
        assert rows_may_wait(plan_of(without_delay.format("window_time")).nodes())
        assert not rows_may_wait(plan_of(without_delay.format("ts")).nodes())

    def test_a_pair_of_a_window_is_behind_by_what_its_window_was_ahead(self) -> None:
        node = top(
            f"SELECT a.ts, a.window_end FROM {TUMBLE} AS a JOIN {TUMBLE} AS b "
            "USING (window_start, window_end, auction);"
        )
        (join,) = node.inputs
        assert isinstance(join, IntervalJoin)
        assert join.state.text == "left rows for 1 minute and right rows for 1 minute of event time"
        assert node.schema.times == (TimeAttribute(0, 0, MINUTE - 1), TimeAttribute(1, -1, 0, MINUTE - 1))

    def test_unwindowed_groups_of_a_bounded_input_are_final_at_its_end(self) -> None:
        node = top("SELECT auction, SUM(price) AS s FROM bid GROUP BY auction;")
        assert isinstance(node, Aggregate)

    def test_an_aggregate_of_nothing_is_null_without_groups(self) -> None:
        assert columns("SELECT SUM(bidder) AS s, COUNT(*) AS n FROM bid;") == "s BIGINT, n BIGINT NOT NULL"


class TestOver:
    def test_calls_over_one_window_share_an_operator(self) -> None:
        text = (
            "SELECT LAG(price) OVER w AS a, LAG(item, 2, '-') OVER w AS b, COUNT(*) OVER (PARTITION BY item ROWS "
            "UNBOUNDED PRECEDING) AS c FROM bid WINDOW w AS (PARTITION BY auction ORDER BY ts);"
        )
        plan = plan_of(text)
        overs = [n for n in plan.nodes() if isinstance(n, Over)]
        assert [len(o.calls) for o in overs] == [2, 1]
        assert [o.order is not None for o in overs] == [True, False]
        lag = overs[0].calls[1]
        assert isinstance(lag, Lag) and lag.offset == 2 and isinstance(lag.default, Literal)

    def test_a_lag_with_a_default_is_null_only_when_its_value_is(self) -> None:
        text = "SELECT LAG(bidder, 1, 0) OVER (ORDER BY ts) AS a, LAG(bidder) OVER (ORDER BY ts) AS b FROM bid;"
        assert columns(text) == "a BIGINT NOT NULL, b BIGINT"

    def test_over_runs_over_the_rows_of_the_group_by(self) -> None:
        text = (
            f"SELECT auction, COUNT(*) - LAG(COUNT(*), 1, 0) OVER (PARTITION BY auction ORDER BY window_end) AS more "
            f"FROM {TUMBLE} GROUP BY window_end, auction;"
        )
        assert nodes_of(text) == ["scan", "window", "over", "project"]

    def test_qualify_filters_above_over(self) -> None:
        text = "SELECT auction FROM bid QUALIFY LAG(price) OVER (PARTITION BY auction ORDER BY ts) < price;"
        assert nodes_of(text) == ["scan", "over", "filter", "project"]


class TestJoins:
    def look_up(self, on: str) -> TemporalJoin:
        text = PER_MIN + f"SELECT n FROM bid LEFT JOIN per_min FOR SYSTEM_TIME AS OF bid.ts {on};"
        (join,) = top(text).inputs
        assert isinstance(join, TemporalJoin)
        return join

    def test_group_keys_are_found_through_projections(self) -> None:
        join = self.look_up("ON per_min.auction = bid.auction")
        assert [str(k.type) for k in join.left_keys] == ["BIGINT"] and join.residual is None
        assert join.kind is JoinKind.LEFT

    def test_other_conditions_are_tested_on_the_candidate(self) -> None:
        join = self.look_up("ON bid.auction = per_min.auction AND window_end = DATE_TRUNC('minute', bid.ts) AND n > 3")
        assert len(join.left_keys) == 1 and join.residual is not None

    def test_using_equates_columns_of_one_name(self) -> None:
        join = self.look_up("USING (auction)")
        assert isinstance(join.right_keys[0], Column)

    def test_a_column_of_using_has_one_name_and_the_left_value(self) -> None:
        text = PER_MIN + "SELECT auction, n FROM bid JOIN per_min FOR SYSTEM_TIME AS OF bid.ts USING (auction);"
        assert columns(text) == "auction BIGINT, n BIGINT NOT NULL"

    def test_columns_of_the_right_side_may_be_null_in_a_left_join(self) -> None:
        text = (
            PER_MIN
            + "SELECT n FROM bid LEFT JOIN per_min FOR SYSTEM_TIME AS OF bid.ts ON per_min.auction = bid.auction;"
        )
        assert columns(text) == "n BIGINT"

    def joined(self, text: str) -> Join | IntervalJoin:
        return next(n for n in plan_of(PER_MIN + text).nodes()[::-1] if isinstance(n, Join | IntervalJoin))

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT a.price FROM bid AS a, bid AS b WHERE a.auction = b.auction "
            "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND",
            "SELECT n FROM bid RIGHT JOIN per_min ON bid.auction = n AND window_end = ts",
            "SELECT x.n FROM per_min AS x NATURAL JOIN per_min AS y",
        ],
    )
    def test_a_join_with_bounds_on_the_times_keeps_rows_for_so_long(self, text: str) -> None:
        assert self.joined(text + ";").state.bounded

    def test_a_full_join_by_times_is_an_interval_join_whose_rows_have_no_event_time(self) -> None:
        made = self.joined("SELECT n FROM bid FULL JOIN per_min ON bid.auction = n AND window_end = ts;")
        assert isinstance(made, IntervalJoin) and made.kind is JoinKind.FULL and not made.schema.times

    def test_a_right_join_is_a_left_join_with_its_sides_exchanged(self) -> None:
        made = self.joined("SELECT n FROM bid RIGHT JOIN per_min USING (auction);")
        assert isinstance(made, Join) and made.kind is JoinKind.LEFT and "n" in made.left.schema.names
        text = PER_MIN + "SELECT price, n FROM bid RIGHT JOIN per_min USING (auction);"
        assert columns(text) == "price DOUBLE, n BIGINT NOT NULL"

    def test_a_side_in_parentheses_is_joined_first(self) -> None:
        made = self.joined("SELECT b.price FROM bid JOIN (bid AS b JOIN per_min USING (auction)) ON bid.price = n;")
        assert isinstance(made, Join) and isinstance(made.right, Join)

    def test_a_condition_of_where_that_a_comma_list_takes_means_the_same_in_the_whole_from(self) -> None:
        text = PER_MIN + "SELECT n FROM bid, per_min, bid AS b WHERE price = n AND b.auction = n;"
        with pytest.raises(CompileError, match="ambiguous"):
            bound(text)

    def test_unnest_gives_a_column_and_a_number(self) -> None:
        text = "SELECT w, n FROM bid, UNNEST(SPLIT(item, ' ')) WITH ORDINALITY AS t(w, n);"
        assert columns(text) == "w VARCHAR NOT NULL, n BIGINT NOT NULL"


class TestQueries:
    def test_a_view_is_bound_once_and_shared(self) -> None:
        plan = plan_of(PER_MIN + "SELECT n FROM per_min; SELECT total FROM per_min WHERE n > 1;")
        assert sum(isinstance(n, WindowAggregate) for n in plan.nodes()) == 1

    def test_outputs_are_named_result_and_numbered(self) -> None:
        plan = plan_of("SELECT price FROM bid; SELECT item FROM bid;")
        assert [o.name for o in plan.outputs] == ["result", "result_2"]

    def test_repeated_column_names_of_a_result_are_numbered(self) -> None:
        assert top("SELECT price, price, price_1 FROM (SELECT *, item AS price_1 FROM bid) AS b;").schema.names == (
            "price", "price_2", "price_1",
        )  # fmt: skip

    def test_unnamed_columns_are_named_after_what_they_are(self) -> None:
        assert top("SELECT price + 1, lower(item), CAST(auction AS DOUBLE) FROM bid;").schema.names == (
            "col1", "lower", "auction",
        )  # fmt: skip

    def test_union_all_converts_to_common_types(self) -> None:
        text = "SELECT auction AS x, NULL AS y FROM bid UNION ALL SELECT price, item FROM bid;"
        assert columns(text) == "x DOUBLE, y VARCHAR"

    def test_values_have_the_types_that_hold_them(self) -> None:
        assert columns("VALUES (1, NULL, 'x'), (2.5, NULL, NULL);") == (
            "col1 DECIMAL(2,1) NOT NULL, col2 INTEGER, col3 VARCHAR"
        )
        sink = "CREATE SINK o (a DOUBLE, b VARCHAR) WITH (connector = 'memory');"
        assert columns(sink + "INSERT INTO o (b, a) VALUES ('x', 1), (NULL, 2);") == "a DOUBLE NOT NULL, b VARCHAR"

    def test_a_union_keeps_the_time_its_branches_share(self) -> None:
        assert top("SELECT ts FROM bid UNION ALL SELECT ts FROM live;").schema.times == (TimeAttribute(0),)

    def test_common_table_expressions_see_earlier_ones(self) -> None:
        text = "WITH a AS (SELECT price AS p FROM bid), b(q) AS (SELECT p * 2 FROM a) SELECT q FROM b;"
        assert top(text).schema.names == ("q",) and nodes_of(text) == ["scan", "project", "project", "project"]

    def test_limit_belongs_to_the_output(self) -> None:
        assert plan_of("SELECT price FROM bid LIMIT 3;").outputs[0].limit == 3

    def test_order_by_the_end_of_the_window_is_what_windows_do(self) -> None:
        text = f"SELECT window_end, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_end ORDER BY window_end;"
        assert nodes_of(text) == ["scan", "window", "project"]

    def test_names_fold_to_lower_case_unless_quoted(self) -> None:
        assert top('SELECT PRICE, price AS "Price" FROM Bid;').schema.names == ("price", "Price")

    def test_a_star_leaves_columns_out_and_has_others_in_their_place(self) -> None:
        for without in ("EXCLUDE (ts, item, bidder, amount, ok)", "EXCEPT (amount, bidder, item, OK, TS)"):
            assert top(f"SELECT * {without} FROM bid;").schema.names == ("auction", "price")
        text = "SELECT b.* EXCLUDE item REPLACE (price * 2 AS price, lower(item) AS auction), 1 AS x FROM bid AS b;"
        assert columns(text) == (
            "auction VARCHAR, bidder BIGINT NOT NULL, price DOUBLE, amount DECIMAL(12,2), ok BOOLEAN, "
            "ts TIMESTAMP NOT NULL, x INTEGER NOT NULL"
        )
        assert top("SELECT 2 * exclude AS y, replace FROM (SELECT 1 AS exclude, 2 AS replace);").schema.names == (
            "y", "replace",
        )  # fmt: skip

    def test_a_star_may_be_of_one_relation(self) -> None:
        text = (
            PER_MIN
            + "SELECT per_min.* FROM bid JOIN per_min FOR SYSTEM_TIME AS OF bid.ts ON per_min.auction = bid.auction;"
        )
        assert top(text).schema.names == ("window_start", "window_end", "auction", "n", "total")

    def test_insert_converts_and_orders_as_the_sink_declares(self) -> None:
        text = (
            "CREATE SINK out (a DOUBLE, b BIGINT) WITH (connector = 'stdout');"
            "INSERT INTO out (b, a) SELECT bidder, auction FROM bid;"
        )
        plan = plan_of(text)
        assert str(plan.outputs[0].node.schema) == "a DOUBLE, b BIGINT NOT NULL"
        assert plan.outputs[0].sink is not None and plan.outputs[0].name == "out"

    def test_settings_are_collected(self) -> None:
        assert bound("SET parallelism = 4; SET threads = 2;").settings == {"parallelism": 2}

    def test_explain_is_a_plan_of_its_own(self) -> None:
        script: BoundScript = bound("EXPLAIN STAGES SELECT price FROM bid;")
        assert not script.plan.outputs and script.explains[0].stage == "stages"

    def test_a_view_nobody_reads_is_a_warning(self) -> None:
        warnings: tuple[Diagnostic, ...] = bound(PER_MIN + "SELECT price FROM bid;").warnings
        assert [w.message for w in warnings] == ['view "per_min" is never used']

    def test_views_stacked_too_high_are_refused(self) -> None:
        views = "".join(f"CREATE VIEW v{i + 1} AS SELECT v + 1 AS v FROM v{i};\n" for i in range(300))
        with pytest.raises(CompileError) as caught:
            bound("CREATE VIEW v0 AS SELECT v FROM live;\n" + views)
        assert caught.value.code == "CQ0103"

    def test_columns_computed_from_each_other_may_not_grow_without_bound(self) -> None:
        doubling = ", ".join(f"c{i + 1} AS c{i} + c{i}" for i in range(60))
        with pytest.raises(CompileError) as caught:
            bound(f"CREATE STREAM s (c0 BIGINT, {doubling}) WITH (connector = 'file', path = 'x.csv');")
        assert caught.value.code == "CQ0103"

    def test_stars_of_stars_may_not_grow_without_bound(self) -> None:
        views = "".join(f"CREATE VIEW w{i + 1} AS SELECT *, * FROM w{i};\n" for i in range(40))
        with pytest.raises(CompileError) as caught:
            bound("CREATE VIEW w0 AS SELECT v FROM live;\n" + views)
        assert caught.value.code == "CQ0103"

    def test_aliases_of_aliases_may_not_grow_without_bound(self) -> None:
        aliases = ", ".join(f"a{i} + a{i} AS a{i + 1}" for i in range(100))
        with pytest.raises(CompileError) as caught:
            bound(f"SELECT auction AS a0, {aliases} FROM bid GROUP BY a100;")
        assert {d.code for d in caught.value.diagnostics} == {"CQ0103"}

    def test_unions_of_unions_are_followed_once(self) -> None:
        views = "".join(
            f"CREATE VIEW v{i + 1} AS SELECT * FROM v{i} WHERE n > {i} UNION ALL SELECT * FROM v{i} WHERE n < 0;\n"
            for i in range(40)
        )
        text = PER_MIN.replace("per_min", "v0") + views + "SELECT window_end, SUM(n) FROM v40 GROUP BY window_end;"
        assert nodes_of(text).count("window") == 2


def test_queries_that_ship_bind_and_need_no_files() -> None:

    from cq.errors import SourceText
    from cq.grammar.parser import parse
    from cq.planner.binding.binder import bind
    from cq.planner.plan.verify import verify

    assert len(SHIPPED) >= 28
    for path in SHIPPED:
        text = path.read_text(encoding="utf-8")
        script = bind(parse(SourceText(path.name, text)), Environment(infer=infer))
        verify(script.plan)
        assert text.startswith("-- ") and "?" in script.description, f"{path.name} does not open with its question"
        assert all(s.option("connector") == "generator" for s in script.sources)


@pytest.mark.parametrize(("window", "closes"), [("TUMBLE", 1), ("HOP", 1), ("CUMULATE", 0)])
def test_rows_ordered_by_the_start_of_windows_of_one_length_leave_as_these_close(window: str, closes: int) -> None:
    lengths = "INTERVAL '1' MINUTE" if window == "TUMBLE" else "INTERVAL '1' MINUTE, INTERVAL '2' MINUTE"
    rows = f"SELECT window_start, price FROM {window}(TABLE bid, DESCRIPTOR(ts), {lengths})"
    plan = topological([top(f"{rows} ORDER BY window_start, price")])
    (sort,) = (n for n in plan if isinstance(n, Sort))
    assert len(sort.times) == 2 * closes
