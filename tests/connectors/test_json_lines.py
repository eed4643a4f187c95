"""JSON lines: what a row is, what a value is, what is bad and where; and that native reading says the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from connectors_fixture import Seen, read, stream

import cq
from cq.connectors.csv import blocks
from cq.connectors.inference import infer
from cq.connectors.json import source
from cq.connectors.json.names import levels_of
from cq.connectors.json.rows import MAX_DEPTH, JsonValue, NoObject, reader, values
from cq.connectors.natives import NONE, Natives
from cq.connectors.rules import Rules
from cq.errors import CqError
from cq.lang import types as T
from cq.lang.schema import Field
from cq.runtime.base.simulation import Memory
from cq.runtime.generators import twin
from cq.runtime.readers import JsonScan, csv_scan, json_scan
from cq.runtime.readers.json_lines import json_cells

NATIVE = Natives(twin, json_scan, csv_scan)
Read = Callable[..., Seen]


@pytest.fixture(params=[NONE, NATIVE], ids=["by line", "natively"])
def read_lines(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    """Reads lines as a file, by the definition and natively."""

    def run(columns: object, text: str | bytes, **options: str) -> Seen:
        (tmp_path / "t.jsonl").write_bytes(text.encode() if isinstance(text, str) else text)
        return read(stream(columns, path="t.jsonl", **options), directory=tmp_path, natives=request.param)

    return run


# ------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("type_", "written", "value"),
    [
        (T.BIGINT, "9007199254740993", 2**53 + 1),
        (T.BIGINT, "-9223372036854775808", -(2**63)),
        (T.BIGINT, '"9007199254740993"', 2**53 + 1),
        (T.DOUBLE, "0.1", 0.1),
        (T.DOUBLE, "1e-400", 0.0),
        (T.DOUBLE, '"-Infinity"', float("-inf")),
        (T.REAL, "16777217.0000001", 16777218.0),
        (T.decimal(18, 2), "1234567890123456.78", 123456789012345678),
        (T.decimal(38, 2), "-123456789012345678901234567890123456.78", -12345678901234567890123456789012345678),
        (T.BOOLEAN, "true", True),
        (T.DATE, '"2024-02-29"', 19782),
        (T.TIMESTAMP, '"1970-01-01T02:00:00.1234569+02"', 123_456),
        (T.VARCHAR, r'"\u00e9\ud83d\ude00\n\"\\\/\u0000"', 'é😀\n"\\/\0'),
        (T.VARCHAR, '""', ""),
        (T.VARCHAR, "1.50", "1.50"),
        (T.VARCHAR, "false", "false"),
        (T.VARCHAR, r'{"a": [1,  "\ud800"]}', r'{"a": [1,  "\ud800"]}'),
        (T.VARCHAR, '"\ufeffx"', "\ufeffx"),
        (T.array(T.BIGINT), "[1, null, 9007199254740993]", (1, None, 2**53 + 1)),
        (T.array(T.VARCHAR), '["a,]", "", "\\n"]', ("a,]", "", "\n")),
        (T.array(T.BIGINT), "[]", ()),
    ],
)
def test_value_of_a_field(read_lines: Read, type_: T.DataType, written: str, value: object) -> None:
    seen = read_lines(
        [Field("a", type_), Field("b", T.BIGINT)], f'{{"a": {written}, "b": 1}}\n{{"a": null}}\n{{"b": 2}}'
    )
    assert seen.rows == [(value, 1), (None, None), (None, 2)], seen.error


@pytest.mark.parametrize(
    ("type_", "written", "why"),
    [
        (T.BIGINT, "9223372036854775808", ": it is not between -9223372036854775808 and 9223372036854775807"),
        (T.BIGINT, "1.0", ""),
        (T.BIGINT, "true", ""),
        (T.BIGINT, "{}", ": it is an object"),
        (T.BIGINT, "[]", ": it is an array"),
        (T.TINYINT, "128", ": it is not between -128 and 127"),
        (T.DOUBLE, "1e400", ": it is beyond the greatest DOUBLE"),
        (T.DOUBLE, "1" * 310, ": it is beyond the greatest DOUBLE"),
        (T.REAL, "1e39", ": it is beyond the greatest REAL"),
        (T.decimal(7, 2), "1.555", ": it has more than 2 digits after the point"),
        (T.decimal(7, 2), "1e-2147483647", ""),
        (T.BOOLEAN, "1", ": write true or false"),
        (T.TIMESTAMP, "1700000000", ": write it as 2024-01-31 10:20:30.5"),
        (T.VARCHAR, r'"\ud800"', ": half of a surrogate pair is not a character"),
        (T.VARCHAR, r'"\ud800\u0041"', ": half of a surrogate pair is not a character"),
        (T.array(T.BIGINT), '["x"]', ""),
        (T.array(T.BIGINT), '"[1]"', ": it is not an array"),
    ],
)
def test_value_that_does_not_fit_is_an_error_with_its_place(
    read_lines: Read, type_: T.DataType, written: str, why: str
) -> None:
    seen = read_lines([Field("a", type_)], f'{{}}\n{{"a": {written}}}\n')
    assert seen.rows == [(None,)] and seen.error is not None
    error = seen.error.first
    assert (error.code, error.place) == ("CQ0702", "t.jsonl:2")
    assert error.message.endswith(f" as {type_} in column a{why}")


def test_field_answers_by_its_name_by_its_path_and_by_letter_case_and_the_last_one_counts(read_lines: Read) -> None:
    columns = [Field(name, T.VARCHAR) for name in ("id", "a.b", "a", "a.c.d", "é")]
    rows = [
        ('{"ID": 1, "a": {"b": 2, "c": {"d": 3}}, "é": 4}', ("1", "2", '{"b": 2, "c": {"d": 3}}', "3", "4")),
        ('{"Id": 1, "id": 2, "ID": 3, "x": [{"id": 9}]}', ("2", None, None, None, None)),
        ('{"a.b": 1, "A": {"b": 2}, "a": 5, "a.c.d": 4}', (None, "1", "5", "4", None)),
        ('{"a": {"b": 1}, "a": {"b": null, "c": []}}', (None, None, '{"b": null, "c": []}', None, None)),
        ('{"i\\u0064": 1, "\\u0061": {"\\u0062": "x"}}', ("1", "x", '{"\\u0062": "x"}', None, None)),
        ("{}", (None,) * 5),
    ]
    seen = read_lines(columns, "\n".join(line for line, _ in rows))
    assert seen.rows == [row for _, row in rows]


@pytest.mark.parametrize("written", ["5", '"x"', '""', "true", "[]", '[{"b": 1}]'])
def test_field_of_what_is_no_object_is_unreadable_and_that_of_null_is_null(read_lines: Read, written: str) -> None:
    columns = [Field("id", T.BIGINT), Field("a.c.d", T.VARCHAR)]
    rows = ['{"id": 1, "a": {"c": {"d": 3}}}', '{"id": 2, "a": null}', '{"id": 3, "a": {"c": null}}', '{"id": 4}']
    for bad in (f'{{"id": 5, "a": {written}}}', f'{{"id": 5, "a": {{"c": {written}}}}}'):
        seen = read_lines(columns, "\n".join([*rows, bad]))
        assert seen.rows == [(1, "3"), (2, None), (3, None), (4, None)] and seen.error is not None
        error = seen.error.first
        assert (error.code, error.place) == (
            "CQ0702",
            "t.jsonl:5",
        ) and "it is not an object that has fields" in error.message
        assert error.help == ("declare all of it: a VARCHAR, and write a ->> '$.c.d'",)
        assert read_lines(columns, "\n".join([bad, *rows]), on_error="skip").rows == seen.rows
        later = f'{{"id": 5, "a": {written}, "a": {{"c": {{"d": 1}}}}}}'  # of two fields the last one counts
        assert read_lines(columns, later).rows == [(5, "1")]
        assert read_lines([*columns, Field("a", T.VARCHAR)], bad).error is None  # nothing of it is lost


def test_rows_keep_their_lines_behind_blank_ones_and_line_ends_of_two_bytes(read_lines: Read) -> None:
    seen = read_lines("a bigint", b'\xef\xbb\xbf{"a": 1}\r\n\r\n \t\n{"a": 2}\r\n{ "a" :\t3 } ')
    assert (seen.rows, seen.blank) == ([(1,), (2,), (3,)], 2)
    assert seen.places == ["t.jsonl:1", "t.jsonl:4", "t.jsonl:5"]


def test_file_without_rows_has_none(read_lines: Read) -> None:
    for text in ("", "\n\n", "\ufeff"):
        assert read_lines("a bigint", text).rows == []


# ----------------------------------------------------------------------------------------------------------- bad rows

BAD = [
    ("1", "a row is an object in braces: { is missing"),
    ('{"a": 1', "the line ends before the object does"),
    ('{"a": 1} x', "text follows the object: character 10"),
    ('{"a": 1}{"a": 2}', "text follows the object: character 9"),
    ('{"a": 1,}', "a comma should not be before this: character 9"),
    ('{"a" 1}', "a colon should be here: character 6"),
    ("{'a': 1}", "a name in quotes should be here: character 2"),
    ('{"é": 01}', "a comma or } should be here: character 8"),
    ('{"a": NaN}', "a value should be here: character 7"),
    ('{"a": [1 2]}', "a comma or ] should be here: character 10"),
    ('{"x": "\t"}', "a value should be here: character 7"),
    ('{"x": "\\x"}', "a value should be here: character 7"),
    (
        '{"x": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
        "more than 1,000 objects and arrays are open: character 1,006",
    ),
]


@pytest.mark.parametrize(("line", "why"), BAD)
def test_line_that_is_no_object_is_a_bad_row(read_lines: Read, line: str, why: str) -> None:
    seen = read_lines("a bigint", f'{{"a": 5}}\n{line}\n{{"a": 6}}\n')
    assert seen.rows == [(5,)] and seen.error is not None
    cause, _, way = str(seen.error).partition("\n = help: ")
    assert cause == f"data error[CQ0710]: t.jsonl:2: the line is not a JSON object: {why}"
    ways = ["put each object on one line: jq -c . FILE > FILE.jsonl"] if "ends before" in why else []
    assert way.split("\n = help: ")[: len(ways)] == ways
    assert way.split("\n = help: ")[-1].endswith(
        "leave such rows out: WITH (on_error = 'skip'), or cq run -w on_error=skip"
    )


def test_deepest_line_is_read(read_lines: Read) -> None:
    deep = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert read_lines("a bigint", f'{{"x": {deep}, "a": 1}}').rows == [(1,)]


def test_bad_rows_are_skipped_or_written_down_and_counted(read_lines: Read, tmp_path: Path) -> None:
    lines = [b'{"t": "2024-01-01", "n": 1}', b'{"t": null, "n": 1}', b'{"t": "2024-01-02"}\r', b"x", b'{"n": "\xff"}']
    text = b"\n".join([*lines, b'{"t": "2024-01-03", "n": 2}'])
    columns = [Field("t", T.TIMESTAMP), Field("n", T.BIGINT, False)]
    seen = read_lines(columns, text, on_error="skip")
    assert (len(seen.rows), seen.bad) == (3, 3)
    declared = stream(columns, "t", path="t.jsonl", on_error="dead_letter", bad_rows="bad.jsonl")
    assert len(read(declared, directory=tmp_path).rows) == 2
    letters = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(x["record"], x["code"], x["column"]) for x in letters] == [
        (2, "CQ0703", "t"), (3, "CQ0704", "n"), (4, "CQ0710", None), (5, "CQ0710", None)
    ]  # fmt: skip
    assert letters[1]["raw"] == '{"t": "2024-01-02"}' and letters[3]["cause"] == "the line is not UTF-8"


def test_array_over_the_whole_file_is_told_how_to_become_lines(read_lines: Read) -> None:
    error = read_lines("a bigint", '\n [{"a": 1},\n{"a": 2}]\n', on_error="skip").error
    assert error is not None and error.code == "CQ0701" and "jq -c" in error.first.help[0]


def test_something_else_under_the_name_of_json_is_recognised(read_lines: Read) -> None:
    for text, what in ((b"PAR1" + bytes(50), "Parquet"), ('{"a": 1}'.encode("utf-16"), "UTF-16")):
        error = read_lines("a bigint", text).error
        assert error is not None and error.code == "CQ0701" and what in error.first.message


def test_type_without_a_json_form_is_refused(read_lines: Read) -> None:
    error = read_lines([Field("a", T.INTERVAL_MONTH)], "{}").error
    assert error is not None and error.code == "CQ0602" and "INTERVAL MONTH" in error.first.message


def test_line_of_ten_megabytes_is_one_row_and_one_over_the_limit_is_refused(read_lines: Read) -> None:
    long = "x" * (10 << 20)
    assert read_lines("a varchar", f'{{"a": "{long}"}}\n{{"a": "y"}}\n').rows == [(long,), ("y",)]
    error = read_lines("a varchar", f'{{"a": "y"}}\n{{"a": "{long}{long}"}}\n').error
    assert error is not None and error.code == "CQ0701" and "line 2 is longer than 16 MiB" in error.first.message


def test_block_edges_and_threads_change_nothing(read_lines: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    lines = [rng.choice(['{"a": %d}', '{"a": "%d", "b": {"c": []}}', "", "[%d", '{"b": %d}']) for _ in range(300)]
    text = '{"a": 1}\n' + "\n".join(line % n if "%" in line else line for n, line in enumerate(lines))
    whole = read_lines("a bigint", text, on_error="skip")
    assert whole.bad > 0 and whole.blank > 0
    for size, threads in ((40, 1), (64, 4), (1024, 3)):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
        monkeypatch.setattr(source, "cores", lambda threads=threads: threads)
        seen = read_lines("a bigint", text, on_error="skip")
        assert (seen.rows, seen.places, seen.bad, seen.blank) == (whole.rows, whole.places, whole.bad, whole.blank)


# ---------------------------------------------------------------------------------------- native against the definition

PIECES = [
    "{", "}", "[", "]", ",", ":", '"a"', '"b"', '"A"', '"x.y"', '"x"', '"y"', '"c"', '""', '"é"', "null", "true", "1",
    "false", "-0", "1.5", "1e400", "01", "-", "1e", '"\\n"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\u00"', '"open', " ",
    "\n", "\x00", "\x1f", "[]", "{}", '{"y": 1}', '{"y": {"z": "d"}}', '"a": 1', '"a": "t"', '"x": {"y": "t\\"t"}',
    '"c": [1, {"a": 2}]', "\ufeff", '"\\"', '"\\\\"', '"a":', "nul", "\t", "\r",
]  # fmt: skip
COLUMNS = ("a", "x.y", "b", "é", "x", "")


def drawn(rng: random.Random) -> bytes:
    """Lines of which most are nearly right."""
    lines = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        fields = [f"{rng.choice(PIECES[6:15])}: {rng.choice(PIECES[13:35])}" for _ in range(rng.randrange(4))]
        line = "{" + ", ".join(fields) + "}"
        for _ in range(rng.choice([0, 0, 1, 2])):
            at = rng.randrange(len(line) + 1)
            line = line[:at] + rng.choice(["", rng.choice(PIECES)]) + line[at + rng.randrange(2) :]
        lines.append(line)
    return "\n".join(lines).encode()


@pytest.mark.parametrize("interpreted", [False, True])
def test_native_cells_are_what_the_definition_takes(interpreted: bool) -> None:
    """Interpreted, every access is checked to be within its memory."""
    rng = random.Random(3)
    levels, raw = levels_of(COLUMNS), tuple(name == "x" for name in COLUMNS)
    fields = tuple(Field(name, T.array(T.BIGINT) if r else T.VARCHAR) for name, r in zip(COLUMNS, raw, strict=True))
    rules = Rules(fields, tuple(range(len(fields))), None)
    readings = [source._Reading.of("t", rules, None, make) for make in (None, csv_scan)]
    accepted = 0
    with Memory() as memory:
        scan = json_scan(levels, raw)
        if interpreted:
            scan = JsonScan(json_cells, levels, raw, lambda a: memory._add(memoryview(a).cast("B"), owned=False)).cells
        for _ in range(1000 if interpreted else 8000):
            text = drawn(rng)
            cells = scan(text)
            expected = [taken_from(line, levels) for line in text.split(b"\n") if line.strip(b" \t\r")]
            if cells is None or not cells.text:
                continue
            accepted += 1
            assert all(row is not None for row in expected), text
            for reading in readings:
                columns = reading.columns(cells)
                assert columns is not None, text
                found = list(zip(*(columns[i].to_pylist() for i in rules.wanted), strict=True))
                assert found == expected, text
    assert accepted > (100 if interpreted else 1000)


def taken_from(line: bytes, levels: tuple) -> tuple[str | None, ...] | None:  # type: ignore[type-arg]
    """The cells of a row by the definition; None if it has none or the line is bad."""
    try:
        row = values(line, levels, len(COLUMNS))
        return tuple(
            None if v is None else (v.json if name == "x" else v.text).decode()
            for name, v in zip(COLUMNS, row, strict=True)
        )
    except (NoObject, source.UnreadableText):
        return None


def test_definition_accepts_what_python_does() -> None:
    rng = random.Random(5)
    accepted = 0
    for _ in range(5000):
        for line in drawn(rng).split(b"\n"):
            try:
                theirs = json.loads(line.decode(), parse_constant=lambda _: 1 / 0, object_pairs_hook=list)
                right = line.strip(b" \t\r").startswith(b"{")
            except (ValueError, ZeroDivisionError):
                right = False
            try:
                mine = values(line, levels_of(["a"]), 1)
            except NoObject:
                assert not right, line
                continue
            assert right, line
            accepted += 1
            last = [v for n, v in theirs if n == "a"] or [v for n, v in theirs if n == "A"]
            assert (mine[0] and json.loads(mine[0].json, object_pairs_hook=list)) == (last[-1] if last else None), line
    assert accepted > 1000


def test_array_column_takes_any_depth() -> None:
    assert reader(T.array(T.array(T.BIGINT)), False)(JsonValue(b'[[1],null,[ ],["2"]]')) == ((1,), None, (), (2,))


# ------------------------------------------------------------------------------------------------------------- guesses


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("1 -2 null", "BIGINT"),
        ("1 1.5 12345678901234567890", "DOUBLE"),
        ("12345678901234567890 1", "VARCHAR"),
        ('"00501"', "VARCHAR"),
        ('"1" 1', "VARCHAR"),
        ("true null", "BOOLEAN"),
        ('"2024-01-01"', "DATE"),
        ('"2024-01-01" "2024-01-01T10:00:00Z"', "TIMESTAMP"),
        ('"2024-01-01" 1', "VARCHAR"),
        ("null null", "VARCHAR"),
        ("[1] []", "BIGINT ARRAY"),
        ("[1,null] [1.5] null", "DOUBLE ARRAY"),
        ('["a","2024-01-01"]', "VARCHAR ARRAY"),
        ('[1,"a"]', "VARCHAR"),
        ("[] []", "VARCHAR"),
        ("[[1]]", "VARCHAR"),
        ('[{"a":1}]', "VARCHAR"),
        ("[1] 1", "VARCHAR"),
        ('{"a":1} 1', "VARCHAR"),
        ("{}", "VARCHAR"),
    ],
)
def test_columns_nobody_declared_have_the_narrowest_type(tmp_path: Path, written: str, type_: str) -> None:
    lines = "".join(f'{{"y": 1, "x": {value}}}\n' for value in written.split()) + '{"z": 1}\nnothing\n'
    (tmp_path / "t.json").write_text(lines)
    fields = infer({"path": str(tmp_path / "t.json")})
    assert [(f.name, str(f.type)) for f in fields] == [("y", "BIGINT"), ("x", type_), ("z", "BIGINT")]


@pytest.mark.parametrize(
    ("written", "columns"),
    [
        ('{"a":1,"b":"x"} null {"c":[1]}', {"x.a": "BIGINT", "x.b": "VARCHAR", "x.c": "BIGINT ARRAY"}),
        ('{"a":{"b":{"c":true}}} {"a":{"d":1.5}}', {"x.a.b.c": "BOOLEAN", "x.a.d": "DOUBLE"}),
        ('{"a":{"b":1}} {"a":2}', {"x.a": "VARCHAR"}),
        ('{"a":null}', {"x.a": "VARCHAR"}),
        ('{"a":{}} {}', {"x.a": "VARCHAR"}),
        ("{} {}", {"x": "VARCHAR"}),
        ('{"a":1} [1]', {"x": "VARCHAR"}),
        ('{"a.b":1} {"a":1}', {"x": "VARCHAR"}),
        ('{"":1}', {"x": "VARCHAR"}),
        ('{"a":[{"b":1}]}', {"x.a": "VARCHAR"}),
        ("{" + ",".join(f'"k{i}":1' for i in range(300)) + "}", {"x": "VARCHAR"}),
        ('{"a":' * 40 + "1" + "}" * 40, {"x" + ".a" * 32: "VARCHAR"}),
    ],
)
def test_fields_of_objects_are_columns_unless_no_path_leads_to_them(
    tmp_path: Path, written: str, columns: dict[str, str]
) -> None:
    (tmp_path / "t.json").write_text("".join(f'{{"x": {value}}}\n' for value in written.split()))
    assert {f.name: str(f.type) for f in infer({"path": str(tmp_path / "t.json")})} == columns


def test_names_with_dots_stay_names(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"a.b": {"c": 1}, "d": {"e": 1}, "d.e": "x"}\n')
    fields = infer({"path": str(tmp_path / "t.json")})
    assert {f.name: str(f.type) for f in fields} == {"a.b": "VARCHAR", "d.e": "VARCHAR"}


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_inferred_fields_are_read_by_their_paths(tmp_path: Path, engine: str) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"user": {"name": "ada", "at": {"city": "Rome", "zip": "00184"}}, "n": 1, "items": [{"k": 1}]}\n'
        '{"n": 2, "user": {"at": {"zip": "10115", "city": null}, "age": 7}}\n{"n": 3, "user": null}\n'
    )
    text = (
        "SELECT n, user.name, t.user.at.city, user.at.zip, user.age, items ->> '$[0].k' AS k "
        f"FROM '{tmp_path / 't.jsonl'}' AS t"
    )
    rows = cq.sql(text).run(engine=engine)["result"].to_arrow().to_pylist()
    assert [tuple(r.values()) for r in rows] == [
        (1, "ada", "Rome", "00184", None, "1"),
        (2, None, None, "10115", 7, None),
        (3, None, None, None, None, None),
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "{}\n", "nothing\n", '[{"a": 1}]'])
def test_file_that_says_nothing_of_columns_is_told_to_declare_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(CqError) as refused:
        infer({"path": str(tmp_path / "t.json")})
    assert refused.value.code == "CQ0701"


def test_cells_may_take_more_room_than_their_lines() -> None:
    """Every quote in JSON text is doubled, and a value may be text of one column and the inside of another."""
    text = json.dumps({"a": {"b": {"c": [""] * 500}}}).encode()
    cells = json_scan(levels_of(["a", "a.b", "a.b.c"]), (False,) * 3)(text)
    assert cells is not None and len(cells.text) > 3 * len(text)
    assert cells.text.count(b'""""') == 3 * 500


def test_one_bad_line_leaves_the_others_of_its_block_to_native_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "FEW_BYTES", 64)
    rules = Rules((Field("a", T.BIGINT),), (0,), None)
    lines = [b'{"a": %d}' % n for n in range(1000)]
    lines[333] = b'{"a": "x"}'
    pieces = source._Reading.of("t", rules, json_scan).pieces(blocks.TextBlock(b"\n".join(lines), 1))
    assert all(p.batch.num_rows < 8 for p in pieces if p.bad)
    assert [bad.line for p in pieces for bad in p.bad] == [334]
    assert [p.place.line(k) for p in pieces for k in range(p.batch.num_rows)] == [*range(1, 334), *range(335, 1001)]


def test_rows_that_have_come_do_not_wait_for_the_rest_of_a_line() -> None:
    rules = Rules((Field("a", T.BIGINT),), (0,), None)
    arrived = [b'{"a": 1}\n{"a":', b" 2}\n\n{", b'"a": 3}', b""]
    found = []
    for piece in source.read_json(Slow(arrived), "s", rules, json_scan):
        found += [(a, piece.place.line(k), len(arrived)) for k, a in enumerate(piece.batch.column(0).to_pylist())]
    assert found == [(1, 1, 3), (2, 2, 2), (3, 4, 0)]


class Slow:
    """Gives what has come, whatever is asked for."""

    def __init__(self, parts: list[bytes]) -> None:
        self.parts = parts

    def read(self, size: int) -> bytes:
        return self.parts.pop(0)


def test_wide_rows_are_read_natively_too() -> None:
    names = [f"c{n}" for n in range(300)]
    line = json.dumps({name: n for n, name in enumerate(names)}).encode()
    cells = json_scan(levels_of(names), (False,) * 300)(line + b"\n" + line)
    assert cells is not None and cells.text.splitlines()[1].split(b"\x1f") == [str(n).encode() for n in range(300)]
    assert np.array_equal(cells.lines, [0, 1])
