"""Random calls of aggregates, in groups and with OVER: every entry of the registry with the types it takes."""

from __future__ import annotations

import itertools
import random
from functools import cache

from random_expressions import SAMPLED, Expressions
from random_functions import FOLDS

from cq.lang.aggregates import AggregateFunction, all_aggregates
from cq.lang.types import Kind

OFTEN = ("count", "count", "sum", "sum", "avg", "min", "max")
LISTED = ("array_agg", "string_agg", "first", "last")  # which take an order of their values
# of small numbers, whose spread has enough digits on every engine
SPREAD = ("var_", "stddev_", "covar_", "corr", "regr_")
TIME_UNITS = ("DAY", "SECOND")
NEAR = {Kind.DATE: "DAY", Kind.TIMESTAMP: "SECOND", Kind.DECIMAL: "numbers"} | dict.fromkeys(
    (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT), "numbers"
)  # the unit of a RANGE of these keys
RUNNING = ("ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
COUNTED = ("ROWS 0 PRECEDING", "ROWS 1 PRECEDING", "ROWS 3 PRECEDING", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
           "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 30 PRECEDING AND 2 PRECEDING",
           "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")  # fmt: skip
DIRECTIONS = ("", "", " DESC", " NULLS LAST", " ASC NULLS FIRST", " DESC NULLS FIRST", " DESC NULLS LAST")


@cache
def kinds_of(entry: AggregateFunction) -> tuple[tuple[Kind, ...], ...]:
    """The kinds of arguments that an aggregate takes."""
    if entry.name.startswith(SPREAD):
        return tuple(
            (Kind.SMALLINT,) * n for n in (1, 2) if entry.signature([t for t in SAMPLED if t.kind is Kind.SMALLINT] * n)
        )
    found = [
        tuple(t.kind for t in types)
        for count in (1, 2)
        for types in itertools.product(SAMPLED, repeat=count)
        if entry.signature(types) is not None
    ]
    return tuple(dict.fromkeys(found))


def aggregate(e: Expressions, distinct: bool) -> str:
    """A call over the columns of `e`. distinct: also with DISTINCT."""
    rng = e.rng
    condition = f" FILTER (WHERE {e.condition(1)})" if rng.random() < 0.2 else ""
    if not e.vocabulary.aggregates and rng.random() < 0.04:
        mine = rng.choice(FOLDS)
        return f"{mine.name}({', '.join(e.argument(p.type.kind) for p in mine.parameters)}){condition}"
    names = e.vocabulary.aggregates or (OFTEN if rng.random() < 0.6 else tuple(all_aggregates()))
    name = rng.choice(names)
    if name == "count" and rng.random() < 0.5:
        return f"COUNT(*){condition}"
    entry = all_aggregates()[name]
    fitting = [k for k in kinds_of(entry) if e.vocabulary.has(*k)]
    if e.vocabulary.shared and name == "median":  # DuckDB rounds that of DECIMALs to their scale
        fitting = [k for k in fitting if Kind.DECIMAL not in k]
    arguments = [e.argument(kind) for kind in rng.choice(fitting)]
    arguments += [_option(name, rng) for _ in entry.options]
    several = (
        not entry.by_position and len(arguments) == 1 and distinct and rng.random() < (0.5 if name == "count" else 0.2)
    )
    nulls = " IGNORE NULLS" if entry.keeps_null and rng.random() < 0.4 else ""
    order = f" ORDER BY {', '.join(order_keys(e, 2))}" if name in LISTED and rng.random() < 0.4 else ""
    return f"{name.upper()}({'DISTINCT ' if several else ''}{', '.join(arguments)}{order}){condition}{nulls}"


def _option(name: str, rng: random.Random) -> str:
    """A constant after the arguments: the separator of texts, or a fraction."""
    if name == "string_agg":
        return rng.choice(["','", "''", "' and '"])
    return rng.choice(["0", "0.5", "0.25", "0.9", "1"])


def lag(e: Expressions) -> str:
    """LAG or LEAD over the columns of `e`."""
    rng = e.rng
    kind = e.vocabulary.kind(rng)
    nulls = " IGNORE NULLS" if rng.random() < 0.25 else ""
    offset = rng.choice(["", ", 1", ", 2", ", 3", ", 9"][: 4 if nulls else 5])
    default = f", {e.of(kind, 1)}" if offset and rng.random() < 0.5 else ""
    return f"{rng.choice(['LAG', 'LAG', 'LEAD'])}({e.argument(kind)}{offset}{default}{nulls})"


def value(e: Expressions) -> str:
    """The value of one row of the frame."""
    rng = e.rng
    x = e.argument(e.vocabulary.kind(rng))
    call = rng.choice([f"FIRST_VALUE({x})", f"LAST_VALUE({x})", f"NTH_VALUE({x}, {rng.choice([1, 2, 3])})"])
    return call + (" IGNORE NULLS" if rng.random() < 0.4 else "")


WITHOUT = ("NO OTHERS", "CURRENT ROW", "GROUP", "TIES")


def frame(rng: random.Random, unit: str = "") -> str:
    """The frame of an aggregate, up to the row; with a `unit` of time, also one of an order by time."""
    bounds = _bounds(rng, unit)
    return f"{bounds} EXCLUDE {rng.choice(WITHOUT)}" if bounds and rng.random() < 0.15 else bounds


def _bounds(rng: random.Random, unit: str) -> str:
    if not unit or rng.random() < 0.6:
        return rng.choice(RUNNING if rng.random() < 0.5 else COUNTED)
    before, other = (f"INTERVAL '{rng.choice([0, 1, 2, 5])}' {unit}" for _ in range(2))
    ends = ["CURRENT ROW", "CURRENT ROW", f"{other} PRECEDING", f"{other} FOLLOWING"]
    start = rng.choice(["UNBOUNDED PRECEDING", f"{before} PRECEDING"])
    return rng.choice(["", f"RANGE {before} PRECEDING", f"RANGE BETWEEN {start} AND {rng.choice(ends)}"])


AROUND = ("ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
          "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
          "GROUPS 1 PRECEDING", "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE UNBOUNDED PRECEDING",
          "RANGE CURRENT ROW")  # fmt: skip


def around(rng: random.Random, unit: str = "") -> str:
    """The frame of an aggregate in any order, including later rows and ties.

    unit: the unit of distances of the single key, as for `near`; without it no RANGE has a distance.
    """
    if rng.random() < 0.5 and not unit:
        return frame(rng)
    bounds = near(rng, unit) if unit else rng.choice(AROUND)
    return f"{bounds} EXCLUDE {rng.choice(WITHOUT)}" if rng.random() < 0.15 else bounds


def near(rng: random.Random, unit: str) -> str:
    """The rows whose key is near that of the row: this many units of a number or of time, before or after."""

    def distance(least: int) -> str:
        count = rng.choice([least, least, least + 1, least + 2, 50])
        return f"INTERVAL '{count}' {unit}" if unit in TIME_UNITS else f"{count}"

    near_by, far = rng.choice([0, 1]), rng.choice([1, 3])
    ends = [f"{distance(far)} PRECEDING", f"{distance(near_by)} PRECEDING", "CURRENT ROW",
            f"{distance(near_by)} FOLLOWING", f"{distance(far)} FOLLOWING"]  # fmt: skip
    first, last = sorted(rng.sample(range(len(ends)), 2))
    start = "UNBOUNDED PRECEDING" if rng.random() < 0.2 else ends[first]
    return f"RANGE BETWEEN {start} AND {'UNBOUNDED FOLLOWING' if rng.random() < 0.2 else ends[last]}"


def order_keys(e: Expressions, most: int = 3) -> list[str]:
    """What ORDER BY sorts by: columns and expressions, each in a direction, NULL first or last."""
    rng, keys = e.rng, []
    for _ in range(rng.randint(1, most)):
        column = e.column()
        key = column if column is not None and rng.random() < 0.75 else e.any(1)
        keys.append(key + rng.choice(DIRECTIONS))
    return list(dict.fromkeys(keys))
