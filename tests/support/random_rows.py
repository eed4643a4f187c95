"""Random rows for random streams: out of order, late, NULL, tied, empty, repeated, extreme, NaN, long strings."""

from __future__ import annotations

import math
import random
from typing import Any

from cases import Row
from random_expressions import random_bytes, random_text
from random_queries import UNITS
from random_statements import Query, Stream

from cq.lang.types import DataType, Kind, integer_range, round_to_real

COUNTS = (0, 1, 2, 3, 8, 20, 40, 60)
STARTS = (
    0,
    0,
    -30_000_000,
    1_709_164_800_000_000,
    978_307_199_999_990,
)  # 1970, before it, 2024-02-29, a turn of the year


def random_inputs(query: Query, seed: int, wild: bool | None = None) -> dict[str, list[Row]]:
    """Rows for every stream. wild: with values at the ends of their types, where arithmetic fails."""
    rng = random.Random(f"rows {seed}")
    extreme = rng.random() < 0.25 if wild is None else wild
    start = rng.choice(STARTS)
    return {s.name: random_rows(rng, s, UNITS[query.unit], start, extreme) for s in query.streams}


def random_rows(rng: random.Random, stream: Stream, unit: int, start: int, extreme: bool) -> list[Row]:
    """Rows of one stream; with few distinct values in a column, so that keys match."""
    pools = [[random_value(rng, f.type, extreme) for _ in range(rng.choice([1, 2, 3, 6]))] for f in stream.fields[:-1]]
    nulls = [0.0 if not f.nullable else rng.choice([0.0, 0.1, 0.5, 1.0 if rng.random() < 0.1 else 0.1])
             for f in stream.fields]  # fmt: skip
    step, jitter = rng.choice([0, 1, 1, 2, 3]), rng.choice([0, 0, 1, 3, 10])
    now, rows = start // unit, []
    scale = 1_000 if stream.time == "millis" else 1
    for _ in range(rng.choice(COUNTS)):
        now += rng.choice([0, step, step, 2 * step]) if rng.random() < 0.97 else rng.randint(5, 60)
        time = (now - rng.choice([0, 0, rng.randint(0, jitter)])) * unit
        time += rng.choice([0, 0, 0, 1, -1, unit // 2])
        row = [None if rng.random() < p else rng.choice(pool) for p, pool in zip(nulls, pools, strict=False)]
        missing = stream.fields[-1].nullable and rng.random() < 0.03
        rows.append((*row, None if missing else time // scale))
        if rows and rng.random() < 0.05:
            rows.append(rows[-1])
    return rows


def random_value(rng: random.Random, type_: DataType, extreme: bool) -> Any:
    """A value that is not NULL."""
    edge = extreme and rng.random() < 0.3
    match type_.kind:
        case Kind.ARRAY:
            assert type_.element is not None
            element = type_.element
            count = rng.choice([0, 1, 2, 2, 5])
            return tuple(None if rng.random() < 0.1 else random_value(rng, element, extreme) for _ in range(count))
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case Kind.VARCHAR:
            return random_text(rng)
        case Kind.BINARY:
            return random_bytes(rng)
        case Kind.REAL | Kind.DOUBLE:
            value = _double(rng, edge)
            return round_to_real(value) if type_.kind is Kind.REAL else value
        case Kind.DECIMAL:
            most = 10**type_.precision - 1
            return rng.choice([most, -most]) if edge else rng.randint(-min(most, 5000), min(most, 5000))
        case Kind.DATE:
            return rng.choice([-719162, 2932896]) if edge else rng.choice([0, -1, 19782, rng.randint(-800, 20000)])
        case Kind.TIME:
            return rng.choice([0, 86_399_999_999]) if edge else rng.randint(0, 47) * 1_800_000_000 + 500_000
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            far = (-62135596800000000, 253402300799999999)
            return rng.choice(far) if edge else rng.randint(-10, 10) * 500_000 + rng.choice([0, 1709164800000000])
        case Kind.INTERVAL:
            return rng.randint(-5, 5) * 1_000_000
        case _:
            low, high = integer_range(type_)
            return rng.choice([low, high, high - 1]) if edge else rng.choice([0, 1, 2, -1, rng.randint(-100, 100)])


def _double(rng: random.Random, edge: bool) -> float:
    if edge:
        return rng.choice([math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -0.0, 2.0**63, 1e16])
    return rng.choice([0.0, -0.0, 0.1, 0.2, 1.5, -2.5, 1e16, 3.0, rng.uniform(-10, 10), float(rng.randint(-20, 20))])
