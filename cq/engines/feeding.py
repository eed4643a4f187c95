"""The sources of one run, opened with the columns its engine reads."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from cq.compiler.passes import Compiled
from cq.connectors.followed import is_followed
from cq.connectors.inputs import Inputs
from cq.connectors.natives import NONE, Natives
from cq.connectors.sources import open_source
from cq.engines.protocol import Feed, Progress, RunOptions
from cq.errors import NOWHERE, CqError, Diagnostic, UsageError
from cq.grammar.ast import CreateRelation
from cq.hints import face
from cq.planner.operators.pruning import columns_used
from cq.planner.plan.source import SourceDef
from cq.records import replace

NATIVE_MACHINES = {"x86_64": "x86-64"}  # the system's names and the usual ones; no other was tried


def _in_python() -> str:
    return f"run it in plain Python: {face().reference}"


def _demand_platform() -> None:
    """CQ0607 where the native engine does not run: it sleeps on futexes and loads ELF objects."""
    if platform.system() == "Linux" and platform.machine() in NATIVE_MACHINES:
        return
    here = " ".join(part for part in (platform.system(), platform.machine()) if part) or "this system"
    text = f"the native engine runs on Linux on {' and '.join(NATIVE_MACHINES.values())}, not on {here}"
    raise UsageError(Diagnostic("CQ0607", text, help=(_in_python(),)))


@contextmanager
def native_packages() -> Iterator[None]:
    """Import what needs numba or llvmlite, on a machine they support; else CQ0604, which names the other engine."""
    _demand_platform()
    try:
        yield
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in {"numba", "llvmlite"}:
            raise
        ways = ("pip install numba llvmlite", f"or {_in_python()}")
        raise UsageError(Diagnostic("CQ0604", f"the native engine needs the package {e.name}", help=ways)) from None


def natives_of(engine: str) -> Natives:
    """The native engine's own ways to read and make rows; other engines use the definitions."""
    if engine != "native":
        return NONE
    with native_packages():
        from cq.runtime.generators import twin
        from cq.runtime.readers import csv_scan, json_scan
    return Natives(twin, json_scan, csv_scan, codes=True)


def wanted_columns(compiled: Compiled, engine: str, options: RunOptions) -> dict[str, list[int]]:
    """By stream, the columns the native engine reads; the others read all declared columns."""
    if engine != "native":
        return {}
    with native_packages():
        pipelines = compiled.for_workers(compiled.workers(options.threads)).after("emit")
    places = {s.name: [f.name for f in s.fields] for s in compiled.sources}
    return {
        spec.name: [places[spec.name].index(c.name) for c in spec.delivered]
        for pipeline in pipelines
        for spec in pipeline.sources
    }


def open_feeds(
    compiled: Compiled,
    progress: Progress,
    wanted: Mapping[str, Sequence[int]],
    natives: Natives = NONE,
    most_rows: int | None = None,
) -> list[Feed]:
    """All sources of the query, opened and reading, with the wanted columns; if one cannot be opened, all are closed.

    most_rows: the most rows to read of each stream; None: all.
    """
    feeds: list[Feed] = []
    inputs = compiled.request.inputs
    try:
        letters = any(s.option("on_error") == "dead_letter" for s in compiled.sources)
        reserved = compiled.read_files if letters else frozenset()
        used = columns_used(compiled.plan)
        for stream in compiled.sources:
            try:
                source = open_source(stream, inputs, wanted.get(stream.name), reserved, natives, used[stream.position])
            except CqError as error:
                raise _at_option(error, compiled, stream.name) from None
            idle_s = _idle_s(stream, inputs, len(compiled.sources) > 1)
            feeds.append(Feed(stream, source, progress, idle_s, most_rows=most_rows))
    except BaseException:
        for feed in feeds:
            feed.source.close()
        raise
    return feeds


def demand_ends(streams: Iterable[SourceDef], other: str = "or use cq run and the native engine") -> None:
    """CQ0901 for a stream without an end, where all rows are needed before the first one is returned.

    other: an alternative to giving the stream an end.
    """
    for stream in streams:
        if not stream.bounded:
            follows = stream.option("follow") == "true"
            way = (
                "leave follow out: the file is read to its end" if follows else "give the generator its number of rows"
            )
            cause = f"stream {stream.name} has no end, and all rows are needed before the first one is given"
            raise UsageError(Diagnostic("CQ0901", cause, help=(way, other)))


def demand_no_silence(feeds: Iterable[Feed]) -> None:
    """CQ0901 for a stream with an idle timeout, in a run that does not watch when its rows arrive."""
    for feed in feeds:
        if feed.idle_s is not None:
            cause = (
                f"the IDLE TIMEOUT of stream {feed.name} depends on when its rows come, and Spark reads whole inputs"
            )
            ways = ("write them to a file first: there a timeout has no effect", "or use the native engine")
            raise UsageError(Diagnostic("CQ0901", cause, help=ways))


def _idle_s(stream: SourceDef, inputs: Inputs, several: bool) -> float | None:
    """After how many seconds without rows a stream is silent; None if no other stream waits for it, or if all its rows
    are there already."""
    waits = is_followed(dict(stream.options)) or inputs.goes_on(stream)
    return stream.idle_us / 1e6 if stream.idle_us is not None and waits and several else None


def _at_option(error: CqError, compiled: Compiled, stream: str) -> CqError:
    """The error at the path the text declares, unless it has a place or the path was given outside the text."""
    if error.diagnostics[1:] or error.first.span != NOWHERE or stream in compiled.request.inputs.given:
        return error
    for node in compiled.script.statements:
        for option in node.options if isinstance(node, CreateRelation) and node.name == stream else ():
            if option.key == "path":
                placed = replace(error.first, span=option.value.span).at(compiled.request.source)
                return type(error)(placed)
    return error
