"""What later rows need is fetched for the rows of a port, whether or not they are in the same segment."""

import re

import pytest

from cq.compiler.passes import compile as compile_query

JOIN = """
CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 'bid.csv');
CREATE STREAM ask (auction BIGINT, asked BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 'ask.csv');
SELECT b.auction, price, asked FROM bid AS b JOIN ask AS a
  ON b.auction = a.auction AND a.ts BETWEEN b.ts + INTERVAL '20' SECOND AND b.ts + INTERVAL '21' SECOND;
"""

WINDOWS = """
CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 'bid.csv');
SELECT window_start, auction, COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND)
GROUP BY window_start, window_end, auction;
"""


def modules(query, workers):
    (pipeline,) = compile_query(query).for_workers(workers).after("emit")
    return [stage.module for stage in pipeline.stages]


def module(workers):
    (only,) = modules(JOIN, workers)
    return only


@pytest.mark.parametrize("port", [0, 1])
def test_what_is_fetched_ahead_is_that_of_rows_behind_the_segment_too(port):
    """Behind the rows of a segment of one input, or of both, are those of the next one."""
    body = module(1).split("def rows(")[1].split("\ndef ")[0]
    columns = re.search(rf"(columns\d+) = ld_i64\(ld_i64\(batch, BATCH_PORTS\), {port}\)", body)[1]
    rows = re.findall(rf"(rows\d+) = ld_i64\({columns}, .*COLUMN_ROWS\)", body)
    ahead = re.findall(r"ahead\d+ = (.*)", body.split("if source == ")[port + 1])
    assert ahead and all(re.fullmatch(rf"min\(i \+ [A-Z_]+, (?:{'|'.join(rows)}) - 1\)", a) for a in ahead)


@pytest.mark.parametrize("port", [0, 1])
def test_in_lanes_it_is_that_of_the_rows_of_the_port_in_the_share(port):
    """What is there may be another lane's, or anything: then the last row of the port is fetched for, or none."""
    body = module(4).split("def rows(")[1].split("\ndef ")[0]
    columns = re.search(rf"(columns\d+) = ld_i64\(ld_i64\(batch, BATCH_PORTS\), {port}\)", body)[1]
    rows = re.findall(rf"(rows\d+) = ld_i64\({columns}, .*COLUMN_ROWS\)", body)
    ahead = re.findall(r"ahead\d+ = (.*)", body.split("if source == ")[port + 1])
    found = rf"min\(ld_i64\(places\d+, place \+ [A-Z_]+\) & \d+, (?:{'|'.join(rows)}) - 1\)"
    assert ahead and all(re.fullmatch(found, a) for a in ahead)


def test_what_is_changed_is_fetched_to_be_written_and_what_a_join_looks_up_to_be_read():
    """Of groups that two workers make, each has the line that the other one had last."""
    filled, collector = modules(WINDOWS, 2)
    for groups in (filled, collector):
        assert "prefetch_to_write(" in groups
    joined = module(1)
    assert re.search(r"\bprefetch\(", joined), "what the other side has is read"
    assert len(re.findall(r"prefetch_to_write\(record\d+\)", joined)) == 2, "each side links behind its last record"


@pytest.mark.parametrize(
    ("key", "what", "ends"),
    [
        ("BIGINT", "MEDIAN(v)", 1), ("BIGINT", "MEDIAN(v), MODE(k), ARRAY_AGG(v)", 3), ("BIGINT", "SUM(v)", 0),
        ("BIGINT", "APPROX_COUNT_DISTINCT(v)", 0), ("VARCHAR", "MEDIAN(v)", 0),
    ],
)  # fmt: skip
def test_the_ends_of_lists_are_fetched_for_keys_that_are_cheap_to_hash(key, what, ends):
    """A sketch is written anywhere; texts would be hashed twice."""
    text = f"""
    CREATE STREAM s (k {key}, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 's.csv');
    SELECT k, {what} FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) GROUP BY window_start, window_end, k;
    """
    (pipeline,) = compile_query(text).for_workers(1).after("emit")
    assert len(re.findall(r"prefetch_to_write\(arena\d+ \+ ", pipeline.stages[0].module)) == ends


def of_sets(key, what):
    """The module of a query over sets of distinct values."""
    text = f"""
    CREATE STREAM s (k {key}, v BIGINT, w DOUBLE, x VARCHAR, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 's.csv');
    SELECT k, {what} FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) GROUP BY window_start, window_end, k;
    """
    (only,) = modules(text, 1)
    return only


@pytest.mark.parametrize(
    ("key", "what", "members"),
    [
        ("BIGINT", "COUNT(DISTINCT v)", 1), ("BIGINT", "COUNT(DISTINCT v), COUNT(DISTINCT w)", 2),
        ("BIGINT", "COUNT(DISTINCT v + 1)", 0), ("BIGINT", "COUNT(DISTINCT x)", 0), ("VARCHAR", "COUNT(DISTINCT v)", 0),
    ],
)  # fmt: skip
def test_members_of_sets_are_fetched_by_the_number_of_the_group_that_a_later_row_is_of(key, what, members):
    """Texts would be hashed twice, and computed values computed. The group is found once for all sets."""
    body, without = of_sets(key, what), of_sets(key, "COUNT(DISTINCT v + 1)")
    assert len(re.findall(r"= ld_i64\(at\d+, GROUP_NUMBER\)", body)) == min(members, 1)
    assert body.count("prefetch") == without.count("prefetch") + 2 * members, "a slot, or a place of an index"
