"""CSV sources: what a row is, what a value is, what is bad and where; and that both readers say the same."""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from connectors_fixture import Seen, Stream, stream
from connectors_fixture import read as read_by

from cq import sql
from cq.connectors.cells import UnreadableText, scanner
from cq.connectors.csv import blocks, source
from cq.connectors.csv.blocks import TextBlock
from cq.connectors.csv.rows import NEVER_CLOSED, STANDARD, complete, lines_of_rows, rows
from cq.connectors.csv.source import ColumnMap, CsvOptions, _ByRow, _plain_decimals, read_csv
from cq.connectors.inference import infer
from cq.connectors.natives import NONE, Natives
from cq.connectors.physical_rows import rows_of, values_of
from cq.connectors.rules import Rules
from cq.errors import CqError, DataError
from cq.lang import types as T
from cq.lang.schema import Field
from cq.runtime.readers import csv_scan

ALL_TYPES = [
    T.BOOLEAN, T.TINYINT, T.SMALLINT, T.INTEGER, T.BIGINT, T.REAL, T.DOUBLE, T.VARCHAR, T.DATE, T.TIMESTAMP, T.TIME,
    T.decimal(7, 2), T.decimal(18, 0), T.decimal(3, 3), T.decimal(38, 10), T.decimal(38, 38),
]  # fmt: skip


def read(declared: Stream, **asked: Any) -> Seen:
    """What the definition reads; the engine's own reader gives the same."""
    seen = read_by(declared, natives=NONE, **asked)
    natively = read_by(declared, natives=Natives(csv_scan=csv_scan), **asked)
    for one, other in ((seen.rows, natively.rows), (seen.places, natively.places)):
        assert one == other
    assert (seen.bad, seen.blank, str(seen.error)) == (natively.bad, natively.blank, str(natively.error))
    return seen


def write(directory: Path, text: str | bytes, name: str = "t.csv") -> str:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


# ------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (T.TIMESTAMP, "1970-01-02T00:00:00Z", 86_400_000_000),
        (T.TIMESTAMP, "1970-01-01 02:00:00.1234569+02", 123_456),  # its UTC value, cut to microseconds
        (T.TIMESTAMP, "1969-12-31 23:30:00 -0030", 0),
        (T.BIGINT, "-007", -7),
        (T.BIGINT, " 1\t", 1),
        (T.BIGINT, "9223372036854775807", 2**63 - 1),
        (T.TINYINT, "-128", -128),
        (T.DOUBLE, "1e5", 100000.0),
        (T.DOUBLE, "-Infinity", float("-inf")),
        (T.REAL, "16777217.0000001", 16777218.0),  # rounded once, not twice
        (T.REAL, "3.4028235677973366e38", 3.4028234663852886e38),  # just under the tie that becomes infinity
        (T.decimal(7, 2), "1.550", 155),
        (T.decimal(7, 2), "-.5", -50),
        (T.decimal(7, 2), "1e2", 10000),
        (T.decimal(7, 2), "0e-900000000", 0),
        (T.decimal(38, 0), "-" + "9" * 38, 1 - 10**38),
        (T.decimal(38, 38), "." + "9" * 38, 10**38 - 1),
        (T.VARCHAR, "é", "é"),
        (T.DATE, "2024-02-29", 19782),
        (T.TIMESTAMP, "1969-12-31 23:59:59.5", -500_000),
        (T.TIMESTAMP, "2024-01-01T00", 1_704_067_200_000_000),
        (T.TIME, "23:59:59.9999999", 86_399_999_999),
        (T.TIME, " 00:01 ", 60_000_000),
        (T.BOOLEAN, "True", True),
    ],
)
def test_text_that_is_a_value(type_: T.DataType, text: str, value: object) -> None:
    assert scanner(type_)(text.encode()) == value


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (T.BIGINT, "+1"), (T.BIGINT, "1_000"), (T.BIGINT, "٣"), (T.BIGINT, "0x1F"), (T.BIGINT, "1.0"), (T.BIGINT, ""),
        (T.BIGINT, "9223372036854775808"), (T.TINYINT, "128"), (T.DOUBLE, "0x1p3"), (T.DOUBLE, "1e"),
        (T.decimal(7, 2), "1.555"), (T.decimal(7, 2), "100000"), (T.decimal(7, 2), "1e-900000000"),
        (T.decimal(7, 2), "1e999999999"), (T.decimal(7, 2), "1" * 500), (T.DATE, "2023-02-29"), (T.DATE, "2024-1-1"),
        (T.TIME, "24:00:00"), (T.TIME, "1:00"), (T.TIME, "01:00Z"),
        (T.TIMESTAMP, "2024-01-01 24:00:00"), (T.TIMESTAMP, "2024-01-01Z"),
        (T.TIMESTAMP, "2024-01-01 00:00:00+2"), (T.BOOLEAN, "yes"),
    ],
)  # fmt: skip
def test_text_that_is_no_value(type_: T.DataType, text: str) -> None:
    with pytest.raises(UnreadableText):
        scanner(type_)(text.encode())


SEEDS = [
    "1", "-1", "0", "127", "-128", "32768", "2147483648", "9223372036854775807", "1.5", "1e5", "1E-2", ".5", "5.",
    "nan", "-inf", "infinity", "NaN(1)", "1e400", "16777217", "16777217.0000001", "3.4028235677973366e38", "1e-46",
    "true", "False", "12345.67", "0.001", "99999.995", "2020-01-01", "1e-946", "1e-2147483647", "2020-02-29T23:59",
    "0000-12-31", "abc", "é", '""', '"5"', "-", "+", "+1", "--1", "0x1f", "0xff", "1_0", "NULL", "", " 1 ", "\t2",
    "2020-01-01T00:00:00Z", "2020-01-01 10:00:00.1+02:00", "1969-12-31T23:59:59.123456789-0330", "2020-01-01T00:00+19",
    "1\0", '" 5"', "12345678901234567890123456789", "2020-01-01 01:02:03.5", "2020-01-01 00:00:00.123456",
    "01:02", "23:59:59.5", "10:00:00.",
]  # fmt: skip
LETTERS = "0123456789-+.eE:T Z\"',\n\rnaif\t\0x_é"


def mutated(rng: random.Random) -> str:
    text = rng.choice(SEEDS)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(["", rng.choice(LETTERS)]) + text[at + rng.randrange(2) :]
    return '"' + text.replace('"', '""') + '"' if rng.random() < 0.15 else text


@pytest.mark.parametrize("seed", range(4))
def test_what_pyarrow_accepts_the_strict_scanner_reads_the_same(seed: int) -> None:
    """Else a row would change its meaning with the block it falls into."""
    rng = random.Random(seed)
    accepted = 0
    for _ in range(1500):
        kinds = [rng.choice(ALL_TYPES) for _ in range(rng.randint(1, 2))]
        rules = Rules(tuple(Field(f"x{i}", k) for i, k in enumerate(kinds)), tuple(range(len(kinds))), None)
        end = rng.choice(["\n", "\n", "\r\n", "\r"])
        lines = [",".join(mutated(rng) for _ in kinds) for _ in range(rng.choice([1, 1, 2, 3]))]
        text = (end.join(lines) + rng.choice(["", end])).encode()
        options = CsvOptions(header=False, nulls=(rng.choice(["", "NULL"]),))
        column_map = ColumnMap("f", options, rules, len(kinds), tuple(range(len(kinds))))
        table = column_map.through_pyarrow(TextBlock(text, 1))
        if table is None:
            continue
        accepted += 1
        if table.num_rows and column_map._text_behind_quotes(TextBlock(text, 1)):
            assert _ByRow(column_map, TextBlock(text, 1)).piece().bad
            continue
        piece = _ByRow(column_map, TextBlock(text, 1)).piece()
        context = f"seed {seed}: {text!r} as {[str(k) for k in kinds]}"
        assert not piece.bad, context
        batch = pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], names=table.schema.names)
        assert repr(list(rows_of(batch, kinds))) == repr(list(rows_of(piece.batch, kinds))), context
        lines_seen, blank = lines_of_rows(text, STANDARD, len(kinds), table.num_rows)
        assert blank == piece.blank, context
        expected = list(range(table.num_rows)) if lines_seen is None else lines_seen.tolist()
        assert [x - 1 for x in piece.place.lines.tolist()] == expected, context
    assert accepted > 100


@pytest.mark.parametrize(
    ("first", "second", "micros"),
    [
        ("1970-01-01T02:00:00+02:00", "1970-01-01T00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.0000000Z", "1969-12-31T23:59:59.999999999Z", -1),
        ("1970-01-01 00:00:00.000000000", "1969-12-31 23:59:59.9999991", -1),
    ],
)
def test_times_with_a_zone_or_many_digits_are_read_by_blocks(first: str, second: str, micros: int) -> None:
    """Not row by row, which takes a hundred times as long."""
    rules = Rules((Field("t", T.TIMESTAMP), Field("x", T.BIGINT)), (0, 1), None)
    column_map = ColumnMap("f", CsvOptions(header=False), rules, 2, (0, 1))
    table = column_map.through_pyarrow(TextBlock(f",1\n{first},2\n{second},3\n".encode(), 1))
    assert table is not None and table.column(0).type == pa.timestamp("us")
    assert table.column(0).cast(pa.int64()).to_pylist() == [None, 0, micros]


def test_decimals_are_read_alike_by_pyarrow_and_by_the_scanner() -> None:
    # pyarrow lets what passes beyond 128 bits wrap around
    rng = random.Random(9)
    for _ in range(1500):
        digits = "".join(rng.choices("0123456789", k=rng.randint(1, 40)))
        point = rng.randint(0, len(digits))
        text = rng.choice(["", "-"]) + digits[:point] + rng.choice([".", ""]) + digits[point:]
        scale = rng.randint(0, 38)
        type_ = T.decimal(rng.randint(max(1, scale), 38), scale)
        read = _plain_decimals(pa.chunked_array([[text]]), type_)
        if read is not None:
            assert values_of(read.chunk(0), type_) == [scanner(type_)(text.encode())], (text, type_)


def test_decimal_with_a_huge_exponent_is_a_bad_row_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    declared = stream(
        [Field("d", T.decimal(7, 2))], path=write(tmp_path, "d\n1.25\n1e-2147483647\n1e99\n2\n"), on_error="skip"
    )
    seen = read(declared)
    assert (seen.rows, seen.bad) == ([(125,), (200,)], 2)


def test_hexadecimal_is_no_integer_even_if_pyarrow_thinks_so(tmp_path: Path) -> None:
    seen = read(stream("a bigint, b varchar", path=write(tmp_path, "a,b\n1,0x1\n0x1F,x\n"), on_error="skip"))
    assert seen.rows == [(1, "0x1")]


# ---------------------------------------------------------------------------------------------------------------- rows


def test_quoted_line_ends_blank_lines_and_crlf_keep_the_lines_right(tmp_path: Path) -> None:
    #  line 1    2       3 4     5       6        8
    text = 'a,b\r\n1,x\r\n\r\n\r\n2,"y\r\nz"\r\n3,w\r\n'
    seen = read(stream("a bigint, b varchar", path=write(tmp_path, text)))
    assert seen.rows == [(1, "x"), (2, "y\r\nz"), (3, "w")]
    assert [p.rsplit(":", 1)[1] for p in seen.places] == ["2", "5", "7"]


def test_unquoted_empty_is_null_and_quoted_empty_is_text(tmp_path: Path) -> None:
    seen = read(stream("a bigint, b varchar", path=write(tmp_path, 'a,b\n,\n1,""\n')))
    assert seen.rows == [(None, None), (1, "")]


def test_last_empty_field_without_a_line_end_is_null_after_a_quoted_one(tmp_path: Path) -> None:
    seen = read(stream("a varchar, b varchar", path=write(tmp_path, 'a,b\n"x",')))
    assert seen.rows == [("x", None)]


def test_null_text_is_an_option(tmp_path: Path) -> None:
    seen = read(stream("a bigint, b varchar", path=write(tmp_path, "a,b\nNA,\n1,NA\n"), null="NA"))
    assert seen.rows == [(None, ""), (1, None)]


def test_several_texts_are_null_where_they_are_not_quoted(tmp_path: Path) -> None:
    text = 'a,b\nNA,\n1,N/A\n,"NA"\n-,n/a\n2,-\n'
    seen = read(stream("a bigint, b varchar", path=write(tmp_path, text), null=",NA,N/A,-"))
    assert seen.error is None
    assert seen.rows == [(None, None), (1, None), (None, "NA"), (None, "n/a"), (2, None)]


def test_column_of_numbers_and_several_null_texts_is_guessed_to_be_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "v\n1\nNA\n\nN/A\n2\n-\n")
    assert [str(f) for f in infer({"path": path, "null": ",NA,N/A,-"})] == ["v BIGINT"]


def test_name_of_a_column_that_is_not_utf8_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("id,café\n1,2\n".encode("latin1"))
    for text in ("SELECT id FROM t", "CREATE STREAM t (id BIGINT); SELECT id FROM t"):
        with pytest.raises(CqError, match=r"the column name 'caf\\xe9' in its header is not UTF-8") as refused:
            sql(text, t=str(tmp_path / "latin.csv")).run(engine="reference")
        assert refused.value.first.help == (
            f"convert it first: iconv -f LATIN1 -t UTF-8 '{tmp_path}/latin.csv' > utf8.csv",
        )


def test_record_of_an_open_quote_is_told_with_the_lines_it_takes(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n1,x\n" + '2,"open\n' + "3,y\n" * 50)
    text = f"CREATE STREAM t WITH (path = '{path}', on_error = 'skip'); SELECT COUNT(a) AS n FROM t"
    for engine in ("reference", "native"):
        result = sql(text).run(engine=engine)
        (note,) = result.stats.notes
        assert (result.to_pylist(), dict(result.stats.bad_rows)) == ([{"n": 1}], {"t": 1})
        assert note.startswith(f"{path}: a quoted field is never closed") and "from line 3 to the end: 51 lines" in note
    with pytest.raises(DataError, match="the record continues to the end, over 51 lines"):
        sql(text.replace("skip", "fail")).run(engine="reference")
    whole = text.replace("'skip'", "'skip', quote = ''")  # the way out
    assert sql(whole).run(engine="reference").to_pylist() == [{"n": 52}]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl"])
def test_empty_file_among_those_of_a_pattern_has_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, ending: str
) -> None:
    monkeypatch.setattr(source, "cores", lambda: threads)
    texts = ["", "a,b\n1,x\n", "", "a,b\n3,z\n", ""]
    if ending == "jsonl":
        texts = ["", '{"a": 1, "b": "x"}\n', "", '{"a": 3, "b": "z"}\n', ""]
    for number, text in enumerate(texts):
        packed = gzip.compress(text.encode()) if text and ending == "csv.gz" else text.encode()
        (tmp_path / f"{number}.{ending}").write_bytes(packed)
    pattern = str(tmp_path / f"*.{ending}")
    seen = read(stream("a bigint, b varchar", path=pattern))
    assert seen.error is None and seen.rows == [(1, "x"), (3, "z")]
    assert [str(f) for f in infer({"connector": "file", "path": pattern})] == ["a BIGINT", "b VARCHAR"]


@pytest.mark.parametrize("text", ["", "\n", "a\n"])
def test_declared_file_without_bytes_or_rows_has_none(tmp_path: Path, text: str) -> None:
    """A pipe without a header is an error: tests/cli/test_endless_inputs.py."""
    seen = read(stream("a bigint", path=write(tmp_path, text)))
    assert seen.error is None and seen.rows == []


def test_empty_text_in_a_column_of_numbers_is_told_how_it_becomes_null(tmp_path: Path) -> None:
    seen = read(stream("a bigint, coupon bigint", path=write(tmp_path, 'a,coupon\n1,\n2,""\n')))
    assert seen.rows == [(1, None)] and seen.error is not None and seen.error.code == "CQ0702"
    way = "declare it VARCHAR, and write TRY_CAST(NULLIF(coupon, '') AS BIGINT) where it is used"
    assert seen.error.first.help == (way,)


@pytest.mark.parametrize("threads", [1, 2])
def test_without_quotes_a_quote_is_a_letter_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(source, "cores", lambda: threads)
    text = 'a b\n1 "x\n2 y"z\n3 ""\n4 "\n'
    path = write(tmp_path, text)
    declared = read(stream("a bigint, b varchar", path=path, delimiter=" ", quote=""))
    assert declared.error is None and declared.rows == [(1, '"x'), (2, 'y"z'), (3, '""'), (4, '"')]
    fields = infer({"connector": "file", "path": path, "delimiter": " ", "quote": ""})
    assert [str(f) for f in fields] == ["a BIGINT", "b VARCHAR"]


def test_columns_are_found_by_name_in_any_order_and_case(tmp_path: Path) -> None:
    seen = read(stream("id bigint, name varchar", path=write(tmp_path, "x,Name,ID\n,n,1\n")))
    assert seen.rows == [(1, "n")]


def test_names_a_header_leaves_out_or_gives_twice_are_made(tmp_path: Path) -> None:
    seen = read(stream("column0 bigint, a bigint, a_1 bigint, a_2 bigint", path=write(tmp_path, ",a,a_1,a\n1,2,3,4\n")))
    assert seen.rows == [(1, 2, 3, 4)]


def test_columns_of_a_file_with_tabs_are_found_by_its_ending(tmp_path: Path) -> None:
    path = write(tmp_path, "id\tname\n1\tx\n", "t.tsv")
    assert [f.name for f in infer({"path": path})] == ["id", "name"]


def test_without_a_header_columns_go_by_position(tmp_path: Path) -> None:
    seen = read(stream("id bigint, name varchar", path=write(tmp_path, "1;a\n2;b\n"), header="false", delimiter=";"))
    assert seen.rows == [(1, "a"), (2, "b")]
    assert seen.places[0].endswith(":1")


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert read(stream("id bigint", path=write(tmp_path, b"\xef\xbb\xbfid\n1\n"))).rows == [(1,)]


def test_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    error = read(stream("idd bigint", path=write(tmp_path, "id,name\n1,x\n"))).error
    assert error is not None and error.code == "CQ0603"
    assert 'did you mean "id"?' in error.first.help


@pytest.mark.parametrize(("divider", "said"), [(";", ";"), ("\t", "tab"), ("|", "|")])
def test_header_with_another_delimiter_is_told_with_the_option_to_set(tmp_path: Path, divider: str, said: str) -> None:
    given = {"path": write(tmp_path, divider.join("ab") + "\n" + divider.join("12") + "\n")}
    declared = read(stream("a bigint", **given)).error
    assert declared is not None and f"write delimiter = '{said}'" in declared.first.help
    with pytest.raises(CqError) as inferred:
        infer(given)
    ways = (f"-w delimiter='{said}'", f"--delimiter '{said}'")
    help = inferred.value.first.help[0]
    assert help.startswith(f"write delimiter = '{said}' in WITH") and all(way in help for way in ways)
    assert [f.name for f in infer({**given, "delimiter": divider})] == ["a", "b"]
    assert [f.name for f in infer({**given, "delimiter": ","})] == [divider.join("ab")]


def test_packed_text_is_read_by_its_ending(tmp_path: Path) -> None:
    with pa.CompressedOutputStream(str(tmp_path / "t.csv.gz"), "gzip") as out:
        out.write(b"id\n1\n2\n")
    assert read(stream("id bigint", path=str(tmp_path / "t.csv.gz"))).rows == [(1,), (2,)]


def test_files_of_a_pattern_are_read_in_order_of_name(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        write(tmp_path, f"id,f\n1,{name}\n", name)
    seen = read(stream("f varchar", path="*.csv"), directory=tmp_path)
    assert seen.rows == [("a.csv",), ("b.csv",)]
    assert seen.places == ["a.csv:2", "b.csv:2"]


def test_block_edges_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    lines = ["id,text"]
    for n in range(300):
        quoted = rng.choice([f"t{n}", f'"a,{n}"', '"two\nlines"', '""', "", 'has " inside', '"quote "" inside"'])
        lines.append(f"{rng.choice([str(n), str(n), 'bad'])},{quoted}")
    path = write(tmp_path, "\n".join(lines) + "\n")
    declared = stream("id bigint, text varchar", path=path, on_error="skip")
    whole = read(declared)
    assert whole.bad > 0
    for size, threads in ((64, 1), (64, 4), (257, 3), (1024, 2)):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
        monkeypatch.setattr(source, "cores", lambda threads=threads: threads)
        seen = read(declared)
        assert (seen.rows, seen.places, seen.bad) == (whole.rows, whole.places, whole.bad), (size, threads)


@pytest.mark.parametrize("damage", ["", "x,5", '1,"a\nb', "1"])
def test_blocks_parsed_at_once_give_what_one_after_the_other_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    lines = [f"{n},text {n}" for n in range(2000)]
    lines[1234:1234] = [damage] if damage else []
    declared = stream("id bigint, text varchar", path=write(tmp_path, "id,text\n" + "\n".join(lines)))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(source, "cores", lambda: 1)
    one = read(declared)
    monkeypatch.setattr(source, "cores", lambda: 4)
    several = read(declared)
    assert (several.rows, several.places) == (one.rows, one.places)
    assert str(several.error) == str(one.error) and (several.error is None) == (damage == "")
    assert len(one.rows) == (1234 if damage else 2000)
    assert not [t for t in threading.enumerate() if t.name.startswith("cq-parse")]


def test_rows_that_have_come_do_not_wait_for_a_full_block() -> None:
    rules = Rules.of(stream("id bigint"))
    text = b"id\n" + b"1\n" * 700_000
    arrived = [text, b""]
    pieces = read_csv(Slow(arrived), "s", CsvOptions(), rules)
    assert sum(piece.batch.num_rows for piece in pieces if len(arrived) == 1) == 700_000


class Slow:
    """Gives what has come, whatever is asked for."""

    def __init__(self, parts: list[bytes]) -> None:
        self.parts = parts

    def read(self, size: int) -> bytes:
        return self.parts.pop(0)


@pytest.mark.parametrize("text", ['5" pipe,x\n1,"open\n', 'x,y\n"a\n', 'x\n"a\n'])
def test_line_end_in_an_open_quote_proves_nothing(tmp_path: Path, text: str) -> None:
    columns = "a varchar, b varchar" if "," in text else "a varchar"
    seen = read(stream(columns, path=write(tmp_path, text), header="false", on_error="skip"))
    assert seen.bad == 1


@pytest.mark.parametrize("text", [b'a,"b\n', b'a,"x""', b'a\n"b', b'a,5" x\nc,"d\ne"\nf,"'])
def test_rows_cut_at_an_open_quote_wait_for_its_end(text: bytes) -> None:
    end = complete(text, STANDARD, last=False)
    assert all(r.fault != NEVER_CLOSED for r in rows(text[:end], STANDARD))


# ------------------------------------------------------------------------------------------------------------ bad rows


def test_first_bad_row_ends_the_stream_after_the_rows_before_it(tmp_path: Path) -> None:
    path = write(tmp_path, "id,p\n1,1.5\n2,x\n3,2\n")
    seen = read(stream("id bigint, p double", path=path))
    assert seen.rows == [(1, 1.5)]
    assert seen.error is not None and seen.error.code == "CQ0702"
    assert str(seen.error) == f"data error[CQ0702]: {path}:3: cannot read 'x' as DOUBLE in column p"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("x,2024-01-01,n", "CQ0702", "cannot read 'x' as BIGINT"),
        ("1,,n", "CQ0703", "the event time is NULL"),
        ("1,yesterday,n", "CQ0703", "cannot read 'yesterday' as TIMESTAMP"),
        ("1,2024-01-01,", "CQ0704", "column name is NOT NULL"),
        ("1,2024-01-01", "CQ0710", "2 fields where there should be 3"),
        ("1", "CQ0710", "1 field where there should be 3"),
        ('1,2024-01-01,"open', "CQ0710", "a quoted field is never closed"),
    ],
)
def test_every_kind_of_bad_row_has_its_code_and_words(tmp_path: Path, line: str, code: str, words: str) -> None:
    path = write(tmp_path, f"id,ts,name\n{line}\n")
    error = read(stream("id bigint, ts timestamp, name varchar!", time="ts", path=path)).error
    assert error is not None and error.code == code
    assert words in error.first.message and error.first.place == f"{path}:2"
    assert ("on_error = 'skip'" in "".join(error.first.help)) is (
        code in {"CQ0703", "CQ0710"} and "yesterday" not in line
    )


def test_columns_nobody_wants_are_checked_too(tmp_path: Path) -> None:
    path = write(tmp_path, "id,p\n1,x\n")
    error = read(stream("id bigint, p double", path=path), wanted=[0]).error
    assert error is not None and error.code == "CQ0702"


def test_dead_letters_hold_what_was_read_and_why(tmp_path: Path) -> None:
    path = write(tmp_path, b"id\n1\nx\n\xff\n2\n")
    letters = tmp_path / "bad.jsonl"
    seen = read(stream("id bigint", path=path, on_error="dead_letter", bad_rows=str(letters)))
    assert (seen.rows, seen.bad) == ([(1,), (2,)], 2)
    first, second = (json.loads(line) for line in letters.read_text().splitlines())
    assert first == {
        "file": path,
        "record": 3,
        "column": "id",
        "code": "CQ0702",
        "cause": "cannot read 'x' as BIGINT in column id",
        "raw": "x",
    }
    assert second["raw_base64"] == "/w=="


def test_time_that_leaves_64_bits_is_a_bad_event_time(tmp_path: Path) -> None:
    from cq.lang.expressions import Call, Column
    from cq.lang.functions import lookup

    path = write(tmp_path, f"t\n1\n{2**62}\n2\n")
    function = lookup("timestamp_seconds")
    assert function is not None
    time = Call(T.TIMESTAMP, False, function, (Column(T.BIGINT, False, 0),))
    plain = stream("t bigint", path=path, on_error="skip")
    declared = type(plain)(plain.fields, plain.options, time)
    assert read(declared).rows == [(1,), (2,)]


def test_dead_letters_never_overwrite_what_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "id\nx\n")
    error = read(stream("id bigint", path=path, on_error="dead_letter", bad_rows=path)).error
    assert error is not None and error.code == "CQ0605"
    assert (tmp_path / "t.csv").read_text() == "id\nx\n"


def test_dead_letters_do_not_wait_for_the_reader_of_a_pipe(tmp_path: Path) -> None:
    path = write(tmp_path, "id\nx\n")
    os.mkfifo(tmp_path / "pipe")
    error = read(stream("id bigint", path=path, on_error="dead_letter", bad_rows=str(tmp_path / "pipe"))).error
    assert error is not None and error.code == "CQ0605" and f"{tmp_path}/pipe" in error.first.message


def test_dead_letters_that_find_no_room_are_said_at_their_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "id\nx\n1\n")
    full = open("/dev/full", "wb")  # noqa: SIM115 - the source closes it
    monkeypatch.setattr("cq.connectors.bad_rows.BadRows._open", lambda *_: full)
    seen = read_by(stream("id bigint", path=path, on_error="dead_letter", bad_rows=str(tmp_path / "b.jsonl")))
    assert seen.error is not None and seen.rows == []
    assert seen.error.first.message == f"cannot write bad rows to {tmp_path}/b.jsonl: no space left on device"
