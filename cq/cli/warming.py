"""`cq warmup`: compile the runtime and queries before their first run."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from cq.cli.completion import complete_files
from cq.cli.options import compiled_query, threads_option
from cq.cli.process import DONE, say


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
