"""`cq examples`: list the queries that ship with cq, or run one of them on a small input."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import cq
from cq.cli.process import DONE, INTERRUPTED, say
from cq.cli.progress import summary_text
from cq.cli.running import progress_shown
from cq.cli.signals import stopping
from cq.compiler.passes import compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.sinks.terminal import Screen, Table
from cq.engines.engines import ENGINES
from cq.engines.protocol import Progress, RunOptions
from cq.engines.query import run_query
from cq.errors import Diagnostic, UsageError, did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MINIATURE_ROWS = 100_000  # for each input: enough to close minutes of traffic, while no query runs for a second
SHOWN_ROWS = 10


def shipped() -> dict[str, Path]:
    """The queries by name, such as `nexmark/q5`: those of the installation, or of the checkout that it runs from."""
    package = Path(cq.__file__).parent
    root = next((d for d in (package / "queries", package.parent / "queries") if d.is_dir()), package / "queries")
    found = [p.relative_to(root).with_suffix("").as_posix() for p in root.rglob("*.cq")]
    return {name: root / f"{name}.cq" for name in sorted(found, key=_order)}


def _order(name: str) -> tuple[bool, list[str | int]]:
    """Those without a group first, q2 before q10."""
    return "/" in name, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def description(path: Path) -> str:
    """The first line of the comment that a query begins with."""
    with path.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("--").strip()


def _complete_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(n, help=description(p)) for n, p in shipped().items() if n.startswith(typed)]


@click.command()
@click.argument("name", required=False, shell_complete=_complete_names)
@click.option(
    "--engine", default=next(iter(ENGINES)), show_default=True, help=f"Choose the engine: {', '.join(ENGINES)}."
)
@click.option(
    "--rows", type=click.IntRange(1), default=MINIATURE_ROWS, show_default=True, help="Read N rows of each input."
)
@click.option("--all", "every_row", is_flag=True, help=f"Show all rows, not only the first {SHOWN_ROWS}.")
def examples(name: str | None, engine: str, rows: int, every_row: bool) -> int:
    """List the queries that ship with cq; with NAME, show that query and run it over a small input.

    Inputs are generated; no files are read or written.
    """
    known = shipped()
    if name is None:
        width = max((len(n) for n in known), default=0)
        for each, path in known.items():
            click.echo(f"{each:{width}}  {description(path)}")
        return DONE
    asked = name.removeprefix("queries/").removesuffix(".cq")
    if asked not in known:
        ways = (did_you_mean(name, known), "cq examples lists all")
        raise UsageError(Diagnostic("CQ0606", f'there is no example "{name}"', help=tuple(w for w in ways if w)))
    return _run(known[asked], engine, rows, every_row)


def _run(path: Path, engine: str, rows: int, every_row: bool) -> int:
    text = path.read_text(encoding="utf-8")
    click.echo(text)
    compiled = compile(text, path.name, inputs=Inputs(FileAccess(path.parent)))
    progress, screen = Progress(), Screen.stdout(titles=len(compiled.outputs) > 1)
    room, way = None if every_row else SHOWN_ROWS, "; --all shows them"
    sinks = {o.name: Table(o.name, [f.name for f in o.node.schema.fields], screen, room, way) for o in compiled.outputs}
    sys.stdout.flush()
    options = RunOptions(input_rows=rows, unhashed=frozenset(sinks))
    with stopping(progress), progress_shown(progress, screen, False):
        done = run_query(compiled, sinks, engine, options, progress)
    if not done.left:
        say(summary_text(done))
    return INTERRUPTED if done.interrupted else DONE
