"""The command as a process: signals, pipes, full disks, closed streams, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import without_progress

pytestmark = pytest.mark.usefixtures("usual_signals")


@pytest.mark.parametrize("options", ["--engine reference", "--engine native", "-f arrow"])
def test_full_disk_is_an_error_and_no_traceback(options: str) -> None:
    Path("many.csv").write_text("id\n" + "1\n" * 100_000)
    command = f"{sys.executable} -m cq run {options} -c 'SELECT id FROM b' b=many.csv > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, check=False)
    assert done.returncode == 2
    said = without_progress(done.stderr.decode())
    assert said.startswith('error[CQ0605]: cannot write "<stdout>": no space left on device'), said
    assert b"Traceback" not in done.stderr and b"Exception" not in done.stderr


@pytest.mark.parametrize(
    "command", ["check --format json q.cq", "explain q.cq", "fmt - < q.cq", "gen sentences rows=10", "limits"]
)
def test_full_disk_is_said_by_every_command_that_prints(command: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cq {command} > /dev/full"], capture_output=True, timeout=120, check=False
    )
    told = b'error[CQ0605]: cannot write "<stdout>": no space left on device\n'
    assert (done.returncode, done.stderr) == (2, told)


def test_process_ends_with_its_exit_functions_though_a_thread_still_waits() -> None:
    program = (
        "import atexit, threading; from cq.cli import main\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "atexit.register(print, 'closed')\n"
        "main(['check', 'none.cq'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, b"closed\n") and b"none.cq" in done.stderr


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("2", "2")])
def test_numpy_starts_no_threads_for_matrices_unless_the_user_says_so(given: str | None, used: str) -> None:
    program = (
        "import atexit, os; from cq.cli import main\n"
        "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS']))\n"
        "main(['check', 'none.cq'])"
    )
    surroundings = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if given is not None:
        surroundings["OPENBLAS_NUM_THREADS"] = given
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=surroundings, check=False)
    assert done.stdout.decode().split() == [used]


@pytest.mark.parametrize(("closed", "out"), [("<&-", b"id\n1\n2\n3\n"), (">&-", b""), ("2>&-", b"id\n1\n2\n3\n")])
def test_closed_standard_stream_is_as_if_it_went_nowhere(closed: str, out: bytes) -> None:
    command = f"{sys.executable} -m cq run --engine reference -c 'SELECT id FROM b' b=bids.csv {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, out) and b"Traceback" not in done.stderr


def test_working_directory_that_was_removed_is_said() -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m cq check -c 'SELECT 1 AS a'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and done.stderr.startswith(b"error[CQ0601]: the working directory has been removed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_drains_and_leaves_with_130_even_while_input_is_awaited(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "cq", "run", "-c", "CREATE STREAM b (id BIGINT); SELECT id FROM b", "b=-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write(b"id\n1\n2\n")  # little: what a pipe cannot hold would wait here until rows are read
        running.stdin.flush()
        assert [running.stdout.readline() for _ in range(3)] == [b"id\n", b"1\n", b"2\n"]
        running.send_signal(number)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130 and b"interrupted" in said


@pytest.mark.parametrize("threads", ["0", "2"])
def test_first_signal_ends_a_run_inside_a_row_that_tests_many_pairs(threads: str) -> None:
    Path("many.csv").write_text("v\n" + "".join(f"{v}\n" for v in range(400_000)))  # for minutes
    query = "CREATE STREAM a WITH (path = 'many.csv'); SELECT COUNT(*) AS n FROM a JOIN a AS b ON a.v + b.v < 0"
    command = [sys.executable, "-m", "cq", "run", "-j", threads, query, "-o", "out.csv"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        while b"rows/s" not in (line := running.stderr.readline()):  # the first note on its progress
            assert line, "it has ended"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130 and b"computed 0 rows" in said and said.endswith(b" interrupted\n"), said
    assert sorted(os.listdir()) == ["bids.csv", "many.csv", "q.cq"]


@pytest.mark.parametrize("ignored", ["INT", "HUP"])
def test_signal_that_our_parent_ignores_stays_ignored(ignored: str) -> None:
    run = f"{sys.executable} -m cq run -c 'CREATE STREAM b (id BIGINT); SELECT id FROM b' b=-"
    command = ["bash", "-c", f"trap '' {ignored}; exec {run}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write(b"id\n1\n")
        running.stdin.flush()
        assert [running.stdout.readline() for _ in range(2)] == [b"id\n", b"1\n"]
        running.send_signal(signal.Signals[f"SIG{ignored}"])
        rows, said = running.communicate(b"2\n", timeout=60)
        assert (running.returncode, rows) == (0, b"2\n") and b"interrupted" not in said


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signal_that_ends_a_command_lets_it_clean_up(name: str) -> None:
    program = (
        "import os, signal, cq.cli\n"
        "from cq.connectors.sinks.targets import FileTarget\n"
        f"FileTarget.write = lambda *_: os.kill(os.getpid(), signal.{name})\n"
        "cq.cli.main(['gen', 'bids', 'rows=10', '-o', 'out.csv'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert done.returncode == 130 and sorted(os.listdir()) == ["bids.csv", "q.cq"], done.stderr


def test_signal_while_nobody_reads_the_output_loses_no_row_that_was_read() -> None:
    command = [sys.executable, "-m", "cq", "run", "-c", "CREATE STREAM b (id BIGINT); SELECT id FROM b", "b=-"]
    with (
        subprocess.Popen(["sh", "-c", "echo id; exec yes 1"], stdout=subprocess.PIPE) as endless,
        subprocess.Popen(command, stdin=endless.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running,
    ):
        assert endless.stdout is not None and running.stdout is not None and running.stderr is not None
        endless.stdout.close()
        assert [running.stdout.readline() for _ in range(2)] == [b"id\n", b"1\n"]
        running.send_signal(signal.SIGINT)
        rows = 1 + running.stdout.read().count(b"1")
        said = running.stderr.read()
        assert running.wait(60) == 130 and f"read {rows:,} rows of b · wrote {rows:,} rows · " in said.decode(), said


def test_rows_of_a_slow_pipe_leave_as_they_come() -> None:
    command = [sys.executable, "-m", "cq", "run", "-q", "-c", "CREATE STREAM b (id BIGINT); SELECT id FROM b", "b=-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        for row in (b"1\n", b"2\n"):
            running.stdin.write(b"id\n" + row if row == b"1\n" else row)
            running.stdin.flush()
            if row == b"1\n":
                assert running.stdout.readline() == b"id\n"
            assert running.stdout.readline() == row
        running.stdin.close()
        assert running.wait(60) == 0


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    text = "import sys; sys.modules['pyarrow'] = None; from cq.cli import main; main(['run', 'SELECT 1 AS x'])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "error[CQ0604]: cq needs the package pyarrow, which is not installed" in done.stderr
    assert f"{sys.executable} -m pip install pyarrow" in done.stderr
