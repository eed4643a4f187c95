"""Steps of random queries with arrays, and with queries in FROM that name the row before them."""

from __future__ import annotations

from random_calls import aggregate, order_keys
from random_drawing import Draft, Drawing, Relation
from random_expressions import ELEMENTS
from random_statements import Select, View, quoted

from cq.lang.types import Kind

MOST_ELEMENTS = 2  # streams whose rows may be multiplied by their elements


def lists(d: Drawing) -> Draft | None:
    """Rows with arrays made of their columns."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    e = d.expressions(("", source.fields))
    items = d.items(source)
    for i in range(rng.choice([1, 1, 2])):
        kind = rng.choice(ELEMENTS).kind
        made = [f"ARRAY[{', '.join(e.argument(kind) for _ in range(rng.randint(1, 3)))}]"]
        made.append(f"SPLIT({e.argument(Kind.VARCHAR)}, {rng.choice(['chr(44)', repr('a'), repr('')])})")
        items.append((rng.choice([*made, e.of(Kind.ARRAY, 2)]), f"l{source.depth}{i}"))
    select = Select(tuple(items), source.name, d.where(e))
    return View(d.next(), (select,)), Relation(d.next(), (), (), depth=source.depth + 1)


def elements(d: Drawing) -> Draft | None:
    """A row for each element of an array column, with or without rows for empty ones."""
    rng = d.rng
    fitting = [r for r in d.relations if r.depth < 5 and any(f.type.kind is Kind.ARRAY for f in r.fields)]
    if not fitting:
        return None
    source = rng.choice(fitting)
    column = quoted(rng.choice([f.name for f in source.fields if f.type.kind is Kind.ARRAY]))
    number = f"n{source.depth}" if rng.random() < 0.3 else ""
    element = f"x{source.depth}"
    call = f"UNNEST(s.{column}){' WITH ORDINALITY' if number else ''} AS u({element}{number and ', '}{number})"
    kept = rng.random() < 0.4
    rest = f"{source.name} AS s {'LEFT ' if kept else 'CROSS '}JOIN {call}{' ON TRUE' if kept else ''}"
    items = [*d.items(source, "s."), (element, element), *([(number, number)] if number else [])]
    where = d.where(d.expressions(("s.", source.fields)))
    return View(d.next(), (Select(tuple(items), rest, where),)), Relation(d.next(), (), (), depth=source.depth + 1)


def lateral(d: Drawing) -> Draft | None:
    """Beside each row the first rows of another relation with its key, or an aggregate of them."""
    left, right, rng = d.choose(), d.choose(), d.rng
    if left is None or right is None:
        return None
    outer, inner = d.expressions(("l.", left.fields)), d.expressions(("r.", right.fields))
    kind = rng.choice(right.fields).type.kind
    where = f"{inner.argument(kind)} = {outer.argument(kind)}"
    if rng.random() < 0.3:
        where += f" AND {inner.condition(1)}"
    if rng.random() < 0.4:
        items = [(aggregate(inner, distinct=True), f"a{i}") for i in range(rng.choice([1, 1, 2]))]
        tail = ""
    else:
        items = [(f"r.{quoted(rng.choice(right.fields).name)}", f"a{i}") for i in range(rng.choice([1, 2]))]
        tail = f" ORDER BY {', '.join(order_keys(inner, 2))} LIMIT {rng.choice([1, 1, 2, 3])}"
    query = f"{Select(tuple(items), f'{right.name} AS r', where)}{tail}"
    kept = rng.random() < 0.6
    rest = f"{left.name} AS l {'LEFT ' if kept else 'CROSS '}JOIN LATERAL ({query}) AS t{' ON TRUE' if kept else ''}"
    shown = [*d.items(left, "l."), *((f"t.{alias}", f"t{i}") for i, (_, alias) in enumerate(items))]
    select = Select(tuple(shown), rest, d.where(outer))
    return View(d.next(), (select,)), Relation(d.next(), (), (), depth=max(left.depth, right.depth) + 1)


LISTS = (lists, elements, elements, lateral)
