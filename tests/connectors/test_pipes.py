"""Pipes and standard input: told by their first bytes, guessed by their bytes alone, read once and whole."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cq import sql
from cq.compiler.passes import compile
from cq.connectors import infer, read_once
from cq.connectors.access import FileAccess
from cq.connectors.first_bytes import CODECS, MAGICS, is_json, is_json_told, is_told
from cq.connectors.inputs import Inputs
from cq.connectors.read_once import Once, told_of_waiting
from cq.engines.query import collect
from cq.errors import CqError, DataError

TABLE = pa.table({"id": [1, 2, 3], "v": ["a", None, "ü"]})
CSV = 'id,v\n1,a\n2,\n3,"ü"\n'.encode()
JSON = '{"id": 1, "v": "a"}\n{"id": 2}\n{"id": 3, "v": "ü"}\n'.encode()


def _parquet() -> bytes:
    pq.write_table(TABLE, out := io.BytesIO())
    return out.getvalue()


def _arrow(make: Callable[..., Any]) -> bytes:
    with make(out := io.BytesIO(), TABLE.schema) as writer:
        writer.write_table(TABLE)
    return out.getvalue()


FORMS = {
    "csv": CSV,
    "json": JSON,
    "json behind blank lines": b"\n \n" + JSON,
    "csv with a byte order mark": b"\xef\xbb\xbf" + CSV,
    "parquet": _parquet(),
    "arrow file": _arrow(pa.ipc.new_file),
    "arrow stream": _arrow(pa.ipc.new_stream),
    "csv.gz": gzip.compress(CSV),
    "json.gz": gzip.compress(JSON),
    "two members of gzip": gzip.compress(CSV[:7]) + gzip.compress(CSV[7:]),
    "csv.bz2": bz2.compress(CSV),
    "json.zst": pa.Codec("zstd").compress(JSON, asbytes=True),
    "csv.lz4": pa.Codec("lz4").compress(CSV, asbytes=True),
}


@contextmanager
def writing(descriptor: int, text: bytes, step: int = 1 << 16) -> Iterator[None]:
    """A thread writes the text in steps and closes the descriptor."""

    def write() -> None:
        with os.fdopen(descriptor, "wb", buffering=0) as pipe:
            for at in range(0, len(text), step):
                pipe.write(text[at : at + step])

    writer = threading.Thread(target=write)
    writer.start()
    yield
    writer.join()


@contextmanager
def named_pipe(path: Path, text: bytes) -> Iterator[str]:
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(text,))
    writer.start()
    yield str(path)
    writer.join()


@contextmanager
def standard_input(monkeypatch: pytest.MonkeyPatch, text: bytes, step: int = 1 << 16) -> Iterator[None]:
    reading, end = os.pipe()
    with os.fdopen(reading) as stdin, writing(end, text, step):
        monkeypatch.setattr(sys, "stdin", stdin)
        yield


def rows_of(query: str, **inputs: str) -> list[dict[str, Any]]:
    return sql(query, **inputs).run(engine="reference")["result"].to_pylist()


@pytest.mark.parametrize("declared", ["", "CREATE STREAM s (id BIGINT, v VARCHAR);"])
@pytest.mark.parametrize("form", FORMS)
def test_pipe_is_read_as_what_its_first_bytes_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, declared: str
) -> None:
    query = declared + "SELECT id, v FROM s"
    with named_pipe(tmp_path / "pipe", FORMS[form]) as pipe:
        assert rows_of(query, s=pipe) == TABLE.to_pylist()
    with standard_input(monkeypatch, FORMS[form]):
        assert rows_of(query, s="-") == TABLE.to_pylist()


def test_standard_input_that_is_a_file_is_read_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Once, "_copy", lambda self: pytest.fail("a file needs no copy"))
    (tmp_path / "t.parquet").write_bytes(FORMS["parquet"])
    with open(tmp_path / "t.parquet") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert rows_of("SELECT SUM(id) AS n FROM s", s="-") == [{"n": 6}]


def test_what_is_behind_the_position_of_standard_input_is_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").write_bytes(b"a line\n" + FORMS["parquet"])
    with open(tmp_path / "t", "rb", buffering=0) as stdin:
        stdin.readline()
        monkeypatch.setattr(sys, "stdin", stdin)
        assert rows_of("SELECT SUM(id) AS n FROM s", s="-") == [{"n": 6}]


def test_there_may_be_no_room_for_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Once) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Once, "_copy", full)
    with standard_input(monkeypatch, FORMS["parquet"]), pytest.raises(CqError, match="TMPDIR") as found:
        rows_of("SELECT id FROM s", s="-")
    assert "Parquet is read from its end" in found.value.first.message


@pytest.mark.parametrize("magic", [*MAGICS, *CODECS])
def test_first_bytes_are_asked_for_until_they_tell(magic: bytes) -> None:
    assert [is_told(magic[:n]) for n in range(len(magic))] == [False] * len(magic)
    assert is_told(magic) and is_told(b"id,v\n") and is_told(b"P") is False and is_told(b"PA,v")


@pytest.mark.parametrize(
    ("text", "json"), [(b'{"a": 1}', True), (b"{}", True), (b'\n { "a"', True), (b'[{"a"', True), (b"{a},b\n", False)]
)
def test_object_is_told_from_a_header(text: bytes, json: bool) -> None:
    told = next(n for n in range(len(text) + 1) if is_json_told(text[:n]))
    assert all(is_json(text[:n]) is json for n in range(told, len(text) + 1))


def test_options_of_csv_say_that_objects_are_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = "CREATE STREAM s (line VARCHAR) WITH (connector = 'stdin', header = false, quote = '', delimiter = '|');"
    with standard_input(monkeypatch, b'{"a": 1}\n'):
        assert rows_of(declared + "SELECT line FROM s") == [{"line": '{"a": 1}'}]


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize(
    ("options", "types"),
    [
        ({}, ["VARCHAR", "VARCHAR"]),
        ({"guess_rows": "1"}, ["BIGINT", "VARCHAR"]),
        ({"guess_rows": "2"}, ["DOUBLE", "VARCHAR"]),
        ({"guess_rows": "3"}, ["VARCHAR", "VARCHAR"]),
        ({"guess_rows": "1", "header": "false"}, ["VARCHAR", "VARCHAR"]),
    ],
)
def test_guess_depends_on_the_bytes_and_not_on_how_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], types: list[str], step: int
) -> None:
    text = b'n,t\n\n1,"a\nb"\r\n1.5,c\nx,d\n'
    (tmp_path / "t.csv").write_bytes(text)
    assert [str(f.type) for f in infer({"path": "t.csv", **options}, FileAccess(tmp_path))] == types
    with standard_input(monkeypatch, text, step):
        assert [str(f.type) for f in infer({"connector": "stdin", **options})] == types
        pipe = Once.of(sys.stdin.fileno(), owned=False)
        assert b"".join(iter(lambda: pipe.read(100), b"")) == text


def test_silence_changes_no_guess_and_is_told_with_what_to_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_once, "PATIENCE_S", 0.0)
    reading, end = os.pipe()
    said: list[str] = []
    answers = [b'"my id",v\n1,a\n', b"x,b\n"]

    def hear(text: str) -> None:
        said.append(text)
        os.write(end, answers.pop(0))
        if not answers:
            os.close(end)

    with os.fdopen(reading) as stdin, told_of_waiting(hear):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert [str(f.type) for f in infer({"connector": "stdin"}, stream="s")] == ["VARCHAR", "VARCHAR"]
    assert said[0] == "waiting for 1 MiB of rows from <stdin>, or its end, to infer its columns (none yet)"
    declared = "CREATE STREAM s (\"my id\" BIGINT, v VARCHAR) WITH (connector = 'stdin')"
    assert "(1 row so far)" in said[1] and f"{declared}; then read FROM s" in said[1] and "guess_rows=1" in said[1]
    assert len(said) == 2 and sql(declared + '; SELECT "my id" FROM s').check() == ()


def test_rows_before_the_damage_of_a_packed_pipe_are_read(tmp_path: Path) -> None:
    text = b"id\n" + b"".join(b"%d\n" % n for n in range(200_000))
    for name, packed in (("t.gz", gzip.compress(text)), ("t.zst", pa.Codec("zstd").compress(text, asbytes=True))):
        cut = packed[: len(packed) // 2]
        (tmp_path / f"t.csv{name[1:]}").write_bytes(cut)
        found = []
        declared = "CREATE STREAM s (id BIGINT); SELECT id FROM s"
        with named_pipe(tmp_path / name, cut) as pipe:
            for path in (pipe, str(tmp_path / f"t.csv{name[1:]}")):
                done = collect(compile(declared, inputs=Inputs(FileAccess(tmp_path), {"s": path})), "native")
                assert done.error is not None
                found.append((done.tables["result"].num_rows, done.error.first.code))
        assert found[0] == found[1] and found[0][0] > 1000 and found[0][1] == "CQ0701"


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bz2", "lz4"])
@pytest.mark.parametrize(("kind", "head", "row"), [("csv", b"id\n", b"%d\n"), ("json", b"", b'{"id": %d}\n')])
def test_columns_are_inferred_from_the_rows_before_the_damage(
    tmp_path: Path, codec: str, kind: str, head: bytes, row: bytes
) -> None:
    text = head + b"".join(row % (n * 7919 % 100_003) for n in range(60_000))
    packed = bz2.compress(text, 1) if codec == "bz2" else pa.Codec(codec).compress(text, asbytes=True)
    (tmp_path / "t").write_bytes(packed[:-12_000])
    found = []
    for columns in ("", "(id BIGINT) "):
        options = f"path = 't', format = '{kind}', compression = '{codec}'"
        query = f"CREATE STREAM s {columns}WITH ({options}); SELECT id FROM s"
        done = collect(compile(query, inputs=Inputs(FileAccess(tmp_path), {})), "native")
        assert done.error is not None
        found.append((done.tables["result"].num_rows, str(done.error)))
    assert found[0] == found[1] and found[0][0] > 1000 and "it cannot be decompressed" in found[0][1]


@pytest.mark.parametrize("inside", ["parquet", "arrow stream", "csv.gz"])
def test_what_is_packed_must_be_text(tmp_path: Path, inside: str) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(FORMS[inside]))
    with pytest.raises(CqError, match=r"content, compressed with gzip, is (Parquet|Arrow|gzip) and not text"):
        rows_of("SELECT * FROM s", s=str(tmp_path / "t.csv.gz"))


@pytest.mark.parametrize(
    ("form", "way", "options"),
    [
        ("parquet", "format = 'parquet'", {"format": "parquet"}),
        ("arrow stream", "format = 'arrow'", {"format": "arrow"}),
        ("csv.gz", "compression = 'gzip'", {"compression": "gzip"}),
    ],
)
def test_wrong_ending_is_told_with_the_option_to_set(
    tmp_path: Path, form: str, way: str, options: dict[str, str]
) -> None:
    (tmp_path / "t.csv").write_bytes(FORMS[form])
    with pytest.raises(DataError) as found:
        infer({"path": "t.csv"}, FileAccess(tmp_path))
    assert way in found.value.first.help[0]
    assert [f.name for f in infer({"path": "t.csv", **options}, FileAccess(tmp_path))] == ["id", "v"]


def test_format_of_the_text_does_not_hold_for_standard_input_where_it_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = "CREATE STREAM s (id BIGINT) WITH (path = 'x', format = 'parquet'); SELECT id FROM s"
    with standard_input(monkeypatch, CSV):
        assert rows_of(declared, s="-") == [{"id": 1}, {"id": 2}, {"id": 3}]
    declared = "CREATE STREAM s (id BIGINT) WITH (path = 'x', format = 'csv', compression = 'gzip'); SELECT id FROM s"
    with standard_input(monkeypatch, CSV):
        assert rows_of(declared, s="-") == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_the_path_of_a_declaration_may_be_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = os.pipe()
    os.write(here, b"1,a\n2,b\n")
    os.close(here)
    monkeypatch.setattr("sys.stdin", os.fdopen(there))
    found = sql("CREATE STREAM s (k BIGINT, v VARCHAR) WITH (path = '-', header = false); SELECT v FROM s").run()
    assert found.to_arrow().to_pydict() == {"v": ["a", "b"]}
