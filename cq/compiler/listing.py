"""Generated code as people read it: every block under the line of the query it was made for.

A module itself holds no text of the query, only marks with line numbers and numbered columns. Their meaning is added
here, as comments, when the code is shown: whatever a line or a name contains, it stays one printable line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from cq.errors import PICTURE_COLUMNS, SourceText, printable
from cq.runtime.layout.pipeline import ColumnSpec, Pipeline

_MARK = re.compile(r"^( *)# line (\d+): \w+$", re.M)


def listing(pipelines: Sequence[Pipeline], source: SourceText) -> str:
    """The stages of the pipelines, one after the other. source: the query they were compiled from."""
    return "\n".join(text for pipeline in pipelines for text in _stages(pipeline, source))


def _stages(pipeline: Pipeline, source: SourceText) -> Iterator[str]:
    inputs = [(s.name, s.columns) for s in pipeline.sources]
    for stage in pipeline.stages:
        outputs = [(p.name, p.columns) for p in stage.ports]
        names = [*_legend("rows_", "takes", "c", inputs), *_legend("port", "gives", "out", outputs)]
        head = [f"# stage {printable(stage.name)}: {stage.way.value}", *names]
        yield "\n".join((*head, interleaved(stage.module, source)))
        inputs = outputs


def _legend(where: str, does: str, column: str, of: Sequence[tuple[str, Sequence[ColumnSpec]]]) -> Iterator[str]:
    """Which column of the query a number means: `# rows_0 takes bids: c0 auction, c1 price`."""
    for number, (name, columns) in enumerate(of):
        if columns:
            said = ", ".join(f"{column}{n} {_quoted(c.name)}" for n, c in enumerate(columns))
            text = f"{where}{number} {does} {_quoted(name)}: {said}"
            yield from (f"# {line}" for line in wrap(text, PICTURE_COLUMNS, subsequent_indent="    "))


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f'"{printable(name)}"'


def interleaved(module: str, source: SourceText) -> str:
    """The module with the query's line under each mark, as a comment with the same indentation.

    A line without words, or one that the text does not have, adds nothing. Lines are cut to PICTURE_COLUMNS characters.
    """

    def with_line(mark: re.Match[str]) -> str:
        said = printable(_cut(source.line(int(mark[2])).strip())).strip()
        return f"{mark[0]}\n{mark[1]}#   {said}" if said else mark[0]

    return _MARK.sub(with_line, module)


def _cut(line: str) -> str:
    return line if len(line) <= PICTURE_COLUMNS else line[: PICTURE_COLUMNS - 1] + "…"
