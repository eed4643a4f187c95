"""What files hold when an input nobody knows the end of is left: a followed file, a pipe, a generator."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.usefixtures("usual_signals")

QUERY = "CREATE STREAM b (id BIGINT); SELECT id FROM b"


def arrow_rows(path: str) -> list[int]:
    with pa.ipc.open_file(path) as file:
        return file.read_all()["id"].to_pylist()  # type: ignore[no-any-return]


READERS: dict[str, Callable[[str], list[int]]] = {
    "o.csv": lambda path: [int(line) for line in Path(path).read_text().splitlines()[1:]],
    "o.jsonl": lambda path: [int(line.split()[1].rstrip("}")) for line in Path(path).read_text().splitlines()],
    "o.parquet": lambda path: pq.read_table(path)["id"].to_pylist(),
    "o.arrow": arrow_rows,
}


def started(*arguments: str, query: str = QUERY, source: str = "b=-") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cq", "run", "-c", query, *([source] if source else []), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def feed(running: subprocess.Popen[bytes], text: bytes) -> None:
    assert running.stdin is not None
    running.stdin.write(text)
    running.stdin.flush()


def wait_for(there: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl"])
def test_text_file_of_a_pipe_grows_while_rows_come_and_stays(name: str) -> None:
    Path(name).write_text("old\n")
    with started("-o", name) as running:
        feed(running, b"id\n1\n2\n")
        wait_for(lambda: "2" in Path(name).read_text())
        assert READERS[name](name) == [1, 2]
        feed(running, b"3\n")
        wait_for(lambda: READERS[name](name) == [1, 2, 3])
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130 and b"wrote 3 rows" in said, said
    assert READERS[name](name) == [1, 2, 3] and not list(Path().glob(".*.part"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["o.parquet", "o.arrow"])
def test_file_with_a_footer_is_completed_when_a_pipe_is_left(name: str, number: signal.Signals) -> None:
    with started("-o", f"result={name}", "-o", "result_2=t.csv", query=QUERY + "; SELECT id FROM b") as running:
        feed(running, b"id\n1\n2\n")
        wait_for(lambda: Path("t.csv").exists() and READERS["o.csv"]("t.csv") == [1, 2])
        assert not Path(name).exists()
        running.send_signal(number)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130, said
    assert READERS[name](name) == [1, 2] and not list(Path().glob(".*.part"))


@pytest.mark.parametrize("name", READERS)
def test_bad_row_of_a_pipe_leaves_the_rows_before_it(name: str) -> None:
    with started("-o", name) as running:
        _, said = running.communicate(b"id\n1\n2\nx\n", timeout=60)
        assert running.returncode == 1 and b"CQ0702" in said and b"Traceback" not in said, said
    assert READERS[name](name) == [1, 2] and not list(Path().glob(".*.part"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_followed_file_is_left_with_every_row_in_a_whole_sink(number: signal.Signals) -> None:
    query = "CREATE STREAM b (id BIGINT) WITH (path = 'in.csv', follow = true); SELECT id FROM b"
    outputs = ("-o", "result=o.csv", "-o", "result_2=o.parquet")
    with started(*outputs, query=query + "; SELECT id FROM b", source="") as running:
        Path("in.csv").write_text("id\n1\n2")
        wait_for(lambda: Path("o.csv").exists() and READERS["o.csv"]("o.csv") == [1])
        os.replace("in.csv", "in.1")
        Path("in.csv").write_text("id\n3\n")
        wait_for(lambda: READERS["o.csv"]("o.csv") == [1, 2, 3])
        running.send_signal(number)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130 and b"note: in.csv has been replaced" in said, said
    assert READERS["o.parquet"]("o.parquet") == [1, 2, 3] and not list(Path().glob(".*.part"))


def test_late_rows_are_counted_when_an_endless_run_is_left() -> None:
    query = (
        "CREATE STREAM b (ts TIMESTAMP, WATERMARK FOR ts); SELECT window_end, COUNT(*) AS n "
        "FROM TUMBLE(b, ts, INTERVAL '1' MINUTE) GROUP BY window_start, window_end"
    )
    with started(query=query) as running:
        assert running.stdout is not None
        times = ("10:00:00", "10:05:00", "10:01:00", "10:00:30", "10:09:00")
        feed(running, b"ts\n" + b"".join(f"2024-01-01 {time}\n".encode() for time in times))
        rows = [b"2024-01-01 10:01:00,1\n", b"2024-01-01 10:06:00,1\n"]
        assert [running.stdout.readline() for _ in range(3)] == [b"window_end,n\n", *rows]
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130 and b"2 late" in said, said


def test_reader_that_goes_away_leaves_the_other_output_with_its_rows() -> None:
    query = QUERY + "; CREATE SINK kept WITH (path = 'o.csv'); INSERT INTO kept SELECT id FROM b"
    with started(query=query) as running:
        assert running.stdout is not None
        feed(running, b"id\n1\n")
        wait_for(lambda: Path("o.csv").exists())
        running.stdout.close()
        feed(running, b"2\n")
        assert running.wait(60) == 0
    assert READERS["o.csv"]("o.csv")[0] == 1


@pytest.mark.parametrize("name", READERS)
def test_limit_ends_an_endless_generator_with_a_whole_file(name: str) -> None:
    query = "CREATE STREAM b WITH (connector = 'generator', workload = 'bids'); SELECT auction AS id FROM b"
    with started("-o", name, "--limit", "5", query=query, source="") as running:
        assert running.wait(60) == 0
    assert len(READERS[name](name)) == 5


@pytest.mark.parametrize("failing", ["id\nx\n", ""])
def test_pipe_without_a_good_row_leaves_the_file_as_it_was(failing: str) -> None:
    Path("o.csv").write_text("old\n")
    with started("-o", "o.csv") as running:
        _, said = running.communicate(failing.encode(), timeout=60)
        assert running.returncode == 1, said
    assert Path("o.csv").read_text() == "old\n" and not list(Path().glob(".*.part"))


def test_interrupted_run_over_a_file_leaves_no_part_of_its_result() -> None:
    Path("o.csv").write_text("old\n")
    os.mkfifo("hold")
    Path("many.csv").write_text("id\n" + "1\n" * 200_000)
    program = (
        "import os, signal, cq.cli\n"
        "from cq.connectors.sinks.writers import Csv\n"
        "write = Csv.write\n"
        "Csv.write = lambda *a: (write(*a), os.kill(os.getpid(), signal.SIGINT))\n"
        f"cq.cli.main(['run', '-c', '{QUERY}', 'b=many.csv', '-o', 'o.csv'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    assert done.returncode == 130, done.stderr
    assert Path("o.csv").read_text() == "old\n" and not list(Path().glob(".*.part"))


def test_row_that_found_no_room_is_no_part_of_a_growing_file(tmp_path: Path) -> None:
    program = (
        "import resource, signal, cq.cli\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4100, 4100))\n"
        f"cq.cli.main(['run', '--engine', 'reference', '-c', '{QUERY}', 'b=-', '-o', 'o.csv'])"
    )
    rows = b"id\n" + b"12345\n" * 100_000
    done = subprocess.run([sys.executable, "-c", program], input=rows, capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and b"CQ0605" in done.stderr and b"Traceback" not in done.stderr, done.stderr
    assert not list(tmp_path.glob(".*.part"))
    assert not Path("o.csv").exists() or set(READERS["o.csv"]("o.csv")) <= {12345}


def test_row_of_a_pipe_without_a_match_in_a_file_leaves_while_the_pipe_goes_on() -> None:
    Path("names.csv").write_text("id,name\n1,ann\n")
    for query, rows in (
        ("SELECT b.id, name FROM b LEFT JOIN 'names.csv' AS n ON b.id = n.id", "2,\n1,ann\n"),
        ("SELECT id FROM b WHERE NOT EXISTS (SELECT 1 FROM 'names.csv' AS n WHERE n.id = b.id)", "2\n"),
        ("SELECT id FROM b LEFT JOIN 'names.csv' USING (id) WHERE id NOT IN (SELECT id FROM 'names.csv')", "2\n"),
    ):
        with started("-o", "o.csv", query=f"CREATE STREAM b (id BIGINT); {query}") as running:
            feed(running, b"id\n2\n1\n")
            wait_for(lambda: Path("o.csv").exists() and Path("o.csv").read_text().partition("\n")[2] == rows)  # noqa: B023
            running.communicate(timeout=60)
            assert running.returncode == 0
        Path("o.csv").unlink()
