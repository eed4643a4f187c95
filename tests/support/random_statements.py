"""The parts of random queries, and their text. Each part of a view is a separate field: shrinking can remove it."""

from __future__ import annotations

from itertools import groupby

from cq.lang.schema import Field
from cq.records import dataclass, replace

ROW = "m."  # the prefix of the fields of a row


@dataclass(frozen=True)
class Stream:
    """One source. time: the unit of its event time; None without a watermark. NULLs occur wherever they are allowed."""

    name: str
    fields: tuple[Field, ...]
    time: str | None
    delay: int
    late: str = ""

    def text(self, unit: str) -> str:
        """CREATE STREAM …; the time column is the last one."""
        parts = [_declared(group) for group in _rows_of(self.fields)]
        time = quoted(self.fields[-1].name)
        if self.time == "millis":
            parts.append(f"ts AS TIMESTAMP_MILLIS({time})")
            time = "ts"
        if self.time is not None:
            delay = f" AS {time} - INTERVAL '{self.delay}' {unit}" if self.delay else ""
            parts.append(f"WATERMARK FOR {time}{delay}")
        late = f", late = '{self.late}'" if self.late else ""
        return f"CREATE STREAM {self.name} ({', '.join(parts)}) WITH (connector = 'memory'{late});\n"


def _rows_of(fields: tuple[Field, ...]) -> list[list[Field]]:
    """The columns, with adjacent fields of one row grouped."""
    return [list(group) for _, group in groupby(fields, lambda f: ROW if f.name.startswith(ROW) else f.name)]


def _declared(fields: list[Field]) -> str:
    """A column, or a row of fields."""
    first, *_ = fields
    if first.name.startswith(ROW):
        inner = (f"{quoted(f.name.removeprefix(ROW))} {f.type}" for f in fields)
        return f"{ROW.removesuffix('.')} ROW({', '.join(inner)})"
    return f"{quoted(first.name)} {first.type}{'' if first.nullable else ' NOT NULL'}"


@dataclass(frozen=True)
class Select:
    """One SELECT; `rest` is everything from FROM to before WHERE. first: DISTINCT, or DISTINCT ON (…)."""

    items: tuple[tuple[str, str], ...]
    rest: str
    where: str = ""
    group: tuple[str, ...] = ()
    having: str = ""
    qualify: str = ""
    first: str = ""

    def __str__(self) -> str:
        parts = [
            ("SELECT", f"{self.first} {', '.join(f'{text} AS {quoted(alias)}' for text, alias in self.items)}".strip()),
            ("FROM", self.rest),
            ("WHERE", self.where),
            ("GROUP BY", ", ".join(self.group)),
            ("HAVING", self.having),
            ("QUALIFY", self.qualify),
        ]
        return " ".join(f"{word} {text}" for word, text in parts if text)


@dataclass(frozen=True)
class View:
    """A name for the rows of one SELECT, or of several combined by `sets`, by UNION ALL if it is empty.

    tail: ORDER BY, LIMIT and OFFSET of the whole.
    """

    name: str
    selects: tuple[Select, ...]
    sets: tuple[str, ...] = ()
    tail: str = ""

    def text(self) -> str:
        words = self.sets or ("UNION ALL",) * (len(self.selects) - 1)
        body = "".join(f" {word} {select}" for word, select in zip(("AS", *words), self.selects, strict=True))
        return f"CREATE VIEW {self.name}{body}{self.tail and ' '}{self.tail};\n"


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


def quoted(name: str) -> str:
    """The name as query text; a field of a row is a path."""
    if name.startswith(ROW):
        return f"{ROW}{quoted(name.removeprefix(ROW))}"
    if name.isidentifier() and name.isascii() and name.islower() and name not in {"select"}:
        return name
    return '"' + name.replace('"', '""') + '"'


def pruned(query: Query) -> Query:
    """The query without views and streams that no output needs."""
    needed = {name for name, _ in query.outputs}
    kept: list[View] = []
    for view in reversed(query.views):
        if view.name in needed:
            kept.insert(0, view)
            needed |= names_in(view)
    return replace(
        query, streams=tuple(s for s in query.streams if {s.name, late_of(s.name)} & needed), views=tuple(kept)
    )


def late_of(stream: str) -> str:
    """The name of the stream with a stream's late rows."""
    return f"{stream}_late"


def names_in(view: View) -> set[str]:
    """The words of the view's text, including the names that it reads."""
    return {word for select in view.selects for word in words(str(select))}


def words(text: str) -> list[str]:
    """The words of query text."""
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
