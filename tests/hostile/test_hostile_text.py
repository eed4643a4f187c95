"""Query text that wants to be more than a query: it stays data, or is refused with a code and a place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import cq
from cq.compiler.passes import compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.errors import CqError
from cq.planner.binding.parameters import as_written

CANARY = "canary_7f3a"
ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]

PAYLOADS = [
    f"'; import os; os.system('touch {CANARY}') #",
    f'"""\nraise SystemExit({CANARY!r})\n"""',
    f"{{{CANARY}}} %s {{0.__class__.__mro__}}",
    f"__import__('os').system('{CANARY}')",
    f"\\x27); {CANARY}() #",
    f"$({CANARY}) `{CANARY}` | ;",
    f"<script>{CANARY}</script>",
    f"\u202e{CANARY}\u2066",
    f"{CANARY}\x1b[2J\r\n",
]


def bound(text: str) -> object:
    inputs = Inputs(FileAccess(Path.cwd()), {"t": ROWS})
    return compile(text, "hostile.cq", inputs=inputs)


def quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_of_literals_names_and_comments_never_reaches_generated_code(payload: str) -> None:
    printable = "".join(c for c in payload if c.isprintable())
    text = (
        f"-- {printable}\nSELECT {quoted(printable, chr(39))} AS {quoted(printable, chr(34))}, id\n"
        f"FROM t AS {quoted(printable[:40], chr(34))} WHERE name IS NULL OR name <> {quoted(printable, chr(39))}"
    )
    try:
        compiled = compile(text, "hostile.cq", inputs=Inputs(FileAccess(Path.cwd()), {"t": ROWS}))
    except CqError as error:
        assert error.code.startswith("CQ01"), error
        return
    assert not any(CANARY in stage.module for pipeline in compiled.after("emit") for stage in pipeline.stages)
    result = cq.sql(text, t=ROWS).run(engine="reference")["result"]
    assert result.to_pylist()[0] == {printable: printable, "id": 1}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_parameters_and_data_stay_values(payload: str) -> None:
    q = cq.sql("SELECT :p AS p, name FROM t", t=[{"name": payload}]).with_variables(p=payload)
    assert q.run(engine="reference")["result"].to_pylist() == [{"p": payload, "name": payload}]
    assert CANARY not in q.explain("code")  # the text has the parameter's name only


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM t",
        "SELECT " + "1 + " * 5000 + "1 FROM t",
        "SELECT " + "NOT " * 5000 + "TRUE FROM t",
        "SELECT " + "-" * 5001 + "1 FROM t",
        "SELECT " + "- " * 5001 + "1 FROM t",
        "SELECT id FROM " + "(SELECT * FROM " * 2000 + "t" + ") AS x" * 2000,
        "SELECT " + "CASE WHEN id = 1 THEN " * 2000 + "1" + " END" * 2000 + " FROM t",
        "SELECT " + "ABS(" * 3000 + "id" + ")" * 3000 + " FROM t",
        "SELECT id FROM t WHERE id IN (" + ",".join(map(str, range(300_000))) + ")",
        "SELECT '" + "x" * (2 << 20) + "' FROM t",
        "SELECT " + "9" * 5000 + " FROM t",
        "SELECT 1e" + "9" * 300 + " FROM t",
        "SELECT id AS " + "n" * 10_000 + " FROM t",
        "/*" * 100_000,
        "'" * 100_001,
        ";" * 500_000,
        "SELECT id FROM t " + "UNION ALL SELECT id FROM t " * 3000,
        "WITH a0 AS (SELECT id FROM t) "
        + " ".join(f", a{n} AS (SELECT * FROM a{n - 1} UNION ALL SELECT * FROM a{n - 1})" for n in range(1, 40))
        + " SELECT COUNT(*) AS n FROM a39",
        "SELECT " + ", ".join(f"id + {n} AS c{n}" for n in range(20_000)) + " FROM t",
        "SELECT " + ", ".join(f"id + {n} AS c{n % 4000}" for n in range(4096)) + " FROM t",
    ],
    ids=range(20),
)
def test_text_built_to_exhaust_is_refused_or_bound_in_seconds(text: str) -> None:
    began = time.process_time()
    try:
        bound(text)
    except CqError as error:
        assert error.code != "CQ0999" and len(str(error)) < 20_000
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "text",
    [
        "SELECT іd FROM t",
        "SELECT i\u200bd FROM t",
        "SELECT id FROM t\u00a0WHERE id = 1",
        "SELECT ｉｄ FROM t",
        "SELECT id\ufeff FROM t",
    ],
)
def test_letters_that_look_alike_are_not_alike(text: str) -> None:
    with pytest.raises(cq.CompileError) as refused:
        bound(text)
    assert refused.value.code in {"CQ0101", "CQ0105", "CQ0203", "CQ0201"}


@pytest.mark.parametrize(
    "text", ["", " ", "-- only words", ";", "\0", "\x1b[2J", "SELECT \ud800", "SELECT 'a\0b' FROM t", "\\"]
)
def test_text_that_is_hardly_text_gives_no_internal_error(text: str) -> None:
    try:
        bound(text)
    except CqError as error:
        assert error.code != "CQ0999" and "\x1b" not in str(error) and "\0" not in str(error)


def test_paths_in_the_query_of_a_stranger_are_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (tmp_path / "secret.csv").write_text("id\n1\n")
    for path in ("../secret.csv", str(tmp_path / "secret.csv"), "/proc/self/environ", "x/../../secret.csv"):
        text = f"CREATE STREAM s (id BIGINT) WITH (path = '{path}', format = 'csv'); SELECT id FROM s"
        q = cq.sql(text, restrict=work)
        with pytest.raises(cq.UsageError) as refused:
            q.run(engine="reference")
        assert refused.value.code == "CQ0601", path
        with pytest.raises(cq.CqError, match=r"outside the directories|names no format"):
            cq.sql(f"SELECT * FROM '{path}'", restrict=work).check()
        sink = f"CREATE SINK o WITH (path = '{path}', format = 'csv'); INSERT INTO o SELECT id FROM t"
        with pytest.raises(cq.UsageError):
            cq.sql(sink, t=ROWS, restrict=".").run(engine="reference")
    assert (tmp_path / "secret.csv").read_text() == "id\n1\n"


def test_dead_letters_and_patterns_are_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "b.csv").write_text("id\nx\n")
    (tmp_path / "secret.csv").write_text("id\n1\n")
    options = "path = 'b.csv', on_error = 'dead_letter', bad_rows = '../out.jsonl'"
    for text in (options, "path = '../*.csv'"):
        with pytest.raises(cq.UsageError):
            cq.sql(f"CREATE STREAM s (id BIGINT) WITH ({text}); SELECT id FROM s", restrict=work).run(
                engine="reference"
            )
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    "text", ["1_000", "0x10", "1e5", "-7", "1.50", "true", "NULL", "2024-01-01", "nan", "٣", "1" * 100]
)
def test_parameter_values_are_read_strictly(text: str) -> None:
    value = as_written(text)
    expected = {"1e5": 1e5, "-7": -7, "true": True, "NULL": None}
    if text == "1.50":
        assert str(value) == "1.50" and not isinstance(value, str)
    else:
        assert value == expected.get(text, text)
