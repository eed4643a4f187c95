"""The queries of queries/nexmark/ give what plain Python computes from the same stream, natively in the same order."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from paths import QUERIES
from spark_agreement import assert_agree, physical
from spark_fixture import spark  # noqa: F401

from cq.compiler.passes import Compiled, compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.sinks.writers import MemorySink, result_schema
from cq.engines.protocol import RunOptions
from cq.engines.query import run_query
from cq.workloads import WORKLOADS

pytestmark = pytest.mark.optimised

Row = tuple[Any, ...]
FOLDER = QUERIES / "nexmark"
# 25 s of the auction house, of every 50 events a person, three auctions and 46 bids; auctions last up to 16 s
EVENTS, RATE = 5_000, 200
ROWS = {"person": EVENTS // 50, "auction": 3 * EVENTS // 50, "bid": 46 * EVENTS // 50, "side": 10_000}
SECOND, MINUTE, DAY = 1_000_000, 60_000_000, 86_400_000_000
STATS = (lambda p: True, lambda p: p < 10_000, lambda p: 10_000 <= p < 1_000_000, lambda p: p >= 1_000_000)


@cache
def table(name: str) -> pa.Table:
    rate = {} if name == "side" else {"rate": RATE}
    return pa.Table.from_batches(WORKLOADS[f"nexmark_{name}"].generate(rows=ROWS[name], **rate))


@cache
def stream(name: str) -> tuple[Row, ...]:
    columns = [c.cast("int64") if pa.types.is_timestamp(c.type) else c for c in table(name).columns]
    return tuple(zip(*(c.to_pylist() for c in columns), strict=True))


def persons() -> tuple[Row, ...]:
    """(id, name, emailaddress, creditcard, city, state, datetime, extra)"""
    return stream("person")


def auctions() -> tuple[Row, ...]:
    """(id, itemname, description, initialbid, reserve, datetime, expires, seller, category, extra)"""
    return stream("auction")


def bids() -> tuple[Row, ...]:
    """(auction, bidder, price, channel, url, datetime, extra)"""
    return stream("bid")


# -- the queries in plain Python -------------------------------------------------------------------------------------


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def day(us: int) -> str:
    return f"2015-07-{15 + (us - 1_436_918_400 * SECOND) // DAY:02}"


def minute(us: int) -> str:
    return f"{us % DAY // MINUTE // 60:02}:{us % DAY // MINUTE % 60:02}"


@cache
def won() -> list[tuple[Row, Row]]:
    """Each auction with its winning bid."""
    offers = grouped(bids(), lambda b: b[0])
    valid = ((a, [b for b in offers[a[0]] if a[5] <= b[5] <= a[6]]) for a in auctions())
    return [(a, min(those, key=lambda b: (-b[2], b[5], b[1]))) for a, those in valid if those]


def q3() -> list[Row]:
    sellers = {p[0]: p for p in persons() if p[5] in ("OR", "ID", "CA")}
    return [
        (p[1], p[4], p[5], a[0]) for a in auctions() if a[8] == 10 and (p := sellers.get(a[7])) is not None
    ]  # fmt: skip


def q4() -> list[Row]:
    categories = grouped(won(), lambda pair: pair[0][8])
    return [(c, sum(b[2] for _, b in pairs) // len(pairs)) for c, pairs in categories.items()]


def q5() -> list[Row]:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for b in bids():
        first = (b[5] // (2 * SECOND) + 1) * 2 * SECOND
        for end in range(first, first + 10 * SECOND, 2 * SECOND):
            counts[end][b[0]] += 1
    return [(end, a, n) for end, c in counts.items() for a, n in c.items() if n == max(c.values())]


def q6() -> list[Row]:
    out = []
    for seller, pairs in grouped(won(), lambda pair: pair[0][7]).items():
        prices = [b[2] for _, b in sorted(pairs, key=lambda pair: (pair[0][6], pair[0][0]))]
        frames = (prices[max(0, n - 9) : n + 1] for n in range(len(prices)))
        out += [(seller, sum(frame) / len(frame)) for frame in frames]
    return out


def q7() -> list[Row]:
    windows = grouped(bids(), lambda b: b[5] // (10 * SECOND)).values()
    return [(b[0], b[2], b[1], b[5], b[6]) for w in windows for b in w if b[2] == max(b[2] for b in w)]


def q8() -> list[Row]:
    opened = {(a[7], a[5] // (10 * SECOND)) for a in auctions()}
    starts = [(p[0], p[1], p[6] // (10 * SECOND)) for p in persons()]
    return [(id, name, n * 10 * SECOND) for id, name, n in starts if (id, n) in opened]


def q11() -> list[Row]:
    out = []
    for bidder, those in grouped(bids(), lambda b: b[1]).items():
        times = sorted(b[5] for b in those)
        cuts = [0, *(n for n, (a, b) in enumerate(pairwise(times), 1) if b - a > 10 * SECOND), len(times)]
        out += [(bidder, to - at, times[at], times[to - 1] + 10 * SECOND) for at, to in pairwise(cuts)]
    return out


def q12() -> list[Row]:
    windows = grouped(bids(), lambda b: (b[1], b[5] // (10 * SECOND) * 10 * SECOND))
    return [(bidder, len(those), start, start + 10 * SECOND) for (bidder, start), those in windows.items()]


def statistics(those: list[Row]) -> Row:
    """Bids, bidders and auctions, of each in all and by class of price."""
    kept = [[b for b in those if holds(b[2])] for holds in STATS]
    return (*map(len, kept), *(len({b[1] for b in k}) for k in kept), *(len({b[0] for b in k}) for k in kept))


def q14() -> list[Row]:
    def time_class(hour: int) -> str:
        return "dayTime" if 8 <= hour <= 18 else "otherTime" if hour in (7, 19) else "nightTime"

    wanted = [b for b in bids() if 1_000_000_000 < 908 * b[2] < 50_000_000_000]
    return [
        (b[0], b[1], 908 * b[2], time_class(b[5] % DAY // (60 * MINUTE)), b[5], b[6], b[6].count("c")) for b in wanted
    ]


def q16() -> list[Row]:
    channels = grouped(bids(), lambda b: (b[3], day(b[5])))
    return [(*key, max(minute(b[5]) for b in those), *statistics(those)) for key, those in channels.items()]


def q17() -> list[Row]:
    out = []
    for key, those in grouped(bids(), lambda b: (b[0], day(b[5]))).items():
        prices = [b[2] for b in those]
        counts = [sum(map(holds, prices)) for holds in STATS]
        out.append((*key, *counts, min(prices), max(prices), sum(prices) // len(prices), sum(prices)))
    return out


def q19() -> list[Row]:
    out: list[Row] = []
    for those in grouped(bids(), lambda b: b[0]).values():
        best = sorted(those, key=lambda b: (-b[2], b[5], b[1]))[:10]
        out += [(*b, rank) for rank, b in enumerate(best, 1)]
    return out


def q20() -> list[Row]:
    wanted = {a[0]: a for a in auctions() if a[8] == 10}
    return [(*b, *wanted[b[0]][1:]) for b in bids() if b[0] in wanted]


def q21() -> list[Row]:
    known = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    out = []
    for b in bids():
        linked = re.search(r"(?:&|^)channel_id=([^&]*)", b[4])
        number = known.get(b[3].lower()) or (linked and linked[1])
        if number:
            out.append((*b[:4], number))
    return out


EXPECTED: dict[str, Callable[[], list[Row]]] = {
    "q0": lambda: [(b[0], b[1], b[2], b[5], b[6]) for b in bids()],
    "q1": lambda: [(b[0], b[1], 908 * b[2], b[5], b[6]) for b in bids()],
    "q2": lambda: [(b[0], b[2]) for b in bids() if b[0] % 123 == 0],
    "q3": q3,
    "q4": q4,
    "q5": q5,
    "q6": q6,
    "q7": q7,
    "q8": q8,
    "q9": lambda: [(*a, b[0], b[1], b[2], b[5], b[6]) for a, b in won()],
    "q10": lambda: [(b[0], b[1], b[2], b[5], b[6], day(b[5]), minute(b[5])) for b in bids()],
    "q11": q11,
    "q12": q12,
    "q13": lambda: [(b[0], b[1], b[2], b[5], b[0] % 10_000) for b in bids()],
    "q14": q14,
    "q15": lambda: [(d, *statistics(those)) for d, those in grouped(bids(), lambda b: day(b[5])).items()],
    "q16": q16,
    "q17": q17,
    "q18": lambda: list({(b[1], b[0]): b for b in bids()}.values()),
    "q19": q19,
    "q20": q20,
    "q21": q21,
    "q22": lambda: [(*b[:4], *b[4].split("/")[3:6]) for b in bids()],
}


# -- tests -----------------------------------------------------------------------------------------------------------


@cache
def compiled(name: str) -> Compiled:
    """The query; its streams are in memory."""
    text = (FOLDER / f"{name}.cq").read_text(encoding="utf-8")
    given = {source: table(source) for source in re.findall(r"^CREATE (?:STREAM|TABLE) (\w+)", text, re.MULTILINE)}
    return compile(text, f"{name}.cq", inputs=Inputs(FileAccess(FOLDER), given))


@cache
def outcome(name: str, engine: str) -> tuple[list[Row], str]:
    """The rows of a query and their hash."""
    query = compiled(name)
    (output,) = query.outputs
    sink = MemorySink(result_schema(output.node.schema.fields))
    summary = run_query(query, {output.name: sink}, engine, RunOptions(2, 7))
    columns = zip(sink.table().columns, output.node.schema.fields, strict=True)
    return list(zip(*(physical(c, f.type) for c, f in columns), strict=True)), summary.hashes[output.name]


def in_the_gate(*names: str) -> list[Any]:
    """All queries; those that are not named are for the long command."""
    return [pytest.param(name, marks=[] if name in names else pytest.mark.long) for name in EXPECTED]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_query_gives_what_plain_python_computes(name: str) -> None:
    expected = EXPECTED[name]()
    assert expected and Counter(outcome(name, "reference")[0]) == Counter(expected)


@pytest.mark.parametrize(
    "name", in_the_gate("q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11", "q13", "q14", "q15", "q16", "q18", "q19")
)
@pytest.mark.one_in(2)
def test_a_query_gives_natively_what_the_reference_gives(name: str) -> None:
    assert outcome(name, "native")[1] == outcome(name, "reference")[1]


@pytest.mark.spark
@pytest.mark.parametrize("name", in_the_gate("q5"))
def test_a_query_gives_the_same_on_spark(name: str, spark: object) -> None:  # noqa: F811
    assert_agree(compiled(name).plan, {s.name: list(stream(s.name)) for s in compiled(name).sources})


# DuckDB knows none of the windows, has no DATE_FORMAT, and divides integers as doubles.
@pytest.mark.parametrize("name", ["q0", "q2", "q3", "q6", "q9", "q13", "q18", "q19", "q20", "q21", "q22"])
def test_a_query_gives_the_rows_of_duckdb(name: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    text = (FOLDER / f"{name}.cq").read_text(encoding="utf-8")
    *views, select = re.sub(r"CREATE (STREAM|TABLE) .*?;\n", "", text, flags=re.DOTALL).rstrip(";\n").split(";\n")
    with duckdb.connect() as base:
        for source in ROWS:
            base.register(source, table(source))
        for view in views:
            base.execute(view)
        found = base.sql(select).to_arrow_table()
    times = [n for n, f in enumerate(found.schema) if pa.types.is_timestamp(f.type)]
    for n in times:
        found = found.set_column(n, found.schema.names[n], found.column(n).cast("int64"))
    rows = zip(*(c.to_pylist() for c in found.columns), strict=True)
    assert Counter(rows) == Counter(EXPECTED[name]())


def test_every_query_of_the_folder_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.cq")} == EXPECTED.keys()
