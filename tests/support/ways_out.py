"""The fixes that errors suggest, and queries in which each of them is applied: tests/golden/ways_out.

    == add_text                                    a golden of errors/, or a text of syntax/ by its number
    CAST the text to INTEGER, or TRY_CAST it …     the way out, as the golden has it
      item + 1 => CAST(item AS INTEGER) + 1        what of the query it changes, and into what; a line for each form
      item + 1 => TRY_CAST(item AS INTEGER) + 1

In a line, ` ;; ` stands between several changes, `\\n` is the end of a line, `\\x00` and `\\u200b` are characters, and
` --var n=v` at the end gives a parameter. A way out that occurs twice in a golden is listed here twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cq.records import dataclass

GOLDEN = Path(__file__).parents[1] / "golden"
_ESCAPED = re.compile(r"\\(n|x[0-9a-f]{2}|u[0-9a-f]{4})")
# ways out that list possibilities, or name a form: other tests check them
LISTS = re.compile(
    r"(columns|known|types|settings|units|relations|supported|outputs): |usage: |example: "
    r"|did you mean |cq schema \S+ prints|relative paths start from"
)
_VARIABLE = re.compile(r" --var (\w+)=(.*)$")


@dataclass(frozen=True, slots=True)
class Taking:
    """One form of a way out, applied: changes to the query, and parameters to give."""

    changes: tuple[tuple[str, str], ...]
    variables: Mapping[str, str]

    def of(self, query: str) -> str:
        """The query after the changes. AssertionError if it lacks the text to change."""
        for old, new in self.changes:
            assert old in query, f"the query has no {old!r}"
            query = query.replace(old, new, 1)
        return query

    @property
    def written(self) -> str:
        """All text that it writes."""
        return " ".join([*(new for _, new in self.changes), *(f"--var {n}={v}" for n, v in self.variables.items())])


@dataclass(frozen=True, slots=True)
class Way:
    """A way out in a golden, and the forms in which it is taken."""

    golden: str
    text: str
    takings: tuple[Taking, ...]


def _character(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else chr(int(escape[1][1:], 16))


def taking(line: str) -> Taking:
    """A line of the file."""
    variables = {}
    while (given := _VARIABLE.search(line)) is not None:
        variables[given[1]] = given[2]
        line = line[: given.start()]
    changes = []
    for part in line.split(" ;; ") if line.strip() else []:
        old, arrow, new = f" {part} ".partition(" => ")
        assert arrow, f"no => in {line!r}"
        changes.append((_ESCAPED.sub(_character, old[1:]), _ESCAPED.sub(_character, new[:-1])))
    return Taking(tuple(changes), variables)


def ways(kind: str) -> dict[str, list[Way]]:
    """The entries of a file by golden. kind: errors or syntax."""
    found = dict[str, list[Way]]()
    for way in _entries((GOLDEN / "ways_out" / f"{kind}.txt").read_text(encoding="utf-8")):
        found.setdefault(way.golden, []).append(way)
    return found


def _entries(text: str) -> Iterator[Way]:
    golden, way, takings = "", "", list[Taking]()
    for line in [*text.split("\n"), "== "]:
        if line.startswith("  "):
            takings.append(taking(line[2:]))
            continue
        if way:
            yield Way(golden, way, tuple(takings))
            way, takings = "", []
        if line.startswith("== "):
            golden = line[3:]
        elif line and not line.startswith("#"):
            way = line
