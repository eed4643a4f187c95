"""Window functions of random queries, and the steps that join, or combine, rows or groups of the same window."""

from __future__ import annotations

from collections.abc import Sequence

from random_drawing import BOUNDS, Draft, Drawing, Relation, outside_windows
from random_expressions import Expressions
from random_statements import Select, View, quoted

from cq.lang.schema import Field
from cq.lang.types import BIGINT, TIMESTAMP
from cq.records import dataclass

KINDS = ("TUMBLE", "HOP", "CUMULATE")
SETS = ("EXCEPT", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION", "UNION ALL")
JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
BOUND_FIELDS = tuple(Field(name, TIMESTAMP, False) for name, _ in BOUNDS[:2])


def windows(d: Drawing, kind: str, source: Relation, lengths: str = "") -> str:
    """A window function over a relation, with these lengths or random ones."""
    time = quoted(d.rng.choice(source.times))
    return f"{kind}(TABLE {source.name}, DESCRIPTOR({time}), {lengths or window_lengths(d, kind)})"


def window_lengths(d: Drawing, kind: str) -> str:
    """Slide or step, size and offset of windows of this kind; hopping windows leave gaps if the slide is longer."""
    rng = d.rng
    size = rng.randint(1, 8)
    step = f"INTERVAL '{size}' {d.query.unit}, " if kind == "CUMULATE" else ""
    size *= rng.randint(1, 4) if step else 1
    slide = f"{d.interval()}, " if kind == "HOP" else step
    offset = f", {d.interval(-3, 9)}" if rng.random() < 0.2 else ""
    lengths = f"{slide}INTERVAL '{size}' {d.query.unit}"
    if offset and size % 2:  # of the calendar; the offset stays, so that some times of the rows are bounds
        lengths = lengths.replace(d.query.unit, "MONTH")
    return lengths + offset


@dataclass(frozen=True)
class Side:
    """What one side of a join reads, its columns, and how deep it is."""

    text: str
    fields: tuple[Field, ...]
    depth: int


def _sides(d: Drawing) -> tuple[Side, Side] | None:
    """Two relations in windows, mostly the same ones."""
    rng = d.rng
    kind = rng.choice(KINDS)
    lengths = window_lengths(d, kind)
    made = []
    for n in range(2):
        kept = [r for r in d.relations if r.windowed and r.depth < 4 and _has_bounds(r)]
        if kept and rng.random() < 0.3:
            source = rng.choice(kept)
            made.append(Side(source.name, source.fields, source.depth))
            continue
        fitting = d.choose(timed=True)
        if fitting is None:
            return None
        if n and rng.random() < 0.1:
            lengths = window_lengths(d, kind)
        function = windows(d, kind, fitting, lengths)
        made.append((_groups if rng.random() < 0.25 else _rows)(d, fitting, function))
    return made[0], made[1]


def _has_bounds(relation: Relation) -> bool:
    return {f.name for f in BOUND_FIELDS} <= {f.name for f in relation.fields}


def _rows(d: Drawing, source: Relation, function: str) -> Side:
    return Side(function, (*outside_windows(source), *BOUND_FIELDS), source.depth)


def _groups(d: Drawing, source: Relation, function: str) -> Side:
    """The groups of a column in each window, or all its rows as one."""
    rng = d.rng
    columns = outside_windows(source)
    keys = [f for f in rng.sample(columns, min(1, len(columns))) if rng.random() < 0.85]
    items = [*BOUNDS[:2], *((quoted(f.name), f.name) for f in keys), ("COUNT(*)", "n")]
    group = ("window_start", "window_end", *(quoted(f.name) for f in keys))
    where = d.where(d.expressions(("", columns)), 0.2)
    select = Select(tuple(items), function, where, group)
    return Side(f"({select})", (*BOUND_FIELDS, *keys, Field("n", BIGINT, False)), source.depth + 1)


def window_joined(d: Drawing) -> Draft | None:
    """Rows of the same window, mostly with equal keys; or those that have some, or no, such row beside them."""
    sides, rng = _sides(d), d.rng
    if sides is None:
        return None
    left, right = sides
    mine, theirs = d.expressions(("l.", left.fields)), d.expressions(("r.", right.fields))
    both = d.expressions(("l.", left.fields), ("r.", right.fields))
    on = _equalities(d, mine, theirs)
    if rng.random() < 0.25:
        on.append(both.condition(1))
    rng.shuffle(on)
    depth = max(left.depth, right.depth) + 1
    seen = Relation("", left.fields, ())
    if rng.random() < 0.3:
        return _drawn(d, _tested(d, seen, left, right, on), depth)
    items = d.items(seen, "l.")
    items += [(f"r.{quoted(rng.choice(right.fields).name)}", f"r{i}") for i in range(rng.randint(1, 3))]
    where = d.where(both, 0.15)
    word = rng.choice(JOINS)
    shown = "r" if word == "RIGHT JOIN" else "l"
    items += [(f"{shown}.{name}", name) for name, _ in BOUNDS[: rng.choice([0, 2, 2])]]
    if word == "JOIN" and rng.random() < 0.2:
        rest = f"{left.text} AS l, {right.text} AS r"
        where = " AND ".join([*on, f"({where})"] if where else on)
    else:
        alike = _shared_names(d, left.fields, right.fields)
        condition = f"USING ({', '.join(alike)})" if rng.random() < 0.2 else f"ON {' AND '.join(on)}"
        rest = f"{left.text} AS l {word} {right.text} AS r {condition}"
    return _drawn(d, Select(tuple(items), rest, where), depth)


def _equalities(d: Drawing, mine: Expressions, theirs: Expressions) -> list[str]:
    """The end of the window, mostly its start, and keys of both sides."""
    rng = d.rng
    on = ["l.window_end = r.window_end"]
    if rng.random() < 0.6:
        on.append("l.window_start = r.window_start")
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        columns = [t for text, t in mine.columns if "window_" not in text or rng.random() < 0.2]
        kind = rng.choice(columns or [TIMESTAMP]).kind
        on.append(f"{mine.argument(kind)} = {theirs.argument(kind)}")
    return on


def _shared_names(d: Drawing, left: Sequence[Field], right: Sequence[Field]) -> list[str]:
    """The bounds, and some of the columns that both sides have with one name and type."""
    bounds = [f.name for f in BOUND_FIELDS]
    types = {f.name: f.type for f in right if f.name not in bounds}
    names = [quoted(f.name) for f in left if types.get(f.name) == f.type and d.rng.random() < 0.6]
    return [*bounds, *names]


def _tested(d: Drawing, seen: Relation, left: Side, right: Side, on: Sequence[str]) -> Select:
    """Rows that some row of the same window is beside, or none."""
    items = (*d.items(seen, "l."), *((f"l.{name}", name) for name, _ in BOUNDS[:2]))
    return tested_by_time(d, items, left, right, on)


def tested_by_time(
    d: Drawing, items: Sequence[tuple[str, str]], left: Side, right: Side, on: Sequence[str], more: str = ""
) -> Select:
    """EXISTS, IN, SEMI and ANTI JOIN with these conditions, which limit how far apart two rows are. more: another
    condition on left rows."""
    rng = d.rng
    if rng.random() < 0.4:
        word = rng.choice(["SEMI", "ANTI"])
        return Select(tuple(items), f"{left.text} AS l {word} JOIN {right.text} AS r ON {' AND '.join(on)}", more)
    test = f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1"
    if rng.random() < 0.3:
        kind = rng.choice(right.fields).type.kind
        mine, theirs = (d.expressions((f"{n}.", side.fields)).argument(kind) for n, side in (("l", left), ("r", right)))
        test = f"{mine} {rng.choice(['', 'NOT '])}IN (SELECT {theirs}"
    where = f"{test} FROM {right.text} AS r WHERE {' AND '.join(on)})"
    return Select(tuple(items), f"{left.text} AS l", f"{where} AND ({more})" if more else where)


def _drawn(d: Drawing, select: Select, depth: int) -> Draft:
    name = d.next()
    aliases = {alias for _, alias in select.items}
    windowed = {f.name for f in BOUND_FIELDS} <= aliases
    return View(name, (select,)), Relation(name, (), (), windowed=windowed, depth=depth)


def window_sets(d: Drawing) -> Draft | None:
    """Rows of two relations in windows combined by their bounds and few other columns, so that rows are equal."""
    sides, rng = _sides(d), d.rng
    if sides is None:
        return None
    kinds = [d.vocabulary.kind(rng) for _ in range(rng.choice([0, 1, 1, 2]))]
    selects = []
    for side in sides:
        e = d.expressions(("p.", side.fields))
        items = [*BOUNDS[:2], *((e.argument(kind), f"c{i}") for i, kind in enumerate(kinds))]
        selects.append(Select(tuple(items), f"{side.text} AS p", d.where(e)))
    depth = max(side.depth for side in sides) + 1
    name = d.next()
    return View(name, tuple(selects), (rng.choice(SETS),)), Relation(name, (), (), windowed=True, depth=depth)


WINDOWS = (window_joined, window_joined, window_joined, window_sets)
