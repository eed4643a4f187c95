"""Bodies of triggers that ask for trouble: the event is rejected, the text is refused, or the result is right.

Whatever runs the transactions, nothing of an event is half applied: what a body has changed before the trouble is as it
was. The outcomes are those of docs/transactions.md and docs/language.md.
"""

from __future__ import annotations

import pytest
from cases import Prepared, Way
from changed_settings import change_settings

from cq.compiler.passes import compile
from cq.errors import CompileError
from cq.records import dataclass
from cq.ways import SCHEMES, UNCHECKED

SCRIPT = """CREATE STREAM s (a BIGINT, b BIGINT, x BIGINT, d BIGINT ARRAY, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'memory');
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0));
INSERT INTO t VALUES (1, 10), (2, 20), (3, 9223372036854775807);
CREATE TABLE tally (k BIGINT PRIMARY KEY, m BIGINT);
INSERT INTO tally VALUES (1, 0), (2, 0);
CREATE TRIGGER g AFTER INSERT ON s FOR EACH ROW BEGIN ATOMIC {body} END;
"""
SHOWN = "SELECT reason FROM g_rejected; SELECT * FROM t;"
MOST = 2**63 - 1
TOUCH = "UPDATE t SET n = n + 1 WHERE k = 1;"  # is undone where the event is rejected
CHECKED = "CHECK (n >= 0) of t"

Event = tuple[int | None, int | None, int | None, list[int | None] | None]


@dataclass(frozen=True)
class Hostile:
    """A body, events, the reasons of those that are rejected, and the rows that are left."""

    body: str
    events: tuple[Event, ...]
    rejected: tuple[str, ...]
    left: dict[int, int]


BODIES = {
    "a key from a sub-query": Hostile(
        "UPDATE t SET n = n + new.x WHERE k = (SELECT o.n - 9 FROM t AS o WHERE o.k = new.a);",
        ((1, None, 5, None), (2, None, 5, None), (9, None, 5, None)),  # row 1; row 11, which is none; no key
        (),
        {1: 15, 2: 20, 3: MOST},
    ),
    "division by zero in a guard": Hostile(
        f"{TOUCH} IF 10 / new.x > 3 THEN UPDATE t SET n = n - new.x WHERE k = 2; END IF;",
        ((None, None, 0, None), (None, None, 2, None), (None, None, 0, None)),
        ("division by zero", "division by zero"),
        {1: 11, 2: 18, 3: MOST},
    ),
    "overflow in an update": Hostile(
        f"{TOUCH} UPDATE t SET n = n + new.x WHERE k = new.a;",
        ((3, None, 1, None), (2, None, 1, None), (3, None, 0, None)),
        ("a number is out of range",),
        {1: 12, 2: 21, 3: MOST},
    ),
    "CHECK on a missing row": Hostile(
        f"{TOUCH} UPDATE t SET n = -1 WHERE k = new.a; INSERT INTO t VALUES (new.b, new.x);",
        ((9, 4, -1, None), (9, 5, 0, None), (1, 6, 0, None)),  # updating no row tests nothing; inserting does
        (CHECKED, CHECKED),
        {1: 11, 2: 20, 3: MOST, 5: 0},
    ),
    "a transfer to oneself": Hostile(
        "UPDATE t SET n = n - new.x WHERE k = new.a; UPDATE t SET n = n + new.x WHERE k = new.b;",
        ((1, 1, 10, None), (1, 1, 11, None), (1, 2, 4, None)),  # more than there is, for a moment
        (CHECKED,),
        {1: 6, 2: 24, 3: MOST},
    ),
    "a key that an array names twice": Hostile(
        f"{TOUCH} UPDATE t SET n = n - u.m FROM UNNEST(new.d) AS u(m) WHERE t.k = 2;",
        ((None, None, None, [5, 5]), (None, None, None, [9, 9]), (None, None, None, [1, None])),
        (CHECKED, "t.n cannot be NULL"),
        {1: 11, 2: 10, 3: MOST},
    ),
    "keys that arrays name twice": Hostile(
        f"UPDATE t SET n = n - 4 FROM UNNEST(new.d) AS u(k) WHERE t.k = u.k; {TOUCH}",
        ((None, None, None, [1, 2, 1]), (None, None, None, [2, 1]), (None, None, None, [2, 2, 2, 2, 2])),
        (CHECKED, CHECKED),
        {1: 3, 2: 16, 3: MOST},
    ),
    "a row that is there already, after changes": Hostile(
        f"{TOUCH} DELETE FROM t WHERE k = new.a; INSERT INTO t VALUES (new.b, 7);",
        ((2, 1, None, None), (2, 2, None, None)),
        ("t has a row with this key",),
        {1: 11, 2: 7, 3: MOST},
    ),
    "keys that an array inserts twice, after changes": Hostile(
        f"{TOUCH} DELETE FROM t USING UNNEST(new.d) AS u(k) WHERE t.k = u.k AND k > 1;"
        " INSERT INTO t SELECT u.k, new.x FROM UNNEST(new.d) AS u(k) WHERE u.k > 1;",
        ((None, None, 5, [4, 2]), (None, None, 6, [5, 2, 5]), (None, None, 7, [1, 1]), (None, None, 8, [6, 4])),
        ("t has a row with this key",),
        {1: 13, 2: 5, 3: MOST, 4: 8, 6: 8},
    ),
    "a CHECK that the third element breaks": Hostile(
        "INSERT INTO t SELECT u.k, 10 - u.k FROM UNNEST(new.d) AS u(k) ON CONFLICT (k) DO UPDATE SET n = t.n - 4;"
        f" {TOUCH}",
        ((None, None, None, [7, 8, 11]), (None, None, None, [1, 1, 1]), (None, None, None, [1, 4, 1])),
        (CHECKED, CHECKED),
        {1: 3, 2: 20, 3: MOST, 4: 6},
    ),
    "a key that one body inserts and deletes": Hostile(
        "INSERT INTO t SELECT u.k, 1 FROM UNNEST(new.d) AS u(k) ON CONFLICT DO NOTHING;"
        " DELETE FROM t WHERE k = ANY (new.d) AND k > 3;"
        " INSERT INTO t SELECT u.k, u.k FROM UNNEST(new.d) AS u(k) WHERE u.k = new.a;"
        " IF new.b / new.x > 0 THEN DELETE FROM t USING UNNEST(new.d) AS u(k) WHERE t.k = u.k AND t.n = 1; END IF;",
        ((9, 1, 1, [8, 9]), (8, 1, 0, [9, 8, 2]), (7, 1, 1, [9, 7]), (9, 0, 1, [9, 1]), (2, 1, 1, [2])),
        ("division by zero", "t has a row with this key"),
        {1: 10, 2: 20, 3: MOST, 7: 7, 9: 9},
    ),
    "an overflow at the last element": Hostile(
        "DELETE FROM t USING UNNEST(new.d) AS u(k) WHERE t.k = u.k AND t.k < 3;"
        " INSERT INTO t SELECT u.k, u.k + new.x FROM UNNEST(new.d) AS u(k) WHERE u.k <> 3;",
        ((None, None, MOST - 4, [1, 2, 4]), (None, None, MOST - 4, [1, 2, 5]), (None, None, 0, [1])),
        ("a number is out of range",),
        {1: 1, 2: MOST - 2, 3: MOST, 4: MOST},
    ),
    "NULL, empty and short arrays of keys": Hostile(
        f"{TOUCH} INSERT INTO t SELECT u.k, u.n FROM UNNEST(new.d, ARRAY[new.a, new.b]) AS u(k, n);",
        ((1, 2, None, None), (1, 2, None, []), (1, 2, None, [4, None]), (1, 2, None, [4, 5, 6]), (8, 9, None, [4, 5])),
        ("t.k cannot be NULL", "t.k cannot be NULL", "t.k cannot be NULL", "t.n cannot be NULL"),
        {1: 11, 2: 20, 3: MOST, 4: 8, 5: 9},
    ),
    "rows that an array has deleted are inserted, twice": Hostile(
        "DELETE FROM t USING UNNEST(new.d, ARRAY[1]) AS u(k, one) WHERE t.k = u.k AND u.one = 1;"
        " INSERT INTO t VALUES (new.a, 1), (new.b, 2);",
        ((1, 2, None, [1]), (3, 3, None, [None, 1]), (4, 5, None, [4, 1]), (5, 1, None, [5, 1]), (2, 6, None, [2])),
        ("t has a row with this key", "t has a row with this key", "t has a row with this key"),
        {1: 10, 2: 1, 3: MOST, 4: 1, 5: 2, 6: 2},
    ),
    "a conflict that reads the row before": Hostile(
        "INSERT INTO t (n, k) SELECT 1, u.k FROM UNNEST(new.d) AS u(k)"
        " ON CONFLICT (k) DO UPDATE SET n = (SELECT o.n FROM t AS o WHERE o.k = t.k - 1);",
        ((None, None, None, [2, 1]), (None, None, None, [2, 2]), (None, None, None, [4, 5, 4, 6])),
        ("t.n cannot be NULL",),
        {1: 10, 2: 10, 3: MOST, 4: MOST, 5: 1, 6: 1},
    ),
    "a conflict that fails behind what an array has changed": Hostile(
        "IF new.x IS NULL THEN UPDATE t SET n = (SELECT m FROM tally WHERE k = 1) WHERE k = new.a;"  # is seen there
        " ELSE UPDATE tally SET m = new.b FROM UNNEST(new.d) AS u(k) WHERE tally.k = u.k;"
        " INSERT INTO tally VALUES (2, 0) ON CONFLICT (k) DO UPDATE SET m = 10 / new.x; END IF;",
        ((None, 5, 1, [1]), (None, 6, 0, [1]), (1, None, None, None), (None, 7, 0, [1, None]), (2, None, None, None)),
        ("division by zero", "division by zero"),
        {1: 5, 2: 5, 3: MOST},
    ),
    "division by zero in the condition of a DELETE": Hostile(
        "DELETE FROM t USING UNNEST(new.d) AS u(k) WHERE t.k = u.k AND 1 / (t.n - 20) >= 0;",
        ((None, None, None, [1, 2]), (None, None, None, [None, 1])),
        ("division by zero",),
        {2: 20, 3: MOST},
    ),
    "a row whose sub-query needs the row itself": Hostile(
        "UPDATE t SET n = (SELECT o.n FROM t AS o WHERE o.k = t.n - 8) WHERE k = new.a;",
        ((1, None, None, None), (3, None, None, None), (2, None, None, None)),  # row 2's 20; no row; row 12, no row
        ("t.n cannot be NULL", "t.n cannot be NULL"),
        {1: 20, 2: 20, 3: MOST},
    ),
}
SCHEMES_COMPARED = tuple(scheme for scheme in SCHEMES if scheme != UNCHECKED)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.one_in(3)
def test_a_hostile_body_rejects_its_event_or_is_right(name: str) -> None:
    case = BODIES[name]
    made = Prepared(SCRIPT.format(body=case.body) + SHOWN)
    made.give({"s": [(*event, at) for at, event in enumerate(case.events)]})
    found = {("reference", 0, 0): made.reference()}
    for scheme in SCHEMES_COMPARED:
        change_settings(made.compiled, transactions=scheme)
        for workers, together in ((1, 500), (2, 1), (4, 500)):
            way = Way(workers, interpreted=True, batch_rows=together)
            found[scheme, workers, together] = made.native(way)
    for way, outcome in found.items():
        reasons, rows = outcome.rows.values()
        assert not outcome.error, (way, outcome.message)
        assert [r for (r,) in reasons] == list(case.rejected), way
        assert dict(rows) == case.left, way


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("UPDATE t SET n = n + 1 WHERE n > new.x;", "CQ0411"),  # a loop over all rows
        ("DELETE FROM t WHERE k > new.a;", "CQ0411"),
        ("DELETE FROM t;", "CQ0411"),
        ("DELETE FROM t USING UNNEST(new.d) AS u(k) WHERE t.n = u.k;", "CQ0411"),
        ("INSERT INTO t SELECT k + 100, n FROM t;", "CQ0411"),
        ("DELETE FROM t WHERE k IN (SELECT o.k FROM t AS o);", "CQ0501"),
        ("WHILE new.x > 0 DO UPDATE t SET n = 1 WHERE k = 1; END WHILE;", "CQ0501"),
    ],
)
def test_a_body_without_an_end_that_can_be_seen_is_refused(text: str, code: str) -> None:
    with pytest.raises(CompileError) as refused:
        compile(SCRIPT.format(body=text) + SHOWN)
    assert refused.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    "more",
    [
        "CREATE TRIGGER h AFTER INSERT ON g FOR EACH ROW DELETE FROM t WHERE k = new.a;",  # a cascade
        "CREATE TRIGGER g AFTER INSERT ON g FOR EACH ROW DELETE FROM t WHERE k = new.a;",  # a cycle
        "CREATE TRIGGER h AFTER INSERT ON h FOR EACH ROW DELETE FROM t WHERE k = new.a;",
    ],
)
def test_a_trigger_that_would_cause_others_is_refused(more: str) -> None:
    with pytest.raises(CompileError) as refused:
        compile(SCRIPT.format(body=f"{TOUCH} SELECT new.a, new.ts;") + more + SHOWN)
    assert all(d.help for d in refused.value.diagnostics if d.severity == "error"), refused.value.diagnostics


def test_a_row_that_is_named_again_is_none_more() -> None:
    """It was counted as a further row before it was seen to be the same."""
    rows = "".join(f"UPDATE t SET n = 1 WHERE k = new.a + {n};" for n in range(32))
    again = "UPDATE t SET n = n + 1 WHERE k = new.a + 7;"
    compile(SCRIPT.format(body=rows + again) + SHOWN)
    with pytest.raises(CompileError, match='row 33 of "t"'):
        compile(SCRIPT.format(body=f"{rows}{again} DELETE FROM t WHERE k = new.a + 32;") + SHOWN)


def test_lists_for_two_columns_of_a_key_are_refused_before_they_are_multiplied() -> None:
    """14,400 rows, each with a condition for every one before it, took more than a minute."""
    items = ", ".join(f"new.a + {n}" for n in range(120))
    with pytest.raises(CompileError) as refused:
        compile(
            "CREATE STREAM s (a BIGINT);"
            "CREATE TABLE t (k BIGINT, l BIGINT, PRIMARY KEY (k, l));"
            "CREATE TRIGGER g AFTER INSERT ON s REFERENCING NEW AS new FOR EACH ROW BEGIN ATOMIC "
            f"DELETE FROM t WHERE k IN ({items}) AND l IN ({items}); END; SELECT * FROM g;"
        )
    assert refused.value.code == "CQ0103" and "at most 32 rows" in str(refused.value)
