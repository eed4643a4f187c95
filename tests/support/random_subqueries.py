"""Steps of random queries with other queries in their conditions and columns."""

from __future__ import annotations

from random_calls import DIRECTIONS, aggregate
from random_drawing import Draft, Drawing, Relation
from random_expressions import Expressions
from random_statements import Select, View, quoted

from cq.lang.types import Kind

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def made(d: Drawing, depth: int, *selects: Select, sets: tuple[str, ...] = (), tail: str = "", **more: bool) -> Draft:
    """The view of these selects, one deeper than what they read."""
    name = d.next()
    return View(name, selects, sets, tail), Relation(name, (), (), depth=depth + 1, **more)


def tested(d: Drawing) -> Draft | None:
    """Rows that pass conditions on other queries: IN, EXISTS, each with NOT, and comparisons with one value."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    outer = d.expressions(("o.", source.fields))
    conditions = [_condition(d, outer) for _ in range(rng.choice([1, 1, 1, 2]))]
    if rng.random() < 0.3:
        conditions.append(outer.condition(1))
    rng.shuffle(conditions)
    word = " OR " if rng.random() < 0.2 else " AND "
    select = Select(tuple(d.items(source, "o.")), f"{source.name} AS o", word.join(conditions))
    return made(d, source.depth, select)


def _condition(d: Drawing, outer: Expressions) -> str:
    inner, rng = d.choose(), d.rng
    assert inner is not None
    e = d.expressions(("i.", inner.fields))
    kind = d.vocabulary.kind(rng) if rng.random() < 0.4 else rng.choice(inner.fields).type.kind
    where = [e.condition(1)] if rng.random() < 0.3 else []
    related = _related(d, outer, e)
    word = rng.choice(["", "NOT "])
    match rng.randrange(7):
        case 5:
            where += related if rng.random() < 0.4 else []
            form = f"{rng.choice(COMPARISONS)} {rng.choice(['ANY', 'ALL'])}"
            return f"{outer.argument(kind)} {form} (SELECT {e.argument(kind)} FROM {inner.name} AS i{_where(where)})"
        case 6:
            kinds = [rng.choice(inner.fields).type.kind for _ in range(2)]
            mine, theirs = (", ".join(side.argument(k) for k in kinds) for side in (outer, e))
            where += related if rng.random() < 0.4 else []
            return f"({mine}) IN (SELECT {theirs} FROM {inner.name} AS i{_where(where)})"
        case 0 | 1:
            where += related if rng.random() < 0.4 else []
            found = f"SELECT {e.argument(kind)} FROM {inner.name} AS i{_where(where)}"
            form = rng.choice([f"{word}IN", "= ANY", "<> ALL"])
            return f"{outer.argument(kind)} {form} ({found})"
        case 2 | 3:
            where += related if rng.random() < 0.85 else []
            rows = f"SELECT {rng.choice(['1', '*'])} FROM {inner.name} AS i{_where(where)}"
            return f"{word}EXISTS ({f'SELECT 1 FROM ({rows}) AS r' if rng.random() < 0.2 else rows})"
        case _:
            return f"{outer.argument(kind)} {rng.choice(COMPARISONS)} {one_value(d, outer, kind)}"


def _related(d: Drawing, outer: Expressions, inner: Expressions) -> list[str]:
    """Conditions on columns of both: an equality, and sometimes others."""
    out = []
    for _ in range(d.rng.choice([1, 1, 2])):
        kind = d.rng.choice(inner.columns)[1].kind
        out.append(f"{inner.argument(kind)} {d.rng.choice(['=', '=', '=', *COMPARISONS])} {outer.argument(kind)}")
    return out


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def one_value(d: Drawing, outer: Expressions, kind: Kind | None) -> str:
    """An aggregate of another query, over all its rows or over those that match the outer row."""
    inner, rng = d.choose(), d.rng
    assert inner is not None
    e = d.expressions(("i.", inner.fields))
    where = [e.condition(1)] if rng.random() < 0.3 else []
    if rng.random() < 0.6:
        where += _related(d, outer, e)
    call = rng.choice(["MIN", "MAX"])
    text = aggregate(e, True) if kind is None else f"{call}({e.argument(kind)})"
    return f"(SELECT {text} FROM {inner.name} AS i{_where(where)})"


def with_values(d: Drawing) -> Draft | None:
    """Columns that are the single value of another query, or say whether it has a row."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    outer = d.expressions(("o.", source.fields))
    items = d.items(source, "o.")
    for i in range(rng.choice([1, 1, 2])):
        drawn = [one_value(d, outer, None), one_value(d, outer, None), _condition(d, outer), _first_of(d, outer)]
        items.append((rng.choice(drawn), f"q{i}"))
    return made(d, source.depth, Select(tuple(items), f"{source.name} AS o", d.where(outer)))


def _first_of(d: Drawing, outer: Expressions) -> str:
    """A column of the first row of another query, in an order of all its columns."""
    inner, rng = d.choose(), d.rng
    assert inner is not None
    e = d.expressions(("i.", inner.fields))
    order = [f"i.{quoted(f.name)}{rng.choice(DIRECTIONS)}" for f in inner.fields]
    rng.shuffle(order)
    where = _where(_related(d, outer, e) if rng.random() < 0.7 else [])
    column = f"i.{quoted(rng.choice(inner.fields).name)}"
    return f"(SELECT {column} FROM {inner.name} AS i{where} ORDER BY {', '.join(order)} LIMIT 1)"


SUBQUERIES = (tested, tested, with_values)
