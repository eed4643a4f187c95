"""The tables of the documentation that are generated from the registries: one function each, in `TABLES`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest

import click
from paths import QUERIES

from cq.cli import COMMANDS
from cq.cli.machine import all_limits
from cq.compiler.passes import compile
from cq.connectors.registry import SINKS, SOURCES, Connector
from cq.errors import CODES, CqError, SourceText
from cq.grammar.parser import parse
from cq.lang import aggregates, casts, functions
from cq.lang.types import VARCHAR, DataType
from cq.planner.binding.binder import bind
from cq.planner.binding.functions.shorthands import SHORTHANDS
from cq.planner.binding.literals import NOT_BUILT, TYPE_NAMES
from cq.planner.binding.settings import HEURISTIC, MEMORY_LIMIT, PLACEMENT, SETTINGS, TIME_ZONE, TRANSACTIONS
from cq.workloads import WORKLOADS

TABLES: dict[str, Callable[[], str]] = {}
TOPICS = {
    "arithmetic": "Arithmetic",
    "date_arithmetic": "Date arithmetic",
    "mathematics": "Mathematics",
    "integers": "Whole numbers and bits",
    "rounding": "Rounding",
    "comparison": "Comparison and logic",
    "conditional": "Choice",
    "text": "Text",
    "text_building": "Building texts",
    "text_bytes": "Text as numbers and bytes",
    "binary": "Bytes",
    "json_text": "JSON in texts",
    "arrays": "Arrays",
    "array_building": "Building arrays",
    "array_sets": "Arrays as sets, and sequences",
    "regular": "Regular expressions",
    "time": "Time",
    "time_truncation": "Time: truncation",
    "time_making": "Time: construction, names, differences",
    "time_of_day": "Time of day",
    "time_zones": "Time zones",
    "time_formats": "Time: patterns",
}
SHOWN_EXAMPLES, SHOWN_LETTERS = 3, 150  # of a function: enough for a glance


def table(function: Callable[[], str]) -> Callable[[], str]:
    TABLES[function.__name__] = function
    return function


def rows(head: str, body: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; `head` names the columns, with | between them."""
    names = [n.strip() for n in head.split("|")]
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [f"| {' | '.join(cells)} |" for cells in body]
    return "\n".join(lines)


def code(*texts: str) -> str:
    """Texts as code, in a cell."""
    fenced = (f"`` {t} ``" if "`" in t else f"`{t}`" for t in texts if t)
    return "<br>".join(t.replace("|", "\\|") for t in fenced)


def words(text: str) -> str:
    """A text for people, in a cell."""
    return " ".join(text.replace("|", "\\|").split())


# ------------------------------------------------------------------------------------------------------------ language


@table
def scalar_functions() -> str:
    every = functions.all_scalars()  # loads the registry, aliases too
    also: dict[str, list[str]] = {}
    for alias, name in functions.ALIASES.items():
        also.setdefault(name, []).append(alias)
    parts = []
    for topic, title in TOPICS.items():
        entries = [e for e in every.values() if e.body.__module__ == f"cq.lang.functions.{topic}"]
        body = []
        for e in entries:
            names = [a for a in also.get(e.name, []) if a not in e.shape]
            meaning = words(e.doc) + (f" Also {code(*names).replace('<br>', ', ')}." if names else "")
            body.append((code(e.shape), meaning, code(*_shown(e.examples)), ", ".join(e.fails)))
        parts.append(f"**{title}**\n\n" + rows("call | meaning | examples | fails with", body))
    listed = {e.body.__module__ for e in every.values()}
    assert listed == {f"cq.lang.functions.{t}" for t in TOPICS}, "a topic without a title"
    return "\n\n".join(parts)


def _shown(examples: Iterable[str]) -> list[str]:
    """The first examples, and the first one that fails."""
    every = list(examples)
    first = [e for i, e in enumerate(every[:SHOWN_EXAMPLES]) if i == 0 or len("".join(every[: i + 1])) < SHOWN_LETTERS]
    return first + [e for e in every if "error" in e and e not in first][:1]


@table
def shorthands() -> str:
    """A line for each docstring of `SHORTHANDS`: the call, and what it is short for."""
    lines = dict.fromkeys(f.__doc__ or "" for f in SHORTHANDS.values())
    body = []
    for line in lines:
        call, _, meaning = line.partition(": ")
        names = [n for n, f in SHORTHANDS.items() if f.__doc__ == line and not line.lower().startswith(n)]
        body.append((code(call), words(meaning) + (f" Also {code(*names).replace('<br>', ', ')}." if names else "")))
    return rows("call | meaning", body)


@table
def aggregate_functions() -> str:
    every = aggregates.all_aggregates()  # loads the registry, aliases too
    also: dict[str, list[str]] = {}
    for alias, name in aggregates.ALIASES.items():
        also.setdefault(name, []).append(alias)
    body = []
    for e in every.values():
        meaning = words(e.doc) + (f" Also {code(*also[e.name])}." if e.name in also else "")
        body.append((code(e.shape), meaning, code(*_shown(e.examples)), ", ".join(e.fails)))
    return rows("call | meaning | examples | fails with", body)


@table
def cast_examples() -> str:
    """Both columns as two lists of one table: what casts give, and what they refuse."""
    taken = [e for e in casts.EXAMPLES if "error" not in e]
    refused = [e.partition(" = error")[0] for e in casts.EXAMPLES if "error" in e]
    return rows("gives | fails with CQ0707", ((code(a), code(b)) for a, b in zip_longest(taken, refused, fillvalue="")))


@table
def type_names() -> str:
    names: dict[DataType, list[str]] = {}
    for name, known in TYPE_NAMES.items():
        names.setdefault(known, []).append(name)
    body = [(code(first), ", ".join(code(n) for n in others)) for first, *others in names.values()]
    at = list(names).index(VARCHAR)
    body.insert(at, (code("DECIMAL(p, s)"), ", ".join(code(n) for n in ("NUMERIC", "DEC"))))
    body.append((code("T ARRAY"), code("ARRAY<T>") + "; also `T[]`"))
    return rows("type | also written", body)


@table
def settings() -> str:
    texts = {MEMORY_LIMIT: "'2GB'", HEURISTIC: "'ct'", TRANSACTIONS: "'auto'", PLACEMENT: "'stealing'"}
    texts[TIME_ZONE] = "'UTC'"
    written = dict.fromkeys(SETTINGS, "n") | texts
    return rows("setting | meaning", ((code(f"SET {n} = {written[n]}"), words(doc)) for n, doc in SETTINGS.items()))


# --------------------------------------------------------------------------------------------------------- refusals

STREAM = """CREATE STREAM s (k BIGINT, x BIGINT, text VARCHAR, ts TIMESTAMP, WATERMARK FOR ts);
CREATE STREAM r (k BIGINT, y BIGINT, ts TIMESTAMP, WATERMARK FOR ts);
CREATE SINK o;
"""
IN_WINDOWS = "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
KEYED = "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT); "
REFUSED = {
    "tables filled from endless inputs": "CREATE TABLE a (k BIGINT PRIMARY KEY) WITH (path = 'a.csv', follow = true)",
    "several rows in a trigger": KEYED + "CREATE TRIGGER t AFTER INSERT ON s UPDATE a SET n = 1 WHERE n > 2",
    "two tables in a query of a trigger": KEYED + "CREATE TRIGGER t AFTER INSERT ON s SELECT 1 FROM a, a AS b",
    "aggregates in a trigger": KEYED + "CREATE TRIGGER t AFTER INSERT ON s SELECT MAX(n) FROM a WHERE k = 1",
    "IN (SELECT …) in a trigger": KEYED
    + "CREATE TRIGGER t AFTER INSERT ON s BEGIN IF k IN (SELECT k FROM a) THEN RAISE 'twice'; END IF; END",
    "UPDATE … FROM": KEYED + "CREATE TRIGGER t AFTER INSERT ON s UPDATE a SET n = b.n FROM a AS b WHERE a.k = new.k",
    "all rows of a table of an endless stream": KEYED
    + "CREATE STREAM g (auction BIGINT) WITH (connector = 'generator', workload = 'bids'); "
    "CREATE TRIGGER t AFTER INSERT ON g INSERT INTO a VALUES (new.auction, 1); SELECT * FROM a",
    "triggers fired by a trigger on the same table": KEYED
    + "CREATE TRIGGER t AFTER INSERT ON s UPDATE a SET n = 1 WHERE k = new.k; "
    "CREATE TRIGGER u AFTER INSERT ON t UPDATE a SET n = 2 WHERE k = new.k",
    "look-ups in a trigger's table for its own rows": KEYED
    + "CREATE TRIGGER t AFTER INSERT ON s UPDATE a SET n = 1 WHERE k = new.k; "
    "SELECT t.x, a.n FROM t JOIN a FOR SYSTEM_TIME AS OF t.ts ON a.k = t.k",
    "checks of a stream": "CREATE STREAM q (x BIGINT CHECK (x > 0))",
    "defaults of a stream": "CREATE STREAM q (x BIGINT DEFAULT 0)",
    "writing into a stream": "INSERT INTO s SELECT * FROM s",
    "upserts": "INSERT INTO o SELECT k FROM s ON CONFLICT DO NOTHING",
    "two INSERTs into one sink": "INSERT INTO o SELECT k FROM s; INSERT INTO o SELECT k FROM r",
    "look-ups at the times of joins": "CREATE VIEW j AS SELECT s.k AS k, s.ts AS ts FROM s JOIN r ON s.k = r.k AND "
    "r.ts BETWEEN s.ts AND s.ts + INTERVAL '1' MINUTE; CREATE VIEW w AS SELECT window_end, k, COUNT(*) AS n FROM "
    "TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end, k; "
    "SELECT j.k FROM j JOIN w FOR SYSTEM_TIME AS OF j.ts ON j.k = w.k",
    "order inside an aggregate": f"SELECT MIN(x ORDER BY k) {IN_WINDOWS} GROUP BY window_start",
    "ASOF joins with more conditions": "SELECT x FROM s ASOF JOIN r ON s.k = r.k AND s.ts >= r.ts AND s.x > r.y",
    "RANGE of DOUBLEs": "SELECT SUM(x) OVER (ORDER BY SQRT(x) RANGE 1 PRECEDING) AS n FROM s",
    "changelogs": "SELECT COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '1' MINUTE) GROUP BY window_end EMIT CHANGES",
    "early results": "SELECT k FROM s EMIT EVERY INTERVAL '5' SECOND",
    "EXPLAIN PLACEMENT, CHANGELOG": "EXPLAIN PLACEMENT SELECT k FROM s",
    "the clock": "SELECT NOW() AS t FROM s",
    "random values": "SELECT RANDOM() AS t FROM s",
    "rows of fields as values": "SELECT CAST(x AS ROW(a BIGINT)) AS r FROM s",
    "arrays of rows of fields": "CREATE STREAM q (a ROW(b BIGINT)[])",
    "arrays of arrays": "SELECT ARRAY[ARRAY[1], ARRAY[2]] AS a FROM s",
    "arrays of REAL or DOUBLE as keys": "SELECT DISTINCT [x / 2e0] AS a FROM s",
    "DECIMAL beyond 38 digits": "SELECT CAST(x AS DECIMAL(40, 2)) AS d FROM s",
    "WITH RECURSIVE": "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT n FROM a",
    "functions as arguments": "SELECT LIST_TRANSFORM(x, y -> UPPER(y)) AS a FROM s",
    "LIMIT inside an aggregate": "SELECT ARRAY_AGG(x ORDER BY k LIMIT 2) AS a FROM s",
    "percentages of rows": "SELECT k FROM s LIMIT 10 PERCENT",
    "MATCH_RECOGNIZE": "SELECT * FROM s MATCH_RECOGNIZE (PATTERN (a))",
}  # fmt: skip


@table
def refusals() -> str:
    """What the compiler says to each: its code, and its way out."""
    body = []
    for what, text in REFUSED.items():
        try:
            bind(parse(SourceText("<table>", STREAM + text)))
        except CqError as error:
            body.append((words(what), code(text), error.code, words(error.hint)))
        else:
            raise AssertionError(f"{what} is not refused any more: {text}")
    types: dict[str, list[str]] = {}
    for name, way in NOT_BUILT.items():
        types.setdefault(way, []).append(name)
    body += [("types", code(*names).replace("<br>", ", "), "CQ0501", words(way)) for way, names in types.items()]
    return rows("not built yet | for example | code | nearest form", body)


# ------------------------------------------------------------------------------------------------------- surroundings


@table
def error_codes() -> str:
    return rows("code | meaning", ((code(c), words(text)) for c, text in CODES.items()))


def _options(connectors: Mapping[str, Connector]) -> str:
    body = []
    for name, connector in connectors.items():
        body += [
            (code(name), code(key), words(o.doc), words(o.allowed), "required" if o.required else code(o.default))
            for key, o in connector.options.items()
        ] or [(code(name), "", "no options", "", "")]
    return rows("connector | option | meaning | value | default", body)


@table
def source_options() -> str:
    return _options(SOURCES)


@table
def sink_options() -> str:
    return _options(SINKS)


@table
def workloads() -> str:
    body = []
    for w in WORKLOADS.values():
        body.append((code(w.name), "", words(w.description), ""))
        for name, p in w.parameters.items():
            body.append(("", code(name), words(p.doc), "" if p.default is None else code(str(p.default).lower())))
    return rows("workload | parameter | meaning | default", body)


@table
def limits() -> str:
    return rows("limit | value", ((words(what), words(value)) for what, value in all_limits().items()))


@table
def commands() -> str:
    """Every command with its options; those that all commands with a query share stand first, once."""
    found: dict[str, click.Command] = {
        name: getattr(importlib.import_module(f"cq.cli.{module}"), name) for name, (module, _) in COMMANDS.items()
    }
    with_query = [c for c in found.values() if any(p.name == "text" for p in c.params)]
    shared = {p.name for p in with_query[0].params}.intersection(*({p.name for p in c.params} for c in with_query))
    parts = [
        "**Every command that takes a QUERY** (a file, `-` for standard input, or the text of `-c`) has\n\n"
        + _options_of(with_query[0], lambda name: name in shared)
    ]
    for name, command in found.items():
        usage = " ".join(command.collect_usage_pieces(click.Context(command)))
        own = _options_of(command, lambda name, skip=shared if command in with_query else (): name not in skip)
        parts.append(f"**`cq {name} {usage}`** {COMMANDS[name][1]}" + (f"\n\n{own}" if own else ""))
    return "\n\n".join(parts)


def _options_of(command: click.Command, wanted: Callable[[str], bool]) -> str:
    body = []
    for option in command.params:
        record = option.get_help_record(click.Context(command))
        if isinstance(option, click.Option) and record is not None and wanted(option.name or ""):
            body.append((code(record[0].replace("INTEGER RANGE", "N").replace("FLOAT RANGE", "X")), words(record[1])))
    return rows("option | meaning", body) if body else ""


@table
def explained_tolls() -> str:
    """The plan of a shipped query."""
    return f"```text\n{compile((QUERIES / 'lr_tolls.cq').read_text(encoding='utf-8')).explain()}\n```\n"
