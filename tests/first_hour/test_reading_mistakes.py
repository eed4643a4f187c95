"""Errors of reading files, as they are shown (tests/golden/reading), and every way out that they name, taken."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import cq, without_progress

from cq.records import dataclass

ALL = ("run", "SELECT * FROM 'x.csv'")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A command that fails over these files. ways: each way out that the error names, by its beginning, and what it is
    to take it: another command, or one of the system first. Those in `notes` are no commands."""

    files: dict[str, bytes]
    command: tuple[str, ...]
    ways: dict[str, tuple[str, ...]]
    first: str = ""
    notes: tuple[str, ...] = ()


SKIPPED = (*ALL, "-w", "on_error=skip")
MISTAKES = {
    "quote_never_closed": Mistake(
        {"x.csv": b'a,b\n1,"x\n2,y\n3,z\n'},
        ALL,
        {"to read quotes as ordinary characters": (*ALL, "-w", "quote="), "or leave such rows out": SKIPPED},
    ),
    "text_behind_a_quote": Mistake(
        {"x.csv": b'a,b\n1,"x"y\n2,z\n'},
        ALL,
        {"to read quotes as ordinary characters": (*ALL, "-w", "quote="), "or leave such rows out": SKIPPED},
    ),
    "row_with_too_few_fields": Mistake({"x.csv": b"a,b\n1,2\n3\n"}, ALL, {"leave such rows out": SKIPPED}),
    "text_not_utf8": Mistake(
        {"x.csv": b"a,b\n1,caf\xe9\n2,y\n"},
        ALL,
        {
            "convert the text to UTF-8 first": ("run", "SELECT * FROM 'utf8.csv'"),
            "or leave such rows out": SKIPPED,
        },
        first="iconv -f LATIN1 -t UTF-8 x.csv > utf8.csv",
    ),
    "column_name_not_utf8": Mistake(
        {"x.csv": b"caf\xe9,b\n1,2\n"},
        ALL,
        {"convert it first": ("run", "SELECT * FROM 'utf8.csv'")},
        first="iconv -f LATIN1 -t UTF-8 'x.csv' > utf8.csv",
    ),
    "two_outputs_as_csv": Mistake(
        {"x.csv": b"a,b\n1,2\n"},
        ("run", "SELECT a FROM 'x.csv'; SELECT b FROM 'x.csv'"),
        {
            "give each a file: -o result=PATH": (
                *("run", "SELECT a FROM 'x.csv'; SELECT b FROM 'x.csv'", "-o", "result=out.csv"),
            ),
            "or print them as tables": ("run", "SELECT a FROM 'x.csv'; SELECT b FROM 'x.csv'", "-f", "table"),
        },
    ),
    "file_without_a_column": Mistake(
        {"1.csv": b"a,b\n1,x\n", "2.csv": b"a\n2\n"},
        ("run", "SELECT * FROM '[12].csv'"),
        {"to read NULL there": ("run", "SELECT * FROM '[12].csv'", "-w", "union_by_name=true")},
        notes=("its columns: ",),
    ),
    "file_without_a_column_in_schema": Mistake(
        {"1.csv": b"a,b\n1,x\n", "2.csv": b"a\n2\n"},
        ("schema", "[12].csv"),
        {"to read NULL there": ("schema", "[12].csv", "-w", "union_by_name=true")},
        notes=("its columns: ",),
    ),
    "directory": Mistake(
        {"days/1.csv": b"a\n1\n"},
        ("run", "SELECT * FROM 'days'"),
        {"name its files: days/*.csv": ("run", "SELECT * FROM 'days/*.csv'")},
    ),
    "other_delimiter": Mistake(
        {"x.csv": b"a;b\n1;x\n"},
        ALL,
        {"write delimiter = ';' in WITH": (*ALL, "-w", "delimiter=;")},
        notes=("declare the column if that is its name",),
    ),
    "json_in_csv": Mistake(
        {"x.csv": b'{"a":1}\n'}, ALL, {"write format = 'json' in WITH": (*ALL, "-w", "format=json")}
    ),
    "array_of_json": Mistake(
        {"x.json": b'[{"a":1},{"a":2}]'},
        ("run", "SELECT * FROM 'x.json'"),
        {},
        notes=("put each object on a line: jq -c '.[]' FILE > FILE.jsonl",),
    ),
    "object_on_several_lines": Mistake(
        {"x.json": b'{\n "a": 1,\n "b": [\n  2\n ]\n}\n{\n "a": 3,\n "b": []\n}\n'},
        ("run", "SELECT * FROM 'x.json'"),
        {"put each object on one line": ("run", "SELECT * FROM 'x.jsonl'")},
        first="jq -c . x.json > x.jsonl",
    ),
    "object_on_several_lines_of_declared_columns": Mistake(
        {"x.json": b'{\n "a": 1\n}\n'},
        ("run", "CREATE STREAM x (a BIGINT) WITH (path = 'x.json'); FROM x"),
        {
            "put each object on one line": (*("run", "CREATE STREAM x (a BIGINT) WITH (path = 'x.jsonl'); FROM x"),),
            "or leave such rows out": (
                *("run", "CREATE STREAM x (a BIGINT) WITH (path = 'x.json'); FROM x", "-w", "on_error=skip"),
            ),
        },
        first="jq -c . x.json > x.jsonl",
    ),
    "csv_as_json": Mistake(
        {"x.csv": b"a,b\n1,2\n"},
        (*ALL, "-w", "format=json"),
        {"if it is not JSON, leave format = 'json' out": ALL},
    ),
    "line_that_is_no_object": Mistake(
        {"x.jsonl": b'{"a":1}\nnot json\n'},
        ("run", "SELECT * FROM 'x.jsonl'"),
        {"leave such rows out": ("run", "SELECT * FROM 'x.jsonl'", "-w", "on_error=skip")},
    ),
    "ending_without_a_format": Mistake(
        {"x.log": b"a\n1\n"},
        ("run", "SELECT * FROM 'x.log'"),
        {
            "set the option format = 'csv'": ("run", "CREATE STREAM x WITH (path = 'x.log', format = 'csv'); FROM x"),
            "pass -w format=csv to cq run": ("run", "SELECT * FROM 'x.log'", "-w", "format=csv"),
        },
    ),
    "ending_misspelt": Mistake({"x.csv": b"a\n1\n"}, ("run", "SELECT * FROM 'x.cvs'"), {'did you mean "x.csv"?': ALL}),
    "packed_without_its_ending": Mistake(
        {"x.csv": gzip.compress(b"a\n1\n", mtime=0)},
        ALL,
        {
            "write compression = 'gzip' in WITH": (*ALL, "-w", "compression=gzip"),
            "or give the file its usual extension": ("run", "SELECT * FROM 'x.csv.gz'"),
        },
        first="cp x.csv x.csv.gz",
    ),
    "event_time_is_null": Mistake(
        {"x.csv": b"ts,v\n2024-01-01 00:00:00,1\n,2\n"},
        ("run", "SELECT COUNT(*) AS n FROM TUMBLE('x.csv', ts, INTERVAL '1' MINUTE) GROUP BY window_start"),
        {
            "leave such rows out": (
                *("run", "SELECT COUNT(*) AS n FROM TUMBLE('x.csv', ts, INTERVAL '1' MINUTE) GROUP BY window_start"),
                *("-w", "on_error=skip"),
            )
        },
    ),
    "output_without_a_format": Mistake(
        {"x.csv": b"a\n1\n"},
        (*ALL, "-o", "out.xyz"),
        {"say which: -f csv": (*ALL, "-o", "out.xyz", "-f", "csv")},
    ),
    "empty_file": Mistake(
        {"x.csv": b""},
        ALL,
        {"declare the columns": ("run", "CREATE STREAM x (a BIGINT) WITH (path = 'x.csv', header = 'false'); FROM x")},
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_shown_and_every_way_out_of_it_works(
    capfd: pytest.CaptureFixture[str], golden: Callable[[str, str], None], name: str, place: Path
) -> None:
    mistake = MISTAKES[name]
    for file, content in mistake.files.items():
        (place / file).parent.mkdir(exist_ok=True)
        (place / file).write_bytes(content)
    code, _, err = cq(capfd, *_on_reference(mistake.command))
    told = "".join(line for line in err.splitlines(True) if not line.startswith(("read ", "warning[")))
    golden(f"reading/{name}.txt", f"$ cq {' '.join(mistake.command)}\n\n{told}")
    said = [line.partition("= help: ")[2] for line in told.splitlines() if "= help: " in line]
    known = (*mistake.ways, *mistake.notes)
    assert code in {1, 2} and all(way.startswith(known) for way in said), said
    assert all(any(way.startswith(start) for way in said) for start in known), said
    if mistake.first:
        subprocess.run(mistake.first, shell=True, check=True)
    for command in mistake.ways.values():
        code, _, err = cq(capfd, *_on_reference(command))
        assert code == 0 and "error[" not in err, (command, err)


def _on_reference(command: tuple[str, ...]) -> tuple[str, ...]:
    return (*command, "--engine", "reference") if command[0] == "run" else command


def test_every_picture_is_that_of_a_mistake(request: pytest.FixtureRequest) -> None:
    pictures = Path(request.config.rootpath, "tests", "golden", "reading").glob("*.txt")
    assert {p.stem for p in pictures} == set(MISTAKES)


def test_name_of_a_file_that_is_not_utf8_is_told_with_the_way_to_read_it(place: Path) -> None:
    (place / os.fsdecode(b"caf\xe9.csv")).write_text("a\n1\n")
    schema = f"{shlex.quote(sys.executable)} -m cq schema"
    command = f"{schema} $'caf\\xe9.csv'; ln -s $'caf\\xe9.csv' cafe.csv; {schema} cafe.csv"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=120)
    said = without_progress(done.stderr.decode())
    assert "CQ0601" in said and "create a link with another name: ln -s" in said
    assert done.returncode == 0 and done.stdout.startswith(b"CREATE STREAM cafe (")
