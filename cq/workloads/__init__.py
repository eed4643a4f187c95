"""Generated input: every workload under its name, with its parameters.

`WORKLOADS[name].generate(**parameters)` gives record batches. The `generator` connector and `cq gen`, which writes them
in every format, look workloads up with `workload_named`.
"""

from __future__ import annotations

from cq.entries import enter
from cq.errors import Diagnostic, UsageError, did_you_mean
from cq.workloads import bids, sentences, tpch
from cq.workloads.linear_road import history, stream
from cq.workloads.linear_road.profiles import PROFILES
from cq.workloads.nexmark import streams as nexmark
from cq.workloads.nexmark.events import MAX_DISORDER
from cq.workloads.registry import MAX_INTERVAL_US, MAX_ROWS, SEED, Parameter, Workload
from cq.workloads.transactions import streams as transactions

__all__ = ["WORKLOADS", "Parameter", "Workload", "workload_named"]

_ROWS = Parameter(int, 1_000_000, "number of rows", 0, MAX_ROWS)
_THETA = Parameter(float, 0.0, "skew: P(rank) is proportional to rank^-theta; 0 is uniform", 0, 4)
_EXPRESSWAYS = Parameter(
    float, 1.0, "number of expressways, L; a half is one direction of the last one", 0.5, 1000, step=0.5
)
_NEXMARK = {
    "seed": SEED,
    "rate": Parameter(
        int, 10_000, "events per second; 1 in 50 events is a person, 3 are auctions and 46 are bids", 1, 10**6
    ),
    "disorder": Parameter(int, 1, "number of neighbouring events to shuffle; 1 keeps them in order", 1, MAX_DISORDER),
}
_ORDERS = Parameter(
    int, 15_000, "number of orders in the whole database, which determines the keys; 1,500,000 is scale 1", 1, 10**9
)
_MAX_KEYS = 10**7
_MOST_ACCESSES = 64  # of a transaction
_ACCOUNTS = Parameter(int, 10_000, "number of accounts and of assets; ids start at 0", 2, _MAX_KEYS)
_INTERVAL = Parameter(int, 100, "microseconds between event times", 0, MAX_INTERVAL_US)
_ACCESSES = {
    "theta": Parameter(float, 0.6, _THETA.doc, 0, 4),
    "partitions": Parameter(int, 1, "number of partitions; a key belongs to the partition of its remainder", 1, 1024),
    "several": Parameter(float, 0.25, "share of transactions with keys of several partitions", 0, 1),
    "length": Parameter(int, 4, "number of partitions of such a transaction", 1, 1024),
}

_ALL = (
    Workload(
        "linear_road",
        "position reports and historical queries of vehicles on toll expressways, in time order",
        stream.SCHEMA,
        {
            "profile": Parameter(str, "light", "amount of traffic", choices=tuple(PROFILES)),
            "rows": Parameter(
                int, None, "maximum number of rows; by default all rows of the simulated time", 0, MAX_ROWS
            ),
            "seed": SEED,
            "expressways": _EXPRESSWAYS,
            "duration_s": Parameter(
                int, None, "simulated seconds; by default those of the profile, or as many as `rows` needs", 0, 10**7
            ),
            "queries": Parameter(float, 0.01, "share of reports accompanied by a historical query", 0, 1),
        },
        stream.generate,
    ),
    Workload(
        "linear_road_history",
        "daily tolls of the last ten weeks: the table behind Linear Road's daily-expenditure queries",
        history.HISTORY_SCHEMA,
        {
            "vehicles": Parameter(int, 10_000, "number of vehicles, 69 rows each; ids start at 100", 0, 10**9),
            "seed": SEED,
            "expressways": _EXPRESSWAYS,
        },
        history.toll_history,
    ),
    Workload(
        "sentences",
        "lines of random words, for word count",
        sentences.SCHEMA,
        {
            "rows": _ROWS,
            "seed": SEED,
            "theta": Parameter(float, 0.5, _THETA.doc, 0, 4),
            "words_per_line": Parameter(int, 10, "words per line", 1, 1000),
            "artefact": Parameter(bool, False, "use words of 18 random letters, practically all distinct"),
            "vocabulary": Parameter(int, 100_000, "number of distinct words", 1, sentences.MAX_VOCABULARY),
            "interval_us": Parameter(int, 1, "microseconds between event times", 0, MAX_INTERVAL_US),
        },
        sentences.sentences,
    ),
    Workload(
        "bids",
        "auction bids with configurable keys, skew, disorder and NULLs",
        bids.SCHEMA,
        {
            "rows": _ROWS,
            "seed": SEED,
            "keys": Parameter(int, 1_000, "number of auctions", 1, 10**7),
            "theta": _THETA,
            "scatter": Parameter(bool, False, "spread auction ids over 63 bits instead of counting from 1000"),
            "bidders": Parameter(int, 10_000, "number of bidders", 1, 10**9),
            "interval_us": Parameter(int, 100, "microseconds between arrivals", 0, MAX_INTERVAL_US),
            "delay_us": Parameter(int, 0, "maximum time from an event to its arrival, in microseconds", 0, 10**9),
            "nulls": Parameter(float, 0.0, "share of NULLs in bidder, price and channel", 0, 1),
        },
        bids.bids,
    ),
    Workload(
        "nexmark_person",
        "NEXMark: sellers and bidders; use one seed for the three streams",
        nexmark.PERSON_SCHEMA,
        {"rows": Parameter(int, 20_000, _ROWS.doc, 0, MAX_ROWS), **_NEXMARK},
        nexmark.persons,
    ),
    Workload(
        "nexmark_auction",
        "NEXMark: items for sale, and the end of each auction",
        nexmark.AUCTION_SCHEMA,
        {"rows": Parameter(int, 60_000, _ROWS.doc, 0, MAX_ROWS), **_NEXMARK},
        nexmark.auctions,
    ),
    Workload(
        "nexmark_bid",
        "NEXMark: bids; half of them are for one hot auction",
        nexmark.BID_SCHEMA,
        {
            "rows": Parameter(int, 920_000, _ROWS.doc, 0, MAX_ROWS),
            **_NEXMARK,
            "flink_bidders": Parameter(bool, False, "add 1000 to bidders, as Flink's generator does"),
        },
        nexmark.bids,
    ),
    Workload(
        "nexmark_side",
        "NEXMark: the side table for looking up bids",
        nexmark.SIDE_SCHEMA,
        {"rows": Parameter(int, 10_000, _ROWS.doc, 0, MAX_ROWS)},
        nexmark.side_input,
    ),
    Workload(
        "tpch_lineitem",
        "TPC-H: line items, four per order",
        tpch.LINEITEM,
        {"rows": Parameter(int, 60_000, _ROWS.doc, 0, MAX_ROWS), "seed": SEED, "orders": _ORDERS},
        tpch.lineitem,
    ),
    Workload(
        "tpch_orders",
        "TPC-H: orders",
        tpch.ORDERS,
        {"rows": Parameter(int, 15_000, _ROWS.doc, 0, MAX_ROWS), "seed": SEED, "orders": _ORDERS},
        tpch.orders,
    ),
    Workload(
        "tpch_customer",
        "TPC-H: customers, one per ten orders",
        tpch.CUSTOMER,
        {"rows": Parameter(int, 1_500, _ROWS.doc, 0, MAX_ROWS), "seed": SEED},
        tpch.customer,
    ),
    Workload(
        "tpch_supplier",
        "TPC-H: suppliers, one per 150 orders",
        tpch.SUPPLIER,
        {"rows": Parameter(int, 100, _ROWS.doc, 0, MAX_ROWS), "seed": SEED},
        tpch.supplier,
    ),
    Workload(
        "tpch_part",
        "TPC-H: parts, two per fifteen orders",
        tpch.PART,
        {"rows": Parameter(int, 2_000, _ROWS.doc, 0, MAX_ROWS), "seed": SEED},
        tpch.part,
    ),
    Workload(
        "tpch_partsupp",
        "TPC-H: suppliers of parts, four per part",
        tpch.PARTSUPP,
        {"rows": Parameter(int, 8_000, _ROWS.doc, 0, MAX_ROWS), "seed": SEED, "orders": _ORDERS},
        tpch.partsupp,
    ),
    Workload(
        "tpch_nation",
        "TPC-H: the 25 nations",
        tpch.NATION,
        {"rows": Parameter(int, 25, _ROWS.doc, 0, MAX_ROWS), "seed": SEED},
        tpch.nation,
    ),
    Workload(
        "tpch_region",
        "TPC-H: the five regions",
        tpch.REGION,
        {"rows": Parameter(int, 5, _ROWS.doc, 0, MAX_ROWS), "seed": SEED},
        tpch.region,
    ),
    Workload(
        "ledger",
        "Streaming Ledger: deposits, and transfers of money and assets between accounts",
        transactions.LEDGER_SCHEMA,
        {
            "rows": _ROWS,
            "seed": SEED,
            "accounts": _ACCOUNTS,
            "transfers": Parameter(float, 0.5, "share of transfers", 0, 1),
            **_ACCESSES,
            "interval_us": _INTERVAL,
        },
        transactions.ledger,
    ),
    Workload(
        "ledger_accounts",
        "Streaming Ledger: the initial balance of each account",
        transactions.ACCOUNTS_SCHEMA,
        {
            "rows": Parameter(int, 10_000, _ACCOUNTS.doc, 0, _MAX_KEYS),
            "balance": Parameter(
                int, 20_000, "initial balance of each account; with 0, most transfers are rejected at first", 0, 10**12
            ),
        },
        transactions.ledger_accounts,
    ),
    Workload(
        "grep_sum",
        "Grep and Sum: requests that read or write several records",
        transactions.REQUESTS_SCHEMA,
        {
            "rows": _ROWS,
            "seed": SEED,
            "records": Parameter(int, 10_000, "number of records; ids start at 0", _MOST_ACCESSES, _MAX_KEYS),
            "reads": Parameter(float, 0.5, "share of requests that read", 0, 1),
            "accesses": Parameter(int, 10, "number of records per request", 1, _MOST_ACCESSES),
            **_ACCESSES,
            "interval_us": _INTERVAL,
        },
        transactions.grep_sum,
    ),
    Workload(
        "grep_sum_records",
        "Grep and Sum: the initial records",
        transactions.RECORDS_SCHEMA,
        {"rows": Parameter(int, 10_000, _ROWS.doc, 0, _MAX_KEYS)},
        transactions.grep_sum_records,
    ),
    Workload(
        "bidding",
        "Online Bidding: bids for items, price changes and restocking",
        transactions.BIDDING_SCHEMA,
        {
            "rows": _ROWS,
            "seed": SEED,
            "goods": Parameter(int, 10_000, "number of items; ids start at 0", _MOST_ACCESSES, _MAX_KEYS),
            "accesses": Parameter(int, 20, "number of items per price change or restocking", 1, _MOST_ACCESSES),
            "added": Parameter(int, 19, "maximum quantity added to an item", 0, 10**6),
            **_ACCESSES,
            "interval_us": _INTERVAL,
        },
        transactions.bidding,
    ),
    Workload(
        "bidding_goods",
        "Online Bidding: the initial price and quantity of each item",
        transactions.GOODS_SCHEMA,
        {
            "rows": Parameter(int, 10_000, _ROWS.doc, 0, _MAX_KEYS),
            "seed": SEED,
            "quantity": Parameter(int, 100, "initial quantity of each item", 0, 10**12),
        },
        transactions.bidding_goods,
    ),
    Workload(
        "toll_reports",
        "Toll Processing: the segment and speed of vehicles",
        transactions.REPORTS_SCHEMA,
        {
            "rows": _ROWS,
            "seed": SEED,
            "segments": Parameter(int, 100, "number of segments; ids start at 0", 1, _MAX_KEYS),
            "theta": Parameter(float, 0.2, _THETA.doc, 0, 4),
            "vehicles": Parameter(int, 100_000, "number of vehicles; ids start at 0", 1, 10**9),
            "broken": Parameter(float, 0.0, "share of speeds that are -1", 0, 1),
            "interval_us": _INTERVAL,
        },
        transactions.toll_reports,
    ),
)

WORKLOADS: dict[str, Workload] = {}


def register(workload: Workload) -> None:
    """Add this workload to the generator connector and `cq gen`."""
    enter(WORKLOADS, workload.name, workload, "workload", workload.problems())


for _workload in _ALL:
    register(_workload)


def workload_named(name: str) -> Workload:
    """The workload with that name, or a UsageError that lists them all."""
    found = WORKLOADS.get(name)
    if found is None:
        listing = "workloads: " + ", ".join(WORKLOADS)
        guess = did_you_mean(name, WORKLOADS)
        raise UsageError(
            Diagnostic("CQ0208", f'there is no workload "{name}"', help=(guess, listing) if guess else (listing,))
        )
    return found
