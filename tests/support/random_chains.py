"""Random triggers whose table rows are known from their events, by one key or by arrays: transactions that can run in
chains.

Keys are few, so that transactions meet in rows and several accesses of one in the same row; rows come and go, and
transactions are rejected for every cause there is.
"""

from __future__ import annotations

import random

from cases import Prepared

COLUMNS = (
    "a BIGINT, b BIGINT, c BIGINT, f DOUBLE, w VARCHAR, d BIGINT ARRAY, e BIGINT ARRAY, ts TIMESTAMP, WATERMARK FOR ts"
)
STREAM = f"CREATE STREAM s ({COLUMNS}) WITH (connector = 'memory');"
TEXTS = (None, "", "w", "more than twelve bytes")
CHECKS = ("", ", CHECK (n >= 0)", ", CHECK (m IS NULL OR m < 20)", ", CHECK (n + COALESCE(m, 0) > -5)")


def random_chains(
    seed: int, events: int, keys: int = 4, texts: bool = False, changes: bool = False, fills: bool = False
) -> Prepared:
    """The query of a seed with its input, whose transactions should run in chains. texts: tables and keys have some.

    changes: changes are read, too.  fills: bodies insert rows into a stream, which is read.
    """
    r = random.Random(seed)
    drawn = _Drawn(r, [f"t{n}" for n in range(r.choice((1, 1, 2)))], texts, fills)
    said = [STREAM, *["CREATE STREAM o (x BIGINT, w VARCHAR, ts TIMESTAMP);"] * fills, *map(drawn.table, drawn.tables)]
    triggers = [f"g{n}" for n in range(r.choice((1, 1, 2)))]
    for name in triggers:
        when = r.choice(("", "", f" WHEN ({drawn.condition()})"))
        body = " ".join(drawn.statement(0) for _ in range(r.randint(1, 4)))
        body += f" {drawn.fill(drawn.tables[0])}" * fills
        said.append(f"CREATE TRIGGER {name} AFTER INSERT ON s{when} BEGIN ATOMIC {body} END;")
    for name in triggers:
        said.append(f"SELECT * FROM {name}; SELECT a, b, c, ts, reason FROM {name}_rejected;")
    said += [f"SELECT * FROM {name};" for name in drawn.tables]
    said += ["SELECT * FROM o;"] * fills
    if changes:
        said += [f"SELECT * FROM {name}_changes;" for name in sorted(drawn.written)]
    made = Prepared("SET transactions = 'chains';\n" + "\n".join(said))

    def number() -> int | None:
        return None if r.random() < 0.1 else r.randrange(-1, keys)

    def array() -> list[int | None] | None:
        return None if r.random() < 0.1 else [number() for _ in range(r.choice((0, 1, 2, 3, 3, 9)))]

    def text() -> str | None:
        return r.choice(TEXTS)

    rows = [
        (number(), number(), number(), r.choice((None, 0.5, -1.25)), text(), array(), array(), time)
        for time in range(events)
    ]
    made.give({"s": rows}, (r.choice((3, 50)),))
    return made


class _Drawn:
    def __init__(self, r: random.Random, tables: list[str], texts: bool, fills: bool) -> None:
        self.r, self.tables, self.texts, self.fills = r, tables, texts, fills
        self.two_keys = {t: r.random() < (0.7 if texts else 0.3) for t in tables}
        self.written: set[str] = set()

    def table(self, name: str) -> str:
        columns = "k BIGINT NOT NULL, l BIGINT NOT NULL, n BIGINT NOT NULL DEFAULT 2, m BIGINT, x DOUBLE, y BOOLEAN"
        if self.texts:
            columns = (
                columns.replace("l BIGINT", "l VARCHAR") + ", t VARCHAR, u VARCHAR NOT NULL DEFAULT 'u of a fresh row'"
            )
        key = "k, l" if self.two_keys[name] else "k"
        if not self.two_keys[name]:
            columns = columns.replace("l VARCHAR NOT NULL, ", "").replace("l BIGINT NOT NULL, ", "")
        made = f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}){self.r.choice(CHECKS)});"
        one = "'w'" if self.texts else "1"
        rows = [
            f"({k}{', ' + one if self.two_keys[name] else ''}, {self.r.randint(1, 9)})"
            for k in range(self.r.randint(0, 4))
        ]
        return made + (f" INSERT INTO {name} ({key}, n) VALUES {', '.join(rows)};" if rows else "")

    def statement(self, depth: int) -> str:
        kinds = ("update", "several", "insert", "delete", "show", "if", "signal", "fill")
        (kind,) = self.r.choices(kinds, (6, 4, 3, 2, 3, 3 * (depth < 2), 1, 6 * self.fills))
        table = self.r.choice(self.tables)
        self.written |= {table} if kind in {"update", "several", "insert", "delete"} else set()
        match kind:
            case "update":
                sets = self.sets(table)
                keys = self.key(table) if "(SELECT" in sets else self.keys(table)
                return f"UPDATE {table} SET {sets} WHERE {keys}{self.more()};"
            case "several" if self.r.random() < 0.4:
                return self.by_array(table)
            case "several":
                arrays = self.arrays()
                sets = self.r.choice(("n = n + u.i", "m = u.i", "x = COALESCE(x, 1) / 2, n = n + new.a", "y = n > u.i"))
                if "u(i, j)" in arrays and self.r.random() < 0.5:
                    sets = self.r.choice(("n = u.j", "m = m * 2 + u.j", f"m = {self.single()}"))
                second = f" AND {table}.l = {self.second()}" if self.two_keys[table] else ""
                return f"UPDATE {table} SET {sets} FROM UNNEST({arrays} WHERE {table}.k = u.i{second}{self.more()};"
            case "delete":
                return f"DELETE FROM {table} WHERE {self.keys(table)}{self.more()};"
            case "insert":
                columns = "(k, l, n, m)" if self.two_keys[table] else "(k, n, m)"
                keys = self.key_columns(table)
                added = f" DO UPDATE SET n = {table}.n + excluded.n, y = TRUE"
                fails = f" DO UPDATE SET m = {table}.n / excluded.m"  # where that is 0
                on = self.r.choice(("", " DO NOTHING", added, fails if self.r.random() < 0.2 else added))
                key = "k, l" if self.two_keys[table] else "k"
                said = f"INSERT INTO {table} {columns} VALUES ({keys}, {self.value()}, {self.value()})"
                if on and self.r.random() < 0.3:  # its values are those before the first row
                    said += f", ({self.key_columns(table)}, {self.value()}, {self.value()})"
                return said + (f" ON CONFLICT ({key}){on}" if on else "") + ";"
            case "show":
                return (
                    f"SELECT {self.value()} AS x, n AS y, t.x AS z, UPPER(new.w) || 'x' AS w FROM {table} AS t"
                    f" WHERE {self.keys(table, 't.')};"
                )
            case "fill":
                return self.fill(table)
            case "if":
                other = f" ELSE {self.statement(depth + 1)}" if self.r.random() < 0.5 else ""
                return f"IF {self.condition(rows=True)} THEN {self.statement(depth + 1)}{other} END IF;"
        return f"IF {self.condition(rows=True)} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF;"

    def fill(self, table: str) -> str:
        """INSERT INTO the stream: a row, rows of the table, or one for each element."""
        pick = self.r.random()
        if pick < 0.3:
            return f"INSERT INTO o VALUES ({self.value()}, new.w || 'x', new.ts);"
        if pick < 0.6:
            return (
                f"INSERT INTO o (x) SELECT {self.value()} + u.i FROM UNNEST({self.arrays()} WHERE u.i > {self.event()};"
            )
        return f"INSERT INTO o SELECT n, new.w, new.ts FROM {table} AS t WHERE {self.keys(table, 't.')};"

    def arrays(self) -> str:
        return self.r.choice(("new.d) AS u(i)", "new.d, new.e) AS u(i, j)", "new.e) WITH ORDINALITY AS u(i, j)"))

    def by_array(self, table: str) -> str:
        """Rows inserted or deleted for elements."""
        arrays, two = self.arrays(), self.two_keys[table]
        second = f" AND {table}.l = {self.second()}" if two else ""
        pick = self.r.random()
        if pick < 0.3:
            return f"DELETE FROM {table} USING UNNEST({arrays} WHERE {table}.k = u.i{second}{self.more()};"
        if pick < 0.5:
            more = self.r.choice(("", " WHERE u.i > 1"))
            return f"DELETE FROM {table} WHERE k IN (SELECT u.i FROM UNNEST({arrays}{more}){second}{self.more()};"
        said = f"INSERT INTO {table} ({'k, l, n' if two else 'k, n'}) SELECT u.i, {self.second() + ', ' if two else ''}"
        value = self.r.choice((self.value(), "u.j" if "j)" in arrays else "u.i", "new.a"))
        more = self.r.choice(("", f" WHERE u.i >= {self.event()}", f" WHERE {self.condition(rows=True)}"))
        key = "k, l" if two else "k"
        then = (
            "NOTHING",
            "NOTHING",
            f"UPDATE SET n = {table}.n + excluded.n, y = TRUE",
            f"UPDATE SET m = {self.value()}",
            f"UPDATE SET m = 6 / ({table}.n - excluded.n)",
            f"UPDATE SET n = COALESCE((SELECT z.n FROM {table} AS z WHERE z.k = {self.event()}"
            f"{f' AND z.l = {self.second()}' if two else ''}), 0) + excluded.n",
        )
        on = self.r.choice(("", *(f" ON CONFLICT ({key}) DO {t}" for t in then)))
        return f"{said}{value} FROM UNNEST({arrays}{more}{on};"

    def sets(self, table: str) -> str:
        some = (f"n = n + {self.value()}", f"m = {self.value()}", "x = (COALESCE(x, new.f) + new.f) / 2", "y = n > m")
        if self.texts:
            some += ("t = new.w", "u = COALESCE(t, new.w, 'none') || 'x'")
            if self.r.random() < 0.3:
                return "t = u, u = SUBSTRING(COALESCE(t, 'nothing'), 2, 30)"
        return ", ".join(self.r.sample(some, self.r.randint(1, 3)))

    def key_columns(self, table: str) -> str:
        return f"{self.event()}, {self.second()}" if self.two_keys[table] else self.event()

    def key(self, table: str, name: str = "") -> str:
        said = f"{name}k = {self.event()}"
        return f"{said} AND {name}l = {self.second()}" if self.two_keys[table] else said

    def keys(self, table: str, name: str = "") -> str:
        """One key or several."""
        if self.r.random() < 0.7:
            return self.key(table, name)
        if self.two_keys[table] and self.r.random() < 0.5:
            return f"({self.key(table, name)} OR {self.key(table, name)})"
        said = f"{name}k IN ({', '.join(self.event() for _ in range(self.r.randint(2, 3)))})"
        return f"{said} AND {name}l = {self.second()}" if self.two_keys[table] else said

    def more(self) -> str:
        if self.r.random() >= 0.3:
            return ""
        return f" AND {self.r.choice(('n > 3', 'm IS NULL', 'n < new.a', 'y'))}"

    def event(self) -> str:
        return self.r.choice(("new.a", "new.b", "new.c", "1"))

    def second(self) -> str:
        """The second part of a key."""
        return self.r.choice(("new.w", "'w'", "'more than twelve bytes'")) if self.texts else self.event()

    def value(self) -> str:
        pick = self.r.random()
        if pick < 0.5:
            return self.event()
        if pick < 0.7:
            return f"({self.event()} {self.r.choice('+-*')} {self.event()})"
        if pick < 0.75:
            return f"(6 / {self.event()})"
        return self.single() if pick < 0.9 else self.gathered()

    def single(self) -> str:
        table = self.r.choice(self.tables)
        return f"(SELECT v.{self.r.choice('nm')} FROM {table} AS v WHERE {self.key(table, 'v.')})"

    def gathered(self) -> str:
        """The value of an aggregate over the rows that an array names."""
        table = self.r.choice(self.tables)
        call = self.r.choice(("SUM(v.n)", "COUNT(v.m)", "MAX(v.m)", "CAST(SUM(v.x) AS BIGINT)"))
        second = f" AND v.l = {self.second()}" if self.two_keys[table] else ""
        return f"(SELECT {call} FROM {table} AS v, UNNEST(new.{self.r.choice('de')}) AS i(o) WHERE v.k = i.o{second})"

    def exists(self) -> str:
        table = self.r.choice(self.tables)
        met = f"{self.key(table, 'v.')}{self.r.choice(('', ' AND v.n > 3', ' AND v.m = new.a'))}"
        return f"{self.r.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} AS v WHERE {met})"

    def condition(self, rows: bool = False) -> str:
        if rows and self.r.random() < 0.2:
            return self.exists()
        one = self.value() if rows else self.event()
        return f"{one} {self.r.choice(('<', '=', '>='))} {self.event()}"
