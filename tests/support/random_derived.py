"""Steps of random queries that test names: joins by column names, and derived tables with `*`, WITH and WINDOW."""

from __future__ import annotations

from random_calls import aggregate, frame
from random_drawing import Draft, Drawing, Relation
from random_statements import Select, quoted
from random_subqueries import made

from cq.lang.schema import Field

JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


def joined_by_name(d: Drawing) -> Draft | None:
    """Two relations, one with some columns renamed, joined by the common column names: USING or NATURAL."""
    left, right, rng = d.choose(), d.choose(), d.rng
    if left is None or right is None:
        return None
    types = {f.name: f.type for f in left.fields}
    alike = [f for f in right.fields if types.get(f.name) == f.type]
    keys = rng.sample(alike, min(len(alike), rng.choice([1, 1, 2])))
    if not keys:
        return None
    others = [f for f in right.fields if f not in keys]
    columns = [*(quoted(f.name) for f in keys), *(f"{quoted(f.name)} AS b{i}" for i, f in enumerate(others))]
    renamed = f"(SELECT {', '.join(columns)} FROM {right.name}) AS r"
    word = rng.choice(JOINS)
    names = ", ".join(quoted(f.name) for f in keys)
    rest = f"{left.name} AS l {word} {renamed} USING ({names})"
    if rng.random() < 0.3:
        rest = f"{left.name} AS l NATURAL {word} {renamed}"
    fields = [*left.fields, *(Field(f"b{i}", f.type, True) for i, f in enumerate(others))]
    seen = d.expressions(("", fields))
    items = d.items(Relation("", tuple(fields), left.times), keep_time=0.3)
    items += [(quoted(rng.choice(keys).name), "j0")]
    return made(d, max(left.depth, right.depth), Select(tuple(items), rest, d.where(seen, 0.2)))


def derived(d: Drawing) -> Draft | None:
    """Columns of a derived table: all but one, all with one replaced, or with results of a named window."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    e = d.expressions(("", source.fields))
    fields, more = list(source.fields), []
    one = rng.choice(fields)
    match rng.randrange(4):
        case 0 if len(fields) > 1:
            text = f"SELECT * EXCLUDE ({quoted(one.name)}) FROM {source.name}"
            fields.remove(one)
        case 1:
            text = f"SELECT * REPLACE ({e.of(one.type.kind, 1)} AS {quoted(one.name)}) FROM {source.name}"
        case 2:
            keys = d.keys(e)
            by = f"PARTITION BY {', '.join(keys)}" if keys else ""
            rows = "" if d.vocabulary.shared else frame(rng)
            over = f"{aggregate(e, False)} OVER w AS w{source.depth}"
            text = f"SELECT *, {over} FROM {source.name} WINDOW w AS ({by} {rows})"
            more = [(f"t.w{source.depth}", "o0")]
        case _:
            kept = f"SELECT * FROM q WHERE {e.condition(1)}"
            text = f"WITH q AS (SELECT * FROM {source.name}), p AS ({kept}) SELECT * FROM p"
    items = [*d.items(Relation("", tuple(fields), source.times, windowed=source.windowed), "t."), *more]
    return made(d, source.depth, Select(tuple(items), f"({text}) AS t", d.where(d.expressions(("t.", fields)))))


DERIVED = (joined_by_name, derived)
