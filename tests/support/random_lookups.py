"""Random chains of joins and sub-queries that look rows up in few streams, each of them several times.

The streams are read one after the other, and none has times: in which of them rows are looked up, and which rows wait
for the end, follows from the order of the declarations and of the joins.
"""

from __future__ import annotations

import random

STREAMS = ("c", "n", "o")
DECLARED = "".join(f"CREATE STREAM {s} (id BIGINT, lo BIGINT, label VARCHAR);\n" for s in STREAMS)
LOOKED_UP = ("c", "c", "c", "n", "n", "o")
KINDS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
Rows = list[tuple[object, ...]]


def lookups(seed: int) -> str:
    """The query of a seed: one to three joins, and up to two conditions on sub-queries."""
    rng = random.Random(f"lookups {seed}")
    shown, joins = ["t0"], [f"{rng.choice(['c', 'n', 'o', 'o', 'o'])} AS t0"]
    for number in range(1, rng.randint(2, 4)):
        kind, name = rng.choice(KINDS), f"t{number}"
        joins.append(f"{kind} {_relation(rng)} AS {name} ON {_condition(rng, rng.choice(shown), name)}")
        shown += [name] * (kind not in {"SEMI JOIN", "ANTI JOIN"})
    where = [_test(rng, rng.choice(shown)) for _ in range(rng.choice([0, 1, 1, 2]))]
    columns = ", ".join(f"{t}.id AS i{t}, {t}.label AS l{t}" for t in shown)
    return f"{DECLARED}SELECT {columns} FROM {' '.join(joins)}{' WHERE ' if where else ''}{' AND '.join(where)};"


def rows_of_lookups(seed: int) -> dict[str, Rows]:
    """Few keys, some of them NULL, in up to fourteen rows of a stream."""
    rng = random.Random(f"rows {seed}")

    def key() -> int | None:
        return None if rng.random() < 0.1 else rng.randrange(6)

    return {
        s: [(key(), key(), rng.choice(["a", "b", None, s])) for _ in range(rng.choice([0, 3, 9, 14]))] for s in STREAMS
    }


def _relation(rng: random.Random) -> str:
    """A stream, some of its rows, or a join of two."""
    a, b = rng.choice(LOOKED_UP), rng.choice(LOOKED_UP)
    kind = rng.choice(["JOIN", "LEFT JOIN", "SEMI JOIN"])
    joined = f"(SELECT x.id, x.lo, x.label FROM {a} AS x {kind} {b} AS y ON x.lo = y.id)"
    return rng.choice([a, a, a, f"(SELECT * FROM {a} WHERE lo > 1)", joined])


def _condition(rng: random.Random, left: str, right: str) -> str:
    key = f"{left}.{rng.choice(['id', 'lo'])} = {right}.{rng.choice(['id', 'lo'])}"
    return key if rng.random() < 0.8 else f"{key} AND {left}.lo <= {right}.lo"


def _test(rng: random.Random, left: str) -> str:
    """A condition on the rows of a stream that may have been joined before."""
    column, stream, word = rng.choice(["id", "lo"]), rng.choice(LOOKED_UP), rng.choice(["", "NOT "])
    limit = f" WHERE s.id > {rng.randrange(4)}" if rng.random() < 0.7 else ""
    found = f"{left}.{column} {word}IN (SELECT s.lo FROM {stream} AS s{limit})"
    exists = f"{word}EXISTS (SELECT 1 FROM {stream} AS s WHERE s.id = {left}.{column} AND s.lo < 4)"
    return rng.choice([found, exists])
