"""The format of tests/slt/*.slt: streams with their rows, a query, and its result, as a person writes them.

    case a row within the delay is counted in its window
    # arrival 9, 11, 8: at 11 the watermark is 6, so [0, 10) is still open
    stream s (k VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
    a, 9
    a, 11
    a, 8
    query
    SELECT window_end, k, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '10' SECOND) GROUP BY window_end, k;
    rows
    10, a, 2
    20, a, 1

Sections: `stream NAME (columns) [WITH (options)]` and its rows in order of arrival; `table NAME (columns)`, with a key,
and the rows that fill it; `query`; `rows [OUTPUT]`; `late N` (default: none); `error CODE [PLACE]`; `spark no: REASON`
if Spark cannot express it; `duckdb` and the query for DuckDB, if its text differs; `duckdb ordered` if that also gives
the order, and `duckdb by KEYS` if the query does with an ORDER BY of these keys (`slt_of_duckdb.py`); `duckdb no:
REASON` if it cannot express it. Streams before the first case belong to every case that names them. Lines with # are
comments.

Values: NULL; numbers; true and false; NaN, Infinity; TIMESTAMP, TIMESTAMP_LTZ (in UTC) and INTERVAL as seconds; DATE as
2024-02-29; TIME as 10:20:30; BINARY as its hexadecimal digits, or '' for none; text bare, or in single quotes when it
is empty, or has a comma, a quote, # or spaces at its ends, or could be NULL or a section. Arrays as [1 2 NULL], where a
text with a space or a bracket is quoted too.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from paths import SLT

from cq.lang.schema import Field
from cq.lang.types import DataType, Kind
from cq.lang.value_text import read_decimal, read_time, write_decimal, write_time
from cq.records import dataclass, field

_CELL = re.compile(r"\s*('(?:[^']|'')*'|\[(?:'(?:[^']|'')*'|[^]'])*\]|[^,']*?)\s*(?:,|$)")
_ELEMENT = re.compile(r"'(?:[^']|'')*'|[^\s']+")
_HEADS = {"case", "stream", "table", "query", "rows", "late", "error", "spark", "duckdb"}
_EPOCH = datetime.date(1970, 1, 1)
_PLAIN = re.compile(r"[^\s,'#](?:[^,'#\n]*[^\s,'#])?")
MICRO = 1_000_000


@dataclass
class SltCase:
    """One case: `rows` by output, as lines of canonical text once `expected` has read them."""

    file: str
    line: int
    name: str
    streams: dict[str, str] = field(default_factory=dict)
    data: dict[str, list[str]] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)
    query: str = ""
    rows: dict[str, list[str]] = field(default_factory=dict)
    late: int = 0
    error: str = ""
    no_spark: str = ""
    duckdb: str = ""
    ordered: bool = False  # whether DuckDB also gives the order
    no_duckdb: str = ""

    @property
    def text(self) -> str:
        """The whole query text, the query after the streams."""
        return "".join(_with_memory(s, n in self.tables) for n, s in self.streams.items()) + self.query

    def __str__(self) -> str:
        return self.name


def _with_memory(stream: str, keyed: bool) -> str:
    kind = "TABLE" if keyed else "STREAM"
    head, found, options = stream.rpartition(" WITH (")
    if not found:
        return f"CREATE {kind} {stream} WITH (connector = 'memory');\n"
    return f"CREATE {kind} {head} WITH (connector = 'memory', {options};\n"


def read_cases(path: Path) -> list[SltCase]:
    """The cases of a file."""
    file = path.relative_to(SLT).as_posix()
    cases = [SltCase(file, 0, "streams of all cases")]
    section, name = "", ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        word, _, rest = line.partition(" ")
        if section == "stream" and name not in cases[-1].data:
            cases[-1].streams[name] += "\n" + line
        elif word in _HEADS and not line.startswith(" "):
            section, name = "stream" if word == "table" else word, rest.strip()
            _open_section(cases, file, number, section, name)
            name = name.partition("(")[0].strip() if section == "stream" else name or "result"
            if word == "table":
                cases[-1].tables.add(name)
        elif section == "stream":
            cases[-1].data[name].append(line)
        elif section == "query":
            cases[-1].query += line + "\n"
        elif section == "duckdb" and not name.startswith("by "):
            cases[-1].duckdb += line + "\n"
        elif section == "rows":
            cases[-1].rows[name].append(line)
        else:
            raise AssertionError(f"{file}:{number}: {line!r} belongs to no section")
        if section == "stream" and name not in cases[-1].data:
            _close_header(cases[-1], name)
    shared, *cases = cases
    for case in cases:
        named = [n for n, head in shared.streams.items() if re.search(rf"\b({_names(n, head)})\b", case.query)]
        case.streams = {n: shared.streams[n] for n in named} | case.streams
        case.data = {n: shared.data[n] for n in named} | case.data
    return cases


def _names(stream: str, head: str) -> str:
    """The stream and that of its late rows, as a pattern."""
    return "|".join([stream, *re.findall(r"'stream:(\w+)'", head)])


def _close_header(case: SltCase, name: str) -> None:
    header = case.streams[name]
    if header.count("(") == header.count(")"):
        case.data[name] = []


def _open_section(cases: list[SltCase], file: str, number: int, section: str, rest: str) -> None:
    if section == "case":
        cases.append(SltCase(file, number, rest))
        return
    case = cases[-1]
    match section:
        case "stream":
            case.streams[rest.partition("(")[0].strip()] = rest
        case "query":
            case.query += rest
        case "rows":
            case.rows[rest or "result"] = []
        case "late":
            case.late = int(rest)
        case "error":
            case.error = rest
        case "duckdb":
            _ask_duckdb(case, *rest.partition(" ")[::2])
        case "spark":
            assert rest.startswith("no: "), f"{file}:{number}: spark no: REASON"
            case.no_spark = rest.removeprefix("no: ")


def _ask_duckdb(case: SltCase, how: str, rest: str) -> None:
    case.ordered = how in {"ordered", "by"}
    if how == "by":
        case.duckdb = f"{case.query.rstrip().rstrip(';')}\nORDER BY {rest}"
    elif how == "no:":
        case.no_duckdb = rest
    else:
        assert how in {"", "ordered"}, f"duckdb {how}"


def cells(line: str) -> list[str]:
    """The cells of a row, quotes kept."""
    found, at = [], 0
    while True:
        match = _CELL.match(line, at)
        assert match, f"cannot read the row {line!r} from {line[at:]!r}"
        found.append(match[1])
        at = match.end()
        if not line[match.start() : at].endswith(","):
            assert at == len(line), f"cannot read the row {line!r} from {line[at:]!r}"
            return found


def read_row(line: str, fields: tuple[Field, ...]) -> tuple[Any, ...]:
    """A row of physical values."""
    texts = cells(line)
    assert len(texts) == len(fields), f"{len(texts)} cells for {len(fields)} columns: {line!r}"
    return tuple(read_value(t, f.type) for t, f in zip(texts, fields, strict=True))


def read_value(text: str, type_: DataType) -> Any:
    """The physical value that a cell spells."""
    if text == "NULL":
        return None
    match type_.kind:
        case Kind.VARCHAR:
            return text[1:-1].replace("''", "'") if text.startswith("'") else text
        case Kind.BINARY:
            return bytes.fromhex(text.strip("'"))
        case Kind.BOOLEAN:
            return {"true": True, "false": False}[text]
        case Kind.REAL | Kind.DOUBLE:
            return float(text)
        case Kind.DECIMAL:
            value = read_decimal(text, type_.precision, type_.scale)
            assert value is not None, f"{text} is no {type_}"
            return value
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ | Kind.INTERVAL:
            return int(Decimal(text) * MICRO)
        case Kind.TIME:
            time = read_time(text)
            assert time is not None, f"{text} is no {type_}"
            return time
        case Kind.DATE:
            return (datetime.date.fromisoformat(text) - _EPOCH).days
        case Kind.ARRAY:
            assert type_.element is not None and text[0] + text[-1] == "[]", f"{text} is no {type_}"
            return tuple(read_value(t, type_.element) for t in _ELEMENT.findall(text[1:-1]))
        case _:
            return int(text)


def write_row(row: tuple[Any, ...], fields: tuple[Field, ...]) -> str:
    """The canonical line of a row: what expected lines are compared with."""
    return ", ".join(write_value(v, f.type) for v, f in zip(row, fields, strict=True))


def write_value(value: Any, type_: DataType) -> str:
    if value is None:
        return "NULL"
    match type_.kind:
        case Kind.VARCHAR:
            plain = _PLAIN.fullmatch(value) and value != "NULL" and value.split(" ")[0] not in _HEADS
            return value if plain else "'" + value.replace("'", "''") + "'"
        case Kind.BINARY:
            return value.hex().upper() or "''"
        case Kind.BOOLEAN:
            return str(value).lower()
        case Kind.REAL | Kind.DOUBLE:
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
        case Kind.DECIMAL:
            return write_decimal(value, type_.scale)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ | Kind.INTERVAL:
            seconds, micros = divmod(abs(value), MICRO)
            fraction = f".{micros:06}".rstrip("0") if micros else ""
            return f"{'-' if value < 0 else ''}{seconds}{fraction}"
        case Kind.TIME:
            return write_time(value)
        case Kind.DATE:
            within = -719162 <= value <= 2932896
            return (_EPOCH + datetime.timedelta(days=value)).isoformat() if within else f"day {value}"
        case Kind.ARRAY:
            assert type_.element is not None
            texts = [write_value(v, type_.element) for v in value]
            return "[" + " ".join(f"'{x}'" if re.search(r"^[^'].*[] []|^[]\[]", x) else x for x in texts) + "]"
        case _:
            return str(value)
