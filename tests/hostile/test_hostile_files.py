"""Files that are not what they should be: every one ends in an error with its name, never in a crash or a hang."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors_fixture import Seen, read, stream

from cq.connectors import packed
from cq.connectors.access import FileAccess
from cq.connectors.protocol import RECORD_BYTES
from cq.errors import UsageError

DAMAGE = Path(__file__).parent / "damage.py"
TABLE = pa.table({
    "id": pa.array(range(400)),
    "name": pa.array([f"name {n % 17}" for n in range(400)]),
    "p": pa.array([n / 7 for n in range(400)]),
    "ts": pa.array(range(400), pa.timestamp("us")),
})  # fmt: skip


def read_bytes(directory: Path, data: bytes, name: str = "t.csv", **options: str) -> Seen:
    (directory / name).write_bytes(data)
    return read(stream("id bigint, name varchar", path=name, **options), directory=directory)


def code(seen: Seen) -> str:
    assert seen.error is not None, seen.rows
    return seen.error.code


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
def test_damaged_files_give_an_error_or_rows_but_never_end_the_process(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("t.parquet" if kind == "parquet" else "t.arrow")
    if kind == "parquet":
        pq.write_table(TABLE, path, row_group_size=150)
    else:
        make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with make(str(path), TABLE.schema) as out:
            out.write_table(TABLE, max_chunksize=150)
    done = subprocess.run(
        [sys.executable, str(DAMAGE), str(path), "1", "150"], capture_output=True, text=True, timeout=120, check=False
    )
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    assert done.returncode == 0, f"after {last!r}: {done.stderr[-2000:]}"
    results = [line.rsplit(": ", 1)[1] for line in done.stdout.splitlines()]
    assert len(results) == 150
    assert "CQ0701" in results
    assert {r for r in results if not r.isdigit()} <= {"CQ0701", "CQ0603", "CQ0702"}, done.stdout


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_empty_and_foreign_files_are_not_of_their_format(tmp_path: Path, name: str) -> None:
    for data in (b"", b"PAR1", b"ARROW1", b"id,name\n1,x\n", os.urandom(100)):
        assert code(read_bytes(tmp_path, data, name)) == "CQ0701", data[:10]


def test_empty_csv_has_no_rows(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b"")
    assert seen.error is None and not seen.rows


def test_csv_with_only_a_header_has_no_rows(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, b"id,name").rows == []
    assert read_bytes(tmp_path, b"\n\nid,name\n\n").rows == []


def test_empty_file_without_a_header_has_no_rows(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b"", header="false")
    assert (seen.rows, seen.error) == ([], None)


@pytest.mark.parametrize(
    "data", [b"PAR1" + bytes(50), b"ARROW1" + bytes(50), b"\x1f\x8b" + bytes(50), "id".encode("utf-16")]
)
def test_something_else_under_the_name_of_csv_is_recognised(tmp_path: Path, data: bytes) -> None:
    assert code(read_bytes(tmp_path, data)) == "CQ0701"


def test_text_that_is_not_utf8_is_a_bad_row_with_its_line(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b"id,name\n1,ok\n2,\xff\xfe\n3,ok\n", on_error="skip")
    assert (seen.rows, seen.bad) == ([(1, "ok"), (3, "ok")], 1)
    assert "t.csv:3" in str(read_bytes(tmp_path, b"id,name\n1,ok\n2,\xff\xfe\n").error)


def test_nul_bytes_are_text_in_text_and_no_digits(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b"id,name\n1,a\0b\n\x002,x\n", on_error="skip")
    assert (seen.rows, seen.bad) == ([(1, "a\0b")], 1)


def test_line_of_ten_megabytes_is_one_row(tmp_path: Path) -> None:
    long = b"x" * (10 << 20)
    seen = read_bytes(tmp_path, b"id,name\n1," + long + b"\n2,y\n")
    assert [(i, len(n)) for i, n in seen.rows] == [(1, len(long)), (2, 1)]


def test_line_over_the_limit_is_refused_with_its_number(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b"id,name\n1,x\n2," + b"x" * (RECORD_BYTES + 10) + b"\n")
    assert code(seen) == "CQ0701" and "line 3" in str(seen.error)


def test_quote_that_is_never_closed_is_one_bad_row(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b'id,name\n1,x\n2,"y\n3,z\n' + b"4,w\n" * 1000, on_error="skip")
    assert (seen.rows, seen.bad) == ([(1, "x")], 1)


def test_old_line_ends_are_line_ends(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b"id,name\r1,x\r2,y\r")
    assert seen.rows == [(1, "x"), (2, "y")]
    assert [p.rsplit(":", 1)[1] for p in seen.places] == ["2", "3"]


def test_many_bad_rows_cost_no_more_than_reading_them(tmp_path: Path) -> None:
    seen = read_bytes(tmp_path, b"id,name\n" + b"x,y\n" * 50_000, on_error="skip")
    assert seen.bad == 50_000


# ----------------------------------------------------------------------------------------------------------- not files


def test_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("id,name\n")
    seen = read(stream("id bigint", path="bidz.csv"), directory=tmp_path)
    assert code(seen) == "CQ0601" and seen.error is not None and 'did you mean "bids.csv"?' in seen.error.first.help


def test_confined_query_opens_no_directory_device_pipe_or_socket(tmp_path: Path) -> None:
    confined = FileAccess(tmp_path, (tmp_path, Path("/dev")))
    (tmp_path / "d.csv").mkdir()
    os.mkfifo(tmp_path / "p.csv")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "s.csv"))
        for name in ("d.csv", "p.csv", "s.csv", "/dev/zero"):
            with pytest.raises(UsageError) as refused:
                confined.open(name)
            assert refused.value.code == "CQ0601", name


def test_pattern_without_a_match_is_an_error(tmp_path: Path) -> None:
    assert code(read(stream("id bigint", path="*.csv"), directory=tmp_path)) == "CQ0601"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    (tmp_path / "t.csv").chmod(0)
    assert code(read(stream("id bigint", path="t.csv"), directory=tmp_path)) == "CQ0601"


def test_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").symlink_to(tmp_path / "t.csv")
    assert code(read(stream("id bigint", path="t.csv"), directory=tmp_path)) == "CQ0601"


def test_packed_file_that_grows_beyond_reason_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 20)
    with pa.CompressedOutputStream(str(tmp_path / "t.csv.gz"), "gzip") as out:
        out.write(b"id,name\n" + b"1,x\n" * 2_000_000)
    seen = read(stream("id bigint", path="t.csv.gz"), directory=tmp_path)
    assert code(seen) == "CQ0701" and "200 times" in str(seen.error)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_damaged_packed_file_gives_every_row_before_the_damage_and_an_error(tmp_path: Path, codec: str) -> None:
    noise = random.Random(2)
    text = b"".join(b"%d,%s\n" % (n, noise.randbytes(8).hex().encode()) for n in range(20_000))
    whole = pa.Codec(codec).compress(text, asbytes=True)
    options = {"name": "t.csv", "header": "false", "compression": codec}
    for data in (whole + b"garbage", whole + whole[:10]):
        seen = read_bytes(tmp_path, data, **options)
        assert len(seen.rows) == 20_000 and code(seen) == "CQ0701", data[-10:]
        assert "t.csv: it cannot be decompressed" in str(seen.error)
    for size, least in ((len(whole) - 1, 15_000), (len(whole) // 2, 5_000)):
        seen = read_bytes(tmp_path, whole[:size], **options)
        assert code(seen) == "CQ0701" and least < len(seen.rows) <= 20_000
        assert seen.rows[-1][0] == len(seen.rows) - 1
    assert read_bytes(tmp_path, whole + whole, **options).error is None


@pytest.mark.parametrize("data", [b"", b"id,name\n1,x\n", b"\x1f\x8b", random.Random(1).randbytes(100)])
def test_something_else_under_the_name_of_a_packed_file_is_damaged(tmp_path: Path, data: bytes) -> None:
    for name in ("t.csv.gz", "t.jsonl.zst"):
        assert code(read_bytes(tmp_path, data, name)) == "CQ0701"


def test_plain_text_may_have_the_name_of_a_packed_file(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, b"id,name\n1,x\n", "t.csv.gz", compression="none").rows == [(1, "x")]


def test_parquet_is_not_packed_as_a_whole(tmp_path: Path) -> None:
    assert code(read_bytes(tmp_path, b"", "t.parquet.gz")) == "CQ0602"


def test_names_of_files_and_values_cannot_forge_output(tmp_path: Path) -> None:
    name = "a\x1b[2J\nerror[CQ0000]: forged.csv"
    (tmp_path / name).write_bytes(b"id\n\x1b]0;title\x07\n")
    error = read(stream("id bigint", path=name), directory=tmp_path).error
    assert error is not None
    drawn = str(error)
    assert "\x1b" not in drawn and "\x07" not in drawn and "\n" not in drawn
