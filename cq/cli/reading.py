"""Commands that read a query or a file but run nothing: `cq check`, `explain`, `fmt`, `schema`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cq.cli.completion import complete_files
from cq.cli.options import compiled_query, input_options, query_options, stdin_text, threads_option
from cq.cli.process import AT_FAULT, DONE, say
from cq.compiler.passes import EXPLAINED, PICTURES, STAGES, Compiled, read_text
from cq.connectors.access import STDIN, FileAccess
from cq.connectors.formats import FORMATS
from cq.errors import NOWHERE, CompileError, CqError, DataError, Diagnostic, SourceText, UsageError, printable, render

if TYPE_CHECKING:
    from cq.connectors.natives import Natives
    from cq.lang.event_time import SeenTimes
    from cq.lang.schema import Field


@click.command()
@query_options
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Choose the output format.",
)
def check(strict: bool, format_: str, **query: Any) -> int:
    """Check QUERY without running it, and report all errors and warnings with their places."""
    findings: tuple[Diagnostic, ...]
    compiled: Compiled | None = None
    try:
        compiled = compiled_query(**query)
        findings = compiled.findings()
    except (CompileError, DataError) as error:
        findings = error.diagnostics
    failed = any(d.severity != "warning" or strict for d in findings)
    if format_ == "json":
        click.echo(json.dumps([as_json(d) for d in findings], indent=2, ensure_ascii=False))
    else:
        for d in findings:
            say(render(d))
        if compiled is not None and not failed:
            click.echo(_reads_and_gives(compiled))
    return AT_FAULT if failed else DONE


def _reads_and_gives(compiled: Compiled) -> str:
    streams = ", ".join(s.name for s in compiled.streams) or "nothing"
    outputs = "; ".join(f"{o.name} ({o.node.schema})" for o in compiled.outputs) or "nothing"
    return f"ok: reads {streams}; gives {outputs}"


def as_json(d: Diagnostic) -> dict[str, Any]:
    """A finding for editors: 1-based lines and columns, the end exclusive."""
    return {
        "severity": d.severity,
        "code": d.code,
        "message": d.message,
        "file": d.source.name if d.source is not None else None,
        "line": d.span.line,
        "column": d.span.column,
        "end_line": d.span.end_line,
        "end_column": d.span.end_column,
        "place": d.place or None,
        "help": list(d.help),
    }


@click.command()
@query_options
@click.option("--stage", type=click.Choice(STAGES), help="Choose the stage to show. Default: rewritten.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(PICTURES),
    default="tree",
    show_default=True,
    help="Choose the format of the plan.",
)
@threads_option("Plan for this number of workers. Default: as many as run would start.")
@click.option("-v", "--verbose", is_flag=True, help="Show all details of each operator, including its identity.")
@click.option("--analyze", is_flag=True, help="Run the query, discard its rows, and show what its stages did.")
def explain(stage: str | None, format_: str, threads: int | None, verbose: bool, analyze: bool, **query: Any) -> int:
    """Show the plan of QUERY, the stages of its operators, or the generated code.

    Each line of the plan shows one operator: its action, in the names of the query, and how it differs from its input:
    the watermark, the rows it keeps, the late rows it counts, and roughly what a row costs.
    """
    compiled = compiled_query(**query)
    for warning in compiled.warnings:
        say(render(warning))
    if analyze:
        if stage not in {None, "stages"}:
            help = ("leave --stage out",)
            raise UsageError(Diagnostic("CQ0606", "--analyze shows only the stages that ran", help=help))
        click.echo(_analyzed(compiled, format_, threads))
        return DONE
    shown = compiled.for_workers(compiled.workers(threads)).explain(stage or EXPLAINED, format_, verbose)
    click.echo(shown.rstrip("\n"))
    return DONE


def _analyzed(compiled: Compiled, format: str, threads: int | None) -> str:
    """The stages of the query with measurements from running it."""
    from cq.cli.running import progress_shown
    from cq.cli.signals import stopping
    from cq.connectors.sinks.terminal import Screen
    from cq.engines.analysis import analyze, drawn
    from cq.engines.protocol import Progress

    progress = Progress()
    with stopping(progress), progress_shown(progress, Screen.stdout(titles=False), False):
        return drawn(analyze(compiled, threads, progress), format)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete_files)
@click.option(
    "--check", "only_check", is_flag=True, help="Show the changes without making them; exit with 1 if there are any."
)
def fmt(files: Sequence[str], only_check: bool) -> int:
    """Format query files in place; - formats standard input to standard output."""
    result = DONE
    for name in files:
        text = stdin_text() if name == STDIN else read_text(Path(name))
        try:
            formatted = formatted_text(text, "<stdin>" if name == STDIN else name)
        except CompileError as error:
            say(str(error))
            result = AT_FAULT
            continue
        if only_check:
            if formatted != text:
                result = AT_FAULT
                import difflib

                lines = difflib.unified_diff(
                    text.splitlines(True), formatted.splitlines(True), name, f"{name} (formatted)"
                )
                click.echo("".join(lines), nl=False)
        elif name == STDIN:
            click.echo(formatted.encode(), nl=False)
        elif formatted != text:
            _replace(Path(name), formatted)
            say(f"formatted {name}")
    return result


def formatted_text(text: str, name: str) -> str:
    """The canonical text of a query file."""
    from cq.grammar.printer import format_source

    return format_source(SourceText(name, text))


def _replace(path: Path, text: str) -> None:
    """Replace the file's text, or keep the old one when that fails; its mode stays."""
    real = Path(os.path.realpath(path))
    part = real.with_name(f".{real.name}.{os.urandom(4).hex()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.chmod(real.stat().st_mode & 0o777)
        part.replace(real)
    except OSError as e:
        part.unlink(missing_ok=True)
        cause = f'cannot write "{path}": {(e.strerror or str(e)).lower()}'
        raise UsageError(Diagnostic("CQ0605", cause)) from None


@click.command()
@click.argument("file", shell_complete=complete_files)
@click.option("--name", help="Set the name of the stream. Default: the name of the file.")
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(tuple(FORMATS)),
    help="Set the format of the file.",
)
@click.option("--delimiter", help="CSV: set the field separator.")
@click.option("--no-header", is_flag=True, help="CSV: read the first line as data, not as column names.")
@click.option(
    "-w",
    "--with",
    "given",
    multiple=True,
    metavar="OPTION=VALUE",
    help="Set another option of the file, as WITH does: -w union_by_name=true.",
)
def schema(
    file: str, name: str | None, format_: str | None, delimiter: str | None, no_header: bool, given: Sequence[str]
) -> int:
    """Print a CREATE STREAM statement that reads FILE, with its columns and their types, its event time, and the delay
    that its rows need. If no column is a TIMESTAMP, one is computed from a DATE, a text or a number."""
    from cq.connectors.inference import infer_file
    from cq.grammar import inline
    from cq.lang.schema import Field, Unheld
    from cq.planner.binding.file_names import stream_name

    try:
        file.encode()
    except UnicodeEncodeError:
        cause = f'the name "{printable(file)}" is not UTF-8, so a query cannot name it'
        raise UsageError(Diagnostic("CQ0601", cause, help=("create a link with another name: ln -s",))) from None
    if file == STDIN:
        cause = "cq schema reads a file, not standard input"
        ways = (
            "write the rows to a file first: … > FILE",
            "or let cq run infer the columns: cq run \"SELECT * FROM '-'\"",
        )
        raise UsageError(Diagnostic("CQ0601", cause, help=ways))
    options = {"path": file}
    options |= {"format": format_} if format_ else {}
    options |= {"delimiter": delimiter} if delimiter else {}
    options |= {"header": "false"} if no_header else {}
    options |= _of_the_file(given)
    found = infer_file(file, options, FileAccess(Path.cwd()))
    fields = [f for f in found if isinstance(f, Field) and f.name]
    left_out = [f for f in found if isinstance(f, Unheld)]
    left_out += [Unheld("a column without a name,", str(f.type)) for f in found if isinstance(f, Field) and not f.name]
    if not fields:
        none = f": {', '.join(map(str, left_out))}" if left_out else ""
        cause = f"{file} has no column that cq supports{none}"
        ways = (
            "convert the columns when writing the file",
            f"its rows can be counted: SELECT COUNT(*) FROM {inline.string(file)}",
        )
        raise DataError(Diagnostic("CQ0603", cause, help=ways))
    lines = [f"  {inline.name(f.name)} {f.type}{'' if f.nullable else ' NOT NULL'}" for f in fields]
    marked, without = _event_time(tuple(fields), options)
    lines += marked
    options |= {"on_error": "skip"} if without and "on_error" not in options else {}
    options["path"] = _from_where_it_goes(file)
    written = ", ".join(f"{inline.option_key(k)} = {inline.string(v)}" for k, v in options.items())
    stream = name or stream_name(file, ())
    body = ",\n".join(lines)
    # Comments go inside: a text that starts with -- is an option on the command line.
    said = "".join(f"  -- {line}\n" for line in [*(f"left out: {printable(str(u))}" for u in left_out), *without])
    text = f"CREATE STREAM {inline.name(stream)} (\n{said}{body}\n) WITH (connector = 'file', {written});"
    try:
        formatted_text(text, "<schema>")
    except CqError as error:
        raise AssertionError(f"the printed statement does not parse: {error.first.message}") from error
    click.echo(text)
    return DONE


def _of_the_file(given: Sequence[str]) -> dict[str, str]:
    """The options of -w. CQ0207 and CQ0208 for those that a file does not accept."""
    from cq.connectors.registry import SOURCES
    from cq.planner.binding.stream_options import check_options

    by_stream = input_options(given)
    for stream in by_stream:
        if stream:
            cause = f'cq schema reads one file, and no stream "{stream}"'
            raise UsageError(Diagnostic("CQ0207", cause, help=("leave the name out: -w OPTION=VALUE",)))
    options = {"connector": "file", **by_stream.get("", {})}
    if options.pop("follow", "false") == "true":
        cause = "cq schema reads the current rows of a file, and does not follow it"
        raise UsageError(
            Diagnostic("CQ0207", cause, help=("leave the option out, and add it to the printed statement",))
        )
    check_options({**options, "path": "-"}, (), SOURCES, NOWHERE, "file")
    return {key: value for key, value in options.items() if key != "connector"}


def _event_time(fields: tuple[Field, ...], options: dict[str, str]) -> tuple[list[str], list[str]]:
    """The WATERMARK with the delay that the first rows need, after the column that computes it if none is a TIMESTAMP;
    and a note on rows without a time, which no stream accepts. Nothing if no column holds times."""
    from cq.connectors.lateness import seen_times
    from cq.connectors.proposed_times import first_proposed_time
    from cq.grammar import inline
    from cq.lang.event_time import free_name

    natives = _natives()
    places = [place for place, f in enumerate(fields) if f.type.is_timestamp]
    if places:
        found = ((place, seen_times(fields, place, options, natives=natives)) for place in places)
        first = next(found)
        place, seen = next((f for f in (first, *found) if not f[1].without), first) if first[1].without else first
        name, computed = inline.name(fields[place].name), []
    else:
        time = first_proposed_time(fields, inline.name, options, natives)
        if time is None:
            return [], []
        name, seen = free_name(f.name for f in fields), time.seen
        also = f"  -- {time.also} fits as well\n" if time.also else ""
        computed = [f"{also}  {name} AS {time.expression}"]
    without = [f"rows without {printable(name)} are left out: {seen.without:,} of {seen}"] if seen.without else []
    return [*computed, "  " + _commented(name, seen)], without


def _commented(column: str, seen: SeenTimes) -> str:
    """The WATERMARK with a comment on the rows from which its delay comes."""
    from cq.lang.event_time import seconds, watermark_text

    late = f"in {seen} some are as late as {seconds(seen.delay_us)} s"
    why = late if seen.delay_us else f"{seen} are in order of {printable(column)}"
    return f"{watermark_text(column, seen.delay_us)}  -- {why}"


def _natives() -> Natives:
    """The native engine's readers, if it is installed."""
    from cq.connectors.natives import NONE
    from cq.engines.feeding import natives_of

    try:
        return natives_of("native")
    except UsageError:
        return NONE


def _from_where_it_goes(file: str) -> str:
    """The path as the query must write it: relative to the directory of the query file that standard output goes to."""
    target = os.path.realpath(f"/proc/self/fd/{sys.stdout.fileno()}")
    if os.path.isabs(file) or not target.endswith(".cq"):
        return file
    return os.path.relpath(file, os.path.dirname(target))
