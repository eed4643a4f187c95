"""Help that is asked for: the functions, and one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import cq, ref

import cq as api
from cq.cli.forms import FORMS
from cq.cli.functions import all_entries, all_operators
from cq.cli.operators import OPERATORS
from cq.grammar.parser import tables
from cq.planner.binding.functions.names import known_functions


def test_functions_are_listed_and_explained(capfd: pytest.CaptureFixture[str]) -> None:
    listed = cq(capfd, "functions")[1].splitlines()
    assert len(listed) > 200 and listed[0].startswith("abs(number) ")
    assert [line.split("(")[0] for line in cq(capfd, "functions", "lpad")[1].splitlines()] == ["lpad"]
    code, out, _ = cq(capfd, "docs", "LPAD")
    assert code == 0 and out.startswith("lpad(text, length [, padding])\n") and "lpad('7', 3, '0') = '007'" in out
    assert "\nalso stddev, stdev\n" in cq(capfd, "docs", "stddev")[1]


def test_functions_of_several_names_are_listed_once_with_all_of_them(capfd: pytest.CaptureFixture[str]) -> None:
    listed = cq(capfd, "functions", "regex")[1].splitlines()
    assert len(listed) == len(set(listed)) and sum(line.startswith("REGEXP_LIKE(") for line in listed) == 1
    assert any("(also regexp_matches, regexp_contains, rlike, regexp)" in line for line in listed)
    assert cq(capfd, "functions", "stddev")[1].count("(also stddev, stdev)") == 1


def test_word_that_nothing_has_is_told_so(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = cq(capfd, "functions", "zzz")
    assert (code, out) == (1, "") and 'no function has "zzz"' in err and "cq functions lists all" in err
    assert 'did you mean "lpad"?' in cq(capfd, "functions", "lapd")[2]


def test_every_operator_is_explained(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = cq(capfd, "docs", "+")
    assert code == 0 and out.startswith("number + number, time + INTERVAL") and "= 3\n" in out
    explained = {name for entry in all_operators() for name in entry.names}
    signs = {word for word in tables().keywords if not any(c.isalpha() for c in word)}
    assert signs - explained == {"(", ")", ",", ".", ":", ";", "[", "]"}
    words = {
        "LIKE",
        "ILIKE",
        "GLOB",
        "SIMILAR",
        "AND",
        "OR",
        "NOT",
        "IS",
        "IN",
        "BETWEEN",
        "EXISTS",
        "ISNULL",
        "NOTNULL",
    }
    assert {w.lower() for w in words} | {"!=", "==", "at time zone", "is distinct from"} <= explained
    assert "write POWER(x, y)" in cq(capfd, "docs", "^")[2]


def test_unknown_function_is_told_what_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert "write STDDEV(x)" in cq(capfd, "docs", "std")[2]
    assert 'did you mean "lpad"?' in cq(capfd, "docs", "lpadd")[2]
    for name in ("metaphone", "list_zip"):  # nothing is near: no other word is guessed
        assert "= help: cq functions lists all" in ref(capfd, f"SELECT {name}(1, 2)")[2]
    assert "queries cannot read the clock" in ref(capfd, "SELECT CURRENT_TIME")[2]


def test_every_name_a_call_can_have_is_explained() -> None:
    explained = {name for entry in all_entries() for name in entry.names}
    starts = {"tumble_start", "tumble_end", "hop_start", "hop_end"}  # of the windows of GROUP BY
    assert set(known_functions()) - explained <= starts | {"mod"}


@pytest.mark.parametrize("example", [e for form in (*FORMS, *OPERATORS) for e in form.examples])
def test_example_of_a_form_is_true(example: str) -> None:
    stream = "CREATE STREAM s (k BIGINT, x BIGINT, items BIGINT ARRAY, ts TIMESTAMP, WATERMARK FOR ts); "
    if example.startswith("SELECT "):
        assert api.sql(stream + example).check() == ()
    else:
        assert api.sql(f"SELECT {example} AS it").run(engine="reference").to_pylist() == [{"it": True}]


def test_every_shipped_query_runs_in_miniature(capfd: pytest.CaptureFixture[str]) -> None:
    listed = cq(capfd, "examples")[1].splitlines()
    queries = sorted(Path(__file__).parents[2].glob("queries/**/*.cq"))
    assert len(listed) == len(queries) and listed[0].startswith("lr_accounts  ")
    assert all("?" in line for line in listed)  # each says what it asks
    for line in listed:
        name = line.split()[0]
        code, out, err = cq(capfd, "examples", name, "--engine", "reference", "--rows", "40")
        assert code == 0 and out.startswith("-- ") and "──" in out and "\nread 40 rows of " in "\n" + err, (name, err)
    assert 'did you mean "word_count"?' in cq(capfd, "examples", "wordcount")[2]


def test_alias_is_used_by_the_items_after_it(capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT id + 1 AS n, n * 2 AS id, id AS again FROM 'trips.csv' WHERE fare > 3"
    assert ref(capfd, "-q", query) == (0, "n,id,again\n3,6,2\n", "")
    assert "unknown column" in ref(capfd, "SELECT m * 2 AS n FROM 'trips.csv'")[2]
