"""Steps of random queries over whole inputs: orders and ranks, sets, grouping sets, joins, products."""

from __future__ import annotations

from collections.abc import Sequence

from random_calls import DIRECTIONS, NEAR, aggregate, around, frame, lag, order_keys, value
from random_derived import DERIVED
from random_drawing import Draft, Drawing, Relation
from random_expressions import Expressions
from random_statements import Select, View, quoted
from random_subqueries import COMPARISONS, SUBQUERIES, made, one_value

from cq.lang.schema import Field
from cq.lang.types import Kind

MOST_PRODUCT = 2  # streams whose rows are multiplied without an equality
RANKS = ("NTILE(3)", "PERCENT_RANK()", "CUME_DIST()")
SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


def _limit(d: Drawing) -> str:
    """LIMIT, OFFSET or FETCH, or nothing."""
    count, start = d.rng.choice([0, 1, 2, 5, 30]), d.rng.choice([0, 1, 3, 40])
    forms = [f"LIMIT {count}", f"LIMIT {count}", f"LIMIT {count} OFFSET {start}", f"OFFSET {start}"]
    return d.rng.choice([*forms, f"FETCH FIRST {count} ROWS ONLY"])


def _all_columns(d: Drawing, fields: Sequence[Field]) -> list[str]:
    """An order by all columns: ties are identical rows."""
    keys = [quoted(f.name) + d.rng.choice(DIRECTIONS) for f in fields]
    d.rng.shuffle(keys)
    return keys


def _order(d: Drawing, source: Relation, most: int = 2) -> list[str]:
    """The order of an OVER."""
    total = _all_columns(d, source.fields) if d.vocabulary.shared else []
    return [
        *(order_keys(d.expressions(("", source.fields)), most) if not total or d.rng.random() < 0.3 else []),
        *total,
    ]


def ordered(d: Drawing) -> Draft | None:
    """ORDER BY columns of the result or of FROM, or their numbers, mostly with a LIMIT; also a LIMIT alone."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    items = d.items(source)
    select = Select(tuple(items), source.name, d.where(d.expressions(("", source.fields))))
    keys = order_keys(d.expressions(("", source.fields)))
    if source.windowed and rng.random() < 0.4:
        keys.insert(0, "window_end")
    if rng.random() < 0.5:
        keys[0] = str(rng.randint(1, len(items))) + rng.choice(DIRECTIONS)
    if d.vocabulary.shared:
        keys = [str(n + 1) + rng.choice(DIRECTIONS) for n in rng.sample(range(len(items)), len(items))]
    order = f"ORDER BY {', '.join(keys)}" if rng.random() < 0.85 or d.vocabulary.shared else ""
    limit = _limit(d) if not order or rng.random() < 0.6 else ""
    windowed = source.windowed and any(alias == "window_start" for _, alias in items)
    return made(d, source.depth, select, tail=f"{order} {limit}".strip(), windowed=windowed)


def ranked(d: Drawing) -> Draft | None:
    """OVER in any order: numbers, ranks, LAG and running aggregates, mostly with a condition on one of them."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    e = d.expressions(("", source.fields))
    items = d.items(source)
    partition, sorted_by = d.keys(e), _order(d, source)
    if source.windowed and rng.random() < 0.4:
        partition.insert(0, "window_end")
    for i in range(rng.randint(1, 3)):
        same = rng.random() < 0.6 or d.vocabulary.shared  # rows that swap places do so in each of their orders
        keys, order = (partition, sorted_by) if same else (d.keys(e), _order(d, source))
        by = f"PARTITION BY {', '.join(keys)} " if keys else ""
        call = rng.choice(["ROW_NUMBER()", "ROW_NUMBER()", "RANK()", "DENSE_RANK()", *RANKS, lag(e), "", "", ""])
        rows = "" if call else f" {around(rng)}"
        if not call and rng.random() < 0.3 and not d.vocabulary.shared:
            call, rows = value(e), f" {around(rng)}"
        if not call and rng.random() < 0.3:
            key, unit = _measured(e)
            order, rows = ([key], f" {around(rng, unit)}") if unit else (order, rows)
        items.append((f"{call or aggregate(e, False)} OVER ({by}ORDER BY {', '.join(order)}{rows})", f"o{i}"))
    qualify = ""
    numbers = [(text, alias) for text, alias in items if text.startswith(("ROW_NUMBER", "RANK", "DENSE_RANK"))]
    if numbers and rng.random() < 0.6:
        text, alias = rng.choice(numbers)
        bound = rng.choice(["= 1", "<= 1", "<= 2", "< 4", "BETWEEN 1 AND 3", "> 1", "= 2", "<> 1"])
        qualify = f"{rng.choice([text, alias])} {bound}"
    where = d.where(e)
    windowed = source.windowed and any(alias == "window_start" for _, alias in items)
    return made(d, source.depth, Select(tuple(items), source.name, where, qualify=qualify), windowed=windowed)


def _measured(e: Expressions) -> tuple[str, str]:
    """A column with distances, in a direction, and their unit; empty if there is none."""
    columns = [(text, NEAR[t.kind]) for text, t in e.columns if t.kind in NEAR]
    if not columns:
        return "", ""
    text, unit = e.rng.choice(columns)
    return text + e.rng.choice(DIRECTIONS), unit


def beside_whole(d: Drawing) -> Draft | None:
    """Aggregates of whole partitions beside their rows."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    e = d.expressions(("", source.fields))
    items = d.items(source)
    for i in range(rng.randint(1, 3)):
        keys = d.keys(e)
        if source.windowed and rng.random() < 0.4:
            keys.insert(0, "window_end")
        items.append((f"{aggregate(e, True)} OVER ({'PARTITION BY ' if keys else ''}{', '.join(keys)})", f"w{i}"))
    text = items[-1][0]
    qualify = f"{text} IS {rng.choice(['', 'NOT '])}NULL" if rng.random() < 0.2 else ""
    return made(d, source.depth, Select(tuple(items), source.name, d.where(e), qualify=qualify))


def distinct(d: Drawing) -> Draft | None:
    """SELECT DISTINCT, or DISTINCT ON, which takes the first by an ORDER BY."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    e = d.expressions(("", source.fields))
    items, where = d.items(source, keep_time=0.3), d.where(e)
    keys = d.keys(e)
    if not keys or rng.random() < 0.6:
        return made(d, source.depth, Select(tuple(items), source.name, where, first="DISTINCT"))
    items = [(text, f"d{source.depth}{i}") for i, (text, _) in enumerate(items)]  # other names than the columns have
    order = [*keys, *_order(d, source)] if rng.random() < 0.5 or d.vocabulary.shared else []
    tail = f"ORDER BY {', '.join(dict.fromkeys(order))}" if order else ""
    select = Select(tuple(items), source.name, where, first=f"DISTINCT ON ({', '.join(keys)})")
    return made(d, source.depth, select, tail=tail)


def combined(d: Drawing) -> Draft | None:
    """Two or three relations combined by UNION, INTERSECT or EXCEPT, with or without ALL; with few columns, so that
    rows are equal."""
    rng = d.rng
    parts = [p for p in (d.choose() for _ in range(rng.choice([2, 2, 3]))) if p is not None]
    if len(parts) < 2:
        return None
    kinds = [rng.choice(parts[0].fields).type.kind for _ in range(rng.choice([1, 1, 2]))]
    timed = all(p.times for p in parts) and rng.random() < 0.4
    selects = []
    for p in parts:
        e = d.expressions(("", p.fields))
        items = [(e.argument(k), f"c{i}") for i, k in enumerate(kinds)]
        if timed:
            items.append((quoted(rng.choice(p.times)), "t"))
        selects.append(Select(tuple(items), p.name, d.where(e)))
    words = tuple(rng.choice(SETS) for _ in selects[1:])
    numbers = range(1, len(selects[0].items) + 1) if d.vocabulary.shared else [1]
    order = ", ".join(f"{n}{rng.choice(DIRECTIONS)}" for n in numbers)
    tail = f"ORDER BY {order} {_limit(d)}" if rng.random() < 0.2 else ""
    return made(d, max(p.depth for p in parts), *selects, sets=words, tail=tail)


def grouped_sets(d: Drawing) -> Draft | None:
    """Groups by ROLLUP, CUBE, GROUPING SETS, or by all that is not aggregated."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    e = d.expressions(("", source.fields))
    keys = list(dict.fromkeys(k for _ in range(2) for k in d.keys(e)))[:3]
    if not keys:
        return None
    items = [(k, f"k{i}") for i, k in enumerate(keys)]
    items += [(a, f"a{i}") for i, a in enumerate(d.aggregates(e, distinct=True))]
    listed = ", ".join(keys)
    sets = [f"({', '.join(rng.sample(keys, rng.randint(0, len(keys))))})" for _ in range(rng.randint(1, 3))]
    groups = [(f"ROLLUP({listed})",), (f"CUBE({listed})",), (f"GROUPING SETS ({listed}, {', '.join(sets)})",),
              (keys[0], f"CUBE({listed})"), (f"GROUPING SETS ({listed})", f"ROLLUP({keys[-1]})")]  # fmt: skip
    if not d.vocabulary.shared:  # where ALL is of constants alone, others make one group of no rows
        groups.append(("ALL",))
    group = rng.choice(groups)
    if group != ("ALL",):
        items.append((f"GROUPING({listed})", "g"))
    having = d.having(e, distinct=True)
    return made(d, source.depth, Select(tuple(items), source.name, d.where(e), group, having), ended=True)


def over_groups(d: Drawing) -> Draft | None:
    """Groups side by side: ranks and running results of their keys and aggregates, sorted or limited."""
    source, rng = d.choose(), d.rng
    if source is None:
        return None
    e = d.expressions(("", source.fields))
    keys = d.keys(e)
    if not keys:
        return None
    calls = [*keys, *d.aggregates(e, distinct=True)]
    items = [(text, f"c{i}") for i, text in enumerate(calls)]
    order = [text + rng.choice(DIRECTIONS) for text in (*rng.sample(calls, min(2, len(calls))), *keys)]
    sorted_by = f"ORDER BY {', '.join(dict.fromkeys(order))}"
    by = rng.choice(["", f"PARTITION BY {keys[0]} "])
    for i in range(rng.randint(0, 2)):
        call = rng.choice(["ROW_NUMBER()", "RANK()", "DENSE_RANK()", f"LAG({rng.choice(calls)})", ""])
        rows = "" if call else f" {frame(rng)}"
        items.append((f"{call or f'MIN({rng.choice(calls)})'} OVER ({by}{sorted_by}{rows})", f"o{i}"))
    if rng.random() < 0.4:
        items.append((f"MAX({rng.choice(calls)}) OVER ({by.strip()})", "m0"))  # no column has this name
    having = d.having(e, distinct=True)
    if rng.random() < 0.2:
        kind = rng.choice(source.fields).type.kind
        text = f"MIN({e.argument(kind)}) {rng.choice(COMPARISONS)} {one_value(d, d.expressions(), kind)}"
        having = f"{having} AND {text}" if having else text
    # the numbers of the keys: a name may mean a column of the result, which does not tell the groups apart
    numbers = ", ".join(str(n) for n, _ in enumerate(keys, 1))
    tail = f"{sorted_by}, {numbers} {_limit(d)}" if rng.random() < 0.4 else ""
    select = Select(tuple(items), source.name, d.where(e), tuple(keys), having)
    return made(d, source.depth, select, tail=tail, ended=True)


def joined_again(d: Drawing) -> Draft | None:
    """Three relations joined in one FROM, by equalities or USING."""
    parts = [p for p in (d.choose() for _ in range(3)) if p is not None]
    if len(parts) < 3:
        return None
    rng = d.rng
    aliases = ("l", "m", "r")
    sides = [d.expressions((f"{a}.", p.fields)) for a, p in zip(aliases, parts, strict=True)]
    rest, words = f"{parts[0].name} AS l", ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
    for n in (1, 2):
        other = sides[rng.randrange(n)]
        kind = rng.choice(other.columns)[1].kind
        on = f"{other.argument(kind)} = {sides[n].argument(kind)}"
        rest += f" {rng.choice(words)} {parts[n].name} AS {aliases[n]} ON {on}"
    everything = d.expressions(*((f"{a}.", p.fields) for a, p in zip(aliases, parts, strict=True)))
    items = [(everything.argument(rng.choice(everything.columns)[1].kind), f"c{i}") for i in range(rng.randint(1, 4))]
    return made(d, max(p.depth for p in parts), Select(tuple(items), rest, d.where(everything)))


def values(d: Drawing) -> Draft | None:
    """Rows written in the text, as VALUES or as a SELECT without FROM."""
    rng = d.rng
    kinds = [d.vocabulary.kind(rng) for _ in range(rng.randint(1, 3))]
    constants = d.expressions()
    if rng.random() < 0.25:
        items = tuple((constants.of(k, 1), f"c{i}") for i, k in enumerate(kinds))
        return made(d, 0, Select(items, "", constants.condition(1) if rng.random() < 0.2 else ""))
    rows = [f"({', '.join(_constant(constants, k) for k in kinds)})" for _ in range(rng.choice([1, 2, 3, 6]))]
    names = [f"c{i}" for i in range(len(kinds))]
    rest = f"(VALUES {', '.join(rows)}) AS t({', '.join(names)})"
    return made(d, 0, Select(tuple((n, n) for n in names), rest))


def _constant(e: Expressions, kind: Kind) -> str:
    return "NULL" if e.rng.random() < 0.1 else e.literal(kind)


def product(d: Drawing) -> Draft | None:
    """CROSS JOIN, or a join by a condition other than an equality; of relations with few rows."""
    left, right, rng = d.choose(), d.choose(), d.rng
    if left is None or right is None or left.power + right.power > MOST_PRODUCT:
        return None
    sides = (d.expressions(("l.", left.fields)), d.expressions(("r.", right.fields)))
    both = d.expressions(("l.", left.fields), ("r.", right.fields))
    items = d.items(left, "l.", 0.5)
    items += [(rng.choice([f"r.{quoted(f.name)}" for f in right.fields]), f"r{i}") for i in range(rng.randint(1, 2))]
    kind = rng.choice(left.fields).type.kind
    compared = f"{sides[0].argument(kind)} {rng.choice(COMPARISONS[1:])} {sides[1].argument(kind)}"
    joins = [("CROSS JOIN", ""), ("JOIN", compared), ("LEFT JOIN", compared), ("RIGHT JOIN", compared),
             ("FULL JOIN", compared), ("LEFT JOIN", both.condition(1))]  # fmt: skip
    word, on = rng.choice(joins)
    rest = f"{left.name} AS l {word} {right.name} AS r{on and ' ON '}{on}"
    return made(d, max(left.depth, right.depth), Select(tuple(items), rest, d.where(both)))


def project(d: Drawing) -> Draft | None:
    source = d.choose()
    if source is None:
        return None
    where = d.where(d.expressions(("", source.fields)), 0.6)
    select = Select(tuple(d.items(source)), source.name, where)
    windowed = source.windowed and any(a == "window_start" for _, a in select.items)
    return View(d.next(), (select,)), Relation(d.next(), (), (), windowed=windowed, depth=source.depth + 1)


def joined(d: Drawing) -> Draft | None:
    """[LEFT|RIGHT|FULL] JOIN of two relations by keys, also of groups at the end of the input."""
    left, right, rng = d.choose(), d.choose(), d.rng
    groups = [r for r in d.relations if r.ended and r.depth < 4]
    if groups and rng.random() < 0.5:
        left, right = rng.choice(groups), rng.choice([right, *groups])
    if left is None or right is None:
        return None
    sides = (d.expressions(("l.", left.fields)), d.expressions(("r.", right.fields)))
    both = d.expressions(("l.", left.fields), ("r.", right.fields))
    on = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        kind = rng.choice(
            [f.type.kind for f in left.fields] if rng.random() < 0.8 else [t.kind for t in d.vocabulary.types]
        )
        on.append(" = ".join(side.argument(kind) for side in sides))
    if rng.random() < 0.25:
        on.append(both.condition(1))
    rng.shuffle(on)
    items = d.items(left, "l.", 0.5)
    for i in range(rng.randint(1, 3)):
        items.append((rng.choice([f"r.{quoted(f.name)}" for f in right.fields]), f"r{i}"))
    condition, where = " AND ".join(on), d.where(both, 0.15)
    if rng.random() < 0.2:
        rest = f"{left.name} AS l, {right.name} AS r"
        where = f"{condition} AND ({where})" if where else condition
    else:
        kind = rng.choice(["", "", "LEFT ", "RIGHT ", "FULL "])
        rest = f"{left.name} AS l {kind}JOIN {right.name} AS r ON {condition}"
    ended = left.ended or right.ended
    depth = max(left.depth, right.depth) + 1
    return View(d.next(), (Select(tuple(items), rest, where),)), Relation(d.next(), (), (), ended=ended, depth=depth)


def at_end(d: Drawing) -> Draft | None:
    """An aggregate over all rows of the input."""
    source = d.choose()
    if source is None or d.rng.random() < 0.5:
        return None
    expressions = d.expressions(("", source.fields))
    keys = d.keys(expressions)
    items = [(k, f"k{i}") for i, k in enumerate(keys)]
    items += [(a, f"a{i}") for i, a in enumerate(d.aggregates(expressions, distinct=True))]
    select = Select(
        tuple(items), source.name, d.where(expressions), tuple(keys),
        d.having(expressions, distinct=True) if keys else "",
    )  # fmt: skip
    return View(d.next(), (select,)), Relation(d.next(), (), (), ended=True, depth=source.depth + 1)


RESULTS = (project, over_groups, over_groups, joined, joined, joined_again, at_end, ordered, ordered, ranked, ranked,
           beside_whole, distinct, combined, combined, grouped_sets, values, product, *SUBQUERIES,
           *DERIVED)  # fmt: skip
