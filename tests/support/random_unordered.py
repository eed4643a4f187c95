"""Random queries whose rows do not depend on the order in which the rows of a stream come, as long as none is late.

Nothing in them depends on position: aggregates are order-independent, ranks and limits use all columns. So they give
the same rows, in any order, when their input is reordered within the delay, or comes as two streams combined.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from cases import Prepared, Row, Way
from random_drawing import Step
from random_expressions import random_bytes, random_text
from random_queries import UNITS, Generator
from random_results import RESULTS
from random_shared import SHARED
from random_statements import Query, Stream
from random_windows import WINDOWS

from cq.lang.schema import Field
from cq.lang.types import TIMESTAMP, Kind
from cq.records import replace

DELAY = 6
Inputs = Mapping[str, Sequence[Row]]


class Unordered(Generator):
    """Draws one query from the steps that do not depend on position."""

    def _steps(self) -> list[Step]:
        own = [*[self._window] * 4, self._window_rows, self._session, *[self._interval_join] * 3, self._union]
        return [*own, self._attached, self._attached, *(partial(step, self) for step in (*RESULTS, *WINDOWS))]

    def _stream(self, name: str) -> Stream:
        drawn = super()._stream(name)
        fields = (*drawn.fields[:-1], Field("ts", TIMESTAMP, False))
        return Stream(name, tuple(f for f in fields if f.type.kind is not Kind.ARRAY), "micros", DELAY)

    def _counts_rows(self) -> bool:
        return False


def unordered_query(seed: int) -> Query:
    """The query of a seed; its outputs have no LIMIT."""
    query = Unordered(random.Random(f"unordered {seed}"), vocabulary=SHARED).draw()
    return replace(query, outputs=tuple((name, None) for name, _ in query.outputs))


def in_other_ways(seed: int) -> str | None:
    """How rows change when the input is reordered, or split; None if a query reads no stream, or ends with an error."""
    rng = random.Random(f"ways {seed}")
    query = unordered_query(seed)
    if not query.streams:
        return None
    given = {s.name: _rows(rng, s, UNITS[query.unit]) for s in query.streams}
    moved = {name: _moved(rng, rows, DELAY * UNITS[query.unit]) for name, rows in given.items()}
    runs = {"as it comes": (query.text(), given), "moved": (query.text(), moved), "split": _split(rng, query, given)}
    whole = None
    for said, (text, inputs) in runs.items():
        prepared = Prepared(text)
        prepared.give(inputs)
        for outcome in (prepared.reference(), prepared.native(Way(0, 3, interpreted=True))):
            if outcome.error:
                return None
            assert not outcome.late, f"seed {seed}: {outcome.late} rows are late"
            found = {name: Counter(map(repr, rows)) for name, rows in outcome.rows.items()}
            whole = whole or found
            if found != whole:
                more, less = ({n: a[n] - b[n] for n in a} for a, b in ((found, whole), (whole, found)))
                return f"seed {seed}, {said}: {more} is not {less}\n{text}\n{inputs}"
    return ""


def _rows(rng: random.Random, stream: Stream, unit: int) -> list[Row]:
    """Rows in order of time, with few values, including NULL."""
    pools = [[_value(rng, f.type.kind) for _ in range(rng.choice([1, 2, 3, 6]))] for f in stream.fields[:-1]]
    for field, pool in zip(stream.fields, pools, strict=False):
        pool += [None] * (field.nullable and rng.choice([0, 1, 1, 5]))
    times = sorted(rng.randint(-12, 24) for _ in range(rng.choice([0, 1, 3, 8, 20, 40])))
    return [(*(rng.choice(pool) for pool in pools), time * unit) for time in times]


def _value(rng: random.Random, kind: Kind) -> object:
    small = rng.choice([0, 1, 2, -1, rng.randint(-60, 60)])
    match kind:
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case Kind.VARCHAR:
            return random_text(rng)
        case Kind.BINARY:
            return random_bytes(rng)
        case Kind.DOUBLE:
            return small / 4
        case Kind.TIMESTAMP:
            return small * 500_000
        case _:
            return small


def _moved(rng: random.Random, rows: Sequence[Row], delay_us: int) -> list[Row]:
    """The rows in another order, none of them late."""
    return sorted(rows, key=lambda row: row[-1] + rng.randrange(delay_us))


def _split(rng: random.Random, query: Query, given: Inputs) -> tuple[str, Inputs]:
    """The query over two combined streams instead of one, and each row in one of the two."""
    one = rng.choice(query.streams)
    parts = [replace(one, name=f"{one.name}_{n}") for n in range(2)]
    declared = "".join(part.text(query.unit) for part in parts)
    union = " UNION ALL ".join(f"SELECT * FROM {part.name}" for part in parts)
    text = query.text().replace(one.text(query.unit), f"{declared}CREATE VIEW {one.name} AS {union};\n")
    inputs = {name: list(rows) for name, rows in given.items() if name != one.name}
    inputs |= {part.name: [] for part in parts}
    for row in given[one.name]:
        inputs[rng.choice(parts).name].append(row)
    return text, inputs
