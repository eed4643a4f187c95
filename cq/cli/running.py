"""`cq run`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from cq.cli.options import compiled_query, query_options, threads_option
from cq.cli.paging import PagedScreen, paged
from cq.cli.process import DONE, INTERRUPTED, say
from cq.cli.progress import ProgressLine, ProgressNotes, summary_json, summary_text
from cq.cli.signals import stopping
from cq.compiler.passes import EXPLAINED, Compiled, demand_output
from cq.connectors.access import STDIN
from cq.connectors.formats import output_formats
from cq.connectors.protocol import Sink
from cq.connectors.sinks.terminal import FIRST_ROWS, Screen, Table
from cq.connectors.sinks.writers import open_sink, writes_stdout
from cq.engines.engines import ENGINES
from cq.engines.left_out_rows import late_losses
from cq.engines.protocol import Progress, RunOptions, RunSummary
from cq.engines.query import opening_sinks, run_reading_again
from cq.errors import DataError, Diagnostic, UsageError, did_you_mean, render
from cq.hints import face
from cq.planner.binding.binder import Explained
from cq.records import dataclass
from cq.runtime.base.notices import listening


@click.command()
@query_options
@click.option(
    "-o", "--output", "outputs", multiple=True, metavar="[NAME=]PATH", help="Write rows to PATH; - is standard output."
)
@click.option(
    "-f", "--format", "format_", type=click.Choice(("table", *output_formats())), help="Set the output format."
)
@click.option("--partition-by", metavar="COLUMNS", help="Write a file for each value of COLUMNS: -o DIR/ -f parquet.")
@threads_option("Set the number of workers; 0 runs in one thread.")
@click.option(
    "--engine", default=next(iter(ENGINES)), show_default=True, help=f"Choose the engine: {', '.join(ENGINES)}."
)
@click.option("--limit", type=click.IntRange(0), help="Stop after N rows of each output.")
@click.option("--all", "every_row", is_flag=True, help=f"Show all rows on a terminal, not only the first {FIRST_ROWS}.")
@click.option("--no-pager", is_flag=True, help="Show the first rows of a long table instead of a pager.")
@click.option("--wide", is_flag=True, help="Show all columns of a table in full, beyond the width of the terminal.")
@click.option("-x", "--expanded", is_flag=True, help="Show each row as lines of column and value.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
@click.option("--hash", "hashes", is_flag=True, help="Show a hash of each output in the summary.")
@click.option(
    "--summary", type=click.Choice(("text", "json")), default="text", show_default=True, help="Choose the summary."
)
def run(
    outputs: Sequence[str],
    format_: str | None,
    partition_by: str | None,
    threads: int | None,
    engine: str,
    limit: int | None,
    every_row: bool,
    no_pager: bool,
    wide: bool,
    expanded: bool,
    quiet: bool,
    hashes: bool,
    summary: str,
    **query: Any,
) -> int:
    """Run QUERY: a file, - for standard input, or the text itself.

    Streams are read from the files that the query names, or from the paths given here (- is standard input). Results
    without a sink are written to standard output: as CSV to a pipe or file, as a table to a terminal. A bounded result
    that is longer than the terminal is shown in a pager ($PAGER, or less); without a pager, only its first rows are
    shown.
    """
    compiled = compiled_query(**query, quiet=quiet)
    if not _said_before(compiled, threads):
        return DONE
    progress = Progress()
    shown = TerminalView(wide, expanded, every_row, paged=not (every_row or no_pager), limited=limit is not None)
    format_ = format_ or ("table" if expanded else None)
    closing = Closing(quiet, hashes, summary == "json")
    unhashed = frozenset[str]() if closing.hashed else frozenset(o.name for o in compiled.outputs)
    options = RunOptions(threads, limit=limit, unhashed=unhashed)
    try:
        with (
            shown.screen(compiled) as screen,
            stopping(progress),
            progress_shown(progress, screen, quiet),
        ):

            def opened(compiled: Compiled) -> Mapping[str, Sink]:
                return open_sinks(compiled, outputs, format_, screen, shown.rows(screen), partition_by=partition_by)

            done = run_reading_again(compiled, opened, engine, options, progress)
    except DataError:
        if progress.summary is not None:
            closing.say(progress.summary)
        raise
    if len(done.left) < len(compiled.outputs):  # so that the user sees what was done
        closing.say(done)
        if not quiet:
            say_late(done, compiled)
    return INTERRUPTED if done.interrupted else DONE


def _said_before(compiled: Compiled, threads: int | None) -> bool:
    """Print the messages before a run; return whether there is something to run. UsageError for a text with only
    declarations."""
    for warning in compiled.warnings:
        say(render(warning))
    for explained in compiled.bound.explains:
        click.echo(explain_statement(compiled, explained, threads))
    if not compiled.bound.explains:
        demand_output(compiled.plan)
    return bool(compiled.outputs)


@dataclass(frozen=True, slots=True)
class TerminalView:
    """How results are shown on a terminal.

    every_row, limited: with all their rows.  paged: in a pager if they are long, and there is one.
    """

    wide: bool = False
    expanded: bool = False
    every_row: bool = False
    paged: bool = True
    limited: bool = False

    def screen(self, compiled: Compiled) -> contextlib.AbstractContextManager[Screen]:
        """The screen for the outputs of a run. Rows of an endless result are shown as they come."""
        screen = Screen.stdout(len(compiled.outputs) > 1, self.wide, self.expanded)
        return paged(screen, self.paged and not any(map(compiled.endless, compiled.outputs)), self.every_row)

    def rows(self, screen: Screen) -> int | None:
        """How many rows of a result that ends are shown; None: all."""
        if self.every_row or self.limited or isinstance(screen, PagedScreen) or not sys.stdout.isatty():
            return None
        return FIRST_ROWS


@dataclass(frozen=True, slots=True)
class Closing:
    """How a run is summarised on standard error."""

    quiet: bool
    hashes: bool
    as_json: bool

    @property
    def hashed(self) -> bool:
        """Whether anybody sees the hashes, which take time."""
        return not self.quiet and (self.hashes or self.as_json)

    def say(self, summary: RunSummary) -> None:
        if not self.quiet:
            say(summary_json(summary) if self.as_json else summary_text(summary, self.hashes))


def say_late(summary: RunSummary, compiled: Compiled) -> None:
    """Report which rows were late, and what to do about it; unreadable ones are in the closing line."""
    for loss in late_losses(summary, compiled.plan):
        say(f"note: {loss}")


def explain_statement(compiled: Compiled, explained: Explained, threads: int | None) -> str:
    """The output of an EXPLAIN statement in the text, for as many workers as would run the query."""
    one = compiled.of_plan(explained.plan)
    return one.for_workers(one.workers(threads)).explain(explained.stage or EXPLAINED)


STDOUT_NAMES = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def open_sinks(
    compiled: Compiled,
    given: Sequence[str],
    format_: str | None,
    screen: Screen,
    shown: int | None = None,
    partition_by: str | None = None,
) -> dict[str, Sink]:
    """A sink for every output: given on the command line, else declared, else standard output.

    shown: how many rows of an output that ends are shown in a table on the screen; None: all.
    """
    names = [o.name for o in compiled.outputs]
    paths: dict[str, str] = {}
    for name, place in (_target(g, names) for g in given):
        if name in paths:
            cause = f'output "{name}" is written to two places: {paths[name]} and {place}'
            raise UsageError(Diagnostic("CQ0606", cause, help=("write to one of them, and copy the file afterwards",)))
        paths[name] = place
    tabular = format_ == "table" or (format_ is None and sys.stdout.isatty())
    _demand_one_on_stdout(compiled, paths, tabular)
    access, reserved = compiled.request.inputs.access, compiled.read_files
    screen.begin()
    with opening_sinks() as sinks:
        for output in compiled.outputs:
            fields, endless = output.node.schema.fields, compiled.endless(output)
            if output.sink is not None and output.name not in paths:
                sinks[output.name] = open_sink(fields, dict(output.sink.options), access, reserved, endless)
                continue
            path = paths.get(output.name, STDIN)
            if path == STDIN and tabular:
                room, more = shown if output.node.bounded else None, f"; {face().all_rows}"
                ends = output.node.bounded if screen.titles else not endless  # the only result, to a pipe: as rows come
                sinks[output.name] = Table(output.name, [f.name for f in fields], screen, room, more, ends)
                continue
            if format_ == "table":
                cause = "format table can only be written to standard output"
                raise UsageError(Diagnostic("CQ0606", cause, help=("use another format: -f csv",)))
            options = {"path": path, **(output_formats()[format_] if format_ else {})}
            options |= {"partition_by": partition_by} if partition_by else {}
            sinks[output.name] = open_sink(fields, options, access.trusted(), reserved, endless)
    return sinks


def _demand_one_on_stdout(compiled: Compiled, paths: Mapping[str, str], tabular: bool) -> None:
    """CQ0606 if a reader of standard output could not tell which lines belong to which output.

    Tables have titles. Lines of a sink between them are acceptable for people on a terminal, but not for programs.
    """
    outputs = {o.name: o.sink for o in compiled.outputs}
    declared = [n for n, sink in outputs.items() if sink and n not in paths and writes_stdout(dict(sink.options))]
    shown = [n for n, sink in outputs.items() if paths.get(n, STDIN) == STDIN and (sink is None or n in paths)]
    sharing = [n for n in outputs if n in {*declared, *shown}]
    if len(sharing) < 2 or (tabular and (not declared or sys.stdout.isatty())):
        return
    as_tables = () if declared else ("or print them as tables, one after another: -f table",)
    elsewhere = (f"give each a file: -o {sharing[0]}=PATH", *as_tables)
    cause = f"{len(sharing)} outputs cannot share standard output: {', '.join(sharing)}"
    raise UsageError(Diagnostic("CQ0606", cause, help=elsewhere))


def _target(given: str, names: Sequence[str]) -> tuple[str, str]:
    """(output, path) of `-o`."""
    name, equals, path = given.partition("=")
    if equals and name in names:
        return name, STDIN if path in STDOUT_NAMES else path
    if len(names) == 1 and not (equals and name.isidentifier()):
        return names[0], STDIN if given in STDOUT_NAMES else given
    guess = did_you_mean(name, names) if equals else ""
    help = (guess, f"outputs: {', '.join(names)}", "write -o NAME=PATH")
    cause = f'there is no output "{name}"' if equals else f"the query has {len(names)} outputs"
    raise UsageError(Diagnostic("CQ0606", cause, help=tuple(h for h in help if h)))


@contextlib.contextmanager
def progress_shown(progress: Progress, screen: Screen, quiet: bool) -> Iterator[None]:
    """While this is open, show how far the run has come, unless it is to be quiet."""
    if quiet:
        yield
        return

    def tell(note: str) -> None:
        screen.before_write()
        say(f"note: {note}")

    progress.on_note = tell
    with listening(progress.compiles):
        if not sys.stderr.isatty():
            with ProgressNotes(progress, sys.stderr):
                yield
            return
        with ProgressLine(progress, sys.stderr) as line:
            screen.before_write, screen.taken = line.clear, line.end
            yield
