"""Native reading of CSV: what is read is what the definition reads, and what is plain is read."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from connectors_fixture import Seen, read, stream
from test_connectors_csv import mutated

from cq.connectors.csv import blocks, plain, source
from cq.connectors.csv.blocks import TextBlock
from cq.connectors.csv.plain import PlainReading
from cq.connectors.csv.rows import Dialect
from cq.connectors.csv.source import ColumnMap, CsvOptions, _ByRow
from cq.connectors.natives import Natives
from cq.connectors.physical_rows import rows_of
from cq.connectors.rules import Rules
from cq.lang import types as T
from cq.lang.schema import Field
from cq.runtime.base.simulation import Memory
from cq.runtime.readers import csv_scan
from cq.runtime.readers.csv_columns import csv_columns
from cq.runtime.readers.csv_scan import CsvScan

TYPES = [
    T.BIGINT, T.VARCHAR, T.DOUBLE, T.TIMESTAMP, T.DATE, T.BOOLEAN, T.decimal(7, 2), T.decimal(18, 0), T.decimal(3, 3),
    T.decimal(38, 10), T.INTEGER, T.SMALLINT, T.TINYINT,
]  # fmt: skip
DIALECTS = [
    CsvOptions(),
    CsvOptions(dialect=Dialect(b";", b"'"), nulls=("NULL",)),
    CsvOptions(dialect=Dialect(b"\x1f", b""), nulls=("-", "", "NA")),
]
NATIVE = Natives(csv_scan=csv_scan)


def column_map_of(types: list[T.DataType], options: CsvOptions, rng: random.Random) -> ColumnMap:
    """Some columns of a file, declared as nullable, not nullable or guessed, some wanted."""
    width = len(types) + rng.randrange(2)
    fields = tuple(Field(f"c{i}", t, rng.random() < 0.8) for i, t in enumerate(types))
    wanted = tuple(i for i in range(len(types)) if rng.random() < 0.8)
    rules = Rules(fields, wanted, None, rng.choice(["", "", "s"]))
    return ColumnMap("t", options, rules, width, tuple(rng.sample(range(width), len(types))))


def drawn(rng: random.Random, column_map: ColumnMap) -> bytes:
    """Rows of which most are right."""
    delimiter, quote = column_map.options.dialect.delimiter.decode(), column_map.options.dialect.quote.decode()
    at = dict(zip(column_map.indices, column_map.rules.fields, strict=True))
    rows = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        cells = [mutated(rng) if rng.random() < 0.1 else written(rng, at.get(p)) for p in range(column_map.width)]
        cells = [c.replace('"', quote) if quote else c for c in cells]
        if rng.random() < 0.1:
            cells[rng.randrange(len(cells))] = rng.choice(column_map.options.nulls)
        if quote and rng.random() < 0.3:
            cells[rng.randrange(len(cells))] = (
                quote + rng.choice(["", "x", quote * 2, f"a{quote * 2}{delimiter}"]) + quote
            )
        rows.append(delimiter.join(cells[: rng.choice([None] * 20 + [-1])]))
    return (rng.choice(["\n", "\n", "\r\n"]).join(rows) + rng.choice(["", "\n", "\r\n"])).encode()


def written(rng: random.Random, field: Field | None) -> str:
    """A value of the field, as most are written."""
    number = str(rng.choice([0, 7, 42, 99, 127, rng.getrandbits(31), rng.getrandbits(63)]))
    day = f"{rng.randrange(1, 10_000):04}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
    if field is None:
        return "anything"
    match field.type.kind:
        case T.Kind.VARCHAR:
            return rng.choice(["", "x", "some words of text", "a'b", "é", number])
        case T.Kind.DOUBLE:
            (double,) = struct.unpack("d", rng.randbytes(8))
            return rng.choice([number, f"{rng.random() * 1000:.2f}", repr(rng.random()), repr(double), f"-{number}e-3"])
        case T.Kind.DECIMAL:
            fraction = number[: rng.randrange(field.type.scale + 1)]
            return f"{number[: rng.randrange(1, 19)]}.{fraction}" if fraction else number
        case T.Kind.BOOLEAN:
            return rng.choice(["true", "false", "True", "FALSE", "TRUE", "False"])
        case T.Kind.DATE:
            return day
        case T.Kind.TIMESTAMP:
            clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(10**6):06}"
            return rng.choice([day, f"{day} {clock[:5]}", f"{day}T{clock[: rng.choice([8, 10, 15])]}"])
        case _:
            return rng.choice([number[:2], f"-{number[:3]}", number, f" {number}"])


@pytest.mark.parametrize("interpreted", [False, True])
def test_columns_are_those_of_the_definition(interpreted: bool) -> None:
    """Interpreted, every access is checked to be within its memory."""
    rng = random.Random(11)
    read_whole = 0
    with Memory() as memory:
        for _ in range(400 if interpreted else 12_000):
            types = rng.choices(TYPES, k=rng.choice([1, 2, 2, 3, 5]))
            column_map = column_map_of(types, rng.choice(DIALECTS), rng)
            text = drawn(rng, column_map)

            def make(asked: plain.Plain) -> plain.PlainScan | None:
                if not interpreted:
                    return csv_scan(asked)
                return CsvScan(
                    csv_columns, asked, lambda a: memory._add(memoryview(a).cast("B"), owned=False) if a.size else 0
                ).columns

            found = column_map.by(make).columns(text)
            if found is None:
                continue
            read_whole += 1
            piece = _ByRow(column_map, TextBlock(text, 1)).piece()
            assert not piece.bad and not piece.blank, (text, column_map)
            batch = column_map.rules.deliver(found.columns, found.rows)
            batch.validate(full=True)
            of_wanted = [column_map.rules.fields[i].type for i in column_map.rules.wanted]
            expected = list(rows_of(piece.batch, of_wanted))
            assert repr(list(rows_of(batch, of_wanted))) == repr(expected), (text, column_map)
            assert piece.place.lines is None or piece.place.lines.tolist() == list(range(1, found.rows + 1)), text
    assert read_whole > (100 if interpreted else 4000)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_values_as_most_are_written_are_read_natively(type_: T.DataType) -> None:
    texts = {
        T.Kind.VARCHAR: ['"say ""x"""', "plain", '"a,b"', '""', ""],
        T.Kind.DOUBLE: ["-73.98215484619139", "40.767936706542969", "1e-9", ".5", "12", ""],
        T.Kind.TIMESTAMP: ["2024-01-31", "2024-01-31 10:20", "2024-01-31T10:20:30", "2024-01-31 10:20:30.123456", ""],
        T.Kind.DATE: ["2024-02-29", "0001-01-01", ""],
        T.Kind.BOOLEAN: ["true", "False", ""],
        T.Kind.DECIMAL: [".12", "-0.5", "+0", ""] if type_.precision == type_.scale else ["12", "-7", "+0", ""],
    }.get(type_.kind, ["0", "-7", "127", " 1\t", '"5"', ""])
    column_map = ColumnMap("t", CsvOptions(), Rules((Field("a", type_),), (0,), None), 1, (0,)).by(csv_scan)
    block = TextBlock("\n".join(texts).encode() + b"\n", 1)
    found = column_map.columns(block.text)
    assert found is not None
    assert list(rows_of(column_map.rules.deliver(found.columns, found.rows), [type_])) == list(
        rows_of(_ByRow(column_map, block).piece().batch, [type_])
    )


def both(tmp_path: Path, text: str, columns: str, **options: str) -> tuple[Seen, Seen]:
    (tmp_path / "t.csv").write_text(text, newline="")
    declared = stream(columns, path=str(tmp_path / "t.csv"), **options)
    return read(declared), read(declared, natives=NATIVE)


@pytest.mark.parametrize(
    "bad", ["x,2020-01-01", '"7,2020-01-01', "7", "7,2020-01-01,", "", "7,", "7,2020-13-01", "0x7,2020-01-01"]
)
def test_bad_row_is_placed_as_by_the_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 300)
    lines = [f"{k},2020-01-01 00:00:{k % 60:02}" for k in range(100)]
    lines.insert(57, bad)
    one, other = both(tmp_path, "a,ts\n" + "\n".join(lines) + "\n", "a bigint, ts timestamp", on_error="skip")
    assert other == one and len(one.rows) >= 57


def test_column_that_is_never_plain_is_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    reading = PlainReading(lambda text: looked.append(text))  # type: ignore[func-returns-value]
    for _ in range(10):
        assert reading.columns(b"x\n") is None
    assert len(looked) == plain.PATIENCE


def test_text_that_is_not_utf8_is_left_to_the_definition() -> None:
    column_map = ColumnMap("t", CsvOptions(), Rules((Field("a", T.VARCHAR),), (0,), None), 1, (0,)).by(csv_scan)
    assert column_map.columns(b"caf\xe9\n") is None and column_map.columns("café\n".encode()) is not None


def test_type_that_is_not_read_natively_is_read_otherwise(tmp_path: Path) -> None:
    assert csv_scan(plain.Plain(source.STANDARD, b"", 1, (Field("a", T.TIME),), (0,), (0,), False)) is None
    one, other = both(tmp_path, "a\n10:00:00\n", [Field("a", T.TIME)])  # type: ignore[arg-type]
    assert other.rows == one.rows == [(36_000_000_000,)]
