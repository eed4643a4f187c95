"""The pages of the documentation: their blocks, and the parts of them that are generated.

`<!-- table: NAME -->` … `<!-- end -->` holds a table made from a registry. A `text` block right after an `sql` block
holds the result of that query. `pytest tests/project/test_docs.py --update` rewrites both.

An `sql` block is a whole query, over the streams that the first block of its page declares unless it declares its own;
`csv NAME` and `json NAME` blocks are the files they read. `sql refused CODE` is a query that is refused.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from docs_tables import TABLES
from paths import ROOT

from cq.compiler.passes import Compiled, compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.sinks.terminal import Screen, Table
from cq.engines.protocol import RunOptions
from cq.engines.query import collect
from cq.errors import CqError, Diagnostic, SourceText, Span
from cq.records import dataclass, replace

FILES = ("csv", "json")  # languages of blocks that are files
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
NAME = "query.cq"
_BLOCK = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(?<=<!-- table: )(?P<name>\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block. words: its info string.  start, end: of its text in the page."""

    page: Path
    line: int
    words: tuple[str, ...]
    text: str
    start: int
    end: int

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def refused(self) -> str:
        """The code with which an `sql` block is refused; empty if it is accepted."""
        return self.words[2] if self.words[1:2] == ("refused",) else ""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path, text: str | None = None) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8") if text is None else text
    return [
        Block(
            page,
            text.count("\n", 0, m.start()) + 2,
            tuple(m["info"].split()),
            m["text"],
            m.start("text"),
            m.end("text"),
        )
        for m in _BLOCK.finditer(text)
    ]


def all_blocks(*languages: str) -> Iterator[Block]:
    """The blocks of all pages in one of these languages."""
    for page in PAGES:
        yield from (b for b in blocks(page) if b.language in languages)


@dataclass(frozen=True)
class Bench:
    """A directory with the files of a page, and the streams its queries share."""

    directory: Path
    streams: str

    def compiled(self, block: Block) -> Compiled:
        """The query of an `sql` block, bound; raises the compiler's error, with the lines of the block."""
        text = block.text if "CREATE STREAM" in block.text else self.streams + block.text
        try:
            return compile(text, NAME, inputs=Inputs(FileAccess(self.directory)))
        except CqError as error:
            raise self._of_block(error, block) from None

    def outcome(self, block: Block, engine: str = "native", threads: int = 0, brief: bool = False) -> str:
        """What a person sees: the rows of every output, late and bad rows, errors.

        brief: of an error only the part common to all engines; the native engine also shows the expression and a fix.
        """
        try:
            query = self.compiled(block)
        except CqError as error:
            return str(error) + "\n"
        run = collect(query, engine, RunOptions(threads))
        text = io.StringIO()
        screen = Screen(text, colour=False, titles=len(query.outputs) > 1)
        for name, table in run.tables.items():
            shown = Table(name, table.column_names, screen)
            for batch in table.to_batches():
                shown.write(batch)
            shown.close()
        counts = {"late": run.summary.late_rows or 0, "bad": sum(run.summary.bad_rows.values())}
        told = " · ".join(f"{word} {n}" for word, n in counts.items() if n)
        error = "" if run.error is None else str(self._of_block(run.error, block)) + "\n"
        first = error.partition("\n")[0] + "\n" if error else ""
        return text.getvalue() + (f"{told}\n" if told else "") + (first if brief else error)

    def _of_block(self, error: CqError, block: Block) -> CqError:
        """The error with the lines of the block, which the page shows without the streams before it."""
        lines = 0 if "CREATE STREAM" in block.text else self.streams.count("\n")
        return type(error)(*(_moved(d, lines, block.text) for d in error.diagnostics))


def _moved(d: Diagnostic, lines: int, text: str) -> Diagnostic:
    """A finding in the text of a block, without the lines before it."""

    def up(span: Span) -> Span:
        return Span(span.line - lines, span.column, span.end_line - lines, span.end_column)

    if d.source is None:
        return d
    labels = tuple(replace(x, span=up(x.span)) for x in d.labels)
    return replace(d, span=up(d.span), labels=labels, source=SourceText(NAME, text))


def bench(page: Path, directory: Path, text: str | None = None) -> Bench:
    """The files of a page, written into a directory."""
    found = blocks(page, text)
    for b in found:
        if b.language in FILES:
            (directory / b.words[1]).write_text(b.text, encoding="utf-8")
    declaring = (b.text for b in found if b.language == "sql" and b.text.lstrip().startswith("CREATE STREAM"))
    return Bench(directory, next((t for t in declaring if "SELECT" not in t), ""))


def written_anew(page: Path) -> str:
    """The page with every generated part updated."""
    text = _TABLE.sub(lambda m: m["name"] + m[2] + TABLES[m["name"]]() + "\n", page.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as directory:
        place = bench(page, Path(directory), text)
        for query, result in reversed(results_of(page, text)):
            text = text[: result.start] + place.outcome(query) + text[result.end :]
    return text


def results_of(page: Path, text: str) -> list[tuple[Block, Block]]:
    """The queries of a page that are followed by a result, with its block."""
    return [
        (query, result)
        for query, result in pairwise(blocks(page, text))
        if query.language == "sql" and result.language == "text" and _adjacent(text, query, result)
    ]


def _adjacent(text: str, a: Block, b: Block) -> bool:
    return not text[a.end + len("```") : b.start - len("```text\n")].strip()
