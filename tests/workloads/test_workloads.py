"""The registry of workloads, word-count sentences, bids, NEXMark, TPC-H, and exports."""

import hashlib
from collections import Counter
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from cq.errors import UsageError
from cq.workloads import WORKLOADS, workload_named
from cq.workloads.draws import Zipf, mix, mix_columns, normal_table, poisson, splitmix64
from cq.workloads.transactions.keys import KeyDraw

SMALL = {
    "linear_road": {"profile": "tiny", "rows": 20_000},
    "linear_road_history": {"vehicles": 300},
    "sentences": {"rows": 20_000},
    "bids": {"rows": 20_000},
    "nexmark_person": {"rows": 1_000},
    "nexmark_auction": {"rows": 1_000},
    "nexmark_bid": {"rows": 1_000},
    "nexmark_side": {"rows": 1_000},
    "ledger": {"rows": 1_000},
    "ledger_accounts": {"rows": 1_000},
    "grep_sum": {"rows": 1_000},
    "grep_sum_records": {"rows": 1_000},
    "bidding": {"rows": 1_000},
    "bidding_goods": {"rows": 1_000},
    "toll_reports": {"rows": 1_000},
    **{name: {"rows": 500} for name in WORKLOADS if name.startswith("tpch_")},
}


def table(name, **parameters):
    return pa.Table.from_batches(WORKLOADS[name].generate(**parameters), WORKLOADS[name].schema)


def digest(rows):
    text = "\n".join("|".join(map(repr, row.values())) for row in rows.to_pylist())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- registry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_yields_its_schema_and_validates(name):
    for batch in WORKLOADS[name].generate(**SMALL[name]):
        assert batch.schema.equals(WORKLOADS[name].schema)
        batch.validate(full=True)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_same_parameters_give_the_same_rows_and_another_seed_others(name):
    first = table(name, **SMALL[name])
    assert first.equals(table(name, **SMALL[name]))
    if "seed" in WORKLOADS[name].parameters:
        assert not first.equals(table(name, **SMALL[name], seed=2))


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_default_is_a_value_its_parameter_takes(name):
    checked = WORKLOADS[name].checked({})
    assert checked == {n: p.default for n, p in WORKLOADS[name].parameters.items()}


def test_parameters_may_be_written_as_text():
    assert table("sentences", rows="100", theta="1", artefact="FALSE").equals(
        table("sentences", rows=100, theta=1.0, artefact=False)
    )
    assert table("linear_road", profile="TINY", rows=1e2).equals(table("linear_road", profile="tiny", rows=100))


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("linear_road", {"profile": "lite"}, "profile takes one of tiny, light, heavy, classic"),
        ("linear_road", {"expressways": 0.75}, "a number from 0.5 to 1000 in steps of 0.5"),
        ("linear_road", {"expressways": "0"}, "a number from 0.5 to 1000"),
        ("linear_road", {"rows": -1}, "a whole number from 0 to"),
        ("linear_road", {"rows": "many"}, "a whole number"),
        ("linear_road", {"seed": 1.5}, "a whole number"),
        ("linear_road", {"seed": True}, "a whole number"),
        ("linear_road", {"seed": None}, "a whole number"),
        ("linear_road", {"queries": float("nan")}, "a number from 0 to 1"),
        ("linear_road", {"queries": "inf"}, "a number from 0 to 1"),
        ("sentences", {"artefact": "yes"}, "true or false"),
        ("sentences", {"rows": "9" * 5000}, "a whole number"),
        ("bids", {"keys": [1]}, "a whole number from 1"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(name, wrong, message):
    with pytest.raises(UsageError) as caught:
        WORKLOADS[name].generate(**wrong)
    assert caught.value.code == "CQ0208"
    assert message in str(caught.value)


def test_an_unknown_parameter_is_refused_with_the_nearest():
    with pytest.raises(UsageError) as caught:
        WORKLOADS["linear_road"].generate(profil="tiny")
    assert caught.value.code == "CQ0207"
    assert caught.value.first.help[0] == 'did you mean "profile"?'
    assert "expressways" in caught.value.first.help[1]


def test_an_unknown_workload_is_refused_with_the_list():
    assert workload_named("bids") is WORKLOADS["bids"]
    with pytest.raises(UsageError) as caught:
        workload_named("linearroad")
    assert caught.value.first.help == (
        'did you mean "linear_road"?',
        "workloads: " + ", ".join(WORKLOADS),
    )


# --- draws --------------------------------------------------------------------------------------------------------


def test_splitmix_is_the_published_function():
    # first outputs of the reference generator from state 0
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    assert splitmix64(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


def test_rows_are_mixed_as_single_values_are():
    a, b = np.array([0, 5, -1, 2**62]), np.array([7, 7, 8, -9])
    expected = [mix(3, x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert mix_columns(3, a, b).tolist() == expected


def test_poisson_quantiles_have_the_right_mean():
    n = 2000
    for rate in (0.01, 0.6, 20.0):
        assert abs(sum(poisson(rate, (i + 0.5) / n) for i in range(n)) / n / rate - 1) < 0.01


def test_normal_quantiles_have_the_right_mean_and_spread():
    quantiles = normal_table(1_000_000, 60_000.0)
    assert abs(quantiles.mean() - 1_000_000) < 2
    assert abs(quantiles.std() - 60_000) < 30


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0])
def test_zipf_shares_follow_the_law(theta):
    n, draws = 50, 400_000
    bits = np.random.PCG64(5).random_raw(draws) >> np.uint64(1)
    seen = np.bincount(Zipf(n, theta).ranks(bits.view(np.int64)), minlength=n)
    law = np.arange(1, n + 1) ** -theta
    expected = draws * law / law.sum()
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected)).all()


# --- sentences ----------------------------------------------------------------------------------------------------


def test_a_sentence_is_ten_words_with_one_blank_between_them():
    lines = table("sentences", rows=2_000)["line"].to_pylist()
    for line in lines:
        words = line.split(" ")
        assert len(words) == 10
        assert all(3 <= len(w) <= 12 and w.isalpha() and w.islower() and w.isascii() for w in words)


def test_words_come_from_the_vocabulary_and_the_frequent_ones_first():
    lines = table("sentences", rows=5_000, vocabulary=40, theta=1.0)["line"].to_pylist()
    seen = Counter(w for line in lines for w in line.split(" "))
    harmonic = sum(1 / r for r in range(1, 41))
    assert len(seen) == 40
    assert abs(seen.most_common(1)[0][1] / 50_000 - 1 / harmonic) < 0.01


@pytest.mark.parametrize("words_per_line", [1, 3])
def test_lines_may_have_any_number_of_words(words_per_line):
    lines = table("sentences", rows=50, words_per_line=words_per_line, vocabulary=1)["line"].to_pylist()
    assert len(set(lines)) == 1
    assert len(set(lines[0].split(" "))) == 1
    assert len(lines[0].split(" ")) == words_per_line


def test_artefact_words_are_practically_all_distinct():
    lines = table("sentences", rows=2_000, artefact=True)["line"].to_pylist()
    words = [w for line in lines for w in line.split(" ")]
    assert {len(w) for w in words} == {18}
    assert len(set(words)) == len(words) == 20_000


def test_event_times_are_an_interval_apart():
    ts = table("sentences", rows=20_000, interval_us=250)["ts"].cast(pa.int64()).to_pylist()
    assert ts == [250 * i for i in range(20_000)]


@pytest.mark.parametrize("options", [{}, {"artefact": True}, {"theta": 0}])
def test_fewer_sentences_are_a_prefix_of_more(options):
    more = table("sentences", rows=40_000, **options)
    for rows in (0, 1, 16_384, 20_001):
        assert table("sentences", rows=rows, **options).equals(more.slice(0, rows))


# --- bids ---------------------------------------------------------------------------------------------------------


def test_bids_of_the_default_are_ordered_dense_and_without_null():
    rows = table("bids", rows=30_000)
    assert np.diff(rows["ts"].cast(pa.int64()).to_numpy()).tolist() == [100] * 29_999
    assert set(rows["auction"].to_pylist()) == set(range(1000, 2000))
    assert all(rows[name].null_count == 0 for name in rows.column_names)
    prices = rows["price"].to_numpy()
    assert 100 <= prices.min() < prices.max() <= 10**8
    assert abs(np.median(np.log10(prices)) - 5) < 0.1
    hot = Counter(rows["channel"].to_pylist()).most_common(4)
    assert {c for c, _ in hot} == {"Google", "Facebook", "Baidu", "Apple"}


def test_no_bid_is_later_than_its_delay_allows():
    ts = table("bids", rows=30_000, delay_us=5_000)["ts"].cast(pa.int64()).to_numpy()
    behind = np.maximum.accumulate(ts) - ts
    assert 4_000 < behind.max() <= 5_000
    assert (np.diff(ts) < 0).any()


def test_the_asked_share_of_values_is_null():
    rows = table("bids", rows=30_000, nulls=0.1)
    for name in ("bidder", "price", "channel"):
        assert 2_700 < rows[name].null_count < 3_300
    both = sum(
        a is None and b is None for a, b in zip(rows["price"].to_pylist(), rows["bidder"].to_pylist(), strict=True)
    )
    assert 200 < both < 400
    assert table("bids", rows=10, nulls=1)["price"].null_count == 10


def test_scattered_keys_are_as_many_and_as_skewed_as_dense_ones():
    dense, scattered = (table("bids", rows=30_000, keys=500, theta=1, scatter=s)["auction"] for s in (False, True))
    counts = [sorted(Counter(a.to_pylist()).values()) for a in (dense, scattered)]
    assert counts[0] == counts[1]
    assert max(scattered.to_pylist()) > 2**60


def test_fewer_bids_are_a_prefix_of_more():
    options = {"nulls": 0.2, "delay_us": 70, "theta": 0.8}
    more = table("bids", rows=40_000, **options)
    for rows in (0, 1, 16_384, 20_001):
        assert table("bids", rows=rows, **options).equals(more.slice(0, rows))


# --- NEXMark ------------------------------------------------------------------------------------------------------


def event_of(kind, row):
    """The number of the event that is a row of an ordered stream."""
    places = {"person": range(1), "auction": range(1, 4), "bid": range(4, 50)}[kind]
    return row // len(places) * 50 + places[row % len(places)]


def test_ids_are_dense_and_events_come_at_their_time():
    """Of 50 events the first is a person, the next three are auctions, the others bids."""
    persons, auctions = table("nexmark_person", rows=300), table("nexmark_auction", rows=900)
    assert persons["id"].to_pylist() == list(range(1000, 1300))
    assert auctions["id"].to_pylist() == list(range(1000, 1900))
    for kind, rows in (("person", 300), ("auction", 900), ("bid", 13_800)):
        times = table(f"nexmark_{kind}", rows=rows)["datetime"].cast("int64").to_pylist()
        assert times == [1_436_918_400_000_000 + event_of(kind, n) * 1000 // 10_000 * 1000 for n in range(rows)]


def test_bids_are_for_what_is_open_and_come_from_who_is_there():
    bids = table("nexmark_bid", rows=46_000).to_pydict()
    for n in range(46_000):
        event = event_of("bid", n)
        newest, person = event // 50 * 3 + 2, event // 50
        assert max(newest - 100, 0) <= bids["auction"][n] - 1000 <= newest + 10 or bids["auction"][n] % 100 == 0
        assert max(person - 999, 0) <= bids["bidder"][n] - 1000 <= person + 10 or bids["bidder"][n] % 100 == 1
    hot = sum(bids["auction"][n] - 1000 == (event_of("bid", n) // 50 * 3 + 2) // 100 * 100 for n in range(46_000))
    loud = sum(bids["bidder"][n] - 1000 == event_of("bid", n) // 50 // 100 * 100 + 1 for n in range(46_000))
    assert 0.49 < hot / 46_000 < 0.52 and 0.74 < loud / 46_000 < 0.76
    assert min(bids["price"]) < 110 and max(bids["price"]) > 9e7
    assert (
        0.94
        < sum(
            "channel" not in c or "&channel_id=" in u
            for c, u in zip(*(bids[k] for k in ("channel", "url")), strict=True)
        )
        / 46_000
        < 0.96
    )
    shifted = table("nexmark_bid", rows=46_000, flink_bidders=True)["bidder"].to_pylist()
    assert shifted == [b + 1000 for b in bids["bidder"]]


def test_auctions_end_after_they_begin_and_are_sold_by_persons():
    auctions = table("nexmark_auction", rows=3_000)
    begins, ends = (auctions[c].cast("int64").to_numpy() for c in ("datetime", "expires"))
    assert ((ends - begins >= 1000) & (ends - begins <= 333_000)).all()
    sellers = auctions["seller"].to_numpy() - 1000
    person = np.arange(3_000) // 3
    assert (sellers <= person + 10).all() and 0.74 < (sellers == person // 100 * 100).mean() < 0.76
    assert set(auctions["category"].to_pylist()) == set(range(10, 15))
    assert (auctions["reserve"].to_numpy() > auctions["initialbid"].to_numpy()).all()


def test_disorder_changes_places_in_groups_only():
    ordered, mixed = (table("nexmark_bid", rows=4_600, disorder=d).to_pylist() for d in (1, 100))
    assert ordered != mixed
    for at in range(0, 4_600, 92):  # of 100 events 92 are bids
        one, other = (Counter(map(str, rows[at : at + 92])) for rows in (ordered, mixed))
        assert one == other


# --- TPC-H --------------------------------------------------------------------------------------------------------


def test_orders_sum_up_their_lines():
    lines, orders = table("tpch_lineitem", rows=2_800), table("tpch_orders", rows=700).to_pylist()
    of_order = {}
    for line in lines.to_pylist():
        of_order.setdefault(line["l_orderkey"], []).append(line)
    assert [o["o_orderkey"] for o in orders] == list(of_order)
    assert {o["o_orderkey"] % 32 for o in orders} == set(range(1, 9))
    for order in orders:
        those = of_order[order["o_orderkey"]]
        assert [line["l_linenumber"] for line in those] == list(range(1, len(those) + 1))
        cents = [round(x["l_extendedprice"] * (1 - x["l_discount"]) * (1 + x["l_tax"]), 2) for x in those]
        assert abs(sum(cents) - order["o_totalprice"]) <= Decimal("0.01") * len(those)
        status = {line["l_linestatus"] for line in those}
        assert order["o_orderstatus"] == (status.pop() if len(status) == 1 else "P")
        for line in those:
            assert order["o_orderdate"] < line["l_shipdate"] < line["l_receiptdate"]
            assert (line["l_linestatus"] == "O") == (line["l_shipdate"] > date(1995, 6, 17))
            assert (line["l_returnflag"] == "N") == (line["l_receiptdate"] > date(1995, 6, 17))


def test_keys_of_tpch_meet():
    part = dict(zip(*(table("tpch_part")[c].to_pylist() for c in ("p_partkey", "p_retailprice")), strict=True))
    lines, orders = table("tpch_lineitem", rows=5_000).to_pylist(), table("tpch_orders", rows=5_000)
    assert all(x["l_extendedprice"] == x["l_quantity"] * part[x["l_partkey"]] for x in lines)
    assert {x["l_suppkey"] for x in lines} == set(range(1, 101))
    who = set(orders["o_custkey"].to_pylist())
    assert who < set(range(1, 1_501)) and all(key % 3 for key in who) and len(who) > 900
    assert table("tpch_nation", rows=40).num_rows == 25 and table("tpch_region").num_rows == 5
    assert min(table("tpch_customer")["c_acctbal"].to_pylist()) < 0


# --- transactions -------------------------------------------------------------------------------------------------


def drawn(accesses=4, events=4_000, **chosen):
    """The keys of transactions, a column for each access."""
    keys = KeyDraw(
        **{"n": 96, "theta": 0.6, "partitions": 8, "several": 0.5, "length": 3, "accesses": accesses, **chosen}
    )
    event = mix_columns(1, np.arange(events))
    found = []
    for slot in range(accesses):
        found.append(keys.draw(event, slot, slot, found))
    return np.stack(found, axis=1)


@pytest.mark.parametrize("theta", [0.0, 0.6, 4.0])
def test_a_transaction_names_no_row_twice(theta):
    for chosen in ({}, {"n": 12}, {"n": 4}, {"n": 33, "partitions": 2, "accesses": 16}):
        keys = drawn(theta=theta, **chosen)
        assert all(len(set(row)) == len(row) for row in keys.tolist())
        assert keys.min() >= 0 and keys.max() < chosen.get("n", 96)


def test_transactions_are_in_one_partition_or_go_round_those_that_follow():
    steps = (drawn(several=0.25) % 8 - drawn(several=0.25)[:, :1] % 8) % 8
    shapes = Counter(map(tuple, steps.tolist()))
    assert set(shapes) == {(0, 0, 0, 0), (0, 1, 2, 0)}
    assert abs(shapes[0, 1, 2, 0] / 4_000 - 0.25) < 0.02


def test_the_most_frequent_keys_are_as_frequent_as_the_skew_says():
    keys = drawn(accesses=1, events=200_000, n=10_000, partitions=1)
    counts = sorted(Counter(keys[:, 0].tolist()).values(), reverse=True)
    for first, expected in ((1, 0.010), (10, 0.046), (100, 0.142)):
        assert abs(sum(counts[:first]) / 200_000 - expected) < 0.003


# --- golden -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("sentences", {}, "eb97648f1c78e269"),
        ("sentences", {"theta": 1.0, "seed": 9}, "4be35675c9b6c867"),
        ("sentences", {"artefact": True}, "92e3c0bbcc02b20c"),
        ("bids", {}, "073715e47c51b322"),
        ("bids", {"theta": 0.5, "scatter": True, "delay_us": 900, "nulls": 0.05, "seed": 7}, "48972c9f5c0abdf1"),
        ("linear_road_history", {"vehicles": 145, "expressways": 2.5}, "a6056f6e22066f2e"),
        ("tpch_lineitem", {}, "2df629c9daf88e2c"),
        ("tpch_orders", {"seed": 2, "orders": 1_500}, "0f58c773dc3d69d2"),
        ("tpch_customer", {}, "c463565499f5a051"),
        ("tpch_part", {"seed": 3}, "6fe453f8c2bbd48d"),
        ("nexmark_person", {}, "cd6123a3ac25aa44"),
        ("nexmark_auction", {"seed": 2, "disorder": 7}, "de1acdbcfb6710d6"),
        ("nexmark_bid", {}, "49f2412737f7af94"),
        ("nexmark_bid", {"seed": 9, "rate": 3, "disorder": 100, "flink_bidders": True}, "c215c02a53d7aef7"),
        ("ledger", {}, "b9bceef42cc161a6"),
        ("ledger", {"seed": 2, "theta": 1.2, "partitions": 7, "transfers": 0.8}, "b8269a873f24d47c"),
        ("grep_sum", {"partitions": 4, "reads": 0.2}, "eda0223d7014d188"),
        ("bidding", {}, "85c5ed71eafc90f1"),
        ("bidding_goods", {"seed": 5}, "57e7e653f1dd31da"),
        ("toll_reports", {"broken": 0.1}, "a6094ee5fb617780"),
    ],
)
def test_the_first_ten_thousand_rows_never_change(name, options, expected):
    rows = {} if name == "linear_road_history" else {"rows": 10_000}
    assert digest(table(name, **options, **rows)) == expected
