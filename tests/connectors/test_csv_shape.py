"""The shape of CSV: quotes that close, blank lines, one column, and very many of them."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from connectors_fixture import read, stream

from cq.connectors.access import FileAccess
from cq.connectors.csv import source
from cq.connectors.csv.rows import STANDARD, text_behind_quotes
from cq.connectors.inference import infer
from cq.connectors.sinks.writers import open_sink
from cq.errors import CqError
from cq.lang import types as T
from cq.lang.schema import Field

MANY = 20_000  # rows: more than a block has, so that several are parsed at once


def write(directory: Path, text: str | bytes, name: str = "t.csv") -> str:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


# ----------------------------------------------------------------------------------------------- behind a closing quote


@pytest.mark.parametrize("line", ['"abc"def,1', '"abc" ,1', '"",1\n""x,1', '"a,"b,1', '"a""b"c,1', '"a\nb"c,1'])
def test_text_behind_a_closing_quote_is_a_bad_row(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f'name,id\n"x",1\n{line}\n"y ""z""",2\n')
    seen = read(stream("name varchar, id bigint", path=path))
    assert seen.error is not None and seen.error.code == "CQ0710", seen.rows
    assert "text follows the closing quote" in str(seen.error)
    skipping = read(stream("name varchar, id bigint", path=path, on_error="skip"))
    assert skipping.bad == 1 and skipping.rows[0] == ("x", 1) and skipping.rows[-1] == ('y "z"', 2)


@pytest.mark.parametrize("newline_in_quotes", [False, True])
def test_text_behind_a_closing_quote_is_found_among_many_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newline_in_quotes: bool
) -> None:
    monkeypatch.setattr("cq.connectors.csv.blocks.BLOCK_BYTES", 4096)
    lines = [f'"n{i}",{i}' for i in range(MANY // 10)]
    lines[1500] = '"abc"def,1500'
    lines[10] = '"two\nlines",10' if newline_in_quotes else lines[10]
    path = write(tmp_path, "name,id\n" + "\n".join(lines) + "\n")
    seen = read(stream("name varchar, id bigint", path=path))
    assert seen.error is not None and seen.error.code == "CQ0710"
    assert seen.error.first.place == f"{path}:{1502 + newline_in_quotes}" and len(seen.rows) == 1500


def test_quotes_inside_fields_that_are_not_quoted_are_text(tmp_path: Path) -> None:
    path = write(tmp_path, 'name,id\n5" pipe,1\na "b" c,2\n"q",3\n"4"" bolt",4\n')
    assert [r[0] for r in read(stream("name varchar, id bigint", path=path)).rows] == [
        '5" pipe',
        'a "b" c',
        "q",
        '4" bolt',
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"a",1\n', False), ('"a"', False), ('""\n', False), ('"a""b",1\n', False), ('"""a"""\n', False),
        ('x"y,1\n', False), ('x"y"z,1\n', False), ('1,"a\nb"\r\n', False), ('"a, ""b"" c"\n', False),
        ('"a"b\n', True), ('""b\n', True), ('"a""b"c\n', True), ('"a,"b\n', True), ('x"y\n"a" ,1\n', True),
    ],
)  # fmt: skip
def test_text_behind_quotes_is_told_from_quotes_in_text(text: str, found: bool) -> None:
    assert text_behind_quotes(text.encode(), STANDARD) is found
    if "\n" not in text[:-1] and text.endswith("\n"):
        for before in ("", 'x"y\n', '"x"\n'):
            assert text_behind_quotes((before + text).encode(), STANDARD, lines_are_rows=True) is found


def test_header_with_text_behind_a_closing_quote_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, '"id"x,name\n1,a\n')
    seen = read(stream("id bigint", path=path))
    assert seen.error is not None and seen.error.code == "CQ0701" and "closing quote" in str(seen.error)
    with pytest.raises(CqError, match="closing quote"):
        infer({"path": path}, FileAccess(tmp_path))


# --------------------------------------------------------------------------------------------------------- blank lines


def test_blank_line_of_a_file_with_one_column_is_a_null(tmp_path: Path) -> None:
    path = write(tmp_path, "id\n1\n\n2\n\r\n")
    seen = read(stream("id bigint", path=path))
    assert seen.rows == [(1,), (None,), (2,), (None,)] and seen.blank == 0
    assert [p.rsplit(":", 1)[1] for p in seen.places] == ["2", "3", "4", "5"]


def test_blank_line_of_one_column_is_bad_where_a_value_is_demanded(tmp_path: Path) -> None:
    seen = read(stream("id bigint!", path=write(tmp_path, "id\n1\n\n2\n")))
    assert seen.rows == [(1,)] and seen.error is not None and seen.error.code == "CQ0704"
    assert seen.error.first.place.endswith(":3")


@pytest.mark.parametrize("bad", ["", "x,y\n"])
def test_blank_lines_between_several_columns_are_counted(tmp_path: Path, bad: str) -> None:
    text = f"id,name\n1,a\n\n2,b\n\n{bad}\r\n3,c\n\n"
    seen = read(stream("id bigint, name varchar", path=write(tmp_path, text), on_error="skip"))
    assert [r[0] for r in seen.rows] == [1, 2, 3] and (seen.blank, seen.bad) == (4, bool(bad))


@pytest.mark.parametrize("values", [[1, None, 3, None], [None], ["x", None, "", 'a"b', None]])
def test_one_column_with_nulls_is_read_back_as_it_was(tmp_path: Path, values: list[object]) -> None:
    type_ = T.BIGINT if isinstance(values[0], int | None) else T.VARCHAR
    sink = open_sink([Field("a", type_)], {"path": "one.csv"}, FileAccess(tmp_path))
    sink.write(pa.RecordBatch.from_arrays([pa.array(values, T.to_arrow(type_))], ["a"]))
    sink.close()
    seen = read(stream([Field("a", type_)], path=str(tmp_path / "one.csv")))
    assert [r[0] for r in seen.rows] == values


def test_one_column_with_quotes_is_parsed_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cq.connectors.csv.blocks.BLOCK_BYTES", 4096)
    path = write(tmp_path, "a\n" + '"x"\n\n' * 5000)
    seen = read(stream("a varchar", path=path))
    assert len(seen.rows) == 10_000 and seen.rows[:2] == [("x",), (None,)] and seen.error is None


# --------------------------------------------------------------------------------------------------------- many columns


def test_header_of_a_million_columns_is_refused_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, ",".join(f"c{i}" for i in range(1_000_000)) + "\n")
    began = time.process_time()
    seen = read(stream("c1 bigint", path=path))
    assert seen.error is not None and seen.error.code == "CQ0802" and "columns" in str(seen.error)
    with pytest.raises(CqError, match="more than"):
        infer({"path": path}, FileAccess(tmp_path))
    assert time.process_time() - began < 5


def test_as_many_columns_as_a_file_may_have_are_quick(tmp_path: Path) -> None:
    path = write(tmp_path, ",".join(["a"] * source.MAX_FILE_COLUMNS) + "\n")
    began = time.process_time()
    seen = read(stream("a bigint, a_9 bigint", path=path))
    assert seen.error is None and time.process_time() - began < 5
