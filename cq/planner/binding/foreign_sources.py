"""Streams as other systems declare them: their connectors mean nothing here, and the rows are provided from outside."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from cq.connectors.registry import SINKS, SOURCES
from cq.errors import did_you_mean
from cq.grammar import ast, inline
from cq.records import replace

TOPIC = "kafka_topic"
_SINKS = {"print": "stdout", "blackhole": "discard"}
_READER_OPTIONS = {  # of DuckDB: what it is called here
    **dict.fromkeys(["delim", "delimiter", "sep"], "delimiter"),
    "nullstr": "null",
    **{name: name for name in ("header", "quote", "union_by_name")},
}
_ELEMENTS = {  # that make a row of each element of a JSON array
    *("json_array_elements", "jsonb_array_elements", "json_array_elements_text", "jsonb_array_elements_text"),
    *("json_each", "flatten"),
}
GRACE_HOURS = "24"  # the default lateness of rows in ksqlDB


def is_elsewhere(connector: str) -> bool:
    """Whether a connector belongs to another system."""
    return connector not in SOURCES and connector not in SINKS


def told_by_topic(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a ksqlDB stream, which names no connector, with its connector added."""
    named = TOPIC in options and "connector" not in options
    return {"connector": "kafka", **options} if named else dict(options)


def as_sink(node: ast.CreateRelation) -> ast.CreateSink | None:
    """The sink that `CREATE TABLE o (…) WITH ('connector' = 'print')` declares in Flink; None for a relation with
    rows."""
    for o in node.options:
        here = _SINKS.get(o.value.value) if o.key == "connector" and isinstance(o.value, ast.StringLiteral) else None
        if here is not None and node.kind != "STREAM":
            named = replace(o, value=ast.StringLiteral(here, span=o.value.span))
            columns = tuple(c for c in node.elements if isinstance(c, ast.ColumnDef))
            return ast.CreateSink(
                node.name, columns, (named,), node.if_not_exists, span=node.span, name_span=node.name_span
            )
    return None


def topic_watermarks(node: ast.CreateRelation) -> tuple[ast.Watermark, ...]:
    """The event time of a ksqlDB stream: `TIMESTAMP = 'ts'`. There, rows may be a day late."""
    if not any(o.key == TOPIC for o in node.options):
        return ()
    for o in node.options:
        if o.key == "timestamp" and isinstance(o.value, ast.StringLiteral):
            column, place = o.value.value.lower(), o.value.span
            ref = ast.ColumnRef(column, span=place, name_span=place)
            day = ast.IntervalLiteral((ast.IntervalPart(GRACE_HOURS, "HOUR", span=place),), span=place)
            bound = ast.Binary("-", ref, day, span=place, op_span=place)
            return (ast.Watermark(column, bound, None, span=place, column_span=place),)
    return ()


def no_table_function(node: ast.TableFunction) -> tuple[str, ...]:
    """Ways out for table functions of other systems; none for an unknown one."""
    if node.name.startswith(("read_", "scan_", "parquet_")):
        return _no_reader(node)
    if node.name in _ELEMENTS and len(node.args) == 1:
        array, name = inline.argument(node.args[0]), inline.name(node.alias or "u")
        return (f"write UNNEST(JSON_ARRAY_ELEMENTS({array})) AS {name} (e), and take fields from e: e ->> 'field'",)
    return ()


def _no_reader(node: ast.TableFunction) -> tuple[str, ...]:
    """Ways out for `read_csv(…)` of DuckDB with more than a path, and for readers of other formats."""
    path = next((a for a in node.args if isinstance(a, ast.StringLiteral)), None)
    if path is None:
        return (
            "read one file by its path, FROM 'day.csv', or all that a pattern matches, FROM 'day/*.csv'",
            "options stand in a declaration: CREATE STREAM s WITH (path = 'day/*.csv', header = true), then FROM s",
        )
    text, given = inline.string(path.value), dict(_reader_options(node))
    known = [f"{inline.option_key(_READER_OPTIONS[n])} = {value}" for n, value in given.items() if value]
    unknown = [name for name, value in given.items() if not value]
    sample = known or (["header = true"] if "csv" in node.name else [])
    declared = f"CREATE STREAM s WITH ({', '.join([f'path = {text}', *sample])})"
    return (
        f"write FROM {text}",
        f"options stand in a declaration: {declared}, then FROM s" if sample else "",
        f"nothing here is like {' and '.join(unknown)}" if unknown else "",
    )


def _reader_options(node: ast.TableFunction) -> Iterator[tuple[str, str]]:
    """The options of `read_csv('a.csv', delim = ';')` and their values as WITH takes them; empty if it has no such."""
    for a in node.args:
        match a:
            case ast.Binary(op="=", left=ast.ColumnRef(name=name), right=value) | ast.NamedArgument(name, value):
                yield name.lower(), _option_value(value) if name.lower() in _READER_OPTIONS else ""


def _option_value(value: ast.Argument) -> str:
    """A value of an option of DuckDB's readers as WITH takes it, or nothing."""
    match value:
        case ast.StringLiteral() | ast.BooleanLiteral():
            return inline.expr(value)
        case ast.NumberLiteral("0" | "1" as digit):
            return "true" if digit == "1" else "false"
        case ast.ArrayLiteral(items) if items and all(isinstance(e, ast.StringLiteral) for e in items):
            return inline.string(",".join(e.value for e in items if isinstance(e, ast.StringLiteral)))
    return ""


def nearest_connector(name: str, known: Collection[str]) -> str:
    """The connector here that corresponds to one of another system."""
    here = {
        "filesystem": "file",
        "datagen": "generator",
        "rate": "generator",
        "print": "stdout",
        "blackhole": "discard",
    }
    if here.get(name) in known:
        return f"write '{here[name]}';"
    if "kafka" in name and "stdin" in known:
        return "or pipe the console consumer of Kafka to connector 'stdin';"
    return did_you_mean(name, known)
