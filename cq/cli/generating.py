"""`cq gen`: rows of the workloads, as files or on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from cq.cli.process import DONE, say
from cq.connectors.access import STDIN, FileAccess
from cq.connectors.formats import output_formats
from cq.errors import Diagnostic, UsageError


@click.command()
@click.argument("workload", required=False)
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("-o", "--output", default=STDIN, help="Write to this file. Default: CSV to standard output.")
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(tuple(output_formats())),
    help="Set the output format. Default: that of the file's extension; CSV on standard output.",
)
def gen(workload: str | None, parameters: Sequence[str], output: str, format_: str | None) -> int:
    """Generate the rows of WORKLOAD. Without an argument, list the workloads and their parameters."""
    from cq.workloads import WORKLOADS, workload_named

    if workload is None:
        for w in WORKLOADS.values():
            click.echo(f"{w.name}: {w.description}")
            for name, p in w.parameters.items():
                default = "" if p.default is None else f" (default {p.default})"
                click.echo(f"  {name}: {p.doc}{default}")
        return DONE
    chosen = workload_named(workload)
    values = dict(_parameter(p) for p in parameters)
    batches = chosen.generate(**values)

    from cq.connectors.schemas import columns_of
    from cq.connectors.sinks.targets import OutputClosed
    from cq.connectors.sinks.writers import open_sink
    from cq.lang.schema import Field

    options = {"path": output, **(output_formats()[format_] if format_ else {})}
    fields = [f for f in columns_of(chosen.schema) if isinstance(f, Field)]
    sink = open_sink(fields, options, FileAccess(Path.cwd()))
    rows = 0
    try:
        for batch in batches:
            sink.write(batch)
            rows += batch.num_rows
        sink.close()
    except OutputClosed:
        return DONE
    except BaseException:
        sink.abort()
        raise
    if output != STDIN:
        say(f"{rows:,} rows in {output}")
    return DONE


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(Diagnostic("CQ0606", f'a parameter must be written NAME=VALUE, not "{text}"'))
    return name, value
