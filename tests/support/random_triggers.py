"""Random triggers over small tables, as cq text and as the same statements run by SQLite.

Keys are few, so that accesses of one transaction meet in one row, and rows come and go. Values are small integers and
texts, whose meaning both share; everything else in a trigger is drawn: statements, nesting, conditions, rejections.
Every third case has streams that its triggers fill, and a trigger on one of them; in every third, conditions and values
test for rows, and in every third a row is inserted that only its conflict action can reject.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from cq.records import dataclass, replace

EVENT = ("a", "b", "c", "s", "d")
KEYS = ("k", "kk")
FILLED = {"o0": "x BIGINT, y VARCHAR NOT NULL", "o1": "x BIGINT, y VARCHAR"}
COUNTED = """CREATE TABLE counted (y VARCHAR PRIMARY KEY, n BIGINT NOT NULL);
CREATE TRIGGER count AFTER INSERT ON o0 INSERT INTO counted VALUES (new.y, 1) ON CONFLICT (y) DO UPDATE SET n = n + 1;
SELECT * FROM counted;
"""  # fired by rows of o0
TEXTS = ("", "x", "a text of more than twelve bytes", "y")
MOST_TEXT = 5_500  # characters of a case: the code of some longer ones is too large to compile
ARRAY = "UNNEST(new.d) AS u(j)"  # which SQLite calls json_each
Event = tuple[int | None, int | None, int | None, str | None, tuple[int | None, ...] | None]


@dataclass(frozen=True)
class Table:
    """name (k [, kk], n NOT NULL, m, w): key of one or two columns, of which the second is a text."""

    name: str
    keys: int
    check: str
    rows: tuple[tuple[int, str, int], ...]

    def create(self) -> str:
        key = ", ".join(KEYS[: self.keys])
        text = ", kk VARCHAR NOT NULL" if self.keys == 2 else ""
        check = f", CHECK ({self.check})" if self.check else ""
        columns = f"k BIGINT NOT NULL{text}, n BIGINT NOT NULL DEFAULT 2, m BIGINT, w VARCHAR DEFAULT 'w'"
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY ({key}){check});"

    def fill(self) -> str:
        if not self.rows:
            return ""
        names = ", ".join((*KEYS[: self.keys], "n"))
        rows = ", ".join(f"({k}, '{t}', {n})" if self.keys == 2 else f"({k}, {n})" for k, t, n in self.rows)
        return f"INSERT INTO {self.name} ({names}) VALUES {rows};"


@dataclass(frozen=True)
class Sql:
    """A statement that SQLite runs unchanged, once `new.` has become a parameter's colon."""

    text: str


@dataclass(frozen=True)
class ForEach:
    """A statement for each element. arrays: the elements of each, or `new.d`; they are e.j and e.x.

    word: the word before the arrays, FROM or USING.
    """

    text: str
    word: str
    arrays: tuple[tuple[str, ...] | str, ...]
    where: str

    def __str__(self) -> str:
        arrays = (a if isinstance(a, str) else f"ARRAY[{', '.join(a)}]" for a in self.arrays)
        given = f"UNNEST({', '.join(arrays)}) AS e({', '.join('jx'[: len(self.arrays)])})"
        return f"{self.text} {self.word} {given} {self.where}"


@dataclass(frozen=True)
class Show:
    """A SELECT: its rows are the trigger's output."""

    text: str


@dataclass(frozen=True)
class Signal:
    """A rejection."""

    message: str


@dataclass(frozen=True)
class If:
    """IF … ELSE … END IF."""

    condition: str
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]


Statement = Sql | ForEach | Show | Signal | If


@dataclass(frozen=True)
class Trigger:
    """A trigger of stream `s0` or `s1`."""

    name: str
    stream: str
    when: str
    body: tuple[Statement, ...]

    def text(self) -> str:
        when = f" WHEN ({self.when})" if self.when else ""
        body = "".join(f"  {line};\n" for line in map(_text, self.body))
        return f"CREATE TRIGGER {self.name} AFTER INSERT ON {self.stream}{when} BEGIN ATOMIC\n{body}END;\n"


def _text(statement: Statement) -> str:
    match statement:
        case Sql(text) | Show(text):
            return text
        case ForEach():
            return str(statement)
        case Signal(message):
            return f"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = {message}"
        case If(condition, then, other):
            yes = "".join(f"{_text(s)}; " for s in then)
            no = "".join(f"{_text(s)}; " for s in other)
            return f"IF {condition} THEN {yes}{f'ELSE {no}' if other else ''}END IF"


@dataclass
class Case:
    """Tables, triggers on them, and events by stream in order of arrival: (stream, values)."""

    tables: tuple[Table, ...]
    triggers: tuple[Trigger, ...]
    events: tuple[tuple[str, Event], ...]

    def text(self) -> str:
        streams = sorted({t.stream for t in self.triggers})
        text = "".join(
            f"CREATE STREAM {s} (a BIGINT, b BIGINT, c BIGINT, s VARCHAR, d BIGINT ARRAY, ts TIMESTAMP,"
            " WATERMARK FOR ts) WITH (connector = 'memory');\n"
            for s in streams
        )
        text += "".join(f"{t.create()}\n{t.fill()}\n" for t in self.tables)
        text += "".join(f"CREATE STREAM {name} ({FILLED[name]});\n" for name in self.filled())
        text += "".join(t.text() for t in self.triggers)
        names = [n for t in self.triggers for n in (t.name, f"{t.name}_rejected")]
        shown = [f"SELECT {'*' if not n.endswith('_rejected') else 'a, b, c, s, d'} FROM {n};\n" for n in names]
        shown += [f"SELECT * FROM {name};\n" for name in (*(t.name for t in self.tables), *self.filled())]
        return text + "".join(shown) + (COUNTED if "o0" in self.filled() else "")

    def logged(self) -> list[Table]:
        """The tables that triggers write."""
        return [t for t in self.tables if t.name in self.written()]

    def filled(self) -> list[str]:
        """The streams that triggers fill."""
        return [name for name in FILLED if name in self.written()]

    def written(self) -> set[str]:
        steps = [s for t in self.triggers for s in _inside(t.body)]
        return {_written(s.text) for s in steps if isinstance(s, Sql | ForEach)}

    def inputs(self) -> dict[str, list[tuple[object, ...]]]:
        """The rows of the streams; their times determine the order in which they are merged."""
        rows: dict[str, list[tuple[object, ...]]] = {t.stream: [] for t in self.triggers}
        for time, (stream, values) in enumerate(self.events):
            rows[stream].append((*values, time))
        return rows


def _inside(body: Sequence[Statement]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from _inside((*statement.then, *statement.other))


def _written(text: str) -> str:
    """The table written by `UPDATE t …`, `INSERT INTO t …`, `DELETE FROM t …`."""
    words = text.split()
    return words[1] if words[0] == "UPDATE" else words[2]


def random_case(seed: int) -> Case:
    """The case of a seed."""
    r = random.Random(seed)
    case = _case(r, seed)
    while len(case.text()) > MOST_TEXT:
        case = _case(r, seed)
    return case


def _case(r: random.Random, seed: int) -> Case:
    names = [f"t{n}" for n in range(r.choice((1, 1, 2, 3)))]
    tables = tuple(_table(r, n) for n in names)
    streams = r.choice((("s0",), ("s0",), ("s0", "s1")))
    draws = {what: random.Random(f"{what} {seed}").random() < 0.35 for what in ("fills", "asks", "counts")}
    if draws["counts"]:
        tables = (*tables[:-1], replace(tables[-1], keys=1, check=""))
    body = _Body(r, tables, **draws)
    triggers = tuple(
        Trigger(f"g{n}", streams[n % len(streams)], r.choice(("", "", body.compared())), body.body())
        for n in range(len(streams) + r.randint(0, 1))
    )
    events = tuple((r.choice(streams), _event(r)) for _ in range(40 if body.counts else r.choice((0, 3, 40))))
    return Case(tables, triggers, events)


def _table(r: random.Random, name: str) -> Table:
    keys = r.choice((1, 1, 2))
    check = r.choice(("", "n >= 0", "m IS NULL OR m < 20", "n + COALESCE(m, 0) > -5"))
    rows = {(k, r.choice(TEXTS) if keys == 2 else "") for k in range(r.randint(0, 4))}
    return Table(name, keys, check, tuple((k, t, r.randint(1, 9)) for k, t in sorted(rows)))


def _event(r: random.Random) -> Event:
    def number() -> int | None:
        return None if r.random() < 0.1 else r.randint(-1, 5)

    text = None if r.random() < 0.1 else r.choice(TEXTS)
    return number(), number(), number(), text, r.choice((None, tuple(number() for _ in range(r.choice((0, 1, 3, 8))))))


@dataclass
class _Body:
    r: random.Random
    tables: Sequence[Table]
    loops: int = 2  # arrays that may still be used: each makes generated code large
    fills: bool = False  # whether streams are filled
    asks: bool = False  # whether EXISTS is used
    counts: bool = (
        False  # whether rows of defaults are inserted or changed, also after arrays, and several rows at once
    )

    def loop(self, share: float) -> bool:
        """Whether to draw one here."""
        drawn = self.loops > 0 and self.r.random() < share
        self.loops -= drawn
        return drawn

    def body(self) -> tuple[Statement, ...]:
        """Statements; or for an array, ones that only a later count can reject."""
        if self.counts and self.r.random() < 0.6:
            return self.quiet(), self.count()
        return self.statements(0)

    def statements(self, depth: int) -> tuple[Statement, ...]:
        return tuple(self.statement(depth) for _ in range(self.r.randint(1, 4 - depth)))

    def statement(self, depth: int) -> Statement:
        kinds = ("update", "insert", "delete", "show", "if", "signal", "fill", "count")
        (kind,) = self.r.choices(kinds, (5, 4, 2, 3, 3 * (depth < 2), 1, 5 * self.fills, 3 * self.counts))
        table = self.r.choice(self.tables)
        match kind:
            case "update" if self.loop(0.4):
                return self.each(table)
            case "update":
                sets, asked = self.sets(table, ""), self.asked()
                keys = self.key(table) if "(SELECT" in sets + asked else self.keys(table)
                return Sql(f"UPDATE {table.name} SET {sets} WHERE {keys}{self.more(table)}{asked}")
            case "insert" if self.loop(0.3):
                return self.insert_each(table)
            case "insert":
                return self.insert(table)
            case "delete" if self.loop(0.5):
                return self.delete_each(table)
            case "delete":
                asked = self.asked()
                keys = self.key(table) if asked else self.keys(table)
                return Sql(f"DELETE FROM {table.name} WHERE {keys}{self.more(table)}{asked}")
            case "show":
                if self.loop(0.2):
                    said = f"SELECT SUM(n + new.a) + COUNT(*) AS x, {self.r.choice(('MIN', 'MAX'))}(w) AS y"
                    return Show(f"{said} FROM {table.name}, {ARRAY} WHERE {self.key(table, 'u.j')}{self.more(table)}")
                if self.r.random() < 0.5:
                    return Show(f"SELECT {self.number(1)} AS x, {self.text()} AS y")
                own = f"SELECT {self.number(1, table)} AS x, w AS y FROM {table.name}"
                return Show(f"{own} WHERE {self.key(table)}{self.more(table)}{self.asked()}")
            case "fill":
                return self.fill(table)
            case "count":
                return self.count()
            case "if":
                other = self.statements(depth + 1) if self.r.random() < 0.5 else ()
                return If(self.condition(), self.statements(depth + 1), other)
        return If(self.condition(), (Signal("'no ' || new.s"),), ())

    def fill(self, table: Table) -> Statement:
        """INSERT INTO a stream: VALUES, a SELECT, one of a row, of aggregates, or for elements."""
        into = f"INSERT INTO {self.r.choice((*FILLED,))}"
        if self.loop(0.3):
            arrays = self.arrays()
            value = self.r.choice(("e.x" if len(arrays) > 1 else "e.j", self.number(1)))
            where = self.r.choice(("WHERE TRUE", "WHERE e.j > 1", f"WHERE {self.condition()}"))
            return ForEach(f"{into} SELECT {value}, {self.text()}", "FROM", arrays, where)
        if self.loop(0.2):
            said = f"SELECT SUM(n + new.a) + COUNT(*), {self.r.choice(('MIN', 'MAX'))}(w)"
            return Sql(f"{into} {said} FROM {table.name}, {ARRAY} WHERE {self.key(table, 'u.j')}{self.more(table)}")
        if self.r.random() < 0.3:
            return Sql(f"{into} (y, x) VALUES ({self.text()}, {self.number(1)}), ({self.text()}, 7)")
        if self.r.random() < 0.4:
            return Sql(f"{into} (x, y) SELECT {self.number(1)}, {self.text()} WHERE {self.condition()}")
        own = f"SELECT {self.number(1, table)}, w FROM {table.name}"
        return Sql(f"{into} {own} WHERE {self.key(table)}{self.more(table)}{self.asked()}")

    def arrays(self) -> tuple[tuple[str, ...] | str, ...]:
        listed = tuple(self.number(0) for _ in range(self.r.randint(1, 3)))
        return self.r.choice((("new.d",), (listed,), ("new.d", listed), (listed, "new.d")))

    def each(self, table: Table) -> Statement:
        arrays = self.arrays()
        more = self.r.choice(("n = n + 1", "m = e.x", "n = n + e.x")) if len(arrays) > 1 else "n = n + e.j"
        sets = self.r.choice((more, f"{more}, w = {self.text()}", self.sets(table, "")))
        where = f"WHERE {self.key(table, 'e.j')}{self.more(table)}{self.asked()}"
        return ForEach(f"UPDATE {table.name} SET {sets}", "FROM", arrays, where)

    def quiet(self) -> Statement:
        """A statement for each element that rejects no event if the arrays are complete."""
        table = self.unchecked()
        where = f"WHERE {self.key(table, 'e.j')}{self.more(table)}"
        match self.r.choice(("update", "delete", "insert")):
            case "update":
                sets = self.r.choice(("m = new.b", f"w = {self.text()}", f"m = e.j, w = {self.text()}", "m = n"))
                return ForEach(f"UPDATE {table.name} SET {sets}", "FROM", ("new.d",), where)
            case "delete":
                return ForEach(f"DELETE FROM {table.name}", "USING", ("new.d",), where)
        columns, values = ", ".join((*KEYS[: table.keys], "m")), ", ".join(("e.j", "'x'")[: table.keys])
        said = f"INSERT INTO {table.name} ({columns}) SELECT {values}, e.j"
        return ForEach(said, "FROM", ("new.d",), "WHERE e.j > 1 ON CONFLICT DO NOTHING")

    def delete_each(self, table: Table) -> Statement:
        if self.r.random() < 0.5:
            where = f"WHERE {self.key(table, 'e.j')}{self.more(table)}{self.asked()}"
            return ForEach(f"DELETE FROM {table.name}", "USING", self.arrays(), where)
        more = self.r.choice(("", " WHERE u.j < new.b"))
        text = f" AND {table.name}.kk = {self.text()}" * (table.keys == 2)
        said = f"DELETE FROM {table.name} WHERE {table.name}.k IN (SELECT u.j FROM {ARRAY}{more}){text}"
        return Sql(said + self.more(table))

    def insert_each(self, table: Table) -> Statement:
        arrays = self.arrays()
        key = ", ".join(("e.j", self.text())[: table.keys])
        value = self.r.choice(("e.x" if len(arrays) > 1 else "e.j", self.number(1)))
        said = f"INSERT INTO {table.name} SELECT {key}, {value}, {self.number(1)}, {self.text()}"
        where = self.r.choice(("WHERE TRUE", "WHERE e.j > 1", f"WHERE {self.condition()}"))
        return ForEach(said, "FROM", arrays, where + self.on_conflict(table))

    def insert(self, table: Table) -> Statement:
        if self.asks and self.r.random() < 0.3:
            return self.insert_row_of(self.r.choice(self.tables), table)
        key = self.number(0)
        rows = [self.values(table, key)]
        if self.counts and self.r.random() < 0.7:
            second = " AND o.kk = new.s" * (table.keys == 2)
            seen = (
                f"(SELECT o.n FROM {table.name} AS o WHERE o.k = {key}{second})"  # that of the first row, if it is new
            )
            rows += [self.values(table, self.number(0), self.r.choice((seen, ""))) for _ in range(self.r.randint(1, 2))]
        conflict = self.on_conflict(table)
        values = ", ".join(f"({row})" for row in (rows[:1] if "(SELECT" in conflict else rows))
        return Sql(f"INSERT INTO {table.name} VALUES {values}{conflict}")

    def insert_row_of(self, other: Table, table: Table) -> Statement:
        """A row made from another one, if that exists."""
        key = ", ".join((self.r.choice((self.number(0), f"{other.name}.k + 1")), self.text())[: table.keys])
        own = f"SELECT {key}, {self.number(1, other)}, {self.number(1, other)}, {self.text()} FROM {other.name}"
        said = f"{own} WHERE {self.key(other)}{self.more(other)}{self.asked()}"
        return Sql(f"INSERT INTO {table.name} {said}{self.on_conflict(table)}")

    def values(self, table: Table, number: str, m: str = "") -> str:
        key = ", ".join((number, self.text())[: table.keys])
        return f"{key}, {self.number(1)}, {m or self.number(1)}, {self.text()}"

    def count(self) -> Statement:
        """A row of defaults, or the update of an existing one: only that may reject the event."""
        table = self.unchecked()
        columns = ", ".join(KEYS[: table.keys])
        key = ", ".join((str(self.r.randint(0, 2)), repr(self.r.choice(TEXTS)))[: table.keys])
        where = self.more(table).replace(" AND", " WHERE")
        sets = self.r.choice((self.sets(table, "excluded."), "n = new.c", "n = n + new.a", "n = NULLIF(new.b, 2)"))
        then = f"DO UPDATE SET {sets}{where}"
        return Sql(f"INSERT INTO {table.name} ({columns}) VALUES ({key}) ON CONFLICT ({columns}) {then}")

    def unchecked(self) -> Table:
        return self.r.choice([t for t in self.tables if not t.check])

    def on_conflict(self, table: Table) -> str:
        then = self.r.choice(("", "DO NOTHING", "DO UPDATE"))
        said = f" ON CONFLICT ({', '.join(KEYS[: table.keys])}) {then}" if then else ""
        return said if then != "DO UPDATE" else f"{said} SET {self.sets(table, 'excluded.')}"

    def sets(self, table: Table, other: str) -> str:
        extra = f" + {other}n" if other else ""
        chosen = self.r.sample(
            (f"n = {self.number(1, table)}{extra}", f"m = {self.number(1, table)}", f"w = {self.text()}"),
            self.r.randint(1, 3),
        )
        return ", ".join(chosen)

    def key(self, table: Table, number: str = "") -> str:
        parts = [f"{table.name}.k = {number or self.number(0)}", f"{table.name}.kk = {self.text()}"]
        return " AND ".join(parts[: table.keys])

    def keys(self, table: Table) -> str:
        """One key or several, read from no other row."""
        if self.r.random() < 0.6:
            return self.key(table)
        if table.keys == 2 and self.r.random() < 0.5:
            said = f"({self.key(table)} OR {self.key(table)})"
        else:
            numbers = ", ".join(self.number(0) for _ in range(self.r.randint(2, 3)))
            said = f"{table.name}.k IN ({numbers})" + f" AND {table.name}.kk = {self.text()}" * (table.keys == 2)
        return self.key(table) if "(SELECT" in said else said

    def more(self, table: Table) -> str:
        return f" AND {self.r.choice(('n > 3', 'm IS NULL', 'n < new.a'))}" if self.r.random() < 0.3 else ""

    def asked(self) -> str:
        return f" AND {self.exists()}" if self.asks and self.r.random() < 0.3 else ""

    def exists(self) -> str:
        """Whether there is a row for which a condition holds, which may be NULL."""
        other = self.r.choice(self.tables)
        one, two = (self.r.choice(("new.a", "new.b", "1", "2")) for _ in range(2))
        key = self.r.choice((f"o.k = {one}", f"o.k = {one}", f"o.k IN ({one}, {two})"))
        if other.keys == 2:
            key += f" AND o.kk = {self.r.choice(('new.s', repr(TEXTS[1])))}"
        met = self.r.choice(("", " AND o.m > 1", " AND o.m < 3", " AND o.n < new.c", " AND o.w <> new.s"))
        return f"{self.r.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {other.name} AS o WHERE {key}{met})"

    def number(self, depth: int, table: Table | None = None) -> str:
        if self.asks and depth and self.r.random() < 0.2:
            return f"CAST({self.exists()} AS BIGINT)"
        own = ("n", "m") if table is not None else ()
        plain = ("new.a", "new.b", "new.c", str(self.r.randint(0, 3)), *own)
        pick = self.r.random()
        if (depth == 0 and pick < 0.85) or pick < 0.4:
            return self.r.choice(plain)
        if pick < 0.6:
            return f"({self.r.choice(plain)} {self.r.choice('+-')} {self.r.choice(plain)})"
        if pick < 0.7:
            return f"COALESCE({self.r.choice(plain)}, {self.r.randint(0, 3)})"
        other = self.r.choice(self.tables)
        if self.loop(0.1):
            keys = self.key(other, "u.j")
            of = self.r.choice(("SUM({0}.n)", "COUNT({0}.m)", "MIN({0}.m)")).format(other.name)
            return f"(SELECT {of} FROM {ARRAY}, {other.name} WHERE {keys})"
        key = f"{other.name}.k = {self.r.choice(('new.a', 'new.b', '1'))}"
        if other.keys == 2:
            key += f" AND {other.name}.kk = {self.r.choice(('new.s', repr(TEXTS[1])))}"
        return f"(SELECT {other.name}.{self.r.choice(('n', 'm'))} FROM {other.name} WHERE {key})"

    def text(self) -> str:
        return self.r.choice(("new.s", *(f"'{t}'" for t in TEXTS), "new.s || 'z'"))

    def condition(self) -> str:
        """A condition on the event, or on the contents of tables."""
        compared = self.compared()
        if not self.asks or self.r.random() < 0.4:
            return compared
        return self.r.choice((self.exists(), f"{compared} AND {self.exists()}", f"NOT ({compared} OR {self.exists()})"))

    def compared(self) -> str:
        compared = (
            f"{self.r.choice(('new.a', 'new.b'))} {self.r.choice(('<', '=', '>='))} {self.r.choice(('new.c', '2'))}"
        )
        return self.r.choice((compared, f"NOT ({compared})", f"{compared} OR new.s IS NULL"))


# -- SQLite -----------------------------------------------------------------------------------------------------------


class _Rejected(Exception):
    pass


def by_sqlite(case: Case, changes: bool = False) -> dict[str, list[tuple[object, ...]]]:
    """The outputs of the case: for each trigger its rows and the events it rejects, the tables, then streams.

    changes: then also the changes to tables that are `logged`; the rows of one statement in SQLite's order.
    """
    db = sqlite3.connect(":memory:", isolation_level=None)
    for table in case.tables:
        db.execute(table.create())
        if table.rows:
            db.execute(table.fill())
        _log(db, table)
    for name, columns in FILLED.items():
        db.execute(f"CREATE TABLE {name} ({columns})")
    shown: dict[str, list[tuple[object, ...]]] = {}
    for t in case.triggers:
        shown[t.name], shown[f"{t.name}_rejected"] = [], []
    for time, (stream, values) in enumerate(case.events):
        given = {**dict(zip(EVENT, values, strict=True)), "d": None if values[-1] is None else json.dumps(values[-1])}
        for t in case.triggers:
            if t.stream == stream and (not t.when or _true(db, t.when, given)):
                db.execute("SAVEPOINT event")
                try:
                    rows = list(_run(db, t.body, given))
                except (_Rejected, sqlite3.IntegrityError):
                    db.execute("ROLLBACK TO event")
                    shown[f"{t.name}_rejected"].append(values)
                else:
                    shown[t.name] += rows if _shows(t.body) else [(*values, time)]
                db.execute("RELEASE event")
    for table in case.tables:
        order = ", ".join(KEYS[: table.keys])
        shown[table.name] = db.execute(f"SELECT * FROM {table.name} ORDER BY {order}").fetchall()
    for name in case.filled():
        shown[name] = db.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
    if "o0" in shown:
        shown["counted"] = db.execute("SELECT y, COUNT(*) FROM o0 GROUP BY y ORDER BY y").fetchall()
    for table in case.logged() if changes else ():
        shown[f"{table.name}_changes"] = db.execute(f"SELECT * FROM log_of_{table.name} ORDER BY rowid").fetchall()
    return shown


def _log(db: sqlite3.Connection, table: Table) -> None:
    """A table of changes, maintained by SQLite's own triggers."""
    columns = (*KEYS[: table.keys], "n", "m", "w")
    db.execute(f"CREATE TABLE log_of_{table.name} (op, {', '.join(columns)})")
    kinds = {"INSERT": ("+I new",), "UPDATE": ("-U old", "+U new"), "DELETE": ("-D old",)}
    for kind, said in kinds.items():
        rows = [f"('{op}', {', '.join(f'{row}.{c}' for c in columns)})" for op, row in map(str.split, said)]
        notes = "".join(f"INSERT INTO log_of_{table.name} VALUES {row}; " for row in rows)
        db.execute(f"CREATE TRIGGER log_{kind}_of_{table.name} AFTER {kind} ON {table.name} BEGIN {notes}END")


def _bound(text: str) -> str:
    return text.replace(ARRAY, "json_each(:d) AS u").replace("u.j", "u.value").replace("new.", ":")


def _true(db: sqlite3.Connection, condition: str, given: Mapping[str, object]) -> bool:
    return bool(db.execute(f"SELECT {_bound(condition)}", given).fetchone()[0])


def _run(
    db: sqlite3.Connection, body: Sequence[Statement], given: Mapping[str, object]
) -> Iterator[tuple[object, ...]]:
    for statement in body:
        match statement:
            case Sql(text):
                db.execute(_bound(text), given)
            case ForEach(text=text, where=where, arrays=arrays):
                for j, *x in zip_longest(*(_elements(db, a, given) for a in arrays)):
                    said = _bound(f"{text} {where}").replace("e.j", ":j").replace("e.x", ":x")
                    db.execute(said, {**given, "j": j, "x": x[0] if x else None})
            case Show(text):
                yield from db.execute(_bound(text), given).fetchall()
            case Signal():
                raise _Rejected
            case If(condition, then, other):
                yield from _run(db, then if _true(db, condition, given) else other, given)


def _elements(db: sqlite3.Connection, array: tuple[str, ...] | str, given: Mapping[str, object]) -> list[object]:
    if isinstance(array, str):
        return json.loads(str(given["d"])) if given["d"] is not None else []
    return [db.execute(f"SELECT {_bound(e)}", given).fetchone()[0] for e in array]


def _shows(body: Sequence[Statement]) -> bool:
    return any(isinstance(s, Show) or (isinstance(s, If) and _shows((*s.then, *s.other))) for s in body)
