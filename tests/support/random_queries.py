"""Random queries as text: streams with random schemas and delays, and views over them by every operator there is.

The steps that use time are here, those over whole inputs in `random_results`; their common sources are in
`random_drawing`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from random_calls import aggregate, frame, lag, value
from random_drawing import BOUNDS, Draft, Drawing, Relation, Step, outside_windows
from random_expressions import COLUMN_TYPES, ELEMENTS
from random_lists import LISTS
from random_results import RESULTS
from random_statements import ROW, Query, Select, Stream, View, late_of, names_in, pruned, quoted
from random_windows import KINDS, WINDOWS, Side, tested_by_time, windows

from cq.lang.schema import Field
from cq.lang.types import BIGINT, TIMESTAMP, Kind, array
from cq.records import replace

UNITS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000}
NAMES = ("k", "v", "x", "y", "z", "w", "select", "Order", "naïve", "two words", 'qu"ote')
COLUMN_KINDS = tuple(t.kind for t in COLUMN_TYPES)


def _by(keys: Sequence[str]) -> str:
    """PARTITION BY of the argument of a window function."""
    return f" PARTITION BY {', '.join(keys)}" if keys else ""


class Generator(Drawing):
    """Draws one query."""

    def draw(self) -> Query:
        rng = self.rng
        unit = rng.choice(list(UNITS))
        streams = tuple(self._stream(f"s{i}") for i in range(rng.choice([1, 1, 1, 2, 2, 3])))
        self.query = Query(streams, (), (), unit)
        for s in streams:
            for name in (s.name, *([late_of(s.name)] if s.late.startswith("stream:") else [])):
                self.relations.append(self.relation(self.query, name, Relation(name, (), ())))
        steps = self._steps()
        wanted, tries = rng.choice([1, 2, 2, 3, 3, 4, 5]), 0
        while len(self.query.views) < wanted and tries < 60:
            tries += 1
            self.attempt(rng.choice(steps))
        if not self.query.views:
            self.attempt(self._plain)
        return self._with_outputs()

    def _steps(self) -> list[Step]:
        """The steps to draw from; those listed several times are drawn more often."""
        own = [*[self._window] * 3, self._window_rows, *[self._session] * 2, self._attached, *[self._over] * 2,
               *[self._look_up] * 6, *[self._interval_join] * 2, self._asof_join, self._asof_using,
               self._union, self._unnest]  # fmt: skip
        return [*own, *(partial(step, self) for step in (*RESULTS, *LISTS, *WINDOWS))]

    def _with_outputs(self) -> Query:
        """Make the unread views, and sometimes others, outputs; drop unread streams."""
        rng = self.rng
        read = set().union(*map(names_in, self.query.views))
        unread = [v.name for v in self.query.views if v.name not in read]
        chosen = dict.fromkeys(unread[-3:] or [self.query.views[-1].name])
        if rng.random() < 0.3:
            chosen[rng.choice(self.query.views).name] = None
        outputs = tuple((n, rng.choice([0, 1, 3]) if rng.random() < 0.06 else None) for n in chosen)
        return pruned(replace(self.query, outputs=outputs))

    def _stream(self, name: str) -> Stream:
        rng = self.rng
        types = [rng.choice(self.vocabulary.types) for _ in range(rng.randint(1, 5))]
        if rng.random() < 0.15:
            types.append(array(rng.choice(ELEMENTS)))
        names = rng.sample(NAMES, len(types))
        fields = [Field(n, t, rng.random() < 0.7) for n, t in zip(names, types, strict=True)]
        if len(fields) > 1 and rng.random() < 0.15:  # the last ones are fields of a row
            inner = rng.randint(1, len(fields) - 1)
            fields[inner:] = [replace(f, name=f"{ROW}{f.name}", nullable=True) for f in fields[inner:]]
        roll = rng.random()
        time = "micros" if roll < 0.87 else "millis" if roll < 0.95 else None
        type_ = BIGINT if time == "millis" else TIMESTAMP
        fields.append(Field("ts" if time == "micros" else "at", type_, rng.random() < 0.5))
        delay = rng.choice([0, 0, 1, 2, 5])
        late = "fail" if self.wild and rng.random() < 0.1 else ""
        if time is not None and rng.random() < 0.1:
            late = f"stream:{late_of(name)}"
        return Stream(name, tuple(fields), time, delay, late)

    # ------------------------------------------------------------------------------------------------------- steps

    def _plain(self) -> Draft | None:
        """A column of a stream: always accepted."""
        first = self.relations[0]
        items = ((quoted(first.fields[0].name), "c0"),)
        return View(self.next(), (Select(items, first.name),)), Relation(self.next(), (), ())

    def _window(self) -> Draft | None:
        source, rng = self.choose(timed=True), self.rng
        if source is None:
            return None
        kind = rng.choice(["TUMBLE", "TUMBLE", "HOP", "HOP", "CUMULATE"])
        function, expressions = windows(self, kind, source), self.expressions(("", outside_windows(source)))
        keys = self.keys(expressions)
        items = [*BOUNDS[: rng.choice([2, 2, 3])], *((k, f"k{i}") for i, k in enumerate(keys))]
        items += [(a, f"a{i}") for i, a in enumerate(self.aggregates(expressions, distinct=True))]
        having = self.having(expressions, distinct=True)
        groups, keyed = ("window_start", "window_end", *keys), tuple(f"k{i}" for i in range(len(keys)))
        if keys and rng.random() < 0.15:
            listed, keyed = ", ".join(keys), ()
            sets = [f"ROLLUP({listed})", f"CUBE({listed})", f"GROUPING SETS ({listed}, ())"]
            groups = ("window_start", "window_end", rng.choice(sets))
        select = Select(tuple(items), function, self.where(expressions), groups, having)
        return View(self.next(), (select,)), Relation(
            self.next(), (), (), keys=keyed, windowed=True, depth=source.depth + 1
        )

    def _window_rows(self) -> Draft | None:
        """Rows in their windows, not grouped."""
        source, rng = self.choose(timed=True), self.rng
        if source is None:
            return None
        rows = replace(source, fields=tuple(outside_windows(source)), windowed=False)
        items = [*self.items(rows), *BOUNDS[: rng.choice([2, 2, 3])]]
        where = self.where(self.expressions(("", rows.fields)), 0.2)
        if rng.random() < 0.2:
            bound = f"window_end {rng.choice(['<', '>='])} {quoted(rng.choice(source.times))} + {self.interval()}"
            where = f"({where}) AND {bound}" if where else bound
        kind = rng.choice([*KINDS, "SESSION"])
        keys = self.keys(self.expressions(("", rows.fields))) if kind == "SESSION" else []
        function = self._sessions(source, keys) if kind == "SESSION" else windows(self, kind, source)
        select = Select(tuple(items), function, where)
        return View(self.next(), (select,)), Relation(self.next(), (), (), windowed=True, depth=source.depth + 1)

    def _session(self) -> Draft | None:
        source, rng = self.choose(timed=True), self.rng
        if source is None:
            return None
        expressions = self.expressions(("", outside_windows(source)))
        keys = self.keys(expressions)
        items = [*BOUNDS[: rng.choice([2, 3, 3])], *((k, f"k{i}") for i, k in enumerate(keys))]
        items += [(a, f"a{i}") for i, a in enumerate(self.aggregates(expressions, distinct=True))]
        where, having = self.where(expressions), self.having(expressions, distinct=True)
        if self._counts_rows() and not source.windowed:
            counted = tuple(i for i in items if i not in BOUNDS)
            select = Select(counted, self._counted(source, keys), where, tuple(keys), having)
            return View(self.next(), (select,)), Relation(self.next(), (), (), depth=source.depth + 1)
        function = self._sessions(source, keys)
        select = Select(tuple(items), function, where, ("window_start", "window_end", *keys), having)
        return View(self.next(), (select,)), Relation(self.next(), (), (), windowed=True, depth=source.depth + 1)

    def _counts_rows(self) -> bool:
        """Whether a window counts rows instead of covering some time."""
        return self.rng.random() < 0.3

    def _sessions(self, source: Relation, keys: Sequence[str]) -> str:
        """The sessions of these keys over a relation."""
        time = quoted(self.rng.choice(source.times))
        return f"SESSION(TABLE {source.name}{_by(keys)}, DESCRIPTOR({time}), {self.interval(high=5)})"

    def _counted(self, source: Relation, keys: Sequence[str]) -> str:
        """Windows that count rows of these keys: in order of arrival, or by time."""
        rng = self.rng
        time = f"DESCRIPTOR({quoted(rng.choice(source.times))}), " if rng.random() < 0.5 else ""
        kind, rows = rng.choice([("TUMBLE", "ROWS 3"), ("HOP", "ROWS 2, ROWS 5")])
        return f"{kind}(TABLE {source.name}{_by(keys)}, {time}{rows})"

    def _attached(self) -> Draft | None:
        """Groups of the rows of one window."""
        fitting = [
            r for r in self.relations
            if r.windowed and r.depth < 5 and {"window_start", "window_end"} <= {f.name for f in r.fields}
        ]  # fmt: skip
        if not fitting:
            return None
        source = self.rng.choice(fitting)
        fields = [f for f in source.fields if not f.name.startswith("window_")]
        expressions = self.expressions(("", fields))
        keys = self.keys(expressions, 1)
        items = [("window_start", "window_start"), ("window_end", "window_end")]
        items += [(k, f"k{i}") for i, k in enumerate(keys)]
        items += [(a, f"a{i}") for i, a in enumerate(self.aggregates(expressions, distinct=True))]
        having = self.having(expressions, distinct=True)
        select = Select(
            tuple(items), source.name, self.where(expressions), ("window_start", "window_end", *keys), having
        )
        keyed = tuple(f"k{i}" for i in range(len(keys)))
        return View(self.next(), (select,)), Relation(
            self.next(), (), (), keys=keyed, windowed=True, depth=source.depth + 1
        )

    def _over(self) -> Draft | None:
        source, rng = self.choose(), self.rng
        if source is None:
            return None
        expressions = self.expressions(("", source.fields))
        items = self.items(source)
        for i in range(rng.randint(1, 3)):
            keys = ", ".join(self.keys(expressions))
            parts = [f"PARTITION BY {keys}"] if keys else []
            timed = bool(source.times) and rng.random() < 0.7
            if timed:
                parts.append(f"ORDER BY {quoted(rng.choice(source.times))}")
            if rng.random() < 0.35:
                call = lag(expressions)
            else:
                call = value(expressions) if rng.random() < 0.2 else aggregate(expressions, distinct=True)
                parts.append(frame(rng, self.query.unit if timed else ""))
            items.append((f"{call} OVER ({' '.join(parts)})", f"o{i}"))
        select = Select(tuple(items), source.name, self.where(expressions))
        windowed = source.windowed and any(a == "window_start" for _, a in select.items)
        return View(self.next(), (select,)), Relation(self.next(), (), (), windowed=windowed, depth=source.depth + 1)

    def _look_up(self) -> Draft | None:
        """[LEFT] JOIN a keyed window result, or the rows of a stream as versions, FOR SYSTEM_TIME AS OF."""
        left, rng = self.choose(timed=True), self.rng
        results = [r for r in self.relations if r.keys and r.depth < 4]
        versions = [r for r in self.relations if r.times and not r.depth]
        if left is None or not results + versions:
            return None
        right = rng.choice(results if results and rng.random() < 0.8 else versions or results)
        inner = self.expressions(("l.", left.fields))
        types = {quoted(f.name): f.type for f in right.fields}
        keys = right.keys or (quoted(rng.choice(right.fields[:-1]).name),)
        on = [f"r.{k} = {inner.argument(types[k].kind)}" for k in keys]
        both = self.expressions(("l.", left.fields), ("r.", right.fields))
        if rng.random() < 0.25 and right.keys:
            on.append(both.condition(1))
        rng.shuffle(on)
        items = self.items(left, "l.")
        for i in range(rng.randint(1, 3)):
            items.append((rng.choice([f"r.{quoted(f.name)}" for f in right.fields]), f"r{i}"))
        join = f"{rng.choice(['', 'LEFT '])}JOIN {right.name}"
        rest = f"{left.name} AS l {join} FOR SYSTEM_TIME AS OF l.{quoted(rng.choice(left.times))} AS r"
        select = Select(tuple(items), f"{rest} ON {' AND '.join(on)}", self.where(both, 0.15))
        return View(self.next(), (select,)), Relation(self.next(), (), (), depth=max(left.depth, right.depth) + 1)

    def _interval_join(self) -> Draft | None:
        """A join of two relations whose times are within bounds, with or without keys; or the rows of one that match
        one of the other, or none."""
        left, right, rng = self.choose(timed=True), self.choose(timed=True), self.rng
        if left is None or right is None:
            return None
        low = rng.randint(-4, 4)
        inner = self.expressions(("l.", left.fields))
        outer = self.expressions(("r.", right.fields))
        both = self.expressions(("l.", left.fields), ("r.", right.fields))
        times = (f"l.{quoted(rng.choice(left.times))}", f"r.{quoted(rng.choice(right.times))}")
        on = self._bounds(*times, low, low + rng.choice([0, 1, 2, 5, 9]))
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            kind = rng.choice(COLUMN_TYPES).kind
            on.append(f"{inner.argument(kind)} = {outer.argument(kind)}")
        if rng.random() < 0.25:
            on.append(both.condition(1))
        rng.shuffle(on)
        items, depth = self.items(left, "l."), max(left.depth, right.depth) + 1
        if rng.random() < 0.35:
            sides = (Side(r.name, r.fields, r.depth) for r in (left, right))
            select = tested_by_time(self, items, *sides, on, self.where(inner, 0.15))
            return View(self.next(), (select,)), Relation(self.next(), (), (), depth=depth)
        for i in range(rng.randint(1, 3)):
            items.append((rng.choice([f"r.{quoted(f.name)}" for f in right.fields]), f"r{i}"))
        word = rng.choice(["", "", "LEFT ", "LEFT ", "RIGHT ", "FULL "])
        rest = f"{left.name} AS l {word}JOIN {right.name} AS r ON {' AND '.join(on)}"
        select = Select(tuple(items), rest, self.where(both, 0.15))
        return View(self.next(), (select,)), Relation(self.next(), (), (), depth=depth)

    def _asof_join(self) -> Draft | None:
        """ASOF [LEFT] JOIN: the nearest row by time, before or after, with the same keys."""
        left, right, rng = self.choose(timed=True), self.choose(timed=True), self.rng
        if left is None or right is None:
            return None
        inner, outer = self.expressions(("l.", left.fields)), self.expressions(("r.", right.fields))
        mine, theirs = (f"l.{quoted(rng.choice(left.times))}", f"r.{quoted(rng.choice(right.times))}")
        ahead = rng.random() < 0.3
        moved = rng.choice(["", "", f" {rng.choice('+-')} {self.interval()}"])
        near = f"{mine} {rng.choice(['<=', '<'] if ahead else ['>=', '>'])} {theirs}{moved}"
        on = []
        if rng.random() < 0.3:
            on.append(f"{theirs} - {mine} <= {self.interval()}" if ahead else f"{mine} - {theirs} <= {self.interval()}")
        for _ in range(rng.choice([0, 1, 1, 2])):
            kind = rng.choice(right.fields).type.kind
            on.append(f"{inner.argument(kind)} = {outer.argument(kind)}")
        if rng.random() < 0.2:
            on.append(rng.choice([inner, outer]).condition(1))
        items = self.items(left, "l.")
        items += [(f"r.{quoted(rng.choice(right.fields).name)}", f"r{i}") for i in range(rng.randint(1, 3))]
        matched = f" MATCH_CONDITION ({near})" if rng.random() < 0.3 else ""
        if not matched:
            on.append(near)
        rng.shuffle(on)
        rest = f"{left.name} AS l {rng.choice(['ASOF JOIN', 'ASOF LEFT JOIN'])} {right.name} AS r{matched}"
        rest += f" ON {' AND '.join(on)}" if on else ""
        both = self.expressions(("l.", left.fields), ("r.", right.fields))
        select = Select(tuple(items), rest, self.where(both, 0.15))
        return View(self.next(), (select,)), Relation(self.next(), (), (), depth=max(left.depth, right.depth) + 1)

    def _asof_using(self) -> Draft | None:
        """ASOF [LEFT] JOIN … USING: the last of the common names is the time, the others are keys."""
        left, right, rng = self.choose(timed=True), self.choose(timed=True), self.rng
        if left is None or right is None:
            return None
        kinds = [rng.choice(right.fields).type.kind for _ in range(rng.choice([0, 1, 1, 2]))]
        names = [*(f"k{i}" for i in range(len(kinds))), "at"]
        sides = []
        for side, other in ((left, "a"), (right, "b")):
            expressions = self.expressions(("", side.fields))
            values = [*map(expressions.argument, kinds), quoted(rng.choice(side.times))]
            values.append(quoted(rng.choice(side.fields).name))
            items = ", ".join(f"{value} AS {name}" for value, name in zip(values, [*names, other], strict=True))
            sides.append(f"(SELECT {items} FROM {side.name})")
        word = rng.choice(["ASOF JOIN", "ASOF LEFT JOIN"])
        rest = f"{sides[0]} AS l {word} {sides[1]} AS r USING ({', '.join(names)})"
        select = Select(tuple((name, name) for name in (*names, "a", "b")), rest)
        return View(self.next(), (select,)), Relation(self.next(), (), (), depth=max(left.depth, right.depth) + 1)

    def _bounds(self, left: str, right: str, low: int, high: int) -> list[str]:
        """low <= right - left <= high, in one of its forms; sometimes without the limits themselves."""

        def moved(by: int) -> str:
            return f"{left} {'-' if by < 0 else '+'} INTERVAL '{abs(by)}' {self.query.unit}"

        if self.rng.random() < 0.5:
            return [f"{right} BETWEEN {moved(low)} AND {moved(high)}"]
        return [
            f"{right} {self.rng.choice(['>=', '>=', '>'])} {moved(low)}",
            f"{moved(high)} {self.rng.choice(['>=', '>=', '>'])} {right}",
        ]

    def _union(self) -> Draft | None:
        """Two or three relations by position; with an event time if all have one."""
        rng = self.rng
        parts = [p for p in (self.choose() for _ in range(rng.randint(2, 3))) if p is not None]
        if len(parts) < 2:
            return None
        kinds = [rng.choice(COLUMN_TYPES).kind for _ in range(rng.randint(1, 3))]
        timed = all(p.times for p in parts) and rng.random() < 0.85
        selects = []
        for p in parts:
            expressions = self.expressions(("", p.fields))
            items = [(expressions.argument(k), f"c{i}") for i, k in enumerate(kinds)]
            if timed:
                items.append((quoted(rng.choice(p.times)), "t"))
            selects.append(Select(tuple(items), p.name, self.where(expressions)))
        return View(self.next(), tuple(selects)), Relation(self.next(), (), (), depth=max(p.depth for p in parts) + 1)

    def _unnest(self) -> Draft | None:
        source, rng = self.choose(), self.rng
        if source is None:
            return None
        expressions = self.expressions(("", source.fields))
        separator = rng.choice(["' '", "','", "''", "'a'", "'aa'", expressions.argument(Kind.VARCHAR)])
        ordinality = rng.random() < 0.3
        names = "u(word, place)" if ordinality else "u(word)"
        rest = f"{source.name}, UNNEST(SPLIT({expressions.argument(Kind.VARCHAR)}, {separator}))"
        rest += (" WITH ORDINALITY" if ordinality else "") + f" AS {names}"
        items = [*self.items(source), ("word", "word"), *([("place", "place")] if ordinality else [])]
        where = f"word <> '{rng.choice(['', 'a'])}'" if rng.random() < 0.3 else ""
        return View(self.next(), (Select(tuple(items), rest, where),)), Relation(
            self.next(), (), (), depth=source.depth + 1
        )


def random_query(seed: int) -> Query:
    """The query of a seed."""
    rng = random.Random(f"query {seed}")
    return Generator(rng, wild=rng.random() < 0.25).draw()
