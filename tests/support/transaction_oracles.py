"""The four transactional applications in plain Python: a serial loop over dictionaries, as TStream's paper states them.

Each takes the rows of its streams by name, and returns the query's outputs, then the tables by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[tuple[Any, ...]]
Outputs = dict[str, list[tuple[Any, ...]]]


def _by_key(table: Mapping[int, Any]) -> list[tuple[Any, ...]]:
    return sorted(table.items())


def streaming_ledger(streams: Mapping[str, Rows]) -> Outputs:
    account = {id: balance for _, id, balance in streams["opening"]}
    asset = dict(account)
    made = []
    for ts, kind, from_account, to_account, from_asset, to_asset, amount, units in streams["ledger"]:
        if kind == "deposit":
            account[to_account] += amount
            asset[to_asset] += units
            made.append((ts, True, None, account[to_account]))
            continue
        ok = account[from_account] > 0 and account[from_account] > amount and asset[from_asset] > units
        if ok:
            account[from_account] -= amount
            account[to_account] += amount
            asset[from_asset] -= units
            asset[to_asset] += units
        made.append((ts, ok, account[from_account], account[to_account]))
    return {"made": made, "account": _by_key(account), "asset": _by_key(asset)}


def grep_and_sum(streams: Mapping[str, Rows]) -> Outputs:
    record = {key: val for _, key, val in streams["record"]}
    answered: list[tuple[Any, ...]] = []
    for ts, is_read, keys, vals in streams["request"]:
        if is_read:
            answered.append((ts, sum(record[k] for k in keys)))
        else:
            record.update(zip(keys, vals, strict=True))
            answered.append((ts, None))
    return {"answered": answered, "rec": _by_key(record)}


def online_bidding(streams: Mapping[str, Rows]) -> Outputs:
    goods = {id: [price, quantity] for _, id, price, quantity in streams["opening"]}
    trades, rejected = [], []
    for ts, kind, item, price, quantity, items, amounts in streams["bidding"]:
        reason = None
        if kind == "alter":
            for i, new in zip(items, amounts, strict=True):
                goods[i][0] = new
        elif kind == "top":
            for i, more in zip(items, amounts, strict=True):
                goods[i][1] += more
        elif price < goods[item][0]:
            reason = "the price is higher"
        elif quantity > goods[item][1]:
            reason = "CHECK (quantity >= 0) of goods"
        else:
            goods[item][1] -= quantity
        if reason is None:
            trades.append((ts, kind, item))
        else:
            rejected.append((ts, kind, item, price, quantity, items, amounts, reason))
    return {"trade": trades, "trade_rejected": rejected, "goods": sorted((i, *those) for i, those in goods.items())}


def toll_processing(streams: Mapping[str, Rows]) -> Outputs:
    mean: dict[int, float] = {}
    vehicles: dict[int, set[int]] = {}
    rejected, tolls = [], []
    for ts, vid, seg, speed in streams["report"]:
        if speed < 0:
            rejected.append((ts, vid, seg, speed, "the speed is negative"))
        else:
            mean[seg] = (mean[seg] + speed) / 2 if seg in mean else float(speed)
        vehicles.setdefault(seg, set()).add(vid)
        count = len(vehicles[seg])
        slow = seg in mean and mean[seg] < 40
        tolls.append((ts, vid, seg, 2 * (count - 50) ** 2 if slow and count > 50 else 0))
    return {
        "toll": tolls,
        "measure_rejected": rejected,
        "road_speed": _by_key(mean),
        "vehicles": _by_key({seg: len(those) for seg, those in vehicles.items()}),
        "seen": sorted((seg, vid) for seg, those in vehicles.items() for vid in those),
    }
