"""What a row takes that a join keeps."""

import pytest
from cases import Prepared, Way

from cq.compiler.passes import compile as compile_query
from cq.runtime.base.kernel import library
from cq.runtime.containers import strings
from cq.runtime.containers.log_words import RECORD_VALUES
from cq.runtime.containers.multimap_words import ROW_VALUES

STREAMS = """
CREATE STREAM bid (ts TIMESTAMP, auction BIGINT NOT NULL, price BIGINT NOT NULL, WATERMARK FOR ts)
WITH (path = 'bid.csv');
CREATE STREAM ask (auction BIGINT NOT NULL, asked BIGINT NOT NULL, ts TIMESTAMP, WATERMARK FOR ts)
WITH (path = 'ask.csv');
SELECT price, asked, b.ts AS at, a.ts AS its FROM
"""
TIMED = "bid AS b JOIN ask AS a ON b.auction = a.auction AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' SECOND"
WINDOWED = """
TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND) AS b JOIN TUMBLE(TABLE ask, DESCRIPTOR(ts), INTERVAL '1' SECOND)
AS a ON b.window_end = a.window_end AND b.auction = a.auction
"""


def shapes_of(join, container):
    """What is behind the slots of this container that the join has."""
    (pipeline,) = compile_query(STREAMS + join + ";").after("emit")
    return [slot.shapes for slot in pipeline.stages[0].slots if slot.container == container]


def test_a_kept_row_has_no_word_for_the_time_that_its_expiry_says():
    assert [rows.entry_words - RECORD_VALUES for _, rows in shapes_of(TIMED, "log")] == [2, 2]


@pytest.mark.parametrize(("kind", "words"), [("JOIN", [2, 2]), ("LEFT JOIN", [3, 2]), ("FULL JOIN", [3, 3])])
def test_a_row_in_a_window_has_words_for_what_neither_its_key_nor_the_window_says(kind, words):
    """When it was is a column like others. One that may leave without a match says whether it has one."""
    ((_, *rows),) = shapes_of(WINDOWED.replace("JOIN", kind), "runs")
    assert [shape.entry_words for shape in rows] == words


def test_a_key_that_is_computed_says_no_column():
    ((_, *rows),) = shapes_of(WINDOWED.replace("b.auction = ", "b.auction + 0 = "), "runs")
    assert [shape.entry_words for shape in rows] == [3, 2]


@pytest.mark.parametrize(
    ("join", "words"),
    [
        ("o JOIN p ON o.k = p.k", {"left": 2, "right": 1}),
        ("o JOIN p ON o.k = p.k AND o.v = p.v", {"left": 1, "right": 0}),
        ("o JOIN p ON o.k = p.k AND o.d = p.k", {"left": 2, "right": 1}),  # the DOUBLE may be -0.0
        ("o JOIN p ON o.k + 1 = p.k", {"left": 3, "right": 1}),
    ],
)
def test_a_row_that_stays_has_no_word_for_what_its_key_says(join, words):
    """Of columns that are a key, unless equal values may be of different bits. A computed key says no column."""
    streams = """
    CREATE STREAM o (k BIGINT NOT NULL, v BIGINT NOT NULL, d DOUBLE NOT NULL) WITH (path = 'o.csv');
    CREATE STREAM p (v BIGINT NOT NULL, k BIGINT NOT NULL) WITH (path = 'p.csv');
    """
    (pipeline,) = compile_query(f"{streams} SELECT * FROM {join};").after("emit")
    kept = {slot.name: slot.shapes[1].entry_words - ROW_VALUES for slot in pipeline.stages[0].slots}
    assert kept == words


def test_a_text_that_takes_the_word_of_a_serial_leaves_no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took the serial for the length of the text before it: tables of text keys were compacted again and again."""
    declared = "(w VARCHAR NOT NULL, n BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts) WITH (path = 's.csv')"
    made = Prepared(
        f"CREATE STREAM a {declared}; CREATE STREAM b {declared};"
        "SELECT a.n, b.n AS m FROM a ASOF JOIN b ON a.w = b.w AND a.ts >= b.ts"
    )
    rows = [(f"a key of more bytes {n}", n, n) for n in range(400)]
    made.give({"a": rows, "b": rows})
    expected = made.reference()
    library()  # compiled as it is
    compacted: list[int] = []
    monkeypatch.setattr(strings, "table_compact", lambda table: compacted.append(table) or 1)
    assert made.native(Way(0, interpreted=True)) == expected and not compacted
