"""Random queries as text: streams with random schemas and delays, and views over them by every operator there is.

Every step asks the binder for the schema of what it reads, so types and event times are known; a step that the binder
refuses is drawn again. An exception that is no CompileError is a find.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cases import Prepared
from random_expressions import COLUMN_TYPES, Expressions

from cq.errors import CompileError
from cq.lang.schema import Field
from cq.lang.types import BIGINT, TIMESTAMP, Kind

UNITS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000}
NAMES = ("k", "v", "x", "y", "z", "w", "select", "Order", "naïve", "two words", 'qu"ote')
ATTEMPTS = 8  # of one step, before another step is drawn
COLUMN_KINDS = tuple(t.kind for t in COLUMN_TYPES)
AGGREGATED = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL, Kind.DOUBLE, Kind.DECIMAL)
INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
# of what the others are: of small numbers, where their spread has enough digits on every engine
AGGREGATES_OF = {
    "BOOL_AND": (Kind.BOOLEAN,), "BOOL_OR": (Kind.BOOLEAN,), "COUNT_IF": (Kind.BOOLEAN,), "BIT_AND": INTEGERS,
    "BIT_OR": INTEGERS, "BIT_XOR": INTEGERS, "VAR_POP": (Kind.SMALLINT,), "STDDEV_SAMP": (Kind.SMALLINT,),
}  # fmt: skip


BOUNDS = (("window_start", "window_start"), ("window_end", "window_end"), ("window_time", "window_time"))


@dataclass(frozen=True)
class Stream:
    """One source. time: what its event time is counted in; None without a watermark. NULLs stand where they may."""

    name: str
    fields: tuple[Field, ...]
    time: str | None
    delay: int
    late: str = ""

    def text(self, unit: str) -> str:
        """CREATE STREAM …; the time column is the last one."""
        parts = [f"{quoted(f.name)} {f.type}{'' if f.nullable else ' NOT NULL'}" for f in self.fields]
        time = quoted(self.fields[-1].name)
        if self.time == "millis":
            parts.append(f"ts AS TIMESTAMP_MILLIS({time})")
            time = "ts"
        if self.time is not None:
            delay = f" AS {time} - INTERVAL '{self.delay}' {unit}" if self.delay else ""
            parts.append(f"WATERMARK FOR {time}{delay}")
        late = f", late = '{self.late}'" if self.late else ""
        return f"CREATE STREAM {self.name} ({', '.join(parts)}) WITH (connector = 'memory'{late});\n"


@dataclass(frozen=True)
class Select:
    """One SELECT; `rest` is everything from FROM to before WHERE."""

    items: tuple[tuple[str, str], ...]
    rest: str
    where: str = ""
    group: tuple[str, ...] = ()
    having: str = ""

    def __str__(self) -> str:
        items = ", ".join(f"{text} AS {quoted(alias)}" for text, alias in self.items)
        where = f" WHERE {self.where}" if self.where else ""
        group = f" GROUP BY {', '.join(self.group)}" if self.group else ""
        having = f" HAVING {self.having}" if self.having else ""
        return f"SELECT {items} FROM {self.rest}{where}{group}{having}"


@dataclass(frozen=True)
class View:
    """A name for the rows of one SELECT, or of several put together."""

    name: str
    selects: tuple[Select, ...]

    def text(self) -> str:
        return f"CREATE VIEW {self.name} AS {' UNION ALL '.join(map(str, self.selects))};\n"


@dataclass(frozen=True)
class Query:
    """Streams, views over them, and which views are outputs, with their LIMIT. unit: of times and delays."""

    streams: tuple[Stream, ...]
    views: tuple[View, ...]
    outputs: tuple[tuple[str, int | None], ...]
    unit: str

    def head(self) -> str:
        return "".join(s.text(self.unit) for s in self.streams) + "".join(v.text() for v in self.views)

    def text(self) -> str:
        limits = [(n, f" LIMIT {limit}" if limit is not None else "") for n, limit in self.outputs]
        return self.head() + "".join(f"SELECT * FROM {name}{limit};\n" for name, limit in limits)


@dataclass
class Relation:
    """What a step may read: columns, which of them are event times, and whether it is a keyed window's result."""

    name: str
    fields: tuple[Field, ...]
    times: tuple[str, ...]
    keys: tuple[str, ...] = ()
    windowed: bool = False
    ended: bool = False  # an aggregate at the end of the input: nothing goes on from there
    depth: int = 0


def quoted(name: str) -> str:
    """The name as query text."""
    if name.isidentifier() and name.isascii() and name.islower() and name not in {"select"}:
        return name
    return '"' + name.replace('"', '""') + '"'


def _outside_windows(relation: Relation) -> list[Field]:
    """The columns that keep their names where the rows are put into windows."""
    return [f for f in relation.fields if (f.name, f.name) not in BOUNDS]


@dataclass
class Generator:
    """Draws one query. wild: expressions that can fail are drawn too."""

    rng: random.Random
    wild: bool = False
    query: Query = field(init=False)
    relations: list[Relation] = field(default_factory=list)

    def draw(self) -> Query:
        rng = self.rng
        unit = rng.choice(list(UNITS))
        streams = tuple(self._stream(f"s{i}") for i in range(rng.choice([1, 1, 1, 2, 2, 3])))
        self.query = Query(streams, (), (), unit)
        for s in streams:
            self.relations.append(self._relation(self.query, s.name, Relation(s.name, (), ())))
        steps = [self._project, self._window, self._window, self._window, self._window_rows, self._session,
                 self._attached, self._over, self._over, self._look_up, self._look_up, self._interval_join,
                 self._interval_join, self._join, self._join, self._union, self._unnest, self._at_end]  # fmt: skip
        wanted, tries = rng.choice([1, 2, 2, 3, 3, 4, 5]), 0
        while len(self.query.views) < wanted and tries < 60:
            tries += 1
            self._attempt(rng.choice(steps))
        if not self.query.views:
            self._attempt(self._plain)
        return self._with_outputs()

    def _with_outputs(self) -> Query:
        """The views nobody reads, and sometimes others, as outputs; streams nobody reads are gone."""
        rng = self.rng
        text = "".join(str(s) for v in self.query.views for s in v.selects)
        unread = [v.name for v in self.query.views if f"{v.name} " not in text and f"{v.name}," not in text]
        chosen = dict.fromkeys(unread[-3:] or [self.query.views[-1].name])
        if rng.random() < 0.3:
            chosen[rng.choice(self.query.views).name] = None
        outputs = tuple((n, rng.choice([0, 1, 3]) if rng.random() < 0.06 else None) for n in chosen)
        return pruned(replace(self.query, outputs=outputs))

    # ------------------------------------------------------------------------------------------------------ pieces

    def _stream(self, name: str) -> Stream:
        rng = self.rng
        types = [rng.choice(COLUMN_TYPES) for _ in range(rng.randint(1, 5))]
        names = rng.sample(NAMES, len(types))
        fields = [Field(n, t, rng.random() < 0.7) for n, t in zip(names, types, strict=True)]
        roll = rng.random()
        time = "micros" if roll < 0.87 else "millis" if roll < 0.95 else None
        type_ = BIGINT if time == "millis" else TIMESTAMP
        fields.append(Field("ts" if time == "micros" else "at", type_, rng.random() < 0.5))
        delay = rng.choice([0, 0, 1, 2, 5])
        return Stream(name, tuple(fields), time, delay, "fail" if self.wild and rng.random() < 0.1 else "")

    def _attempt(self, step: object) -> bool:
        """Whether a draw of the step was accepted by the binder; its relation is then there for others."""
        assert callable(step)
        for _ in range(ATTEMPTS):
            made = step()
            if made is None:
                return False
            view, relation = made
            query = replace(self.query, views=(*self.query.views, view))
            try:
                relation = self._relation(query, view.name, relation)
            except CompileError:
                continue
            self.query = query
            self.relations.append(relation)
            return True
        return False

    def _relation(self, query: Query, name: str, draft: Relation) -> Relation:
        bound = Prepared(query.head() + f"SELECT * FROM {name};").compiled
        schema = bound.outputs[0].node.schema
        return replace(draft, fields=schema.fields, times=tuple(schema.names[t.column] for t in schema.times))

    def _next(self) -> str:
        return f"v{len(self.query.views)}"

    def _choose(self, timed: bool = False) -> Relation | None:
        """A relation to read; recent ones more often, deep ones never."""
        fitting = [r for r in self.relations if not r.ended and r.depth < 5 and (r.times or not timed)]
        if not fitting:
            return None
        return self.rng.choice(fitting[-2:] if self.rng.random() < 0.6 else fitting)

    def _expressions(self, *relations: tuple[str, Sequence[Field]]) -> Expressions:
        columns = [(f"{prefix}{quoted(f.name)}", f.type) for prefix, fields in relations for f in fields]
        return Expressions(self.rng, columns, self.wild and self.rng.random() < 0.5)

    def _items(self, relation: Relation, prefix: str = "", keep_time: float = 0.9) -> list[tuple[str, str]]:
        """Columns and expressions under new names; mostly with the event times as they are."""
        rng, out = self.rng, []
        expressions = self._expressions((prefix, relation.fields))
        for i in range(rng.randint(1, 4)):
            column = expressions.column()
            plain = column is not None and rng.random() < 0.6
            out.append((column if plain else expressions.any(rng.randint(1, 3)), f"c{i}"))
        if rng.random() < keep_time:
            for t in dict.fromkeys([*relation.times, *(("window_start",) if relation.windowed else ())]):
                if t in {f.name for f in relation.fields}:
                    out.append((f"{prefix}{quoted(t)}", t))
        return out

    def _where(self, expressions: Expressions, probability: float = 0.3) -> str:
        return expressions.condition() if self.rng.random() < probability else ""

    def _keys(self, expressions: Expressions, most: int = 2) -> list[str]:
        rng = self.rng
        keys = []
        for _ in range(rng.choice([0, 1, 1, 1, 2, most])):
            column = expressions.column()
            keys.append(column if column is not None and rng.random() < 0.75 else expressions.any(1))
        return list(dict.fromkeys(keys))

    def _aggregates(self, expressions: Expressions, distinct: bool) -> list[str]:
        return [self._aggregate(expressions, distinct) for _ in range(self.rng.randint(1, 4))]

    def _aggregate(self, expressions: Expressions, distinct: bool) -> str:
        rng = self.rng
        condition = f" FILTER (WHERE {expressions.condition(1)})" if rng.random() < 0.2 else ""
        name = rng.choice(["COUNT", "COUNT", "SUM", "SUM", "AVG", "MIN", "MAX", *AGGREGATES_OF])
        if name == "COUNT" and rng.random() < 0.5:
            return f"COUNT(*){condition}"
        word = "DISTINCT " if distinct and rng.random() < (0.5 if name == "COUNT" else 0.2) else ""
        kinds = AGGREGATES_OF.get(name, (None,) if name in {"COUNT", "MIN", "MAX"} else AGGREGATED)
        return f"{name}({word}{self._argument(expressions, rng.choice(kinds))}){condition}"

    def _argument(self, expressions: Expressions, kind: Kind | None) -> str:
        column = expressions.column(kind)
        if column is not None and self.rng.random() < 0.7:
            return column
        return expressions.of(kind, 1) if kind is not None else expressions.any(1)

    def _interval(self, low: int = 1, high: int = 8) -> str:
        return f"INTERVAL '{self.rng.randint(low, high)}' {self.query.unit}"

    # ------------------------------------------------------------------------------------------------------- steps

    def _plain(self) -> tuple[View, Relation] | None:
        """A column of a stream: what is always accepted."""
        first = self.relations[0]
        items = ((quoted(first.fields[0].name), "c0"),)
        return View(self._next(), (Select(items, first.name),)), Relation(self._next(), (), ())

    def _project(self) -> tuple[View, Relation] | None:
        source = self._choose()
        if source is None:
            return None
        where = self._where(self._expressions(("", source.fields)), 0.6)
        select = Select(tuple(self._items(source)), source.name, where)
        windowed = source.windowed and any(a == "window_start" for _, a in select.items)
        return View(self._next(), (select,)), Relation(self._next(), (), (), windowed=windowed, depth=source.depth + 1)

    def _window(self) -> tuple[View, Relation] | None:
        source, rng = self._choose(timed=True), self.rng
        if source is None:
            return None
        kind = rng.choice(["TUMBLE", "TUMBLE", "HOP", "HOP", "CUMULATE"])
        sets = kind == "TUMBLE"
        function, expressions = self._function(kind, source), self._expressions(("", _outside_windows(source)))
        keys = self._keys(expressions)
        items = [*BOUNDS[: rng.choice([2, 2, 3])], *((k, f"k{i}") for i, k in enumerate(keys))]
        items += [(a, f"a{i}") for i, a in enumerate(self._aggregates(expressions, sets))]
        having = self._having(expressions, sets)
        select = Select(tuple(items), function, self._where(expressions), ("window_start", "window_end", *keys), having)
        keyed = tuple(f"k{i}" for i in range(len(keys)))
        return View(self._next(), (select,)), Relation(
            self._next(), (), (), keys=keyed, windowed=True, depth=source.depth + 1
        )

    def _function(self, kind: str, source: Relation) -> str:
        """A window function over a relation."""
        rng = self.rng
        size = rng.randint(1, 8)
        step = f"INTERVAL '{size}' {self.query.unit}, " if kind == "CUMULATE" else ""
        size *= rng.randint(1, 4) if step else 1
        slide = f"{self._interval()}, " if kind == "HOP" else step
        offset = f", {self._interval(-3, 9)}" if rng.random() < 0.2 else ""
        time = quoted(rng.choice(source.times))
        return f"{kind}(TABLE {source.name}, DESCRIPTOR({time}), {slide}INTERVAL '{size}' {self.query.unit}{offset})"

    def _window_rows(self) -> tuple[View, Relation] | None:
        """Rows in their windows, not grouped."""
        source, rng = self._choose(timed=True), self.rng
        if source is None:
            return None
        rows = replace(source, fields=tuple(_outside_windows(source)), windowed=False)
        items = [*self._items(rows), *BOUNDS[: rng.choice([2, 2, 3])]]
        where = self._where(self._expressions(("", rows.fields)), 0.2)
        if rng.random() < 0.2:
            bound = f"window_end {rng.choice(['<', '>='])} {quoted(rng.choice(source.times))} + {self._interval()}"
            where = f"({where}) AND {bound}" if where else bound
        select = Select(tuple(items), self._function(rng.choice(["TUMBLE", "HOP", "CUMULATE"]), source), where)
        return View(self._next(), (select,)), Relation(self._next(), (), (), windowed=True, depth=source.depth + 1)

    def _session(self) -> tuple[View, Relation] | None:
        source, rng = self._choose(timed=True), self.rng
        if source is None:
            return None
        expressions = self._expressions(("", _outside_windows(source)))
        keys = self._keys(expressions)
        by = f" PARTITION BY {', '.join(keys)}" if keys else ""
        time = quoted(rng.choice(source.times))
        items = [*BOUNDS[: rng.choice([2, 3, 3])], *((k, f"k{i}") for i, k in enumerate(keys))]
        items += [(a, f"a{i}") for i, a in enumerate(self._aggregates(expressions, distinct=False))]
        select = Select(
            tuple(items), f"SESSION(TABLE {source.name}{by}, DESCRIPTOR({time}), {self._interval(high=5)})",
            self._where(expressions), ("window_start", "window_end", *keys), self._having(expressions, distinct=False),
        )  # fmt: skip
        return View(self._next(), (select,)), Relation(self._next(), (), (), windowed=True, depth=source.depth + 1)

    def _having(self, expressions: Expressions, distinct: bool) -> str:
        if self.rng.random() > 0.2:
            return ""
        if self.rng.random() < 0.5:
            return f"COUNT(*) {self.rng.choice(['>', '<', '=', '<>'])} {self.rng.randint(0, 3)}"
        return f"{self._aggregate(expressions, distinct)} IS {self.rng.choice(['', 'NOT '])}NULL"

    def _attached(self) -> tuple[View, Relation] | None:
        """Groups of the rows of one window."""
        fitting = [
            r for r in self.relations
            if r.windowed and r.depth < 5 and {"window_start", "window_end"} <= {f.name for f in r.fields}
        ]  # fmt: skip
        if not fitting:
            return None
        source = self.rng.choice(fitting)
        fields = [f for f in source.fields if not f.name.startswith("window_")]
        expressions = self._expressions(("", fields))
        keys = self._keys(expressions, 1)
        items = [("window_start", "window_start"), ("window_end", "window_end")]
        items += [(k, f"k{i}") for i, k in enumerate(keys)]
        items += [(a, f"a{i}") for i, a in enumerate(self._aggregates(expressions, distinct=True))]
        having = self._having(expressions, distinct=True)
        select = Select(
            tuple(items), source.name, self._where(expressions), ("window_start", "window_end", *keys), having
        )
        keyed = tuple(f"k{i}" for i in range(len(keys)))
        return View(self._next(), (select,)), Relation(
            self._next(), (), (), keys=keyed, windowed=True, depth=source.depth + 1
        )

    def _over(self) -> tuple[View, Relation] | None:
        source, rng = self._choose(), self.rng
        if source is None:
            return None
        expressions = self._expressions(("", source.fields))
        items = self._items(source)
        for i in range(rng.randint(1, 3)):
            keys = ", ".join(self._keys(expressions))
            parts = [f"PARTITION BY {keys}"] if keys else []
            timed = bool(source.times) and rng.random() < 0.7
            if timed:
                parts.append(f"ORDER BY {quoted(rng.choice(source.times))}")
            if rng.random() < 0.45:
                call = self._lag(expressions)
            else:
                call = self._aggregate(expressions, distinct=False)
                parts.append(self._frame(timed))
            items.append((f"{call} OVER ({' '.join(parts)})", f"o{i}"))
        select = Select(tuple(items), source.name, self._where(expressions))
        windowed = source.windowed and any(a == "window_start" for _, a in select.items)
        return View(self._next(), (select,)), Relation(self._next(), (), (), windowed=windowed, depth=source.depth + 1)

    def _frame(self, timed: bool) -> str:
        """A frame of rows up to the row, or where they are in order of time a range of time; none is a range, too."""
        rng = self.rng
        if timed and rng.random() < 0.4:
            a, b = (f"INTERVAL '{rng.randint(0, 4)}' {self.query.unit}" for _ in range(2))
            return rng.choice([
                "", f"RANGE {a} PRECEDING", f"RANGE BETWEEN {a} PRECEDING AND {b} FOLLOWING",
                f"RANGE BETWEEN UNBOUNDED PRECEDING AND {b} PRECEDING",
                f"RANGE BETWEEN {a} PRECEDING AND {b} PRECEDING",
            ])  # fmt: skip
        first, last = sorted((rng.randint(0, 5), rng.randint(0, 5)), reverse=True)
        return rng.choice([
            "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", f"ROWS {first} PRECEDING",
            f"ROWS BETWEEN {first} PRECEDING AND {last} PRECEDING",
            f"ROWS BETWEEN UNBOUNDED PRECEDING AND {last} PRECEDING",
        ])  # fmt: skip

    def _lag(self, expressions: Expressions) -> str:
        rng = self.rng
        kind = rng.choice(COLUMN_TYPES).kind
        value = self._argument(expressions, kind)
        offset = rng.choice(["", ", 1", ", 2", ", 3", ", 9"])
        default = f", {expressions.of(kind, 1)}" if offset and rng.random() < 0.5 else ""
        return f"LAG({value}{offset}{default})"

    def _look_up(self) -> tuple[View, Relation] | None:
        """[LEFT] JOIN a keyed window result FOR SYSTEM_TIME AS OF."""
        left, rng = self._choose(timed=True), self.rng
        rights = [r for r in self.relations if r.keys and r.depth < 4]
        if left is None or not rights:
            return None
        right = rng.choice(rights)
        inner = self._expressions(("l.", left.fields))
        types = {f.name: f.type for f in right.fields}
        on = [f"r.{k} = {self._argument(inner, types[k].kind)}" for k in right.keys]
        both = self._expressions(("l.", left.fields), ("r.", right.fields))
        if rng.random() < 0.25:
            on.append(both.condition(1))
        rng.shuffle(on)
        items = self._items(left, "l.")
        for i in range(rng.randint(1, 3)):
            items.append((rng.choice([f"r.{quoted(f.name)}" for f in right.fields]), f"r{i}"))
        join = f"{rng.choice(['', 'LEFT '])}JOIN {right.name}"
        rest = f"{left.name} AS l {join} FOR SYSTEM_TIME AS OF l.{quoted(rng.choice(left.times))} AS r"
        select = Select(tuple(items), f"{rest} ON {' AND '.join(on)}", self._where(both, 0.15))
        return View(self._next(), (select,)), Relation(self._next(), (), (), depth=max(left.depth, right.depth) + 1)

    def _interval_join(self) -> tuple[View, Relation] | None:
        """[LEFT] JOIN of two relations whose times are within bounds, with or without keys."""
        left, right, rng = self._choose(timed=True), self._choose(timed=True), self.rng
        if left is None or right is None:
            return None
        low = rng.randint(-4, 4)
        inner = self._expressions(("l.", left.fields))
        outer = self._expressions(("r.", right.fields))
        both = self._expressions(("l.", left.fields), ("r.", right.fields))
        times = (f"l.{quoted(rng.choice(left.times))}", f"r.{quoted(rng.choice(right.times))}")
        on = self._bounds(*times, low, low + rng.choice([0, 1, 2, 5, 9]))
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            kind = rng.choice(COLUMN_TYPES).kind
            on.append(f"{self._argument(inner, kind)} = {self._argument(outer, kind)}")
        if rng.random() < 0.25:
            on.append(both.condition(1))
        rng.shuffle(on)
        items = self._items(left, "l.")
        for i in range(rng.randint(1, 3)):
            items.append((rng.choice([f"r.{quoted(f.name)}" for f in right.fields]), f"r{i}"))
        rest = f"{left.name} AS l {rng.choice(['', 'LEFT '])}JOIN {right.name} AS r ON {' AND '.join(on)}"
        select = Select(tuple(items), rest, self._where(both, 0.15))
        return View(self._next(), (select,)), Relation(self._next(), (), (), depth=max(left.depth, right.depth) + 1)

    def _join(self) -> tuple[View, Relation] | None:
        """[LEFT|RIGHT|FULL] JOIN of two relations by keys, also of groups at the end of the input."""
        left, right, rng = self._choose(), self._choose(), self.rng
        groups = [r for r in self.relations if r.ended and r.depth < 4]
        if groups and rng.random() < 0.5:
            left, right = rng.choice(groups), rng.choice([right, *groups])
        if left is None or right is None:
            return None
        sides = (self._expressions(("l.", left.fields)), self._expressions(("r.", right.fields)))
        both = self._expressions(("l.", left.fields), ("r.", right.fields))
        on = []
        for _ in range(rng.choice([1, 1, 1, 2])):
            kind = rng.choice([f.type.kind for f in left.fields] if rng.random() < 0.8 else COLUMN_KINDS)
            on.append(" = ".join(self._argument(side, kind) for side in sides))
        if rng.random() < 0.25:
            on.append(both.condition(1))
        rng.shuffle(on)
        items = self._items(left, "l.", 0.5)
        for i in range(rng.randint(1, 3)):
            items.append((rng.choice([f"r.{quoted(f.name)}" for f in right.fields]), f"r{i}"))
        condition, where = " AND ".join(on), self._where(both, 0.15)
        if rng.random() < 0.2:
            rest = f"{left.name} AS l, {right.name} AS r"
            where = f"{condition} AND ({where})" if where else condition
        else:
            kind = rng.choice(["", "", "LEFT ", "RIGHT ", "FULL "])
            rest = f"{left.name} AS l {kind}JOIN {right.name} AS r ON {condition}"
        ended = left.ended or right.ended
        depth = max(left.depth, right.depth) + 1
        return View(self._next(), (Select(tuple(items), rest, where),)), Relation(
            self._next(), (), (), ended=ended, depth=depth
        )

    def _bounds(self, left: str, right: str, low: int, high: int) -> list[str]:
        """low <= right - left <= high, in one of the forms there are; sometimes without the limits themselves."""

        def moved(by: int) -> str:
            return f"{left} {'-' if by < 0 else '+'} INTERVAL '{abs(by)}' {self.query.unit}"

        if self.rng.random() < 0.5:
            return [f"{right} BETWEEN {moved(low)} AND {moved(high)}"]
        return [
            f"{right} {self.rng.choice(['>=', '>=', '>'])} {moved(low)}",
            f"{moved(high)} {self.rng.choice(['>=', '>=', '>'])} {right}",
        ]

    def _union(self) -> tuple[View, Relation] | None:
        """Two or three relations by position; with an event time when all have one."""
        rng = self.rng
        parts = [p for p in (self._choose() for _ in range(rng.randint(2, 3))) if p is not None]
        if len(parts) < 2:
            return None
        kinds = [rng.choice(COLUMN_TYPES).kind for _ in range(rng.randint(1, 3))]
        timed = all(p.times for p in parts) and rng.random() < 0.85
        selects = []
        for p in parts:
            expressions = self._expressions(("", p.fields))
            items = [(self._argument(expressions, k), f"c{i}") for i, k in enumerate(kinds)]
            if timed:
                items.append((quoted(rng.choice(p.times)), "t"))
            selects.append(Select(tuple(items), p.name, self._where(expressions)))
        return View(self._next(), tuple(selects)), Relation(self._next(), (), (), depth=max(p.depth for p in parts) + 1)

    def _unnest(self) -> tuple[View, Relation] | None:
        source, rng = self._choose(), self.rng
        if source is None:
            return None
        expressions = self._expressions(("", source.fields))
        separator = rng.choice(["' '", "','", "''", "'a'", "'aa'", self._argument(expressions, Kind.VARCHAR)])
        ordinality = rng.random() < 0.3
        names = "u(word, place)" if ordinality else "u(word)"
        rest = f"{source.name}, UNNEST(SPLIT({self._argument(expressions, Kind.VARCHAR)}, {separator}))"
        rest += (" WITH ORDINALITY" if ordinality else "") + f" AS {names}"
        items = [*self._items(source), ("word", "word"), *([("place", "place")] if ordinality else [])]
        where = f"word <> '{rng.choice(['', 'a'])}'" if rng.random() < 0.3 else ""
        return View(self._next(), (Select(tuple(items), rest, where),)), Relation(
            self._next(), (), (), depth=source.depth + 1
        )

    def _at_end(self) -> tuple[View, Relation] | None:
        """An aggregate over all rows of the input."""
        source = self._choose()
        if source is None or self.rng.random() < 0.5:
            return None
        expressions = self._expressions(("", source.fields))
        keys = self._keys(expressions)
        items = [(k, f"k{i}") for i, k in enumerate(keys)]
        items += [(a, f"a{i}") for i, a in enumerate(self._aggregates(expressions, distinct=True))]
        select = Select(
            tuple(items), source.name, self._where(expressions), tuple(keys),
            self._having(expressions, distinct=True) if keys else "",
        )  # fmt: skip
        return View(self._next(), (select,)), Relation(self._next(), (), (), ended=True, depth=source.depth + 1)


def pruned(query: Query) -> Query:
    """The query without views and streams that no output needs."""
    needed = {name for name, _ in query.outputs}
    kept: list[View] = []
    for view in reversed(query.views):
        if view.name in needed:
            kept.insert(0, view)
            text = " ".join(str(s) for s in view.selects)
            words = set(_words(text))
            needed |= {v.name for v in query.views if v.name in words}
            needed |= {s.name for s in query.streams if s.name in words}
    return replace(query, streams=tuple(s for s in query.streams if s.name in needed), views=tuple(kept))


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def random_query(seed: int) -> Query:
    """The query of a seed."""
    rng = random.Random(f"query {seed}")
    return Generator(rng, wild=rng.random() < 0.25).draw()
