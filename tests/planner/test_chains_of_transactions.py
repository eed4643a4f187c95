"""Which transactions can run in chains, and why the others run one after the other."""

from __future__ import annotations

import pytest
from paths import QUERIES

from cq.codegen import printing
from cq.compiler.passes import compile
from cq.engines.native import settled_sharing
from cq.errors import CompileError
from cq.planner.physical import transactions
from cq.planner.physical.choose import WHY_TOGETHER
from cq.planner.physical.named_rows import homes_of
from cq.planner.physical.stages import PhysicalPlan, verify
from cq.planner.physical.transactions import MOST_KEY_COLUMNS, Cost, cost_of, transactions_of
from cq.records import replace
from cq.runtime.engine.plant import SettledSharing
from cq.runtime.engine.ways.pace import LADDER
from cq.ways import UNCHECKED, WAY_OF_SCHEME, Sharing, Way

SCRIPT = """CREATE STREAM s (a BIGINT, b BIGINT, w VARCHAR, d BIGINT ARRAY, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL, x DOUBLE);
CREATE TABLE named (k VARCHAR PRIMARY KEY, n BIGINT NOT NULL);
CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC {body} END;
SELECT * FROM g;"""


def parts(text: str, scheme: str = "chains", workers: int = 2) -> tuple[PhysicalPlan, ...]:
    made = compile(text, settings={"transactions": scheme})
    found: tuple[PhysicalPlan, ...] = made.for_workers(workers).after("place")
    return found


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("UPDATE t SET n = n + 1 WHERE k = new.a;", None),
        ("UPDATE t SET n = (SELECT o.n FROM t AS o WHERE o.k = new.b) WHERE k = new.a AND n > 3;", None),
        ("INSERT INTO t VALUES (new.a, new.b, 0.5) ON CONFLICT (k) DO UPDATE SET n = t.n + 1;", None),
        ("IF new.w LIKE 'x%' THEN DELETE FROM t WHERE k = new.a; ELSE SELECT new.w; END IF;", None),
        ("UPDATE named SET n = n + 1 WHERE k = new.w;", None),
        ("UPDATE t SET n = n + e.j FROM UNNEST(new.d) AS e(j) WHERE k = e.j;", None),
        ("SELECT (SELECT SUM(n) FROM t, UNNEST(new.d) AS e(j) WHERE t.k = e.j AND n > new.a);", None),
        ("DELETE FROM t USING UNNEST(new.d) AS e(j) WHERE k = e.j;", None),
        ("DELETE FROM t WHERE k = ANY (new.d) AND n > new.a;", None),
        ("INSERT INTO t SELECT e.j, new.a, 0.5 FROM UNNEST(new.d) AS e(j) ON CONFLICT DO NOTHING;", None),
        (
            "UPDATE t SET n = n + e.j FROM UNNEST(new.d) AS e(j) WHERE k = e.j + new.a;",
            'computing the key of "t" may fail',
        ),
        (
            "UPDATE t SET n = n + e.j FROM UNNEST(ARRAY[new.a, new.b]) AS e(j) WHERE k = e.j;",
            'trigger "g" builds an array of keys',
        ),
        (
            "UPDATE t SET n = (SELECT SUM(o.n) FROM t AS o, UNNEST(new.d) AS i(l) WHERE o.k = i.l)"
            " FROM UNNEST(new.d) AS e(j) WHERE t.k = e.j;",
            'trigger "g" loops over an array for each element of another',
        ),
        (
            "UPDATE named SET n = 1 FROM UNNEST(SPLIT(new.w, CAST(new.a / new.b AS VARCHAR))) AS e(j) WHERE k = e.j;",
            'computing an array of trigger "g" may fail',
        ),
        ("UPDATE t SET n = 1 WHERE k = new.a / new.b;", 'computing the key of "t" may fail'),
        (
            "UPDATE t SET n = 1 WHERE k = (SELECT o.n FROM t AS o WHERE o.k = new.a);",
            'the event alone does not say which row of "t" trigger "g" means',
        ),
        ("SELECT new.a;", 'trigger "g" names no row'),
        (
            "UPDATE t SET n = 1 WHERE k = LENGTH(UPPER(new.w));",
            'trigger "g" builds a key of "t" from texts or arrays',
        ),
        ("UPDATE t SET n = n + LENGTH(UPPER(new.w)) WHERE k = new.a;", None),
    ],
)
def test_transactions_run_in_chains_if_their_events_say_which_rows_they_name(body: str, reason: str | None) -> None:
    (part,) = parts(SCRIPT.format(body=body))
    last = part.stages[-1]
    assert (last.way is Way.CHAINS) == (reason is None), last.reason
    if reason is not None:
        assert last.reason == f"no chains of transactions: {reason}"


@pytest.mark.parametrize("columns", [MOST_KEY_COLUMNS, MOST_KEY_COLUMNS + 1])
def test_a_key_of_more_texts_than_an_access_has_bits_for_is_left_to_the_serial_loop(columns: int) -> None:
    names = [f"k{n}" for n in range(columns)]
    table = "".join(f"{name} VARCHAR, " for name in names)
    same = " AND ".join(f"{name} = new.w" for name in names)
    text = (
        "CREATE STREAM e (w VARCHAR, n BIGINT);"
        f" CREATE TABLE t ({table}n BIGINT, PRIMARY KEY ({', '.join(names)}));"
        " CREATE TRIGGER g AFTER INSERT ON e FOR EACH ROW BEGIN ATOMIC"
        f" UPDATE t SET n = new.n WHERE {same}; SELECT new.n; END; SELECT * FROM g;"
    )
    (part,) = parts(text)
    last = part.stages[-1]
    if columns > MOST_KEY_COLUMNS:
        assert last.reason == f'no chains of transactions: the key of "t" has more than {MOST_KEY_COLUMNS} columns'
    else:
        assert last.way is Way.CHAINS, last.reason


def homes(text: str) -> list[tuple[str, ...]]:
    """The names of the columns of the key that each trigger's transactions go by, in the order of the file."""
    nodes = transactions_of(parts(text)[0].plan)
    keys = {place: nodes[place[0]].access(home).key for place, home in homes_of(nodes).items()}
    return [tuple(str(getattr(e, "name", e)) for e in key) for _, key in sorted(keys.items())]


def test_transactions_of_an_event_go_by_the_key_that_most_of_them_name() -> None:
    assert homes((QUERIES / "transactions" / "toll_processing.cq").read_text()) == [("seg",)] * 3


def test_where_no_key_is_named_more_often_they_go_by_the_first() -> None:
    assert homes(SCRIPT.format(body=ONE.replace("new.a", "new.b") + ONE)) == [("b",)]
    assert homes(SCRIPT.format(body=MANY + ONE)) == [("a",)]
    assert homes(SCRIPT.format(body=MANY)) == []


def test_one_after_the_other_is_what_serial_says() -> None:
    for workers in (2, 64):
        (part,) = parts(SCRIPT.format(body="UPDATE t SET n = n + 1 WHERE k = new.a;"), "serial", workers)
        assert [s.way for s in part.stages] == [Way.LOOP]


BARE = "UPDATE t SET n = new.b WHERE k = new.a;"
ONE = "UPDATE t SET n = n + 1 WHERE k = new.a;"
SIDES = f"IF new.b > 0 THEN {ONE} UPDATE t SET n = 0 WHERE k = new.b; ELSE {ONE} END IF;"
MANY = "UPDATE t SET n = n + e.j FROM UNNEST(new.d) AS e(j) WHERE k = e.j;"
HEAVY = ONE.replace("n + 1", " + ".join(f"n % {k}" for k in range(2, 60)))


@pytest.mark.parametrize(
    ("body", "serial_ns", "chained_ns", "pays_from"),
    [
        (BARE, 12, 97, 9),
        (ONE, 13, 98, 8),
        (SIDES, 26, 196, 8),  # two rows and a sum on one side, a row on the other, and a comparison
        (MANY, 130, 980, 8),
        (HEAVY, 127, 212, 2),
    ],
)
def test_auto_is_what_the_model_says_is_faster(body: str, serial_ns: int, chained_ns: int, pays_from: int) -> None:
    said = f"an event takes about {serial_ns} ns one after the other, {chained_ns} of all workers in chains, which "
    for workers in (2, 3, pays_from - 1, pays_from, 64):
        (part,) = parts(SCRIPT.format(body=body), "auto", workers)
        pays = workers >= pays_from and workers > 1
        assert part.stages[-1].way is (Way.CHAINS if pays else Way.LOOP)
        if workers > 1:
            behind = f"{workers} workers share" if pays else f"pays from {pays_from} workers"
            behind += "" if pays and workers == 2 else " (extrapolated from two)"
            assert part.stages[-1].reason == said + behind


def test_the_applications_pay_from_as_many_workers_as_the_decision_on_transactions_says() -> None:
    texts = [p.read_text() for p in sorted((QUERIES / "transactions").glob("*.cq"))]
    least = {cost_of(transactions_of(parts(text)[0].plan)).pays_from for text in texts}
    assert (min(least), max(least)) == (6, 8)


def test_auto_says_why_transactions_cannot_run_in_chains() -> None:
    """It gave the reason of the serial loop, which speaks of groups that the plan does not have."""
    body = "UPDATE t SET n = 1 WHERE k = (SELECT o.n FROM t AS o WHERE o.k = new.a);"
    (part,) = parts(SCRIPT.format(body=body), "auto", 64)
    obstacle = 'the event alone does not say which row of "t" trigger "g" means'
    assert [(s.way, s.reason) for s in part.stages] == [(Way.LOOP, f"no chains of transactions: {obstacle}")]


def test_stages_without_transactions_keep_their_reasons() -> None:
    long = "LENGTH(UPPER(LOWER(TRIM(REPLACE(w, 'a', 'b'))))) > 3"
    view = f"CREATE VIEW r AS SELECT x, ts FROM s, UNNEST(s.d) AS e(x) WHERE {long}; CREATE TRIGGER"
    text = SCRIPT.format(body="UPDATE t SET n = 1 WHERE k = new.x / new.x;")
    text = text.replace("CREATE TRIGGER", view).replace("INSERT ON s", "INSERT ON r")
    for scheme in ("auto", "chains"):
        (part,) = parts(text, scheme, 4)
        assert [s.reason for s in part.stages] == [
            "one row becomes many: any worker makes them",
            'no chains of transactions: computing the key of "t" may fail',
        ]


def test_the_tables_of_a_stage_are_no_more_than_an_access_can_tell_apart(monkeypatch) -> None:
    """More of them failed when the code was written."""
    text = SCRIPT.format(body="UPDATE t SET n = 1 WHERE k = new.a; UPDATE named SET n = 1 WHERE k = new.w;")
    for most, reason in ((2, WHY_TOGETHER[Way.CHAINS]), (1, "no chains of transactions: there are more than 1 tables")):
        monkeypatch.setattr(transactions, "MOST_TABLES", most)
        (part,) = parts(text)
        assert part.stages[-1].reason == reason


def test_an_event_takes_what_the_triggers_on_its_own_stream_take() -> None:
    """It took what those on other streams take, too."""
    other = "CREATE STREAM o (a BIGINT, b BIGINT, ts TIMESTAMP, WATERMARK FOR ts);"
    two = "UPDATE t SET n = 1 WHERE k = new.a; UPDATE t SET n = 2 WHERE k = new.b;"
    of_other = f"CREATE TRIGGER h AFTER INSERT ON o BEGIN {two} END;"
    alone = "CREATE TRIGGER i AFTER INSERT ON s WHEN (new.a = 1) BEGIN INSERT INTO t (k, n) VALUES (new.b, 3); END;"

    def cost(*more: str) -> Cost:
        text = SCRIPT.format(body=BARE).replace("SELECT * FROM g;", "".join((other, *more, "SELECT * FROM g;")))
        (node,) = transactions_of(parts(text)[0].plan)
        found = cost_of([node])
        assert node.cost_ns == found.serial_ns
        return found

    assert cost() == Cost(12, 97)
    assert cost(of_other) == Cost(24, 194)
    assert cost(alone) == Cost(24, 194)
    assert cost(alone, of_other) == Cost(24, 194)
    assert cost(alone, alone.replace("TRIGGER i", "TRIGGER j").replace("= 1)", "= 2)")) == Cost(24, 194)


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("streaming_ledger", [Way.ANY, Way.CHAINS]),
        ("toll_processing", [Way.CHAINS]),
        ("grep_and_sum", [Way.ANY, Way.CHAINS]),
        ("online_bidding", [Way.ANY, Way.CHAINS]),
    ],
)
def test_the_transactions_of_all_applications_run_in_chains(name: str, ways: list[Way]) -> None:
    (part,) = parts((QUERIES / "transactions" / f"{name}.cq").read_text(encoding="utf-8"))
    assert [s.way for s in part.stages] == ways


@pytest.mark.parametrize("scheme", [s for s in WAY_OF_SCHEME if s != "chains"])
def test_a_scheme_takes_what_chains_take_and_says_why_it_does_not(scheme: str) -> None:
    (part,) = parts(SCRIPT.format(body="UPDATE t SET n = n + 1 WHERE k = new.a;"), scheme)
    assert part.stages[-1].way is WAY_OF_SCHEME[scheme]
    (part,) = parts(SCRIPT.format(body="UPDATE t SET n = 1 WHERE k = new.a / new.b;"), scheme)
    assert part.stages[-1].way is Way.LOOP
    assert part.stages[-1].reason == f"no '{scheme}' of transactions: computing the key of \"t\" may fail"


@pytest.mark.parametrize("set_as", ["text", "option"])
def test_check_refuses_what_a_run_by_the_chosen_scheme_would_refuse(set_as: str, monkeypatch) -> None:
    """It looked at the code of other schemes: transactions that wait for locks take a quarter more."""
    text = SCRIPT.format(body="UPDATE t SET n = n + 1 WHERE k = new.a;")
    monkeypatch.setattr(printing, "MOST_NODES", 1850)
    for scheme, refused in (("serial", False), ("lock", True)):
        set_, asked = (f"SET transactions = '{scheme}';\n", {}) if set_as == "text" else ("", {"transactions": scheme})
        made = compile(set_ + text, settings=asked)
        if refused:
            with pytest.raises(CompileError, match="CQ0802"):
                made.for_workers(made.workers()).after("emit")
        assert [d.code for d in made.findings() if d.severity == "error"] == ["CQ0802"] * refused


def test_how_workers_share_transactions_is_part_of_the_plan_that_is_shown_checked_and_run() -> None:
    """It was a sentence of the reason; the engine read the settings again."""
    text = SCRIPT.format(body="UPDATE t SET n = n + 1 WHERE k = new.a;")
    asked = {"transactions": "lock", "punctuation_interval": "auto", "placement": "shared_everything"}
    made = compile(text, settings=asked).for_workers(2)
    (part,), (pipeline,) = made.after("place"), made.after("emit")
    sharing = Sharing(None, "shared_everything")
    assert part.stages[-1].sharing == pipeline.stages[-1].sharing == sharing
    assert "how many events are run together is adaptive; a worker takes any" in made.explain("stages")
    assert settled_sharing(pipeline, 10**6) == (LADDER[-1], SettledSharing(True, "shared_everything"))
    for wrong in (None, Sharing(0), Sharing(5, "numa")):
        with pytest.raises(AssertionError, match="transactions"):
            verify(replace(part, stages=(replace(part.stages[-1], sharing=wrong),)))
    (serial,) = parts(text, "serial")
    assert [s.sharing for s in serial.stages] == [None]
    with pytest.raises(AssertionError, match="does not say how"):
        verify(replace(serial, stages=(replace(serial.stages[0], sharing=sharing),)))
    (seven,) = compile(text, settings=asked | {"punctuation_interval": "7"}).for_workers(2).after("emit")
    assert settled_sharing(seven, 10**6) == (7, SettledSharing(False, "shared_everything"))


def test_what_runs_without_locks_is_said_to_be_unchecked() -> None:
    text = SCRIPT.format(body="UPDATE t SET n = n + 1 WHERE k = new.a;")
    (part,) = parts(text, UNCHECKED)
    assert part.stages[-1].reason.startswith("UNCHECKED: ")
    unchecked = compile(text, settings={"transactions": UNCHECKED})
    assert "CQ0904" in [d.code for d in unchecked.findings()]
    assert "CQ0904" not in [d.code for d in compile(text).findings()]
