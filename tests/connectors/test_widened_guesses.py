"""A later row contradicts the guess about a column of a file: the file is read again, with a type that holds both."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest
from command_line import cq

from cq import sql
from cq.connectors.csv.blocks import BLOCK_BYTES
from cq.errors import DataError

WIDE = "w" * 1000  # a column of these fills the block that guesses look at
BEYOND = BLOCK_BYTES // len(WIDE) + 1  # with so many rows


def csv_file(directory: Path, first: str, *late: str) -> str:
    """A file whose column v looks like `first`, until it holds the others."""
    path = directory / "t.csv"
    path.write_text("id,v,w\n" + f"1,{first},{WIDE}\n" * BEYOND + "".join(f"2,{value},\n" for value in late))
    return str(path)


def json_file(directory: Path, first: str, *late: str) -> str:
    path = directory / "t.jsonl"
    rows = [f'{{"id": 1, "v": {first}, "w": "{WIDE}"}}\n'] * BEYOND + [f'{{"id": 2, "v": {value}}}\n' for value in late]
    path.write_text("".join(rows))
    return str(path)


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize(
    ("first", "late", "values", "types"),
    [
        ("7", ["3.5"], [7.0, 3.5], ["DOUBLE"]),
        ("7", ["x"], ["7", "x"], ["VARCHAR"]),
        ("7", ["3.5", "8", "x", "2.25"], ["7", "3.5", "8", "x", "2.25"], ["DOUBLE", "VARCHAR"]),
        ("7", ["00501", "3.5"], ["7", "00501", "3.5"], ["VARCHAR"]),
        ("7", ["3.5", "00501"], ["7", "3.5", "00501"], ["DOUBLE", "VARCHAR"]),
        ("7", ["9223372036854775808"], ["7", "9223372036854775808"], ["VARCHAR"]),
        ("1.5", ["007"], ["1.5", "007"], ["VARCHAR"]),
        ("true", ["maybe"], ["true", "maybe"], ["VARCHAR"]),
        ("2024-01-01", ["2024-01-02 10:00:00"], ["2024-01-01 00:00:00", "2024-01-02 10:00:00"], ["TIMESTAMP"]),
    ],
)
def test_column_gets_the_narrowest_type_that_holds_every_row(
    tmp_path: Path, engine: str, first: str, late: list[str], values: list[object], types: list[str]
) -> None:
    path = csv_file(tmp_path, first, *late)
    result = sql("SELECT v FROM t", t=path).run(engine=engine, threads=2)
    read = [row["v"] if isinstance(values[0], float) else str(row["v"]) for row in result.to_pylist()]
    assert read == [values[0]] * BEYOND + values[1:]
    notes = [f"t is read again: v is {type_}, because {path}:" for type_ in types]
    assert [note[: len(start)] for note, start in zip(result.stats.notes, notes, strict=True)] == notes


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_json_lines_are_read_again_too(tmp_path: Path, engine: str) -> None:
    path = json_file(tmp_path, "7", "3.5", '"x"', '{"a": 1}')
    result = sql("SELECT v FROM t WHERE id = 2", t=path).run(engine=engine, threads=2)
    assert [row["v"] for row in result.to_pylist()] == ["3.5", "x", '{"a": 1}']
    assert result.stats.notes[0] == f"t is read again: v is DOUBLE, because {path}:{BEYOND + 1} holds '3.5'"


def test_command_says_that_it_reads_again_and_writes_what_the_whole_file_means(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv_file(tmp_path, "7", "3.5")
    said = f"note: t is read again: v is DOUBLE, because t.csv:{BEYOND + 2} holds '3.5'\n"
    for query, out in (("SELECT MIN(v) AS m FROM 't.csv'", "m\n3.5\n"), ("SELECT id, v FROM 't.csv' ORDER BY v", None)):
        found = cq(capfd, "run", "--engine", "reference", query)
        assert found[0] == 0 and said in found[2] and found[2].count("note:") == 1
        assert out is None or found[1] == out
    assert cq(capfd, "run", "--engine", "reference", "-q", "SELECT id, v FROM 't.csv'", "-o", "o.csv") == (0, "", "")
    assert (tmp_path / "o.csv").read_text().endswith("1,7.0\n2,3.5\n")
    assert cq(capfd, "diff", "SELECT SUM(v) AS s FROM 't.csv'", "--against", "reference")[0] == 0


def test_rows_that_were_written_to_a_pipe_make_it_an_error_with_the_declaration(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv_file(tmp_path, "7", "3.5")
    code, out, err = cq(capfd, "run", "--engine", "reference", "SELECT v FROM 't.csv'")
    assert code == 1 and out.startswith("v\n7\n") and "read again" not in err
    declared = "CREATE STREAM t (v DOUBLE) WITH (path = 't.csv')"
    assert f"declare it: {declared}; then read FROM t\n" in err
    assert cq(capfd, "run", "--engine", "reference", "-q", f"{declared}; SELECT v FROM t")[0] == 0


def test_column_with_text_below_is_summed_as_its_error_says(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv_file(tmp_path, "7", "n/a")
    run = ("run", "--engine", "reference", "SELECT SUM(v) AS total FROM 't.csv'")
    code, _, err = cq(capfd, *run)
    said = re.search(r"declare it: (.*); then read FROM t, and write (.*) where v is used\n", err)
    assert code == 1 and said is not None, err
    total = f"total\n{7 * BEYOND}\n"
    assert cq(capfd, *run[:3], f"{said[1]}; SELECT SUM({said[2]}) AS total FROM t")[:2] == (0, total)
    assert cq(capfd, *run, *re.search(r"or cq run (.*)\n", err)[1].split())[:2] == (0, total)  # type: ignore[index]


def test_pipe_cannot_be_read_again(tmp_path: Path) -> None:
    content = Path(csv_file(tmp_path, "7", "3.5")).read_text()
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(content,))
    writer.start()
    with pytest.raises(DataError, match=r"cannot read '3\.5' as BIGINT in column v"):
        sql("SELECT MIN(v) AS m FROM t", t=str(pipe)).run(engine="reference")
    writer.join()


def test_query_that_needs_the_guess_gets_the_error_of_the_row(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "7", "x")
    with pytest.raises(DataError, match="cannot read 'x' as BIGINT in column v"):
        sql("SELECT SUM(v) AS s FROM t", t=path).run(engine="reference")


def test_rows_that_are_skipped_by_demand_widen_nothing(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "7", "3.5")
    text = f"CREATE STREAM t WITH (path = '{path}', on_error = 'skip'); SELECT COUNT(v) AS n FROM t"
    result = sql(text).run(engine="reference")
    assert result.to_pylist() == [{"n": BEYOND}] and result.stats.bad_rows == {"t": 1} and not result.stats.notes
