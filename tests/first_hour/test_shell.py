"""`cq` alone on a terminal is a shell."""

from __future__ import annotations

from pathlib import Path

from terminal import plain, typed

from cq.cli.shell import Completer, Shell

TYPED = """.engine reference
.help
CREATE STREAM t (id BIGINT, fare DOUBLE)
WITH (path = 'trips.csv');
SELECT id,
  fare * 2 AS twice FROM t WHERE id < 3;
SELECT nothing
FROM t;
CREATE VIEW big AS SELECT id FROM t WHERE id > 2;
SELECT * FROM big;
.tables
.timer
SELECT COUNT(*) AS n FROM 'day/*.csv.gz';
.explain SELECT id FROM t
.nothing
CREATE STREAM t (zip VARCHAR, id BIGINT) WITH (path = 'trips.csv');
SELECT zip FROM t LIMIT 1; SELECT COUNT(*) AS n FROM big;
.quit
"""


def said_by_the_shell(typed_text: str, home: Path) -> str:
    """What the screen holds after these lines were typed."""
    with typed("", TERM="dumb", HOME=str(home)) as shell:
        shell.type(typed_text)
        assert shell.end() == 0
        return plain(shell.raw)


def test_shell_keeps_what_is_declared_and_goes_on_after_mistakes(tmp_path: Path) -> None:
    seen = said_by_the_shell(TYPED, tmp_path)
    assert "id  twice\n──  ─────\n 1    5.0\n 2    8.0\n" in seen
    assert " --> <shell>:1:8\n  |\n1 | SELECT nothing\n  |        ^^^^^^^ no such column\n" in seen
    assert "id\n──\n 3\n" in seen and "never used" not in seen
    assert "\nt\nbig\n" in seen
    assert "timer on" in seen and "n\n─\n6\n" in seen and "read 6 rows of day · wrote 1 row · " in seen
    assert "there is no command .nothing" in seen
    assert "zip\n─────\n00501\n" in seen and "result_2\nn\n─\n1\n" in seen
    assert "SELECT zip FROM t LIMIT 1;" in (tmp_path / ".cq_history").read_text()


def test_shell_completes_words_names_and_files() -> None:
    completer = Completer(Shell({"trips": ""}))
    assert list(completer._words("SEL")) == ["SELECT"] and "trips" in completer._words("tri")
    assert ".tables" in completer._words(".ta") and "date_format" in completer._words("date_")
    from cq.cli.shell import _files

    assert sorted(_files("")) == ["day/", "people.jsonl", "semi.csv", "trips.csv"]
    assert list(_files("day/a")) == ["day/a.csv.gz"]
