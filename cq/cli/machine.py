"""`cq machine` and `cq limits`: the hardware that a run finds here, and the limits it obeys."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import click

from cq.cli.process import DONE


@click.command()
def machine() -> int:
    """Show the detected hardware."""
    import pyarrow as pa

    from cq.process_limits import cpu_quota, memory_limit_bytes, usable_cpus

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
    from cq.planner.binding import fan_out, traits, windows
    from cq.planner.binding.settings import DEFAULT_MEMORY

    steps_ahead = read_ahead.AHEAD_ITEMS + column_tracks.STEPS_AHEAD
    rows_ahead = steps_ahead * protocol.READ_ROWS  # Parquet; other formats fewer
    return {
        "length of a query": f"{MAX_TEXT_BYTES >> 20} MiB",
        "tokens in a query": f"{lexer.MAX_TOKENS:,}",
        "nesting depth of a statement": f"{parser.MAX_DEPTH} levels",
        "operators above one another": str(traits.MAX_PLAN_DEPTH),
        "pieces (slides) of a window": f"{windows.MAX_PANES:,}",
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
