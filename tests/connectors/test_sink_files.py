"""Files of sinks that fail or are killed: no traceback, no leftovers, nothing that looks whole."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from cq.connectors.access import FileAccess
from cq.connectors.sinks.writers import open_sink
from cq.errors import UsageError
from cq.lang import types as T
from cq.lang.schema import Field

PATHS = os.pathsep.join((str(Path(__file__).parent), os.environ["PYTHONPATH"]))
HERE = {**os.environ, "PYTHONPATH": PATHS}  # a process finds what this file defines
FIELDS = [Field("id", T.BIGINT)]
ROWS = pa.RecordBatch.from_arrays([pa.array(range(50_000), pa.int64())], ["id"])


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.parquet", "o.arrow"])
@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.one_in(2)
def test_sink_that_finds_no_room_says_so_and_nothing_more(tmp_path: Path, name: str, endless: bool) -> None:
    program = (
        "import gc, resource, signal\n"
        "from pathlib import Path\n"
        "from test_sink_files import FIELDS, ROWS\n"
        "from cq.connectors.access import FileAccess\n"
        "from cq.connectors.sinks.writers import open_sink\n"
        "from cq.errors import UsageError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        f"sink = open_sink(FIELDS, {{'path': '{name}'}}, FileAccess(Path()), endless={endless})\n"
        "try:\n"
        "    for _ in range(20): sink.write(ROWS)\n"
        "    sink.close()\n"
        "except UsageError as error: print(error.code)\n"
        "sink.abort()\n"
        "del sink\n"
        "gc.collect()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=HERE, capture_output=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (b"CQ0605\n", b""), done.stderr.decode()
    assert [n for n in os.listdir(tmp_path) if n.endswith(".part")] == []


@pytest.mark.parametrize("name", ["o.csv", "o.parquet"])
def test_part_of_a_killed_run_goes_with_the_next_run_onto_that_file(tmp_path: Path, name: str) -> None:
    program = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from test_sink_files import FIELDS, ROWS\n"
        "from cq.connectors.access import FileAccess\n"
        "from cq.connectors.sinks.writers import open_sink\n"
        f"open_sink(FIELDS, {{'path': '{name}'}}, FileAccess(Path())).write(ROWS)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=HERE, timeout=60, check=False)
    (left,) = os.listdir(tmp_path)
    assert left.endswith(".part")
    other = open_sink(FIELDS, {"path": "other.csv"}, FileAccess(tmp_path))
    assert left in os.listdir(tmp_path)
    sink = open_sink(FIELDS, {"path": name}, FileAccess(tmp_path))
    assert left not in os.listdir(tmp_path)
    other.abort()
    sink.write(ROWS)
    sink.close()
    assert os.listdir(tmp_path) == [name]


def test_part_of_a_run_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from test_sink_files import FIELDS\n"
        "from cq.connectors.access import FileAccess\n"
        "from cq.connectors.sinks.writers import open_sink\n"
        "sink = open_sink(FIELDS, {'path': 'o.csv'}, FileAccess(Path()))\n"
        "print('open', flush=True)\n"
        "input()\n"
        "sink.close()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=tmp_path, env=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == b"open\n"
        open_sink(FIELDS, {"path": "o.csv"}, FileAccess(tmp_path)).abort()
        running.communicate(b"\n", timeout=60)
        assert running.returncode == 0
    assert os.listdir(tmp_path) == ["o.csv"]


@pytest.mark.parametrize(
    ("options", "way"),
    [
        ({"path": "o.csv.bz2"}, "name it with .gz or .zst"),
        ({"path": "o.csv.LZ4", "format": "csv"}, "name it with .gz or .zst"),
        ({"path": "o.parquet.gz"}, "remove the extension from the name"),
        ({"path": "o.arrow", "compression": "zstd"}, "leave the option out"),
    ],
)
def test_packing_that_is_not_written_is_refused_with_a_way_out(
    tmp_path: Path, options: dict[str, str], way: str
) -> None:
    with pytest.raises(UsageError, match="compressed") as refused:
        open_sink(FIELDS, options, FileAccess(tmp_path))
    assert refused.value.code == "CQ0602" and way in str(refused.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "codec"), [("o.csv.gz", "gzip"), ("o.csv", "zstd")])
def test_packed_file_is_written_whole_or_not_at_all(tmp_path: Path, name: str, codec: str) -> None:
    for rows in (0, 20):
        sink = open_sink(FIELDS, {"path": name, "compression": codec}, FileAccess(tmp_path))
        for _ in range(rows):
            sink.write(ROWS)
        sink.close()
        with pa.CompressedInputStream(str(tmp_path / name), codec) as file:
            text = file.read()
        assert text.count(b"\n") == 1 + rows * 50_000 and text.startswith(b"id\n")
    before = (tmp_path / name).read_bytes()
    sink = open_sink(FIELDS, {"path": name, "compression": codec}, FileAccess(tmp_path))
    sink.write(ROWS)
    sink.abort()
    assert (tmp_path / name).read_bytes() == before and os.listdir(tmp_path) == [name]


def test_packed_file_of_rows_without_end_can_be_read_while_it_grows(tmp_path: Path) -> None:
    sink = open_sink(FIELDS, {"path": "o.jsonl.gz"}, FileAccess(tmp_path), endless=True)
    for count in (1, 2):
        sink.write(ROWS.slice(0, 3))
        assert gzip.decompress((tmp_path / "o.jsonl.gz").read_bytes()) == b'{"id": 0}\n{"id": 1}\n{"id": 2}\n' * count
    sink.abort()
    assert gzip.decompress((tmp_path / "o.jsonl.gz").read_bytes()).count(b"\n") == 6
