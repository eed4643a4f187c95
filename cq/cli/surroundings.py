"""Commands about what surrounds queries: `cq gen`, `warmup`, `machine`, `limits`."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import click

from cq.cli import DONE, say
from cq.connectors.access import STDIN, Access
from cq.errors import Diagnostic, UsageError


@click.command()
@click.argument("workload", required=False)
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("-o", "--output", default=STDIN, help="The file to write; left out: CSV to standard output.")
@click.option("-f", "--format", "format_", type=click.Choice(("csv", "json", "parquet", "arrow")))
def gen(workload: str | None, parameters: Sequence[str], output: str, format_: str | None) -> int:
    """Generate the rows of WORKLOAD. Without a name, list the workloads and their parameters."""
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

    from cq.connectors.inference import fields_of
    from cq.connectors.sinks import open_sink
    from cq.connectors.targets import OutputClosed

    options = {"path": output, **({"format": format_} if format_ else {})}
    sink = open_sink(fields_of(chosen.schema, workload), options, Access(Path.cwd()))
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
        raise UsageError(Diagnostic("CQ0606", f'a parameter is given as NAME=VALUE, not as "{text}"'))
    return name, value


@click.command()
def machine() -> int:
    """Show what cq sees of this machine."""
    import pyarrow as pa

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rows = {
        "processor": _processor(),
        "cores usable": f"{usable} of {os.cpu_count()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
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
    """Show every limit: what is refused, so that no input and no query can take the machine down."""
    for what, value in all_limits().items():
        click.echo(f"{what:44} {value}")
    return DONE


def all_limits() -> dict[str, str]:
    """Every limit in words, read from where it is enforced."""
    from cq.codegen.job import MAX_COLUMNS
    from cq.compiler import MAX_TEXT_BYTES
    from cq.connectors import access, ahead, bad_rows, files, lockstep, protocol, texts
    from cq.grammar import lexer, parser
    from cq.types import MAX_DECIMAL_DIGITS

    rows_ahead = (ahead.AHEAD_ITEMS + lockstep.STEPS_AHEAD) * protocol.BATCH_ROWS  # Parquet; other formats fewer
    return {
        "query text": f"{MAX_TEXT_BYTES >> 20} MiB",
        "tokens of a query": f"{lexer.MAX_TOKENS:,}",
        "nesting of a statement": f"{parser.MAX_DEPTH} levels",
        "columns of an output, or read of a source": str(MAX_COLUMNS),
        "digits of a DECIMAL": str(MAX_DECIMAL_DIGITS),
        "record of a text format": f"{protocol.RECORD_BYTES >> 20} MiB",
        "digits of a number in a text format": str(texts.MAX_NUMBER_CHARS),
        "files a pattern may match": f"{access.MAX_FILES:,}",
        "growth of a packed file": f"{files.MAX_RATIO} times, once past {files.FREE_BYTES >> 20} MiB",
        "file of bad rows": f"{bad_rows.MAX_BYTES >> 20} MiB",
        "rows read ahead of the engine, each source": f"{rows_ahead:,}",
    }


@click.command()
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("-j", "--threads", type=click.IntRange(0, 1024), help="Workers the queries will run with.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="The value of :NAME.")
@click.option("--spark", is_flag=True, help="Also make later starts of Spark faster (about 20 s, 180 MB).")
def warmup(queries: Sequence[str], threads: int | None, variables: Sequence[str], spark: bool) -> int:
    """Compile the runtime, and the queries given, into the cache: their first run starts like every other."""
    from cq.cli.options import compiled_query
    from cq.engines import RunOptions, native_packages

    with native_packages():
        from cq.native import workers
        from cq.runtime.host import CompiledHost

    began = time.perf_counter()
    host = CompiledHost()
    say(f"the runtime is compiled ({time.perf_counter() - began:.1f} s)")
    for query in queries:
        began = time.perf_counter()
        compiled = compiled_query([query], None, variables, (), (), False)
        for job in compiled.for_workers(workers(compiled, RunOptions(threads))).after("emit"):
            for stage in job.stages:
                host.entries(stage)
        say(f"{query} is compiled ({time.perf_counter() - began:.1f} s)")
    if spark:
        from cq.spark.warmup import train_aot

        began = time.perf_counter()
        train_aot()
        say(f"Spark is prepared ({time.perf_counter() - began:.1f} s)")
    return DONE
