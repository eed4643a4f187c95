"""`cq diff`."""

from __future__ import annotations

from typing import Any

import click

from cq.cli.options import compiled_query, query_options, threads_option
from cq.cli.process import AT_FAULT, DONE, USAGE, say
from cq.cli.running import progress_shown
from cq.compiler.passes import UNSAFE, Compiled
from cq.connectors.sinks.terminal import Screen
from cq.engines.compare import DEFAULT_TOLERANCE, compare_runs, tolerance_between
from cq.engines.engines import ENGINES
from cq.engines.protocol import Progress, RunOptions
from cq.engines.query import CollectedRun, collect
from cq.errors import CqError, Diagnostic, UsageError


@click.command()
@query_options
@click.option("--engine", default=next(iter(ENGINES)), show_default=True, help="Choose the first engine.")
@click.option(
    "--against", default="reference", show_default=True, help=f"Choose the second engine: {', '.join(ENGINES)}."
)
@click.option(
    "--order",
    type=click.Choice(("ignore", "strict")),
    help="Compare the order of rows. Default: strict, except for Spark.",
)
@click.option(
    "--float",
    "tolerance",
    type=click.FloatRange(0),
    help=f"Set how far apart equal DOUBLEs may be. Default: the same bits, with Spark {DEFAULT_TOLERANCE}.",
)
@threads_option("Set the number of workers of the native engine.")
@click.option("--rows", type=click.IntRange(1), help="Read only the first N rows of each input.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def diff(
    engine: str,
    against: str,
    order: str | None,
    tolerance: float | None,
    threads: int | None,
    rows: int | None,
    quiet: bool,
    **query: Any,
) -> int:
    """Run QUERY on two engines over the same input and compare the results.

    The reference computes about 50,000 rows a second: on a large input, compare only the first rows with --rows.

    Exit code 0: equal. 1: they differ; the first rows that differ are shown. 2: an engine failed to run the query.
    """
    try:
        within = tolerance_between(engine, against, tolerance)
        compiled = compiled_query(**query)
        once = next((s.name for s in compiled.streams if compiled.request.inputs.is_read_once(s)), None)
        if once is not None:
            cause = f"stream {once} is a pipe, and cannot be read twice"
            raise UsageError(Diagnostic("CQ0606", cause, help=("write it to a file",)))
        if compiled.unchecked:
            help = ("compare another scheme: -s transactions=lock",)
            raise UsageError(Diagnostic("CQ0904", UNSAFE, help=help))
        options = RunOptions(threads, input_rows=rows)
        left, right = (_collected(compiled, name, options, quiet) for name in (engine, against))
    except CqError as error:
        say(str(error))
        return USAGE
    strict = order == "strict" if order is not None else "spark" not in engine + against
    result = compare_runs((engine, left.tables, left.error), (against, right.tables, right.error), strict, within)
    click.echo(str(result))
    if rows is not None:
        click.echo(f"compared the first {rows:,} row{'s' if rows > 1 else ''} of each input")
    return DONE if result.equal else AT_FAULT


def _collected(compiled: Compiled, engine: str, options: RunOptions, quiet: bool) -> CollectedRun:
    """The results of the query on an engine, with progress shown."""
    progress = Progress(engine=f"{engine}: ")
    with progress_shown(progress, Screen.stdout(titles=False), quiet):
        return collect(compiled, engine, options, progress)
