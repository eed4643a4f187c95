"""`cq check`: every mistake with its place, and what a good query reads and gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import BIDS, cq, ref


def test_check_reports_every_mistake_with_its_place(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bad.cq").write_text(BIDS + "SELECT prize FROM bid;\nSELECT LENGHT('x') FROM bid;\n")
    code, _, err = cq(capfd, "check", "bad.cq")
    assert code == 1 and err.count("error[") == 2 and "--> bad.cq:3:8" in err and "^^^^^" in err
    code, out, _ = cq(capfd, "check", "bad.cq", "--format", "json")
    assert code == 1 and [(d["line"], d["code"]) for d in json.loads(out)] == [(3, "CQ0203"), (4, "CQ0205")]


def test_check_says_ok_only_when_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = cq(capfd, "check", "-c", BIDS + "SELECT ARRAY[SPLIT('a b', ' ')] AS words FROM bid;")
    assert (code, out) == (1, "") and err.startswith("error[CQ0501]")
    warned = BIDS + "SELECT id FROM bid WHERE price = NULL;"
    assert cq(capfd, "check", "-c", warned)[1].startswith("ok: ")
    assert cq(capfd, "check", "--strict", "-c", warned)[:2] == (1, "")


def test_check_has_nothing_against_joins_of_the_same_windows(capfd: pytest.CaptureFixture[str]) -> None:
    text = (
        "CREATE STREAM t (id BIGINT, at TIMESTAMP, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 't.csv');"
        "CREATE STREAM u (at TIMESTAMP, WATERMARK FOR at) WITH (path = 'u.csv');"
        "CREATE VIEW w AS SELECT window_end FROM HOP(u, at, INTERVAL '1' MINUTE, INTERVAL '1' MINUTE);"
        "SELECT id FROM TUMBLE(t, ts, INTERVAL '1' MINUTE) WHERE window_end IN (SELECT window_end FROM w)"
    )
    assert cq(capfd, "check", "--strict", "-c", text)[0] == 0


@pytest.mark.parametrize("word", ["", "NOT "])
def test_check_has_nothing_against_sub_queries_whose_times_bound_the_state(
    capfd: pytest.CaptureFixture[str], word: str
) -> None:
    text = (
        "CREATE STREAM b (WATERMARK FOR ts) WITH (connector = 'generator', workload = 'bids');"
        f"SELECT x.price FROM b AS x WHERE {word}EXISTS (SELECT 1 FROM b AS y WHERE y.auction = x.auction "
        "AND y.ts > x.ts AND y.ts <= x.ts + INTERVAL '5' SECOND)"
    )
    assert cq(capfd, "check", "--strict", "-c", text)[0] == 0


def test_check_of_a_good_query_says_what_it_reads_and_gives(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = cq(capfd, "check", "q.cq")
    assert (code, err) == (0, "") and out.startswith("ok: reads bid; gives result (window_start TIMESTAMP")


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        (BIDS + "SELECT id FROM bid WHERE price = NULL", "CQ0308", "price = NULL"),
        (BIDS + "SELECT id FROM bid WHERE price <> NULL OR id > 1", "CQ0308", "price <> NULL"),
        (BIDS + "SELECT id FROM bid WHERE 1 > 2", "CQ0308", "1 > 2"),
        (BIDS + "CREATE STREAM other (a INT) WITH (path = 'a.csv'); SELECT id FROM bid", "CQ0201", "other"),
        (BIDS + "CREATE SINK gone WITH (path = 'a.csv'); SELECT id FROM bid", "CQ0201", "gone"),
        (BIDS + "WITH c AS (SELECT * FROM bid) SELECT id FROM bid", "CQ0201", "c"),
        (BIDS + "CREATE VIEW v AS SELECT price FROM bid; SELECT id FROM bid", "CQ0201", "v"),
        (BIDS + "SELECT id AS a, price AS a FROM bid", "CQ0409", "price"),
        (BIDS + "SELECT * FROM bid AS a\nJOIN bid AS b ON a.id = b.id", "CQ0409", "*"),
        (BIDS + "SELECT *, 1 AS x FROM bid AS a JOIN bid AS b ON a.id = b.id", "CQ0409", "*"),
        (BIDS + "SELECT a.*, b.* FROM bid AS a JOIN bid AS b ON a.id = b.id", "CQ0409", "b.*"),
        (BIDS + "SELECT AVG(price)::NUMERIC AS p FROM bid", "CQ0309", "NUMERIC"),
        (BIDS + "SELECT id::VARCHAR(3) AS s,\nprice::VARCHAR(4) AS t FROM bid", "CQ0310", "VARCHAR(3)"),
        (BIDS + "SELECT CAST('a' AS VARBINARY(3)) AS s FROM bid", "CQ0310", "VARBINARY(3)"),
        (
            "CREATE STREAM b WITH (connector = 'generator', workload = 'bids');"
            "SELECT SUM(price) OVER (PARTITION BY auction ROWS UNBOUNDED PRECEDING) AS s FROM b",
            "CQ0407",
            "SUM(price) OVER (PARTITION BY auction ROWS UNBOUNDED PRECEDING)",
        ),
        (
            "CREATE STREAM b WITH (connector = 'generator', workload = 'bids');"
            "SELECT x.price FROM b AS x JOIN b AS y USING (auction)",
            "CQ0407",
            "b AS x JOIN b AS y USING (auction)",
        ),
        (
            "CREATE STREAM b WITH (connector = 'generator', workload = 'bids');"
            "SELECT price FROM b WHERE auction IN (SELECT bidder FROM b)",
            "CQ0407",
            "auction IN (SELECT bidder FROM b)",
        ),
        (
            "CREATE STREAM b (WATERMARK FOR ts) WITH (connector = 'generator', workload = 'bids');\n"
            "SELECT x.price FROM b AS x ASOF JOIN b AS y ON x.auction = y.auction AND x.ts >= y.ts",
            "CQ0407",
            "b AS x ASOF JOIN b AS y ON x.auction = y.auction AND x.ts >= y.ts",
        ),
        (BIDS + "SELECT x.id FROM bid AS x JOIN bid AS y ON TRUE", "CQ0410", "bid AS x JOIN bid AS y ON TRUE"),
        (BIDS + "SELECT x.id FROM bid AS x, bid AS y WHERE x.id < y.id", "CQ0410", "bid AS y"),
        (
            "CREATE STREAM t (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 't.csv');"
            "CREATE VIEW w AS SELECT window_end FROM TUMBLE(t, ts, INTERVAL '5' MINUTE);\n"
            "SELECT id FROM TUMBLE(t, ts, INTERVAL '1' MINUTE) WHERE window_end IN (SELECT window_end FROM w)",
            "CQ0308",
            "window_end IN (SELECT window_end FROM w)",
        ),
    ],
)
def test_check_warns_of_what_was_probably_not_meant(
    capfd: pytest.CaptureFixture[str], text: str, code: str, marked: str
) -> None:
    assert_warned(capfd, text, code, marked)


def test_columns_that_a_star_repeats_are_listed_and_can_be_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    text = BIDS + "SELECT {} FROM bid AS a JOIN bid AS b ON a.id = b.id"
    err = cq(capfd, "check", "-c", text.format("*"))[2]
    assert "names of others: they become id_1, price_1" in err
    way = err.partition("= help: or leave them out: ")[2].splitlines()[0]
    assert way.startswith("a.*, b.* EXCLUDE (id, price") and cq(capfd, "check", "-c", text.format(way))[2] == ""


def assert_warned(capfd: pytest.CaptureFixture[str], text: str, code: str, marked: str) -> None:
    done, _, err = cq(capfd, "check", "-c", text)
    assert done == 0 and err.startswith(f"warning[{code}]") and err.count("warning[") == 1, err
    line, carets = err.splitlines()[3:5]
    assert line[carets.index("^") : carets.rindex("^") + 1] == marked
    assert cq(capfd, "check", "--strict", "-c", text)[0] == 1


SEEN = "CREATE TABLE seen (k BIGINT PRIMARY KEY, n BIGINT);\n"
LISTED = "CREATE TABLE seen (k BIGINT PRIMARY KEY, n BIGINT[]);\n"
FILLED = "CREATE STREAM seen (k BIGINT, n INT);\n"
WRITTEN = "CREATE SINK seen (k BIGINT, n SMALLINT) WITH (path = 'seen.csv');\n"
FIRED = "CREATE TRIGGER t AFTER INSERT ON bid "


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (SEEN + FIRED + "INSERT INTO seen VALUES (id, price * 1.7); SELECT * FROM seen", "price * 1.7"),
        (SEEN + FIRED + "UPDATE seen SET n = 1.7 WHERE k IN (id, 3); SELECT * FROM seen", "1.7"),
        (
            SEEN + FIRED + "INSERT INTO seen VALUES (id, 1) ON CONFLICT (k) DO UPDATE SET n = seen.n / 2.0;\n"
            "SELECT * FROM seen",
            "seen.n / 2.0",
        ),
        (FILLED + FIRED + "INSERT INTO seen VALUES (id, new.price); SELECT * FROM seen", "new.price"),
        (WRITTEN + FIRED + "INSERT INTO seen VALUES (price, 1)", "price"),
        (WRITTEN + "INSERT INTO seen SELECT AVG(price), COUNT(*) FROM bid", "AVG(price)"),
        (WRITTEN + "INSERT INTO seen SELECT id, ROUND(price) FROM bid UNION ALL SELECT id, price FROM bid", "price"),
        (WRITTEN + "INSERT INTO seen SELECT 1, 2.0 UNION ALL SELECT id, ROUND(price) / 2 FROM bid", "ROUND(price) / 2"),
        (WRITTEN + "INSERT INTO seen VALUES (1, 2.0), (2, 2.5)", "VALUES (1, 2.0), (2, 2.5)"),
        (
            WRITTEN + "INSERT INTO seen SELECT * FROM (SELECT id, price FROM bid UNION ALL SELECT id, 1 FROM bid) AS t",
            "price",
        ),
        (SEEN + "INSERT INTO seen VALUES (1, -2.5); SELECT * FROM seen", "-2.5"),
        ("CREATE TABLE seen (k BIGINT PRIMARY KEY, n BIGINT DEFAULT 0.5);\nSELECT * FROM seen", "0.5"),
        (LISTED + "INSERT INTO seen VALUES (1, [2, 1.5]); SELECT * FROM seen", "1.5"),
        (LISTED + FIRED + "INSERT INTO seen VALUES (id, [ROUND(price), price * 2]); SELECT * FROM seen", "price * 2"),
        (
            LISTED + FIRED + "UPDATE seen SET n = SEQUENCE(1, id) || [0.5] WHERE k = id; SELECT * FROM seen",
            "SEQUENCE(1, id) || [0.5]",
        ),
        (
            "CREATE SINK seen (n BIGINT[]) WITH (path = 'seen.json');\nINSERT INTO seen SELECT [id, price] FROM bid",
            "price",
        ),
        (
            SEEN + FIRED + "INSERT INTO seen VALUES (id, CAST('1.5' || id AS DOUBLE)); SELECT * FROM seen",
            "CAST('1.5' || id AS DOUBLE)",
        ),
    ],
)
def test_check_warns_of_decimal_places_that_a_column_does_not_hold(
    capfd: pytest.CaptureFixture[str], text: str, marked: str
) -> None:
    streams = BIDS if "bid" in text else ""
    assert_warned(capfd, streams + text, "CQ0309", marked)


@pytest.mark.parametrize(
    "value",
    ["2.0", "-3.0 * 2", "ROUND(price)", "ROUND(price, 0)", "CASE WHEN id > 1 THEN FLOOR(price) ELSE TRUNC(price) END",
     "NULL", "CAST(price AS BIGINT)", "COALESCE(ROUND(price), 0)"],
)  # fmt: skip
def test_check_has_nothing_against_whole_numbers_in_columns_of_them(
    capfd: pytest.CaptureFixture[str], value: str
) -> None:
    row = f"INSERT INTO seen VALUES (id, {value}) ON CONFLICT (k) DO UPDATE SET n = {value};"
    for text in (SEEN + FIRED + row + "SELECT * FROM seen", WRITTEN + f"INSERT INTO seen SELECT id, {value} FROM bid"):
        assert cq(capfd, "check", "--strict", "-c", BIDS + text)[0::2] == (0, "")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, ROUND(price) FROM bid UNION ALL SELECT id, TRUNC(price) FROM bid",
        "SELECT id, ROUND(price) FROM bid UNION SELECT id, 2.0 FROM bid",
        "SELECT id, ROUND(price) FROM bid INTERSECT ALL SELECT id, 2.0 FROM bid",
        "SELECT id, ROUND(price) AS price FROM bid UNION ALL BY NAME SELECT 3 AS price, id FROM bid",
        "SELECT DISTINCT id, ROUND(price) FROM bid",
        "SELECT id, x + id FROM (SELECT id, ROUND(price) AS x FROM bid UNION ALL SELECT id, id FROM bid) AS t",
        "SELECT id, x FROM rounded GROUP BY id, x ORDER BY id LIMIT 2",
        "VALUES (1, 2.0), (2, NULL), (3, ROUND(2.5))",
        "SELECT * FROM (VALUES (1, 2e0)) AS t(a, b) UNION ALL SELECT id, ROUND(price) FROM bid",
        "SELECT id, x[1] FROM (SELECT id, [ROUND(price), 2.0] AS x FROM bid UNION ALL SELECT id, [id] FROM bid) AS t",
    ],
)
def test_check_has_nothing_against_whole_numbers_from_below(capfd: pytest.CaptureFixture[str], query: str) -> None:
    view = "CREATE VIEW rounded AS SELECT id, ROUND(price) AS x FROM bid;\n" if "rounded" in query else ""
    bid = BIDS if "bid" in query or view else ""
    assert cq(capfd, "check", "--strict", "-c", bid + view + WRITTEN + "INSERT INTO seen " + query)[0::2] == (0, "")


@pytest.mark.parametrize(
    "value",
    ["[2.0, NULL]", "[ROUND(price), id]", "[CAST(1.5 AS BIGINT), 2.0]", "CAST([price, 1.5] AS BIGINT[])",
     "ARRAY_SORT([1.0] || [id])", "[]", "CASE WHEN id > 1 THEN [1.0] END"],
)  # fmt: skip
def test_check_has_nothing_against_whole_numbers_in_arrays_of_them(
    capfd: pytest.CaptureFixture[str], value: str
) -> None:
    row = f"INSERT INTO seen VALUES (id, {value});"
    assert cq(capfd, "check", "--strict", "-c", BIDS + LISTED + FIRED + row + "SELECT * FROM seen")[0::2] == (0, "")


@pytest.mark.parametrize(
    ("column", "value", "ways", "stored"),
    [
        ("BIGINT", "price", {"CAST(ROUND(…) AS BIGINT)": "2", "CAST(… AS BIGINT)": "1"}, "{}"),
        ("BIGINT[]", "[id, price]", {"CAST(ROUND(…) AS BIGINT)": "2", "CAST(… AS BIGINT)": "1"}, "[1,{}]"),
        ("BIGINT[]", "[id] || [price]", {"CAST(… AS BIGINT ARRAY)": "[1,1]"}, "{}"),
    ],
)  # fmt: skip
def test_way_out_of_lost_decimal_places_is_taken_without_a_warning(
    capfd: pytest.CaptureFixture[str], column: str, value: str, ways: dict[str, str], stored: str
) -> None:
    sink = f"CREATE SINK seen (n {column}) WITH (path = 'seen.json');\n"
    query = BIDS + sink + "INSERT INTO seen SELECT {} FROM bid LIMIT 1"
    err = cq(capfd, "check", "-c", query.format(value))[2]
    marked = value if " || " in value else "price"
    for way, number in ways.items():
        assert way in err
        taken = query.format(value.replace(marked, way.replace("…", marked)))
        assert ref(capfd, "-c", taken)[0] == 0 and cq(capfd, "check", "--strict", "-c", taken)[0::2] == (0, "")
        assert json.loads(Path("seen.json").read_text())["n"] == json.loads(stored.format(number))


def test_a_table_that_a_trigger_writes_is_used_and_one_with_rows_alone_is_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = (
        "CREATE TABLE log (k BIGINT PRIMARY KEY); CREATE TABLE idle (k BIGINT PRIMARY KEY);"
        "INSERT INTO idle VALUES (1);"
        "CREATE TRIGGER t AFTER INSERT ON bid BEGIN IF id > 3 THEN INSERT INTO log VALUES (id); END IF; END;"
        "SELECT * FROM t"
    )
    err = cq(capfd, "check", "-c", BIDS + text)[2]
    assert err.startswith('warning[CQ0201]: table "idle" is never read') and err.count("warning[") == 1, err


def test_check_warns_of_no_product_with_a_single_row(capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT id, total FROM bid, (SELECT SUM(price) AS total FROM bid) AS t WHERE price < total"
    assert cq(capfd, "check", "--strict", "-c", BIDS + query)[0] == 0


def test_check_has_nothing_against_whole_numbers_and_written_digits_as_decimals(
    capfd: pytest.CaptureFixture[str],
) -> None:
    query = "SELECT id::NUMERIC AS a, CAST(AVG(price) AS DECIMAL(18, 2)) AS p FROM bid GROUP BY id"
    assert cq(capfd, "check", "--strict", "-c", BIDS + query)[0] == 0


def test_check_names_a_value_for_a_parameter_the_query_does_not_have(capfd: pytest.CaptureFixture[str]) -> None:
    assert "CQ0206" in cq(capfd, "check", "q.cq", "--var", "mn=1")[2]


@pytest.mark.parametrize("text", ["TABLE bid", "bid", "INPUT => TABLE bid"])
def test_a_stream_read_by_a_window_is_read(capfd: pytest.CaptureFixture[str], text: str) -> None:
    query = f"SELECT COUNT(*) AS n FROM TUMBLE({text}, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start"
    code, _, err = cq(capfd, "check", "-c", BIDS + query)
    assert (code, err) in {(0, ""), (1, err)} and "never read" not in err


def test_check_finds_what_the_native_engine_cannot_run(capfd: pytest.CaptureFixture[str]) -> None:
    many = ", ".join(f"t AS c{n}" for n in range(401))
    code, _, err = cq(capfd, "check", "-c", f"CREATE STREAM s (t VARCHAR); SELECT {many} FROM s")
    assert code == 1 and "CQ0802" in err and "--engine reference" in err
