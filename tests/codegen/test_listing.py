"""Generated code is shown with the lines of the query it was made for, as comments and nothing else."""

import ast
import re
from itertools import pairwise

import pytest

from cq.compiler.listing import interleaved
from cq.compiler.passes import compile
from cq.errors import PICTURE_COLUMNS, SourceText

MODULE = "def f(a):\n    # line 2: filter\n    if a:\n        # line 3: project\n        return 1\n    return 0\n"

STREAM = "CREATE STREAM t (a BIGINT, {} BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');\n"

ENDS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\x00", "\x1b[2K"]


def same_code(shown: str, module: str) -> bool:
    return ast.dump(ast.parse(shown)) == ast.dump(ast.parse(module))


def test_a_block_stands_under_its_line_of_the_query() -> None:
    shown = interleaved(MODULE, SourceText("q.cq", "SELECT a\n  FROM t WHERE a > 0 -- here\n, b;"))
    assert shown.splitlines()[1:5] == [
        "    # line 2: filter",
        "    #   FROM t WHERE a > 0 -- here",
        "    if a:",
        "        # line 3: project",
    ]
    assert shown.splitlines()[5] == "        #   , b;"


def test_a_line_the_text_does_not_have_adds_nothing() -> None:
    assert interleaved(MODULE, SourceText("q.cq", "SELECT 1\n   \t ")) == MODULE


@pytest.mark.parametrize("end", ENDS)
def test_a_line_of_the_query_stays_one_comment(end: str) -> None:
    """Whatever ends a line anywhere: the next one does not become code, nor does it move the cursor."""
    text = f"--\nSELECT{end}import os{end}#   forged{end}\nFROM t"
    shown = interleaved(MODULE, SourceText("q.cq", text))
    assert same_code(shown, MODULE)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "import os" not in [line.strip() for line in shown.splitlines()]


@pytest.mark.parametrize("text", ["x" * 5000, "\u202e" * 300, "\U0001f600 ' \" \\", "\ud800"])
def test_long_and_strange_lines_are_cut_and_escaped(text: str) -> None:
    shown = interleaved(MODULE, SourceText("q.cq", f"--\n{text}\n--"))
    (comment,) = [line for line in shown.split("\n") if line.startswith("    #  ")]
    assert comment.isprintable() and "\u202e" not in comment
    assert same_code(shown, MODULE)
    assert len(comment) <= PICTURE_COLUMNS * len("\\u{202e}") + 10


def test_a_line_that_looks_like_a_mark_is_no_mark() -> None:
    shown = interleaved(MODULE, SourceText("q.cq", "--\n# line 3: project\nSELECT"))
    assert shown.count("#   SELECT") == 1


@pytest.mark.parametrize("name", ["b", "x y", "import os", "größe ∑", "n" * 200, "c1 a, c2", "#"])
def test_columns_of_a_stage_are_named_before_its_code(name: str) -> None:
    quoted = f'"{name}"'
    query = compile(STREAM.format(quoted) + f"SELECT a, {quoted}, ts\nFROM t\nWHERE {quoted} > 0;")
    shown = query.explain("code")
    modules = [stage.module for pipeline in query.after("emit") for stage in pipeline.stages]
    assert len(modules) == 1 and same_code(shown, modules[0])
    assert "# rows_0 takes t:" in shown and "# port0 gives result: out0 a, out1 " in shown
    assert all(line.isprintable() for line in shown.split("\n"))
    if name == "b":
        assert re.search(r"# line 4: filter\n +#   WHERE \"b\" > 0;", shown)


def test_the_generated_file_itself_holds_no_text_of_the_query() -> None:
    query = compile(STREAM.format("b") + "SELECT a\nFROM t -- Zebra\nWHERE b > 0 -- Zebra\n;")
    assert "Zebra" in query.explain("code")
    assert not any("Zebra" in stage.module for pipeline in query.after("emit") for stage in pipeline.stages)


JOINED = """CREATE STREAM u (a BIGINT, c BIGINT) WITH (connector = 'memory');
SELECT t.a, u.c FROM t JOIN u ON t.a = u.a WHERE t.b > u.c;
SELECT a, COUNT(*) AS n, SUM(b) AS s FROM SESSION(TABLE t PARTITION BY a, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY window_start, window_end, a;"""


def test_no_statement_of_a_listing_does_nothing() -> None:
    query = compile(STREAM.format("b") + JOINED)
    for pipeline in query.after("emit"):
        for stage in pipeline.stages:
            lines = stage.module.splitlines()
            assert not [line for line in lines if line.strip() == "pass"]
            assert not [one for one, two in pairwise(lines) if "prefetch" in one and one == two], "fetched twice"


def test_numbers_of_a_query_have_names_in_its_listing() -> None:
    shown = compile(STREAM.format("b") + JOINED).explain("code")
    assert "GAP_US = 10000000" in shown and shown.count("10000000") == 1
