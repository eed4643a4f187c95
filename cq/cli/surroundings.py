"""Commands about what surrounds queries: `cq gen`, `warmup`, `machine`, `limits`."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import click

from cq.cli.completion import complete_files
from cq.cli.options import compiled_query, threads_option
from cq.cli.process import DONE, say
from cq.connectors.access import STDIN, FileAccess
from cq.connectors.formats import FORMATS
from cq.errors import Diagnostic, UsageError


@click.command()
@click.argument("workload", required=False)
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("-o", "--output", default=STDIN, help="Write to this file. Default: CSV to standard output.")
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(tuple(FORMATS)),
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

    options = {"path": output, **({"format": format_} if format_ else {})}
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


@click.command()
def machine() -> int:
    """Show the detected hardware."""
    import pyarrow as pa

    from cq.allowance import cpu_quota, memory_limit_bytes, usable_cpus

    quota, limit = cpu_quota(), memory_limit_bytes()
    rows = {
        "processor": _processor(),
        "usable cores": f"{usable_cpus()} of {os.cpu_count()}" + (f" (quota: {quota:g})" if quota else ""),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        **({"memory limit": f"{limit / 2**30:.1f} GiB"} if limit else {}),
        **_caches(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
    }
    width = max(len(k) for k in rows)
    for key, value in rows.items():
        click.echo(f"{key:{width}}  {value}")
    return DONE


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _caches() -> dict[str, str]:
    """The caches of the first core, nearest first."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((index / f).read_text().strip() for f in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"cache level {level}"] = size.replace("K", " KiB").replace("M", " MiB")
    return found


@click.command()
def limits() -> int:
    """List all limits. cq rejects inputs and queries that exceed them, so that none can exhaust the machine."""
    for what, value in all_limits().items():
        click.echo(f"{what:44} {value}")
    return DONE


def all_limits() -> dict[str, str]:
    """Every limit in words, read from where it is enforced."""
    from cq.codegen.pipeline import MAX_COLUMNS
    from cq.compiler.passes import MAX_TEXT_BYTES
    from cq.connectors import access, bad_rows, cells, column_tracks, nested, packed, protocol, read_ahead
    from cq.connectors.csv.source import MAX_FILE_COLUMNS
    from cq.connectors.json.rows import MAX_DEPTH
    from cq.connectors.sinks import partitioned
    from cq.grammar import lexer, parser
    from cq.lang.types import MAX_DECIMAL_DIGITS
    from cq.planner.binding import fan_out
    from cq.planner.binding.settings import DEFAULT_MEMORY

    steps_ahead = read_ahead.AHEAD_ITEMS + column_tracks.STEPS_AHEAD
    rows_ahead = steps_ahead * protocol.READ_ROWS  # Parquet; other formats fewer
    return {
        "length of a query": f"{MAX_TEXT_BYTES >> 20} MiB",
        "tokens in a query": f"{lexer.MAX_TOKENS:,}",
        "nesting depth of a statement": f"{parser.MAX_DEPTH} levels",
        "copies of a row made by UNION ALL": f"{fan_out.MOST_COPIES:,}",
        "columns of an output, or read from a source": str(MAX_COLUMNS),
        "columns of a CSV file, or inferred from JSON": f"{MAX_FILE_COLUMNS:,}",
        "partitions of an output": f"{partitioned.MAX_PARTITIONS:,}",
        "digits of a DECIMAL": str(MAX_DECIMAL_DIGITS),
        "size of a record in a text format": f"{protocol.RECORD_BYTES >> 20} MiB",
        "nesting depth of a line of JSON": f"{MAX_DEPTH:,} objects and arrays",
        "nesting depth of a struct in Parquet or Arrow": str(nested.MAX_DEPTH),
        "digits of a number in a text format": str(cells.MAX_NUMBER_CHARS),
        "files matched by a pattern": f"{access.MAX_FILES:,}",
        "expansion of a compressed file": f"{packed.MAX_RATIO} times, beyond {packed.FREE_BYTES >> 20} MiB",
        "size of the file of bad rows": f"{bad_rows.MAX_BYTES >> 20} MiB",
        "rows read ahead, per source": f"{rows_ahead:,}",
        "state of a query (SET memory_limit)": DEFAULT_MEMORY,
    }


@click.command()
@click.argument("queries", nargs=-1, metavar="[QUERY]...", shell_complete=complete_files)
@threads_option("Compile for this number of workers.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="Set the parameter :NAME.")
@click.option("--spark", is_flag=True, help="Also prepare Spark to start faster (takes about 20 s and 180 MB).")
def warmup(queries: Sequence[str], threads: int | None, variables: Sequence[str], spark: bool) -> int:
    """Compile the runtime, and the given queries, into the cache, so that their first run starts fast."""
    from cq.cli.progress import compiling_shown
    from cq.engines.feeding import native_packages

    with native_packages():
        from cq.runtime.base.host import CompiledHost
        from cq.runtime.base.interpret import GENERATORS, READERS, WRITERS
        from cq.runtime.base.kernel import library_with

    began = time.perf_counter()
    with compiling_shown():
        host = CompiledHost()
        library_with(GENERATORS)
        library_with(READERS)
        library_with(WRITERS)
    say(f"the runtime is compiled ({time.perf_counter() - began:.1f} s)")
    for query in queries:
        began = time.perf_counter()
        compiled = compiled_query([query], None, variables, (), (), ())
        with compiling_shown():
            for pipeline in compiled.for_workers(compiled.workers(threads)).after("emit"):
                for stage in pipeline.stages:
                    host.entries(stage)
        say(f"{query} is compiled ({time.perf_counter() - began:.1f} s)")
    if spark:
        from cq.spark.warmup import train_aot

        began = time.perf_counter()
        train_aot()
        say(f"Spark is prepared ({time.perf_counter() - began:.1f} s)")
    return DONE
