"""`follow = true`: a file is read as `tail -F` reads it. Time is a script: each wait does the next step of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cq
from cq.connectors.access import FileAccess
from cq.connectors.followed import LONGEST_WAIT_S, Followed
from cq.connectors.protocol import Piece
from cq.connectors.rules import Rules
from cq.errors import CqError, SourceText
from cq.grammar.parser import parse
from cq.planner.binding.binder import bind

Step = Callable[[], object]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def followed(path: str, steps: list[Step], waits: list[float] | None = None, **options: str) -> Iterator[Piece]:
    """The pieces of a file while the steps are done, one each time nothing is there; then following is over."""
    text = f"CREATE STREAM s (id BIGINT) WITH (path = '{path}'); SELECT * FROM s"
    stream = bind(parse(SourceText("q", text))).sources[0]
    left = iter(steps)

    def pause(seconds: float) -> bool:
        if waits is not None:
            waits.append(seconds)
        step = next(left, None)
        if step is not None:
            step()
        return step is None

    return Followed(path, {"follow": "true", **options}, Rules.of(stream), FileAccess(Path.cwd()), pause=pause).pieces()


def rows(pieces: Iterator[Piece]) -> list[object]:
    """Rows as `place:value`, and notes, in order."""
    found: list[object] = []
    for piece in pieces:
        found += [piece.note] if piece.note else []
        found += [f"{piece.place.of(k)}={v}" for k, v in enumerate(piece.batch.column(0).to_pylist())]
        found += [f"{piece.place.file}:{bad.line} is bad" for bad in piece.bad]
    return found


def append(text: str, path: str = "a.csv") -> Step:
    def step() -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)

    return step


def rotated(text: str, path: str = "a.csv") -> Step:
    """Another file takes the name; the old one stays under another."""

    def step() -> None:
        os.replace(path, path + ".1")
        Path(path).write_text(text)

    return step


REPLACED = "a.csv has been replaced: the new file is read from its beginning"
TRUNCATED = "a.csv has been truncated: it is read from its beginning"


def test_line_is_read_when_its_end_is_there() -> None:
    Path("a.csv").write_text("id\n1\n2")
    steps = [append(""), append("3\n4\n"), append("5"), append("6"), append("\n")]
    assert rows(followed("a.csv", steps)) == ["a.csv:2=1", "a.csv:3=23", "a.csv:4=4", "a.csv:5=56"]


def test_unfinished_last_line_is_no_row_when_following_is_over() -> None:
    Path("a.csv").write_text("id\n1\n2")
    assert rows(followed("a.csv", [])) == ["a.csv:2=1"]


def test_file_need_not_be_there_yet_nor_have_a_whole_header() -> None:
    steps = [append(""), append("i"), append("d\n7"), append("\n")]
    found = rows(followed("a.csv", steps))
    assert found == ["a.csv is not there yet: waiting for it", "a.csv:2=7"]


def test_old_file_is_read_to_its_end_before_the_one_that_takes_its_name() -> None:
    Path("a.csv").write_text("id\n1\n")
    steps = [rotated(""), append("2\n3", "a.csv.1"), append("id\n4\n")]
    assert rows(followed("a.csv", steps)) == ["a.csv:2=1", "a.csv:3=2", "a.csv:4=3", REPLACED, "a.csv#2:2=4"]


def test_file_that_is_gone_for_a_while_is_waited_for() -> None:
    Path("a.csv").write_text("id\n1\n")
    steps = [lambda: os.rename("a.csv", "b.csv"), append("2\n", "b.csv"), append("id\n3\n")]
    assert rows(followed("a.csv", steps)) == ["a.csv:2=1", "a.csv:3=2", REPLACED, "a.csv#2:2=3"]


def test_new_file_may_have_its_columns_in_another_order() -> None:
    Path("a.csv").write_text("id,x\n1,a\n")
    assert rows(followed("a.csv", [rotated("x,id\nb,2\n")])) == ["a.csv:2=1", REPLACED, "a.csv#2:2=2"]


def test_truncated_file_is_read_anew_and_loses_only_its_unfinished_line() -> None:
    Path("a.csv").write_text("id\n1\n23")
    steps = [lambda: os.truncate("a.csv", 0), append("id\n4\n")]
    lost = "; 2 bytes of an unfinished line are lost"
    assert rows(followed("a.csv", steps)) == ["a.csv:2=1", TRUNCATED + lost, "a.csv#2:2=4"]


def test_json_lines_are_followed_and_bad_ones_placed() -> None:
    Path("a.csv").write_text('{"id": 1}\n{"id"')
    steps = [append(': 2}\nno\n{"id": 3}\n'), rotated('{"id": 4}\n')]
    found = rows(followed("a.csv", steps, format="json"))
    assert found == ["a.csv:1=1", "a.csv:2=2", "a.csv:4=3", "a.csv:3 is bad", REPLACED, "a.csv#2:1=4"]


def test_line_end_in_quotes_is_none() -> None:
    Path("a.csv").write_text('id,x\n1,"a\n')
    assert rows(followed("a.csv", [append("1,"), append('b"\n2,c\n')])) == ["a.csv:2=1", "a.csv:4=2"]


def test_waits_grow_to_a_bound_and_begin_anew_after_rows() -> None:
    Path("a.csv").write_text("id\n")
    waits: list[float] = []
    rows(followed("a.csv", [append("")] * 12 + [append("1\n"), append("")], waits))
    assert waits[:12] == sorted(waits[:12]) and max(waits) == waits[11] == LONGEST_WAIT_S
    assert waits[13] < waits[14] < LONGEST_WAIT_S


@pytest.mark.parametrize(
    ("path", "options", "says"),
    [
        ("*.csv", {}, "names several files"),
        ("a.parquet", {}, "is a Parquet file"),
        ("a.csv.gz", {}, "is compressed (gzip)"),
        (".", {"format": "csv"}, "is a directory"),
    ],
)
def test_what_cannot_be_followed_is_refused(path: str, options: dict[str, str], says: str) -> None:
    with pytest.raises(CqError) as error:
        followed(path, [], **options)
    assert error.value.code == "CQ0602" and says in str(error.value)


STREAM = "CREATE STREAM s (id BIGINT) WITH (path = 'a.csv', follow = true);"


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_limit_ends_a_run_over_a_followed_file(engine: str) -> None:
    Path("a.csv").write_text("id\n1\n2\n3\n")
    result = cq.run(STREAM + "SELECT id FROM s", engine=engine, limit=3)
    assert [row["id"] for row in result["result"]] == [1, 2, 3]


@pytest.mark.parametrize("text", ["SELECT COUNT(*) AS n FROM s", "SELECT id FROM s ORDER BY id"])
def test_result_that_needs_the_end_is_refused(text: str) -> None:
    with pytest.raises(CqError) as error:
        cq.sql(STREAM + text).check()
    assert error.value.code == "CQ0406"


def test_engines_that_need_whole_inputs_refuse_a_followed_file() -> None:
    Path("a.csv").write_text("id\n1\n")
    for act in (lambda q: cq.run(q, engine="spark"), cq.diff):
        with pytest.raises(CqError) as error:
            act(STREAM + "SELECT id FROM s")
        assert error.value.code == "CQ0901" and "leave follow out" in str(error.value)


def test_columns_of_a_followed_file_are_inferred_from_its_whole_lines() -> None:
    Path("a.csv").write_text("id,x\n1,2\n3,not")
    query = cq.sql("CREATE STREAM s WITH (path = 'a.csv', follow = true); SELECT x + 1 AS y FROM s LIMIT 1")
    assert [row["y"] for row in query.run(engine="reference")["result"]] == [3]
    os.unlink("a.csv")
    with pytest.raises(CqError) as error:
        query.run()
    assert error.value.code == "CQ0601" and "declare the columns" in str(error.value)


def test_output_onto_a_file_that_is_waited_for_is_refused() -> None:
    text = STREAM + "CREATE SINK o WITH (path = 'a.csv'); INSERT INTO o SELECT id FROM s"
    with pytest.raises(CqError) as error:
        cq.run(text)
    assert error.value.code == "CQ0605" and not Path("a.csv").exists()
